"""Buffers as other libraries read them: the part that an array shows, with the type of its elements."""

from __future__ import annotations

from ctypes import byref, c_int64
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from . import _c, _tensors
from ._buffer import Buffer
from ._device import CUDA, CUDA_MANAGED, CPU
from ._errors import InvalidArgument, Unsupported
from ._library import lib, made

if TYPE_CHECKING:
    from ._array import Array

_ELEMENTS = {"i1": (0, 8), "i4": (0, 32), "i8": (0, 64), "u1": (1, 8)}


class Validity(NamedTuple):
    """A validity bitmap: bit ``offset + k`` of the buffer, the lowest of each byte first, is 1 where row k is there."""

    buffer: Buffer
    offset: int


class BufferWindow:
    """Elements of one type in a buffer: `count` of them, from `first` on.

    numpy, CuPy, PyTorch and others take it by their protocols, without a copy; each keeps the buffer alive.

    Attributes
    ----------
    buffer : Buffer
        The whole buffer.
    dtype : str
        The elements, as numpy spells them, such as ``"i4"``.
    first, count : int
        The elements that the array shows; `count` is -1 where only device memory tells.
    """

    __slots__ = ("buffer", "dtype", "first", "count", "__weakref__")

    def __init__(self, buffer: Buffer, dtype: str, first: int, count: int) -> None:
        self.buffer, self.dtype, self.first, self.count = buffer, dtype, first, count

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype[1:])

    @property
    def ptr(self) -> int:
        """Address of the first element, on the buffer's device."""
        start = self.buffer.ptr
        return start + self.first * self.itemsize if start else 0

    def __len__(self) -> int:
        return max(self.count, 0)

    def __repr__(self) -> str:
        return f"<bowstring.BufferWindow {self.dtype} [{self.first}:{self.first + self.count}] of {self.ptr:#x} on {self.buffer.device}>"

    def _known(self) -> int:
        if self.count < 0:
            raise BufferError("expected a known number of elements, found one that only device memory tells: resolve_sizes()")
        return self.count

    def _interface(self) -> "dict[str, Any]":
        order = _tensors.ORDER if self.itemsize > 1 else "|"
        return {
            "shape": (self._known(),), "typestr": order + self.dtype, "data": (self.ptr, True), "version": 3, "strides": None,
        }

    @property
    def __array_interface__(self) -> "dict[str, Any]":
        if self.buffer.device.type != CPU:
            raise AttributeError("__array_interface__ is for memory that the CPU reads")
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> "dict[str, Any]":
        if self.buffer.device.type not in (CUDA, CUDA_MANAGED):
            raise AttributeError("__cuda_array_interface__ is for memory of CUDA")
        if self.buffer.sync_event:
            # The interface names queues, not events: the one that reads is the default one, which waits.
            lib_sync = _c.Sync(_c.SYNC_QUEUE, 0, 1)
            lib.bowstring_tensor_release(self._tensor(lib_sync))
            return {**self._interface(), "stream": 1}
        return {**self._interface(), "stream": None}

    def _tensor(self, sync: _c.Sync) -> int:
        code, bits = _ELEMENTS[self.dtype]
        count, size = self._known(), self.itemsize
        part = self.buffer.slice(self.first * size, count * size)
        options = _c.TensorOptions()
        options.sync = sync
        return made(
            lib.bowstring_buffer_to_tensor, part._handle, _c.DataType(code, bits, 1), 1, (c_int64 * 1)(count),
            byref(options),
        )

    def __dlpack_device__(self) -> "tuple[int, int]":
        device = self.buffer.device
        return device.type, max(device.id, 0)

    def __dlpack__(self, **options: Any) -> object:
        return _tensors.TensorSource(self._tensor, self.buffer.device).__dlpack__(**options)


class StringBuffers(NamedTuple):
    """Offsets and bytes of strings: row k is ``data[offsets[k]:offsets[k + 1]]``. Offsets need not start at 0.

    Attributes
    ----------
    offsets : BufferWindow
        One more than there are rows, of 32 or 64 bits.
    data : BufferWindow
        All bytes that offsets may lead to.
    """

    offsets: BufferWindow
    data: BufferWindow


def validity(array: "Array") -> Optional[Validity]:
    """See `ArrayValues.validity`."""
    node = array.node()
    for index in range(node.first_buffer, node.first_buffer + node.n_buffers):
        view = array.buffer_view(index)
        if view.role == "validity":
            return Validity(array.buffer(index), view.first) if view.ptr else None
    return None


def string_buffers(array: "Array", copy: Optional[bool]) -> StringBuffers:
    """See `ArrayValues.string_buffers`."""
    form = array.type.format
    if form not in ("u", "z", "U", "Z", "vu", "vz"):
        raise Unsupported(f"expected strings or bytes, found {array.type}")
    if form in ("vu", "vz"):
        if copy is False:
            raise InvalidArgument(f"expected no copy, found {array.type}, of which offsets have to be made: copy=None allows it")
        array, copy = array.conform(layout="offsets"), None
        form = array.type.format
    if copy:
        array = array.to_device(array.device, share=False)
    if array.device.is_cpu:
        array = array.resolve_sizes()
    node = array.node()
    wide = form in ("U", "Z")
    offsets, data = (array.buffer_view(node.first_buffer + index) for index in (1, 2))
    return StringBuffers(
        BufferWindow(array.buffer(node.first_buffer + 1), "i8" if wide else "i4", offsets.first, offsets.count if offsets.ptr else 0),
        BufferWindow(array.buffer(node.first_buffer + 2), "u1", 0, data.n_elements),
    )
