//! Taking an array apart into single buffers.

use bowstring_core::error::ErrorRecord;
use bowstring_core::memory::OwnedBuffer;
use bowstring_core::tree::{Facts, Placement};

use super::BowstringArray;
use crate::buffer::BowstringBuffer;
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{array_of, check, check_count, slice_mut};
use crate::sized::{told_size, write_output};

/// Takes one buffer out of the array, which stays alive on its own.
///
/// Ownership: the caller releases `*out`. It keeps no more than it must: the buffer's own owner, or the placement's, when
/// the array was built by this library; the producer's struct when it is foreign; the whole array when an owner was added
/// to it.
/// Errors: INVALID_ARGUMENT for NULL arguments or a buffer out of range; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_buffer(
    array: *const BowstringArray,
    buffer: usize,
    out: *mut *mut BowstringBuffer,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a handle to write to", report)?;
        out.write(core::ptr::null_mut());
        let taken = array_of(array, report)?.buffer(buffer, report)?;
        out.write(taken.into_raw().cast());
        Ok(())
    })
}

/// Takes the array apart: the exact inverse of bowstring_device_array_from_buffers.
///
/// `nodes` and `buffers` have room for exactly as many as bowstring_array_count says. Sizes that nobody has told or
/// resolved are -1. `out_placement`, which may be NULL, receives the device and the event, with a NULL destroy_event: the
/// event lives as long as any of the owners, and without one there is none. Sizes of variadic buffers that this library built
/// come as NULL, as they were given. Nothing is allocated.
///
/// Ownership: each entry of `buffers` owns its own owner, and the caller lets it go by release_owner(owner) or hands it
/// on; entries without memory own nothing. The array is borrowed.
/// Errors: INVALID_ARGUMENT for NULL arguments, wrong numbers or a struct_size that is too small. On failure nothing was
/// written to `nodes` and `buffers`. Any thread may call it; the owners may be let go on any thread.
///
/// # Safety
/// `array` is NULL or a live handle; the others lead to as many structs as their counts say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_to_buffers(
    array: *const BowstringArray,
    nodes: *mut Facts,
    n_nodes: usize,
    buffers: *mut OwnedBuffer,
    n_buffers: usize,
    out_placement: *mut Placement,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        if !out_placement.is_null() {
            told_size(out_placement, report)?;
            write_output(out_placement, Placement::default(), report)?;
        }
        let array = array_of(array, report)?;
        let nodes = slice_mut(nodes, n_nodes, "nodes", report)?;
        check_count(buffers, n_buffers, "buffers", report)?;
        // The caller's memory may be anything, so it is only written.
        let put = |i: usize, buffer: OwnedBuffer| buffers.add(i).write(buffer);
        let placement = array.to_buffers(nodes, put, n_buffers, report)?;
        if !out_placement.is_null() {
            write_output(out_placement, placement, report)?;
        }
        Ok(())
    })
}
