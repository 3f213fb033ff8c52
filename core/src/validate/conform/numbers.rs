//! Indices into dictionaries, in another width.

use super::rebuild::{Rebuild, integers};
use crate::error::{Report, Result};
use crate::types::Format;

/// Gives the indices of node `i` the type `to`, 32 or 64 bits wide and signed; where a row is null they are 0.
pub(super) fn indices(
    rebuild: &mut Rebuild<'_>,
    i: usize,
    from: Format,
    to: Format,
    report: &mut Report<'_>,
) -> Result<()> {
    let (first, length, start) = rebuild.rebase(i);
    let n = start.saturating_add(length);
    let value = |place: usize| -> Option<i64> {
        let Some(row) = place.checked_sub(start) else { return Some(0) };
        let row = first.checked_add(row)?;
        if rebuild.is_valid(i, row) { index_at(rebuild, i, row, from) } else { Some(0) }
    };
    let data = if to == Format::Int32 {
        integers(n, report, |place| i32::try_from(value(place)?).ok().map(i32::to_ne_bytes))
    } else {
        integers(n, report, |place| value(place).map(i64::to_ne_bytes))
    }?;
    rebuild.replace(i, [data], report)?;
    rebuild.set_format(i, to);
    Ok(())
}

fn index_at(rebuild: &Rebuild<'_>, i: usize, row: usize, from: Format) -> Option<i64> {
    fn read<const W: usize>(rebuild: &Rebuild<'_>, i: usize, row: usize) -> Option<[u8; W]> {
        rebuild.bytes(i, 1, row.checked_mul(W)?, W).first_chunk::<W>().copied()
    }
    match from {
        Format::Int8 => read(rebuild, i, row).map(|b| i64::from(i8::from_ne_bytes(b))),
        Format::UInt8 => read(rebuild, i, row).map(|b| i64::from(u8::from_ne_bytes(b))),
        Format::Int16 => read(rebuild, i, row).map(|b| i64::from(i16::from_ne_bytes(b))),
        Format::UInt16 => read(rebuild, i, row).map(|b| i64::from(u16::from_ne_bytes(b))),
        Format::Int32 => read(rebuild, i, row).map(|b| i64::from(i32::from_ne_bytes(b))),
        Format::UInt32 => read(rebuild, i, row).map(|b| i64::from(u32::from_ne_bytes(b))),
        Format::UInt64 => read(rebuild, i, row).and_then(|b| i64::try_from(u64::from_ne_bytes(b)).ok()),
        _ => read(rebuild, i, row).map(i64::from_ne_bytes),
    }
}
