"""What is wrong with an array, found slowly and on its own.

Nothing here asks the library what a layout is: each is written out from the Arrow columnar format. What the field
really emits is let through as the library promises to: no offsets where there are no values, a NULL buffer in front of
a union's, unknown null counts.
"""

from slow_schema import BOUNDS, CODES, DAY, FULL, INT64_MAX, STRUCTURE, TIMES, Finding, Unreadable

# Layouts with a validity bitmap have it first; numbers are the bytes of an element, "bits" are bits.
WIDE = ("Z", "U", "+L", "+vL")
WITHOUT_VALIDITY = ("n", "sparse", "dense", "+r")
NO_NULLS = ("sparse", "dense", "+r")


def windowed(raw, offset, length):
    """A struct as a window shows it: no nulls stay none, only nulls stay all, and else nobody knows."""
    nulls = {0: 0, raw["length"]: length}.get(raw["null_count"], raw["null_count"] if length == raw["length"] else -1)
    return raw | {"offset": offset, "length": length, "null_count": nulls}


class ArrayChecker:
    """Everything that is wrong with an array of a type, at every level."""

    def __init__(self, reader):
        self.reader, self.found = reader, []
        # Whether memory that is not there would have to be read to check what buffers hold.
        self.unreadable = False
        # Whether buffers that a sound check leaves alone, of no rows or behind wrong numbers, are shorter than claimed.
        self.is_short = False

    def check(self, address, ty, window=None):
        """Checks all of an array, or so many rows from a row on."""
        raw = self.reader.array(address)
        if not raw["release"]:
            self._tell(STRUCTURE, "M2", ty, "released")
            return
        # In a window, the children of structs are seen through their parent everywhere below.
        self.is_whole = window is None
        if window:
            window = (raw["offset"] + window[0], window[1])
        self._node(address, ty, window)

    def _tell(self, level, rule, ty, what, row=-1):
        self.found.append(Finding(level, rule, ty.path, row, what))

    def _node(self, address, ty, window=None):
        fault, raw = self._shape(address, ty)
        if fault:
            self._tell(STRUCTURE, fault[0], ty, fault[1])
            return
        whole = raw
        if window:
            raw = windowed(raw, *window)
        below = [self.reader.one(raw["children"] + 8 * i, "Q") for i in range(raw["n_children"])]
        kind = "dictionary" if ty.dictionary else ty.layout.kind
        counts, fits = self._numbers(raw, ty), self._count(raw, ty)
        if fits:
            buffers, told = self._buffers(raw, ty), len(self.found)
            sound = self._sizes(raw, ty, kind, buffers)
            if not counts:
                # What follows from wrong numbers was told with them.
                del self.found[told:]
                sound = False
            self.is_short |= (not counts or raw["length"] == 0) and self._lacks_memory(raw, kind)
            if counts and self.is_whole:
                sound &= self._child_lengths(raw, ty, kind, below)
            if sound:
                try:
                    # What the numbers claim may be read, whether a value is null or not.
                    for start, size in self.spans if raw["length"] else ():
                        self.reader.bytes(start, size if start else 0)
                    Contents(self, raw, ty, kind, buffers, below, whole).check()
                except Unreadable:
                    self.unreadable = True
        for child, child_type in zip(below, ty.children):
            self._node(child, child_type, self._below(raw, kind, ty.layout.width, child))
        if ty.dictionary:
            self._node(raw["dictionary"], ty.dictionary)

    def _below(self, raw, kind, width, child):
        """The window on a child; None for all of it."""
        per_row = {"+s": 1, "sparse": 1, "+w": width}.get(kind)
        if self.is_whole or per_row is None:
            return None
        return self.reader.array(child)["offset"] + raw["offset"] * per_row, raw["length"] * per_row

    def _shape(self, address, ty):
        """What is wrong with the lists of a struct, and the struct."""
        if not address or address % 8:
            return ("A7", "array missing"), None
        raw = self.reader.array(address)
        fault = None
        if not raw["release"]:
            fault = "A7", "released below the root"
        elif raw["n_children"] != len(ty.children):
            fault = "A7", "number of children"
        elif raw["n_children"] and not raw["children"]:
            fault = "A7", "no list of children"
        elif raw["n_buffers"] > 0 and not raw["buffers"]:
            fault = "A4", "no list of buffers"
        elif raw["dictionary"] and not ty.dictionary:
            fault = "A7", "dictionary without a type"
        return fault, raw

    def sound(self, address, ty):
        """The struct, when its lists and its length are there."""
        fault, raw = self._shape(address, ty)
        return None if fault or raw["length"] < 0 else raw

    def _numbers(self, raw, ty):
        length, offset, nulls = raw["length"], raw["offset"], raw["null_count"]
        if length < 0 or offset < 0 or length + offset > INT64_MAX:
            what = "negative length" if length < 0 else "negative offset" if offset < 0 else "length + offset overflows"
            self._tell(STRUCTURE, "A1", ty, what)
            return False
        if nulls < -1 or nulls > length:
            self._tell(STRUCTURE, "A2", ty, "null count below -1" if nulls < 0 else "null count above length")
            return False
        if nulls > 0 and ty.layout.kind in NO_NULLS:
            self._tell(STRUCTURE, "A2", ty, "nulls where there are none")
            return False
        return True

    def _lacks_memory(self, raw, kind):
        """Whether a buffer ends before the last place that the numbers claim."""
        if min(raw["length"], raw["offset"]) < 0:
            return False
        width = 8 if kind in WIDE else 4
        has_offsets = kind in ("z", "Z", "u", "U", "+l", "+L", "+m")
        try:
            for i, (start, size) in enumerate(self.spans):
                need = (raw["offset"] + 1) * width if has_offsets and i == 1 else size
                self.reader.bytes(start, need if start else 0)
        except Unreadable:
            return True
        return False

    def _expected(self, ty):
        kind = "dictionary" if ty.dictionary else ty.layout.kind
        if kind in ("z", "Z", "u", "U", "vz", "vu", "+vl", "+vL"):
            return 3
        return {"n": 0, "+r": 0, "+s": 1, "+w": 1, "sparse": 1}.get(kind, 2)

    def _count(self, raw, ty):
        n, expected = raw["n_buffers"], self._expected(ty)
        if n == expected or (ty.layout.kind in ("vz", "vu") and not ty.dictionary and 3 < n < 2**31 + 4):
            return True
        if ty.layout.kind in ("n", "sparse", "dense") and n == expected + 1:
            if self.reader.one(raw["buffers"], "Q") == 0:
                return True
            self._tell(STRUCTURE, "A8", ty, "bitmap where there are no nulls")
            return False
        self._tell(STRUCTURE, "A3", ty, "number of buffers")
        return False

    def _buffers(self, raw, ty):
        self.reader.bytes(raw["buffers"], 8 * raw["n_buffers"])
        found = [self.reader.one(raw["buffers"] + 8 * i, "Q") for i in range(raw["n_buffers"])]
        return found[len(found) - self._expected(ty) :] if ty.layout.kind in ("n", "sparse", "dense") else found

    def _sizes(self, raw, ty, kind, buffers):
        """Whether each buffer is there that has to be, and none is larger than memory can be."""
        slots = raw["length"] + raw["offset"]
        width = 8 if kind in WIDE else 4
        needs = []
        if kind == "dictionary" or kind.startswith("fixed") or kind in ("decimal", "binary"):
            needs = [slots * ty.layout.width]
        elif kind == "b":
            needs = [(slots + 7) // 8]
        elif kind in ("z", "Z", "u", "U", "+l", "+L", "+m"):
            needs = [(slots + 1) * width if raw["length"] else 0]
        elif kind in ("+vl", "+vL"):
            needs = [slots * width, slots * width]
        elif kind in ("vz", "vu"):
            needs = [slots * 16] + [0] * (len(buffers) - 3) + [8 * (len(buffers) - 3)]
        elif kind in ("sparse", "dense"):
            needs = [slots, slots * 4][: 1 + (kind == "dense")]
        sound, spans = True, []
        if kind not in WITHOUT_VALIDITY:
            if not buffers[0] and raw["null_count"] > 0:
                self._tell(STRUCTURE, "A5", ty, "no bitmap for nulls")
                sound = False
            spans = [(buffers[0], (slots + 7) // 8)]
            buffers = buffers[1:]
        for need, address in zip(needs, buffers):
            if need > INT64_MAX:
                self._tell(STRUCTURE, "A1", ty, "size overflows")
                sound = False
            elif need and not address:
                self._tell(STRUCTURE, "A5", ty, "missing buffer")
                sound = False
        self.spans = spans + list(zip(buffers, needs))
        return sound

    def _child_lengths(self, raw, ty, kind, below):
        if kind not in ("+s", "sparse", "+w", "+r"):
            return True
        lengths = [self.sound(child, child_type) for child, child_type in zip(below, ty.children)]
        # A child that is broken was told of by itself.
        if None in lengths:
            return True
        rows = raw["length"] + raw["offset"]
        if kind == "+r":
            return self._run_lengths(raw, ty, *lengths)
        needed = rows * ty.layout.width if kind == "+w" else rows
        for one, child in zip(lengths, ty.children):
            if one["length"] < needed:
                self._tell(STRUCTURE, "B4", child, "short child")
                return False
        return True

    def _run_lengths(self, raw, ty, ends, values):
        if ends["null_count"] > 0:
            self._tell(STRUCTURE, "B7", ty.children[0], "null run ends")
        elif ends["length"] > values["length"]:
            self._tell(STRUCTURE, "B7", ty.children[1], "fewer values than runs")
        elif raw["length"] and not ends["length"]:
            self._tell(STRUCTURE, "B7", ty.children[0], "no runs")
        else:
            return True
        return False


class Contents:
    """What the buffers of one node hold."""

    def __init__(self, checker, raw, ty, kind, buffers, below, whole):
        self.checker, self.reader, self.whole = checker, checker.reader, whole
        self.raw, self.ty, self.kind, self.buffers, self.below = raw, ty, kind, buffers, below
        self.length, self.offset = raw["length"], raw["offset"]

    def _tell(self, level, rule, what, row=-1):
        self.checker._tell(level, rule, self.ty, what, row)

    def check(self):
        if self.length == 0:
            # What does not depend on rows.
            checks = {"+r": self._runs, "+m": self._keys, "vz": self._view_sizes, "vu": self._view_sizes}
            checks.get(self.kind, lambda: None)()
            return
        if self.kind not in WITHOUT_VALIDITY:
            self._null_count()
        method = {
            "dictionary": self._indices, "z": self._binary, "Z": self._binary, "u": self._binary, "U": self._binary,
            "vz": self._views, "vu": self._views, "+l": self._list, "+L": self._list, "+m": self._list,
            "+vl": self._list_views, "+vL": self._list_views, "sparse": self._union, "dense": self._union,
            "+r": self._runs, "decimal": self._decimals,
        }.get(self.kind)
        if method:
            method()
        elif self.kind == "fixed tdm" or self.kind[6:] in TIMES:
            self._times()

    def _element(self, buffer, row, code, width):
        return self.reader.one(self.buffers[buffer] + (self.offset + row) * width, code)

    def _bit(self, address, i):
        return self.reader.one(address + i // 8, "B") >> (i % 8) & 1

    def _null(self, row):
        if self.raw["null_count"] == 0 or not self.buffers[0]:
            return False
        return not self._bit(self.buffers[0], self.offset + row)

    def _null_count(self):
        claimed = self.raw["null_count"]
        nulls = 0
        if self.buffers[0]:
            nulls = sum(not self._bit(self.buffers[0], self.offset + row) for row in range(self.length))
        if claimed >= 0 and nulls != claimed:
            self._tell(FULL, "A2", "wrong null count")

    def _child_length(self, i=0):
        """Number of values of a child that is not broken."""
        child = self.checker.sound(self.below[i], self.ty.children[i])
        return child and child["length"]

    def _indices(self):
        dictionary = self.checker.sound(self.raw["dictionary"], self.ty.dictionary)
        if not dictionary:
            return
        code = CODES[self.ty.layout.kind[6:]]
        for row in range(self.length):
            index = self._element(1, row, code, self.ty.layout.width)
            if not self._null(row) and not 0 <= index < dictionary["length"]:
                self._tell(FULL, "B6", "negative index" if index < 0 else "index past the dictionary", row)

    def _offsets(self, limit):
        """Offsets of rows, when all are sound."""
        code, width = ("q", 8) if self.kind in WIDE else ("i", 4)
        first, last = self._element(1, 0, code, width), self._element(1, self.length, code, width)
        if first < 0:
            self._tell(BOUNDS, "B1", "negative offset", 0)
        elif last < first or last > limit:
            what = "decreasing offsets" if last < first else "offset past the values"
            self._tell(BOUNDS, "B1", what, self.length - 1)
        found = [self._element(1, row, code, width) for row in range(self.length + 1)]
        sound = True
        for row, (start, end) in enumerate(zip(found, found[1:])):
            if start < 0 or end < start or end > limit:
                what = "decreasing offsets" if end < start else "offset past the values"
                self._tell(FULL, "B1", "negative offset" if start < 0 else what, row)
                sound = False
        return found, sound, not (first < 0 or last < first or last > limit)

    def _data_limit(self):
        """In a window, the last offset of the whole array is the producer's word on how much data there is."""
        if self.checker.is_whole:
            return INT64_MAX
        code, width = ("q", 8) if self.kind in WIDE else ("i", 4)
        end = self.whole["offset"] + self.whole["length"]
        return max(0, self.reader.one(self.buffers[1] + end * width, code))

    def _binary(self):
        before = len(self.checker.found)
        found, sound, ends_sound = self._offsets(self._data_limit())
        data = self.buffers[2]
        if found[-1] > 0 and not data:
            # That the data is missing is told of first; what is wrong with the offsets is told as well.
            told = self.checker.found[before:]
            del self.checker.found[before:]
            if ends_sound:
                self._tell(BOUNDS, "A5", "missing buffer")
            self._tell(FULL, "A5", "missing buffer")
            self.checker.found += told
            return
        if self.kind not in ("u", "U"):
            return
        if found[-1] > 0:
            # The last offset is the producer's word on how much there is, whatever the others say.
            self.reader.bytes(data, found[-1])
        if not sound:
            return
        for row, (start, end) in enumerate(zip(found, found[1:])):
            if not self._null(row):
                self._text(self.reader.bytes(data + start, end - start) if end > start else b"", row)

    def _text(self, value, row):
        try:
            value.decode()
        except UnicodeDecodeError:
            self._tell(FULL, "B8", "not UTF-8", row)

    def _view_sizes(self):
        """The sizes of variadic buffers; what is wrong with them."""
        n = len(self.buffers) - 3
        sizes = [self.reader.one(self.buffers[-1] + 8 * i, "q") for i in range(n)]
        for size, data in zip(sizes, self.buffers[2:-1]):
            if size < 0 or (size > 0 and not data):
                for level in (BOUNDS, FULL):
                    self._tell(level, "B2" if size < 0 else "A5", "negative size" if size < 0 else "missing buffer")
            elif size > 0:
                # All that a size claims may be read, whether a view leads there or not.
                self.reader.bytes(data, size)
        return sizes

    def _views(self):
        sizes = self._view_sizes()
        for row in range(self.length):
            if self._null(row):
                continue
            what, value = self._view(self.buffers[1] + 16 * (self.offset + row), sizes)
            if what:
                self._tell(FULL, "B2", what, row)
            elif self.kind == "vu":
                self._text(value, row)

    def _view(self, at, sizes):
        """What is wrong with a view, and the value of one with which nothing is."""
        length = self.reader.one(at, "i")
        if length < 0:
            return "negative length of a view", b""
        if length <= 12:
            rest = self.reader.bytes(at + 4 + length, 12 - length) if length < 12 else b""
            return ("padding that is not 0", b"") if any(rest) else (None, self.reader.bytes(at + 4, length))
        which, start = self.reader.one(at + 8, "i"), self.reader.one(at + 12, "i")
        if not 0 <= which < len(sizes):
            return "view into no buffer", b""
        if start < 0 or start + length > sizes[which]:
            return "view past its buffer", b""
        if not self.buffers[2 + which]:
            return "view into a missing buffer", b""
        value = self.reader.bytes(self.buffers[2 + which] + start, length)
        return (None, value) if value[:4] == self.reader.bytes(at + 4, 4) else ("another prefix", b"")

    def _list(self):
        limit = self._child_length()
        if limit is not None:
            self._offsets(limit)
        if self.kind == "+m":
            self._keys()

    def _keys(self):
        ty = self.ty.children[0]
        entries = self.checker.sound(self.below[0], ty)
        if not entries:
            return
        if self._any_null(entries, ty, 0, entries["length"]):
            self.checker._tell(FULL, "F5", ty, "null entries")
        keys = self.checker.sound(self.reader.one(entries["children"], "Q"), ty.children[0])
        if keys and self._any_null(keys, ty.children[0], entries["offset"], entries["length"]):
            self.checker._tell(FULL, "F5", ty.children[0], "null keys")

    def _any_null(self, raw, ty, first, length):
        """Whether there is a null among the rows of a node from its own row `first` on."""
        numbers = (raw["length"], raw["offset"], length, first)
        if min(numbers) < 0 or raw["length"] + raw["offset"] > INT64_MAX or first + length > raw["length"]:
            return False
        if ty.layout.kind == "n" and not ty.dictionary:
            return length > 0
        # What the bitmap says counts, not the number that was made of it.
        if ty.layout.kind in WITHOUT_VALIDITY or raw["n_buffers"] < 1 or not raw["buffers"]:
            return False
        bitmap = self.reader.one(raw["buffers"], "Q")
        rows = range(raw["offset"] + first, raw["offset"] + first + length)
        self.reader.bytes(bitmap, (rows.stop + 7) // 8 if bitmap else 0)
        return bool(bitmap) and any(not self._bit(bitmap, i) for i in rows)

    def _list_views(self):
        limit = self._child_length()
        if limit is None:
            return
        code, width = ("q", 8) if self.kind in WIDE else ("i", 4)
        for row in range(self.length):
            start, size = self._element(1, row, code, width), self._element(2, row, code, width)
            if start < 0 or size < 0 or start + size > limit:
                what = "negative list view" if min(start, size) < 0 else "list view past the values"
                self._tell(FULL, "B3", what, row)

    def _union(self):
        before = {}
        for row in range(self.length):
            type_id = self._element(0, row, "b", 1)
            if type_id not in self.ty.layout.ids:
                self._tell(FULL, "B5", "undeclared type id", row)
                continue
            if self.kind == "sparse":
                continue
            start = self._element(1, row, "i", 4)
            length = self._child_length(self.ty.layout.ids.index(type_id))
            if start < 0 or (length is not None and start >= length):
                self._tell(FULL, "B5", "negative union offset" if start < 0 else "union offset past its child", row)
            elif start < before.get(type_id, 0):
                self._tell(FULL, "B5", "decreasing union offsets", row)
            before[type_id] = start

    def _runs(self):
        ty = self.ty.children[0]
        ends = self.checker.sound(self.below[0], ty)
        if not ends or not ends["length"] or ends["offset"] < 0 or ends["n_buffers"] != 2:
            return
        if ends["length"] + ends["offset"] > INT64_MAX:
            return
        data = self.reader.one(ends["buffers"] + 8, "Q")
        if not data:
            return
        if self._any_null(ends, ty, 0, ends["length"]):
            self.checker._tell(FULL, "B7", ty, "null run ends")
        code, width = CODES[ty.layout.kind[6:]], ty.layout.width
        self.reader.bytes(data, (ends["offset"] + ends["length"]) * width)
        values = [self.reader.one(data + (ends["offset"] + i) * width, code) for i in range(ends["length"])]
        sound = True
        for row, (before, now) in enumerate(zip([0] + values, values)):
            if now <= before or now <= 0:
                self.checker._tell(FULL, "B7", ty, "run ends that do not ascend", row)
                sound = False
        if self.length and values[-1] < self.offset + self.length:
            levels = (BOUNDS, FULL) if sound else (BOUNDS,)
            for level in levels:
                self.checker._tell(level, "B7", ty, "run ends that end early", len(values) - 1)

    def _decimals(self):
        width = self.ty.layout.width
        for row in range(self.length):
            at = self.buffers[1] + (self.offset + row) * width
            value = int.from_bytes(self.reader.bytes(at, width), "little", signed=True)
            if not self._null(row) and abs(value) >= 10**self.ty.layout.precision:
                self._tell(FULL, "B8", "decimal of more digits", row)

    def _times(self):
        name = self.kind[6:]
        code, width = ("i", 4) if self.ty.layout.width == 4 else ("q", 8)
        for row in range(self.length):
            value = self._element(1, row, code, width)
            if self._null(row):
                continue
            if name == "tdm" and value % (DAY * 1000):
                self._tell(FULL, "B8", "date that is no whole day", row)
            elif name in TIMES and not 0 <= value < TIMES[name]:
                self._tell(FULL, "B8", "time outside a day", row)
