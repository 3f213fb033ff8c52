"""Both sides of asynchronous streams, joined: a stream through a thread, whoever stops it and whenever."""

import errno
import random
import threading
import time
from ctypes import byref

import pyarrow as pa
import pytest

import asynchronous
import bowstring_ctypes as bs
import streams
import support
from asynchronous import all_is_let_go, arrays, called, drained, name_of, refused, stream_of  # noqa: F401
from bowstring_ctypes import BowstringError, call, lib, out
from streams import Fails


def joined(stream, capacity):
    """A stream through a thread: its arrays are handed to the handler of another stream."""
    struct = bs.ArrowAsyncDeviceStreamHandler()
    made = out("stream_from_async", capacity, byref(struct))
    call("stream_to_async", byref(stream), byref(struct))
    return struct, made


@pytest.mark.parametrize("capacity", [1, 2, 16])
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_joined(n, capacity):
    batches = [pa.record_batch({"a": pa.array([i, None], pa.int64()), "s": [str(i), "x"]}) for i in range(n)]
    source = streams.from_arrays(batches) if n else stream_of(0)
    struct, stream = joined(source, capacity)
    found = streams.drained(stream)
    # The end comes when the handler was let go, so that its memory is free now.
    assert not struct.release
    streams.release(stream)
    assert [streams.as_pyarrow(handle) for handle in found] == batches


@pytest.mark.parametrize("capacity", [1, 3])
def test_joined_many_times(capacity):
    stream = stream_of(50)
    structs = []
    for _ in range(5):
        struct, stream = joined(stream, capacity)
        structs.append(struct)
    assert drained(stream) == list(range(50))
    streams.release(stream)
    assert asynchronous.gone()
    assert not any(struct.release for struct in structs)


@pytest.mark.parametrize("capacity", [1, 4])
@pytest.mark.parametrize("at", range(5))
def test_joined_errors(at, capacity):
    callbacks, source = called([*arrays(at), Fails(errno.ENOTDIR, b"told twice")])
    struct, stream = joined(source, capacity)
    for _ in range(at):
        support.release(streams.next_of(stream))
    error = refused(streams.next_of, stream)
    assert (name_of(error), error.native_code, error.batch) == ("CALLBACK_ERROR", errno.ENOTDIR, at)
    assert "told twice" in error.message and not struct.release
    streams.release(stream)
    assert asynchronous.gone()
    callbacks.done()


@pytest.mark.parametrize("how", ["release", "cancel"])
def test_joined_and_stopped_at_every_moment(how):
    chance = random.Random(7)
    for taken in [0, 1, 2, 5] * 25:
        struct, stream = joined(stream_of(6), chance.choice([1, 2, 9]))
        for _ in range(taken):
            support.release(streams.next_of(stream))
        if chance.random() < 0.5:
            time.sleep(chance.random() * 0.0005)
        if how == "cancel":
            thread = threading.Thread(target=lib.bowstring_stream_cancel, args=(stream,))
            thread.start()
            try:
                while (handle := streams.next_of(stream)) is not None:
                    support.release(handle)
            except BowstringError as error:
                assert name_of(error) == "CANCELLED"
            thread.join()
        streams.release(stream)
        end = time.monotonic() + asynchronous.PATIENCE
        while struct.release and time.monotonic() < end:
            time.sleep(0.0002)
        assert not struct.release
