"""An array's tree as plain values for the eye: what to show of it, and how names, types and sizes are said.

Nothing here waits, calls a driver or reads a buffer: only numbers that are in CPU memory anyway.
"""

from __future__ import annotations

from ctypes import byref
from typing import TYPE_CHECKING, NamedTuple

from . import _c
from ._library import call, lib

if TYPE_CHECKING:
    from ._array import Array, BufferView, NodeView

_LETTERS = {
    "n": "null", "b": "bool", "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32",
    "l": "int64", "L": "uint64", "e": "float16", "f": "float32", "g": "float64", "z": "binary", "Z": "large_binary",
    "u": "utf8", "U": "large_utf8", "vz": "binary_view", "vu": "utf8_view", "tdD": "date32", "tdm": "date64",
    "tts": "time32(s)", "ttm": "time32(ms)", "ttu": "time64(us)", "ttn": "time64(ns)", "tDs": "duration(s)",
    "tDm": "duration(ms)", "tDu": "duration(us)", "tDn": "duration(ns)", "tiM": "interval(months)",
    "tiD": "interval(day_time)", "tin": "interval(month_day_nano)", "+l": "list", "+L": "large_list",
    "+vl": "list_view", "+vL": "large_list_view", "+s": "struct", "+m": "map", "+r": "run_end_encoded",
}
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
_LONGEST = 60


class Limits(NamedTuple):
    """How much of a tree is shown."""

    children: int
    depth: int
    nodes: int
    buffers: int


class Shown(NamedTuple):
    """A node as it is shown.

    Attributes
    ----------
    name : str
        What the node is called within its parent, ready to print; ``""`` for a root without a name.
    kind : str
        Its type, without its children's.
    node : NodeView
        Its numbers.
    buffers : list of BufferView
        Its own buffers, as many as are shown.
    more_buffers : int
        How many there are beyond them.
    children : list of Shown
        Its children and its dictionary, as many as are shown.
    more : int
        How many nodes below it are not shown.
    """

    name: str
    kind: str
    node: "NodeView"
    buffers: "list[BufferView]"
    more_buffers: int
    children: "list[Shown]"
    more: int


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A text without its middle, where it is too long."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 2 // 3]}…{text[len(text) - longest // 3 + 1 :]}"


def name_of(name: str) -> str:
    """A name, in quotes and with escapes where it is not a plain word."""
    name = shortened(name)
    return name if name and name.replace("_", "a").isalnum() and name.isascii() else repr(name)


def kind_of(form: str) -> str:
    """The type that a format string says, without children."""
    known = _LETTERS.get(form)
    if known is not None:
        return known
    head, _, tail = form.partition(":")
    if head == "d":
        precision, scale, *bits = tail.split(",")
        return f"decimal{bits[0] if bits else 128}({precision}, {scale})"
    if head == "w":
        return f"fixed_size_binary({tail})"
    if head == "+w":
        return f"fixed_size_list({tail})"
    if head in ("+ud", "+us"):
        return f"{'dense' if head == '+ud' else 'sparse'}_union"
    if head[:2] == "ts" and head[2:] in _UNITS:
        import json

        return f"timestamp({_UNITS[head[2:]]}{', ' + json.dumps(shortened(tail)) if tail else ''})"
    return shortened(form)


def number_of(count: int, what: str, ending: str = "s") -> str:
    """A count and what is counted, in the plural where it is not one."""
    return f"{count:,} {what}{'' if count == 1 else ending}"


def size_of(view: "BufferView") -> str:
    """The size of a buffer."""
    if not view.ptr:
        return ""
    return "size unknown" if view.bufsize < 0 else number_of(view.bufsize, "byte")


def nulls_of(node: "NodeView") -> str:
    """The number of nulls, as far as it is known."""
    if node.null_count == 0:
        return "no nulls"
    return "nulls unknown" if node.null_count < 0 else number_of(node.null_count, "null")


def metadata_of(kind: int, index: int) -> dict[bytes, bytes]:
    """The metadata of a node of a type's handle."""
    from ._type import _metadata

    info = _c.TypeNodeInfo()
    call(lib.bowstring_type_node_info, kind, index, byref(info))
    return _metadata(info.metadata, info.metadata_bytes)


def kind_said(form: str, flags: int, is_encoded: bool, metadata: dict[bytes, bytes], is_root: bool) -> str:
    """The type of a node, with what its dictionary, its extension and its flags make of it."""
    kind = f"dictionary<{kind_of(form)}>" if is_encoded else kind_of(form)
    extension = metadata.get(b"ARROW:extension:name")
    if extension is not None:
        kind = f"{name_of(extension.decode('utf-8', 'replace'))}: {kind}"
    return kind if flags & 2 or is_root else f"{kind} not null"


def tree_of(array: "Array", limits: Limits) -> Shown:
    """What is shown of an array's tree."""

    def shown(index: int, name: str, depth: int, room: int) -> tuple[Shown, int]:
        """A node with what of its subtree there is room for, and how many nodes that makes."""
        node = array.node(index)
        metadata = metadata_of(lib.bowstring_array_type(array._handle), index)
        kind = kind_said(node.format, node.flags, node.dictionary >= 0, metadata, index == 0)
        n_buffers = min(node.n_buffers, limits.buffers)
        buffers = [array.buffer_view(node.first_buffer + k) for k in range(n_buffers)]
        n_below = node.n_children + (node.dictionary >= 0)
        n_shown = min(n_below, limits.children, room - 1) if depth < limits.depth else 0
        codes = node.format.partition(":")[2].split(",") if node.format.startswith("+u") else []
        children: list[Shown] = []
        used, at = 1, index + 1
        for number in range(n_shown):
            below = array.node(at)
            called = name_of(below.name)
            if at == node.dictionary:
                called = "<dictionary>"
            elif number < len(codes):
                called = f"#{codes[number]} {called}"
            # No column takes the room of those after it.
            child, n = shown(at, called, depth + 1, max((room - used) // (n_shown - number), 1))
            children.append(child)
            used += n
            at = below.subtree_end
        return Shown(name, kind, node, buffers, node.n_buffers - n_buffers, children, node.subtree_end - at), used

    root = array.node(0)
    return shown(0, name_of(root.name) if root.name else "", 0, limits.nodes)[0]
