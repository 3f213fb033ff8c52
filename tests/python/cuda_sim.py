"""The simulated CUDA driver of tests/cuda_sim, from Python: its control functions and the driver's own.

The variable BOWSTRING_CUDA_SIM names the folder with its variants; `cargo xtask cuda-sim` makes and prints it. It has to be
loaded before whoever is under test looks for the driver, and a process has one driver: tests that want another variant, or
none, start a process of their own, with `environment`.
"""

import ctypes
import os
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p

NAME = "libcuda.so.1"
MARK = 0x53494D31
KEEP_CONTEXTS, KEEP_OBJECTS = 1, 2
ONCE, FROM_THEN_ON, STICKY = range(3)
STREAM_DEFAULT, STREAM_NON_BLOCKING = 0, 1
EVENT_DISABLE_TIMING = 2
LEGACY, PER_THREAD = 1, 2
OUT_OF_MEMORY, NOT_INITIALIZED, STUB_LIBRARY, NO_DEVICE = 2, 3, 34, 100
INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE = 1, 201, 400
NOT_READY, ILLEGAL_ADDRESS, NOT_SUPPORTED, CAPTURE_UNSUPPORTED = 600, 700, 801, 900


class Counts(ctypes.Structure):
    """What is alive."""

    _fields_ = [
        (name, c_int64)
        for name in (
            "device_memory pool_memory pinned_memory managed_memory bytes streams events graphs contexts "
            "primary_retains pushed_here pushed pending"
        ).split()
    ]


class Entry(ctypes.Structure):
    """A call in the log."""

    _fields_ = [
        ("_function", c_char * 48),
        ("_arguments", c_char * 160),
        ("sequence", c_uint64),
        ("start", c_uint64),
        ("end", c_uint64),
        ("stream", c_void_p),
        ("thread", c_int64),
        ("result", c_int),
        ("on_stream", c_int),
    ]

    @property
    def function(self):
        """The function's exported name."""
        return self._function.decode()

    @property
    def arguments(self):
        """Its arguments by name, as text."""
        words = self._arguments.decode().split()
        return dict(word.split("=", 1) for word in words if "=" in word)


# A letter for each argument: p pointer or handle, q 64 bits, z size, i int, u unsigned, b byte, s text.
_LETTERS = {"p": c_void_p, "q": c_uint64, "z": c_size_t, "i": c_int, "u": c_uint, "b": ctypes.c_ubyte, "s": c_char_p}
_DRIVER = """
cuInit u; cuDriverGetVersion p; cuGetErrorName ip; cuGetErrorString ip; cuGetProcAddress_v2 spiqp; cuDeviceGetCount p;
cuDeviceGet pi; cuDeviceGetName pii; cuDeviceGetAttribute pii; cuDeviceCanAccessPeer pii; cuDevicePrimaryCtxRetain pi;
cuDevicePrimaryCtxRelease_v2 i; cuDevicePrimaryCtxGetState ipp; cuCtxCreate_v2 pui; cuCtxDestroy_v2 p;
cuCtxPushCurrent_v2 p; cuCtxPopCurrent_v2 p; cuCtxSetCurrent p; cuCtxGetCurrent p; cuCtxGetDevice p; cuCtxSynchronize;
cuCtxEnablePeerAccess pu; cuCtxDisablePeerAccess p; cuMemAlloc_v2 pz; cuMemFree_v2 q; cuMemAllocAsync pzp;
cuMemFreeAsync qp; cuMemHostAlloc pzu; cuMemAllocHost_v2 pz; cuMemFreeHost q; cuMemAllocManaged pzu;
cuMemGetAddressRange_v2 ppq; cuPointerGetAttribute piq; cuPointerGetAttributes uppq; cuMemcpy qqz; cuMemcpyAsync qqzp;
cuMemcpyHtoD_v2 qpz; cuMemcpyDtoH_v2 pqz; cuMemcpyDtoD_v2 qqz; cuMemcpyHtoDAsync_v2 qpzp; cuMemcpyDtoHAsync_v2 pqzp;
cuMemcpyDtoDAsync_v2 qqzp; cuMemcpyPeer qpqpz; cuMemcpyPeerAsync qpqpzp; cuMemsetD8Async qbzp; cuStreamCreate pu;
cuStreamCreateWithPriority pui; cuStreamDestroy_v2 p; cuStreamSynchronize p; cuStreamQuery p; cuStreamWaitEvent ppu;
cuStreamGetCtx pp; cuStreamGetDevice pp; cuLaunchHostFunc ppp; cuStreamIsCapturing pp;
cuStreamGetCaptureInfo_v2 pppppp; cuStreamBeginCapture_v2 pi; cuStreamEndCapture pp;
cuThreadExchangeStreamCaptureMode p; cuGraphDestroy p; cuEventCreate pu; cuEventRecord pp; cuEventQuery p;
cuEventSynchronize p; cuEventElapsedTime ppp; cuEventDestroy_v2 p
"""
_CONTROL = {
    "is_simulated": (c_int, POINTER(c_char_p)),
    "reset": (c_int, c_uint, c_char_p, c_size_t),
    "configure": (c_int, c_char_p, c_int64),
    "setting": (c_int64, c_char_p),
    "live": (None, POINTER(Counts)),
    "faults": (c_int64,),
    "fault_text": (c_char_p, c_int64),
    "forget_faults": (c_int64,),
    "capture_mode": (c_int,),
    "captures_invalidated": (c_int64,),
    "fail": (c_int, c_char_p, c_int64, c_int, c_int),
    "fail_nothing": (c_int,),
    "break_device": (c_int, c_int, c_int),
    "log_count": (c_int64,),
    "log_entry": (c_int, c_int64, POINTER(Entry)),
    "log_text": (c_int64, c_char_p, c_size_t),
    "log_clear": (None,),
    "calls": (c_int64, c_char_p),
    "poke": (c_int, c_uint64, c_void_p, c_size_t),
    "peek": (c_int, c_uint64, c_void_p, c_size_t),
    "enqueue_delay": (c_int, c_void_p, c_int),
    "enqueue_fill": (c_int, c_void_p, c_uint64, c_int, c_size_t),
    "enqueue_copy": (c_int, c_void_p, c_uint64, c_uint64, c_size_t),
    "enqueue_error": (c_int, c_void_p, c_int),
    "block": (c_int, c_void_p),
    "unblock": (c_int, c_void_p),
    "pending": (c_int64, c_void_p),
    "wait_idle": (c_int, c_int),
}


class DriverError(Exception):
    """A function of the driver failed."""

    def __init__(self, function, code):
        super().__init__(f"{function} returned {code}")
        self.function, self.code = function, code


def path(variant="full"):
    """A variant's file."""
    folder = os.environ.get("BOWSTRING_CUDA_SIM")
    if not folder:
        raise RuntimeError("BOWSTRING_CUDA_SIM names no folder; `cargo xtask cuda-sim` makes one and prints it")
    return os.path.join(os.path.abspath(folder), variant, NAME)


def environment(variant="full", settings=""):
    """The variables for a process in which any search for the driver finds this variant, with settings such as "devices=0"."""
    folders = [os.path.dirname(path(variant)), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, folders)), "CUDA_SIM": settings}


def _is_simulated(library):
    try:
        return library.cuda_sim_is_simulated(None) == MARK
    except AttributeError:
        return False


def _refuse_another(ours):
    """Programs ask for the driver by a name without a number first, by which only a search can find this one."""
    for name in ("libcuda.so", NAME):
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        if found._handle != ours._handle:
            what = "another variant of the simulated driver" if _is_simulated(found) else "a real CUDA driver"
            folder = os.path.dirname(ours._name)
            raise RuntimeError(f"{name} is {what}; start the process with LD_LIBRARY_PATH={folder}")


class Sim:
    """The simulated driver of this process."""

    def __init__(self, variant="full"):
        self.library = ctypes.CDLL(path(variant), mode=ctypes.RTLD_GLOBAL)
        assert _is_simulated(self.library), f"{path(variant)} is not the simulated driver"
        _refuse_another(self.library)
        # What the loader's name means from now on, without a search.
        again = ctypes.CDLL(NAME, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        assert again._handle == self.library._handle
        for name, (result, *arguments) in _CONTROL.items():
            function = getattr(self.library, f"cuda_sim_{name}")
            function.restype, function.argtypes = result, arguments
        for entry in _DRIVER.split(";"):
            name, *letters = entry.split()
            function = getattr(self.library, name, None)
            if function is not None:
                function.restype, function.argtypes = c_int, [_LETTERS[letter] for letter in "".join(letters)]
        found = c_char_p()
        self.library.cuda_sim_is_simulated(byref(found))
        self.variant = found.value.decode()
        assert self.variant == variant

    def _control(self, name, *arguments):
        result = getattr(self.library, f"cuda_sim_{name}")(*arguments)
        assert result != -1, f"cuda_sim_{name}{arguments} makes no sense"
        return result

    # State

    def reset(self, keep=0):
        """Puts everything back but what is kept. How much should have been let go before, and which."""
        text = ctypes.create_string_buffer(10000)
        return self.library.cuda_sim_reset(keep, text, len(text)), text.value.decode()

    def configure(self, **settings):
        """Changes settings."""
        for key, value in settings.items():
            self._control("configure", key.encode(), int(value))

    def setting(self, key):
        """The value of a setting."""
        return self.library.cuda_sim_setting(key.encode())

    def live(self):
        """What is alive, by name."""
        counts = Counts()
        self.library.cuda_sim_live(byref(counts))
        return {name: getattr(counts, name) for name, _ in Counts._fields_} | {
            "capture_mode_here": self.library.cuda_sim_capture_mode()
        }

    # Faults

    def faults(self):
        """The texts of all faults."""
        count = self.library.cuda_sim_faults()
        return [self.library.cuda_sim_fault_text(i).decode() for i in range(count)]

    def forget_faults(self):
        """The texts of all faults, which are forgotten."""
        texts = self.faults()
        self.library.cuda_sim_forget_faults()
        return texts

    def captures_invalidated(self):
        """How many captures were ended before their time."""
        return self.library.cuda_sim_captures_invalidated()

    # Failures on request

    def fail(self, function, code, nth=1, how=ONCE):
        """Lets the nth call from now of a function, or of any for None, return a code."""
        self._control("fail", function.encode() if function else None, nth, code, how)

    def fail_nothing(self):
        """Takes all orders back; how many did not come true."""
        return self.library.cuda_sim_fail_nothing()

    def break_device(self, device, code):
        """Breaks a device's primary context; 0 heals it."""
        self._control("break_device", device, code)

    # The log

    def log(self, function=None):
        """The calls, or those of one function, in their order."""
        entries = []
        for i in range(self.library.cuda_sim_log_count()):
            entry = Entry()
            self._control("log_entry", i, byref(entry))
            if function in (None, entry.function):
                entries.append(entry)
        return entries

    def log_text(self):
        """The log, one line a call."""
        size = self.library.cuda_sim_log_text(None, 0)
        text = ctypes.create_string_buffer(size)
        self.library.cuda_sim_log_text(text, size)
        return text.value.decode()

    def log_clear(self):
        """Empties the log."""
        self.library.cuda_sim_log_clear()

    def calls(self, function=None):
        """How often the driver was called since then."""
        return self.library.cuda_sim_calls(function.encode() if function else None)

    # Memory and kernels

    def poke(self, address, data):
        """Writes bytes to the driver's memory at once."""
        self._control("poke", address, bytes(data), len(data))

    def peek(self, address, size):
        """Reads bytes of the driver's memory at once."""
        data = ctypes.create_string_buffer(size)
        self._control("peek", address, data, size)
        return data.raw

    def enqueue_delay(self, stream, ms):
        """A kernel that takes that long."""
        self._control("enqueue_delay", stream, ms)

    def enqueue_fill(self, stream, address, byte, size):
        """A kernel that writes a byte over and over."""
        self._control("enqueue_fill", stream, address, byte, size)

    def enqueue_copy(self, stream, to, source, size):
        """A kernel that copies."""
        self._control("enqueue_copy", stream, to, source, size)

    def enqueue_error(self, stream, code):
        """A kernel that breaks its context."""
        self._control("enqueue_error", stream, code)

    @contextmanager
    def blocked(self, stream):
        """Within, the stream does nothing that is enqueued from now on."""
        self._control("block", stream)
        try:
            yield
        finally:
            self._control("unblock", stream)

    def pending(self, stream):
        """How many operations the stream has before it."""
        return self._control("pending", stream)

    def wait_idle(self, ms=20000):
        """Waits for all streams."""
        assert self.library.cuda_sim_wait_idle(ms) == 0, "streams have work without end"

    # The driver

    def call(self, function, *arguments):
        """Calls the driver; a failure is an exception."""
        code = getattr(self.library, function)(*arguments)
        if code:
            raise DriverError(function, code)

    def out(self, function, *arguments, kind=c_void_p):
        """Calls a function whose first argument is where its result goes, which comes back."""
        result = kind()
        self.call(function, byref(result), *arguments)
        return result.value

    @contextmanager
    def current(self, device=0):
        """Within, the device's primary context is current."""
        self.call("cuInit", 0)
        context = self.out("cuDevicePrimaryCtxRetain", device)
        self.call("cuCtxPushCurrent_v2", context)
        try:
            yield context
        finally:
            self.call("cuCtxPopCurrent_v2", None)
            self.call("cuDevicePrimaryCtxRelease_v2", device)

    def stream(self, flags=STREAM_NON_BLOCKING):
        """A new stream of the current context."""
        return self.out("cuStreamCreate", flags)

    def event(self, flags=EVENT_DISABLE_TIMING):
        """A new event of the current context."""
        return self.out("cuEventCreate", flags)

    def allocate(self, size, kind="device", stream=None):
        """The address of new device, pool, pinned or managed memory of the current context."""
        match kind:
            case "device":
                return self.out("cuMemAlloc_v2", size, kind=c_uint64)
            case "pool":
                return self.out("cuMemAllocAsync", size, stream, kind=c_uint64)
            case "pinned":
                return self.out("cuMemHostAlloc", size, 0)
            case "managed":
                return self.out("cuMemAllocManaged", size, 1, kind=c_uint64)
        raise ValueError(kind)

    @contextmanager
    def watch(self, faults=0, leftover=()):
        """Within, settings are the default ones at first; afterwards there were just so many faults, and nothing but what
        `leftover` names has become more or less."""
        self.reset(KEEP_OBJECTS)
        before = self.live()
        yield self
        self.wait_idle()
        texts, after = self.faults(), self.live()
        assert len(texts) == faults, texts
        changed = {name: after[name] - n for name, n in before.items() if after[name] != n and name not in leftover}
        assert not changed, changed
        self.reset(KEEP_OBJECTS)
