//! from_buffers: raw memory and its owners become a device array.

use core::ffi::c_void;

use super::emit::{Emission, Parts};
use super::nulls::{counted_nulls, derived_nulls};
use super::walk::Span;
use crate::abi::Device;
use crate::device::{SharedEvent, is_cpu_readable};
use crate::error::{Failed, Report, Result, Rule, Status};
use crate::kernels::{read_i64, read_offset};
use crate::memory::{Event, OwnedBuffer};
use crate::tree::{
    At, ExportedArray, Facts, LINE, Leaf, Links, Need, Placement, PlacementParts, Shape, Writer, need,
    role_name,
};
use crate::types::{Extent, Format, Role, Slot, Type, TypeNode};

/// Builds a device array of `ty` from one set of numbers a node and one piece of memory a buffer, both depth first.
///
/// Without a placement it is all in CPU memory. On success the owners and the event are taken out of `buffers` and `placement`; on
/// failure nothing was touched.
#[inline]
pub fn from_buffers(
    ty: &Type,
    nodes: &[Facts],
    buffers: &mut [OwnedBuffer],
    placement: Option<&mut Placement>,
    report: &mut Report<'_>,
) -> Result<ExportedArray> {
    let place = placement.as_deref().map_or(Ok(PlacementParts::HOST), |placement| placement.check(report))?;
    let type_nodes = ty.nodes();
    if nodes.len() != type_nodes.len() {
        let message = format_args!("expected {} nodes for the type, found {}", type_nodes.len(), nodes.len());
        return Err(report.fail(Status::InvalidArgument, message));
    }
    let device = if place.has_event { None } else { Some(place.device) };
    let given = Given { nodes, buffers, device };
    let root = nodes.first().copied().unwrap_or(Facts::EMPTY);
    let root = Span { offset: root.offset, length: root.length };
    // Nothing is written to but the block, so that the check can go on while it is filled.
    let mut writer = Writer::allocate(&given.shape(type_nodes), place.device, report)?;
    let mut emission = Emission::new(&given, type_nodes, root, is_cpu_readable(place.device), &mut writer);
    given.emit(ty, type_nodes, &mut emission, report)?;
    let Some(placement) = placement else {
        writer.take_buffers(buffers, Event::NONE);
        return Ok(writer.finish(core::ptr::null_mut(), Links::NONE));
    };
    let recorded = placement.record(report)?;
    let shown = recorded.as_ref().map_or_else(|| placement.event(), SharedEvent::event);
    writer.take_buffers(buffers, shown);
    let (owner, event) = placement.take(recorded);
    Ok(writer.finish(core::ptr::null_mut(), Links { keep: None, owner, event }))
}

/// What was handed over.
struct Given<'a> {
    nodes: &'a [Facts],
    buffers: &'a [OwnedBuffer],
    /// The device, when its memory may be looked at now.
    device: Option<Device>,
}

impl Given<'_> {
    /// What the block has to hold, if nothing is wrong.
    #[inline(always)]
    fn shape(&self, type_nodes: &[TypeNode]) -> Shape {
        let has_entries = self.buffers.iter().any(OwnedBuffer::has_owner);
        // Entries have sizes.
        let has_sizes = !has_entries && self.buffers.iter().any(|buffer| buffer.size_bytes() >= 0);
        let most = self.nodes.iter().fold(0, |most, facts| most | facts.n_buffers);
        // No other node has as many as a view with variadic buffers.
        let n_built = if most > 3 { self.count_built(type_nodes) } else { 0 };
        let (n_nodes, n_pointers) = (self.nodes.len(), self.buffers.len());
        Shape { n_nodes, n_pointers, has_entries, has_sizes, n_built }
    }

    /// How many sizes of variadic buffers have to be built, each node's in whole lines.
    #[cold]
    #[inline(never)]
    fn count_built(&self, type_nodes: &[TypeNode]) -> usize {
        let (mut first, mut n_built) = (0usize, 0usize);
        for (node, facts) in type_nodes.iter().zip(self.nodes) {
            let end = first.saturating_add(usize::try_from(facts.n_buffers).unwrap_or(0));
            if node.layout.is_variadic()
                && let Some([_, _, given @ .., sizes]) = self.buffers.get(first..end)
                && sizes.data().is_null()
            {
                n_built = n_built.saturating_add(given.len().next_multiple_of(LINE));
            }
            first = end;
        }
        n_built
    }

    /// Checks everything, and writes each node into the block as soon as nothing is wrong with it. What was handed over is not
    /// touched.
    #[inline(always)]
    fn emit(
        &self,
        ty: &Type,
        type_nodes: &[TypeNode],
        emission: &mut Emission<'_, Self>,
        report: &mut Report<'_>,
    ) -> Result<()> {
        self.emit_record(type_nodes, emission);
        while let Some(node) = type_nodes.get(emission.i) {
            if node.leaf_bits != 0 && emission.i != 0 {
                let are_leaves = if emission.window.offset == 0 {
                    self.emit_leaves::<false>(type_nodes, emission)
                } else {
                    self.emit_leaves::<true>(type_nodes, emission)
                };
                if are_leaves || self.emit_leaf(node, emission) {
                    continue;
                }
            }
            let rest = self.buffers.get(emission.first..).unwrap_or_default();
            if !self.is_sound_node(type_nodes, node, emission.i, rest) {
                self.check_node(ty, node, emission.i, rest, report)?;
            }
            emission.node(node);
        }
        if emission.first == self.buffers.len() { Ok(()) } else { Err(self.wrong_count(report)) }
    }

    /// Checks and writes the leaves from here on, up to a node that is none or not as simple as most; false when there are none.
    #[inline(never)]
    fn emit_leaves<const MOVES: bool>(
        &self,
        type_nodes: &[TypeNode],
        emission: &mut Emission<'_, Self>,
    ) -> bool {
        let (i, first) = (emission.i, emission.first);
        let (Some(types), Some(numbers), Some(buffers)) =
            (type_nodes.get(i..), self.nodes.get(i..), self.buffers.get(first..))
        else {
            return false;
        };
        let (pairs, _) = buffers.as_chunks::<2>();
        let (windowed, window) = (emission.windowed, emission.window);
        let given = types.iter().zip(numbers).zip(pairs);
        let leaves = given.map(|((node, facts), [validity, data])| {
            let Facts { mut length, mut null_count, mut offset, n_buffers } = *facts;
            let is_leaf = node.leaf_bits != 0 && n_buffers == 2 && !data.data().is_null();
            if !is_leaf || !is_small(length, offset) {
                return None;
            }
            let rows = offset.wrapping_add(length).cast_unsigned();
            let (bitmap, values) = (validity.size_bytes(), data.size_bytes());
            // An unknown size is larger than any here, and no size is less than that.
            if values.cast_unsigned() < rows.wrapping_mul(u64::from(node.leaf_bits)).wrapping_add(7) >> 3 {
                return None;
            }
            if bitmap.wrapping_add(1) | values.wrapping_add(1) < 0 {
                return None;
            }
            if validity.data().is_null() {
                if bitmap > 0 || null_count.wrapping_add(1).cast_unsigned() > 1 {
                    return None;
                }
                null_count = 0;
            } else if bitmap.cast_unsigned() < rows.wrapping_add(7) >> 3
                || null_count.cast_unsigned() > length.cast_unsigned()
            {
                return None;
            }
            // A window that starts at 0 and is as long as the column shows all of it.
            if (MOVES || length != window.length) && node.parent == windowed {
                if null_count > 0 && length != window.length {
                    return None;
                }
                (offset, length) = (offset.wrapping_add(window.offset), window.length);
            }
            if length == 0 {
                // An offset into nothing is legal, and refused by some.
                offset = 0;
            }
            let facts = Facts { length, null_count, offset, n_buffers: 2 };
            Some(Leaf { facts, validity: validity.data(), data: data.data() })
        });
        let n = emission.writer.push_leaves(leaves);
        emission.step(n);
        n > 0
    }

    /// Checks and writes a leaf whose nulls have to be counted, or are not to be told; false when it is anything else.
    #[inline(never)]
    fn emit_leaf(&self, node: &TypeNode, emission: &mut Emission<'_, Self>) -> bool {
        let (Some(facts), Some([validity, data, ..])) =
            (self.nodes.get(emission.i), self.buffers.get(emission.first..))
        else {
            return false;
        };
        let rows = facts.offset.wrapping_add(facts.length).cast_unsigned();
        if !is_sound_leaf(node.leaf_bits, facts, data) || !has_bitmap(validity, rows, facts.null_count) {
            return false;
        }
        let span = emission.shown(node, facts.offset, facts.length);
        let mut null_count = 0;
        if !validity.data().is_null() {
            null_count = derived_nulls(facts.null_count, facts.length, span.length);
            if null_count < 0 {
                null_count = self.count_nulls(emission.i, emission.first, span);
            }
        }
        let offset = if span.length == 0 { 0 } else { span.offset };
        let facts = Facts { length: span.length, null_count, offset, n_buffers: 2 };
        let leaf = Leaf { facts, validity: validity.data(), data: data.data() };
        let n = emission.writer.push_leaves([Some(leaf)].into_iter());
        emission.step(n);
        n > 0
    }

    /// Checks and writes a root that is a struct without nulls and shows all of it; false when it is anything else, or when
    /// something is wrong.
    #[inline(never)]
    fn emit_record(&self, type_nodes: &[TypeNode], emission: &mut Emission<'_, Self>) -> bool {
        let (Some(node), Some(facts), Some(bitmap)) =
            (type_nodes.first(), self.nodes.first(), self.buffers.first())
        else {
            return false;
        };
        if node.format != Format::Struct || facts.n_buffers != 1 || !has_small_numbers(facts) {
            return false;
        }
        let rows = facts.offset.wrapping_add(facts.length);
        if !bitmap.data().is_null() || bitmap.size_bytes() > 0 || facts.null_count > 0 {
            return false;
        }
        self.has_enough(type_nodes, node, 0, rows) && emission.record(type_nodes)
    }

    /// Whether nothing is wrong with a node of a common kind; false also for any other.
    #[inline(never)]
    fn is_sound_node(
        &self,
        type_nodes: &[TypeNode],
        node: &TypeNode,
        i: usize,
        rest: &[OwnedBuffer],
    ) -> bool {
        let Some(facts) = self.nodes.get(i) else { return false };
        let Facts { length, null_count, offset, n_buffers } = *facts;
        let slots = node.layout.slots();
        let Some(own) = rest.get(..slots.len()) else { return false };
        let ([bitmap, slots @ ..], [validity, others @ ..]) = (slots, own) else { return false };
        let is_common = n_buffers == own.len() as i64 && bitmap.role == Role::Validity;
        let rows = offset.wrapping_add(length).cast_unsigned();
        if !is_common || !has_small_numbers(facts) || !has_bitmap(validity, rows, null_count) {
            return false;
        }
        let mut last = 0u64;
        for (slot, buffer) in slots.iter().zip(others) {
            if slot.extent == Extent::RowsPlusOne {
                let Some(end) = self.end_of(node, slot, i, facts, buffer) else { return false };
                last = end;
            }
            let needed = match need(slot, offset, length, 0) {
                Need::Bytes(bytes) => bytes.cast_unsigned(),
                Need::ByOffsets => last,
                Need::BySizes | Need::Overflow => return false,
            };
            let is_fine = if buffer.data().is_null() {
                needed == 0 && buffer.size_bytes() <= 0
            } else {
                holds(buffer, needed)
            };
            if !is_fine {
                return false;
            }
        }
        node.n_children == 0 || self.has_enough(type_nodes, node, i, rows.cast_signed())
    }

    /// What the offsets say at the end of the array, 0 where it cannot be read; nothing where it is wrong.
    #[inline(always)]
    fn end_of(
        &self,
        node: &TypeNode,
        slot: &Slot,
        i: usize,
        facts: &Facts,
        offsets: &OwnedBuffer,
    ) -> Option<u64> {
        let (Some(device), true) = (self.device, facts.length > 0) else { return Some(0) };
        let width = if slot.bits == 32 { 4 } else { 8 };
        let end = usize::try_from(facts.offset.wrapping_add(facts.length)).ok()?;
        let Some(bytes) = offsets.host_bytes(device, end.wrapping_mul(width), width) else { return Some(0) };
        let last = read_offset(bytes, width)?;
        let values = match self.nodes.get(i.wrapping_add(1)) {
            Some(child) if child_has_values(node.format) => child.length,
            _ => i64::MAX,
        };
        if (0..=values).contains(&last) { Some(last.cast_unsigned()) } else { None }
    }

    /// Whether every child has as many values as the node's rows ask for; false also for kinds that are not common.
    #[inline(always)]
    fn has_enough(&self, type_nodes: &[TypeNode], node: &TypeNode, i: usize, rows: i64) -> bool {
        match node.format {
            Format::Struct => {}
            Format::SparseUnion | Format::FixedSizeList(_) | Format::RunEndEncoded => return false,
            _ => return true,
        }
        let first = i.wrapping_add(1);
        let n_children = node.n_children;
        let below = node.subtree_end.wrapping_sub(node.index).wrapping_sub(1);
        if below == n_children {
            // As many nodes below as children: they have nothing below themselves.
            let below = self.nodes.get(first..).unwrap_or_default();
            return below
                .iter()
                .take(n_children as usize)
                .fold(true, |all, child| all & (child.length >= rows));
        }
        let mut child = first;
        for _ in 0..n_children {
            let (Some(facts), Some(of)) = (self.nodes.get(child), type_nodes.get(child)) else {
                return false;
            };
            if facts.length < rows {
                return false;
            }
            child = child.wrapping_add(of.subtree_end.wrapping_sub(of.index) as usize);
        }
        true
    }

    /// Checks one node, whatever it is, whose buffers are the first of `rest`.
    #[cold]
    #[inline(never)]
    fn check_node(
        &self,
        ty: &Type,
        node: &TypeNode,
        i: usize,
        rest: &[OwnedBuffer],
        report: &mut Report<'_>,
    ) -> Result<()> {
        let at = At { ty, node, index: i };
        let Some(facts) = self.nodes.get(i) else { return Err(self.wrong_count(report)) };
        at.check_numbers(facts, report)?;
        at.check_count(facts, report)?;
        let n = usize::try_from(facts.n_buffers).unwrap_or(0);
        let Some(own) = rest.get(..n) else { return Err(self.wrong_count(report)) };
        self.check_buffers(&at, facts, own, report)?;
        if node.n_children > 0 {
            let child = |i: usize| self.nodes.get(i).copied().unwrap_or(Facts::EMPTY);
            at.check_children(facts, child, report)?;
        }
        if node.layout.is_variadic() { self.check_variadic(&at, own, report) } else { Ok(()) }
    }

    /// Checks the addresses and sizes of one node's buffers against what its numbers need.
    fn check_buffers(
        &self,
        at: &At<'_>,
        facts: &Facts,
        own: &[OwnedBuffer],
        report: &mut Report<'_>,
    ) -> Result<()> {
        let slots = at.node.layout.slots();
        let n_variadic = own.len().wrapping_sub(slots.len());
        for (k, slot) in slots.iter().enumerate() {
            // A view's last slot comes after its variadic buffers.
            let is_last = slot.role == Role::VariadicSizes;
            let place = if is_last { own.len().wrapping_sub(1) } else { k };
            let Some(buffer) = own.get(place) else { continue };
            let needed = match at.needed(slot, facts, n_variadic, report)? {
                Some(bytes) => bytes,
                None => self.last_offset(at, facts, own, report)?.unwrap_or(0),
            };
            if slot.extent == Extent::RowsPlusOne && child_has_values(at.node.format) {
                self.last_offset(at, facts, own, report)?;
            }
            if buffer.data().is_null() {
                if buffer.size_bytes() > 0 {
                    return Err(null_with_size(at, slot, place, buffer.size_bytes(), report));
                }
                // The sizes of variadic buffers may be left to the library.
                if !is_last {
                    at.check_missing(slot, place, facts, needed, report)?;
                }
                continue;
            }
            if buffer.size_bytes() < needed && buffer.size_bytes() != -1 {
                return Err(too_small(at, slot, place, needed, buffer.size_bytes(), report));
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong_count(&self, report: &mut Report<'_>) -> Failed {
        let sum = |n: usize, facts: &Facts| n.saturating_add(usize::try_from(facts.n_buffers).unwrap_or(0));
        let (expected, found) = (self.nodes.iter().fold(0, sum), self.buffers.len());
        let message = format_args!("expected {expected} buffers, as the nodes say, found {found}");
        report.fail(Status::InvalidArgument, message)
    }

    /// Checks the variadic buffers' sizes.
    #[cold]
    fn check_variadic(&self, at: &At<'_>, own: &[OwnedBuffer], report: &mut Report<'_>) -> Result<()> {
        let Some((sizes, given)) = own.split_last().and_then(|(sizes, rest)| Some((sizes, rest.get(2..)?)))
        else {
            return Ok(());
        };
        let path = at.ty.path(at.index);
        for (k, buffer) in given.iter().enumerate() {
            let known = buffer.size_bytes();
            if known < -1 || (sizes.data().is_null() && known < 0) {
                return Err(report.fail_at(
                    Status::InvalidArgument,
                    Rule::B2,
                    &path,
                    format_args!(
                        "expected the size of variadic buffer {k} to build the sizes, found {known}"
                    ),
                ));
            }
            let byte = k.saturating_mul(size_of::<i64>());
            let bytes = self.device.and_then(|device| sizes.host_bytes(device, byte, size_of::<i64>()));
            let told = bytes.and_then(|bytes| read_i64(bytes, 0));
            let bytes = told.unwrap_or(0).max(known);
            if buffer.data().is_null() && bytes > 0 {
                let message = format_args!("expected {bytes} bytes of variadic buffer {k}, found NULL");
                return Err(report.broken(Rule::A5, &path, message));
            }
            if let Some(told) = told
                && (told < 0 || (known >= 0 && told > known))
            {
                return Err(report.broken(
                    Rule::B2,
                    &path,
                    format_args!("expected a size up to {known} for variadic buffer {k}, found {told}"),
                ));
            }
        }
        Ok(())
    }

    /// What the offsets say at the end of the array, where they can be read, checked against the child that they point
    /// into.
    fn last_offset(
        &self,
        at: &At<'_>,
        facts: &Facts,
        own: &[OwnedBuffer],
        report: &mut Report<'_>,
    ) -> Result<Option<i64>> {
        let (Some(device), Some(slot), Some(offsets)) =
            (self.device, at.node.layout.slots().get(1), own.get(1))
        else {
            return Ok(None);
        };
        if facts.length == 0 || slot.extent != Extent::RowsPlusOne {
            return Ok(None);
        }
        let width = if slot.bits == 32 { 4 } else { 8 };
        let end = facts.offset.wrapping_add(facts.length);
        let byte = usize::try_from(end).ok().and_then(|end| end.checked_mul(width));
        let bytes = byte.and_then(|byte| offsets.host_bytes(device, byte, width));
        let Some(last) = bytes.and_then(|bytes| read_offset(bytes, width)) else { return Ok(None) };
        let child = self.nodes.get(at.index.wrapping_add(1)).filter(|_| child_has_values(at.node.format));
        let values = child.map_or(i64::MAX, |child| child.length);
        if (0..=values).contains(&last) {
            return Ok(Some(last));
        }
        let (path, row) = (at.ty.path(at.index), facts.length.wrapping_sub(1));
        let message = format_args!("expected a last offset from 0 to the values' {values}, found {last}");
        Err(report.fail_at_row(Status::InvalidData, Rule::B1, &path, row, message))
    }
}

#[cold]
fn null_with_size(at: &At<'_>, slot: &Slot, place: usize, size: i64, report: &mut Report<'_>) -> Failed {
    let (role, path) = (role_name(slot.role), at.ty.path(at.index));
    let message = format_args!("expected {size} bytes of {role} in buffer {place}, found NULL");
    report.broken(Rule::A5, &path, message)
}

#[cold]
fn too_small(
    at: &At<'_>,
    slot: &Slot,
    place: usize,
    needed: i64,
    found: i64,
    report: &mut Report<'_>,
) -> Failed {
    let (role, path) = (role_name(slot.role), at.ty.path(at.index));
    let message = format_args!("expected at least {needed} bytes of {role} in buffer {place}, found {found}");
    report.broken(Rule::A4, &path, message)
}

/// Whether neither is negative, and both are far from any overflow.
#[inline(always)]
fn is_small(length: i64, offset: i64) -> bool {
    (length | offset).cast_unsigned() >> 30 == 0
}

/// Whether the numbers break no rule of their own, and are far from any overflow.
#[inline(always)]
fn has_small_numbers(facts: &Facts) -> bool {
    let Facts { length, null_count, offset, .. } = *facts;
    if !is_small(length, offset) {
        return false;
    }
    null_count.wrapping_add(1).cast_unsigned() <= length.wrapping_add(1).cast_unsigned()
}

/// Whether nothing is wrong with a leaf but perhaps its bitmap. Where something may be, it is looked at as any node.
#[inline(always)]
fn is_sound_leaf(bits: u32, facts: &Facts, data: &OwnedBuffer) -> bool {
    if bits == 0 || facts.n_buffers != 2 || !has_small_numbers(facts) || data.data().is_null() {
        return false;
    }
    let rows = facts.offset.wrapping_add(facts.length).cast_unsigned();
    holds(data, rows.wrapping_mul(u64::from(bits)).wrapping_add(7) >> 3)
}

/// Whether the bitmap of so many rows is there, or nothing asks for one.
#[inline(always)]
fn has_bitmap(validity: &OwnedBuffer, rows: u64, null_count: i64) -> bool {
    if validity.data().is_null() {
        validity.size_bytes() <= 0 && null_count <= 0
    } else {
        holds(validity, rows.wrapping_add(7) >> 3)
    }
}

/// Whether a buffer has so many bytes, as far as is known.
#[inline(always)]
fn holds(buffer: &OwnedBuffer, needed: u64) -> bool {
    buffer.size_bytes() >= needed.cast_signed() || buffer.size_bytes() == -1
}

/// Whether offsets of this format point into a child.
fn child_has_values(format: Format) -> bool {
    matches!(format, Format::List | Format::LargeList | Format::Map)
}

impl Parts for Given<'_> {
    #[inline]
    fn facts(&self, i: usize) -> Facts {
        self.nodes.get(i).copied().unwrap_or(Facts::EMPTY)
    }

    #[inline]
    fn addresses(&self, _: usize, first: usize, n: usize) -> impl ExactSizeIterator<Item = *const c_void> {
        let own = self.buffers.get(first..first.wrapping_add(n)).unwrap_or_default();
        own.iter().map(OwnedBuffer::data)
    }

    #[cold]
    #[inline(never)]
    fn count_nulls(&self, _: usize, first: usize, span: Span) -> i64 {
        let (Some(device), Some(validity)) = (self.device, self.buffers.get(first)) else { return -1 };
        counted_nulls(span, |at, n| validity.host_bytes(device, at, n)).unwrap_or(-1)
    }

    fn is_empty(&self, _: usize, _: usize, _: &Slot) -> bool {
        // What is NULL and has bytes was refused.
        true
    }

    #[cold]
    #[inline(never)]
    fn build_sizes(&self, i: usize, first: usize, writer: &mut Writer) -> *const c_void {
        let n_buffers = self.nodes.get(i).map_or(0, |facts| usize::try_from(facts.n_buffers).unwrap_or(0));
        let n_variadic = n_buffers.saturating_sub(3);
        if n_variadic == 0 {
            return core::ptr::null();
        }
        let variadic = self.buffers.iter().skip(first.saturating_add(2)).take(n_variadic);
        writer.build_sizes(variadic.map(OwnedBuffer::size_bytes))
    }
}
