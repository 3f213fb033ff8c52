"""Streams of ours as their consumers see them: raw structs, called as the interfaces say, and as they do not say."""

import ctypes
import errno
import threading
from ctypes import CFUNCTYPE, addressof, byref, c_int, c_size_t, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import streams
import support
from bowstring_ctypes import BowstringError, call, lib, out
from streams import Callbacks, Exported, Fails, Placed, Producer
from test_stream_import import BATCHES, BOTH, SCHEMA, batch, refused


def data_of(array, host):
    """An array's struct as pyarrow data of the tests' schema."""
    if not host:
        assert (array.device_type, array.device_id, array.sync_event, list(array.reserved)) == (1, -1, None, [0] * 3)
    kind = bs.ArrowSchema()
    SCHEMA._export_to_c(addressof(kind))
    at = addressof(array if host else array.array)
    return pa.RecordBatch._import_from_c(at, addressof(kind))


def sources():
    """The same stream, made in every way."""
    kind = support.type_from(SCHEMA)
    held = [Producer(BATCHES, SCHEMA), Producer(BATCHES, SCHEMA, True), Callbacks(BATCHES), Callbacks(BATCHES, True)]
    yield "import", held[0].imported(), held[0]
    yield "import_host", held[1].imported(), held[1]
    yield "callbacks", held[2].made(kind), held[2]
    yield "handles", held[3].made(kind), held[3]
    lib.bowstring_type_release(kind)
    yield "arrays", streams.from_arrays(BATCHES), None


@BOTH
def test_every_source_is_exported(host):
    # Public case A4: structs are full of 0xAA before each call.
    n = 0
    for name, stream, held in sources():
        exported = Exported(stream, host)
        if not host:
            assert exported.struct.device_type == 1
        for _ in range(2):
            # Public case A11 (d): each schema is its consumer's.
            code, schema = exported.schema()
            assert code == 0 and pa.Schema._import_from_c(addressof(schema)) == SCHEMA, name
        given = []
        for expected in BATCHES:
            code, array = exported.next()
            assert code == 0 and exported.text() is None
            given.append((array, expected))
        for _ in range(2):
            code, array = exported.next()
            assert code == 0 and bytes(array) == bytes(ctypes.sizeof(array))
        code, schema = exported.schema()
        exported.release()
        if held:
            held.done()
        # All of it lives on without the stream.
        assert code == 0 and pa.Schema._import_from_c(addressof(schema)) == SCHEMA
        for array, expected in given:
            assert data_of(array, host) == expected, name
            n += 1
    assert n == 15


@BOTH
def test_structs_are_moved(host):
    # Public case A10: the old place is overwritten.
    stream = streams.from_arrays(BATCHES)
    exported = Exported(stream, host)
    old, moved = exported.struct, streams.STREAMS[host]()
    ctypes.memmove(byref(moved), byref(old), ctypes.sizeof(old))
    ctypes.memset(byref(old), 0xFF, ctypes.sizeof(old))
    exported.struct = moved
    code, array = exported.next()
    assert code == 0 and data_of(array, host) == BATCHES[0]
    exported.release()
    # A released struct is not called, and says so if it is.
    ctypes.memset(byref(old), 0, ctypes.sizeof(old))
    assert exported.next()[0] == errno.EINVAL and exported.schema()[0] == errno.EINVAL and exported.text() is None


OUT = {
    errno.ENOMEM: errno.ENOMEM,
    errno.ENOSYS: errno.ENOSYS,
    errno.ENOTSUP: errno.ENOSYS,
    errno.ECANCELED: errno.ECANCELED,
    errno.EINVAL: errno.EINVAL,
    errno.EIO: errno.EIO,
    errno.EACCES: errno.EACCES,
    4095: 4095,
    4096: errno.EIO,
    -5: errno.EIO,
}


@BOTH
@pytest.mark.parametrize("code", OUT)
def test_error_numbers_go_on(code, host):
    producer = Producer([BATCHES[0], Fails(code, b"why")], SCHEMA)
    exported = Exported(producer.imported(), host)
    number, array = exported.next()
    assert number == 0 and data_of(array, host) == BATCHES[0]
    for _ in range(2):
        number, array = exported.next()
        assert number == OUT[code] and bytes(array) == bytes(ctypes.sizeof(array))
        assert exported.text() == exported.text()
        assert exported.text().endswith(": why") and "in batch 1" in exported.text()
    code, schema = exported.schema()
    assert code == 0 and exported.text() is None
    lib.bowstring_schema_release(byref(schema))
    exported.release()
    producer.done()
    assert producer.calls.count("get_next") == 2


@BOTH
def test_what_breaks_a_rule_is_told_as_text(host):
    producer = Producer([BATCHES[0], pa.RecordBatch.from_pydict({"a": [1]})], SCHEMA)
    exported = Exported(producer.imported(), host)
    _, array = exported.next()
    data_of(array, host)
    code, array = exported.next()
    assert code == errno.EINVAL
    assert exported.text() == "INVALID_DATA (A7) in batch 1 at $: expected 2 children, found 1"
    exported.release()
    producer.done()


@BOTH
def test_cancelled_from_another_thread(host):
    started, go_on = threading.Event(), threading.Event()

    def waits(array):
        started.set()
        assert go_on.wait(60)
        streams.export_into(BATCHES[0], addressof(array), False)

    producer = Producer([waits, BATCHES[0]], SCHEMA)
    stream = producer.imported()
    found = []
    thread = threading.Thread(target=lambda: found.append(refused(streams.next_of, stream)))
    thread.start()
    assert started.wait(60)
    # Another thread is turned away, and does not wait.
    error = refused(streams.next_of, stream)
    assert (error.status, error.rule) == (bs.INVALID_ARGUMENT, "ST6")
    lib.bowstring_stream_cancel(stream)
    go_on.set()
    thread.join()
    assert found[0].status == bs.CANCELLED
    exported = Exported(stream, host)
    code, _ = exported.next()
    assert code == errno.ECANCELED and exported.text().startswith("CANCELLED in batch 0")
    exported.release()
    producer.done()


@BOTH
def test_calls_of_a_struct_that_meet_another_one(host):
    seen = []

    def meddle(array):
        number, inner = exported.next()
        seen.append((number, bytes(inner) == bytes(ctypes.sizeof(inner)), exported.text()))
        code, schema = exported.schema()
        seen.append((code, bool(schema.release), None))
        lib.bowstring_schema_release(byref(schema))
        streams.export_into(BATCHES[0], addressof(array), False)

    producer = Producer([meddle], SCHEMA)
    exported = Exported(producer.imported(), host)
    code, array = exported.next()
    assert code == 0 and data_of(array, host) == BATCHES[0] and not producer.complaints
    assert seen[0][:2] == (errno.EINVAL, True) and "ST6" in seen[0][2] and seen[1][:2] == (0, True)
    exported.release()
    producer.done()


@BOTH
def test_null_outs(host):
    stream = streams.from_arrays(BATCHES)
    exported = Exported(stream, host)
    for name in ("get_schema", "get_next"):
        function = CFUNCTYPE(c_int, c_void_p, c_void_p)(getattr(exported.struct, name))
        assert function(addressof(exported.struct), None) == errno.EINVAL
        assert function(None, addressof(streams.ARRAYS[host]())) == errno.EINVAL
    CFUNCTYPE(None, c_void_p)(exported.struct.release)(None)
    code, array = exported.next()
    assert code == 0 and data_of(array, host) == BATCHES[0]
    exported.release()


def test_what_we_exported_comes_back_as_it_was():
    producer = Producer(BATCHES, SCHEMA)
    stream = producer.imported()
    support.release(streams.next_of(stream))
    for _ in range(100):
        exported = Exported(stream)
        again = out("stream_import", byref(exported.struct))
        assert not exported.struct.release and again.value
        stream = again
        exported = Exported(stream, True)
        stream = out("stream_import_host", byref(exported.struct))
    assert bs.live_counts()["streams"] == 1
    assert [streams.as_pyarrow(handle) for handle in streams.drained(stream)] == BATCHES[1:]
    streams.release(stream)
    producer.done()


def test_what_we_built_goes_on_as_it_is():
    """An array that from_buffers made is the one that the consumer gets, and one that was changed is not."""
    data = pa.RecordBatch.from_pydict({"a": [1, 2, None], "s": ["x", None, "zz"]}, SCHEMA)
    made = support.imported(data)
    kind = support.type_of(made)

    def built(change=lambda array: None):
        nodes, buffers = support.to_buffers(made)
        array, schema = support.rebuilt(kind, nodes, buffers)
        lib.bowstring_schema_release(byref(schema))
        change(array)
        return array

    def loose(array):
        array.reserved[0] = 1

    def cpu_zero(array):
        array.device_id = 0

    for change in (lambda array: None, loose, cpu_zero):
        array = built(change)
        at = array.array.private_data
        callbacks = Callbacks([array])
        exported = Exported(callbacks.made(kind))
        code, given = exported.next()
        assert code == 0 and (given.array.private_data == at) == (change not in (loose, cpu_zero))
        assert data_of(given, False) == data
        exported.release()
        callbacks.done()
    # One that does not fit the stream's type is refused, whoever built it.
    other = support.type_from(pa.schema({"a": pa.int64()}))
    callbacks = Callbacks([built()])
    exported = Exported(callbacks.made(other))
    code, given = exported.next()
    assert code == errno.EINVAL and "A7" in exported.text() and not given.array.release
    exported.release()
    callbacks.done()
    wide = support.type_from(pa.schema({"a": pa.decimal128(3, 1), "s": pa.string()}))
    callbacks = Callbacks([built()])
    exported = Exported(callbacks.made(wide))
    assert exported.next()[0] == errno.EINVAL and "A4" in exported.text()
    exported.release()
    callbacks.done()
    for one in (kind, other, wide):
        lib.bowstring_type_release(one)
    support.release(made)


def test_a_plain_batch_that_was_changed_is_looked_at():
    """Columns of numbers are told by a look; each change to one is noticed."""
    data = pa.RecordBatch.from_pydict({"a": [1, 2, 3], "b": [1, None, 3], "c": [5, 6, 7]})
    made = support.imported(data)
    kind = support.type_of(made)

    def given(change, wanted=None):
        nodes, buffers = support.to_buffers(made)
        array, schema = support.rebuilt(kind, nodes, buffers)
        lib.bowstring_schema_release(byref(schema))
        at = array.array.private_data
        change(array)
        callbacks = Callbacks([array])
        exported = Exported(callbacks.made(wanted or kind))
        code, found = exported.next()
        goes_on = code == 0 and found.array.private_data == at
        if code == 0:
            lib.bowstring_device_array_release(byref(found))
        text = exported.text()
        exported.release()
        callbacks.done()
        return goes_on, text

    def column(i):
        return lambda array: array.array.children[i].contents

    def set_(i, **members):
        return lambda array: [setattr(column(i)(array), name, value) for name, value in members.items()]

    def moved_out(array):
        taken = bs.ArrowArray()
        lib.bowstring_host_array_move(byref(column(1)(array)), byref(taken))
        lib.bowstring_host_array_release(byref(taken))

    def swapped(array):
        children = array.array.children
        children[0], children[2] = children[2], children[0]

    assert given(lambda array: None) == (True, None)
    for change, rule in (
        (moved_out, "A7"),
        (set_(1, length=2), "B4"),
        (set_(1, length=-1), "A1"),
        (set_(1, null_count=4), "A2"),
        (set_(1, null_count=-2), "A2"),
        (set_(1, offset=1), "A4"),
        (set_(1, n_buffers=3), "A3"),
        (set_(1, n_buffers=1), "A3"),
        (set_(1, buffers=None), "A4"),
        (set_(1, n_children=1), "A7"),
        (set_(0, null_count=1), "A5"),
    ):
        goes_on, text = given(change)
        assert not goes_on and f"({rule})" in text, (rule, text)
    goes_on, text = given(swapped)
    assert not goes_on and text is None
    # The same columns as a type that needs more of them.
    wider = support.type_from(pa.schema({"a": pa.int64(), "b": pa.decimal128(3, 1), "c": pa.int64()}))
    goes_on, text = given(lambda array: None, wider)
    assert not goes_on and "(A4)" in text
    narrower = support.type_from(pa.schema({"a": pa.int32(), "b": pa.int8(), "c": pa.bool_()}))
    assert given(lambda array: None, narrower) == (True, None)
    fewer = support.type_from(pa.schema({"a": pa.int64(), "b": pa.int64()}))
    goes_on, text = given(lambda array: None, fewer)
    assert not goes_on and "(A7)" in text
    for one in (kind, wider, narrower, fewer):
        lib.bowstring_type_release(one)
    support.release(made)


def test_a_host_stream_of_another_device():
    steps = [Placed(pa.array([1]), 14)]
    producer = Producer(steps, pa.int64(), device_type=14)
    exported = Exported(producer.imported(), True)
    code, _ = exported.next()
    assert code == errno.ENOSYS and "UNSUPPORTED" in exported.text() and "ONEAPI" in exported.text()
    exported.release()
    producer.done()
    event = c_size_t(5)
    producer = Producer([Placed(pa.array([1]), 14, 0, addressof(event))], pa.int64(), device_type=14)
    exported = Exported(producer.imported(), True)
    code, _ = exported.next()
    assert code == errno.EINVAL and "SYNC_REQUIRED" in exported.text()
    exported.release()
    producer.done()
    stream = streams.from_arrays(BATCHES)
    error = refused(call, "stream_export_host", byref(stream), bs.Sync(9), byref(bs.ArrowArrayStream()))
    assert error.status == bs.INVALID_ARGUMENT and stream.value
    streams.release(stream)


def test_a_device_stream_keeps_device_and_event():
    event = c_size_t(5)
    producer = Producer([Placed(pa.array([1]), 2, 3, addressof(event))], pa.int64(), device_type=2)
    exported = Exported(producer.imported())
    assert exported.struct.device_type == 2
    code, array = exported.next()
    assert code == 0 and (array.device_type, array.device_id, array.sync_event) == (2, 3, addressof(event))
    lib.bowstring_device_array_release(byref(array))
    exported.release()
    producer.done()


def selected(stream, *columns):
    numbers = (c_size_t * max(len(columns), 1))(*columns)
    return out("stream_select", byref(stream), numbers, len(columns))


def test_columns_are_selected():
    rich = pa.record_batch(
        [
            pa.array([[1], None, [2, 3]]),
            pa.array(["x", "y", "x"]).dictionary_encode(),
            pa.array([{"b": 1}, {"b": None}, None]),
            pa.array(["a" * 20, "b", None], pa.string_view()),
        ],
        pa.schema([("l", pa.list_(pa.int64())), ("d", pa.dictionary(pa.int32(), pa.string())),
                   ("s", pa.struct({"b": pa.int64()})), ("v", pa.string_view())], metadata={"key": "value"}),
    )
    for columns in ((1,), (3, 0), (0, 0, 2), (2, 1, 0, 3), ()):
        for part in (rich, rich.slice(1, 2)):
            stream = streams.from_arrays([part, part.slice(1)])
            narrow = selected(stream, *columns)
            assert not stream.value
            names = [rich.schema.names[i] for i in columns]
            handles = streams.drained(narrow)
            streams.release(narrow)
            for handle, expected in zip(handles, [part, part.slice(1)]):
                found = streams.as_pyarrow(handle)
                found.validate(full=True)
                assert found.schema.names == names and found.schema.metadata == {b"key": b"value"}
                assert found.num_rows == expected.num_rows
                assert [one.to_pylist() for one in found.columns] == [expected.column(i).to_pylist() for i in columns]


def test_nothing_is_copied_by_selecting():
    made = support.imported(batch(1, 2, 3))
    before = [info.data for info in support.buffer_infos(made)]
    sizes = support.resolved(made)
    stream = out("stream_from_arrays", None, (c_void_p * 1)(sizes.value), 1)
    stream = selected(stream, 1, 0)
    handle = streams.next_of(stream)
    infos = support.buffer_infos(handle)
    assert [info.data for info in infos] == [before[0], *before[3:6], *before[1:3]]
    assert infos[3].size_bytes == 3, "a size that was known before"
    streams.release(stream)
    support.release(handle, sizes)


def test_nulls_of_the_whole_stay():
    data = pa.array([{"a": 1, "b": 2}, None, {"a": 3, "b": None}, {"a": 5, "b": 6}])
    stream = streams.from_arrays([data, data.slice(1, 2)])
    narrow = selected(stream, 1)
    found = [streams.as_pyarrow(handle, pa.Array) for handle in streams.drained(narrow)]
    streams.release(narrow)
    assert found[0].to_pylist() == [{"b": 2}, None, {"b": None}, {"b": 6}]
    assert found[1].to_pylist() == [None, {"b": None}]


def test_columns_that_are_not_there():
    stream = streams.from_arrays(BATCHES)
    for columns in ((2,), (0, 1, 2), (2**64 - 1,)):
        assert refused(selected, stream, *columns).status == bs.INVALID_ARGUMENT and stream.value
    streams.release(stream)
    stream = streams.from_arrays([pa.array([1])])
    error = refused(selected, stream, 0)
    assert error.status == bs.INVALID_ARGUMENT and "int64" in error.message
    streams.release(stream)


def validated(stream, options=None):
    return out("stream_validated", byref(stream), byref(options) if options else None)


def spoiled(values):
    """Text that is none: pyarrow does not look."""
    data = pa.array(values, pa.binary()).cast(pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), data.buffers())


def test_arrays_are_validated():
    good, bad = pa.array(["a", "b"]), spoiled([b"c", b"\xff"])
    stream = validated(streams.from_arrays([good, bad, good]))
    support.release(streams.next_of(stream))
    for _ in range(2):
        error = refused(streams.next_of, stream)
        assert (error.status, error.rule, error.path, error.row, error.batch) == (bs.INVALID_DATA, "B8", "$", 1, 1)
    exported = Exported(stream)
    assert exported.next()[0] == errno.EINVAL
    assert exported.text().startswith("INVALID_DATA (B8) in batch 1 at $, row 1: ")
    exported.release()
    # At a level that does not look, nothing is found.
    stream = validated(streams.from_arrays([good, bad, good]), bs.ValidateOptions(level=1))
    support.release(*streams.drained(stream))
    streams.release(stream)


def test_findings_name_their_batch():
    heard = []
    listener = bs.ON_FINDING(lambda ctx, severity, finding: heard.append((ctx, finding[0].batch, finding[0].row)) or 0)
    good, bad = pa.array(["a", "b"]), spoiled([b"\xff", b"x", b"\xff"])
    stream = validated(streams.from_arrays([good, bad]), bs.ValidateOptions(ctx=4, on_finding=listener))
    support.release(streams.next_of(stream))
    assert refused(streams.next_of, stream).batch == 1
    streams.release(stream)
    assert heard == [(4, 1, 0), (4, 1, 2)]
    stops = bs.ON_FINDING(lambda ctx, severity, finding: 1)
    stream = validated(streams.from_arrays([bad]), bs.ValidateOptions(on_finding=stops))
    assert refused(streams.next_of, stream).rule == "B8"
    streams.release(stream)


def test_options_that_are_refused():
    stream = streams.from_arrays(BATCHES)
    for members in ({"level": 3}, {"profile": 9}, {"staging_bytes": -1}):
        assert refused(validated, stream, bs.ValidateOptions(**members)).status == bs.INVALID_ARGUMENT
        assert stream.value
    # Taken and given have to lie apart.
    error = refused(call, "stream_validated", byref(stream), None, byref(stream))
    assert error.status == bs.INVALID_ARGUMENT and stream.value
    streams.release(stream)


def test_memory_that_nobody_can_read_is_not_validated():
    steps = [Placed(pa.array([1]), 14)]
    stream = validated(Producer(steps, pa.int64(), device_type=14).imported())
    error = refused(streams.next_of, stream)
    assert (error.status, error.batch) == (bs.UNSUPPORTED, 0)
    streams.release(stream)
    stream = validated(Producer(steps, pa.int64(), device_type=14).imported(), bs.ValidateOptions(level=2))
    support.release(*streams.drained(stream))
    streams.release(stream)


def test_layers_on_layers():
    producer = Producer(BATCHES, SCHEMA, True)
    stream = producer.imported()
    for _ in range(20):
        stream = validated(selected(stream, 1, 0))
    exported = Exported(stream, True)
    code, schema = exported.schema()
    assert code == 0 and pa.Schema._import_from_c(addressof(schema)).names == ["a", "s"]
    code, array = exported.next()
    assert code == 0 and data_of(array, True) == BATCHES[0]
    exported.release()
    producer.done()


def test_many_threads_one_at_a_time():
    """Whoever is turned away tries again: every array is given once, whoever asks."""
    n = 400
    stream = streams.from_arrays([pa.array([i]) for i in range(n)])
    found, refusals = [], []

    def ask():
        while True:
            handle, error = c_void_p(), bs.Error()
            status = lib.bowstring_stream_next(stream, byref(handle), byref(error))
            if status == bs.INVALID_ARGUMENT:
                refusals.append(error.rule)
                continue
            assert status == bs.OK
            if not handle.value:
                return
            found.append(handle)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = sorted(streams.as_pyarrow(handle, pa.Array)[0].as_py() for handle in found)
    assert values == list(range(n))
    streams.release(stream)
