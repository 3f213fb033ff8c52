"""Events: what waits for them, new ones in their place, and what is let go when a queue has come so far.

Queues that stand still show what waits for what.
"""

import ctypes
import struct
import time
from ctypes import byref, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import devices
import support
from bowstring_ctypes import (
    DEVICE_ERROR, INVALID_ARGUMENT, OUT_OF_MEMORY, SYNC_NONE, SYNC_REQUIRED, UNSUPPORTED, Device, Sync, call, lib,
    live_counts, out,
)
from devices import (
    ACCESSIBLE_ONE, CPU, DEFAULT_QUEUE, FULL, HANDLES, HOST, LIBRARY, PLAIN, Later, collect, device_of, imported, on,
    options, recorded, refused, to_device, to_list,
)

NONE = Sync(SYNC_NONE)


@pytest.fixture(autouse=True)
def clean():
    before = devices.alive()
    yield
    for plugin in devices.PLUGINS:
        plugin.delay(0)
    devices.check_clean(before)


# ---- events -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plugin", [FULL, HANDLES, DEFAULT_QUEUE, ACCESSIBLE_ONE], ids=lambda plugin: str(plugin.type))
def test_a_queue_waits_for_the_array(plugin):
    source = imported()
    with plugin.queue() as first, plugin.queue() as second:
        first.stop()
        there = to_device(source, plugin.devices[0], options(first.sync))
        call("array_wait", there, byref(second.sync))
        mark = plugin.record(0, second.handle)
        time.sleep(0.02)
        assert not plugin.is_done(mark)
        with Later(first) as later:
            call("array_wait", there, byref(HOST))
            assert later.gone
        plugin.settle()
        assert plugin.is_done(mark)
        plugin.destroy_event(mark)
    refused(INVALID_ARGUMENT, "array_wait", there, byref(LIBRARY))
    refused(SYNC_REQUIRED, "array_wait", there, byref(NONE))
    call("array_wait", source, byref(NONE))
    support.release(source, there)


@pytest.mark.parametrize("plugin", [FULL, HANDLES, DEFAULT_QUEUE], ids=lambda plugin: str(plugin.type))
def test_a_new_event_is_behind_the_old_one_and_the_queue(plugin):
    there, copy = on(plugin), c_void_p()
    with plugin.queue() as first, plugin.queue() as second:
        first.stop()
        once = recorded(there, first.sync)
        twice = recorded(once, second.sync)
        assert len({device_of(one)[1] for one in (there, once, twice)}) == 3 - (not plugin.has(devices.EVENTS))
        address = device_of(twice)[1]
        is_handle = plugin is HANDLES
        event = ctypes.cast(address, ctypes.POINTER(c_void_p))[0] if is_handle else address
        support.release(there)
        time.sleep(0.02)
        assert not plugin.is_done(event)
        first.go()
        call("array_wait", twice, byref(HOST))
        assert plugin.is_done(event)
    # Its parts and its exports show the new event, and keep it.
    buffer, info = out("array_buffer", twice, 1), bs.BufferMemory()
    raw, schema = support.exported_anywhere(twice)
    call("buffer_info", buffer, byref(info))
    assert (info.sync_event, raw.sync_event) == (address, address)
    support.release(once, twice)
    assert plugin.is_done(event)
    lib.bowstring_device_array_release(byref(raw))
    lib.bowstring_schema_release(byref(schema))
    call("buffer_to_device", buffer, CPU, byref(options()), byref(copy), None)
    lib.bowstring_buffer_release(buffer)
    lib.bowstring_buffer_release(copy)


@pytest.mark.parametrize("plugin", [FULL, HANDLES], ids=lambda plugin: str(plugin.type))
def test_joined_events(plugin):
    there = on(plugin)
    queues = [plugin.queue() for _ in range(3)]
    for queue in queues[:2]:
        queue.stop()
    events = [plugin.record(0, queue.handle) for queue in queues[:2]]
    joined = out("array_join_events", there, (c_void_p * 2)(*events), 2, byref(queues[2].sync))
    with Later(queues[0]):
        with Later(queues[1], 0.1) as last:
            call("array_wait", joined, byref(HOST))
            assert last.gone
    # They were only borrowed for the call.
    for event in events:
        plugin.destroy_event(event)
    for queue in queues:
        queue.close()
    refused(INVALID_ARGUMENT, "array_join_events", there, (c_void_p * 1)(None), 1, byref(LIBRARY), byref(c_void_p()))
    refused(INVALID_ARGUMENT, "array_join_events", there, None, 1, byref(LIBRARY), byref(c_void_p()))
    support.release(out("array_join_events", there, None, 0, byref(LIBRARY)), there, joined)


def test_where_there_are_no_events():
    for handle in (imported(), on(PLAIN)):
        refused(UNSUPPORTED, "array_record", handle, byref(LIBRARY), byref(c_void_p()))
        for sync in (NONE, HOST, None):
            sync = None if sync is None else byref(sync)
            refused(INVALID_ARGUMENT, "array_record", handle, sync, byref(c_void_p()))
            refused(INVALID_ARGUMENT, "array_release_after", byref(handle), sync)
        call("array_release_after", byref(handle), byref(LIBRARY))
        assert not handle.value
    assert support.all_gone()


def test_release_after():
    there = on(FULL)
    with FULL.queue() as queue:
        queue.stop()
        at = support.buffer_infos(there)[1].data
        FULL.fill(0, queue.handle, at, 7, 4)
        call("array_release_after", byref(there), byref(queue.sync))
        assert not there.value and FULL.live_memory() == 5
        assert live_counts()["pending"] == 1
        assert collect(FULL.devices[0], block=False) == 1
        queue.go()
    assert collect(FULL.devices[0]) == 0
    FULL.settle()
    assert FULL.live_memory() == 0


def test_release_after_of_structs():
    released = []
    for plugin in (FULL, PLAIN):
        array = bs.ArrowDeviceArray(device_type=plugin.type)

        def release(at):
            bs.ArrowArray.from_address(at).release = None
            released.append(plugin.type)

        callback = bs.RELEASE(release)
        array.array.release = ctypes.cast(callback, c_void_p).value
        queue = plugin.queue() if plugin is FULL else None
        sync = queue.sync if queue else LIBRARY
        refused(INVALID_ARGUMENT, "device_array_release_after", byref(array), byref(HOST))
        assert array.array.release
        if queue:
            queue.stop()
        call("device_array_release_after", byref(array), byref(sync))
        assert not array.array.release
        # A released one is left alone.
        call("device_array_release_after", byref(array), byref(sync))
        if queue:
            assert released == []
            queue.go()
            queue.close()
            collect(plugin.devices[0])
        assert released == [plugin.type]
        released.clear()
    unknown = bs.ArrowDeviceArray(device_type=299)
    unknown.array.release = ctypes.cast(callback, c_void_p).value
    refused(UNSUPPORTED, "device_array_release_after", byref(unknown), byref(LIBRARY))
    assert unknown.array.release and not released


def test_owners_may_call_back():
    """What is let go by collecting may itself start work, and collect."""
    done, source = [], imported(pa.array([1, 2, 3]))

    def let_go(_):
        copy = to_device(source, FULL.devices[1])
        assert collect(FULL.devices[1]) == 0
        support.release(copy)
        done.append(1)

    owner = bs.RELEASE(let_go)
    kept = out("array_with_owner", source, 1, owner)
    there = to_device(kept, FULL.devices[0])
    support.release(kept)
    collect(FULL.devices[0])
    assert done
    support.release(there, source)


@pytest.mark.parametrize("plugin", [FULL, HANDLES], ids=lambda plugin: str(plugin.type))
def test_memory_stays_until_a_new_event_is_done(plugin):
    there = on(plugin)
    with plugin.queue() as queue:
        queue.stop()
        plugin.fill(0, queue.handle, support.buffer_infos(there)[1].data, 7, 4)
        new = recorded(there, queue.sync)
        buffer = out("array_buffer", new, 1)
        support.release(there, new)
        lib.bowstring_buffer_release(buffer)
        assert plugin.live_memory() == 5 and live_counts()["pending"] == 1
        queue.go()
    assert collect(plugin.devices[0]) == 0
    plugin.settle()
    assert plugin.live_memory() == 0


def test_an_owner_is_told_when_a_new_event_is_done():
    kind, owners, at = support.type_from(pa.int32()), support.Owners(), FULL.take(0, 12)
    buffers = (bs.OwnedBuffer * 2)(bs.OwnedBuffer(), bs.OwnedBuffer(at, 12, 1, owners.callback))
    placement = bs.Placement(device=FULL.devices[0])
    array, schema = support.rebuilt(kind, (bs.Node * 1)(bs.Node(3, 0, 0, 2)), buffers, placement)
    lib.bowstring_type_release(kind)
    handle = out("array_import", byref(array), byref(schema))
    with FULL.queue() as queue:
        queue.stop()
        new = recorded(handle, queue.sync)
        support.release(handle, new)
        assert owners.released == []
        queue.go()
        FULL.settle()
        assert collect(FULL.devices[0], block=False) == 0
        assert owners.released == [1]
    FULL.give_back(at)


@pytest.mark.parametrize("keeps", [False, True])
def test_many_events_in_a_row(keeps):
    """Each new event takes the place of the one before, and letting them all go takes no deep stack."""
    array, all_of_them = on(FULL), []
    for _ in range(3000):
        new = recorded(array)
        if keeps:
            all_of_them.append(array)
        else:
            support.release(array)
        array = new
    assert to_list(array) == devices.WORDS
    if not keeps:
        collect(FULL.devices[0])
        assert FULL.live_events() == 1 and live_counts()["arrays"] <= 2
    support.release(array, *all_of_them)


# ---- events of from_buffers, and buffers --------------------------------------------------------------------------


def test_record_on_in_from_buffers():
    kind = support.type_from(pa.int32())
    with FULL.queue() as queue:
        at = FULL.take(0, 12)
        queue.stop()
        FULL.fill(0, queue.handle, at, 1, 12)
        owners = support.Owners()
        buffers = (bs.OwnedBuffer * 2)(bs.OwnedBuffer(), bs.OwnedBuffer(at, 12, 1, owners.callback))
        placement = bs.Placement(device=FULL.devices[0], record_on=queue.sync)
        array, schema = support.rebuilt(kind, (bs.Node * 1)(bs.Node(3, 0, 0, 2)), buffers, placement)
        assert array.sync_event and not FULL.is_done(array.sync_event)
        handle = out("array_import", byref(array), byref(schema))
        with Later(queue):
            assert to_list(handle) == [0x01010101] * 3
        support.release(handle)
        assert owners.released == [1]
    lib.bowstring_type_release(kind)
    FULL.give_back(at)


def test_record_on_that_fails():
    kind = support.type_from(pa.int32())
    owners, at, array = support.Owners(), FULL.take(0, 12), bs.ArrowDeviceArray()
    buffers = (bs.OwnedBuffer * 2)(bs.OwnedBuffer(), bs.OwnedBuffer(at, 12, 1, owners.callback))
    nodes = (bs.Node * 1)(bs.Node(3, 0, 0, 2))
    for device, sync, status in (
        (FULL.devices[0], HOST, INVALID_ARGUMENT), (PLAIN.devices[0], LIBRARY, UNSUPPORTED),
        (Device(299, 0), LIBRARY, UNSUPPORTED), (FULL.devices[0], LIBRARY, DEVICE_ERROR),
    ):
        FULL.fail_call("record", 1 if status == DEVICE_ERROR else 0)
        placement = bs.Placement(device=device, record_on=sync, owner=9, release_owner=owners.callback)
        refused(status, "device_array_from_buffers", kind, nodes, 1, buffers, 2, byref(placement), byref(array))
        assert buffers[1].release_owner and placement.release_owner and not array.array.release
        made = c_void_p()
        memory = bs.OwnedBuffer(at, 12, 1, owners.callback)
        FULL.fail_call("record", 1 if status == DEVICE_ERROR else 0)
        refused(status, "buffer_wrap", byref(memory), byref(placement), byref(made))
        assert memory.release_owner and placement.release_owner and not made.value
    assert owners.released == []
    FULL.give_back(at)
    lib.bowstring_type_release(kind)


@pytest.mark.parametrize("plugin", [FULL, HANDLES], ids=lambda plugin: str(plugin.type))
def test_record_on_in_buffer_wrap(plugin):
    owners, at = support.Owners(), plugin.take(0, 64)
    with plugin.queue() as queue:
        queue.stop()
        plugin.fill(0, queue.handle, at, 9, 64)
        memory = bs.OwnedBuffer(at, 64, 1, owners.callback)
        placement = bs.Placement(
            device=plugin.devices[0], record_on=queue.sync, owner=2, release_owner=owners.callback,
        )
        buffer = out("buffer_wrap", byref(memory), byref(placement))
        assert not memory.release_owner and not placement.release_owner
        data = ctypes.create_string_buffer(64)
        with Later(queue):
            call("buffer_read", buffer, 0, data, 64, byref(HOST))
        assert data.raw == b"\x09" * 64
        lib.bowstring_buffer_release(buffer)
    assert owners.released == [1, 2]
    plugin.give_back(at)


@pytest.mark.parametrize("plugin", devices.PLUGINS, ids=lambda plugin: str(plugin.type))
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 4096, 70000, 300000])
def test_allocated_memory(plugin, size):
    device = plugin.devices[1]
    for sync in (None, byref(HOST), byref(LIBRARY)):
        buffer, data = c_void_p(), c_void_p()
        plugin.delay(100)
        call("buffer_allocate", device, size, sync, byref(buffer), byref(data))
        info = bs.BufferMemory()
        call("buffer_info", buffer, byref(info))
        assert (info.data, info.size_bytes, info.device.id) == (data.value, size, 1)
        is_waited = sync is not None and sync._obj is LIBRARY
        assert bool(info.sync_event) == (is_waited and plugin.has(devices.EVENTS))
        if info.sync_event:
            copy = c_void_p()
            call("buffer_to_device", buffer, CPU, byref(options()), byref(copy), None)
            lib.bowstring_buffer_release(copy)
        else:
            padded = -(-max(size, 1) // 64) * 64
            assert plugin.size(data) == padded and plugin.read(data, padded) == bytes(padded)
        lib.bowstring_buffer_release(buffer)


def test_memory_is_filled_in_few_copies():
    for plugin, n_host, n_within in ((FULL, 1, 4), (HANDLES, 16, 0)):
        buffer, data = c_void_p(), c_void_p()
        plugin.reset()
        call("buffer_allocate", plugin.devices[0], 1 << 20, None, byref(buffer), byref(data))
        assert (plugin.n("from_host"), plugin.n("within")) == (n_host, n_within)
        lib.bowstring_buffer_release(buffer)


def test_memory_for_a_queue():
    with FULL.queue() as queue:
        queue.stop()
        buffer, data = c_void_p(), c_void_p()
        call("buffer_allocate", FULL.devices[0], 100, byref(queue.sync), byref(buffer), byref(data))
        FULL.fill(0, queue.handle, data, 3, 100)
        queue.go()
        FULL.settle()
        assert FULL.read(data, 128) == b"\x03" * 100 + bytes(28)
        lib.bowstring_buffer_release(buffer)


def test_allocation_errors():
    made, data = c_void_p(), c_void_p()
    for device, size, sync, status in (
        (FULL.devices[0], -1, None, INVALID_ARGUMENT), (Device(299, 0), 1, None, UNSUPPORTED),
        (Device(5, 0), 1, None, INVALID_ARGUMENT), (FULL.devices[0], 1, byref(Sync(9)), INVALID_ARGUMENT),
        (FULL.devices[0], 1 << 62, None, OUT_OF_MEMORY), (FULL.devices[0], 2**63 - 1, None, OUT_OF_MEMORY),
        (CPU, 2**63 - 1, None, OUT_OF_MEMORY), (PLAIN.devices[0], 1 << 40, None, OUT_OF_MEMORY),
    ):
        refused(status, "buffer_allocate", device, size, sync, byref(made), byref(data))
        assert not made.value and not data.value


def test_ranges_of_buffers():
    there, data = on(PLAIN), ctypes.create_string_buffer(64)
    buffer = out("array_buffer", there, 1)
    for offset, n in ((0, 21), (21, 0), (20, 1), (-1, 1), (0, -1), (2**62, 2**62), (2**63 - 1, 1)):
        inside = 0 <= offset and 0 <= n and offset + n <= 20
        if inside:
            call("buffer_read", buffer, offset, data, n, None)
        elif n != 2**62:
            refused(INVALID_ARGUMENT, "buffer_read", buffer, offset, data, n, None)
    call("buffer_read", buffer, 20, None, 0, None)
    part = out("buffer_slice", buffer, 4, 8)
    call("buffer_read", part, 0, data, 8, None)
    assert data.raw[:8] == struct.pack("=2i", 3, 3)
    lib.bowstring_buffer_release(buffer)
    lib.bowstring_buffer_release(part)
    support.release(there)
