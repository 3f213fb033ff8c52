"""``python -m bowstring inspect``: the schema, the batches and the findings of files of Arrow data.

Files are mapped and read by pyarrow, which checks little of what it hands on; the batches come in as they are, and are
checked here. What pyarrow refuses, or cannot survive, no check can say more about.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import contextmanager
from ctypes import byref
from importlib import import_module
from typing import Any, Iterator, NamedTuple, Optional, Sequence

from . import _c
from ._check import LEVELS, PROFILES, Finding
from ._errors import BowstringError
from ._library import __version__, call, lib
from ._tree import kind_said, metadata_of, name_of, number_of, shortened
from ._type import Type

FINE, INVALID, UNREADABLE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
_MOST_NODES, _MOST_BATCHES = 300, 10
_COLOURS = {"error": "31;1", "warning": "33;1", "note": "36;1", "fine": "32", "name": "1", "dim": "2"}
_HELP = f"""\
exit status:
  {FINE}  every file is fine; warnings and notes do not count
  {INVALID}  a file breaks a rule, or does not suit the profile
  {UNREADABLE}  a file cannot be read, or the command line is wrong

Files are Arrow IPC files and streams, Feather version 2 among them; "-" is a stream on the standard input. They are
read by pyarrow, and checked by bowstring as pyarrow hands them on. NO_COLOR in the environment turns colours off.
"""


class Unreadable(Exception):
    """A file cannot be read, and why."""


class Style:
    """Colours, where they are wanted."""

    def __init__(self, wanted: str, stream: Any) -> None:
        self.is_on = wanted == "always" or (
            wanted == "auto" and not os.environ.get("NO_COLOR") and stream.isatty() and os.environ.get("TERM") != "dumb"
        )

    def __call__(self, what: str, text: str) -> str:
        return f"\x1b[{_COLOURS[what]}m{text}\x1b[0m" if self.is_on else text


class Progress:
    """A line on a terminal that says how far it is; nothing elsewhere, and nothing for what is done soon."""

    _AFTER, _EVERY = 0.4, 0.1

    def __init__(self, name: str, stream: Any) -> None:
        self._name, self._stream = name, stream
        self._is_wanted = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._next: Optional[float] = None
        self._is_shown = False

    def tell(self, batches: int, total: Optional[int], rows: int, size: int) -> None:
        """How much was read so far, and how many batches there are, where that is known."""
        now = time.monotonic()
        if self._next is None:
            self._next = now + self._AFTER
        if now < self._next or not self._is_wanted:
            return
        self._next = now + self._EVERY
        self._is_shown = True
        of = f"{batches:,} of " if total is not None else ""
        said = of + number_of(batches if total is None else total, "batch", "es")
        told = f"{self._name}: {said}, {number_of(rows, 'row')}, {said_size(size)}"
        self._stream.write(f"\r\x1b[K{told}")
        self._stream.flush()

    def clear(self) -> None:
        """Takes the line away."""
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


class Group(NamedTuple):
    """Findings of one rule at one node, of which the first is told."""

    first: Finding
    batch: int
    more: int


def said_size(size: int) -> str:
    """A number of bytes for the eye."""
    if size < 1000:
        return number_of(size, "byte")
    amount = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.5 or unit == "TB":
            break
    return f"{amount:.3g} {unit}"


def schema_lines(kind: Type, style: Style) -> Iterator[str]:
    """A type as a tree, a line for each node; of a large one the first nodes."""
    handle, info = kind._handle, _c.TypeNodeInfo()
    call(lib.bowstring_type_node_info, handle, 0, byref(info))
    total = info.subtree_end
    ends: list[tuple[int, Optional[int]]] = []
    for index in range(min(total, _MOST_NODES)):
        call(lib.bowstring_type_node_info, handle, index, byref(info))
        while ends and index >= ends[-1][0]:
            ends.pop()
        metadata = metadata_of(handle, index)
        is_encoded = info.dictionary != _c.NOTHING
        said = kind_said(info.format.decode(), info.flags, is_encoded, metadata, index == 0)
        name = name_of(info.name.decode("utf-8", "replace"))
        if ends and index == ends[-1][1]:
            name = "<dictionary>"
        named = f"{style('name', name)}: " if index else ""
        extra = [key for key in metadata if not key.startswith(b"ARROW:extension:")]
        keys = f"  {style('dim', 'metadata: ' + ', '.join(name_of(key.decode('utf-8', 'replace')) for key in extra))}"
        yield f"{'  ' * (len(ends) + 1)}{named}{said}{keys if extra else ''}"
        ends.append((info.subtree_end, info.dictionary if is_encoded else None))
    if total > _MOST_NODES:
        yield f"  ... and {number_of(total - _MOST_NODES, 'more node')}"


@contextmanager
def opened(path: str) -> Iterator[tuple[Any, str]]:
    """A reader of a file's batches, and what kind of file it is."""
    try:
        pa: Any = import_module("pyarrow")
    except ImportError as error:
        raise Unreadable(f"files are read by pyarrow, which cannot be imported: {error}") from None
    try:
        source = pa.PythonFile(sys.stdin.buffer, "r") if path == "-" else pa.memory_map(path)
        with source:
            start = b"" if path == "-" else source.read(8)
            for magic, what in ((b"FEA1", "Feather version 1"), (b"PAR1", "Parquet")):
                if start.startswith(magic):
                    raise Unreadable(f"expected an Arrow IPC file or stream, found {what}")
            if path != "-":
                source.seek(0)
                if not start:
                    raise Unreadable("expected an Arrow IPC file or stream, found an empty file")
            options = pa.ipc.IpcReadOptions(use_threads=False)
            if start.startswith(b"ARROW1"):
                with pa.ipc.open_file(source, options=options) as reader:
                    yield reader, "file"
            else:
                with pa.ipc.open_stream(source, options=options) as reader:
                    yield reader, "stream"
    except OSError as error:
        # pyarrow repeats the path in what it says of an error of the system's.
        raise Unreadable(os.strerror(error.errno) if error.errno else _said(error)) from error
    except (pa.ArrowException, EOFError) as error:
        raise Unreadable(_said(error)) from error


def _said(error: BaseException) -> str:
    return f"pyarrow says: {shortened(' '.join(str(error).split()) or type(error).__name__, 300)}"


def batches_of(reader: Any, kind: str) -> Iterator[Any]:
    """A reader's batches, one after the other."""
    if kind == "file":
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from reader


class Inspection:
    """One file: what was read of it, and what was found."""

    def __init__(self, path: str, options: Any, style: Style, out: Any) -> None:
        self.path, self.options, self.style, self.out = path, options, style, out
        self.batches: list[tuple[int, int, int]] = []
        self.n_batches = self.n_rows = self.n_bytes = 0
        self.groups: dict[tuple[str, str, str], Group] = {}
        self.counts = {"error": 0, "warning": 0, "note": 0}

    def _print(self, line: str = "") -> None:
        self.out.write(line + "\n")

    def run(self) -> int:
        """Reads and checks the file, says what there is to say, and gives the exit status."""
        name = "standard input" if self.path == "-" else self.path
        self._print(self.style("name", printable(name)))
        progress = Progress(printable(shortened(name)), sys.stderr)
        problem: Optional[Unreadable] = None
        try:
            with opened(self.path) as (reader, kind):
                self._schema(reader.schema, kind)
                total = reader.num_record_batches if kind == "file" else None
                for batch in batches_of(reader, kind):
                    self._batch(batch)
                    progress.tell(self.n_batches, total, self.n_rows, self.n_bytes)
        except Unreadable as error:
            problem = error
        finally:
            progress.clear()
        self._batches()
        self._findings()
        if problem is not None:
            where = f"after {number_of(self.n_batches, 'batch', 'es')}: " if self.n_batches else ""
            self._print(f"  {self.style('error', 'cannot be read')}: {where}{printable(str(problem))}")
            return UNREADABLE
        return INVALID if self.counts["error"] else FINE

    def _schema(self, schema: Any, kind: str) -> None:
        self._print(f"Arrow IPC {kind}")
        try:
            for line in schema_lines(Type(schema), self.style):
                self._print(line)
        except BowstringError as error:
            self._found(Finding("error", error.rule, "", error.path, error.row, error.message), 0)

    def _batch(self, batch: Any) -> None:
        from ._consume import array

        number, found = self.n_batches, sum(self.counts.values())
        size = 0
        try:
            ours = array(batch, via="__arrow_c_device_array__")
            size = ours.nbytes
            device = "cuda:0" if self.options.profile == "cudf_device" else None
            ours.check(
                self.options.profile, device, self.options.level, True, on_finding=lambda one: self._found(one, number)
            )
        except BowstringError as error:
            self._found(Finding("error", error.rule, "", error.path, error.row, error.message), number)
        self.n_batches, self.n_rows, self.n_bytes = number + 1, self.n_rows + batch.num_rows, self.n_bytes + size
        if number < _MOST_BATCHES:
            self.batches.append((batch.num_rows, size, sum(self.counts.values()) - found))

    def _found(self, finding: Finding, batch: int) -> bool:
        self.counts[finding.severity] += 1
        key = finding.severity, finding.rule, finding.path
        known = self.groups.get(key)
        self.groups[key] = Group(finding, batch, 0) if known is None else known._replace(more=known.more + 1)
        return False

    def _batches(self) -> None:
        if not self.n_batches:
            return
        batches = number_of(self.n_batches, "batch", "es")
        self._print(f"{batches}, {number_of(self.n_rows, 'row')}, {said_size(self.n_bytes)}")
        for number, (rows, size, found) in enumerate(self.batches):
            told = f", {number_of(found, 'finding')}" if found else ""
            self._print(f"  batch {number}: {number_of(rows, 'row')}, {said_size(size)}{told}")
        if self.n_batches > _MOST_BATCHES:
            self._print(f"  ... and {number_of(self.n_batches - _MOST_BATCHES, 'more batch', 'es')}")

    def _findings(self) -> None:
        order = {"error": 0, "warning": 1, "note": 2}
        groups = sorted(self.groups.values(), key=lambda group: order[group.first.severity])
        limit = self.options.limit or len(groups)
        for first, batch, more in groups[:limit]:
            row = "" if first.row is None else f", row {first.row}"
            rule = f" {first.rule}" if first.rule else ""
            again = self.style("dim", f" (and {more:,} more like it)") if more else ""
            head = self.style(first.severity, first.severity + rule)
            self._print(f"  {head}: batch {batch}: {printable(first.path)}{row}: {printable(first.message)}{again}")
        if len(groups) > limit:
            self._print(f"  ... and {number_of(len(groups) - limit, 'more finding')}; --limit 0 shows all")
        if not groups and self.n_batches:
            self._print(f"  {self.style('fine', 'nothing found')}")


def printable(text: str) -> str:
    """A text that cannot steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bowstring", description="Looks at columnar data.")
    parser.add_argument("--version", action="version", version=f"bowstring {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    inspect = commands.add_parser(
        "inspect",
        help="show and check files of Arrow data",
        description="Shows schema and batches of files of Arrow data, and checks every value by the rules of Arrow.",
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inspect.add_argument("files", nargs="+", metavar="FILE", help='an Arrow IPC file or stream; "-" for standard input')
    inspect.add_argument(
        "--profile", choices=list(PROFILES), default="spec",
        help="whose reading counts: the specification's, or that of one of libcudf's ways in (default: %(default)s)",
    )
    inspect.add_argument(
        "--level", choices=list(LEVELS), default="full",
        help="how deep: every value, a few numbers of each column, or no value at all (default: %(default)s)",
    )
    inspect.add_argument(
        "--limit", type=_count, default=20, metavar="N",
        help="the most findings to show of a file, 0 for all; those of one rule and column count as one (default: 20)",
    )
    inspect.add_argument(
        "--color", choices=["auto", "always", "never"], default="auto",
        help="colours: auto for terminals (default: auto)",
    )
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line and gives the exit status."""
    options = _parser().parse_args(arguments)
    out = sys.stdout
    if hasattr(out, "reconfigure"):
        # Names of columns may have what the terminal's encoding has not.
        out.reconfigure(errors="backslashreplace")
    style = Style(options.color, out)
    status = FINE
    try:
        for number, path in enumerate(options.files):
            if number:
                out.write("\n")
            status = max(status, Inspection(path, options, style, out).run())
            out.flush()
    except BrokenPipeError:
        # Whoever read has enough. What is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    return status
