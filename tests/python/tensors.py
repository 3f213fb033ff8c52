"""DLPack by ctypes: its structs, tensors built by hand that count their deleter's calls, and capsules with them."""

import ctypes
import struct
from ctypes import CFUNCTYPE, POINTER, byref, c_int64, c_uint32, c_void_p
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import bowstring_ctypes as bs
import support
from bowstring_ctypes import DataType, call, lib, out
from dlpack import (  # noqa: F401: tests find all of it here
    LEGACY_NAME, LEGACY_USED, NAME, USED, USED_NAMES, DLDevice, DLTensor, Legacy, Versioned, capsule, dropped, name_of, pointer_in,
    rename, taken,
)
from raw import At, Raw

PHYSICAL, VALUES_ONLY, ALLOW_COPY, DROP_READ_ONLY = 1, 2, 4, 8
READ_ONLY, IS_COPIED = 1, 2
INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6


def options(flags=0, mode=bs.SYNC_NONE):
    """A pointer to options, NULL for the usual ones."""
    return byref(bs.TensorOptions(flags, bs.Sync(mode))) if flags or mode else None


# ---- what the library makes ----


@dataclass
class Look:
    """What a tensor says, in Python's words."""

    address: int
    shape: tuple
    strides: tuple
    dtype: tuple
    flags: int | None
    device: tuple


def struct_at(address, kind=Versioned):
    """The struct at a pointer."""
    return kind.from_address(address.value if isinstance(address, c_void_p) else address)


def look(address, kind=Versioned):
    """Reads a tensor, and checks what is true of every tensor of the library in CPU memory."""
    made = struct_at(address, kind)
    tensor = made.dl_tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    assert made.deleter
    assert bool(tensor.strides) == bool(tensor.shape) == (tensor.ndim > 0)
    dtype = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
    flags = None
    if kind is Versioned:
        assert (made.major, made.minor) == (1, 3)
        flags = made.flags
    device = (tensor.device.type, tensor.device.id)
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
    return Look((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, flags, device)


def raw_import(node, **more):
    """A struct by hand, and a handle on it, which has taken it."""
    raw = Raw(node, **more)
    handle = out("array_import", byref(raw.device_array), byref(raw.schema))
    return raw, handle


def to_tensor(handle, flags=0, mode=bs.SYNC_NONE):
    """A tensor of an array handle, which stays the caller's."""
    return out("array_to_tensor", handle, options(flags, mode))


def of(data, flags=0):
    """A tensor of what pyarrow has; nothing else keeps it."""
    handle = support.imported(data)
    try:
        return to_tensor(handle, flags)
    finally:
        support.release(handle)


def validity_of(data, flags=0):
    """The validity of what pyarrow has, and the bit where it starts; None when it has no bitmap."""
    handle = support.imported(data)
    made, bit = c_void_p(0xA5), c_int64(0xA5)
    try:
        call("array_validity_to_tensor", handle, options(flags), byref(made), byref(bit))
    finally:
        support.release(handle)
    return (made if made.value else None), bit.value


def release(*tensors):
    """Lets tensors go."""
    for tensor in tensors:
        lib.bowstring_tensor_release(tensor)


_KINDS = {INT: "i", UINT: "u", FLOAT: "f", BOOL: "b", COMPLEX: "c"}


def values(address, kind=Versioned):
    """A copy of a tensor's elements, read stride by stride: the slow way, which believes nothing but the struct."""
    seen = look(address, kind)
    dtype = np.dtype(f"{_KINDS[seen.dtype[0]]}{seen.dtype[1] // 8}")
    found = np.empty(seen.shape, dtype)
    for index in np.ndindex(seen.shape):
        at = seen.address + sum(i * step for i, step in zip(index, seen.strides)) * dtype.itemsize
        found[index] = np.frombuffer(ctypes.string_at(at, dtype.itemsize), dtype)[0]
    return found


def array_of(cell, kind=None, flags=0):
    """An array handle of a tensor, whose pointer `cell` is NULL afterwards. On failure it is as before, and so is what
    it leads to."""
    before, made = cell.value, c_void_p(0xA5)
    major = c_uint32.from_address(before).value if before else 0
    size = ctypes.sizeof(Versioned) if major == 1 else 0
    bytes_before = ctypes.string_at(before, size) if before else b""
    try:
        call("array_from_tensor", byref(cell), kind, options(flags), byref(made))
    except bs.BowstringError:
        assert not made.value and cell.value == before
        assert not before or ctypes.string_at(before, size) == bytes_before
        raise
    assert made.value and cell.value is None
    return made


def back(handle):
    """An array handle as pyarrow's array, fully validated; the handle is let go."""
    array, schema = support.exported(handle)
    support.release(handle)
    found = support.to_pyarrow(array, schema, pa.Array)
    support.validate(found)
    return found


# ---- tensors by hand ----


def compact(shape):
    """Row-major strides."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= max(length, 1)
    return strides


_DELETER = CFUNCTYPE(None, c_void_p)


class Made(Raw):
    """A tensor in memory of its own, which ends before a page without access and cannot be read after the deleter ran.

    `data` are bytes, bytes at a place, an address, or None for NULL; `shape` and `strides` are numbers, or None for NULL."""

    def __init__(
        self, data=struct.pack("=8q", *range(8)), dtype=(INT, 64, 1), shape=(4,), strides=compact, offset=0,
        version=(1, 3), device=(1, 0), flags=0, ndim=None, has_deleter=True,
    ):
        self._regions, self._callbacks, self.deleted = [], [], 0
        self.kind = Versioned if version else Legacy
        made = self.kind()
        if version:
            made.major, made.minor, made.flags = *version, flags
        if strides is compact:
            strides = compact(shape)
        tensor = made.dl_tensor
        tensor.data = self.place("tensor", data) if isinstance(data, (bytes, At)) else data
        tensor.device, tensor.dtype, tensor.byte_offset = DLDevice(*device), DataType(*dtype), offset
        tensor.ndim = ndim if ndim is not None else len(shape or strides or ())
        tensor.shape, tensor.strides = self._axes(shape), self._axes(strides)
        self._delete = _DELETER(self._on_delete)
        made.deleter = ctypes.cast(self._delete, c_void_p).value if has_deleter else None
        self.data = tensor.data
        self.address = self.place("tensor", bytes(made))
        self.cell = c_void_p(self.address)

    def _axes(self, numbers):
        at = self.place("tensor", struct.pack(f"={len(numbers)}q", *numbers)) if numbers else None
        return ctypes.cast(at, POINTER(c_int64))

    def _on_delete(self, tensor):
        assert tensor == self.address
        self.deleted += 1
        self._forget("tensor")

    def release(self):
        """The caller's own release, if the tensor is still its own."""
        let_go = lib.bowstring_tensor_release if self.kind is Versioned else lib.bowstring_legacy_tensor_release
        let_go(self.cell)


class Producer:
    """An object that hands out one tensor, as Python's array interface wants it."""

    def __init__(self, address, name=NAME):
        self._address, self._name = address, name
        self.asked, self.capsule = [], None

    def __dlpack__(self, **asked):
        self.asked.append(asked)
        self.capsule = capsule(self._address, self._name)
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def produced(data, **asked):
    """The versioned tensor that an object hands out."""
    return taken(data.__dlpack__(max_version=(1, 3), **asked))


def consumed(made, kind=None, flags=0, name=NAME):
    """An array handle of a capsule's tensor. A capsule whose tensor is refused keeps it and its name."""
    cell = c_void_p(pointer_in(made, name))
    if name == NAME:
        handle = array_of(cell, kind, flags)
        rename(made, USED)
        return handle
    wrapped = out("tensor_from_legacy", byref(cell), None)
    rename(made, LEGACY_USED)
    try:
        return array_of(wrapped, kind, flags)
    except bs.BowstringError:
        release(wrapped)
        raise
