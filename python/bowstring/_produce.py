"""How the package's objects answer other libraries: Arrow's capsules, DLPack, and the array interfaces."""

from __future__ import annotations


class ArrayProtocols:
    """What an `Array` answers to other libraries."""

    __slots__ = ()


class StreamProtocols:
    """What a `Stream` answers to other libraries."""

    __slots__ = ()


class BufferProtocols:
    """What a `Buffer` answers to other libraries."""

    __slots__ = ()
