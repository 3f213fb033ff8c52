"""What several test files need: arrays handed to and from pyarrow, taken apart, and looked at from outside."""

import ctypes
from ctypes import byref, c_size_t, c_void_p

import pyarrow as pa

import bowstring_ctypes as bs
from bowstring_ctypes import call, lib, live_counts, out

_figures = []
_before = {}


def figure(name, count, floor):
    """States how much a test did, for the summary; too little is a failure."""
    _figures.append(f"{name}: {count} (at least {floor})")
    assert count >= floor, f"{name}: {count}, expected at least {floor}"


def figures():
    """What the tests stated."""
    return list(_figures)


def start():
    """Notes what is alive at the start of a test: what an earlier one left behind is not this one's fault."""
    _before.clear()
    _before.update(live_counts())


def all_gone():
    """Whether nothing of the library lives that did not live before."""
    return all(count <= _before.get(name, 0) for name, count in live_counts().items())


def addresses(array):
    """Every buffer pointer of a raw tree: a node's own, its children's, then its dictionary's."""
    found = [array.buffers[i] for i in range(array.n_buffers)]
    for i in range(array.n_children):
        found += addresses(array.children[i].contents)
    if array.dictionary:
        found += addresses(array.dictionary.contents)
    return found


def numbers(array):
    """Length, null count, offset and number of buffers of every node of a raw tree, in the same order."""
    found = [(array.length, array.null_count, array.offset, array.n_buffers)]
    for i in range(array.n_children):
        found += numbers(array.children[i].contents)
    if array.dictionary:
        found += numbers(array.dictionary.contents)
    return found


def from_pyarrow(data):
    """An array or a record batch of pyarrow as raw structs."""
    array, schema = bs.ArrowDeviceArray(), bs.ArrowSchema()
    data._export_to_c_device(ctypes.addressof(array), ctypes.addressof(schema))
    return array, schema


def to_pyarrow(array, schema, kind=pa.RecordBatch):
    """Raw structs as an array or a record batch of pyarrow, which takes them."""
    return kind._import_from_c_device(ctypes.addressof(array), ctypes.addressof(schema))


def imported(data):
    """A handle on what pyarrow exported."""
    array, schema = from_pyarrow(data)
    handle = out("array_import", byref(array), byref(schema))
    assert not array.array.release and not schema.release
    return handle


def exported_anywhere(handle):
    """Raw structs made of a handle, which stays the caller's."""
    array, schema = bs.ArrowDeviceArray(), bs.ArrowSchema()
    ctypes.memset(byref(array), 0xAA, ctypes.sizeof(array))
    ctypes.memset(byref(schema), 0xAA, ctypes.sizeof(schema))
    call("array_export", handle, byref(array), byref(schema))
    assert list(array.reserved) == [0, 0, 0]
    return array, schema


def exported(handle):
    """As `exported_anywhere`, of an array in CPU memory."""
    array, schema = exported_anywhere(handle)
    assert (array.device_type, array.device_id, array.sync_event) == (1, -1, None)
    return array, schema


def release(*handles):
    """Lets array handles go."""
    for handle in handles:
        lib.bowstring_array_release(handle)


def resolved(handle):
    """The same array with its sizes known; the handle given is let go."""
    result = out("array_resolve_sizes", handle, None)
    release(handle)
    return result


def counts(handle):
    """The numbers of nodes and buffers."""
    nodes, buffers = c_size_t(), c_size_t()
    call("array_count", handle, byref(nodes), byref(buffers))
    return nodes.value, buffers.value


def _infos(function, kind, handle, count):
    infos = []
    for i in range(count):
        info = kind()
        call(function, handle, i, byref(info))
        infos.append(info)
    return infos


def node_infos(handle):
    """What every node is."""
    return _infos("array_node_info", bs.NodeInfo, handle, counts(handle)[0])


def buffer_infos(handle):
    """What every buffer is."""
    return _infos("array_buffer_info", bs.BufferInfo, handle, counts(handle)[1])


def type_of(handle):
    """A handle of its own on an array's type."""
    return c_void_p(lib.bowstring_type_retain(lib.bowstring_array_type(handle)))


def to_buffers(handle, device_type=1):
    """An array's nodes and owned buffers; the placement is checked to be the device's."""
    n_nodes, n_buffers = counts(handle)
    nodes, buffers, placement = (bs.Node * n_nodes)(), (bs.OwnedBuffer * n_buffers)(), bs.Placement()
    call("array_to_buffers", handle, nodes, n_nodes, buffers, n_buffers, byref(placement))
    assert placement.device.type == device_type
    assert not placement.destroy_event and not placement.release_owner
    return nodes, buffers


def let_go(buffers):
    """Calls the owners that are still ours."""
    for buffer in buffers:
        if buffer.release_owner:
            buffer.release_owner(buffer.owner)
            buffer.release_owner = bs.RELEASE()


def single_buffers(handle):
    """Every buffer as a handle of its own, turned into memory with an owner."""
    owned = (bs.OwnedBuffer * counts(handle)[1])()
    for i, entry in enumerate(owned):
        buffer = out("array_buffer", handle, i)
        call("buffer_into_owned", byref(buffer), byref(entry))
        assert not buffer.value
    return owned


def rebuilt(kind, nodes, buffers, placement=None):
    """Raw structs built from parts, all of which are taken."""
    array, schema = bs.ArrowDeviceArray(), bs.ArrowSchema()
    ctypes.memset(byref(array), 0xAA, ctypes.sizeof(array))
    place = byref(placement) if placement is not None else None
    call("device_array_from_buffers", kind, nodes, len(nodes), buffers, len(buffers), place, byref(array))
    assert not any(buffer.owner or buffer.release_owner for buffer in buffers)
    call("type_export", kind, byref(schema))
    assert list(array.reserved) == [0, 0, 0]
    return array, schema


def text_of_array(handle):
    """The tree of an array as text."""
    return bs.text_of("array_to_text", handle)


def type_from(kind):
    """A type handle made of a pyarrow type or field."""
    schema = bs.ArrowSchema()
    kind._export_to_c(ctypes.addressof(schema))
    return out("type_import", byref(schema))


class Owners:
    """Memory whose owners note in which order they are let go."""

    def __init__(self):
        self.released, self._memory = [], []
        self.callback = bs.RELEASE(lambda owner: self.released.append(owner))
        self.destroyed = []
        self.destroy = bs.DESTROY_EVENT(lambda ctx, event: self.destroyed.append((ctx, event, list(self.released))))

    def buffer(self, key, data):
        """An owned buffer with a copy of the bytes; NULL and without an owner for None."""
        if data is None:
            return bs.OwnedBuffer(None, 0, None, bs.RELEASE())
        self._memory.append(ctypes.create_string_buffer(data, max(len(data), 1)))
        at = ctypes.addressof(self._memory[-1])
        return bs.OwnedBuffer(at, len(data), key, self.callback if key else bs.RELEASE())


def validate(data):
    """Full validation by pyarrow."""
    data.validate(full=True)
