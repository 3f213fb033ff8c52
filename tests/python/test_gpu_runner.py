"""The runner of the GPU bundle: how steps end, and what the report and the exit status make of that."""

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / "gpu" / "run.py"

ENDS = {
    "print('figure: speed: 3'); print('the end')": ("passed", ""),
    "print('skipped: no wind'); raise SystemExit(77)": ("skipped", "no wind"),
    "raise SystemExit(77)": ("failed", "skipped without a reason"),
    "assert False, 'it rained'": ("failed", "ended with 1: AssertionError: it rained"),
    "print('half')": ("failed", "ended with 0: half"),
    "import os; os.kill(os.getpid(), 11)": ("failed", "died of SIGSEGV; last: it printed nothing"),
    "print('slow', flush=True); import time; time.sleep(60)": ("failed", "not done after 1 s; last: slow"),
    "import sys; print(b'\\xff'); sys.stdout.buffer.write(b'\\xff\\n'); print('the end')": ("passed", ""),
}


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """The runner in a bundle of its own."""
    spec = importlib.util.spec_from_file_location("gpu_run", RUN)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    monkeypatch.delenv("BOWSTRING_CUDA_SIM", raising=False)
    return module


def placed(runner, name, code):
    """A step that runs this code."""
    (runner.HERE / f"{name}.py").write_text(code)
    return (name, runner.DRIVER, [f"{name}.py"], 10, f"about {name}")


@pytest.mark.parametrize("code", ENDS)
def test_how_steps_end(runner, code):
    name, kind, words, *_ = placed(runner, "one", code)
    state, why, figures, text = runner.run_step(name, kind, words, 1 if "slow" in code else 20)
    assert (state, why) == ENDS[code], text
    assert figures == (["speed: 3"] if "figure" in code else [])


def test_what_a_step_started_ends_with_it(runner):
    code = "import subprocess, sys; p = subprocess.Popen(['sleep', '50']); print(p.pid); print('the end')"
    *_, text = runner.run_step(*placed(runner, "one", code)[:3], 20)
    stat = Path(f"/proc/{int(text.split()[0])}/stat")
    for _ in range(100):
        # It may be left for somebody to ask how it ended.
        if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("what the step started is still there")


def test_a_program_that_is_not_there(runner):
    state, why, *_ = runner.run_step("none", runner.DRIVER, ["none"], 5)
    assert state == "failed" and why.startswith("cannot start none: ")


def test_the_report_and_the_status(runner, monkeypatch, capsys):
    good = placed(runner, "good", "print('figure: speed: 3'); print('the end')")
    idle = placed(runner, "idle", "print('skipped: no wind'); raise SystemExit(77)")
    bad = placed(runner, "bad", "assert False, 'it rained'")
    monkeypatch.setattr(runner, "STEPS", [good, idle])
    assert runner.main([]) == 0
    assert "NO STEP RAN ON A GPU" not in capsys.readouterr().out
    monkeypatch.setattr(runner, "STEPS", [good, idle, bad])
    assert runner.main(["idle"]) == 0
    assert "NO STEP RAN ON A GPU" in capsys.readouterr().out
    assert runner.main([]) == 1
    report = (runner.HERE / "out/report.txt").read_text()
    assert "[passed] good (" in report and "    speed: 3\n" in report and "s): no wind\n" in report
    assert "s): ended with 1: AssertionError: it rained\n" in report
    told = json.loads((runner.HERE / "out/report.json").read_text())
    assert [step["state"] for step in told["steps"]] == ["passed", "skipped", "failed"]
    assert told["machine"]["python"] and told["machine"]["date"]
    assert runner.main(["unknown"]) == 1


def test_time_that_is_over_is_a_failure(runner, monkeypatch):
    monkeypatch.setattr(runner, "STEPS", [placed(runner, "good", "print('the end')")])
    monkeypatch.setattr(runner, "ALL", 0)
    assert runner.main([]) == 1


def test_the_list():
    done = subprocess.run([sys.executable, "-B", RUN, "--list"], capture_output=True, text=True, timeout=20)
    kinds = dict(line.split() for line in done.stdout.splitlines())
    assert done.returncode == 0 and len(kinds) > 20 and set(kinds.values()) == {"anywhere", "driver", "packages"}
