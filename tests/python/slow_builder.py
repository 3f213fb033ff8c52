"""Random nested types and values as raw buffers, written slowly and on their own.

Nothing here asks the library what a layout is: each is written out from the Arrow columnar format. Rows before and
after the window, bytes under nulls and gaps between values are filled, so that whoever reads them shows it.
"""

import datetime
import struct
from dataclasses import dataclass, field
from decimal import Decimal

from bowstring_ctypes import DATA, OFFSETS, SIZES, TYPE_IDS, VALIDITY, VARIADIC, VARIADIC_SIZES, VIEWS

EPOCH = datetime.datetime(1970, 1, 1)


def _number(code, low, high):
    return lambda rng: rng.randint(low, high), lambda value: struct.pack(f"={code}", value)


def _real(code):
    return lambda rng: rng.randint(-2000, 2000) / 8, lambda value: struct.pack(f"={code}", value)


def _decimal(bits):
    def encode(value):
        return int(value.scaleb(2)).to_bytes(bits // 8, "little", signed=True)

    return lambda rng: Decimal(rng.randint(-10**8, 10**8)).scaleb(-2), encode


# Format: how to draw a value, and its bytes.
FIXED = {
    "c": _number("b", -128, 127), "C": _number("B", 0, 255), "s": _number("h", -(2**15), 2**15 - 1),
    "S": _number("H", 0, 2**16 - 1), "i": _number("i", -(2**31), 2**31 - 1), "I": _number("I", 0, 2**32 - 1),
    "l": _number("q", -(2**63), 2**63 - 1), "L": _number("Q", 0, 2**64 - 1),
    "e": _real("e"), "f": _real("f"), "g": _real("d"),
    "d:9,2,32": _decimal(32), "d:18,2,64": _decimal(64), "d:19,2": _decimal(128), "d:50,2,256": _decimal(256),
    "w:3": (lambda rng: rng.randbytes(3), bytes), "w:0": (lambda rng: b"", bytes),
    "tdD": (
        lambda rng: datetime.date(1970, 1, 1) + datetime.timedelta(rng.randint(-9999, 9999)),
        lambda value: struct.pack("=i", (value - datetime.date(1970, 1, 1)).days),
    ),
    "tsu:": (
        lambda rng: EPOCH + datetime.timedelta(microseconds=rng.randint(-10**15, 10**15)),
        lambda value: struct.pack("=q", (value - EPOCH) // datetime.timedelta(microseconds=1)),
    ),
    "tDm": (
        lambda rng: datetime.timedelta(milliseconds=rng.randint(-10**9, 10**9)),
        lambda value: struct.pack("=q", value // datetime.timedelta(milliseconds=1)),
    ),
    "tin": (
        lambda rng: (rng.randint(-99, 99), rng.randint(-99, 99), rng.randint(-10**12, 10**12)),
        lambda value: struct.pack("=iiq", *value),
    ),
}
TEXTS = ("u", "z", "U", "Z", "vu", "vz")
LEAVES = (*FIXED, "b", "n", *TEXTS)
LISTS = ("+l", "+L", "+vl", "+vL", "+w", "+m")
BRANCHES = (*LISTS, "+s", "+us", "+ud", "+r", "dictionary")
WORDS = ("", "a", "né", "☂☂☂☂", "twelve bytes", "thirteen byte", "much longer than any view holds inline")


@dataclass
class Kind:
    """A type."""

    format: str
    name: str = ""
    nullable: bool = True
    children: list = field(default_factory=list)
    dictionary: "Kind | None" = None
    ids: list = field(default_factory=list)
    branch: str = ""

    def size(self):
        return 1 + sum(child.size() for child in self.children) + (self.dictionary.size() if self.dictionary else 0)


@dataclass
class InUnion:
    """A value, and the child that has it."""

    child: int
    value: object


@dataclass
class Built:
    """The numbers and buffers of a node, and the values that they stand for."""

    kind: Kind
    values: list
    length: int
    offset: int
    nulls: int
    buffers: list
    children: list = field(default_factory=list)
    dictionary: "Built | None" = None

    def flat(self):
        found = [self]
        for child in self.children + [self.dictionary] * (self.dictionary is not None):
            found += child.flat()
        return found


def draw_kind(rng, depth=4, name=""):
    """A type that is at most so deep."""
    branch = rng.choice(BRANCHES) if depth > 1 and rng.random() < 0.85 else ""
    if not branch:
        return Kind(rng.choice(LEAVES), name)
    nullable = branch not in ("+us", "+ud", "+r")
    kind = Kind(branch, name, nullable, branch=branch)
    if branch == "dictionary":
        kind.format = rng.choice("cCsSiIlL")
        kind.dictionary = draw_kind(rng, depth - 1)
        while kind.dictionary.branch in ("dictionary", "+r", "+us", "+ud"):
            kind.dictionary = draw_kind(rng, depth - 1)
    elif branch == "+r":
        kind.children = [Kind(rng.choice("sil"), "run_ends", False), draw_kind(rng, depth - 1, "values")]
        while kind.children[1].branch == "+r":
            kind.children[1] = draw_kind(rng, depth - 1, "values")
    elif branch == "+m":
        key = Kind(rng.choice(("u", "i", "z", "vu")), "key", False)
        entries = [key, draw_kind(rng, max(depth - 2, 1), "value")]
        kind.children = [Kind("+s", "entries", False, entries, branch="+s")]
    elif branch in ("+s", "+us", "+ud"):
        kind.children = [draw_kind(rng, depth - 1, f"f {i}") for i in range(rng.randint(branch != "+s", 3))]
        if branch != "+s":
            kind.ids = rng.sample(range(128), len(kind.children))
            kind.format = f"{branch}:{','.join(map(str, kind.ids))}"
    else:
        kind.children = [draw_kind(rng, depth - 1, "item")]
        if branch == "+w":
            kind.format = f"+w:{rng.randint(0, 3)}"
    return kind


def draw(kind, rng):
    """A value of a type; None where nulls are allowed, now and then."""
    if kind.format == "n" or (kind.nullable and rng.random() < 0.2):
        return None
    if kind.branch == "dictionary":
        return draw(kind.dictionary, rng)
    if kind.branch == "+r":
        return draw(kind.children[1], rng)
    if kind.branch in ("+us", "+ud"):
        child = rng.randrange(len(kind.children))
        return InUnion(child, draw(kind.children[child], rng))
    if kind.branch == "+s":
        return {child.name: draw(child, rng) for child in kind.children}
    if kind.branch in LISTS:
        count = int(kind.format[3:]) if kind.branch == "+w" else rng.randint(0, 3)
        return [draw(kind.children[0], rng) for _ in range(count)]
    if kind.format == "b":
        return rng.random() < 0.5
    if kind.format in TEXTS:
        word = rng.choice(WORDS) + str(rng.randint(0, 9))
        return word if kind.format in ("u", "U", "vu") else word.encode() + rng.randbytes(2)
    return FIXED[kind.format][0](rng)


def some(kind, rng):
    """A value that is there, to lie under a null."""
    while True:
        value = draw(Kind(kind.format, kind.name, False, kind.children, kind.dictionary, kind.ids, kind.branch), rng)
        if value is not None or kind.format == "n" or kind.branch in ("dictionary", "+r"):
            return value


def plain(kind, value):
    """A value as pyarrow shows it."""
    if value is None:
        return None
    if kind.branch == "dictionary":
        return plain(kind.dictionary, value)
    if kind.branch == "+r":
        return plain(kind.children[1], value)
    if kind.branch in ("+us", "+ud"):
        return plain(kind.children[value.child], value.value)
    if kind.branch == "+s":
        return {child.name: plain(child, value[child.name]) for child in kind.children}
    if kind.branch == "+m":
        entries = [plain(kind.children[0], entry) for entry in value]
        return [(entry["key"], entry["value"]) for entry in entries]
    if kind.branch in LISTS:
        return [plain(kind.children[0], item) for item in value]
    return value


def bits(flags, rng):
    """Flags as bits, the lowest first; what is left of the last byte is random."""
    flags = [bool(flag) for flag in flags]
    flags += [rng.random() < 0.5 for _ in range(-len(flags) % 8)]
    return bytes(sum(flag << i for i, flag in enumerate(flags[at : at + 8])) for at in range(0, len(flags), 8))


def _runs(rows, rng):
    """Equal neighbours together, though not all of them."""
    ends, values = [], []
    for i, row in enumerate(rows):
        if values and repr(values[-1]) == repr(row) and rng.random() < 0.8:
            ends[-1] = i + 1
        else:
            ends.append(i + 1)
            values.append(row)
    return ends, values


def _offsets(rows, size, room, rng):
    """Where rows of some sizes end when they lie one after another, from a first offset that need not be 0."""
    first = rng.choice((0, 0, room))
    offsets = [first]
    for row in rows:
        offsets.append(offsets[-1] + size(row))
    return offsets


def build(kind, values, rng):
    """Values as raw buffers, in a window on more rows."""
    # pyarrow takes no notice of an offset of a map's entries.
    lead, tail = 0 if kind.name == "entries" else rng.choice((0, 0, 1, 3, 9)), rng.choice((0, 0, 2))
    rows = [draw(kind, rng) for _ in range(lead)] + values + [draw(kind, rng) for _ in range(tail)]
    made = Built(kind, values, len(values), lead, 0, [])
    if kind.format == "n":
        made.nulls = len(values)
        return made
    if kind.branch in ("+us", "+ud", "+r"):
        {"+us": _sparse, "+ud": _dense, "+r": _run_ends}[kind.branch](made, rows, rng)
        return made
    # An index may be null, or lead to a null.
    is_null = [row is None for row in rows]
    if kind.branch == "dictionary" and kind.dictionary.nullable:
        is_null = [null and rng.random() < 0.5 for null in is_null]
    made.nulls = sum(is_null[lead : lead + len(values)])
    has_bitmap = any(is_null) or rng.random() < 0.3
    made.buffers.append((VALIDITY, bits([not null for null in is_null], rng) if has_bitmap else None))
    if kind.branch == "dictionary":
        _indices(made, rows, is_null, rng)
        return made
    rows = [some(kind, rng) if row is None else row for row in rows]
    if kind.branch == "+s":
        made.children = [build(child, [row[child.name] for row in rows], rng) for child in kind.children]
    elif kind.branch == "+w":
        made.children = [build(kind.children[0], [item for row in rows for item in row], rng)]
    elif kind.branch in ("+vl", "+vL"):
        _list_view(made, rows, rng)
    elif kind.branch in LISTS:
        _list(made, rows, rng)
    elif kind.format == "b":
        made.buffers.append((DATA, bits(rows, rng)))
    elif kind.format in ("vu", "vz"):
        _views(made, rows, rng)
    elif kind.format in TEXTS:
        encoded = [row.encode() if isinstance(row, str) else row for row in rows]
        offsets = _offsets(encoded, len, 5, rng)
        made.buffers.append((OFFSETS, struct.pack(f"={len(offsets)}{'i' if kind.format in 'uz' else 'q'}", *offsets)))
        made.buffers.append((DATA, b"j" * offsets[0] + b"".join(encoded) + b"j" * rng.choice((0, 7))))
    else:
        made.buffers.append((DATA, b"".join(FIXED[kind.format][1](row) for row in rows)))
    return made


def _list(made, rows, rng):
    offsets = _offsets(rows, len, 2, rng)
    item = made.kind.children[0]
    items = [draw(item, rng) for _ in range(offsets[0])] + [one for row in rows for one in row]
    items += [draw(item, rng) for _ in range(rng.choice((0, 2)))]
    code = "q" if made.kind.branch == "+L" else "i"
    made.buffers.append((OFFSETS, struct.pack(f"={len(offsets)}{code}", *offsets)))
    made.children = [build(item, items, rng)]


def _list_view(made, rows, rng):
    """Rows lie in any order, with gaps, and equal neighbours share their items."""
    offsets, items = [0] * len(rows), []
    item = made.kind.children[0]
    order = rng.sample(range(len(rows)), len(rows))
    for before, i in zip([None] + order, order):
        if before is not None and repr(rows[before]) == repr(rows[i]):
            offsets[i] = offsets[before]
            continue
        items += [draw(item, rng) for _ in range(rng.choice((0, 0, 1)))]
        offsets[i] = len(items)
        items += rows[i]
    code = "q" if made.kind.branch == "+vL" else "i"
    made.buffers.append((OFFSETS, struct.pack(f"={len(rows)}{code}", *offsets)))
    made.buffers.append((SIZES, struct.pack(f"={len(rows)}{code}", *map(len, rows))))
    made.children = [build(item, items, rng)]


def _views(made, rows, rng):
    data, views = [b"j" * rng.choice((0, 3)) for _ in range(rng.randint(0, 3))], b""
    for row in rows:
        row = row.encode() if isinstance(row, str) else row
        if len(row) <= 12:
            views += struct.pack("=i12s", len(row), row)
            continue
        data = data or [b""]
        which = rng.randrange(len(data))
        views += struct.pack("=i4sii", len(row), row[:4], which, len(data[which]))
        data[which] += row + b"j" * rng.choice((0, 1))
    made.buffers.append((VIEWS, views))
    made.buffers += [(VARIADIC, one) for one in data]
    sizes = struct.pack(f"={len(data)}q", *map(len, data))
    made.buffers.append((VARIADIC_SIZES, rng.choice((None, sizes))))


def _indices(made, rows, is_null, rng):
    values = []
    for row, null in zip(rows, is_null):
        if not null and repr(row) not in map(repr, values):
            values.append(row)
    values += [draw(made.kind.dictionary, rng) for _ in range(rng.choice((0, 2)))]
    rng.shuffle(values)
    known = [repr(value) for value in values]
    # An index under a null leads nowhere.
    indices = [99 if null else known.index(repr(row)) for row, null in zip(rows, is_null)]
    encode = FIXED[made.kind.format][1]
    made.buffers.append((DATA, b"".join(map(encode, indices))))
    made.dictionary = build(made.kind.dictionary, values, rng)


def _sparse(made, rows, rng):
    made.buffers.append((TYPE_IDS, bytes(made.kind.ids[row.child] for row in rows)))
    for i, child in enumerate(made.kind.children):
        made.children.append(
            build(child, [row.value if row.child == i else draw(child, rng) for row in rows], rng)
        )


def _dense(made, rows, rng):
    values = [[draw(child, rng) for _ in range(rng.choice((0, 1)))] for child in made.kind.children]
    offsets = []
    for row in rows:
        offsets.append(len(values[row.child]))
        values[row.child].append(row.value)
    made.buffers.append((TYPE_IDS, bytes(made.kind.ids[row.child] for row in rows)))
    made.buffers.append((OFFSETS, struct.pack(f"={len(rows)}i", *offsets)))
    made.children = [build(child, own, rng) for child, own in zip(made.kind.children, values)]


def _run_ends(made, rows, rng):
    ends, values = _runs(rows, rng)
    made.children = [build(made.kind.children[0], ends, rng), build(made.kind.children[1], values, rng)]
