"""`bowstring.array` from DLPack: of NumPy, and of producers of every age that do what they should, or not."""

import gc
import weakref

import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import CopyNeeded, Refused, Unsupported
from producers import LEGACY, TENSOR, USED, Speaks, Tensor, empty_capsule, name_of

NUMBERS = [
    np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)
] + [np.dtype(f"f{size}") for size in (2, 4, 8)]


def data_of(array):
    """Address of the innermost values."""
    return array.buffers[-1].ptr


def values_of(array):
    return pa.array(array).to_pylist()


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numpy_numbers(dtype):
    data = np.array([1, 2, 3], dtype)
    array = bowstring.array(data, copy=False)
    assert array.source == "__dlpack__"
    assert data_of(array) == data.ctypes.data
    assert pa.array(array).equals(pa.array(data))


def test_numpy_dimensions():
    data = np.arange(24, dtype="i4").reshape(2, 3, 4)
    array = bowstring.array(data, copy=False)
    assert (str(array.type), data_of(array)) == ("fixed_size_list<fixed_size_list<int32, 4>, 3>", data.ctypes.data)
    assert values_of(array) == data.tolist()
    assert values_of(bowstring.array(data[1])) == data[1].tolist()
    assert data_of(bowstring.array(data[1], copy=False)) == data[1].ctypes.data
    assert len(bowstring.array(np.zeros((0, 3)))) == 0
    assert values_of(bowstring.array(np.array(5))) == [5]


@pytest.mark.parametrize(
    "shown", [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: np.broadcast_to(a[0], (3, 4))]
)
def test_strides_need_a_copy(shown):
    data = shown(np.arange(8).reshape(2, 4))
    with pytest.raises(CopyNeeded, match="__dlpack__: expected strides .*, or a copy, found") as caught:
        bowstring.array(data, copy=False, via="__dlpack__")
    assert isinstance(caught.value, BufferError)
    assert values_of(bowstring.array(data)) == data.tolist()


def test_numpy_stays_as_long_as_it_is_used():
    data = np.arange(3)
    view = data.ctypes.data
    array = bowstring.array(data)
    buffer = array.buffer(1)
    del data, array
    gc.collect()
    assert buffer.ptr == view
    assert np.frombuffer(buffer, "i8").tolist() == [0, 1, 2]


def test_read_only_numpy():
    data = np.arange(3)
    data.flags.writeable = False
    assert data_of(bowstring.array(data, copy=False)) == data.ctypes.data


def test_booleans():
    data = np.array([True, False, True])
    array = bowstring.array(data, copy=False)
    assert array.type.metadata[b"ARROW:extension:name"] == b"arrow.bool8"
    assert data_of(array) == data.ctypes.data
    assert values_of(array) == [True, False, True]
    bits = bowstring.array(data, "bool")
    assert (str(bits.type), values_of(bits)) == ("bool", [True, False, True])
    with pytest.raises(CopyNeeded, match="expected a copy to make bits of bytes"):
        bowstring.array(data, "bool", copy=False)


def test_types_on_top_of_numbers():
    data = np.array([1, 2])
    array = bowstring.array(data, "timestamp(us)", copy=False)
    assert (str(array.type), data_of(array)) == ("timestamp(us)", data.ctypes.data)
    with pytest.raises(Unsupported, match="expected elements of i, found type code 0, 64 bits"):
        bowstring.array(data, "int32", via="__dlpack__")


@pytest.mark.parametrize("name", [TENSOR, LEGACY])
def test_one_deletion(name):
    made = Tensor(name=name)
    array = bowstring.array(made, copy=False)
    assert (array.source, data_of(array), name_of(made.last)) == (
        "__dlpack__", made.values.buffer_info()[0], USED[name]
    )
    buffer = array.buffer(1)
    made.last = None
    del array
    gc.collect()
    assert (made.deleted, made.dropped) == (0, 0)
    del buffer
    gc.collect()
    assert (made.deleted, made.dropped) == (1, 0)


def test_a_tensor_without_a_deleter():
    made = Tensor(no_deleter=True)
    assert values_of(bowstring.array(made)) == [1, 2, 3]


def test_a_legacy_tensor_without_strides():
    made = Tensor([1, 2, 3, 4], shape=(2, 2), name=LEGACY, no_strides=True)
    assert values_of(bowstring.array(made, copy=False)) == [[1, 2], [3, 4]]


def test_a_copy_lets_the_tensor_go():
    made = Tensor(strides=(-1,), data=None)
    made.struct.tensor.data += 8
    array = bowstring.array(made)
    assert values_of(array) == [3, 2, 1]
    assert made.deleted == 1
    made = Tensor()
    array = bowstring.array(made, copy=True)
    assert (made.deleted, values_of(array)) == (1, [1, 2, 3])


@pytest.mark.parametrize("name", [TENSOR, LEGACY])
@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"dtype": (5, 32, 1)}, Unsupported),
        ({"dtype": (0, 32, 4)}, Unsupported),
        ({"shape": (-1,)}, bowstring.InvalidData),
        ({"data": 0}, bowstring.InvalidData),
        ({"device": (77, 0)}, bowstring.BowstringError),
    ],
)
def test_refusals_leave_the_capsule_alone(name, members, error):
    made = Tensor(name=name, **members)
    with pytest.raises(error):
        bowstring.array(made)
    assert (name_of(made.last), made.deleted) == (name, 0)
    made.last = None
    gc.collect()
    assert (made.dropped, made.deleted) == (1, 1)


@pytest.mark.parametrize("name", [TENSOR, LEGACY])
def test_a_refused_copy_leaves_the_capsule_alone(name):
    made = Tensor([1, 2, 3, 4], shape=(2, 2), strides=(1, 2), name=name)
    with pytest.raises(CopyNeeded):
        bowstring.array(made, copy=False)
    assert (name_of(made.last), made.deleted) == (name, 0)
    assert values_of(bowstring.array(made)) == [[1, 3], [2, 4]]


def test_another_major_version():
    made = Tensor(version=(2, 0))
    # Nothing else of it may be read.
    made.struct.tensor.ndim = 1 << 30
    with pytest.raises(Unsupported, match="expected a tensor of DLPack 1, found one of DLPack 2"):
        bowstring.array(made)
    assert (name_of(made.last), made.deleted) == (TENSOR, 0)
    made.last = None
    gc.collect()
    assert made.deleted == 1


def test_a_capsule_is_used_once():
    made = Tensor()
    capsule = made.capsule()
    producer = Speaks(__dlpack__=lambda self, **keywords: capsule, __dlpack_device__=lambda self: (1, 0))
    array = bowstring.array(producer)
    with pytest.raises(Refused, match="a capsule whose tensor was taken: 'used_dltensor_versioned'"):
        bowstring.array(producer)
    assert values_of(array) == [1, 2, 3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "expected a capsule from __dlpack__, found NoneType"),
        (
            empty_capsule(b"arrow_array"),
            "expected a capsule named 'dltensor_versioned' or 'dltensor', found 'arrow_array'"
        ),
    ],
)
def test_no_tensors(given, message):
    with pytest.raises(Refused, match=message):
        bowstring.array(Speaks(__dlpack__=lambda self, **keywords: given, __dlpack_device__=lambda self: (1, 0)))


# What producers are asked.


def test_a_producer_is_asked_for_versions():
    made = Tensor()
    bowstring.array(made)
    bowstring.array(made, copy=False)
    bowstring.array(made, copy=True)
    assert made.asked == [{"max_version": (1, 3)}, {"max_version": (1, 3), "copy": False}, {"max_version": (1, 3)}]


@pytest.mark.parametrize("copy", [None, False])
def test_older_producers(copy):
    asked = []
    made = Tensor(name=LEGACY)

    def with_stream(self, stream=None):
        asked.append(stream)
        return made.capsule()

    def without_keywords(self):
        asked.append("nothing")
        return made.capsule()

    for method in (with_stream, without_keywords):
        producer = Speaks(__dlpack__=method, __dlpack_device__=lambda self: (1, 0))
        assert values_of(bowstring.array(producer, copy=copy)) == [1, 2, 3]
    assert asked == [None, "nothing"]


def test_a_producer_that_knows_versions_but_no_copies():
    asked = []
    made = Tensor()

    def method(self, *, stream=None, max_version=None):
        asked.append(max_version)
        return made.capsule()

    bowstring.array(Speaks(__dlpack__=method, __dlpack_device__=lambda self: (1, 0)), copy=False)
    assert asked == [(1, 3)]


def test_a_producer_without_a_device():
    made = Tensor()
    assert values_of(bowstring.array(Speaks(__dlpack__=lambda self, **keywords: made.capsule()))) == [1, 2, 3]


def test_a_producer_that_copied():
    made = Tensor(flags=2)
    with pytest.raises(CopyNeeded, match="found a copy of it"):
        bowstring.array(made, copy=False)
    assert (name_of(made.last), made.deleted) == (TENSOR, 0)
    assert values_of(bowstring.array(made)) == [1, 2, 3]


def test_exceptions_of_a_producer():
    def method(self, **keywords):
        raise BufferError("not today")

    with pytest.raises(Refused, match="__dlpack__: BufferError: not today") as caught:
        bowstring.array(Speaks(__dlpack__=method, __dlpack_device__=lambda self: (1, 0)))
    assert not isinstance(caught.value, BufferError)
    with pytest.raises(BufferError, match="not today"):
        bowstring.array(Speaks(__dlpack__=method, __dlpack_device__=lambda self: (1, 0)), copy=False)


def test_a_device_that_nobody_here_knows():
    """The producer is given the queue; there is nobody to record an event, and the memory is not looked at."""
    made = Tensor(device=(10, 1), data=1 << 44)
    array = bowstring.array(made)
    assert (str(array.device), data_of(array), array.sync_event) == ("rocm:1", 1 << 44, 0)
    assert made.asked == [{"max_version": (1, 3)}]
    unordered = bowstring.array(made, stream=-1)
    assert (made.asked[-1]["stream"], unordered.sync_event) == (-1, 0)
    with pytest.raises(Unsupported):
        bowstring.array(made, stream=1234)
    assert made.asked[-1]["stream"] == 1234


# NumPy's array interface.


def test_array_interface():
    data = np.arange(6, dtype="u2").reshape(2, 3)
    data.flags.writeable = False
    array = bowstring.array(data, via="__array_interface__", copy=False)
    assert (array.source, data_of(array), values_of(array)) == ("__array_interface__", data.ctypes.data, data.tolist())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", "Mm")
def test_times(kind, unit):
    data = np.array([1, -2, 3], f"{kind}8[{unit}]")
    array = bowstring.array(data, copy=False)
    assert str(array.type) == f"{'timestamp' if kind == 'M' else 'duration'}({unit})"
    assert data_of(array) == data.ctypes.data
    assert pa.array(array).equals(pa.array(data))
    data[1] = "NaT"
    with pytest.raises(CopyNeeded, match="found NaT at row 1"):
        bowstring.array(data, copy=False)
    array = bowstring.array(data)
    assert (array.null_count, data_of(array)) == (1, data.ctypes.data)
    assert pa.array(array).equals(pa.array(data))
    strided = bowstring.array(data[::-2])
    assert values_of(strided) == pa.array(data[::-2]).to_pylist()


def test_a_time_zone_is_a_schemas_word():
    data = np.array(["2020-01-01"], "M8[us]")
    array = bowstring.array(data, 'timestamp(us, "Europe/Paris")')
    assert pa.array(array).type == pa.timestamp("us", "Europe/Paris")


@pytest.mark.parametrize("unit", ["D", "h", "Y", "25us"])
def test_units_that_arrow_has_not(unit):
    with pytest.raises(Refused, match="expected times in s, ms, us or ns"):
        bowstring.array(np.array([1], f"m8[{unit}]"))


def test_bytes():
    data = np.array([b"ab", b"c", b""])
    array = bowstring.array(data, copy=False)
    assert (str(array.type), data_of(array)) == ("fixed_size_binary(2)", data.ctypes.data)
    assert values_of(array) == [b"ab", b"c\0", b"\0\0"]
    assert values_of(bowstring.array(data[::-1])) == [b"\0\0", b"c\0", b"ab"]
    with pytest.raises(CopyNeeded, match="one behind the other"):
        bowstring.array(data[::2], copy=False)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.array([1], ">i4"), "byte order"),
        (np.array([(1, 2.0)], "i4,f8"), "structured"),
        (np.array(["a"]), "UTF-32"),
        (np.array([object()]), "references to Python objects"),
        (np.array([1 + 2j]), "expected elements that Arrow has"),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_what_arrow_has_not(data, message):
    with pytest.raises(TypeError, match=message):
        bowstring.array(data)


def test_masked_arrays():
    data = np.ma.array([1, 2, 3], mask=[False, True, False])
    with pytest.raises(Refused, match="found a masked array"):
        bowstring.array(data)
    assert values_of(bowstring.array(np.ma.array([1, 2]))) == [1, 2]


class Interface:
    """An object with an array interface and nothing else."""

    def __init__(self, of, **changes):
        self.of = of
        self.__array_interface__ = {**of.__array_interface__, **changes}


def test_masks():
    data, mask = np.arange(10), np.arange(10) % 3 > 0
    array = bowstring.array(Interface(data, mask=mask))
    assert data_of(array) == data.ctypes.data
    assert values_of(array) == [value if valid else None for value, valid in zip(data.tolist(), mask)]
    with pytest.raises(CopyNeeded, match="expected a mask of bits"):
        bowstring.array(Interface(data, mask=mask), copy=False)
    with pytest.raises(bowstring.InvalidData, match="expected a mask of 10 rows"):
        bowstring.array(Interface(data, mask=mask[1:]))
    bits = np.packbits(mask, bitorder="little")
    array = bowstring.array(Interface(data, mask=Interface(bits, shape=(10,), typestr="|t1", strides=None)), copy=False)
    assert [view.ptr for view in array.buffers] == [bits.ctypes.data, data.ctypes.data]
    assert array.null_count == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": (-1,)}, "lengths of 0 or more"),
        ({"typestr": "i4"}, "expected a typestr"),
        ({"typestr": "<ix"}, "expected a typestr"),
        ({"typestr": "<f16"}, "expected elements that Arrow has"),
        ({"data": (0, False)}, "expected an address"),
        ({"strides": (3,)}, "expected strides of whole elements"),
        ({"strides": (8, 8)}, "expected 1 strides, found 2"),
        ({"shape": None}, "expected a shape"),
    ],
)
def test_interfaces_that_are_wrong(changes, message):
    with pytest.raises(bowstring.BowstringError, match=message):
        bowstring.array(Interface(np.arange(3), **changes))


def test_an_interface_keeps_its_object():
    made = Interface(np.arange(3))
    memory = made.of.ctypes.data
    array = bowstring.array(made)
    assert data_of(array) == memory
    alive = weakref.ref(made)
    del made
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    assert alive() is None
