"""Streams to the simulated CUDA driver's device; a process for each case, which has one driver."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = ("ahead-means-overlapping", "a-kernel-waits-for-its-copy", "over-devices-and-back")


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    run = subprocess.run(
        [sys.executable, "cuda_streams.py", case], cwd=HERE, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0 and run.stdout.endswith(" batches\n"), run.stdout + run.stderr
