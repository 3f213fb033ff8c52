"""How the package's objects answer tensor libraries: DLPack, and the array interfaces of CUDA and NumPy."""

from __future__ import annotations

import sys
from ctypes import byref, c_int64, c_void_p
from math import prod
from typing import Any, Optional, Sequence, Union

from . import _c
from ._capsules import TENSOR, tensor_capsule
from ._device import CPU, CUDA, CUDA_MANAGED, Device, sync_of
from ._dlpack import (
    ALLOW_COPY, BFLOAT, BOOL, COMPLEX, FLOAT, INT, IS_COPIED, PHYSICAL, READ_ONLY, UINT, Tensor, options, refused,
    stream_sync,
)
from ._errors import BowstringError, InvalidArgument, SyncRequired, Unsupported
from ._host_buffer import refuse_writing, view_of_tensor
from ._library import lib, made
from ._memory import CopyNeeded
from ._produce_bytes import BytesAsArrow

_to_tensor = lib.bowstring_array_to_tensor
_KINDS = {INT: "i", UINT: "u", FLOAT: "f", COMPLEX: "c", BOOL: "b"}
_NATIVE = "<" if sys.byteorder == "little" else ">"
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}

Element = tuple[int, int, int]


def typestr_of(dtype: Element) -> Optional[str]:
    """An element as NumPy writes it; None for what NumPy has no letter for."""
    code, bits, lanes = dtype
    letter = _KINDS.get(code)
    if letter is None or lanes != 1 or bits % 8 or (code == BOOL and bits != 8):
        return None
    size = bits // 8
    return f"{_NATIVE if size > 1 else '|'}{letter}{size}"


_NAMED = {"bool": (BOOL, 8, 1), "bfloat16": (BFLOAT, 16, 1)}
_NAMED.update({f"int{bits}": (INT, bits, 1) for bits in (8, 16, 32, 64)})
_NAMED.update({f"uint{bits}": (UINT, bits, 1) for bits in (8, 16, 32, 64)})
_NAMED.update({f"float{bits}": (FLOAT, bits, 1) for bits in (16, 32, 64)})
_NAMED.update({f"complex{bits}": (COMPLEX, bits, 1) for bits in (64, 128)})
_LETTERS = {letter: code for code, letter in _KINDS.items()}


def element_of(dtype: Any) -> Element:
    """An element by its name, typestr, DLPack's three numbers, or a library's dtype object."""
    if isinstance(dtype, tuple) and len(dtype) == 3:
        return int(dtype[0]), int(dtype[1]), int(dtype[2])
    if isinstance(dtype, type):
        text = dtype.__name__
    else:
        text = dtype if isinstance(dtype, str) else getattr(dtype, "str", None) or str(dtype).rpartition(".")[2]
    if text in _NAMED:
        return _NAMED[text]
    order, letter, size = text[:1], text[1:2], text[2:]
    if order not in ("<", ">", "|", "=") or letter not in _LETTERS or not size.isdigit():
        raise InvalidArgument(f"expected an element such as 'int32', '<f4' or (code, bits, lanes), found {dtype!r}")
    if order not in ("|", "=", _NATIVE) and int(size) > 1:
        raise InvalidArgument(f"expected an element in the CPU's byte order, found {dtype!r}")
    return _LETTERS[letter], 8 * int(size), 1


def _dlpack_device(device: Device) -> "tuple[int, int]":
    return device.type, max(device.id, 0)


def _same_device(wanted: Any, device: Device) -> bool:
    return wanted is None or (int(wanted[0]), int(wanted[1])) == _dlpack_device(device)


def _capsule(tensor: Tensor, max_version: Any, alone: bool) -> object:
    """The capsule that a consumer can take; `alone` says that the memory is a copy which the tensor alone has."""
    if alone:
        tensor.struct.flags = tensor.struct.flags & ~READ_ONLY | IS_COPIED
    versioned = max_version is not None and int(max_version[0]) >= 1
    if not versioned and tensor.struct.flags & READ_ONLY:
        raise BufferError(
            "expected max_version=(1, 0) or more, found none: a tensor without a version cannot say that it is "
            "read-only; copy=True gives one that may be written"
        )
    return tensor.capsule(versioned)


def _produce(self: Any, stream: Any, max_version: Any, dl_device: Any, copy: Optional[bool]) -> object:
    """`__dlpack__` of whatever has a device, `to_device` and `_tensor`."""
    device = self.device
    source, alone = self, False
    try:
        sync = stream_sync(device, stream)
        if not _same_device(dl_device, device):
            if int(dl_device[0]) != CPU:
                raise BufferError(f"expected the memory's own device or the CPU, found {tuple(map(int, dl_device))}")
            if stream is not None:
                raise ValueError(f"expected no stream for a copy on the CPU, found {stream!r}")
            if copy is False:
                raise CopyNeeded(f"expected the memory's own device {device}, found the CPU, where it would be a copy")
            source, alone, sync = self.to_device("cpu", share=False), True, None
        elif copy:
            how: Any = "host" if sync is None or device.is_cpu else sync
            source, alone = _copied(self, how), True
        flags = ALLOW_COPY if copy is not False and source.device.is_cpu else 0
        return _capsule(_ready(source, flags, sync, stream == -1), max_version, alone)
    except BowstringError as error:
        raise refused(error) from error


def _copied(of: Any, how: Any) -> Any:
    if isinstance(how, str):
        return of.to_device(of.device, stream=how, share=False)
    return of.to_device(of.device, stream=_Queue(how.queue), share=False)


class _Queue:
    """A queue as `sync_of` takes it."""

    def __init__(self, address: Optional[int]) -> None:
        self.ptr = address or 0


def _ready(source: Any, flags: int, sync: Any, unwaited: bool) -> Tensor:
    """A tensor for which the consumer's queue waits, unless the consumer wants no waiting."""
    try:
        return Tensor(source._tensor(flags, sync))
    except SyncRequired:
        if not unwaited:
            raise
        # Waiting is more than was asked for, and never wrong.
        return Tensor(source._tensor(flags, sync_of("host")))


def _interface(tensor: Tensor, typestr: str, **more: Any) -> "dict[str, Any]":
    """The interface that describes a tensor of ours."""
    size = tensor.dtype[1] // 8
    strides = None if tensor.compact else tuple(step * size for step in tensor.strides)
    data = (tensor.data, True)
    return {"shape": tensor.shape, "typestr": typestr, "data": data, "strides": strides, "version": 3, **more}


def _cuda_interface(self: Any) -> "dict[str, Any]":
    """The interface of memory that CUDA reaches. AttributeError for all else, as hasattr() wants it."""
    device = self.device
    if device.type not in (CUDA, CUDA_MANAGED):
        raise AttributeError(f"expected memory of CUDA, found {device}: it has no __cuda_array_interface__")
    event = self.sync_event
    try:
        # The default queue waits, and whoever takes the memory waits for that queue.
        sync = _c.Sync(_c.SYNC_QUEUE, 0, None) if event else None
        tensor = Tensor(self._tensor(0, sync))
    except BowstringError as error:
        raise AttributeError(f"expected what is a tensor, found none: {error}") from error
    typestr = typestr_of(tensor.dtype)
    if typestr is None:
        raise AttributeError(f"expected elements that the interface names, found {tensor.dtype}")
    return _interface(tensor, typestr, stream=1 if event else None)


def _host_tensor(array: Any, sync: Any) -> "tuple[Tensor, Optional[str]]":
    """The values in memory of the CPU, and their typestr: None for what NumPy has no letter for."""
    kind = array.type
    form = kind.format
    is_time = form[:2] in ("ts", "tD")
    tensor = Tensor(array._tensor(PHYSICAL if is_time else 0, sync))
    if is_time:
        return tensor, f"{_NATIVE}{'M' if form[1] == 's' else 'm'}8[{_UNITS[form[2]]}]"
    if kind.metadata.get(b"ARROW:extension:name") == b"arrow.bool8":
        return tensor, "|b1"
    return tensor, typestr_of(tensor.dtype)


class ArrayTensors:
    """What an `Array` answers to tensor libraries."""

    __slots__ = ()

    def _tensor(self: Any, flags: int, sync: Any) -> int:
        return made(lib.bowstring_array_to_tensor, self._handle, byref(options(flags, sync)))

    def __dlpack__(
        self: Any,
        *,
        stream: Any = None,
        max_version: "Optional[tuple[int, int]]" = None,
        dl_device: "Optional[tuple[int, int]]" = None,
        copy: Optional[bool] = None,
    ) -> object:
        """A capsule with the values as a tensor, in place: numbers without nulls.

        Fixed-size lists are further dimensions.

        The tensor is read-only, so that consumers have to know versions (`max_version` of at least 1.0) unless it is a
        copy. Booleans are unpacked, a copy as well. The queue that `stream` names waits for the array's event: None is
        the device's default queue,
        -1 nothing.

        Raises
        ------
        BufferError
            There is no such tensor: nulls, a type that has none, another device, or a copy with `copy` False.
        """
        if stream is None and dl_device is None and copy is None and max_version is not None and max_version[0] >= 1:
            # What needs no copy and nobody's wait, which is most: all else is looked at below.
            tensor = c_void_p()
            if not _to_tensor(self._handle, None, byref(tensor), None):
                return tensor_capsule(tensor.value or 0, TENSOR)
        return _produce(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self: Any) -> "tuple[int, int]":
        """DLPack's device type and number; the CPU's number is 0."""
        return _dlpack_device(self.device)

    @property
    def __cuda_array_interface__(self: Any) -> "dict[str, Any]":
        return _cuda_interface(self)

    @property
    def __array_interface__(self: Any) -> "dict[str, Any]":
        device = self.device
        if not device.is_cpu:
            raise AttributeError(f"expected memory of the CPU, found {device}: it has no __array_interface__")
        try:
            tensor, typestr = _host_tensor(self, None)
        except BowstringError as error:
            raise AttributeError(f"expected what is a tensor, found none: {error}") from error
        if typestr is None:
            raise AttributeError(f"expected elements that NumPy has, found {tensor.dtype}")
        return _interface(tensor, typestr)

    def __buffer__(self: Any, flags: int) -> memoryview:
        """The values, read-only and in place: numbers without nulls in memory of the CPU; it waits until they are there.

        Fixed-size lists are further dimensions. The view keeps the memory alive, not the array.

        Raises
        ------
        BufferError
            There are no such values, or memory that may be written was asked for.
        """
        refuse_writing(flags)
        device = self.device
        if not device.is_cpu:
            raise BufferError(f"expected memory of the CPU, found {device}, which Python's buffer protocol does not have")
        try:
            tensor, typestr = _host_tensor(self, sync_of("host"))
        except BowstringError as error:
            raise BufferError(f"expected numbers without nulls, found {self.type}: {error}") from error
        view = None if typestr is None else view_of_tensor(tensor, typestr)
        if view is None:
            raise BufferError(f"expected numbers, found {self.type}, which Python's buffer protocol does not have")
        return view

    def __array__(self: Any, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        """A NumPy array of the values; read-only and in place, unless `copy` or `dtype` asks for another one.

        Raises
        ------
        ValueError
            The array has nulls, or no values that NumPy has; the message says which.
        """
        return _numpy(self, dtype, copy)


class _Interface:
    """An object that has nothing but an interface, and keeps its memory alive."""

    def __init__(self, interface: "dict[str, Any]", owner: object) -> None:
        self.__array_interface__ = interface
        self._owner = owner


def _numpy(array: Any, dtype: Any, copy: Optional[bool]) -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("expected NumPy, which makes this array, found none installed") from error
    try:
        view = numpy.asarray(_Interface(array.__array_interface__, array))
    except AttributeError as reason:
        try:
            if not array.device.is_cpu or copy is False:
                raise ValueError(str(reason)) from None
            tensor = Tensor(array._tensor(ALLOW_COPY, None))
        except BowstringError as error:
            raise ValueError(f"expected values that NumPy has, found none: {error}") from None
        typestr = typestr_of(tensor.dtype)
        if typestr is None:
            raise ValueError(f"expected elements that NumPy has, found {tensor.dtype}") from None
        view = numpy.asarray(_Interface(_interface(tensor, typestr), tensor))
    if dtype is not None and numpy.dtype(dtype) != view.dtype:
        if copy is False:
            raise ValueError(f"expected {view.dtype}, of which this is no copy, found {dtype}")
        return view.astype(dtype)
    return view.copy() if copy else view


class BufferTensors(BytesAsArrow):
    """What a `Buffer` answers to other libraries: its bytes."""

    __slots__ = ()

    def _elements(self: Any) -> "tuple[Any, tuple[int, int, int], tuple[int, ...]]":
        return self, (UINT, 8, 1), (_known_size(self),)

    def _tensor(self: Any, flags: int, sync: Any) -> int:
        return _buffer_tensor(self, (UINT, 8, 1), (_known_size(self),), flags, sync)

    def __dlpack__(
        self: Any,
        *,
        stream: Any = None,
        max_version: "Optional[tuple[int, int]]" = None,
        dl_device: "Optional[tuple[int, int]]" = None,
        copy: Optional[bool] = None,
    ) -> object:
        """A capsule with the bytes as a read-only tensor, in place, as `Array.__dlpack__` has it."""
        return _produce(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self: Any) -> "tuple[int, int]":
        """DLPack's device type and number; the CPU's number is 0."""
        return _dlpack_device(self.device)

    @property
    def __cuda_array_interface__(self: Any) -> "dict[str, Any]":
        return _cuda_interface(self)

    @property
    def __array_interface__(self: Any) -> "dict[str, Any]":
        return _host_interface(self)

    def typed(self: Any, dtype: Any, shape: Union[None, int, Sequence[int]] = None) -> "TypedBuffer":
        """The bytes as elements, row-major from the first byte on, for tensor libraries; nothing is copied.

        Parameters
        ----------
        dtype : str, (int, int, int) or dtype
            A name such as ``"float32"`` or ``"bfloat16"``, a typestr such as ``"<f4"``, DLPack's code, bits and lanes,
            or a NumPy or torch dtype.
        shape : int or sequence of int, optional
            Lengths of the dimensions; by default one, of all the elements that the bytes are.
        """
        return TypedBuffer(self, dtype, shape)

    def peek(self: Any, n: int = 64) -> bytes:
        """A copy of the first `n` bytes, or of fewer where there are no more, wherever they are.

        It waits until they are there.
        """
        size = self.bufsize
        return bytes(self.read(0, n if size < 0 else max(min(n, size), 0)))

    @property
    def base(self: Any) -> Optional[object]:
        """The Python object that the memory came from; None where it came from a library in C, or is our own."""
        base: Optional[object] = self._base
        return base

    owner = base


def _known_size(buffer: Any) -> int:
    size = buffer.bufsize
    if size < 0:
        raise Unsupported("expected a buffer of known size, found one whose size only its device knows")
    return int(size)


def _buffer_tensor(buffer: Any, dtype: Element, shape: Sequence[int], flags: int, sync: Any) -> int:
    lengths = (c_int64 * len(shape))(*shape)
    element = _c.DataType(*dtype)
    return made(
        lib.bowstring_buffer_to_tensor, buffer._handle, element, len(shape), lengths, byref(options(flags, sync))
    )


def _host_interface(self: Any) -> "dict[str, Any]":
    device = self.device
    if not device.is_cpu:
        raise AttributeError(f"expected memory of the CPU, found {device}: it has no __array_interface__")
    try:
        tensor = Tensor(self._tensor(0, None))
    except BowstringError as error:
        raise AttributeError(f"expected what is a tensor, found none: {error}") from error
    typestr = typestr_of(tensor.dtype)
    if typestr is None:
        raise AttributeError(f"expected elements that NumPy has, found {tensor.dtype}")
    return _interface(tensor, typestr)


class TypedBuffer(BytesAsArrow):
    """A buffer's bytes as elements with a shape: a tensor for other libraries. It keeps the buffer alive."""

    __slots__ = ("buffer", "dtype", "shape", "__weakref__")

    def __init__(self, buffer: Any, dtype: Any, shape: Union[None, int, Sequence[int]]) -> None:
        self.buffer = buffer
        self.dtype = element_of(dtype)
        _, bits, lanes = self.dtype
        size = _known_size(buffer)
        if shape is None:
            if 8 * size % (bits * lanes or 1):
                raise InvalidArgument(f"expected whole elements of {bits * lanes} bits, found {size} bytes")
            shape = 8 * size // (bits * lanes or 1)
        self.shape: "tuple[int, ...]" = (shape,) if isinstance(shape, int) else tuple(int(length) for length in shape)
        needed = (prod(self.shape) * bits * lanes + 7) // 8
        if min(self.shape, default=0) < 0 or needed > size:
            raise InvalidArgument(f"expected a shape of {size} bytes, found {self.shape}, which is {needed}")

    @property
    def device(self) -> Device:
        """Where the memory is."""
        found: Device = self.buffer.device
        return found

    @property
    def sync_event(self) -> int:
        """Address of the event to wait on, 0 when there is none."""
        return int(self.buffer.sync_event)

    def to_device(self, device: Any, *, stream: Any = "host", share: bool = True) -> "TypedBuffer":
        """The elements on another device, as `Buffer.to_device` has it."""
        return TypedBuffer(self.buffer.to_device(device, stream=stream, share=share), self.dtype, self.shape)

    def _elements(self) -> "tuple[Any, tuple[int, int, int], tuple[int, ...]]":
        return self.buffer, self.dtype, self.shape

    def _tensor(self, flags: int, sync: Any) -> int:
        return _buffer_tensor(self.buffer, self.dtype, self.shape, flags, sync)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: "Optional[tuple[int, int]]" = None,
        dl_device: "Optional[tuple[int, int]]" = None,
        copy: Optional[bool] = None,
    ) -> object:
        """A capsule with the elements as a read-only tensor, in place, as `Array.__dlpack__` has it."""
        return _produce(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> "tuple[int, int]":
        """DLPack's device type and number; the CPU's number is 0."""
        return _dlpack_device(self.device)

    @property
    def __cuda_array_interface__(self) -> "dict[str, Any]":
        return _cuda_interface(self)

    @property
    def __array_interface__(self) -> "dict[str, Any]":
        return _host_interface(self)

    def __repr__(self) -> str:
        return f"bowstring.TypedBuffer({self.dtype}, shape={self.shape}, device={str(self.device)!r})"
