//! Exports of ours that go on as they are: whether a struct still is what was written out.

use super::ExportedArray;
use super::export::{Block, Entry, ExportNode, own_node, own_release};
use super::import::Walk;
use super::imported::Draft;
use crate::abi::{ArrowArray, ArrowDeviceArray, Device};
use crate::device::{check_foreign, has_event_handles};
use crate::error::{Report, Result};
use crate::memory::{Event, Place};
use crate::types::{Format, Type, TypeNode};

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
        if raw.reserved != [0; 3] {
            return Ok(false);
        }
        // SAFETY: as the caller promises; the node is the root's.
        if raw.sync_event.is_null() && unsafe { is_plain_batch(own, raw, ty) } {
            return Ok(true);
        }
        let device = Device { r#type: raw.device_type, id: raw.device_id };
        if check_foreign(device, raw.sync_event, report)? != device {
            return Ok(false);
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
    // SAFETY: the block has a node for each of the type's and a child pointer for each but the root.
    unsafe {
        match (block.sizes.is_null(), block.entries.is_null()) {
            (true, _) => are_plain_columns::<0>(block, columns, root),
            (_, true) => are_plain_columns::<{ size_of::<i64>() }>(block, columns, root),
            (_, false) => are_plain_columns::<{ size_of::<Entry>() }>(block, columns, root),
        }
    }
}

/// Whether the children are columns as they were put into the block, each with a bitmap and values and nothing below, and as long as
/// the root asks for. With `STEP`, the block has sizes, each so many bytes after the one before.
///
/// # Safety
/// The block is live, has a root with one buffer and a node for each of the columns, and the root a child pointer for each.
#[inline(never)]
unsafe fn are_plain_columns<const STEP: usize>(
    block: &Block,
    columns: &[TypeNode],
    root: &ArrowArray,
) -> bool {
    let (release, end) = (own_release(), root.offset.wrapping_add(root.length));
    // What has to be zero, and what has to be small, in any column.
    let (mut others, mut numbers) = (0usize, 0u64);
    // SAFETY: as the caller promises. A node's list has as many addresses as the node has buffers, and where the block has sizes, it
    // has one for each of them.
    unsafe {
        let mut column = block.nodes.add(1);
        let mut link = root.children;
        let mut sizes = block.sizes.wrapping_byte_add(STEP);
        for node in columns {
            let array = &(*column).array;
            if node.leaf_bits == 0 || !core::ptr::eq(link.read().cast_const().cast(), column) {
                return false;
            }
            if array.release.map_or(0, |found| found as usize) != release {
                return false;
            }
            if !core::ptr::eq(array.private_data.cast_const().cast(), column) {
                return false;
            }
            let list = array.buffers.cast_const();
            if (*column).n_buffers != 2 || array.n_buffers != 2 || !core::ptr::eq(list, (*column).list) {
                return false;
            }
            others |= array.dictionary.addr() | (array.n_children as usize);
            let (length, null_count) = (array.length, array.null_count.cast_unsigned());
            numbers |= length.cast_unsigned() | array.offset.cast_unsigned();
            if length < end || null_count > length.cast_unsigned() || list.add(1).read().is_null() {
                return false;
            }
            let rows = array.offset.wrapping_add(length).cast_unsigned();
            // An unknown size is negative, and so is larger than any.
            if list.read().is_null() {
                if null_count != 0 {
                    return false;
                }
            } else if STEP != 0 && sizes.read().cast_unsigned() < rows.wrapping_add(7) >> 3 {
                return false;
            }
            if STEP != 0 {
                let needed = rows.wrapping_mul(u64::from(node.leaf_bits)).wrapping_add(7) >> 3;
                if sizes.byte_add(STEP).read().cast_unsigned() < needed {
                    return false;
                }
                sizes = sizes.byte_add(STEP).byte_add(STEP);
            }
            (column, link) = (column.add(1), link.add(1));
        }
    }
    // Where all numbers are small, no size that was worked out of them overflowed.
    others == 0 && numbers >> 30 == 0
}

/// Whether length and offset are not negative, and small enough for all sizes to be far from overflow.
#[inline(always)]
fn is_small(array: &ArrowArray) -> bool {
    (array.length | array.offset).cast_unsigned() >> 30 == 0
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
