"""Arrays cut to what they show: of each buffer the bytes that are needed, as they are wherever they can be."""

from __future__ import annotations

import ctypes
import sys
from array import array as numbers
from bisect import bisect_right
from ctypes import c_int, c_size_t, c_void_p, py_object
from typing import TYPE_CHECKING, Any, Union

from ._buffer import Buffer
from ._errors import InvalidData
from ._library import lib, made

if TYPE_CHECKING:
    from ._array import Array, BufferView, NodeView

Piece = Union[Buffer, bytes]
_READ = 0x100
_memory = ctypes.PYFUNCTYPE(py_object, c_void_p, c_size_t, c_int)(("PyMemoryView_FromMemory", ctypes.pythonapi))
_INTS = {8: "b", 16: "h", 32: "i", 64: "q"}
_ORDER: Any = sys.byteorder
# The most unused bytes of variadic buffers that nobody is asked to look for.
_SMALL = 1 << 16


class Cut:
    """What a window in CPU memory shows: every node from its first value on, and the bytes that it needs.

    Bytes are those of the array wherever they can stay as they are. Made anew are, in windows that do not start at 0,
    bitmaps that start within a byte, offsets and run ends; and views whose bytes are cut. Dictionaries are taken whole;
    what list views, dense unions and views lead to is taken from the first value that is used to the last.

    Attributes
    ----------
    nodes : list of (length, null_count, n_buffers)
        The nodes' numbers, depth first; all offsets are 0.
    places : list of int
        For each buffer the number of its piece, -1 for none.
    pieces : list of Buffer or bytes
        The bytes, those that several buffers share once.
    """

    def __init__(self, array: "Array") -> None:
        self.nodes: list[tuple[int, int, int]] = []
        self.places: list[int] = []
        self.pieces: list[Piece] = []
        self._index = -1
        self._known: dict[tuple[int, int], int] = {}
        self._all = array.nodes
        if any(node.format in ("vu", "vz") for node in self._all):
            array = type(array)._of(made(lib.bowstring_array_resolve_sizes, array._handle, None), array.source)
        self._array = array
        self._node(0, self._all[0].offset, self._all[0].length)
        del self._array

    # One node.

    def _node(self, index: int, at: int, n: int) -> None:
        """Takes `n` values of a node from physical index `at` on, and what its children need for them."""
        node = self._all[index]
        is_whole = (at, n) == (node.offset, node.length)
        nulls = node.null_count if is_whole or node.null_count == 0 else -1
        form = node.format
        has_bitmap = form != "n" and not form.startswith(("+u", "+r"))
        own = len(self.nodes)
        first = len(self.places)
        self.nodes.append((n, nulls, 0))
        if has_bitmap:
            self._validity(node, at, n, nulls)
            if self.places[first] < 0:
                nulls = 0
        else:
            nulls = n if form == "n" else 0
        children = [(child, self._all[child].offset + at - node.offset, n) for child in self._children(index)]
        if form in ("u", "z", "U", "Z"):
            start, end = self._offsets(node, at, n)
            self._bytes(node.first_buffer + 2, start, end - start)
        elif form in ("vu", "vz"):
            self._views(node, at, n)
        elif form in ("+l", "+L", "+m"):
            start, end = self._offsets(node, at, n)
            children = [(child, self._all[child].offset + start, end - start) for child, _, _ in children]
        elif form in ("+vl", "+vL"):
            start, end = self._list_views(node, at, n)
            children = [(child, self._all[child].offset + start, end - start) for child, _, _ in children]
        elif form.startswith("+w:"):
            size = int(form[3:])
            children = [
                (child, self._all[child].offset + (at - node.offset) * size, n * size) for child, _, _ in children
            ]
        elif form.startswith("+us"):
            self._fixed(node.first_buffer, at, n)
        elif form.startswith("+ud"):
            children = self._dense(node, at, n, children)
        elif form == "+r":
            self._runs(node, at, n, [child for child, _, _ in children])
            children = []
        elif form not in ("n", "+s"):
            self._fixed(node.first_buffer + 1, at, n)
        self.nodes[own] = (n, nulls, 0 if form == "+r" else len(self.places) - first)
        for child, start, count in children:
            self._node(child, start, count)
        if node.dictionary >= 0:
            values = self._all[node.dictionary]
            self._node(node.dictionary, values.offset, values.length)

    def _children(self, index: int) -> list[int]:
        node = self._all[index]
        found, child = [], node.first_child
        for _ in range(node.n_children):
            found.append(child)
            child = self._all[child].subtree_end
        return found

    # Pieces.

    def _view(self, index: int) -> "BufferView":
        """What the array shows of a buffer, asked once."""
        if index != self._index:
            self._index, self._seen = index, self._array.buffer_view(index)
        return self._seen

    def _none(self) -> None:
        self.places.append(-1)

    def _new(self, made_anew: bytes) -> None:
        self.places.append(len(self.pieces))
        self.pieces.append(made_anew)

    def _bytes(self, index: int, at: int, size: int) -> None:
        """Some bytes of a buffer, as they are."""
        if not size:
            return self._none()
        view = self._view(index)
        self._inside(view, at, size)
        key = (view.ptr + at, size)
        if key not in self._known:
            self._known[key] = len(self.pieces)
            buffer = self._array.buffer(index)
            self.pieces.append(buffer if (at, size) == (0, view.bufsize) else buffer.slice(at, size))
        self.places.append(self._known[key])

    def _inside(self, view: "BufferView", at: int, size: int) -> None:
        if at < 0 or size < 0 or not view.ptr or (view.bufsize >= 0 and at + size > view.bufsize):
            found = f"{view.bufsize} bytes" if view.ptr else "NULL"
            where = f"{self._all[view.node].name!r}: " if self._all[view.node].name else ""
            raise InvalidData(f"{where}expected {at + size} bytes of {view.role}, found {found}")

    def _ints(self, index: int, at: int, n: int) -> Any:
        """Whole numbers of a buffer, to read."""
        view = self._view(index)
        bits = view.element[1]
        size = bits // 8
        if not n:
            return numbers(_INTS[bits])
        self._inside(view, at * size, n * size)
        return _memory(view.ptr + at * size, n * size, _READ).cast(_INTS[bits])

    def _is_all(self, index: int, at: int, n: int) -> bool:
        """Whether there are rows, and these are all that a buffer has."""
        return at == 0 < n == self._view(index).n_elements

    def _fixed(self, index: int, at: int, n: int) -> None:
        """Values of one width."""
        view = self._view(index)
        _, bits, lanes = view.element
        if bits == 1:
            return self._bits(index, at, n)
        size = bits * lanes // 8
        if not lanes:
            size = int(self._all[view.node].format.partition(":")[2])
        self._bytes(index, at * size, n * size)

    def _bits(self, index: int, at: int, n: int) -> None:
        """Bits, which are moved when they do not start with a byte."""
        if at % 8 == 0:
            return self._bytes(index, at // 8, (n + 7) // 8)
        if not n:
            return self._none()
        view = self._view(index)
        start, end = at // 8, (at + n + 7) // 8
        self._inside(view, start, end - start)
        bits = int.from_bytes(_memory(view.ptr + start, end - start, _READ), "little") >> at % 8
        self._new((bits & (1 << n) - 1).to_bytes((n + 7) // 8, "little"))

    def _validity(self, node: "NodeView", at: int, n: int, nulls: int) -> None:
        if nulls == 0 or not n or not self._view(node.first_buffer).ptr:
            return self._none()
        self._bits(node.first_buffer, at, n)

    # Layouts in which numbers lead elsewhere.

    def _offsets(self, node: "NodeView", at: int, n: int) -> tuple[int, int]:
        """Takes offsets, which then start at 0, and says where they led: from where to where."""
        index = node.first_buffer + 1
        if not n:
            self._none()
            return 0, 0
        offsets = self._ints(index, at, n + 1)
        start, end = offsets[0], offsets[n]
        if start < 0 or end < start:
            raise InvalidData(f"{node.name!r}: expected offsets from 0 on, in order, found {start} and then {end}")
        if start == 0:
            self._bytes(index, at * offsets.itemsize, (n + 1) * offsets.itemsize)
        else:
            self._new(_less(offsets, start, node))
        return start, end

    def _list_views(self, node: "NodeView", at: int, n: int) -> tuple[int, int]:
        offsets, sizes = (self._ints(node.first_buffer + k, at, n) for k in (1, 2))
        used = [(offset, offset + size) for offset, size in zip(offsets, sizes) if size]
        start, end = min((a for a, _ in used), default=0), max((b for _, b in used), default=0)
        if start < 0 or end < start:
            raise InvalidData(f"{node.name!r}: expected offsets from 0 on, found {start} to {end}")
        width = offsets.itemsize
        if start == 0 and all(0 <= offset <= end for offset in offsets):
            self._bytes(node.first_buffer + 1, at * width, n * width)
        else:
            moved = (offset - start if size else 0 for offset, size in zip(offsets, sizes))
            self._new(numbers(_INTS[width * 8], moved).tobytes())
        self._bytes(node.first_buffer + 2, at * width, n * width)
        return start, end

    def _dense(self, node: "NodeView", at: int, n: int, children: list[tuple[int, int, int]]) -> list[Any]:
        ids = self._ints(node.first_buffer, at, n)
        offsets = self._ints(node.first_buffer + 1, at, n)
        self._bytes(node.first_buffer, at, n)
        codes = [int(code) for code in node.format.partition(":")[2].split(",") if code]
        starts, ends = dict.fromkeys(codes, -1), dict.fromkeys(codes, 0)
        for code, offset in zip(ids, offsets):
            if code not in starts or offset < 0:
                raise InvalidData(f"{node.name!r}: expected a child of the union, found {code} and offset {offset}")
            if starts[code] < 0 or offset < starts[code]:
                starts[code] = offset
            if offset >= ends[code]:
                ends[code] = offset + 1
        if any(start > 0 for start in starts.values()):
            self._new(numbers("i", (offset - starts[code] for code, offset in zip(ids, offsets))).tobytes())
        else:
            self._bytes(node.first_buffer + 1, at * 4, n * 4)
        spans = [(max(starts[code], 0), ends[code]) for code in codes]
        return [(child, self._all[child].offset + a, b - a) for (child, _, _), (a, b) in zip(children, spans)]

    def _runs(self, node: "NodeView", at: int, n: int, children: list[int]) -> None:
        ends, values = (self._all[child] for child in children)
        numbers_of = ends.first_buffer + 1
        run_ends = self._ints(numbers_of, ends.offset, ends.length)
        first = bisect_right(run_ends, at) if n else 0
        last = bisect_right(run_ends, at + n - 1) + 1 if n else 0
        if last > len(run_ends):
            raise InvalidData(f"{node.name!r}: expected runs up to {at + n}, found {run_ends[-1] if run_ends else 0}")
        count = last - first
        self.nodes.append((count, 0, 2))
        self._none()
        if at == 0:
            self._bytes(numbers_of, (ends.offset + first) * run_ends.itemsize, count * run_ends.itemsize)
        else:
            moved = (min(end - at, n) for end in run_ends[first:last])
            self._new(numbers(_INTS[run_ends.itemsize * 8], moved).tobytes())
        self._node(children[1], values.offset + first, count)

    def _views(self, node: "NodeView", at: int, n: int) -> None:
        index, last = node.first_buffer + 1, node.first_buffer + node.n_buffers - 1
        variadic = [self._view(k) for k in range(index + 1, last)]
        sizes = [max(view.bufsize, 0) for view in variadic]
        view = self._view(index)
        if n:
            self._inside(view, at * 16, n * 16)
        words = _memory(view.ptr + at * 16, n * 16, _READ).cast("i") if n else numbers("i")
        lengths = words[::4]
        needed = sum(length for length in lengths if length > 12)
        spare = sum(sizes) - needed
        is_full = spare <= 0 or (self._is_all(index, at, n) and spare <= needed + _SMALL)
        if not sizes or (needed and is_full):
            self._bytes(index, at * 16, n * 16)
            for k, size in enumerate(sizes):
                self._bytes(index + 1 + k, 0, size)
            return self._none()
        starts, ends = list(sizes), [0] * len(sizes)
        out = bytearray(words)
        moved = memoryview(out).cast("i")
        long = [row for row in range(n) if not 0 <= lengths[row] <= 12]
        for row in long:
            length, which, start = words[row * 4], words[row * 4 + 2], words[row * 4 + 3]
            if length < 0 or not 0 <= which < len(sizes) or not 0 <= start <= sizes[which] - length:
                self._nothing(node, at, row, out)
                continue
            starts[which] = min(starts[which], start)
            ends[which] = max(ends[which], start + length)
        kept = [k for k, end in enumerate(ends) if end]
        place = {k: number for number, k in enumerate(kept)}
        for row in long:
            if moved[row * 4] > 12:
                which = moved[row * 4 + 2]
                moved[row * 4 + 2], moved[row * 4 + 3] = place[which], moved[row * 4 + 3] - starts[which]
        moved.release()
        self._new(bytes(out))
        for k in kept:
            self._bytes(index + 1 + k, starts[k], ends[k] - starts[k])
        self._none()

    def _nothing(self, node: "NodeView", at: int, row: int, out: bytearray) -> None:
        """A view that leads nowhere, which only a null may be: it becomes an empty one."""
        validity = self._view(node.first_buffer).ptr
        bit = at + row
        if not validity or ctypes.c_uint8.from_address(validity + bit // 8).value >> bit % 8 & 1:
            raise InvalidData(f"{node.name!r}: expected bytes of a view, found none", rule="B2", row=row)
        out[row * 16 : row * 16 + 16] = bytes(16)


def _less(offsets: Any, start: int, node: "NodeView") -> bytes:
    """Offsets less what they start at, all in one subtraction of long integers: none of them is smaller."""
    width, size = offsets.itemsize, len(offsets) * offsets.itemsize
    ones = int.from_bytes((1).to_bytes(width, _ORDER) * len(offsets), _ORDER)
    try:
        return (int.from_bytes(offsets, _ORDER) - start * ones).to_bytes(size, _ORDER)
    except OverflowError:
        raise InvalidData(f"{node.name!r}: expected offsets in order, found smaller ones", rule="B1") from None
