"""`Stream`: arrays of one type, one after the other."""

from __future__ import annotations

from ctypes import byref, c_size_t, c_void_p
from typing import Any, Iterable, Iterator, Optional

from . import _c
from ._array import Array
from ._device import Device, DeviceLike, device_of, struct_of, sync_of
from ._library import call, lib, made
from ._looks import StreamLooks
from ._pickle import StreamPickling
from ._produce import StreamProtocols
from ._type import Type, TypeLike, as_type


class Stream(StreamProtocols, StreamLooks, StreamPickling):
    """Arrays of one type from one producer, each given once. It has one owner: what takes it leaves it empty.

    Iterating gives the arrays. A failed stream repeats its error.
    """

    __slots__ = ("_handle", "_source", "__weakref__")

    _handle: c_void_p
    _source: str

    def __init__(self) -> None:
        raise TypeError("a Stream is made by bowstring.stream() or Stream.from_arrays()")

    @classmethod
    def _of(cls, handle: int, source: str) -> "Stream":
        """A stream that takes the handle over."""
        self = cls.__new__(cls)
        self._handle = c_void_p(handle)
        self._source = source
        return self

    @classmethod
    def from_arrays(cls, arrays: Iterable[Array], type: Optional[TypeLike] = None) -> "Stream":
        """A stream of arrays that are there already; without arrays it needs their type."""
        batches = list(arrays)
        handles = (c_void_p * len(batches))(*(batch._handle for batch in batches))
        kind = None if type is None else as_type(type)
        handle = made(lib.bowstring_stream_from_arrays, None if kind is None else kind._handle, handles, len(batches))
        return cls._of(handle, "arrays")

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            lib.bowstring_stream_release(handle)

    def close(self) -> None:
        """Lets the stream and its producer go now; a stream that is closed, or was handed on, is empty."""
        handle, self._handle = self._handle, c_void_p()
        lib.bowstring_stream_release(handle)

    def _live(self) -> c_void_p:
        if not self._handle:
            raise ValueError("expected a stream, found one that was closed or handed on")
        return self._handle

    @property
    def source(self) -> str:
        """How the stream came in, such as ``"__arrow_c_stream__"``."""
        return self._source

    @property
    def type(self) -> Type:
        """The type of every array."""
        return Type._borrowed(lib.bowstring_stream_type(self._live()))

    @property
    def device(self) -> Device:
        """Where the arrays are; the id is -1 where they may be on several devices of the type."""
        device = lib.bowstring_stream_device(self._live())
        return Device(device.type, device.id)

    def read(self) -> Optional[Array]:
        """The next array, None at the end."""
        handle = made(lib.bowstring_stream_next, self._live())
        return Array._of(handle, self._source) if handle else None

    def __iter__(self) -> Iterator[Array]:
        return self

    def __next__(self) -> Array:
        array = self.read()
        if array is None:
            raise StopIteration
        return array

    def cancel(self) -> None:
        """Ends a call that another thread waits in; any thread may call it."""
        lib.bowstring_stream_cancel(self._live())

    def collect(self, *, stream: Any = "host") -> Array:
        """All arrays as one: the same memory for a single one, a copy for several. The stream is used up."""
        sync = sync_of(stream)
        handle = self._live()
        made_of = made(lib.bowstring_stream_collect, byref(handle), None if sync is None else byref(sync))
        return Array._of(made_of, self._source)

    def select(self, columns: Iterable[Any]) -> "Stream":
        """The stream with some of its columns, by name or number, in the order given. Nothing is copied; this one is used up."""
        kind = self.type
        wanted = [kind._index(column) for column in columns]
        numbers = (c_size_t * len(wanted))(*wanted)
        handle = self._live()
        return Stream._of(made(lib.bowstring_stream_select, byref(handle), numbers, len(wanted)), self._source)

    def to_device(self, device: DeviceLike, *, stream: Any = "host", depth: int = 0, share: bool = True) -> "Stream":
        """The stream with each array on another device. This one is used up.

        Parameters
        ----------
        device : Device, str or (int, int)
            Where to.
        stream : None, "host", "library" or a queue, default "host"
            How to meet unfinished device work.
        depth : int, default 0
            How many arrays a thread of the library copies ahead of what was asked for.
        share : bool, default True
            Whether an array may go on as it is where its memory can be reached from the device.
        """
        sync = sync_of(stream)
        options = _c.TransferOptions(flags=_c.MAY_SHARE if share else 0, depth=depth)
        if sync is not None:
            options.sync = sync
        handle = self._live()
        taken = made(lib.bowstring_stream_to_device, byref(handle), struct_of(device_of(device)), byref(options))
        return Stream._of(taken, self._source)
