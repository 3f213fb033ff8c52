"""`bowstring.buffer`: the memory of any object as one block."""

import array
import gc
import mmap

import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import CopyNeeded, Refused
from producers import LEGACY, TENSOR, Ints, Speaks, Tensor, name_of, refuses


@pytest.mark.parametrize(
    "data", [b"abc", bytearray(b"abc"), memoryview(b"abc"), pa.py_buffer(b"abc"), np.frombuffer(b"abc", "u1")]
)
def test_bytes(data):
    buffer = bowstring.buffer(data)
    assert (buffer.bufsize, buffer.peek(), str(buffer.device), len(buffer)) == (3, b"abc", "cpu", 3)
    assert buffer.ptr == np.frombuffer(data, "u1").ctypes.data
    assert buffer.base is data


def test_own_buffers():
    buffer = bowstring.buffer(b"abc")
    assert bowstring.buffer(buffer) is buffer
    typed = np.arange(6, dtype="i4")
    assert bowstring.buffer(bowstring.buffer(typed).typed("int32", (2, 3))).ptr == typed.ctypes.data
    assert bowstring.buffer(bowstring.array(typed)).ptr == typed.ctypes.data


@pytest.mark.parametrize("dtype", ["i4", "f8", "?", "M8[us]", "S3", "c16", ">i2"])
def test_numpy(dtype):
    data = np.zeros((2, 3), dtype)
    buffer = bowstring.buffer(data)
    assert (buffer.ptr, buffer.bufsize) == (data.ctypes.data, data.nbytes)


def test_elements_that_are_not_one_behind_the_other():
    for data in (np.arange(6)[::2], np.arange(6).reshape(2, 3).T, memoryview(b"abcd")[::2]):
        with pytest.raises((CopyNeeded, BufferError), match="one behind the other|one block|C-contiguous"):
            bowstring.buffer(data)
    # A dimension of one element has any stride.
    data = np.arange(6).reshape(2, 3).T[:, :1].T
    assert bowstring.buffer(data[:, :1]).bufsize == 8


@pytest.mark.parametrize("name", [TENSOR, LEGACY])
def test_one_deletion(name):
    made = Tensor(name=name)
    buffer = bowstring.buffer(made)
    part = buffer.slice(4, 8)
    assert (buffer.ptr, buffer.bufsize, part.ptr) == (
        made.values.buffer_info()[0], 12, made.values.buffer_info()[0] + 4
    )
    assert name_of(made.last).startswith(b"used_")
    made.last = None
    del buffer
    gc.collect()
    assert made.deleted == 0
    del part
    gc.collect()
    assert (made.deleted, made.dropped) == (1, 0)


def test_elements_that_arrow_has_not():
    made = Tensor(dtype=(4, 16, 2))
    assert bowstring.buffer(made).bufsize == 12


@pytest.mark.parametrize("name", [TENSOR, LEGACY])
@pytest.mark.parametrize("members", [{"shape": (-1,)}, {"strides": (2,)}, {"data": 0}])
def test_refusals_leave_the_capsule_alone(name, members):
    made = Tensor(name=name, **members)
    with pytest.raises(bowstring.BowstringError):
        bowstring.buffer(made)
    assert (name_of(made.last), made.deleted) == (name, 0)


def test_another_major_version():
    made = Tensor(version=(3, 0))
    with pytest.raises(bowstring.Unsupported, match="found one of DLPack 3"):
        bowstring.buffer(made)
    assert (name_of(made.last), made.deleted) == (TENSOR, 0)


def test_a_buffer_of_the_dataframe_protocol():
    data = array.array("q", [1, 2])
    made = Speaks(ptr=data.buffer_info()[0], bufsize=16, __dlpack_device__=lambda self: (1, None))
    buffer = bowstring.buffer(made)
    assert (buffer.ptr, buffer.bufsize, buffer.base) == (data.buffer_info()[0], 16, made)
    device = Speaks(ptr=1 << 45, bufsize=16, __dlpack_device__=lambda self: (10, 3))
    assert (str(bowstring.buffer(device).device), bowstring.buffer(device).ptr) == ("rocm:3", 1 << 45)
    frame = pa.table({"a": [1, 2]}).__dataframe__().get_column(0).get_buffers()["data"][0]
    assert bowstring.buffer(frame).ptr == frame.ptr


def test_who_keeps_whom():
    there = bytearray(b"abc")
    buffer = bowstring.buffer(there)
    with pytest.raises(BufferError):
        there.append(1)
    view = memoryview(buffer)
    del buffer
    gc.collect()
    with pytest.raises(BufferError):
        there.append(1)
    del view
    gc.collect()
    there.append(1)


def test_memory_maps(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(b"abc")
    with path.open("rb") as file:
        there = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        buffer = bowstring.buffer(there)
        assert buffer.peek() == b"abc"
        with pytest.raises(BufferError):
            there.close()
        del buffer
        gc.collect()
        there.close()


def test_buffers_of_arrays():
    made = Ints()
    array_ = bowstring.array(
        Speaks(__arrow_c_array__=lambda self, requested_schema=None: (made.schema(), made.host_capsule()))
    )
    for buffer in (bowstring.buffer(array_.buffer(1)), bowstring.buffer(array_)):
        assert (buffer.ptr, buffer.bufsize) == (made.data, 24)


def test_memory_of_a_device():
    made = Tensor(device=(10, 1), data=1 << 44)
    buffer = bowstring.buffer(made)
    assert (str(buffer.device), buffer.ptr, buffer.bufsize, buffer.sync_event) == ("rocm:1", 1 << 44, 12, 0)
    with pytest.raises(bowstring.Unsupported):
        bowstring.buffer(made, stream=1234)
    assert made.asked[-1]["stream"] == 1234


def test_nothing_to_take():
    for nothing in (object(), [1], "text", 5, None):
        with pytest.raises(TypeError, match="expected an object with __dlpack__ or"):
            bowstring.buffer(nothing)
    producer = Speaks(__dlpack__=refuses(RuntimeError("one")), __array_interface__=5)
    with pytest.raises(
        Refused, match="__dlpack__: RuntimeError: one; __array_interface__: expected an interface as a dict"
    ):
        bowstring.buffer(producer)
    with pytest.raises(ValueError, match="expected None or a queue"):
        bowstring.buffer(b"", stream="host")
    assert bowstring.buffer(b"").bufsize == 0
