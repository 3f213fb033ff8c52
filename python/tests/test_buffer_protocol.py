"""Python's buffer protocol of arrays and buffers."""

import collections.abc
import ctypes
import gc
import hashlib
import struct
import sys

import numpy as np
import pyarrow as pa
import pytest

import bowstring
from bowstring._python import PyBuffer

NUMBERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")


def formats(view):
    return view.format, view.itemsize, view.shape, view.strides, view.readonly, view.ndim


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers(kind):
    values = np.arange(6).astype(kind)
    view = memoryview(bowstring.array(pa.array(values)))
    own = np.dtype(kind)
    assert formats(view) == (own.char, own.itemsize, (6,), (own.itemsize,), True, 1)
    assert view.tobytes() == values.tobytes() == bytes(view)
    if kind != "float16":
        # Before 3.12 memoryview itself cannot read half floats.
        assert view.tolist() == values.tolist()
    window = memoryview(bowstring.array(pa.array(values))[2:5])
    assert window.tobytes() == values[2:5].tobytes() and window.shape == (3,)


def test_dimensions():
    rows = np.arange(24, dtype="i4").reshape(2, 3, 4)
    array = bowstring.array(rows)
    view = memoryview(array)
    assert formats(view) == ("i", 4, (2, 3, 4), (48, 16, 4), True, 3)
    assert view.tolist() == rows.tolist() and view.c_contiguous
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(rows)
    assert memoryview(bowstring.array(tensors)).tolist() == rows.tolist()
    assert memoryview(array[1:]).tolist() == rows[1:].tolist()


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_nothing(shape):
    array = bowstring.array(np.zeros(shape, "f8"))
    view = memoryview(array)
    assert (view.shape, view.format, bytes(view)) == (shape, "d", b"")
    assert np.asarray(array).shape == shape


def refused():
    yield pa.array([1, None]), "nulls"
    yield pa.array([True, False]), "expected numbers"
    yield pa.array(["a"]), "utf8"
    yield pa.array([b"a"]), "binary"
    yield pa.array([{"a": 1}]), "struct"
    yield pa.array([[1]]), "list"
    yield pa.array(["a"]).dictionary_encode(), "dictionary"
    yield pa.array([1], "timestamp[s]"), "timestamp"
    yield pa.array([1], "duration[ns]"), "duration"
    yield pa.array([1], "date32"), "date32"
    yield pa.array([1], pa.decimal128(5)), "decimal"
    yield pa.nulls(2), "null"
    yield pa.record_batch({"a": [1]}), "struct"


@pytest.mark.parametrize("made, found", list(refused()), ids=lambda value: str(getattr(value, "type", value))[:20])
def test_what_has_none(made, found):
    array = bowstring.array(made)
    for read in (memoryview, bytes, struct.Struct("q").unpack):
        with pytest.raises(BufferError, match="^expected") as caught:
            read(array)
        assert found in str(caught.value)


def test_memory_elsewhere():
    owner = bowstring.Buffer.from_address(1 << 45, 8, None, "rocm:0")
    array = bowstring.from_buffers("int64", 1, [None, owner])
    with pytest.raises(BufferError, match="expected memory of the CPU, found rocm:0"):
        memoryview(array)


_get = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)(
    ("PyObject_GetBuffer", ctypes.pythonapi)
)


class Wants:
    """A view with other flags than memoryview's."""

    def __init__(self, obj, flags):
        self.view = PyBuffer()
        _get(obj, ctypes.addressof(self.view), flags)

    def let_go(self):
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(self.view))


@pytest.mark.parametrize("make", [lambda: bowstring.array(pa.array([1, 2])), lambda: bowstring.buffer(bytearray(16))])
def test_writing_is_refused(make):
    shown = make()
    for flags in (1, 0x11D, 9):
        with pytest.raises(BufferError, match="^expected a request for read-only memory"):
            Wants(shown, flags)
    with pytest.raises((BufferError, TypeError)):
        struct.pack_into("q", shown, 0, 1)
    with pytest.raises((BufferError, TypeError)):
        ctypes.c_char.from_buffer(shown)
    assert bytes(shown)[8:] in ((2).to_bytes(8, sys.byteorder), bytes(8))


def test_simple_requests():
    """Lengths and formats are only told to who asks."""
    wants = Wants(bowstring.array(np.arange(6, dtype="i2").reshape(2, 3)), 0)
    gc.collect()
    assert (wants.view.len, wants.view.format, bool(wants.view.shape), wants.view.readonly) == (12, None, False, 1)
    assert ctypes.string_at(wants.view.buf, 12) == np.arange(6, dtype="i2").tobytes()
    wants.let_go()
    assert not wants.view.obj


def test_lifetime():
    values = np.arange(3.0)
    base = sys.getrefcount(values)
    array = bowstring.array(values)
    before = bowstring.live_counts()
    view = memoryview(array)
    again = memoryview(array)
    assert view.obj is not None
    del array
    gc.collect()
    assert view.tolist() == [0, 1, 2] and sys.getrefcount(values) > base
    del view
    assert again.tolist() == [0, 1, 2]
    again.release()
    gc.collect()
    assert sys.getrefcount(values) == base
    assert before["arrays"] and "tensors" not in bowstring.live_counts()


def test_the_method_by_itself():
    """What it returns is safe without the object."""
    values = np.arange(3.0)
    base = sys.getrefcount(values)
    view = bowstring.array(values).__buffer__(0x11C)
    gc.collect()
    assert view.tolist() == [0, 1, 2] and view.readonly
    with pytest.raises(BufferError):
        bowstring.array(values).__buffer__(1)
    del view
    gc.collect()
    assert sys.getrefcount(values) == base
    view = bowstring.buffer(b"abc").__buffer__(0)
    gc.collect()
    assert bytes(view) == b"abc"


def test_who_reads_them():
    array = bowstring.array(pa.array([1, 2, 3], "int32"))
    data = struct.pack("3i", 1, 2, 3)
    assert struct.unpack("3i", array) == (1, 2, 3)
    assert bytes(array) == data == bytes(array.buffer(1))
    assert hashlib.sha256(array).digest() == hashlib.sha256(array.buffer(1)).digest() == hashlib.sha256(data).digest()
    assert b"".join([array, b"x"]) == data + b"x"
    assert np.frombuffer(array, "i4").tolist() == [1, 2, 3]
    assert pa.py_buffer(array).to_pybytes() == data
    if hasattr(collections.abc, "Buffer"):
        assert isinstance(array, collections.abc.Buffer) and isinstance(array.buffer(1), collections.abc.Buffer)
    with memoryview(array) as view:
        assert view[1] == 2


NUMPY = (
    *(pa.array([1, 2], kind.replace("float16", "int8")) for kind in NUMBERS), pa.array(np.array([1, 2], "f2")),
    pa.array([True, False]), pa.array([1, 2], "timestamp[s]"), pa.array([1, 2], "duration[ms]"),
    pa.array([1, 2], "date32"), pa.array([[1, 2]], pa.list_(pa.int64(), 2)),
)


@pytest.mark.parametrize("made", NUMPY, ids=lambda made: str(made.type))
def test_numpy_sees_what_it_did(made):
    """NumPy asks for the buffer protocol first: kinds, flags and values are those of the interface all the same."""
    array = bowstring.array(made)
    try:
        wanted = array.__array__()
    except ValueError as error:
        with pytest.raises(ValueError) as caught:
            np.asarray(array)
        assert str(caught.value) == str(error)
        return
    found = np.asarray(array)
    assert (found.dtype.char, found.dtype, found.shape) == (wanted.dtype.char, wanted.dtype, wanted.shape)
    assert found.tolist() == wanted.tolist() and found.flags.writeable == wanted.flags.writeable


def test_bool8_is_one_byte():
    made = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], "int8"))
    array = bowstring.array(made)
    assert memoryview(array).tolist() == [False, True] and np.asarray(array).dtype == bool


def test_arrays_of_others_do_not_get_it_wrong():
    """Our own objects come in by Arrow's protocol, not by this one."""
    array = bowstring.array(pa.array([1, 2]))
    assert bowstring.array(array).source == "__arrow_c_device_array__"
    assert bowstring.array(array, via="buffer").source == "buffer"
    assert not hasattr(array, "__dict__") and not hasattr(array.buffer(1), "__dict__")
