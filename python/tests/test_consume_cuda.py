"""Device memory on the simulated CUDA driver, in a process of its own, because a process has one driver."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def test_cuda():
    if not os.environ.get("BOWSTRING_CUDA_SIM"):
        pytest.skip("no simulated CUDA driver: BOWSTRING_CUDA_SIM is not set")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "cuda_protocols.py"],
        cwd=Path(__file__).parent, capture_output=True, text=True, timeout=600,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and int(passed[1]) >= 50 and "skipped" not in run.stdout, run.stdout
