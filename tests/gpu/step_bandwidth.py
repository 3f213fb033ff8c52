"""The library's copies beside plain ones of the driver, of the same bytes, in the same run. Figures; only nonsense fails."""

import ctypes
import mmap
import statistics
import time

import gpu

BYTES = (1 << 23) if gpu.IS_SIMULATED else (1 << 30)
ROUNDS = 5
# Seconds for one comparison.
PATIENCE = 3
# Seconds after which no further comparison is begun.
STARTED, ENOUGH = time.monotonic(), 30
ROWS, COLUMNS = 1000, 10


def seconds(function):
    """How long it takes."""
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def rounds_for(once):
    """Fewer where one takes long."""
    return max(1, min(ROUNDS, int(PATIENCE / once)))


def compare(name, ours, plain):
    """Both in turns, so that whatever changes meanwhile changes for both."""
    if time.monotonic() - STARTED > ENOUGH:
        gpu.figure(name, "left out: this machine is too slow")
        return
    rounds = rounds_for(seconds(ours) + seconds(plain))
    both = [(seconds(ours), seconds(plain)) for _ in range(rounds)]
    our, their = (statistics.median(took) for took in zip(*both))
    gpu.figure(
        name,
        f"{BYTES / our / 1e9:.2f} GB/s, plain copy {BYTES / their / 1e9:.2f} GB/s, ratio of times {our / their:.3f}, "
        f"medians of {rounds}",
    )
    assert our / their < 1000


def large():
    driver = gpu.Driver()
    if driver.sim:
        driver.sim.configure(delay_us=0)
    import bowstring_ctypes as bs
    from bowstring_ctypes import SYNC_HOST, SYNC_LIBRARY, Device, call
    from device_arrays import CPU, address_of, array_of, release, to_device

    here, n = Device(2, 0), BYTES // 8
    pages = mmap.mmap(-1, BYTES)
    pageable = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    # Pages that were never written to are all the same one.
    ctypes.memset(pageable, 0x5A, BYTES)
    pinned = driver.allocate(BYTES, "cuda_host")
    ctypes.memset(pinned, 0x5A, BYTES)
    target, stream = driver.allocate(BYTES), driver.stream()

    def plain_in(source):
        driver.call("cuMemcpyHtoDAsync_v2", target, source, BYTES, stream)
        driver.finish(stream)

    def plain_out(to):
        driver.call("cuMemcpyDtoHAsync_v2", to, target, BYTES, stream)
        driver.finish(stream)

    def giving(address):
        """The library writes to this memory instead of asking for some."""
        allocate = bs.ALLOCATE(lambda ctx, size, queue: address if size >= BYTES else None)
        return {"allocate": allocate, "deallocate": bs.DEALLOCATE(lambda *_: None)}

    def copied(array, device, **more):
        release(to_device(array, device, SYNC_HOST if device is here else SYNC_LIBRARY, **more))

    for name, address, kind in (("pageable", pageable, CPU), ("pinned", pinned, Device(3, 0))):
        array = array_of(address, n, kind)
        into = giving(target)
        compare(f"{name} to device, memory given", lambda: copied(array, here, **into), lambda: plain_in(address))
        compare(f"{name} to device, memory allocated", lambda: copied(array, here), lambda: plain_in(address))
        release(array)
    there = array_of(target, n)
    back, back_pinned = giving(pageable), giving(pinned)
    compare("device to pageable, memory given", lambda: copied(there, CPU, **back), lambda: plain_out(pageable))
    compare("device to pinned, memory given", lambda: copied(there, CPU, **back_pinned), lambda: plain_out(pinned))
    rounds = rounds_for(seconds(lambda: copied(there, CPU)))
    fresh = statistics.median(seconds(lambda: copied(there, CPU)) for _ in range(rounds))
    gpu.figure(
        "device to pageable, memory allocated", f"{BYTES / fresh / 1e9:.2f} GB/s, fresh pages included, median of {rounds}"
    )
    second = driver.allocate(BYTES)
    into_second = giving(second)

    def plain_within():
        driver.call("cuMemcpyDtoDAsync_v2", second, target, BYTES, stream)
        driver.finish(stream)

    compare("within the device, memory given", lambda: copied(there, here, **into_second), plain_within)
    # Nothing of this is worth anything unless the bytes arrive.
    ctypes.memset(pageable, 0, 64)
    last = to_device(there, CPU, SYNC_LIBRARY)
    assert ctypes.string_at(address_of(last), 4096) == b"\x5a" * 4096
    assert ctypes.string_at(address_of(last) + BYTES - 4096, 4096) == b"\x5a" * 4096
    release(there, last)
    call("device_collect", here, True, None)
    gpu.figure("bytes", BYTES)
    driver.no_faults()


def small():
    """What a call costs beside what it copies."""
    driver = gpu.Driver()
    if not driver.attribute("memory_pools"):
        gpu.skip("a device without memory pools")
    if driver.sim:
        driver.sim.configure(delay_us=0)
    import columns
    from bowstring_ctypes import SYNC_HOST, SYNC_LIBRARY, Device, call, out
    from columns import CPU
    from device_arrays import release, to_device
    from raw import Node, i64

    turns = 50 if gpu.IS_SIMULATED else 300
    here, data = Device(2, 0), i64(*range(ROWS))
    batch = columns.imported(Node("+s", ROWS, 0, 0, [None], [
        Node("l", ROWS, 0, 0, [None, data], name=f"c{i}".encode()) for i in range(COLUMNS)
    ]))
    one = out("array_child", batch, 0)
    stream = driver.stream()
    source = ctypes.create_string_buffer(data)

    def plain(count):
        made = []
        for _ in range(count):
            address = driver.out("cuMemAllocAsync", len(data), stream, kind=ctypes.c_uint64)
            driver.call("cuMemcpyHtoDAsync_v2", address, source, len(data), stream)
            made.append(address)
        return made

    def plain_and_free(count, wait):
        made = plain(count)
        if wait:
            driver.finish(stream)
        for address in made:
            driver.call("cuMemFreeAsync", address, stream)

    def microseconds(name, function):
        for _ in range(20):
            function()
        took = []
        for _ in range(turns):
            begun = time.perf_counter()
            function()
            took.append((time.perf_counter() - begun) * 1e6)
        took.sort()
        gpu.figure(name, f"{took[len(took) // 2]:.1f} us, at best {took[0]:.1f}")
        assert took[0] < 1e6

    microseconds(f"{COLUMNS} columns of {ROWS} rows to the device, not waiting", lambda: release(to_device(batch, here, SYNC_LIBRARY)))
    microseconds(f"{COLUMNS} columns, until they are there", lambda: release(to_device(batch, here, SYNC_HOST)))
    microseconds(f"{COLUMNS} plain allocations and copies by ctypes, not waiting", lambda: plain_and_free(COLUMNS, False))
    microseconds(f"{COLUMNS} plain ones, until they are there", lambda: plain_and_free(COLUMNS, True))
    microseconds("one column, not waiting", lambda: release(to_device(one, here, SYNC_LIBRARY)))
    microseconds("one plain one, not waiting", lambda: plain_and_free(1, False))
    there = to_device(batch, here, SYNC_HOST)
    microseconds(f"{COLUMNS} columns back to the CPU", lambda: release(to_device(there, CPU, SYNC_LIBRARY)))
    microseconds(f"{COLUMNS} columns within the device, not waiting", lambda: release(to_device(there, here, SYNC_LIBRARY)))
    release(batch, one, there)
    call("device_collect", here, True, None)
    driver.finish(stream)
    driver.no_faults()


if __name__ == "__main__":
    gpu.main({"large": large, "small": small})
