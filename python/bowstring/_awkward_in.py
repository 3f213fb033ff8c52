"""Awkward Arrays as arrays of ours."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ._awkward_out import NUMBERS, PARAMETERS, need_awkward
from ._errors import Unsupported
from ._memory import CopyNeeded
from ._numpy import need_numpy
from ._parts import Node, from_buffers
from ._type import NULLABLE, _rebuilt, encoded_metadata

if TYPE_CHECKING:
    from ._array import Array

_FORMATS = {dtype: form for form, dtype in NUMBERS.items()}
_TIMES = {"s": "s", "ms": "m", "us": "u", "ns": "n"}
_TEXT = {"string": "u", "bytestring": "z"}
_WIDE = {"i4": "l", "i8": "L"}
# What the package itself says by the type.
_OWN = frozenset({"string", "bytestring", "char", "byte", "categorical"})


class _Piece(NamedTuple):
    """A node and what is below it: the state of its type, and numbers and buffers, depth first."""

    state: "tuple[Any, ...]"
    nodes: "list[Node]"
    buffers: "list[Any]"

    def named(self, name: str) -> "_Piece":
        """The same under a name."""
        return self._replace(state=(self.state[0], name.encode(), *self.state[2:]))


def _encoded(noted: "dict[str, Any]") -> Optional[bytes]:
    """What Arrow does not know of a node, as its metadata."""
    return encoded_metadata({PARAMETERS: json.dumps(noted, sort_keys=True).encode()} if noted else {})


class _In:
    """One conversion: walks a layout and collects its buffers."""

    def __init__(self, copy: Optional[bool], ak: Any, np: Any) -> None:
        self.copy, self.ak, self.np = copy, ak, np

    def needs_copy(self, what: str) -> None:
        """Refuses a copy that nobody wants."""
        if self.copy is False:
            raise CopyNeeded(f"expected no copy, found {what}, for which Arrow needs one: copy=None allows it")

    def piece(
        self, form: str, layout: Any, buffers: "list[Any]", below: "tuple[_Piece, ...]" = (), noted: Any = None,
        dictionary: Optional[_Piece] = None, length: int = -1, has_bitmap: bool = True,
    ) -> _Piece:
        """A node of its parts; its first buffer is the bitmap, where its type has one."""
        noted = dict(noted or {})
        parameters = {
            key: value for key, value in (layout.parameters or {}).items() if not (key == "__array__" and value in _OWN)
        }
        if parameters:
            noted["parameters"] = parameters
        count = layout.length if length < 0 else length
        nodes = [Node(count, -1 if has_bitmap and buffers and buffers[0] is not None else 0, 0, len(buffers))]
        parts = list(below) + ([dictionary] if dictionary is not None else [])
        return _Piece(
            (
                form.encode(), b"", 0, _encoded(noted), tuple(part.state for part in below),
                None if dictionary is None else dictionary.state,
            ),
            nodes + [node for part in parts for node in part.nodes],
            buffers + [buffer for part in parts for buffer in part.buffers],
        )

    def raw(self, data: Any) -> Any:
        """Memory as it is, if its rows lie one behind the other."""
        if data.flags.c_contiguous:
            return data
        self.needs_copy("values with strides")
        return self.np.ascontiguousarray(data)

    def cast(self, data: Any, dtype: str, what: str) -> Any:
        """Numbers as Arrow needs them."""
        if data.dtype == self.np.dtype(dtype):
            return self.raw(data)
        self.needs_copy(what)
        return data.astype(dtype)

    def option(self, piece: _Piece, bitmap: Any, length: int = -1) -> _Piece:
        """The piece as one that may be null, under a bitmap; contents may be longer than their mask."""
        form = piece.state[0]
        state = (*piece.state[:2], piece.state[2] | NULLABLE, *piece.state[3:])
        if bitmap is None:
            return piece._replace(state=state)
        if form[:2] in (b"+u", b"+r") or form == b"n":
            raise Unsupported(f"expected nulls within the union's contents, found a union under an option")
        first = piece.nodes[0]
        if piece.buffers[0] is not None:
            raise Unsupported("expected one option, found an option of an option")
        first = first._replace(null_count=-1, length=first.length if length < 0 else length)
        return _Piece(state, [first, *piece.nodes[1:]], [bitmap, *piece.buffers[1:]])

    def packed(self, valid: Any) -> Any:
        """A bitmap of booleans."""
        return self.np.packbits(valid, bitorder="little")

    def convert(self, layout: Any) -> _Piece:
        """The piece of a layout."""
        kind = type(layout).__mro__
        for one in kind:
            method = getattr(self, "of_" + one.__name__.lower(), None)
            if method is not None:
                found: _Piece = method(layout)
                return found
        raise Unsupported(f"expected a layout of Awkward Array that has data, found {type(layout).__name__}")

    def of_emptyarray(self, layout: Any) -> _Piece:
        return self.piece("n", layout, [], has_bitmap=False)

    def of_numpyarray(self, layout: Any) -> _Piece:
        data = layout.data
        if data.ndim > 1:
            return self.convert(layout.to_RegularArray())
        name = data.dtype.str[1:]
        if name == "b1":
            self.needs_copy("booleans of a byte")
            return self.piece("b", layout, [None, self.packed(data)], length=len(data))
        if data.dtype.kind in "mM":
            return self.times(layout, data)
        if name not in _FORMATS or not data.dtype.isnative:
            raise Unsupported(f"expected numbers that Arrow has, found {data.dtype}")
        return self.piece(_FORMATS[name], layout, [None, self.raw(data)])

    def times(self, layout: Any, data: Any) -> _Piece:
        """Dates, timestamps and durations."""
        unit, count = self.np.datetime_data(data.dtype)
        stamps = data.dtype.kind == "M"
        if count == 1 and unit == "D" and stamps:
            self.needs_copy("days of 64 bits")
            return self.piece("tdD", layout, [None, data.view("i8").astype("i4")])
        if count != 1 or unit not in _TIMES:
            raise Unsupported(f"expected seconds or parts of them, found {data.dtype}")
        form = f"ts{_TIMES[unit]}:" if stamps else f"tD{_TIMES[unit]}"
        return self.piece(form, layout, [None, self.raw(data.view("i8"))])

    def of_listoffsetarray(self, layout: Any) -> _Piece:
        offsets, content = layout.offsets.data, layout.content
        if offsets.dtype.str[1:] not in _WIDE:
            offsets = self.cast(offsets, "i8", "offsets without a sign")
        wide = offsets.dtype.str[1:] == "i8"
        text = _TEXT.get(layout.parameter("__array__"))
        offsets = self.raw(offsets)
        if text is not None:
            return self.piece(text.upper() if wide else text, layout, [None, offsets, self.characters(content)])
        below = self.convert(content).named("item")
        return self.piece("+L" if wide else "+l", layout, [None, offsets], (below,))

    def characters(self, content: Any) -> Any:
        """The bytes of strings."""
        return self.raw(content.data)

    def of_listarray(self, layout: Any) -> _Piece:
        self.needs_copy("lists with starts and stops")
        if layout.parameter("__array__") in _TEXT:
            return self.convert(layout.to_ListOffsetArray64(True))
        starts, stops = layout.starts.data, layout.stops.data[: layout.length]
        name = starts.dtype.str[1:]
        if name not in _WIDE or stops.dtype != starts.dtype:
            name, starts, stops = "i8", starts.astype("i8"), stops.astype("i8")
        below = self.convert(layout.content).named("item")
        sizes = stops - starts
        # Arrow wants a start within the child for empty lists too.
        if bool((starts > layout.content.length).any()):
            starts = self.np.where(sizes == 0, 0, starts).astype(name)
        return self.piece("+vL" if name == "i8" else "+vl", layout, [None, self.raw(starts), sizes], (below,))

    def of_regulararray(self, layout: Any) -> _Piece:
        size, length = layout.size, layout.length
        content = layout.content
        kind = layout.parameter("__array__")
        if kind == "bytestring":
            return self.piece(f"w:{size}", layout, [None, self.characters(content)])
        if kind == "string":
            offsets = self.np.arange(0, (length + 1) * size, max(size, 1), dtype="i8")[: length + 1]
            if size == 0:
                offsets = self.np.zeros(length + 1, "i8")
            return self.piece("U", layout, [None, offsets, self.characters(content)])
        return self.piece(f"+w:{size}", layout, [None], (self.convert(content).named("item"),))

    def of_recordarray(self, layout: Any) -> _Piece:
        length = layout.length
        below = tuple(
            self.convert(content).named(name) for name, content in zip(layout.fields, layout.contents)
        )
        return self.piece("+s", layout, [None], below, {"tuple": True} if layout.is_tuple else None, length=length)

    def of_unmaskedarray(self, layout: Any) -> _Piece:
        return self.option(self.convert(layout.content), None)

    def of_bitmaskedarray(self, layout: Any) -> _Piece:
        length = layout.length
        mask = layout.mask.data
        if not layout.valid_when or not layout.lsb_order:
            self.needs_copy("a bitmap that is not Arrow's")
            mask = self.packed(layout.mask_as_bool(valid_when=True))
        return self.option(self.convert(layout.content), self.raw(mask), length)

    def of_bytemaskedarray(self, layout: Any) -> _Piece:
        self.needs_copy("a mask of bytes")
        valid = layout.mask_as_bool(valid_when=True)
        return self.option(self.convert(layout.content), self.packed(valid), layout.length)

    def of_indexedoptionarray(self, layout: Any) -> _Piece:
        if isinstance(layout.content, self.ak.contents.EmptyArray):
            state = self.piece("n", layout, [], has_bitmap=False).state
            return _Piece((*state[:2], NULLABLE, *state[3:]), [Node(layout.length, layout.length, 0, 0)], [])
        self.needs_copy("nulls by an index")
        if layout.parameter("__array__") == "categorical":
            index = layout.index.data
            valid = index >= 0
            piece = self.categorical(layout, self.np.where(valid, index, 0).astype(index.dtype))
            return self.option(piece, None if bool(valid.all()) else self.packed(valid))
        return self.convert(layout.to_BitMaskedArray(valid_when=True, lsb_order=True))

    def of_indexedarray(self, layout: Any) -> _Piece:
        if layout.parameter("__array__") == "categorical":
            return self.categorical(layout, layout.index.data)
        self.needs_copy("values by an index")
        return self.convert(layout.project())

    def categorical(self, layout: Any, index: Any) -> _Piece:
        """A dictionary and the indices into it."""
        form = _FORMATS[index.dtype.str[1:]]
        return self.piece(form, layout, [None, self.raw(index)], dictionary=self.convert(layout.content))

    def of_unionarray(self, layout: Any) -> _Piece:
        np, length = self.np, layout.length
        tags, index, contents = layout.tags.data, layout.index.data[:length], list(layout.contents)
        in_order = True
        for tag in range(len(contents)):
            mine = index[tags == tag]
            in_order = in_order and bool((mine[1:] >= mine[:-1]).all())
        if not in_order:
            # Arrow wants each child's rows in order.
            self.needs_copy("a union whose rows are in no order")
            where = np.zeros(length, "i4")
            for tag in range(len(contents)):
                mine = tags == tag
                contents[tag] = layout.project(tag)
                where[mine] = np.arange(int(mine.sum()), dtype="i4")
            index = where
        offsets = self.cast(index, "i4", "offsets of a union that are not 32 bits wide")
        below = tuple(self.convert(content).named(str(tag)) for tag, content in enumerate(contents))
        codes = ",".join(str(tag) for tag in range(len(contents)))
        return self.piece(f"+ud:{codes}", layout, [self.raw(tags), offsets], below, length=length, has_bitmap=False)


def from_awkward(array: Any, *, copy: Optional[bool] = None) -> "Array":
    """An array on the memory of an Awkward Array, in CPU memory or, by CuPy, on a GPU.

    Each buffer keeps the numpy or CuPy array alive that it came from, and nothing else. Records become structs, tuples
    structs with the fields ``"0"``, ``"1"``, ...; categorical data dictionaries; lists with starts and stops list
    views; other parameters go into the metadata, from which `Array.to_awkward` takes them back.

    What is on a GPU comes by CuPy's array interface. No GPU has proved this yet.

    What is on a GPU comes by CuPy's array interface. No GPU has proved this yet.

    Parameters
    ----------
    array : ak.Array or a layout of ``ak.contents``
        The data.
    copy : bool, optional
        None copies what Arrow has no equal layout for: booleans, days, masks other than Arrow's bitmaps, nulls and
        values by an index, ends of lists with starts and stops, indices of unions that are not 32 bits wide or in no
        order, and strided values. False refuses to. True gives memory of its own.

    Raises
    ------
    ImportError
        Where Awkward Array is not installed.
    Unsupported
        For complex numbers and other values that Arrow does not have.
    CopyNeeded
        Where False forbids a needed copy.
    """
    ak = need_awkward("from_awkward")
    layout = ak.to_layout(array, primitive_policy="error", string_policy="error")
    if isinstance(layout, ak.record.Record):
        raise Unsupported("expected an array, found a single record")
    backend = ak.backend(layout)
    if backend == "cuda":
        np = importlib.import_module("cupy")
    elif backend == "cpu":
        np = need_numpy("from_awkward()")
    else:
        raise Unsupported(f"expected an Awkward Array of numpy's or CuPy's arrays, found one of {backend}")
    piece = _In(copy, ak, np).convert(layout)
    made_of = from_buffers(_rebuilt(piece.state), piece.nodes, piece.buffers)
    made_of._came_by = "awkward"
    return made_of.to_device(made_of.device, share=False) if copy else made_of
