//! The metadata codec and the parser of type texts.

use std::ffi::CStr;

use bowstring::error::{BOWSTRING_INVALID_ARGUMENT, BOWSTRING_INVALID_DATA};
use bowstring_core::types::metadata::{encode, encoded_size, measure_within, pairs};
use bowstring_core::types::{Format, extension_name, extension_storage};

use super::calls::Alive;
use super::input::Input;
use super::types::{Type, look, new_with_metadata};

/// Takes the bytes for encoded metadata, for pairs that are to be encoded, or for the text of a type.
pub fn run(bytes: &[u8]) {
    let before = Alive::now();
    let mut input = Input::new(bytes);
    match input.below(4) {
        0 | 1 => type_text(&input.all().iter().copied().filter(|byte| *byte != 0).collect::<Vec<_>>()),
        2 => decode(input.all()),
        _ => encode_pairs(&mut input),
    }
    assert_eq!(Alive::now(), before, "nothing is left over");
}

fn type_text(bytes: &[u8]) {
    let (outcome, ty) = Type::parse(bytes);
    match ty {
        Some(ty) => look(&ty, true),
        None => {
            let status = outcome.status;
            assert!(
                [BOWSTRING_INVALID_ARGUMENT, BOWSTRING_INVALID_DATA].contains(&status),
                "{}",
                outcome.text()
            );
        }
    }
}

type Pair<'a> = (&'a [u8], &'a [u8]);

/// What the bytes hold by a decoder that is as plain as can be: the pairs and the size, if it is metadata at all.
fn plainly(bytes: &[u8]) -> Option<(Vec<Pair<'_>>, usize)> {
    let number = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        usize::try_from(i32::from_ne_bytes(four)).ok()
    };
    let n = number(0)?;
    if n == 0 {
        return Some((Vec::new(), 0));
    }
    let (mut all, mut at) = (Vec::new(), 4);
    for _ in 0..n {
        let mut pair = [&bytes[..0]; 2];
        for string in &mut pair {
            let length = number(at)?;
            *string = bytes.get(at + 4..(at + 4).checked_add(length)?)?;
            at += 4 + length;
        }
        all.push((pair[0], pair[1]));
    }
    Some((all, at))
}

fn decode(bytes: &[u8]) {
    let expected = plainly(bytes);
    let size = measure_within(bytes).ok();
    assert_eq!(size, expected.as_ref().map(|(_, size)| *size), "{bytes:?}");
    // Whatever the bytes are, the pairs end.
    assert!(pairs(bytes).count() <= bytes.len() / 8);
    let formats = [c"c", c"w:16", c"u", c"i"];
    for format in formats {
        storage(bytes, format);
        let (outcome, ty) = new_with_metadata(format, 2, bytes);
        // Given with their number, the bytes are either no metadata or all of it.
        let is_whole = bytes.is_empty() || size.is_some_and(|size| size == 0 || size == bytes.len());
        assert_eq!(outcome.is_ok(), is_whole, "{}", outcome.text());
        if let Some(ty) = ty {
            look(&ty, true);
        }
    }
    if let Some((all, size)) = expected {
        assert_eq!(pairs(&bytes[..size]).collect::<Vec<_>>(), all);
        again(&all, &bytes[..size]);
    }
}

fn storage(bytes: &[u8], format: &CStr) {
    if let Ok(format) = Format::parse(format.to_bytes()) {
        let told = extension_storage(bytes, format, None);
        assert!(extension_name(bytes).is_some() || told == extension_storage(&[], format, None));
    }
}

/// Encodes the pairs, which must give the bytes.
fn again(all: &[Pair<'_>], bytes: &[u8]) {
    assert_eq!(encoded_size(all.iter().copied()), Some(bytes.len()));
    let mut room = vec![0xaa; bytes.len() + 3];
    assert_eq!(encode(all.iter().copied(), &mut room), Some(bytes.len()));
    assert_eq!(&room[..bytes.len()], bytes);
    assert_eq!(&room[bytes.len()..], [0xaa; 3], "nothing is written behind the end");
    if let Some(less) = bytes.len().checked_sub(1) {
        assert_eq!(encode(all.iter().copied(), &mut room[..less]), None);
    }
}

fn encode_pairs(input: &mut Input<'_>) {
    let mut all = Vec::new();
    while !input.is_empty() {
        let (key, value) = (input.below(40), input.below(80));
        all.push((input.take(key), input.take(value)));
    }
    let size = encoded_size(all.iter().copied()).expect("it is little");
    let mut bytes = vec![0; size];
    assert_eq!(encode(all.iter().copied(), &mut bytes), Some(size));
    decode(&bytes);
    // Cut short, it is none.
    if size > 0 {
        assert!(measure_within(&bytes[..size - 1]).is_err());
    }
}
