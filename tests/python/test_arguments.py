"""Every function that can fail, with each of its pointers NULL in turn: an error, nothing taken, no crash."""

import ctypes
from ctypes import byref, c_bool, c_char_p, c_int64, c_size_t, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
from bowstring_ctypes import INVALID_ARGUMENT, OK, lib, out


class Context:
    """Live things of every kind, all of which are let go in the end; what was taken is NULL by then."""

    def __init__(self):
        data = pa.array([{"a": [1, 2], "b": "x"}, {"a": None, "b": "y"}])
        self.device, self.schema = support.from_pyarrow(data)
        self.host, self.host_schema = bs.ArrowArray(), bs.ArrowSchema()
        data._export_to_c(ctypes.addressof(self.host), ctypes.addressof(self.host_schema))
        self.array = support.imported(data)
        self.encoded = support.imported(data.field("b").dictionary_encode())
        self.kind = support.type_of(self.array)
        self.encoded_kind = support.type_of(self.encoded)
        self.buffer = out("array_buffer", self.encoded, 1)
        self.nodes, self.parts = support.to_buffers(self.array)
        self.spare = (bs.OwnedBuffer * len(self.parts))()
        self.memory = bs.OwnedBuffer(ctypes.addressof(self.nodes), 8, None, bs.RELEASE())
        self.out_device, self.out_host, self.out_schema = bs.ArrowDeviceArray(), bs.ArrowArray(), bs.ArrowSchema()
        self.out_array, self.out_kind, self.out_buffer, self.borrowed = (c_void_p() for _ in range(4))
        self.owner = bs.RELEASE(lambda _: None)
        self.read = bs.READ(lambda ctx, to, at, n: ctypes.memmove(to, at, n) and 0)
        self.counts = [len(self.nodes), len(self.parts)]
        self.child = support.imported(pa.array([1, 2, 3]))
        self.child_kind = support.type_of(self.child)
        self.tensor, spare = out("array_to_tensor", self.child, None), out("array_to_tensor", self.child, None)
        self.legacy = out("tensor_to_legacy", byref(spare), bs.TensorOptions(flags=8))
        bits = support.imported(pa.array([True, False]))
        self.writable = out("array_to_tensor", bits, bs.TensorOptions(flags=4))
        support.release(bits)
        self.out_tensor, self.out_legacy = c_void_p(), c_void_p()
        self.handles = (c_void_p * 1)(self.array.value)
        self.stream = out("stream_from_arrays", None, self.handles, 1)
        self.out_stream = c_void_p()
        self.device_stream, self.host_stream = bs.ArrowDeviceArrayStream(), bs.ArrowArrayStream()
        self.out_device_stream, self.out_host_stream = bs.ArrowDeviceArrayStream(), bs.ArrowArrayStream()
        spare = out("stream_from_arrays", None, self.handles, 1)
        bs.call("stream_export", byref(spare), byref(self.device_stream))
        data = pa.record_batch({"a": [1]})
        pa.RecordBatchReader.from_batches(data.schema, [data])._export_to_c(ctypes.addressof(self.host_stream))
        self.callbacks = bs.StreamCallbacks(get_next=bs.GET_NEXT(lambda ctx, array: 0))

    def close(self):
        for struct, kind in (
            (self.device, "device_array"), (self.out_device, "device_array"), (self.host, "host_array"),
            (self.out_host, "host_array"), (self.schema, "schema"), (self.host_schema, "schema"),
            (self.out_schema, "schema"), (self.device_stream, "device_stream"), (self.host_stream, "host_stream"),
            (self.out_device_stream, "device_stream"), (self.out_host_stream, "host_stream"),
        ):
            getattr(lib, f"bowstring_{kind}_release")(byref(struct))
        support.let_go(self.parts)
        support.let_go(self.spare)
        support.let_go([self.memory])
        support.release(self.array, self.encoded, self.out_array, self.child)
        for stream in (self.stream, self.out_stream):
            lib.bowstring_stream_release(stream)
        for tensor in (self.tensor, self.writable, self.out_tensor):
            lib.bowstring_tensor_release(tensor)
        for tensor in (self.legacy, self.out_legacy):
            lib.bowstring_legacy_tensor_release(tensor)
        for kind in (self.kind, self.encoded_kind, self.out_kind, self.child_kind):
            lib.bowstring_type_release(kind)
        for buffer in (self.buffer, self.out_buffer):
            lib.bowstring_buffer_release(buffer)


def text_buffer():
    return ctypes.create_string_buffer(64)


# Name: the arguments but for the error, and which of them may be NULL.
CALLS = {
    "type_import": (lambda c: [byref(c.schema), byref(c.out_kind)], ()),
    "type_copy_from": (lambda c: [byref(c.schema), byref(c.out_kind)], ()),
    "type_new": (
        lambda c: [
            c_char_p(b"+s"), c_char_p(b"n"), 0, (c_void_p * 1)(c.kind.value), 1, None, None, 0, byref(c.out_kind),
        ],
        (1, 5, 6),
    ),
    "type_parse": (lambda c: [c_char_p(b"int32"), byref(c.out_kind)], ()),
    "type_to_text": (lambda c: [c.kind, text_buffer(), 64, byref(c_size_t())], (3,)),
    "type_export": (lambda c: [c.kind, byref(c.out_schema)], ()),
    "type_node_info": (lambda c: [c.kind, 0, byref(bs.TypeNodeInfo())], ()),
    "type_child": (lambda c: [c.kind, 0, byref(c.borrowed)], ()),
    "type_dictionary": (lambda c: [c.encoded_kind, byref(c.borrowed)], ()),
    "type_layout": (lambda c: [c.kind, (bs.LayoutEntry * 9)(), 9, byref(c_size_t())], (3,)),
    "device_array_from_buffers": (
        lambda c: [
            c.kind, c.nodes, c.counts[0], c.parts, c.counts[1], byref(bs.Placement()), byref(c.out_device),
        ],
        (5,),
    ),
    "array_import": (lambda c: [byref(c.device), byref(c.schema), byref(c.out_array)], ()),
    "array_import_typed": (lambda c: [byref(c.device), c.kind, byref(c.out_array)], ()),
    "array_import_host": (lambda c: [byref(c.host), byref(c.host_schema), byref(c.out_array)], ()),
    "array_import_host_typed": (lambda c: [byref(c.host), c.kind, byref(c.out_array)], ()),
    "array_import_borrowed": (
        lambda c: [byref(c.device), c.kind, c_void_p(1), c.owner, byref(c.out_array)], (2, 3),
    ),
    "array_export": (lambda c: [c.array, byref(c.out_device), byref(c.out_schema)], (2,)),
    "array_export_host": (
        lambda c: [c.array, byref(bs.Sync()), byref(c.out_host), byref(c.out_schema)], (1, 3),
    ),
    "array_count": (lambda c: [c.array, byref(c_size_t()), byref(c_size_t())], (1, 2)),
    "array_node_info": (lambda c: [c.array, 0, byref(bs.NodeInfo())], ()),
    "array_buffer_info": (lambda c: [c.array, 0, byref(bs.BufferInfo())], ()),
    "array_device": (lambda c: [c.array, byref(bs.Device()), byref(c.borrowed)], (1, 2)),
    "array_child": (lambda c: [c.array, 0, byref(c.out_array)], ()),
    "array_dictionary": (lambda c: [c.encoded, byref(c.out_array)], ()),
    "array_slice": (lambda c: [c.array, 0, 1, byref(c.out_array)], ()),
    "array_null_count": (lambda c: [c.array, byref(bs.Sync()), byref(c_int64())], (1,)),
    "array_resolve_sizes": (lambda c: [c.array, byref(bs.Sync()), byref(c.out_array)], (1,)),
    "array_resolve_sizes_with": (lambda c: [c.array, c.read, c_void_p(1), byref(c.out_array)], (2,)),
    "array_with_owner": (lambda c: [c.array, c_void_p(1), c.owner, byref(c.out_array)], (1,)),
    "array_buffer": (lambda c: [c.array, 0, byref(c.out_buffer)], ()),
    "array_to_buffers": (
        lambda c: [c.array, c.nodes, c.counts[0], c.spare, c.counts[1], byref(bs.Placement())], (5,),
    ),
    "array_to_text": (lambda c: [c.array, text_buffer(), 64, byref(c_size_t())], (3,)),
    "schema_validate": (lambda c: [byref(c.schema), byref(bs.ValidateOptions())], (1,)),
    "device_array_validate": (lambda c: [byref(c.device), c.kind, byref(bs.ValidateOptions())], (2,)),
    "host_array_validate": (lambda c: [byref(c.host), c.kind, byref(bs.ValidateOptions())], (2,)),
    "array_validate": (lambda c: [c.array, byref(bs.ValidateOptions())], (1,)),
    "array_conform": (lambda c: [c.array, 0, byref(bs.Sync()), 0, byref(c.out_array)], (2,)),
    "array_to_tensor": (lambda c: [c.child, byref(bs.TensorOptions()), byref(c.out_tensor)], (1,)),
    "array_validity_to_tensor": (
        lambda c: [c.child, byref(bs.TensorOptions()), byref(c.out_tensor), byref(c_int64())], (1,),
    ),
    "buffer_to_tensor": (
        lambda c: [
            c.buffer, bs.DataType(1, 8, 1), 1, (c_int64 * 1)(1), byref(bs.TensorOptions()), byref(c.out_tensor),
        ],
        (4,),
    ),
    "array_from_tensor": (
        lambda c: [byref(c.tensor), c.child_kind, byref(bs.TensorOptions()), byref(c.out_array)], (1, 2),
    ),
    "tensor_from_legacy": (
        lambda c: [byref(c.legacy), byref(bs.TensorOptions()), byref(c.out_tensor)], (1,),
    ),
    "tensor_to_legacy": (
        lambda c: [byref(c.writable), byref(bs.TensorOptions()), byref(c.out_legacy)], (1,),
    ),
    "device_probe": (lambda c: [1, byref(c_int64())], ()),
    "device_collect": (lambda c: [bs.Device(), True, byref(c_size_t())], (2,)),
    "array_to_device": (
        lambda c: [c.array, bs.Device(), byref(bs.TransferOptions()), byref(c.out_array), byref(c_bool())], (2, 4),
    ),
    "buffer_to_device": (
        lambda c: [c.buffer, bs.Device(), byref(bs.TransferOptions()), byref(c.out_buffer), byref(c_bool())], (2, 4),
    ),
    "array_wait": (lambda c: [c.array, byref(bs.Sync())], (1,)),
    "array_release_after": (lambda c: [byref(c.array), byref(bs.Sync(bs.SYNC_LIBRARY))], ()),
    "device_array_release_after": (lambda c: [byref(c.device), byref(bs.Sync(bs.SYNC_LIBRARY))], ()),
    "buffer_wrap": (lambda c: [byref(c.memory), byref(bs.Placement()), byref(c.out_buffer)], (1,)),
    "buffer_allocate": (
        lambda c: [bs.Device(), 100, byref(bs.Sync()), byref(c.out_buffer), byref(c.borrowed)], (2,),
    ),
    "buffer_info": (lambda c: [c.buffer, byref(bs.BufferMemory())], ()),
    "buffer_slice": (lambda c: [c.buffer, 0, 1, byref(c.out_buffer)], ()),
    "buffer_read": (lambda c: [c.buffer, 0, text_buffer(), 1, byref(bs.Sync())], (4,)),
    "buffer_into_owned": (lambda c: [byref(c.buffer), byref(c.memory)], ()),
    "stream_import": (lambda c: [byref(c.device_stream), byref(c.out_stream)], ()),
    "stream_import_host": (lambda c: [byref(c.host_stream), byref(c.out_stream)], ()),
    "stream_from_arrays": (lambda c: [c.kind, c.handles, 1, byref(c.out_stream)], (0,)),
    "stream_from_callbacks": (lambda c: [c.kind, byref(c.callbacks), byref(c.out_stream)], ()),
    "stream_next": (lambda c: [c.stream, byref(c.out_array)], ()),
    "stream_next_device_array": (lambda c: [c.stream, byref(c.out_device)], ()),
    "stream_collect": (lambda c: [byref(c.stream), byref(bs.Sync()), byref(c.out_array)], (1,)),
    "stream_export": (lambda c: [byref(c.stream), byref(c.out_device_stream)], ()),
    "stream_export_host": (lambda c: [byref(c.stream), byref(bs.Sync()), byref(c.out_host_stream)], (1,)),
    "stream_validated": (lambda c: [byref(c.stream), byref(bs.ValidateOptions()), byref(c.out_stream)], (1,)),
    "stream_to_device": (
        lambda c: [byref(c.stream), bs.Device(), byref(bs.TransferOptions(depth=1)), byref(c.out_stream)], (2,)
    ),
    "stream_select": (lambda c: [byref(c.stream), (c_size_t * 1)(0), 1, byref(c.out_stream)], ()),
}
# It is set once for the process, so a success here would last; and what looks at structs that nothing here makes.
NOT_HERE = {
    # These need a device with events, or last: test_device_calls.py has them.
    "device_register", "array_record", "array_join_events",
    # These start what ends later: test_stream_to_async.py and test_stream_from_async.py have them.
    "stream_to_async", "stream_from_async",
    "callback_scope_set", "python_init", "device_stream_validate", "host_stream_validate", "tensor_validate", "legacy_tensor_validate",
}


def run(name, null=None, has_error=True):
    context = Context()
    arguments = CALLS[name][0](context)
    if null is not None:
        # A parameter that takes a callback wants a NULL of its own kind.
        kind = bs.FUNCTIONS[f"bowstring_{name}"][1 + null]
        arguments[null] = kind() if kind in (bs.RELEASE, bs.READ) else None
    error = bs.Error()
    try:
        status = getattr(lib, f"bowstring_{name}")(*arguments, byref(error) if has_error else None)
        assert error.status == (status if has_error else OK)
        return status, error.message.decode()
    finally:
        context.close()
        assert support.all_gone()


def pointers(name):
    """The parameters that are pointers and not NULL in the call that works."""
    made = Context()
    arguments = CALLS[name][0](made)
    made.close()
    return [i for i, one in enumerate(arguments) if one is not None and not isinstance(one, (int, bs.Device, bs.DataType))]


def test_every_function_is_here():
    can_fail = {
        name.removeprefix("bowstring_")
        for name, (*_, last) in bs.FUNCTIONS.items()
        if last is ctypes.POINTER(bs.Error)
    }
    assert can_fail == set(CALLS) | NOT_HERE


@pytest.mark.parametrize("name", CALLS)
def test_null_pointers(name):
    status, message = run(name)
    assert status == OK, message
    assert run(name, has_error=False)[0] == OK
    for i in pointers(name):
        status, message = run(name, i)
        expected = OK if i in CALLS[name][1] else INVALID_ARGUMENT
        assert status == expected, f"argument {i} is NULL: {message}"
        assert run(name, i, has_error=False)[0] == expected
    assert pointers(name)


def test_null_handles_are_let_go():
    for name in ("type", "array", "buffer"):
        getattr(lib, f"bowstring_{name}_release")(None)
        assert getattr(lib, f"bowstring_{name}_retain")(None) is None
    assert lib.bowstring_array_type(None) is None
    assert not lib.bowstring_type_equals(None, None, 0)
    lib.bowstring_live_counts(None)


def test_figures():
    support.figure("pointers that were NULL", sum(len(pointers(name)) for name in CALLS), 100)
