"""Asynchronous calls while a kernel runs that nobody has let go: that its event was pending is a fact, not a matter of luck."""

import ctypes
import time
from ctypes import byref, c_size_t, c_void_p

import gpu

N = 4096
SIZE = 8 * N
OLD, NEW = b"\x00" * SIZE, b"\x07" * SIZE
WAITED = 0.1


class Timed:
    """How long calls took while the kernel ran, in microseconds."""

    def __init__(self):
        self.took = {}

    def __call__(self, name, function):
        begun = time.perf_counter()
        result = function()
        self.took[name] = (time.perf_counter() - begun) * 1e6
        return result


def order():
    driver = gpu.Driver()
    # Once with the kernel let go at once, which loads what is loaded late, and once in earnest.
    _order(driver, False)
    took = _order(driver, True)
    for name, microseconds in took.items():
        gpu.figure(f"{name} returned while the kernel ran, after", f"{microseconds:.0f} us")
    driver.no_faults()


def _order(driver, in_earnest):
    import bowstring_ctypes as bs
    import device_arrays
    from bowstring_ctypes import (
        SYNC_HOST, SYNC_LIBRARY, SYNC_QUEUE, Device, OwnedBuffer, Placement, Sync, call, lib, out,
    )
    from device_arrays import address_of, event_of, sync, to_device

    here, timed = Device(2, 0), Timed()
    # One each, so that no wait hides that another one is missing.
    producer, waiting, copying, tensor_queue, record_queue, control = (driver.stream() for _ in range(6))
    address = driver.allocate(SIZE)
    results = {name: driver.allocate(SIZE) for name in ("array_wait", "array_to_tensor", "without a wait")}
    driver.write(address, OLD)
    for memory in results.values():
        driver.write(memory, b"\x55" * SIZE)

    gate = driver.gate(producer, address, 7, SIZE)
    if not in_earnest:
        gate.open()

    def made():
        """The array under an event that the library records behind the kernel."""
        kind = out("type_parse", b"int64")
        buffers = (OwnedBuffer * 2)(OwnedBuffer(), OwnedBuffer(address, SIZE))
        placement = Placement(device=here, record_on=Sync(SYNC_QUEUE, 0, producer))
        raw = bs.ArrowDeviceArray()
        call("device_array_from_buffers", kind, (bs.Node * 1)(bs.Node(N, 0, 0, 2)), 1, buffers, 2, byref(placement), byref(raw))
        array = out("array_import_typed", byref(raw), kind)
        lib.bowstring_type_release(kind)
        return array

    def pending(what, event):
        """The kernel's event, or one behind it, is not done."""
        assert not in_earnest or not driver.is_done(event), f"after {what} the event was done: the call waited for the kernel"

    array = timed("array_from_buffers with record_on", made)
    event = event_of(array)
    pending("record_on", event)

    copy = timed("array_to_device", lambda: to_device(array, here, SYNC_LIBRARY))
    pending("array_to_device", event)
    pending("array_to_device, its own event", event_of(copy))

    queued = timed("array_to_device on a queue", lambda: to_device(array, here, SYNC_QUEUE, copying))
    pending("array_to_device on a queue", event)
    pending("array_to_device on a queue, its own event", event_of(queued))

    again = c_void_p()
    timed("array_record", lambda: call("array_record", array, sync(SYNC_QUEUE, record_queue), byref(again)))
    pending("array_record", event)
    pending("array_record, the new event", event_of(again))

    timed("array_wait on a queue", lambda: call("array_wait", array, sync(SYNC_QUEUE, waiting)))
    pending("array_wait", event)
    driver.call("cuMemcpyDtoDAsync_v2", results["array_wait"], address, SIZE, waiting)

    tensor = c_void_p()
    options = bs.TensorOptions(sync=Sync(SYNC_QUEUE, 0, tensor_queue))
    timed("array_to_tensor", lambda: call("array_to_tensor", array, byref(options), byref(tensor)))
    pending("array_to_tensor", event)
    driver.call("cuMemcpyDtoDAsync_v2", results["array_to_tensor"], address, SIZE, tensor_queue)

    # The control: a queue that nobody made wait, and which is done although the kernel still runs.
    stale = None
    if in_earnest:
        driver.no_faults()
        driver.call("cuMemcpyDtoDAsync_v2", results["without a wait"], address, SIZE, control)
        driver.finish(control)
        pending("the control", event)
        stale = driver.read(results["without a wait"], SIZE)
        gpu.figure("without a wait the values were", "stale" if stale == OLD else "not stale")
        # That it races is its purpose.
        driver.forget_faults()

    if in_earnest:
        # What waits for nothing would be done by now.
        time.sleep(WAITED)
        for name, one in (("array_to_device", copy), ("array_to_device on a queue", queued), ("array_record", again)):
            assert not driver.is_done(event_of(one)), f"{name}: its event is done, and the kernel still runs"
        pending("everything", event)
        gate.open()
    call("array_wait", array, sync(SYNC_HOST))
    gate.check_in_time()
    assert driver.is_done(event)
    driver.finish(waiting)
    driver.finish(tensor_queue)
    for name in ("array_wait", "array_to_tensor"):
        assert driver.read(results[name], SIZE) == NEW, f"{name}: the queue read the values too early"
    for name, one in (("array_to_device", copy), ("array_to_device on a queue", queued), ("array_record", again)):
        call("array_wait", one, sync(SYNC_HOST))
        assert driver.is_done(event_of(one)), name
        assert driver.read(address_of(one), SIZE) == NEW, f"{name}: the values are not the finished ones"
    back = to_device(again, device_arrays.CPU, SYNC_LIBRARY)
    assert ctypes.string_at(address_of(back), SIZE) == NEW
    assert not in_earnest or stale == OLD, "the control saw finished values: it proves nothing"
    lib.bowstring_tensor_release(tensor)
    device_arrays.release(array, copy, queued, again, back)
    call("device_collect", here, True, None)
    for memory in (address, *results.values()):
        driver.free(memory)
    return timed.took


def release_after():
    driver = gpu.Driver()
    _release_after(driver, False)
    _release_after(driver, True)
    _collect_blocks(driver)
    _bound(driver)
    driver.no_faults()


def _pending():
    from bowstring_ctypes import Device, call

    left = c_size_t(99)
    call("device_collect", Device(2, 0), False, byref(left))
    return left.value


def _release_after(driver, in_earnest):
    """Handles and structs are let go when the queue has come so far, and not before."""
    import bowstring_ctypes as bs
    from bowstring_ctypes import SYNC_QUEUE, call, live_counts
    from device_arrays import Owner, array_of, sync

    stream, address = driver.stream(), driver.allocate(SIZE)
    gate = driver.gate(stream, address, 7, SIZE)
    if not in_earnest:
        gate.open()
        driver.finish(stream)
    owners = [Owner(), Owner()]
    handle = array_of(address, N, owner=owners[0])
    other, raw = array_of(address, N, owner=owners[1]), bs.ArrowDeviceArray()
    call("array_export", other, byref(raw), None)
    bs.lib.bowstring_array_release(other)
    begun = time.perf_counter()
    call("array_release_after", byref(handle), sync(SYNC_QUEUE, stream))
    call("device_array_release_after", byref(raw), sync(SYNC_QUEUE, stream))
    took = time.perf_counter() - begun
    assert not handle.value and not raw.array.release
    if in_earnest:
        assert [owner.count for owner in owners] == [0, 0], "let go while the kernel runs"
        assert _pending() == 2 and live_counts()["pending"] == 2
        gpu.figure("two releases returned while the kernel ran, after", f"{took * 1e6:.0f} us")
        gate.open()
    driver.finish(stream)
    gate.check_in_time()
    assert _pending() == 0 and [owner.count for owner in owners] == [1, 1]
    driver.free(address)


def _collect_blocks(driver):
    """Collecting with `block` waits for the kernel."""
    from bowstring_ctypes import SYNC_QUEUE, Device, call
    from device_arrays import Owner, array_of, sync

    stream, address, owner = driver.stream(), driver.allocate(SIZE), Owner()
    gate = driver.gate(stream, address, 7, SIZE)
    array = array_of(address, N, owner=owner)
    call("array_release_after", byref(array), sync(SYNC_QUEUE, stream))
    left, begun = c_size_t(9), time.perf_counter()
    with gate.open_later() as done:
        call("device_collect", Device(2, 0), True, byref(left))
        assert done.is_set(), "collecting did not wait"
    assert time.perf_counter() - begun > WAITED
    gate.check_in_time()
    assert (left.value, owner.count) == (0, 1)
    driver.free(address)


def _bound(driver):
    """64 pieces may be pending; one more waits for the oldest."""
    from bowstring_ctypes import SYNC_QUEUE, Device, call
    from device_arrays import Owner, array_of, sync

    stream, address, owners = driver.stream(), driver.allocate(SIZE), []
    gate = driver.gate(stream, address, 7, SIZE)

    def one():
        owners.append(Owner())
        array = array_of(address, N, owner=owners[-1])
        call("array_release_after", byref(array), sync(SYNC_QUEUE, stream))

    begun = time.perf_counter()
    for _ in range(64):
        one()
    took = time.perf_counter() - begun
    assert not any(owner.count for owner in owners) and _pending() == 64
    with gate.open_later() as done:
        one()
        assert done.is_set() and owners[0].count == 1, "the oldest was not waited for"
    gate.check_in_time()
    driver.finish(stream)
    call("device_collect", Device(2, 0), True, None)
    assert [owner.count for owner in owners] == [1] * 65
    gpu.figure("64 releases returned while the kernel ran, after", f"{took * 1e6:.0f} us")
    driver.free(address)


if __name__ == "__main__":
    gpu.main({"order": order, "release_after": release_after})
