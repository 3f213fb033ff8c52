"""How the package's objects answer other libraries: Arrow's capsules here, tensors in `_produce_tensors`.

Tables of the dataframe protocol are in `_dataframe_out`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Optional

from . import _capsules
from ._device import sync_of
from ._memory import same_values, with_views_as
from ._produce_tensors import ArrayTensors, BufferTensors
from ._type import Type

if TYPE_CHECKING:
    from ._array import Array
    from ._dataframe_out import DataFrame
    from ._stream import Stream


def _no_more(keywords: "dict[str, Any]") -> None:
    """The protocol's rule for keywords that nobody knows yet."""
    for name, value in keywords.items():
        if value is not None:
            raise NotImplementedError(f"expected {name}=None, found {value!r}, which this version does not know")


def _answer(array: "Array", requested: Optional[object]) -> "Array":
    """The array as a consumer requests it; nothing is cast.

    That is itself where only names, metadata or nullability differ, or what it is with other views.
    """
    if requested is None:
        return array
    wanted = Type._of(_capsules.type_from(requested))
    own = array.type
    if same_values(own._handle, wanted._handle):
        return array
    handle = with_views_as(array._handle, wanted)
    if not handle:
        raise ValueError(f"expected a request for {str(own)!r}, which nobody here casts, found {str(wanted)!r}")
    return type(array)._of(handle, array.source)


class ArrayProtocols(ArrayTensors):
    """What an `Array` answers to other libraries."""

    __slots__ = ()

    _handle: int

    def __arrow_c_schema__(self: Any) -> object:
        """A capsule with the array's type."""
        return self.type.__arrow_c_schema__()

    def __arrow_c_array__(self: Any, requested_schema: Optional[object] = None) -> "tuple[object, object]":
        """Capsules with the array's type and the array, in CPU memory; it waits until the data is there.

        Raises
        ------
        Unsupported
            The CPU cannot read the memory where it is: `to_device("cpu")` copies it.
        ValueError
            The request is for another type.
        """
        answer = _answer(self, requested_schema)
        return _capsules.array_capsules(answer._handle, True, sync_of("host"))

    def _answer_device_array(
        self: Any, requested_schema: Optional[object] = None, **kwargs: Any
    ) -> "tuple[object, object]":
        """Capsules with the array's type and the array, on its device. Nothing waits: the event goes with it.

        Raises
        ------
        ValueError
            The request is for another type. Data is never cast, and on a device nothing is made over.
        NotImplementedError
            A keyword that this version does not know is not None.
        """
        _no_more(kwargs)
        answer = _answer(self, requested_schema)
        return _capsules.array_capsules(answer._handle, False)

    if TYPE_CHECKING:
        # A method in C, for which what is asked for in particular, or fails, is answered by the one above.
        __arrow_c_device_array__ = _answer_device_array

    def __arrow_c_stream__(self: Any, requested_schema: Optional[object] = None) -> object:
        """A capsule with a stream in CPU memory whose only array this is."""
        return _stream_of(_answer(self, requested_schema)).__arrow_c_stream__()

    def __arrow_c_device_stream__(self: Any, requested_schema: Optional[object] = None, **kwargs: Any) -> object:
        """A capsule with a stream on the array's device whose only array this is."""
        _no_more(kwargs)
        return _stream_of(_answer(self, requested_schema)).__arrow_c_device_stream__()

    def __arrow_array__(self: Any, type: Any = None) -> Any:
        """A ``pyarrow.Array`` of the same memory, cast by PyArrow where it wants another type."""
        try:
            pyarrow = importlib.import_module("pyarrow")
        except ImportError as error:
            raise ImportError("expected PyArrow, which makes this array, found none installed") from error
        found = pyarrow.array(_Capsules(self))
        return found if type is None or found.type.equals(type) else found.cast(type)


    def __dataframe__(self: Any, nan_as_null: bool = False, allow_copy: bool = True) -> "DataFrame":
        """The columns of a struct array by the dataframe protocol, in place, each buffer with an owner of its own.

        Parameters
        ----------
        nan_as_null : bool, default False
            True is refused: nobody writes into memory that is shared.
        allow_copy : bool, default True
            Whether to copy where the protocol has no such buffers: for views of strings, and for rows of the array that
            are null, which become nulls of every column.

        Raises
        ------
        Unsupported
            The array is no struct array. Of columns that the protocol has no kind for, their ``dtype`` raises it.
        CopyNeeded
            It would take a copy, and `allow_copy` is False. It is a RuntimeError, as the protocol has it.
        """
        from ._dataframe_out import frame_of

        return frame_of([self], nan_as_null, allow_copy)


class _Capsules:
    """An array's capsules and nothing else, because PyArrow asks for ``__arrow_array__`` first."""

    def __init__(self, array: "Array") -> None:
        self._array = array
        if array.device.is_cpu:
            self.__arrow_c_array__ = array.__arrow_c_array__
        self.__arrow_c_device_array__ = array.__arrow_c_device_array__


def _stream_of(array: "Array") -> "Stream":
    from ._stream import Stream

    return Stream.from_arrays([array])


class StreamProtocols:
    """What a `Stream` answers to other libraries: each answer hands the stream on, and leaves this one empty."""

    __slots__ = ()

    def __arrow_c_schema__(self: Any) -> object:
        """A capsule with the type of every array."""
        return self.type.__arrow_c_schema__()

    def __arrow_c_stream__(self: Any, requested_schema: Optional[object] = None) -> object:
        """A capsule with the stream, in CPU memory; each array is waited for.

        An array that the CPU cannot read is its error.
        """
        return _handed_on(_answer_all(self, requested_schema), True)

    def __arrow_c_device_stream__(self: Any, requested_schema: Optional[object] = None, **kwargs: Any) -> object:
        """A capsule with the stream, on its device. Nothing waits: each array has its event."""
        _no_more(kwargs)
        return _handed_on(_answer_all(self, requested_schema), False)


    def __dataframe__(self: Any, nan_as_null: bool = False, allow_copy: bool = True) -> "DataFrame":
        """The columns by the dataframe protocol, the arrays being the chunks. This stream is used up.

        All arrays are read at once, because a consumer may ask how many rows there are, and for each chunk more than
        once. Parameters and errors are those of `Array.__dataframe__`.
        """
        from ._dataframe_out import frame_of_stream

        return frame_of_stream(self, nan_as_null, allow_copy)


def _handed_on(stream: "Stream", host: bool) -> object:
    """A capsule with the stream, which is empty afterwards."""
    with stream._taken() as handle:
        return _capsules.stream_capsule(handle, host, sync_of("host") if host else None)


def _answer_all(stream: "Stream", requested: Optional[object]) -> "Stream":
    """The stream as a consumer requests it, as `_answer` has it for one array."""
    if requested is None:
        return stream
    wanted, own = Type._of(_capsules.type_from(requested)), stream.type
    if same_values(own._handle, wanted._handle):
        return stream
    if "view" not in str(own) and "view" not in str(wanted):
        raise ValueError(f"expected a request for {str(own)!r}, which nobody here casts, found {str(wanted)!r}")
    from ._batches import _lazily, _made_over

    taken = stream._moved()
    return _lazily(_made_over(taken, wanted), wanted, None, taken.source)


class BufferProtocols(BufferTensors):
    """What a `Buffer` answers to other libraries."""

    __slots__ = ()
