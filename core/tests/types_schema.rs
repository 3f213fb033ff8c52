//! Types from raw schemas: what is copied, and for each rule a schema that breaks it.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    clippy::result_large_err,
    clippy::unwrap_used,
    reason = "tests may fail hard"
)]

mod types_support;

use std::ffi::CStr;
use std::ptr::null_mut;

use bowstring_core::error::{Report, Rule, Status, capture};
use bowstring_core::types::{Format, MAX_FORMAT, MAX_METADATA, MAX_NODES, MAX_STRING, NONE, Type};
use types_support::{Raw, Schemas, child, encode, import, raw, text, ty};

/// One fault in a tree, and what is said about it.
struct Case {
    name: &'static str,
    make: fn(&mut Schemas) -> Raw,
    rule: Rule,
    path: &'static str,
    expected: &'static str,
    found: &'static str,
}

fn with_dictionary(s: &mut Schemas, indices: &str, values: &str) -> Raw {
    let field = s.field(indices, "d", &[]);
    raw(field).dictionary = s.field(values, "", &[]);
    s.field("+s", "", &[field])
}

/// A root with one member "m", whose children are nullable `i` and `u`, or as given.
fn member(s: &mut Schemas, format: &str, children: &[Raw]) -> Raw {
    let field = s.field(format, "m", children);
    s.field("+s", "", &[field])
}

fn map(s: &mut Schemas, entries: &str, flags: i64, key_flags: i64, n: usize) -> Raw {
    let children =
        [s.add(b"u", Some(b"key"), key_flags, &[]), s.field("i", "value", &[]), s.field("i", "x", &[])];
    let entries = s.add(entries.as_bytes(), Some(b"entries"), flags, &children[..n]);
    member(s, "+m", &[entries])
}

fn ends(s: &mut Schemas, ends: &str, values: &str) -> Raw {
    let children = [s.field("i", "run_ends", &[]), s.field("u", "values", &[])];
    let ends = s.field(ends, "run_ends", &[]);
    let values = s.field(values, "values", if values == "+r" { &children } else { &[] });
    member(s, "+r", &[ends, values])
}

const CASES: &[Case] = &[
    Case {
        name: "no format",
        make: |s| {
            let root = member(s, "i", &[]);
            raw(child(root)).format = core::ptr::null();
            root
        },
        rule: Rule::S1,
        path: "$.m",
        expected: "a format string",
        found: "NULL",
    },
    Case {
        name: "format without an end",
        make: |s| s.add("i".repeat(MAX_FORMAT + 1).as_bytes(), None, 0, &[]),
        rule: Rule::S1,
        path: "$",
        expected: "at most 65535 bytes",
        found: "more",
    },
    Case {
        name: "format that is not UTF-8",
        make: |s| s.add(b"\xff", None, 0, &[]),
        rule: Rule::S1,
        path: "$",
        expected: "UTF-8",
        found: "\u{fffd}",
    },
    Case {
        name: "name without an end",
        make: |s| {
            let field = s.add(b"i", Some(&vec![b'x'; MAX_STRING + 1]), 0, &[]);
            s.field("+s", "", &[field])
        },
        rule: Rule::S2,
        path: "$",
        expected: "at most 1048576 bytes",
        found: "more",
    },
    Case {
        name: "metadata with a negative length",
        make: |s| {
            let root = member(s, "i", &[]);
            let field = child(root);
            s.metadata(field, &[1_i32, -4].map(i32::to_ne_bytes).concat(), 0);
            root
        },
        rule: Rule::S3,
        path: "$.m",
        expected: "not negative",
        found: "-4 at byte 4",
    },
    Case {
        name: "negative number of children",
        make: |s| {
            let root = s.field("+s", "", &[]);
            raw(root).n_children = -1;
            root
        },
        rule: Rule::S5,
        path: "$",
        expected: "not negative",
        found: "-1",
    },
    Case {
        name: "children without a list",
        make: |s| {
            let root = s.field("+s", "", &[]);
            raw(root).n_children = 1;
            root
        },
        rule: Rule::S5,
        path: "$",
        expected: "a pointer to child 0 of 1",
        found: "NULL",
    },
    Case {
        name: "a child that is NULL",
        make: |s| {
            let child = s.field("i", "a", &[]);
            s.field("+s", "", &[child, null_mut()])
        },
        rule: Rule::S5,
        path: "$",
        expected: "a pointer to child 1 of 2",
        found: "NULL",
    },
    Case {
        name: "a child that was moved out",
        make: |s| {
            let child = s.field("i", "a", &[]);
            raw(child).release = None;
            member(s, "+l", &[child])
        },
        rule: Rule::S5,
        path: "$.m",
        expected: "child 0 of 1 to be alive",
        found: "a released one",
    },
    Case {
        name: "indices that are no integers",
        make: |s| with_dictionary(s, "f", "u"),
        rule: Rule::S6,
        path: "$.d",
        expected: "an integer format",
        found: "\"f\"",
    },
    Case {
        name: "children beside a dictionary",
        make: |s| {
            let root = with_dictionary(s, "c", "u");
            let field = raw(child(root));
            field.n_children = 1;
            root
        },
        rule: Rule::S6,
        path: "$.d",
        expected: "0 children",
        found: "1",
    },
    Case {
        name: "a released dictionary",
        make: |s| {
            let root = with_dictionary(s, "c", "u");
            raw(raw(child(root)).dictionary).release = None;
            root
        },
        rule: Rule::S6,
        path: "$.d",
        expected: "the dictionary to be alive",
        found: "a released one",
    },
    Case {
        name: "a fault in a dictionary",
        make: |s| with_dictionary(s, "c", "!"),
        rule: Rule::F1,
        path: "$.d<dictionary>",
        expected: "a format string that",
        found: "\"!\"",
    },
    Case {
        name: "unknown format",
        make: |s| member(s, "ii", &[]),
        rule: Rule::F1,
        path: "$.m",
        expected: "the Arrow C Data interface defines",
        found: "\"ii\"",
    },
    Case {
        name: "decimal",
        make: |s| member(s, "d:39,2", &[]),
        rule: Rule::F2,
        path: "$.m",
        expected: "a precision from 1 to 9, 18, 38 or 76",
        found: "\"d:39,2\"",
    },
    Case {
        name: "width",
        make: |s| member(s, "w: 3", &[]),
        rule: Rule::F3,
        path: "$.m",
        expected: "a size from 0 to 2147483647",
        found: "\"w: 3\"",
    },
    Case {
        name: "list size",
        make: |s| member(s, "+w:-1", &[]),
        rule: Rule::F3,
        path: "$.m",
        expected: "a size from 0 to 2147483647",
        found: "\"+w:-1\"",
    },
    Case {
        name: "timestamp",
        make: |s| member(s, "tsu", &[]),
        rule: Rule::F4,
        path: "$.m",
        expected: "a colon",
        found: "\"tsu\"",
    },
    Case {
        name: "union ids",
        make: |s| member(s, "+us:5,5", &[]),
        rule: Rule::F5,
        path: "$.m",
        expected: "different ids from 0 to 127",
        found: "\"+us:5,5\"",
    },
    Case {
        name: "leaf with a child",
        make: |s| {
            let child = s.field("i", "x", &[]);
            member(s, "u", &[child])
        },
        rule: Rule::F5,
        path: "$.m",
        expected: "0 children for \"u\"",
        found: "1",
    },
    Case {
        name: "more children claimed than the list can have",
        make: |s| {
            let child = s.field("i", "x", &[]);
            let list = s.field("+l", "m", &[child]);
            raw(list).n_children = 1_000;
            list
        },
        rule: Rule::F5,
        path: "$",
        expected: "1 children for \"+l\"",
        found: "1000",
    },
    Case {
        name: "list without a child",
        make: |s| member(s, "+w:3", &[]),
        rule: Rule::F5,
        path: "$.m",
        expected: "1 children for \"+w:3\"",
        found: "0",
    },
    Case {
        name: "ids without children",
        make: |s| member(s, "+ud:0,1", &[]),
        rule: Rule::F5,
        path: "$.m",
        expected: "2 children for \"+ud:0,1\"",
        found: "0",
    },
    Case {
        name: "run ends alone",
        make: |s| {
            let child = s.field("i", "run_ends", &[]);
            member(s, "+r", &[child])
        },
        rule: Rule::F5,
        path: "$.m",
        expected: "2 children for \"+r\"",
        found: "1",
    },
    Case {
        name: "map of a list",
        make: |s| {
            let list = s.field("+l", "l", &[]);
            let item = s.field("i", "item", &[]);
            raw(list).n_children = 1;
            let holder = s.field("+s", "", &[item]);
            raw(list).children = raw(holder).children;
            member(s, "+m", &[list])
        },
        rule: Rule::F5,
        path: "$.m.l",
        expected: "a struct as the entries of a map",
        found: "\"+l\"",
    },
    Case {
        name: "map with three columns",
        make: |s| map(s, "+s", 0, 0, 3),
        rule: Rule::F5,
        path: "$.m.entries",
        expected: "2 children, a map's key and value",
        found: "3",
    },
    Case {
        name: "map with nullable entries",
        make: |s| map(s, "+s", 2, 0, 2),
        rule: Rule::F5,
        path: "$.m.entries",
        expected: "not nullable",
        found: "nullable ones",
    },
    Case {
        name: "map with nullable keys",
        make: |s| map(s, "+s", 0, 2, 2),
        rule: Rule::F5,
        path: "$.m.entries.key",
        expected: "not nullable",
        found: "a nullable one",
    },
    Case {
        name: "run ends of 8 bits",
        make: |s| ends(s, "c", "u"),
        rule: Rule::F5,
        path: "$.m.run_ends",
        expected: "s, i or l",
        found: "\"c\"",
    },
    Case {
        name: "run-end encoded twice",
        make: |s| ends(s, "i", "+r"),
        rule: Rule::F5,
        path: "$.m.values",
        expected: "of another type",
        found: "\"+r\"",
    },
    Case {
        name: "too many nodes claimed",
        make: |s| {
            let root = s.field("+s", "", &[]);
            raw(root).n_children = MAX_NODES as i64 + 1;
            root
        },
        rule: Rule::None,
        path: "$",
        expected: "at most 16777216 nodes",
        found: "more",
    },
];

#[test]
fn every_fault_names_its_rule_and_its_place() {
    for case in CASES {
        let mut schemas = Schemas::default();
        let root = (case.make)(&mut schemas);
        let error = import(root).expect_err(case.name);
        assert_eq!(error.status, Status::InvalidData as i32, "{}: {error}", case.name);
        assert_eq!(error.rule, case.rule as i32, "{}: {error}", case.name);
        assert_eq!(error.path(), case.path, "{}: {error}", case.name);
        let (expected, found) = error.message().split_once(", found ").unwrap_or_default();
        assert!(expected.contains(case.expected), "{}: {error}", case.name);
        assert!(found.contains(case.found), "{}: {error}", case.name);
        assert!(raw(root).release.is_some(), "nothing is released");
    }
    // Each rule that a schema alone can break.
    for rule in
        [Rule::S1, Rule::S2, Rule::S3, Rule::S5, Rule::S6, Rule::F1, Rule::F2, Rule::F3, Rule::F4, Rule::F5]
    {
        assert!(CASES.iter().any(|case| case.rule == rule), "{rule:?}");
    }
}

#[test]
fn a_released_root_is_told_apart() {
    let mut schemas = Schemas::default();
    let root = schemas.field("i", "a", &[]);
    raw(root).release = None;
    raw(root).format = core::ptr::null();
    let error = import(root).unwrap_err();
    assert_eq!((error.status, error.rule), (Status::Released as i32, Rule::M2 as i32));
    assert_eq!(error.path(), "$");
    assert!(error.message().contains("alive, found a released one"));
}

#[test]
fn everything_is_copied() {
    let found = {
        let mut s = Schemas::default();
        let a = s.add(b"tsu:UTC", Some(b"a"), 0, &[]);
        s.metadata(a, &encode(&[(b"k", b"v")]), 1);
        let item = s.add(b"i", None, 2 | 1 << 40, &[]);
        let list = s.field("+l", "two words", &[item]);
        let coded = s.add(b"c", Some(b"d"), 3, &[]);
        let values = s.field("u", "", &[]);
        raw(coded).dictionary = s.add(b"s", Some(b"\xff\xfe"), 0, &[]);
        raw(raw(coded).dictionary).dictionary = values;
        let root = s.add(b"+s", None, 0, &[a, list, coded]);
        import(root).unwrap()
    };
    assert_eq!(found.n_nodes(), 7);
    let formats: Vec<&[u8]> = (0..7).map(|i| found.format_text(i)).collect();
    assert_eq!(formats, [b"+s".as_slice(), b"tsu:UTC", b"+l", b"i", b"c", b"s", b"u"]);
    let names: Vec<&[u8]> = (0..7).map(|i| found.name(i)).collect();
    assert_eq!(names, [b"".as_slice(), b"a", b"two words", b"", b"d", b"\xff\xfe", b""]);
    let flags: Vec<i64> = found.nodes().iter().map(|node| node.flags).collect();
    assert_eq!(flags, [0, 0, 2, 2 | 1 << 40, 3, 0, 2]);
    let parents: Vec<u32> = found.nodes().iter().map(|node| node.parent).collect();
    assert_eq!(parents, [NONE, 0, 0, 2, 0, 4, 5]);
    let ends: Vec<u32> = found.nodes().iter().map(|node| node.subtree_end).collect();
    assert_eq!(ends, [7, 2, 4, 4, 7, 7, 7]);
    let values: Vec<u32> = found.nodes().iter().map(|node| node.dictionary).collect();
    assert_eq!(values, [NONE, NONE, NONE, NONE, 5, 6, NONE]);
    let is_values: Vec<bool> = found.nodes().iter().map(|node| node.is_dictionary).collect();
    assert_eq!(is_values, [false, false, false, false, false, true, true]);
    assert_eq!(found.metadata(1).map(<[u8]>::to_vec), Some(encode(&[(b"k", b"v")])));
    let children: Vec<Option<usize>> = (0..4).map(|i| found.child_index(0, i)).collect();
    assert_eq!(children, [Some(1), Some(2), Some(4), None]);
    assert_eq!(
        (found.child_index(2, 0), found.child_index(4, 0), found.child_index(9, 0)),
        (Some(3), None, None)
    );
    let paths: Vec<String> = (0..7).map(|i| found.path(i).to_string()).collect();
    assert_eq!(
        paths,
        [
            "$",
            "$.a",
            "$.\"two words\"",
            "$.\"two words\".\"\"",
            "$.d",
            "$.d<dictionary>",
            "$.d<dictionary><dictionary>"
        ]
    );
    assert_eq!(found.block_depth(), 4);
    assert_eq!(found.node(7).map(|node| node.index), None);
}

#[test]
fn a_part_is_a_type_of_its_own() {
    let whole = ty("x: struct<a: int8, b: struct<c: dictionary<int8, list<utf8>>, d: int8>>");
    let part = whole.child(1).unwrap();
    assert_eq!((part.base(), part.n_nodes(), whole.n_nodes()), (2, 5, 7));
    assert_eq!(text(&part), "b: struct<c: dictionary<int8, list<utf8>>, d: int8>");
    assert_eq!(part.path(3).to_string(), "$.c<dictionary>.item");
    assert_eq!((part.child_index(0, 1), part.dictionary_index(1)), (Some(4), Some(2)));
    let values = part.child(0).and_then(|c| c.dictionary()).unwrap();
    assert_eq!(values.root_node().format, Format::List);
    assert_eq!(text(&values), "list<utf8>");
    drop((whole, part));
    assert_eq!(text(&values.at(1).unwrap()), "item: utf8");
    assert!(values.equals(&ty("list<utf8>"), 0));
    // SAFETY: the pointers are valid as long as the block.
    let (format, name) =
        unsafe { (CStr::from_ptr(values.format_ptr(1)), CStr::from_ptr(values.name_ptr(1))) };
    assert_eq!((format, name), (c"u", c"item"));
    assert_eq!(values.address(), core::ptr::from_ref(values.root_node()));
    // SAFETY: as above; out of range there is an empty string.
    assert_eq!(unsafe { CStr::from_ptr(values.name_ptr(9)) }, c"");
    let (block, node) = values.into_parts();
    assert_eq!(text(&Type::from_parts(block, node)), "list<utf8>");
}

#[test]
fn parts_are_built_into_one_type() {
    let whole = ty("struct<a: list<x: int8>, b: dictionary<int8, struct<y: utf8>>>");
    let children = [whole.child(1).unwrap(), whole.child(0).unwrap()];
    let build = |format: &[u8], name: &[u8], children: &[Type], values: Option<&Type>| {
        capture(|report| Type::build(format, name, 2, children, values, None, report))
    };
    let built = build(b"+us:3,1", b"u", &children, None).unwrap();
    assert_eq!(text(&built), "u: sparse_union(3, 1)<b: dictionary<int8, struct<y: utf8>>, a: list<x: int8>>");
    let coded = build(b"i", b"", &[], Some(&children[0])).unwrap();
    assert_eq!(text(&coded), "dictionary<int32, b: dictionary<int8, struct<y: utf8>>>");
    assert_eq!(coded.path(3).to_string(), "$<dictionary><dictionary>.y");

    for (format, name, children, values, rule, expected) in [
        (b"ii".as_slice(), b"".as_slice(), &[] as &[Type], None, Rule::F1, "found \"ii\""),
        (b"+l", b"", &[], None, Rule::F5, "expected 1 children for \"+l\", found 0"),
        (
            b"u",
            b"",
            &[],
            Some(&coded),
            Rule::S6,
            "expected an integer format for the indices of a dictionary, found \"u\"",
        ),
        (b"i", b"", &children, Some(&coded), Rule::S6, "expected 0 children beside a dictionary, found 2"),
        (b"i", b"a\0b", &[], None, Rule::S2, "expected a name without NUL, found one at byte 1"),
        (
            b"+m",
            b"",
            &children[1..],
            None,
            Rule::F5,
            "expected a struct as the entries of a map, found \"+l\"",
        ),
    ] {
        let error = build(format, name, children, values).unwrap_err();
        assert_eq!((error.status, error.rule), (Status::InvalidData as i32, rule as i32), "{error}");
        assert!(error.message().contains(expected), "{error}");
    }
    let long = vec![b'x'; MAX_STRING + 1];
    assert_eq!(build(b"i", &long, &[], None).unwrap_err().rule, Rule::S2 as i32);
    assert_eq!(build(b"i", &long[1..], &[], None).unwrap().name(0).len(), MAX_STRING);
    let zone = [b"tss:".as_slice(), &vec![b'x'; MAX_FORMAT - 3]].concat();
    assert_eq!(build(&zone, b"", &[], None).unwrap_err().rule, Rule::S1 as i32);
    assert_eq!(build(&zone[..MAX_FORMAT], b"", &[], None).unwrap().format_text(0).len(), MAX_FORMAT);
}

#[test]
fn depth_is_limited_without_deep_recursion() {
    let deep = |levels: usize| {
        let mut schemas = Schemas::default();
        let mut root = schemas.field("i", "item", &[]);
        for _ in 1..levels {
            root = schemas.field("+l", "item", &[root]);
        }
        import(root)
    };
    let deepest = deep(64).unwrap();
    assert_eq!((deepest.n_nodes(), deepest.block_depth()), (64, 64));
    for levels in [65, 10_000] {
        let error = deep(levels).unwrap_err();
        assert_eq!((error.status, error.rule), (Status::InvalidData as i32, Rule::None as i32));
        assert!(error.message().contains("at most 64 levels of nodes, found more"), "{error}");
        assert!(error.path().starts_with("$.item.item.item"), "{error}");
    }
    let error = capture(|r| Type::build(b"+l", b"", 2, [&deepest], None, None, r)).unwrap_err();
    assert!(error.message().contains("at most 64 levels"), "{error}");
    let part = deepest.child(0).unwrap();
    assert_eq!(Type::build(b"+L", b"", 2, [part], None, None, &mut Report::silent()).unwrap().n_nodes(), 64);

    // Dictionaries of dictionaries are levels too.
    let mut schemas = Schemas::default();
    let mut root = schemas.field("u", "", &[]);
    for _ in 0..64 {
        let coded = schemas.field("i", "", &[]);
        raw(coded).dictionary = root;
        root = coded;
    }
    assert!(import(root).unwrap_err().message().contains("at most 64 levels"));
}

#[test]
fn nodes_are_limited() {
    // A tree of few structs that are met again and again: 4096 * 4096 leaves and what holds them.
    let mut schemas = Schemas::default();
    let leaf = schemas.field("n", "", &[]);
    let middle = schemas.field("+s", "", &vec![leaf; 4096]);
    let root = schemas.field("+s", "", &vec![middle; 4096]);
    let error = import(root).unwrap_err();
    assert_eq!(error.status, Status::InvalidData as i32);
    assert!(error.message().contains("at most 16777216 nodes, found more"), "{error}");
}

#[test]
fn bytes_are_limited() {
    let mut schemas = Schemas::default();
    let leaf = schemas.field("n", &"x".repeat(300), &[]);
    schemas.metadata(leaf, &encode(&[(b"", &vec![0; MAX_METADATA - 12])]), 0);
    let root = schemas.field("+s", "", &[leaf; 64]);
    let error = import(root).unwrap_err();
    assert!(error.message().contains("at most 4294967295 bytes of strings and metadata"), "{error}");
    // The path shows the start of such a name only.
    let part = import(leaf).and_then(|leaf| capture(|r| Type::build(b"+s", b"", 2, [leaf], None, None, r)));
    assert_eq!(part.unwrap().path(1).to_string(), format!("$.{}...", "x".repeat(255)));
}
