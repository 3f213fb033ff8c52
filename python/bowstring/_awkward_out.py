"""Arrays as Awkward Array has them."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

from ._device import CUDA, CUDA_MANAGED
from ._errors import Unsupported
from ._memory import CopyNeeded
from ._numpy import UNITS, need_numpy, on_host
from ._type import Type

if TYPE_CHECKING:
    from ._array import Array, BufferView
    from ._buffer import Buffer

PARAMETERS = b"awkward"  # metadata: what Awkward Array knows of a node and Arrow does not
NUMBERS = {
    "c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8",
    "e": "f2", "f": "f4", "g": "f8",
}
_VIEWS = ("vu", "vz")
# What an index of Awkward Array may be, and what others become.
_INDEX = {"c": "i4", "C": "i4", "s": "i4", "S": "i4", "i": None, "I": None, "l": None, "L": "i8"}


def need_awkward(what: str) -> Any:
    """The awkward module."""
    try:
        import awkward
    except ImportError:
        raise ImportError(f"expected Awkward Array for {what}(), found no such package: pip install awkward") from None
    return awkward


class HostMemory:
    """Memory of the CPU for numpy, which keeps this object, and so the buffer, alive."""

    __slots__ = ("__array_interface__", "_buffer")

    def __init__(self, ptr: int, count: int, dtype: str, buffer: "Buffer") -> None:
        order = "=" if int(dtype[1]) > 1 else "|"
        self.__array_interface__ = {
            "version": 3, "typestr": order + dtype, "shape": (count,), "strides": None, "data": (ptr, True),
        }
        self._buffer = buffer


def host_window(np: Any) -> "Callable[[int, int, str, Buffer], Any]":
    """What makes numpy's arrays of addresses."""
    return lambda ptr, count, dtype, buffer: np.asarray(HostMemory(ptr, count, dtype, buffer))


def device_window(cupy: Any) -> "Callable[[int, int, str, Buffer], Any]":
    """What makes CuPy's arrays of addresses."""

    def window(ptr: int, count: int, dtype: str, buffer: "Buffer") -> Any:
        size = count * int(dtype[1])
        memory = cupy.cuda.UnownedMemory(ptr, size, buffer, buffer.device.id)
        return cupy.ndarray((count,), dtype, cupy.cuda.MemoryPointer(memory, 0))

    return window


class _Place(NamedTuple):
    """Where arrays are made: numpy or CuPy, and how it takes an address."""

    np: Any
    window: "Callable[[int, int, str, Buffer], Any]"


class _Out:
    """One conversion: walks the nodes of an array and makes their layouts."""

    def __init__(self, array: "Array", copy: Optional[bool], ak: Any, place: _Place) -> None:
        self.array, self.copy = array, copy
        self.ak, self.np, self.place = ak, place.np, place.window
        self.nodes = array.nodes
        self.buffers = array.buffers

    def needs_copy(self, what: str, kind: Type) -> None:
        """Refuses a copy that nobody wants."""
        if self.copy is False:
            where = kind.name or "the array"
            raise CopyNeeded(f"expected no copy, found {what} of {where} ({kind}): copy=None allows it")

    def view(self, index: int, role: str) -> "tuple[int, Optional[BufferView]]":
        """The buffer of a node with a role."""
        node = self.nodes[index]
        for number in range(node.first_buffer, node.first_buffer + node.n_buffers):
            view = self.array.buffer_view(number)
            if view.role == role:
                return number, view
        return -1, None

    def window(self, index: int, role: str, dtype: str, scale: int = 1, first: int = -1, count: int = -1) -> Any:
        """What a node shows of its buffer; `scale` elements for each of the buffer's."""
        number, view = self.view(index, role)
        assert view is not None
        first, count = (view.first if first < 0 else first) * scale, (view.count if count < 0 else count) * scale
        if not count or not view.ptr:
            return self.np.zeros(count, dtype)
        return self.place(view.ptr + first * int(dtype[1]), count, dtype, self.buffers[number])

    def mask(self, index: int, kind: Type) -> Any:
        """The bitmap from the node's first row on, None where there is none."""
        _, view = self.view(index, "validity")
        if view is None or not view.ptr:
            return None
        return self.bits(index, "validity", kind)

    def bits(self, index: int, role: str, kind: Type) -> Any:
        """Bits from the node's first row on."""
        length = self.nodes[index].length
        _, view = self.view(index, role)
        assert view is not None
        start, bit = view.first // 8, view.first % 8
        raw = self.window(index, role, "u1", 1, start, (bit + length + 7) // 8)
        if not bit:
            return raw
        self.needs_copy("bits that start within a byte,", kind)
        loose = self.np.unpackbits(raw, bitorder="little")[bit : bit + length]
        return self.np.packbits(loose, bitorder="little")

    def node(self, index: int, kind: Type, root: bool = False) -> Any:
        """The layout of a node, with its nulls."""
        ak, form = self.ak, kind.format
        if kind.dictionary is not None:
            return self.categorical(index, kind)
        if form == "n":
            if not kind.nullable and not self.nodes[index].length:
                return ak.contents.EmptyArray()
            missing = self.np.full(self.nodes[index].length, -1, "i8")
            return ak.contents.IndexedOptionArray(ak.index.Index64(missing), ak.contents.EmptyArray())
        content = self.content(index, kind)
        node = self.nodes[index]
        mask = self.mask(index, kind) if kind.nullable or node.null_count else None
        if mask is not None:
            return ak.contents.BitMaskedArray.simplified(
                ak.index.IndexU8(mask), content, valid_when=True, length=node.length, lsb_order=True
            )
        return ak.contents.UnmaskedArray.simplified(content) if kind.nullable and not root else content

    def told(self, kind: Type) -> "dict[str, Any]":
        """What `from_awkward` noted in the metadata."""
        noted = kind.metadata.get(PARAMETERS)
        return {} if noted is None else json.loads(noted)

    def children(self, index: int, kind: Type) -> "list[Any]":
        """The layouts of all children."""
        found, at = [], self.nodes[index].first_child
        for child in kind.children:
            found.append(self.node(at, child))
            at = self.nodes[at].subtree_end
        return found

    def content(self, index: int, kind: Type) -> Any:
        """The layout of a node without its nulls."""
        ak, form, length = self.ak, kind.format, self.nodes[index].length
        parameters = self.told(kind).get("parameters")
        if form in NUMBERS:
            return self.flat(self.window(index, "data", NUMBERS[form]), parameters)
        if form == "b":
            self.needs_copy("bits", kind)
            raw = self.bits(index, "data", kind)
            return self.flat(self.np.unpackbits(raw, bitorder="little")[:length].view("?"), parameters)
        if form.startswith("t"):
            return self.flat(self.times(index, kind), parameters)
        if form.startswith("w:"):
            width = int(form[2:])
            return ak.contents.RegularArray(
                self.flat(self.window(index, "data", "u1", width), {"__array__": "byte"}), width, zeros_length=length,
                parameters=parameters or {"__array__": "bytestring"},
            )
        if form in ("u", "U", "z", "Z"):
            text = form in "uU"
            _, view = self.view(index, "data")
            assert view is not None
            data = self.window(index, "data", "u1", 1, 0, max(view.n_elements, 0))
            return ak.contents.ListOffsetArray(
                self.offsets(index, form in "UZ"), self.flat(data, {"__array__": "char" if text else "byte"}),
                parameters=parameters or {"__array__": "string" if text else "bytestring"},
            )
        if form in ("+l", "+L", "+m"):
            (items,) = self.children(index, kind)
            return ak.contents.ListOffsetArray(self.offsets(index, form == "+L"), items, parameters=parameters)
        if form in ("+vl", "+vL"):
            self.needs_copy("the ends of list views", kind)
            (items,) = self.children(index, kind)
            dtype = "i8" if form == "+vL" else "i4"
            starts, sizes = self.window(index, "offsets", dtype), self.window(index, "sizes", dtype)
            make = ak.index.Index64 if form == "+vL" else ak.index.Index32
            return ak.contents.ListArray(make(starts), make(starts + sizes), items, parameters=parameters)
        if form.startswith("+w:"):
            (items,) = self.children(index, kind)
            return ak.contents.RegularArray(items, int(form[3:]), zeros_length=length, parameters=parameters)
        if form == "+s":
            names = None if self.told(kind).get("tuple") else kind.fields
            if names is not None and len(set(names)) != len(names):
                where = kind.name or "the array"
                raise Unsupported(f"expected fields with names of their own, found {kind} in {where}")
            return ak.contents.RecordArray(self.children(index, kind), names, length=length, parameters=parameters)
        if form.startswith(("+ud:", "+us:")):
            return self.union(index, kind, parameters)
        raise Unsupported(f"expected a type that Awkward Array has, found {kind} in {kind.name or 'the array'}")

    def flat(self, data: Any, parameters: Optional["dict[str, Any]"]) -> Any:
        """A layout of numbers."""
        return self.ak.contents.NumpyArray(data, parameters=parameters)

    def offsets(self, index: int, wide: bool) -> Any:
        """The offsets of a node as an index: one more than rows, also where they may be left out."""
        raw = self.window(index, "offsets", "i8" if wide else "i4", 1, -1, self.nodes[index].length + 1)
        return (self.ak.index.Index64 if wide else self.ak.index.Index32)(raw)

    def times(self, index: int, kind: Type) -> Any:
        """Dates, times and durations as numpy has them; times of day are instants, as ak.from_arrow has them."""
        form = kind.format
        if form in ("tdD", "tts", "ttm"):
            self.needs_copy("values of 32 bits", kind)
            wide = self.window(index, "data", "i4").astype("i8")
            return wide.view("M8[D]" if form == "tdD" else f"M8[{UNITS[form[2]]}]")
        if form == "tdm":
            return self.window(index, "data", "i8").view("M8[ms]")
        if form.startswith("ts") or form in ("ttu", "ttn"):
            return self.window(index, "data", "i8").view(f"M8[{UNITS[form[2]]}]")
        if form.startswith("tD"):
            return self.window(index, "data", "i8").view(f"m8[{UNITS[form[2]]}]")
        raise Unsupported(f"expected a type that Awkward Array has, found {kind} in {kind.name or 'the array'}")

    def union(self, index: int, kind: Type, parameters: Optional["dict[str, Any]"]) -> Any:
        """A union; type codes that do not count the children are translated."""
        ak, form = self.ak, kind.format
        codes = [int(code) for code in form[4:].split(",") if code]
        tags = self.window(index, "type_ids", "i1")
        if codes != list(range(len(codes))):
            self.needs_copy("type codes", kind)
            table = self.np.zeros(128, "i1")
            for place, code in enumerate(codes):
                table[code] = place
            tags = table[tags]
        if form.startswith("+ud:"):
            where = ak.index.Index32(self.window(index, "offsets", "i4"))
        else:
            where = ak.index.Index64(self.np.arange(len(tags), dtype="i8"))
        contents = self.children(index, kind)
        # Awkward Array joins contents of one kind, for which it writes tags and index anew; others stay as they are.
        joined = ak.forms.UnionForm.simplified("i8", "i64", [content.form for content in contents])
        if joined.is_union and len(joined.contents) == len(contents) and len({one.is_option for one in contents}) == 1:
            return ak.contents.UnionArray(ak.index.Index8(tags), where, contents, parameters=parameters)
        self.needs_copy("a union that Awkward Array has simpler", kind)
        return ak.contents.UnionArray.simplified(ak.index.Index8(tags), where, contents, parameters=parameters)

    def categorical(self, index: int, kind: Type) -> Any:
        """A dictionary and the indices into it; -1 where there is none."""
        ak, np, node = self.ak, self.np, self.nodes[index]
        assert kind.dictionary is not None
        values = self.node(node.dictionary, kind.dictionary, root=True)
        index_type = _INDEX[kind.format]
        where = self.window(index, "data", NUMBERS[kind.format])
        mask = self.mask(index, kind) if node.null_count else None
        optional = mask is not None or kind.nullable
        if index_type is None and kind.format == "I" and optional:
            index_type = "i8"
        if index_type is not None:
            self.needs_copy(f"indices of {kind.format}", kind)
            where = where.astype(index_type)
        if mask is not None:
            self.needs_copy("indices with nulls", kind)
            valid = np.unpackbits(mask, bitorder="little")[: node.length].view("?")
            where = np.where(valid, where, where.dtype.type(-1))
        parameters = self.told(kind).get("parameters") or {}
        # Nulls among the categories would be several categories of one value.
        if not values.is_option:
            parameters = {**parameters, "__array__": "categorical"}
        make = ak.contents.IndexedOptionArray if optional else ak.contents.IndexedArray
        return make.simplified(ak.index.Index(where), values, parameters=parameters)


def has_views(kind: Type) -> bool:
    """Whether there are string views anywhere in a type."""
    if kind.format in _VIEWS:
        return True
    below = list(kind.children) + ([] if kind.dictionary is None else [kind.dictionary])
    return any(has_views(child) for child in below)


def to_awkward(array: "Array", copy: Optional[bool], highlevel: bool) -> Any:
    """See `ArrayValues.to_awkward`."""
    ak = need_awkward("to_awkward")
    kind = array.type
    on_gpu = array.device.type in (CUDA, CUDA_MANAGED)
    if copy:
        array = array.to_device(array.device, share=False)
    if on_gpu:
        try:
            cupy = importlib.import_module("cupy")
        except ImportError:
            raise ImportError("expected CuPy for to_awkward() of memory of CUDA, found no such package") from None
        queue = cupy.cuda.get_current_stream()
        array.synchronize(queue)
        place = _Place(cupy, device_window(cupy))
    else:
        queue = "host"
        array = on_host(array, copy, "to_awkward")
        np = need_numpy("to_awkward()")
        place = _Place(np, host_window(np))
    if has_views(kind):
        if copy is False:
            raise CopyNeeded(f"expected no copy, found views of strings in {kind}: copy=None allows it")
        array = array.conform(layout="offsets")
    if any(view.n_elements < 0 for view in map(array.buffer_view, range(array._counts()[1]))):
        array = array.resolve_sizes(stream=queue)
    layout = _Out(array, copy, ak, place).node(0, array.type, root=True)
    return ak.Array(layout) if highlevel else layout
