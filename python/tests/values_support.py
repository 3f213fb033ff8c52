"""What the tests of values, parts and checks share."""

import gc
import sys

import bowstring
import pyarrow as pa

taken = bowstring.array
given = pa.array


class Owner:
    """Something whose end can be seen."""

    alive = 0

    def __init__(self):
        Owner.alive += 1

    def __del__(self):
        Owner.alive -= 1


def references(value):
    """How many references there are, after what became unreachable just now is gone."""
    gc.collect(1)
    return sys.getrefcount(value)


def everything():
    """Arrays of pyarrow of every type, by name; each has nulls where it may, and more than one row."""
    from decimal import Decimal

    strings = ["a", None, "", "more than twelve bytes", "ü"]
    small = [1, None, 3, 0, 5]
    found = {str(kind): pa.array(small, kind) for kind in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(),
        pa.float32(), pa.float64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.date32(),
        pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.duration("s"),
        pa.duration("us"),
    )}
    found["date64"] = pa.array([0, None, 86400000, 0, -86400000], pa.int64()).cast(pa.date64())
    found["bool"] = pa.array([True, None, False, True, True])
    found.update({str(kind): pa.array(strings, kind) for kind in (
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()
    )})
    found["fixed"] = pa.array([b"abc", None, b"xyz", b"...", b"123"], pa.binary(3))
    found["decimal"] = pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal(0), Decimal(7)], pa.decimal128(10, 2))
    found["decimal256"] = pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal256(50, 2))
    lists = [[1, None], None, [], [3], [4, 5]]
    found.update({str(kind): pa.array(lists, kind) for kind in (
        pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_view(pa.int32()), pa.large_list_view(pa.int32())
    )})
    found["fixed_list"] = pa.array([[1, 2], None, [3, None], [5, 6], [7, 8]], pa.list_(pa.int16(), 2))
    found["struct"] = pa.array([{"x": 1, "s": "a"}, None, {"x": None, "s": None}, {"x": 2, "s": "b"}])
    found["nested"] = pa.array([[{"x": [1.5, None]}], None, [], [{"x": None}, None, {"x": []}]])
    found["map"] = pa.array([[("a", 1)], None, [], [("b", None), ("c", 3)]], pa.map_(pa.string(), pa.int32()))
    found["dictionary"] = pa.array(["a", "b", None, "a"]).dictionary_encode()
    found["run_ends"] = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array(["a", None]))
    codes = pa.array([0, 1, 0, 1], pa.int8())
    found["dense_union"] = pa.UnionArray.from_dense(
        codes, pa.array([0, 0, 1, 1], pa.int32()), [pa.array([1, 2]), pa.array(["x", None])]
    )
    found["sparse_union"] = pa.UnionArray.from_sparse(codes, [pa.array([1, 2, 3, 4]), pa.array(["w", "x", None, "z"])])
    found["null"] = pa.nulls(4)
    found["interval"] = pa.array([(1, 2, 3), None, (4, 5, 6)], pa.month_day_nano_interval())
    return found


def none_alive():
    """Whether nothing of the library is alive."""
    gc.collect()
    return not bowstring.live_counts()


def each(names, cases):
    """As pytest's parametrize, but all cases in one test, which is much cheaper: what fails names its case."""
    keys = [name.strip() for name in names.split(",")]

    def over(function):
        def test(**given):
            for case in cases:
                values = dict(zip(keys, case if len(keys) > 1 else (case,)))
                try:
                    function(**given, **values)
                except Exception as error:
                    raise AssertionError(f"{function.__name__} with {values}: {error}") from error

        test.__name__ = test.__qualname__ = function.__name__
        return test

    return over
