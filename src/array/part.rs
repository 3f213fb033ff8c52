//! Arrays made of arrays: children, dictionaries, windows, known sizes, further owners.

use core::ffi::{c_int, c_void};

use bowstring_core::array::Array;
use bowstring_core::device::Sync;
use bowstring_core::error::{ErrorRecord, Report, Result, Status};
use bowstring_core::memory::Owner;
use bowstring_core::tree::Tree;

use super::{BowstringArray, handle_of, reset_out, sync_or_none};
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::array_of;

/// Runs a call that makes an array of an array.
pub(super) unsafe fn derive(
    array: *const BowstringArray,
    out: *mut *mut BowstringArray,
    report: &mut Report<'_>,
    make: impl FnOnce(&Array, &mut Report<'_>) -> Result<Array>,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        reset_out(out, report)?;
        let array = array_of(array, report)?;
        out.write(handle_of(make(&array, report)?));
    }
    Ok(())
}

/// A child of the array.
///
/// The children of structs, sparse unions and fixed-size lists are windowed like the array; those of lists, list views,
/// maps, dense unions and run-end encoded arrays are whole. Nulls of the array are not merged into it.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or an index out of range; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_child(
    array: *const BowstringArray,
    i: usize,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { derive(array, out, report, |array, report| array.child(i, report)) })
}

/// The dictionary's values, whole.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or an array without a dictionary; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_dictionary(
    array: *const BowstringArray,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { derive(array, out, report, |array, report| array.dictionary(report)) })
}

/// A window of `length` values from `offset` on, counted within the array. Nothing is copied or clamped.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or a range outside the array; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_slice(
    array: *const BowstringArray,
    offset: i64,
    length: i64,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        derive(array, out, report, |array, report| array.slice(offset, length, report))
    })
}

/// The same array with every buffer's size known: the ends of offsets and the sizes of variadic buffers are read, once.
///
/// What is read is checked: offsets at the end of a list lie within its child, and no size is negative.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or an unknown sync mode; INVALID_DATA with rule, path and row for offsets
/// or sizes that cannot be; SYNC_REQUIRED for a pending event with mode NONE; UNSUPPORTED for a device
/// without a backend; DEVICE_UNAVAILABLE, DEVICE_ERROR; OUT_OF_MEMORY. On a device all is read under one wait. Any thread may call it.
/// Source: Arrow C Data interface, "Variable-size binary view".
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer; CPU buffers are there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_resolve_sizes(
    array: *const BowstringArray,
    sync: *const Sync,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        derive(array, out, report, |array, report| array.resolve_sizes(sync_or_none(sync, report)?, report))
    })
}

/// As bowstring_array_resolve_sizes, on any device: `read` copies `n` bytes from `src` to `dst` in CPU memory, and returns
/// 0, or an error number. It waits for the array's event itself. Each call reads one number of 4 or 8 bytes.
///
/// Ownership: `ctx` is the caller's, and is not used after the call.
/// Errors: as bowstring_array_resolve_sizes, but for SYNC_REQUIRED and UNSUPPORTED; CALLBACK_ERROR with the number that
/// `read` returned as native_code. `read` runs on the calling thread and must not unwind. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer; `read` may be called with the array's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_resolve_sizes_with(
    array: *const BowstringArray,
    read: Option<
        unsafe extern "C" fn(ctx: *mut c_void, dst: *mut c_void, src: *const c_void, n: usize) -> c_int,
    >,
    ctx: *mut c_void,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        let Some(read) = read else {
            let message = format_args!("expected a function that reads, found NULL");
            return Err(report.fail(Status::InvalidArgument, message));
        };
        let mut read = |into: &mut [u8], from: *const c_void| match read(
            ctx,
            into.as_mut_ptr().cast(),
            from,
            into.len(),
        ) {
            0 => Ok(()),
            code => Err(code),
        };
        derive(array, out, report, |array, report| array.resolve_sizes_with(&mut read, report))
    })
}

/// The same array with a further owner, which lives as long as the result and every export and buffer of it.
///
/// A buffer taken out of the result keeps the whole of it, and so the owner.
///
/// Ownership: on success the owner is taken: release_owner runs once, after what the array itself keeps; on failure it is
/// still the caller's. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments, `owner` excepted; OUT_OF_MEMORY. Any thread may call it; the owner may be
/// let go on any thread.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer; release_owner may be called once with `owner`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_with_owner(
    array: *const BowstringArray,
    owner: *mut c_void,
    release_owner: Option<unsafe extern "C" fn(owner: *mut c_void)>,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        if release_owner.is_none() {
            let message = format_args!("expected a release_owner, found NULL");
            return Err(report.fail(Status::InvalidArgument, message));
        }
        derive(array, out, report, |array, report| {
            let event = array.tree().place().event;
            Tree::with_owner(array, || Owner::new(owner, release_owner).peeled(event), report)
        })
    })
}
