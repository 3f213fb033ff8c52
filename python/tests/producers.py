"""Producers and consumers that are written by hand, so that what they do and were told can be seen."""

import array
import ctypes
from ctypes import c_char_p, c_int, c_void_p, py_object

from bowstring import _c
from bowstring._dlpack import DLTensor, Legacy, Versioned

_DESTRUCTOR = ctypes.PYFUNCTYPE(None, c_void_p)
_new = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_name = ctypes.PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_dying_name = ctypes.PYFUNCTYPE(c_char_p, c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))
_dying_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
pointer_in = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
rename = ctypes.PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))

SCHEMA, ARRAY, DEVICE_ARRAY = b"arrow_schema", b"arrow_array", b"arrow_device_array"
TENSOR, LEGACY = b"dltensor_versioned", b"dltensor"
USED = {TENSOR: b"used_dltensor_versioned", LEGACY: b"used_dltensor"}


def name_of(capsule):
    """A capsule's name."""
    return _name(capsule)


def empty_capsule(name):
    """A capsule of this name that nobody should look into."""
    # It refers to its name.
    _NAMES.append(name)
    return _new(ctypes.addressof(_NOTHING), name, None)


_NAMES = []
# Structs and callbacks stay: who lets go last is what is tested.
_KEPT = []
# Also when the interpreter ends: capsules that are destroyed after this module call back.
ctypes.pythonapi.Py_IncRef(py_object(_KEPT))
_NOTHING = ctypes.create_string_buffer(1024)


class Ints:
    """int64 numbers as an Arrow array made by hand, which counts what happens to it.

    Each export gets structs of its own, kept here: they may move, but not go.
    """

    def __init__(self, values=(1, 2, 3), device=(1, -1), data=None, n_buffers=2):
        self.n_buffers = n_buffers
        self.values = array.array("q", values)
        self.data = self.values.buffer_info()[0] if data is None else data
        self.device = device
        self.exported, self.released, self.schemas_released, self.dropped = 0, 0, 0, []
        self.requests = []
        self._kept = []
        self._release = ctypes.CFUNCTYPE(None, ctypes.POINTER(_c.ArrowArray))(self._on_release)
        self._release_schema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_c.ArrowSchema))(self._on_release_schema)
        self._destroy = _DESTRUCTOR(self._on_destroy)
        _KEPT.append((self._release, self._release_schema, self._destroy, self._kept, self.values))

    def _on_release(self, struct):
        self.released += 1
        struct.contents.release = None

    def _on_release_schema(self, struct):
        self.schemas_released += 1
        struct.contents.release = None

    def _on_destroy(self, capsule):
        """What nobody took is released; what was moved out has no release any more."""
        name = _dying_name(capsule)
        kind = {SCHEMA: _c.ArrowSchema, ARRAY: _c.ArrowArray, DEVICE_ARRAY: _c.ArrowDeviceArray}[name]
        struct = kind.from_address(_dying_pointer(capsule, name))
        inner = struct.array if name == DEVICE_ARRAY else struct
        if inner.release:
            self.dropped.append(name)
            (self._on_release_schema if name == SCHEMA else self._on_release)(ctypes.pointer(inner))

    def _capsule(self, name, struct):
        self._kept.append(struct)
        return _new(ctypes.addressof(struct), name, ctypes.cast(self._destroy, c_void_p))

    def schema(self):
        """A capsule with the type."""
        form = ctypes.create_string_buffer(b"l")
        self._kept.append(form)
        release = ctypes.cast(self._release_schema, c_void_p)
        return self._capsule(SCHEMA, _c.ArrowSchema(format=ctypes.addressof(form), flags=2, release=release))

    def host(self):
        """An ArrowArray."""
        self.exported += 1
        buffers = (c_void_p * 2)(None, self.data)
        self._kept.append(buffers)
        return _c.ArrowArray(
            length=len(self.values), n_buffers=self.n_buffers, buffers=buffers, release=ctypes.cast(
                self._release, c_void_p
            )
        )

    def host_capsule(self):
        """A capsule with an ArrowArray."""
        return self._capsule(ARRAY, self.host())

    def device_capsule(self):
        """A capsule with an ArrowDeviceArray."""
        return self._capsule(DEVICE_ARRAY, _c.ArrowDeviceArray(self.host(), self.device[1], self.device[0]))


class Speaks:
    """An object with just these members; calls are written down in `calls`."""

    calls = ()

    def __new__(cls, **members):
        made = object.__new__(type("Speaks", (Speaks,), members))
        made.calls = []
        return made


def refuses(error):
    """A method that raises."""

    def method(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        raise error

    return method


class Tensor:
    """int32 numbers as a DLPack producer made by hand, which says what it was asked and how its tensor went."""

    def __init__(
        self, values=(1, 2, 3), shape=None, strides=None, name=TENSOR, version=(1, 0), flags=0, device=(1, 0),
        dtype=(0, 32, 1), data=None, no_strides=False, no_deleter=False,
    ):
        self.values = array.array("i", values)
        self.name, self.device = name, device
        self.asked, self.deleted, self.dropped = [], 0, 0
        shape = (len(self.values),) if shape is None else shape
        self._shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        compact, step = [], 1
        for length in reversed(shape):
            compact.insert(0, step)
            step *= length
        self._strides = (ctypes.c_int64 * max(len(shape), 1))(*(compact if strides is None else strides))
        tensor = DLTensor(
            self.values.buffer_info()[0] if data is None else data, *device, len(shape), _c.DataType(*dtype),
            self._shape, None if no_strides else self._strides, 0,
        )
        self._deleter = ctypes.CFUNCTYPE(None, c_void_p)(self._on_delete)
        self._destroy = _DESTRUCTOR(self._on_destroy)
        deleter = None if no_deleter else ctypes.cast(self._deleter, c_void_p)
        if name == TENSOR:
            self.struct = Versioned(*version, None, deleter, flags, tensor)
        else:
            self.struct = Legacy(tensor, None, deleter)
        _KEPT.append((self._deleter, self._destroy, self._shape, self._strides, self.struct, self.values))

    def _on_delete(self, address):
        assert address == ctypes.addressof(self.struct)
        self.deleted += 1

    def _on_destroy(self, capsule):
        if _dying_name(capsule) == self.name:
            self.dropped += 1
            self._on_delete(_dying_pointer(capsule, self.name))

    def capsule(self):
        """A capsule with the tensor."""
        self.last = _new(ctypes.addressof(self.struct), self.name, ctypes.cast(self._destroy, c_void_p))
        return self.last

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        return self.capsule()

    def __dlpack_device__(self):
        return self.device
