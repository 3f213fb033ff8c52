//! An array taken apart, to be put together again with some of its buffers replaced.

use super::wanted::dictionary_length;
use crate::abi::Device;
use crate::array::{Array, from_buffers};
use crate::error::{Report, Result, Status};
use crate::kernels::{read_i32, read_i64};
use crate::memory::{Buffer, OwnedBuffer, reserve};
use crate::tree::{Facts, Placement};
use crate::types::{Change, Format, Type};

/// The parts of the new array; what is not used any more is let go when it is dropped.
pub(super) struct Rebuild<'a> {
    array: &'a Array,
    ty: &'a Type,
    nodes: Vec<Node>,
    buffers: Vec<OwnedBuffer>,
    placement: Placement,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    facts: Facts,
    /// Its buffers, as they are in the list.
    first: usize,
    count: usize,
    change: Change,
}

impl<'a> Rebuild<'a> {
    /// Takes the array's window apart; it stays as it is.
    pub(super) fn of(array: &'a Array, ty: &'a Type, report: &mut Report<'_>) -> Result<Self> {
        let (n_nodes, n_buffers) = (array.n_nodes(), array.n_buffers());
        let mut facts = reserve::<Facts>(n_nodes, report)?;
        facts.resize(n_nodes, Facts::EMPTY);
        let nodes = reserve::<Node>(n_nodes, report)?;
        let buffers = reserve::<OwnedBuffer>(n_buffers, report)?;
        let placement = Placement::on(array.tree().device());
        let mut this = Self { array, ty, nodes, buffers, placement };
        let list = &mut this.buffers;
        let placement = array.to_buffers(&mut facts, |_, buffer| list.push(buffer), n_buffers, report)?;
        this.placement = placement;
        let mut first = 0usize;
        for facts in facts {
            let count = usize::try_from(facts.n_buffers).unwrap_or(0);
            this.nodes.push(Node { facts, first, count, change: Change::NONE });
            first = first.saturating_add(count);
        }
        Ok(this)
    }

    pub(super) fn ty(&self) -> &'a Type {
        self.ty
    }

    /// The numbers that node `i` will have.
    pub(super) fn facts(&self, i: usize) -> Facts {
        self.nodes.get(i).map_or(Facts::EMPTY, |node| node.facts)
    }

    pub(super) fn set_facts(&mut self, i: usize, facts: Facts) {
        if let Some(node) = self.nodes.get_mut(i) {
            node.facts = facts;
        }
    }

    pub(super) fn set_format(&mut self, i: usize, format: Format) {
        if let Some(node) = self.nodes.get_mut(i) {
            node.change.format = Some(format);
        }
    }

    /// Says that node `i` may have nulls, whatever its type said.
    pub(super) fn set_nullable(&mut self, i: usize) {
        if let Some(node) = self.nodes.get_mut(i) {
            node.change.becomes_nullable = true;
        }
    }

    pub(super) fn dictionary_length(&self, i: usize) -> i64 {
        dictionary_length(self.array.tree(), self.ty, self.array.node(), i)
    }

    /// Leaves the first `shift` values of node `i` away, and keeps `length`.
    pub(super) fn window(&mut self, i: usize, shift: i64, length: i64) {
        let facts = self.facts(i);
        let is_whole = shift == 0 && length == facts.length;
        let null_count = if is_whole || facts.null_count == 0 { facts.null_count } else { -1 };
        self.set_facts(i, Facts { offset: facts.offset.saturating_add(shift), length, null_count, ..facts });
    }

    /// Rows of node `i`: physical index of the first, and how many.
    pub(super) fn rows(&self, i: usize) -> (usize, usize) {
        let Facts { offset, length, .. } = self.facts(i);
        (usize::try_from(offset).unwrap_or(0), usize::try_from(length).unwrap_or(0))
    }

    /// The bytes of buffer `k` of node `i` as it was.
    pub(super) fn bytes(&self, i: usize, k: usize, at: usize, n: usize) -> &'a [u8] {
        if n == 0 {
            return &[];
        }
        self.array.tree().host_bytes(self.array.node().saturating_add(i), k, at, n).unwrap_or_default()
    }

    /// Number of buffers that node `i` had.
    pub(super) fn old_count(&self, i: usize) -> usize {
        self.array.tree().nodes().get(self.array.node().saturating_add(i)).map_or(0, |node| node.n_buffers)
    }

    /// Readable bytes of buffer `k` of node `i` as somebody said, -1 when nobody did.
    pub(super) fn stated_size(&self, i: usize, k: usize) -> i64 {
        self.array.tree().stated_size(self.array.node().saturating_add(i), k)
    }

    /// Whether row `row` of the buffers of node `i`, counted from their start, was valid.
    pub(super) fn is_valid(&self, i: usize, row: usize) -> bool {
        let has_bitmap = self.ty.node(i).is_some_and(|node| node.layout.has_validity())
            && !self.array.tree().buffer(self.array.node().saturating_add(i), 0).is_null();
        !has_bitmap || self.bytes(i, 0, row >> 3, 1).first().is_none_or(|byte| byte >> (row & 7) & 1 == 1)
    }

    fn place(&self, i: usize, k: usize) -> Option<usize> {
        self.nodes.get(i).filter(|node| k < node.count).map(|node| node.first.saturating_add(k))
    }

    /// Buffer `k` that node `i` will have.
    pub(super) fn buffer(&self, i: usize, k: usize) -> Option<&OwnedBuffer> {
        self.place(i, k).and_then(|place| self.buffers.get(place))
    }

    /// The first `n` bytes of buffer `k` that node `i` will have.
    pub(super) fn current(&self, i: usize, k: usize, n: usize) -> &[u8] {
        self.buffer(i, k).and_then(|buffer| buffer.host_bytes(Device::CPU, 0, n)).unwrap_or_default()
    }

    /// Whether node `i` gets another format.
    pub(super) fn is_converted(&self, i: usize) -> bool {
        self.nodes.get(i).is_some_and(|node| node.change.format.is_some())
    }

    /// The offset behind the last row of node `i`.
    pub(super) fn last_offset(&self, i: usize) -> Option<i64> {
        let (offset, length) = self.rows(i);
        let width = self.ty.node(i)?.layout.slot_of(1, 2).map_or(4, |slot| slot.bits >> 3);
        self.offset_at(i, 1, offset.saturating_add(length), usize::try_from(width).ok()?)
    }

    /// Integer `at` of buffer `k` of node `i` as it was, 4 or 8 bytes wide.
    pub(super) fn offset_at(&self, i: usize, k: usize, at: usize, width: usize) -> Option<i64> {
        let bytes = self.bytes(i, k, at.checked_mul(width)?, width);
        if width == 4 { read_i32(bytes, 0).map(i64::from) } else { read_i64(bytes, 0) }
    }

    /// Buffer `k` of node `i`, which is absent from then on.
    pub(super) fn take(&mut self, i: usize, k: usize) -> OwnedBuffer {
        let place = self.place(i, k).and_then(|place| self.buffers.get_mut(place));
        place.map_or_else(OwnedBuffer::absent, |place| core::mem::replace(place, OwnedBuffer::absent()))
    }

    /// Puts another buffer in the place of one, which is let go.
    pub(super) fn put(&mut self, i: usize, k: usize, buffer: OwnedBuffer) {
        drop(self.take(i, k).take_owner());
        if let Some(place) = self.place(i, k).and_then(|place| self.buffers.get_mut(place)) {
            *place = buffer;
        }
    }

    pub(super) fn drop_validity(&mut self, i: usize) {
        self.put(i, 0, OwnedBuffer::absent());
    }

    /// Gives node `i` other buffers behind its validity bitmap; the old ones are let go.
    pub(super) fn replace<const N: usize>(
        &mut self,
        i: usize,
        others: [OwnedBuffer; N],
        report: &mut Report<'_>,
    ) -> Result<()> {
        let mut others = others.map(core::mem::ManuallyDrop::new);
        let count = N.saturating_add(1);
        if self.buffers.try_reserve(count).is_err() {
            for other in &mut others {
                drop(other.take_owner());
            }
            return Err(report.out_of_memory(count.saturating_mul(size_of::<OwnedBuffer>())));
        }
        let validity = self.take(i, 0);
        for k in 1..self.nodes.get(i).map_or(0, |node| node.count) {
            self.put(i, k, OwnedBuffer::absent());
        }
        let first = self.buffers.len();
        self.buffers.push(validity);
        self.buffers.extend(others.map(core::mem::ManuallyDrop::into_inner));
        if let Some(node) = self.nodes.get_mut(i) {
            (node.first, node.count) = (first, count);
            node.facts.n_buffers = i64::try_from(count).unwrap_or(i64::MAX);
        }
        Ok(())
    }

    /// Moves the first row of node `i` into the first word of its bitmap, so that new buffers are no longer than they must;
    /// gives the rows as they were and the new first one.
    pub(super) fn rebase(&mut self, i: usize) -> (usize, usize, usize) {
        let (offset, length) = self.rows(i);
        let validity = self.take(i, 0);
        self.put(i, 0, validity.skip((offset >> 6) << 3));
        let facts = self.facts(i);
        self.set_facts(i, Facts { offset: facts.offset & 63, ..facts });
        (offset, length, offset & 63)
    }

    /// The array of the parts.
    pub(super) fn finish(mut self, ty: &Type, report: &mut Report<'_>) -> Result<Array> {
        let ty = ty.changed(|i| self.nodes.get(i).map_or(Change::NONE, |node| node.change), report)?;
        let mut facts = reserve::<Facts>(self.nodes.len(), report)?;
        let count = self.nodes.iter().fold(0usize, |sum, node| sum.saturating_add(node.count));
        let mut rest = Vec::new();
        if rest.try_reserve_exact(count).is_err() {
            return Err(report.out_of_memory(count.saturating_mul(size_of::<OwnedBuffer>())));
        }
        for i in 0..self.nodes.len() {
            facts.push(self.facts(i));
            for k in 0..self.nodes.get(i).map_or(0, |node| node.count) {
                rest.push(self.take(i, k));
            }
        }
        // What was taken is let go with the parts when it is not used.
        self.buffers = rest;
        self.nodes.clear();
        let mut placement =
            core::mem::replace(&mut self.placement, Placement::on(self.array.tree().device()));
        from_buffers(&ty, &facts, &mut self.buffers, Some(&mut placement), report)?.into_array(&ty, report)
    }
}

impl Drop for Rebuild<'_> {
    fn drop(&mut self) {
        for buffer in &mut self.buffers {
            drop(buffer.take_owner());
        }
    }
}

/// A new buffer of `n` integers of `W` bytes each.
pub(super) fn integers<const W: usize>(
    n: usize,
    report: &mut Report<'_>,
    mut value: impl FnMut(usize) -> Option<[u8; W]>,
) -> Result<OwnedBuffer> {
    let Some(size) = n.checked_mul(W) else { return Err(report.out_of_memory(usize::MAX)) };
    let buffer = Buffer::filled(size, report, |bytes, report| {
        for (i, place) in bytes.as_chunks_mut::<W>().0.iter_mut().enumerate() {
            match value(i) {
                Some(value) => *place = value,
                None => return Err(unreadable(report)),
            }
        }
        Ok(())
    })?;
    Ok(buffer.into_owned())
}

/// What was checked before changed in the meantime.
#[cold]
pub(super) fn unreadable(report: &mut Report<'_>) -> crate::error::Failed {
    report.fail(Status::InvalidData, format_args!("expected values as they were when checked, found others"))
}
