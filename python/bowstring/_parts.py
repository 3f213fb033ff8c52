"""Arrays taken apart into buffers and put together from them."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Iterable, NamedTuple, Optional, Sequence, Union, cast

from . import _c, _foreign
from ._buffer import Buffer
from ._device import CPU, Device, DeviceLike, device_of, queue_of, struct_of, sync_of
from ._library import DECREF, Reference, call, lib, made, release_reference
from ._type import Type, TypeLike, as_type

if TYPE_CHECKING:
    from ._array import Array

# Devices whose events are handles, which a struct points to; everywhere else it has the event's own address.
_EVENT_HANDLES = (2, 3, 13, 10, 11, 4, 7)
_VALIDITY, _VARIADIC, _VARIADIC_SIZES = 0, 6, 7


class Node(NamedTuple):
    """The numbers of one node, as the Arrow C Data interface has them."""

    length: int
    null_count: int = -1
    offset: int = 0
    n_buffers: int = -1


class Parts(NamedTuple):
    """An array taken apart: `from_buffers(*parts)` puts it together again.

    Attributes
    ----------
    type : Type
        The type, children and dictionaries included.
    nodes : list of Node
        The numbers of each node, depth first: a node, its children, then its dictionary.
    buffers : list of Buffer or None
        The buffers of each node, in the same order; None where there is none. Each lives on its own, and carries the
        array's event.
    device : Device
        Where the buffers are.
    """

    type: Type
    nodes: "list[Node]"
    buffers: "list[Optional[Buffer]]"
    device: Device


def event_of(buffer: Buffer) -> int:
    """The event that a buffer waits for, as the placement takes it; 0 when there is none."""
    address = buffer.sync_event
    if address and buffer.device.type in _EVENT_HANDLES:
        return c_void_p.from_address(address).value or 0
    return address


def layout_of(kind: Type) -> "list[tuple[int, int]]":
    """Node and role of each buffer that an array of the type has; all variadic buffers are one entry."""
    needed = c_size_t()
    call(lib.bowstring_type_layout, kind._handle, None, 0, byref(needed))
    entries = (_c.LayoutEntry * max(needed.value, 1))()
    call(lib.bowstring_type_layout, kind._handle, entries, needed.value, byref(needed))
    return [(entry.node, entry.role) for entry in entries[: needed.value]]


class ArrayParts:
    """An `Array` as plain buffers."""

    __slots__ = ()

    def to_buffers(self) -> Parts:
        """The array as a type, numbers and buffers, each with an owner of its own. Nothing is read or waited for.

        The numbers are those of the structs: a node's offset applies on top of its parent's, unlike in `Array.nodes`.

        Sizes that only a buffer tells, such as that of the bytes of strings, are -1 until `resolve_sizes`.

        Returns
        -------
        Parts
            Type, nodes, buffers and device, from which `from_buffers` makes the same array.
        """
        array = cast("Array", self)
        n_nodes, n_buffers = array._counts()
        nodes, memory = (_c.Node * n_nodes)(), (_c.OwnedBuffer * max(n_buffers, 1))()
        placement = _c.Placement()
        call(lib.bowstring_array_to_buffers, array._handle, nodes, n_nodes, memory, n_buffers, byref(placement))
        buffers: "list[Optional[Buffer]]" = []
        try:
            for entry in memory[:n_buffers]:
                if not entry.data and entry.size_bytes <= 0:
                    buffers.append(None)
                    continue
                # The event lives as long as the entry's owner, so that nobody destroys it here.
                around = _c.Placement(device=placement.device, event=placement.event)
                buffers.append(Buffer._of(made(lib.bowstring_buffer_wrap, byref(entry), byref(around))))
        finally:
            _drop(memory[len(buffers) : n_buffers])
        device = Device(placement.device.type, placement.device.id)
        return Parts(
            array.type, [Node(n.length, n.null_count, n.offset, n.n_buffers) for n in nodes], buffers, device
        )


    def resolve_sizes(self, *, stream: Any = "host") -> "Array":
        """The same array with every buffer's size known: ends of offsets and sizes of variadic buffers are read, once.

        Parameters
        ----------
        stream : None, "host" or a queue, default "host"
            How to wait for unfinished device work.

        Raises
        ------
        InvalidData
            For offsets or sizes that cannot be.
        """
        array = cast("Array", self)
        sync = sync_of(stream)
        sized = made(lib.bowstring_array_resolve_sizes, array._handle, None if sync is None else byref(sync))
        return type(array)._of(sized, array.source)


def _drop(memory: "Iterable[Any]") -> None:
    """Lets go what nobody took."""
    for entry in memory:
        if entry.release_owner:
            entry.release_owner(entry.owner)


def _node(node: Any) -> Node:
    """What a caller says of a node."""
    return Node(int(node)) if hasattr(node, "__index__") else Node(*node)


def _sizes(kind: Type, root: int) -> "list[Node]":
    """The lengths that follow from the root's: in structs, sparse unions and fixed-size lists."""
    found: "list[Node]" = []

    def walk(node: Type, length: Optional[int], path: str) -> None:
        if length is None:
            raise ValueError(
                f"expected the length of every node, found only the root's, from which that of {path} does not follow"
            )
        found.append(Node(length))
        form = node.format
        below: Optional[int] = None
        if form == "+s" or form.startswith("+us:"):
            below = length
        elif form.startswith("+w:"):
            below = length * int(form[3:])
        for child in node.children:
            walk(child, below, f"{path}.{child.name}")
        if node.dictionary is not None:
            walk(node.dictionary, None, f"{path}<dictionary>")

    walk(kind, root, "$")
    return found


def _numbers(
    kind: Type, nodes: "Union[int, Sequence[Any]]", buffers: "Sequence[Optional[Buffer]]"
) -> "list[tuple[int, int, int, int]]":
    """Length, null count, offset and number of buffers of each node."""
    layout = layout_of(kind)
    given = _sizes(kind, int(nodes)) if hasattr(nodes, "__index__") else [_node(node) for node in nodes]
    count = kind._info().subtree_end
    if len(given) != count:
        raise ValueError(f"expected the numbers of {count} nodes, found {len(given)}")
    entries = [[role for node, role in layout if node == index] for index in range(count)]
    counts = [node.n_buffers for node in given]
    views = [index for index in range(count) if _VARIADIC in entries[index] and counts[index] < 0]
    if len(views) > 1:
        raise ValueError(f"expected n_buffers of the nodes {views}, whose numbers of variadic buffers nothing tells")
    for index in range(count):
        if counts[index] < 0 and index not in views:
            counts[index] = len(entries[index])
    if views:
        counts[views[0]] = len(buffers) - sum(n for index, n in enumerate(counts) if index != views[0])
    if sum(counts) != len(buffers):
        raise ValueError(f"expected {sum(counts)} buffers, found {len(buffers)}")
    found, at = [], 0
    for index, node in enumerate(given):
        nulls = node.null_count
        if nulls < 0 and entries[index][:1] == [_VALIDITY] and buffers[at] is None:
            nulls = 0
        found.append((node.length, nulls, node.offset, counts[index]))
        at += counts[index]
    return found


def _device(wanted: Optional[DeviceLike], buffers: "Sequence[Optional[Buffer]]") -> Device:
    """The one device of all memory that is there."""
    device = None if wanted is None else device_of(wanted)
    for index, buffer in enumerate(buffers):
        # What has no bytes is nowhere.
        if buffer is None or not buffer.ptr:
            continue
        if device is None:
            device = buffer.device
        elif buffer.device != device:
            raise ValueError(f"expected all buffers on {device}, found buffer {index} on {buffer.device}")
    return Device(CPU, -1) if device is None else device


def _events(buffers: "Sequence[Optional[Buffer]]") -> int:
    """The event that all buffers with one share."""
    events = {event for event in (event_of(buffer) for buffer in buffers if buffer is not None) if event}
    if len(events) > 1:
        raise ValueError(
            f"expected one event for all buffers, found {len(events)}: wait for them on a queue, and give it as stream="
        )
    return events.pop() if events else 0


def from_buffers(
    type: TypeLike,
    nodes: "Union[int, Sequence[Any]]",
    buffers: "Sequence[Any]",
    device: Optional[DeviceLike] = None,
    *,
    owner: Optional[object] = None,
    event: Optional[Any] = None,
    stream: Optional[Any] = None,
) -> "Array":
    """An array of memory that is there already: nothing is copied, and on a device nothing is read.

    ``from_buffers(*array.to_buffers())`` is the array again. A call that fails takes nothing.

    Parameters
    ----------
    type : Type, str or object with ``__arrow_c_schema__``
        The type of the array.
    nodes : int or sequence
        The length, where those of all children follow from it: in structs, sparse unions and fixed-size lists. Else one
        entry for each node of the type, depth first (a node, its children, then its dictionary): a length, or a `Node`
        or tuple with length, number of nulls (-1: not known), offset, and number of buffers, which only arrays with
        more than one node of views need.
    buffers : sequence of Buffer, None or memory
        The buffers of all nodes, in the same order, each node's as Arrow lists them: validity first, where the type has
        one. None is a buffer that is not there: no validity, no values, or sizes of variadic buffers that are to be
        built. Memory is a `Buffer`, what has the buffer protocol (``bytes``, ``memoryview``, a numpy array) or
        ``__cuda_array_interface__``. Each is kept alive by the array, and by what is taken out of it, as long as its
        own bytes are in use and no longer.
    device : Device, str or (int, int), optional
        Where the memory is; by default where the buffers are.
    owner : object, optional
        Kept alive by the whole array.
    event : int or object, optional
        An event of the device's driver, on which consumers wait before they read: its handle where the driver's events
        are handles, or an object with ``ptr``, ``cuda_event`` or ``handle``, which is kept alive. By default the one
        that the buffers carry.
    stream : queue, optional
        Instead of `event`: the queue behind whose work the memory is ready; an event is recorded on it.

    Raises
    ------
    InvalidData
        For numbers that break a rule, or buffers that are too small.
    ValueError
        For wrong numbers of nodes or buffers, or buffers on several devices.
    """
    kind = as_type(type)
    if event is not None and stream is not None:
        raise ValueError("expected an event or a stream, found both")
    taken = [(None, None) if value is None else _foreign.buffer_of(value, device) for value in buffers]
    memory = [buffer for buffer, _ in taken]
    queues = {queue for _, queue in taken if queue is not None}
    where = _device(device, memory)
    placement = _c.Placement(device=struct_of(where))
    keep: "list[Reference]" = []
    if owner is not None:
        keep.append(Reference(owner))
        placement.owner, placement.release_owner = keep[-1].address, release_reference
    if event is not None:
        placement.event = _handle(event)
        if not isinstance(event, int):
            # Py_DecRef takes the first argument and does not see the second.
            keep.append(Reference(event))
            placement.event_ctx, placement.destroy_event = keep[-1].address, ctypes.cast(DECREF, _c.DESTROY_EVENT)
    elif stream is not None:
        placement.record_on = _c.Sync(_c.SYNC_QUEUE, 0, queue_of(stream) or None)
    elif not queues:
        placement.event = _events(memory) or None
    elif len(queues) > 1 or _events(memory):
        raise ValueError(
            "expected one queue that the memory's work is on, found several: give one behind all of them as stream="
        )
    else:
        placement.record_on = _c.Sync(_c.SYNC_QUEUE, 0, queues.pop())
    numbers = _numbers(kind, nodes, memory)
    return _built(kind, numbers, memory, placement, keep)


def _handle(event: Any) -> int:
    """An event's handle."""
    for attribute in ("ptr", "cuda_event", "handle"):
        found = getattr(event, attribute, None)
        if found is not None:
            return int(getattr(found, "value", found) or 0)
    return int(event)


def _built(
    kind: Type, numbers: "Sequence[tuple[int, int, int, int]]", memory: "Sequence[Optional[Buffer]]", placement: Any,
    keep: "Sequence[Reference]",
) -> "Array":
    """The array of parts that were looked at; on failure everything is as it was."""
    from ._array import Array

    nodes = (_c.Node * len(numbers))(*(_c.Node(*node) for node in numbers))
    owned = (_c.OwnedBuffer * max(len(memory), 1))()
    try:
        for entry, buffer in zip(owned, memory):
            if buffer is not None:
                handle = c_void_p(lib.bowstring_buffer_retain(buffer._handle))
                call(lib.bowstring_buffer_into_owned, byref(handle), byref(entry))
        struct = _c.ArrowDeviceArray()
        call(
            lib.bowstring_device_array_from_buffers, kind._handle, nodes, len(numbers), owned, len(memory),
            byref(placement), byref(struct),
        )
    except BaseException:
        _drop(owned)
        raise
    for reference in keep:
        reference.hand_over()
    try:
        return Array._of(made(lib.bowstring_array_import_typed, byref(struct), kind._handle), "buffers")
    except BaseException:
        lib.bowstring_device_array_release(byref(struct))
        raise
