"""`bowstring.array` of the dataframe protocol: pandas, PyArrow, and each kind of null by an object written by hand."""

import array
import gc
import struct
import warnings
import weakref

import bowstring
import pandas
import pyarrow as pa
import pytest
from bowstring import CopyNeeded, InvalidData, Unsupported

INT, UINT, FLOAT, BOOL, STRING, DATETIME, CATEGORICAL = 0, 1, 2, 20, 21, 22, 23
NON_NULLABLE, USE_NAN, USE_SENTINEL, USE_BITMASK, USE_BYTEMASK = range(5)
_FORMATS = {
    (INT, 8): "b", (INT, 16): "h", (INT, 32): "i", (INT, 64): "q", (UINT, 8): "B", (UINT, 16): "H", (UINT, 32): "I",
    (UINT, 64): "Q", (FLOAT, 32): "f", (FLOAT, 64): "d", (BOOL, 8): "B",
}


class Buffer:
    """A buffer of the protocol."""

    alive = weakref.WeakSet()

    def __init__(self, data, device=(1, None)):
        self._data = array.array("B", data)
        self._device = device
        Buffer.alive.add(self)

    ptr = property(lambda self: self._data.buffer_info()[0])
    bufsize = property(lambda self: len(self._data))

    def __dlpack_device__(self):
        return self._device


def bits(flags, offset=0):
    """Flags as bits, behind some that nobody looks at."""
    whole = [0] * offset + [int(flag) for flag in flags]
    return bytes(sum(bit << i for i, bit in enumerate(whole[at : at + 8])) for at in range(0, len(whole), 8))


class Column:
    """A column of the protocol, of values and a way to say which of them are nulls."""

    def __init__(
        self, dtype, data, nulls=(NON_NULLABLE, None), validity=None, offsets=None, size=None, offset=0, form="",
        categories=None, ordered=False, stored=None, device=(1, None), offsets_dtype=(INT, 32, "i", "="),
    ):
        self.dtype = (*dtype, form, "=")
        self.stored = (*(stored or dtype), "", "=")
        if dtype[0] == STRING:
            self.data = Buffer(data, device)
        elif isinstance(data, bytes):
            self.data = Buffer(data, device)
        else:
            self.data = Buffer(struct.pack(f"={len(data)}{_FORMATS[stored or dtype]}", *data), device)
        self.describe_null, self.offset = nulls, offset
        self._size = len(data) - offset if size is None else size
        self.validity, self.offsets, self.offsets_dtype = validity, offsets, offsets_dtype
        self.categories, self.ordered = categories, ordered
        self.null_count = None

    def size(self):
        return self._size

    def num_chunks(self):
        return 1

    @property
    def describe_categorical(self):
        return {"is_ordered": self.ordered, "is_dictionary": self.categories is not None, "categories": self.categories}

    def get_buffers(self):
        how = 1 if self.describe_null[0] == USE_BITMASK else 8
        return {
            "data": (self.data, self.stored),
            "validity": None if self.validity is None else (self.validity, (BOOL, how, "b", "=")),
            "offsets": None if self.offsets is None else (self.offsets, self.offsets_dtype),
        }


class Frame:
    """A table of the protocol, in one or several chunks."""

    def __init__(self, *chunks):
        self.chunks = chunks
        self.asked = []

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        self.asked.append(allow_copy)
        return self

    def num_chunks(self):
        return len(self.chunks)

    def get_chunks(self, n_chunks=None):
        return [Frame(chunk) for chunk in self.chunks]

    def num_rows(self):
        return sum(next(iter(chunk.values())).size() for chunk in self.chunks) if self.chunks[0] else 0

    def column_names(self):
        return list(self.chunks[0])

    def get_column(self, i):
        return list(self.chunks[0].values())[i]


def strings(values, offset=0, nulls=(NON_NULLABLE, None), validity=None, large=False):
    """A column of text."""
    data = [value.encode() for value in values]
    ends = [0]
    for one in data:
        ends.append(ends[-1] + len(one))
    packed = Buffer(struct.pack(f"={len(ends)}{'q' if large else 'i'}", *ends))
    return Column(
        (STRING, 8), b"".join(data), nulls, validity, packed, len(values) - offset, offset, "u",
        offsets_dtype=(INT, 64 if large else 32, "", "="),
    )


def values_of(column, **keywords):
    found = bowstring.array(Frame({"x": column}), **keywords)
    assert found.source == "__dataframe__"
    there = pa.record_batch(found)
    there.validate(full=True)
    return there["x"].to_pylist()


NAN = float("nan")
VALIDITY = {
    USE_BITMASK: lambda missing, null, offset: Buffer(bits([gone == null for gone in missing], offset)),
    USE_BYTEMASK: lambda missing, null, offset: Buffer(
        bytes([9] * offset + [null if gone else 1 - null for gone in missing])
    ),
}


@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("null", [0, 1])
@pytest.mark.parametrize("how", [USE_BITMASK, USE_BYTEMASK], ids=["bits", "bytes"])
@pytest.mark.parametrize("dtype", list(_FORMATS), ids=str)
def test_masks(dtype, how, null, offset):
    missing = [False, True, False, False, True, False, False, False, True, False]
    data = [0] * offset + [1, 0, 1, 0, 1, 1, 0, 0, 1, 1]
    column = Column(dtype, data, (how, null), VALIDITY[how](missing, null, offset), offset=offset)
    expected = [None if gone else value for gone, value in zip(missing, data[offset:])]
    found = values_of(column)
    assert found == expected and [type(v) is bool for v in found if v is not None][0] == (dtype[0] == BOOL)


@pytest.mark.parametrize("dtype", [key for key in _FORMATS if key[0] != BOOL], ids=str)
def test_sentinels(dtype):
    assert values_of(Column(dtype, [9, 5, 7, 9, 8], (USE_SENTINEL, 9), offset=1)) == [5, 7, None, 8]
    assert values_of(Column(dtype, [5, 7], (USE_SENTINEL, 9))) == [5, 7]
    assert values_of(Column(dtype, [5, 7], (NON_NULLABLE, None))) == [5, 7]


def test_sentinels_of_other_kinds():
    assert values_of(Column((BOOL, 8), [0, 1, 2], (USE_SENTINEL, 2))) == [False, True, None]
    assert values_of(strings(["skipped", "a", "NA", ""], 1, (USE_SENTINEL, "NA"))) == ["a", None, ""]
    times = Column((DATETIME, 64), [-(2**63), 1], (USE_SENTINEL, -(2**63)), form="tsu:", stored=(INT, 64))
    assert [value is None for value in values_of(times)] == [True, False]


@pytest.mark.parametrize("width", [32, 64])
def test_nan(width):
    assert values_of(Column((FLOAT, width), [1.5, NAN, 2.5], (USE_NAN, None))) == [1.5, None, 2.5]
    kept = values_of(Column((FLOAT, width), [1.5, NAN], (NON_NULLABLE, None)))
    assert kept[0] == 1.5 and kept[1] != kept[1]
    with pytest.raises(Unsupported, match="expected NaN among floats alone"):
        values_of(Column((INT, 64), [1], (USE_NAN, None)))


def test_without_numpy(monkeypatch):
    """Nulls are found without NumPy as well."""
    import sys

    monkeypatch.delitem(sys.modules, "numpy")
    assert values_of(Column((FLOAT, 64), [1.5, NAN], (USE_NAN, None))) == [1.5, None]
    assert values_of(Column((INT, 16), [1, 2], (USE_SENTINEL, 1))) == [None, 2]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("null", [0, 1])
@pytest.mark.parametrize("how", [USE_BITMASK, USE_BYTEMASK])
def test_strings(how, null, large):
    validity = VALIDITY[how]([False, True, False], null, 1)
    column = strings(["skipped", "a", "gone", "é"], 1, (how, null), validity, large)
    assert values_of(column) == ["a", None, "é"]
    assert values_of(strings(["a", "b"], large=large)) == ["a", "b"]


@pytest.mark.parametrize(
    ("form", "stored", "kind"),
    [("tsn:", (INT, 64), "timestamp(ns)"), ("tss:UTC", (INT, 64), 'timestamp(s, "UTC")'), ("tdD", (INT, 32), "date32")],
)
def test_times(form, stored, kind):
    column = Column((DATETIME, stored[1]), [1, 2], form=form, stored=stored)
    found = bowstring.array(Frame({"x": column}))
    assert str(found["x"].type) == f"x: {kind}"
    assert found["x"].buffer(1).ptr == column.data.ptr


def test_categories():
    categories = strings(["a", "b"])
    column = Column(
        (CATEGORICAL, 8), [1, 0, -1], (USE_SENTINEL, -1), categories=categories, ordered=True, stored=(INT, 8), form="c"
    )
    assert values_of(column) == ["b", "a", None]
    found = bowstring.array(Frame({"x": column}))["x"]
    assert found.type.flags & 1
    assert found.dictionary.buffer(2).ptr == categories.data.ptr
    lonely = Column((CATEGORICAL, 8), [0], stored=(INT, 8))
    with pytest.raises(Unsupported, match="expected categories, found codes alone"):
        values_of(lonely)


def test_each_buffer_has_its_own_owner():
    gc.collect()
    others = set(Buffer.alive)
    frame = Frame({
        "a": Column((INT, 64), [1, 2, 3], (USE_BITMASK, 0), Buffer(bits([1, 0, 1]))),
        "s": strings(["x", "y", "z"]),
    })
    places = {
        "validity": frame.get_column(0).validity.ptr, "a": frame.get_column(0).data.ptr,
        "offsets": frame.get_column(1).offsets.ptr, "s": frame.get_column(1).data.ptr,
    }
    found = bowstring.array(frame, copy=False)
    del frame
    gc.collect()
    assert len(set(Buffer.alive) - others) == 4
    kept = found["a"].buffer(1)
    assert [buffer.ptr for buffer in found.buffers] == [
        0, places["validity"], places["a"], 0, places["offsets"], places["s"]
    ]
    del found
    gc.collect()
    assert [buffer.ptr for buffer in set(Buffer.alive) - others] == [kept.ptr] == [places["a"]]
    del kept
    gc.collect()
    assert set(Buffer.alive) == others


@pytest.mark.parametrize(
    "column",
    [
        Column((FLOAT, 64), [1.5, NAN], (USE_NAN, None)), Column((INT, 64), [1, 2], (USE_SENTINEL, 2)),
        Column((INT, 64), [1, 2], (USE_BYTEMASK, 1), Buffer(b"\0\1")),
        Column((INT, 64), [1, 2], (USE_BITMASK, 1), Buffer(b"\2")),
        Column((BOOL, 8), [0, 1]),
    ],
)
def test_what_needs_a_copy(column):
    frame = Frame({"x": column})
    with pytest.raises(CopyNeeded, match="__dataframe__: expected"):
        bowstring.array(frame, copy=False)
    bowstring.array(frame)
    assert frame.asked == [False, True]
    # Nulls that there could be, but are not, need no bitmap.
    column = Column((FLOAT, 64), [1.5], (USE_NAN, None))
    assert bowstring.array(Frame({"x": column}), copy=False)["x"].buffer(1).ptr == column.data.ptr


def test_booleans_as_bits():
    data = Buffer(bits([1, 0, 1], 2))
    column = Column((BOOL, 1), bytes(data._data), size=3, offset=2, stored=(BOOL, 1))
    assert values_of(column, copy=False) == [True, False, True]


def test_chunks():
    frame = Frame({"x": Column((INT, 32), [1, 2])}, {"x": Column((INT, 32), [3], (USE_SENTINEL, 3))})
    assert pa.record_batch(bowstring.array(frame))["x"].to_pylist() == [1, 2, None]
    with pytest.raises(CopyNeeded, match="found 2, which only a copy makes one"):
        bowstring.array(Frame({"x": Column((INT, 32), [1])}, {"x": Column((INT, 32), [3])}), copy=False)


def test_no_columns_and_no_rows():
    assert bowstring.array(Frame({})).fields == []
    assert values_of(Column((INT, 64), [])) == []
    assert values_of(Column((INT, 64), [], (USE_BITMASK, 0), Buffer(b""))) == []


def test_memory_of_a_device():
    column = Column((INT, 64), [1, 2], device=(10, 2))
    found = bowstring.array(Frame({"x": column}))
    assert (str(found.device), found["x"].buffer(1).ptr) == ("rocm:2", column.data.ptr)
    with pytest.raises(Unsupported, match="nobody here reads memory of rocm:2"):
        bowstring.array(Frame({"x": Column((INT, 64), [1], (USE_SENTINEL, 1), device=(10, 2))}))
    with pytest.raises(Unsupported, match="expected columns on one device"):
        bowstring.array(Frame({"x": column, "y": Column((INT, 64), [1, 2])}))


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (Column((INT, 64), [1, 2], size=3), InvalidData, "S|A|expected"),
        (Column((INT, 64), [1, 2], (USE_SENTINEL, 1), size=3), InvalidData, "expected a buffer of 24 bytes, found 16"),
        (Column((INT, 64), [1], (9, None)), Unsupported, "as the protocol knows them, found 9"),
        (Column((DATETIME, 64), [1], form="x", stored=(INT, 64)), Unsupported, "expected a time as Arrow writes it"),
        (Column((INT, 128), bytes(16), size=1), Unsupported, "expected elements that Arrow has"),
    ],
)
def test_frames_that_are_wrong(column, error, message):
    with pytest.raises(error, match=message):
        values_of(column)


# Libraries.


def test_pyarrow():
    table = pa.table({
        "i": [1, None, 3], "f": [1.5, None, 2.5], "s": ["a", None, "ccc"], "b": [True, None, False],
        "d": pa.array(["x", None, "x"]).dictionary_encode(), "t": pa.array([1, None, 3], pa.timestamp("us", "UTC")),
    })
    for data in (table, table.slice(1), pa.concat_tables([table, table])):
        found = bowstring.array(data, via="__dataframe__")
        assert pa.record_batch(found).to_pylist() == data.to_pylist()
    found = bowstring.array(table.drop(["b"]), via="__dataframe__", copy=False)
    assert found["i"].buffer(1).ptr == table["i"].chunk(0).buffers()[1].address


def test_pandas():
    frame = pandas.DataFrame({
        "i": [1, 2, 3], "f": [1.5, NAN, 2.5], "s": ["a", None, "c"], "b": [True, False, True],
        "t": pandas.to_datetime(["2020-01-01", None, "2020-01-03"]), "c": pandas.Categorical(["x", None, "y"]),
    })
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bowstring.array(frame, via="__dataframe__")
    assert pa.record_batch(found).to_pylist() == pa.RecordBatch.from_pandas(frame).to_pylist()
    assert found["i"].buffer(1).ptr == frame["i"].to_numpy().ctypes.data
