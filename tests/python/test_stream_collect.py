"""All arrays of a stream as one: every type, every way in which arrays can lie, and what cannot be put together."""

import ctypes
import random
from ctypes import addressof, byref, c_void_p

import pyarrow as pa
import pytest

import all_types
import bowstring_ctypes as bs
import slow_builder
import streams
import support
from bowstring_ctypes import BowstringError, call, lib, out
from raw import Node, Raw, i8, i16, i32, i64, in_child, u8
from slow_builder import build, draw, draw_kind
from streams import Fails, Placed, Producer
from test_properties import expected, given, type_of
from test_stream_import import BATCHES, SCHEMA, refused

CASES, PART = 1500, 250
_done = {"cases": 0, "refused": 0, "arrays": 0, "formats": set()}


def collected(stream, sync=None):
    """The one array; the stream is taken."""
    handle = out("stream_collect", byref(stream), sync)
    assert not stream.value
    return handle


def of_handles(handles, kind=None):
    """A stream of array handles, which are let go."""
    listed = (c_void_p * max(len(handles), 1))(*[one.value for one in handles])
    try:
        return out("stream_from_arrays", kind, listed, len(handles))
    finally:
        support.release(*handles)


def checked(handle, kind=pa.Array):
    """An array that passes the library's own check and pyarrow's, as pyarrow data."""
    call("array_validate", handle, None)
    data = streams.as_pyarrow(handle, kind)
    support.validate(data)
    return data


def handle_of(built, kind, owners, rng):
    """A handle on a random array, and its values: perhaps only some of them."""
    nodes, entries = given(built, owners, rng)
    array, schema = support.rebuilt(kind, nodes, entries)
    handle = out("array_import", byref(array), byref(schema))
    values = expected(built)
    if rng.random() < 0.5 and values:
        start = rng.randrange(len(values))
        length = rng.randint(0, len(values) - start)
        part = out("array_slice", handle, start, length)
        support.release(handle)
        handle, values = part, values[start : start + length]
    return handle, values


def check_case(seed):
    rng = random.Random(seed)
    drawn = draw_kind(rng)
    kind, owners = type_of(drawn), support.Owners()
    handles, values = [], []
    for _ in range(rng.choice((2, 2, 3, 5))):
        built = build(drawn, [draw(drawn, rng) for _ in range(rng.choice((0, 1, 2, 5, 13)))], rng)
        handle, own = handle_of(built, kind, owners, rng)
        handles.append(handle)
        values += own
    count = len(handles)
    stream = of_handles(handles, kind)
    lib.bowstring_type_release(kind)
    try:
        handle = collected(stream)
    except BowstringError as error:
        # Small indices into many dictionaries: there may be more values than they can count.
        assert error.status == bs.UNSUPPORTED and "dictionaries of all arrays" in error.message
        streams.release(stream)
        _done["refused"] += 1
    else:
        assert checked(handle).to_pylist() == values
    assert support.all_gone()
    _done["cases"] += 1
    _done["arrays"] += count
    _done["formats"] |= {part.kind.branch or part.kind.format for part in built.flat()}


@pytest.mark.parametrize("start", range(0, CASES, PART))
def test_random_arrays(start):
    for seed in range(start, start + PART):
        try:
            check_case(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_figures():
    """Runs after the random arrays; alone it has nothing to show."""
    if not _done["cases"]:
        pytest.fail("run the whole file")
    support.figure("random streams put together", _done["cases"], CASES)
    assert _done["refused"] < CASES / 100
    support.figure("their arrays", _done["arrays"], 4000)
    assert _done["formats"] == {*slow_builder.LEAVES, *slow_builder.BRANCHES}


def is_same(found, wanted):
    """Equal values, whatever dictionaries and runs they are kept in."""
    assert found.num_rows == wanted.num_rows
    whole = pa.Table.from_batches([found])
    for i, name in enumerate(wanted.schema.names):
        one, other = whole.column(i), wanted.column(i)
        # pyarrow compares neither dictionaries of other values nor floats that are no numbers; texts it does not have for all.
        assert one.equals(other) or [str(value) for value in one] == [str(value) for value in other], name


def test_every_type():
    n = 0
    for name, batches in all_types.streams():
        table = pa.Table.from_batches(batches)
        for some in (batches, batches[-1:] * 2, [batch.slice(batch.num_rows // 3) for batch in batches]):
            stream = streams.from_arrays(some)
            handle = collected(stream)
            found = checked(handle, pa.RecordBatch)
            is_same(found, pa.Table.from_batches(some))
            assert found.schema.equals(table.schema, check_metadata=True), name
            n += 1
    support.figure("streams of every type put together", n, 150)


def test_no_arrays_make_an_empty_one():
    n = 0
    for name, column in all_types.columns():
        kind = support.type_from(pa.field("x", column.type))
        found = checked(collected(of_handles([], kind)))
        assert len(found) == 0 and found.type == column.type, name
        lib.bowstring_type_release(kind)
        n += 1
    support.figure("types without arrays", n, 60)


def test_one_array_is_given_as_it_is():
    handle = support.imported(BATCHES[0])
    before = [info.data for info in support.buffer_infos(handle)]
    one = collected(of_handles([handle]))
    assert [info.data for info in support.buffer_infos(one)] == before
    support.release(one)
    # On any device.
    producer = Producer([Placed(pa.array([1]), 2)], pa.int64(), device_type=2)
    one = collected(producer.imported())
    device = bs.Device()
    call("array_device", one, byref(device), None)
    assert device.type == 2
    support.release(one)
    producer.done()


def encoded(indices, words, index=pa.int8()):
    return pa.DictionaryArray.from_arrays(pa.array(indices, index), pa.array(words))


def dictionary_of(handle):
    """The dictionary of an array."""
    values = out("array_dictionary", handle)
    return values


def test_dictionaries_that_are_the_same_memory_are_kept():
    whole = encoded([0, 1, None, 1], ["a", "b"])
    parent = support.imported(whole)
    parts = [out("array_slice", parent, 1, 2), out("array_slice", parent, 2, 2)]
    first = [info.data for info in support.buffer_infos(parent)][2:]
    one = collected(of_handles(parts))
    assert [info.data for info in support.buffer_infos(one)][2:] == first, "no dictionary was copied"
    support.release(parent)
    assert checked(one).to_pylist() == ["b", None, None, "b"]


def test_dictionaries_that_say_the_same_are_kept():
    one = collected(streams.from_arrays([encoded([0, 1], ["a", "b"]), encoded([1, None], ["a", "b"])]))
    found = checked(one)
    assert found.to_pylist() == ["a", "b", "b", None] and found.dictionary.to_pylist() == ["a", "b"]


def test_dictionaries_that_differ_are_put_one_behind_the_other():
    parts = [
        encoded([0, 1], ["a", "b"]), encoded([1, 0], ["b", "c"]), encoded([], ["never"]), encoded([1], ["a", "b"]),
        encoded([0, None], ["c"]),
    ]
    found = checked(collected(streams.from_arrays(parts)))
    assert found.to_pylist() == ["a", "b", "c", "b", "b", "c", None]
    assert found.dictionary.to_pylist() == ["a", "b", "b", "c", "c"]
    assert found.indices.to_pylist() == [0, 1, 3, 2, 1, 4, None]


@pytest.mark.parametrize(("index", "most"), [(pa.int8(), 127), (pa.uint8(), 255)])
def test_indices_that_are_too_large(index, most):
    words = [str(i) for i in range(most)]
    fits = [encoded([most - 1], words, index), encoded([0], ["x"], index)]
    assert checked(collected(streams.from_arrays(fits))).to_pylist() == [str(most - 1), "x"]
    stream = streams.from_arrays([*fits, encoded([0, 1], ["y", "z"], index)])
    error = refused(collected, stream)
    assert error.status == bs.UNSUPPORTED and f"up to {most}" in error.message and error.path == "$"
    # The arrays are gone, and the stream says so.
    assert stream.value and refused(streams.next_of, stream).message == error.message
    streams.release(stream)


def imported(node):
    """A handle on a vector, and the vector."""
    made = Raw(node)
    return out("array_import", byref(made.device_array), byref(made.schema)), made


def putting_together(status, rule, path, row, words, *nodes):
    made = [imported(node) for node in nodes]
    stream = of_handles([handle for handle, _ in made])
    error = refused(collected, stream)
    assert (error.status, error.rule, error.path, error.row) == (status, rule, path, row), error
    assert words in error.message, error.message
    streams.release(stream)


def ints(*values, **members):
    return Node("i", len(values), 0, 0, [None, i32(*values)], **members)


def text(offsets, data=b"abcdef"):
    return Node("u", len(offsets) - 1, 0, 0, [None, i32(*offsets), data])


def listed(offsets, child):
    return Node("+l", len(offsets) - 1, 0, 0, [None, i32(*offsets)], [child])


def list_view(offsets, sizes, child):
    return Node("+vl", len(offsets), 0, 0, [None, i32(*offsets), i32(*sizes)], [child])


def view(length, which):
    return i32(length) + b"abcd" + i32(which, 0)


def viewed(*views):
    return Node("vu", len(views), 0, 0, [None, b"".join(views), b"abcdefghijklmnopqrstuvwxyz", i64(26)])


def coded(*indices):
    return Node("c", len(indices), 0, 0, [None, i8(*indices)], dictionary=ints(1, 2))


def union(ids, offsets):
    return Node("+ud:5,7", len(ids), 0, 0, [i8(*ids), i32(*offsets)], [ints(1, 2), ints(3)])


def runs(length, ends, offset=0, format_="i", pack=i32):
    children = [Node(format_, len(ends), 0, 0, [None, pack(*ends)], flags=0), ints(*range(len(ends)))]
    return Node("+r", length, 0, offset, [], children)


BROKEN = {
    "offsets that fall": ("B1", "$", 1, "at least 4", text((0, 4, 2, 6)), text((0, 1))),
    "offsets below 0": ("B1", "$", -1, "-3 to 4", text((-3, 4)), text((0, 1))),
    "a last offset below the first": ("B1", "$", -1, "4 to 2", text((4, 2)), text((0, 1))),
    "a list beyond its values": ("B1", "$", -1, "up to the values' 2", listed((0, 3), ints(1, 2)), listed((0, 1), ints(1))),
    "a list view beyond its values": (
        "B3", "$", 1, "offset 1, size 2", list_view((0, 1), (1, 2), ints(1, 2)), list_view((0,), (1,), ints(1))
    ),
    "a list view below its values": (
        "B3", "$", 0, "offset -1", list_view((-1,), (1,), ints(1, 2)), list_view((0,), (1,), ints(1))
    ),
    "a view of a buffer that is not there": ("B2", "$", 1, "found 20 and 1", viewed(view(20, 0), view(20, 1)), viewed()),
    "a view of a buffer below 0": ("B2", "$", 0, "found 20 and -1", viewed(view(20, -1)), viewed()),
    "a view of less than nothing": ("B2", "$", 0, "found -1", viewed(view(-1, 0)), viewed()),
    "an index beyond the dictionary": ("B6", "$", 2, "below 2, found 2", coded(0, 1, 2), coded(0)),
    "an index below 0": ("B6", "$", 0, "found -1", coded(-1), coded(0)),
    "a type id that is none": ("B5", "$", 1, "found 6", union((5, 6), (0, 0)), union((5,), (0,))),
    "an offset beyond a union's child": ("B5", "$", 2, "below 1, found 1", union((5, 7, 7), (0, 0, 1)), union((5,), (0,))),
    "an offset below a union's child": ("B5", "$", 0, "found -1", union((7,), (-1,)), union((5,), (0,))),
    "run ends that end too early": ("B7", "$", -1, "for each of 5 rows", runs(5, (2, 4)), runs(1, (1,))),
    "run ends that fall": ("B7", '$.""', 1, "above 3", runs(5, (3, 2, 5)), runs(1, (1,))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_leads_nowhere(name):
    rule, path, row, words, *nodes = BROKEN[name]
    for i, order in enumerate((nodes, nodes[::-1])):
        in_child(putting_together, bs.INVALID_DATA, rule, path, row, words, *order)
        in_child(putting_together, bs.INVALID_DATA, rule, path, row, f"in array {i}", *order)


def test_more_than_can_be_counted():
    half = 2**30
    nothing = Node("n", half, half)
    lists = [listed((0, half), nothing)] * 2
    in_child(putting_together, bs.UNSUPPORTED, "", "$", -1, "values of all arrays together", *lists)
    views = [list_view((0,), (half,), nothing)] * 2
    in_child(putting_together, bs.UNSUPPORTED, "", "$", -1, "values of all arrays together", *views)
    short = [runs(20000, (20000,), format_="s", pack=i16)] * 2
    in_child(putting_together, bs.UNSUPPORTED, "", "$", -1, "rows of all arrays together", *short)


def test_runs_are_cut_to_the_rows():
    def values(node):
        handle, _ = imported(node)
        return handle

    def look():
        parts = [values(runs(3, (2, 6, 9), offset=1)), values(runs(0, ())), values(runs(4, (2, 6, 9), offset=5))]
        found = checked(collected(of_handles(parts)))
        assert found.to_pylist() == [0, 1, 1, 1, 2, 2, 2]
        assert found.run_ends.to_pylist() == [1, 3, 4, 7]

    in_child(look)


def test_memory_of_other_devices():
    def stream(*events):
        steps = [Placed(pa.array([1]), 2, 0, event) for event in events]
        return Producer(steps, pa.int64(), device_type=2).imported()

    event = ctypes.c_size_t(5)
    for made, status in ((stream(None, None), bs.UNSUPPORTED), (stream(addressof(event), None), bs.SYNC_REQUIRED)):
        error = refused(collected, made)
        assert error.status == status and made.value
        streams.release(made)


def test_a_producer_that_fails():
    producer = Producer([BATCHES[0], Fails(5, b"stop"), BATCHES[1]], SCHEMA)
    stream = producer.imported()
    for _ in range(2):
        error = refused(collected, stream)
        assert (error.status, error.batch) == (bs.CALLBACK_ERROR, 1) and stream.value
    assert producer.calls.count("get_next") == 2
    streams.release(stream)
    producer.done()
    stream = streams.from_arrays(BATCHES)
    error = refused(collected, stream, bs.Sync(9))
    assert error.status == bs.INVALID_ARGUMENT
    # It was not asked at all.
    assert streams.as_pyarrow(collected(stream)) == pa.Table.from_batches(BATCHES).combine_chunks().to_batches()[0]


def test_views_share_their_bytes():
    whole = pa.array(["a" * 20, "b" * 30, None, "short"], pa.string_view())
    handle = support.imported(whole)
    parts = [out("array_slice", handle, 0, 2), out("array_slice", handle, 1, 3)]
    shared = [info.data for info in support.buffer_infos(handle) if info.role == bs.VARIADIC]
    one = collected(of_handles(parts))
    assert [info.data for info in support.buffer_infos(one) if info.role == bs.VARIADIC] == shared
    support.release(handle)
    assert checked(one).to_pylist() == ["a" * 20, "b" * 30, "b" * 30, None, "short"]
