//! Arrays: the handle; importing, looking, making parts, taking apart and exporting are rooms of their own.

mod device;
mod export;
mod import;
mod look;
mod part;
mod take;

pub use device::*;
pub use export::*;
pub use import::*;
pub use look::*;
pub use part::*;
pub use take::*;

use core::mem::ManuallyDrop;

use bowstring_core::array::{Array, BufferInfo, NodeInfo};
use bowstring_core::device::Sync;
use bowstring_core::error::{Report, Result};
use bowstring_core::types::Type;

use crate::guard::guard_or;
use crate::pointer::{array_of, check, required};
use crate::schema::BowstringType;
use crate::sized;

/// An array: a window on shared memory, its type and its owners; immutable, shared, thread safe.
pub struct BowstringArray(());

/// Do not wait: SYNC_REQUIRED when an event is pending.
pub const BOWSTRING_SYNC_NONE: i32 = 0;
/// Make the queue wait; a NULL queue is the driver's default stream.
pub const BOWSTRING_SYNC_QUEUE: i32 = 1;
/// Block the thread until the event is done.
pub const BOWSTRING_SYNC_HOST: i32 = 2;
/// Make a queue of the library wait.
pub const BOWSTRING_SYNC_LIBRARY: i32 = 3;

// SAFETY: `repr(C)`, starts with a `usize`, and consists of integers and pointers.
unsafe impl sized::Sized for NodeInfo {
    const NAME: &'static str = "BowstringNodeInfo";
}

// SAFETY: as above.
unsafe impl sized::Sized for BufferInfo {
    const NAME: &'static str = "BowstringBufferInfo";
}

/// The caller's sync, or NONE when it is NULL.
pub(crate) unsafe fn sync_or_none<'a>(sync: *const Sync, report: &mut Report<'_>) -> Result<&'a Sync> {
    // SAFETY: as the caller promises.
    if sync.is_null() { Ok(&Sync::NONE) } else { unsafe { required(sync, "a sync", report) } }
}

/// Checks an array out-parameter and sets it to NULL.
pub(crate) unsafe fn reset_out(out: *mut *mut BowstringArray, report: &mut Report<'_>) -> Result<()> {
    check(out, "a handle to write to", report)?;
    // SAFETY: the pointer was checked just now.
    unsafe { out.write(core::ptr::null_mut()) };
    Ok(())
}

pub(crate) fn handle_of(array: Array) -> *mut BowstringArray {
    array.into_raw().cast()
}

/// One handle more on the same array; returns `array`. NULL gives NULL.
///
/// Ownership: the caller releases the result as well. Allocates nothing and cannot fail. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_retain(array: *const BowstringArray) -> *mut BowstringArray {
    guard_or(core::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let handle = unsafe { array_of(array, &mut Report::silent()) };
        handle.map_or(core::ptr::null_mut(), |handle| handle_of(Array::clone(&handle)))
    })
}

/// Lets one handle go. NULL is fine.
///
/// Ownership: the handle is gone afterwards; when nothing else needs the producer's struct, its release runs now, on this
/// thread. Any thread may call it, also while others use further handles.
///
/// # Safety
/// `array` is NULL or a live handle, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_release(array: *mut BowstringArray) {
    guard_or((), || {
        // SAFETY: as the caller promises.
        if let Ok(handle) = unsafe { array_of(array, &mut Report::silent()) } {
            drop(ManuallyDrop::into_inner(handle));
        }
    });
}

/// The array's type; NULL for NULL.
///
/// Ownership: the result is borrowed and lives as long as the array; retain it to keep it longer. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_type(array: *const BowstringArray) -> *const BowstringType {
    guard_or(core::ptr::null(), || {
        // SAFETY: as the caller promises.
        let handle = unsafe { array_of(array, &mut Report::silent()) };
        let ty: Option<Type> = handle.ok().and_then(|array| array.ty());
        ty.map_or(core::ptr::null(), |ty| ty.address().cast())
    })
}
