//! Encoded metadata: measuring, reading, writing, and what schemas carry.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests may fail hard"
)]

mod types_support;

use bowstring_core::error::{Report, Rule, capture};
use bowstring_core::types::metadata::{encode, encoded_size, measure_within, pairs};
use bowstring_core::types::{IGNORE_METADATA, MAX_METADATA, Type};
use types_support::{Schemas, import};

type Pair<'a> = (&'a [u8], &'a [u8]);

const VECTORS: &[&[Pair<'static>]] = &[
    &[(b"k", b"\xff\x00\xfe")],
    &[(b"", b"")],
    &[(b"a", b"1"), (b"a", b"2"), (b"b", b""), (b"a", b"1")],
    &[(b"ARROW:extension:name", b"x.y")],
    &[(b"ARROW:extension:metadata", b"{\"p\": 1}"), (b"ARROW:extension:name", b"x.y")],
];

#[test]
fn pairs_survive_the_import_byte_for_byte() {
    for vector in VECTORS {
        let encoded = types_support::encode(vector);
        for shift in 0..4 {
            let mut schemas = Schemas::default();
            let field = schemas.field("i", "f", &[]);
            schemas.metadata(field, &encoded, shift);
            let found = import(field).unwrap();
            assert_eq!(found.metadata(0), Some(encoded.as_slice()));
            assert!(pairs(found.metadata(0).unwrap()).eq(vector.iter().copied()));
            assert!(!found.metadata_ptr(0).is_null());
        }
    }
}

#[test]
fn the_encoder_writes_what_the_documentation_says() {
    for vector in VECTORS {
        let expected = types_support::encode(vector);
        let size = encoded_size(vector.iter().copied()).unwrap();
        assert_eq!(size, expected.len());
        let mut out = vec![0xAA; size + 2];
        assert_eq!(encode(vector.iter().copied(), &mut out), Some(size));
        assert_eq!(out[..size], expected);
        assert_eq!(out[size..], [0xAA, 0xAA]);
        assert_eq!(encode(vector.iter().copied(), &mut out[..size - 1]), None);
        assert_eq!(measure_within(&expected), Ok(size));
    }
    assert_eq!(encode([], &mut []), Some(0));
}

#[test]
fn a_count_of_zero_is_none() {
    let mut schemas = Schemas::default();
    let field = schemas.field("i", "f", &[]);
    schemas.metadata(field, &0_i32.to_ne_bytes(), 1);
    let found = import(field).unwrap();
    assert_eq!(found.metadata(0), None);
    assert!(found.metadata_ptr(0).is_null());
    let none: [&Type; 0] = [];
    let built = Type::build(b"i", b"f", 2, none, None, Some(&0_i32.to_ne_bytes()), &mut Report::silent());
    assert_eq!(built.unwrap().metadata(0), None);
}

fn numbers(list: &[i32]) -> Vec<u8> {
    list.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

#[test]
fn bad_counts_and_lengths_are_refused() {
    let cases: &[(Vec<u8>, &[&str])] = &[
        (numbers(&[-1]), &["$", "not negative", "-1", "byte 0"]),
        (numbers(&[1, -4]), &["$", "not negative", "-4", "byte 4"]),
        (numbers(&[1, 0, -5]), &["$", "not negative", "-5", "byte 8"]),
        (numbers(&[2, 0, 0, i32::MIN]), &["$", "not negative", "-2147483648", "byte 12"]),
        (numbers(&[1, i32::MAX]), &["$", "at most 67108864", "2147483655"]),
        (numbers(&[1, 0, i32::MAX]), &["$", "at most 67108864", "2147483659"]),
        (numbers(&[i32::MAX]), &["$", "at most 67108864", "17179869176"]),
    ];
    for (encoded, fragments) in cases {
        let mut schemas = Schemas::default();
        let field = schemas.field("i", "f", &[]);
        schemas.metadata(field, encoded, 0);
        let error = import(field).unwrap_err();
        assert_eq!(error.rule, Rule::S3 as i32);
        for fragment in *fragments {
            assert!(error.to_string().contains(fragment), "{error} does not say {fragment}");
        }
    }
}

#[test]
fn bytes_with_an_end_must_end_where_the_lengths_say() {
    let none: [&Type; 0] = [];
    let encoded = types_support::encode(&[(b"key", b"value")]);
    let build = |metadata: &[u8]| {
        capture(|report| Type::build(b"i", b"f", 2, none, None, Some(metadata), report)).map_err(|e| e.rule)
    };
    assert_eq!(build(&encoded).unwrap().metadata(0), Some(encoded.as_slice()));
    for end in 1..encoded.len() {
        assert_eq!(build(&encoded[..end]).unwrap_err(), Rule::S3 as i32, "{end}");
        assert!(measure_within(&encoded[..end]).is_err());
        // The reader of bad bytes stops early, and does not fail.
        assert!(pairs(&encoded[..end]).count() <= 1);
    }
    let longer = [encoded.as_slice(), b"x"].concat();
    assert_eq!(build(&longer).unwrap_err(), Rule::S3 as i32);
    assert_eq!(build(&[]).unwrap().metadata(0), None);
}

#[test]
fn the_limit_is_exact() {
    let value = vec![b'v'; MAX_METADATA - 12];
    let fits = types_support::encode(&[(b"", &value)]);
    assert_eq!(measure_within(&fits), Ok(MAX_METADATA));
    assert_eq!(encoded_size([(b"".as_slice(), value.as_slice())]), Some(MAX_METADATA));
    assert_eq!(encoded_size([(b"k".as_slice(), value.as_slice())]), None);
    assert!(measure_within(&types_support::encode(&[(b"k", &value)])).is_err());
}

#[test]
fn equality_minds_metadata_unless_told_not_to() {
    let none: [&Type; 0] = [];
    let with = |pairs: &[Pair<'_>]| {
        let encoded = types_support::encode(pairs);
        Type::build(b"i", b"f", 2, none, None, Some(&encoded), &mut Report::silent()).unwrap()
    };
    let (a, b) = (with(&[(b"a", b"1")]), with(&[(b"a", b"2")]));
    assert!(a.equals(&with(&[(b"a", b"1")]), 0));
    assert!(!a.equals(&b, 0));
    assert!(a.equals(&b, IGNORE_METADATA));
    assert!(a.equals(&with(&[]), IGNORE_METADATA));
}
