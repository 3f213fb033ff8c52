//! from_buffers: raw memory and its owners become a device array.

use core::ffi::c_void;

use super::emit::{Parts, emit};
use super::nulls::counted_nulls;
use super::walk::Span;
use crate::abi::Device;
use crate::error::{Failed, Report, Result, Rule, Status};
use crate::kernels::{read_i32, read_i64};
use crate::memory::OwnedBuffer;
use crate::tree::{At, ExportedArray, Facts, LINE, Links, Placement, Shape, Writer, role_name};
use crate::types::{Extent, Format, Role, Slot, Type, TypeNode};

/// Builds a device array of `ty` from one set of numbers a node and one piece of memory a buffer, both depth first.
///
/// On success the owners and the event are taken out of `buffers` and `placement`; on failure nothing was touched.
pub fn from_buffers(
    ty: &Type,
    nodes: &[Facts],
    buffers: &mut [OwnedBuffer],
    placement: &mut Placement,
    report: &mut Report<'_>,
) -> Result<ExportedArray> {
    let place = placement.check(report)?;
    let type_nodes = ty.nodes();
    if nodes.len() != type_nodes.len() {
        let message = format_args!("expected {} nodes for the type, found {}", type_nodes.len(), nodes.len());
        return Err(report.fail(Status::InvalidArgument, message));
    }
    let device = if place.has_event { None } else { Some(place.device) };
    let given = Given { nodes, buffers, device };
    let shape = given.check(ty, type_nodes, report)?;
    let root = nodes.first().copied().unwrap_or(Facts::EMPTY);
    let root = Span { offset: root.offset, length: root.length };
    let given = Given { nodes, buffers, device };
    let mut writer = emit(&given, ty, root, place.device, shape, report)?;
    writer.set_sizes(buffers.iter().map(OwnedBuffer::size_bytes));
    let event = placement.event();
    writer.set_owners(buffers.iter_mut().map(|buffer| buffer.take_owner().peeled(event)));
    let (owner, event) = placement.take();
    let links = Links { keep: None, owner, event };
    Ok(writer.finish(place.device, core::ptr::null_mut(), links))
}

/// What was handed over.
struct Given<'a> {
    nodes: &'a [Facts],
    buffers: &'a [OwnedBuffer],
    /// The device, when its memory may be looked at now.
    device: Option<Device>,
}

impl Given<'_> {
    /// Checks everything and touches nothing. Returns what the block has to hold.
    fn check(&self, ty: &Type, type_nodes: &[TypeNode], report: &mut Report<'_>) -> Result<Shape> {
        let (n_nodes, n_pointers) = (self.nodes.len(), self.buffers.len());
        let mut shape = Shape { n_nodes, n_pointers, ..Shape::default() };
        let mut rest = self.buffers;
        for (index, (node, facts)) in type_nodes.iter().zip(self.nodes).enumerate() {
            let at = At { ty, node, index };
            at.check_numbers(facts, report)?;
            at.check_count(facts, report)?;
            let n = usize::try_from(facts.n_buffers).unwrap_or(0);
            let Some((own, after)) = rest.split_at_checked(n) else {
                return Err(self.wrong_count(report));
            };
            rest = after;
            for buffer in own {
                shape.has_entries |= buffer.has_owner();
                shape.has_sizes |= buffer.size_bytes() >= 0;
            }
            self.check_buffers(&at, facts, own, report)?;
            if node.n_children > 0 {
                let child = |i: usize| self.nodes.get(i).copied().unwrap_or(Facts::EMPTY);
                at.check_children(facts, child, report)?;
            }
            if node.layout.is_variadic() {
                shape.n_built = shape.n_built.saturating_add(self.check_variadic(&at, own, report)?);
            }
        }
        if rest.is_empty() { Ok(shape) } else { Err(self.wrong_count(report)) }
    }

    /// Checks the addresses and sizes of one node's buffers against what its numbers need.
    #[inline]
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

    /// Checks the variadic buffers' sizes, and returns how many have to be built.
    #[cold]
    fn check_variadic(&self, at: &At<'_>, own: &[OwnedBuffer], report: &mut Report<'_>) -> Result<usize> {
        let Some((sizes, given)) = own.split_last().and_then(|(sizes, rest)| Some((sizes, rest.get(2..)?)))
        else {
            return Ok(0);
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
        Ok(if sizes.data().is_null() { given.len().next_multiple_of(LINE) } else { 0 })
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
        let (path, row) = (at.ty.path(at.index), facts.length);
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

/// Whether offsets of this format point into a child.
fn child_has_values(format: Format) -> bool {
    matches!(format, Format::List | Format::LargeList | Format::Map)
}

/// An offset of 4 or 8 bytes.
pub(super) fn read_offset(bytes: &[u8], width: usize) -> Option<i64> {
    if width == size_of::<i32>() { read_i32(bytes, 0).map(i64::from) } else { read_i64(bytes, 0) }
}

impl Parts for Given<'_> {
    #[inline]
    fn facts(&self, i: usize) -> Facts {
        self.nodes.get(i).copied().unwrap_or(Facts::EMPTY)
    }

    #[inline]
    fn addresses(&self, _: usize, first: usize) -> impl Iterator<Item = *const c_void> {
        self.buffers.get(first..).unwrap_or_default().iter().map(OwnedBuffer::data)
    }

    fn count_nulls(&self, _: usize, first: usize, span: Span) -> i64 {
        let (Some(device), Some(validity)) = (self.device, self.buffers.get(first)) else { return -1 };
        counted_nulls(span, |at, n| validity.host_bytes(device, at, n)).unwrap_or(-1)
    }

    fn is_empty(&self, _: usize, _: usize, _: &Slot) -> bool {
        // What is NULL and has bytes was refused.
        true
    }

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
