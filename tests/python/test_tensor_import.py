"""Tensors as arrays, and tensors of before 1.0 as versioned ones: what is shared, copied or refused."""

import ctypes
import gc
import itertools
from ctypes import byref, c_void_p
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
import tensors
from bowstring_ctypes import INVALID_ARGUMENT, UNSUPPORTED, BowstringError, call, lib, out
from tensors import ALLOW_COPY, BOOL, DROP_READ_ONLY, INT, READ_ONLY, Legacy, Made, Versioned

KINDS = {
    np.dtype(f"{kind}{bits}"): getattr(pa, f"{kind}{bits}")()
    for kind in ("int", "uint", "float")
    for bits in (8, 16, 32, 64)
    if (kind, bits) != ("float", 8)
}


def made(data, kind=None, flags=0):
    """An array handle of what numpy hands out."""
    kind = support.type_from(kind) if kind is not None else None
    cell = tensors.produced(data)
    try:
        return tensors.array_of(cell, kind, flags)
    except BowstringError:
        # It is still ours to let go.
        tensors.release(cell)
        raise
    finally:
        if kind is not None:
            lib.bowstring_type_release(kind)


def array_of(data, kind=None, flags=0):
    return tensors.back(made(data, kind, flags))


def check_refused(data, kind=None, flags=0, says="", path="$"):
    with pytest.raises(BowstringError) as caught:
        made(data, kind, flags)
    error = caught.value
    assert error.status == UNSUPPORTED and says in error.message and error.path == path, error
    assert "expected" in error.message and "found" in error.message


def address_of(handle):
    return support.buffer_infos(handle)[-1].data


def nested(kind, shape):
    """The type that a tensor of a shape has."""
    for length in reversed(shape[1:]):
        kind = pa.list_(pa.field("item", kind), length)
    return kind


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_numbers(dtype):
    for shape in ((5,), (4, 3), (2, 3, 4), (2, 1, 3, 2), (1,), (0,), (2, 0), (0, 2), (3, 0, 2)):
        data = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
        handle = made(data)
        # Where nothing is, nothing is kept.
        assert data.size == 0 or address_of(handle) == data.ctypes.data
        found = tensors.back(handle)
        assert found.type == nested(KINDS[dtype], shape)
        assert found.null_count == 0 and found.to_pylist() == data.tolist()


def test_scalars_are_a_row():
    data = np.array(7, np.int32)
    handle = made(data)
    assert address_of(handle) == data.ctypes.data
    assert tensors.back(handle).to_pylist() == [7]
    assert array_of(data, pa.int32()).to_pylist() == [7]


def test_the_longest_shape():
    """64 dimensions are 63 lists, and that is more than pyarrow imports."""
    data = np.arange(3).reshape((1,) * 63 + (3,))
    cell = tensors.produced(data)
    handle = tensors.array_of(cell)
    assert address_of(handle) == data.ctypes.data
    tensor = tensors.to_tensor(handle)
    assert tensors.look(tensor).shape == data.shape
    tensors.release(tensor)
    support.release(handle)


STRIDED = {
    "every other": np.arange(10)[::2],
    "backwards": np.arange(10)[::-1],
    "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "a part of each row": np.arange(12).reshape(3, 4)[:, 1:3],
    "the same row": np.broadcast_to(np.arange(3), (4, 3)),
    "the same value": np.broadcast_to(np.int64(3), (2, 2)),
    "inner backwards": np.arange(24).reshape(2, 3, 4)[:, ::-1],
    "turned": np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strides_are_refused_or_copied(name):
    data = STRIDED[name]
    check_refused(data, says="ALLOW_COPY")
    handle = made(data, None, ALLOW_COPY)
    start = np.lib.array_utils.byte_bounds(data)
    assert not start[0] <= address_of(handle) < start[1]
    found = tensors.back(handle)
    assert found.type == nested(pa.int64(), data.shape) and found.to_pylist() == data.tolist()


def test_strides_that_are_never_taken():
    data = np.arange(6).reshape(1, 6)
    odd = np.lib.stride_tricks.as_strided(data, (1, 6), (8000, 8))
    handle = made(odd)
    assert address_of(handle) == data.ctypes.data and tensors.back(handle).to_pylist() == data.tolist()


def test_peers_strided_tensors():
    """pyarrow takes rows 0 and 1 of the first, and the wrong halves of the second."""
    data = np.arange(24).reshape(4, 6)
    for view in (data[::2], data[:, :3]):
        kind = pa.fixed_shape_tensor(pa.int64(), (view.shape[1],))
        check_refused(view, kind, says="ALLOW_COPY")
        found = array_of(view, kind, ALLOW_COPY)
        assert found.type == kind and found.storage.to_pylist() == view.tolist()
        # Adjacent rows are no reason to copy.
    assert array_of(data[1:3], pa.fixed_shape_tensor(pa.int64(), (6,))).storage.to_pylist() == data[1:3].tolist()


def test_booleans():
    data = np.array([True, False, True] * 7)
    handle = made(data)
    assert address_of(handle) == data.ctypes.data
    found = tensors.back(handle)
    assert found.type == pa.bool8() and found.to_pylist() == data.tolist()
    found = array_of(data.reshape(7, 3))
    assert found.type == nested(pa.bool8(), (7, 3)) and found.to_pylist() == data.reshape(7, 3).tolist()
    assert array_of(data, pa.int8()).to_pylist() == [int(value) for value in data]
    check_refused(data, pa.bool_(), says="ALLOW_COPY to make bits")
    for part in (data, data[::2], data[::-1], data[3:], data[:8], data[:1], data[:0]):
        assert array_of(part, pa.bool_(), ALLOW_COPY).to_pylist() == part.tolist()
    turned = data.reshape(3, 7).T
    assert array_of(turned, pa.list_(pa.bool_(), 3), ALLOW_COPY).to_pylist() == turned.tolist()


TYPED = {
    "timestamp": (np.int64([1, 2]), pa.timestamp("ns", "UTC")),
    "date32": (np.int32([1, 2]), pa.date32()),
    "time64": (np.int64([1, 2]), pa.time64("us")),
    "duration": (np.int64([1, 2]), pa.duration("s")),
    "decimal64": (np.int64([15, -25]), pa.decimal64(10, 1)),
    "fixed binary": (np.frombuffer(b"abcdef", np.uint8).reshape(2, 3), pa.binary(3)),
    "decimal128": (np.frombuffer((7).to_bytes(16, "little"), np.uint8).reshape(1, 16), pa.decimal128(5, 0)),
    "list": (np.int16([[1, 2], [3, 4]]), pa.list_(pa.field("x", pa.int16(), nullable=False), 2)),
    "list of timestamps": (np.int64([[1, 2]]), pa.list_(pa.timestamp("s"), 2)),
}


@pytest.mark.parametrize("name", TYPED)
def test_types_that_are_asked_for(name):
    data, kind = TYPED[name]
    handle = made(data, kind)
    assert address_of(handle) == data.ctypes.data
    found = tensors.back(handle)
    assert found.type == kind
    tensor = tensors.of(found, tensors.PHYSICAL)
    assert np.array_equal(tensors.values(tensor), data)
    tensors.release(tensor)


def test_values_of_types_that_are_asked_for():
    assert array_of(np.int32([-15]), pa.decimal32(5, 1)).to_pylist() == [Decimal("-1.5")]
    assert array_of(np.frombuffer(b"abcd", np.uint8).reshape(2, 2), pa.binary(2)).to_pylist() == [b"ab", b"cd"]


@pytest.mark.parametrize("data, kind, path", (
    (np.int64([1]), pa.int32(), "$"), (np.int64([1]), pa.uint64(), "$"), (np.int64([1]), pa.float64(), "$"),
    (np.int64([1]), pa.utf8(), "$"), (np.int64([1]), pa.list_(pa.int64()), "$"), (np.int64([1]), pa.bool_(), "$"),
    (np.int64([1]), pa.dictionary(pa.int64(), pa.utf8()), "$"), (np.int64([1]), pa.null(), "$"),
    (np.int64([1]), pa.struct([("a", pa.int64())]), "$"), (np.int64([[1]]), pa.int64(), "$"),
    (np.int64([[1, 2]]), pa.list_(pa.int64(), 3), "$.item"), (np.int64([1, 2]), pa.list_(pa.int64(), 2), "$.item"),
    (np.int64([[[1]]]), pa.list_(pa.int64(), 1), "$.item"), (np.int64([[1]]), pa.list_(pa.int32(), 1), "$.item"),
    (np.uint8([[1, 2]]), pa.binary(3), "$"), (np.int64([1]), pa.fixed_shape_tensor(pa.int64(), (1, 1)), "$.item"),
    (np.int64([[[1, 2]]]), pa.fixed_shape_tensor(pa.int64(), (2, 1)), "$.item"),
    (np.complex64([1]), None, "$"),
))
def test_types_that_the_tensor_is_not_of(data, kind, path):
    with pytest.raises(BowstringError) as caught:
        made(data, kind, ALLOW_COPY)
    assert caught.value.status == UNSUPPORTED and caught.value.message.startswith("expected")
    assert caught.value.path in (path, path.replace("item", "element")), caught.value


# ---- arrow.fixed_shape_tensor ----


def logical(array):
    """What shaped tensors are: dimension i is the memory's dimension permutation[i]. pyarrow 26 reads some permutations
    of three dimensions by the strides of the inverse, so it cannot be asked."""
    stored = np.array(array.storage.to_pylist()).reshape(len(array), *array.type.shape)
    order = array.type.permutation or range(len(array.type.shape))
    return stored.transpose(0, *[i + 1 for i in order])


@pytest.mark.parametrize("order", tuple(itertools.permutations(range(3))), ids=str)
def test_row_major_in_any_order(order):
    """The memory's dimensions in every order are a permutation, not a copy."""
    memory = np.arange(2 * 2 * 3 * 4).reshape(2, 2, 3, 4)
    data = memory.transpose(0, *[i + 1 for i in order])
    handle = made(data, pa.fixed_shape_tensor(pa.int64(), data.shape[1:]))
    assert address_of(handle) == memory.ctypes.data
    found = tensors.back(handle)
    assert np.array_equal(logical(found), data)
    # Which dimension of memory each of the tensor's is.
    expected = None if order == (0, 1, 2) else list(order)
    permutation = found.type.permutation
    assert (permutation if permutation is None else list(permutation)) == expected
    if expected:
        assert list(found.type.shape) == [2, 3, 4]
    tensor = tensors.of(found)
    assert tensors.look(tensor).strides == tuple(step // 8 for step in data.strides)
    assert np.array_equal(tensors.values(tensor), data)
    tensors.release(tensor)


def test_equal_strides_stay_in_their_order():
    """Of dimensions of one element nobody can say where they are; those stay in their order."""
    memory = np.arange(12).reshape(2, 3, 2)
    data = np.lib.stride_tricks.as_strided(memory, (2, 2, 1, 1, 3), (48, 8, 16, 16, 16))
    found = array_of(data, pa.fixed_shape_tensor(pa.int64(), (2, 1, 1, 3)))
    assert np.array_equal(logical(found), data)
    assert list(found.type.shape) == [1, 1, 3, 2] and list(found.type.permutation) == [3, 0, 1, 2]


@pytest.mark.parametrize("data", (
    np.arange(48).reshape(2, 4, 6)[:, :, ::2].transpose(0, 2, 1), np.arange(12).reshape(2, 2, 3)[:, ::-1],
    np.broadcast_to(np.arange(3), (2, 2, 3)), np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
))
def test_shaped_tensors_of_other_strides(data):
    kind = pa.fixed_shape_tensor(pa.int64(), data.shape[1:])
    check_refused(data, kind, says="ALLOW_COPY")
    found = array_of(data, kind, ALLOW_COPY)
    assert found.type == kind and np.array_equal(logical(found), data)


def test_a_permutation_that_is_asked_for():
    memory = np.arange(12).reshape(2, 2, 3)
    kind = pa.fixed_shape_tensor(pa.int64(), (2, 3), permutation=(1, 0), dim_names=("a", "b"))
    found = array_of(memory.transpose(0, 2, 1), kind)
    assert found.type == kind and np.array_equal(logical(found), memory.transpose(0, 2, 1))
    straight = np.arange(12).reshape(2, 3, 2)
    check_refused(straight, kind, says="ALLOW_COPY")
    found = array_of(straight, kind, ALLOW_COPY)
    assert found.type == kind and np.array_equal(logical(found), straight)
    # Names would be of other dimensions after a permutation.
    named = pa.fixed_shape_tensor(pa.int64(), (3, 2), dim_names=("a", "b"))
    check_refused(memory.transpose(0, 2, 1), named, says="ALLOW_COPY")
    assert np.array_equal(logical(array_of(memory.transpose(0, 2, 1), named, ALLOW_COPY)), memory.transpose(0, 2, 1))


def test_shaped_booleans():
    data = np.arange(12).reshape(2, 2, 3) % 2 == 0
    found = array_of(data, pa.fixed_shape_tensor(pa.bool_(), (2, 3)), ALLOW_COPY)
    assert found.storage.to_pylist() == data.reshape(2, 6).tolist()


# ---- who keeps what ----


def test_shape_and_strides_are_read_at_once():
    foreign = Made(shape=(2, 2), strides=(2, 1))
    inner = tensors.struct_at(foreign.address).dl_tensor
    handle = tensors.array_of(foreign.cell)
    for i in range(2):
        inner.shape[i] = inner.strides[i] = -99
    inner.ndim, inner.data = -1, 0xA5
    assert tensors.back(handle).to_pylist() == [[0, 1], [2, 3]]
    gc.collect()
    assert foreign.deleted == 1


@pytest.mark.parametrize("last", ("child", "slice", "buffer", "export", "tensor", "owned"))
def test_the_tensor_is_kept_by_the_last_use(last):
    foreign = Made(shape=(2, 2))
    handle = tensors.array_of(foreign.cell)
    array, schema = bs.ArrowDeviceArray(), bs.ArrowSchema()
    if last == "child":
        kept = out("array_child", handle, 0)
    elif last == "slice":
        kept = out("array_slice", handle, 1, 1)
    elif last == "buffer":
        kept = out("array_buffer", handle, 2)
    elif last == "tensor":
        kept = tensors.to_tensor(handle)
    elif last == "export":
        call("array_export", handle, byref(array), byref(schema))
    else:
        kept = support.single_buffers(handle)
    support.release(handle)
    assert foreign.deleted == 0
    if last in ("child", "slice"):
        support.release(kept)
    elif last == "buffer":
        lib.bowstring_buffer_release(kept)
    elif last == "tensor":
        assert tensors.values(kept).tolist() == [[0, 1], [2, 3]]
        tensors.release(kept)
    elif last == "export":
        lib.bowstring_schema_release(byref(schema))
        assert foreign.deleted == 0
        lib.bowstring_device_array_release(byref(array))
    else:
        support.let_go(kept)
    assert foreign.deleted == 1


def test_a_copy_needs_the_tensor_no_longer():
    foreign = Made(shape=(4,), strides=(2,))
    handle = tensors.array_of(foreign.cell, None, ALLOW_COPY)
    assert foreign.deleted == 1
    assert tensors.back(handle).to_pylist() == [0, 2, 4, 6]


def test_arguments():
    foreign = Made()
    null, made_of = c_void_p(), c_void_p(0xA5)
    for arguments in (
        (None, None, None, byref(made_of)), (byref(null), None, None, byref(made_of)),
        (byref(foreign.cell), None, None, None),
        (byref(foreign.cell), None, tensors.options(16), byref(made_of)),
        (byref(foreign.cell), None, tensors.options(0, 9), byref(made_of)),
        (byref(foreign.cell), None, None, byref(foreign.cell)),
    ):
        with pytest.raises(BowstringError) as refused:
            call("array_from_tensor", *arguments)
        assert refused.value.status == INVALID_ARGUMENT and foreign.cell.value == foreign.address
    foreign.release()
    assert foreign.deleted == 1


# ---- before 1.0 ----


@pytest.mark.parametrize("strides", (None, (3, 1), (1, 2)), ids=str)
def test_legacy_tensors_are_wrapped(strides):
    foreign = Made(version=None, shape=(2, 3), strides=strides, offset=8)
    data = foreign.data
    new = out("tensor_from_legacy", byref(foreign.cell), None)
    assert foreign.cell.value is None
    inner = tensors.struct_at(new).dl_tensor
    assert (inner.data, inner.byte_offset) == (data, 8)
    seen = tensors.look(new)
    assert (seen.shape, seen.strides, seen.flags) == ((2, 3), strides or (3, 1), READ_ONLY)
    assert seen.dtype == (INT, 64, 1)
    # There is no way back that would say that it may be written.
    with pytest.raises(BowstringError, match="DROP_READ_ONLY"):
        out("tensor_to_legacy", byref(new), None)
    old = out("tensor_to_legacy", byref(new), tensors.options(DROP_READ_ONLY))
    assert new.value is None and foreign.deleted == 0
    seen = tensors.look(old, Legacy)
    assert (seen.address, seen.shape, seen.strides) == (data + 8, (2, 3), strides or (3, 1))
    lib.bowstring_legacy_tensor_release(old)
    assert foreign.deleted == 1


def test_versioned_tensors_of_others_as_legacy_ones():
    foreign = Made(dtype=(4, 16, 1), device=(2, 3), data=0x10000, offset=4, version=(1, 9), strides=(7,))
    old = out("tensor_to_legacy", byref(foreign.cell), None)
    inner = tensors.struct_at(old, Legacy).dl_tensor
    assert (inner.data, inner.byte_offset, inner.device.type, inner.device.id) == (0x10000, 4, 2, 3)
    assert (inner.dtype.code, inner.dtype.bits, inner.shape[0], inner.strides[0]) == (4, 16, 4, 7)
    lib.bowstring_legacy_tensor_release(old)
    assert foreign.deleted == 1


def test_arguments_of_wrapping():
    foreign, legacy = Made(), Made(version=None)
    null, wrapped = c_void_p(), c_void_p()
    for name, cell, address in (
        ("tensor_to_legacy", foreign.cell, foreign.address), ("tensor_from_legacy", legacy.cell, legacy.address),
    ):
        for arguments in (
            (None, None, byref(wrapped)), (byref(null), None, byref(wrapped)), (byref(cell), None, None),
            (byref(cell), None, byref(cell)), (byref(cell), tensors.options(16), byref(wrapped)),
        ):
            with pytest.raises(BowstringError) as refused:
                call(name, *arguments)
            assert refused.value.status == INVALID_ARGUMENT and cell.value == address
    foreign.release()
    legacy.release()
    assert (foreign.deleted, legacy.deleted) == (1, 1)
    assert ctypes.sizeof(Versioned) == 80 and ctypes.sizeof(Legacy) == 64 and BOOL == 6
