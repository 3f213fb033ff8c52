"""`Array`: a window on columnar data, wherever it is."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_bool, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Iterator, NamedTuple, Optional, Union

from . import _c, _python
from ._buffer import ROLES, Buffer
from ._check import ArrayChecks
from ._device import Device, DeviceLike, device_of, struct_of, sync_of
from ._host_buffer import Exporter
from ._library import call, lib, made
from ._looks import ArrayLooks
from ._parts import ArrayParts
from ._pickle import ArrayPickling
from ._produce import ArrayProtocols
from ._type import Type
from ._values import ArrayValues


@dataclass(frozen=True)
class BufferView:
    """One buffer of an array, and what the array shows of it."""

    node: int
    role: str
    element: tuple[int, int, int]  # DLPack's code, bits and lanes
    ptr: int
    n_elements: int
    first: int
    count: int
    bufsize: int
    bit_offset: int
    device: Device


class NodeView(NamedTuple):
    """One node of an array's tree, as the window shows it. Nodes are numbered depth first; -1 is none."""

    parent: int
    first_child: int
    n_children: int
    dictionary: int
    subtree_end: int
    format: str
    name: str
    flags: int
    length: int
    offset: int
    null_count: int
    first_buffer: int
    n_buffers: int


def _number(index: int) -> int:
    return -1 if index == _c.NOTHING else index


class Array(
    ArrayProtocols, ArrayValues, ArrayChecks, ArrayParts, ArrayLooks, ArrayPickling, _python.ArrayHandle,
    Exporter,  # type: ignore[misc]
):
    """Columnar data of any Arrow type on any device: a window on shared memory and its owners.

    Immutable, and safe to share between threads. Made by `bowstring.array`, `bowstring.from_buffers`, or by looking into another
    array. A struct array is what other libraries call a record batch.
    """

    __slots__ = ("_came_by", "__weakref__")

    # Not set for what came by the protocol that most arrays come by.
    _came_by: str

    def __init__(self) -> None:
        raise TypeError("an Array is made by bowstring.array() or bowstring.from_buffers()")

    @classmethod
    def _of(cls, handle: int, source: str) -> "Array":
        """An array that takes the handle over."""
        self = cls.__new__(cls)
        self._handle = handle
        self._came_by = source
        return self

    # What it is.

    @property
    def source(self) -> str:
        """How the data came in, such as ``"__arrow_c_device_array__"``."""
        return getattr(self, "_came_by", "__arrow_c_device_array__")

    @property
    def type(self) -> Type:
        """The type of the values."""
        return Type._borrowed(lib.bowstring_array_type(self._handle))

    @property
    def fields(self) -> list[str]:
        """The names of the children."""
        return self.type.fields

    @property
    def device(self) -> Device:
        """Where the buffers are."""
        device = _c.Device()
        call(lib.bowstring_array_device, self._handle, byref(device), byref(c_void_p()))
        return Device(device.type, device.id)

    @property
    def sync_event(self) -> int:
        """Address of the event to wait on before the buffers are read, 0 when there is none."""
        event = c_void_p()
        call(lib.bowstring_array_device, self._handle, byref(_c.Device()), byref(event))
        return event.value or 0

    def node(self, index: int = 0) -> NodeView:
        """One node of the tree, 0 being the array itself."""
        info = _c.NodeInfo()
        call(lib.bowstring_array_node_info, self._handle, index, byref(info))
        return NodeView(
            _number(info.parent), _number(info.first_child), info.n_children, _number(info.dictionary),
            info.subtree_end, info.format.decode(), info.name.decode("utf-8", "replace"), info.flags, info.length,
            info.offset, info.null_count, info.first_buffer, info.n_buffers,
        )

    def _counts(self) -> tuple[int, int]:
        """Numbers of nodes and buffers."""
        nodes, buffers = c_size_t(), c_size_t()
        call(lib.bowstring_array_count, self._handle, byref(nodes), byref(buffers))
        return nodes.value, buffers.value

    @property
    def nodes(self) -> list[NodeView]:
        """All nodes, depth first: a node, its children, then its dictionary."""
        return [self.node(index) for index in range(self._counts()[0])]

    def buffer_view(self, index: int) -> BufferView:
        """What the array shows of one of its buffers."""
        info = _c.BufferInfo()
        call(lib.bowstring_array_buffer_info, self._handle, index, byref(info))
        element = info.element
        return BufferView(
            info.node, ROLES[info.role], (element.code, element.bits, element.lanes), info.data or 0, info.n_elements,
            info.first, info.count, info.size_bytes, info.bit_offset, Device(info.device.type, info.device.id),
        )

    def buffer(self, index: int) -> Buffer:
        """One buffer, which stays alive on its own, and keeps no more alive than it must."""
        return Buffer._of(made(lib.bowstring_array_buffer, self._handle, index))

    @property
    def buffers(self) -> list[Buffer]:
        """All buffers of all nodes, depth first, each with an owner of its own."""
        return [self.buffer(index) for index in range(self._counts()[1])]

    def __len__(self) -> int:
        return self.node().length

    @property
    def offset(self) -> int:
        """Physical index of the first value in the array's own buffers."""
        return self.node().offset

    @property
    def null_count(self) -> int:
        """The number of nulls; of device memory only what is known without reading it, else -1."""
        known = self.node().null_count
        if known >= 0 or not self.device.is_cpu:
            return known
        return self.count_nulls()

    def count_nulls(self, *, stream: Any = "host") -> int:
        """The number of nulls, counted where the data is; `stream` says how to wait for unfinished device work."""
        count = ctypes.c_int64()
        sync = sync_of(stream)
        call(lib.bowstring_array_null_count, self._handle, None if sync is None else byref(sync), byref(count))
        return count.value

    # Looking into it.

    def __getitem__(self, which: Union[str, int, slice]) -> "Array":
        """A child by its name, or a window by a slice with a step of 1."""
        if isinstance(which, slice):
            start, stop, step = which.indices(len(self))
            if step != 1:
                raise ValueError(f"expected a slice with a step of 1, which needs no copy, found {step}")
            return self.slice(start, max(stop - start, 0))
        if isinstance(which, str):
            return self.child(which)
        raise TypeError(f"expected a field's name or a slice, found {type(which).__name__}; values come by to_numpy()")

    def child(self, which: Union[str, int]) -> "Array":
        """A child by name or number, windowed with the array where the format has it so: in structs, not in lists."""
        return Array._of(made(lib.bowstring_array_child, self._handle, self.type._index(which)), self.source)

    @property
    def children(self) -> "list[Array]":
        """All children."""
        return [self.child(index) for index in range(len(self.type))]

    @property
    def dictionary(self) -> "Optional[Array]":
        """The dictionary's values, None when the array is not dictionary-encoded."""
        if self.node().dictionary < 0:
            return None
        return Array._of(made(lib.bowstring_array_dictionary, self._handle), self.source)

    def slice(self, offset: int, length: Optional[int] = None) -> "Array":
        """`length` values from `offset` on; nothing is copied or clamped."""
        count = len(self) - offset if length is None else length
        return Array._of(made(lib.bowstring_array_slice, self._handle, offset, count), self.source)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("an Array is not a sequence of values; they come by to_numpy() or another library")

    # Devices.

    def to_device(self, device: DeviceLike, *, stream: Any = "host", share: bool = True) -> "Array":
        """The array on another device: the same memory where it can be reached from there and `share` is true, else a copy.

        Parameters
        ----------
        device : Device, str or (int, int)
            Where to, such as ``"cpu"`` or ``"cuda:0"``.
        stream : None, "host", "library" or a queue, default "host"
            How to meet unfinished device work; with a queue, copies run on it.
        share : bool, default True
            Whether the result may be the same memory.
        """
        sync = sync_of(stream)
        options = _c.TransferOptions(flags=_c.MAY_SHARE if share else 0)
        if sync is not None:
            options.sync = sync
        handle = c_void_p()
        call(
            lib.bowstring_array_to_device, self._handle, struct_of(device_of(device)), byref(options), byref(handle),
            byref(c_bool()),
        )
        return Array._of(handle.value or 0, self.source)

    def synchronize(self, stream: Any = "host") -> "Array":
        """Waits for the array's event: ``"host"`` blocks until it is done, a queue waits for it. Returns the array."""
        sync = sync_of(stream)
        call(lib.bowstring_array_wait, self._handle, None if sync is None else byref(sync))
        return self


Array.__arrow_c_device_array__ = _python.array_give(Array)
