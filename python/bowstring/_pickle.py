"""Arrays in other processes: pickle with buffers out of band, and what distributed needs."""

from __future__ import annotations


class ArrayPickling:
    """An `Array` in a pickle."""

    __slots__ = ()


class BufferPickling:
    """A `Buffer` in a pickle."""

    __slots__ = ()
