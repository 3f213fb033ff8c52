"""Streams of somebody else: every step of the rules, and every error path."""

import ctypes
import errno
from ctypes import addressof, byref, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import streams
import support
from bowstring_ctypes import BowstringError, call, lib, out
from streams import Callbacks, Fails, Placed, Producer

BOTH = pytest.mark.parametrize("host", [False, True], ids=["device", "host"])


SCHEMA = pa.schema({"a": pa.int64(), "s": pa.string()})


def batch(*values):
    return pa.RecordBatch.from_pydict({"a": list(values), "s": [str(value) for value in values]}, SCHEMA)


BATCHES = [batch(1, 2), batch(), batch(3)]


def refused(function, *arguments):
    with pytest.raises(BowstringError) as caught:
        function(*arguments)
    return caught.value


@BOTH
def test_a_stream_is_drained_and_let_go(host):
    producer = Producer(BATCHES, SCHEMA, host)
    stream = producer.imported()
    assert lib.bowstring_stream_device(stream).type == 1
    found = streams.drained(stream)
    # The end was asked for once, whoever asks us again.
    assert producer.calls == ["get_schema"] + ["get_next"] * 4
    streams.release(stream)
    producer.done()
    assert [streams.as_pyarrow(handle) for handle in found] == BATCHES


@BOTH
def test_a_stream_that_is_dropped_early(host):
    # Public case A11 (e): three batches, one of which is taken.
    producer = Producer(BATCHES, SCHEMA, host)
    stream = producer.imported()
    first = streams.next_of(stream)
    streams.release(stream)
    producer.done()
    assert producer.calls == ["get_schema", "get_next", "release"]
    assert streams.as_pyarrow(first) == BATCHES[0]


@BOTH
def test_type_and_arrays_outlive_the_stream(host):
    producer = Producer(BATCHES, SCHEMA, host)
    stream = producer.imported()
    kind = streams.kind_of(stream)
    array = streams.next_of(stream)
    streams.release(stream)
    assert bs.text_of("type_to_text", kind) == "struct<a: int64, s: utf8> not null"
    lib.bowstring_type_release(kind)
    assert streams.as_pyarrow(array) == BATCHES[0]
    producer.done()


@BOTH
def test_columns_alone_are_a_stream(host):
    arrays = [pa.array([1, None]), pa.array([], pa.int64())]
    producer = Producer(arrays, pa.int64(), host)
    stream = producer.imported()
    found = streams.drained(stream)
    streams.release(stream)
    producer.done()
    assert [streams.as_pyarrow(one, pa.Array) for one in found] == arrays


@BOTH
def test_an_error_is_told_and_repeated(host):
    # Public case A22: the producer has one buffer for its texts.
    leaves = batch(9)
    producer = Producer([BATCHES[0], Fails(errno.EIO, b"first", leaves), Fails(errno.EIO, b"second")], SCHEMA, host)
    stream = producer.imported()
    support.release(streams.next_of(stream))
    for _ in range(3):
        error = refused(streams.next_of, stream)
        assert (error.status, error.native_code, error.batch) == (bs.CALLBACK_ERROR, errno.EIO, 1)
        assert error.message == f"expected 0 of get_next, found {errno.EIO} (EIO): first"
    assert producer.calls.count("get_next") == 2 and producer.calls.count("get_last_error") == 1
    array = bs.ArrowDeviceArray()
    ctypes.memset(byref(array), 0xAA, ctypes.sizeof(array))
    error = refused(call, "stream_next_device_array", stream, byref(array))
    assert error.message.endswith("first") and bytes(array) == bytes(ctypes.sizeof(array))
    streams.release(stream)
    producer.done()


NUMBERS = {
    errno.ENOMEM: bs.OUT_OF_MEMORY,
    errno.ENOSYS: bs.UNSUPPORTED,
    errno.ENOTSUP: bs.UNSUPPORTED,
    errno.ECANCELED: bs.CANCELLED,
    errno.EINVAL: bs.CALLBACK_ERROR,
    errno.EIO: bs.CALLBACK_ERROR,
    errno.ERANGE: bs.CALLBACK_ERROR,
    errno.EDOM: bs.CALLBACK_ERROR,
    # Any number that is not 0 is an error.
    1: bs.CALLBACK_ERROR,
    4095: bs.CALLBACK_ERROR,
    -1: bs.CALLBACK_ERROR,
    -(2**31): bs.CALLBACK_ERROR,
}


@BOTH
@pytest.mark.parametrize("code", NUMBERS)
def test_error_numbers(code, host):
    producer = Producer([Fails(code, b"why")], SCHEMA, host)
    stream = producer.imported()
    error = refused(streams.next_of, stream)
    assert (error.status, error.native_code, error.batch) == (NUMBERS[code], code, 0)
    assert error.message.endswith(": why")
    streams.release(stream)
    producer.done()


@BOTH
@pytest.mark.parametrize("text", [None, b"", b"\xff\xfe bad", b"x" * 3000])
def test_texts(text, host):
    producer = Producer([Fails(errno.EIO, text)], SCHEMA, host)
    stream = producer.imported()
    message = refused(streams.next_of, stream).message
    if text is None:
        assert message.endswith("without a text")
    elif text.startswith(b"x"):
        assert message.endswith("x" * 900)
    elif text:
        assert message.endswith("\ufffd\ufffd bad")
    streams.release(stream)
    producer.done()


@BOTH
def test_a_schema_that_fails(host):
    for failure in (Fails(errno.EINVAL, b"no schema"), Fails(errno.ENOMEM, None), Fails(5, b"x", leaves=SCHEMA)):
        producer = Producer([], SCHEMA, host, schema=failure)
        error = refused(producer.imported)
        assert error.status == NUMBERS[failure.code] and error.native_code == failure.code
        assert "get_schema" in error.message and error.batch == -1
        # It is still the caller's.
        assert producer.struct.release and producer.released == 0
        lib.bowstring_host_stream_release(byref(producer.struct)) if host else lib.bowstring_device_stream_release(
            byref(producer.struct)
        )
        producer.done()
        assert producer.calls[-1] == "release"


@BOTH
def test_a_schema_that_breaks_a_rule(host):
    # Public case A22: the message is ours, and nothing of the stream is called after its release.
    released = []

    def broken(schema):
        SCHEMA._export_to_c(addressof(schema))
        inner = schema.release
        text = ctypes.create_string_buffer(b"!!")
        kept.append(text)
        before = ctypes.CFUNCTYPE(None, c_void_p)(inner)

        @ctypes.CFUNCTYPE(None, ctypes.POINTER(bs.ArrowSchema))
        def release(at):
            released.append(1)
            before(addressof(at.contents))

        kept.append(release)
        schema.format = addressof(text)
        schema.release = ctypes.cast(release, c_void_p).value
        return 0

    def nothing(schema):
        return 0

    kept = []
    producer = Producer([], SCHEMA, host, schema=broken)
    error = refused(producer.imported)
    assert (error.status, error.rule) == (bs.INVALID_DATA, "F1") and '"!!"' in error.message
    assert released == [1] and producer.calls == ["get_schema"]
    producer.schema = nothing
    error = refused(producer.imported)
    assert (error.status, error.rule) == (bs.INVALID_DATA, "ST2")
    assert producer.calls == ["get_schema"] * 2
    producer.schema = None
    stream = producer.imported()
    streams.release(stream)
    producer.done()


@BOTH
def test_structs_that_are_no_streams(host):
    producer = Producer(BATCHES, SCHEMA, host)
    for name in ("get_schema", "get_next", "get_last_error"):
        at = getattr(producer.struct, name)
        setattr(producer.struct, name, None)
        error = refused(producer.imported)
        assert (error.status, error.rule) == (bs.INVALID_DATA, "ST1") and name in error.message
        setattr(producer.struct, name, at)
    if not host:
        producer.struct.device_type = 5
        assert refused(producer.imported).rule == "D2"
        producer.struct.device_type = 1
    assert producer.calls == []
    streams.release(producer.imported())
    assert refused(producer.imported).status == bs.RELEASED
    producer.done()


@BOTH
def test_an_array_that_does_not_fit_the_schema(host):
    other = pa.RecordBatch.from_pydict({"a": [1]})
    producer = Producer([BATCHES[0], other, BATCHES[0]], SCHEMA, host)
    stream = producer.imported()
    support.release(streams.next_of(stream))
    for _ in range(2):
        error = refused(streams.next_of, stream)
        assert (error.status, error.rule, error.path, error.batch) == (bs.INVALID_DATA, "A7", "$", 1)
    assert producer.calls.count("get_next") == 2
    streams.release(stream)
    producer.done()


def test_device_types_and_ids():
    # Ids may differ, types may not.
    arrays = [pa.array([1, 2]), pa.array([3])]
    steps = [Placed(arrays[0], 2, 0), Placed(arrays[1], 2, 7), Placed(arrays[0], 13, 0)]
    producer = Producer(steps, pa.int64(), device_type=2)
    stream = producer.imported()
    device = lib.bowstring_stream_device(stream)
    assert (device.type, device.id) == (2, -1)
    for expected in (0, 7):
        handle, found = streams.next_of(stream), bs.Device()
        call("array_device", handle, byref(found), None)
        assert (found.type, found.id) == (2, expected)
        support.release(handle)
    error = refused(streams.next_of, stream)
    assert (error.status, error.rule, error.batch) == (bs.INVALID_DATA, "DS1", 2)
    assert "2 (CUDA)" in error.message and "13 (CUDA_MANAGED)" in error.message
    streams.release(stream)
    producer.done()


@BOTH
def test_calls_that_meet_another_one(host):
    # From inside the producer, which is the same as from another thread.
    statuses = []

    def meddle(array):
        error = bs.Error()
        for name, arguments in (
            ("stream_next", (stream, byref(c_void_p()))),
            ("stream_next_device_array", (stream, byref(bs.ArrowDeviceArray()))),
            ("stream_export", (byref(stream), byref(bs.ArrowDeviceArrayStream()))),
            ("stream_export_host", (byref(stream), None, byref(bs.ArrowArrayStream()))),
            ("stream_select", (byref(stream), None, 0, byref(c_void_p()))),
            ("stream_validated", (byref(stream), None, byref(c_void_p()))),
            ("stream_collect", (byref(stream), None, byref(c_void_p()))),
        ):
            status = getattr(lib, f"bowstring_{name}")(*arguments, byref(error))
            statuses.append((status, lib.bowstring_rule_name(error.rule), bool(stream.value)))
        # These are fine at any time.
        assert lib.bowstring_stream_type(stream) and lib.bowstring_stream_device(stream).type == 1
        streams.export_into(BATCHES[0], addressof(array), host)

    producer = Producer([meddle, BATCHES[1]], SCHEMA, host)
    stream = producer.imported()
    found = [streams.next_of(stream)]
    assert not producer.complaints, producer.complaints
    found += streams.drained(stream)
    assert statuses == [(bs.INVALID_ARGUMENT, b"ST6", True)] * 7
    assert [streams.as_pyarrow(handle) for handle in found] == BATCHES[:2]
    streams.release(stream)
    producer.done()


@BOTH
def test_cancelling(host):
    def cancels(array):
        lib.bowstring_stream_cancel(stream)
        streams.export_into(BATCHES[0], addressof(array), host)

    producer = Producer([BATCHES[0], cancels, BATCHES[0]], SCHEMA, host)
    stream = producer.imported()
    support.release(streams.next_of(stream))
    # What came meanwhile is released.
    for _ in range(2):
        error = refused(streams.next_of, stream)
        assert (error.status, error.batch) == (bs.CANCELLED, 1)
    assert producer.calls.count("get_next") == 2
    streams.release(stream)
    producer.done()
    # A stream that is over stays what it was.
    for steps, status in (([], None), ([Fails(errno.EIO)], bs.CALLBACK_ERROR)):
        producer = Producer(steps, SCHEMA, host)
        stream = producer.imported()
        for _ in range(2):
            if status is None:
                assert streams.next_of(stream) is None
            else:
                assert refused(streams.next_of, stream).status == status
            lib.bowstring_stream_cancel(stream)
        streams.release(stream)
        producer.done()
    lib.bowstring_stream_cancel(None)


def test_null_streams():
    lib.bowstring_stream_release(None)
    assert lib.bowstring_stream_type(None) is None
    device = lib.bowstring_stream_device(None)
    assert (device.type, device.id) == (0, 0)


@pytest.mark.parametrize("as_handles", [False, True], ids=["structs", "handles"])
def test_callbacks(as_handles):
    callbacks = Callbacks([*BATCHES, Fails(errno.EIO, b"enough")], as_handles)
    kind = support.type_from(SCHEMA)
    stream = callbacks.made(kind)
    lib.bowstring_type_release(kind)
    found = [streams.next_of(stream) for _ in BATCHES]
    assert [streams.as_pyarrow(handle) for handle in found] == BATCHES
    for _ in range(2):
        error = refused(streams.next_of, stream)
        assert (error.status, error.batch, error.native_code) == (bs.CALLBACK_ERROR, 3, errno.EIO)
        assert error.message.endswith("(EIO): enough")
    assert callbacks.calls == ["get_next"] * 4 + ["get_last_error"]
    streams.release(stream)
    callbacks.done()


@pytest.mark.parametrize("as_handles", [False, True], ids=["structs", "handles"])
def test_callbacks_that_fail_with_an_array_in_hand(as_handles):
    callbacks = Callbacks([Fails(errno.ENOMEM, None, leaves=BATCHES[0])], as_handles, text=False)
    kind = support.type_from(SCHEMA)
    stream = callbacks.made(kind)
    error = refused(streams.next_of, stream)
    assert error.status == bs.OUT_OF_MEMORY and error.message.endswith("without a text")
    streams.release(stream)
    callbacks.done()
    callbacks = Callbacks([pa.RecordBatch.from_pydict({"b": [1], "s": ["x"]})], as_handles)
    stream = callbacks.made(kind)
    if as_handles:
        error = refused(streams.next_of, stream)
        assert (error.status, error.rule) == (bs.INVALID_DATA, "ST5") and "b: int64" in error.message
    else:
        # A struct has no names, so that its structure is all that can be compared.
        support.release(streams.next_of(stream))
    streams.release(stream)
    callbacks.done()
    lib.bowstring_type_release(kind)


def test_callbacks_on_another_device():
    kind = support.type_from(pa.int64())
    data = pa.array([1, 2])
    callbacks = Callbacks([data], device=(2, 3))
    stream = callbacks.made(kind)
    device = lib.bowstring_stream_device(stream)
    assert (device.type, device.id) == (2, 3)
    assert refused(streams.next_of, stream).rule == "DS1"
    streams.release(stream)
    callbacks.done()
    callbacks = Callbacks([data], as_handles=True, device=(2, 3))
    stream = callbacks.made(kind)
    assert refused(streams.next_of, stream).rule == "DS1"
    streams.release(stream)
    callbacks.done()
    lib.bowstring_type_release(kind)


def test_callbacks_that_are_refused():
    kind = support.type_from(SCHEMA)
    callbacks = Callbacks([])
    struct = callbacks.struct

    def fails(status, words):
        handle = c_void_p(1)
        error = refused(call, "stream_from_callbacks", kind, byref(struct), byref(handle))
        assert error.status == status and words in error.message and not handle.value
        assert struct.ctx == 99 and struct.release

    struct.get_next_array = bs.GET_NEXT_ARRAY(lambda ctx, to: 0)
    fails(bs.INVALID_ARGUMENT, "both")
    struct.get_next, struct.get_next_array = bs.GET_NEXT(), bs.GET_NEXT_ARRAY()
    fails(bs.INVALID_ARGUMENT, "neither")
    struct.get_next = callbacks.get_next
    struct.device = bs.Device(5, 0)
    fails(bs.INVALID_ARGUMENT, "device type")
    struct.device = bs.Device(0, 0)
    struct.struct_size -= 8
    fails(bs.INVALID_ARGUMENT, "struct_size")
    struct.struct_size += 8
    streams.release(callbacks.made(kind))
    callbacks.done()
    lib.bowstring_type_release(kind)


def test_streams_of_arrays():
    stream = streams.from_arrays(BATCHES)
    assert lib.bowstring_stream_device(stream).id == -1
    assert [streams.as_pyarrow(handle) for handle in streams.drained(stream)] == BATCHES
    streams.release(stream)
    # Not all of them are given.
    stream = streams.from_arrays(BATCHES)
    support.release(streams.next_of(stream))
    streams.release(stream)
    kind = support.type_from(SCHEMA)
    stream = streams.from_arrays([], kind)
    assert streams.drained(stream) == []
    streams.release(stream)
    assert refused(streams.from_arrays, []).status == bs.INVALID_ARGUMENT
    error = refused(streams.from_arrays, [*BATCHES, pa.array([1])])
    assert (error.status, error.rule, error.batch) == (bs.INVALID_DATA, "ST5", 3)
    error = refused(streams.from_arrays, [pa.array([1])], kind)
    assert (error.rule, error.batch) == ("ST5", 0)
    lib.bowstring_type_release(kind)


def test_arrays_on_several_devices():
    def on(device_type, device_id):
        array, schema = support.from_pyarrow(pa.array([1]))
        array.device_type, array.device_id = device_type, device_id
        return out("array_import", byref(array), byref(schema))

    def made(*handles):
        try:
            return out("stream_from_arrays", None, (c_void_p * len(handles))(*[one.value for one in handles]), len(handles))
        finally:
            support.release(*handles)

    for ids, expected in (((3, 3), 3), ((3, 4), -1)):
        stream = made(*[on(2, one) for one in ids])
        device = lib.bowstring_stream_device(stream)
        assert (device.type, device.id) == (2, expected)
        streams.release(stream)
    error = refused(made, on(2, 0), on(13, 0))
    assert (error.status, error.rule, error.batch) == (bs.INVALID_DATA, "DS1", 1)
