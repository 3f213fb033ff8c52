//! Walking an array: nodes, children, dictionaries and slices. All of them are windows on the same tree.

use crate::error::{Report, Result, Rule, Status};
use crate::memory::Buffer;
use crate::tree::{Array, Facts, Tree, View};
use crate::types::{Format, Type};

/// The values of one node that a window shows: physical indices in the node's own buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub offset: i64,
    pub length: i64,
}

impl Array {
    /// The type of the window's node. The handle counts the tree's own type.
    pub fn ty(&self) -> Option<Type> {
        self.tree().ty().at(self.node())
    }

    /// Number of nodes in the window's node and below.
    pub fn n_nodes(&self) -> usize {
        let ty = self.tree().ty();
        let end = ty.node(self.node()).map_or(0, |node| node.subtree_end as usize);
        end.saturating_sub(ty.base()).saturating_sub(self.node())
    }

    /// Number of buffers of those nodes.
    pub fn n_buffers(&self) -> usize {
        let end = self.node().saturating_add(self.n_nodes());
        let last = self.tree().nodes().get(end).map_or(self.tree().n_buffers(), |node| node.first_buffer);
        last.saturating_sub(self.first_buffer())
    }

    /// The tree's number of the window's first buffer.
    pub(super) fn first_buffer(&self) -> usize {
        self.tree().nodes().get(self.node()).map_or(0, |node| node.first_buffer)
    }

    /// Child `i` of the window's node: windowed like its parent where that alone tells which values belong to it.
    pub fn child(&self, i: usize, report: &mut Report<'_>) -> Result<Array> {
        let ty = self.tree().ty();
        let Some(child) = ty.child_index(self.node(), i) else {
            let found = ty.node(self.node()).map_or(0, |node| node.n_children);
            return Err(report
                .fail(Status::InvalidArgument, format_args!("expected a child below {found}, found {i}")));
        };
        self.open(child, report)
    }

    /// The dictionary's values, whole.
    pub fn dictionary(&self, report: &mut Report<'_>) -> Result<Array> {
        let Some(dictionary) = self.tree().ty().dictionary_index(self.node()) else {
            return Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected a dictionary-encoded array, found one without a dictionary"),
            ));
        };
        self.open(dictionary, report)
    }

    /// `length` values from `offset` on, counted in the window. Nothing is clamped.
    pub fn slice(&self, offset: i64, length: i64, report: &mut Report<'_>) -> Result<Array> {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length());
        if offset < 0 || length < 0 || !inside {
            return Err(report.fail(
                Status::InvalidArgument,
                format_args!(
                    "expected a range within {} values, found offset {offset}, length {length}",
                    self.length()
                ),
            ));
        }
        let span = Span { offset: self.offset().saturating_add(offset), length };
        let null_count = if length == self.length() { self.known_nulls() } else { -1 };
        let view = View { node: self.node(), offset: span.offset, length, null_count };
        Array::window(self.tree(), view, report)
    }

    /// Buffer `i` of the window's node and below, which stays alive without the array.
    pub fn buffer(&self, i: usize, report: &mut Report<'_>) -> Result<Buffer> {
        let Some((node, k)) = self.find_buffer(i) else {
            return Err(self.no_buffer(i, report));
        };
        self.tree().take_buffer(node, k, report)
    }

    /// The node of the tree that buffer `i` belongs to, and which of the node's buffers it is.
    pub(super) fn find_buffer(&self, i: usize) -> Option<(usize, usize)> {
        if i >= self.n_buffers() {
            return None;
        }
        let wanted = self.first_buffer().checked_add(i)?;
        let nodes = self.tree().nodes();
        // Nodes without buffers share their first buffer's number with the next one, so the last of them is right.
        let node = nodes.partition_point(|node| node.first_buffer <= wanted).checked_sub(1)?;
        Some((node, wanted.checked_sub(nodes.get(node)?.first_buffer)?))
    }

    pub(super) fn no_buffer(&self, i: usize, report: &mut Report<'_>) -> crate::error::Failed {
        let found = self.n_buffers();
        report.fail(Status::InvalidArgument, format_args!("expected a buffer below {found}, found {i}"))
    }

    /// The values of a node of the tree that belong to the window; the node lies in the window's subtree.
    pub(super) fn span(&self, node: usize) -> Option<Span> {
        if node == self.node() {
            return Some(Span { offset: self.offset(), length: self.length() });
        }
        let (tree, ty) = (self.tree(), self.tree().ty());
        let own = tree.nodes().get(node)?;
        let whole = Span { offset: own.offset, length: own.length };
        let below = ty.node(node)?;
        let parent = (below.parent as usize).checked_sub(ty.base())?;
        if below.is_dictionary {
            return Some(whole);
        }
        let per_row = match ty.node(parent)?.format {
            Format::Struct | Format::SparseUnion => 1,
            Format::FixedSizeList(size) => i64::from(size),
            _ => return Some(whole),
        };
        let above = self.span(parent)?;
        let start = above.offset.checked_mul(per_row)?;
        Some(Span { offset: own.offset.checked_add(start)?, length: above.length.checked_mul(per_row)? })
    }

    /// The numbers of a node of the tree as the window shows it; the node lies in the window's subtree.
    pub(crate) fn shown_facts(&self, node: usize) -> Option<Facts> {
        let span = self.span(node)?;
        let null_count = self.known_nulls_in(node, span);
        let whole = self.tree().facts(node)?;
        Some(Facts { length: span.length, offset: span.offset, null_count, ..whole })
    }

    fn open(&self, node: usize, report: &mut Report<'_>) -> Result<Array> {
        let Some(span) = self.span(node) else {
            return Err(too_far(self.tree(), node, report));
        };
        let null_count = self.known_nulls_in(node, span);
        Array::window(
            self.tree(),
            View { node, offset: span.offset, length: span.length, null_count },
            report,
        )
    }
}

#[cold]
fn too_far(tree: &Tree, node: usize, report: &mut Report<'_>) -> crate::error::Failed {
    let message = format_args!("expected offsets within 64 bits through all levels, found larger ones");
    report.broken(Rule::A1, &tree.ty().path(node), message)
}
