"""A shorter way in for PyArrow's record batches: they export to an address, and their schema is parsed once.

A schema costs PyArrow more to export than its batch. Batches of one stream or table share theirs, and two schemas that are one object
behind the scenes compare in a tenth of a microsecond.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Optional

from . import _c, _python
from ._array import Array
from ._library import error_record, failure, lib, record_address
from ._type import Type

# How many schemas are remembered, the last one first.
_REMEMBERED = 4
_seen: "list[tuple[Any, Type]]" = []

# What takes an array of a class whose schema is known; None is its answer where `record_batch` has to look.
lanes: "dict[type, Callable[[Any], Optional[Array]]]" = {}


def record_batch(batch: Any) -> Array:
    """The array of a ``pyarrow.RecordBatch``, whose schema is remembered."""
    kind = _remembered(batch.schema) or _remember(type(batch), batch.schema)
    struct = _c.ArrowDeviceArray()
    address = ctypes.addressof(struct)
    batch._export_to_c_device(address)
    handle = _python.array_import_raw(address, kind._handle, record_address())
    if handle is None:
        error = failure(error_record())
        lib.bowstring_device_array_release(struct)
        raise error
    return Array._of(handle, "__arrow_c_device_array__")


def _remembered(schema: Any) -> Optional[Type]:
    for known, kind in _seen:
        if known is schema or known.equals(schema, True):
            return kind
    return None


def _remember(kind: type, schema: Any) -> Type:
    """The schema's type, which the class's lane knows from now on."""
    made = Type(schema)
    _seen.insert(0, (schema, made))
    del _seen[_REMEMBERED:]
    known = [part for schema, made in list(_seen) for part in (schema, made, made._handle)]
    lanes[kind] = _python.array_take((Array, "schema", "equals", "_export_to_c_device", *known))
    return made


def is_record_batch(kind: type) -> bool:
    """Whether a class of PyArrow's, which somebody has imported, is the one with this way in."""
    return kind is getattr(sys.modules["pyarrow"], "RecordBatch", None) and hasattr(kind, "_export_to_c_device")
