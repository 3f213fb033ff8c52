//! Streams with something done to their arrays.

use core::mem::ManuallyDrop;

use bowstring_core::abi::Device;
use bowstring_core::array::Array;
use bowstring_core::device::normalise;
use bowstring_core::error::{ErrorRecord, Report, Result};
use bowstring_core::stream::Stream;
use bowstring_core::validate;

use super::{BowstringStream, handle_of, reset_out, taken_of};
use crate::device::{BowstringTransferOptions, stream_options};
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{check, disjoint, slice};
use crate::validate::{BowstringValidateOptions, Checking};

/// The stream with each of its arrays checked as bowstring_array_validate does, by the options.
///
/// An array is checked when it is asked for, and what breaks a rule ends the stream with that error, which says in batch which
/// array it was. Structure, type and device are checked by every stream.
///
/// Ownership: on success the stream is taken, and `*stream` is NULL; the caller releases `*out`. On failure nothing happened. The
/// options are copied; ctx and the sync's queue have to live as long as the stream.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, unknown options, and with rule ST6 while another call on the stream
/// is running; UNSUPPORTED for options that this version does not know; OUT_OF_MEMORY. What `*out` says when it is asked is what
/// bowstring_stream_next and bowstring_array_validate say. Any thread may call it; on_finding runs on the thread that asks.
/// Source: docs/rules.md, A1 to A8, B1 to B8, ST2 to ST6 and DS1.
///
/// # Safety
/// `stream` is NULL or leads to NULL or a live handle; `options` is NULL or as long as its struct_size says, and any thread may call
/// its on_finding; `out` is NULL or leads to a pointer; CPU buffers are as long as their producers say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_validated(
    stream: *mut *mut BowstringStream,
    options: *const BowstringValidateOptions,
    out: *mut *mut BowstringStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        wrap(stream, out, report, |from, report, take| {
            let checking = Checking::of(options, report)?;
            let check = move |array: &Array, batch: i64, report: &mut Report<'_>| {
                checking.run(batch, report, |options, findings| validate::array(array, options, findings))
            };
            Stream::checked(from, report, take, check)
        })
    })
}

/// The stream of structs with some of their columns, by number and in the order given; a column may come more than once.
///
/// Nothing is copied. The structs' own nulls, length, name and metadata stay, and so does all below the columns.
///
/// Ownership: as bowstring_stream_validated; the numbers are borrowed for the call.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, a stream whose type is no struct, a number out of range, and with rule
/// ST6 while another call on the stream is running; INVALID_DATA for more nodes than a type can have; OUT_OF_MEMORY. Any thread may
/// call it.
///
/// # Safety
/// `stream` is NULL or leads to NULL or a live handle; `columns` leads to `n_columns` numbers; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_select(
    stream: *mut *mut BowstringStream,
    columns: *const usize,
    n_columns: usize,
    out: *mut *mut BowstringStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        wrap(stream, out, report, |from, report, take| {
            let columns = slice(columns, n_columns, "columns", report)?;
            Stream::select(from, columns, report, take)
        })
    })
}

/// The stream with each of its arrays copied to a device as bowstring_array_to_device does, by the options.
///
/// With depth 0 the producer is asked, and its array copied, inside each call that asks `*out`. Else one thread of the library's does
/// both from now on, in order, and up to `depth` arrays ahead of what was asked for: never more are held, the one that is being
/// copied among them. The producer's get_next and the options' functions then run on that thread, which has no context of
/// a driver current, takes no signals, and never enters the callback scope for get_next. An error is met behind the arrays
/// that came before it.
///
/// Copies run on a queue of the library's. With QUEUE and depth 0 they run on that queue, inside the call that asks; with QUEUE
/// and a depth, that queue waits for the copy inside the call that asks, so that what is enqueued there afterwards comes behind it.
///
/// bowstring_stream_cancel ends a call that waits for the thread. Releasing `*out` waits for the thread: for a producer that is
/// inside get_next until it comes back. Whoever releases must hold no lock that the producer or an owner needs, such as an
/// interpreter's. A process that forks has no such thread in the child, where the stream may not be used or released.
///
/// Ownership: on success the stream is taken, and `*stream` is NULL; the caller releases `*out`. On failure nothing happened. The
/// options are copied; ctx, the functions and the sync's queue have to live as long as the stream, the allocator's until all of
/// its memory went back.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, unknown options or devices, and with rule ST6 while another call
/// on the stream is running; UNSUPPORTED for a device without a backend, or options that this version does not know;
/// DEVICE_UNAVAILABLE without a driver or device; OUT_OF_MEMORY, with the system's number as native_code where no thread could be
/// started. What `*out` says when it is asked is what bowstring_stream_next and bowstring_array_to_device say: SYNC_REQUIRED for an
/// array with a pending event with mode NONE; CANCELLED when `progress` says so. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowDeviceArrayStream".
///
/// # Safety
/// `stream` is NULL or leads to NULL or a live handle; `options` is NULL or as long as its struct_size says, and any thread may
/// call its functions; `out` is NULL or leads to a pointer; buffers are where their producers say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_to_device(
    stream: *mut *mut BowstringStream,
    device: Device,
    options: *const BowstringTransferOptions,
    out: *mut *mut BowstringStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        wrap(stream, out, report, |from, report, take| {
            let device = normalise(device, report)?;
            let options = stream_options(options, report)?;
            Stream::to_device(from, device, &options, report, take)
        })
    })
}

/// Puts a stream into another, which `make` makes: taken when that calls `take`, the last thing that it does.
unsafe fn wrap(
    stream: *mut *mut BowstringStream,
    out: *mut *mut BowstringStream,
    report: &mut Report<'_>,
    make: impl FnOnce(&Stream, &mut Report<'_>, &mut dyn FnMut() -> Stream) -> Result<Stream>,
) -> Result<()> {
    check(out, "a handle to write to", report)?;
    disjoint(stream, out, report)?;
    // SAFETY: as the caller promises, here and below.
    unsafe {
        reset_out(out, report)?;
        let from = taken_of(stream, out, report)?;
        let mut take = || {
            stream.write(core::ptr::null_mut());
            core::ptr::read(&raw const *from)
        };
        let made = make(&from, report, &mut take)?;
        out.write(handle_of(made));
        let _: ManuallyDrop<Stream> = from;
    }
    Ok(())
}
