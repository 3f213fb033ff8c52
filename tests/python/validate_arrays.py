"""Random valid arrays of every type, as raw structs in memory that ends where they end.

Every buffer is as long as its array needs, and right behind it lies a page that may not be touched. Rows before the
window, bits behind it and bytes under nulls are random wherever no rule is about them.
"""

import ctypes
import mmap
import random
import struct
from ctypes import c_int, c_long, c_size_t, c_void_p

import slow_schema
from raw import Node, metadata

_libc = ctypes.CDLL(None)
_libc.mmap.restype, _libc.mmap.argtypes = c_void_p, [c_void_p, c_size_t, c_int, c_int, c_int, c_long]
_libc.mprotect.argtypes = [c_void_p, c_size_t, c_int]
PAGE = mmap.PAGESIZE


class Arena:
    """Pieces of memory that each end right before a page without access; and who may read what."""

    def __init__(self, slots=1200, pages=1):
        self.room, self.step = pages * PAGE, (pages + 1) * PAGE
        self.base = _libc.mmap(None, self.step * slots, mmap.PROT_READ | mmap.PROT_WRITE, 0x22, -1, 0)
        assert self.base not in (None, c_void_p(-1).value)
        for slot in range(slots):
            assert _libc.mprotect(self.base + slot * self.step + self.room, PAGE, 0) == 0
        self.slots, self.pieces = slots, []

    def clear(self):
        self.pieces = []

    def place(self, data):
        """Puts bytes down; the address."""
        assert len(data) <= self.room and len(self.pieces) < self.slots
        at = self.base + len(self.pieces) * self.step + self.room - len(data)
        self.pieces.append((at, len(data)))
        ctypes.memmove(at, data, len(data))
        return at

    def place_buffer(self, data):
        """The same, of what an array's buffer holds."""
        return self.place(data)

    def read(self, address, n):
        """The bytes at an address, when all of them were put there."""
        slot = (address - self.base) // self.step
        is_known = n <= self.room and 0 <= slot < len(self.pieces)
        if n and not (is_known and self._is_inside(address, n, *self.pieces[slot])):
            raise slow_schema.Unreadable
        return ctypes.string_at(address, n) if n else b""

    @staticmethod
    def _is_inside(address, n, start, size):
        return start <= address and address + n <= start + size

    def write(self, address, data):
        ctypes.memmove(address, data, len(data))


class Placed:
    """A node as structs in an arena, and where everything of it is."""

    def __init__(self, arena, node, releases=(1, 1)):
        self.arena, self.releases = arena, releases
        # Name of a place, address, size: what may be mutated.
        self.schema_structs, self.array_structs = [], []
        self.buffers, self.lists, self.formats, self.metadata = [], [], [], []
        self.schema, self.array = self._schema(node), self._array(node)

    def _list(self, addresses):
        if not addresses:
            return 0
        at = self.arena.place(struct.pack(f"={len(addresses)}Q", *addresses))
        self.lists.append((at, len(addresses)))
        return at

    def _schema(self, node):
        text = node.format.encode() + b"\0"
        format = self.arena.place(text)
        self.formats.append((format, len(text) - 1))
        name = 0 if node.name is None else self.arena.place(node.name + b"\0")
        encoded = self.arena.place(node.metadata) if node.metadata else 0
        if encoded:
            self.metadata.append((encoded, len(node.metadata)))
        children = [self._schema(child) for child in node.children]
        dictionary = self._schema(node.dictionary) if node.dictionary else 0
        at = self.arena.place(struct.pack(
            "=QQQqqQQQQ", format, name, encoded, node.flags, len(children), self._list(children), dictionary,
            self.releases[0], 0,
        ))
        self.schema_structs.append(at)
        return at

    def _array(self, node):
        buffers = [0 if data is None else self.arena.place_buffer(data) for data in node.buffers]
        self.buffers += [(at, len(data)) for at, data in zip(buffers, node.buffers) if isinstance(data, bytes) and data]
        children = [self._array(child) for child in node.children]
        dictionary = self._array(node.dictionary) if node.dictionary else 0
        at = self.arena.place(struct.pack(
            "=qqqqqQQQQQ", node.length, node.nulls, node.offset, len(buffers), len(children), self._list(buffers),
            self._list(children), dictionary, self.releases[1], 0,
        ))
        self.array_structs.append(at)
        return at


# Every format of one fixed width, without those that have parameters.
FIXED = list(slow_schema.WIDTHS) + ["tss:", "tsm:UTC", "tsu:+05:30", "tsn:Europe/Paris"]
TEXT = ["z", "Z", "u", "U", "vz", "vu"]
PARAMETERS = ["decimal", "w", "b", "n"]
LEAVES = FIXED + TEXT + PARAMETERS
BRANCHES = ["+l", "+L", "+vl", "+vL", "+w", "+s", "+m", "+us", "+ud", "+r", "dictionary"]
DECIMALS = {32: 9, 64: 18, 128: 38, 256: 76}
WORDS = ["", "a", "é", "twelve bytes", "thirteen byte", "☂☂☂☂☂", "more than any view holds inline", "\U0001f3f9"]


class Maker:
    """Draws arrays: strict ones as every producer should write them, others as some do and all may.

    With `null_keys`, maps have nulls among the keys that no entry has.
    """

    def __init__(self, seed, strict=False, null_keys=False):
        self.rng, self.strict, self.null_keys = random.Random(seed), strict, null_keys
        self.formats = set()

    def lenient(self, chance=1):
        """Whether to do now what is only allowed."""
        return self.rng.random() < chance and not self.strict

    def draw(self):
        """A node with everything below it."""
        node = self.node(self.rng.choice((0, 1, 2, 3, 5, 9)), self.rng.choice((1, 1, 2, 3)))
        node.name = self.rng.choice((b"", b"root", None))
        if self.strict:
            node.name = b"root"
        return node

    def bits(self, flags):
        flags = list(flags) + [self.rng.random() < 0.5 for _ in range(-len(flags) % 8)]
        return bytes(sum(bool(f) << i for i, f in enumerate(flags[at : at + 8])) for at in range(0, len(flags), 8))

    def node(self, length, depth, nullable=True, leaf=None, name=b""):
        """A node of so many rows. `leaf` prescribes the type."""
        rng = self.rng
        kind = leaf or (rng.choice(BRANCHES) if depth > 1 else rng.choice(LEAVES))
        node = Node(kind, length, 0, rng.choice((0, 0, 1, 3, 8)), name=name, flags=2 * nullable)
        if rng.random() < 0.1:
            node.metadata = metadata((b"ARROW:extension:name", b"x.y"), (b"k", rng.randbytes(3)))
        rows = length + node.offset
        self.formats.add(kind)
        if kind == "n":
            node.nulls = -1 if self.lenient(0.5) else length
            node.buffers = [None] if self.lenient(0.3) else []
            return node
        if kind in ("+us", "+ud", "+r"):
            {"+us": self.sparse, "+ud": self.dense, "+r": self.runs}[kind](node, rows, depth)
            return node
        valid = [not nullable or rng.random() < 0.75 for _ in range(rows)]
        if rng.random() < 0.3:
            valid = [True] * rows
        nulls = valid[node.offset :].count(False)
        has_bitmap = rows and (nulls or rng.random() < 0.3)
        node.nulls = -1 if rng.random() < 0.3 and (has_bitmap or not self.strict) else nulls
        node.buffers = [self.bits(valid) if has_bitmap else None]
        # Where no rule looks, anything may be.
        seen = [self.strict or (ok and i >= node.offset) for i, ok in enumerate(valid)]
        if kind == "dictionary":
            self.dictionary(node, seen, depth)
        elif kind in ("+l", "+L", "+m"):
            self.lists(node, rows, depth)
        elif kind in ("+vl", "+vL"):
            self.list_views(node, rows, depth)
        elif kind in ("+s", "+w"):
            self.fixed_children(node, rows, depth)
        elif kind in ("vz", "vu"):
            self.views(node, seen)
        elif kind in TEXT:
            self.text(node, seen)
        elif kind == "b":
            node.buffers.append(self.data(rng.randbytes((rows + 7) // 8)))
        else:
            self.numbers(node, seen)
        return node

    def data(self, data):
        """A buffer; one without bytes may be NULL."""
        return data or (None if self.lenient(0.5) else b"")

    def child(self, rows, depth, **more):
        """A child of at least so many rows."""
        return self.node(rows + self.rng.choice((0, 0, 1, 2)), depth - 1, **more)

    def numbers(self, node, seen):
        rng = self.rng
        if node.format == "decimal":
            bits = rng.choice(list(DECIMALS))
            precision = rng.choice((1, 2, DECIMALS[bits] // 2, DECIMALS[bits]))
            tail = f",{bits}" if bits != 128 or rng.random() < 0.5 else ""
            node.format = f"d:{precision},{rng.choice((0, 2, -3))}{tail}"
            width, edge = bits // 8, 10**precision - 1
            value = lambda: rng.choice((rng.randint(-edge, edge), edge, -edge)).to_bytes(width, "little", signed=True)
        elif node.format == "w":
            width = rng.choice((0, 1, 3, 16))
            node.format = f"w:{width}"
            value = lambda: rng.randbytes(width)
        else:
            width = slow_schema.WIDTHS.get(node.format, 8)
            value = lambda: rng.randbytes(width)
            if node.format == "tdm":
                value = lambda: struct.pack("=q", rng.randint(-9999, 9999) * 86_400_000)
            elif node.format in slow_schema.TIMES:
                end = slow_schema.TIMES[node.format]
                value = lambda: rng.choice((0, end - 1, rng.randrange(end))).to_bytes(width, "little")
        made = b"".join(value() if ok else rng.randbytes(width) for ok in seen)
        node.buffers.append(self.data(made))

    def ascending(self, node, rows, room, wide):
        """Offsets of rows; only those of the window ascend. The buffer, and the last offset."""
        rng = self.rng
        found = [rng.choice((0, 0, 2))]
        for size in room:
            found.append(found[-1] + size)
        if not rows[node.offset :] and self.lenient(0.5):
            return rng.choice((None, b"")), 0
        junk = [rng.choice((-5, 0, 1 << 20)) if self.lenient() else 0 for _ in range(node.offset)]
        values = junk + found
        if not node.length:
            values = junk + [rng.choice((0, 123, -7)) if self.lenient() else 0]
        return struct.pack(f"={len(values)}{'q' if wide else 'i'}", *values), found[-1]

    def text(self, node, seen):
        rng = self.rng
        chosen = [self.word(node.format, ok) for ok in seen[node.offset :]]
        offsets, end = self.ascending(node, seen, map(len, chosen), node.format in "ZU")
        lead = end - sum(map(len, chosen)) if offsets else 0
        node.buffers += [offsets, self.data(rng.randbytes(lead) + b"".join(chosen) if node.length else b"")]

    def word(self, format, seen):
        rng = self.rng
        if seen and format[-1] in "uU":
            return (rng.choice(WORDS) + rng.choice("0123456789")).encode()
        return rng.randbytes(rng.choice((0, 1, 5, 12, 13, 20)))

    def views(self, node, seen):
        rng = self.rng
        data = [rng.randbytes(rng.choice((0, 3))) for _ in range(rng.randint(0, 2))]
        made = b""
        for ok in seen:
            word = self.word(node.format, ok)
            if not ok and rng.random() < 0.7:
                # A view of a null, or of no row.
                made += rng.randbytes(16)
            elif len(word) <= 12:
                made += struct.pack("=i12s", len(word), word)
            else:
                data = data or [b""]
                which = rng.randrange(len(data))
                made += struct.pack("=i4sii", len(word), word[:4], which, len(data[which]))
                data[which] += word
        sizes = struct.pack(f"={len(data)}q", *map(len, data))
        node.buffers += [self.data(made), *map(self.data, data), self.data(sizes)]

    def lists(self, node, rows, depth):
        rng = self.rng
        sizes = [rng.choice((0, 1, 1, 2)) for _ in range(node.length)]
        offsets, end = self.ascending(node, [True] * rows, sizes, node.format == "+L")
        node.buffers.append(offsets)
        if node.format != "+m":
            node.children = [self.child(end, depth, name=b"item")]
            return
        entries = Node("+s", end + rng.choice((0, 1)), 0, rng.choice((0, 0, 2)), [None], name=b"entries", flags=0)
        inside = entries.length + entries.offset
        entries.children = [
            self.child(inside, 1, nullable=False, name=b"key", leaf=rng.choice(("u", "i", "l", "vu", "tdD", "b"))),
            self.child(inside, depth - 1, name=b"value"),
        ]
        node.children = [entries]
        if self.null_keys and entries.offset and rng.random() < 0.5:
            key = entries.children[0]
            unused = range(key.offset, key.offset + entries.offset)
            key.buffers[0] = self.bits([i not in unused for i in range(key.offset + key.length)])
            key.nulls = rng.choice((-1, len(unused)))

    def list_views(self, node, rows, depth):
        rng = self.rng
        end, code = rng.randint(0, 5), "q" if node.format == "+vL" else "i"
        starts = [rng.randint(0, end) for _ in range(rows)]
        sizes = [rng.randint(0, end - start) for start in starts]
        for i in range(node.offset if self.lenient() else 0):
            starts[i] = rng.choice((starts[i], -3, 1 << 30))
        node.buffers += [self.data(struct.pack(f"={rows}{code}", *one)) for one in (starts, sizes)]
        node.children = [self.child(end, depth, name=b"item")]

    def fixed_children(self, node, rows, depth):
        if node.format == "+w":
            size = self.rng.choice((0, 1, 2, 3))
            node.format = f"+w:{size}"
            node.children = [self.child(rows * size, depth, name=b"item")]
        else:
            names = [f"f{i}".encode() for i in range(self.rng.randint(0, 3))]
            node.children = [self.child(rows, depth, name=name) for name in names]

    def dictionary(self, node, seen, depth):
        rng = self.rng
        count = rng.randint(1 if any(seen) else 0, 4)
        node.format = rng.choice("cCsSiIlL")
        width = slow_schema.WIDTHS[node.format]
        value = lambda ok: rng.randrange(count).to_bytes(width, "little") if ok else rng.randbytes(width)
        node.buffers.append(self.data(b"".join(map(value, seen))))
        node.dictionary = self.node(count, depth - 1)

    def sparse(self, node, rows, depth):
        rng = self.rng
        ids = self.ids(node)
        node.children = [self.child(rows, depth, name=f"f{i}".encode()) for i in range(len(ids))]
        junk = [rng.randrange(256) if self.lenient() else ids[0] for _ in range(node.offset)]
        made = bytes(junk + [rng.choice(ids) for _ in range(node.length)])
        node.buffers = [None] * self.lenient(0.2) + [self.data(made)]
        node.nulls = -1 if self.lenient(0.3) else 0

    def ids(self, node):
        """The ids of a union; one without children has no rows."""
        rng = self.rng
        count = rng.choice((0, 1, 2, 3)) if not node.length and self.lenient() else rng.choice((1, 2, 3))
        ids = rng.sample(range(128), count)
        node.format += ":" + ",".join(map(str, ids))
        return ids

    def dense(self, node, rows, depth):
        rng = self.rng
        ids = self.ids(node)
        nexts = {one: rng.choice((0, 1)) for one in ids}
        chosen = [rng.choice(ids) for _ in range(node.length)]
        offsets = []
        for one in chosen:
            offsets.append(nexts[one])
            nexts[one] += rng.choice((0, 1, 1, 2))
        junk = [rng.randrange(256) if self.lenient() else ids[0] for _ in range(node.offset)]
        made = [bytes(junk + chosen), struct.pack(f"={rows}i", *([-9 * self.lenient()] * node.offset + offsets))]
        node.buffers = [None] * self.lenient(0.2) + [self.data(one) for one in made]
        node.children = [self.child(nexts[one] + 1, depth, name=f"f{i}".encode()) for i, one in enumerate(ids)]
        node.nulls = -1 if self.lenient(0.3) else 0

    def runs(self, node, rows, depth):
        rng = self.rng
        ends, at = [], 0
        while at < rows:
            at += rng.randint(1, 4)
            ends.append(at)
        if ends and rng.random() < 0.3:
            ends.append(ends[-1] + 1)
        kind = rng.choice("sil")
        run_ends = Node(kind, len(ends), -1 if self.lenient(0.5) else 0, rng.choice((0, 2)), name=b"run_ends", flags=0)
        values = [rng.choice((-1, 7)) for _ in range(run_ends.offset)] + ends
        run_ends.buffers = [None, self.data(struct.pack(f"={len(values)}{slow_schema.CODES[kind]}", *values))]
        node.buffers, node.nulls = [], -1 if self.lenient(0.3) else 0
        one = self.child(len(ends), depth, name=b"values")
        while one.format == "+r":
            one = self.child(len(ends), depth, name=b"values")
        node.children = [run_ends, one]
