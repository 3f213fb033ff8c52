"""The kinds of cases that pyarrow tests of its own DLPack export, asked of ours: types, nulls, windows, devices."""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np
import pyarrow as pa
import pytest

import bowstring
from matrix.cases import cases

_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
NUMBERS = [
    np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64,
    np.float16, np.float32, np.float64,
]
CASES = {case.name: case.array for case in cases()}


def same_memory(shown: np.ndarray, array: pa.Array) -> bool:
    """Whether a numpy array shows a pyarrow array's values where they are."""
    start = array.buffers()[1].address + array.offset * shown.itemsize
    return shown.size == 0 or shown.ctypes.data == start


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.__name__)
def test_numbers(dtype):
    expected = np.array([1, 2, 3, 4], dtype)
    whole = pa.array(expected)
    for array in (whole, whole[1:3], whole[2:], whole[:0], pa.array([], whole.type)):
        ours = bowstring.array(array)
        shown = np.from_dlpack(ours)
        assert shown.dtype == dtype and shown.tolist() == array.to_pylist()
        # Of no values numpy makes an array of its own.
        assert same_memory(shown, array) and not (shown.size and shown.flags.writeable)
        assert ours.__dlpack_device__() == array.__dlpack_device__() == (1, 0)


def test_every_other_type_is_refused():
    numbers = {np.dtype(dtype).name for dtype in NUMBERS}
    refused = 0
    for name, array in CASES.items():
        if name in numbers or name in ("bool", "fixed_size_list"):
            continue
        ours = bowstring.array(array)
        with pytest.raises(BufferError):
            ours.__dlpack__(max_version=(1, 0))
        refused += 1
    assert refused >= 40


def test_booleans_are_unpacked():
    ours = bowstring.array(CASES["bool"])
    assert np.from_dlpack(ours).tolist() == CASES["bool"].to_pylist()
    with pytest.raises((BufferError, ValueError), match="(?i)cop"):
        ours.__dlpack__(max_version=(1, 0), copy=False)


def test_nulls():
    array = bowstring.array(pa.array([1, None, 3]))
    with pytest.raises(BufferError, match="null"):
        np.from_dlpack(array)
    # The same memory, without the null.
    assert np.from_dlpack(array[2:]).tolist() == [3]
    bits = bowstring.array(pa.array([1, 2, None]))[:2]
    assert np.from_dlpack(bits).tolist() == [1, 2]


def test_fixed_size_lists_have_two_dimensions():
    whole = CASES["fixed_size_list"]
    shown = np.from_dlpack(bowstring.array(whole[1:]))
    assert shown.tolist() == whole[1:].to_pylist() and shown.shape == (2, 2)
    assert shown.ctypes.data == whole.flatten().buffers()[1].address + 16
    with pytest.raises(BufferError, match="null"):
        np.from_dlpack(bowstring.array(CASES["fixed_size_list with nulls"]))


def test_versions_and_names():
    array = bowstring.array(pa.array([1, 2, 3]))
    for version in ((1, 0), (1, 3), (2, 0)):
        assert _name(array.__dlpack__(max_version=version)) == b"dltensor_versioned"
    # A tensor of the old kind cannot say that nobody may write.
    for arguments in ({}, {"max_version": None}, {"max_version": (0, 8)}):
        try:
            assert _name(array.__dlpack__(**arguments)) == b"dltensor"
        except BufferError as error:
            assert "read-only" in str(error) or "writ" in str(error)


def test_a_capsule_is_taken_once():
    array = bowstring.array(pa.array([1, 2, 3]))

    class Once:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **kwargs):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    once = Once(array.__dlpack__(max_version=(1, 0)))
    shown = np.from_dlpack(once)
    assert _name(once.capsule) == b"used_dltensor_versioned"
    with pytest.raises((ValueError, BufferError, TypeError)):
        np.from_dlpack(once)
    with pytest.raises((ValueError, BufferError, TypeError)):
        bowstring.array(once)
    del array, once
    gc.collect()
    assert shown.tolist() == [1, 2, 3]


def test_devices_and_copies():
    array = bowstring.array(pa.array([1, 2, 3]))
    assert np.from_dlpack(array, device="cpu").tolist() == [1, 2, 3]
    shared = np.from_dlpack(array, copy=False)
    copied = np.from_dlpack(array, copy=True)
    assert shared.ctypes.data == array.buffer_view(1).ptr != copied.ctypes.data
    assert copied.tolist() == [1, 2, 3]
    assert array.__dlpack__(max_version=(1, 0), stream=None, dl_device=(1, 0))
    with pytest.raises((BufferError, ValueError)):
        array.__dlpack__(max_version=(1, 0), dl_device=(2, 0))
    with pytest.raises((BufferError, ValueError, TypeError), match="stream"):
        array.__dlpack__(max_version=(1, 0), stream=3)


def test_the_memory_lives_as_long_as_it_is_shown():
    before = pa.total_allocated_bytes()
    source = pa.array(np.arange(1000)).take(pa.array(np.arange(1000)))
    assert pa.total_allocated_bytes() > before
    shown = np.from_dlpack(bowstring.array(source))
    del source
    gc.collect()
    assert pa.total_allocated_bytes() > before and shown.sum() == 499500
    del shown
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_unused_capsules_let_go():
    before = bowstring.live_counts()
    source = pa.array([1.5, 2.5])
    references = sys.getrefcount(source)
    ours = bowstring.array(source)
    capsules = [ours.__dlpack__(max_version=(1, 0)) for _ in range(100)]
    del ours
    assert bowstring.live_counts() != before
    capsules.clear()
    assert bowstring.live_counts() == before and sys.getrefcount(source) == references


def test_a_thousand_rounds_leave_nothing():
    numbers = np.arange(10.0)

    def once():
        shown = np.from_dlpack(bowstring.array(np.from_dlpack(bowstring.array(numbers, via="__dlpack__"))))
        assert shown.ctypes.data == numbers.ctypes.data

    for _ in range(10):
        once()
    gc.collect()
    references, blocks, pool = sys.getrefcount(numbers), sys.getallocatedblocks(), pa.total_allocated_bytes()
    for _ in range(1000):
        once()
    gc.collect()
    assert sys.getrefcount(numbers) == references and pa.total_allocated_bytes() == pool
    assert sys.getallocatedblocks() - blocks < 500
