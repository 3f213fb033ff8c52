"""How the package's objects look: as text and as HTML. Nothing here waits, or calls a driver."""

from __future__ import annotations


class ArrayLooks:
    """An `Array` for the eye."""

    __slots__ = ()


class BufferLooks:
    """A `Buffer` for the eye."""

    __slots__ = ()


class StreamLooks:
    """A `Stream` for the eye."""

    __slots__ = ()
