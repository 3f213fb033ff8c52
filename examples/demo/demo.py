"""One nested column goes through five pairs of hands, and not one byte of it is copied.

pyarrow reads it from a file. bowstring takes it apart into single buffers, each with an owner of its own that says
when it is let go. An engine in C (demo.c) gets the column that is put together from them and lets nanoarrow read it.
pyarrow takes it back, and numpy looks at the buffers one by one and keeps the longest hold on one of them.

Run it with `cargo xtask demo`, or: python demo.py --prefix <where bowstring is> --build <where the engine was built>
"""

import argparse
import ctypes
import sys
from ctypes import CFUNCTYPE, POINTER, byref, c_char, c_double, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_void_p
from pathlib import Path

import numpy as np
import pyarrow as pa

RELEASE = CFUNCTYPE(None, c_void_p)


class Error(ctypes.Structure):
    _fields_ = [("status", c_int32), ("rule", c_int32), ("row", c_int64), ("batch", c_int64)]
    _fields_ += [("native_code", c_int64), ("path", c_char * 256), ("message", c_char * 1024)]


class Node(ctypes.Structure):
    _fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64)]


class OwnedBuffer(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size_bytes", c_int64), ("owner", c_void_p), ("release_owner", RELEASE)]


class BufferInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("node", c_size_t), ("role", c_int32)]
    _fields_ += [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("data", c_void_p)]
    _fields_ += [(name, c_int64) for name in ("n_elements", "first", "count", "size_bytes", "bit_offset")]
    _fields_ += [("device_type", c_int32), ("device_id", c_int64)]


ROLES = ("validity", "offsets", "sizes", "type ids", "views", "data", "variadic", "variadic sizes")
NUMPY_KINDS = {0: "i", 1: "u", 2: "f", 6: "u"}


def call(function, *arguments):
    """Calls a function of bowstring and ends the program with its message if it fails."""
    error = Error()
    if function(*arguments, byref(error)):
        sys.exit(f"bowstring: {error.message.decode()}")


def new(function, *arguments):
    """As `call`, for functions that make a handle."""
    handle = c_void_p()
    call(function, *arguments, byref(handle))
    return handle


class Trace:
    """Who saw which buffer where, and when each buffer's owner was let go."""

    def __init__(self):
        self.seen, self.released, self.now, self.callbacks = {}, {}, "", []

    def saw(self, who, addresses):
        self.seen[who] = [address or 0 for address in addresses]

    def watch(self, k, buffer):
        """Puts an owner in front of the buffer's own that notes when it is let go."""
        owner, let_go = buffer.owner, ctypes.cast(buffer.release_owner, c_void_p).value

        def release(_):
            self.released[k] = self.now
            RELEASE(let_go)(owner)

        self.callbacks.append(RELEASE(release))
        buffer.owner, buffer.release_owner = k, self.callbacks[-1]

    def report(self, names):
        print(f"{'buffer':<24}" + "".join(f"{who:<16}" for who in self.seen) + "owner let go when")
        same = 0
        for k, name in enumerate(names):
            found = [addresses[k] for addresses in self.seen.values()]
            same += found[0] != 0 and len(set(found)) == 1
            print(f"{name:<24}" + "".join(f"{x:<#16x}" for x in found) + self.released.get(k, "never"))
        print(f"zero-copy: {same}/{len(names)} buffers")
        return same == len(names) == len(self.released)


def read_column(path):
    """The column from the file, which is written first where there is none."""
    if not path.exists():
        record = pa.struct([("id", pa.int32()), ("name", pa.utf8()), ("values", pa.list_(pa.float64()))])
        rows = [[{"id": i, "name": f"sensor {i}", "values": [i / 4, None, i * 1.5]}, None] for i in range(1000)]
        rows[1:3] = None, [{"id": None, "name": None, "values": None}]
        batch = pa.record_batch([pa.array(rows, pa.list_(record))], names=["readings"])
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as writer:
            writer.write_batch(batch)
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as reader:
        return reader.read_next_batch().column("readings")


def load(prefix, build):
    """The installed library and the engine that was linked with it."""
    bowstring = ctypes.CDLL(str(Path(prefix, "lib", "libbowstring.so").resolve()))
    engine = ctypes.CDLL(str(Path(build, "engine.so").resolve()))
    for name in ("device_array_new", "schema_new", "type_retain", "array_type"):
        getattr(bowstring, f"bowstring_{name}").restype = c_void_p
    engine.engine_receive.restype = c_void_p
    engine.engine_total.restype = c_size_t
    engine.engine_total.argtypes = [c_void_p, POINTER(c_double), POINTER(c_void_p), c_size_t]
    return bowstring, engine


def look_at(bowstring, handle):
    """The number of nodes, and what bowstring knows of each buffer."""
    call(bowstring.bowstring_array_count, handle, byref(n_nodes := c_size_t()), byref(n_buffers := c_size_t()))
    infos = [BufferInfo(ctypes.sizeof(BufferInfo)) for _ in range(n_buffers.value)]
    for k, info in enumerate(infos):
        call(bowstring.bowstring_array_buffer_info, handle, c_size_t(k), byref(info))
    return n_nodes.value, infos


def in_numpy(info):
    """A buffer as numpy sees it; bitmaps and text are bytes."""
    kind = np.dtype(f"{NUMPY_KINDS[info.code]}{max(info.bits // 8, 1)}")
    return np.ndarray(info.size_bytes // kind.itemsize, kind, (c_uint8 * info.size_bytes).from_address(info.data))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--prefix", "--build"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    bowstring, engine = load(options.prefix, options.build)
    array, schema = c_void_p(bowstring.bowstring_device_array_new()), c_void_p(bowstring.bowstring_schema_new())
    trace, text = Trace(), ctypes.create_string_buffer(1 << 16)
    # pyarrow reads, and hands over. Its own objects go: from here on only bowstring keeps the file mapped.
    column = read_column(Path(options.build, "readings.arrows"))
    expected = column.to_pylist()
    trace.saw("pyarrow", [buffer and buffer.address for buffer in column.buffers()])
    column._export_to_c_device(array.value, schema.value)
    del column
    unsized = new(bowstring.bowstring_array_import, array, schema)
    handle = new(bowstring.bowstring_array_resolve_sizes, unsized, None)
    n_nodes, infos = look_at(bowstring, handle)
    trace.saw("bowstring", [info.data for info in infos])
    call(bowstring.bowstring_array_to_text, handle, text, c_size_t(len(text)), None)
    print(text.value.decode())

    # Taken apart: each buffer now has an owner of its own. Put together again from them.
    kind = c_void_p(bowstring.bowstring_type_retain(c_void_p(bowstring.bowstring_array_type(handle))))
    nodes, parts = (Node * n_nodes)(), (OwnedBuffer * len(infos))()
    pieces = nodes, c_size_t(n_nodes), parts, c_size_t(len(infos))
    call(bowstring.bowstring_array_to_buffers, handle, *pieces, None)
    bowstring.bowstring_array_release(handle)
    bowstring.bowstring_array_release(unsized)
    for k, part in enumerate(parts):
        trace.watch(k, part)
    call(bowstring.bowstring_device_array_from_buffers, kind, *pieces, None, array)
    call(bowstring.bowstring_type_export, kind, schema)
    bowstring.bowstring_type_release(kind)

    # The engine in C takes the column, and nanoarrow reads it there.
    handle = c_void_p(engine.engine_receive(array, schema))
    total, seen = c_double(), (c_void_p * len(infos))()
    if not handle.value or engine.engine_total(handle, byref(total), seen, len(seen)) != len(infos):
        sys.exit("the engine refused the column")
    trace.saw("nanoarrow", seen)

    # pyarrow takes it back from the engine.
    call(bowstring.bowstring_array_export, handle, array, schema)
    again = pa.Array._import_from_c_device(array.value, schema.value)
    trace.saw("pyarrow again", [buffer and buffer.address for buffer in again.buffers()])

    # numpy looks at every buffer, and keeps the numbers after everybody else has gone.
    views = [in_numpy(info) for info in look_at(bowstring, handle)[1]]
    trace.saw("numpy", [view.ctypes.data for view in views])
    kept, numbers = new(bowstring.bowstring_array_buffer, handle, c_size_t(len(infos) - 1)), views[-1]
    is_there = np.unpackbits(views[-2], count=numbers.size, bitorder="little").astype(bool)
    is_same = again.to_pylist() == expected and np.isclose(numbers[is_there].sum(), total.value)
    print(f"nanoarrow and numpy add up {is_there.sum()} numbers: {total.value}, {numbers[is_there].sum()}\n")
    del views

    trace.now = "with the engine's handle"
    bowstring.bowstring_array_release(handle)
    trace.now = "with pyarrow's array"
    del again
    trace.now = "with numpy's view"
    del numbers
    bowstring.bowstring_buffer_release(kept)
    bowstring.bowstring_device_array_free(array)
    bowstring.bowstring_schema_free(schema)
    sys.exit(0 if trace.report([f"[{k}] {ROLES[info.role]}" for k, info in enumerate(infos)]) and is_same else 1)


if __name__ == "__main__":
    main()
