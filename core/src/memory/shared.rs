//! The counted block that types are kept in: a header, items, indices and bytes in one allocation.

use core::fmt;
use core::mem::ManuallyDrop;
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
    items: (usize, usize),
    indices: (usize, usize),
    bytes: (usize, usize),
    header: H,
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

/// The parts of a block that is being filled. Items, indices and bytes start as zeroes of their kind.
#[derive(Debug)]
pub struct Parts<'a, T> {
    /// The items, all equal to the one that the block was made with.
    pub items: &'a mut [T],
    /// The indices, all 0.
    pub indices: &'a mut [u32],
    /// The bytes, all 0.
    pub bytes: &'a mut [u8],
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
        blank: T,
        room: Room,
        report: &mut Report<'_>,
        fill: impl FnOnce(Parts<'_, T>, &mut Report<'_>) -> Result<()>,
    ) -> Result<Self> {
        let Room { n_items, n_indices, n_bytes } = room;
        let mut plan = Plan::starting_with::<Block<H>>();
        let items = plan.array::<T>(n_items);
        let indices = plan.array::<u32>(n_indices);
        let bytes = plan.array::<u8>(n_bytes);
        let (memory, layout) = plan.allocate(report)?;
        let block: NonNull<Block<H>> = memory.cast();
        // SAFETY: the block has room and alignment for each part at the place that the plan gave; `T` is `Copy`, so a
        // failed `fill` needs no destructors.
        unsafe {
            block.write(Block {
                mark: mark(Kind::Type),
                live,
                count: AtomicUsize::new(1),
                layout,
                items: (items, n_items),
                indices: (indices, n_indices),
                bytes: (bytes, n_bytes),
                header,
            });
            for i in 0..n_items {
                memory.add(items).cast::<T>().add(i).write(blank);
            }
            memory.add(indices).write_bytes(0, n_indices.wrapping_mul(size_of::<u32>()));
            memory.add(bytes).write_bytes(0, n_bytes);
        }
        live.add();
        let shared = Self { block, items: core::marker::PhantomData };
        // SAFETY: the parts were initialised above, do not overlap, and no other handle exists yet.
        let parts = unsafe {
            Parts {
                items: core::slice::from_raw_parts_mut(memory.add(items).cast().as_ptr(), n_items),
                indices: core::slice::from_raw_parts_mut(memory.add(indices).cast().as_ptr(), n_indices),
                bytes: core::slice::from_raw_parts_mut(memory.add(bytes).as_ptr(), n_bytes),
            }
        };
        fill(parts, report)?;
        Ok(shared)
    }
}

impl<H, T> Shared<H, T> {
    /// The header.
    pub fn header(&self) -> &H {
        &self.raw().header
    }

    /// The items.
    pub fn items(&self) -> &[T] {
        self.part(self.raw().items)
    }

    /// The indices.
    pub fn indices(&self) -> &[u32] {
        self.part(self.raw().indices)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.part(self.raw().bytes)
    }

    /// Whether both are handles of the same block.
    pub fn same_block(&self, other: &Self) -> bool {
        self.block == other.block
    }

    /// Whether this copy of the library made the block. Two copies in one process do not understand each other's.
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
    pub unsafe fn from_item_address(item: *const T, i: usize) -> ManuallyDrop<Self> {
        let mut plan = Plan::starting_with::<Block<H>>();
        let items = plan.array::<T>(1);
        let ahead = i.wrapping_mul(size_of::<T>()).wrapping_add(items);
        // SAFETY: items start `items` bytes into the block, and this is the `i`th; the caller vouches for the rest.
        let block = unsafe { NonNull::new_unchecked(item.cast_mut().cast::<u8>().sub(ahead).cast()) };
        ManuallyDrop::new(Self { block, items: core::marker::PhantomData })
    }

    fn raw(&self) -> &Block<H> {
        // SAFETY: a handle keeps its block alive and initialised.
        unsafe { self.block.as_ref() }
    }

    fn part<U>(&self, (at, n): (usize, usize)) -> &[U] {
        // SAFETY: the block was initialised with `n` values of `U` at `at`, and is not written any more.
        unsafe { core::slice::from_raw_parts(self.block.cast::<u8>().add(at).cast().as_ptr(), n) }
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
}

/// The first word of everything that a C handle leads to: it differs between kinds, and between copies of the library in
/// one process, which do not understand each other's.
pub fn mark(kind: Kind) -> *const u8 {
    static MARKS: [u8; 4] = [0; 4];
    MARKS.get(kind as usize).map_or(core::ptr::null(), core::ptr::from_ref)
}
