//! Devices, and the contexts in which the driver is called.
//!
//! Whatever a caller has made current is current again when a call returns.

use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::driver::{Address, Driver, Handle, INVALID_CONTEXT, INVALID_VALUE, NOT_SUPPORTED};
use crate::abi::{DEVICE_CUDA_HOST, Device};
use crate::device::backend::Queue;
use crate::error::{Report, Result, Status};

/// How many devices may be used. Drivers have been limited to 64.
const MOST: usize = 64;

const ATTRIBUTE_MANAGED_MEMORY: c_int = 83;
const ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: c_int = 89;
const ATTRIBUTE_MEMORY_POOLS: c_int = 115;
const POINTER_CONTEXT: c_int = 1;
const STREAM_NON_BLOCKING: u32 = 1;
const MODE_RELAXED: c_int = 2;

/// A device that was used before.
#[derive(Clone, Copy)]
pub(super) struct Opened {
    /// As the driver numbers it.
    pub handle: c_int,
    /// Its primary context, retained for good: the library's streams and events are in it.
    pub primary: Handle,
    /// Whether memory is made and freed in the order of a stream. It is asked once, because what was made so is to be freed so.
    pub has_pools: bool,
    /// Whether there is managed memory.
    pub has_managed: bool,
    /// Whether the CPU may use managed memory while the device works.
    pub is_concurrent: bool,
}

// SAFETY: a context may be used by any thread that makes it current.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

struct Stream(Handle);

// SAFETY: a stream may be used by any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

struct Slot {
    opened: OnceLock<Opened>,
    stream: OnceLock<Stream>,
    /// Held by whoever opens the device or makes its stream. A failure is not kept: memory may be there the next time.
    making: Mutex<()>,
}

static SLOTS: [Slot; MOST] =
    [const { Slot { opened: OnceLock::new(), stream: OnceLock::new(), making: Mutex::new(()) } }; MOST];

/// How many devices there are.
pub(super) fn count(driver: &Driver, report: &mut Report<'_>) -> Result<c_int> {
    let mut count = 0;
    // SAFETY: the count is this call's own.
    driver.call(&driver.device_count, report, |f| unsafe { f(&mut count) })?;
    Ok(count.max(0))
}

/// The ordinal that an id means. Pinned memory is no device's; where it names none, the first one serves.
fn ordinal(device: Device) -> i64 {
    if device.r#type == DEVICE_CUDA_HOST && device.id == -1 { 0 } else { device.id }
}

fn slot(driver: &Driver, device: Device, report: &mut Report<'_>) -> Result<&'static Slot> {
    let id = ordinal(device);
    let slot = usize::try_from(id).ok().and_then(|id| SLOTS.get(id));
    if let Some(slot) = slot
        && slot.opened.get().is_some()
    {
        return Ok(slot);
    }
    let n = count(driver, report)?;
    if id < 0 || id >= i64::from(n) {
        let message = format_args!("expected the id of one of {n} CUDA devices, found {id}");
        return Err(report.fail(Status::DeviceUnavailable, message));
    }
    slot.ok_or_else(|| {
        let message = format_args!("expected a CUDA device id below {MOST}, found {id}");
        report.fail(Status::Unsupported, message)
    })
}

/// The device, made ready by the first call that names it.
pub(super) fn open(driver: &Driver, device: Device, report: &mut Report<'_>) -> Result<&'static Opened> {
    let slot = slot(driver, device, report)?;
    if let Some(opened) = slot.opened.get() {
        return Ok(opened);
    }
    let _one_at_a_time = slot.making.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(opened) = slot.opened.get() {
        return Ok(opened);
    }
    // Making a context allocates.
    let _relaxed = Relaxed::enter(driver, report)?;
    let ordinal = c_int::try_from(ordinal(device)).unwrap_or(c_int::MAX);
    let mut handle = 0;
    // SAFETY: what is written to is this call's own, here and below.
    driver.call(&driver.device_get, report, |f| unsafe { f(&mut handle, ordinal) })?;
    let mut has = |attribute| {
        let Some(function) = driver.device_attribute.function() else { return Ok(false) };
        let mut value = 0;
        // SAFETY: as above; the device is one of the driver.
        match unsafe { function(&mut value, attribute, handle) } {
            0 => Ok(value != 0),
            // An older driver does not know the attribute, and so not what it is about.
            INVALID_VALUE => Ok(false),
            code => Err(driver.failed(&driver.device_attribute, code, report)),
        }
    };
    let can_pool = driver.memory_allocate_async.is_there() && driver.memory_free_async.is_there();
    let has_pools = can_pool && has(ATTRIBUTE_MEMORY_POOLS)?;
    let has_managed = has(ATTRIBUTE_MANAGED_MEMORY)?;
    let is_concurrent = has(ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)?;
    let mut primary = core::ptr::null_mut();
    // Last, so that nothing is retained when something fails.
    // SAFETY: as above.
    driver.call(&driver.primary_retain, report, |f| unsafe { f(&mut primary, handle) })?;
    Ok(slot.opened.get_or_init(|| Opened { handle, primary, has_pools, has_managed, is_concurrent }))
}

/// The library's stream of a device. Nothing orders it but events: it does not meet the legacy default stream.
pub(super) fn stream(driver: &Driver, device: Device, report: &mut Report<'_>) -> Result<Queue> {
    let slot = slot(driver, device, report)?;
    if let Some(stream) = slot.stream.get() {
        return Ok(stream.0);
    }
    let scope = Scope::of_device(driver, device, report)?;
    let _one_at_a_time = slot.making.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stream) = slot.stream.get() {
        return Ok(stream.0);
    }
    let mut stream = core::ptr::null_mut();
    // SAFETY: the stream is this call's own.
    driver.call(&driver.stream_create, report, |f| unsafe { f(&mut stream, STREAM_NON_BLOCKING) })?;
    drop(scope);
    Ok(slot.stream.get_or_init(|| Stream(stream)).0)
}

/// What `device` and CUDA's own current context say of calls, until it is dropped.
///
/// The context that a call needs is current, and no capture of the caller's is hurt by a call that a capture forbids.
pub(super) struct Scope<'d> {
    /// Dropped before the mode is put back, as it came after.
    _pushed: Option<Pushed<'d>>,
    _relaxed: Relaxed<'d>,
    /// The device that was named.
    pub device: &'static Opened,
}

impl<'d> Scope<'d> {
    /// For calls that concern a device.
    pub fn of_device(driver: &'d Driver, device: Device, report: &mut Report<'_>) -> Result<Self> {
        let opened = open(driver, device, report)?;
        let relaxed = Relaxed::enter(driver, report)?;
        let pushed = Pushed::enter(driver, opened.primary, report)?;
        Ok(Self { _pushed: Some(pushed), _relaxed: relaxed, device: opened })
    }

    /// For calls that concern a queue: in its own context.
    ///
    /// # Safety
    /// The queue is the driver's.
    pub unsafe fn of_queue(
        driver: &'d Driver,
        device: Device,
        queue: Queue,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let opened = open(driver, device, report)?;
        let relaxed = Relaxed::enter(driver, report)?;
        let pushed = if is_default(queue) {
            let is_current = is_current(driver, device, opened, report)?;
            if is_current { None } else { Some(Pushed::enter(driver, opened.primary, report)?) }
        } else {
            // SAFETY: as the caller promises.
            let context = unsafe { context_of(driver, opened, queue, report) }?;
            Some(Pushed::enter(driver, context, report)?)
        };
        Ok(Self { _pushed: pushed, _relaxed: relaxed, device: opened })
    }

    /// For calls that concern memory: in the context that it was made in, where the driver knows one.
    pub fn of_memory(
        driver: &'d Driver,
        device: Device,
        address: Address,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let opened = open(driver, device, report)?;
        let relaxed = Relaxed::enter(driver, report)?;
        let context = context_of_memory(driver, address).unwrap_or(opened.primary);
        let pushed = Pushed::enter(driver, context, report)?;
        Ok(Self { _pushed: Some(pushed), _relaxed: relaxed, device: opened })
    }
}

/// NULL, `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: which stream they are, the current context says.
fn is_default(queue: Queue) -> bool {
    matches!(queue.addr(), 0..=2)
}

/// Whether the caller made a context of the device current. For pinned memory any device will do.
fn is_current(driver: &Driver, device: Device, opened: &Opened, report: &mut Report<'_>) -> Result<bool> {
    let mut context = core::ptr::null_mut();
    // SAFETY: the context is this call's own.
    driver.call(&driver.context_current, report, |f| unsafe { f(&mut context) })?;
    if context.is_null() {
        return Ok(false);
    }
    Ok(device.r#type == DEVICE_CUDA_HOST || current_device(driver, report)? == opened.handle)
}

/// The device of the current context, as the driver numbers it.
pub(super) fn current_device(driver: &Driver, report: &mut Report<'_>) -> Result<c_int> {
    let mut device = 0;
    // SAFETY: the device is this call's own.
    driver.call(&driver.context_device, report, |f| unsafe { f(&mut device) })?;
    Ok(device)
}

/// The context of a stream that somebody made.
///
/// # Safety
/// The queue is the driver's.
unsafe fn context_of(
    driver: &Driver,
    opened: &Opened,
    queue: Queue,
    report: &mut Report<'_>,
) -> Result<Handle> {
    let function = driver.stream_context.get(report)?;
    let mut context = core::ptr::null_mut();
    // SAFETY: the queue is the driver's, as the caller promises, and the context is this call's own.
    let mut ask = || unsafe { function(queue, &mut context) };
    let mut code = ask();
    if code == INVALID_CONTEXT {
        // This thread has no current context, and the driver may want one, whichever.
        let _pushed = Pushed::enter(driver, opened.primary, report)?;
        code = ask();
    }
    match code {
        0 => Ok(context),
        // A stream of a green context, which works where its device's primary context is current.
        NOT_SUPPORTED => Ok(opened.primary),
        code => Err(driver.failed(&driver.stream_context, code, report)),
    }
}

/// The context that memory was made in. Memory of a pool is in none.
pub(super) fn context_of_memory(driver: &Driver, address: Address) -> Option<Handle> {
    let mut context: *mut c_void = core::ptr::null_mut();
    let into = (&raw mut context).cast();
    // SAFETY: the attribute is a pointer, and so is what it is written to.
    let code = unsafe { driver.pointer_attribute.function()?(into, POINTER_CONTEXT, address) };
    (code == 0 && !context.is_null()).then_some(context)
}

/// A context that is current until this is dropped.
struct Pushed<'d> {
    driver: &'d Driver,
    /// What was pushed on one thread is popped there.
    _here: PhantomData<*mut ()>,
}

impl<'d> Pushed<'d> {
    fn enter(driver: &'d Driver, context: Handle, report: &mut Report<'_>) -> Result<Self> {
        // What cannot be undone is not begun.
        driver.context_pop.get(report)?;
        // SAFETY: the context is one that the driver named, of a device or stream that lives.
        driver.call(&driver.context_push, report, |f| unsafe { f(context) })?;
        Ok(Self { driver, _here: PhantomData })
    }
}

impl Drop for Pushed<'_> {
    fn drop(&mut self) {
        if let Some(pop) = self.driver.context_pop.function() {
            let mut popped = core::ptr::null_mut();
            // A driver that cannot pop is at its end; there is nobody to tell.
            // SAFETY: the context is this call's own, and what is popped was pushed by `enter` on this thread.
            let _ = unsafe { pop(&mut popped) };
        }
    }
}

/// Lets this thread call what a capture elsewhere forbids, which would fail otherwise, and end that capture.
struct Relaxed<'d> {
    driver: &'d Driver,
    /// The mode to put back, if it was exchanged.
    before: Option<c_int>,
    /// The mode is that of one thread.
    _here: PhantomData<*mut ()>,
}

impl<'d> Relaxed<'d> {
    fn enter(driver: &'d Driver, report: &mut Report<'_>) -> Result<Self> {
        let mut before = None;
        if driver.exchange_mode.is_there() {
            let mut mode = MODE_RELAXED;
            // SAFETY: the mode is this call's own.
            driver.call(&driver.exchange_mode, report, |f| unsafe { f(&mut mode) })?;
            before = Some(mode);
        }
        Ok(Self { driver, before, _here: PhantomData })
    }
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        if let Some(mut mode) = self.before
            && let Some(exchange) = self.driver.exchange_mode.function()
        {
            // SAFETY: as in `enter`.
            let _ = unsafe { exchange(&mut mode) };
        }
    }
}
