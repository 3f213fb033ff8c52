"""Devices through plug-ins: registering, events, pending work, allocators, and what each call does without blocking.

Queues that stand still show what waits for what: what returns has not waited for them, and where a call has to wait,
another thread lets them go on.
"""

import ctypes
import time
from ctypes import byref, c_bool, c_int64, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import devices
import support
from bowstring_ctypes import (
    CANCELLED, DEVICE_ERROR, INVALID_ARGUMENT, MAY_SHARE, OUT_OF_MEMORY, SYNC_NONE,
    SYNC_QUEUE, SYNC_REQUIRED, UNSUPPORTED, VARIADIC, VARIADIC_SIZES, Device, Sync, call, lib, live_counts, out,
)
from devices import (
    ACCESSIBLE_ONE, CPU, FULL, HANDLES, HOST, LIBRARY, PLAIN, WORDS, Later, Plugin, collect, device_of, imported, on,
    options, recorded, refused, to_device, to_list, words,
)

NONE = Sync(SYNC_NONE)


@pytest.fixture(autouse=True)
def clean():
    before = devices.alive()
    yield
    for plugin in devices.PLUGINS:
        plugin.delay(0)
    devices.check_clean(before)


# ---- registering --------------------------------------------------------------------------------------------------


def backend(features=devices.EVENTS, **members):
    """A backend that nobody registered, with some members changed."""
    made = Plugin(300, 1, features, register=False).backend
    for name, value in members.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    "name", ["allocate", "free", "copy_from_host", "copy_to_host", "drain", "record", "queue_waits", "host_waits",
             "is_done", "destroy_event"],
)
def test_required_functions(name):
    error = refused(INVALID_ARGUMENT, "device_register", 300, backend(**{name: None}))
    assert name in error.message


def test_a_queue_needs_events():
    lone = backend(0)
    lone.library_queue = backend(devices.EVENTS | devices.LIBRARY_QUEUE).library_queue
    assert "drain" in refused(INVALID_ARGUMENT, "device_register", 300, lone).message


@pytest.mark.parametrize("device_type", [-1, 0, 1, 2, 3, 5, 6, 13, 12])
def test_types_that_cannot_be_registered(device_type):
    refused(INVALID_ARGUMENT, "device_register", device_type, backend())


@pytest.mark.parametrize("device_type", [9, 15, 16])
def test_events_where_arrays_carry_none(device_type):
    assert "events" in refused(INVALID_ARGUMENT, "device_register", device_type, backend()).message


def test_sizes_of_the_backend():
    refused(INVALID_ARGUMENT, "device_register", 300, None)
    refused(INVALID_ARGUMENT, "device_register", 300, backend(struct_size=8))
    larger = (ctypes.c_char * (ctypes.sizeof(bs.DeviceBackend) + 8))()
    made = backend(struct_size=len(larger))
    ctypes.memmove(larger, byref(made), ctypes.sizeof(made))
    larger[len(larger) - 1] = b"\1"
    refused(UNSUPPORTED, "device_register", 300, ctypes.cast(larger, ctypes.POINTER(bs.DeviceBackend)))


def test_as_many_types_as_there_is_room_for():
    import raw

    raw.in_child(register_many)


def register_many():
    n, message = 0, ""
    while not message:
        try:
            call("device_register", 1000 + n, byref(backend(0)))
        except bs.BowstringError as error:
            assert error.status == UNSUPPORTED
            message = error.message
        n += 1
    assert "32" in message and n == 32 - len(devices.PLUGINS) + 1


def test_probe():
    count = c_int64(9)
    for device_type, n in ((1, 1), (12, 4), (10, 2), (100, 1)):
        call("device_probe", device_type, byref(count))
        assert count.value == n
    refused(UNSUPPORTED, "device_probe", 299, byref(count))
    assert count.value == 0
    FULL.fail_call("probe", 1, 5)
    error = refused(DEVICE_ERROR, "device_probe", 12, byref(count))
    assert error.native_code == 5 and "the plug-in's error 5" in error.message


def test_unknown_devices():
    source = imported()
    unknown = (Device(299, 0), UNSUPPORTED), (Device(5, 0), INVALID_ARGUMENT), (Device(1, 3), INVALID_ARGUMENT)
    for device, status in unknown:
        refused(status, "array_to_device", source, device, byref(options()), byref(c_void_p()), None)
    error = refused(DEVICE_ERROR, "array_to_device", source, Device(12, 4), byref(options()), byref(c_void_p()), None)
    assert error.native_code == 9002
    assert "library_queue" in error.message
    refused(INVALID_ARGUMENT, "device_collect", Device(5, 0), True, None)
    support.release(source)


# ---- options ------------------------------------------------------------------------------------------------------


def test_wrong_options():
    source, made, shared = imported(), c_void_p(1), c_bool(True)
    lone, small = bs.ALLOCATE(lambda *_: None), options()
    small.struct_size = 4
    for wrong in (
        options(flags=2), options(Sync(4)), options(Sync(0, 1)), options(allocate=lone),
        options(deallocate=bs.DEALLOCATE(lambda *_: None)), small,
    ):
        made.value = 1
        refused(INVALID_ARGUMENT, "array_to_device", source, FULL.devices[0], byref(wrong), byref(made), byref(shared))
        assert not made.value and not shared.value
    refused(INVALID_ARGUMENT, "array_to_device", source, CPU, byref(options(Sync(SYNC_QUEUE, 0, 8))), byref(made), None)
    support.release(source)


def test_a_pending_event_needs_a_sync():
    there = on(FULL)
    event = recorded(there)
    made, data = c_void_p(), ctypes.create_string_buffer(8)
    for name, arguments in (
        ("array_to_device", (FULL.devices[1], byref(options(NONE)), byref(made), None)),
        ("array_to_device", (CPU, None, byref(made), None)),
        ("array_wait", (None,)),
        ("array_resolve_sizes", (None, byref(made))),
    ):
        refused(SYNC_REQUIRED, name, event, *arguments)
    buffer = out("array_buffer", event, 1)
    refused(SYNC_REQUIRED, "buffer_read", buffer, 0, data, 4, None)
    refused(SYNC_REQUIRED, "buffer_to_device", buffer, CPU, None, byref(made), None)
    lib.bowstring_buffer_release(buffer)
    support.release(there, event)


def test_sharing():
    for handle, device, is_shared in (
        (imported(), CPU, True), (on(FULL), FULL.devices[0], True), (on(ACCESSIBLE_ONE), CPU, True),
        (on(FULL), FULL.devices[1], False), (on(FULL), CPU, False), (imported(), ACCESSIBLE_ONE.devices[0], False),
    ):
        made, shared = c_void_p(), c_bool()
        call("array_to_device", handle, device, byref(options(flags=MAY_SHARE)), byref(made), byref(shared))
        assert shared.value == is_shared
        before = [info.data for info in support.buffer_infos(handle)]
        assert (before == [info.data for info in support.buffer_infos(made)]) == is_shared
        buffer, copy = out("array_buffer", handle, 1), c_void_p()
        call("buffer_to_device", buffer, device, byref(options(flags=MAY_SHARE)), byref(copy), byref(shared))
        assert shared.value == is_shared
        lib.bowstring_buffer_release(buffer)
        lib.bowstring_buffer_release(copy)
        # What is shared keeps the memory.
        support.release(handle)
        assert device_of(made)[0] == (device.type, device.id)
        assert to_list(made) == WORDS
        support.release(made)


def test_sharing_with_the_cpu_waits():
    with ACCESSIBLE_ONE.queue() as queue:
        queue.stop()
        source = imported()
        there = to_device(source, ACCESSIBLE_ONE.devices[0], options(queue.sync))
        with Later(queue) as later:
            made, shared = c_void_p(), c_bool()
            call("array_to_device", there, CPU, byref(options(HOST, flags=MAY_SHARE)), byref(made), byref(shared))
            assert later.gone and shared.value
            assert device_of(made) == ((1, -1), None)
            assert support.to_pyarrow(*support.exported(made), pa.Array).to_pylist() == WORDS
        support.release(source, there, made)


class OwnMemory:
    """A caller's allocator on a plug-in's device, or on the CPU."""

    def __init__(self, plugin, device_id=0, limit=1 << 30):
        self.plugin, self.id, self.left = plugin, device_id, limit
        self.given, self.back = {}, []
        self.members = {
            "ctx": 7, "allocate": bs.ALLOCATE(self._allocate), "deallocate": bs.DEALLOCATE(self._deallocate),
        }

    def _allocate(self, ctx, size, queue):
        assert ctx == 7 and size % 64 == 0
        self.left -= 1
        if self.left < 0:
            return None
        at = self.plugin.take(self.id, size)
        self.given[at] = size, queue
        return at

    def _deallocate(self, ctx, data, size, queue):
        assert ctx == 7
        self.back.append((data, size, queue))


def test_the_callers_allocator():
    source = imported()
    with FULL.queue() as queue:
        own = OwnMemory(FULL)
        queue.stop()
        there = to_device(source, FULL.devices[0], options(queue.sync, **own.members))
        assert {one for _, one in own.given.values()} == {queue.handle}
        infos = {info.data for info in support.buffer_infos(there) if info.data}
        assert infos == set(own.given)
        queue.go()
    assert FULL.live_memory() == 0
    assert to_list(there) == WORDS
    assert own.back == []
    support.release(source, there)
    collect(FULL.devices[0])
    library = FULL.library_queue(0)
    assert sorted(own.back) == sorted((at, size, library) for at, (size, _) in own.given.items())
    FULL.settle()
    for at in own.given:
        FULL.give_back(at)


def test_memory_goes_back_behind_the_copy():
    source = imported()
    with FULL.queue() as queue:
        own = OwnMemory(FULL)
        queue.stop()
        there = to_device(source, FULL.devices[0], options(queue.sync, **own.members))
        support.release(source, there)
        # The library's queue waits for the copy, and what is given back waits on it.
        FULL.fill(0, FULL.library_queue(0), next(iter(own.given)), 1, 1)
        event = FULL.record(0, FULL.library_queue(0))
        assert len(own.back) == len(own.given)
        time.sleep(0.02)
        assert not FULL.is_done(event)
        queue.go()
    FULL.settle()
    assert FULL.is_done(event)
    FULL.destroy_event(event)
    for at in own.given:
        FULL.give_back(at)


def test_memory_that_is_not_aligned():
    block, back = ctypes.create_string_buffer(1 << 12), []
    start = (ctypes.addressof(block) + 63) & ~63
    how = options(
        allocate=bs.ALLOCATE(lambda *_: start + 8), deallocate=bs.DEALLOCATE(lambda _, data, size, __: back.append(data))
    )
    source = imported()
    error = refused(bs.CALLBACK_ERROR, "array_to_device", source, Device(1, -1), byref(how), byref(c_void_p()), None)
    assert "64" in error.message and back == [start + 8]
    support.release(source)


def test_the_callers_allocator_has_no_more():
    source = imported()
    for n in range(4):
        own = OwnMemory(FULL, limit=n)
        given = options(LIBRARY, **own.members)
        refused(OUT_OF_MEMORY, "array_to_device", source, FULL.devices[0], byref(given), byref(c_void_p()), None)
        assert sorted(at for at, *_ in own.back) == sorted(own.given) and len(own.given) == n
        FULL.settle()
        for at in own.given:
            FULL.give_back(at)
    support.release(source)


def test_progress():
    source, told = imported(), []

    def tell(ctx, batches, rows, n):
        told.append((ctx, batches, rows, n))
        return 0

    there = to_device(source, PLAIN.devices[0], options(ctx=5, progress=bs.PROGRESS(tell)))
    copied = sum(info.size_bytes for info in support.buffer_infos(there))
    assert told[0] == (5, 0, 4, 0) and told[-1] == (5, 0, 4, copied)
    assert [n for *_, n in told] == sorted(n for *_, n in told)
    n_calls = len(told)
    assert n_calls == support.counts(source)[1] + 1
    for device in (PLAIN.devices[1], FULL.devices[1], CPU):
        for stop in range(1, n_calls + 1):
            told.clear()
            given = options(progress=bs.PROGRESS(lambda *_: told.append(0) or len(told) == stop))
            refused(CANCELLED, "array_to_device", there, device, byref(given), byref(c_void_p()), None)
            assert len(told) == stop
    buffer = out("array_buffer", there, 1)
    given = options(progress=bs.PROGRESS(lambda *_: 3))
    refused(CANCELLED, "buffer_to_device", buffer, CPU, byref(given), byref(c_void_p()), None)
    lib.bowstring_buffer_release(buffer)
    support.release(source, there)


# ---- what is copied -----------------------------------------------------------------------------------------------


def test_slices_copy_only_what_they_need():
    long = "x" * 1000
    data = pa.array([[long] * 10] * 100 + [["a", "bc"]] * 3 + [[long] * 10] * 100, pa.list_(pa.utf8()))
    there = on(PLAIN, data)
    part = out("array_slice", there, 100, 3)
    PLAIN.reset()
    back = to_device(part, CPU)
    assert support.to_pyarrow(*support.exported(back), pa.Array).to_pylist() == [["a", "bc"]] * 3
    # Four offsets of lists, seven of text, nine letters, and what has to be looked up: two ends of each.
    assert PLAIN.n_bytes("to_host") == 4 * 4 + 7 * 4 + 9 + 2 * 2 * 4
    support.release(back)
    PLAIN.reset()
    copy = to_device(part, PLAIN.devices[1])
    from_host = sum(-(-size // 64) * 64 for size in (16, 28, 9))
    assert PLAIN.n_bytes("from_host") == from_host
    support.release(copy, part, there)


def test_one_wait_for_all_sizes():
    data = pa.record_batch(
        [words(), pa.array(["x" * 20, None, "y", "z" * 40], pa.string_view()), pa.array(["a", "b", None, ""])],
        names=["lists", "views", "text"],
    )
    there = on(FULL, data)
    kind = support.type_of(there)
    nodes, parts = support.to_buffers(there, FULL.type)
    for part, info in zip(parts, support.buffer_infos(there)):
        # Nobody says sizes, but those of views, in a buffer of their own.
        part.size_bytes = part.size_bytes if info.role in (VARIADIC, VARIADIC_SIZES) else -1
    array, schema = support.rebuilt(kind, nodes, parts, bs.Placement(device=FULL.devices[0]))
    foreign = out("array_import", byref(array), byref(schema))
    FULL.reset()
    back = to_device(foreign, CPU)
    # One wait for the sizes, and one for the copies.
    assert FULL.n("drain") == 2
    assert support.to_pyarrow(*support.exported(back)).equals(data)
    FULL.reset()
    sized = out("array_resolve_sizes", foreign, byref(LIBRARY))
    assert FULL.n("drain") == 1
    FULL.reset()
    again = to_device(sized, CPU)
    assert FULL.n("drain") == 1
    support.release(there, foreign, back, sized, again)
    lib.bowstring_type_release(kind)


def test_copies_to_a_device_do_not_block():
    source = imported()
    with FULL.queue() as queue:
        queue.stop()
        there = to_device(source, FULL.devices[0], options(queue.sync))
        support.release(source)
        assert live_counts()["pending"] == 1
        assert collect(FULL.devices[0], block=False) == 1
        assert collect(FULL.devices[1], block=False) == 0
        assert device_of(there)[1]
        FULL.reset()
        again = to_device(there, FULL.devices[1])
        # The library's own copies say their sizes, so nothing has to be read.
        assert FULL.n("drain") == FULL.n("host_waits") == 0 and FULL.n("between") == 5
        queue.go()
        assert to_list(again) == WORDS
    support.release(there, again)


def test_a_way_through_the_cpu_keeps_the_callers_order():
    """Where a device does not copy within itself, its memory is still read behind what is on the caller's queue."""
    there = on(HANDLES, pa.array([1, 2, 3], pa.int32()))
    with HANDLES.queue() as queue:
        queue.stop()
        HANDLES.fill(0, queue.handle, support.buffer_infos(there)[1].data, 1, 12)
        with Later(queue):
            copy = to_device(there, HANDLES.devices[0], options(queue.sync))
            buffer, again = out("array_buffer", there, 1), c_void_p()
            call("buffer_to_device", buffer, HANDLES.devices[0], byref(options(queue.sync)), byref(again), None)
    assert to_list(copy) == [0x01010101] * 3
    info = bs.BufferMemory()
    call("buffer_info", again, byref(info))
    assert HANDLES.read(info.data, 12) == b"\1" * 12
    lib.bowstring_buffer_release(buffer)
    lib.bowstring_buffer_release(again)
    support.release(there, copy)


def test_the_source_is_kept_until_it_was_read():
    """Its memory is poisoned as soon as it is let go, and read late."""
    memory = ctypes.create_string_buffer(b"1234567890123456", 16)
    gone = []

    def let_go(_):
        ctypes.memset(memory, 0xDD, 16)
        gone.append(1)

    owner = bs.RELEASE(let_go)
    with FULL.queue() as queue:
        owned = bs.OwnedBuffer(ctypes.addressof(memory), 16, 1, owner)
        source = out("buffer_wrap", byref(owned), None)
        queue.stop()
        made = c_void_p()
        call("buffer_to_device", source, FULL.devices[0], byref(options(queue.sync)), byref(made), None)
        lib.bowstring_buffer_release(source)
        assert not gone
        queue.go()
    assert collect(FULL.devices[0]) == 0 and gone
    info = bs.BufferMemory()
    call("buffer_info", made, byref(info))
    assert FULL.read(info.data, 16) == b"1234567890123456"
    lib.bowstring_buffer_release(made)


def test_a_destination_that_nobody_wants():
    source = imported()
    with FULL.queue() as queue:
        queue.stop()
        there = to_device(source, FULL.devices[0], options(queue.sync))
        support.release(source, there)
        assert FULL.live_memory() == 5
        queue.go()
    FULL.settle()
    assert FULL.live_memory() == 0


def test_a_buffer_keeps_its_own_memory_and_the_event():
    source = imported()
    with HANDLES.queue() as queue:
        queue.stop()
        there = to_device(source, HANDLES.devices[0], options(queue.sync))
        buffer = out("array_buffer", there, 4)
        assert HANDLES.live_memory() == 5
        support.release(source, there)
        info = bs.BufferMemory()
        call("buffer_info", buffer, byref(info))
        event = ctypes.cast(info.sync_event, ctypes.POINTER(c_void_p))[0]
        assert not HANDLES.is_done(event)
        queue.go()
    HANDLES.settle()
    collect(HANDLES.devices[0])
    assert (HANDLES.live_memory(), HANDLES.live_events()) == (1, 1)
    assert "arrays" not in live_counts()
    data = ctypes.create_string_buffer(3)
    call("buffer_read", buffer, 0, data, 3, byref(LIBRARY))
    assert data.raw == b"abc"
    lib.bowstring_buffer_release(buffer)


def test_pending_work_is_bounded():
    source, made = imported(pa.array([1, 2, 3])), []
    FULL.delay(2000)
    for _ in range(100):
        made.append(to_device(source, FULL.devices[0]))
        assert live_counts().get("pending", 0) <= 64
    support.release(source, *made)
    assert collect(FULL.devices[0]) == 0


def test_a_full_list_waits_for_the_oldest():
    source, made = imported(pa.array([1, 2, 3])), []
    with FULL.queue() as queue:
        queue.stop()
        for _ in range(64):
            made.append(to_device(source, FULL.devices[0], options(queue.sync)))
        assert live_counts()["pending"] == 64
        with Later(queue) as later:
            made.append(to_device(source, FULL.devices[0], options(queue.sync)))
            assert later.gone
    support.release(source, *made)


# ---- numbers of arrays on a device --------------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", devices.PLUGINS, ids=lambda plugin: str(plugin.type))
def test_null_counts(plugin):
    n = 10_000_000 if plugin is PLAIN else 1000
    data = pa.array([None, 1, 2, None, 4, 5, 6], pa.int8()).take(pa.array([i % 7 for i in range(n)]))
    there = on(plugin, data)
    count = c_int64()
    for start, length in ((0, n), (3, 100), (1, 1), (n - 5, 5), (13, n - 27)):
        raw = support.exported_anywhere(there)
        raw[0].array.null_count = -1
        part = out("array_import", byref(raw[0]), byref(raw[1]))
        part, whole = out("array_slice", part, start, length), part
        plugin.reset()
        call("array_null_count", part, byref(LIBRARY), byref(count))
        assert count.value == data.slice(start, length).null_count
        call("array_null_count", part, byref(NONE), byref(count))
        support.release(whole, part)
    support.release(there)


def test_a_null_count_needs_a_backend():
    kind = support.type_from(pa.int32())
    buffers = (bs.OwnedBuffer * 2)(bs.OwnedBuffer(1 << 20, 64), bs.OwnedBuffer(1 << 21, 64))
    array, schema = support.rebuilt(
        kind, (bs.Node * 1)(bs.Node(3, -1, 0, 2)), buffers, bs.Placement(device=Device(299, 0)),
    )
    handle = out("array_import", byref(array), byref(schema))
    refused(UNSUPPORTED, "array_null_count", handle, byref(LIBRARY), byref(c_int64()))
    refused(UNSUPPORTED, "array_to_device", handle, CPU, byref(options()), byref(c_void_p()), None)
    # Nothing has to be read for the sizes.
    sized = out("array_resolve_sizes", handle, byref(LIBRARY))
    support.release(handle, sized)
    lib.bowstring_type_release(kind)


def test_null_counts_without_a_bitmap():
    kind = support.type_from(pa.int32())
    at = PLAIN.take(0, 64)
    buffers = (bs.OwnedBuffer * 2)(bs.OwnedBuffer(), bs.OwnedBuffer(at, 64))
    array, schema = support.rebuilt(
        kind, (bs.Node * 1)(bs.Node(3, -1, 0, 2)), buffers, bs.Placement(device=PLAIN.devices[0]),
    )
    handle, count = out("array_import", byref(array), byref(schema)), c_int64(9)
    call("array_null_count", handle, None, byref(count))
    assert count.value == 0
    support.release(handle)
    lib.bowstring_type_release(kind)
    PLAIN.give_back(at)


def test_export_host():
    array, schema = bs.ArrowArray(), bs.ArrowSchema()
    source = imported()
    with ACCESSIBLE_ONE.queue() as queue:
        queue.stop()
        there = to_device(source, ACCESSIBLE_ONE.devices[0], options(queue.sync))
        refused(SYNC_REQUIRED, "array_export_host", there, None, byref(array), byref(schema))
        with Later(queue) as later:
            call("array_export_host", there, byref(LIBRARY), byref(array), byref(schema))
            assert later.gone
    support.release(source, there)
    found = pa.Array._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))
    assert found.to_pylist() == WORDS
    del found
    there = on(FULL)
    refused(UNSUPPORTED, "array_export_host", there, byref(LIBRARY), byref(array), byref(schema))
    support.release(there)
