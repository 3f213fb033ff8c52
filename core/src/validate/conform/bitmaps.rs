//! Copies of bitmaps and of buffers that lie where a consumer cannot read them.

use super::rebuild::Rebuild;
use super::wanted::{Placed, Wanted};
use crate::error::{Report, Result};
use crate::kernels::{count_zeroes, read_i64};
use crate::memory::Buffer;
use crate::tree::{Facts, Need, need};
use crate::types::Role;

/// Takes the nulls of the root into child `i`, whose window is the root's already.
pub(super) fn merge(rebuild: &mut Rebuild<'_>, i: usize, root: Facts, report: &mut Report<'_>) -> Result<()> {
    let (first, n) = rebuild.rows(i);
    let above = usize::try_from(root.offset).unwrap_or(0);
    let mut nulls = 0i64;
    let merged = Buffer::filled(first.saturating_add(n).div_ceil(8), report, |bytes, _| {
        for row in 0..n {
            let at = first.saturating_add(row);
            let is_valid = rebuild.is_valid(0, above.saturating_add(row)) && rebuild.is_valid(i, at);
            if !is_valid {
                nulls = nulls.saturating_add(1);
            } else if let Some(byte) = bytes.get_mut(at >> 3) {
                *byte |= 1 << (at & 7);
            }
        }
        Ok(())
    })?;
    rebuild.put(i, 0, merged.into_owned());
    if nulls > 0 {
        rebuild.set_nullable(i);
    }
    let facts = rebuild.facts(i);
    rebuild.set_facts(i, Facts { null_count: nulls, ..facts });
    Ok(())
}

/// Copies the buffers of node `i` that the consumer does not read well where they are.
pub(super) fn align(
    rebuild: &mut Rebuild<'_>,
    i: usize,
    wanted: &Wanted,
    report: &mut Report<'_>,
) -> Result<()> {
    let Some(node) = rebuild.ty().node(i) else { return Ok(()) };
    let count = rebuild.old_count(i);
    // What a conversion made lies well; only the bitmap is still what it was.
    let looked_at = if rebuild.is_converted(i) { count.min(1) } else { count };
    for k in 0..looked_at {
        let Some(slot) = node.layout.slot_of(k, count) else { continue };
        let Some(buffer) = rebuild.buffer(i, k) else { continue };
        let placed = Placed { address: buffer.data().addr(), stated: buffer.size_bytes() };
        let Facts { offset, length, .. } = rebuild.facts(i);
        let size = match need(&slot, offset, length, count.saturating_sub(3)) {
            Need::Bytes(bytes) => Some(bytes),
            Need::ByOffsets => rebuild.last_offset(i),
            Need::BySizes => variadic(rebuild, i, k, count),
            Need::Overflow => None,
        };
        let Some(needed) = size else { continue };
        if wanted.is_placed(slot.role, node.format.alignment(&slot), placed, needed) {
            continue;
        }
        let size = usize::try_from(needed).unwrap_or(0);
        let copy = Buffer::filled(size, report, |bytes, report| {
            let from = rebuild.current(i, k, size);
            if from.len() != bytes.len() {
                return Err(super::rebuild::unreadable(report));
            }
            bytes.copy_from_slice(from);
            Ok(())
        })?;
        rebuild.put(i, k, copy.into_owned());
        if slot.role == Role::Validity {
            recount(rebuild, i, size);
        }
    }
    Ok(())
}

fn recount(rebuild: &mut Rebuild<'_>, i: usize, size: usize) {
    let (first, n) = rebuild.rows(i);
    let counted = count_zeroes(rebuild.current(i, 0, size), first, n).and_then(|n| i64::try_from(n).ok());
    let facts = rebuild.facts(i);
    rebuild.set_facts(i, Facts { null_count: counted.unwrap_or(facts.null_count), ..facts });
}

fn variadic(rebuild: &Rebuild<'_>, i: usize, k: usize, count: usize) -> Option<i64> {
    let stated = rebuild.stated_size(i, k);
    if stated >= 0 {
        return Some(stated);
    }
    let at = k.checked_sub(2)?.checked_mul(8)?;
    read_i64(rebuild.bytes(i, count.checked_sub(1)?, at, 8), 0)
}
