"""Arrays with one fault each in real device memory, and pointers that lead elsewhere: found, and nothing crashes."""

import subprocess
import sys
from ctypes import byref, c_void_p
from dataclasses import replace

import gpu

N_VALID = 120


def cases():
    """The faults by name, each with the rule that it breaks."""
    import columns
    from raw import Node, i8, i16, i32, i64

    text = b"aebc"
    long = b"thirteen bytes"
    bits = bytes([0b10101])

    def lists(offsets, length=3, child=4):
        return Node("+l", length, 0, 0, [None, i32(*offsets)], [Node("i", child, 0, 0, [None, i32(*range(child))], name=b"item")])

    def strings(*views, data=long):
        return Node("vu", len(views), 0, 0, [None, b"".join(views), data, i64(len(data))])

    def dictionary(*indices, validity=None):
        values = Node("u", 2, 0, 0, [None, i32(0, 1, 2), b"ab"])
        return Node("c", len(indices), 0 if validity is None else 1, 0, [validity, i8(*indices)], dictionary=values)

    def runs(*ends, length=5):
        return Node("+r", length, 0, 0, [], [
            Node("i", len(ends), 0, 0, [None, i32(*ends)], name=b"run_ends", flags=0),
            Node("l", len(ends), 0, 0, [None, i64(*range(len(ends)))], name=b"values"),
        ])

    def union(ids, offsets, children=2):
        return Node("+ud:0,5", len(ids), 0, 0, [i8(*ids), i32(*offsets)], [
            Node("i", 2, 0, 0, [None, i32(1, 2)], name=b"a"), Node("l", children, 0, 0, [None, i64(*range(children))], name=b"b"),
        ])

    def numbers(nulls, validity):
        return Node("l", 5, nulls, 0, [validity, i64(*range(5))])

    def list_views(starts, sizes):
        return Node("+vl", len(starts), 0, 0, [None, i32(*starts), i32(*sizes)], [Node("i", 3, 0, 0, [None, i32(1, 2, 3)], name=b"item")])

    return {
        "offsets decrease": ("B1", Node("u", 3, 0, 0, [None, i32(0, 3, 2, 4), text])),
        "offsets are negative": ("B1", Node("u", 3, 0, 0, [None, i32(-1, 1, 2, 4), text])),
        "list offsets decrease": ("B1", lists((0, 3, 1, 4))),
        "list offsets beyond the child": ("B1", lists((0, 1, 2, 9))),
        "utf8 is none": ("B8", Node("u", 3, 0, 0, [None, i32(0, 1, 2, 4), b"a\xffbc"])),
        "utf8 is cut by an offset": ("B8", Node("u", 2, 0, 0, [None, i32(0, 1, 2), "é".encode()])),
        "view beyond its buffer": ("B2", strings(columns.view(b"ok"), columns.view(long, 0, 3))),
        "view of no buffer": ("B2", strings(columns.view(long, 7, 0))),
        "view with another prefix": ("B2", strings(columns.view(b"fourteen bytes", 0, 0))),
        "view with a negative length": ("B2", strings(i32(-3) + bytes(12))),
        "list view beyond the child": ("B3", list_views((0, 2), (1, 2))),
        "index beyond the dictionary": ("B6", dictionary(0, 1, 2)),
        "index below 0": ("B6", dictionary(0, -1)),
        "type id of no child": ("B5", union((0, 5, 3), (0, 0, 1))),
        "union offset beyond the child": ("B5", union((0, 5, 5), (0, 0, 2))),
        "union offsets decrease": ("B5", union((0, 5, 5), (0, 1, 0))),
        "run ends do not ascend": ("B7", runs(2, 2, 5)),
        "run ends too early": ("B7", runs(1, 3)),
        "too many nulls told": ("A2", numbers(4, bits)),
        "too few nulls told": ("A2", numbers(0, bits)),
        "time beyond a day": ("B8", Node("tts", 2, 0, 0, [None, i32(5, 86400)])),
        "decimal with too many digits": ("B8", Node("d:2,0,32", 1, 0, 0, [None, i32(100)])),
        "date within a day": ("B8", Node("tdm", 1, 0, 0, [None, i64(7)])),
        "deep below": ("B8", Node("+s", 3, 0, 0, [None], [
            Node("+l", 3, 0, 0, [None, i32(0, 1, 1, 2)], [Node("u", 2, 0, 0, [None, i32(0, 1, 2), b"a\xfe"], name=b"item")], name=b"x"),
            Node("s", 3, 0, 0, [None, i16(1, 2, 3)], name=b"y"),
        ])),
    }


class Placed:
    """Nodes whose buffers are in device memory."""

    def __init__(self, driver):
        self.driver, self.memory = driver, []

    def node(self, node):
        """The same node with addresses for bytes."""
        return replace(
            node,
            buffers=[self.put(data) for data in node.buffers],
            children=[self.node(child) for child in node.children],
            dictionary=node.dictionary and self.node(node.dictionary),
        )

    def put(self, data):
        if not isinstance(data, bytes):
            return data
        address = self.driver.allocate(max(len(data), 1))
        self.memory.append(address)
        self.driver.write(address, data)
        return address

    def free(self):
        for address in self.memory:
            self.driver.free(address)
        self.memory = []


def said(node, device):
    """The status and all findings of full validation."""
    import bowstring_ctypes as bs
    from raw import Raw
    from validate_calls import DEVICE, Listener

    raw, listener = Raw(node, device=device), Listener()
    kind = bs.out("type_import", byref(raw.schema))
    status, first, errors = listener.ask(DEVICE, byref(raw.device_array), kind)
    # How memory is aligned is the allocator's matter.
    warnings = [one for one in listener.warnings() if one[0] != "A6"]
    bs.lib.bowstring_type_release(kind)
    raw.release()
    return status, first, errors, warnings


def faults():
    driver = gpu.Driver()
    if driver.sim:
        driver.sim.configure(delay_us=0)
    import bowstring_ctypes as bs
    from validate_arrays import Maker

    placed, found = Placed(driver), cases()
    for name, (rule, node) in found.items():
        there, here = said(placed.node(node), (2, 0)), said(node, (1, -1))
        assert there == here, f"{name}: on the device {there}, on the CPU {here}"
        assert there[0] == bs.INVALID_DATA and there[1][0] == rule, f"{name}: {there}, expected {rule}"
        placed.free()
    maker = Maker(11)
    for i in range(N_VALID):
        node = maker.draw()
        there, here = said(placed.node(node), (2, 0)), said(node, (1, -1))
        assert there == here and there[0] == bs.OK, f"valid array {i}, {node.format}: on the device {there}, on the CPU {here}"
        placed.free()
    gpu.figure("faults", len(found))
    gpu.figure("valid arrays", N_VALID)
    driver.no_faults()


def claimed(address, format="l", n=1000, buffers=None):
    """A struct that says that its memory is the device's."""
    from raw import Node, Raw

    return Raw(Node(format, n, 0, 0, buffers or [None, address]), device=(2, 0))


def check(raw, level=0):
    """The status of validation; nothing is taken."""
    import bowstring_ctypes as bs

    kind, error = c_void_p(), bs.Error()
    bs.call("type_copy_from", byref(raw.schema), byref(kind))
    options = bs.ValidateOptions(level=level)
    status = bs.lib.bowstring_device_array_validate(byref(raw.device_array), kind, byref(options), byref(error))
    bs.lib.bowstring_type_release(kind)
    name = bs.lib.bowstring_status_name(status).decode()
    return name, bs.lib.bowstring_rule_name(error.rule).decode(), error.message.decode(errors="replace") if status else ""


def of_the_cpu(driver):
    import ctypes

    memory = ctypes.create_string_buffer(8000)
    return claimed(ctypes.addressof(memory)), "D9"


def on_the_stack_of_nobody(driver):
    return claimed(0x10000), "D9"


def high(driver):
    return claimed(0x7FFF_FFFF_0000_0000), "D9"


def freed(driver):
    address = driver.allocate(1 << 22)
    driver.free(address)
    return claimed(address), "D9"


def text_of_the_cpu(driver):
    """Offsets on the device, and their text elsewhere."""
    from raw import i32

    offsets = driver.allocate(16)
    driver.write(offsets, i32(0, 1, 2, 3))
    return claimed(None, "u", 3, [None, offsets, 0x10000]), "D9"


def null_text(driver):
    from raw import i32

    offsets = driver.allocate(16)
    driver.write(offsets, i32(0, 1, 2, 3))
    return claimed(None, "u", 3, [None, offsets, None]), "A5"


def null_numbers(driver):
    return claimed(None, "l", 3, [None, None]), "A5"


def beyond_its_end(driver):
    """Far more rows than there is memory: the driver's error, whatever it is."""
    offsets = driver.allocate(4096)
    driver.write(offsets, bytes(4096))
    return claimed(None, "u", 1 << 26, [None, offsets, offsets]), None


POINTERS = {one.__name__: one for one in (
    of_the_cpu, on_the_stack_of_nobody, high, freed, text_of_the_cpu, null_text, null_numbers, beyond_its_end,
)}


def pointer(name):
    """One bad pointer, in a process of its own."""
    driver = gpu.Driver()
    import bowstring_ctypes as bs
    from device_arrays import CPU, to_device

    raw, rule = POINTERS[name](driver)
    status, found, message = check(raw)
    print(f"figure: {name}: {status} {found} {message}")
    assert status != "OK" and found == (rule or found), f"{name}: {status} {found} {message}, expected {rule}"
    if rule == "A5":
        # What the structure shows, an import refuses as well, unless only contents say how large the buffer has to be.
        try:
            array = bs.out("array_import", byref(raw.device_array), byref(raw.schema))
        except bs.BowstringError as error:
            assert error.rule == "A5", error
        else:
            try:
                bs.lib.bowstring_array_release(to_device(array, CPU))
                raise AssertionError(f"{name} was copied")
            except bs.BowstringError as error:
                print(f"figure: {name}, copied: {error}")
            bs.lib.bowstring_array_release(array)
    # The device still works.
    address = driver.allocate(8000)
    driver.write(address, bytes(8000))
    right = claimed(address)
    assert check(right)[0] == "OK"


def pointers():
    gpu.Driver(current=False)
    # All at once, because starting the driver takes longest.
    started = {
        name: subprocess.Popen(
            [sys.executable, "-B", __file__, "pointer", name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for name in POINTERS
    }
    failed = []
    for name, process in started.items():
        text = process.communicate(timeout=30)[0]
        print(text.replace("the end\n", ""))
        if process.returncode:
            failed.append(f"{name} ended with {process.returncode}: {text.strip().splitlines()[-1:]}")
    assert not failed, "; ".join(failed)
    gpu.figure("bad pointers", len(POINTERS))


if __name__ == "__main__":
    gpu.main({"faults": faults, "pointers": pointers, "pointer": pointer})
