"""The package's own copy of the C library: found, loaded, told about Python, and called."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from ctypes import byref, c_void_p
from pathlib import Path
from typing import Any, Optional

from . import _c
from ._errors import BY_STATUS, BowstringError


def _path() -> str:
    """The file of the library: the wheel's own, or another one for whoever develops the package."""
    other = os.environ.get("BOWSTRING_PYTHON_LIBRARY")
    if other:
        return other
    found = sorted((Path(__file__).parent / "_native").glob("lib_native.*")) or sorted(
        (Path(__file__).parent / "_native").glob("_native.*")
    )
    if not found:
        raise ImportError("expected the C library in bowstring/_native, found none: was the package installed by pip?")
    return str(found[0])


def address_of(function: Any) -> int:
    """Where a C function is."""
    address = ctypes.cast(function, c_void_p).value
    assert address
    return address


lib = _c.load(_path())

_api = ctypes.pythonapi
_local = threading.local()


def error_record() -> _c.Error:
    """This thread's error record: calls fill it in on failure only, so one is enough."""
    try:
        return _local.error
    except AttributeError:
        _local.error = _c.Error()
        return _local.error


def record_address() -> int:
    """The address of this thread's error record."""
    try:
        return _local.address
    except AttributeError:
        _local.address = ctypes.addressof(error_record())
        return _local.address


def failure(record: Any) -> BowstringError:
    """What a failed call left in its record, as an exception."""
    number = record.status
    kind = BY_STATUS[number - 1] if 0 < number <= len(BY_STATUS) else BowstringError
    return kind(
        record.message.decode("utf-8", "replace"),
        rule=lib.bowstring_rule_name(record.rule).decode() if record.rule else "",
        path=record.path.decode("utf-8", "replace"),
        row=None if record.row < 0 else record.row,
        batch=None if record.batch < 0 else record.batch,
        native_code=record.native_code,
    )


def call(function: Any, *arguments: Any) -> None:
    """Calls a function of the library that ends in an error, and raises when it fails."""
    error = error_record()
    if function(*arguments, byref(error)):
        raise failure(error)


def made(function: Any, *arguments: Any) -> int:
    """As `call`, for functions whose last parameter before the error is a handle that comes out."""
    handle = c_void_p()
    call(function, *arguments, byref(handle))
    return handle.value or 0


def text_of(function: Any, handle: int) -> str:
    """What a function that writes text says of a handle."""
    needed = ctypes.c_size_t()
    call(function, handle, None, 0, byref(needed))
    buffer = ctypes.create_string_buffer(needed.value)
    call(function, handle, buffer, needed.value, None)
    return buffer.value.decode()


DECREF = address_of(_api.Py_DecRef)
_incref = _api.Py_IncRef
_incref.argtypes, _incref.restype = [ctypes.py_object], None
_decref = _api.Py_DecRef
_decref.argtypes, _decref.restype = [ctypes.py_object], None
release_reference = ctypes.cast(DECREF, _c.RELEASE)


class Reference:
    """A reference to a Python object, as an owner that the library lets go by Py_DecRef inside the callback scope.

    It is the caller's until `hand_over`; a call that fails takes nothing, and then the reference goes with this object.
    """

    def __init__(self, value: object) -> None:
        self._value: Optional[object] = value
        self.address = id(value)
        _incref(value)
        self._mine = True

    def hand_over(self) -> None:
        """The library has taken the reference."""
        self._mine = False

    def __del__(self) -> None:
        if self._mine:
            self._mine = False
            _decref(self._value)


def owned(data: int, size: int, owner: object) -> tuple[_c.OwnedBuffer, Optional[Reference]]:
    """Memory that a Python object keeps alive, and the reference to hand over once it was taken."""
    if owner is None:
        return _c.OwnedBuffer(data or None, size, None, _c.RELEASE()), None
    reference = Reference(owner)
    return _c.OwnedBuffer(data or None, size, reference.address, release_reference), reference


def _refuse_other_interpreters() -> None:
    """Owners are let go under the main interpreter's lock, which is not another one's."""
    current, main = ctypes.pythonapi["PyInterpreterState_Get"], ctypes.pythonapi["PyInterpreterState_Main"]
    current.restype = main.restype = c_void_p
    if current() != main():
        raise ImportError("expected the main interpreter, found a subinterpreter, in which bowstring cannot be used")


def _set_scope() -> None:
    scope = _c.CallbackScope(
        alive=address_of(_api.Py_IsInitialized),
        enter=address_of(_api.PyGILState_Ensure),
        leave=address_of(_api.PyGILState_Release),
        held=address_of(_api.PyGILState_Check),
        pause=address_of(_api.PyEval_SaveThread),
        resume=address_of(_api.PyEval_RestoreThread),
    )
    call(lib.bowstring_callback_scope_set, byref(scope))
    # Called by ctypes with the interpreter's lock released, as the library wants it.
    atexit.register(lib.bowstring_callback_scope_close)


_refuse_other_interpreters()
_set_scope()


def live_counts() -> dict[str, int]:
    """How much of what the library made is alive, by kind; only what is not 0.

    Returns
    -------
    dict
        Numbers of types, arrays, buffers, streams, tensors, blocks, pending pieces of device work and skipped callbacks.
    """
    counts = _c.LiveCounts()
    lib.bowstring_live_counts(byref(counts))
    return {name: getattr(counts, name) for name in _c.COUNTED if getattr(counts, name)}


__version__ = lib.bowstring_version().decode()
