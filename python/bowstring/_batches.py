"""`bowstring.stream`: batches from whatever protocol their producer speaks."""

from __future__ import annotations

import ctypes
import errno
from ctypes import byref
from typing import Any, Iterator, Optional

from . import _c, _capsules
from ._array import Array
from ._capsules import DEVICE_STREAM, STREAM
from ._consume import PROTOCOLS, Wanted, _asked, _check_capsule, _first_of, _queue_only, _speaks, array, given_up
from ._device import CPU, Device, struct_of
from ._errors import Unsupported
from ._library import Reference, call, lib, made, release_reference
from ._memory import explain, same_values, with_views_as
from ._stream import Stream
from ._type import Type, TypeLike, as_type

_STREAMS = {"__arrow_c_device_stream__": DEVICE_STREAM, "__arrow_c_stream__": STREAM}
# What makes an object one batch.
_OTHERS = tuple(name for name in PROTOCOLS if name not in _STREAMS and name != "values")


class _Producer:
    """An iterator of batches as the library asks it; the library refers to it until the stream is gone."""

    def __init__(self, kind: Type, batches: Iterator[Any], stream: Any) -> None:
        self.kind, self.batches, self.stream = kind, batches, stream
        self.text: Optional[ctypes.Array[ctypes.c_char]] = None
        self.device: Optional[Device] = None

    def give(self) -> int:
        """The next batch's handle, which is the caller's; 0 at the end."""
        for batch in self.batches:
            found = _retyped(array(batch, self.kind, stream=self.stream), self.kind)
            handle, found._handle = found._handle, 0
            return handle
        return 0

    def failed(self, error: BaseException) -> int:
        """Keeps an error's text for whoever asks, and gives its number."""
        self.text = ctypes.create_string_buffer(explain(error).encode("utf-8", "replace"))
        if isinstance(error, MemoryError):
            return errno.ENOMEM
        return errno.ENOSYS if isinstance(error, NotImplementedError) else errno.EIO


def _at_least(wide: Type, narrow: Type) -> bool:
    """Whether nulls may be wherever they may be in another type, which is otherwise alike."""
    if narrow.nullable and not wide.nullable:
        return False
    inner, outer = narrow.dictionary, wide.dictionary
    if inner is not None and outer is not None and not _at_least(outer, inner):
        return False
    return all(map(_at_least, wide.children, narrow.children))


def _retyped(found: Array, kind: Type) -> Array:
    """The array under a type that differs in names, metadata, or in where nulls may be beside those that are there."""
    if found.type == kind:
        return found
    if not _at_least(kind, found.type):
        raise Unsupported(f"expected {str(kind)!r}, found {str(found.type)!r}, which may have nulls elsewhere")
    struct = _c.ArrowDeviceArray()
    call(lib.bowstring_array_export, found._handle, byref(struct), None)
    try:
        return Array._of(made(lib.bowstring_array_import_typed, byref(struct), kind._handle), found.source)
    finally:
        # Nothing is left in it after success.
        lib.bowstring_device_array_release(byref(struct))


def _producer(context: int) -> _Producer:
    found: _Producer = ctypes.cast(context, ctypes.py_object).value
    return found


def _next(context: int, out: Any) -> int:
    producer = _producer(context)
    try:
        out[0] = producer.give()
        return 0
    # Nothing may pass through C, also no interrupt: whoever asks the stream is told.
    except BaseException as error:
        return producer.failed(error)


def _last_error(context: int) -> Optional[int]:
    text = _producer(context).text
    return None if text is None else ctypes.addressof(text)


# Kept as long as the process: streams may be asked when this module is gone.
_NEXT, _LAST_ERROR = _c.GET_NEXT_ARRAY(_next), _c.GET_LAST_ERROR(_last_error)
for _callback in (_NEXT, _LAST_ERROR):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))


def _lazily(batches: Iterator[Any], kind: Optional[Type], stream: Any, source: str) -> Stream:
    """A stream that asks an iterator when it is asked itself; without a type, the first batch tells it now."""
    first: list[Array] = []
    if kind is None:
        for batch in batches:
            first.append(array(batch, stream=stream))
            break
        if not first:
            raise Unsupported("expected batches, or the type of none, found neither")
        kind = first[0].type

    def all_of_them() -> Iterator[Any]:
        # Taken out, so that nobody keeps it.
        while first:
            yield first.pop()
        # No delegation: that would close a generator which its owner may go on with.
        for batch in batches:
            yield batch

    device = first[0].device if first else Device(CPU, -1)
    producer = _Producer(kind, all_of_them(), stream)
    reference = Reference(producer)
    callbacks = _c.StreamCallbacks(
        device=struct_of(device), ctx=reference.address, get_next_array=_NEXT, get_last_error=_LAST_ERROR,
        release=release_reference,
    )
    handle = made(lib.bowstring_stream_from_callbacks, kind._handle, byref(callbacks))
    reference.hand_over()
    return Stream._of(handle, source)


def _with_type(found: Stream, kind: Optional[Type]) -> Stream:
    """The stream, if its arrays have the type that was wanted, or can be made over to it."""
    if kind is None or same_values(found.type._handle, kind._handle):
        return found
    if "view" not in str(kind) and "view" not in str(found.type):
        message = f"expected {str(kind)!r}, found {str(found.type)!r}, which its producer has not cast"
        found.close()
        raise Unsupported(message)
    return _lazily(_made_over(found, kind), kind, None, found.source)


def _made_over(found: Stream, kind: Type) -> Iterator[Array]:
    for batch in found:
        handle = with_views_as(batch._handle, kind)
        if not handle:
            raise Unsupported(f"expected {str(kind)!r}, found {str(batch.type)!r}")
        yield Array._of(handle, batch.source)


def _imported(obj: Any, name: str, kind: Optional[Type]) -> Stream:
    capsule = _asked(getattr(obj, name), kind)
    _check_capsule(capsule, (_STREAMS[name],))
    return _with_type(Stream._of(_capsules.stream_from(capsule), name), kind)


def _is_batch(obj: Any) -> bool:
    """Whether an object is an array of its own, and no list or iterator of such."""
    return isinstance(obj, Array) or any(_speaks(obj, name) for name in (*_STREAMS, *_OTHERS))


def stream(obj: Any, schema: Optional[TypeLike] = None, *, stream: Any = None) -> Stream:
    """Batches of one type from any object, one after the other, without a copy.

    Parameters
    ----------
    obj : object
        A `Stream`, which is given back; what has a stream of Arrow's, of a device or the CPU, such as a table or a
        reader, which a stream uses up; what `bowstring.array` takes, as the only batch; a list or tuple of such; or an
        iterator or iterable of such, which is asked for a batch only when the stream is, on the thread that asks.
    schema : Type, str or object with ``__arrow_c_schema__``, optional
        The type of the batches, as in `bowstring.array`. Batches of a list or an iterator get it with its names,
        metadata and nulls, if that leaves room for theirs. Without it, the first batch tells: an iterator is asked
        once at once.
    stream : None or a queue, optional
        For batches that are tensors of a device: as in `bowstring.array`.

    Raises
    ------
    TypeError
        The object has no batches to give; the message says of each protocol why not.

    Notes
    -----
    What an iterator raises is the stream's error, told to whoever reads, in the words of the exception.
    """
    _queue_only(stream)
    kind = None if schema is None else as_type(schema)
    if isinstance(obj, Stream):
        return _with_type(obj, kind)
    if isinstance(obj, Array):
        return Stream.from_arrays([array(obj, kind)])
    refusals: list[tuple[str, Exception]] = []
    for name in _STREAMS:
        try:
            if _speaks(obj, name):
                return _imported(obj, name, kind)
        except MemoryError:
            raise
        except Exception as error:
            refusals.append((name, error))
    if _is_batch(obj):
        return Stream.from_arrays([_first_of(obj, Wanted(kind, None, stream), _OTHERS, refusals)])
    if refusals:
        raise given_up(obj, refusals, PROTOCOLS)
    if isinstance(obj, (list, tuple)):
        return _listed(obj, kind, stream)
    if hasattr(obj, "__next__") or hasattr(obj, "__iter__"):
        return _lazily(iter(obj), kind, stream, "iterator")
    raise given_up(obj, refusals, PROTOCOLS)


def _listed(batches: Any, kind: Optional[Type], stream: Any) -> Stream:
    """A stream of what is in a list; Python's values in it are one batch."""
    if batches and not any(map(_is_batch, batches)) and not isinstance(batches[0], (list, tuple)):
        return Stream.from_arrays([array(batches, kind)])
    arrays = [array(batch, kind, stream=stream) for batch in batches]
    if kind is not None:
        arrays = [_retyped(one, kind) for one in arrays]
    return Stream.from_arrays(arrays, kind)
