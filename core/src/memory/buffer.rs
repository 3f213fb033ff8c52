//! One block of memory, its device, its event and its owner: immutable, shared, counted.

use core::ffi::c_void;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, fence};
use std::alloc::Layout;

use super::{Counted, CountedOps, Event, EventCell, Kind, OwnedBuffer, Owner, Plan, counts, mark};
use crate::abi::{DEVICE_CPU, Device};
use crate::error::{Report, Result, Status};

/// Alignment of the memory that the library allocates, and the multiple that its size is padded to with zeroes.
pub const ALIGNMENT: usize = 64;

/// A counted handle on one block of memory.
///
/// Cloning counts and cannot fail; the owner is let go with the last handle, the event after it.
pub struct Buffer(NonNull<Block>);

/// Where a buffer's memory is and what a reader waits on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The device that the memory lives on.
    pub device: Device,
    /// What a reader waits on.
    pub event: Event,
}

#[repr(C)]
struct Block {
    mark: *const u8,
    counted: Counted,
    count: AtomicUsize,
    data: *const c_void,
    size: i64,
    place: Place,
    owner: ManuallyDrop<Owner>,
    /// Let go after `owner`.
    further: ManuallyDrop<Owner>,
    cell: ManuallyDrop<EventCell>,
    layout: Layout,
}

// SAFETY: a block is only read once it is made, its count is atomic, and owners and events may go on any thread.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

static OPS: CountedOps = CountedOps { retain, release, event, inner };

impl Buffer {
    /// Wraps memory that somebody else keeps alive, under an event that somebody else keeps alive.
    ///
    /// The owner is made by `owner` only once nothing can fail any more.
    pub(crate) fn try_new(
        data: *const c_void,
        size: i64,
        place: Place,
        report: &mut Report<'_>,
        owner: impl FnOnce() -> Owner,
    ) -> Result<Self> {
        // SAFETY: the crate makes buffers only of memory that a producer vouches for.
        unsafe { Self::with_cell(data, size, place, report, || (owner(), Owner::NONE, EventCell::NONE)) }
    }

    /// Wraps memory with an owner, a further owner and an event, which are let go in this order.
    ///
    /// # Safety
    /// `data` leads to `size` bytes (any number when -1) at `place` until the owners and the event are let go.
    pub unsafe fn with_cell(
        data: *const c_void,
        size: i64,
        place: Place,
        report: &mut Report<'_>,
        parts: impl FnOnce() -> (Owner, Owner, EventCell),
    ) -> Result<Self> {
        let (memory, layout) = Plan::starting_with::<Block>().allocate(report)?;
        let block: NonNull<Block> = memory.cast();
        let size = if data.is_null() { 0 } else { size };
        let (owner, further, cell) = parts();
        // SAFETY: the memory was just allocated for one block.
        unsafe {
            block.write(Block {
                mark: mark(Kind::Buffer),
                counted: Counted { ops: &OPS },
                count: AtomicUsize::new(1),
                data,
                size,
                place,
                owner: ManuallyDrop::new(owner),
                further: ManuallyDrop::new(further),
                cell: ManuallyDrop::new(cell),
                layout,
            });
            let event = (*block.as_ptr()).cell.event();
            if event != Event::NONE {
                (*block.as_ptr()).place.event = event;
            }
        }
        counts::BUFFERS.add();
        Ok(Self(block))
    }

    /// Zeroed CPU memory of `size` bytes, aligned to [`ALIGNMENT`] and padded to a multiple of it; and where to write.
    pub fn allocate(size: usize, report: &mut Report<'_>) -> Result<(Self, *mut c_void)> {
        let padded = size.max(1).checked_next_multiple_of(ALIGNMENT);
        let layout = padded
            .and_then(|n| n.checked_add(ALIGNMENT))
            .and_then(|n| Layout::from_size_align(n, ALIGNMENT).ok());
        let (Some(layout), Ok(length)) = (layout, i64::try_from(size)) else {
            return Err(report.out_of_memory(size));
        };
        // SAFETY: the size is at least the alignment, so not zero.
        let Some(memory) = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }) else {
            return Err(report.out_of_memory(layout.size()));
        };
        // The layout lies in front of the bytes, so that the owner is a single pointer.
        // SAFETY: the memory has room for the layout before the first byte at `ALIGNMENT`.
        let data = unsafe {
            memory.cast::<Layout>().write(layout);
            memory.add(ALIGNMENT)
        };
        let place = Place { device: Device::CPU, event: Event::NONE };
        let made = Self::try_new(data.as_ptr().cast(), length, place, report, || {
            // SAFETY: the memory was made above and is freed by this owner alone.
            unsafe { Owner::new(memory.as_ptr().cast(), Some(free_allocated)) }
        });
        if made.is_err() {
            // SAFETY: no owner was made, so the memory is still ours.
            unsafe { free_allocated(memory.as_ptr().cast()) };
        }
        made.map(|buffer| (buffer, data.as_ptr().cast()))
    }

    /// CPU memory of at least `size` bytes, aligned and padded as [`Buffer::allocate`] has it; `fill` writes into the first
    /// `size`. Its size is stated with the padding, all of which may be read.
    pub fn filled(
        size: usize,
        report: &mut Report<'_>,
        fill: impl FnOnce(&mut [u8], &mut Report<'_>) -> Result<()>,
    ) -> Result<Self> {
        let Some(padded) = size.checked_next_multiple_of(ALIGNMENT) else {
            return Err(report.out_of_memory(size));
        };
        let (buffer, data) = Self::allocate(padded, report)?;
        // SAFETY: the memory was just allocated with as many zeroed bytes, and nobody else has it yet.
        fill(unsafe { core::slice::from_raw_parts_mut(data.cast::<u8>(), size) }, report)?;
        Ok(buffer)
    }

    /// The memory and its owner, for an array to be built of.
    pub fn into_owned(self) -> OwnedBuffer {
        let (data, size) = (self.data(), self.size());
        let (owner, release) = self.into_owner().into_parts();
        // SAFETY: the buffer vouches for its memory for as long as its owner lives.
        unsafe { OwnedBuffer::new(data, size, owner, release) }
    }

    /// Start of the memory.
    pub fn data(&self) -> *const c_void {
        self.block().data
    }

    /// Readable bytes, -1 when unknown.
    pub fn size(&self) -> i64 {
        self.block().size
    }

    /// Where the memory is.
    pub fn place(&self) -> Place {
        self.block().place
    }

    /// `length` bytes from `offset` on; the part keeps the whole alive.
    pub fn slice(&self, offset: i64, length: i64, report: &mut Report<'_>) -> Result<Self> {
        let at = self.range(offset, length, report)?;
        let data = if self.data().is_null() { self.data() } else { self.data().wrapping_byte_add(at) };
        let kept = self.keeper();
        let place = Place { event: kept.1, ..self.place() };
        Self::try_new(data, length, place, report, || kept.0)
    }

    /// The `length` bytes from `offset` on, when the CPU may read them.
    pub fn bytes(&self, offset: i64, length: i64, report: &mut Report<'_>) -> Result<&[u8]> {
        let at = self.range(offset, length, report)?;
        let device = self.place().device.r#type;
        if device != DEVICE_CPU {
            return Err(report.fail(
                Status::Unsupported,
                format_args!(
                    "expected memory that the CPU can read, found device type {device} without a backend"
                ),
            ));
        }
        let n = usize::try_from(length).unwrap_or(0);
        if n == 0 {
            return Ok(&[]);
        }
        // SAFETY: the memory is the CPU's, whoever made the buffer vouched for its size, and the range was checked.
        Ok(unsafe { core::slice::from_raw_parts(self.data().cast::<u8>().add(at), n) })
    }

    /// What a part of this memory must keep, and what its readers wait on.
    ///
    /// A part of a part keeps what the first part keeps, so that parts never form a chain.
    fn keeper(&self) -> (Owner, Event) {
        let alone = self.block().further.is_none() && self.block().cell.is_borrowed();
        let inner = if alone { self.block().owner.try_retain(self.place().event) } else { None };
        inner.unwrap_or_else(|| (self.clone().into_reference(), self.place().event))
    }

    /// What keeps this memory alive, as an owner: this reference, or what it passes on.
    pub fn into_owner(self) -> Owner {
        self.keeper().0
    }

    /// This reference, as an owner.
    pub(crate) fn into_reference(self) -> Owner {
        let counted = &raw const self.block().counted;
        core::mem::forget(self);
        // SAFETY: the block lives, and the count of the forgotten handle is handed over.
        unsafe { Owner::reference(counted) }
    }

    /// The handle as a C pointer that owns one count.
    pub fn into_raw(self) -> *mut c_void {
        let raw = self.0.as_ptr().cast();
        core::mem::forget(self);
        raw
    }

    /// The handle behind a C pointer, without counting; `None` when another copy of the library made it.
    ///
    /// # Safety
    /// `raw` came from [`Buffer::into_raw`] of some copy of the library, and its count has not been let go.
    pub unsafe fn from_raw(raw: NonNull<c_void>) -> Option<ManuallyDrop<Self>> {
        let handle = ManuallyDrop::new(Self(raw.cast()));
        (handle.block().mark == mark(Kind::Buffer)).then_some(handle)
    }

    /// Where the `length` bytes from `offset` on start, when there are so many.
    pub(crate) fn range(&self, offset: i64, length: i64, report: &mut Report<'_>) -> Result<usize> {
        let end = offset.checked_add(length);
        let fits = end.is_some_and(|end| self.size() < 0 || end <= self.size());
        match usize::try_from(offset) {
            Ok(at) if length >= 0 && fits => Ok(at),
            _ => Err(report.fail(
                Status::InvalidArgument,
                format_args!(
                    "expected a range within the buffer's {} bytes, found offset {offset}, length {length}",
                    self.size()
                ),
            )),
        }
    }

    fn block(&self) -> &Block {
        // SAFETY: a handle keeps its block alive and initialised.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        self.block().count.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.block().count.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let block = self.0.as_ptr();
        // SAFETY: this was the last handle, so nobody else looks at the block; each part is dropped once.
        unsafe {
            let layout = (*block).layout;
            ManuallyDrop::drop(&mut (*block).owner);
            ManuallyDrop::drop(&mut (*block).further);
            ManuallyDrop::drop(&mut (*block).cell);
            counts::BUFFERS.remove();
            std::alloc::dealloc(block.cast(), layout);
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("data", &self.data())
            .field("size", &self.size())
            .field("place", &self.place())
            .finish()
    }
}

unsafe extern "C" fn free_allocated(memory: *mut c_void) {
    // SAFETY: `allocate` wrote the layout in front of the bytes, and this is the one call that frees them.
    unsafe {
        let layout = memory.cast::<Layout>().read();
        std::alloc::dealloc(memory.cast(), layout);
    }
}

unsafe fn handle_of(counted: *const Counted) -> ManuallyDrop<Buffer> {
    let ahead = core::mem::offset_of!(Block, counted);
    // SAFETY: the head lies in a block, which the caller's reference keeps alive.
    ManuallyDrop::new(Buffer(unsafe { NonNull::new_unchecked(counted.byte_sub(ahead).cast_mut().cast()) }))
}

unsafe fn retain(counted: *const Counted) {
    // SAFETY: as the caller promises.
    core::mem::forget(unsafe { Buffer::clone(&handle_of(counted)) });
}

unsafe fn release(counted: *const Counted) {
    // SAFETY: as the caller promises; the count that this drops is the caller's.
    drop(ManuallyDrop::into_inner(unsafe { handle_of(counted) }));
}

unsafe fn event(counted: *const Counted) -> Event {
    // SAFETY: as the caller promises.
    unsafe { handle_of(counted) }.place().event
}

unsafe fn inner(counted: *const Counted, shown: Event) -> Option<Owner> {
    // SAFETY: as the caller promises.
    let handle = unsafe { handle_of(counted) };
    let block = handle.block();
    if block.further.is_none() && !block.cell.keeps(shown) { block.owner.again() } else { None }
}
