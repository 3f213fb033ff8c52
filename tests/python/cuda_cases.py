"""Cases on the simulated CUDA driver, each in a process of its own: `python cuda_cases.py NAME`.

A case prints how much it did.
"""

import ctypes
import random
import sys
from ctypes import byref, c_int64, c_void_p

import cuda_arrays as cuda
import pyarrow as pa

import all_types
import bowstring_ctypes as bs
import support
from bowstring_ctypes import (
    SYNC_HOST, SYNC_LIBRARY, SYNC_NONE, SYNC_QUEUE, BowstringError, Device, call, lib, live_counts, out,
)
from cuda_arrays import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, sim

# In the order in which they follow each other, every pair of neighbours is met, and every device by itself.
DEVICES = [Device(CUDA, 0), Device(CUDA, 1), Device(CUDA_HOST, 0), Device(CUDA_MANAGED, 0), Device(CUDA_MANAGED, 1)]
MODES = [SYNC_NONE, SYNC_LIBRARY, SYNC_HOST]


def batches():
    """Every batch of every type."""
    return [batch for _, batches in all_types.streams() for batch in batches]


def windows(batch, draw):
    """The batch whole, and two slices of it."""
    n = batch.num_rows
    yield 0, n
    for _ in range(2):
        first = draw.randint(0, n)
        yield first, draw.randint(0, n - first)


def same(got, want, about):
    """Both have the same values; a copy may know more nulls."""
    got.validate(full=True)
    assert got.equals(want, check_metadata=True), f"{about}: {got.to_pydict()} is not {want.to_pydict()}"


def values_of(array):
    """What pyarrow makes of an array in CPU memory."""
    raw, schema = support.exported(array)
    return support.to_pyarrow(raw, schema)


def every_type_between_all_devices():
    draw, count, pairs = random.Random(7), 0, set()
    sim.configure(delay_us=0)
    for batch in batches():
        for first, n in windows(batch, draw):
            whole = support.imported(batch)
            array = out("array_slice", whole, first, n)
            want = batch.slice(first, n)
            places = [(CPU, array)]
            # A walk over all devices and back; later ones start anywhere that the walk has been.
            for device in draw.sample(DEVICES, len(DEVICES)) + [CPU]:
                origin, source = draw.choice(places[-2:])
                # A copy from memory that may still be written to has to say how it waits.
                mode = draw.choice(MODES) if origin is CPU else draw.choice(MODES[1:])
                copy = cuda.to_device(source, device, mode)
                pairs.add((origin.type, origin.id, device.type, device.id))
                places.append((device, copy))
            back = places[-1][1]
            same(values_of(back), want, f"{batch.schema}, rows {first} to {first + n}")
            cuda.release(whole, *[array for _, array in places])
            count += 1
    collect()
    cuda.no_faults()
    print(f"{count} windows, {len(pairs)} pairs")
    assert count > 300 and len(pairs) >= 25


def collect():
    sim.wait_idle()
    for device in DEVICES:
        call("device_collect", device, True, None)
    sim.wait_idle()


def nothing_is_left():
    """Memory, events and what the library counts."""
    batch = pa.record_batch({"a": pa.array([[1, None], [], [3]]), "b": pa.array(["x", None, "zz"])})
    for turn in range(3):
        whole = support.imported(batch)
        copy = cuda.to_device(whole, DEVICES[0])
        other = cuda.to_device(copy, DEVICES[1], SYNC_LIBRARY)
        buffer = out("array_buffer", other, 4)
        cuda.release(whole, copy, other)
        lib.bowstring_buffer_release(buffer)
        collect()
        live = sim.live()
        assert (live["bytes"], live["events"]) == (0, 0), live
    assert not live_counts().get("pending")
    cuda.no_faults()
    print("3 turns")


def contexts_are_restored():
    """Whatever is current for the caller is current afterwards, also when a call fails."""
    batch = pa.record_batch({"a": pa.array(range(100))})
    whole, tried = support.imported(batch), 0
    functions = [None, "cuCtxPushCurrent_v2", "cuMemAllocAsync", "cuMemcpyHtoDAsync_v2", "cuEventCreate", "cuEventRecord"]
    for ordinal in (0, 1):
        with cuda.Context(ordinal) as own:
            for function in functions:
                for device in DEVICES[:3]:
                    if function:
                        sim.fail(function, 719)
                    try:
                        cuda.release(cuda.to_device(whole, device))
                    except BowstringError as error:
                        assert error.native_code == 719, error
                    sim.fail_nothing()
                    now = c_void_p()
                    cuda.driver("cuCtxGetCurrent", byref(now))
                    assert now.value == own.handle.value
                    assert sim.live()["pushed_here"] == 1 + 1, sim.live()
                    tried += 1
    cuda.release(whole)
    collect()
    cuda.no_faults()
    print(f"{tried} calls")


def default_streams():
    """NULL is the driver's default stream, and 1 and 2 are the others; none means "no queue"."""
    address = cuda.allocate(800)
    sim.poke(address, b"\x01" * 800)
    for queue in (None, 1, 2):
        sim.log_clear()
        array = cuda.array_of(address, 100)
        copy = cuda.to_device(array, Device(CUDA, 0), SYNC_QUEUE, queue)
        copies = [entry for entry in sim.log() if entry.function.startswith("cuMemcpy")]
        assert copies and all((entry.stream or None) == queue for entry in copies if "HtoD" not in entry.function), sim.log_text()
        call("array_wait", copy, cuda.sync(SYNC_HOST))
        assert sim.peek(cuda.address_of(copy), 800) == b"\x01" * 800
        cuda.release(array, copy)
    collect()
    cuda.no_faults()
    print("3 streams")


def captures_are_refused():
    """A stream under capture is refused before anything is enqueued, and the capture goes on."""
    stream, address = cuda.stream(), cuda.allocate(800)
    array = cuda.array_of(address, 100)
    cuda.driver("cuStreamBeginCapture_v2", stream, 2)
    refused = 0
    for function in (
        lambda: cuda.to_device(array, Device(CUDA, 0), SYNC_QUEUE, stream),
        lambda: call("array_record", array, cuda.sync(SYNC_QUEUE, stream), byref(c_void_p())),
        lambda: call("array_release_after", byref(c_void_p(array.value)), cuda.sync(SYNC_QUEUE, stream)),
        lambda: call("array_null_count", array, cuda.sync(SYNC_QUEUE, stream), byref(c_int64())),
        lambda: cuda.to_device(array, CPU, SYNC_QUEUE, stream),
    ):
        try:
            function()
        except BowstringError as error:
            assert error.status == bs.UNSUPPORTED and "captur" in error.message, error
            refused += 1
    assert sim.captures_invalidated() == 0
    graph = c_void_p()
    cuda.driver("cuStreamEndCapture", stream, byref(graph))
    cuda.driver("cuGraphDestroy", graph)
    cuda.release(array)
    cuda.no_faults()
    print(f"{refused} refused")
    assert refused >= 4


def wrong_queue():
    """A queue of another device is refused with both named."""
    with cuda.Context(1):
        other = cuda.stream()
    address = cuda.allocate(800)
    array = cuda.array_of(address, 100)
    try:
        cuda.to_device(array, Device(CUDA, 0), SYNC_QUEUE, other)
        raise AssertionError("a queue of device 1 was taken for device 0")
    except BowstringError as error:
        assert error.status == bs.INVALID_ARGUMENT, error
    try:
        cuda.to_device(array, Device(CUDA, 7))
        raise AssertionError("there is no device 7")
    except BowstringError as error:
        assert error.status in (bs.DEVICE_UNAVAILABLE, bs.INVALID_ARGUMENT) and "7" in error.message, error
    cuda.release(array)
    print("2 refused")


def operations():
    """Everything that calls the driver, by name, each with what it makes released again."""
    values = pa.record_batch(
        {"a": pa.array([[1, None], [], [3]]), "b": pa.array(["x", None, "zz"]), "c": pa.array(["v", "w" * 20, None], pa.string_view())}
    )
    host = support.imported(values)
    there = cuda.to_device(host, Device(CUDA, 0), SYNC_HOST)
    part = out("array_slice", there, 1, 2)
    pending = cuda.to_device(host, Device(CUDA, 0))
    column = out("array_child", there, 1)

    def size_known():
        lib.bowstring_array_release(out("array_resolve_sizes", there, cuda.sync(SYNC_LIBRARY)))

    def counted():
        fresh = out("array_slice", column, 0, 2)
        try:
            call("array_null_count", fresh, cuda.sync(SYNC_HOST), byref(c_int64()))
        finally:
            cuda.release(fresh)

    def kept():
        again = c_void_p(lib.bowstring_array_retain(there))
        try:
            call("array_release_after", byref(again), cuda.sync(SYNC_LIBRARY))
        finally:
            lib.bowstring_array_release(again)

    def read():
        buffer = out("array_buffer", column, 1)
        into = (ctypes.c_uint8 * 16)()
        try:
            call("buffer_read", buffer, 0, into, 16, cuda.sync(SYNC_HOST))
        finally:
            lib.bowstring_buffer_release(buffer)

    def allocated():
        buffer, data = c_void_p(), c_void_p()
        call("buffer_allocate", Device(CUDA, 0), 100, cuda.sync(SYNC_LIBRARY), byref(buffer), byref(data))
        lib.bowstring_buffer_release(buffer)

    def recorded():
        again = c_void_p()
        call("array_record", pending, cuda.sync(SYNC_LIBRARY), byref(again))
        cuda.release(again)

    made = {
        "in": lambda: cuda.release(cuda.to_device(host, Device(CUDA, 0))),
        "in, waiting": lambda: cuda.release(cuda.to_device(host, Device(CUDA, 1), SYNC_HOST)),
        "pinned": lambda: cuda.release(cuda.to_device(host, Device(CUDA_HOST, 0))),
        "managed": lambda: cuda.release(cuda.to_device(host, Device(CUDA_MANAGED, 0))),
        "across": lambda: cuda.release(cuda.to_device(part, Device(CUDA, 1), SYNC_LIBRARY)),
        "within": lambda: cuda.release(cuda.to_device(there, Device(CUDA, 0), SYNC_LIBRARY)),
        "out": lambda: cuda.release(cuda.to_device(part, CPU)),
        "out, after an event": lambda: cuda.release(cuda.to_device(pending, CPU, SYNC_LIBRARY)),
        "wait": lambda: call("array_wait", pending, cuda.sync(SYNC_HOST)),
        "record": recorded,
        "release_after": kept,
        "sizes": size_known,
        "nulls": counted,
        "read": read,
        "allocate": allocated,
        "collect": lambda: call("device_collect", Device(CUDA, 0), True, None),
    }
    return made, [host, there, part, pending, column]


def every_driver_call_fails():
    """Each call of the driver that an operation makes fails in turn: an error with the driver's number, and nothing is lost."""
    sim.configure(delay_us=0)
    made, arrays = operations()
    for operation in made.values():
        operation()
    collect()
    before, tried, ended = (sim.live(), live_counts()), 0, 0
    for name, operation in made.items():
        sim.log_clear()
        operation()
        collect_quietly()
        called = [entry.function for entry in sim.log() if not entry.function.startswith("cuda_sim")]
        for nth in range(1, len(called) + 1):
            sim.log_clear()
            sim.fail(None, 719, nth)
            try:
                operation()
                ended += 1
            except BowstringError as error:
                known = (bs.DEVICE_ERROR, bs.DEVICE_UNAVAILABLE, bs.UNSUPPORTED)
                assert error.status in known and error.native_code == 719, f"{name}, call {nth}: {error}"
            sim.fail_nothing()
            if popped():
                cuda.driver("cuCtxPopCurrent_v2", byref(c_void_p()))
            tried += 1
        collect()
        now = (sim.live(), live_counts())
        # Where freeing itself fails, memory is left alone; nothing else may stay.
        for kind in ("streams", "contexts", "primary_retains", "pushed_here", "pushed"):
            assert now[0][kind] == before[0][kind], (name, kind, now[0], before[0])
        assert now[1] == before[1], (name, now[1], before[1])
        operation()
    collect()
    cuda.release(*arrays)
    assert sim.faults() == []
    print(f"{tried} failures, {ended} without an error")
    assert tried > 300


def popped():
    """Whether it was taking a context back that failed, about which nothing can be done."""
    return any(entry.result == 719 for entry in sim.log("cuCtxPopCurrent_v2"))


def collect_quietly():
    sim.wait_idle()
    call("device_collect", Device(CUDA, 0), True, None)


def unknown_numbers_stay():
    """A number that no driver has is told as it is, and out of memory is."""
    host = support.imported(pa.record_batch({"a": pa.array(range(10))}))
    for code, status in ((12345, bs.DEVICE_ERROR), (2, bs.OUT_OF_MEMORY), (2147483647, bs.DEVICE_ERROR)):
        sim.fail("cuMemAllocAsync", code)
        try:
            cuda.to_device(host, Device(CUDA, 0))
            raise AssertionError("allocating should have failed")
        except BowstringError as error:
            assert (error.status, error.native_code) == (status, code), error
        sim.fail_nothing()
    cuda.release(host)
    print("3 numbers")


def addresses_are_kept_apart():
    """A slice takes along what it shows, and one wait is enough for all sizes."""
    n = 20000
    batch = pa.record_batch({"a": pa.array([[i] for i in range(n)]), "b": pa.array([str(i) for i in range(n)])})
    host = support.imported(batch)
    there = cuda.to_device(host, Device(CUDA, 0), SYNC_HOST)
    fresh = reimported(there)
    sim.log_clear()
    cuda.release(cuda.to_device(fresh, Device(CUDA, 1), SYNC_HOST))
    waits = sim.calls("cuStreamSynchronize") + sim.calls("cuEventSynchronize")
    assert waits == 2, sim.log_text()
    part = out("array_slice", fresh, 100, 10)
    sim.log_clear()
    copy = cuda.to_device(part, CPU)
    read = sum(int(entry.arguments["size"]) for entry in sim.log("cuMemcpyDtoHAsync_v2"))
    assert read < 1000, (read, sim.log_text())
    same(values_of(copy), batch.slice(100, 10), "the slice")
    cuda.release(host, there, fresh, part, copy)
    collect()
    cuda.no_faults()
    print(f"{read} bytes for 10 rows of {n}")


def reimported(array):
    """The same array as a stranger would hand it over: nothing but its structs is known."""
    kept = c_void_p(lib.bowstring_array_retain(array))
    raw, schema = bs.ArrowDeviceArray(), bs.ArrowSchema()
    call("array_export", kept, byref(raw), byref(schema))
    FOREIGN.append((raw, kept))
    kind = out("type_import", byref(schema))
    stranger = bs.ArrowDeviceArray()
    ctypes.memmove(byref(stranger), byref(raw), ctypes.sizeof(raw))
    owner = cuda.Owner(lambda: (lib.bowstring_device_array_release(byref(raw)), lib.bowstring_array_release(kept)))
    FOREIGN.append(owner)
    borrowed = out("array_import_borrowed", byref(stranger), kind, 1, owner.callback)
    lib.bowstring_type_release(kind)
    return borrowed


FOREIGN = []


def validation_there():
    """FULL validation of device memory says what it says on the CPU, of good data and of bad."""
    checked, broken = 0, 0
    sim.configure(delay_us=0)
    for batch in batches():
        host = support.imported(batch)
        there = cuda.to_device(host, Device(CUDA, 0))
        here = cuda.to_device(there, CPU, SYNC_HOST)
        assert said(there, SYNC_HOST) == said(here, SYNC_NONE), batch.schema
        cuda.release(host, there, here)
        checked += 1
    for offset, values in ((7, b"abcdef"), (2, b"a\xff\xfe\xfdef")):
        offsets = b"".join(n.to_bytes(4, "little") for n in (0, offset, 3, 6))
        there = text_on(Device(CUDA, 0), cuda_bytes(offsets), cuda_bytes(values), 3)
        kept = [(ctypes.c_uint8 * len(data)).from_buffer_copy(data) for data in (offsets, values)]
        here = text_on(CPU, *[ctypes.addressof(data) for data in kept], 3)
        assert said(there, SYNC_NONE) == said(here, SYNC_NONE) != []
        cuda.release(there, here)
        broken += 1
    # Memory that is somewhere else is not read.
    plain = ctypes.create_string_buffer(800)
    array = cuda.array_of(ctypes.addressof(plain), 100)
    assert [rule for _, rule, _, _ in said(array, SYNC_NONE)] == ["D9"]
    cuda.release(array)
    collect()
    cuda.no_faults()
    print(f"{checked} batches, {broken} that are broken")
    assert checked > 150


def said(array, mode):
    """Everything that the validator says of an array."""
    found = []

    def listen(_, severity, finding):
        one = finding.contents
        found.append((severity, lib.bowstring_rule_name(one.rule).decode(), one.path.decode(), one.row))
        return 0

    options = bs.ValidateOptions(sync=bs.Sync(mode, 0, None), on_finding=bs.ON_FINDING(listen))
    try:
        call("array_validate", array, byref(options))
    except BowstringError as error:
        assert error.status == bs.INVALID_DATA, error
    return found


def cuda_bytes(data):
    """Device memory with these bytes."""
    address = cuda.allocate(max(len(data), 1))
    sim.poke(address, data)
    return address


def text_on(device, offsets, values, n):
    """An array of text over memory that is kept elsewhere."""
    kind = out("type_parse", b"utf8")
    nodes = (bs.Node * 1)(bs.Node(n, 0, 0, 3))
    buffers = (bs.OwnedBuffer * 3)(bs.OwnedBuffer(), bs.OwnedBuffer(offsets, 4 * n + 4), bs.OwnedBuffer(values, -1))
    if device.type == CPU.type:
        # What from_buffers would refuse is handed over as a stranger's struct.
        addresses = (c_void_p * 3)(None, offsets, values)
        KEPT.append(addresses)
        raw = bs.ArrowDeviceArray(device_type=1, device_id=-1)
        raw.array.length, raw.array.n_buffers = n, 3
        raw.array.buffers = addresses
        array = out("array_import_borrowed", byref(live(raw)), kind, None, bs.RELEASE())
    else:
        raw, placement = bs.ArrowDeviceArray(), bs.Placement(device=device)
        call("device_array_from_buffers", kind, nodes, 1, buffers, 3, byref(placement), byref(raw))
        array = out("array_import_typed", byref(raw), kind)
    lib.bowstring_type_release(kind)
    return array


KEPT = []


def live(raw):
    """A struct that counts as live, whose release is never called."""
    never = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: None)
    KEPT.append(never)
    raw.array.release = ctypes.cast(never, c_void_p).value
    return raw


def tensors_there():
    """Arrays on a device as tensors and back: the same memory, the right queue, and copies where they are allowed."""
    import tensors

    stream, other = cuda.stream(), cuda.stream()
    # Strides and bits are copied there and back.
    flags = support.imported(pa.array([True, None, False, True, True, False, True, True, False, True]))
    there = cuda.to_device(flags, Device(CUDA, 1), SYNC_HOST)
    tensor = c_void_p()
    options = bs.TensorOptions(flags=tensors.ALLOW_COPY | tensors.VALUES_ONLY)
    call("array_to_tensor", there, byref(options), byref(tensor))
    seen = tensors.look(tensor)
    assert seen.device == (CUDA, 1)
    assert [*sim.peek(seen.address, 10)][0] == 1 and set(sim.peek(seen.address, 10)) <= {0, 1}
    lib.bowstring_tensor_release(tensor)
    # A null count that nobody knows is counted there.
    numbers = cuda.to_device(support.imported(pa.array([1, None, 3])), Device(CUDA, 0), SYNC_HOST)
    part = out("array_slice", numbers, 2, 1)
    call("array_to_tensor", part, None, byref(tensor))
    lib.bowstring_tensor_release(tensor)
    for whole in (numbers,):
        try:
            call("array_to_tensor", whole, None, byref(tensor))
            raise AssertionError("there is a null")
        except BowstringError as error:
            assert error.status == bs.UNSUPPORTED and "1" in error.message, error
    # A tensor whose producer was given a queue becomes an array with an event on it.
    address = cuda.allocate(800)
    array = cuda.array_of(address, 100)
    call("array_to_tensor", array, None, byref(tensor))
    cuda.block(stream)
    sim.enqueue_fill(stream, address, 5, 800)
    taken = c_void_p()
    options = bs.TensorOptions(sync=bs.Sync(SYNC_QUEUE, 0, stream))
    call("array_from_tensor", byref(tensor), None, byref(options), byref(taken))
    assert not cuda.is_done(cuda.event_of(taken))
    copy = cuda.to_device(taken, Device(CUDA, 0), SYNC_QUEUE, other)
    cuda.unblock(stream)
    call("array_wait", copy, cuda.sync(SYNC_HOST))
    assert sim.peek(cuda.address_of(copy), 800) == b"\x05" * 800
    cuda.release(flags, there, numbers, part, array, taken, copy)
    collect()
    cuda.no_faults()
    print("5 tensors")


def shared_memory():
    """MAY_SHARE gives the same memory where it can be reached, after a wait where the CPU is to read it."""
    host = support.imported(pa.record_batch({"a": pa.array(range(10))}))
    shares = 0
    for concurrent in (1, 0):
        sim.configure(concurrent_managed=concurrent)
        for device in DEVICES:
            there = cuda.to_device(host, device, SYNC_HOST)
            again = cuda.to_device(there, device, flags=bs.MAY_SHARE)
            assert cuda.address_of(again, 2) == cuda.address_of(there, 2)
            back = cuda.to_device(there, CPU, SYNC_HOST, flags=bs.MAY_SHARE)
            # What the device says of managed memory is asked once.
            reached = device.type == CUDA_HOST or device.type == CUDA_MANAGED
            same_address = cuda.address_of(back, 2) == cuda.address_of(there, 2)
            assert same_address == reached, (device.type, concurrent)
            if not same_address or concurrent:
                same(values_of(back), pa.record_batch({"a": pa.array(range(10))}), "the way back")
            shares += same_address
            cuda.release(there, again, back)
        break
    # A producer that names the wrong device is found out before the CPU reads.
    wrong = cuda.array_of(cuda.allocate(800), 100, Device(CUDA_HOST, 0))
    for function in (
        lambda: cuda.to_device(wrong, CPU, SYNC_HOST, flags=bs.MAY_SHARE),
        lambda: call("array_export_host", wrong, cuda.sync(SYNC_HOST), byref(bs.ArrowArray()), None),
    ):
        try:
            function()
            raise AssertionError("device memory was handed to the CPU")
        except BowstringError as error:
            assert (error.status, error.rule) == (bs.INVALID_DATA, "D9"), error
    cuda.release(wrong)
    cuda.release(host)
    collect()
    cuda.no_faults()
    print(f"{shares} shared")
    assert shares == 3


CASES = {
    one.__name__.replace("_", "-"): one
    for one in (
        every_type_between_all_devices, nothing_is_left, contexts_are_restored, default_streams, captures_are_refused,
        wrong_queue, every_driver_call_fails, unknown_numbers_stay, addresses_are_kept_apart,
        validation_there, tensors_there, shared_memory,
    )
}

if __name__ == "__main__":
    with cuda.Context():
        CASES[sys.argv[1]]()
