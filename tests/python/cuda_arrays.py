"""The CUDA driver as tests call it, on the simulated driver: memory, streams and events, and arrays that are made of them.

A process that imports this module has loaded the simulated driver, before the library could look for another one.
"""

import ctypes
import threading
import time
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_uint64, c_void_p

import cuda_sim

sim = cuda_sim.Sim()

import bowstring_ctypes as bs  # noqa: E402: the driver comes first
from bowstring_ctypes import Device, OwnedBuffer, Placement, Sync, TransferOptions, call, lib, out  # noqa: E402

CUDA, CUDA_HOST, CUDA_MANAGED = 2, 3, 13
CPU = Device(1, -1)


def driver(function, *arguments):
    """Calls the driver, which has to succeed."""
    code = getattr(sim.library, function)(*arguments)
    assert code == 0, f"{function} returned {code}"


class Context:
    """A device's primary context, made current for a block."""

    def __init__(self, ordinal=0):
        driver("cuInit", 0)
        self.handle = c_void_p()
        driver("cuDevicePrimaryCtxRetain", byref(self.handle), ordinal)

    def __enter__(self):
        driver("cuCtxPushCurrent_v2", self.handle)
        return self

    def __exit__(self, *_):
        driver("cuCtxPopCurrent_v2", byref(c_void_p()))

    def release(self):
        driver("cuDevicePrimaryCtxRelease_v2", 0)


def allocate(size):
    """Device memory in the current context."""
    address = c_uint64()
    driver("cuMemAlloc_v2", byref(address), size)
    return address.value


def allocate_pinned(size):
    """Host memory that the device may use."""
    address = c_void_p()
    driver("cuMemHostAlloc", byref(address), size, 1)
    return address.value


def unfinished(function):
    """How much of the work that calls of a function enqueued has not ended."""
    return sum(entry.result == 0 and entry.end == 0 for entry in sim.log(function))


def free(address):
    driver("cuMemFree_v2", address)


def stream():
    """A stream that waits for nobody else's work."""
    handle = c_void_p()
    driver("cuStreamCreate", byref(handle), 1)
    return handle.value


def record(on):
    """A new event on a stream."""
    event = c_void_p()
    driver("cuEventCreate", byref(event), 2)
    driver("cuEventRecord", event, on)
    return event.value


def is_done(event):
    code = sim.library.cuEventQuery(event)
    assert code in (0, 600), f"cuEventQuery returned {code}"
    return code == 0


def block(on):
    """A kernel that runs until `unblock`."""
    assert sim.library.cuda_sim_block(on) == 0


def unblock(on):
    assert sim.library.cuda_sim_unblock(on) == 0


@contextmanager
def let_go_later(on, seconds=0.1):
    """Unblocks a stream while the block runs; says when it did."""
    done = threading.Event()

    def later():
        time.sleep(seconds)
        done.set()
        unblock(on)

    thread = threading.Thread(target=later)
    thread.start()
    yield done
    thread.join()


def no_faults():
    """Nothing was done that the real driver would punish some day."""
    assert sim.faults() == []


class Owner:
    """An owner that remembers being let go."""

    def __init__(self, then=None):
        self.count = 0

        def let_go(_):
            self.count += 1
            if then:
                then()

        self.callback = bs.RELEASE(let_go)

    @property
    def release(self):
        return ctypes.cast(self.callback, c_void_p).value


def int64_type():
    return out("type_parse", b"int64")


def array_of(address, length, device=Device(CUDA, 0), event=None, owner=None):
    """int64 values that are somewhere, as an array under an event that somebody else keeps."""
    kind = int64_type()
    nodes = (bs.Node * 1)(bs.Node(length, 0, 0, 2))
    buffers = (OwnedBuffer * 2)(OwnedBuffer(), OwnedBuffer(address, length * 8))
    placement = Placement(device=device, event=event)
    if owner:
        placement.owner, placement.release_owner = 1, owner.callback
    raw = bs.ArrowDeviceArray()
    call("device_array_from_buffers", kind, nodes, 1, buffers, 2, byref(placement), byref(raw))
    array = out("array_import_typed", byref(raw), kind)
    lib.bowstring_type_release(kind)
    return array


def address_of(array, buffer=1):
    """Where a buffer of an array is."""
    info = bs.BufferInfo()
    call("array_buffer_info", array, buffer, byref(info))
    return info.data


def event_of(array):
    """The driver's event of an array, or nothing."""
    event = c_void_p()
    call("array_device", array, None, byref(event))
    return ctypes.cast(event, POINTER(c_void_p))[0] if event.value else None


def to_device(array, device, mode=bs.SYNC_NONE, queue=None, flags=0, **options):
    """A copy of an array on a device."""
    asked = TransferOptions(sync=Sync(mode, 0, queue), flags=flags, **options)
    copy, shared = c_void_p(), c_bool()
    call("array_to_device", array, device, byref(asked), byref(copy), byref(shared))
    return copy


def sync(mode, queue=None):
    return byref(Sync(mode, 0, queue))


def release(*arrays):
    for array in arrays:
        lib.bowstring_array_release(array)
