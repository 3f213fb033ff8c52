//! The block that an exported tree of arrays is: header, nodes, child pointers, buffer pointers and entries at once.
//! A [`Writer`](super::Writer) fills it.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;

use super::Array;
use super::release::{BlockNode, release_in_place};
use crate::abi::{ArrowArray, ArrowDeviceArray, Device};
use crate::memory::counts::take_off;
use crate::memory::{Counted, CountedOps, Event, EventCell, Held, Kind, Owner, Place, counts, mark};

/// A live array of ours, released when it is dropped.
#[derive(Debug)]
pub struct ExportedArray(pub(super) ArrowDeviceArray);

#[repr(C)]
pub(super) struct ExportNode {
    pub(super) array: ArrowArray,
    pub(super) block: *mut Block,
    pub(super) end: *mut ExportNode,
    /// The node's buffer addresses among the block's.
    pub(super) list: *const *const c_void,
    /// Number of buffers; the one in the struct is the consumer's to change.
    pub(super) n_buffers: usize,
}

/// One buffer that was handed over, and who owns and who uses it.
#[repr(C)]
pub(super) struct Entry {
    pub(super) counted: Counted,
    pub(super) block: *mut Block,
    pub(super) held: Held,
}

#[repr(C)]
pub(super) struct Block {
    pub(super) mark: *const u8,
    pub(super) device: Device,
    pub(super) nodes: *const ExportNode,
    /// Every node's buffer addresses.
    pub(super) pointers: *const *const c_void,
    /// One entry a buffer; NULL in a block without entries.
    pub(super) entries: *mut Entry,
    /// One size a buffer, each so many bytes after the one before; NULL in a block without sizes.
    pub(super) sizes: *const i64,
    pub(super) size_step: usize,
    /// Where sizes that were built for this block lie.
    pub(super) built: core::ops::Range<*const i64>,
    /// The live nodes as one, and each reference to an entry.
    pub(super) memory: AtomicUsize,
    /// Nodes not yet released.
    pub(super) live: AtomicUsize,
    /// The live nodes as one, and each reference to an entry without an owner of its own.
    pub(super) users: AtomicUsize,
    pub(super) layout: Layout,
    pub(super) keep: Option<Array>,
    pub(super) owner: ManuallyDrop<Owner>,
    pub(super) event: ManuallyDrop<EventCell>,
}

pub(super) static ENTRY_OPS: CountedOps =
    CountedOps { retain: retain_entry, release: release_entry, event: entry_event, inner: entry_inner };

impl ExportedArray {
    /// The struct, which the caller now owns and must release.
    pub fn into_raw(self) -> ArrowDeviceArray {
        // SAFETY: the struct is moved out bit by bit, as the interface allows, and the original is forgotten.
        unsafe { core::ptr::read(&ManuallyDrop::new(self).0) }
    }
}

impl Drop for ExportedArray {
    fn drop(&mut self) {
        if let Some(release) = self.0.array.release {
            // SAFETY: the struct is live and ours.
            unsafe { release(&mut self.0.array) };
        }
    }
}

impl ExportNode {
    /// The size of buffer `k`, when it is known.
    pub(super) fn size(&self, k: usize) -> Option<i64> {
        // SAFETY: a live node's block lives, and has a size for each of the node's buffers when it has any.
        unsafe {
            let sizes = (*self.block).sizes;
            if sizes.is_null() {
                return None;
            }
            let ahead = self.first().wrapping_add(k).wrapping_mul((*self.block).size_step);
            Some(sizes.byte_add(ahead).read()).filter(|size| *size >= 0)
        }
    }

    /// The entry of buffer `k`, NULL in a block without entries.
    pub(super) fn entry(&self, k: usize) -> *mut Entry {
        // SAFETY: a live node's block lives, and has an entry for each of the node's buffers when it has any.
        unsafe {
            let entries = (*self.block).entries;
            if entries.is_null() { entries } else { entries.add(self.first()).add(k) }
        }
    }

    /// The number of the first buffer among the block's.
    #[inline]
    fn first(&self) -> usize {
        // SAFETY: a live node's block lives, and the node's addresses lie in its table or, when it has none, right behind it.
        unsafe { self.list.offset_from_unsigned((*self.block).pointers) }
    }

    /// The node's number in its block.
    pub(super) fn index(&self) -> usize {
        // SAFETY: a live node's block lives, and the node lies in its table.
        let ahead = unsafe { core::ptr::from_ref(self).offset_from((*self.block).nodes) };
        ahead.cast_unsigned()
    }
}

impl BlockNode<ArrowArray> for ExportNode {
    const RELEASE: unsafe extern "C" fn(*mut ArrowArray) = release_array;
    fn structure(node: *mut Self) -> *mut ArrowArray {
        node.cast()
    }
    unsafe fn end(node: *mut Self) -> *mut Self {
        // SAFETY: as the caller promises.
        unsafe { (*node).end }
    }
    unsafe fn let_go(from: *mut Self, end: *mut Self) {
        // SAFETY: as the caller promises; what nodes hold lies one after the other, as the nodes do.
        unsafe {
            let entries = (*(*from).block).entries;
            if entries.is_null() {
                return;
            }
            let last = end.sub(1);
            let stop = entries.add((*last).first()).add((*last).n_buffers);
            let mut next = entries.add((*from).first());
            while next < stop {
                Held::leave(&raw mut (*next).held);
                next = next.add(1);
            }
        }
    }
}

impl ExportNode {
    /// Whether an address is that of sizes which the library built, in CPU memory whatever the device.
    pub(super) fn is_built(&self, address: *const c_void) -> bool {
        // SAFETY: a live node's block lives.
        unsafe { (*self.block).built.contains(&address.cast()) }
    }

    /// Whether the struct of a root, which is the consumer's, still has the numbers that it was exported with.
    #[inline]
    pub(super) fn is_unchanged(&self, now: &ArrowArray) -> bool {
        let then = &self.array;
        (now.length, now.null_count, now.offset) == (then.length, then.null_count, then.offset)
    }

    /// Whether the array whose node this is still is on the device, and under the event, that it was exported with.
    pub(super) fn is_at(&self, place: &Place) -> bool {
        // SAFETY: a live node's block lives.
        let block = unsafe { &*self.block };
        let shown = block.keep.as_ref().map_or(block.event.event(), |array| array.tree().place().event);
        block.device == place.device && shown.address == place.event.address
    }
}

/// The address of the release function of every array of ours.
#[inline(always)]
pub(super) fn own_release() -> usize {
    release_array as *const () as usize
}

/// The node of ours that a live struct is, unless its producer is somebody else or its buffers were exchanged.
///
/// # Safety
/// `array` is live, and not released while the result is used.
#[inline]
pub(super) unsafe fn own_node(array: &ArrowArray) -> Option<&ExportNode> {
    if array.release.is_none_or(|release| release as usize != own_release()) {
        return None;
    }
    // SAFETY: our release function stands only beside a node of a live block of ours.
    let node = unsafe { array.private_data.cast::<ExportNode>().as_ref() }?;
    // SAFETY: a live node's block lives.
    let same_copy = unsafe { (*node.block).mark } == mark(Kind::Block);
    // A child's struct lies in the block and is the consumer's to change, so it is not asked what it was.
    let same_buffers = array.n_buffers == node.n_buffers as i64
        && (array.n_buffers == 0 || core::ptr::eq(array.buffers.cast_const(), node.list));
    (same_copy && same_buffers).then_some(node)
}

/// A reference to an entry, or to what it refers to in turn; and what a reader waits on.
///
/// # Safety
/// `entry` belongs to a node that is still live, or to a reference that is.
#[inline]
pub(super) unsafe fn refer_to(entry: *mut Entry) -> (Owner, Event) {
    // SAFETY: as the caller promises.
    unsafe {
        let event = &(*(*entry).block).event;
        if event.is_borrowed()
            && let Some(inner) = (*entry).held.owner.try_retain(event.event())
        {
            return inner;
        }
        retain_entry(&raw const (*entry).counted);
        (Owner::reference(&raw const (*entry).counted), event.event())
    }
}

pub(super) unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: a consumer calls this with a live struct of ours, wherever it was moved.
    unsafe {
        if array.is_null() || (*array).release.is_none() {
            return;
        }
        let node: *mut ExportNode = (*array).private_data.cast();
        let block = (*node).block;
        let released = release_in_place::<ArrowArray, ExportNode>(array);
        if take_off(&(*block).live, released) {
            stop_using(block);
            forget_memory(block);
        }
    }
}

/// Most references end before their node does, so this stands apart.
#[inline(never)]
unsafe fn let_owner_go(entry: *mut Entry) {
    // SAFETY: the caller was the last user.
    unsafe { ManuallyDrop::drop(&mut (*entry).held.owner) };
}

unsafe fn stop_using(block: *mut Block) {
    // SAFETY: the caller's count in `memory` keeps the block; the last user drops what the tree holds.
    unsafe {
        if take_off(&(*block).users, 1) {
            drop((*block).keep.take());
            ManuallyDrop::drop(&mut (*block).owner);
        }
    }
}

unsafe fn forget_memory(block: *mut Block) {
    // SAFETY: the last count in `memory` frees the block; every owner is gone by then.
    unsafe {
        if take_off(&(*block).memory, 1) {
            let layout = (*block).layout;
            ManuallyDrop::drop(&mut (*block).event);
            counts::BLOCKS.remove();
            std::alloc::dealloc(block.cast(), layout);
        }
    }
}

unsafe fn retain_entry(counted: *const Counted) {
    let entry: *const Entry = counted.cast();
    // SAFETY: the head is the entry's first member, and the caller keeps the entry alive.
    unsafe {
        let block = (*entry).block;
        (*block).memory.fetch_add(1, Ordering::Relaxed);
        let held = &(*entry).held;
        let users = if held.owner.is_none() { &(*block).users } else { &held.count };
        users.fetch_add(1, Ordering::Relaxed);
    }
}

unsafe fn release_entry(counted: *const Counted) {
    let entry: *mut Entry = counted.cast_mut().cast();
    // SAFETY: the head is the entry's first member, and the reference that ends here kept it alive.
    unsafe {
        let block = (*entry).block;
        if (*entry).held.owner.is_none() {
            stop_using(block);
        } else if take_off(&(*entry).held.count, 1) {
            let_owner_go(entry);
        }
        forget_memory(block);
    }
}

unsafe fn entry_event(counted: *const Counted) -> Event {
    let entry: *const Entry = counted.cast();
    // SAFETY: the head is the entry's first member, and the caller keeps the entry alive.
    unsafe { (*(*entry).block).event.event() }
}

unsafe fn entry_inner(counted: *const Counted, shown: Event) -> Option<Owner> {
    let entry: *const Entry = counted.cast();
    // SAFETY: as above.
    unsafe { if (*(*entry).block).event.keeps(shown) { None } else { (*entry).held.owner.again() } }
}
