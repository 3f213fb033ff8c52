"""Arrays of Python's values: numbers, text, bytes, times, lists, dicts and None, without any other library."""

from __future__ import annotations

import datetime as dt
import struct
import sys
from array import array as packed_numbers
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Callable, Iterable, Optional, Sequence

from ._errors import InvalidData, Unsupported
from ._memory import Memory, NodeNumbers, build, packed
from ._type import Type

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1)
_UNITS = {"s": 1, "m": 1_000, "u": 1_000_000, "n": 1_000_000_000}
_ORDER = sys.byteorder

# Format: letter of the array module, bits, and whether it has a sign.
_INTEGERS = {
    "c": ("b", 8, True), "C": ("B", 8, False), "s": ("h", 16, True), "S": ("H", 16, False), "i": ("i", 32, True),
    "I": ("I", 32, False), "l": ("q", 64, True), "L": ("Q", 64, False),
}


def _refuse(path: str, row: int, expected: str, value: object) -> InvalidData:
    """The error for a value that does not fit."""
    text = repr(value)
    found = text if len(text) <= 60 else f"{text[:57]}..."
    return InvalidData(f"expected {expected}, found {found} of {type(value).__name__}", path=path, row=row)


class _Built:
    """The parts of an array as they come: nodes and buffers, depth first."""

    def __init__(self) -> None:
        self.nodes: list[NodeNumbers] = []
        self.memory: list[Memory] = []

    def node(self, values: Sequence[Any], n_buffers: int, nullable: bool = True) -> None:
        """A node of these values, with its validity where it has one."""
        nulls = sum(value is None for value in values)
        self.nodes.append((len(values), nulls, 0, n_buffers))
        if nullable:
            bits = packed(value is not None for value in values)
            self.memory.append(Memory.copied(bits) if nulls else Memory.none())

    def buffer(self, data: Any) -> None:
        """A copy of bytes."""
        self.memory.append(Memory.copied(data))

    def offsets(self, lengths: Iterable[int], large: bool, path: str, ends: bool = True) -> None:
        """Offsets of what has these lengths, with or without the end of the last."""
        starts, end = packed_numbers("q" if large else "i", [0]), 0
        for row, length in enumerate(lengths):
            end += length
            if not large and end > 0x7FFFFFFF:
                raise InvalidData("expected less than 2 GiB for 32-bit offsets, found more", path=path, row=row)
            starts.append(end)
        self.buffer((starts if ends else starts[:-1]).tobytes())


def build_values(values: Sequence[Any], kind: Optional[Type]) -> int:
    """The handle of an array of values: of the type, or of the one that they tell."""
    values = list(values)
    found = infer(values, "$") if kind is None else kind
    built = _Built()
    _required(found, values, "$")
    _add(built, found, values, "$")
    return build(found._handle, built.nodes, built.memory)


# What values are.


# A boolean is an integer to Python, and a moment a date: the first that fits counts.
_KINDS: "tuple[tuple[Any, str], ...]" = (
    (bool, "bool"), (int, "int64"), (float, "float64"), (str, "utf8"), ((bytes, bytearray, memoryview), "binary"),
    (dt.datetime, "timestamp(us)"), (dt.date, "date32"), (dt.time, "time64(us)"), (dt.timedelta, "duration(us)"),
    (dict, "struct"), ((list, tuple), "list"),
)


def _kind_of(value: Any) -> str:
    """The kind of a value that is not None."""
    name = next((name for kinds, name in _KINDS if isinstance(value, kinds)), "")
    return 'timestamp(us, "UTC")' if name == "timestamp(us)" and value.tzinfo is not None else name


def infer(values: Sequence[Any], path: str) -> Type:
    """The type of values of one kind; an error names the row of another."""
    return Type(_inferred(values, path))


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _inferred(values: Sequence[Any], path: str) -> str:
    kind = ""
    for row, value in enumerate(values):
        if value is None:
            continue
        found = _kind_of(value)
        if not found:
            raise _refuse(path, row, "a value whose type can be told, or a schema", value)
        if {kind, found} == {"int64", "float64"}:
            found = kind = "float64"
        if kind and found != kind:
            raise _refuse(path, row, f"values of one kind, {kind} as before", value)
        kind = found
    if kind == "list":
        inner = [item for value in values if value is not None for item in value]
        return f"list<{_inferred(inner, f'{path}.item')}>"
    if kind == "struct":
        names: dict[str, None] = {}
        for row, value in enumerate(values):
            for name in value or ():
                if not isinstance(name, str):
                    raise _refuse(path, row, "names as text", name)
                names[name] = None
        fields = (
            f"{_quoted(name)}: {_inferred([None if v is None else v.get(name) for v in values], f'{path}.{name}')}"
            for name in names
        )
        return f"struct<{', '.join(fields)}>"
    return kind or "null"


# How they are written.


def _add(built: _Built, kind: Type, values: "list[Any]", path: str) -> None:
    """Adds an array of values."""
    form = kind.format
    if kind.dictionary is not None:
        message = f"expected a type that values are built of, found {str(kind)!r}: encode them elsewhere"
        raise Unsupported(message, path=path)
    if form in _INTEGERS:
        letter, bits, signed = _INTEGERS[form]
        _integers(built, values, path, letter, bits, signed)
    elif form in _SIMPLE:
        _SIMPLE[form](built, values, path)
    elif form[0] == "t" or form[:2] == "d:" or form[:2] == "w:":
        _PREFIXED[form[:2] if form[0] != "t" else "t"](built, values, path, form)
    elif form in ("+l", "+L", "+m", "+vl", "+vL"):
        _lists(built, kind, values, path)
    elif form.startswith("+w:"):
        _fixed_lists(built, kind, values, path, int(form[3:]))
    elif form == "+s":
        _structs(built, kind, values, path)
    else:
        raise Unsupported(f"expected a type that values are built of, found {str(kind)!r}", path=path)


def _integers(built: _Built, values: "list[Any]", path: str, letter: str, bits: int, signed: bool) -> None:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    numbers = packed_numbers(letter, [])
    for row, value in enumerate(values):
        if value is None:
            numbers.append(0)
            continue
        number = _index(value)
        if number is None or not low <= number <= high:
            raise _refuse(path, row, f"an integer from {low} to {high}", value)
        numbers.append(number)
    built.node(values, 2)
    built.buffer(numbers.tobytes())


def _index(value: Any) -> Optional[int]:
    """An integer, also one of NumPy's; no boolean."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    return int(value.__index__())


def _float_array(letter: str) -> "Callable[[_Built, list[Any], str], None]":
    def add(built: _Built, values: "list[Any]", path: str) -> None:
        parts = []
        for row, value in enumerate(values):
            if value is not None and (isinstance(value, (bool, str)) or not hasattr(value, "__float__")):
                raise _refuse(path, row, "a number", value)
            try:
                number = 0.0 if value is None else float(value)
                parts.append(struct.pack(f"={letter}", number))
                exact = not isinstance(value, int) or int(number) == value
            except OverflowError:
                exact = False
            if not exact:
                raise _refuse(path, row, "a number that a float of this size is", value)
        built.node(values, 2)
        built.buffer(b"".join(parts))

    return add


def _required(kind: Type, values: Iterable[Any], path: str) -> None:
    """Refuses None where the type is not nullable."""
    if kind.nullable:
        return
    for row, value in enumerate(values):
        if value is None:
            raise _refuse(path, row, f"a value, because {str(kind)!r} has no nulls", value)


def _booleans(built: _Built, values: "list[Any]", path: str) -> None:
    for row, value in enumerate(values):
        if value is not None and type(value).__name__ not in ("bool", "bool_"):
            raise _refuse(path, row, "a boolean", value)
    built.node(values, 2)
    built.buffer(packed(values))


def _nulls(built: _Built, values: "list[Any]", path: str) -> None:
    for row, value in enumerate(values):
        if value is not None:
            raise _refuse(path, row, "None", value)
    built.node(values, 0, nullable=False)


def _encoded(values: "list[Any]", path: str, is_text: bool) -> "list[bytes]":
    """The bytes of text or bytes, none for None."""
    parts = []
    for row, value in enumerate(values):
        if value is None:
            parts.append(b"")
        elif is_text and isinstance(value, str):
            try:
                parts.append(value.encode())
            except UnicodeEncodeError:
                raise _refuse(path, row, "text that UTF-8 has", value) from None
        elif not is_text and isinstance(value, (bytes, bytearray, memoryview)):
            parts.append(bytes(value))
        else:
            raise _refuse(path, row, "text" if is_text else "bytes", value)
    return parts


def _views(is_text: bool) -> "Callable[[_Built, list[Any], str], None]":
    def add(built: _Built, values: "list[Any]", path: str) -> None:
        views, outside, at = [], [], 0
        for row, part in enumerate(_encoded(values, path, is_text)):
            if len(part) <= 12:
                views.append(struct.pack("=i12s", len(part), part))
                continue
            if at > 0x7FFFFFFF:
                raise InvalidData("expected less than 2 GiB of long values, found more", path=path, row=row)
            views.append(struct.pack("=i4sii", len(part), part[:4], 0, at))
            outside.append(part)
            at += len(part)
        built.node(values, 4)
        built.buffer(b"".join(views))
        built.buffer(b"".join(outside))
        # The sizes of the one before, which the library writes.
        built.memory.append(Memory.none())

    return add


def _text(large: bool, is_text: bool) -> "Callable[[_Built, list[Any], str], None]":
    def add(built: _Built, values: "list[Any]", path: str) -> None:
        parts = _encoded(values, path, is_text)
        built.node(values, 3)
        built.offsets(map(len, parts), large, path)
        built.buffer(b"".join(parts))

    return add


_SIMPLE: "dict[str, Callable[[_Built, list[Any], str], None]]" = {
    "n": _nulls,
    "b": _booleans,
    "e": _float_array("e"),
    "f": _float_array("f"),
    "g": _float_array("d"),
    "u": _text(False, True),
    "U": _text(True, True),
    "z": _text(False, False),
    "Z": _text(True, False),
    "vu": _views(True),
    "vz": _views(False),
}


def _fixed_binary(built: _Built, values: "list[Any]", path: str, form: str) -> None:
    width = int(form[2:])
    for row, value in enumerate(values):
        if value is not None and not (isinstance(value, (bytes, bytearray, memoryview)) and len(bytes(value)) == width):
            raise _refuse(path, row, f"{width} bytes", value)
    built.node(values, 2)
    built.buffer(b"".join(bytes(width) if value is None else bytes(value) for value in values))


def _decimals(built: _Built, values: "list[Any]", path: str, form: str) -> None:
    precision, scale, *rest = (int(part) for part in form[2:].split(","))
    size = (rest[0] if rest else 128) // 8
    parts = []
    with localcontext() as context:
        # As many digits as any decimal has, so that nothing is rounded here.
        context.prec = 2 * 76 + abs(scale)
        for row, value in enumerate(values):
            if value is None:
                parts.append(bytes(size))
                continue
            whole = _unscaled(value, scale)
            if whole is None or abs(whole) >= 10**precision:
                raise _refuse(path, row, f"a decimal of {precision} digits, {scale} of them behind the point", value)
            parts.append(whole.to_bytes(size, _ORDER, signed=True))
    built.node(values, 2)
    built.buffer(b"".join(parts))


def _unscaled(value: Any, scale: int) -> Optional[int]:
    """A number times ten to the power of the scale, where that is an integer."""
    if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
        return None
    try:
        scaled = Decimal(value).scaleb(scale)
        return int(scaled) if scaled == scaled.to_integral_value() else None
    except (InvalidOperation, ValueError, OverflowError):
        return None


def _times(built: _Built, values: "list[Any]", path: str, form: str) -> None:
    zone = form.partition(":")[2]
    bits = 32 if form in ("tdD", "tts", "ttm") else 64
    if form[:2] == "ti":
        raise Unsupported(f"expected a type that values are built of, found the interval {form!r}", path=path)
    numbers = packed_numbers("i" if bits == 32 else "q", [])
    for row, value in enumerate(values):
        number = 0 if value is None else _time_number(value, form, bool(zone))
        if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise _refuse(path, row, f"what {form!r} is", value)
        numbers.append(number)
    built.node(values, 2)
    built.buffer(numbers.tobytes())


def _time_number(value: Any, form: str, zoned: bool) -> Optional[int]:
    """A time as the number that the format has for it; None for what it has none for."""
    family, unit = form[1], form[2]
    if family == "d":
        if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
            return None
        days = value.toordinal() - _EPOCH_DAY
        return days if unit == "D" else days * 86_400_000
    if family == "s":
        if not isinstance(value, dt.datetime) or (value.tzinfo is not None) != zoned:
            return None
        if value.tzinfo is not None:
            value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
        return _in_units(value - _EPOCH, unit)
    if family == "D":
        return _in_units(value, unit) if isinstance(value, dt.timedelta) else None
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        return None
    since = dt.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    return _in_units(since, unit)


def _in_units(span: dt.timedelta, unit: str) -> Optional[int]:
    """A span of time in a unit, where nothing is lost."""
    microseconds = (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds
    number, rest = divmod(microseconds * _UNITS[unit], 1_000_000)
    return None if rest else number


_PREFIXED: "dict[str, Callable[[_Built, list[Any], str, str], None]]" = {
    "w:": _fixed_binary, "d:": _decimals, "t": _times,
}


def _lists(built: _Built, kind: Type, values: "list[Any]", path: str) -> None:
    is_map = kind.format == "+m"
    lengths, inner = [], []
    for row, value in enumerate(values):
        if value is None:
            lengths.append(0)
            continue
        if is_map:
            items: Any = value.items() if isinstance(value, dict) else value
            pairs = [tuple(pair) for pair in items] if isinstance(value, (dict, list, tuple)) else None
            if pairs is None or any(len(pair) != 2 for pair in pairs):
                raise _refuse(path, row, "a dict or pairs", value)
            value = pairs
        elif not isinstance(value, (list, tuple)):
            raise _refuse(path, row, "a list", value)
        lengths.append(len(value))
        inner.extend(value)
    large = kind.format[-1] == "L"
    if kind.format[1] == "v":
        built.node(values, 3)
        built.offsets(lengths, large, path, ends=False)
        built.buffer(packed_numbers("q" if large else "i", lengths).tobytes())
    else:
        built.node(values, 2)
        built.offsets(lengths, large, path)
    child = kind[0]
    at = f"{path}.{child.name or 'item'}"
    if not is_map:
        _required(child, inner, at)
        _add(built, child, inner, at)
        return
    built.nodes.append((len(inner), 0, 0, 1))
    built.memory.append(Memory.none())
    for number, part in enumerate(child.children):
        column = [pair[number] for pair in inner]
        _required(part, column, f"{at}.{part.name}")
        _add(built, part, column, f"{at}.{part.name}")


def _fixed_lists(built: _Built, kind: Type, values: "list[Any]", path: str, size: int) -> None:
    inner: list[Any] = []
    for row, value in enumerate(values):
        if value is not None and not (isinstance(value, (list, tuple)) and len(value) == size):
            raise _refuse(path, row, f"a list of {size}", value)
        inner.extend([None] * size if value is None else value)
    at = f"{path}.{kind[0].name or 'item'}"
    # What lies under a null is not looked at.
    _required(kind[0], (item for value in values for item in (value or ())), at)
    built.node(values, 1)
    _add(built, kind[0], inner, at)


def _structs(built: _Built, kind: Type, values: "list[Any]", path: str) -> None:
    fields = kind.children
    names = [field.name for field in fields]
    for row, value in enumerate(values):
        if value is None:
            continue
        if isinstance(value, dict):
            unknown = [name for name in value if name not in names]
            if unknown:
                raise _refuse(path, row, f"the fields {', '.join(map(repr, names))}", unknown[0])
        elif not isinstance(value, (list, tuple)) or len(value) != len(fields):
            raise _refuse(path, row, f"a dict, or {len(fields)} values", value)
    built.node(values, 1)
    for number, field in enumerate(fields):
        column: list[Any] = []
        for value in values:
            if value is None:
                column.append(None)
            else:
                column.append(value.get(field.name) if isinstance(value, dict) else value[number])
        at = f"{path}.{field.name}"
        _required(field, (entry for entry, value in zip(column, values) if value is not None), at)
        _add(built, field, column, at)
