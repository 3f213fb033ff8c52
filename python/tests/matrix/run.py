"""All ways, in two processes: jax has threads that nobody else's tests should meet."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

from . import libraries
from .cases import cases
from .chain import Broken, Cell, walk

TESTS = Path(__file__).parent.parent


def _walk(producers: list[libraries.Producer], consumers: list[libraries.Consumer]) -> tuple[list[Cell], list[Broken]]:
    found: list[Cell] = []
    broken: list[Broken] = []
    gc.collect()
    # What is there before needs not be looked at each time that something may hang in a cycle.
    gc.freeze()
    for case in cases():
        for producer in producers:
            for consumer in consumers:
                walk(producer, consumer, case, found, broken)
    return found, broken


def with_jax() -> tuple[list[Cell], list[Broken]]:
    """What has jax at one end or at both; for a process of its own."""
    producer, consumer = libraries.jax_producer(), libraries.jax_consumer()
    found, broken = _walk([producer], [*libraries.CONSUMERS, consumer])
    for part, more in zip((found, broken), _walk(libraries.PRODUCERS, [consumer])):
        part.extend(more)  # type: ignore[arg-type]
    return found, broken


def with_torch() -> tuple[list[Cell], list[Broken]]:
    """What has torch at one end or at both, jax apart."""
    producer, consumers = libraries.torch_producer(), libraries.torch_consumers()
    found, broken = _walk([*libraries.PRODUCERS, producer], consumers)
    for part, more in zip((found, broken), _walk([producer], libraries.CONSUMERS)):
        part.extend(more)  # type: ignore[arg-type]
    producers = ["torch", *(producer.name for producer in libraries.PRODUCERS)]
    found.sort(key=lambda cell: producers.index(cell.producer))
    return found, broken


def everything() -> tuple[list[Cell], list[Broken]]:
    """Every cell in the page's order, and everything that went wrong."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    child = subprocess.Popen(
        [sys.executable, "-m", "matrix", "--with-jax"], cwd=TESTS, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        found, broken = _walk(libraries.PRODUCERS, libraries.CONSUMERS)
    finally:
        output, _ = child.communicate(timeout=600)
    if child.returncode:
        raise RuntimeError(f"the process with jax ended with {child.returncode}")
    theirs = json.loads(output.splitlines()[-1])
    found += [Cell(*cell) for cell in theirs["found"]]
    broken += [Broken(*one) for one in theirs["broken"]]
    producers = [producer.name for producer in libraries.PRODUCERS] + ["jax"]
    consumers = [consumer.name for consumer in libraries.CONSUMERS] + ["jax"]
    order = [case.name for case in cases()]

    def place(cell: Cell) -> tuple[int, int, int]:
        return producers.index(cell.producer), order.index(cell.case), consumers.index(cell.consumer)

    found.sort(key=place)
    return found, broken


def show_with_jax() -> None:
    """The cells with jax, for the process that asked."""
    found, broken = with_jax()
    print(json.dumps({"found": found, "broken": broken}))
