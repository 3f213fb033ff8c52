"""pyarrow's capsules moved into bowstring, and bowstring's given to pyarrow, for every type of pyarrow.

A capsule whose struct was moved out destroys nothing; one that nobody took lets go of its struct, once.
"""

import ctypes
from ctypes import byref

import pyarrow as pa
import pytest

import all_types
import bowstring_ctypes as bs
import capsules
import support
from bowstring_ctypes import INVALID_DATA, BowstringError, call, lib, live_counts, out
from capsules import ARRAY, DEVICE_ARRAY, SCHEMA, DeviceProducer, HostProducer, SchemaProducer

COLUMNS = dict(all_types.columns())
WINDOWS = ((0, None), (5, 11), (0, 0), (36, 1))
METHODS = {ARRAY: "__arrow_c_array__", DEVICE_ARRAY: "__arrow_c_device_array__"}
PRODUCERS = {ARRAY: HostProducer, DEVICE_ARRAY: DeviceProducer}


class HostHolder:
    """Hands out capsules that were made before."""

    def __init__(self, pair):
        self._pair = pair

    def __arrow_c_array__(self, requested_schema=None):
        return self._pair


class DeviceHolder(HostHolder):
    """The same, for device arrays."""

    __arrow_c_array__ = None

    def __arrow_c_device_array__(self, requested_schema=None, **_):
        return self._pair


HOLDERS = {ARRAY: HostHolder, DEVICE_ARRAY: DeviceHolder}


def from_capsules(data, name):
    """A handle on what pyarrow's capsules hold."""
    return capsules.taken(getattr(data, METHODS[name])(), name)


def each(check):
    """Runs a check on every column, in every window and through both kinds of arrays; returns how often."""
    done = 0
    for key, column in COLUMNS.items():
        for offset, length in WINDOWS:
            for name in METHODS:
                try:
                    check(column.slice(offset, length), name)
                except Exception as error:
                    error.add_note(f"column {key}, {length} from {offset}, {name.decode()}")
                    raise
                done += 1
    return done


def same(found, expected):
    found.validate(full=True)
    assert found.type == expected.type and found.equals(expected)


def test_out_of_pyarrows_capsules():
    """By pointer, after which pyarrow's own destructors find released structs."""
    def check(column, name):
        handle = from_capsules(column, name)
        same(support.to_pyarrow(*support.exported(handle), pa.Array), column)
        support.release(handle)

    support.figure("arrays out of pyarrow's capsules", each(check), 560)


def test_into_pyarrow_by_our_capsules():
    """pyarrow takes each struct; the capsules are destroyed empty."""
    def check(column, name):
        handle = from_capsules(column, name)
        before = capsules.counts()
        producer = PRODUCERS[name](handle)
        found = pa.array(producer)
        support.release(handle)
        assert producer.requested == [None]
        assert [now - then for now, then in zip(capsules.counts(), before)] == [2, 2, 0]
        same(found, column)

    support.figure("arrays into pyarrow by our capsules", each(check), 560)


def test_through_pyarrows_own_capsules():
    """Our structs are moved into capsules that pyarrow made, and pyarrow takes or destroys them."""
    def check(column, name):
        handle = from_capsules(column, name)
        for is_taken in (True, False):
            pair = getattr(pa.array([1, 2]), METHODS[name])()
            for capsule, kind in zip(pair, (SCHEMA, name)):
                held = capsules.struct_in(capsule, kind)
                getattr(lib, f"bowstring_{capsules.FUNCTIONS[kind]}_release")(byref(held))
            array, schema = (capsules.struct_in(pair[1], name), capsules.struct_in(pair[0], SCHEMA))
            if name == ARRAY:
                call("array_export_host", handle, None, byref(array), byref(schema))
            else:
                call("array_export", handle, byref(array), byref(schema))
            if is_taken:
                same(pa.array(HOLDERS[name](pair)), column)
                assert not capsules.is_live(array) and not capsules.is_live(schema)
            del array, schema, pair, capsule
        support.release(handle)
        assert support.all_gone()

    support.figure("arrays through pyarrow's own capsules", each(check), 560)


def test_record_batches():
    """All types beside each other, with metadata, whole and sliced."""
    schema = pa.schema(
        [pa.field(key, column.type, metadata={"of": key}) for key, column in COLUMNS.items()], {"schema": "né", "": ""}
    )
    whole = pa.record_batch(list(COLUMNS.values()), schema=schema)
    rows = 0
    for offset, length in WINDOWS:
        batch = whole.slice(offset, length)
        for name in METHODS:
            handle = from_capsules(batch, name)
            column = pa.array(PRODUCERS[name](handle))
            for made in (pa.record_batch(PRODUCERS[name](handle)), pa.RecordBatch.from_struct_array(column)):
                made.validate(full=True)
                assert made.equals(batch) and made.schema.equals(schema.with_metadata(made.schema.metadata), True)
                rows += made.num_rows
            table = pa.table(pa.record_batch(PRODUCERS[name](handle)))
            assert table.schema.equals(schema, check_metadata=True)
            support.release(handle)
            del table, made, column
            # What pyarrow sliced, bowstring slices as well.
            if length == 11:
                handle = from_capsules(whole, name)
                part = out("array_slice", handle, offset, length)
                support.release(handle)
                assert pa.record_batch(PRODUCERS[name](part)).equals(batch)
                support.release(part)
    support.figure("rows of every type through capsules", rows, 190)


def kinds():
    """Types, fields and schemas of pyarrow."""
    for key, column in COLUMNS.items():
        yield column.type
        nullable = pa.types.is_null(column.type)
        yield pa.field(f"{key} é", column.type, nullable=nullable, metadata={"k": "v", "": ""})
    yield pa.schema([pa.field(key, column.type) for key, column in COLUMNS.items()], {"of": "all"})
    yield pa.schema([])


def test_schemas():
    """There, back, there again; the schema's capsule is taken by pointer and ours by pyarrow."""
    done = 0
    for kind in kinds():
        capsule = kind.__arrow_c_schema__()
        assert capsules.name_of(capsule) == SCHEMA
        held = capsules.struct_in(capsule, SCHEMA)
        handle = out("type_import", byref(held))
        assert not capsules.is_live(held)
        del held, capsule
        before = capsules.counts()
        producer = SchemaProducer(handle)
        if isinstance(kind, pa.Schema):
            assert pa.schema(producer).equals(kind, check_metadata=True)
        elif isinstance(kind, pa.Field):
            assert pa.field(producer).equals(kind, check_metadata=True)
        else:
            assert pa.field(producer).type == kind
        assert [now - then for now, then in zip(capsules.counts(), before)] == [1, 1, 0]
        lib.bowstring_type_release(handle)
        assert support.all_gone()
        done += 1
    support.figure("types, fields and schemas through capsules", done, 140)


@pytest.mark.parametrize("name", METHODS)
def test_names_are_what_consumers_ask_for(name):
    ours = PRODUCERS[name](handle := support.imported(pa.array([1, None])))
    for producer in (pa.array([1, None]), pa.record_batch({"a": ["x"]}), ours):
        pair = getattr(producer, METHODS[name])()
        assert [capsules.name_of(capsule) for capsule in pair] == [SCHEMA, name]
        for capsule, right in zip(pair, (SCHEMA, name)):
            for wrong in {SCHEMA, ARRAY, DEVICE_ARRAY} - {right}:
                with pytest.raises(ValueError):
                    capsules.struct_in(capsule, wrong)
        del capsule
    support.release(handle)


@pytest.mark.parametrize("name", METHODS)
def test_capsules_that_nobody_takes(name):
    """pyarrow's let go of pyarrow's memory, ours of ours; each once."""
    before = pa.total_allocated_bytes()
    column = pa.array(["a text of some length"] * 1000, pa.string_view())
    size = pa.total_allocated_bytes() - before
    pair = getattr(column, METHODS[name])()
    del column
    # The export adds the sizes of variadic buffers.
    assert 0 < size <= pa.total_allocated_bytes() - before
    del pair
    assert pa.total_allocated_bytes() == before

    handle = support.imported(pa.array(["a text of some length"] * 1000))
    counted = capsules.counts()
    pair = getattr(PRODUCERS[name](handle), METHODS[name])()
    support.release(handle)
    assert live_counts()["blocks"] == 2 and pa.total_allocated_bytes() > before
    del pair
    assert support.all_gone() and pa.total_allocated_bytes() == before
    assert [now - then for now, then in zip(capsules.counts(), counted)] == [2, 0, 2]


@pytest.mark.parametrize("name", METHODS)
def test_what_was_moved_out_outlives_its_capsule(name):
    before = pa.total_allocated_bytes()
    column = pa.array(list(range(1000)), pa.int64())
    expected = column.to_pylist()
    pair = getattr(column, METHODS[name])()
    handle = capsules.taken(pair, name)
    del pair, column
    assert pa.total_allocated_bytes() > before
    child = pa.array(PRODUCERS[name](handle))
    support.release(handle)
    assert child.to_pylist() == expected and pa.total_allocated_bytes() > before
    del child
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("name", METHODS)
def test_a_refused_import_leaves_the_capsules_full(name):
    """And they are taken afterwards, or let go of what they hold."""
    column = pa.array([1, 2, 3])
    schema, array = getattr(column, METHODS[name])()
    held = capsules.struct_in(array, name)
    inner = held.array if name == DEVICE_ARRAY else held
    function = "array_import" if name == DEVICE_ARRAY else "array_import_host"
    inner.n_buffers = 1
    with pytest.raises(BowstringError) as caught:
        out(function, byref(held), byref(capsules.struct_in(schema, SCHEMA)))
    assert (caught.value.status, caught.value.rule) == (INVALID_DATA, "A3")
    assert capsules.is_live(held) and capsules.is_live(capsules.struct_in(schema, SCHEMA))
    inner.n_buffers = 2
    handle = capsules.taken((schema, array), name)
    assert pa.array(PRODUCERS[name](handle)).equals(column)
    support.release(handle)
    # A second attempt finds what was moved out.
    with pytest.raises(BowstringError) as caught:
        out(function, byref(held), byref(capsules.struct_in(schema, SCHEMA)))
    assert caught.value.status == bs.RELEASED


def test_each_call_gives_capsules_of_its_own():
    """One object may be read any number of times."""
    column = pa.array(["x", None, "yz"])
    handle = support.imported(column)
    producer = DeviceProducer(handle)
    assert all(pa.array(producer).equals(column) for _ in range(5))
    assert ctypes.sizeof(bs.ArrowDeviceArray) == 128 and len(producer.requested) == 5
    support.release(handle)
