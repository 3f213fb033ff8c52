"""Capsules that the library's own destructor empties, and what it is told of the interpreter."""

import ctypes
import gc
import subprocess
import sys
from ctypes import byref, c_void_p, py_object
from pathlib import Path

import nanoarrow as na
import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import capsules
import dlpack
import python_api
import python_producer
import support
from bowstring_ctypes import INVALID_ARGUMENT, BowstringError, call, lib, out
from capsules import ARRAY, DEVICE_ARRAY, DEVICE_STREAM, SCHEMA, STREAM, STRUCTS

ROUNDS = 10_000
TENSORS = {b"dltensor": dlpack.Legacy, b"dltensor_versioned": dlpack.Versioned}


@pytest.fixture(autouse=True, scope="module")
def known():
    python_api.init()


class Heap(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]


def heap_in_use():
    """Bytes that malloc has given out."""
    info = ctypes.CDLL(None).mallinfo2
    info.restype = Heap
    return info().uordblks


def no_leak(check, bytes_a_round=16):
    """Runs a check many times: neither malloc nor references to shared objects grow."""
    shared = (None, TypeError, True, py_object)
    for _ in range(100):
        check()
    gc.collect()
    references, before = [sys.getrefcount(one) for one in shared], heap_in_use()
    for _ in range(ROUNDS):
        check()
    gc.collect()
    drift = [sys.getrefcount(one) - then for one, then in zip(shared, references)]
    assert max(map(abs, drift)) < 100, drift
    assert heap_in_use() - before < bytes_a_round * ROUNDS


class Counted:
    """Structs and tensors of somebody else, whose release counts and marks."""

    def __init__(self):
        self.released = []
        self._release = bs.RELEASE(self._note)
        self.at = python_api.address(self._release)

    def _note(self, at):
        self.released.append(at)
        for kind in self._kinds:
            kind.from_address(at).release = None

    _kinds = ()

    def struct(self, name):
        """A live struct of that kind, allocated by the library."""
        made = capsules.new(name)
        if name == DEVICE_ARRAY:
            self._kinds = (bs.ArrowArray,)
            made.contents.array.release = self.at
        else:
            self._kinds = (STRUCTS[name],)
            made.contents.release = self.at
        return made

    def tensor(self, name):
        """A tensor that is never freed, because the deleter only counts."""
        self._kinds = ()
        made = TENSORS[name](deleter=self.at)
        if name == b"dltensor_versioned":
            made.major = 1
        return made


@pytest.mark.parametrize("name", STRUCTS)
def test_structs_are_released_once_and_freed(name):
    counted = Counted()
    struct = counted.struct(name)
    capsule = python_api.capsule(name, struct)
    assert counted.released == []
    at = ctypes.addressof(struct.contents)
    del capsule
    assert counted.released == [at]


@pytest.mark.parametrize("name", STRUCTS)
def test_what_was_moved_out_is_not_released(name):
    counted = Counted()
    capsule = python_api.capsule(name, counted.struct(name))
    taken = STRUCTS[name]()
    move, release = (getattr(lib, f"bowstring_{capsules.FUNCTIONS[name]}_{what}") for what in ("move", "release"))
    move(byref(capsules.struct_in(capsule, name)), byref(taken))
    del capsule
    assert counted.released == [] and capsules.is_live(taken)
    release(byref(taken))
    assert len(counted.released) == 1


@pytest.mark.parametrize("name", STRUCTS)
def test_the_structs_memory_is_freed(name):
    def check():
        python_api.capsule(name, getattr(lib, f"bowstring_{capsules.FUNCTIONS[name]}_new")())

    no_leak(check)


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_are_deleted_once(name):
    counted = Counted()
    tensor = counted.tensor(name)
    capsule = python_api.capsule(name, ctypes.pointer(tensor))
    assert counted.released == []
    del capsule
    assert counted.released == [ctypes.addressof(tensor)]
    tensor.deleter = None
    del counted.released[:]
    python_api.capsule(name, ctypes.pointer(tensor))
    assert counted.released == []


def test_tensors_of_ours():
    handle = support.imported(pa.array([1, 2, 3]))
    for name, legacy in ((b"dltensor_versioned", False), (b"dltensor", True)):
        tensor = out("array_to_tensor", handle, None)
        if legacy:
            # A legacy tensor cannot say that it may not be written to.
            tensor = out("tensor_to_legacy", byref(tensor), bs.TensorOptions(flags=8))
        capsule = python_api.capsule(name, tensor)
        assert bs.live_counts()["tensors"]
        del capsule
        assert "tensors" not in bs.live_counts()
    support.release(handle)


OTHERS = (
    b"used_dltensor", b"used_dltensor_versioned", b"used_arrow_array", b"arrow_schemas", b"arrow_arra", b"", None,
    b"dlpack_exchange_api", b"ARROW_SCHEMA", b"arrow_async_device_stream", b"x" * 5000, b"\xff\xfe",
)


@pytest.mark.parametrize("other", OTHERS, ids=lambda name: repr(name)[:30])
def test_other_names_are_left_alone(other):
    """Also when a consumer renamed the capsule, as those of tensors do."""
    counted = Counted()
    tensors = [counted.tensor(b"dltensor_versioned") for _ in range(2)]
    struct = counted.struct(ARRAY)
    made = [python_api.capsule(other, ctypes.pointer(tensors[0])), python_api.capsule(ARRAY, struct)]
    made.append(python_api.capsule(b"dltensor_versioned", ctypes.pointer(tensors[1])))
    for capsule in made[1:]:
        python_api.rename(capsule, other)
    del made, capsule
    assert counted.released == []
    lib.bowstring_host_array_free(struct)
    assert len(counted.released) == 1


def test_by_the_collector():
    class Ring:
        pass

    handle = python_producer.owned(pa.array([1]))
    before = python_producer.counts()[0]
    ring = Ring()
    ring.itself, ring.pair = ring, python_api.array_export(handle.value, 0, 0)
    support.release(handle)
    del ring
    assert python_producer.counts()[0] == before
    gc.collect()
    assert python_producer.counts()[0] == before + 1


def pair_of(raises=None):
    """Capsules with the last of an array whose owner looks at the interpreter."""
    handle = python_producer.owned(pa.array([1]), raises)
    pair = python_api.array_export(handle.value, 0, 0)
    support.release(handle)
    return pair


def test_a_pending_exception_stays():
    """What is on the stack when an exception comes up is let go while it is pending."""
    before = python_producer.counts()
    with pytest.raises(ZeroDivisionError, match="by zero"):
        max(pair_of(), 1 // 0)
    after = python_producer.counts()
    assert (after[0] - before[0], after[2] - before[2]) == (1, 0)


@pytest.fixture
def unraisable(monkeypatch):
    """What was written as unraisable."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: found.append((args.exc_type, args.object)))
    return found


@pytest.mark.parametrize("kind", (RuntimeError, KeyboardInterrupt, MemoryError))
def test_an_exception_of_the_release_is_unraisable(kind, unraisable):
    pair = pair_of(kind)
    del pair
    assert unraisable == [(kind, None)]
    with pytest.raises(ZeroDivisionError, match="by zero"):
        max(pair_of(kind), 1 // 0)
    assert unraisable == [(kind, None)] * 2


def test_what_is_no_capsule(unraisable):
    destroy = ctypes.PYFUNCTYPE(None, py_object)(python_api.DESTRUCTOR)
    for other in (None, 1, "arrow_schema", object()):
        destroy(other)
    assert unraisable == [(ValueError, None)] * 4
    ctypes.PYFUNCTYPE(None, c_void_p)(python_api.DESTRUCTOR)(None)
    assert len(unraisable) == 4


def test_consumers_take_what_the_capsules_hold():
    """pyarrow and nanoarrow move the struct out of streams, schemas and arrays."""
    batch = pa.record_batch({"a": [1, None], "b": ["x", "yz"]})
    handle = support.imported(batch)

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            stream = out("stream_from_arrays", None, (c_void_p * 1)(handle.value), 1)
            struct = capsules.new(STREAM)
            call("stream_export_host", byref(stream), None, struct)
            return python_api.capsule(STREAM, struct)

    class Schema:
        def __arrow_c_schema__(self):
            struct = capsules.new(SCHEMA)
            call("type_export", lib.bowstring_array_type(handle), struct)
            return python_api.capsule(SCHEMA, struct)

    assert pa.table(Stream()).to_batches() == [batch]
    assert pa.schema(Schema()).equals(batch.schema)
    assert na.c_schema(Schema()).format == "+s"
    assert na.Array(Stream()).to_pylist() == batch.to_pylist()
    # Nobody takes these.
    Stream().__arrow_c_stream__(), Schema().__arrow_c_schema__()
    stream = out("stream_from_arrays", None, (c_void_p * 1)(handle.value), 1)
    struct = capsules.new(DEVICE_STREAM)
    call("stream_export", byref(stream), struct)
    python_api.capsule(DEVICE_STREAM, struct)
    support.release(handle)


# ---- what the library is told ----

SCRIPTS = Path(__file__).with_name("python_process.py")


def in_process(name, expected=0):
    """What a function of python_process.py prints."""
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", SCRIPTS, name],
        cwd=SCRIPTS.parent, capture_output=True, text=True, timeout=120,
    )
    assert run.returncode == expected, run.stdout + run.stderr
    return run.stdout.split("\n")[:-1], run.stderr


@pytest.mark.parametrize("name", ("before_init", "first_six", "all_members"))
def test_what_the_library_is_told(name):
    told, errors = in_process(name)
    assert told[-1:] == ["done"] and not errors


def test_other_addresses_later():
    """Each member in turn, and the same ones again."""
    for name in (*bs.PYTHON_FUNCTIONS, *bs.PYTHON_VALUES):
        for api in (python_api.api(name), python_api.api(**{name: python_api.DESTRUCTOR})):
            with pytest.raises(BowstringError) as caught:
                call("python_init", byref(api))
            assert caught.value.status == INVALID_ARGUMENT, name
    for wrong, status in ((None, INVALID_ARGUMENT), (bs.PythonApi(), INVALID_ARGUMENT)):
        with pytest.raises(BowstringError) as caught:
            call("python_init", wrong if wrong is None else byref(wrong))
        assert caught.value.status == status
    python_api.init()


# ---- locks, threads, the end of the interpreter, fork ----


def test_releases_take_the_interpreters_lock():
    told, errors = in_process("lock")
    assert told == ["released 8, elsewhere 5"] and not errors


def test_without_a_scope_the_lock_is_missed():
    """The producer sees what it is there to see."""
    told, errors = in_process("lock_without_scope", expected=-6)
    assert "a release without the interpreter's lock" in errors


def test_the_end_of_the_interpreter():
    """Capsules that are alive when it ends are destroyed by it, or not at all; nothing crashes."""
    told, errors = in_process("live_at_exit")
    assert not errors and len(told) == 1
    support.figure("capsules destroyed by the interpreter's end", int(told[0].split()[1].strip(",")), 3)
    # The scope hears from the interpreter that it is ending, and skips what is left.
    told, errors = in_process("live_at_exit_with_scope")
    assert not errors and told == ["released 0, elsewhere 0"]


def test_the_scope_is_closed_at_exit():
    told, errors = in_process("closed_at_exit")
    assert told == ["after closing: 6 leaked", "released 2, elsewhere 0"] and not errors


def test_threads_at_exit():
    """A stream's thread is busy letting arrays go while the interpreter ends."""
    told, errors = in_process("thread_at_exit")
    assert len(told) == 1 and not errors
    released, elsewhere = (int(word.strip(",")) for word in told[0].split()[1::2])
    assert released == elsewhere and 1 <= released < 3000


def test_fork():
    told, errors = in_process("fork")
    assert told == ["child: released 3", "parent: released 3"] and not errors


# ---- the buffer protocol ----


class Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", c_void_p)]


class Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int), ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(Slot)),
    ]


def exporter_type():
    """A type with the library's slot, as a binding makes it."""
    slots = python_api.forever((Slot * 2)(Slot(1, python_api.address(lib.bowstring_python_get_buffer)), Slot(0, None)))
    spec = python_api.forever(Spec(b"tests.Exporter", 0, 0, 1 << 18 | 1 << 10 | 1 << 9, slots))
    return ctypes.PYFUNCTYPE(py_object, ctypes.POINTER(Spec))(("PyType_FromSpec", ctypes.pythonapi))(byref(spec))


class Shows(exporter_type()):
    """What has a memoryview, or an exception."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def __buffer__(self, flags):
        self.asked.append(flags)
        if isinstance(self.answer, type):
            raise self.answer("no view")
        return self.answer


class Bare(exporter_type()):
    """It lacks the method."""


def test_views_of_a_class():
    shows = Shows(memoryview(b"abcdef").cast("h"))
    references = sys.getrefcount(shows)
    view = memoryview(shows)
    assert (view.tobytes(), view.format, view.shape, view.readonly) == (b"abcdef", "h", (3,), True)
    assert shows.asked == [0x11C] and sys.getrefcount(shows) == references + 1
    # The method's own view may go meanwhile.
    shows.answer.release()
    assert view.tobytes() == b"abcdef"
    view.release()
    assert sys.getrefcount(shows) == references


def test_memory_stays_as_long_as_its_view():
    data = bytearray(b"abc")
    view = memoryview(Shows(data))
    gc.collect()
    with pytest.raises(BufferError):
        data.append(1)
    view[0] = 120
    assert bytes(data) == b"xbc"
    del view
    data.append(1)


@pytest.mark.parametrize("answer", (BufferError, KeyError, MemoryError))
def test_exceptions_of_the_method_come_through(answer):
    def check():
        try:
            memoryview(Shows(answer))
        except answer:
            return
        raise AssertionError(f"expected {answer}")

    no_leak(check)


def test_what_is_no_view():
    with pytest.raises(TypeError, match="bytes-like|a bytes"):
        memoryview(Shows(1))
    with pytest.raises(AttributeError, match="__buffer__"):
        memoryview(Bare())
    with pytest.raises(BufferError):
        ctypes.pythonapi.PyObject_GetBuffer(py_object(Shows(b"abc")), (c_void_p * 11)(), 1)


def test_views_leak_nothing():
    data = b"abc"
    no_leak(lambda: bytes(Shows(data)))
