//! A struct with some of its children, over the same buffers.

use core::sync::atomic::{AtomicI64, Ordering};

use super::imported::{Draft, Made, Source};
use super::{Array, Node, Tree};
use crate::error::{Report, Result, Status};
use crate::memory::Owner;
use crate::types::Type;

impl Tree {
    /// The window's struct with those of its children that start at the nodes `children`, in this order: one allocation,
    /// and nothing is copied. `ty` is the type that this gives; the nodes are counted from the window's own.
    pub fn with_children(
        window: &Array,
        ty: &Type,
        children: &[usize],
        report: &mut Report<'_>,
    ) -> Result<Array> {
        let (base, root) = (window.tree(), window.node());
        let ends = |node: usize| {
            let end = base.ty().node(node).map_or(0, |node| node.subtree_end as usize);
            end.saturating_sub(base.ty().base())
        };
        let shown = || {
            let below = children.iter().flat_map(|child| {
                let first = root.saturating_add(*child);
                base.nodes().get(first..ends(first)).unwrap_or_default()
            });
            base.nodes().get(root).into_iter().chain(below)
        };
        let n_buffers = shown().fold(0usize, |sum, node| sum.saturating_add(node.n_buffers));
        let has_sizes = !base.raw().sizes.is_null();
        let mut draft = Draft::allocate(ty.n_nodes(), if has_sizes { n_buffers } else { 0 }, report)?;
        let (mut n_nodes, mut first_buffer) = (0usize, 0usize);
        for node in shown().take(ty.n_nodes()) {
            let null_count = AtomicI64::new(node.null_count.load(Ordering::Relaxed));
            let copy = Node { null_count, first_buffer, ..*node };
            // SAFETY: the draft has room for as many nodes as the type has, and for a size a buffer where there are any.
            unsafe {
                draft.set(n_nodes, copy);
                if has_sizes {
                    let from = base.raw().sizes.add(node.first_buffer);
                    core::ptr::copy_nonoverlapping(from, draft.sizes.add(first_buffer), node.n_buffers);
                }
            }
            n_nodes = n_nodes.saturating_add(1);
            first_buffer = first_buffer.saturating_add(node.n_buffers);
        }
        if n_nodes != ty.n_nodes() {
            let message = format_args!("expected {} nodes of the children, found {n_nodes}", ty.n_nodes());
            return Err(report.fail(Status::Internal, message));
        }
        let made = Made {
            ty: ty.clone(),
            place: base.place(),
            source: Source::Shared(base.needed_below(false, base.place().event).clone()),
            owner: Owner::NONE,
            n_buffers,
            sizes: core::ptr::null(),
            view: super::View { node: 0, ..window.view() },
        };
        // SAFETY: every node was written above.
        Ok(unsafe { draft.finish(made) })
    }
}
