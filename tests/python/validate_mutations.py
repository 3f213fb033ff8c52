"""One change to a valid array: a member of a struct, a pointer, a format, or a byte or number of a buffer."""

import struct
from dataclasses import dataclass

SCHEMA_MEMBERS = ("format", "name", "metadata", "flags", "n_children", "children", "dictionary", "release")
ARRAY_MEMBERS = (
    "length", "null_count", "offset", "n_buffers", "n_children", "buffers", "children", "dictionary", "release",
)
COUNTS = ("length", "null_count", "offset", "n_buffers", "n_children")
# Formats that stand for something else, or for nothing.
FORMATS = (
    "n", "b", "c", "S", "i", "l", "L", "g", "z", "Z", "u", "U", "vz", "vu", "w:0", "w:3", "w:4", "w:-1", "w:", "w: 3",
    "w:99999999999", "d:9,2", "d:1,0", "d:38,10", "d:39,0", "d:76,0,256", "d:10,0,32", "d:9,0,32", "d:18,-3,64", "d:0,0",
    "d:5", "d:5,2,16", "d:5,2,128,1", "d:5,+2", "tdD", "tdm", "tts", "ttm", "ttu", "ttn", "tss", "tss:", "tsx:", "tsn:UTC",
    "ts", "t", "tiM", "tiD", "tin", "tix", "tDs", "tDx", "+l", "+L", "+vl", "+vL", "+w:0", "+w:1", "+w:2", "+w:-1", "+w",
    "+w:2147483647", "+w:2147483648", "+s", "+m", "+r", "+us:", "+us:0", "+us:0,1", "+us:0,1,2", "+ud:0,1", "+ud:5,5",
    "+us:128", "+us:-1", "+us:0,", "+us", "+ux:0", "+x", "+", "", "ii", "i ", "vx", "x", "d", "w", "+vx",
)


@dataclass
class Mutation:
    """Bytes at a place that become others."""

    what: str
    address: int
    before: bytes
    after: bytes

    def apply(self, arena):
        arena.write(self.address, self.after)

    def undo(self, arena):
        arena.write(self.address, self.before)


class Mutator:
    """Draws mutations of a placed array."""

    def __init__(self, placed, rng):
        self.placed, self.arena, self.rng = placed, placed.arena, rng

    def draw(self):
        """A mutation that changes something."""
        kinds = [self.array_member] * 5 + [self.buffer] * 9 + [self.schema_member] * 2 + [self.format] * 2
        kinds += [self.pointer] * 2 + [self.metadata]
        while True:
            made = self.rng.choice(kinds)()
            if made and made.before != made.after:
                return made

    def _made(self, what, address, after):
        return Mutation(what, address, self.arena.read(address, len(after)), after)

    def array_member(self):
        at, i = self.rng.choice(self.placed.array_structs), self.rng.randrange(len(ARRAY_MEMBERS))
        name, address = ARRAY_MEMBERS[i], at + 8 * i
        if name in COUNTS:
            return self._made(f"array {name}", address, self._count(address))
        others = [0] * 3 + (self.placed.array_structs if name == "dictionary" else [0])
        return self._made(f"array {name}", address, struct.pack("=Q", self.rng.choice(others)))

    def _count(self, address):
        now = struct.unpack("=q", self.arena.read(address, 8))[0]
        near = (-1, -2, 0, 1, 2, now - 1, now + 1, now - 2, now + 3)
        far = (2**31, 2**32 + 1, 2**60, 2**62, 2**63 - 1, -(2**63), 2**63 - 1 - now)
        chosen = self.rng.choice(near if self.rng.random() < 0.75 else far)
        return struct.pack("=q", max(min(chosen, 2**63 - 1), -(2**63)))

    def schema_member(self):
        at, i = self.rng.choice(self.placed.schema_structs), self.rng.randrange(len(SCHEMA_MEMBERS))
        name, address = SCHEMA_MEMBERS[i], at + 8 * i
        if name == "n_children":
            return self._made("schema n_children", address, self._count(address))
        if name == "flags":
            flags = self.rng.choice((0, 1, 2, 4, 6, 7, 8, -1, 2**62))
            return self._made("schema flags", address, struct.pack("=q", flags))
        return self._made(f"schema {name}", address, bytes(8))

    def pointer(self):
        at, n = self.rng.choice(self.placed.lists or [(0, 0)])
        if not n:
            return None
        address = at + 8 * self.rng.randrange(n)
        other, m = self.rng.choice(self.placed.lists)
        after = self.rng.choice((bytes(8), bytes(8), self.arena.read(other + 8 * self.rng.randrange(m), 8)))
        known = [one for one, _ in self.placed.buffers] + [0]
        same_kind = [struct.unpack("=Q", one)[0] in known for one in (after, self.arena.read(address, 8))]
        # A struct in the place of a buffer is memory of another shape, which nobody can tell.
        return self._made("pointer", address, after if all(same_kind) else bytes(8))

    def format(self):
        at, n = self.rng.choice(self.placed.formats)
        if n and self.rng.random() < 0.5:
            byte = self.rng.choice(b"+0129,:cilstuvwdDx\xff ")
            return self._made("format byte", at + self.rng.randrange(n), bytes([byte]))
        struct_at = self.placed.schema_structs[self.rng.randrange(len(self.placed.schema_structs))]
        text = self.rng.choice(FORMATS)
        placed = self.arena.place(text.encode() + b"\0")
        return self._made(f"format {text}", struct_at, struct.pack("=Q", placed))

    def metadata(self):
        if not self.placed.metadata:
            return None
        at, n = self.rng.choice(self.placed.metadata)
        byte = self.rng.choice((0, 1, 2, 5, 0x80, 0xFF))
        return self._made("metadata byte", at + self.rng.randrange(n), bytes([byte]))

    def buffer(self):
        if not self.placed.buffers:
            return None
        at, n = self.rng.choice(self.placed.buffers)
        choice = self.rng.randrange(4)
        if choice == 0:
            address = at + self.rng.randrange(n)
            bit = 1 << self.rng.randrange(8)
            return self._made("buffer bit", address, bytes([self.arena.read(address, 1)[0] ^ bit]))
        if choice == 1:
            byte = self.rng.choice((0, 1, 0x7F, 0x80, 0xC0, 0xFF, self.rng.randrange(256)))
            return self._made("buffer byte", at + self.rng.randrange(n), bytes([byte]))
        width = self.rng.choice([one for one in (2, 4, 8, 16) if n % one == 0] or [1])
        # Faults hide best in the last row, and one step beyond a length.
        last = n // width - 1
        address = at + width * self.rng.choice((self.rng.randint(0, last), self.rng.randint(0, last), last))
        now = int.from_bytes(self.arena.read(address, width), "little", signed=True)
        edge = 1 << (8 * width - 1)
        length = struct.unpack("=q", self.arena.read(self.rng.choice(self.placed.array_structs), 8))[0]
        after = self.rng.choice((now + 1, now - 1, -1, 0, 1, edge - 1, -edge, 100, length, length))
        return self._made("buffer number", address, (after % (2 * edge)).to_bytes(width, "little"))
