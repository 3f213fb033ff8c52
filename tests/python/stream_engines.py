"""Streams handed between bowstring, polars, duckdb and pyarrow by capsules: there and back, checked on the way.

test_stream_engines.py runs these in a process of their own.
"""

import datetime
import decimal
import gc
import time

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import streams
import support
import validate_calls
from bowstring_ctypes import BowstringError, c_void_p, lib
from capsules import StreamProducer, taken_stream
from streams import Fails, Producer
from test_stream_collect import collected
from test_stream_export import selected, validated

@pytest.fixture(autouse=True)
def nothing_left():
    """As in conftest.py, but threads of the engines let go what they held when they come to it."""
    before = bs.live_counts(), pa.total_allocated_bytes()
    yield
    end = time.monotonic() + PATIENCE
    while (bs.live_counts(), pa.total_allocated_bytes()) != before and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    assert (bs.live_counts(), pa.total_allocated_bytes()) == before


PATIENCE = 10
DAY = datetime.datetime(2001, 2, 3, 4, 5, 6, 789)
ROWS = 211


def rows(values):
    """Values over and over, and nulls between them, so that bitmaps end within a byte."""
    return [None if i % 5 == 3 else values[i % len(values)] for i in range(ROWS)]


FULL = bs.ValidateOptions(level=validate_calls.FULL)
LONG = "a text that fits in no view"
COLUMNS = {
    "bool": pa.array(rows([True, False, False])),
    **{str(kind): pa.array(rows([0, 1, 2, 100]), kind) for kind in (
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "float": pa.array(rows([0.5, -1.25]), pa.float32()),
    "double": pa.array(rows([0.5, -1e300, float("inf")])),
    "string": pa.array(rows(["", "x", "naïve", LONG])),
    "large_string": pa.array(rows(["", "x", LONG]), pa.large_string()),
    "string_view": pa.array(rows(["", "twelve bytes", LONG]), pa.string_view()),
    "binary": pa.array(rows([b"", b"\0\xff", LONG.encode()])),
    "date": pa.array(rows([DAY.date()])),
    "time": pa.array(rows([DAY.time()]), pa.time64("us")),
    "timestamp": pa.array(rows([DAY]), pa.timestamp("us")),
    "zoned": pa.array(rows([DAY]), pa.timestamp("us", "UTC")),
    "decimal": pa.array(rows([decimal.Decimal("1.50"), decimal.Decimal("-99.99")]), pa.decimal128(9, 2)),
    "list": pa.array(rows([[], [1, None], [2, 3, 4]]), pa.list_(pa.int32())),
    "lists": pa.array(rows([[[]], [["a"], None, [LONG, None]]]), pa.list_(pa.list_(pa.string()))),
    "struct": pa.array(
        rows([{"a": 1, "b": LONG}, {"a": None, "b": None}]), pa.struct({"a": pa.int16(), "b": pa.string()})
    ),
    "dictionary": pa.array(rows(["low", "high", LONG])).dictionary_encode(),
    "nothing": pa.nulls(ROWS, pa.int32()),
}
TABLE = pa.table(COLUMNS)


def cut(table, *lengths):
    """The table in batches of these lengths, and a last one with the rest."""
    batches, start = [], 0
    for length in (*lengths, len(table) - sum(lengths)):
        part = table.slice(start, length).combine_chunks()
        batches.extend(part.to_batches() or [pa.RecordBatch.from_pylist([], part.schema)])
        start += length
    return batches


CUTS = {"one": (), "several": (1, 64, 7, 100), "with empty ones": (0, 10, 0), "empty": None}


def batches_of(how, table=TABLE):
    return cut(table.slice(0, 0)) if CUTS[how] is None else cut(table, *CUTS[how])


def passed_on(stream, how):
    """A stream with something done to it by the library."""
    if how == "validated":
        return validated(stream, FULL)
    if how == "collected":
        return of_handle(collected(validated(stream, FULL)))
    order = range(len(COLUMNS) - 1, -1, -1)
    return selected(selected(stream, *order), *order)


def of_handle(handle):
    """A stream of one array, which is let go."""
    listed = (c_void_p * 1)(handle.value)
    stream = bs.out("stream_from_arrays", None, listed, 1)
    support.release(handle)
    return stream


STEPS = ("validated", "collected", "selected")


class Again:
    """An object that makes a new stream each time it is asked: duckdb asks for the type, and then for the rows."""

    def __init__(self, make):
        self.make, self.asked = make, 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.asked += 1
        return StreamProducer(self.make()).__arrow_c_stream__(requested_schema)


def in_polars(stream):
    """What polars reads of a stream, as it hands it on."""
    return pl.DataFrame(StreamProducer(stream))


@pytest.fixture
def connection():
    with duckdb.connect(config={"threads": 2}) as made:
        yield made


def in_duckdb(connection, given):
    """What duckdb reads of something with streams, as it hands it on."""
    assert given is not None
    return connection.sql("select * from given")


def read(table):
    """Plain values, whatever type an engine had for them."""
    return pa.table(table).to_pydict()


def same(found, expected):
    found, expected = read(found), read(expected)
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name] == values, name


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("step", STEPS)
def test_pyarrow_to_polars_and_back(step, how):
    producer = Producer(batches_of(how), TABLE.schema, host=True)
    frame = in_polars(passed_on(producer.imported(), step))
    # polars is done with the stream, which was let go once.
    producer.done()
    assert frame.shape == (0 if how == "empty" else ROWS, len(COLUMNS))
    back = passed_on(taken_stream(frame.__arrow_c_stream__()), step)
    same(StreamProducer(back), TABLE.slice(0, frame.height))


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("step", STEPS)
def test_pyarrow_to_duckdb_and_back(connection, step, how):
    producers = []

    def make():
        producers.append(Producer(batches_of(how), TABLE.schema, host=True))
        return passed_on(producers[-1].imported(), step)

    given = Again(make)
    result = in_duckdb(connection, given)
    back = passed_on(taken_stream(result.__arrow_c_stream__()), step)
    table = pa.table(StreamProducer(back))
    same(table, TABLE.slice(0, 0 if how == "empty" else ROWS))
    assert given.asked == len(producers) > 0
    del result
    for producer in producers:
        # Where only the type was asked for, all rows are left.
        producer.steps.clear()
        producer.done()


@pytest.mark.parametrize("how", CUTS)
def test_from_one_engine_to_the_other(connection, how):
    frame = in_polars(streams.from_arrays(batches_of(how)))
    given = Again(lambda: validated(taken_stream(frame.__arrow_c_stream__()), FULL))
    result = in_duckdb(connection, given)
    back = in_polars(validated(taken_stream(result.__arrow_c_stream__()), FULL))
    same(back, TABLE.slice(0, frame.height))


def test_a_capsule_is_handed_out_once(connection):
    producer = Producer(batches_of("several"), TABLE.schema, host=True)
    given = StreamProducer(producer.imported()).__arrow_c_stream__()
    same(in_duckdb(connection, given), TABLE)
    del given
    producer.done()


# ---- what the engines emit ----


def text_of(stream):
    return bs.text_of("type_to_text", c_void_p(lib.bowstring_stream_type(stream)))


def test_polars_has_views_and_dictionaries():
    words = pl.Enum(["low", "high", LONG])
    parts = [
        pl.DataFrame(
            {"v": ["x", None, LONG], "c": ["red", LONG, None], "e": ["low", None, LONG], "b": [b"\0", None, b"x" * 30]}
        ).with_columns(pl.col("c").cast(pl.Categorical), pl.col("e").cast(words)),
        pl.DataFrame({"v": [LONG * 9], "c": ["green"], "e": ["high"], "b": [b""]})
        .with_columns(pl.col("c").cast(pl.Categorical), pl.col("e").cast(words)),
    ]
    handles = []
    for part in parts:
        stream = validated(taken_stream(part.__arrow_c_stream__()), FULL)
        text = text_of(stream)
        assert text.startswith("struct<v: utf8_view, c: dictionary<"), text
        assert text.endswith("b: binary_view> not null"), text
        assert text.split("e: ")[1].startswith("dictionary<"), text
        handles.extend(streams.drained(stream))
        streams.release(stream)
    assert len(handles) == 2
    listed = (c_void_p * 2)(*[handle.value for handle in handles])
    again = bs.out("stream_from_arrays", None, listed, 2)
    support.release(*handles)
    # Two batches of views, and of dictionaries that differ, become one array, which polars takes for the same.
    back, frame = in_polars(of_handle(collected(again))), pl.concat(parts)
    assert back.schema == frame.schema and back.equals(frame)


def test_a_sliced_frame_of_polars():
    numbers = range(200)
    frame = pl.DataFrame({"v": [str(i) * (i % 20) for i in numbers], "i": numbers, "o": [i % 3 == 0 for i in numbers]})
    for start, n in ((0, 0), (3, 50), (13, 187), (199, 1)):
        part = frame.slice(start, n)
        assert in_polars(passed_on_all(taken_stream(part.__arrow_c_stream__()))).equals(part)


def passed_on_all(stream):
    return of_handle(collected(validated(stream, FULL)))


def test_a_series_of_polars_is_no_struct():
    series = pl.Series("s", [["a", None], [], None, [LONG]])
    stream = validated(taken_stream(series.__arrow_c_stream__()), FULL)
    assert "large_list<utf8_view>" in text_of(stream)
    whole = collected(stream)
    assert streams.as_pyarrow(whole, pa.Array).to_pylist() == series.to_list()


def test_duckdb_gives_several_batches(connection):
    n = 300_000
    text = "case when i % 3 = 0 then null else 'text ' || i end"
    query = f"select i, {text} s, [i, null] l, {{'k': i % 7}} d from range({n}) t(i)"
    stream = validated(taken_stream(connection.sql(query).__arrow_c_stream__()), FULL)
    lengths, total = [], 0
    while (handle := streams.next_of(stream)) is not None:
        batch = streams.as_pyarrow(handle)
        lengths.append(len(batch))
        total += sum(batch["i"].to_pylist())
        first = batch.slice(0, 3).to_pylist()[2]
        assert first["s"] in (None, f"text {first['i']}") and first["l"] == [first["i"], None]
    assert len(lengths) > 1 and sum(lengths) == n and total == n * (n - 1) // 2
    streams.release(stream)


@pytest.mark.parametrize("text, kind, value", [
    ("'a'::enum('a', 'b')", "dictionary<", "a"),
    ("12345678901234567890::hugeint", "decimal", None),
    ("1.25::decimal(4, 2)", "decimal", decimal.Decimal("1.25")),
    ("uuid '00000000-0000-0000-0000-000000000001'", "", None),
    ("map([1, 2], ['x', 'y'])", "map<", [(1, "x"), (2, "y")]),
    ("interval '3 days'", "interval", None),
    ("[1, 2]::integer[2]", "fixed_size_list", [1, 2]),
    ("'\\x00\\xFF'::blob", "binary", b"\0\xff"),
    ("timestamptz '2001-02-03 04:05:06+00'", "timestamp", None),
    ("null", "null", None),
])
def test_types_of_duckdb(connection, text, kind, value):
    result = connection.sql(f"select x from (values ({text}), (null)) t(x)")
    stream = validated(taken_stream(result.__arrow_c_stream__()), FULL)
    assert kind in text_of(stream), text_of(stream)
    table = pa.table(StreamProducer(of_handle(collected(stream))))
    assert table.num_rows == 2 and table["x"].to_pylist()[1] is None
    assert value is None or table["x"].to_pylist()[0] == value


# ---- errors, and consumers that break off ----


def failing():
    return Producer([*batches_of("several")[:2], Fails(28, b"the disk is full")], TABLE.schema, host=True)


def test_errors_reach_polars():
    producer = failing()
    with pytest.raises(pl.exceptions.PolarsError, match="CALLBACK_ERROR in batch 2: .*found 28: the disk is full"):
        in_polars(validated(producer.imported()))
    producer.done()


def test_errors_reach_duckdb(connection):
    producers = []

    def make():
        producers.append(failing())
        return validated(producers[-1].imported())

    with pytest.raises(duckdb.Error, match="CALLBACK_ERROR in batch 2: .*found 28: the disk is full"):
        in_duckdb(connection, Again(make)).fetchall()
    for producer in producers:
        producer.steps.clear()
        producer.done()


def test_what_breaks_a_rule_is_told(connection):
    wrong = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())], ["s"])

    def make():
        return validated(streams.from_arrays([pa.record_batch({"s": ["x"]}), wrong]), FULL)

    with pytest.raises(pl.exceptions.PolarsError, match=r"INVALID_DATA \(\w+\) in batch 1 at \$.*UTF-8"):
        in_polars(make())
    with pytest.raises(duckdb.Error, match=r"INVALID_DATA \(\w+\) in batch 1 at \$.*UTF-8"):
        in_duckdb(connection, Again(make)).fetchall()


def test_errors_of_duckdb_are_text(connection):
    # The rows that go well are more than one batch.
    query = "select case when i < 200000 then '1' else 'no' end::int i from range(300000) t(i)"
    stream = validated(taken_stream(connection.sql(query).__arrow_c_stream__()))
    with pytest.raises(BowstringError, match="Could not convert string 'no' to INT32") as caught:
        while (handle := streams.next_of(stream)) is not None:
            support.release(handle)
    assert bs.lib.bowstring_status_name(caught.value.status) == b"CALLBACK_ERROR"
    again = caught.value
    with pytest.raises(BowstringError) as caught:
        streams.next_of(stream)
    assert caught.value.message == again.message
    streams.release(stream)


def test_an_engine_that_takes_only_some(connection):
    made = []

    def make():
        made.append(Producer(batches_of("several"), TABLE.schema, host=True))
        return validated(made[-1].imported())

    given = Again(make)
    assert given is not None
    assert connection.sql("select bool from given limit 1").fetchall() == [(True,)]
    # The other columns are not looked at, and what is left is let go.
    found = connection.sql("select count(*) from given where string = 'x'").fetchall()
    assert found == [(TABLE["string"].to_pylist().count("x"),)]
    for producer in made:
        producer.done()


def test_cancelled_streams_are_errors():
    stream = streams.from_arrays(batches_of("one"))
    lib.bowstring_stream_cancel(stream)
    with pytest.raises(pl.exceptions.PolarsError, match="CANCELLED"):
        in_polars(stream)
