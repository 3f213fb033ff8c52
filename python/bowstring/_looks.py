"""How the package's objects look: as text and as HTML. Nothing here waits, calls a driver or reads a buffer."""

from __future__ import annotations

import ctypes
from ctypes import byref
from typing import TYPE_CHECKING, Any, Iterator

from ._library import call, lib
from ._tree import Limits, Shown, nulls_of, number_of, shortened, size_of, tree_of

if TYPE_CHECKING:
    from ._array import Array
    from ._buffer import Buffer
    from ._stream import Stream
    from ._type import Type

LIMITS = Limits(children=20, depth=10, nodes=60, buffers=6)
_LONGEST = 1000


def type_text(handle: int, longest: int) -> str:
    """The text of a type; of a long one only the start, and how much follows."""
    needed = ctypes.c_size_t()
    text = ctypes.create_string_buffer(longest + 1)
    call(lib.bowstring_type_to_text, handle, text, longest + 1, byref(needed))
    start = text.value.decode("utf-8", "replace")
    more = needed.value - 1 - len(text.value)
    return start if more <= 0 else f"{start}... and {more:,} more bytes"


def _lines(shown: Shown, indent: str, device: Any) -> Iterator[str]:
    node = shown.node
    offset = f", offset {node.offset:,}" if node.offset else ""
    name = f"{shown.name}: " if shown.name else ""
    yield f"{indent}{name}{shown.kind}, length {node.length:,}, {nulls_of(node)}{offset}"
    indent += "  "
    for view in shown.buffers:
        where = "" if view.device == device else f", on {view.device}"
        yield f"{indent}[{view.role}] " + (f"0x{view.ptr:x}, {size_of(view)}{where}" if view.ptr else "none")
    if shown.more_buffers:
        yield f"{indent}... and {number_of(shown.more_buffers, 'more buffer')}"
    for child in shown.children:
        yield from _lines(child, indent, device)
    if shown.more:
        yield f"{indent}... and {number_of(shown.more, 'more node')}"


def _shown_bytes(array: "Array", index: int) -> int:
    view = array.buffer_view(index)
    if not view.ptr:
        return 0
    _, bits, lanes = view.element
    if view.bufsize < 0 and view.device.is_cpu:
        node = array.node(view.node)
        if view.role == "variadic":
            told = array.buffer_view(node.first_buffer + node.n_buffers - 1).ptr
            at = told + 8 * (index - node.first_buffer - 2)
            return max(int(ctypes.c_int64.from_address(at).value), 0) if told else 0
        offsets = array.buffer_view(index - 1) if index > node.first_buffer else view
        if offsets.role != "offsets" or offsets.count < 2 or not offsets.ptr:
            return 0
        number: Any = ctypes.c_int64 if offsets.element[1] == 64 else ctypes.c_int32
        width = offsets.element[1] // 8
        at = offsets.ptr + offsets.first * width
        end = number.from_address(at + (offsets.count - 1) * width).value
        return int(max(end - number.from_address(at).value, 0))
    if view.role == "data" and lanes == 0:
        return max(view.bufsize, 0) * view.count // max(view.n_elements, 1)
    return int((max(view.count, 0) * bits * lanes + 7) // 8)


class ArrayLooks:
    """An `Array` for the eye."""

    __slots__ = ()

    def __repr__(self: "Array") -> str:  # type: ignore[misc]
        if not getattr(self, "_handle", 0):
            return "<bowstring.Array that was never made>"
        device, event = self.device, self.sync_event
        wait = f", after event 0x{event:x}" if event else ""
        head = f"<bowstring.Array on {device}{wait}, from {shortened(str(self.source))}>"
        return "\n".join([head, *_lines(tree_of(self, LIMITS), "", device)])

    @property
    def nbytes(self: "Array") -> int:  # type: ignore[misc]
        """Bytes of the buffers, as far as the array shows them.

        Nothing is read off the CPU. What only other buffers tell, such as the items of a list, counts whole; bytes that
        several buffers share count once for each; those of unknown size count 0.
        """
        return sum(_shown_bytes(self, index) for index in range(self._counts()[1]))

    def __sizeof__(self: "Array") -> int:  # type: ignore[misc]
        """As other array libraries have it: with the bytes of the buffers, by which schedulers weigh objects."""
        return object.__sizeof__(self) + self.nbytes

    def _repr_html_(self: "Array") -> str:  # type: ignore[misc]
        """The tree for notebooks: a folded line for each node, its buffers in a table; its own style, no scripts."""
        from ._html import html_of

        return html_of(self)


class BufferLooks:
    """A `Buffer` for the eye."""

    __slots__ = ()

    def __sizeof__(self: "Buffer") -> int:  # type: ignore[misc]
        return object.__sizeof__(self) + max(self.bufsize, 0)

    def __repr__(self: "Buffer") -> str:  # type: ignore[misc]
        if not getattr(self, "_handle", 0):
            return "<bowstring.Buffer that was never made>"
        size, event = self.bufsize, self.sync_event
        wait = f", after event 0x{event:x}" if event else ""
        said = "of unknown size" if size < 0 else f"of {number_of(size, 'byte')}"
        return f"<bowstring.Buffer {said} at 0x{self.ptr:x} on {self.device}{wait}>"


class StreamLooks:
    """A `Stream` for the eye."""

    __slots__ = ()

    def __repr__(self: "Stream") -> str:  # type: ignore[misc]
        if not getattr(self, "_handle", None):
            return "<bowstring.Stream that was closed or handed on>"
        kind = type_text(lib.bowstring_stream_type(self._handle), _LONGEST)
        return f"<bowstring.Stream of {kind} on {self.device}, from {shortened(str(self.source))}>"


class TypeLooks:
    """A `Type` for the eye."""

    __slots__ = ()

    def __repr__(self: "Type") -> str:  # type: ignore[misc]
        if not getattr(self, "_handle", 0):
            return "<bowstring.Type that was never made>"
        return f"bowstring.Type({type_text(self._handle, _LONGEST)!r})"
