"""Faults reported in public, about who frees what and when: release, move, relocation, events, threads, process exit.

Names start with the number of the report, as in test_public_cases.py.
"""

import ctypes
import subprocess
import sys
import threading
from ctypes import byref, c_int64, c_void_p, sizeof
from pathlib import Path

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
from bowstring_ctypes import INVALID_DATA, RELEASED, SYNC_REQUIRED, UNSUPPORTED, BowstringError, call, lib, out
from raw import Node, Raw, i8, i32, in_child
from test_public_cases import ints, struct_of, text

CUDA = 2
TREE, PLACE = 9, 100


def struct_with_dictionary(owners, placement=None, extra=1):
    """struct<a: int32, b: dictionary<int8, utf8>>; the owners of its buffers are `extra` to `extra` + 3."""
    kind = support.type_from(pa.struct([("a", pa.int32()), ("b", pa.dictionary(pa.int8(), pa.utf8()))]))
    nodes = (bs.Node * 4)((3, 0, 0, 1), (3, 0, 0, 2), (3, 0, 0, 2), (2, 0, 0, 3))
    data = [None, None, i32(1, 2, 3), None, i8(0, 1, 0), None, i32(0, 1, 2), b"xy"]
    keys = [0, 0, extra, 0, extra + 1, 0, extra + 2, extra + 3]
    buffers = (bs.OwnedBuffer * 8)(*[owners.buffer(key, one) for key, one in zip(keys, data)])
    array, schema = support.rebuilt(kind, nodes, buffers, placement)
    lib.bowstring_type_release(kind)
    return array, schema


def placed(owners, device=(1, -1), event=None):
    """A placement with an owner for the whole tree, and perhaps an event."""
    placement = bs.Placement(owner=PLACE, release_owner=owners.callback, event=event)
    placement.device.type, placement.device.id = device
    if event:
        placement.event_ctx, placement.destroy_event = 77, owners.destroy
    return placement


def free(array, schema):
    lib.bowstring_device_array_release(byref(array))
    lib.bowstring_schema_release(byref(schema))


def test_a3_each_owner_once_and_the_tree_s_last():
    owners = support.Owners()
    array, schema = struct_with_dictionary(owners, placed(owners))
    for _ in range(2):
        free(array, schema)
        assert sorted(owners.released) == [1, 2, 3, 4, PLACE] and owners.released[-1] == PLACE
    assert not array.array.release and not schema.release and support.all_gone()


@pytest.mark.parametrize("child_first", [True, False])
def test_a3_a_child_that_was_moved_out(child_first):
    owners = support.Owners()
    array, schema = struct_with_dictionary(owners, placed(owners))
    moved = bs.ArrowArray()
    lib.bowstring_host_array_move(array.array.children[0], byref(moved))
    assert not array.array.children[0].contents.release and moved.release
    order = [lambda: lib.bowstring_host_array_release(byref(moved)), lambda: free(array, schema)]
    for step in order if child_first else order[::-1]:
        assert PLACE not in owners.released
        if moved.release:
            assert ctypes.string_at(moved.buffers[1], 12) == i32(1, 2, 3)
        step()
    assert sorted(owners.released) == [1, 2, 3, 4, PLACE] and owners.released[-1] == PLACE


def test_a3_a_moved_child_keeps_only_its_own():
    owners = support.Owners()
    array, schema = struct_with_dictionary(owners)
    moved = bs.ArrowArray()
    lib.bowstring_host_array_move(array.array.children[1], byref(moved))
    free(array, schema)
    assert owners.released == [1]
    assert ctypes.string_at(moved.dictionary.contents.buffers[2], 2) == b"xy"
    lib.bowstring_host_array_release(byref(moved))
    assert sorted(owners.released) == [1, 2, 3, 4]


def test_a3_a_child_s_own_callback_is_called():
    owners = support.Owners()
    array, schema = struct_with_dictionary(owners)
    calls = []
    child = array.array.children[1].contents
    original = ctypes.CFUNCTYPE(None, ctypes.POINTER(bs.ArrowArray))(child.release)

    @ctypes.CFUNCTYPE(None, ctypes.POINTER(bs.ArrowArray))
    def wrapper(node):
        calls.append(sorted(owners.released))
        original(node)

    child.release = ctypes.cast(wrapper, c_void_p)
    free(array, schema)
    assert len(calls) == 1 and sorted(owners.released) == [1, 2, 3, 4]


def test_a_child_moved_out_of_what_we_passed_on():
    """libcudf calls a NULL release here."""
    owners = support.Owners()
    array, schema = struct_with_dictionary(owners)
    handle = out("array_import", byref(array), byref(schema))
    array, schema = support.exported(handle)
    support.release(handle)
    moved = bs.ArrowArray()
    lib.bowstring_host_array_move(array.array.children[0], byref(moved))
    free(array, schema)
    assert ctypes.string_at(moved.buffers[1], 12) == i32(1, 2, 3)
    lib.bowstring_host_array_release(byref(moved))
    assert sorted(owners.released) == [1, 2, 3, 4] and support.all_gone()


def test_a4_out_parameters_are_never_read():
    """What a failed call leaves behind in a struct full of 0xAA is a released struct."""
    handle = support.imported(pa.array([1, 2]))
    kind = support.type_of(handle)
    array, schema = support.exported(handle)
    assert schema.private_data != 0xAAAAAAAAAAAAAAAA and not schema.dictionary and not array.array.dictionary
    free(array, schema)
    host = bs.ArrowArray()
    for struct in (array, schema, host):
        ctypes.memset(byref(struct), 0xAA, sizeof(struct))
    with pytest.raises(BowstringError):
        call("array_export", None, byref(array), byref(schema))
    with pytest.raises(BowstringError):
        call("array_export_host", handle, byref(bs.Sync(17)), byref(host), None)
    assert not array.array.release and not schema.release and not host.release
    ctypes.memset(byref(array), 0xAA, sizeof(array))
    with pytest.raises(BowstringError):
        call("device_array_from_buffers", kind, None, 0, None, 0, None, byref(array))
    assert not array.array.release
    support.release(handle)
    lib.bowstring_type_release(kind)


RAW = {
    "schema": bs.ArrowSchema,
    "host_array": bs.ArrowArray,
    "device_array": bs.ArrowDeviceArray,
    "host_stream": bs.ArrowArrayStream,
    "device_stream": bs.ArrowDeviceArrayStream,
}


class Live:
    """A live struct of each kind, which counts its releases."""

    def __init__(self, name):
        self.count, self.kind = 0, RAW[name]
        self.release = getattr(lib, f"bowstring_{name}_release")
        self.is_released = getattr(lib, f"bowstring_{name}_is_released")
        self.move = getattr(lib, f"bowstring_{name}_move")
        self._callback = ctypes.CFUNCTYPE(None, c_void_p)(self._released)
        self.struct = self.kind()
        self.inner(self.struct).release = ctypes.cast(self._callback, c_void_p).value
        self.inner(self.struct).private_data = 42

    def inner(self, struct):
        return struct.array if self.kind is bs.ArrowDeviceArray else struct

    def _released(self, at):
        self.count += 1
        # The streams' release is the fourth pointer; of the others it is the last but one.
        self.inner(self.kind.from_address(at)).release = None


@pytest.mark.parametrize("name", RAW)
def test_a10_moves(name):
    live, target = Live(name), RAW[name]()
    ctypes.memset(byref(target), 0xAA, sizeof(target))
    live.move(byref(live.struct), byref(target))
    assert live.is_released(byref(live.struct)) and not live.is_released(byref(target))
    assert live.inner(target).private_data == 42
    live.move(byref(target), byref(target))
    live.move(None, byref(target))
    live.move(byref(target), None)
    live.release(byref(live.struct))
    assert live.count == 0 and not live.is_released(byref(target))
    other = RAW[name]()
    live.move(byref(live.struct), byref(other))
    assert live.is_released(byref(other))
    for _ in range(2):
        live.release(byref(target))
        assert live.count == 1 and live.is_released(byref(target))
    live.release(None)
    assert live.is_released(None)


@pytest.mark.parametrize("name", RAW)
def test_a10_heap_structs(name):
    new, free_it = getattr(lib, f"bowstring_{name}_new"), getattr(lib, f"bowstring_{name}_free")
    live, made = Live(name), new()
    assert live.is_released(made)
    live.move(byref(live.struct), made)
    free_it(made)
    assert live.count == 1
    free_it(new())
    free_it(None)


def relocated(struct):
    """The bytes at another address; those at the old one are overwritten."""
    copy = type(struct).from_buffer_copy(struct)
    ctypes.memset(byref(struct), 0xFF, sizeof(struct))
    return copy


def test_a10_relocation():
    owners = support.Owners()
    array, schema = map(relocated, struct_with_dictionary(owners, placed(owners, (CUDA, 0), 0x1234)))
    handle = out("array_import", byref(array), byref(schema))
    array, schema = map(relocated, support.exported_anywhere(handle))
    support.release(handle)
    free(array, schema)
    assert sorted(owners.released) == [1, 2, 3, 4, PLACE] and len(owners.destroyed) == 1


def test_a11_a_schema_is_not_leaked_nor_an_array_after_a_failure():
    for broken in (Node("?", 1, buffers=[None, i32(1)]), Node("i", 1, buffers=[None])):
        vector = Raw(broken)
        with pytest.raises(BowstringError):
            out("array_import", byref(vector.device_array), byref(vector.schema))
        assert vector.is_untouched()
        vector.release()


def test_a15_the_event_has_a_place_of_its_own():
    owners = support.Owners()
    array, schema = struct_with_dictionary(owners, placed(owners, (CUDA, 3), 0x1234))
    cell, start = array.sync_event, ctypes.addressof(array)
    assert not start <= cell < start + sizeof(array)
    moved = relocated(array)
    assert moved.sync_event == cell and c_void_p.from_address(cell).value == 0x1234
    assert (moved.device_type, moved.device_id, list(moved.reserved)) == (CUDA, 3, [0, 0, 0])
    handle = out("array_import", byref(moved), byref(schema))
    device, event = bs.Device(), c_void_p()
    call("array_device", handle, byref(device), byref(event))
    assert (device.type, device.id, event.value) == (CUDA, 3, cell)
    buffer = out("array_buffer", handle, 2)
    support.release(handle)
    # The buffer's event lives as long as the buffer.
    memory = bs.BufferMemory()
    call("buffer_info", buffer, byref(memory))
    assert memory.sync_event == cell and c_void_p.from_address(cell).value == 0x1234
    assert owners.destroyed == []
    lib.bowstring_buffer_release(buffer)
    (destroyed,) = owners.destroyed
    assert destroyed[:2] == (77, 0x1234) and sorted(destroyed[2]) == [1, 2, 3, 4, PLACE]
    assert support.all_gone()


@pytest.mark.parametrize("device,event,rule", [
    ((1, 0), None, None), ((1, -1), None, None), ((1, 1), None, "D3"), ((1, -1), 0x10, "D4"), ((9, 0), 0x10, "D4"),
    ((0, 0), None, "D2"), ((5, 0), None, "D2"), ((6, 0), None, "D2"), ((-3, 0), None, "D2"), ((99, 7), None, None),
    ((8, 0), None, None), ((12, 0), 0x10, None), ((14, 0), 0x10, None), ((99, 0), 0x10, None),
])
def test_devices(device, event, rule):
    """Events of these devices are no handles, and nobody looks into them."""
    def check():
        vector = Raw(ints(1, 5), device, event)
        try:
            handle = out("array_import", byref(vector.device_array), byref(vector.schema))
        except BowstringError as error:
            assert (error.status, error.rule) == (INVALID_DATA, rule), error
            assert vector.is_untouched()
        else:
            assert rule is None
            array, schema = support.exported_anywhere(handle)
            assert (array.device_type, array.device_id) == (device[0], -1 if device[0] == 1 else device[1])
            assert array.sync_event == event and support.text_of_array(handle)
            support.release(handle)
            free(array, schema)
        vector.release()

    in_child(check)


@pytest.mark.parametrize("node", [
    text("u", 3, 0x10, 0x20),
    struct_of(3, text("u", 3, 0x10, 0x20)),
    Node("i", 3, -1, buffers=[0x10, 0x20]),
    Node("c", 3, 0, 1, [None, 0x10], dictionary=text("u", 3, 0x20, 0x30)),
    Node("vu", 3, -1, 2, [0x10, 0x20, 0x30, 0x40]),
    Node("+l", 3, buffers=[None, 0x10], children=[text("U", 4, 0x20, 0x30)]),
    Node("+vl", 3, buffers=[None, 0x10, 0x20], children=[text("U", 4, 0x20, 0x30)]),
], ids=lambda node: node.format)
@pytest.mark.parametrize("event", [False, True])
def test_a16_device_memory_is_never_read(node, event):
    def check():
        # The event's cell is in CPU memory; the event in it means nothing here.
        cell = c_void_p(0x1234)
        vector = Raw(node, (CUDA, 0), ctypes.addressof(cell) if event else None)
        addresses = support.addresses(vector.device_array.array)
        handle = out("array_import", byref(vector.device_array), byref(vector.schema))
        support.node_infos(handle), support.buffer_infos(handle), support.text_of_array(handle)
        assert [info.data for info in support.buffer_infos(handle)] == addresses
        refusal = SYNC_REQUIRED if event else bs.DEVICE_UNAVAILABLE
        if node.format in ("u", "vu", "+s", "c", "+l"):
            with pytest.raises(BowstringError) as caught:
                out("array_resolve_sizes", handle, None)
            assert caught.value.status == refusal
        if node.nulls < 0:
            with pytest.raises(BowstringError) as caught:
                call("array_null_count", handle, None, byref(c_int64()))
            assert caught.value.status == refusal
        with pytest.raises(BowstringError) as caught:
            call("array_export_host", handle, None, byref(bs.ArrowArray()), None)
        assert caught.value.status == refusal
        part = out("array_slice", handle, 1, 2)
        array, schema = support.exported_anywhere(part)
        assert support.addresses(array.array) == addresses
        assert array.array.null_count == (-1 if node.nulls < 0 else 0)
        kind = support.type_of(part)
        nodes, entries = support.to_buffers(part, CUDA)
        for entry in entries:
            buffer = c_void_p()
            if entry.data and entry.size_bytes > 0:
                call("buffer_wrap", byref(entry), byref(bs.Placement(device=bs.Device(CUDA, 0))), byref(buffer))
                with pytest.raises(BowstringError) as caught:
                    call("buffer_read", buffer, 0, ctypes.create_string_buffer(1), 1, None)
                assert caught.value.status == bs.DEVICE_UNAVAILABLE
                lib.bowstring_buffer_release(buffer)
        support.let_go(entries)
        lib.bowstring_type_release(kind)
        support.release(handle, part)
        free(array, schema)
        vector.release()
        assert support.all_gone()

    in_child(check)


def test_a16_sizes_come_from_a_reader():
    """The reader that the caller brings is asked only for single offsets, and its error comes back."""
    def check(error):
        asked, memory = [], {0x10 + 4 * i: value for i, value in enumerate((0, 2, 5, 9))}

        @bs.READ
        def read(_, to, at, n):
            asked.append((at, n))
            ctypes.memmove(to, i32(memory[at]), 4)
            return error

        event = ctypes.addressof(cell := c_void_p(0x1234))
        vector = Raw(struct_of(2, text("u", 3, 0x10, 0x20), offset=1), (CUDA, 0), event)
        handle = out("array_import", byref(vector.device_array), byref(vector.schema))
        if error:
            with pytest.raises(BowstringError) as caught:
                out("array_resolve_sizes_with", handle, read, None)
            assert (caught.value.status, caught.value.native_code) == (bs.CALLBACK_ERROR, error)
        else:
            known = out("array_resolve_sizes_with", handle, read, None)
            assert support.buffer_infos(known)[3].size_bytes == 9 and asked == [(0x1C, 4)]
            support.release(known)
        support.release(handle)
        vector.release()
        assert cell.value == 0x1234

    in_child(check, 0)
    in_child(check, 5)


def test_a23_made_on_one_thread_released_on_another():
    owners, made = support.Owners(), []
    thread = threading.Thread(target=lambda: made.append(struct_with_dictionary(owners)))
    thread.start()
    thread.join()
    thread = threading.Thread(target=lambda: free(*made[0]))
    thread.start()
    thread.join()
    assert sorted(owners.released) == [1, 2, 3, 4]


def test_a23_many_threads_on_one_handle():
    handle = support.imported(pa.array([{"a": i, "b": str(i)} for i in range(100)]))
    failures, rounds = [], 300

    def work():
        try:
            for i in range(rounds):
                lib.bowstring_array_retain(handle)
                part = out("array_slice", handle, i % 50, 40)
                array, schema = support.exported(part)
                buffer = out("array_buffer", part, 2)
                support.release(part, handle)
                free(array, schema)
                lib.bowstring_buffer_release(buffer)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    support.release(handle)


def test_a23_an_owner_that_frees_another_array():
    inner = support.Owners()
    first = struct_with_dictionary(inner)
    owners = support.Owners()
    owners.callback = bs.RELEASE(lambda owner: (owners.released.append(owner), free(*first)))
    free(*struct_with_dictionary(owners))
    assert sorted(inner.released) == sorted(owners.released) == [1, 2, 3, 4]


def test_a23_released_at_exit():
    script = """
import atexit, pyarrow, support
from ctypes import byref
from bowstring_ctypes import lib, live_counts
handle = support.imported(pyarrow.array(["x"]))
array, schema = support.exported(handle)
def end():
    lib.bowstring_device_array_release(byref(array))
    lib.bowstring_schema_release(byref(schema))
    support.release(handle)
    print(live_counts())
atexit.register(end)
"""
    run = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parent, capture_output=True, text=True)
    assert (run.returncode, run.stdout.strip()) == (0, "{}"), run.stderr


@pytest.mark.parametrize("released", [True, False])
def test_fork(released):
    owners = support.Owners()
    array, schema = struct_with_dictionary(owners)
    in_child(lambda: free(array, schema) if released else None)
    assert owners.released == []
    free(array, schema)
    assert sorted(owners.released) == [1, 2, 3, 4]


def nested(depth):
    """The schema of lists in lists, `depth` nodes deep, without recursion."""
    made = [bs.ArrowSchema(flags=2, release=1) for _ in range(depth)]
    formats = ctypes.create_string_buffer(b"+l\0i")
    pointers = [(ctypes.POINTER(bs.ArrowSchema) * 1)() for _ in range(depth)]
    for i, schema in enumerate(made):
        is_leaf = i + 1 == depth
        schema.format = ctypes.addressof(formats) + (3 if is_leaf else 0)
        if not is_leaf:
            pointers[i][0] = ctypes.pointer(made[i + 1])
            schema.n_children = 1
            schema.children = ctypes.cast(pointers[i], ctypes.POINTER(ctypes.POINTER(bs.ArrowSchema)))
    return made, (formats, pointers)


def test_schemas_that_are_too_deep():
    for depth, is_fine in ((64, True), (65, False), (10_000, False)):
        made, _keep = nested(depth)
        if is_fine:
            lib.bowstring_type_release(out("type_copy_from", byref(made[0])))
            continue
        with pytest.raises(BowstringError) as caught:
            out("type_copy_from", byref(made[0]))
        assert caught.value.status == INVALID_DATA and "64" in caught.value.message


def test_released_structs():
    schema, array, kind = bs.ArrowSchema(), bs.ArrowDeviceArray(), out("type_parse", b"int32")
    for name, arguments in (
        ("type_import", [byref(schema)]),
        ("type_copy_from", [byref(schema)]),
        ("array_import_typed", [byref(array), kind]),
        ("array_import_host_typed", [byref(array.array), kind]),
        ("array_import_borrowed", [byref(array), kind, None, bs.RELEASE()]),
    ):
        with pytest.raises(BowstringError) as caught:
            out(name, *arguments)
        assert caught.value.status == RELEASED
    lib.bowstring_type_release(kind)
