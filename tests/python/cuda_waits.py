"""One scenario for each wait in the device code, each in a process of its own: `python cuda_waits.py NAME`.

Each fails in a build that leaves that wait out, and in no other way.
"""

import ctypes
import sys
import time
from ctypes import byref, c_size_t, c_void_p

import cuda_arrays as cuda
import bowstring_ctypes as bs
from bowstring_ctypes import SYNC_HOST, SYNC_LIBRARY, SYNC_NONE, SYNC_QUEUE, BowstringError, Device, call, lib, out
from cuda_arrays import CPU, CUDA, CUDA_HOST, sim

N = 1000
GPU = Device(CUDA, 0)
OLD, NEW = b"\x00" * (8 * N), b"\x07" * (8 * N)
SOON = 0.15


def late_values(owner=None):
    """Values that a blocked kernel is still to write, and their array under the kernel's event."""
    stream, address = cuda.stream(), cuda.allocate(8 * N)
    sim.poke(address, OLD)
    cuda.block(stream)
    sim.enqueue_fill(stream, address, 7, 8 * N)
    event = cuda.record(stream)
    return stream, address, event, cuda.array_of(address, N, event=event, owner=owner)


def copy_after_event():
    stream, _, event, array = late_values()
    copy = cuda.to_device(array, GPU, SYNC_LIBRARY)
    time.sleep(SOON)
    assert not cuda.is_done(cuda.event_of(copy)), "the copy did not wait"
    cuda.unblock(stream)
    call("array_wait", copy, cuda.sync(SYNC_HOST))
    assert sim.peek(cuda.address_of(copy), 8 * N) == NEW
    cuda.release(array, copy)


def read_after_event():
    stream, _, _, array = late_values()
    buffer = out("array_buffer", array, 1)
    into = (ctypes.c_uint8 * (8 * N))()
    with cuda.let_go_later(stream) as done:
        call("buffer_read", buffer, 0, into, 8 * N, cuda.sync(SYNC_LIBRARY))
        assert done.is_set(), "nobody waited"
    assert bytes(into) == NEW
    lib.bowstring_buffer_release(buffer)
    cuda.release(array)


def pinned_values():
    """Values in pinned memory that a blocked kernel is still to write, and their array."""
    stream, address = cuda.stream(), cuda.allocate_pinned(8 * N)
    ctypes.memset(address, 0, 8 * N)
    cuda.block(stream)
    sim.enqueue_fill(stream, address, 7, 8 * N)
    event = cuda.record(stream)
    return stream, address, cuda.array_of(address, N, Device(CUDA_HOST, 0), event)


def export_pinned():
    stream, address, array = pinned_values()
    raw = bs.ArrowArray()
    with cuda.let_go_later(stream) as done:
        call("array_export_host", array, cuda.sync(SYNC_LIBRARY), byref(raw), None)
        assert done.is_set(), "nobody waited"
    assert raw.buffers[1] == address
    assert ctypes.string_at(address, 8 * N) == NEW
    lib.bowstring_host_array_release(byref(raw))
    cuda.release(array)


def access_after_event():
    export_pinned()


def access_arrived():
    export_pinned()


def array_after_event():
    stream, address, _, array = late_values()
    other = cuda.stream()
    call("array_wait", array, cuda.sync(SYNC_QUEUE, other))
    sim.enqueue_fill(other, address, 9, 8 * N)
    time.sleep(SOON)
    cuda.unblock(stream)
    sim.wait_idle()
    assert sim.peek(address, 8 * N) == b"\x09" * (8 * N), "the queue did not wait"
    cuda.release(array)


def tensor_after_event():
    stream, address, _, array = late_values()
    other, tensor = cuda.stream(), c_void_p()
    call("array_to_tensor", array, byref(bs.TensorOptions(sync=bs.Sync(SYNC_QUEUE, 0, other))), byref(tensor))
    sim.enqueue_fill(other, address, 9, 8 * N)
    time.sleep(SOON)
    cuda.unblock(stream)
    sim.wait_idle()
    assert sim.peek(address, 8 * N) == b"\x09" * (8 * N), "the queue did not wait"
    lib.bowstring_tensor_release(tensor)
    cuda.release(array)


def host_after_event():
    stream, address, _, array = late_values()
    with cuda.let_go_later(stream) as done:
        call("array_wait", array, cuda.sync(SYNC_HOST))
        assert done.is_set(), "nobody waited"
        assert sim.peek(address, 8 * N) == NEW
    cuda.release(array)


def read_arrived():
    address = cuda.allocate(8 * N)
    sim.poke(address, NEW)
    array = cuda.array_of(address, N)
    buffer = out("array_buffer", array, 1)
    into = (ctypes.c_uint8 * (8 * N))()
    call("buffer_read", buffer, 0, into, 8 * N, cuda.sync(SYNC_NONE))
    assert bytes(into) == NEW
    lib.bowstring_buffer_release(buffer)
    cuda.release(array)


def copy_arrived():
    address = cuda.allocate(8 * N)
    sim.poke(address, NEW)
    array = cuda.array_of(address, N)
    copy = cuda.to_device(array, CPU)
    assert ctypes.string_at(cuda.address_of(copy), 8 * N) == NEW
    cuda.release(array, copy)


def copy_finished():
    values = (ctypes.c_uint8 * (8 * N)).from_buffer_copy(NEW)
    array = cuda.array_of(ctypes.addressof(values), N, device=CPU)
    copy = cuda.to_device(array, GPU, SYNC_HOST)
    assert cuda.event_of(copy) is None
    assert sim.peek(cuda.address_of(copy), 8 * N) == NEW
    cuda.release(array, copy)


def failed_copy():
    # Two buffers come to memory of the caller's; the second copy fails when the first is still under way.
    address = cuda.allocate(8 * N)
    sim.poke(address, NEW)
    kind = out("type_parse", b"struct<a: int64, b: int64>")
    array = two_columns(kind, address)
    given, taken = {}, []
    memory = []

    def allocate(_, size, queue):
        block = ctypes.create_string_buffer(size + 64)
        memory.append(block)
        start = (ctypes.addressof(block) + 63) & ~63
        given[start] = size
        return start

    def deallocate(_, data, size, queue):
        assert given[data] == size
        ctypes.memset(data, 0x55, size)
        taken.append(data)

    asked = {"allocate": bs.ALLOCATE(allocate), "deallocate": bs.DEALLOCATE(deallocate)}
    sim.fail("cuMemcpyDtoHAsync_v2", 719, nth=2)
    try:
        cuda.to_device(array, CPU, **asked)
        raise AssertionError("the second copy should have failed")
    except BowstringError as error:
        assert error.native_code == 719, error
    assert sorted(taken) == sorted(given) and len(taken) == 2
    sim.wait_idle()
    for data, size in given.items():
        assert ctypes.string_at(data, size) == b"\x55" * size, "freed memory was written to"
    lib.bowstring_type_release(kind)
    cuda.release(array)


def failed_read():
    # Two numbers are read; the second copy fails when the first is still under way.
    offsets = cuda.allocate(64)
    kind = out("type_parse", b"struct<a: utf8, b: utf8>")
    nodes = (bs.Node * 3)(bs.Node(3, 0, 0, 1), bs.Node(3, 0, 0, 3), bs.Node(3, 0, 0, 3))
    none, text = (), ((offsets, 16), (offsets, -1))
    buffers = (bs.OwnedBuffer * 7)(*[bs.OwnedBuffer(*one) for one in (none, none, *text, none, *text)])
    placement, raw = bs.Placement(device=GPU), bs.ArrowDeviceArray()
    call("device_array_from_buffers", kind, nodes, 3, buffers, 7, byref(placement), byref(raw))
    array = out("array_import_typed", byref(raw), kind)
    sim.fail("cuMemcpyDtoHAsync_v2", 719, nth=2)
    try:
        lib.bowstring_array_release(out("array_resolve_sizes", array, cuda.sync(SYNC_NONE)))
        raise AssertionError("the second read should have failed")
    except BowstringError as error:
        assert error.native_code == 719, error
    assert cuda.unfinished("cuMemcpyDtoHAsync_v2") == 0, "a read was still under way"
    lib.bowstring_type_release(kind)
    cuda.release(array)


def failed_allocation():
    stream = cuda.stream()
    cuda.block(stream)
    # The memory is being zeroed when the event behind that cannot be recorded.
    sim.fail("cuEventRecord", 719)
    buffer, data = c_void_p(), c_void_p()
    with cuda.let_go_later(stream) as done:
        try:
            call("buffer_allocate", GPU, 8 * N, cuda.sync(SYNC_QUEUE, stream), byref(buffer), byref(data))
            raise AssertionError("recording should have failed")
        except BowstringError as error:
            assert error.native_code == 719, error
        assert done.is_set(), "the memory was freed while it was being zeroed"


def free_after_copy():
    stream = cuda.stream()
    values = (ctypes.c_uint8 * (8 * N)).from_buffer_copy(NEW)
    array = cuda.array_of(ctypes.addressof(values), N, device=CPU)
    cuda.block(stream)
    copy = cuda.to_device(array, GPU, SYNC_QUEUE, stream)
    cuda.release(copy)
    time.sleep(SOON)
    cuda.no_faults()
    cuda.unblock(stream)
    cuda.release(array)


def free_drained():
    # Pinned memory goes at once, so whoever frees it waits for the copy into it.
    stream, address = cuda.stream(), cuda.allocate(8 * N)
    sim.poke(address, NEW)
    array = cuda.array_of(address, N)
    cuda.block(stream)
    copy = cuda.to_device(array, Device(CUDA_HOST, 0), SYNC_QUEUE, stream)
    with cuda.let_go_later(stream) as done:
        cuda.release(copy)
        assert done.is_set(), "the memory was freed too early"
    cuda.release(array)


def record_after_event():
    stream, _, _, array = late_values()
    other = cuda.stream()
    again = c_void_p()
    call("array_record", array, cuda.sync(SYNC_QUEUE, other), byref(again))
    event = cuda.event_of(again)
    time.sleep(SOON)
    assert not cuda.is_done(event), "the new event did not wait for the old one"
    cuda.unblock(stream)
    call("array_wait", again, cuda.sync(SYNC_HOST))
    assert cuda.is_done(event)
    cuda.release(array, again)


def join_after_events():
    address = cuda.allocate(8 * N)
    array = cuda.array_of(address, N)
    streams = [cuda.stream() for _ in range(3)]
    for one in streams:
        cuda.block(one)
    events = (c_void_p * 3)(*[cuda.record(one) for one in streams])
    again = c_void_p()
    call("array_join_events", array, events, 3, cuda.sync(SYNC_LIBRARY), byref(again))
    joined = cuda.event_of(again)
    for one in streams:
        time.sleep(SOON / 2)
        assert not cuda.is_done(joined), "an event was forgotten"
        cuda.unblock(one)
    call("array_wait", again, cuda.sync(SYNC_HOST))
    assert cuda.is_done(joined)
    cuda.release(array, again)


def pending_done():
    owner = cuda.Owner()
    stream, _, _, array = late_values(owner)
    call("array_release_after", byref(array), cuda.sync(SYNC_QUEUE, stream))
    assert not array.value
    left = c_size_t()
    call("device_collect", GPU, False, byref(left))
    assert (left.value, owner.count) == (1, 0), "the array was let go while it was in use"
    cuda.unblock(stream)
    sim.wait_idle()
    call("device_collect", GPU, False, byref(left))
    assert (left.value, owner.count) == (0, 1)


def pending_oldest():
    stream = cuda.stream()
    address = cuda.allocate(8 * N)
    cuda.block(stream)
    let_go = []

    def release_one(then=None):
        owner = cuda.Owner(then)
        array = cuda.array_of(address, N, owner=owner)
        call("array_release_after", byref(array), cuda.sync(SYNC_QUEUE, stream))
        let_go.append(owner)

    early = []
    for i in range(64):
        release_one((lambda: early.append(not done[0].is_set())) if i == 0 else None)
    assert not any(owner.count for owner in let_go)
    done = [None]
    with cuda.let_go_later(stream) as free:
        done[0] = free
        release_one()
        assert let_go[0].count == 1 and early == [False], "the oldest was not waited for"
    sim.wait_idle()
    call("device_collect", GPU, True, None)
    assert all(owner.count == 1 for owner in let_go)


def collect_blocks():
    owner = cuda.Owner()
    stream, _, _, array = late_values(owner)
    call("array_release_after", byref(array), cuda.sync(SYNC_QUEUE, stream))
    left = c_size_t(7)
    with cuda.let_go_later(stream) as done:
        call("device_collect", GPU, True, byref(left))
        assert done.is_set(), "collecting did not wait"
    assert (left.value, owner.count) == (0, 1)


def allocated_ready():
    buffer, data = c_void_p(), c_void_p()
    call("buffer_allocate", GPU, 8 * N, cuda.sync(SYNC_HOST), byref(buffer), byref(data))
    stream = cuda.stream()
    sim.enqueue_fill(stream, data.value, 7, 8 * N)
    sim.wait_idle()
    assert sim.peek(data.value, 8 * N) == NEW, "the memory was zeroed after it was handed out"
    lib.bowstring_buffer_release(buffer)


def two_columns(kind, address):
    """A struct of two columns over the same device memory."""
    nodes = (bs.Node * 3)(bs.Node(N, 0, 0, 1), bs.Node(N, 0, 0, 2), bs.Node(N, 0, 0, 2))
    none = ()
    values = (address, 8 * N)
    buffers = (bs.OwnedBuffer * 5)(*[bs.OwnedBuffer(*one) for one in (none, none, values, none, values)])
    placement = bs.Placement(device=GPU)
    raw = bs.ArrowDeviceArray()
    call("device_array_from_buffers", kind, nodes, 3, buffers, 5, byref(placement), byref(raw))
    return out("array_import_typed", byref(raw), kind)


SCENARIOS = {
    one.__name__.replace("_", "-"): one
    for one in (
        copy_after_event, read_after_event, access_after_event, access_arrived, array_after_event, tensor_after_event,
        host_after_event,        read_arrived, copy_arrived, copy_finished, failed_read, failed_copy, failed_allocation, free_after_copy, free_drained, record_after_event, join_after_events, pending_done, pending_oldest, collect_blocks, allocated_ready,
    )
}


def main(name):
    with cuda.Context():
        try:
            SCENARIOS[name]()
            sim.wait_idle()
            call("device_collect", GPU, True, None)
            cuda.no_faults()
        except AssertionError as failure:
            # Told apart from everything else that may go wrong.
            sys.exit(f"the scenario {name} failed: {failure}")


if __name__ == "__main__":
    main(sys.argv[1])
