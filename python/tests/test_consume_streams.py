"""`bowstring.stream`: of readers, tables, arrays, lists and iterators."""

import gc

import bowstring
import nanoarrow
import numpy as np
import polars
import pyarrow as pa
import pytest
from bowstring import Refused, Unsupported
from producers import Ints, Speaks, refuses

TABLE = pa.table({"a": pa.chunked_array([[1, 2], [3]]), "s": pa.chunked_array([["x", None], ["z"]])})


def batches(stream):
    return [pa.array(batch).to_pylist() for batch in stream]


def of(made):
    return Speaks(__arrow_c_array__=lambda self, requested_schema=None: (made.schema(), made.host_capsule()))


@pytest.mark.parametrize(
    ("data", "source", "values"),
    [
        (pa.chunked_array([[1], [2, 3]]), "__arrow_c_stream__", [[1], [2, 3]]),
        (pa.array([1, 2]), "arrays", [[1, 2]]),
        (polars.Series([1, 2]), "__arrow_c_stream__", [[1, 2]]),
        (nanoarrow.ArrayStream([1, 2], nanoarrow.int32()), "__arrow_c_stream__", [[1, 2]]),
        (nanoarrow.Array([1, 2], nanoarrow.int32()), "__arrow_c_stream__", [[1, 2]]),
        (np.arange(3), "arrays", [[0, 1, 2]]),
        ([pa.array([1]), pa.array([2, 3])], "arrays", [[1], [2, 3]]),
        ((np.arange(2), pa.array([2])), "arrays", [[0, 1], [2]]),
        ([1, 2, None], "arrays", [[1, 2, None]]),
        ([[1, 2], [3]], "arrays", [[1, 2], [3]]),
        (iter([pa.array([1]), [2, 3]]), "iterator", [[1], [2, 3]]),
        ((np.arange(n, dtype="i8") for n in (1, 2)), "iterator", [[0], [0, 1]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sources(data, source, values):
    stream = bowstring.stream(data)
    assert stream.source == source
    assert batches(stream) == values
    assert stream.read() is None


def test_tables_and_readers():
    for data in (TABLE, TABLE.to_reader()):
        stream = bowstring.stream(data)
        assert pa.schema(stream) == TABLE.schema
        assert pa.table(stream).equals(TABLE)
    batch = TABLE.to_batches()[0]
    first = bowstring.stream(TABLE).read()
    assert first["a"].buffer(1).ptr == batch["a"].buffers()[1].address


def test_streams_are_given_back():
    stream = bowstring.stream(TABLE)
    assert bowstring.stream(stream) is stream
    assert bowstring.stream(bowstring.stream(TABLE), TABLE.schema).type == bowstring.Type(TABLE.schema)


def test_the_type():
    asked = bowstring.stream(pa.chunked_array([[1], [2]]), "int8")
    assert (str(asked.type), sum(batches(asked), [])) == ("int8", [1, 2])
    for data in ([pa.array([1], pa.int64())], iter([])):
        if isinstance(data, list):
            assert str(bowstring.stream(data, "int64").type) == "int64"
        else:
            empty = bowstring.stream(data, "utf8")
            assert (str(empty.type), batches(empty)) == ("utf8", [])
    empty = bowstring.stream([], "utf8")
    assert (str(empty.type), batches(empty)) == ("utf8", [])
    with pytest.raises(Unsupported, match="expected batches, or the type of none"):
        bowstring.stream(iter([]))
    with pytest.raises(bowstring.BowstringError):
        bowstring.stream([])
    with pytest.raises(Unsupported, match="expected 'int8', found 'int64', which its producer has not cast"):
        bowstring.stream(bowstring.stream(pa.chunked_array([[1], [2]])), "int8")
    views = bowstring.stream(bowstring.stream(pa.chunked_array([["a"], ["b"]])), "utf8_view")
    assert (str(views.type), batches(views)) == ("utf8_view", [["a"], ["b"]])


def test_names_and_nullability_are_the_streams():
    batch = pa.record_batch([pa.array([1])], schema=pa.schema([pa.field("a", pa.int64(), False)]))
    for data in ([batch], iter([batch])):
        stream = bowstring.stream(data, "struct<b: int64>")
        assert pa.table(stream).to_pylist() == [{"b": 1}]
    narrow = "struct<a: int64 not null>"
    # PyArrow would cast.
    array = bowstring.array(pa.record_batch({"a": [1]}))
    with pytest.raises(Unsupported, match="which may have nulls elsewhere"):
        bowstring.stream([array], narrow)
    with pytest.raises(Unsupported, match="which may have nulls elsewhere"):
        bowstring.stream(iter([array]), narrow).read()


def test_an_iterator_is_asked_when_the_stream_is():
    asked = []

    def give():
        for number in range(3):
            asked.append(number)
            yield pa.array([number])

    stream = bowstring.stream(give(), "int64")
    assert asked == []
    assert pa.array(stream.read()).to_pylist() == [0]
    assert asked == [0]
    assert batches(stream) == [[1], [2]]
    told = bowstring.stream(give())
    assert asked == [0, 1, 2, 0]
    assert batches(told) == [[0], [1], [2]]


def test_an_iterator_goes_with_its_stream():
    made = [Ints([1]), Ints([2])]
    generator = (of(one) for one in made)
    stream = bowstring.stream(generator, "int64")
    first = stream.read()
    assert [one.released for one in made] == [0, 0]
    del stream
    gc.collect()
    assert generator.gi_frame is not None
    del first
    gc.collect()
    assert [(one.exported, one.released) for one in made] == [(1, 1), (0, 0)]


class Failure(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (Failure, bowstring.CallbackError, "Failure: no more"), (NotImplementedError, Unsupported, "no more"),
        (MemoryError, bowstring.OutOfMemory, "no more"),
        (KeyboardInterrupt, bowstring.CallbackError, "KeyboardInterrupt: no more"),
    ],
)
def test_an_iterator_that_raises(error, kind, message):
    def give(first):
        if first is not None:
            yield first
        raise error("no more")

    stream = bowstring.stream(give(pa.array([1])))
    assert pa.array(stream.read()).to_pylist() == [1]
    for _ in range(2):
        with pytest.raises(kind, match=message) as caught:
            stream.read()
        assert caught.value.batch == 1
    with pytest.raises((pa.ArrowException, OSError, MemoryError, NotImplementedError), match=message):
        pa.RecordBatchReader.from_stream(bowstring.stream(give(None), "struct<a: int64>")).read_all()


def test_a_batch_of_another_type():
    stream = bowstring.stream(iter([pa.array([1]), pa.array(["a"])]))
    stream.read()
    with pytest.raises(Unsupported, match="expected 'int64', found 'utf8'"):
        stream.read()
    with pytest.raises(bowstring.BowstringError):
        bowstring.stream([pa.array([1]), pa.array(["a"])])


def test_an_iterator_asked_by_a_thread_of_another_library():
    """PyArrow's readers run on threads of their own; the iterator has the interpreter's lock there."""
    stream = bowstring.stream((pa.record_batch({"a": [n]}) for n in range(50)), "struct<a: int64>")
    from pyarrow import dataset

    reader = pa.RecordBatchReader.from_stream(stream)
    assert dataset.Scanner.from_batches(reader).to_table()["a"].to_pylist() == list(range(50))


def test_one_release():
    made = [Ints([1]), Ints([2])]
    stream = bowstring.stream([of(one) for one in made])
    first = stream.read()
    stream.close()
    gc.collect()
    assert [one.released for one in made] == [0, 1]
    del first
    gc.collect()
    assert [one.released for one in made] == [1, 1]
    with pytest.raises(ValueError, match="closed"):
        stream.read()


def test_refusals():
    with pytest.raises(TypeError, match="expected an object with"):
        bowstring.stream(object())
    producer = Speaks(
        __arrow_c_device_stream__=refuses(RuntimeError("one")), __arrow_c_stream__=refuses(KeyError("two"))
    )
    with pytest.raises(
        Refused, match="__arrow_c_device_stream__: RuntimeError: one; __arrow_c_stream__: KeyError: 'two'"
    ):
        bowstring.stream(producer)
    assert len(producer.calls) == 2
    made = Ints()
    producer = Speaks(
        __arrow_c_stream__=refuses(RuntimeError("one")),
        __arrow_c_array__=lambda self, requested_schema=None: (made.schema(), made.host_capsule()),
    )
    assert batches(bowstring.stream(producer)) == [[1, 2, 3]]
    with pytest.raises(ValueError, match="expected None or a queue"):
        bowstring.stream([1], stream="host")


def test_a_capsule_is_used_once():
    capsule = pa.chunked_array([[1]]).__arrow_c_stream__()
    producer = Speaks(__arrow_c_stream__=lambda self, requested_schema=None: capsule)
    first = bowstring.stream(producer)
    with pytest.raises((bowstring.Released, TypeError)):
        bowstring.stream(producer)
    assert batches(first) == [[1]]


def test_memory_of_a_device():
    made = Ints(device=(10, 3), data=1 << 45)
    device = Speaks(__arrow_c_device_array__=lambda self: (made.schema(), made.device_capsule()))
    stream = bowstring.stream((device for _ in range(2)))
    assert str(stream.device).startswith("rocm")
    assert [batch.buffer(1).ptr for batch in stream] == [1 << 45] * 2
