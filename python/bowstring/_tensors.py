"""Tensors of arrays for the libraries that this package converts to by itself: numpy, PyTorch, CuPy."""

from __future__ import annotations

from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _c, _capsules
from ._device import Device
from ._dlpack import ALLOW_COPY, DROP_READ_ONLY, READ_ONLY, Tensor, options, refused, stream_sync
from ._errors import BowstringError
from ._library import call, lib, made
from ._produce_tensors import typestr_of

if TYPE_CHECKING:
    from ._array import Array

HOST_WAITS = _c.Sync(_c.SYNC_HOST, 0, None)


def array_tensor(array: "Array", flags: int, sync: _c.Sync = HOST_WAITS) -> Tensor:
    """The values of an array as a tensor."""
    return Tensor(made(lib.bowstring_array_to_tensor, array._handle, byref(options(flags, sync))))


def validity_tensor(array: "Array", sync: _c.Sync = HOST_WAITS) -> Optional[Tensor]:
    """A boolean for each row that says whether it is there, as a copy; None for an array without a bitmap."""
    handle = c_void_p()
    how = options(ALLOW_COPY, sync)
    call(lib.bowstring_array_validity_to_tensor, array._handle, byref(how), byref(handle), None)
    return Tensor(handle.value) if handle.value else None


class TensorSource:
    """What gives the same tensor to any number of consumers of DLPack, also to those that know no read-only memory.

    Parameters
    ----------
    make : callable
        Makes a tensor, given how the consumer is to meet unfinished work.
    device : Device
        Where the memory is.
    """

    def __init__(self, make: "Callable[[_c.Sync], Tensor]", device: Device) -> None:
        self._make = make
        self._device = device

    def __dlpack_device__(self) -> "tuple[int, int]":
        return self._device.type, max(self._device.id, 0)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: "Optional[tuple[int, int]]" = None,
        dl_device: "Optional[tuple[int, int]]" = None,
        copy: Optional[bool] = None,
    ) -> object:
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(
                f"expected the device {self.__dlpack_device__()}, found {tuple(dl_device)}: use to_device()"
            )
        if copy:
            raise BufferError("expected a consumer that shares the memory, found one that wants a copy")
        try:
            # Waiting is more than a consumer wants that names no queue, and never wrong.
            tensor = self._make(stream_sync(self._device, stream) or HOST_WAITS)
            if max_version is not None and max_version[0] >= 1:
                return tensor.capsule(True)
            address, legacy = c_void_p(tensor.address), c_void_p()
            how = options(DROP_READ_ONLY)
            call(lib.bowstring_tensor_to_legacy, byref(address), byref(how), byref(legacy))
            tensor.taken()
            return _capsules.tensor_capsule(legacy.value or 0, _capsules.LEGACY_TENSOR)
        except BowstringError as error:
            raise refused(error) from error


class HostTensor:
    """A tensor in CPU memory for numpy, which keeps this object, and so the memory, alive."""

    __slots__ = ("__array_interface__", "_tensor")

    def __init__(self, tensor: Tensor) -> None:
        size = tensor.dtype[1] // 8
        self._tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "typestr": typestr_of(tensor.dtype),
            "shape": tensor.shape,
            "strides": tuple(step * size for step in tensor.strides),
            "data": (tensor.data, bool(tensor.struct.flags & READ_ONLY)),
        }
