//! arrow-rs for the comparison in C.

use std::ffi::c_int;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_data::ArrayData;

/// Takes the array; NULL when it cannot be imported.
///
/// # Safety
/// Both are structs of the C Data Interface that are not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arrow_rs_open(array: *mut FFI_ArrowArray, schema: *mut FFI_ArrowSchema) -> *mut ArrayData {
    // SAFETY: the caller's promise.
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array), &*schema) };
    data.map_or(std::ptr::null_mut(), |data| Box::into_raw(Box::new(data)))
}

/// 1 when nothing is found wrong.
///
/// # Safety
/// `data` is from `arrow_rs_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arrow_rs_validate(data: *const ArrayData) -> c_int {
    // SAFETY: the caller's promise.
    c_int::from(unsafe { &*data }.validate_full().is_ok())
}

/// Lets it go.
///
/// # Safety
/// `data` is from `arrow_rs_open`, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arrow_rs_close(data: *mut ArrayData) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(data) });
}
