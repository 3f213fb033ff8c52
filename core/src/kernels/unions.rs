//! Type ids of unions, and the offsets of dense ones.

use core::ops::Range;

use super::ints::{Int, Ints, Width};
use super::isa::{Isa, for_each_isa};
use super::rows::{beyond, blocks, check_with_best_isa, first_bad};

/// Type ids of a sparse union. A row is bad when its id is negative or not declared.
#[derive(Clone, Copy, Debug)]
pub struct TypeIds<'a> {
    /// A signed byte for each row.
    pub type_ids: &'a [u8],
    /// Which ids are declared.
    pub declared: &'a [bool; 128],
}

check_with_best_isa!(TypeIds);

impl TypeIds<'_> {
    fn first_bad_on(&self, isa: Isa, rows: Range<usize>) -> Option<usize> {
        // Most often the declared ids are those from some id to another.
        let first = self.declared.iter().position(|is| *is).unwrap_or(0);
        let last = self.declared.iter().rposition(|is| *is).unwrap_or(0);
        let dense = self.declared.get(first..=last).is_some_and(|ids| ids.iter().all(|is| *is));
        let holds = |rows| {
            self.type_ids.get(rows).is_some_and(|ids| match dense {
                true => all_within(isa, ids, first as u8, last as u8),
                false => all_declared(isa, ids, self.declared),
            })
        };
        let is_declared = |id: &u8| self.declared.get(usize::from(*id)) == Some(&true);
        let is_bad = |row| !self.type_ids.get(row).is_some_and(is_declared);
        first_bad(rows, self.type_ids.len(), holds, is_bad)
    }
}

for_each_isa! {
    /// Whether all ids are between two others.
    fn all_within(ids: &[u8], first: u8, last: u8) -> bool {
        ids.iter().fold(0, |bad: u8, id| bad | u8::from(*id < first) | u8::from(*id > last)) == 0
    }
}

for_each_isa! {
    /// Whether all ids are declared.
    fn all_declared(ids: &[u8], declared: &[bool; 128]) -> bool {
        let is_declared = |id: &u8| declared.get(usize::from(*id)) == Some(&true);
        ids.iter().fold(true, |good, id| good & is_declared(id))
    }
}

/// Type ids and offsets of a dense union.
///
/// A row is bad when its id is negative or not declared, when its offset is not inside its child, or when its offset is
/// smaller than one of an earlier row of the same child, where the first of the checked rows is the earliest.
#[derive(Clone, Copy, Debug)]
pub struct DenseUnion<'a> {
    /// A signed byte for each row.
    pub type_ids: &'a [u8],
    /// A signed integer of 32 bits for each row.
    pub offsets: Ints<'a>,
    /// The length of each id's child; -1 where the id is not declared.
    pub lengths: &'a [i64; 128],
}

check_with_best_isa!(DenseUnion);

/// The rows that are checked together. Their offsets, sorted by child, stay in the first-level cache.
const UNION_BLOCK: usize = 1024;

/// The largest offset so far of each id, or less than any offset.
type Largest = [i32; 128];

/// What a walk looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Any,
    Bounds,
    Order,
}

impl DenseUnion<'_> {
    /// The first row whose id is negative or not declared, or whose offset is not inside its child.
    pub fn first_bad_bounds(&self, rows: Range<usize>) -> Option<usize> {
        self.first_fault(Isa::best(), rows, Fault::Bounds)
    }

    /// The first row whose offset is smaller than one of an earlier row among `rows` of the same declared id.
    pub fn first_bad_order(&self, rows: Range<usize>) -> Option<usize> {
        self.first_fault(Isa::best(), rows, Fault::Order)
    }

    fn first_bad_on(&self, isa: Isa, rows: Range<usize>) -> Option<usize> {
        self.first_fault(isa, rows, Fault::Any)
    }

    fn first_fault(&self, isa: Isa, rows: Range<usize>, fault: Fault) -> Option<usize> {
        let present = match self.offsets.width {
            Width::W32 => self.offsets.len().min(self.type_ids.len()),
            Width::W8 | Width::W16 | Width::W64 => 0,
        };
        let mut largest: Largest = [i32::MIN; 128];
        let mut sorter = by_child::Sorter::new(isa, self.lengths);
        for block in blocks(rows.start..rows.end.min(present), UNION_BLOCK) {
            let (ids, offsets) = self.type_ids.get(block.clone()).zip(self.offsets.part(block.clone()))?;
            let before = largest;
            let good = match &mut sorter {
                Some(sorter) => sorter.holds(ids, offsets, self.lengths, &mut largest),
                None => all_good(isa, ids, offsets, self.lengths, &mut largest),
            };
            if !good {
                largest = before;
                let each = ids.iter().zip(i32::each(offsets));
                let bad = each.map(|(id, offset)| step(*id, offset, self.lengths, &mut largest));
                let found = bad.zip(block).find(|(found, _)| match fault {
                    Fault::Any => found.0 || found.1,
                    Fault::Bounds => found.0,
                    Fault::Order => found.1,
                });
                if let Some((_, row)) = found {
                    return Some(row);
                }
            }
        }
        beyond(&rows, present)
    }
}

/// Takes one row into account: whether it breaks the bounds, and whether it breaks the order.
#[inline(always)]
fn step(id: u8, offset: i32, lengths: &[i64; 128], largest: &mut Largest) -> (bool, bool) {
    let at = usize::from(id & 0x7F);
    let (Some(length), Some(largest)) = (lengths.get(at), largest.get_mut(at)) else { return (true, false) };
    let declared = (id < 0x80) & (*length >= 0);
    let bounds = !declared | (offset < 0) | (i64::from(offset) >= *length);
    let order = declared & (offset < *largest);
    *largest = if declared { offset.max(*largest) } else { *largest };
    (bounds, order)
}

for_each_isa! {
    /// Whether all rows are good.
    fn all_good(ids: &[u8], offsets: &[u8], lengths: &[i64; 128], largest: &mut Largest) -> bool {
        let rows = ids.iter().zip(<i32 as Int>::each(offsets));
        rows.fold(true, |good, (id, offset)| {
            let (bounds, order) = step(*id, offset, lengths, largest);
            good & !(bounds | order)
        })
    }
}

/// A walk one by one waits for each child's last offset to come back from memory. Vectors pack the offsets of one child
/// after the other, and packed offsets are compared side by side; of what ascends, the first and the last tell the bounds.
#[cfg(target_arch = "x86_64")]
mod by_child {
    use core::arch::x86_64::*;

    use super::super::isa::Isa;
    use super::{Largest, UNION_BLOCK, step};
    use crate::kernels::ints::Int;

    /// With more children, packing each of them costs more than the walk.
    const CHILDREN: usize = 6;

    /// One before the packed offsets, and room for a whole vector after them.
    const PACKED: usize = UNION_BLOCK + 8;

    /// The lanes that a mask has, first ones first.
    static LANES: [[u8; 8]; 256] = {
        let mut lanes = [[0; 8]; 256];
        let mut rest: &mut [[u8; 8]] = &mut lanes;
        let mut mask = 0_u32;
        while let Some((row, tail)) = rest.split_first_mut() {
            let mut bits = mask;
            let mut slots: &mut [u8] = row;
            while bits != 0
                && let Some((slot, more)) = slots.split_first_mut()
            {
                *slot = bits.trailing_zeros() as u8;
                bits &= bits.wrapping_sub(1);
                slots = more;
            }
            mask = mask.wrapping_add(1);
            rest = tail;
        }
        lanes
    };

    /// Room for the offsets of a block, by child. Only a machine with AVX2 has one.
    pub(super) struct Sorter {
        ids: [u8; CHILDREN],
        children: usize,
        packed: [[i32; PACKED]; CHILDREN],
    }

    impl Sorter {
        /// For the declared ids, if that is worth it.
        pub(super) fn new(isa: Isa, lengths: &[i64; 128]) -> Option<Self> {
            let mut ids = [0; CHILDREN];
            let mut children = 0_usize;
            for (id, _) in lengths.iter().enumerate().filter(|(_, length)| **length >= 0) {
                *ids.get_mut(children)? = id as u8;
                children = children.checked_add(1)?;
            }
            isa.has_avx2().then_some(Self { ids, children, packed: [[0; PACKED]; CHILDREN] })
        }

        /// Whether all rows of a block are good.
        #[inline]
        pub(super) fn holds(
            &mut self,
            ids: &[u8],
            offsets: &[u8],
            lengths: &[i64; 128],
            largest: &mut Largest,
        ) -> bool {
            // SAFETY: `new` made this because the machine has the features.
            unsafe { self.holds_with_avx2(ids, offsets, lengths, largest) }
        }

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn holds_with_avx2(
            &mut self,
            ids: &[u8],
            offsets: &[u8],
            lengths: &[i64; 128],
            largest: &mut Largest,
        ) -> bool {
            let children = self.ids.get(..self.children).unwrap_or_default();
            let mut counts = [1_usize; CHILDREN];
            let mut known = u32::MAX;
            let (id_chunks, id_rest) = ids.as_chunks::<32>();
            let (offset_chunks, offset_rest) = offsets.as_chunks::<128>();
            for (ids, offsets) in id_chunks.iter().zip(offset_chunks) {
                // SAFETY: 32 bytes are read of 32, at any address.
                let ids = unsafe { _mm256_loadu_si256(ids.as_ptr().cast()) };
                let mut these = 0;
                let each = children.iter().zip(&mut self.packed).zip(&mut counts);
                for ((child, packed), count) in each {
                    let is_child = _mm256_cmpeq_epi8(ids, _mm256_set1_epi8(*child as i8));
                    let mut mask = _mm256_movemask_epi8(is_child) as u32;
                    these |= mask;
                    for eight in offsets.as_chunks::<32>().0 {
                        let Some(lanes) = LANES.get(mask as usize & 0xFF) else { return false };
                        let Some(room) = packed.get_mut(*count..) else { return false };
                        let Some(room) = room.first_chunk_mut::<8>() else { return false };
                        // SAFETY: 8 bytes are read of 8, 32 of 32, and 32 written of 8 integers of 4, at any address.
                        unsafe {
                            let lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(lanes.as_ptr().cast()));
                            let eight = _mm256_loadu_si256(eight.as_ptr().cast());
                            let of_child = _mm256_permutevar8x32_epi32(eight, lanes);
                            _mm256_storeu_si256(room.as_mut_ptr().cast(), of_child);
                        }
                        *count = count.wrapping_add((mask & 0xFF).count_ones() as usize);
                        mask >>= 8;
                    }
                }
                known &= these;
            }
            let mut good = known == u32::MAX;
            for ((child, packed), count) in children.iter().zip(&mut self.packed).zip(counts) {
                let at = usize::from(*child);
                let (Some(length), Some(largest)) = (lengths.get(at), largest.get_mut(at)) else {
                    return false;
                };
                let Some((before, _)) = packed.split_first_mut() else { return false };
                // From zero on, what ascends is not negative.
                *before = (*largest).max(0);
                let offsets = packed.get(..count).unwrap_or_default();
                let pairs = offsets.iter().zip(offsets.get(1..).unwrap_or_default());
                good &= pairs.fold(0, |bad, (a, b)| bad | u32::from(b < a)) == 0;
                if count > 1
                    && let Some(last) = offsets.last()
                {
                    good &= i64::from(*last) < *length;
                    *largest = *last;
                }
            }
            let rest = id_rest.iter().zip(<i32 as Int>::each(offset_rest));
            rest.fold(good, |good, (id, offset)| {
                let (bounds, order) = step(*id, offset, lengths, largest);
                good & !(bounds | order)
            })
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod by_child {
    use super::super::isa::Isa;
    use super::Largest;

    /// There is none for this machine.
    pub(super) enum Sorter {}

    impl Sorter {
        pub(super) fn new(_: Isa, _: &[i64; 128]) -> Option<Self> {
            None
        }

        pub(super) fn holds(&mut self, _: &[u8], _: &[u8], _: &[i64; 128], _: &mut Largest) -> bool {
            match *self {}
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
    use super::super::testing::{Random, agree, everywhere, guarded};
    use super::*;

    const LENGTHS: [usize; 9] =
        [0, 1, 8, 31, 33, 100, UNION_BLOCK - 1, UNION_BLOCK + 40, 2 * UNION_BLOCK + 5];

    #[test]
    fn every_id_meets_every_kind_of_declaration() {
        let mut random = Random::new(10);
        let ranges = [(0, 0), (0, 128), (0, 3), (5, 7), (127, 128), (0, 127)];
        for kind in 0..20 {
            let mut declared = [false; 128];
            match ranges.get(kind) {
                Some((from, to)) => declared[*from..*to].fill(true),
                None => declared.iter_mut().for_each(|is| *is = random.below(3) > 0),
            }
            let all: Vec<u8> = (0..=255).collect();
            let good: Vec<u8> = (0..128).filter(|id| declared[usize::from(*id)]).collect();
            let mut one_bad = good.repeat(60);
            if let Some(at) = one_bad.len().checked_sub(kind * 7 + 1) {
                one_bad[at] = 0xFF;
            }
            for ids in [&all, &good, &one_bad, &good.repeat(40)] {
                everywhere(ids, |type_ids| {
                    let check = TypeIds { type_ids, declared: &declared };
                    let is_bad = |row: usize| {
                        type_ids.get(row).is_none_or(|id| *id >= 128 || !declared[usize::from(*id)])
                    };
                    agree(ids.len(), |isa, rows| check.first_bad_on(isa, rows), is_bad);
                });
            }
        }
    }

    /// What is wrong with each row: its bounds, its order, when the rows from `start` on are looked at.
    fn faults(ids: &[u8], offsets: &[i32], lengths: &[i64; 128], start: usize) -> Vec<(bool, bool)> {
        let mut found = Vec::new();
        let mut earlier = std::collections::BTreeMap::new();
        for (id, offset) in ids.iter().zip(offsets).skip(start) {
            let length = if *id < 128 { lengths[usize::from(*id)] } else { -1 };
            let bounds = *offset < 0 || i64::from(*offset) >= length;
            let most = earlier.entry(*id).or_insert(*offset);
            found.push((bounds, length >= 0 && *most > *offset));
            *most = (*most).max(*offset);
        }
        found
    }

    fn compare(ids: &[u8], offsets: &[i32], lengths: &[i64; 128]) {
        let rows = ids.len();
        let bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_ne_bytes()).collect();
        for start in [0, 5, rows / 2] {
            let start = start.min(rows);
            let faults = faults(ids, offsets, lengths, start);
            for end in [rows, rows + 2] {
                let first = |is: fn(&(bool, bool)) -> bool| {
                    let found = faults.iter().position(is).map(|at| at + start).filter(|row| *row < end);
                    found.or((end > rows).then_some(rows))
                };
                guarded(ids, |type_ids| {
                    guarded(&bytes, |bytes| {
                        let offsets = Ints { bytes, width: Width::W32, signed: true };
                        let check = DenseUnion { type_ids, offsets, lengths };
                        for isa in Isa::all() {
                            let find = |fault| check.first_fault(isa, start..end, fault);
                            assert_eq!(find(Fault::Any), first(|fault| fault.0 || fault.1));
                            assert_eq!(find(Fault::Bounds), first(|fault| fault.0));
                            assert_eq!(find(Fault::Order), first(|fault| fault.1));
                        }
                    });
                });
            }
        }
    }

    /// Rows of a good union with so many children of ids `step` apart, and the lengths.
    fn good(random: &mut Random, rows: usize, children: u64, step: u64) -> (Vec<u8>, Vec<i32>, [i64; 128]) {
        let mut lengths = [-1_i64; 128];
        for child in 0..children {
            lengths[(child * step) as usize] = 0;
        }
        let (mut ids, mut offsets) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let id = (random.below(children) * step) as usize;
            ids.push(id as u8);
            // An offset may be used again, and some may be left out.
            let offset = (lengths[id] - 1 + random.below(3) as i64).max(0);
            offsets.push(offset as i32);
            lengths[id] = lengths[id].max(offset + 1);
        }
        (ids, offsets, lengths)
    }

    #[test]
    fn dense_unions_agree_with_one_row_at_a_time() {
        let mut random = Random::new(11);
        for (children, step) in [(1, 1), (2, 100), (3, 1), (6, 25), (7, 1), (100, 1), (128, 1)] {
            for rows in LENGTHS {
                let (ids, offsets, lengths) = good(&mut random, rows, children, step);
                compare(&ids, &offsets, &lengths);
                for change in 0..9 {
                    let (mut ids, mut offsets, mut lengths) = (ids.clone(), offsets.clone(), lengths);
                    if rows == 0 {
                        continue;
                    }
                    let at = random.below(rows as u64) as usize;
                    match change {
                        0 => ids[at] = 0xFF,
                        1 => ids[at] = random.below(256) as u8,
                        2 => offsets[at] = -1,
                        3 => offsets[at] = i32::MIN,
                        4 => offsets[at] = i32::MAX,
                        5 => offsets[at] = 0,
                        6 => lengths[usize::from(ids[at])] -= 1,
                        7 => lengths[usize::from(ids[at])] = -1,
                        _ => offsets.swap(at, rows / 2),
                    }
                    compare(&ids, &offsets, &lengths);
                }
            }
        }
    }

    #[test]
    fn a_bad_row_is_found_at_each_place_and_address() {
        let mut random = Random::new(12);
        let (ids, offsets, lengths) = good(&mut random, 50, 3, 1);
        for at in 0..50 {
            for odd in [-1, i32::MAX] {
                let mut offsets = offsets.clone();
                offsets[at] = odd;
                let bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_ne_bytes()).collect();
                everywhere(&ids, |type_ids| {
                    everywhere(&bytes, |bytes| {
                        let offsets = Ints { bytes, width: Width::W32, signed: true };
                        let check = DenseUnion { type_ids, offsets, lengths: &lengths };
                        for isa in Isa::all() {
                            assert_eq!(check.first_bad_on(isa, 0..50), Some(at));
                        }
                    });
                });
            }
        }
    }

    #[test]
    fn order_is_kept_from_block_to_block() {
        let mut random = Random::new(16);
        let (ids, offsets, lengths) = good(&mut random, 3 * UNION_BLOCK, 3, 1);
        for block in [UNION_BLOCK, 2 * UNION_BLOCK] {
            for id in 0..3 {
                // The first of its child in the block.
                let at = block + ids.iter().skip(block).position(|other| *other == id).unwrap();
                let mut offsets = offsets.clone();
                offsets[at] = 0;
                assert_eq!(faults(&ids, &offsets, &lengths, 0)[at], (false, true));
                compare(&ids, &offsets, &lengths);
            }
        }
    }

    #[test]
    fn a_child_longer_than_offsets_can_say_is_no_excuse() {
        let mut lengths = [-1; 128];
        lengths[1] = i64::MAX;
        compare(&[1; 40], &[i32::MAX; 40], &lengths);
        compare(&[1; 40], &[-1; 40], &lengths);
        compare(&[1; 40], &[i32::MIN; 40], &lengths);
        compare(&[0; 40], &[-1; 40], &lengths);
    }

    #[test]
    fn offsets_of_another_width_are_bad() {
        let offsets = Ints { bytes: &[0; 16], width: Width::W64, signed: true };
        let check = DenseUnion { type_ids: &[0; 2], offsets, lengths: &[5; 128] };
        assert_eq!(check.first_bad_on(Isa::best(), 0..2), Some(0));
        assert_eq!(check.first_bad_bounds(0..2), Some(0));
        assert_eq!(check.first_bad_order(0..0), None);
    }
}
