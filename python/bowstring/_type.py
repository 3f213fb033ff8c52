"""`Type`: a parsed schema."""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_void_p
from typing import Any, Iterator, Optional, Union

from . import _c, _capsules, _python
from ._library import call, lib, made, text_of
from ._looks import TypeLooks

NULLABLE = 2
# Nullable, ordered dictionary, sorted keys: the flags that the text has.
_TOLD = 7


def _metadata(address: Optional[int], size: int) -> dict[bytes, bytes]:
    """Decodes metadata as the Arrow C Data interface encodes it; the library has checked its lengths."""
    found: dict[bytes, bytes] = {}
    if not address:
        return found
    raw = ctypes.string_at(address, size)
    at = 4

    def text() -> bytes:
        nonlocal at
        length = int.from_bytes(raw[at : at + 4], "little")
        at += 4 + length
        return raw[at - length : at]

    for _ in range(int.from_bytes(raw[:4], "little")):
        key = text()
        found[key] = text()
    return found


def encoded_metadata(pairs: "dict[bytes, bytes]") -> Optional[bytes]:
    """Metadata as the Arrow C Data interface encodes it."""
    if not pairs:
        return None
    texts = [text for pair in pairs.items() for text in pair]
    counted = b"".join(len(text).to_bytes(4, sys.byteorder) + text for text in texts)
    return len(pairs).to_bytes(4, sys.byteorder) + counted


class Type(TypeLooks):
    """What an array's values are: a parsed schema, with its children; immutable, and safe to share between threads.

    Parameters
    ----------
    of : str, Type or object with ``__arrow_c_schema__``
        Text such as ``"struct<a: int32 not null, s: list<utf8>>"``, or any library's schema, field or type.
    """

    __slots__ = ("_handle", "__weakref__")

    _handle: int

    def __init__(self, of: "TypeLike") -> None:
        self._handle = 0
        if isinstance(of, Type):
            self._handle = lib.bowstring_type_retain(of._handle)
        elif isinstance(of, str):
            self._handle = made(lib.bowstring_type_parse, of.encode())
        elif hasattr(of, "__arrow_c_schema__"):
            self._handle = _capsules.type_from(of.__arrow_c_schema__())
        else:
            raise TypeError(f"expected a text or an object with __arrow_c_schema__, found {type(of).__name__}")

    @classmethod
    def _of(cls, handle: int) -> "Type":
        """A type that takes the handle over."""
        self = cls.__new__(cls)
        self._handle = handle
        return self

    @classmethod
    def _borrowed(cls, handle: int) -> "Type":
        """A type with a handle of its own on a node that somebody else holds."""
        return cls._of(lib.bowstring_type_retain(handle))

    def __del__(self, _release: Any = _python.type_release) -> None:
        if getattr(self, "_handle", 0):
            _release(self._handle)

    def _info(self) -> Any:
        info = _c.TypeNodeInfo()
        call(lib.bowstring_type_node_info, self._handle, 0, byref(info))
        return info

    @property
    def format(self) -> str:
        """The format string of the Arrow C Data interface, such as ``"+l"``."""
        return self._info().format.decode()

    @property
    def name(self) -> str:
        """The field's name, ``""`` when it has none."""
        return self._info().name.decode("utf-8", "replace")

    @property
    def flags(self) -> int:
        """The schema's flags: 1 ordered dictionary, 2 nullable, 4 sorted keys of a map."""
        return self._info().flags

    @property
    def nullable(self) -> bool:
        """Whether values may be null."""
        return bool(self.flags & NULLABLE)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The field's metadata; of a key that comes more than once, the last."""
        info = self._info()
        return _metadata(info.metadata, info.metadata_bytes)

    @property
    def children(self) -> "list[Type]":
        """The types of the children, in order."""
        return [self._child(index) for index in range(self._info().n_children)]

    @property
    def fields(self) -> list[str]:
        """The names of the children, in order."""
        return [child.name for child in self.children]

    @property
    def dictionary(self) -> "Optional[Type]":
        """The type of the dictionary's values, None when this type is not dictionary-encoded."""
        if self._info().dictionary == _c.NOTHING:
            return None
        handle = c_void_p()
        call(lib.bowstring_type_dictionary, self._handle, byref(handle))
        return Type._borrowed(handle.value or 0)

    def _child(self, index: int) -> "Type":
        handle = c_void_p()
        call(lib.bowstring_type_child, self._handle, index, byref(handle))
        return Type._borrowed(handle.value or 0)

    def __len__(self) -> int:
        """The number of children."""
        return self._info().n_children

    def __bool__(self) -> bool:
        # A type without children is one all the same.
        return True

    def __iter__(self) -> "Iterator[Type]":
        return iter(self.children)

    def __getitem__(self, which: Union[str, int]) -> "Type":
        return self._child(self._index(which))

    def _index(self, which: Union[str, int]) -> int:
        """A child's number, by name or by number from either end."""
        count = len(self)
        if isinstance(which, str):
            fields = self.fields
            if fields.count(which) != 1:
                found = "several" if which in fields else f"{', '.join(map(repr, fields)) or 'no fields'}"
                raise KeyError(f"expected one field {which!r}, found {found}")
            return fields.index(which)
        index = which + count if which < 0 else which
        if not 0 <= index < count:
            raise IndexError(f"expected a field below {count}, found {which}")
        return index

    def equals(self, other: "TypeLike", *, names: bool = True, metadata: bool = True, nullable: bool = True) -> bool:
        """Whether another type is the same.

        Parameters
        ----------
        other : Type, str or object with ``__arrow_c_schema__``
            The other type.
        names, metadata, nullable : bool, default True
            What counts beside the formats.
        """
        ignored = (not names) * _c.IGNORE_NAMES | (not metadata) * _c.IGNORE_METADATA
        ignored |= (not nullable) * _c.IGNORE_NULLABLE
        # It has to be there during the call.
        kind = as_type(other)
        return bool(lib.bowstring_type_equals(self._handle, kind._handle, ignored))

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, Type) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return text_of(lib.bowstring_type_to_text, self._handle)

    def __arrow_c_schema__(self) -> object:
        return _capsules.schema_capsule(self._handle)

    def __reduce__(self) -> Any:
        try:
            state: Any = str(self) if self._is_all_text() else self._state()
        except UnicodeDecodeError:
            state = self._state()
        return _rebuilt, (state,)

    def _is_all_text(self) -> bool:
        """Whether the text says everything: there is no metadata, and no flag that it does not know."""
        info = _c.TypeNodeInfo()
        at, end = 0, 1
        while at < end:
            call(lib.bowstring_type_node_info, self._handle, at, byref(info))
            if info.metadata or info.flags & ~_TOLD:
                return False
            at, end = at + 1, end if at else info.subtree_end
        return True

    def _state(self) -> tuple[Any, ...]:
        """All that makes the type, in plain objects."""
        info = self._info()
        dictionary = self.dictionary
        return (
            info.format,
            info.name,
            info.flags,
            ctypes.string_at(info.metadata, info.metadata_bytes) if info.metadata else None,
            tuple(child._state() for child in self.children),
            None if dictionary is None else dictionary._state(),
        )


def _rebuilt(state: Union[str, tuple[Any, ...]]) -> Type:
    """The type of a text, or the one that `Type._state` describes."""
    if isinstance(state, str):
        return Type(state)
    form, name, flags, metadata, children, dictionary = state
    parts = [_rebuilt(child) for child in children]
    values = None if dictionary is None else _rebuilt(dictionary)
    handles = (c_void_p * len(parts))(*(part._handle for part in parts))
    return Type._of(
        made(
            lib.bowstring_type_new, form, name, flags, handles, len(parts), None if values is None else values._handle, metadata,
            len(metadata or b""),
        )
    )


TypeLike = Union[Type, str, Any]


def as_type(of: TypeLike) -> Type:
    """`of` as a type."""
    return of if isinstance(of, Type) else Type(of)
