"""Runs the steps of the bundle one after the other, each in a process of its own, and writes the report.

`run.py` runs all of them, `run.py NAME...` those named, `run.py --list` tells their names and kinds.
"""

import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77
# Everything has to be over after three minutes.
ALL = 172
ANYWHERE, DRIVER, PACKAGES = "anywhere", "driver", "packages"
OLDEST = (3, 10)

# Name, kind, what runs, seconds at most, and what it is about.
# What matters most comes first.
STEPS = [
    ("loads", ANYWHERE, ["step_cpu.py", "loads"], 20, "the library works on the CPU and opens no driver"),
    ("absent", ANYWHERE, ["step_cpu.py", "absent"], 20, "a driver that is not there is an error with the reason"),
    ("columns-cpu", ANYWHERE, ["step_columns.py", "cpu"], 30, "columns of every layout, CPU to CPU"),
    ("c-cpu", ANYWHERE, ["there_and_back", "cpu"], 10, "a C program, CPU to CPU"),
    ("c-plugin", ANYWHERE, ["there_and_back", "plugin"], 10, "a C program with a device of its own"),
    ("device", DRIVER, ["step_cpu.py", "device"], 40, "what the driver says of the machine"),
    ("pointers", DRIVER, ["step_pointers.py", "truth"], 40, "memory of three types is what it says it is"),
    ("claims", DRIVER, ["step_pointers.py", "claims"], 30, "wrong claims are found"),
    ("events", DRIVER, ["step_events.py", "order"], 30, "asynchronous calls behind a kernel that still runs"),
    ("release-after", DRIVER, ["step_events.py", "release_after"], 30, "memory in use by a kernel is kept until it is done"),
    ("columns", DRIVER, ["step_columns.py", "devices"], 60, "columns of every layout around all devices"),
    ("tensors", PACKAGES, ["step_tensors.py", "there"], 60, "cupy to torch, and who frees it"),
    ("tensor-streams", PACKAGES, ["step_tensors.py", "streams"], 60, "cupy on one stream, torch on another"),
    ("malformed", DRIVER, ["step_malformed.py", "faults"], 40, "faults in device memory are those of CPU memory"),
    ("bad-pointers", DRIVER, ["step_malformed.py", "pointers"], 40, "bad pointers are refused"),
    ("capture", DRIVER, ["step_capture.py", "driver"], 20, "a capture is refused and goes on"),
    ("contexts", DRIVER, ["step_contexts.py", "contexts"], 20, "the caller's context is current again"),
    ("c-cuda", DRIVER, ["there_and_back", "cuda"], 20, "a C program, CPU to GPU and back"),
    ("answers", DRIVER, ["step_cpu.py", "answers"], 20, "the simulated driver's guesses, beside this driver"),
    ("bandwidth", DRIVER, ["step_bandwidth.py", "large"], 60, "large copies beside plain ones"),
    ("overhead", DRIVER, ["step_bandwidth.py", "small"], 30, "small copies"),
    ("torch-context", PACKAGES, ["step_contexts.py", "torch"], 60, "torch's context stays current"),
    ("torch-capture", PACKAGES, ["step_capture.py", "torch"], 60, "torch's graphs"),
    ("cupy-capture", PACKAGES, ["step_capture.py", "cupy"], 60, "cupy's graphs"),
    ("pyarrow", DRIVER, ["step_columns.py", "pyarrow"], 40, "every type of pyarrow around all devices"),
    ("peers", DRIVER, ["step_columns.py", "peers"], 30, "from one GPU to another"),
]


def environment():
    """What steps find in their environment."""
    simulator = os.environ.get("BOWSTRING_CUDA_SIM")
    variables = {
        **os.environ,
        "BOWSTRING_LIBRARY": str(library()),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE / "python"), str(HERE), os.environ.get("PYTHONPATH")])),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    if simulator:
        folders = [os.path.join(os.path.abspath(simulator), "full"), os.environ.get("LD_LIBRARY_PATH", "")]
        variables["BOWSTRING_CUDA_SIM"] = os.path.abspath(simulator)
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    return variables


def library():
    return next(iter(sorted((HERE / "lib").glob("libbowstring.so*"))), HERE / "lib/libbowstring.so")


def run_step(name, kind, words, limit):
    """Runs a step to its end; its state, why, its figures, and what it printed."""
    program = HERE / ("bin" if not words[0].endswith(".py") else "") / words[0]
    command = [str(program), *words[1:]]
    variables = environment()
    if words[0].endswith(".py"):
        command = [sys.executable, "-B", *command]
    if kind == DRIVER:
        # Loading a kernel late may wait for one that runs.
        variables.setdefault("CUDA_MODULE_LOADING", "EAGER")
    with tempfile.TemporaryFile() as printed:
        try:
            process = subprocess.Popen(
                command, cwd=HERE, env=variables, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return "failed", f"cannot start {program.name}: {error}", [], ""
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        # Whatever it started goes with it.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass
        if code is None:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass
        printed.seek(0)
        text = printed.read().decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    figures = [line[len("figure: "):] for line in lines if line.startswith("figure: ")]
    last = lines[-1] if lines else "it printed nothing"
    if code is None:
        return "failed", f"not done after {limit:.0f} s; last: {last}", figures, text
    if code == SKIPPED:
        said = [line[len("skipped: "):] for line in lines if line.startswith("skipped: ")]
        return ("skipped", said[-1], figures, text) if said else ("failed", "skipped without a reason", figures, text)
    if code < 0:
        return "failed", f"died of {signal.Signals(-code).name}; last: {last}", figures, text
    if code or last != "the end":
        return "failed", f"ended with {code}: {last}", figures, text
    return "passed", "", figures, text


def output(*command):
    """What a program prints, or nothing."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def make_runnable():
    """The folder may have been carried by something that forgets what can be run."""
    for program in (HERE / "bin").glob("*"):
        if not os.access(program, os.X_OK):
            try:
                program.chmod(0o755)
            except OSError as error:
                print(f"{program} cannot be made runnable: {error}")


def package_versions():
    from importlib import metadata

    found = {}
    for package in metadata.distributions():
        name = (package.metadata["Name"] or "").lower()
        if name in ("torch", "numpy", "pyarrow") or name.startswith("cupy"):
            found[name] = package.version
    return found


def machine():
    """What the report says of the machine."""
    about = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "system": platform.platform(), "libc": " ".join(platform.libc_ver()), "processors": os.cpu_count(),
        "python": platform.python_version(), "packages": package_versions(),
        "simulated": bool(os.environ.get("BOWSTRING_CUDA_SIM")),
        "nvidia_smi": output("nvidia-smi", "--query-gpu=name,driver_version,memory.total,pstate", "--format=csv,noheader"),
        "nvcc": (output("nvcc", "--version").splitlines() or [""])[-1],
    }
    try:
        about["bundle"] = json.loads((HERE / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        about["bundle"] = f"no manifest: {error}"
    return about


def text_report(about, results):
    """The report for people. A line in brackets says how a step ended."""
    lines = ["bowstring on a GPU", ""]
    if about["simulated"]:
        lines += ["ON THE SIMULATED DRIVER: this proves nothing about a GPU.", ""]
    for key, value in about.items():
        lines.append(f"{key}: {value if not isinstance(value, dict) else json.dumps(value)}")
    lines += [""]
    for step in results:
        lines.append(summary(step))
        lines += [f"    {figure}" for figure in step["figures"]]
        if step["state"] == "failed":
            lines += [f"    | {line}" for line in step["output"].splitlines()[-40:]]
    return "\n".join(lines) + "\n\n" + last_line(about, results) + "\n"


def summary(step):
    why = f": {step['why']}" if step["why"] else ""
    return f"[{step['state']}] {step['name']} ({step['seconds']:.1f} s){why}"


def last_line(about, results):
    counts = {state: sum(step["state"] == state for step in results) for state in ("passed", "failed", "skipped")}
    on_gpu = sum(step["state"] == "passed" and step["kind"] != ANYWHERE for step in results)
    where = "the simulated driver" if about["simulated"] else "a GPU"
    said = ", ".join(f"{n} {state}" for state, n in counts.items())
    return f"{said}; {on_gpu} of the passed ran on {where}"


def write_report(about, results):
    """Writes both reports; they are complete up to now even if this is the last that is done."""
    folder = Path(os.environ.get("OUT") or HERE)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.txt").write_text(text_report(about, results))
        (folder / "report.json").write_text(json.dumps({"machine": about, "steps": results}, indent=1) + "\n")
    except OSError as error:
        print(f"the report cannot be written to {folder}: {error}")
        return None
    return folder


def main(words):
    if words == ["--list"]:
        for name, kind, *_ in STEPS:
            print(name, kind)
        return 0
    if sys.version_info < OLDEST:
        print(f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed, found {platform.python_version()}; PYTHON may name another")
        return 1
    unknown = set(words) - {step[0] for step in STEPS}
    if unknown:
        print(f"there is no step {', '.join(sorted(unknown))}")
        return 1
    started, about, results = time.monotonic(), machine(), []
    make_runnable()
    for name, kind, command, limit, what in STEPS:
        if words and name not in words:
            continue
        begun = time.monotonic()
        left = ALL - (begun - started)
        if left < 3:
            state, why, figures, text = "failed", "not begun: the three minutes are over", [], ""
        else:
            state, why, figures, text = run_step(name, kind, command, min(limit, left))
        if state == "passed" and about["simulated"] and kind != ANYWHERE:
            why = "on the simulated driver"
        results.append({
            "name": name, "kind": kind, "about": what, "state": state, "why": why, "figures": figures,
            "seconds": round(time.monotonic() - begun, 2), "output": text[-20000:],
        })
        print(summary(results[-1]), flush=True)
        write_report(about, results)
    folder = write_report(about, results)
    print()
    width = max(len(step["name"]) for step in results)
    for step in results:
        print(f"{step['name']:<{width}}  {step['state']:<8} {step['seconds']:5.1f} s  {step['why'] or step['about']}"[:160])
    print()
    if about["simulated"] or not any(step["state"] == "passed" and step["kind"] != ANYWHERE for step in results):
        print("NO STEP RAN ON A GPU.")
    print(last_line(about, results))
    print(f"the report: {folder / 'report.txt' if folder else 'not written'}")
    return 1 if folder is None or any(step["state"] == "failed" for step in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
