//! What CPython needs in C: the destructor of capsules, and calls that a binding makes builtins of.
//!
//! No libpython is linked: whoever loads the library hands in the addresses.

mod calls;
mod instances;
mod objects;
mod views;

pub use calls::*;
pub use instances::*;
pub use views::*;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use std::sync::OnceLock;

use bowstring_core::abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};
use bowstring_core::error::{ErrorRecord, Report, Result, Status};
use bowstring_core::tensor;

use crate::error::BowstringStatus;
use crate::guard::{guard, guard_or};
use crate::raw::free_raw;
use crate::sized::{self, read_input};
use objects::Calls;

/// Addresses of CPython's functions and objects, as ctypes.pythonapi or a linked libpython has them. Most are of its
/// stable ABI, which has PyObject_VectorcallMethod only from 3.12 and the buffers' only from 3.11 on, though every version since 3.9 has them.
///
/// The capsules' destructor needs the first six functions. The calls that a binding makes builtins or slots of need all members;
/// without them every member behind err_write_unraisable is NULL.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BowstringPythonApi {
    /// Size of this struct in the caller's build.
    pub struct_size: usize,
    /// PyCapsule_IsValid.
    pub capsule_is_valid: Option<unsafe extern "C" fn(capsule: *mut c_void, name: *const c_char) -> c_int>,
    /// PyCapsule_GetName.
    pub capsule_get_name: Option<unsafe extern "C" fn(capsule: *mut c_void) -> *const c_char>,
    /// PyCapsule_GetPointer.
    pub capsule_get_pointer:
        Option<unsafe extern "C" fn(capsule: *mut c_void, name: *const c_char) -> *mut c_void>,
    /// PyErr_Fetch.
    pub err_fetch: Option<
        unsafe extern "C" fn(kind: *mut *mut c_void, value: *mut *mut c_void, traceback: *mut *mut c_void),
    >,
    /// PyErr_Restore.
    pub err_restore:
        Option<unsafe extern "C" fn(kind: *mut c_void, value: *mut c_void, traceback: *mut c_void)>,
    /// PyErr_WriteUnraisable.
    pub err_write_unraisable: Option<unsafe extern "C" fn(object: *mut c_void)>,
    /// PyErr_Occurred.
    pub err_occurred: Option<unsafe extern "C" fn() -> *mut c_void>,
    /// PyErr_Clear.
    pub err_clear: Option<unsafe extern "C" fn()>,
    /// PyErr_SetString.
    pub err_set_string: Option<unsafe extern "C" fn(kind: *mut c_void, message: *const c_char)>,
    /// PyCapsule_New.
    pub capsule_new: Option<
        unsafe extern "C" fn(
            pointer: *mut c_void,
            name: *const c_char,
            destructor: Option<unsafe extern "C" fn(capsule: *mut c_void)>,
        ) -> *mut c_void,
    >,
    /// PyLong_AsVoidPtr.
    pub long_as_void_ptr: Option<unsafe extern "C" fn(object: *mut c_void) -> *mut c_void>,
    /// PyLong_FromVoidPtr.
    pub long_from_void_ptr: Option<unsafe extern "C" fn(pointer: *mut c_void) -> *mut c_void>,
    /// PyTuple_New.
    pub tuple_new: Option<unsafe extern "C" fn(size: isize) -> *mut c_void>,
    /// PyTuple_SetItem.
    pub tuple_set_item:
        Option<unsafe extern "C" fn(tuple: *mut c_void, index: isize, item: *mut c_void) -> c_int>,
    /// Py_IncRef.
    pub inc_ref: Option<unsafe extern "C" fn(object: *mut c_void)>,
    /// Py_DecRef.
    pub dec_ref: Option<unsafe extern "C" fn(object: *mut c_void)>,
    /// PyTuple_Size.
    pub tuple_size: Option<unsafe extern "C" fn(tuple: *mut c_void) -> isize>,
    /// PyTuple_GetItem.
    pub tuple_get_item: Option<unsafe extern "C" fn(tuple: *mut c_void, index: isize) -> *mut c_void>,
    /// PyObject_GetAttr.
    pub object_get_attr: Option<unsafe extern "C" fn(object: *mut c_void, name: *mut c_void) -> *mut c_void>,
    /// PyUnicode_FromString.
    pub unicode_from_string: Option<unsafe extern "C" fn(text: *const c_char) -> *mut c_void>,
    /// PyObject_VectorcallMethod.
    pub object_vectorcall_method: Option<
        unsafe extern "C" fn(
            name: *mut c_void,
            args: *const *mut c_void,
            nargs: usize,
            names: *mut c_void,
        ) -> *mut c_void,
    >,
    /// PyType_GenericAlloc.
    pub type_generic_alloc: Option<unsafe extern "C" fn(kind: *mut c_void, items: isize) -> *mut c_void>,
    /// PyMemoryView_FromObject.
    pub memoryview_from_object: Option<unsafe extern "C" fn(object: *mut c_void) -> *mut c_void>,
    /// PyObject_GetBuffer.
    pub object_get_buffer:
        Option<unsafe extern "C" fn(object: *mut c_void, view: *mut c_void, flags: c_int) -> c_int>,
    /// PyBuffer_Release.
    pub buffer_release: Option<unsafe extern "C" fn(view: *mut c_void)>,
    /// The object None: `id(None)`, or the address of _Py_NoneStruct.
    pub none: *mut c_void,
    /// The class TypeError: `id(TypeError)`, or what PyExc_TypeError holds.
    pub type_error: *mut c_void,
    /// The object True: `id(True)`, or the address of _Py_TrueStruct.
    pub true_object: *mut c_void,
    /// `object.__basicsize__`: where an instance's own memory begins in a class that is derived from object.
    pub object_size: usize,
}

// SAFETY: `repr(C)`, starts with a `usize`; a zero function pointer is None, and the rest are pointers.
unsafe impl sized::Sized for BowstringPythonApi {
    const NAME: &'static str = "BowstringPythonApi";
}

/// Members behind struct_size.
const N_MEMBERS: usize = size_of::<BowstringPythonApi>() / size_of::<usize>() - 1;

impl BowstringPythonApi {
    fn addresses(&self) -> [usize; N_MEMBERS] {
        // SAFETY: every member is as large as an address, and behind each other.
        let [_, addresses @ ..] = unsafe { transmute::<BowstringPythonApi, [usize; N_MEMBERS + 1]>(*self) };
        addresses
    }
}

/// The interpreter as it was handed in: functions that are called with its lock held.
struct Python {
    api: BowstringPythonApi,
    is_valid: unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int,
    get_name: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    get_pointer: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void,
    fetch: unsafe extern "C" fn(*mut *mut c_void, *mut *mut c_void, *mut *mut c_void),
    restore: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void),
    write_unraisable: unsafe extern "C" fn(*mut c_void),
    calls: Option<Calls>,
}

// SAFETY: the addresses are functions and two objects that live as long as the interpreter; whoever uses them holds its lock.
unsafe impl Send for Python {}
// SAFETY: as above.
unsafe impl Sync for Python {}

static PYTHON: OnceLock<Python> = OnceLock::new();

/// Tells the library where CPython's functions are, once for a copy of the library.
///
/// Until then bowstring_python_capsule_destructor does nothing, and the calls for builtins fail.
///
/// Ownership: the struct is borrowed for the call and copied; what it leads to must stay until the process ends.
/// Errors: INVALID_ARGUMENT when api or one of the first six functions is NULL, when only some of the other members are,
/// when struct_size is too small, or after a call with other addresses, while the same addresses are fine; UNSUPPORTED when
/// the struct uses members that this version does not know. Any thread may call it.
///
/// # Safety
/// `api` is NULL or leads to as many bytes as its struct_size says; its members are what their comments name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_init(
    api: *const BowstringPythonApi,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        let api = unsafe { read_input(api, report) }?;
        let python = Python::new(&api, report)?;
        if PYTHON.get_or_init(|| python).api.addresses() != api.addresses() {
            return Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected the addresses of the first call, found others"),
            ));
        }
        Ok(())
    })
}

impl Python {
    fn new(api: &BowstringPythonApi, report: &mut Report<'_>) -> Result<Python> {
        let first = (|| {
            Some(Python {
                api: *api,
                is_valid: api.capsule_is_valid?,
                get_name: api.capsule_get_name?,
                get_pointer: api.capsule_get_pointer?,
                fetch: api.err_fetch?,
                restore: api.err_restore?,
                write_unraisable: api.err_write_unraisable?,
                calls: Calls::new(api),
            })
        })();
        let is_some = api.addresses().iter().skip(6).any(|address| *address != 0);
        match first {
            Some(python) if python.calls.is_some() == is_some => Ok(python),
            Some(_) => Err(report.fail(
                Status::InvalidArgument,
                format_args!(
                    "expected all members behind err_write_unraisable or none, found some to be NULL"
                ),
            )),
            None => Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected the first six functions of BowstringPythonApi, found NULL among them"),
            )),
        }
    }

    /// Keeps the exception that is pending, until the result goes.
    unsafe fn aside(&self) -> Aside<'_> {
        // SAFETY: the caller holds the interpreter's lock.
        Aside { python: self, pending: unsafe { self.take_exception() } }
    }

    unsafe fn take_exception(&self) -> Exception {
        let mut taken = Exception([core::ptr::null_mut(); 3]);
        let [kind, value, traceback] = &mut taken.0;
        // SAFETY: the caller holds the interpreter's lock.
        unsafe { (self.fetch)(kind, value, traceback) };
        taken
    }

    unsafe fn put_exception(&self, exception: Exception) {
        let [kind, value, traceback] = exception.0;
        // SAFETY: the caller holds the interpreter's lock, and the references are those that were fetched.
        unsafe { (self.restore)(kind, value, traceback) };
    }

    /// Lets go of what a capsule holds, unless it was renamed because a consumer took it.
    unsafe fn empty(&self, capsule: *mut c_void) {
        // SAFETY: the caller holds the interpreter's lock; a capsule's name is a string that outlives it.
        unsafe {
            let name = (self.get_name)(capsule);
            if name.is_null() {
                return;
            }
            let let_go: unsafe fn(*mut c_void) = match CStr::from_ptr(name).to_bytes() {
                b"arrow_schema" => |at| free_raw::<ArrowSchema>(at.cast()),
                b"arrow_array" => |at| free_raw::<ArrowArray>(at.cast()),
                b"arrow_array_stream" => |at| free_raw::<ArrowArrayStream>(at.cast()),
                b"arrow_device_array" => |at| free_raw::<ArrowDeviceArray>(at.cast()),
                b"arrow_device_array_stream" => |at| free_raw::<ArrowDeviceArrayStream>(at.cast()),
                b"dltensor" => |at| tensor::release_legacy(at.cast()),
                b"dltensor_versioned" => |at| tensor::release_versioned(at.cast()),
                _ => return,
            };
            let at = (self.get_pointer)(capsule, name);
            if !at.is_null() {
                let_go(at);
            }
        }
    }
}

/// An exception that was taken out of the interpreter: its kind, value and traceback, of which each may be NULL.
struct Exception([*mut c_void; 3]);

/// Puts the exception back that was pending before, and reports one that came up meanwhile, also while unwinding.
struct Aside<'a> {
    python: &'a Python,
    pending: Exception,
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        // SAFETY: whoever made this holds the interpreter's lock.
        unsafe {
            let raised = self.python.take_exception();
            if !raised.0[0].is_null() {
                self.python.put_exception(raised);
                // No object is named: a capsule that is being destroyed may not be referred to.
                (self.python.write_unraisable)(core::ptr::null_mut());
            }
            let pending = core::mem::replace(&mut self.pending, Exception([core::ptr::null_mut(); 3]));
            self.python.put_exception(pending);
        }
    }
}

/// The destructor of a capsule with any of the seven names: arrow_schema, arrow_array, arrow_array_stream,
/// arrow_device_array, arrow_device_array_stream, dltensor and dltensor_versioned.
///
/// A struct of Arrow's is released, unless a consumer moved it out, and freed; it must come from bowstring_schema_new and
/// the like. A tensor's own deleter runs, which frees it. A capsule with another name, such as used_dltensor, or without
/// one is left alone. An exception that is pending stays so; one that comes up is written as unraisable. Before
/// bowstring_python_init it does nothing.
///
/// Ownership: what the capsule held is gone afterwards; the capsule itself is the interpreter's. The calling thread holds
/// the interpreter's lock, as in every destructor; a release that has to wait for a device waits with it.
/// Source: Arrow PyCapsule interface, "Lifetime semantics"; DLPack, Python specification, "Semantics".
///
/// # Safety
/// `capsule` is NULL or a capsule that the interpreter is destroying.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_capsule_destructor(capsule: *mut c_void) {
    guard_or((), || {
        let Some(python) = PYTHON.get() else { return };
        if capsule.is_null() {
            return;
        }
        // SAFETY: as the caller promises, here and below.
        unsafe {
            let aside = python.aside();
            python.empty(capsule);
            drop(aside);
        }
    });
}
