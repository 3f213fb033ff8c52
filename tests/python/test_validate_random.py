"""The validator against a slow checker that shares nothing with it.

Random arrays of every type, each changed in one member, pointer, byte or number, are checked at every level by both: the
same rules must be broken at the same nodes, with the same first row. The memory ends where the arrays end, so reading one
byte too many ends the process. VALIDATE_ARRAYS is the number of arrays where more than the usual number are wanted, and
VALIDATE_SEED the first of them.
"""

import ctypes
import os
import random
from collections import Counter
from ctypes import POINTER, byref, c_void_p

import pytest

import bowstring_ctypes as bs
import support
import validate_arrays
import validate_calls
import validate_workers
from bowstring_ctypes import lib
from slow_checker import ArrayChecker
from slow_schema import BOUNDS, FULL, STRUCTURE, Reader, SchemaChecker, Unreadable
from validate_arrays import Arena, Maker, Placed
from validate_calls import ARRAY, HOST, SCHEMA, Listener
from validate_mutations import Mutator

ARRAYS = int(os.environ.get("VALIDATE_ARRAYS", "1000"))
N_KINDS = len(validate_arrays.LEAVES) + len(validate_arrays.BRANCHES)
LONG = max(N_KINDS, ARRAYS // 20)
SEED = int(os.environ.get("VALIDATE_SEED", "0"))
MUTATIONS = 9
WORKERS = 2


def broken(findings):
    """The first row of each rule at each node."""
    rows = {}
    for rule, path, row in findings:
        rows.setdefault((rule, path), row)
    return rows


def at_level(findings, level):
    return [(one.rule, one.path, one.row) for one in findings if one.level in (STRUCTURE, level)]


class Comparison:
    """Both checkers on the arrays of one process."""

    def __init__(self, arena):
        self.arena, self.listener, self.count = arena, Listener(), Counter()
        self.reader = Reader(self.arena.read)
        self.formats, self.faults = set(), set()
        self._releases = [
            ctypes.CFUNCTYPE(None, POINTER(struct))(lambda raw: setattr(raw.contents, "release", None))
            for struct in (bs.ArrowSchema, bs.ArrowArray)
        ]
        self.releases = tuple(ctypes.cast(release, c_void_p).value for release in self._releases)

    def array(self, seed, maker, node, mutations):
        """An array as it is, and with each of its mutations."""
        self.arena.clear()
        placed = Placed(self.arena, node, self.releases)
        self.formats |= maker.formats
        self.rng = random.Random(f"windows {seed}")
        assert self.case(placed) == (0, 0), "expected what was made valid to be valid"
        self.count["valid arrays"] += 1
        n_pieces = len(self.arena.pieces)
        for k in range(mutations):
            mutation = Mutator(placed, random.Random(f"{seed} {k}")).draw()
            mutation.apply(self.arena)
            try:
                self.case(placed)
                self.count["mutated arrays"] += 1
            except Exception as error:
                error.add_note(f"mutation {k}: {mutation}\nof {node}")
                raise
            finally:
                mutation.undo(self.arena)
                del self.arena.pieces[n_pieces:]

    def agree(self, where, findings, told, first):
        """Both found the same, and the same first."""
        mine = broken(findings)
        assert mine == broken(told), f"{where}: expected {mine}, found {broken(told)}"
        assert not findings or findings[0] == first, f"{where}: expected {findings[0]} first, found {first}"
        self.count["verdicts"] += 1

    def case(self, placed):
        """Checks schema and array; the statuses at full level."""
        checker = SchemaChecker(self.reader)
        try:
            ty = checker.check(placed.schema)
        except Unreadable:
            self.count["claims of memory that is not there"] += 1
            return None
        status, first, told = self.listener.ask(SCHEMA, c_void_p(placed.schema))
        self.agree("schema", at_level(checker.found, STRUCTURE), told, first)
        self.faults |= {f"{one.rule} {one.what}" for one in checker.found}
        made, made_status = validate_calls.type_of(placed.schema)
        assert bool(made) == (status == 0), f"schema_validate says {status}, type_copy_from {made_status}"
        if not made:
            self.count["schemas refused"] += 1
            return status, None
        try:
            return status, self.typed(placed, ty, made)
        finally:
            lib.bowstring_type_release(made)

    def typed(self, placed, ty, made):
        checker = ArrayChecker(self.reader)
        try:
            checker.check(placed.array, ty)
        except Unreadable:
            self.count["claims of memory that is not there"] += 1
            return None
        levels = (STRUCTURE,) if checker.unreadable else (STRUCTURE, BOUNDS, FULL)
        self.count["claims of memory that is not there"] += checker.unreadable
        for level in levels:
            status, first, told = self.listener.ask(HOST, c_void_p(placed.array), made, level=level)
            self.agree(f"array at level {level}", at_level(checker.found, level), told, first)
        self.count["refused"] += bool(told)
        if len(levels) == 3:
            self.faults |= {f"{one.rule} {one.what}" for one in checker.found}
        is_sound = not at_level(checker.found, STRUCTURE)
        self.imported(placed, ty, made, checker, levels, is_sound)
        return status

    def imported(self, placed, ty, made, checker, levels, is_sound):
        """Import takes what has a sound structure; the array that it makes is found to hold the same."""
        raw = ctypes.cast(placed.array, POINTER(bs.ArrowArray)).contents
        moved, handle, error = bs.ArrowArray.from_buffer_copy(raw), c_void_p(), bs.Error()
        status = lib.bowstring_array_import_host_typed(byref(moved), made, byref(handle), byref(error))
        assert (status == bs.OK) == is_sound, f"import says {status}, expected sound structure {is_sound}"
        if status:
            return
        try:
            for level in levels:
                _, first, told = self.listener.ask(ARRAY, handle, level=level)
                self.agree(f"imported array at level {level}", at_level(checker.found, level), told, first)
            self.count["imported arrays"] += 1
            if len(levels) == 3:
                self.window(placed, ty, handle, raw.length)
        finally:
            lib.bowstring_array_release(handle)

    def window(self, placed, ty, handle, length):
        offset = self.rng.randint(0, length)
        rows = self.rng.randint(0, length - offset)
        if (offset, rows) == (0, length):
            return
        checker = ArrayChecker(self.reader)
        checker.check(placed.array, ty, (offset, rows))
        part = bs.out("array_slice", handle, offset, rows)
        try:
            for level in () if checker.unreadable else (STRUCTURE, BOUNDS, FULL):
                _, first, told = self.listener.ask(ARRAY, part, level=level)
                where = f"rows {offset} to {offset + rows} at level {level}"
                self.agree(where, at_level(checker.found, level), told, first)
            self.count["windows"] += 1
        finally:
            lib.bowstring_array_release(part)


def compare(arena, seeds, place, say, draw):
    """Compares what `draw` makes of each seed."""
    comparison = Comparison(arena)
    for step, seed in enumerate(seeds):
        place.note(step)
        try:
            comparison.array(seed, *draw(seed))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    say([dict(comparison.count), sorted(comparison.formats), sorted(comparison.faults)])


def work_on_short(part, start, place, say):
    def draw(seed):
        maker = Maker(seed, null_keys=True)
        return maker, maker.draw(), MUTATIONS

    compare(Arena(), part[start:], place, say, draw)


def work_on_long(part, start, place, say):
    def draw(seed):
        maker, rng = Maker(seed, null_keys=True), random.Random(f"long {seed}")
        kind = (validate_arrays.LEAVES + validate_arrays.BRANCHES)[seed % N_KINDS]
        rows = rng.choice((62, 131, 1023, 1090, 4090, 4170)) if seed >= N_KINDS else 4170
        depth = 1 if kind in validate_arrays.LEAVES else 2
        return maker, maker.node(rows, depth, leaf=kind), MUTATIONS // 2

    compare(Arena(64, 160), part[start:], place, say, draw)


def all_of(work, seeds):
    """What the processes counted and met between them."""
    count, formats, faults = Counter(), set(), set()
    for counted, seen, found in validate_workers.run(work, [seeds[i::WORKERS] for i in range(WORKERS)]):
        count.update(counted)
        formats |= set(seen)
        faults |= set(found)
    for name in sorted(count):
        print(f"{name}: {count[name]}")
    return count, formats, faults


def test_random_arrays():
    """Both checkers say the same of every array, and nothing is read that is not there."""
    count, formats, faults = all_of(work_on_short, range(SEED, SEED + ARRAYS))
    support.figure("validated random arrays", count["valid arrays"], ARRAYS)
    support.figure("one change each", count["mutated arrays"], ARRAYS * MUTATIONS)
    support.figure("their verdicts compared", count["verdicts"], 58 * ARRAYS)
    support.figure("of them refused", count["refused"], 3 * ARRAYS)
    support.figure("windows on them", count["windows"], 3 * ARRAYS)
    assert formats == {*validate_arrays.LEAVES, *validate_arrays.BRANCHES}
    support.figure("kinds of faults", len(faults), 60)
    missing = {*"S1 S3 S5 S6 F1 F2 F3 F4 F5 A1 A2 A3 A4 A5 A7 A8 B1 B2 B3 B4 B5 B6 B7 B8 M2".split()}
    assert not missing - {fault.split()[0] for fault in faults}


def test_long_arrays():
    """The same of arrays with more rows than are checked at once."""
    count, formats, _ = all_of(work_on_long, range(SEED, SEED + LONG))
    support.figure("validated long arrays", count["valid arrays"], LONG)
    support.figure("their verdicts", count["verdicts"], 22 * LONG)
    assert formats >= {*validate_arrays.LEAVES, *validate_arrays.BRANCHES}


def read_too_much(part, start, place, say):
    """Reads the byte behind a buffer."""
    arena = Arena(4)
    assert ctypes.string_at(arena.place(b"buffer"), 6) == b"buffer"
    ctypes.string_at(arena.place(b"buffer"), 7)


def test_memory_ends():
    """The process dies of one byte too many, and that is a failure."""
    with pytest.raises(AssertionError, match="died of SIGSEGV"):
        validate_workers.run(read_too_much, [()])
