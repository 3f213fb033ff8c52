"""Devices that fail: every call of every plug-in function in turn, numbers that cannot be, and many threads at once."""

import ctypes
import itertools
import random
import struct
import subprocess
import sys
import threading
from ctypes import byref, c_bool, c_int64, c_void_p
from pathlib import Path

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import devices
import support
from bowstring_ctypes import DEVICE_ERROR, INVALID_DATA, BowstringError, call, lib, live_counts, out
from devices import (
    CPU, DEFAULT_QUEUE, FULL, HANDLES, HOST, LIBRARY, PLAIN, WORDS, collect_all, imported, options, refused, to_device,
    values_of,
)
from support import release

CODE = 77
_done = {"failures": 0, "operations": set(), "functions": set(), "broken": 0, "copies": 0}


@pytest.fixture(autouse=True)
def clean():
    before = devices.alive()
    yield
    devices.check_clean(before)


class Made:
    """What operations work on: the same array on the CPU and on a device, where its sizes are not known."""

    def __init__(self, plugin):
        self.plugin, self.device = plugin, plugin.devices[0]
        self.host = imported()
        self.there = to_device(self.host, self.device, options(HOST))
        self.part = out("array_slice", self.there, 1, 3)
        kind = support.type_of(self.there)
        nodes, parts = support.to_buffers(self.there, plugin.type)
        for part in parts:
            part.size_bytes = -1
        nodes[0].null_count = -1
        placement = bs.Placement(device=self.device)
        array, schema = support.rebuilt(kind, nodes, parts, placement)
        lib.bowstring_type_release(kind)
        self.foreign = out("array_import", byref(array), byref(schema))
        self.buffer = out("array_buffer", self.there, 1)
        self.event = out("array_record", self.foreign, byref(LIBRARY)) if plugin.has(devices.EVENTS) else None

    def close(self):
        release(self.host, self.there, self.part, self.foreign)
        if self.event:
            release(self.event)
        lib.bowstring_buffer_release(self.buffer)

    def check(self):
        """All of it is still what it was."""
        wanted = devices.values_of(self.host)
        assert values_of(self.there) == values_of(self.foreign) == wanted
        assert values_of(self.part) == wanted[1:]


def copied(source, device, sync=LIBRARY):
    def run(made):
        release(to_device(getattr(made, source), device(made), options(sync)))

    return run


def other(made):
    return made.plugin.devices[1]


def no_events(made):
    return PLAIN.devices[1]


def allocated(sync):
    def run(made):
        buffer = c_void_p()
        call("buffer_allocate", made.device, 300, byref(sync), byref(buffer), byref(c_void_p()))
        lib.bowstring_buffer_release(buffer)

    return run


def buffer_copied(made):
    copy = c_void_p()
    call("buffer_to_device", made.buffer, other(made), byref(options()), byref(copy), None)
    lib.bowstring_buffer_release(copy)


def buffer_read(made):
    data = ctypes.create_string_buffer(20)
    call("buffer_read", made.buffer, 0, data, 20, byref(LIBRARY))
    assert data.raw == struct.pack("=5i", 0, 3, 3, 3, 5)


def recorded(made):
    release(out("array_record", made.foreign, byref(LIBRARY)))


def waited(made):
    call("array_wait", made.event, byref(HOST))


def joined(made):
    release(out("array_join_events", made.event, None, 0, byref(LIBRARY)))


def released_after(made):
    handle = c_void_p(lib.bowstring_array_retain(made.there))
    try:
        call("array_release_after", byref(handle), byref(LIBRARY))
    finally:
        release(handle)


def struct_released_after(made):
    array, schema = support.exported_anywhere(made.there)
    lib.bowstring_schema_release(byref(schema))
    try:
        call("device_array_release_after", byref(array), byref(LIBRARY))
        assert not array.array.release
    finally:
        lib.bowstring_device_array_release(byref(array))


def nulls_counted(made):
    # Whoever counted remembers.
    part, count = out("array_slice", made.foreign, 0, 3), c_int64()
    try:
        call("array_null_count", part, byref(LIBRARY), byref(count))
        assert count.value == 1
    finally:
        release(part)


def sizes_resolved(made):
    release(out("array_resolve_sizes", made.foreign, byref(LIBRARY)))


def exported(made):
    array, schema = bs.ArrowArray(), bs.ArrowSchema()
    source = made.event or made.there
    if not made.plugin.has(devices.ACCESSIBLE):
        return
    call("array_export_host", source, byref(LIBRARY), byref(array), byref(schema))
    lib.bowstring_host_array_release(byref(array))
    lib.bowstring_schema_release(byref(schema))


def built(made):
    kind, array = support.type_from(pa.int32()), bs.ArrowDeviceArray()
    buffers = (bs.OwnedBuffer * 2)(bs.OwnedBuffer(), bs.OwnedBuffer(1 << 20, 64))
    placement = bs.Placement(device=made.device, record_on=LIBRARY)
    nodes = (bs.Node * 1)(bs.Node(3, 0, 0, 2))
    try:
        call("device_array_from_buffers", kind, nodes, 1, buffers, 2, byref(placement), byref(array))
        lib.bowstring_device_array_release(byref(array))
    finally:
        lib.bowstring_type_release(kind)


def views_copied(made):
    given = OnDevice(made.plugin, (1, 0, 0, [None, bytes(16), b"abc", i64(3)]))
    handle = given.handle(b"utf8_view")
    try:
        release(to_device(handle, CPU))
    finally:
        release(handle)
        given.close()


def collected(made):
    release(to_device(made.host, made.device))
    call("device_collect", made.device, True, None)


OPERATIONS = {
    "views to the CPU": views_copied,
    "collect": collected,
    "from the CPU": copied("host", lambda made: made.device),
    "from the CPU, blocking": copied("host", lambda made: made.device, HOST),
    "to the CPU": copied("there", lambda made: CPU),
    "to the CPU, sizes unknown": copied("foreign", lambda made: CPU),
    "part to the CPU": copied("part", lambda made: CPU),
    "within": copied("there", lambda made: made.device),
    "part within": copied("part", lambda made: made.device),
    "between": copied("part", other),
    "to another driver": copied("part", no_events),
    "to another driver with events": copied("foreign", lambda made: HANDLES.devices[1]),
    "allocate for the thread": allocated(HOST),
    "allocate for a queue": allocated(LIBRARY),
    "copy a buffer": buffer_copied,
    "read a buffer": buffer_read,
    "release after": released_after,
    "release a struct after": struct_released_after,
    "count nulls": nulls_counted,
    "resolve sizes": sizes_resolved,
    "export for the CPU": exported,
}
WITH_EVENTS = {
    "copy behind an event": copied("event", lambda made: CPU),
    "copy between behind an event": copied("event", other),
    "record": recorded,
    "wait": waited,
    "join events": joined,
    "build with an event": built,
}


def fail_each(plugin, operation, made, name, lasts):
    """Fails the first, second, ... call of a function until there are no more calls."""
    for nth in itertools.count(1):
        collect_all()
        before = live_counts(), devices.alive()
        plugin.reset()
        plugin.fail_call(name, nth, CODE, lasts)
        failed = None
        try:
            operation(made)
        except BowstringError as error:
            failed = error
        n_calls = plugin.n(name)
        plugin.fail_call(name, 0)
        if failed:
            assert failed.status == DEVICE_ERROR and failed.native_code == CODE, str(failed)
            assert name.split("_")[0] in failed.message, failed.message
        if n_calls < nth:
            assert not failed
            return
        collect_all()
        assert (live_counts(), devices.alive()) == before, f"{name}, call {nth}: {failed}"
        _done["failures"] += 1
        _done["functions"].add(name)
        assert nth < 200


@pytest.mark.parametrize("plugin", devices.PLUGINS, ids=lambda plugin: str(plugin.type))
@pytest.mark.parametrize("operation", OPERATIONS | WITH_EVENTS)
def test_every_call_fails(plugin, operation):
    if operation in WITH_EVENTS and not plugin.has(devices.EVENTS):
        return
    made = Made(plugin)
    run = (OPERATIONS | WITH_EVENTS)[operation]
    run(made)
    for name in devices.FUNCTIONS:
        # Memory that cannot be freed stays; nobody is told that an event could not be destroyed.
        if name not in ("free", "destroy_event", "probe"):
            for lasts in (False, True):
                fail_each(plugin, run, made, name, lasts)
    made.check()
    made.close()
    _done["operations"].add(operation)


def test_nothing_can_be_waited_for():
    """Where no wait works, what may still be in use is not freed: neither memory nor the source."""
    # A process of its own: what is left alone here is never let go.
    script = "import test_device_failures; test_device_failures.leave_it()"
    run = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parent, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def leave_it():
    gone, memory = [], ctypes.create_string_buffer(b"x" * 64, 64)
    owner = bs.RELEASE(lambda _: gone.append(1))
    source = out("buffer_wrap", byref(bs.OwnedBuffer(ctypes.addressof(memory), 64, 1, owner)), None)
    with DEFAULT_QUEUE.queue() as queue:
        queue.stop()
        for name in ("drain", "record"):
            DEFAULT_QUEUE.fail_call(name, 1, CODE, True)
        given = options(queue.sync)
        target = DEFAULT_QUEUE.devices[0]
        refused(DEVICE_ERROR, "buffer_to_device", source, target, byref(given), byref(c_void_p()), None)
        lib.bowstring_buffer_release(source)
        assert not gone and DEFAULT_QUEUE.live_memory() == 1
        queue.go()
    assert DEFAULT_QUEUE.fault() is None and not gone


# ---- numbers that cannot be ---------------------------------------------------------------------------------------


class OnDevice:
    """A raw struct whose buffers are on a device, each of exactly the bytes given."""

    def __init__(self, plugin, node):
        self.plugin, self.pieces, self.keep = plugin, [], []
        self.array = bs.ArrowDeviceArray(self._node(node), 0, plugin.type)
        self.released = 0
        self._release = bs.RELEASE(self._on_release)
        self.array.array.release = ctypes.cast(self._release, c_void_p).value

    def _on_release(self, at):
        bs.ArrowArray.from_address(at).release = None
        self.released += 1

    def _place(self, data):
        if data is None:
            return None
        at = self.plugin.placed(0, data)
        self.pieces.append(at)
        return at

    def _node(self, node):
        length, nulls, offset, buffers, *children = node
        made = bs.ArrowArray(length, nulls, offset, len(buffers), len(children))
        made.buffers = (c_void_p * max(len(buffers), 1))(*[self._place(data) for data in buffers])
        below = [self._node(child) for child in children]
        for child in below:
            child.release = 1
        pointers = (ctypes.POINTER(bs.ArrowArray) * max(len(below), 1))(*[ctypes.pointer(child) for child in below])
        made.children = pointers
        self.keep += [made.buffers, below, pointers]
        return made

    def handle(self, text):
        kind = out("type_parse", text)
        try:
            return out("array_import_typed", byref(self.array), kind)
        finally:
            lib.bowstring_type_release(kind)

    def close(self):
        assert self.released == 1
        for at in self.pieces:
            self.plugin.give_back(at)


def i32(*values):
    return struct.pack(f"={len(values)}i", *values)


def i64(*values):
    return struct.pack(f"={len(values)}q", *values)


INTS = (4, 0, 0, [None, i32(1, 2, 3, 4)])
TEXT4 = (4, 0, 0, [None, i32(0, 1, 2, 3, 4), b"abcd"])
# What is wrong, the type, the node, the window that is copied, the rule and the path.
BROKEN = [
    ("text ends before 0", b"utf8", (2, 0, 0, [None, i32(0, 1, -1), b"ab"]), None, "B1", "$"),
    ("text starts before 0", b"utf8", (2, 0, 0, [None, i32(-4, 1, 2), b"ab"]), (0, 1), "B1", "$"),
    ("text goes backwards", b"utf8", (3, 0, 0, [None, i32(0, 2, 1, 1), b"ab"]), (1, 2), "B1", "$"),
    ("large text", b"large_binary", (2, 0, 0, [None, i64(0, 1, -(2**62)), b"ab"]), None, "B1", "$"),
    ("part of a list beyond the values", b"list<int32>", (3, 0, 0, [None, i32(0, 1, 2, 5)], INTS), (1, 2), "B1", "$"),
    ("part of a list before the values", b"list<int32>", (3, 0, 0, [None, i32(0, -1, 2, 3)], INTS), (1, 2), "B1", "$"),
    ("part of a list backwards", b"list<int32>", (3, 0, 0, [None, i32(0, 3, 3, 1)], INTS), (1, 2), "B1", "$"),
    (
        "part of a large list", b"large_list<int32>", (3, 0, 0, [None, i64(0, 0, 2**63 - 1, 2**63 - 1)], INTS), (1, 2),
        "B1", "$",
    ),
    (
        "text below part of a list", b"list<utf8>",
        (3, 0, 0, [None, i32(0, 1, 2, 4)], (4, 0, 0, [None, i32(0, 1, 5, 3, 3), b"abc"])), (2, 1), "B1", "$.item",
    ),
    (
        "text of a field", b"struct<a: int32, b: utf8>",
        (2, 0, 0, [None], (2, 0, 0, [None, i32(1, 2)]), (2, 0, 0, [None, i32(0, 1, -1), b"a"])), None, "B1", "$.b",
    ),
    ("a view's size", b"utf8_view", (1, 0, 0, [None, bytes(16), b"abc", i64(-1)]), None, "B2", "$"),
    ("a view's second size", b"binary_view", (1, 0, 0, [None, bytes(16), b"a", b"b", i64(1, -5)]), None, "B2", "$"),
    ("no offsets", b"utf8", (1, 0, 0, [None, None, b"a"]), None, "A5", "$"),
    ("no text", b"utf8", (1, 0, 0, [None, i32(0, 1), None]), None, "A5", "$"),
    ("no values", b"int32", (1, 0, 0, [None, None]), None, "A5", "$"),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case[0])
@pytest.mark.parametrize("plugin", [FULL, DEFAULT_QUEUE], ids=lambda plugin: str(plugin.type))
def test_broken_numbers(plugin, case):
    name, text, node, window, rule, path = case
    for target in (CPU, plugin.devices[0], plugin.devices[1], PLAIN.devices[0]):
        given = OnDevice(plugin, node)
        try:
            handle = given.handle(text)
        except BowstringError as error:
            # What is missing is already refused by import.
            assert (error.status, error.rule, error.path) == (INVALID_DATA, rule, path)
            lib.bowstring_device_array_release(byref(given.array))
            given.close()
            continue
        if window:
            handle, whole = out("array_slice", handle, *window), handle
            release(whole)
        made, shared = c_void_p(1), c_bool(True)
        error = refused(INVALID_DATA, "array_to_device", handle, target, byref(options()), byref(made), byref(shared))
        assert (error.rule, error.path) == (rule, path), str(error)
        assert not made.value and not shared.value
        release(handle)
        given.close()
        _done["broken"] += 1


def test_random_numbers():
    """Offsets and sizes of all kinds, copied as windows: an error, or a copy, and nothing is read where nothing is."""
    rng, n = random.Random(5), 0
    values = (-(2**31), -5, -1, 0, 1, 2, 3, 4, 5, 6, 7, 2**31 - 1)
    statuses = set()
    for _ in range(1500):
        offsets = i32(*sorted(rng.choices(values[3:9], k=5)))
        if rng.random() < 0.7:
            offsets = i32(*rng.choices(values, k=5))
        inner = i32(*(rng.choices(values, k=8) if rng.random() < 0.3 else sorted(rng.choices(range(8), k=8))))
        node = (4, rng.choice((-1, 0)), 0, [rng.choice((None, b"\7")), offsets], (7, 0, 0, [None, inner, b"a" * 8]))
        given = OnDevice(DEFAULT_QUEUE, node)
        whole = given.handle(b"list<utf8>")
        start = rng.randint(0, 4)
        part = out("array_slice", whole, start, rng.randint(0, 4 - start))
        # Text that says it goes on behind its end cannot be told from text that does.
        is_beyond = max(struct.unpack("=8i", inner)) > 8
        try:
            if not is_beyond:
                release(to_device(part, rng.choice((CPU, DEFAULT_QUEUE.devices[1], PLAIN.devices[0]))))
                statuses.add(0)
                n += 1
        except BowstringError as error:
            assert error.status == INVALID_DATA and error.rule == "B1", str(error)
            statuses.add(error.status)
            n += 1
        release(whole, part)
        collect_all()
        given.close()
    assert statuses == {0, INVALID_DATA}
    support.figure("windows on random offsets", n, 1000)


# ---- threads ------------------------------------------------------------------------------------------------------


def test_threads():
    """Eight threads copy one array in all directions, on queues of the library's and of their own."""
    source, wanted, failures = imported(), WORDS, []
    sources = [source] + [to_device(source, device) for device in devices.EVERYWHERE[1:]]

    def work(seed):
        rng = random.Random(seed)
        try:
            for _ in range(60):
                target = rng.choice(devices.EVERYWHERE)
                plugin = devices.BY_TYPE.get(target.type)
                has_queues = plugin and plugin.has(devices.EVENTS)
                queue = plugin.queue(target.id) if has_queues and rng.random() < 0.3 else None
                sync = queue.sync if queue else rng.choice((LIBRARY, HOST))
                copy = to_device(rng.choice(sources), target, options(sync))
                if queue:
                    queue.close()
                back = to_device(copy, CPU)
                found = support.to_pyarrow(*support.exported(back), pa.Array)
                assert found.to_pylist() == wanted
                del found
                release(back)
                if rng.random() < 0.5:
                    call("array_release_after", byref(copy), byref(LIBRARY))
                else:
                    release(copy)
                if rng.random() < 0.3:
                    devices.collect(rng.choice(devices.EVERYWHERE), block=rng.random() < 0.5)
                _done["copies"] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    release(*sources)
    if failures:
        raise failures[0]
    assert _done["copies"] == 8 * 60


def test_figures():
    support.figure("failures of plug-in functions", _done["failures"], 1500)
    assert _done["operations"] == set(OPERATIONS | WITH_EVENTS)
    # Nobody is told of the first two, and the third is only asked for the number of devices.
    assert _done["functions"] == set(devices.FUNCTIONS) - {"free", "destroy_event", "probe"}
    support.figure("broken numbers refused", _done["broken"], 80)
