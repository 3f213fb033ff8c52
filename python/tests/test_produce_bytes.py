"""Buffers as Arrow's arrays: their elements, in place."""

import ctypes

import nanoarrow as na
import nanoarrow.device
import numpy as np
import pyarrow as pa
import pytest

import bowstring

NUMBERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")


def buffer_of(values):
    return bowstring.buffer(np.ascontiguousarray(values))


def test_a_buffer_is_its_bytes():
    buffer = buffer_of(np.arange(5, dtype=np.uint8))
    for found in (pa.array(buffer), pa.chunked_array(buffer).chunk(0), pa.array(buffer.to_array())):
        assert found.type == pa.uint8() and found.to_pylist() == [0, 1, 2, 3, 4] and found.null_count == 0
        assert found.buffers()[1].address == buffer.ptr
    assert pa.array(buffer, type=pa.int16()).type == pa.int16()
    assert na.Array(na.c_array(buffer)).to_pylist() == [0, 1, 2, 3, 4]
    assert na.c_schema(buffer).format == "C"
    assert na.ArrayStream(buffer).read_all().to_pylist() == [0, 1, 2, 3, 4]
    array = bowstring.array(buffer)
    assert (array.source, str(array.type)) == ("__arrow_c_device_array__", "uint8")
    assert list(bowstring.stream(buffer))[0].buffers[1].ptr == buffer.ptr


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", ((6,), (2, 3), (0,), (0, 4), (3, 0), (2, 1, 3)))
def test_typed(dtype, shape):
    values = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    typed = buffer_of(values.reshape(-1)).typed(dtype, shape)
    found = pa.array(typed)
    found.validate(full=True)
    assert found.to_pylist() == values.tolist()
    kind = pa.from_numpy_dtype(np.dtype(dtype))
    for length in reversed(shape[1:]):
        kind = pa.list_(pa.field("item", kind), length)
    assert found.type.equals(kind)
    while pa.types.is_fixed_size_list(found.type):
        found = found.values
    # pyarrow shows memory of its own for no bytes.
    assert not values.size or found.buffers()[1].address == typed.buffer.ptr


def test_windows_of_an_array():
    column = pa.array(["x", "yz", None, "w"])
    offsets = bowstring.array(column.slice(1)).string_buffers().offsets
    assert pa.array(offsets).to_pylist() == [1, 3, 3, 4]


def test_what_arrow_does_not_have():
    buffer = buffer_of(np.zeros(16, dtype=np.uint8))
    for dtype in ("bfloat16", "complex64", (6, 8, 1), (0, 32, 2)):
        typed = buffer.typed(dtype)
        with pytest.raises(bowstring.Unsupported, match="expected elements that Arrow has, found DLPack's type"):
            typed.__arrow_c_array__()
        with pytest.raises(bowstring.Unsupported):
            typed.to_array()
    with pytest.raises(bowstring.Unsupported, match="at least one dimension"):
        buffer.typed("int8", ()).to_array()


def test_requests_and_keywords():
    buffer = buffer_of(np.zeros(4, dtype=np.uint8))
    wanted = pa.field("name", pa.uint8()).__arrow_c_schema__()
    assert len(buffer.__arrow_c_array__(wanted)) == len(buffer.__arrow_c_device_array__(wanted, later=None)) == 2
    other = pa.int64().__arrow_c_schema__()
    for ask in (buffer.__arrow_c_array__, buffer.__arrow_c_device_array__, buffer.__arrow_c_stream__):
        with pytest.raises(ValueError, match="which nobody here casts"):
            ask(other)
    for ask in (buffer.__arrow_c_device_array__, buffer.__arrow_c_device_stream__):
        with pytest.raises(NotImplementedError, match="later"):
            ask(later=1)


def test_the_memory_outlives_the_buffer():
    class Owner:
        def __init__(self):
            self.data = (ctypes.c_int32 * 3)(1, 2, 3)

        def __del__(self):
            gone.append(self)

    gone, owner = [], Owner()
    buffer = bowstring.Buffer.from_address(ctypes.addressof(owner.data), 12, owner)
    found = pa.array(buffer.typed("int32"))
    array = buffer.to_array()
    del owner, buffer
    assert found.to_pylist() == [1, 2, 3] and len(array) == 12 and not gone
    del found
    assert not gone
    del array
    assert len(gone) == 1
    gone.clear()


def test_on_a_device():
    """The device is the buffer's; nothing reads it."""
    buffer = bowstring.Buffer.from_address(64, 24, None, "rocm:1")
    array = buffer.typed("int64").to_array()
    assert (len(array), array.device, array.buffers[1].ptr) == (3, buffer.device, 64)
    schema, there = buffer.__arrow_c_device_array__()
    assert nanoarrow.device.c_device_array(buffer).device_type_id == 10
    del schema, there
    with pytest.raises(bowstring.Unsupported):
        buffer.__arrow_c_array__()
