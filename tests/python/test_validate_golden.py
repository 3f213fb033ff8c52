"""The validator on real data: Arrow's public integration streams, as pyarrow reads them.

Each batch, a slice of it and a window on it are copied into memory that ends where their buffers must end. They are valid
at every level; then one member, pointer, byte or number at a time is changed, and the slow checker says what must be
found. VALIDATE_GOLDEN is the number of changes to each of them where more than the usual number are wanted, and
VALIDATE_SEED is where to draw them from.
"""

import ctypes
import os
import random
import struct
from ctypes import byref, c_void_p
from dataclasses import replace

import pytest

import bowstring_ctypes as bs
import slow_schema
import support
import validate_calls
from bowstring_ctypes import lib
from raw import Node
from slow_schema import BOUNDS, FULL, STRUCTURE
from test_golden import golden_files, read_stream
from test_validate_random import Comparison, all_of
from validate_arrays import Arena, Placed
from validate_calls import HOST, SCHEMA
from validate_mutations import Mutator

SEED = int(os.environ.get("VALIDATE_SEED", "0"))
MUTATIONS = int(os.environ.get("VALIDATE_GOLDEN", "32"))
STREAMS, BATCHES, SLICES = 30, 62, 90
# All that can be broken by one change to types like these.
RULES = {*"S1 S3 S5 S6 F1 F2 F3 F4 F5 A1 A2 A3 A4 A5 A7 A8 B1 B2 B3 B4 B5 B6 B7 B8 M2".split()}


def number(address, code, i=0):
    """The number at an address, or one behind it in a list of them."""
    size = struct.calcsize(f"={code}")
    return struct.unpack(f"={code}", ctypes.string_at(address + i * size, size))[0]


def encoded_metadata(address):
    """Metadata as it is encoded; only the lengths in it say where it ends."""
    if not address:
        return None
    end = address + 4
    for _ in range(2 * number(address, "i")):
        end += 4 + number(end, "i")
    return ctypes.string_at(address, end - address)


def sizes_of(format, is_dictionary, rows, is_empty, addresses):
    """How long each buffer of a node must be, of so many rows from the first that is there; none has one byte more."""
    layout = slow_schema.parse(format)
    kind, bits = layout.kind, (rows + 7) // 8
    wide = 8 if kind in ("Z", "U", "+L", "+vL") else 4
    if is_dictionary or kind.startswith("fixed") or kind in ("decimal", "binary"):
        return [bits, rows * layout.width]
    if kind in ("z", "Z", "u", "U"):
        end = 0 if is_empty else number(addresses[1], "q" if wide == 8 else "i", rows)
        return [bits, 0 if is_empty else (rows + 1) * wide, end]
    if kind in ("vz", "vu"):
        variadic = [number(addresses[-1], "q", i) for i in range(len(addresses) - 3)]
        return [bits, rows * 16, *variadic, 8 * len(variadic)]
    if kind in ("+l", "+L", "+m"):
        return [bits, 0 if is_empty else (rows + 1) * wide]
    return {
        "n": [], "b": [bits, bits], "+s": [bits], "+w": [bits], "+r": [], "sparse": [rows], "dense": [rows, 4 * rows],
        "+vl": [bits, rows * wide, rows * wide], "+vL": [bits, rows * wide, rows * wide],
    }[kind]


def node_of(schema, array):
    """A copy of raw structs, down to the last byte that must be there."""
    text = ctypes.string_at(schema.format)
    addresses = [array.buffers[i] for i in range(array.n_buffers)]
    rows = array.length + array.offset
    sizes = sizes_of(text, bool(schema.dictionary), rows, not array.length, addresses)
    assert len(sizes) == len(addresses), f"{text}: {len(addresses)} buffers, expected {len(sizes)}"
    return Node(
        text.decode(), array.length, array.null_count, array.offset,
        [None if at is None else ctypes.string_at(at, size) for at, size in zip(addresses, sizes)],
        [node_of(schema.children[i].contents, array.children[i].contents) for i in range(array.n_children)],
        node_of(schema.dictionary.contents, array.dictionary.contents) if array.dictionary else None,
        None if schema.name is None else ctypes.string_at(schema.name),
        schema.flags, encoded_metadata(schema.metadata),
    )


def copied(batch):
    """A batch of pyarrow as a node."""
    raw, schema = support.from_pyarrow(batch)
    try:
        return node_of(schema, raw.array)
    finally:
        lib.bowstring_device_array_release(byref(raw))
        lib.bowstring_schema_release(byref(schema))


def golden_nodes():
    """Every batch by itself, with a slice that moves its columns, and with a window that moves the whole."""
    for path in golden_files():
        for i, batch in enumerate(read_stream(path.read_bytes())):
            name, rows = f"{path.stem} {i}", batch.num_rows
            node = copied(batch)
            yield name, node
            if rows > 1:
                yield f"slice of {name}", copied(batch.slice(rows // 3, rows // 2))
                yield f"window on {name}", replace(node, offset=rows // 2, length=rows - rows // 2)


class Golden(Comparison):
    """Both checkers on what comes of golden batches."""

    def batch(self, name, node):
        """A batch as it is, and with one change at a time."""
        self.arena.clear()
        placed = Placed(self.arena, node, self.releases)
        self.rng = random.Random(f"windows {SEED} {name}")
        self.accepted(placed)
        assert self.case(placed) == (bs.OK, bs.OK)
        n_pieces = len(self.arena.pieces)
        for k in range(MUTATIONS):
            mutation = self.change(Mutator(placed, random.Random(f"{SEED} {name} {k}")), k)
            mutation.apply(self.arena)
            try:
                statuses = self.case(placed)
            except Exception as error:
                error.add_note(f"change {k}: {mutation}")
                raise
            finally:
                mutation.undo(self.arena)
                del self.arena.pieces[n_pieces:]
            self.count["changes"] += 1
            self.count["changes accepted"] += statuses == (bs.OK, bs.OK)
            self.count["changes refused"] += statuses is not None and statuses != (bs.OK, bs.OK)

    @staticmethod
    def change(mutator, k):
        """A mutation. Few batches have metadata, so where there is some, it is changed more often."""
        made = mutator.metadata() if k % 4 == 3 else None
        return made if made and made.before != made.after else mutator.draw()

    def accepted(self, placed):
        """No error at any level, without asking the slow checker."""
        assert self.listener.ask(SCHEMA, c_void_p(placed.schema)) == (bs.OK, None, [])
        made, _ = validate_calls.type_of(placed.schema)
        assert made
        try:
            for level in (STRUCTURE, BOUNDS, FULL):
                assert self.listener.ask(HOST, c_void_p(placed.array), made, level=level) == (bs.OK, None, []), level
                self.count["accepted as they are"] += 1
        finally:
            lib.bowstring_type_release(made)


def work_on(nodes):
    """The work of a process on some of the nodes, by their numbers."""

    def work(part, start, place, say):
        golden = Golden(Arena(slots=1500, pages=5))
        for step, i in enumerate(part[start:], start):
            place.note(step)
            name, node = nodes[i]
            try:
                golden.batch(name, node)
            except Exception as error:
                error.add_note(f"in {name}")
                raise
        say([dict(golden.count), [], sorted(golden.faults)])

    return work


@pytest.mark.skipif(not golden_files(), reason="skipped: no-golden: BOWSTRING_GOLDEN names no folder with cpp-21.0.0")
def test_golden_streams():
    """Valid as they are; changed, both checkers say the same of them, and nothing is read that is not there."""
    nodes = list(golden_nodes())
    batches = {name for name, _ in nodes if name.startswith("generated")}
    count, _, faults = all_of(work_on(nodes), range(len(nodes)))
    support.figure("validated golden streams", len({name.split()[0] for name in batches}), STREAMS)
    support.figure("validated golden batches", len(batches), BATCHES)
    support.figure("their slices and windows", len(nodes) - len(batches), SLICES)
    assert count["accepted as they are"] == 3 * len(nodes)
    support.figure("one change to them each", count["changes"], MUTATIONS * len(nodes))
    support.figure("verdicts on all of them compared", count["verdicts"], 6 * MUTATIONS * len(nodes))
    support.figure("changes refused", count["changes refused"], MUTATIONS * len(nodes) // 2)
    support.figure("changes accepted", count["changes accepted"], MUTATIONS * len(nodes) // 5)
    support.figure("kinds of faults in them", len(faults), 55)
    met = {fault.split()[0] for fault in faults}
    assert not RULES - met, f"no change broke {sorted(RULES - met)}"
