"""The kinds of cases that pyarrow tests of its own capsules, asked of ours: names, single use, releases, errors."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref

import pyarrow as pa
import pytest

import bowstring
from matrix.cases import cases

_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
CASES = {case.name: case.array for case in cases()}


class Capsules:
    """A producer that hands out the same capsules whenever it is asked."""

    def __init__(self, schema, array):
        self.schema, self.array = schema, array

    def __arrow_c_array__(self, requested_schema=None):
        return self.schema, self.array


class DeviceCapsules(Capsules):
    """The same with the device interface alone."""

    __arrow_c_array__ = None

    def __arrow_c_device_array__(self, requested_schema=None, **kwargs):
        return self.schema, self.array


def owned_array(count=4):
    """An array over memory with an owner, and a way to see whether the owner is still there."""

    class Owner:
        pass

    numbers, owner = (ctypes.c_int32 * count)(*range(count)), Owner()
    owner.numbers = numbers
    data = bowstring.Buffer.from_address(ctypes.addressof(numbers), 4 * count, owner)
    array = bowstring.from_buffers("int32", count, [None, data])
    return array, weakref.ref(owner)


def test_names():
    array, _ = owned_array()
    stream = bowstring.stream([array])
    assert _name(array.type.__arrow_c_schema__()) == b"arrow_schema"
    assert _name(array.__arrow_c_schema__()) == b"arrow_schema"
    assert [_name(one) for one in array.__arrow_c_array__()] == [b"arrow_schema", b"arrow_array"]
    assert [_name(one) for one in array.__arrow_c_device_array__()] == [b"arrow_schema", b"arrow_device_array"]
    assert _name(stream.__arrow_c_stream__()) == b"arrow_array_stream"
    assert _name(bowstring.stream([array]).__arrow_c_device_stream__()) == b"arrow_device_array_stream"


def test_schemas_go_round():
    for name, array in CASES.items():
        field = pa.field("f", array.type, nullable=name == "null", metadata={b"key": b"value"})
        ours = bowstring.Type(field)
        assert pa.field(ours).equals(field, check_metadata=True), name
        assert bowstring.Type(array.type).equals(ours, names=False, metadata=False, nullable=False), name
    schema = pa.schema([pa.field("a", pa.int32()), pa.field("b", pa.string())], metadata={"of": "the whole"})
    assert pa.schema(bowstring.Type(schema)).equals(schema, check_metadata=True)


@pytest.mark.parametrize("name", list(CASES))
def test_arrays_go_round(name):
    whole = CASES[name]
    for array in (whole, whole[1:], whole[:1], whole[1:2], whole[:0], whole[len(whole):]):
        for take in (bowstring.array, lambda one: bowstring.array(one, via="__arrow_c_array__")):
            ours = take(array)
            assert len(ours) == len(array)
            back = pa.array(ours)
            back.validate(full=True)
            assert back.type == array.type and back.equals(array), (name, array)
            assert pa.array(Capsules(*ours.__arrow_c_array__())).equals(array)


def test_batches_and_tables_go_round():
    arrays = [array[:2] for array in CASES.values()]
    batch = pa.RecordBatch.from_arrays(arrays, list(CASES))
    assert pa.record_batch(bowstring.array(batch)).equals(batch)
    sliced = batch[1:]
    assert pa.record_batch(bowstring.array(sliced)).equals(sliced)
    table = pa.Table.from_batches([batch, sliced, batch[:0]])
    assert pa.table(bowstring.stream(table)).equals(table)


@pytest.mark.parametrize("device", [False, True])
def test_a_capsule_gives_what_it_has_once(device):
    array, owner = owned_array()
    pair = array.__arrow_c_device_array__() if device else array.__arrow_c_array__()
    producer = DeviceCapsules(*pair) if device else Capsules(*pair)
    first = pa.array(producer)
    assert first.to_pylist() == [0, 1, 2, 3]
    with pytest.raises(pa.ArrowInvalid, match="released"):
        pa.array(producer)
    with pytest.raises((ValueError, TypeError), match="released"):
        bowstring.array(producer)
    del array, pair, producer
    assert first.to_pylist() == [0, 1, 2, 3] and owner() is not None
    del first
    assert owner() is None


def test_we_take_from_a_capsule_once():
    source = CASES["utf8"]
    producer = Capsules(*source.__arrow_c_array__())
    ours = bowstring.array(producer)
    with pytest.raises((ValueError, TypeError), match="released"):
        bowstring.array(producer)
    assert pa.array(ours).equals(source)


def test_a_stream_is_given_once():
    stream = bowstring.stream([owned_array()[0]])
    capsule = stream.__arrow_c_stream__()
    with pytest.raises(ValueError, match="handed on"):
        stream.read()
    with pytest.raises(ValueError, match="handed on"):
        stream.__arrow_c_stream__()
    assert _name(capsule) == b"arrow_array_stream"


@pytest.mark.parametrize("times", [1, 3])
def test_unused_capsules_let_go(times):
    array, owner = owned_array()
    capsules = [array.__arrow_c_array__() for _ in range(times)]
    capsules += [array.__arrow_c_device_array__() for _ in range(times)]
    streams = [bowstring.stream([array]).__arrow_c_stream__() for _ in range(times)]
    del array
    assert owner() is not None
    del capsules
    assert owner() is not None
    del streams
    assert owner() is None


def test_each_export_counts_for_itself():
    array, owner = owned_array()
    taken = [pa.array(array) for _ in range(5)]
    del array
    while taken:
        assert owner() is not None and taken[-1].to_pylist() == [0, 1, 2, 3]
        taken.pop()
    assert owner() is None


def test_requested_schemas_that_are_met():
    array = bowstring.array(CASES["utf8"])
    same = bowstring.Type("utf8").__arrow_c_schema__()
    assert pa.array(Capsules(*array.__arrow_c_array__(same))).type == pa.string()
    renamed = pa.field("another", pa.string(), nullable=False, metadata={"k": "v"}).__arrow_c_schema__()
    assert pa.array(Capsules(*array.__arrow_c_array__(renamed))).equals(CASES["utf8"])
    views = pa.array(Capsules(*array.__arrow_c_array__(bowstring.Type("utf8_view").__arrow_c_schema__())))
    assert views.type == pa.string_view() and views.to_pylist() == CASES["utf8"].to_pylist()
    back = bowstring.array(views).__arrow_c_device_array__(requested_schema=bowstring.Type("utf8").__arrow_c_schema__())
    assert pa.array(DeviceCapsules(*back)).equals(CASES["utf8"])


@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_stream__"])
def test_requested_schemas_that_cannot_be_met(method):
    array = bowstring.array(pa.record_batch({"a": [1, 2]}))
    wanted = bowstring.Type("struct<a: utf8>").__arrow_c_schema__()
    with pytest.raises(ValueError, match="int64.*utf8|utf8.*int64"):
        getattr(array, method)(wanted)
    # It was not used up, and neither was what asked.
    assert pa.record_batch(array).to_pydict() == {"a": [1, 2]}
    assert bowstring.Type(pa.schema([])) is not None and _name(wanted) == b"arrow_schema"


def test_we_ask_for_a_schema():
    source = CASES["utf8"]
    large = bowstring.array(source, "large_utf8")
    assert str(large.type).startswith("large_utf8") and pa.array(large).to_pylist() == source.to_pylist()
    with pytest.raises((ValueError, TypeError), match="utf8|string"):
        bowstring.array(source, "list<int32>")


def test_other_keywords_are_refused():
    array, _ = owned_array()
    assert array.__arrow_c_device_array__(None, future=None)
    with pytest.raises(NotImplementedError, match="future"):
        array.__arrow_c_device_array__(future=1)
    stream = bowstring.stream([array])
    with pytest.raises(NotImplementedError, match="future"):
        stream.__arrow_c_device_stream__(future=1)
    assert stream.read() is not None


def failing(batches, words):
    """Batches, and then an error."""
    yield from batches
    raise RuntimeError(words)


def test_a_producer_that_raises():
    batch = pa.record_batch({"a": [1, 2]})
    reader = pa.RecordBatchReader.from_batches(batch.schema, failing([batch, batch], "the third batch is gone"))
    stream = bowstring.stream(reader)
    assert len(stream.read()) == 2 and len(stream.read()) == 2
    for _ in range(2):
        with pytest.raises(bowstring.BowstringError, match="the third batch is gone"):
            stream.read()


def test_a_producer_that_raises_behind_us():
    batch = pa.record_batch({"a": [1, 2]})
    reader = pa.RecordBatchReader.from_batches(batch.schema, failing([batch], "the second batch is gone"))
    through = pa.RecordBatchReader.from_stream(bowstring.stream(reader))
    assert through.read_next_batch().equals(batch)
    for _ in range(2):
        with pytest.raises((OSError, ValueError, pa.ArrowException), match="the second batch is gone"):
            through.read_next_batch()


def test_an_iterator_of_ours_that_raises():
    batch = pa.record_batch({"a": [1, 2]})
    stream = bowstring.stream(failing([batch], "no more of these"), batch.schema)
    through = pa.RecordBatchReader.from_stream(stream)
    assert through.read_next_batch().equals(batch)
    with pytest.raises((OSError, ValueError, pa.ArrowException, RuntimeError), match="no more of these"):
        through.read_next_batch()


def test_the_end_comes_again_and_again():
    batch = pa.record_batch({"a": [1, 2]})
    through = pa.RecordBatchReader.from_stream(bowstring.stream([batch, batch]))
    assert through.schema == batch.schema and len(list(through)) == 2
    for _ in range(3):
        with pytest.raises(StopIteration):
            through.read_next_batch()
    assert pa.RecordBatchReader.from_stream(bowstring.stream([batch[:0]])).read_all().num_rows == 0


def test_capsules_that_are_none_of_ours():
    schema, array = CASES["int64"].__arrow_c_array__()
    for producer in (Capsules(array, schema), Capsules(schema, None), Capsules(1, 2), Capsules(array, array)):
        with pytest.raises((TypeError, ValueError), match="capsule"):
            bowstring.array(producer)
    # They were left alone.
    assert bowstring.array(Capsules(schema, array)).null_count == 0


@pytest.mark.parametrize("way", ["array", "batch", "stream", "refused"])
def test_a_thousand_rounds_leave_nothing(way):
    batch = pa.record_batch({"a": [1, None, 3], "s": ["x", "yy", None]})
    wrong = bowstring.Type("int8").__arrow_c_schema__()

    def once():
        if way == "array":
            pa.array(bowstring.array(CASES["list<struct>"]))
        elif way == "batch":
            pa.record_batch(bowstring.array(batch)).slice(1)
        elif way == "stream":
            pa.table(bowstring.stream(pa.Table.from_batches([batch, batch])))
        else:
            with pytest.raises(ValueError):
                bowstring.array(batch).__arrow_c_array__(wrong)

    for _ in range(10):
        once()
    gc.collect()

    def held():
        # Some references to None come and go.
        return pa.total_allocated_bytes(), bowstring.live_counts(), sys.getrefcount(batch), sys.getrefcount(None) // 1000

    before = held()
    blocks = sys.getallocatedblocks()
    for _ in range(1000):
        once()
    gc.collect()
    assert held() == before
    # The interpreter's own lists may have grown, but not by something for each round.
    assert sys.getallocatedblocks() - blocks < 500
