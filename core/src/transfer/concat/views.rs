//! Views, whose bytes stay where they are.

use super::{Joined, Out, Piece, all_rows, int, largest, row_of};
use crate::error::{Report, Result, Rule};
use crate::kernels::{read_i32, read_i64};
use crate::memory::OwnedBuffer;
use crate::tree::Facts;
use crate::types::Type;

/// Bytes of a view.
const VIEW: usize = 16;
/// The longest value that lies in its view.
const INLINE: i32 = 12;

impl Joined<'_> {
    pub(super) fn views(&mut self, i: usize, pieces: &[Piece<'_>], report: &mut Report<'_>) -> Result<()> {
        let ty = self.ty;
        let n = all_rows(pieces).saturating_mul(VIEW);
        self.push_filled(n, report, |to, report| {
            let mut out = Out(to);
            for (piece, base) in based(pieces) {
                let views = piece.values(ty, 1, VIEW, 0, report)?;
                let validity = piece.validity(ty, report)?;
                for (row, view) in views.as_chunks::<VIEW>().0.iter().enumerate() {
                    if validity.is_some_and(|validity| !validity.get(row)) {
                        out.put(&[0; VIEW]);
                        continue;
                    }
                    out.put(&moved(*view, (ty, &piece, row), base, report)?);
                }
            }
            Ok(())
        })?;
        let mut n_shared = 0usize;
        let mut last: Option<&Piece<'_>> = None;
        for piece in pieces.iter().filter(|piece| piece.rows > 0) {
            if last.is_some_and(|last| points_into_the_same(last, piece)) {
                continue;
            }
            last = Some(piece);
            for k in 0..n_variadic(piece) {
                let buffer = shared(ty, piece, k, report)?;
                self.push(buffer, report)?;
                n_shared = n_shared.saturating_add(1);
            }
        }
        // The slot of the sizes, which are built.
        self.push(OwnedBuffer::absent(), report)?;
        let facts = self.facts.get(i).copied().unwrap_or(Facts::EMPTY);
        self.set(i, Facts { n_buffers: row_of(n_shared.saturating_add(3)), ..facts });
        Ok(())
    }
}

/// The pieces that have rows, each with the number that its first variadic buffer will have.
fn based<'p, 'a>(pieces: &'p [Piece<'a>]) -> impl Iterator<Item = (Piece<'a>, usize)> + use<'p, 'a> {
    let mut last: Option<&Piece<'_>> = None;
    let (mut base, mut next) = (0usize, 0usize);
    pieces.iter().filter(|piece| piece.rows > 0).map(move |piece| {
        if !last.is_some_and(|last| points_into_the_same(last, piece)) {
            base = next;
            next = next.saturating_add(n_variadic(piece));
        }
        last = Some(piece);
        (*piece, base)
    })
}

fn n_variadic(piece: &Piece<'_>) -> usize {
    piece.n_buffers().saturating_sub(3)
}

/// Whether the views of both pieces point into the same buffers, as those of parts of one array do.
fn points_into_the_same(a: &Piece<'_>, b: &Piece<'_>) -> bool {
    let address = |piece: &Piece<'_>, k: usize| piece.tree.buffer(piece.at(), k.saturating_add(2));
    n_variadic(a) == n_variadic(b) && (0..n_variadic(a)).all(|k| core::ptr::eq(address(a, k), address(b, k)))
}

/// The view with the number of its buffer counted among those of all arrays.
fn moved(
    view: [u8; VIEW],
    (ty, piece, row): (&Type, &Piece<'_>, usize),
    base: usize,
    report: &mut Report<'_>,
) -> Result<[u8; VIEW]> {
    let length = read_i32(&view, 0).unwrap_or(-1);
    if (0..=INLINE).contains(&length) {
        return Ok(view);
    }
    let which = int(&view, 2, 4, true).unwrap_or(-1);
    let count = row_of(n_variadic(piece));
    if length < 0 || !(0..count).contains(&which) {
        let message = format_args!(
            "expected a length of at least 0 and a buffer below {count}, found {length} and {which}"
        );
        return Err(piece.broken(ty, Rule::B2, row_of(row), report, message));
    }
    let which = which.saturating_add(row_of(base));
    if which > largest(4, true) {
        let message = format_args!("expected a number of the buffer that a view can hold, found {which}");
        return Err(piece.broken(ty, Rule::B2, row_of(row), report, message));
    }
    let mut moved = view;
    if let Some(place) = moved.get_mut(8..12) {
        place.copy_from_slice(&i32::try_from(which).unwrap_or(0).to_ne_bytes());
    }
    Ok(moved)
}

/// Variadic buffer `k` of a piece, with the owner that it has there.
fn shared(ty: &Type, piece: &Piece<'_>, k: usize, report: &mut Report<'_>) -> Result<OwnedBuffer> {
    let (node, at) = (piece.at(), k.saturating_add(2));
    let mut n = piece.tree.stated_size(node, at);
    if n < 0 {
        let sizes = piece.n_buffers().saturating_sub(1);
        let bytes = piece.bytes(ty, sizes, k.saturating_mul(8), 8, report)?;
        n = read_i64(bytes, 0).unwrap_or(-1);
    }
    if n < 0 {
        let message = format_args!("expected a size of at least 0 for variadic buffer {k}, found {n}");
        return Err(piece.broken(ty, Rule::B2, -1, report, message));
    }
    let owner = piece.tree.owner_of(node, at).0;
    Ok(piece.tree.describe(node, at, owner).known(n))
}
