"""Devices for tests: the plug-in of tests/plugin_device under several types with different features, and what is there.

Its memory ends the process when the CPU touches it, its queues are threads, and it notices misuse; see plugin_device.h.
"""

import ctypes
import os
import subprocess
import tempfile
import threading
import time
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint, c_void_p
from pathlib import Path

import pyarrow as pa

import bowstring_ctypes as bs
import support
from bowstring_ctypes import SYNC_HOST, SYNC_LIBRARY, SYNC_QUEUE, BowstringError, Device, Sync, call, lib, out
from slow_values import Values

EVENTS, LIBRARY_QUEUE, WITHIN, BETWEEN, PROBE, ACCESSIBLE, LOCATE, TEXT = (1 << i for i in range(8))
FUNCTIONS = (
    "probe", "allocate", "free", "from_host", "to_host", "within", "between", "library_queue", "drain", "record",
    "queue_waits", "host_waits", "is_done", "destroy_event", "accessible", "locate",
)


class Entry(ctypes.Structure):
    _fields_ = [("function", c_int32), ("device", c_int64), ("queue", c_void_p), ("n", c_int64)]


_P = c_void_p
_C_FUNCTIONS = {
    "new": (_P, c_int32, c_int, c_uint),
    "backend": (None, _P, POINTER(bs.DeviceBackend)),
    "queue_open": (_P, _P, c_int64),
    "queue_close": (None, _P),
    "stop": (None, _P, c_int64, _P),
    "go": (None, _P, c_int64, _P),
    "library_queue": (_P, _P, c_int64),
    "delay": (None, _P, c_int),
    "settle": (None, _P),
    "fail": (None, _P, c_int, c_int, c_int32, c_int),
    "calls": (c_int64, _P, c_int),
    "bytes": (c_int64, _P, c_int),
    "reset": (None, _P),
    "log": (c_int, _P, c_size_t, POINTER(Entry)),
    "live_memory": (c_int64, _P),
    "live_events": (c_int64, _P),
    "fault": (c_char_p, _P),
    "take": (_P, _P, c_int64, c_int64),
    "give_back": (None, _P, _P),
    "peek": (None, _P, _P, _P, c_int64),
    "poke": (None, _P, _P, _P, c_int64),
    "size": (c_int64, _P, _P),
    "fill": (None, _P, c_int64, _P, _P, c_int, c_int64),
    "record": (_P, _P, c_int64, _P),
    "is_done": (c_int, _P, _P),
    "destroy_event": (None, _P, _P),
}


def _built():
    """The plug-in's library, compiled here."""
    root = Path(__file__).parents[2]
    sources = sorted((root / "tests/plugin_device").glob("*.c"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "libplugin_device.so")
        flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
        include = f"-I{root / 'include'}"
        subprocess.run([os.environ.get("CC", "cc"), *flags, include, *sources, "-o", path], check=True)
        library = ctypes.CDLL(str(path))
    for name, (result, *arguments) in _C_FUNCTIONS.items():
        function = getattr(library, f"plugin_{name}")
        function.restype, function.argtypes = result, arguments
    return library


_plugin = _built()


class Plugin:
    """One type of devices."""

    def __init__(self, device_type, n_devices, features, register=True):
        self.type, self.features = device_type, features
        self.devices = [Device(device_type, i) for i in range(n_devices)]
        self._handle = _plugin.plugin_new(device_type, n_devices, features)
        self.backend = bs.DeviceBackend()
        _plugin.plugin_backend(self._handle, byref(self.backend))
        if register:
            call("device_register", device_type, byref(self.backend))

    def __getattr__(self, name):
        function = getattr(_plugin, f"plugin_{name}")
        return lambda *arguments: function(self._handle, *arguments)

    def has(self, feature):
        return bool(self.features & feature)

    def n(self, name):
        """Calls of a function since the last reset."""
        return _plugin.plugin_calls(self._handle, FUNCTIONS.index(name))

    def n_bytes(self, name):
        """Bytes that a function copied since the last reset."""
        return _plugin.plugin_bytes(self._handle, FUNCTIONS.index(name))

    def entries(self, *names):
        """The log of some functions since the last reset."""
        found, entry, i = [], Entry(), 0
        while _plugin.plugin_log(self._handle, i, byref(entry)):
            name = FUNCTIONS[entry.function]
            if not names or name in names:
                found.append((name, entry.device, entry.queue, entry.n))
            i += 1
        return found

    def fail_call(self, name, nth, code=77, lasts=False):
        _plugin.plugin_fail(self._handle, FUNCTIONS.index(name), nth, code, lasts)

    def read(self, address, n):
        """Bytes of the device's memory."""
        data = ctypes.create_string_buffer(max(n, 1))
        if n:
            self.peek(address, data, n)
        return data.raw[:n]

    def placed(self, device_id, data):
        """Memory of the test's own with these bytes."""
        at = self.take(device_id, len(data))
        if data:
            self.poke(at, data, len(data))
        return at

    def queue(self, device_id=0):
        return Queue(self, device_id)


class Queue:
    """A queue of the test's own, to be closed."""

    def __init__(self, plugin, device_id):
        self.plugin, self.id = plugin, device_id
        self.handle = _plugin.plugin_queue_open(plugin._handle, device_id)
        self.sync = Sync(SYNC_QUEUE, 0, self.handle)

    def stop(self):
        self.plugin.stop(self.id, self.handle)

    def go(self):
        self.plugin.go(self.id, self.handle)

    def close(self):
        """Nobody may use it from now on."""
        _plugin.plugin_queue_close(self.handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# Everything; events that are handles, and no way but through the CPU; neither queues nor anything else; memory that the
# CPU may read; the default queue only.
FULL = Plugin(12, 4, EVENTS | LIBRARY_QUEUE | WITHIN | BETWEEN | PROBE | LOCATE | TEXT)
HANDLES = Plugin(10, 2, EVENTS | LIBRARY_QUEUE | PROBE)
PLAIN = Plugin(100, 2, 0)
ACCESSIBLE_ONE = Plugin(101, 2, EVENTS | LIBRARY_QUEUE | ACCESSIBLE | WITHIN)
DEFAULT_QUEUE = Plugin(8, 2, EVENTS | BETWEEN | LOCATE)
PLUGINS = (FULL, HANDLES, PLAIN, ACCESSIBLE_ONE, DEFAULT_QUEUE)
BY_TYPE = {plugin.type: plugin for plugin in PLUGINS}
CPU = Device(1, -1)
EVERYWHERE = [CPU] + [device for plugin in PLUGINS for device in plugin.devices[:2]]
LIBRARY, HOST = Sync(SYNC_LIBRARY), Sync(SYNC_HOST)


def name_of(device):
    return f"{device.type}:{device.id}"


def options(sync=LIBRARY, **members):
    return bs.TransferOptions(sync=sync, **members)


def to_device(handle, device, given=None):
    """A copy of an array, which must be one."""
    made, shared = c_void_p(), c_bool(True)
    call("array_to_device", handle, device, byref(given or options()), byref(made), byref(shared))
    assert made.value and not shared.value
    return made


def device_of(handle):
    """Where an array is, and its event."""
    device, event = Device(), c_void_p()
    call("array_device", handle, byref(device), byref(event))
    return (device.type, device.id), event.value


def collect(device, block=True):
    """Lets go what finished work needed; how much is still pending."""
    left = c_size_t(9)
    call("device_collect", device, block, byref(left))
    return left.value


def collect_all():
    for plugin in PLUGINS:
        for device in plugin.devices:
            assert collect(device) == 0
        plugin.settle()


def alive():
    """Pieces of memory and events of each plug-in."""
    return {plugin.type: (plugin.live_memory(), plugin.live_events()) for plugin in PLUGINS}


def check_clean(before):
    """No plug-in noticed misuse, and no more of theirs is alive than before."""
    collect_all()
    for plugin in PLUGINS:
        fault = plugin.fault()
        assert fault is None, f"plug-in {plugin.type}: {fault.decode()}"
    assert alive() == before


def reader(device):
    """A function that reads memory of a device."""
    return ctypes.string_at if device.type == 1 else BY_TYPE[device.type].read


def values_of(handle):
    """What an array shows, wherever it is. Its event is waited for."""
    (device_type, device_id), _ = device_of(handle)
    call("array_wait", handle, byref(HOST))
    array, schema = support.exported_anywhere(handle)
    try:
        return Values(reader(Device(device_type, device_id))).all_of(schema, array.array)
    finally:
        lib.bowstring_device_array_release(byref(array))
        lib.bowstring_schema_release(byref(schema))


def refused(status, name, *arguments):
    """The error of a call that must fail in one way."""
    try:
        call(name, *arguments)
    except BowstringError as error:
        assert error.status == status, str(error)
        return error
    raise AssertionError(f"{name} succeeded, expected {lib.bowstring_status_name(status).decode()}")


WORDS = [["a", "bc", None], [], None, ["d" * 20, "e"]]


def words():
    """Lists of text with nulls, whose parts have to be looked up."""
    return pa.array(WORDS, pa.list_(pa.utf8()))


def imported(data=None):
    """A handle on an array of the CPU: the words."""
    return support.imported(words() if data is None else data)


def on(plugin, data=None, i=0):
    """A copy on a device, which is there."""
    source = imported(data)
    made = to_device(source, plugin.devices[i], options(HOST))
    support.release(source)
    return made


def to_list(handle):
    """What pyarrow reads of an array after it was copied to the CPU."""
    back = to_device(handle, CPU)
    found = support.to_pyarrow(*support.exported(back), pa.Array).to_pylist()
    support.release(back)
    return found


class Later:
    """Lets a queue on after a while, so that what waits for it is seen to wait."""

    def __init__(self, queue, seconds=0.05):
        self.queue, self.gone = queue, False
        self._thread = threading.Thread(target=self._run, args=(seconds,))
        self._thread.start()

    def _run(self, seconds):
        time.sleep(seconds)
        self.gone = True
        self.queue.go()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._thread.join()


def recorded(handle, sync=LIBRARY):
    """The same array under a new event."""
    return out("array_record", handle, byref(sync))


__all__ = [name for name in dir() if not name.startswith("_")]
