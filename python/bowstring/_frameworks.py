"""The values of arrays as PyTorch and CuPy have them, by their own from_dlpack."""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _tensors
from ._device import CUDA, CUDA_MANAGED, ROCM
from ._dlpack import ALLOW_COPY, PHYSICAL, VALUES_ONLY, Tensor
from ._errors import InvalidArgument, NotConforming, Unsupported
from ._memory import CopyNeeded
from ._numpy import POLICIES, leaf_of
from ._tensors import TensorSource

if TYPE_CHECKING:
    from ._array import Array

_warned = False


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
        "torch has no read-only tensors: writing into this one changes the memory of everybody who shares the array; copy=True "
        "gives memory of its own",
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


def _bitmap(array: "Array", sync: Any) -> Tensor:
    """The validity of an array that has nulls."""
    tensor = _tensors.validity_tensor(array, sync)
    if tensor is None:
        raise Unsupported(f"expected a bitmap, found {array.type}, all of whose values are null")
    return tensor


def _converted(
    array: "Array", nulls: str, copy: Optional[bool], fill_value: Any, physical: bool, take: Callable[[Any], Any],
    copied: Callable[[Any], Any],
) -> "tuple[Any, Any, bool]":
    """Values, validity and whether the values are shared, by a library's from_dlpack."""
    if nulls not in POLICIES:
        raise ValueError(f"expected nulls to be one of {POLICIES}, found {nulls!r}")
    counts = [_nulls(level) for level in _levels(array)]
    if any(counts) and nulls == "raise":
        raise NotConforming(
            f"expected no nulls, found {sum(counts)}: nulls='split' gives them apart, and nulls='fill' replaces them", path="$"
        )
    if any(counts[1:]):
        raise Unsupported(f"expected nulls of whole rows, found {sum(counts[1:])} within rows of {array.type}")
    bits = leaf_of(array.type).format == "b"
    flags = VALUES_ONLY | (PHYSICAL if physical else 0) | (ALLOW_COPY if bits else 0)
    filled = nulls == "fill" and counts[0] > 0
    if copy is False and (bits or filled):
        raise CopyNeeded(f"expected no copy, found {'bits' if bits else 'nulls to fill'}: copy=None allows it")
    if filled and fill_value is None:
        if leaf_of(array.type).format not in ("e", "f", "g"):
            raise InvalidArgument(f"expected a fill_value for the nulls of {array.type}, found None")
        fill_value = float("nan")
    values = take(TensorSource(lambda sync: _tensors.array_tensor(array, flags, sync), array.device))
    shared = not bits
    if shared and (copy or filled):
        values, shared = copied(values), False
    valid = None
    if counts[0] and nulls != "raise":
        valid = take(TensorSource(lambda sync: _bitmap(array, sync), array.device))
        if filled:
            values[~valid] = fill_value
    return values, valid, shared


def to_torch(array: "Array", nulls: str, copy: Optional[bool], fill_value: Any, physical: bool) -> Any:
    """See `ArrayValues.to_torch`."""
    torch = _module("torch", "to_torch")
    values, valid, shared = _converted(
        array, nulls, copy, fill_value, physical, torch.from_dlpack, lambda tensor: tensor.clone()
    )
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
    values, valid, _ = _converted(
        array, nulls, copy, fill_value, physical, cupy.from_dlpack, lambda tensor: tensor.copy()
    )
    return (values, valid) if nulls == "split" else values
