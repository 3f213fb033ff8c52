"""The CUDA driver as tests call it, on the simulated driver: memory, streams and events, and arrays that are made of them.

A process that imports this module has loaded the simulated driver, before the library could look for another one.
"""

import ctypes
import threading
import time
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint64, c_void_p

import cuda_sim

sim = cuda_sim.load()

import bowstring_ctypes as bs  # noqa: E402: the driver comes first
from bowstring_ctypes import Device, OwnedBuffer, Placement, Sync, TransferOptions, call, lib, out  # noqa: E402

CUDA, CUDA_HOST, CUDA_MANAGED = 2, 3, 13
CPU = Device(1, -1)
CAPTURE_RELAXED = 2


def driver(function, *arguments):
    """Calls the driver, which has to succeed."""
    code = getattr(sim.library, function)(*arguments)
    assert code == 0, f"{function} returned {code}"


class Context:
    """A device's primary context, made current for a block."""

    def __init__(self, ordinal=0):
        driver("cuInit", c_uint(0))
        self.handle = c_void_p()
        driver("cuDevicePrimaryCtxRetain", byref(self.handle), c_int(ordinal))

    def __enter__(self):
        driver("cuCtxPushCurrent_v2", self.handle)
        return self

    def __exit__(self, *_):
        driver("cuCtxPopCurrent_v2", byref(c_void_p()))

    def release(self):
        driver("cuDevicePrimaryCtxRelease_v2", c_int(0))


def allocate(size):
    """Device memory in the current context."""
    address = c_uint64()
    driver("cuMemAlloc_v2", byref(address), c_size_t(size))
    return address.value


def allocate_pinned(size):
    """Host memory that the device may use."""
    address = c_void_p()
    driver("cuMemHostAlloc", byref(address), c_size_t(size), c_uint(1))
    return address.value


def unfinished(function):
    """How much of the work that calls of a function enqueued has not ended."""
    entry, count = Entry(), 0
    for i in range(sim.library.cuda_sim_log_count()):
        assert sim.library.cuda_sim_log_entry(c_int64(i), byref(entry)) == 0
        count += entry.function.decode() == function and entry.result == 0 and entry.end == 0
    return count


class Entry(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_char * 48), ("arguments", ctypes.c_char * 160), ("sequence", c_uint64), ("start", c_uint64),
        ("end", c_uint64), ("stream", c_void_p), ("thread", c_int64), ("result", c_int), ("on_stream", c_int),
    ]


def free(address):
    driver("cuMemFree_v2", c_uint64(address))


def stream():
    """A stream that waits for nobody else's work."""
    handle = c_void_p()
    driver("cuStreamCreate", byref(handle), c_uint(1))
    return handle.value


def record(on):
    """A new event on a stream."""
    event = c_void_p()
    driver("cuEventCreate", byref(event), c_uint(2))
    driver("cuEventRecord", event, c_void_p(on))
    return event.value


def is_done(event):
    code = sim.library.cuEventQuery(c_void_p(event))
    assert code in (0, 600), f"cuEventQuery returned {code}"
    return code == 0


def peek(address, size):
    """Bytes of device memory, past the streams."""
    bytes_ = (ctypes.c_uint8 * size)()
    assert sim.library.cuda_sim_peek(c_uint64(address), bytes_, c_size_t(size)) == 0
    return bytes(bytes_)


def poke(address, data):
    assert sim.library.cuda_sim_poke(c_uint64(address), data, c_size_t(len(data))) == 0


def fill(on, address, byte, size):
    """A kernel that writes."""
    assert sim.library.cuda_sim_enqueue_fill(c_void_p(on), c_uint64(address), c_int(byte), c_size_t(size)) == 0


def block(on):
    """A kernel that runs until `unblock`."""
    assert sim.library.cuda_sim_block(c_void_p(on)) == 0


def unblock(on):
    assert sim.library.cuda_sim_unblock(c_void_p(on)) == 0


def wait_idle():
    assert sim.library.cuda_sim_wait_idle(c_int(20000)) == 0


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
    faults = sim.library.cuda_sim_faults()
    assert faults == 0, sim.library.cuda_sim_fault_text(c_int64(0)).decode()


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
