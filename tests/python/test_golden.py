"""Round trips of real files: pyarrow's batches are taken apart into single buffers and put together again.

The batches come from Arrow's public integration files, and from streams of every type that are written here. A batch
that comes back is equal, down to metadata, and stands on the very same memory.
"""

import ctypes
import io
import os
from ctypes import byref
from pathlib import Path

import pyarrow as pa
import pytest

import all_types
import bowstring_ctypes as bs
import support
from bowstring_ctypes import VALIDITY, VARIADIC_SIZES, call, lib, live_counts, out

# What a run must at least have done.
GOLDEN_STREAMS, GOLDEN_BATCHES, GOLDEN_BUFFERS = 32, 62, 6000
OWN_STREAMS, OWN_BATCHES, OWN_BUFFERS = 150, 580, 17500


class Done:
    """How much was compared."""

    def __init__(self):
        self.streams = self.batches = self.buffers = 0

    def state(self, what, streams, batches, buffers):
        support.figure(f"{what} streams", self.streams, streams)
        support.figure(f"{what} batches", self.batches, batches)
        support.figure(f"{what} buffers with the same address", self.buffers, buffers)


def is_equal(found, expected):
    """Equal values and metadata; values of floats that are no numbers count as equal to themselves."""
    support.validate(found)
    if not found.schema.equals(expected.schema, check_metadata=True):
        return False
    return found.equals(expected, check_metadata=True) or str(found.to_pylist()) == str(expected.to_pylist())


def same_addresses(found, original, infos, exempt_roles=()):
    """Compares buffer by buffer and returns how many had to be the same and were."""
    assert len(found) == len(original) == len(infos)
    compared = 0
    for k, (new, old, info) in enumerate(zip(found, original, infos)):
        if info.role in exempt_roles or (info.size_bytes == 0 and info.role != VALIDITY):
            continue
        assert new == old, f"buffer {k}, role {info.role}, {info.size_bytes} bytes: {old} became {new}"
        compared += old is not None
    return compared


def check_returned(array, schema, original, infos, expected):
    """pyarrow takes the structs, sees an equal batch, and gives out the addresses it was given."""
    compared = same_addresses(support.addresses(array.array), original, infos)
    batch = support.to_pyarrow(array, schema)
    assert not array.array.release and not schema.release
    assert is_equal(batch, expected)
    again, its_schema = support.from_pyarrow(batch)
    # pyarrow writes the sizes of variadic buffers anew each time, and leaves out bitmaps without a null.
    given_out = support.addresses(again.array)
    for k, info in enumerate(infos):
        if info.role == VALIDITY and given_out[k] is None:
            given_out[k] = original[k]
    same_addresses(given_out, original, infos, exempt_roles=(VARIADIC_SIZES,))
    lib.bowstring_device_array_release(byref(again))
    lib.bowstring_schema_release(byref(its_schema))
    return compared


def through_single_buffers(batch, expected):
    """Each buffer becomes a handle of its own, and only those handles keep the memory."""
    raw, schema = support.from_pyarrow(batch)
    original = support.addresses(raw.array)
    del batch
    handle = support.resolved(out("array_import", byref(raw), byref(schema)))
    infos = support.buffer_infos(handle)
    assert [info.data for info in infos if info.size_bytes] == [
        data for data, info in zip(original, infos) if info.size_bytes
    ]
    kind = support.type_of(handle)
    nodes, entries = support.to_buffers(handle)
    support.let_go(entries)
    owned = support.single_buffers(handle)
    assert [(one.data, one.size_bytes) for one in owned] == [(one.data, one.size_bytes) for one in entries]
    support.release(handle)
    assert "arrays" not in live_counts()
    array, schema = support.rebuilt(kind, nodes, owned)
    lib.bowstring_type_release(kind)
    compared = check_returned(array, schema, original, infos, expected)
    assert support.all_gone()
    return compared


def through_to_buffers(batch, expected, build_sizes):
    """All buffers at once, by the exact inverse of from_buffers; the sizes of variadic buffers are built anew."""
    raw, schema = support.from_pyarrow(batch)
    original = support.addresses(raw.array)
    del batch
    handle = support.resolved(out("array_import", byref(raw), byref(schema)))
    infos = support.buffer_infos(handle)
    kind = support.type_of(handle)
    nodes, entries = support.to_buffers(handle)
    support.release(handle)
    for entry, info in zip(entries, infos):
        if build_sizes and info.role == VARIADIC_SIZES:
            support.let_go([entry])
            entry.data, entry.size_bytes = None, -1
    array, schema = support.rebuilt(kind, nodes, entries)
    lib.bowstring_type_release(kind)
    if build_sizes:
        found = support.addresses(array.array)
        original = [
            new if info.role == VARIADIC_SIZES else old for new, old, info in zip(found, original, infos)
        ]
    compared = check_returned(array, schema, original, infos, expected)
    assert support.all_gone()
    return compared


def through_export(batch, expected):
    """Import and export, as a device array, twice from one handle."""
    raw, schema = support.from_pyarrow(batch)
    original = support.addresses(raw.array)
    del batch
    handle = support.resolved(out("array_import", byref(raw), byref(schema)))
    infos = support.buffer_infos(handle)
    first, second = support.exported(handle), support.exported(handle)
    support.release(handle)
    compared = check_returned(*first, original, infos, expected)
    compared += check_returned(*second, original, infos, expected)
    assert support.all_gone()
    return compared


def through_host(batch, expected):
    """Import and export as an array of the CPU, with a type that is parsed once."""
    raw, schema = bs.ArrowArray(), bs.ArrowSchema()
    batch._export_to_c(ctypes.addressof(raw), ctypes.addressof(schema))
    del batch
    original = support.addresses(raw)
    kind = out("type_import", byref(schema))
    handle = support.resolved(out("array_import_host_typed", byref(raw), kind))
    lib.bowstring_type_release(kind)
    infos = support.buffer_infos(handle)
    array = bs.ArrowArray()
    call("array_export_host", handle, None, byref(array), byref(schema))
    support.release(handle)
    compared = same_addresses(support.addresses(array), original, infos)
    result = pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))
    assert is_equal(result, expected)
    return compared


def windows(rows):
    """A few windows on so many rows."""
    yield from {(0, rows), (rows // 3, rows - rows // 3), (rows // 2, rows // 4), (rows, 0), (min(rows, 9), 0)}


def has_class(kind):
    """Whether pyarrow has a class for arrays of a type: not for intervals of months, or of days and milliseconds."""
    return str(kind) not in ("month_interval", "day_time_interval")


def check_children(part, wanted):
    """Each child, exported by itself, is pyarrow's column."""
    for i in range(wanted.num_columns):
        if not has_class(wanted.schema.field(i).type):
            continue
        column = wanted.column(i)
        child = out("array_child", part, i)
        found = support.to_pyarrow(*support.exported(child), kind=pa.Array)
        support.release(child)
        support.validate(found)
        assert found.equals(column) or str(found.to_pylist()) == str(column.to_pylist())


def through_slices(batch, expected):
    """Windows show what pyarrow's own slices show, and the same from their parts; slices of slices too."""
    handle = support.imported(batch)
    rows = batch.num_rows
    del batch
    for offset, length in windows(rows):
        part = out("array_slice", handle, offset, length)
        wanted = expected.slice(offset, length)
        assert is_equal(support.to_pyarrow(*support.exported(part)), wanted)
        kind = support.type_of(part)
        array, schema = support.rebuilt(kind, *support.to_buffers(part))
        lib.bowstring_type_release(kind)
        assert is_equal(support.to_pyarrow(array, schema), wanted)
        if length > 2:
            smaller = out("array_slice", part, 1, length - 2)
            assert is_equal(support.to_pyarrow(*support.exported(smaller)), wanted.slice(1, length - 2))
            support.release(smaller)
        check_children(part, wanted)
        support.release(part)
    support.release(handle)
    assert support.all_gone()
    return 0


def with_column_offsets(batch, expected):
    """A batch whose columns are slices, so that every node but the root has an offset."""
    offset = batch.num_rows // 3
    return through_single_buffers(batch.slice(offset), expected.slice(offset))


WAYS = (
    through_single_buffers,
    with_column_offsets,
    lambda batch, expected: through_to_buffers(batch, expected, False),
    lambda batch, expected: through_to_buffers(batch, expected, True),
    through_export,
    through_host,
    through_slices,
)


def round_trips(read, done):
    """Sends every batch of a stream every way. `read` gives the batches anew each time it is called."""
    expected = read()
    for way in WAYS:
        batches = read()
        for i, wanted in enumerate(expected):
            batch, batches[i] = batches[i], None
            done.buffers += way(batch, wanted)
            del batch
    done.streams += 1
    done.batches += len(expected)


def read_stream(source):
    """All batches of a stream, in memory that pyarrow owns."""
    with pa.ipc.open_stream(source) as reader:
        return list(reader)


def golden_files():
    folder = os.environ.get("BOWSTRING_GOLDEN")
    return sorted(Path(folder, "cpp-21.0.0").glob("*.stream")) if folder else []


@pytest.mark.skipif(not golden_files(), reason="skipped: no-golden: BOWSTRING_GOLDEN names no folder with cpp-21.0.0")
def test_golden_streams():
    done = Done()
    for path in golden_files():
        try:
            round_trips(lambda path=path: read_stream(path.read_bytes()), done)
        except Exception as error:
            error.add_note(f"in {path.name}")
            raise
    done.state("golden", GOLDEN_STREAMS, GOLDEN_BATCHES, GOLDEN_BUFFERS)


def test_own_streams():
    done = Done()
    for name, batches in all_types.streams():
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        try:
            round_trips(lambda sink=sink: read_stream(sink.getvalue()), done)
            # What was never written still has its nulls and offsets as pyarrow made them.
            round_trips(lambda batches=batches: list(batches), done)
        except Exception as error:
            error.add_note(f"in the stream {name}")
            raise
    done.state("own", OWN_STREAMS, OWN_BATCHES, OWN_BUFFERS)
