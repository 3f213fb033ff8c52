"""Python's buffer protocol for buffers in memory of the CPU.

A class in Python can have it from Python 3.12 on only, so that a type made by the C API brings it here for all of them.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_ssize_t, c_uint, c_void_p, py_object
from typing import Any

from ._buffer import Buffer
from ._memory import PyBuffer

_GET = ctypes.PYFUNCTYPE(c_int, py_object, POINTER(PyBuffer), c_int)
_fill = ctypes.PYFUNCTYPE(c_int, POINTER(PyBuffer), py_object, c_void_p, c_ssize_t, c_int, c_int)(
    ("PyBuffer_FillInfo", ctypes.pythonapi)
)
# Where memory of no bytes is.
_NOWHERE = ctypes.create_string_buffer(1)


_WRITABLE = 1


def _get_buffer(exporter: Any, view: Any, flags: int) -> int:
    """Shows the buffer's bytes, read-only. The view refers to the buffer, and so keeps it alive.

    A function that ctypes calls cannot set an exception: who asks for memory that may be written gets a SystemError,
    or a word of its own.
    """
    view.contents.obj = None
    if flags & _WRITABLE:
        return -1
    size = exporter.bufsize
    data = exporter.ptr if size else ctypes.addressof(_NOWHERE)
    return int(_fill(view, exporter, data, size, 1, flags))


class _Slot(ctypes.Structure):
    _fields_ = [("slot", c_int), ("function", c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("basicsize", c_int),
        ("itemsize", c_int),
        ("flags", c_uint),
        ("slots", POINTER(_Slot)),
    ]


_GET_BUFFER_SLOT = 1
_DEFAULT, _BASE_TYPE, _HEAP = 1 << 18, 1 << 10, 1 << 9


def _exporter_type() -> Any:
    """A type whose only content is the buffer protocol."""
    from_spec = ctypes.PYFUNCTYPE(py_object, POINTER(_Spec))(("PyType_FromSpec", ctypes.pythonapi))
    slots = (_Slot * 2)(_Slot(_GET_BUFFER_SLOT, ctypes.cast(_get_buffer_c, c_void_p)), _Slot(0, None))
    spec = _Spec(b"bowstring._host_buffer._Exporter", 0, 0, _DEFAULT | _BASE_TYPE | _HEAP, slots)
    made = from_spec(ctypes.byref(spec))
    # Some versions of Python go on using the specification's name and slots.
    made._specification = (spec, slots)
    return made


_get_buffer_c = _GET(_get_buffer)
# The type may be asked when this module is gone.
ctypes.pythonapi.Py_IncRef(py_object(_get_buffer_c))
_Exporter: Any = _exporter_type()


class _HostBuffer(Buffer, _Exporter):  # type: ignore[misc]
    """A `Buffer` in memory of the CPU, which also has Python's buffer protocol: ``memoryview(buffer)`` is read-only."""

    __slots__ = ()


# It is no other kind of thing to who uses it.
_HostBuffer.__name__ = _HostBuffer.__qualname__ = "Buffer"
_HostBuffer.__module__ = Buffer.__module__
Buffer._on_host = _HostBuffer
