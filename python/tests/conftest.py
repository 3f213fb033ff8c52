"""What the tests of the package share."""

import gc

import pytest

import bowstring
from bowstring import _pyarrow


def pytest_collection_finish():
    """What the libraries brought stays, and need not be looked at after each test."""
    gc.collect()
    gc.freeze()


def _forget():
    """Lets go what is kept for the next time, and what is unreachable."""
    _pyarrow._seen.clear()
    _pyarrow.lanes.clear()
    gc.collect()


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Every test leaves no more alive than it found."""
    _forget()
    before = bowstring.live_counts()
    yield
    _forget()
    after = bowstring.live_counts()
    assert after == before, f"expected {before} to be alive, found {after}"
