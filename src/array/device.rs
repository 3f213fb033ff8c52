//! Arrays on devices: copies to others, waiting, new events, and letting go when a queue has come so far.

use core::ffi::c_void;
use core::mem::ManuallyDrop;

use bowstring_core::abi::Device;
use bowstring_core::device::{Sync, normalise};
use bowstring_core::error::ErrorRecord;
use bowstring_core::transfer::array_to_device;

use super::part::derive;
use super::{BowstringArray, handle_of, reset_out, sync_or_none};
use crate::device::{BowstringTransferOptions, with_options};
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{array_of, required_mut, slice};

/// Copies what the array shows to another device, or hands out the same memory where MAY_SHARE is given and it can be reached.
///
/// Each buffer of a copy has memory of its own, aligned to 64 bytes and padded with zeroes. A slice takes along what it shows:
/// of text and lists the values that its offsets lead to, with offsets that start at 0; children that views, unions and
/// run ends lead to, and dictionaries, are copied whole. Sizes that only device memory tells are read first, under one wait, and
/// one more for each level of lists in a slice. Every read number is checked before it is used. A copy to the CPU is there when
/// the call returns. A copy to a device may still be under way, without blocking: its event says when it is done, and until then
/// the source is kept. Between devices of different drivers bytes go through CPU memory.
///
/// Ownership: nothing is taken; the caller releases `*out`, which with MAY_SHARE may keep alive what the array keeps. `*shared`,
/// which may be NULL, says whether it is the same memory.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments or a queue of another device; INVALID_DATA with rule and path for
/// numbers that cannot be; SYNC_REQUIRED for a pending event with mode NONE; UNSUPPORTED for a device without a backend, or a queue
/// that is being captured; DEVICE_UNAVAILABLE without a driver or device; DEVICE_ERROR with the driver's number as native_code;
/// CANCELLED when `progress` says so; CALLBACK_ERROR for memory of the caller's allocator that is not aligned; OUT_OF_MEMORY of
/// either side. On failure what was made is freed. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
///
/// # Safety
/// `array` is NULL or a live handle, and its buffers are where its producer says; `options` is NULL or as long as its struct_size
/// says; `out` and `shared` are NULL or lead to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_to_device(
    array: *const BowstringArray,
    device: Device,
    options: *const BowstringTransferOptions,
    out: *mut *mut BowstringArray,
    shared: *mut bool,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        if !shared.is_null() {
            shared.write(false);
        }
        let array = array_of(array, report)?;
        let device = normalise(device, report)?;
        let (copy, is_shared) = with_options(options, report, |options, report| {
            array_to_device(&array, device, options, report)
        })?;
        out.write(handle_of(copy));
        if !shared.is_null() {
            shared.write(is_shared);
        }
        Ok(())
    })
}

/// Waits for the array's event: with QUEUE what is enqueued there from now on runs after it, with HOST the thread blocks until it
/// is done. Without an event it does nothing.
///
/// Ownership: nothing changes hands; the array keeps its event.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments, or LIBRARY, which would let nobody wait; SYNC_REQUIRED for a pending
/// event with mode NONE; UNSUPPORTED for a device without a backend; DEVICE_UNAVAILABLE, DEVICE_ERROR. Any thread may call it.
/// Source: rule D5.
///
/// # Safety
/// `array` is NULL or a live handle; a queue is one of the array's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_wait(
    array: *const BowstringArray,
    sync: *const Sync,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { array_of(array, report)?.wait(sync_or_none(sync, report)?, report) })
}

/// The same array under a new event, which is done when the queue has come this far: for whoever lets kernels write into or
/// read from its memory. The queue first waits for the array's old event.
///
/// Ownership: nothing is taken; the caller releases `*out`, which keeps alive what the array keeps, and its event. What it keeps is
/// let go when the event is done as well, in any later call that starts work, or bowstring_device_collect.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments, or a mode other than QUEUE and LIBRARY; UNSUPPORTED for a device without a
/// backend or without events; DEVICE_UNAVAILABLE, DEVICE_ERROR, OUT_OF_MEMORY. Any thread may call it.
/// Source: rules D5 and D6.
///
/// # Safety
/// `array` is NULL or a live handle; a queue is one of the array's device; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_record(
    array: *const BowstringArray,
    sync: *const Sync,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        derive(array, out, report, |array, report| array.record(sync_or_none(sync, report)?, report))
    })
}

/// The same array under one new event, which is done when its old one, the `n` others and the queue's work up to here are.
///
/// `events` has handles by value where the device's events are handles (CUDA, ROCm, OpenCL, Vulkan), elsewhere events' addresses.
///
/// Ownership: the events are borrowed for the call; else as bowstring_array_record.
/// Errors: as bowstring_array_record; INVALID_ARGUMENT for a NULL event. Any thread may call it.
/// Source: rule D6.
///
/// # Safety
/// As bowstring_array_record has it; `events` leads to `n` events of the device's driver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_join_events(
    array: *const BowstringArray,
    events: *const *mut c_void,
    n: usize,
    sync: *const Sync,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        derive(array, out, report, |array, report| {
            let events = slice(events, n, "events", report)?;
            array.join_events(events, sync_or_none(sync, report)?, report)
        })
    })
}

/// Lets one handle go once the queue has come this far, without blocking: for whoever has enqueued kernels that still use the
/// array's memory. On devices without events, and on the CPU, it goes at once.
///
/// Ownership: on success the handle is taken and `*array` is NULL; what it keeps is let go later, by any call that starts work, or
/// bowstring_device_collect. On failure it is still the caller's.
/// Errors: INVALID_ARGUMENT for NULL or unknown arguments, or a mode other than QUEUE and LIBRARY; UNSUPPORTED for a device without a
/// backend; DEVICE_UNAVAILABLE, DEVICE_ERROR, OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `array` is NULL or leads to a live handle or NULL; a queue is one of the array's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_release_after(
    array: *mut *mut BowstringArray,
    sync: *const Sync,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        let taken = required_mut(array, "an array", report)?;
        let handle = array_of(*taken, report)?;
        handle.release_after(sync_or_none(sync, report)?, report)?;
        *taken = core::ptr::null_mut();
        drop(ManuallyDrop::into_inner(handle));
        Ok(())
    })
}
