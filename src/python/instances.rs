//! Arrays as instances of a binding's class: the handle lies in the instance, so that making and destroying one takes no
//! bytecode.
//!
//! The class is derived from one by PyType_FromSpec, whose instances are `object.__basicsize__` bytes and a handle long, with
//! bowstring_python_array_finalize as its Py_tp_finalize and a member of type T_ULONGLONG there to show the handle to Python.

use core::ffi::c_void;

use bowstring_core::abi::ArrowDeviceArray;
use bowstring_core::error::Report;

use super::calls::{Given, exported};
use super::objects::Lock;
use crate::array::{BowstringArray, bowstring_array_release, handle_of};
use crate::guard::guard_or;
use crate::pointer::type_of;
use crate::raw::Raw;
use crate::schema::BowstringType;

/// What a producer exports to.
struct Filled(ArrowDeviceArray);

impl Drop for Filled {
    fn drop(&mut self) {
        if !self.0.is_released() {
            // SAFETY: the struct is live and ours.
            unsafe { Raw::call_release(&raw mut self.0) };
        }
    }
}

/// The array of a producer that exports to an address, under a schema that was seen before: a builtin by METH_O.
///
/// PyCFunction_NewEx is given a tuple, which is what the first parameter is: a class; the names of the producer's schema, of
/// the method by which schemas compare, and of the one that exports to an address, such as "schema", "equals" and
/// "_export_to_c_device"; and then any number of triples: a schema, an object that keeps its type alive, and the address of
/// the BowstringType as an int. A schema is known that is one of these, or for which `known.equals(schema, True)` is True. The
/// result is a new instance of the class, with the handle of an array; or None when the schema is not known or the array does
/// not fit it: bowstring_python_array_import_raw says why.
///
/// Ownership: the instance is the caller's, and its class lets the array go; what the producer exported is the array's, or
/// was released.
/// Errors: as an exception, whatever the producer raises, or Python's own for a tuple that is none or is too short; a
/// SystemError, because the result is NULL, before bowstring_python_init or without its optional members. The calling
/// thread holds the interpreter's lock. One allocation of ours.
/// Source: Arrow C Device interface, "ArrowDeviceArray"; Python C API, "METH_O", "PyObject_VectorcallMethod".
///
/// # Safety
/// As the interpreter calls it; the tuple is as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_array_take(
    known: *mut c_void,
    producer: *mut c_void,
) -> *mut c_void {
    // SAFETY: as the caller promises, here and below.
    guard_or(core::ptr::null_mut(), || unsafe {
        let Some(lock) = Lock::held() else { return core::ptr::null_mut() };
        take(lock, known, producer).unwrap_or(core::ptr::null_mut())
    })
}

/// None leaves an exception behind.
#[inline(always)]
unsafe fn take(lock: Lock<'_>, known: *mut c_void, producer: *mut c_void) -> Option<*mut c_void> {
    let (class, schema_name) = (lock.item(known, 0)?, lock.item(known, 1)?);
    let (equals, export) = (lock.item(known, 2)?, lock.item(known, 3)?);
    let schema = lock.attribute(producer, schema_name)?;
    let end = lock.size_of(known);
    let mut at: isize = 4;
    let ty = loop {
        if at >= end {
            return Some(lock.none());
        }
        let seen = lock.item(known, at)?.as_ptr();
        if core::ptr::eq(seen, schema.at()) {
            break lock.item(known, at.saturating_add(2))?;
        }
        let same = lock.call_method(equals, &[seen, schema.at(), lock.true_object()])?;
        if core::ptr::eq(same.at(), lock.true_object()) {
            break lock.item(known, at.saturating_add(2))?;
        }
        at = at.saturating_add(3);
    };
    let ty = lock.address_or_raise(ty.as_ptr())?.cast::<BowstringType>();
    let report = &mut Report::silent();
    // SAFETY: zeroes are a released struct; the tuple keeps the type alive, and is kept by the builtin.
    unsafe {
        let mut raw: Filled = core::mem::zeroed();
        let to = lock.int_or_raise(&raw mut raw.0)?;
        lock.call_method(export, &[producer, to.at()])?;
        let made = type_of(ty, report).and_then(|ty| Given::Device(&raw mut raw.0).import(&ty, report));
        let Ok(array) = made else {
            drop(raw);
            lock.settle();
            return Some(lock.none());
        };
        let instance = lock.instance(class)?;
        lock.own_memory::<*mut BowstringArray>(instance.at()).write(handle_of(array));
        Some(instance.into_raw())
    }
}

/// Exports the array of an instance into two capsules: a method by METH_FASTCALL and METH_KEYWORDS, for PyDescr_NewMethod.
///
/// It is `__arrow_c_device_array__(requested_schema=None, **kwargs)` for nothing in particular: with another request than
/// None, with a keyword, or when the export fails it returns what the instance's method `_answer_device_array` does with the
/// same arguments.
///
/// Ownership: the array is borrowed from the instance; the capsules are the caller's, and own what they hold.
/// Errors: those of `_answer_device_array`, as an exception; a SystemError, because the result is NULL, before
/// bowstring_python_init or without its optional members. The calling thread holds the interpreter's lock. Four allocations
/// of ours.
/// Source: Arrow PyCapsule interface, "ArrowDeviceArray Export"; Python C API, "METH_FASTCALL | METH_KEYWORDS".
///
/// # Safety
/// As the interpreter calls it; the instance is one of a class as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_array_give(
    instance: *mut c_void,
    args: *const *mut c_void,
    nargs: isize,
    names: *mut c_void,
) -> *mut c_void {
    // SAFETY: as the caller promises, here and below.
    guard_or(core::ptr::null_mut(), || unsafe {
        let Some(lock) = Lock::held() else { return core::ptr::null_mut() };
        let is_plain = names.is_null() && (nargs == 0 || (nargs == 1 && lock.is_none(args.read())));
        if is_plain {
            let handle = lock.own_memory::<*mut BowstringArray>(instance).read();
            let made = exported(lock, handle, false, &mut Report::silent());
            lock.settle();
            if let Ok(pair) = made {
                return pair.into_raw();
            }
        }
        lock.pass_on(instance, c"_answer_device_array", args, nargs, names)
    })
}

/// Lets the array of an instance go: the Py_tp_finalize of a class.
///
/// Ownership: the handle is let go, and the instance has none afterwards. The producer's release may run now, on this thread
/// and with the interpreter's lock held. An exception that is pending stays so.
/// Errors: none. The calling thread holds the interpreter's lock; before bowstring_python_init it does nothing.
/// Source: Python C API, "tp_finalize".
///
/// # Safety
/// As the interpreter calls it; the instance is one of a class as above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_array_finalize(instance: *mut c_void) {
    // SAFETY: as the caller promises.
    guard_or((), || unsafe {
        let Some(lock) = Lock::held() else { return };
        let at = lock.own_memory::<*mut BowstringArray>(instance);
        let handle = at.replace(core::ptr::null_mut());
        if !handle.is_null() {
            let _aside = lock.aside();
            bowstring_array_release(handle);
        }
    });
}
