"""Arrays, buffers and types in pickles: by protocol 5 with their bytes out of band, which copies nothing.

What a pickle takes of an array is what the array shows: `Cut` says how. Arrays that are not in CPU memory come back on the CPU.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_ssize_t, c_void_p, py_object
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._array import Array
    from ._buffer import Buffer
    from ._type import Type

_api = ctypes.pythonapi


class _PyBuffer(ctypes.Structure):
    """CPython's Py_buffer."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_void_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_get = ctypes.PYFUNCTYPE(c_int, py_object, c_void_p, c_int)(("PyObject_GetBuffer", _api))
_let_go = ctypes.PYFUNCTYPE(None, c_void_p)(("PyBuffer_Release", _api))


class Held:
    """The bytes of an object with the buffer protocol, which neither move nor go while this is alive."""

    __slots__ = ("_view",)

    def __init__(self, of: Any) -> None:
        view = _PyBuffer()
        _get(of, byref(view), 0)
        self._view = view

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return self._view.buf or 0

    @property
    def size(self) -> int:
        """Number of bytes."""
        return int(self._view.len)

    def __del__(self) -> None:
        view = getattr(self, "_view", None)
        if view is not None:
            _let_go(byref(view))


def view_of(buffer: "Buffer") -> memoryview:
    """The bytes of a buffer in CPU memory, read-only; the view keeps the buffer."""
    size = buffer.bufsize
    if not size:
        return memoryview(b"")
    block = (ctypes.c_ubyte * size).from_address(buffer.ptr)
    block._keeps = buffer  # type: ignore[attr-defined]
    return memoryview(block).toreadonly()


def parts_of(array: "Array") -> "tuple[Type, tuple[Any, ...], list[Any]]":
    """What a pickle has of an array: its type, its numbers, and its bytes as objects with the buffer protocol."""
    from ._buffer import Buffer
    from ._cut import Cut

    cut = Cut(array if array.device.is_cpu else array.to_device("cpu"))
    pieces = [view_of(piece) if isinstance(piece, Buffer) else piece for piece in cut.pieces]
    return array.type, (tuple(cut.nodes), tuple(cut.places)), pieces


def array_of(kind: "Type", shape: tuple[Any, ...], pieces: "list[Any]") -> "Array":
    """The array that `parts_of` took apart, on the bytes that are given, each with an owner of its own."""
    from ._array import Array
    from ._cut import joined

    nodes, places = shape
    held = [Held(piece) for piece in pieces]
    buffers = [None if at < 0 else (held[at].address, held[at].size, held[at]) for at in places]
    return Array._of(joined(kind._handle, list(nodes), buffers), "pickle")


def buffer_of(data: Any) -> "Buffer":
    """A buffer on bytes that an object with the buffer protocol has."""
    from ._buffer import Buffer

    held = Held(data)
    return Buffer.from_address(held.address, held.size, held)


def _array(kind: "Type", shape: tuple[Any, ...], *pieces: Any) -> "Array":
    return array_of(kind, shape, list(pieces))


def _packed(piece: Any, protocol: int) -> Any:
    return PickleBuffer(piece) if protocol >= 5 else bytes(piece)


class ArrayPickling:
    """An `Array` in a pickle, and copied."""

    __slots__ = ()

    def __reduce_ex__(self: "Array", protocol: Any) -> Any:  # type: ignore[misc]
        kind, shape, pieces = parts_of(self)
        return _array, (kind, shape, *(_packed(piece, protocol) for piece in pieces))

    def __copy__(self: "Array") -> "Array":  # type: ignore[misc]
        return self

    def __deepcopy__(self: "Array", memo: Optional[dict[int, Any]]) -> "Array":  # type: ignore[misc]
        """The array in memory of its own, on the same device."""
        return self.to_device(self.device, share=False)


class BufferPickling:
    """A `Buffer` in a pickle, and copied."""

    __slots__ = ()

    def __reduce_ex__(self: "Buffer", protocol: Any) -> Any:  # type: ignore[misc]
        if self.bufsize < 0:
            raise ValueError("expected a buffer whose size is known, found one whose size nobody has told: slice it first")
        host = self if self.device.is_cpu else self.to_device("cpu")
        return buffer_of, (_packed(view_of(host), protocol),)

    def __copy__(self: "Buffer") -> "Buffer":  # type: ignore[misc]
        return self

    def __deepcopy__(self: "Buffer", memo: Optional[dict[int, Any]]) -> "Buffer":  # type: ignore[misc]
        """The bytes in memory of their own, on the same device."""
        return self.to_device(self.device, share=False)


class StreamPickling:
    """A `Stream`, which no pickle can take."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a Stream gives each array once, and cannot be pickled or copied: collect() it, or send its arrays")
