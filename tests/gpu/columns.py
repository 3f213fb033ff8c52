"""Columns of every layout, built by hand and compared slowly; nothing here needs more than the library."""

import ctypes
from ctypes import byref, c_void_p

import bowstring_ctypes as bs
import device_arrays
from bowstring_ctypes import SYNC_LIBRARY, Device, call, lib, out
from raw import Node, Raw, i8, i32, i64
from slow_values import Values
from validate_arrays import BRANCHES, LEAVES, Maker

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = device_arrays.CPU, 2, 3, 13
# Producers' structs, which live as long as the step.
_kept = []


def view(text, which=0, start=0):
    """A view of a string."""
    if len(text) <= 12:
        return i32(len(text)) + text.ljust(12, b"\0")
    return i32(len(text)) + text[:4] + i32(which, start)


def nested():
    """A struct of a list<struct<int32, utf8>>, string views, a dictionary, a map, both unions and run ends, of five rows."""
    number = Node("i", 6, 1, 0, [bytes([0b111011]), i32(*range(10, 16))], name=b"n")
    text = Node("u", 6, 0, 0, [None, i32(0, 1, 1, 3, 6, 6, 9), "aéxyz☂".encode() + b"!"], name=b"t")
    record = Node("+s", 6, 0, 0, [None], [number, text], name=b"item")
    lists = Node("+l", 5, 1, 0, [bytes([0b11101]), i32(0, 2, 2, 3, 6, 6)], [record], name=b"lists")
    long = b"more than any view holds inline"
    words = [b"", b"short", long, b"twelve bytes", long]
    views = b"".join(view(word) for word in words)
    strings = Node("vu", 5, 0, 0, [None, views, long, i64(len(long))], name=b"views")
    values = Node("u", 3, 0, 0, [None, i32(0, 3, 6, 11), b"redoakgreen"])
    words_by_number = Node("c", 5, 1, 0, [bytes([0b10111]), i8(2, 0, 1, 99, 0)], dictionary=values, name=b"colours")
    keys = Node("u", 3, 0, 0, [None, i32(0, 1, 2, 3), b"abc"], name=b"key", flags=0)
    items = Node("l", 3, 1, 0, [bytes([0b101]), i64(7, 8, 9)], name=b"value")
    entries = Node("+s", 3, 0, 0, [None], [keys, items], name=b"entries", flags=0)
    maps = Node("+m", 5, 0, 0, [None, i32(0, 1, 1, 1, 3, 3)], [entries], name=b"maps")
    dense = Node("+ud:5,7", 5, 0, 0, [i8(5, 7, 5, 7, 7), i32(0, 0, 1, 1, 2)], [
        Node("i", 2, 0, 0, [None, i32(1, 2)], name=b"a"), Node("u", 3, 0, 0, [None, i32(0, 1, 2, 3), b"pqr"], name=b"b"),
    ], name=b"dense")
    sparse = Node("+us:0,1", 5, 0, 0, [i8(0, 1, 1, 0, 1)], [
        Node("i", 5, 0, 0, [None, i32(*range(5))], name=b"a"), Node("l", 5, 0, 0, [None, i64(*range(5))], name=b"b"),
    ], name=b"sparse")
    ends = Node("i", 3, 0, 0, [None, i32(2, 3, 5)], name=b"run_ends", flags=0)
    runs = Node("+r", 5, 0, 0, [], [ends, Node("u", 3, 1, 0, [bytes([0b101]), i32(0, 1, 1, 3), b"xzz"], name=b"values")], name=b"runs")
    columns = [lists, strings, words_by_number, maps, dense, sparse, runs]
    return Node("+s", 5, 0, 0, [None], columns)


def drawn(turns, seed=5):
    """Columns of every layout by itself, and of layouts in each other, so many times."""
    maker = Maker(seed)
    for kind in LEAVES:
        yield kind, maker.node(23, 1, leaf=kind)
    for turn in range(turns):
        for kind in BRANCHES:
            yield f"{kind} {turn}", maker.node(11, 3, leaf=kind)


def all_columns(turns=3):
    yield "nested", nested()
    yield from drawn(turns)


def imported(node):
    """A handle on an array by hand."""
    raw = Raw(node)
    _kept.append(raw)
    return out("array_import", byref(raw.device_array), byref(raw.schema))


def windows(length, few):
    """The whole, and slices."""
    inner = (1, max(length - 2, 0))
    return [(0, length), inner] if few else sorted({(0, length), inner, (length // 2, length - length // 2), (length // 3, 0)})


def to(array, device, mode=SYNC_LIBRARY, **more):
    """A copy on a device."""
    return device_arrays.to_device(array, device, mode, **more)


def values_of(array):
    """What an array in CPU memory shows."""
    raw, schema = bs.ArrowDeviceArray(), bs.ArrowSchema()
    call("array_export", array, byref(raw), byref(schema))
    assert raw.device_type == 1
    try:
        return Values(ctypes.string_at).all_of(schema, raw.array)
    finally:
        lib.bowstring_device_array_release(byref(raw))
        lib.bowstring_schema_release(byref(schema))


def around(array, devices, check=lambda array, device: None):
    """Copies an array to each device in turn, from where it is then, and to the CPU; the values are the same there."""
    want, made, here = values_of(array), [], array
    for device in [*devices, CPU]:
        here = to(here, device)
        made.append(here)
        check(here, device)
    call("array_validate", here, None)
    got = values_of(here)
    assert got == want, f"{got} is not {want}"
    for each in made:
        lib.bowstring_array_release(each)


def around_all(devices, check=lambda array, device: None, few=False):
    """The same for windows on all columns, or on fewer; how many there were."""
    count = 0
    for name, node in all_columns(1 if few else 3):
        whole = imported(node)
        for first, n in windows(node.length, few):
            part = out("array_slice", whole, first, n)
            try:
                around(part, devices, check)
            except Exception as error:
                raise AssertionError(f"{name} ({node.format}), {n} rows from {first}: {error}") from error
            lib.bowstring_array_release(part)
            count += 1
        lib.bowstring_array_release(whole)
    return count


def buffers(array):
    """Address, size and role of every buffer that has bytes."""
    n = ctypes.c_size_t()
    call("array_count", array, None, byref(n))
    for i in range(n.value):
        info = bs.BufferInfo()
        call("array_buffer_info", array, i, byref(info))
        if info.data and info.size_bytes:
            yield info.data, info.size_bytes, info.role


def numbers(n, base=0):
    """An int64 column in CPU memory, a handle."""
    data = i64(*range(base, base + n))
    return imported(Node("l", n, 0, 0, [None, data]))


__all__ = [name for name in dir() if not name.startswith("_")] + ["Device", "c_void_p"]
