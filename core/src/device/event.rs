//! Events that the library records: counted, at a stable address, destroyed with the last reference.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, fence};
use std::alloc::Layout;

use super::backend::{Backend, Queue};
use super::has_event_handles;
use crate::abi::Device;
use crate::error::{Report, Result};
use crate::memory::{Event, Plan};

/// A counted event of a backend.
pub struct SharedEvent(NonNull<Block>);

#[repr(C)]
struct Block {
    count: AtomicUsize,
    /// What `sync_event` points to where events are handles.
    handle: NonNull<c_void>,
    backend: &'static dyn Backend,
    device: Device,
    layout: Layout,
}

// SAFETY: the count is atomic, the rest is only read, and any thread may wait on an event and destroy it.
unsafe impl Send for SharedEvent {}
// SAFETY: as above.
unsafe impl Sync for SharedEvent {}

impl SharedEvent {
    /// Records an event on a queue.
    ///
    /// # Safety
    /// The queue is one of the device's driver, which is the backend's.
    pub(super) unsafe fn record(
        backend: &'static dyn Backend,
        device: Device,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let (memory, layout) = Plan::starting_with::<Block>().allocate(report)?;
        // SAFETY: as the caller promises.
        let handle = unsafe { backend.record(device, queue, report) }.inspect_err(|_| {
            // SAFETY: the memory was just allocated with this layout, and nobody has it yet.
            unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
        })?;
        let block: NonNull<Block> = memory.cast();
        // SAFETY: the memory was just allocated for one block.
        unsafe {
            block.write(Block { count: AtomicUsize::new(1), handle, backend, device, layout });
        }
        Ok(Self(block))
    }

    /// The driver's event.
    pub(super) fn handle(&self) -> NonNull<c_void> {
        self.block().handle
    }

    /// Whose event it is.
    pub(super) fn source(&self) -> (&'static dyn Backend, Device) {
        (self.block().backend, self.block().device)
    }

    /// The event as arrays show it, for as long as a reference lives.
    pub fn event(&self) -> Event {
        let handle = self.handle().as_ptr();
        let cell = (&raw const self.block().handle).cast_mut().cast();
        let is_handle = has_event_handles(self.block().device.r#type);
        Event { address: if is_handle { cell } else { handle }, identity: handle }
    }

    /// The event by value and what lets this reference go, as a placement takes them.
    pub fn into_parts(self) -> (*mut c_void, *mut c_void, unsafe extern "C" fn(*mut c_void, *mut c_void)) {
        let handle = self.handle().as_ptr();
        let context = self.0.as_ptr().cast();
        core::mem::forget(self);
        (handle, context, let_go)
    }

    fn block(&self) -> &Block {
        // SAFETY: a reference keeps its block alive and initialised.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for SharedEvent {
    fn clone(&self) -> Self {
        self.block().count.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for SharedEvent {
    fn drop(&mut self) {
        if self.block().count.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let Block { backend, device, handle, layout, .. } = *self.block();
        // SAFETY: this was the last reference, so nobody uses the event or its block any more.
        unsafe {
            backend.destroy_event(device, handle);
            std::alloc::dealloc(self.0.as_ptr().cast(), layout);
        }
    }
}

impl core::fmt::Debug for SharedEvent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SharedEvent")
            .field("handle", &self.handle())
            .field("device", &self.block().device)
            .finish()
    }
}

unsafe extern "C" fn let_go(context: *mut c_void, _: *mut c_void) {
    if let Some(block) = NonNull::new(context.cast()) {
        drop(SharedEvent(block));
    }
}
