//! Writing a tree out as strictly as the interfaces can be read. Export and from_buffers share it.

use core::ffi::c_void;

use super::nulls::derived_nulls;
use super::walk::Span;
use crate::tree::{Facts, Leaf, Writer, ZEROES};
use crate::types::{Extent, Format, NONE, Role, Slot, TypeNode};

/// What a tree that is to be written out looks like. Nodes are those of the type that it is written with; a node's
/// buffers start at `first` among all of them.
pub(super) trait Parts {
    /// The numbers of node `i` as they are.
    fn facts(&self, i: usize) -> Facts;
    /// Node `i`, whose buffers start at `first`, and those after it, each as if it had two buffers. A node that has not is
    /// told by its numbers, and ends what can be relied on.
    fn leaves(&self, i: usize, first: usize) -> impl Iterator<Item = Leaf>;
    /// The addresses of node `i`'s buffers, of which there are `n`.
    fn addresses(&self, i: usize, first: usize, n: usize) -> impl ExactSizeIterator<Item = *const c_void>;
    /// Counts the nulls of `span` of node `i`, whose bitmap is there, or gives -1 when it may not be read.
    fn count_nulls(&self, i: usize, first: usize, span: Span) -> i64;
    /// Whether buffer `k` of node `i`, which is NULL, has no bytes as far as other buffers tell.
    fn is_empty(&self, i: usize, k: usize, slot: &Slot) -> bool;
    /// Builds the sizes of the variadic buffers of node `i`, and says where they are; NULL when they are not to be built.
    fn build_sizes(&self, i: usize, first: usize, writer: &mut Writer) -> *const c_void;
}

/// Writes `window` of the tree into a new block.
#[inline(always)]
pub(super) fn emit<P: Parts>(parts: &P, nodes: &[TypeNode], window: Span, is_cpu: bool, writer: &mut Writer) {
    let mut emission = Emission { parts, nodes, window, is_cpu, writer, windowed: NOBODY, i: 0, first: 0 };
    while let Some(node) = nodes.get(emission.i) {
        if node.leaf_bits == 0 || emission.i == 0 || !emission.leaves() {
            emission.node(node);
        }
    }
}

/// No node's parent.
const NOBODY: u32 = NONE.wrapping_sub(1);

/// A tree that is being written out.
struct Emission<'a, P> {
    parts: &'a P,
    nodes: &'a [TypeNode],
    window: Span,
    is_cpu: bool,
    writer: &'a mut Writer,
    /// Whose children the window is that of.
    windowed: u32,
    /// The next node, and its first buffer.
    i: usize,
    first: usize,
}

impl<P: Parts> Emission<'_, P> {
    /// Writes the leaves from here on, up to a node that is none or not as simple as most; false when there are none.
    #[inline(never)]
    fn leaves(&mut self) -> bool {
        let Some(rest) = self.nodes.get(self.i..) else { return false };
        let (mut next, windowed, window) = (self.writer.cursor(), self.windowed, self.window);
        let mut n = 0usize;
        for (node, leaf) in rest.iter().zip(self.parts.leaves(self.i, self.first)) {
            let Leaf { facts, validity, data } = leaf;
            if node.leaf_bits == 0 || facts.n_buffers != 2 || data.is_null() {
                break;
            }
            let (mut offset, mut length) = (facts.offset, facts.length);
            if node.parent == windowed {
                (offset, length) = (offset.wrapping_add(window.offset), window.length);
            }
            let mut nulls = 0;
            if !validity.is_null() {
                nulls = facts.null_count;
                if nulls < 0 || (nulls > 0 && length != facts.length) {
                    break;
                }
            }
            if length == 0 {
                // An offset into nothing is legal, and refused by some.
                offset = 0;
            }
            let facts = Facts { length, null_count: nulls, offset, n_buffers: 2 };
            if !next.push_leaf(&facts, validity, data) {
                break;
            }
            n = n.wrapping_add(1);
        }
        self.writer.set_cursor(next);
        self.i = self.i.wrapping_add(n);
        self.first = self.first.wrapping_add(n.wrapping_mul(2));
        n > 0
    }

    /// Writes one node, whatever it is.
    #[inline(never)]
    fn node(&mut self, node: &TypeNode) {
        let (parts, window, i, first) = (self.parts, self.window, self.i, self.first);
        let raw = parts.facts(i);
        let n_buffers = usize::try_from(raw.n_buffers).unwrap_or(0);
        let mut span = Span { offset: raw.offset, length: raw.length };
        if i == 0 {
            span = window;
        } else if node.parent == self.windowed {
            span = Span { offset: raw.offset.wrapping_add(window.offset), length: window.length };
        }
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
