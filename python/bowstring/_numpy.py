"""The values of arrays as numpy has them."""

from __future__ import annotations

import json
from ctypes import byref, c_bool, c_void_p
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from . import _c, _tensors
from ._device import CPU, CUDA_HOST, CUDA_MANAGED, ROCM_HOST, Device, struct_of
from ._dlpack import ALLOW_COPY, PHYSICAL, VALUES_ONLY
from ._errors import InvalidArgument, NotConforming, Unsupported
from ._library import call, lib
from ._memory import CopyNeeded
from ._type import Type

if TYPE_CHECKING:
    from ._array import Array

UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
EXTENSION = b"ARROW:extension:name"
POLICIES = ("raise", "split", "fill")
_NUMBERS = frozenset("cCsSiIlLefg")


def need_numpy(what: str) -> Any:
    """The numpy module."""
    try:
        import numpy
    except ImportError:
        raise ImportError(f"expected numpy for {what}, found no such package: pip install numpy") from None
    return numpy


class Plan(NamedTuple):
    """How numpy has the values of a type."""

    kind: str  # plain, view, widen, bool, bool8 or decimal
    dtype: Any
    size: int  # bytes of a value in the Arrow buffer


def leaf_of(kind: Type) -> Type:
    """The type within fixed-size lists."""
    while kind.format.startswith("+w:"):
        kind = kind.children[0]
    return kind


def plan_of(kind: Type) -> Plan:
    """How numpy has the values of a type that is no list; Unsupported with the reason for those that it has not."""
    form, found = kind.format, None
    if kind.dictionary is not None:
        raise Unsupported(
            "expected values, found indices into a dictionary: array.codes.to_numpy() has the indices, and "
            "array.dictionary.to_numpy() what they lead to"
        )
    if form in _NUMBERS:
        if form == "c" and kind.metadata.get(EXTENSION) == b"arrow.bool8":
            return Plan("bool8", "?", 1)
        return Plan("plain", None, 0)
    if form == "b":
        return Plan("bool", "?", 0)
    if form.startswith("ts"):
        found = Plan("view", f"M8[{UNITS[form[2]]}]", 8)
    elif form.startswith("tD"):
        found = Plan("view", f"m8[{UNITS[form[2]]}]", 8)
    elif form in ("ttu", "ttn"):
        found = Plan("view", f"m8[{UNITS[form[2]]}]", 8)
    elif form in ("tts", "ttm"):
        found = Plan("widen", f"m8[{UNITS[form[2]]}]", 4)
    elif form == "tdD":
        found = Plan("widen", "M8[D]", 4)
    elif form == "tdm":
        found = Plan("view", "M8[ms]", 8)
    elif form == "tiM":
        found = Plan("widen", "m8[M]", 4)
    elif form == "tiD":
        found = Plan("view", [("days", "i4"), ("milliseconds", "i4")], 8)
    elif form == "tin":
        found = Plan("view", [("months", "i4"), ("days", "i4"), ("nanoseconds", "i8")], 16)
    elif form.startswith("w:"):
        found = Plan("view", f"V{form[2:]}", int(form[2:]))
    elif form.startswith("d:"):
        bits = (form[2:].split(",") + ["128"])[2]
        found = Plan("decimal", "O", int(bits) // 8)
    if found is None:
        raise Unsupported(f"expected values of one size, found {kind}: {_elsewhere(form)}")
    return found


def _elsewhere(form: str) -> str:
    """Where values that numpy has no array of are to be had."""
    if form in ("u", "U", "z", "Z", "vu", "vz"):
        return "string_buffers() has the offsets and the bytes"
    if form == "n":
        return "all of them are null"
    if form == "+s":
        return "each field has a to_numpy() of its own, and to_awkward() takes them together"
    if form == "+r":
        return "the children are the ends of the runs and their values"
    return "to_awkward() takes them as they are, and the children have a to_numpy() of their own"


def on_host(array: "Array", copy: Optional[bool], what: str) -> "Array":
    """The array where the CPU can read it; other memory is never copied unasked."""
    device = array.device
    if device.type == CPU:
        return array
    if device.type in (CUDA_HOST, CUDA_MANAGED, ROCM_HOST):
        options = _c.TransferOptions(flags=_c.MAY_SHARE)
        options.sync = _c.Sync(_c.SYNC_HOST, 0, None)
        handle, shared = c_void_p(), c_bool()
        call(
            lib.bowstring_array_to_device, array._handle, struct_of(Device(CPU, -1)), byref(options), byref(handle),
            byref(shared),
        )
        here = type(array)._of(handle.value or 0, array.source)
        if shared or copy is not False:
            return here
    raise InvalidArgument(
        f"expected memory that the CPU reads, found {device}: copy it by to_device('cpu') before {what}()"
    )


def validity_of(array: "Array", np: Any) -> Optional[Any]:
    """A boolean for each row that says whether it is there; None when all are. The array is in CPU memory."""
    if array.type.format == "n":
        return np.zeros(len(array), "?")
    if not array.null_count:
        return None
    tensor = _tensors.validity_tensor(array)
    return None if tensor is None else np.asarray(_tensors.HostTensor(tensor))


def nulls_within(array: "Array", np: Any) -> "tuple[int, int, Optional[Any]]":
    """How many nulls there are at any level of fixed-size lists, the first row with one, and which values are there."""
    total, first, valid = 0, -1, None
    level, shape = array, [len(array)]
    while True:
        if valid is not None:
            valid = np.broadcast_to(valid.reshape(valid.shape + (1,) * (len(shape) - valid.ndim)), shape)
        here = validity_of(level, np)
        if here is not None:
            here = here.reshape(shape)
            # What is below a null is not a further one.
            missing = ~here if valid is None else ~here & valid
            rows: Any = np.flatnonzero(missing.reshape(shape[0], -1).any(axis=1)) if missing.size else []
            if len(rows):
                total += int(missing.sum())
                first = int(rows[0]) if first < 0 else min(first, int(rows[0]))
                valid = here if valid is None else valid & here
        form = level.type.format
        if not form.startswith("+w:"):
            return total, first, valid
        shape.append(int(form[3:]))
        level = level.child(0)


def tensor_shape(kind: Type) -> "Optional[tuple[list[int], list[int]]]":
    """Lengths of an arrow.fixed_shape_tensor as it lies in memory, and the order its dimensions are to be seen in."""
    metadata = kind.metadata
    if metadata.get(EXTENSION) != b"arrow.fixed_shape_tensor":
        return None
    told = json.loads(metadata.get(b"ARROW:extension:metadata", b"{}"))
    return told["shape"], told.get("permutation") or list(range(len(told["shape"])))


def _spread(valid: Any, values: Any, kind: Type) -> Any:
    """Validity in the shape of the values, whose dimensions an extension may have put in another order."""
    told = tensor_shape(kind)
    if told is None:
        return valid
    shape, order = told
    return valid.reshape((len(values), *shape)).transpose((0, *(axis + 1 for axis in order)))


def _decimals(rows: Any, kind: Type, np: Any) -> Any:
    """Decimal objects of little-endian integers, one row of bytes or one integer for each."""
    from decimal import Context, Decimal

    scale = int(kind.format[2:].split(",")[1])
    exact = Context(prec=100)
    if rows.dtype == np.uint8:
        flat = [int.from_bytes(row.tobytes(), "little", signed=True) for row in rows.reshape(-1, rows.shape[-1])]
        shape = rows.shape[:-1]
    else:
        flat, shape = [int(row) for row in rows.reshape(-1)], rows.shape
    out = np.empty(len(flat), object)
    for index, number in enumerate(flat):
        out[index] = Decimal(number).scaleb(-scale, exact)
    return out.reshape(shape)


def _values(array: "Array", plan: Plan, copy: Optional[bool], np: Any) -> "tuple[Any, bool]":
    """The values, nulls being whatever lies there, and whether they are a copy."""
    leaf = leaf_of(array.type)
    if plan.kind in ("widen", "bool", "decimal") and copy is False:
        why = {"widen": "values of another size", "bool": "bytes of bits", "decimal": "objects"}[plan.kind]
        raise CopyNeeded(f"expected no copy, found {leaf}, of which numpy has {why}: copy=None allows it")
    flags = PHYSICAL | VALUES_ONLY | (ALLOW_COPY if plan.kind == "bool" else 0)
    if plan.size == 0 and plan.kind == "view":
        return np.zeros(_shape(array), plan.dtype), True
    values = np.asarray(_tensors.HostTensor(_tensors.array_tensor(array, flags)))
    if plan.kind == "plain":
        return values, False
    if plan.kind == "bool":
        return values, True
    if plan.kind == "widen":
        return values.astype("i8").view(plan.dtype), True
    if plan.kind == "decimal":
        return _decimals(values, leaf, np), True
    if plan.kind == "bool8":
        # Anything but 0 is true, and numpy wants 1.
        if values.size == 0 or ((values == 0) | (values == 1)).all():
            return values.view("?"), False
        if copy is False:
            raise CopyNeeded("expected no copy, found booleans other than 0 and 1: copy=None allows it")
        return values != 0, True
    if values.dtype.itemsize == plan.size and values.dtype.kind != "u":
        return values.view(plan.dtype), False
    # The last dimension is the parts of a value.
    if values.size == 0:
        return np.zeros(values.shape[:-1], plan.dtype), True
    return values.view(plan.dtype)[..., 0], False


def _shape(array: "Array") -> "list[int]":
    shape, kind = [len(array)], array.type
    while kind.format.startswith("+w:"):
        shape.append(int(kind.format[3:]))
        kind = kind.children[0]
    return shape


def to_numpy(array: "Array", nulls: str, copy: Optional[bool], fill_value: Any) -> Any:
    """See `ArrayValues.to_numpy`."""
    np = need_numpy("to_numpy()")
    if nulls not in POLICIES:
        raise ValueError(f"expected nulls to be one of {POLICIES}, found {nulls!r}")
    plan = plan_of(leaf_of(array.type))
    array = on_host(array, copy, "to_numpy")
    missing, first, valid = nulls_within(array, np)
    if missing and nulls == "raise":
        raise NotConforming(
            f"expected no nulls, found {missing}, the first in row {first}: nulls='split' gives them apart, and "
            "nulls='fill' replaces them",
            path="$", row=first,
        )
    if missing and nulls == "fill":
        if copy is False:
            raise CopyNeeded(f"expected no copy, found {missing} nulls to fill: copy=None allows it")
        filler = _filler(plan, array, fill_value, np)
    values, copied = _values(array, plan, copy, np)
    if (copy or (missing and nulls == "fill")) and not copied:
        values, copied = values.copy(), True
    if copied and not values.flags.writeable:
        values = values.copy()
    if missing and valid is not None:
        valid = _spread(valid, values, array.type)
        if nulls == "fill":
            values[~valid] = filler
    if nulls == "split":
        return values, valid if missing else None
    return values


def _filler(plan: Plan, array: "Array", fill_value: Any, np: Any) -> Any:
    """What goes in the place of nulls."""
    if fill_value is not None:
        return fill_value
    if plan.kind == "plain" and leaf_of(array.type).format in ("e", "f", "g"):
        return np.nan
    if plan.kind in ("view", "widen") and isinstance(plan.dtype, str) and plan.dtype[:2] in ("M8", "m8"):
        return np.array("NaT", plan.dtype)
    raise InvalidArgument(f"expected a fill_value, as {leaf_of(array.type)} has no value for nulls, found None")
