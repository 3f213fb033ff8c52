"""The interpreter's lock, its end, forks and threads, each in a process of its own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "tests/python/python_producer.c"
COMMON = """
import ctypes, os, sys, threading, gc
import bowstring as bs
import pyarrow as pa
from bowstring import _c
from bowstring._library import address_of, lib, made

producer = ctypes.CDLL(os.environ["PRODUCER"])
producer.producer_start.argtypes = [ctypes.c_void_p] * 3
producer.producer_start(*(address_of(getattr(ctypes.pythonapi, name)) for name in (
    "PyGILState_Check", "PyErr_Occurred", "PyErr_SetString")))


def owned(values=(1, 2, None)):
    # The producer's release aborts the process when the interpreter's lock is not held.
    array = bs.array(pa.array(values))
    release = _c.RELEASE(address_of(producer.producer_release))
    return bs.Array._of(made(lib.bowstring_array_with_owner, array._handle, 1, release), "producer")
"""


@pytest.fixture(scope="module")
def producer(tmp_path_factory):
    """The library with a producer whose release looks at the interpreter, compiled."""
    made = tmp_path_factory.mktemp("producer") / "libproducer.so"
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, SOURCE, "-o", made], check=True)
    return made


@pytest.fixture
def run(producer):
    """Runs a program; gives what it printed."""

    def run(program, status=0):
        finished = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", COMMON + textwrap.dedent(program)], capture_output=True, text=True,
            env={**os.environ, "PRODUCER": str(producer)}, timeout=120,
        )
        assert finished.returncode == status, finished.stdout + finished.stderr
        return finished.stdout.strip()

    return run


def test_a_release_has_the_lock(run):
    assert run("""
        array = owned(); del array
        array = owned(); child = bs.array(array); del array, child
        buffer = owned().buffers[1]; del buffer
        capsules = owned().__arrow_c_device_array__(); del capsules
        pa.array(owned())
        thread = threading.Thread(target=owned); thread.start(); thread.join()
        gc.collect()
        print(producer.producer_released(), bs.live_counts())
    """) == "6 {}"


def test_threads_of_the_library_take_the_lock(run):
    out = run("""
        stream = bs.Stream.from_arrays([owned() for _ in range(8)]).to_device("cpu", depth=3, share=False)
        print([len(array) for array in stream])
        stream.close()
        print(producer.producer_released(), producer.producer_released_elsewhere() > 0, bs.live_counts())
    """)
    assert out == "[3, 3, 3, 3, 3, 3, 3, 3]\n8 True {}"


def test_a_python_producer_ahead_of_its_consumer(run):
    # Both sides need the lock: the thread for the generator, and whoever lets the stream go.
    assert run("""
        batch = pa.record_batch({"a": [1, 2]})
        def batches():
            while True:
                yield batch
        def ahead():
            reader = pa.RecordBatchReader.from_batches(batch.schema, batches())
            return bs.stream(reader).to_device("cpu", depth=2, share=False)
        stream = ahead()
        assert [len(stream.read()) for _ in range(5)] == [2] * 5
        stream.close()
        taken = pa.RecordBatchReader.from_stream(ahead())
        assert taken.read_next_batch().num_rows == 2
        del taken                              # pyarrow lets the stream go with the lock held
        capsule = ahead().__arrow_c_device_stream__()
        del capsule                            # and so does a capsule
        gc.collect()
        print(bs.live_counts())
    """) == "{}"


def test_streams_that_are_ahead_when_the_interpreter_ends(run):
    assert run("""
        batch = pa.record_batch({"a": [1, 2]})
        def batches():
            while True:
                yield batch
        reader = pa.RecordBatchReader.from_batches(batch.schema, batches())
        kept = bs.stream(reader).to_device("cpu", depth=2, share=False)
        sys.modules["kept"] = kept
        print(len(kept.read()))
    """) == "2"


def test_arrays_that_are_alive_when_the_interpreter_ends(run):
    assert run("""
        import builtins
        class Ring: pass
        ring = Ring(); ring.ring = ring; ring.array = owned()
        sys.modules["kept"] = owned()
        builtins.kept = [owned(), owned().__arrow_c_device_array__(), owned().buffers, owned().type]
        producer.producer_tell()
        print("end", flush=True)
    """).splitlines()[0] == "end"


def test_a_daemon_thread_at_the_end(run):
    assert run("""
        def work():
            while True:
                owned()[1:].buffers
        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        while producer.producer_released() < 50:
            pass
        print("end", flush=True)
    """) == "end"


def test_forks(run):
    out = run("""
        arrays = [owned() for _ in range(3)]
        stream = bs.Stream.from_arrays(arrays)
        busy = True
        def work():
            while busy:
                owned()[1:].buffers
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                busy = False
                assert [len(array) for array in stream] == [3, 3, 3]
                del arrays[:]
                stream.close()
                assert pa.array(bs.array([1, None])).to_pylist() == [1, None]
                sys.exit(7)                    # with the atexit functions
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 7, status
        busy = False
        for thread in threads: thread.join()
        print("done")
    """)
    assert out == "done"


def test_threads_share_an_array(run):
    assert run("""
        array, failed = owned(range(1000)), []
        def work(k):
            try:
                for _ in range(200):
                    part = array[k:]
                    assert len(part) == 1000 - k and part.buffers[1].bufsize == 8000
                    pa.array(part)
            except BaseException as error:
                failed.append(error)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        del array
        gc.collect()
        print(failed, producer.producer_released(), bs.live_counts())
    """) == "[] 1 {}"


def test_a_stream_is_closed_while_it_is_read(run):
    # A producer that waits: close() cancels what it can, and lets go when the reader has left.
    assert run("""
        began, may_go = threading.Event(), threading.Event()
        batch = pa.record_batch({"a": [1, 2]})
        def batches():
            yield batch
            began.set()
            may_go.wait()
            yield batch
        stream = bs.stream(pa.RecordBatchReader.from_batches(batch.schema, batches()))
        read, refused = [], []
        def work():
            try:
                for array in stream:
                    read.append(len(array))
            except bs.Cancelled:
                read.append("cancelled")
        thread = threading.Thread(target=work); thread.start()
        began.wait()
        for call in (stream.read, stream.collect, lambda: stream.select(["a"]), stream.__arrow_c_stream__):
            try:
                call()
            except ValueError as error:
                refused.append(str(error))
        stream.close()
        may_go.set()
        thread.join()
        assert len(refused) == 4, refused
        try:
            stream.read()
        except ValueError as error:
            print(error)
        gc.collect()
        print(read, bs.live_counts())
    """) == "expected a stream, found one that was closed or handed on\n[2, 'cancelled'] {}"


def test_a_stream_is_closed_by_its_own_producer(run):
    assert run("""
        batch = pa.record_batch({"a": [1, 2]})
        def batches():
            yield batch
            stream.close()
            yield batch
        stream = bs.stream(pa.RecordBatchReader.from_batches(batch.schema, batches()))
        print(len(stream.read()))
        for _ in range(2):
            try:
                stream.read()
            except (ValueError, bs.Cancelled) as error:
                print(error)
        gc.collect()
        print(bs.live_counts())
    """) == "2\nbatch 1: expected a stream to go on, found that it was cancelled\nexpected a stream, found one that was closed or handed on\n{}"


@pytest.mark.parametrize("first", [True, False])
def test_a_subinterpreter_is_told_no(first):
    """Whether or not the main interpreter has the package already, which works there afterwards."""
    program = f"""
        import importlib
        for name in ("_interpreters", "_xxsubinterpreters"):
            try:
                interpreters = importlib.import_module(name)
                break
            except ImportError:
                pass
        if {first}:
            import bowstring
        other = interpreters.create()
        tried = "try: import bowstring\\nexcept ImportError as error: print(error, flush=True)"
        assert interpreters.run_string(other, tried) is None
        interpreters.destroy(other)
        import bowstring
        array = bowstring.array([1, 2])
        print(len(array))
        del array
        assert not bowstring.live_counts()
    """
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    lines = found.stdout.splitlines()
    assert (found.returncode, lines[1:]) == (0, ["2"]), found.stdout + found.stderr
    # Some versions of CPython refuse ctypes there, in words of their own.
    assert "subinterpreter" in lines[0], lines
