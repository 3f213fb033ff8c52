//! Writing a tree out as strictly as the interfaces can be read. Export and from_buffers share it.

use core::ffi::c_void;

use super::nulls::derived_nulls;
use super::walk::Span;
use crate::tree::{Facts, Writer, ZEROES};
use crate::types::{Extent, Format, NONE, Role, Slot, TypeNode};

/// What a tree that is to be written out looks like. Nodes are those of the type that it is written with; a node's
/// buffers start at `first` among all of them.
pub(super) trait Parts {
    /// The numbers of node `i` as they are.
    fn facts(&self, i: usize) -> Facts;
    /// The addresses of node `i`'s buffers, of which there are `n`.
    fn addresses(&self, i: usize, first: usize, n: usize) -> impl ExactSizeIterator<Item = *const c_void>;
    /// Counts the nulls of `span` of node `i`, whose bitmap is there, or gives -1 when it may not be read.
    fn count_nulls(&self, i: usize, first: usize, span: Span) -> i64;
    /// Whether buffer `k` of node `i`, which is NULL, has no bytes as far as other buffers tell.
    fn is_empty(&self, i: usize, k: usize, slot: &Slot) -> bool;
    /// Builds the sizes of the variadic buffers of node `i`, and says where they are; NULL when they are not to be built.
    fn build_sizes(&self, i: usize, first: usize, writer: &mut Writer) -> *const c_void;
}

/// No node's parent.
const NOBODY: u32 = NONE.wrapping_sub(1);

/// A tree that is being written out.
pub(super) struct Emission<'a, P> {
    parts: &'a P,
    pub(super) nodes: &'a [TypeNode],
    pub(super) window: Span,
    is_cpu: bool,
    pub(super) writer: &'a mut Writer,
    /// Whose children the window is that of.
    pub(super) windowed: u32,
    /// The next node, and its first buffer.
    pub(super) i: usize,
    pub(super) first: usize,
}

impl<'a, P: Parts> Emission<'a, P> {
    /// Starts at the root.
    #[inline(always)]
    pub(super) fn new(
        parts: &'a P,
        nodes: &'a [TypeNode],
        window: Span,
        is_cpu: bool,
        writer: &'a mut Writer,
    ) -> Self {
        Self { parts, nodes, window, is_cpu, writer, windowed: NOBODY, i: 0, first: 0 }
    }

    /// What is shown of a node with these numbers that is not the root.
    #[inline(always)]
    pub(super) fn shown(&self, node: &TypeNode, offset: i64, length: i64) -> Span {
        if node.parent == self.windowed {
            Span { offset: offset.wrapping_add(self.window.offset), length: self.window.length }
        } else {
            Span { offset, length }
        }
    }

    /// Goes on behind so many leaves.
    #[inline(always)]
    pub(super) fn step(&mut self, n: usize) {
        (self.i, self.first) = (self.i.wrapping_add(n), self.first.wrapping_add(n.wrapping_mul(2)));
    }

    /// Writes a root that is a struct with one buffer, a bitmap that is not there; false when there is no room for it. Its offset is
    /// its children's.
    #[inline(always)]
    pub(super) fn record(&mut self, nodes: &[TypeNode]) -> bool {
        let Some(root) = nodes.first() else { return false };
        let facts = Facts { length: self.window.length, null_count: 0, offset: 0, n_buffers: 1 };
        if !self.writer.push_address(core::ptr::null()) {
            return false;
        }
        self.writer.push_node(nodes, 0, &facts);
        (self.windowed, self.i, self.first) = (root.index, 1, 1);
        true
    }

    /// Writes one node, whatever it is.
    #[inline(never)]
    pub(super) fn node(&mut self, node: &TypeNode) {
        let (parts, window, i, first) = (self.parts, self.window, self.i, self.first);
        let raw = parts.facts(i);
        let n_buffers = usize::try_from(raw.n_buffers).unwrap_or(0);
        let mut span = if i == 0 { window } else { self.shown(node, raw.offset, raw.length) };
        let (addresses, missing) = self.writer.push_addresses(parts.addresses(i, first, n_buffers));
        let has_validity = node.layout.has_validity();
        let lacks_validity = has_validity && addresses.first().is_none_or(|validity| validity.is_null());
        let null_count = match node.format {
            _ if has_validity && !lacks_validity => {
                let known = derived_nulls(raw.null_count, raw.length, span.length);
                if known >= 0 { known } else { parts.count_nulls(i, first, span) }
            }
            Format::Null => span.length,
            _ => 0,
        };
        if i == 0 && node.format == Format::Struct && (window.offset == 0 || null_count == 0) {
            // Consumers ignore or refuse the offset of a struct at the root, so it is pushed into the children wherever
            // the struct's own nulls do not need it. Its bitmap would then start at the wrong bit.
            self.windowed = node.index;
            if let Some(validity) = addresses.first_mut().filter(|_| span.offset != 0) {
                *validity = core::ptr::null();
            }
            span.offset = 0;
        }
        if span.length == 0 {
            // An offset into nothing is legal, and refused by some.
            span.offset = 0;
        }
        if missing > usize::from(lacks_validity) {
            let gaps = Gaps { parts, node, i, first, n_buffers, is_cpu: self.is_cpu };
            gaps.fill(self.writer);
        }
        let facts = Facts { length: span.length, null_count, offset: span.offset, n_buffers: raw.n_buffers };
        self.writer.push_node(self.nodes, i, &facts);
        self.i = i.wrapping_add(1);
        self.first = first.wrapping_add(n_buffers);
    }
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
    #[inline(never)]
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
