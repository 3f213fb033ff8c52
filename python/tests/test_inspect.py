"""The command line: what it says of good, bad and unreadable files, its exit status, on terminals and in pipes."""

import io
import os
import pty
import re
import select
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.feather
import pytest
from moving_cases import NO_GOLDEN, golden_files

from bowstring import _inspect
from bowstring._inspect import Progress, main, said_size

COMMAND = [sys.executable, "-m", "bowstring", "inspect"]


def batch(rows=50):
    return pa.record_batch({
        "id": pa.array(range(rows)),
        "items": pa.array([[{"name": "x" * (i % 9), "n": None if i % 3 else i}] * (i % 4) for i in range(rows)]),
        "name": pa.array([f"name {i}" for i in range(rows)]),
    })


def written(path, batches, kind="stream", **options):
    make = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with make(str(path), batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for one in batches:
            writer.write_batch(one)
    return str(path)


def damaged(path, number, column, row, value):
    """Writes another offset into a column of one batch of a stream, below its `row`."""
    data = path.read_bytes()
    memory = pa.py_buffer(data)
    offsets = list(pa.ipc.open_stream(memory))[number].column(column).buffers()[1]
    at = offsets.address - memory.address + 4 * row
    assert 0 < at < len(data) - 4
    path.write_bytes(data[:at] + value.to_bytes(4, "little", signed=True) + data[at + 4 :])


def test_a_file_word_for_word(tmp_path, capsys):
    path = written(tmp_path / "a.arrows", [batch(), batch(7)])
    assert main(["inspect", path]) == 0
    assert capsys.readouterr().out == f"""{path}
Arrow IPC stream
  struct
    id: int64
    items: list
      item: struct
        name: utf8
        n: int64
    name: utf8
2 batches, 57 rows, 2.62 kB
  batch 0: 50 rows, 2.32 kB
  batch 1: 7 rows, 307 bytes
  nothing found
"""


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_kinds_of_files(tmp_path, capsys, kind):
    for number, options in enumerate(({}, {"compression": "lz4"}, {"compression": "zstd"})):
        path = written(tmp_path / f"{number}.arrow", [batch()] * 12, kind, **options)
        assert main(["inspect", path]) == 0
        said = capsys.readouterr().out
        assert f"Arrow IPC {kind}\n" in said and "12 batches, 600 rows" in said
        assert "\n  ... and 2 more batches\n" in said


def test_feather_and_what_is_no_arrow(tmp_path, capsys):
    path = str(tmp_path / "a.feather")
    pa.feather.write_feather(pa.Table.from_batches([batch()]), path)
    assert main(["inspect", path]) == 0 and "Arrow IPC file" in capsys.readouterr().out
    for name, content, why in (
        ("one", b"FEA1" + bytes(100), "found Feather version 1"),
        ("parquet", b"PAR1" + bytes(100), "found Parquet"),
        ("empty", b"", "found an empty file"),
        ("text", b"a,b,c\n1,2,3\n" * 9, "pyarrow says: "),
        ("cut", (tmp_path / "a.feather").read_bytes()[:-30], "pyarrow says: "),
    ):
        (tmp_path / name).write_bytes(content)
        assert main(["inspect", str(tmp_path / name)]) == 2
        out, error = capsys.readouterr()
        assert "cannot be read" in out and why in out and not error
    assert main(["inspect", str(tmp_path / "nowhere"), path]) == 2
    out = capsys.readouterr().out
    assert "cannot be read: No such file or directory" in out and "nothing found" in out
    assert main(["inspect", str(tmp_path)]) == 2 and "cannot be read" in capsys.readouterr().out


def test_a_stream_that_ends_early_is_told_as_far_as_it_goes(tmp_path, capsys):
    path = tmp_path / "a.arrows"
    written(path, [batch()] * 3)
    path.write_bytes(path.read_bytes()[:-1000])
    assert main(["inspect", str(path)]) == 2
    out = capsys.readouterr().out
    assert "2 batches, 100 rows" in out and "cannot be read: after 2 batches: pyarrow says: " in out
    # What was found until then is told as well.
    damaged_at = tmp_path / "b.arrows"
    written(damaged_at, [batch()] * 3)
    damaged(damaged_at, 0, "name", 7, -5)
    damaged_at.write_bytes(damaged_at.read_bytes()[:-1000])
    assert main(["inspect", str(damaged_at)]) == 2 and "error B1: batch 0: $.name, row 6" in capsys.readouterr().out


def test_damage_is_found_and_placed(tmp_path, capsys):
    path = tmp_path / "a.arrows"
    written(path, [batch()] * 3)
    damaged(path, 1, "name", 7, -5)
    damaged(path, 2, "items", 9, 100_000)
    assert main(["inspect", str(path)]) == 1
    out = capsys.readouterr().out
    assert re.search(r"  error B1: batch 1: \$\.name, row 6: expected an offset .*, found -5", out)
    assert re.search(r"  error B1: batch 2: \$\.items, row 8: .* found 100000", out)
    assert "  batch 0: 50 rows, 2.32 kB\n  batch 1: 50 rows, 2.32 kB, " in out and "nothing found" not in out
    # The structs alone are fine.
    assert main(["inspect", "--level", "structure", str(path)]) == 0
    assert "nothing found" in capsys.readouterr().out


def test_a_limit(tmp_path, capsys):
    columns = {f"c{i}": ["aa", "bb", "cc"] for i in range(30)}
    path = tmp_path / "a.arrows"
    written(path, [pa.record_batch(columns)])
    for i in range(30):
        damaged(path, 0, f"c{i}", 1, 99)
    more = "... and 10 more findings; --limit 0 shows all"
    for limit, shown, left in (("20", 20, more), ("0", 30, None), ("3", 3, "27 more")):
        assert main(["inspect", "--limit", limit, str(path)]) == 1
        out = capsys.readouterr().out
        assert out.count("  error B1: ") == shown and (left is None) == ("more findings" not in out)
        assert left is None or left in out
    # One rule at one column in many batches is told once.
    written(path, [batch()] * 15)
    for number in range(15):
        damaged(path, number, "name", 3, 1 << 30)
    assert main(["inspect", str(path)]) == 1
    out = capsys.readouterr().out
    assert out.count("error B1") == 1 and re.search(r"\(and \d+ more like it\)", out)


def test_profiles(tmp_path, capsys):
    path = written(tmp_path / "a.arrow", [pa.record_batch({"l": pa.array([["x"]], pa.list_view(pa.utf8()))})], "file")
    assert main(["inspect", path]) == 0
    capsys.readouterr()
    for profile in ("cudf_device", "cudf_host", "cudf_owning"):
        assert main(["inspect", "--profile", profile, path]) == 1
        assert re.search(r"error C\d+: batch 0: \$\.l: ", capsys.readouterr().out), profile
    plain = written(tmp_path / "b.arrow", [pa.record_batch({"n": [1, 2, 3]})], "file")
    for profile in ("spec", "cudf_device", "cudf_host"):
        assert main(["inspect", "--profile", profile, plain]) == 0, capsys.readouterr().out


def test_names_cannot_steer_the_terminal(tmp_path, capsys):
    names = ["\x1b[2Jcleared", "new\nline", "\u202eright"]
    fields = [pa.field(name, pa.utf8(), metadata={"k\x1b": "v"}) for name in names]
    schema = pa.schema(fields, metadata={"pandas\n": "{}"})
    path = tmp_path / "a\x1b[31m.arrows"
    written(path, [pa.record_batch([["a", "b"]] * 3, schema=schema)])
    data, memory = path.read_bytes(), pa.py_buffer(path.read_bytes())
    at = next(iter(pa.ipc.open_stream(memory))).column(0).buffers()[1].address - memory.address + 4
    path.write_bytes(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :])
    assert main(["inspect", str(path)]) == 1
    out = capsys.readouterr().out
    assert all(c == "\n" or c.isprintable() for c in out)
    assert "'new\\nline': utf8  metadata: 'k\\x1b'" in out and "a\\x1b[31m.arrows" in out
    assert "struct  metadata: 'pandas\\n'" in out and "error B1: batch 0: $" in out


def test_a_large_schema_is_cut(tmp_path, capsys):
    path = written(tmp_path / "a.arrows", [pa.record_batch({f"c{i}": [i] for i in range(1000)})])
    assert main(["inspect", path]) == 0
    out = capsys.readouterr().out
    assert "  ... and 701 more nodes\n" in out and "c298: " in out and "c299: " not in out


def test_dictionaries_and_extensions_in_the_schema(tmp_path, capsys):
    words = pa.array(["x", "y", "x"]).dictionary_encode()
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], words)
    made = pa.record_batch({"d": words, "l": lists, "u": pa.array([bytes(16)] * 3, pa.uuid())})
    path = written(tmp_path / "a.arrows", [made])
    assert main(["inspect", path]) == 0
    assert """  struct
    d: dictionary<int32>
      <dictionary>: utf8
    l: list
      item: dictionary<int32>
        <dictionary>: utf8
    u: 'arrow.uuid': fixed_size_binary(16)
""" in capsys.readouterr().out


@pytest.mark.skipif(not golden_files(), reason=NO_GOLDEN)
def test_golden_streams(capsys):
    files = [str(path) for path in golden_files()]
    assert main(["inspect", *files]) == 0
    out = capsys.readouterr().out
    assert out.count("Arrow IPC stream\n") == len(files) >= 30 and "error" not in out


def test_wrong_command_lines_are_refused(capsys):
    wrong = ([], ["inspect"], ["inspect", "--level", "deep", "x"], ["inspect", "--limit", "-1", "x"], ["look", "x"])
    for arguments in wrong:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2 and "usage: python -m bowstring" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["inspect", "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    for word in ("exit status:", "--profile", "--level", "--limit", "--color", "NO_COLOR", "Feather"):
        assert word in said
    with pytest.raises(SystemExit):
        main(["--version"])
    assert "bowstring 0." in capsys.readouterr().out


def run(*arguments, **options):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, timeout=120, **options)


def test_as_a_program(tmp_path):
    good = written(tmp_path / "good.arrows", [batch()])
    bad = tmp_path / "bad.arrows"
    written(bad, [batch()])
    damaged(bad, 0, "name", 7, -5)
    for files, status in (([good], 0), ([good, bad], 1), ([bad, good, "nowhere"], 2)):
        done = run(*map(str, files))
        assert done.returncode == status and b"Traceback" not in done.stdout + done.stderr and not done.stderr
    done = run("-", input=bad.read_bytes())
    assert done.returncode == 1 and done.stdout.startswith(b"standard input\nArrow IPC stream\n")
    assert run("-", input=b"nothing").returncode == 2
    # Names that the terminal's encoding does not have.
    greek = written(tmp_path / "greek.arrows", [pa.record_batch({"λ" * 3: [1]})])
    done = run(greek, env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert done.returncode == 0 and b"\\u03bb\\u03bb\\u03bb" in done.stdout


def test_a_reader_that_has_enough(tmp_path):
    path = written(tmp_path / "a.arrows", [pa.record_batch({f"c{i}": [i] for i in range(290)})])
    command = subprocess.Popen([*COMMAND, *[path] * 40], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert command.stdout.readline()
    command.stdout.close()
    error = command.stderr.read()
    command.stderr.close()
    assert command.wait(120) == 141 and not error


def test_without_pyarrow(tmp_path):
    path = written(tmp_path / "a.arrows", [batch()])
    (tmp_path / "pyarrow.py").write_text("raise ImportError('there is none')\n")
    folders = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run(path, env={**os.environ, "PYTHONPATH": folders})
    assert done.returncode == 2 and not done.stderr
    assert b"files are read by pyarrow, which cannot be imported: there is none" in done.stdout


def on_a_terminal(*arguments, **environment):
    """What the command writes to a terminal, standard error with it."""
    ours, theirs = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    command = subprocess.Popen(
        [*COMMAND, *arguments], stdout=theirs, stderr=theirs, stdin=theirs,
        env={**variables, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    said, until = b"", time.monotonic() + 120
    while time.monotonic() < until:
        if select.select([ours], [], [], 1)[0]:
            try:
                some = os.read(ours, 65536)
            except OSError:
                break
            said += some
            if not some:
                break
    os.close(ours)
    assert command.wait(60) in (0, 1)
    return said.decode()


def test_colours(tmp_path):
    path = tmp_path / "a.arrows"
    written(path, [batch()])
    damaged(path, 0, "name", 7, -5)
    coloured = on_a_terminal(str(path))
    assert "\x1b[31;1merror B1\x1b[0m" in coloured and "\x1b[1mitems\x1b[0m: list" in coloured
    for said in (
        on_a_terminal(str(path), NO_COLOR="1"), on_a_terminal("--color", "never", str(path)),
        on_a_terminal(str(path), TERM="dumb"), run(str(path)).stdout.decode(),
    ):
        assert "\x1b[" not in said and "error B1" in said
    assert b"\x1b[31;1merror B1\x1b[0m" in run("--color=always", str(path)).stdout
    assert "\x1b[31;1m" in on_a_terminal("--color", "always", str(path), NO_COLOR="1")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(Progress, "_AFTER", 0)
    monkeypatch.setattr(Progress, "_EVERY", 0)
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    path = written(tmp_path / "a.arrow", [batch()] * 3, "file")
    assert main(["inspect", path]) == 0
    name = _inspect.shortened(path)
    told = screen.getvalue().split("\r\x1b[K")
    assert told == [
        "", f"{name}: 1 of 3 batches, 50 rows, 2.32 kB", f"{name}: 2 of 3 batches, 100 rows, 4.64 kB",
        f"{name}: 3 of 3 batches, 150 rows, 6.95 kB", "",
    ]
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["inspect", path]) == 0 and sys.stderr.getvalue() == ""
    capsys.readouterr()


def test_progress_comes_late(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    progress = Progress("a", screen)
    progress.tell(1, None, 1, 1)
    now[0] = 0.3
    progress.tell(1, None, 1, 1)
    progress.clear()
    assert screen.getvalue() == ""
    now[0] = 1.0
    progress.tell(2, None, 1, 1)
    progress.tell(3, None, 1, 1)
    progress.clear()
    assert screen.getvalue() == "\r\x1b[Ka: 2 batches, 1 row, 1 byte\r\x1b[K"


def test_sizes():
    told = [said_size(size) for size in (0, 1, 999, 1000, 123_456, 999_499, 999_600, 5 * 10**9, 10**16)]
    assert told == ["0 bytes", "1 byte", "999 bytes", "1 kB", "123 kB", "999 kB", "1 MB", "5 GB", "1e+04 TB"]
