"""How buffers answer Arrow's protocols: as an array of their elements, without nulls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ._errors import Unsupported

if TYPE_CHECKING:
    from ._array import Array

# Arrow's names of DLPack's codes, and the widths that are values of Arrow.
_NAMES = {0: "int", 1: "uint", 2: "float"}
_WIDTHS = {0: (8, 16, 32, 64), 1: (8, 16, 32, 64), 2: (16, 32, 64)}


class BytesAsArrow:
    """Arrow's protocols of what has bytes, the type of its elements, and a shape."""

    __slots__ = ()

    def _elements(self: Any) -> "tuple[Any, tuple[int, int, int], tuple[int, ...]]":
        """The buffer, the type of the elements as DLPack has it, and the shape."""
        raise NotImplementedError

    def to_array(self: Any) -> "Array":
        """The elements as an `Array`, in place: each further dimension is a fixed-size list.

        Its memory is the buffer's, and its event the buffer's; it keeps both alive.

        Raises
        ------
        Unsupported
            Arrow has no such elements, or the shape has no dimension.
        """
        from ._parts import from_buffers

        buffer, (code, bits, lanes), shape = self._elements()
        if lanes != 1 or bits not in _WIDTHS.get(code, ()):
            raise Unsupported(f"expected elements that Arrow has, found DLPack's type {(code, bits, lanes)}")
        if not shape:
            raise Unsupported("expected at least one dimension, which are the rows, found none")
        kind = f"{_NAMES[code]}{bits}"
        for length in reversed(shape[1:]):
            kind = f"fixed_size_list<{kind}, {length}>"
        return from_buffers(kind, shape[0], [*[None] * len(shape), buffer])

    def __arrow_c_schema__(self: Any) -> object:
        """A capsule with the type of the elements."""
        return self.to_array().__arrow_c_schema__()

    def __arrow_c_array__(self: Any, requested_schema: Optional[object] = None) -> "tuple[object, object]":
        """Capsules with the elements as an array, as `Array.__arrow_c_array__` has it."""
        found: "tuple[object, object]" = self.to_array().__arrow_c_array__(requested_schema)
        return found

    def __arrow_c_device_array__(
        self: Any, requested_schema: Optional[object] = None, **kwargs: Any
    ) -> "tuple[object, object]":
        """Capsules with the elements as an array on their device, as `Array.__arrow_c_device_array__` has it."""
        found: "tuple[object, object]" = self.to_array().__arrow_c_device_array__(requested_schema, **kwargs)
        return found

    def __arrow_c_stream__(self: Any, requested_schema: Optional[object] = None) -> object:
        """A capsule with a stream in CPU memory whose only array the elements are."""
        return self.to_array().__arrow_c_stream__(requested_schema)

    def __arrow_c_device_stream__(self: Any, requested_schema: Optional[object] = None, **kwargs: Any) -> object:
        """A capsule with a stream on the buffer's device whose only array the elements are."""
        return self.to_array().__arrow_c_device_stream__(requested_schema, **kwargs)

    def __arrow_array__(self: Any, type: Any = None) -> Any:
        """A ``pyarrow.Array`` of the same memory, as `Array.__arrow_array__` has it."""
        return self.to_array().__arrow_array__(type)
