"""Copies between devices: every type, every pair of devices, whole and in parts, against pyarrow and a slow reader."""

import ctypes
import io
import itertools
import random
from ctypes import POINTER, byref, c_void_p

import pyarrow as pa
import pytest

import all_types
import bowstring_ctypes as bs
import devices
import support
from bowstring_ctypes import VARIADIC_SIZES, lib, live_counts, out
from devices import CPU, EVERYWHERE, name_of, to_device, values_of
from test_golden import golden_files, is_equal, read_stream
from validate_arrays import BRANCHES, LEAVES, Arena, Maker, Placed

GOLDEN_BATCHES, OWN_BATCHES, RANDOM_ARRAYS, PART = 62, 290, 1200, 100
PAIRS = list(itertools.product(EVERYWHERE, EVERYWHERE))
_done = {"buffers": 0, "slices": 0}
_formats = set()


@pytest.fixture(autouse=True)
def clean():
    before = devices.alive()
    yield
    devices.check_clean(before)


def check_memory(handle, device):
    """Each buffer of a copy is a piece of its own, aligned and padded with zeroes, and says where it is."""
    (device_type, device_id), event = devices.device_of(handle)
    assert (device_type, device_id) == (device.type, device.id)
    plugin = devices.BY_TYPE.get(device.type)
    assert bool(event) == bool(plugin and plugin.has(devices.EVENTS))
    bs.call("array_wait", handle, byref(devices.HOST))
    read = devices.reader(device)
    for info in support.buffer_infos(handle):
        if not info.data or info.role == VARIADIC_SIZES:
            continue
        assert info.size_bytes >= 0, f"role {info.role}: an unknown size"
        assert (info.device.type, info.device.id) == (device.type, device.id)
        assert info.data % 64 == 0
        end = -(-max(info.size_bytes, 1) // 64) * 64
        # An absent buffer of the CPU leads to the library's own zeroes.
        if info.size_bytes or plugin:
            if plugin:
                assert plugin.size(info.data) == end
            assert read(info.data + info.size_bytes, end - info.size_bytes) == bytes(end - info.size_bytes)
        _done["buffers"] += 1


def moved(handle, *route):
    """A copy that went over some devices; the handle given stays."""
    at = handle
    for device in route:
        copy = to_device(at, device)
        check_memory(copy, device)
        if at is not handle:
            support.release(at)
        at = copy
    return at


def check_batch(batch, route):
    handle = support.imported(batch)
    back = moved(handle, *route, CPU)
    support.release(handle)
    assert is_equal(support.to_pyarrow(*support.exported(back)), batch)
    support.release(back)


def routes():
    return itertools.cycle(PAIRS)


@pytest.mark.parametrize("a", EVERYWHERE, ids=name_of)
@pytest.mark.parametrize("b", EVERYWHERE, ids=name_of)
def test_every_pair(a, b):
    (_, streams) = next(one for one in all_types.streams() if one[0] == "everything")
    for batch in streams:
        check_batch(batch, (a, b))


def test_own_streams():
    n, next_route = 0, routes()
    for name, batches in all_types.streams():
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        # What was never written still has its nulls and offsets as pyarrow made them.
        for batch in batches + read_stream(sink.getvalue()):
            try:
                check_batch(batch, next(next_route))
            except Exception as error:
                error.add_note(f"in the stream {name}")
                raise
            n += 1
    support.figure("own batches copied", n, 2 * OWN_BATCHES)


@pytest.mark.skipif(not golden_files(), reason="skipped: no-golden: BOWSTRING_GOLDEN names no folder with cpp-21.0.0")
def test_golden_streams():
    n, next_route = 0, routes()
    for path in golden_files():
        for batch in read_stream(path.read_bytes()):
            try:
                check_batch(batch, next(next_route))
            except Exception as error:
                error.add_note(f"in {path.name}")
                raise
            n += 1
    support.figure("golden batches copied", n, GOLDEN_BATCHES)


class Drawn:
    """Random valid arrays in memory that ends where they end; the struct is borrowed by the library."""

    def __init__(self):
        self.arena = Arena()
        self._releases = [
            ctypes.CFUNCTYPE(None, POINTER(struct))(lambda raw: setattr(raw.contents, "release", None))
            for struct in (bs.ArrowSchema, bs.ArrowArray)
        ]
        self.releases = tuple(ctypes.cast(release, c_void_p).value for release in self._releases)

    def draw(self, seed):
        """A handle on an array, and its values."""
        self.arena.clear()
        maker = Maker(seed, strict=seed % 3 == 0)
        placed = Placed(self.arena, maker.draw(), self.releases)
        _formats.update(maker.formats)
        self.schema, self.array = bs.ArrowSchema.from_address(placed.schema), bs.ArrowArray.from_address(placed.array)
        kind = out("type_copy_from", byref(self.schema))
        raw = bs.ArrowDeviceArray(self.array, -1, 1)
        handle = out("array_import_borrowed", byref(raw), kind, None, bs.RELEASE())
        lib.bowstring_type_release(kind)
        return handle, devices.Values(ctypes.string_at).all_of(self.schema, self.array)


def look_deeper(rng, handle, route):
    """Windows on an array, on one of its children and so on, each copied on with the same values, at every level."""
    while True:
        info = support.node_infos(handle)[0]
        start = rng.randint(0, info.length)
        n = rng.choice((info.length - start, rng.randint(0, info.length - start)))
        part = out("array_slice", handle, start, n)
        wanted = values_of(part)
        assert wanted == values_of(handle)[start : start + n]
        copy = moved(part, *route)
        assert values_of(copy) == wanted
        support.release(copy)
        _done["slices"] += 1
        has_dictionary = info.dictionary != bs.NOTHING
        if not (info.n_children or has_dictionary):
            return support.release(part, handle)
        which = rng.randrange(info.n_children + has_dictionary)
        # Of the window or of the whole: both have children.
        above = rng.choice((part, handle))
        below = out("array_child", above, which) if which < info.n_children else out("array_dictionary", above)
        support.release(part, handle)
        handle = below


def check_random(drawn, seed):
    rng = random.Random(f"copies {seed}")
    handle, values = drawn.draw(seed)
    a, b = rng.choice(EVERYWHERE), rng.choice(EVERYWHERE)
    there = moved(handle, a)
    assert values_of(there) == values
    back = moved(there, b, CPU)
    assert values_of(back) == values
    error = bs.Error()
    # Strict: nothing is left to warn of but what the producer's values are.
    assert lib.bowstring_array_validate(back, None, byref(error)) == bs.OK, error.message
    for _ in range(2):
        look_deeper(rng, c_void_p(lib.bowstring_array_retain(rng.choice((handle, there)).value)), (b, CPU))
    support.release(handle, there, back)


@pytest.mark.parametrize("start", range(0, RANDOM_ARRAYS, PART))
def test_random_arrays(start):
    drawn = Drawn()
    for seed in range(start, start + PART):
        try:
            check_random(drawn, seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    assert "arrays" not in live_counts()


def test_figures():
    support.figure("buffers copied", _done["buffers"], 100_000)
    support.figure("slices copied", _done["slices"], 4000)
    known = {"dictionary"} | set(LEAVES) | set(BRANCHES)
    assert not known - _formats, f"not drawn: {known - _formats}"
