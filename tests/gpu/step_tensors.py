"""cupy's arrays through the library to torch's tensors and back: the same memory, freed once, after the last user."""

import ctypes
import gc
from ctypes import CFUNCTYPE, byref, c_void_p

import gpu
import packages

N = 4096
LEGACY_STREAM, PER_THREAD_STREAM, NO_SYNC = 1, 2, -1


class Producer:
    """An array of the library as any consumer of Python's array interface takes it."""

    def __init__(self, array, is_versioned=True):
        self.array, self.is_versioned, self.asked = array, is_versioned, []

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, stream=None, max_version=None, **more):
        import bowstring_ctypes as bs
        import dlpack
        from bowstring_ctypes import SYNC_HOST, SYNC_QUEUE, Sync

        self.asked.append({"stream": stream, "max_version": max_version, **more})
        if stream == NO_SYNC:
            sync = Sync(SYNC_HOST, 0, None)
        else:
            # None and 1 are the default stream, which is NULL; 2 is the driver's number for the one of a thread.
            sync = Sync(SYNC_QUEUE, 0, None if stream in (None, 0, LEGACY_STREAM) else int(stream))
        tensor = bs.out("array_to_tensor", self.array, byref(bs.TensorOptions(sync=sync)))
        # What came without a version counts as read-only, which it is not, and only a legacy tensor hides that.
        if max_version and max_version[0] >= 1 and self.is_versioned:
            return dlpack.capsule(tensor)
        drop_read_only = bs.TensorOptions(flags=8)
        legacy = bs.out("tensor_to_legacy", byref(tensor), byref(drop_read_only))
        return dlpack.capsule(legacy, dlpack.LEGACY_NAME)


class Counted:
    """A producer's tensor, taken out of its capsule, whose deleter counts."""

    def __init__(self, data, **asked):
        import dlpack

        try:
            capsule = data.__dlpack__(max_version=(1, 3), **asked)
        except TypeError:
            # It is older than versions.
            capsule = data.__dlpack__(**asked)
        self.name = dlpack.name_of(capsule)
        self.is_versioned = self.name == dlpack.NAME
        self.tensor, self.count = dlpack.taken(capsule, self.name), 0
        struct = (dlpack.Versioned if self.is_versioned else dlpack.Legacy).from_address(self.tensor.value)
        own = CFUNCTYPE(None, c_void_p)(struct.deleter)

        def deleter(tensor):
            self.count += 1
            own(tensor)

        self._deleter = CFUNCTYPE(None, c_void_p)(deleter)
        struct.deleter = ctypes.cast(self._deleter, c_void_p).value

    def array(self, sync=None):
        """An array of it, which takes it."""
        import bowstring_ctypes as bs

        cell = self.tensor
        if not self.is_versioned:
            cell = bs.out("tensor_from_legacy", byref(cell), None)
        made = c_void_p()
        options = bs.TensorOptions(sync=sync) if sync else None
        bs.call("array_from_tensor", byref(cell), None, byref(options) if options else None, byref(made))
        assert not cell.value
        return made


def passed_on(array):
    """The same array, as structs that went out and came in again; the handle given is let go."""
    import bowstring_ctypes as bs

    raw, schema = bs.ArrowDeviceArray(), bs.ArrowSchema()
    bs.call("array_export", array, byref(raw), byref(schema))
    bs.lib.bowstring_array_release(array)
    assert (raw.device_type, raw.device_id) == (2, 0)
    return bs.out("array_import", byref(raw), byref(schema))


def there():
    cupy, torch = packages.cupy(), packages.torch()
    gpu.figure("versions", f"cupy {cupy.__version__}, torch {torch.__version__}")
    for order in ("torch last", "torch first", "cupy first"):
        _cupy_to_torch(cupy, torch, order)
    _torch_to_cupy(cupy, torch)


def _cupy_to_torch(cupy, torch, order):
    import bowstring_ctypes as bs

    ours = cupy.arange(N, dtype=cupy.int64)
    cupy.cuda.Device().synchronize()
    address, counted = int(ours.data.ptr), Counted(ours)
    array = passed_on(counted.array())
    bs.call("array_validate", array, None)
    producer = Producer(array, counted.is_versioned)
    theirs = torch.from_dlpack(producer)
    assert theirs.data_ptr() == address, f"{theirs.data_ptr():#x} is not {address:#x}"
    assert theirs.device.type == "cuda" and tuple(theirs.shape) == (N,) and theirs.dtype == torch.int64
    assert theirs.cpu().tolist() == list(range(N))
    theirs.add_(1)
    torch.cuda.synchronize()
    assert cupy.asnumpy(ours).tolist() == list(range(1, N + 1)), "torch's values are not seen by cupy"
    ours *= 2
    cupy.cuda.Device().synchronize()
    assert theirs.cpu().tolist() == [2 * i for i in range(1, N + 1)], "cupy's values are not seen by torch"
    del producer
    users = {"cupy": [ours], "torch": [theirs], "library": [array]}
    del ours, theirs
    sequence = {
        "torch last": ["library", "cupy", "torch"], "torch first": ["torch", "cupy", "library"],
        "cupy first": ["cupy", "library", "torch"],
    }[order]
    for i, name in enumerate(sequence):
        assert counted.count == 0, f"{order}: the deleter ran before {name} was let go"
        if name == "library":
            bs.lib.bowstring_array_release(array)
        # What cupy would reuse, it may overwrite.
        other = cupy.full(N, -1, dtype=cupy.int64)
        cupy.cuda.Device().synchronize()
        if name != "torch" and users["torch"]:
            assert users["torch"][0].cpu().tolist()[:3] == [2, 4, 6], f"{order}: the memory was reused too early"
        users[name].clear()
        gc.collect()
        del other
    torch.cuda.synchronize()
    assert counted.count == 1, f"{order}: the deleter ran {counted.count} times"
    gpu.figure(order, f"{'versioned' if counted.is_versioned else 'legacy'} capsule, the deleter ran once")


def _torch_to_cupy(cupy, torch):
    import bowstring_ctypes as bs

    ours = torch.arange(N, dtype=torch.float32, device="cuda").reshape(N // 4, 4)
    torch.cuda.synchronize()
    address, counted = ours.data_ptr(), Counted(ours)
    array = passed_on(counted.array())
    theirs = cupy.from_dlpack(Producer(array, counted.is_versioned))
    assert int(theirs.data.ptr) == address and theirs.shape == (N // 4, 4)
    assert cupy.asnumpy(theirs).ravel().tolist() == list(range(N))
    del ours
    bs.lib.bowstring_array_release(array)
    gc.collect()
    assert counted.count == 0
    assert cupy.asnumpy(theirs).ravel().tolist() == list(range(N))
    del theirs
    gc.collect()
    assert counted.count == 1, f"torch's deleter ran {counted.count} times"
    gpu.figure("torch to cupy", f"{'versioned' if counted.is_versioned else 'legacy'} capsule, the deleter ran once")


def streams():
    """cupy's kernel still runs on its stream when torch is given the values on another."""
    cupy, torch = packages.cupy(), packages.torch()
    driver = gpu.Driver()
    state = {
        "cupy": cupy.cuda.Stream(non_blocking=True), "torch": torch.cuda.Stream(), "free": torch.cuda.Stream(),
        "queue": driver.stream(),
    }
    # Once with the kernel let go at once, which loads what is loaded late, and once in earnest.
    _streams(cupy, torch, driver, state, False)
    _streams(cupy, torch, driver, state, True)


def _streams(cupy, torch, driver, state, in_earnest):
    import bowstring_ctypes as bs
    from bowstring_ctypes import SYNC_QUEUE, Sync
    from device_arrays import event_of

    values = cupy.zeros(N, dtype=cupy.int64)
    results = {name: torch.full((N,), -1, dtype=torch.int64, device="cuda") for name in ("waited", "control")}
    cupy.cuda.Device().synchronize()
    torch.cuda.synchronize()
    finished = 0x0707070707070707
    with state["cupy"]:
        gate = driver.gate(state["cupy"].ptr, values.data.ptr, 7, 8 * N)
        if not in_earnest:
            gate.open()
        # cupy makes the queue wait for its own stream.
        counted = Counted(values, stream=state["queue"])
    array = counted.array(Sync(SYNC_QUEUE, 0, state["queue"]))
    event = event_of(array)
    assert event, "the array has no event"

    def pending(what):
        assert not in_earnest or not driver.is_done(event), f"after {what} the kernel was done: something waited for it"

    pending("array_from_tensor")
    with torch.cuda.stream(state["torch"]):
        producer = Producer(array, counted.is_versioned)
        tensor = torch.from_dlpack(producer)
        asked = producer.asked[0]["stream"]
        assert asked == state["torch"].cuda_stream, f"torch asked for stream {asked}"
        results["waited"].copy_(tensor, non_blocking=True)
    pending("torch.from_dlpack")
    with torch.cuda.stream(state["free"]):
        results["control"].copy_(tensor, non_blocking=True)
    state["free"].synchronize()
    if in_earnest:
        pending("the control")
        stale = results["control"].cpu().tolist()
        gpu.figure("without a wait the values were", "stale" if stale == [0] * N else "not stale")
        pending("everything")
        gate.open()
        assert stale == [0] * N, "the control saw finished values: it proves nothing"
    state["torch"].synchronize()
    gate.check_in_time()
    assert results["waited"].cpu().tolist() == [finished] * N, "torch read the values too early"
    assert tensor.cpu().tolist() == [finished] * N and tensor.data_ptr() == int(values.data.ptr)
    bs.lib.bowstring_array_release(array)
    del tensor, producer
    gc.collect()
    torch.cuda.synchronize()
    assert counted.count == 1


if __name__ == "__main__":
    gpu.main({"there": there, "streams": streams})
