"""Checking arrays by the rules of the interfaces and the needs of consumers."""

from __future__ import annotations

from ctypes import byref
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, TypeVar, cast

from . import _c
from ._device import DeviceLike, device_of, struct_of, sync_of
from ._library import call, error_record, failure, lib, made

if TYPE_CHECKING:
    from ._array import Array

PROFILES = {"spec": 0, "cudf_device": 1, "cudf_host": 2, "cudf_owning": 3}
LEVELS = {"full": 0, "bounds": 1, "structure": 2}
SEVERITIES = ("error", "warning", "note")
LAYOUTS = {None: 0, "offsets": 4, "views": 8}
_ALLOW_COPY, _AS_TABLE = 1, 2

_Self = TypeVar("_Self", bound="ArrayChecks")


class Finding(NamedTuple):
    """One thing that a check found.

    Attributes
    ----------
    severity : str
        ``"error"`` for what breaks a rule or what the profile's consumer would refuse, crash on or misread;
        ``"warning"`` for what is legal but not recommended, or makes the consumer copy; ``"note"`` for what is worth
        knowing.
    rule : str
        The rule's short name, such as ``"B2"``.
    text : str
        The rule in one sentence.
    path : str
        The node of the tree, such as ``"$.a.item"``.
    row : int or None
        The row, where it is about one.
    message : str
        What was expected and what was found.
    """

    severity: str
    rule: str
    text: str
    path: str
    row: Optional[int]
    message: str

    def __str__(self) -> str:
        where = self.path if self.row is None else f"{self.path}, row {self.row}"
        return f"{self.severity} {self.rule}: {where}: {self.message}"


def _one_of(choices: dict[Any, int], value: Any, what: str) -> int:
    try:
        return choices[value]
    except (KeyError, TypeError):
        names = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"expected {what} of {names}, found {value!r}") from None


def options_of(
    profile: str, device: Optional[DeviceLike], level: str, as_table: bool, threads: int, stream: Any
) -> _c.ValidateOptions:
    """How to validate, as the C library takes it."""
    options = _c.ValidateOptions(
        level=_one_of(LEVELS, level, "a level"), profile=_one_of(PROFILES, profile, "a profile"),
        as_table=int(as_table), threads=threads,
    )
    if device is not None:
        options.assume_device = struct_of(device_of(device))
    sync = sync_of(stream)
    if sync is not None:
        options.sync = sync
    return options


def _finding(severity: int, record: Any) -> Finding:
    return Finding(
        SEVERITIES[severity] if 0 <= severity < len(SEVERITIES) else str(severity),
        lib.bowstring_rule_name(record.rule).decode(),
        lib.bowstring_rule_text(record.rule).decode(),
        record.path.decode("utf-8", "replace"),
        None if record.row < 0 else record.row,
        record.message.decode("utf-8", "replace"),
    )


class ArrayChecks:
    """The checks of an `Array`."""

    __slots__ = ()

    def check(
        self,
        profile: str = "spec",
        device: Optional[DeviceLike] = None,
        level: str = "full",
        as_table: bool = False,
        *,
        threads: int = 1,
        stream: Any = "host",
        on_finding: Optional[Callable[[Finding], Any]] = None,
    ) -> list[Finding]:
        """What is wrong with the array, what is not recommended, and what is worth knowing, in the order of the tree.

        The array is looked at as far as its window shows it, and is not changed. Device memory is copied to the CPU in
        pieces where there is a backend for the device.

        Parameters
        ----------
        profile : str, default "spec"
            Whose reading counts: ``"spec"`` the specification's, ``"cudf_device"``, ``"cudf_host"`` or
            ``"cudf_owning"`` that of libcudf's three ways in.
        device : Device, str or (int, int), optional
            Where the profile's consumer would find the array, as if it were there already; by default where it is.
        level : str, default "full"
            ``"full"`` looks at every value that a rule is about, ``"bounds"`` reads a few numbers of each node, and
            ``"structure"`` reads no buffer.
        as_table : bool, default False
            Whether the consumer takes the root struct for a table, not for one column.
        threads : int, default 1
            The most threads that share the work of a large node.
        stream : None, "host" or a queue, default "host"
            How to wait for unfinished device work.
        on_finding : callable, optional
            Called with each `Finding` as it is found. A result that is true ends the check. What it raises is raised by
            the check.

        Returns
        -------
        list of Finding
            All findings; none for an array that is fine.

        Raises
        ------
        SyncRequired, Unsupported, DeviceUnavailable, DeviceError
            Where the level asks for what buffers hold, and they cannot be read.
        """
        options = options_of(profile, device, level, as_table, threads, stream)
        findings: list[Finding] = []
        raised: list[BaseException] = []

        def told(_context: Optional[int], severity: int, record: Any) -> int:
            # Nothing may leave a callback; what is raised here is kept until the call is over.
            try:
                finding = _finding(severity, record.contents)
                findings.append(finding)
                return int(on_finding is not None and bool(on_finding(finding)))
            except BaseException as problem:
                raised.append(problem)
                return 1

        options.on_finding = _c.ON_FINDING(told)
        error = error_record()
        status = lib.bowstring_array_validate(cast("Array", self)._handle, byref(options), byref(error))
        if raised:
            raise raised[0]
        if status not in (_c.OK, _c.INVALID_DATA, _c.NOT_CONFORMING, _c.CANCELLED):
            raise failure(error)
        return findings

    def validate(
        self: _Self,
        profile: str = "spec",
        device: Optional[DeviceLike] = None,
        level: str = "full",
        as_table: bool = False,
        *,
        threads: int = 1,
        stream: Any = "host",
    ) -> _Self:
        """The array itself, if it breaks no rule; see `check` for the parameters and for warnings.

        Raises
        ------
        InvalidData
            For the first thing that breaks a rule of the interfaces, with rule, path and row.
        NotConforming
            For the first thing that the profile's consumer would refuse, crash on or misread.
        """
        options = options_of(profile, device, level, as_table, threads, stream)
        call(lib.bowstring_array_validate, cast("Array", self)._handle, byref(options))
        return self

    def conform(
        self,
        profile: str = "spec",
        *,
        as_table: bool = False,
        layout: Optional[str] = None,
        copy: Optional[bool] = None,
        stream: Any = "host",
    ) -> "Array":
        """The array as a named consumer takes it, repaired where it would be refused, misread or crash.

        All buffers that need no repair are shared with this array, each under its own owner.

        Parameters
        ----------
        profile : str, default "spec"
            The consumer; see `check`.
        as_table : bool, default False
            Whether the consumer takes the root struct for a table, which has no nulls and no offset of its own.
        layout : None, "offsets" or "views"
            ``"offsets"`` makes offsets of string and list views, ``"views"`` views of offsets; both are a copy.
        copy : bool, optional
            None copies the buffers that need it, in CPU memory; False refuses to.
        stream : None, "host" or a queue, default "host"
            How to wait for unfinished device work.

        Raises
        ------
        NotConforming
            For what cannot be repaired, or not without a copy.
        """
        if copy:
            raise ValueError("expected None, which copies what needs it, or False, found True")
        flags = _one_of(LAYOUTS, layout, "a layout") | (_AS_TABLE if as_table else 0)
        if copy is None:
            flags |= _ALLOW_COPY
        sync = sync_of(stream)
        array = cast("Array", self)
        handle = made(
            lib.bowstring_array_conform, array._handle, _one_of(PROFILES, profile, "a profile"),
            None if sync is None else byref(sync), flags,
        )
        return type(array)._of(handle, array.source)
