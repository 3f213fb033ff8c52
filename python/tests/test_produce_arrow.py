"""What arrays, streams and types answer to consumers of Arrow's capsules."""

import gc

import arro3.core
import bowstring
import duckdb
import nanoarrow
import nanoarrow.device
import pandas
import polars
import pyarrow as pa
import pytest
from bowstring import _c
from producers import ARRAY, DEVICE_ARRAY, SCHEMA, Ints, Speaks, name_of, pointer_in

BATCH = pa.record_batch({"a": [1, None, 3], "s": ["x", "yy", None], "l": [[1], None, [2, 3]]})


def imported(made):
    """A hand-made array of int64, taken."""
    return bowstring.array(
        Speaks(__arrow_c_array__=lambda self, requested_schema=None: (made.schema(), made.host_capsule()))
    )


def test_pyarrow():
    array = bowstring.array(BATCH)
    assert pa.record_batch(array).equals(BATCH)
    assert pa.table(array).equals(pa.Table.from_batches([BATCH]))
    assert pa.schema(array) == BATCH.schema
    assert pa.array(array).equals(BATCH.to_struct_array())
    assert pa.field(array["a"].type).name == "a"


@pytest.mark.parametrize(
    "convert",
    [
        lambda array: polars.DataFrame(array).to_dicts(),
        lambda array: nanoarrow.Array(array).to_pylist(),
        lambda array: nanoarrow.device.c_device_array(array).schema and nanoarrow.Array(array).to_pylist(),
        lambda array: arro3.core.RecordBatch.from_arrow(array).to_struct_array().to_pylist(),
        lambda array: pa.table(pandas.DataFrame.from_arrow(array)).to_pylist(),
        lambda batch: pa.table(duckdb.sql("select * from batch")).to_pylist(),
        lambda array: pa.table(bowstring.stream(array)).to_pylist(),
    ],
    ids=["polars", "nanoarrow", "nanoarrow.device", "arro3", "pandas", "duckdb", "ourselves"],
)
def test_libraries(convert):
    data = BATCH.select(["a", "s"])
    expected = data.to_pylist()
    found = convert(bowstring.array(data))
    for row in found:
        # pandas has no nulls among integers.
        row["a"] = None if row["a"] is None or row["a"] != row["a"] else int(row["a"])
    assert found == expected


def test_addresses_and_one_release():
    made = Ints(range(100))
    array = imported(made)
    there = pa.array(array.slice(10, 5))
    assert there.buffers()[1].address == made.data
    assert (there.offset, there.to_pylist()) == (10, list(range(10, 15)))
    del array
    gc.collect()
    assert made.released == 0
    del there
    gc.collect()
    assert (made.exported, made.released) == (1, 1)


@pytest.mark.parametrize("dunder", ["__arrow_c_array__", "__arrow_c_device_array__"])
def test_capsules_that_nobody_takes(dunder):
    made = Ints()
    array = imported(made)
    pair = getattr(array, dunder)()
    assert [name_of(capsule) for capsule in pair] == [SCHEMA, ARRAY if dunder == "__arrow_c_array__" else DEVICE_ARRAY]
    del array
    gc.collect()
    assert made.released == 0
    del pair
    gc.collect()
    assert made.released == 1


@pytest.mark.parametrize("dunder", ["__arrow_c_stream__", "__arrow_c_device_stream__"])
def test_streams_that_nobody_takes(dunder):
    made = Ints()
    capsule = getattr(imported(made), dunder)()
    gc.collect()
    assert made.released == 0
    del capsule
    gc.collect()
    assert made.released == 1


def test_each_export_is_new():
    array = bowstring.array(BATCH)
    first, second = array.__arrow_c_array__(), array.__arrow_c_array__()
    assert pointer_in(first[1], ARRAY) != pointer_in(second[1], ARRAY)
    assert pa.RecordBatch._import_from_c_capsule(*first).equals(BATCH)
    with pytest.raises(ValueError, match="released"):
        pa.RecordBatch._import_from_c_capsule(*first)
    assert pa.RecordBatch._import_from_c_capsule(*second).equals(BATCH)


def test_a_device_array_of_the_cpu():
    array = bowstring.array(BATCH)
    schema, capsule = array.__arrow_c_device_array__()
    struct = _c.ArrowDeviceArray.from_address(pointer_in(capsule, DEVICE_ARRAY))
    assert (struct.device_type, struct.device_id, struct.sync_event, list(struct.reserved)) == (1, -1, None, [0, 0, 0])
    assert nanoarrow.device.c_device_array(array).device_type_id == 1


def test_memory_of_a_device():
    made = Ints(device=(10, 3), data=1 << 45)
    array = bowstring.array(Speaks(__arrow_c_device_array__=lambda self: (made.schema(), made.device_capsule())))
    struct = _c.ArrowDeviceArray.from_address(pointer_in(array.__arrow_c_device_array__()[1], DEVICE_ARRAY))
    assert (struct.device_type, struct.device_id) == (10, 3)
    for refused in (array.__arrow_c_array__, lambda: pa.array(array), lambda: pa.array(bowstring.stream(array))):
        with pytest.raises((bowstring.BowstringError, pa.ArrowException, NotImplementedError, ValueError, TypeError)):
            refused()
    with pytest.raises(bowstring.Unsupported):
        array.__arrow_c_array__()
    assert bowstring.array(bowstring.stream(array)).buffer(1).ptr == 1 << 45


@pytest.mark.parametrize("of", ["array", "stream"])
def test_keywords_that_nobody_knows(of):
    array = bowstring.array(BATCH)
    give = array.__arrow_c_device_array__ if of == "array" else array.__arrow_c_device_stream__
    assert give(None, later=None)
    with pytest.raises(NotImplementedError, match="expected later=None, found 1"):
        give(None, later=1)
    with pytest.raises(NotImplementedError):
        bowstring.stream(array).__arrow_c_device_stream__(later=1)
    assert give(requested_schema=None)


# Requests.


def test_a_request_that_differs_in_names_is_answered_with_our_type():
    array = bowstring.array(BATCH.select(["a"]))
    request = pa.schema([pa.field("other", pa.int64(), False, {"k": "v"})]).__arrow_c_schema__()
    batch = pa.RecordBatch._import_from_c_capsule(*array.__arrow_c_array__(request))
    assert batch.schema == BATCH.select(["a"]).schema


@pytest.mark.parametrize(
    "dunder", ["__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_stream__", "__arrow_c_device_stream__"]
)
def test_a_request_for_another_type(dunder):
    array = bowstring.array(pa.array([1, 2]))
    with pytest.raises(ValueError, match="expected a request for 'int64', which nobody here casts, found 'int32'"):
        getattr(array, dunder)(pa.int32().__arrow_c_schema__())
    if "stream" in dunder:
        stream = bowstring.stream(pa.chunked_array([[1], [2]]))
        with pytest.raises(ValueError, match="expected a request for 'int64'"):
            getattr(stream, dunder)(pa.int32().__arrow_c_schema__())
        assert len(list(stream)) == 2


@pytest.mark.parametrize("request_", [pa.string_view(), pa.string()])
def test_a_request_for_other_views(request_):
    own = pa.string() if request_ == pa.string_view() else pa.string_view()
    values = ["a", None, "long enough to be outside"]
    array = bowstring.array(pa.array(values, own))
    found = pa.Array._import_from_c_capsule(*array.__arrow_c_array__(request_.__arrow_c_schema__()))
    assert (found.type, found.to_pylist()) == (request_, values)
    stream = bowstring.stream(pa.chunked_array([values, values], own))
    found = pa.ChunkedArray._import_from_c_capsule(stream.__arrow_c_stream__(request_.__arrow_c_schema__()))
    assert (found.type, found.to_pylist()) == (request_, values * 2)


def test_pyarrow_asks_for_types():
    array = bowstring.array(pa.array([1, 2]))
    assert pa.array(array, pa.int64()).type == pa.int64()
    assert pa.array(array, type=pa.int32()).type == pa.int32()


def test_a_request_that_is_none():
    array = bowstring.array(pa.array([1]))
    with pytest.raises((TypeError, ValueError)):
        array.__arrow_c_array__("int64")
    with pytest.raises(ValueError):
        array.__arrow_c_array__(array.__arrow_c_array__()[1])


def test_arrow_array():
    data = pa.array([1, None])
    array = bowstring.array(data)
    assert array.__arrow_array__().equals(data)
    assert array.__arrow_array__().buffers()[1].address == data.buffers()[1].address
    assert array.__arrow_array__(pa.float64()).equals(data.cast(pa.float64()))


# Streams.


def test_a_stream_is_handed_on_once():
    stream = bowstring.stream(pa.chunked_array([[1], [2, 3]]))
    assert pa.chunked_array(stream).to_pylist() == [1, 2, 3]
    for again in (stream.__arrow_c_stream__, stream.__arrow_c_device_stream__, stream.read):
        with pytest.raises(ValueError, match="closed or handed on"):
            again()


def test_readers():
    table = pa.Table.from_batches([BATCH, BATCH.slice(1)])
    reader = pa.RecordBatchReader.from_stream(bowstring.stream(table))
    assert reader.schema == table.schema
    assert reader.read_all().equals(table)
    assert pa.schema(bowstring.stream(table)) == table.schema
    assert nanoarrow.ArrayStream(bowstring.stream(table)).read_all().to_pylist() == table.to_pylist()
    assert polars.DataFrame(bowstring.stream(table)).to_dicts() == table.to_pylist()
    stream = bowstring.stream(table)
    assert duckdb.sql("select count(*) from stream").fetchall() == [(5,)]


def test_a_device_stream_comes_back():
    made = Ints(device=(10, 3), data=1 << 45)
    array = bowstring.array(Speaks(__arrow_c_device_array__=lambda self: (made.schema(), made.device_capsule())))
    capsule = bowstring.stream([array, array.slice(1)]).__arrow_c_device_stream__()
    stream = bowstring.stream(Speaks(__arrow_c_device_stream__=lambda self: capsule))
    assert (stream.device.type, stream.source) == (10, "__arrow_c_device_stream__")
    assert [(len(batch), batch.buffer(1).ptr) for batch in stream] == [(3, 1 << 45), (2, 1 << 45)]


def test_types():
    kind = bowstring.Type("struct<a: int32 not null, s: list<utf8>>")
    assert pa.schema(kind) == pa.schema([pa.field("a", pa.int32(), False), ("s", pa.list_(pa.string()))])
    assert nanoarrow.Schema(kind).n_fields == 2
    capsule = kind.__arrow_c_schema__()
    del capsule


def test_a_pending_exception_survives_a_capsule():
    """A consumer that fails lets the capsules go with its exception pending."""
    array = bowstring.array(BATCH)
    for _ in range(3):
        with pytest.raises(pa.ArrowInvalid, match="has 3 children, expected 0"):
            pa.Array._import_from_c_capsule(pa.int8().__arrow_c_schema__(), array.__arrow_c_array__()[1])
