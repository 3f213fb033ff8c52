"""A device for tests of the validator, and arrays whose buffers lie there.

The device is a plug-in in C, `validate_device_plugin.c`, and the library knows it as soon as a process has asked for it; so
only processes of their own ask. The CPU may touch an array's buffers only between `show` and `hide`, for the same check
on the CPU: every address is the same in both.
"""

import atexit
import ctypes
import functools
import shutil
import subprocess
import tempfile
from ctypes import POINTER, byref, c_int, c_int32, c_int64, c_long, c_size_t, c_void_p
from pathlib import Path

import bowstring_ctypes as bs
import slow_schema
from bowstring_ctypes import lib
from validate_arrays import PAGE, Arena
from validate_calls import ON_FINDING, Options, rule_name

# A type of its own: other tests bring devices in the process that these are forked from.
TYPE, ID = 150, 0
LIBRARY_QUEUE, QUEUE = 1, 2
TOLD, FIRST = True, False
COUNTS = ("copies", "bytes", "waits", "outstanding", "most", "live")
_HERE = Path(__file__).resolve().parent


@functools.cache
def compiled():
    """The plug-in as a file; it is gone when the process that asked first ends."""
    folder = tempfile.mkdtemp(prefix="validate-device-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = Path(folder) / "plugin.so"
    include = _HERE.parent.parent / "include"
    source = _HERE / "validate_device_plugin.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-I", include, "-o", made, source, "-lpthread"], check=True)
    return made


class Plugin:
    """The plug-in, loaded and registered in this process."""

    def __init__(self, slots=1200, pages=1):
        self.plugin = ctypes.CDLL(str(compiled()))
        self.plugin.device_open.restype, self.plugin.device_open.argtypes = c_void_p, [c_size_t, c_size_t]
        self.plugin.device_distance.restype = c_long
        self.plugin.device_show.argtypes = [c_size_t, c_int]
        self.plugin.device_tells.argtypes = [c_int, c_int32, c_int64]
        self.plugin.device_fail_at.argtypes = [c_long]
        self.plugin.device_write_later.argtypes = [c_void_p, c_void_p, c_void_p, c_size_t]
        self.plugin.device_event.restype, self.plugin.device_event.argtypes = c_void_p, [c_void_p]
        self.base = self.plugin.device_open(slots, pages)
        assert self.base
        self.distance = self.plugin.device_distance()
        register = ctypes.cast(lib.bowstring_device_register, c_void_p)
        self.plugin.device_register.argtypes = [c_void_p]
        assert self.plugin.device_register(register) == bs.OK

    def counts(self):
        """What was copied since the last call."""
        into = (c_long * len(COUNTS))()
        self.plugin.device_counts(into)
        return dict(zip(COUNTS, into))


class DeviceArena:
    """An arena for structs on the CPU, and one for buffers on the device, as large."""

    def __init__(self, slots=1200, pages=1):
        self.plugin = Plugin(slots, pages)
        self.structs = Arena(slots, pages)
        self.base, self.distance = self.plugin.base, self.plugin.distance
        self.room, self.step, self.slots = pages * PAGE, (pages + 1) * PAGE, slots
        self.buffers, self.known = [], 0

    @property
    def pieces(self):
        """Where structs are; a test lets those go that it adds."""
        return self.structs.pieces

    def clear(self):
        self.structs.clear()
        self.buffers = []

    def place(self, data):
        return self.structs.place(data)

    def place_buffer(self, data):
        """Puts bytes on the device, right before a page without access; the address."""
        assert len(data) <= self.room and len(self.buffers) < self.slots
        at = self.base + len(self.buffers) * self.step + self.room - len(data)
        self.buffers.append((at, len(data)))
        ctypes.memmove(at + self.distance, data, len(data))
        return at

    def is_device(self, address):
        """Whether an address is the device's."""
        return self.base <= address < self.base + self.slots * self.step

    def read(self, address, n):
        if not self.is_device(address):
            return self.structs.read(address, n)
        slot = (address - self.base) // self.step
        if n and not (n <= self.room and slot < len(self.buffers)):
            raise slow_schema.Unreadable
        if n and not Arena._is_inside(address, n, *self.buffers[slot]):
            raise slow_schema.Unreadable
        return ctypes.string_at(address + self.distance, n) if n else b""

    def write(self, address, data):
        ctypes.memmove(address + (self.distance if self.is_device(address) else 0), data, len(data))

    def show(self):
        """Lets the CPU touch what the device's addresses lead to."""
        assert self.plugin.plugin.device_show(len(self.buffers), 1) == 0

    def hide(self):
        """Lets nobody but the plug-in."""
        assert self.plugin.plugin.device_show(max(len(self.buffers), 1), 0) == 0


class Asked:
    """All that a check says, with its words."""

    def __init__(self):
        self._heard, self._error = [], bs.Error()
        self._callback = ON_FINDING(self._hear)

    def _hear(self, _, severity, finding):
        self._heard.append((severity, *self._words(finding.contents)))
        return 0

    @staticmethod
    def _words(record):
        rule, path = rule_name(record.rule), record.path.decode(errors="replace")
        return record.status, rule, path, record.row, record.message.decode(errors="replace")

    def ask(self, call, *what, **options):
        """The status, the error and the findings; without a listener, and with one."""
        said = []
        for listens in (FIRST, TOLD):
            self._heard = []
            if listens:
                options["on_finding"] = self._callback
            status = call(*what, byref(Options(**options)), byref(self._error))
            said.append((status, self._words(self._error) if status else None, tuple(self._heard)))
        return said


def on_device(array, event=None, id=ID):
    """A raw struct as one on the device: the same buffers and children."""
    raw = ctypes.cast(array, POINTER(bs.ArrowArray)).contents
    return bs.ArrowDeviceArray(bs.ArrowArray.from_buffer_copy(raw), id, TYPE, event)
