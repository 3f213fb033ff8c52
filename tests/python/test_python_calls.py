"""The calls with the signatures of builtins: arguments, ownership, round trips and references."""

import ctypes
import sys
from ctypes import byref, c_void_p

import nanoarrow as na
import nanoarrow.device
import pyarrow as pa
import pytest

import all_types
import bowstring_ctypes as bs
import capsules
import python_api
import python_producer
import support
from bowstring_ctypes import DEVICE_UNAVAILABLE, INVALID_ARGUMENT, INVALID_DATA, RELEASED, lib, out
from capsules import ARRAY, DEVICE_ARRAY, SCHEMA
from python_api import array_export, array_import, array_import_raw, array_release, buffer_release, type_release
from test_python_c import no_leak

COLUMNS = dict(all_types.columns())
WINDOWS = ((0, None), (5, 11), (0, 0), (36, 1))
METHODS = {ARRAY: "__arrow_c_array__", DEVICE_ARRAY: "__arrow_c_device_array__"}
NO_INTS = (None, "x", 1.5, b"8", object(), [1])
NO_ADDRESSES = (1 << 70, -(1 << 70))


@pytest.fixture(autouse=True, scope="module")
def known():
    python_api.init()


@pytest.fixture
def record():
    """An error record, empty again in the end."""
    made = python_api.Record()
    yield made
    assert made.taken() == (0, "")


class Producer:
    """Hands out what a handle shows."""

    def __init__(self, handle, record):
        self.handle, self.record = handle, record


class DeviceProducer(Producer):
    """Arrays on any device."""

    def __arrow_c_device_array__(self, requested_schema=None, **_):
        return self.record.checked(array_export(self.handle, 0, self.record.address))


class HostProducer(Producer):
    """Arrays in CPU memory."""

    def __arrow_c_array__(self, requested_schema=None):
        return self.record.checked(array_export(self.handle, True, self.record.address))


PRODUCERS = {ARRAY: HostProducer, DEVICE_ARRAY: DeviceProducer}


def type_address(handle):
    return lib.bowstring_array_type(c_void_p(handle))


# ---- round trips ----


@pytest.mark.parametrize("method", METHODS)
def test_every_type(method, record):
    """pyarrow's capsules in, ours out, in every window; with the type told by the schema and by a handle."""
    done = 0
    for key, column in COLUMNS.items():
        for offset, length in WINDOWS:
            part = column.slice(offset, length)
            first = record.checked(array_import(*getattr(part, METHODS[method])(), 0, record.address))
            typed = (None, getattr(part, METHODS[method])()[1], type_address(first), record.address)
            for handle in (first, record.checked(array_import(*typed))):
                for name, producer in PRODUCERS.items():
                    pair = getattr(producer(handle, record), METHODS[name])()
                    assert [capsules.name_of(one) for one in pair] == [SCHEMA, name]
                    found = pa.array(producer(handle, record))
                    found.validate(full=True)
                    assert found.type == part.type and found.equals(part), (key, offset, name)
                    done += 1
            assert array_release(handle) is None and array_release(first) is None
    del pair
    support.figure(f"arrays of every type through builtins from {method.decode()}", done, 900)


def test_record_batches(record):
    schema = pa.schema(
        [pa.field(key, column.type, metadata={"of": key}) for key, column in COLUMNS.items()], {"schema": "né", "": ""}
    )
    whole = pa.record_batch(list(COLUMNS.values()), schema=schema)
    for method in METHODS:
        handle = record.checked(array_import(*getattr(whole, METHODS[method])(), 0, record.address))
        for producer in PRODUCERS.values():
            made = pa.record_batch(producer(handle, record))
            made.validate(full=True)
            assert made.equals(whole) and made.schema.equals(schema, check_metadata=True)
        assert array_release(handle) is None


def test_nanoarrow(record):
    batch = pa.record_batch({"a": [1, None, 3], "b": ["x", None, "yz"], "c": [[1], [], None]})
    handle = record.checked(
        array_import(*nanoarrow.device.c_device_array(batch).__arrow_c_device_array__(), 0, record.address)
    )
    seen = nanoarrow.device.c_device_array(DeviceProducer(handle, record))
    assert na.Array(seen.array).to_pylist() == batch.to_pylist()
    assert na.Array(HostProducer(handle, record)).to_pylist() == batch.to_pylist()
    pair = na.c_array(HostProducer(handle, record)).__arrow_c_array__()
    again = record.checked(array_import(*pair, 0, record.address))
    assert pa.record_batch(DeviceProducer(again, record)).equals(batch)
    del seen
    array_release(handle), array_release(again)


def test_by_address(record):
    batch = pa.record_batch({"a": [1, None], "b": ["x", "y"]})
    kind = support.type_from(batch.schema)
    for _ in range(2):
        array = bs.ArrowDeviceArray()
        batch._export_to_c_device(ctypes.addressof(array))
        handle = record.checked(array_import_raw(ctypes.addressof(array), kind.value, record.address))
        assert not array.array.release
        assert pa.record_batch(DeviceProducer(handle, record)).equals(batch)
        array_release(handle)
    # What was moved out cannot be imported again.
    assert array_import_raw(ctypes.addressof(array), kind.value, record.address) is None
    assert record.taken()[0] == RELEASED
    type_release(kind.value)


def test_an_export_of_ours_is_recognised(record):
    handle = python_producer.owned(pa.array([1, 2]))
    before = python_producer.counts()[0]
    again = record.checked(array_import(*array_export(handle.value, 0, 0), 0, record.address))
    assert again == handle.value
    array_release(again), array_release(handle.value)
    assert python_producer.counts()[0] == before + 1


def test_the_schema_stays_in_its_capsule(record):
    """One schema may come with several arrays; its capsule lets it go."""
    schema, first = pa.array([1]).__arrow_c_device_array__()
    handles = [record.checked(array_import(schema, first, 0, record.address))]
    for other in (pa.array([2]), pa.array([3])):
        handles.append(record.checked(array_import(schema, other.__arrow_c_array__()[1], 0, record.address)))
    assert capsules.is_live(capsules.struct_in(schema, SCHEMA))
    assert not capsules.is_live(capsules.struct_in(first, DEVICE_ARRAY))
    assert [pa.array(DeviceProducer(one, record)).to_pylist() for one in handles] == [[1], [2], [3]]
    for one in handles:
        array_release(one)


def test_off_the_cpu(record):
    """A device that nobody knows: through as it is, and never as an array in CPU memory."""
    array, schema = support.from_pyarrow(pa.array([1, 2]))
    array.device_type, array.device_id = 12, 3
    kind = out("type_import", byref(schema))
    handle = record.checked(array_import_raw(ctypes.addressof(array), kind.value, record.address))
    pair = record.checked(array_export(handle, 0, record.address))
    held = capsules.struct_in(pair[1], DEVICE_ARRAY)
    assert (held.device_type, held.device_id) == (12, 3)
    assert array_export(handle, 1, record.address) is None
    status, message = record.taken()
    assert status in (bs.UNSUPPORTED, DEVICE_UNAVAILABLE) and message
    array_release(handle), type_release(kind.value)


# ---- wrong arguments ----


def live_pair(pair, name):
    return [capsules.is_live(capsules.struct_in(one, kind)) for one, kind in zip(pair, (SCHEMA, name))]


def refused(record, call, *arguments):
    """The status and message of a call that fails by its record."""
    assert call(*arguments, record.address) is None
    failed = record.taken()
    # Without a record it fails as well.
    assert call(*arguments, 0) is None
    assert record.taken() == (0, "")
    return failed


CALLS = ((array_import, 4), (array_import_raw, 3), (array_export, 3))


@pytest.mark.parametrize("call, n", CALLS)
def test_numbers_of_arguments(call, n):
    for given in {*range(7)} - {n}:
        with pytest.raises(TypeError, match="expected (four|three) arguments: .* error"):
            call(*[0] * given)
    with pytest.raises(TypeError):
        call(*[0] * n, error=0)


@pytest.mark.parametrize("call, n", CALLS)
def test_records_that_are_no_addresses(call, n):
    for wrong, kind in [(one, TypeError) for one in NO_INTS] + [(one, OverflowError) for one in NO_ADDRESSES]:
        with pytest.raises(kind):
            call(*[0] * (n - 1), wrong)
    # What cannot be a record's address is none.
    for wrong in (1, True, -1):
        assert call(*[0] * (n - 1), wrong) is None


@pytest.mark.parametrize("release", (array_release, buffer_release, type_release))
def test_releases(release):
    assert release(0) is None and release(False) is None
    for wrong, kind in [(one, TypeError) for one in NO_INTS] + [(one, OverflowError) for one in NO_ADDRESSES]:
        with pytest.raises(kind):
            release(wrong)
    for arguments in ((), (0, 0)):
        with pytest.raises(TypeError):
            release(*arguments)


def test_each_release_lets_go(record):
    handle = support.imported(pa.array(["x"]))
    buffer = out("array_buffer", handle, 1)
    kind = support.type_of(handle)
    before = bs.live_counts()
    assert array_release(handle.value) is None and bs.live_counts() != before
    before = bs.live_counts()
    assert buffer_release(buffer.value) is None and bs.live_counts() != before
    assert bs.live_counts() == {"types": 1}
    assert type_release(kind.value) is None
    assert support.all_gone()


@pytest.mark.parametrize("method", METHODS)
def test_arguments_that_are_no_ints(method, record):
    pair = getattr(pa.array([1, 2]), METHODS[method])()
    for wrong in NO_INTS + NO_ADDRESSES:
        assert refused(record, array_import, *pair, wrong) == (
            INVALID_ARGUMENT, "expected a type as an int that is an address"
        )
        assert refused(record, array_import_raw, wrong, 0) == (
            INVALID_ARGUMENT, "expected an array as an int that is an address"
        )
        assert refused(record, array_import_raw, 0, wrong) == (
            INVALID_ARGUMENT, "expected a type as an int that is an address"
        )
        assert refused(record, array_export, wrong, 0) == (
            INVALID_ARGUMENT, "expected an array as an int that is an address"
        )
        assert refused(record, array_export, 0, wrong)[0] == INVALID_ARGUMENT
    for wrong in (1, True, 7):
        assert refused(record, array_import, *pair, wrong)[0] == INVALID_ARGUMENT
        assert refused(record, array_export, wrong, 0)[0] == INVALID_ARGUMENT
    assert refused(record, array_import_raw, 0, 0)[0] == INVALID_ARGUMENT
    assert refused(record, array_export, 0, 0) == (INVALID_ARGUMENT, "expected an array, found NULL")
    assert live_pair(pair, method) == [True, True]


def other_capsules():
    """Capsules and objects that are none of those wanted, and what a message calls them."""
    struct = capsules.new(ARRAY)
    yield python_api.capsule(b"used_arrow_array", struct), "one named used_arrow_array"
    yield python_api.capsule(None, struct), "one without a name"
    yield python_api.capsule(b"", struct), "one named "
    yield python_api.capsule(b"x\xff\xc3\xa9" * 400, struct), "one named x�é"
    for other in (1, "arrow_array", object(), [], pa.array([1])):
        yield other, "another object"
    yield pa.table({"a": [1]}).__arrow_c_stream__(), "one named arrow_array_stream"
    lib.bowstring_host_array_free(struct)


@pytest.mark.parametrize("method", METHODS)
def test_other_capsules(method, record):
    pair = getattr(pa.array([1, 2]), METHODS[method])()
    cases = 0
    for other, found in other_capsules():
        for arguments, expected in (
            ((pair[0], other), "arrow_device_array or arrow_array"), ((other, pair[1]), "arrow_schema"),
            ((other, other), "arrow_device_array or arrow_array"),
        ):
            status, message = refused(record, array_import, *arguments, 0)
            assert status == INVALID_ARGUMENT
            assert message.startswith(f"expected a capsule named {expected}, found {found}")
            cases += 1
    status, message = refused(record, array_import, pair[1], pair[0], 0)
    assert message == "expected a capsule named arrow_device_array or arrow_array, found one named arrow_schema"
    assert refused(record, array_import, None, pair[1], 0) == (
        INVALID_ARGUMENT, "expected a schema or a type, found None and 0"
    )
    assert refused(record, array_import, pair[0], None, 0)[0] == INVALID_ARGUMENT
    assert live_pair(pair, method) == [True, True] and cases == 30
    handle = record.checked(array_import(*pair, 0, record.address))
    assert live_pair(pair, method) == [True, False]
    # Both are used up, each on its own.
    assert refused(record, array_import, *pair, 0)[0] == RELEASED
    lib.bowstring_schema_release(byref(capsules.struct_in(pair[0], SCHEMA)))
    pair = pair[0], getattr(pa.array([1, 2]), METHODS[method])()[1]
    assert refused(record, array_import, *pair, 0)[0] == RELEASED
    assert live_pair(pair, method) == [False, True]
    array_release(handle)


def test_capsules_of_one_address(record):
    """Two capsules may not hold the same memory."""
    struct = capsules.new(DEVICE_ARRAY)
    pair = (python_api.capsule(b"arrow_schema_", struct), python_api.capsule(b"arrow_device_array_", struct))
    for one, name in zip(pair, (SCHEMA, DEVICE_ARRAY)):
        python_api.rename(one, name)
    status, message = refused(record, array_import, *pair, 0)
    assert status == INVALID_ARGUMENT and "apart" in message
    for one in pair:
        python_api.rename(one, b"used")
    lib.bowstring_device_array_free(struct)


@pytest.mark.parametrize("method", METHODS)
def test_what_breaks_a_rule_stays_in_its_capsule(method, record):
    column = pa.array([1, None, 3])
    pair = getattr(column, METHODS[method])()
    held = capsules.struct_in(pair[1], method)
    inner = held.array if method == DEVICE_ARRAY else held
    inner.n_buffers = 1
    assert array_import(*pair, 0, record.address) is None
    assert (record.record.status, lib.bowstring_rule_name(record.record.rule)) == (INVALID_DATA, b"A3")
    record.taken()
    assert live_pair(pair, method) == [True, True]
    inner.n_buffers = 2
    handle = record.checked(array_import(*pair, 0, record.address))
    assert pa.array(DeviceProducer(handle, record)).equals(column)
    array_release(handle)


def test_another_type(record):
    """A type that the array does not have: nothing is taken."""
    batch = pa.record_batch({"a": [1]})
    kind, other = support.type_from(pa.utf8()), support.type_from(batch.schema)
    array = batch.__arrow_c_device_array__()[1]
    assert refused(record, array_import, None, array, kind.value)[0] == INVALID_DATA
    handle = record.checked(array_import(None, array, other.value, record.address))
    array_release(handle), type_release(kind.value), type_release(other.value)


# ---- exceptions and references ----


@pytest.mark.parametrize("kind", (RuntimeError, KeyboardInterrupt))
def test_an_exception_of_a_release_is_unraisable(kind, monkeypatch):
    found = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: found.append(args.exc_type))
    assert array_release(python_producer.owned(pa.array([1]), kind).value) is None
    assert found == [kind]


def test_nothing_grows_with_imports_and_exports(record):
    batch = pa.record_batch({"a": [1, None], "b": ["x", "y"]})
    kind = support.type_from(batch.schema)

    def check():
        array = batch.__arrow_c_device_array__()[1]
        handle = array_import(None, array, kind.value, record.address)
        pa.record_batch(DeviceProducer(handle, record))
        schema, array = array_export(handle, 1, record.address)
        again = array_import(schema, array, 0, record.address)
        # Nobody takes these.
        array_export(again, 0, record.address)
        array_release(again), array_release(handle)

    no_leak(check)
    type_release(kind.value)


def test_nothing_grows_with_failures(record):
    pair = pa.array([1]).__arrow_c_device_array__()

    def check():
        assert array_import(*pair, "x", record.address) is None
        assert array_import(pair[1], pair[0], 0, record.address) is None
        assert array_import(None, pair[1], 0, record.address) is None
        assert array_import(*pair, 1, record.address) is None
        assert array_export(0, 0, record.address) is None
        for call, arguments in ((array_import, ()), (array_export, (0, 0, None)), (array_release, ("x",))):
            try:
                call(*arguments)
            except TypeError:
                pass

    no_leak(check)
    record.taken()


def test_results_have_one_reference(record):
    """Ints, tuples and capsules that come out are the caller's alone."""
    handle = array_import(*pa.array([1]).__arrow_c_array__(), 0, 0)
    fresh, alone = object(), []
    assert sys.getrefcount(fresh) == 2
    pair = array_export(handle, 0, 0)
    alone += [sys.getrefcount(handle) - 1, sys.getrefcount(pair) - 1]
    schema, array = pair
    del pair
    alone += [sys.getrefcount(schema) - 1, sys.getrefcount(array) - 1]
    assert alone == [1] * 4
    array_release(handle)
