"""CUDA on the simulated driver: each case of cuda_cases.py, and what becomes of drivers that are not there or not whole."""

import subprocess
import sys
from pathlib import Path

import pytest

import cuda_sim

HERE = Path(__file__).parent

CASES = (
    "every-type-between-all-devices", "nothing-is-left", "contexts-are-restored", "default-streams",
    "captures-are-refused", "wrong-queue", "every-driver-call-fails", "unknown-numbers-stay",
    "addresses-are-kept-apart", "validation-there", "tensors-there", "shared-memory",
)

# Counts devices, and does what needs none before; says whether a driver was loaded by then.
LOOK = """
import ctypes, pyarrow as pa, support
from bowstring_ctypes import BowstringError, Device, TransferOptions, Sync, byref, c_bool, c_int64, c_void_p, call, lib

def loaded():
    return "libcuda" in open("/proc/self/maps").read()

host = support.imported(pa.record_batch({"a": pa.array([1, None, 3]), "b": pa.array(["x", "y", None])}))
copy = c_void_p()
call("array_to_device", host, Device(1, -1), None, byref(copy), None)
raw = support.exported(copy)
print("loaded" if loaded() else "not loaded")

def probe():
    count = c_int64(7)
    try:
        call("device_probe", 2, byref(count))
        return f"{count.value} devices"
    except BowstringError as error:
        assert count.value == 0
        return f"{lib.bowstring_status_name(error.status).decode()} {error.native_code} {error.message}"

print(probe())
print(probe())
print("loaded" if loaded() else "not loaded")

def there(mode):
    to = c_void_p()
    try:
        call("array_to_device", host, Device(2, 0), byref(TransferOptions(sync=Sync(mode, 0, None))), byref(to), None)
        back = c_void_p()
        call("array_to_device", to, Device(1, -1), byref(TransferOptions(sync=Sync(2, 0, None))), byref(back), None)
        got = support.to_pyarrow(*support.exported(back))
        assert got.to_pydict() == {"a": [1, None, 3], "b": ["x", "y", None]}
        lib.bowstring_array_release(to)
        return "there and back"
    except BowstringError as error:
        return f"{lib.bowstring_status_name(error.status).decode()} {error.message}"

print(there(3))
print(there(2))
"""


def look(variant, settings=""):
    """What a process says whose driver is that variant."""
    environment = cuda_sim.environment(variant or "full", settings)
    if variant is None:
        environment.pop("LD_LIBRARY_PATH")
    run = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=HERE, env=environment, capture_output=True, text=True, timeout=120
    )
    # A library that prints is no library.
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    return run.stdout.splitlines()


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    run = subprocess.run(
        [sys.executable, "cuda_cases.py", case], cwd=HERE, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    # Every case says how much it did.
    assert run.stdout.strip() and not run.stdout.startswith("0 "), run.stdout


def test_every_case_is_run():
    import ast

    tree = ast.parse((HERE / "cuda_cases.py").read_text())
    listed = next(node for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "CASES")
    names = {name.id.replace("_", "-") for name in ast.walk(listed) if isinstance(name, ast.Name)}
    assert set(CASES) <= names and len(CASES) == len(names - {"CASES", "one"})


def test_the_driver_is_opened_by_the_first_call():
    before, first, second, after, *copies = look("full")
    assert (before, first, second, after) == ("not loaded", "2 devices", "2 devices", "loaded")
    assert copies == ["there and back", "there and back"]


def test_no_driver():
    before, first, second, after, *copies = look(None)
    assert (before, after) == ("not loaded", "not loaded")
    # The failure is kept, and says the same again.
    assert first == second and first.startswith("DEVICE_UNAVAILABLE ") and "CUDA driver" in first
    assert all(copy.startswith("DEVICE_UNAVAILABLE") for copy in copies)


def test_no_device():
    _, first, second, _, *copies = look("full", "devices=0")
    assert first == second and first.startswith("DEVICE_UNAVAILABLE 100 ")
    assert all(copy.startswith("DEVICE_UNAVAILABLE") for copy in copies)


def test_a_stub():
    _, first, second, _, *copies = look("stub")
    assert first == second and first.startswith("DEVICE_UNAVAILABLE 34 ")
    assert all(copy.startswith("DEVICE_UNAVAILABLE") for copy in copies)


def test_a_driver_without_pools():
    assert look("no_async_memory")[4:] == ["there and back", "there and back"]
    assert look("full", "memory_pools=0")[4:] == ["there and back", "there and back"]


def test_a_driver_without_a_function():
    without_waiting, waiting = look("no_event_record")[4:]
    assert "cuEventRecord" in without_waiting and without_waiting.startswith("UNSUPPORTED")
    assert waiting == "there and back"
