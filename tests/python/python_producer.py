"""Arrays whose owners are let go in C: they abort without the interpreter's lock, and count."""

import ctypes
import os
import subprocess
import tempfile
from ctypes import c_void_p
from pathlib import Path

import bowstring_ctypes as bs
import support
from bowstring_ctypes import out
from python_api import address

# Tells a process that a test started which library to load.
VARIABLE = "BOWSTRING_PYTHON_PRODUCER"
_folder = None


def path():
    """The helper's library, compiled when no parent did it."""
    global _folder
    if VARIABLE not in os.environ:
        _folder = tempfile.TemporaryDirectory()
        made, source = Path(_folder.name, "libpython_producer.so"), Path(__file__).with_name("python_producer.c")
        flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
        subprocess.run([os.environ.get("CC", "cc"), *flags, source, "-o", made], check=True)
        os.environ[VARIABLE] = str(made)
    return os.environ[VARIABLE]


_lib = ctypes.CDLL(path())
_lib.producer_start.argtypes = (c_void_p, c_void_p, c_void_p)
_lib.producer_start(
    *(address(getattr(ctypes.pythonapi, name)) for name in ("PyGILState_Check", "PyErr_Occurred", "PyErr_SetString"))
)
RELEASE = address(_lib.producer_release)
RELEASE_RAISING = address(_lib.producer_release_raising)


def counts():
    """How many owners were let go, how many of them by another thread, and how many met an exception."""
    names = ("released", "released_elsewhere", "saw_exception")
    return tuple(getattr(_lib, f"producer_{name}")() for name in names)


def tell():
    """Prints the counts when the process ends, after the interpreter."""
    _lib.producer_tell()


def owned(data, raises=None):
    """A handle on pyarrow data with an owner more; letting that go leaves an exception of the kind `raises`."""
    inner = support.imported(data)
    release = RELEASE if raises is None else RELEASE_RAISING
    made = out("array_with_owner", inner, id(raises) if raises else 1, bs.RELEASE(release))
    support.release(inner)
    return made
