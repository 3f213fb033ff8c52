//! Indices into a dictionary.

use core::ops::Range;

use super::bits::{Bitmap, is_valid};
use super::ints::{Int, Ints, Width, by_type};
use super::isa::{Isa, for_each_isa};
use super::rows::{check_with_best_isa, first_bad};

/// Indices into a dictionary. A row is bad when it is valid and its index is negative or not below the limit.
#[derive(Clone, Copy, Debug)]
pub struct Indices<'a> {
    /// An integer of any type for each row.
    pub indices: Ints<'a>,
    /// The length of the dictionary.
    pub limit: u64,
    /// Which rows are valid; all of them without it.
    pub validity: Option<Bitmap<'a>>,
}

check_with_best_isa!(Indices);

impl Indices<'_> {
    fn first_bad_on(&self, isa: Isa, rows: Range<usize>) -> Option<usize> {
        let limit = self.limit_without_sign();
        let is_bad = |row| {
            !self.indices.get(row).is_some_and(|index| 0 <= index && index < i128::from(limit))
                && is_valid(self.validity, row)
        };
        first_bad(rows, self.indices.len(), |rows| self.hold(isa, rows, limit), is_bad)
    }

    /// The limit of indices whose sign is taken as a part of their number: no negative one is below it.
    fn limit_without_sign(&self) -> u64 {
        let negative: u64 = match (self.indices.signed, self.indices.width) {
            (true, Width::W8) => 1 << 7,
            (true, Width::W16) => 1 << 15,
            (true, Width::W32) => 1 << 31,
            (true, Width::W64) => 1 << 63,
            (false, _) => u64::MAX,
        };
        self.limit.min(negative)
    }

    /// Validity is not looked at: most often, what lies under a null is in range too.
    fn hold(&self, isa: Isa, rows: Range<usize>, limit: u64) -> bool {
        let Some(part) = self.indices.part(rows) else { return false };
        let greatest = by_type!(self.indices, T => greatest::<T>(isa, part));
        greatest < limit
    }
}

for_each_isa! {
    /// The largest one.
    fn greatest<T: Int>(bytes: &[u8]) -> u64 {
        T::greatest(bytes)
    }
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

    const WIDTHS: [Width; 4] = [Width::W8, Width::W16, Width::W32, Width::W64];

    fn compare(bytes: &[u8], width: Width, signed: bool, limit: u64, validity: Option<Bitmap<'_>>) {
        let indices = Ints { bytes, width, signed };
        let rows = indices.len();
        let is_bad = |row: usize| {
            let Some(index) = indices.get(row) else { return true };
            (index < 0 || index >= i128::from(limit)) && validity.is_none_or(|bits| bits.get(row))
        };
        let check = Indices { indices, limit, validity };
        agree(rows, |isa, rows| check.first_bad_on(isa, rows), is_bad);
    }

    #[test]
    fn every_byte_meets_every_limit() {
        let bytes: Vec<u8> = (0..=255).collect();
        for limit in (0..300).step_by(3).chain([127, 128, 255, 256, u64::MAX]) {
            for signed in [false, true] {
                compare(&bytes, Width::W8, signed, limit, None);
                let downwards: Vec<u8> = bytes.iter().rev().copied().collect();
                compare(&downwards, Width::W8, signed, limit, None);
            }
        }
    }

    #[test]
    fn indices_agree_with_one_row_at_a_time() {
        let mut random = Random::new(5);
        for width in WIDTHS {
            let size = width.bytes();
            for rows in [0, 1, 2, 33, 129, BLOCK + 70] {
                for change in [0, 2, 4, 8] {
                    let mut bytes = Vec::new();
                    for _ in 0..rows {
                        bytes.extend(&(random.below(100) as i64).to_le_bytes()[..size]);
                    }
                    for _ in 0..change / 2 {
                        if rows > 0 {
                            let at = random.below(rows as u64) as usize * size;
                            let odd =
                                [100_i64, -1, i64::MIN, i64::MAX, 127, 128, -128][random.below(7) as usize];
                            bytes[at..at + size].copy_from_slice(&odd.to_le_bytes()[..size]);
                        }
                    }
                    if cfg!(target_endian = "big") {
                        bytes.chunks_mut(size).for_each(<[u8]>::reverse);
                    }
                    let bits: Vec<u8> =
                        (0..rows / 8 + 2).map(|_| (random.next() | random.next()) as u8).collect();
                    for signed in [false, true] {
                        for limit in [100, 128, u64::MAX] {
                            guarded(&bytes, |bytes| {
                                compare(bytes, width, signed, limit, None);
                                compare(bytes, width, signed, limit, Bitmap::new(&bits, 5, rows));
                            });
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_bad_index_is_found_at_each_place_and_address() {
        for width in WIDTHS {
            let rows = 100;
            for at in 0..rows {
                let mut bytes = vec![0; rows * width.bytes()];
                bytes[at * width.bytes()..][..width.bytes()].fill(0x7F);
                everywhere(&bytes, |bytes| {
                    for signed in [false, true] {
                        let check =
                            Indices { indices: Ints { bytes, width, signed }, limit: 5, validity: None };
                        for isa in Isa::all() {
                            assert_eq!(check.first_bad_on(isa, 0..rows), Some(at));
                            assert_eq!(check.first_bad_on(isa, at + 1..rows), None);
                        }
                    }
                });
            }
        }
    }
}
