"""Arrays for the tests of looking and moving: every type, from pyarrow, and what pyarrow says of what comes back."""

import os
import subprocess
import sys
from contextlib import contextmanager
from ctypes import byref
from pathlib import Path

import pyarrow as pa

import bowstring
from bowstring import _c, _capsules
from bowstring._device import device_of, struct_of
from bowstring._library import call, lib, made

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "python"))

from all_types import columns  # noqa: E402, F401

NO_GOLDEN = "skipped: no-golden: BOWSTRING_GOLDEN names no folder with cpp-21.0.0"


def golden_files():
    """Arrow's golden streams, none when nobody said where they are."""
    folder = os.environ.get("BOWSTRING_GOLDEN")
    return sorted(Path(folder, "cpp-21.0.0").glob("*.stream")) if folder else []


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
    back = pa.array(_Capsules(array))
    back.validate(full=True)
    return back


def on(device, array):
    """The same memory under another device's name: nothing may read it."""
    n_nodes, n_buffers = array._counts()
    nodes, buffers = (_c.Node * n_nodes)(), (_c.OwnedBuffer * n_buffers)()
    call(lib.bowstring_array_to_buffers, array._handle, nodes, n_nodes, buffers, n_buffers, None)
    placement = _c.Placement(device=struct_of(device_of(device)))
    raw, kind = _c.ArrowDeviceArray(), array.type
    made_of = (kind._handle, nodes, n_nodes, buffers, n_buffers, byref(placement), byref(raw))
    call(lib.bowstring_device_array_from_buffers, *made_of)
    return bowstring.Array._of(made(lib.bowstring_array_import_typed, byref(raw), kind._handle), "test")


NO_CUDA_SIM = "skipped: no-cuda-sim: BOWSTRING_CUDA_SIM names no folder"


def has_cuda_sim():
    """Whether there is a simulated CUDA driver."""
    return bool(os.environ.get("BOWSTRING_CUDA_SIM"))


def with_cuda(worker, *arguments):
    """Runs a file of this folder in a process that finds the simulated driver; its output ends with "done"."""
    import cuda_sim

    command = [sys.executable, str(Path(__file__).parent / worker), *arguments]
    run = subprocess.run(command, env=cuda_sim.environment(), capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout.endswith("done\n"), run.stdout + run.stderr


@contextmanager
def unread(kind, nodes, addresses, device="cpu"):
    """An array whose buffers are nowhere: who reads them dies. Lengths and null counts are as told, offsets are 0."""
    kind = bowstring.Type(kind)
    facts = (_c.Node * len(nodes))(*(_c.Node(length, 0, 0, count) for length, _, count in nodes))
    buffers = (_c.OwnedBuffer * len(addresses))(*(_c.OwnedBuffer(at, -1, None) for at in addresses))
    raw = _c.ArrowDeviceArray()
    placement = _c.Placement(device=struct_of(device_of("rocm:0")))
    made_of = (kind._handle, facts, len(nodes), buffers, len(addresses), byref(placement), byref(raw))
    call(lib.bowstring_device_array_from_buffers, *made_of)
    raw.device_type, raw.device_id = device_of(device)
    left = [nulls for _, nulls, _ in nodes]

    def tell(array):
        array.null_count = left.pop(0)
        for number in range(array.n_children):
            tell(array.children[number].contents)

    tell(raw.array)
    # Borrowed, it is taken as it is; brought in by its own release it would be known again, and its counts with it.
    array = made(lib.bowstring_array_import_borrowed, byref(raw), kind._handle, None, _c.RELEASE())
    try:
        yield bowstring.Array._of(array, "test")
    finally:
        lib.bowstring_device_array_release(byref(raw))
