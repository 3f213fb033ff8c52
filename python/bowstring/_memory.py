"""Memory of Python objects, copies of it, and arrays that are put together of it."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int, c_size_t, c_void_p, py_object
from typing import Any, Iterable, Optional, Sequence

from . import _c
from ._device import CPU, Device, struct_of
from ._errors import BowstringError, Unsupported
from ._library import address_of, call, lib, made, owned, text_of
from ._python import PyBuffer
from ._type import Type

HOST = Device(CPU, -1)


class CopyNeeded(Unsupported, BufferError):
    """It would take a copy, which the caller does not want."""


_FULL_READ_ONLY = 0x11C
_get = ctypes.PYFUNCTYPE(c_int, py_object, POINTER(PyBuffer), c_int)(("PyObject_GetBuffer", ctypes.pythonapi))
_let_go = ctypes.PYFUNCTYPE(None, POINTER(PyBuffer))(("PyBuffer_Release", ctypes.pythonapi))


def address_in(view: memoryview) -> int:
    """Where the first element of a memoryview is. It stays there as long as the memoryview does."""
    found = PyBuffer()
    _get(view, byref(found), _FULL_READ_ONLY)
    address = found.buf or 0
    _let_go(byref(found))
    return address


class Memory:
    """Memory that goes to the library as one buffer: with a Python object as its owner, or an owner in C.

    What is not handed over is let go with this object.
    """

    __slots__ = ("entry", "_reference", "_mine")

    def __init__(self, entry: Any, reference: Any = None) -> None:
        self.entry = entry
        self._reference = reference
        self._mine = reference is None and bool(entry.owner)

    @classmethod
    def of(cls, data: int, size: int, owner: object) -> "Memory":
        """Memory that a Python object keeps alive."""
        return cls(*owned(data, size, owner))

    @classmethod
    def of_view(cls, view: memoryview) -> "Memory":
        """The memory of a contiguous memoryview, which keeps its exporter alive and as it is."""
        return cls.of(address_in(view) if view.nbytes else 0, view.nbytes, view)

    @classmethod
    def copied(cls, data: Any) -> "Memory":
        """A copy of bytes in memory of the library."""
        size = len(data)
        buffer, place = c_void_p(), c_void_p()
        call(lib.bowstring_buffer_allocate, struct_of(HOST), size, None, byref(buffer), byref(place))
        if size:
            ctypes.memmove(place, bytes(data), size)
        return cls.of_buffer(buffer.value or 0)

    @classmethod
    def of_buffer(cls, handle: int) -> "Memory":
        """The memory of a buffer's handle, which is taken."""
        taken, entry = c_void_p(handle), _c.OwnedBuffer()
        call(lib.bowstring_buffer_into_owned, byref(taken), byref(entry))
        return cls(entry)

    @classmethod
    def of_tensor(cls, data: int, size: int, tensor: int) -> "Memory":
        """Memory of a versioned tensor, which is taken, and let go by its own deleter."""
        return cls(_c.OwnedBuffer(data or None, size, tensor, _release_tensor))

    @classmethod
    def none(cls) -> "Memory":
        """No memory, such as the validity of an array without nulls."""
        return cls(_c.OwnedBuffer())

    def hand_over(self) -> None:
        """The library has taken the owner."""
        self._mine = False
        if self._reference is not None:
            self._reference.hand_over()
            self._reference = None

    def __del__(self) -> None:
        if self._mine:
            self._mine = False
            self.entry.release_owner(self.entry.owner)


_release_tensor = ctypes.cast(address_of(lib.bowstring_tensor_release), _c.RELEASE)

NodeNumbers = Sequence[int]  # length, null count, offset, number of buffers


def build(
    kind: int,
    nodes: Sequence[NodeNumbers],
    memory: Sequence[Memory],
    device: Device = HOST,
    record_on: Optional[Any] = None,
) -> int:
    """The handle of an array of the type `kind`, put together of memory. On failure nothing was taken."""
    numbers = (_c.Node * len(nodes))(*(_c.Node(*node) for node in nodes))
    buffers = (_c.OwnedBuffer * len(memory))(*(one.entry for one in memory))
    placement = _c.Placement(device=struct_of(device))
    if record_on is not None:
        placement.record_on = record_on
    array = _c.ArrowDeviceArray()
    call(
        lib.bowstring_device_array_from_buffers, kind, numbers, len(nodes), buffers, len(memory), byref(placement),
        byref(array),
    )
    for one in memory:
        one.hand_over()
    try:
        return made(lib.bowstring_array_import_typed, byref(array), kind)
    finally:
        # Nothing is left in it after success.
        lib.bowstring_device_array_release(byref(array))


def taken_apart(handle: int) -> tuple[list[NodeNumbers], list[Memory]]:
    """An array's nodes and buffers, each of which with an owner of its own."""
    n_nodes, n_buffers = c_size_t(), c_size_t()
    call(lib.bowstring_array_count, handle, byref(n_nodes), byref(n_buffers))
    nodes, buffers = (_c.Node * n_nodes.value)(), (_c.OwnedBuffer * n_buffers.value)()
    call(lib.bowstring_array_to_buffers, handle, nodes, n_nodes.value, buffers, n_buffers.value, None)
    numbers: list[NodeNumbers] = [(node.length, node.null_count, node.offset, node.n_buffers) for node in nodes]
    entries = (_c.OwnedBuffer(one.data, one.size_bytes, one.owner, one.release_owner) for one in buffers)
    return numbers, [Memory(entry) for entry in entries]


def new_type(
    form: str, name: str = "", flags: int = 2, children: Sequence[Type] = (), dictionary: Optional[Type] = None
) -> Type:
    """The type with a format string; by default nullable, without children."""
    handles = (c_void_p * len(children))(*(child._handle for child in children))
    values = None if dictionary is None else dictionary._handle
    return Type._of(
        made(
            lib.bowstring_type_new, form.encode(), name.encode(), flags, handles, len(children), values, None, 0
        )
    )


def packed(flags: Iterable[Any]) -> bytes:
    """Booleans as bits, the first one the lowest."""
    bits = "".join("1" if flag else "0" for flag in flags)
    return int(bits[::-1] or "0", 2).to_bytes((len(bits) + 7) // 8, "little")


def copied_array(handle: int, sync: Optional[Any]) -> int:
    """The handle of a copy on the same device, in memory of the library."""
    device = _c.Device()
    call(lib.bowstring_array_device, handle, byref(device), None)
    options = _c.TransferOptions()
    if sync is not None:
        options.sync = sync
    out = c_void_p()
    call(lib.bowstring_array_to_device, handle, device, byref(options), byref(out), None)
    return out.value or 0


def explain(error: BaseException) -> str:
    """An exception as part of a sentence."""
    if isinstance(error, BowstringError):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def same_values(a: int, b: int) -> bool:
    """Whether two types' handles differ in names, metadata and nullability at most."""
    return bool(lib.bowstring_type_equals(a, b, _c.IGNORE_NAMES | _c.IGNORE_METADATA | _c.IGNORE_NULLABLE))


_ALLOW_COPY, _TO_OFFSETS, _TO_VIEWS = 1, 4, 8
_SPEC = 0


def with_views_as(handle: int, kind: Any) -> int:
    """The handle of the array with views for offsets, or offsets for views, if that makes it what `kind` is; else 0."""
    if "view" not in str(kind) and "view" not in text_of(lib.bowstring_type_to_text, lib.bowstring_array_type(handle)):
        return 0
    wait = _c.Sync(_c.SYNC_HOST, 0, None)
    for which in (_TO_OFFSETS, _TO_VIEWS):
        try:
            other = made(lib.bowstring_array_conform, handle, _SPEC, byref(wait), _ALLOW_COPY | which)
        except BowstringError:
            # What cannot be made over is no answer; what the array is will be told.
            continue
        if same_values(lib.bowstring_array_type(other), kind._handle):
            return other
        lib.bowstring_array_release(other)
    return 0
