//! Lists in another layout. Their values are not copied.

use super::rebuild::{Rebuild, integers, unreadable};
use crate::error::{Report, Result, Rule, Status};
use crate::types::Format;

/// The bytes of the offsets of a format.
fn width(format: Format) -> usize {
    if matches!(format, Format::LargeList | Format::LargeListView) { 8 } else { 4 }
}

/// How far the values from `start` to `end` have to be moved for 32 bits to reach the last of them; the child is windowed when
/// that is not 0.
fn narrowed(
    rebuild: &mut Rebuild<'_>,
    i: usize,
    (start, end): (i64, i64),
    report: &mut Report<'_>,
) -> Result<i64> {
    let used = end.saturating_sub(start);
    if i32::try_from(used).is_err() {
        let path = rebuild.ty().path(i);
        let message = format_args!("expected lists of at most {} values in all, found {used}", i32::MAX);
        return Err(report.fail_at(Status::NotConforming, Rule::None, &path, message));
    }
    let Some(child) = rebuild.ty().child_index(i, 0) else { return Err(unreadable(report)) };
    let shift = if i32::try_from(end).is_err() { start } else { 0 };
    if shift > 0 {
        rebuild.window(child, shift, used);
    }
    Ok(shift)
}

/// Makes a list with 32-bit offsets of a large list or a fixed-size list. Its values start with the first that it uses
/// when they would be too many otherwise.
pub(super) fn to_small(
    rebuild: &mut Rebuild<'_>,
    i: usize,
    from: Format,
    report: &mut Report<'_>,
) -> Result<()> {
    let (first, length) = rebuild.rows(i);
    let end_of = |rebuild: &Rebuild<'_>, row: usize| match from {
        Format::FixedSizeList(size) => i64::try_from(row).ok()?.checked_mul(i64::from(size)),
        _ if length == 0 => Some(0),
        _ => rebuild.offset_at(i, 1, row, 8),
    };
    let ends = (end_of(rebuild, first), end_of(rebuild, first.saturating_add(length)));
    let (Some(start), Some(end)) = ends else { return Err(unreadable(report)) };
    let shift = narrowed(rebuild, i, (start, end), report)?;
    let (_, _, before) = rebuild.rebase(i);
    let n = before.saturating_add(length).saturating_add(1);
    let offsets = integers(n, report, |place| {
        let row = place.checked_sub(before).map(|row| first.saturating_add(row));
        let end = row.map_or(Some(shift), |row| end_of(rebuild, row))?;
        i32::try_from(end.checked_sub(shift)?).ok().map(i32::to_ne_bytes)
    })?;
    rebuild.replace(i, [offsets], report)?;
    rebuild.set_format(i, Format::List);
    Ok(())
}

/// Makes a list of a list view whose rows lie one behind the other.
pub(super) fn from_views(
    rebuild: &mut Rebuild<'_>,
    i: usize,
    from: Format,
    report: &mut Report<'_>,
) -> Result<()> {
    let (first, length) = rebuild.rows(i);
    let width = width(from);
    let part = |rebuild: &Rebuild<'_>, k: usize, row: usize| rebuild.offset_at(i, k, row, width);
    // Where the next row has to start; known as soon as a row has values.
    let (mut start, mut end) = (None, None);
    for row in 0..length {
        let at = first.saturating_add(row);
        let (Some(offset), Some(size)) = (part(rebuild, 1, at), part(rebuild, 2, at)) else {
            return Err(unreadable(report));
        };
        if size == 0 || !rebuild.is_valid(i, at) {
            continue;
        }
        if end.is_some_and(|end| end != offset) {
            let found = end.unwrap_or(0);
            let path = rebuild.ty().path(i);
            let message = format_args!(
                "expected list views one behind the other, which need no copy of their values, found one at {offset} after an end at {found}"
            );
            let row = i64::try_from(row).unwrap_or(-1);
            return Err(report.fail_at_row(Status::NotConforming, Rule::None, &path, row, message));
        }
        start = start.or(Some(offset));
        end = offset.checked_add(size);
    }
    let (start, end) = (start.unwrap_or(0), end.unwrap_or(0));
    let shift = narrowed(rebuild, i, (start, end), report)?;
    let (_, _, before) = rebuild.rebase(i);
    let n = before.saturating_add(length).saturating_add(1);
    let mut at = start;
    let offsets = integers(n, report, |place| {
        // The row that ends here.
        if let Some(row) = place.checked_sub(before.saturating_add(1)) {
            let row = first.saturating_add(row);
            if rebuild.is_valid(i, row) {
                at = at.checked_add(part(rebuild, 2, row)?)?;
            }
        }
        i32::try_from(at.checked_sub(shift)?).ok().map(i32::to_ne_bytes)
    })?;
    rebuild.replace(i, [offsets], report)?;
    rebuild.set_format(i, Format::List);
    Ok(())
}

/// Makes list views of a list: the same offsets, and sizes from one to the next.
pub(super) fn to_views(
    rebuild: &mut Rebuild<'_>,
    i: usize,
    from: Format,
    to: Format,
    report: &mut Report<'_>,
) -> Result<()> {
    let (first, length, before) = rebuild.rebase(i);
    let width = width(from);
    let n = before.saturating_add(length);
    let ends = |rebuild: &Rebuild<'_>, place: usize| {
        let Some(row) = place.checked_sub(before) else { return Some((0, 0)) };
        let row = first.checked_add(row)?;
        let next = row.checked_add(1)?;
        Some((rebuild.offset_at(i, 1, row, width)?, rebuild.offset_at(i, 1, next, width)?))
    };
    let build = |rebuild: &Rebuild<'_>, sizes: bool, report: &mut Report<'_>| {
        let value = |place: usize| {
            let (from, to) = ends(rebuild, place)?;
            if sizes { to.checked_sub(from) } else { Some(from) }
        };
        if width == 4 {
            integers(n, report, |place| i32::try_from(value(place)?).ok().map(i32::to_ne_bytes))
        } else {
            integers(n, report, |place| value(place).map(i64::to_ne_bytes))
        }
    };
    let mut offsets = build(rebuild, false, report)?;
    let sizes = match build(rebuild, true, report) {
        Ok(sizes) => sizes,
        Err(failed) => {
            drop(offsets.take_owner());
            return Err(failed);
        }
    };
    rebuild.replace(i, [offsets, sizes], report)?;
    rebuild.set_format(i, to);
    Ok(())
}
