"""The library through cffi in ABI mode: the installed declarations as they are, the installed library, no compiler."""

import ctypes
import os
import threading
from pathlib import Path

import cffi
import pytest

import bowstring_ctypes as bs
import support

PREFIX = Path(os.environ["BOWSTRING_LIBRARY"]).parents[1]

OFFSETS = [0, 2, 3]
NUMBERS = [1, 2, 3]
TEXT_OFFSETS = [0, 1, 3, 6]
TEXT = b"abbccc"
# A list's offsets, n's numbers, s's offsets and s's text, by their place among all buffers.
OWNED = {1: ("int32_t[]", OFFSETS), 4: ("int32_t[]", NUMBERS), 6: ("int32_t[]", TEXT_OFFSETS), 7: ("char[]", TEXT)}
N_BUFFERS = 8


@pytest.fixture(scope="module")
def ffi():
    """The installed declarations."""
    declared = cffi.FFI()
    declared.cdef((PREFIX / "include" / "bowstring.cdef.h").read_text())
    return declared


@pytest.fixture(scope="module")
def lib(ffi):
    """The installed library."""
    return ffi.dlopen(os.environ["BOWSTRING_LIBRARY"])


class Column:
    """A column of lists of structs whose every buffer has a Python object as its owner."""

    def __init__(self, ffi, lib):
        self.ffi, self.lib, self.error = ffi, lib, ffi.new("BowstringError *")
        self.memory = {i: ffi.new(kind, value) for i, (kind, value) in OWNED.items()}
        self.handles = {i: ffi.new_handle(("buffer", i)) for i in OWNED}
        self.released, self.threads = [], []
        self.let_go = ffi.callback("void(void *)", self._let_go)
        self.type = self.new("BowstringType *", "type_parse", b"list<struct<n: int32, s: utf8>>")

    def _let_go(self, owner):
        kind, i = self.ffi.from_handle(owner)
        assert kind == "buffer"
        self.released.append(i)
        self.threads.append(threading.get_ident())

    def call(self, name, *arguments):
        """Calls a function that can fail."""
        status = getattr(self.lib, f"bowstring_{name}")(*arguments, self.error)
        assert status == self.lib.BOWSTRING_OK, self.ffi.string(self.error.message).decode()

    def new(self, kind, name, *arguments):
        """Calls a function whose result comes last."""
        result = self.ffi.new(f"{kind}*")
        self.call(name, *arguments, result)
        assert result[0] != self.ffi.NULL
        return result[0]

    def buffers(self):
        """What from_buffers takes; the memory's owners are ours until then."""
        entries = self.ffi.new("BowstringOwnedBuffer[]", N_BUFFERS)
        for i, memory in self.memory.items():
            # cffi ends a char[] with a NUL, which is not part of the text.
            size = self.ffi.sizeof(memory) - (1 if OWNED[i][0] == "char[]" else 0)
            entries[i].data, entries[i].size_bytes = memory, size
            entries[i].owner, entries[i].release_owner = self.handles[i], self.let_go
        return entries

    def produced(self):
        """The column as a raw struct."""
        nodes = self.ffi.new("BowstringNode[]", [[2, 0, 0, 2], [3, 0, 0, 1], [3, 0, 0, 2], [3, 0, 0, 3]])
        entries, array = self.buffers(), self.ffi.new("struct ArrowDeviceArray *")
        place = self.ffi.NULL
        self.call("device_array_from_buffers", self.type, nodes, 4, entries, N_BUFFERS, place, array)
        for i in range(N_BUFFERS):
            assert entries[i].owner == self.ffi.NULL and entries[i].release_owner == self.ffi.NULL
        assert (array.device_type, array.device_id) == (self.lib.ARROW_DEVICE_CPU, -1)
        return array

    def close(self):
        """Lets the type go."""
        self.lib.bowstring_type_release(self.type)


@pytest.fixture
def column(ffi, lib):
    """A column whose owners all have to be gone in the end, each let go once."""
    made = Column(ffi, lib)
    yield made
    made.close()
    assert sorted(made.released) == sorted(OWNED)
    assert set(made.threads) == {threading.get_ident()}


def test_layouts_and_numbers_are_those_of_ctypes(ffi, lib):
    structs = {"Error": bs.Error, "Node": bs.Node, "OwnedBuffer": bs.OwnedBuffer, "Placement": bs.Placement}
    structs |= {"NodeInfo": bs.NodeInfo, "BufferInfo": bs.BufferInfo}
    kinds = {f"Bowstring{name}": kind for name, kind in structs.items()}
    kinds |= {f"struct {kind.__name__}": kind for kind in (bs.ArrowSchema, bs.ArrowArray, bs.ArrowDeviceArray)}
    for name, kind in kinds.items():
        assert ffi.sizeof(name) == ctypes.sizeof(kind), name
        for field, ours in ffi.typeof(name).fields:
            assert ours.offset == getattr(kind, field).offset, f"{name}.{field}"
    support.figure("layouts compared", len(kinds), 9)
    assert (lib.BOWSTRING_OK, lib.BOWSTRING_INTERNAL, lib.BOWSTRING_ROLE_DATA) == (bs.OK, bs.INTERNAL, bs.DATA)


def test_every_function_can_be_found(lib):
    assert [name for name in bs.FUNCTIONS if not callable(getattr(lib, name, None))] == []
    support.figure("functions found through cffi", len(bs.FUNCTIONS), 79)


def test_a_column_goes_round(ffi, lib, column):
    raw = column.produced()
    array = column.new("BowstringArray *", "array_import_typed", raw, column.type)
    assert raw.array.release == ffi.NULL

    counts = ffi.new("size_t[2]")
    column.call("array_count", array, counts, counts + 1)
    assert list(counts) == [4, N_BUFFERS]
    node = ffi.new("BowstringNodeInfo *", {"struct_size": ffi.sizeof("BowstringNodeInfo")})
    seen = []
    for i in range(counts[0]):
        column.call("array_node_info", array, i, node)
        seen.append((ffi.string(node.name), ffi.string(node.format), node.length, node.n_buffers))
    assert seen == [(b"", b"+l", 2, 2), (b"item", b"+s", 3, 1), (b"n", b"i", 3, 2), (b"s", b"u", 3, 3)]
    info = ffi.new("BowstringBufferInfo *", {"struct_size": ffi.sizeof("BowstringBufferInfo")})
    for i, memory in column.memory.items():
        column.call("array_buffer_info", array, i, info)
        assert info.data == memory and info.size_bytes == len(ffi.buffer(memory)) - (i == 7)
    assert (info.role, info.element.bits) == (lib.BOWSTRING_ROLE_DATA, 8)

    kept = column.new("BowstringBuffer *", "array_buffer", array, 4)
    exported, schema = ffi.new("struct ArrowDeviceArray *"), ffi.new("struct ArrowSchema *")
    column.call("array_export", array, exported, schema)
    lib.bowstring_array_release(array)
    assert column.released == []

    # The consumer's side: nothing but the frozen structs.
    item = exported.array.children[0]
    numbers = ffi.cast("const int32_t *", item.children[0].buffers[1])
    assert ffi.unpack(numbers, 3) == NUMBERS
    text = ffi.cast("const char *", item.children[1].buffers[2])
    assert text == column.memory[7] and ffi.unpack(text, 6) == TEXT
    assert ffi.string(schema.children[0].children[1].name) == b"s"
    exported.array.release(ffi.addressof(exported, "array"))
    schema.release(schema)
    assert exported.array.release == ffi.NULL and schema.release == ffi.NULL
    assert sorted(column.released) == [1, 6, 7]

    memory = ffi.new("BowstringBufferMemory *", {"struct_size": ffi.sizeof("BowstringBufferMemory")})
    column.call("buffer_info", kept, memory)
    assert memory.data == column.memory[4] and memory.size_bytes == 12
    into = ffi.new("int32_t[2]")
    column.call("buffer_read", kept, 4, into, 8, ffi.NULL)
    assert list(into) == NUMBERS[1:]
    lib.bowstring_buffer_release(kept)
    assert column.released[-1] == 4


def test_a_failed_call_takes_nothing(ffi, lib, column):
    # One row more than the offsets have.
    nodes = ffi.new("BowstringNode[]", [[3, 0, 0, 2], [3, 0, 0, 1], [3, 0, 0, 2], [3, 0, 0, 3]])
    entries, array = column.buffers(), ffi.new("struct ArrowDeviceArray *")
    status = lib.bowstring_device_array_from_buffers(
        column.type, nodes, 4, entries, N_BUFFERS, ffi.NULL, array, column.error
    )
    assert status == column.error.status == lib.BOWSTRING_INVALID_DATA
    assert ffi.string(column.error.path) == b"$" and ffi.string(column.error.message)
    assert array.array.release == ffi.NULL and column.released == []
    for i in OWNED:
        assert entries[i].owner == column.handles[i]
        entries[i].release_owner(entries[i].owner)
