"""The same arrays before other libraries' validators: where they judge otherwise, the list below says why.

pyarrow, nanoarrow and arrow-rs each import an array and validate it in full, in a process that may die of it. They are not
asked about structs that claim memory which is not there. docs/validation.md explains every kind of difference in its
section "Differences"; one that is not listed fails the test. VALIDATE_PEER_ARRAYS is the number of arrays.
"""

import ctypes
import os
import random
from collections import Counter
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
import validate_workers
from slow_checker import ArrayChecker
from slow_schema import FULL, STRUCTURE, Reader, SchemaChecker, Unreadable
from validate_arrays import Arena, Maker, Placed
from validate_differences import ACCEPTED, PEERS, REFUSED, cells, kind_of
from validate_mutations import Mutator

ARRAYS = int(os.environ.get("VALIDATE_PEER_ARRAYS", "500"))
SEED = int(os.environ.get("VALIDATE_SEED", "0"))
MUTATIONS = 9
WORKERS = 2


class Judges:
    """Each judge gets structs of its own to move out of, above memory that it shares."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        self._text = ctypes.create_string_buffer(4096)
        self._calls = {}
        for name in PEERS[1:]:
            call = getattr(library, f"judge_{name.replace('-', '_')}")
            call.restype, call.argtypes = c_int, [c_void_p, c_void_p, c_char_p, c_size_t]
            self._calls[name] = call
        self.releases = tuple(
            ctypes.cast(getattr(library, f"judge_release_{name}"), c_void_p).value for name in ("schema", "array")
        )

    def ask(self, peer, placed):
        """"accepts", or what else it does, and why."""
        schema = bs.ArrowSchema.from_buffer_copy(ctypes.cast(placed.schema, POINTER(bs.ArrowSchema)).contents)
        array = bs.ArrowArray.from_buffer_copy(ctypes.cast(placed.array, POINTER(bs.ArrowArray)).contents)
        at = ctypes.addressof(schema), ctypes.addressof(array)
        if peer == "pyarrow":
            return self._pyarrow(*at[::-1])
        verdict = self._calls[peer](*at, self._text, len(self._text))
        return ("accepts", "refuses", "panics")[verdict], self._text.value.decode(errors="replace") if verdict else ""

    @staticmethod
    def _pyarrow(array, schema):
        try:
            pa.Array._import_from_c(array, schema).validate(full=True)
        except (pa.ArrowException, ValueError, KeyError, TypeError, ArithmeticError, NotImplementedError) as error:
            return "refuses", str(error)
        return "accepts", ""


class Trial:
    """The cases of one process, each before every judge that takes the array as it was before it was changed."""

    def __init__(self, say, place, start):
        self.judges = Judges(os.environ["BOWSTRING_JUDGES"])
        self.say, self.place, self.start = say, place, start
        self.arena = Arena()
        self.reader = Reader(self.arena.read)
        self.step = 0

    def array(self, seed):
        steps = (MUTATIONS + 1) * len(PEERS)
        if self.step + steps <= self.start:
            self.step += steps
            return
        self.arena.clear()
        # Every other array is a strict one, so that not all peers stop at what they do not take at all.
        placed = Placed(self.arena, Maker(seed, strict=seed % 2 == 0).draw(), self.judges.releases)
        if self.verdict(placed) is None:
            # Less memory than it claims, though no rows are in it.
            self.step += steps
            return
        self.case(placed, seed, "nothing")
        n_pieces = len(self.arena.pieces)
        for k in range(MUTATIONS):
            mutation = Mutator(placed, random.Random(f"{seed} {k}")).draw()
            mutation.apply(self.arena)
            self.case(placed, seed, mutation.what)
            mutation.undo(self.arena)
            del self.arena.pieces[n_pieces:]

    def verdict(self, placed):
        """What is wrong, as the slow checker has it; None where nobody can tell."""
        schema, array = SchemaChecker(self.reader), ArrayChecker(self.reader)
        try:
            ty = schema.check(placed.schema)
            if ty:
                array.check(placed.array, ty)
        except Unreadable:
            return None
        found = schema.found + [one for one in array.found if one.level in (STRUCTURE, FULL)]
        faults = list(dict.fromkeys(f"{one.rule} {one.what}" for one in found))
        return None if array.unreadable or array.is_short else faults

    def case(self, placed, seed, change):
        first, self.step = self.step, self.step + len(PEERS)
        if self.step <= self.start:
            return
        faults = self.verdict(placed)
        for step, peer in enumerate(PEERS, first):
            if faults is None or (peer, seed) in NOT_TAKEN or DEADLY[deadly(peer, faults, seed)] >= ENOUGH:
                continue
            if step < self.start:
                # Known to the process that died, if not what came of it.
                if change == "nothing" and self.judges.ask(peer, placed)[0] != "accepts":
                    NOT_TAKEN.add((peer, seed))
                continue
            self.place.note(step)
            # Said before it is asked, in case that it does not come back.
            self.say([peer, faults, seed, change])
            theirs, why = self.judges.ask(peer, placed)
            self.say([theirs, why])
            if change == "nothing" and theirs != "accepts":
                NOT_TAKEN.add((peer, seed))


# What killed a peer so often is not asked again. Both are known to a process that takes over from one that died.
DEADLY, ENOUGH = Counter(), 3
NOT_TAKEN = set()


def deadly(peer, faults, seed):
    """What counts as the same, in the part of one process."""
    return peer, " ".join(faults[:1]), seed % WORKERS


def work(part, start, place, say):
    trial = Trial(say, place, start)
    for seed in part:
        trial.array(seed)


def on_death(question, died):
    peer, faults, seed, change = question
    DEADLY[deadly(peer, faults, seed)] += bool(faults)
    if change == "nothing":
        NOT_TAKEN.add((peer, seed))
    return ["crashes", f"signal {died}"]


def answers(said):
    """Question and answer together."""
    return [(*question, *answer) for question, answer in zip(said[::2], said[1::2], strict=True)]


def test_peers():
    """Every difference is one that is explained."""
    if "BOWSTRING_JUDGES" not in os.environ:
        pytest.skip("skipped: BOWSTRING_JUDGES does not name the library of judges")
    seeds = range(SEED, SEED + ARRAYS)
    said = answers(validate_workers.run(work, [seeds[i::WORKERS] for i in range(WORKERS)], on_death))
    kinds, unexplained = Counter(), {}
    for peer, faults, seed, change, theirs, why in said:
        kind = kind_of(peer, faults, theirs, why)
        kinds[kind] += 1
        if kind is None:
            unexplained.setdefault((peer, *faults, theirs, why[-160:]), f"seed {seed}, changed: {change}")
    for kind, count in kinds.most_common():
        print(f"{kind or 'agreed'}: {count}")
    assert not unexplained, "\n".join(f"{what}: {where}" for what, where in unexplained.items())
    support.figure("verdicts of other validators", len(said), 22 * ARRAYS)
    support.figure("of them ours as well", kinds[""], 18 * ARRAYS)
    support.figure("kinds of differences met", len(kinds) - 1, 34)


def rows_of(document):
    """The rows of the tables in the section on differences, by kind."""
    section = document.split("\n## Differences\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row for row in rows}


def test_documented():
    """The document has each kind, and what each peer does."""
    rows = rows_of((Path(__file__).parents[2] / "docs/validation.md").read_text())
    assert set(rows) == {*REFUSED, *ACCEPTED}
    for kind, row in rows.items():
        assert row[2:5] == cells(kind), kind
        assert len(row) == 6 and row[5], kind
