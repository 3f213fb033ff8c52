"""Checking arrays by the rules of the interfaces and the needs of consumers."""

from __future__ import annotations


class ArrayChecks:
    """The checks of an `Array`."""

    __slots__ = ()
