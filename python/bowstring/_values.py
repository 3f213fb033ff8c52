"""The values of an array for numerical libraries: numpy, torch, CuPy, Awkward Array."""

from __future__ import annotations


class ArrayValues:
    """Values and nulls of an `Array`."""

    __slots__ = ()
