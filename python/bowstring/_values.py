"""The values of an array for numerical libraries: numpy, torch, CuPy, Awkward Array."""

from __future__ import annotations

from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Optional, cast

from ._library import call, lib, made

if TYPE_CHECKING:
    from ._array import Array
    from ._views import StringBuffers, Validity


class ArrayValues:
    """Values and nulls of an `Array`."""

    __slots__ = ()

    def to_numpy(self, nulls: str = "raise", copy: Optional[bool] = None, fill_value: Any = None) -> Any:
        """The values as a numpy array, on the same memory wherever numpy has such values.

        The result is read-only unless it is a copy; it keeps the values' buffer alive, and no more of the array.

        Numbers come as they are; dates, timestamps, times of day and durations as ``datetime64`` and ``timedelta64``
        (time zones are dropped: the values are UTC); fixed-size binary and intervals as void and structured dtypes;
        fixed-size lists and ``arrow.fixed_shape_tensor`` as further dimensions. Always a copy are bits, which become
        bytes, values that numpy has in 64 bits only (``date32``, ``time32``), and decimals, which become
        ``decimal.Decimal`` objects.

        Parameters
        ----------
        nulls : str, default "raise"
            ``"raise"`` refuses nulls. ``"split"`` returns a pair: the values, with anything in the place of nulls, and
            a boolean array that is True where a value is there, or None where all are. ``"fill"`` puts `fill_value` in
            the place of nulls, which is a copy if there are any.
        copy : bool, optional
            None copies where it must, False refuses to, True always does.
        fill_value : optional
            By default NaN for floats and NaT for dates and times; all else needs one.

        Raises
        ------
        NotConforming
            For nulls, with their number and the first row.
        Unsupported
            For types that numpy has no array of, with where else the values are.
        CopyNeeded
            Where False forbids a needed copy.
        InvalidArgument
            For memory of a device, which is never copied to the CPU unasked, and where `fill_value` is needed.
        """
        from . import _numpy

        return _numpy.to_numpy(cast("Array", self), nulls, copy, fill_value)

    def to_torch(
        self, nulls: str = "raise", copy: Optional[bool] = None, fill_value: Any = None, *, physical: bool = False
    ) -> Any:
        """The values as a tensor of PyTorch on the same device, by ``torch.from_dlpack``.

        PyTorch's current queue waits for the array's event. PyTorch has no read-only tensors: what writes into a shared
        one writes into the array, which is warned about once in a process.

        Parameters
        ----------
        nulls, copy, fill_value
            As `to_numpy` has them. Booleans are always a copy. Nulls inside of fixed-size lists are refused.
        physical : bool, default False
            Whether values that PyTorch has no type for go out as what they consist of, such as timestamps as 64-bit
            integers and indices into dictionaries.

        Raises
        ------
        ImportError
            Where PyTorch is not installed.
        NotConforming, Unsupported, CopyNeeded, InvalidArgument
            As `to_numpy`.
        """
        from . import _frameworks

        return _frameworks.to_torch(cast("Array", self), nulls, copy, fill_value, physical)

    def to_cupy(
        self, nulls: str = "raise", copy: Optional[bool] = None, fill_value: Any = None, *, physical: bool = False
    ) -> Any:
        """The values as an array of CuPy on the same device, by ``cupy.from_dlpack``.

        CuPy's current stream waits for the array's event. CuPy has no read-only arrays: writing into a shared one
        changes the array. Memory of the CPU is refused; `to_device` brings it to the GPU.

        Parameters
        ----------
        nulls, copy, fill_value, physical
            As `to_torch` has them.

        Raises
        ------
        ImportError
            Where CuPy is not installed.
        NotConforming, Unsupported, CopyNeeded, InvalidArgument
            As `to_numpy`.
        """
        from . import _frameworks

        return _frameworks.to_cupy(cast("Array", self), nulls, copy, fill_value, physical)

    def to_awkward(self, *, copy: Optional[bool] = None, highlevel: bool = True) -> Any:
        """The array as an Awkward Array, sharing its buffers.

        Types come out as ``ak.from_arrow`` has them: nullable fields are options, dictionaries categorical, maps lists
        of records with key and value. What Awkward Array has no equal layout for is a copy of the one buffer: bits of
        booleans, bitmaps that do not start at a byte, ``date32`` and ``time32``, indices into dictionaries of other
        sizes or with nulls, string views, and the ends of list views; Awkward Array itself joins a union's contents of
        one kind.

        Memory of CUDA becomes arrays of CuPy, whose current stream waits for the array's event. No GPU has proved this
        yet.

        Parameters
        ----------
        copy : bool, optional
            None copies where it must, False refuses to, True gives memory of its own.
        highlevel : bool, default True
            Whether to return an ``ak.Array`` or a layout of ``ak.contents``.

        Raises
        ------
        ImportError
            Where Awkward Array is not installed, or CuPy for memory of CUDA.
        Unsupported
            For decimals, intervals and run-end encoded arrays, which Awkward Array does not have.
        CopyNeeded
            Where False forbids a needed copy.
        """
        from . import _awkward_out

        return _awkward_out.to_awkward(cast("Array", self), copy, highlevel)

    def is_valid(self) -> "Array":
        """A boolean for each row that says whether it is there, as an array of ``arrow.bool8`` on the same device.

        A copy: bits become bytes. ``array.is_valid().to_numpy()`` is numpy's boolean array. Unions and run-end encoded
        arrays have no nulls of their own; in a dictionary-encoded array only the index counts.
        """
        from . import _tensors
        from ._numpy import EXTENSION
        from ._parts import from_buffers
        from ._type import NULLABLE, _rebuilt, encoded_metadata

        array = cast("Array", self)
        tensor = None if array.type.format == "n" else _tensors.validity_tensor(array)
        if tensor is None:
            # No bitmap: all rows are there, or, in a null array, none.
            value = b"\0" if array.type.format == "n" else b"\1"
            kind = _rebuilt((b"c", b"", NULLABLE, encoded_metadata({EXTENSION: b"arrow.bool8"}), (), None))
            whole = from_buffers(kind, len(array), [None, value * len(array)])
            return whole if array.device.is_cpu else whole.to_device(array.device)
        address, handle = c_void_p(tensor.address), c_void_p()
        call(lib.bowstring_array_from_tensor, byref(address), None, None, byref(handle))
        tensor.taken()
        return type(array)._of(handle.value or 0, array.source)

    @property
    def validity(self) -> "Optional[Validity]":
        """The bitmap with a 1 for each row that is there, and the bit of the first row; None where there is no bitmap.

        Nothing is read or copied, on any device. Without a bitmap all rows are there, but for arrays of type null.
        """
        from . import _views

        return _views.validity(cast("Array", self))

    @property
    def codes(self) -> "Array":
        """The indices into the dictionary, as an array of integers on the same memory."""
        from ._errors import Unsupported
        from ._parts import from_buffers
        from ._type import Type

        array = cast("Array", self)
        kind = array.type
        if kind.dictionary is None:
            raise Unsupported(f"expected a dictionary-encoded array, found {kind}")
        handle = made(
            lib.bowstring_type_new, kind.format.encode(), kind.name.encode(), kind.flags & 2, None, 0, None, None, 0
        )
        parts = array.to_buffers()
        return from_buffers(Type._of(handle), parts.nodes[:1], parts.buffers[: parts.nodes[0].n_buffers], parts.device)

    def string_buffers(self, copy: Optional[bool] = None) -> "StringBuffers":
        """The offsets and the bytes of strings or binary values, as the buffers have them, on any device.

        Offsets are those of this array's rows and one more, and lead into the whole of the bytes. Validity is not part
        of it. On a device nothing is read: how many bytes there are is then not known, unless the array was built with
        it, or by `resolve_sizes`.

        Parameters
        ----------
        copy : bool, optional
            Views of strings have no offsets; making some is a copy, which False refuses. True always copies.

        Raises
        ------
        Unsupported
            For other types.
        CopyNeeded
            For views with False.
        """
        from . import _views

        return _views.string_buffers(cast("Array", self), copy)
