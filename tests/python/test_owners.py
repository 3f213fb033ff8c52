"""Building from parts and letting go of them: what is refused takes nothing, what is taken is let go once, in order."""

import ctypes
from ctypes import byref, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
from bowstring_ctypes import INVALID_ARGUMENT, INVALID_DATA, SYNC_REQUIRED, UNSUPPORTED, BowstringError
from bowstring_ctypes import call, lib, live_counts, out
from raw import Node, Raw, i32, i64, in_child, u8
from test_public_cases import inline, outline

EVENT, OWNER = 0x1234, 100


def refusal(function, *arguments):
    with pytest.raises(BowstringError) as caught:
        call(function, *arguments)
    return caught.value


class Parts:
    """A type, nodes and buffers; buffer k has owner k + 1."""

    def __init__(self, kind, nodes, data, sizes=None, placement=None):
        self.owners = support.Owners()
        self.kind = out("type_parse", kind)
        self.nodes = (bs.Node * len(nodes))(*nodes)
        self.buffers = (bs.OwnedBuffer * len(data))(*[self.owners.buffer(k + 1, one) for k, one in enumerate(data)])
        for k, size in (sizes or {}).items():
            self.buffers[k].size_bytes = size
        self.placement = placement or bs.Placement()
        self.placement.owner, self.placement.release_owner = OWNER, self.owners.callback
        if self.placement.event:
            self.placement.destroy_event = self.owners.destroy

    def arguments(self, array):
        return (
            self.kind, self.nodes, len(self.nodes), self.buffers, len(self.buffers), byref(self.placement), byref(array)
        )

    def build(self):
        array = bs.ArrowDeviceArray()
        call("device_array_from_buffers", *self.arguments(array))
        lib.bowstring_type_release(self.kind)
        return array

    def check_untouched(self):
        """Every owner is still the caller's, who lets each go once."""
        assert self.owners.released == [] and self.owners.destroyed == []
        assert self.placement.owner == OWNER and self.placement.release_owner
        assert all(bool(one.owner) == bool(one.release_owner) == bool(one.data) for one in self.buffers)
        lib.bowstring_type_release(self.kind)
        assert support.all_gone()


def on(device_type, event=None, **members):
    return bs.Placement(device=bs.Device(device_type, 0), event=event, **members)


LONG = b"thirteen byte"
REFUSED = {
    "too few nodes": (INVALID_ARGUMENT, "", b"list<int32>", [(1, 0, 0, 2)], [None, i32(0, 0)]),
    "too few buffers": (INVALID_ARGUMENT, "", b"int32", [(1, 0, 0, 2)], [None]),
    "too many buffers": (INVALID_ARGUMENT, "", b"int32", [(1, 0, 0, 2)], [None, i32(1), i32(1)]),
    "a wrong number of buffers": (INVALID_DATA, "A3", b"int32", [(1, 0, 0, 1)], [i32(1)]),
    "a negative length": (INVALID_DATA, "A1", b"int32", [(-1, 0, 0, 2)], [None, i32(1)]),
    "more nulls than values": (INVALID_DATA, "A2", b"int32", [(1, 2, 0, 2)], [u8(0), i32(1)]),
    "nulls without a bitmap": (INVALID_DATA, "A5", b"int32", [(1, 1, 0, 2)], [None, i32(1)]),
    "values that are NULL": (INVALID_DATA, "A5", b"int32", [(1, 0, 0, 2)], [None, None]),
    "bytes at NULL": (INVALID_DATA, "A5", b"int32", [(0, 0, 0, 2)], [None, None], {1: 4}),
    "too few values": (INVALID_DATA, "A4", b"int32", [(2, 0, 1, 2)], [None, i32(1, 2)]),
    "a bitmap that is too short": (INVALID_DATA, "A4", b"bool", [(9, 0, 0, 2)], [None, u8(1)]),
    "a validity bitmap that is too short": (INVALID_DATA, "A4", b"int32", [(9, 1, 0, 2)], [u8(1), i32(*range(9))]),
    "too few offsets": (INVALID_DATA, "A4", b"utf8", [(2, 0, 0, 3)], [None, i32(0, 1), b"ab"]),
    "data that ends before the offsets": (INVALID_DATA, "A4", b"utf8", [(2, 0, 0, 3)], [None, i32(0, 1, 3), b"ab"]),
    "offsets that end before 0": (INVALID_DATA, "B1", b"utf8", [(1, 0, 0, 3)], [None, i32(0, -1), b"ab"]),
    "A1e offsets beyond the child": (
        INVALID_DATA, "B1", b"list<int8>", [(2, 0, 0, 2), (5, 0, 0, 2)], [None, i32(3, 5, 8), None, bytes(5)]
    ),
    "a child that is too short": (
        INVALID_DATA, "B4", b"struct<a: int32>", [(2, 0, 1, 1), (2, 0, 0, 2)], [None, None, i32(1, 2)]
    ),
    "a size below -1": (INVALID_DATA, "A4", b"int32", [(1, 0, 0, 2)], [None, i32(1)], {1: -2}),
    "views whose sizes nobody knows": (
        INVALID_ARGUMENT, "B2", b"utf8_view", [(1, 0, 0, 4)], [None, outline(13, LONG[:4], 0, 0), LONG, None], {2: -1}
    ),
    "views whose sizes are too large": (
        INVALID_DATA, "B2", b"utf8_view", [(1, 0, 0, 4)], [None, outline(13, LONG[:4], 0, 0), LONG, i64(14)]
    ),
    "views whose sizes are negative": (
        INVALID_DATA, "B2", b"utf8_view", [(1, 0, 0, 4)], [None, outline(13, LONG[:4], 0, 0), LONG, i64(-1)], {2: -1}
    ),
    "an event on the CPU": (
        INVALID_ARGUMENT, "", b"int32", [(1, 0, 0, 2)], [None, i32(1)], None, lambda: on(1, EVENT)
    ),
    "an event that nobody can record": (
        UNSUPPORTED, "", b"int32", [(1, 0, 0, 2)], [None, i32(1)], None,
        lambda: on(14, record_on=bs.Sync(bs.SYNC_LIBRARY)),
    ),
    "a device that is none": (INVALID_ARGUMENT, "", b"int32", [(1, 0, 0, 2)], [None, i32(1)], None, lambda: on(5)),
    "a placement that is too small": (
        INVALID_ARGUMENT, "", b"int32", [(1, 0, 0, 2)], [None, i32(1)], None, lambda: small(bs.Placement())
    ),
}


def small(placement):
    placement.struct_size = 8
    return placement


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_takes_nothing(name):
    status, rule, kind, nodes, data, *more = REFUSED[name]
    parts = Parts(kind, nodes, data, *more[:1], *[make() for make in more[1:]])
    array = bs.ArrowDeviceArray()
    ctypes.memset(byref(array), 0xAA, ctypes.sizeof(array))
    error = refusal("device_array_from_buffers", *parts.arguments(array))
    assert (error.status, error.rule) == (status, rule), error
    assert "expected" in error.message and "found" in error.message
    assert not array.array.release
    parts.check_untouched()


def test_the_event_goes_after_the_owners():
    parts = Parts(b"int32", [(1, 0, 0, 2)], [None, i32(1)], None, on(2, EVENT))
    array = parts.build()
    assert parts.owners.released == []
    lib.bowstring_device_array_release(byref(array))
    assert parts.owners.released == [2, OWNER]
    assert parts.owners.destroyed == [(None, EVENT, [2, OWNER])]


def test_null_counts_are_counted_where_memory_can_be_read():
    for placement, expected in ((None, 2), (on(2), -1)):
        array = Parts(b"int32", [(3, -1, 1, 2)], [u8(0x03), i32(0, 1, 2, 3)], None, placement).build()
        assert array.array.null_count == expected
        lib.bowstring_device_array_release(byref(array))


def test_a_bitmap_that_is_dropped_leaves_no_size():
    """The offset of a struct at the root is pushed down where it has no nulls, and its bitmap does not go out."""
    parts = Parts(b"struct<a: int32>", [(1, 0, 1, 1), (2, 0, 0, 2)], [u8(3), None, i32(1, 2)])
    kind = c_void_p(lib.bowstring_type_retain(parts.kind))
    array = parts.build()
    assert array.array.buffers[0] is None and parts.owners.released == []
    handle = out("array_import_typed", byref(array), kind)
    nodes, entries = support.to_buffers(handle)
    support.release(handle)
    try:
        assert (entries[0].data, entries[0].size_bytes) == (None, 0)
        array, schema = support.rebuilt(kind, nodes, entries)
    finally:
        support.let_go(entries)
        lib.bowstring_type_release(kind)
    assert support.to_pyarrow(array, schema, pa.Array).to_pylist() == [{"a": 2}]
    assert sorted(parts.owners.released) == [1, 3, OWNER]


def test_sizes_of_variadic_buffers_are_built():
    views = outline(13, LONG[:4], 1, 0) + inline(b"x")
    array = Parts(b"utf8_view", [(2, 0, 0, 5)], [None, views, b"", LONG, None]).build()
    assert ctypes.string_at(array.array.buffers[4], 16) == i64(0, 13)
    lib.bowstring_device_array_release(byref(array))


def test_with_owner_goes_last_and_is_kept_by_everything():
    parts = Parts(b"int32", [(1, 0, 0, 2)], [None, i32(7)])
    array, schema = parts.build(), bs.ArrowSchema()
    inner = out("array_import_typed", byref(array), kind := out("type_parse", b"int32"))
    lib.bowstring_type_release(kind)
    outer = out("array_with_owner", inner, 55, parts.owners.callback)
    buffer = out("array_buffer", outer, 1)
    call("array_export", outer, byref(array), byref(schema))
    support.release(inner, outer)
    lib.bowstring_device_array_release(byref(array))
    lib.bowstring_schema_release(byref(schema))
    assert parts.owners.released == []
    value = ctypes.c_int32()
    call("buffer_read", buffer, 0, byref(value), 4, None)
    lib.bowstring_buffer_release(buffer)
    assert value.value == 7 and parts.owners.released == [2, OWNER, 55]


@pytest.mark.parametrize("has_owner", [True, False])
def test_borrowed_arrays_are_not_released(has_owner):
    def check():
        owners, vector = support.Owners(), Raw(Node("i", 2, buffers=[None, i32(1, 2)]))
        kind = out("type_copy_from", byref(vector.schema))
        owner = (OWNER, owners.callback) if has_owner else (None, bs.RELEASE())
        handle = out("array_import_borrowed", byref(vector.device_array), kind, *owner)
        buffer = out("array_buffer", handle, 1)
        result = support.to_pyarrow(*support.exported(handle), pa.Array)
        lib.bowstring_type_release(kind)
        support.release(handle)
        assert result.to_pylist() == [1, 2]
        del result
        assert owners.released == []
        lib.bowstring_buffer_release(buffer)
        assert owners.released == [OWNER] * has_owner
        assert vector.is_untouched() and support.all_gone()
        vector.release()

    in_child(check)


def test_handing_back_and_forth_does_not_grow():
    """An untouched export of ours is recognised: no layer is added, and buffers keep their own owners."""
    parts = Parts(b"struct<a: int32, b: utf8>", [(1, 0, 0, 1), (1, 0, 0, 2), (1, 0, 0, 3)],
                  [None, None, i32(7), None, i32(0, 1), b"x"])
    array, schema = parts.build(), bs.ArrowSchema()
    kind = out("type_parse", b"struct<a: int32, b: utf8>")
    alive = []
    for _ in range(50):
        handle = out("array_import_typed", byref(array), kind)
        alive.append(live_counts())
        call("array_export", handle, byref(array), byref(schema))
        support.release(handle)
        lib.bowstring_schema_release(byref(schema))
    assert alive[1] == alive[-1], alive
    handle = out("array_import_typed", byref(array), kind)
    buffer = out("array_buffer", handle, 2)
    support.release(handle)
    lib.bowstring_type_release(kind)
    assert sorted(parts.owners.released) == [5, 6, OWNER]
    lib.bowstring_buffer_release(buffer)
    assert sorted(parts.owners.released) == [3, 5, 6, OWNER] and support.all_gone()


def test_buffers():
    data = c_void_p()
    whole = out_with_data("buffer_allocate", bs.Device(), 100, None, data)
    assert data.value % 64 == 0 and ctypes.string_at(data.value, 128) == bytes(128)
    ctypes.memmove(data.value, bytes(range(100)), 100)
    part = out("buffer_slice", whole, 10, 20)
    lib.bowstring_buffer_release(whole)
    memory, copy = bs.BufferMemory(), ctypes.create_string_buffer(5)
    call("buffer_info", part, byref(memory))
    assert (memory.data, memory.size_bytes, memory.device.type) == (data.value + 10, 20, 1)
    call("buffer_read", part, 15, copy, 5, None)
    assert copy.raw == bytes(range(25, 30))
    for offset, length in ((0, 21), (20, 1), (-1, 1), (0, -1), (2**62, 2**62)):
        assert refusal("buffer_slice", part, offset, length, byref(c_void_p())).status == INVALID_ARGUMENT
        assert refusal("buffer_read", part, offset, copy, length, None).status == INVALID_ARGUMENT
    lib.bowstring_buffer_release(part)
    assert support.all_gone()


def out_with_data(name, *arguments):
    handle = c_void_p()
    call(name, *arguments[:-1], byref(handle), byref(arguments[-1]))
    return handle


def test_buffers_of_somebody_else():
    owners = support.Owners()
    memory = owners.buffer(1, b"abc")
    placement = on(2, EVENT, owner=OWNER)
    placement.release_owner, placement.destroy_event = owners.callback, owners.destroy
    buffer = out("buffer_wrap", byref(memory), byref(placement))
    assert not memory.owner and not memory.release_owner and not placement.owner and not placement.destroy_event
    info = bs.BufferMemory()
    call("buffer_info", buffer, byref(info))
    assert c_void_p.from_address(info.sync_event).value == EVENT
    error = refusal("buffer_read", buffer, 0, ctypes.create_string_buffer(1), 1, None)
    assert error.status in (SYNC_REQUIRED, UNSUPPORTED)
    again = c_void_p(lib.bowstring_buffer_retain(buffer))
    lib.bowstring_buffer_release(buffer)
    assert owners.released == []
    call("buffer_into_owned", byref(again), byref(memory))
    support.let_go([memory])
    assert owners.released == [1, OWNER] and owners.destroyed == [(None, EVENT, [1, OWNER])]


def test_figures():
    support.figure("parts that are refused", len(REFUSED), 25)
