"""Streams for the tests: producers that do what a script says, and ways to drain what the library makes of them."""

import ctypes
import traceback
from ctypes import CFUNCTYPE, POINTER, addressof, byref, c_char_p, c_int, c_void_p
from dataclasses import dataclass

import pyarrow as pa

import bowstring_ctypes as bs
import support
from bowstring_ctypes import call, lib, out

# Producers whose callbacks may still be called.
_alive, _done = set(), []
STREAMS = {False: bs.ArrowDeviceArrayStream, True: bs.ArrowArrayStream}
ARRAYS = {False: bs.ArrowDeviceArray, True: bs.ArrowArray}


@dataclass
class Fails:
    """A step that returns an error number. What it leaves in `out` is the caller's to release."""

    code: int
    text: bytes | None = b"no more"
    leaves: object = None


@dataclass
class Placed:
    """A step that gives an array on some device: its buffers are never looked at."""

    data: object
    device_type: int
    device_id: int = 0
    event: int | None = None


def export_into(data, at, host, placed=None):
    """Writes pyarrow data into the struct at an address, and leaves everything else in it as it is."""
    if host:
        data._export_to_c(at)
        return
    array = bs.ArrowDeviceArray.from_address(at)
    data._export_to_c(addressof(array.array))
    array.device_type, array.device_id, array.sync_event = placed or (1, -1, None)


def schema_of(data):
    """What pyarrow calls the type of an array or a batch."""
    return data.schema if isinstance(data, pa.RecordBatch) else data.type


class Producer:
    """A stream's struct of somebody else: its steps are arrays or batches of pyarrow, failures, or callables."""

    def __init__(self, steps, kind, host=False, device_type=1, schema=None):
        self.steps, self.kind, self.host, self.schema = list(steps), kind, host, schema
        self.calls, self.complaints, self.released = [], [], 0
        self.text = None
        _alive.add(self)
        # One buffer for every text, so that whoever keeps a pointer to it reads the next one.
        self._memory = ctypes.create_string_buffer(4096)
        struct, array = STREAMS[host], ARRAYS[host]
        kinds = (
            (c_int, POINTER(struct), POINTER(bs.ArrowSchema)),
            (c_int, POINTER(struct), POINTER(array)),
            (c_void_p, POINTER(struct)),
            (None, POINTER(struct)),
        )
        functions = (self._get_schema, self._get_next, self._get_last_error, self._release)
        self._kept = [CFUNCTYPE(*kind)(self._careful(function)) for kind, function in zip(kinds, functions)]
        addresses = [ctypes.cast(one, c_void_p).value for one in self._kept]
        self.struct = struct(*([] if host else [device_type]), *addresses, 7)

    def _careful(self, function):
        def run(*arguments):
            try:
                assert self.released == 0, "called after its release"
                return function(*arguments)
            except BaseException as error:  # noqa: BLE001, an exception ends in the callback
                self.complaints.append(error)
                traceback.print_exc()
                return None if function in (self._release, self._get_last_error) else 5

        return run

    def fail(self, step, out_pointer, export):
        if step.leaves is not None:
            export(step.leaves, out_pointer)
        self.text = step.text
        return step.code

    def _get_schema(self, _, schema):
        self.calls.append("get_schema")
        assert not schema.contents.release, "the struct is not a released one"
        self.text = None
        if isinstance(self.schema, Fails):
            return self.fail(self.schema, schema, lambda data, at: data._export_to_c(addressof(at.contents)))
        if callable(self.schema):
            return self.schema(schema.contents)
        self.kind._export_to_c(addressof(schema.contents))
        return 0

    def _get_next(self, _, array):
        self.calls.append("get_next")
        released = array.contents if self.host else array.contents.array
        assert not released.release, "the struct is not a released one"
        self.text = None
        if not self.steps:
            # Of what ends a stream only the release means anything.
            ctypes.memset(array, 0xAA, ctypes.sizeof(ARRAYS[self.host]))
            released.release = None
            return 0
        step = self.steps.pop(0)
        export = lambda data, at: export_into(data, addressof(at.contents), self.host)
        if isinstance(step, Fails):
            return self.fail(step, array, export)
        if isinstance(step, Placed):
            place = (step.device_type, step.device_id, step.event)
            export_into(step.data, addressof(array.contents), self.host, place)
            return 0
        if callable(step):
            return step(array.contents) or 0
        export(step, array)
        return 0

    def _get_last_error(self, _):
        self.calls.append("get_last_error")
        if self.text is None:
            return None
        ctypes.memset(self._memory, 0xEE, len(self._memory) - 1)
        self._memory[len(self.text)] = b"\0"
        self._memory[: len(self.text)] = self.text
        return addressof(self._memory)

    def _release(self, struct):
        self.calls.append("release")
        assert struct.contents.release
        struct.contents.release = None
        self.released += 1
        ctypes.memset(self._memory, 0xEE, len(self._memory) - 1)
        # Not what runs right now.
        _done.append(self)
        _alive.discard(self)
        del _done[:-8]

    def imported(self):
        """A handle on the stream, which is taken."""
        handle = out("stream_import_host" if self.host else "stream_import", byref(self.struct))
        assert not self.struct.release
        return handle

    def done(self, times=1):
        """The stream was let go, and nobody did anything wrong."""
        assert not self.complaints, self.complaints
        assert self.released == times


class Callbacks:
    """The callbacks of a producer that has no stream's struct."""

    def __init__(self, steps, as_handles=False, device=(0, 0), text=True):
        self.steps, self.released, self.complaints, self.calls = list(steps), 0, [], []
        self._memory = ctypes.create_string_buffer(4096)
        self._text = None
        _alive.add(self)
        self.get_next = bs.GET_NEXT(self._get_next) if not as_handles else bs.GET_NEXT()
        self.get_next_array = bs.GET_NEXT_ARRAY(self._get_next_array) if as_handles else bs.GET_NEXT_ARRAY()
        self.get_last_error = bs.GET_LAST_ERROR(self._get_last_error) if text else bs.GET_LAST_ERROR()
        self.release = bs.RELEASE(self._release)
        self.struct = bs.StreamCallbacks(
            device=bs.Device(*device), ctx=99, get_next=self.get_next, get_next_array=self.get_next_array,
            get_last_error=self.get_last_error, release=self.release,
        )

    def _step(self, ctx, give):
        self.calls.append("get_next")
        try:
            assert ctx == 99 and not self.released
            step = self.steps.pop(0) if self.steps else None
            if isinstance(step, Fails):
                self._text = step.text
                if step.leaves is not None:
                    give(step.leaves)
                return step.code
            if callable(step):
                return step() or 0
            if step is not None:
                give(step)
            return 0
        except BaseException as error:  # noqa: BLE001, an exception ends in the callback
            self.complaints.append(error)
            return 5

    def _get_next(self, ctx, array):
        def give(data):
            if isinstance(data, bs.ArrowDeviceArray):
                ctypes.memmove(array, byref(data), ctypes.sizeof(data))
                data.array.release = None
            else:
                export_into(data, addressof(array.contents), False)

        return self._step(ctx, give)

    def _get_next_array(self, ctx, handle):
        def give(data):
            handle[0] = data.value if isinstance(data, c_void_p) else support.imported(data).value

        return self._step(ctx, give)

    def _get_last_error(self, ctx):
        self.calls.append("get_last_error")
        if self._text is None:
            return None
        self._memory.value = self._text
        return addressof(self._memory)

    def _release(self, ctx):
        if ctx != 99:
            self.complaints.append(ctx)
        self.released += 1
        _done.append(self)
        _alive.discard(self)
        del _done[:-8]

    def made(self, kind):
        """A stream over the callbacks, which are taken."""
        handle = out("stream_from_callbacks", kind, byref(self.struct))
        assert self.struct.ctx is None and not self.struct.release
        return handle

    def done(self):
        """The producer was let go, and nobody did anything wrong."""
        assert not self.complaints, self.complaints
        assert self.released == 1


def from_arrays(arrays, kind=None):
    """A stream of pyarrow data."""
    handles = [support.imported(data) for data in arrays]
    listed = (c_void_p * max(len(handles), 1))(*[handle.value for handle in handles])
    made = None
    try:
        made = out("stream_from_arrays", kind, listed, len(handles))
    finally:
        support.release(*handles)
    return made


def next_of(stream):
    """The next array, or None at the end."""
    handle = c_void_p(0xA5)
    call("stream_next", stream, byref(handle))
    return handle if handle.value else None


def drained(stream):
    """All arrays of a stream; the stream is asked twice for its end."""
    found = []
    while (handle := next_of(stream)) is not None:
        found.append(handle)
    assert next_of(stream) is None
    return found


def release(*streams):
    """Lets streams go."""
    for stream in streams:
        lib.bowstring_stream_release(stream)


def as_pyarrow(handle, kind=pa.RecordBatch):
    """An array handle as pyarrow data; the handle is let go."""
    data = support.to_pyarrow(*support.exported(handle), kind)
    support.release(handle)
    return data


def kind_of(stream):
    """A type handle of its own."""
    return c_void_p(lib.bowstring_type_retain(lib.bowstring_stream_type(stream)))


class Exported:
    """A stream's struct of the library, called as a consumer calls it: with memory that was never initialised."""

    def __init__(self, stream, host=False, sync=None):
        self.host = host
        self.struct = STREAMS[host]()
        ctypes.memset(byref(self.struct), 0xAA, ctypes.sizeof(self.struct))
        if host:
            call("stream_export_host", byref(stream), sync, byref(self.struct))
        else:
            call("stream_export", byref(stream), byref(self.struct))
        assert not stream.value

    def _call(self, name, kind, *arguments):
        function = CFUNCTYPE(*kind)(getattr(self.struct, name))
        return function(addressof(self.struct), *arguments)

    def schema(self):
        """What get_schema says, and its number."""
        schema = bs.ArrowSchema()
        ctypes.memset(byref(schema), 0xAA, ctypes.sizeof(schema))
        code = self._call("get_schema", (c_int, c_void_p, c_void_p), addressof(schema))
        return code, schema

    def next(self):
        """What get_next says, and its number."""
        array = ARRAYS[self.host]()
        ctypes.memset(byref(array), 0xAA, ctypes.sizeof(array))
        code = self._call("get_next", (c_int, c_void_p, c_void_p), addressof(array))
        return code, array

    def text(self):
        """What get_last_error says."""
        found = self._call("get_last_error", (c_char_p, c_void_p))
        return found and found.decode()

    def release(self):
        """Releases the struct, once for good."""
        release_of = "host_stream" if self.host else "device_stream"
        getattr(lib, f"bowstring_{release_of}_release")(byref(self.struct))
        assert not self.struct.release
        getattr(lib, f"bowstring_{release_of}_release")(byref(self.struct))
