"""Memory of any kind as a `Buffer`: what has a buffer protocol, an array interface or is one of ours."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from ._buffer import Buffer
from ._device import CUDA, Device, DeviceLike, device_of


class _PyBuffer(ctypes.Structure):
    """CPython's Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi)
)
_let_go = ctypes.PYFUNCTYPE(None, ctypes.POINTER(_PyBuffer))(("PyBuffer_Release", ctypes.pythonapi))


def host_memory(value: Any) -> tuple[int, int, memoryview]:
    """Address and size of what has the buffer protocol, and the view that keeps it where it is.

    Raises
    ------
    BufferError
        For memory that is not contiguous.
    """
    view = memoryview(value)
    if not view.c_contiguous:
        raise BufferError("expected contiguous memory, found strides")
    record = _PyBuffer()
    # Simple and read-only; raises by itself.
    _get(view, ctypes.byref(record), 0)
    try:
        return record.buf or 0, record.len, view
    finally:
        _let_go(ctypes.byref(record))


def contiguous_bytes(interface: "dict[str, Any]") -> int:
    """How many bytes an array interface shows; BufferError where they do not lie one behind the other."""
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    item = int(interface["typestr"][2:])
    size = item
    for length in shape:
        size *= length
    if strides is not None and size:
        step = item
        for length, stride in zip(reversed(shape), reversed(tuple(strides))):
            if length != 1 and stride != step:
                raise BufferError(f"expected contiguous memory, found strides {tuple(strides)} of shape {shape}")
            step *= length
    return size


def _device_of_producer(value: Any) -> Device:
    """Where a producer with a CUDA array interface, which does not say so itself, has its memory."""
    told = getattr(value, "__dlpack_device__", None)
    if told is None:
        raise ValueError(
            f"expected a device, found memory of {type(value).__name__}, which does not say on which one it is: name it by device="
        )
    kind, number = told()
    return device_of((int(kind), int(number)))


def buffer_of(value: Any, device: Optional[DeviceLike] = None) -> tuple[Buffer, Optional[int]]:
    """A buffer of memory that a Python object has, which the buffer keeps alive, and the queue its work may still be on.

    Parameters
    ----------
    value : Buffer, object with ``__cuda_array_interface__`` or with the buffer protocol
        The memory.
    device : Device, str or (int, int), optional
        Where memory with a CUDA array interface is, for producers without ``__dlpack_device__``.
    """
    if isinstance(value, Buffer):
        return value, None
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        size = contiguous_bytes(interface)
        where = _device_of_producer(value) if device is None else device_of(device)
        queue = interface.get("stream")
        if queue == 0:
            raise ValueError("expected a stream in __cuda_array_interface__ that is not 0, which names none")
        address = int(interface["data"][0] or 0) if size else 0
        return Buffer.from_address(address, size, value, where), queue if where.type == CUDA else None
    try:
        address, size, view = host_memory(value)
    except TypeError:
        raise TypeError(
            "expected a Buffer, an object with the buffer protocol or with __cuda_array_interface__, found "
            f"{type(value).__name__}"
        ) from None
    return Buffer.from_address(address if size else 0, size, view), None
