"""The validator on memory that the CPU cannot touch: word for word what it says of the same memory on the CPU.

Each array lies at the same addresses for both: shown to the CPU, and then hidden from it, so that a read of it ends the
process. VALIDATE_DEVICE_ARRAYS is the number of random arrays where more than the usual number are wanted.
"""

import ctypes
import os
import random
from collections import Counter
from ctypes import byref, c_int64, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import raw
import support
import validate_arrays
import validate_device
import validate_workers
from bowstring_ctypes import lib
from raw import Node
from rule_cases import LONG, RULES, dense, indexed, ints, listed, long_view, map_of, runs, struct, text, view, views
from slow_checker import ArrayChecker
from slow_schema import BOUNDS, FULL, STRUCTURE
from test_validate_random import Comparison
from validate_arrays import Maker, Placed
from validate_calls import ARRAY, DEVICE, HOST, Listener, type_of
from validate_device import QUEUE, Asked, DeviceArena, on_device

ARRAYS = int(os.environ.get("VALIDATE_DEVICE_ARRAYS", "150"))
N_KINDS = len(validate_arrays.LEAVES) + len(validate_arrays.BRANCHES)
STAGINGS = (64, 1024, 65536, 0)
MUTATIONS = 9
WORKERS = 2


class Both:
    """The same checks on the CPU and on the device."""

    def __init__(self, arena):
        self.arena, self.asked, self.count, self.rules = arena, Asked(), Counter(), set()

    def compare(self, on_cpu, there, level, stagings=STAGINGS):
        """`on_cpu` and `there` are a call and what it checks."""
        self.arena.show()
        expected = self.asked.ask(*on_cpu, level=level)
        self.arena.hide()
        self.rules |= {rule for _, _, rule, *_ in expected[1][2]}
        for staging in stagings:
            found = self.asked.ask(*there, level=level, staging_bytes=staging)
            assert found == expected, f"staging {staging}, level {level}:\n{found}\nfor\n{expected}"
            self.count["verdicts"] += 1
            self.count["refused"] += bool(found[0][0])
        self.arena.show()
        return expected

    def raw(self, array, ty, level, stagings=STAGINGS):
        """A raw struct."""
        there = on_device(array)
        return self.compare((HOST, c_void_p(array), ty), (DEVICE, byref(there), ty), level, stagings)


class DeviceListener(Listener):
    """Asks on the device as well whatever is asked of raw structs on the CPU."""

    def __init__(self, both):
        super().__init__()
        self.both = both

    def ask(self, call, *what, level=FULL):
        said = super().ask(call, *what, level=level)
        if call is HOST:
            self.both.raw(what[0].value, what[1], level)
        return said


class DeviceComparison(Comparison):
    """The comparison with the slow checker, of which each array is checked on the device as well."""

    def __init__(self, arena):
        super().__init__(arena)
        arena.show()
        self.both = Both(arena)
        self.listener = DeviceListener(self.both)
        self.windows = random.Random("windows on the device")

    def case(self, placed):
        self.arena.show()
        return super().case(placed)

    def window(self, placed, ty, handle, length):
        """Random windows of the array on the CPU and of the same one on the device."""
        super().window(placed, ty, handle, length)
        offset = self.windows.randint(0, length)
        rows = self.windows.randint(0, length - offset)
        checker = ArrayChecker(self.reader)
        checker.check(placed.array, ty, None if (offset, rows) == (0, length) else (offset, rows))
        if checker.unreadable:
            return
        kind = c_void_p(lib.bowstring_type_retain(lib.bowstring_array_type(handle)))
        there = bs.out("array_import_typed", byref(on_device(placed.array)), kind)
        parts = [bs.out("array_slice", whole, offset, rows) for whole in (handle, there)]
        for level in (BOUNDS, FULL):
            self.both.compare((ARRAY, parts[0]), (ARRAY, parts[1]), level)
        support.release(*parts, there)
        lib.bowstring_type_release(kind)
        self.both.count["windows"] += 1


def work_on(part, start, place, say, arena, draw):
    comparison = DeviceComparison(arena)
    for step, seed in enumerate(part[start:]):
        place.note(step)
        try:
            comparison.array(seed, *draw(seed))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    both = comparison.both
    count = {f"device {name}": number for name, number in both.count.items()}
    assert arena.plugin.counts()["outstanding"] == 0
    say([{**comparison.count, **count}, sorted(comparison.formats), sorted(both.rules)])


def work_on_short(part, start, place, say):
    def draw(seed):
        maker = Maker(seed, null_keys=True)
        return maker, maker.draw(), MUTATIONS

    work_on(part, start, place, say, DeviceArena(), draw)


def work_on_long(part, start, place, say):
    def draw(seed):
        maker = Maker(seed, null_keys=True)
        kind = (validate_arrays.LEAVES + validate_arrays.BRANCHES)[seed % N_KINDS]
        rows = random.Random(f"long {seed}").choice((62, 131, 1023, 1090))
        return maker, maker.node(rows, 1 if kind in validate_arrays.LEAVES else 2, leaf=kind), 3

    work_on(part, start, place, say, DeviceArena(64, 40), draw)


def all_of(work, seeds):
    """What the processes counted and met between them."""
    validate_device.compiled()
    count, formats, rules = Counter(), set(), set()
    for counted, seen, found in validate_workers.run(work, [seeds[i::WORKERS] for i in range(WORKERS)]):
        count.update(counted)
        formats |= set(seen)
        rules |= set(found)
    for name in sorted(count):
        print(f"{name}: {count[name]}")
    return count, formats, rules


def test_random_arrays():
    count, formats, rules = all_of(work_on_short, range(ARRAYS))
    support.figure("validated random arrays on a device", count["valid arrays"], ARRAYS)
    support.figure("one change each, on a device", count["mutated arrays"], ARRAYS * MUTATIONS)
    support.figure("their verdicts compared with the CPU's", count["device verdicts"], 50 * ARRAYS)
    support.figure("of them refused", count["device refused"], 3 * ARRAYS)
    support.figure("windows on a device", count["device windows"], 2 * ARRAYS)
    missing = {*"A1 A2 A4 A5 A7 B1 B2 B3 B4 B5 B6 B7 B8 F5".split()} - rules
    assert ARRAYS < 150 or not missing, missing


def test_long_arrays():
    """Arrays of many blocks."""
    count, formats, _ = all_of(work_on_long, range(2 * N_KINDS))
    support.figure("validated long arrays on a device", count["valid arrays"], 2 * N_KINDS)
    support.figure("their verdicts on a device", count["device verdicts"], 40 * N_KINDS)
    assert formats >= {*validate_arrays.LEAVES, *validate_arrays.BRANCHES}


def in_child(function, *arguments):
    """As `raw.in_child`, with the plug-in compiled before."""
    validate_device.compiled()
    raw.in_child(function, *arguments)


def placed(arena, node):
    """A node with its buffers on the device, and its type."""
    made = Placed(arena, node)
    ty, _ = type_of(made.schema)
    return made, ty


def look_at_rules():
    arena = DeviceArena()
    both, seen = Both(arena), 0
    for name, (kept, broken) in RULES.items():
        for one in kept + broken:
            node = one.case
            plain = isinstance(node, Node) and not holds_others(node)
            if not plain:
                continue
            arena.clear()
            made, ty = placed(arena, node)
            if ty is None:
                continue
            seen += 1
            for level in (BOUNDS, FULL):
                both.raw(made.array, ty, level)
            lib.bowstring_type_release(ty)
    assert seen >= 90, seen
    assert not {*"A2 A3 A5 B1 B2 B3 B4 B5 B6 B7 B8 F5".split()} - both.rules, both.rules


def holds_others(node):
    """Whether a node has what only `raw.Raw` puts down: members of its own, or buffers at odd places."""
    odd = node.schema or node.array or node.array_children is not None or node.array_dictionary is not None
    odd = odd or any(not isinstance(data, bytes | None) for data in node.buffers)
    odd = odd or not isinstance(node.format, str) or isinstance(node.metadata, raw.At)
    below = node.children + ([node.dictionary] if node.dictionary else [])
    return odd or any(map(holds_others, below))


def test_rules():
    in_child(look_at_rules)


def big_nodes():
    """Nodes of a few hundred KiB, and the bytes of their largest row."""
    rows = 30_000
    words = [b"ab" * (n % 23) for n in range(4000)]
    yield Node("l", rows, 0, 0, [b"\xff" * (rows // 8), bytes(8 * rows)]), 0
    yield Node("tdm", rows, 3, 0, [b"\xfe" + b"\xff" * (rows // 8 - 1), bytes(8 * rows)]), 9
    yield text(*words), 44 + 8
    long = [(b"x" * n).ljust(13, b"y") for n in range(1, 800)]
    slots, data, at = [], b"", 0
    for word in long:
        slots.append(long_view(word, 0, at))
        data, at = data + word, at + len(word)
    random.Random(1).shuffle(slots)
    yield views(*slots, data=(data, LONG)), 800 + 16
    yield dense([5, 7] * 8000, [n // 2 for n in range(16_000)], ints(*range(8000)), ints(*range(8000))), 5
    yield runs(range(1, rows), Node("n", rows - 1, rows - 1), rows - 1), 4
    yield indexed(list(range(1000)) * 30, ints(*range(1000))), 4
    yield listed(range(rows), Node("n", rows - 1, rows - 1)), 8


def look_at_bounds():
    arena = DeviceArena(32, 120)
    both = Both(arena)
    for node, largest in big_nodes():
        arena.clear()
        made, ty = placed(arena, node)
        total = sum(size for _, size in arena.buffers)
        for staging in (64, 1000, 4096, 65536, 0):
            arena.plugin.counts()
            both.raw(made.array, ty, FULL, (staging,))
            counts = arena.plugin.counts()
            assert counts["copies"] and counts["most"] <= (staging or 64 << 20) + largest, (node.format, staging, counts)
            if staging == 0:
                # Twice: with and without a listener. No check of good data walks over anything twice but offsets.
                assert counts["bytes"] <= 2 * total + 4 * 64, (node.format, counts, total)
            assert counts["waits"] <= 12 + 200 * total // (staging or 1 << 40), (node.format, staging, counts)
            both.raw(made.array, ty, BOUNDS, (staging,))
            assert arena.plugin.counts()["bytes"] <= 2 * 3 * 16, node.format
        lib.bowstring_type_release(ty)


def test_staged_bytes_are_bounded():
    in_child(look_at_bounds)


def look_at_spread_views():
    """Only what views lead to is copied."""
    arena = DeviceArena(32, 120)
    both = Both(arena)
    data = bytes(400_000)
    places = [(0, 7), (0, 390_000), (1, 200_000), (0, 8), (0, 40), (1, 13)]
    slots = [long_view(bytes(20), which, at) for which, at in places] + [view(b"short")]
    for format_ in ("vu", "vz"):
        arena.clear()
        made, ty = placed(arena, views(*slots, data=(data, data), format_=format_))
        arena.plugin.counts()
        both.raw(made.array, ty, FULL, (0,))
        assert arena.plugin.counts()["bytes"] <= 2 * (16 + 16 * 7 + 54 + 4 * 20 + 13 + 40)
        lib.bowstring_type_release(ty)


def test_only_what_views_lead_to_is_copied():
    in_child(look_at_spread_views)


def look_at_faults():
    """One bad byte, number or bit anywhere, at each border of blocks."""
    arena = DeviceArena(32, 16)
    both, rng = Both(arena), random.Random(5)
    nodes = [
        text(*[b"word"] * 700), text(*[("é" * (n % 9)).encode() for n in range(500)]),
        views(*[long_view(LONG, 0, 0), view(b"inline")] * 300),
        dense([5, 7] * 400, [n // 2 for n in range(800)], ints(*range(400)), ints(*range(400))),
        runs(range(1, 900), Node("n", 899, 899), 899), Node("tts", 900, 0, 0, [None, raw.i32(*[5] * 900)]),
        indexed([1] * 900, ints(1, 2)), listed(range(900), Node("n", 899, 899)),
        struct(ints(*range(100)), text(*[b"x"] * 100)),
    ]
    for node in nodes:
        arena.clear()
        made, ty = placed(arena, node)
        for _ in range(60):
            at, size = rng.choice(arena.buffers)
            at += rng.randrange(size)
            byte = arena.read(at, 1)
            # What makes an offset lead too far is not for the CPU to read; 64 bits below zero are.
            arena.write(at, rng.choice((b"\xff", b"\x80", bytes([byte[0] ^ 1]))))
            checker = ArrayChecker(both_reader(arena))
            checker.check(made.array, slow_type(arena, made))
            if not checker.unreadable:
                both.raw(made.array, ty, FULL, (8, 64, 256, 1000, 0))
            arena.write(at, byte)
        lib.bowstring_type_release(ty)
    assert both.count["refused"] > 900, both.count


def both_reader(arena):
    from slow_schema import Reader

    return Reader(arena.read)


def slow_type(arena, made):
    from slow_schema import SchemaChecker

    return SchemaChecker(both_reader(arena)).check(made.schema)


def test_faults_at_borders():
    in_child(look_at_faults)


def look_at_failures():
    """Each copy that fails is DEVICE_ERROR, whatever was found before it counts more, and nothing stays behind."""
    arena = DeviceArena(64, 4)
    good = struct(text(*[b"word"] * 30), views(*[long_view(LONG, 0, 0)] * 30), map30(), name=b"")
    bad = struct(text(*[b"word"] * 29, b"\xff"), ints(*range(30)), name=b"")
    for node, others in ((good, ()), (bad, (bs.INVALID_DATA,))):
        arena.clear()
        made, ty = placed(arena, node)
        array, asked, statuses = on_device(made.array), Asked(), []
        before = bs.live_counts()
        for nth in range(1, 400):
            arena.plugin.plugin.device_fail_at(nth)
            error = bs.Error()
            options = validate_device.Options(staging_bytes=64)
            statuses.append(DEVICE(byref(array), ty, byref(options), byref(error)))
            if statuses[-1] == bs.DEVICE_ERROR:
                assert error.native_code == 77 and b"the copy that was to fail" in error.message
                assert error.rule == 0 and error.path == b""
            elif statuses[-1] == bs.OK:
                break
        arena.plugin.plugin.device_fail_at(0)
        assert bs.live_counts() == before and arena.plugin.counts()["live"] == 0
        assert set(statuses) <= {bs.DEVICE_ERROR, bs.OK, *others}
        assert statuses.count(bs.DEVICE_ERROR) >= 10, statuses
        lib.bowstring_type_release(ty)
    # A finding that came before the failure is told, and is the error.
    arena.clear()
    made, ty = placed(arena, struct(Node("tts", 1, 0, 0, [None, raw.i32(-1)]), text(b"a")))
    array = on_device(made.array)
    heard = []
    options = validate_device.Options(
        on_finding=validate_device.ON_FINDING(lambda _, severity, finding: heard.append(finding.contents.rule) or 0)
    )
    arena.plugin.plugin.device_fail_at(2)
    assert DEVICE(byref(array), ty, byref(options), None) == bs.INVALID_DATA
    assert [validate_device.rule_name(rule) for rule in heard] == ["B8"]
    lib.bowstring_type_release(ty)


def map30():
    node = map_of(text(*[b"k"] * 30), ints(*range(30)))
    node.length, node.buffers = 30, [None, raw.i32(*range(31))]
    return node


def test_failing_copies():
    in_child(look_at_failures)


def look_at_places():
    """Rule D9: memory that is not where it is said to be, named by path and buffer, and not read."""
    arena = DeviceArena(64, 4)
    tells, asked = arena.plugin.plugin.device_tells, Asked()
    tells(1, 0, 0)
    on_cpu = ctypes.create_string_buffer(4096)
    here = ctypes.addressof(on_cpu) + 64 & -64

    def said(node, **options):
        arena.clear()
        made, ty = placed(arena, node)
        arena.plugin.counts()
        found = asked.ask(DEVICE, byref(on_device(made.array)), ty, **options)
        lib.bowstring_type_release(ty)
        return [one for one in found[1][2] if one[0] != 2], found

    def of(node, k):
        node.buffers[k] = here
        return node

    arena.place_buffer, place = (lambda data: data if isinstance(data, int) else place(data)), arena.place_buffer
    cases = [
        (of(ints(1, 2), 1), "$", 1), (of(text(b"a", b"b"), 1), "$", 1), (of(text(b"a", b"b"), 2), "$", 2),
        (of(views(long_view(LONG, 0, 0)), 1), "$", 1), (of(views(long_view(LONG, 0, 0)), 2), "$", 2),
        (struct(ints(1, 2), of(ints(1, 2), 1), name=b""), None, 1),
        (runs([1, 2], ints(1, 2), 2), None, None),
    ]
    for node, path, k in cases[:-1]:
        for level in (FULL, BOUNDS):
            found, _ = said(node, level=level)
            assert [one[2] for one in found] == ["D9"] and found[0][1] == bs.INVALID_DATA, found
            assert path is None or found[0][3] == path
            assert f"in buffer {k}, found memory of device CPU -1" in found[0][5], found
        # Structure alone asks no driver.
        assert said(node, level=STRUCTURE)[1][0][0] == bs.OK
    # Run ends and keys are told of at their own nodes, and nobody above reads them.
    node = runs([1, 2], ints(1, 2), 2)
    node.children[0].buffers[1] = here
    found, _ = said(node)
    assert [one[2:4] for one in found] == [("D9", "$.run_ends")], found
    node = map_of(text(b"k"), ints(1))
    keys = node.children[0].children[0]
    keys.buffers[0], keys.nulls = here, -1
    found, _ = said(node)
    assert [one[2:4] for one in found] == [("D9", "$.entries.key")], found
    # Sizes of variadic buffers may be in CPU memory, and what needs no bytes may have any address.
    ctypes.memmove(here, raw.i64(len(LONG)), 8)
    assert said(of(views(long_view(LONG, 0, 0)), 3))[1][0][0] == bs.OK
    ctypes.memmove(here, raw.i64(len(LONG) - 1), 8)
    assert [one[2] for one in said(of(views(long_view(LONG, 0, 0)), 3))[0]] == ["B2"]
    assert said(of(text(b"", b""), 2))[1][0][0] == bs.OK
    assert said(of(Node("i", 0, 0, 0, [None, None]), 1))[1][0][0] == bs.OK
    # Another type of device is worth a warning, another device of the type is an error.
    tells(1, 13, 0)
    found, whole = said(ints(1, 2))
    assert whole[0][0] == bs.OK and [one[:3] for one in found] == [(1, bs.OK, "D9")], found
    assert [one[2] for one in said(Node("tts", 1, 0, 0, [None, raw.i32(-1)]))[0]] == ["D9", "B8"]
    tells(1, 150, 1)
    assert [one[:3] for one in said(ints(1, 2))[0]] == [(0, bs.INVALID_DATA, "D9")]
    # Where the driver cannot tell, the producer's word counts.
    tells(0, 0, 0)
    assert said(ints(1, 2))[1][0][0] == bs.OK
    # A backend that copies nothing else says so.
    assert said(of(Node("tts", 1, 0, 0, [None, None]), 1))[1][0][0] == bs.DEVICE_ERROR


def test_memory_that_is_elsewhere():
    in_child(look_at_places)


def look_at_large_sizes():
    """What cannot be divided says how much memory it needs."""
    arena = DeviceArena(64, 4)
    made, ty = placed(arena, struct(views(long_view(LONG, 8, 0), data=(LONG,) * 9), Node("tts", 1, 0, 0, [None, raw.i32(-1)])))
    array, asked = on_device(made.array), Asked()
    told = asked.ask(DEVICE, byref(array), ty, staging_bytes=64)
    # What comes behind it is checked all the same, and what is wrong there counts more.
    assert [one[2] for one in told[1][2]] == ["B8"] and [one[0] for one in told] == [bs.INVALID_DATA] * 2, told
    arena.clear()
    made, ty = placed(arena, struct(views(long_view(LONG, 8, 0), data=(LONG,) * 9)))
    array = on_device(made.array)
    status, error, _ = asked.ask(DEVICE, byref(array), ty, staging_bytes=64)[0]
    assert status == bs.UNSUPPORTED and error[2].startswith("$"), error
    assert "expected staging_bytes of at least 72" in error[4] and error[4].endswith("found 64"), error
    assert asked.ask(DEVICE, byref(array), ty, staging_bytes=72)[0][0] == bs.OK


def test_what_cannot_be_divided():
    in_child(look_at_large_sizes)


def look_at_events():
    """Data that are there only after the event; each mode waits, NONE refuses before it asks a driver."""
    arena = DeviceArena(64, 4)
    plugin, asked = arena.plugin.plugin, Asked()
    good, bad = raw.i32(1, 2, 3), raw.i32(1, -2, 3)
    for mode in (bs.SYNC_QUEUE, bs.SYNC_HOST, bs.SYNC_LIBRARY, bs.SYNC_NONE):
        for first, then, expected in ((bad, good, bs.OK), (good, bad, bs.INVALID_DATA)):
            arena.clear()
            made, ty = placed(arena, Node("tts", 3, 0, 0, [None, first]))
            later = ctypes.create_string_buffer(then, len(then))
            plugin.device_write_later(0, arena.buffers[0][0], ctypes.addressof(later), len(then))
            event = plugin.device_event(0)
            array = on_device(made.array, event)
            options = validate_device.Options(sync=bs.Sync(mode, 0, QUEUE if mode == bs.SYNC_QUEUE else None))
            error = bs.Error()
            arena.plugin.counts()
            status = DEVICE(byref(array), ty, byref(options), byref(error))
            if mode == bs.SYNC_NONE:
                assert status == bs.SYNC_REQUIRED and not arena.plugin.counts()["copies"]
                continue
            assert status == expected, (mode, status, error.message)
            assert asked.ask(DEVICE, byref(on_device(made.array)), ty)[0][0] == expected
            lib.bowstring_type_release(ty)
    # Without a backend it is UNSUPPORTED, after the structure.
    made, ty = placed(arena, ints(1, 2))
    array = on_device(made.array)
    array.device_type = 17
    said = asked.ask(DEVICE, byref(array), ty)
    assert said[0][0] == bs.UNSUPPORTED and "17 (device) without a backend" in said[0][1][4], said
    array.sync_event = 4096
    assert asked.ask(DEVICE, byref(array), ty)[0][0] == bs.SYNC_REQUIRED


def test_events_and_modes():
    in_child(look_at_events)


def look_at_copies():
    """Arrays that the library itself copied there, in each mode, whole and in windows."""
    arena, asked = DeviceArena(64, 4), Asked()
    rng = random.Random(3)
    words = [rng.choice((None, "", "é", "thirteen bytes", "x" * 300)) for _ in range(500)]
    for data in (
        pa.array(words), pa.array(words, pa.string_view()), pa.array(words).dictionary_encode(),
        pa.array([[word] * (n % 3) for n, word in enumerate(words)]), pa.array([{"a": word, "b": 1} for word in words]),
        pa.array([[(n, word)] for n, word in enumerate(words)], pa.map_(pa.int32(), pa.string())),
        pa.RunEndEncodedArray.from_arrays(pa.array(range(1, 501), pa.int32()), pa.array(range(500))),
        pa.array([n % 7 for n in range(500)], pa.time32("s")),
    ):
        here = support.imported(data)
        for mode in (bs.SYNC_LIBRARY, bs.SYNC_HOST, bs.SYNC_QUEUE):
            how = bs.Sync(mode, 0, QUEUE if mode == bs.SYNC_QUEUE else None)
            there, shared = c_void_p(), ctypes.c_bool()
            options = bs.TransferOptions(sync=how)
            device = bs.Device(validate_device.TYPE, validate_device.ID)
            bs.call("array_to_device", here, device, byref(options), byref(there), byref(shared))
            part = bs.out("array_slice", there, 3, 400)
            for staging in (64, 1000, 0):
                for handle in (there, part):
                    # One that a CPU waited for has no event any more; NONE will do there.
                    asks = bs.Sync(bs.SYNC_NONE) if mode == bs.SYNC_HOST else how
                    said = asked.ask(ARRAY, handle, staging_bytes=staging, sync=asks)
                    assert said[0][0] == bs.OK, said
            support.release(part, there)
        support.release(here)
        bs.call("device_collect", bs.Device(validate_device.TYPE, validate_device.ID), True, None)
    assert arena.plugin.counts()["bytes"] > 100_000


def test_copies_of_the_library():
    in_child(look_at_copies)


def test_device_memory_cannot_be_touched():
    """The process dies of a read of hidden memory, and that is a failure."""
    validate_device.compiled()
    with pytest.raises(AssertionError, match="died of SIGSEGV"):
        raw.in_child(touch)


def touch():
    arena = DeviceArena(4)
    at = arena.place_buffer(b"buffer")
    arena.show()
    assert ctypes.string_at(at, 6) == b"buffer"
    arena.hide()
    ctypes.string_at(at, 6)
