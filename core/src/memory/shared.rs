//! The counted block that types are kept in: a header, items, indices and bytes in one allocation.

use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, fence};
use std::alloc::Layout;

use super::{Live, Plan};
use crate::error::{Report, Result};

/// A shared, immutable block: a header `H`, then items `T`, then `u32` indices, then bytes.
///
/// Cloning counts and cannot fail; the block is freed with its last handle.
pub struct Shared<H, T> {
    block: NonNull<Block<H>>,
    items: core::marker::PhantomData<T>,
}

#[repr(C)]
struct Block<H> {
    mark: *const u8,
    live: &'static Live,
    count: AtomicUsize,
    layout: Layout,
    n_items: usize,
    indices: NonNull<[u32]>,
    bytes: NonNull<[u8]>,
    header: H,
}

impl<H> Block<H> {
    /// Where items start, which follows from their type alone.
    const fn items<T>() -> usize {
        size_of::<Self>().next_multiple_of(align_of::<T>())
    }
}

/// How much a block has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Number of items.
    pub n_items: usize,
    /// Number of indices.
    pub n_indices: usize,
    /// Number of bytes.
    pub n_bytes: usize,
}

/// The parts of a block that is being filled. Indices and bytes start as zeroes.
#[derive(Debug)]
pub struct Parts<'a, T> {
    /// The items, none yet. The block has as many as were added.
    pub items: Items<'a, T>,
    /// The indices, all 0.
    pub indices: &'a mut [u32],
    /// The bytes, all 0.
    pub bytes: &'a mut [u8],
}

/// The items of a block that is being filled: those that were added, and room for more.
#[derive(Debug)]
pub struct Items<'a, T> {
    room: &'a mut [MaybeUninit<T>],
    n: usize,
}

impl<T> Default for Items<'_, T> {
    /// No room.
    fn default() -> Self {
        Self { room: &mut [], n: 0 }
    }
}

impl<T: Copy> Items<'_, T> {
    /// The number of items that were added.
    #[inline]
    pub fn count(&self) -> usize {
        self.n
    }

    /// Adds an item, or says that there is no room.
    #[inline]
    pub fn push(&mut self, item: T) -> bool {
        let Some(place) = self.room.get_mut(self.n) else { return false };
        place.write(item);
        self.n = self.n.wrapping_add(1);
        true
    }

    /// The items that were added.
    #[inline]
    pub fn added(&mut self) -> &mut [T] {
        // SAFETY: the first `n` places were written, and `n` never passes the room.
        unsafe { core::slice::from_raw_parts_mut(self.room.as_mut_ptr().cast(), self.n) }
    }
}

// SAFETY: a block is only read once it is shared, its count is atomic, and it is freed by whichever thread is last.
unsafe impl<H: Send + Sync, T: Send + Sync> Send for Shared<H, T> {}
// SAFETY: as above.
unsafe impl<H: Send + Sync, T: Send + Sync> Sync for Shared<H, T> {}

impl<H: Copy, T: Copy> Shared<H, T> {
    /// Allocates a block, lets `fill` write its parts, and shares it. Nothing is kept when `fill` fails.
    ///
    /// `live` counts the blocks of this kind.
    pub fn try_new(
        live: &'static Live,
        header: H,
        room: Room,
        report: &mut Report<'_>,
        fill: impl FnOnce(&mut Parts<'_, T>, &mut Report<'_>) -> Result<()>,
    ) -> Result<Self> {
        let Room { n_items, n_indices, n_bytes } = room;
        let mut plan = Plan::starting_with::<Block<H>>();
        let items = plan.array::<T>(n_items);
        let indices = plan.array::<u32>(n_indices);
        let bytes = plan.array::<u8>(n_bytes);
        let (memory, layout) = plan.allocate(report)?;
        let block: NonNull<Block<H>> = memory.cast();
        // SAFETY: the block has room and alignment for each part at the place that the plan gave; `T` is `Copy`, so
        // items that are never shared need no destructors.
        unsafe {
            // Indices and bytes lie one after the other.
            memory.add(indices).write_bytes(0, bytes.wrapping_sub(indices).wrapping_add(n_bytes));
            let indices: NonNull<u32> = memory.add(indices).cast();
            let bytes = memory.add(bytes);
            block.write(Block {
                mark: mark(Kind::Type),
                live,
                count: AtomicUsize::new(1),
                layout,
                n_items: 0,
                indices: NonNull::slice_from_raw_parts(indices, n_indices),
                bytes: NonNull::slice_from_raw_parts(bytes, n_bytes),
                header,
            });
        }
        live.add();
        let shared = Self { block, items: core::marker::PhantomData };
        // SAFETY: the parts do not overlap, no other handle exists yet, and only items need not be initialised.
        let mut parts = unsafe {
            let room = core::slice::from_raw_parts_mut(memory.add(items).cast().as_ptr(), n_items);
            let Block { indices, bytes, .. } = block.as_ref();
            let (mut indices, mut bytes) = (*indices, *bytes);
            Parts { items: Items { room, n: 0 }, indices: indices.as_mut(), bytes: bytes.as_mut() }
        };
        fill(&mut parts, report)?;
        // These are the block's own, or none: `fill` works for any lifetime, so no other items fit in their place.
        let n_items = parts.items.n;
        // SAFETY: the block is initialised, no reference into it is in use, and so many items were written.
        unsafe { (*block.as_ptr()).n_items = n_items };
        Ok(shared)
    }
}

impl<H, T> Shared<H, T> {
    /// The header.
    pub fn header(&self) -> &H {
        &self.raw().header
    }

    /// The items.
    #[inline]
    pub fn items(&self) -> &[T] {
        // SAFETY: so many items were written at that place, and they are not written any more.
        unsafe {
            let first = self.block.cast::<u8>().add(Block::<H>::items::<T>()).cast();
            core::slice::from_raw_parts(first.as_ptr(), self.raw().n_items)
        }
    }

    /// The indices.
    #[inline]
    pub fn indices(&self) -> &[u32] {
        // SAFETY: the indices were initialised, and are not written any more.
        unsafe { self.raw().indices.as_ref() }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes were initialised, and are not written any more.
        unsafe { self.raw().bytes.as_ref() }
    }

    /// Whether both are handles of the same block.
    #[inline]
    pub fn same_block(&self, other: &Self) -> bool {
        self.block == other.block
    }

    /// Whether this copy of the library made the block. Two copies in one process do not understand each other's.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.raw().mark == mark(Kind::Type)
    }

    /// Address of item `i`, valid as long as the block.
    pub fn item_address(&self, i: usize) -> *const T {
        self.items().get(i).map_or(core::ptr::null(), core::ptr::from_ref)
    }

    /// The handle that the address of item `i` stands for, without counting.
    ///
    /// # Safety
    /// `item` came from [`Shared::item_address`] of a block that still lives, with the same `i`.
    #[inline]
    pub unsafe fn from_item_address(item: *const T, i: usize) -> ManuallyDrop<Self> {
        let items = Block::<H>::items::<T>();
        let ahead = i.wrapping_mul(size_of::<T>()).wrapping_add(items);
        // SAFETY: items start `items` bytes into the block, and this is the `i`th; the caller vouches for the rest.
        let block = unsafe { NonNull::new_unchecked(item.cast_mut().cast::<u8>().sub(ahead).cast()) };
        ManuallyDrop::new(Self { block, items: core::marker::PhantomData })
    }

    #[inline]
    fn raw(&self) -> &Block<H> {
        // SAFETY: a handle keeps its block alive and initialised.
        unsafe { self.block.as_ref() }
    }
}

impl<H, T> Clone for Shared<H, T> {
    fn clone(&self) -> Self {
        self.raw().count.fetch_add(1, Ordering::Relaxed);
        Self { block: self.block, items: core::marker::PhantomData }
    }
}

impl<H, T> Drop for Shared<H, T> {
    fn drop(&mut self) {
        if self.raw().count.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let layout = self.raw().layout;
        self.raw().live.remove();
        // SAFETY: this was the last handle; `H` and `T` are `Copy`, so there is nothing else to drop.
        unsafe { std::alloc::dealloc(self.block.cast().as_ptr(), layout) };
    }
}

impl<H: fmt::Debug, T: fmt::Debug> fmt::Debug for Shared<H, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("header", self.header()).field("items", &self.items()).finish()
    }
}

/// The kinds of things that a C handle may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A type.
    Type = 0,
    /// An array.
    Array = 1,
    /// A buffer.
    Buffer = 2,
    /// An exported block.
    Block = 3,
    /// A stream.
    Stream = 4,
}

/// The first word of everything that a C handle leads to: it differs between kinds, and between copies of the library in
/// one process, which do not understand each other's.
#[inline]
pub fn mark(kind: Kind) -> *const u8 {
    static MARKS: [u8; 5] = [0; 5];
    MARKS.get(kind as usize).map_or(core::ptr::null(), core::ptr::from_ref)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::counts;

    const ROOM: Room = Room { n_items: 2, n_indices: 0, n_bytes: 0 };

    fn block(fill: impl FnOnce(&mut Parts<'_, u64>, &mut Report<'_>) -> Result<()>) -> Shared<u32, u64> {
        Shared::try_new(&counts::TYPES, 0, ROOM, &mut Report::silent(), fill).unwrap()
    }

    #[test]
    fn a_block_has_as_many_items_as_were_added() {
        let one = block(|parts, _| {
            assert!(parts.items.push(7));
            Ok(())
        });
        assert_eq!(one.items(), [7]);
        let full = block(|parts, _| {
            assert_eq!([1, 2, 3].map(|item| parts.items.push(item)), [true, true, false]);
            Ok(())
        });
        assert_eq!(full.items(), [1, 2]);
    }

    #[test]
    fn items_that_were_taken_away_do_not_count() {
        let block = block(|parts, _| {
            assert!(parts.items.push(1));
            let taken = core::mem::take(&mut parts.items);
            assert_eq!((taken.count(), parts.items.push(2)), (1, false));
            Ok(())
        });
        assert_eq!(block.items(), []);
    }
}
