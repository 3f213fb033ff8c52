"""DLPack: tensors taken from capsules, and tensors of our own."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from math import prod
from typing import Any, Optional, Sequence

from . import _c, _capsules
from ._capsules import LEGACY_TENSOR, TENSOR, USED
from ._device import CPU, CUDA, CUDA_MANAGED, ROCM, Device, queue_of, struct_of
from ._errors import BowstringError, DeviceUnavailable, Unsupported
from ._library import call, lib, made
from ._memory import CopyNeeded, Memory

VERSION = (1, 3)
PHYSICAL, VALUES_ONLY, ALLOW_COPY, DROP_READ_ONLY = 1, 2, 4, 8
READ_ONLY, IS_COPIED = 1, 2
INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("dtype", _c.DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", DLTensor),
    ]


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


def options(flags: int, sync: Optional[Any] = None) -> Any:
    """Options for a call that makes or takes a tensor."""
    how = _c.TensorOptions(flags=flags)
    if sync is not None:
        how.sync = sync
    return how


class Tensor:
    """A tensor of ours: let go with this object, unless a capsule or an array has taken it."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address

    def __del__(self) -> None:
        if self.address:
            lib.bowstring_tensor_release(self.address)

    @property
    def struct(self) -> Any:
        """The struct itself."""
        return Versioned.from_address(self.address)

    def taken(self) -> int:
        """The address, and somebody else's duty to let it go."""
        address, self.address = self.address, 0
        return address

    @property
    def data(self) -> int:
        """Address of the first element."""
        tensor = self.struct.tensor
        return (tensor.data or 0) + tensor.byte_offset

    @property
    def dtype(self) -> tuple[int, int, int]:
        """DLPack's code, bits and lanes."""
        dtype = self.struct.tensor.dtype
        return dtype.code, dtype.bits, dtype.lanes

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        tensor = self.struct.tensor
        return tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in elements."""
        tensor = self.struct.tensor
        return tuple(tensor.strides[: tensor.ndim]) if tensor.ndim else ()

    @property
    def compact(self) -> bool:
        """Whether the elements lie row-major without gaps."""
        step = 1
        for length, stride in zip(reversed(self.shape), reversed(self.strides)):
            if length > 1 and stride != step:
                return False
            step *= length
        return True

    def capsule(self, versioned: bool) -> object:
        """A capsule with the tensor; one without a version only for what may be written."""
        if versioned:
            return _capsules.tensor_capsule(self.taken(), TENSOR)
        address, legacy = c_void_p(self.address), c_void_p()
        call(lib.bowstring_tensor_to_legacy, byref(address), None, byref(legacy))
        self.address = 0
        return _capsules.tensor_capsule(legacy.value or 0, LEGACY_TENSOR)


def tensor_of(
    memory: Memory, data: int, dtype: tuple[int, int, int], shape: Sequence[int], strides: Sequence[int], device: Device
) -> Tensor:
    """A tensor on memory: `strides` in elements, `data` the first element's address, anywhere within the memory."""
    placement = _c.Placement(device=struct_of(device))
    handle = made(lib.bowstring_buffer_wrap, byref(memory.entry), byref(placement))
    memory.hand_over()
    try:
        ones = (c_int64 * len(shape))(*(min(length, 1) for length in shape))
        element = _c.DataType(*dtype)
        tensor = Tensor(made(lib.bowstring_buffer_to_tensor, handle, element, len(shape), ones, None))
    finally:
        lib.bowstring_buffer_release(handle)
    # The struct is ours until it is handed on, and has room for as many dimensions.
    struct = tensor.struct.tensor
    for i, (length, stride) in enumerate(zip(shape, strides)):
        struct.shape[i], struct.strides[i] = length, stride
    if prod(shape):
        struct.data = data
    return tensor


def queue_for(device: Device, stream: Any) -> Optional[int]:
    """The queue that data on a device is to be ready for; None where nobody is to wait.

    Parameters
    ----------
    stream : None or a queue
        None is the driver's default queue, -1 none at all.
    """
    if device.type == CPU:
        return None
    if stream is None:
        return 0
    queue = queue_of(stream)
    return None if queue == -1 else queue


def _event_on(queue: Optional[int]) -> Optional[Any]:
    return None if queue is None else _c.Sync(_c.SYNC_QUEUE, 0, queue or None)


def array_of(tensor: int, kind: Optional[int], copy: Optional[bool], queue: Optional[int], must: bool) -> int:
    """The handle of an array of a tensor, which is taken; on failure it is still the caller's.

    Parameters
    ----------
    tensor : int
        Its address.
    kind : int, optional
        Handle of the type that the array is to have.
    copy : bool, optional
        False: the same memory or nothing.
    queue : int, optional
        Where an event is recorded.
    must : bool
        Whether an event is needed: without it, a device that nobody here can record on has nothing pending.
    """
    flags = 0 if copy is False else ALLOW_COPY
    address, out = c_void_p(tensor), c_void_p()
    try:
        try:
            how = options(flags, _event_on(queue))
            call(lib.bowstring_array_from_tensor, byref(address), kind, byref(how), byref(out))
        except (DeviceUnavailable, Unsupported):
            if must or queue is None:
                raise
            call(lib.bowstring_array_from_tensor, byref(address), kind, byref(options(flags)), byref(out))
    except Unsupported as error:
        if "ALLOW_COPY" not in error.message:
            raise
        raise CopyNeeded(error.message.replace("ALLOW_COPY", "a copy")) from None
    return out.value or 0


def device_of_producer(obj: Any) -> Device:
    """The device that a producer of tensors names; the CPU for one that names none."""
    ask = getattr(obj, "__dlpack_device__", None)
    if ask is None:
        return Device(CPU, -1)
    kind, identifier = ask()
    kind = int(kind)
    return Device(kind, -1 if kind == CPU else int(identifier))


def _stream_number(device: Device, queue: int) -> int:
    """A queue as the protocol numbers it."""
    if device.type in (CUDA, CUDA_MANAGED):
        return queue or 1
    return queue


def ask(obj: Any, device: Device, stream: Any, copy: Optional[bool]) -> object:
    """The capsule of a producer, which may be one from before the keywords."""
    ordered: dict[str, Any] = {}
    if device.type != CPU and stream is not None:
        queue = queue_for(device, stream)
        ordered["stream"] = -1 if queue is None else _stream_number(device, queue)
    produce = obj.__dlpack__
    modern: dict[str, Any] = {"max_version": VERSION, **ordered}
    if copy is False:
        modern["copy"] = False
    attempts = [modern, {"max_version": VERSION, **ordered}, ordered] if copy is False else [modern, ordered]
    for keywords in attempts[:-1]:
        try:
            return produce(**keywords)
        except TypeError:
            # A producer from before these keywords.
            continue
    return produce(**attempts[-1])


def resolved(obj: Any, copy: Optional[bool]) -> Any:
    """A producer whose memory has its values.

    A tensor of torch may be the negative of what its memory has, which its capsule does not tell.
    """
    ask_negative = getattr(obj, "is_neg", None)
    if ask_negative is None or not ask_negative():
        return obj
    if copy is False:
        raise CopyNeeded("expected memory that has the values, found a tensor with torch's negative bit: resolve_neg()")
    return obj.resolve_neg()


class Taken:
    """The tensor in a producer's capsule: taken by `done`, and otherwise still the capsule's."""

    def __init__(self, capsule: object) -> None:
        if not _capsules.is_capsule(capsule):
            raise TypeError(f"expected a capsule from __dlpack__, found {type(capsule).__name__}")
        name = _capsules.name_of(capsule)
        if name in USED.values():
            raise ValueError(f"expected a tensor, found a capsule whose tensor was taken: {name.decode()!r}")
        if name not in USED:
            raise ValueError(f"expected a capsule named 'dltensor_versioned' or 'dltensor', found {name.decode()!r}")
        self.capsule, self.name = capsule, name
        self.address = _capsules.tensor_in(capsule, name)
        if not self._struct_is_readable():
            major = Versioned.from_address(self.address).major
            raise Unsupported(f"expected a tensor of DLPack 1, found one of DLPack {major}")

    def _struct_is_readable(self) -> bool:
        return self.name == LEGACY_TENSOR or Versioned.from_address(self.address).major == 1

    @property
    def struct(self) -> Any:
        """The tensor without what manages it."""
        kind = Legacy if self.name == LEGACY_TENSOR else Versioned
        return kind.from_address(self.address).tensor

    @property
    def flags(self) -> int:
        """The tensor's flags; one without a version may not be written."""
        return READ_ONLY if self.name == LEGACY_TENSOR else Versioned.from_address(self.address).flags

    def _versioned(self) -> int:
        """A versioned tensor that is the caller's now."""
        if self.name == TENSOR:
            return self.address
        address, out = c_void_p(self.address), c_void_p()
        call(lib.bowstring_tensor_from_legacy, byref(address), None, byref(out))
        return out.value or 0

    def _rehearsed(self, kind: Optional[int], copy: Optional[bool]) -> None:
        """Fails as the tensor will, before it is wrapped, from which there is no way back."""
        if self.name == TENSOR:
            return
        legacy = Legacy.from_address(self.address)
        stand_in = Versioned(*VERSION, None, None, READ_ONLY, legacy.tensor)
        tensor = stand_in.tensor
        if tensor.ndim > 0 and not tensor.strides:
            if tensor.ndim > 64 or not tensor.shape:
                call(lib.bowstring_legacy_tensor_validate, self.address, None)
            compact = [prod(tensor.shape[i + 1 : tensor.ndim]) for i in range(tensor.ndim)]
            strides = (c_int64 * tensor.ndim)(*compact)
            tensor.strides = ctypes.cast(strides, POINTER(c_int64))
        lib.bowstring_array_release(array_of(ctypes.addressof(stand_in), kind, copy, None, False))

    def array(self, kind: Optional[int], copy: Optional[bool], queue: Optional[int], must: bool) -> int:
        """The handle of an array of the tensor."""
        self._rehearsed(kind, copy)
        # Another thread must not take it as well, and nobody may let it go meanwhile.
        _capsules.tensor_taken(self.capsule, self.name)
        try:
            tensor = self._versioned()
        except BaseException:
            _capsules.tensor_back(self.capsule, self.name)
            raise
        try:
            return array_of(tensor, kind, copy, queue, must)
        except BaseException:
            if self.name == TENSOR:
                _capsules.tensor_back(self.capsule, self.name)
            else:
                # The one without a version went into it for good.
                lib.bowstring_tensor_release(tensor)
            raise

    def memory(self) -> tuple[int, int, Memory]:
        """The tensor's address and size, and its memory under its own deleter, if the elements lie row-major."""
        call(
            lib.bowstring_legacy_tensor_validate if self.name == LEGACY_TENSOR else lib.bowstring_tensor_validate,
            self.address, None,
        )
        tensor = self.struct
        shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
        if tensor.ndim and tensor.strides and 0 not in shape:
            step = 1
            for length, stride in zip(reversed(shape), reversed(tensor.strides[: tensor.ndim])):
                if length > 1 and stride != step:
                    raise CopyNeeded(f"expected elements one behind the other, found a stride of {stride}")
                step *= length
        size = (prod(shape) * tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
        data = (tensor.data or 0) + tensor.byte_offset if size else 0
        _capsules.tensor_taken(self.capsule, self.name)
        try:
            owner = self._versioned()
        except BaseException:
            _capsules.tensor_back(self.capsule, self.name)
            raise
        return data, size, Memory.of_tensor(data, size, owner)


def take(obj: Any, kind: Optional[int], copy: Optional[bool], stream: Any) -> int:
    """The handle of an array of what `obj.__dlpack__` gives."""
    obj = resolved(obj, copy)
    device = device_of_producer(obj)
    taken = Taken(ask(obj, device, stream, copy))
    if copy is False and taken.flags & IS_COPIED and taken.name == TENSOR:
        raise CopyNeeded("expected the producer's own memory, found a copy of it")
    found = taken.struct.device_type
    if found != device.type:
        device = Device(found, -1 if found == CPU else taken.struct.device_id)
    return taken.array(kind, copy, queue_for(device, stream), stream is not None)


def stream_sync(device: Device, stream: Any) -> Optional[Any]:
    """How the consumer's `stream` argument of ``__dlpack__`` wants a producer to wait; None for not at all.

    On the CPU there is nothing to wait for.
    """
    if device.type == CPU:
        if stream is not None:
            raise ValueError(f"expected no stream for memory of the CPU, found {stream!r}")
        return None
    if stream is None:
        return _c.Sync(_c.SYNC_QUEUE, 0, None)
    number = int(stream)
    if number == -1:
        return None
    if number < 0 or (device.type in (CUDA, CUDA_MANAGED) and number == 0):
        raise ValueError(f"expected a stream of the device, found {number}, which the protocol forbids")
    if device.type == ROCM and number in (1, 2):
        raise ValueError(f"expected 0 or a stream's address for ROCm, found {number}")
    return _c.Sync(_c.SYNC_QUEUE, 0, number or None)


def refused(error: BowstringError) -> BufferError:
    """A failure as DLPack's consumers expect it."""
    return error if isinstance(error, BufferError) else BufferError(str(error))
