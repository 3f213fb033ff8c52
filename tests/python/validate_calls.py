"""The validator as ctypes sees it, and all it says as one list."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p

import bowstring_ctypes as bs
from bowstring_ctypes import lib

STRUCTURE, BOUNDS, FULL = 2, 1, 0
ERROR, WARNING, NOTE = range(3)
ON_FINDING = CFUNCTYPE(c_int, c_void_p, c_int32, POINTER(bs.Error))


class Options(bs.Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("level", c_int32),
        ("profile", c_int32),
        ("assume_device", bs.Device),
        ("as_table", c_int32),
        ("threads", c_uint32),
        ("max_findings", c_uint32),
        ("staging_bytes", c_int64),
        ("sync", bs.Sync),
        ("ctx", c_void_p),
        ("on_finding", ON_FINDING),
    ]


def function(name):
    """A function of the validator."""
    found = getattr(lib, f"bowstring_{name}")
    found.restype, found.argtypes = c_int32, None
    return found


SCHEMA, HOST, DEVICE, ARRAY = map(
    function, ("schema_validate", "host_array_validate", "device_array_validate", "array_validate")
)
_NAMES = {}


def rule_name(number):
    """The name of a rule."""
    if number not in _NAMES:
        _NAMES[number] = lib.bowstring_rule_name(number).decode()
    return _NAMES[number]


class Listener:
    """Calls the validator with options of its own, and keeps what it hears."""

    def __init__(self):
        self.heard, self.error = [], bs.Error()
        self._callback = ON_FINDING(self._hear)
        self.options = {level: Options(level=level) for level in (STRUCTURE, BOUNDS, FULL)}
        self.telling = {level: Options(level=level, on_finding=self._callback) for level in (STRUCTURE, BOUNDS, FULL)}

    def _hear(self, _, severity, finding):
        one = finding.contents
        self.heard.append((severity, rule_name(one.rule), one.path.decode(errors="replace"), one.row))
        return 0

    def first(self):
        """What the error says, as a finding does."""
        return rule_name(self.error.rule), self.error.path.decode(errors="replace"), self.error.row

    def ask(self, call, *what, level=FULL):
        """The status, the first error and all findings; both ways of asking must agree."""
        alone = call(*what, byref(self.options[level]), byref(self.error))
        first = self.first() if alone else None
        self.heard = []
        told = call(*what, byref(self.telling[level]), byref(self.error))
        assert alone == told, f"{alone} without a listener, {told} with one"
        errors = [one[1:] for one in self.heard if one[0] == ERROR]
        if told:
            assert self.first() == first, f"{first} without a listener, {self.first()} with one"
        assert bool(told) == bool(errors), f"status {told} with errors {errors}"
        assert not errors or errors[0] == first, f"{errors[0]} was told first, {first} is the error"
        return told, first, errors

    def warnings(self):
        """What the last call told besides errors."""
        return [one[1:] for one in self.heard if one[0] != ERROR]


def type_of(schema):
    """A type made of a raw schema that stays as it is, or None and the status."""
    made, error = c_void_p(), bs.Error()
    status = lib.bowstring_type_copy_from(ctypes.cast(schema, POINTER(bs.ArrowSchema)), byref(made), byref(error))
    return (made if status == bs.OK else None), status
