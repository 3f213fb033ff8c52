"""Classes whose instances hold an array: taking, giving and letting go, without bytecode between."""

import ctypes
import gc
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_ssize_t, c_uint, c_void_p, py_object

import pyarrow as pa
import pytest

import all_types
import bowstring_ctypes as bs
import python_api
import python_producer
import support
from bowstring_ctypes import lib, live_counts
from python_api import METH_FASTCALL, METH_O, MethodDef, address, forever
from test_python_c import no_leak

METH_KEYWORDS = 0x0002
FINALIZE, MEMBERS, UNSIGNED_LONG_LONG = 80, 72, 18


class Member(ctypes.Structure):
    """PyMemberDef."""

    _fields_ = [("name", c_char_p), ("kind", c_int), ("offset", c_ssize_t), ("flags", c_int), ("doc", c_char_p)]


class Slot(ctypes.Structure):
    """PyType_Slot."""

    _fields_ = [("slot", c_int), ("function", c_void_p)]


class Spec(ctypes.Structure):
    """PyType_Spec."""

    _fields_ = [
        ("name", c_char_p), ("basicsize", c_int), ("itemsize", c_int), ("flags", c_uint), ("slots", POINTER(Slot)),
    ]


def handle_class():
    """A class as a binding makes it."""
    size = object.__basicsize__
    members = (Member * 2)(Member(b"handle", UNSIGNED_LONG_LONG, size, 0, None))
    slots = (Slot * 3)(
        Slot(FINALIZE, address(lib.bowstring_python_array_finalize)), Slot(MEMBERS, ctypes.cast(members, c_void_p)),
    )
    spec = Spec(b"tests.Handle", size + 8, 0, 1 << 18 | 1 << 10 | 1 << 9, slots)
    forever((members, slots, spec))
    return ctypes.PYFUNCTYPE(py_object, POINTER(Spec))(("PyType_FromSpec", ctypes.pythonapi))(byref(spec))


_new_builtin = ctypes.PYFUNCTYPE(py_object, c_void_p, py_object, c_void_p)(("PyCFunction_NewEx", ctypes.pythonapi))
_new_method = ctypes.PYFUNCTYPE(py_object, py_object, c_void_p)(("PyDescr_NewMethod", ctypes.pythonapi))
_take = forever(MethodDef(b"take", address(lib.bowstring_python_array_take), METH_O, None))
_give = forever(MethodDef(b"give", address(lib.bowstring_python_array_give), METH_FASTCALL | METH_KEYWORDS, None))


class Array(handle_class()):
    """What a binding derives."""

    __slots__ = ("asked", "__weakref__")

    def _answer_device_array(self, *args, **keywords):
        self.asked = (args, keywords)
        return "asked"


Array.__arrow_c_device_array__ = _new_method(Array, ctypes.addressof(_give))


@pytest.fixture(autouse=True, scope="module")
def known():
    python_api.init()


@pytest.fixture
def kinds():
    """Types of schemas, let go in the end; nothing of what a test made is left."""
    gc.collect()
    before, made = live_counts(), []

    def kind(schema):
        made.append(support.type_from(schema))
        return (schema, None, made[-1].value)

    yield kind
    for one in made:
        lib.bowstring_type_release(one)
    gc.collect()
    assert live_counts() == before


def take(*kinds, names=("schema", "equals", "_export_to_c_device")):
    """The builtin for what is known."""
    return _new_builtin(ctypes.addressof(_take), (Array, *names, *(part for kind in kinds for part in kind)), None)


def batch_of(names="ab"):
    return pa.record_batch({name: [1, None, 3] for name in names})


def test_every_type(kinds):
    for key, column in all_types.columns():
        batch = pa.record_batch({key: column}).slice(3, 20)
        array = take(kinds(batch.schema))(batch)
        assert type(array) is Array and array.handle
        found = pa.record_batch(array)
        found.validate(full=True)
        assert found.equals(batch)
        # pyarrow asks with nothing in particular.
        assert not hasattr(array, "asked")


def test_schemas_are_known_by_identity_or_equality(kinds):
    batches = [batch_of("a"), batch_of("ab"), batch_of("abc")]
    builtin = take(*(kinds(batch.schema) for batch in batches))
    for batch in batches:
        same, other = batch, pa.record_batch(batch.columns, names=batch.schema.names)
        assert other.schema is not batch.schema
        for one in (same, other):
            assert pa.record_batch(builtin(one)).equals(batch)
    # Metadata counts: the type that comes with the array would be another.
    for one in (batch_of("x"), batches[0].replace_schema_metadata({"a": "b"})):
        assert builtin(one) is None
    assert take()(batches[0]) is None


class Producer:
    """Exports what it is told to, under a schema of its own."""

    def __init__(self, schema, export):
        self.schema, self._export_to_c_device = schema, export


class Schema:
    """Compares as it is told to."""

    def __init__(self, answer):
        self.answer = answer

    def equals(self, other, with_metadata):
        assert with_metadata is True
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_what_does_not_fit_is_let_go(kinds):
    schema, _, kind = kinds(pa.schema({"a": pa.int64(), "b": pa.int64()}))
    held = []

    def export(array):
        def run(at):
            array._export_to_c_device(at)
            held.append(bs.ArrowDeviceArray.from_address(at).array.release)

        return run

    builtin = take((schema, None, kind))
    before = pa.total_allocated_bytes()
    wide = pa.record_batch({"a": pa.array(range(1000)), "b": pa.array(range(1000))})
    for array in (batch_of("a"), batch_of("abc"), pa.array([1]), wide.slice(0, 0)):
        found = builtin(Producer(schema, export(array)))
        assert (found is None) is (array.schema != schema if isinstance(array, pa.RecordBatch) else True)
    assert len(held) == 4 and all(held)
    # A producer that writes nothing.
    assert builtin(Producer(schema, lambda at: None)) is None
    # A type's address that is none.
    assert take((schema, None, 0))(Producer(schema, export(wide))) is None
    del wide, found, array, held, export
    gc.collect()
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("kind", (ValueError, KeyboardInterrupt))
def test_exceptions_come_through(kinds, kind):
    batch = batch_of()
    known = kinds(batch.schema)

    def fails(at):
        raise kind("export")

    with pytest.raises(kind, match="export"):
        take(known)(Producer(batch.schema, fails))

    def exports_and_fails(at):
        batch._export_to_c_device(at)
        raise kind("later")

    with pytest.raises(kind, match="later"):
        take(known)(Producer(batch.schema, exports_and_fails))
    with pytest.raises(kind, match="equals"):
        take((Schema(kind("equals")), None, 0), known)(batch)
    # Only True is True.
    for answer in (1, "True", None, False):
        assert take((Schema(answer), None, 0))(batch) is None
    assert take((Schema(1), None, 0), known)(batch) is not None
    with pytest.raises(AttributeError, match="schema"):
        take(known)(1)
    with pytest.raises(AttributeError, match="no_export"):
        take(known, names=("schema", "equals", "no_export"))(batch)


def test_tuples_that_are_none(kinds):
    batch = batch_of()
    schema, _, kind = kinds(batch.schema)
    for told in ((), (Array,), (Array, "schema", "equals"), (Array, "schema", "equals", "_export_to_c_device", schema)):
        with pytest.raises(IndexError):
            _new_builtin(ctypes.addressof(_take), told, None)(batch)
    for told in (None, [Array, "schema"], 1):
        with pytest.raises(SystemError):
            _new_builtin(ctypes.addressof(_take), told, None)(batch)
    for no_address, error in (("x", TypeError), (None, TypeError), (1 << 70, OverflowError)):
        with pytest.raises(error):
            take((schema, None, no_address))(batch)


def test_what_is_asked_for_in_particular_is_passed_on(kinds):
    batch = batch_of()
    array = take(kinds(batch.schema))(batch)
    schema = batch.schema.__arrow_c_schema__()
    method = array.__arrow_c_device_array__
    assert len(method()) == len(method(None)) == 2 and not hasattr(array, "asked")
    for args, keywords in (((schema,), {}), ((), {"requested_schema": None}), ((None,), {"later": 1}), ((1, 2), {})):
        assert method(*args, **keywords) == "asked"
        assert array.asked == (args, keywords)
    many = {f"later_{at}": at for at in range(14)}
    assert method(None, **many) == "asked" and array.asked == ((None,), many)
    with pytest.raises(TypeError, match="at most fifteen arguments"):
        method(None, **many, another=1)
    # One without an array is asked to say so.
    empty = object.__new__(Array)
    assert empty.handle == 0 and empty.__arrow_c_device_array__() == "asked"
    with pytest.raises(TypeError):
        Array.__arrow_c_device_array__(1)

    class Silent(handle_class()):
        __slots__ = ()

    Silent.give = _new_method(Silent, ctypes.addressof(_give))
    with pytest.raises(AttributeError, match="_answer_device_array"):
        object.__new__(Silent).give()


def test_arrays_go_with_their_instances(kinds):
    batch = batch_of()
    builtin = take(kinds(batch.schema))
    before = live_counts().get("arrays", 0)
    array = builtin(batch)
    assert live_counts()["arrays"] == before + 1
    kept = pa.record_batch(array)
    del array
    # What was given keeps the memory.
    assert kept.equals(batch) and live_counts()["blocks"]
    del kept
    assert live_counts().get("arrays", 0) == before
    # In a cycle as well, and with a handle that was taken out.
    first, second = builtin(batch), builtin(batch)
    first.asked = first
    taken, second.handle = second.handle, 0
    del first, second
    gc.collect()
    assert live_counts()["arrays"] == before + 1
    python_api.array_release(taken)


@pytest.mark.parametrize("kind", (RuntimeError, KeyboardInterrupt))
def test_an_exception_of_a_release_is_unraisable(kind, monkeypatch):
    found = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: found.append(args.exc_type))

    def failing():
        array = object.__new__(Array)
        array.handle = python_producer.owned(pa.array([1]), kind).value
        raise ValueError("pending")

    with pytest.raises(ValueError, match="pending"):
        failing()
    gc.collect()
    assert found == [kind]


def test_nothing_grows(kinds):
    batch, other = batch_of(), batch_of("c")
    schema, _, kind = kinds(batch.schema)
    builtin, wrong = take((schema, None, kind)), Producer(schema, other._export_to_c_device)

    def check():
        array = builtin(batch)
        pa.record_batch(array)
        array.__arrow_c_device_array__()
        array.__arrow_c_device_array__(other=None)
        assert builtin(other) is None and builtin(wrong) is None
        try:
            builtin(1)
        except AttributeError:
            pass

    no_leak(check)
    array = builtin(batch)
    assert sys.getrefcount(array) == 2
    counts = [sys.getrefcount(one) for one in (Array, schema, batch)]
    arrays = [builtin(batch) for _ in range(100)]
    assert [sys.getrefcount(one) for one in (Array, schema, batch)] == [counts[0] + 100, *counts[1:]]
    del arrays
    assert [sys.getrefcount(one) for one in (Array, schema, batch)] == counts
