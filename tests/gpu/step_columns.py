"""Columns of every layout, copied around: on the CPU, between all of CUDA's types of memory, and between GPUs."""

import random
from ctypes import byref, c_size_t

import gpu

# The simulated driver is slow, and a mistake in the step shows with fewer.
FEW = gpu.IS_SIMULATED


def cpu():
    import columns

    count = columns.around_all([columns.CPU])
    gpu.figure("windows", count)
    assert count > 150


def finish(driver, devices):
    from bowstring_ctypes import call, live_counts

    for device in devices:
        left = c_size_t(9)
        call("device_collect", device, True, byref(left))
        assert left.value == 0
    assert not live_counts().get("pending")
    driver.no_faults()


def devices():
    driver = gpu.Driver()
    if driver.sim:
        driver.sim.configure(delay_us=0)
    import columns
    from columns import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, Device

    kinds = [CUDA, CUDA_HOST] + [CUDA_MANAGED] * bool(driver.attribute("managed_memory"))
    everywhere = [Device(kind, 0) for kind in kinds]
    # Each follows each other, and itself.
    ways = [everywhere, everywhere[::-1], [one for one in everywhere for _ in range(2)], [everywhere[-1], everywhere[0], CPU, everywhere[0]]]
    total = 0
    for way in ways:
        total += columns.around_all(way, few=FEW)
    gpu.figure("types of memory", ", ".join(map(str, kinds)))
    gpu.figure("windows", total)
    finish(driver, everywhere)
    assert total > (300 if FEW else 1000)


def pyarrow():
    driver = gpu.Driver()
    try:
        import pyarrow as pa
    except ImportError as error:
        gpu.skip(f"no pyarrow: {error}")
    if driver.sim:
        driver.sim.configure(delay_us=0)
    import all_types
    import columns
    import support
    from bowstring_ctypes import lib, out
    from columns import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, Device

    kinds = [CUDA, CUDA_HOST] + [CUDA_MANAGED] * bool(driver.attribute("managed_memory"))
    everywhere = [Device(kind, 0) for kind in kinds]
    draw, count = random.Random(3), 0
    for name, batches in all_types.streams():
        for batch in batches:
            whole, n = support.imported(batch), batch.num_rows
            for first, rows in {(0, n), (n // 3, n - n // 3 - min(1, n - n // 3))}:
                part = out("array_slice", whole, first, rows)
                made = [part]
                for device in draw.sample(everywhere, len(everywhere)) + [CPU]:
                    made.append(columns.to(made[-1], device))
                got, want = support.to_pyarrow(*support.exported(made[-1])), batch.slice(first, rows)
                got.validate(full=True)
                assert got.equals(want, check_metadata=True), f"{name}, {rows} rows from {first}"
                for one in made:
                    lib.bowstring_array_release(one)
                count += 1
            lib.bowstring_array_release(whole)
    gpu.figure("pyarrow", pa.__version__)
    gpu.figure("windows", count)
    finish(driver, everywhere)
    assert count > 100


def peers():
    driver = gpu.Driver()
    if driver.n_devices < 2:
        gpu.skip("one GPU only")
    if driver.sim:
        driver.sim.configure(delay_us=0)
    import columns
    from columns import CUDA, CUDA_MANAGED, Device

    here, there = Device(CUDA, 0), Device(CUDA, 1)

    def check(array, device):
        if device.type == CUDA:
            found = {driver.placed(address)[2] for address, _, role in columns.buffers(array) if role != 7}
            assert found <= {device.id}, (found, device.id)

    total = columns.around_all([here, there, here, there, there], check, FEW)
    managed = [Device(CUDA_MANAGED, 0), Device(CUDA_MANAGED, 1)]
    total += columns.around_all([there, managed[0], here, managed[1]], check, FEW)
    gpu.figure("windows", total)
    finish(driver, [here, there, *managed])
    assert total > (150 if FEW else 500)


if __name__ == "__main__":
    gpu.main({"cpu": cpu, "devices": devices, "pyarrow": pyarrow, "peers": peers})
