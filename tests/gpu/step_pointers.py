"""Memory of CUDA's three types: the driver and the library agree about it, and wrong claims are found."""

import ctypes
from ctypes import byref, c_void_p

import gpu

KINDS = {"cuda": 2, "cuda_host": 3, "cuda_managed": 13}


def kinds_here(driver):
    return {name: kind for name, kind in KINDS.items() if kind != 13 or driver.attribute("managed_memory")}


def said(kind):
    """What the driver has to say of memory of a type: its own type, and whether it is managed."""
    return {2: (gpu.DEVICE, False), 3: (gpu.HOST, False)}.get(kind)


def is_right(driver, address, kind):
    found = driver.placed(address)
    # Managed memory is with whoever used it last.
    right = found[1] if kind == 13 else found[:2] == said(kind)
    return right and (kind != 2 or found[2] == driver.ordinal), found


def truth():
    """The library's own memory, allocated and copied to, is what the array says: by the driver's word, and by the library's."""
    driver = gpu.Driver()
    import columns
    from bowstring_ctypes import SYNC_HOST, ArrowDeviceArray, BowstringError, Device, SYNC_LIBRARY, call, lib, out
    from device_arrays import sync
    import bowstring_ctypes as bs

    checked = 0
    host = columns.imported(columns.nested())
    for name, kind in kinds_here(driver).items():
        device = Device(kind, 0)
        buffer, data = c_void_p(), c_void_p()
        call("buffer_allocate", device, 1000, sync(SYNC_HOST), byref(buffer), byref(data))
        right, found = is_right(driver, data.value, kind)
        assert right and data.value % 64 == 0, f"allocated as {name}, the driver says {found}"
        assert driver.read(data.value, 1024) == bytes(1024), "the memory is not zeroed"
        lib.bowstring_buffer_release(buffer)
        copy = columns.to(host, device, SYNC_HOST)
        for address, size, role in columns.buffers(copy):
            # The sizes of variadic buffers may be in CPU memory.
            right, found = is_right(driver, address, kind)
            assert right or role == 7, f"{name}: buffer at {address:#x} with role {role}, the driver says {found}"
            checked += 1
        raw = ArrowDeviceArray()
        call("array_export", copy, byref(raw), None)
        assert raw.device_type == kind
        kept = out("type_parse", bs.text_of("type_to_text", lib.bowstring_array_type(copy)).encode())
        call("device_array_validate", byref(raw), kept, None)
        lib.bowstring_device_array_release(byref(raw))
        lib.bowstring_type_release(kept)
        if kind != 2:
            expected = kind == 3 or bool(driver.attribute("concurrent_managed"))
            plain = bs.ArrowArray()
            try:
                call("array_export_host", copy, sync(SYNC_LIBRARY), byref(plain), None)
                lib.bowstring_host_array_release(byref(plain))
                was = True
            except BowstringError as error:
                assert error.status == bs.UNSUPPORTED, error
                was = False
            assert was == expected, f"{name}: handed out as CPU memory: {was}, expected {expected}"
            gpu.figure(f"{name} goes out as CPU memory", was)
        lib.bowstring_array_release(copy)
    lib.bowstring_array_release(host)
    gpu.figure("buffers", checked)
    driver.no_faults()
    assert checked >= 25


def findings(claim, address, n):
    """What full validation says of int64 values somewhere: its status, and the rules of errors and of warnings."""
    import bowstring_ctypes as bs
    from raw import Node, Raw
    from validate_calls import DEVICE, Listener

    raw = Raw(Node("l", n, 0, 0, [None, address]), device=(claim, 0))
    made = bs.out("type_import", byref(raw.schema))
    listener = Listener()
    status, _, errors = listener.ask(DEVICE, byref(raw.device_array), made)
    warnings = listener.warnings()
    bs.lib.bowstring_type_release(made)
    raw.release()
    return status, [one[0] for one in errors], [one[0] for one in warnings if one[0] == "D9"]


def claims():
    """Every kind of memory as every type: what is not so is a finding by rule D9."""
    driver = gpu.Driver()
    import bowstring_ctypes as bs

    n, kinds = 1000, kinds_here(driver)
    plain = ctypes.create_string_buffer(8 * n)
    memory = {name: driver.allocate(8 * n, name) for name in kinds}
    for name, address in memory.items():
        driver.write(address, bytes(8 * n), name)
    memory_of_cuda = set(memory)
    memory["malloc"] = ctypes.addressof(plain)
    freed = driver.allocate(1 << 22)
    driver.free(freed)
    memory["freed"], memory["nowhere"] = freed, 0x10000
    wrong = 0
    for name, address in memory.items():
        for claimed, kind in kinds.items():
            # Managed memory does all that a device's own does.
            fits = name == claimed or (name, claimed) == ("cuda_managed", "cuda")
            said = findings(kind, address, n)
            if fits:
                right = said == (bs.OK, [], [])
            elif name in memory_of_cuda:
                # The driver can work with it all the same, so this is a warning.
                right = said == (bs.OK, [], ["D9"])
            else:
                right = said == (bs.INVALID_DATA, ["D9"], [])
            assert right, f"{name} as {claimed}: {said}"
            wrong += not fits
    gpu.figure("wrong claims found", wrong)
    driver.forget_faults()
    assert wrong >= (13 if 13 in kinds.values() else 8)


if __name__ == "__main__":
    gpu.main({"truth": truth, "claims": claims})
