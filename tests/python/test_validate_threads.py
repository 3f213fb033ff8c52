"""Arrays that are large enough to be shared among threads: the first bad row is the same for any number of them.

And arrays of which only the very last row is bad, by one, at lengths around those of blocks.
"""

import ctypes
import struct
from ctypes import byref, c_void_p

import pytest

import bowstring_ctypes as bs
import support
import validate_calls
from bowstring_ctypes import lib
from raw import Node
from validate_calls import HOST, Options

# Above this many rows two threads share a node, above twice as many three do.
ROWS = (1 << 19) + 77
BAD = (ROWS - 3, ROWS // 2 + 1, ROWS // 2 - 1, 5)


def ascending(code, rows=ROWS):
    return bytearray(struct.pack(f"={rows + 1}{code}", *range(rows + 1)))


def child(format="c"):
    return Node(format, ROWS, buffers=[None, bytearray(8 * ROWS)], name=b"a")


# A valid array, its buffer that is changed, bytes of a row there, what to write, and the rule.
CASES = {
    "times": (Node("tts", ROWS, buffers=[None, bytearray(4 * ROWS)]), 1, 4, struct.pack("=i", 86_400), "B8"),
    "dates": (Node("tdm", ROWS, buffers=[None, bytearray(8 * ROWS)]), 1, 8, struct.pack("=q", 1), "B8"),
    "decimals": (Node("d:3,0", ROWS, buffers=[None, bytearray(16 * ROWS)]), 1, 16, struct.pack("=qq", 1000, 0), "B8"),
    "text": (Node("u", ROWS, buffers=[None, ascending("i"), bytearray(b"x" * ROWS)]), 2, 1, b"\xff", "B8"),
    "offsets": (
        Node("Z", ROWS, buffers=[None, ascending("q"), bytearray(ROWS)]), 1, 8, struct.pack("=q", 1 << 40), "B1",
    ),
    "views": (Node("vu", ROWS, buffers=[None, bytearray(16 * ROWS), None]), 1, 16, struct.pack("=i12x", -1), "B2"),
    "indices": (Node("C", ROWS, buffers=[None, bytearray(ROWS)], dictionary=Node("n", 2, 2)), 1, 1, b"\x02", "B6"),
    "list views": (
        Node("+vl", ROWS, buffers=[None, bytearray(4 * ROWS), bytearray(4 * ROWS)], children=[child()]),
        1, 4, struct.pack("=i", ROWS + 1), "B3",
    ),
    "type ids": (Node("+us:0", ROWS, buffers=[bytearray(ROWS)], children=[child()]), 0, 1, b"\x01", "B5"),
    "dense offsets": (
        Node("+ud:0", ROWS, buffers=[bytearray(ROWS), bytearray(4 * ROWS)], children=[child()]),
        1, 4, struct.pack("=i", -1), "B5",
    ),
}


class Large:
    """A node as structs above buffers that stay where they are."""

    def __init__(self, node):
        self._kept = []
        self._schema_release = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: None)
        self._release = ctypes.cast(self._schema_release, c_void_p).value
        self.schema, self.array = self._make(node)

    def _keep(self, made):
        self._kept.append(made)
        return made

    def _pointers(self, structs, kind):
        pointer = ctypes.POINTER(kind)
        return self._keep((pointer * len(structs))(*map(ctypes.pointer, structs))) if structs else None

    def _address(self, data):
        if data is None:
            return None
        return ctypes.addressof(self._keep((ctypes.c_char * len(data)).from_buffer(data)))

    def _make(self, node):
        format = self._keep(ctypes.create_string_buffer(node.format.encode()))
        name = self._keep(ctypes.create_string_buffer(node.name))
        below = [self._make(one) for one in node.children]
        schema = self._keep(bs.ArrowSchema(
            format=ctypes.addressof(format), name=ctypes.addressof(name), flags=node.flags, n_children=len(below),
            children=self._pointers([one for one, _ in below], bs.ArrowSchema), release=self._release,
        ))
        array = self._keep(bs.ArrowArray(node.length, node.nulls, node.offset, len(node.buffers), len(below)))
        array.buffers = self._keep((c_void_p * len(node.buffers))(*map(self._address, node.buffers)))
        array.children = self._pointers([one for _, one in below], bs.ArrowArray)
        array.release = self._release
        if node.dictionary:
            values_schema, values = self._make(node.dictionary)
            schema.dictionary, array.dictionary = ctypes.pointer(values_schema), ctypes.pointer(values)
        return schema, array


def verdict(large, kind, threads):
    error = bs.Error()
    status = HOST(byref(large.array), kind, byref(Options(threads=threads)), byref(error))
    return (validate_calls.rule_name(error.rule), error.row) if status else None


@pytest.mark.parametrize("name", CASES)
def test_threads(name):
    """From the last bad row to the first, all of which stay bad."""
    node, buffer, width, bad, rule = CASES[name]
    large = Large(node)
    kind, _ = validate_calls.type_of(byref(large.schema))
    for threads in (1, 2, 7):
        assert verdict(large, kind, threads) is None
    for row in BAD:
        node.buffers[buffer][row * width : (row + 1) * width] = bad
        for threads in (0, 1, 2, 3, 7):
            assert verdict(large, kind, threads) == (rule, row), threads
    lib.bowstring_type_release(kind)
    support.figure(f"threads on {name}", len(BAD), 4)


def one_too_many(rows):
    """Arrays whose last row leads one step too far, and the rule."""
    values = Node("n", rows, -1, name=b"a")
    zeroes = bytearray(4 * rows - 4)
    yield Node("+ud:0", rows, buffers=[bytearray(rows), zeroes + struct.pack("=i", rows)], children=[values]), "B5"
    ends = bytearray(4 * rows) + struct.pack("=i", rows + 1)
    yield Node("+l", rows, buffers=[None, ends], children=[values]), "B1"
    ones = bytearray(4 * rows - 4) + struct.pack("=i", 1)
    last = zeroes + struct.pack("=i", rows)
    yield Node("+vl", rows, buffers=[None, last, ones], children=[values]), "B3"
    yield Node("i", rows, buffers=[None, zeroes + struct.pack("=i", 7)], dictionary=Node("n", 7, 7)), "B6"


@pytest.mark.parametrize("rows", (1, 31, 32, 33, 64, 100, 1023, 1024, 1025, 4095, 4096, 4097, 9000))
def test_last_row(rows):
    """One step less is good, and so are the rows before."""
    for node, rule in one_too_many(rows):
        large = Large(node)
        kind, _ = validate_calls.type_of(byref(large.schema))
        assert verdict(large, kind, 1) == (rule, rows - 1)
        last = node.buffers[1][-4:]
        node.buffers[1][-4:] = struct.pack("=i", struct.unpack("=i", last)[0] - 1)
        assert verdict(large, kind, 1) is None
        lib.bowstring_type_release(kind)
