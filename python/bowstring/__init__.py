"""Columnar data from any library to any other, without copying it and without losing track of who frees it."""

from ._array import Array, BufferView, NodeView
from ._awkward_in import from_awkward
from ._batches import stream
from ._buffer import Buffer
from ._consume import PROTOCOLS, Refused, array, buffer
from ._check import Finding
from ._device import Device
from ._distributed import register as _register_distributed
from ._errors import (
    BowstringError,
    CallbackError,
    Cancelled,
    DeviceError,
    DeviceUnavailable,
    InternalError,
    InvalidArgument,
    InvalidData,
    NotConforming,
    OutOfMemory,
    Released,
    SyncRequired,
    Unsupported,
)
from ._library import __version__, live_counts
from ._memory import CopyNeeded
from ._parts import Node, Parts, from_buffers
from ._stream import Stream
from ._type import Type
from ._views import BufferWindow, StringBuffers, Validity

__all__ = [
    "Array",
    "BowstringError",
    "Buffer",
    "BufferView",
    "BufferWindow",
    "CallbackError",
    "Cancelled",
    "CopyNeeded",
    "Device",
    "DeviceError",
    "DeviceUnavailable",
    "Finding",
    "InternalError",
    "InvalidArgument",
    "InvalidData",
    "Node",
    "NodeView",
    "NotConforming",
    "OutOfMemory",
    "PROTOCOLS",
    "Parts",
    "Refused",
    "Released",
    "Stream",
    "StringBuffers",
    "SyncRequired",
    "Type",
    "Unsupported",
    "Validity",
    "__version__",
    "array",
    "buffer",
    "from_awkward",
    "from_buffers",
    "live_counts",
    "stream",
]

_register_distributed()
