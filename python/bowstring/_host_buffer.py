"""Python's buffer protocol of memory of the CPU, by `__buffer__` on every version of Python.

From Python 3.12 on a class has the protocol by that method alone. Before, it takes a base class whose slot in C calls it.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, byref, c_ssize_t, py_object
from typing import Any, Optional, Sequence

from ._library import _incref
from ._python import PyBuffer, get_buffer, heap_type


class _Plain:
    __slots__ = ()


_GET_BUFFER_SLOT = 1
Exporter: Any = (
    _Plain if sys.version_info >= (3, 12) else heap_type("Exporter", 0, [(_GET_BUFFER_SLOT, get_buffer)])
)

_WRITABLE = 1
# Where memory of no bytes is.
_NOWHERE = ctypes.create_string_buffer(1)
# A long, where it is as long, is what NumPy itself says for such elements.
_LONG = "l" if ctypes.sizeof(ctypes.c_long) == 8 else "q"
_FORMATS = {
    "b1": b"?", "i1": b"b", "u1": b"B", "i2": b"h", "u2": b"H", "i4": b"i", "u4": b"I", "i8": _LONG.encode(),
    "u8": _LONG.upper().encode(), "f2": b"e", "f4": b"f", "f8": b"d", "c8": b"Zf", "c16": b"Zd",
}
# Memoryviews keep their format's address only.
_incref(_FORMATS)
_incref(_NOWHERE)
_from_buffer = ctypes.PYFUNCTYPE(py_object, POINTER(PyBuffer))(("PyMemoryView_FromBuffer", ctypes.pythonapi))


class _Block(Exporter):  # type: ignore[misc]
    """Memory as Python's buffer protocol shows it, and what keeps it alive."""

    __slots__ = ("_owner", "_data", "_format", "_itemsize", "_shape", "_strides")

    def __init__(
        self, owner: object, data: int, form: bytes, itemsize: int, shape: Sequence[int], strides: Sequence[int]
    ) -> None:
        self._owner = owner
        self._data = data or ctypes.addressof(_NOWHERE)
        self._format = form
        self._itemsize = itemsize
        self._shape = shape
        self._strides = strides

    def __buffer__(self, flags: int) -> memoryview:
        """A memoryview that keeps nothing alive: whoever asks by the protocol refers to this object as well."""
        n = len(self._shape)
        size = self._itemsize
        for length in self._shape:
            size *= length
        lengths = c_ssize_t * n
        shown = PyBuffer(
            self._data, None, size, self._itemsize, 1, n, self._format, lengths(*self._shape), lengths(*self._strides)
        )
        made: memoryview = _from_buffer(byref(shown))
        return made


def refuse_writing(flags: int) -> None:
    """A BufferError for who wants memory that may be written."""
    if flags & _WRITABLE:
        raise BufferError("expected a request for read-only memory, found one to write: the memory may be shared")


def view_of_bytes(owner: object, data: int, size: int) -> memoryview:
    """A memoryview of bytes that keeps `owner` alive."""
    return memoryview(_Block(owner, data, b"B", 1, (size,), (1,)))


def view_of_tensor(tensor: Any, typestr: str) -> Optional[memoryview]:
    """A memoryview that keeps the tensor alive; None for elements that the protocol has no letter for."""
    form = _FORMATS.get(typestr[1:])
    if form is None:
        return None
    size = tensor.dtype[1] // 8
    strides = tuple(step * size for step in tensor.strides)
    return memoryview(_Block(tensor, tensor.data, form, size, tensor.shape, strides))
