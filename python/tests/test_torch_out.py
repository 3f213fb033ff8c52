"""torch itself takes arrays and buffers: values, addresses, lifetimes, and what it refuses."""

import gc
import importlib.util
import subprocess
import sys
import warnings

import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import CopyNeeded
from producers import LEGACY, TENSOR, Ints, Speaks, Tensor, name_of

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="skipped: torch is not installed"
)
ONE = (1, 0)
KINDS = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "uint8": pa.uint8(),
    "uint16": pa.uint16(), "uint32": pa.uint32(), "uint64": pa.uint64(), "float16": pa.float16(),
    "float32": pa.float32(), "float64": pa.float64(),
}
ONLY = {"int64": pa.int64(), "uint16": pa.uint16(), "float16": pa.float16()}


@pytest.fixture
def torch():
    """The module itself; what it says of memory that is read-only is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield importlib.import_module("torch")


def imported(made):
    return bowstring.array(Speaks(__arrow_c_device_array__=lambda self: (made.schema(), made.device_capsule())))


@pytest.mark.parametrize("name", KINDS)
def test_numbers_stay_where_they_are(torch, name):
    data = pa.array(np.array([3, 1, 2], name))
    array, there = bowstring.array(data), data.buffers()[1].address
    for take in (
        lambda one: one.to_torch(), lambda one: one.to_torch(copy=False), torch.from_dlpack, torch.asarray,
        torch.as_tensor, lambda one: torch.from_dlpack(one, copy=False), torch.utils.dlpack.from_dlpack,
    ):
        taken = take(array)
        assert (taken.dtype, taken.tolist(), taken.data_ptr()) == (getattr(torch, name), [3, 1, 2], there)
    # A first element anywhere is good enough for torch, however little it is aligned.
    assert torch.from_dlpack(array[1:]).data_ptr() == there + data.type.bit_width // 8
    for take in (
        lambda one: one.to_torch(copy=True), torch.tensor, lambda one: torch.from_dlpack(one, copy=True),
        lambda one: torch.from_dlpack(one, device="cpu", copy=True),
        # torch.asarray(one, copy=True) asks nobody for a copy and makes none, so it is given one.
        lambda one: torch.asarray(one.to_torch(copy=True)),
    ):
        taken = take(array)
        assert (taken.dtype, taken.tolist()) == (getattr(torch, name), [3, 1, 2]) and taken.data_ptr() != there
        taken[0] = 9
    assert data.to_pylist() == [3, 1, 2]


@pytest.mark.parametrize("name", KINDS)
def test_nulls_of_every_number(torch, name):
    data = pa.array([3, None, 2], pa.int64()).cast(KINDS[name])
    values, valid = bowstring.array(data).to_torch("split", copy=False)
    assert (values.dtype, values.data_ptr()) == (getattr(torch, name), data.buffers()[1].address)
    assert (valid.dtype, valid.tolist(), values[valid].tolist()) == (torch.bool, [True, False, True], [3, 2])
    filled = bowstring.array(data).to_torch("fill", fill_value=7)
    assert (filled.dtype, filled.tolist()) == (getattr(torch, name), [3, 7, 2])
    assert bowstring.array(data)[2:].to_torch().tolist() == [2]
    for nulls in ("raise", "fill"):
        with pytest.raises((bowstring.NotConforming, CopyNeeded)):
            bowstring.array(data).to_torch(nulls, copy=False, fill_value=7)
    for take in (torch.from_dlpack, torch.asarray):
        with pytest.raises(BufferError, match="null"):
            take(bowstring.array(data))


def test_the_largest_fill_value(torch):
    for bits in (16, 32, 64):
        data = pa.array([1, None], getattr(pa, f"uint{bits}")())
        assert bowstring.array(data).to_torch("fill", fill_value=2**bits - 1).tolist() == [1, 2**bits - 1]


def test_booleans(torch):
    data = pa.array([True, False, None])
    values, valid = bowstring.array(data).to_torch("split")
    assert (values.dtype, values[:2].tolist(), valid.tolist()) == (torch.bool, [True, False], [True, True, False])
    assert bowstring.array(data).to_torch("fill", fill_value=True).tolist() == [True, False, True]
    for refused in (
        lambda: bowstring.array(data[:2]).to_torch(copy=False),
        lambda: torch.from_dlpack(bowstring.array(data[:2]), copy=False),
    ):
        with pytest.raises(BufferError):
            refused()
    # Bytes of booleans are what torch has.
    there = torch.tensor([[True, False], [False, False]])
    array = bowstring.array(there, copy=False)
    assert (array.to_torch().dtype, array.to_torch().data_ptr()) == (torch.bool, there.data_ptr())
    assert torch.equal(array.to_torch(), there) and array.to_torch(physical=True).dtype == torch.int8
    assert bowstring.array(data).is_valid().to_torch().tolist() == [True, True, False]


def test_elements_that_arrow_has_not(torch):
    there = torch.tensor([1.0, -2.5, 3.0], dtype=torch.bfloat16)
    buffer = bowstring.buffer(there)
    assert (buffer.ptr, len(buffer)) == (there.data_ptr(), 6)
    back = torch.from_dlpack(buffer.typed("bfloat16"))
    assert torch.equal(back, there) and back.data_ptr() == there.data_ptr()
    assert torch.equal(torch.from_dlpack(buffer.typed(torch.bfloat16)), there)
    complex_ = torch.tensor([1 + 2j, 3 - 4j])
    assert torch.equal(torch.from_dlpack(bowstring.buffer(complex_).typed("complex64")), complex_)


def test_buffers(torch):
    data = pa.array([1, 2, 3])
    buffer = bowstring.array(data).buffer(1)
    for taken in (
        torch.frombuffer(buffer, dtype=torch.int64), torch.frombuffer(buffer, dtype=torch.int64, offset=8, count=2),
        torch.from_dlpack(buffer).view(torch.int64), torch.from_dlpack(buffer.typed("int64")),
    ):
        skipped = 3 - len(taken)
        assert taken.tolist() == [1, 2, 3][skipped:]
        assert taken.data_ptr() == data.buffers()[1].address + 8 * skipped
    with pytest.raises(ValueError, match="buffer protocol"):
        torch.frombuffer(bowstring.Buffer.from_address(1 << 45, 8, None, "rocm:0"), dtype=torch.int64)


def test_dimensions(torch):
    data = np.arange(24, dtype="f4").reshape(4, 2, 3)
    array = bowstring.array(data)
    for taken in (torch.from_dlpack(array[1:]), array[1:].to_torch()):
        assert (tuple(taken.shape), taken.tolist()) == ((3, 2, 3), data[1:].tolist())
        assert taken.data_ptr() == data[1:].ctypes.data
        assert taken.is_contiguous()
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
        taken = torch.from_dlpack(bowstring.array(np.zeros(shape)))
        assert (tuple(taken.shape), taken.numel(), taken.dtype) == (shape, 0, torch.float64)


def test_permuted_tensors(torch):
    storage = pa.array([list(range(6)), list(range(6, 12))], pa.list_(pa.int32(), 6))
    kind = pa.fixed_shape_tensor(pa.int32(), [2, 3], permutation=[1, 0])
    array = bowstring.array(pa.ExtensionArray.from_storage(kind, storage))
    taken = array.to_torch()
    assert not taken.is_contiguous() and taken.data_ptr() == array.buffers[-1].ptr
    assert taken.tolist() == array.to_numpy().tolist() == [[[0, 3], [1, 4], [2, 5]], [[6, 9], [7, 10], [8, 11]]]


@pytest.mark.parametrize("versioned", [True, False])
def test_capsules(torch, versioned):
    made = Ints()
    array = imported(made)
    capsule = array.__dlpack__(max_version=ONE) if versioned else array.__dlpack__(copy=True)
    assert name_of(capsule) == (TENSOR if versioned else LEGACY)
    taken = torch.utils.dlpack.from_dlpack(capsule)
    assert name_of(capsule) == (b"used_dltensor_versioned" if versioned else b"used_dltensor")
    assert (taken.tolist(), taken.data_ptr() == made.data) == ([1, 2, 3], versioned)
    del array, capsule
    gc.collect()
    # The copy of the one without a version is its own.
    assert (made.released, taken.tolist()) == (0 if versioned else 1, [1, 2, 3])
    del taken
    assert made.released == 1


@pytest.mark.parametrize("how", ["to_torch", "from_dlpack", "asarray", "frombuffer", "view"])
def test_a_tensor_outlives_its_array(torch, how):
    made = Ints()
    array = imported(made)
    if how == "to_torch":
        taken = array.to_torch()
    elif how == "frombuffer":
        taken = torch.frombuffer(array.buffer(1), dtype=torch.int64)
    elif how == "view":
        taken = torch.from_dlpack(array)[1:].reshape(2, 1).T
    else:
        taken = getattr(torch, how)(array)
    del array
    gc.collect()
    assert made.released == 0 and taken.reshape(-1).tolist() == [1, 2, 3][3 - taken.numel():]
    del taken
    gc.collect()
    assert made.released == 1


def test_a_tensor_of_somebody_else_goes_through(torch):
    """One without strides, and one whose first element is not where its data is."""
    made = Tensor([1, 2, 3, 4], shape=(2, 2), name=LEGACY, no_strides=True)
    assert torch.from_dlpack(bowstring.array(made)).tolist() == [[1, 2], [3, 4]]
    made = Tensor([1, 2, 3, 4], shape=(2,))
    made.struct.tensor.byte_offset = 8
    assert torch.from_dlpack(bowstring.array(made, copy=False)).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("data", "message"),
    [(pa.array(["a"]), "found u"), (pa.array([[1]]), r"\+l"), (pa.array([1], pa.timestamp("us")), "PHYSICAL")], ids=str,
)
def test_what_is_no_tensor(torch, data, message):
    for take in (torch.from_dlpack, torch.asarray):
        with pytest.raises(BufferError, match=message):
            take(bowstring.array(data))
    with pytest.raises(BufferError):
        torch.from_dlpack(bowstring.array([1]), device="meta")


def test_other_devices(torch):
    values = bowstring.Buffer.from_address(1 << 45, 64, None, "rocm:0")
    array = bowstring.from_buffers("int32", 8, [None, values], device="rocm:0")
    for take in (torch.from_dlpack, lambda one: one.to_torch(), torch.asarray):
        with pytest.raises(Exception):
            take(array)


def test_batches_of_a_loader(torch):
    from torch.utils.data import DataLoader, TensorDataset

    table = pa.table({"x": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2)), "y": [1, 0, 1]})
    array = bowstring.array(table)
    rows = DataLoader(TensorDataset(array["x"].to_torch(), array["y"].to_torch()), batch_size=2)
    assert [(x.tolist(), y.tolist()) for x, y in rows] == [([[1, 2], [3, 4]], [1, 0]), ([[5, 6]], [1])]
    whole = DataLoader([array["y"], array["y"][1:]], batch_size=None, collate_fn=lambda one: one.to_torch())
    assert [batch.tolist() for batch in whole] == [[1, 0, 1], [0, 1]]
    with pytest.raises(TypeError):
        next(iter(DataLoader([array["y"]], batch_size=1)))


ONCE = """
import bowstring, pyarrow as pa, torch, warnings
array = bowstring.array(pa.array([1, 2]))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    array.to_torch(copy=True), bowstring.array(pa.array([True])).to_torch()
    bowstring.array(pa.array([1, None])).to_torch("fill", fill_value=0)
    assert caught == [], caught
    kept = [array.to_torch(), array.to_torch("split")[0]]
(one,) = caught
assert "read-only" in str(one.message) and one.filename == "<string>", one
del array
assert bowstring.live_counts()
del kept
assert not bowstring.live_counts(), bowstring.live_counts()
print("done", torch.__version__ != "")
"""


def test_read_only_memory_is_warned_about_once(torch):
    found = subprocess.run([sys.executable, "-c", ONCE], capture_output=True, text=True, timeout=300)
    assert found.stdout == "done True\n", found.stderr
