"""PyCapsules by ctypes: made of our structs, and read as any consumer would."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_void_p, py_object

import bowstring_ctypes as bs
from bowstring_ctypes import call, lib, out

SCHEMA, ARRAY, DEVICE_ARRAY = b"arrow_schema", b"arrow_array", b"arrow_device_array"
STREAM, DEVICE_STREAM = b"arrow_array_stream", b"arrow_device_array_stream"
STRUCTS = {
    SCHEMA: bs.ArrowSchema, ARRAY: bs.ArrowArray, DEVICE_ARRAY: bs.ArrowDeviceArray, STREAM: bs.ArrowArrayStream,
    DEVICE_STREAM: bs.ArrowDeviceArrayStream,
}
FUNCTIONS = {
    SCHEMA: "schema", ARRAY: "host_array", DEVICE_ARRAY: "device_array", STREAM: "host_stream",
    DEVICE_STREAM: "device_stream",
}

_DESTRUCTOR = ctypes.PYFUNCTYPE(None, c_void_p)
_new = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, _DESTRUCTOR)(("PyCapsule_New", ctypes.pythonapi))
_name = ctypes.PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
# Plain addresses, because a capsule that is being destroyed may not be referred to.
_pointer_of_dying = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

made, destroyed_empty, destroyed_live = {}, {}, {}


def counts():
    """How many capsules of ours were made, and destroyed after their struct was moved out, or with it in place."""
    return tuple(sum(counted.values()) for counted in (made, destroyed_empty, destroyed_live))


def name_of(capsule):
    """The capsule's name."""
    return _name(capsule)


def struct_in(capsule, name):
    """The struct in a capsule of that name; another name raises ValueError."""
    return STRUCTS[name].from_address(_pointer(capsule, name))


def is_live(struct):
    """Whether a struct was not moved out or released yet."""
    return bool(struct.array.release if isinstance(struct, bs.ArrowDeviceArray) else struct.release)


def _destructor(name):
    def destroy(capsule):
        struct = STRUCTS[name].from_address(_pointer_of_dying(capsule, name))
        counted = destroyed_live if is_live(struct) else destroyed_empty
        counted[name] = counted.get(name, 0) + 1
        getattr(lib, f"bowstring_{FUNCTIONS[name]}_free")(byref(struct))

    return _DESTRUCTOR(destroy)


_DESTRUCTORS = {name: _destructor(name) for name in STRUCTS}


def of(name, struct):
    """A capsule that owns a struct which the library allocated."""
    made[name] = made.get(name, 0) + 1
    return _new(ctypes.cast(struct, c_void_p), name, _DESTRUCTORS[name])


def new(name):
    """A released struct that a capsule may own."""
    struct = getattr(lib, f"bowstring_{FUNCTIONS[name]}_new")()
    assert isinstance(struct, POINTER(STRUCTS[name])) and not is_live(struct.contents)
    return struct


class Producer:
    """An object that hands out what a handle shows, as Python's Arrow protocol wants it. The handle stays its user's."""

    def __init__(self, handle):
        self._handle = handle
        self.requested = []

    def _capsules(self, name, export, requested_schema):
        self.requested.append(requested_schema)
        array, schema = new(name), new(SCHEMA)
        export(array, schema)
        return of(SCHEMA, schema), of(name, array)


class HostProducer(Producer):
    """Arrays in CPU memory."""

    def __arrow_c_array__(self, requested_schema=None):
        def export(array, schema):
            call("array_export_host", self._handle, None, array, schema)

        return self._capsules(ARRAY, export, requested_schema)


class DeviceProducer(Producer):
    """Arrays on any device."""

    def __arrow_c_device_array__(self, requested_schema=None, **_):
        def export(array, schema):
            call("array_export", self._handle, array, schema)

        return self._capsules(DEVICE_ARRAY, export, requested_schema)


class StreamProducer:
    """A stream, which is handed out once."""

    def __init__(self, stream):
        self._stream = stream

    def __arrow_c_stream__(self, requested_schema=None):
        struct = new(STREAM)
        call("stream_export_host", byref(self._stream), None, struct)
        return of(STREAM, struct)


class SchemaProducer:
    """A type."""

    def __init__(self, kind):
        self._kind = kind

    def __arrow_c_schema__(self):
        schema = new(SCHEMA)
        call("type_export", self._kind, schema)
        return of(SCHEMA, schema)


def taken_stream(capsule):
    """A handle on the stream that a capsule holds, which holds nothing afterwards."""
    assert name_of(capsule) == STREAM
    struct = struct_in(capsule, STREAM)
    assert is_live(struct)
    handle = out("stream_import_host", byref(struct))
    assert not is_live(struct)
    return handle


def taken(capsules, name):
    """A handle on what two capsules hold, which hold nothing afterwards."""
    schema, array = capsules
    assert (name_of(schema), name_of(array)) == (SCHEMA, name)
    schema, array = struct_in(schema, SCHEMA), struct_in(array, name)
    assert is_live(schema) and is_live(array)
    handle = out("array_import_host" if name == ARRAY else "array_import", byref(array), byref(schema))
    assert not is_live(schema) and not is_live(array)
    return handle
