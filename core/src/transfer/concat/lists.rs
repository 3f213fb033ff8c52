//! Lists behind offsets, and list views.

use super::strings::{range, width_of};
use super::{Joined, Out, Piece, all_rows, int, largest, row_of};
use crate::error::{Report, Result, Rule, Status};
use crate::memory::reserve;
use crate::types::Type;

impl Joined<'_> {
    pub(super) fn lists(&mut self, i: usize, pieces: &[Piece<'_>], report: &mut Report<'_>) -> Result<()> {
        self.offsets(i, pieces, report)?;
        let (ty, width) = (self.ty, width_of(self.ty, i));
        let child = only_child(ty, i, report)?;
        let mut below = reserve(pieces.len(), report)?;
        for piece in pieces {
            let (start, end) = range(ty, piece, width, report)?;
            let values = piece.length_of(child);
            if end > values {
                let message = format_args!("expected offsets up to the values' {values}, found {end}");
                return Err(piece.broken(ty, Rule::B1, -1, report, message));
            }
            below.push(piece.of(child, start, end.saturating_sub(start)));
        }
        self.node(child, &below, report)
    }

    /// The rows of list views may lie anywhere, so that each piece brings all values between the first and the last one.
    pub(super) fn list_views(
        &mut self,
        i: usize,
        pieces: &[Piece<'_>],
        report: &mut Report<'_>,
    ) -> Result<()> {
        let (ty, width, rows) = (self.ty, width_of(self.ty, i), all_rows(pieces));
        let child = only_child(ty, i, report)?;
        let mut below = reserve(pieces.len(), report)?;
        let mut starts = reserve(pieces.len(), report)?;
        let mut values = 0i64;
        for piece in pieces {
            let (start, end) = span(ty, piece, child, width, report)?;
            starts.push((start, values));
            values = values.saturating_add(row_of(end.saturating_sub(start)));
            below.push(piece.of(child, start, end.saturating_sub(start)));
        }
        if values > largest(width, true) {
            return Err(self.too_many(i, report, "values"));
        }
        let n = rows.saturating_mul(width);
        self.push_filled(n, report, |to, report| {
            let mut out = Out(to);
            for (piece, (start, base)) in pieces.iter().zip(&starts) {
                for (offset, size) in slots(ty, piece, width, report)? {
                    // A row without values may say any place.
                    let moved = if size == 0 { 0 } else { offset.saturating_sub(row_of(*start)) };
                    out.put_int(base.saturating_add(moved), width);
                }
            }
            Ok(())
        })?;
        self.rows(i, 2, width.saturating_mul(8), pieces, report)?;
        self.node(child, &below, report)
    }
}

/// The node of a list's values.
fn only_child(ty: &Type, i: usize, report: &mut Report<'_>) -> Result<usize> {
    match ty.child_index(i, 0) {
        Some(child) => Ok(child),
        None => Err(report.fail(Status::Internal, format_args!("expected a list's child, found none"))),
    }
}

/// The offset and size of each row of a piece.
fn slots<'a>(
    ty: &Type,
    piece: &Piece<'a>,
    width: usize,
    report: &mut Report<'_>,
) -> Result<impl Iterator<Item = (i64, i64)> + use<'a>> {
    let offsets = piece.values(ty, 1, width, 0, report)?;
    let sizes = piece.values(ty, 2, width, 0, report)?;
    let at = move |bytes, row| int(bytes, row, width, true).unwrap_or(-1);
    Ok((0..piece.rows).map(move |row| (at(offsets, row), at(sizes, row))))
}

/// The first value that any row of the piece has, and the end of the last one.
fn span(
    ty: &Type,
    piece: &Piece<'_>,
    child: usize,
    width: usize,
    report: &mut Report<'_>,
) -> Result<(usize, usize)> {
    let values = row_of(piece.length_of(child));
    let (mut start, mut end) = (i64::MAX, 0i64);
    for (row, (offset, size)) in slots(ty, piece, width, report)?.enumerate() {
        let last = offset.saturating_add(size);
        if offset < 0 || size < 0 || last > values {
            let message =
                format_args!("expected a list within {values} values, found offset {offset}, size {size}");
            return Err(piece.broken(ty, Rule::B3, row_of(row), report, message));
        }
        if size > 0 {
            (start, end) = (start.min(offset), end.max(last));
        }
    }
    if end == 0 {
        return Ok((0, 0));
    }
    Ok((usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0)))
}
