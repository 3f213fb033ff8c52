"""Streams that go to the simulated CUDA driver's device, each case in a process of its own: `python cuda_streams.py NAME`."""

import sys
import time
from ctypes import byref, c_void_p

import cuda_arrays as cuda
import pyarrow as pa

import bowstring_ctypes as bs
import streams
from bowstring_ctypes import SYNC_LIBRARY, SYNC_NONE, SYNC_QUEUE, Device, Sync, call, lib, live_counts, out
from cuda_arrays import CUDA, sim

N, BATCHES = 4096, 6
GPU = Device(CUDA, 0)
COPY, KERNEL = "cuMemcpyHtoDAsync_v2", "cuda_sim_enqueue_delay"


def stream_to(device, depth, mode=SYNC_NONE, queue=None, from_stream=None):
    stream = from_stream or streams.from_arrays([pa.array([i] * N, pa.int64()) for i in range(BATCHES)])
    options = bs.TransferOptions(sync=Sync(mode, 0, queue), depth=depth)
    return out("stream_to_device", byref(stream), device, byref(options))


def copies():
    return sim.log(COPY)


def started(n):
    """Waits until the copy of batch `n` runs or is done."""
    end = time.monotonic() + 5
    while len(copies()) <= n or not copies()[n].start:
        assert time.monotonic() < end, sim.log_text()
        time.sleep(0.001)


def consumed(depth, mode):
    """A consumer whose kernel on each batch takes a while; the copies and kernels by batch."""
    queue = cuda.stream()
    sim.log_clear()
    stream = stream_to(GPU, depth, mode, queue if mode == SYNC_QUEUE else None)
    batches = []
    for n in range(BATCHES):
        array = streams.next_of(stream)
        if mode != SYNC_QUEUE:
            call("array_wait", array, cuda.sync(SYNC_QUEUE, queue))
        started(n)
        sim.enqueue_delay(queue, 40)
        if depth and n + 1 < BATCHES:
            started(n + 1)
        else:
            assert len(copies()) == n + 1
        cuda.driver("cuStreamSynchronize", queue)
        assert sim.peek(cuda.address_of(array), 8 * N) == n.to_bytes(8, "little") * N
        batches.append(array)
    assert streams.next_of(stream) is None
    found, kernels = copies(), sim.log(KERNEL)
    assert len(found) == len(kernels) == BATCHES and all(int(one.arguments["size"]) == 8 * N for one in found)
    assert {one.stream for one in found} == ({queue} if mode == SYNC_QUEUE and not depth else {found[0].stream})
    assert (found[0].stream == queue) == (mode == SYNC_QUEUE and not depth)
    cuda.release(*batches)
    streams.release(stream)
    sim.wait_idle()
    call("device_collect", GPU, True, None)
    cuda.driver("cuStreamDestroy_v2", queue)
    return found, kernels


def ahead_means_overlapping():
    """The copy of the next batch begins before the kernel on this one has ended; with depth 0 it does not."""
    n = 0
    for mode in (SYNC_NONE, SYNC_QUEUE):
        for depth in (0, 1, 3):
            found, kernels = consumed(depth, mode)
            for kernel, following in zip(kernels, found[1:]):
                assert (following.start < kernel.end) == (depth > 0), sim.log_text()
                n += 1
    nothing_left()
    print(f"{n} batches")


def a_kernel_waits_for_its_copy():
    """With QUEUE and a depth, what the caller enqueues after `next` runs behind the copy, which takes its time."""
    sim.configure(delay_us=20000)
    queue = cuda.stream()
    stream = stream_to(GPU, 2, SYNC_QUEUE, queue)
    for n in range(BATCHES):
        array = streams.next_of(stream)
        sim.log_clear()
        into = cuda.allocate(8 * N)
        sim.enqueue_copy(queue, into, cuda.address_of(array), 8 * N)
        cuda.driver("cuStreamSynchronize", queue)
        assert sim.peek(into, 8 * N) == n.to_bytes(8, "little") * N, f"batch {n} was read before it was there"
        cuda.free(into)
        cuda.release(array)
    streams.release(stream)
    sim.configure(delay_us=0)
    sim.wait_idle()
    call("device_collect", GPU, True, None)
    cuda.driver("cuStreamDestroy_v2", queue)
    nothing_left()
    print(f"{BATCHES} batches")


def over_devices_and_back():
    """From device to device and to the CPU, each step ahead."""
    there = stream_to(GPU, 2)
    other = stream_to(Device(CUDA, 1), 3, SYNC_LIBRARY, from_stream=there)
    back = stream_to(Device(1, -1), 1, SYNC_LIBRARY, from_stream=other)
    for n, array in enumerate(streams.drained(back)):
        assert streams.as_pyarrow(array, pa.Array).to_pylist() == [n] * N
    assert n + 1 == BATCHES
    streams.release(back)
    # Released in the middle, with copies under way.
    sim.configure(delay_us=5000)
    stream = stream_to(GPU, 3)
    cuda.release(streams.next_of(stream))
    streams.release(stream)
    sim.configure(delay_us=0)
    sim.wait_idle()
    for ordinal in (0, 1):
        call("device_collect", Device(CUDA, ordinal), True, None)
    nothing_left()
    print(f"{n + 1} batches")


def nothing_left():
    sim.wait_idle()
    call("device_collect", GPU, True, None)
    live = sim.live()
    assert (live["bytes"], live["events"]) == (0, 0), live
    assert not live_counts(), live_counts()
    cuda.no_faults()


CASES = {
    one.__name__.replace("_", "-"): one
    for one in (ahead_means_overlapping, a_kernel_waits_for_its_copy, over_devices_and_back)
}

if __name__ == "__main__":
    with cuda.Context():
        CASES[sys.argv[1]]()
