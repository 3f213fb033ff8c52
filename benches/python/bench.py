"""What a hand-over costs in Python: bowstring beside the library that does the same without it, as ratios.

Each round measures every case with one library and then with the other, so a ratio compares neighbours in time. With
--instructions callgrind counts those of whole hand-overs instead, which do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, NamedTuple

import nanoarrow.device
import numpy as np
import pyarrow as pa

import bowstring

COLUMNS, ROWS = 10, 1000
ROUND_NS = 10_000_000
# Under callgrind: the hand-overs that are whole trips, and how often each is made.
COUNTED, COUNTED_TURNS = 2, 2000
Op = Callable[[], object]


class Case(NamedTuple):
    """The same work by bowstring and by a peer."""

    name: str
    ours: Op
    peer: str
    theirs: Op


class Hidden:
    """An object that only answers the device interface, as another library's would: nobody knows what is behind it."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __arrow_c_device_array__(self, requested_schema: object = None, **kwargs: object) -> object:
        return self._held.__arrow_c_device_array__(requested_schema)


def batches() -> list[Case]:
    """W9: a batch of ten nullable columns on its way through Python."""
    column = pa.array(np.arange(ROWS), mask=np.arange(ROWS) % 7 == 0)
    batch = pa.RecordBatch.from_arrays([column] * COLUMNS, [f"column_{i}" for i in range(COLUMNS)])
    foreign, ours = Hidden(batch), bowstring.array(batch)
    c_device_array = nanoarrow.device.c_device_array
    theirs = c_device_array(batch)
    hidden_ours, hidden_theirs = Hidden(ours), Hidden(theirs)
    assert pa.record_batch(bowstring.array(batch)).equals(batch) and pa.record_batch(foreign).equals(batch)
    return [
        Case(
            "W9 pyarrow to pyarrow, through bowstring or at once",
            lambda: pa.record_batch(bowstring.array(batch)), "pyarrow", lambda: pa.record_batch(foreign),
        ),
        Case(
            "W9 to itself through capsules",
            lambda: bowstring.array(hidden_ours), "nanoarrow", lambda: c_device_array(hidden_theirs),
        ),
        Case("W9 taken from pyarrow", lambda: bowstring.array(batch), "nanoarrow", lambda: c_device_array(batch)),
        Case("W9 taken from pyarrow", lambda: bowstring.array(foreign), "pyarrow", lambda: pa.record_batch(foreign)),
        Case("W9 handed out", ours.__arrow_c_device_array__, "nanoarrow", theirs.__arrow_c_device_array__),
        Case("W9 handed out", ours.__arrow_c_device_array__, "pyarrow", batch.__arrow_c_device_array__),
    ]


def tensors() -> list[Case]:
    """W8: a column without nulls as a DLPack tensor."""
    numbers = np.zeros(ROWS, dtype=np.float32)
    ours = bowstring.array(numbers)
    assert np.from_dlpack(ours).ctypes.data == numbers.ctypes.data
    return [
        Case(
            "W8 shown as a tensor", lambda: ours.__dlpack__(max_version=(1, 0)),
            "numpy", lambda: numbers.__dlpack__(max_version=(1, 0)),
        ),
        Case("W8 numpy takes it", lambda: np.from_dlpack(ours), "numpy", lambda: np.from_dlpack(numbers)),
        Case(
            "W8 taken from numpy", lambda: bowstring.array(numbers, via="__dlpack__"),
            "numpy", lambda: np.from_dlpack(numbers),
        ),
    ]


def turn_ns(op: Op, turns: int) -> float:
    """The processor time of one turn, of this thread."""
    start = time.thread_time_ns()
    for _ in range(turns):
        op()
    return (time.thread_time_ns() - start) / turns


def turns_of(op: Op) -> int:
    """How often a turn fits into a round's time, after some warm-up."""
    turns = 10
    while (took := turn_ns(op, turns) * turns) < ROUND_NS / 4:
        turns *= 4
    return max(1, int(turns * ROUND_NS / took))


def measure(cases: list[Case], rounds: int) -> list[tuple[Case, list[float], list[float]]]:
    """Each case's times, a pair for each round."""
    turns = [(turns_of(case.ours), turns_of(case.theirs)) for case in cases]
    found: list[tuple[Case, list[float], list[float]]] = [(case, [], []) for case in cases]
    for _ in range(rounds):
        for (case, ours, theirs), (our_turns, their_turns) in zip(found, turns):
            ours.append(turn_ns(case.ours, our_turns))
            theirs.append(turn_ns(case.theirs, their_turns))
    return found


def turns_alone(which: int, turns: int) -> None:
    """A process that callgrind watches: every counted hand-over once, and then one of them so many times."""
    ops = [op for case in batches()[:COUNTED] for op in (case.ours, case.theirs)]
    for op in ops:
        op()
    for _ in range(turns):
        ops[which]()


def instructions_of(which: int, turns: int) -> int:
    """The instructions of such a process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        watched = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}"]
        told = [sys.executable, __file__, "--alone", str(which), str(turns)]
        subprocess.run([*watched, *told], check=True, stdout=subprocess.DEVNULL, timeout=900)
        found = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)
    assert found, "callgrind counted nothing"
    return int(found[1])


def counted() -> str:
    """The instructions of each whole hand-over, as a table."""
    jobs = [(0, 0), *((which, COUNTED_TURNS) for which in range(2 * COUNTED))]
    with ThreadPoolExecutor(2) as pool:
        before, *after = pool.map(lambda job: instructions_of(*job), jobs)
    each = [(total - before) / COUNTED_TURNS for total in after]
    rows = [("case", "instructions", "peer", "peer's", "ratio")]
    for at, case in enumerate(batches()[:COUNTED]):
        ours, theirs = each[2 * at:2 * at + 2]
        rows.append((case.name, f"{ours:.0f}", case.peer, f"{theirs:.0f}", f"{ours / theirs:.2f}"))
    return lines_of(rows)


def table(found: list[tuple[Case, list[float], list[float]]]) -> str:
    """The times and ratios as a table."""
    rows = [("case", "ns", "peer", "peer's ns", "ratio", "range")]
    for case, ours, theirs in found:
        ratios = sorted(mine / other for mine, other in zip(ours, theirs))
        rows.append((
            case.name, f"{statistics.median(ours):.0f}", case.peer, f"{statistics.median(theirs):.0f}",
            f"{statistics.median(ratios):.2f}", f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
        ))
    return lines_of(rows)


def lines_of(rows: "list[tuple[str, ...]]") -> str:
    """Rows of cells under their headings."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def main() -> None:
    """Measures everything and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--instructions", action="store_true", help="count those of whole hand-overs, with valgrind")
    parser.add_argument("--alone", nargs=2, type=int, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.alone:
        return turns_alone(*told.alone)
    if told.instructions:
        return print(counted())
    rounds = max(1, told.rounds)
    before = bowstring.live_counts()
    print(table(measure(batches() + tensors(), rounds)))
    # Types of schemas that were seen are kept for the next time.
    left = {kind: n for kind, n in bowstring.live_counts().items() if kind != "types"}
    assert left == before, f"still alive: {left}"


if __name__ == "__main__":
    main()
