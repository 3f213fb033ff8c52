"""Columnar data from any library to any other, without copying it and without losing track of who frees it."""

from ._array import Array, BufferView, NodeView
from ._awkward_in import from_awkward
from ._buffer import Buffer
from ._check import Finding
from ._device import Device
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
from ._parts import Node, Parts, from_buffers
from ._stream import Stream
from ._type import Type

__all__ = [
    "Array",
    "BowstringError",
    "Buffer",
    "BufferView",
    "CallbackError",
    "Cancelled",
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
    "Parts",
    "Released",
    "Stream",
    "SyncRequired",
    "Type",
    "Unsupported",
    "__version__",
    "from_awkward",
    "from_buffers",
    "live_counts",
]
