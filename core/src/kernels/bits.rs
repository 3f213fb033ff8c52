//! Bitmaps: least significant bit first.

/// Number of zero bits among the `length` bits from bit `offset` on, or `None` when `bytes` is too short.
pub fn count_zeroes(bytes: &[u8], offset: usize, length: usize) -> Option<usize> {
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
    let (words, odd) = middle.as_chunks::<8>();
    let inner: usize = words.iter().map(|w| u64::from_ne_bytes(*w).count_zeros() as usize).sum();
    let edges: u32 = odd.iter().map(|b| b.count_zeros()).sum();
    let ends = (head | before).count_zeros().wrapping_add((tail | after).count_zeros());
    inner.checked_add(edges.wrapping_add(ends) as usize)
}

#[cfg(test)]
mod tests {
    use super::count_zeroes;

    #[test]
    fn agrees_with_one_bit_at_a_time() {
        let bytes: Vec<u8> = (0..64u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1;
        for offset in 0..140 {
            for length in 0..(512 - offset) {
                let slow = (offset..offset + length).filter(|i| bit(*i) == 0).count();
                assert_eq!(count_zeroes(&bytes, offset, length), Some(slow), "{offset} {length}");
            }
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
}
