//! What other libraries make of a schema and an array: each judge says 0 for valid, 1 for refused and 2 for a
//! panic, and why in the caller's text.
//!
//! The structs are the caller's, whose release is one of those below: nothing but the root's `release` is ever written.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a test may fail for want of memory"
)]

use std::any::Any;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};

unsafe extern "C" {
    fn nanoarrow_verdict(
        schema: *mut FFI_ArrowSchema,
        array: *mut FFI_ArrowArray,
        text: *mut c_char,
        size: usize,
    ) -> c_int;
}

/// nanoarrow, at its full level.
///
/// # Safety
/// As the Arrow C Data interface has it, and `text` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn judge_nanoarrow(
    schema: *mut FFI_ArrowSchema,
    array: *mut FFI_ArrowArray,
    text: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { nanoarrow_verdict(schema, array, text, size) }
}

/// arrow-rs: imported, then `validate_full`.
///
/// # Safety
/// As above. The structs are moved out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn judge_arrow_rs(
    schema: *mut FFI_ArrowSchema,
    array: *mut FFI_ArrowArray,
    text: *mut c_char,
    size: usize,
) -> c_int {
    std::panic::set_hook(Box::new(|_| {}));
    let judged = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as the caller promises.
        let (schema, array) = unsafe { (FFI_ArrowSchema::from_raw(schema), FFI_ArrowArray::from_raw(array)) };
        // SAFETY: as above.
        let data = unsafe { from_ffi(array, &schema) }?;
        data.validate_full()
    }));
    let (verdict, why) = match judged {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => (1, error.to_string()),
        Err(payload) => (2, words(&*payload)),
    };
    let n = why.len().min(size.saturating_sub(1));
    // SAFETY: the caller's text has room for that many bytes and the end.
    unsafe {
        text.cast::<u8>().copy_from_nonoverlapping(why.as_ptr(), n);
        text.add(n).write(0);
    }
    verdict
}

fn words(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// The release of a root array or schema whose memory is the test's: offset of `release` in 8-byte words.
const ARRAY_RELEASE: usize = 8;
const SCHEMA_RELEASE: usize = 7;

/// Releases a root array.
///
/// # Safety
/// The array is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn judge_release_array(array: *mut usize) {
    // SAFETY: as the caller promises.
    unsafe { array.add(ARRAY_RELEASE).write(0) };
}

/// Releases a root schema.
///
/// # Safety
/// The schema is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn judge_release_schema(schema: *mut usize) {
    // SAFETY: as the caller promises.
    unsafe { schema.add(SCHEMA_RELEASE).write(0) };
}
