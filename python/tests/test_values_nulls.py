"""Validity and the buffers of strings: in place, on any device, without reading."""

import numpy as np
import pyarrow as pa
import pytest
from bowstring import Buffer, CopyNeeded, Unsupported, Validity, from_buffers

from values_support import each, everything, Owner, taken

ARRAYS = everything()


@each("name", ARRAYS)
@each("offset", [0, 1])
def test_is_valid(name, offset):
    data = ARRAYS[name].slice(offset)
    found = taken(data).is_valid()
    assert found.type.metadata[b"ARROW:extension:name"] == b"arrow.bool8"
    if name in ("run_ends", "dense_union", "sparse_union"):
        # They have no nulls of their own.
        expected = [True] * len(data)
    else:
        expected = data.is_valid().to_pylist()
    assert found.to_numpy().tolist() == expected and found.to_numpy().dtype == bool


@each("offset", range(12))
def test_the_bitmap_in_place(offset):
    values = [1, None, 3, 4, 5, None, None, 8, 9, None, 11, 12, 13]
    data = pa.array(values)
    validity = taken(data).slice(offset).validity
    assert isinstance(validity, Validity)
    assert validity.buffer.ptr == data.buffers()[0].address and validity.offset == offset
    bits = np.unpackbits(np.frombuffer(validity.buffer.read(), "u1"), bitorder="little")
    found = bits[validity.offset : validity.offset + len(data) - offset]
    assert found.astype(bool).tolist() == [value is not None for value in values[offset:]]


def test_no_bitmap():
    assert taken(pa.array([1, 2])).validity is None
    assert taken(pa.nulls(3)).validity is None
    assert taken(ARRAYS["dense_union"]).validity is None
    nested = pa.array([[1, None]], pa.list_(pa.int8()))
    assert taken(nested).validity is None and taken(nested).child(0).validity is not None


def test_validity_of_a_device():
    bitmap = Buffer.from_address(4096, 8, Owner(), "rocm:0")
    array = from_buffers("int8", 20, [bitmap, Buffer.from_address(8192, 64, None, "rocm:0")]).slice(11)
    assert array.validity.buffer.ptr == 4096 and array.validity.offset == 11
    assert str(array.validity.buffer.device) == "rocm:0"


STRINGS = ["a", None, "", "more than twelve bytes", "ü"]


@each("name", ["string", "large_string", "binary", "large_binary"])
@each("offset", [0, 2])
def test_string_buffers(name, offset):
    data = ARRAYS[name]
    _, offsets, values = data.buffers()
    found = taken(data).slice(offset).string_buffers(copy=False)
    size = 8 if name.startswith("large") else 4
    assert found.offsets.ptr == offsets.address + size * offset and found.data.ptr == values.address
    assert (found.offsets.first, found.offsets.count) == (offset, 6 - offset)
    assert found.offsets.whole.ptr == offsets.address
    ends, text = np.asarray(found.offsets), np.asarray(found.data)
    assert ends.dtype == f"i{size}" and text.dtype == "u1" and not text.flags.writeable
    rows = [text[ends[k] : ends[k + 1]].tobytes().decode() for k in range(5 - offset)]
    assert rows == [value or "" for value in STRINGS[offset:]]
    assert (np.from_dlpack(found.offsets) == ends).all()


@each("name", ["string_view", "binary_view"])
def test_views_have_none(name):
    array = taken(ARRAYS[name]).slice(1)
    with pytest.raises(CopyNeeded, match="offsets have to be made"):
        array.string_buffers(copy=False)
    ends, text = (np.asarray(part) for part in array.string_buffers())
    assert [text[ends[k] : ends[k + 1]].tobytes().decode() for k in range(4)] == [value or "" for value in STRINGS[1:]]


def test_string_buffers_copied():
    data = pa.array(["ab", "c"])
    found = taken(data).string_buffers(copy=True)
    assert np.asarray(found.data).tobytes() == b"abc" and found.data.ptr != data.buffers()[2].address


def test_string_buffers_of_a_device_are_not_read():
    parts = [Buffer.from_address(4096, 64, None, "rocm:0"), Buffer.from_address(8192, 512, None, "rocm:0")]
    found = from_buffers("utf8", 10, [None, *parts]).slice(3).string_buffers()
    assert (found.offsets.ptr, found.offsets.count) == (4096 + 12, 8)
    assert found.offsets.__dlpack_device__() == (10, 0) and not hasattr(found.offsets, "__array_interface__")
    assert (found.data.ptr, found.data.count) == (8192, 512)


def test_string_buffers_of_unknown_size():
    parts = [Buffer.from_address(4096, 64, None, "rocm:0"), Buffer.from_address(8192, -1, None, "rocm:0")]
    found = from_buffers("utf8", 10, [None, *parts]).string_buffers()
    assert isinstance(found.data, Buffer) and (found.data.ptr, found.data.bufsize) == (8192, -1)


def test_string_buffers_without_rows():
    found = from_buffers("utf8", 0, [None, None, None]).string_buffers()
    assert (found.offsets.count, found.data.count) == (0, 0) and np.asarray(found.offsets).shape == (0,)


def test_other_types_have_no_string_buffers():
    with pytest.raises(Unsupported, match="found int64"):
        taken(pa.array([1])).string_buffers()
