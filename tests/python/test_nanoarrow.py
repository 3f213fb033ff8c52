"""Arrays handed between bowstring and nanoarrow's Python package, by capsules and by pointers.

nanoarrow is in the middle: what pyarrow made goes to nanoarrow, to bowstring, to nanoarrow again and back to pyarrow.
"""

import ctypes
from ctypes import byref, c_void_p

import nanoarrow as na
import nanoarrow.device
import pyarrow as pa
import pytest
from nanoarrow.c_array import CArray
from nanoarrow.c_schema import CSchema

import all_types
import bowstring_ctypes as bs
import support
from bowstring_ctypes import call, out
from capsules import ARRAY, DEVICE_ARRAY, SCHEMA, DeviceProducer, HostProducer, SchemaProducer, struct_in, taken

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


def from_nanoarrow(made):
    """A handle on what nanoarrow holds, through the capsules that it hands out."""
    return taken(made.__arrow_c_device_array__(), DEVICE_ARRAY)


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
    second = nanoarrow.device.c_device_array(DeviceProducer(handle))
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
    again = nanoarrow.device.c_device_array(DeviceProducer(handle))
    support.release(handle)
    assert na.Array(again.array).to_pylist() == values


def test_host_arrays_and_schemas():
    """The protocol of arrays in CPU memory, and of types alone."""
    done = 0
    for name, column in COLUMNS.items():
        handle = taken(na.c_array(column).__arrow_c_array__(), ARRAY)
        found = na.c_array(HostProducer(handle))
        assert found.length == len(column) and found.null_count == column.null_count
        again = taken(found.__arrow_c_array__(), ARRAY)
        assert support.to_pyarrow(*support.exported(again), pa.Array).equals(column)
        # What nanoarrow copies of a schema has everything of it.
        kind = support.type_of(handle)
        capsule = na.c_schema(SchemaProducer(kind)).__arrow_c_schema__()
        copy = out("type_import", byref(struct_in(capsule, SCHEMA)))
        assert bs.lib.bowstring_type_equals(kind, copy, 0)
        for each in (kind, copy):
            bs.lib.bowstring_type_release(each)
        support.release(handle, again)
        del found
        done += 1
    support.figure("columns through nanoarrow's host capsules", done, 65)


def test_windows():
    """A window of ours, and what nanoarrow shows of it: values, children, and the view of a device array."""
    data = pa.array([{"a": i, "b": None if i % 3 == 1 else f"text {i}"} for i in range(10)])
    handle = support.imported(data)
    for offset, length in ((0, 10), (3, 4), (9, 1), (10, 0)):
        part = out("array_slice", handle, offset, length)
        made = nanoarrow.device.c_device_array(DeviceProducer(part))
        support.release(part)
        expected = data.slice(offset, length)
        assert made.array.length == length and made.array.offset == 0
        shown = [na.Array(child).to_pylist() for child in made.array.children]
        assert shown == [child.to_pylist() for child in expected.flatten()]
        view = made.view()
        assert view.length == length and [child.length for child in view.children] == [length, length]
        # A child that is moved out of nanoarrow's copy outlives the rest.
        again = from_nanoarrow(made)
        del made, view
        child = out("array_child", again, 1)
        support.release(again)
        assert pa.array(DeviceProducer(child)).to_pylist() == shown[1]
        support.release(child)
    support.release(handle)


# Addresses that nobody may follow.
FAR = 0x7F0000000000


def test_arrays_on_a_device():
    """nanoarrow hands on what it cannot read: type, id, addresses, counts, and the event."""
    owners = support.Owners()
    nodes = (bs.Node * 3)(bs.Node(4, 0, 0, 1), bs.Node(4, 2, 1, 2), bs.Node(4, -1, 0, 3))
    sizes = (None, FAR + 64), (20, FAR + 128), (1, FAR + 192), (20, FAR + 256), (9, FAR + 320)
    buffers = (bs.OwnedBuffer * 6)(bs.OwnedBuffer(None, 0, None, bs.RELEASE()))
    for i, (size, at) in enumerate(sizes):
        buffers[i + 1] = bs.OwnedBuffer(at, size or 1, i + 1, owners.callback)
    place = bs.Placement(device=bs.Device(2, 1), event=0x1234, destroy_event=owners.destroy)
    kind = out("type_parse", b"struct<a: int32, b: utf8>")
    array, schema = support.rebuilt(kind, nodes, buffers, place)
    event = array.sync_event
    assert ctypes.c_void_p.from_address(event).value == 0x1234
    handle = out("array_import_typed", byref(array), kind)
    bs.lib.bowstring_schema_release(byref(schema))

    made = nanoarrow.device.c_device_array(DeviceProducer(handle))
    support.release(handle)
    assert (made.device_type_id, made.device_id, made.array.length) == (2, 1, 4)
    assert seen(made.array) == [None] + [at for _, at in sizes]
    pair = made.__arrow_c_device_array__()
    shown = struct_in(pair[1], DEVICE_ARRAY)
    assert (shown.device_type, shown.device_id, shown.sync_event) == (2, 1, event)
    again = taken(pair, DEVICE_ARRAY)
    del pair, made
    assert owners.released == []
    found, sync = bs.Device(), c_void_p()
    call("array_device", again, byref(found), byref(sync))
    assert (found.type, found.id, sync.value) == (2, 1, event)
    assert [info.data for info in support.buffer_infos(again)] == [None] + [at for _, at in sizes]
    assert [info.null_count for info in support.node_infos(again)] == [0, 2, -1]
    support.release(again)
    assert sorted(owners.released) == [1, 2, 3, 4, 5] and len(owners.destroyed) == 1
    bs.lib.bowstring_type_release(kind)


def test_device_arrays_that_nobody_takes():
    """Each is let go once, by whoever holds it last."""
    handle = support.imported(pa.array(["x", None, "yz"]))
    made = nanoarrow.device.c_device_array(DeviceProducer(handle))
    copies = [made.__arrow_c_device_array__() for _ in range(3)]
    support.release(handle)
    del made
    assert bs.live_counts()["blocks"] > 0
    last = copies.pop()
    del copies
    assert bs.live_counts()["blocks"] > 0
    again = taken(last, DEVICE_ARRAY)
    assert pa.array(DeviceProducer(again)).to_pylist() == ["x", None, "yz"]
    support.release(again)
    assert support.all_gone()


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
    again = out("array_import_host", byref(at[0]), byref(at[1]))
    assert not array.is_valid()
    assert support.to_pyarrow(*support.exported(again)).equals(data)
    support.release(again)
