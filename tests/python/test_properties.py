"""Random nested arrays: built from raw buffers, read by pyarrow, sliced, walked, and taken apart again."""

import ctypes
import random
from ctypes import byref, c_int64, c_void_p

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import slow_builder
import support
from bowstring_ctypes import VALIDITY, VARIADIC_SIZES, call, lib, out, text_of
from slow_builder import build, draw, draw_kind, plain

CASES, PART = 3000, 250
_done = {"cases": 0, "nodes": 0, "buffers": 0, "slices": 0, "formats": set()}


def type_of(kind):
    """A type made of its parts."""
    children = [type_of(child) for child in kind.children]
    dictionary = type_of(kind.dictionary) if kind.dictionary else None
    given = (c_void_p * len(children))(*[child.value for child in children])
    made = out(
        "type_new", kind.format.encode(), kind.name.encode(), 2 * kind.nullable, given, len(children), dictionary,
        None, 0,
    )
    for part in children + [dictionary] * (dictionary is not None):
        lib.bowstring_type_release(part)
    return made


def check_text(kind, size):
    """The text form of a type is read back as the same type."""
    text = text_of("type_to_text", kind)
    again = out("type_parse", text.encode())
    assert lib.bowstring_type_equals(kind, again, 0), text
    assert text_of("type_to_text", again) == text
    info = bs.TypeNodeInfo()
    call("type_node_info", again, 0, byref(info))
    assert info.subtree_end == size
    lib.bowstring_type_release(again)


def given(built, owners, rng):
    """What the library gets: numbers, and buffers that each have an owner."""
    flat = built.flat()
    nodes = (bs.Node * len(flat))()
    for node, part in zip(nodes, flat):
        nulls = rng.choice((-1, part.nulls)) if part.kind.format != "n" else part.length
        node.length, node.null_count, node.offset, node.n_buffers = part.length, nulls, part.offset, len(part.buffers)
    entries = []
    for part in flat:
        is_built = part.buffers and part.buffers[-1] == (VARIADIC_SIZES, None)
        for role, data in part.buffers:
            entry = owners.buffer(len(entries) + 1, data)
            # Sizes need not be told, but to build those of variadic buffers.
            if rng.random() < 0.3 and not is_built:
                entry.size_bytes = -1
            entries.append(entry)
    return nodes, (bs.OwnedBuffer * len(entries))(*entries)


def values_of(array, schema):
    """What pyarrow reads, after it has validated all of it."""
    found = support.to_pyarrow(array, schema, pa.Array)
    support.validate(found)
    return found.to_pylist()


def expected(built, offset=0, length=None):
    end = len(built.values) if length is None else offset + length
    return [plain(built.kind, value) for value in built.values[offset:end]]


def check_infos(handle, built):
    """Nodes and buffers are what the builder wrote, in its order."""
    flat = built.flat()
    nodes, buffers = support.node_infos(handle), support.buffer_infos(handle)
    assert [node.format.decode() for node in nodes] == [part.kind.format for part in flat]
    assert [node.name.decode() for node in nodes] == [part.kind.name for part in flat]
    assert [buffer.role for buffer in buffers] == [role for part in flat for role, _ in part.buffers]
    at = 0
    for node, part in zip(nodes, flat):
        assert (node.first_buffer, node.n_buffers) == (at, len(part.buffers))
        for buffer, (role, data) in zip(buffers[at:], part.buffers):
            if data and role != VALIDITY and buffer.size_bytes >= 0:
                assert ctypes.string_at(buffer.data, buffer.size_bytes) == data[: buffer.size_bytes]
        at += len(part.buffers)


def child_window(built, i, offset, length):
    """Which values of a child a window on its parent shows; None for all."""
    child = built.children[i]
    start = built.offset + offset
    if built.kind.branch in ("+s", "+us"):
        return expected(child, start, length)
    if built.kind.branch == "+w":
        size = int(built.kind.format[3:])
        return expected(child, start * size, length * size)
    return expected(child)


def check_slice(handle, built, rng):
    offset = rng.randint(0, built.length)
    length = rng.randint(0, built.length - offset)
    part = out("array_slice", handle, offset, length)
    assert values_of(*support.exported(part)) == expected(built, offset, length)
    nulls = c_int64()
    call("array_null_count", part, None, byref(nulls))
    if built.kind.nullable and built.kind.branch != "dictionary":
        assert nulls.value == sum(value is None for value in built.values[offset : offset + length])
    for i in range(len(built.children)):
        child = out("array_child", part, i)
        assert values_of(*support.exported(child)) == child_window(built, i, offset, length)
        support.release(child)
    if built.dictionary:
        dictionary = out("array_dictionary", part)
        assert values_of(*support.exported(dictionary)) == expected(built.dictionary)
        support.release(dictionary)
    # A window, taken apart and put together.
    kind = support.type_of(part)
    array, schema = support.rebuilt(kind, *support.to_buffers(part))
    lib.bowstring_type_release(kind)
    support.release(part)
    assert values_of(array, schema) == expected(built, offset, length)
    _done["slices"] += 1


def check_numbers(array, built):
    """Null counts go out exact, and all numbers as given, but for the children of a struct at the root: they are cut
    to its window, which then starts at 0, unless its own nulls keep it where it was. No values start at 0."""
    is_cut = built.kind.branch == "+s" and (built.offset == 0 or built.nulls == 0)
    direct = [id(child) for child in built.children] if is_cut else []
    for (length, nulls, offset, _), part in zip(support.numbers(array), built.flat(), strict=True):
        if id(part) in direct:
            assert (length, offset) == (built.length, (part.offset + built.offset) if length else 0)
            if part.kind.nullable and part.kind.branch != "dictionary":
                window = part.values[built.offset : built.offset + built.length]
                assert nulls == sum(value is None for value in window)
        else:
            assert (length, nulls) == (part.length, part.nulls)
            assert offset == (0 if not length or (is_cut and part is built) else part.offset)


def check_single_buffers(handle, kind, nodes, owners, built, rng):
    """Each buffer with its own owner, and one of them alone in the end."""
    owned = support.single_buffers(handle)
    array, schema = support.rebuilt(kind, nodes, owned)
    support.release(handle)
    assert owners.released == []
    again = out("array_import", byref(array), byref(schema))
    living = [k for k, info in enumerate(support.buffer_infos(again)) if info.data and info.role != VARIADIC_SIZES]
    assert values_of(*support.exported(again)) == expected(built)
    last = rng.choice(living) if living else None
    buffer = out("array_buffer", again, last) if living else None
    support.release(again)
    return buffer, last


def check_case(seed):
    rng = random.Random(seed)
    drawn = draw_kind(rng)
    built = build(drawn, [draw(drawn, rng) for _ in range(rng.choice((0, 1, 2, 5, 13)))], rng)
    kind, owners = type_of(drawn), support.Owners()
    check_text(kind, drawn.size())
    nodes, entries = given(built, owners, rng)
    wanted = sum(1 for entry in entries if entry.release_owner)
    array, schema = support.rebuilt(kind, nodes, entries)
    check_numbers(array.array, built)
    handle = support.resolved(out("array_import", byref(array), byref(schema)))
    check_infos(handle, built)
    assert values_of(*support.exported(handle)) == expected(built)
    for _ in range(3):
        check_slice(handle, built, rng)
    now, released = support.to_buffers(handle)
    support.let_go(released)
    buffer, last = check_single_buffers(handle, kind, now, owners, built, rng)
    lib.bowstring_type_release(kind)
    if buffer:
        assert len(owners.released) == wanted - 1 and last + 1 not in owners.released
        lib.bowstring_buffer_release(buffer)
    assert sorted(owners.released) == sorted(set(owners.released)) and len(owners.released) == wanted
    assert support.all_gone()
    _done["cases"] += 1
    _done["nodes"] += len(nodes)
    _done["buffers"] += len(entries)
    _done["formats"] |= {part.kind.branch or part.kind.format for part in built.flat()}


@pytest.mark.parametrize("start", range(0, CASES, PART))
def test_random_arrays(start):
    for seed in range(start, start + PART):
        try:
            check_case(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_figures():
    """Runs last; alone it has nothing to show."""
    if not _done["cases"]:
        pytest.fail("run the whole file")
    support.figure("random arrays", _done["cases"], CASES)
    support.figure("their nodes", _done["nodes"], 14000)
    support.figure("their buffers", _done["buffers"], 27500)
    support.figure("slices of them", _done["slices"], 3 * CASES)
    assert _done["formats"] == {*slow_builder.LEAVES, *slow_builder.BRANCHES}
