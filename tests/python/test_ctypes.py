"""The ctypes module says what the header says, and what the library has."""

import re
from pathlib import Path

import bowstring_ctypes as bs
import support

HEADER = Path(__file__).parents[2] / "include" / "bowstring.h"
# What the header declares beside functions that return something: every name is followed by its parameters.
DECLARED = re.compile(r"^(?:BOWSTRING_API)?[^/#\n]*?\b(bowstring_\w+)\(([^;]*?)\);", re.M)


def test_functions_are_those_of_the_header():
    text = re.sub(r"^\s*(///|\*).*$", "", HEADER.read_text(), flags=re.M)
    header = {name: arguments for name, arguments in DECLARED.findall(text)}
    assert set(header) == set(bs.FUNCTIONS)
    for name, arguments in header.items():
        # A function pointer's own parameters are not the function's.
        flat = re.sub(r"\(\*\w+\)\([^)]*\)", "callback", arguments)
        expected = 0 if flat in ("", "void") else flat.count(",") + 1
        assert len(bs.FUNCTIONS[name]) - 1 == expected, name
    support.figure("functions declared", len(header), 79)


def test_numbers_are_those_of_the_header():
    text = HEADER.read_text()
    defined = dict(re.findall(r"^#define BOWSTRING_(\w+) (\d+)$", text, re.M))
    assert all(int(defined[name]) == getattr(bs, name) for name in defined if hasattr(bs, name))
    roles = {name.removeprefix("ROLE_"): int(value) for name, value in defined.items() if name.startswith("ROLE_")}
    assert len(roles) == 8 and all(getattr(bs, name) == value for name, value in roles.items())
    for prefix in ("SYNC_", "TYPE_IGNORE_"):
        for name in (name for name in defined if name.startswith(prefix)):
            assert getattr(bs, name.removeprefix("TYPE_")) == int(defined[name])


def test_every_status_and_rule_has_a_name():
    names = [bs.lib.bowstring_status_name(status).decode() for status in range(13)]
    assert all(getattr(bs, name) == status for status, name in enumerate(names))
    assert bs.lib.bowstring_status_name(13) == bs.lib.bowstring_status_name(-1) == b"UNKNOWN"
    rules = [bs.lib.bowstring_rule_name(rule) for rule in range(1, 1000)]
    texts = [bs.lib.bowstring_rule_text(rule) for rule in range(1, 1000)]
    known = [name for name in rules if name]
    assert len(known) == len(set(known))
    assert all(bool(name) == bool(text) for name, text in zip(rules, texts))
    assert {b"A1", b"A5", b"B1", b"B2", b"F1", b"S1", b"D2"} <= set(known)
