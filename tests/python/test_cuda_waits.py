"""Each wait in the device code is needed: its scenario passes here, and fails in the build that leaves it out.

`cargo xtask mutants` makes those builds and runs the test of the same name on each.
"""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REGISTRY = HERE.parent.parent / "core" / "src" / "device" / "waits.rs"


def registered():
    """The names of the waits, as the library's source lists them."""
    lines = REGISTRY.read_text().split("waits! {", 1)[1].split("\n}", 1)[0].splitlines()
    return [line.split('"')[1] for line in lines if '"' in line and not line.strip().startswith("//")]


WAITS = registered()


def test_every_wait_has_a_scenario():
    import ast

    source = (HERE / "cuda_waits.py").read_text()
    functions = {node.name.replace("_", "-") for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    assert len(WAITS) == len(set(WAITS)) >= 14
    assert set(WAITS) <= functions


@pytest.mark.parametrize("wait", WAITS)
def test_wait(wait):
    run = subprocess.run(
        [sys.executable, "cuda_waits.py", wait], cwd=HERE, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr
