"""Streams whose arrays are copied to a device: by whoever asks, or by a thread that is ahead."""

import ctypes
import itertools
import subprocess
import sys
import textwrap
import threading
import time
from ctypes import addressof, byref, c_void_p
from pathlib import Path

import pyarrow as pa
import pytest

import all_types
import bowstring_ctypes as bs
import devices
import streams
import support
from bowstring_ctypes import (
    CALLBACK_ERROR, CANCELLED, DEVICE_ERROR, INVALID_ARGUMENT, MAY_SHARE, OUT_OF_MEMORY, PROGRESS, SYNC_NONE,
    SYNC_REQUIRED, UNSUPPORTED, BowstringError, Device, Sync, call, lib, out,
)
from devices import CPU, DEFAULT_QUEUE, FULL, HANDLES, HOST, LIBRARY, PLAIN, PLUGINS, options, refused
from streams import Callbacks, Exported, Fails, Placed, Producer, drained, next_of
from test_golden import golden_files, is_equal, read_stream

DEPTHS = (0, 1, 3)
KIND = pa.int64()
NONE = Sync(SYNC_NONE)
OWN_BATCHES, GOLDEN_BATCHES = 800, 180
SOON = 5


@pytest.fixture(autouse=True)
def clean():
    before = devices.alive()
    yield
    devices.check_clean(before)


def moved(stream, device, depth, sync=LIBRARY, **members):
    """The stream on a device; it is taken."""
    made = out("stream_to_device", byref(stream), device, byref(options(sync, depth=depth, **members)))
    assert not stream.value
    return made


def done(producer):
    """The producer was let go; arrays that nobody asked for go with it."""
    producer.steps.clear()
    producer.done()


def numbers(n, first=0):
    return [pa.array([i, i + 1, None], KIND) for i in range(first, first + n)]


def values(handle):
    """What pyarrow reads of an array, which is let go."""
    found = devices.to_list(handle)
    support.release(handle)
    return found


def wait_for(condition):
    """Waits until something is so, which has to come soon."""
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.001)


def stays(condition):
    """Something is so, and stays so for a while."""
    for _ in range(20):
        assert condition()
        time.sleep(0.002)


class Counter:
    """A producer that counts how often it was asked."""

    def __init__(self, n, host=False):
        self.asked = 0
        self.producer = Producer([lambda array, i=i: self._give(array, i) for i in range(n)], KIND, host)

    def _give(self, array, i):
        self.asked += 1
        streams.export_into(pa.array([i], KIND), addressof(array), self.producer.host)
        return 0


class Gate:
    """A producer that is inside get_next until it is let go."""

    def __init__(self, before=0):
        self.inside, self.open = threading.Event(), threading.Event()
        self.producer = Producer([*numbers(before), self._wait, *numbers(3, 90)], KIND)

    def _wait(self, array):
        self.inside.set()
        assert self.open.wait(SOON)
        streams.export_into(pa.array([7], KIND), addressof(array), False)
        return 0


def round_trip(batches, schema, there, depth, sync):
    """Over a device and back, each way ahead of who asks."""
    stream = Producer(batches, schema).imported()
    for device in there:
        stream = moved(stream, device, depth, sync)
        found = lib.bowstring_stream_device(stream)
        assert (found.type, found.id) == (device.type, device.id)
    stream = moved(stream, CPU, depth, LIBRARY)
    found = [streams.as_pyarrow(handle) for handle in drained(stream)]
    streams.release(stream)
    return found


PLACES = itertools.cycle([[plugin.devices[i % 2]] for plugin in PLUGINS for i in range(2)] + [[FULL.devices[0], HANDLES.devices[0]]])


@pytest.mark.parametrize("depth", DEPTHS)
def test_own_streams(depth):
    n = 0
    for name, batches in all_types.streams():
        found = round_trip(batches, batches[0].schema, next(PLACES), depth, (LIBRARY, HOST, NONE)[n % 3] if n % 2 else LIBRARY)
        assert len(found) == len(batches), name
        for one, expected in zip(found, batches):
            assert is_equal(one, expected), name
            n += 1
    support.figure(f"own batches to a device and back, depth {depth}", n, OWN_BATCHES // 3)


@pytest.mark.skipif(not golden_files(), reason="skipped: no-golden: BOWSTRING_GOLDEN names no folder with cpp-21.0.0")
def test_golden_streams():
    n = 0
    for path in golden_files():
        batches = read_stream(path.read_bytes())
        with pa.ipc.open_stream(path.read_bytes()) as reader:
            schema = reader.schema
        for depth in DEPTHS:
            found = round_trip(batches, schema, next(PLACES), depth, LIBRARY)
            assert len(found) == len(batches), path.name
            for one, expected in zip(found, batches):
                assert is_equal(one, expected), path.name
                n += 1
    support.figure("golden batches to a device and back", n, GOLDEN_BATCHES)


@pytest.mark.parametrize("depth", (0, 1, 7))
def test_the_order_of_many(depth):
    counter = Counter(1000)
    stream = moved(counter.producer.imported(), FULL.devices[0], depth, NONE)
    for i in range(1000):
        assert values(next_of(stream)) == [i]
    assert drained(stream) == []
    streams.release(stream)
    done(counter.producer)


@pytest.mark.parametrize("depth", (0, 1, 2, 5))
def test_never_more_than_so_many_are_ahead(depth):
    counter = Counter(20)
    stream = moved(counter.producer.imported(), PLAIN.devices[0], depth, NONE)
    for i in range(20):
        ahead = min(i + depth, 20)
        wait_for(lambda: counter.asked == ahead)
        if i in (0, 7):
            stays(lambda: counter.asked == ahead)
        assert values(next_of(stream)) == [i]
        assert counter.asked <= min(i + 1 + depth, 20)
    assert drained(stream) == []
    streams.release(stream)
    done(counter.producer)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("at", (0, 1, 4))
def test_an_error_is_met_at_its_batch(depth, at):
    producer = Producer([*numbers(at), Fails(28, b"the disk is full"), *numbers(2)], KIND)
    stream = moved(producer.imported(), FULL.devices[1], depth, NONE)
    for i in range(at):
        assert values(next_of(stream)) == [i, i + 1, None]
    for _ in range(3):
        error = refused(CALLBACK_ERROR, "stream_next", stream, byref(c_void_p()))
        assert (error.batch, error.native_code) == (at, 28) and "the disk is full" in error.message
    streams.release(stream)
    assert producer.calls.count("get_next") == at + 1
    done(producer)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_copy_that_fails(depth):
    for function, status in (("allocate", OUT_OF_MEMORY), ("from_host", DEVICE_ERROR), ("record", DEVICE_ERROR)):
        producer = Producer(numbers(5), KIND)
        FULL.reset()
        FULL.fail_call(function, {"allocate": 3, "from_host": 3, "record": 2}[function])
        stream, n = moved(producer.imported(), FULL.devices[0], depth, NONE), 0
        try:
            while (handle := next_of(stream)) is not None:
                support.release(handle)
                n += 1
            raise AssertionError(f"{function} failed and nobody said so")
        except BowstringError as error:
            assert error.batch == n < 5
            assert error.status in (status, DEVICE_ERROR), error
        FULL.reset()
        streams.release(stream)
        done(producer)


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_event_needs_somebody_who_waits(depth):
    source = support.imported(pa.array([1], KIND))
    ready = devices.to_device(source, HANDLES.devices[0])
    support.release(source)
    second = c_void_p(lib.bowstring_array_retain(ready))
    for sync, status in ((NONE, SYNC_REQUIRED), (LIBRARY, None), (HOST, None)):
        (_, event) = devices.device_of(ready)
        assert event
        listed = (c_void_p * 2)(ready.value, second.value)
        stream = moved(out("stream_from_arrays", None, listed, 2), HANDLES.devices[1], depth, sync)
        if status:
            error = refused(status, "stream_next", stream, byref(c_void_p()))
            assert error.batch == 0
        else:
            assert [values(handle) for handle in drained(stream)] == [[1], [1]]
        streams.release(stream)
    support.release(ready, second)


@pytest.mark.parametrize("before", (0, 2))
def test_cancel_while_the_producer_is_inside(before):
    gate, seen = Gate(before), []
    stream = moved(gate.producer.imported(), FULL.devices[0], 4, NONE)

    def ask():
        try:
            for _ in range(before + 1):
                seen.append(values(next_of(stream)))
        except BowstringError as error:
            seen.append(error.status)

    asking = threading.Thread(target=ask)
    asking.start()
    assert gate.inside.wait(SOON)
    wait_for(lambda: len(seen) == before)
    stays(lambda: asking.is_alive())
    # Another call meets the one that waits.
    assert refused(INVALID_ARGUMENT, "stream_next", stream, byref(c_void_p())).message.startswith("expected one call on a stream at a time")
    lib.bowstring_stream_cancel(stream)
    # The producer is still inside: whoever waited does not wait for it.
    asking.join(SOON)
    assert not asking.is_alive() and not gate.open.is_set()
    assert seen == [[i, i + 1, None] for i in range(before)] + [CANCELLED]
    refused(CANCELLED, "stream_next", stream, byref(c_void_p()))
    gate.open.set()
    streams.release(stream)
    done(gate.producer)


@pytest.mark.parametrize("wrap", ("validated", "select", "to_device 0", "to_device 2"))
def test_cancel_reaches_through_other_streams(wrap):
    gate = Gate()
    gate.producer.steps = [gate._wait]
    batch = pa.record_batch({"a": [1]})
    gate.producer.kind = batch.schema
    stream = moved(gate.producer.imported(), FULL.devices[0], 1, NONE)
    if wrap == "validated":
        stream = out("stream_validated", byref(stream), byref(bs.ValidateOptions(level=2)))
    elif wrap == "select":
        stream = out("stream_select", byref(stream), (ctypes.c_size_t * 1)(0), 1)
    else:
        stream = moved(stream, CPU, int(wrap[-1]))
    found = []
    asking = threading.Thread(target=lambda: found.append(lib.bowstring_stream_next(stream, byref(c_void_p()), None)))
    asking.start()
    assert gate.inside.wait(SOON)
    lib.bowstring_stream_cancel(stream)
    asking.join(SOON)
    assert not asking.is_alive() and found == [CANCELLED]
    gate.producer.complaints.clear()
    gate.open.set()
    streams.release(stream)
    gate.producer.complaints.clear()
    done(gate.producer)


@pytest.mark.parametrize("depth", (0, 2))
def test_cancel_stops_the_threads_below(depth):
    """Of a stream on another one: neither thread asks any further."""
    counter = Counter(50)
    below = moved(counter.producer.imported(), PLAIN.devices[0], 3, NONE)
    stream = moved(below, CPU, depth, NONE)
    assert values(next_of(stream)) == [0]
    wait_for(lambda: counter.asked == 1 + depth + 3)
    lib.bowstring_stream_cancel(stream)
    # What is in the ring below is not taken any more, so no room is made.
    refused(CANCELLED, "stream_next", stream, byref(c_void_p()))
    stays(lambda: counter.asked == 1 + depth + 3)
    streams.release(stream)
    done(counter.producer)


def test_cancel_before_anything_and_after_the_end():
    stream = moved(streams.from_arrays(numbers(3)), PLAIN.devices[0], 2, NONE)
    lib.bowstring_stream_cancel(stream)
    refused(CANCELLED, "stream_next", stream, byref(c_void_p()))
    streams.release(stream)
    stream = moved(streams.from_arrays(numbers(1)), PLAIN.devices[0], 2, NONE)
    support.release(*drained(stream))
    lib.bowstring_stream_cancel(stream)
    assert next_of(stream) is None
    streams.release(stream)


@pytest.mark.parametrize("taken", (0, 1, 2, 5))
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("late", (False, True))
def test_release_at_each_moment(taken, depth, late):
    counter = Counter(5)
    stream = moved(counter.producer.imported(), FULL.devices[0], depth, NONE)
    handles = [next_of(stream) for _ in range(taken)]
    if late:
        wait_for(lambda: counter.asked == min(taken + depth, 5))
    streams.release(stream)
    done(counter.producer)
    asked = counter.asked
    stays(lambda: counter.asked == asked)
    assert [values(handle) for handle in handles] == [[i] for i in range(taken)]


def test_release_waits_for_the_producer():
    gate = Gate()
    stream = moved(gate.producer.imported(), FULL.devices[0], 1, NONE)
    assert gate.inside.wait(SOON)
    releasing = threading.Thread(target=streams.release, args=(stream,))
    releasing.start()
    stays(lambda: releasing.is_alive() and gate.producer.released == 0)
    gate.open.set()
    releasing.join(SOON)
    assert not releasing.is_alive()
    done(gate.producer)


def test_which_thread_asks():
    for depth in DEPTHS:
        asked = []

        def note(array):
            asked.append(threading.get_native_id())
            streams.export_into(pa.array([1], KIND), addressof(array), False)

        stream = moved(Producer([note] * 4, KIND).imported(), PLAIN.devices[0], depth, NONE)
        support.release(*drained(stream))
        streams.release(stream)
        assert len(asked) == 4 and len(set(asked)) == 1
        assert (asked[0] == threading.get_native_id()) == (depth == 0)


@pytest.mark.parametrize("depth", DEPTHS)
def test_progress(depth):
    told = []
    progress = PROGRESS(lambda ctx, batches, rows, size: told.append((ctx, batches, rows, size)) or 0)
    stream = moved(streams.from_arrays(numbers(3)), FULL.devices[0], depth, NONE, ctx=5, progress=progress)
    support.release(*drained(stream))
    streams.release(stream)
    assert {ctx for ctx, *_ in told} == {5}
    told = [one[1:] for one in told]
    assert told == sorted(told, key=lambda one: one[:2])
    for i in range(3):
        own = [one for one in told if one[:2] == (i, 3 * i + 3)]
        assert own[0][2] == 0 and own[-1][2] == 24 + 1
    assert [one for one in told if one[2] == 0 and one[1] == 3 * one[0]] == [(i, 3 * i, 0) for i in (1, 2, 3)]


@pytest.mark.parametrize("depth", DEPTHS)
def test_progress_cancels(depth):
    for last in range(12):
        calls = []
        progress = PROGRESS(lambda ctx, batches, rows, size: calls.append(batches) or int(len(calls) > last))
        producer = Producer(numbers(3), KIND)
        stream, n = moved(producer.imported(), FULL.devices[0], depth, NONE, progress=progress), 0
        try:
            while (handle := next_of(stream)) is not None:
                support.release(handle)
                n += 1
            raise AssertionError("nobody cancelled")
        except BowstringError as error:
            assert (error.status, error.batch) == (CANCELLED, n) and "progress" in error.message
        refused(CANCELLED, "stream_next", stream, byref(c_void_p()))
        streams.release(stream)
        assert len(calls) == last + 1
        done(producer)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_callers_allocator(depth):
    held, queues = {}, set()

    def allocate(ctx, size, queue):
        at = FULL.take(0, size)
        held[at] = size
        queues.add(queue)
        return at

    def deallocate(ctx, data, size, queue):
        assert held.pop(data) == size
        FULL.give_back(data)

    functions = {"allocate": bs.ALLOCATE(allocate), "deallocate": bs.DEALLOCATE(deallocate)}
    stream = moved(streams.from_arrays(numbers(3)), FULL.devices[0], depth, NONE, **functions)
    handles = drained(stream)
    streams.release(stream)
    assert len(held) == 6 and queues == {FULL.library_queue(0)}
    assert [values(handle) for handle in handles] == [[i, i + 1, None] for i in range(3)]
    devices.collect_all()
    assert not held


@pytest.mark.parametrize("depth", DEPTHS)
def test_sharing(depth):
    source = support.imported(pa.array([1, 2], KIND))
    listed = (c_void_p * 1)(source.value)
    for flags, same in ((0, False), (MAY_SHARE, True)):
        stream = moved(out("stream_from_arrays", None, listed, 1), CPU, depth, NONE, flags=flags)
        (handle,) = drained(stream)
        at = [support.buffer_infos(one)[1].data for one in (source, handle)]
        assert (at[0] == at[1]) == same
        support.release(handle)
        streams.release(stream)
    support.release(source)


def test_a_callers_queue_copies_inside_the_call():
    with FULL.queue() as queue:
        FULL.reset()
        stream = moved(streams.from_arrays(numbers(3)), FULL.devices[0], 0, queue.sync)
        assert not FULL.entries("from_host")
        for i in range(3):
            handle = next_of(stream)
            copies = FULL.entries("from_host")
            assert copies and all(entry[2] == queue.handle for entry in copies)
            support.release(handle)
        streams.release(stream)


def test_a_callers_queue_waits_inside_the_call():
    counter, library = Counter(3), FULL.library_queue(0)
    with FULL.queue() as queue:
        FULL.reset()
        stream = moved(counter.producer.imported(), FULL.devices[0], 2, queue.sync)
        wait_for(lambda: len(FULL.entries("record")) == 2)
        assert all(entry[2] == library for entry in FULL.entries("from_host", "record"))
        assert not FULL.entries("queue_waits")
        for i in range(3):
            handle = next_of(stream)
            waits = [entry for entry in FULL.entries("queue_waits") if entry[2] == queue.handle]
            assert len(waits) == i + 1
            support.release(handle)
        assert drained(stream) == []
    # The queue is gone, and nobody looks for it.
    streams.release(stream)
    done(counter.producer)


@pytest.mark.parametrize("host", (False, True))
@pytest.mark.parametrize("depth", DEPTHS)
def test_as_structs(depth, host):
    device = CPU if host else FULL.devices[0]
    exported = Exported(moved(streams.from_arrays(numbers(4)), device, depth, NONE), host)
    if not host:
        assert exported.struct.device_type == FULL.type
    for i in range(4):
        code, array = exported.next()
        assert code == 0, exported.text()
        raw = array if host else array.array
        if not host:
            assert (array.device_type, array.device_id) == (FULL.type, 0) and array.sync_event
        assert raw.length == 3
        getattr(lib, f"bowstring_{'host' if host else 'device'}_array_release")(byref(array))
    code, array = exported.next()
    assert code == 0 and not (array if host else array.array).release
    exported.release()


def test_handles_of_callbacks():
    callbacks = Callbacks([*numbers(5)], as_handles=True)
    kind = support.type_from(KIND)
    stream = moved(callbacks.made(kind), HANDLES.devices[0], 2, NONE)
    lib.bowstring_type_release(kind)
    assert [values(handle) for handle in drained(stream)] == [[i, i + 1, None] for i in range(5)]
    streams.release(stream)
    callbacks.done()


def test_collected():
    stream = moved(streams.from_arrays(numbers(5)), CPU, 2, NONE)
    whole = out("stream_collect", byref(stream), None)
    assert support.to_pyarrow(*support.exported(whole), pa.Array).to_pylist() == [
        value for one in numbers(5) for value in one.to_pylist()
    ]
    support.release(whole)


@pytest.mark.parametrize("depth", (0, 2))
def test_what_is_refused(depth):
    """Nothing is taken, and nothing was asked."""
    producer = Producer(numbers(2), KIND)
    stream, made = producer.imported(), c_void_p(5)

    def check(status, device, given, at=stream, into=made):
        error = refused(status, "stream_to_device", byref(at) if at else None, device, given and byref(given), byref(into))
        assert stream.value and (into is stream or not made.value)
        return error

    ok = options(NONE, depth=depth)
    check(INVALID_ARGUMENT, Device(5, 0), ok)
    check(UNSUPPORTED, Device(15, 0), ok)
    check(INVALID_ARGUMENT, CPU, options(NONE, flags=2, depth=depth))
    check(INVALID_ARGUMENT, CPU, options(Sync(4), depth=depth))
    check(INVALID_ARGUMENT, CPU, options(NONE, allocate=bs.ALLOCATE(lambda *_: None), depth=depth))
    small = options(NONE, depth=depth)
    small.struct_size = 8
    check(INVALID_ARGUMENT, CPU, small)
    check(INVALID_ARGUMENT, CPU, ok, into=stream)
    assert producer.calls == ["get_schema"]
    assert [values(handle) for handle in drained(stream)] == [[0, 1, None], [1, 2, None]]
    streams.release(stream)
    done(producer)


def test_a_depth_beyond_memory():
    limit = textwrap.dedent(
        f"""
        import resource, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import pyarrow as pa
        import bowstring_ctypes as bs, streams, support
        from bowstring_ctypes import byref, c_void_p, lib
        stream, made, error = streams.from_arrays([pa.array([1])]), c_void_p(5), bs.Error()
        now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        for room, depth, code in ((1 << 22, 1, True), (1 << 30, 0xFFFFFFFF, False)):
            resource.setrlimit(resource.RLIMIT_AS, (now + room, resource.RLIM_INFINITY))
            given = bs.TransferOptions(depth=depth)
            status = lib.bowstring_stream_to_device(byref(stream), bs.Device(1, -1), byref(given), byref(made), byref(error))
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert status == bs.OUT_OF_MEMORY, (status, error.message)
            assert stream.value and not made.value
            assert (error.native_code != 0) == code, error.message
        status = lib.bowstring_stream_to_device(byref(stream), bs.Device(1, -1), byref(given.__class__(depth=1)), byref(made), None)
        assert status == 0
        support.release(*streams.drained(made))
        streams.release(made)
        print("both refused")
        """
    )
    run = subprocess.run([sys.executable, "-c", limit], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stdout.endswith("both refused\n"), run.stdout + run.stderr


def test_default_options():
    stream = out("stream_to_device", byref(streams.from_arrays(numbers(2))), Device(), None)
    found = lib.bowstring_stream_device(stream)
    assert (found.type, found.id) == (1, -1)
    assert [values(handle) for handle in drained(stream)] == [[0, 1, None], [1, 2, None]]
    streams.release(stream)


def test_many_threads_at_once():
    """Streams on streams, each with a thread of its own, and several consumers."""

    def go(i):
        stream = streams.from_arrays(numbers(30))
        for device in (FULL.devices[i % 2], HANDLES.devices[i % 2], DEFAULT_QUEUE.devices[0], CPU):
            stream = moved(stream, device, i % 4)
        for j in range(30 if i % 3 else 7):
            found.append(values(next_of(stream)) == [j, j + 1, None])
        streams.release(stream)

    found = []
    threads = [threading.Thread(target=go, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found) and len(found) == 5 * 30 + 3 * 7
