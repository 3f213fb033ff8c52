"""Cancelling a stream from another thread while a call waits below it: through every other stream, and two of them."""

import ctypes
import itertools
import threading
import time
from ctypes import byref, c_void_p

import pyarrow as pa
import pytest

import asynchronous
import bowstring_ctypes as bs
import devices
import streams
import support
from asynchronous import Handler
from bowstring_ctypes import CANCELLED, INVALID_ARGUMENT, PROGRESS, SYNC_NONE, BowstringError, Sync, call, lib, out
from devices import CPU, PLAIN, options

BATCH = pa.record_batch({"a": [1, 2], "b": ["x", None]})
NONE = Sync(SYNC_NONE)
SOON = 10


@pytest.fixture(autouse=True)
def clean():
    before = devices.alive()
    yield
    assert asynchronous.gone()
    devices.check_clean(before)


def moved(stream, device, depth, **members):
    return out("stream_to_device", byref(stream), device, byref(options(NONE, depth=depth, **members)))


WRAPS = {
    "validated": lambda stream: out("stream_validated", byref(stream), byref(bs.ValidateOptions(level=2))),
    "select": lambda stream: out("stream_select", byref(stream), (ctypes.c_size_t * 2)(1, 0), 2),
    "copied": lambda stream: moved(stream, CPU, 0),
    "ahead": lambda stream: moved(stream, CPU, 2),
}
CHAINS = [chain for n in (0, 1, 2) for chain in itertools.product(WRAPS, repeat=n)]
NAMES = ["-".join(chain) or "alone" for chain in CHAINS]


def wrapped(stream, chain):
    for name in chain:
        stream = WRAPS[name](stream)
    return stream


class Asynchronous:
    """A stream of a producer on no thread at all, which gives the type and then nothing."""

    def __init__(self):
        self.producer = asynchronous.Producer(2)
        assert self.producer.schema(BATCH.schema) == 0
        self.stream, self.producer.stream = self.producer.stream, c_void_p()

    def close(self):
        assert self.producer.cancelled == 1
        self.producer.close()


class Ahead:
    """A stream whose thread waits inside its producer, and is not interrupted."""

    def __init__(self):
        self.open = threading.Event()
        self.producer = streams.Producer([lambda _: self.wait()], BATCH.schema)
        self.stream = moved(self.producer.imported(), PLAIN.devices[0], 1)
        # Back to where everything can read it, which is a stream on a stream already.
        self.stream = moved(self.stream, CPU, 0)

    def wait(self):
        assert self.open.wait(SOON)
        return 5

    def close(self):
        self.producer.done()


def is_being_asked(stream):
    """Whether a call on the stream is running, without waiting for it."""
    made = c_void_p()
    try:
        call("stream_select", byref(stream), (ctypes.c_size_t * 1)(99), 1, byref(made))
    except BowstringError as error:
        return error.rule == "ST6"
    raise AssertionError("there is no such column")


ASKS = {
    "next": lambda stream: lib.bowstring_stream_next(stream, byref(c_void_p()), None),
    "struct": lambda stream: lib.bowstring_stream_next_device_array(stream, byref(bs.ArrowDeviceArray()), None),
    "collect": lambda stream: lib.bowstring_stream_collect(byref(stream), None, byref(c_void_p()), None),
}


class Asking(threading.Thread):
    """Asks a stream, and has come to where it waits when it was made."""

    def __init__(self, stream, ask):
        super().__init__()
        self.stream, self.ask, self.status = stream, ask, None
        self.start()
        end = time.monotonic() + SOON
        while not is_being_asked(stream):
            assert self.is_alive() and time.monotonic() < end, "nobody waits"

    def run(self):
        self.status = INVALID_ARGUMENT
        # Whoever looks whether somebody asks is in the way for a moment.
        while self.status == INVALID_ARGUMENT:
            self.status = self.ask(self.stream)


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("below", [Asynchronous, Ahead])
@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
def test_whoever_waits_comes_back(chain, below, ask):
    below = below()
    stream = wrapped(below.stream, chain)
    asking = Asking(stream, ASKS[ask])
    # Not by itself.
    asking.join(0.005)
    assert asking.is_alive()
    lib.bowstring_stream_cancel(stream)
    asking.join(SOON)
    assert not asking.is_alive() and asking.status == CANCELLED
    # Now and for ever, and another cancel changes nothing.
    lib.bowstring_stream_cancel(stream)
    for again in ASKS.values():
        assert stream.value and again(stream) == CANCELLED
    if isinstance(below, Ahead):
        assert not below.open.is_set()
        below.open.set()
    streams.release(stream)
    below.close()


@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
def test_a_cancel_from_behind_a_thread(chain):
    # The handler's thread waits for the producer below.
    below = Asynchronous()
    handler = Handler(ask=3).given(wrapped(below.stream, chain))
    end = time.monotonic() + SOON
    while "schema" not in handler.heard and time.monotonic() < end:
        time.sleep(0.001)
    assert not handler.done.wait(0.02)
    handler.cancel()
    assert handler.finish() == [] and handler.heard == ["schema", "release"]
    below.close()


@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
def test_a_cancel_before_anybody_asks(chain):
    below = Asynchronous()
    stream = wrapped(below.stream, chain)
    lib.bowstring_stream_cancel(stream)
    assert below.producer.cancelled == 1
    for ask in ASKS.values():
        assert ask(stream) == CANCELLED
    streams.release(stream)
    below.close()


@pytest.mark.parametrize("depth", (0, 2))
@pytest.mark.parametrize("chain", CHAINS[:5], ids=NAMES[:5])
def test_what_progress_says_goes_up(chain, depth):
    progress = PROGRESS(lambda *_: 1)
    stream = wrapped(moved(streams.from_arrays([BATCH] * 3), CPU, depth, progress=progress), chain)
    for ask in ASKS.values():
        assert ask(stream) == CANCELLED
    streams.release(stream)


@pytest.mark.parametrize("depth", (0, 2))
@pytest.mark.parametrize("chain", CHAINS[:5], ids=NAMES[:5])
def test_progress_that_cancels_the_stream_above(chain, depth):
    # The call is made by the very thread that copies.
    made = threading.Event()

    def cancel(*_):
        assert made.wait(SOON)
        lib.bowstring_stream_cancel(stream)
        return 0

    progress = PROGRESS(cancel)
    stream = wrapped(moved(streams.from_arrays([BATCH] * 3), CPU, depth, progress=progress), chain)
    made.set()
    for ask in ASKS.values():
        assert ask(stream) == CANCELLED
    streams.release(stream)


@pytest.mark.parametrize("chain", CHAINS, ids=NAMES)
def test_what_is_not_cancelled_goes_on(chain):
    producer = asynchronous.Producer(1)
    assert producer.schema(BATCH.schema) == 0
    stream, producer.stream = wrapped(producer.stream, chain), c_void_p()
    found = []
    asking = threading.Thread(target=lambda: found.extend(streams.drained(stream)))
    asking.start()
    for i in range(3):
        assert not producer.wait(i)
        producer.task(BATCH)
    assert not producer.wait(3)
    producer.end()
    producer.release()
    asking.join(SOON)
    expected = BATCH if chain.count("select") != 1 else BATCH.select([1, 0])
    assert [streams.as_pyarrow(handle) for handle in found] == [expected] * 3
    streams.release(stream)
    assert producer.cancelled == 0
    producer.close()
