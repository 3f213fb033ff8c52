//! Buffers: one block of memory, its device, its event and its owner.

use core::ffi::c_void;
use core::mem::ManuallyDrop;

use bowstring_core::abi::Device;
use bowstring_core::device::{SharedEvent, Sync, is_cpu_readable, normalise, require_readable};
use bowstring_core::error::{ErrorRecord, Report, Status};
use bowstring_core::memory::{Buffer, Event, OwnedBuffer, Place};
use bowstring_core::transfer;
use bowstring_core::tree::Placement;

use crate::array::sync_or_none;
use crate::device::{BowstringTransferOptions, with_options};
use crate::error::BowstringStatus;
use crate::guard::{guard, guard_or};
use crate::pointer::{buffer_of, check, check_count, disjoint, required_mut, reset_all, slice_mut};
use crate::produce::placement_or;
use crate::sized::{self, write_output};

/// One block of memory, its owner and its event: immutable, shared, thread safe.
pub struct BowstringBuffer(());

/// What is known of a BowstringBuffer.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BowstringBufferMemory {
    /// Size of this struct in the caller's build; the only member that is read.
    pub struct_size: usize,
    /// Start of the memory, on its device.
    pub data: *const c_void,
    /// Readable bytes from `data`, -1 when unknown.
    pub size_bytes: i64,
    /// Where the memory is.
    pub device: Device,
    /// Address of the event to wait on before the memory is read, NULL when there is none.
    pub sync_event: *mut c_void,
}

// SAFETY: `repr(C)`, starts with a `usize`, and consists of integers and pointers.
unsafe impl sized::Sized for BowstringBufferMemory {
    const NAME: &'static str = "BowstringBufferMemory";
}

/// Makes a buffer of memory that somebody owns.
///
/// A NULL `placement` is the CPU, without event. With record_on an event is recorded.
///
/// Ownership: on success the buffer owns the memory's owner and the placement's owner and event, and those members are
/// NULL; the memory's owner is let go with the last handle, then the placement's, and the event is destroyed after them.
/// On failure nothing was touched. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, a size below -1, NULL data with a size, an event on a device
/// that has none, an unknown device or sync mode, or a struct_size that is too small; UNSUPPORTED for record_on on
/// a device without a backend or events, or members of the placement that this version does not know; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// Non-NULL pointers lead to structs as long as they say; the memory is there for as long as its owner.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_wrap(
    memory: *mut OwnedBuffer,
    placement: *mut Placement,
    out: *mut *mut BowstringBuffer,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        check(out, "a handle to write to", report)?;
        disjoint(memory, out, report)?;
        disjoint(placement, out, report)?;
        // SAFETY: the pointer was checked just now.
        unsafe { out.write(core::ptr::null_mut()) };
        disjoint(memory, placement, report)?;
        // SAFETY: as the caller promises.
        let memory = unsafe { required_mut(memory, "memory to wrap", report) }?;
        let mut everywhere = Placement::default();
        // SAFETY: as the caller promises.
        let placement = unsafe { placement_or(placement, &mut everywhere, report) }?;
        let (data, size) = (memory.data(), memory.size_bytes());
        if size < -1 || (data.is_null() && size > 0) {
            let message =
                format_args!("expected memory with a size of -1 or more, found {size} bytes at {data:p}");
            return Err(report.fail(Status::InvalidArgument, message));
        }
        let place = Place { device: placement.check(report)?.device, event: Event::NONE };
        let mut recorded = placement.record(report)?;
        let parts = || {
            let recorded = recorded.take();
            let shown = recorded.as_ref().map_or_else(|| placement.event(), SharedEvent::event);
            let (owner, event) = placement.take(recorded);
            (memory.take_owner().peeled(shown), owner, event)
        };
        // SAFETY: the caller vouches for the memory.
        let buffer = unsafe { Buffer::with_cell(data, size, place, report, parts) }?;
        // SAFETY: the pointer was checked above.
        unsafe { out.write(buffer.into_raw().cast()) };
        Ok(())
    })
}

/// Allocates zeroed memory of `size` bytes on a device, and says where to write to it until the buffer is handed on.
///
/// It is aligned to 64 bytes and padded with zeroes to a multiple of 64. With NONE and HOST it is ready when the call returns; with
/// QUEUE what is enqueued there from now on may use it, and with LIBRARY, or from elsewhere, whoever waits for the buffer's
/// event. On the CPU it always is.
///
/// Ownership: the caller releases `*out`; `*data` is valid as long as the buffer.
/// Errors: INVALID_ARGUMENT for NULL out-parameters, a negative size, an unknown device or sync mode; UNSUPPORTED for a
/// device without a backend; DEVICE_UNAVAILABLE, DEVICE_ERROR; OUT_OF_MEMORY, also the device's. Any thread may call it.
///
/// # Safety
/// Non-NULL pointers lead to what their types say; a queue is one of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_allocate(
    device: Device,
    size: i64,
    sync: *const Sync,
    out: *mut *mut BowstringBuffer,
    data: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        unsafe { reset_all([out.cast(), data.cast()], report) }?;
        // SAFETY: as the caller promises.
        let sync = unsafe { sync_or_none(sync, report) }?;
        sync.mode(report)?;
        let device = normalise(device, report)?;
        let Ok(n) = usize::try_from(size) else {
            let message = format_args!("expected a size of at least 0, found {size}");
            return Err(report.fail(Status::InvalidArgument, message));
        };
        let (buffer, start) = transfer::allocate(device, n, sync, report)?;
        // SAFETY: the pointers were checked above.
        unsafe {
            data.write(start);
            out.write(buffer.into_raw().cast());
        }
        Ok(())
    })
}

/// Copies a buffer's bytes to another device, or hands out the same memory where MAY_SHARE is given and it can be reached.
///
/// Ownership: nothing is taken; the caller releases `*out`, which with MAY_SHARE may keep alive what the buffer keeps. `*shared`,
/// which may be NULL, says whether it is the same memory.
/// Errors: as bowstring_array_to_device; INVALID_ARGUMENT for a buffer of unknown size. Any thread may call it.
///
/// # Safety
/// `buffer` is NULL or a live handle, and its memory is where its owner says; else as bowstring_array_to_device has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_to_device(
    buffer: *const BowstringBuffer,
    device: Device,
    options: *const BowstringTransferOptions,
    out: *mut *mut BowstringBuffer,
    shared: *mut bool,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_all([out.cast()], report)?;
        if !shared.is_null() {
            shared.write(false);
        }
        let buffer = buffer_of(buffer, report)?;
        let device = normalise(device, report)?;
        let (copy, is_shared) = with_options(options, report, |options, report| {
            transfer::buffer_to_device(&buffer, device, options, report)
        })?;
        out.write(copy.into_raw().cast());
        if !shared.is_null() {
            shared.write(is_shared);
        }
        Ok(())
    })
}

/// One handle more on the same buffer; returns `buffer`. NULL gives NULL.
///
/// Ownership: the caller releases the result as well. Allocates nothing and cannot fail. Any thread may call it.
///
/// # Safety
/// `buffer` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_retain(buffer: *const BowstringBuffer) -> *mut BowstringBuffer {
    guard_or(core::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let handle = unsafe { buffer_of(buffer, &mut Report::silent()) };
        handle.map_or(core::ptr::null_mut(), |handle| Buffer::clone(&handle).into_raw().cast())
    })
}

/// Lets one handle go. NULL is fine.
///
/// Ownership: the handle is gone afterwards; with the last one the owner is let go, on this thread. Any thread may call
/// it, also while others use further handles.
///
/// # Safety
/// `buffer` is NULL or a live handle, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_release(buffer: *mut BowstringBuffer) {
    guard_or((), || {
        // SAFETY: as the caller promises.
        if let Ok(handle) = unsafe { buffer_of(buffer, &mut Report::silent()) } {
            drop(ManuallyDrop::into_inner(handle));
        }
    });
}

/// Says where a buffer's memory is, how large it is, and what to wait on. Allocates nothing and never waits.
///
/// Ownership: the struct is the caller's; what it points to lives as long as the buffer.
/// Errors: INVALID_ARGUMENT for NULL arguments or a struct_size that is too small. Any thread may call it.
///
/// # Safety
/// `buffer` is NULL or a live handle; `out` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_info(
    buffer: *const BowstringBuffer,
    out: *mut BowstringBufferMemory,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        let buffer = unsafe { buffer_of(buffer, report) }?;
        let info = BowstringBufferMemory {
            struct_size: 0,
            data: buffer.data(),
            size_bytes: buffer.size(),
            device: buffer.place().device,
            sync_event: buffer.place().event.address,
        };
        // SAFETY: as the caller promises.
        unsafe { write_output(out, info, report) }
    })
}

/// A part of a buffer: `length` bytes from `offset` on. Where the buffer's size is unknown, the range is the caller's word.
///
/// Ownership: the part keeps the same owner alive as the whole; the caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments or a range outside the buffer, which is never clamped; OUT_OF_MEMORY.
/// Any thread may call it.
///
/// # Safety
/// `buffer` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_slice(
    buffer: *const BowstringBuffer,
    offset: i64,
    length: i64,
    out: *mut *mut BowstringBuffer,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        check(out, "a handle to write to", report)?;
        // SAFETY: the pointer was checked just now.
        unsafe { out.write(core::ptr::null_mut()) };
        // SAFETY: as the caller promises.
        let part = unsafe { buffer_of(buffer, report) }?.slice(offset, length, report)?;
        // SAFETY: the pointer was checked above.
        unsafe { out.write(part.into_raw().cast()) };
        Ok(())
    })
}

/// Copies `n` bytes from `offset` on into CPU memory, wherever they are, and returns when they are there. Where the buffer's size is unknown, the range is the caller's word.
///
/// Ownership: `dst` is the caller's; the buffer is borrowed for the call.
/// Errors: INVALID_ARGUMENT for NULL arguments, an unknown sync mode, or a range outside the buffer; SYNC_REQUIRED when an
/// event is pending and the mode is NONE; UNSUPPORTED for a device without a backend; DEVICE_UNAVAILABLE, DEVICE_ERROR. Any
/// thread may call it.
///
/// # Safety
/// `buffer` is NULL or a live handle; `dst` leads to `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_read(
    buffer: *const BowstringBuffer,
    offset: i64,
    dst: *mut c_void,
    n: i64,
    sync: *const Sync,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        let buffer = unsafe { buffer_of(buffer, report) }?;
        // SAFETY: as the caller promises.
        let sync = unsafe { sync_or_none(sync, report) }?;
        if !is_cpu_readable(buffer.place().device) {
            let into = usize::try_from(n).unwrap_or(0);
            // SAFETY: as the caller promises.
            let into = unsafe { slice_mut(dst.cast::<u8>(), into, "memory to copy to", report) }?;
            return transfer::read_buffer(&buffer, offset, n, into, sync, report);
        }
        require_readable(buffer.place(), sync, report)?;
        let bytes = buffer.bytes(offset, n, report)?;
        check_count(dst.cast::<u8>(), bytes.len(), "memory to copy to", report)?;
        // SAFETY: as the caller promises; the two may overlap.
        unsafe { core::ptr::copy(bytes.as_ptr(), dst.cast::<u8>(), bytes.len()) };
        Ok(())
    })
}

/// Turns a buffer into memory with an owner, ready for bowstring_device_array_from_buffers.
///
/// Ownership: on success `*buffer` is NULL and `out` owns what the handle owned; the caller lets its owner go or hands it
/// on. On failure `*buffer` is still the caller's.
/// Errors: INVALID_ARGUMENT for NULL arguments or overlapping ones. Allocates nothing. Any thread may call it.
///
/// # Safety
/// `buffer` leads to a live handle or NULL; `out` is NULL or leads to a struct's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_buffer_into_owned(
    buffer: *mut *mut BowstringBuffer,
    out: *mut OwnedBuffer,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        check(out, "memory to write to", report)?;
        disjoint(buffer, out, report)?;
        // SAFETY: the pointer was checked just now; an empty description owns nothing.
        unsafe { out.write(OwnedBuffer::absent()) };
        // SAFETY: as the caller promises.
        let taken = unsafe { required_mut(buffer, "a buffer", report) }?;
        // SAFETY: as the caller promises.
        let handle = ManuallyDrop::into_inner(unsafe { buffer_of(*taken, report) }?);
        *taken = core::ptr::null_mut();
        // SAFETY: the pointer was checked above.
        unsafe { out.write(handle.into_owned()) };
        Ok(())
    })
}
