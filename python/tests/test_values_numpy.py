"""Values as numpy has them: zero copy where it can be, nulls as the caller wants them, and refusals that say why."""

import gc
from decimal import Decimal

import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import Buffer, CopyNeeded, InvalidArgument, NotConforming, Unsupported, from_buffers

from values_support import each, everything, none_alive, taken

ARRAYS = everything()
NUMBERS = {
    "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1", "uint16": "u2", "uint32": "u4",
    "uint64": "u8",
    "halffloat": "f2", "float": "f4", "double": "f8",
}
VIEWS = {
    "time64[us]": "m8[us]", "time64[ns]": "m8[ns]", "timestamp[s]": "M8[s]", "timestamp[ms]": "M8[ms]",
    "timestamp[us, tz=UTC]": "M8[us]", "timestamp[ns]": "M8[ns]", "duration[s]": "m8[s]", "duration[us]": "m8[us]",
    "date64": "M8[ms]",
}
COPIES = {"time32[s]": "m8[s]", "time32[ms]": "m8[ms]", "date32[day]": "M8[D]"}
VALUES = [1, None, 3, 0, 5]


def where(data):
    """Address of a pyarrow array's values."""
    return data.buffers()[1].address


def address(values):
    return values.__array_interface__["data"][0]


@each("name, dtype", {**NUMBERS, **VIEWS}.items())
@each("offset", [0, 2])
def test_zero_copy(name, dtype, offset):
    data = ARRAYS[name]
    values, valid = taken(data).slice(offset).to_numpy(nulls="split", copy=False)
    assert values.dtype == np.dtype(dtype) and not values.flags.writeable
    assert address(values) == where(data) + offset * values.itemsize
    if name == "date64":
        raw = [0, 0, 86400000, 0, -86400000]
    else:
        raw = [0 if value is None else value for value in VALUES]
    assert values.astype("i8").tolist() == raw[offset:]
    if offset == 0:
        assert valid.tolist() == [True, False, True, True, True] and valid.dtype == bool
    else:
        assert valid is None


@each("name, dtype", COPIES.items())
def test_values_that_numpy_has_in_64_bits(name, dtype):
    array = taken(ARRAYS[name])
    with pytest.raises(CopyNeeded, match="another size"):
        array.to_numpy(nulls="split", copy=False)
    values = array.to_numpy(nulls="fill")
    assert values.dtype == np.dtype(dtype) and values.flags.writeable
    assert np.isnat(values).tolist() == [False, True, False, False, False]
    assert values[[0, 2, 3, 4]].astype("i8").tolist() == [1, 3, 0, 5]


def test_nulls_are_an_error_that_says_where():
    array = taken(pa.array([1, 2, None, 4, None]))
    with pytest.raises(NotConforming, match="found 2, the first in row 2") as caught:
        array.to_numpy()
    assert caught.value.row == 2 and isinstance(caught.value, ValueError)
    with pytest.raises(NotConforming, match="found 1, the first in row 1"):
        array.slice(3).to_numpy()
    assert array.slice(0, 2).to_numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="'drop'"):
        array.to_numpy(nulls="drop")


def test_filling():
    ints, floats = taken(pa.array([1, None], pa.int16())), taken(pa.array([1, None], pa.float32()))
    assert ints.to_numpy("fill", fill_value=-1).tolist() == [1, -1]
    assert np.isnan(floats.to_numpy("fill")).tolist() == [False, True]
    assert floats.to_numpy("fill", fill_value=2).tolist() == [1, 2]
    assert taken(pa.array([True, None])).to_numpy("fill", fill_value=True).tolist() == [True, True]
    with pytest.raises(InvalidArgument, match="fill_value"):
        ints.to_numpy("fill")
    with pytest.raises(OverflowError):
        ints.to_numpy("fill", fill_value=100000)
    with pytest.raises(CopyNeeded, match="1 nulls to fill"):
        floats.to_numpy("fill", copy=False)
    # Without nulls nothing is filled, and nothing needs a value.
    full = pa.array([1, 2], pa.int16())
    assert address(taken(full).to_numpy("fill", copy=False)) == where(full)
    # The memory of others stays as it is.
    assert ints.to_numpy("split")[0][0] == 1


def test_copies():
    data = pa.array([1, 2])
    array = taken(data)
    assert address(array.to_numpy()) == address(array.to_numpy(copy=False)) == where(data)
    own = array.to_numpy(copy=True)
    own[0] = 7
    assert address(own) != where(data) and data.to_pylist() == [1, 2]
    with pytest.raises(ValueError):
        array.to_numpy()[0] = 7
    with pytest.raises(ValueError):
        array.to_numpy().flags.writeable = True


@each("offset", range(10))
def test_bits_become_bytes(offset):
    data = pa.array([True, None, False, True, True, False, True, False, None, True, True, False])
    array = taken(data).slice(offset)
    values, valid = array.to_numpy("split")
    assert values.dtype == bool and values.flags.writeable
    expected = data.to_pylist()[offset:]
    assert np.where(valid if valid is not None else True, values, None).tolist() == expected
    assert array.to_numpy("fill", fill_value=False).tolist() == [value or False for value in expected]
    with pytest.raises(CopyNeeded, match="bytes of bits"):
        array.to_numpy("split", copy=False)


def test_booleans_of_a_byte():
    storage = pa.array([1, 0, None, 1], pa.int8())
    array = taken(pa.ExtensionArray.from_storage(pa.bool8(), storage))
    values, valid = array.to_numpy("split", copy=False)
    assert values.tolist()[:2] == [True, False] and values.dtype == bool and address(values) == where(storage)
    assert valid.tolist() == [True, True, False, True]
    odd = taken(pa.ExtensionArray.from_storage(pa.bool8(), pa.array([2, 0, -1], pa.int8())))
    assert odd.to_numpy().tolist() == [True, False, True]
    assert odd.to_numpy().view("u1").tolist() == [1, 0, 1]
    with pytest.raises(CopyNeeded, match="other than 0 and 1"):
        odd.to_numpy(copy=False)


def test_decimals_are_objects():
    wide = Decimal("12345678901234567890123456789012345.678")
    for kind in (pa.decimal128(38, 3), pa.decimal256(60, 3)):
        array = taken(pa.array([Decimal("1.5"), wide, -wide, None], kind))
        assert array.slice(0, 3).to_numpy().tolist() == [Decimal("1.500"), wide, -wide]
        assert array.to_numpy("fill", fill_value=Decimal(0)).tolist()[3] == 0
        with pytest.raises(CopyNeeded, match="objects"):
            array.to_numpy("split", copy=False)
    for kind in (pa.decimal32(8, 2), pa.decimal64(16, 2)):
        assert taken(pa.array([Decimal("-1.25"), Decimal("3")], kind)).to_numpy().tolist() == [Decimal("-1.25"), 3]


def test_fixed_size_binary_and_intervals():
    data = pa.array([b"abc", b"xyz"], pa.binary(3))
    values = taken(data).to_numpy(copy=False)
    assert values.dtype == np.dtype("V3") and [bytes(value) for value in values] == [b"abc", b"xyz"]
    assert address(values) == where(data)
    assert taken(pa.array([b"a", b"b"], pa.binary(1))).to_numpy(copy=False).tobytes() == b"ab"
    assert taken(pa.array([b"", b""], pa.binary(0))).to_numpy().shape == (2,)
    rows = taken(pa.array([(1, 2, 3), (4, 5, -6)], pa.month_day_nano_interval())).to_numpy(copy=False)
    assert rows["months"].tolist() == [1, 4] and rows["nanoseconds"].tolist() == [3, -6]
    months = from_buffers("interval(months)", 2, [None, np.array([1, 14], "i4")]).to_numpy()
    assert months.tolist() == [1, 14] and months.dtype == "m8[M]"
    days = from_buffers("interval(day_time)", 2, [None, np.array([1, 2, 3, 4], "i4")]).to_numpy(copy=False)
    assert days["days"].tolist() == [1, 3] and days["milliseconds"].tolist() == [2, 4]


def test_fixed_size_lists_are_dimensions():
    values = pa.array(range(24), pa.int16())
    data = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(values, 3), 4)
    found = taken(data).to_numpy(copy=False)
    assert found.shape == (2, 4, 3) and (found == np.arange(24).reshape(2, 4, 3)).all()
    assert address(found) == where(values)
    assert (taken(data).slice(1).to_numpy() == np.arange(12, 24).reshape(1, 4, 3)).all()
    assert taken(pa.array([[], []], pa.list_(pa.int8(), 0))).to_numpy().shape == (2, 0)


def test_nulls_within_rows():
    data = pa.array([[1, 2], None, [3, None], [5, 6]], pa.list_(pa.int16(), 2))
    array = taken(data)
    with pytest.raises(NotConforming, match="found 2, the first in row 1"):
        array.to_numpy()
    values, valid = array.to_numpy("split", copy=False)
    assert valid.tolist() == [[True, True], [False, False], [True, False], [True, True]]
    assert values[valid].tolist() == [1, 2, 3, 5, 6]
    assert array.to_numpy("fill", fill_value=0).tolist() == [[1, 2], [0, 0], [3, 0], [5, 6]]
    assert array.slice(3).to_numpy("split")[1] is None
    with pytest.raises(NotConforming, match="found 1, the first in row 0"):
        array.slice(2).to_numpy()


@each("permutation", [None, [0, 1], [1, 0]])
def test_fixed_shape_tensors(permutation):
    storage = pa.array([list(range(6)), None, [6, 7, None, 9, 10, 11]], pa.list_(pa.int32(), 6))
    data = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=permutation), storage)
    values, valid = taken(data).to_numpy("split", copy=False)
    whole = np.arange(6).reshape(2, 3)
    expected = whole if permutation != [1, 0] else whole.T
    assert (values[0] == expected).all() and values.shape == valid.shape == (3, *expected.shape)
    assert valid[0].all() and not valid[1].any()
    hole = np.ones((2, 3), bool)
    hole[0, 2] = False
    assert (valid[2] == (hole if permutation != [1, 0] else hole.T)).all()
    filled = taken(data).to_numpy("fill", fill_value=-1)
    assert (filled[1] == -1).all() and (filled == -1).sum() == 7


@each("name", ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"])
def test_strings_are_elsewhere(name):
    with pytest.raises(Unsupported, match=r"string_buffers\(\)"):
        taken(ARRAYS[name]).to_numpy("split")


@each("name, hint", [
    ("list<item: int32>", "to_awkward"), ("list_view<item: int32>", "to_awkward"), ("struct", "each field"),
    ("map", "to_awkward"), ("dense_union", "to_awkward"), ("run_ends", "ends of the runs"),
    ("null", "all of them are null"), ("dictionary", "array.codes"),
])
def test_other_types_are_refused_with_where_to_look(name, hint):
    with pytest.raises(Unsupported, match=hint):
        taken(ARRAYS[name]).to_numpy("split")


def test_a_dictionary_and_its_codes():
    data = pa.array(["b", "a", None, "b"]).dictionary_encode()
    array = taken(data).slice(1)
    codes = array.codes
    assert str(codes.type) == "int32" and codes.null_count == 1
    values, valid = codes.to_numpy("split", copy=False)
    assert valid.tolist() == [True, False, True] and values[valid].tolist() == [1, 0]
    assert address(values) == data.indices.buffers()[1].address + 4
    assert pa.array(array.dictionary).to_pylist() == ["b", "a"]
    with pytest.raises(Unsupported, match="dictionary-encoded"):
        taken(pa.array([1])).codes


def test_the_buffer_lives_as_long_as_the_values():
    values = np.arange(5, dtype="f8")
    other = np.arange(5, dtype="i4")
    array = from_buffers("struct<a: float64, b: int32>", 5, [None, None, values, None, other])
    column = array["a"].to_numpy()
    part = column[2:]
    del array, column
    gc.collect()
    assert bowstring.live_counts()["tensors"] == 1 and part.tolist() == [2, 3, 4]
    del part
    assert none_alive()


def test_device_memory_is_not_copied_unasked():
    array = from_buffers("int8", 8, [None, Buffer.from_address(4096, 64, None, "cuda:0")])
    for copy in (None, True, False):
        with pytest.raises(InvalidArgument, match=r"found cuda:0.*to_device\('cpu'\)"):
            array.to_numpy(copy=copy)


def test_empty_arrays():
    for name, dtype in {**NUMBERS, **VIEWS, **COPIES, "bool": "?", "decimal": "O", "fixed": "V3"}.items():
        values = taken(ARRAYS[name].slice(0, 0)).to_numpy()
        assert values.shape == (0,) and values.dtype == np.dtype(dtype), name


def test_numpy_is_imported_when_it_is_needed(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ImportError, match="pip install numpy"):
        taken(pa.array([1])).to_numpy()
