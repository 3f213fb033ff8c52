"""The C library as ctypes sees it: every constant, every struct, every function.

Only declarations: nothing here loads a library or hides who owns what.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char, c_char_p, c_int, c_int32, c_int64
from ctypes import c_size_t, c_ssize_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

OK, INVALID_ARGUMENT, INVALID_DATA, NOT_CONFORMING, UNSUPPORTED, SYNC_REQUIRED, RELEASED = range(7)
OUT_OF_MEMORY, DEVICE_UNAVAILABLE, DEVICE_ERROR, CALLBACK_ERROR, CANCELLED, INTERNAL = range(7, 13)
VALIDITY, OFFSETS, SIZES, TYPE_IDS, VIEWS, DATA, VARIADIC, VARIADIC_SIZES = range(8)
SYNC_NONE, SYNC_QUEUE, SYNC_HOST, SYNC_LIBRARY = range(4)
IGNORE_NAMES, IGNORE_METADATA, IGNORE_NULLABLE = 1, 2, 4
NOTHING = ctypes.c_size_t(-1).value

RELEASE = CFUNCTYPE(None, c_void_p)
DESTROY_EVENT = CFUNCTYPE(None, c_void_p, c_void_p)
READ = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t)


class ArrowSchema(ctypes.Structure):
    pass


ArrowSchema._fields_ = [
    ("format", c_void_p),
    ("name", c_void_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(ArrowSchema))),
    ("dictionary", POINTER(ArrowSchema)),
    ("release", c_void_p),
    ("private_data", c_void_p),
]


class ArrowArray(ctypes.Structure):
    pass


ArrowArray._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(ArrowArray))),
    ("dictionary", POINTER(ArrowArray)),
    ("release", c_void_p),
    ("private_data", c_void_p),
]


class ArrowDeviceArray(ctypes.Structure):
    _fields_ = [
        ("array", ArrowArray),
        ("device_id", c_int64),
        ("device_type", c_int32),
        ("sync_event", c_void_p),
        ("reserved", c_int64 * 3),
    ]


class ArrowArrayStream(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")]


class ArrowDeviceArrayStream(ctypes.Structure):
    _fields_ = [("device_type", c_int32)] + ArrowArrayStream._fields_


class ArrowAsyncTask(ctypes.Structure):
    _fields_ = [("extract_data", c_void_p), ("private_data", c_void_p)]


class ArrowAsyncProducer(ctypes.Structure):
    _fields_ = [
        ("device_type", c_int32),
        ("request", c_void_p),
        ("cancel", c_void_p),
        ("additional_metadata", c_void_p),
        ("private_data", c_void_p),
    ]


class ArrowAsyncDeviceStreamHandler(ctypes.Structure):
    _fields_ = [
        ("on_schema", c_void_p),
        ("on_next_task", c_void_p),
        ("on_error", c_void_p),
        ("release", c_void_p),
        ("producer", c_void_p),
        ("private_data", c_void_p),
    ]


class Error(ctypes.Structure):
    _fields_ = [
        ("status", c_int32),
        ("rule", c_int32),
        ("row", c_int64),
        ("batch", c_int64),
        ("native_code", c_int64),
        ("path", c_char * 256),
        ("message", c_char * 1024),
    ]


class Sized(ctypes.Structure):
    """A struct that says its own size."""

    def __init__(self, *args: Any, **members: Any) -> None:
        super().__init__(ctypes.sizeof(type(self)), *args, **members)


class Device(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int64)]


class DataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class LayoutEntry(ctypes.Structure):
    _fields_ = [("node", c_size_t), ("role", c_int32), ("element", DataType)]


class Node(ctypes.Structure):
    _fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64)]


class OwnedBuffer(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size_bytes", c_int64), ("owner", c_void_p), ("release_owner", RELEASE)]


class Sync(ctypes.Structure):
    _fields_ = [("mode", c_int32), ("reserved", c_int32), ("queue", c_void_p)]


class Placement(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", Device),
        ("event", c_void_p),
        ("event_ctx", c_void_p),
        ("destroy_event", DESTROY_EVENT),
        ("record_on", Sync),
        ("owner", c_void_p),
        ("release_owner", RELEASE),
    ]


class TypeNodeInfo(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("format", c_char_p),
        ("name", c_char_p),
        ("flags", c_int64),
        ("metadata", c_void_p),
        ("metadata_bytes", c_int64),
        ("n_children", c_size_t),
        ("first_child", c_size_t),
        ("dictionary", c_size_t),
        ("subtree_end", c_size_t),
    ]


class NodeInfo(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("parent", c_size_t),
        ("first_child", c_size_t),
        ("n_children", c_size_t),
        ("dictionary", c_size_t),
        ("subtree_end", c_size_t),
        ("format", c_char_p),
        ("name", c_char_p),
        ("flags", c_int64),
        ("length", c_int64),
        ("offset", c_int64),
        ("null_count", c_int64),
        ("first_buffer", c_size_t),
        ("n_buffers", c_size_t),
    ]


class BufferInfo(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("node", c_size_t),
        ("role", c_int32),
        ("element", DataType),
        ("data", c_void_p),
        ("n_elements", c_int64),
        ("first", c_int64),
        ("count", c_int64),
        ("size_bytes", c_int64),
        ("bit_offset", c_int64),
        ("device", Device),
    ]


class BufferMemory(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("data", c_void_p),
        ("size_bytes", c_int64),
        ("device", Device),
        ("sync_event", c_void_p),
    ]


ON_FINDING = CFUNCTYPE(c_int, c_void_p, c_int32, POINTER(Error))


class ValidateOptions(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("level", c_int32),
        ("profile", c_int32),
        ("assume_device", Device),
        ("as_table", c_int32),
        ("threads", c_uint32),
        ("max_findings", c_uint32),
        ("staging_bytes", c_int64),
        ("sync", Sync),
        ("ctx", c_void_p),
        ("on_finding", ON_FINDING),
    ]


ALLOCATE = CFUNCTYPE(c_void_p, c_void_p, c_int64, c_void_p)
DEALLOCATE = CFUNCTYPE(None, c_void_p, c_void_p, c_int64, c_void_p)
PROGRESS = CFUNCTYPE(c_int, c_void_p, c_int64, c_int64, c_int64)
MAY_SHARE = 1


class TransferOptions(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("sync", Sync),
        ("flags", c_uint64),
        ("ctx", c_void_p),
        ("allocate", ALLOCATE),
        ("deallocate", DEALLOCATE),
        ("progress", PROGRESS),
        ("depth", c_uint32),
    ]


BACKEND_FUNCTIONS = (
    "probe", "allocate", "free", "copy_from_host", "copy_to_host", "copy_within", "copy_between", "library_queue",
    "drain", "record", "queue_waits", "host_waits", "is_done", "destroy_event", "host_accessible", "locate",
    "error_text",
)


class DeviceBackend(Sized):
    _fields_ = [("struct_size", c_size_t), ("ctx", c_void_p), *((name, c_void_p) for name in BACKEND_FUNCTIONS)]


class TensorOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("flags", c_uint64), ("sync", Sync)]


GET_NEXT = CFUNCTYPE(c_int, c_void_p, POINTER(ArrowDeviceArray))
GET_NEXT_ARRAY = CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
# The text is an address, so that whoever gives it decides how long it lives.
GET_LAST_ERROR = CFUNCTYPE(c_void_p, c_void_p)


class StreamCallbacks(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", Device),
        ("ctx", c_void_p),
        ("get_next", GET_NEXT),
        ("get_next_array", GET_NEXT_ARRAY),
        ("get_last_error", GET_LAST_ERROR),
        ("release", RELEASE),
    ]


class CallbackScope(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        *((name, c_void_p) for name in ("alive", "enter", "leave", "held", "pause", "resume")),
    ]


PYTHON_FUNCTIONS = (
    "PyCapsule_IsValid", "PyCapsule_GetName", "PyCapsule_GetPointer", "PyErr_Fetch", "PyErr_Restore",
    "PyErr_WriteUnraisable", "PyErr_Occurred", "PyErr_Clear", "PyErr_SetString", "PyCapsule_New", "PyLong_AsVoidPtr",
    "PyLong_FromVoidPtr", "PyTuple_New", "PyTuple_SetItem", "Py_IncRef", "Py_DecRef", "PyTuple_Size", "PyTuple_GetItem",
    "PyObject_GetAttr", "PyUnicode_FromString", "PyObject_VectorcallMethod", "PyType_GenericAlloc",
    "PyMemoryView_FromObject", "PyObject_GetBuffer", "PyBuffer_Release",
)
# An object's id is its address in CPython, which is the only Python that has these functions.
PYTHON_VALUES = {
    "none": id(None), "type_error": id(TypeError), "true_object": id(True), "object_size": object.__basicsize__,
}


class PythonApi(Sized):
    _fields_ = [
        ("struct_size", c_size_t), *((name, c_void_p) for name in (*PYTHON_FUNCTIONS, *PYTHON_VALUES)),
    ]


COUNTED = ("types", "arrays", "buffers", "streams", "tensors", "blocks", "pending", "leaked_callbacks")


class LiveCounts(Sized):
    _fields_ = [("struct_size", c_size_t), *((name, c_size_t) for name in COUNTED)]


# Handles and out-parameters are plain addresses.
_H = c_void_p
_OUT = POINTER(c_void_p)
_E = POINTER(Error)
_SCHEMA, _HOST, _DEVICE = POINTER(ArrowSchema), POINTER(ArrowArray), POINTER(ArrowDeviceArray)
_SIZE = POINTER(c_size_t)
_OPTIONS = POINTER(ValidateOptions)
_HOW = POINTER(TensorOptions)
_TRANSFER = POINTER(TransferOptions)


def _raw(name: str, struct: Any) -> "dict[str, tuple[Any, ...]]":
    pointer = POINTER(struct)
    return {
        f"bowstring_{name}_move": (None, pointer, pointer),
        f"bowstring_{name}_release": (None, pointer),
        f"bowstring_{name}_is_released": (c_bool, pointer),
        f"bowstring_{name}_new": (pointer,),
        f"bowstring_{name}_free": (None, pointer),
    }


# Name: what it returns, then what it takes.
FUNCTIONS = {
    **_raw("schema", ArrowSchema),
    **_raw("host_array", ArrowArray),
    **_raw("device_array", ArrowDeviceArray),
    **_raw("host_stream", ArrowArrayStream),
    **_raw("device_stream", ArrowDeviceArrayStream),
    "bowstring_type_import": (c_int32, _SCHEMA, _OUT, _E),
    "bowstring_type_copy_from": (c_int32, _SCHEMA, _OUT, _E),
    "bowstring_type_new": (
        c_int32, c_char_p, c_char_p, c_int64, POINTER(c_void_p), c_size_t, _H, c_void_p, c_int64, _OUT, _E,
    ),
    "bowstring_type_parse": (c_int32, c_char_p, _OUT, _E),
    "bowstring_type_to_text": (c_int32, _H, c_void_p, c_size_t, _SIZE, _E),
    "bowstring_type_export": (c_int32, _H, _SCHEMA, _E),
    "bowstring_type_node_info": (c_int32, _H, c_size_t, POINTER(TypeNodeInfo), _E),
    "bowstring_type_child": (c_int32, _H, c_size_t, _OUT, _E),
    "bowstring_type_dictionary": (c_int32, _H, _OUT, _E),
    "bowstring_type_layout": (c_int32, _H, POINTER(LayoutEntry), c_size_t, _SIZE, _E),
    "bowstring_type_equals": (c_bool, _H, _H, c_uint32),
    "bowstring_type_retain": (c_void_p, _H),
    "bowstring_type_release": (None, _H),
    "bowstring_device_array_from_buffers": (
        c_int32, _H, POINTER(Node), c_size_t, POINTER(OwnedBuffer), c_size_t, POINTER(Placement), _DEVICE, _E,
    ),
    "bowstring_array_import": (c_int32, _DEVICE, _SCHEMA, _OUT, _E),
    "bowstring_array_import_typed": (c_int32, _DEVICE, _H, _OUT, _E),
    "bowstring_array_import_host": (c_int32, _HOST, _SCHEMA, _OUT, _E),
    "bowstring_array_import_host_typed": (c_int32, _HOST, _H, _OUT, _E),
    "bowstring_array_import_borrowed": (c_int32, _DEVICE, _H, c_void_p, RELEASE, _OUT, _E),
    "bowstring_array_export": (c_int32, _H, _DEVICE, _SCHEMA, _E),
    "bowstring_array_export_host": (c_int32, _H, POINTER(Sync), _HOST, _SCHEMA, _E),
    "bowstring_array_retain": (c_void_p, _H),
    "bowstring_array_release": (None, _H),
    "bowstring_array_type": (c_void_p, _H),
    "bowstring_array_count": (c_int32, _H, _SIZE, _SIZE, _E),
    "bowstring_array_node_info": (c_int32, _H, c_size_t, POINTER(NodeInfo), _E),
    "bowstring_array_buffer_info": (c_int32, _H, c_size_t, POINTER(BufferInfo), _E),
    "bowstring_array_device": (c_int32, _H, POINTER(Device), _OUT, _E),
    "bowstring_array_child": (c_int32, _H, c_size_t, _OUT, _E),
    "bowstring_array_dictionary": (c_int32, _H, _OUT, _E),
    "bowstring_array_slice": (c_int32, _H, c_int64, c_int64, _OUT, _E),
    "bowstring_array_null_count": (c_int32, _H, POINTER(Sync), POINTER(c_int64), _E),
    "bowstring_array_resolve_sizes": (c_int32, _H, POINTER(Sync), _OUT, _E),
    "bowstring_array_resolve_sizes_with": (c_int32, _H, READ, c_void_p, _OUT, _E),
    "bowstring_array_with_owner": (c_int32, _H, c_void_p, RELEASE, _OUT, _E),
    "bowstring_array_to_device": (c_int32, _H, Device, POINTER(TransferOptions), _OUT, POINTER(c_bool), _E),
    "bowstring_array_wait": (c_int32, _H, POINTER(Sync), _E),
    "bowstring_array_record": (c_int32, _H, POINTER(Sync), _OUT, _E),
    "bowstring_array_join_events": (c_int32, _H, POINTER(c_void_p), c_size_t, POINTER(Sync), _OUT, _E),
    "bowstring_array_release_after": (c_int32, _OUT, POINTER(Sync), _E),
    "bowstring_device_array_release_after": (c_int32, _DEVICE, POINTER(Sync), _E),
    "bowstring_array_buffer": (c_int32, _H, c_size_t, _OUT, _E),
    "bowstring_array_to_buffers": (
        c_int32, _H, POINTER(Node), c_size_t, POINTER(OwnedBuffer), c_size_t, POINTER(Placement), _E,
    ),
    "bowstring_array_to_text": (c_int32, _H, c_void_p, c_size_t, _SIZE, _E),
    "bowstring_buffer_wrap": (c_int32, POINTER(OwnedBuffer), POINTER(Placement), _OUT, _E),
    "bowstring_buffer_allocate": (c_int32, Device, c_int64, POINTER(Sync), _OUT, _OUT, _E),
    "bowstring_buffer_to_device": (c_int32, _H, Device, POINTER(TransferOptions), _OUT, POINTER(c_bool), _E),
    "bowstring_buffer_retain": (c_void_p, _H),
    "bowstring_buffer_release": (None, _H),
    "bowstring_buffer_info": (c_int32, _H, POINTER(BufferMemory), _E),
    "bowstring_buffer_slice": (c_int32, _H, c_int64, c_int64, _OUT, _E),
    "bowstring_buffer_read": (c_int32, _H, c_int64, c_void_p, c_int64, POINTER(Sync), _E),
    "bowstring_buffer_into_owned": (c_int32, _OUT, POINTER(OwnedBuffer), _E),
    "bowstring_device_register": (c_int32, c_int32, POINTER(DeviceBackend), _E),
    "bowstring_device_probe": (c_int32, c_int32, POINTER(c_int64), _E),
    "bowstring_device_collect": (c_int32, Device, c_bool, _SIZE, _E),
    "bowstring_schema_validate": (c_int32, _SCHEMA, _OPTIONS, _E),
    "bowstring_device_array_validate": (c_int32, _DEVICE, _H, _OPTIONS, _E),
    "bowstring_host_array_validate": (c_int32, _HOST, _H, _OPTIONS, _E),
    "bowstring_array_validate": (c_int32, _H, _OPTIONS, _E),
    "bowstring_device_stream_validate": (c_int32, POINTER(ArrowDeviceArrayStream), _OPTIONS, _E),
    "bowstring_host_stream_validate": (c_int32, POINTER(ArrowArrayStream), _OPTIONS, _E),
    "bowstring_array_conform": (c_int32, _H, c_int32, POINTER(Sync), c_uint32, _OUT, _E),
    "bowstring_array_to_tensor": (c_int32, _H, _HOW, _OUT, _E),
    "bowstring_array_validity_to_tensor": (c_int32, _H, _HOW, _OUT, POINTER(c_int64), _E),
    "bowstring_buffer_to_tensor": (c_int32, _H, DataType, c_int32, POINTER(c_int64), _HOW, _OUT, _E),
    "bowstring_array_from_tensor": (c_int32, _OUT, _H, _HOW, _OUT, _E),
    "bowstring_tensor_from_legacy": (c_int32, _OUT, _HOW, _OUT, _E),
    "bowstring_tensor_to_legacy": (c_int32, _OUT, _HOW, _OUT, _E),
    "bowstring_tensor_validate": (c_int32, c_void_p, _OPTIONS, _E),
    "bowstring_legacy_tensor_validate": (c_int32, c_void_p, _OPTIONS, _E),
    "bowstring_tensor_release": (None, c_void_p),
    "bowstring_legacy_tensor_release": (None, c_void_p),
    "bowstring_stream_import": (c_int32, POINTER(ArrowDeviceArrayStream), _OUT, _E),
    "bowstring_stream_import_host": (c_int32, POINTER(ArrowArrayStream), _OUT, _E),
    "bowstring_stream_from_arrays": (c_int32, _H, POINTER(c_void_p), c_size_t, _OUT, _E),
    "bowstring_stream_from_callbacks": (c_int32, _H, POINTER(StreamCallbacks), _OUT, _E),
    "bowstring_stream_type": (c_void_p, _H),
    "bowstring_stream_device": (Device, _H),
    "bowstring_stream_next": (c_int32, _H, _OUT, _E),
    "bowstring_stream_next_device_array": (c_int32, _H, _DEVICE, _E),
    "bowstring_stream_collect": (c_int32, _OUT, POINTER(Sync), _OUT, _E),
    "bowstring_stream_export": (c_int32, _OUT, POINTER(ArrowDeviceArrayStream), _E),
    "bowstring_stream_export_host": (c_int32, _OUT, POINTER(Sync), POINTER(ArrowArrayStream), _E),
    "bowstring_stream_validated": (c_int32, _OUT, _OPTIONS, _OUT, _E),
    "bowstring_stream_select": (c_int32, _OUT, _SIZE, c_size_t, _OUT, _E),
    "bowstring_stream_to_device": (c_int32, _OUT, Device, _TRANSFER, _OUT, _E),
    "bowstring_stream_to_async": (c_int32, _OUT, POINTER(ArrowAsyncDeviceStreamHandler), _E),
    "bowstring_stream_from_async": (c_int32, c_size_t, POINTER(ArrowAsyncDeviceStreamHandler), _OUT, _E),
    "bowstring_stream_cancel": (None, _H),
    "bowstring_stream_release": (None, _H),
    "bowstring_callback_scope_set": (c_int32, POINTER(CallbackScope), _E),
    "bowstring_callback_scope_close": (None,),
    "bowstring_python_init": (c_int32, POINTER(PythonApi), _E),
    # Called by the interpreter alone, with its lock held.
    "bowstring_python_capsule_destructor": (None, c_void_p),
    "bowstring_python_array_import": (c_void_p, c_void_p, POINTER(c_void_p), c_ssize_t),
    "bowstring_python_array_import_raw": (c_void_p, c_void_p, POINTER(c_void_p), c_ssize_t),
    "bowstring_python_array_export": (c_void_p, c_void_p, POINTER(c_void_p), c_ssize_t),
    "bowstring_python_array_take": (c_void_p, c_void_p, c_void_p),
    "bowstring_python_array_give": (c_void_p, c_void_p, c_void_p, c_ssize_t, c_void_p),
    "bowstring_python_array_finalize": (None, c_void_p),
    "bowstring_python_array_release": (c_void_p, c_void_p, c_void_p),
    "bowstring_python_buffer_release": (c_void_p, c_void_p, c_void_p),
    "bowstring_python_type_release": (c_void_p, c_void_p, c_void_p),
    "bowstring_python_get_buffer": (c_int, c_void_p, c_void_p, c_int),
    "bowstring_live_counts": (None, POINTER(LiveCounts)),
    "bowstring_version": (c_char_p,),
    "bowstring_abi_version": (c_uint32,),
    "bowstring_status_name": (c_char_p, c_int32),
    "bowstring_rule_name": (c_char_p, c_int32),
    "bowstring_rule_text": (c_char_p, c_int32),
    "bowstring_rule_source": (c_char_p, c_int32),
    "bowstring_rule_severity": (c_int32, c_int32),
    "bowstring_rule_next": (c_int32, c_int32),
}


def load(path: str) -> ctypes.CDLL:
    """The library at `path`, with every function declared."""
    library = ctypes.CDLL(path)
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
