"""Asynchronous streams: both sides, rule by rule."""

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
from asynchronous import Handler, Producer
from bowstring_ctypes import BowstringError, call, lib, out
from streams import Callbacks, Fails

KIND = pa.int32()
HUGE = 2**63 - 1


@pytest.fixture(autouse=True)
def all_is_let_go(nothing_left):
    yield
    assert asynchronous.gone()


def arrays(n):
    """As many arrays, each as long as its number."""
    return [pa.array(range(i), KIND) for i in range(n)]




def empty():
    kind = support.type_from(KIND)
    made = out("stream_from_arrays", kind, None, 0)
    lib.bowstring_type_release(kind)
    return made


def stream_of(n):
    return streams.from_arrays(arrays(n)) if n else empty()


def called(steps):
    """A stream over callbacks, and the callbacks."""
    callbacks, kind = Callbacks(steps, text=True), support.type_from(KIND)
    stream = callbacks.made(kind)
    lib.bowstring_type_release(kind)
    return callbacks, stream


def refused(function, *arguments):
    with pytest.raises(BowstringError) as caught:
        function(*arguments)
    return caught.value


def name_of(error):
    return lib.bowstring_status_name(error.status).decode()


def drained(stream):
    """The lengths of all arrays of a stream."""
    lengths = []
    while (handle := streams.next_of(stream)) is not None:
        lengths.append(len(streams.as_pyarrow(handle, pa.Array)))
    return lengths


# ---- the producer: to_async ----


@pytest.mark.parametrize("n", [0, 1, 7])
def test_what_is_asked_for_comes(n):
    handler = Handler(ask=n + 1).given(stream_of(n))
    assert handler.finish() == list(range(n))
    assert handler.heard == ["schema"] + ["task"] * n + ["end", "release"]
    assert handler.kind == "int32" and handler.device_type == 1
    assert threading.get_ident() not in handler.threads


def test_as4_never_more_than_was_asked_for():
    handler = Handler().given(stream_of(5))
    for total in (1, 3):
        handler.request(total)
        end = time.monotonic() + asynchronous.PATIENCE
        while handler.heard.count("task") < {1: 1, 3: 4}[total] and time.monotonic() < end:
            time.sleep(0.001)
        # Time to do wrong.
        time.sleep(0.05)
        assert handler.heard.count("task") == {1: 1, 3: 4}[total] and "end" not in handler.heard
    handler.request(1)
    time.sleep(0.05)
    # The end takes a request as well.
    assert handler.heard[-1] == "task"
    handler.request(1)
    assert handler.finish() == [0, 1, 2, 3, 4]
    assert handler.heard[-2:] == ["end", "release"]


def test_requests_add_up_and_stay_there():
    handler = Handler(ask=HUGE, on_task=lambda one: one.request(HUGE)).given(stream_of(6))
    assert handler.finish() == list(range(6))
    assert handler.heard[-2:] == ["end", "release"]


def test_requests_inside_the_callbacks():
    # AS6: nothing is called from inside a request, or the handler would be called twice at a time.
    handler = Handler(ask=1, on_task=lambda one: one.request(1)).given(stream_of(300))
    assert handler.finish() == list(range(300))


@pytest.mark.parametrize("n", [0, -1, -(2**63)])
@pytest.mark.parametrize("place", ["schema", "task", "outside"])
def test_as6_a_request_for_nothing_is_an_error(n, place):
    ask = lambda one: one.request(n)
    handler = Handler(
        on_schema=ask if place == "schema" else None, on_task=ask if place == "task" else None, ask=0 if place == "outside" else 3
    ).given(stream_of(9))
    if place == "outside":
        handler.request(n)
    handler.finish()
    assert handler.heard[-2:] == ["error", "release"] and handler.heard.count("error") == 1
    code, text = handler.errors[0]
    assert code == errno.EINVAL and "(AS6)" in text and f"one of {n}" in text
    # As far as it had come.
    assert handler.heard.count("task") == {"schema": 0, "task": 1, "outside": 0}[place]


@pytest.mark.parametrize("number", [1, 5, -1])
@pytest.mark.parametrize("place", ["schema", "task", "end"])
def test_as3_as4_nothing_but_the_release_after_an_error_returned(place, number):
    def on_task(one):
        last = one.heard[-1]
        return number if last == place else 0

    handler = Handler(on_schema=(lambda one: number) if place == "schema" else None, on_task=on_task, ask=9).given(stream_of(2))
    handler.finish()
    expected = {"schema": ["schema"], "task": ["schema", "task"], "end": ["schema", "task", "task", "end"]}[place]
    assert handler.heard == expected + ["release"]


@pytest.mark.parametrize("place", ["schema", "task", "outside"])
def test_as7_a_cancel_is_no_error(place):
    def cancel(one):
        for _ in range(3):
            one.cancel()
        # After it a request does nothing, not even a bad one.
        one.request(4)
        one.request(0)

    handler = Handler(
        on_schema=cancel if place == "schema" else None, on_task=cancel if place == "task" else None,
        ask=1 if place == "task" else 0,
    ).given(stream_of(5))
    if place == "outside":
        cancel(handler)
    handler.finish()
    assert handler.heard == ["schema"] + ["task"] * (place == "task") + ["release"]


def test_as7_a_cancel_while_the_producer_runs():
    entered, goes_on = threading.Event(), threading.Event()

    def slow():
        entered.set()
        assert goes_on.wait(asynchronous.PATIENCE)
        return 5

    callbacks, stream = called([slow])
    handler = Handler(ask=2).given(stream)
    assert entered.wait(asynchronous.PATIENCE)
    threads = [threading.Thread(target=handler.cancel) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    goes_on.set()
    handler.finish()
    # The failure of the producer came after the cancel, so that nobody wants to hear of it.
    assert handler.heard == ["schema", "release"]
    assert asynchronous.gone()
    callbacks.done()


def test_as5_tasks_are_asked_later_by_any_thread():
    handler = Handler(ask=5, keep=True).given(stream_of(4))
    assert handler.done.wait(asynchronous.PATIENCE)
    kept = handler.tasks
    threads = [threading.Thread(target=lambda one=one: handler.arrays.append(asynchronous.extract(one)[1])) for one in kept]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.tasks = []
    assert sorted(handler.finish()) == [0, 1, 2, 3]


def test_as5_unwanted_tasks_and_second_calls():
    def unwanted(one):
        if one.heard[-1] == "task":
            task = one.tasks.pop()
            assert asynchronous.extract(task, wanted=False) == (0, None)
            code, array = asynchronous.extract(task)
            assert code == errno.EINVAL
            assert asynchronous.extract(task, wanted=False)[0] == errno.EINVAL
        return 0

    handler = Handler(ask=4, keep=True, on_task=unwanted).given(stream_of(3))
    assert handler.finish() == []
    assert handler.heard.count("task") == 3


@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_error_comes_at_its_array(at):
    callbacks, stream = called([*arrays(at), Fails(errno.ENOENT, b"no such file")])
    handler = Handler(ask=9).given(stream)
    assert handler.finish() == list(range(at))
    assert handler.heard == ["schema"] + ["task"] * at + ["error", "release"]
    code, text = handler.errors[0]
    assert code == errno.ENOENT and "no such file" in text and f"in batch {at}" in text
    assert asynchronous.gone()
    callbacks.done()


def test_a_stream_that_was_cancelled_before_is_an_error():
    stream = stream_of(2)
    lib.bowstring_stream_cancel(stream)
    handler = Handler(ask=3).given(stream)
    handler.finish()
    # This is not the consumer's cancel.
    assert handler.heard == ["schema", "error", "release"] and handler.errors[0][0] == errno.ECANCELED


@pytest.mark.parametrize("missing", ["on_schema", "on_next_task", "on_error", "release"])
def test_as2_a_handler_without_its_callbacks(missing):
    handler, stream = Handler(), stream_of(1)
    kept = getattr(handler.struct, missing)
    setattr(handler.struct, missing, None)
    error = refused(call, "stream_to_async", byref(stream), byref(handler.struct))
    assert (name_of(error), error.rule) == (("RELEASED", "M2") if missing == "release" else ("INVALID_DATA", "AS2"))
    # Nothing was taken, and nothing was called.
    assert stream.value and handler.struct.producer == 0xA5A5A5A5 and not handler.heard
    setattr(handler.struct, missing, kept)
    handler.ask = 2
    assert handler.given(stream).finish() == [0]


def test_to_async_arguments():
    handler, stream = Handler(ask=2), stream_of(1)
    for arguments in [(None, byref(handler.struct)), (byref(c_void_p()), byref(handler.struct)), (byref(stream), None)]:
        assert name_of(refused(call, "stream_to_async", *arguments)) == "INVALID_ARGUMENT"
    # The stream's place within the handler.
    inside = ctypes.cast(addressof(handler.struct) + 40, ctypes.POINTER(c_void_p))
    assert name_of(refused(call, "stream_to_async", inside, byref(handler.struct))) == "INVALID_ARGUMENT"
    assert not handler.heard
    assert handler.given(stream).finish() == [0]


def test_a_stream_that_is_being_asked_is_refused():
    handler, names = Handler(), []

    def asks(*_):
        names.append(refused(call, "stream_to_async", byref(stream), byref(handler.struct)))
        return 5

    callbacks, stream = called([asks])
    refused(streams.next_of, stream)
    assert [error.rule for error in names] == ["ST6"] and stream.value and not handler.heard
    streams.release(stream)


# ---- the consumer: from_async ----


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
