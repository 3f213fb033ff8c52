"""One way through bowstring, for one type: taken, handed on, compared, and let go."""

from __future__ import annotations

import gc
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pyarrow as pa

import bowstring

from . import addresses
from .cases import Case, same
from .libraries import Consumer, Missing, Producer

ZERO, PARTLY, COPY, READ, REFUSED, MISSING = "zero-copy", "partly", "copy", "read", "refused", "missing"
PACKAGE = Path(bowstring.__file__).parent


class Cell(NamedTuple):
    """What became of one case on its way from one library to another."""

    producer: str
    consumer: str
    case: str
    state: str
    whose: str = ""  # who copied or refused
    why: str = ""  # the words of a refusal


class Broken(NamedTuple):
    """A way on which values changed, or something was not let go."""

    producer: str
    consumer: str
    case: str
    what: str


def _state() -> tuple[dict[str, int], int]:
    return bowstring.live_counts(), pa.total_allocated_bytes()


def _settled(before: Any, source: Any, references: int) -> Optional[str]:
    """What is still held, which cycles and other threads get a little time to let go."""
    for attempt in range(20):
        now = _state()
        held = sys.getrefcount(source) - 1  # less this function's own
        if now == before and held == references:
            return None
        gc.collect()
        if attempt:
            time.sleep(0.01)
    return f"held afterwards: {now} and {held} references, before: {before} and {references}"


def _kept(shown: Optional[list[int]], known: Optional[list[int]]) -> str:
    """How much of what is shown lies where it lay before."""
    if shown is None:
        return READ
    if known is None:
        return COPY
    kept = [address in known for address in shown]
    return ZERO if all(kept) else PARTLY if any(kept) else COPY


def _blame(error: BaseException, peer: str) -> str:
    """Who refused: the package, or the library that called it or that it called."""
    return "bowstring" if _is_ours(error) else peer


def _is_ours(error: BaseException) -> bool:
    if isinstance(error, bowstring.BowstringError):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(frames[-1].filename).parent == PACKAGE


def _words(error: BaseException) -> str:
    """The first line of a message, without what another run has otherwise."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    line = re.sub(r"0x[0-9a-f]+", "0x…", line)
    if _is_ours(error):
        # What was found is the type, which the row says.
        line = line.removeprefix("$: ").split(", found ")[0]
    return line if len(line) <= 160 else line[:157].rstrip() + "…"


def walk(producer: Producer, consumer: Consumer, case: Case, found: list[Cell], broken: list[Broken]) -> None:
    """Takes one case from one library to the other, and notes what became of it."""
    names = producer.name, consumer.name, case.name
    try:
        source = producer.make(case.array)
    except Missing:
        found.append(Cell(*names, MISSING))
        return
    known, again = producer.addresses(source), producer.addresses(source)
    before, references = _state(), sys.getrefcount(source)
    cell, wrong = _over(producer, consumer, case, source, known, known == again)
    left = _settled(before, source, references)
    found.append(cell)
    broken += [Broken(*names, what) for what in (wrong, left) if what]


def _over(
    producer: Producer, consumer: Consumer, case: Case, source: Any, known: Optional[list[int]], stable: bool
) -> tuple[Cell, Optional[str]]:
    names = producer.name, consumer.name, case.name
    try:
        ours = producer.take(source)
    except Exception as error:
        return Cell(*names, REFUSED, _blame(error, producer.name), _words(error)), None
    try:
        taken = consumer.take(ours)
    except (KeyboardInterrupt, MemoryError):
        raise
    # A library in Rust may panic, which is not an Exception.
    except BaseException as error:
        return Cell(*names, REFUSED, _blame(error, consumer.name), _words(error)), None
    values = consumer.values(taken)
    wrong = None if same(case.array, values) else f"expected {case.array.to_pylist()}, found {values}"
    of_ours = addresses.of(ours)
    came, went = _kept(of_ours, known), _kept(consumer.addresses(taken), of_ours)
    if went == READ:
        return Cell(*names, READ, consumer.name), wrong
    if came != ZERO:
        # A library that has other addresses at each export makes the buffers for it.
        return Cell(*names, came, "bowstring" if stable and known is not None else producer.name), wrong
    whose = "" if went == ZERO else "bowstring" if consumer.by_bowstring else consumer.name
    return Cell(*names, went, whose), wrong
