"""Every test must leave nothing behind, and the figures that the tests stated end the report."""

import gc

import pyarrow as pa
import pytest

import support
from bowstring_ctypes import live_counts


def alive():
    """What is alive of the library and in pyarrow's pool."""
    return live_counts(), pa.total_allocated_bytes()


@pytest.fixture(autouse=True)
def nothing_left():
    """After a test as much is alive as before, which is nothing."""
    before = alive()
    support.start()
    yield
    if alive() != before:
        gc.collect()
    assert alive() == before


def pytest_terminal_summary(terminalreporter):
    """Prints the figures."""
    for line in support.figures():
        terminalreporter.write_line(line)
