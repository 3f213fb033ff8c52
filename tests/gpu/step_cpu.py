"""What needs no GPU: the library by itself, and what it says where there is no driver. Also what the driver says of itself."""

import ctypes
import difflib
import os
import subprocess
import sys
from ctypes import byref, c_int64
from pathlib import Path

import gpu

HERE = Path(__file__).resolve().parent


def opened():
    """The CUDA libraries that this process has mapped."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/" in line}
    return sorted(path for path in paths if os.path.basename(path).startswith(("libcuda", "libnvidia")))


def loads():
    import bowstring_ctypes as bs
    import columns

    assert opened() == [], opened()
    made = columns.imported(columns.nested())
    bs.call("array_validate", made, None)
    copy = columns.to(made, columns.CPU)
    bs.lib.bowstring_array_release(copy)
    bs.lib.bowstring_array_release(made)
    assert opened() == [], f"work on the CPU opened {opened()}"
    gpu.figure("version", f"{bs.lib.bowstring_version().decode()}, ABI {bs.lib.bowstring_abi_version()}")


def absent():
    """Without a driver, or with one that is told to show no device."""
    # Read by a driver that is there when it is first called.
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "CUDA_SIM": "devices=0"}
    done = subprocess.run(
        [sys.executable, "-B", __file__, "ask"], env=variables, capture_output=True, text=True, timeout=15
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr.strip()[-300:]}"


def ask():
    import bowstring_ctypes as bs
    import columns

    made = columns.imported(columns.nested())
    calls = {
        "probe": lambda: bs.call("device_probe", 2, byref(c_int64())),
        "copy": lambda: bs.lib.bowstring_array_release(columns.to(made, bs.Device(2, 0))),
        "allocate": lambda: bs.call("buffer_allocate", bs.Device(13, 0), 8, None, byref(ctypes.c_void_p()), byref(ctypes.c_void_p())),
    }
    for name, function in calls.items():
        try:
            function()
        except bs.BowstringError as error:
            assert error.status == bs.DEVICE_UNAVAILABLE, error
            assert "driver" in error.message or "device" in error.message, error
            gpu.figure(name, error)
        else:
            # A container may show its devices whatever the variable says.
            raise AssertionError(f"{name} went well without a device")
    bs.lib.bowstring_array_release(made)


def device():
    driver = gpu.Driver()
    for name, value in driver.describe().items():
        gpu.figure(name, value)
    import bowstring_ctypes as bs

    count = c_int64()
    for kind in (2, 3, 13):
        bs.call("device_probe", kind, byref(count))
        assert count.value == driver.n_devices, (kind, count.value)


def answers():
    """Asks this driver what the simulated one was made to answer. A difference is no failure: it is what we want to know."""
    gpu.Driver(current=False)
    name = "libcuda.so.1"
    if gpu.IS_SIMULATED:
        name = os.path.join(os.environ["BOWSTRING_CUDA_SIM"], "full", name)
    done = subprocess.run([HERE / "bin/answers", name], capture_output=True, text=True, timeout=15)
    expected = (HERE / "bin/answers.txt").read_text().splitlines()
    found = done.stdout.splitlines()
    difference = list(difflib.unified_diff(expected, found, "the simulated driver", "this driver", n=0, lineterm=""))
    changed = [line for line in difference if line[0] in "+-" and line[:3] not in ("+++", "---")]
    # In pairs, so that a changed answer counts once.
    gpu.figure("differs in", f"{sum(line[0] == '+' for line in changed)} lines of {len(expected)}")
    for line in difference:
        gpu.figure("difference", line)
    assert done.returncode == 0, f"the program ended with {done.returncode} after {len(found)} answers: {done.stderr}"
    assert not gpu.IS_SIMULATED or not changed


if __name__ == "__main__":
    gpu.main({"loads": loads, "absent": absent, "ask": ask, "device": device, "answers": answers})
