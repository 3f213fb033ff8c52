"""Asynchronous streams, the consumer: what the library makes of a producer's calls, rule by rule."""

import ctypes
import errno
import threading
import time
from ctypes import addressof, byref, c_void_p

import pyarrow as pa
import pytest

import asynchronous
import bowstring_ctypes as bs
import streams
import support
from asynchronous import KIND, Producer, all_is_let_go, arrays, drained, name_of, refused  # noqa: F401
from bowstring_ctypes import BowstringError, call, lib


def test_arrays_come_as_they_were_handed_over():
    producer = Producer(3)
    assert producer.schema(KIND) == 0 and producer.asked == 3
    for array in arrays(3):
        assert producer.task(array) == 0
    assert len(streams.as_pyarrow(streams.next_of(producer.stream), pa.Array)) == 0
    assert producer.asked == 4
    assert producer.task(pa.array([7], KIND)) == 0 and producer.end() == 0
    producer.release()
    assert drained(producer.stream) == [1, 2, 1]
    assert streams.next_of(producer.stream) is None
    # After the end nothing is asked for.
    assert producer.asked == 4 and not producer.cancelled
    producer.close()


def threaded(producer, work):
    thread = threading.Thread(target=work, args=(producer,))
    thread.start()
    return thread


def produce(n):
    def work(producer):
        if producer.schema(KIND):
            producer.release()
            return
        for i, array in enumerate(arrays(n)):
            if producer.wait(i):
                break
            with producer.changed:
                # Those that were not asked for their array are at most as many as there is room for.
                assert producer.unextracted < producer.capacity, "more than there is room for"
            producer.task(array)
        else:
            if not producer.wait(n):
                producer.end()
        producer.release()

    return work


@pytest.mark.parametrize("capacity", [1, 2, 16])
@pytest.mark.parametrize("n", [0, 1, 7, 200])
def test_back_pressure(n, capacity):
    producer = Producer(capacity)
    producer.capacity = capacity
    thread = threaded(producer, produce(n))
    assert drained(producer.stream) == list(range(n))
    thread.join()
    assert producer.asked <= n + capacity and producer.dropped == 0
    producer.close()


def test_the_type_is_waited_for():
    producer = Producer(1)
    found = []

    def ask():
        found.append(bs.text_of("type_to_text", c_void_p(lib.bowstring_stream_type(producer.stream))))
        found.append(lib.bowstring_stream_device(producer.stream).type)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.05)
    assert not found
    assert producer.schema(KIND) == 0
    thread.join(asynchronous.PATIENCE)
    assert found == ["int32 not null", 1] or found == ["int32", 1]
    producer.end()
    producer.close()


@pytest.mark.parametrize("how", ["error", "cancel", "release"])
def test_a_type_that_does_not_come(how):
    producer = Producer(1)
    found = []
    thread = threading.Thread(target=lambda: found.append(lib.bowstring_stream_type(producer.stream)))
    thread.start()
    if how == "error":
        producer.error(errno.EIO, b"no disk")
    elif how == "cancel":
        lib.bowstring_stream_cancel(producer.stream)
    producer.release()
    thread.join(asynchronous.PATIENCE)
    assert found == [None] and lib.bowstring_stream_device(producer.stream).type == 0
    wanted = {"error": "CALLBACK_ERROR", "cancel": "CANCELLED", "release": "INVALID_DATA"}[how]
    raw = bs.ArrowDeviceArrayStream()
    assert name_of(refused(call, "stream_export", byref(producer.stream), byref(raw))) == wanted
    assert producer.stream.value
    assert name_of(refused(streams.next_of, producer.stream)) == wanted
    producer.close()


def test_what_takes_the_stream_knows_its_type():
    batch = pa.record_batch({"a": [1, 2], "b": ["x", "y"]})
    for take in ("select", "validated", "export"):
        producer = Producer(2)
        thread = threaded(producer, lambda one: (one.schema(batch.schema), one.task(batch), one.end(), one.release()))
        if take == "export":
            exported = streams.Exported(producer.stream)
            code, schema = exported.schema()
            assert exported.struct.device_type == 1 and code == 0
            lib.bowstring_schema_release(byref(schema))
            code, array = exported.next()
            assert code == 0 and array.array.length == 2
            lib.bowstring_device_array_release(byref(array))
            exported.release()
        else:
            inner = c_void_p()
            arguments = {"select": [(ctypes.c_size_t * 1)(1), 1], "validated": [None]}[take]
            call(f"stream_{take}", byref(producer.stream), *arguments, byref(inner))
            [handle] = streams.drained(inner)
            expected = batch.select([1]) if take == "select" else batch
            assert streams.as_pyarrow(handle) == expected
            streams.release(inner)
        thread.join()
        producer.close()


def test_as8_an_error_comes_behind_the_arrays():
    producer = Producer(4)
    producer.schema(KIND)
    producer.task(pa.array([1], KIND))
    producer.error(errno.ENOSPC, b"the disk is full")
    producer.error(errno.EIO, b"another one")
    producer.release()
    assert len(streams.as_pyarrow(streams.next_of(producer.stream), pa.Array)) == 1
    for _ in range(2):
        error = refused(streams.next_of, producer.stream)
        assert (name_of(error), error.native_code, error.batch) == ("CALLBACK_ERROR", errno.ENOSPC, 1)
        assert "the disk is full" in error.message and "another" not in error.message
    producer.close()


@pytest.mark.parametrize("code, name", [(errno.ENOMEM, "OUT_OF_MEMORY"), (errno.ENOSYS, "UNSUPPORTED"), (0, "CALLBACK_ERROR")])
def test_numbers_of_errors(code, name):
    producer = Producer(1)
    producer.error(code, None)
    producer.release()
    assert name_of(refused(streams.next_of, producer.stream)) == name
    producer.close()


def after_schema(*steps):
    def play(producer):
        assert producer.schema(KIND) == 0
        for step in steps:
            step(producer)

    return play


one = lambda producer: producer.task(pa.array([1], KIND))
WRONG = {
    "no producer": ("AS2", lambda p: p.schema(KIND, producer=False)),
    "no request": ("AS2", lambda p: (setattr(p.own, "request", None), p.schema(KIND))),
    "no cancel": ("AS2", lambda p: (setattr(p.own, "cancel", None), p.schema(KIND))),
    "unknown device": ("D2", lambda p: (setattr(p.own, "device_type", 5), p.schema(KIND))),
    "schema is NULL": ("AS3", lambda p: p.schema(None)),
    "schema is released": ("AS3", lambda p: p.schema("released")),
    "task first": ("AS3", one),
    "end first": ("AS3", lambda p: p.end()),
    "schema twice": ("AS3", after_schema(lambda p: p.schema(KIND))),
    "more than asked for": ("AS4", after_schema(one, one, one, one)),
    "task behind the end": ("AS4", after_schema(lambda p: p.end(), one)),
    "end twice": ("AS4", after_schema(lambda p: p.end(), lambda p: p.end())),
    "no extract_data": ("AS5", after_schema(lambda p: p.task(None, extract=False))),
    "released array": ("AS5", after_schema(lambda p: p.task(lambda array: 0))),
    "release alone": ("AS8", lambda p: None),
    "release without end": ("AS8", after_schema(one)),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_a_producer_must_not_do(what):
    rule, play = WRONG[what]
    producer = Producer(2)
    play(producer)
    producer.release()
    given = 0
    with pytest.raises(BowstringError) as caught:
        while True:
            support.release(streams.next_of(producer.stream))
            given += 1
    assert (name_of(caught.value), caught.value.rule, caught.value.batch) == ("INVALID_DATA", rule, given), caught.value
    again = refused(streams.next_of, producer.stream)
    assert again.message == caught.value.message
    # The arrays that were right came before.
    assert given == {"more than asked for": 2, "release without end": 1}.get(what, 0)
    producer.close()


def test_wrong_calls_are_told_to_the_producer():
    for what in ("task first", "end first", "schema is NULL", "no producer"):
        producer = Producer(2)
        assert WRONG[what][1](producer) == errno.EINVAL
        # Without its release: whoever did wrong is not waited for.
        assert name_of(refused(streams.next_of, producer.stream)) == "INVALID_DATA"
        producer.close()


def test_calls_after_the_release():
    producer = Producer(1)
    kept = bs.ArrowAsyncDeviceStreamHandler.from_buffer_copy(producer.struct)
    producer.schema(KIND)
    producer.release()
    for name in ("on_schema", "on_next_task", "on_error", "release"):
        setattr(producer.struct, name, getattr(kept, name))
    schema = bs.ArrowSchema()
    KIND._export_to_c(addressof(schema))
    assert asynchronous.ON_SCHEMA(kept.on_schema)(addressof(producer.struct), byref(schema)) == errno.EINVAL
    lib.bowstring_schema_release(byref(schema))
    assert producer.end() == errno.EINVAL
    producer.error(5, b"late")
    asynchronous.RELEASE(kept.release)(addressof(producer.struct))
    producer.struct.release = None
    producer.close()


@pytest.mark.parametrize("code", [5, errno.ENOMEM])
def test_as5_a_task_that_fails(code):
    producer = Producer(2)
    producer.schema(KIND)
    producer.task(code)
    producer.error(code, b"as said")
    producer.release()
    error = refused(streams.next_of, producer.stream)
    assert error.native_code == code and "extract_data" in error.message
    producer.close()


def test_as5_what_a_task_that_fails_leaves_is_released():
    def leaves(array):
        streams.export_into(pa.array([1], KIND), addressof(array), False)
        return 5

    producer = Producer(2)
    producer.schema(KIND)
    producer.task(leaves)
    assert refused(streams.next_of, producer.stream).native_code == 5
    producer.error(5, b"as said")
    producer.close()


@pytest.mark.parametrize("left", [0, 1, 3])
def test_a_stream_that_is_let_go_first(left):
    producer = Producer(4)
    producer.schema(KIND)
    for array in arrays(left):
        producer.task(array)
    streams.release(producer.stream)
    producer.stream = c_void_p()
    assert producer.cancelled == 1 and producer.dropped == left
    # AS7: tasks may still come, and are asked for their array, which nobody wants.
    assert producer.task(pa.array([1], KIND)) == 0 and producer.dropped == left + 1
    assert producer.end() == 0
    producer.error(5, b"nobody hears it")
    producer.close()


def test_a_handler_that_never_went_to_a_producer():
    producer = Producer(1)
    producer.close()
    producer = Producer(1)
    streams.release(producer.stream)
    producer.stream = c_void_p()
    # The schema comes when nobody wants it: the producer is told, and lets go.
    assert producer.schema(KIND) == errno.ECANCELED and producer.asked == 0
    producer.close()


def test_a_cancel_wakes_whoever_waits():
    for wrapped in (False, True):
        producer = Producer(1)
        producer.schema(KIND)
        stream = producer.stream
        if wrapped:
            inner = c_void_p()
            call("stream_validated", byref(producer.stream), None, byref(inner))
            stream = inner
        caught = []
        thread = threading.Thread(target=lambda: caught.append(refused(streams.next_of, stream)))
        thread.start()
        time.sleep(0.02)
        lib.bowstring_stream_cancel(stream)
        lib.bowstring_stream_cancel(stream)
        thread.join(asynchronous.PATIENCE)
        assert [name_of(error) for error in caught] == ["CANCELLED"] and producer.cancelled == 1
        if wrapped:
            streams.release(inner)
        producer.close()


def test_a_producer_that_calls_back_from_inside_a_request():
    # AS6 forbids it; it must neither hang nor crash.
    def at_once(producer):
        if producer.given < 3:
            producer.given += 1
            producer.task(pa.array([1], KIND))
        elif producer.given == 3:
            producer.given += 1
            producer.end()
            producer.release()

    producer = Producer(1, on_request=at_once)
    producer.given = 0
    assert producer.schema(KIND) == 0
    assert drained(producer.stream) == [1, 1, 1]
    producer.close()


def test_from_async_arguments():
    struct, stream = bs.ArrowAsyncDeviceStreamHandler(), c_void_p(5)
    error = refused(call, "stream_from_async", 0, byref(struct), byref(stream))
    assert name_of(error) == "INVALID_ARGUMENT" and not struct.release and not stream.value
    for capacity in (2**48, 2**63):
        assert name_of(refused(call, "stream_from_async", capacity, byref(struct), byref(stream))) == "OUT_OF_MEMORY"
    for arguments in [(1, None, byref(stream)), (1, byref(struct), None)]:
        assert name_of(refused(call, "stream_from_async", *arguments)) == "INVALID_ARGUMENT"
    inside = ctypes.cast(addressof(struct) + 40, ctypes.POINTER(c_void_p))
    assert name_of(refused(call, "stream_from_async", 1, byref(struct), inside)) == "INVALID_ARGUMENT"
