"""Streams that keep or break a rule, played to the library."""

from ctypes import byref, c_void_p

import pyarrow as pa

import bowstring_ctypes as bs
import streams
import support
from bowstring_ctypes import BowstringError, lib
from streams import Callbacks, Placed, Producer
from validate_calls import ERROR


def array(step):
    """What a step of the case stands for."""
    if step == "text":
        return pa.array(["x"])
    if isinstance(step, tuple):
        return Placed(pa.array([1], pa.int32()), *step[1:])
    return pa.array(range(step), pa.int32())


def played(case):
    """All that the library says while it imports and drains the stream, as findings."""
    heard, stream = [], c_void_p()

    def told(error):
        heard.append((error.rule, error.path, error.row, ERROR, error.message))

    def asks_again(_):
        error, inner = bs.Error(), c_void_p()
        if lib.bowstring_stream_next(stream, byref(inner), byref(error)):
            told(BowstringError(error.status, error))

    steps = [asks_again if step == "asks again" else array(step) for step in case.steps]
    nothing = (lambda schema: 0) if case.schema == "nothing" else None
    try:
        if case.as_handles:
            producer, kind = Callbacks(steps, as_handles=True), support.type_from(pa.int32())
            stream = producer.made(kind)
            lib.bowstring_type_release(kind)
        else:
            producer = Producer(steps, pa.int32(), device_type=case.device_type, schema=nothing)
            stream = producer.imported()
        support.release(*streams.drained(stream))
    except BowstringError as error:
        told(error)
    streams.release(stream)
    return heard
