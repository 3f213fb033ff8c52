"""Tables of the dataframe protocol: each buffer in place, under an owner of its own."""

from __future__ import annotations

import ctypes
import struct
import sys
from ctypes import c_void_p
from typing import Any, Iterable, NamedTuple, Optional

from ._array import Array
from ._device import CPU, Device
from ._dlpack import device_of_producer
from ._errors import InvalidData, Unsupported
from ._library import lib, made
from ._memory import HOST, CopyNeeded, Memory, NodeNumbers, build, new_type, packed
from ._type import Type

INT, UINT, FLOAT, BOOL, STRING, DATETIME, CATEGORICAL = 0, 1, 2, 20, 21, 22, 23
NON_NULLABLE, USE_NAN, USE_SENTINEL, USE_BITMASK, USE_BYTEMASK = range(5)

_FORMATS = {
    (INT, 8): "c", (INT, 16): "s", (INT, 32): "i", (INT, 64): "l",
    (UINT, 8): "C", (UINT, 16): "S", (UINT, 32): "I", (UINT, 64): "L",
    (FLOAT, 16): "e", (FLOAT, 32): "f", (FLOAT, 64): "g",
}
# What the struct module calls them.
_LETTERS = {
    "c": "b", "s": "h", "i": "i", "l": "q", "C": "B", "S": "H", "I": "I", "L": "Q", "e": "e", "f": "f", "g": "d",
}


class _Column(NamedTuple):
    """A column as an array is put together: its type, and its nodes and buffers, depth first."""

    kind: Type
    nodes: "list[NodeNumbers]"
    memory: "list[Memory]"
    device: Device


class _Block(NamedTuple):
    """Memory of a buffer of the protocol."""

    data: int
    size: int
    owner: object
    device: Device

    @classmethod
    def of(cls, buffer: Any) -> "_Block":
        """What a buffer says of itself."""
        size = int(buffer.bufsize)
        return cls(int(buffer.ptr) if size else 0, size, buffer, device_of_producer(buffer))

    def memory(self) -> Memory:
        """The memory, which keeps the buffer alive."""
        return Memory.of(self.data, self.size, self.owner)

    def read(self, size: int) -> memoryview:
        """The first bytes, which the CPU has to be able to read."""
        if self.device.type != CPU:
            message = f"expected nulls as a bitmap, found others: nobody here reads memory of {self.device}"
            raise Unsupported(message)
        if size > self.size:
            raise InvalidData(f"expected a buffer of {size} bytes, found {self.size}")
        if not size:
            return memoryview(b"")
        return memoryview((ctypes.c_ubyte * size).from_address(self.data)).cast("B")


def take(obj: Any, copy: Optional[bool]) -> int:
    """The handle of a struct array of what ``__dataframe__`` gives."""
    frame = obj.__dataframe__(allow_copy=copy is not False)
    arrays = [_batch(chunk, copy) for chunk in frame.get_chunks()] if frame.num_chunks() > 1 else [_batch(frame, copy)]
    return _joined(arrays, copy)


def _joined(arrays: "list[Array]", copy: Optional[bool]) -> int:
    """One array of several chunks."""
    if len(arrays) == 1:
        handle, arrays[0]._handle = arrays[0]._handle, 0
        return handle
    if copy is False:
        raise CopyNeeded(f"expected one chunk, found {len(arrays)}, which only a copy makes one")
    handles = (c_void_p * len(arrays))(*(array._handle for array in arrays))
    stream = c_void_p(made(lib.bowstring_stream_from_arrays, None, handles, len(arrays)))
    try:
        return made(lib.bowstring_stream_collect, ctypes.byref(stream), None)
    finally:
        lib.bowstring_stream_release(stream)


def _batch(frame: Any, copy: Optional[bool]) -> Array:
    """A frame of one chunk."""
    rows = int(frame.num_rows() or 0)
    names = [str(name) for name in frame.column_names()]
    columns = [_column(frame.get_column(i), name, f"$.{name}", copy) for i, name in enumerate(names)]
    devices = {column.device for column in columns}
    if len(devices) > 1:
        raise Unsupported(f"expected columns on one device, found {', '.join(map(str, sorted(devices)))}")
    kind = new_type("+s", "", 0, [column.kind for column in columns])
    nodes: list[NodeNumbers] = [(rows, 0, 0, 1)]
    memory = [Memory.none()]
    for column in columns:
        nodes += column.nodes
        memory += column.memory
    return Array._of(build(kind._handle, nodes, memory, devices.pop() if devices else HOST), "__dataframe__")


def _column(column: Any, name: str, path: str, copy: Optional[bool]) -> _Column:
    """A column of one chunk, or of several, which are joined."""
    if (column.num_chunks() or 1) == 1:
        return _one_chunk(column, name, path, copy)
    parts = []
    for chunk in column.get_chunks():
        part = _one_chunk(chunk, name, path, copy)
        parts.append(Array._of(build(part.kind._handle, part.nodes, part.memory, part.device), ""))
    from ._memory import taken_apart

    joined = Array._of(_joined(parts, copy), "")
    nodes, memory = taken_apart(joined._handle)
    return _Column(joined.type, nodes, memory, joined.device)


def _one_chunk(column: Any, name: str, path: str, copy: Optional[bool]) -> _Column:
    rows, offset = _number(column.size), int(column.offset or 0)
    kind, bits, form, order = column.dtype
    kind, bits = int(kind), int(bits)
    if order in ("<", ">") and order != ("<" if sys.byteorder == "little" else ">") and bits > 8:
        raise Unsupported("expected elements in the CPU's byte order, found the other", path=path)
    buffers = column.get_buffers()
    data = _Block.of(buffers["data"][0])
    nulls = column.describe_null
    end = offset + rows
    try:
        if kind == STRING:
            return _strings(buffers, data, nulls, rows, offset, name, copy)
        if kind == BOOL:
            memory, values = _booleans(data, buffers["data"][1], end, copy)
            found, dictionary = "b", None
        elif kind == CATEGORICAL:
            found = _FORMATS[(int(buffers["data"][1][0]), int(buffers["data"][1][1]))]
            dictionary = _dictionary(column, path, copy)
            memory, values = data.memory(), found
        elif kind == DATETIME:
            stored = int(buffers["data"][1][1])
            found, dictionary = str(form), None
            if found[:1] != "t" or found[:2] == "ti":
                raise Unsupported(f"expected a time as Arrow writes it, found {found!r}", path=path)
            memory, values = data.memory(), {32: "i", 64: "l"}[stored]
        else:
            found, dictionary = _FORMATS[(kind, bits)], None
            memory, values = data.memory(), found
    except KeyError as missing:
        raise Unsupported(f"expected elements that Arrow has, found {column.dtype}: {missing}", path=path) from None
    validity, count = _validity(buffers, nulls, data, values, offset, end, path, copy)
    nodes: list[NodeNumbers] = [(rows, count, offset, 2)]
    parts = [validity, memory]
    if dictionary is None:
        return _Column(new_type(found, name), nodes, parts, data.device)
    ordered = 1 if column.describe_categorical["is_ordered"] else 0
    made_of = new_type(found, name, 2 | ordered, (), dictionary.kind)
    return _Column(made_of, nodes + dictionary.nodes, parts + dictionary.memory, data.device)


def _number(size: Any) -> int:
    """A size, which is a method in the protocol, and a property in older ones."""
    return int(size() if callable(size) else size)


def _dictionary(column: Any, path: str, copy: Optional[bool]) -> _Column:
    described = column.describe_categorical
    if not described["is_dictionary"] or described["categories"] is None:
        raise Unsupported("expected categories, found codes alone", path=path)
    return _column(described["categories"], "", f"{path}.dictionary", copy)


def _booleans(data: _Block, dtype: Any, end: int, copy: Optional[bool]) -> "tuple[Memory, str]":
    """Booleans as bits, and the format of what they were."""
    if int(dtype[1]) == 1:
        return data.memory(), "bits"
    if copy is False:
        raise CopyNeeded("expected booleans as bits, found bytes")
    return Memory.copied(packed(data.read(end))), "C"


def _strings(
    buffers: Any, data: _Block, nulls: Any, rows: int, offset: int, name: str, copy: Optional[bool]
) -> _Column:
    block, dtype = buffers["offsets"]
    offsets = _Block.of(block)
    large = int(dtype[1]) == 64
    if nulls[0] == USE_SENTINEL:
        texts = _texts(data, offsets, large, offset, offset + rows)
        wanted = nulls[1] if isinstance(nulls[1], bytes) else str(nulls[1]).encode()
        validity, count = _bitmap([text == wanted for text in texts], offset, copy)
    else:
        validity, count = _validity(buffers, nulls, data, "", offset, offset + rows, f"$.{name}", copy)
    kind = new_type("U" if large else "u", name)
    return _Column(kind, [(rows, count, offset, 3)], [validity, offsets.memory(), data.memory()], data.device)


def _texts(data: _Block, offsets: _Block, large: bool, first: int, end: int) -> "list[bytes]":
    size = 8 if large else 4
    ends = struct.unpack(f"={end + 1}{'q' if large else 'i'}", offsets.read((end + 1) * size))
    whole = data.read(data.size)
    if min(ends) < 0 or max(ends) > data.size:
        raise InvalidData(f"expected offsets within {data.size} bytes, found {min(ends)} to {max(ends)}")
    return [bytes(whole[ends[row] : ends[row + 1]]) for row in range(first, end)]


def _validity(
    buffers: Any, nulls: Any, data: _Block, values: str, offset: int, end: int, path: str, copy: Optional[bool]
) -> "tuple[Memory, int]":
    """The bitmap of a column, and the number of nulls in it, -1 where nobody counted."""
    how, which = int(nulls[0]), nulls[1]
    if how == NON_NULLABLE:
        return Memory.none(), 0
    if how in (USE_NAN, USE_SENTINEL):
        if how == USE_NAN and values not in ("e", "f", "g"):
            raise Unsupported("expected NaN among floats alone, found it among others", path=path)
        if values == "bits":
            raise Unsupported("expected a bitmap of nulls beside bits, found a sentinel", path=path)
        numbers = _numbers(data, values, offset, end)
        return _bitmap(_missing(numbers, None if how == USE_NAN else which), offset, copy)
    if how not in (USE_BITMASK, USE_BYTEMASK):
        raise Unsupported(f"expected nulls as the protocol knows them, found {how}", path=path)
    if buffers["validity"] is None:
        # A column may say how it would have nulls, and have none.
        return Memory.none(), 0
    mask = _Block.of(buffers["validity"][0])
    if how == USE_BYTEMASK:
        flags = mask.read(end)[offset:end]
        return _bitmap([bool(flag) == bool(which) for flag in flags], offset, copy)
    if not which:
        return mask.memory(), -1
    bits = mask.read((end + 7) // 8)
    if copy is False:
        raise CopyNeeded("expected bits that are 0 for nulls, found the reverse")
    return Memory.copied(bytes(byte ^ 0xFF for byte in bits)), -1


def _numbers(data: _Block, form: str, offset: int, end: int) -> Any:
    """The values that a column shows; as an array of NumPy, where somebody uses that already."""
    letter = _LETTERS[form]
    size = struct.calcsize(f"={letter}")
    raw = data.read(end * size)[offset * size :]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        return numpy.frombuffer(raw, dtype=f"={letter}")
    return [number for (number,) in struct.iter_unpack(f"={letter}", raw)]


def _missing(numbers: Any, sentinel: Any) -> Iterable[Any]:
    """Which values stand for nulls: the sentinel, or NaN when that is None."""
    if isinstance(numbers, list):
        return [number != number if sentinel is None else number == sentinel for number in numbers]
    found: Iterable[Any] = numbers != numbers if sentinel is None else numbers == sentinel
    return found


def _bitmap(missing: Iterable[Any], offset: int, copy: Optional[bool]) -> "tuple[Memory, int]":
    """A bitmap in which what is missing is null, behind `offset` rows that nobody sees."""
    absent = list(missing)
    count = sum(map(bool, absent))
    if not count:
        return Memory.none(), 0
    if copy is False:
        raise CopyNeeded(f"expected a bitmap of nulls, found {count} nulls that are marked in another way")
    return Memory.copied(packed([True] * offset + [not one for one in absent])), count
