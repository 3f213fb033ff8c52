"""Arrays, buffers, streams and types as text: what is told and left off; that nothing is read, waited for or called."""

import pyarrow as pa
import pytest
from moving_cases import NO_CUDA_SIM, columns, has_cuda_sim, on, ours, unread, with_cuda

import bowstring
from bowstring import Array, Buffer, Stream, Type
from bowstring._looks import LIMITS
from bowstring._tree import kind_of, name_of, shortened, tree_of

EVERY_TYPE = dict(columns())


def nested(depth):
    """Structs and lists within each other, each struct with a number beside the next."""
    made = pa.array([1])
    for i in range(depth):
        if i % 2:
            made = pa.StructArray.from_arrays([made, pa.array([i])], ["down", "i"])
        else:
            made = pa.ListArray.from_arrays([0, 1], made)
    return made


def test_every_node_and_buffer_is_there():
    for name, column in EVERY_TYPE.items():
        array = ours(column)
        text = repr(array)
        head, *lines = text.split("\n")
        nodes, buffers = array._counts()
        assert head == "<bowstring.Array on cpu, from test>"
        assert len(lines) == nodes + buffers and "more" not in text, name
        told = [line.strip() for line in lines]
        for index in range(buffers):
            view = array.buffer_view(index)
            size = "size unknown" if view.bufsize < 0 else f"{view.bufsize:,} byte"
            wanted = f"[{view.role}] 0x{view.ptr:x}, {size}" if view.ptr else f"[{view.role}] none"
            assert any(line.startswith(wanted) for line in told), (name, wanted)
        for node in array.nodes:
            assert any(f", length {node.length:,}, " in line for line in told), name


def test_a_column_word_for_word():
    array = ours(pa.record_batch({"a": pa.array([1, None, 3]), "t": [["x"], None, []]}))[1:]
    a, t = array["a"], array["t"]
    offsets, text = t.buffer(1).ptr, t.child(0)
    assert repr(array) == "\n".join([
        "<bowstring.Array on cpu, from test>",
        "struct, length 2, no nulls, offset 1",
        "  [validity] none",
        "  a: int64, length 2, nulls unknown, offset 1",
        f"    [validity] 0x{a.buffer(0).ptr:x}, 1 byte",
        f"    [data] 0x{a.buffer(1).ptr:x}, 24 bytes",
        "  t: list, length 2, nulls unknown, offset 1",
        f"    [validity] 0x{t.buffer(0).ptr:x}, 1 byte",
        f"    [offsets] 0x{offsets:x}, 16 bytes",
        "    item: utf8, length 1, no nulls",
        "      [validity] none",
        f"      [offsets] 0x{text.buffer(1).ptr:x}, 8 bytes",
        f"      [data] 0x{text.buffer(2).ptr:x}, size unknown",
    ])


def test_kinds_are_named_as_types_are():
    compared = 0
    for column in EVERY_TYPE.values():
        kind = ours(column).type
        if kind.format[0] != "+" and kind.dictionary is None:
            assert kind_of(kind.format) == str(kind)
            compared += 1
        elif kind.dictionary is None:
            assert str(kind).startswith(kind_of(kind.format).partition("(")[0])
    assert compared >= 40
    assert kind_of("not a format") == "not a format"


def test_unions_dictionaries_and_extensions():
    assert "\n  #5 a: int64, length 37" in repr(ours(EVERY_TYPE["dense"]))
    assert "dictionary<int32>, length 37" in repr(ours(EVERY_TYPE["dictionary"]))
    assert "\n  <dictionary>: utf8, length " in repr(ours(EVERY_TYPE["dictionary"]))
    assert "'arrow.uuid': fixed_size_binary(16)" in repr(ours(EVERY_TYPE["extension_arrow.uuid"]))


def test_nothing_is_read():
    nodes = [(5, -1, 1), (5, -1, 3), (5, 2, 2), (7, -1, 2)]
    for device in ("cpu", "cuda:0", "rocm:3"):
        with unread("struct<a: utf8, b: list<int8>>", nodes, range(0x1000, 0x9000, 0x1000), device) as array:
            text = repr(array)
            assert f"on {device}" in text and text.count("nulls unknown") == 3 and "0x4000, size unknown" in text
            assert "b: list, length 5, 2 nulls" in text
            assert array._repr_html_().count("nulls unknown") == 3
            buffer, stream = array.buffer(2), Stream.from_arrays([array])
            assert "0x3000" in repr(buffer) and device in repr(buffer) and device in repr(stream)
            if device != "cpu":
                assert array.nbytes > 0
            del array, buffer, stream


@pytest.mark.skipif(not has_cuda_sim(), reason=NO_CUDA_SIM)
def test_no_driver_is_called_and_nothing_is_waited_for():
    with_cuda("cuda_worker.py", "looking")


def test_large_trees_are_cut():
    wide = ours(pa.record_batch({f"column_{i}": [i] for i in range(1000)}))
    text = repr(wide)
    assert text.endswith(f"\n  ... and {1000 - LIMITS.children} more nodes") and len(text) < 3000
    assert "column_0:" in text and "column_500" not in text
    deep = ours(nested(50))
    text = repr(deep)
    assert "... and " in text and len(text) < 5000
    for array in (wide, deep, ours(pa.record_batch([nested(8)] * 30, [f"c{i}" for i in range(30)]))):
        tree = tree_of(array, LIMITS)

        def counted(shown):
            below = [counted(child) for child in shown.children]
            return 1 + sum(n for n, _ in below), shown.more + sum(more for _, more in below)

        shown, more = counted(tree)
        assert shown <= LIMITS.nodes and shown + more == array._counts()[0]


def test_every_column_has_its_share():
    big = pa.record_batch({f"x{i}": [i] for i in range(60)}).to_struct_array()
    array = ours(pa.record_batch({"first": big, "second": [1], "third": big}))
    text = repr(array)
    assert all(f"\n  {name}: " in text for name in ("first", "second", "third"))


def test_variadic_buffers_are_cut():
    array = ours(pa.array([f"{i:06}" * (i % 40) for i in range(9000)], pa.string_view()))
    assert array.node().n_buffers > 10
    assert f"\n  ... and {array.node().n_buffers - LIMITS.buffers} more buffers" in repr(array)


def test_odd_names():
    names = ["", "a b", 'q"u\'o', "line\nbreak", "\u202eback", "\x00\x1b[31mred", "é", "x" * 500, "ok_1"]
    array = ours(pa.record_batch([pa.array([1])] * len(names), names=[name.replace("\x00", "") for name in names]))
    text = repr(array)
    assert all(character == "\n" or character.isprintable() for character in text)
    assert len(text.split("\n")) == 2 + 1 + 3 * len(names)
    for told in ("'': ", "'a b': ", "'line\\nbreak': ", "'\\u202eback': ", "'\\x1b[31mred': ", "'é': ", "  ok_1: "):
        assert told in text, told
    assert "x" * 100 not in text and "xx…xx" in text
    assert name_of("a") == "a" and name_of("1") == "1" and name_of(" ") == "' '"
    assert shortened("abc", 3) == "abc" and len(shortened("y" * 99, 30)) == 30


def test_buffers_streams_and_types():
    array = ours(pa.array([1, 2]))
    buffer = array.buffer(1)
    assert repr(buffer) == f"<bowstring.Buffer of 16 bytes at 0x{buffer.ptr:x} on cpu>"
    assert repr(Buffer.from_address(64, 1, None, "rocm:2")) == "<bowstring.Buffer of 1 byte at 0x40 on rocm:2>"
    assert "of unknown size" in repr(ours(pa.array(["x"])).buffer(2))
    assert "on cuda_managed:0" in repr(on("cuda_managed:0", array)) and "device type 12345" not in repr(array)
    stream = Stream.from_arrays([array])
    assert repr(stream) == "<bowstring.Stream of int64 on cpu, from arrays>"
    stream.close()
    assert repr(stream) == "<bowstring.Stream that was closed or handed on>"
    taken = Stream.from_arrays([array])
    taken.collect()
    assert "closed or handed on" in repr(taken)
    kind = Type('struct<"a b": int32 not null, s: list<utf8>>')
    assert eval(repr(kind), {"bowstring": bowstring}) == kind
    wide = Type(pa.schema([(f"é{i}", pa.int8()) for i in range(1000)]))
    assert len(repr(wide)) < 1200 and repr(wide).endswith(" more bytes')")
    started = repr(wide).split("'")[1].partition("...")[0].encode()
    assert str(wide).encode().startswith(started.replace(b"\\", b"")) and len(started) >= 990
    for made in (Array, Buffer, Stream, Type):
        assert repr(made.__new__(made)).startswith(f"<bowstring.{made.__name__} that was ")


def test_bytes_that_are_shown():
    for name, column in EVERY_TYPE.items():
        array = ours(column)
        views = [array.buffer_view(index) for index in range(array._counts()[1])]
        told = sum(view.bufsize for view in views if view.bufsize > 0 and view.role != "variadic")
        if not any(view.bufsize < 0 for view in views):
            assert array.nbytes == told, name
    text = ours(pa.array(["xx", None, "yyy"]))
    assert text.nbytes == 1 + 16 + 5 and text[2:].nbytes == 1 + 8 + 3
    views = pa.array(["x" * 20, "short", "y" * 30, None], pa.string_view())
    sizes = [buffer.size for buffer in views.buffers()[2:]]
    assert ours(views).nbytes == 1 + 4 * 16 + sum(sizes) + 8 * len(sizes)
    large = ours(pa.array(["xx", "yyy"], pa.large_string()))
    assert large.nbytes == 24 + 5 and large[:1].nbytes == 16 + 2
    wide = ours(pa.array([bytes(70_000)] * 3, pa.binary(70_000)))
    assert wide.nbytes == 210_000 and wide[1:].nbytes == 140_000
    assert text.__sizeof__() - object.__sizeof__(text) == text.nbytes
