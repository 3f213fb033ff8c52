"""Arrays of other devices, and pyarrow's side of the device interface: what goes out, and what is refused in words."""

from __future__ import annotations

import gc
import weakref

import pyarrow as pa
import pytest

import bowstring


class Owner:
    """Keeps memory that is nowhere."""


def elsewhere(device="rocm:0", count=3):
    """An array in memory that the CPU must not touch: it is not there."""
    owner = Owner()
    data = bowstring.Buffer.from_address(0x7000_0000_0000, 4 * count, owner, device)
    return bowstring.from_buffers("int32", count, [None, data], device=device), weakref.ref(owner)


def test_it_is_looked_at_without_being_read():
    array, owner = elsewhere()
    assert str(array.device) == "rocm:0" and len(array) == 3
    assert array.buffer_view(1).ptr == 0x7000_0000_0000
    assert len(array[1:]) == 2 and array[1:].buffer_view(1).first == 1
    del array
    assert owner() is None


REFUSALS = (ValueError, NotImplementedError, RuntimeError, OSError)


@pytest.mark.parametrize("read", [
    lambda array: array.__arrow_c_array__(),
    # A stream says it when it is asked for the array.
    lambda array: pa.RecordBatchReader.from_stream(array).read_all(),
    lambda array: pa.chunked_array(array),
])
def test_the_interfaces_of_the_cpu_refuse(read):
    array, owner = elsewhere()
    with pytest.raises(REFUSALS, match="(?i)rocm|device|cpu|struct"):
        read(array)
    assert len(array) == 3
    del array
    assert owner() is None


@pytest.mark.parametrize("device", ["rocm:0", "rocm:3", "oneapi:0", "ext_dev:1"])
def test_the_device_interface_carries_it(device):
    array, owner = elsewhere(device)
    again = bowstring.array(array, via="__arrow_c_device_array__")
    assert again.device == array.device and again.buffer_view(1).ptr == array.buffer_view(1).ptr
    del array
    assert owner() is not None
    del again
    assert owner() is None


def test_pyarrow_refuses_it_and_lets_it_go():
    array, owner = elsewhere()
    with pytest.raises((pa.ArrowException, ValueError, NotImplementedError, KeyError)):
        pa.array(array)
    with pytest.raises((pa.ArrowException, ValueError, NotImplementedError, KeyError)):
        pa.RecordBatch._import_from_c_device_capsule(*array.__arrow_c_device_array__())
    del array
    assert owner() is None


def test_nothing_of_it_is_read_by_accident():
    array, owner = elsewhere()
    import numpy as np

    for read in (np.asarray, np.from_dlpack, memoryview, bytes):
        with pytest.raises(Exception):
            read(array)
    assert array.null_count in (0, -1) and repr(array)
    del array
    # The errors' tracebacks refer to it, in circles.
    gc.collect()
    assert owner() is None


def test_pyarrows_addresses_go_round():
    """The functions that take addresses instead of capsules, as older consumers have them."""
    from bowstring import _c, _capsules
    from bowstring._library import call, lib
    from ctypes import addressof, byref

    batch = pa.record_batch({"a": [1, 2, None], "s": ["x", None, "z"]})
    raw, schema = _c.ArrowDeviceArray(), _c.ArrowSchema()
    batch._export_to_c_device(addressof(raw), addressof(schema))
    handle = _capsules.made(lib.bowstring_array_import, byref(raw), byref(schema))
    ours = bowstring.Array._of(handle, "address")
    assert not raw.array.release and not schema.release
    call(lib.bowstring_array_export, ours._handle, byref(raw), byref(schema))
    back = pa.RecordBatch._import_from_c_device(addressof(raw), addressof(schema))
    assert back.equals(batch)


def test_streams_of_devices():
    batch = pa.record_batch({"a": [1, 2, None]})
    stream = bowstring.stream([batch, batch[:1]])
    assert stream.device.is_cpu
    reader = pa.RecordBatchReader._import_from_c_device_capsule if hasattr(
        pa.RecordBatchReader, "_import_from_c_device_capsule"
    ) else None
    if reader is None:
        # pyarrow takes a device stream by its address alone.
        assert pa.RecordBatchReader.from_stream(stream).read_all().num_rows == 4
        return
    assert reader(stream.__arrow_c_device_stream__()).read_all().num_rows == 4
