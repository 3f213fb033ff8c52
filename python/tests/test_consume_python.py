"""`bowstring.array` of Python's values, and of objects with the buffer protocol."""

import array
import ctypes
import datetime as dt
import gc
import io
import mmap
from decimal import Decimal

import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import CopyNeeded, InvalidData, Unsupported

UTC = dt.timezone.utc
PARIS = dt.timezone(dt.timedelta(hours=1))


def values_of(found):
    """The values, as PyArrow reads them, which checks them first."""
    there = pa.array(found)
    there.validate(full=True)
    return there.to_pylist()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, -(2**63), 2**63 - 1], "int64"),
        ([True, None, False], "bool"),
        ([1.5, None, float("inf")], "float64"),
        ([1, 2.5], "float64"),
        (["a", None, "", "é\N{GRINNING FACE}"], "utf8"),
        ([b"\xff", None, b""], "binary"),
        ([[1], None, [], [None, 2]], "list<int64>"),
        ([[["a"]], [[]], [None]], "list<list<utf8>>"),
        ([dt.datetime(2020, 1, 2, 3, 4, 5, 6), None, dt.datetime(1, 1, 1)], "timestamp(us)"),
        ([dt.datetime(2020, 1, 2, tzinfo=UTC)], 'timestamp(us, "UTC")'),
        ([dt.date(1969, 12, 31), None], "date32"),
        ([dt.time(23, 59, 59, 999999), None], "time64(us)"),
        ([dt.timedelta(-1, 2, 3), None], "duration(us)"),
        ([{"a": 1, "b": None}, None, {"a": None, "b": "x"}], "struct<a: int64, b: utf8>"),
        ([{"a b": [{"c": 1}]}], 'struct<"a b": list<struct<c: int64>>>'),
        ([None, None], "null"),
        ([], "null"),
        ([[]], "list<null>"),
        ([1] * 100 + [None], "int64"),
    ],
    ids=str,
)
def test_what_values_tell(values, kind):
    found = bowstring.array(values)
    assert (str(found.type), found.source, len(found)) == (kind, "values", len(values))
    assert values_of(found) == values
    assert str(bowstring.array(tuple(values)).type) == kind


def test_keys_that_are_not_there():
    assert values_of(bowstring.array([{"a": 1}, {"b": 2}])) == [{"a": 1, "b": None}, {"a": None, "b": 2}]


@pytest.mark.parametrize(
    ("values", "row", "message"),
    [
        ([1, None, "a"], 2, "expected values of one kind, int64 as before, found 'a' of str"),
        ([1, True], 1, "int64 as before, found True of bool"),
        (["a", b"a"], 1, "utf8 as before"),
        ([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=UTC)], 1, "as before"),
        ([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)], 1, "date32 as before"),
        ([object()], 0, "expected a value whose type can be told, or a schema"),
        ([{"a": 1}, [1]], 1, "struct as before"),
        ([{1: 2}], 0, "expected names as text"),
        ([2**63], 0, "expected an integer from"),
        ([0.5, 2**53 + 1], 1, "expected a number that a float of this size is"),
    ],
    ids=str,
)
def test_unions_of_kinds(values, row, message):
    with pytest.raises(InvalidData, match=message) as caught:
        bowstring.array(values)
    assert (caught.value.row, caught.value.path) == (row, "$")


def test_an_error_inside():
    with pytest.raises(InvalidData, match="found 'x' of str") as caught:
        bowstring.array([{"a": [1, 2]}, {"a": [3, "x"]}])
    assert (caught.value.path, caught.value.row) == ("$.a.item", 3)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        *(
            ([1, None, 100], kind) for kind in (
                "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
            )
        ),
        ([1.5, None, -2.0], "float16"), ([1.5, None], "float32"), ([1, None], "float64"),
        (["a", None, "a bit longer than twelve"], "utf8_view"),
        ([b"", b"a bit longer than twelve", None], "binary_view"),
        (["a"], "large_utf8"), ([b"a", None], "large_binary"), ([b"abc", None], "fixed_size_binary(3)"),
        ([[1], None, [2, 3]], "large_list<int8>"), ([[1], None, [2, 3]], "list_view<int8>"),
        ([[1], None, [2, 3]], "large_list_view<int8>"), ([[1, 2], None], "fixed_size_list<int16, 2>"),
        ([[1.5, 2.5]], "fixed_size_list<float32, 2>"),
        ([Decimal("1.25"), None, Decimal("-999.99")], "decimal128(5, 2)"), ([Decimal("-1.25")], "decimal32(5, 2)"),
        ([Decimal("1E+3")], "decimal64(5, 0)"), ([Decimal(10) ** 75], "decimal256(76, 0)"),
        ([dt.datetime(2020, 1, 1, 0, 0, 1), None], "timestamp(s)"),
        ([dt.datetime(2020, 1, 1, 0, 0, 0, 1000)], "timestamp(ms)"),
        ([dt.datetime(2020, 1, 1)], "timestamp(ns)"), ([dt.date(2020, 1, 1), None], "date64"),
        ([dt.time(1, 2)], "time32(s)"),
        ([dt.time(1, 2, 3, 4000)], "time32(ms)"), ([dt.timedelta(1)], "duration(s)"),
        ([{"x": 1, "y": "a"}, None], "struct<x: int8, y: utf8_view>"), ([None, None], "int32"), ([], "list<utf8>"),
        ([None], "null"), ([True], "bool"), (["x"] * 2000, "utf8"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_schema(values, kind):
    found = bowstring.array(values, kind)
    assert str(found.type) == kind
    assert [float(v) if kind == "float16" and v is not None else v for v in values_of(found)] == values


def test_other_ways_to_write_values():
    assert values_of(
        bowstring.array([(1, "a"), [2, "b"]], "struct<x: int8, y: utf8>")
    ) == [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}]
    assert values_of(
        bowstring.array([{"a": 1}, None, [("b", 2)], {}], "map<utf8, int8>")
    ) == [[("a", 1)], None, [("b", 2)], []]
    assert values_of(bowstring.array([np.int16(5), np.float32(1.5)], "float64")) == [5, 1.5]
    assert values_of(bowstring.array([np.int16(5), np.bool_(True)][:1], "int8")) == [5]
    paris = [dt.datetime(2020, 1, 1, 1, tzinfo=PARIS)]
    assert values_of(bowstring.array(paris)) == [dt.datetime(2020, 1, 1, 0, tzinfo=UTC)]
    assert values_of(bowstring.array([bytearray(b"a"), memoryview(b"b")])) == [b"a", b"b"]
    # PyArrow's schema, with what it says beside the types.
    schema = pa.schema([pa.field("a", pa.int8(), metadata={"k": "v"})])
    assert pa.record_batch(bowstring.array([{"a": 1}], schema)).schema.equals(schema, check_metadata=True)


@pytest.mark.parametrize(
    ("values", "kind", "where"),
    [
        ([1, 300], "uint8", ("$", 1)), ([-1], "uint8", ("$", 0)), ([1.0], "int8", ("$", 0)), ([True], "int8", ("$", 0)),
        ([1], "bool", ("$", 0)), (["a"], "binary", ("$", 0)), ([b"a"], "utf8", ("$", 0)),
        (["\ud800"], "utf8", ("$", 0)),
        ([b"ab"], "fixed_size_binary(3)", ("$", 0)), ([[1]], "fixed_size_list<int8, 2>", ("$", 0)),
        ([1e300], "float32", ("$", 0)), (["1"], "float64", ("$", 0)), ([1], "null", ("$", 0)),
        ([Decimal("1.255")], "decimal128(5, 2)", ("$", 0)), ([Decimal("1000")], "decimal128(5, 2)", ("$", 0)),
        ([1.5], "decimal128(5, 2)", ("$", 0)), ([Decimal("NaN")], "decimal128(5, 2)", ("$", 0)),
        ([dt.datetime(2020, 1, 1, microsecond=1)], "timestamp(ms)", ("$", 0)),
        ([dt.datetime(1, 1, 1)], "timestamp(ns)", ("$", 0)),
        ([dt.datetime(2020, 1, 1, tzinfo=UTC)], "timestamp(us)", ("$", 0)),
        ([dt.datetime(2020, 1, 1)], "date32", ("$", 0)),
        ([1], "struct<a: int8>", ("$", 0)), ([{"b": 1}], "struct<a: int8>", ("$", 0)),
        ([{"a": 1}, {"a": "x"}], "struct<a: int8>", ("$.a", 1)),
        ([None], "int8 not null", ("$", 0)), ([None, {"a": 1}, {"a": None}], "struct<a: int8 not null>", ("$.a", 1)),
        ([{None: 1}], "map<utf8, int8>", ("$.entries.key", 0)), ([[1, 2, 3]], "map<utf8, int8>", None),
        (["a"], "list<utf8>", ("$", 0)),
    ],
    ids=str,
)
def test_values_that_do_not_fit(values, kind, where):
    with pytest.raises((InvalidData, TypeError)) as caught:
        bowstring.array(values, kind)
    if where is not None:
        assert (caught.value.path, caught.value.row) == where


@pytest.mark.parametrize(
    "kind",
    [
        pa.dictionary(pa.int8(), pa.string()), pa.run_end_encoded(pa.int32(), pa.int8()),
        pa.dense_union([pa.field("a", pa.int8())]), pa.month_day_nano_interval(),
    ],
    ids=str,
)
def test_types_that_values_do_not_make(kind):
    with pytest.raises(Unsupported, match="expected a type that values are built of"):
        bowstring.array([1], kind)


def test_values_are_a_copy():
    with pytest.raises(CopyNeeded, match="found a list of Python's values, which only a copy makes"):
        bowstring.array([1], copy=False)


def test_memory_is_aligned():
    found = bowstring.array([1, None, 3])
    assert all(buffer.ptr % 64 == 0 for buffer in found.buffers)


# The buffer protocol.


def address_of(data):
    return np.frombuffer(data, "u1").ctypes.data


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_array_module(code):
    data = array.array(code, [1, 2, 3])
    found = bowstring.array(data, copy=False)
    assert (found.source, found.buffer(1).ptr) == ("buffer", data.buffer_info()[0])
    assert values_of(found) == [1, 2, 3]


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: memoryview(bytearray(data))])
def test_bytes(make):
    data = make(b"abc")
    found = bowstring.array(data, copy=False)
    assert (str(found.type), found.buffer(1).ptr, values_of(found)) == ("uint8", address_of(data), [97, 98, 99])


def test_a_bytearray_stays_as_it_is():
    data = bytearray(b"abc")
    found = bowstring.array(data)
    with pytest.raises(BufferError):
        data.append(1)
    del found
    gc.collect()
    data.append(1)


def test_memory_maps(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(5, dtype="i8").tobytes())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as there:
        found = bowstring.array(memoryview(there).cast("q"), copy=False)
        assert values_of(found) == [0, 1, 2, 3, 4]
        with pytest.raises(BufferError):
            there.close()
        del found
        gc.collect()


def test_dimensions_and_ctypes():
    data = memoryview(np.arange(6, dtype="i4").tobytes()).cast("i", (2, 3))
    assert values_of(bowstring.array(data, copy=False)) == [[0, 1, 2], [3, 4, 5]]
    numbers = (ctypes.c_double * 2)(1.5, 2.5)
    found = bowstring.array(numbers, copy=False)
    assert (found.buffer(1).ptr, values_of(found)) == (ctypes.addressof(numbers), [1.5, 2.5])
    assert values_of(bowstring.array(memoryview(b"\0\1\1").cast("?"))) == [False, True, True]
    assert values_of(bowstring.array(io.BytesIO(b"ab").getbuffer())) == [97, 98]
    assert len(bowstring.array(b"")) == 0


def test_strides_of_views():
    data = memoryview(bytearray(range(10)))[::-3]
    assert values_of(bowstring.array(data)) == [9, 6, 3, 0]
    with pytest.raises(CopyNeeded, match=r"expected strides \[1\], or a copy, found \[-3\]"):
        bowstring.array(data, copy=False)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((ctypes.c_int.__ctype_be__ * 2)(1, 2), "byte order"),
        (np.array([(1, 2.0)], "i4,f8").data, "expected elements of one kind of number"),
        (array.array("u", "ab"), "expected elements of one kind of number, found the format"),
    ],
    ids=["big", "struct", "text"],
)
def test_formats_that_arrow_has_not(data, message):
    with pytest.raises((Unsupported, TypeError), match=message):
        bowstring.array(data, via="buffer")
