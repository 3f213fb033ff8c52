//! The text form: to types and back, for every type and for many that were drawn by lot.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::result_large_err,
    clippy::unwrap_used,
    reason = "tests may fail hard"
)]

mod types_support;

use bowstring_core::error::{Report, Status};
use bowstring_core::types::{IGNORE_NAMES, IGNORE_NULLABLE, MAX_DEPTH, Type};
use types_support::{Numbers, Schemas, encode, import, parse, text, ty};

/// Canonical texts: each prints as it was read.
const TEXTS: &[(&str, &str)] = &[
    ("null", "n"),
    ("bool", "b"),
    ("int8", "c"),
    ("uint8", "C"),
    ("int16", "s"),
    ("uint16", "S"),
    ("int32 not null", "i"),
    ("uint32", "I"),
    ("int64", "l"),
    ("uint64", "L"),
    ("float16", "e"),
    ("float32", "f"),
    ("float64", "g"),
    ("decimal32(9, 2)", "d:9,2,32"),
    ("decimal64(18, -2)", "d:18,-2,64"),
    ("decimal128(38, 10)", "d:38,10"),
    ("decimal256(76, 0)", "d:76,0,256"),
    ("binary", "z"),
    ("large_binary", "Z"),
    ("utf8", "u"),
    ("large_utf8", "U"),
    ("binary_view", "vz"),
    ("utf8_view", "vu"),
    ("fixed_size_binary(0)", "w:0"),
    ("fixed_size_binary(16)", "w:16"),
    ("date32", "tdD"),
    ("date64", "tdm"),
    ("time32(s)", "tts"),
    ("time32(ms)", "ttm"),
    ("time64(us)", "ttu"),
    ("time64(ns)", "ttn"),
    ("timestamp(s)", "tss:"),
    ("timestamp(ms, \"Etc/GMT+5\")", "tsm:Etc/GMT+5"),
    ("timestamp(us, \"+05:30\")", "tsu:+05:30"),
    ("timestamp(ns, \"a \\\"quoted\\\" zöne\\\\\\n\")", "tsn:a \"quoted\" zöne\\\n"),
    ("duration(s)", "tDs"),
    ("duration(ms)", "tDm"),
    ("duration(us)", "tDu"),
    ("duration(ns)", "tDn"),
    ("interval(months)", "tiM"),
    ("interval(day_time)", "tiD"),
    ("interval(month_day_nano)", "tin"),
    ("list<int32>", "+l"),
    ("list<int32 not null> not null", "+l"),
    ("list<element: int32>", "+l"),
    ("list<\"\": int32>", "+l"),
    ("large_list<utf8>", "+L"),
    ("list_view<utf8>", "+vl"),
    ("large_list_view<utf8>", "+vL"),
    ("fixed_size_list<float32, 3>", "+w:3"),
    ("fixed_size_list<x: float32 not null, 0>", "+w:0"),
    ("struct<>", "+s"),
    ("struct<a: int32 not null, s: list<utf8>>", "+s"),
    ("struct<int32: int32, list: list<list: int32>, item: int8, nullable: int8, not: int8>", "+s"),
    ("struct<\"a b\": int8, \"\": int8, \"1\": int8, \"ä\": int8, \"<,>\\\"\\\\\": int8>", "+s"),
    ("struct<\"\\n\\t\\x01\\x7f\\xff\\xfe\": int8>", "+s"),
    ("map<utf8, int32>", "+m"),
    ("map<utf8, int32 not null, keys_sorted> not null", "+m"),
    ("map<k: utf8, v: int32>", "+m"),
    ("map<struct<a: int8, b: int8>, map<int8, int8>>", "+m"),
    ("map<pairs: struct<k: utf8 not null, v: int32>>", "+m"),
    ("map<\"odd, <name\": struct<k: utf8 not null, v: int32>, keys_sorted>", "+m"),
    ("map<keys_sorted: utf8, keys_sorted: int8, keys_sorted>", "+m"),
    ("dense_union<>", "+ud:"),
    ("sparse_union<>", "+us:"),
    ("dense_union<a: int32, b: utf8>", "+ud:0,1"),
    ("sparse_union<a: int32, b: utf8>", "+us:0,1"),
    ("dense_union(5, 7)<a: int32, b: utf8>", "+ud:5,7"),
    ("sparse_union(1, 0)<a: int32, b: utf8>", "+us:1,0"),
    ("sparse_union(127)<a: int32>", "+us:127"),
    ("run_end_encoded<int16, utf8>", "+r"),
    ("run_end_encoded<int32 nullable, utf8 not null>", "+r"),
    ("run_end_encoded<ends: int64, of: list<utf8>>", "+r"),
    ("dictionary<int8, utf8>", "c"),
    ("dictionary<uint32, utf8 not null, ordered> not null", "I"),
    ("dictionary<int8, values: struct<a: int8>>", "c"),
    ("dictionary<int8, dictionary<int16, utf8, ordered>>", "c"),
    ("name: int32", "i"),
    ("\"full name\": struct<a: dictionary<int8, list<dictionary<int8, utf8>>>>", "+s"),
];

#[test]
fn every_type_prints_as_it_was_read() {
    for (given, format) in TEXTS {
        let parsed = ty(given);
        assert_eq!(text(&parsed), *given);
        assert_eq!(parsed.format_text(0), format.as_bytes(), "{given}");
        assert_round_trips(&parsed);
    }
}

/// Text and raw schemas give the same type again.
#[track_caller]
fn assert_round_trips(of: &Type) {
    let mut schemas = Schemas::default();
    let imported = import(schemas.copy(of)).unwrap();
    assert!(imported.equals(of, 0), "{of:?} was imported as {imported:?}");
    let printed = text(of);
    let parsed = ty(&printed);
    assert!(parsed.equals(of, bowstring_core::types::IGNORE_METADATA), "{printed} became {parsed:?}");
    assert_eq!(text(&parsed), printed);
    assert_eq!(text(&imported), printed);
}

#[test]
fn what_the_printer_leaves_out_may_be_written() {
    for (given, canonical) in [
        ("string", "utf8"),
        ("large_string", "large_utf8"),
        ("string_view", "utf8_view"),
        ("int32 nullable", "int32"),
        (" \n list\t< item :int32   not\nnull > ", "list<int32 not null>"),
        ("decimal128( 5 ,-2 )", "decimal128(5, -2)"),
        ("timestamp ( us , \"\" )", "timestamp(us)"),
        ("struct<int32>", "struct<\"\": int32>"),
        ("struct<\"a\":int8>", "struct<a: int8>"),
        ("struct<\"\\x41\\x4a\\x4A\":int8>", "struct<AJJ: int8>"),
        ("map<key: utf8 not null, value: int8 nullable>", "map<utf8, int8>"),
        ("map<entries: struct<key: utf8 not null, value: int8> not null>", "map<utf8, int8>"),
        ("map<struct<key: utf8 not null, value: int8>, keys_sorted>", "map<utf8, int8, keys_sorted>"),
        ("run_end_encoded<run_ends: int32 not null, values: utf8>", "run_end_encoded<int32, utf8>"),
        ("dense_union(0, 1)<a: int8, b: int8>", "dense_union<a: int8, b: int8>"),
        ("dictionary<int8,\"\":string,ordered>", "dictionary<int8, utf8, ordered>"),
    ] {
        assert_eq!(text(&ty(given)), canonical, "{given}");
    }
}

#[test]
fn bad_text_is_refused_with_its_position() {
    for (given, position, expected, found) in [
        ("", 0, "a type", "the end"),
        ("int", 0, "a type", "\"int\""),
        ("int32 int32", 6, "the end", "\"int32\""),
        ("int32 not", 9, "\"null\"", "the end"),
        ("list<int32", 10, "\">\"", "the end"),
        ("list int32", 5, "\"<\"", "\"int32\""),
        ("list<list<nope>>", 10, "a type", "\"nope>>\""),
        ("struct<a: int32,>", 16, "a type", "\">\""),
        ("struct<a: int32; b>", 15, "\",\" or \">\"", "\"; b>\""),
        ("decimal32(10, 2)", 10, "from 1 to 9", "\"10, 2)\""),
        ("decimal64(0, 2)", 10, "from 1 to 18", "\"0, 2)\""),
        ("decimal128(5, 2.5)", 14, "a scale", "\"2.5)\""),
        ("decimal128(5, 99999999999)", 14, "a scale", "\"99999999999)\""),
        ("fixed_size_binary(-1)", 18, "a size from 0", "\"-1)\""),
        ("fixed_size_list<int8, 2147483648>", 22, "a size from 0", "\"2147483648>\""),
        ("time32(us)", 7, "s or ms", "\"us)\""),
        ("time64(s)", 7, "us or ns", "\"s)\""),
        ("timestamp(x)", 10, "s, ms, us or ns", "\"x)\""),
        ("timestamp(s, UTC)", 13, "\"\"\"", "\"UTC)\""),
        ("timestamp(s, \"\\xff\")", 18, "UTF-8", "\"\\\")\""),
        ("timestamp(s, \"\\x00\")", 14, "\\x00", "\\\\x00"),
        ("interval(years)", 9, "months", "\"years)\""),
        ("struct<\"a: int8>", 16, "closing quote", "the end"),
        ("struct<\"a\\q\": int8>", 9, "escapes", "\\\\q"),
        ("struct<\"a\" int8>", 11, "\":\"", "\"int8>\""),
        ("dense_union(1, 1)<a: int8, b: int8>", 15, "listed before", "\"1)<"),
        ("dense_union(128)<a: int8>", 12, "from 0 to 127", "\"128)<"),
        ("dense_union(1)<a: int8, b: int8>", 11, "as many ids", "1 ids and 2 members"),
        ("dictionary<utf8, utf8>", 11, "integer", "\"utf8, utf8>\""),
        ("dictionary<int8, utf8, sorted>", 23, "\"ordered\"", "\"sorted>\""),
        ("dictionary<int8>", 15, "\",\"", "\">\""),
        ("map<utf8, int8, sorted>", 16, "\"keys_sorted\"", "\"sorted>\""),
        ("list<a: b: int8>", 8, "a type", "\"b: int8>\""),
        ("struct<ä: int8>", 7, "a type", "\"ä: int8>\""),
    ] {
        let error = parse(given).unwrap_err();
        assert_eq!(error.status, Status::InvalidArgument as i32, "{given}");
        let message = error.message();
        assert!(message.starts_with(&format!("at byte {position}: ")), "{given}: {message}");
        let (says_expected, says_found) = message.split_once(", found ").unwrap_or_default();
        assert!(says_expected.contains(expected), "{given}: {message}");
        assert!(says_found.contains(found), "{given}: {message}");
    }
    let error = bowstring_core::error::capture(|r| Type::parse(b"struct<\xff>", r)).unwrap_err();
    assert_eq!(error.message(), "at byte 7: expected UTF-8, found byte 0xff");
}

#[test]
fn structure_that_the_grammar_allows_is_checked_too() {
    for (given, path, expected, found) in [
        ("map<utf8 nullable, int8>", "$.entries.key", "not nullable", "a nullable one"),
        ("map<int8>", "$.entries", "a struct", "\"c\""),
        ("map<struct<a: int8 not null>>", "$.entries", "2 children", "1"),
        (
            "list<map<struct<a: int8 not null, b: int8> nullable>>",
            "$.item.entries",
            "not nullable",
            "nullable",
        ),
        ("run_end_encoded<int8, utf8>", "$.run_ends", "s, i or l", "\"c\""),
        (
            "run_end_encoded<dictionary<int32, int32>, utf8>",
            "$.run_ends",
            "without a dictionary",
            "dictionary",
        ),
        ("run_end_encoded<int32, run_end_encoded<int32, utf8>>", "$.values", "another type", "\"+r\""),
    ] {
        let error = parse(given).unwrap_err();
        assert_eq!(error.status, Status::InvalidData as i32, "{given}");
        assert_eq!(error.path(), path, "{given}: {error}");
        let (says_expected, says_found) = error.message().split_once(", found ").unwrap_or_default();
        assert!(says_expected.contains(expected) && says_found.contains(found), "{given}: {error}");
    }
}

#[test]
fn depth_is_limited() {
    let deep = |levels: usize| format!("{}int8{}", "list<".repeat(levels - 1), ">".repeat(levels - 1));
    assert_eq!(ty(&deep(MAX_DEPTH)).n_nodes(), MAX_DEPTH);
    for levels in [MAX_DEPTH + 1, 10_000] {
        let error = parse(&deep(levels)).unwrap_err();
        assert_eq!(error.status, Status::InvalidArgument as i32);
        assert!(error.message().contains("at most 64 levels"), "{error}");
    }
    let maps = "map<int8, ".repeat(5_000);
    assert!(parse(&maps).is_err());
    let unions = format!("sparse_union<{}>", vec!["int8"; 129].join(","));
    assert!(parse(&unions).unwrap_err().message().contains("at most 128 members of a union, found 129"));
    assert_eq!(ty(&unions.replacen("int8,", "", 1)).root_node().n_children, 128);
}

#[test]
fn equality_minds_what_it_is_told() {
    for (a, b, ignored) in [
        ("struct<a: int8>", "struct<b: int8>", IGNORE_NAMES),
        ("struct<a: int8>", "struct<a: int8 not null>", IGNORE_NULLABLE),
        ("list<int8>", "list<x: int8 not null>", IGNORE_NAMES | IGNORE_NULLABLE),
    ] {
        assert!(!ty(a).equals(&ty(b), 0), "{a} {b}");
        assert!(ty(a).equals(&ty(b), ignored), "{a} {b}");
    }
    for (a, b) in [
        ("struct<a: int8>", "struct<a: int8, b: int8>"),
        ("struct<a: int8>", "struct<a: uint8>"),
        ("timestamp(s, \"A\")", "timestamp(s, \"B\")"),
        ("timestamp(s)", "timestamp(ms)"),
        ("dense_union<a: int8>", "dense_union(1)<a: int8>"),
        ("dictionary<int8, utf8>", "int8"),
        ("dictionary<int8, utf8>", "dictionary<int8, utf8, ordered>"),
        ("map<int8, int8>", "map<int8, int8, keys_sorted>"),
        ("struct<a: struct<>, b: int8>", "struct<a: struct<b: int8>>"),
        ("fixed_size_list<int8, 2>", "fixed_size_list<int8, 3>"),
    ] {
        assert!(!ty(a).equals(&ty(b), 7) && !ty(b).equals(&ty(a), 7), "{a} {b}");
        assert!(ty(a).equals(&ty(a), 0) && ty(b).equals(&ty(b), 0));
    }
    // Written another way, or a flag that means nothing where it is.
    let none: [&Type; 0] = [];
    let build =
        |format: &[u8], flags| Type::build(format, b"", flags, none, None, None, &mut Report::silent());
    assert!(build(b"d:5,2,128", 2).unwrap().equals(&build(b"d:05,2", 2).unwrap(), 0));
    assert!(build(b"i", 2 | 1 | 4 | 64).unwrap().equals(&build(b"i", 2).unwrap(), 0));
}

const LEAVES: &[&str] = &[
    "n",
    "b",
    "c",
    "C",
    "s",
    "S",
    "i",
    "I",
    "l",
    "L",
    "e",
    "f",
    "g",
    "d:5,2",
    "d:9,-1,32",
    "d:76,3,256",
    "z",
    "Z",
    "u",
    "U",
    "vz",
    "vu",
    "w:0",
    "w:70000",
    "tdD",
    "tdm",
    "tts",
    "ttn",
    "tss:",
    "tsu:UTC",
    "tsn:+05:30 \"x\"",
    "tDm",
    "tiM",
    "tiD",
    "tin",
];
const NAMES: &[&[u8]] = &[
    b"",
    b"a",
    b"item",
    b"key",
    b"value",
    b"values",
    b"entries",
    b"run_ends",
    b"a b",
    b"\xff\"\\",
    b"not",
    b"\xc3\xa4",
    b"x:y",
];

/// A type drawn by lot. `name` where the place prescribes one.
fn draw(n: &mut Numbers, depth: usize) -> Type {
    let name: &[u8] = n.pick(NAMES);
    let flags = [0, 2, 2, 3, 7][n.below(5)];
    let encoded = encode(&[(b"k", b"v")]);
    let metadata = (n.below(4) == 0).then_some(encoded.as_slice());
    let build = |format: &str, flags, name: &[u8], children: &[Type], values: Option<&Type>| {
        let built = bowstring_core::error::capture(|report| {
            Type::build(format.as_bytes(), name, flags, children, values, metadata, report)
        });
        built.unwrap_or_else(|error| panic!("{error}"))
    };
    if depth == 0 {
        return build(n.pick(LEAVES), flags, name, &[], None);
    }
    match n.below(9) {
        0 => {
            let values = draw(n, depth - 1);
            build(n.pick(&["c", "C", "s", "S", "i", "I", "l", "L"]), flags, name, &[], Some(&values))
        }
        1 | 2 => {
            let item = draw(n, depth - 1);
            build(n.pick(&["+l", "+L", "+vl", "+vL", "+w:3", "+w:0"]), flags, name, &[item], None)
        }
        3 => {
            let key = build(n.pick(LEAVES), 0, n.pick(NAMES), &[], None);
            let value = draw(n, depth - 1);
            let entries =
                build("+s", 0, n.pick(&[b"entries".as_slice(), b"other", b""]), &[key, value], None);
            build("+m", flags, name, &[entries], None)
        }
        4 => {
            let ends = build(n.pick(&["s", "i", "l"]), [0, 2][n.below(2)], n.pick(NAMES), &[], None);
            let values = build(n.pick(LEAVES), flags, n.pick(NAMES), &[], None);
            build("+r", flags, name, &[ends, values], None)
        }
        5 | 6 => {
            let members: Vec<Type> = (0..n.below(4)).map(|_| draw(n, depth - 1)).collect();
            let mut ids: Vec<usize> = (0..members.len()).collect();
            if n.below(2) == 0 {
                let step = n.below(30) + 1;
                ids.iter_mut().for_each(|id| *id = 127 - *id * step);
            }
            let ids: Vec<String> = ids.iter().map(usize::to_string).collect();
            let format = format!("{}{}", n.pick(&["+ud:", "+us:"]), ids.join(","));
            build(&format, flags, name, &members, None)
        }
        _ => {
            let members: Vec<Type> = (0..n.below(5)).map(|_| draw(n, depth - 1)).collect();
            build("+s", flags, name, &members, None)
        }
    }
}

#[test]
fn types_drawn_by_lot_round_trip() {
    let mut numbers = Numbers(42);
    let (mut nodes, mut deepest) = (0, 0);
    for round in 0..4_000 {
        let drawn = draw(&mut numbers, round % 6);
        assert_round_trips(&drawn);
        for i in 0..drawn.n_nodes() {
            let part = drawn.at(i).unwrap();
            deepest = deepest.max(drawn.path(i).to_string().len());
            if part.n_nodes() > 1 && round % 16 == 0 {
                assert_round_trips(&part);
            }
        }
        nodes += drawn.n_nodes();
    }
    assert!(nodes > 20_000 && deepest > 20, "{nodes} nodes, longest path {deepest}");
}

#[test]
fn text_that_is_cut_or_bent_never_panics() {
    let mut numbers = Numbers(3);
    let mut accepted = 0;
    for _ in 0..100_000 {
        let mut bytes = numbers.pick(TEXTS).0.as_bytes().to_vec();
        let other = numbers.pick(TEXTS).0.as_bytes();
        let at = numbers.below(bytes.len() + 1);
        match numbers.below(4) {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, other.iter().copied())),
            2 => bytes.insert(at, numbers.below(256) as u8),
            _ => drop(bytes.splice(at.., other.iter().copied().skip(at))),
        }
        if let Ok(parsed) = Type::parse(&bytes, &mut Report::silent()) {
            accepted += 1;
            assert!(ty(&text(&parsed)).equals(&parsed, 0));
        }
    }
    assert!(accepted > 2_000, "{accepted}");
}
