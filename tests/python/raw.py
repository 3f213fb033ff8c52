"""Arrow structs built by hand, byte for byte, to be handed over: good ones and broken ones.

Everything that a struct points to ends right before a page that may not be touched, so that reading one byte too many
ends the process, and becomes unreadable as soon as it is released. Each vector runs in a process of its own.
"""

import ctypes
import faulthandler
import mmap
import os
import signal
import struct
import traceback
from ctypes import POINTER, byref, c_int, c_long, c_size_t, c_void_p
from dataclasses import dataclass, field

import bowstring_ctypes as bs
from bowstring_ctypes import lib

_libc = ctypes.CDLL(None)
_libc.mmap.restype, _libc.mmap.argtypes = c_void_p, [c_void_p, c_size_t, c_int, c_int, c_int, c_long]
_libc.mprotect.argtypes = [c_void_p, c_size_t, c_int]
_NO_ACCESS = 0


def _packer(code):
    return lambda *values: struct.pack(f"={len(values)}{code}", *values)


i8, i16, i32, i64, u8, f64 = (_packer(code) for code in "bhiqBd")


@dataclass
class At:
    """Bytes at an address that is `remainder` above a multiple of `align`."""

    data: bytes
    align: int
    remainder: int


@dataclass
class Node:
    """A node of a type and of an array. Buffers are NULL, bytes, bytes at a place, or a plain address."""

    format: str | bytes | None
    length: int = 0
    nulls: int = 0
    offset: int = 0
    buffers: list = field(default_factory=list)
    children: list = field(default_factory=list)
    dictionary: "Node | None" = None
    name: bytes | None = b""
    flags: int = 2
    metadata: bytes | At | None = None
    # Members that are set last, to break a struct.
    schema: dict = field(default_factory=dict)
    array: dict = field(default_factory=dict)
    # What only one of the two structs has; None is the same for both.
    array_children: list | None = None
    array_dictionary: "Node | bool | None" = None


def metadata(*pairs):
    """Key-value pairs as the C interface encodes them."""
    encoded = struct.pack("=i", len(pairs))
    for key, value in pairs:
        encoded += struct.pack("=i", len(key)) + key + struct.pack("=i", len(value)) + value
    return encoded


class Raw:
    """One schema and one array, who counts how often they are released."""

    def __init__(self, node, device=(1, -1), sync_event=None):
        self._regions, self._callbacks = [], []
        self.array_released = self.schema_released = self.inner_released = 0
        self._inner = self._callback(POINTER(c_void_p), self._on_inner)
        self.schema = self._schema(node)
        self.device_array = bs.ArrowDeviceArray(self._array(node), device[1], device[0], sync_event)
        array_release = self._callback(POINTER(bs.ArrowArray), self._on_array)
        schema_release = self._callback(POINTER(bs.ArrowSchema), self._on_schema)
        self.device_array.array.release, self.schema.release = array_release, schema_release
        for name, value in node.schema.items():
            setattr(self.schema, name, value)
        for name, value in node.array.items():
            setattr(self.device_array.array, name, value)

    def _callback(self, kind, function):
        self._callbacks.append(ctypes.CFUNCTYPE(None, kind)(function))
        return ctypes.cast(self._callbacks[-1], c_void_p).value

    def _on_inner(self, _):
        self.inner_released += 1

    def _on_array(self, array):
        assert array.contents.release
        array.contents.release = None
        self.array_released += 1
        self._forget("array")

    def _on_schema(self, schema):
        assert schema.contents.release
        schema.contents.release = None
        self.schema_released += 1
        self._forget("schema")

    def _forget(self, part):
        for owner, start, size in self._regions:
            if owner == part:
                assert _libc.mprotect(start, size, _NO_ACCESS) == 0

    def place(self, part, data):
        """Puts bytes right before a page without access, and says where."""
        align, remainder = 1, 0
        if isinstance(data, At):
            data, align, remainder = data.data, data.align, data.remainder
        room = -(-(len(data) + align) // mmap.PAGESIZE) * mmap.PAGESIZE
        start = _libc.mmap(None, room + mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, 0x22, -1, 0)
        assert start not in (None, c_void_p(-1).value)
        assert _libc.mprotect(start + room, mmap.PAGESIZE, _NO_ACCESS) == 0
        at = start + room - len(data)
        at -= (at - remainder) % align
        ctypes.memmove(at, data, len(data))
        self._regions.append((part, start, room))
        return at

    def _pointer(self, part, data):
        return data if data is None or isinstance(data, int) else self.place(part, data)

    def _list(self, part, pointers, kind):
        if not pointers:
            return None
        packed = struct.pack(f"={len(pointers)}Q", *[pointer or 0 for pointer in pointers])
        return ctypes.cast(self.place(part, packed), kind)

    def _schema(self, node):
        text = node.format.encode() if isinstance(node.format, str) else node.format
        made = bs.ArrowSchema(flags=node.flags, n_children=len(node.children), release=self._inner)
        made.format = None if text is None else self.place("schema", text + b"\0")
        made.name = None if node.name is None else self.place("schema", node.name + b"\0")
        made.metadata = self._pointer("schema", node.metadata)
        below = [self._struct("schema", self._schema(child), child.schema) for child in node.children]
        made.children = self._list("schema", below, POINTER(POINTER(bs.ArrowSchema)))
        if node.dictionary:
            at = self._struct("schema", self._schema(node.dictionary), node.dictionary.schema)
            made.dictionary = ctypes.cast(at, POINTER(bs.ArrowSchema))
        return made

    def _array(self, node):
        children = node.children if node.array_children is None else node.array_children
        made = bs.ArrowArray(node.length, node.nulls, node.offset, len(node.buffers), len(children))
        made.release = self._inner
        pointers = [self._pointer("array", data) for data in node.buffers]
        made.buffers = self._list("array", pointers, POINTER(c_void_p))
        below = [child and self._struct("array", self._array(child), child.array) for child in children]
        made.children = self._list("array", below, POINTER(POINTER(bs.ArrowArray)))
        dictionary = node.dictionary if node.array_dictionary is None else node.array_dictionary
        if dictionary:
            at = self._struct("array", self._array(dictionary), dictionary.array)
            made.dictionary = ctypes.cast(at, POINTER(bs.ArrowArray))
        return made

    def _struct(self, part, made, members):
        for name, value in members.items():
            setattr(made, name, value)
        return self.place(part, bytes(made))

    def is_untouched(self):
        """Nothing was taken, and nothing was released."""
        released = self.array_released + self.schema_released + self.inner_released
        return released == 0 and bool(self.schema.release) and bool(self.device_array.array.release)

    def release(self):
        """The caller's own release, of what is still its own; in the end each ran once, and no inner one did."""
        lib.bowstring_schema_release(byref(self.schema))
        lib.bowstring_device_array_release(byref(self.device_array))
        assert (self.array_released, self.schema_released, self.inner_released) == (1, 1, 0)


def in_child(function, *arguments):
    """Runs a function in a forked process; its failure, or its death, is a failure here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        report = b""
        try:
            function(*arguments)
        except BaseException:
            report = traceback.format_exc().encode()[-60000:]
        os.write(writer, report)
        os._exit(1 if report else 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        report = pipe.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    assert not os.WIFSIGNALED(status), f"died of {signal.Signals(os.WTERMSIG(status)).name}"
    assert os.WEXITSTATUS(status) == 0, report
