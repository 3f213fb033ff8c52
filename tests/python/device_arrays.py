"""Arrays on CUDA's devices, made and looked at by the library alone: nothing here loads or asks a driver."""

import ctypes
from ctypes import POINTER, byref, c_bool, c_void_p

import bowstring_ctypes as bs
from bowstring_ctypes import Device, OwnedBuffer, Placement, Sync, TransferOptions, call, lib, out

CUDA, CUDA_HOST, CUDA_MANAGED = 2, 3, 13
CPU = Device(1, -1)


class Owner:
    """An owner that remembers being let go."""

    def __init__(self, then=None):
        self.count = 0

        def let_go(_):
            self.count += 1
            if then:
                then()

        self.callback = bs.RELEASE(let_go)

    @property
    def release(self):
        return ctypes.cast(self.callback, c_void_p).value


def int64_type():
    return out("type_parse", b"int64")


def array_of(address, length, device=Device(CUDA, 0), event=None, owner=None):
    """int64 values that are somewhere, as an array under an event that somebody else keeps."""
    kind = int64_type()
    nodes = (bs.Node * 1)(bs.Node(length, 0, 0, 2))
    buffers = (OwnedBuffer * 2)(OwnedBuffer(), OwnedBuffer(address, length * 8))
    placement = Placement(device=device, event=event)
    if owner:
        placement.owner, placement.release_owner = 1, owner.callback
    raw = bs.ArrowDeviceArray()
    call("device_array_from_buffers", kind, nodes, 1, buffers, 2, byref(placement), byref(raw))
    array = out("array_import_typed", byref(raw), kind)
    lib.bowstring_type_release(kind)
    return array


def address_of(array, buffer=1):
    """Where a buffer of an array is."""
    info = bs.BufferInfo()
    call("array_buffer_info", array, buffer, byref(info))
    return info.data


def event_of(array):
    """The driver's event of an array, or nothing."""
    event = c_void_p()
    call("array_device", array, None, byref(event))
    return ctypes.cast(event, POINTER(c_void_p))[0] if event.value else None


def to_device(array, device, mode=bs.SYNC_NONE, queue=None, flags=0, **options):
    """A copy of an array on a device."""
    asked = TransferOptions(sync=Sync(mode, 0, queue), flags=flags, **options)
    copy, shared = c_void_p(), c_bool()
    call("array_to_device", array, device, byref(asked), byref(copy), byref(shared))
    return copy


def sync(mode, queue=None):
    return byref(Sync(mode, 0, queue))


def release(*arrays):
    for array in arrays:
        lib.bowstring_array_release(array)
