//! Values that a type does not allow although their bits do: times, dates, decimals.

use core::ops::Range as Rows;

use super::bits::{Bitmap, is_valid};
use super::ints::{Int, Ints, Width, by_type};
use super::isa::{Isa, for_each_isa};
use super::rows::{check_with_best_isa, first_bad};

/// Values between two bounds. A row is bad when it is valid and its value is outside.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// An integer of any type for each row.
    pub values: Ints<'a>,
    /// The least that is allowed.
    pub min: i64,
    /// The most that is allowed.
    pub max: i64,
    /// Which rows are valid; all of them without it.
    pub validity: Option<Bitmap<'a>>,
}

check_with_best_isa!(Range);

impl Range<'_> {
    fn first_bad_on(&self, isa: Isa, rows: Rows<usize>) -> Option<usize> {
        let allowed = i128::from(self.min)..=i128::from(self.max);
        let is_bad = |row| {
            !self.values.get(row).is_some_and(|value| allowed.contains(&value))
                && is_valid(self.validity, row)
        };
        first_bad(rows, self.values.len(), |rows| self.hold(isa, rows), is_bad)
    }

    fn hold(&self, isa: Isa, rows: Rows<usize>) -> bool {
        let Some(part) = self.values.part(rows) else { return false };
        by_type!(self.values, T => within::<T>(isa, part, self.min, self.max))
    }
}

for_each_isa! {
    /// Whether all are between the bounds.
    fn within<T: Int>(bytes: &[u8], least: i64, most: i64) -> bool {
        T::within(bytes, least, most)
    }
}

/// Multiples of a number. A row is bad when it is valid and its value is none.
#[derive(Clone, Copy, Debug)]
pub struct Multiple<'a> {
    /// An integer for each row.
    pub values: Ints<'a>,
    /// What they are multiples of; the only multiple of zero is zero.
    pub of: i64,
    /// Which rows are valid; all of them without it.
    pub validity: Option<Bitmap<'a>>,
}

check_with_best_isa!(Multiple);

impl Multiple<'_> {
    fn first_bad_on(&self, isa: Isa, rows: Rows<usize>) -> Option<usize> {
        let of = i128::from(self.of);
        let is_multiple = |value: i128| value.checked_rem(of).unwrap_or(value) == 0;
        let is_bad = |row| !self.values.get(row).is_some_and(is_multiple) && is_valid(self.validity, row);
        let divisor = Divisor::new(self.of.unsigned_abs());
        first_bad(rows, self.values.len(), |rows| self.hold(isa, rows, divisor), is_bad)
    }

    fn hold(&self, isa: Isa, rows: Rows<usize>, divisor: Option<Divisor>) -> bool {
        let wide = matches!((self.values.width, self.values.signed), (Width::W64, true));
        match (self.values.part(rows), divisor) {
            (Some(part), Some(divisor)) if wide => all_divide(isa, part, divisor),
            _ => false,
        }
    }
}

/// How to tell multiples of a number d = odd * 2^twos without dividing: the product with the inverse of `odd` modulo
/// 2^64 is the quotient for a multiple of `odd`. Rotated by `twos`, so that the bits that must be zero are on top, it is
/// at most (2^64 - 1) / d for the multiples of d and for no other number.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    inverse: u64,
    twos: u32,
    most: u64,
}

impl Divisor {
    fn new(number: u64) -> Option<Self> {
        let most = u64::MAX.checked_div(number)?;
        let twos = number.trailing_zeros();
        let odd = number.checked_shr(twos)?;
        // Right in the lowest three bits to begin with; each step doubles how many are right.
        let step = |x: u64| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        let inverse = step(step(step(step(step(odd)))));
        Some(Self { inverse, twos, most })
    }

    #[inline(always)]
    fn divides(self, value: i64) -> bool {
        value.unsigned_abs().wrapping_mul(self.inverse).rotate_right(self.twos) <= self.most
    }
}

for_each_isa! {
    /// Whether all are multiples.
    fn all_divide(bytes: &[u8], divisor: Divisor) -> bool {
        <i64 as Int>::each(bytes).fold(true, |good, value| good & divisor.divides(value))
    }
}

/// Decimals of a precision. A row is bad when it is valid and its value has more digits.
#[derive(Clone, Copy, Debug)]
pub struct Decimals<'a> {
    /// A number in two's complement and native order for each row.
    pub values: &'a [u8],
    /// How many bytes each of them has: 4, 8, 16 or 32.
    pub bytes: usize,
    /// The most digits.
    pub precision: u8,
    /// Which rows are valid; all of them without it.
    pub validity: Option<Bitmap<'a>>,
}

check_with_best_isa!(Decimals);

impl Decimals<'_> {
    fn first_bad_on(&self, isa: Isa, rows: Rows<usize>) -> Option<usize> {
        // Numbers of another size are not known, so no row of them is good.
        let present = match self.bytes {
            4 | 8 | 16 | 32 => self.values.len().checked_div(self.bytes).unwrap_or(0),
            _ => 0,
        };
        let most = Wide::most(self.precision);
        let fits = |rows: Rows<usize>| {
            let bounds = rows.start.checked_mul(self.bytes).zip(rows.end.checked_mul(self.bytes));
            let part = bounds.and_then(|(start, end)| self.values.get(start..end));
            part.is_some_and(|part| fit(isa, part, self.bytes, most))
        };
        let is_bad = |row: usize| !fits(row..row.saturating_add(1)) && is_valid(self.validity, row);
        first_bad(rows, present, fits, is_bad)
    }
}

/// A number of 256 bits in two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    /// The largest number of so many digits, or of 255 bits where that is smaller.
    fn most(digits: u8) -> Self {
        let mut power = Self { high: 0, low: 1 };
        for _ in 0..digits.min(76) {
            power = power.times_ten();
        }
        match digits {
            0..=76 => power.plus(Self { high: u128::MAX, low: u128::MAX }),
            _ => Self { high: u128::MAX >> 1, low: u128::MAX },
        }
    }

    fn times_ten(self) -> Self {
        let double = self.plus(self);
        let eight = double.plus(double);
        eight.plus(eight).plus(double)
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        let (low, carry) = self.low.overflowing_add(other.low);
        Self { high: self.high.wrapping_add(other.high).wrapping_add(u128::from(carry)), low }
    }

    #[inline(always)]
    fn read(bytes: &[u8; 32]) -> Self {
        let (a, b) = bytes.split_at(16);
        let read = |half: &[u8]| half.first_chunk().map_or(0, |half| u128::from_ne_bytes(*half));
        match cfg!(target_endian = "big") {
            true => Self { high: read(a), low: read(b) },
            false => Self { high: read(b), low: read(a) },
        }
    }
}

for_each_isa! {
    /// Whether no number is larger than `most`, or smaller than its negative.
    fn fit(bytes: &[u8], width: usize, most: Wide) -> bool {
        // A limit that a type cannot reach is none.
        let capped = |cap: u128| if most.high == 0 { most.low.min(cap) } else { cap };
        match width {
            4 | 8 => {
                let cap = if width == 4 { i32::MAX.unsigned_abs().into() } else { i64::MAX.unsigned_abs() };
                let limit = capped(u128::from(cap)) as i64;
                // The smallest number has no positive counterpart and as many digits as the largest.
                let least = if u128::from(cap) == limit as u128 { i64::MIN } else { limit.wrapping_neg() };
                match width {
                    4 => <i32 as Int>::within(bytes, least, limit),
                    _ => <i64 as Int>::within(bytes, least, limit),
                }
            }
            16 => {
                let limit = capped(i128::MAX.unsigned_abs());
                let unlimited = limit == i128::MAX.unsigned_abs();
                // From -limit to limit, moved to 0 to twice the limit.
                let range = limit.wrapping_mul(2);
                let numbers = bytes.as_chunks::<16>().0.iter().map(|b| u128::from_ne_bytes(*b));
                unlimited || numbers.fold(true, |good, n| good & (n.wrapping_add(limit) <= range))
            }
            32 => {
                let unlimited = most.high == u128::MAX >> 1;
                let range = most.plus(most);
                let fits = |number: Wide| {
                    let moved = number.plus(most);
                    (moved.high < range.high) | ((moved.high == range.high) & (moved.low <= range.low))
                };
                let numbers = bytes.as_chunks::<32>().0.iter().map(Wide::read);
                unlimited || numbers.fold(true, |good, n| good & fits(n))
            }
            _ => false,
        }
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

    const LENGTHS: [usize; 9] = [0, 1, 5, 31, 64, 130, BLOCK - 1, BLOCK, BLOCK + 67];

    /// Every other row or so.
    fn some_bits(random: &mut Random, rows: usize) -> Vec<u8> {
        (0..rows / 8 + 2).map(|_| random.next() as u8).collect()
    }

    #[test]
    fn ranges_agree_with_one_row_at_a_time() {
        let mut random = Random::new(6);
        let bounds =
            [(0, 86_400), (-5, 5), (i64::MIN, 0), (0, i64::MAX), (5, 4), (-200, -100), (300, 1 << 40)];
        for (width, signed) in
            [(Width::W8, true), (Width::W32, true), (Width::W64, true), (Width::W32, false)]
        {
            for rows in LENGTHS {
                for (min, max) in bounds {
                    let size = width.bytes();
                    let mut bytes = Vec::new();
                    for _ in 0..rows {
                        let near = [min, max, min + 1, max.wrapping_sub(1), 0][random.below(5) as usize];
                        let value =
                            if random.below(200) == 0 { random.next() as i64 - (1 << 47) } else { near };
                        match cfg!(target_endian = "big") {
                            true => bytes.extend(&value.to_be_bytes()[8 - size..]),
                            false => bytes.extend(&value.to_le_bytes()[..size]),
                        }
                    }
                    let bits = some_bits(&mut random, rows);
                    guarded(&bytes, |bytes| {
                        for validity in [None, Bitmap::new(&bits, 3, rows)] {
                            let values = Ints { bytes, width, signed };
                            let check = Range { values, min, max, validity };
                            let is_bad = |row| {
                                let Some(value) = values.get(row) else { return true };
                                (value < i128::from(min) || value > i128::from(max))
                                    && validity.is_none_or(|bits| bits.get(row))
                            };
                            agree(rows, |isa, rows| check.first_bad_on(isa, rows), is_bad);
                        }
                    });
                }
            }
        }
    }

    #[test]
    fn multiples_are_told_from_the_rest() {
        let mut random = Random::new(7);
        let divisors = [86_400_000, 1, 2, 3, 7, 1 << 40, i64::MAX, i64::MIN, -6, -1, 0, 10, 12];
        for of in divisors {
            let divisor = Divisor::new(of.unsigned_abs());
            assert_eq!(divisor.is_none(), of == 0);
            let mut values = vec![0, 1, -1, i64::MAX, i64::MIN, i64::MAX - 1, of, of.wrapping_neg()];
            for _ in 0..2000 {
                let factor = random.next() as i64 >> random.below(48);
                let product = of.wrapping_mul(factor);
                values.extend([product, product.wrapping_add(1), product.wrapping_sub(1), factor]);
                values.push((random.next() << 20) as i64);
            }
            for value in values {
                let is = if of == 0 { value == 0 } else { i128::from(value) % i128::from(of) == 0 };
                assert!(divisor.is_none_or(|divisor| divisor.divides(value) == is), "{value} of {of}");
                let bytes = value.to_ne_bytes();
                let values = Ints { bytes: &bytes, width: Width::W64, signed: true };
                for isa in Isa::all() {
                    let found = Multiple { values, of, validity: None }.first_bad_on(isa, 0..1);
                    assert_eq!(found.is_none(), is, "{value} of {of}");
                }
            }
        }
    }

    #[test]
    fn multiples_agree_with_one_row_at_a_time() {
        let mut random = Random::new(8);
        for rows in LENGTHS {
            for odd in [1, 50, 5000] {
                let value = |random: &mut Random| {
                    let days = random.below(40_000) as i64 - 20_000;
                    days * 86_400_000 + i64::from(random.below(odd) == 1)
                };
                let bytes: Vec<u8> = (0..rows).flat_map(|_| value(&mut random).to_ne_bytes()).collect();
                let bits = some_bits(&mut random, rows);
                everywhere(&bytes, |bytes| {
                    for validity in [None, Bitmap::new(&bits, 0, rows)] {
                        let values = Ints { bytes, width: Width::W64, signed: true };
                        let is_bad = |row| {
                            let Some(value) = values.get(row) else { return true };
                            value % 86_400_000 != 0 && validity.is_none_or(|bits| bits.get(row))
                        };
                        let check = Multiple { values, of: 86_400_000, validity };
                        agree(rows, |isa, rows| check.first_bad_on(isa, rows), is_bad);
                    }
                });
            }
        }
        let bytes: Vec<u8> = [4_i32, 6, 7].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let values = Ints { bytes: &bytes, width: Width::W32, signed: true };
        assert_eq!(Multiple { values, of: 2, validity: None }.first_bad_on(Isa::best(), 0..3), Some(2));
    }

    /// A number's decimal digits, from its bytes, least significant first, by division.
    fn digits(bytes: &[u8]) -> usize {
        let mut rest = bytes.to_vec();
        if rest.last().is_some_and(|top| *top >= 0x80) {
            let mut carry = 1_u16;
            for byte in &mut rest {
                let sum = u16::from(!*byte) + carry;
                (*byte, carry) = (sum as u8, sum >> 8);
            }
        }
        let mut count = 0;
        while rest.iter().any(|byte| *byte != 0) {
            let mut remainder = 0_u16;
            for byte in rest.iter_mut().rev() {
                let value = remainder << 8 | u16::from(*byte);
                (*byte, remainder) = ((value / 10) as u8, value % 10);
            }
            count += 1;
        }
        count
    }

    /// The bytes of 10^power, least significant first.
    fn power(power: usize, width: usize) -> Vec<u8> {
        let mut bytes = vec![0; width];
        bytes[0] = 1;
        for _ in 0..power {
            let mut carry = 0_u16;
            for byte in &mut bytes {
                let product = u16::from(*byte) * 10 + carry;
                (*byte, carry) = (product as u8, product >> 8);
            }
        }
        bytes
    }

    fn plus_one(bytes: &mut [u8]) {
        for byte in bytes {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return;
            }
        }
    }

    fn negative(bytes: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        plus_one(&mut bytes);
        bytes
    }

    /// Powers of ten and their neighbours, of both signs, and the ends of the type.
    fn strange(width: usize) -> Vec<Vec<u8>> {
        let mut all = vec![vec![0; width], vec![0xFF; width]];
        let mut least = vec![0; width];
        least[width - 1] = 0x80;
        all.push(least.iter().map(|byte| !byte).collect());
        all.push(least);
        for digits in 0..width * 12 / 5 + 1 {
            let ten = power(digits, width);
            let below = negative(&ten).iter().map(|byte| !byte).collect::<Vec<u8>>();
            let mut above = ten.clone();
            plus_one(&mut above);
            for number in [ten, below, above] {
                all.push(negative(&number));
                all.push(number);
            }
        }
        all
    }

    #[test]
    fn decimals_have_no_more_digits_than_they_may() {
        for width in [4, 8, 16, 32] {
            for mut number in strange(width) {
                let count = digits(&number);
                if cfg!(target_endian = "big") {
                    number.reverse();
                }
                for precision in 1..=76 {
                    let values = number.as_slice();
                    let check = Decimals { values, bytes: width, precision, validity: None };
                    for isa in Isa::all() {
                        let found = check.first_bad_on(isa, 0..1);
                        assert_eq!(
                            found.is_none(),
                            count <= usize::from(precision),
                            "{number:?} {precision}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn decimals_agree_with_one_row_at_a_time() {
        let mut random = Random::new(9);
        for width in [4, 8, 16, 32] {
            let odd = strange(width);
            for rows in [0, 1, 5, 64, 130, BLOCK + 67] {
                for rare in [3, 500, 100_000] {
                    let mut bytes = Vec::new();
                    for _ in 0..rows {
                        let mut number = vec![0; width];
                        number[..2].copy_from_slice(&(random.below(1000) as u16).to_le_bytes());
                        if random.below(2) == 0 {
                            number = negative(&number);
                        }
                        if random.below(rare) == 0 {
                            number = odd[random.below(odd.len() as u64) as usize].clone();
                        }
                        if cfg!(target_endian = "big") {
                            number.reverse();
                        }
                        bytes.extend(number);
                    }
                    let bits = some_bits(&mut random, rows);
                    guarded(&bytes, |values| {
                        for validity in [None, Bitmap::new(&bits, 1, rows)] {
                            let is_bad = |row: usize| {
                                let Some(number) = values.chunks_exact(width).nth(row) else { return true };
                                let mut number = number.to_vec();
                                if cfg!(target_endian = "big") {
                                    number.reverse();
                                }
                                digits(&number) > 3 && validity.is_none_or(|bits| bits.get(row))
                            };
                            let check = Decimals { values, bytes: width, precision: 3, validity };
                            agree(rows, |isa, rows| check.first_bad_on(isa, rows), is_bad);
                        }
                    });
                }
            }
        }
    }

    #[test]
    fn decimals_of_other_sizes_are_bad_and_of_other_precisions_judged() {
        for bytes in [0, 1, 3, 12, 64] {
            let check = Decimals { values: &[0; 64], bytes, precision: 5, validity: None };
            assert_eq!(check.first_bad_on(Isa::best(), 0..1), Some(0));
        }
        for (precision, last, good) in [(0, 0, true), (0, 1, false), (77, 0x7F, true), (255, 0x7F, true)] {
            let values = [last; 32];
            let check = Decimals { values: &values, bytes: 32, precision, validity: None };
            assert_eq!(check.first_bad_on(Isa::best(), 0..1).is_none(), good);
        }
    }
}
