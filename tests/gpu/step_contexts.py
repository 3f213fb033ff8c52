"""Whatever context the caller has made current is current again after each call, also one that fails."""

from ctypes import byref, c_int, c_int64, c_void_p

import gpu

N = 1000


def calls(array, queue=None):
    """Calls that work in the driver, some of which fail, by name."""
    import bowstring_ctypes as bs
    from bowstring_ctypes import SYNC_HOST, SYNC_LIBRARY, SYNC_QUEUE, Device, call, lib
    from device_arrays import CPU, release, sync, to_device

    def recorded():
        again = c_void_p()
        call("array_record", array, sync(SYNC_QUEUE, queue) if queue else sync(SYNC_LIBRARY), byref(again))
        release(again)

    def allocated(kind):
        buffer, data = c_void_p(), c_void_p()
        call("buffer_allocate", Device(kind, 0), 100, sync(SYNC_HOST), byref(buffer), byref(data))
        lib.bowstring_buffer_release(buffer)

    def fails(function):
        try:
            function()
        except bs.BowstringError:
            return
        raise AssertionError("a call that has to fail did not")

    made = {
        "to the device": lambda: release(to_device(array, Device(2, 0))),
        "to pinned memory": lambda: release(to_device(array, Device(3, 0), SYNC_HOST)),
        "to the CPU": lambda: release(to_device(array, CPU)),
        "record": recorded,
        "wait": lambda: call("array_wait", array, sync(SYNC_HOST)),
        "null count": lambda: call("array_null_count", array, sync(SYNC_HOST), byref(c_int64())),
        "validate": lambda: call("array_validate", array, None),
        "allocate": lambda: allocated(2),
        "allocate pinned memory": lambda: allocated(3),
        "collect": lambda: call("device_collect", Device(2, 0), True, None),
        "no such device": lambda: fails(lambda: to_device(array, Device(2, 99))),
        "too much": lambda: fails(lambda: call("buffer_allocate", Device(2, 0), 1 << 50, None, byref(c_void_p()), byref(c_void_p()))),
    }
    if queue:
        made["to the device on a queue"] = lambda: release(to_device(array, Device(2, 0), SYNC_QUEUE, queue))
        made["to the CPU on a queue"] = lambda: release(to_device(array, CPU, SYNC_QUEUE, queue))
        made["wait on a queue"] = lambda: call("array_wait", array, sync(SYNC_QUEUE, queue))
    if gpu.IS_SIMULATED:
        # Its memory is without limit.
        del made["too much"]
    return made


def check(driver, what, array, queue=None):
    before = driver.current()
    n = 0
    for name, function in calls(array, queue).items():
        function()
        now = driver.current()
        assert now == before, f"{what}, {name}: {now} is current, and was {before}"
        n += 1
    return n


def contexts():
    driver = gpu.Driver()
    from bowstring_ctypes import Device, call
    from device_arrays import array_of, release

    # The primary context.
    address = driver.allocate(8 * N)
    driver.write(address, bytes(8 * N))
    array = array_of(address, N)
    n = check(driver, "the primary context", array, driver.stream())
    # None.
    driver.call("cuCtxPopCurrent_v2", byref(c_void_p()))
    assert driver.current() is None
    n += check(driver, "no context", array)
    # One of our own, with memory and a stream of its own.
    own = driver.out("cuCtxCreate_v2", 0, driver.out("cuDeviceGet", 0, kind=c_int))
    assert driver.current() == own != driver.context
    there, queue = driver.allocate(8 * N), driver.stream()
    driver.write(there, bytes(8 * N))
    second = array_of(there, N)
    n += check(driver, "an own context, its memory", second, queue)
    n += check(driver, "an own context, the primary one's memory", array, queue)
    release(second)
    call("device_collect", Device(2, 0), True, None)
    driver.free(there)
    driver.call("cuStreamDestroy_v2", queue)
    driver.call("cuCtxDestroy_v2", own)
    driver.call("cuCtxPushCurrent_v2", driver.context)
    # Another device's.
    if driver.n_devices > 1:
        with driver.on(1):
            n += check(driver, "another device's context", array)
    release(array)
    call("device_collect", Device(2, 0), True, None)
    gpu.figure("calls", n)
    driver.no_faults()


def torch():
    import packages

    torch = packages.torch()
    driver = gpu.Driver(current=False)
    from device_arrays import CPU, address_of, array_of, release, to_device

    x = torch.arange(N, dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    driver.context = driver.current()
    assert driver.context, "torch has no current context"
    array = array_of(x.data_ptr(), N)
    side = torch.cuda.Stream()
    n = check(driver, "torch's context", array, side.cuda_stream)
    back = to_device(array, CPU)
    assert list((c_int64 * N).from_address(address_of(back))) == list(range(N))
    y = x + 1
    torch.cuda.synchronize()
    assert y.sum().item() == N * (N + 1) // 2
    release(array, back)
    gpu.figure("torch", torch.__version__)
    gpu.figure("calls", n)


if __name__ == "__main__":
    gpu.main({"contexts": contexts, "torch": torch})
