"""The addresses of an array's buffers, read from the raw structs of the Arrow C Data Interface without bowstring."""

from __future__ import annotations

import ctypes
from typing import Any


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]

_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)

VIEWS = (b"vu", b"vz")


def _walk(schema: Any, array: Any, found: list[int]) -> None:
    # A null node has no buffers, and some producers still give it one.
    count = 0 if schema.format == b"n" else array.n_buffers
    if schema.format in VIEWS:
        # The last one has the sizes of the others, which whoever exports makes.
        count -= 1
    for index in range(count if array.length else 0):
        address = array.buffers[index]
        has_validity = not schema.format.startswith((b"+u", b"+r"))
        if address and not (index == 0 and has_validity and array.null_count == 0):
            found.append(address)
    for index in range(array.n_children):
        _walk(schema.children[index].contents, array.children[index].contents, found)
    if schema.dictionary and array.dictionary:
        _walk(schema.dictionary.contents, array.dictionary.contents, found)


def of_capsules(schema: object, array: object) -> list[int]:
    """Where the buffers are that hold anything, of what two capsules hold."""
    found: list[int] = []
    _walk(
        _Schema.from_address(_pointer(schema, b"arrow_schema")),
        _Array.from_address(_pointer(array, b"arrow_array")),
        found,
    )
    return found


def of(producer: Any) -> list[int]:
    """Where the buffers are that hold anything, of an object with ``__arrow_c_array__``."""
    return of_capsules(*producer.__arrow_c_array__())
