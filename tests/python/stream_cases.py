"""Streams that keep or break a rule, played to the library."""

from ctypes import byref, c_void_p

import pyarrow as pa

import asynchronous
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


def _unset(name):
    def step(producer):
        if name == "producer":
            return producer.schema(pa.int32(), producer=False)
        setattr(producer.own, name, None)
        return producer.schema(pa.int32())

    return step


STEPS = {
    "schema": lambda producer: producer.schema(pa.int32()),
    "NULL schema": lambda producer: producer.schema(None),
    "released schema": lambda producer: producer.schema("released"),
    "task": lambda producer: producer.task(array(1)),
    "end": lambda producer: producer.end(),
    "error": lambda producer: producer.error(5, b"refused"),
    "no extract_data": lambda producer: producer.task(None, extract=False),
    "released array": lambda producer: producer.task(lambda array: 0),
    **{f"no {name}": _unset(name) for name in ("producer", "request", "cancel")},
}


def played_async(case):
    """All that the library says of an asynchronous stream, as findings."""
    heard = []
    if case.requests:
        handler = asynchronous.Handler().given(streams.from_arrays([array(1)] * 9))
        for n in case.requests:
            handler.request(n)
        if min(case.requests) > 0:
            handler.cancel()
        handler.finish()
        for code, text in handler.errors:
            heard.append((text[text.index("(") + 1 : text.index(")")], text[text.index("$")], -1, ERROR, text))
        return heard
    producer = asynchronous.Producer(2)
    for step in case.steps:
        STEPS[step](producer)
    producer.release()
    try:
        support.release(*streams.drained(producer.stream))
    except BowstringError as error:
        heard.append((error.rule, error.path, error.row, ERROR, error.message))
    producer.close()
    return heard
