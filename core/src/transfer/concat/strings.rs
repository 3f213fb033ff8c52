//! Text and bytes behind offsets.

use super::{Joined, Out, Piece, all_rows, int, largest, row_of};
use crate::error::{Report, Result, Rule};
use crate::types::Type;

/// The width of a node's offsets in bytes.
pub(super) fn width_of(ty: &Type, i: usize) -> usize {
    let slot = ty.node(i).and_then(|node| node.layout.slots().get(1));
    slot.and_then(|slot| usize::try_from(slot.bits >> 3).ok()).unwrap_or(4)
}

/// Where a piece's values start and end among those that its offsets point into.
pub(super) fn range(
    ty: &Type,
    piece: &Piece<'_>,
    width: usize,
    report: &mut Report<'_>,
) -> Result<(usize, usize)> {
    if piece.rows == 0 {
        return Ok((0, 0));
    }
    let offsets = piece.values(ty, 1, width, 1, report)?;
    let ends = (int(offsets, 0, width, true), int(offsets, piece.rows, width, true));
    match ends {
        (Some(start), Some(end)) if 0 <= start && start <= end => {
            Ok((usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0)))
        }
        _ => {
            let (start, end) = (ends.0.unwrap_or(-1), ends.1.unwrap_or(-1));
            let message = format_args!("expected offsets that ascend from 0 on, found {start} to {end}");
            Err(piece.broken(ty, Rule::B1, -1, report, message))
        }
    }
}

impl Joined<'_> {
    /// Adds the offsets of node `i`, moved to where each piece's values will be.
    pub(super) fn offsets(&mut self, i: usize, pieces: &[Piece<'_>], report: &mut Report<'_>) -> Result<()> {
        let (ty, rows, width) = (self.ty, all_rows(pieces), width_of(self.ty, i));
        let mut values = 0i64;
        for piece in pieces {
            let (start, end) = range(ty, piece, width, report)?;
            values = values.saturating_add(row_of(end.saturating_sub(start)));
        }
        if values > largest(width, true) {
            return Err(self.too_many(i, report, "values"));
        }
        let n = rows.saturating_add(1).saturating_mul(width);
        self.push_filled(n, report, |to, report| {
            let mut out = Out(to);
            out.put_int(0, width);
            let mut base = 0i64;
            for piece in pieces.iter().filter(|piece| piece.rows > 0) {
                let offsets = piece.values(ty, 1, width, 1, report)?;
                let start = int(offsets, 0, width, true).unwrap_or(0);
                let mut last = start;
                for row in 0..piece.rows {
                    let end = int(offsets, row.saturating_add(1), width, true).unwrap_or(-1);
                    if end < last {
                        let message = format_args!("expected an offset of at least {last}, found {end}");
                        return Err(piece.broken(ty, Rule::B1, row_of(row), report, message));
                    }
                    last = end;
                    out.put_int(base.saturating_add(end.saturating_sub(start)), width);
                }
                base = base.saturating_add(last.saturating_sub(start));
            }
            Ok(())
        })
    }

    pub(super) fn strings(&mut self, i: usize, pieces: &[Piece<'_>], report: &mut Report<'_>) -> Result<()> {
        self.offsets(i, pieces, report)?;
        let (ty, width) = (self.ty, width_of(self.ty, i));
        let mut n = 0usize;
        for piece in pieces {
            let (start, end) = range(ty, piece, width, report)?;
            n = n.saturating_add(end.saturating_sub(start));
        }
        self.push_filled(n, report, |to, report| {
            let mut out = Out(to);
            for piece in pieces {
                let (start, end) = range(ty, piece, width, report)?;
                out.put(piece.bytes(ty, 2, start, end.saturating_sub(start), report)?);
            }
            Ok(())
        })
    }
}
