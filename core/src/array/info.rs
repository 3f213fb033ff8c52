//! What an array consists of, node by node and buffer by buffer. Nothing here allocates or reads a buffer.

use core::ffi::{c_char, c_void};

use crate::abi::Device;
use crate::error::{Report, Result, Status};
use crate::tree::Array;
use crate::types::{DataType, Extent, Role};

/// The number of no node.
pub const NO_NODE: usize = usize::MAX;

/// One node of an array, as its window shows it.
///
/// Nodes are numbered depth first from the array's own, which is 0: a node, its children, then its dictionary. Length
/// and offset are those of the window, with every parent's window already applied: the node's values are those from
/// `offset` on in its own buffers. Strings live as long as the array.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NodeInfo {
    /// Size of this struct in the caller's build; the only member that is read.
    pub struct_size: usize,
    /// The node above, `SIZE_MAX` for node 0.
    pub parent: usize,
    /// The first child, `SIZE_MAX` when there is none; the next one is at that child's `subtree_end`.
    pub first_child: usize,
    /// Number of children.
    pub n_children: usize,
    /// The node of the dictionary's values, `SIZE_MAX` when the node is not dictionary-encoded.
    pub dictionary: usize,
    /// The node after this one's subtree.
    pub subtree_end: usize,
    /// Format string.
    pub format: *const c_char,
    /// Name; never NULL.
    pub name: *const c_char,
    /// Flags of the schema.
    pub flags: i64,
    /// Number of values.
    pub length: i64,
    /// Physical index of the first.
    pub offset: i64,
    /// Number of nulls among them, -1 when it is not known without reading a buffer.
    pub null_count: i64,
    /// The node's first buffer.
    pub first_buffer: usize,
    /// Number of the node's own buffers.
    pub n_buffers: usize,
}

/// One buffer of an array.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BufferInfo {
    /// Size of this struct in the caller's build; the only member that is read.
    pub struct_size: usize,
    /// The node that the buffer belongs to.
    pub node: usize,
    /// What it is for, a `BOWSTRING_ROLE_*`.
    pub role: i32,
    /// Type of an element; 1 bit wide in bitmaps.
    pub element: DataType,
    /// Start of the buffer, on the array's device; NULL when it has no bytes.
    pub data: *const c_void,
    /// Elements in the whole buffer, -1 when unknown.
    pub n_elements: i64,
    /// First element that the window shows; 0 where only other buffers tell, as for the bytes of strings.
    pub first: i64,
    /// Number of elements that the window shows, one more than the length for offsets; where only other buffers tell,
    /// all of them; -1 when unknown.
    pub count: i64,
    /// Readable bytes from `data`, -1 when unknown.
    pub size_bytes: i64,
    /// In buffers of bits, the bit within byte `first / 8` at which the window starts; else 0.
    pub bit_offset: i64,
    /// Where the buffer is: on the array's device, but for sizes that the library built, which are in CPU memory.
    pub device: Device,
}

impl Array {
    /// Node `i`, counted from the window's own.
    pub fn node_info(&self, i: usize, report: &mut Report<'_>) -> Result<NodeInfo> {
        let (tree, ty) = (self.tree(), self.tree().ty());
        let index = self.node().saturating_add(i);
        let inside = i < self.n_nodes();
        let (Some(node), Some(own), Some(span), true) =
            (ty.node(index), tree.nodes().get(index), self.span(index), inside)
        else {
            let message = format_args!("expected a node below {}, found {i}", self.n_nodes());
            return Err(report.fail(Status::InvalidArgument, message));
        };
        let relative = |n: Option<usize>| n.map_or(NO_NODE, |n| n.saturating_sub(self.node()));
        let parent = (node.parent as usize).checked_sub(ty.base()).filter(|_| i != 0);
        Ok(NodeInfo {
            struct_size: size_of::<NodeInfo>(),
            parent: relative(parent),
            first_child: relative(ty.child_index(index, 0)),
            n_children: node.n_children as usize,
            dictionary: relative(ty.dictionary_index(index)),
            subtree_end: relative((node.subtree_end as usize).checked_sub(ty.base())),
            format: ty.format_ptr(index),
            name: ty.name_ptr(index),
            flags: node.flags,
            length: span.length,
            offset: span.offset,
            null_count: self.known_nulls_in(index, span),
            first_buffer: own.first_buffer.saturating_sub(self.first_buffer()),
            n_buffers: own.n_buffers,
        })
    }

    /// Buffer `i`, counted from the window's first.
    pub fn buffer_info(&self, i: usize, report: &mut Report<'_>) -> Result<BufferInfo> {
        let tree = self.tree();
        let found = self.find_buffer(i).and_then(|(node, k)| {
            Some((node, k, tree.slot(node, k)?, self.span(node)?, tree.nodes().get(node)?))
        });
        let Some((node, k, slot, span, own)) = found else { return Err(self.no_buffer(i, report)) };
        let size = tree.size(node, k);
        let rows = own.offset.saturating_add(own.length);
        // A window's share of what only other buffers tell is not looked up here: the whole is shown.
        let whole = match i64::try_from(slot.bits) {
            Ok(bits) if bits > 0 && size >= 0 => size.saturating_mul(8).checked_div(bits).unwrap_or(-1),
            _ => size,
        };
        let (n_elements, first, count) = match slot.extent {
            Extent::Rows => (rows, span.offset, span.length),
            Extent::RowsPlusOne => {
                let n = whole.min(rows.saturating_add(1));
                let end = span.offset.saturating_add(span.length).saturating_add(1).min(n);
                (n, span.offset.min(n), end.saturating_sub(span.offset).max(0))
            }
            Extent::VariadicCount => {
                let n = i64::try_from(own.n_buffers.saturating_sub(3)).unwrap_or(i64::MAX);
                (n, 0, n)
            }
            Extent::LastOffset | Extent::VariadicSize => (whole, 0, whole),
        };
        let is_null = tree.buffer(node, k).is_null();
        let is_packed = slot.bits == 1 && !is_null;
        Ok(BufferInfo {
            struct_size: size_of::<BufferInfo>(),
            node: node.saturating_sub(self.node()),
            role: slot.role as i32,
            element: slot.element,
            data: tree.buffer(node, k),
            n_elements: if is_null && slot.role == Role::Validity { 0 } else { n_elements },
            first: if is_null && slot.role == Role::Validity { 0 } else { first },
            count: if is_null && slot.role == Role::Validity { 0 } else { count },
            size_bytes: size,
            bit_offset: if is_packed { first & 7 } else { 0 },
            device: tree.device_of(node, k),
        })
    }
}
