//! The encoding of metadata: a count, then for each pair the key and the value, each with its length before it.
//!
//! Counts and lengths are signed 32-bit numbers in the machine's own byte order, at any alignment. Nothing says how long
//! the whole is but the encoding itself.

use super::MAX_METADATA;
use crate::abi::RawBytes;

/// What is wrong with encoded metadata, as "expected" text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataFault {
    /// What should have been there.
    pub expected: &'static str,
    /// The number that was found instead.
    pub found: i64,
    /// Where it was found, in bytes from the start.
    pub at: usize,
}

const COUNT: &str = "a number of pairs that is not negative";
const LENGTH: &str = "a length that is not negative";
const TOTAL: &str = "at most 67108864 bytes of metadata";
const MORE: &str = "metadata as long as its lengths say";

/// The size in bytes of metadata that its producer vouches for; 0 when there are no pairs.
///
/// A byte is only read once those before it said that it exists.
pub fn measure(raw: RawBytes<'_>) -> core::result::Result<usize, MetadataFault> {
    walk(|n| Some(raw.take(n)))
}

/// The size of the metadata that `bytes` start with; 0 when there are no pairs.
pub fn measure_within(bytes: &[u8]) -> core::result::Result<usize, MetadataFault> {
    walk(|n| bytes.get(..n))
}

fn walk<'a>(prefix: impl Fn(usize) -> Option<&'a [u8]>) -> core::result::Result<usize, MetadataFault> {
    let number = |at: usize, expected: &'static str| {
        let end = at.saturating_add(4);
        if end > MAX_METADATA {
            return Err(MetadataFault { expected: TOTAL, found: signed(end), at });
        }
        let found = prefix(end).and_then(|bytes| number_at(bytes, at));
        let found = found.ok_or(MetadataFault { expected: MORE, found: signed(at), at })?;
        usize::try_from(found).map_err(|_| MetadataFault { expected, found: i64::from(found), at })
    };
    let pairs = number(0, COUNT)?;
    if pairs == 0 {
        return Ok(0);
    }
    // Refused before the strings are read: every pair takes at least its two lengths.
    if pairs > MAX_METADATA.wrapping_div(8) {
        return Err(MetadataFault { expected: TOTAL, found: signed(pairs.saturating_mul(8)), at: 0 });
    }
    let mut at = 4_usize;
    for _ in 0..pairs.saturating_mul(2) {
        let length = number(at, LENGTH)?;
        let end = at.saturating_add(4).saturating_add(length);
        if end > MAX_METADATA {
            return Err(MetadataFault { expected: TOTAL, found: signed(end), at });
        }
        at = end;
    }
    if prefix(at).is_none() {
        return Err(MetadataFault { expected: MORE, found: signed(at), at });
    }
    Ok(at)
}

fn signed(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn number_at(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().copied().map(i32::from_ne_bytes)
}

/// The pairs of encoded metadata, in their order, duplicate keys included. Ends early where the bytes are no metadata.
pub fn pairs(encoded: &[u8]) -> Pairs<'_> {
    let left = number_at(encoded, 0).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    Pairs { rest: encoded.get(4..).unwrap_or_default(), left }
}

/// An iterator over the keys and values of encoded metadata.
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Pairs<'a> {
    fn string(&mut self) -> Option<&'a [u8]> {
        let length = number_at(self.rest, 0).and_then(|n| usize::try_from(n).ok())?;
        let (string, rest) = self.rest.get(4..)?.split_at_checked(length)?;
        self.rest = rest;
        Some(string)
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key = self.string()?;
        let value = self.string()?;
        Some((key, value))
    }
}

/// The bytes that the pairs take when encoded; 0 for no pairs, `None` when they are more than the limit.
pub fn encoded_size<'a>(pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Option<usize> {
    let mut size = 0_usize;
    for (key, value) in pairs {
        // The first pair brings the count with it.
        let head = if size == 0 { 12_usize } else { 8 };
        size = size.checked_add(head)?.checked_add(key.len())?.checked_add(value.len())?;
    }
    (size <= MAX_METADATA).then_some(size)
}

/// Encodes the pairs at the start of `out` and returns the size; `None` when `out` is too small or the limit is passed.
pub fn encode<'a>(
    pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8]), IntoIter: Clone>,
    out: &mut [u8],
) -> Option<usize> {
    let pairs = pairs.into_iter();
    let size = encoded_size(pairs.clone())?;
    if size == 0 {
        return Some(0);
    }
    let out = out.get_mut(..size)?;
    let rest = put(out, &i32::try_from(pairs.clone().count()).ok()?.to_ne_bytes())?;
    pairs.flat_map(|(key, value)| [key, value]).try_fold(rest, |rest, string| {
        let rest = put(rest, &i32::try_from(string.len()).ok()?.to_ne_bytes())?;
        put(rest, string)
    })?;
    Some(size)
}

fn put<'a>(out: &'a mut [u8], bytes: &[u8]) -> Option<&'a mut [u8]> {
    let (head, rest) = out.split_at_mut_checked(bytes.len())?;
    head.copy_from_slice(bytes);
    Some(rest)
}
