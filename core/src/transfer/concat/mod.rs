//! Arrays of one type, one behind the other as one array: a copy in CPU memory.
//!
//! Every node of the type has as many pieces as there are arrays: rows of that node. A node's pieces give its buffers, and
//! what they point into gives the pieces of its children. What an array's buffers say is looked at before it is followed.

mod dictionaries;
mod lists;
mod runs;
mod strings;
mod views;

use core::fmt::Arguments;

use crate::array::{Array, from_buffers};
use crate::device::{Sync, device_name, is_cpu_readable, require_readable};
use crate::error::{Failed, Report, Result, Rule, Status};
use crate::kernels::{Bitmap, copy_bits, count_zeroes, set_bits};
use crate::memory::{Buffer, Event, OwnedBuffer, reserve};
use crate::tree::{Facts, Placement, Tree};
use crate::types::{Format, Type};

/// The values of all arrays, in their order, as one array of type `ty`, which all of them have.
///
/// Dictionaries that say the same are kept, others are appended to each other. Bytes that views point into are shared.
pub fn concat(ty: &Type, arrays: &[Array], sync: &Sync, report: &mut Report<'_>) -> Result<Array> {
    sync.mode(report)?;
    let mut pieces = reserve(arrays.len(), report)?;
    for (which, array) in arrays.iter().enumerate() {
        let place = array.tree().place();
        require_readable(place, sync, report)?;
        if !is_cpu_readable(place.device) || place.event != Event::NONE {
            let device = device_name(place.device.r#type);
            let message =
                format_args!("expected arrays in CPU memory to put together, found one on {device}");
            return Err(report.fail(Status::Unsupported, message));
        }
        let (first, rows) = (size(array.offset()), size(array.length()));
        pieces.push(Piece { tree: array.tree(), base: array.node(), node: 0, first, rows, which });
    }
    let mut joined = Joined { ty, facts: reserve(ty.n_nodes(), report)?, buffers: Vec::new() };
    joined.facts.resize(ty.n_nodes(), Facts::EMPTY);
    joined.node(0, &pieces, report)?;
    let mut placement = Placement::default();
    from_buffers(ty, &joined.facts, &mut joined.buffers, Some(&mut placement), report)?.into_array(ty, report)
}

/// Rows of one node of one of the arrays.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    tree: &'a Tree,
    /// The array's own node in the tree.
    base: usize,
    /// The node, counted from there as in the type.
    node: usize,
    /// Physical index of the first row in the node's own buffers.
    first: usize,
    rows: usize,
    /// The number of the array.
    which: usize,
}

/// A number that was checked not to be negative.
fn size(n: i64) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// The rows of all pieces, which fit in 63 bits.
fn all_rows(pieces: &[Piece<'_>]) -> usize {
    pieces.iter().fold(0, |sum: usize, piece| sum.saturating_add(piece.rows))
}

impl<'a> Piece<'a> {
    /// The node in the tree.
    fn at(&self) -> usize {
        self.base.saturating_add(self.node)
    }

    /// Number of buffers.
    fn n_buffers(&self) -> usize {
        self.tree.nodes().get(self.at()).map_or(0, |node| node.n_buffers)
    }

    /// The `n` bytes from `at` on of buffer `k`.
    fn bytes(&self, ty: &Type, k: usize, at: usize, n: usize, report: &mut Report<'_>) -> Result<&'a [u8]> {
        if n == 0 {
            return Ok(&[]);
        }
        match self.tree.host_bytes(self.at(), k, at, n) {
            Some(bytes) => Ok(bytes),
            None => Err(self.broken(
                ty,
                Rule::A4,
                -1,
                report,
                format_args!("expected {n} bytes from byte {at} on in buffer {k}, found fewer or none"),
            )),
        }
    }

    /// The values of the piece's rows in buffer `k`, each `width` bytes wide, and `more` behind them.
    fn values(
        &self,
        ty: &Type,
        k: usize,
        width: usize,
        more: usize,
        report: &mut Report<'_>,
    ) -> Result<&'a [u8]> {
        if self.rows == 0 {
            return Ok(&[]);
        }
        let n = self.rows.saturating_add(more).saturating_mul(width);
        self.bytes(ty, k, self.first.saturating_mul(width), n, report)
    }

    /// The piece's validity bitmap, from its first row on; `None` when all rows are valid.
    fn validity(&self, ty: &Type, report: &mut Report<'_>) -> Result<Option<Bitmap<'a>>> {
        let has_bitmap = ty.node(self.node).is_some_and(|node| node.layout.has_validity());
        if !has_bitmap || self.rows == 0 || self.tree.buffer(self.at(), 0).is_null() {
            return Ok(None);
        }
        let (bytes, first) = self.bits(ty, 0, report)?;
        Ok(Bitmap::new(bytes, first, self.rows))
    }

    /// The bytes of a buffer of bits that have the piece's rows, and the bit of the first one.
    fn bits(&self, ty: &Type, k: usize, report: &mut Report<'_>) -> Result<(&'a [u8], usize)> {
        let (start, end) = (self.first >> 3, self.first.saturating_add(self.rows).div_ceil(8));
        Ok((self.bytes(ty, k, start, end.saturating_sub(start), report)?, self.first & 7))
    }

    /// Rows of another node, from row `first` of its own values on.
    fn of(&self, node: usize, first: usize, rows: usize) -> Self {
        let own = self.tree.nodes().get(self.base.saturating_add(node)).map_or(0, |node| size(node.offset));
        Self { node, first: own.saturating_add(first), rows, ..*self }
    }

    /// How many values another node of the array has.
    fn length_of(&self, node: usize) -> usize {
        self.tree.nodes().get(self.base.saturating_add(node)).map_or(0, |node| size(node.length))
    }

    /// A rule that the array breaks at this node; `row` is counted in the piece, -1 when it is not about one.
    #[cold]
    fn broken(
        &self,
        ty: &Type,
        rule: Rule,
        row: i64,
        report: &mut Report<'_>,
        message: Arguments<'_>,
    ) -> Failed {
        let which = self.which;
        let message = format_args!("{message} in array {which}");
        report.fail_at_row(Status::InvalidData, rule, &ty.path(self.node), row, message)
    }
}

/// The array that is being put together. What is in it is let go when it is dropped.
struct Joined<'t> {
    ty: &'t Type,
    /// The numbers of each node.
    facts: Vec<Facts>,
    /// The buffers of each node so far, depth first.
    buffers: Vec<OwnedBuffer>,
}

impl Joined<'_> {
    /// Joins the pieces of node `i` and of all nodes below. A type's depth limits the recursion.
    fn node(&mut self, i: usize, pieces: &[Piece<'_>], report: &mut Report<'_>) -> Result<()> {
        let Some(node) = self.ty.node(i) else {
            return Err(
                report.fail(Status::Internal, format_args!("expected a node of the type, found none"))
            );
        };
        let rows = all_rows(pieces);
        let length = i64::try_from(rows).unwrap_or(i64::MAX);
        let null_count = if node.format == Format::Null { length } else { 0 };
        let n_buffers = i64::try_from(node.layout.min_buffers()).unwrap_or(0);
        self.set(i, Facts { length, null_count, offset: 0, n_buffers });
        if node.layout.has_validity() {
            self.validity(i, pieces, rows, report)?;
        }
        match node.format {
            _ if node.has_dictionary() => self.dictionary(i, pieces, report),
            Format::Null => Ok(()),
            Format::Struct => self.side_by_side(i, pieces, 1, report),
            Format::FixedSizeList(n) => self.side_by_side(i, pieces, usize::try_from(n).unwrap_or(0), report),
            Format::SparseUnion => {
                self.rows(i, 0, 8, pieces, report)?;
                self.side_by_side(i, pieces, 1, report)
            }
            Format::DenseUnion => self.dense(i, pieces, report),
            Format::RunEndEncoded => self.runs(i, pieces, report),
            Format::List | Format::LargeList | Format::Map => self.lists(i, pieces, report),
            Format::ListView | Format::LargeListView => self.list_views(i, pieces, report),
            Format::Utf8 | Format::LargeUtf8 | Format::Binary | Format::LargeBinary => {
                self.strings(i, pieces, report)
            }
            Format::Utf8View | Format::BinaryView => self.views(i, pieces, report),
            _ => {
                let bits = node.layout.slot_of(1, 2).map_or(0, |slot| slot.bits);
                self.rows(i, 1, usize::try_from(bits).unwrap_or(0), pieces, report)
            }
        }
    }

    fn set(&mut self, i: usize, facts: Facts) {
        if let Some(place) = self.facts.get_mut(i) {
            *place = facts;
        }
    }

    /// Adds the next buffer.
    fn push(&mut self, mut buffer: OwnedBuffer, report: &mut Report<'_>) -> Result<()> {
        if self.buffers.try_reserve(1).is_err() {
            drop(buffer.take_owner());
            return Err(report.out_of_memory(size_of::<OwnedBuffer>()));
        }
        self.buffers.push(buffer);
        Ok(())
    }

    /// Adds a new buffer of `n` bytes, which `fill` writes.
    fn push_filled(
        &mut self,
        n: usize,
        report: &mut Report<'_>,
        fill: impl FnOnce(&mut [u8], &mut Report<'_>) -> Result<()>,
    ) -> Result<()> {
        let buffer = Buffer::filled(n, report, fill)?;
        self.push(buffer.into_owned(), report)
    }

    /// Adds the validity bitmap of node `i`: none where there are no nulls.
    fn validity(
        &mut self,
        i: usize,
        pieces: &[Piece<'_>],
        rows: usize,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let ty = self.ty;
        let mut nulls = 0usize;
        for piece in pieces {
            if piece.validity(ty, report)?.is_some() {
                let (bytes, first) = piece.bits(ty, 0, report)?;
                nulls = nulls.saturating_add(count_zeroes(bytes, first, piece.rows).unwrap_or(0));
            }
        }
        if nulls == 0 {
            return self.push(OwnedBuffer::absent(), report);
        }
        let facts = self.facts.get(i).copied().unwrap_or(Facts::EMPTY);
        self.set(i, Facts { null_count: i64::try_from(nulls).unwrap_or(-1), ..facts });
        self.push_filled(rows.div_ceil(8), report, |to, report| {
            let mut at = 0usize;
            for piece in pieces {
                if piece.validity(ty, report)?.is_some() {
                    let (bytes, first) = piece.bits(ty, 0, report)?;
                    copy_bits(to, at, bytes, first, piece.rows);
                } else {
                    set_bits(to, at, piece.rows);
                }
                at = at.saturating_add(piece.rows);
            }
            Ok(())
        })
    }

    /// Adds buffer `k` of a node whose values are `bits` wide, one for each row.
    fn rows(
        &mut self,
        i: usize,
        k: usize,
        bits: usize,
        pieces: &[Piece<'_>],
        report: &mut Report<'_>,
    ) -> Result<()> {
        let (ty, rows) = (self.ty, all_rows(pieces));
        if bits & 7 != 0 {
            return self.push_filled(rows.div_ceil(8), report, |to, report| {
                let mut at = 0usize;
                for piece in pieces.iter().filter(|piece| piece.rows > 0) {
                    let (bytes, first) = piece.bits(ty, k, report)?;
                    copy_bits(to, at, bytes, first, piece.rows);
                    at = at.saturating_add(piece.rows);
                }
                Ok(())
            });
        }
        let width = bits >> 3;
        let Some(n) = rows.checked_mul(width) else { return Err(self.too_many(i, report, "bytes")) };
        self.push_filled(n, report, |to, report| {
            let mut out = Out(to);
            for piece in pieces {
                out.put(piece.values(ty, k, width, 0, report)?);
            }
            Ok(())
        })
    }

    /// Joins the children of a node each of whose rows has `each` of theirs.
    fn side_by_side(
        &mut self,
        i: usize,
        pieces: &[Piece<'_>],
        each: usize,
        report: &mut Report<'_>,
    ) -> Result<()> {
        for k in 0..self.ty.node(i).map_or(0, |node| node.n_children) {
            let Some(child) = self.ty.child_index(i, k as usize) else { continue };
            let mut below = reserve(pieces.len(), report)?;
            for piece in pieces {
                let (first, rows) = (piece.first.saturating_mul(each), piece.rows.saturating_mul(each));
                below.push(piece.of(child, first, rows));
            }
            self.node(child, &below, report)?;
        }
        Ok(())
    }

    /// The values of all arrays together are too many for what the type counts them with.
    #[cold]
    fn too_many(&self, i: usize, report: &mut Report<'_>, what: &str) -> Failed {
        let message =
            format_args!("expected {what} of all arrays together that the type can count, found more");
        report.fail_at(Status::Unsupported, Rule::None, &self.ty.path(i), message)
    }
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        for buffer in &mut self.buffers {
            drop(buffer.take_owner());
        }
    }
}

/// Memory that is written from front to back.
struct Out<'a>(&'a mut [u8]);

impl Out<'_> {
    /// Writes the bytes, as far as there is room for them.
    fn put(&mut self, bytes: &[u8]) {
        let room = core::mem::take(&mut self.0);
        let (to, rest) = room.split_at_mut(bytes.len().min(room.len()));
        if let Some(bytes) = bytes.get(..to.len()) {
            to.copy_from_slice(bytes);
        }
        self.0 = rest;
    }

    /// Writes an integer that is `width` bytes wide and was checked to fit.
    fn put_int(&mut self, value: i64, width: usize) {
        let bytes = value.to_le_bytes();
        #[cfg(target_endian = "big")]
        let bytes = {
            let mut bytes = value.to_be_bytes();
            bytes.rotate_left(8usize.saturating_sub(width));
            bytes
        };
        self.put(bytes.get(..width).unwrap_or_default());
    }
}

/// Integer `i` of some that are `width` bytes wide, with a sign or without.
fn int(bytes: &[u8], i: usize, width: usize, is_signed: bool) -> Option<i64> {
    let at = i.checked_mul(width)?;
    let bytes = bytes.get(at..)?;
    Some(match (width, is_signed) {
        (1, true) => i64::from(i8::from_ne_bytes([*bytes.first()?])),
        (1, false) => i64::from(*bytes.first()?),
        (2, true) => i64::from(i16::from_ne_bytes(*bytes.first_chunk()?)),
        (2, false) => i64::from(u16::from_ne_bytes(*bytes.first_chunk()?)),
        (4, true) => i64::from(i32::from_ne_bytes(*bytes.first_chunk()?)),
        (4, false) => i64::from(u32::from_ne_bytes(*bytes.first_chunk()?)),
        // An unsigned number beyond the largest signed one is no index, offset or size of anything.
        (8, true) => i64::from_ne_bytes(*bytes.first_chunk()?),
        (8, false) => i64::try_from(u64::from_ne_bytes(*bytes.first_chunk()?)).unwrap_or(-1),
        _ => return None,
    })
}

/// The largest integer of that width.
fn largest(width: usize, is_signed: bool) -> i64 {
    match (width, is_signed) {
        (1, true) => i8::MAX.into(),
        (1, false) => u8::MAX.into(),
        (2, true) => i16::MAX.into(),
        (2, false) => u16::MAX.into(),
        (4, true) => i32::MAX.into(),
        (4, false) => u32::MAX.into(),
        _ => i64::MAX,
    }
}

/// A row as errors tell it.
fn row_of(row: usize) -> i64 {
    i64::try_from(row).unwrap_or(-1)
}
