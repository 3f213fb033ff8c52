//! The block that an exported tree of arrays is: header, nodes, child pointers, buffer pointers and entries at once.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;

use super::release::{BlockNode, release_in_place, take_off};
use super::{Array, Facts};
use crate::abi::{ArrowArray, ArrowDeviceArray, Device};
use crate::error::{Report, Result};
use crate::memory::{Counted, CountedOps, Event, EventCell, Kind, Owner, Place, Plan, counts, mark};
use crate::types::{NONE, Type, TypeNode};

/// A live array of ours, released when it is dropped.
#[derive(Debug)]
pub struct ExportedArray(ArrowDeviceArray);

/// How much a block has to hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shape {
    /// Nodes of the tree.
    pub n_nodes: usize,
    /// Buffer pointers of all nodes.
    pub n_pointers: usize,
    /// Whether buffers have owners of their own to count.
    pub has_entries: bool,
    /// Whether the sizes of buffers are known.
    pub has_sizes: bool,
    /// Sizes of variadic buffers that are built here, each node's in whole lines.
    pub n_built: usize,
}

/// Numbers of 64 bits in a line of memory.
pub const LINE: usize = 8;

/// The alignment of memory that consumers read.
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "only its size and alignment matter")] [i64; LINE]);

/// What an exported block keeps alive.
#[derive(Debug)]
pub struct Links {
    /// The array that the block shows.
    pub keep: Option<Array>,
    /// The owner of the whole tree.
    pub owner: Owner,
    /// An event that the block destroys, or that somebody else keeps alive.
    pub event: EventCell,
}

/// Fills a block. Dropped early, it frees the memory and lets nothing go.
#[derive(Debug)]
pub struct Writer {
    block: NonNull<Block>,
    nodes: *mut ExportNode,
    next_link: *mut *mut ArrowArray,
    pointers: *mut *const c_void,
    next_pointer: usize,
    entries: *mut Entry,
    sizes: *mut i64,
    built: *mut i64,
    n_built: usize,
    shape: Shape,
    layout: Layout,
}

#[repr(C)]
pub(super) struct ExportNode {
    array: ArrowArray,
    pub(super) block: *mut Block,
    end: *mut ExportNode,
    /// The first buffer's entry; NULL in a block without entries.
    pub(super) entries: *mut Entry,
    /// The first buffer's size; NULL in a block without sizes.
    sizes: *const i64,
    /// Number of buffers; the one in the struct is the consumer's to change.
    n_buffers: usize,
    pub(super) index: usize,
}

/// One buffer that was handed over, and who still uses it.
#[repr(C)]
pub(super) struct Entry {
    counted: Counted,
    block: *mut Block,
    count: AtomicUsize,
    owner: ManuallyDrop<Owner>,
}

#[repr(C)]
pub(super) struct Block {
    mark: *const u8,
    device: Device,
    /// Where sizes that were built for this block lie.
    built: core::ops::Range<*const i64>,
    /// The live nodes as one, and each reference to an entry.
    memory: AtomicUsize,
    /// Nodes not yet released.
    live: AtomicUsize,
    /// The live nodes as one, and each reference to an entry without an owner of its own.
    users: AtomicUsize,
    layout: Layout,
    pub(super) keep: Option<Array>,
    owner: ManuallyDrop<Owner>,
    event: ManuallyDrop<EventCell>,
}

static ENTRY_OPS: CountedOps =
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
        if self.sizes.is_null() {
            return None;
        }
        // SAFETY: a node's sizes lie one after the other, one a buffer, in the node's own block.
        Some(unsafe { self.sizes.add(k).read() }).filter(|size| *size >= 0)
    }
}

impl Writer {
    /// Memory for a block of that shape: one allocation.
    pub fn allocate(shape: Shape, report: &mut Report<'_>) -> Result<Self> {
        let mut plan = Plan::starting_with::<Block>();
        let n_links = shape.n_nodes.saturating_sub(1);
        let nodes = plan.array::<ExportNode>(shape.n_nodes);
        let entries = plan.array::<Entry>(if shape.has_entries { shape.n_pointers } else { 0 });
        let links = plan.array::<*mut ArrowArray>(n_links);
        let pointers = plan.array::<*const c_void>(shape.n_pointers);
        let sizes = plan.array::<i64>(if shape.has_sizes { shape.n_pointers } else { 0 });
        let built = if shape.n_built == 0 { 0 } else { plan.array::<Line>(shape.n_built.div_ceil(LINE)) };
        let (memory, layout) = plan.allocate(report)?;
        // SAFETY: the plan gave each part a place within the block.
        unsafe {
            let at = |offset: usize| memory.as_ptr().add(offset);
            let none: *mut u8 = core::ptr::null_mut();
            Ok(Self {
                block: memory.cast(),
                nodes: at(nodes).cast(),
                next_link: at(links).cast(),
                pointers: at(pointers).cast(),
                next_pointer: 0,
                entries: if shape.has_entries { at(entries).cast() } else { none.cast() },
                sizes: if shape.has_sizes { at(sizes).cast() } else { none.cast() },
                built: at(built).cast(),
                n_built: 0,
                shape,
                layout,
            })
        }
    }

    /// Keeps sizes of variadic buffers in the block and returns where they lie there, in lines of their own with zeroes
    /// behind them; NULL when the shape has no room for them.
    pub fn build_sizes(&mut self, sizes: impl Iterator<Item = i64> + Clone) -> *const c_void {
        let n = sizes.clone().count().next_multiple_of(LINE);
        if n > self.shape.n_built.saturating_sub(self.n_built) {
            return core::ptr::null();
        }
        // SAFETY: the shape made room for `n` numbers more.
        unsafe {
            let start = self.built.add(self.n_built);
            start.write_bytes(0, n);
            for (i, size) in sizes.enumerate() {
                start.add(i).write(size);
            }
            self.n_built = self.n_built.wrapping_add(n);
            start.cast_const().cast()
        }
    }

    /// Writes the list of the next node's buffer addresses: `n_buffers` of them, NULL where `from` ends before.
    #[inline]
    pub fn push_addresses(
        &mut self,
        n_buffers: usize,
        mut from: impl Iterator<Item = *const c_void>,
    ) -> &mut [*const c_void] {
        let n = n_buffers.min(self.shape.n_pointers.wrapping_sub(self.next_pointer));
        // SAFETY: the shape counted how many pointers there is room for, and all of the list is written here.
        unsafe {
            let first = self.pointers.add(self.next_pointer);
            for k in 0..n {
                first.add(k).write(from.next().unwrap_or(core::ptr::null()));
            }
            core::slice::from_raw_parts_mut(first, n)
        }
    }

    /// The list that [`Writer::push_addresses`] wrote last, as it is now.
    pub fn addresses_again(&mut self, n_buffers: usize) -> &mut [*const c_void] {
        let n = n_buffers.min(self.shape.n_pointers.wrapping_sub(self.next_pointer));
        // SAFETY: the list was written when it was pushed.
        unsafe { core::slice::from_raw_parts_mut(self.pointers.add(self.next_pointer), n) }
    }

    /// Adds the next node of `ty`, number `i` in its order, whose addresses were pushed just now.
    #[inline]
    pub fn push_node(&mut self, ty: &Type, nodes: &[TypeNode], i: usize, facts: &Facts) {
        let Some(node) = nodes.get(i) else { return };
        let n_buffers = usize::try_from(facts.n_buffers).unwrap_or(0);
        let first_pointer = self.next_pointer;
        self.next_pointer = first_pointer.wrapping_add(n_buffers).min(self.shape.n_pointers);
        let first = ty.base();
        let null: *mut u8 = core::ptr::null_mut();
        // SAFETY: the shape counted nodes, links and pointers of this very tree, and the block is not shared yet.
        unsafe {
            let slot = self.nodes.add(i);
            let at = |absolute: u32| self.nodes.add((absolute as usize).wrapping_sub(first));
            let mut children: *mut *mut ArrowArray = null.cast();
            if node.n_children > 0 {
                children = self.next_link;
                let mut child = i.wrapping_add(1);
                for _ in 0..node.n_children {
                    self.next_link.write(ExportNode::structure(self.nodes.add(child)));
                    self.next_link = self.next_link.add(1);
                    let end = nodes.get(child).map_or(0, |node| node.subtree_end as usize);
                    child = end.wrapping_sub(first);
                }
            }
            let dictionary = node.dictionary;
            slot.write(ExportNode {
                array: ArrowArray {
                    length: facts.length,
                    null_count: facts.null_count,
                    offset: facts.offset,
                    n_buffers: facts.n_buffers,
                    n_children: i64::from(node.n_children),
                    buffers: if n_buffers == 0 { null.cast() } else { self.pointers.add(first_pointer) },
                    children,
                    dictionary: if dictionary == NONE {
                        null.cast()
                    } else {
                        ExportNode::structure(at(dictionary))
                    },
                    release: Some(release_array),
                    private_data: slot.cast(),
                },
                block: self.block.as_ptr(),
                end: at(node.subtree_end),
                entries: if self.entries.is_null() { null.cast() } else { self.entries.add(first_pointer) },
                sizes: if self.sizes.is_null() { null.cast() } else { self.sizes.add(first_pointer) },
                n_buffers,
                index: i,
            });
        }
    }

    /// Sets what is known of the sizes of all buffers, in their order; -1 is unknown.
    pub fn set_sizes(&mut self, sizes: impl Iterator<Item = i64>) {
        if self.sizes.is_null() {
            return;
        }
        for (at, size) in sizes.take(self.shape.n_pointers).enumerate() {
            // SAFETY: the shape made room for a size a pointer.
            unsafe { self.sizes.add(at).write(size) };
        }
    }

    /// Gives all buffers their owners, in their order.
    pub fn set_owners(&mut self, owners: impl Iterator<Item = Owner>) {
        if self.entries.is_null() {
            return;
        }
        for (at, owner) in owners.take(self.shape.n_pointers).enumerate() {
            let entry = Entry {
                counted: Counted { ops: &ENTRY_OPS },
                block: self.block.as_ptr(),
                count: AtomicUsize::new(1),
                owner: ManuallyDrop::new(owner),
            };
            // SAFETY: the shape made room for an entry a pointer.
            unsafe { self.entries.add(at).write(entry) };
        }
    }

    /// Hands out the root. Every node, pointer and, where there are any, entry is set by now.
    ///
    /// `shown` is the address of an event that `links` keeps alive without destroying it, NULL when the block's own
    /// event counts or there is none.
    pub fn finish(self, device: Device, shown: *mut c_void, links: Links) -> ExportedArray {
        let this = ManuallyDrop::new(self);
        let block = this.block.as_ptr();
        // SAFETY: the block is not shared yet, and its nodes were written.
        unsafe {
            block.write(Block {
                mark: mark(Kind::Block),
                device,
                built: this.built.cast_const()..this.built.add(this.n_built).cast_const(),
                memory: AtomicUsize::new(1),
                live: AtomicUsize::new(this.shape.n_nodes),
                users: AtomicUsize::new(1),
                layout: this.layout,
                keep: links.keep,
                owner: ManuallyDrop::new(links.owner),
                event: ManuallyDrop::new(links.event),
            });
            counts::BLOCKS.add();
            let own_event = (*block).event.event();
            ExportedArray(ArrowDeviceArray {
                array: core::ptr::read(&raw const (*this.nodes).array),
                device_id: device.id,
                device_type: device.r#type,
                sync_event: if own_event == Event::NONE { shown } else { own_event.address },
                reserved: [0; 3],
            })
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SAFETY: nothing was shared yet, so the memory is this writer's alone.
        unsafe { std::alloc::dealloc(self.block.cast().as_ptr(), self.layout) };
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
    unsafe fn let_go(node: *mut Self) {
        // SAFETY: as the caller promises; a node's entries lie one after the other.
        unsafe {
            if (*node).entries.is_null() {
                return;
            }
            for entry in (0..(*node).n_buffers).map(|k| (*node).entries.add(k)) {
                if !(*entry).owner.is_none() {
                    let_owner_go(entry);
                }
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

    /// Whether a struct still has the numbers that it was exported with.
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

/// The node of ours that a live struct is, unless its producer is somebody else or its buffers were exchanged.
///
/// # Safety
/// `array` is live, and not released while the result is used.
#[inline]
pub(super) unsafe fn own_node(array: &ArrowArray) -> Option<&ExportNode> {
    if array.release.is_none_or(|release| release as usize != release_array as *const () as usize) {
        return None;
    }
    // SAFETY: our release function stands only beside a node of a live block of ours.
    let node = unsafe { array.private_data.cast::<ExportNode>().as_ref() }?;
    // SAFETY: a live node's block lives.
    let same_copy = unsafe { (*node.block).mark } == mark(Kind::Block);
    let same_buffers =
        array.n_buffers == node.n_buffers as i64 && core::ptr::eq(array.buffers, node.array.buffers);
    (same_copy && same_buffers).then_some(node)
}

/// A reference to an entry, or to what it refers to in turn; and what a reader waits on.
///
/// # Safety
/// `entry` belongs to a node that is still live, or to a reference that is.
pub(super) unsafe fn refer_to(entry: *mut Entry) -> (Owner, Event) {
    // SAFETY: as the caller promises.
    unsafe {
        let event = &(*(*entry).block).event;
        if event.is_borrowed()
            && let Some(inner) = (*entry).owner.try_retain(event.event())
        {
            return inner;
        }
        retain_entry(&raw const (*entry).counted);
        (Owner::reference(&raw const (*entry).counted), event.event())
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
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

unsafe fn let_owner_go(entry: *mut Entry) {
    // SAFETY: the entry's block is kept by the caller's own count; the last user drops the owner.
    unsafe {
        if take_off(&(*entry).count, 1) {
            ManuallyDrop::drop(&mut (*entry).owner);
        }
    }
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
        let users = if (*entry).owner.is_none() { &(*block).users } else { &(*entry).count };
        users.fetch_add(1, Ordering::Relaxed);
    }
}

unsafe fn release_entry(counted: *const Counted) {
    let entry: *mut Entry = counted.cast_mut().cast();
    // SAFETY: the head is the entry's first member, and the reference that ends here kept it alive.
    unsafe {
        let block = (*entry).block;
        if (*entry).owner.is_none() {
            stop_using(block);
        } else {
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
    unsafe { if (*(*entry).block).event.keeps(shown) { None } else { (*entry).owner.again() } }
}
