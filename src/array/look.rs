//! Looking at an array. Nothing here makes anything.

use core::ffi::{c_char, c_void};

use bowstring_core::abi::Device;
use bowstring_core::array::{BufferInfo, NodeInfo};
use bowstring_core::device::Sync;
use bowstring_core::error::ErrorRecord;

use super::{BowstringArray, sync_or_none};
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{array_of, check, reset_all};
use crate::schema::write_text;
use crate::sized::write_output;

/// The number of nodes of the array, and of all their buffers. Either pointer may be NULL.
///
/// Ownership: nothing changes hands.
/// Errors: INVALID_ARGUMENT for a NULL array. Allocates nothing. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; the others are NULL or lead to numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_count(
    array: *const BowstringArray,
    n_nodes: *mut usize,
    n_buffers: *mut usize,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        for out in [n_nodes, n_buffers].into_iter().filter(|out| !out.is_null()) {
            check(out, "a number to write to", report)?;
            // SAFETY: the pointer was checked just now.
            unsafe { out.write(0) };
        }
        // SAFETY: as the caller promises.
        let array = unsafe { array_of(array, report) }?;
        for (out, n) in [(n_nodes, array.n_nodes()), (n_buffers, array.n_buffers())] {
            if !out.is_null() {
                // SAFETY: the pointer was checked above.
                unsafe { out.write(n) };
            }
        }
        Ok(())
    })
}

/// Says what one node of the array is. Nodes are numbered depth first: a node, its children, then its dictionary; 0 is
/// the array itself. Allocates nothing and reads no buffer.
///
/// Ownership: the struct is the caller's; what it points to lives as long as the array.
/// Errors: INVALID_ARGUMENT for NULL arguments, a node out of range or a struct_size that is too small. Any thread may
/// call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_node_info(
    array: *const BowstringArray,
    node: usize,
    out: *mut NodeInfo,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        let info = array_of(array, report)?.node_info(node, report)?;
        write_output(out, info, report)
    })
}

/// Says what one buffer of the array is. Buffers are numbered in the order of their nodes. Allocates nothing and reads no
/// buffer: sizes that only buffers tell are -1 until bowstring_array_resolve_sizes.
///
/// Ownership: the struct is the caller's; the data lives as long as the array.
/// Errors: INVALID_ARGUMENT for NULL arguments, a buffer out of range or a struct_size that is too small. Any thread may
/// call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_buffer_info(
    array: *const BowstringArray,
    buffer: usize,
    out: *mut BufferInfo,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        let info = array_of(array, report)?.buffer_info(buffer, report)?;
        write_output(out, info, report)
    })
}

/// The device of the array's buffers, and the address of the event to wait on, NULL when there is none. Either pointer
/// may be NULL.
///
/// Ownership: nothing changes hands; the event lives as long as the array or any of its buffers.
/// Errors: INVALID_ARGUMENT for a NULL array. Allocates nothing. Any thread may call it.
/// Source: Arrow C Device interface, "sync_event".
///
/// # Safety
/// `array` is NULL or a live handle; the others are NULL or lead to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_device(
    array: *const BowstringArray,
    out: *mut Device,
    sync_event: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        if !out.is_null() && out.is_aligned() {
            // SAFETY: the pointer was checked just now.
            unsafe { out.write(Device { r#type: 0, id: 0 }) };
        }
        if !sync_event.is_null() {
            // SAFETY: as the caller promises.
            unsafe { reset_all([sync_event], report) }?;
        }
        if !out.is_null() {
            check(out, "a device to write to", report)?;
        }
        // SAFETY: as the caller promises.
        let place = unsafe { array_of(array, report) }?.tree().place();
        // SAFETY: the pointers were checked above.
        unsafe {
            if !out.is_null() {
                out.write(place.device);
            }
            if !sync_event.is_null() {
                sync_event.write(place.event.address);
            }
        }
        Ok(())
    })
}

/// The number of nulls in the array: what is known of it, else counted and remembered.
///
/// Unions and run-end encoded arrays have no nulls of their own; every value of a null array is one; an index into a
/// dictionary counts, not the value it leads to.
///
/// Ownership: nothing changes hands.
/// Errors: INVALID_ARGUMENT for NULL arguments or an unknown sync mode; when it has to be counted, SYNC_REQUIRED for a
/// pending event with mode NONE, UNSUPPORTED for a device without a backend, DEVICE_UNAVAILABLE, DEVICE_ERROR. On failure
/// `*out` is -1. Any thread may call it. Of a device's bitmap at most 1 MiB is in CPU memory at once.
/// Source: Arrow C Data interface, "ArrowArray.null_count".
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a number; CPU buffers are there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_null_count(
    array: *const BowstringArray,
    sync: *const Sync,
    out: *mut i64,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a number to write to", report)?;
        out.write(-1);
        let array = array_of(array, report)?;
        out.write(array.null_count(sync_or_none(sync, report)?, report)?);
        Ok(())
    })
}

/// Writes the array as text: its tree with types, lengths, nulls and device, and every buffer's role, address and size.
/// Never waits and reads no buffer.
///
/// `needed` receives the bytes that the whole text takes with its NUL. Too small a buffer receives a prefix, cut between
/// characters and ended with a NUL; NULL with capacity 0 only asks for `needed`.
///
/// Ownership: the buffer is the caller's; the array is borrowed.
/// Errors: INVALID_ARGUMENT for a NULL array or a NULL buffer with a capacity. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` leads to `capacity` bytes; `needed` is NULL or leads to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_to_text(
    array: *const BowstringArray,
    out: *mut c_char,
    capacity: usize,
    needed: *mut usize,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        write_text(out, capacity, needed, report, |text, report| {
            let _ = array_of(array, report)?.to_text(text);
            Ok(())
        })
    })
}
