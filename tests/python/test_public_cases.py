"""Faults that were reported in public against projects that speak these interfaces, as small vectors.

A name that starts with a letter and a number belongs to a report, which has that number in all of these tests.
`ACCEPTED` have the values that are right; `REFUSED` have the rule that they break; `LATER` are wrong only in what
buffers hold, which import does not look at: they must pass through unharmed.
"""

from ctypes import byref, c_int64
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
from bowstring_ctypes import INVALID_DATA, RELEASED, BowstringError, call, lib, out
from raw import At, Node, Raw, f64, i8, i16, i32, i64, in_child, metadata, u8


@dataclass
class Good:
    """A vector that is accepted."""

    node: Node
    values: list | None
    # Sizes in bytes that are derived, by buffer.
    sizes: dict = field(default_factory=dict)
    null_count: int = 0
    # Whether pyarrow reads the vector itself; some it refuses, some it misreads.
    reference: bool = True
    # Numbers of buffers that are exported, by node.
    n_buffers: list | None = None


def ints(count, *values, **more):
    return Node("i", count, buffers=[None, i32(*values)], **more)


def text(format, length, offsets, data, **more):
    return Node(format, length, buffers=[None, offsets, data], **more)


def bytes_of(count):
    return Node("c", count, buffers=[None, i8(*range(count))])


def words(*values):
    data = "".join(values).encode()
    ends = [0]
    for value in values:
        ends.append(ends[-1] + len(value.encode()))
    return text("u", len(values), i32(*ends), data)


def struct_of(length, child, **more):
    return Node("+s", length, buffers=more.pop("buffers", [None]), children=[child], **more)


def inline(value):
    return i32(len(value)) + value.ljust(12, b"\0")


def outline(length, prefix, index, offset):
    return i32(length) + prefix + i32(index, offset)


ALPHABET = b"abcdefghijklmnopqrstuvwxyz"
UNION = [ints(2, 7, 8), words("x", "y")]
WIDE_UNION = [ints(4, 1, 2, 3, 4), ints(4, 10, 20, 30, 40), ints(4, 100, 200, 300, 400)]
EXTENSION = metadata((b"ARROW:extension:name", b"x.y"))

ACCEPTED = {
    "A1a offsets that start at 3": Good(text("u", 2, i32(3, 5, 8), b"abcdefgh"), ["de", "fgh"], {2: 8}),
    "A1b the same as a slice": Good(text("u", 2, i32(0, 3, 5, 8), b"abcdefgh", offset=1), ["de", "fgh"], {2: 8}),
    "A1c the same with wide offsets": Good(text("U", 2, i64(3, 5, 8), b"abcdefgh"), ["de", "fgh"], {2: 8}),
    "A1d the same as lists": Good(
        Node("+l", 2, buffers=[None, i32(3, 5, 8)], children=[bytes_of(8)]), [[3, 4], [5, 6, 7]], {3: 8}
    ),
    "A2a no values and no buffers": Good(Node("i", buffers=[None, None]), [], {1: 0}),
    "A2b no strings and no offsets": Good(Node("u", buffers=[None] * 3), [], {1: 0, 2: 0}, reference=False),
    "A2c empty values without data": Good(text("z", 2, i32(0, 0, 0), None), [b"", b""], {2: 0}),
    "A2e a struct without children": Good(Node("+s", buffers=[None]), []),
    "A2e rows without children": Good(Node("+s", 5, buffers=[None]), [{}] * 5),
    "A5 nulls that nobody counted": Good(
        Node("i", 4, -1, buffers=[u8(0x0B), i32(1, 2, 99, 4)]), [1, 2, None, 4], null_count=1
    ),
    "A5 not counted and no bitmap": Good(Node("i", 2, -1, buffers=[None, i32(1, 2)]), [1, 2]),
    "A6a a slice of numbers": Good(ints(6, *range(10)[:8], offset=2), [2, 3, 4, 5, 6, 7], {1: 32}),
    "A6b a slice of booleans": Good(
        Node("b", 6, 0, 3, [None, u8(0xB4, 0x01)]), [False, True, True, False, True, True], {1: 2}
    ),
    "A6c a slice of booleans with nulls": Good(
        Node("b", 6, 1, 3, [u8(0xEF, 0x01), u8(0xB4, 0x01)]), [False, None, True, False, True, True], {0: 2, 1: 2}, 1
    ),
    "A6d only the window's nulls count": Good(
        Node("b", 6, -1, 3, [u8(0xE8, 0x01), u8(0xB4, 0x01)]), [False, None, True, False, True, True], {}, 1
    ),
    "A7a a slice of a struct": Good(struct_of(2, ints(3, 10, 20, 30), offset=1), [{"": 20}, {"": 30}]),
    "A7b on a slice of its child": Good(
        struct_of(2, ints(3, 0, 10, 20, 30, offset=1), offset=1), [{"": 20}, {"": 30}]
    ),
    "A7d with nulls of its own": Good(
        struct_of(2, ints(3, 10, 20, 30), offset=1, nulls=1, buffers=[u8(0x05)]), [None, {"": 30}], null_count=1
    ),
    "A7e with a child that is too long": Good(struct_of(1, ints(3, 10, 20, 30)), [{"": 10}]),
    "A8 decimals at half their alignment": Good(
        Node("d:19,2", 2, buffers=[None, At(i64(123, 0, -5, -1), 16, 8)]), [Decimal("1.23"), Decimal("-0.05")]
    ),
    "A8 numbers at an odd address": Good(Node("l", 2, buffers=[None, At(i64(7, -7), 8, 1)]), [7, -7]),
    "A8 offsets at an odd address": Good(text("u", 2, At(i32(0, 1, 3), 4, 1), b"abc"), ["a", "bc"], {2: 3}),
    "A17a views without variadic buffers": Good(
        Node("vu", 2, buffers=[None, inline(b"foo") + inline(b"baz"), None]), ["foo", "baz"], n_buffers=[3]
    ),
    "A17c a view with one": Good(
        Node("vu", 1, buffers=[None, outline(26, b"abcd", 0, 0), ALPHABET, i64(26)]),
        [ALPHABET.decode()], {1: 16, 2: 26, 3: 8}, n_buffers=[4],
    ),
    "A17f twelve bytes are inline, thirteen are not": Good(
        Node("vz", 2, buffers=[None, inline(ALPHABET[:12]) + outline(13, b"bcde", 0, 1), ALPHABET[:14], i64(14)]),
        [ALPHABET[:12], ALPHABET[1:14]], {2: 14},
    ),
    "A18 a sparse union": Good(Node("+us:0,1", 2, buffers=[i8(0, 1)], children=UNION), [7, "y"], n_buffers=[1, 2, 3]),
    "A18 a dense union": Good(
        Node("+ud:0,1", 2, buffers=[i8(0, 1), i32(0, 0)], children=UNION), [7, "x"], n_buffers=[2, 2, 3]
    ),
    "A18 an old sparse union": Good(
        Node("+us:0,1", 2, buffers=[None, i8(0, 1)], children=UNION), [7, "y"], n_buffers=[1, 2, 3]
    ),
    "A18 an old dense union": Good(
        Node("+ud:0,1", 2, buffers=[None, i8(0, 1), i32(0, 0)], children=UNION), [7, "x"], n_buffers=[2, 2, 3]
    ),
    "A18 nulls": Good(Node("n", 3, 3), [None] * 3, null_count=3, n_buffers=[0]),
    "A18 old nulls": Good(Node("n", 3, 3, buffers=[None]), [None] * 3, null_count=3, n_buffers=[0]),
    "A18 nulls that say they are none": Good(Node("n", 3, 0), [None] * 3, null_count=3, n_buffers=[0]),
    "A19a type ids that are not indices": Good(
        Node("+us:5,7,9", 4, buffers=[i8(5, 7, 9, 5)], children=WIDE_UNION), [1, 20, 300, 4]
    ),
    "A19f a slice of a dense union": Good(
        Node("+ud:5,7", 2, 0, 1, [i8(5, 7, 5), i32(0, 0, 1)], [ints(2, 1, 2), ints(1, 10)]), [10, 2]
    ),
    "A19g a slice of a sparse union": Good(
        Node("+us:5,7", 2, 0, 1, [i8(5, 7, 5)], [ints(3, 1, 2, 3), ints(3, 10, 20, 30)]), [20, 3]
    ),
    "A20a a slice of indices": Good(
        Node("c", 4, 0, 3, [None, i8(0, 1, 2, 2, 1, 0, 2)], dictionary=words("a", "b", "c")), ["c", "b", "a", "c"]
    ),
    "A20b a dictionary with an offset": Good(
        Node("c", 2, buffers=[None, i8(0, 1)], dictionary=text("u", 2, i32(0, 1, 2, 3), b"xab", offset=1)), ["a", "b"]
    ),
    "A20c an index under a null": Good(
        Node("c", 2, 1, buffers=[u8(0x01), i8(1, 99)], dictionary=words("a", "b")), ["b", None], null_count=1
    ),
    "A21 no name": Good(ints(1, 5, name=None), [5]),
    "A21 a child without a name": Good(struct_of(1, ints(1, 5, name=None)), [{"": 5}], reference=False),
    "A26 a lone offset that means nothing": Good(text("u", 0, i32(123), None), [], {2: 0}),
    "A26 an offset into offsets, and no values": Good(text("u", 0, i32(0, 1, 3, 5), b"xaabb", offset=1), []),
    "A26 a lone negative offset": Good(text("u", 0, i32(-7), None), [], {2: 0}),
    "A26 a lone offset of lists": Good(Node("+L", buffers=[None, i64(99)], children=[bytes_of(0)]), []),
    "A28 an extension without metadata": Good(ints(1, 5, metadata=EXTENSION), [5]),
    "A28 extension metadata without a name": Good(
        ints(1, 5, metadata=metadata((b"ARROW:extension:metadata", b"?"))), [5]
    ),
    "A28 an extension of a dictionary": Good(
        Node("c", 1, buffers=[None, i8(1)], dictionary=words("a", "b"), metadata=EXTENSION), ["b"]
    ),
    "A28 an extension of views": Good(Node("vu", 1, buffers=[None, inline(b"foo"), None], metadata=EXTENSION), ["foo"]),
    "A28 an extension of fixed lists": Good(
        Node("+w:2", 1, buffers=[None], children=[ints(2, 1, 2)], metadata=EXTENSION), [[1, 2]]
    ),
    "A29 a sparse union of nothing": Good(Node("+us:", buffers=[None]), []),
    "A29 a dense union of nothing": Good(Node("+ud:", buffers=[None, None]), []),
    "A29 lists of no width": Good(
        Node("+w:0", 3, 1, buffers=[u8(0x05)], children=[ints(0)]), [[], None, []], null_count=1
    ),
    "A29 values of no width": Good(Node("w:0", 3, buffers=[None, None]), [b""] * 3),
    "list views in any order": Good(
        Node("+vl", 3, buffers=[None, i32(2, 0, 2), i32(1, 2, 0)], children=[ints(3, 1, 2, 3)]),
        [[3], [1, 2], []], n_buffers=[3, 2],
    ),
    "run ends of 16 bits": Good(
        Node("+r", 5, 0, 1, children=[Node("s", 2, buffers=[None, i16(2, 6)]), words("a", "b")]),
        ["a", "b", "b", "b", "b"], n_buffers=[0, 2, 3],
    ),
    "fixed lists in a slice": Good(
        Node("+w:2", 1, 0, 1, [None], [Node("g", 4, buffers=[None, f64(1, 2, 3, 4)])]), [[3.0, 4.0]]
    ),
}

REFUSED = {
    "A2d a list of buffers that is NULL": ("A4", ints(0, array={"buffers": None})),
    "A5 fewer nulls than none": ("A2", Node("i", 4, -2, buffers=[u8(0x0B), i32(1, 2, 3, 4)])),
    "A5 more nulls than values": ("A2", Node("i", 4, 5, buffers=[u8(0x0B), i32(1, 2, 3, 4)])),
    "A7c a struct's child that is too short": ("B4", struct_of(2, ints(2, 10, 20), offset=1)),
    "A11a a format that is none": ("F1", Node("?", 1, buffers=[None, i32(1)])),
    "A11b a wrong number of buffers": ("A3", Node("i", 1, buffers=[None])),
    "A17b views without sizes": ("A3", Node("vu", 1, buffers=[None, inline(b"foo")])),
    "A18 a union with validity": ("A8", Node("+us:0,1", 2, buffers=[u8(3), i8(0, 1)], children=UNION)),
    "A18 a dense union with validity": ("A8", Node("+ud:0,1", 2, buffers=[u8(3), i8(0, 1), i32(0, 0)], children=UNION)),
    "A18 nulls with validity": ("A8", Node("n", 2, 2, buffers=[u8(0)])),
    "A19c one id twice": ("F5", Node("+us:5,5", 2, buffers=[i8(5, 5)], children=UNION)),
    "A19d an id that is too large": ("F5", Node("+us:128", 1, buffers=[i8(0)], children=[ints(1, 1)])),
    "A19d an id that is negative": ("F5", Node("+us:-1", 1, buffers=[i8(0)], children=[ints(1, 1)])),
    "A19e fewer ids than children": ("F5", Node("+us:0", 2, buffers=[i8(0, 0)], children=UNION)),
    "A19e more ids than children": ("F5", Node("+us:0,1,2", 2, buffers=[i8(0, 0)], children=UNION)),
    "A20d no dictionary in the array": (
        "A7", Node("c", 1, buffers=[None, i8(0)], dictionary=words("a"), array_dictionary=False)
    ),
    "A20d no dictionary in the schema": ("A7", Node("c", 1, buffers=[None, i8(0)], array_dictionary=words("a"))),
    "A20f indices that are no integers": ("S6", Node("f", 1, buffers=[None, i32(0)], dictionary=words("a"))),
    "A21 no format": ("S1", Node(None, 1, buffers=[None, i32(1)])),
    "A21 children that are NULL": ("S5", struct_of(1, ints(1, 5), schema={"children": None})),
    "A25 a negative length": ("A1", ints(-1, 5)),
    "A25 a negative offset": ("A1", ints(1, 5, offset=-1)),
    "A25 a negative number of buffers": ("A3", ints(1, 5, array={"n_buffers": -1})),
    "A25 one buffer for integers": ("A3", ints(1, 5, array={"n_buffers": 1})),
    "A25 an array's children that are NULL": ("A7", struct_of(1, ints(1, 5), array={"children": None})),
    "A25 a child that is NULL": ("A7", struct_of(1, ints(1, 5), array_children=[None])),
    "A25 a negative number of children": ("A7", struct_of(1, ints(1, 5), array={"n_children": -1})),
    "A25 one child for two": (
        "A7", Node("+s", 1, buffers=[None], children=[ints(1, 5), ints(1, 6)], array_children=[ints(1, 5)])
    ),
    "A25 an end that overflows": ("A1", Node("l", 2**62, 0, 2**62, [None, 0x10])),
    "A25 a size that overflows": ("A1", Node("l", 2**61, buffers=[None, 0x10])),
    "A25 a child's length that overflows": (
        "B4", Node("+w:2147483647", 2**40, buffers=[None], children=[ints(1, 5)])
    ),
    "A30 a negative number of pairs": ("S3", ints(1, 5, metadata=i32(-1))),
    "A30 a negative length of a key": ("S3", ints(1, 5, metadata=i32(1, -4))),
    "A30 a negative length of a value": ("S3", ints(1, 5, metadata=i32(1, 0, -1))),
    "values that are NULL": ("A5", Node("i", 1, buffers=[None, None])),
    "nulls without a bitmap": ("A5", Node("i", 1, 1, buffers=[None, i32(1)])),
    "a union with nulls": ("A2", Node("+us:0,1", 2, 1, buffers=[i8(0, 1)], children=UNION)),
    "a list without its child": ("F5", Node("+l", 1, buffers=[None, i32(0, 0)])),
    "a map of something else": ("F5", Node("+m", 1, buffers=[None, i32(0, 0)], children=[ints(0)])),
    "run ends with nulls": (
        "B7", Node("+r", 1, children=[Node("i", 1, 1, buffers=[u8(0), i32(1)]), ints(1, 5)])
    ),
    "run ends of 8 bits": ("F5", Node("+r", 1, children=[Node("c", 1, buffers=[None, i8(1)]), ints(1, 5)])),
    "a child that was released": ("A7", struct_of(1, ints(1, 5, array={"release": None}))),
    "a schema's child that was released": ("S5", struct_of(1, ints(1, 5, schema={"release": None}))),
    "a fixed list's child that is too short": ("B4", Node("+w:2", 2, buffers=[None], children=[ints(3, 1, 2, 3)])),
}
TIMES = ("tsu:UTC", "tsu:", "tss:+05:30", "tsn:America/Argentina/Buenos_Aires", "tsm:Etc/GMT+5", "tsu:Nowhere/Land")
NO_FORMATS = {
    "F1": ("", "ii", "i ", "+x", "vx", "+", "n0"),
    "F2": ("d:", "d:5", "d:0,0", "d:39,0", "d:5,2,48", "d:19,2,64", "d:5,x"),
    "F3": ("+w:-1", "+w:", "+w:3x", "+w:99999999999", "w:-1", "w: 3", "w", "w:"),
    "F4": ("tsu", "tsx:", "ts", "tdX", "ttx", "tD", "ti", "tix"),
    "F5": ("+us", "+us:0,", "+ud:,", "+ud:0;1", "+us:0,1 "),
}
LATER = {
    "A5 a null count that is wrong": Node("i", 4, 2, buffers=[u8(0x0B), i32(1, 2, 3, 4)]),
    "A17d a view into a buffer that is not there": Node(
        "vu", 1, buffers=[None, outline(26, b"abcd", 1, 0), ALPHABET, i64(26)]
    ),
    "A17e a view past the end": Node("vu", 1, buffers=[None, outline(26, b"fghi", 0, 5), ALPHABET, i64(26)]),
    "A17g a view of negative length": Node("vu", 1, buffers=[None, outline(-1, b"abcd", 0, 0), ALPHABET, i64(26)]),
    "A19b a type id that nobody declared": Node("+us:5,7", 1, buffers=[i8(6)], children=[ints(1, 1), ints(1, 2)]),
    "A20e an index out of range": Node("c", 1, buffers=[None, i8(5)], dictionary=words("a", "b")),
}


def cases(table):
    return pytest.mark.parametrize("name", table)


def importing(vector):
    return out("array_import", byref(vector.device_array), byref(vector.schema))


def check_accepted(good):
    if good.reference:
        reference = Raw(good.node)
        assert support.to_pyarrow(reference.device_array, reference.schema, pa.Array).to_pylist() == good.values
        reference.release()
    vector = Raw(good.node)
    original = support.addresses(vector.device_array.array)
    unsized = importing(vector)
    assert not vector.schema.release and not vector.device_array.array.release
    handle = out("array_resolve_sizes", unsized, None)
    infos = support.buffer_infos(handle)
    assert {k: infos[k].size_bytes for k in good.sizes} == good.sizes
    nulls = c_int64()
    call("array_null_count", handle, None, byref(nulls))
    assert nulls.value == good.null_count
    array, schema = support.exported(handle)
    given_out = support.addresses(array.array)
    if good.n_buffers:
        assert [node[3] for node in support.numbers(array.array)] == good.n_buffers
    for info, address in zip(infos, given_out, strict=True):
        assert address == info.data if info.size_bytes or info.role == bs.VALIDITY else address
        assert info.data is None or info.data in original
    if good.node.format in "uz" and not good.node.length:
        assert i32(0) == bytes(bs.ctypes.string_at(given_out[1], 4)) or good.node.buffers[1]
    if good.node.metadata:
        assert bs.ctypes.string_at(schema.metadata, len(good.node.metadata)) == good.node.metadata
    result = support.to_pyarrow(array, schema, pa.Array)
    assert result.to_pylist() == good.values
    assert vector.array_released == 0
    support.release(unsized, handle)
    del result
    vector.release()
    assert support.all_gone()


def refused(vector):
    """The error of an import that takes nothing."""
    with pytest.raises(BowstringError) as caught:
        importing(vector)
    assert vector.is_untouched() and support.all_gone()
    return caught.value


def check_refused(rule, node):
    vector = Raw(node)
    error = refused(vector)
    assert (error.status, error.rule) == (INVALID_DATA, rule), error
    assert "expected" in error.message and "found" in error.message, error
    assert error.path.startswith("$")
    vector.schema.n_children, vector.device_array.array.n_children = 0, 0
    vector.release()


def check_later(node):
    vector = Raw(node)
    unsized = importing(vector)
    handle = out("array_resolve_sizes", unsized, None)
    array, schema = support.exported(handle)
    assert support.text_of_array(handle)
    support.release(unsized, handle)
    lib.bowstring_device_array_release(byref(array))
    lib.bowstring_schema_release(byref(schema))
    vector.release()
    assert support.all_gone()


@cases(ACCEPTED)
def test_accepted(name):
    in_child(check_accepted, ACCEPTED[name])


@cases(REFUSED)
def test_refused(name):
    in_child(check_refused, *REFUSED[name])


@cases(LATER)
def test_left_to_validation(name):
    in_child(check_later, LATER[name])


@pytest.mark.parametrize("rule,format", [(rule, text) for rule, texts in NO_FORMATS.items() for text in texts])
def test_no_formats(rule, format):
    in_child(check_refused, rule, Node(format, 1, buffers=[None, i64(0, 0)]))


@pytest.mark.parametrize("format", TIMES)
def test_a27_time_zones(format):
    def check():
        zone = format.partition(":")[2]
        vector = Raw(Node(format, 1, buffers=[None, i64(1)]))
        handle = importing(vector)
        assert support.node_infos(handle)[0].format == format.encode()
        result = support.to_pyarrow(*support.exported(handle), pa.Array)
        assert (result.type.tz or "") == zone and result.cast(pa.int64()).to_pylist() == [1]
        support.release(handle)
        del result
        vector.release()

    in_child(check)


@pytest.mark.parametrize("format,width", [("tiM", 4), ("tiD", 8), ("tin", 16)])
def test_a27_intervals(format, width):
    def check():
        vector = Raw(Node(format, 3, buffers=[None, bytes(3 * width)]))
        handle = importing(vector)
        info = support.buffer_infos(handle)[1]
        assert info.size_bytes == 3 * width and info.n_elements == 3
        assert info.element.bits * info.element.lanes == 8 * width
        support.release(handle)
        vector.release()

    in_child(check)


METADATA = {
    "bytes that are no text": metadata((b"k", b"\xff\0\xfe")),
    "an empty key and an empty value": metadata((b"", b"")),
    "one key twice": metadata((b"a", b"1"), (b"b", b"2"), (b"a", b"3")),
    "an odd address": At(metadata((b"key", b"value")), 4, 1),
    "no pairs": metadata(),
}


@cases(METADATA)
def test_a30_metadata(name):
    def check():
        given = METADATA[name]
        wanted = given.data if isinstance(given, At) else given if given != metadata() else b""
        vector = Raw(ints(1, 5, metadata=given))
        kind = out("type_import", byref(vector.schema))
        info, schema = bs.TypeNodeInfo(), bs.ArrowSchema()
        call("type_node_info", kind, 0, byref(info))
        call("type_export", kind, byref(schema))
        assert info.metadata_bytes == len(wanted)
        for address in (info.metadata, schema.metadata):
            assert address is None if not wanted else bs.ctypes.string_at(address, len(wanted)) == wanted
        lib.bowstring_schema_release(byref(schema))
        lib.bowstring_type_release(kind)
        vector.release()
        assert support.all_gone()

    in_child(check)


def test_a1e_offsets_beyond_the_child():
    def check():
        vector = Raw(Node("+l", 2, buffers=[None, i32(3, 5, 8)], children=[bytes_of(5)]))
        handle = importing(vector)
        with pytest.raises(BowstringError) as caught:
            out("array_resolve_sizes", handle, None)
        assert (caught.value.status, caught.value.rule) == (INVALID_DATA, "B1")
        assert "5" in caught.value.message and "8" in caught.value.message
        support.release(handle)
        vector.release()

    in_child(check)


@pytest.mark.parametrize("part", ["array", "schema"])
def test_a11c_released_before(part):
    def check():
        vector = Raw(ints(1, 5))
        release = lib.bowstring_schema_release if part == "schema" else lib.bowstring_device_array_release
        release(byref(vector.schema if part == "schema" else vector.device_array))
        with pytest.raises(BowstringError) as caught:
            importing(vector)
        assert caught.value.status == RELEASED
        assert vector.array_released + vector.schema_released == 1
        vector.release()

    in_child(check)


def test_a21_a_name_that_is_no_text():
    def check():
        vector = Raw(struct_of(1, ints(1, 5, name=b"\xff\xfe")))
        handle = importing(vector)
        assert support.node_infos(handle)[1].name == b"\xff\xfe"
        support.release(handle)
        vector.release()

    in_child(check)


def test_the_guards_see_reads_too_many_and_too_late():
    def read(after_release):
        vector = Raw(ints(1, 5))
        at = vector.device_array.array.buffers[1]
        assert bs.ctypes.string_at(at, 4) == i32(5)
        if after_release:
            vector.release()
        bs.ctypes.string_at(at, 4 if after_release else 5)

    for after_release in (False, True):
        with pytest.raises(AssertionError, match="died of SIGSEGV"):
            in_child(read, after_release)


def test_figures():
    support.figure("public vectors accepted", len(ACCEPTED) + len(METADATA) + len(TIMES), 65)
    support.figure("public vectors refused", len(REFUSED) + sum(map(len, NO_FORMATS.values())), 78)
