"""The matrix as a page."""

from __future__ import annotations

from .chain import COPY, MISSING, PARTLY, READ, REFUSED, ZERO, Cell
from .libraries import PACKAGES, versions

HEAD = """# From every library to every other

Written by `cargo xtask matrix --write`, which takes each array from the library in the heading to the one in the
column, through bowstring, and compares: the values, the address of every buffer that holds anything, and what is still
held when all is let go. A run whose cells are not these fails, and so does one in which values differ or a release is
missing.

With {versions}.

| in a cell | |
|---|---|
| = | zero copy: every buffer is where it was |
| ≈ *library* | some buffers are where they were; the library made the others, such as offsets of another width |
| copy *library* | the library made all buffers anew |
| read | the library read the values into its own memory as it does with everybody's |
| – *n* | refused, for the reason of that number at the end of the page; it begins with whose it is |

What no address can be compared of is compared by its values alone: duckdb makes new buffers whenever it hands data out,
and reads into its own when it takes some. Validity bitmaps without a null in them are not compared, nor are the sizes
of a view's buffers, which whoever hands out makes. pandas gives columns with Arrow's types, and takes what it is given
into its own. distributed serialises and reads back, in one process. jax runs in a process of its own. torch, which not
every machine has, has [a page of its own](matrix-torch.md). Not run here: CuPy, and every GPU.
"""

HEAD_WITH_TORCH = """# From torch and to torch

As [matrix.md](matrix.md), which says what the cells mean, for what has torch at one end or at both, on the CPU. The same
command writes it where torch is installed, and compares it there with what happens; elsewhere it stays as it is, and the
tests say that they skipped it.

With {versions}.
"""


def _mark(cell: Cell, numbers: dict[str, int]) -> str:
    if cell.state == ZERO:
        return "="
    if cell.state == REFUSED:
        reason = f"{cell.whose}: {cell.why}"
        return f"– {numbers.setdefault(reason, len(numbers) + 1)}"
    return {PARTLY: f"≈ {cell.whose}", COPY: f"copy {cell.whose}", READ: "read"}[cell.state]


def _table(producer: str, cells: list[Cell], numbers: dict[str, int]) -> str:
    consumers = list(dict.fromkeys(cell.consumer for cell in cells))
    cases = list(dict.fromkeys(cell.case for cell in cells))
    at = {(cell.case, cell.consumer): cell for cell in cells}
    missing = [case for case in cases if any(at[case, name].state == MISSING for name in consumers)]
    # Types that fare alike share a row.
    rows: dict[tuple[str, ...], list[str]] = {}
    for case in cases:
        if case not in missing:
            rows.setdefault(tuple(_mark(at[case, name], numbers) for name in consumers), []).append(case)
    lines = [f"## From {producer}", "", f"| type | {' | '.join(consumers)} |", "|---" * (len(consumers) + 1) + "|"]
    lines += [f"| {', '.join(names)} | {' | '.join(marks)} |" for marks, names in rows.items()]
    if missing:
        lines += ["", f"{producer} has no such type, or not of these values: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def _plain(reason: str) -> str:
    """A reason that no reader of Markdown takes for anything but text."""
    return "".join("\\" + letter if letter in "<>*_`|[]" else letter for letter in reason)


def text(cells: list[Cell]) -> str:
    """The whole page."""
    return _text(HEAD.format(versions=versions()), cells)


def text_with_torch(cells: list[Cell]) -> str:
    """The whole page of what has torch at one end."""
    return _text(HEAD_WITH_TORCH.format(versions=versions((*PACKAGES[:-1], "torch"))), cells)


def _text(head: str, cells: list[Cell]) -> str:
    producers = list(dict.fromkeys(cell.producer for cell in cells))
    numbers: dict[str, int] = {}
    tables = [_table(name, [cell for cell in cells if cell.producer == name], numbers) for name in producers]
    reasons = ["## Reasons", "", *(f"{number}. {_plain(reason)}" for reason, number in numbers.items())]
    states = (ZERO, PARTLY, COPY, READ, REFUSED)
    counts = [f"{sum(cell.state == state for cell in cells)} {state}" for state in states]
    account = f"\n{sum(cell.state != MISSING for cell in cells)} ways: {', '.join(counts)}.\n\n"
    return head + account + "\n".join([*tables, *reasons, ""])
