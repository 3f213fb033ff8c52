"""Arrays taken apart into buffers and put together from them."""

from __future__ import annotations


class ArrayParts:
    """An `Array` as plain buffers."""

    __slots__ = ()
