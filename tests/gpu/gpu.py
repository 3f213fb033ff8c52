"""The CUDA driver as the steps call it: the machine's own, or the simulated one where BOWSTRING_CUDA_SIM names its folder.

A step that finds no driver ends as skipped, and says why; where there is a GPU it fails instead.
"""

import ctypes
import os
import sys
import threading
import time
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_uint, c_uint32, c_uint64, c_void_p
from pathlib import Path

import cuda_sim

IS_SIMULATED = bool(os.environ.get("BOWSTRING_CUDA_SIM"))
SKIPPED = 77
NOT_READY = cuda_sim.NOT_READY
# A kernel that nobody lets go ends by itself, so that a call that waits for it comes back and is found out.
GATE_LIMIT = 4.0
MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL = 2, 8, 9
HOST, DEVICE = 1, 2
ATTRIBUTES = {
    "compute_major": 75, "compute_minor": 76, "managed_memory": 83, "concurrent_managed": 89, "pageable_access": 88,
    "memory_pools": 115, "unified_addressing": 41,
}
PORTABLE_AND_MAPPED = 3
_CODE = Path(__file__).with_name("gate.ptx")


def skip(why):
    """Ends the step as one that could not run here."""
    print(f"skipped: {why}", flush=True)
    sys.exit(SKIPPED)


def figure(name, value):
    """A figure for the report."""
    print(f"figure: {name}: {value}", flush=True)


def has_device_node():
    """Whether the system shows a GPU of NVIDIA, whatever its driver says."""
    return any(os.path.exists(path) for path in ("/dev/nvidia0", "/dev/dxg"))


def unusable(why):
    """No driver: no failure where there is no GPU either."""
    if has_device_node() and not IS_SIMULATED:
        sys.exit(f"there is a GPU, and the driver cannot be used: {why}")
    skip(f"no CUDA driver that works: {why}")


class DriverError(Exception):
    def __init__(self, function, code, text):
        super().__init__(f"{function} returned {code} {text}".rstrip())
        self.function, self.code = function, code


class Gate:
    """A kernel that runs until it is let go, and then fills memory with a byte."""

    def __init__(self, driver, stream, flag, late):
        self._driver, self._stream, self._flag, self._late = driver, stream, flag, late
        self.is_open = False

    def open(self):
        assert not self.is_open
        self.is_open = True
        if self._flag is None:
            assert self._driver.library.cuda_sim_unblock(self._stream) == 0
        else:
            self._flag.value = 1

    def check_in_time(self):
        """The kernel has been let go, and did not lose patience before."""
        assert self._late is None or self._late.value == 0, "the kernel was not let go in time: a call waited for it"

    @contextmanager
    def open_later(self, seconds=0.15):
        """Lets the kernel go while the block runs; says when that was."""
        done = threading.Event()

        def later():
            time.sleep(seconds)
            done.set()
            self.open()

        thread = threading.Thread(target=later)
        thread.start()
        try:
            yield done
        finally:
            thread.join()


class Driver:
    """The driver, with the first device's primary context current."""

    def __init__(self, ordinal=0, current=True):
        self.sim = cuda_sim.Sim() if IS_SIMULATED else None
        try:
            self.library = self.sim.library if self.sim else ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            unusable(error)
        for entry in cuda_sim._DRIVER.split(";"):
            name, *letters = entry.split()
            function = getattr(self.library, name, None)
            if function is not None:
                function.restype = c_int
                function.argtypes = [cuda_sim._LETTERS[letter] for letter in "".join(letters)]
        code = self.library.cuInit(0)
        if code:
            unusable(f"cuInit returned {code} {self.text(code)}")
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        self.n_devices = count.value
        self.ordinal, self._kernels, self._gates = ordinal, {}, None
        if ordinal >= self.n_devices:
            skip(f"there are {self.n_devices} GPUs")
        if current:
            self.context = self.out("cuDevicePrimaryCtxRetain", ordinal)
            self.call("cuCtxPushCurrent_v2", self.context)
            self._prepare_gates()

    def text(self, code):
        name = c_char_p()
        known = self.library.cuGetErrorName(code, byref(name)) == 0 and name.value
        return name.value.decode() if known else ""

    def call(self, function, *arguments):
        code = getattr(self.library, function)(*arguments)
        if code:
            raise DriverError(function, code, self.text(code))

    def out(self, function, *arguments, kind=c_void_p):
        """Calls a function whose first argument is where its result goes, which comes back."""
        result = kind()
        self.call(function, byref(result), *arguments)
        return result.value

    def attribute(self, name, ordinal=None):
        device = self.out("cuDeviceGet", self.ordinal if ordinal is None else ordinal, kind=c_int)
        value = c_int()
        code = self.library.cuDeviceGetAttribute(byref(value), ATTRIBUTES[name], device)
        return value.value if code == 0 else None

    def current(self):
        """The current context, or None."""
        return self.out("cuCtxGetCurrent")

    @contextmanager
    def on(self, ordinal):
        """Another device's primary context, for a block."""
        self.call("cuCtxPushCurrent_v2", self.out("cuDevicePrimaryCtxRetain", ordinal))
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", byref(c_void_p()))

    # Streams and events

    def stream(self):
        """A stream that waits for nobody else's work."""
        return self.out("cuStreamCreate", 1)

    def finish(self, stream):
        self.call("cuStreamSynchronize", stream)

    def is_done(self, event):
        code = self.library.cuEventQuery(event)
        if code not in (0, NOT_READY):
            raise DriverError("cuEventQuery", code, self.text(code))
        return code == 0

    # Memory

    def allocate(self, size, kind="cuda"):
        """Memory of one of the three types."""
        if kind == "cuda_host":
            return self.out("cuMemHostAlloc", size, PORTABLE_AND_MAPPED)
        if kind == "cuda_managed":
            return self.out("cuMemAllocManaged", size, 1, kind=c_uint64)
        return self.out("cuMemAlloc_v2", size, kind=c_uint64)

    def free(self, address, kind="cuda"):
        self.call("cuMemFreeHost" if kind == "cuda_host" else "cuMemFree_v2", address)

    def write(self, address, data, kind="cuda"):
        """Puts bytes there at once."""
        if data and kind == "cuda_host":
            ctypes.memmove(address, bytes(data), len(data))
        elif data:
            self.call("cuMemcpyHtoD_v2", address, ctypes.cast(c_char_p(bytes(data)), c_void_p), len(data))
            # It may return when the bytes are on their way, for which other streams do not wait.
            self.finish(None)

    def read(self, address, n):
        """Bytes that are there now, in memory of any type."""
        data = ctypes.create_string_buffer(max(n, 1))
        if n:
            located = self.where(address)
            if located == (HOST, False):
                return ctypes.string_at(address, n)
            self.call("cuMemcpyDtoH_v2", data, address, n)
        return data.raw[:n]

    def where(self, address):
        """What the driver says of an address: the type of memory, 0 for memory that it does not know, and whether it is managed."""
        return self.placed(address)[:2]

    def placed(self, address):
        """The same, and the number of the device."""
        names = (c_int * 3)(MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL)
        values = [c_uint64(), c_uint64(), c_uint64()]
        into = (c_void_p * 3)(*[ctypes.addressof(value) for value in values])
        self.call("cuPointerGetAttributes", 3, names, into, address)
        kind, managed, ordinal = (value.value & 0xFFFFFFFF for value in values)
        return kind, bool(managed & 0xFF), ordinal

    # Kernels

    def _prepare_gates(self):
        if self.sim:
            return
        data = _CODE.read_bytes() + b"\0"
        module, function = c_void_p(), c_void_p()
        self.library.cuModuleLoadData.argtypes = [c_void_p, c_char_p]
        self.library.cuModuleGetFunction.argtypes = [c_void_p, c_void_p, c_char_p]
        self.library.cuLaunchKernel.argtypes = [c_void_p] + [c_uint] * 7 + [c_void_p] * 3
        self.call("cuModuleLoadData", byref(module), data)
        self.call("cuModuleGetFunction", byref(function), module, b"gate")
        self._kernels[self.current()] = function
        self._gates = self.allocate(4096, "cuda_host")
        ctypes.memset(self._gates, 0, 4096)
        self._n_gates = 0

    def gate(self, stream, address, byte, size, limit=GATE_LIMIT):
        """Enqueues a kernel that fills memory when it is let go."""
        if self.sim:
            assert self.library.cuda_sim_block(stream) == 0
            assert self.library.cuda_sim_enqueue_fill(stream, address, byte, size) == 0
            return Gate(self, stream, None, None)
        at = self._gates + 8 * self._n_gates
        self._n_gates += 1
        assert self._n_gates < 512
        flag, late = c_uint32.from_address(at), c_uint32.from_address(at + 4)
        values = [
            c_uint64(at), c_uint64(at + 4), c_uint64(int(limit * 1e9)), c_uint64(address), c_uint64(size), c_uint32(byte),
        ]
        arguments = (c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        function = self._kernels[self.current()]
        self.call("cuLaunchKernel", function, 1, 1, 1, 256, 1, 1, 0, stream, arguments, None)
        return Gate(self, stream, flag, late)

    def no_faults(self):
        """The simulated driver saw nothing that a real one would punish some day."""
        if self.sim:
            assert self.sim.faults() == [], self.sim.faults()

    def forget_faults(self):
        if self.sim:
            self.sim.forget_faults()

    def describe(self):
        """What the machine's driver and device are."""
        version = c_int()
        self.call("cuDriverGetVersion", byref(version))
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, self.out("cuDeviceGet", self.ordinal, kind=c_int))
        return {
            "driver_version": version.value, "devices": self.n_devices, "device": name.value.decode(errors="replace"),
            **{attribute: self.attribute(attribute) for attribute in ATTRIBUTES},
        }


def main(steps):
    """Runs the step that the command line names."""
    steps[sys.argv[1]](*sys.argv[2:])
    print("the end", flush=True)
