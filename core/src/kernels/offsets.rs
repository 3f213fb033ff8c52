//! Offsets, list views and run ends.

use core::ops::Range;

use super::ints::{Int, Ints, Width};
use super::isa::{Isa, for_each_isa};
use super::rows::{check_with_best_isa, first_bad};

/// Offsets of n rows: row i reaches from offset i to offset i+1.
///
/// A row is bad when its start is negative, its end lies before its start, or its end lies beyond the limit.
#[derive(Clone, Copy, Debug)]
pub struct Ascending<'a> {
    /// n+1 signed integers of 32 or 64 bits.
    pub offsets: Ints<'a>,
    /// The length of what they point into.
    pub limit: i64,
}

check_with_best_isa!(Ascending);

impl Ascending<'_> {
    fn first_bad_on(&self, isa: Isa, rows: Range<usize>) -> Option<usize> {
        let present = self.offsets.len().saturating_sub(1);
        first_bad(rows, present, |rows| self.hold(isa, rows).is_some(), |row| self.is_bad(row))
    }

    fn is_bad(&self, row: usize) -> bool {
        let ends = self.offsets.get(row).zip(self.offsets.get(row.wrapping_add(1)));
        !ends.is_some_and(|(start, end)| 0 <= start && start <= end && end <= i128::from(self.limit))
    }

    /// Where the rows begin and end, when all of them are known to be good.
    pub(super) fn hold(&self, isa: Isa, rows: Range<usize>) -> Option<Range<usize>> {
        let part = self.offsets.part(rows.start..rows.end.checked_add(1)?)?;
        let (first, last) = match self.offsets.width {
            Width::W32 => ends::<i32>(isa, part)?,
            Width::W64 => ends::<i64>(isa, part)?,
            Width::W8 | Width::W16 => return None,
        };
        let (start, end) = (usize::try_from(first).ok()?, usize::try_from(last).ok()?);
        (last <= i128::from(self.limit)).then_some(start..end)
    }
}

for_each_isa! {
    /// The first and the last one, when none is smaller than the one before it.
    fn ends<T: Int>(bytes: &[u8]) -> Option<(i128, i128)> {
        let mut each = T::each(bytes);
        let first = each.next()?;
        let last = T::each(bytes.get(bytes.len().checked_sub(size_of::<T>())?..)?).next()?;
        T::ascend(bytes).then_some((first.into(), last.into()))
    }
}

/// Offsets and sizes of list views, in any order.
///
/// A row is bad when either is negative, or when both together lie beyond the limit.
#[derive(Clone, Copy, Debug)]
pub struct ListViews<'a> {
    /// A signed integer of 32 or 64 bits for each row.
    pub offsets: Ints<'a>,
    /// The same, as wide as the offsets.
    pub sizes: Ints<'a>,
    /// The length of the child.
    pub limit: i64,
}

check_with_best_isa!(ListViews);

impl ListViews<'_> {
    fn first_bad_on(&self, isa: Isa, rows: Range<usize>) -> Option<usize> {
        let present = self.offsets.len().min(self.sizes.len());
        first_bad(rows, present, |rows| self.hold(isa, rows), |row| self.is_bad(row))
    }

    fn is_bad(&self, row: usize) -> bool {
        let both = self.offsets.get(row).zip(self.sizes.get(row));
        !both.is_some_and(|(offset, size)| {
            0 <= offset && 0 <= size && offset.saturating_add(size) <= i128::from(self.limit)
        })
    }

    fn hold(&self, isa: Isa, rows: Range<usize>) -> bool {
        let both = self.offsets.part(rows.clone()).zip(self.sizes.part(rows));
        let Some((offsets, sizes)) = both else { return false };
        let (positive, end) = match (self.offsets.width, self.sizes.width) {
            (Width::W32, Width::W32) => largest_end::<i32>(isa, offsets, sizes),
            (Width::W64, Width::W64) => largest_end::<i64>(isa, offsets, sizes),
            _ => return false,
        };
        positive && u64::try_from(self.limit).is_ok_and(|limit| end <= limit)
    }
}

for_each_isa! {
    /// Whether nothing is negative, and the largest end.
    fn largest_end<T: Int>(offsets: &[u8], sizes: &[u8]) -> (bool, u64) {
        T::largest_end(offsets, sizes)
    }
}

/// The ends of runs.
///
/// A row is bad when its end is not positive, or not larger than the end of the row before it, which is looked at even
/// where it is not among the rows that are checked.
#[derive(Clone, Copy, Debug)]
pub struct RunEnds<'a> {
    /// A signed integer of 16, 32 or 64 bits for each row.
    pub ends: Ints<'a>,
}

check_with_best_isa!(RunEnds);

impl RunEnds<'_> {
    fn first_bad_on(&self, isa: Isa, rows: Range<usize>) -> Option<usize> {
        first_bad(rows, self.ends.len(), |rows| self.hold(isa, rows), |row| self.is_bad(row))
    }

    fn is_bad(&self, row: usize) -> bool {
        let before = row.checked_sub(1).map_or(Some(0), |before| self.ends.get(before));
        self.ends.get(row).zip(before).is_none_or(|(end, before)| end <= before.max(0))
    }

    fn hold(&self, isa: Isa, rows: Range<usize>) -> bool {
        let positive = self.ends.get(rows.start).is_some_and(|end| end > 0);
        let Some(part) = self.ends.part(rows.start.saturating_sub(1)..rows.end) else { return false };
        positive
            && match self.ends.width {
                Width::W16 => climb::<i16>(isa, part),
                Width::W32 => climb::<i32>(isa, part),
                Width::W64 => climb::<i64>(isa, part),
                Width::W8 => false,
            }
    }
}

for_each_isa! {
    /// Whether each is larger than the one before it.
    fn climb<T: Int>(bytes: &[u8]) -> bool {
        T::climb(bytes)
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

    fn bytes_of(values: &[i64], width: Width) -> Vec<u8> {
        let bytes = values.iter().flat_map(|value| match width {
            Width::W8 => (*value as i8).to_ne_bytes().to_vec(),
            Width::W16 => (*value as i16).to_ne_bytes().to_vec(),
            Width::W32 => (*value as i32).to_ne_bytes().to_vec(),
            Width::W64 => value.to_ne_bytes().to_vec(),
        });
        bytes.collect()
    }

    fn largest(width: Width) -> i64 {
        i64::MAX >> (64 - 8 * width.bytes())
    }

    const ENDS: [usize; 9] = [0, 1, 2, 9, 63, 65, BLOCK - 1, BLOCK, BLOCK + 70];

    #[test]
    fn offsets_agree_with_one_row_at_a_time() {
        let mut random = Random::new(2);
        for width in [Width::W32, Width::W64] {
            for rows in ENDS {
                let mut offsets = vec![random.below(3) as i64];
                for row in 0..rows {
                    offsets.push(offsets[row] + random.below(4) as i64);
                }
                for change in 0..12 {
                    let (mut offsets, mut limit) = (offsets.clone(), offsets[rows]);
                    let at = random.below(rows as u64 + 1) as usize;
                    match change {
                        0 => {}
                        1 => limit = largest(width),
                        2 => limit -= 1,
                        3 => limit = -1,
                        4 => offsets[0] = -1,
                        5 => offsets[rows] = largest(width),
                        6 => offsets[at] = -1,
                        7 => offsets[at] = -largest(width) - 1,
                        8 => offsets[at] = largest(width),
                        9 => offsets[at] += 1,
                        10 => offsets[at] -= 1,
                        _ => {
                            offsets[at] = limit + 1;
                            offsets[at / 2] = 0;
                        }
                    }
                    let bytes = bytes_of(&offsets, width);
                    let is_bad = |row: usize| {
                        row >= rows
                            || offsets[row] < 0
                            || offsets[row + 1] < offsets[row]
                            || offsets[row + 1] > limit
                    };
                    guarded(&bytes, |bytes| {
                        let check = Ascending { offsets: Ints { bytes, width, signed: true }, limit };
                        agree(rows, |isa, rows| check.first_bad_on(isa, rows), is_bad);
                    });
                }
            }
        }
    }

    #[test]
    fn every_small_list_of_offsets_is_judged_alike() {
        let numbers = [-1_i64, 0, 1, 2, 3];
        for code in 0..5_usize.pow(4) {
            let offsets: Vec<i64> = (0..4).map(|i| numbers[code / 5_usize.pow(i) % 5]).collect();
            for width in [Width::W32, Width::W64] {
                let bytes = bytes_of(&offsets, width);
                for limit in -1..3 {
                    let check = Ascending { offsets: Ints { bytes: &bytes, width, signed: true }, limit };
                    let is_bad = |row: usize| {
                        row >= 3
                            || offsets[row] < 0
                            || offsets[row + 1] < offsets[row]
                            || offsets[row + 1] > limit
                    };
                    agree(3, |isa, rows| check.first_bad_on(isa, rows), is_bad);
                }
            }
        }
    }

    #[test]
    fn a_bad_offset_is_found_at_each_place_and_address() {
        let rows = 150;
        for width in [Width::W32, Width::W64] {
            let good: Vec<i64> = (0..=rows).collect();
            for at in 1..rows as usize {
                let mut offsets = good.clone();
                offsets[at] = 0;
                let places = (at != 1).then_some(at - 1);
                everywhere(&bytes_of(&offsets, width), |bytes| {
                    let check = Ascending { offsets: Ints { bytes, width, signed: true }, limit: rows };
                    for isa in Isa::all() {
                        assert_eq!(check.first_bad_on(isa, 0..rows as usize), places);
                    }
                });
            }
        }
    }

    #[test]
    fn a_part_of_an_offset_is_none() {
        for length in 0..12 {
            let bytes = vec![0; length];
            let check =
                Ascending { offsets: Ints { bytes: &bytes, width: Width::W32, signed: true }, limit: 0 };
            let rows = (length / 4).saturating_sub(1);
            agree(rows, |isa, rows| check.first_bad_on(isa, rows), |row| row >= rows);
        }
    }

    #[test]
    fn list_views_agree_with_one_row_at_a_time() {
        let mut random = Random::new(3);
        for width in [Width::W32, Width::W64] {
            let most = largest(width);
            for rows in ENDS {
                for change in 0..12 {
                    let limit = if change == 11 { most } else { 1000 };
                    let mut sizes: Vec<i64> = (0..rows).map(|_| random.below(40) as i64).collect();
                    let mut offsets: Vec<i64> =
                        sizes.iter().map(|s| random.below(1001 - *s as u64) as i64).collect();
                    if rows > 0 {
                        let at = random.below(rows as u64) as usize;
                        match change {
                            0 => {}
                            1 => offsets[at] = -1,
                            2 => sizes[at] = -1,
                            3 => (offsets[at], sizes[at]) = (1000, 1),
                            4 => (offsets[at], sizes[at]) = (1000, 0),
                            5 => (offsets[at], sizes[at]) = (most, most),
                            6 => (offsets[at], sizes[at]) = (most, 1),
                            7 => (offsets[at], sizes[at]) = (-most - 1, -most - 1),
                            8 => (offsets[at], sizes[at]) = (-most - 1, most),
                            9 => (offsets[at], sizes[at]) = (1, 1000),
                            10 => (offsets[at], sizes[at]) = (0, 1000),
                            _ => (offsets[at], sizes[at]) = (most, 0),
                        }
                    }
                    let is_bad = |row: usize| {
                        row >= rows
                            || offsets[row] < 0
                            || sizes[row] < 0
                            || i128::from(offsets[row]) + i128::from(sizes[row]) > i128::from(limit)
                    };
                    guarded(&bytes_of(&offsets, width), |bytes| {
                        let offsets = Ints { bytes, width, signed: true };
                        guarded(&bytes_of(&sizes, width), |bytes| {
                            let sizes = Ints { bytes, width, signed: true };
                            let check = ListViews { offsets, sizes, limit };
                            agree(rows, |isa, rows| check.first_bad_on(isa, rows), is_bad);
                        });
                    });
                }
            }
        }
    }

    #[test]
    fn list_views_of_two_widths_and_negative_limits_are_judged() {
        let (offsets, sizes) = (bytes_of(&[0, 1], Width::W32), bytes_of(&[1, 2], Width::W64));
        let offsets = Ints { bytes: &offsets, width: Width::W32, signed: true };
        let sizes = Ints { bytes: &sizes, width: Width::W64, signed: true };
        for (limit, bad) in [(3, None), (2, Some(1)), (0, Some(0)), (-1, Some(0))] {
            for isa in Isa::all() {
                assert_eq!(ListViews { offsets, sizes, limit }.first_bad_on(isa, 0..2), bad);
            }
        }
    }

    #[test]
    fn run_ends_agree_with_one_row_at_a_time() {
        let mut random = Random::new(4);
        for width in [Width::W16, Width::W32, Width::W64] {
            for rows in ENDS {
                for change in 0..8 {
                    let mut ends = vec![1_i64; rows];
                    for row in 1..rows {
                        ends[row] = ends[row - 1] + 1 + random.below(3) as i64;
                    }
                    if rows > 0 {
                        let at = random.below(rows as u64) as usize;
                        match change {
                            0 => {}
                            1 => ends[0] = 0,
                            2 => ends[at] = 0,
                            3 => ends[at] = -largest(width) - 1,
                            4 => ends[at] = largest(width),
                            5 => ends[at] = ends[at / 2],
                            6 => (ends[at], ends[at / 2]) = (ends[at / 2], ends[at]),
                            _ => ends.iter_mut().for_each(|end| *end -= 20),
                        }
                    }
                    let is_bad =
                        |row: usize| row >= rows || ends[row] <= 0 || row > 0 && ends[row] <= ends[row - 1];
                    guarded(&bytes_of(&ends, width), |bytes| {
                        let check = RunEnds { ends: Ints { bytes, width, signed: true } };
                        agree(rows, |isa, rows| check.first_bad_on(isa, rows), is_bad);
                    });
                }
            }
        }
    }
}
