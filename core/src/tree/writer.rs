//! Filling the block that an exported tree is.

use core::ffi::c_void;
use core::mem::{ManuallyDrop, offset_of};
use core::ptr::NonNull;
use core::sync::atomic::AtomicUsize;

use super::export::{Block, ENTRY_OPS, Entry, ExportNode, ExportedArray, release_array};
use super::release::BlockNode;
use super::{Array, Facts};
use crate::abi::{ArrowArray, ArrowDeviceArray, Device};
use crate::error::{Report, Result};
use crate::memory::{Counted, Event, EventCell, Held, Kind, OwnedBuffer, Owner, Plan, counts, mark};
use crate::types::{NONE, TypeNode};

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

impl Links {
    /// Nothing.
    ///
    /// cbindgen:ignore
    pub const NONE: Links = Links { keep: None, owner: Owner::NONE, event: EventCell::NONE };
}

/// Fills a block. Dropped early, it frees the memory and lets nothing go.
///
/// The block's header says from the start where its parts lie; what it keeps alive comes last.
#[derive(Debug)]
pub struct Writer {
    block: NonNull<Block>,
    next: Cursor,
    next_link: *mut *mut ArrowArray,
    built: *mut i64,
    /// How many more sizes may be built.
    n_built: usize,
}

/// Where the next node goes.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    block: *mut Block,
    node: *mut ExportNode,
    pointers: *mut *const c_void,
    /// Behind the last pointer.
    end: *mut *const c_void,
}

impl Writer {
    /// Memory for a block of that shape: one allocation.
    #[inline(always)]
    pub fn allocate(shape: &Shape, device: Device, report: &mut Report<'_>) -> Result<Self> {
        let mut plan = Plan::starting_with::<Block>();
        let n_pointers = shape.n_pointers;
        let nodes = plan.array::<ExportNode>(shape.n_nodes);
        let entries = plan.array::<Entry>(if shape.has_entries { n_pointers } else { 0 });
        let links = plan.array::<*mut ArrowArray>(shape.n_nodes.saturating_sub(1));
        let pointers = plan.array::<*const c_void>(n_pointers);
        let sizes = plan.array::<i64>(if shape.has_sizes && !shape.has_entries { n_pointers } else { 0 });
        let built = if shape.n_built == 0 { 0 } else { plan.array::<Line>(shape.n_built.div_ceil(LINE)) };
        let (memory, layout) = plan.allocate(report)?;
        let block: *mut Block = memory.as_ptr().cast();
        // SAFETY: the plan gave each part a place within the block, which is not shared yet.
        unsafe {
            let at = |offset: usize| memory.as_ptr().add(offset);
            let none: *mut u8 = core::ptr::null_mut();
            let built: *mut i64 = at(built).cast();
            (&raw mut (*block).mark).write(mark(Kind::Block));
            (&raw mut (*block).device).write(device);
            (&raw mut (*block).nodes).write(at(nodes).cast());
            (&raw mut (*block).pointers).write(at(pointers).cast());
            (&raw mut (*block).entries).write(if shape.has_entries { at(entries) } else { none }.cast());
            let (sizes, size_step) = if shape.has_entries {
                (at(entries.wrapping_add(offset_of!(Entry, held.size_bytes))), size_of::<Entry>())
            } else {
                (if shape.has_sizes { at(sizes) } else { none }, size_of::<i64>())
            };
            (&raw mut (*block).sizes).write(sizes.cast());
            (&raw mut (*block).size_step).write(size_step);
            (&raw mut (*block).built).write(built.cast_const()..built.cast_const());
            (&raw mut (*block).memory).write(AtomicUsize::new(1));
            (&raw mut (*block).live).write(AtomicUsize::new(shape.n_nodes));
            (&raw mut (*block).users).write(AtomicUsize::new(1));
            (&raw mut (*block).layout).write(layout);
            let pointers: *mut *const c_void = at(pointers).cast();
            let next = Cursor { block, node: at(nodes).cast(), pointers, end: pointers.add(n_pointers) };
            let next_link = at(links).cast();
            Ok(Self { block: memory.cast(), next, next_link, built, n_built: shape.n_built })
        }
    }

    /// Keeps sizes of variadic buffers in the block and returns where they lie there, in lines of their own with zeroes
    /// behind them; NULL when the shape has no room for them.
    pub fn build_sizes(&mut self, sizes: impl Iterator<Item = i64> + Clone) -> *const c_void {
        let n = sizes.clone().count().next_multiple_of(LINE);
        if n > self.n_built {
            return core::ptr::null();
        }
        // SAFETY: the shape made room for `n` numbers more, and the header was written.
        unsafe {
            let start = self.built;
            start.write_bytes(0, n);
            for (i, size) in sizes.enumerate() {
                start.add(i).write(size);
            }
            self.n_built = self.n_built.wrapping_sub(n);
            self.built = start.add(n);
            (*self.block.as_ptr()).built.end = self.built;
            start.cast_const().cast()
        }
    }

    /// Adds nodes as long as there are some and room for them, and says how many.
    #[inline(always)]
    pub fn push_leaves(&mut self, leaves: impl Iterator<Item = Option<Leaf>>) -> usize {
        let room = self.next.room_for(usize::MAX).wrapping_shr(1);
        let (mut next, from, mut n) = (self.next, self.next.pointers, 0usize);
        for (leaf, k) in leaves.zip(0..room) {
            let Some(leaf) = leaf else { break };
            // SAFETY: the shape counted the nodes of this very tree, there are pointers for so many leaves, and the block is not
            // shared yet.
            unsafe {
                next.pointers = from.add(k.wrapping_mul(2));
                next.push_leaf(&leaf);
            }
            n = k.wrapping_add(1);
        }
        // SAFETY: as above.
        next.pointers = unsafe { from.add(n.wrapping_mul(2)) };
        self.next = next;
        n
    }

    /// Writes the list of the next node's buffer addresses. Returns it, and how many of them are NULL.
    #[inline(always)]
    pub fn push_addresses(
        &mut self,
        mut from: impl ExactSizeIterator<Item = *const c_void>,
    ) -> (&mut [*const c_void], usize) {
        let (first, n) = (self.next.pointers, from.len());
        if self.next.room_for(n) < n {
            return (&mut [], 0);
        }
        let (mut to, mut missing) = (first, 0usize);
        // SAFETY: the shape counted how many pointers there is room for, and all of the list is written here.
        unsafe {
            let mut put = |address: *const c_void| {
                to.write(address);
                to = to.add(1);
                missing = missing.wrapping_add(usize::from(address.is_null()));
            };
            // Nearly every node has one to three, for which a loop costs more than what it does.
            from.by_ref().next().into_iter().for_each(&mut put);
            from.by_ref().next().into_iter().for_each(&mut put);
            from.by_ref().next().into_iter().for_each(&mut put);
            from.for_each(put);
            (core::slice::from_raw_parts_mut(first, to.offset_from_unsigned(first)), missing)
        }
    }

    /// Writes the list of the next node, which has one buffer, and says whether there was room for it.
    #[inline(always)]
    pub fn push_address(&mut self, address: *const c_void) -> bool {
        if self.next.room_for(1) < 1 {
            return false;
        }
        // SAFETY: there is room for a pointer.
        unsafe { self.next.pointers.write(address) };
        true
    }

    /// The list that [`Writer::push_addresses`] wrote last, as it is now.
    pub fn addresses_again(&mut self, n_buffers: usize) -> &mut [*const c_void] {
        // SAFETY: the list was written when it was pushed.
        unsafe { core::slice::from_raw_parts_mut(self.next.pointers, self.next.room_for(n_buffers)) }
    }

    /// Adds the next node, number `i` of `nodes`, whose addresses were pushed just now.
    #[inline(always)]
    pub fn push_node(&mut self, nodes: &[TypeNode], i: usize, facts: &Facts) {
        let Some([node, below @ ..]) = nodes.get(i..) else { return };
        let n_buffers = self.next.room_for(usize::try_from(facts.n_buffers).unwrap_or(0));
        let this = self.next.node;
        // SAFETY: the shape counted nodes, links and pointers of this very tree, and the block is not shared yet.
        unsafe {
            let at = |absolute: u32| this.add(absolute.wrapping_sub(node.index) as usize);
            let mut children = core::ptr::null_mut();
            if node.n_children > 0 {
                children = self.next_link;
                let n_children = node.n_children as usize;
                let mut child = this.add(1);
                if node.subtree_end.wrapping_sub(node.index).wrapping_sub(1) == node.n_children {
                    // As many nodes below as children: they have nothing below themselves.
                    for k in 0..n_children {
                        children.add(k).write(ExportNode::structure(child.add(k)));
                    }
                } else {
                    let mut next = 0usize;
                    for k in 0..n_children {
                        children.add(k).write(ExportNode::structure(child));
                        let end = below.get(next).map_or(node.index, |child| child.subtree_end);
                        child = at(end);
                        next = (end.wrapping_sub(node.index) as usize).wrapping_sub(1);
                    }
                }
                self.next_link = children.add(n_children);
            }
            let mut dictionary = core::ptr::null_mut();
            if node.dictionary != NONE {
                dictionary = ExportNode::structure(at(node.dictionary));
            }
            let n_children = i64::from(node.n_children);
            let below = Below { children, dictionary, n_children, end: at(node.subtree_end) };
            self.next.push(facts, n_buffers, below);
        }
    }

    /// Notes the sizes of all buffers and takes over their owners, for an array that shows the event `shown`. -1 is an
    /// unknown size.
    #[inline]
    pub fn take_buffers(&mut self, buffers: &mut [OwnedBuffer], shown: Event) {
        let block = self.block.as_ptr();
        // SAFETY: the header was written, and the shape made room for an entry and a size a pointer where there are any.
        unsafe {
            let n_pointers = self.next.end.cast_const().offset_from_unsigned((*block).pointers);
            let Some(buffers) = buffers.get_mut(..n_pointers) else { return };
            if !(*block).entries.is_null() {
                let mut entry = (*block).entries;
                for buffer in buffers {
                    (&raw mut (*entry).counted).write(Counted { ops: &ENTRY_OPS });
                    (&raw mut (*entry).block).write(block);
                    Held::take_over(buffer, &raw mut (*entry).held, shown);
                    entry = entry.add(1);
                }
            } else if !(*block).sizes.is_null() {
                let mut to = (*block).sizes.cast_mut();
                for buffer in &*buffers {
                    to.write(buffer.size_bytes());
                    to = to.add(1);
                }
            }
        }
    }

    /// Hands out the root. Every node, pointer and, where there are any, entry is set by now.
    ///
    /// `shown` is the address of an event that `links` keeps alive without destroying it, NULL when the block's own
    /// event counts or there is none.
    #[inline]
    pub fn finish(self, shown: *mut c_void, links: Links) -> ExportedArray {
        let block = ManuallyDrop::new(self).block.as_ptr();
        // SAFETY: the block is not shared yet, and its nodes and the rest of its header were written.
        unsafe {
            (&raw mut (*block).keep).write(links.keep);
            (&raw mut (*block).owner).write(ManuallyDrop::new(links.owner));
            (&raw mut (*block).event).write(ManuallyDrop::new(links.event));
            counts::BLOCKS.add();
            let own_event = (*block).event.event();
            ExportedArray(ArrowDeviceArray {
                array: core::ptr::read(&raw const (*(*block).nodes).array),
                device_id: (*block).device.id,
                device_type: (*block).device.r#type,
                sync_event: if own_event == Event::NONE { shown } else { own_event.address },
                reserved: [0; 3],
            })
        }
    }
}

/// A node with two buffers and nothing below it.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    /// Its numbers; that of its buffers may be another one where it is not known yet that the node is one of these.
    pub facts: Facts,
    /// The address of its bitmap.
    pub validity: *const c_void,
    /// The address of its values.
    pub data: *const c_void,
}

/// What is below a node.
struct Below {
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    n_children: i64,
    end: *mut ExportNode,
}

impl Cursor {
    /// `n_buffers`, or what there is still room for.
    #[inline]
    fn room_for(&self, n_buffers: usize) -> usize {
        // SAFETY: both lie in the block's table of pointers, or right behind it.
        n_buffers.min(unsafe { self.end.offset_from_unsigned(self.pointers) })
    }

    /// Adds a node with two buffers and nothing below it.
    #[inline(always)]
    unsafe fn push_leaf(&mut self, leaf: &Leaf) {
        // SAFETY: as the caller promises.
        unsafe {
            self.pointers.write(leaf.validity);
            self.pointers.add(1).write(leaf.data);
            let (children, dictionary) = (core::ptr::null_mut(), core::ptr::null_mut());
            let below = Below { children, dictionary, n_children: 0, end: self.node.add(1) };
            self.push(&Facts { n_buffers: 2, ..leaf.facts }, 2, below);
        }
    }

    /// Writes the next node, whose addresses are there, as many as it says.
    #[inline(always)]
    unsafe fn push(&mut self, facts: &Facts, n_buffers: usize, below: Below) {
        let node = self.node;
        // SAFETY: as the caller promises.
        unsafe {
            node.write(ExportNode {
                array: ArrowArray {
                    length: facts.length,
                    null_count: facts.null_count,
                    offset: facts.offset,
                    n_buffers: facts.n_buffers,
                    n_children: below.n_children,
                    buffers: if n_buffers == 0 { core::ptr::null_mut() } else { self.pointers },
                    children: below.children,
                    dictionary: below.dictionary,
                    release: Some(release_array),
                    private_data: node.cast(),
                },
                block: self.block,
                end: below.end,
                list: self.pointers,
                n_buffers,
            });
            self.node = node.add(1);
            self.pointers = self.pointers.add(n_buffers);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SAFETY: nothing was shared yet, so the memory is this writer's alone, and its layout was written.
        unsafe {
            let layout = (*self.block.as_ptr()).layout;
            std::alloc::dealloc(self.block.cast().as_ptr(), layout);
        }
    }
}
