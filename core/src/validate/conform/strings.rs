//! Strings in another layout: views, or offsets.

use super::rebuild::{Rebuild, integers, unreadable};
use crate::error::{Report, Result, Rule, Status};
use crate::kernels::{read_i32, read_i64};
use crate::memory::{Buffer, OwnedBuffer};
use crate::types::Format;

const VIEW: usize = 16;
/// The longest value that lies in its view.
const INLINE: usize = 12;

/// The bytes of a view's value; none where the row is null.
fn value<'a>(rebuild: &Rebuild<'a>, i: usize, row: usize) -> Option<&'a [u8]> {
    if !rebuild.is_valid(i, row) {
        return Some(&[]);
    }
    let view = rebuild.bytes(i, 1, row.checked_mul(VIEW)?, VIEW);
    let length = usize::try_from(read_i32(view, 0)?).ok()?;
    if length <= INLINE {
        return view.get(4..)?.get(..length);
    }
    let which = usize::try_from(read_i32(view, 8)?).ok()?;
    let offset = usize::try_from(read_i32(view, 12)?).ok()?;
    let k = which.checked_add(2)?;
    let count = rebuild.old_count(i);
    let stated = rebuild.stated_size(i, k);
    let size = if stated >= 0 {
        stated
    } else {
        read_i64(rebuild.bytes(i, count.checked_sub(1)?, which.checked_mul(8)?, 8), 0)?
    };
    let end = offset.checked_add(length)?;
    if k >= count.checked_sub(1)? || i64::try_from(end).ok()? > size {
        return None;
    }
    Some(rebuild.bytes(i, k, offset, length)).filter(|value| value.len() == length)
}

/// Makes strings with offsets of views; with 64-bit offsets where 32 bits are too few.
pub(super) fn from_views(
    rebuild: &mut Rebuild<'_>,
    i: usize,
    from: Format,
    report: &mut Report<'_>,
) -> Result<()> {
    let (first, length) = rebuild.rows(i);
    let mut total = 0usize;
    for row in 0..length {
        let Some(value) = value(rebuild, i, first.saturating_add(row)) else {
            return Err(unreadable(report));
        };
        total = total.saturating_add(value.len());
    }
    let is_large = i32::try_from(total).is_err();
    let (_, _, before) = rebuild.rebase(i);
    let n = before.saturating_add(length).saturating_add(1);
    let mut at = 0usize;
    let mut end = |place: usize| {
        if let Some(row) = place.checked_sub(before.saturating_add(1)) {
            at = at.checked_add(value(rebuild, i, first.saturating_add(row))?.len())?;
        }
        i64::try_from(at).ok()
    };
    let mut offsets = if is_large {
        integers(n, report, |place| end(place).map(i64::to_ne_bytes))
    } else {
        integers(n, report, |place| i32::try_from(end(place)?).ok().map(i32::to_ne_bytes))
    }?;
    let data = Buffer::filled(total, report, |bytes, report| {
        let mut rest = bytes;
        for row in 0..length {
            let value = value(rebuild, i, first.saturating_add(row));
            let Some((place, others)) = value.and_then(|value| rest.split_at_mut_checked(value.len())) else {
                return Err(unreadable(report));
            };
            place.copy_from_slice(value.unwrap_or_default());
            rest = others;
        }
        Ok(())
    });
    let data = match data {
        Ok(data) => data.into_owned(),
        Err(failed) => {
            drop(offsets.take_owner());
            return Err(failed);
        }
    };
    rebuild.replace(i, [offsets, data], report)?;
    let to = match (from, is_large) {
        (Format::Utf8View, false) => Format::Utf8,
        (Format::Utf8View, true) => Format::LargeUtf8,
        (_, false) => Format::Binary,
        (_, true) => Format::LargeBinary,
    };
    rebuild.set_format(i, to);
    Ok(())
}

/// Makes views of strings with offsets; they show the same bytes.
pub(super) fn to_views(
    rebuild: &mut Rebuild<'_>,
    i: usize,
    from: Format,
    to: Format,
    report: &mut Report<'_>,
) -> Result<()> {
    let width = if matches!(from, Format::LargeUtf8 | Format::LargeBinary) { 8 } else { 4 };
    let (_, rows) = rebuild.rows(i);
    let last = if rows == 0 { 0 } else { rebuild.last_offset(i).unwrap_or(0) };
    if i32::try_from(last).is_err() {
        let path = rebuild.ty().path(i);
        let message =
            format_args!("expected at most {} bytes, which views can address, found {last}", i32::MAX);
        return Err(report.fail_at(Status::NotConforming, Rule::None, &path, message));
    }
    let (first, length, before) = rebuild.rebase(i);
    let n = before.saturating_add(length);
    let views = integers(n, report, |place| {
        let Some(row) = place.checked_sub(before) else { return Some([0; VIEW]) };
        let row = first.checked_add(row)?;
        if !rebuild.is_valid(i, row) {
            return Some([0; VIEW]);
        }
        let start = usize::try_from(rebuild.offset_at(i, 1, row, width)?).ok()?;
        let end = usize::try_from(rebuild.offset_at(i, 1, row.checked_add(1)?, width)?).ok()?;
        view(rebuild.bytes(i, 2, start, end.checked_sub(start)?), start)
    })?;
    if last == 0 {
        return finish(rebuild, i, to, [views, OwnedBuffer::absent()], report);
    }
    let data = rebuild.take(i, 2);
    let data = if data.size_bytes() < 0 { data.known(last) } else { data };
    finish(rebuild, i, to, [views, data, OwnedBuffer::absent()], report)
}

fn finish<const N: usize>(
    rebuild: &mut Rebuild<'_>,
    i: usize,
    to: Format,
    others: [OwnedBuffer; N],
    report: &mut Report<'_>,
) -> Result<()> {
    rebuild.replace(i, others, report)?;
    rebuild.set_format(i, to);
    Ok(())
}

/// The view of a value that starts at byte `start` of the only variadic buffer.
fn view(value: &[u8], start: usize) -> Option<[u8; VIEW]> {
    let mut view = [0; VIEW];
    let (length, rest) = view.split_at_mut_checked(4)?;
    length.copy_from_slice(&i32::try_from(value.len()).ok()?.to_ne_bytes());
    if value.len() <= INLINE {
        rest.get_mut(..value.len())?.copy_from_slice(value);
        return Some(view);
    }
    let (prefix, rest) = rest.split_at_mut_checked(4)?;
    prefix.copy_from_slice(value.get(..4)?);
    rest.get_mut(4..)?.copy_from_slice(&i32::try_from(start).ok()?.to_ne_bytes());
    Some(view)
}
