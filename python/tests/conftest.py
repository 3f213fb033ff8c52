"""What the tests of the package share."""

import gc

import pytest

import bowstring


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Every test leaves no more alive than it found."""
    gc.collect()
    before = bowstring.live_counts()
    yield
    gc.collect()
    after = bowstring.live_counts()
    assert after == before, f"expected {before} to be alive, found {after}"
