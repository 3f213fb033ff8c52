"""Streams of real files, through every path that a stream can take: what comes out is what went in."""

import io
from ctypes import addressof, byref

import pyarrow as pa
import pytest

import all_types
import streams
import support
from bowstring_ctypes import lib, out
from streams import Exported, Producer
from test_golden import golden_files, is_equal, read_stream
from test_stream_collect import is_same
from test_stream_export import selected, validated

GOLDEN_STREAMS, GOLDEN_BATCHES = 32, 1400
OWN_STREAMS, OWN_BATCHES = 75, 13500


def by_producer(batches, schema, host):
    """A stream of callbacks written for the test."""
    return Producer(batches, schema, host).imported()


def by_reader(batches, schema, host):
    """A stream of pyarrow's own."""
    struct = streams.STREAMS[host]()
    pa.RecordBatchReader.from_batches(schema, batches)._export_to_c(addressof(struct))
    return out("stream_import_host", byref(struct))


def by_arrays(batches, schema, _):
    """A stream of arrays that are there."""
    kind = support.type_from(schema)
    made = streams.from_arrays(batches, kind)
    lib.bowstring_type_release(kind)
    return made


def handles(stream):
    """One handle after the other."""
    found = [streams.as_pyarrow(handle) for handle in streams.drained(stream)]
    streams.release(stream)
    return found


def read_by_pyarrow(stream, host):
    """All batches, read by pyarrow from a struct of ours."""
    exported = Exported(stream, host)
    if host:
        with pa.RecordBatchReader._import_from_c(addressof(exported.struct)) as reader:
            return list(reader)
    # pyarrow has no reader for streams on devices, but one for their schemas and arrays.
    found = []
    while True:
        code, array = exported.next()
        assert code == 0, exported.text()
        if not array.array.release:
            exported.release()
            return found
        code, schema = exported.schema()
        assert code == 0
        found.append(support.to_pyarrow(array, schema))


def again(stream, host):
    """Out and in again."""
    exported = Exported(stream, host)
    return out("stream_import_host" if host else "stream_import", byref(exported.struct))


def all_columns(stream, schema):
    return selected(stream, *range(len(schema)))


MADE = [(by_producer, False), (by_producer, True), (by_reader, True), (by_arrays, False)]
READ = {
    "handles": lambda stream, _: handles(stream),
    "device": lambda stream, _: read_by_pyarrow(stream, False),
    "host": lambda stream, _: read_by_pyarrow(stream, True),
    "validated": lambda stream, _: handles(validated(stream)),
    "all columns, as a host stream": lambda stream, schema: read_by_pyarrow(all_columns(stream, schema), True),
    "there and back": lambda stream, _: handles(again(again(stream, False), True)),
}


def every_path(batches, schema):
    """Sends the batches every way, and returns how many came back."""
    n = 0
    for make, host in MADE:
        for name, read in READ.items():
            found = read(make(list(batches), schema, host), schema)
            assert len(found) == len(batches), name
            for one, expected in zip(found, batches):
                assert is_equal(one, expected), name
                n += 1
    whole = out("stream_collect", byref(by_producer(batches, schema, False)), None)
    is_same(streams.as_pyarrow(whole), pa.Table.from_batches(batches, schema))
    return n


@pytest.mark.skipif(not golden_files(), reason="skipped: no-golden: BOWSTRING_GOLDEN names no folder with cpp-21.0.0")
def test_golden_streams():
    n = 0
    for path in golden_files():
        with pa.ipc.open_stream(path.read_bytes()) as reader:
            schema, batches = reader.schema, list(reader)
        try:
            n += every_path(batches, schema)
        except Exception as error:
            error.add_note(f"in {path.name}")
            raise
    support.figure("golden streams through every path of streams", len(golden_files()), GOLDEN_STREAMS)
    support.figure("their batches", n, GOLDEN_BATCHES)


def test_own_streams():
    n = count = 0
    for name, batches in all_types.streams():
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        for some in (batches, read_stream(sink.getvalue())):
            try:
                n += every_path(some, batches[0].schema)
            except Exception as error:
                error.add_note(f"in the stream {name}")
                raise
        count += 1
    support.figure("own streams through every path of streams", count, OWN_STREAMS)
    support.figure("their batches", n, OWN_BATCHES)
