"""PyCapsules: made of structs that the library allocated, and read as any consumer does."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_void_p, py_object
from typing import Any

from . import _c, _python
from ._library import _incref, call, error_record, failure, lib, made, record_address

SCHEMA, ARRAY, DEVICE_ARRAY = b"arrow_schema", b"arrow_array", b"arrow_device_array"
STREAM, DEVICE_STREAM = b"arrow_array_stream", b"arrow_device_array_stream"
TENSOR, LEGACY_TENSOR = b"dltensor_versioned", b"dltensor"
USED = {TENSOR: b"used_dltensor_versioned", LEGACY_TENSOR: b"used_dltensor"}

# A capsule refers to its name, and may outlive this module when the interpreter ends.
for _static in (SCHEMA, ARRAY, DEVICE_ARRAY, STREAM, DEVICE_STREAM, TENSOR, LEGACY_TENSOR, *USED.values()):
    _incref(_static)

_STRUCTS = {
    SCHEMA: (_c.ArrowSchema, "schema"),
    ARRAY: (_c.ArrowArray, "host_array"),
    DEVICE_ARRAY: (_c.ArrowDeviceArray, "device_array"),
    STREAM: (_c.ArrowArrayStream, "host_stream"),
    DEVICE_STREAM: (_c.ArrowDeviceArrayStream, "device_stream"),
}

_new = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_name = ctypes.PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def is_capsule(value: object) -> bool:
    """Whether a value is a PyCapsule."""
    return type(value).__name__ == "PyCapsule"


def name_of(capsule: object) -> bytes:
    """The capsule's name."""
    return _name(capsule) or b""


def new_struct(name: bytes) -> Any:
    """A pointer to a released struct that a capsule of that name may own."""
    struct = getattr(lib, f"bowstring_{_STRUCTS[name][1]}_new")()
    if not struct:
        raise MemoryError
    return struct


def free_struct(name: bytes, struct: Any) -> None:
    """Takes a struct of `new_struct` back."""
    getattr(lib, f"bowstring_{_STRUCTS[name][1]}_free")(struct)


def capsule_of(name: bytes, struct: Any) -> object:
    """A capsule that owns a struct of `new_struct`."""
    return _new(ctypes.cast(struct, c_void_p), name, _python.capsule_destructor)


def struct_in(capsule: object, name: bytes) -> Any:
    """The struct in a capsule; ValueError for a capsule of another name."""
    return _STRUCTS[name][0].from_address(_pointer(capsule, name))


def tensor_capsule(address: int, name: bytes) -> object:
    """A capsule that owns a tensor until a consumer renames it."""
    return _new(address, name, _python.capsule_destructor)


def tensor_in(capsule: object, name: bytes) -> int:
    """The address of the tensor in a capsule; ValueError for a capsule of another name."""
    return _pointer(capsule, name)


def tensor_taken(capsule: object, name: bytes) -> None:
    """Marks a capsule's tensor as taken."""
    _rename(capsule, USED[name])


def tensor_back(capsule: object, name: bytes) -> None:
    """Marks a capsule's tensor as its own again."""
    _rename(capsule, TENSOR if name == TENSOR else LEGACY_TENSOR)


def schema_capsule(kind: int) -> object:
    """A capsule with the schema of a type's handle."""
    struct = new_struct(SCHEMA)
    try:
        call(lib.bowstring_type_export, kind, struct)
    except BaseException:
        free_struct(SCHEMA, struct)
        raise
    return capsule_of(SCHEMA, struct)


def type_from(capsule: object) -> int:
    """A type's handle, of a schema that stays in its capsule."""
    return made(lib.bowstring_type_copy_from, byref(struct_in(capsule, SCHEMA)))


def array_from(schema: object, array: object) -> int:
    """An array's handle, of what two capsules hold; the array's capsule holds nothing afterwards."""
    handle = _python.array_import(schema, array, 0, record_address())
    if handle is None:
        raise failure(error_record())
    return handle


def array_capsules(handle: int, host: bool, sync: Any = None) -> tuple[object, object]:
    """Capsules with an array's schema and the array, in CPU memory or on its device."""
    found = _python.array_export(handle, host, record_address())
    if found is not None:
        return found
    if sync is None or error_record().status != _c.SYNC_REQUIRED:
        raise failure(error_record())
    # Only ctypes lets the interpreter's lock go while it waits.
    schema, array = new_struct(SCHEMA), new_struct(ARRAY)
    try:
        call(lib.bowstring_array_export_host, handle, byref(sync), array, schema)
    except BaseException:
        free_struct(SCHEMA, schema)
        free_struct(ARRAY, array)
        raise
    return capsule_of(SCHEMA, schema), capsule_of(ARRAY, array)


def stream_from(capsule: object) -> int:
    """A stream's handle, of what a capsule holds, which holds nothing afterwards."""
    name = DEVICE_STREAM if name_of(capsule) == DEVICE_STREAM else STREAM
    import_ = lib.bowstring_stream_import if name == DEVICE_STREAM else lib.bowstring_stream_import_host
    return made(import_, byref(struct_in(capsule, name)))


def stream_capsule(handle: c_void_p, host: bool, sync: Any = None) -> object:
    """A capsule with a stream, whose handle is taken."""
    name = STREAM if host else DEVICE_STREAM
    struct = new_struct(name)
    try:
        if host:
            call(lib.bowstring_stream_export_host, byref(handle), None if sync is None else byref(sync), struct)
        else:
            call(lib.bowstring_stream_export, byref(handle), struct)
    except BaseException:
        free_struct(name, struct)
        raise
    return capsule_of(name, struct)

