//! Devices: plug-in backends, what there is, pending work, and how copies between devices are made.

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

use bowstring_core::abi::{ArrowDeviceArray, ArrowDeviceType, Device};
use bowstring_core::device::{
    self, Allocator, DeviceBackend, Sync, Teller, check_foreign, hold_until, normalise, pending,
};
use bowstring_core::error::{ErrorRecord, Report, Result, Status};
use bowstring_core::memory::Owner;
use bowstring_core::stream::StreamOptions;
use bowstring_core::transfer::{Options, Progress};

use crate::array::sync_or_none;
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{check, required_mut};
use crate::raw::{free_raw, move_raw, new_raw};
use crate::sized::{self, read_input};

/// For BowstringTransferOptions.flags: where the memory can be reached from the device already, hand it out instead of a copy.
pub const BOWSTRING_TRANSFER_MAY_SHARE: u64 = 1;

/// How a copy to a device is to be made. NULL, or all but struct_size zero: a copy in memory of the library's own, on one of
/// its queues, of memory that nothing is pending on.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BowstringTransferOptions {
    /// Size of this struct in the caller's build.
    pub struct_size: usize,
    /// What to do about unfinished device work. With QUEUE, copies run on that queue, which is one of the device that they go
    /// to, or, when that is the CPU, of the one that they come from. With HOST the call returns when the copy is done. With NONE
    /// and LIBRARY they run on a queue of the library's.
    pub sync: Sync,
    /// `BOWSTRING_TRANSFER_*`.
    pub flags: u64,
    /// Goes first to the functions below.
    pub ctx: *mut c_void,
    /// Gives memory of the device, aligned to 64 bytes, for work on `queue`, or NULL; NULL: the device's own allocator.
    pub allocate:
        Option<unsafe extern "C" fn(ctx: *mut c_void, size: i64, queue: *mut c_void) -> *mut c_void>,
    /// Takes memory of `allocate` back once the work that is on `queue` by now is done: a queue of the library's, which waits
    /// for what the library did with it. It may come long after the call, from any thread.
    pub deallocate:
        Option<unsafe extern "C" fn(ctx: *mut c_void, data: *mut c_void, size: i64, queue: *mut c_void)>,
    /// Is told how many batches and rows there were, and how many bytes of the current one; a number other than 0 cancels. NULL:
    /// nobody is told. It runs on the thread that copies, which for a stream with a depth is one of the library's. A stream also
    /// tells when a batch is done, with 0 bytes; rows are those of the batches before and of the current one.
    pub progress:
        Option<unsafe extern "C" fn(ctx: *mut c_void, batches: i64, rows: i64, bytes: i64) -> c_int>,
    /// For bowstring_stream_to_device: how many batches may be copied before they are asked for. 0: none.
    pub depth: u32,
}

// SAFETY: `repr(C)`, starts with a `usize`, and zero function pointers are None.
unsafe impl sized::Sized for BowstringTransferOptions {
    const NAME: &'static str = "BowstringTransferOptions";
}

// SAFETY: as above.
unsafe impl sized::Sized for DeviceBackend {
    const NAME: &'static str = "BowstringDeviceBackend";
}

/// A caller's options, checked one by one, and the allocator in them. NULL is the defaults.
unsafe fn checked_options(
    options: *const BowstringTransferOptions,
    report: &mut Report<'_>,
) -> Result<(Option<BowstringTransferOptions>, Option<Allocator>)> {
    if options.is_null() {
        return Ok((None, None));
    }
    // SAFETY: as the caller promises.
    let raw = unsafe { read_input(options, report) }?;
    if raw.flags & !BOWSTRING_TRANSFER_MAY_SHARE != 0 {
        let message =
            format_args!("expected flags within {BOWSTRING_TRANSFER_MAY_SHARE:#x}, found {:#x}", raw.flags);
        return Err(report.fail(Status::InvalidArgument, message));
    }
    raw.sync.mode(report)?;
    let allocator = match (raw.allocate, raw.deallocate) {
        (None, None) => None,
        // SAFETY: the caller says what the functions do.
        (Some(allocate), Some(deallocate)) => Some(unsafe { Allocator::new(raw.ctx, allocate, deallocate) }),
        _ => {
            let message = format_args!("expected both allocate and deallocate or neither, found one of them");
            return Err(report.fail(Status::InvalidArgument, message));
        }
    };
    Ok((Some(raw), allocator))
}

/// Calls `then` with the caller's options.
pub(crate) unsafe fn with_options<T>(
    options: *const BowstringTransferOptions,
    report: &mut Report<'_>,
    then: impl FnOnce(&Options<'_>, &mut Report<'_>) -> Result<T>,
) -> Result<T> {
    // SAFETY: as the caller promises.
    let (Some(raw), allocator) = (unsafe { checked_options(options, report) })? else {
        return then(&Options::DEFAULT, report);
    };
    let tell;
    let mut progress = None;
    if let Some(told) = raw.progress {
        // SAFETY: the caller says what the function does.
        tell = move |batches, rows, bytes| unsafe { told(raw.ctx, batches, rows, bytes) };
        progress = Some(Progress(&tell));
    }
    let may_share = raw.flags & BOWSTRING_TRANSFER_MAY_SHARE != 0;
    then(&Options { sync: raw.sync, may_share, allocator, progress }, report)
}

/// The caller's options for a stream, whose functions are called after this call as well.
pub(crate) unsafe fn stream_options(
    options: *const BowstringTransferOptions,
    report: &mut Report<'_>,
) -> Result<StreamOptions> {
    // SAFETY: as the caller promises.
    let (Some(raw), allocator) = (unsafe { checked_options(options, report) })? else {
        return Ok(StreamOptions {
            sync: Sync::NONE,
            may_share: false,
            allocator: None,
            teller: None,
            depth: 0,
        });
    };
    // SAFETY: the caller says what the function does.
    let teller = raw.progress.map(|progress| unsafe { Teller::new(raw.ctx, progress) });
    let may_share = raw.flags & BOWSTRING_TRANSFER_MAY_SHARE != 0;
    Ok(StreamOptions { sync: raw.sync, may_share, allocator, teller, depth: raw.depth })
}

/// Brings a device: from now on the library allocates on devices of this type, copies to and from them, and waits for their
/// events, through these functions.
///
/// The CPU and CUDA's types are built in. Each other type may be registered once, and stays until the process ends.
///
/// Ownership: `backend` is borrowed for the call and copied; its `ctx` and functions must stay until the process ends.
/// Errors: INVALID_ARGUMENT for a NULL backend, a struct_size that is too small, a missing function that is required, a type
/// that the interface does not define, that is built in, or that was registered before, or events for one whose arrays carry none; UNSUPPORTED for members that this
/// version does not know, or more types than it has room for. Any thread may call it.
/// Source: Arrow C Device interface, "Device types".
///
/// # Safety
/// `backend` is NULL or as long as its struct_size says; its functions do what BowstringDeviceBackend says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_register(
    r#type: ArrowDeviceType,
    backend: *const DeviceBackend,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        let backend = read_input(backend, report)?;
        device::register(r#type, &backend, report)
    })
}

/// Counts the devices of a type; when there are none that can be used, the error says why.
///
/// For CUDA's types the first call opens the driver.
///
/// Ownership: nothing changes hands.
/// Errors: INVALID_ARGUMENT for a NULL out-parameter; UNSUPPORTED for a type without a backend; DEVICE_UNAVAILABLE without a driver
/// or a device; DEVICE_ERROR with the driver's number as native_code. On failure `*count` is 0. Any thread may call it.
///
/// # Safety
/// `count` is NULL or leads to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_probe(
    r#type: ArrowDeviceType,
    count: *mut i64,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(count, "a number to write to", report)?;
        count.write(0);
        count.write(device::probe(r#type, report)?);
        Ok(())
    })
}

/// Lets go what finished work on a device's queues needed: sources of copies, and what release_after was given.
///
/// This happens by itself whenever new work is started. With `block` it waits until all of it is done.
///
/// Ownership: nothing of the caller's changes hands; owners of what is let go are told on this thread.
/// Errors: INVALID_ARGUMENT for an unknown device; DEVICE_ERROR with the driver's number as native_code. `pending`, which may be
/// NULL, receives how much is still under way. Any thread may call it.
///
/// # Safety
/// `pending` is NULL or leads to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_collect(
    device: Device,
    block: bool,
    pending: *mut usize,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        if !pending.is_null() {
            check(pending, "a number to write to", report)?;
            pending.write(0);
        }
        let device = normalise(device, report)?;
        let left = pending::collect(device, block, report)?;
        if !pending.is_null() {
            pending.write(left);
        }
        Ok(())
    })
}

/// Releases a device array once a queue of its device has come this far, without blocking: for whoever has enqueued kernels that
/// still use its memory. On devices without events, and on the CPU, it is released at once. A released one is left alone.
///
/// Ownership: on success the struct is moved and `array` is released; its producer's release runs later, in any call that starts
/// work, or in bowstring_device_collect. On failure it is still the caller's.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments, or a mode other than QUEUE and LIBRARY; UNSUPPORTED for a device without a
/// backend; DEVICE_UNAVAILABLE, DEVICE_ERROR, OUT_OF_MEMORY. Any thread may call it, but not two at once on one struct.
/// Source: rules D5 and D6.
///
/// # Safety
/// `array` is NULL or holds a live or released struct; a queue is one of its device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_array_release_after(
    array: *mut ArrowDeviceArray,
    sync: *const Sync,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        let raw = required_mut(array, "a device array", report)?;
        let sync = sync_or_none(sync, report)?;
        if raw.array.release.is_none() {
            return sync.mode(report).map(|_| ());
        }
        let device =
            check_foreign(Device { r#type: raw.device_type, id: raw.device_id }, raw.sync_event, report)?;
        let Some(kept) = NonNull::new(new_raw::<ArrowDeviceArray>()) else {
            return Err(report.out_of_memory(size_of::<ArrowDeviceArray>()));
        };
        let moved = || {
            move_raw(array, kept.as_ptr());
            Owner::new(kept.as_ptr().cast(), Some(free_kept))
        };
        let held = hold_until(device, sync, moved, report);
        if held.is_err() {
            free_raw(kept.as_ptr());
        }
        held
    })
}

unsafe extern "C" fn free_kept(kept: *mut c_void) {
    // SAFETY: the struct is from `new_raw`, and its owner is let go once.
    unsafe { free_raw(kept.cast::<ArrowDeviceArray>()) };
}
