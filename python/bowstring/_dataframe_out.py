"""How arrays and streams answer the dataframe protocol: columns whose buffers are in place, each with its own owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence

from ._buffer import Buffer
from ._dataframe import BOOL, CATEGORICAL, DATETIME, FLOAT, INT, NON_NULLABLE, STRING, UINT, USE_BITMASK
from ._errors import InvalidArgument, Unsupported
from ._foreign import buffer_of
from ._memory import CopyNeeded
from ._type import Type

if TYPE_CHECKING:
    from ._array import Array
    from ._stream import Stream

Dtype = tuple[int, int, str, str]

_BITS: Dtype = (BOOL, 1, "b", "=")
_BYTES: Dtype = (UINT, 8, "C", "=")
_NUMBERS = {
    "c": (INT, 8), "s": (INT, 16), "i": (INT, 32), "l": (INT, 64),
    "C": (UINT, 8), "S": (UINT, 16), "I": (UINT, 32), "L": (UINT, 64),
    "e": (FLOAT, 16), "f": (FLOAT, 32), "g": (FLOAT, 64), "b": (BOOL, 1),
}
# What times are stored as, by the beginning of their formats; intervals are none.
_TIMES = {"tdD": "i", "tdm": "l", "tts": "i", "ttm": "i", "ttu": "l", "ttn": "l", "ts": "l", "tD": "l"}
_VIEWS = "vu"
_STRINGS = {"u": "i", "U": "l"}


def _number(form: str) -> Dtype:
    kind, bits = _NUMBERS[form]
    return kind, bits, form, "="


def _stored_time(form: str) -> Optional[str]:
    return _TIMES.get(form[:2]) or _TIMES.get(form[:3])


def _stored(kind: Type, path: str) -> Dtype:
    """What the data buffer of a column consists of; Unsupported for what the protocol has no kind for."""
    form = kind.format
    if form in _STRINGS or form == _VIEWS:
        return _BYTES
    if kind.metadata.get(b"ARROW:extension:name") == b"arrow.bool8":
        return BOOL, 8, "b", "="
    found = _stored_time(form) or form
    if found not in _NUMBERS:
        raise Unsupported(f"expected a type that the dataframe protocol has, found {kind}", path=path)
    return _number(found)


class Column:
    """A column of the dataframe protocol, of one chunk or several, in the memory of its arrays.

    It, and each of its buffers, stays alive on its own when the frame is gone.
    """

    __slots__ = ("_arrays", "_kind", "_path", "_allow_copy", "_joined", "_nulls")

    def __init__(self, arrays: "Sequence[Array]", path: str, allow_copy: bool) -> None:
        self._arrays = list(arrays)
        self._kind = self._arrays[0].type
        self._path = path
        self._allow_copy = allow_copy
        self._joined: "Optional[Array]" = None
        self._nulls: Optional[int] = None

    def _needs_copy(self, found: str) -> None:
        if not self._allow_copy:
            raise CopyNeeded(f"expected no copy, as allow_copy=False has it, found {found}", path=self._path)

    def _whole(self) -> "Array":
        """The column as one array with buffers that the protocol has; both may take a copy, which is kept."""
        if self._joined is None:
            found = self._arrays[0]
            if len(self._arrays) > 1:
                self._needs_copy(f"{len(self._arrays)} chunks, which only a copy makes one: get_chunks() gives each")
                from ._stream import Stream

                found = Stream.from_arrays(self._arrays).collect()
            if found.type.format == _VIEWS:
                self._needs_copy(f"{self._kind}, of which offsets have to be made")
                found = found.conform(layout="offsets")
            self._joined = found
        return self._joined

    def size(self) -> int:
        """The number of rows."""
        return sum(map(len, self._arrays))

    @property
    def offset(self) -> int:
        """Which element of the buffers is the first row; 0 for no rows, whose buffers may have no elements at all."""
        return self._whole().offset if self.size() else 0

    @property
    def dtype(self) -> Dtype:
        """The protocol's kind, bits of an element, Arrow's format string, and the byte order.

        Raises
        ------
        Unsupported
            The protocol has no kind for the column's type, which the message names.
        """
        stored, form = _stored(self._kind, self._path), self._kind.format
        if self._kind.dictionary is not None:
            return CATEGORICAL, stored[1], form, "="
        if form in _STRINGS or form == _VIEWS:
            return STRING, 8, "u" if form == _VIEWS else form, "="
        if _stored_time(form) is not None:
            return DATETIME, stored[1], form, "="
        return stored

    @property
    def describe_categorical(self) -> "dict[str, Any]":
        """Whether codes are ordered, and the column of what they stand for. TypeError for other columns."""
        if self._kind.dictionary is None:
            raise TypeError(f"expected a column of categories, found {self._kind}")
        values = self._whole().dictionary
        assert values is not None
        categories = Column([values], f"{self._path}.dictionary", self._allow_copy)
        return {"is_ordered": bool(self._kind.flags & 1), "is_dictionary": True, "categories": categories}

    @property
    def describe_null(self) -> "tuple[int, Optional[int]]":
        """How nulls are told: ``(3, 0)``, by bits that are 0 for them, or ``(0, None)`` where there are none.

        Memory of a device is not read for it: what may have nulls there has bits.
        """
        return (NON_NULLABLE, None) if self.null_count == 0 else (USE_BITMASK, 0)

    @property
    def null_count(self) -> Optional[int]:
        """The number of nulls; None where only the memory of a device would tell."""
        if self._nulls is None:
            counts = [array.null_count if array.validity is not None else 0 for array in self._arrays]
            self._nulls = -1 if min(counts) < 0 else sum(counts)
        return None if self._nulls < 0 else self._nulls

    @property
    def metadata(self) -> "dict[str, Any]":
        """The field's metadata under ``"bowstring.metadata"``, bytes by bytes, if there is any."""
        return _metadata(self._kind)

    def num_chunks(self) -> int:
        """The number of chunks."""
        return len(self._arrays)

    def get_chunks(self, n_chunks: Optional[int] = None) -> "Iterable[Column]":
        """The chunks as columns of their own, or `n_chunks`, a multiple of their number, of parts of them."""
        return [Column([part], self._path, self._allow_copy) for part in _parts(self._arrays, n_chunks)]

    def get_buffers(self) -> "dict[str, Optional[tuple[Buffer, Dtype]]]":
        """The buffers, in place, as ``"data"``, ``"validity"`` and ``"offsets"``, each with the dtype of its elements.

        They are whole: `offset` says where the rows begin. The protocol cannot hand on an event, so that this waits
        until unfinished device work on them is done, wherever the memory is.

        Raises
        ------
        Unsupported
            The protocol has no kind for the column's type.
        CopyNeeded
            It would take a copy, and ``allow_copy`` is False. It is a RuntimeError, as the protocol has it.
        """
        stored = _stored(self._kind, self._path)
        array = self._whole()
        if array.sync_event:
            array.synchronize("host")
        form = array.type.format
        ends = _STRINGS.get(form)
        if ends is not None and array.buffer_view(array.node().first_buffer + 2).bufsize < 0:
            array = array.resolve_sizes()
        first = array.node().first_buffer
        found: "dict[str, Optional[tuple[Buffer, Dtype]]]" = {"data": None, "validity": None, "offsets": None}
        if self.null_count != 0:
            found["validity"] = array.buffer(first), _BITS
        if ends is None:
            found["data"] = array.buffer(first + 1), stored
        else:
            found["data"] = array.buffer(first + 2), stored
            found["offsets"] = _some(array.buffer(first + 1), array), _number(ends)
        return found


def _some(offsets: Buffer, array: "Array") -> Buffer:
    """The offsets; a single 0 where strings without rows have none, which consumers take for a column without them."""
    if offsets.bufsize or not array.device.is_cpu:
        return offsets
    return buffer_of(bytes(8))[0]


def _metadata(kind: Type) -> "dict[str, Any]":
    found = kind.metadata
    return {"bowstring.metadata": found} if found else {}


def _parts(arrays: "Sequence[Array]", n_chunks: Optional[int]) -> "list[Array]":
    """Arrays, or as many windows of the same number of rows on each as make `n_chunks`."""
    if n_chunks is None:
        return list(arrays)
    each, rest = divmod(n_chunks, len(arrays))
    if each < 1 or rest:
        raise InvalidArgument(f"expected a multiple of {len(arrays)}, the number of chunks, found {n_chunks}")
    found = []
    for array in arrays:
        rows = len(array)
        step = -(-rows // each)
        starts = (min(at * step, rows) for at in range(each))
        found += [array.slice(start, min(step, rows - start)) for start in starts]
    return found


class DataFrame:
    """A table of the dataframe protocol, in the memory of struct arrays, which are its chunks."""

    __slots__ = ("_arrays", "_kind", "_which", "_allow_copy")

    version = 0

    def __init__(self, arrays: "Sequence[Array]", which: Sequence[int], allow_copy: bool) -> None:
        self._arrays = list(arrays)
        self._kind = self._arrays[0].type
        self._which = list(which)
        self._allow_copy = allow_copy

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> "DataFrame":
        """The same table, as `Array.__dataframe__` has it."""
        _check_nan(nan_as_null)
        return DataFrame(self._arrays, self._which, allow_copy)

    @property
    def metadata(self) -> "dict[str, Any]":
        """The table's metadata under ``"bowstring.metadata"``, bytes by bytes, if there is any."""
        return _metadata(self._kind)

    def num_columns(self) -> int:
        """The number of columns."""
        return len(self._which)

    def num_rows(self) -> int:
        """The number of rows of all chunks."""
        return sum(map(len, self._arrays))

    def num_chunks(self) -> int:
        """The number of chunks."""
        return len(self._arrays)

    def column_names(self) -> "list[str]":
        """The names of the columns, in order."""
        fields = self._kind.fields
        return [fields[index] for index in self._which]

    def get_column(self, i: int) -> Column:
        """A column by its number."""
        index = self._which[i]
        children = [array.child(index) for array in self._arrays]
        return Column(children, f"$.{children[0].type.name}", self._allow_copy)

    def get_column_by_name(self, name: str) -> Column:
        """A column by its name; KeyError unless there is one."""
        return self.get_column(self._index(name))

    def get_columns(self) -> "Iterable[Column]":
        """The columns, in order."""
        return [self.get_column(index) for index in range(len(self._which))]

    def select_columns(self, indices: Sequence[int]) -> "DataFrame":
        """The table with some of its columns, by number, in the order given."""
        return DataFrame(self._arrays, [self._which[index] for index in indices], self._allow_copy)

    def select_columns_by_name(self, names: Sequence[str]) -> "DataFrame":
        """The table with some of its columns, by name, in the order given."""
        return self.select_columns([self._index(name) for name in names])

    def get_chunks(self, n_chunks: Optional[int] = None) -> "Iterable[DataFrame]":
        """The chunks as tables of their own, or `n_chunks`, a multiple of their number, of parts of them."""
        return [DataFrame([part], self._which, self._allow_copy) for part in _parts(self._arrays, n_chunks)]

    def _index(self, name: str) -> int:
        names = self.column_names()
        if names.count(name) != 1:
            found = "several" if name in names else ", ".join(map(repr, names)) or "none"
            raise KeyError(f"expected one column {name!r}, found {found}")
        return names.index(name)


def _check_nan(nan_as_null: bool) -> None:
    if nan_as_null:
        raise Unsupported("expected nan_as_null=False, found True: nobody writes into shared memory")


def frame_of(arrays: "Sequence[Array]", nan_as_null: bool, allow_copy: bool) -> DataFrame:
    """The table whose chunks struct arrays are."""
    _check_nan(nan_as_null)
    kind = arrays[0].type
    if kind.format != "+s":
        raise Unsupported(f"expected a struct array, whose fields are columns, found {kind}")
    return DataFrame([_as_table(array, allow_copy) for array in arrays], range(len(kind)), allow_copy)


def _as_table(array: "Array", allow_copy: bool) -> "Array":
    """The array with nulls in its columns alone, which are copies of their bitmaps where rows are null."""
    nulls = 0 if array.validity is None else array.count_nulls()
    if not nulls:
        return array
    if not allow_copy:
        raise CopyNeeded(f"expected rows that are all there, found {nulls} nulls, which only a copy brings to columns")
    return array.conform(as_table=True)


def frame_of_stream(stream: "Stream", nan_as_null: bool, allow_copy: bool) -> DataFrame:
    """The table whose chunks the arrays of a stream are. The stream is used up."""
    _check_nan(nan_as_null)
    kind = stream.type
    if kind.format != "+s":
        raise Unsupported(f"expected a stream of struct arrays, whose fields are columns, found {kind}")
    taken = stream._moved()
    with taken:
        arrays = list(taken)
    if not arrays:
        arrays = [type(taken).from_arrays([], kind).collect()]
    return frame_of(arrays, nan_as_null, allow_copy)
