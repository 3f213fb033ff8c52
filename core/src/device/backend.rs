//! What a device can do: the one interface that the CPU, CUDA and plug-ins stand behind.

use core::ffi::c_void;
use core::ptr::NonNull;

use crate::abi::Device;
use crate::error::{Report, Result};

/// A queue of a device's driver, on which work runs in order. NULL is the driver's default queue, never "none".
pub type Queue = *mut c_void;

/// Between which memories a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// From CPU memory to the device.
    FromHost,
    /// From the device to CPU memory.
    ToHost,
    /// From the device to itself.
    Within,
    /// From another device of the same backend.
    From(Device),
}

/// One device type's driver.
///
/// Work is enqueued on a queue and runs in the order in which it was enqueued; a backend without queues does it at once.
/// Any thread may call any function. A queue is one of the device that the call names, or the backend's own for it.
pub trait Backend: Sync {
    /// The number of devices, or why there are none.
    fn count(&self, device_type: i32, report: &mut Report<'_>) -> Result<i64>;

    /// The library's own queue for a device. It lives as long as the process.
    fn library_queue(&self, device: Device, report: &mut Report<'_>) -> Result<Queue>;

    /// Checks that work may be enqueued on a queue of a caller.
    ///
    /// # Safety
    /// The queue is one of the device's driver.
    unsafe fn check_queue(&self, device: Device, queue: Queue, report: &mut Report<'_>) -> Result<()>;

    /// Memory of `size` bytes, more than none, aligned to 64 bytes, for work on `queue`.
    ///
    /// # Safety
    /// The queue is one of the device's driver.
    unsafe fn allocate(
        &self,
        device: Device,
        size: usize,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<NonNull<c_void>>;

    /// Frees memory once the work on `queue` is done.
    ///
    /// # Safety
    /// The memory came from [`Backend::allocate`] with this size, and nobody uses it after the work on `queue`.
    unsafe fn free(
        &self,
        device: Device,
        data: NonNull<c_void>,
        size: usize,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<()>;

    /// Copies `n` bytes, more than none, on `queue`.
    ///
    /// # Safety
    /// Both ranges are there, on the memories that the route names, until the copy is done.
    #[allow(
        clippy::too_many_arguments,
        reason = "two ends, a size, a way and a queue, each a value of its own"
    )]
    unsafe fn copy(
        &self,
        route: Route,
        device: Device,
        to: *mut c_void,
        from: *const c_void,
        n: usize,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<()>;

    /// Whether the backend copies from `from` to `to` by itself, both being its own.
    fn reaches(&self, to: Device, from: Device) -> bool;

    /// Whether work runs later than its call, so that there are events.
    fn has_events(&self) -> bool;

    /// Records a new event on a queue: it is done when what was enqueued before is.
    ///
    /// # Safety
    /// The queue is one of the device's driver.
    unsafe fn record(&self, device: Device, queue: Queue, report: &mut Report<'_>)
    -> Result<NonNull<c_void>>;

    /// Makes a queue wait for an event, also one of another device of this backend.
    ///
    /// # Safety
    /// Queue and event are the driver's.
    unsafe fn queue_waits(
        &self,
        device: Device,
        event: NonNull<c_void>,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<()>;

    /// Blocks until an event is done.
    ///
    /// # Safety
    /// The event is the driver's.
    unsafe fn host_waits(
        &self,
        device: Device,
        event: NonNull<c_void>,
        report: &mut Report<'_>,
    ) -> Result<()>;

    /// Whether an event is done.
    ///
    /// # Safety
    /// The event is the driver's.
    unsafe fn is_done(&self, device: Device, event: NonNull<c_void>, report: &mut Report<'_>)
    -> Result<bool>;

    /// Ends an event that [`Backend::record`] made, done or not.
    ///
    /// # Safety
    /// Nobody uses the event afterwards.
    unsafe fn destroy_event(&self, device: Device, event: NonNull<c_void>);

    /// Blocks until all that was enqueued on a queue is done.
    ///
    /// # Safety
    /// The queue is one of the device's driver.
    unsafe fn drain(&self, device: Device, queue: Queue, report: &mut Report<'_>) -> Result<()>;

    /// Whether the CPU may read and write the device's memory by itself, once the work on it is done.
    fn is_host_accessible(&self, device: Device, report: &mut Report<'_>) -> Result<bool>;

    /// Where memory is that is said to be on `device`: the device as its producer would name it, the CPU for memory that the
    /// driver does not know, and nothing where the driver cannot tell.
    fn locate(&self, device: Device, data: *const c_void, report: &mut Report<'_>) -> Result<Option<Device>>;
}
