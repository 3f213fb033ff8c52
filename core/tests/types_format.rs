//! Format strings: what is accepted, what is refused and by which rule, and that nothing else happens.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    reason = "tests may fail hard"
)]

mod types_support;

use bowstring_core::error::Rule;
use bowstring_core::types::{Format, Unit, timezone, union_ids};
use types_support::Numbers;

const VALID: &[(&str, Format)] = &[
    ("n", Format::Null),
    ("b", Format::Bool),
    ("c", Format::Int8),
    ("C", Format::UInt8),
    ("s", Format::Int16),
    ("S", Format::UInt16),
    ("i", Format::Int32),
    ("I", Format::UInt32),
    ("l", Format::Int64),
    ("L", Format::UInt64),
    ("e", Format::Float16),
    ("f", Format::Float32),
    ("g", Format::Float64),
    ("d:19,10", Format::Decimal { bits: 128, precision: 19, scale: 10 }),
    ("d:1,-3", Format::Decimal { bits: 128, precision: 1, scale: -3 }),
    ("d:38,2147483647", Format::Decimal { bits: 128, precision: 38, scale: i32::MAX }),
    ("d:38,-2147483648", Format::Decimal { bits: 128, precision: 38, scale: i32::MIN }),
    ("d:9,2,32", Format::Decimal { bits: 32, precision: 9, scale: 2 }),
    ("d:18,2,64", Format::Decimal { bits: 64, precision: 18, scale: 2 }),
    ("d:76,0,256", Format::Decimal { bits: 256, precision: 76, scale: 0 }),
    ("z", Format::Binary),
    ("Z", Format::LargeBinary),
    ("u", Format::Utf8),
    ("U", Format::LargeUtf8),
    ("vz", Format::BinaryView),
    ("vu", Format::Utf8View),
    ("w:0", Format::FixedSizeBinary(0)),
    ("w:42", Format::FixedSizeBinary(42)),
    ("w:2147483647", Format::FixedSizeBinary(i32::MAX)),
    ("tdD", Format::Date32),
    ("tdm", Format::Date64),
    ("tts", Format::Time32(Unit::Second)),
    ("ttm", Format::Time32(Unit::Milli)),
    ("ttu", Format::Time64(Unit::Micro)),
    ("ttn", Format::Time64(Unit::Nano)),
    ("tss:", Format::Timestamp(Unit::Second)),
    ("tsu:", Format::Timestamp(Unit::Micro)),
    ("tsu:UTC", Format::Timestamp(Unit::Micro)),
    ("tss:+05:30", Format::Timestamp(Unit::Second)),
    ("tsn:America/Argentina/Buenos_Aires", Format::Timestamp(Unit::Nano)),
    ("tsm:Etc/GMT+5", Format::Timestamp(Unit::Milli)),
    ("tsu:Nowhere/Länd", Format::Timestamp(Unit::Micro)),
    ("tDs", Format::Duration(Unit::Second)),
    ("tDm", Format::Duration(Unit::Milli)),
    ("tDu", Format::Duration(Unit::Micro)),
    ("tDn", Format::Duration(Unit::Nano)),
    ("tiM", Format::IntervalMonths),
    ("tiD", Format::IntervalDayTime),
    ("tin", Format::IntervalMonthDayNano),
    ("+l", Format::List),
    ("+L", Format::LargeList),
    ("+vl", Format::ListView),
    ("+vL", Format::LargeListView),
    ("+w:0", Format::FixedSizeList(0)),
    ("+w:7", Format::FixedSizeList(7)),
    ("+s", Format::Struct),
    ("+m", Format::Map),
    ("+ud:", Format::DenseUnion),
    ("+us:", Format::SparseUnion),
    ("+ud:0,1", Format::DenseUnion),
    ("+us:5,7,9", Format::SparseUnion),
    ("+us:127", Format::SparseUnion),
    ("+r", Format::RunEndEncoded),
];

#[test]
fn valid_formats_are_parsed_and_printed() {
    for (text, format) in VALID {
        let bytes = text.as_bytes();
        assert_eq!(Format::parse(bytes), Ok(*format), "{text}");
        assert_eq!(format.text(timezone(bytes), union_ids(bytes)).to_string(), *text);
    }
    // What the canonical string leaves out.
    let decimal = Format::parse(b"d:5,2,128").map(|format| format.text(b"", [].into_iter()).to_string());
    assert_eq!(decimal.as_deref(), Ok("d:5,2"));
}

#[test]
fn invalid_formats_are_refused_by_their_rule() {
    let invalid: &[(&[u8], Rule)] = &[
        (b"", Rule::F1),
        (b"ii", Rule::F1),
        (b"i ", Rule::F1),
        (b" i", Rule::F1),
        (b"vx", Rule::F1),
        (b"v", Rule::F1),
        (b"vu ", Rule::F1),
        (b"+x", Rule::F1),
        (b"+", Rule::F1),
        (b"+ll", Rule::F1),
        (b"+s:", Rule::F1),
        (b"?", Rule::F1),
        (b"!!", Rule::F1),
        (b"\xff", Rule::S1),
        (b"i\xff", Rule::S1),
        (b"tsu:\xff", Rule::S1),
        (b"tsx:\xff", Rule::S1),
        (b"tt\xff", Rule::S1),
        (b"d:4\xff2,32", Rule::S1),
        (b"d", Rule::F2),
        (b"d:", Rule::F2),
        (b"d:5", Rule::F2),
        (b"d:5,", Rule::F2),
        (b"d:,2", Rule::F2),
        (b"d: 5,2", Rule::F2),
        (b"d:5,2,", Rule::F2),
        (b"d:5,2,127", Rule::F2),
        (b"d:5,2,128,", Rule::F2),
        (b"d:0,0", Rule::F2),
        (b"d:39,0", Rule::F2),
        (b"d:10,0,32", Rule::F2),
        (b"d:19,0,64", Rule::F2),
        (b"d:77,0,256", Rule::F2),
        (b"d:-1,0", Rule::F2),
        (b"d:5,+2", Rule::F2),
        (b"d:5,2147483648", Rule::F2),
        (b"d:5,-2147483649", Rule::F2),
        (b"d:5,--2", Rule::F2),
        (b"w", Rule::F3),
        (b"w:", Rule::F3),
        (b"w:-1", Rule::F3),
        (b"w: 3", Rule::F3),
        (b"w:3x", Rule::F3),
        (b"w:99999999999", Rule::F3),
        (b"w:2147483648", Rule::F3),
        (b"+w", Rule::F3),
        (b"+w:", Rule::F3),
        (b"+w:-1", Rule::F3),
        (b"+w:3x", Rule::F3),
        (b"+w:99999999999", Rule::F3),
        (b"t", Rule::F4),
        (b"ts", Rule::F4),
        (b"tsu", Rule::F4),
        (b"tsx:", Rule::F4),
        (b"tsu;UTC", Rule::F4),
        (b"tsu:a\0b", Rule::F4),
        (b"tdX", Rule::F4),
        (b"tdDD", Rule::F4),
        (b"ttx", Rule::F4),
        (b"tDx", Rule::F4),
        (b"tix", Rule::F4),
        (b"+us", Rule::F5),
        (b"+ud", Rule::F5),
        (b"+u", Rule::F5),
        (b"+ux:0", Rule::F5),
        (b"+us:0,", Rule::F5),
        (b"+us:,0", Rule::F5),
        (b"+us:5,5", Rule::F5),
        (b"+us:128", Rule::F5),
        (b"+us:-1", Rule::F5),
        (b"+us:0, 1", Rule::F5),
        (b"+us:4294967296", Rule::F5),
    ];
    for (bytes, rule) in invalid {
        match Format::parse(bytes) {
            Err(fault) => {
                assert_eq!(fault.rule, *rule, "{:?}", bytes.escape_ascii().to_string());
                assert!(!fault.expected.is_empty());
            }
            Ok(format) => panic!("{} was taken for {format:?}", bytes.escape_ascii()),
        }
    }
}

#[test]
fn zones_and_ids_are_kept_verbatim() {
    assert_eq!(timezone(b"tss:+05:30"), b"+05:30");
    assert_eq!(timezone(b"tsu:"), b"");
    assert_eq!(timezone(b"tdD"), b"");
    assert!(union_ids(b"+us:5,7,127").eq([5, 7, 127]));
    assert_eq!(union_ids(b"+ud:").count(), 0);
    assert_eq!(union_ids(b"+w:3").count(), 0);
}

/// What is accepted must print as something that means the same.
fn check(bytes: &[u8]) -> bool {
    let Ok(format) = Format::parse(bytes) else { return false };
    let canonical = format.text(timezone(bytes), union_ids(bytes)).to_string();
    assert_eq!(Format::parse(canonical.as_bytes()), Ok(format), "{}", bytes.escape_ascii());
    assert_eq!(timezone(bytes), timezone(canonical.as_bytes()));
    assert!(union_ids(bytes).eq(union_ids(canonical.as_bytes())));
    true
}

#[test]
fn all_strings_of_two_bytes() {
    let mut accepted = Vec::new();
    for a in 0..=255_u8 {
        check(&[a]).then(|| accepted.push(vec![a]));
        for b in 0..=255_u8 {
            check(&[a, b]).then(|| accepted.push(vec![a, b]));
        }
    }
    let mut expected: Vec<Vec<u8>> = "n b c C s S i I l L e f g z Z u U vz vu +l +L +s +m +r"
        .split(' ')
        .map(|format| format.as_bytes().to_vec())
        .collect();
    accepted.sort();
    expected.sort();
    assert_eq!(accepted, expected);
}

#[test]
fn short_strings_of_the_letters_that_matter() {
    let letters = b"+tsuwdmDvlL:,-013 ";
    let mut accepted = 0;
    let mut string = [0_u8; 5];
    for n in 0..letters.len().pow(5) {
        let mut rest = n;
        for place in &mut string {
            *place = letters[rest % letters.len()];
            rest /= letters.len();
        }
        accepted += usize::from(check(&string)) + usize::from(check(&string[..4]));
    }
    // Time zones of one letter alone are more.
    assert!(accepted > 3 * letters.len(), "{accepted}");
}

#[test]
fn broken_pieces_of_valid_strings() {
    let mut numbers = Numbers(7);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..200_000 {
        let mut string = numbers.pick(VALID).0.as_bytes().to_vec();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(string.len() + 1);
            match numbers.below(4) {
                0 => string.insert(at, numbers.below(256) as u8),
                1 if at < string.len() => drop(string.remove(at)),
                2 if at < string.len() => string[at] = numbers.below(256) as u8,
                _ => string.extend_from_slice(&numbers.pick(VALID).0.as_bytes()[..1]),
            }
        }
        if check(&string) { accepted += 1 } else { refused += 1 }
    }
    assert!(accepted > 1_000 && refused > 100_000, "{accepted} accepted, {refused} refused");
}
