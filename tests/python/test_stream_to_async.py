"""Asynchronous streams, the producer: what the library hands to a handler, rule by rule."""

import ctypes
import errno
import subprocess
import sys
import textwrap
import threading
import time
from ctypes import addressof, byref, c_void_p
from pathlib import Path

import pytest

import asynchronous
import streams
from asynchronous import Handler, all_is_let_go, arrays, called, name_of, refused, stream_of  # noqa: F401
from bowstring_ctypes import call, lib
from streams import Fails

HUGE = 2**63 - 1


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


def test_a_thread_that_cannot_start():
    # A limit that leaves room for what the call allocates, and none for a thread's stack.
    limit = textwrap.dedent(
        f"""
        import resource, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import bowstring_ctypes as bs
        from asynchronous import Handler, stream_of
        from bowstring_ctypes import byref, lib
        stream, handler, error = stream_of(3), Handler(ask=4), bs.Error()
        now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 20), resource.RLIM_INFINITY))
        status = lib.bowstring_stream_to_async(byref(stream), byref(handler.struct), byref(error))
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert status == bs.OUT_OF_MEMORY, (status, error.message)
        assert error.native_code == 11 and b"new thread" in error.message, error.message
        # Nothing was taken, and nobody was called.
        assert stream.value and handler.struct.producer == 0xA5A5A5A5 and not handler.heard
        assert handler.given(stream).finish() == [0, 1, 2]
        print("refused, and then not")
        """
    )
    run = subprocess.run([sys.executable, "-c", limit], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stdout.endswith("refused, and then not\n"), run.stdout + run.stderr
