"""How other libraries' verdicts differ from ours, by kind; docs/validation.md says which is right and why.

`REFUSED` lists what we refuse: the faults, as the slow checker names them, and what else than refusing each peer does.
`ACCEPTED` lists what we accept: what a peer says when it does not.
"""

import re

A, C, P = "accepts", "crashes", "panics"

# Kind: faults; what pyarrow, nanoarrow and arrow-rs do instead of refusing.
REFUSED = {
    "released": (["M2 released"], "", A, A),
    "released-below": (["A7 released below the root", "S5 child released", "S6 dictionary released"], "", A, A),
    "no-format": (["S1 no format"], C, C, P),
    "format-not-utf8": (["S1 bad format"], A, A, P),
    "metadata": (["S3 bad metadata"], C, f"{A} {C}", f"{A} {C}"),
    "schema-children": (
        ["S5 child missing", "S5 no list of children", "S5 negative n_children", " too many children"],
        C, C, f"{A} {C} {P}",
    ),
    "schema-count": (["F5 number of children", "S6 children beside a dictionary"], C, "", f"{A} {C} {P}"),
    "index-format": (["S6 indices that are no integers"], "", f"{A} {C}", f"{C} {P}"),
    "decimal-format": (["F2 bad format"], "", f"{A} {C}", f"{A} {C}"),
    "size-format": (["F3 bad format"], "", f"{A} {C}", f"{A} {P}"),
    "union-format": (["F5 bad format"], "", f"{A} {C}", A),
    "map-format": (["F5 nullable entries", "F5 nullable keys", "F5 entries that are no pairs"], A, "", f"{A} {P}"),
    "run-ends-format": (["F5 run ends of another type"], "", f"{A} {C}", C),
    "map-nulls": (["F5 null entries", "F5 null keys"], C, A, A),
    "length": (["A1 negative length", "A1 length + offset overflows"], C, "", f"{A} {C} {P}"),
    "offset": (["A1 negative offset"], f"{A} {C}", "", f"{A} {C} {P}"),
    "size": (["A1 size overflows"], f"{A} {C}", f"{A} {C}", C),
    "null-count": (
        [
            "A2 null count above length", "A2 null count below -1", "A2 nulls where there are none",
            "A2 wrong null count",
        ],
        f"{A} {C}", A, A,
    ),
    "buffer-count": (["A3 number of buffers"], C, f"{A} {C}", f"{A} {C} {P}"),
    "legacy-bitmap": (["A8 bitmap where there are no nulls"], f"{A} {C}", "", ""),
    "buffer-list": (["A4 no list of buffers"], f"{A} {C}", C, P),
    "buffer": (["A5 missing buffer"], f"{A} {C}", f"{A} {C}", C),
    "bitmap": (["A5 no bitmap for nulls"], "", "", A),
    "array-children": (["A7 array missing", "A7 no list of children", "A7 number of children"], C, C, f"{A} {C} {P}"),
    "extra-dictionary": (["A7 dictionary without a type"], "", C, ""),
    "offsets": (["B1 decreasing offsets", "B1 offset past the values", "B1 negative offset"], "", "", C),
    "views": (
        [
            "B2 another prefix", "B2 negative length of a view", "B2 padding that is not 0", "B2 view into no buffer",
            "B2 view past its buffer",
        ], "", A, "",
    ),
    "view-sizes": (["B2 negative size"], A, A, A),
    "list-views": (["B3 list view past the values", "B3 negative list view"], "", A, ""),
    "child": (["B4 short child"], f"{A} {C}", A, f"{C} {P}"),
    "unions": (["B5 decreasing union offsets", "B5 union offset past its child"], "", A, A),
    "run-ends": (["B7 null run ends", "B7 no runs"], "", A, A),
    "text": (["B8 not UTF-8"], "", A, ""),
    "ranges": (
        ["B8 date that is no whole day", "B8 decimal of more digits", "B8 time outside a day"], A, A, A
    ),
}

# Kind: what each peer says that refuses what we accept, as a pattern.
ACCEPTED = {
    "null-names": {"pyarrow": "Expected non-null name in imported array child"},
    "no-class": {"pyarrow": r"^2[0-9]$"},
    "flags": {"nanoarrow": "Unknown ArrowSchema flag|is only relevant for"},
    "unknown-nulls": {
        "nanoarrow": "array buffer 0 to have size >= .* but found buffer with 0 bytes|"
        "Null count must be 0 for run ends",
        "pyarrow": "Unexpected non-zero null count for imported type",
    },
    "legacy-buffers": {
        "nanoarrow": r"Expected array with \d buffer\(s\) but found \d buffer\(s\)",
        "arrow-rs": "doesn't expect buffer at index 0|expects . buffer, but requested|"
        "external buffer at position 0 is null",
    },
    "no-rows": {
        "pyarrow": "null data pointer for a buffer with non-zero|array starts at negative offset|isn't large enough for "
        "length: 0|Last run end is|must fit in a value of the run end type",
        "nanoarrow": "Expected child of|Expected first offset|array has zero length|Last run end is|"
        "must fit in a value of the run end type|"
        "array buffer [12] to have size >= .* but found buffer with 0 bytes",
        "arrow-rs": "external buffer at position [123] is null|First offset|Error converting offset",
    },
    "no-width": {"nanoarrow": "Expected size > 0 for fixed size binary"},
    "decimal-scale": {"arrow-rs": "The decimal type requires an integer scale"},
    "no-union-members": {"arrow-rs": "The Union type requires an integer type id"},
    "values-under-nulls": {
        "arrow-rs": "utf-8|utf8|UTF8|UTF-8|Invalid buffer index|Invalid buffer slice|non-zero padding|"
        "Mismatch between embedded prefix",
    },
    "values-per-run": {"arrow-rs": "run_ends array length should be the same as values array length"},
    "not-nullable": {
        "arrow-rs": "non-nullable child of type|nullable should be set to false for the field defining run_ends",
    },
}
PEERS = ("pyarrow", "nanoarrow", "arrow-rs")


def kind_of(peer, faults, theirs, why):
    """The kind of a difference; None for one that is not listed, and "" where there is none."""
    if bool(faults) == (theirs != "accepts") and theirs in ("accepts", "refuses"):
        return ""
    if not faults:
        fitting = [kind for kind, said in ACCEPTED.items() if peer in said and re.search(said[peer], why)]
        return fitting[0] if fitting and theirs == "refuses" else None
    # Where one change breaks several rules, a peer stumbles over any of them.
    for fault in faults:
        for kind, (known, *verdicts) in REFUSED.items():
            if fault in known and theirs in verdicts[PEERS.index(peer)].split():
                return kind
    return None


def cells(kind):
    """What the peers do, as the table of differences shows it."""
    if kind in ACCEPTED:
        return ["refuses" if peer in ACCEPTED[kind] else A for peer in PEERS]
    return [" or ".join(verdict.split()) if verdict else "refuses" for verdict in REFUSED[kind][1:]]
