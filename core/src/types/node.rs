//! A parsed schema: its nodes in one block, and a handle on one of them.

use core::ffi::c_char;
use core::fmt::{self, Display};
use core::mem::ManuallyDrop;

use super::format::{Format, timezone, union_ids};
use super::layout::Layout;
use super::path::Path;
use super::{IGNORE_METADATA, IGNORE_NAMES, IGNORE_NULLABLE, NONE};
use crate::abi::{FLAG_DICTIONARY_ORDERED, FLAG_MAP_KEYS_SORTED, FLAG_NULLABLE};
use crate::memory::Shared;

/// Where a string lies in a block's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub at: u32,
    pub length: u32,
}

impl Range {
    pub(super) const EMPTY: Range = Range { at: 0, length: 0 };

    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        self.find(bytes).unwrap_or_default()
    }

    fn find(self, bytes: &[u8]) -> Option<&[u8]> {
        bytes.get(usize::try_from(self.at).ok()?..)?.get(..usize::try_from(self.length).ok()?)
    }
}

/// The strings and metadata of a type's nodes, for who asks for those of many.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a>(&'a [u8]);

impl Texts<'_> {
    /// The format string of a node of the type, with its terminator.
    #[inline]
    pub fn format_ptr(self, node: &TypeNode) -> *const c_char {
        self.text_ptr(node.format_text)
    }

    /// The name of a node of the type, with its terminator.
    #[inline]
    pub fn name_ptr(self, node: &TypeNode) -> *const c_char {
        self.text_ptr(node.name)
    }

    /// The encoded metadata of a node of the type; NULL when it has none.
    #[inline]
    pub fn metadata_ptr(self, node: &TypeNode) -> *const c_char {
        if node.metadata.length == 0 {
            return core::ptr::null();
        }
        node.metadata.find(self.0).map_or(core::ptr::null(), |bytes| bytes.as_ptr().cast())
    }

    #[inline]
    fn text_ptr(self, range: Range) -> *const c_char {
        // The slice runs to the end of the block, because the terminator must be reachable through the pointer.
        let text = self.0.get(wide(range.at)..);
        text.filter(|text| !text.is_empty()).map_or(c"".as_ptr(), |text| text.as_ptr().cast())
    }
}

/// One node of a parsed schema. All numbers of nodes are those of the whole block.
#[derive(Debug, Clone, Copy)]
pub struct TypeNode {
    /// What the node holds.
    pub format: Format,
    /// The buffers that an array of the node has.
    pub layout: Layout,
    /// The schema's flags, unknown bits included.
    pub flags: i64,
    /// The node itself.
    pub index: u32,
    /// The node above, `NONE` for the root of the block.
    pub parent: u32,
    /// Number of children.
    pub n_children: u32,
    /// Where the children's numbers start in the block's table of indices.
    pub first_child_slot: u32,
    /// The dictionary's values, `NONE` when the node is not dictionary-encoded.
    pub dictionary: u32,
    /// The node after this one's subtree.
    pub subtree_end: u32,
    /// The bits of a value where a bitmap and the values, one a row, are all that the node has; else 0. Most nodes are
    /// like that, and are told by this number alone.
    pub leaf_bits: u32,
    /// Whether the node is its parent's dictionary.
    pub is_dictionary: bool,
    pub(super) format_text: Range,
    pub(super) name: Range,
    pub(super) metadata: Range,
}

impl TypeNode {
    pub(super) const BLANK: TypeNode = TypeNode {
        format: Format::Null,
        layout: Layout::EMPTY,
        flags: 0,
        index: 0,
        parent: NONE,
        n_children: 0,
        first_child_slot: 0,
        dictionary: NONE,
        subtree_end: 0,
        leaf_bits: 0,
        is_dictionary: false,
        format_text: Range::EMPTY,
        name: Range::EMPTY,
        metadata: Range::EMPTY,
    };

    /// Whether the node's flags allow nulls.
    #[inline]
    pub const fn is_nullable(&self) -> bool {
        self.flags & FLAG_NULLABLE != 0
    }

    /// Whether the node holds the indices of a dictionary.
    #[inline]
    pub const fn has_dictionary(&self) -> bool {
        self.dictionary != NONE
    }

    /// The flags that say something about a node like this one.
    const fn meaningful_flags(&self) -> i64 {
        let ordered = if self.has_dictionary() { FLAG_DICTIONARY_ORDERED } else { 0 };
        let sorted = if matches!(self.format, Format::Map) { FLAG_MAP_KEYS_SORTED } else { 0 };
        self.flags & (FLAG_NULLABLE | ordered | sorted)
    }
}

/// What a block of nodes says about itself.
#[derive(Debug, Clone, Copy)]
pub struct TypeHeader {
    /// The largest number of nodes on the way from the root to a leaf, both counted.
    pub depth: u32,
}

/// A type: a handle on one node of a parsed schema, which keeps the whole of it alive.
///
/// Methods that take a node count from this one: 0 is the node itself, its subtree follows depth first, children before
/// the dictionary. A number that is out of range gives `None`, or "" or NULL.
#[derive(Clone)]
pub struct Type {
    block: Shared<TypeHeader, TypeNode>,
    node: u32,
    /// The node after this one's subtree, kept here because it is asked for with every node.
    end: u32,
}

static BLANK: TypeNode = TypeNode::BLANK;

#[inline]
pub(super) fn wide(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

impl Type {
    /// The handle on node `node` of a block.
    #[inline]
    pub fn from_parts(block: Shared<TypeHeader, TypeNode>, node: u32) -> Self {
        let end = block.items().get(wide(node)).map_or(node, |node| node.subtree_end);
        Self { block, node, end }
    }

    /// The block and the number of the node in it.
    pub fn into_parts(self) -> (Shared<TypeHeader, TypeNode>, u32) {
        (self.block, self.node)
    }

    /// The number of nodes, this one and all below it.
    #[inline]
    pub fn n_nodes(&self) -> usize {
        wide(self.end.saturating_sub(self.node))
    }

    /// Node `i`.
    #[inline]
    pub fn node(&self, i: usize) -> Option<&TypeNode> {
        // What is beyond this subtree belongs to another.
        if i < self.n_nodes() { self.block.items().get(self.base().wrapping_add(i)) } else { None }
    }

    /// This node.
    #[inline]
    pub fn root_node(&self) -> &TypeNode {
        self.block.items().get(self.base()).unwrap_or(&BLANK)
    }

    /// The number of this node in its block.
    #[inline]
    pub fn base(&self) -> usize {
        wide(self.node)
    }

    /// This node and all below it; the numbers inside are those of the whole block.
    #[inline]
    pub fn nodes(&self) -> &[TypeNode] {
        self.block.items().get(self.base()..wide(self.end)).unwrap_or_default()
    }

    /// The node that is child `i` of node `parent`.
    #[inline]
    pub fn child_index(&self, parent: usize, i: usize) -> Option<usize> {
        let node = self.node(parent)?;
        if i >= wide(node.n_children) {
            return None;
        }
        let slot = wide(node.first_child_slot).checked_add(i)?;
        wide(*self.block.indices().get(slot)?).checked_sub(self.base())
    }

    /// The numbers of the children of a node of the type, as they are in the whole block.
    #[inline]
    pub fn children_of(&self, node: &TypeNode) -> &[u32] {
        let first = wide(node.first_child_slot);
        self.block.indices().get(first..first.wrapping_add(wide(node.n_children))).unwrap_or_default()
    }

    /// The node that is the dictionary of node `parent`.
    #[inline]
    pub fn dictionary_index(&self, parent: usize) -> Option<usize> {
        let node = self.node(parent)?;
        if !node.has_dictionary() {
            return None;
        }
        wide(node.dictionary).checked_sub(self.base())
    }

    /// The type of child `i`.
    pub fn child(&self, i: usize) -> Option<Type> {
        self.at(self.child_index(0, i)?)
    }

    /// The type of the dictionary's values.
    pub fn dictionary(&self) -> Option<Type> {
        self.at(self.dictionary_index(0)?)
    }

    /// The type of node `i`.
    #[inline]
    pub fn at(&self, i: usize) -> Option<Type> {
        let node = self.node(i)?;
        Some(Type { block: self.block.clone(), node: node.index, end: node.subtree_end })
    }

    /// Whether both are handles on the same node of the same block.
    #[inline]
    pub fn is_same(&self, other: &Type) -> bool {
        self.node == other.node && self.block.same_block(&other.block)
    }

    /// The largest number of nodes on the way from the root of the block to a leaf.
    #[inline]
    pub fn block_depth(&self) -> u32 {
        self.block.header().depth
    }

    /// The format string of node `i`.
    #[inline]
    pub fn format_text(&self, i: usize) -> &[u8] {
        self.node(i).map_or(&[], |node| node.format_text.of(self.block.bytes()))
    }

    /// The name of node `i`: any bytes but NUL.
    #[inline]
    pub fn name(&self, i: usize) -> &[u8] {
        self.node(i).map_or(&[], |node| node.name.of(self.block.bytes()))
    }

    /// The encoded metadata of node `i`, when it has pairs.
    #[inline]
    pub fn metadata(&self, i: usize) -> Option<&[u8]> {
        self.node(i).map(|node| node.metadata.of(self.block.bytes())).filter(|bytes| !bytes.is_empty())
    }

    /// The strings and metadata of the type's nodes as pointers, valid as long as the block.
    #[inline]
    pub fn texts(&self) -> Texts<'_> {
        Texts(self.block.bytes())
    }

    /// The format string of node `i` with its terminator, valid as long as the block.
    #[inline]
    pub fn format_ptr(&self, i: usize) -> *const c_char {
        self.node(i).map_or(c"".as_ptr(), |node| self.texts().format_ptr(node))
    }

    /// The name of node `i` with its terminator, valid as long as the block.
    #[inline]
    pub fn name_ptr(&self, i: usize) -> *const c_char {
        self.node(i).map_or(c"".as_ptr(), |node| self.texts().name_ptr(node))
    }

    /// The encoded metadata of node `i`, valid as long as the block; NULL when it has none.
    #[inline]
    pub fn metadata_ptr(&self, i: usize) -> *const c_char {
        self.node(i).map_or(core::ptr::null(), |node| self.texts().metadata_ptr(node))
    }

    /// The address of this node, which stands for the handle in C.
    #[inline]
    pub fn address(&self) -> *const TypeNode {
        self.block.item_address(self.base())
    }

    /// The place of node `i` as text: `$` is this node, `$.a.item` a child of a child, `$.b<dictionary>` values.
    pub fn path(&self, i: usize) -> impl Display + '_ {
        let node = self.node(i).map_or(self.node, |node| node.index);
        Path { nodes: self.block.items(), bytes: self.block.bytes(), root: self.node, node }
    }

    /// Whether both types are the same, but for what `flags` (`IGNORE_*`) leave out.
    ///
    /// Formats count by what they mean, flags by whether they mean something at their node, metadata by its bytes.
    pub fn equals(&self, other: &Type, flags: u32) -> bool {
        self.is_same(other)
            || self.n_nodes() == other.n_nodes()
                && (0..self.n_nodes()).all(|i| self.node_equals(other, i, flags))
    }

    fn node_equals(&self, other: &Type, i: usize, flags: u32) -> bool {
        let (Some(a), Some(b)) = (self.node(i), other.node(i)) else { return false };
        let kept = if flags & IGNORE_NULLABLE != 0 { !FLAG_NULLABLE } else { !0 };
        let same_tree = a.n_children == b.n_children
            && a.subtree_end.wrapping_sub(a.index) == b.subtree_end.wrapping_sub(b.index)
            && a.has_dictionary() == b.has_dictionary();
        same_tree
            && a.format == b.format
            && (a.meaningful_flags() ^ b.meaningful_flags()) & kept == 0
            && timezone(self.format_text(i)) == timezone(other.format_text(i))
            && (!a.format.is_union() || union_ids(self.format_text(i)).eq(union_ids(other.format_text(i))))
            && (flags & IGNORE_NAMES != 0 || self.name(i) == other.name(i))
            && (flags & IGNORE_METADATA != 0 || self.metadata(i) == other.metadata(i))
    }
}

impl AsRef<Type> for Type {
    fn as_ref(&self) -> &Type {
        self
    }
}

impl AsRef<Type> for ManuallyDrop<Type> {
    fn as_ref(&self) -> &Type {
        self
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Type(")?;
        self.to_text(f)?;
        f.write_str(")")
    }
}

impl Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_text(f)
    }
}
