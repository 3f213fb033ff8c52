//! Memory that the library allocates on a device, and its owner.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::Layout;

use super::backend::{Backend, Queue};
use super::event::SharedEvent;
use super::waits::{self, Wait};
use crate::abi::Device;
use crate::error::{Report, Result, Status};
use crate::memory::{ALIGNMENT, OwnedBuffer, Plan, scope};

/// A caller's own allocator.
#[derive(Debug, Clone, Copy)]
pub struct Allocator {
    context: *mut c_void,
    allocate: Allocate,
    deallocate: Deallocate,
}

// SAFETY: whoever named the functions promised that any thread may call them.
unsafe impl Send for Allocator {}
// SAFETY: as above.
unsafe impl Sync for Allocator {}

/// Gives memory of a size for work on a queue, or NULL.
pub type Allocate = unsafe extern "C" fn(ctx: *mut c_void, size: i64, queue: *mut c_void) -> *mut c_void;
/// Takes memory back once the work on a queue is done.
pub type Deallocate =
    unsafe extern "C" fn(ctx: *mut c_void, data: *mut c_void, size: i64, queue: *mut c_void);

impl Allocator {
    /// Names the functions.
    ///
    /// # Safety
    /// Any thread may call them with this context, until all memory that came of it went back; what `allocate` gives is memory
    /// of the device that the allocator is used for.
    pub unsafe fn new(context: *mut c_void, allocate: Allocate, deallocate: Deallocate) -> Self {
        Self { context, allocate, deallocate }
    }
}

/// Memory of a device. Its owner frees it, behind the work that was said to use it.
pub(crate) struct Allocation(NonNull<Block>);

struct Block {
    backend: &'static dyn Backend,
    device: Device,
    /// The library's own, because the caller's may be gone when the memory goes.
    queue: Queue,
    data: NonNull<c_void>,
    size: usize,
    allocator: Option<Allocator>,
    event: Option<SharedEvent>,
    layout: Layout,
}

impl Allocation {
    /// Memory for at least `size` bytes, rounded up to a multiple of [`ALIGNMENT`], for work on `queue`.
    ///
    /// # Safety
    /// The queue is one of the device's driver, which is the backend's.
    pub(super) unsafe fn new(
        backend: &'static dyn Backend,
        device: Device,
        size: usize,
        queue: Queue,
        allocator: Option<&Allocator>,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let padded = size.max(1).checked_next_multiple_of(ALIGNMENT);
        let Some(size) = padded.filter(|padded| isize::try_from(*padded).is_ok()) else {
            return Err(report.out_of_memory(size));
        };
        let own_queue = backend.library_queue(device, report)?;
        let (memory, layout) = Plan::starting_with::<Block>().allocate(report)?;
        let data = match allocator {
            // SAFETY: as the caller promises.
            None => unsafe { backend.allocate(device, size, queue, report) },
            Some(own) => own.ask(size, queue, report),
        };
        let data = data.inspect_err(|_| {
            // SAFETY: the memory was just allocated with this layout, and nobody has it yet.
            unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
        })?;
        let block: NonNull<Block> = memory.cast();
        let is_callers = allocator.is_some();
        let (allocator, event) = (allocator.copied(), None);
        // SAFETY: the memory was just allocated for one block.
        unsafe {
            block.write(Block { backend, device, queue: own_queue, data, size, allocator, event, layout });
        }
        let made = Self(block);
        if data.addr().get() % ALIGNMENT == 0 {
            return Ok(made);
        }
        // It goes back where it came from.
        drop(made);
        let status = if is_callers { Status::CallbackError } else { Status::DeviceError };
        let message = format_args!("expected memory aligned to {ALIGNMENT} bytes, found it at {data:p}");
        Err(report.fail(status, message))
    }

    /// Start of the memory.
    pub(crate) fn data(&self) -> *mut c_void {
        // SAFETY: an allocation keeps its block.
        unsafe { self.0.as_ref() }.data.as_ptr()
    }

    /// Size of the memory, with its padding.
    pub(crate) fn size(&self) -> usize {
        // SAFETY: an allocation keeps its block.
        unsafe { self.0.as_ref() }.size
    }

    /// Says what the memory is to be freed behind.
    pub(crate) fn free_after(&mut self, event: SharedEvent) {
        // SAFETY: an allocation has its block alone.
        unsafe { self.0.as_mut() }.event = Some(event);
    }

    /// The memory, of which `size` bytes are said to be readable, and its owner.
    pub(crate) fn into_owned(self, size: usize) -> OwnedBuffer {
        let data = self.data().cast_const();
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        let context = self.0.as_ptr().cast();
        core::mem::forget(self);
        // SAFETY: the memory is there until the owner frees it.
        unsafe { OwnedBuffer::new(data, size, context, Some(release)) }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: this is the block's only owner.
        unsafe { release(self.0.as_ptr().cast()) };
    }
}

impl Allocator {
    fn ask(&self, size: usize, queue: Queue, report: &mut Report<'_>) -> Result<NonNull<c_void>> {
        let asked = i64::try_from(size).unwrap_or(i64::MAX);
        let mut data = core::ptr::null_mut();
        // SAFETY: whoever named the functions vouched for them.
        scope::run(|| data = unsafe { (self.allocate)(self.context, asked, queue) });
        NonNull::new(data).ok_or_else(|| {
            let message = format_args!("expected {size} bytes of the caller's allocator, found NULL");
            report.fail(Status::OutOfMemory, message)
        })
    }
}

/// Frees the memory behind the work that fills it, on the library's queue; where that cannot be made to wait, after waiting.
///
/// Where the driver cannot be asked any more, as at the end of the process, the memory is left alone.
unsafe extern "C" fn release(context: *mut c_void) {
    let Some(block) = NonNull::new(context.cast::<Block>()) else { return };
    // SAFETY: an owner is let go once, so the block is this call's alone.
    let Block { backend, device, queue, data, size, allocator, event, layout } = unsafe { block.read() };
    // SAFETY: as above; what was read out is dropped by name.
    unsafe { std::alloc::dealloc(block.as_ptr().cast(), layout) };
    let report = &mut Report::silent();
    if let Some(event) = &event {
        let (event, wait) = (event.handle(), Wait::FreeAfterCopy);
        // SAFETY: queue and event are the backend's.
        let waits = unsafe {
            waits::on_queue(wait, backend, device, event, queue, report)
                .or_else(|_| waits::on_host(wait, backend, device, event, report))
        };
        if waits.is_err() {
            return;
        }
    }
    match allocator {
        // SAFETY: whoever named the functions vouched for them, and gave the memory.
        Some(own) => {
            let size = i64::try_from(size).unwrap_or(i64::MAX);
            // SAFETY: as above.
            scope::run(|| unsafe { (own.deallocate)(own.context, data.as_ptr(), size, queue) });
        }
        // SAFETY: the backend gave the memory, and the queue is its own.
        None => drop(unsafe { backend.free(device, data, size, queue, report) }),
    }
}
