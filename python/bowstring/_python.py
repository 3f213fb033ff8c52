"""What the library is told of CPython, and its calls as builtins: a call through ctypes costs half a microsecond."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_ssize_t, c_uint, c_void_p, py_object
from typing import TYPE_CHECKING, Any

from . import _c
from ._library import _incref, address_of, call, lib

_METH_O, _METH_KEYWORDS, _METH_FASTCALL = 0x0008, 0x0002, 0x0080


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p)]


class _Member(ctypes.Structure):
    """CPython's PyMemberDef."""

    _fields_ = [("name", c_char_p), ("kind", c_int), ("offset", c_ssize_t), ("flags", c_int), ("doc", c_char_p)]


class _Slot(ctypes.Structure):
    """CPython's PyType_Slot."""

    _fields_ = [("slot", c_int), ("function", c_void_p)]


class _Spec(ctypes.Structure):
    """CPython's PyType_Spec."""

    _fields_ = [
        ("name", c_char_p),
        ("basicsize", c_int),
        ("itemsize", c_int),
        ("flags", c_uint),
        ("slots", POINTER(_Slot)),
    ]


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
    addresses = {name: address_of(getattr(ctypes.pythonapi, name)) for name in _c.PYTHON_FUNCTIONS}
    call(lib.bowstring_python_init, byref(_c.PythonApi(**_c.PYTHON_VALUES, **addresses)))


_new_builtin = ctypes.PYFUNCTYPE(py_object, c_void_p, c_void_p, c_void_p)(("PyCFunction_NewEx", ctypes.pythonapi))


_new_method = ctypes.PYFUNCTYPE(py_object, py_object, c_void_p)(("PyDescr_NewMethod", ctypes.pythonapi))
_new_type = ctypes.PYFUNCTYPE(py_object, POINTER(_Spec))(("PyType_FromSpec", ctypes.pythonapi))


def _definition(name: str, function: str, flags: int, doc: "str | None" = None) -> int:
    """The address of a PyMethodDef of one of the library's functions."""
    address = address_of(getattr(lib, f"bowstring_python_{function}"))
    made = _MethodDef(name.encode(), address, flags, None if doc is None else doc.encode())
    # A builtin reads its definition when it is destroyed, which may be after this module at the interpreter's end.
    _incref(made)
    return ctypes.addressof(made)


def _builtin(name: str, flags: int, told: object = None) -> Any:
    """A builtin, whose function is given `told` with each call."""
    return _new_builtin(_definition(name, name, flags), id(told), None)


_TAKE = _definition("array_take", "array_take", _METH_O)


def array_take(known: "tuple[object, ...]") -> Any:
    """The builtin that takes arrays from producers that export to an address, see bowstring_python_array_take."""
    return _new_builtin(_TAKE, id(known), None)


_FINALIZE_SLOT, _MEMBERS_SLOT = 80, 72
_UNSIGNED_LONG_LONG = 18
_DEFAULT, _BASE_TYPE, _HEAP = 1 << 18, 1 << 10, 1 << 9


def heap_type(name: str, size: int, slots: "list[tuple[int, int]]") -> Any:
    """A class by CPython's PyType_FromSpec, with instances of that size, or of their base's when it is 0."""
    table = (_Slot * (len(slots) + 1))(*(_Slot(*slot) for slot in slots))
    spec = _Spec(f"bowstring._python.{name}".encode(), size, 0, _DEFAULT | _BASE_TYPE | _HEAP, table)
    # Some versions of Python go on using the specification.
    _incref((table, spec))
    return _new_type(byref(spec))


def _handle_type(name: str, finalize: str) -> Any:
    """A class whose instances hold a handle, in `_handle`, and let it go in the end."""
    at, size = object.__basicsize__, ctypes.sizeof(c_void_p)
    members = (_Member * 2)(_Member(b"_handle", _UNSIGNED_LONG_LONG, at, 0, None))
    _incref(members)
    end = address_of(getattr(lib, f"bowstring_python_{finalize}"))
    return heap_type(name, at + size, [(_FINALIZE_SLOT, end), (_MEMBERS_SLOT, ctypes.addressof(members))])


def array_give(kind: type) -> Any:
    """The method of a class derived from `ArrayHandle` that exports, see bowstring_python_array_give."""
    doc = kind._answer_device_array.__doc__  # type: ignore[attr-defined]
    text = f"__arrow_c_device_array__($self, requested_schema=None, **kwargs)\n--\n\n{doc}"
    flags = _METH_FASTCALL | _METH_KEYWORDS
    return _new_method(kind, _definition("__arrow_c_device_array__", "array_give", flags, text))


_init()
array_import = _builtin("array_import", _METH_FASTCALL)
array_import_raw = _builtin("array_import_raw", _METH_FASTCALL)
array_export = _builtin("array_export", _METH_FASTCALL)
buffer_release = _builtin("buffer_release", _METH_O)
type_release = _builtin("type_release", _METH_O)
if TYPE_CHECKING:

    class ArrayHandle:
        """What an `Array` consists of."""

        __slots__ = ("_handle",)

        _handle: int

else:
    ArrayHandle = _handle_type("ArrayHandle", "array_finalize")
get_buffer = address_of(lib.bowstring_python_get_buffer)
capsule_destructor = address_of(lib.bowstring_python_capsule_destructor)
