"""Tensors of torch itself, taken by DLPack: what lies where it lay, what is a copy, and what torch refuses."""

import gc
import importlib.util
import warnings
import weakref

import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import CopyNeeded, Refused, Unsupported
from producers import Speaks

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="skipped: torch is not installed"
)


@pytest.fixture
def torch():
    """The module itself, whose prototypes warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield importlib.import_module("torch")


def values_of(array):
    return pa.array(array).to_pylist()


@pytest.mark.parametrize(
    "name",
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"],
)
def test_numbers(torch, name):
    tensor = torch.tensor([3, 1, 2], dtype=getattr(torch, name))
    array = bowstring.array(tensor, copy=False)
    assert (array.source, str(array.type), array.buffer(1).ptr) == ("__dlpack__", name, tensor.data_ptr())
    assert values_of(array) == [3, 1, 2]
    assert values_of(bowstring.array(tensor, copy=True)) == [3, 1, 2]
    again = array.to_torch(copy=False)
    assert torch.equal(again, tensor) and again.data_ptr() == tensor.data_ptr()


def test_booleans(torch):
    tensor = torch.tensor([True, False])
    array = bowstring.array(tensor, copy=False)
    assert (values_of(array), array.buffer(1).ptr) == ([True, False], tensor.data_ptr())
    assert values_of(bowstring.array(tensor, "bool")) == [True, False]


@pytest.mark.parametrize("name", ["bfloat16", "complex64", "complex128", "float8_e4m3fn"])
def test_elements_that_arrow_has_not(torch, name):
    tensor = torch.ones(2, dtype=getattr(torch, name))
    with pytest.raises(Unsupported, match="expected elements that Arrow has as numbers, found type code"):
        bowstring.array(tensor)
    assert len(bowstring.buffer(tensor)) == 2 * tensor.element_size()


def test_dimensions(torch):
    tensor = torch.arange(24, dtype=torch.int32).reshape(2, 3, 4)
    array = bowstring.array(tensor, copy=False)
    assert str(array.type) == "fixed_size_list<fixed_size_list<int32, 4>, 3>"
    assert (array.buffers[-1].ptr, values_of(array)) == (tensor.data_ptr(), tensor.tolist())
    part = bowstring.array(tensor[1:], copy=False)
    assert (part.buffers[-1].ptr, values_of(part)) == (tensor[1:].data_ptr(), tensor[1:].tolist())


@pytest.mark.parametrize(
    "shown",
    [
        lambda one: one.T, lambda one: one[:, ::2], lambda one: one[:1].expand(3, 4), lambda one: one[::2],
        lambda one: one.permute(1, 0), lambda one: one[:, 1],
    ],
)
def test_strides_need_a_copy(torch, shown):
    tensor = shown(torch.arange(16).reshape(4, 4))
    with pytest.raises(CopyNeeded, match="__dlpack__: expected strides .*, or a copy, found"):
        bowstring.array(tensor, copy=False)
    assert values_of(bowstring.array(tensor)) == tensor.tolist()
    with pytest.raises(CopyNeeded, match="one behind the other"):
        bowstring.buffer(tensor)


def test_no_dimensions_and_no_elements(torch):
    zero = torch.tensor(5)
    array = bowstring.array(zero, copy=False)
    assert (values_of(array), array.buffer(1).ptr) == ([5], zero.data_ptr())
    for shape, expected in (((0,), []), ((0, 3), []), ((3, 0), [[], [], []])):
        assert values_of(bowstring.array(torch.empty(shape), copy=False)) == expected


def test_the_negative_bit(torch):
    """torch exports such a tensor as what its memory has, which is the negative of its values."""
    negative = torch._neg_view(torch.tensor([1.0, 2.0]))
    assert negative.is_neg() and negative.tolist() == [-1, -2]
    assert values_of(bowstring.array(negative)) == values_of(bowstring.array(negative, copy=True)) == [-1, -2]
    assert values_of(bowstring.array(torch.tensor([1 + 2j, 3 - 4j]).conj().imag)) == [-2, 4]
    for refused in (lambda: bowstring.array(negative, copy=False), lambda: bowstring.buffer(negative)):
        with pytest.raises(CopyNeeded, match="negative bit"):
            refused()


def test_what_torch_refuses(torch):
    refused = {
        "use tensor.detach()": torch.ones(2, requires_grad=True),
        "conjugate bit": torch.ones(2, dtype=torch.complex64).conj(),
        "layout other than torch.strided": torch.eye(2).to_sparse(),
        "device type meta": torch.empty(3, device="meta"),
    }
    for message, tensor in refused.items():
        for take in (bowstring.array, bowstring.buffer, lambda one: bowstring.array(one, copy=True)):
            with pytest.raises(Refused) as caught:
                take(tensor)
            assert "__dlpack__" in str(caught.value) and message in str(caught.value)
    for tensor in (torch.eye(2).to_sparse_csr(), torch.nn.Parameter(torch.ones(2))):
        with pytest.raises(Refused, match="__dlpack__"):
            bowstring.array(tensor)
    # Zeros that are nowhere.
    with pytest.raises(bowstring.InvalidData, match="found NULL"):
        bowstring.array(torch._efficientzerotensor(3))
    with torch.inference_mode():
        assert values_of(bowstring.array(torch.ones(2), copy=False)) == [1, 1]
    assert values_of(bowstring.array(torch.ones(2, requires_grad=True).detach(), copy=False)) == [1, 1]


def test_pinned_memory_is_the_cpu_s(torch):
    """What torch says of memory that a driver has pinned, whichever of the two says so."""
    tensor = torch.arange(3)
    if torch.cuda.is_available():
        assert values_of(bowstring.array(tensor.pin_memory())) == [0, 1, 2]
    pinned = Speaks(__dlpack__=lambda self, **words: tensor.__dlpack__(**words), __dlpack_device__=lambda self: (3, 0))
    array = bowstring.array(pinned, copy=False)
    assert (array.buffer(1).ptr, array.device.is_cpu, values_of(array)) == (tensor.data_ptr(), True, [0, 1, 2])


def test_capsules_from_before_versions(torch):
    tensor = torch.arange(3)
    old = Speaks(__dlpack__=lambda self: torch.utils.dlpack.to_dlpack(tensor), __dlpack_device__=lambda self: (1, 0))
    array = bowstring.array(old, copy=False)
    assert (array.buffer(1).ptr, values_of(array)) == (tensor.data_ptr(), [0, 1, 2])


def test_types_on_top_of_numbers(torch):
    tensor = torch.tensor([1, 2])
    array = bowstring.array(tensor, "timestamp(us)", copy=False)
    assert (str(array.type), array.buffer(1).ptr) == ("timestamp(us)", tensor.data_ptr())
    assert array.to_torch(physical=True).data_ptr() == tensor.data_ptr()
    with pytest.raises(Unsupported, match="expected elements of"):
        bowstring.array(tensor, "int32")


class Block(np.ndarray):
    """Memory of which one can tell whether it is still there."""


def test_the_memory_stays_as_long_as_it_is_used(torch):
    block = np.arange(3).view(Block)
    seen, tensor = weakref.ref(block), torch.from_numpy(block)
    del block
    array = bowstring.array(tensor)
    buffer = array.buffer(1)
    del tensor
    gc.collect()
    assert seen() is not None and values_of(array) == [0, 1, 2]
    back = array.to_torch()
    del array, buffer
    gc.collect()
    assert seen() is not None and back.tolist() == [0, 1, 2]
    del back
    gc.collect()
    assert seen() is None


def test_a_refusal_keeps_nothing(torch):
    block = np.arange(6).reshape(2, 3).view(Block)
    seen, tensor = weakref.ref(block), torch.from_numpy(block)
    with pytest.raises(CopyNeeded):
        bowstring.array(tensor.T, copy=False)
    with pytest.raises(Unsupported):
        bowstring.array(tensor, "utf8")
    del block, tensor
    gc.collect()
    assert seen() is None
