"""`Stream`: arrays of one type, one after the other."""

from __future__ import annotations

import atexit
import threading
import weakref
from contextlib import contextmanager
from ctypes import byref, c_size_t, c_void_p
from typing import Any, Iterable, Iterator, Optional

from . import _c
from ._array import Array
from ._check import options_of
from ._device import Device, DeviceLike, device_of, struct_of, sync_of
from ._library import call, lib, made
from ._looks import StreamLooks
from ._pickle import StreamPickling
from ._produce import StreamProtocols
from ._type import Type, TypeLike, as_type


# What says who uses which stream. Held for a few instructions only.
_turn = threading.Lock()
# A thread of the library may be ahead in some of them, and must be gone before the interpreter is.
_alive: "weakref.WeakSet[Stream]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for stream in list(_alive):
        stream.close()


class Stream(StreamProtocols, StreamLooks, StreamPickling):
    """Arrays of one type from one producer, each given once. It has one owner: what takes it leaves it empty.

    Iterating gives the arrays. A failed stream repeats its error. Any thread may use it, one at a time; `cancel` and `close` may
    come from any thread at any time.
    """

    __slots__ = ("_handle", "_source", "_users", "_closing", "__weakref__")

    _handle: int
    _source: str
    _users: int
    _closing: bool

    def __init__(self) -> None:
        raise TypeError("a Stream is made by bowstring.stream() or Stream.from_arrays()")

    @classmethod
    def _of(cls, handle: int, source: str) -> "Stream":
        """A stream that takes the handle over."""
        self = cls.__new__(cls)
        self._handle = handle
        self._source = source
        self._users = 0
        self._closing = False
        _alive.add(self)
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
        handle = getattr(self, "_handle", 0)
        if handle:
            lib.bowstring_stream_release(handle)

    def close(self) -> None:
        """Lets the stream and its producer go; a stream that is closed, or was handed on, is empty.

        While another thread uses it, or from inside its producer, it is cancelled, and goes when that use ends.
        """
        with _turn:
            handle, busy = self._handle, self._users > 0
            if busy:
                self._closing = True
            else:
                self._handle = 0
        if busy:
            # It is still there, because whoever uses it has not left.
            lib.bowstring_stream_cancel(handle)
        elif handle:
            lib.bowstring_stream_release(handle)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _check_live(self) -> None:
        if not self._handle or self._closing:
            raise ValueError("expected a stream, found one that was closed or handed on")

    @contextmanager
    def _in_use(self) -> Iterator[int]:
        """The handle, which nobody lets go meanwhile."""
        with _turn:
            self._check_live()
            self._users += 1
            handle = self._handle
        try:
            yield handle
        finally:
            with _turn:
                self._users -= 1
                closes = self._closing and not self._users
                if closes:
                    self._handle = 0
            if closes:
                lib.bowstring_stream_release(handle)

    @contextmanager
    def _taken(self) -> Iterator[c_void_p]:
        """The handle for a call that takes it, and leaves NULL; what is left of it comes back."""
        with _turn:
            self._check_live()
            if self._users:
                raise ValueError("expected a stream that nobody uses, found a call that is still running")
            handle, self._handle = c_void_p(self._handle), 0
        try:
            yield handle
        finally:
            self._handle = handle.value or 0

    def _moved(self) -> "Stream":
        """The stream in an object of its own, which leaves this one empty."""
        with self._taken() as handle:
            moved, handle.value = Stream._of(handle.value or 0, self._source), None
        return moved

    @property
    def source(self) -> str:
        """How the stream came in, such as ``"__arrow_c_stream__"``."""
        return self._source

    @property
    def type(self) -> Type:
        """The type of every array."""
        with self._in_use() as handle:
            kind = lib.bowstring_stream_type(handle)
            if not kind:
                raise ValueError("expected a stream with a type, found one that failed before it told one")
            return Type._borrowed(kind)

    @property
    def device(self) -> Device:
        """Where the arrays are; the id is -1 where they may be on several devices of the type."""
        with self._in_use() as handle:
            device = lib.bowstring_stream_device(handle)
        return Device(device.type, device.id)

    def read(self) -> Optional[Array]:
        """The next array, None at the end."""
        with self._in_use() as handle:
            array = made(lib.bowstring_stream_next, handle)
        return Array._of(array, self._source) if array else None

    def __iter__(self) -> Iterator[Array]:
        return self

    def __next__(self) -> Array:
        array = self.read()
        if array is None:
            raise StopIteration
        return array

    def cancel(self) -> None:
        """Ends a call that another thread waits in; any thread may call it."""
        with self._in_use() as handle:
            lib.bowstring_stream_cancel(handle)

    def collect(self, *, stream: Any = "host") -> Array:
        """All arrays as one: the same memory for a single one, a copy for several. The stream is used up."""
        sync = sync_of(stream)
        with self._taken() as handle:
            whole = made(lib.bowstring_stream_collect, byref(handle), None if sync is None else byref(sync))
        return Array._of(whole, self._source)

    def select(self, columns: Iterable[Any]) -> "Stream":
        """The stream with some of its columns, by name or number, in the order given. Nothing is copied; this one is used up."""
        kind = self.type
        wanted = [kind._index(column) for column in columns]
        numbers = (c_size_t * len(wanted))(*wanted)
        with self._taken() as handle:
            made_of = made(lib.bowstring_stream_select, byref(handle), numbers, len(wanted))
        return Stream._of(made_of, self._source)

    def validated(
        self, profile: str = "spec", device: Optional[DeviceLike] = None, level: str = "full", as_table: bool = False, *,
        threads: int = 1, stream: Any = "host",
    ) -> "Stream":
        """The stream with each array checked when it is asked for, as `Array.check` has it. This one is used up.

        What breaks a rule ends the stream with that error, which says in ``batch`` which array it was.
        """
        options = options_of(profile, device, level, as_table, threads, stream)
        with self._taken() as handle:
            made_of = made(lib.bowstring_stream_validated, byref(handle), byref(options))
        return Stream._of(made_of, self._source)

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
        to = struct_of(device_of(device))
        with self._taken() as handle:
            made_of = made(lib.bowstring_stream_to_device, byref(handle), to, byref(options))
        return Stream._of(made_of, self._source)
