"""What the library is told of CPython, and its calls as builtins: a call through ctypes costs half a microsecond."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_ssize_t, c_void_p, py_object
from typing import Any

from . import _c
from ._library import _incref, address_of, call, lib

_METH_O, _METH_FASTCALL = 0x0008, 0x0080


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p)]


class PyBuffer(ctypes.Structure):
    """Python's ``Py_buffer``, whose layout is part of the stable ABI."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    ]


def _init() -> None:
    addresses = {name: address_of(getattr(ctypes.pythonapi, name)) for name in (*_c.PYTHON_FUNCTIONS, *_c.PYTHON_VIEWS)}
    # An object's id is its address in CPython, which is the only Python that has these functions.
    call(lib.bowstring_python_init, byref(_c.PythonApi(none=id(None), type_error=id(TypeError), **addresses)))


_new_builtin = ctypes.PYFUNCTYPE(py_object, c_void_p, c_void_p, c_void_p)(("PyCFunction_NewEx", ctypes.pythonapi))


def _builtin(name: str, flags: int) -> Any:
    definition = _MethodDef(name.encode(), address_of(getattr(lib, f"bowstring_python_{name}")), flags, None)
    # A builtin reads its definition when it is destroyed, which may be after this module at the interpreter's end.
    _incref(definition)
    return _new_builtin(ctypes.addressof(definition), None, None)


_init()
array_import = _builtin("array_import", _METH_FASTCALL)
array_import_raw = _builtin("array_import_raw", _METH_FASTCALL)
array_export = _builtin("array_export", _METH_FASTCALL)
array_release = _builtin("array_release", _METH_O)
buffer_release = _builtin("buffer_release", _METH_O)
type_release = _builtin("type_release", _METH_O)
get_buffer = address_of(lib.bowstring_python_get_buffer)
capsule_destructor = address_of(lib.bowstring_python_capsule_destructor)
