//! Dense unions, and run-end encoded arrays.

use super::{Joined, Out, Piece, all_rows, int, largest, row_of};
use crate::error::{Report, Result, Rule};
use crate::memory::{OwnedBuffer, reserve};
use crate::tree::Facts;
use crate::types::{Type, union_ids};

/// Where the values of one child of a union start in each piece, and how many there are before.
struct Used {
    id: i64,
    start: i64,
    end: i64,
    base: i64,
}

impl Joined<'_> {
    /// Each child of a dense union brings the values between the first and the last one that a row has.
    pub(super) fn dense(&mut self, i: usize, pieces: &[Piece<'_>], report: &mut Report<'_>) -> Result<()> {
        let ty = self.ty;
        let n_children = ty.node(i).map_or(0, |node| node.n_children) as usize;
        self.rows(i, 0, 8, pieces, report)?;
        // One entry for each piece and child.
        let mut used: Vec<Used> = reserve(pieces.len().saturating_mul(n_children), report)?;
        for piece in pieces {
            let first = used.len();
            for id in union_ids(ty.format_text(i)).take(n_children) {
                used.push(Used { id: i64::from(id), start: i64::MAX, end: 0, base: 0 });
            }
            let Some(own) = used.get_mut(first..) else { continue };
            look(ty, piece, own, report)?;
        }
        // Where each child's values of a piece come to lie.
        for k in 0..n_children {
            let mut base = 0i64;
            for one in used.iter_mut().skip(k).step_by(n_children.max(1)) {
                one.base = base;
                base = base.saturating_add(one.end.saturating_sub(one.start.min(one.end)));
            }
            if base > largest(4, true) {
                return Err(self.too_many(i, report, "values"));
            }
        }
        let n = all_rows(pieces).saturating_mul(4);
        self.push_filled(n, report, |to, report| {
            let mut out = Out(to);
            for (which, piece) in pieces.iter().enumerate() {
                let (ids, offsets) = (piece.values(ty, 0, 1, 0, report)?, piece.values(ty, 1, 4, 0, report)?);
                let own = used.get(which.saturating_mul(n_children)..).unwrap_or_default();
                for row in 0..piece.rows {
                    let id = int(ids, row, 1, true).unwrap_or(-1);
                    let offset = int(offsets, row, 4, true).unwrap_or(0);
                    let one = own.iter().take(n_children).find(|one| one.id == id);
                    let moved =
                        one.map_or(0, |one| one.base.saturating_add(offset.saturating_sub(one.start)));
                    out.put_int(moved, 4);
                }
            }
            Ok(())
        })?;
        for k in 0..n_children {
            let Some(child) = ty.child_index(i, k) else { continue };
            let mut below = reserve(pieces.len(), report)?;
            for (piece, one) in pieces.iter().zip(used.iter().skip(k).step_by(n_children.max(1))) {
                let start = one.start.min(one.end);
                let rows = usize::try_from(one.end.saturating_sub(start)).unwrap_or(0);
                below.push(piece.of(child, usize::try_from(start).unwrap_or(0), rows));
            }
            self.node(child, &below, report)?;
        }
        Ok(())
    }

    /// Each piece brings the runs that its rows lie in, the first and the last one cut to them.
    pub(super) fn runs(&mut self, i: usize, pieces: &[Piece<'_>], report: &mut Report<'_>) -> Result<()> {
        let ty = self.ty;
        let (Some(ends), Some(values)) = (ty.child_index(i, 0), ty.child_index(i, 1)) else { return Ok(()) };
        let width = ty
            .node(ends)
            .and_then(|node| node.layout.slots().get(1))
            .and_then(|slot| usize::try_from(slot.bits >> 3).ok())
            .unwrap_or(4);
        if row_of(all_rows(pieces)) > largest(width, true) {
            return Err(self.too_many(i, report, "rows"));
        }
        let (mut of_ends, mut of_values) = (reserve(pieces.len(), report)?, reserve(pieces.len(), report)?);
        for piece in pieces {
            let (start, n) = runs_of(ty, piece, (ends, values), width, report)?;
            of_ends.push(piece.of(ends, start, n));
            of_values.push(piece.of(values, start, n));
        }
        let n_runs = all_rows(&of_ends);
        self.set(ends, Facts { length: row_of(n_runs), null_count: 0, offset: 0, n_buffers: 2 });
        self.push(OwnedBuffer::absent(), report)?;
        self.push_filled(n_runs.saturating_mul(width), report, |to, report| {
            let mut out = Out(to);
            let mut base = 0i64;
            for (piece, runs) in pieces.iter().zip(&of_ends) {
                let (first, rows) = (row_of(piece.first), row_of(piece.rows));
                let bytes = runs.values(ty, 1, width, 0, report)?;
                let mut last = 0i64;
                for run in 0..runs.rows {
                    let end = int(bytes, run, width, true).unwrap_or(-1).saturating_sub(first).min(rows);
                    if end <= last {
                        let message = format_args!("expected a run end above {last}, found {end}");
                        return Err(runs.broken(ty, Rule::B7, row_of(run), report, message));
                    }
                    last = end;
                    out.put_int(base.saturating_add(end), width);
                }
                base = base.saturating_add(rows);
            }
            Ok(())
        })?;
        self.node(values, &of_values, report)
    }
}

/// Finds the first and the last value of each child that the rows of a piece have.
fn look(ty: &Type, piece: &Piece<'_>, used: &mut [Used], report: &mut Report<'_>) -> Result<()> {
    let (ids, offsets) = (piece.values(ty, 0, 1, 0, report)?, piece.values(ty, 1, 4, 0, report)?);
    for row in 0..piece.rows {
        let id = int(ids, row, 1, true).unwrap_or(-1);
        let offset = int(offsets, row, 4, true).unwrap_or(-1);
        let found = used.iter_mut().enumerate().find(|(_, one)| one.id == id);
        let values = found.as_ref().and_then(|(k, _)| ty.child_index(piece.node, *k));
        let values = row_of(values.map_or(0, |child| piece.length_of(child)));
        match found {
            Some((_, one)) if (0..values).contains(&offset) => {
                (one.start, one.end) = (one.start.min(offset), one.end.max(offset.saturating_add(1)));
            }
            Some(_) => {
                let message = format_args!("expected an offset below {values}, found {offset}");
                return Err(piece.broken(ty, Rule::B5, row_of(row), report, message));
            }
            None => {
                let message = format_args!("expected a type id of the union, found {id}");
                return Err(piece.broken(ty, Rule::B5, row_of(row), report, message));
            }
        }
    }
    Ok(())
}

/// The number of the first run that a piece's rows lie in, and how many there are.
fn runs_of(
    ty: &Type,
    piece: &Piece<'_>,
    (ends, values): (usize, usize),
    width: usize,
    report: &mut Report<'_>,
) -> Result<(usize, usize)> {
    if piece.rows == 0 {
        return Ok((0, 0));
    }
    let all = piece.of(ends, 0, piece.length_of(ends));
    let bytes = all.values(ty, 1, width, 0, report)?;
    let (first, last) = (row_of(piece.first), row_of(piece.first.saturating_add(piece.rows)));
    let end_of = |run: usize| int(bytes, run, width, true).unwrap_or(-1);
    let start = partition(all.rows, |run| end_of(run) <= first);
    let end = partition(all.rows, |run| end_of(run) < last).saturating_add(1);
    if end > all.rows || end > piece.length_of(values) {
        let message = format_args!(
            "expected a run and a value for each of {last} rows, found {} runs and {} values",
            all.rows,
            piece.length_of(values)
        );
        return Err(piece.broken(ty, Rule::B7, -1, report, message));
    }
    Ok((start, end.saturating_sub(start)))
}

/// The first of `n` for which it does not hold, where it holds for none after that.
fn partition(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0usize, n);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle.saturating_add(1) } else { high = middle }
    }
    low
}
