"""Arrays of what describes its memory itself: the array interfaces of NumPy and CUDA, and Python's buffer protocol."""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_int, c_uint64, c_void_p
from math import prod
from typing import Any, NamedTuple, Optional, Sequence

from . import _c
from ._device import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, Device
from ._dlpack import BOOL, COMPLEX, FLOAT, INT, UINT, array_of, queue_for, tensor_of
from ._errors import DeviceUnavailable, InvalidData, Unsupported
from ._library import call, lib
from ._memory import HOST, CopyNeeded, Memory, address_in, build, new_type, packed, taken_apart

_CODES = {"i": INT, "u": UINT, "f": FLOAT, "c": COMPLEX, "b": BOOL}
_NATIVE = "<" if sys.byteorder == "little" else ">"
_UNITS = {"s": "s", "ms": "m", "us": "u", "ns": "n"}
NAT = -(2**63)

# What a struct's format letter is in a typestr.
_LETTERS = {
    **dict.fromkeys("bhilqn", "i"), **dict.fromkeys("BHILQNc", "u"), **dict.fromkeys("efd", "f"), "?": "b",
}


class Described(NamedTuple):
    """Memory as an array interface describes it."""

    data: int
    read_only: bool
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    typestr: str
    owner: object
    device: Device


def _compact(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Strides of elements that lie row-major."""
    steps = [itemsize * prod(max(length, 1) for length in shape[i + 1 :]) for i in range(len(shape))]
    return tuple(steps)


def element_of(typestr: str) -> tuple[str, int, str]:
    """Kind, bytes and unit of a typestr; an error says why there is no such element."""
    if len(typestr) < 3 - typestr.endswith("O") or typestr[0] not in "<>|=":
        raise InvalidData(f"expected a typestr such as '<i4', found {typestr!r}")
    order, kind, rest = typestr[0], typestr[1], typestr[2:]
    if kind == "O":
        raise Unsupported(f"expected numbers, booleans or times, found {typestr!r}: references to Python objects")
    digits, _, unit = rest.partition("[")
    if not digits.isdigit():
        raise InvalidData(f"expected a typestr such as '<i4', found {typestr!r}")
    size = int(digits)
    if order in "<>" and order != _NATIVE and size > 1 and kind not in "SV":
        raise Unsupported(f"expected the CPU's byte order, found {typestr!r}; the producer has to swap the bytes")
    return kind, size, unit.rstrip("]")


def _describe(obj: Any, interface: Any, device: Optional[Device]) -> Described:
    """An array interface, checked as far as it can be."""
    if not isinstance(interface, dict):
        raise InvalidData(f"expected an interface as a dict, found {type(interface).__name__}")
    try:
        shape, typestr = tuple(int(length) for length in interface["shape"]), str(interface["typestr"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidData(f"expected a shape and a typestr, found {type(error).__name__}: {error}") from None
    if any(length < 0 for length in shape):
        raise InvalidData(f"expected lengths of 0 or more, found {shape}")
    data = interface.get("data")
    owner: object = obj
    if isinstance(data, (tuple, list)) and len(data) == 2:
        address, read_only = int(data[0] or 0), bool(data[1])
    elif device is None and (data is None or not isinstance(data, (tuple, list))):
        # In NumPy's interface it may be an object with the buffer protocol, or be left out.
        view = memoryview(obj if data is None else data)
        address, read_only = address_in(view) + int(interface.get("offset", 0)), view.readonly
        owner = (obj, view)
    else:
        raise InvalidData(f"expected data as an address and a flag, found {data!r}")
    _, size, _ = element_of(typestr)
    given = interface.get("strides")
    strides = _compact(shape, size) if given is None else tuple(int(step) for step in given)
    if len(strides) != len(shape):
        raise InvalidData(f"expected {len(shape)} strides, found {len(strides)}")
    if prod(shape) and size and not address:
        raise InvalidData("expected an address for memory that is not empty, found 0")
    return Described(address, read_only, shape, strides, typestr, owner, device or HOST)


def _extent(what: Described, size: int) -> tuple[int, int]:
    """The first byte, and how many there are from there to behind the last element."""
    if not prod(what.shape):
        return 0, 0
    low = sum((length - 1) * step for length, step in zip(what.shape, what.strides) if step < 0)
    high = sum((length - 1) * step for length, step in zip(what.shape, what.strides) if step > 0)
    return what.data + low, high - low + size


def _values(
    what: Described, kind: Optional[int], copy: Optional[bool], queue: Optional[int], must: bool
) -> int:
    """The handle of an array of numbers, booleans or other elements that a tensor has."""
    letter, size, unit = element_of(what.typestr)
    code = _CODES.get(letter)
    if letter in "Mm":
        code = INT
    if code is None:
        raise Unsupported(f"expected numbers, booleans or times, found {what.typestr!r}{_advice(letter)}")
    steps = what.strides
    if any(step % max(size, 1) for step, length in zip(steps, what.shape) if length > 1):
        raise Unsupported(f"expected strides of whole elements, found {steps} bytes for {what.typestr!r}")
    first, extent = _extent(what, size)
    memory = Memory.of(first, extent, what.owner)
    elements = [step // max(size, 1) if length > 1 else 1 for step, length in zip(steps, what.shape)]
    tensor = tensor_of(memory, what.data, (code, 8 * size, 1), what.shape, elements, what.device)
    handle = array_of(tensor.address, kind, copy, queue, must)
    tensor.taken()
    return handle


def _advice(letter: str) -> str:
    return {
        "V": ", which are structured; give their fields one by one",
        "U": ", which is UTF-32; Arrow has UTF-8",
        "t": ", which are bits; only masks may be bits here",
    }.get(letter, "")


def _with_validity(handle: int, memory: Memory, nulls: int, sync: Optional[Any]) -> int:
    """The array, which is taken, with a bitmap of its rows, by which it takes the place of the one that had none."""
    try:
        nodes, buffers = taken_apart(handle)
        device = _c.Device()
        call(lib.bowstring_array_device, handle, byref(device), None)
        length, _, offset, count = nodes[0]
        nodes[0] = (length, nulls, offset, count)
        buffers[0] = memory
        kind = lib.bowstring_array_type(handle)
        return build(kind, nodes, buffers, Device(device.type, device.id), sync)
    finally:
        lib.bowstring_array_release(handle)


# NumPy's interface and the buffer protocol.


def _time_format(letter: str, unit: str, typestr: str) -> str:
    if unit not in _UNITS:
        raise Unsupported(
            f"expected times in s, ms, us or ns, found {typestr!r}; the producer has to convert them, as by astype()"
        )
    return f"ts{_UNITS[unit]}:" if letter == "M" else f"tD{_UNITS[unit]}"


def _missing_times(what: Described) -> "list[int]":
    """The rows at which one-dimensional times are not a time."""
    count = what.shape[0]
    if not count:
        return []
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        shown = _Shown(
            {
                "shape": what.shape, "typestr": f"{_NATIVE}i8", "data": (what.data, True), "strides": what.strides,
                "version": 3,
            }
        )
        return [int(row) for row in numpy.flatnonzero(numpy.asarray(shown) == NAT)]
    numbers = (ctypes.c_int64.from_address(what.data + row * what.strides[0]) for row in range(count))
    return [row for row, number in enumerate(numbers) if number.value == NAT]


class _Shown:
    """Memory for NumPy to look at."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def _host_array(what: Described, kind: Optional[Any], copy: Optional[bool]) -> int:
    """The handle of an array of memory of the CPU."""
    letter, size, unit = element_of(what.typestr)
    if letter in "Mm":
        if len(what.shape) != 1:
            raise Unsupported(f"expected times in one dimension, found {len(what.shape)}")
        form = _time_format(letter, unit, what.typestr)
        wanted = new_type(form) if kind is None else kind
        handle = _values(what, wanted._handle, copy, None, False)
        missing = _missing_times(what)
        if missing and copy is False:
            lib.bowstring_array_release(handle)
            raise CopyNeeded(f"expected times, found NaT at row {missing[0]}, for which a bitmap would have to be made")
        if missing:
            absent = set(missing)
            bits = Memory.copied(packed(row not in absent for row in range(what.shape[0])))
            handle = _with_validity(handle, bits, len(missing), None)
        return handle
    if letter == "S" or (letter == "V" and kind is not None and kind.format.startswith("w:")):
        return _fixed_bytes(what, size, copy)
    return _values(what, None if kind is None else kind._handle, copy, None, False)


def _fixed_bytes(what: Described, size: int, copy: Optional[bool]) -> int:
    if len(what.shape) != 1:
        raise Unsupported(f"expected bytes in one dimension, found {len(what.shape)}")
    count, step = what.shape[0], what.strides[0]
    if count < 2 or step == size:
        memory = Memory.of(what.data if count else 0, count * size, what.owner)
    elif copy is False:
        raise CopyNeeded(f"expected elements one behind the other, found a stride of {step} bytes")
    else:
        parts = (ctypes.string_at(what.data + row * step, size) for row in range(count))
        memory = Memory.copied(b"".join(parts))
    kind = new_type(f"w:{size}")
    return build(kind._handle, [(count, 0, 0, 2)], [Memory.none(), memory])


def from_array_interface(obj: Any, kind: Optional[Any], copy: Optional[bool]) -> int:
    """The handle of an array of an object with ``__array_interface__``."""
    interface = obj.__array_interface__
    what = _describe(obj, interface, None)
    if element_of(what.typestr)[0] == "V" and len(interface.get("descr") or ()) > 1:
        raise Unsupported(f"expected elements of one kind, found {what.typestr!r}{_advice('V')}")
    mask = interface.get("mask")
    handle = _host_array(what, kind, copy)
    return handle if mask is None else _masked(handle, mask, copy, None)


def from_buffer(obj: Any, kind: Optional[Any], copy: Optional[bool]) -> int:
    """The handle of an array of an object with Python's buffer protocol."""
    view = obj if isinstance(obj, memoryview) else memoryview(obj)
    return _host_array(described_view(view), kind, copy)


def described_view(view: memoryview) -> Described:
    """A memoryview, whose memory is the view's as long as it lives."""
    typestr = _typestr_of(view.format, view.itemsize)
    shape = tuple(view.shape or ())
    if view.suboffsets:
        raise Unsupported("expected one block of memory, found one that has suboffsets")
    address = address_in(view) if view.nbytes else 0
    strides = tuple(view.strides or _compact(shape, view.itemsize))
    return Described(address, view.readonly, shape, strides, typestr, view, HOST)


def _typestr_of(form: str, size: int) -> str:
    """What a format of the struct module is as a typestr."""
    order, letter = ("@", form) if form[:1] not in ("@", "=", "<", ">", "!") else (form[0], form[1:])
    if letter in _LETTERS:
        written = {"<": "<", ">": ">", "!": ">"}.get(order, _NATIVE)
        return f"{written if size > 1 else '|'}{_LETTERS[letter]}{size}"
    if letter in ("Zf", "Zd", "F", "D"):
        return f"{_NATIVE}c{size}"
    if letter == "s" or (letter[:-1].isdigit() and letter[-1] in "sp"):
        return f"|S{size}"
    raise Unsupported(f"expected elements of one kind of number, found the format {form!r}")


# CUDA's interface.


def _driver() -> Any:
    """The CUDA driver, to ask where memory is."""
    for name in ("libcuda.so.1", "libcuda.so", "nvcuda.dll"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceUnavailable("expected the CUDA driver, to ask where the memory is, found none")


_MEMORY_TYPE, _IS_MANAGED, _ORDINAL = 2, 8, 9
_HOST_MEMORY = 1


def locate(address: int) -> Device:
    """The device that memory which CUDA can reach is on, as its driver says."""
    ask = _driver().cuPointerGetAttribute
    ask.argtypes, ask.restype = [c_void_p, c_int, c_uint64], c_int

    def attribute(which: int) -> int:
        # The longest of these attributes.
        found = c_uint64(0)
        code = ask(byref(found), which, address)
        if code:
            raise InvalidData(f"expected memory of CUDA, found {address:#x}, which its driver does not know ({code})")
        return int.from_bytes(bytes(found)[:4], sys.byteorder)

    kind = attribute(_MEMORY_TYPE)
    if attribute(_IS_MANAGED) & 1:
        return Device(CUDA_MANAGED, 0)
    if kind == _HOST_MEMORY:
        return Device(CUDA_HOST, 0)
    return Device(CUDA, attribute(_ORDINAL))


def _cuda_device(obj: Any, interface: Any) -> Device:
    """Where a producer's memory is: as its ``__dlpack_device__`` says, else as the driver does."""
    ask = getattr(obj, "__dlpack_device__", None)
    if ask is not None:
        kind, identifier = ask()
        if int(kind) != CPU:
            return Device(int(kind), int(identifier))
    data = interface.get("data") if isinstance(interface, dict) else None
    address = int(data[0] or 0) if isinstance(data, (tuple, list)) and data else 0
    # Memory of no bytes is nowhere.
    return locate(address) if address else Device(CUDA, 0)


def described_cuda(obj: Any) -> tuple[Described, Optional[int], Any]:
    """What ``__cuda_array_interface__`` says: the memory, the producer's queue, and a mask."""
    interface = obj.__cuda_array_interface__
    device = _cuda_device(obj, interface)
    what = _describe(obj, interface, device)
    stream = interface.get("stream")
    if stream is not None and int(stream) <= 0:
        message = f"expected no stream, 1, 2 or a stream's address, found {stream}, which the interface forbids"
        raise InvalidData(message)
    if len(interface.get("descr") or ()) > 1:
        raise Unsupported(f"expected elements of one kind, found {what.typestr!r}{_advice('V')}")
    return what, None if stream is None else int(stream), interface.get("mask")


def from_cuda_interface(obj: Any, kind: Optional[Any], copy: Optional[bool], stream: Any) -> int:
    """The handle of an array of an object with ``__cuda_array_interface__``."""
    what, queue, mask = described_cuda(obj)
    if element_of(what.typestr)[0] in "MmSU":
        raise Unsupported(f"expected numbers or booleans, found {what.typestr!r}")
    handle = _values(what, None if kind is None else kind._handle, copy, queue, queue is not None)
    if mask is not None:
        handle = _masked(handle, mask, copy, queue)
    ours = None if stream is None else queue_for(what.device, stream)
    if queue is not None and ours is not None:
        try:
            call(lib.bowstring_array_wait, handle, byref(_c.Sync(_c.SYNC_QUEUE, 0, ours or None)))
        except BaseException:
            lib.bowstring_array_release(handle)
            raise
    return handle


def _masked(handle: int, mask: Any, copy: Optional[bool], queue: Optional[int]) -> int:
    """The array, which is taken, with an object's elements as its validity, in which true is valid."""
    try:
        if hasattr(mask, "__cuda_array_interface__"):
            what, of_mask, _ = described_cuda(mask)
        else:
            what, of_mask = _describe(mask, mask.__array_interface__, None), None
        rows = lib_length(handle)
        letter, size, _ = element_of(what.typestr)
        if len(what.shape) != 1 or what.shape[0] != rows:
            raise InvalidData(f"expected a mask of {rows} rows, found one of {what.shape}")
        sync = None if queue is None else _c.Sync(_c.SYNC_QUEUE, 0, queue)
        if letter == "t":
            memory = Memory.of(what.data, (rows + 7) // 8, what.owner)
        elif letter in "bui" and size == 1:
            if copy is False:
                raise CopyNeeded("expected a mask of bits, found one of bytes")
            boolean = new_type("b")
            bits = _values(what._replace(typestr="|b1"), boolean._handle, None, of_mask, False)
            try:
                memory = taken_apart(bits)[1][1]
            finally:
                lib.bowstring_array_release(bits)
        else:
            raise Unsupported(f"expected a mask of bits, booleans or bytes, found {what.typestr!r}")
        if of_mask is not None and of_mask != queue:
            raise Unsupported("expected a mask on the queue of its values, found another")
    except BaseException:
        lib.bowstring_array_release(handle)
        raise
    return _with_validity(handle, memory, -1, sync)


def lib_length(handle: int) -> int:
    """The number of an array's rows."""
    info = _c.NodeInfo()
    call(lib.bowstring_array_node_info, handle, 0, byref(info))
    return int(info.length)


def described_host(obj: Any) -> Described:
    """What ``__array_interface__`` says."""
    return _describe(obj, obj.__array_interface__, None)


def whole_memory(what: Described) -> Memory:
    """All of the memory that an interface describes, whose elements have to lie one behind the other."""
    size = element_of(what.typestr)[1]
    dense = _compact(what.shape, size)
    if prod(what.shape) and any(n > 1 and a != b for n, a, b in zip(what.shape, what.strides, dense)):
        raise CopyNeeded(f"expected elements one behind the other, found strides of {what.strides} bytes")
    count = prod(what.shape) * size
    return Memory.of(what.data if count else 0, count, what.owner)
