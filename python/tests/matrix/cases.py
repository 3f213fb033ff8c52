"""One array for each type, made by pyarrow, and what its values are in plain Python."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa


class Case(NamedTuple):
    """An array of one type, with the name that the page has for it."""

    name: str
    array: pa.Array


def _numbers() -> list[Case]:
    whole = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    cases = [Case(str(kind), pa.array([1, 0, 127, 5, 77], kind)) for kind in whole]
    cases.append(Case("float16", pa.array(np.array([1.5, -2, 0, 8, 0.25], np.float16))))
    cases += [Case(name, pa.array([1.5, -2.0, 0.0, 8.0, 0.25], kind)) for name, kind in FLOATS]
    return cases


FLOATS = (("float32", pa.float32()), ("float64", pa.float64()))


def _decimals() -> list[Case]:
    digits = [decimal.Decimal("1.25"), decimal.Decimal("-3.50"), None, decimal.Decimal("0.75")]
    kinds = [("decimal32", pa.decimal32(5, 2)), ("decimal64", pa.decimal64(12, 2))]
    kinds += [("decimal128", pa.decimal128(20, 2)), ("decimal256", pa.decimal256(50, 2))]
    return [Case(name, pa.array(digits, kind)) for name, kind in kinds]


def _times() -> list[Case]:
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 30, 1, 250_000)
    second = moment.replace(microsecond=0)
    clock, whole = datetime.time(12, 30, 1, 250_000), datetime.time(23, 59, 59)
    long = datetime.timedelta(days=2, seconds=3)
    return [
        Case("date32", pa.array([day, datetime.date(1969, 12, 31)], pa.date32())),
        Case("date64", pa.array([day, datetime.date(1969, 12, 31)], pa.date64())),
        Case("time32(s)", pa.array([whole, datetime.time(0)], pa.time32("s"))),
        Case("time32(ms)", pa.array([clock, whole], pa.time32("ms"))),
        Case("time64(us)", pa.array([clock, whole], pa.time64("us"))),
        Case("time64(ns)", pa.array([clock, whole], pa.time64("ns"))),
        *(Case(f"timestamp({unit})", pa.array([second, second], pa.timestamp(unit))) for unit in UNITS),
        Case("timestamp(us, zone)", pa.array([moment, moment], pa.timestamp("us", "Europe/Zurich"))),
        Case("timestamp(ns) with nulls", pa.array([moment, None], pa.timestamp("ns"))),
        *(Case(f"duration({unit})", pa.array([long, long * 2], pa.duration(unit))) for unit in UNITS),
        Case("interval(month_day_nano)", pa.array([(1, 2, 3000), (0, 4, 5000)], pa.month_day_nano_interval())),
    ]


UNITS = ("s", "ms", "us", "ns")


def _bytes() -> list[Case]:
    words = ["bow", None, "string", "", "longer than twelve bytes"]
    raw = [None if word is None else word.encode() for word in words]
    texts = [("utf8", pa.string()), ("large_utf8", pa.large_string()), ("utf8_view", pa.string_view())]
    blobs = [("binary", pa.binary()), ("large_binary", pa.large_binary()), ("binary_view", pa.binary_view())]
    cases = [Case(name, pa.array(words, kind)) for name, kind in texts]
    cases += [Case(name, pa.array(raw, kind)) for name, kind in blobs]
    return [*cases, Case("fixed_size_binary", pa.array([b"abc", b"def", b"ghi"], pa.binary(3)))]


def _nested() -> list[Case]:
    lists = [[1, 2], None, [], [3, None, 4]]
    item = pa.int32()
    kinds = [("list", pa.list_(item)), ("large_list", pa.large_list(item)), ("list_view", pa.list_view(item))]
    kinds.append(("large_list_view", pa.large_list_view(item)))
    cases = [Case(name, pa.array(lists, kind)) for name, kind in kinds]
    people = [{"a": 1, "s": "x"}, {"a": None, "s": "yy"}, {"a": 3, "s": None}]
    record = pa.struct([("a", pa.int64()), ("s", pa.string())])
    return [
        *cases,
        Case("fixed_size_list", pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float64(), 2))),
        Case("fixed_size_list with nulls", pa.array([[1.0, 2.0], None, [5.0, None]], pa.list_(pa.float64(), 2))),
        Case("struct", pa.array(people, record)),
        Case("struct with nulls", pa.array([people[0], None, people[2]], record)),
        Case("list<struct>", pa.array([people[:2], None, [], people[2:]], pa.list_(record))),
        Case("map", pa.array([[("k", 1), ("l", None)], [], [("m", 3)]], pa.map_(pa.string(), pa.int64()))),
    ]


def _encoded() -> list[Case]:
    words = pa.array(["b", "a", None, "b"])
    ids, offsets = pa.array([0, 1, 0, 1], pa.int8()), pa.array([0, 0, 1, 1], pa.int32())
    few, texts = pa.array([10, 20]), pa.array(["x", "y"])
    four = [pa.array([10, 0, 20, 0]), pa.array(["", "x", "", "y"])]
    return [
        Case("dictionary", words.dictionary_encode()),
        Case("dense_union", pa.UnionArray.from_dense(ids, offsets, [few, texts])),
        Case("sparse_union", pa.UnionArray.from_sparse(ids, four)),
        Case("run_end_encoded", pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array([7, None]))),
        Case("null", pa.nulls(3)),
    ]


def cases() -> list[Case]:
    """Every case, in the page's order."""
    some = [1, None, 3, None, 5]
    return [
        *_numbers(),
        Case("bool", pa.array([True, False, True, True])),
        Case("int64 with nulls", pa.array(some, pa.int64())),
        Case("float32 with nulls", pa.array(some, pa.float32())),
        Case("bool with nulls", pa.array([True, None, False])),
        *_decimals(),
        *_times(),
        *_bytes(),
        *_nested(),
        *_encoded(),
    ]


EPOCH = datetime.datetime(1970, 1, 1)


def plain(value: Any) -> Any:
    """A value in a form that is the same for every library's way to show it."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        if np.isnat(value):
            return None
        unit = "datetime64[us]" if isinstance(value, np.datetime64) else "timedelta64[us]"
        return plain(value.astype(unit).item())
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, pa.MonthDayNano):
        return datetime.timedelta(days=value.months * 30 + value.days, microseconds=value.nanoseconds // 1000)
    if type(value).__name__ == "DateOffset":
        days = value.kwds.get("months", 0) * 30 + value.kwds.get("days", 0)
        return datetime.timedelta(days=days, microseconds=value.kwds.get("nanoseconds", 0) // 1000)
    if isinstance(value, datetime.timedelta):
        return datetime.timedelta(value.days, value.seconds, value.microseconds)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        # Also what a subclass of another library shows.
        return datetime.datetime(*value.timetuple()[:6], value.microsecond)
    if isinstance(value, datetime.time):
        # Where a library has no times of day, they are moments of the first day.
        return datetime.datetime.combine(EPOCH, value)
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, dict):
        # A map comes as pairs, as a dictionary, or as records of a key and a value.
        return [[plain(key) if not isinstance(key, str) else key, plain(held)] for key, held in value.items()]
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    return value


def same(array: pa.Array, found: list[Any]) -> bool:
    """Whether a library shows the values of an array."""
    expected, found = [plain(item) for item in array.to_pylist()], [plain(item) for item in found]
    if pa.types.is_map(array.type):
        found = [row and [_pair(entry) for entry in row] for row in found]
    return expected == found


def _pair(entry: Any) -> Any:
    """A key and its value, where a library shows a map's entry as a record."""
    return [held for _, held in entry] if entry and isinstance(entry[0], list) else entry
