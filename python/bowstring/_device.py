"""Names of devices, and how to wait for their work."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Union

from . import _c

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
ROCM, ROCM_HOST = 10, 11
NAMES = {
    1: "cpu", 2: "cuda", 3: "cuda_host", 4: "opencl", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm", 11: "rocm_host",
    12: "ext_dev", 13: "cuda_managed", 14: "oneapi", 15: "webgpu", 16: "hexagon",
}
_TYPES = {name: number for number, name in NAMES.items()}


class Device(NamedTuple):
    """A device: its type, as the Arrow C Device interface numbers it, and its number among those of the type.

    The CPU's id is -1, as Arrow has it. ``str(device)`` is what every function of the package takes for one.
    """

    type: int
    id: int

    @property
    def name(self) -> str:
        """The type's name, such as ``"cuda"``."""
        return NAMES.get(self.type, f"device type {self.type}")

    @property
    def is_cpu(self) -> bool:
        """Whether the memory is the CPU's own."""
        return self.type == CPU

    def __str__(self) -> str:
        return self.name if self.id < 0 else f"{self.name}:{self.id}"


DeviceLike = Union[Device, str, "tuple[int, int]"]


def device_of(device: DeviceLike) -> Device:
    """The device that a caller names.

    Parameters
    ----------
    device : Device, str or (int, int)
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, or a type's number and an id, as Arrow and DLPack have them.
    """
    if isinstance(device, str):
        name, colon, number = device.partition(":")
        if name not in _TYPES or (colon and not number.isdigit()):
            raise ValueError(f"expected a device such as 'cpu' or 'cuda:0', found {device!r}")
        kind = _TYPES[name]
        # Memory of the CPU is numbered -1, and everything else counts from 0.
        return Device(kind, -1 if kind == CPU else int(number or 0))
    kind, identifier = device
    return Device(int(kind), -1 if kind == CPU else int(identifier))


def struct_of(device: Device) -> _c.Device:
    """The device as the C library takes it."""
    return _c.Device(device.type, device.id)


def sync_of(stream: Any) -> Optional[_c.Sync]:
    """How a call is to meet unfinished device work.

    Parameters
    ----------
    stream : None, "host", "library" or a queue
        None refuses when work is pending; ``"host"`` blocks this thread; ``"library"`` makes a queue of the library wait; else a
        queue of the device's driver, by address or as an object with ``ptr``, ``cuda_stream`` or ``__cuda_stream__``.
    """
    if stream is None:
        return None
    if isinstance(stream, str):
        modes = {"none": _c.SYNC_NONE, "host": _c.SYNC_HOST, "library": _c.SYNC_LIBRARY}
        if stream not in modes:
            raise ValueError(f"expected 'none', 'host', 'library' or a queue, found {stream!r}")
        return _c.Sync(modes[stream], 0, None)
    return _c.Sync(_c.SYNC_QUEUE, 0, queue_of(stream) or None)


def queue_of(stream: Any) -> int:
    """The address of a queue of a device's driver."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        # The first number is the protocol's version.
        _, address = protocol() if callable(protocol) else protocol
        return int(address)
    for attribute in ("ptr", "cuda_stream", "handle"):
        address = getattr(stream, attribute, None)
        if address is not None:
            return int(getattr(address, "value", address) or 0)
    return int(stream)
