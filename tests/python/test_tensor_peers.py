"""Other libraries as consumers and producers of tensors: the same memory on both sides, one call of each deleter.

jax takes part in a process of its own, which test_tensor_jax.py starts: it has threads, and other tests fork.
"""

import gc
import itertools
import os
import sys
import weakref
from ctypes import byref, c_void_p

import numpy as np
import pyarrow as pa
import pytest
import tvm_ffi

import support
import tensors
from bowstring_ctypes import UNSUPPORTED, BowstringError, lib, out
from raw import At, Node, Raw
from tensors import ALLOW_COPY, DROP_READ_ONLY, LEGACY_NAME, LEGACY_USED, NAME, READ_ONLY, USED, Producer

HAS_JAX = os.environ.get("BOWSTRING_TESTS_WITH") == "jax"


def jax_numpy():
    import jax
    jax.config.update("jax_enable_x64", True)
    return jax.numpy


# How a library takes a producer's tensor, and where it says that the memory is.
CONSUMERS = {
    "numpy": (np.from_dlpack, lambda taken: taken.ctypes.data),
    "pyarrow tensor": (pa.Tensor.from_dlpack, lambda taken: taken.to_numpy().ctypes.data),
    "pyarrow array": (pa.Array.from_dlpack, lambda taken: taken.buffers()[1].address),
    # Asked for an object's tensor it wants one of before 1.0.
    "tvm": (lambda producer: tvm_ffi.from_dlpack(producer.__dlpack__()), lambda taken: taken.data_ptr()),
}
LEGACY_CONSUMERS = {"numpy": CONSUMERS["numpy"], "tvm": (tvm_ffi.from_dlpack, CONSUMERS["tvm"][1])}
if HAS_JAX:
    LEGACY_CONSUMERS["jax"] = (lambda data: jax_numpy().from_dlpack(data), lambda taken: taken.unsafe_buffer_pointer())

VALUES = {
    "int32": np.arange(24, dtype=np.int32), "int64": np.arange(24), "float32": np.arange(24, dtype=np.float32),
    "float64": np.arange(24) / 3, "uint8": np.arange(24, dtype=np.uint8), "float16": np.arange(24, dtype=np.float16),
}
SHAPES = ((24,), (8, 3), (2, 3, 4))
FORMATS = {"int32": "i", "int64": "l", "float32": "f", "float64": "g", "uint8": "C", "float16": "e"}


def raw_lists(name, shape):
    """A counted array of ours whose last level has the values, at an address that every library takes as it is."""
    node = Node(FORMATS[name], 24, buffers=[None, At(VALUES[name].tobytes(), 256, 0)], name=b"item")
    for i in range(len(shape) - 1, 0, -1):
        node = Node(f"+w:{shape[i]}", int(np.prod(shape[:i])), buffers=[None], children=[node], name=b"item")
    return Raw(node)


def numbers(taken):
    """What a consumer reads."""
    if isinstance(taken, pa.Array):
        return np.array(taken.to_pylist())
    return taken.to_numpy() if isinstance(taken, pa.Tensor) else np.asarray(np.from_dlpack(taken))


def check_consumer(name, consumers, capsule_name, dtype, shape, array_first):
    take, address_of = consumers[name]
    raw = raw_lists(dtype, shape)
    handle = out("array_import", byref(raw.device_array), byref(raw.schema))
    tensor = tensors.to_tensor(handle)
    if capsule_name == LEGACY_NAME:
        tensor = out("tensor_to_legacy", byref(tensor), tensors.options(DROP_READ_ONLY))
    at = support.buffer_infos(handle)[-1].data
    producer = Producer(tensor.value, capsule_name)
    taken = take(producer)
    assert tensors.name_of(producer.capsule) == (USED if capsule_name == NAME else LEGACY_USED)
    producer = None
    assert address_of(taken) == at
    assert np.array_equal(numbers(taken), VALUES[dtype].reshape(shape))
    if array_first:
        support.release(handle)
        assert raw.array_released == 0
        assert np.array_equal(numbers(taken), VALUES[dtype].reshape(shape))
        taken = None
    else:
        taken = None
        assert raw.array_released == 0
        support.release(handle)
    if not raw.array_released:
        # What jax hands out is in cycles.
        gc.collect()
    assert (raw.array_released, raw.schema_released) == (1, 1)


@pytest.mark.parametrize("name", CONSUMERS)
def test_consumers(name):
    shapes = SHAPES[:1] if name == "pyarrow array" else SHAPES
    for dtype, shape, array_first in itertools.product(VALUES, shapes, (True, False)):
        check_consumer(name, CONSUMERS, NAME, dtype, shape, array_first)


@pytest.mark.parametrize("name", LEGACY_CONSUMERS)
def test_legacy_consumers(name):
    for dtype, shape, array_first in itertools.product(VALUES, SHAPES, (True, False)):
        check_consumer(name, LEGACY_CONSUMERS, LEGACY_NAME, dtype, shape, array_first)


def test_readers_honour_the_flags():
    array = pa.array([1, 2, 3])
    assert not np.from_dlpack(Producer(tensors.of(array).value)).flags.writeable
    assert not pa.Tensor.from_dlpack(Producer(tensors.of(array).value)).is_mutable
    bits = pa.array([True, False, True])
    copied = np.from_dlpack(Producer(tensors.of(bits, ALLOW_COPY).value))
    assert copied.dtype == bool and copied.flags.writeable and copied.tolist() == [True, False, True]


def test_consumers_that_refuse_leave_the_tensor():
    """numpy has no such type; the capsule still has its tensor, which goes with it."""
    foreign = tensors.Made(data=bytes(8), dtype=(tensors.BFLOAT, 16, 1))
    new = out("tensor_to_legacy", byref(foreign.cell), None)
    producer = Producer(new.value, LEGACY_NAME)
    with pytest.raises(RuntimeError) as refused:
        np.from_dlpack(producer)
    assert tensors.name_of(producer.capsule) == LEGACY_NAME and foreign.deleted == 0
    del refused, producer
    assert foreign.deleted == 1


def test_orders_of_dimensions():
    """numpy sees a permutation as strides."""
    storage = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(48)), 24)
    kind = pa.fixed_shape_tensor(pa.int64(), (2, 3, 4), permutation=(2, 0, 1))
    taken = np.from_dlpack(Producer(tensors.of(pa.ExtensionArray.from_storage(kind, storage)).value))
    assert np.array_equal(taken, np.arange(48).reshape(2, 2, 3, 4).transpose(0, 3, 1, 2))


# ---- producers ----


class Watched(np.ndarray):
    """An array of numpy that can be watched."""


def numpy_array(values):
    return values.copy()


def pyarrow_array(values):
    return pa.array(values)


def pyarrow_tensor(values):
    return pa.Tensor.from_numpy(values)


def tvm_tensor(values):
    return tvm_ffi.from_dlpack(values.copy())


def jax_array(values):
    return jax_numpy().array(values)


PRODUCERS = {
    "numpy": (numpy_array, lambda made: made.ctypes.data),
    "pyarrow array": (pyarrow_array, lambda made: made.buffers()[1].address),
    "pyarrow tensor": (pyarrow_tensor, lambda made: made.to_numpy().ctypes.data),
    "tvm": (tvm_tensor, lambda made: made.data_ptr()),
}
LEGACY_PRODUCERS = {name: PRODUCERS[name] for name in ("numpy", "tvm")}
if HAS_JAX:
    LEGACY_PRODUCERS["jax"] = (jax_array, lambda made: made.unsafe_buffer_pointer())


def check_producer(make, address_of, ask, name, dtype, shape, data_first):
    data = make(VALUES[dtype].reshape(shape))
    at = address_of(data)
    capsule = data.__dlpack__(**ask)
    assert tensors.name_of(capsule) == name
    handle = tensors.consumed(capsule, name=name)
    assert tensors.name_of(capsule) == tensors.USED_NAMES[name]
    capsule = None
    assert support.buffer_infos(handle)[-1].data == at
    if data_first:
        data = None
    found = tensors.back(handle)
    assert found.to_pylist() == VALUES[dtype].reshape(shape).tolist()


@pytest.mark.parametrize("name", PRODUCERS)
def test_producers(name):
    shapes = SHAPES[:1] if name == "pyarrow array" else SHAPES
    for dtype, shape, data_first in itertools.product(VALUES, shapes, (True, False)):
        check_producer(*PRODUCERS[name], {"max_version": (1, 3)}, NAME, dtype, shape, data_first)


@pytest.mark.parametrize("name", LEGACY_PRODUCERS)
def test_legacy_producers(name):
    for dtype, shape, data_first in itertools.product(VALUES, SHAPES, (True, False)):
        check_producer(*LEGACY_PRODUCERS[name], {}, LEGACY_NAME, dtype, shape, data_first)


@pytest.mark.parametrize("name", ("numpy", "tvm", "pyarrow tensor"))
@pytest.mark.parametrize("by_copy", (False, True))
def test_producers_are_let_go_once(name, by_copy):
    """What they keep lives as long as our array, and no longer; after a copy no longer than the call."""
    base = np.arange(24).view(Watched)
    alive = weakref.ref(base)
    keeping = {"numpy": lambda data: data, "tvm": tvm_ffi.from_dlpack, "pyarrow tensor": pa.Tensor.from_numpy}
    references = sys.getrefcount(base)
    made = keeping[name](base)
    cell = tensors.produced(made)
    assert sys.getrefcount(base) > references
    if by_copy:
        tensors.struct_at(cell).dl_tensor.strides[0] = 2
        tensors.struct_at(cell).dl_tensor.shape[0] = 12
    handle = tensors.array_of(cell, None, ALLOW_COPY if by_copy else 0)
    del made
    assert sys.getrefcount(base) == references + (not by_copy)
    del base
    assert (alive() is None) == by_copy
    expected = list(range(0, 24, 2)) if by_copy else list(range(24))
    assert tensors.back(handle).to_pylist() == expected
    assert alive() is None


def test_flags_of_producers():
    data = np.arange(3)
    data.flags.writeable = False
    cell = tensors.produced(data)
    assert tensors.struct_at(cell).flags & READ_ONLY
    with pytest.raises(BowstringError, match="DROP_READ_ONLY"):
        out("tensor_to_legacy", byref(cell), None)
    tensors.release(cell)
    cell = tensors.produced(np.arange(3))
    old = out("tensor_to_legacy", byref(cell), None)
    assert cell.value is None
    # Nothing was said, so nothing is written.
    taken = np.from_dlpack(Producer(old.value, LEGACY_NAME))
    assert taken.tolist() == [0, 1, 2]


def test_strides_of_producers():
    data = np.arange(12).reshape(3, 4)
    for view in (data[:, ::2], data.T, data[::-1], np.broadcast_to(data[0], (2, 4))):
        cell = tensors.produced(view)
        with pytest.raises(BowstringError) as refused:
            tensors.array_of(cell)
        assert refused.value.status == UNSUPPORTED
        assert tensors.back(tensors.array_of(cell, None, ALLOW_COPY)).to_pylist() == view.tolist()
    turned = pa.Tensor.from_numpy(np.asfortranarray(data))
    assert tensors.back(tensors.array_of(tensors.produced(turned), None, ALLOW_COPY)).to_pylist() == data.tolist()


def test_there_and_back_is_the_same_memory():
    array = pa.array(np.arange(24)).slice(3, 20)
    taken = np.from_dlpack(Producer(tensors.of(array).value))
    again = tensors.array_of(tensors.produced(taken))
    assert support.buffer_infos(again)[-1].data == array.buffers()[1].address + 24
    taken = None
    assert tensors.back(again).equals(array)


def test_a_tensor_that_crosses_every_library():
    """Each keeps the one before; the last of them keeps all."""
    base = np.arange(12).view(Watched)
    at, alive = base.ctypes.data, weakref.ref(base)
    handle = tensors.array_of(tensors.produced(base))
    del base
    taken = np.from_dlpack(Producer(tensors.to_tensor(handle).value))
    support.release(handle)
    middle = pa.Tensor.from_dlpack(taken)
    del taken
    handle = tensors.array_of(tensors.produced(middle))
    del middle
    last = CONSUMERS["tvm"][0](Producer(tensors.to_tensor(handle).value))
    support.release(handle)
    assert alive() is not None and last.data_ptr() == at
    cell = c_void_p(tensors.produced(last).value)
    del last
    assert tensors.values(cell).tolist() == list(range(12))
    lib.bowstring_tensor_release(cell)
    assert alive() is None
