"""What is wrong with a schema, found slowly and on its own; `slow_checker` goes on with arrays.

Nothing here asks the library what a format is: each is written out from the Arrow C Data interface. Memory is read one
element at a time, and only where the maker of the structs says that there is some; a check that would have to read more
than that says so instead.
"""

import struct
from dataclasses import dataclass, field

STRUCTURE, BOUNDS, FULL = 2, 1, 0
INT64_MAX = 2**63 - 1
METADATA_LIMIT = 1 << 26
INDICES = "cCsSiIlL"
DAY = 86_400

# Bytes of a value, by format.
WIDTHS = {
    "c": 1, "C": 1, "s": 2, "S": 2, "i": 4, "I": 4, "l": 8, "L": 8, "e": 2, "f": 4, "g": 8, "tdD": 4, "tdm": 8,
    "tts": 4, "ttm": 4, "ttu": 8, "ttn": 8, "tiM": 4, "tiD": 8, "tin": 16, "tDs": 8, "tDm": 8, "tDu": 8, "tDn": 8,
}
CODES = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "L": "Q"}
TIMES = {"tts": DAY, "ttm": DAY * 10**3, "ttu": DAY * 10**6, "ttn": DAY * 10**9}


class Unreadable(Exception):
    """The structs claim memory that is not there: nobody can check them."""


@dataclass(frozen=True)
class Finding:
    """A broken rule. `what` names the kind of fault, for those who compare several checkers."""

    level: int
    rule: str
    path: str
    row: int
    what: str


class BadFormat(Exception):
    """A format string that means nothing; its only argument is the rule."""


@dataclass
class Layout:
    """What a format string says."""

    kind: str
    width: int = 0
    precision: int = 0
    ids: tuple = ()
    n_children: int | None = 0


@dataclass
class Type:
    """A node of a schema that was read."""

    layout: Layout
    path: str
    nullable: bool = True
    # As the schema claims; some may be missing.
    n_children: int = 0
    children: list = field(default_factory=list)
    dictionary: "Type | None" = None


def _digits(text, most):
    if not text or any(c not in "0123456789" for c in text) or int(text) > most:
        return None
    return int(text)


def _sized(text, prefix, kind, n_children):
    size = _digits(text[len(prefix) :], 2**31 - 1) if text.startswith(prefix) else None
    if size is None:
        raise BadFormat("F3")
    return Layout(kind, size, n_children=n_children)


def _decimal(text):
    parts = text[2:].split(",")
    if not text.startswith("d:") or len(parts) not in (2, 3):
        raise BadFormat("F2")
    bits = parts[2] if len(parts) == 3 else "128"
    most = {"32": 9, "64": 18, "128": 38, "256": 76}.get(bits)
    precision, scale = _digits(parts[0], 76), _digits(parts[1].removeprefix("-"), 2**31)
    if most is None or scale is None or precision is None or not 1 <= precision <= most:
        raise BadFormat("F2")
    if scale == 2**31 and not parts[1].startswith("-"):
        raise BadFormat("F2")
    return Layout("decimal", int(bits) // 8, precision)


def _union(text):
    listed = text[4:]
    if text[:4] not in ("+us:", "+ud:"):
        raise BadFormat("F5")
    ids = [_digits(one, 127) for one in listed.split(",")] if listed else []
    if None in ids or len(set(ids)) != len(ids):
        raise BadFormat("F5")
    return Layout("sparse" if text[2] == "s" else "dense", ids=tuple(ids), n_children=len(ids))


def parse(raw):
    """What a format string means, without its NUL."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise BadFormat("S1") from None
    nested = {"+l": 1, "+L": 1, "+vl": 1, "+vL": 1, "+m": 1, "+s": None, "+r": 2}
    if text in WIDTHS:
        return Layout("fixed " + text, WIDTHS[text])
    if text in ("n", "b", "z", "Z", "u", "U", "vz", "vu"):
        return Layout(text)
    if text in nested:
        return Layout(text, n_children=nested[text])
    if text.startswith("ts"):
        if text[2:3] not in tuple("smun") or text[3:4] != ":":
            raise BadFormat("F4")
        return Layout("fixed ts", 8)
    for prefix, rule in (("t", "F4"), ("+u", None), ("d", None), ("w", None), ("+w", None)):
        if not text.startswith(prefix):
            continue
        if prefix == "t":
            raise BadFormat(rule)
        if prefix == "+u":
            return _union(text)
        if prefix == "d":
            return _decimal(text)
        return _sized(text, prefix + ":", "binary" if prefix == "w" else "+w", 0 if prefix == "w" else 1)
    raise BadFormat("F1")


class Reader:
    """Memory, one number at a time."""

    def __init__(self, read):
        # Gives `n` bytes at an address, or raises Unreadable.
        self.bytes = read

    def one(self, address, code):
        return struct.unpack(f"={code}", self.bytes(address, struct.calcsize(f"={code}")))[0]

    def text(self, address):
        found = b""
        while (byte := self.bytes(address + len(found), 1)) != b"\0":
            found += byte
        return found

    def schema(self, address):
        names = ("format", "name", "metadata", "flags", "n_children", "children", "dictionary", "release")
        return {name: self.one(address + 8 * i, "q" if i in (3, 4) else "Q") for i, name in enumerate(names)}

    def array(self, address):
        names = (
            "length", "null_count", "offset", "n_buffers", "n_children", "buffers", "children", "dictionary", "release",
        )
        return {name: self.one(address + 8 * i, "q" if i < 5 else "Q") for i, name in enumerate(names)}


def _step(name):
    plain = name and name.isascii() and name.decode().isidentifier()
    return "." + (name.decode() if plain else '"' + name.decode(errors="replace") + '"')


class SchemaChecker:
    """Everything that is wrong with a schema."""

    def __init__(self, reader):
        self.reader, self.found = reader, []

    def _tell(self, rule, path, what):
        self.found.append(Finding(STRUCTURE, rule, path, -1, what))

    def check(self, address):
        """The type, when it is sound enough to be one."""
        if not self.reader.schema(address)["release"]:
            self._tell("M2", "$", "released")
            return None
        made = self._node(address, "$")
        return None if self.found else made

    def _node(self, address, path):
        raw = self.reader.schema(address)
        layout = self._format(raw, path)
        children, n = [], raw["n_children"]
        if n < 0:
            self._tell("S5", path, "negative n_children")
        elif n > 2**24:
            self._tell("", path, "too many children")
        if layout and 0 <= n <= 2**24:
            self._counts(layout, n, raw, path)
        self._metadata(raw["metadata"], path)
        if 0 < n <= 2**24 and not raw["children"]:
            self._tell("S5", path, "no list of children")
        n = n if n <= 2**24 and raw["children"] else 0
        self.reader.bytes(raw["children"], 8 * max(n, 0))
        for i in range(n):
            at = self.reader.one(raw["children"] + 8 * i, "Q")
            if not at or not self.reader.schema(at)["release"]:
                self._tell("S5", path, "child missing" if not at else "child released")
                children.append(None)
                continue
            children.append(self._node(at, path + self._name(at)))
        if layout:
            self._below(layout, children)
        dictionary = None
        if raw["dictionary"]:
            if self.reader.schema(raw["dictionary"])["release"]:
                dictionary = self._node(raw["dictionary"], path + "<dictionary>")
            else:
                self._tell("S6", path, "dictionary released")
        return layout and Type(layout, path, bool(raw["flags"] & 2), raw["n_children"], children, dictionary)

    def _name(self, address):
        name = self.reader.schema(address)["name"]
        return _step(self.reader.text(name) if name else b"")

    def _format(self, raw, path):
        if not raw["format"]:
            self._tell("S1", path, "no format")
            return None
        try:
            return parse(self.reader.text(raw["format"]))
        except BadFormat as bad:
            self._tell(bad.args[0], path, "bad format")
            return None

    def _counts(self, layout, n, raw, path):
        if raw["dictionary"]:
            if layout.kind.removeprefix("fixed ") not in INDICES:
                self._tell("S6", path, "indices that are no integers")
                return
            if n:
                self._tell("S6", path, "children beside a dictionary")
                return
        if layout.n_children is not None and n != layout.n_children:
            self._tell("F5", path, "number of children")

    def _below(self, layout, children):
        if layout.kind == "+m" and children and children[0]:
            entries = children[0]
            # A number of children that cannot be was told of as such.
            is_counted = 0 <= entries.n_children <= 2**24
            if entries.layout.kind != "+s" or (is_counted and entries.n_children != 2):
                self._tell("F5", entries.path, "entries that are no pairs")
            elif entries.nullable:
                self._tell("F5", entries.path, "nullable entries")
            key = entries.children[0] if entries.layout.kind == "+s" and entries.children else None
            if key and key.nullable:
                self._tell("F5", key.path, "nullable keys")
        if layout.kind == "+r":
            ends, values = (children + [None, None])[:2]
            if ends and (ends.layout.kind not in ("fixed s", "fixed i", "fixed l") or ends.dictionary):
                self._tell("F5", ends.path, "run ends of another type")
            if values and values.layout.kind == "+r":
                self._tell("F5", values.path, "runs of runs")

    def _metadata(self, address, path):
        if not address:
            return
        reader, at = self.reader, address
        pairs = reader.one(at, "i")
        at += 4
        if pairs < 0 or pairs > METADATA_LIMIT // 8:
            self._tell("S3", path, "bad metadata")
            return
        for _ in range(2 * pairs):
            length = reader.one(at, "i")
            at += 4 + length
            if length < 0 or at - address > METADATA_LIMIT:
                self._tell("S3", path, "bad metadata")
                return
            reader.bytes(at - length, length)
