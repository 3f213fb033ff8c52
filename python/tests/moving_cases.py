"""Arrays for the tests of looking and moving: every type, from pyarrow, and what pyarrow says of what comes back."""

import os
import sys
from pathlib import Path

import pyarrow as pa

import bowstring
from bowstring import _capsules

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "python"))

from all_types import columns  # noqa: E402, F401

NO_GOLDEN = "skipped: no-golden: BOWSTRING_GOLDEN names no folder with cpp-21.0.0"


def golden_files():
    """Arrow's golden streams, none when nobody said where they are."""
    folder = os.environ.get("BOWSTRING_GOLDEN")
    return sorted(Path(folder, "cpp-21.0.0").glob("*.stream")) if folder else []


class Device:
    """pyarrow's object behind the device protocol alone."""

    def __init__(self, array):
        self.array = array

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        return self.array.__arrow_c_device_array__(requested_schema, **kwargs)


def ours(array):
    """An array of ours on pyarrow's memory."""
    return bowstring.Array._of(_capsules.array_from(*array.__arrow_c_device_array__()), "test")


class _Capsules:
    def __init__(self, array):
        self.array = array

    def __arrow_c_array__(self, requested_schema=None):
        return _capsules.array_capsules(self.array._handle, True)


def theirs(array):
    """pyarrow's array on memory of ours, checked by pyarrow in full."""
    made = pa.array(_Capsules(array))
    made.validate(full=True)
    return made


def on(device, array):
    """The same numbers under another device's name: nothing may read them. `array` has to stay."""
    from ctypes import byref

    from bowstring import _c
    from bowstring._device import device_of, struct_of
    from bowstring._library import call, lib, made

    n_nodes, n_buffers = array._counts()
    nodes, buffers = (_c.Node * n_nodes)(), (_c.OwnedBuffer * n_buffers)()
    call(lib.bowstring_array_to_buffers, array._handle, nodes, n_nodes, buffers, n_buffers, None)
    placement = _c.Placement(device=struct_of(device_of(device)))
    raw, kind = _c.ArrowDeviceArray(), array.type
    made_of = (kind._handle, nodes, n_nodes, buffers, n_buffers, byref(placement), byref(raw))
    call(lib.bowstring_device_array_from_buffers, *made_of)
    return bowstring.Array._of(made(lib.bowstring_array_import_typed, byref(raw), kind._handle), "test")
