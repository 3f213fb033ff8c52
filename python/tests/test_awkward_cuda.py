"""Awkward Arrays of memory of CUDA: with a module that has of CuPy what is used, in a process of its own.

Its arrays are numpy's, so that addresses of the CPU stand for a GPU's. No GPU has run this.
"""

import os
import subprocess
import sys
from pathlib import Path

PRELUDE = """
import ctypes, sys, types
import numpy as np

class ndarray(np.ndarray):
    def __new__(cls, shape, dtype, memptr=None):
        if memptr is None:
            return np.empty(shape, dtype).view(cls)
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        raw = (ctypes.c_ubyte * count).from_address(memptr.ptr)
        made = np.frombuffer(raw, dtype).view(cls)
        made.memory = memptr.mem
        return made
    def __array_finalize__(self, source):
        self.memory = getattr(source, "memory", None)
    @property
    def __cuda_array_interface__(self):
        found = self.__array_interface__
        return {**found, "version": 3, "stream": None}
    def __dlpack_device__(self):
        return 2, 0
    def get(self):
        return np.asarray(self)

ndarray.__module__ = "cupy"
cupy = types.ModuleType("cupy")
cupy.ndarray = ndarray
owners, waited = [], []

class UnownedMemory:
    def __init__(self, ptr, size, owner, device_id=-1):
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id
        owners.append((ptr, size, device_id))

class MemoryPointer:
    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset

class Stream:
    ptr = 0

cupy.cuda = types.SimpleNamespace(
    UnownedMemory=UnownedMemory, MemoryPointer=MemoryPointer, get_current_stream=lambda: waited.append(1) or Stream(),
)

def wrapped(name):
    made = getattr(np, name)
    def call(*arguments, **options):
        found = made(*arguments, **options)
        return found.view(ndarray) if isinstance(found, np.ndarray) else found
    return call

for name in "zeros empty full arange packbits unpackbits where ascontiguousarray asarray array frombuffer".split():
    setattr(cupy, name, wrapped(name))
for name in "int64 int32 int8 uint8 uint32 float64 dtype".split():
    setattr(cupy, name, getattr(np, name))
cupy.__version__ = "13.0.0"
cupy.__name__ = "cupy"
sys.modules["cupy"] = cupy

import awkward as ak, bowstring, pyarrow as pa
# Real arrays of CuPy are no numpy arrays; these are, and must be looked at as CuPy's first.
from awkward._backends import dispatch as backends
from awkward._nplikes import cupy as of_cupy, dispatch
dispatch._nplike_classes.insert(0, of_cupy.Cupy)
backends._backend_lookup_factories.reverse()
from bowstring import Buffer, from_buffers

def moved(array, device="cuda:0"):
    # The same memory, said to be a GPU's.
    parts = array.resolve_sizes().to_buffers()
    buffers = [
        None if b is None else Buffer.from_address(b.ptr, b.bufsize, b, device) for b in parts.buffers
    ]
    return from_buffers(parts.type, parts.nodes, buffers, device)
"""


def run(script):
    """Runs a script in which CuPy is there."""
    root = Path(bowstring_root())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    found = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], capture_output=True, text=True, timeout=300, env=environment
    )
    assert found.returncode == 0 and found.stdout.endswith("done\n"), found.stdout + found.stderr


def bowstring_root():
    """Where the package under test is."""
    import bowstring

    return Path(bowstring.__file__).parent.parent


def test_layouts_on_the_device():
    run("""
data = pa.array([[{"x": 1.5, "s": "ab"}, {"x": None, "s": "c"}], None, [], [{"x": 2.5, "s": None}]])
array = moved(bowstring.array(data))
assert str(array.device) == "cuda:0"
layout = array.to_awkward(copy=False, highlevel=False)
assert waited, "the current stream waits for the array's event"
assert ak.backend(layout) == "cuda"
expected = {buffer.address: buffer.size for buffer in data.buffers() if buffer is not None and buffer.size}
assert {ptr for ptr, _, _ in owners} == set(expected) and {number for _, _, number in owners} == {0}
assert all(size <= expected[ptr] for ptr, size, _ in owners)
assert layout.content.content.content.contents[0].content.data.memory.owner.device == array.device
# The layout alone keeps the memory.
del array
again = bowstring.from_awkward(layout)
assert str(again.device) == "cuda:0"
assert {b.ptr for b in again.buffers if b.ptr} == set(expected)
back = from_buffers(again.type, again.to_buffers().nodes, [
    None if b is None else Buffer.from_address(b.ptr, b.bufsize, b, "cpu") for b in again.to_buffers().buffers
])
assert pa.array(back).to_pylist() == data.to_pylist()
del layout, again, back
import gc
gc.collect()
print("done")
""")


def test_bits_on_the_device():
    run("""
data = pa.array([True, None, False, True, True, None, False, True, True, False])
for offset in (0, 3):
    layout = moved(bowstring.array(data)).slice(offset).to_awkward(highlevel=False)
    assert ak.backend(layout) == "cuda"
    mask = np.unpackbits(np.asarray(layout.mask.data), bitorder="little")[: len(data) - offset].astype(bool)
    values = np.asarray(layout.content.data)
    assert [bool(v) if m else None for v, m in zip(values, mask)] == data.to_pylist()[offset:]
print("done")
""")


def test_indices_on_the_device():
    run("""
data = pa.array(["a", "b", None, "a"]).dictionary_encode()
layout = moved(bowstring.array(data)).to_awkward(highlevel=False)
assert ak.backend(layout) == "cuda" and np.asarray(layout.index.data).tolist() == [0, 1, -1, 0]
again = bowstring.from_awkward(layout)
assert str(again.device) == "cuda:0" and again.dictionary is not None
assert again.dictionary.buffers[-1].ptr == data.dictionary.buffers()[2].address
print("done")
""")


def test_without_cupy():
    run("""
sys.modules["cupy"] = None
array = moved(bowstring.array(pa.array([1, 2])))
try:
    array.to_awkward()
except ImportError as error:
    assert "CuPy" in str(error)
    print("done")
""")
