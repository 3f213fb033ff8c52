"""Pickles of arrays, buffers and types: every type and window, in and out of band; what is copied and kept alive."""

import copy
import gc
import mmap
import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

import pyarrow as pa
import pytest
from moving_cases import NO_CUDA_SIM, NO_GOLDEN, columns, golden_files, has_cuda_sim, on, ours, theirs, with_cuda
from pickle_worker import alive, described, doubled

import bowstring
from bowstring import Buffer, Stream, Type
from bowstring._pickle import array_of, buffer_of

EVERY_TYPE = dict(columns())
WINDOWS = [(0, 37), (1, 36), (3, 2), (9, 21), (8, 3), (36, 1), (0, 5), (0, 0), (4, 0), (37, 0)]


def apart(value):
    """A pickle by protocol 5, and its buffers out of band."""
    buffers = []
    return pickle.dumps(value, protocol=5, buffer_callback=buffers.append), buffers


def again(value):
    """A value pickled with its buffers out of band, and unpickled on the same memory."""
    data, buffers = apart(value)
    return pickle.loads(data, buffers=buffers)


def size_of(buffers):
    return sum(buffer.raw().nbytes for buffer in buffers)


def addresses(array):
    """Where the buffers of an array are, without those that have no bytes or that the library built."""
    views = [array.buffer_view(index) for index in range(array._counts()[1])]
    return {view.ptr for view in views if view.ptr and view.role != "variadic_sizes" and view.bufsize != 0}


def test_every_type_and_window():
    done = 0
    for name, whole in EVERY_TYPE.items():
        for offset, length in WINDOWS:
            expected = whole.slice(offset, length)
            for array in (ours(expected), ours(whole).slice(offset, length)):
                data, buffers = apart(array)
                for moved in [pickle.loads(data, buffers=buffers), pickle.loads(pickle.dumps(array, 2 + done % 4))]:
                    assert moved.source == "pickle" and moved.type == array.type
                    made = theirs(moved)
                    assert made.type == expected.type and made.equals(expected), (name, offset, length)
                    done += 1
                # As pyarrow counts, one offset more for each node, and a byte more for each bitmap.
                assert size_of(buffers) <= expected.nbytes + 9 * array._counts()[0], (name, offset, length)
                assert length or size_of(buffers) == 0 or array.dictionary is not None, name
    assert done == 40 * len(EVERY_TYPE) >= 2800, done


def within(child):
    """Arrays of which windows show part of a child, through every layout that leads to one."""
    rows = len(child)
    four = pa.array([1, 4, 9, rows - 2, rows], pa.int32())
    yield pa.ListArray.from_arrays(four, child)
    pairs = pa.FixedSizeListArray.from_arrays(child, 2)
    yield pa.LargeListArray.from_arrays(pa.array([0, 2, 5, 9, rows // 2]), pairs)
    structs = pa.StructArray.from_arrays(
        [pa.array(range(rows)), child], ["n", "c"], mask=pa.array([i % 5 == 2 for i in range(rows)])
    )
    yield pa.ListArray.from_arrays(four, structs)
    starts, sizes = pa.array([9, 0, 30, 2], pa.int32()), pa.array([3, 2, 6, 9], pa.int32())
    yield pa.ListViewArray.from_arrays(starts, sizes, child)
    ids = pa.array([i % 2 for i in range(rows)], pa.int8())
    yield pa.ListArray.from_arrays(four, pa.UnionArray.from_sparse(ids, [child, pa.array(range(rows))]))
    halves = pa.array([i // 2 for i in range(rows)], pa.int32())
    yield pa.ListArray.from_arrays(four, pa.UnionArray.from_dense(ids, halves, [child, pa.array(range(rows))]))
    ends = pa.array(range(2, 2 * rows + 2, 2), pa.int32())
    if "run_end" not in str(child.type):
        yield pa.LargeListArray.from_arrays(
            pa.array([3, 8, 19, 40, 2 * rows]), pa.RunEndEncodedArray.from_arrays(ends, child)
        )


def test_windows_within_every_layout():
    done = 0
    for name, column in EVERY_TYPE.items():
        for whole in within(column.slice(1)):
            for offset, length in ((0, 4), (1, 2), (2, 2), (3, 1), (2, 0)):
                expected = whole.slice(offset, length)
                for array in (ours(expected), ours(whole)[offset : offset + length]):
                    data, buffers = apart(array)
                    made = theirs(pickle.loads(data, buffers=buffers))
                    assert made.equals(expected), (name, whole.type, offset, length)
                    done += 1
    assert done >= 60 * 6 * 10, done


def test_a_small_window_of_large_data_is_small():
    rows = 20_000
    text = [f"{i:050}" if i % 3 else "short" for i in range(rows)]
    for column in (
        pa.array(text),
        pa.array(text, pa.string_view()),
        pa.array([[value] * 2 for value in text], pa.list_view(pa.string_view())),
        pa.array([{"x": [[value]]} for value in text]),
        pa.UnionArray.from_dense(
            pa.array([i % 2 for i in range(rows)], pa.int8()),
            pa.array([i // 2 for i in range(rows)], pa.int32()),
            [pa.array(text[: rows // 2]), pa.array(text[: rows // 2])],
        ),
        pa.RunEndEncodedArray.from_arrays(pa.array(range(1, rows + 1), pa.int32()), pa.array(text)),
        pa.array([[value, None] for value in text], pa.list_(pa.string(), 2)),
        pa.array([[(value, i)] for i, value in enumerate(text)], pa.map_(pa.string(), pa.int64())),
    ):
        for offset in (0, 9_001, rows - 5):
            array = ours(column).slice(offset, 5)
            data, buffers = apart(array)
            assert len(data) < 1000 and size_of(buffers) < 2000, column.type
            assert theirs(pickle.loads(data, buffers=buffers)).equals(column.slice(offset, 5))


def test_bytes_are_not_copied():
    column = pa.array([{"n": i, "t": ["x" * (i % 40)], "v": b"y" * (i % 30)} for i in range(1000)], pa.struct(
        [("n", pa.int64()), ("t", pa.list_(pa.utf8())), ("v", pa.binary_view())]
    ))
    array = ours(column)
    data, buffers = apart(array)
    places = {buffer_of(buffer).ptr for buffer in buffers}
    assert places == addresses(array) and len(places) >= 6
    moved = pickle.loads(data, buffers=buffers)
    assert addresses(moved) == places
    # Of a window that starts elsewhere only offsets are made anew, and views whose bytes are cut.
    whole = {piece.ptr: piece.bufsize for piece in map(buffer_of, buffers)}
    _, buffers = apart(array[8:500])
    pieces = [buffer_of(buffer) for buffer in buffers]
    anew = [piece for piece in pieces if not any(a <= piece.ptr < a + size for a, size in whole.items())]
    assert [piece.bufsize for piece in anew] == [493 * 4, 492 * 4 + 4, 492 * 16] and len(pieces) == 6


def test_bytes_are_read_only_and_outlive_the_array():
    array = ours(pa.array([1, 2, 3]))
    data, buffers = apart(array)
    assert [buffer.raw().readonly for buffer in buffers] == [True]
    del array
    gc.collect()
    assert bytes(buffers[0]) == b"".join(i.to_bytes(8, "little") for i in (1, 2, 3))
    assert theirs(pickle.loads(data, buffers=buffers)).to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_unpickled_over_what_is_given(kind):
    column = pa.record_batch({"a": pa.array([1, None, 3]), "t": ["x", "yy", None]})
    data, buffers = apart(ours(column))
    given = [kind(bytes(buffer)) for buffer in buffers]
    moved = pickle.loads(data, buffers=given)
    for mine in given:
        assert buffer_of(mine).ptr in addresses(moved)
    assert theirs(moved).to_pylist() == column.to_pylist()
    if kind is bytearray:
        with pytest.raises(BufferError):
            given[0].append(1)
        del moved
        given[0].append(1)


def test_each_buffer_has_an_owner_of_its_own():
    class Bytes(bytearray):
        pass

    data, buffers = apart(ours(pa.record_batch({"a": [1, 2], "b": [3, 4]})))
    given = [Bytes(buffer) for buffer in buffers]
    counts = [sys.getrefcount(one) for one in given]
    moved = pickle.loads(data, buffers=given)
    assert all(sys.getrefcount(one) > count for one, count in zip(given, counts))
    kept = moved["b"].buffer(1)
    del moved
    gc.collect()
    assert sys.getrefcount(given[0]) == counts[0] and sys.getrefcount(given[1]) > counts[1]
    assert kept.read() == bytes(given[1])
    del kept
    assert sys.getrefcount(given[1]) == counts[1]


def test_over_mapped_and_shared_memory(tmp_path):
    column = pa.array([["é" * i] for i in range(50)])
    data, buffers = apart(ours(column))
    ends, at = [], 0
    for buffer in buffers:
        ends.append((at, at + buffer.raw().nbytes))
        at = (ends[-1][1] + 63) // 64 * 64
    file = tmp_path / "buffers"
    file.write_bytes(b"".join(bytes(b).ljust(-(-b.raw().nbytes // 64) * 64, b"\0") for b in buffers))
    with file.open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    moved = pickle.loads(data, buffers=[memoryview(mapped)[a:b] for a, b in ends])
    assert theirs(moved).equals(column)
    with pytest.raises(BufferError):
        mapped.close()
    del moved
    gc.collect()
    mapped.close()

    shared = shared_memory.SharedMemory(create=True, size=at + 64)
    try:
        for (a, b), buffer in zip(ends, buffers):
            shared.buf[a:b] = buffer.raw()
        moved = pickle.loads(data, buffers=[shared.buf[a:b] for a, b in ends])
        assert theirs(moved).equals(column)
        start = buffer_of(shared.buf).ptr
        assert all(start <= place < start + at for place in addresses(moved))
        del moved
        gc.collect()
    finally:
        shared.close()
        shared.unlink()


def test_memory_that_several_columns_share_is_taken_once():
    column = pa.array(range(1000))
    array = ours(pa.record_batch({"a": column, "b": column, "c": column}))
    data, buffers = apart(array)
    assert len(buffers) == 1 and size_of(buffers) == 8000
    moved = pickle.loads(data, buffers=buffers)
    assert len(addresses(moved)) == 1 and theirs(moved).to_pylist() == theirs(array).to_pylist()
    # One array that is there twice is one array again.
    first, second = again([array, array])
    assert first is second
    in_band = pickle.loads(pickle.dumps(array))
    assert len(addresses(in_band)) == 1


def test_types_keep_all():
    encoded = pa.dictionary(pa.int8(), pa.utf8(), ordered=True)
    inner = pa.field("x y", encoded, nullable=False, metadata={"k": "é", "": ""})
    schema = pa.schema([inner, pa.field("u", pa.uuid())], metadata={"a": "1"})
    kind = Type(schema)
    for protocol in range(2, 6):
        moved = pickle.loads(pickle.dumps(kind, protocol))
        assert moved == kind and pa.schema(moved).equals(schema, check_metadata=True)
    assert copy.copy(kind) == kind and copy.deepcopy(kind) == kind
    columns = [pa.array(["q"]).dictionary_encode().cast(encoded), pa.array([bytes(16)], pa.uuid())]
    array = ours(pa.record_batch(columns, schema))
    moved = again(array)
    assert moved.type == array.type and moved.type.metadata == {b"a": b"1"}
    assert moved["x y"].type.metadata == {b"k": "é".encode(), b"": b""}


def test_buffers():
    array = ours(pa.array([1, 2, 3]))
    buffer = array.buffer(1)
    data, buffers = apart(buffer)
    moved = pickle.loads(data, buffers=buffers)
    assert len(data) < 200 and moved.ptr == buffer.ptr and moved.bufsize == 24 and moved.device.is_cpu
    for protocol in (2, 4, 5):
        assert pickle.loads(pickle.dumps(buffer.slice(8, 8), protocol)).read() == (2).to_bytes(8, "little")
    empty = Buffer.from_address(0, 0, None)
    assert again(empty).bufsize == 0
    unknown = ours(pa.array(["x"])).buffer(2)
    assert unknown.bufsize == -1
    with pytest.raises(ValueError, match="slice it first"):
        pickle.dumps(unknown)
    assert again(unknown.slice(0, 1)).read() == b"x"


def test_streams_refuse():
    stream = Stream.from_arrays([ours(pa.record_batch({"a": [1]}))])
    for refused in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="gives each array once"):
            refused(stream)
    assert len(stream.collect()) == 1


def test_copies():
    array = ours(pa.array([["x"], None, ["y", "z"]]))[1:]
    assert copy.copy(array) is array
    deep = copy.deepcopy({"one": array, "same": array})
    assert deep["one"] is deep["same"] and deep["one"] is not array
    assert theirs(deep["one"]).to_pylist() == [None, ["y", "z"]]
    assert not addresses(deep["one"]) & addresses(array)
    buffer = array.buffer(1)
    assert copy.copy(buffer) is buffer
    assert copy.deepcopy(buffer).ptr != buffer.ptr and copy.deepcopy(buffer).read() == buffer.read()


def test_memory_that_nobody_can_read_says_so():
    array = ours(pa.array([1, 2, 3]))
    for device in ("rocm:0", "vulkan:1"):
        with pytest.raises(bowstring.Unsupported, match=device.partition(":")[0].upper()):
            pickle.dumps(on(device, array))
        with pytest.raises(bowstring.Unsupported):
            copy.deepcopy(on(device, array))


def packed(width, *numbers):
    return b"".join(number.to_bytes(width, "little", signed=True) for number in numbers)


def test_numbers_that_lead_outside_are_refused():
    two, three = ((2, 0, 3),), ((3, 0, 3),)
    for numbers in ((0, 2, -1, 5), (5, 9, 3, 9), (-4, 0, 1, 9)):
        broken = array_of(Type("utf8"), (three, (-1, 0, 1)), [packed(4, *numbers), b"x" * 9])[:2]
        with pytest.raises(bowstring.InvalidData, match="in order"):
            pickle.dumps(broken)
    with pytest.raises(bowstring.InvalidData, match="smaller"):
        pickle.dumps(array_of(Type("utf8"), (two, (-1, 0, 1)), [packed(4, 5, 4, 5), b"x" * 9]))
    union = Type("dense_union<a: int8, b: null>")
    for ids, offsets in (((0, 3), (0, 0)), ((0, 1), (0, -1))):
        nodes = ((2, 0, 2), (1, 0, 2), (1, 1, 0))
        broken = array_of(union, (nodes, (0, 1, -1, 2)), [packed(1, *ids), packed(4, *offsets), b"x"])[1:]
        with pytest.raises(bowstring.InvalidData, match="child of the union"):
            pickle.dumps(broken)
    long = (40).to_bytes(4, "little") + b"abcd" + packed(4, 7, 0)
    views = packed(4, 1) + b"a" + bytes(11) + long * 8
    places, nodes = (0, 1, 2, -1), ((9, -1, 4),)
    broken = array_of(Type("utf8_view"), (nodes, (-1, 0, 1, -1)), [views, b"x" * 100_000])[1:]
    with pytest.raises(bowstring.InvalidData, match="row 0.*view"):
        pickle.dumps(broken)
    # Below a null there may be anything.
    fine = array_of(Type("utf8_view"), (nodes, places), [b"\x01\x00", views, b"x" * 100_000])
    assert theirs(again(fine[0:8])).to_pylist() == ["a"] + [None] * 7
    runs = Type("run_end_encoded<int32, int8>")
    broken = array_of(runs, (((5, 0, 0), (2, 0, 2), (2, 0, 2)), (-1, 0, -1, 1)), [packed(4, 3, 5), b"xy"])
    assert theirs(again(broken[2:4])).to_pylist() == [120, 121]


def test_damaged_pickles_raise():
    kind, shape, *pieces = ours(pa.array(["x", "yy"])).__reduce_ex__(4)[1]
    rebuild = ours(pa.array([1])).__reduce_ex__(4)[0]
    assert theirs(rebuild(kind, shape, *pieces)).to_pylist() == ["x", "yy"]
    nodes, places = shape
    for damaged in (
        (kind, (((2, 0, 2),), places), *pieces),
        (kind, (((9, 0, 3),), places), *pieces),
        (kind, (nodes, (-1, 0)), *pieces),
        (kind, (nodes, places), pieces[0], pieces[1][:1]),
        (Type("list<utf8>"), shape, *pieces),
    ):
        with pytest.raises(bowstring.BowstringError):
            rebuild(*damaged)


def test_buffers_with_strides_are_refused():
    data, buffers = apart(ours(pa.array([1, 2], pa.int8())))
    with pytest.raises(BufferError, match="strides"):
        pickle.loads(data, buffers=[memoryview(b"abcd")[::2]])
    assert theirs(pickle.loads(data, buffers=buffers)).to_pylist() == [1, 2]


@pytest.mark.skipif(not has_cuda_sim(), reason=NO_CUDA_SIM)
def test_device_memory():
    with_cuda("cuda_worker.py", "moving")


def test_in_another_process():
    column = pa.array([[{"s": "é" * (i % 9), "n": None if i % 4 else i}] * (i % 3) for i in range(500)])
    array = ours(column)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        made = pool.submit(doubled, array[3:]).result(120)
        assert theirs(made["again"]).equals(column.slice(3)) and theirs(made["half"]).equals(column.slice(3, 248))
        assert pool.submit(described, array.type).result(60) == str(array.type)
        assert pool.submit(described, array.buffer(1).slice(0, 4)).result(60) == bytes(4)
        assert pool.submit(alive).result(60) == {}


@pytest.mark.skipif(not golden_files(), reason=NO_GOLDEN)
def test_golden_streams():
    done = 0
    for path in golden_files():
        for batch in pa.ipc.open_stream(path.read_bytes()):
            for expected in (batch, batch.slice(len(batch) // 3), batch.slice(1, 2)):
                array = ours(expected)
                for moved in (again(array), pickle.loads(pickle.dumps(array))):
                    assert moved.type == array.type, path.name
                    made = pa.RecordBatch.from_struct_array(theirs(moved))
                    assert made.equals(expected), path.name
                    done += 1
    assert done >= 250, f"expected 250 round trips, found {done}"
