"""`bowstring.array` and `bowstring.buffer`: data from whatever protocol its producer speaks."""

from __future__ import annotations

from ctypes import byref, c_void_p
from typing import Any, Callable, Iterable, Optional

from . import _c, _capsules, _dlpack, _interfaces, _pyarrow, _python
from ._array import Array
from ._buffer import Buffer
from ._capsules import DEVICE_STREAM, STREAM
from ._device import Device, struct_of, sync_of
from ._errors import BowstringError, DeviceUnavailable, Unsupported
from ._library import call, lib, made
from ._memory import HOST, CopyNeeded, Memory, build, copied_array, explain, same_values, with_views_as
from ._stream import Stream
from ._type import Type, TypeLike, as_type

Kind = Optional[Type]


class Refused(Unsupported, TypeError):
    """No protocol of the object gave what was asked for; the message says of each why not."""


class Wanted:
    """What a caller of `array` wants."""

    __slots__ = ("kind", "copy", "stream")

    def __init__(self, kind: Kind, copy: Optional[bool], stream: Any) -> None:
        self.kind, self.copy, self.stream = kind, copy, stream

    @property
    def handle(self) -> Optional[int]:
        """The handle of the type, None for any."""
        return None if self.kind is None else self.kind._handle


def _asked(produce: Callable[..., Any], kind: Kind) -> Any:
    """What a producer gives when it is asked for a type; one that has no way to it is asked for what it has."""
    if kind is not None:
        try:
            return produce(kind.__arrow_c_schema__())
        except MemoryError:
            raise
        # Names alone make some producers refuse. If it was more than that, what they have is not what is wanted either.
        except Exception:
            pass
    return produce()


def _pair(found: Any) -> Any:
    """The two capsules that a producer of arrays gives; the library looks at their names."""
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeError(f"expected a pair of capsules, found {type(found).__name__}")
    return found


def _check_capsule(capsule: Any, names: "tuple[bytes, ...]") -> None:
    if not _capsules.is_capsule(capsule):
        raise TypeError(f"expected a capsule, found {type(capsule).__name__}")
    if _capsules.name_of(capsule) not in names:
        expected = " or ".join(repr(name.decode()) for name in names)
        raise ValueError(f"expected a capsule named {expected}, found {_capsules.name_of(capsule).decode()!r}")


def _device_array(obj: Any, wanted: Wanted) -> int:
    return _capsules.array_from(*_pair(_asked(obj.__arrow_c_device_array__, wanted.kind)))


def _host_array(obj: Any, wanted: Wanted) -> int:
    return _capsules.array_from(*_pair(_asked(obj.__arrow_c_array__, wanted.kind)))


def _one_of(stream: int, wanted: Wanted) -> int:
    """The handle of a stream's only array, or of a copy of several. The stream is taken."""
    handle = c_void_p(stream)
    try:
        if wanted.copy is not False:
            sync = sync_of("host" if wanted.stream is None else wanted.stream)
            return made(lib.bowstring_stream_collect, byref(handle), None if sync is None else byref(sync))
        first = made(lib.bowstring_stream_next, handle)
        if not first:
            # No rows are no copy.
            return made(lib.bowstring_stream_collect, byref(handle), None)
        try:
            second = made(lib.bowstring_stream_next, handle)
        except BaseException:
            lib.bowstring_array_release(first)
            raise
        if second:
            lib.bowstring_array_release(first)
            lib.bowstring_array_release(second)
            raise CopyNeeded(
                "expected one array, found several, which only a copy makes one; "
                "bowstring.stream() gives them one by one"
            )
        return first
    finally:
        lib.bowstring_stream_release(handle)


def _device_stream(obj: Any, wanted: Wanted) -> int:
    capsule = _asked(obj.__arrow_c_device_stream__, wanted.kind)
    _check_capsule(capsule, (DEVICE_STREAM,))
    return _one_of(_capsules.stream_from(capsule), wanted)


def _host_stream(obj: Any, wanted: Wanted) -> int:
    capsule = _asked(obj.__arrow_c_stream__, wanted.kind)
    _check_capsule(capsule, (STREAM,))
    return _one_of(_capsules.stream_from(capsule), wanted)


def _dlpack_tensor(obj: Any, wanted: Wanted) -> int:
    _refuse_masked(obj)
    return _dlpack.take(obj, wanted.handle, wanted.copy, wanted.stream)


def _cuda_interface(obj: Any, wanted: Wanted) -> int:
    return _interfaces.from_cuda_interface(obj, wanted.kind, wanted.copy, wanted.stream)


def _array_interface(obj: Any, wanted: Wanted) -> int:
    _refuse_masked(obj)
    return _interfaces.from_array_interface(obj, wanted.kind, wanted.copy)


def _python_buffer(obj: Any, wanted: Wanted) -> int:
    _refuse_masked(obj)
    return _interfaces.from_buffer(obj, wanted.kind, wanted.copy)


def _refuse_masked(obj: Any) -> None:
    """NumPy's masked arrays leave out what is masked, and say so to nobody."""
    if type(obj).__module__.startswith("numpy.ma") and getattr(obj, "mask", False) is not False:
        if obj.mask.any():
            raise Unsupported("expected values that are all there, found a masked array, whose mask nobody is told of")


def _arrow_array(obj: Any, wanted: Wanted) -> int:
    result = obj.__arrow_array__()
    if result is obj or not any(hasattr(result, name) for name in _ARROW):
        raise TypeError(f"expected an array of Arrow, found {type(result).__name__}")
    return _taken(_first_of(result, wanted, _ARROW))


def _data_frame(obj: Any, wanted: Wanted) -> int:
    from . import _dataframe

    return _dataframe.take(obj, wanted.copy)


def _python_values(obj: Any, wanted: Wanted) -> int:
    if wanted.copy is False:
        raise CopyNeeded(f"expected memory, found a {type(obj).__name__} of Python's values, which only a copy makes")
    from . import _from_python

    return _from_python.build_values(obj, wanted.kind)


_CAPSULES = {
    "__arrow_c_device_array__": _device_array,
    "__arrow_c_device_stream__": _device_stream,
    "__arrow_c_array__": _host_array,
    "__arrow_c_stream__": _host_stream,
}
_ARROW = tuple(_CAPSULES)
_PROTOCOLS: "dict[str, Callable[[Any, Wanted], int]]" = {
    **_CAPSULES,
    "__dlpack__": _dlpack_tensor,
    "__cuda_array_interface__": _cuda_interface,
    "__array_interface__": _array_interface,
    "buffer": _python_buffer,
    "__arrow_array__": _arrow_array,
    "__dataframe__": _data_frame,
    "values": _python_values,
}
PROTOCOLS = tuple(_PROTOCOLS)
_ANYTHING = Wanted(None, None, None)
_import, _lanes = _python.array_import, _pyarrow.lanes


def _speaks(obj: Any, name: str) -> bool:
    """Whether an object has a protocol, as far as can be told without using it."""
    if name == "buffer":
        try:
            memoryview(obj).release()
        except (TypeError, BufferError, ValueError):
            return False
        return True
    if name == "values":
        return isinstance(obj, (list, tuple))
    # Of the class as well: it may not be the one that asks, but has no object to answer for.
    return not isinstance(obj, type) and hasattr(obj, name)


def _taken(array: Array) -> int:
    """An array's handle, which is the caller's now."""
    handle, array._handle = array._handle, 0
    return handle


def _fitting(handle: int, wanted: Wanted) -> int:
    """The array, which is taken, if it has the type that was wanted, or one that leads there."""
    kind = wanted.kind
    if kind is None or same_values(lib.bowstring_array_type(handle), kind._handle):
        return handle
    array = Array._of(handle, "")
    made_over = 0 if wanted.copy is False else with_views_as(handle, kind)
    if not made_over:
        raise Unsupported(f"expected {str(kind)!r}, found {str(array.type)!r}, which its producer has not cast")
    return made_over


def _copied(handle: int, stream: Any) -> int:
    """A copy of the array, which is taken, on its device."""
    array = Array._of(handle, "")
    return copied_array(handle, None if array.device.is_cpu else sync_of("host" if stream is None else stream))


def _first_of(
    obj: Any, wanted: Wanted, names: Iterable[str], refused: "Iterable[tuple[str, Exception]]" = ()
) -> Array:
    """What the first protocol gives that does not refuse; `refused` did so before."""
    refusals = list(refused)
    for name in names:
        try:
            if not _speaks(obj, name):
                continue
            handle = _fitting(_PROTOCOLS[name](obj, wanted), wanted)
            if wanted.copy and name != "values":
                handle = _copied(handle, wanted.stream)
            return Array._of(handle, name)
        except MemoryError:
            raise
        except Exception as error:
            refusals.append((name, error))
    raise given_up(obj, refusals, names, wanted.copy is False)


def given_up(
    obj: Any, refusals: "list[tuple[str, Exception]]", names: Iterable[str], in_place: bool = False
) -> BowstringError:
    """Why an object gave nothing, as one error."""
    kind = type(obj).__name__
    if not refusals:
        return Refused(f"expected an object with {' or '.join(names)}, found {kind}")
    first = refusals[0][1]
    if len(refusals) == 1 and isinstance(first, BowstringError):
        # Where it is comes with the error.
        message = f"{refusals[0][0]}: {first.message}"
    else:
        reasons = "; ".join(f"{name}: {explain(error)}" for name, error in refusals)
        message = f"expected data, found that {kind} refused: {reasons}"
    result: BowstringError
    if any(isinstance(error, CopyNeeded) or (in_place and isinstance(error, BufferError)) for _, error in refusals):
        result = CopyNeeded(message)
    elif len(refusals) == 1 and isinstance(first, BowstringError):
        result = type(first)(message, rule=first.rule, path=first.path, row=first.row, batch=first.batch)
    else:
        result = Refused(message)
    result.__cause__ = first
    return result


def _names_of(via: Optional[str]) -> "tuple[str, ...]":
    if via is None:
        return PROTOCOLS
    if via not in _PROTOCOLS:
        raise ValueError(f"expected one of {', '.join(PROTOCOLS)}, found {via!r}")
    return (via,)


def _queue_only(stream: Any) -> None:
    if isinstance(stream, str):
        raise ValueError(f"expected None or a queue of the device, found {stream!r}")


def array(
    obj: Any,
    schema: Optional[TypeLike] = None,
    *,
    copy: Optional[bool] = None,
    via: Optional[str] = None,
    stream: Any = None,
) -> Array:
    """The columnar data of any object, without a copy wherever the memory allows it.

    Protocols are tried in the order of `bowstring.PROTOCOLS`, and what refuses makes way for the next: Arrow's device
    array, device stream, array and stream, DLPack, the array interfaces of CUDA and NumPy, Python's buffer protocol,
    ``__arrow_array__``, the dataframe protocol, and lists or tuples of Python's values, from which an array is built.

    Parameters
    ----------
    obj : object
        Where the data comes from. It, or what it gave, is kept alive until nobody uses the memory. An `Array` is taken
        as it is, a `Stream` or another reader of batches is used up, also where that fails.
    schema : Type, str or object with ``__arrow_c_schema__``, optional
        The type to get. Producers are asked for it where their protocol can ask. The result has its formats, or there
        is none; names, metadata and nullability are best effort: they are the producer's. Views become offsets, and
        offsets views, by a copy.
    copy : bool, optional
        None: only where nothing else is possible, such as several chunks, bits of booleans, other strides. False:
        never; then an error says what would need one. True: always, in memory of the library.
    via : str, optional
        The one protocol of `bowstring.PROTOCOLS` to use.
    stream : None or a queue, optional
        For memory of a device: the queue of its driver that is to use the data, by address or as an object with
        ``ptr``, ``cuda_stream`` or ``__cuda_stream__``. A producer of tensors is given it, and an event is recorded on
        it, so that everybody else can wait for the data as well; what a CUDA array interface names as the producer's
        own stream, it waits for. None is the driver's default queue; on a device that the library has no driver for it
        then is the producer that synchronises, as its protocol has it. -1 gives the data as it is, and nobody waits.

    Returns
    -------
    Array
        ``array.source`` is the protocol that gave it.

    Raises
    ------
    TypeError
        The object speaks none of the protocols, or all refused; the message says of each why.
    BufferError
        It would take a copy, and `copy` is False.
    """
    if schema is None and copy is None and via is None and stream is None:
        # What most callers want of most producers, without a detour.
        lane = _lanes.get(type(obj))
        if lane is not None:
            found: Optional[Array] = lane(obj)
            if found is not None:
                return found
        return _plain(obj)
    _queue_only(stream)
    wanted = Wanted(None if schema is None else as_type(schema), copy, stream)
    return _general(obj, wanted, via)


def _plain(obj: Any) -> Array:
    """The array of a producer that is asked for nothing in particular."""
    kind = type(obj)
    if kind.__module__ == "pyarrow.lib" and _pyarrow.is_record_batch(kind):
        return _pyarrow.record_batch(obj)
    # Asked of the class: what its object has to say of it, or raises, is for the longer way.
    if kind is Array or kind is Stream or not hasattr(kind, "__arrow_c_device_array__"):
        return _general(obj, _ANYTHING, None)
    try:
        found = obj.__arrow_c_device_array__()
        schema, array = found if type(found) is tuple and len(found) == 2 else _pair(found)
        # Without a record first: a failure takes nothing, and says why when it is asked again.
        handle = _import(schema, array, 0, 0) or _capsules.array_from(schema, array)
        return Array._of(handle, "__arrow_c_device_array__")
    except MemoryError:
        raise
    except Exception as error:
        return _first_of(obj, _ANYTHING, PROTOCOLS[1:], [("__arrow_c_device_array__", error)])


def _general(obj: Any, wanted: Wanted, via: Optional[str]) -> Array:
    copy, stream = wanted.copy, wanted.stream
    if via is None:
        if isinstance(obj, Array):
            handle = _fitting(lib.bowstring_array_retain(obj._handle), wanted)
            return Array._of(_copied(handle, stream) if copy else handle, obj.source)
        if isinstance(obj, Stream):
            with obj._taken() as taken:
                one, taken.value = taken.value or 0, None
            handle = _fitting(_one_of(one, wanted), wanted)
            return Array._of(_copied(handle, stream) if copy else handle, obj.source)
    return _first_of(obj, wanted, _names_of(via))


def _cuda_memory(obj: Any, stream: Any) -> Buffer:
    what, queue, mask = _interfaces.described_cuda(obj)
    if mask is not None:
        raise Unsupported("expected memory alone, found a mask as well")
    memory = _interfaces.whole_memory(what)
    ours = None if stream is None else _dlpack.queue_for(what.device, stream)
    if queue is None or ours is None:
        return Buffer._of(_wrapped(memory, what.device, queue, queue is not None), obj)
    # Queues wait for arrays: bytes in one.
    sync = _c.Sync(_c.SYNC_QUEUE, 0, queue)
    size = memory.entry.size_bytes
    kind = Type("uint8")
    bytes_ = Array._of(build(kind._handle, [(size, 0, 0, 2)], [Memory.none(), memory], what.device, sync), "")
    bytes_.synchronize(ours)
    return Buffer._of(made(lib.bowstring_array_buffer, bytes_._handle, 1), obj)


def _wrapped(memory: Memory, device: Device, queue: Optional[int], must: bool) -> int:
    """A buffer's handle, with an event on a queue where one is given."""
    placement = _c.Placement(device=struct_of(device))
    if queue is not None:
        placement.record_on = _c.Sync(_c.SYNC_QUEUE, 0, queue or None)
    try:
        handle = made(lib.bowstring_buffer_wrap, byref(memory.entry), byref(placement))
    except (DeviceUnavailable, Unsupported):
        if must or queue is None:
            raise
        placement.record_on = _c.Sync()
        handle = made(lib.bowstring_buffer_wrap, byref(memory.entry), byref(placement))
    memory.hand_over()
    return handle


def _tensor_memory(obj: Any, stream: Any) -> Buffer:
    _dlpack.resolved(obj, False)
    device = _dlpack.device_of_producer(obj)
    taken = _dlpack.Taken(_dlpack.ask(obj, device, stream, None))
    _, _, memory = taken.memory()
    return Buffer._of(_wrapped(memory, device, _dlpack.queue_for(device, stream), stream is not None), obj)


def _host_memory(obj: Any, stream: Any) -> Buffer:
    view = memoryview(obj)
    if not view.c_contiguous:
        raise CopyNeeded("expected one block of memory, found one with strides")
    memory = Memory.of_view(view)
    return Buffer._of(_wrapped(memory, HOST, None, False), obj)


def _interface_memory(obj: Any, stream: Any) -> Buffer:
    memory = _interfaces.whole_memory(_interfaces.described_host(obj))
    return Buffer._of(_wrapped(memory, HOST, None, False), obj)


def _frame_memory(obj: Any, stream: Any) -> Buffer:
    address, size = int(obj.ptr), int(obj.bufsize)
    device = _dlpack.device_of_producer(obj)
    memory = Memory.of(address if size else 0, size, obj)
    return Buffer._of(_wrapped(memory, device, None, False), obj)


def _arrow_memory(obj: Any, stream: Any) -> Buffer:
    """A ``pyarrow.Buffer`` in memory of a device."""
    device = obj.device
    kind = int(device.device_type if hasattr(device, "device_type") else obj.device_type)
    memory = Memory.of(int(obj.address), int(obj.size), obj)
    return Buffer._of(_wrapped(memory, Device(kind, int(device.device_id)), None, False), obj)


def _is_arrow_buffer(obj: Any) -> bool:
    return type(obj).__module__.startswith("pyarrow") and hasattr(obj, "address") and hasattr(obj, "is_cpu")


def buffer(obj: Any, *, stream: Any = None) -> Buffer:
    """The memory of an object as one block, in place.

    Tried in order: a `Buffer` itself, a ``pyarrow.Buffer``, DLPack, the array interfaces of CUDA and NumPy, Python's
    buffer protocol, and ``ptr`` and ``bufsize`` as the dataframe protocol has them. Elements have to lie one behind
    the other.

    Parameters
    ----------
    obj : object
        Whose memory it is. The buffer keeps it, or its tensor, alive until nobody uses the memory.
    stream : None or a queue, optional
        As in `bowstring.array`.

    Raises
    ------
    TypeError
        The object has none of the protocols, or all refused; the message says of each why.
    BufferError
        The elements do not lie one behind the other.
    """
    _queue_only(stream)
    if isinstance(obj, Buffer):
        return obj
    if _is_arrow_buffer(obj):
        return _host_memory(obj, stream) if obj.is_cpu else _arrow_memory(obj, stream)
    refusals: list[tuple[str, Exception]] = []
    for name, take in _MEMORY.items():
        try:
            if _speaks(obj, name):
                return take(obj, stream)
        except MemoryError:
            raise
        except Exception as error:
            refusals.append((name, error))
    raise given_up(obj, refusals, _MEMORY)


_MEMORY: "dict[str, Callable[[Any, Any], Buffer]]" = {
    "__dlpack__": _tensor_memory,
    "__cuda_array_interface__": _cuda_memory,
    "__array_interface__": _interface_memory,
    "buffer": _host_memory,
    "bufsize": _frame_memory,
}
