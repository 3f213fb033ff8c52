"""Random tensors and arrays against a slow reference, which finds every element by arithmetic on its own."""

import ctypes
import itertools
import json
import math
import random
import struct
from ctypes import byref, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
import tensors
from bowstring_ctypes import UNSUPPORTED, BowstringError, lib, out
from raw import metadata
from tensors import ALLOW_COPY, BOOL, FLOAT, INT, UINT, VALUES_ONLY

CASES, PART = 4000, 500
_done = {"imports": 0, "shared": 0, "turned": 0, "copied": 0, "exports": 0, "with nulls": 0}

# Code and bits, struct's letter, Arrow's format.
ELEMENTS = {
    (INT, 8): ("b", "c"), (INT, 16): ("h", "s"), (INT, 32): ("i", "i"), (INT, 64): ("q", "l"),
    (UINT, 8): ("B", "C"), (UINT, 16): ("H", "S"), (UINT, 32): ("I", "I"), (UINT, 64): ("Q", "L"),
    (FLOAT, 16): ("e", "e"), (FLOAT, 32): ("f", "f"), (FLOAT, 64): ("d", "g"), (BOOL, 8): ("?", "c"),
}


def nested(values, shape):
    """A flat list as lists of lists."""
    rest = iter(values)

    def level(k):
        return [level(k + 1) if k + 1 < len(shape) else next(rest) for _ in range(shape[k])]

    return level(0)


def indices(shape):
    return itertools.product(*[range(length) for length in shape])


def row_major(shape):
    return tensors.compact(shape)


# ---- import ----


class Foreign:
    """A random tensor over random bytes, in as little memory as it needs."""

    def __init__(self, rng):
        self.element = rng.choice(list(ELEMENTS))
        self.width = self.element[1] // 8
        self.shape = [rng.choice((0, 1, 1, 2, 2, 3, 4)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4)))]
        self.strides = self._strides(rng)
        reach = [(length - 1) * step for length, step in zip(self.shape, self.strides)] if all(self.shape) else []
        low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        self.before = rng.randrange(5)
        size = (high - low + 1 + self.before + rng.randrange(3)) * self.width
        # Half, float and double may be NaN, which is equal to nothing; small numbers are not.
        self.bytes = self._numbers(rng, size)
        self.memory = (ctypes.c_uint64 * (size // 8 + 1)).from_buffer_copy(self.bytes + bytes(8 - size % 8 + 8))
        self.first = self.before - low
        self.deleted = 0
        self._delete = ctypes.CFUNCTYPE(None, c_void_p)(self._on_delete)
        self.made = tensors.Versioned(1, rng.choice((0, 1, 2, 3, 7)), None, None, rng.choice((0, 1, 2)))
        inner = self.made.dl_tensor
        self.made.deleter = ctypes.cast(self._delete, c_void_p).value
        # The way to the first element may be split between both members.
        split = rng.choice((0, self.first, rng.randrange(self.first + 1)))
        inner.data = ctypes.addressof(self.memory) + split * self.width
        inner.byte_offset = (self.first - split) * self.width
        inner.device, inner.ndim = tensors.DLDevice(1, 0), len(self.shape)
        inner.dtype = bs.DataType(*self.element, 1)
        self._axes = [(ctypes.c_int64 * max(len(numbers), 1))(*numbers) for numbers in (self.shape, self.strides)]
        inner.shape, inner.strides = [ctypes.cast(axis, ctypes.POINTER(ctypes.c_int64)) for axis in self._axes]
        if self.strides == row_major(self.shape) and rng.random() < 0.3:
            inner.strides = None

    def _numbers(self, rng, size):
        letter, most = ELEMENTS[self.element][0], 2 if self.element[0] == BOOL else 100
        return b"".join(struct.pack(f"={letter}", rng.randrange(most)) for _ in range(size // self.width))

    def _strides(self, rng):
        n = len(self.shape)
        kind = rng.choice(("compact", "compact", "turned", "turned", "cut", "backwards", "repeated", "any"))
        order = list(range(n))
        if kind == "turned":
            # The rows stay outermost, mostly.
            order[1:] = rng.sample(order[1:], len(order[1:]))
            if rng.random() < 0.2:
                rng.shuffle(order)
        strides = [0] * n
        for place, step in zip(order, row_major([self.shape[i] for i in order])):
            strides[place] = step
        if kind == "cut":
            at = rng.randrange(n) if n else 0
            strides = [step * (2 if i <= at else 1) for i, step in enumerate(strides)]
        if kind == "backwards":
            strides = [step * rng.choice((1, -1)) for step in strides]
        if kind == "repeated":
            strides = [step * rng.choice((0, 1)) for step in strides]
        if kind == "any":
            strides = [rng.randrange(-6, 7) for _ in strides]
        # Steps that are never taken may be anything.
        never = [length == 1 and rng.random() < 0.3 for length in self.shape]
        return [rng.randrange(-99, 99) if is_odd else step for is_odd, step in zip(never, strides)]

    def _on_delete(self, address):
        assert address == ctypes.addressof(self.made)
        self.deleted += 1

    def places(self, order=None):
        """Where each element is, counted in elements from the first one, in the order of its dimensions or another."""
        shape, strides = self.shape or [1], self.strides or [0]
        order = order or range(len(shape))
        turned = [strides[i] for i in order]
        return [sum(i * s for i, s in zip(index, turned)) for index in indices([shape[i] for i in order])]

    def values(self):
        """The elements, row by row of the tensor."""
        letter = ELEMENTS[self.element][0]
        found = []
        for place in self.places():
            at = (self.first + place) * self.width
            found.append(struct.unpack(f"={letter}", self.bytes[at : at + self.width])[0])
        return nested(found, self.shape or [1])

    def is_row_major(self, order=None):
        """Whether the elements, in such an order of dimensions, follow each other."""
        return self.places(order) == list(range(math.prod(self.shape)))


def schema_of(format, children=(), name=b"", extension=None):
    """A type handle."""
    given = (c_void_p * max(len(children), 1))(*[child.value for child in children])
    pairs = None
    if extension is not None:
        text = json.dumps(extension).encode()
        pairs = metadata((b"ARROW:extension:name", b"arrow.fixed_shape_tensor"), (b"ARROW:extension:metadata", text))
    made = out("type_new", format, name, 2, given, len(children), None, pairs, len(pairs or b""))
    for child in children:
        lib.bowstring_type_release(child)
    return made


def shaped_type(foreign, order=None):
    """arrow.fixed_shape_tensor of the tensor's shape, with the permutation that makes it of memory in such an order."""
    inner = foreign.shape[1:]
    extension = {"shape": inner}
    if order is not None:
        place = [order.index(i) for i in range(len(inner))]
        extension = {"shape": [inner[i] for i in order], "permutation": place}
    leaf = schema_of(ELEMENTS[foreign.element][1].encode(), name=b"item")
    return schema_of(f"+w:{math.prod(inner)}".encode(), [leaf], extension=extension)


def logical(found):
    """Shaped tensors as nested lists, turned as their type says."""
    memory = list(found.type.shape)
    order = list(found.type.permutation or range(len(memory)))
    steps, flat = row_major(memory), found.storage.to_pylist()
    shape = [memory[i] for i in order]
    rows = []
    for row in flat:
        rows.append(nested([row[sum(i * steps[o] for i, o in zip(index, order))] for index in indices(shape)], shape))
    return rows


def plain(value):
    """Booleans as the numbers that a type of int8 has."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return int(value) if isinstance(value, bool) else value


def check_import(foreign, kind, is_shared, read):
    """Without a copy when the memory lies so, else by a copy that has to be allowed."""
    cell = c_void_p(ctypes.addressof(foreign.made))
    is_needed = is_shared and all(foreign.shape)
    if not is_shared:
        with pytest.raises(BowstringError) as refused:
            tensors.array_of(cell, kind)
        assert refused.value.status == UNSUPPORTED and foreign.deleted == 0
    handle = tensors.array_of(cell, kind, 0 if is_shared else ALLOW_COPY)
    assert foreign.deleted == (not is_needed)
    if is_needed:
        at = ctypes.addressof(foreign.memory) + foreign.first * foreign.width
        assert support.buffer_infos(handle)[-1].data == at
    found = tensors.back(handle)
    assert read(found) == plain(foreign.values())
    turned = isinstance(found.type, pa.FixedShapeTensorType) and found.type.permutation is not None
    del found
    assert foreign.deleted == 1
    foreign.deleted = 0
    _done["imports"] += 1
    _done["shared"] += is_needed
    _done["turned"] += bool(is_needed and turned)
    _done["copied"] += not is_shared


def check_imports(rng):
    foreign = Foreign(rng)
    empty = not all(foreign.shape)
    check_import(foreign, None, empty or foreign.is_row_major(), lambda found: plain(found.to_pylist()))
    if len(foreign.shape) < 2:
        return
    n = len(foreign.shape) - 1
    orders = list(itertools.permutations(range(n)))
    rows_first = [[0, *[i + 1 for i in order]] for order in orders]
    kind = shaped_type(foreign)
    check_import(foreign, kind, empty or any(map(foreign.is_row_major, rows_first)), logical)
    lib.bowstring_type_release(kind)
    order = rng.choice(orders)
    kind = shaped_type(foreign, list(order))
    check_import(foreign, kind, empty or foreign.is_row_major([0, *[i + 1 for i in order]]), logical)
    lib.bowstring_type_release(kind)


# ---- export ----


class Lists:
    """Random lists of lists with an offset, a bitmap and nulls of their own at every level, down to numbers."""

    def __init__(self, rng):
        self.letter, self.format = rng.choice([kind for key, kind in ELEMENTS.items() if key[0] != BOOL])
        self.sizes = [rng.choice((1, 1, 2, 2, 2, 3, 3, 0)) for _ in range(rng.randrange(4))]
        self.length, needed = rng.randrange(5), None
        levels, needed = [], self.length
        for size in [*self.sizes, None]:
            offset, more = rng.randrange(4), rng.randrange(3)
            total = offset + needed + more
            chance = rng.choice((0, 0, 0, 0.1, 0.4))
            levels.append((offset, needed, [rng.random() >= chance for _ in range(total)], rng.random() < 0.5))
            needed = (offset + needed) * size if size is not None else None
        self.levels = levels
        total = len(levels[-1][2])
        self.numbers = [rng.randrange(100) for _ in range(total)]

    def handle(self):
        """The array as the library builds it, and its owners."""
        kind = schema_of(self.format.encode(), name=b"item")
        for i, size in enumerate(reversed(self.sizes)):
            kind = schema_of(f"+w:{size}".encode(), [kind], name=b"item" if i + 1 < len(self.sizes) else b"")
        owners, nodes, entries = support.Owners(), [], []
        for k, (offset, length, valid, is_told) in enumerate(self.levels):
            is_leaf = k == len(self.sizes)
            nulls = valid[offset : offset + length].count(False)
            bits = None
            if not all(valid) or is_told:
                bits = sum(bit << i for i, bit in enumerate(valid)).to_bytes((len(valid) + 7) // 8 or 1, "little")
            nodes.append((length, nulls if is_told or bits is None else -1, offset, 1 + is_leaf))
            entries.append(owners.buffer(len(entries) + 1, bits))
        packed = b"".join(struct.pack(f"={self.letter}", number) for number in self.numbers)
        entries.append(owners.buffer(len(entries) + 1, packed))
        array = bs.ArrowDeviceArray()
        given = (bs.Node * len(nodes))(*nodes), len(nodes), (bs.OwnedBuffer * len(entries))(*entries), len(entries)
        bs.call("device_array_from_buffers", kind, *given, None, byref(array))
        handle = out("array_import_typed", byref(array), kind)
        lib.bowstring_type_release(kind)
        return handle, owners, len(entries)

    def rows(self, first, count, level=0):
        """Which rows of a level a window shows, counted from the start of its memory."""
        return range(self.levels[level][0] + first, self.levels[level][0] + first + count)

    def shown(self, first, count):
        """The window at every level."""
        windows = [self.rows(first, count)]
        for level, size in enumerate(self.sizes):
            start = self.levels[level + 1][0]
            above = windows[-1]
            windows.append(range(start + above.start * size, start + above.stop * size))
        return windows

    def values(self, first, count):
        shape = [count, *self.sizes]
        return nested([self.numbers[i] for i in self.shown(first, count)[-1]], shape)

    def first_level_with_nulls(self, first, count):
        for level, window in enumerate(self.shown(first, count)):
            if any(not self.levels[level][2][i] for i in window):
                return level
        return None


def check_export(rng):
    lists = Lists(rng)
    first = rng.randrange(lists.length + 1)
    count = rng.randrange(lists.length - first + 1)
    whole, owners, values_owner = lists.handle()
    handle = out("array_slice", whole, first, count)
    support.release(whole)
    level = lists.first_level_with_nulls(first, count)
    if level is not None:
        with pytest.raises(BowstringError) as refused:
            tensors.to_tensor(handle)
        assert (refused.value.status, refused.value.path) == (UNSUPPORTED, "$" + ".item" * level)
        _done["with nulls"] += 1
    tensor = tensors.to_tensor(handle, VALUES_ONLY if level is not None else 0)
    support.release(handle)
    seen = tensors.look(tensor)
    shape = [count, *lists.sizes]
    assert seen.shape == tuple(shape) and list(seen.strides) == row_major(shape)
    everything = set(owners.released)
    if math.prod(shape):
        assert values_owner not in everything and tensors.values(tensor).tolist() == lists.values(first, count)
        again = tensors.array_of(tensor)
        assert values_owner not in owners.released
        assert tensors.back(again).to_pylist() == lists.values(first, count)
    else:
        assert values_owner in everything and not seen.address
        tensors.release(tensor)
    assert values_owner in owners.released and len(set(owners.released)) == len(owners.released)
    _done["exports"] += 1


@pytest.mark.parametrize("part", range(CASES // PART))
def test_random_tensors(part):
    for seed in range(part * PART, part * PART + PART):
        try:
            check_imports(random.Random(seed))
            check_export(random.Random(-seed - 1))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def test_figures():
    floors = {
        "imports": 8000, "shared": 3500, "turned": 800, "copied": 2000, "exports": CASES, "with nulls": 400,
    }
    for name, floor in floors.items():
        support.figure(f"random tensors, {name}", _done[name], floor)
