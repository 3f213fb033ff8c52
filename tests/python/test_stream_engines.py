"""polars and duckdb as consumers and producers of streams: the cases of stream_engines.py, in a process of their own.

Both have threads, and other tests fork.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import support


def test_engines():
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "stream_engines.py"],
        cwd=Path(__file__).parent,
        env={**os.environ, "POLARS_MAX_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and "skipped" not in run.stdout, run.stdout
    support.figure("tests with polars and duckdb", int(passed[1]), 49)
