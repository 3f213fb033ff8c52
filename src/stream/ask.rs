//! Asking a stream for its arrays.

use bowstring_core::abi::ArrowDeviceArray;
use bowstring_core::device::Sync;
use bowstring_core::error::ErrorRecord;

use super::{BowstringStream, stream_of, taken_of};
use crate::array::{BowstringArray, handle_of, reset_out, sync_or_none};
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::check;
use crate::raw::{Raw, reset};

/// Gives the next array; NULL at the end, again and again.
///
/// A stream that has failed says the same again, without asking its producer. An error of a producer is told with its number, in
/// native_code, and its text: ENOMEM as OUT_OF_MEMORY, ENOSYS and ENOTSUP as UNSUPPORTED, ECANCELED as CANCELLED, all else as
/// CALLBACK_ERROR. Every error that is about an array says which, in batch.
///
/// Ownership: the caller releases `*out`, which lives on without the stream. What a producer gave with an error, and an array that
/// fails its check, are released.
/// Errors: INVALID_ARGUMENT for NULL arguments, and with rule ST6 for a call that meets another one; INVALID_DATA with rule, path
/// and batch for an array that breaks one; CALLBACK_ERROR; CANCELLED after bowstring_stream_cancel; OUT_OF_MEMORY; INTERNAL for a
/// producer in Rust that panicked; else what the producer says. Any thread may call it, one at a time.
/// Source: docs/rules.md, ST2 to ST6 and DS1.
///
/// # Safety
/// `stream` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_next(
    stream: *mut BowstringStream,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        if let Some(array) = stream_of(stream, report)?.next(report)? {
            out.write(handle_of(array));
        }
        Ok(())
    })
}

/// Gives the next array as a struct; a released one at the end, again and again.
///
/// It is what bowstring_stream_next and bowstring_array_export give, without the handle between them.
///
/// Ownership: the caller releases `out`, which lives on without the stream.
/// Errors: as bowstring_stream_next. On failure `out` is a released struct. Any thread may call it, one at a time.
/// Source: docs/rules.md, ST2 to ST6 and DS1.
///
/// # Safety
/// `stream` is NULL or a live handle; `out` is NULL or leads to a struct's memory, which is never read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_next_device_array(
    stream: *mut BowstringStream,
    out: *mut ArrowDeviceArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "an array to write to", report)?;
        reset(out);
        if let Some(array) = stream_of(stream, report)?.next_exported(report)? {
            array.into_raw().put(out);
        }
        Ok(())
    })
}

/// Asks until the end, and gives all arrays as one, of the stream's type.
///
/// A single array is given as it is, on any device; several are copied, in CPU memory; none make an array without rows. Dictionaries
/// that say the same are kept, others are put one behind the other. Bytes that views point into are shared and not copied. Slots of
/// list views, unions and indices under nulls may change.
///
/// Ownership: on success the stream is taken and released, and `*stream` is NULL; the caller releases `*out`. On failure the stream
/// is still the caller's; unless it was not asked at all, it has failed, and the arrays that it gave are released.
/// Errors: as bowstring_stream_next; SYNC_REQUIRED for a pending event with mode NONE, and UNSUPPORTED for memory that the CPU cannot
/// read, where there are several arrays; INVALID_DATA with rule, path and row for offsets, views, runs and indices that lead nowhere;
/// UNSUPPORTED with the path for more values than the type's offsets, indices or run ends can count. Any thread may call it, one at
/// a time.
///
/// # Safety
/// `stream` is NULL or leads to NULL or a live handle; `sync` is NULL or leads to a sync; `out` is NULL or leads to a pointer; CPU
/// buffers are as long as their producers said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_collect(
    stream: *mut *mut BowstringStream,
    sync: *const Sync,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a handle to write to", report)?;
        crate::pointer::disjoint(stream, out, report)?;
        reset_out(out, report)?;
        let taken = taken_of(stream, out, report)?;
        let sync = sync_or_none(sync, report)?;
        let array = taken.collect(sync, report)?;
        stream.write(core::ptr::null_mut());
        out.write(handle_of(array));
        drop(core::mem::ManuallyDrop::into_inner(taken));
        Ok(())
    })
}
