//! to_buffers: an array taken apart into numbers, memory and owners, the exact inverse of from_buffers.

use super::walk::Span;
use crate::error::{Report, Result, Status};
use crate::memory::{OwnedBuffer, Owner};
use crate::tree::{Array, Facts, Placement};

impl Array {
    /// Writes one set of numbers a node and one piece of memory with its owner a buffer, and says where they are.
    ///
    /// Nothing is allocated. The placement's event lives as long as any of the owners. Sizes that the library built are
    /// left away.
    pub fn to_buffers(
        &self,
        nodes: &mut [Facts],
        mut put: impl FnMut(usize, OwnedBuffer),
        n_buffers: usize,
        report: &mut Report<'_>,
    ) -> Result<Placement> {
        let (needed_nodes, needed_buffers) = (self.n_nodes(), self.n_buffers());
        if nodes.len() != needed_nodes || n_buffers != needed_buffers {
            return Err(report.fail(
                Status::InvalidArgument,
                format_args!(
                    "expected room for exactly {needed_nodes} nodes and {needed_buffers} buffers, found {} and {n_buffers}",
                    nodes.len()
                ),
            ));
        }
        let tree = self.tree();
        let (mut at, mut is_kept) = (0usize, false);
        for (i, out) in nodes.iter_mut().enumerate() {
            let node = self.node().saturating_add(i);
            let mut facts = tree.facts(node).unwrap_or(Facts::EMPTY);
            if i == 0 {
                let span = Span { offset: self.offset(), length: self.length() };
                facts.null_count = self.known_nulls_in(node, span);
                (facts.offset, facts.length) = (span.offset, span.length);
            }
            *out = facts;
            for k in 0..usize::try_from(facts.n_buffers).unwrap_or(0) {
                let buffer = self.owned_buffer(node, k);
                is_kept |= buffer.has_owner();
                put(at, buffer);
                at = at.saturating_add(1);
            }
        }
        // Without a buffer that keeps it, an event would be gone with the array.
        Ok(if is_kept { tree.placement() } else { Placement::on(tree.device()) })
    }

    fn owned_buffer(&self, node: usize, k: usize) -> OwnedBuffer {
        let tree = self.tree();
        if tree.is_built(node, k) {
            // Built again by whoever puts the array together, they are in CPU memory again.
            return OwnedBuffer::absent();
        }
        let data = tree.buffer(node, k);
        let owner = if data.is_null() { Owner::NONE } else { tree.owner_of(node, k).0 };
        tree.describe(node, k, owner)
    }
}
