//! Writing a tree out as strictly as the interfaces can be read. Export and from_buffers share it.

use core::ffi::c_void;

use super::walk::Span;
use crate::abi::Device;
use crate::device::is_cpu_readable;
use crate::error::{Report, Result};
use crate::tree::{Facts, Shape, Writer, ZEROES};
use crate::types::{Extent, Format, Role, Type};

/// What a tree that is to be written out looks like. Nodes are those of the type that it is written with.
pub(super) trait Parts {
    /// The numbers of node `i` as they are.
    fn facts(&self, i: usize) -> Facts;
    /// The address of buffer `k` of node `i`, whose buffers start at `first` among all of them.
    fn data(&self, i: usize, first: usize, k: usize) -> *const c_void;
    /// The nulls of `span` of node `i`, counted if need be and possible, else -1.
    fn nulls(&self, i: usize, first: usize, span: Span) -> i64;
    /// What stands for NULL in the buffer of variadic sizes of node `i`, when the sizes are built.
    fn built_sizes(&self, i: usize, first: usize, writer: &mut Writer) -> *const c_void;
    /// Called for each buffer, so that its owner can be moved.
    fn place(&self, i: usize, first: usize, k: usize, at: usize, writer: &mut Writer);
}

/// Writes `window` of the tree into a new block.
pub(super) fn emit(
    parts: &impl Parts,
    ty: &Type,
    window: Span,
    device: Device,
    shape: Shape,
    report: &mut Report<'_>,
) -> Result<Writer> {
    let mut writer = Writer::allocate(shape, report)?;
    let root = Root::plan(parts, ty, window);
    let is_cpu = is_cpu_readable(device);
    let mut first = 0usize;
    for (i, node) in ty.nodes().iter().enumerate() {
        let raw = parts.facts(i);
        let n_buffers = usize::try_from(raw.n_buffers).unwrap_or(0);
        let mut span = root.span(ty, i, &raw);
        let missing_offsets = is_cpu
            && span.length == 0
            && node.layout.slots().get(1).is_some_and(|slot| slot.extent == Extent::RowsPlusOne)
            && parts.data(i, first, 1).is_null();
        if missing_offsets {
            // There is nothing behind the offset, and the zero that takes the missing one's place is a lone one.
            span.offset = 0;
        }
        let null_count = parts.nulls(i, first, if i == 0 { window } else { span });
        let facts = Facts { length: span.length, null_count, offset: span.offset, n_buffers: raw.n_buffers };
        let at = writer.push_node(ty, i, &facts);
        for k in 0..n_buffers {
            let mut data = parts.data(i, first, k);
            let role = node.layout.slot_of(k, n_buffers).map_or(Role::Data, |slot| slot.role);
            if i == 0 && root.drops_validity {
                data = core::ptr::null();
            }
            if data.is_null() && role == Role::VariadicSizes {
                data = parts.built_sizes(i, first, &mut writer);
            }
            if data.is_null() && role != Role::Validity && is_cpu {
                data = ZEROES.address();
            }
            let place = at.saturating_add(k);
            writer.set_pointer(place, data);
            parts.place(i, first, k, place, &mut writer);
        }
        first = first.saturating_add(n_buffers);
    }
    Ok(writer)
}

/// How the root's window is written.
///
/// Consumers ignore or refuse the offset of a struct, so it is pushed into the children wherever the struct's own nulls
/// do not need it.
struct Root {
    window: Span,
    pushed: bool,
    drops_validity: bool,
}

impl Root {
    fn plan(parts: &impl Parts, ty: &Type, window: Span) -> Self {
        let is_struct = ty.root_node().format == Format::Struct;
        let pushed = is_struct && (window.offset == 0 || parts.nulls(0, 0, window) == 0);
        Self { window, pushed, drops_validity: pushed && window.offset != 0 }
    }

    fn span(&self, ty: &Type, i: usize, raw: &Facts) -> Span {
        let is_child = ty.node(i).is_some_and(|node| node.parent as usize == ty.base() && i != 0);
        match (i, self.pushed) {
            (0, true) => Span { offset: 0, length: self.window.length },
            (0, false) => self.window,
            (_, true) if is_child => {
                Span { offset: raw.offset.saturating_add(self.window.offset), length: self.window.length }
            }
            _ => Span { offset: raw.offset, length: raw.length },
        }
    }
}
