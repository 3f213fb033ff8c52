//! Streams: the handle; making, asking and exporting them are rooms of their own.

mod ask;
mod asynchronous;
mod callbacks;
mod export;
mod import;
mod wrap;

pub use ask::*;
pub use asynchronous::*;
pub use callbacks::*;
pub use export::*;
pub use import::*;
pub use wrap::*;

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use bowstring_core::abi::Device;
use bowstring_core::error::{Report, Result, Status};
use bowstring_core::stream::Stream;

use crate::guard::guard_or;
use crate::pointer::{check, disjoint};
use crate::schema::BowstringType;

/// A source of arrays of one type on one type of device: one owner, moved and not counted. A call that meets another one on the
/// same stream is refused.
pub struct BowstringStream(());

pub(crate) fn handle_of(stream: Stream) -> *mut BowstringStream {
    stream.into_raw().cast().as_ptr()
}

/// Checks a stream out-parameter and sets it to NULL.
unsafe fn reset_out(out: *mut *mut BowstringStream, report: &mut Report<'_>) -> Result<()> {
    check(out, "a handle to write to", report)?;
    // SAFETY: the pointer was checked just now.
    unsafe { out.write(core::ptr::null_mut()) };
    Ok(())
}

/// The stream behind a borrowed handle.
unsafe fn stream_of(at: *const BowstringStream, report: &mut Report<'_>) -> Result<ManuallyDrop<Stream>> {
    let Some(raw) = NonNull::new(at.cast_mut().cast::<c_void>()) else {
        return Err(report.fail(Status::InvalidArgument, format_args!("expected a stream, found NULL")));
    };
    // SAFETY: the function's contract says that this is a live handle.
    match unsafe { Stream::from_raw(raw) } {
        Some(stream) => Ok(stream),
        None => {
            let message =
                format_args!("expected a stream of this copy of the library, found one of another copy");
            Err(report.fail(Status::InvalidArgument, message))
        }
    }
}

/// The stream behind a handle that is to be taken, which nobody uses at the moment; and its place apart from `out`.
unsafe fn taken_of<T>(
    at: *mut *mut BowstringStream,
    out: *const T,
    report: &mut Report<'_>,
) -> Result<ManuallyDrop<Stream>> {
    check(at, "a pointer to a stream", report)?;
    disjoint(at, out, report)?;
    // SAFETY: the pointer was checked just now, and what it leads to is as the caller promises.
    let stream = unsafe { stream_of(at.read(), report) }?;
    stream.check_idle(report)?;
    stream.ready(report)?;
    Ok(stream)
}

/// The type of every array of the stream; NULL for NULL.
///
/// An asynchronous producer tells it when it wants to: of a stream that bowstring_stream_from_async made, this waits until then, and
/// is NULL where no type comes.
///
/// Ownership: the result is borrowed and lives as long as the stream; retain it to keep it longer. Any thread may call it,
/// also while another one asks the stream.
///
/// # Safety
/// `stream` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_type(stream: *const BowstringStream) -> *const BowstringType {
    guard_or(core::ptr::null(), || {
        // SAFETY: as the caller promises.
        let stream = unsafe { stream_of(stream, &mut Report::silent()) };
        let Ok(stream) = stream else { return core::ptr::null() };
        let is_known = stream.ready(&mut Report::silent()).is_ok();
        if is_known { stream.ty().address().cast() } else { core::ptr::null() }
    })
}

/// The device of the stream: its type is that of every array's device, its id -1 unless all arrays are known to be on the same.
/// All zero for NULL, and where bowstring_stream_type has none; it waits as that does.
///
/// Ownership: nothing changes hands. Any thread may call it, also while another one asks the stream.
///
/// # Safety
/// `stream` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_device(stream: *const BowstringStream) -> Device {
    let nowhere = Device { r#type: 0, id: 0 };
    guard_or(nowhere, || {
        // SAFETY: as the caller promises.
        let stream = unsafe { stream_of(stream, &mut Report::silent()) };
        stream.map_or(nowhere, |stream| stream.device())
    })
}

/// Ends the stream: the next call, and one that is running, say CANCELLED, and so do all after that. A producer that is
/// running is not interrupted; a call that waits for the thread of a bowstring_stream_to_device, or for an asynchronous producer,
/// comes back at once. A stream that has ended or failed stays as it is. NULL is fine.
///
/// Ownership: nothing changes hands; the stream still has to be released. Any thread may call it, also while another one asks
/// the stream, but not while another one releases it or hands it over.
///
/// # Safety
/// `stream` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_cancel(stream: *mut BowstringStream) {
    guard_or((), || {
        // SAFETY: as the caller promises.
        if let Ok(stream) = unsafe { stream_of(stream, &mut Report::silent()) } {
            stream.cancel();
        }
    });
}

/// Lets the stream go, and the producer with it. Arrays that it gave live on. NULL is fine.
///
/// Ownership: the handle is gone afterwards; the producer's release runs now, on this thread, once the thread of a
/// bowstring_stream_to_device has left the producer. Any thread may call it, but not while another one uses the stream, and not
/// from inside its producer.
///
/// # Safety
/// `stream` is NULL or a live handle, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_release(stream: *mut BowstringStream) {
    guard_or((), || {
        // SAFETY: as the caller promises.
        if let Ok(stream) = unsafe { stream_of(stream, &mut Report::silent()) } {
            drop(ManuallyDrop::into_inner(stream));
        }
    });
}
