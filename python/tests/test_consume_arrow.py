"""`bowstring.array` from Arrow's capsules: of other libraries, and of producers that do what they should not."""

import gc
import sys

import arro3.core
import bowstring
import nanoarrow
import pandas
import polars
import producers
import pyarrow as pa
import pytest
from bowstring import CopyNeeded, InvalidData, Refused, Unsupported
from producers import Ints, Speaks, refuses

DEVICE, DEVICE_STREAM, HOST, STREAM = bowstring.PROTOCOLS[:4]


def addresses(array):
    return [view.ptr for view in array.buffers]


def arrow_addresses(array):
    found = [buffer.address if buffer else 0 for buffer in array.buffers()]
    return found + arrow_addresses(array.dictionary) if pa.types.is_dictionary(array.type) else found


@pytest.mark.parametrize(
    "data",
    [
        pa.array([1, None, 3]), pa.array(["a", None, "ccc"]), pa.array([[1], None, [2, 3]]), pa.array([True, None]),
        pa.array([{"a": 1, "b": "x"}, None]), pa.array(["a", "b", "a"]).dictionary_encode(), pa.array([], pa.int8()),
        pa.array([1.5, 2.5]).slice(1), pa.nulls(3),
    ],
    ids=lambda data: str(data.type),
)
def test_pyarrow_array(data):
    array = bowstring.array(data)
    assert array.source == DEVICE
    assert pa.array(array).equals(data)
    assert array.offset == data.offset
    shown = [address for address in addresses(array) if address]
    assert set(shown) <= set(arrow_addresses(data)) | {buffer.ptr for buffer in array.buffers if buffer.bufsize == 0}


def test_addresses_of_a_batch():
    batch = pa.record_batch({"a": [1, 2], "b": ["x", "y"]})
    array = bowstring.array(batch)
    assert addresses(array["a"])[1] == arrow_addresses(batch["a"])[1]
    assert addresses(array["b"])[1:] == arrow_addresses(batch["b"])[1:]
    assert pa.record_batch(array).equals(batch)


@pytest.mark.parametrize(
    ("data", "source", "values"),
    [
        (polars.Series([1, None]), STREAM, [1, None]),
        (polars.DataFrame({"a": [1]}), STREAM, [{"a": 1}]),
        (pandas.DataFrame({"a": [1, 2]}), STREAM, [{"a": 1}, {"a": 2}]),
        (pandas.Series(["x", None]), STREAM, ["x", None]),
        (nanoarrow.Array([1, 2], nanoarrow.int32()), HOST, [1, 2]),
        (nanoarrow.c_array([1, 2], nanoarrow.int32()), HOST, [1, 2]),
        (arro3.core.Array([1, 2], arro3.core.DataType.int8()), HOST, [1, 2]),
        (pa.table({"a": [1]}), STREAM, [{"a": 1}]),
        (pa.chunked_array([[1, 2]]), STREAM, [1, 2]),
    ],
    ids=lambda value: type(value).__module__ + "." + type(value).__name__,
)
def test_libraries(data, source, values):
    array = bowstring.array(data)
    assert array.source == source
    assert pa.array(array).to_pylist() == values


def test_one_chunk_of_a_table_is_not_copied():
    table = pa.table({"a": [1, 2]})
    assert addresses(bowstring.array(table, copy=False)["a"])[1] == arrow_addresses(table["a"].chunk(0))[1]


def test_several_chunks_need_a_copy():
    data = pa.chunked_array([[1], [2, None]])
    assert pa.array(bowstring.array(data)).to_pylist() == [1, 2, None]
    with pytest.raises(CopyNeeded, match="found several.*bowstring.stream") as caught:
        bowstring.array(data, copy=False)
    assert isinstance(caught.value, BufferError)
    assert len(bowstring.array(pa.chunked_array([], pa.int8()), copy=False)) == 0


@pytest.mark.parametrize("protocol", [DEVICE, HOST])
def test_one_release(protocol):
    made = Ints()
    give = made.device_capsule if protocol == DEVICE else made.host_capsule
    producer = Speaks(**{protocol: lambda self, requested_schema=None: (made.schema(), give())})
    array = bowstring.array(producer)
    child, buffer = array.slice(1), array.buffer(1)
    assert (array.source, buffer.ptr) == (protocol, made.data)
    gc.collect()
    assert (made.exported, made.released, made.schemas_released) == (1, 0, 1)
    del array, child
    gc.collect()
    assert made.released == 0
    del buffer
    gc.collect()
    # The schema stays in its capsule, and is let go with it.
    assert (made.released, made.dropped) == (1, [producers.SCHEMA])


def test_capsules_are_used_once():
    made = Ints()
    pair = (made.schema(), made.device_capsule())
    producer = Speaks(__arrow_c_device_array__=lambda self: pair)
    first = bowstring.array(producer)
    with pytest.raises(bowstring.Released):
        bowstring.array(producer)
    assert pa.array(first).to_pylist() == [1, 2, 3]
    del first, pair, producer
    gc.collect()
    assert (made.exported, made.released) == (1, 1)


def test_a_refusal_leaves_the_capsules_alone():
    made = Ints(n_buffers=3)
    pair = (made.schema(), made.device_capsule())
    with pytest.raises(InvalidData, match="A3: "):
        bowstring.array(Speaks(__arrow_c_device_array__=lambda self: pair))
    assert (made.released, made.schemas_released) == (0, 0)
    del pair
    gc.collect()
    assert sorted(made.dropped) == [producers.DEVICE_ARRAY, producers.SCHEMA]
    assert (made.released, made.schemas_released) == (1, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "expected a pair of capsules, found NoneType"),
        ((1, 2), "expected a capsule"),
        (
            (producers.empty_capsule(b"arrow_array"),) * 2,
            "expected a capsule named arrow_schema, found one named arrow_array"
        ),
        (
            (Ints().schema(),) * 2,
            "expected a capsule named arrow_device_array or arrow_array, found one named arrow_schema"
        ),
        ((Ints().schema(),), "expected a pair of capsules, found tuple"),
    ],
)
@pytest.mark.parametrize("protocol", [DEVICE, HOST])
def test_wrong_capsules(protocol, given, message):
    with pytest.raises((TypeError, ValueError), match=f"{protocol}: .*{message}"):
        bowstring.array(Speaks(**{protocol: lambda self, requested_schema=None: given}))


@pytest.mark.parametrize("protocol", [DEVICE_STREAM, STREAM])
@pytest.mark.parametrize("given", [None, producers.empty_capsule(b"arrow_array")])
def test_wrong_streams(protocol, given):
    with pytest.raises(Refused, match=f"{protocol}: .*expected a capsule"):
        bowstring.array(Speaks(**{protocol: lambda self, requested_schema=None: given}))


def test_refusals_make_way_and_are_told():
    made = Ints()
    producer = Speaks(
        __arrow_c_device_array__=refuses(RuntimeError("one")), __arrow_c_device_stream__=refuses(KeyError("two")),
        __arrow_c_array__=lambda self, requested_schema=None: (made.schema(), made.host_capsule()),
    )
    assert bowstring.array(producer).source == HOST
    assert len(producer.calls) == 2

    producer = Speaks(
        __arrow_c_device_array__=refuses(RuntimeError("one")), __arrow_c_array__=refuses(NotImplementedError("two")),
        __dlpack__=refuses(BufferError("three")), __array_interface__={"shape": "no"},
    )
    with pytest.raises(TypeError) as caught:
        bowstring.array(producer)
    text = str(caught.value)
    told = [
        DEVICE + ": RuntimeError: one", HOST + ": NotImplementedError: two", "__dlpack__: BufferError: three",
        "__array_interface__: "
    ]
    places = [text.index(part) for part in told]
    assert places == sorted(places)
    # The producer's own exception is there as well, and no method was asked twice.
    assert repr(caught.value.__cause__) == repr(RuntimeError("one"))
    assert len(producer.calls) == 3


def test_a_property_that_raises_is_a_refusal():
    class Producer:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("needs a gradient")

        def __arrow_array__(self):
            return pa.array([1])

    assert bowstring.array(Producer()).source == "__arrow_array__"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_what_is_no_refusal(error):
    with pytest.raises(error):
        bowstring.array(Speaks(__arrow_c_device_array__=refuses(error()), __arrow_c_array__=refuses(ValueError())))


def test_no_protocol():
    for nothing in (object(), 1, "text", None, pa.Array, {"a": 1}):
        with pytest.raises(TypeError, match="expected an object with __arrow_c_device_array__ or"):
            bowstring.array(nothing)


def test_one_protocol():
    data = pa.array([1, 2])
    for protocol in (DEVICE, HOST):
        assert bowstring.array(data, via=protocol).source == protocol
    with pytest.raises(TypeError, match="expected an object with __dataframe__, found Int64Array"):
        bowstring.array(data, via="__dataframe__")
    with pytest.raises(ValueError, match="expected one of __arrow_c_device_array__, "):
        bowstring.array(data, via="arrow")
    producer = Speaks(__arrow_c_device_array__=refuses(RuntimeError("no")), __arrow_c_array__=data.__arrow_c_array__)
    with pytest.raises(Refused, match="no"):
        bowstring.array(producer, via=DEVICE)


# Types.


def test_the_type_is_asked_for():
    asked = []

    class Producer:
        def __arrow_c_array__(self, requested_schema=None):
            asked.append(bowstring.Type(Speaks(__arrow_c_schema__=lambda self: requested_schema)))
            return pa.array([1], pa.int32()).__arrow_c_array__()

    assert str(bowstring.array(Producer(), "int32").type) == "int32"
    with pytest.raises(Unsupported, match="expected 'int8', found 'int32', which its producer has not cast"):
        bowstring.array(Producer(), "int8")
    assert list(map(str, asked)) == ["int32", "int8"]


def test_producers_cast():
    array = bowstring.array(pa.array([1, 2]), pa.int8())
    assert (str(array.type), pa.array(array).to_pylist()) == ("int8", [1, 2])


def test_names_metadata_and_nullability_are_best_effort():
    data = pa.record_batch({"a": [1]})
    array = bowstring.array(data, "struct<b: int64 not null>")
    assert (array.fields, array.source) == (["a"], DEVICE)
    assert array["a"].type.nullable


def test_views_and_offsets():
    data = pa.array(["a", None, "long enough to be outside"])
    views = bowstring.array(data, "utf8_view", via=HOST)
    assert str(views.type) == "utf8_view"
    assert pa.array(views).to_pylist() == data.to_pylist()
    back = bowstring.array(views, "utf8")
    assert pa.array(back).equals(data)
    with pytest.raises(Unsupported, match="expected 'utf8', found 'utf8_view'"):
        bowstring.array(views, "utf8", copy=False)


# Copies and own objects.


@pytest.mark.parametrize("data", [pa.array([1, None]), pa.array(["a", "b"]), pa.record_batch({"a": [[1], None]})])
def test_a_copy_shares_nothing(data):
    array = bowstring.array(data, copy=True)
    ours = {buffer.ptr for buffer in array.buffers if buffer.bufsize}
    assert ours
    assert not ours & {buffer.ptr for buffer in bowstring.array(data).buffers}
    assert pa.array(array).to_pylist() == data.to_pylist()


def test_a_copy_keeps_no_source():
    made = Ints()
    producer = Speaks(__arrow_c_array__=lambda self, requested_schema=None: (made.schema(), made.host_capsule()))
    array = bowstring.array(producer, copy=True)
    gc.collect()
    assert made.released == 1
    assert pa.array(array).to_pylist() == [1, 2, 3]


def test_own_arrays_are_taken_as_they_are():
    made = Ints()
    producer = Speaks(__arrow_c_array__=lambda self, requested_schema=None: (made.schema(), made.host_capsule()))
    array = bowstring.array(producer)
    again = bowstring.array(array)
    assert (again.source, addresses(again), made.exported) == (array.source, addresses(array), 1)
    assert addresses(bowstring.array(array, copy=True)) != addresses(array)
    del array
    gc.collect()
    assert made.released == 0
    del again
    gc.collect()
    assert made.released == 1


def test_own_streams_are_used_up():
    stream = bowstring.stream(pa.chunked_array([[1], [2]]))
    assert pa.array(bowstring.array(stream)).to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="closed or handed on"):
        stream.read()


def test_arrow_array():
    data = pa.array([1, 2])
    array = bowstring.array(Speaks(__arrow_array__=lambda self, type=None: data))
    assert (array.source, addresses(array)[1]) == ("__arrow_array__", arrow_addresses(data)[1])
    chunked = pa.chunked_array([[1], [2]])
    assert len(bowstring.array(Speaks(__arrow_array__=lambda self, type=None: chunked))) == 2
    for wrong in (None, [1], lambda self: self):
        producer = Speaks(__arrow_array__=wrong if callable(wrong) else lambda self, type=None, wrong=wrong: wrong)
        with pytest.raises(Refused, match="expected an array of Arrow"):
            bowstring.array(producer)


def test_device_memory_is_not_looked_at():
    made = Ints(device=(10, 3), data=1 << 45)
    array = bowstring.array(Speaks(__arrow_c_device_array__=lambda self: (made.schema(), made.device_capsule())))
    assert (str(array.device), array.buffer(1).ptr) == ("rocm:3", 1 << 45)


def test_queues_only():
    with pytest.raises(ValueError, match="expected None or a queue of the device, found 'host'"):
        bowstring.array([1], stream="host")


def test_references_do_not_pile_up():
    data = pa.record_batch({"a": [1, 2], "b": ["x", "y"]})
    bowstring.array(data)
    values = (data, None, Speaks)
    before, memory = [sys.getrefcount(value) for value in values], pa.total_allocated_bytes()
    for _ in range(300):
        bowstring.array(data)
        bowstring.array(data, copy=True)
        with pytest.raises(Refused):
            bowstring.array(Speaks(__arrow_c_array__=refuses(ValueError())))
    gc.collect()
    after = [sys.getrefcount(value) for value in values]
    assert all(abs(a - b) < 100 for a, b in zip(after, before)), (before, after)
    assert pa.total_allocated_bytes() == memory
