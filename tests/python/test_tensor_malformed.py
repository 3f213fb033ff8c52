"""Tensors that break a rule, or seem to, each in a process of its own, with memory that ends where the tensor says.

A tensor that is refused is still its caller's, untouched; one that is taken has its deleter called once. Names that
start with a letter and a number belong to a public report, as in test_public_cases.py.
"""

import gc
import struct
from ctypes import byref
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

import bowstring_ctypes as bs
import support
import tensors
from bowstring_ctypes import INVALID_DATA, UNSUPPORTED, BowstringError, call, lib, live_counts, out
from raw import At, in_child
from tensors import ALLOW_COPY, BFLOAT, BOOL, COMPLEX, FLOAT, INT, READ_ONLY, UINT, Made, Versioned
from validate_calls import ERROR

LONG = 2**62


@dataclass
class Taken:
    """A tensor that becomes an array of these values, or of memory on another device."""

    members: dict
    values: list | None
    kind: pa.DataType | None = None
    # Whether it takes a copy.
    by_copy: bool = False
    # Whether a tensor of before 1.0 can be so.
    can_be_legacy: bool = True


@dataclass
class Refused:
    """A tensor that is refused."""

    members: dict
    status: int
    rule: str
    flags: int = field(default=ALLOW_COPY)
    can_be_legacy: bool = True


def i32(*values):
    return struct.pack(f"={len(values)}i", *values)


def ints(values, **members):
    return Taken({"data": i32(*range(8)), "dtype": (INT, 32, 1), **members}, values, pa.int32())


def odd(code, bits, lanes=1, status=UNSUPPORTED, rule="DL14"):
    return Refused({"data": bytes(64), "dtype": (code, bits, lanes), "shape": (4,)}, status, rule)


def broken(**members):
    return Refused(members, INVALID_DATA, "DL18")


TAKEN = {
    "plain": Taken({}, [0, 1, 2, 3]),
    "minor 99": Taken({"version": (1, 99)}, [0, 1, 2, 3], can_be_legacy=False),
    "minor 9": Taken({"version": (1, 9)}, [0, 1, 2, 3], can_be_legacy=False),
    "no strides in 1.0": Taken({"version": (1, 0), "strides": None, "shape": (2, 3)}, [[0, 1, 2], [3, 4, 5]]),
    "no strides in 1.3": Taken({"strides": None, "shape": (2, 3)}, [[0, 1, 2], [3, 4, 5]]),
    "no deleter": Taken({"has_deleter": False}, [0, 1, 2, 3]),
    "byte offset": Taken({"offset": 8}, [1, 2, 3, 4]),
    "boolean": Taken({"data": b"\1\0\2\1", "dtype": (BOOL, 8, 1)}, [True, False, True, True], pa.bool8()),
    "half": Taken({"data": struct.pack("=2e", 0.5, 2), "dtype": (FLOAT, 16, 1), "shape": (2,)}, [0.5, 2], pa.float16()),
    "scalar": Taken({"shape": None, "strides": None}, [0]),
    "CPU 1": Taken({"device": (1, 1)}, [0, 1, 2, 3]),
    "misaligned": Taken({"data": At(struct.pack("=4q", 0, 1, 2, 3), 8, 1)}, [0, 1, 2, 3]),
    "pinned": Taken({"device": (3, 0), "data": 0x10000}, None),
    "managed": Taken({"device": (13, 0), "data": 0x10000}, None),
    "pinned ROCm": Taken({"device": (11, 0), "data": 0x10000}, None),
    "CUDA": Taken({"device": (2, 1), "data": 0x10000}, None),
    "copied": Taken({"flags": 2}, [0, 1, 2, 3]),
    "unknown flag": Taken({"flags": 1 << 40}, [0, 1, 2, 3]),
    "size 0": Taken({"data": None, "shape": (0,)}, []),
    "size 0 with data": Taken({"data": 0x10000, "shape": (0,)}, []),
    "size 0 within": Taken({"data": None, "shape": (2, 0)}, [[], []]),
    "backwards": Taken({"offset": 24, "strides": (-1,)}, [3, 2, 1, 0], by_copy=True),
    "one element again and again": Taken({"strides": (0,)}, [0, 0, 0, 0], by_copy=True),
    "a stride of most that is never taken": Taken(
        {"shape": (3, 1, 2), "strides": (1, 2**63 - 1, 0)}, [[[0, 0]], [[1, 1]], [[2, 2]]], by_copy=True
    ),
    "handle": Taken({"device": (4, 0), "data": 0x10000}, None),
    "row-major": Taken({"shape": (2, 3)}, [[0, 1, 2], [3, 4, 5]]),
    "column-major": Taken({"shape": (2, 3), "strides": (1, 2)}, [[0, 2, 4], [1, 3, 5]], by_copy=True),
    "A12 byte offset": ints([3, 4, 5, 6], offset=12),
    "A12 empty": ints([], data=None, shape=(0,), strides=(1,), offset=12),
    "A13 no strides": ints(
        [[1, 2, 3], [4, 5, 6]], data=i32(1, 2, 3, 4, 5, 6), shape=(2, 3), strides=None, version=(1, 0)
    ),
    "A13 zero among lengths": ints([[[] * 8] * 8], data=None, shape=(1, 8, 0, 128), strides=(0, 0, 0, 0)),
    "A13 stride never taken": ints([[0, 1, 2, 3]], shape=(1, 4), strides=(99, 1)),
    "A13 scalar": ints([42], data=i32(42), shape=None, strides=None),
    "A24 read-only": Taken({"version": (1, 0), "flags": READ_ONLY}, [0, 1, 2, 3]),
    "A24 writable": Taken({"version": (1, 0)}, [0, 1, 2, 3]),
}
REFUSED = {
    "major 2": Refused({"version": (2, 0)}, UNSUPPORTED, "DL1", can_be_legacy=False),
    "major 0": Refused({"version": (0, 9)}, UNSUPPORTED, "DL1", can_be_legacy=False),
    "lanes 2": odd(INT, 32, 2),
    "lanes 0": odd(INT, 64, 0, INVALID_DATA),
    "bits as booleans": odd(BOOL, 1, 1, INVALID_DATA),
    "bfloat16": odd(BFLOAT, 16),
    "float8": odd(10, 8),
    "float4": odd(17, 4),
    "opaque": odd(3, 64),
    "complex64": odd(COMPLEX, 64),
    "complex bfloat": odd(18, 32),
    "int 4": odd(INT, 4),
    "unsigned 128": odd(UINT, 128),
    # The header does not say which widths there are.
    "float 24": odd(FLOAT, 24),
    "float 0": odd(FLOAT, 0, 1, INVALID_DATA),
    "float8 of 16 bits": odd(10, 16, 1, INVALID_DATA),
    **{f"code {code}": odd(code, 8, 1, INVALID_DATA, "DL2") for code in (19, 20, 21, 200)},
    "device 99": Refused({"device": (99, 0)}, INVALID_DATA, "DL2"),
    "device 0": Refused({"device": (0, 0)}, INVALID_DATA, "DL2"),
    "strides on oneAPI": Refused({"device": (14, 0), "data": 0x10000, "strides": (2,)}, UNSUPPORTED, ""),
    "within a handle": Refused({"device": (4, 0), "data": 0x10000, "offset": 8}, UNSUPPORTED, ""),
    "backwards without a copy": Refused({"offset": 24, "strides": (-1,)}, UNSUPPORTED, "", 0),
    "columns without a copy": Refused({"shape": (2, 3), "strides": (1, 2)}, UNSUPPORTED, "", 0),
    "no data": broken(data=None),
    "ndim below 0": broken(ndim=-1),
    "ndim of most": Refused({"ndim": 2**31 - 1}, UNSUPPORTED, "DL18"),
    "ndim 65": Refused({"data": bytes(8), "shape": (1,) * 65}, UNSUPPORTED, "DL18"),
    "no shape": broken(shape=None, strides=(1,), ndim=1),
    "no shape nor strides": broken(shape=None, strides=None, ndim=1),
    "length below 0": broken(shape=(-1,)),
    "length below 0 of two": broken(shape=(0, -1)),
    "length below 0 of many": broken(shape=(-3, LONG), strides=(1, 1)),
    "elements above 64 bits": broken(shape=(LONG, 2), strides=(1, 1)),
    "bytes above 64 bits": broken(shape=(LONG,)),
    "stride above 64 bits": broken(shape=(3, 2), strides=(LONG, 1)),
    "stride below 64 bits": broken(shape=(3, 2), strides=(-(2**63), 1)),
    "list above 32 bits": Refused({"data": None, "shape": (0, 2**31)}, UNSUPPORTED, ""),
    "A12 byte offset of 2^63": Refused({"offset": 2**63}, INVALID_DATA, "DL7"),
    "byte offset of most": Refused({"offset": 2**64 - 1}, INVALID_DATA, "DL7"),
    "below address 0": Refused({"data": 0x10000, "strides": (-(2**40),)}, INVALID_DATA, "DL7"),
    "A13 no shape": broken(data=i32(1), dtype=(INT, 32, 1), shape=None, strides=None, ndim=1),
    "A13 ndim -1": broken(data=i32(1), dtype=(INT, 32, 1), shape=(1,), ndim=-1),
    "A13 length -1": broken(data=i32(1), dtype=(INT, 32, 1), shape=(-1,)),
}


def check_values(case, handle):
    if case.values is None:
        device = bs.Device()
        call("array_device", handle, byref(device), None)
        assert (device.type, device.id) == case.members["device"]
        assert support.buffer_infos(handle)[-1].data == case.members["data"]
        support.release(handle)
        return
    found = tensors.back(handle)
    assert found.to_pylist() == case.values
    assert found.type == case.kind or case.kind is None or pa.types.is_fixed_size_list(found.type)


def members_of(case, is_legacy):
    members = dict(case.members)
    if is_legacy:
        members["version"] = None
    return members


def opened(made):
    """The versioned tensor to import: the one that was made, or one around it."""
    if made.kind is Versioned:
        return made.cell
    wrapped = out("tensor_from_legacy", byref(made.cell), None)
    assert made.cell.value is None and tensors.look(wrapped).flags == READ_ONLY
    return wrapped


def take(case, is_legacy):
    before = live_counts()
    made = Made(**members_of(case, is_legacy))
    cell = opened(made)
    if case.by_copy:
        with pytest.raises(BowstringError, match="ALLOW_COPY"):
            tensors.array_of(cell)
        assert made.deleted == 0
    handle = tensors.array_of(cell, None, ALLOW_COPY if case.by_copy else 0)
    has_deleter = case.members.get("has_deleter", True)
    if case.by_copy or case.values == [] or case.members.get("data", True) is None:
        # Nothing of the tensor is needed any longer.
        assert made.deleted == has_deleter
    else:
        assert made.deleted == 0
        first = made.data + case.members.get("offset", 0)
        assert support.buffer_infos(handle)[-1].data == first
        again = tensors.to_tensor(handle)
        assert tensors.look(again).address == first
        tensors.release(again)
        assert made.deleted == 0
    check_values(case, handle)
    gc.collect()
    assert made.deleted == has_deleter
    assert live_counts() == before


def refuse(case, is_legacy):
    before = live_counts()
    made = Made(**members_of(case, is_legacy))
    if is_legacy and case.status == INVALID_DATA:
        with pytest.raises(BowstringError) as refused:
            out("tensor_from_legacy", byref(made.cell), None)
        assert made.cell.value == made.address
    else:
        try:
            made.cell = opened(made)
        except BowstringError as error:
            assert is_legacy and (error.status, error.rule) == (case.status, case.rule)
            made.release()
            assert made.deleted == 1
            return
        with pytest.raises(BowstringError) as refused:
            tensors.array_of(made.cell, None, case.flags)
    assert (refused.value.status, refused.value.rule) == (case.status, case.rule)
    assert refused.value.message and made.deleted == 0
    if case.status == INVALID_DATA:
        check_validation(case, made)
    wrapped = is_legacy and made.cell.value != made.address
    (tensors.release if wrapped else lambda _: made.release())(made.cell)
    assert made.deleted == 1
    assert live_counts() == before


def check_validation(case, made):
    """Validation says the same of the struct, and nothing that only follows from it."""
    name = "tensor_validate" if made.kind is Versioned else "legacy_tensor_validate"
    found = []

    def hear(_, severity, finding):
        if severity == ERROR:
            found.append(lib.bowstring_rule_name(finding.contents.rule).decode())
        return 0

    listener = bs.ON_FINDING(hear)
    for options in (None, byref(bs.ValidateOptions(on_finding=listener))):
        with pytest.raises(BowstringError) as invalid:
            call(name, made.cell, options)
        assert (invalid.value.status, invalid.value.rule) == (case.status, case.rule)
    assert found == [case.rule]


def refuse_in_capsule(case):
    """The capsule keeps its name and its tensor, which goes with it."""
    made = Made(**case.members)
    capsule = tensors.capsule(made.address)
    for _ in range(2):
        with pytest.raises(BowstringError) as refused:
            tensors.consumed(capsule, None, case.flags)
        assert (refused.value.status, refused.value.rule) == (case.status, case.rule)
    assert tensors.name_of(capsule) == tensors.NAME and made.deleted == 0
    # An exception's frames refer to the capsule too.
    del capsule, refused
    gc.collect()
    assert made.deleted == 1 and tensors.dropped == [tensors.NAME]


def in_every_form(case, check, *further):
    """With a version, without one where that can be, and whatever else is to be looked at."""
    # What the parent has would be copied page by page if it were searched for garbage.
    gc.freeze()
    check(case, False)
    if case.can_be_legacy:
        check(case, True)
    for look in further:
        look(case)


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name):
    in_child(in_every_form, TAKEN[name], take)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    in_child(in_every_form, REFUSED[name], refuse, refuse_in_capsule)


def no_more_than_the_head():
    """Of another major version nothing behind the flags is there to be read."""
    head = Versioned.dl_tensor.offset
    made = Made(version=(2, 0))
    at = made.place("tensor", bytes(Versioned.from_address(made.address))[:head])
    made.address = at
    made.cell.value = at
    with pytest.raises(BowstringError, match="DL1"):
        call("array_from_tensor", byref(made.cell), None, None, byref(bs.c_void_p()))
    assert made.cell.value == at and made.deleted == 0
    made.release()
    assert made.deleted == 1


def test_another_major_version_is_not_read():
    in_child(no_more_than_the_head)


def used_twice():
    made = Made()
    capsule = tensors.capsule(made.address)
    handle = tensors.consumed(capsule)
    assert tensors.name_of(capsule) == tensors.USED
    with pytest.raises(ValueError):
        tensors.consumed(capsule)
    del capsule
    assert made.deleted == 0 and not tensors.dropped
    assert tensors.back(handle).to_pylist() == [0, 1, 2, 3]
    gc.collect()
    assert made.deleted == 1


def never_used():
    made = Made()
    capsule = tensors.capsule(made.address)
    with pytest.raises(ValueError):
        tensors.taken(capsule, tensors.LEGACY_NAME)
    assert tensors.name_of(capsule) == tensors.NAME and made.deleted == 0
    del capsule
    gc.collect()
    assert made.deleted == 1


def taken_then_missed():
    """A pointer that was taken is NULL, and another call with it says so."""
    made = Made()
    handle = tensors.array_of(made.cell)
    with pytest.raises(BowstringError) as refused:
        tensors.array_of(made.cell)
    assert refused.value.status == bs.INVALID_ARGUMENT
    support.release(handle)
    assert made.deleted == 1


@pytest.mark.parametrize("check", (used_twice, never_used, taken_then_missed))
def test_a14_each_is_taken_once(check):
    in_child(check)


def flag_kept(flags):
    """READ_ONLY goes from tensor to tensor; a legacy tensor of it has to be asked for."""
    made = Made(version=(1, 0), flags=flags)
    cell = made.cell
    if flags & READ_ONLY:
        with pytest.raises(BowstringError, match="DROP_READ_ONLY"):
            out("tensor_to_legacy", byref(cell), None)
        assert cell.value == made.address and made.deleted == 0
    allowed = tensors.options(tensors.DROP_READ_ONLY * bool(flags & READ_ONLY))
    old = out("tensor_to_legacy", byref(cell), allowed)
    assert cell.value is None and tensors.look(old, tensors.Legacy).address == made.data
    new = out("tensor_from_legacy", byref(old), None)
    assert old.value is None and tensors.look(new).flags == READ_ONLY
    assert tensors.look(new).address == made.data and made.deleted == 0
    handle = tensors.array_of(new)
    # An array is read-only whatever it was made of.
    again = tensors.to_tensor(handle)
    support.release(handle)
    assert tensors.look(again).flags == READ_ONLY and tensors.values(again).tolist() == [0, 1, 2, 3]
    assert made.deleted == 0
    tensors.release(again)
    assert made.deleted == 1


@pytest.mark.parametrize("flags", (0, READ_ONLY, 2))
def test_a24_read_only(flags):
    in_child(flag_kept, flags)


def test_how_much_was_tried():
    support.figure("malformed and odd tensors", len(TAKEN) + len(REFUSED), 70)
