//! Import: foreign structs become handles.

use core::ffi::c_void;
use core::mem::ManuallyDrop;

use bowstring_core::abi::{ArrowArray, ArrowDeviceArray, ArrowSchema};
use bowstring_core::error::{ErrorRecord, Report, Result};
use bowstring_core::memory::Owner;
use bowstring_core::tree::{Import, import};

use super::{BowstringArray, handle_of, reset_out};
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{check, disjoint, required, required_mut, type_of};
use crate::raw::Raw;
use crate::schema::{BowstringType, parse_schema};

/// Imports an array and its schema, which are both handed over.
///
/// The structs' structure is checked whole; no buffer is read, on any device, also one without a backend. What the field
/// emits is accepted: NULL names, buffers of no bytes and offsets of no values that are NULL, a leading NULL validity
/// buffer of unions and null arrays, a null count of -1 with or without a bitmap, 0 as the CPU's id, and unzeroed
/// reserved members.
///
/// Ownership: on success both structs are taken, `schema->release` and `array->array.release` are NULL, and the
/// producer's release runs once, with the last handle, buffer and export, on whatever thread that is; on failure both are
/// still the caller's. The caller releases `*out`. An export of ours is recognised, and its buffers keep their own owners.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments; RELEASED for a released struct; INVALID_DATA with rule and
/// path for a struct that breaks a rule; OUT_OF_MEMORY. Any thread may call it. Two allocations.
/// Source: Arrow C Device interface, "ArrowDeviceArray"; Arrow C Data interface, "Structure definitions".
///
/// # Safety
/// Each pointer is NULL or leads to what the interface says; the buffers' memory need not be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import(
    array: *mut ArrowDeviceArray,
    schema: *mut ArrowSchema,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { import_with_schema(array, Import::Move, schema, out, report) })
}

/// Imports an array whose type is known: one allocation, and nothing is parsed.
///
/// Ownership: as bowstring_array_import, but for the type, which is borrowed for the call and kept by the array.
/// Errors: as bowstring_array_import. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
///
/// # Safety
/// `array` is NULL or leads to what the interface says; `type` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_typed(
    array: *mut ArrowDeviceArray,
    r#type: *const BowstringType,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { import_with_type(array, Import::Move, r#type, out, report) })
}

/// Imports an array in CPU memory and its schema, which are both handed over.
///
/// Ownership: as bowstring_array_import; `array->release` is NULL on success.
/// Errors: as bowstring_array_import. Any thread may call it. Two allocations.
/// Source: Arrow C Data interface, "ArrowArray".
///
/// # Safety
/// Each pointer is NULL or leads to what the interface says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_host(
    array: *mut ArrowArray,
    schema: *mut ArrowSchema,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { import_with_schema(array, Import::MoveHost, schema, out, report) })
}

/// Imports an array in CPU memory whose type is known: one allocation, and nothing is parsed.
///
/// Ownership: as bowstring_array_import_typed; `array->release` is NULL on success.
/// Errors: as bowstring_array_import. Any thread may call it.
/// Source: Arrow C Data interface, "ArrowArray".
///
/// # Safety
/// `array` is NULL or leads to what the interface says; `type` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_host_typed(
    array: *mut ArrowArray,
    r#type: *const BowstringType,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { import_with_type(array, Import::MoveHost, r#type, out, report) })
}

/// Imports an array that stays somebody else's: the root struct is copied, and never released.
///
/// Ownership: what the struct points to must stay as it is until release_owner ran, once, when the last handle, buffer
/// and export are gone; with a NULL release_owner, until they are gone. On success the owner is taken; on failure it is
/// still the caller's. The caller releases `*out`.
/// Errors: as bowstring_array_import. Any thread may call it; the owner may be let go on any thread.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
///
/// # Safety
/// `array` is NULL or leads to what the interface says; `type` is NULL or a live handle; release_owner may be called
/// once with `owner` on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_borrowed(
    array: *const ArrowDeviceArray,
    r#type: *const BowstringType,
    owner: *mut c_void,
    release_owner: Option<unsafe extern "C" fn(owner: *mut c_void)>,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        let array = required(array, "an array", report)?;
        let ty = type_of(r#type, report)?;
        // Not dropped on failure: the owner is the caller's until the array exists.
        let mut owner = ManuallyDrop::new(Owner::new(owner, release_owner));
        out.write(handle_of(import(Import::Borrow(array, &mut owner), &ty, report)?));
        Ok(())
    })
}

unsafe fn import_with_schema<'a, T: 'a>(
    array: *mut T,
    how: impl FnOnce(&'a mut T) -> Import<'a>,
    schema: *mut ArrowSchema,
    out: *mut *mut BowstringArray,
    report: &mut Report<'_>,
) -> Result<()> {
    check(out, "a handle to write to", report)?;
    disjoint(array, out, report)?;
    disjoint(schema, out, report)?;
    // SAFETY: as the caller promises, here and below.
    unsafe {
        reset_out(out, report)?;
        disjoint(array, schema, report)?;
        let array = required_mut(array, "an array", report)?;
        let ty = parse_schema(schema, report)?;
        let imported = import(how(array), &ty, report)?;
        ArrowSchema::call_release(schema);
        out.write(handle_of(imported));
    }
    Ok(())
}

unsafe fn import_with_type<'a, T: 'a>(
    array: *mut T,
    how: impl FnOnce(&'a mut T) -> Import<'a>,
    ty: *const BowstringType,
    out: *mut *mut BowstringArray,
    report: &mut Report<'_>,
) -> Result<()> {
    check(out, "a handle to write to", report)?;
    disjoint(array, out, report)?;
    // SAFETY: as the caller promises, here and below.
    unsafe {
        reset_out(out, report)?;
        let array = required_mut(array, "an array", report)?;
        let ty = type_of(ty, report)?;
        out.write(handle_of(import(how(array), &ty, report)?));
    }
    Ok(())
}
