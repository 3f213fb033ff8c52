"""Arrays for notebooks: a folded line for each node, its buffers in a table, all in one element with its own style."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Iterator

from ._tree import Limits, Shown, nulls_of, number_of, shortened, size_of, tree_of

if TYPE_CHECKING:
    from ._array import Array

LIMITS = Limits(children=40, depth=12, nodes=160, buffers=8)

# Colours are few and translucent, so that they also suit pages whose theme is not the system's.
_STYLE = """
.bowstring{font:13px/1.5 system-ui,sans-serif;max-width:60em;--line:#8884;--dim:#666;--kind:#0b5394;--name:#7a3e00}
@media(prefers-color-scheme:dark){.bowstring{--line:#aaa5;--dim:#aaa;--kind:#8ec7ff;--name:#ffc58a}}
.bowstring details{margin:0 0 0 .35em;padding:0 0 0 .8em;border-left:1px solid var(--line)}
.bowstring>details{margin:0;padding:0;border:0}
.bowstring summary{cursor:pointer;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.bowstring b{font-weight:600;color:var(--name)}
.bowstring code,.bowstring td{font-family:ui-monospace,monospace;font-size:12px;background:none}
.bowstring code{color:var(--kind)}
.bowstring i{font-style:normal;color:var(--dim)}
.bowstring table{border-collapse:collapse;margin:0 0 .3em 1.1em}
.bowstring td{padding:0 1.2em 0 0;border:0;text-align:left;color:var(--dim)}
.bowstring td+td+td{text-align:right;padding-right:0}
"""
STYLE = "".join(_STYLE.split("\n"))


def _buffers(shown: Shown, device: Any) -> Iterator[str]:
    if not shown.buffers:
        return
    yield "<table>"
    for view in shown.buffers:
        where = "" if view.device == device else f" on {view.device}"
        address = f"0x{view.ptr:x}" if view.ptr else "none"
        yield f"<tr><td>{escape(view.role)}</td><td>{address}{escape(where)}</td><td>{escape(size_of(view))}</td></tr>"
    if shown.more_buffers:
        yield f'<tr><td colspan="3">and {number_of(shown.more_buffers, "more buffer")}</td></tr>'
    yield "</table>"


def _node(shown: Shown, device: Any, notes: str, is_open: bool) -> Iterator[str]:
    node = shown.node
    offset = f", offset {node.offset:,}" if node.offset else ""
    name = f"<b>{escape(shown.name)}</b> " if shown.name else ""
    yield f"<details{' open' if is_open else ''}><summary>{name}<code>{escape(shown.kind)}</code> "
    yield f"<i>{number_of(node.length, 'row')}, {nulls_of(node)}{offset}{escape(notes)}</i></summary>"
    yield from _buffers(shown, device)
    for child in shown.children:
        yield from _node(child, device, "", False)
    if shown.more:
        yield f"<i>and {number_of(shown.more, 'more node')}</i>"
    yield "</details>"


def html_of(array: "Array") -> str:
    """An array as one element of HTML."""
    device, event = array.device, array.sync_event
    notes = f", on {device}" + (f", after event 0x{event:x}" if event else "")
    tree = tree_of(array, LIMITS)
    source = escape(f"bowstring.Array from {shortened(str(array.source))}")
    body = "".join(_node(tree, device, notes, True))
    return f'<div class="bowstring" title="{source}"><style>{STYLE}</style>{body}</div>'
