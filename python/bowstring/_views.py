"""Buffers as other libraries read them: the part that an array shows, with the type of its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Optional, Union

from ._buffer import Buffer
from ._errors import Unsupported
from ._memory import CopyNeeded
from ._produce_tensors import TypedBuffer, element_of

if TYPE_CHECKING:
    from ._array import Array


class Validity(NamedTuple):
    """A validity bitmap: bit ``offset + k`` of the buffer, the lowest of each byte first, is 1 where row k is there."""

    buffer: Buffer
    offset: int


class BufferWindow(TypedBuffer):
    """Elements of one type in a buffer, as an array shows them: `count` of them, from `first` on.

    numpy, CuPy, PyTorch and others take it by their protocols, without a copy, as any `Buffer.typed`; each keeps the
    memory alive.

    Attributes
    ----------
    whole : Buffer
        The buffer that the elements are in.
    first, count : int
        Which elements of it.
    """

    __slots__ = ("whole", "first", "count")

    def __init__(self, whole: Buffer, dtype: str, first: int, count: int) -> None:
        size = element_of(dtype)[1] // 8
        super().__init__(whole.slice(first * size, count * size), dtype, count)
        self.whole, self.first, self.count = whole, first, count

    @property
    def ptr(self) -> int:
        """Address of the first element, on the buffer's device."""
        return self.buffer.ptr if self.count else 0

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        shown = f"[{self.first}:{self.first + self.count}]"
        return f"bowstring.BufferWindow({self.dtype}, {shown}, device={str(self.device)!r})"


class StringBuffers(NamedTuple):
    """Offsets and bytes of strings: row k is ``data[offsets[k]:offsets[k + 1]]``. Offsets need not start at 0.

    Attributes
    ----------
    offsets : BufferWindow
        One more than there are rows, of 32 or 64 bits.
    data : BufferWindow or Buffer
        All bytes that offsets may lead to; a `Buffer` of unknown size where only device memory tells how many there
        are.
    """

    offsets: BufferWindow
    data: "Union[BufferWindow, Buffer]"


def validity(array: "Array") -> Optional[Validity]:
    """See `ArrayValues.validity`."""
    node = array.node()
    for index in range(node.first_buffer, node.first_buffer + node.n_buffers):
        view = array.buffer_view(index)
        if view.role == "validity":
            return Validity(array.buffer(index), view.first) if view.ptr else None
    return None


def string_buffers(array: "Array", copy: Optional[bool]) -> StringBuffers:
    """See `ArrayValues.string_buffers`."""
    form = array.type.format
    if form not in ("u", "z", "U", "Z", "vu", "vz"):
        raise Unsupported(f"expected strings or bytes, found {array.type}")
    if form in ("vu", "vz"):
        if copy is False:
            raise CopyNeeded(
                f"expected no copy, found {array.type}, of which offsets have to be made: copy=None allows it"
            )
        array, copy = array.conform(layout="offsets"), None
        form = array.type.format
    if copy:
        array = array.to_device(array.device, share=False)
    if array.device.is_cpu:
        array = array.resolve_sizes()
    first = array.node().first_buffer
    element = "int64" if form in ("U", "Z") else "int32"
    offsets, data = array.buffer_view(first + 1), array.buffer_view(first + 2)
    ends = BufferWindow(array.buffer(first + 1), element, offsets.first, offsets.count if offsets.ptr else 0)
    text = array.buffer(first + 2)
    return StringBuffers(ends, text if data.n_elements < 0 else BufferWindow(text, "uint8", 0, data.n_elements))
