//! What a consumer wants to be otherwise.

use super::Repairs;
use crate::array::Array;
use crate::tree::{Need, Tree, need};
use crate::types::{Format, Role, Type};
use crate::validate::options::Profile;
use crate::validate::profile;

/// A consumer and what may be done for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub profile: Profile,
    pub repairs: Repairs,
}

/// Bytes that libcudf reads a validity bitmap by.
const MASK_WORD: usize = 4;
/// Bytes that libcudf takes a validity bitmap to be a multiple of.
const MASK_PADDING: i64 = 64;

impl Wanted {
    /// The format that node `i` is to have, when it is another than it has. `values` is the length of its dictionary.
    pub(super) fn format(&self, ty: &Type, i: usize, values: i64) -> Option<Format> {
        let node = ty.node(i)?;
        let wide = |narrow: Format, wide: Format| if values > i64::from(i32::MAX) { wide } else { narrow };
        if node.has_dictionary() {
            let is_taken = profile::takes_index(self.profile, node.format);
            return (!is_taken).then(|| wide(Format::Int32, Format::Int64));
        }
        let Repairs { to_offsets, to_views, .. } = self.repairs;
        let takes = |format: Format| profile::takes_list(self.profile, format);
        match node.format {
            Format::Utf8View if to_offsets => Some(Format::Utf8),
            Format::BinaryView if to_offsets => Some(Format::Binary),
            Format::Utf8 | Format::LargeUtf8 if to_views => Some(Format::Utf8View),
            Format::Binary | Format::LargeBinary if to_views => Some(Format::BinaryView),
            Format::List if to_views && takes(Format::ListView) => Some(Format::ListView),
            Format::LargeList if to_views && takes(Format::LargeListView) => Some(Format::LargeListView),
            format @ (Format::ListView | Format::LargeListView) if to_offsets || !takes(format) => {
                Some(Format::List)
            }
            format @ (Format::LargeList | Format::FixedSizeList(_)) if !takes(format) => Some(Format::List),
            _ => None,
        }
    }

    /// Whether the root's nulls are to go into its children.
    pub(super) fn merges_root(&self, array: &Array, ty: &Type) -> bool {
        self.repairs.as_table
            && ty.root_node().format == Format::Struct
            && array.known_nulls() != 0
            && array.tree().null_count(array.node()) != 0
    }

    /// Whether node `i` needs no copy.
    pub(super) fn is_fine(&self, array: &Array, ty: &Type, i: usize) -> bool {
        let tree = array.tree();
        let of = array.node().saturating_add(i);
        let values = dictionary_length(tree, ty, array.node(), i);
        let count = tree.nodes().get(of).map_or(0, |node| node.n_buffers);
        self.format(ty, i, values).is_none()
            && (0..count).all(|k| {
                let Some(slot) = tree.slot(of, k) else { return true };
                let Some(node) = tree.nodes().get(of) else { return true };
                let format = ty.node(i).map_or(Format::Null, |node| node.format);
                let placed = Placed { address: tree.buffer(of, k).addr(), stated: tree.stated_size(of, k) };
                let needed = match need(&slot, node.offset, node.length, 0) {
                    Need::Bytes(bytes) => bytes,
                    _ => 0,
                };
                self.is_placed(slot.role, format.alignment(&slot), placed, needed)
            })
    }

    /// Whether a buffer is where the consumer reads it well, and as long. `needed` are the bytes that there have to be.
    pub(super) fn is_placed(&self, role: Role, align: usize, buffer: Placed, needed: i64) -> bool {
        let is_mask = role == Role::Validity && self.profile != Profile::Spec;
        let align = if is_mask { MASK_WORD } else { align };
        // Where nobody said how long a bitmap is, it is taken to be no longer than it has to be.
        let size = if buffer.stated < 0 { needed } else { buffer.stated };
        let is_padded = !is_mask || size.checked_rem(MASK_PADDING).is_none_or(|rest| rest == 0);
        buffer.address == 0 || (buffer.address.checked_rem(align).unwrap_or(0) == 0 && is_padded)
    }
}

/// Where a buffer is, and how long somebody said that it is, -1 when nobody did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub address: usize,
    pub stated: i64,
}

/// The length of the dictionary of node `i`, 0 when it has none.
pub(super) fn dictionary_length(tree: &Tree, ty: &Type, base: usize, i: usize) -> i64 {
    let values = ty.dictionary_index(i).and_then(|values| tree.nodes().get(base.saturating_add(values)));
    values.map_or(0, |node| node.length)
}
