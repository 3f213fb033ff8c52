"""Arrays, buffers and types in pickles: by protocol 5 with their bytes out of band, which copies nothing.

What a pickle takes of an array is what the array shows: `Cut` says how. Arrays that are not in CPU memory come back on
the CPU.
"""

from __future__ import annotations

from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Optional, Sequence

if TYPE_CHECKING:
    from ._array import Array
    from ._buffer import Buffer
    from ._type import Type


def _view(data: Any) -> memoryview:
    """The bytes of an object with the buffer protocol."""
    view = memoryview(data)
    if not view.c_contiguous:
        raise BufferError("expected bytes one behind the other, found some with strides")
    return view


def parts_of(array: "Array") -> "tuple[Type, tuple[Any, ...], list[memoryview]]":
    """What a pickle has of an array: its type, its numbers, and its bytes, each read-only and kept by its view."""
    from ._cut import Cut

    cut = Cut(array if array.device.is_cpu else array.to_device("cpu"))
    pieces: list[Any] = cut.pieces
    return array.type, (tuple(cut.nodes), tuple(cut.places)), [memoryview(piece) for piece in pieces]


def array_of(kind: "Type", shape: tuple[Any, ...], pieces: Sequence[Any]) -> "Array":
    """The array that `parts_of` took apart, on the bytes that are given, each with an owner of its own."""
    from ._array import Array
    from ._memory import Memory, build

    nodes, places = shape
    views = [_view(piece) for piece in pieces]
    memory = [Memory.none() if at < 0 else Memory.of_view(views[at]) for at in places]
    numbers = [(length, nulls, 0, n_buffers) for length, nulls, n_buffers in nodes]
    return Array._of(build(kind._handle, numbers, memory), "pickle")


def buffer_of(data: Any) -> "Buffer":
    """A buffer on bytes that an object with the buffer protocol has."""
    from ._buffer import Buffer
    from ._memory import address_in

    view = _view(data)
    return Buffer.from_address(address_in(view) if view.nbytes else 0, view.nbytes, view)


def _array(kind: "Type", shape: tuple[Any, ...], *pieces: Any) -> "Array":
    return array_of(kind, shape, list(pieces))


def _packed(piece: Any, protocol: int) -> Any:
    return PickleBuffer(piece) if protocol >= 5 else bytes(piece)


class ArrayPickling:
    """An `Array` in a pickle, and copied."""

    __slots__ = ()

    def __reduce_ex__(self: "Array", protocol: Any) -> Any:  # type: ignore[misc]
        """The type, the numbers and the bytes that the array shows; by protocol 5 the bytes can go out of band.

        Out of band nothing is copied but what `Cut` makes anew, and a buffer's pickle keeps it alive. What is unpickled
        lies on the bytes that the pickle gives, each with an owner of its own, in CPU memory; an array on a device is
        copied to the CPU first.
        """
        kind, shape, pieces = parts_of(self)
        return _array, (kind, shape, *(_packed(piece, protocol) for piece in pieces))

    def __copy__(self: "Array") -> "Array":  # type: ignore[misc]
        return self

    def __deepcopy__(self: "Array", memo: Optional[dict[int, Any]]) -> "Array":  # type: ignore[misc]
        """The array in memory of its own, on the same device."""
        return self.to_device(self.device, share=False)


class BufferPickling:
    """A `Buffer` in a pickle, and copied."""

    __slots__ = ()

    def __reduce_ex__(self: "Buffer", protocol: Any) -> Any:  # type: ignore[misc]
        if self.bufsize < 0:
            raise ValueError("expected a buffer of known size, found one whose size nobody has told: slice it first")
        host = self if self.device.is_cpu else self.to_device("cpu")
        return buffer_of, (_packed(memoryview(host), protocol),)  # type: ignore[arg-type]

    def __copy__(self: "Buffer") -> "Buffer":  # type: ignore[misc]
        return self

    def __deepcopy__(self: "Buffer", memo: Optional[dict[int, Any]]) -> "Buffer":  # type: ignore[misc]
        """The bytes in memory of their own, on the same device."""
        return self.to_device(self.device, share=False)


class StreamPickling:
    """A `Stream`, which no pickle can take."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a Stream gives each array once and cannot be pickled or copied: send its arrays, or collect() it")
