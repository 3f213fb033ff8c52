"""Calls on a queue that is being captured are refused and the capture goes on; calls on other queues work beside it."""

import ctypes
from ctypes import byref, c_int64, c_void_p

import gpu

N = 1000
MODES = {"global": 0, "thread": 1, "relaxed": 2}


def refused(array, queue):
    """How many calls on the captured queue are refused for what it is."""
    import bowstring_ctypes as bs
    from bowstring_ctypes import SYNC_QUEUE, Device, call
    from device_arrays import CPU, sync, to_device

    calls = {
        "array_to_device": lambda: to_device(array, Device(2, 0), SYNC_QUEUE, queue),
        "array_to_device, CPU": lambda: to_device(array, CPU, SYNC_QUEUE, queue),
        "array_record": lambda: call("array_record", array, sync(SYNC_QUEUE, queue), byref(c_void_p())),
        "array_release_after": lambda: call("array_release_after", byref(c_void_p(array.value)), sync(SYNC_QUEUE, queue)),
    }
    for name, function in calls.items():
        try:
            function()
        except bs.BowstringError as error:
            assert error.status == bs.UNSUPPORTED and "captur" in error.message, f"{name}: {error}"
        else:
            raise AssertionError(f"{name} was not refused")
    return len(calls)


def beside(array):
    """Work on a queue of the library's, during a capture of somebody else's."""
    import bowstring_ctypes as bs
    from bowstring_ctypes import SYNC_HOST, SYNC_LIBRARY, Device, call
    from device_arrays import CPU, address_of, release, sync, to_device

    there = to_device(array, Device(2, 0), SYNC_LIBRARY)
    call("array_wait", there, sync(SYNC_HOST))
    back = to_device(there, CPU, SYNC_LIBRARY)
    found = ctypes.string_at(address_of(back), 8 * N)
    release(there, back)
    count = c_int64()
    call("array_null_count", array, None, byref(count))
    assert bs.live_counts() is not None
    return found


def driver():
    cuda = gpu.Driver()
    from bowstring_ctypes import Device, call
    from device_arrays import CPU, array_of, release, to_device

    stream, address, other = cuda.stream(), cuda.allocate(8 * N), cuda.allocate(8 * N)
    cuda.write(address, b"\x05" * (8 * N))
    cuda.write(other, b"\x00" * (8 * N))
    array = array_of(address, N)
    # What is made once is made before.
    release(to_device(array, Device(2, 0)), to_device(array, CPU))
    calls = 0
    for name, mode in MODES.items():
        cuda.call("cuStreamBeginCapture_v2", stream, mode)
        cuda.call("cuMemsetD8Async", other, 9, 8 * N, stream)
        calls += refused(array, stream)
        assert beside(array) == b"\x05" * (8 * N)
        graph = c_void_p()
        cuda.call("cuStreamEndCapture", stream, byref(graph))
        assert graph.value, f"the capture in mode {name} was broken"
        if not hasattr(cuda.library, "cuGraphInstantiateWithFlags"):
            gpu.figure(f"the graph in mode {name}", "made, and not run: this driver cannot")
        else:
            launch(cuda, graph, stream)
            cuda.finish(stream)
            assert cuda.read(other, 8 * N) == b"\x09" * (8 * N), "the graph did not do what was captured"
            cuda.write(other, b"\x00" * (8 * N))
        cuda.call("cuGraphDestroy", graph)
    if cuda.sim:
        assert cuda.sim.captures_invalidated() == 0
    release(array)
    call("device_collect", Device(2, 0), True, None)
    gpu.figure("refused", calls)
    cuda.no_faults()


def launch(cuda, graph, stream):
    """Runs a captured graph."""
    executable = c_void_p()
    cuda.library.cuGraphInstantiateWithFlags.argtypes = [c_void_p, c_void_p, ctypes.c_ulonglong]
    cuda.library.cuGraphLaunch.argtypes = [c_void_p, c_void_p]
    cuda.library.cuGraphExecDestroy.argtypes = [c_void_p]
    cuda.call("cuGraphInstantiateWithFlags", byref(executable), graph, 0)
    cuda.call("cuGraphLaunch", executable, stream)
    cuda.finish(stream)
    cuda.call("cuGraphExecDestroy", executable)


def torch():
    import packages

    torch = packages.torch()
    from device_arrays import CPU, array_of, release, to_device

    x = torch.zeros(N, dtype=torch.int64, device="cuda")
    values = torch.full((N,), 0x0505050505050505, dtype=torch.int64, device="cuda")
    array = array_of(values.data_ptr(), N)
    release(to_device(array, gpu_device()), to_device(array, CPU))
    x.add_(1)
    torch.cuda.synchronize()
    x.zero_()
    graph, calls = torch.cuda.CUDAGraph(), 0
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        x.add_(1)
        calls = refused(array, torch.cuda.current_stream().cuda_stream)
        assert beside(array) == b"\x05" * (8 * N)
        x.add_(1)
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [4] * N, "the graph did not do what was captured"
    release(array)
    gpu.figure("torch", torch.__version__)
    gpu.figure("refused", calls)


def cupy():
    import packages

    cupy = packages.cupy()
    from device_arrays import CPU, array_of, release, to_device

    x = cupy.zeros(N, dtype=cupy.int64)
    values = cupy.full(N, 0x0505050505050505, dtype=cupy.int64)
    cupy.cuda.Device().synchronize()
    array = array_of(values.data.ptr, N)
    release(to_device(array, gpu_device()), to_device(array, CPU))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x += 1
        stream.synchronize()
        x -= 1
        stream.synchronize()
        stream.begin_capture()
        x += 1
        calls = refused(array, stream.ptr)
        x += 1
        graph = stream.end_capture()
        graph.launch(stream)
        graph.launch(stream)
    stream.synchronize()
    assert cupy.asnumpy(x).tolist() == [4] * N, "the graph did not do what was captured"
    release(array)
    gpu.figure("cupy", cupy.__version__)
    gpu.figure("refused", calls)


def gpu_device():
    from bowstring_ctypes import Device

    return Device(2, 0)


if __name__ == "__main__":
    gpu.main({"driver": driver, "torch": torch, "cupy": cupy})
