//! The CPU as a device: memory from the allocator, copies at once, no queues and no events.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};

use super::backend::{Backend, Queue, Route};
use crate::abi::Device;
use crate::error::{Report, Result, Status};
use crate::memory::ALIGNMENT;

/// The CPU.
pub(super) struct Cpu;

pub(super) static CPU: Cpu = Cpu;

impl Cpu {
    #[cold]
    fn no_events(report: &mut Report<'_>) -> crate::error::Failed {
        report.fail(Status::Unsupported, format_args!("expected a device with events, found the CPU"))
    }

    fn layout(size: usize) -> Option<Layout> {
        Layout::from_size_align(size.checked_next_multiple_of(ALIGNMENT)?, ALIGNMENT).ok()
    }
}

impl Backend for Cpu {
    fn count(&self, _: i32, _: &mut Report<'_>) -> Result<i64> {
        Ok(1)
    }

    fn library_queue(&self, _: Device, _: &mut Report<'_>) -> Result<Queue> {
        Ok(core::ptr::null_mut())
    }

    unsafe fn check_queue(&self, _: Device, queue: Queue, report: &mut Report<'_>) -> Result<()> {
        if queue.is_null() {
            return Ok(());
        }
        let message = format_args!("expected no queue for the CPU, found {queue:p}");
        Err(report.fail(Status::InvalidArgument, message))
    }

    unsafe fn allocate(
        &self,
        _: Device,
        size: usize,
        _: Queue,
        report: &mut Report<'_>,
    ) -> Result<NonNull<c_void>> {
        let Some(layout) = Self::layout(size.max(1)) else { return Err(report.out_of_memory(size)) };
        // SAFETY: the size is not zero.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) });
        memory.map(NonNull::cast).ok_or_else(|| report.out_of_memory(size))
    }

    unsafe fn free(
        &self,
        _: Device,
        data: NonNull<c_void>,
        size: usize,
        _: Queue,
        _: &mut Report<'_>,
    ) -> Result<()> {
        if let Some(layout) = Self::layout(size.max(1)) {
            // SAFETY: the caller says that `allocate` gave the memory for this size.
            unsafe { dealloc(data.cast().as_ptr(), layout) };
        }
        Ok(())
    }

    unsafe fn copy(
        &self,
        _: Route,
        _: Device,
        to: *mut c_void,
        from: *const c_void,
        n: usize,
        _: Queue,
        _: &mut Report<'_>,
    ) -> Result<()> {
        // SAFETY: the caller vouches for both ranges, which may overlap.
        unsafe { core::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), n) };
        Ok(())
    }

    fn reaches(&self, _: Device, _: Device) -> bool {
        true
    }

    fn has_events(&self) -> bool {
        false
    }

    unsafe fn record(&self, _: Device, _: Queue, report: &mut Report<'_>) -> Result<NonNull<c_void>> {
        Err(Self::no_events(report))
    }

    unsafe fn queue_waits(
        &self,
        _: Device,
        _: NonNull<c_void>,
        _: Queue,
        report: &mut Report<'_>,
    ) -> Result<()> {
        Err(Self::no_events(report))
    }

    unsafe fn host_waits(&self, _: Device, _: NonNull<c_void>, report: &mut Report<'_>) -> Result<()> {
        Err(Self::no_events(report))
    }

    unsafe fn is_done(&self, _: Device, _: NonNull<c_void>, report: &mut Report<'_>) -> Result<bool> {
        Err(Self::no_events(report))
    }

    unsafe fn destroy_event(&self, _: Device, _: NonNull<c_void>) {}

    unsafe fn drain(&self, _: Device, _: Queue, _: &mut Report<'_>) -> Result<()> {
        Ok(())
    }

    fn is_host_accessible(&self, _: Device, _: &mut Report<'_>) -> Result<bool> {
        Ok(true)
    }

    fn locate(&self, _: Device, _: *const c_void, _: &mut Report<'_>) -> Result<Option<Device>> {
        Ok(None)
    }
}
