"""`__dataframe__` of arrays and streams, as pandas, PyArrow and the package itself take it."""

import gc
import sys
import warnings
from decimal import Decimal

import bowstring
import duckdb
import nanoarrow
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from bowstring import CopyNeeded, InvalidArgument, Unsupported
from pandas.api.interchange import from_dataframe as into_pandas
from pyarrow.interchange import from_dataframe as into_pyarrow
from values_support import Owner, everything

NON_NULLABLE, USE_BITMASK = 0, 3
BITS = (20, 1, "b", "=")
NUMBERS = {
    "c": (0, 8), "s": (0, 16), "i": (0, 32), "l": (0, 64), "C": (1, 8), "S": (1, 16), "I": (1, 32), "L": (1, 64),
    "e": (2, 16), "f": (2, 32), "g": (2, 64), "b": (20, 1),
}
MIXED = [1, None, 3, 0, 5]
# Values of each type that the protocol has, with the format that it has for them.
CASES = {
    **{
        form: pa.array(MIXED, kind) for form, kind in {
            "c": pa.int8(), "s": pa.int16(), "i": pa.int32(), "l": pa.int64(), "C": pa.uint8(), "S": pa.uint16(),
            "I": pa.uint32(), "L": pa.uint64(), "e": pa.float16(), "f": pa.float32(), "g": pa.float64(),
            "tss:": pa.timestamp("s"), "tsm:UTC": pa.timestamp("ms", "UTC"),
            "tsu:Europe/Berlin": pa.timestamp("us", "Europe/Berlin"), "tsn:": pa.timestamp("ns"), "tdD": pa.date32(),
            "tts": pa.time32("s"), "ttm": pa.time32("ms"), "ttu": pa.time64("us"), "ttn": pa.time64("ns"),
            "tDs": pa.duration("s"), "tDm": pa.duration("ms"), "tDu": pa.duration("us"), "tDn": pa.duration("ns"),
        }.items()
    },
    "tdm": pa.array([0, None, 86400000, 0, -86400000], pa.int64()).cast(pa.date64()),
    "b": pa.array([True, None, False, True, True]),
    "u": pa.array(["a", None, "", "more than twelve bytes", "ü"]),
    "U": pa.array(["a", None, "", "more than twelve bytes", "ü"], pa.large_string()),
}
TIMES = {"tdD": 32, "tts": 32, "ttm": 32}


def dtype_of(form):
    if form in NUMBERS:
        return (*NUMBERS[form], form, "=")
    return (21, 8, form, "=") if form in "uU" else (22, TIMES.get(form, 64), form, "=")


def table(**columns):
    return bowstring.array(pa.record_batch(columns))


def windows(array):
    """The array, parts of it behind an offset, one without nulls, and none of it."""
    whole = pa.array(array.to_pylist() * 4, array.type)
    yield from (array, whole[3:18], whole[2:5], whole[9:9], whole[:0], array.drop_null())


def from_ours(frame, copy=None):
    found = bowstring.array(frame, via="__dataframe__", copy=copy)
    there = pa.record_batch(found)
    there.validate(full=True)
    return there


def in_pandas(frame, **keywords):
    with warnings.catch_warnings():
        # The protocol is old.
        warnings.simplefilter("ignore")
        return into_pandas(frame, **keywords)


def plain(frame):
    """The values of pandas, which has NaN for nulls, and nulls among booleans for False."""
    return [None if value is None or value != value or value is pandas.NaT else value for value in frame.tolist()]


@pytest.mark.parametrize("form", CASES)
def test_types(form):
    for values in windows(CASES[form]):
        array = table(x=values)
        frame = array.__dataframe__(allow_copy=False)
        column = frame.get_column(0)
        assert column.dtype == dtype_of(form)
        assert (column.size(), column.null_count) == (len(values), values.null_count)
        nulls = (USE_BITMASK, 0) if values.null_count else (NON_NULLABLE, None)
        assert column.describe_null == nulls
        assert column.offset == (values.offset if len(values) else 0)
        buffers = column.get_buffers()
        there = values.buffers()
        assert (buffers["validity"] is None) == (not values.null_count)
        if values.null_count:
            mask, kind = buffers["validity"]
            assert (mask.ptr, kind) == (there[0].address, BITS)
        data, kind = buffers["data"]
        if form in "uU":
            ends, kinds = buffers["offsets"]
            assert kind == (1, 8, "C", "=") and kinds == ((0, 32, "i", "=") if form == "u" else (0, 64, "l", "="))
            if len(values):
                assert (ends.ptr, data.ptr) == (there[1].address, there[2].address)
            else:
                assert ends.read() == bytes(8)
        else:
            assert buffers["offsets"] is None and data.ptr == there[1].address
            assert kind == (dtype_of(form) if form in NUMBERS else (0, kind[1], "i" if kind[1] == 32 else "l", "="))
            assert kind[1] == column.dtype[1] and data.bufsize * 8 >= kind[1] * (column.offset + len(values))
        again = from_ours(frame, copy=False)["x"]
        assert again.type == values.type and again.equals(values)
        if len(values):
            assert [b.address for b in again.buffers()[1:]] == [b.address for b in there[1:]]


@pytest.mark.parametrize("form", [form for form in CASES if form[:2] not in ("td", "tt", "tD")])
def test_pyarrow(form):
    for values in windows(CASES[form]):
        frame = table(x=values)
        found = into_pyarrow(frame, allow_copy=False)["x"]
        assert found.type == values.type and found.combine_chunks().equals(values)
        if len(values):
            assert found.chunk(0).buffers()[-1].address == values.buffers()[-1].address


@pytest.mark.parametrize("form", [form for form in CASES if form[:2] not in ("tt", "tD") and form != "e"])
def test_pandas(form):
    for values in windows(CASES[form]):
        # It writes NaN over what lies under nulls among floats, also in memory that is not its own.
        found = in_pandas(table(x=values).__dataframe__())["x"]
        expected = values.to_pylist()
        if form == "b":
            # It has no booleans with nulls, and makes them False.
            expected = [bool(value) for value in expected]
        elif form[:2] == "td":
            expected = [value if value is None else pandas.Timestamp(value) for value in expected]
        assert plain(found) == expected


def test_pandas_by_two_ways():
    """pandas takes Arrow's stream of an array, and the protocol of what has no other."""
    array = table(x=pa.array([1, None], pa.int64()))
    assert in_pandas(array)["x"].tolist()[0] == 1
    assert plain(in_pandas(array.__dataframe__())["x"]) == [1, None]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("codes", ["int8", "uint16", "int32", "int64"])
def test_categories(codes, ordered):
    values = pa.array(["skipped", "a", None, "c"])[1:]
    indices = pa.array([2, 0, None, 1, 0], codes)
    whole = pa.DictionaryArray.from_arrays(indices, values, ordered=ordered)
    for array in (whole, whole[1:4], whole[:0]):
        frame = table(x=array).__dataframe__(allow_copy=False)
        column = frame.get_column(0)
        kind, bits, form, order = column.dtype
        assert (kind, bits, order) == (23, indices.type.bit_width, "=")
        data, stored = column.get_buffers()["data"]
        assert stored == (*NUMBERS[form], form, "=") and data.ptr == indices.buffers()[1].address
        said = column.describe_categorical
        assert (said["is_ordered"], said["is_dictionary"]) == (ordered, True)
        categories = said["categories"]
        assert (categories.dtype, categories.size(), categories.offset) == ((21, 8, "u", "="), 3, 1)
        assert (categories.null_count, categories.describe_null) == (1, (USE_BITMASK, 0))
        assert categories.get_buffers()["data"][0].ptr == values.buffers()[2].address
        assert from_ours(frame, copy=False)["x"].equals(array)
        found = into_pyarrow(table(x=array))["x"].combine_chunks()
        assert found.to_pylist() == array.to_pylist()


def test_who_has_no_categories():
    column = table(x=pa.array([1])).__dataframe__().get_column(0)
    with pytest.raises(TypeError, match="expected a column of categories, found x: int64"):
        column.describe_categorical


def test_booleans_in_bytes():
    kind = bowstring.Type(pa.field("x", pa.bool8()))
    table_of = bowstring.Type(pa.schema([pa.field("x", pa.bool8())]))
    array = bowstring.from_buffers(table_of, [3, 3], [None, None, b"\1\0\1"])
    assert array["x"].type == kind
    column = array.__dataframe__().get_column(0)
    assert column.dtype == column.get_buffers()["data"][1] == (20, 8, "b", "=")
    assert from_ours(array.__dataframe__())["x"].to_pylist() == [True, False, True]
    assert into_pyarrow(array)["x"].to_pylist() == [True, False, True]
    assert in_pandas(array.__dataframe__())["x"].tolist() == [True, False, True]


def test_views_are_a_copy():
    values = pa.array(["a", None, "more than twelve bytes", "", "b"], pa.string_view())[1:]
    frame = table(x=values).__dataframe__(allow_copy=True)
    assert frame.get_column(0).dtype == (21, 8, "u", "=")
    assert from_ours(frame)["x"].to_pylist() == into_pyarrow(frame)["x"].to_pylist() == values.to_pylist()
    assert plain(in_pandas(frame)["x"]) == values.to_pylist()
    refused = table(x=values).__dataframe__(allow_copy=False).get_column(0)
    # What needs none is there.
    assert (refused.dtype, refused.size(), refused.null_count) == ((21, 8, "u", "="), 4, 1)
    for error in (CopyNeeded, RuntimeError):
        with pytest.raises(error, match=r"^\$\.x: expected no copy, as allow_copy=False has it, found x: utf8_view"):
            refused.get_buffers()
    with pytest.raises(RuntimeError):
        into_pyarrow(table(x=values), allow_copy=False)


def has(array):
    """Whether the protocol has the type."""
    form = bowstring.array(array).type.format
    return form in {*NUMBERS, "u", "U", "vu"} or form[:2] in ("ts", "td", "tt", "tD")


OTHERS = {name: array for name, array in everything().items() if not has(array)}
OTHERS["null"] = pa.nulls(5)
OTHERS["interval"] = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
OTHERS["lists in a dictionary"] = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([Decimal("1.5")]))


@pytest.mark.parametrize("name", OTHERS)
def test_types_that_the_protocol_does_not_have(name):
    """Other columns go, and what is refused is so when its type is asked for."""
    values = OTHERS[name]
    frame = table(good=pa.array(range(len(values))), bad=values).__dataframe__()
    column = frame.get_column_by_name("bad")
    assert column.size() == len(values)
    assert from_ours(frame.select_columns([0]))["good"].to_pylist() == list(range(len(values)))
    if pa.types.is_dictionary(values.type):
        assert column.dtype == (23, 64, "l", "=")
        column, where = column.describe_categorical["categories"], r"\$\.bad\.dictionary"
    else:
        where = r"\$\.bad"
    for ask in (lambda: column.dtype, column.get_buffers):
        for error in (Unsupported, NotImplementedError):
            with pytest.raises(error, match=f"^{where}: expected a type that the dataframe protocol has, found "):
                ask()


def test_others_are_most_types():
    assert len(OTHERS) > 14 and {"decimal", "nested", "struct", "map", "fixed", "run_ends"} <= set(OTHERS)


def test_what_a_frame_says():
    fields = [pa.field("a", pa.int64(), metadata={"k": "v"}), ("b", pa.string()), ("a", pa.bool_())]
    schema = pa.schema(fields, {"m": "x"})
    batch = pa.record_batch([pa.array([1, 2]), pa.array(["x", None]), pa.array([True, False])], schema)
    frame = bowstring.array(batch).__dataframe__()
    assert (frame.version, frame.num_columns(), frame.num_rows(), frame.num_chunks()) == (0, 3, 2, 1)
    assert frame.metadata == {"bowstring.metadata": {b"m": b"x"}}
    assert frame.column_names() == ["a", "b", "a"]
    columns = list(frame.get_columns())
    assert [column.dtype[2] for column in columns] == ["l", "u", "b"]
    assert [column.metadata for column in columns] == [{"bowstring.metadata": {b"k": b"v"}}, {}, {}]
    assert frame.get_column_by_name("b").dtype[2] == "u"
    with pytest.raises(KeyError, match="expected one column 'a', found several"):
        frame.get_column_by_name("a")
    with pytest.raises(KeyError, match="expected one column 'z', found 'b'"):
        frame.select_columns([1]).get_column_by_name("z")
    swapped = frame.select_columns([2, 1])
    assert (swapped.column_names(), swapped.num_rows()) == (["a", "b"], 2)
    assert swapped.select_columns_by_name(["b", "a"]).column_names() == ["b", "a"]
    assert [column.dtype[2] for column in swapped.select_columns_by_name(["b"]).get_columns()] == ["u"]
    assert list(next(iter(swapped.get_chunks())).column_names()) == ["a", "b"]
    empty = frame.select_columns([])
    assert (empty.num_columns(), empty.column_names(), list(empty.get_columns()), empty.num_rows()) == (0, [], [], 2)
    with pytest.raises(IndexError):
        frame.get_column(3)
    other = frame.__dataframe__(allow_copy=False)
    assert other.column_names() == frame.column_names()
    array = bowstring.array(batch)
    for source in (frame, array, bowstring.Stream.from_arrays([array])):
        with pytest.raises(NotImplementedError, match="expected nan_as_null=False, found True"):
            source.__dataframe__(nan_as_null=True)


def test_parts():
    array = table(x=pa.array([True, None, False, True, True, None, True]))[1:]
    frame = array.__dataframe__()
    whole = from_ours(frame)["x"].to_pylist()
    for count, rows in ((1, [6]), (2, [3, 3]), (4, [2, 2, 2, 0]), (6, [1] * 6), (8, [1] * 6 + [0, 0])):
        parts = list(frame.get_chunks(count))
        assert [part.num_rows() for part in parts] == rows
        assert sum((from_ours(part, copy=False)["x"].to_pylist() for part in parts), []) == whole
        columns = list(frame.get_column(0).get_chunks(count))
        assert [column.size() for column in columns] == rows
        assert {column.get_buffers()["data"][0].ptr for column in columns} == {array["x"].buffer(1).ptr}
    for wrong in (0, -1):
        with pytest.raises(InvalidArgument, match="expected a multiple of 1, the number of chunks, found"):
            frame.get_chunks(wrong)


def test_chunks_of_a_stream():
    schema = pa.schema([("i", pa.int64()), ("s", pa.string())])
    chunks = [pa.record_batch({"i": v, "s": list(map(str, v))}, schema) for v in ([1, 2], [], [4])]
    chunks.append(pa.record_batch({"i": [None, 5], "s": ["x", None]}, schema))
    expected = pa.Table.from_batches(chunks)

    def stream():
        return bowstring.stream(pa.RecordBatchReader.from_batches(schema, chunks))

    frame = stream().__dataframe__(allow_copy=False)
    assert (frame.num_chunks(), frame.num_rows(), frame.num_columns()) == (4, 5, 2)
    assert [chunk.num_rows() for chunk in frame.get_chunks()] == [2, 0, 1, 2]
    found = into_pyarrow(frame, allow_copy=False)
    assert found.equals(expected)
    assert [c.buffers()[1].address for c in found["i"].chunks if len(c)] == [
        c["i"].buffers()[1].address for c in chunks if c.num_rows
    ]
    assert into_pyarrow(stream()).equals(expected)
    assert [plain(in_pandas(frame)[name]) for name in "is"] == [expected[name].to_pylist() for name in "is"]
    assert from_ours(stream()).to_pylist() == expected.to_pylist()
    assert [chunk.num_rows() for chunk in frame.get_chunks(8)] == [1, 1, 0, 0, 1, 0, 1, 1]
    with pytest.raises(ValueError, match="expected a multiple of 4, the number of chunks, found 6"):
        frame.get_chunks(6)
    column = frame.get_column(0)
    assert (column.num_chunks(), column.size(), column.null_count, column.dtype[2]) == (4, 5, 1, "l")
    assert [chunk.describe_null[0] for chunk in column.get_chunks()] == [0, 0, 0, 3]
    with pytest.raises(CopyNeeded, match=r"\$\.i: expected no copy.*, found 4 chunks"):
        column.get_buffers()
    joined = frame.__dataframe__().get_column(1)
    assert (joined.offset, joined.describe_null) == (0, (USE_BITMASK, 0))
    text = joined.get_buffers()["data"][0]
    # It was joined once.
    assert text.peek(4) == b"124x" and joined.get_buffers()["data"][0].ptr == text.ptr


def test_a_stream_is_used_up():
    stream = bowstring.stream(pa.table({"x": [1, 2]}))
    assert stream.__dataframe__().num_rows() == 2
    with pytest.raises(ValueError, match="closed or handed on"):
        stream.__dataframe__()
    empty = bowstring.Stream.from_arrays([], "struct<x: utf8, n: int64>")
    frame = empty.__dataframe__()
    assert (frame.num_chunks(), frame.num_rows(), frame.column_names()) == (1, 0, ["x", "n"])
    assert into_pyarrow(frame).schema.names == ["x", "n"] and from_ours(frame).num_rows == 0
    numbers = bowstring.Stream.from_arrays([bowstring.array([1])])
    with pytest.raises(Unsupported, match="expected a stream of struct arrays, whose fields are columns, found int64"):
        numbers.__dataframe__()
    assert len(numbers.read()) == 1

    def failing():
        yield pa.record_batch({"x": [1]})
        raise ZeroDivisionError("no more")

    broken = bowstring.stream(pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int64())]), failing()))
    with pytest.raises(bowstring.BowstringError, match="no more"):
        broken.__dataframe__()


def test_no_columns_and_no_rows():
    frame = bowstring.array(pa.record_batch({"x": pa.array([], pa.int64())})).__dataframe__()
    assert (frame.num_rows(), frame.get_column(0).size()) == (0, 0)
    bare = bowstring.from_buffers("struct<>", [3], [None]).__dataframe__()
    assert (bare.num_columns(), bare.num_rows()) == (0, 3)
    assert from_ours(bare).num_rows == 3


def test_what_is_no_table():
    for array in (bowstring.array([1, 2]), bowstring.array(["a"]), bowstring.array([[1]])):
        with pytest.raises(Unsupported, match="expected a struct array, whose fields are columns, found"):
            array.__dataframe__()


def test_rows_that_are_null():
    """A table has none: its columns get the nulls, which is a copy of their bitmaps alone."""
    values = pa.array([{"a": 1, "s": "x"}, None, {"a": 3, "s": None}, None])
    array = bowstring.array(values)
    with pytest.raises(CopyNeeded, match="expected rows that are all there, found 2 nulls, which only a copy brings"):
        array.__dataframe__(allow_copy=False)
    frame = array.__dataframe__()
    assert frame.get_column(0).get_buffers()["data"][0].ptr == values.field("a").buffers()[1].address
    expected = [{"a": 1, "s": "x"}, {"a": None, "s": None}, {"a": 3, "s": None}, {"a": None, "s": None}]
    assert from_ours(frame).to_pylist() == into_pyarrow(frame).to_pylist() == expected
    assert into_pyarrow(array[2:]).to_pylist() == expected[2:]
    # None of these rows is null.
    assert array[2:3].__dataframe__(allow_copy=False).num_rows() == 1


def owned(data):
    """A buffer with an owner whose end can be seen."""
    owner = Owner()
    kept = bytearray(data)
    owner.kept = kept
    return bowstring.Buffer.from_address(np.frombuffer(kept, "u1").ctypes.data, len(kept), owner)


def test_each_buffer_has_its_own_owner():
    """A buffer lives without the frame, and lets go its own owner alone, once."""
    before = bowstring.live_counts()
    parts = [owned(np.arange(3).tobytes()), owned(b"\5"), owned(np.array([0, 1, 2, 3], "i4").tobytes()), owned(b"abc")]
    places = [part.ptr for part in parts]
    numbers, mask, ends, text = parts
    array = bowstring.from_buffers("struct<a: int64, s: utf8>", [3, 3, 3], [None, mask, numbers, None, ends, text])
    del parts, numbers, mask, ends, text
    assert Owner.alive == 4
    frame = array.__dataframe__(allow_copy=False)
    first, second = (column.get_buffers() for column in frame.get_columns())
    found = [first["data"][0], first["validity"][0], second["offsets"][0], second["data"][0]]
    assert [buffer.ptr for buffer in found] == places and second["validity"] is None
    del array, frame, first, second
    gc.collect()
    assert Owner.alive == 4
    for left in (3, 2, 1):
        found.pop()
        gc.collect()
        assert Owner.alive == left
    assert found[0].read() == np.arange(3).tobytes()
    del found
    gc.collect()
    assert Owner.alive == 0 and bowstring.live_counts() == before


def test_what_consumers_keep_is_alive():
    values = owned(np.arange(1000).tobytes())
    array = bowstring.from_buffers("struct<a: int64>", [1000, 1000], [None, None, values])
    place = values.ptr
    table_, again = into_pyarrow(array, allow_copy=False), bowstring.array(array.__dataframe__(), copy=False)
    del values, array
    gc.collect()
    assert Owner.alive == 1
    assert table_["a"].chunk(0).buffers()[1].address == again["a"].buffer(1).ptr == place
    assert table_["a"].to_pylist() == again["a"].to_numpy().tolist() == list(range(1000))
    del table_
    gc.collect()
    assert Owner.alive == 1
    del again
    gc.collect()
    assert Owner.alive == 0


def test_references():
    """Frames and columns keep no object more than they give back."""
    array = table(x=pa.array([1, None]))
    before = sys.getrefcount(array)
    for _ in range(50):
        for column in array.__dataframe__().get_columns():
            column.get_buffers()
    gc.collect()
    assert sys.getrefcount(array) == before


def test_buffers_are_the_protocols():
    data, _ = table(x=pa.array([1, 2])).__dataframe__().get_column(0).get_buffers()["data"]
    assert (data.bufsize, data.__dlpack_device__()) == (16, (1, 0))
    shown = np.from_dlpack(data)
    assert shown.view("i8").tolist() == [1, 2] and shown.ctypes.data == data.ptr
    # Who asks as the protocol has it knows no versions, and so no read-only memory: it may refuse.
    with pytest.raises(BufferError, match="expected max_version"):
        data.__dlpack__()


def test_memory_of_a_device():
    """Nothing is read or copied; how many nulls there are, nobody knows."""
    places = [1 << 44, 1 << 45, 1 << 46, 1 << 47]

    def at(place, size):
        return bowstring.Buffer.from_address(place, size, None, "rocm:2")

    mask, numbers, ends, text = (at(place, size) for place, size in zip(places, (1, 24, 16, 9)))
    kind = "struct<a: int64, s: utf8>"
    array = bowstring.from_buffers(kind, [3, (3, -1), 3], [None, mask, numbers, None, ends, text], "rocm:2")
    frame = array.__dataframe__(allow_copy=False)
    first, second = frame.get_columns()
    assert (first.null_count, first.describe_null) == (None, (USE_BITMASK, 0))
    assert (second.null_count, second.describe_null) == (0, (NON_NULLABLE, None))
    one, other = first.get_buffers(), second.get_buffers()
    found = [one["validity"][0], one["data"][0], other["offsets"][0], other["data"][0]]
    assert [buffer.ptr for buffer in found] == places
    assert [buffer.__dlpack_device__() for buffer in found] == [(10, 2)] * 4
    again = bowstring.array(frame, copy=False)
    assert str(again.device) == "rocm:2" and [b.ptr for b in again["a"].buffers] == places[:2]


def test_nobody_takes_it_for_the_better_ways(monkeypatch):
    """Consumers that know Arrow's capsules go on taking them."""
    asked = []
    for kind in (bowstring.Array, bowstring.Stream):
        monkeypatch.setattr(kind, "__dataframe__", lambda self, **_: asked.append(self), raising=True)
    batch = pa.record_batch({"a": [1, None, 3], "s": ["x", None, "z"]})
    array = bowstring.array(batch)
    assert pa.table(array).equals(pa.Table.from_batches([batch])) and pa.record_batch(array).equals(batch)
    assert polars.DataFrame(array)["a"].to_list() == [1, None, 3]
    assert pandas.DataFrame.from_arrow(array)["a"].tolist()[::2] == [1, 3]
    assert in_pandas(array)["s"].tolist()[::2] == ["x", "z"]
    assert duckdb.connect().from_arrow(array).fetchall() == [(1, "x"), (None, None), (3, "z")]
    assert nanoarrow.Array(array).to_pylist() == batch.to_pylist()
    assert bowstring.array(array) is not None and bowstring.array(Wrapped(array)).source == "__arrow_c_device_array__"
    stream = bowstring.stream(batch)
    assert pa.table(stream).num_rows == 3
    assert asked == []


class Wrapped:
    """What hands on all that an array has."""

    def __init__(self, array):
        self.array = array
        self.__dataframe__ = array.__dataframe__

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        return self.array.__arrow_c_device_array__(requested_schema, **kwargs)


def test_memory_is_let_go_when_columns_fail():
    values = owned(b"abc")
    array = bowstring.from_buffers("struct<z: binary>", [1, 1], [None, None, b"\0\0\0\0\3\0\0\0", values])
    del values
    with pytest.raises(Unsupported):
        array.__dataframe__().get_column(0).get_buffers()
    del array
    gc.collect()
    assert Owner.alive == 0
