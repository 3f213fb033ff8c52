//! Devices that plug-ins bring: a table of C functions.

use core::ffi::{CStr, c_char, c_void};
use core::fmt;
use core::ptr::NonNull;

use super::backend::{Backend, Queue, Route};
use super::device_name;
use crate::abi::{ArrowDeviceType, Device};
use crate::error::{Failed, Report, Result, Status};

/// What a device can do, as C functions.
///
/// `device_id` is what a caller or a producer named: there need not be such a device. `queue` is one of the driver's queues. Each function gets `ctx` first,
/// may be called from any thread, several at a time, with no lock held, and must not unwind. Those that return a number return
/// 0, or an error number of their own.
///
/// Work that is enqueued on a queue runs in order. A backend whose copies are done when they return has no queues and no
/// events: it leaves all members from `library_queue` to `destroy_event` NULL.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DeviceBackend {
    /// Size of this struct in the caller's build.
    pub struct_size: usize,
    /// Goes first to every function; it must live as long as the process.
    pub ctx: *mut c_void,
    /// Writes the number of devices. NULL: one, with id 0.
    pub probe: Option<unsafe extern "C" fn(ctx: *mut c_void, count: *mut i64) -> i32>,
    /// Writes the address of `size` bytes, aligned to 64, for work on `queue`, or NULL when there is no room. Required.
    pub allocate: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            device_id: i64,
            size: i64,
            queue: *mut c_void,
            data: *mut *mut c_void,
        ) -> i32,
    >,
    /// Frees memory of `allocate` once the work that is on `queue` by now is done. Required.
    pub free: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            device_id: i64,
            data: *mut c_void,
            size: i64,
            queue: *mut c_void,
        ) -> i32,
    >,
    /// Copies `n` bytes from CPU memory to the device, which may be read until the copy is done. Required.
    pub copy_from_host: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            device_id: i64,
            to: *mut c_void,
            from: *const c_void,
            n: i64,
            queue: *mut c_void,
        ) -> i32,
    >,
    /// Copies `n` bytes from the device to CPU memory. Required.
    pub copy_to_host: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            device_id: i64,
            to: *mut c_void,
            from: *const c_void,
            n: i64,
            queue: *mut c_void,
        ) -> i32,
    >,
    /// Copies `n` bytes within the device. NULL: copies go through CPU memory.
    pub copy_within: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            device_id: i64,
            to: *mut c_void,
            from: *const c_void,
            n: i64,
            queue: *mut c_void,
        ) -> i32,
    >,
    /// Copies `n` bytes to a device from another one of this type; `queue` is of the device that they go to. NULL: copies go
    /// through CPU memory.
    pub copy_between: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            to_device_id: i64,
            to: *mut c_void,
            from_device_id: i64,
            from: *const c_void,
            n: i64,
            queue: *mut c_void,
        ) -> i32,
    >,
    /// Writes the queue of a device that the library is to use where it has no queue of a caller; it must live as long as the
    /// process. NULL: the default queue, which is NULL.
    pub library_queue:
        Option<unsafe extern "C" fn(ctx: *mut c_void, device_id: i64, queue: *mut *mut c_void) -> i32>,
    /// Blocks until all that is on `queue` is done. Required with events.
    pub drain: Option<unsafe extern "C" fn(ctx: *mut c_void, device_id: i64, queue: *mut c_void) -> i32>,
    /// Writes a new event, done when all that is on `queue` by now is done. It becomes the `sync_event` of arrays as it is
    /// where the interface leaves events to their producer; where events are handles, arrays point to it.
    pub record: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            device_id: i64,
            queue: *mut c_void,
            event: *mut *mut c_void,
        ) -> i32,
    >,
    /// Lets what is enqueued on `queue` from now on run after `event`, also one of another device of this type.
    pub queue_waits: Option<
        unsafe extern "C" fn(ctx: *mut c_void, device_id: i64, event: *mut c_void, queue: *mut c_void) -> i32,
    >,
    /// Blocks until `event` is done.
    pub host_waits: Option<unsafe extern "C" fn(ctx: *mut c_void, device_id: i64, event: *mut c_void) -> i32>,
    /// Writes 1 when `event` is done, else 0.
    pub is_done: Option<
        unsafe extern "C" fn(ctx: *mut c_void, device_id: i64, event: *mut c_void, done: *mut i32) -> i32,
    >,
    /// Ends an event of `record`, done or not.
    pub destroy_event: Option<unsafe extern "C" fn(ctx: *mut c_void, device_id: i64, event: *mut c_void)>,
    /// Writes 1 when the CPU may read and write the device's memory itself once the work on it is done. NULL: it may not.
    pub host_accessible:
        Option<unsafe extern "C" fn(ctx: *mut c_void, device_id: i64, accessible: *mut i32) -> i32>,
    /// Writes where the memory at an address is: the CPU for memory that is not the driver's, and a type of 0 where it cannot
    /// tell. NULL: it never can.
    pub locate:
        Option<unsafe extern "C" fn(ctx: *mut c_void, data: *const c_void, device: *mut Device) -> i32>,
    /// Text for an error number of these functions, valid until the next call on the same thread. NULL: none.
    pub error_text: Option<unsafe extern "C" fn(ctx: *mut c_void, code: i32) -> *const c_char>,
}

/// A registered table.
#[derive(Debug)]
pub(super) struct Plugin {
    device_type: ArrowDeviceType,
    table: DeviceBackend,
}

// SAFETY: whoever registered the table promised that any thread may call its functions.
unsafe impl Send for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Plugin {}

impl Plugin {
    /// Checks which functions there are.
    ///
    /// # Safety
    /// As [`super::register`].
    pub(super) unsafe fn new(
        device_type: ArrowDeviceType,
        table: &DeviceBackend,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let mut missing = |is_there: bool, name: &str| {
            if is_there {
                return Ok(());
            }
            let message = format_args!("expected {name} in the backend, found NULL");
            Err(report.fail(Status::InvalidArgument, message))
        };
        missing(table.allocate.is_some(), "allocate")?;
        missing(table.free.is_some(), "free")?;
        missing(table.copy_from_host.is_some(), "copy_from_host")?;
        missing(table.copy_to_host.is_some(), "copy_to_host")?;
        let events = [
            (table.drain.is_some(), "drain, as there are events,"),
            (table.record.is_some(), "record, as there are events,"),
            (table.queue_waits.is_some(), "queue_waits, as there are events,"),
            (table.host_waits.is_some(), "host_waits, as there are events,"),
            (table.is_done.is_some(), "is_done, as there are events,"),
            (table.destroy_event.is_some(), "destroy_event, as there are events,"),
        ];
        if events.iter().any(|(is_there, _)| *is_there) || table.library_queue.is_some() {
            events.iter().try_for_each(|(is_there, name)| missing(*is_there, name))?;
        }
        Ok(Self { device_type, table: *table })
    }

    #[cold]
    fn absent(&self, name: &str, report: &mut Report<'_>) -> Failed {
        let (number, type_name) = (self.device_type, device_name(self.device_type));
        let message =
            format_args!("expected {name} in the backend of device type {number} ({type_name}), found NULL");
        report.fail(Status::Unsupported, message)
    }

    fn checked(&self, code: i32, name: &str, report: &mut Report<'_>) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.failed(code, name, report)) }
    }

    #[cold]
    fn failed(&self, code: i32, name: &str, report: &mut Report<'_>) -> Failed {
        let number = self.device_type;
        let text = Text(self, code);
        let message = format_args!("{name} of the backend of device type {number} returned {code}{text}");
        report.fail_with_code(Status::DeviceError, i64::from(code), message)
    }
}

/// What a plug-in says of an error number.
struct Text<'a>(&'a Plugin, i32);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(error_text) = self.0.table.error_text else { return Ok(()) };
        // SAFETY: whoever registered the table vouched for its functions.
        let text = unsafe { error_text(self.0.table.ctx, self.1) };
        if text.is_null() {
            return Ok(());
        }
        // SAFETY: the function returns NULL or a string, valid until the next call on this thread.
        write!(f, ": {}", crate::error::Lossy(unsafe { CStr::from_ptr(text) }.to_bytes()))
    }
}

fn signed(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// In every function: whoever registered the table vouched for its functions, and the caller for the arguments.
impl Backend for Plugin {
    fn count(&self, _: i32, report: &mut Report<'_>) -> Result<i64> {
        let Some(probe) = self.table.probe else { return Ok(1) };
        let mut count = 0;
        // SAFETY: see the head of this block, here and below.
        self.checked(unsafe { probe(self.table.ctx, &mut count) }, "probe", report)?;
        Ok(count.max(0))
    }

    fn library_queue(&self, device: Device, report: &mut Report<'_>) -> Result<Queue> {
        let mut queue = core::ptr::null_mut();
        if let Some(library_queue) = self.table.library_queue {
            // SAFETY: see the head of this block.
            let code = unsafe { library_queue(self.table.ctx, device.id, &mut queue) };
            self.checked(code, "library_queue", report)?;
        }
        Ok(queue)
    }

    unsafe fn check_queue(&self, _: Device, _: Queue, _: &mut Report<'_>) -> Result<()> {
        Ok(())
    }

    unsafe fn allocate(
        &self,
        device: Device,
        size: usize,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<NonNull<c_void>> {
        let Some(allocate) = self.table.allocate else { return Err(self.absent("allocate", report)) };
        let mut data = core::ptr::null_mut();
        // SAFETY: see the head of this block.
        let code = unsafe { allocate(self.table.ctx, device.id, signed(size), queue, &mut data) };
        self.checked(code, "allocate", report)?;
        NonNull::new(data).ok_or_else(|| report.out_of_memory(size))
    }

    unsafe fn free(
        &self,
        device: Device,
        data: NonNull<c_void>,
        size: usize,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let Some(free) = self.table.free else { return Err(self.absent("free", report)) };
        // SAFETY: see the head of this block.
        let code = unsafe { free(self.table.ctx, device.id, data.as_ptr(), signed(size), queue) };
        self.checked(code, "free", report)
    }

    unsafe fn copy(
        &self,
        route: Route,
        device: Device,
        to: *mut c_void,
        from: *const c_void,
        n: usize,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let table = &self.table;
        let (function, name) = match route {
            Route::FromHost => (table.copy_from_host, "copy_from_host"),
            Route::ToHost => (table.copy_to_host, "copy_to_host"),
            Route::Within => (table.copy_within, "copy_within"),
            Route::From(other) => {
                let name = "copy_between";
                let Some(copy) = table.copy_between else { return Err(self.absent(name, report)) };
                // SAFETY: see the head of this block.
                let code = unsafe { copy(table.ctx, device.id, to, other.id, from, signed(n), queue) };
                return self.checked(code, name, report);
            }
        };
        let Some(copy) = function else { return Err(self.absent(name, report)) };
        // SAFETY: see the head of this block.
        let code = unsafe { copy(table.ctx, device.id, to, from, signed(n), queue) };
        self.checked(code, name, report)
    }

    fn reaches(&self, to: Device, from: Device) -> bool {
        let own = to.r#type == self.device_type && from.r#type == self.device_type;
        own && if to.id == from.id {
            self.table.copy_within.is_some()
        } else {
            self.table.copy_between.is_some()
        }
    }

    fn has_events(&self) -> bool {
        self.table.record.is_some()
    }

    unsafe fn record(
        &self,
        device: Device,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<NonNull<c_void>> {
        let Some(record) = self.table.record else { return Err(self.absent("record", report)) };
        let mut event = core::ptr::null_mut();
        // SAFETY: see the head of this block.
        self.checked(unsafe { record(self.table.ctx, device.id, queue, &mut event) }, "record", report)?;
        NonNull::new(event).ok_or_else(|| {
            let message = format_args!("expected an event of the backend's record, found NULL");
            report.fail(Status::DeviceError, message)
        })
    }

    unsafe fn queue_waits(
        &self,
        device: Device,
        event: NonNull<c_void>,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let Some(waits) = self.table.queue_waits else { return Err(self.absent("queue_waits", report)) };
        // SAFETY: see the head of this block.
        let code = unsafe { waits(self.table.ctx, device.id, event.as_ptr(), queue) };
        self.checked(code, "queue_waits", report)
    }

    unsafe fn host_waits(
        &self,
        device: Device,
        event: NonNull<c_void>,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let Some(waits) = self.table.host_waits else { return Err(self.absent("host_waits", report)) };
        // SAFETY: see the head of this block.
        self.checked(unsafe { waits(self.table.ctx, device.id, event.as_ptr()) }, "host_waits", report)
    }

    unsafe fn is_done(
        &self,
        device: Device,
        event: NonNull<c_void>,
        report: &mut Report<'_>,
    ) -> Result<bool> {
        let Some(is_done) = self.table.is_done else { return Err(self.absent("is_done", report)) };
        let mut done = 0;
        // SAFETY: see the head of this block.
        let code = unsafe { is_done(self.table.ctx, device.id, event.as_ptr(), &mut done) };
        self.checked(code, "is_done", report)?;
        Ok(done != 0)
    }

    unsafe fn destroy_event(&self, device: Device, event: NonNull<c_void>) {
        if let Some(destroy) = self.table.destroy_event {
            // SAFETY: see the head of this block.
            unsafe { destroy(self.table.ctx, device.id, event.as_ptr()) };
        }
    }

    unsafe fn drain(&self, device: Device, queue: Queue, report: &mut Report<'_>) -> Result<()> {
        // Without events, everything is done already.
        let Some(drain) = self.table.drain else { return Ok(()) };
        // SAFETY: see the head of this block.
        self.checked(unsafe { drain(self.table.ctx, device.id, queue) }, "drain", report)
    }

    fn is_host_accessible(&self, device: Device, report: &mut Report<'_>) -> Result<bool> {
        let Some(accessible) = self.table.host_accessible else { return Ok(false) };
        let mut answer = 0;
        // SAFETY: see the head of this block.
        let code = unsafe { accessible(self.table.ctx, device.id, &mut answer) };
        self.checked(code, "host_accessible", report)?;
        Ok(answer != 0)
    }

    fn locate(&self, _: Device, data: *const c_void, report: &mut Report<'_>) -> Result<Option<Device>> {
        let Some(locate) = self.table.locate else { return Ok(None) };
        let mut found = Device { r#type: 0, id: 0 };
        // SAFETY: see the head of this block.
        self.checked(unsafe { locate(self.table.ctx, data, &mut found) }, "locate", report)?;
        Ok(if found.r#type == 0 { None } else { Some(found) })
    }
}
