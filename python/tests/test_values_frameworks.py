"""Values as PyTorch and CuPy have them: by small modules that take DLPack as they do, and by the real ones."""

import importlib.util
import subprocess
import sys
import types
import warnings

import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import Buffer, CopyNeeded, InvalidArgument, NotConforming, Unsupported, from_buffers
from bowstring import _frameworks, _tensors

from values_support import Owner, everything, none_alive, taken

ARRAYS = everything()


class Tensor(np.ndarray):
    """An array with what a tensor of torch has and numpy's has not."""

    def clone(self):
        return self.copy()


def from_dlpack(source):
    """As torch.from_dlpack: asks for a version, and does not mind memory that is read-only."""
    assert source.__dlpack_device__() == (1, 0)
    return np.from_dlpack(source).view(Tensor)


class Legacy:
    """What a consumer from before versions asks for."""

    def __init__(self, source):
        self.source = source

    def __dlpack__(self, *, stream=None):
        return self.source.__dlpack__()

    def __dlpack_device__(self):
        return self.source.__dlpack_device__()


REAL = importlib.util.find_spec("torch") is not None


@pytest.fixture(params=["stand-in", *(["torch"] if REAL else [])])
def torch(monkeypatch, request):
    """torch itself too, where it is installed."""
    monkeypatch.setattr(_frameworks, "_warned", False)
    if request.param == "torch":
        return importlib.import_module("torch")
    module = types.ModuleType("torch")
    module.from_dlpack = from_dlpack
    module.broadcast_to, module.where, module.full, module.bool = np.broadcast_to, np.where, np.full, np.bool_
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def address(values):
    return values.data_ptr() if hasattr(values, "data_ptr") else values.__array_interface__["data"][0]


@pytest.mark.parametrize("name", ["int8", "int64", "uint8", "halffloat", "float", "double"])
def test_zero_copy(torch, quiet, name):
    data = ARRAYS[name]
    values, valid = taken(data).to_torch(nulls="split", copy=False)
    assert isinstance(values, getattr(torch, "Tensor", Tensor)) and address(values) == data.buffers()[1].address
    assert valid.tolist() == [True, False, True, True, True] and valid.dtype == torch.bool
    assert values[valid].tolist() == [1, 3, 0, 5]


def test_old_consumers_get_what_they_know(torch, quiet, monkeypatch):
    names = []
    real = bowstring._capsules.tensor_capsule
    monkeypatch.setattr(bowstring._capsules, "tensor_capsule", lambda at, name: names.append(name) or real(at, name))
    take = torch.from_dlpack
    monkeypatch.setattr(torch, "from_dlpack", lambda source: take(Legacy(source)))
    data = pa.array([1, 2, 3])
    assert address(taken(data).to_torch()) == data.buffers()[1].address and names == [b"dltensor"]


def test_read_only_memory_is_warned_about_once(torch):
    array = taken(pa.array([1, 2]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        array.to_torch(copy=True)
        taken(pa.array([True])).to_torch()
        assert caught == []
        array.to_torch()
        array.to_torch()
    assert len(caught) == 1 and "read-only" in str(caught[0].message)
    # It is told about the line that called.
    assert caught[0].filename == __file__


def test_nulls(torch, quiet):
    array = taken(pa.array([1, None, 3], pa.float32()))
    with pytest.raises(NotConforming, match="found 1"):
        array.to_torch()
    assert [value != value for value in array.to_torch("fill").tolist()] == [False, True, False]
    assert array.to_torch("fill", fill_value=9).tolist() == [1, 9, 3]
    with pytest.raises(InvalidArgument, match="fill_value"):
        taken(pa.array([1, None])).to_torch("fill")
    with pytest.raises(CopyNeeded):
        array.to_torch("fill", copy=False)
    with pytest.raises(ValueError, match="'drop'"):
        array.to_torch("drop")
    assert array.slice(2).to_torch("split")[1] is None
    assert pa.array(array).to_pylist() == [1, None, 3]


def test_copies_and_bits(torch):
    data = pa.array([1, 2])
    own = taken(data).to_torch(copy=True)
    own[0] = 7
    assert data.to_pylist() == [1, 2]
    assert taken(pa.array([True, False, None])).to_torch("split")[0].tolist()[:2] == [True, False]
    with pytest.raises(CopyNeeded, match="bits"):
        taken(pa.array([True])).to_torch(copy=False)


def test_dimensions(torch, quiet):
    data = pa.array([[1, 2], None, [5, 6]], pa.list_(pa.int16(), 2))
    values, valid = taken(data).to_torch("split")
    assert values.shape == valid.shape == (3, 2) and valid.all(axis=1).tolist() == [True, False, True]
    assert taken(data).to_torch("fill", fill_value=0).tolist() == [[1, 2], [0, 0], [5, 6]]
    within = taken(pa.array([[1, None], [3, 4]], pa.list_(pa.int16(), 2)))
    assert within.to_torch("split")[1].tolist() == [[True, False], [True, True]]
    with pytest.raises(NotConforming, match="found 0 and 1 within rows"):
        within.to_torch()
    rows = from_buffers("fixed_size_list<int8, 2>", 2, [b"\2", None, b"abcd"])
    assert taken(rows).to_torch("fill", fill_value=0).tolist() == [[0, 0], [99, 100]]


@pytest.mark.parametrize("permutation", [None, [1, 0]])
def test_tensors_in_rows(torch, quiet, permutation):
    storage = pa.array([list(range(6)), [1, 2, None, 4, 5, 6]], pa.list_(pa.int32(), 6))
    kind = pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=permutation)
    array = taken(pa.ExtensionArray.from_storage(kind, storage))
    values, valid = array.to_torch("split")
    expected, there = array.to_numpy("split")
    assert (valid.tolist(), int((~valid).sum())) == (there.tolist(), 1)
    assert values[valid].tolist() == expected[there].tolist()


def test_what_is_no_number(torch, quiet):
    stamps = taken(pa.array([1, 2], pa.timestamp("us")))
    with pytest.raises(Exception, match="PHYSICAL|physical|values"):
        stamps.to_torch()
    assert stamps.to_torch(physical=True).tolist() == [1, 2]
    assert taken(pa.array(["b", "a", "b"]).dictionary_encode()).to_torch(physical=True).tolist() == [0, 1, 0]
    with pytest.raises(Exception, match="values of one size"):
        taken(pa.array(["a"])).to_torch()


def test_the_memory_stays(torch, quiet):
    owner = Owner()
    values = np.arange(3.0)
    array = from_buffers("float64", 3, [None, Buffer.from_address(values.ctypes.data, 24, owner)])
    del owner
    tensor = array.to_torch()
    del array
    assert Owner.alive == 1 and tensor.tolist() == [0, 1, 2]
    del tensor
    assert none_alive() and Owner.alive == 0


# CuPy: its arrays are made of capsules of the device, whose memory is not there.


class GpuArray:
    """What stands for an array of CuPy: it looks at the tensor and lets it go with itself."""

    def __init__(self, source):
        self.device = source.__dlpack_device__()
        self.capsule = source.__dlpack__(stream=-1, max_version=(1, 0))
        tensor = bowstring._dlpack.Versioned.from_address(
            bowstring._capsules.tensor_in(self.capsule, b"dltensor_versioned")
        ).tensor
        self.ptr, self.shape = tensor.data, tuple(tensor.shape[: tensor.ndim])


@pytest.fixture
def cupy(monkeypatch):
    module = types.ModuleType("cupy")
    module.from_dlpack = GpuArray
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def on_gpu(kind="int16", device="cuda:0"):
    return from_buffers(kind, 8, [None, Buffer.from_address(4096, 64, Owner(), device)])


def test_cupy_in_place(cupy):
    array = on_gpu().slice(2)
    values = array.to_cupy()
    del array
    assert (values.device, values.ptr, values.shape) == ((2, 0), 4096 + 4, (6,)) and Owner.alive == 1
    assert on_gpu().to_cupy("split")[1] is None
    del values
    assert none_alive() and Owner.alive == 0


def test_cupy_of_other_memory(cupy):
    with pytest.raises(InvalidArgument, match=r"found cpu.*to_device\('cuda'\)"):
        taken(pa.array([1])).to_cupy()
    with pytest.raises(CopyNeeded, match="bits"):
        on_gpu("bool").to_cupy(copy=False)


def test_nulls_that_nobody_can_count(cupy):
    bitmap, values = (Buffer.from_address(place, 64, None, "rocm:0") for place in (4096, 8192))
    with pytest.raises(Unsupported, match="ROCM"):
        from_buffers("int8", 8, [bitmap, values]).to_cupy()


def test_streams(torch):
    array = on_gpu()
    source = _tensors.TensorSource(lambda sync: _tensors.array_tensor(array, 0, sync), array.device)
    for stream in (None, 1, 2, 0x7000, -1):
        source.__dlpack__(stream=stream, max_version=(1, 0))
    with pytest.raises(ValueError, match="0"):
        source.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="to_device"):
        source.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError, match="copy"):
        source.__dlpack__(copy=True)


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_packages_that_are_not_there(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    array = on_gpu() if name == "cupy" else taken(pa.array([1]))
    with pytest.raises(ImportError, match=f"expected {name} for to_{name}"):
        getattr(array, f"to_{name}")()


def _needs(name):
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"skipped: {name} is not installed")


_TORCH = """
import bowstring, pyarrow, torch, warnings
data = pyarrow.array([1.5, 2.5, None])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    values, valid = bowstring.array(data).to_torch("split")
assert any("read-only" in str(one.message) for one in caught)
assert values.data_ptr() == data.buffers()[1].address and values.dtype == torch.float64
assert valid.tolist() == [True, True, False]
assert bowstring.array(data).to_torch("fill", fill_value=0).tolist() == [1.5, 2.5, 0]
assert bowstring.array(data).slice(0, 2).to_torch(copy=True).tolist() == [1.5, 2.5]
assert bowstring.array(pyarrow.array([True, False])).to_torch().tolist() == [True, False]
print("done")
"""


@_needs("torch")
def test_torch_itself():
    found = subprocess.run([sys.executable, "-c", _TORCH], capture_output=True, text=True, timeout=300)
    assert found.stdout == "done\n", found.stderr


@_needs("cupy")
def test_cupy_itself():
    import cupy

    if not cupy.cuda.is_available():
        pytest.skip("skipped: no GPU")
    array = taken(pa.array([1, 2, 3])).to_device("cuda:0")
    values = array.to_cupy()
    assert values.get().tolist() == [1, 2, 3] and values.data.ptr == array.buffers[1].ptr
