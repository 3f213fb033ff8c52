//! Python's buffer protocol for classes that are written in Python.

use core::ffi::{c_char, c_int, c_void};

use super::objects::Lock;
use crate::guard::guard_or;

/// CPython's Py_buffer, which is copied as a whole.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PyBuffer {
    buf: *mut c_void,
    pub(super) obj: *mut c_void,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

/// The buffer protocol of objects that have a method `__buffer__`, as classes do from Python 3.12 on: the slot Py_bf_getbuffer of a
/// type for the versions before.
///
/// A binding makes a type with this slot by PyType_FromSpec, and derives its classes from it. The method is called with the
/// flags, and returns a memoryview, or another object of the buffer protocol, but not the exporter. There is nothing to do when a view
/// is released, so that the type needs no Py_bf_releasebuffer.
///
/// Ownership: exporter is borrowed; view refers to it and to what the method returned, until PyBuffer_Release.
/// Errors: -1 with an exception: the method's own, or that of a memoryview which cannot answer the flags; then view's obj is
/// NULL. Before bowstring_python_init or without its optional members there is no exception, which the interpreter makes a
/// SystemError. The calling thread holds the interpreter's lock.
/// Source: Python C API, "getbufferproc"; PEP 688.
///
/// # Safety
/// As the interpreter calls it: exporter is a live object, and view is NULL or leads to a Py_buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_python_get_buffer(
    exporter: *mut c_void,
    view: *mut c_void,
    flags: c_int,
) -> c_int {
    let view = view.cast::<PyBuffer>();
    if !view.is_null() {
        // SAFETY: as the caller promises; the view need not be initialized.
        unsafe { (&raw mut (*view).obj).write(core::ptr::null_mut()) };
    }
    // SAFETY: as the caller promises, here and below.
    let shown = guard_or(None, || unsafe {
        let lock = Lock::held()?;
        if view.is_null() {
            return lock.no_view();
        }
        let made = lock.called(exporter, c"__buffer__", usize::try_from(flags).unwrap_or(0))?;
        lock.shown(&made, exporter, view, flags)
    });
    if shown.is_some() { 0 } else { -1 }
}
