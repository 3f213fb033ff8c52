"""What arrays and buffers answer to consumers of tensors: DLPack, the array interfaces, NumPy's own ways."""

import ctypes
import gc

import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring._dlpack import Legacy, Versioned
from producers import LEGACY, TENSOR, USED, Ints, Speaks, name_of, pointer_in, rename

NUMBERS = [
    np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)
] + [np.dtype(f"f{size}") for size in (2, 4, 8)]
ONE = (1, 0)


def imported(made):
    return bowstring.array(Speaks(__arrow_c_device_array__=lambda self: (made.schema(), made.device_capsule())))


def on_device(device=(10, 3)):
    """An array that the CPU must not look at."""
    return imported(Ints(device=device, data=1 << 45))


def tensor_in(capsule):
    """The tensor in a capsule, which it keeps."""
    struct = Versioned.from_address(pointer_in(capsule, TENSOR))
    struct.capsule = capsule
    return struct


# DLPack.


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numpy_takes_numbers(dtype):
    data = np.array([1, 2, 3], dtype)
    array = bowstring.array(pa.array(data))
    taken = np.from_dlpack(array[1:])
    assert (taken.dtype, taken.tolist()) == (dtype, [2, 3])
    assert taken.ctypes.data == array.buffer(1).ptr + dtype.itemsize
    assert not taken.flags.writeable


def test_fixed_size_lists():
    data = np.arange(24, dtype="f4").reshape(2, 3, 4)
    array = bowstring.array(data)
    for taken in (np.from_dlpack(array), np.asarray(array)):
        assert (taken.shape, taken.ctypes.data) == (data.shape, data.ctypes.data)
        assert (taken == data).all()


def test_fixed_shape_tensors():
    data = np.arange(12, dtype="i8").reshape(2, 2, 3)
    there = pa.FixedShapeTensorArray.from_numpy_ndarray(data)
    assert (np.from_dlpack(bowstring.array(there)) == data).all()


def test_a_tensor_lives_on_its_own():
    made = Ints()
    taken = np.from_dlpack(imported(made))
    gc.collect()
    assert (made.released, taken.tolist(), taken.ctypes.data) == (0, [1, 2, 3], made.data)
    del taken
    gc.collect()
    assert made.released == 1


def test_a_capsule_that_nobody_takes():
    made = Ints()
    capsule = imported(made).__dlpack__(max_version=ONE)
    gc.collect()
    assert (name_of(capsule), made.released) == (TENSOR, 0)
    del capsule
    gc.collect()
    assert made.released == 1


def test_a_capsule_that_somebody_took():
    """Its tensor is the taker's, and the capsule no longer lets it go."""
    made = Ints()
    capsule = imported(made).__dlpack__(max_version=ONE)
    address = pointer_in(capsule, TENSOR)
    rename(capsule, USED[TENSOR])
    del capsule
    gc.collect()
    assert made.released == 0
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(Versioned.from_address(address).deleter)(address)
    assert made.released == 1


def test_what_the_tensor_says():
    tensor = tensor_in(bowstring.array(np.arange(6, dtype="i4").reshape(2, 3)).__dlpack__(max_version=(1, 0)))
    assert (tensor.major, tensor.flags, tensor.tensor.byte_offset) == (1, 1, 0)
    assert (tensor.tensor.shape[:2], tensor.tensor.strides[:2]) == ([2, 3], [3, 1])
    assert (tensor.tensor.device_type, tensor.tensor.device_id) == (1, 0)
    assert tensor_in(bowstring.array([], "int64").__dlpack__(max_version=ONE)).tensor.data is None


@pytest.mark.parametrize("max_version", [None, (0, 8)])
def test_a_consumer_without_versions(max_version):
    """It cannot be told that the memory is read-only, and gets what may be written, or nothing."""
    made = Ints()
    array = imported(made)
    with pytest.raises(BufferError, match="copy=True"):
        array.__dlpack__(max_version=max_version)
    capsule = array.__dlpack__(max_version=max_version, copy=True)
    assert name_of(capsule) == LEGACY
    tensor = Legacy.from_address(pointer_in(capsule, LEGACY)).tensor
    assert tensor.data != made.data
    assert (ctypes.c_int64 * 3).from_address(tensor.data)[:] == [1, 2, 3]
    del capsule, array
    gc.collect()
    assert made.released == 1


def test_copies():
    array = bowstring.array(pa.array([1, 2, 3]))
    there = array.buffer(1).ptr
    for copy, flags in ((None, 1), (False, 1), (True, 2)):
        tensor = tensor_in(array.__dlpack__(max_version=ONE, copy=copy))
        assert (tensor.tensor.data == there, tensor.flags) == (not copy, flags)
    copied = np.from_dlpack(array, copy=True)
    assert copied.flags.writeable
    copied[0] = 7
    assert pa.array(array).to_pylist() == [1, 2, 3]


def test_booleans():
    array = bowstring.array(pa.array([True, False, True]))
    assert np.from_dlpack(array).tolist() == [True, False, True]
    with pytest.raises(BufferError):
        array.__dlpack__(max_version=ONE, copy=False)
    bytes_ = bowstring.array(np.array([True, False]))
    assert np.asarray(bytes_).dtype == np.bool_
    assert np.asarray(bytes_).ctypes.data == bytes_.buffer(1).ptr


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.array([1, None]), "null"),
        (pa.array(["a"]), "found u"),
        (pa.array([[1]]), r"found \+l"),
        (pa.record_batch({"a": [1]}), r"found \+s"),
        (pa.array([1], pa.timestamp("us")), "expected a number, or PHYSICAL"),
    ],
    ids=str,
)
def test_what_is_no_tensor(data, message):
    array = bowstring.array(data)
    with pytest.raises(BufferError, match=message):
        array.__dlpack__(max_version=ONE)
    with pytest.raises(BufferError):
        np.from_dlpack(array)
    assert array.__dlpack_device__() == (1, 0)


def test_streams_of_the_cpu():
    array = bowstring.array([1])
    for stream in (1, 0, -1):
        with pytest.raises(ValueError, match="expected no stream for memory of the CPU"):
            array.__dlpack__(stream=stream, max_version=ONE)


@pytest.mark.parametrize(
    ("device", "forbidden"), [((2, 0), [0, -2]), ((13, 0), [0]), ((10, 1), [1, 2, -7])], ids=["cuda", "managed", "rocm"]
)
def test_streams_that_the_protocol_forbids(device, forbidden):
    array = on_device(device)
    assert array.__dlpack_device__() == device
    for stream in forbidden:
        with pytest.raises(ValueError, match="expected .*stream"):
            array.__dlpack__(stream=stream, max_version=ONE)


def test_memory_of_a_device():
    array = on_device()
    for stream in (None, -1, 3):
        tensor = tensor_in(array.__dlpack__(max_version=ONE, stream=stream)).tensor
        assert (tensor.data, tensor.device_type, tensor.device_id) == (1 << 45, 10, 3)
    with pytest.raises(BufferError, match="expected the memory's own device rocm:3, found the CPU"):
        array.__dlpack__(max_version=ONE, dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        array.__dlpack__(max_version=ONE, dl_device=(1, 0))
    with pytest.raises(BufferError, match=r"found \(2, 0\)"):
        array.__dlpack__(max_version=ONE, dl_device=(2, 0))
    assert array.__dlpack__(max_version=ONE, dl_device=(10, 3))
    assert bowstring.array([1]).__dlpack__(max_version=ONE, dl_device=(1, 0))
    again = bowstring.array(
        Speaks(__dlpack__=lambda self, **k: array.__dlpack__(**k), __dlpack_device__=lambda self: (10, 3))
    )
    assert (again.buffer(1).ptr, str(again.device), again.source) == (1 << 45, "rocm:3", "__dlpack__")


# The array interfaces.


def test_array_interface():
    data = pa.array([1, 2, 3])
    array = bowstring.array(data)[1:]
    found = array.__array_interface__
    assert found == {
        "shape": (2,), "typestr": "<i8", "data": (data.buffers()[1].address + 8, True), "strides": None, "version": 3,
    }
    shown = np.asarray(array)
    assert (shown.tolist(), shown.flags.writeable, shown.ctypes.data) == ([2, 3], False, found["data"][0])


def test_numpy_keeps_the_array():
    made = Ints()
    shown = np.asarray(imported(made))
    gc.collect()
    assert (made.released, shown.tolist()) == (0, [1, 2, 3])
    del shown
    gc.collect()
    assert made.released == 1


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times(unit):
    for data in (np.array([1, 2], f"M8[{unit}]"), np.array([1, 2], f"m8[{unit}]")):
        shown = np.asarray(bowstring.array(data))
        assert (shown.dtype, shown.tolist(), shown.ctypes.data) == (data.dtype, data.tolist(), data.ctypes.data)


def test_strided_tensors():
    kind = pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0])
    storage = pa.array([[1, 2, 3, 4, 5, 6]], pa.list_(pa.int32(), 6))
    shown = np.asarray(bowstring.array(pa.ExtensionArray.from_storage(kind, storage)))
    assert shown.tolist() == [[[1, 4], [2, 5], [3, 6]]]


@pytest.mark.parametrize("data", [pa.array([1, None]), pa.array(["a"]), pa.array([True]), pa.array([[1]])], ids=str)
def test_what_has_no_interface(data):
    assert not hasattr(bowstring.array(data), "__array_interface__")
    assert not hasattr(bowstring.array(data), "__cuda_array_interface__")


def test_device_memory_has_no_interface_of_the_cpu():
    array = on_device()
    assert not hasattr(array, "__array_interface__")
    # Of CUDA's interface only CUDA has something.
    assert not hasattr(array, "__cuda_array_interface__")
    cuda = on_device((2, 1))
    assert cuda.__cuda_array_interface__ == {
        "shape": (3,), "typestr": "<i8", "data": (1 << 45, True), "strides": None, "version": 3, "stream": None,
    }


def test_array_method():
    array = bowstring.array(pa.array([1, 2]))
    assert np.array(array).flags.writeable
    assert array.__array__(copy=True).ctypes.data != array.buffer(1).ptr
    assert array.__array__().ctypes.data == array.buffer(1).ptr
    assert np.asarray(array, "f4").dtype == np.float32
    assert np.asarray(bowstring.array(pa.array([True, False]))).tolist() == [True, False]
    with pytest.raises(ValueError):
        array.__array__("f4", copy=False)
    with pytest.raises(ValueError):
        bowstring.array(pa.array([True])).__array__(copy=False)
    with pytest.raises(ValueError, match="null"):
        np.asarray(bowstring.array(pa.array([1, None])))
    with pytest.raises(ValueError, match="expected memory of the CPU, found rocm:3"):
        np.asarray(on_device())


# Buffers.


def test_a_buffer_is_bytes():
    data = np.arange(4, dtype="i4")
    buffer = bowstring.array(data).buffer(1)
    for shown in (np.asarray(buffer), np.from_dlpack(buffer), np.frombuffer(buffer, "u1")):
        assert (shown.dtype, shown.ctypes.data, shown.tobytes()) == (np.uint8, data.ctypes.data, data.tobytes())
        assert not shown.flags.writeable
    assert (buffer.__dlpack_device__(), buffer.ptr, buffer.bufsize) == ((1, 0), data.ctypes.data, 16)


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        ("int32", (0, 32, 1)), ("<i4", (0, 32, 1)), (np.dtype("i4"), (0, 32, 1)), ((0, 32, 1), (0, 32, 1)),
        (np.int32, (0, 32, 1)), ("bfloat16", (4, 16, 1)), ("float64", (2, 64, 1)), ("bool", (6, 8, 1)),
        ("|u1", (1, 8, 1)),
        (Speaks(__str__=lambda self: "torch.float16"), (2, 16, 1)), ("complex64", (5, 64, 1)),
    ],
    ids=str,
)
def test_elements(dtype, element):
    data = np.arange(4, dtype="i4")
    typed = bowstring.buffer(data).typed(dtype)
    assert (typed.dtype, typed.shape) == (element, (128 // element[1],))
    tensor = tensor_in(typed.__dlpack__(max_version=ONE)).tensor
    assert (tensor.data, tensor.dtype.code, tensor.dtype.bits) == (data.ctypes.data, *element[:2])
    assert hasattr(typed, "__array_interface__") == (element[0] != 4)


def test_shapes():
    data = np.arange(6, dtype="i4")
    buffer = bowstring.buffer(data)
    typed = buffer.typed("int32", (2, 3))
    for shown in (np.asarray(typed), np.from_dlpack(typed)):
        assert (shown.tolist(), shown.ctypes.data) == ([[0, 1, 2], [3, 4, 5]], data.ctypes.data)
    assert bowstring.array(typed).source == "__arrow_c_device_array__"
    assert bowstring.array(typed, via="__dlpack__").source == "__dlpack__"
    assert buffer.typed("int32", 2).shape == (2,)
    assert np.from_dlpack(typed, copy=True).ctypes.data != data.ctypes.data
    for dtype, shape in (("int32", (7,)), ("int32", (-1,)), ("float64", (2, 2))):
        with pytest.raises(bowstring.InvalidArgument, match="expected a shape of 24 bytes"):
            buffer.typed(dtype, shape)
    with pytest.raises(bowstring.InvalidArgument, match="expected whole elements of 128 bits, found 24 bytes"):
        buffer.typed("complex128")
    for wrong in ("text", ">i4", object()):
        with pytest.raises(bowstring.InvalidArgument, match="expected an element"):
            buffer.typed(wrong)


def test_a_typed_buffer_keeps_the_buffer():
    made = Ints()
    typed = imported(made).buffer(1).typed("int64")
    shown = np.asarray(typed)
    del typed
    gc.collect()
    assert (made.released, shown.tolist()) == (0, [1, 2, 3])
    del shown
    gc.collect()
    assert made.released == 1


def test_python_buffers():
    made = Ints()
    view = memoryview(imported(made).buffer(1))
    gc.collect()
    assert (view.readonly, view.nbytes, view.format, made.released) == (True, 24, "B", 0)
    assert view.cast("q").tolist() == [1, 2, 3]
    del view
    gc.collect()
    assert made.released == 1
    assert bytes(memoryview(bowstring.buffer(b""))) == b""


def test_what_has_no_python_buffer():
    unknown = bowstring.Buffer.from_address(1 << 45, -1, None)
    device = bowstring.Buffer.from_address(1 << 45, 8, None, "rocm:0")
    for buffer in (unknown, device):
        with pytest.raises(TypeError, match="a bytes-like object is required"):
            memoryview(buffer)
        assert isinstance(buffer, bowstring.Buffer)
    for refused in (unknown.__dlpack__, lambda: unknown.typed("int8")):
        with pytest.raises((BufferError, bowstring.Unsupported), match="expected a buffer of known size"):
            refused()
    assert not hasattr(unknown, "__array_interface__")
    assert not hasattr(device, "__array_interface__")


def test_memory_that_may_not_be_written():
    buffer = bowstring.buffer(bytearray(b"abc"))
    with pytest.raises((SystemError, BufferError, TypeError)):
        ctypes.c_char.from_buffer(buffer)
    assert not np.frombuffer(buffer, "u1").flags.writeable


def test_peek_and_base():
    data = bytearray(b"abcdef")
    buffer = bowstring.buffer(data)
    assert (buffer.peek(2), buffer.peek(100), buffer.peek(0), buffer.peek(-1)) == (b"ab", b"abcdef", b"", b"")
    assert buffer.base is data and buffer.owner is data
    assert bowstring.array(data).buffer(1).base is None
    with pytest.raises(bowstring.Unsupported):
        bowstring.Buffer.from_address(1 << 45, 8, None, "rocm:0").peek()
