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
    let has_sizes = !block.sizes.is_null();
    let (release, end) = (own_release(), root.offset.wrapping_add(root.length));
    // SAFETY: the block has a node for each of the type's, a child pointer for each but the root, and so far as nodes have two buffers,
    // two addresses for each, and sizes where the block has any.
    unsafe {
        let mut column = block.nodes.add(1);
        let mut link = root.children;
        let mut addresses = block.pointers.add(1);
        let mut sizes = block.sizes.wrapping_add(1);
        for node in columns {
            if !core::ptr::eq(link.read().cast_const().cast(), column)
                || !is_plain_column(&*column, node.leaf_bits, release, addresses)
                || (*column).array.length < end
                || (has_sizes && !is_large_enough(&(*column).array, node.leaf_bits, addresses, sizes))
            {
                return false;
            }
            (column, link) = (column.add(1), link.add(1));
            (addresses, sizes) = (addresses.add(2), sizes.wrapping_add(2));
        }
    }
    true
}

/// Whether length and offset are not negative, and small enough for all sizes to be far from overflow.
#[inline(always)]
fn is_small(array: &ArrowArray) -> bool {
    (array.length | array.offset).cast_unsigned() >> 30 == 0
}

/// Whether a node of ours is a column of values `bits` wide, and as it was put into its block: a bitmap and values at these addresses,
/// and nothing below.
#[inline(always)]
unsafe fn is_plain_column(
    own: &ExportNode,
    bits: u32,
    release: usize,
    addresses: *const *const c_void,
) -> bool {
    let array = &own.array;
    bits != 0
        && own.n_buffers == 2
        && array.n_buffers == 2
        && array.n_children == 0
        && array.dictionary.is_null()
        && array.release.is_some_and(|found| found as usize == release)
        && core::ptr::eq(array.private_data.cast_const().cast(), own)
        && core::ptr::eq(array.buffers.cast_const(), addresses)
        && is_small(array)
        && array.null_count.cast_unsigned() <= array.length.cast_unsigned()
        // SAFETY: the caller says that a node with two buffers has two addresses there.
        && unsafe { !addresses.add(1).read().is_null() && (array.null_count == 0 || !addresses.read().is_null()) }
}

/// Whether a bitmap, when there is one, and values that are `bits` wide are as large as they have to be. Unknown sizes are.
#[inline(always)]
unsafe fn is_large_enough(
    array: &ArrowArray,
    bits: u32,
    addresses: *const *const c_void,
    sizes: *const i64,
) -> bool {
    let rows = array.offset.wrapping_add(array.length).cast_unsigned();
    let needed = rows.wrapping_mul(u64::from(bits)).wrapping_add(7) >> 3;
    // SAFETY: the caller has an address and a size for each of two buffers. An unknown size is negative, and so is larger than any.
    unsafe {
        sizes.add(1).read().cast_unsigned() >= needed
            && (sizes.read().cast_unsigned() >= rows.wrapping_add(7) >> 3 || addresses.read().is_null())
    }
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
