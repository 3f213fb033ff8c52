//! CUDA, through the driver that is found at run time.

mod context;
mod driver;
#[cfg(test)]
mod tests;

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::sync::OnceLock;

use self::context::{Scope, context_of_memory, count, current_device, open, stream};
use self::driver::{Address, CAPTURE_IMPLICIT, Driver, Handle, NOT_READY};
use super::backend::{Backend, Queue, Route};
use super::waits::{self, Wait};
use crate::abi::{ArrowDeviceType, DEVICE_CUDA, DEVICE_CUDA_HOST, DEVICE_CUDA_MANAGED, Device};
use crate::error::{ErrorRecord, Report, Result, Status, capture};
use crate::memory::ALIGNMENT;

const HOST_ALLOC_PORTABLE: u32 = 1;
const HOST_ALLOC_DEVICEMAP: u32 = 2;
const ATTACH_GLOBAL: u32 = 1;
const EVENT_DISABLE_TIMING: u32 = 2;
const POINTER_MEMORY_TYPE: c_int = 2;
const POINTER_IS_MANAGED: c_int = 8;
const POINTER_DEVICE_ORDINAL: c_int = 9;
const MEMORY_TYPE_HOST: c_int = 1;
const MEMORY_TYPE_DEVICE: c_int = 2;

/// All of CUDA's device types.
struct Cuda {
    driver: Driver,
}

/// Whether a device type is one of CUDA's.
pub(super) fn is_cuda(device_type: ArrowDeviceType) -> bool {
    matches!(device_type, DEVICE_CUDA | DEVICE_CUDA_HOST | DEVICE_CUDA_MANAGED)
}

/// The driver, opened by the first call. A failure is kept.
#[allow(clippy::result_large_err, reason = "the record is kept, once")]
pub(super) fn backend(report: &mut Report<'_>) -> Result<&'static dyn Backend> {
    static CUDA: OnceLock<core::result::Result<Cuda, ErrorRecord>> = OnceLock::new();
    match CUDA.get_or_init(|| capture(|report| Ok(Cuda { driver: Driver::open(report)? }))) {
        Ok(cuda) => Ok(cuda),
        Err(kept) => {
            let status = Status::from_code(kept.status).unwrap_or(Status::DeviceUnavailable);
            Err(report.fail_with_code(status, kept.native_code, format_args!("{}", kept.message())))
        }
    }
}

fn address(data: *const c_void) -> Address {
    data.expose_provenance() as Address
}

fn pointer(address: Address) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(address as usize)
}

impl Cuda {
    /// Memory of a device's own, its address.
    ///
    /// # Safety
    /// The scope is that of the queue.
    unsafe fn allocate_on_device(
        &self,
        scope: &Scope<'_>,
        size: usize,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<Address> {
        let (driver, mut address) = (&self.driver, 0);
        if scope.device.has_pools {
            let entry = &driver.memory_allocate_async;
            // SAFETY: the address is this call's own, and the queue the driver's.
            driver.call(entry, report, |f| unsafe { f(&mut address, size, queue) })?;
        } else {
            // SAFETY: as above.
            driver.call(&driver.memory_allocate, report, |f| unsafe { f(&mut address, size) })?;
        }
        Ok(address)
    }

    /// Frees memory that is not a pool's.
    ///
    /// # Safety
    /// The memory is of this type of device, and nobody uses it.
    unsafe fn free_now(&self, device: Device, data: NonNull<c_void>, report: &mut Report<'_>) -> Result<()> {
        let driver = &self.driver;
        let _scope = Scope::of_memory(driver, device, address(data.as_ptr()), report)?;
        if device.r#type == DEVICE_CUDA_HOST {
            // SAFETY: as the caller promises.
            driver.call(&driver.host_free, report, |f| unsafe { f(data.as_ptr()) })
        } else {
            // SAFETY: as the caller promises.
            driver.call(&driver.memory_free, report, |f| unsafe { f(address(data.as_ptr())) })
        }
    }

    /// Destroys an event in a context that is current.
    ///
    /// # Safety
    /// Nobody uses the event afterwards.
    unsafe fn destroy(&self, event: Handle) {
        if let Some(destroy) = self.driver.event_destroy.function() {
            // SAFETY: as the caller promises. There is nobody to tell of a failure.
            let _ = unsafe { destroy(event) };
        }
    }

    /// The memory's device, as far as the driver knows it: what it does not know is the CPU's.
    fn location(&self, data: *const c_void, report: &mut Report<'_>) -> Result<Device> {
        let driver = &self.driver;
        let mut names = [POINTER_MEMORY_TYPE, POINTER_IS_MANAGED, POINTER_DEVICE_ORDINAL];
        // As wide as any attribute is, because drivers disagree on how wide a boolean is.
        let mut values = [[0 as c_int; 2]; 3];
        let mut into = values.each_mut().map(|value| value.as_mut_ptr().cast::<c_void>());
        // SAFETY: there are three of each, and each value has room.
        driver.call(&driver.pointer_attributes, report, |f| unsafe {
            f(3, names.as_mut_ptr(), into.as_mut_ptr(), address(data))
        })?;
        let [[memory_type, _], [is_managed, _], [ordinal, _]] = values;
        let id = i64::from(ordinal);
        // First, because managed memory that is with the CPU just now counts as the CPU's.
        if is_managed != 0 {
            return Ok(Device { r#type: DEVICE_CUDA_MANAGED, id });
        }
        Ok(match memory_type {
            MEMORY_TYPE_HOST => Device { r#type: DEVICE_CUDA_HOST, id },
            MEMORY_TYPE_DEVICE => Device { r#type: DEVICE_CUDA, id },
            _ => Device::CPU,
        })
    }
}

/// In every function: queues, events and memory are what the caller says, and what is written to is the call's own.
impl Backend for Cuda {
    fn count(&self, _: i32, report: &mut Report<'_>) -> Result<i64> {
        count(&self.driver, report).map(i64::from)
    }

    fn library_queue(&self, device: Device, report: &mut Report<'_>) -> Result<Queue> {
        stream(&self.driver, device, report)
    }

    unsafe fn check_queue(&self, device: Device, queue: Queue, report: &mut Report<'_>) -> Result<()> {
        let driver = &self.driver;
        // SAFETY: see the head of this block, here and below.
        let scope = unsafe { Scope::of_queue(driver, device, queue, report) }?;
        // Pinned memory is used from queues of any device.
        if device.r#type != DEVICE_CUDA_HOST {
            let (expected, found) = (scope.device.handle, current_device(driver, report)?);
            if expected != found {
                let message =
                    format_args!("expected a queue of CUDA device {expected}, found one of {found}");
                return Err(report.fail(Status::InvalidArgument, message));
            }
        }
        let Some(is_capturing) = driver.stream_is_capturing.function() else { return Ok(()) };
        let mut status = 0;
        // SAFETY: see the head of this block.
        match unsafe { is_capturing(queue, &mut status) } {
            0 if status == 0 => Ok(()),
            0 => {
                let message = format_args!("expected a queue that runs its work, found one that is captured");
                Err(report.fail(Status::Unsupported, message))
            }
            // Asking is allowed here; enqueuing would end the other capture.
            code @ CAPTURE_IMPLICIT => {
                let (entry, why) = (&driver.stream_is_capturing, ", because another queue is captured");
                Err(driver.failed_as(Status::Unsupported, entry, code, why, report))
            }
            code => Err(driver.failed(&driver.stream_is_capturing, code, report)),
        }
    }

    unsafe fn allocate(
        &self,
        device: Device,
        size: usize,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<NonNull<c_void>> {
        let driver = &self.driver;
        // SAFETY: see the head of this block.
        let scope = unsafe { Scope::of_queue(driver, device, queue, report) }?;
        let mut data = core::ptr::null_mut();
        match device.r#type {
            DEVICE_CUDA_HOST => {
                let flags = HOST_ALLOC_PORTABLE | HOST_ALLOC_DEVICEMAP;
                // SAFETY: see the head of this block.
                driver.call(&driver.host_allocate, report, |f| unsafe { f(&mut data, size, flags) })?;
            }
            DEVICE_CUDA_MANAGED => {
                if !scope.device.has_managed {
                    let id = device.id;
                    let message =
                        format_args!("expected a device with managed memory, found CUDA device {id}");
                    return Err(report.fail(Status::Unsupported, message));
                }
                let mut address = 0;
                // SAFETY: see the head of this block.
                driver.call(&driver.managed_allocate, report, |f| unsafe {
                    f(&mut address, size, ATTACH_GLOBAL)
                })?;
                data = pointer(address);
            }
            _ => {
                // SAFETY: see the head of this block.
                data = pointer(unsafe { self.allocate_on_device(&scope, size, queue, report) }?);
            }
        }
        drop(scope);
        let Some(data) = NonNull::new(data) else { return Err(report.out_of_memory(size)) };
        if data.addr().get() & ALIGNMENT.wrapping_sub(1) != 0 {
            // SAFETY: the memory was just allocated so, and nobody has it yet.
            let _ = unsafe { self.free(device, data, size, queue, &mut Report::silent()) };
            let message = format_args!(
                "expected memory of the CUDA driver aligned to {ALIGNMENT} bytes, found {data:p}"
            );
            return Err(report.fail(Status::DeviceError, message));
        }
        Ok(data)
    }

    unsafe fn free(
        &self,
        device: Device,
        data: NonNull<c_void>,
        _: usize,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let driver = &self.driver;
        if device.r#type == DEVICE_CUDA && open(driver, device, report)?.has_pools {
            // SAFETY: see the head of this block.
            let _scope = unsafe { Scope::of_queue(driver, device, queue, report) }?;
            let data = address(data.as_ptr());
            // SAFETY: see the head of this block.
            return driver.call(&driver.memory_free_async, report, |f| unsafe { f(data, queue) });
        }
        // The driver frees such memory at once. No callback of a stream may call the driver, so this thread waits. Memory that
        // may still be in use is left alone.
        // SAFETY: see the head of this block.
        unsafe {
            waits::drain(Wait::FreeDrained, self, device, queue, report)?;
            self.free_now(device, data, report)
        }
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
        let driver = &self.driver;
        let (to_address, from_address) = (address(to), address(from));
        // SAFETY: see the head of this block, here and below.
        let scope = unsafe { Scope::of_queue(driver, device, queue, report) }?;
        let is_device = device.r#type == DEVICE_CUDA;
        match route {
            Route::FromHost if is_device => {
                // SAFETY: see above.
                driver.call(&driver.copy_from_host, report, |f| unsafe { f(to_address, from, n, queue) })
            }
            Route::ToHost if is_device => {
                // SAFETY: see above.
                driver.call(&driver.copy_to_host, report, |f| unsafe { f(to, from_address, n, queue) })
            }
            Route::From(other) if is_device && other.r#type == DEVICE_CUDA && other.id != device.id => {
                let source = context_of_memory(driver, from_address);
                let source = source.map_or_else(|| Ok(open(driver, other, report)?.primary), Ok)?;
                let target = context_of_memory(driver, to_address).unwrap_or(scope.device.primary);
                // SAFETY: see above.
                driver.call(&driver.copy_between, report, |f| unsafe {
                    f(to_address, target, from_address, source, n, queue)
                })
            }
            Route::Within | Route::From(Device { r#type: DEVICE_CUDA, .. }) if is_device => {
                // SAFETY: see above.
                driver.call(&driver.copy_within, report, |f| unsafe { f(to_address, from_address, n, queue) })
            }
            // Addresses are unified, so the driver sees where each one is.
            _ => {
                // SAFETY: see above.
                driver.call(&driver.copy, report, |f| unsafe { f(to_address, from_address, n, queue) })
            }
        }
    }

    fn reaches(&self, to: Device, from: Device) -> bool {
        is_cuda(to.r#type) && is_cuda(from.r#type)
    }

    fn has_events(&self) -> bool {
        true
    }

    unsafe fn record(
        &self,
        device: Device,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<NonNull<c_void>> {
        let driver = &self.driver;
        // An event is recorded only in the context in which it was made.
        // SAFETY: see the head of this block, here and below.
        let _scope = unsafe { Scope::of_queue(driver, device, queue, report) }?;
        let mut event = core::ptr::null_mut();
        // SAFETY: see above.
        driver.call(&driver.event_create, report, |f| unsafe { f(&mut event, EVENT_DISABLE_TIMING) })?;
        // SAFETY: see above.
        driver.call(&driver.event_record, report, |f| unsafe { f(event, queue) }).inspect_err(|_| {
            // SAFETY: nobody has the event yet.
            unsafe { self.destroy(event) };
        })?;
        NonNull::new(event).ok_or_else(|| {
            let message = format_args!("expected an event of the CUDA driver, found NULL");
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
        let driver = &self.driver;
        // SAFETY: see the head of this block.
        let _scope = unsafe { Scope::of_queue(driver, device, queue, report) }?;
        // SAFETY: see the head of this block.
        driver.call(&driver.stream_wait, report, |f| unsafe { f(queue, event.as_ptr(), 0) })
    }

    unsafe fn host_waits(
        &self,
        device: Device,
        event: NonNull<c_void>,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let driver = &self.driver;
        let _scope = Scope::of_device(driver, device, report)?;
        // SAFETY: see the head of this block.
        driver.call(&driver.event_synchronize, report, |f| unsafe { f(event.as_ptr()) })
    }

    unsafe fn is_done(
        &self,
        device: Device,
        event: NonNull<c_void>,
        report: &mut Report<'_>,
    ) -> Result<bool> {
        let driver = &self.driver;
        let _scope = Scope::of_device(driver, device, report)?;
        // SAFETY: see the head of this block.
        match unsafe { driver.event_query.get(report)?(event.as_ptr()) } {
            0 => Ok(true),
            NOT_READY => Ok(false),
            code => Err(driver.failed(&driver.event_query, code, report)),
        }
    }

    unsafe fn destroy_event(&self, device: Device, event: NonNull<c_void>) {
        // Where there is no context to do it in, as at the end of the process, the event is left alone.
        if let Ok(_scope) = Scope::of_device(&self.driver, device, &mut Report::silent()) {
            // SAFETY: see the head of this block.
            unsafe { self.destroy(event.as_ptr()) };
        }
    }

    unsafe fn drain(&self, device: Device, queue: Queue, report: &mut Report<'_>) -> Result<()> {
        let driver = &self.driver;
        // SAFETY: see the head of this block.
        let _scope = unsafe { Scope::of_queue(driver, device, queue, report) }?;
        // SAFETY: see the head of this block.
        driver.call(&driver.stream_synchronize, report, |f| unsafe { f(queue) })
    }

    fn is_host_accessible(&self, device: Device, report: &mut Report<'_>) -> Result<bool> {
        match device.r#type {
            DEVICE_CUDA_HOST => Ok(true),
            DEVICE_CUDA_MANAGED => Ok(open(&self.driver, device, report)?.is_concurrent),
            _ => Ok(false),
        }
    }

    fn locate(&self, device: Device, data: *const c_void, report: &mut Report<'_>) -> Result<Option<Device>> {
        let found = {
            let _scope = Scope::of_device(&self.driver, device, report)?;
            self.location(data, report)?
        };
        let fits = match (device.r#type, found.r#type) {
            (DEVICE_CUDA, DEVICE_CUDA) => device.id == found.id,
            // Managed memory does all that a device's own does, and moves; pinned memory is no device's.
            (DEVICE_CUDA, DEVICE_CUDA_MANAGED) => true,
            (said, found) => said == found,
        };
        Ok(Some(if fits { device } else { found }))
    }
}
