"""Faults of validation that were reported in public, as small vectors with the right verdict.

Each vector names the report it comes from as owner/repository#number. It is a kind of fault, not one input: where a
report told of data that was refused wrongly or read wrongly, the vector is good and stays so. Buffers end right before a
page without access, in a process of its own.
"""

from ctypes import c_void_p
from dataclasses import dataclass

import pytest

import support
import validate_calls
from bowstring_ctypes import lib
from raw import At, Node, f64, i8, i16, i32, i64, in_child, u8
from validate_arrays import Arena, Placed
from validate_calls import BOUNDS, FULL, HOST, SCHEMA, STRUCTURE, Listener

INT64_MAX = 2**63 - 1
E_ACUTE = b"\xc3\xa9"


@dataclass
class Vector:
    """An array, and what is wrong with it: rule, path, row, and the lowest level that sees it."""

    source: str
    node: Node
    fault: tuple | None = None
    level: int = FULL
    warning: str = ""


def ints(length, *values, **more):
    return Node("i", length, buffers=[more.pop("validity", None), i32(*values)], **more)


def text(format, length, offsets, data, validity=None, **more):
    return Node(format, length, buffers=[validity, offsets, data], **more)


def lists(format, length, *buffers, child, validity=None, **more):
    child.name = b"item"
    return Node(format, length, buffers=[validity, *buffers], children=[child], **more)


def runs(length, ends, values, **more):
    ends.name, values.name, ends.flags = b"run_ends", b"values", 0
    return Node("+r", length, children=[ends, values], **more)


def struct(length, child, validity=None, **more):
    child.name = b"a"
    return Node("+s", length, buffers=[validity], children=[child], **more)


def union(format, length, *buffers, children, **more):
    for i, child in enumerate(children):
        child.name = b"ab"[i : i + 1]
    return Node(format, length, buffers=list(buffers), children=children, **more)


def coded(length, indices, dictionary, validity=None, **more):
    return Node("c", length, buffers=[validity, indices], dictionary=dictionary, **more)


def inline(value, padding=b"\0"):
    return i32(len(value)) + value.ljust(12, padding)


def outline(length, prefix, index, offset):
    return i32(length) + prefix + i32(index, offset)


def views(length, made, *variadic, validity=None, format="vu", **more):
    sizes = i64(*map(len, variadic)) if variadic else None
    return Node(format, length, buffers=[validity, made, *variadic, sizes], **more)


WORDS = lambda: text("u", 2, i32(0, 1, 2), b"xy")
LONG = b"a value of thirty-two characters"

VECTORS = {
    "offsets that decrease under a null": Vector(
        "apache/arrow-rs#1071", text("u", 3, i32(2, 0, 2, 2), b"ab", validity=u8(2), nulls=2), ("B1", "$", 0)
    ),
    "offsets that decrease between values": Vector(
        "apache/arrow#12019", text("z", 3, i32(0, 3, 1, 5), b"abcde"), ("B1", "$", 1)
    ),
    "a sparse offset buffer under nulls is not null": Vector(
        "apache/arrow-rs#1072", text("u", 2, i32(0, 0, 2), b"ab", validity=u8(2), nulls=1)
    ),
    "dense offsets that decrease for a child": Vector(
        "apache/arrow#9794",
        union("+ud:0,1", 3, i8(0, 1, 0), i32(1, 0, 0), children=[ints(2, 7, 8), WORDS()]), ("B5", "$", 2),
    ),
    "dense offsets that repeat for a child": Vector(
        "apache/arrow-nanoarrow#176",
        union("+ud:0,1", 3, i8(0, 1, 0), i32(1, 0, 1), children=[ints(2, 7, 8), WORDS()]),
    ),
    "a child of a union with more values than an offset counts": Vector(
        "apache/arrow-rs#10847",
        union("+ud:0,1", 2, i8(0, 0), i32(0, 2**31 - 1), children=[Node("n", 2**31 + 1, -1), WORDS()]),
    ),
    "a negative offset into a union's child": Vector(
        "apache/arrow-rs#10845",
        union("+ud:0,1", 2, i8(0, 0), i32(0, -1), children=[Node("n", 2**31 + 1, -1), WORDS()]), ("B5", "$", 1),
    ),
    "a type id that no child has": Vector(
        "apache/arrow-rs#1444",
        union("+ud:0,1", 2, i8(0, 2), i32(0, 0), children=[ints(2, 7, 8), WORDS()]), ("B5", "$", 1),
    ),
    "a sparse union with a short child": Vector(
        "apache/arrow-rs#1444", union("+us:0,1", 3, i8(0, 1, 0), children=[ints(3, 7, 8, 9), WORDS()]),
        ("B4", "$.b", -1), STRUCTURE,
    ),
    "a slice of a sparse union, whose children are not sliced": Vector(
        "pola-rs/polars#29328",
        union("+us:0,1", 1, i8(0, 1), offset=1, children=[ints(2, 7, 8), WORDS()]),
    ),
    "a slice of a sparse union, whose children are": Vector(
        "pola-rs/polars#29327", union("+us:0,1", 1, i8(0, 1), offset=1, children=[ints(1, 8), WORDS()]),
        ("B4", "$.a", -1), STRUCTURE,
    ),
    "a character that two strings share": Vector(
        "apache/arrow-rs#2048", text("u", 2, i32(0, 1, 2), E_ACUTE), ("B8", "$", 0)
    ),
    "a character above the last one": Vector(
        "apache/arrow#9786", text("u", 2, i32(0, 1, 5), b"a\xf4\x90\x80\x80"), ("B8", "$", 1)
    ),
    "text of NULs": Vector("apache/arrow#9786", text("u", 1, i32(0, 4), bytes(4))),
    "bytes under a null that are no text": Vector(
        "apache/arrow#7596", text("u", 2, i32(0, 2, 3), b"\xff\xfea", validity=u8(2), nulls=1)
    ),
    "a bitmap that ends with the window": Vector(
        "apache/arrow-rs#7379", ints(3, *range(8), offset=5, validity=u8(0x5F), nulls=2)
    ),
    "no offsets for no strings": Vector("apache/arrow#36494", Node("U", 0, buffers=[None, None, None])),
    "no offsets for a string": Vector(
        "apache/arrow#36494", Node("U", 1, buffers=[None, None, b"a"]), ("A5", "$", -1), STRUCTURE
    ),
    "offsets of no bytes for no inner lists": Vector(
        "ClickHouse/ClickHouse#111101",
        lists("+l", 2, i32(0, 0, 0), child=lists("+l", 0, b"", child=Node("i", buffers=[None, None]))),
    ),
    "buffers that are NULL in an array without rows": Vector(
        "apache/arrow#40898", Node("z", 0, buffers=[None, i32(0), None])
    ),
    "values that are NULL": Vector(
        "apache/arrow#14876", Node("i", 2, buffers=[None, None]), ("A5", "$", -1), STRUCTURE
    ),
    "data that is NULL under empty values": Vector("apache/arrow#14875", text("z", 2, i32(0, 0, 0), None)),
    "data that is NULL under values": Vector(
        "apache/arrow#6803", text("z", 2, i32(0, 0, 3), None), ("A5", "$", -1), BOUNDS
    ),
    "a dictionary without values for no rows": Vector(
        "apache/arrow#6803", coded(0, None, Node("z", 0, buffers=[None, None, None]))
    ),
    "rows without a run": Vector(
        "apache/arrow-nanoarrow#518", runs(1, Node("i", buffers=[None, None]), Node("i", buffers=[None, None])),
        ("B7", "$.run_ends", -1), STRUCTURE,
    ),
    "no rows and no runs": Vector(
        "apache/arrow-nanoarrow#518", runs(0, Node("i", buffers=[None, None]), Node("i", buffers=[None, None]))
    ),
    "an offset to which no length can be added": Vector(
        "apache/arrow-nanoarrow#518", runs(7, ints(1, 7), ints(1, 1), offset=INT64_MAX), ("A1", "$", -1), STRUCTURE
    ),
    "run ends that do not ascend": Vector(
        "apache/arrow#34570", runs(5, ints(4, 2, 4, 2, 5), ints(4, 1, 2, 3, 4)), ("B7", "$.run_ends", 2)
    ),
    "a null among run ends, with no count": Vector(
        "apache/arrow#33641", runs(3, ints(2, 1, 3, validity=u8(1), nulls=-1), ints(2, 1, 2)), ("B7", "$.run_ends", -1)
    ),
    "run ends without memory": Vector(
        "apache/arrow#34831", runs(3, Node("i", 2, buffers=[None, None]), ints(2, 1, 2)),
        ("A5", "$.run_ends", -1), STRUCTURE,
    ),
    "runs that end early": Vector(
        "apache/arrow-go#992", runs(3, ints(2, 1, 4), ints(2, 1, 2), offset=2), ("B7", "$.run_ends", 1), BOUNDS
    ),
    "two runs with one end": Vector(
        "apache/arrow-go#992", runs(3, ints(3, 1, 1, 3), ints(3, 1, 2, 3)), ("B7", "$.run_ends", 1)
    ),
    "more values than runs": Vector("apache/arrow#47053", runs(3, ints(1, 3), ints(2, 1, 2))),
    "fewer values than runs": Vector(
        "apache/arrow#47053", runs(3, ints(2, 1, 3), ints(1, 1)), ("B7", "$.values", -1), STRUCTURE
    ),
    "offsets outside the window that mean nothing": Vector(
        "apache/arrow-nanoarrow#626",
        lists("+l", 1, i32(-7, 1, 2), offset=1, child=ints(2, 5, 6)),
    ),
    "a first offset below 0": Vector(
        "apache/arrow-nanoarrow#174", lists("+L", 2, i64(-1, 0, 1), child=ints(1, 5)), ("B1", "$", 0), BOUNDS
    ),
    "an unknown null count and no bitmap": Vector("apache/arrow-nanoarrow#942", ints(2, 1, 2, nulls=-1)),
    "a null and no bitmap": Vector(
        "apache/arrow-nanoarrow#855", ints(2, 1, 2, nulls=1), ("A5", "$", -1), STRUCTURE
    ),
    "a list view past its values": Vector(
        "apache/arrow-nanoarrow#710", lists("+vl", 2, i32(0, 1), i32(1, 2), child=ints(2, 5, 6)), ("B3", "$", 1)
    ),
    "a null list view past the values": Vector(
        "apache/arrow#37877", lists("+vl", 2, i32(0, 9), i32(1, 9), validity=u8(1), nulls=1, child=ints(2, 5, 6)),
        ("B3", "$", 1),
    ),
    "an empty list view past the values": Vector(
        "apache/arrow#37877", lists("+vL", 2, i64(0, 3), i64(1, 0), child=ints(2, 5, 6)), ("B3", "$", 1)
    ),
    "an empty list view at the end of the values": Vector(
        "apache/arrow#35345", lists("+vL", 2, i64(2, 0), i64(0, 2), child=ints(2, 5, 6))
    ),
    "an empty list view at a negative offset": Vector(
        "apache/arrow-go#1018", lists("+vl", 1, i32(-1), i32(0), child=ints(2, 5, 6)), ("B3", "$", 0)
    ),
    "no views": Vector("apache/arrow-go#994", views(0, None)),
    "a view into a buffer below 0": Vector(
        "apache/arrow-go#994", views(1, outline(32, LONG[:4], -1, 0), LONG), ("B2", "$", 0)
    ),
    "a view with another prefix": Vector(
        "apache/arrow-go#994", views(1, outline(32, b"aval", 0, 0), LONG), ("B2", "$", 0)
    ),
    "a short view with bytes behind it": Vector(
        "apache/arrow-go#994", views(2, inline(b"ok") + inline(b"no", b"!")), ("B2", "$", 1)
    ),
    "a long view of what is no text": Vector(
        "apache/arrow-go#994", views(1, outline(13, b"\xff" * 4, 0, 0), b"\xff" * 13), ("B8", "$", 0)
    ),
    "the same as binary": Vector(
        "apache/arrow-go#994", views(1, outline(13, b"\xff" * 4, 0, 0), b"\xff" * 13, format="vz")
    ),
    "a view whose offset and length add up to more than 31 bits": Vector(
        "apache/arrow-java#1217", views(1, outline(2**31 - 1, LONG[:4], 0, 2**31 - 1), LONG), ("B2", "$", 0)
    ),
    "a view of a null that leads nowhere": Vector(
        "apache/arrow-java#1218", views(1, outline(-5, LONG[:4], 77, -9), LONG, validity=u8(0), nulls=1)
    ),
    "an index past its dictionary": Vector(
        "AndreaBozzo/dataprof#609", coded(2, i8(0, 99), WORDS()), ("B6", "$", 1)
    ),
    "an index below 0": Vector("apache/arrow#48893", coded(2, i8(-1, 0), WORDS()), ("B6", "$", 0)),
    "an index past its dictionary under a null": Vector(
        "duckdb/duckdb#21083", coded(2, i8(0, 2), WORDS(), validity=u8(1), nulls=1)
    ),
    "indices without nulls to values with some": Vector(
        "duckdb/duckdb#21082", coded(2, i8(0, 1), ints(2, 5, 0, validity=u8(1), nulls=1))
    ),
    "a slice's nulls, counted in the slice": Vector(
        "duckdb/duckdb#23797",
        lists("+l", 2, i32(*range(9)), offset=6, validity=u8(0x80), nulls=1, child=ints(8, *range(8))),
    ),
    "a slice's nulls, counted before it": Vector(
        "NVIDIA/cudf#8738",
        lists("+l", 2, i32(*range(9)), offset=6, validity=u8(0x83), nulls=0, child=ints(8, *range(8))), ("A2", "$", -1),
    ),
    "a sliced struct with whole children": Vector(
        "pola-rs/polars#27079", struct(2, ints(3, 1, 2, 3), offset=1)
    ),
    "a struct with sliced children": Vector("pola-rs/polars#27079", struct(2, ints(2, 1, 2, 3, offset=1))),
    "a struct with more rows than its child": Vector(
        "ClickHouse/ClickHouse#106395", struct(64, ints(2, 1, 2)), ("B4", "$.a", -1), STRUCTURE
    ),
    "a slice of text on the whole offsets": Vector(
        "pola-rs/polars#29323", text("U", 2, i64(0, 2, 4, 6), b"aabbcc", offset=1)
    ),
    "numbers at an odd address": Vector(
        "pola-rs/polars#10403", Node("g", 1, buffers=[None, At(f64(1.5), 8, 1)]), warning="A6"
    ),
    "an offset of more than 32 bits": Vector(
        "NVIDIA/cudf#19176", Node("w:0", 3, offset=2**32 + 1, buffers=[None, None])
    ),
    "a last offset past the child's values": Vector(
        "apache/arrow#11753", lists("+l", 2, i32(0, 1, 3), child=ints(2, 5, 6)), ("B1", "$", 1), BOUNDS
    ),
    "an offset past the child's values, and back": Vector(
        "apache/arrow#6128", lists("+l", 3, i32(0, 9, 2, 2), child=ints(2, 5, 6)), ("B1", "$", 0)
    ),
    "offsets of a window that begins late": Vector(
        "apache/arrow-rs#810", text("u", 1, i32(9, 9, 0, 1), b"a", offset=2)
    ),
    "a fixed-size list before its values": Vector(
        "visgl/math.gl#119", lists("+w:2", 1, offset=-1, child=ints(4, *range(4))), ("A1", "$", -1), STRUCTURE
    ),
    "run ends of 16 bits that cover the rows": Vector(
        "apache/arrow#33641", runs(30000, Node("s", 1, buffers=[None, i16(32767)]), ints(1, 1))
    ),
}


class Odd(Placed):
    """As it is, with buffers that may lie at an odd address."""

    def _array(self, node):
        odd = {i: data for i, data in enumerate(node.buffers) if isinstance(data, At)}
        for i, data in odd.items():
            # The piece ends one byte earlier than its memory.
            assert (data.align, data.remainder) == (8, 1)
            node.buffers[i] = bytes(data.data) + bytes(7)
        return super()._array(node)


def check(vector):
    listener, arena, released = Listener(), Arena(64), 1
    placed = Odd(arena, vector.node, (released, released))
    assert listener.ask(SCHEMA, c_void_p(placed.schema))[0] == 0
    made, _ = validate_calls.type_of(placed.schema)
    for level in (STRUCTURE, BOUNDS, FULL):
        _, first, _ = listener.ask(HOST, c_void_p(placed.array), made, level=level)
        assert first == (vector.fault if vector.fault and level <= vector.level else None), level
        assert not vector.warning or vector.warning in [rule for rule, _, _ in listener.warnings()]
    lib.bowstring_type_release(made)


@pytest.mark.parametrize("name", VECTORS)
def test_report(name):
    in_child(check, VECTORS[name])


def test_figures():
    """How many reports there are."""
    support.figure("vectors of public reports on validation", len(VECTORS), 60)
    support.figure("reports that they come from", len({vector.source for vector in VECTORS.values()}), 40)
    assert sum(vector.fault is None for vector in VECTORS.values()) >= 20
