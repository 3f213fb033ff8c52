//! Integers in native order, at any address.

use core::ops::{BitOr, Range};

/// The 32-bit integer at byte `at`, or `None` when `bytes` ends before it does.
pub fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|b| i32::from_ne_bytes(*b))
}

/// The 64-bit integer at byte `at`, or `None` when `bytes` ends before it does.
pub fn read_i64(bytes: &[u8], at: usize) -> Option<i64> {
    bytes.get(at..)?.first_chunk().map(|b| i64::from_ne_bytes(*b))
}

/// The offset at the start of `bytes`, 4 or 8 bytes wide.
pub fn read_offset(bytes: &[u8], width: usize) -> Option<i64> {
    if width == size_of::<i32>() { read_i32(bytes, 0).map(i64::from) } else { read_i64(bytes, 0) }
}

/// Writes an offset of 4 or 8 bytes, which has to fit.
pub fn write_offset(into: &mut [u8], width: usize, offset: i64) {
    let narrow = i32::try_from(offset).unwrap_or(-1).to_ne_bytes();
    let wide = offset.to_ne_bytes();
    let bytes = if width == size_of::<i32>() { &narrow[..] } else { &wide[..] };
    if let Some(into) = into.get_mut(..bytes.len()) {
        into.copy_from_slice(bytes);
    }
}

/// How wide an integer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 8 bits.
    W8,
    /// 16 bits.
    W16,
    /// 32 bits.
    W32,
    /// 64 bits.
    W64,
}

impl Width {
    /// The bytes of one integer.
    pub const fn bytes(self) -> usize {
        match self {
            Self::W8 => 1,
            Self::W16 => 2,
            Self::W32 => 4,
            Self::W64 => 8,
        }
    }
}

/// Integers in native order at any address: row i is element i of `bytes`. Bytes after the last whole element are not
/// looked at.
#[derive(Clone, Copy, Debug)]
pub struct Ints<'a> {
    /// From the first element on.
    pub bytes: &'a [u8],
    /// Of each element.
    pub width: Width,
    /// Whether they are in two's complement.
    pub signed: bool,
}

impl<'a> Ints<'a> {
    /// How many there are.
    pub const fn len(&self) -> usize {
        match self.width {
            Width::W8 => self.bytes.len(),
            Width::W16 => self.bytes.len() >> 1,
            Width::W32 => self.bytes.len() >> 2,
            Width::W64 => self.bytes.len() >> 3,
        }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `i`, or `None` when there is no such one.
    pub fn get(&self, i: usize) -> Option<i128> {
        by_type!(self, T => element::<T>(self.bytes, i).map(i128::from))
    }

    /// The bytes of some elements, or `None` when not all of them are there.
    pub(super) fn part(&self, rows: Range<usize>) -> Option<&'a [u8]> {
        let width = self.width.bytes();
        self.bytes.get(rows.start.checked_mul(width)?..rows.end.checked_mul(width)?)
    }
}

/// Element `i` of `bytes`.
fn element<T: Int>(bytes: &[u8], i: usize) -> Option<T> {
    T::each(bytes.get(i.checked_mul(size_of::<T>())?..)?).next()
}

/// Does the same with every type that integers may have, as `T`.
macro_rules! by_type {
    ($ints:expr, $T:ident => $body:expr) => {
        match ($ints.width, $ints.signed) {
            ($crate::kernels::Width::W8, true) => by_type!(as i8, $T, $body),
            ($crate::kernels::Width::W16, true) => by_type!(as i16, $T, $body),
            ($crate::kernels::Width::W32, true) => by_type!(as i32, $T, $body),
            ($crate::kernels::Width::W64, true) => by_type!(as i64, $T, $body),
            ($crate::kernels::Width::W8, false) => by_type!(as u8, $T, $body),
            ($crate::kernels::Width::W16, false) => by_type!(as u16, $T, $body),
            ($crate::kernels::Width::W32, false) => by_type!(as u32, $T, $body),
            ($crate::kernels::Width::W64, false) => by_type!(as u64, $T, $body),
        }
    };
    (as $type:ty, $T:ident, $body:expr) => {{
        type $T = $type;
        $body
    }};
}
pub(super) use by_type;

/// Loops over integers of one type, in bytes that hold whole elements. They look at each element, because a loop that
/// may end early is not vectorised.
pub(super) trait Int: Copy + Ord + Into<i128> {
    /// The elements.
    fn each(bytes: &[u8]) -> impl Iterator<Item = Self> + Clone;

    /// As an index; negative ones are large.
    fn index(self) -> u64;

    /// Whether none is smaller than the one before it.
    fn ascend(bytes: &[u8]) -> bool;

    /// Whether each is larger than the one before it.
    fn climb(bytes: &[u8]) -> bool;

    /// The largest one, of the same bits without sign.
    fn greatest(bytes: &[u8]) -> u64;

    /// Whether all are at least `least` and at most `most`.
    fn within(bytes: &[u8], least: i64, most: i64) -> bool;

    /// Whether no offset and no size has its highest bit set, and the largest sum of both, which does not overflow then.
    fn largest_end(offsets: &[u8], sizes: &[u8]) -> (bool, u64);
}

/// Four parts of equal length, and what is left over. Memory gives more when it is read at several places at once,
/// because what the processor fetches ahead ends with the page.
#[inline(always)]
fn quarters(bytes: &[u8], size: usize) -> [&[u8]; 5] {
    let quarter = bytes.len().checked_div(size.wrapping_mul(4)).unwrap_or(0).wrapping_mul(size);
    let (a, rest) = bytes.split_at_checked(quarter).unwrap_or_default();
    let (b, rest) = rest.split_at_checked(quarter).unwrap_or_default();
    let (c, rest) = rest.split_at_checked(quarter).unwrap_or_default();
    let (d, rest) = rest.split_at_checked(quarter).unwrap_or_default();
    [a, b, c, d, rest]
}

/// Whether no element and the one after it make a flag.
#[inline(always)]
fn in_order<T: Int, F: Copy + BitOr<Output = F> + PartialEq + Default>(
    bytes: &[u8],
    flag: impl Fn(T, T) -> F,
) -> bool {
    let next = bytes.get(size_of::<T>()..).unwrap_or_default();
    let [a, b, c, d, rest] = quarters(bytes.get(..next.len()).unwrap_or_default(), size_of::<T>());
    let [e, f, g, h, rest_next] = quarters(next, size_of::<T>());
    let mut bad = [F::default(); 4];
    let [p, q, r, s] = &mut bad;
    let before = T::each(a).zip(T::each(b)).zip(T::each(c)).zip(T::each(d));
    let after = T::each(e).zip(T::each(f)).zip(T::each(g)).zip(T::each(h));
    for ((((a, b), c), d), (((e, f), g), h)) in before.zip(after) {
        *p = *p | flag(a, e);
        *q = *q | flag(b, f);
        *r = *r | flag(c, g);
        *s = *s | flag(d, h);
    }
    let rest = T::each(rest).zip(T::each(rest_next)).fold(F::default(), |bad, (a, b)| bad | flag(a, b));
    bad.into_iter().fold(rest, |all, bad| all | bad) == F::default()
}

macro_rules! int {
    ($type:ty, $unsigned:ty) => {
        impl Int for $type {
            #[inline(always)]
            fn each(bytes: &[u8]) -> impl Iterator<Item = Self> + Clone {
                bytes.as_chunks::<{ size_of::<Self>() }>().0.iter().map(|b| Self::from_ne_bytes(*b))
            }

            #[inline(always)]
            fn index(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn ascend(bytes: &[u8]) -> bool {
                // A flag of all the element's bits is what a vector's comparison gives.
                in_order::<Self, $unsigned>(bytes, |a, b| <$unsigned>::from(b < a).wrapping_neg())
            }

            #[inline(always)]
            fn climb(bytes: &[u8]) -> bool {
                in_order::<Self, $unsigned>(bytes, |a, b| <$unsigned>::from(b <= a).wrapping_neg())
            }

            #[inline(always)]
            fn greatest(bytes: &[u8]) -> u64 {
                let [a, b, c, d, rest] = quarters(bytes, size_of::<Self>());
                let mut most: [$unsigned; 4] = [0; 4];
                let [e, f, g, h] = &mut most;
                for (((a, b), c), d) in Self::each(a).zip(Self::each(b)).zip(Self::each(c)).zip(Self::each(d))
                {
                    *e = (*e).max(a as $unsigned);
                    *f = (*f).max(b as $unsigned);
                    *g = (*g).max(c as $unsigned);
                    *h = (*h).max(d as $unsigned);
                }
                let rest = Self::each(rest).fold(0, |most: $unsigned, v| most.max(v as $unsigned));
                u64::from(most.into_iter().fold(rest, <$unsigned>::max))
            }

            #[inline(always)]
            fn within(bytes: &[u8], least: i64, most: i64) -> bool {
                let least = match Self::try_from(least) {
                    Ok(least) => least,
                    Err(_) if least < 0 => Self::MIN,
                    Err(_) => return false,
                };
                let most = match Self::try_from(most) {
                    Ok(most) => most,
                    Err(_) if most < 0 => return false,
                    Err(_) => Self::MAX,
                };
                let outside = |v| <$unsigned>::from(v < least) | <$unsigned>::from(v > most);
                Self::each(bytes).fold(0, |bad: $unsigned, v| bad | outside(v)) == 0
            }

            #[inline(always)]
            fn largest_end(offsets: &[u8], sizes: &[u8]) -> (bool, u64) {
                let mut signs: $unsigned = 0;
                let mut most: $unsigned = 0;
                for (offset, size) in Self::each(offsets).zip(Self::each(sizes)) {
                    let (offset, size) = (offset as $unsigned, size as $unsigned);
                    signs |= offset | size;
                    most = most.max(offset.wrapping_add(size));
                }
                (signs.leading_zeros() > 0, u64::from(most))
            }
        }
    };
}
int!(i8, u8);
int!(i16, u16);
int!(i32, u32);
int!(i64, u64);
int!(u8, u8);
int!(u16, u16);
int!(u32, u32);
int!(u64, u64);

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    reason = "tests may fail hard"
)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_with_their_type() {
        let bytes: Vec<u8> = (0..16).map(|i| 0x80 + i * 3).collect();
        for shift in 0..8 {
            let bytes = &bytes[shift..];
            for (width, signed) in [
                (Width::W8, true),
                (Width::W16, true),
                (Width::W32, true),
                (Width::W64, true),
                (Width::W8, false),
                (Width::W16, false),
                (Width::W32, false),
                (Width::W64, false),
            ] {
                let ints = Ints { bytes, width, signed };
                let size = width.bytes();
                assert_eq!(ints.len(), bytes.len() / size);
                for i in 0..ints.len() {
                    let mut raw = bytes[i * size..][..size].to_vec();
                    if cfg!(target_endian = "big") {
                        raw.reverse();
                    }
                    let mut value = raw.iter().rev().fold(0i128, |value, b| value << 8 | i128::from(*b));
                    if signed && value >> (8 * size - 1) == 1 {
                        value -= 1 << (8 * size);
                    }
                    assert_eq!(ints.get(i), Some(value));
                }
                assert_eq!(ints.get(ints.len()), None);
                assert_eq!(ints.get(usize::MAX), None);
                assert!(ints.part(0..ints.len()).is_some() && ints.part(0..ints.len() + 1).is_none());
                assert!(ints.part(0..usize::MAX).is_none());
            }
        }
    }

    #[test]
    fn bounds_outside_the_type_are_met() {
        let bytes = 0x80u8.to_ne_bytes();
        assert!(i8::within(&bytes, -128, i64::MAX) && !i8::within(&bytes, -127, i64::MAX));
        assert!(u8::within(&bytes, i64::MIN, 128) && !u8::within(&bytes, i64::MIN, 127));
        assert!(!i8::within(&bytes, 128, 200) && !i8::within(&bytes, -200, -129));
        assert!(!u8::within(&bytes, 256, 300) && !u8::within(&bytes, -2, -1));
    }
}
