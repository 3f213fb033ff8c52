"""`Buffer`: one block of memory with an owner of its own."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_bool
from typing import Any, ClassVar, Optional

from . import _c, _python
from ._device import CPU, Device, DeviceLike, device_of, struct_of, sync_of
from ._host_buffer import Exporter, refuse_writing, view_of_bytes
from ._library import call, lib, made, owned
from ._looks import BufferLooks
from ._pickle import BufferPickling
from ._produce import BufferProtocols

def _is_on_host(handle: int) -> bool:
    """Whether a buffer is in memory of the CPU, all of which Python may see."""
    info = _c.BufferMemory()
    call(lib.bowstring_buffer_info, handle, byref(info))
    return bool(info.device.type == CPU and info.size_bytes >= 0)


ROLES = ("validity", "offsets", "sizes", "type_ids", "views", "data", "variadic", "variadic_sizes")


class Buffer(BufferProtocols, BufferLooks, BufferPickling):
    """One block of memory, its device, and what keeps it alive; nothing else of the array that it came from.

    Immutable, and safe to share between threads.
    """

    __slots__ = ("_handle", "_base", "__weakref__")

    _handle: int
    _base: Optional[object]
    # The class of buffers in memory of the CPU, which Python's buffer protocol shows; set where it is defined.
    _on_host: "ClassVar[Optional[type[Buffer]]]" = None

    def __init__(self) -> None:
        raise TypeError("a Buffer comes from Array.buffers, Array.buffer(), bowstring.buffer() or Buffer.from_address()")

    @classmethod
    def _of(cls, handle: int, base: Optional[object] = None) -> "Buffer":
        """A buffer that takes the handle over; `base` is the Python object that the memory came from, if one is known."""
        self = cls.__new__(cls._on_host if cls._on_host is not None and _is_on_host(handle) else cls)
        self._handle = handle
        self._base = base
        return self

    @classmethod
    def from_address(cls, data: int, size: int, owner: object, device: DeviceLike = "cpu") -> "Buffer":
        """Memory that a Python object keeps alive.

        Parameters
        ----------
        data : int
            Address of the first byte, on the device.
        size : int
            Readable bytes.
        owner : object
            Referred to until nobody uses the memory; None: the memory stays for ever.
        device : Device, str or (int, int), default "cpu"
            Where the memory is.
        """
        placement = _c.Placement(device=struct_of(device_of(device)))
        memory, reference = owned(data, size, owner)
        handle = made(lib.bowstring_buffer_wrap, byref(memory), byref(placement))
        if reference is not None:
            reference.hand_over()
        return cls._of(handle, owner)

    def __del__(self, _release: Any = _python.buffer_release) -> None:
        if getattr(self, "_handle", 0):
            _release(self._handle)

    def _info(self) -> Any:
        info = _c.BufferMemory()
        call(lib.bowstring_buffer_info, self._handle, byref(info))
        return info

    @property
    def ptr(self) -> int:
        """Address of the first byte, on the buffer's device; 0 for no bytes."""
        return self._info().data or 0

    @property
    def bufsize(self) -> int:
        """Readable bytes, -1 when nobody has told."""
        return self._info().size_bytes

    @property
    def device(self) -> Device:
        """Where the memory is."""
        device = self._info().device
        return Device(device.type, device.id)

    @property
    def sync_event(self) -> int:
        """Address of the event to wait on before the memory is read, 0 when there is none."""
        return self._info().sync_event or 0

    def __len__(self) -> int:
        return max(self.bufsize, 0)

    def slice(self, offset: int, length: int) -> "Buffer":
        """`length` bytes from `offset` on, under the same owner."""
        return Buffer._of(made(lib.bowstring_buffer_slice, self._handle, offset, length), self._base)

    def read(self, offset: int = 0, size: Optional[int] = None, *, stream: Any = "host") -> bytes:
        """A copy of some bytes in CPU memory, wherever they are.

        Parameters
        ----------
        offset, size : int
            Which bytes; by default all from `offset` on.
        stream : None, "host" or a queue, default "host"
            How to wait for unfinished device work.
        """
        count = self.bufsize - offset if size is None else size
        out = ctypes.create_string_buffer(max(count, 1))
        sync = sync_of(stream)
        call(lib.bowstring_buffer_read, self._handle, offset, out, count, None if sync is None else byref(sync))
        return out.raw[:count]

    def to_device(self, device: DeviceLike, *, stream: Any = "host", share: bool = True) -> "Buffer":
        """The bytes on another device: the same memory where it can be reached from there and `share` is true, else a copy."""
        sync = sync_of(stream)
        options = _c.TransferOptions(flags=_c.MAY_SHARE if share else 0)
        if sync is not None:
            options.sync = sync
        handle = ctypes.c_void_p()
        call(
            lib.bowstring_buffer_to_device, self._handle, struct_of(device_of(device)), byref(options), byref(handle),
            byref(c_bool()),
        )
        return Buffer._of(handle.value or 0)


class _HostBuffer(Buffer, Exporter):  # type: ignore[misc]
    """A `Buffer` in memory of the CPU, which also has Python's buffer protocol: ``memoryview(buffer)`` is read-only."""

    __slots__ = ()

    def __buffer__(self, flags: int) -> memoryview:
        """The bytes, read-only. The view keeps the buffer alive.

        Raises
        ------
        BufferError
            Memory that may be written was asked for.
        """
        refuse_writing(flags)
        return view_of_bytes(self, self.ptr, self.bufsize)


# It is no other kind of thing to who uses it.
_HostBuffer.__name__ = _HostBuffer.__qualname__ = "Buffer"
Buffer._on_host = _HostBuffer
