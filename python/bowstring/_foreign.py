"""Memory of any kind as a `Buffer`, for `from_buffers`."""

from __future__ import annotations

from typing import Any, Optional

from ._buffer import Buffer
from ._device import CUDA, DeviceLike, device_of
from ._memory import address_in


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


def _on_gpu(value: Any, interface: "dict[str, Any]", device: DeviceLike) -> "tuple[Buffer, Optional[int]]":
    """The memory of a CUDA array interface, on a device that somebody has named."""
    size = contiguous_bytes(interface)
    where, queue = device_of(device), interface.get("stream")
    if queue == 0:
        raise ValueError("expected a stream in __cuda_array_interface__ that is not 0, which names none")
    address = int(interface["data"][0] or 0) if size else 0
    return Buffer.from_address(address, size, value, where), queue if where.type == CUDA else None


def buffer_of(value: Any, device: Optional[DeviceLike] = None) -> "tuple[Buffer, Optional[int]]":
    """A buffer of memory that a Python object has, which the buffer keeps alive, and the queue that its work may be on.

    Parameters
    ----------
    value : object
        A `Buffer`, or what `bowstring.buffer` takes.
    device : Device, str or (int, int), optional
        Where memory with a CUDA array interface is; by default where its ``__dlpack_device__`` or the driver says.
    """
    if isinstance(value, Buffer):
        return value, None
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        where = device
        if where is None and hasattr(value, "__dlpack_device__"):
            where = value.__dlpack_device__()
        if where is not None:
            return _on_gpu(value, interface, where)
    else:
        # The plainest way, without a call of the producer's.
        try:
            view = memoryview(value)
        except (TypeError, ValueError):
            pass
        else:
            if not view.c_contiguous:
                raise BufferError("expected contiguous memory, found strides")
            return Buffer.from_address(address_in(view) if view.nbytes else 0, view.nbytes, view), None
    from ._consume import buffer

    return buffer(value), None
