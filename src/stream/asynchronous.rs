//! Asynchronous streams, both ways. Experimental, as the interface is.

use core::ptr::NonNull;

use bowstring_core::abi::ArrowAsyncDeviceStreamHandler;
use bowstring_core::error::{ErrorRecord, Report, Result, Status};
use bowstring_core::stream::{stream_from_async, stream_to_async};

use super::{BowstringStream, handle_of, reset_out, stream_of};
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{check, disjoint};

/// Hands the stream's arrays to an asynchronous handler, from one thread of ours. Experimental: the interface may change, and this
/// with it.
///
/// Returns at once. The thread calls on_schema, then on_next_task for each array that was requested, with NULL behind the last, which
/// takes a request as well, or on_error, and at the end release; never two at a time. It asks the stream, so that the stream's own
/// producer runs on it. request and cancel may be called by any thread until release is called, also inside on_schema and
/// on_next_task, and never call back. Requests add up to at most 2^64 - 1; one below 1 is an error, told with rule AS6. After cancel
/// comes release and no error; so it is after a callback that returned another number than 0. extract_data has to be called once for
/// each task, also for one that nobody wants, with NULL, also where on_next_task returns an error; it may be called later, with a copy
/// of the task, by any thread. The number of an error is as bowstring_stream_export has it, its text as get_last_error.
///
/// Ownership: on success the stream is taken, and `*stream` is NULL; it is released behind the handler and the last task. The handler
/// stays the caller's memory, must not be moved, and is not touched after its release was called. On failure nothing happened, and
/// none of the callbacks was called.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, and with rule ST6 while another call on the stream is running; RELEASED
/// for a released handler; INVALID_DATA with rule AS2 for one without its callbacks; OUT_OF_MEMORY, also where no thread can be started.
/// All later errors go to on_error. Any thread may call it. After a fork the child has no such thread: it must not use the handler.
/// Source: Arrow C Device interface, "ArrowAsyncDeviceStreamHandler"; docs/rules.md, AS2 to AS6.
///
/// # Safety
/// `stream` is NULL or leads to NULL or a live handle; `handler` is NULL or leads to a handler that does what the interface says and
/// stays where it is until its release was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_to_async(
    stream: *mut *mut BowstringStream,
    handler: *mut ArrowAsyncDeviceStreamHandler,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        let raw = required(handler, report)?;
        check(stream, "a pointer to a stream", report)?;
        disjoint(stream, handler, report)?;
        let taken = stream_of(stream.read(), report)?;
        taken.check_idle(report)?;
        // Not written behind the start: by then the callbacks may have run.
        let before = stream.replace(core::ptr::null_mut());
        stream_to_async(&taken, raw, report).inspect_err(|_| stream.write(before))
    })
}

/// Makes a stream of what an asynchronous producer hands to `out_handler`. Experimental: the interface may change, and this with it.
///
/// The handler goes to a producer, which may call it on any thread. The stream is asked as every stream is; a call waits for the
/// producer. When the type came, `capacity` arrays are requested, and one more for each that was taken, so that there are never more
/// on their way. What a call needs the type for waits for it: bowstring_stream_type, _device, _export and all that take the stream. The
/// text and number of on_error become the stream's error, behind the arrays that came before. The end, and such an error, are given
/// when the producer has let the handler go. A producer that does what it should not do is an error of the stream, with the rule.
/// Metadata of tasks is not read. bowstring_stream_cancel and _release cancel the producer; what comes later is dropped, each task
/// asked for its array once, with NULL.
///
/// Ownership: the caller releases `*out`. The handler stays the caller's memory: it must not be moved, and has to be there until its
/// release was called, once, by the producer, or by the caller if it never went to one. To free it then, put a function of your own
/// in the place of its release, which calls the one that was there first. On failure `*out` is NULL, and the handler is a released
/// one.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments and a capacity of 0; OUT_OF_MEMORY. The stream says what
/// bowstring_stream_next does, and INVALID_DATA with rules AS2 to AS8. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowAsyncDeviceStreamHandler"; docs/rules.md, AS2 to AS8.
///
/// # Safety
/// `out_handler` is NULL or leads to memory for a handler, which is never read and stays where it is until its release was called; the
/// producer does not call it from two threads at a time, and keeps its own struct until that release returns; `out` is NULL or leads
/// to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_from_async(
    capacity: usize,
    out_handler: *mut ArrowAsyncDeviceStreamHandler,
    out: *mut *mut BowstringStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        let handler = required(out_handler, report)?;
        check(out, "a handle to write to", report)?;
        disjoint(out_handler, out, report)?;
        handler.write_bytes(0, 1);
        reset_out(out, report)?;
        out.write(handle_of(stream_from_async(capacity, handler, report)?));
        Ok(())
    })
}

unsafe fn required(
    handler: *mut ArrowAsyncDeviceStreamHandler,
    report: &mut Report<'_>,
) -> Result<NonNull<ArrowAsyncDeviceStreamHandler>> {
    check(handler, "a handler", report)?;
    let message = format_args!("expected a handler, found NULL");
    NonNull::new(handler).ok_or_else(|| report.fail(Status::InvalidArgument, message))
}
