"""Arrays shown as tensors: which memory, which shape, and what is refused."""

import ctypes
import json
import struct
from ctypes import byref, c_void_p
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import all_types
import bowstring_ctypes as bs
import support
import tensors
from bowstring_ctypes import UNSUPPORTED, BowstringError, call, lib, out
from raw import Node, i16, i32, metadata
from tensors import ALLOW_COPY, BOOL, FLOAT, INT, IS_COPIED, PHYSICAL, READ_ONLY, UINT, VALUES_ONLY, raw_import

WINDOWS = ((0, None), (3, 5), (0, 0), (11, 0), (10, 1))
NUMBERS = {
    **{f"int{bits}": (INT, bits, 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (UINT, bits, 1) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (FLOAT, bits, 1) for bits in (16, 32, 64)},
}


def refusal(data, flags=0):
    with pytest.raises(BowstringError) as caught:
        tensors.of(data, flags)
    return caught.value


def check_refused(data, path="$", flags=0, says=""):
    error = refusal(data, flags)
    assert (error.status, error.rule, error.path) == (UNSUPPORTED, "", path), error
    assert "expected" in error.message and "found" in error.message and says in error.message, error


def check(data, expected, flags=0, at=None, is_copied=False):
    """One tensor: its numbers, its values, and, unless it is a copy, where it is."""
    tensor = tensors.of(data, flags)
    try:
        seen = tensors.look(tensor)
        assert seen.shape == expected.shape and seen.device == (1, 0)
        assert seen.flags == (IS_COPIED if is_copied else READ_ONLY)
        assert tensors.struct_at(tensor).dl_tensor.byte_offset == 0
        if expected.size == 0:
            assert not seen.address
        elif at is not None:
            assert seen.address == at
        found = tensors.values(tensor)
        assert found.dtype.itemsize == expected.dtype.itemsize and found.tobytes() == expected.tobytes()
    finally:
        tensors.release(tensor)
    return seen


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    expected = np.arange(11).astype(name)
    array = pa.array(expected)
    for offset, length in WINDOWS:
        end = None if length is None else offset + length
        at = array.buffers()[1].address + offset * expected.itemsize
        seen = check(array.slice(offset, length), expected[offset:end], at=at)
        assert seen.dtype == NUMBERS[name] and seen.strides == (1,)


# Type, values, and the elements that the values consist of.
PHYSICALS = {
    "date32": (pa.date32(), [1, 2, 3], np.int32([1, 2, 3])),
    "date64": (pa.date64(), [0, 86400000], np.int64([0, 86400000])),
    "time32": (pa.time32("ms"), [5, 6], np.int32([5, 6])),
    "time64": (pa.time64("ns"), [5, 6], np.int64([5, 6])),
    "timestamp": (pa.timestamp("us", "Europe/Paris"), [-5, 6], np.int64([-5, 6])),
    "duration": (pa.duration("s"), [-5, 6], np.int64([-5, 6])),
    "decimal32": (pa.decimal32(5, 1), [Decimal("-1.5"), Decimal("2.5")], np.int32([-15, 25])),
    "decimal64": (pa.decimal64(15, 1), [Decimal("-1.5"), Decimal("2.5")], np.int64([-15, 25])),
    "decimal128": (
        pa.decimal128(5, 1), [Decimal("-1.5"), Decimal("2.5")],
        np.frombuffer((-15).to_bytes(16, "little", signed=True) + (25).to_bytes(16, "little"), np.uint8).reshape(2, 16),
    ),
    "decimal256": (
        pa.decimal256(5, 0), [Decimal(-1), Decimal(2)],
        np.frombuffer(b"\xff" * 32 + (2).to_bytes(32, "little"), np.uint8).reshape(2, 32),
    ),
    "interval": (
        pa.month_day_nano_interval(), [pa.MonthDayNano([1, -2, 3])],
        np.frombuffer(struct.pack("=iiq", 1, -2, 3), np.uint8).reshape(1, 16),
    ),
    "fixed binary": (pa.binary(3), [b"abc", b"def"], np.frombuffer(b"abcdef", np.uint8).reshape(2, 3)),
    "no width": (pa.binary(0), [b"", b""], np.zeros((2, 0), np.uint8)),
    "string view": (
        pa.string_view(), ["ab"], np.frombuffer(struct.pack("=i12s", 2, b"ab"), np.uint8).reshape(1, 16)
    ),
    "binary view": (
        pa.binary_view(), [b"abc"], np.frombuffer(struct.pack("=i12s", 3, b"abc"), np.uint8).reshape(1, 16)
    ),
}


@pytest.mark.parametrize("name", PHYSICALS)
def test_what_values_consist_of(name):
    kind, values, expected = PHYSICALS[name]
    array = pa.array(values, pa.int64()).cast(kind) if kind == pa.date64() else pa.array(values, kind)
    check_refused(array, says="PHYSICAL")
    check(array, expected, PHYSICAL, at=array.buffers()[1] and array.buffers()[1].address)
    check(array.slice(1), expected[1:], PHYSICAL)
    nested = pa.FixedSizeListArray.from_arrays(array, 1)
    field = nested.type.value_field.name
    check_refused(nested, f"$.{field}", says="PHYSICAL")
    check(nested, expected.reshape(len(values), 1, *expected.shape[1:]), PHYSICAL)


def test_intervals_that_pyarrow_does_not_have():
    for format, data, expected in (
        ("tiM", i32(5, -6), np.int32([5, -6])), ("tiD", i32(1, 2, 3, 4), np.int32([[1, 2], [3, 4]])),
    ):
        raw, handle = raw_import(Node(format, 2, buffers=[None, data]))
        tensor = tensors.to_tensor(handle, PHYSICAL)
        support.release(handle)
        assert np.array_equal(tensors.values(tensor), expected) and not raw.array_released
        tensors.release(tensor)
        assert raw.array_released == 1


def test_indices_into_dictionaries():
    array = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int16()), ["x", "y"])
    check_refused(array)
    check(array, np.int16([1, 0, 1]), PHYSICAL, at=array.indices.buffers()[1].address)
    check(array.slice(2), np.int16([1]), PHYSICAL)
    check_refused(pa.FixedSizeListArray.from_arrays(array.slice(0, 2), 2), "$.item")


def test_bool8_is_int8():
    array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 2, -1], pa.int8()))
    seen = check(array, np.int8([0, 2, -1]), at=array.storage.buffers()[1].address)
    assert seen.dtype == (INT, 8, 1)


def test_types_without_values_of_one_size():
    for name, column in all_types.columns():
        kind = column.type.storage_type if isinstance(column.type, pa.BaseExtensionType) else column.type
        if pa.types.is_dictionary(kind) or pa.types.is_fixed_size_list(kind):
            continue
        handle = support.imported(column)
        try:
            tensor = tensors.to_tensor(handle, PHYSICAL | VALUES_ONLY | ALLOW_COPY)
        except BowstringError as error:
            assert error.status == UNSUPPORTED and "one size" in error.message, name
            nested = not pa.types.is_primitive(kind) and not str(kind).endswith("_view")
            assert nested and not pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind), name
        else:
            assert tensors.look(tensor).shape[0] == len(column), name
            tensors.release(tensor)
        support.release(handle)


def lists(depth, *, offset=0):
    """Lists of lists of 2, 3, 4, ... int16, cut at every level, and the same as numpy has it."""
    sizes = [2, 3, 4, 2, 1][:depth]
    length = 7
    total = length * int(np.prod(sizes))
    values = np.arange(-3, total + 5, dtype=np.int16)
    array, at = pa.array(values).slice(3), 3
    expected = values[3:]
    for size in reversed(sizes):
        rows = len(array) // size
        array = pa.FixedSizeListArray.from_arrays(array.slice(0, rows * size), size)
        expected = expected[: rows * size].reshape(rows, size, *expected.shape[1:])
        if rows > length:
            # A row less at this level moves all the levels below.
            array, expected = array.slice(1), expected[1:]
    return array, expected


@pytest.mark.parametrize("depth", (1, 2, 3, 4, 5))
def test_lists_of_lists(depth):
    array, expected = lists(depth)
    assert np.array_equal(np.array(array.to_pylist(), np.int16), expected)
    for offset, length in ((0, None), (1, None), (2, 2), (3, 0), (1, 1)):
        end = None if length is None else offset + length
        part = expected[offset:end]
        seen = check(array.slice(offset, length), part)
        assert list(seen.strides) == tensors.compact(part.shape)


def test_children_and_dictionaries():
    """The window of a struct is its children's too, and a list's child and a dictionary are there as a whole."""
    numbers, lists = pa.array(range(10), pa.int16()), pa.FixedSizeListArray.from_arrays(pa.array(range(20)), 2)
    rows = pa.StructArray.from_arrays([numbers, lists], ["a", "b"]).slice(2, 6)
    items = pa.ListArray.from_arrays([0, 1, 3, 6], pa.array([1.5, 2, 3, 4, 5, 6])).slice(1)
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([7, 8, 9], pa.uint32()).slice(1))
    for parent, i, expected in (
        (rows, 0, np.arange(2, 8, dtype=np.int16)), (rows, 1, np.arange(4, 16).reshape(6, 2)),
        (lists.slice(3, 2), 0, np.arange(6, 10)), (items, 0, np.array([1.5, 2, 3, 4, 5, 6])),
        (coded, None, np.array([8, 9], np.uint32)),
    ):
        handle = support.imported(parent)
        child = out("array_dictionary", handle) if i is None else out("array_child", handle, i)
        for part, values in ((child, expected), (out("array_slice", child, 1, 1), expected[1:2])):
            tensor = tensors.to_tensor(part)
            assert np.array_equal(tensors.values(tensor), values)
            tensors.release(tensor)
            support.release(part)
        support.release(handle)


def with_nulls(at):
    """Three levels with one null, in the level that is asked for."""
    leaf = pa.array([None if at == 2 and i == 7 else i for i in range(16)], pa.int32())
    mask = pa.array([at == 1 and i == 3 for i in range(8)])
    middle = pa.FixedSizeListArray.from_arrays(leaf, 2, mask=mask)
    return pa.FixedSizeListArray.from_arrays(middle, 2, mask=pa.array([at == 0 and i == 1 for i in range(4)]))


@pytest.mark.parametrize("at", (0, 1, 2))
def test_nulls_at_every_level(at):
    array = with_nulls(at)
    path = "$" + ".item" * at
    check_refused(array, path, says="VALUES_ONLY")
    check_refused(array.slice(1), path)
    handle = support.imported(array)
    tensor = tensors.to_tensor(handle, VALUES_ONLY)
    found = tensors.values(tensor)
    values = np.ctypeslib.as_array((ctypes.c_int32 * 16).from_address(tensors.look(tensor).address))
    assert found.shape == (4, 2, 2) and np.array_equal(found.ravel(), values)
    assert np.array_equal(np.delete(found.ravel(), [4, 5, 6, 7]), [0, 1, 2, 3, *range(8, 16)])
    del values
    tensors.release(tensor)
    support.release(handle)
    # Nulls that the window does not show hinder nobody.
    check(array.slice(2), np.arange(8, 16, dtype=np.int32).reshape(2, 2, 2))
    check(array.slice(0, 1), np.arange(4, dtype=np.int32).reshape(1, 2, 2))


def test_peers_nulls_below_lists():
    """pyarrow exports such a list as [[1, 0], [3, 4]]."""
    array = pa.array([[1, None], [3, 4]], pa.list_(pa.int64(), 2))
    check_refused(array, "$.item")
    shaped = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int64(), (2,)), array)
    check_refused(shaped, "$.item")


def test_null_counts_that_nobody_told():
    bitmap = b"\xf5"
    for offset, length, nulls in ((0, 4, 2), (2, 1, 0), (4, 4, 0), (0, 8, 2)):
        raw, handle = raw_import(Node("i", length, -1, offset, buffers=[bitmap, i32(*range(8))]))
        if nulls:
            with pytest.raises(BowstringError, match=f"found {nulls}"):
                tensors.to_tensor(handle)
        else:
            tensor = tensors.to_tensor(handle)
            assert tensors.values(tensor).tolist() == list(range(offset, offset + length))
            tensors.release(tensor)
        support.release(handle)
        assert raw.array_released == 1
    # Where they cannot be counted they are not known to be none.
    raw, handle = raw_import(Node("i", 4, -1, buffers=[0x1000, 0x2000]), device=(14, 0))
    with pytest.raises(BowstringError, match="nobody knows"):
        tensors.to_tensor(handle)
    tensor = tensors.to_tensor(handle, VALUES_ONLY)
    assert (tensors.look(tensor).address, tensors.look(tensor).device) == (0x2000, (14, 0))
    tensors.release(tensor)
    support.release(handle)


# ---- arrow.fixed_shape_tensor ----

SHAPES = ((6,), (2, 3), (3, 1, 2), (2, 1, 3, 2), (0, 2), ())


def orders(n):
    """A few orders of n dimensions."""
    return {tuple(range(n)), tuple(reversed(range(n))), tuple((i + 1) % n for i in range(n)) if n else ()}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fixed_shape_tensors(shape):
    size = int(np.prod(shape))
    values = pa.array(np.arange(4 * size + 2), pa.int64()).slice(2)
    storage = pa.FixedSizeListArray.from_arrays(values, size) if size else pa.array([[]] * 4, pa.list_(pa.int64(), 0))
    expected = np.arange(2, 4 * size + 2).reshape(4, *shape)
    for order in orders(len(shape)):
        kind = pa.fixed_shape_tensor(pa.int64(), shape, permutation=order if shape else None)
        array = pa.ExtensionArray.from_storage(kind, storage)
        turned = expected.transpose(0, *[i + 1 for i in order])
        for offset, length in ((0, 4), (1, 2), (4, 0)):
            seen = check(array.slice(offset, length), turned[offset : offset + length])
            if turned[offset : offset + length].size:
                assert seen.strides == tuple(step // 8 for step in turned.strides)
        # In a list of its own there is a dimension before it.
        nested = pa.FixedSizeListArray.from_arrays(array, 2)
        check(nested.slice(1), turned.reshape(2, 2, *turned.shape[1:])[1:])


def test_fixed_shapes_in_fixed_shapes():
    """Nobody says in which order the dimensions of both are, so they are not guessed."""
    def shaped(shape, order):
        text = json.dumps({"shape": shape, "permutation": order}).encode()
        return metadata((b"ARROW:extension:name", b"arrow.fixed_shape_tensor"), (b"ARROW:extension:metadata", text))

    leaf = Node("s", 72, buffers=[None, i16(*range(72))], name=b"item")
    inner = Node("+w:6", 12, buffers=[None], children=[leaf], metadata=shaped([3, 2], [1, 0]), name=b"item")
    raw, handle = raw_import(Node("+w:6", 2, buffers=[None], children=[inner], metadata=shaped([2, 3], [1, 0])))
    kind = support.type_of(handle)
    with pytest.raises(BowstringError) as refused:
        tensors.to_tensor(handle)
    assert (refused.value.status, refused.value.path) == (UNSUPPORTED, "$.item")
    support.release(handle)
    assert raw.array_released == 1
    cell = tensors.produced(np.arange(72, dtype=np.int16).reshape(2, 3, 2, 2, 3))
    with pytest.raises(BowstringError) as refused:
        tensors.array_of(cell, kind, ALLOW_COPY)
    assert (refused.value.status, refused.value.path) == (UNSUPPORTED, "$.item")
    tensors.release(cell)
    lib.bowstring_type_release(kind)


@pytest.mark.parametrize("text", (
    b"", b"{}", b"[]", b'{"shape":[2,3]', b'{"shape":[2,2]}', b'{"shape":[-2,-3]}', b'{"shape":[2,3]} x',
    b'{"shape":[2,3],"permutation":[0]}', b'{"shape":[2,3],"permutation":[0,0]}',
    b'{"shape":[2,3],"permutation":[0,2]}', b'{"shape":[2,3],"permutation":[1,0,2]}',
    b'{"shape":[4611686018427387904,4,6]}', b'{"shape":"2,3"}',
))
def test_shapes_that_are_none(text):
    named = metadata((b"ARROW:extension:name", b"arrow.fixed_shape_tensor"), (b"ARROW:extension:metadata", text))
    leaf = Node("i", 6, buffers=[None, i32(*range(6))])
    raw, handle = raw_import(Node("+w:6", 1, buffers=[None], children=[leaf], metadata=named))
    with pytest.raises(BowstringError) as refused:
        tensors.to_tensor(handle)
    assert (refused.value.status, refused.value.rule) == (bs.INVALID_DATA, "S7")
    support.release(handle)


# ---- bits ----


def test_booleans_are_unpacked():
    rng = np.random.default_rng(8)
    values = rng.integers(0, 2, 70).astype(bool)
    array, done = pa.array(values), 0
    check_refused(array, says="ALLOW_COPY")
    for offset in range(18):
        for length in (0, 1, 7, 8, 9, 31, 50):
            seen = check(array.slice(offset, length), values[offset : offset + length], ALLOW_COPY, is_copied=True)
            assert seen.dtype == (BOOL, 8, 1)
            done += 1
    nested = pa.FixedSizeListArray.from_arrays(array.slice(3, 60), 6)
    check_refused(nested, "$.item", says="ALLOW_COPY")
    check(nested.slice(1, 8), values[9:57].reshape(8, 6), ALLOW_COPY, is_copied=True)
    shaped = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.bool_(), (2, 3), permutation=(1, 0)), nested)
    check(shaped.slice(1), values[9:63].reshape(9, 2, 3).transpose(0, 2, 1), ALLOW_COPY, is_copied=True)
    support.figure("windows of booleans", done, 126)


def test_validity():
    rng = np.random.default_rng(9)
    valid = rng.integers(0, 2, 70).astype(bool)
    array = pa.array(np.arange(70), mask=~valid)
    bitmap = array.buffers()[0]
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    for offset in range(18):
        for length in (0, 1, 7, 8, 9, 31, 50):
            window, expected = array.slice(offset, length), valid[offset : offset + length]
            tensor, bit = tensors.validity_of(window)
            seen = tensors.look(tensor)
            assert (bit, seen.dtype, seen.flags) == (offset % 8, (UINT, 8, 1), READ_ONLY)
            assert seen.shape == ((bit + length + 7) // 8 if length else 0,)
            assert seen.address == (bitmap.address + offset // 8 if length else 0)
            found = np.unpackbits(tensors.values(tensor), bitorder="little")[bit : bit + length]
            assert np.array_equal(found, expected)
            tensors.release(tensor)
            tensor, bit = tensors.validity_of(window, ALLOW_COPY)
            assert (bit, tensors.look(tensor).flags, tensors.look(tensor).dtype) == (0, IS_COPIED, (BOOL, 8, 1))
            assert np.array_equal(tensors.values(tensor), expected)
            tensors.release(tensor)
    assert np.array_equal(bits[:70], valid)
    del bits


def test_validity_that_is_not_there():
    for array in (pa.array([1, 2]), pa.nulls(3), pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])):
        for flags in (0, ALLOW_COPY):
            assert tensors.validity_of(array, flags) == (None, 0)
    handle = support.imported(pa.array([1, None]))
    made = c_void_p()
    call("array_validity_to_tensor", handle, tensors.options(ALLOW_COPY), byref(made), None)
    assert tensors.values(made).tolist() == [True, False]
    tensors.release(made)
    with pytest.raises(BowstringError, match="bit offset"):
        call("array_validity_to_tensor", handle, None, byref(made), None)
    assert made.value is None
    support.release(handle)
