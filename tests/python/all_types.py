"""Record batches of every type that pyarrow can write, with nulls, and their edges: empty, all null, sliced."""

import datetime
import decimal

import pyarrow as pa

ROWS = 37


def _with_nulls(values):
    """Every fifth value is null."""
    return [None if i % 5 == 3 else value for i, value in enumerate(values)]


def _text(i):
    return "" if i % 7 == 0 else "naïve ☂" * (i % 4) + str(i)


def _long(i):
    return f"{i:04}" * (i % 9)


def _flat():
    numbers = range(ROWS)
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        yield kind, getattr(pa, kind)(), [i * 3 for i in numbers]
    yield "half", pa.float16(), [i / 4 for i in numbers]
    yield "float", pa.float32(), [i / 8 for i in numbers]
    yield "double", pa.float64(), [-i / 3 for i in numbers]
    yield "bool", pa.bool_(), [i % 3 == 0 for i in numbers]
    yield "null", pa.null(), [None] * ROWS
    for bits, digits in ((32, 9), (64, 18), (128, 38), (256, 76)):
        kind = getattr(pa, f"decimal{bits}")(digits, 2)
        yield f"decimal{bits}", kind, [decimal.Decimal(10 * i - 99).scaleb(-2) for i in numbers]
    day = datetime.date(1999, 12, 31)
    days = [day + datetime.timedelta(days=i) for i in numbers]
    yield "date32", pa.date32(), days
    yield "date64", pa.date64(), days
    for unit in ("s", "ms"):
        yield f"time32_{unit}", pa.time32(unit), [datetime.time(i % 24, i) for i in numbers]
    for unit in ("us", "ns"):
        yield f"time64_{unit}", pa.time64(unit), [datetime.time(i % 24, 1, i) for i in numbers]
    for unit, zone in (("s", None), ("ms", "UTC"), ("us", "+05:30"), ("ns", "America/Argentina/Buenos_Aires")):
        yield f"timestamp_{unit}", pa.timestamp(unit, zone), [i * 1000 for i in numbers]
    for unit in ("s", "ms", "us", "ns"):
        yield f"duration_{unit}", pa.duration(unit), [i - 5 for i in numbers]
    interval = [pa.MonthDayNano([i, -i, i * 10**9]) for i in numbers]
    yield "interval", pa.month_day_nano_interval(), interval
    text, long = [_text(i) for i in numbers], [_long(i) for i in numbers]
    for kind in ("utf8", "large_utf8", "string_view"):
        yield kind, getattr(pa, kind)(), text
        yield f"{kind}_long", getattr(pa, kind)(), long
    for kind in ("binary", "large_binary", "binary_view"):
        yield kind, getattr(pa, kind)(), [value.encode() for value in text]
    yield "fixed_binary", pa.binary(3), [bytes([i, 0, 255 - i]) for i in numbers]
    yield "no_width", pa.binary(0), [b""] * ROWS


def _nested():
    numbers = range(ROWS)
    lists = [list(range(i % 4)) for i in numbers]
    words = [[_long(j) if j % 3 else None for j in range(i % 5)] for i in numbers]
    for name in ("list_", "large_list", "list_view", "large_list_view"):
        yield name, getattr(pa, name)(pa.int16()), lists
        yield f"{name}_of_text", getattr(pa, name)(pa.utf8()), words
    yield "fixed_list", pa.list_(pa.int8(), 2), [[i, None] for i in numbers]
    pair = pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b b", pa.string_view())])
    pairs = [{"a": i, "b b": _long(i)} for i in numbers]
    yield "struct", pair, pairs
    yield "struct_of_nothing", pa.struct([]), [{}] * ROWS
    yield "map", pa.map_(pa.utf8(), pa.int64()), [[(_text(j), j) for j in range(i % 3)] for i in numbers]
    yield "sorted_map", pa.map_(pa.int8(), pair, keys_sorted=True), [[(1, pairs[i])] for i in numbers]
    yield "deep", pa.list_(pa.large_list(pa.struct([("x", pa.list_(pa.bool_()))]))), [
        [[{"x": [True, None]}], None, [{"x": []}, None]] for _ in numbers
    ]


def _unions():
    ids = pa.array([5, 7, 9] * 12 + [5], pa.int8())
    children = [pa.array(range(ROWS)), pa.array([_text(i) for i in range(ROWS)]), pa.array([None] * ROWS, pa.bool_())]
    yield "sparse", pa.UnionArray.from_sparse(ids, children, ["a", "b", "c"], [5, 7, 9])
    offsets = pa.array([i // 3 for i in range(ROWS)], pa.int32())
    yield "dense", pa.UnionArray.from_dense(ids, offsets, children, ["a", "b", "c"], [5, 7, 9])


def _encoded():
    words = pa.array(_with_nulls([_text(i % 6) for i in range(ROWS)]))
    yield "dictionary", words.dictionary_encode()
    for index in (pa.int8(), pa.uint8(), pa.int64(), pa.uint16()):
        yield f"dictionary_{index}", words.dictionary_encode().cast(pa.dictionary(index, pa.utf8()))
    of_list = pa.DictionaryArray.from_arrays(
        pa.array([i % 3 for i in range(ROWS)], pa.int16()),
        pa.ListArray.from_arrays([0, 1, 1, 3], pa.array(["x", "y", "z"]).dictionary_encode()),
        ordered=True,
    )
    yield "dictionary_of_lists", of_list
    ends = pa.array([3, 10, ROWS], pa.int16())
    yield "runs", pa.RunEndEncodedArray.from_arrays(ends, pa.array(["a", None, "c"]))
    wide = pa.array([1, ROWS], pa.int64())
    yield "wide_runs", pa.RunEndEncodedArray.from_arrays(wide, pa.array([{"x": 1}, {"x": None}]))
    for storage in (pa.bool8(), pa.uuid(), pa.json_()):
        yield f"extension_{storage.extension_name}", storage
    yield "tensor", pa.fixed_shape_tensor(pa.int32(), [2])


def _extension(kind):
    storage = kind.storage_type
    if pa.types.is_int8(storage):
        values = [i % 2 for i in range(ROWS)]
    elif pa.types.is_fixed_size_binary(storage):
        values = [bytes([i]) * storage.byte_width for i in range(ROWS)]
    elif pa.types.is_fixed_size_list(storage):
        values = [[i, -i] for i in range(ROWS)]
    else:
        values = [f'{{"x": {i}}}' for i in range(ROWS)]
    return pa.ExtensionArray.from_storage(kind, pa.array(_with_nulls(values), storage))


def columns():
    """Name and array of every type, with nulls where the type has any."""
    for name, kind, values in list(_flat()) + list(_nested()):
        yield name, pa.array(_with_nulls(values), kind)
    for name, made in list(_unions()) + list(_encoded()):
        yield name, made if isinstance(made, pa.Array) else _extension(made)


def _batch(name, column):
    field = pa.field(name, column.type, metadata={"field": "né", "": ""})
    return pa.record_batch([column], schema=pa.schema([field], metadata={"schema": name, "empty": ""}))


def _many_buffers():
    """Views on so much text that it takes many variadic buffers."""
    text = pa.array([f"{i:06}" * (i % 40) for i in range(9000)], pa.string_view())
    return pa.record_batch([text, text.cast(pa.binary_view())], names=["text", "bytes"])


def streams():
    """A name and the batches that are written under it; all batches of a stream have one schema."""
    everything = list(columns())
    for name, column in everything:
        absent = pa.nulls(ROWS, column.type)
        batches = [_batch(name, column), _batch(name, column.slice(0, 0)), _batch(name, column.slice(5, 11))]
        # A null of a run-end encoded or union type is one of a child; there pyarrow makes what it can.
        batches.append(_batch(name, absent))
        yield name, batches
    wide = pa.record_batch([column for _, column in everything], names=[name for name, _ in everything])
    yield "everything", [wide, wide.slice(0, 0), wide.slice(7, 20)]
    yield "many_buffers", [_many_buffers()]
    yield "no_columns", [pa.record_batch([], schema=pa.schema([]))]
    yield "same_names", [pa.record_batch([pa.array([1]), pa.array(["x"])], names=["a", "a"])]
