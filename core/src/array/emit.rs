//! Writing a tree out as strictly as the interfaces can be read. Export and from_buffers share it.

use core::ffi::c_void;

use super::nulls::derived_nulls;
use super::walk::Span;
use crate::abi::Device;
use crate::device::is_cpu_readable;
use crate::error::{Report, Result};
use crate::tree::{Facts, Shape, Writer, ZEROES};
use crate::types::{Extent, Format, Role, Slot, Type, TypeNode};

/// What a tree that is to be written out looks like. Nodes are those of the type that it is written with; a node's
/// buffers start at `first` among all of them.
pub(super) trait Parts {
    /// The numbers of node `i` as they are.
    fn facts(&self, i: usize) -> Facts;
    /// The addresses of node `i`'s buffers.
    fn addresses(&self, i: usize, first: usize) -> impl Iterator<Item = *const c_void>;
    /// Counts the nulls of `span` of node `i`, whose bitmap is there, or gives -1 when it may not be read.
    fn count_nulls(&self, i: usize, first: usize, span: Span) -> i64;
    /// Whether buffer `k` of node `i`, which is NULL, has no bytes as far as other buffers tell.
    fn is_empty(&self, i: usize, k: usize, slot: &Slot) -> bool;
    /// Builds the sizes of the variadic buffers of node `i`, and says where they are; NULL when they are not to be built.
    fn build_sizes(&self, i: usize, first: usize, writer: &mut Writer) -> *const c_void;
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
    let nodes = ty.nodes();
    let is_cpu = is_cpu_readable(device);
    let root_index = u32::try_from(ty.base()).unwrap_or(u32::MAX);
    let mut pushed = false;
    let mut first = 0usize;
    for (i, node) in nodes.iter().enumerate() {
        let raw = parts.facts(i);
        let n_buffers = usize::try_from(raw.n_buffers).unwrap_or(0);
        let mut span = Span { offset: raw.offset, length: raw.length };
        if i == 0 {
            span = window;
        } else if pushed && node.parent == root_index {
            span = Span { offset: raw.offset.wrapping_add(window.offset), length: window.length };
        }
        let addresses = writer.push_addresses(n_buffers, parts.addresses(i, first));
        let null_count = match addresses.first() {
            Some(validity) if !validity.is_null() && node.layout.has_validity() => {
                let known = derived_nulls(raw.null_count, raw.length, span.length);
                if known >= 0 { known } else { parts.count_nulls(i, first, span) }
            }
            _ if node.format == Format::Null => span.length,
            _ => 0,
        };
        if i == 0 && node.format == Format::Struct && (window.offset == 0 || null_count == 0) {
            // Consumers ignore or refuse the offset of a struct at the root, so it is pushed into the children wherever
            // the struct's own nulls do not need it. Its bitmap would then start at the wrong bit.
            pushed = true;
            if let Some(validity) = addresses.first_mut().filter(|_| span.offset != 0) {
                *validity = core::ptr::null();
            }
            span.offset = 0;
        }
        if span.length == 0 {
            // An offset into nothing is legal, and refused by some.
            span.offset = 0;
        }
        if addresses.iter().skip(usize::from(node.layout.has_validity())).any(|address| address.is_null()) {
            let gaps = Gaps { parts, node, i, first, n_buffers, is_cpu };
            gaps.fill(&mut writer);
        }
        let facts = Facts { length: span.length, null_count, offset: span.offset, n_buffers: raw.n_buffers };
        writer.push_node(ty, nodes, i, &facts);
        first = first.wrapping_add(n_buffers);
    }
    Ok(writer)
}

/// Buffers of a node that are NULL though they are no validity bitmaps.
struct Gaps<'a, P> {
    parts: &'a P,
    node: &'a TypeNode,
    i: usize,
    first: usize,
    n_buffers: usize,
    is_cpu: bool,
}

impl<P: Parts> Gaps<'_, P> {
    /// Puts in what stands for them: sizes that are built, and in CPU memory an address of zeroes.
    #[cold]
    fn fill(&self, writer: &mut Writer) {
        for k in 0..self.n_buffers {
            let Some(slot) = self.node.layout.slot_of(k, self.n_buffers) else { continue };
            let now = writer.addresses_again(self.n_buffers).get(k);
            if slot.role == Role::Validity || now.is_none_or(|address| !address.is_null()) {
                continue;
            }
            let mut address = core::ptr::null();
            if slot.role == Role::VariadicSizes {
                address = self.parts.build_sizes(self.i, self.first, writer);
            }
            let told = matches!(slot.extent, Extent::LastOffset | Extent::VariadicSize);
            if address.is_null() && self.is_cpu && (!told || self.parts.is_empty(self.i, k, &slot)) {
                address = ZEROES.address();
            }
            if let Some(to) = writer.addresses_again(self.n_buffers).get_mut(k) {
                *to = address;
            }
        }
    }
}
