"""The values of arrays as PyTorch and CuPy have them, by their own from_dlpack."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

from . import _tensors
from ._device import CUDA, CUDA_MANAGED, ROCM
from ._dlpack import ALLOW_COPY, PHYSICAL, VALUES_ONLY, Tensor
from ._errors import InvalidArgument, NotConforming, Unsupported
from ._memory import CopyNeeded
from ._numpy import EXTENSION, POLICIES, leaf_of, tensor_shape
from ._tensors import TensorSource

if TYPE_CHECKING:
    from ._array import Array

_warned = False


class Way(NamedTuple):
    """What each library has its own way of."""

    copied: "Callable[[Any], Any]"
    as_bool: "Callable[[Any], Any]"  # bytes as booleans, in place
    filled: "Callable[[Any, Any, Any], Any]"  # a copy of values, with a fill value where they are not valid


def _module(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"expected {name} for {what}(), found no such package") from None


def _warn_once() -> None:
    """Says, once in a process, that torch does not know read-only memory."""
    global _warned
    if _warned:
        return
    _warned = True
    warnings.warn(
        "torch has no read-only tensors: writing into this one changes the memory of everybody who shares the array; "
        "copy=True gives memory of its own",
        UserWarning,
        # to_torch, its caller here, this.
        stacklevel=4,
    )


def _levels(array: "Array") -> "list[Array]":
    """The array, and what is in its fixed-size lists."""
    found = [array]
    while found[-1].type.format.startswith("+w:"):
        found.append(found[-1].child(0))
    return found


def _nulls(array: "Array") -> int:
    known = array.node().null_count
    return known if known >= 0 else array.count_nulls()


def _validity(array: "Array", module: Any, values: Any) -> Any:
    """A boolean for each of the values that says whether it and the rows around it are there."""
    found: Any = None
    levels = _levels(array)
    for depth, level in enumerate(levels):
        if not _nulls(level):
            continue
        shape = [len(array), *(_size(outer) for outer in levels[:depth])]
        here = module.from_dlpack(TensorSource(functools.partial(_bitmap, level), level.device)).reshape(tuple(shape))
        if found is not None:
            here = found.reshape(tuple(found.shape) + (1,) * (len(shape) - len(found.shape))) & here
        found = here
    if found is None:
        return None
    told = tensor_shape(array.type)
    if told is None:
        widened = found.reshape(tuple(found.shape) + (1,) * (len(values.shape) - len(found.shape)))
        return module.broadcast_to(widened, tuple(values.shape))
    lengths, order = told
    if len(found.shape) == 1:
        return module.broadcast_to(found.reshape((len(array),) + (1,) * len(lengths)), tuple(values.shape))
    found = found.reshape((len(array), *lengths))
    axes = (0, *(axis + 1 for axis in order))
    return found.permute(axes) if hasattr(found, "permute") else found.transpose(axes)


def _size(level: "Array") -> int:
    """How many values a fixed-size list has."""
    return int(level.type.format[3:])


def _bitmap(array: "Array", sync: Any) -> Tensor:
    """The validity of an array that has nulls."""
    tensor = _tensors.validity_tensor(array, sync)
    if tensor is None:
        raise Unsupported(f"expected a bitmap, found {array.type}, all of whose values are null")
    return tensor


def _converted(
    array: "Array", nulls: str, copy: Optional[bool], fill_value: Any, physical: bool, module: Any,
    way: "Way",
) -> "tuple[Any, Any, bool]":
    """Values, validity and whether the values are shared, by a library's from_dlpack."""
    if nulls not in POLICIES:
        raise ValueError(f"expected nulls to be one of {POLICIES}, found {nulls!r}")
    counts = [_nulls(level) for level in _levels(array)]
    if any(counts) and nulls == "raise":
        within = f" and {sum(counts[1:])} within rows" if any(counts[1:]) else ""
        raise NotConforming(
            f"expected no nulls, found {counts[0]}{within}: nulls='split' gives them apart, and nulls='fill' replaces "
            "them",
            path="$",
        )
    bits = leaf_of(array.type).format == "b"
    flags = VALUES_ONLY | (PHYSICAL if physical else 0) | (ALLOW_COPY if bits else 0)
    filled = nulls == "fill" and any(counts)
    if copy is False and (bits or filled):
        raise CopyNeeded(f"expected no copy, found {'bits' if bits else 'nulls to fill'}: copy=None allows it")
    if filled and fill_value is None:
        if leaf_of(array.type).format not in ("e", "f", "g"):
            raise InvalidArgument(f"expected a fill_value for the nulls of {array.type}, found None")
        fill_value = float("nan")
    values = module.from_dlpack(
        TensorSource(lambda sync: _tensors.array_tensor(array, flags, sync), array.device)
    )
    if not physical and leaf_of(array.type).metadata.get(EXTENSION) == b"arrow.bool8":
        values = way.as_bool(values)
    shared = not bits
    if shared and copy and not filled:
        values, shared = way.copied(values), False
    valid: Any = _validity(array, module, values) if any(counts) else None
    if filled:
        values, shared = way.filled(values, valid, fill_value), False
    return values, valid, shared


def to_torch(array: "Array", nulls: str, copy: Optional[bool], fill_value: Any, physical: bool) -> Any:
    """See `ArrayValues.to_torch`."""
    torch = _module("torch", "to_torch")

    def filled(values: Any, valid: Any, fill: Any) -> Any:
        # Assigning to a selection is not there for unsigned integers of more than a byte.
        return torch.where(valid, values, torch.full((), fill, dtype=values.dtype, device=values.device))

    way = Way(lambda tensor: tensor.clone(), lambda tensor: tensor.view(torch.bool), filled)
    values, valid, shared = _converted(array, nulls, copy, fill_value, physical, torch, way)
    if shared:
        _warn_once()
    return (values, valid) if nulls == "split" else values


def to_cupy(array: "Array", nulls: str, copy: Optional[bool], fill_value: Any, physical: bool) -> Any:
    """See `ArrayValues.to_cupy`."""
    cupy = _module("cupy", "to_cupy")
    if array.device.type not in (CUDA, CUDA_MANAGED, ROCM):
        raise InvalidArgument(
            f"expected memory of a GPU, found {array.device}: copy it by to_device('cuda') before to_cupy()"
        )

    def filled(values: Any, valid: Any, fill: Any) -> Any:
        values = values.copy()
        values[~valid] = fill
        return values

    way = Way(lambda tensor: tensor.copy(), lambda tensor: tensor.view(bool), filled)
    values, valid, _ = _converted(array, nulls, copy, fill_value, physical, cupy, way)
    return (values, valid) if nulls == "split" else values
