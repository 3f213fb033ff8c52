"""The C library as ctypes sees it: every struct and function, as the Python package declares them, and an exception for errors.

Nothing here hides who owns what. The library's path is in the variable BOWSTRING_LIBRARY.
"""

import ctypes
import importlib.util
import os
from ctypes import byref, c_size_t, c_void_p
from pathlib import Path


def _declarations():
    """The package's declarations, without the package, which would load a library of its own."""
    here = Path(__file__).resolve().parent
    # Beside this file where a bundle put it.
    for at in (here.parents[1] / "python/bowstring/_c.py", here / "_c.py"):
        if at.exists():
            spec = importlib.util.spec_from_file_location("bowstring_declarations", at)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return vars(module)
    raise ImportError("expected python/bowstring/_c.py, found none")


globals().update((name, value) for name, value in _declarations().items() if not name.startswith("_"))

lib = load(os.environ["BOWSTRING_LIBRARY"])


class BowstringError(Exception):
    """What a failed call said."""

    def __init__(self, status, error):
        self.status = status
        self.rule = lib.bowstring_rule_name(error.rule).decode()
        self.row, self.batch = error.row, error.batch
        self.native_code = error.native_code
        self.path = error.path.decode()
        self.message = error.message.decode()
        name = lib.bowstring_status_name(status).decode()
        super().__init__(f"{name} {self.rule} {self.path}: {self.message}")


def check(status, error):
    """Raises what a call left in `error` unless it succeeded."""
    if status != OK:
        assert error.status == status, f"returned {status}, wrote {error.status}"
        raise BowstringError(status, error)


def call(name, *arguments):
    """Calls a function that ends in an error, without its prefix, and raises when it fails."""
    error = Error()
    check(getattr(lib, f"bowstring_{name}")(*arguments, byref(error)), error)


def out(name, *arguments):
    """As `call`, for functions whose last parameter before the error is a handle that comes out."""
    handle = c_void_p(0xA5)
    call(name, *arguments, byref(handle))
    assert handle.value
    return handle


def text_of(name, handle):
    """What a function that writes text says of a handle."""
    needed = c_size_t()
    call(name, handle, None, 0, byref(needed))
    buffer = ctypes.create_string_buffer(needed.value)
    call(name, handle, buffer, needed.value, None)
    return buffer.value.decode()


def live_counts():
    """Everything that is alive, by name."""
    counts = LiveCounts()
    lib.bowstring_live_counts(byref(counts))
    return {name: getattr(counts, name) for name in COUNTED if getattr(counts, name)}
