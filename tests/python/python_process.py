"""What needs a process of its own: `python python_process.py NAME` runs one of these functions."""

import atexit
import ctypes
import os
import sys
import threading
from ctypes import byref, c_void_p

import pyarrow as pa

import bowstring_ctypes as bs
import capsules
import python_api
import support
from bowstring_ctypes import INVALID_ARGUMENT, call, lib, live_counts, out
from python_api import address

REQUIRED, OPTIONAL = bs.PYTHON_FUNCTIONS[:6], (*bs.PYTHON_FUNCTIONS[6:], "none", "type_error", *bs.PYTHON_VIEWS)


def refused(api, has):
    error = bs.Error()
    assert lib.bowstring_python_init(byref(api), byref(error)) == INVALID_ARGUMENT
    assert has in error.message.decode(), error.message


def raises(kind, call, *arguments):
    try:
        call(*arguments)
    except kind:
        return
    raise AssertionError(f"expected {kind}")


def builtins_fail():
    """The calls are not there yet, and take nothing."""
    pair = pa.array([1]).__arrow_c_device_array__()
    for call, arguments in (
        (python_api.array_import, (*pair, 0, 0)), (python_api.array_import_raw, (0, 0, 0)),
        (python_api.array_export, (0, 0, 0)), (python_api.array_release, (0,)), (python_api.buffer_release, (0,)),
        (python_api.type_release, (0,)),
    ):
        raises(SystemError, call, *arguments)
    support.release(capsules.taken(pair, capsules.DEVICE_ARRAY))


def live_capsule():
    """A capsule with a schema that counts as a live block."""
    kind = support.type_from(pa.int32())
    struct = capsules.new(capsules.SCHEMA)
    call("type_export", kind, struct)
    lib.bowstring_type_release(kind)
    return python_api.capsule(capsules.SCHEMA, struct), struct


def before_init():
    capsule, struct = live_capsule()
    assert live_counts()["blocks"] == 1
    del capsule
    assert live_counts()["blocks"] == 1
    lib.bowstring_schema_free(struct)
    assert live_counts() == {}
    builtins_fail()
    error = bs.Error()
    assert lib.bowstring_python_init(None, byref(error)) == INVALID_ARGUMENT
    for name in REQUIRED:
        refused(python_api.api(name), "first six")
    for name in OPTIONAL:
        refused(python_api.api(name), "all members")
        refused(python_api.api(*(other for other in OPTIONAL if other != name)), "all members")
    refused(bs.PythonApi(), "first six")
    small = python_api.api()
    small.struct_size -= 8
    refused(small, "struct_size")
    # A refusal decides nothing.
    builtins_fail()
    python_api.init()
    print("done")


def first_six():
    api = python_api.api(*OPTIONAL)
    call("python_init", byref(api))
    capsule, _ = live_capsule()
    del capsule
    assert live_counts() == {}
    builtins_fail()
    call("python_init", byref(api))
    refused(python_api.api(), "others")
    print("done")


def all_members():
    python_api.init()
    python_api.init()
    refused(python_api.api(*OPTIONAL), "others")
    capsule, _ = live_capsule()
    del capsule
    assert live_counts() == {}
    handle = python_api.array_import(*pa.array([1]).__arrow_c_array__(), 0, 0)
    assert isinstance(handle, int) and python_api.array_release(handle) is None
    assert live_counts() == {}
    print("done")


# ---- with a producer in C ----


def set_scope():
    """What the package does when it is imported."""
    names = ("PyGILState_Ensure", "PyGILState_Release", "Py_IsInitialized")
    enter, leave, alive = (address(getattr(ctypes.pythonapi, name)) for name in names)
    call("callback_scope_set", byref(bs.CallbackScope(alive=alive, enter=enter, leave=leave)))


def owned():
    import python_producer

    return python_producer.owned(pa.array([1, 2, 3]))


def let_go():
    """By ctypes, without the lock; by a builtin, with it; by a thread of Python's; by a thread of ours, in a stream."""
    lib.bowstring_array_release(owned())
    python_api.array_release(owned().value)
    python_api.array_export(handle := owned().value, 0, 0)
    python_api.array_release(handle)
    thread = threading.Thread(target=lib.bowstring_array_release, args=(owned(),))
    thread.start()
    thread.join()
    arrays = [owned() for _ in range(4)]
    stream = out("stream_from_arrays", None, (c_void_p * 4)(*(one.value for one in arrays)), 4)
    support.release(*arrays)
    made = out("stream_to_device", byref(stream), bs.Device(1, -1), byref(bs.TransferOptions(depth=2)))
    while True:
        found = c_void_p()
        call("stream_next", made, byref(found))
        if not found.value:
            break
        support.release(found)
    lib.bowstring_stream_release(made)
    assert live_counts() == {}, live_counts()


def lock():
    import python_producer

    python_api.init()
    set_scope()
    python_producer.tell()
    let_go()


def lock_without_scope():
    python_api.init()
    let_go()


def live_at_exit():
    """Capsules where the end of the interpreter finds them at different times, and a few where it never looks."""
    import builtins

    import python_producer

    class Ring:
        pass

    python_api.init()
    python_producer.tell()
    pairs = []
    for _ in range(5):
        handle = owned()
        pairs.append(python_api.array_export(handle.value, 0, 0))
        python_api.array_release(handle.value)
    ring = Ring()
    ring.itself, ring.pair = ring, pairs.pop()
    globals()["kept"] = pairs.pop()
    sys.modules["of_capsules"] = pairs.pop()
    builtins.kept = pairs.pop()
    python_api.builtin.kept = pairs.pop()


def live_at_exit_with_scope():
    set_scope()
    live_at_exit()


def closed_at_exit():
    import python_producer

    python_api.init()
    set_scope()
    python_producer.tell()
    arrays = [owned() for _ in range(5)]

    def end():
        support.release(*arrays[:2])
        # ctypes lets the lock go for the call.
        lib.bowstring_callback_scope_close()
        support.release(*arrays[2:])
        # One callback is the producer's, one pyarrow's.
        print(f"after closing: {live_counts()['leaked_callbacks']} leaked", flush=True)

    atexit.register(end)


def thread_at_exit():
    import python_producer

    python_api.init()
    set_scope()
    atexit.register(lib.bowstring_callback_scope_close)
    python_producer.tell()
    arrays = [owned() for _ in range(3000)]
    stream = out("stream_from_arrays", None, (c_void_p * 3000)(*(one.value for one in arrays)), 3000)
    support.release(*arrays)
    made = out("stream_to_device", byref(stream), bs.Device(1, -1), byref(bs.TransferOptions(depth=3000)))
    found = c_void_p()
    call("stream_next", made, byref(found))
    # Neither the stream nor the array is let go, and the thread goes on.


def fork():
    import python_producer

    python_api.init()
    set_scope()
    arrays = [owned() for _ in range(3)]
    pair = python_api.array_export(arrays[0].value, 0, 0)

    def use(who):
        class Holder:
            def __arrow_c_device_array__(self, requested_schema=None, **_):
                return pair

        record = python_api.Record()
        assert pa.array(Holder()).to_pylist() == [1, 2, 3]
        again = record.checked(python_api.array_export(arrays[1].value, 1, record.address))
        handle = record.checked(python_api.array_import(*again, 0, record.address))
        assert "length 3" in support.text_of_array(c_void_p(handle))
        python_api.array_release(handle)
        python_api.array_release(arrays[1].value)
        support.release(arrays[0], arrays[2])
        print(f"{who}: released {python_producer.counts()[0]}", flush=True)

    child = os.fork()
    if child == 0:
        # What goes wrong must not come back into the parent's code.
        try:
            use("child")
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    use("parent")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
