"""Every rule of the library's table is documented, kept by some data and broken by other."""

import ctypes
from ctypes import POINTER, byref, c_int64

import bowstring_ctypes as bs
import pytest
import raw
import support
import validate_device
from bowstring_ctypes import lib
from raw import Node, Raw
from rule_cases import RULES, Async, Broken, Placed, Played, Stream, Tensor
from stream_cases import played, played_async
from tensors import DLDevice, DLTensor, Versioned
from validate_calls import ERROR, FULL, ON_FINDING, Options, function, rule_name, type_of

SEVERITIES = {0: "error", 1: "warning", 2: "note"}


def rules():
    """The numbers of all rules, in the order of the table."""
    found, rule = [], lib.bowstring_rule_next(0)
    while rule:
        found.append(rule)
        rule = lib.bowstring_rule_next(rule)
    return found


def findings(case, options):
    """All that the library says of a case, and whether it came to its end without an error."""
    if isinstance(case, Played):
        return played(case)
    if isinstance(case, Async):
        return played_async(case)
    heard = []

    def hear(_, severity, finding):
        one = finding.contents
        text = (rule_name(one.rule), one.path.decode(), one.row, severity, one.message.decode())
        heard.append(text)
        return 0

    callback = ON_FINDING(hear)
    asked = Options(on_finding=callback, **options)
    error = bs.Error()
    statuses = [check(byref(asked), byref(error)) for check in checks(case)]
    errors = [one for one in heard if one[3] == ERROR]
    told = any(status in (bs.INVALID_DATA, bs.NOT_CONFORMING, bs.RELEASED) for status in statuses)
    assert told == bool([one for one in errors]) or bs.UNSUPPORTED in statuses, (statuses, heard)
    if bs.UNSUPPORTED in statuses and error.rule:
        heard.append((rule_name(error.rule), error.path.decode(), error.row, ERROR, error.message.decode()))
    for name, path, row, _, message in heard:
        assert message and path and name and row >= -1
    return heard


def checks(case):
    """The calls that look at a case."""
    if isinstance(case, Stream):
        struct = bs.ArrowDeviceArrayStream(case.device_type, *[None if name in case.missing else 1 for name in (
            "get_schema", "get_next", "get_last_error", "release")])
        yield lambda *rest: function("device_stream_validate")(byref(struct), *rest)
        host = bs.ArrowArrayStream(*[getattr(struct, name) for name, _ in bs.ArrowArrayStream._fields_])
        yield lambda *rest: function("host_stream_validate")(byref(host), *rest)
        return
    if isinstance(case, Tensor):
        held = [axis and (c_int64 * len(axis))(*axis) for axis in (case.shape, case.strides)]
        ndim = len(case.shape) if case.ndim is None else case.ndim
        pointers = [ctypes.cast(axis, POINTER(c_int64)) if axis else None for axis in held]
        inner = DLTensor(
            case.data, DLDevice(*case.device), ndim, bs.DataType(*case.dtype), *pointers, case.byte_offset
        )
        tensor = Versioned(*case.version, None, 1 if case.deleter else None, case.flags, inner)
        yield lambda *rest: function("tensor_validate")(byref(tensor), *rest)
        return
    placed = case if isinstance(case, Placed) else Placed(case)
    made = Raw(placed.node, placed.device, placed.sync_event)
    made.device_array.reserved[:] = placed.reserved
    yield lambda *rest: function("schema_validate")(byref(made.schema), *rest)
    kind, _ = type_of(ctypes.addressof(made.schema))
    if kind:
        yield lambda *rest: function("device_array_validate")(byref(made.device_array), kind, *rest)
        lib.bowstring_type_release(kind)


def look(name):
    """Runs the cases of one rule."""
    kept, broken = RULES[name]
    if name == "D9":
        validate_device.Plugin().plugin.device_tells(1, 0, 0)
    for one in kept:
        heard = findings(one.case, one.options)
        assert not [told for told in heard if told[0] == name or told[3] == ERROR], (one, heard)
    for one in broken:
        heard = findings(one.case, one.options)
        places = [told[1:3] for told in heard if told[0] == name]
        assert places and places[0] == (one.path, one.row), (one, heard)


def test_every_rule_has_cases():
    names = [rule_name(rule) for rule in rules()]
    assert len(set(names)) == len(names) == len(set(rules()))
    assert sorted(names) == sorted(RULES)
    for kept, broken in RULES.values():
        assert kept and broken
    support.figure("rules with cases", len(names), 57)
    support.figure("cases of rules", sum(len(kept) + len(broken) for kept, broken in RULES.values()), 210)


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    if name == "D9":
        validate_device.compiled()
    raw.in_child(look, name)


def test_what_is_no_rule():
    for number in (-1, 0, 1, 9999, 2**31 - 1):
        assert rule_name(number) == "" and lib.bowstring_rule_text(number) == b""
        assert lib.bowstring_rule_source(number) == b"" and lib.bowstring_rule_severity(number) == -1
    assert lib.bowstring_rule_next(-1) == 0 and lib.bowstring_rule_next(9999) == 0


def test_max_findings_and_stopping():
    raw.in_child(look_at_limits)


def look_at_limits():
    node = Node("u", 6, 0, 0, [None, raw.i32(*range(7)), b"\xff" * 6])
    made = Raw(node)
    kind, _ = type_of(ctypes.addressof(made.schema))
    heard, error = [], bs.Error()
    validate = function("device_array_validate")

    def told(most, stop_after=None):
        del heard[:]

        def hear(_, severity, finding):
            heard.append((severity, finding.contents.row))
            return int(len(heard) == stop_after)

        options = Options(level=FULL, max_findings=most, on_finding=ON_FINDING(hear))
        return validate(byref(made.device_array), kind, byref(options), byref(error))

    assert told(0) == bs.INVALID_DATA and [row for _, row in heard] == list(range(6))
    assert told(2) == bs.INVALID_DATA and [row for _, row in heard] == [0, 1] and error.row == 0
    assert told(0, 3) == bs.INVALID_DATA and [row for _, row in heard] == [0, 1, 2] and error.row == 0
    # A warning comes first: stopping there is no verdict, and a limit of one does not hide the error behind it.
    made.device_array.reserved[1] = 1
    assert told(0, 1) == bs.CANCELLED and heard == [(1, -1)]
    assert told(1) == bs.INVALID_DATA and heard == [(1, -1)] and error.row == 0
    lib.bowstring_type_release(kind)


def test_unknown_options_are_refused():
    made = Raw(Node("i", 0, 0, 0, [None, None]))
    validate, error = function("schema_validate"), bs.Error()
    for members in ({"level": 3}, {"level": -1}, {"profile": 4}, {"staging_bytes": -1}):
        options = Options(**members)
        assert validate(byref(made.schema), byref(options), byref(error)) == bs.INVALID_ARGUMENT, members
    assert validate(None, None, byref(error)) == bs.INVALID_ARGUMENT
    options = Options(sync=bs.Sync(9))
    assert validate(byref(made.schema), byref(options), byref(error)) == bs.INVALID_ARGUMENT
    made.release()


def test_broken_cases_say_so():
    # The table's severities are what the cases show.
    for rule in rules():
        assert lib.bowstring_rule_severity(rule) in SEVERITIES
        assert lib.bowstring_rule_source(rule) and lib.bowstring_rule_text(rule)
    assert all(isinstance(one, Broken) for _, broken in RULES.values() for one in broken)


def test_a_window_ends_within_the_whole():
    raw.in_child(look_at_a_window)


def look_at_a_window():
    # The last offset of the whole says that there are 5 bytes; the first row alone says 100.
    for format_, code in (("u", raw.i32), ("Z", raw.i64)):
        made = Raw(Node(format_, 2, 0, 0, [None, code(0, 100, 5), b"abcde"]))
        array = bs.out("array_import", byref(made.device_array), byref(made.schema))
        part = bs.out("array_slice", array, 0, 1)
        for handle in (array, part):
            error = bs.Error()
            assert function("array_validate")(handle, None, byref(error)) == bs.INVALID_DATA
            assert rule_name(error.rule) == "B1" and error.message
        lib.bowstring_array_release(part)
        lib.bowstring_array_release(array)
