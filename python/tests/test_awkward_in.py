"""Awkward Arrays as arrays of ours: every layout, on the same memory where Arrow has such a layout, and back again."""

import gc

import awkward as ak
import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import CopyNeeded, Unsupported, from_awkward

from values_support import each, everything, none_alive, references, taken

ARRAYS = everything()
C, I = ak.contents, ak.index
# What comes back as something else, because Awkward Array has one layout for both.
BACK_AS = {
    "time32[s]": pa.timestamp("s"), "time32[ms]": pa.timestamp("ms"), "time64[us]": pa.timestamp("us"),
    "time64[ns]": pa.timestamp("ns"), "timestamp[us, tz=UTC]": pa.timestamp("us"), "date64": pa.timestamp("ms"),
    "string_view": pa.string(), "binary_view": pa.binary(),
}


def round_trip(layout, **options):
    """The layout by way of an array of ours, which breaks no rule."""
    array = from_awkward(layout, **options)
    assert array.validate() is array and array.source == "awkward"
    found = array.to_awkward()
    assert ak.to_list(found) == ak.to_list(layout)
    return array, found


def place(data):
    return data.__array_interface__["data"][0]


@each("name", [
    name for name in ARRAYS if name not in ("decimal", "decimal256", "run_ends", "interval", "map", "sparse_union")
])
@each("window", [slice(None), slice(1, 3), slice(0, 0)])
def test_there_and_back(name, window):
    data = ARRAYS[name][window]
    again = pa.array(from_awkward(taken(data).to_awkward()))
    assert again.type == BACK_AS.get(name, data.type)
    if name in BACK_AS and not name.endswith("view"):
        # The same numbers.
        numbers = data.cast(pa.int32()).cast(pa.int64()) if name.startswith("time32") else data.cast(pa.int64())
        again, data = again.cast(pa.int64()), numbers
    assert again.equals(data.cast(again.type))


def test_maps_become_lists_of_records():
    data = ARRAYS["map"]
    again = pa.array(from_awkward(taken(data).to_awkward()))
    assert again.to_pylist()[0] == [{"key": "a", "value": 1}] and pa.types.is_list(again.type)


@each(
    "dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "m8[us]"]
)
def test_numbers_in_place(dtype):
    data = np.arange(5).astype(dtype)
    before = references(data)
    array, _ = round_trip(C.NumpyArray(data), copy=False)
    assert array.buffers[-1].ptr == place(data) and not array.type.nullable
    assert np.array_equal(array.to_numpy(), data)
    del array, _
    assert references(data) == before


def test_dimensions():
    data = np.arange(24).reshape(2, 3, 4)
    array, _ = round_trip(C.NumpyArray(data), copy=False)
    assert str(array.type).startswith("fixed_size_list<fixed_size_list<int64") and array.buffers[-1].ptr == place(data)


def test_strided_values_need_a_copy():
    data = C.NumpyArray(np.arange(10)[::2])
    with pytest.raises(CopyNeeded, match="strides"):
        from_awkward(data, copy=False)
    round_trip(data)


@each("index, kind", [(I.Index32, "list"), (I.Index64, "large_list")])
def test_lists(index, kind):
    offsets, values = np.array([0, 2, 2, 5]), np.arange(5.0)
    layout = C.ListOffsetArray(index(offsets.astype(index._expected_dtype)), C.NumpyArray(values))
    array, _ = round_trip(layout, copy=False)
    assert str(array.type) == f"{kind}<float64 not null> not null"
    assert [buffer.ptr for buffer in array.buffers if buffer.ptr] == [place(layout.offsets.data), place(values)]
    round_trip(layout[1:], copy=False)


def test_lists_without_a_sign_need_a_copy():
    layout = C.ListOffsetArray(I.IndexU32(np.array([0, 2, 3], "u4")), C.NumpyArray(np.arange(3)))
    with pytest.raises(CopyNeeded, match="without a sign"):
        from_awkward(layout, copy=False)
    assert str(round_trip(layout)[0].type).startswith("large_list<")


def test_lists_with_starts_and_stops_become_views():
    values = np.arange(6)
    starts, stops = np.array([3, 0, 9, 3]), np.array([6, 2, 9, 4])
    layout = C.ListArray(I.Index64(starts), I.Index64(stops), C.NumpyArray(values))
    with pytest.raises(CopyNeeded, match="starts and stops"):
        from_awkward(layout, copy=False)
    array, found = round_trip(layout)
    assert str(array.type) == "large_list_view<int64 not null> not null" and array.buffers[-1].ptr == place(values)
    small = C.ListArray(I.Index32(starts[:2].astype("i4")), I.Index32(stops[:2].astype("i4")), C.NumpyArray(values))
    array, _ = round_trip(small)
    assert array.buffers[1].ptr == place(small.starts.data)
    unsigned = I.IndexU32(starts[:2].astype("u4")), I.IndexU32(stops[:2].astype("u4"))
    round_trip(C.ListArray(*unsigned, C.NumpyArray(values)))
    round_trip(ak.Array(["aa", "b", "cc"])[[2, 0, 1]].layout)


def test_regular_lists():
    values = np.arange(7)
    array, _ = round_trip(C.RegularArray(C.NumpyArray(values), 3), copy=False)
    assert str(array.type) == "fixed_size_list<int64 not null, 3> not null" and array.buffers[-1].ptr == place(values)
    round_trip(C.RegularArray(C.NumpyArray(values), 0, zeros_length=4), copy=False)


@each("texts, kind", [
    (["a", "", "über"], "large_utf8"), ([b"a", b"", b"\xff"], "large_binary"), (["a", None], "large_utf8"),
])
def test_strings(texts, kind):
    array, found = round_trip(ak.Array(texts).layout)
    assert str(array.type).startswith(kind)
    assert str(found.type) == str(ak.Array(texts).type)


def test_strings_of_one_length():
    letters = C.NumpyArray(np.frombuffer(b"abcdef", "u1"), parameters={"__array__": "byte"})
    array, _ = round_trip(C.RegularArray(letters, 2, parameters={"__array__": "bytestring"}), copy=False)
    assert str(array.type) == "fixed_size_binary(2) not null"
    text = C.NumpyArray(np.frombuffer(b"abcdef", "u1"), parameters={"__array__": "char"})
    round_trip(C.RegularArray(text, 2, parameters={"__array__": "string"}))
    round_trip(C.RegularArray(text[:0], 0, zeros_length=3, parameters={"__array__": "string"}))


def test_records_and_tuples():
    array, found = round_trip(ak.Array([{"x": 1, "y": [1.5]}, {"x": 2, "y": []}]).layout)
    assert array.fields == ["x", "y"] and found.fields == ["x", "y"]
    array, found = round_trip(ak.Array([(1, 2.5), (3, 4.5)]).layout)
    assert array.fields == ["0", "1"] and found.layout.is_tuple
    # A record may be shorter than its contents.
    layout = C.RecordArray([C.NumpyArray(np.arange(5)), C.NumpyArray(np.arange(3))], ["a", "b"], length=2)
    assert len(round_trip(layout, copy=False)[0]) == 2
    assert len(round_trip(C.RecordArray([], [], length=3))[0]) == 3


def test_parameters_come_back():
    layout = C.RecordArray([C.NumpyArray(np.arange(2))], ["x"], parameters={"__record__": "Point", "note": [1, "a"]})
    array, found = round_trip(layout)
    assert found.layout.parameters == {"__record__": "Point", "note": [1, "a"]}
    assert array.type.metadata[b"awkward"]
    # They survive another library.
    other = bowstring.array(pa.record_batch(array)).to_awkward()
    assert other.layout.parameter("__record__") == "Point"
    plain = C.ListOffsetArray(I.Index64(np.array([0, 2])), C.NumpyArray(np.arange(2)), parameters={"k": 1})
    assert round_trip(plain)[1].layout.parameter("k") == 1


MASK = np.array([0b00001101], "u1")


def test_bitmaps_in_place():
    layout = C.BitMaskedArray(I.IndexU8(MASK), C.NumpyArray(np.arange(5)), valid_when=True, length=4, lsb_order=True)
    array, _ = round_trip(layout, copy=False)
    assert array.validity.buffer.ptr == place(MASK) and array.type.nullable
    assert array.null_count == 1 and len(array) == 4


@each("valid, lsb", [(False, True), (True, False), (False, False)])
def test_other_bitmaps_need_a_copy(valid, lsb):
    layout = C.BitMaskedArray(I.IndexU8(MASK), C.NumpyArray(np.arange(5)), valid_when=valid, length=4, lsb_order=lsb)
    with pytest.raises(CopyNeeded, match="not Arrow's"):
        from_awkward(layout, copy=False)
    array, _ = round_trip(layout)
    assert array.buffers[-1].ptr == place(layout.content.data)


@each("valid", [True, False])
def test_masks_of_bytes(valid):
    layout = C.ByteMaskedArray(I.Index8(np.array([1, 0, 1], "i1")), C.NumpyArray(np.arange(4)), valid_when=valid)
    with pytest.raises(CopyNeeded, match="mask of bytes"):
        from_awkward(layout, copy=False)
    array, _ = round_trip(layout)
    assert array.buffers[-1].ptr == place(layout.content.data)


def test_options_without_nulls_and_by_index():
    array, found = round_trip(C.UnmaskedArray(C.NumpyArray(np.arange(3))), copy=False)
    assert array.type.nullable and array.validity is None
    layout = C.IndexedOptionArray(I.Index64(np.array([2, -1, 0, 2])), C.NumpyArray(np.arange(3)))
    with pytest.raises(CopyNeeded, match="nulls by an index"):
        from_awkward(layout, copy=False)
    assert round_trip(layout)[0].null_count == 1
    with pytest.raises(CopyNeeded, match="values by an index"):
        from_awkward(C.IndexedArray(I.Index64(np.array([2, 0])), C.NumpyArray(np.arange(3))), copy=False)
    round_trip(C.IndexedArray(I.Index64(np.array([2, 0])), C.NumpyArray(np.arange(3))))


def test_nulls_of_every_kind_of_content():
    for rows in ([[1], None, []], [{"x": 1}, None], [(1, 2), None], ["a", None], [[[1, None], None]], [b"", None]):
        round_trip(ak.Array(rows).layout)
    regular = ak.to_regular(ak.Array([[1, 2], [3, 4]]))
    round_trip(ak.mask(regular, [True, False]).layout)


def test_contents_that_are_longer():
    inner = C.BitMaskedArray(I.IndexU8(MASK), C.NumpyArray(np.arange(5)), valid_when=True, length=4, lsb_order=True)
    # Awkward Array would make bytes of the bits to cut them.
    record, _ = round_trip(C.RecordArray([inner], ["x"], length=3), copy=False)
    regular, _ = round_trip(C.RegularArray(inner, 3), copy=False)
    for array in (record, regular):
        assert array.child(0).validity.buffer.ptr == place(MASK)
    lists = C.ListOffsetArray(I.Index64(np.array([0, 1, 3, 4])), C.NumpyArray(np.arange(9)))
    masked = C.BitMaskedArray(I.IndexU8(MASK), lists, valid_when=True, length=2, lsb_order=True)
    assert len(round_trip(masked, copy=False)[0]) == 2


def test_empty_and_unknown():
    array, found = round_trip(ak.Array([]).layout)
    assert str(array.type) == "null not null" and str(found.type) == "0 * unknown"
    round_trip(ak.Array([[], []]).layout)
    array, _ = round_trip(ak.Array([None, None]).layout)
    assert str(array.type) == "null" and array.null_count == 2


def test_unions():
    tags, index = np.array([0, 1, 0, 1], "i1"), np.array([0, 0, 1, 1], "i4")
    parts = [C.NumpyArray(np.arange(2)), ak.Array(["x", "y"]).layout]
    layout = C.UnionArray(I.Index8(tags), I.Index32(index), parts)
    array, _ = round_trip(layout, copy=False)
    assert [view.ptr for view in map(array.buffer_view, range(2))] == [place(tags), place(index)]
    wide = C.UnionArray(I.Index8(tags), I.Index64(index.astype("i8")), parts)
    with pytest.raises(CopyNeeded, match="32 bits"):
        from_awkward(wide, copy=False)
    round_trip(wide)
    # Arrow wants the rows of each child in order.
    back = C.UnionArray(I.Index8(tags), I.Index32(np.array([1, 1, 0, 0], "i4")), parts)
    with pytest.raises(CopyNeeded, match="no order"):
        from_awkward(back, copy=False)
    round_trip(back)
    round_trip(ak.Array([1, "a", None, [2]]).layout)


def test_categories():
    index = np.array([1, 0, 1])
    parameters = {"__array__": "categorical"}
    layout = C.IndexedArray(I.Index64(index), ak.Array(["a", "b"]).layout, parameters=parameters)
    array, found = round_trip(layout, copy=False)
    assert str(array.type) == "dictionary<int64, large_utf8 not null> not null"
    assert array.codes.buffers[-1].ptr == place(index)
    assert ak.is_categorical(found)
    missing = C.IndexedOptionArray(I.Index64(np.array([1, -1, 0])), ak.Array(["a", "b"]).layout, parameters=parameters)
    assert round_trip(missing)[0].null_count == 1
    with pytest.raises(CopyNeeded):
        from_awkward(missing, copy=False)


def test_booleans_and_days_need_a_copy():
    for data, what in ((np.array([True, False]), "booleans"), (np.array(["2020-01-01"], "M8[D]"), "days")):
        with pytest.raises(CopyNeeded, match=what):
            from_awkward(C.NumpyArray(data), copy=False)
        round_trip(C.NumpyArray(data))


def test_copies():
    data = np.arange(3)
    array = from_awkward(ak.Array(data), copy=True)
    assert array.buffers[-1].ptr != place(data) and array.to_numpy().tolist() == [0, 1, 2]


@each("value, words", [
    (np.array([1j]), "complex"), (np.array(["2020"], "M8[h]"), "seconds or parts"),
])
def test_values_that_arrow_does_not_have(value, words):
    with pytest.raises(Unsupported, match=words):
        from_awkward(ak.Array(value))


def test_what_is_no_array():
    with pytest.raises(Unsupported, match="single record"):
        from_awkward(ak.Array([{"x": 1}])[0])
    with pytest.raises(TypeError):
        from_awkward(3)
    with pytest.raises(Unsupported, match="typetracer"):
        from_awkward(ak.to_backend(ak.Array([1, 2]), "typetracer"))


def test_each_buffer_keeps_its_own_array():
    values, other = np.arange(3.0), np.arange(3)
    before = [references(one) for one in (values, other)]
    array = from_awkward(C.RecordArray([C.NumpyArray(values), C.NumpyArray(other)], ["a", "b"]))
    column = array["a"].to_numpy()
    del array
    gc.collect()
    assert [references(one) for one in (values, other)] == [before[0] + 1, before[1]]
    assert column.tolist() == [0, 1, 2]
    del column
    assert none_alive() and [references(one) for one in (values, other)] == before


def test_what_ak_makes_of_it_by_pyarrow():
    for rows in ([[1.5, None], [], None], [{"x": 1, "s": "a"}, {"x": None, "s": None}], ["a", "b"], [True, None]):
        array = ak.Array(rows)
        assert pa.array(from_awkward(array)).to_pylist() == ak.to_arrow(array, extensionarray=False).to_pylist() == rows
