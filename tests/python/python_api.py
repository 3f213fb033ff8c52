"""CPython's addresses given to the library, and its calls as builtins, as a binding written in Python makes them."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_void_p, py_object

import bowstring_ctypes as bs
from bowstring_ctypes import call, lib

METH_O, METH_FASTCALL = 0x0008, 0x0080


class MethodDef(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = [("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p)]


def address(function):
    """Where a C function is."""
    return ctypes.cast(function, c_void_p).value


def api(*without, **changed):
    """The addresses, but for members that are left NULL or changed."""
    members = {name: address(getattr(ctypes.pythonapi, name)) for name in (*bs.PYTHON_FUNCTIONS, *bs.PYTHON_VIEWS)}
    members.update(none=id(None), type_error=id(TypeError))
    members.update(changed)
    return bs.PythonApi(**{name: value for name, value in members.items() if name not in without})


def init():
    """Gives the addresses to the library."""
    call("python_init", byref(api()))


def forever(made):
    """Keeps an object also when the interpreter ends, because what reads its memory may be destroyed later still."""
    ctypes.pythonapi.Py_IncRef(py_object(made))
    return made


_new_builtin = ctypes.PYFUNCTYPE(py_object, c_void_p, c_void_p, c_void_p)(("PyCFunction_NewEx", ctypes.pythonapi))


def builtin(name, flags):
    """A builtin made of one of the library's functions."""
    # A builtin keeps the address of its definition, and reads it when it is destroyed.
    definition = forever(MethodDef(name.encode(), address(getattr(lib, f"bowstring_python_{name}")), flags, None))
    return _new_builtin(ctypes.addressof(definition), None, None)


array_import = builtin("array_import", METH_FASTCALL)
array_import_raw = builtin("array_import_raw", METH_FASTCALL)
array_export = builtin("array_export", METH_FASTCALL)
array_release = builtin("array_release", METH_O)
buffer_release = builtin("buffer_release", METH_O)
type_release = builtin("type_release", METH_O)

DESTRUCTOR = address(lib.bowstring_python_capsule_destructor)

_new_capsule = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_set_name = ctypes.PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))
_names = {}


def _kept(name):
    """A name that stays, of which a capsule keeps only the address."""
    if name is not None and name not in _names:
        _names[name] = forever(ctypes.create_string_buffer(name))
    return _names.get(name)


def capsule(name, pointer):
    """A capsule whose destructor is the library's."""
    return _new_capsule(ctypes.cast(pointer, c_void_p), _kept(name), DESTRUCTOR)


def rename(capsule, name):
    """Gives a capsule another name, as consumers of tensors do."""
    assert _set_name(capsule, _kept(name)) == 0


class Record:
    """An error record, as an address to give to a builtin."""

    def __init__(self):
        self.record = bs.Error()
        self.address = ctypes.addressof(self.record)

    def taken(self):
        """Status and message of what failed; the record is empty afterwards."""
        found = self.record.status, self.record.message.decode()
        ctypes.memset(self.address, 0, ctypes.sizeof(self.record))
        return found

    def checked(self, result):
        """What a builtin returned; raises what it wrote instead."""
        if result is None:
            raise bs.BowstringError(self.record.status, self.record)
        return result
