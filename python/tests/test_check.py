"""Checks: what is found, in order, by which consumer's reading; what is raised; what is repaired."""

import numpy as np
import pyarrow as pa
import pytest
from bowstring import Buffer, Finding, InvalidData, NotConforming, SyncRequired, Unsupported, from_buffers

from values_support import each, everything, given, taken

OFFSETS = np.array([0, 2, 1, 4], "i4")


def broken():
    """A struct whose first column's offsets go back, and whose second is not UTF-8."""
    return from_buffers(
        "struct<a: list<int8>, s: utf8>", [3, 3, 4, 3],
        [None, None, OFFSETS, None, b"abcd", None, np.array([0, 1, 2, 3], "i4"), b"a\xffc"],
    )


@each("name", everything())
def test_what_pyarrow_makes_is_fine(name):
    array = taken(everything()[name])
    assert [finding for finding in array.check() if finding.severity == "error"] == []
    assert array.validate() is array and array.validate(level="structure", threads=2) is array


def test_findings_come_in_order():
    errors = [finding for finding in broken().check() if finding.severity == "error"]
    assert [(finding.rule, finding.path, finding.row) for finding in errors] == [("B1", "$.a", 1), ("B8", "$.s", 1)]
    assert errors[0].text.startswith("Offsets") and "found" in errors[0].message
    assert str(errors[0]).startswith("error B1: $.a, row 1: expected")


def test_warnings_come_too():
    findings = from_buffers("int8", 3, [b"\7", b"abc"]).check()
    assert {(finding.severity, finding.rule) for finding in findings} == {("warning", "A6")}
    assert all(isinstance(finding, Finding) and finding.row is None for finding in findings)


def test_levels():
    array = broken()
    assert any(finding.rule == "B8" for finding in array.check())
    assert not any(finding.rule == "B8" for finding in array.check(level="bounds"))
    assert not any(finding.severity == "error" for finding in array.check(level="structure"))


def test_validate_raises_the_first_error():
    with pytest.raises(InvalidData, match="offset") as caught:
        broken().validate()
    assert (caught.value.rule, caught.value.path, caught.value.row) == ("B1", "$.a", 1)


def test_profiles():
    data = taken(pa.record_batch({"v": pa.array(["a"]), "w": pa.array([[1]], pa.list_view(pa.int8()))}))
    assert not [finding for finding in data.check() if finding.severity == "error"]
    found = data.check("cudf_host", as_table=True)
    assert any(finding.severity == "error" and finding.path == "$.w" for finding in found)
    with pytest.raises(NotConforming) as caught:
        data.validate("cudf_host", as_table=True)
    assert caught.value.path == "$.w"


def test_the_consumers_device():
    array = taken(pa.array([1, None, 3]))
    here = [finding.message for finding in array.check("cudf_device") if finding.severity == "error"]
    there = [finding.message for finding in array.check("cudf_device", "cuda:0") if finding.severity == "error"]
    assert len(here) == 1 and "found device type 1" in here[0] and there == []


def test_listeners_stop_and_raise():
    seen = []
    findings = broken().check(on_finding=lambda finding: seen.append(finding) or len(seen) == 2)
    assert findings == seen and len(seen) == 2

    class Mine(Exception):
        pass

    def raises(finding):
        raise Mine(finding.rule)

    with pytest.raises(Mine, match="A6|B1"):
        broken().check(on_finding=raises)
    # Also what is no Exception, such as an interrupt.
    with pytest.raises(KeyboardInterrupt):
        broken().check(on_finding=lambda finding: (_ for _ in ()).throw(KeyboardInterrupt()))
    # The next call starts anew.
    assert len(broken().check()) > 2


@pytest.mark.parametrize("arguments, words", [
    ({"profile": "cudf"}, "a profile of 'spec', 'cudf_device'"),
    ({"level": 3}, "a level of 'full'"),
    ({"device": "gpu"}, "expected a device"),
    ({"stream": "later"}, "'library'"),
])
def test_unknown_options(arguments, words):
    array = taken(pa.array([1]))
    with pytest.raises(ValueError, match=words):
        array.check(**arguments)
    with pytest.raises(ValueError, match=words):
        array.validate(**arguments)


def test_memory_that_nobody_can_read():
    memory = Buffer.from_address(4096, 64, None, "rocm:0")
    array = from_buffers("utf8", 3, [None, memory, memory])
    assert array.check(level="structure") == []
    with pytest.raises(Unsupported, match="ROCM"):
        array.check()
    pending = from_buffers("utf8", 3, [None, memory, memory], event=7)
    with pytest.raises(SyncRequired):
        pending.check(stream=None)


def test_conform_repairs_for_the_consumer():
    array = taken(pa.array([[1], [2, 3]], pa.list_view(pa.int32())))
    with pytest.raises(NotConforming):
        array.validate("cudf_host")
    fixed = array.conform("cudf_host")
    assert fixed.validate("cudf_host") is fixed and str(fixed.type) == "list<int32>"
    assert given(fixed).to_pylist() == [[1], [2, 3]]
    # What needs no repair is shared.
    assert fixed.buffers[-1].ptr == array.buffers[-1].ptr
    with pytest.raises(NotConforming):
        array.conform("cudf_host", copy=False)
    with pytest.raises(ValueError, match="found True"):
        array.conform("cudf_host", copy=True)


def test_conform_changes_layouts():
    array = taken(pa.array(["a", None, "more than twelve bytes"], pa.string_view()))
    offsets = array.conform(layout="offsets")
    assert str(offsets.type) == "utf8" and given(offsets).to_pylist() == ["a", None, "more than twelve bytes"]
    views = offsets.conform(layout="views")
    assert str(views.type) == "utf8_view" and given(views).to_pylist() == ["a", None, "more than twelve bytes"]
    with pytest.raises(ValueError, match="a layout of None, 'offsets', 'views'"):
        array.conform(layout="rows")
