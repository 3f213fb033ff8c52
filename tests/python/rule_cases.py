"""For each rule of the library's table, data that keeps it and data that breaks it.

A case is a node with its schema and its array, or a struct of a stream or a tensor; what breaks a rule says where: the
path, and the row where there is one.
"""

from dataclasses import dataclass, field

from raw import At, Node, i16, i32, i64, i8, metadata, u8


@dataclass
class Broken:
    """A case that breaks a rule, and where."""

    case: object
    path: str = "$"
    row: int = -1
    # What the check is asked, where it is not the default.
    options: dict = field(default_factory=dict)


@dataclass
class Kept:
    """A case that keeps a rule which it could break."""

    case: object
    options: dict = field(default_factory=dict)


@dataclass
class Placed:
    """An array on a device."""

    node: Node
    device: tuple = (1, -1)
    sync_event: int | None = None
    reserved: tuple = (0, 0, 0)


@dataclass
class Stream:
    """The struct of a stream on a device; NULL where a callback is named."""

    missing: tuple = ()
    device_type: int = 2


@dataclass
class Played:
    """A stream that is imported and drained: each step is an array of 32-bit integers, or what the producer does."""

    steps: tuple = (2, 0)
    device_type: int = 1
    # What get_schema does instead of giving the type of such arrays.
    schema: object = None
    # Whether the arrays come as handles.
    as_handles: bool = False


@dataclass
class Async:
    """An asynchronous stream: what its producer does before it lets the handler go, or what a consumer requests."""

    steps: tuple = ("schema", "task", "end")
    requests: tuple = ()


@dataclass
class Tensor:
    """A DLPack tensor."""

    shape: tuple | None = (2, 3)
    strides: tuple | None = (3, 1)
    ndim: int | None = None
    dtype: tuple = (0, 32, 1)
    device: tuple = (1, 0)
    data: int = 4096
    byte_offset: int = 0
    version: tuple = (1, 2)
    flags: int = 0
    deleter: bool = True


def ints(*values, **members):
    """Valid 32-bit integers."""
    return Node("i", len(values), 0, 0, [None, i32(*values)], **members)


def text(*values, nulls=0, validity=None, **members):
    """Strings with 32-bit offsets."""
    ends = [sum(map(len, values[:n])) for n in range(len(values) + 1)]
    data = b"".join(values)
    return Node("u", len(values), nulls, 0, [validity, i32(*ends), data or None], **members)


def struct(*children, length=None, offset=0, **members):
    """A struct of children."""
    rows = children[0].length if length is None else length
    return Node("+s", rows, 0, offset, [None], list(children), **members)


def named(node, name):
    """The node with a name."""
    node.name = name
    return node


def listed(ends, child, **members):
    """A list with 32-bit offsets."""
    return Node("+l", len(ends) - 1, 0, 0, [None, i32(*ends)], [named(child, b"item")], **members)


def map_of(keys, values, entries_flags=0, key_flags=0, **members):
    """A map with all its entries in one row."""
    keys, values = named(keys, b"key"), named(values, b"value")
    keys.flags = key_flags
    entries = struct(keys, values, name=b"entries", flags=entries_flags)
    return Node("+m", 1, 0, 0, [None, i32(0, keys.length)], [entries], **members)


def runs(ends, values, length, offset=0, format_="i", pack=i32, **members):
    """A run-end encoded array."""
    run_ends = Node(format_, len(ends), 0, 0, [None, pack(*ends)], name=b"run_ends", flags=0)
    return Node("+r", length, 0, offset, [], [run_ends, named(values, b"values")], **members)


def view(value):
    """An inline view."""
    return i32(len(value)) + value.ljust(12, b"\0")


def long_view(value, which, offset, prefix=None, length=None):
    """A view of bytes in a variadic buffer."""
    return i32(len(value) if length is None else length) + (prefix or value[:4]) + i32(which, offset)


LONG = b"twenty-six bytes of ascii."


def views(*slots, data=(LONG,), sizes=None, validity=None, nulls=0, format_="vu"):
    """Views and their variadic buffers."""
    sizes = [len(one) for one in data] if sizes is None else sizes
    packed = i64(*sizes) if sizes else None
    return Node(format_, len(slots), nulls, 0, [validity, b"".join(slots), *data, packed])


def indexed(indices, values, format_="i", pack=i32, validity=None, nulls=0, **members):
    """Indices into a dictionary."""
    return Node(format_, len(indices), nulls, 0, [validity, pack(*indices)], dictionary=values, **members)


def dense(ids, offsets, *children, format_="+ud:5,7"):
    """A dense union."""
    return Node(format_, len(ids), 0, 0, [i8(*ids), i32(*offsets)], list(children))


def sparse(ids, *children, format_="+us:5,7"):
    """A sparse union."""
    return Node(format_, len(ids), 0, 0, [i8(*ids)], list(children))


DAY = 86_400
EMPTY = Node("n", 0, 0)
ALWAYS_OK = [Kept(ints(1, 2))]


def bad(node, *where, **options):
    """A case that breaks a rule."""
    return Broken(node, *where, options=options)


# What libcudf would find: in device memory as views, and in host memory that it copies.
VIEWS = {"profile": 1, "assume_device": (2, 0)}
COPIES = {"profile": 2}


def at_words(node):
    """The node with every buffer at a multiple of 16 bytes."""
    node.buffers = [At(data, 16, 0) if isinstance(data, bytes) else data for data in node.buffers]
    for below in [*node.children, *([node.dictionary] if node.dictionary else [])]:
        at_words(below)
    return node


def some_null(format_="i", pack=i32, nulls=1, **members):
    """Four values, the third of them null."""
    return at_words(Node(format_, 4, nulls, 0, [b"\x0b", pack(1, 2, 99, 4)], **members))


# Every rule: what keeps it, then what breaks it.
RULES = {
    "S1": (
        [Kept(ints(1)), Kept(Node("tss:", 1, 0, 0, [None, i64(1)]))],
        [bad(Node(None)), bad(struct(Node(None, 1, name=b"a")), "$.a"), bad(Node(b"i\xff", 0, 0, 0, [None, None]))],
    ),
    "S2": ([Kept(ints(1, name=None)), Kept(ints(1, name="ä".encode()))], [bad(ints(1, name=b"\xc3")), bad(ints(1, name=b"ok\xff"))]),
    "S3": (
        [Kept(ints(1, metadata=metadata((b"k", b"v")))), Kept(ints(1, metadata=metadata()))],
        [bad(ints(1, metadata=i32(-1))), bad(ints(1, metadata=i32(1, -2))), bad(ints(1, metadata=i32(2**30)))],
    ),
    "S4": (
        [Kept(ints(1, flags=0)), Kept(map_of(ints(1), ints(2), flags=6)), Kept(indexed([0], ints(1), flags=3))],
        [
            bad(ints(1, flags=8)),
            bad(ints(1, flags=4)),
            bad(ints(1, flags=1)),
            bad(struct(Node("i", 2, 1, 0, [b"\x01", i32(1, 2)], flags=0, name=b"a")), "$.a"),
        ],
    ),
    "S5": (
        [Kept(struct(ints(1))), Kept(Node("+s", 3, 0, 0, [None]))],
        [
            bad(ints(1, schema={"n_children": -1})),
            bad(struct(ints(1), schema={"children": None})),
            bad(struct(ints(1, schema={"release": None}))),
        ],
    ),
    "S6": (
        [Kept(indexed([0], text(b"a"))), Kept(indexed([0], ints(1), "C", u8))],
        [
            bad(Node("f", 0, 0, 0, [None, None], dictionary=ints())),
            bad(Node("+s", 0, 0, 0, [None], [ints()], dictionary=ints())),
            bad(indexed([0], ints(1, schema={"release": None}))),
        ],
    ),
    "S7": (
        [
            Kept(Node("c", 1, 0, 0, [None, i8(1)], metadata=metadata((b"ARROW:extension:name", b"arrow.bool8")))),
            Kept(ints(1, metadata=metadata((b"ARROW:extension:name", b"my.own")))),
        ],
        [
            bad(ints(1, metadata=metadata((b"ARROW:extension:name", b"arrow.bool8")))),
            bad(ints(1, metadata=metadata((b"ARROW:extension:name", b"arrow.json")))),
            bad(Node("w:15", 1, 0, 0, [None, bytes(15)], metadata=metadata((b"ARROW:extension:name", b"arrow.uuid")))),
        ],
    ),
    "F1": ([Kept(ints(1)), Kept(Node("n", 2, 2))], [bad(Node("?")), bad(Node("ii")), bad(Node(""))]),
    "F2": (
        [Kept(Node("d:9,2,32", 1, 0, 0, [None, i32(5)])), Kept(Node("d:5,-2", 1, 0, 0, [None, bytes(16)]))],
        [bad(Node("d:10,2,32")), bad(Node("d:0,0")), bad(Node("d:5,2,48"))],
    ),
    "F3": ([Kept(Node("w:0", 2, 0, 0, [None, None]))], [bad(Node("w:-1")), bad(Node("+w:x", children=[ints()])), bad(Node("w:2147483648"))]),
    "F4": (
        [Kept(Node("tsm:", 1, 0, 0, [None, i64(1)])), Kept(Node("tsn:Europe/Vienna", 1, 0, 0, [None, i64(1)]))],
        [bad(Node("tss")), bad(Node("tdx")), bad(Node("tDx"))],
    ),
    "F5": (
        [Kept(map_of(text(b"a"), ints(1))), Kept(listed([0, 1], ints(1)))],
        [
            bad(Node("+l", 0, 0, 0, [None, None])),
            bad(map_of(text(b"a"), ints(1), entries_flags=2), "$.entries"),
            bad(map_of(text(b"a"), ints(1), key_flags=2), "$.entries.key"),
            bad(runs([1], ints(1), 1, format_="I"), "$.run_ends"),
            bad(map_of(Node("i", 2, 1, 0, [b"\x01", i32(1, 2)]), ints(1, 2)), "$.entries.key"),
        ],
    ),
    "A1": (
        [Kept(Node("i", 2, 0, 1, [None, i32(0, 1, 2)]))],
        [
            bad(ints(1, array={"length": -1})),
            bad(ints(1, array={"offset": -1})),
            bad(ints(1, array={"offset": 2**63 - 1, "length": 2})),
            bad(ints(1, array={"length": 2**62})),
        ],
    ),
    "A2": (
        [
            Kept(Node("i", 4, -1, 0, [b"\x0b", i32(1, 2, 99, 4)])),
            Kept(Node("i", 4, 1, 0, [b"\x0b", i32(1, 2, 99, 4)])),
            Kept(Node("i", 2, -1, 0, [None, i32(1, 2)])),
        ],
        [
            bad(ints(1, array={"null_count": -2})),
            bad(ints(1, array={"null_count": 2})),
            bad(Node("i", 4, 2, 0, [b"\x0b", i32(1, 2, 99, 4)])),
            bad(Node("+us:0", 1, 1, 0, [i8(0)], [ints(1)])),
        ],
    ),
    "A3": (
        [Kept(ints(1)), Kept(Node("n", 1, 1, 0, [None])), Kept(views(view(b"foo"), data=(), sizes=()))],
        [
            bad(Node("i", 1, 0, 0, [i32(1)])),
            bad(Node("vu", 1, 0, 0, [None, view(b"a")])),
            bad(ints(1, array={"n_buffers": -1})),
            bad(Node("+s", 1, 0, 0, [])),
        ],
    ),
    "A4": (
        [Kept(ints(1)), Kept(EMPTY)],
        [bad(ints(1, array={"buffers": None})), bad(struct(ints(1, name=b"a", array={"buffers": None})), "$.a")],
    ),
    "A5": (
        [Kept(Node("i", 0, 0, 0, [None, None])), Kept(Node("u", 0, 0, 0, [None, None, None])), Kept(Node("z", 2, 0, 0, [None, i32(0, 0, 0), None]))],
        [
            bad(Node("i", 3, 0, 0, [None, None])),
            bad(Node("i", 2, 1, 0, [None, i32(1, 2)])),
            bad(Node("u", 2, 0, 0, [None, i32(0, 1, 2), None])),
            bad(Node("vu", 1, 0, 0, [None, view(b"a"), None, i64(5)])),
        ],
    ),
    "A6": (
        [Kept(Node("l", 1, 0, 0, [None, At(i64(1), 8, 0)])), Kept(Node("d:19,2", 1, 0, 0, [None, At(bytes(16), 16, 0)]))],
        [
            bad(Node("l", 2, 0, 0, [None, At(i64(7, -7), 8, 1)])),
            bad(Node("d:19,2", 2, 0, 0, [None, At(bytes(32), 16, 8)])),
            bad(Node("u", 1, 0, 0, [None, At(i32(0, 1), 4, 1), b"a"])),
        ],
    ),
    "A7": (
        [Kept(struct(ints(1)))],
        [
            bad(struct(ints(1), array_children=[])),
            bad(struct(ints(1, name=b"a"), array_children=[None]), "$.a"),
            bad(struct(ints(1, name=b"a", array={"release": None})), "$.a"),
            bad(indexed([0], ints(1), array_dictionary=False), "$<dictionary>"),
            bad(ints(1, array_dictionary=ints(1))),
        ],
    ),
    "A8": (
        [Kept(Node("n", 3, 3)), Kept(Node("n", 3, -1)), Kept(Node("+us:0", 1, 0, 0, [None, i8(0)], [ints(1)]))],
        [bad(Node("n", 3, 3, 0, [b"\x00"])), bad(Node("+us:0", 1, 0, 0, [b"\x01", i8(0)], [ints(1)])), bad(Node("n", 3, 0))],
    ),
    "B1": (
        [Kept(Node("u", 2, 0, 0, [None, i32(3, 5, 8), b"abcdefgh"])), Kept(listed([3, 5, 7], ints(*range(8))))],
        [
            bad(Node("u", 2, 0, 0, [None, i32(0, 2, 1), b"ab"]), "$", 1),
            bad(Node("z", 2, 0, 0, [None, i32(-1, 0, 1), b"a"]), "$", 0),
            bad(listed([0, 5, 9], ints(*range(8))), "$", 1),
            bad(Node("+L", 1, 1, 0, [b"\x00", i64(1, 0)], [ints(1, name=b"item")]), "$", 0),
            bad(Node("u", 2, 0, 0, [None, i32(4, 2, 1), b"abcd"]), "$", 1, level=1),
        ],
    ),
    "B2": (
        [
            Kept(views(view(b"foo"), long_view(LONG, 0, 0), view(b"twelve bytes"))),
            Kept(views(long_view(LONG, 9, 0), nulls=1, validity=b"\x00")),
        ],
        [
            bad(views(long_view(LONG, 1, 0)), "$", 0),
            bad(views(view(b"foo"), long_view(LONG, 0, 5, LONG[5:9])), "$", 1),
            bad(views(i32(-1) + bytes(12)), "$", 0),
            bad(views(i32(1) + b"ab" + bytes(10)), "$", 0),
            bad(views(long_view(LONG, 0, 0, b"nope")), "$", 0),
            bad(views(view(b"a"), sizes=[-1]), level=1),
        ],
    ),
    "B3": (
        [Kept(Node("+vl", 3, 0, 0, [None, i32(1, 0, 1), i32(1, 2, 0)], [ints(1, 2, name=b"item")]))],
        [
            bad(Node("+vl", 2, 0, 0, [None, i32(0, 1), i32(2, 2)], [ints(1, 2, name=b"item")]), "$", 1),
            bad(Node("+vL", 1, 1, 0, [b"\x00", i64(-1), i64(1)], [ints(1, 2, name=b"item")]), "$", 0),
            bad(Node("+vl", 1, 0, 0, [None, i32(0), i32(-1)], [ints(1, 2, name=b"item")]), "$", 0),
        ],
    ),
    "B4": (
        [Kept(struct(ints(1, 2, 3, name=b"a"), length=2)), Kept(Node("+w:2", 1, 0, 1, [None], [ints(1, 2, 3, 4, name=b"item")]))],
        [
            bad(struct(ints(1, 2, name=b"a"), length=3), "$.a"),
            bad(Node("+w:2", 2, 0, 1, [None], [ints(1, 2, 3, 4, name=b"item")]), "$.item"),
            bad(Node("+us:0", 2, 0, 1, [i8(0, 0, 0)], [ints(1, 2, name=b"a")]), "$.a"),
        ],
    ),
    "B5": (
        [Kept(dense([5, 7, 5], [0, 0, 1], ints(1, 2), ints(3))), Kept(dense([5, 5], [0, 0], ints(1), ints())), Kept(sparse([7, 5], ints(1, 2), ints(3, 4)))],
        [
            bad(dense([5, 6], [0, 0], ints(1), ints(2)), "$", 1),
            bad(dense([5, 5], [0, 1], ints(1), ints(2)), "$", 1),
            bad(dense([5, 7, 5], [1, 0, 0], ints(1, 2), ints(2)), "$", 2),
            bad(dense([5], [-1], ints(1), ints(2)), "$", 0),
            bad(sparse([5, -1], ints(1, 2), ints(3, 4)), "$", 1),
        ],
    ),
    "B6": (
        [Kept(indexed([1, 0], text(b"a", b"b"))), Kept(indexed([9, 0], ints(1), validity=b"\x02", nulls=1))],
        [
            bad(indexed([0, 2], text(b"a", b"b")), "$", 1),
            bad(indexed([-1], ints(1)), "$", 0),
            bad(indexed([200], ints(1), "C", u8), "$", 0),
        ],
    ),
    "B7": (
        [Kept(runs([2, 5], ints(1, 2), 5)), Kept(runs([2, 5], ints(1, 2), 3, 1, "s", i16))],
        [
            bad(runs([2, 4], ints(1, 2), 5), "$.run_ends", 1),
            bad(runs([2, 2], ints(1, 2), 2), "$.run_ends", 1),
            bad(runs([0, 2], ints(1, 2), 2), "$.run_ends", 0),
            bad(runs([1, 2], ints(1), 2), "$.values"),
            bad(runs([2, 4], ints(1, 2), 5), "$.run_ends", 1, level=1),
        ],
    ),
    "B8": (
        [
            Kept(text("ä".encode(), b"")),
            Kept(text(b"\xff", b"a", nulls=1, validity=b"\x02")),
            Kept(Node("tdm", 1, 0, 0, [None, i64(DAY * 1000)])),
            Kept(Node("tts", 2, 0, 0, [None, i32(0, DAY - 1)])),
            Kept(Node("d:3,0,32", 2, 0, 0, [None, i32(999, -999)])),
        ],
        [
            bad(text(b"a", b"\xff"), "$", 1),
            bad(text(b"\xc3", b"\xa4"), "$", 0),
            bad(views(view(b"\xff")), "$", 0),
            bad(Node("tdm", 2, 0, 0, [None, i64(0, 1)]), "$", 1),
            bad(Node("tts", 1, 0, 0, [None, i32(DAY)]), "$", 0),
            bad(Node("ttn", 1, 0, 0, [None, i64(-1)]), "$", 0),
            bad(Node("d:3,0,32", 1, 0, 0, [None, i32(1000)]), "$", 0),
            bad(Node("d:38,0", 1, 0, 0, [None, (10**38).to_bytes(16, "little")]), "$", 0),
        ],
    ),
    "M2": (ALWAYS_OK, [bad(ints(1, array={"release": None})), bad(ints(1, schema={"release": None})), bad(Stream(("release",)))]),
    "D2": (
        [Kept(Placed(ints(1), (16, 0)), {"level": 2}), Kept(Placed(ints(1), (17, 0)), {"level": 2})],
        [bad(Placed(ints(1), (0, 0))), bad(Placed(ints(1), (5, 0))), bad(Placed(ints(1), (-3, 0)))],
    ),
    "D3": ([Kept(Placed(ints(1), (1, 0))), Kept(Placed(ints(1)))], [bad(Placed(ints(1), (1, 99)))]),
    "D4": (
        [Kept(Placed(ints(1), (9, 0)), {"level": 2})],
        [bad(Placed(ints(1), (1, -1), 4096)), bad(Placed(ints(1), (9, 0), 4096), level=2)],
    ),
    "D7": ([Kept(Placed(ints(1)))], [bad(Placed(ints(1), reserved=(0, 0xAA, 0)))]),
    # Of a device that the library has a backend for, which the tests bring.
    "D9": (
        [
            Kept(Placed(Node("i", 0, 0, 0, [None, 4096]), (150, 0))),
            Kept(Placed(ints(1), (150, 0)), {"level": 2}),
            Kept(Placed(ints(1))),
        ],
        [
            bad(Placed(Node("i", 1, 0, 0, [None, 4096]), (150, 0))),
            bad(Placed(Node("i", 1, 0, 0, [None, 4096]), (150, 0)), level=1),
            bad(Placed(struct(Node("l", 1, 0, 0, [None, 8], name=b"a")), (150, 0)), "$.a"),
        ],
    ),
    "ST1": ([Kept(Stream())], [bad(Stream((name,))) for name in ("get_schema", "get_next", "get_last_error")]),
    "ST2": ([Kept(Played())], [bad(Played(schema="nothing"))]),
    "ST5": ([Kept(Played(as_handles=True))], [bad(Played(("text", 2), as_handles=True)), bad(Played((2, "text"), as_handles=True))]),
    "ST6": ([Kept(Played())], [bad(Played(("asks again",))), bad(Played((1, "asks again")))]),
    "DS1": (
        [Kept(Played()), Kept(Played((("on", 2, 0), ("on", 2, 7)), 2))],
        [bad(Played((("on", 2, 0),))), bad(Played((1, ("on", 13, 0)))), bad(Played((("on", 1, -1),), 2))],
    ),
    "AS2": (
        [Kept(Async())],
        [bad(Async((step, "error"))) for step in ("no producer", "no request", "no cancel")],
    ),
    "AS3": (
        [Kept(Async()), Kept(Async(("schema", "end")))],
        [bad(Async(steps)) for steps in (("task",), ("end",), ("schema", "schema"), ("NULL schema",), ("released schema",))],
    ),
    "AS4": (
        [Kept(Async()), Kept(Async(("schema", "task", "task", "end")))],
        [bad(Async(("schema", *steps))) for steps in (("end", "task"), ("end", "end"), ("task", "task", "task", "end"))],
    ),
    "AS5": ([Kept(Async())], [bad(Async(("schema", "no extract_data", "end"))), bad(Async(("schema", "released array", "end")))]),
    "AS6": ([Kept(Async(requests=(1, 2)))], [bad(Async(requests=(0,))), bad(Async(requests=(1, -1)))]),
    "AS8": ([Kept(Async())], [bad(Async(())), bad(Async(("schema",))), bad(Async(("schema", "task")))]),
    "DL1": ([Kept(Tensor())], [bad(Tensor(version=(2, 0))), bad(Tensor(version=(0, 9)))]),
    "DL2": ([Kept(Tensor(dtype=(6, 8, 1))), Kept(Tensor(device=(18, 3)))], [bad(Tensor(dtype=(99, 8, 1))), bad(Tensor(device=(5, 0)))]),
    "DL4": ([Kept(Tensor())], [bad(Tensor(deleter=False))]),
    "DL7": ([Kept(Tensor(byte_offset=12))], [bad(Tensor(byte_offset=2**63)), bad(Tensor(byte_offset=2**64 - 8))]),
    "DL8": ([Kept(Tensor(data=4096))], [bad(Tensor(data=4098)), bad(Tensor(byte_offset=1))]),
    "DL10": (
        [Kept(Tensor(strides=None, version=(1, 1))), Kept(Tensor((), None)), Kept(Tensor())],
        [bad(Tensor(strides=None)), bad(Tensor(strides=None, version=(1, 3)))],
    ),
    "DL11": ([Kept(Tensor()), Kept(Tensor((1, 4), (-99, 1)))], [bad(Tensor((2, 3), (-3, 1))), bad(Tensor((2, 3), (0, 1)))]),
    "DL12": ([Kept(Tensor((1, 8, 0, 128), (0, 0, 0, 0), data=0))], [bad(Tensor((0,), (1,)))]),
    "DL14": (
        [Kept(Tensor(dtype=(2, 64, 1))), Kept(Tensor(dtype=(0, 32, 4)))],
        [bad(Tensor(dtype=(0, 32, 0))), bad(Tensor(dtype=(6, 1, 1))), bad(Tensor(dtype=(17, 8, 1))), bad(Tensor(dtype=(0, 0, 1)))],
    ),
    "DL15": ([Kept(Tensor()), Kept(Tensor(device=(2, 7)))], [bad(Tensor(device=(1, 5))), bad(Tensor(device=(13, 1)))]),
    "DL16": ([Kept(Tensor(flags=7))], [bad(Tensor(flags=8)), bad(Tensor(flags=1 << 63))]),
    "DL18": (
        [Kept(Tensor((), None)), Kept(Tensor((2**31, 2**20), (2**20, 1), dtype=(0, 8, 1)))],
        [
            bad(Tensor(ndim=-1)),
            bad(Tensor(ndim=65)),
            bad(Tensor(None, None, 1)),
            bad(Tensor((-1,), (1,))),
            bad(Tensor((2**40, 2**40), (1, 1))),
            bad(Tensor((2, 2), (2**62, 1))),
            bad(Tensor(data=0)),
        ],
    ),
    "C1": (
        [Kept(some_null(), VIEWS), Kept(some_null(), COPIES), Kept(Placed(ints(1), (13, 0)), {"profile": 1, "level": 2})],
        [bad(some_null(), profile=1), bad(some_null(), profile=2, assume_device=(2, 0)), bad(some_null(), profile=3, assume_device=(10, 0))],
    ),
    "C2": (
        [Kept(some_null("I"), VIEWS), Kept(at_words(text(b"a")), COPIES)],
        [
            bad(at_words(Node("e", 1, 0, 0, [None, i16(0)])), **VIEWS),
            bad(at_words(struct(Node("z", 1, 0, 0, [None, i32(0, 1), b"a"], name=b"a"))), "$.a", **COPIES),
            bad(ints(1), profile=1, assume_device=(2, 0), as_table=1),
        ],
    ),
    "C3": (
        [Kept(at_words(indexed([0], text(b"a"))), VIEWS), Kept(at_words(indexed([0], text(b"a"), "c", i8)), COPIES)],
        [bad(at_words(indexed([0], text(b"a"), "C", u8)), **VIEWS), bad(at_words(indexed([0], text(b"a"), "C", u8)), **COPIES)],
    ),
    "C4": (
        [Kept(Placed(Node("i", 2**31 - 1, 0, 0, [None, 64]), (2, 0)), {"profile": 1, "level": 2})],
        [
            bad(Placed(Node("i", 2**31, 0, 0, [None, 64]), (2, 0)), profile=1, level=2),
            bad(Placed(Node("i", 3, 0, 2**32 + 1, [None, 64]), (2, 0)), profile=1, level=2),
        ],
    ),
    "C5": (
        [Kept(some_null(), VIEWS), Kept(at_words(Node("i", 2, -1, 0, [None, i32(1, 2)])), VIEWS), Kept(some_null(nulls=-1), COPIES)],
        [bad(some_null(nulls=-1), **VIEWS), bad(at_words(struct(some_null(nulls=-1, name=b"a"))), "$.a", **VIEWS)],
    ),
    "C6": (
        [Kept(at_words(struct(ints(1, 2))), {**VIEWS, "as_table": 1}), Kept(at_words(struct(ints(1, 2, 3), length=2, offset=1)), VIEWS)],
        [
            bad(at_words(struct(ints(1, 2, 3), length=2, offset=1)), as_table=1, **VIEWS),
            bad(at_words(Node("+s", 2, 1, 0, [b"\x01"], [ints(1, 2)])), as_table=1, **VIEWS),
            bad(at_words(struct(ints(1, 2), named(ints(1, 2, 3), b"b"))), as_table=1, **VIEWS),
        ],
    ),
    "C7": (
        [Kept(some_null(), VIEWS), Kept(Node("l", 1, 0, 0, [None, At(i64(7), 8, 1)]), COPIES)],
        [bad(Node("l", 1, 0, 0, [None, At(i64(7), 8, 1)]), **VIEWS), bad(Node("i", 1, 1, 0, [At(b"\x00", 4, 1), At(i32(1), 4, 0)]), **VIEWS)],
    ),
    "C8": (
        [Kept(at_words(indexed([0], ints(1))), VIEWS), Kept(at_words(indexed([0], ints(1))), COPIES)],
        [bad(at_words(indexed([0], some_null())), "$<dictionary>", **VIEWS), bad(at_words(indexed([0], some_null())), "$<dictionary>", **COPIES)],
    ),
    "C9": (
        [Kept(at_words(listed([0], ints())), COPIES), Kept(at_words(Node("b", 0, 0, 8, [None, b"\x00"])), COPIES)],
        [
            bad(Node("+l", 0, 0, 0, [None, None], [ints(name=b"item")]), **COPIES),
            bad(at_words(Node("b", 0, 0, 3, [None, b"\x00"])), **COPIES),
        ],
    ),
    "C10": ([Kept(some_null(), VIEWS)], [bad(at_words(Node("b", 1, 0, 0, [None, b"\x01\0\0\0"])), **VIEWS)]),
    "C11": ([Kept(some_null(), VIEWS)], [bad(at_words(listed([0, 1], ints(1))), **VIEWS)]),
}
