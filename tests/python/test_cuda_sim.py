"""The simulated CUDA driver as Python tests meet it. Each test has a process of its own: a process has one driver."""

import os
import subprocess
import sys
import textwrap

import pytest

import cuda_sim

HERE = os.path.dirname(os.path.abspath(__file__))


def run(code, variables):
    """Runs Python code; its exit code and what it printed."""
    script = f"import sys; sys.path.insert(0, {HERE!r})\n" + textwrap.dedent(code)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=variables, text=True, capture_output=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def succeeds(code, variables):
    """Runs Python code that reaches its end."""
    status, text = run(code + "\nprint('the end')", variables)
    assert status == 0 and text.endswith("the end\n"), text


USE = textwrap.dedent(
    """
    import ctypes, cuda_sim
    sim = cuda_sim.Sim()
    # By name, as the library under test does it.
    assert ctypes.CDLL("libcuda.so.1")._handle == sim.library._handle
    with sim.current(1):
        with sim.watch():
            stream, memory = sim.stream(), sim.allocate(100)
            with sim.blocked(stream):
                sim.enqueue_fill(stream, memory, 7, 100)
                assert sim.pending(stream) == 2 and sim.library.cuStreamQuery(stream) == cuda_sim.NOT_READY
                assert sim.peek(memory, 2) == bytes([0xCD, 0xCD])
            sim.call("cuStreamSynchronize", stream)
            assert sim.peek(memory, 100) == bytes([7] * 100)
            sim.poke(memory + 99, b"x")
            assert sim.peek(memory + 98, 2) == bytes([7]) + b"x"
            assert sim.live()["device_memory"] == 1 and sim.live()["pushed_here"] == 1
            sim.fail("cuMemFree_v2", 12345)
            try:
                sim.call("cuMemFree_v2", memory)
                raise AssertionError
            except cuda_sim.DriverError as error:
                assert error.code == 12345
            sim.call("cuMemFree_v2", memory)
            sim.call("cuStreamDestroy_v2", stream)
            fill, = sim.log("cuda_sim_enqueue_fill")
            assert fill.end > fill.start > fill.sequence and fill.arguments["size"] == "100"
            assert sim.calls("cuMemFree_v2") == 2 and "cuMemFree_v2" in sim.log_text()
        for kind, free in (("pool", "cuMemFreeAsync"), ("pinned", "cuMemFreeHost"), ("managed", "cuMemFree_v2")):
            with sim.watch():
                address = sim.allocate(10, kind)
                sim.call(free, address, *([None] if kind == "pool" else []))
        for wrong in ("fault", "leak", "double free"):
            try:
                with sim.watch():
                    memory = sim.allocate(10)
                    if wrong == "fault":
                        sim.library.cuMemFree_v2(memory + 1)
                    if wrong != "leak":
                        sim.call("cuMemFree_v2", memory)
                    if wrong == "double free":
                        sim.library.cuMemFree_v2(memory)
                seen = False
            except AssertionError:
                seen = True
            assert seen, wrong
    assert sim.forget_faults() and not sim.faults()
    """
)


def test_loaded_by_path():
    """The file that was loaded is the one that a search for the driver's name gives."""
    succeeds(USE, dict(os.environ))


def test_loaded_by_search():
    """As well where the loader finds it by itself."""
    succeeds(USE, cuda_sim.environment())


@pytest.mark.parametrize("variant", ["full", "no_async_memory", "no_event_record", "stub"])
def test_variants(variant):
    """Each variant says what it is, and lacks what it has to lack."""
    code = f"""
    import cuda_sim
    sim = cuda_sim.Sim({variant!r})
    assert sim.variant == {variant!r}
    assert hasattr(sim.library, "cuMemAllocAsync") == ({variant!r} != "no_async_memory")
    assert hasattr(sim.library, "cuEventRecord") == ({variant!r} != "no_event_record")
    assert sim.library.cuInit(0) == (cuda_sim.STUB_LIBRARY if {variant!r} == "stub" else 0)
    """
    succeeds(textwrap.dedent(code), cuda_sim.environment(variant))


def test_settings_of_a_process():
    """A process can be started with settings that it knows nothing of."""
    code = """
    import cuda_sim
    sim = cuda_sim.Sim()
    assert sim.library.cuInit(0) == cuda_sim.NO_DEVICE and sim.setting("delay_us") == 7
    """
    succeeds(textwrap.dedent(code), cuda_sim.environment(settings="devices=0,delay_us=7"))


def test_another_driver_is_refused(tmp_path):
    """What programs would find first is told."""
    import _ctypes

    for name in ("libcuda.so", "libcuda.so.1"):
        os.symlink(_ctypes.__file__, tmp_path / name)
        variables = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
        status, text = run("import cuda_sim; cuda_sim.Sim()", variables)
        assert status == 1 and "libcuda.so is a real CUDA driver; start the process with LD_LIBRARY_PATH=" in text
    status, text = run("import cuda_sim; cuda_sim.Sim()", cuda_sim.environment("stub"))
    assert status == 1 and "is another variant of the simulated driver" in text
