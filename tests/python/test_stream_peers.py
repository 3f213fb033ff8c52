"""Streams handed between bowstring, pyarrow and nanoarrow's Python package, by capsules: there and back, and on."""

import nanoarrow as na
import pyarrow as pa
import pytest

import all_types
import streams
import support
from bowstring_ctypes import BowstringError
from capsules import StreamProducer, taken_stream
from test_golden import is_equal
from test_nanoarrow import CRASHES
from test_stream_collect import collected
from test_stream_export import selected, validated

STREAMS = {name: batches for name, batches in all_types.streams() if name not in CRASHES}


def reader_of(batches):
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches)


def through_pyarrow(stream):
    """Out to pyarrow, and in again."""
    return taken_stream(pa.RecordBatchReader.from_stream(StreamProducer(stream)).__arrow_c_stream__())


def through_nanoarrow(stream):
    """Out to nanoarrow, and in again."""
    return taken_stream(na.c_array_stream(StreamProducer(stream)).__arrow_c_stream__())


def test_there_and_back():
    n = 0
    for name, batches in STREAMS.items():
        stream = taken_stream(reader_of(batches).__arrow_c_stream__())
        # nanoarrow's own views of some of these crash, but it hands them on unread.
        for step in (through_pyarrow, through_nanoarrow, validated, through_nanoarrow, through_pyarrow):
            stream = step(stream)
        found = [streams.as_pyarrow(handle) for handle in streams.drained(stream)]
        streams.release(stream)
        assert len(found) == len(batches) and all(map(is_equal, found, batches)), name
        n += len(found)
    support.figure("batches through both peers' streams", n, 250)


def test_pyarrow_reads_tables():
    for name, batches in STREAMS.items():
        table = pa.table(StreamProducer(taken_stream(reader_of(batches).__arrow_c_stream__())))
        expected = pa.Table.from_batches(batches)
        assert table.schema.equals(expected.schema, check_metadata=True), name
        assert table.num_rows == expected.num_rows
        assert [column.num_chunks for column in table.columns] == [column.num_chunks for column in expected.columns]


def test_nanoarrow_reads_values():
    batches = [pa.record_batch({"a": [1, None], "s": ["x", "y"]}), pa.record_batch({"a": [3], "s": pa.nulls(1, pa.string())})]
    stream = streams.from_arrays(batches)
    read = na.ArrayStream(StreamProducer(selected(stream, 1, 0))).read_all()
    assert list(read.iter_py()) == [{"s": "x", "a": 1}, {"s": "y", "a": None}, {"s": None, "a": 3}]


def test_chunks_of_pyarrow_become_one_array():
    chunks = pa.chunked_array([["a", "b"], [], ["c", None]])
    one = collected(taken_stream(chunks.__arrow_c_stream__()))
    assert streams.as_pyarrow(one, pa.Array).to_pylist() == ["a", "b", "c", None]
    nothing = pa.chunked_array([], pa.list_(pa.int8()))
    one = collected(taken_stream(nothing.__arrow_c_stream__()))
    found = streams.as_pyarrow(one, pa.Array)
    assert found.type == nothing.type and len(found) == 0


def test_errors_are_told_across():
    def breaks():
        yield pa.record_batch({"a": [1]})
        raise ValueError("the disk is full")

    schema = pa.schema({"a": pa.int64()})
    stream = taken_stream(pa.RecordBatchReader.from_batches(schema, breaks()).__arrow_c_stream__())
    support.release(streams.next_of(stream))
    with pytest.raises(BowstringError, match="the disk is full") as caught:
        streams.next_of(stream)
    assert caught.value.batch == 1
    streams.release(stream)
    # And on, to pyarrow and to nanoarrow.
    stream = taken_stream(pa.RecordBatchReader.from_batches(schema, breaks()).__arrow_c_stream__())
    with pytest.raises(pa.ArrowInvalid, match="CALLBACK_ERROR in batch 1: .*the disk is full"):
        pa.RecordBatchReader.from_stream(StreamProducer(stream)).read_all()
    stream = taken_stream(pa.RecordBatchReader.from_batches(schema, breaks()).__arrow_c_stream__())
    with pytest.raises(Exception, match="the disk is full"):
        na.ArrayStream(StreamProducer(stream)).read_all()


def test_a_consumer_that_breaks_off():
    batches = [pa.record_batch({"a": [i]}) for i in range(5)]
    reader = pa.RecordBatchReader.from_stream(StreamProducer(streams.from_arrays(batches)))
    assert reader.read_next_batch() == batches[0]
    del reader
    # Nobody asked at all.
    StreamProducer(streams.from_arrays(batches)).__arrow_c_stream__()
