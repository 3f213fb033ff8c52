//! Bitmaps: least significant bit first.

use super::isa::{Isa, for_each_isa};

/// Bits from some bit on: row i is bit `offset + i` of the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bitmap<'a> {
    bytes: &'a [u8],
    offset: usize,
    length: usize,
}

impl<'a> Bitmap<'a> {
    /// `length` rows from bit `offset` on, or `None` when `bytes` is too short for them.
    pub fn new(bytes: &'a [u8], offset: usize, length: usize) -> Option<Self> {
        let end = offset.checked_add(length)?;
        (length == 0 || end.div_ceil(8) <= bytes.len()).then_some(Self { bytes, offset, length })
    }

    /// The bit of row `i`; false for a row that is not there.
    #[inline]
    pub fn get(&self, i: usize) -> bool {
        let at = self.offset.wrapping_add(i);
        i < self.length && self.bytes.get(at >> 3).is_some_and(|byte| byte >> (at & 7) & 1 == 1)
    }
}

/// Whether a row's value counts.
#[inline]
pub(super) fn is_valid(validity: Option<Bitmap<'_>>, row: usize) -> bool {
    validity.is_none_or(|bits| bits.get(row))
}

/// Number of zero bits among the `length` bits from bit `offset` on, or `None` when `bytes` is too short.
pub fn count_zeroes(bytes: &[u8], offset: usize, length: usize) -> Option<usize> {
    count_zeroes_on(Isa::best(), bytes, offset, length)
}

/// Copies `n` bits from bit `from_at` of `from` to bit `at` of `to`, whose bits there are 0; false when either is too short.
pub fn copy_bits(to: &mut [u8], at: usize, from: &[u8], from_at: usize, n: usize) -> bool {
    let ends = (at.checked_add(n), from_at.checked_add(n));
    let (Some(end), Some(from_end)) = ends else { return false };
    if end.div_ceil(8) > to.len() || from_end.div_ceil(8) > from.len() {
        return false;
    }
    let mut done = 0usize;
    while done < n {
        let (put, take) = (at.wrapping_add(done), from_at.wrapping_add(done));
        // The bits from `take` on, as many as one read gives, and as the byte at `put` has room for.
        let low = from.get(take >> 3).copied().unwrap_or(0);
        let high = from.get((take >> 3).wrapping_add(1)).copied().unwrap_or(0);
        let bits = u16::from_le_bytes([low, high]) >> (take & 7);
        let count = 8usize.wrapping_sub(put & 7).min(n.wrapping_sub(done));
        let kept = (bits & (1u16 << count).wrapping_sub(1)).to_le_bytes()[0];
        if let Some(byte) = to.get_mut(put >> 3) {
            *byte |= kept << (put & 7);
        }
        done = done.wrapping_add(count);
    }
    true
}

/// Sets `n` bits from bit `at` on, which are 0; false when there are not so many.
pub fn set_bits(to: &mut [u8], at: usize, n: usize) -> bool {
    let Some(end) = at.checked_add(n) else { return false };
    if end.div_ceil(8) > to.len() {
        return false;
    }
    let mut done = 0usize;
    while done < n {
        let put = at.wrapping_add(done);
        let count = 8usize.wrapping_sub(put & 7).min(n.wrapping_sub(done));
        if let Some(byte) = to.get_mut(put >> 3) {
            *byte |= ((1u16 << count).wrapping_sub(1).to_le_bytes()[0]) << (put & 7);
        }
        done = done.wrapping_add(count);
    }
    true
}

fn count_zeroes_on(isa: Isa, bytes: &[u8], offset: usize, length: usize) -> Option<usize> {
    let end = offset.checked_add(length)?;
    if length == 0 {
        return Some(0);
    }
    let (first, last) = (offset >> 3, end.checked_sub(1)? >> 3);
    let covered = bytes.get(first..=last)?;
    // Bits outside the range are made ones, so that only zeroes inside it count.
    let before = !(0xFFu8 << (offset & 7));
    let after = if end & 7 == 0 { 0 } else { 0xFFu8 << (end & 7) };
    let (head, rest) = covered.split_first()?;
    let Some((tail, middle)) = rest.split_last() else {
        return Some((head | before | after).count_zeros() as usize);
    };
    let ends = (head | before).count_zeros().wrapping_add((tail | after).count_zeros());
    zeroes(isa, middle).checked_add(ends as usize)
}

/// Number of zero bits in whole bytes.
fn zeroes(isa: Isa, bytes: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        let (blocks, rest) = bytes.as_chunks::<{ adder::BLOCK }>();
        // SAFETY: this machine has the features, else `has_avx2` would be false.
        let ones = unsafe { adder::ones(blocks) };
        let bits = blocks.len().wrapping_mul(8 * adder::BLOCK);
        return bits.wrapping_sub(ones).wrapping_add(word_zeroes(isa, rest));
    }
    word_zeroes(isa, bytes)
}

for_each_isa! {
    /// Number of zero bits in whole bytes, word by word.
    fn word_zeroes(bytes: &[u8]) -> usize {
        let (words, odd) = bytes.as_chunks::<8>();
        let inner: usize = words.iter().map(|w| u64::from_ne_bytes(*w).count_zeros() as usize).sum();
        let edges: u32 = odd.iter().map(|b| b.count_zeros()).sum();
        inner.wrapping_add(edges as usize)
    }
}

/// Counts a vector's bits in all its places at once: adders that carry turn sixteen vectors into one of which each bit
/// stands for sixteen, and only those are counted.
#[cfg(target_arch = "x86_64")]
mod adder {
    use core::arch::x86_64::*;

    /// The bytes of sixteen vectors.
    pub(super) const BLOCK: usize = 512;

    /// Number of one bits.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn ones(blocks: &[[u8; BLOCK]]) -> usize {
        let zero = _mm256_setzero_si256();
        let (mut ones, mut twos, mut fours, mut eights) = (zero, zero, zero, zero);
        let mut sixteens = 0_usize;
        for block in blocks {
            let mut eight = [zero; 2];
            for (half, eight) in block.as_chunks::<256>().0.iter().zip(&mut eight) {
                let mut four = [zero; 2];
                for (quarter, four) in half.as_chunks::<128>().0.iter().zip(&mut four) {
                    let mut two = [zero; 2];
                    for (pair, two) in quarter.as_chunks::<64>().0.iter().zip(&mut two) {
                        // SAFETY: 32 bytes are read of the first 32 of 64 and of the last 32, at any address.
                        let [a, b] = unsafe {
                            let pair: *const __m256i = pair.as_ptr().cast();
                            [_mm256_loadu_si256(pair), _mm256_loadu_si256(pair.add(1))]
                        };
                        (*two, ones) = add(ones, a, b);
                    }
                    let [a, b] = two;
                    (*four, twos) = add(twos, a, b);
                }
                let [a, b] = four;
                (*eight, fours) = add(fours, a, b);
            }
            let [a, b] = eight;
            let carry;
            (carry, eights) = add(eights, a, b);
            sixteens = sixteens.wrapping_add(count(carry));
        }
        let rest = [sixteens, count(eights), count(fours), count(twos), count(ones)];
        rest.into_iter().fold(0, |sum, bits| sum.wrapping_mul(2).wrapping_add(bits))
    }

    /// In each place, the carry and the sum of three bits.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn add(a: __m256i, b: __m256i, c: __m256i) -> (__m256i, __m256i) {
        let differ = _mm256_xor_si256(a, b);
        let carry = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(differ, c));
        (carry, _mm256_xor_si256(differ, c))
    }

    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    fn count(bits: __m256i) -> usize {
        let words = [
            _mm256_extract_epi64::<0>(bits),
            _mm256_extract_epi64::<1>(bits),
            _mm256_extract_epi64::<2>(bits),
            _mm256_extract_epi64::<3>(bits),
        ];
        words.into_iter().fold(0, |sum: usize, word| sum.wrapping_add(word.count_ones() as usize))
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
    use super::super::testing::{Random, everywhere};
    use super::*;

    #[test]
    fn bits_are_copied_from_any_place_to_any_place() {
        let from: Vec<u8> = (0..9_u32).map(|i| (i.wrapping_mul(151).wrapping_add(29) % 256) as u8).collect();
        let bit = |bytes: &[u8], i: usize| bytes[i >> 3] >> (i & 7) & 1;
        for from_at in 0..17 {
            for at in 0..17 {
                for n in 0..40 {
                    let mut to = [0u8; 8];
                    assert!(copy_bits(&mut to, at, &from, from_at, n));
                    let mut ones = [0u8; 8];
                    assert!(set_bits(&mut ones, at, n));
                    for i in 0..64 {
                        let inside = (at..at + n).contains(&i);
                        assert_eq!(bit(&to, i), if inside { bit(&from, from_at + i - at) } else { 0 });
                        assert_eq!(bit(&ones, i), u8::from(inside));
                    }
                }
            }
        }
        assert!(!copy_bits(&mut [0], 0, &[0, 0], 0, 9) && !copy_bits(&mut [0, 0], 0, &[0], 0, 9));
        assert!(!set_bits(&mut [0], 1, 8) && !set_bits(&mut [0], usize::MAX, 2));
    }

    #[test]
    fn agrees_with_one_bit_at_a_time() {
        let bytes: Vec<u8> = (0..64u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1;
        for isa in Isa::all() {
            for offset in (0..20).chain([63, 64, 70]) {
                for length in 0..(300 - offset) {
                    let slow = (offset..offset + length).filter(|i| bit(*i) == 0).count();
                    assert_eq!(count_zeroes_on(isa, &bytes, offset, length), Some(slow), "{offset} {length}");
                }
            }
        }
    }

    #[test]
    fn long_ones_agree_at_every_address() {
        let mut random = Random::new(1);
        for length in [0, 1, 7, 8, 31, 33, 65, 255, 511, 512, 513, 1023, 1024, 1500, 4099] {
            let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            everywhere(&bytes, |bytes| {
                for isa in Isa::all() {
                    let found = count_zeroes_on(isa, bytes, 0, bytes.len() * 8);
                    assert_eq!(found, Some(bytes.len() * 8 - ones as usize));
                }
            });
        }
        for isa in Isa::all() {
            assert_eq!(count_zeroes_on(isa, &[0xFF; 5000], 0, 40_000), Some(0));
            assert_eq!(count_zeroes_on(isa, &[0; 5000], 0, 40_000), Some(40_000));
        }
    }

    #[test]
    fn refuses_what_lies_outside() {
        assert_eq!(count_zeroes(&[0xFF], 0, 8), Some(0));
        assert_eq!(count_zeroes(&[0xFF], 0, 9), None);
        assert_eq!(count_zeroes(&[0xFF], 8, 1), None);
        assert_eq!(count_zeroes(&[], 0, 0), Some(0));
        assert_eq!(count_zeroes(&[0], usize::MAX, 2), None);
    }

    #[test]
    fn bitmaps_know_their_rows() {
        let bytes = [0b1010_0110, 0b0000_0011];
        let bits = Bitmap::new(&bytes, 5, 5).unwrap();
        let rows: Vec<bool> = (0..7).map(|i| bits.get(i)).collect();
        assert_eq!(rows, [true, false, true, true, true, false, false]);
        assert!(!bits.get(usize::MAX));
        assert!(Bitmap::new(&bytes, 5, 11).is_some() && Bitmap::new(&bytes, 5, 12).is_none());
        assert!(Bitmap::new(&bytes, usize::MAX, 1).is_none() && Bitmap::new(&[], 0, 0).is_some());
    }
}
