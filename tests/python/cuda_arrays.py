"""The CUDA driver as tests call it, on the simulated driver: memory, streams and events, and arrays that are made of them.

A process that imports this module has loaded the simulated driver, before the library could look for another one.
"""

import threading
import time
from contextlib import contextmanager
from ctypes import byref, c_uint64, c_void_p

import cuda_sim

sim = cuda_sim.Sim()

from device_arrays import (  # noqa: E402, F401: the driver comes first
    CPU, CUDA, CUDA_HOST, CUDA_MANAGED, Owner, address_of, array_of, event_of, int64_type, release, sync, to_device,
)


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
