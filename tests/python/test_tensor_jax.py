"""jax as a consumer and a producer of legacy tensors: the cases of test_tensor_peers.py, in a process of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import support


def test_jax():
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-k", "jax", "test_tensor_peers.py"],
        cwd=Path(__file__).parent,
        env={**os.environ, "BOWSTRING_TESTS_WITH": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and "skipped" not in run.stdout, run.stdout
    support.figure("tests with jax", int(passed[1]), 2)
