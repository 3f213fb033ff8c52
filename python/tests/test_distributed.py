"""Arrays in Dask: its serialisation by frames without a copy, and a cluster of two processes."""

import gc
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path

import dask_worker as work
import pyarrow as pa
import pytest
from moving_cases import columns, on, ours, theirs

import bowstring
from bowstring._distributed import from_frames, register, to_frames
from bowstring._pickle import buffer_of

HERE = Path(__file__).resolve().parent
ROWS, PARTITIONS = 6000, 8


def test_importing_imports_no_dask():
    code = "import sys, bowstring, pickle; pickle.dumps(bowstring.Type('int8'));"
    code += "print({m.partition('.')[0] for m in sys.modules} & {'dask', 'distributed', 'numpy', 'pyarrow'})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize("first", ["distributed", "bowstring"])
def test_known_in_either_order(first):
    pytest.importorskip("distributed", reason="skipped: distributed is not installed")
    second = "bowstring" if first == "distributed" else "distributed"
    code = f"""
import sys
import {first}, {second}
from distributed.protocol import serialize, deserialize
import bowstring, inspect
assert not [finder for finder in sys.meta_path if "bowstring" in type(finder).__module__]
assert "def serialize(" in inspect.getsource(sys.modules["distributed.protocol.serialize"]), "it is its own loader"
array = bowstring.array([1, None, 3])
header, frames = serialize(array)
assert header["serializer"] == "dask", header
print(deserialize(header, frames).source)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "pickle\n", run.stderr


def test_what_arrives_first_is_taken():
    """A process whose first array comes from another one."""
    pytest.importorskip("distributed", reason="skipped: distributed is not installed")
    from distributed.protocol import serialize

    header, frames = serialize(ours(pa.array([1, None])))
    code = """
import sys, pickle
import bowstring
from distributed.protocol import deserialize
print(deserialize(*pickle.load(sys.stdin.buffer)).null_count)
"""
    data = pickle.dumps((header, [bytes(frame) for frame in frames]))
    for program in (code, code.replace("import bowstring\n", "")):
        run = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True)
        assert run.stdout == b"1\n", run.stderr


def test_without_distributed(tmp_path):
    """Its absence is no fault, and a failed import can be tried again."""
    (tmp_path / "distributed").mkdir()
    (tmp_path / "distributed" / "__init__.py").write_text("")
    (tmp_path / "distributed" / "protocol").mkdir()
    (tmp_path / "distributed" / "protocol" / "__init__.py").write_text("")
    broken = "import builtins\nif not hasattr(builtins, 'mended'): raise ImportError('broken')\n"
    working = """
class Known(dict):
    def register(self, cls): return lambda function: self.setdefault(cls, function)
dask_serialize, dask_deserialize = Known(), Known()
"""
    (tmp_path / "distributed" / "protocol" / "serialize.py").write_text(broken + working)
    code = """
import builtins, bowstring
for _ in range(2):
    try:
        import distributed.protocol.serialize
    except ImportError as error:
        print(error)
builtins.mended = True
import distributed.protocol.serialize as mended
print([kind.__name__ for kind in mended.dask_serialize], len(mended.dask_deserialize))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert run.stdout == "broken\nbroken\n['Array'] 1\n", run.stderr


def test_frames_are_not_copied():
    pytest.importorskip("distributed", reason="skipped: distributed is not installed")
    from distributed.protocol import deserialize, serialize

    register()
    for name, column in columns():
        for expected in (column, column.slice(5, 11)):
            array = ours(expected)
            header, frames = serialize(array)
            assert header["serializer"] == "dask", name
            places = {buffer_of(frame).ptr for frame in frames}
            moved = deserialize(header, frames)
            assert theirs(moved).equals(expected) and moved.type == array.type, name
            assert places <= {moved.buffer_view(index).ptr for index in range(moved._counts()[1])}, name
    whole = ours(pa.array(range(1000)))
    _, frames = serialize(whole)
    assert [buffer_of(frame).ptr for frame in frames] == [whole.buffer(1).ptr]
    nested = deserialize(*serialize({"a": [whole, whole[:3]], "b": 1}))
    assert len(nested["a"][0]) == 1000 and theirs(nested["a"][1]).to_pylist() == [0, 1, 2] and nested["b"] == 1


def test_frames_as_they_arrive():
    array = ours(pa.array([["x", None], None, ["yy"]]))
    header, frames = to_frames(array)
    header = pickle.loads(pickle.dumps(header))
    arrived = [memoryview(bytearray(frame)) for frame in frames]
    moved = from_frames(header, arrived)
    assert theirs(moved).to_pylist() == [["x", None], None, ["yy"]]
    with pytest.raises(bowstring.BowstringError):
        from_frames(header, [frame[:1] for frame in arrived])
    with pytest.raises(bowstring.Unsupported):
        to_frames(on("rocm:0", array))


def test_other_objects_still_travel(monkeypatch):
    pytest.importorskip("distributed", reason="skipped: distributed is not installed")
    from distributed.protocol import deserialize, serialize

    array = ours(pa.array([1, 2]))
    for value in (array.buffer(1), array.type):
        header, frames = serialize(value)
        assert header["serializer"] == "pickle"
        back = deserialize(header, frames)
        assert back == value if isinstance(value, bowstring.Type) else back.read() == value.read()
    # The log would keep the failure, and with it the stream.
    monkeypatch.setattr(logging.getLogger("distributed.protocol.pickle"), "disabled", True)
    stream = bowstring.Stream.from_arrays([array])
    with pytest.raises(TypeError, match="Could not serialize"):
        serialize(stream, on_error="raise")


def test_dask_weighs_arrays_by_their_bytes():
    sizeof = pytest.importorskip("dask.sizeof", reason="skipped: dask is not installed").sizeof
    array = ours(pa.array(range(10_000)))
    assert 80_000 <= sizeof(array) < 81_000 and 8000 <= sizeof(array[:1000]) < 9000
    assert 80_000 <= sizeof(array.buffer(1)) < 81_000


@pytest.fixture
def cluster(monkeypatch):
    """Two workers, each a process of its own."""
    distributed = pytest.importorskip("distributed", reason="skipped: distributed is not installed")
    folders = [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, silence_logs=50,
        memory_limit=0,
    ) as made, distributed.Client(made, timeout=120) as client:
        client.wait_for_workers(2, timeout=120)
        yield client


def test_map_and_reduce_on_two_processes(cluster):
    one, two = sorted(cluster.scheduler_info()["workers"])
    assert len(set(cluster.run(os.getpid).values()) | {os.getpid()}) == 3
    expected = [work.made(seed, ROWS) for seed in range(PARTITIONS)]
    size = sum(column.nbytes for column in expected)
    assert size > 1_500_000

    # Every other partition is made on the second worker.
    where = [[two if seed % 2 else one] for seed in range(PARTITIONS)]
    parts = [cluster.submit(work.partition, seed, ROWS, workers=where[seed], pure=False) for seed in range(PARTITIONS)]
    told = cluster.gather([cluster.submit(work.summary, part, workers=at) for part, at in zip(parts, where)])
    assert told == [work.summary(bowstring.array(column)) for column in expected]
    summaries = [cluster.submit(work.summary, part, workers=at) for part, at in zip(parts, where)]
    total = cluster.submit(work.added, summaries).result(timeout=120)
    assert total == work.added(told) and total[0] == ROWS * PARTITIONS

    # The reduction takes the odd partitions from the second worker to the first: that, and little more, is on the wire.
    cluster.run(work.count_bytes)
    before = cluster.run(work.sent)
    whole = cluster.submit(work.joined, parts, workers=[one], pure=False)
    cluster.submit(len, whole, workers=[one]).result(timeout=120)
    after = cluster.run(work.sent)
    moved = sum(column.nbytes for column in expected[1::2])
    on_the_wire = after[two] - before[two]
    assert moved <= on_the_wire <= moved * 1.02 + 20_000, (on_the_wire, moved)
    assert after[one] - before[one] < 50_000

    # Half a partition is half the bytes.
    halves = cluster.map(work.tail, parts[1::2], workers=[two], pure=False)
    before = cluster.run(work.sent)
    back = cluster.gather(halves)
    on_the_wire = cluster.run(work.sent)[two] - before[two]
    assert moved * 0.45 <= on_the_wire <= moved * 0.55 + 20_000, (on_the_wire, moved)
    for column, half in zip(expected[1::2], back):
        assert work.values(half).equals(column.slice(ROWS // 2))

    array, sources = whole.result(timeout=120)
    assert sources == ["__arrow_c_device_array__", "pickle"] * (PARTITIONS // 2)
    assert work.values(array).equals(pa.chunked_array(expected).combine_chunks())

    # From here to the workers, and nothing is left there.
    sent = cluster.scatter([bowstring.array(column) for column in expected], broadcast=False)
    assert cluster.gather(cluster.map(work.summary, sent, pure=False)) == told
    del parts, summaries, whole, halves, sent, back, half, array
    gc.collect()
    for _ in range(100):
        left = cluster.run(work.alive)
        if not any(left.values()):
            break
    assert not any(left.values()), left
