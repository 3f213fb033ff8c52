//! Text: UTF-8 in rows that offsets tell apart.

use core::ops::Range;

use super::bits::{Bitmap, is_valid};
use super::ints::{Int, Ints, Width};
use super::isa::{Isa, for_each_isa};
use super::offsets::Ascending;
use super::rows::{check_with_best_isa, first_bad};

/// Text of n rows: row i reaches from offset i to offset i+1 of the data.
///
/// A row is bad when it is valid and its bytes are no UTF-8 or are not there.
#[derive(Clone, Copy, Debug)]
pub struct Utf8<'a> {
    /// n+1 signed integers of 32 or 64 bits, of any value.
    pub offsets: Ints<'a>,
    /// What the offsets point into.
    pub data: &'a [u8],
    /// Which rows are valid; all of them without it.
    pub validity: Option<Bitmap<'a>>,
}

check_with_best_isa!(Utf8);

impl<'a> Utf8<'a> {
    fn first_bad_on(&self, isa: Isa, rows: Range<usize>) -> Option<usize> {
        let present = self.offsets.len().saturating_sub(1);
        let is_bad = |row| !self.value(row).is_some_and(is_utf8) && is_valid(self.validity, row);
        first_bad(rows, present, |rows| self.hold(isa, rows).is_some(), is_bad)
    }

    fn value(&self, row: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(self.offsets.get(row)?).ok()?;
        let end = usize::try_from(self.offsets.get(row.checked_add(1)?)?).ok()?;
        self.data.get(start..end)
    }

    /// Something when all rows are known to be good, and their offsets too.
    fn hold(&self, isa: Isa, rows: Range<usize>) -> Option<()> {
        let limit = i64::try_from(self.data.len()).unwrap_or(i64::MAX);
        let place = Ascending { offsets: self.offsets, limit }.hold(isa, rows.clone())?;
        let text = self.data.get(place.clone())?;
        let rest = text.get(ascii_until(isa, text)..)?;
        if rest.is_empty() {
            return Some(());
        }
        // The first offset is where good text starts, and what the last one points at belongs to other rows.
        let inner = self.offsets.part(rows.start.checked_add(1)?..rows.end)?;
        let whole = is_utf8(rest)
            && match self.offsets.width {
                Width::W32 => between_characters::<i32>(isa, text, place.start, inner),
                Width::W64 => between_characters::<i64>(isa, text, place.start, inner),
                Width::W8 | Width::W16 => false,
            };
        whole.then_some(())
    }
}

/// Text whose offsets have to be good as well, checked together: the offsets are read once.
///
/// A row is bad when its offsets break the rule of [`Ascending`], with the data's length as the limit, whether it is valid
/// or not, or when it is bad as [`Utf8`]. Those two tell which it is.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a> {
    /// n+1 signed integers of 32 or 64 bits, of any value.
    pub offsets: Ints<'a>,
    /// What the offsets point into.
    pub data: &'a [u8],
    /// Which rows are valid; all of them without it.
    pub validity: Option<Bitmap<'a>>,
}

check_with_best_isa!(Strings);

impl<'a> Strings<'a> {
    fn first_bad_on(&self, isa: Isa, rows: Range<usize>) -> Option<usize> {
        let text = self.text();
        let present = self.offsets.len().saturating_sub(1);
        let is_bad = |row| match text.value(row) {
            Some(value) => !is_utf8(value) && is_valid(self.validity, row),
            None => true,
        };
        first_bad(rows, present, |rows| text.hold(isa, rows).is_some(), is_bad)
    }

    const fn text(&self) -> Utf8<'a> {
        Utf8 { offsets: self.offsets, data: self.data, validity: self.validity }
    }
}

/// Whether bytes are UTF-8; all of them are looked at as fast as memory allows.
pub(super) fn is_utf8(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok()
}

/// Whether a byte is a later one of a character's.
const fn continues(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

for_each_isa! {
    /// Whether no offset points into the middle of a character of good text. Offsets outside of it point into none.
    fn between_characters<T: Int>(text: &[u8], start: usize, offsets: &[u8]) -> bool {
        let inside = |offset: T| {
            let at = (offset.index() as usize).wrapping_sub(start);
            continues(text.get(at).copied().unwrap_or(0))
        };
        T::each(offsets).fold(0, |bad: u8, offset| bad | u8::from(inside(offset))) == 0
    }
}

/// What is known to be ASCII or not at once: few enough bytes that they can soon be read again.
const PIECE: usize = 4096;

for_each_isa! {
    /// A number of bytes from the start that are all ASCII: all of them, if all are.
    fn ascii_until(bytes: &[u8]) -> usize {
        let mut until = 0_usize;
        for piece in bytes.chunks(PIECE) {
            if !all_ascii(piece) {
                break;
            }
            until = until.wrapping_add(piece.len());
        }
        until
    }
}

/// Whether all bytes are ASCII, of some length.
#[inline(always)]
pub(super) fn all_ascii(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<32>();
    let mut seen = [0_u8; 32];
    for chunk in chunks {
        for (seen, byte) in seen.iter_mut().zip(chunk) {
            *seen |= byte;
        }
    }
    seen.iter().chain(rest).fold(0, |all, byte| all | byte) < 0x80
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    reason = "tests may fail hard"
)]
mod tests {
    use super::super::rows::BLOCK;
    use super::super::testing::{Random, agree, everywhere, guarded};
    use super::*;

    /// UTF-8 by its definition: Unicode's table of well-formed byte sequences.
    fn well_formed(mut bytes: &[u8]) -> bool {
        while let [first, rest @ ..] = bytes {
            let (second, more) = match first {
                0..=0x7F => (0..=0, 0),
                0xC2..=0xDF => (0x80..=0xBF, 1),
                0xE0 => (0xA0..=0xBF, 2),
                0xE1..=0xEC | 0xEE..=0xEF => (0x80..=0xBF, 2),
                0xED => (0x80..=0x9F, 2),
                0xF0 => (0x90..=0xBF, 3),
                0xF1..=0xF3 => (0x80..=0xBF, 3),
                0xF4 => (0x80..=0x8F, 3),
                _ => return false,
            };
            let Some((tail, after)) = rest.split_at_checked(more) else { return false };
            let good = tail.iter().enumerate().all(|(i, byte)| match i {
                0 => second.contains(byte),
                _ => (0x80..=0xBF).contains(byte),
            });
            if !good {
                return false;
            }
            bytes = after;
        }
        true
    }

    fn bytes_of(offsets: &[i64], width: Width) -> Vec<u8> {
        match width {
            Width::W64 => offsets.iter().flat_map(|offset| offset.to_ne_bytes()).collect(),
            _ => offsets.iter().flat_map(|offset| (*offset as i32).to_ne_bytes()).collect(),
        }
    }

    fn compare(offsets: &[i64], data: &[u8], validity: Option<Bitmap<'_>>) {
        let rows = offsets.len() - 1;
        let is_bad = |row: usize| {
            if row >= rows {
                return true;
            }
            let start = usize::try_from(offsets[row]).unwrap_or(usize::MAX);
            let end = usize::try_from(offsets[row + 1]).unwrap_or(usize::MAX);
            !data.get(start..end).is_some_and(well_formed) && validity.is_none_or(|bits| bits.get(row))
        };
        let is_out_of_order = |row: usize| {
            let (start, end) = (offsets[row], offsets[row + 1]);
            start < 0 || end < start || end > data.len() as i64
        };
        for width in [Width::W32, Width::W64] {
            guarded(&bytes_of(offsets, width), |bytes| {
                let offsets = Ints { bytes, width, signed: true };
                guarded(data, |data| {
                    let check = Utf8 { offsets, data, validity };
                    agree(rows, |isa, rows| check.first_bad_on(isa, rows), is_bad);
                    let check = Strings { offsets, data, validity };
                    agree(
                        rows,
                        |isa, rows| check.first_bad_on(isa, rows),
                        |row| is_bad(row) || is_out_of_order(row),
                    );
                });
            });
        }
    }

    #[test]
    fn all_pairs_of_bytes_are_judged_at_the_ends_of_vectors() {
        for first in 0..=255 {
            for second in 0..=255 {
                let pair = [first, second];
                assert_eq!(is_utf8(&pair), well_formed(&pair));
                if first >= 0x80 {
                    for before in [31, 63] {
                        let mut text = vec![b'x'; before];
                        text.extend(pair);
                        text.resize(before + 70, b'y');
                        assert_eq!(is_utf8(&text), well_formed(&pair));
                    }
                }
            }
        }
    }

    /// The ends of each row of the table of well-formed sequences, and what lies just outside; and what was cut off.
    fn sequences() -> Vec<Vec<u8>> {
        let ends = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF];
        let firsts =
            [0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF];
        let mut all = Vec::new();
        for first in firsts {
            all.push(vec![first]);
            for second in ends {
                all.push(vec![first, second]);
                for third in ends {
                    all.push(vec![first, second, third]);
                    for fourth in [0x7F, 0x80, 0xBF, 0xC0] {
                        all.push(vec![first, second, third, fourth]);
                    }
                }
            }
        }
        all
    }

    #[test]
    fn the_ends_of_well_formed_sequences_are_met_everywhere_in_a_vector() {
        for sequence in sequences() {
            let good = well_formed(&sequence);
            assert_eq!(core::str::from_utf8(&sequence).is_ok(), good, "{sequence:?}");
            for before in [0, 29, 30, 31, 61, 62, 63, 64] {
                for after in [0, 1, 70] {
                    let mut text = vec![b'x'; before];
                    text.extend(&sequence);
                    text.resize(text.len() + after, b'y');
                    assert_eq!(is_utf8(&text), good, "{sequence:?} after {before} before {after}");
                }
            }
        }
    }

    #[test]
    fn rows_of_good_and_bad_text_are_told_apart() {
        let filler = "aé€😀".as_bytes();
        for sequence in sequences().iter().step_by(97) {
            let mut data = filler.repeat(10);
            let mut offsets: Vec<i64> = (0..=10).map(|i| i * 10).collect();
            data.extend(sequence);
            offsets.push(data.len() as i64);
            data.extend(filler.repeat(3));
            offsets.push(data.len() as i64);
            compare(&offsets, &data, None);
            // Both halves in rows of their own are bad, even where the whole is good.
            for cut in 1..sequence.len() {
                offsets.insert(11, 100 + cut as i64);
                compare(&offsets, &data, None);
                offsets.remove(11);
            }
        }
    }

    #[test]
    fn a_row_that_ends_inside_a_character_is_bad_wherever_it_is() {
        let text = "ab€cd".repeat(12);
        for cut in 0..=text.len() {
            let offsets: Vec<i64> = [0, cut, cut, text.len()].map(|at| at as i64).to_vec();
            compare(&offsets, text.as_bytes(), None);
            compare(&[0, cut as i64, text.len() as i64], text.as_bytes(), None);
        }
        // What lies after the last row and before the first belongs to nobody.
        let data = [b"\x80\xFF", text.as_bytes(), b"\x80\xBF\xC0"].concat();
        let offsets: Vec<i64> = (0..=12).map(|i| 2 + 7 * i).collect();
        compare(&offsets, &data, None);
    }

    fn random_text(random: &mut Random, rows: usize, ascii: bool) -> (Vec<i64>, Vec<u8>) {
        let mut text = String::new();
        let mut offsets = vec![0];
        for _ in 0..rows {
            for _ in 0..random.below(8) {
                let kinds = [0x20, 0xE9, 0x20AC, 0x1F600];
                let start = if ascii { 0x20 } else { kinds[random.below(4) as usize] };
                text.push(char::from_u32(start + random.below(60) as u32).unwrap_or('?'));
            }
            offsets.push(text.len() as i64);
        }
        (offsets, text.into_bytes())
    }

    #[test]
    fn rows_of_random_text_agree_with_one_at_a_time() {
        let mut random = Random::new(13);
        for rows in [0, 1, 2, 20, 65, BLOCK + 70] {
            for ascii in [true, false] {
                let (good, text) = random_text(&mut random, rows, ascii);
                let bits: Vec<u8> = (0..rows / 8 + 2).map(|_| random.next() as u8).collect();
                for change in 0..if rows > 100 { 4 } else { 8 } {
                    let (mut offsets, mut data) = (good.clone(), text.clone());
                    let at = random.below(rows as u64 + 1) as usize;
                    let byte = random.below(text.len().max(1) as u64) as usize;
                    match (change, data.get_mut(byte)) {
                        (0, _) => {}
                        (1, Some(byte)) => *byte = random.next() as u8,
                        (2, Some(byte)) => *byte |= 0x80,
                        (3, _) => offsets[at] += 1,
                        (4, _) => offsets[at] -= 1,
                        (5, _) => offsets[at] = i64::from(i32::MAX),
                        (6, _) => offsets[at] = i64::from(i32::MIN),
                        _ => data.truncate(data.len() / 2),
                    }
                    compare(&offsets, &data, None);
                    compare(&offsets, &data, Bitmap::new(&bits, 1, rows));
                }
            }
        }
    }

    #[test]
    fn a_bad_byte_is_found_at_each_place_and_address() {
        let text = "abcdefg€".repeat(10);
        let offsets: Vec<i64> = (0..=10).map(|i| i * 10).collect();
        let offsets = bytes_of(&offsets, Width::W32);
        for at in 0..text.len() {
            for byte in [0xFF, 0xC3] {
                let mut data = text.clone().into_bytes();
                data[at] = byte;
                everywhere(&data, |data| {
                    let offsets = Ints { bytes: &offsets, width: Width::W32, signed: true };
                    for isa in Isa::all() {
                        let found = Utf8 { offsets, data, validity: None }.first_bad_on(isa, 0..10);
                        assert_eq!(found, Some(at / 10));
                    }
                });
            }
        }
    }

    #[test]
    fn long_rows_and_long_starts_of_ascii_are_judged() {
        for at in [0, PIECE - 1, PIECE, 3 * PIECE - 1] {
            let mut data = vec![b'x'; 3 * PIECE];
            let offsets = [0, 5, 3 * PIECE as i64];
            compare(&offsets, &data, None);
            data[at] = 0xE2;
            compare(&offsets, &data, None);
        }
    }

    #[test]
    fn offsets_of_another_width_are_bad_or_read() {
        let offsets = Ints { bytes: &[0, 1, 2], width: Width::W8, signed: true };
        assert_eq!(Utf8 { offsets, data: b"a\xFF", validity: None }.first_bad_on(Isa::best(), 0..2), Some(1));
    }
}
