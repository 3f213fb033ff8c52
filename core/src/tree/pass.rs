//! Exports of ours that go on as they are: whether a struct still is what was written out.

use super::ExportedArray;
use core::ffi::c_void;

use super::export::{ExportNode, own_node, own_release};
use super::import::Walk;
use super::imported::Draft;
use crate::abi::{ArrowArray, ArrowDeviceArray, Device};
use crate::device::{check_foreign, has_event_handles};
use crate::error::{Report, Result};
use crate::memory::{Event, Place};
use crate::types::{Format, Type};

/// Looks at structs of one type, again and again in the same memory.
#[derive(Debug, Default)]
pub struct PassOn {
    draft: Option<Draft>,
}

impl PassOn {
    /// Whether a live struct is one of ours that nobody changed, and so as strict as anything that is exported. Its
    /// structure is checked by the type, as an import does.
    ///
    /// # Safety
    /// As [`import`](super::import::import) has it.
    pub unsafe fn is_strict(
        &mut self,
        raw: &ArrowDeviceArray,
        ty: &Type,
        report: &mut Report<'_>,
    ) -> Result<bool> {
        // SAFETY: as the caller promises.
        let Some(own) = (unsafe { own_node(&raw.array) }) else { return Ok(false) };
        let device = Device { r#type: raw.device_type, id: raw.device_id };
        if check_foreign(device, raw.sync_event, report)? != device || raw.reserved != [0; 3] {
            return Ok(false);
        }
        // SAFETY: as the caller promises; the node is the root's.
        if raw.sync_event.is_null() && unsafe { is_plain_batch(own, raw, ty) } {
            return Ok(true);
        }
        // SAFETY: the interface says that the event of such a device is a handle, and that the address leads to it.
        let event = unsafe { Event::at(raw.sync_event, has_event_handles(device.r#type)) };
        let draft = match self.draft.take() {
            Some(draft) => draft,
            None => Draft::allocate(ty.n_nodes(), 0, report)?,
        };
        let mut walk = Walk::new(ty, draft, Place { device, event }, false);
        // SAFETY: as the caller promises.
        let checked = unsafe { walk.node(&raw.array, 0, report) };
        let is_strict = walk.is_as_built();
        self.draft = Some(walk.into_draft());
        checked.map(|()| is_strict)
    }
}

/// Whether a struct is the root of a whole block of ours that nobody changed, and a struct of columns that are bitmaps and
/// values: what most streams give. It is told without writing anything down, and by no branches on a column.
///
/// # Safety
/// `own` is the node of ours that the live struct is.
unsafe fn is_plain_batch(own: &ExportNode, raw: &ArrowDeviceArray, ty: &Type) -> bool {
    let (root, Some((top, columns))) = (&raw.array, ty.nodes().split_first()) else { return false };
    let n = columns.len();
    // SAFETY: a live node's block lives.
    let block = unsafe { &*own.block };
    let is_whole = core::ptr::eq(own, block.nodes)
        // SAFETY: the node's end is in its block's table, or right behind it.
        && unsafe { own.end.offset_from_unsigned(block.nodes.cast_mut()) } == n.wrapping_add(1)
        && top.format == Format::Struct
        && top.n_children as usize == n
        && root.n_children == n as i64
        && root.n_buffers == 1
        && own.n_buffers == 1
        && root.dictionary.is_null()
        && own.is_unchanged(root)
        && core::ptr::eq(root.children, own.array.children)
        && block.device == (Device { r#type: raw.device_type, id: raw.device_id })
        && block.keep.is_none()
        && block.event.event() == Event::NONE
        && root.null_count == 0
        && is_small(root);
    if !is_whole {
        return false;
    }
    let (mut differs, mut least) = (0, i64::MAX);
    let has_sizes = !block.sizes.is_null();
    for (i, node) in columns.iter().enumerate() {
        // SAFETY: the block has a node for each of the type's, and a child pointer for each but the root; a node with two buffers
        // has two addresses, and sizes where the block has any.
        unsafe {
            let column = block.nodes.add(i.wrapping_add(1));
            let link = root.children.add(i).read();
            if (*column).n_buffers != 2 || node.leaf_bits == 0 {
                return false;
            }
            let first = (*column).first;
            let sizes = if has_sizes { block.sizes.add(first).cast::<[i64; 2]>().read() } else { [-1; 2] };
            differs |= link.addr() ^ column.addr();
            differs |= differences(&*column, block.pointers.add(first), sizes, node.leaf_bits);
            least = least.min((*column).array.length);
        }
    }
    differs == 0 && root.offset.wrapping_add(root.length) <= least
}

/// Whether length and offset are not negative, and small enough for all sizes to be far from overflow.
#[inline(always)]
fn is_small(array: &ArrowArray) -> bool {
    (array.length | array.offset).cast_unsigned() >> 30 == 0
}

/// 0 when a node of ours is as a column of values `bits` wide has to be, and as it was put into its block: a bitmap and values at
/// these addresses, both as large as they have to be, and nothing below.
#[inline(always)]
unsafe fn differences(
    own: &ExportNode,
    addresses: *const *const c_void,
    sizes: [i64; 2],
    bits: u32,
) -> usize {
    let array = &own.array;
    // SAFETY: the caller says that there are two addresses.
    let (validity, data) = unsafe { (addresses.read().addr(), addresses.add(1).read().addr()) };
    let release = array.release.map_or(0, |release| release as usize);
    let numbers = (array.n_buffers ^ 2 | array.n_children).cast_unsigned();
    let rows = array.offset.wrapping_add(array.length).cast_unsigned();
    let needed = rows.wrapping_mul(u64::from(bits)).wrapping_add(7) >> 3;
    let nulls = array.null_count.cast_unsigned();
    // An unknown size is negative, and so is larger than any.
    let [of_bits, of_data] = sizes.map(i64::cast_unsigned);
    let is_wrong = (nulls > array.length.cast_unsigned())
        | (data == 0)
        | (nulls.min(1) as usize > validity)
        | ((of_bits < rows.wrapping_add(7) >> 3) & (validity != 0))
        | (of_data < needed);
    (release ^ own_release())
        | (array.private_data.addr() ^ core::ptr::from_ref(own).addr())
        | (array.buffers.addr() ^ addresses.addr())
        | array.dictionary.addr()
        | (numbers | (array.length | array.offset).cast_unsigned() >> 30) as usize
        | usize::from(is_wrong)
}

impl ExportedArray {
    /// Takes a live struct of ours over again.
    ///
    /// # Safety
    /// The struct is one that [`ExportedArray::into_raw`] gave, wherever it was moved.
    pub unsafe fn from_raw(raw: ArrowDeviceArray) -> Self {
        Self(raw)
    }
}
