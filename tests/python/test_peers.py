"""What makes other libraries crash, over-read, or lose values without a word."""

from ctypes import byref, c_int64, sizeof

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
from bowstring_ctypes import INVALID_ARGUMENT, INVALID_DATA, BowstringError, call, lib, out
from raw import Node, Raw, i8, i32, i64, in_child, u8
from test_public_cases import ALPHABET, UNION, check_refused, importing, inline, ints, outline, refused
from test_public_cases import struct_of, text, words

INT_MAX = 2**31 - 1

REFUSED = {
    "one buffer for a string": ("A3", text("u", 1, i32(0, 1), b"a", array={"n_buffers": 1})),
    "no buffer for a view": ("A3", Node("vu", 1)),
    "one buffer for a view": ("A3", Node("vu", 1, buffers=[None])),
    "more buffers than a list has": ("A3", Node("+l", 1, buffers=[None, i32(0, 0), None], children=[ints(0)])),
    "a buffer for run ends": ("A3", Node("+r", buffers=[None], children=[ints(0), ints(0)], array={"n_buffers": 2})),
    "sizes of variadic buffers that are NULL": (
        "A5", Node("vu", 1, buffers=[None, outline(26, b"abcd", 0, 0), ALPHABET, None])
    ),
    "values that are NULL in the last of many nodes": (
        "A5", struct_of(1, struct_of(1, Node("+w:1", 1, buffers=[None], children=[Node("i", 1, buffers=[None, None])])))
    ),
    "so many pairs that reading one is too many": ("S3", ints(1, 5, metadata=i32(INT_MAX))),
    "a key without an end": ("S3", ints(1, 5, metadata=i32(1, INT_MAX))),
    "a value without an end": ("S3", ints(1, 5, metadata=i32(1, 0, INT_MAX))),
    "pairs that together are too long": ("S3", ints(1, 5, metadata=i32(2, 0, 0, INT_MAX))),
    "a format that is no text": ("S1", Node(b"\xff\xfe", 1, buffers=[None, i32(1)])),
    "a format without an end": ("S1", Node("ts" * 40_000, 1, buffers=[None, i32(1)])),
    "a name without an end": ("S2", ints(1, 5, name=b"x" * (2**20 + 1))),
    "offsets that are NULL": ("A5", text("u", 1, None, b"a")),
    "type ids that are NULL": ("A5", Node("+us:0,1", 2, buffers=[None], children=UNION)),
    "a list view without sizes": ("A5", Node("+vl", 1, buffers=[None, i32(0), None], children=[ints(0)])),
    "a negative number of schema children": ("S5", struct_of(1, ints(1, 5), schema={"n_children": -1})),
    "so many schema children that a list of them cannot be": (
        "", Node("+s", schema={"n_children": 2**60}, buffers=[None])
    ),
    "a child of integers": ("F5", Node("i", 1, buffers=[None, i32(1)], children=[ints(1, 5)])),
    "a length that overflows with the offset": ("A1", Node("n", 2**62, 0, 2**62)),
    "a bitmap's end that overflows": ("A1", Node("b", 2**63 - 1, 0, 1, [None, 0x10])),
    "one null more than values, deep down": ("A2", struct_of(1, Node("i", 1, 2, buffers=[u8(0), i32(5)]))),
    "run ends shorter than values": (
        "A7", Node("+r", 1, children=[ints(1, 1), ints(1, 5)], array_children=[ints(1, 1)])
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    in_child(check_refused, *REFUSED[name])


def passed_on(node, edit=None):
    """The vector, through us, as raw structs; the vector is still alive."""
    vector = Raw(node)
    if edit:
        edit(vector)
    handle = importing(vector)
    array, schema = support.exported(handle)
    support.release(handle)
    return vector, array, schema


def check_values(vector, array, schema, values, kind=pa.Array):
    result = support.to_pyarrow(array, schema, kind)
    assert result.to_pylist() == values
    del result
    vector.release()
    assert support.all_gone()


def test_a_sliced_struct_goes_out_as_a_record_batch():
    """pyarrow refuses an offset at the root of a batch, and libcudf ignores it."""
    def check():
        vector, array, schema = passed_on(struct_of(2, ints(3, 10, 20, 30, name=b"a"), offset=1))
        assert support.numbers(array.array)[0] == (2, 0, 0, 1) and support.numbers(array.array)[1][2] == 1
        check_values(vector, array, schema, [{"a": 20}, {"a": 30}], pa.RecordBatch)

    in_child(check)


def test_null_counts_go_out_counted():
    """libcudf takes -1 for none."""
    def check():
        inner = Node("i", 4, -1, 1, [u8(0x0A), i32(0, 1, 2, 3, 4)], name=b"a")
        vector, array, schema = passed_on(struct_of(3, inner, offset=1, nulls=-1, buffers=[u8(0x0D)]))
        # The offset stays where the struct has nulls of its own.
        assert [node[1] for node in support.numbers(array.array)] == [1, 2]
        check_values(vector, array, schema, [None, {"a": 3}, {"a": None}])

    in_child(check)


def test_unions_that_did_not_count_their_nulls():
    def check():
        vector, array, schema = passed_on(Node("+us:0,1", 2, -1, buffers=[i8(0, 1)], children=UNION))
        assert array.array.null_count == 0
        check_values(vector, array, schema, [7, "y"])

    in_child(check)


def test_an_offset_into_offsets_that_are_not_there():
    """Nobody can follow it, so it does not go out."""
    def check():
        vector, array, schema = passed_on(Node("u", 0, 0, 1, [None, None, None]))
        assert array.array.offset == 0 and array.array.buffers[1]
        check_values(vector, array, schema, [])

    in_child(check)


def test_reserved_members_that_nobody_zeroed():
    def edit(vector):
        vector.device_array.reserved[:] = [-1, 7, 2**62]

    def check():
        vector, array, schema = passed_on(ints(1, 5), edit)
        check_values(vector, array, schema, [5])

    in_child(check)


def test_names_and_sizes_go_out_though_they_came_as_null():
    def check():
        empty = Node("u", buffers=[None] * 3, name=None)
        vector, array, schema = passed_on(Node("+s", buffers=[None], children=[empty, Node("i", buffers=[None, None])]))
        assert None not in support.addresses(array.array)[2:4] + support.addresses(array.array)[5:]
        check_values(vector, array, schema, [], pa.RecordBatch)

    in_child(check)


@pytest.mark.parametrize("length,offset", [(2**56, 0), (3, 2**32 + 1), (2**31, 5)])
def test_numbers_beyond_32_bits_stay_whole(length, offset):
    def check():
        vector = Raw(Node("l", length, 0, offset, [None, 0x10]))
        handle = importing(vector)
        (info,), nulls = support.node_infos(handle), c_int64()
        assert (info.length, info.offset) == (length, offset)
        assert support.buffer_infos(handle)[1].size_bytes == 8 * (length + offset)
        call("array_null_count", handle, None, byref(nulls))
        part = out("array_slice", handle, length - 1, 1)
        array, schema = support.exported(part)
        assert nulls.value == 0 and array.array.offset == offset + length - 1
        for start, count in ((length, 1), (-1, 1), (0, length + 1), (0, -1), (2**63 - 1, 2**63 - 1)):
            with pytest.raises(BowstringError) as caught:
                out("array_slice", handle, start, count)
            assert caught.value.status == INVALID_ARGUMENT
        support.release(handle, part)
        lib.bowstring_device_array_release(byref(array))
        lib.bowstring_schema_release(byref(schema))
        vector.release()

    in_child(check)


def test_a_dictionary_of_a_dictionary():
    def check():
        inner = Node("c", 2, buffers=[None, i8(1, 0)], dictionary=words("a", "b"))
        vector = Raw(Node("c", 2, buffers=[None, i8(0, 1)], dictionary=inner))
        handle = importing(vector)
        assert [info.format for info in support.node_infos(handle)] == [b"c", b"c", b"u"]
        first = out("array_dictionary", handle)
        second = out("array_dictionary", first)
        assert support.to_pyarrow(*support.exported(second), pa.Array).to_pylist() == ["a", "b"]
        support.release(handle, first, second)
        vector.release()
        assert support.all_gone()

    in_child(check)


def test_view_buffers_survive_every_copy_of_the_struct():
    """nanoarrow drops variadic buffers when it copies, and crashes on them."""
    def check():
        views = outline(13, b"abcd", 0, 0) + outline(20, b"abcd", 1, 0) + inline(b"x")
        vector = Raw(Node("vu", 3, buffers=[None, views, ALPHABET, ALPHABET, i64(26, 26)], name=b"v"))
        handle = importing(vector)
        for _ in range(3):
            array, schema = support.exported(handle)
            support.release(handle)
            assert array.array.n_buffers == 5
            handle = out("array_import", byref(array), byref(schema))
        result = support.to_pyarrow(*support.exported(handle), pa.Array)
        assert result.to_pylist() == [ALPHABET[:13].decode(), ALPHABET[:20].decode(), "x"]
        support.release(handle)
        del result
        vector.release()
        assert support.all_gone()

    in_child(check)


def test_a_struct_that_overlaps_its_result():
    """An out-parameter inside what is handed over would be overwritten before it is read."""
    def check():
        vector = Raw(ints(1, 5))
        inside = bs.c_void_p.from_buffer(vector.device_array, sizeof(bs.ArrowArray) - 8)
        with pytest.raises(BowstringError) as caught:
            call("array_import", byref(vector.device_array), byref(vector.schema), byref(inside))
        assert caught.value.status == INVALID_ARGUMENT and vector.is_untouched()
        vector.release()

    in_child(check)


def test_errors_say_where():
    def check():
        item = Node("i", 1, 2, buffers=[u8(0), i32(5)], name=b"item")
        broken = Node("+l", 1, buffers=[None, i32(0, 1)], children=[item], name=b"b")
        error = refused(Raw(Node("+s", 1, buffers=[None], children=[ints(1, 1, name=b"a"), broken])))
        assert (error.status, error.rule, error.path) == (INVALID_DATA, "A2", "$.b.item")
        assert "2" in error.message and "1" in error.message

    in_child(check)


def test_figures():
    support.figure("structs that break others", len(REFUSED), 24)
