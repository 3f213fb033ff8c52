"""The values of raw structs, read slowly, wherever their memory is."""

import ctypes
import struct

import slow_schema


class Values:
    """The values of raw structs, read with a function that knows where the memory is; no more is read than is shown.

    Values of a fixed width are their bytes. It shares nothing with the library.
    """

    def __init__(self, read):
        self.read = read

    def all_of(self, schema, array):
        return [self.one(schema, array, row) for row in range(array.length)]

    def number(self, address, i, code):
        width = struct.calcsize(code)
        return struct.unpack("=" + code, self.read(address + i * width, width))[0]

    def bit(self, address, i):
        return self.read(address + (i >> 3), 1)[0] >> (i & 7) & 1

    def one(self, schema, array, row):
        """The value at a row of the array's window."""
        assert 0 <= row < array.length, f"row {row} of {array.length}"
        layout = slow_schema.parse(ctypes.string_at(schema.format))
        at, kind = array.offset + row, layout.kind
        if kind == "n":
            return None
        if kind == "+r":
            ends, code = array.children[0].contents, {2: "h", 4: "i", 8: "q"}
            width = slow_schema.parse(ctypes.string_at(schema.children[0].contents.format)).width
            run = next(
                i for i in range(ends.length) if self.number(ends.buffers[1], ends.offset + i, code[width]) > at
            )
            return self.child(schema, array, 1, run)
        if kind in ("sparse", "dense"):
            first = array.n_buffers - (1 if kind == "sparse" else 2)
            which = layout.ids.index(self.number(array.buffers[first], at, "b"))
            inside = at if kind == "sparse" else self.number(array.buffers[first + 1], at, "i")
            return which, self.child(schema, array, which, inside)
        if array.buffers[0] and not self.bit(array.buffers[0], at):
            return None
        return self.valid(schema, array, layout, at)

    def child(self, schema, array, i, row):
        return self.one(schema.children[i].contents, array.children[i].contents, row)

    def rows(self, schema, array, first, n):
        return [self.child(schema, array, 0, first + i) for i in range(n)]

    def valid(self, schema, array, layout, at):
        kind, buffers = layout.kind, array.buffers
        if kind == "+s":
            return [self.child(schema, array, i, at) for i in range(array.n_children)]
        if kind == "+w":
            return self.rows(schema, array, at * layout.width, layout.width)
        if kind in ("+vl", "+vL"):
            code = "iq"[kind == "+vL"]
            return self.rows(schema, array, self.number(buffers[1], at, code), self.number(buffers[2], at, code))
        if kind in ("z", "u", "Z", "U", "+l", "+L", "+m"):
            code = "q" if kind in ("Z", "U", "+L") else "i"
            first, end = (self.number(buffers[1], i, code) for i in (at, at + 1))
            if kind[0] == "+":
                return self.rows(schema, array, first, end - first)
            return self.read(buffers[2] + first, end - first) if end > first else b""
        if kind in ("vz", "vu"):
            view = self.read(buffers[1] + 16 * at, 16)
            size, _, which, start = struct.unpack("=i4sii", view)
            return view[4 : 4 + size] if size <= 12 else self.read(buffers[2 + which] + start, size)
        if kind == "b":
            return self.bit(buffers[1], at)
        found = self.read(buffers[1] + at * layout.width, layout.width) if layout.width else b""
        if not schema.dictionary:
            return found
        format = ctypes.string_at(schema.format)
        is_signed = format.islower()
        index = int.from_bytes(found, "little", signed=is_signed)
        return self.one(schema.dictionary.contents, array.dictionary.contents, index)
