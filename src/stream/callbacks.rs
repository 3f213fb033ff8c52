//! Streams over a producer's own callbacks.

use core::ffi::{c_char, c_int, c_void};

use bowstring_core::abi::{ArrowDeviceArray, Device};
use bowstring_core::device::normalise;
use bowstring_core::error::{ErrorRecord, Status};
use bowstring_core::stream::{Callbacks, call_stream};

use super::{BowstringStream, handle_of, reset_out};
use crate::array::BowstringArray;
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{check, disjoint, type_of};
use crate::schema::BowstringType;
use crate::sized::{self, check_input};

/// A producer of arrays. Its callbacks run one at a time, on whatever thread asks the stream or is ahead of who asks, must not
/// unwind, and return 0 or an error number of the system such as EIO.
#[repr(C)]
#[derive(Debug)]
pub struct BowstringStreamCallbacks {
    /// Size of this struct in the caller's build.
    pub struct_size: usize,
    /// The device of every array; all zero is the CPU. The id is -1 where it differs from array to array.
    pub device: Device,
    /// What each callback is called with.
    pub ctx: *mut c_void,
    /// Fills in the next array of the stream's type, or leaves `out` released at the end. `out` is a released struct; what is in
    /// it after an error is released.
    pub get_next: Option<unsafe extern "C" fn(ctx: *mut c_void, out: *mut ArrowDeviceArray) -> c_int>,
    /// Instead of `get_next`: sets `*out`, which is NULL, to a handle of the next array, which is handed over, or leaves it at the
    /// end.
    pub get_next_array:
        Option<unsafe extern "C" fn(ctx: *mut c_void, out: *mut *mut BowstringArray) -> c_int>,
    /// Text of the last failure, which is copied at once, or NULL; called after a failure only. May be NULL itself.
    pub get_last_error: Option<unsafe extern "C" fn(ctx: *mut c_void) -> *const c_char>,
    /// Lets the producer go, once, when the stream is released, from whatever thread that is. May be NULL.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
}

// SAFETY: the struct is `repr(C)`, starts with its size, and all zeroes are a value of it.
unsafe impl sized::Sized for BowstringStreamCallbacks {
    const NAME: &'static str = "BowstringStreamCallbacks";
}

/// Makes a stream of a producer's callbacks.
///
/// The next array is asked for when the stream is asked. What get_next gives is checked as bowstring_stream_import has it; what
/// this library built goes on as it is, without a further allocation, where the consumer takes structs.
///
/// Ownership: on success the producer is taken, `ctx` and `release` in `callbacks` are NULL, and its release runs once, when the
/// stream is released; on failure it is still the caller's. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments, both or neither of get_next and get_next_array, an unknown device, or a struct_size
/// that is too small; UNSUPPORTED for members that this version does not know; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `type` is NULL or a live handle; `callbacks` is NULL or as long as its struct_size says, and its callbacks do what they say;
/// `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_from_callbacks(
    r#type: *const BowstringType,
    callbacks: *mut BowstringStreamCallbacks,
    out: *mut *mut BowstringStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a handle to write to", report)?;
        disjoint(callbacks, out, report)?;
        reset_out(out, report)?;
        let ty = type_of(r#type, report)?;
        check_input(callbacks, report)?;
        let given = &mut *callbacks;
        let device = normalise(given.device, report)?;
        let get_next_array = given.get_next_array.map(|callback| {
            // A handle and what it leads to are passed alike.
            core::mem::transmute::<
                unsafe extern "C" fn(*mut c_void, *mut *mut BowstringArray) -> c_int,
                unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int,
            >(callback)
        });
        if given.get_next.is_some() == get_next_array.is_some() {
            let found = if given.get_next.is_some() { "both" } else { "neither" };
            let message = format_args!("expected one of get_next and get_next_array, found {found}");
            return Err(report.fail(Status::InvalidArgument, message));
        }
        let stream = call_stream(&ty, device, report, || Callbacks {
            ctx: core::mem::replace(&mut given.ctx, core::ptr::null_mut()),
            get_next: given.get_next,
            get_next_array,
            get_last_error: given.get_last_error,
            release: given.release.take(),
        })?;
        out.write(handle_of(stream));
        Ok(())
    })
}
