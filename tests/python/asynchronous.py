"""Both sides of asynchronous streams, played by Python: handlers that do what a script says, and producers that call one."""

import ctypes
import threading
import time
import traceback
from ctypes import CFUNCTYPE, POINTER, addressof, byref, c_char_p, c_int, c_int64, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import streams
import support
from bowstring_ctypes import BowstringError, call, lib, out

ON_SCHEMA = CFUNCTYPE(c_int, c_void_p, POINTER(bs.ArrowSchema))
ON_NEXT_TASK = CFUNCTYPE(c_int, c_void_p, POINTER(bs.ArrowAsyncTask), c_char_p)
ON_ERROR = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)
RELEASE = CFUNCTYPE(None, c_void_p)
EXTRACT = CFUNCTYPE(c_int, POINTER(bs.ArrowAsyncTask), POINTER(bs.ArrowDeviceArray))
REQUEST = CFUNCTYPE(None, POINTER(bs.ArrowAsyncProducer), c_int64)
CANCEL = CFUNCTYPE(None, POINTER(bs.ArrowAsyncProducer))

# Handlers and producers that somebody may still call.
_alive = []
PATIENCE = 20
KIND = pa.int32()


def address(function):
    return ctypes.cast(function, c_void_p).value


def gone():
    """Whether nothing is left, once what other threads still let go is gone."""
    end = time.monotonic() + PATIENCE
    while not support.all_gone() and time.monotonic() < end:
        time.sleep(0.001)
    return support.all_gone()


def extract(task, wanted=True):
    """Asks a task, or a copy of it, for its array: the number, and the struct."""
    array = bs.ArrowDeviceArray()
    ctypes.memset(byref(array), 0xAA, ctypes.sizeof(array))
    code = EXTRACT(task.extract_data)(byref(task), byref(array) if wanted else None)
    return code, array if wanted else None


class Handler:
    """A consumer: notes what it hears, and does in each callback what the script says before it returns its number."""

    def __init__(self, on_schema=None, on_task=None, keep=False, ask=0):
        self.heard, self.complaints, self.arrays, self.tasks = [], [], [], []
        self.on_schema, self.on_task, self.keep, self.ask = on_schema, on_task, keep, ask
        self.inside, self.threads = threading.Lock(), set()
        self.errors, self.kind, self.done = [], None, threading.Event()
        self._kept = [
            kind(self._careful(function)) for kind, function in (
                (ON_SCHEMA, self._schema), (ON_NEXT_TASK, self._task), (ON_ERROR, self._error), (RELEASE, self._release))
        ]
        # What a consumer does not set is never looked at.
        self.struct = bs.ArrowAsyncDeviceStreamHandler(*map(address, self._kept), 0xA5A5A5A5, 99)
        _alive.append(self)

    def _careful(self, function):
        def run(handler, *rest):
            try:
                assert self.inside.acquire(blocking=False), "two callbacks at a time"
                assert handler == addressof(self.struct), "another handler"
                assert not self.done.is_set(), "called after its release"
                self.threads.add(threading.get_ident())
                return function(*rest)
            except BaseException as error:  # noqa: BLE001, an exception ends in the callback
                self.complaints.append(error)
                traceback.print_exc()
                return 5
            finally:
                if self.inside.locked():
                    self.inside.release()
                if function == self._release:
                    self.done.set()

        return run

    @property
    def producer(self):
        return ctypes.cast(self.struct.producer, POINTER(bs.ArrowAsyncProducer))

    def request(self, n):
        before = len(self.heard)
        own = threading.get_ident()
        REQUEST(self.producer.contents.request)(self.producer, n)
        # Nothing came from inside the call: what else was heard came from the producer's thread.
        assert own in self.threads or len(self.heard) >= before

    def cancel(self):
        CANCEL(self.producer.contents.cancel)(self.producer)

    def _schema(self, schema):
        self.heard.append("schema")
        self.device_type = self.producer.contents.device_type
        assert schema.contents.release
        kind = c_void_p()
        call("type_import", schema, byref(kind))
        self.kind = bs.text_of("type_to_text", kind)
        lib.bowstring_type_release(kind)
        if self.ask:
            self.request(self.ask)
        return (self.on_schema(self) or 0) if self.on_schema else 0

    def _task(self, task, metadata):
        if not task:
            self.heard.append("end")
        else:
            self.heard.append("task")
            copy = bs.ArrowAsyncTask(task.contents.extract_data, task.contents.private_data)
            ctypes.memset(task, 0xAA, ctypes.sizeof(bs.ArrowAsyncTask))
            if self.keep:
                self.tasks.append(copy)
            else:
                code, array = extract(copy)
                assert code == 0 and array.array.release
                self.arrays.append(array)
        return (self.on_task(self) or 0) if self.on_task else 0

    def _error(self, code, message, metadata):
        self.heard.append("error")
        self.errors.append((code, message.decode()))
        assert metadata is None

    def _release(self):
        self.heard.append("release")

    def given(self, stream):
        """Hands a stream to the handler."""
        call("stream_to_async", byref(stream), byref(self.struct))
        assert not stream.value
        return self

    def finish(self):
        """Waits for the release, and lets go what came; gives the lengths of the arrays."""
        assert self.done.wait(PATIENCE)
        assert not self.complaints, self.complaints
        assert len(self.threads) == 1 and self.heard[-1] == "release"
        lengths = []
        for task in self.tasks:
            code, array = extract(task)
            assert code == 0
            self.arrays.append(array)
        for array in self.arrays:
            lengths.append(array.array.length)
            lib.bowstring_device_array_release(byref(array))
        self.tasks, self.arrays = [], []
        return lengths


class Producer:
    """A producer of somebody else over a handler of the library. It does nothing by itself."""

    def __init__(self, capacity, device_type=1, on_request=None):
        self.struct = bs.ArrowAsyncDeviceStreamHandler()
        ctypes.memset(byref(self.struct), 0xAA, ctypes.sizeof(self.struct))
        self.stream = out("stream_from_async", capacity, byref(self.struct))
        assert not self.struct.producer
        self.asked, self.cancelled, self.complaints = 0, 0, []
        self.unextracted, self.dropped, self.on_request = 0, 0, on_request
        self.changed = threading.Condition()
        self._kept = [REQUEST(self._request), CANCEL(self._cancel), EXTRACT(self._extract)]
        self.own = bs.ArrowAsyncProducer(device_type, address(self._kept[0]), address(self._kept[1]), None, 7)
        self.steps, self.fails = {}, {}
        _alive.append(self)

    def _request(self, own, n):
        with self.changed:
            if own.contents.private_data != 7 or n <= 0:
                self.complaints.append(("request", n))
            self.asked += n
            self.changed.notify_all()
        if self.on_request:
            self.on_request(self)

    def _cancel(self, own):
        with self.changed:
            self.cancelled += 1
            self.changed.notify_all()

    def _extract(self, task, array):
        try:
            with self.changed:
                self.unextracted -= 1
                data = self.steps.pop(task.contents.private_data)
                self.changed.notify_all()
            if not array:
                self.dropped += 1
                return 0
            if array.contents.array.release:
                self.complaints.append("extract_data is given a live struct")
            if isinstance(data, int):
                return data
            if callable(data):
                return data(array.contents) or 0
            streams.export_into(data, addressof(array.contents), False)
            return 0
        except BaseException as error:  # noqa: BLE001, an exception ends in the callback
            self.complaints.append(error)
            return 5

    def wait(self, given):
        """Waits until more than so many arrays were asked for; says whether it was cancelled instead."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.asked > given or self.cancelled, PATIENCE)
            return bool(self.cancelled)

    def schema(self, kind, producer=True):
        """Calls on_schema; None for a NULL schema."""
        if producer:
            self.struct.producer = addressof(self.own)
        schema = bs.ArrowSchema()
        if kind is not None and kind != "released":
            kind._export_to_c(addressof(schema))
        code = ON_SCHEMA(self.struct.on_schema)(addressof(self.struct), byref(schema) if kind is not None else None)
        assert not schema.release
        return code

    def task(self, data, extract=True):
        """Calls on_next_task with a task that gives the data."""
        key = max(self.steps, default=0) + 1 + len(self.steps) * 1000
        if extract:
            with self.changed:
                self.steps[key] = data
                self.unextracted += 1
        task = bs.ArrowAsyncTask(address(self._kept[2]) if extract else None, key)
        code = ON_NEXT_TASK(self.struct.on_next_task)(addressof(self.struct), byref(task), b"metadata")
        ctypes.memset(byref(task), 0xAA, ctypes.sizeof(task))
        return code

    def end(self):
        return ON_NEXT_TASK(self.struct.on_next_task)(addressof(self.struct), None, None)

    def error(self, code, text):
        memory = None if text is None else ctypes.create_string_buffer(text)
        ON_ERROR(self.struct.on_error)(addressof(self.struct), code, ctypes.cast(memory, c_char_p) if memory else None, b"more")
        if memory:
            ctypes.memset(memory, 0xEE, len(memory) - 1)

    def release(self):
        RELEASE(self.struct.release)(addressof(self.struct))
        assert not self.struct.release and not self.struct.private_data
        # From here on the producer may be gone.
        ctypes.memset(byref(self.own), 0xEE, ctypes.sizeof(self.own))

    def close(self):
        """Lets go what is left."""
        if self.struct.release:
            self.release()
        streams.release(self.stream)
        self.stream = c_void_p()
        assert not self.complaints, self.complaints
        assert self.unextracted == 0 and not self.steps, "a task was not asked for its array"


@pytest.fixture(autouse=True)
def all_is_let_go(nothing_left):
    """A fixture of every file about asynchronous streams."""
    yield
    assert gone()


def arrays(n):
    """As many arrays, each as long as its number."""
    return [pa.array(range(i), KIND) for i in range(n)]


def empty():
    """A stream of no arrays."""
    kind = support.type_from(KIND)
    made = out("stream_from_arrays", kind, None, 0)
    lib.bowstring_type_release(kind)
    return made


def stream_of(n):
    """A stream of `arrays`."""
    return streams.from_arrays(arrays(n)) if n else empty()


def called(steps):
    """A stream over callbacks, and the callbacks."""
    callbacks, kind = streams.Callbacks(steps, text=True), support.type_from(KIND)
    stream = callbacks.made(kind)
    lib.bowstring_type_release(kind)
    return callbacks, stream


def refused(function, *arguments):
    """The error of a call that has to fail."""
    with pytest.raises(BowstringError) as caught:
        function(*arguments)
    return caught.value


def name_of(error):
    """The name of an error's status."""
    return lib.bowstring_status_name(error.status).decode()


def drained(stream):
    """The lengths of all arrays of a stream."""
    lengths = []
    while (handle := streams.next_of(stream)) is not None:
        lengths.append(len(streams.as_pyarrow(handle, pa.Array)))
    return lengths
