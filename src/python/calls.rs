//! Calls with the signatures of CPython's builtins, for bindings that are written in Python: a call through ctypes costs
//! several times what these do.
//!
//! A binding fills a PyMethodDef with the address, and calls PyCFunction_NewEx once. In each function the first parameter is
//! what PyCFunction_NewEx was given, and is not looked at.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ops::Deref;

use bowstring_core::abi::{ArrowArray, ArrowDeviceArray, ArrowSchema};
use bowstring_core::array::Array;
use bowstring_core::device::Sync;
use bowstring_core::error::{Report, Result, Status};
use bowstring_core::tree::{Import, export_schema, import};
use bowstring_core::types::Type;

use super::objects::{Held, Lock, Object};
use crate::array::{BowstringArray, bowstring_array_release, handle_of};
use crate::buffer::{BowstringBuffer, bowstring_buffer_release};
use crate::guard::guard_or;
use crate::pointer::{array_of, disjoint, required_mut, type_of};
use crate::raw::Raw;
use crate::schema::{BowstringType, bowstring_type_release, parse_schema};

const SCHEMA: &core::ffi::CStr = c"arrow_schema";
const HOST_ARRAY: &core::ffi::CStr = c"arrow_array";
const DEVICE_ARRAY: &core::ffi::CStr = c"arrow_device_array";

/// The struct that an array comes in.
#[derive(Clone, Copy)]
pub(super) enum Given {
    Device(*mut ArrowDeviceArray),
    Host(*mut ArrowArray),
}

impl Given {
    #[inline(always)]
    pub(super) unsafe fn import(self, ty: &Type, report: &mut Report<'_>) -> Result<Array> {
        // SAFETY: as the caller promises.
        unsafe {
            let from = match self {
                Given::Device(array) => Import::Move(required_mut(array, "an array", report)?),
                Given::Host(array) => Import::MoveHost(required_mut(array, "an array", report)?),
            };
            import(from, ty, report)
        }
    }

    /// Makes the struct a live one again that shows what was taken from it, where memory allows.
    #[cold]
    #[inline(never)]
    unsafe fn give_back(self, array: Array) {
        let report = &mut Report::silent();
        // SAFETY: the struct is the one that was moved out just now.
        unsafe {
            match self {
                Given::Device(out) => {
                    let _ = array.export(report).map(|made| made.into_raw().put(out));
                }
                Given::Host(out) => {
                    let made = array.export_host(&Sync::NONE, report);
                    let _ = made.map(|made| made.into_raw().array.put(out));
                }
            }
        }
    }

    /// The handle as an int, after an import.
    #[inline(always)]
    unsafe fn into_int<'a>(self, lock: Lock<'a>, ty: &Type, report: &mut Report<'_>) -> Result<Object<'a>> {
        // SAFETY: as the caller promises.
        unsafe {
            let mut array = ManuallyDrop::new(self.import(ty, report)?);
            let handle = handle_of(ManuallyDrop::take(&mut array));
            let int = lock.int_of(handle, report);
            if int.is_err()
                && let Ok(handle) = array_of(handle, report)
            {
                self.give_back(ManuallyDrop::into_inner(handle));
            }
            int
        }
    }
}

/// A type that is borrowed from a handle, or was made of a schema.
enum Known {
    Borrowed(ManuallyDrop<Type>),
    Made(Type),
}

impl Deref for Known {
    type Target = Type;

    #[inline(always)]
    fn deref(&self) -> &Type {
        match self {
            Known::Borrowed(ty) => ty,
            Known::Made(ty) => ty,
        }
    }
}

/// Imports what two capsules hold: a builtin of four arguments by METH_FASTCALL.
///
/// The arguments are: a capsule arrow_schema, or None with a type; a capsule arrow_device_array or arrow_array; the
/// address of a BowstringType as an int, or 0; the address of a BowstringError as an int, or 0. The result is an int, the
/// address of a BowstringArray; or None after a failure, with the record written. With a type the schema is not looked at,
/// and nothing is parsed: one allocation of ours instead of two. The import itself is that of bowstring_array_import,
/// bowstring_array_import_host and their typed forms. The PyMethodDef of a builtin has to stay until the process ends: the
/// interpreter reads it when it destroys the builtin, which may be after all that is the binding's.
///
/// Ownership: on success the struct is moved out of the array's capsule, and the caller releases the handle; the schema is
/// only read, and stays in its capsule. On failure both capsules hold what they held; when Python's memory does not suffice
/// for the int, an export of ours that shows the same.
/// Errors: in the record, as bowstring_array_import; INVALID_ARGUMENT also for a capsule of another name and for what is no
/// int. As an exception: a TypeError or OverflowError for another number of arguments or a record's address that is none;
/// a SystemError, because the result is NULL, before bowstring_python_init or without its optional members. The
/// calling thread holds the interpreter's lock.
/// Source: Arrow PyCapsule interface, "ArrowArray Export"; Python C API, "METH_FASTCALL".
///
/// # Safety
/// As the interpreter calls it; addresses are NULL or lead to what they are said to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_array_import(
    module: *mut c_void,
    args: *const *mut c_void,
    nargs: isize,
) -> *mut c_void {
    let _ = module;
    // SAFETY: as the caller promises, here and below.
    guard_or(core::ptr::null_mut(), || unsafe {
        let Some(lock) = Lock::held() else { return core::ptr::null_mut() };
        let message = c"expected four arguments: schema, array, type and error";
        let Some([schema, array, ty, error]) = lock.arguments(args, nargs, message) else {
            return core::ptr::null_mut();
        };
        let Some(error) = lock.address_or_raise(error) else { return core::ptr::null_mut() };
        lock.answer(error, |report| {
            let ty: *mut BowstringType = lock.address(ty, "a type", report)?;
            let given = given_in(lock, array, report)?;
            let ty = if ty.is_null() {
                Known::Made(type_in(lock, schema, given, report)?)
            } else {
                Known::Borrowed(type_of(ty, report)?)
            };
            given.into_int(lock, &ty, report)
        })
    })
}

#[inline(always)]
fn given_in(lock: Lock<'_>, capsule: *mut c_void, report: &mut Report<'_>) -> Result<Given> {
    if let Some(array) = lock.held_in(capsule, DEVICE_ARRAY) {
        return Ok(Given::Device(array));
    }
    match lock.held_in(capsule, HOST_ARRAY) {
        Some(array) => Ok(Given::Host(array)),
        None => Err(lock.no_capsule(capsule, "arrow_device_array or arrow_array", report)),
    }
}

#[inline(always)]
unsafe fn type_in(
    lock: Lock<'_>,
    capsule: *mut c_void,
    array: Given,
    report: &mut Report<'_>,
) -> Result<Type> {
    let Some(schema) = lock.held_in::<ArrowSchema>(capsule, SCHEMA) else {
        if lock.is_none(capsule) {
            return Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected a schema or a type, found None and 0"),
            ));
        }
        return Err(lock.no_capsule(capsule, "arrow_schema", report));
    };
    match array {
        Given::Device(array) => disjoint(array, schema, report)?,
        Given::Host(array) => disjoint(array, schema, report)?,
    }
    // SAFETY: the caller says that the capsule holds what its name says.
    unsafe { parse_schema(schema, report) }
}

/// Imports an ArrowDeviceArray by its address: a builtin of three arguments by METH_FASTCALL.
///
/// The arguments are ints: the address of the struct; the address of a BowstringType; the address of a BowstringError, or
/// 0. For producers that export to an address; it is bowstring_array_import_typed. The result is an int, the address of a
/// BowstringArray, or None after a failure.
///
/// Ownership: on success the struct is moved out, and the caller releases the handle; on failure it stays the caller's, as
/// it was or, when Python's memory does not suffice for the int, as an export of ours that shows the same. The type is
/// borrowed.
/// Errors: as bowstring_python_array_import. The calling thread holds the interpreter's lock. One allocation of ours.
/// Source: Arrow C Device interface, "ArrowDeviceArray"; Python C API, "METH_FASTCALL".
///
/// # Safety
/// As the interpreter calls it; addresses are NULL or lead to what they are said to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_array_import_raw(
    module: *mut c_void,
    args: *const *mut c_void,
    nargs: isize,
) -> *mut c_void {
    let _ = module;
    // SAFETY: as the caller promises, here and below.
    guard_or(core::ptr::null_mut(), || unsafe {
        let Some(lock) = Lock::held() else { return core::ptr::null_mut() };
        let message = c"expected three arguments: array, type and error";
        let Some([array, ty, error]) = lock.arguments(args, nargs, message) else {
            return core::ptr::null_mut();
        };
        let Some(error) = lock.address_or_raise(error) else { return core::ptr::null_mut() };
        lock.answer(error, |report| {
            let array = lock.address(array, "an array", report)?;
            let ty = lock.address::<BowstringType>(ty, "a type", report)?;
            let ty = type_of(ty, report)?;
            Given::Device(array).into_int(lock, &ty, report)
        })
    })
}

/// Exports an array into two capsules: a builtin of three arguments by METH_FASTCALL.
///
/// The arguments are ints: the address of a BowstringArray; 0 for a device array, anything else for a host array; the
/// address of a BowstringError, or 0. The result is a tuple, a capsule arrow_schema and a capsule arrow_device_array or
/// arrow_array, as `__arrow_c_device_array__` and `__arrow_c_array__` return it; or None after a failure, with the record
/// written. The export itself is that of bowstring_array_export, or bowstring_array_export_host without a sync: an event that is
/// pending is SYNC_REQUIRED, because nothing may wait while the interpreter's lock is held.
///
/// Ownership: the handle is borrowed; the capsules are the caller's, and own what they hold.
/// Errors: as bowstring_python_array_import and bowstring_array_export_host. The calling thread holds the interpreter's lock.
/// Four allocations of ours: two structs and the two trees.
/// Source: Arrow PyCapsule interface, "ArrowArray Export"; Python C API, "METH_FASTCALL".
///
/// # Safety
/// As the interpreter calls it; addresses are NULL or lead to what they are said to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_array_export(
    module: *mut c_void,
    args: *const *mut c_void,
    nargs: isize,
) -> *mut c_void {
    let _ = module;
    // SAFETY: as the caller promises, here and below.
    guard_or(core::ptr::null_mut(), || unsafe {
        let Some(lock) = Lock::held() else { return core::ptr::null_mut() };
        let message = c"expected three arguments: array, host and error";
        let Some([array, host, error]) = lock.arguments(args, nargs, message) else {
            return core::ptr::null_mut();
        };
        let Some(error) = lock.address_or_raise(error) else { return core::ptr::null_mut() };
        lock.answer(error, |report| {
            let handle = lock.address::<BowstringArray>(array, "an array", report)?;
            let host = lock.address::<c_void>(host, "whether it is a host array", report)?;
            exported(lock, handle, !host.is_null(), report)
        })
    })
}

/// The capsules of an array's type and of the array.
#[inline(always)]
pub(super) unsafe fn exported<'a>(
    lock: Lock<'a>,
    handle: *mut BowstringArray,
    is_host: bool,
    report: &mut Report<'_>,
) -> Result<Object<'a>> {
    // SAFETY: as the caller promises.
    let array = unsafe { array_of(handle, report)? };
    let Some(ty) = array.ty() else {
        return Err(report.fail(Status::Internal, format_args!("expected a type, found none")));
    };
    let mut schema = Held::new(report)?;
    schema.put(export_schema(&ty, report)?.into_raw());
    let array = if is_host {
        let mut out = Held::new(report)?;
        out.put(array.export_host(&Sync::NONE, report)?.into_raw().array);
        lock.capsule_of::<ArrowArray>(out, HOST_ARRAY, report)?
    } else {
        let mut out = Held::new(report)?;
        out.put(array.export(report)?.into_raw());
        lock.capsule_of::<ArrowDeviceArray>(out, DEVICE_ARRAY, report)?
    };
    let schema = lock.capsule_of::<ArrowSchema>(schema, SCHEMA, report)?;
    lock.pair_of(schema, array, report)
}

/// Lets an array handle go: a builtin by METH_O, of the handle's address as an int. 0 is fine. The result is None.
///
/// Ownership: as bowstring_array_release. The producer's release may run now, on this thread and with the interpreter's lock
/// held, as in the destructor of any extension's object.
/// Errors: an exception, for what is no int or before bowstring_python_init. The calling thread holds the interpreter's
/// lock.
/// Source: Python C API, "METH_O".
///
/// # Safety
/// As the interpreter calls it; the address is NULL or a live handle, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_array_release(
    module: *mut c_void,
    handle: *mut c_void,
) -> *mut c_void {
    let _ = module;
    // SAFETY: as the caller promises.
    unsafe { release_by(handle, |at| bowstring_array_release(at.cast::<BowstringArray>())) }
}

/// Lets a buffer handle go: a builtin by METH_O, of the handle's address as an int. 0 is fine. The result is None.
///
/// Ownership: as bowstring_buffer_release. An owner's release may run now, on this thread and with the interpreter's lock held.
/// Errors: as bowstring_python_array_release. The calling thread holds the interpreter's lock.
/// Source: Python C API, "METH_O".
///
/// # Safety
/// As the interpreter calls it; the address is NULL or a live handle, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_buffer_release(
    module: *mut c_void,
    handle: *mut c_void,
) -> *mut c_void {
    let _ = module;
    // SAFETY: as the caller promises.
    unsafe { release_by(handle, |at| bowstring_buffer_release(at.cast::<BowstringBuffer>())) }
}

/// Lets a type handle go: a builtin by METH_O, of the handle's address as an int. 0 is fine. The result is None.
///
/// Ownership: as bowstring_type_release.
/// Errors: as bowstring_python_array_release. The calling thread holds the interpreter's lock.
/// Source: Python C API, "METH_O".
///
/// # Safety
/// As the interpreter calls it; the address is NULL or a live handle, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_type_release(
    module: *mut c_void,
    handle: *mut c_void,
) -> *mut c_void {
    let _ = module;
    // SAFETY: as the caller promises.
    unsafe { release_by(handle, |at| bowstring_type_release(at.cast::<BowstringType>())) }
}

#[inline(always)]
unsafe fn release_by(handle: *mut c_void, release: impl FnOnce(*mut c_void)) -> *mut c_void {
    guard_or(core::ptr::null_mut(), || {
        // SAFETY: the caller holds the interpreter's lock.
        let Some(lock) = (unsafe { Lock::held() }) else { return core::ptr::null_mut() };
        let Some(at) = lock.address_or_raise(handle) else { return core::ptr::null_mut() };
        release(at);
        lock.settle();
        lock.none()
    })
}
