"""What failed calls raise: one class for each status of the library."""

from __future__ import annotations

from typing import ClassVar, Optional


class BowstringError(Exception):
    """A call of the library failed; nothing that it was given was consumed.

    Attributes
    ----------
    rule : str
        The rule that the data breaks, such as ``"B2"``, or ``""`` when it is not about a rule.
    path : str
        The node of the tree, such as ``"$.a.item"``, or ``""`` when it is not about a node.
    row : int or None
        The row at which it was found.
    batch : int or None
        The batch of a stream at which it was found.
    native_code : int
        Error number of a driver, a callback or the system, 0 when there is none.
    message : str
        One sentence that says what was expected and what was found.
    """

    status: ClassVar[str] = "UNKNOWN"

    def __init__(
        self,
        message: str,
        *,
        rule: str = "",
        path: str = "",
        row: Optional[int] = None,
        batch: Optional[int] = None,
        native_code: int = 0,
    ) -> None:
        self.message = message
        self.rule = rule
        self.path = path
        self.row = row
        self.batch = batch
        self.native_code = native_code
        where = [path] if path else []
        if row is not None:
            where.append(f"row {row}")
        if batch is not None:
            where.append(f"batch {batch}")
        named = f"{rule}: " if rule else ""
        super().__init__(f"{named}{', '.join(where)}{': ' if where else ''}{message}")


class InvalidArgument(BowstringError, ValueError):
    """The call itself is wrong: an index out of range, an unknown option."""

    status = "INVALID_ARGUMENT"


class InvalidData(BowstringError, ValueError):
    """The data breaks a rule of the interfaces."""

    status = "INVALID_DATA"


class NotConforming(BowstringError, ValueError):
    """The data is legal, but the named consumer would refuse, crash on or misread it."""

    status = "NOT_CONFORMING"


class Unsupported(BowstringError, NotImplementedError):
    """Legal, but not something that this build does."""

    status = "UNSUPPORTED"


class SyncRequired(BowstringError, RuntimeError):
    """Device work may still be running, and the caller did not say how to wait for it."""

    status = "SYNC_REQUIRED"


class Released(BowstringError, ValueError):
    """The struct was released or moved out before."""

    status = "RELEASED"


class OutOfMemory(BowstringError, MemoryError):
    """An allocation failed."""

    status = "OUT_OF_MEMORY"


class DeviceUnavailable(BowstringError, RuntimeError):
    """The device's driver or the device itself is not there."""

    status = "DEVICE_UNAVAILABLE"


class DeviceError(BowstringError, RuntimeError):
    """The device's driver reported an error."""

    status = "DEVICE_ERROR"


class CallbackError(BowstringError, RuntimeError):
    """A callback of the caller or of a producer failed."""

    status = "CALLBACK_ERROR"


class Cancelled(BowstringError, RuntimeError):
    """The operation was cancelled."""

    status = "CANCELLED"


class InternalError(BowstringError, RuntimeError):
    """A fault of the library."""

    status = "INTERNAL"


# By status; the order is the one of the C constants, from 1 on.
BY_STATUS = (
    InvalidArgument,
    InvalidData,
    NotConforming,
    Unsupported,
    SyncRequired,
    Released,
    OutOfMemory,
    DeviceUnavailable,
    DeviceError,
    CallbackError,
    Cancelled,
    InternalError,
)
