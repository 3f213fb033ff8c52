"""Tensors of single buffers, what a tensor keeps and for how long, devices, events and wrong arguments."""

import ctypes
import threading
from ctypes import byref, c_int64, c_void_p

import numpy as np
import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
import tensors
from bowstring_ctypes import INVALID_ARGUMENT, SYNC_REQUIRED, UNSUPPORTED, BowstringError, call, lib, live_counts, out
from raw import Node, i64
from tensors import ALLOW_COPY, BOOL, FLOAT, INT, READ_ONLY, UINT, raw_import
from test_owners import Parts

# ---- single buffers ----


def buffer_tensor(buffer, dtype, shape, ndim=None):
    numbers = (c_int64 * max(len(shape), 1))(*shape)
    return out("buffer_to_tensor", buffer, bs.DataType(*dtype), len(shape) if ndim is None else ndim, numbers, None)


def test_buffers():
    handle = support.imported(pa.array(["ab", "cde", ""]).slice(1))
    infos = support.buffer_infos(handle)
    for i, dtype, shape, expected in (
        (1, (INT, 32, 1), (4,), [0, 2, 5, 5]), (1, (INT, 32, 1), (2, 2), [[0, 2], [5, 5]]), (1, (INT, 64, 1), (), None),
        (1, (UINT, 8, 1), (0, 5), np.zeros((0, 5))),
    ):
        buffer = out("array_buffer", handle, i)
        tensor = buffer_tensor(buffer, dtype, shape)
        lib.bowstring_buffer_release(buffer)
        seen = tensors.look(tensor)
        assert (seen.shape, seen.dtype, seen.flags) == (shape, dtype, READ_ONLY)
        assert seen.address == (infos[i].data if np.prod(shape) else 0)
        assert list(seen.strides) == tensors.compact(shape)
        assert expected is None or np.array_equal(tensors.values(tensor), expected)
        tensors.release(tensor)
    support.release(handle)


def wrapped(size, data=bytes(16), device=1):
    owners = support.Owners()
    given = owners.buffer(7, data)
    given.size_bytes = size
    place = bs.Placement(device=bs.Device(device, 0))
    return owners, out("buffer_wrap", byref(given), byref(place))


@pytest.mark.parametrize("size, dtype, shape, status", (
    (16, (INT, 64, 1), (2,), 0), (16, (INT, 64, 1), (3,), INVALID_ARGUMENT), (16, (INT, 64, 2), (1,), 0),
    (16, (INT, 64, 2), (2,), INVALID_ARGUMENT), (16, (17, 4, 1), (32,), 0), (16, (17, 4, 1), (33,), INVALID_ARGUMENT),
    (16, (UINT, 1, 1), (127,), 0), (16, (UINT, 1, 1), (129,), INVALID_ARGUMENT), (16, (INT, 8, 1), (0,), 0),
    (16, (INT, 8, 1), (-1,), INVALID_ARGUMENT), (16, (INT, 8, 1), (0, -1), INVALID_ARGUMENT),
    (16, (INT, 0, 1), (1,), INVALID_ARGUMENT), (16, (INT, 8, 0), (1,), INVALID_ARGUMENT),
    (16, (200, 8, 1), (1,), INVALID_ARGUMENT), (16, (BOOL, 1, 1), (1,), INVALID_ARGUMENT),
    (16, (BOOL, 8, 1), (16,), 0),
    (16, (INT, 8, 1), (1,) * 64, 0), (16, (INT, 8, 1), (1,) * 65, UNSUPPORTED),
    (-1, (INT, 8, 1), (1,), INVALID_ARGUMENT), (-1, (INT, 8, 1), (2**40,), INVALID_ARGUMENT),
    (16, (INT, 64, 1), (2**61,), INVALID_ARGUMENT),
    (16, (INT, 64, 1), (2**32, 2**32), UNSUPPORTED), (16, (INT, 64, 1), (2**32, 2**32, 0), None),
))
def test_buffers_of_known_sizes(size, dtype, shape, status):
    owners, buffer = wrapped(size)
    if status == 0:
        tensor = buffer_tensor(buffer, dtype, shape)
        lib.bowstring_buffer_release(buffer)
        # No elements keep nothing.
        assert owners.released == ([] if np.prod(shape) else [7])
        tensors.release(tensor)
    else:
        with pytest.raises(BowstringError) as refused:
            buffer_tensor(buffer, dtype, shape)
        assert status is None or refused.value.status == status, refused.value
        lib.bowstring_buffer_release(buffer)
    assert owners.released == [7]


def test_buffers_on_devices_and_wrong_arguments():
    owners, buffer = wrapped(16, device=2)
    tensor = buffer_tensor(buffer, (FLOAT, 32, 1), (4,))
    assert tensors.look(tensor).device == (2, 0)
    tensors.release(tensor)
    for ndim, shape in ((-1, None), (1, None)):
        with pytest.raises(BowstringError) as refused:
            out("buffer_to_tensor", buffer, bs.DataType(INT, 8, 1), ndim, shape, None)
        assert refused.value.status == INVALID_ARGUMENT
    lib.bowstring_buffer_release(buffer)
    assert owners.released == [7]
    with pytest.raises(BowstringError):
        buffer_tensor(None, (INT, 8, 1), (1,))


# ---- what is kept, where, and for how long ----


def parts_of_lists():
    """Lists of two with a bitmap at each level: buffers 1, 2 and 3 have owners."""
    nodes = [(2, 0, 0, 1), (4, 0, 0, 2)]
    parts = Parts(b"fixed_size_list<int64, 2>", nodes, [b"\xff", b"\xff", i64(1, 2, 3, 4)])
    parts.placement.release_owner = bs.RELEASE()
    parts.placement.owner = None
    return parts


def built(parts):
    kind = c_void_p(lib.bowstring_type_retain(parts.kind))
    array = parts.build()
    handle = out("array_import_typed", byref(array), kind)
    lib.bowstring_type_release(kind)
    return handle


@pytest.mark.parametrize("array_first", (True, False))
def test_only_the_values_are_kept(array_first):
    parts = parts_of_lists()
    handle = built(parts)
    tensor, (bits, bit) = tensors.to_tensor(handle), (c_void_p(), c_int64())
    call("array_validity_to_tensor", handle, None, byref(bits), byref(bit))
    if array_first:
        support.release(handle)
        assert parts.owners.released == [2]
        tensors.release(bits)
        assert sorted(parts.owners.released) == [1, 2]
        assert tensors.values(tensor).tolist() == [[1, 2], [3, 4]]
        tensors.release(tensor)
    else:
        tensors.release(tensor, bits)
        assert parts.owners.released == []
        support.release(handle)
    assert sorted(parts.owners.released) == [1, 2, 3]


def test_a_copy_keeps_nothing():
    parts = Parts(b"bool", [(3, 0, 0, 2)], [None, b"\x05"])
    handle = built(parts)
    tensor = tensors.to_tensor(handle, ALLOW_COPY)
    support.release(handle)
    assert sorted(parts.owners.released) == [2, 100]
    assert tensors.values(tensor).tolist() == [True, False, True]
    tensors.release(tensor)


def test_no_elements_keep_nothing():
    parts = Parts(b"int64", [(2, 0, 0, 2)], [None, i64(1, 2)])
    handle = built(parts)
    window = out("array_slice", handle, 1, 0)
    tensor = tensors.to_tensor(window)
    support.release(handle, window)
    assert sorted(parts.owners.released) == [2, 100] and tensors.look(tensor).shape == (0,)
    tensors.release(tensor)


def test_threads_let_go_of_the_last_reference():
    """The array is gone, and the deleters run where nobody made them."""
    owners, made = [], []
    for _ in range(40):
        parts = Parts(b"int64", [(2, 0, 0, 2)], [None, i64(1, 2)])
        handle = built(parts)
        made.append([tensors.to_tensor(handle) for _ in range(4)])
        support.release(handle)
        assert parts.owners.released == [100]
        owners.append(parts.owners)

    start = threading.Barrier(4)

    def let_go(k):
        start.wait()
        for each in made:
            deleter = tensors.struct_at(each[k]).deleter
            ctypes.CFUNCTYPE(None, c_void_p)(deleter)(each[k])

    threads = [threading.Thread(target=let_go, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(owner.released == [100, 2] for owner in owners)


def test_tensors_are_counted():
    before = live_counts().get("tensors", 0)
    tensor = tensors.of(pa.array([1]))
    assert live_counts()["tensors"] == before + 1
    tensors.release(tensor)
    assert live_counts().get("tensors", 0) == before


# ---- devices, events and arguments ----


def on_device(device, offset=2, format="l", **more):
    return raw_import(Node(format, 3, 0, offset, buffers=[None, 0x10000]), device=device, **more)


@pytest.mark.parametrize("device, expected", (
    ((1, -1), (1, 0)), ((1, 0), (1, 0)), ((2, 3), (2, 3)), ((3, -1), (3, 0)), ((3, 0), (3, 0)), ((13, 0), (13, 0)),
    ((10, 7), (10, 7)), ((2, 2**31 - 1), (2, 2**31 - 1)), ((2, 2**31), None), ((2, -1), None), ((4, 1), (4, 1)),
    ((7, 0), (7, 0)), ((8, 0), (8, 0)),
))
def test_devices(device, expected):
    raw, handle = on_device(device)
    if expected is None:
        with pytest.raises(BowstringError, match="device id") as refused:
            tensors.to_tensor(handle)
        assert refused.value.status == UNSUPPORTED
        support.release(handle)
        return
    tensor = tensors.to_tensor(handle)
    support.release(handle)
    seen, inner = tensors.look(tensor), tensors.struct_at(tensor).dl_tensor
    assert (seen.device, seen.address) == (expected, 0x10010)
    # What a handle leads to is not found by arithmetic.
    assert inner.byte_offset == (16 if device[0] in (4, 7, 8, 15) else 0)
    tensors.release(tensor)
    assert raw.array_released == 1


@pytest.mark.parametrize("mode", (bs.SYNC_NONE, bs.SYNC_QUEUE, bs.SYNC_HOST))
def test_events_that_are_pending(mode):
    event = c_void_p(0x1234)
    raw, handle = on_device((14, 0), sync_event=ctypes.addressof(event))
    made, bit = c_void_p(0xA5), c_int64()
    expected = SYNC_REQUIRED if mode == bs.SYNC_NONE else UNSUPPORTED
    for function, more in (("array_to_tensor", ()), ("array_validity_to_tensor", (byref(bit),))):
        with pytest.raises(BowstringError) as refused:
            call(function, handle, tensors.options(0, mode), byref(made), *more)
        assert refused.value.status == expected and made.value is None
    buffer = out("array_buffer", handle, 1)
    with pytest.raises(BowstringError) as refused:
        numbers = (c_int64 * 1)(1)
        out("buffer_to_tensor", buffer, bs.DataType(INT, 8, 1), 1, numbers, tensors.options(0, mode))
    assert refused.value.status == expected
    lib.bowstring_buffer_release(buffer)
    support.release(handle)


def test_bits_on_a_device_are_not_copied():
    raw, handle = on_device((2, 0), format="b")
    with pytest.raises(BowstringError) as refused:
        tensors.to_tensor(handle, ALLOW_COPY)
    assert refused.value.status in (UNSUPPORTED, bs.DEVICE_UNAVAILABLE)
    support.release(handle)


def test_arguments():
    handle = support.imported(pa.array([1, 2]))
    for flags, mode in ((16, 0), (1 << 63, 0), (0, 9), (0, -1)):
        with pytest.raises(BowstringError) as refused:
            tensors.to_tensor(handle, flags, mode)
        assert refused.value.status == INVALID_ARGUMENT
    short = bs.TensorOptions()
    short.struct_size = 8
    made = c_void_p(0xA5)
    for arguments in ((None, None), (handle, byref(short))):
        made.value = 0xA5
        with pytest.raises(BowstringError) as refused:
            call("array_to_tensor", *arguments, byref(made))
        assert refused.value.status == INVALID_ARGUMENT and made.value is None
    with pytest.raises(BowstringError):
        call("array_to_tensor", handle, None, None)
    all_zero = bs.TensorOptions()
    tensor = out("array_to_tensor", handle, byref(all_zero))
    assert tensors.values(tensor).tolist() == [1, 2]
    tensors.release(tensor)
    support.release(handle)
