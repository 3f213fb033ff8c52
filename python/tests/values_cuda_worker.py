"""What the tests of values, parts and checks ask of memory of CUDA, in a process with the simulated CUDA driver."""

import gc
import sys
import types
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "python"))

import cuda_sim  # noqa: E402

sim = cuda_sim.Sim()

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

import bowstring  # noqa: E402
from bowstring import _pyarrow  # noqa: E402
from bowstring._device import device_of, struct_of  # noqa: E402
from bowstring._library import call, lib  # noqa: E402
from bowstring import CopyNeeded, InvalidArgument, from_buffers  # noqa: E402

NUMBERS = pa.array([1, None, 3, 4] * 5, pa.int16())
TEXT = pa.array(["ab", None, "", "longer than twelve bytes"] * 5)


def here(array):
    """The array in CPU memory, as pyarrow has it."""
    return pa.array(array.to_device("cpu"))


def values():
    """Validity, indices and strings stay on the device, and are the right ones."""
    array = bowstring.array(NUMBERS).to_device("cuda:0")
    valid = array.slice(3).is_valid()
    assert str(valid.device) == "cuda:0"
    assert valid.to_device("cpu").to_numpy().tolist() == NUMBERS[3:].is_valid().to_pylist()
    none = bowstring.array(pa.array([1, 2])).to_device("cuda:0").is_valid()
    assert str(none.device) == "cuda:0" and none.to_device("cpu").to_numpy().tolist() == [True, True]
    text = bowstring.array(TEXT).to_device("cuda:0")
    calls = sim.calls()
    found = text.slice(2).string_buffers()
    bitmap = text.slice(2).validity
    assert sim.calls() == calls, sim.log_text()
    assert str(found.offsets.device) == "cuda:0" and bitmap.offset == 2
    assert found.offsets.__cuda_array_interface__["data"] == (text.buffers[1].ptr + 8, True)
    whole = text.resolve_sizes().string_buffers(copy=True)
    assert str(whole.data.device) == "cuda:0"
    assert whole.data.buffer.read() == TEXT.buffers()[2].to_pybytes()[: len(whole.data)]
    codes = bowstring.array(TEXT.dictionary_encode()).to_device("cuda:0").codes
    assert str(codes.device) == "cuda:0" and here(codes).to_pylist() == TEXT.dictionary_encode().indices.to_pylist()
    for refused in (array.to_numpy, array.to_awkward):
        try:
            refused()
        except (InvalidArgument, ImportError) as error:
            assert "to_device" in str(error) or "CuPy" in str(error)
        else:
            raise AssertionError("expected a refusal")


def pinned():
    """Pinned memory is the CPU's to read, in place, when the work on it is done."""
    array = bowstring.array(pa.array([1, 2, 3])).to_device("cuda_host:0", share=False)
    assert str(array.device) == "cuda_host:0"
    found = array.to_numpy(copy=False)
    assert found.tolist() == [1, 2, 3] and found.__array_interface__["data"][0] == array.buffers[-1].ptr
    awkward = array.to_awkward(copy=False)
    assert awkward.to_list() == [1, 2, 3]
    assert awkward.layout.data.__array_interface__["data"][0] == array.buffers[-1].ptr


def cupy():
    """CuPy's queue waits for the array's event, and only then is the tensor given."""
    with sim.current():
        queue, work = sim.stream(), sim.stream()

        def from_dlpack(source):
            assert source.__dlpack_device__() == (2, 0)
            return source.__dlpack__(stream=queue, max_version=(1, 0))

        module = types.ModuleType("cupy")
        module.from_dlpack = from_dlpack
        sys.modules["cupy"] = module
        array = bowstring.array(pa.array([1.5, 2.5])).to_device("cuda:0", stream=work)
        assert array.sync_event
        before = sim.calls("cuStreamWaitEvent")
        capsule = array.to_cupy()
        assert sim.calls("cuStreamWaitEvent") == before + 1, sim.log_text()
        sim.wait_idle()
        try:
            bowstring.array(pa.array([True])).to_device("cuda:0").to_cupy(copy=False)
        except CopyNeeded:
            pass
        del capsule, array
        gc.collect()
        sim.wait_idle()
        for one in (queue, work):
            sim.call("cuStreamDestroy_v2", one)
    del sys.modules["cupy"]


def parts():
    """Arrays taken apart while work is pending carry their event; memory behind a queue gets one."""
    with sim.current():
        queue = sim.stream()
        with sim.blocked(queue):
            array = bowstring.array(NUMBERS).to_device("cuda:0", stream=queue)
            parts = array.to_buffers()
            again = from_buffers(*parts)
            assert array.sync_event and again.sync_event and all(b.sync_event for b in parts.buffers)
            recorded = sim.calls("cuEventRecord")
            behind = from_buffers(*parts, stream=queue)
            assert sim.calls("cuEventRecord") == recorded + 1 and behind.sync_event
            data = parts.buffers[1]
            loose = bowstring.Buffer.from_address(data.ptr, data.bufsize, data, "cuda:0")
            recorded = sim.calls("cuEventRecord")
            known = from_buffers("int16", len(NUMBERS), [None, Interface(loose, queue)])
            assert sim.calls("cuEventRecord") == recorded + 1 and known.sync_event
        sim.wait_idle()
        assert here(again).equals(NUMBERS) and here(behind).equals(NUMBERS)
        del array, parts, again, behind, data, loose, known
        gc.collect()
        sim.wait_idle()
        sim.call("cuStreamDestroy_v2", queue)


def frames():
    """Buffers of the dataframe protocol, which has no events, are given when the work on them is done."""
    with sim.current():
        queue = sim.stream()
        batch = pa.StructArray.from_arrays([NUMBERS, TEXT], ["n", "s"])
        for name, place in (("n", "cuda:0"), ("s", "cuda:0"), ("n", "cuda_host:0")):
            sim.enqueue_delay(queue, 100)
            array = bowstring.array(batch).to_device(place, stream=queue, share=False)
            column = array.__dataframe__(allow_copy=False).get_column_by_name(name)
            assert sim.pending(queue) and column.size() == 20
            found = column.get_buffers()
            assert not sim.pending(queue)
            data, (mask, _) = found["data"][0], found["validity"]
            assert str(data.device) == str(mask.device) == place
            assert data.__dlpack_device__() == (2 if place == "cuda:0" else 3, 0)
            size = 40 if name == "n" else 26 * 5
            assert data.bufsize >= size and data.read(0, size) == batch.field(name).buffers()[-1].to_pybytes()[:size]
            again = bowstring.array(array.__dataframe__(), via="__dataframe__", copy=False)
            assert str(again.device) == place
            assert [b.ptr for b in again[name].buffers] == [b.ptr for b in array[name].buffers]
            assert here(again[name]).equals(batch.field(name))
        # Not what is unwanted: the types of columns wait for nobody.
        with sim.blocked(queue):
            array = bowstring.array(batch).to_device("cuda:0", stream=queue)
            said = [(column.dtype[2], column.size(), column.offset) for column in array.__dataframe__().get_columns()]
            assert said == [("s", 20, 0), ("u", 20, 0)]
        sim.wait_idle()
        del array, column, found, data, mask, again
        gc.collect()
        # What was let go while work was under way goes now.
        for place in ((2, 0), (3, 0)):
            call(lib.bowstring_device_collect, struct_of(device_of(place)), True, None)
        sim.call("cuStreamDestroy_v2", queue)


class Interface:
    """A producer with the CUDA array interface, whose work is on a queue."""

    def __init__(self, buffer, queue):
        self.buffer = buffer
        self.__cuda_array_interface__ = {
            "shape": (buffer.bufsize,), "typestr": "|u1", "data": (buffer.ptr, True), "version": 3, "strides": None,
            "stream": getattr(queue, "value", queue),
        }

    def __dlpack_device__(self):
        return 2, 0


def checks():
    """What the buffers of a device hold is checked by a copy of it."""
    array = bowstring.array(TEXT).to_device("cuda:0")
    assert [finding for finding in array.check() if finding.severity == "error"] == []
    assert [finding for finding in array.check("cudf_device") if finding.severity == "error"] == []
    offsets = np.array([0, 3, 1, 4], "i4")
    broken = from_buffers("list<int8>", [3, 4], [None, offsets, None, b"abcd"]).to_device("cuda:0")
    errors = [finding for finding in broken.check() if finding.severity == "error"]
    assert [(finding.rule, finding.row) for finding in errors] == [("B1", 1)]


if __name__ == "__main__":
    known = {"values": values, "pinned": pinned, "cupy": cupy, "parts": parts, "frames": frames, "checks": checks}
    known[sys.argv[1]]()
    # The types of batches are kept for the next ones.
    _pyarrow._seen.clear()
    _pyarrow.lanes.clear()
    gc.collect()
    assert not bowstring.live_counts(), bowstring.live_counts()
    print("done")
