"""Memory of the simulated CUDA driver, through each protocol for it.

Run by test_consume_cuda.py in a process of its own.
"""

import gc
import struct
import sys

import bowstring
import pytest
from bowstring._device import Device, struct_of
from bowstring._library import call, lib

if "BOWSTRING_CUDA_SIM" not in __import__("os").environ:
    pytest.skip("no simulated driver", allow_module_level=True)

sys.path.insert(0, str(__import__("pathlib").Path(__file__).parents[2] / "tests" / "python"))
import cuda_sim  # noqa: E402: found by the path

sim = cuda_sim.Sim()
LEGACY_QUEUE, PER_THREAD = 1, 2
VALUES = list(range(8))


class Interface:
    """An object with a CUDA array interface and nothing else."""

    def __init__(self, data, shape=(8,), typestr="<i8", **more):
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": (data, False), "version": 3, **more
        }


class Memory:
    """Memory and queues on a device."""

    def __init__(self, ordinal):
        self.ordinal = ordinal
        self.numbers = sim.allocate(64)
        sim.poke(self.numbers, struct.pack("8q", *VALUES))
        self.queue, self.other = sim.stream(), sim.stream()
        self.more = []

    def bytes(self, data):
        """Memory with these bytes."""
        there = sim.allocate(len(data))
        sim.poke(there, data)
        self.more.append(there)
        return there

    def free(self):
        for there in (self.numbers, *self.more):
            sim.call("cuMemFree_v2", there)
        for queue in (self.queue, self.other):
            sim.call("cuStreamDestroy_v2", queue)


@pytest.fixture(params=[0, 1])
def device(request):
    """A device, all of whose work is done afterwards, without a fault and with nothing left."""
    with sim.current(request.param):
        made = Memory(request.param)
        sim.log_clear()
        yield made
        gc.collect()
        sim.wait_idle()
        # What was let go while work was under way goes now.
        call(lib.bowstring_device_collect, struct_of(Device(2, request.param)), True, None)
        made.free()
    assert sim.forget_faults() == []
    # The library keeps a queue of its own for each device.
    live = sim.live()
    assert (live["events"], live["device_memory"], live["pending"]) == (0, 0, 0)


def address(queue):
    """A queue as the log has it."""
    return queue


def recorded():
    """The queues on which events were recorded, and what waited for them, since the log was emptied."""
    events = [(entry.arguments["event"], entry.stream or 0) for entry in sim.log("cuEventRecord")]
    waits = [(entry.arguments["event"], entry.stream or 0) for entry in sim.log("cuStreamWaitEvent")]
    return events, waits


def on_host(array):
    """The values of numbers, copied by the library."""
    return list(struct.unpack("8q", array.to_device("cpu").buffer(1).read()))


# CUDA's array interface in.


def test_the_device_is_found_and_nothing_waits(device):
    array = bowstring.array(Interface(device.numbers), copy=False)
    assert (array.source, tuple(array.device)) == ("__cuda_array_interface__", (2, device.ordinal))
    assert (array.buffer(1).ptr, array.sync_event) == (device.numbers, 0)
    assert recorded() == ([], [])
    assert {entry.function for entry in sim.log()} == {"cuPointerGetAttribute"}
    assert on_host(array) == VALUES


def test_an_event_on_the_producers_queue(device):
    with sim.blocked(device.queue):
        array = bowstring.array(Interface(device.numbers, stream=device.queue))
        events, waits = recorded()
        assert [queue for _, queue in events] == [address(device.queue)] and waits == []
        assert array.sync_event
        # Whoever wants the data in CPU memory has to wait.
        with pytest.raises(bowstring.SyncRequired):
            array.buffer(1).read(stream=None)
    assert on_host(array) == VALUES


@pytest.mark.parametrize("queue", [LEGACY_QUEUE, PER_THREAD])
def test_queues_by_number(device, queue):
    array = bowstring.array(Interface(device.numbers, stream=queue))
    assert [found for _, found in recorded()[0]] == [address(queue)]
    assert on_host(array) == VALUES


def test_our_queue_waits_for_the_producers(device):
    with sim.blocked(device.queue):
        array = bowstring.array(Interface(device.numbers, stream=device.queue), stream=device.other)
        events, waits = recorded()
        assert [queue for _, queue in events] == [address(device.queue)]
        assert waits == [(events[0][0], address(device.other))]
    assert array.sync_event


@pytest.mark.parametrize("queue", [0, -1])
def test_queues_that_are_forbidden(device, queue):
    with pytest.raises(bowstring.InvalidData, match=f"found {queue}, which the interface forbids"):
        bowstring.array(Interface(device.numbers, stream=queue))


def test_strides_and_copies(device):
    array = bowstring.array(Interface(device.numbers, shape=(2, 4)), copy=False)
    assert (str(array.type), array.buffers[-1].ptr) == ("fixed_size_list<int64, 4>", device.numbers)
    with pytest.raises(bowstring.CopyNeeded):
        bowstring.array(Interface(device.numbers, shape=(4,), strides=(16,)), copy=False)
    every_other = bowstring.array(Interface(device.numbers, shape=(4,), strides=(16,), stream=device.queue))
    assert tuple(every_other.device) == (2, device.ordinal)
    assert every_other.to_device("cpu").buffer(1).read() == struct.pack("4q", 0, 2, 4, 6)
    copied = bowstring.array(Interface(device.numbers), copy=True)
    assert copied.buffer(1).ptr != device.numbers
    assert on_host(copied) == VALUES


def test_memory_of_no_bytes(device):
    array = bowstring.array(Interface(0, shape=(0,)))
    assert (len(array), array.device.type) == (0, 2)


def test_memory_that_is_not_cudas(device):
    numbers = (__import__("ctypes").c_int64 * 8)(*VALUES)
    with pytest.raises(bowstring.InvalidData, match="which its driver does not know"):
        bowstring.array(Interface(__import__("ctypes").addressof(numbers)))


@pytest.mark.parametrize(("kind", "expected"), [("pinned", 3), ("managed", 13)])
def test_other_memory_of_cuda(device, kind, expected):
    there = sim.allocate(64, kind)
    array = bowstring.array(Interface(there))
    assert (array.device.type, array.buffer(1).ptr) == (expected, there)
    del array
    gc.collect()
    sim.call("cuMemFreeHost" if kind == "pinned" else "cuMemFree_v2", there)


def test_masks(device):
    bits = device.bytes(b"\x55")
    array = bowstring.array(Interface(device.numbers, mask=Interface(bits, typestr="<t1")), copy=False)
    assert [buffer.ptr for buffer in array.buffers] == [bits, device.numbers]
    assert (array.null_count, array.count_nulls()) == (-1, 4)
    flags = device.bytes(bytes([1, 0, 1, 1, 1, 1, 1, 0]))
    with pytest.raises(bowstring.CopyNeeded, match="expected a mask of bits, found one of bytes"):
        bowstring.array(Interface(device.numbers, mask=Interface(flags, typestr="|b1")), copy=False)
    array = bowstring.array(Interface(device.numbers, mask=Interface(flags, typestr="|b1")))
    assert (array.buffer(1).ptr, array.count_nulls()) == (device.numbers, 2)
    with pytest.raises(bowstring.InvalidData, match="expected a mask of 8 rows"):
        bowstring.array(Interface(device.numbers, mask=Interface(bits, shape=(7,), typestr="<t1")))


def test_masks_on_the_queue(device):
    bits = device.bytes(b"\x55")
    with sim.blocked(device.queue):
        mask = Interface(bits, typestr="<t1", stream=device.queue)
        array = bowstring.array(Interface(device.numbers, stream=device.queue, mask=mask))
        assert array.sync_event
        assert {queue for _, queue in recorded()[0]} == {address(device.queue)}
        other = Interface(bits, typestr="<t1", stream=device.other)
        with pytest.raises(bowstring.Unsupported, match="expected a mask on the queue of its values"):
            bowstring.array(Interface(device.numbers, stream=device.queue, mask=other))


def test_the_producer_stays(device):
    import weakref

    made = Interface(device.numbers, stream=device.queue)
    alive = weakref.ref(made)
    array = bowstring.array(made)
    buffer = array.buffer(1)
    del made, array
    gc.collect()
    assert alive() is not None
    del buffer
    gc.collect()
    assert alive() is None


def test_memory_as_one_block(device):
    buffer = bowstring.buffer(Interface(device.numbers, stream=device.queue))
    assert (tuple(buffer.device), buffer.ptr, buffer.bufsize) == ((2, device.ordinal), device.numbers, 64)
    assert [queue for _, queue in recorded()[0]] == [address(device.queue)]
    assert buffer.peek(9) == struct.pack("8q", *VALUES)[:9]
    sim.log_clear()
    with sim.blocked(device.queue):
        buffer = bowstring.buffer(Interface(device.numbers, stream=device.queue), stream=device.other)
        events, waits = recorded()
        assert waits == [(events[0][0], address(device.other))]
    assert buffer.ptr == device.numbers
    with pytest.raises(TypeError, match="bytes-like"):
        memoryview(buffer)


# DLPack in and out, with our own arrays as producers.


class Producer:
    """An array's DLPack methods, and what they were asked."""

    def __init__(self, array):
        self.array, self.asked = array, []

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def pending(device):
    """An array with an event on the device's queue."""
    array = bowstring.array(Interface(device.numbers, stream=device.queue))
    event = recorded()[0][0][0]
    sim.log_clear()
    return array, event


def test_a_queue_goes_to_the_producer_and_gets_an_event(device):
    array, event = pending(device)
    producer = Producer(array)
    again = bowstring.array(producer, stream=device.other)
    assert producer.asked == [{"max_version": (1, 3), "stream": device.other}]
    events, waits = recorded()
    assert waits == [(event, address(device.other))]
    assert [queue for _, queue in events] == [address(device.other)]
    assert (tuple(again.device), again.buffer(1).ptr) == ((2, device.ordinal), device.numbers)
    assert again.sync_event
    # The producer orders its work before the consumer's queue, and the event comes after that.
    order = [entry.function for entry in sim.log() if entry.function in ("cuStreamWaitEvent", "cuEventRecord")]
    assert order == ["cuStreamWaitEvent", "cuEventRecord"]
    assert on_host(again) == VALUES


def test_objects_with_a_queue(device):
    array, _ = pending(device)
    for queue in (
        type("Queue", (), {"ptr": device.other})(),
        type("Queue", (), {"__cuda_stream__": lambda self: (0, device.other)})(),
        type("Queue", (), {"cuda_stream": device.other})(),
    ):
        producer = Producer(array)
        assert bowstring.array(producer, stream=queue).sync_event
        assert producer.asked[-1]["stream"] == device.other


def test_no_queue_is_the_drivers_default(device):
    array, event = pending(device)
    producer = Producer(array)
    again = bowstring.array(producer)
    assert producer.asked == [{"max_version": (1, 3)}]
    events, waits = recorded()
    assert (len(waits), len(events)) == (1, 1) and waits[0][0] == event and waits[0][1] == events[0][1]
    assert again.sync_event
    assert on_host(again) == VALUES


def test_nobody_waits(device):
    array = bowstring.array(Interface(device.numbers))
    producer = Producer(array)
    again = bowstring.array(producer, stream=-1)
    assert (producer.asked[-1]["stream"], again.sync_event, recorded()) == (-1, 0, ([], []))


def test_streams_of_consumers(device):
    array, event = pending(device)
    for stream in (device.other, LEGACY_QUEUE, PER_THREAD):
        sim.log_clear()
        capsule = array.__dlpack__(max_version=(1, 0), stream=stream)
        assert recorded() == ([], [(event, address(stream))])
        del capsule
    sim.log_clear()
    array.__dlpack__(max_version=(1, 0))
    assert len(recorded()[1]) == 1
    with sim.blocked(device.other):
        # A wait that nobody asked for may not hang a queue.
        sim.log_clear()
        bowstring.array(Interface(device.numbers)).__dlpack__(max_version=(1, 0), stream=-1)
        assert recorded() == ([], [])
    with pytest.raises(ValueError, match="found 0, which the protocol forbids"):
        array.__dlpack__(max_version=(1, 0), stream=0)


def test_a_copy_on_the_cpu(device):
    import numpy as np

    array, _ = pending(device)
    shown = np.from_dlpack(array, device="cpu")
    assert shown.tolist() == VALUES
    with pytest.raises(BufferError, match="found the CPU, where it would be a copy"):
        array.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=False)
    with pytest.raises(ValueError, match="expected no stream for a copy on the CPU"):
        array.__dlpack__(max_version=(1, 0), dl_device=(1, 0), stream=device.other)


def test_a_copy_on_the_device(device):
    array, _ = pending(device)
    again = bowstring.array(Producer(array), copy=True, stream=device.other)
    assert again.buffer(1).ptr != device.numbers
    assert on_host(again) == VALUES
    capsule = array.__dlpack__(max_version=None, copy=True, stream=device.other)
    assert "dltensor" in repr(capsule) and "versioned" not in repr(capsule)


# CUDA's array interface out.


def test_the_interface_out(device):
    array = bowstring.array(Interface(device.numbers))
    expected = {
        "shape": (8,), "typestr": "<i8", "data": (device.numbers, True), "strides": None, "version": 3, "stream": None
    }
    assert array.__cuda_array_interface__ == expected
    assert array[2:].__cuda_array_interface__["data"][0] == device.numbers + 16
    sim.log_clear()
    with sim.blocked(device.queue):
        array = bowstring.array(Interface(device.numbers, stream=device.queue))
        found = array.__cuda_array_interface__
        assert found == {**expected, "stream": LEGACY_QUEUE}
        # Waiting for the queue that is named covers the event.
        events, waits = recorded()
        assert [event for event, _ in waits] == [event for event, _ in events]
    typed = array.buffer(1).typed("float64", (2, 4))
    assert typed.__cuda_array_interface__["shape"] == (2, 4)
    assert not hasattr(array, "__array_interface__") and not hasattr(typed, "__array_interface__")


def test_round_trip(device):
    first = bowstring.array(Interface(device.numbers, stream=device.queue))
    second = bowstring.array(first, via="__cuda_array_interface__", copy=False)
    third = bowstring.array(second, via="__dlpack__", stream=device.other)
    assert third.buffer(1).ptr == device.numbers
    assert third.sync_event
    assert on_host(third) == VALUES


def test_what_the_interface_has_not(device):
    bits = device.bytes(b"\x55")
    array = bowstring.array(Interface(device.numbers, mask=Interface(bits, typestr="<t1")))
    assert not hasattr(array, "__cuda_array_interface__")
    with pytest.raises(BufferError):
        array.__dlpack__(max_version=(1, 0))


def test_arrows_capsules(device):
    """Events go along, and nothing waits."""
    array, _ = pending(device)
    again = bowstring.array(array, via="__arrow_c_device_array__")
    streamed = bowstring.stream(array).read()
    assert again.sync_event and streamed.sync_event
    assert (recorded(), again.buffer(1).ptr) == (([], []), device.numbers)
    with pytest.raises(bowstring.Unsupported):
        array.__arrow_c_array__()
