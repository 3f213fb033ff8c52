"""Arrays handed between bowstring and nanoarrow's Python package, by capsules and by pointers.

nanoarrow is in the middle: what pyarrow made goes to nanoarrow, to bowstring, to nanoarrow again and back to pyarrow.
"""

import ctypes
from ctypes import byref, c_char_p, c_void_p, py_object

import nanoarrow as na
import nanoarrow.device
import pyarrow as pa
import pytest
from nanoarrow.c_array import CArray
from nanoarrow.c_schema import CSchema

import all_types
import bowstring_ctypes as bs
import support
from bowstring_ctypes import call, lib, out

_capsule_new = ctypes.pythonapi.PyCapsule_New
_destructor = ctypes.PYFUNCTYPE(None, c_void_p)
_capsule_new.restype, _capsule_new.argtypes = py_object, [c_void_p, c_char_p, _destructor]
# Plain addresses, because a capsule that is being destroyed may not be referred to.
_pointer_of_dying = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

# Its capsules of views that have a variadic buffer crash, also of pyarrow's own, so these columns cannot go through it.
CRASHES = ("string_view", "string_view_long", "binary_view", "struct", "sorted_map")
COLUMNS = {name: column for name, column in all_types.columns() if name not in CRASHES}
# What nanoarrow reads as pyarrow does, and what only from its start. It has no values of run-end encoded arrays, and
# its own kind of decimals.
READS = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double", "bool", "null",
    "date32", "date64", "time32_s", "time32_ms", "time64_us", "time64_ns", "timestamp_s", "timestamp_ms",
    "timestamp_us", "timestamp_ns", "duration_s", "duration_ms", "duration_us", "utf8", "utf8_long", "large_utf8",
    "large_utf8_long", "binary", "large_binary", "list_", "list__of_text", "large_list", "large_list_of_text",
    "fixed_list", "deep", "dense", "dictionary", "dictionary_int8", "dictionary_uint16", "dictionary_of_lists",
)
READS_WHOLE = ("half", "fixed_binary", "interval", "sparse")


@_destructor
def _free_schema(capsule):
    at = _pointer_of_dying(capsule, b"arrow_schema")
    lib.bowstring_schema_free(bs.ArrowSchema.from_address(at))


@_destructor
def _free_array(capsule):
    at = _pointer_of_dying(capsule, b"arrow_device_array")
    lib.bowstring_device_array_free(bs.ArrowDeviceArray.from_address(at))


class Capsules:
    """An object that hands out a device array, as Python's Arrow protocol wants it."""

    def __init__(self, handle):
        self._handle = handle

    def __arrow_c_device_array__(self, requested_schema=None, **_):
        array, schema = lib.bowstring_device_array_new(), lib.bowstring_schema_new()
        call("array_export", self._handle, array, schema)
        array, schema = (ctypes.cast(struct, c_void_p) for struct in (array, schema))
        return (
            _capsule_new(schema, b"arrow_schema", _free_schema),
            _capsule_new(array, b"arrow_device_array", _free_array),
        )


def from_nanoarrow(taken):
    """A handle on what nanoarrow holds, through the capsules that it hands out."""
    schema, array = taken.__arrow_c_device_array__()
    array_at = bs.ArrowDeviceArray.from_address(_pointer_of(array, b"arrow_device_array"))
    schema_at = bs.ArrowSchema.from_address(_pointer_of(schema, b"arrow_schema"))
    handle = out("array_import", byref(array_at), byref(schema_at))
    assert not schema_at.release and not array_at.array.release
    return handle


def seen(array):
    """The addresses that nanoarrow shows: a node's own, its children's, then its dictionary's."""
    found = list(array.buffers)
    for child in array.children:
        found += seen(child)
    if array.dictionary is not None:
        found += seen(array.dictionary)
    return [address or None for address in found]


def check_column(name, offset):
    """Returns how many buffers had one address from hand to hand."""
    column = COLUMNS[name].slice(offset)
    first = nanoarrow.device.c_device_array(column)
    original = seen(first.array)
    handle = support.resolved(from_nanoarrow(first))
    del first
    infos = support.buffer_infos(handle)
    assert [info.data for info in infos] == original
    second = nanoarrow.device.c_device_array(Capsules(handle))
    support.release(handle)
    assert (second.device_type_id, second.device_id) == (1, -1)
    compared = 0
    for found, info in zip(seen(second.array), infos, strict=True):
        if info.size_bytes or info.role == bs.VALIDITY:
            assert found == info.data
            compared += found is not None
    if name in READS or (name in READS_WHOLE and offset == 0):
        assert na.Array(second.array).to_pylist() == column.to_pylist()
    again = pa.Array._import_from_c_device_capsule(*second.__arrow_c_device_array__())
    again.validate(full=True)
    assert again.equals(column) and again.type == column.type
    return compared


def test_every_column():
    columns = compared = 0
    for name in COLUMNS:
        for offset in (0, 5):
            try:
                compared += check_column(name, offset)
            except Exception as error:
                error.add_note(f"column {name}, offset {offset}")
                raise
            columns += 1
    support.figure("columns through nanoarrow", columns, 130)
    support.figure("their buffers with the same address", compared, 380)
    assert {*READS, *READS_WHOLE} <= set(COLUMNS)


# What nanoarrow builds by itself.
BUILT = {
    "int32": ([1, None, 3], na.int32()),
    "double": ([1.5, -2.0, None], na.float64()),
    "half": ([1.5, -2.0], na.float16()),
    "bool": ([True, None, False] * 5, na.bool_()),
    "text": (["a", None, "", "naïve ☂"], na.string()),
    "large text": (["a", None, "x" * 99], na.large_string()),
    "bytes": ([b"\0a", None], na.binary()),
    "nothing": ([], na.string()),
}


@pytest.mark.parametrize("name", BUILT)
def test_what_nanoarrow_builds(name):
    values, schema = BUILT[name]
    made = nanoarrow.device.c_device_array(na.c_array(values, schema))
    handle = from_nanoarrow(made)
    del made
    assert support.to_pyarrow(*support.exported(handle), pa.Array).to_pylist() == values
    taken = nanoarrow.device.c_device_array(Capsules(handle))
    support.release(handle)
    assert na.Array(taken.array).to_pylist() == values


def test_by_pointers():
    """nanoarrow's own empty structs are filled, and a struct that it filled is taken, without a capsule."""
    data = pa.record_batch({"a": [1, None, 3], "b": ["x", "y", None]})
    handle = support.imported(data)
    schema = CSchema.allocate()
    array = CArray.allocate(schema)
    at = bs.ArrowArray.from_address(array._addr()), bs.ArrowSchema.from_address(schema._addr())
    call("array_export_host", handle, None, byref(at[0]), byref(at[1]))
    support.release(handle)
    assert array.is_valid() and array.length == 3 and array.child(1).null_count == 1
    taken = out("array_import_host", byref(at[0]), byref(at[1]))
    assert not array.is_valid()
    assert support.to_pyarrow(*support.exported(taken)).equals(data)
    support.release(taken)
