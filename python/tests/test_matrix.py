"""Data from every library to every other through bowstring: values, addresses, releases, and the page about it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from matrix import chain, libraries, page, run

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
TORCH_PAGE = PAGE.with_name("matrix-torch.md")
PRODUCERS = [producer.name for producer in libraries.PRODUCERS] + ["jax"]


@pytest.fixture(scope="module")
def ways():
    """Every cell, and what went wrong."""
    return run.everything()


@pytest.mark.parametrize("producer", PRODUCERS)
def test_values_arrive_and_everything_is_let_go(ways, producer):
    found, broken = ways
    wrong = [one for one in broken if one.producer == producer]
    assert not wrong, "\n".join(map(str, wrong))
    states = Counter(cell.state for cell in found if cell.producer == producer)
    assert states[chain.ZERO] + states[chain.COPY] + states[chain.READ] >= 50, states


def test_the_page_says_what_happens(ways):
    found, _ = ways
    expected, written = page.text(found).splitlines(), PAGE.read_text().splitlines()
    differences = [f"- {old}\n+ {new}" for old, new in zip(written, expected) if old != new]
    assert expected == written, "run `cargo xtask matrix --write`:\n" + "\n".join(differences[:20])


@pytest.mark.skipif(not libraries.has_torch(), reason="skipped: torch is not installed")
def test_torch_gets_and_gives_what_its_page_says():
    found, broken = run.with_torch()
    assert not broken, "\n".join(map(str, broken))
    states = Counter(cell.state for cell in found)
    assert states[chain.ZERO] >= 300, states
    expected, written = page.text_with_torch(found).splitlines(), TORCH_PAGE.read_text().splitlines()
    differences = [f"- {old}\n+ {new}" for old, new in zip(written, expected) if old != new]
    assert expected == written, "run `python -m matrix --write` with torch:\n" + "\n".join(differences[:20])


def test_most_ways_are_without_a_copy(ways):
    found, _ = ways
    there = [cell for cell in found if cell.state != chain.MISSING]
    assert len(there) >= 4000
    between = [cell for cell in there if {cell.producer, cell.consumer} <= {"pyarrow", "nanoarrow", "arro3", "pandas"}]
    # Between libraries that hold Arrow's own layouts nothing is copied by bowstring.
    assert not [cell for cell in between if cell.whose == "bowstring"]


def test_a_fault_is_seen():
    """A consumer that changes a value, and one that keeps what it was given, are told from good ones."""
    (case,) = [case for case in chain_cases() if case.name == "int64"]
    good = libraries.CONSUMERS[0]
    kept = []
    changed = good._replace(values=lambda array: [*array.to_pylist()[:-1], None])
    keeping = good._replace(take=lambda array: kept.append(array) or good.take(array))
    for consumer, words in ((good, None), (changed, "expected ["), (keeping, "held afterwards")):
        found, broken = [], []
        chain.walk(libraries.PRODUCERS[0], consumer, case, found, broken)
        kept.clear()
        assert [cell.state for cell in found] == [chain.ZERO]
        assert (words is None and not broken) or words in broken[0].what, broken


def chain_cases():
    from matrix.cases import cases

    return cases()
