"""Tensors: arrays and buffers as DLPack has them, for whoever asks by the protocol, and for numpy by its array interface."""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, byref, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _c, _capsules
from ._device import CUDA, CUDA_MANAGED, ROCM, Device
from ._library import call, lib, made

if TYPE_CHECKING:
    from ._array import Array

PHYSICAL, VALUES_ONLY, ALLOW_COPY, DROP_READ_ONLY = 1, 2, 4, 8
READ_ONLY = 1
ORDER = "<" if sys.byteorder == "little" else ">"
_LETTERS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class DLDevice(ctypes.Structure):
    """DLPack's DLDevice."""

    _fields_ = [("type", c_int32), ("id", c_int32)]


class DLTensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", _c.DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Versioned(ctypes.Structure):
    """DLPack's DLManagedTensorVersioned."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    ]


def array_tensor(array: "Array", flags: int, sync: Optional[_c.Sync] = None) -> int:
    """The values of an array as a tensor, whose address is the caller's to let go."""
    options = _options(flags, sync)
    return made(lib.bowstring_array_to_tensor, array._handle, byref(options))


def validity_tensor(array: "Array", sync: Optional[_c.Sync] = None) -> int:
    """A boolean for each row that says whether it is there, as a copy; 0 for an array without a bitmap."""
    options = _options(ALLOW_COPY, sync)
    handle = c_void_p()
    call(lib.bowstring_array_validity_to_tensor, array._handle, byref(options), byref(handle), None)
    return handle.value or 0


def _options(flags: int, sync: Optional[_c.Sync]) -> Any:
    options = _c.TensorOptions(flags=flags)
    options.sync = _c.Sync(_c.SYNC_HOST, 0, None) if sync is None else sync
    return options


def tensor_capsule(address: int, max_version: Optional[tuple[int, int]]) -> object:
    """A capsule of a tensor, which is taken: with a version, where the consumer knows versions."""
    if max_version is not None and max_version[0] >= 1:
        return _capsules.tensor_capsule(address, _capsules.TENSOR)
    handle, legacy = c_void_p(address), c_void_p()
    options = _c.TensorOptions(flags=DROP_READ_ONLY)
    try:
        call(lib.bowstring_tensor_to_legacy, byref(handle), byref(options), byref(legacy))
    except BaseException:
        lib.bowstring_tensor_release(handle)
        raise
    return _capsules.tensor_capsule(legacy.value or 0, _capsules.LEGACY_TENSOR)


def consumer_sync(device: Device, stream: Any) -> _c.Sync:
    """How the data is to be ready for a consumer that says `stream` as the DLPack protocol has it."""
    if device.type not in (CUDA, CUDA_MANAGED, ROCM):
        if stream is not None and device.is_cpu:
            raise ValueError(f"expected None as the stream of CPU memory, found {stream!r}")
        return _c.Sync(_c.SYNC_HOST, 0, None)
    if stream == -1:
        # Whoever wants no queue to wait gets data that is ready.
        return _c.Sync(_c.SYNC_HOST, 0, None)
    if device.type == ROCM:
        if stream in (1, 2):
            raise ValueError(f"expected a stream of ROCm, found {stream}, which is one of CUDA's")
        return _c.Sync(_c.SYNC_QUEUE, 0, stream or None)
    if stream == 0:
        raise ValueError("expected a stream that is not 0, which names none: 1 is the legacy default stream, 2 the thread's own")
    return _c.Sync(_c.SYNC_QUEUE, 0, 1 if stream is None else int(stream))


class TensorSource:
    """What gives the same tensor to any number of consumers of DLPack.

    Parameters
    ----------
    make : callable
        Makes a tensor, given how the consumer is to meet unfinished work.
    device : Device
        Where the memory is.
    """

    def __init__(self, make: Callable[[_c.Sync], int], device: Device) -> None:
        self._make = make
        self._device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device.type, max(self._device.id, 0)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[tuple[int, int]] = None,
        dl_device: Optional[tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> object:
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"expected the device {self.__dlpack_device__()}, found {tuple(dl_device)}: use to_device()")
        if copy:
            raise BufferError("expected a consumer that shares the memory, found one that wants a copy")
        return tensor_capsule(self._make(consumer_sync(self._device, stream)), max_version)


class Tensor:
    """A tensor in CPU memory for numpy, which keeps this object, and so the memory, alive."""

    def __init__(self, address: int) -> None:
        self._address = address
        tensor = Versioned.from_address(address)
        one = tensor.dl_tensor
        code, bits = one.dtype.code, one.dtype.bits
        size = bits // 8
        count = one.ndim
        self.shape = tuple(one.shape[:count])
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"{ORDER if size > 1 else '|'}{_LETTERS[code]}{size}",
            "shape": self.shape,
            "strides": tuple(stride * size for stride in one.strides[:count]) if count else (),
            "data": ((one.data or 0) + one.byte_offset, bool(tensor.flags & READ_ONLY)),
        }

    def __del__(self) -> None:
        if getattr(self, "_address", 0):
            lib.bowstring_tensor_release(self._address)
