"""Arrays as Awkward Array has them: what ak.from_arrow makes of pyarrow's, window by window, on the same memory."""

import random
import re

import awkward as ak
import bowstring
import numpy as np
import pyarrow as pa
import pytest
from bowstring import Buffer, CopyNeeded, InvalidArgument, Unsupported, from_buffers

from moving_cases import NO_GOLDEN, golden_files
from values_support import each, everything, none_alive, Owner, taken

ARRAYS = everything()
NOT_THERE = {"decimal", "decimal256", "run_ends", "interval"}
# What ak.from_arrow refuses or crashes on.
FROM_ARROW_REFUSES = {
    "string_view", "binary_view", "list_view<item: int32>", "large_list_view<item: int32>", "map",
}
# What Awkward Array has as something else than Python's objects of pyarrow.
AS_INSTANTS = {"date64", *(name for name in ARRAYS if name.startswith("time"))}
WINDOWS = {
    "whole": lambda data: data, "behind": lambda data: data.slice(1),
    "within": lambda data: data.slice(1, len(data) - 2),
    "nothing": lambda data: data.slice(0, 0),
}


def plain(rows):
    """Lists of pairs, as pyarrow has maps, as records."""
    if isinstance(rows, list):
        return [plain(row) for row in rows]
    if isinstance(rows, tuple):
        return {"key": rows[0], "value": plain(rows[1])}
    return {key: plain(value) for key, value in rows.items()} if isinstance(rows, dict) else rows


@each("window", WINDOWS)
@each("name", [name for name in ARRAYS if name not in NOT_THERE])
def test_values(name, window):
    data = WINDOWS[window](ARRAYS[name])
    found = taken(data).to_awkward()
    assert isinstance(found, ak.Array) and ak.is_valid(found)
    if name not in AS_INSTANTS:
        assert found.to_list() == plain(data.to_pylist())
    if name in FROM_ARROW_REFUSES:
        return
    same = ak.from_arrow(data)
    assert str(found.type) == str(same.type)
    # Of windows ak.from_arrow forgets where bitmaps and children start.
    if window == "whole":
        assert found.to_list() == same.to_list()


@each("name", sorted(NOT_THERE))
def test_what_awkward_does_not_have(name):
    with pytest.raises(Unsupported, match="that Awkward Array has"):
        taken(ARRAYS[name]).to_awkward()


def test_fields_of_one_name_are_refused():
    data = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(Unsupported, match="names of their own"):
        taken(data).to_awkward()


def _batches():
    for path in golden_files():
        with pa.ipc.open_stream(path) as reader:
            for number, batch in enumerate(reader):
                yield f"{path.stem}[{number}]", batch


@pytest.mark.skipif(not golden_files(), reason=NO_GOLDEN)
def test_golden_files():
    compared = refused = columns = 0
    for name, batch in _batches():
        whole = taken(batch)
        for column in range(len(whole.type)):
            columns += 1
            try:
                found = whole.child(column).to_awkward()
            except Unsupported:
                assert re.search("decimal|interval|run_end|duplicate", f"{name} {whole.type[column]}"), (name, column)
                refused += 1
                continue
            data, field = batch.column(column), batch.schema.field(column)
            assert ak.is_valid(found), (name, field)
            try:
                same = ak.from_arrow(data)
                listed = same.to_list()
            except Exception:
                listed = None
            if listed is None or "union" in str(data.type):
                # ak.from_arrow forgets type codes. Then pyarrow's own words count, where they are of the same kind.
                if re.search("map|view|union", str(data.type)):
                    assert found.to_list() == plain(data.to_pylist()), (name, field)
                    compared += 1
                continue
            assert found.to_list() == listed, (name, field)
            words = [str(found.type), str(same.type)]
            if "dictionary" in str(data.type):
                # With nulls among them, values are no categories here.
                words = [re.sub(r"categorical\[type=(\??\w+)\]", r"\1", one).replace("??", "?") for one in words]
            assert words[0] == words[1], (name, field)
            compared += 1
    print(f"golden columns compared: {compared}, refused: {refused}, of {columns}")
    assert compared >= 250 and compared + refused >= columns - 20


def _random_type(chance, depth):
    kinds = [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string()]
    kinds += [pa.large_binary(), pa.date32()]
    if depth and chance.random() < 0.7:
        inner = _random_type(chance, depth - 1)
        return chance.choice([
            lambda: pa.list_(inner), lambda: pa.large_list(inner), lambda: pa.list_(inner, chance.randrange(1, 4)),
            lambda: pa.list_view(inner), lambda: pa.struct([("x", inner), ("y", _random_type(chance, depth - 1))]),
        ])()
    return chance.choice(kinds)


def _random_rows(chance, kind, count):
    def one(kind):
        if chance.random() < 0.2:
            return None
        if pa.types.is_fixed_size_list(kind):
            return [one(kind.value_type) for _ in range(kind.list_size)]
        if pa.types.is_struct(kind):
            return {field.name: one(field.type) for field in kind}
        if pa.types.is_nested(kind):
            return [one(kind.value_type) for _ in range(chance.randrange(4))]
        if pa.types.is_boolean(kind):
            return chance.random() < 0.5
        if pa.types.is_string(kind):
            return chance.choice(["", "a", "ü", "longer than twelve bytes"])
        if pa.types.is_large_binary(kind):
            return bytes(chance.randrange(256) for _ in range(chance.randrange(5)))
        if pa.types.is_floating(kind):
            return chance.randrange(1000) / 8
        return chance.randrange(100)

    return [one(kind) for _ in range(count)]


@each("seed", range(60))
def test_random_arrays_and_windows(seed):
    chance = random.Random(seed)
    kind = _random_type(chance, 3)
    data = pa.array(_random_rows(chance, kind, chance.randrange(1, 40)), kind)
    start = chance.randrange(len(data))
    data = data.slice(start, chance.randrange(len(data) - start + 1))
    array = taken(data)
    found = array.to_awkward()
    assert found.to_list() == data.to_pylist()
    again = bowstring.from_awkward(found)
    assert again.validate() is again
    assert pa.array(again).type == data.type
    assert pa.array(again).to_pylist() == data.to_pylist()


def addresses(layout):
    """Where the buffers of a layout are, by their names."""
    form, _, container = ak.to_buffers(layout)
    return {key: value.__array_interface__["data"][0] for key, value in container.items() if value.nbytes}


def test_nothing_is_copied():
    data = pa.array([[{"x": 1.5, "s": "ab"}, {"x": None, "s": "c"}], None, [], [{"x": 2.5, "s": None}]])
    found = addresses(taken(data).to_awkward(copy=False).layout)
    expected = {buffer.address for buffer in data.buffers() if buffer is not None and buffer.size}
    assert set(found.values()) == expected and len(expected) == 7
    # Those of a window are inside of the same buffers.
    window = addresses(taken(data.slice(0, 3)).to_awkward(copy=False).layout)
    assert set(window.values()) <= expected and len(window) >= 6


@each("name", [
    "int8", "double", "timestamp[s]", "duration[us]", "date64", "time64[us]", "fixed", "string", "large_binary",
    "list<item: int32>", "large_list<item: int32>", "fixed_list", "struct", "nested", "dense_union",
])
def test_zero_copy_of(name):
    data = ARRAYS[name]
    found = set(addresses(taken(data).to_awkward(copy=False).layout).values())
    assert found and found <= {buffer.address for buffer in data.buffers() if buffer is not None}


@each("name, what", [
    ("bool", "bits"), ("date32[day]", "32 bits"), ("time32[s]", "32 bits"), ("string_view", "views of strings"),
    ("list_view<item: int32>", "ends of list views"), ("dictionary", "indices with nulls"),
])
def test_copies_are_refused_by_name(name, what):
    with pytest.raises(CopyNeeded, match=what):
        taken(ARRAYS[name]).to_awkward(copy=False)


def test_bitmaps_that_start_within_a_byte():
    data = pa.array([None, 1, 2, None, 4, 5, 6, 7, None, 9, 10, 11])
    for offset in range(12):
        array = taken(data.slice(offset))
        assert array.to_awkward().to_list() == data.to_pylist()[offset:]
        if offset % 8:
            with pytest.raises(CopyNeeded, match="within a byte"):
                array.to_awkward(copy=False)
        else:
            assert array.to_awkward(copy=False).to_list() == data.to_pylist()[offset:]


def test_dictionaries():
    for index in (pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()):
        for indices in ([1, 0, 1], [1, None, 0]):
            data = pa.DictionaryArray.from_arrays(pa.array(indices, index), pa.array(["a", "b", "unused"]))
            array = taken(data)
            found = array.to_awkward()
            assert found.to_list() == data.to_pylist() and ak.is_categorical(found)
            assert bowstring.from_awkward(found).validate().dictionary is not None
            assert pa.array(bowstring.from_awkward(found)).to_pylist() == data.to_pylist()
    flat = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int32()), pa.array(["a", "b"]))
    layout = taken(flat).to_awkward(copy=False).layout
    assert layout.index.data.__array_interface__["data"][0] == flat.indices.buffers()[1].address
    nulls = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, None], pa.int32()), pa.array(["a", None]))
    found = taken(nulls).to_awkward()
    assert found.to_list() == nulls.to_pylist() and ak.is_valid(found) and not ak.is_categorical(found)


def test_type_codes_of_unions():
    tags, offsets = pa.array([7, 3, 7], pa.int8()), pa.array([0, 0, 1], pa.int32())
    data = pa.UnionArray.from_dense(tags, offsets, [pa.array([1, 2]), pa.array(["x"])], ["n", "s"], [7, 3])
    array = taken(data)
    assert array.to_awkward().to_list() == [1, "x", 2]
    with pytest.raises(CopyNeeded, match="type codes"):
        array.to_awkward(copy=False)
    wide = pa.UnionArray.from_sparse(tags, [pa.array([1, 2, 3]), pa.array(["x", "y", "z"])], ["n", "s"], [7, 3])
    assert taken(wide).slice(1).to_awkward().to_list() == ["y", 3]


def test_unions_of_one_kind_are_joined():
    tags, offsets = pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32())
    array = taken(pa.UnionArray.from_dense(tags, offsets, [pa.array([1, 2], pa.int8()), pa.array([2.5])]))
    found = array.to_awkward()
    assert found.to_list() == [1, 2.5, 2] and str(found.type) == "3 * ?float64"
    with pytest.raises(CopyNeeded, match="simpler"):
        array.to_awkward(copy=False)


def test_record_batches():
    batch = pa.record_batch({"a": pa.array([1, 2, None]), "b": pa.array(["x", None, "z"])}).slice(1)
    found = taken(batch).to_awkward()
    assert found.to_list() == batch.to_pylist() and str(found.type) == "2 * {a: ?int64, b: ?string}"
    empty = taken(pa.record_batch([pa.array([], pa.int8())], ["a"]))
    assert empty.to_awkward().to_list() == []
    assert taken(pa.array([{}, {}], pa.struct([]))).to_awkward().to_list() == [{}, {}]


def test_fields_that_are_not_nullable():
    items = pa.list_(pa.field("item", pa.int8(), nullable=False))
    kind = pa.struct([pa.field("a", pa.int8(), nullable=False), pa.field("l", items)])
    data = pa.array([{"a": 1, "l": [1]}], kind)
    assert str(taken(data).to_awkward().type) == str(ak.from_arrow(data).type) == "1 * {a: int8, l: option[var * int8]}"


def test_nulls_count_whatever_the_field_says():
    array = from_buffers("struct<a: int8 not null>", [1, 1], [None, b"\0", b"a"])
    assert array.to_awkward().to_list() == [{"a": None}]


def test_layouts_and_copies():
    data = pa.array([1, 2])
    layout = taken(data).to_awkward(highlevel=False)
    assert isinstance(layout, ak.contents.NumpyArray)
    own = taken(data).to_awkward(copy=True, highlevel=False)
    assert own.data.__array_interface__["data"][0] != data.buffers()[1].address and own.to_list() == [1, 2]


def test_each_buffer_lives_on_its_own():
    numbers, text = Owner(), Owner()
    values, letters = np.arange(3.0), np.frombuffer(b"abc", "u1")
    array = from_buffers("struct<a: float64, s: utf8>", 3, [
        None, None, Buffer.from_address(values.ctypes.data, 24, numbers),
        None, np.array([0, 1, 2, 3], "i4"), Buffer.from_address(letters.ctypes.data, 3, text),
    ])
    found = array.to_awkward()
    del array, numbers, text
    column = found["a"]
    del found
    assert Owner.alive == 1 and column.to_list() == [0, 1, 2]
    del column
    assert none_alive() and Owner.alive == 0


def test_device_memory_is_refused_where_no_library_is():
    array = from_buffers("int8", 8, [None, Buffer.from_address(4096, 64, None, "rocm:0")])
    with pytest.raises(InvalidArgument, match=r"to_device\('cpu'\) before to_awkward"):
        array.to_awkward()


def test_awkward_is_imported_when_it_is_needed(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "awkward", None)
    with pytest.raises(ImportError, match="pip install awkward"):
        taken(pa.array([1])).to_awkward()
    with pytest.raises(ImportError, match="pip install awkward"):
        bowstring.from_awkward([1])
