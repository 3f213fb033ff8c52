"""DLPack by ctypes: its structs, and capsules with them."""

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p, py_object

from bowstring_ctypes import DataType, lib

NAME, USED = b"dltensor_versioned", b"used_dltensor_versioned"
LEGACY_NAME, LEGACY_USED = b"dltensor", b"used_dltensor"


class DLDevice(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    ]


class Legacy(ctypes.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


_DESTRUCTOR = ctypes.PYFUNCTYPE(None, c_void_p)
_new = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, _DESTRUCTOR)(("PyCapsule_New", ctypes.pythonapi))
_name = ctypes.PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", ctypes.pythonapi))
rename = ctypes.PYFUNCTYPE(c_int32, py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
pointer_in = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
# Plain addresses, because a capsule that is being destroyed may not be referred to.
_dying_name = ctypes.PYFUNCTYPE(c_char_p, c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))
_dying_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

dropped = []


def _destroy(capsule):
    """What nobody took is let go."""
    name = _dying_name(capsule)
    if name in (NAME, LEGACY_NAME):
        dropped.append(name)
        let_go = lib.bowstring_tensor_release if name == NAME else lib.bowstring_legacy_tensor_release
        let_go(_dying_pointer(capsule, name))


_on_destroy = _DESTRUCTOR(_destroy)
USED_NAMES = {NAME: USED, LEGACY_NAME: LEGACY_USED}


def capsule(address, name=NAME):
    """A capsule that owns a tensor until a consumer renames it."""
    return _new(address, name, _on_destroy)


def name_of(made):
    """A capsule's name."""
    return _name(made)


def taken(made, name=NAME):
    """The tensor in a capsule, which is used up afterwards. Another name raises ValueError and leaves it alone."""
    address = c_void_p(pointer_in(made, name))
    rename(made, USED_NAMES[name])
    return address
