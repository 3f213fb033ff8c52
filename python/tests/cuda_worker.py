"""What the tests of looking and moving ask of arrays on a device, in a process with the simulated CUDA driver."""

import copy
import gc
import pickle
import sys
from ctypes import byref
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "python"))

import cuda_sim  # noqa: E402

sim = cuda_sim.Sim()

import pyarrow as pa  # noqa: E402
from moving_cases import ours, theirs  # noqa: E402

import bowstring  # noqa: E402
from bowstring import _c  # noqa: E402
from bowstring._library import lib  # noqa: E402

COLUMN = pa.array([["x" * (i % 20)] * (i % 3) if i % 4 else None for i in range(100)])


def looking():
    """Looking at an array, a buffer and a stream while the device works calls no driver and waits for nothing."""
    with sim.current():
        queue = sim.stream()
        with sim.blocked(queue):
            array = ours(COLUMN).to_device("cuda:0", stream=queue)
            buffer = array.buffer(1)
            stream = bowstring.Stream.from_arrays([array])
            assert sim.pending(queue) > 0 and array.sync_event
            before = sim.calls()
            assert before > 0
            said = [repr(array), array._repr_html_(), repr(buffer), repr(stream), repr(array.type), 
                    repr(array[1:].child(0)), str(array.nbytes), str(sys.getsizeof(array))]
            assert sim.calls() == before, sim.log_text()
            assert sim.pending(queue) > 0
        assert all("cuda:0" in text for text in said[:4]), said
        assert f"after event 0x{array.sync_event:x}" in said[0] and f"0x{buffer.ptr:x}" in said[0]
        sim.wait_idle()
        stream.close()
        del array, buffer, stream
        gc.collect()
        sim.call("cuStreamDestroy_v2", queue)


def moving():
    """Pickles of device memory come back on the CPU, copies stay on the device."""
    array = ours(COLUMN).to_device("cuda:0")
    for window, expected in ((array, COLUMN), (array[7:20], COLUMN.slice(7, 13))):
        buffers = []
        data = pickle.dumps(window, protocol=5, buffer_callback=buffers.append)
        back = pickle.loads(data, buffers=buffers)
        assert back.device.is_cpu and theirs(back).equals(expected)
        assert sum(buffer.raw().nbytes for buffer in buffers) <= expected.nbytes + 20
        deep = copy.deepcopy(window)
        assert str(deep.device) == "cuda:0" and deep.buffer(1).ptr != array.buffer(1).ptr
        assert theirs(deep.to_device("cpu")).equals(expected)
    back = pickle.loads(pickle.dumps(array.buffer(1)))
    assert back.device.is_cpu and back.read() == array.buffer(1).read()
    del array, window, deep, back
    gc.collect()


if __name__ == "__main__":
    {"looking": looking, "moving": moving}[sys.argv[1]]()
    gc.collect()
    lib.bowstring_device_collect(_c.Device(2, 0), True, byref(_c.c_size_t()), None)
    assert not sim.faults(), sim.faults()
    assert not bowstring.live_counts(), bowstring.live_counts()
    print("done")
