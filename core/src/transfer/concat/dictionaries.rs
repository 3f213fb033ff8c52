//! Indices and the dictionaries that they point into.

use super::{Joined, Out, Piece, all_rows, int, largest, row_of, size};
use crate::error::{Report, Result, Rule, Status};
use crate::memory::{OwnedBuffer, Owner, reserve};
use crate::tree::{Need, Node, need};
use crate::types::{Extent, Format, Type};

impl Joined<'_> {
    /// One dictionary for all: the one that all arrays have, or all that are different, one behind the other.
    pub(super) fn dictionary(
        &mut self,
        i: usize,
        pieces: &[Piece<'_>],
        report: &mut Report<'_>,
    ) -> Result<()> {
        let ty = self.ty;
        let Some(values) = ty.dictionary_index(i) else {
            return Err(report.fail(Status::Internal, format_args!("expected a dictionary, found none")));
        };
        let width = ty
            .node(i)
            .and_then(|node| node.layout.slots().get(1))
            .and_then(|slot| usize::try_from(slot.bits >> 3).ok())
            .unwrap_or(4);
        let format = ty.node(i).map_or(Format::Null, |node| node.format);
        let is_signed = matches!(format, Format::Int8 | Format::Int16 | Format::Int32 | Format::Int64);
        let (mut distinct, mut bases) = (reserve(pieces.len(), report)?, reserve(pieces.len(), report)?);
        let mut n_values = 0i64;
        for piece in pieces {
            let own = piece.of(values, 0, piece.length_of(values));
            // An array without rows needs no dictionary, and often has none worth the name.
            let known = distinct.iter().find(|(known, _)| piece.rows == 0 || is_same(ty, known, &own));
            if let Some((_, base)) = known {
                bases.push(*base);
                continue;
            }
            bases.push(n_values);
            if piece.rows > 0 {
                distinct.push((own, n_values));
                n_values = n_values.saturating_add(row_of(own.rows));
            }
        }
        let n = all_rows(pieces).saturating_mul(width);
        self.push_filled(n, report, |to, report| {
            let mut out = Out(to);
            for (piece, base) in pieces.iter().zip(&bases) {
                let bytes = piece.values(ty, 1, width, 0, report)?;
                let validity = piece.validity(ty, report)?;
                let n = row_of(piece.length_of(values));
                for row in 0..piece.rows {
                    if validity.is_some_and(|validity| !validity.get(row)) {
                        out.put_int(0, width);
                        continue;
                    }
                    let index = int(bytes, row, width, is_signed).unwrap_or(-1);
                    if !(0..n).contains(&index) {
                        let message = format_args!("expected an index below {n}, found {index}");
                        return Err(piece.broken(ty, Rule::B6, row_of(row), report, message));
                    }
                    let moved = index.saturating_add(*base);
                    let most = largest(width, is_signed);
                    if moved > most {
                        let message = format_args!(
                            "expected indices up to {most} into the dictionaries of all arrays, found {moved}"
                        );
                        return Err(report.fail_at(Status::Unsupported, Rule::None, &ty.path(i), message));
                    }
                    out.put_int(moved, width);
                }
            }
            Ok(())
        })?;
        match &distinct[..] {
            [(only, _)] => self.kept(only, report),
            _ => {
                let mut all = reserve(distinct.len(), report)?;
                all.extend(distinct.iter().map(|(piece, _)| *piece));
                self.node(values, &all, report)
            }
        }
    }

    /// Adds a dictionary and all below it as it is, with the owners that it has.
    fn kept(&mut self, piece: &Piece<'_>, report: &mut Report<'_>) -> Result<()> {
        let (start, end) = (piece.node, self.ty.node(piece.node).map_or(0, |node| node.subtree_end as usize));
        for i in start..end.saturating_sub(self.ty.base()) {
            let node = piece.base.saturating_add(i);
            let Some(facts) = piece.tree.facts(node) else { continue };
            self.set(i, facts);
            for k in 0..size(facts.n_buffers) {
                let is_built = piece.tree.is_built(node, k);
                let is_null = piece.tree.buffer(node, k).is_null();
                let buffer = if is_built || is_null {
                    OwnedBuffer::absent()
                } else {
                    let owner: Owner = piece.tree.owner_of(node, k).0;
                    piece.tree.describe(node, k, owner)
                };
                self.push(buffer, report)?;
            }
        }
        Ok(())
    }
}

/// Whether two dictionaries of the type say the same: they are the same memory, or each of their buffers has the same bytes.
fn is_same(ty: &Type, a: &Piece<'_>, b: &Piece<'_>) -> bool {
    let end = ty.node(a.node).map_or(0, |node| node.subtree_end as usize).saturating_sub(ty.base());
    (a.node..end).all(|i| {
        let (at_a, at_b) = (a.base.saturating_add(i), b.base.saturating_add(i));
        let (Some(of_a), Some(of_b)) = (a.tree.nodes().get(at_a), b.tree.nodes().get(at_b)) else {
            return false;
        };
        let numbers = |node: &Node| (node.offset, node.length, node.n_buffers);
        numbers(of_a) == numbers(of_b)
            && (0..of_a.n_buffers).all(|k| {
                core::ptr::eq(of_a.address(k), of_b.address(k))
                    || matches!(
                        (content(ty, a, i, k), content(ty, b, i, k)),
                        (Some(one), Some(other)) if one == other
                    )
            })
    })
}

/// The bytes of a buffer that its node's values need, when they can be read.
fn content<'a>(ty: &Type, piece: &Piece<'a>, i: usize, k: usize) -> Option<&'a [u8]> {
    let node = piece.base.saturating_add(i);
    let own = piece.tree.nodes().get(node)?;
    let slot = ty.node(i)?.layout.slot_of(k, own.n_buffers)?;
    let n = match need(&slot, own.offset, own.length, own.n_buffers.saturating_sub(3)) {
        Need::Bytes(bytes) => size(bytes),
        Need::ByOffsets => {
            let width = super::strings::width_of(ty, i);
            let last = size(own.offset.checked_add(own.length)?);
            let bytes = piece.tree.host_bytes(node, 1, last.checked_mul(width)?, width)?;
            usize::try_from(int(bytes, 0, width, true)?).ok()?
        }
        Need::BySizes => {
            let at = k.checked_sub(2)?.checked_mul(8)?;
            let bytes = piece.tree.host_bytes(node, own.n_buffers.checked_sub(1)?, at, 8)?;
            usize::try_from(int(bytes, 0, 8, true)?).ok()?
        }
        Need::Overflow => return None,
    };
    if n == 0 || (own.address(k).is_null() && slot.extent == Extent::Rows) {
        return (n == 0).then_some(&[]);
    }
    piece.tree.host_bytes(node, k, 0, n)
}
