"""Arrays taken apart into buffers and put together again: exactly, without a copy, each buffer under its own owner."""

import ctypes
import gc

import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import Buffer, Device, InvalidArgument, InvalidData, Node, from_buffers

from values_support import each, everything, given, none_alive, Owner, references, taken

ARRAYS = everything()
WINDOWS = {
    "whole": lambda data: data,
    "window": lambda data: data.slice(1, len(data) - 2),
    "none": lambda data: data.slice(2, 0),
}


def places(parts):
    return [None if buffer is None else (buffer.ptr, buffer.bufsize) for buffer in parts.buffers]


@each("window", WINDOWS)
@each("name", ARRAYS)
def test_round_trip(name, window):
    data = WINDOWS[window](ARRAYS[name])
    array = taken(data)
    parts = array.to_buffers()
    again = from_buffers(*parts)
    assert again.type == array.type and again.device == Device(1, -1) and len(again) == len(data)
    assert again.source == "buffers"
    # An array without rows starts at 0. A window on a struct at the root goes into its children.
    if window == "whole" or (window == "window" and name != "struct"):
        assert again.to_buffers().nodes == parts.nodes
        assert places(again.to_buffers()) == places(parts)
    del array
    assert given(again).equals(data)


def test_sizes_become_known():
    parts = taken(ARRAYS["string"]).resolve_sizes().to_buffers()
    assert [buffer.bufsize for buffer in parts.buffers] == [1, 24, 25]
    assert parts.buffers[2].read().startswith(b"amore than")


def test_each_buffer_has_its_own_owner():
    validity, values, offsets = (np.array([3], "u1"), np.arange(2, dtype="f8"), np.array([0, 1, 2], "i4"))
    before = [references(each) for each in (validity, values, offsets)]
    array = from_buffers("list<float64>", [2, 2], [validity, offsets, None, values])
    assert places(array.to_buffers()) == [
        (validity.ctypes.data, 1), (offsets.ctypes.data, 12), None, (values.ctypes.data, 16)
    ]
    # A memoryview holds the array.
    assert [references(each) for each in (validity, values, offsets)] == [count + 1 for count in before]
    kept = array.to_buffers().buffers[1]
    assert given(array).to_pylist() == [[0.0], [1.0]]
    del array
    assert [references(each) for each in (validity, values, offsets)] == [before[0], before[1], before[2] + 1]
    assert kept.read() == offsets.tobytes()
    del kept
    assert [references(each) for each in (validity, values, offsets)] == before and none_alive()


def test_memory_cannot_move_while_it_is_used():
    memory = bytearray(b"\1\2\3\4")
    array = from_buffers("uint8", 4, [None, memory])
    with pytest.raises(BufferError):
        memory.append(5)
    del array
    gc.collect()
    memory.append(5)


def test_lengths_follow_from_the_root():
    children = [None, np.arange(3, dtype="i4"), None, None, np.arange(6, dtype="i1")]
    array = from_buffers("struct<a: int32, b: fixed_size_list<int8, 2>>", 3, [None, *children])
    assert [node.length for node in array.nodes] == [3, 3, 3, 6]
    assert given(array).to_pylist()[2] == {"a": 2, "b": [4, 5]}
    with pytest.raises(ValueError, match=r"length of every node.*\$\.item"):
        from_buffers("list<int8>", 1, [None, np.zeros(2, "i4"), None, b""])
    assert len(from_buffers("int8", np.int64(2), [None, b"ab"])) == 2


def test_a_flat_list_has_lengths_or_nodes():
    offsets, values = np.array([9, 0, 2, 3], "i4"), b"abc"
    array = from_buffers("list<int8>", [Node(2, 0, 1), 3], [None, offsets, None, values])
    assert given(array).to_pylist() == [[97, 98], [99]]
    same = from_buffers("list<int8>", [[2, 0, 1], (3,)], [None, offsets, None, values])
    assert same.to_buffers().nodes == array.to_buffers().nodes == [Node(2, 0, 1, 2), Node(3, 0, 0, 2)]
    nulls = from_buffers("int8", [3], [b"\5", b"abc"])
    assert nulls.null_count == 1


def test_numbers_of_variadic_buffers():
    view = b"".join([(20).to_bytes(4, "little"), b"aaaa", (1).to_bytes(4, "little"), (0).to_bytes(4, "little")])
    array = from_buffers("utf8_view", 1, [None, view, b"x" * 4, b"a" * 20, None])
    assert given(array).to_pylist() == ["a" * 20]
    assert array.to_buffers().nodes == [Node(1, 0, 0, 5)]
    two = "struct<a: utf8_view, b: utf8_view>"
    short = b"\1\0\0\0b" + bytes(11)
    with pytest.raises(ValueError, match=r"n_buffers of the nodes \[1, 2\]"):
        from_buffers(two, 1, [None, None, view, b"x" * 4, b"a" * 20, None, None, short, None])
    nodes = [1, Node(1, n_buffers=5), 1]
    both = from_buffers(two, nodes, [None, None, view, b"x" * 4, b"a" * 20, None, None, short, None])
    assert given(both).to_pylist() == [{"a": "a" * 20, "b": "b"}]


@pytest.mark.parametrize("kind, nodes, buffers, error, words", [
    ("int32", [1, 1], [None, b"1234"], ValueError, "numbers of 1 nodes, found 2"),
    ("int32", [1], [b"1234"], ValueError, "expected 2 buffers, found 1"),
    ("int32", [2], [None, b"1234"], InvalidData, "8"),
    ("int32", [-1], [None, b"1234"], InvalidData, "length"),
    ("int32", [1], [None, None], InvalidData, "NULL"),
    ("int32", [1], [None, "text"], TypeError, "str"),
    ("int32", [2], [None, np.zeros(4, "i4")[::2]], BufferError, "contiguous"),
    ("no such type", [2], [None, b""], InvalidArgument, "type"),
])
def test_what_is_refused_takes_nothing(kind, nodes, buffers, error, words):
    owner = Owner()
    data = np.zeros(4, "u1")
    given_buffers = [data if isinstance(buffer, bytes) and len(buffer) == 4 else buffer for buffer in buffers]
    before = references(data), references(owner)
    with pytest.raises(error, match=words):
        from_buffers(kind, nodes, given_buffers, owner=owner)
    assert (references(data), references(owner)) == before
    del owner
    gc.collect()
    assert Owner.alive == 0


def test_buffers_survive_a_refusal():
    buffer = Buffer.from_address(*memory(b"abcd"))
    with pytest.raises(InvalidData):
        from_buffers("int64", 1, [None, buffer])
    assert buffer.read() == b"abcd"
    assert given(from_buffers("int32", 1, [None, buffer])).to_numpy().tobytes() == b"abcd"
    assert buffer.read() == b"abcd"


def memory(data):
    """Address, size and owner of bytes."""
    return ctypes.cast(data, ctypes.c_void_p).value, len(data), data


def test_an_owner_of_all():
    owner = Owner()
    array = from_buffers("int8", 4, [None, Buffer.from_address(*memory(b"abcd")[:2], None)], owner=owner)
    child = array.slice(1)
    del owner, array
    gc.collect()
    assert Owner.alive == 1
    del child
    gc.collect()
    assert Owner.alive == 0


def test_device_memory_is_not_touched():
    # No such memory: whoever reads it crashes.
    owners = [Owner() for _ in range(3)]
    buffers = [Buffer.from_address(4096 * (k + 1), 4096, owner, "rocm:1") for k, owner in enumerate(owners)]
    array = from_buffers("list<float32>", [5, 20], [buffers[0], buffers[1], None, buffers[2]])
    assert array.device == Device(10, 1) and array.null_count == -1
    parts = array.to_buffers()
    assert places(parts) == [(4096, 4096), (8192, 4096), None, (12288, 4096)]
    assert {str(buffer.device) for buffer in parts.buffers if buffer} == {"rocm:1"}
    again = from_buffers(*parts)
    assert again.device == Device(10, 1) and places(again.to_buffers()) == places(parts)
    del array, again, buffers, parts
    assert Owner.alive == 3
    del owners
    gc.collect()
    assert Owner.alive == 0


def test_other_memory():
    days = np.array(["1970-01-03"], "M8[D]")
    array = from_buffers("int64", 1, [None, days])
    assert given(array).to_pylist() == [2] and places(array.to_buffers())[1] == (days.ctypes.data, 8)
    assert given(from_buffers("int8", 3, [None, pa.py_buffer(b"\1\2\3")])).to_pylist() == [1, 2, 3]


def test_one_device_for_all():
    there, here = Buffer.from_address(4096, 64, None, "rocm:0"), Buffer.from_address(4096, 64, None, "rocm:1")
    with pytest.raises(ValueError, match="on rocm:0, found buffer 1 on rocm:1"):
        from_buffers("int8", 8, [there, here])
    with pytest.raises(ValueError, match="on cuda:0, found buffer 0 on rocm:0"):
        from_buffers("int8", 8, [there, None], "cuda")
    with pytest.raises(ValueError, match="on rocm:0, found buffer 1 on cpu"):
        from_buffers("int8", 8, [there, b"12345678"])
    # What has no bytes is nowhere.
    assert from_buffers("int8", 0, [None, b""], "rocm:0").device == Device(10, 0)


class Event:
    """An event of a driver, as an object."""

    def __init__(self, handle):
        self.ptr = handle
        Owner.alive += 1

    def __del__(self):
        Owner.alive -= 1


def test_events_go_along():
    event = Event(0x1234)
    values = Buffer.from_address(4096, 64, Owner(), "rocm:0")
    array = from_buffers("int8", 8, [None, values], event=event)
    del event, values
    assert ctypes.c_void_p.from_address(array.sync_event).value == 0x1234
    parts = array.to_buffers()
    assert ctypes.c_void_p.from_address(parts.buffers[1].sync_event).value == 0x1234
    again = from_buffers(*parts)
    assert ctypes.c_void_p.from_address(again.sync_event).value == 0x1234
    del array, parts
    gc.collect()
    assert Owner.alive == 2
    del again
    gc.collect()
    assert Owner.alive == 0


def test_events_that_are_no_handles():
    where = np.zeros(8, "u1")
    array = from_buffers("int8", 8, [None, Buffer.from_address(4096, 64, None, "metal:0")], event=where.ctypes.data)
    assert array.sync_event == where.ctypes.data
    assert from_buffers(*array.to_buffers()).sync_event == where.ctypes.data


def test_several_events_are_refused():
    values = Buffer.from_address(4096, 64, None, "rocm:0")
    arrays = [from_buffers("int8", 8, [None, values], event=handle) for handle in (1, 2)]
    one, two = (array.to_buffers().buffers[1] for array in arrays)
    with pytest.raises(ValueError, match="one event for all buffers, found 2"):
        from_buffers("int8", 8, [one, two])
    with pytest.raises(ValueError, match="found both"):
        from_buffers("int8", 8, [one, one], event=1, stream=2)
    # The caller's word counts.
    assert ctypes.c_void_p.from_address(from_buffers("int8", 8, [one, two], event=3).sync_event).value == 3


def test_no_queue_without_a_driver():
    values = Buffer.from_address(4096, 64, Owner(), "rocm:0")
    with pytest.raises(bowstring.Unsupported):
        from_buffers("int8", 8, [None, values], stream=0x77)
    del values
    gc.collect()
    assert Owner.alive == 0


class CudaArray:
    """A producer with the CUDA array interface, whose memory is not there."""

    def __init__(self, shape=(8,), strides=None, stream=None, device=(2, 0), typestr="|i1", pointer=4096):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (pointer, True), "version": 3, "strides": strides,
            "stream": stream,
        }
        if device is not None:
            self.__dlpack_device__ = lambda: device
        Owner.alive += 1

    def __del__(self):
        Owner.alive -= 1


def test_cuda_arrays_as_buffers():
    array = from_buffers("int16", 4, [CudaArray((1,), typestr="|u1"), CudaArray((2, 2), (4, 2), typestr="<i2")])
    assert array.device == Device(2, 0) and places(array.to_buffers()) == [(4096, 1), (4096, 8)]
    assert Owner.alive == 2
    del array
    gc.collect()
    assert Owner.alive == 0


def test_cuda_arrays_that_do_not_say_where():
    # Then only the driver knows, which is not here.
    with pytest.raises((bowstring.BowstringError, TypeError), match="__cuda_array_interface__"):
        from_buffers("int8", 8, [None, CudaArray(device=None)])
    assert from_buffers("int8", 8, [None, CudaArray(device=None)], "cuda:1").device == Device(2, 1)
    with pytest.raises(BufferError, match="strides"):
        from_buffers("int8", 4, [None, CudaArray((4,), (2,))])
    with pytest.raises(ValueError, match="not 0"):
        from_buffers("int8", 8, [None, CudaArray(stream=0)])
    with pytest.raises(ValueError, match="several"):
        from_buffers("int8", 8, [CudaArray(stream=1), CudaArray(stream=2)])
    assert from_buffers("int8", 0, [None, CudaArray((0,), pointer=0)]).device == Device(1, -1)
    gc.collect()
    assert Owner.alive == 0


def test_golden_numbers_of_a_batch():
    batch = pa.record_batch({"a": pa.array([1, 2, None]), "b": pa.array(["x", None, "z"])})
    parts = taken(batch).to_buffers()
    assert parts.nodes == [Node(3, 0, 0, 1), Node(3, 1, 0, 2), Node(3, 1, 0, 3)]
    assert [buffer is None for buffer in parts.buffers] == [True, False, False, False, False, False]
    assert [buffer.ptr for buffer in parts.buffers[1:]] == [
        buffer.address for column in batch.columns for buffer in column.buffers()
    ]
