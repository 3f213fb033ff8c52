//! The five raw Arrow structs: moving, releasing, and keeping them on the heap; and letting tensors go.

use core::ptr::NonNull;
use std::alloc::Layout;

use bowstring_core::abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema, DLManagedTensor,
    DLManagedTensorVersioned,
};
use bowstring_core::stream::{release_device_stream, release_host_stream};
use bowstring_core::tensor;
use bowstring_core::tree::{release_array_struct, release_schema_struct};

use crate::guard::guard_or;

/// A raw struct of the Arrow interfaces: moved bit by bit, released once.
///
/// # Safety
/// All zeroes are a released value of the type.
pub(crate) unsafe trait Raw: Sized {
    /// Whether the struct was released or moved out.
    fn is_released(&self) -> bool;
    /// Marks the struct as moved out.
    fn forget(&mut self);
    /// Calls the struct's own release callback.
    unsafe fn call_release(this: *mut Self);

    /// Writes the struct where `out` leads.
    unsafe fn put(self, out: *mut Self) {
        // SAFETY: as the caller promises.
        unsafe { out.write(self) };
    }
}

macro_rules! raw {
    ($type:ty, $($release:ident).+, $call:expr) => {
        // SAFETY: a zero function pointer is None, and so is released.
        unsafe impl Raw for $type {
            fn is_released(&self) -> bool {
                self.$($release).+.is_none()
            }
            fn forget(&mut self) {
                self.$($release).+ = None;
            }
            unsafe fn call_release(this: *mut Self) {
                // SAFETY: the caller has a live or released struct.
                unsafe { ($call)(this) }
            }
        }
    };
}

raw!(ArrowSchema, release, |this| release_schema_struct(this));
raw!(ArrowArray, release, |this| release_array_struct(this));
raw!(ArrowDeviceArray, array.release, |this: *mut ArrowDeviceArray| release_array_struct(
    &raw mut (*this).array
));
raw!(ArrowArrayStream, release, |this| release_host_stream(this));
raw!(ArrowDeviceArrayStream, release, |this| release_device_stream(this));

/// Makes the struct at `out` a released one, whatever was there.
pub(crate) unsafe fn reset<T: Raw>(out: *mut T) {
    // SAFETY: the caller has checked the pointer, and zeroes are a released struct.
    unsafe { out.write_bytes(0, 1) };
}

pub(crate) unsafe fn move_raw<T: Raw>(from: *mut T, to: *mut T) {
    guard_or((), || {
        if from.is_null() || to.is_null() || from == to {
            return;
        }
        // SAFETY: as the caller promises; the structs may overlap, so the copy is made first.
        unsafe {
            let moved = core::ptr::read(from);
            if moved.is_released() {
                reset(to);
            } else {
                (*from).forget();
                moved.put(to);
            }
        }
    });
}

unsafe fn release_raw<T: Raw>(at: *mut T) {
    guard_or((), || {
        if !at.is_null() {
            // SAFETY: as the caller promises; a released struct has nothing to call.
            unsafe { T::call_release(at) };
        }
    });
}

unsafe fn is_released_raw<T: Raw>(at: *const T) -> bool {
    // SAFETY: as the caller promises.
    guard_or(true, || unsafe { at.as_ref() }.is_none_or(Raw::is_released))
}

pub(crate) fn new_raw<T: Raw>() -> *mut T {
    guard_or(core::ptr::null_mut(), || {
        // SAFETY: the structs are not empty, and zeroes are a released one.
        NonNull::new(unsafe { std::alloc::alloc_zeroed(Layout::new::<T>()) })
            .map_or(core::ptr::null_mut(), |memory| memory.cast().as_ptr())
    })
}

pub(crate) unsafe fn free_raw<T: Raw>(at: *mut T) {
    guard_or((), || {
        if !at.is_null() {
            // SAFETY: as the caller promises: the struct is from `new`, and is not used afterwards.
            unsafe {
                T::call_release(at);
                std::alloc::dealloc(at.cast(), Layout::new::<T>());
            }
        }
    });
}

/// Moves a schema from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
///
/// # Safety
/// Each pointer is NULL or leads to a struct's memory; `from` holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_schema_move(from: *mut ArrowSchema, to: *mut ArrowSchema) {
    // SAFETY: as the caller promises.
    unsafe { move_raw(from, to) }
}

/// Releases a schema; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_schema_release(x: *mut ArrowSchema) {
    // SAFETY: as the caller promises.
    unsafe { release_raw(x) }
}

/// Whether a schema was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_schema_is_released(x: *const ArrowSchema) -> bool {
    // SAFETY: as the caller promises.
    unsafe { is_released_raw(x) }
}

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_schema_free. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_schema_new() -> *mut ArrowSchema {
    new_raw()
}

/// Releases a schema that is live, and frees the struct that bowstring_schema_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
///
/// # Safety
/// `x` is NULL or from bowstring_schema_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_schema_free(x: *mut ArrowSchema) {
    // SAFETY: as the caller promises.
    unsafe { free_raw(x) }
}

/// Moves an array from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
///
/// # Safety
/// Each pointer is NULL or leads to a struct's memory; `from` holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_array_move(from: *mut ArrowArray, to: *mut ArrowArray) {
    // SAFETY: as the caller promises.
    unsafe { move_raw(from, to) }
}

/// Releases an array; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_array_release(x: *mut ArrowArray) {
    // SAFETY: as the caller promises.
    unsafe { release_raw(x) }
}

/// Whether an array was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_array_is_released(x: *const ArrowArray) -> bool {
    // SAFETY: as the caller promises.
    unsafe { is_released_raw(x) }
}

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_host_array_free. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_host_array_new() -> *mut ArrowArray {
    new_raw()
}

/// Releases an array that is live, and frees the struct that bowstring_host_array_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
///
/// # Safety
/// `x` is NULL or from bowstring_host_array_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_array_free(x: *mut ArrowArray) {
    // SAFETY: as the caller promises.
    unsafe { free_raw(x) }
}

/// Moves a device array from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
///
/// # Safety
/// Each pointer is NULL or leads to a struct's memory; `from` holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_array_move(from: *mut ArrowDeviceArray, to: *mut ArrowDeviceArray) {
    // SAFETY: as the caller promises.
    unsafe { move_raw(from, to) }
}

/// Releases a device array; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_array_release(x: *mut ArrowDeviceArray) {
    // SAFETY: as the caller promises.
    unsafe { release_raw(x) }
}

/// Whether a device array was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_array_is_released(x: *const ArrowDeviceArray) -> bool {
    // SAFETY: as the caller promises.
    unsafe { is_released_raw(x) }
}

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_device_array_free. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_device_array_new() -> *mut ArrowDeviceArray {
    new_raw()
}

/// Releases a device array that is live, and frees the struct that bowstring_device_array_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
///
/// # Safety
/// `x` is NULL or from bowstring_device_array_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_array_free(x: *mut ArrowDeviceArray) {
    // SAFETY: as the caller promises.
    unsafe { free_raw(x) }
}

/// Moves a stream from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
///
/// # Safety
/// Each pointer is NULL or leads to a struct's memory; `from` holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_stream_move(from: *mut ArrowArrayStream, to: *mut ArrowArrayStream) {
    // SAFETY: as the caller promises.
    unsafe { move_raw(from, to) }
}

/// Releases a stream; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_stream_release(x: *mut ArrowArrayStream) {
    // SAFETY: as the caller promises.
    unsafe { release_raw(x) }
}

/// Whether a stream was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_stream_is_released(x: *const ArrowArrayStream) -> bool {
    // SAFETY: as the caller promises.
    unsafe { is_released_raw(x) }
}

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_host_stream_free. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_host_stream_new() -> *mut ArrowArrayStream {
    new_raw()
}

/// Releases a stream that is live, and frees the struct that bowstring_host_stream_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
///
/// # Safety
/// `x` is NULL or from bowstring_host_stream_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_stream_free(x: *mut ArrowArrayStream) {
    // SAFETY: as the caller promises.
    unsafe { free_raw(x) }
}

/// Moves a device stream from one struct to another: a bitwise copy, after which `from` is released.
///
/// `to` is never read and is overwritten whole, so a live struct there would leak. A released `from` makes `to` released.
/// NULL, or `from` equal to `to`, does nothing.
///
/// Ownership: what `from` owned, `to` owns. Any thread may call it, but not two at once on one struct.
/// Source: Arrow C Data interface, "Moving an array".
///
/// # Safety
/// Each pointer is NULL or leads to a struct's memory; `from` holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_stream_move(
    from: *mut ArrowDeviceArrayStream,
    to: *mut ArrowDeviceArrayStream,
) {
    // SAFETY: as the caller promises.
    unsafe { move_raw(from, to) }
}

/// Releases a device stream; a released one or NULL is left alone.
///
/// Ownership: the struct owns nothing afterwards and may be released again; its memory stays the caller's. Any thread may
/// call it, but not two at once on one struct.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_stream_release(x: *mut ArrowDeviceArrayStream) {
    // SAFETY: as the caller promises.
    unsafe { release_raw(x) }
}

/// Whether a device stream was released or moved out; NULL counts as released.
///
/// Ownership: nothing changes hands. Any thread may call it.
///
/// # Safety
/// `x` is NULL or holds a live or released struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_stream_is_released(x: *const ArrowDeviceArrayStream) -> bool {
    // SAFETY: as the caller promises.
    unsafe { is_released_raw(x) }
}

/// A released struct on the heap, or NULL when memory is exhausted.
///
/// Ownership: the caller frees the struct with bowstring_device_stream_free. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_device_stream_new() -> *mut ArrowDeviceArrayStream {
    new_raw()
}

/// Releases a device stream that is live, and frees the struct that bowstring_device_stream_new made. NULL is fine.
///
/// Ownership: the struct is gone afterwards. Any thread may call it.
///
/// # Safety
/// `x` is NULL or from bowstring_device_stream_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_stream_free(x: *mut ArrowDeviceArrayStream) {
    // SAFETY: as the caller promises.
    unsafe { free_raw(x) }
}

/// Lets a DLPack tensor go: runs its deleter once, inside the callback scope. NULL and a NULL deleter are left alone.
///
/// Of the tensor only the deleter is read, so any major version may be let go.
///
/// Ownership: the tensor and its struct are gone afterwards, and the pointer must not be used again; with a NULL deleter
/// nothing is freed. The deleter must not unwind. Any thread may call it, but not two on one tensor; the deleter runs on
/// that thread.
/// Source: DLPack, "DLManagedTensorVersioned.deleter" and "DLPackVersion" (rules 1, 3, 4 and 5).
///
/// # Safety
/// `tensor` is NULL or leads to a tensor that nobody let go, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_tensor_release(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: as the caller promises.
    guard_or((), || unsafe { tensor::release_versioned(tensor) });
}

/// Lets a DLPack tensor of before 1.0 go: runs its deleter once, inside the callback scope. NULL and a NULL deleter are
/// left alone.
///
/// Ownership: the tensor and its struct are gone afterwards, and the pointer must not be used again; with a NULL deleter
/// nothing is freed. The deleter must not unwind. Any thread may call it, but not two on one tensor; the deleter runs on
/// that thread.
/// Source: DLPack, "DLManagedTensor.deleter" (rules 4 and 5).
///
/// # Safety
/// `tensor` is NULL or leads to a tensor that nobody let go, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_legacy_tensor_release(tensor: *mut DLManagedTensor) {
    // SAFETY: as the caller promises.
    guard_or((), || unsafe { tensor::release_legacy(tensor) });
}
