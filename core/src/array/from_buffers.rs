//! from_buffers: raw memory and its owners become a device array.

use core::cell::RefCell;
use core::ffi::c_void;

use super::emit::{Parts, emit};
use super::nulls::{counted_nulls, derived_nulls};
use super::walk::Span;
use crate::abi::Device;
use crate::error::{Report, Result, Rule, Status};
use crate::kernels::{read_i32, read_i64};
use crate::memory::{OwnedBuffer, Owner};
use crate::tree::{
    ExportedArray, Facts, Links, Need, Placement, Shape, Writer, check_links, check_node, need, role_name,
};
use crate::types::{Format, Role, Type};

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
    let parts = placement.check(report)?;
    if nodes.len() != ty.n_nodes() {
        let message = format_args!("expected {} nodes for the type, found {}", ty.n_nodes(), nodes.len());
        return Err(report.fail(Status::InvalidArgument, message));
    }
    let device = parts.device;
    let readable = if parts.has_event { None } else { Some(device) };
    let n_sizes = Check { ty, nodes, buffers, device: readable }.run(report)?;
    let has_entries =
        buffers.iter().any(OwnedBuffer::has_owner) || buffers.iter().any(|b| b.size_bytes() >= 0);
    let shape = Shape { n_nodes: nodes.len(), n_pointers: buffers.len(), has_entries, n_sizes };
    let root = nodes
        .first()
        .map_or(Span { offset: 0, length: 0 }, |root| Span { offset: root.offset, length: root.length });
    let given = Given { ty, nodes, buffers: RefCell::new(buffers), device: readable };
    let writer = emit(&given, ty, root, device, shape, report)?;
    let (owner, event) = placement.take();
    Ok(writer.finish(device, core::ptr::null_mut(), Links { keep: None, owner, event }))
}

/// The checks of everything that was handed over, which touch nothing.
struct Check<'a> {
    ty: &'a Type,
    nodes: &'a [Facts],
    buffers: &'a [OwnedBuffer],
    /// The device, when its memory may be looked at now.
    device: Option<Device>,
}

impl Check<'_> {
    /// Returns how many sizes of variadic buffers have to be built.
    fn run(&self, report: &mut Report<'_>) -> Result<usize> {
        let (mut first, mut n_sizes) = (0usize, 0usize);
        for (i, facts) in self.nodes.iter().enumerate() {
            let n = usize::try_from(facts.n_buffers).unwrap_or(0);
            let end = first.saturating_add(n);
            let Some(own) = self.buffers.get(first..end) else { return Err(self.wrong_count(end, report)) };
            let data = |k: usize| own.get(k).map_or(core::ptr::null(), |buffer| buffer.data());
            check_node(self.ty, i, facts, false, data, report)?;
            n_sizes = n_sizes.saturating_add(self.sizes(i, facts, own, report)?);
            first = end;
        }
        if first != self.buffers.len() {
            return Err(self.wrong_count(first, report));
        }
        check_links(self.ty, |i| self.nodes.get(i).copied().unwrap_or(Facts::EMPTY), report)?;
        Ok(n_sizes)
    }

    #[cold]
    fn wrong_count(&self, needed: usize, report: &mut Report<'_>) -> crate::error::Failed {
        let found = self.buffers.len();
        report.fail(
            Status::InvalidArgument,
            format_args!("expected {needed} buffers or more, as the nodes say, found {found}"),
        )
    }

    /// Checks the sizes that are known against those that are needed.
    fn sizes(&self, i: usize, facts: &Facts, own: &[OwnedBuffer], report: &mut Report<'_>) -> Result<usize> {
        let Some(node) = self.ty.node(i) else { return Ok(0) };
        let n_variadic = own.len().saturating_sub(3);
        let last = self.last_offset(i, facts, own, report)?;
        for (k, buffer) in own.iter().enumerate() {
            let Some(slot) = node.layout.slot_of(k, own.len()) else { continue };
            let needed = match need(&slot, facts.offset, facts.length, n_variadic) {
                Need::Bytes(bytes) => bytes,
                Need::ByOffsets => last.unwrap_or(0),
                Need::BySizes | Need::Overflow => 0,
            };
            let found = buffer.size_bytes();
            let absent = buffer.data().is_null() && matches!(slot.role, Role::Validity | Role::VariadicSizes);
            if found < -1 || (found >= 0 && found < needed && !absent) {
                let role = role_name(slot.role);
                return Err(report.broken(
                    Rule::A4,
                    &self.ty.path(i),
                    format_args!("expected at least {needed} bytes of {role} in buffer {k}, found {found}"),
                ));
            }
        }
        if node.layout.is_variadic() { self.variadic(i, own, report) } else { Ok(0) }
    }

    /// Checks the variadic buffers' sizes, and returns how many have to be built.
    fn variadic(&self, i: usize, own: &[OwnedBuffer], report: &mut Report<'_>) -> Result<usize> {
        let (Some((sizes, rest)), path) = (own.split_last(), self.ty.path(i)) else { return Ok(0) };
        let given = rest.get(2..).unwrap_or_default();
        for (k, buffer) in given.iter().enumerate() {
            let known = buffer.size_bytes();
            if sizes.data().is_null() && known < 0 {
                return Err(report.fail_at(
                    Status::InvalidArgument,
                    Rule::B2,
                    &path,
                    format_args!(
                        "expected the size of variadic buffer {k} to build the sizes, found {known}"
                    ),
                ));
            }
            let at = k.saturating_mul(size_of::<i64>());
            let Some(device) = self.device else { continue };
            let told = sizes.host_bytes(device, at, size_of::<i64>()).and_then(|bytes| read_i64(bytes, 0));
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
        Ok(if sizes.data().is_null() { given.len() } else { 0 })
    }

    /// What the offsets say at the end of the array, checked against the child that they point into.
    fn last_offset(
        &self,
        i: usize,
        facts: &Facts,
        own: &[OwnedBuffer],
        report: &mut Report<'_>,
    ) -> Result<Option<i64>> {
        let (Some(node), Some(device)) = (self.ty.node(i), self.device) else { return Ok(None) };
        let Some(slot) = node.layout.slots().get(1).filter(|slot| slot.role == Role::Offsets) else {
            return Ok(None);
        };
        if facts.length == 0 || slot.extent == crate::types::Extent::Rows {
            return Ok(None);
        }
        let width = usize::try_from(slot.bits >> 3).unwrap_or(8);
        let end = facts.offset.saturating_add(facts.length);
        let at = usize::try_from(end).ok().and_then(|end| end.checked_mul(width));
        let offsets = own.get(1);
        let bytes = at.and_then(|at| offsets?.host_bytes(device, at, width));
        let Some(last) = bytes.and_then(|bytes| read_offset(bytes, width)) else { return Ok(None) };
        let values = match node.format {
            Format::List | Format::LargeList | Format::Map => {
                let child = self.ty.child_index(i, 0).and_then(|child| self.nodes.get(child));
                child.map_or(i64::MAX, |child| child.length)
            }
            _ => i64::MAX,
        };
        if last < 0 || last > values {
            return Err(report.fail_at_row(
                Status::InvalidData,
                Rule::B1,
                &self.ty.path(i),
                facts.length,
                format_args!("expected a last offset from 0 to the values' {values}, found {last}"),
            ));
        }
        Ok(Some(last))
    }
}

/// An offset of 4 or 8 bytes.
pub(super) fn read_offset(bytes: &[u8], width: usize) -> Option<i64> {
    if width == size_of::<i32>() { read_i32(bytes, 0).map(i64::from) } else { read_i64(bytes, 0) }
}

/// What was handed over, ready to be written out.
struct Given<'a> {
    ty: &'a Type,
    nodes: &'a [Facts],
    buffers: RefCell<&'a mut [OwnedBuffer]>,
    device: Option<Device>,
}

impl Given<'_> {
    fn with<T>(&self, first: usize, k: usize, f: impl FnOnce(&mut OwnedBuffer) -> T) -> Option<T> {
        self.buffers.borrow_mut().get_mut(first.saturating_add(k)).map(f)
    }

    fn n_buffers(&self, i: usize) -> usize {
        self.nodes.get(i).map_or(0, |facts| usize::try_from(facts.n_buffers).unwrap_or(0))
    }
}

impl Parts for Given<'_> {
    fn facts(&self, i: usize) -> Facts {
        self.nodes.get(i).copied().unwrap_or(Facts::EMPTY)
    }

    fn data(&self, _: usize, first: usize, k: usize) -> *const c_void {
        self.with(first, k, |buffer| buffer.data()).unwrap_or(core::ptr::null())
    }

    fn nulls(&self, i: usize, first: usize, span: Span) -> i64 {
        let (facts, Some(node)) = (self.facts(i), self.ty.node(i)) else { return -1 };
        if node.format == Format::Null {
            return span.length;
        }
        if !node.layout.has_validity() || self.data(i, first, 0).is_null() {
            return 0;
        }
        let known = derived_nulls(facts.null_count, facts.length, span.length);
        if known >= 0 {
            return known;
        }
        let (Some(device), buffers) = (self.device, self.buffers.borrow()) else { return -1 };
        let Some(validity) = buffers.get(first) else { return -1 };
        counted_nulls(span, |at, n| validity.host_bytes(device, at, n)).unwrap_or(-1)
    }

    fn built_sizes(&self, i: usize, first: usize, writer: &mut Writer) -> *const c_void {
        let n_variadic = self.n_buffers(i).saturating_sub(3);
        if n_variadic == 0 {
            return core::ptr::null();
        }
        let variadic = first.saturating_add(2);
        let buffers = self.buffers.borrow();
        writer.keep_sizes(buffers.iter().skip(variadic).take(n_variadic).map(OwnedBuffer::size_bytes))
    }

    fn place(&self, i: usize, first: usize, k: usize, at: usize, writer: &mut Writer) {
        let taken = self.with(first, k, |buffer| (buffer.data(), buffer.size_bytes(), buffer.take_owner()));
        let (data, told, owner) = taken.unwrap_or((core::ptr::null(), -1, Owner::NONE));
        let n = self.n_buffers(i);
        let slot = self.ty.node(i).and_then(|node| node.layout.slot_of(k, n));
        let is_built = data.is_null() && slot.is_some_and(|slot| slot.role == Role::VariadicSizes);
        let built = i64::try_from(n.saturating_sub(3).saturating_mul(size_of::<i64>())).unwrap_or(-1);
        writer.set_entry(at, if is_built { built } else { told }, owner);
    }
}
