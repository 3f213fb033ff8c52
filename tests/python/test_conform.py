"""Repairs: the same values as before, as the consumer takes them, and nothing copied that need not be."""

from ctypes import byref, c_void_p

import bowstring_ctypes as bs
import pyarrow as pa
import pytest
import raw
import support
from bowstring_ctypes import BowstringError, lib, out
from raw import At, Node, Raw, i32, i64
from support import exported, imported, to_pyarrow
from validate_calls import FULL, Options, function

SPEC, CUDF_DEVICE, CUDF_HOST, CUDF_OWNING = PROFILES = range(4)
ALLOW_COPY, AS_TABLE, TO_OFFSETS, TO_VIEWS = 1, 2, 4, 8

LONG = "a value of more than twelve bytes"
STRINGS = ["a", None, LONG, "", "twelve bytes", LONG * 3]
LISTS = [[1, 2], None, [3], [], [4, 5, 6]]
WORDS = pa.array(["x", None, "y", "x", "z"])


def dictionary(index):
    """Words with indices of a type."""
    return WORDS.dictionary_encode().cast(pa.dictionary(index, pa.string()))


ARRAYS = {
    "string": pa.array(STRINGS),
    "large string": pa.array(STRINGS, pa.large_string()),
    "string view": pa.array(STRINGS, pa.string_view()),
    "binary": pa.array([s and s.encode() for s in STRINGS], pa.binary()),
    "large binary": pa.array([s and s.encode() for s in STRINGS], pa.large_binary()),
    "binary view": pa.array([s and s.encode() for s in STRINGS], pa.binary_view()),
    "list": pa.array(LISTS, pa.list_(pa.int32())),
    "large list": pa.array(LISTS, pa.large_list(pa.int32())),
    "list view": pa.array(LISTS, pa.list_view(pa.int32())),
    "large list view": pa.array(LISTS, pa.large_list_view(pa.int32())),
    "fixed-size list": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2)),
    "list of views": pa.array([["a", LONG], None, [LONG]], pa.list_(pa.string_view())),
    "int8 dictionary": dictionary(pa.int8()),
    "uint8 dictionary": dictionary(pa.uint8()),
    "uint16 dictionary": dictionary(pa.uint16()),
    "uint32 dictionary": dictionary(pa.uint32()),
    "uint64 dictionary": dictionary(pa.uint64()),
    "int": pa.array([1, None, 3], pa.int64()),
    "bool": pa.array([True, None, False]),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": LONG}, {"a": 4, "b": None}]),
}


def conform(array, profile, flags):
    """The repaired array of a pyarrow array, as pyarrow reads it."""
    handle = imported(array)
    try:
        made = out("array_conform", handle, profile, None, flags)
    finally:
        lib.bowstring_array_release(handle)
    try:
        assumed = bs.Device(2, 0) if profile == CUDF_DEVICE else bs.Device()
        options = Options(level=FULL, profile=profile, assume_device=assumed, as_table=flags & AS_TABLE)
        error = bs.Error()
        assert function("array_validate")(made, byref(options), byref(error)) == bs.OK, error.message
        return shown(made)
    finally:
        lib.bowstring_array_release(made)


def shown(handle):
    """What pyarrow reads of a handle."""
    return to_pyarrow(*exported(handle), pa.Array)


def windows(array):
    """The array, repeated so that bitmaps have several words, and parts of it."""
    many = pa.concat_arrays([array] * 30)
    return [array, array.slice(1), array.slice(1, 1), many, many.slice(3), many.slice(71, 60), array.slice(0, 0)]


@pytest.mark.parametrize("name", ARRAYS)
def test_values_stay(name):
    n_repaired = 0
    for array in windows(ARRAYS[name]):
        for profile in PROFILES:
            for flags in (0, ALLOW_COPY, ALLOW_COPY | TO_OFFSETS, ALLOW_COPY | TO_VIEWS):
                try:
                    made = conform(array, profile, flags)
                except BowstringError as refused:
                    assert refused.status == bs.NOT_CONFORMING and profile != SPEC and refused.message, refused
                    continue
                n_repaired += 1
                made.validate(full=True)
                assert made.to_pylist() == array.to_pylist(), (array.type, profile, flags)
                assert made.null_count == array.null_count
    assert n_repaired >= len(windows(ARRAYS[name])) * 4


KINDS = {
    "string view": (TO_OFFSETS, pa.string()),
    "binary view": (TO_OFFSETS, pa.binary()),
    "list view": (TO_OFFSETS, pa.list_(pa.int32())),
    "large list view": (TO_OFFSETS, pa.list_(pa.int32())),
    "list of views": (TO_OFFSETS, pa.list_(pa.string())),
    "string": (TO_VIEWS, pa.string_view()),
    "large string": (TO_VIEWS, pa.string_view()),
    "large binary": (TO_VIEWS, pa.binary_view()),
    "list": (TO_VIEWS, pa.list_view(pa.int32())),
    "large list": (TO_VIEWS, pa.large_list_view(pa.int32())),
    "int": (TO_VIEWS, pa.int64()),
}


@pytest.mark.parametrize("name", KINDS)
def test_layouts(name):
    flag, kind = KINDS[name]
    assert conform(ARRAYS[name], SPEC, ALLOW_COPY | flag).type == kind
    # What is not done without a copy is named.
    if kind != ARRAYS[name].type:
        with pytest.raises(BowstringError) as refused:
            conform(ARRAYS[name], SPEC, flag)
        assert refused.value.status == bs.NOT_CONFORMING and "ALLOW_COPY" in refused.value.message


@pytest.mark.parametrize("index", ["uint8", "uint16", "uint32", "uint64"])
def test_indices_for_cudf(index):
    array = ARRAYS[f"{index} dictionary"]
    for profile in (CUDF_DEVICE, CUDF_HOST, CUDF_OWNING):
        made = conform(array, profile, ALLOW_COPY)
        assert made.type.index_type in (pa.int32(), pa.int64(), array.type.index_type)
        assert made.to_pylist() == array.to_pylist()
    assert conform(array, CUDF_DEVICE, ALLOW_COPY).type.index_type == pa.int32()


def test_null_counts_and_offsets_need_no_copy():
    raw.in_child(look_at_what_is_shared)


def look_at_what_is_shared():
    node = Node("+s", 3, -1, 2, [None], [Node("i", 5, -1, 0, [At(b"\x1d", 4, 0), At(i32(*range(5)), 4, 0)], name=b"a")])
    made = Raw(node)
    data = made.device_array.array.children[0].contents.buffers[1]
    handle = out("array_import", byref(made.device_array), byref(made.schema))
    for profile in PROFILES:
        repaired = out("array_conform", handle, profile, None, AS_TABLE)
        array, schema = bs.ArrowDeviceArray(), bs.ArrowSchema()
        bs.call("array_export", repaired, byref(array), byref(schema))
        child = array.array.children[0].contents
        assert (array.array.offset, array.array.length, array.array.null_count) == (0, 3, 0)
        assert (child.offset, child.length, child.null_count) == (2, 3, 0)
        assert child.buffers[1] == data
        lib.bowstring_device_array_release(byref(array))
        lib.bowstring_schema_release(byref(schema))
        lib.bowstring_array_release(repaired)
    assert made.array_released == 0
    lib.bowstring_array_release(handle)
    assert made.array_released == 1


def test_root_nulls_go_into_the_children():
    for array in windows(ARRAYS["struct"]):
        made = conform(array, CUDF_DEVICE, ALLOW_COPY | AS_TABLE)
        assert made.null_count == 0 and made.offset == 0 and len(made) == len(array)
        for field in ("a", "b"):
            wanted = [row and row[field] for row in array.to_pylist()]
            assert made.field(field).to_pylist() == wanted
            assert made.field(field).null_count == wanted.count(None)


def test_root_nulls_without_a_copy_are_named():
    for profile in (SPEC, CUDF_DEVICE):
        with pytest.raises(BowstringError) as refused:
            conform(ARRAYS["struct"], profile, AS_TABLE)
        assert refused.value.status == bs.NOT_CONFORMING and refused.value.path == "$"


def test_a_field_that_gets_nulls_becomes_nullable():
    fields = [pa.field("a", pa.int32(), nullable=False)]
    array = pa.StructArray.from_arrays([pa.array([1, 2], pa.int32())], fields=fields, mask=pa.array([False, True]))
    made = conform(array, SPEC, ALLOW_COPY | AS_TABLE)
    assert made.type.field("a").nullable and made.field("a").to_pylist() == [1, None]


def test_an_extension_type_goes_with_its_storage():
    storage = pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2))
    array = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2]), storage)
    handle = imported(array)
    made = out("array_conform", handle, CUDF_OWNING, None, ALLOW_COPY)
    assert shown(made).type == pa.list_(pa.int32())
    lib.bowstring_array_release(made)
    lib.bowstring_array_release(handle)


def test_a_second_repair_copies_nothing():
    raw.in_child(look_at_a_second_repair)


def look_at_a_second_repair():
    made = Raw(Node("i", 5, 1, 0, [At(b"\x1e", 64, 0), At(i32(*range(5)), 64, 0)]))
    first = made.device_array.array.buffers[0]
    handle = out("array_import", byref(made.device_array), byref(made.schema))
    once = out("array_conform", handle, CUDF_DEVICE, None, ALLOW_COPY)
    twice = out("array_conform", once, CUDF_DEVICE, None, ALLOW_COPY)
    places = []
    for one in (once, twice):
        array, schema = exported(one)
        places.append([array.array.buffers[k] for k in range(2)])
        lib.bowstring_device_array_release(byref(array))
        lib.bowstring_schema_release(byref(schema))
    # Nobody said that a bitmap of one byte is padded to 64; that the values are aligned can be seen.
    assert places[0][0] != first and places[0] == places[1]
    for one in (twice, once, handle):
        lib.bowstring_array_release(one)


def test_misaligned_buffers_are_copied():
    raw.in_child(look_at_alignment)


def look_at_alignment():
    node = Node(
        "u", 2, 1, 1, [At(b"\x05", 8, 1), At(i32(0, 1, 3, 6), 4, 1), b"abbccc"]
    )
    made = Raw(node)
    handle = out("array_import", byref(made.device_array), byref(made.schema))
    for profile, realigned in ((SPEC, [1]), (CUDF_DEVICE, [0, 1])):
        repaired = out("array_conform", handle, profile, None, ALLOW_COPY)
        array, schema = bs.ArrowDeviceArray(), bs.ArrowSchema()
        bs.call("array_export", repaired, byref(array), byref(schema))
        for k in realigned:
            assert array.array.buffers[k] % 64 == 0, (profile, k)
        assert array.array.null_count == 1
        lib.bowstring_device_array_release(byref(array))
        lib.bowstring_schema_release(byref(schema))
        assert shown(repaired).to_pylist() == [None, "ccc"]
        lib.bowstring_array_release(repaired)
    lib.bowstring_array_release(handle)


def test_what_cannot_be_repaired_is_named():
    decimals = pa.array([None, 1], pa.decimal256(70, 0))
    for array in (decimals, pa.array([[1, 2]], pa.list_(pa.float16()))):
        for profile in (CUDF_DEVICE, CUDF_HOST, CUDF_OWNING):
            with pytest.raises(BowstringError) as refused:
                conform(array, profile, ALLOW_COPY)
            assert refused.value.status == bs.NOT_CONFORMING
            assert refused.value.path and "libcudf" in refused.value.message
            assert refused.value.rule.startswith("C")


def test_views_out_of_order_are_named():
    views = pa.ListViewArray.from_arrays(pa.array([2, 0], pa.int32()), pa.array([1, 2], pa.int32()), pa.array([1, 2, 3]))
    with pytest.raises(BowstringError) as refused:
        conform(views, SPEC, ALLOW_COPY | TO_OFFSETS)
    assert refused.value.status == bs.NOT_CONFORMING and refused.value.row == 1


def test_broken_data_is_refused_before_it_is_copied():
    raw.in_child(look_at_broken_data)


def look_at_broken_data():
    made = Raw(Node("vu", 1, 0, 0, [None, i32(26) + b"abcd" + i32(3, 0), b"x" * 26, i64(26)]))
    handle = out("array_import", byref(made.device_array), byref(made.schema))
    with pytest.raises(BowstringError) as refused:
        out("array_conform", handle, SPEC, None, ALLOW_COPY | TO_OFFSETS)
    assert (refused.value.status, refused.value.rule, refused.value.row) == (bs.INVALID_DATA, "B2", 0)
    lib.bowstring_array_release(handle)


def test_arguments():
    handle = imported(ARRAYS["int"])
    made, error = c_void_p(), bs.Error()
    for profile, flags in ((4, 0), (-1, 0), (SPEC, 16), (SPEC, TO_OFFSETS | TO_VIEWS)):
        made.value = 5
        status = lib.bowstring_array_conform(handle, profile, None, flags, byref(made), byref(error))
        assert status == bs.INVALID_ARGUMENT and made.value is None
    assert lib.bowstring_array_conform(None, SPEC, None, 0, byref(made), byref(error)) == bs.INVALID_ARGUMENT
    assert lib.bowstring_array_conform(handle, SPEC, None, 0, None, byref(error)) == bs.INVALID_ARGUMENT
    lib.bowstring_array_release(handle)
    support.figure("arrays to repair", len(ARRAYS), 20)
