//! How rows are walked: a block at a time, and one by one only where a block failed.

use core::ops::Range;

/// A check of the rows of one node.
pub trait Check: Sync {
    /// The first row of `rows` that breaks the rule, or `None` when all of them keep it. A row that the data does not
    /// reach breaks it.
    fn first_bad(&self, rows: Range<usize>) -> Option<usize>;
}

/// Implements [`Check`] by the method `first_bad_on`, which takes the instructions as well.
macro_rules! check_with_best_isa {
    ($name:ident) => {
        impl $crate::kernels::Check for $name<'_> {
            fn first_bad(&self, rows: core::ops::Range<usize>) -> Option<usize> {
                self.first_bad_on($crate::kernels::isa::Isa::best(), rows)
            }
        }
    };
}
pub(super) use check_with_best_isa;

/// Rows that are checked together: what they take of a few buffers stays in the second-level cache. Fewer in tests, which
/// walk over the end of a block many times.
pub(super) const BLOCK: usize = if cfg!(test) { 1 << 10 } else { 1 << 14 };

/// What a block that failed is divided into, so that one strange row costs little.
const PART: usize = 64;

/// The first bad one of `rows`, of which those from `present` on are bad.
///
/// `holds` says of some rows that none is bad; it may say false of good ones. `is_bad` decides about one row.
pub(super) fn first_bad(
    rows: Range<usize>,
    present: usize,
    holds: impl Fn(Range<usize>) -> bool,
    is_bad: impl Fn(usize) -> bool,
) -> Option<usize> {
    first_bad_by(BLOCK, rows, present, holds, is_bad)
}

/// The same, with blocks of another size.
pub(super) fn first_bad_by(
    block: usize,
    rows: Range<usize>,
    present: usize,
    holds: impl Fn(Range<usize>) -> bool,
    is_bad: impl Fn(usize) -> bool,
) -> Option<usize> {
    let end = rows.end.min(present);
    for block in blocks(rows.start..end, block) {
        if holds(block.clone()) {
            continue;
        }
        for part in blocks(block, PART) {
            if !holds(part.clone())
                && let Some(row) = part.clone().find(|&row| is_bad(row))
            {
                return Some(row);
            }
        }
    }
    beyond(&rows, present)
}

/// The first of `rows` that is not among the first `present`.
pub(super) fn beyond(rows: &Range<usize>, present: usize) -> Option<usize> {
    (rows.start < rows.end && present < rows.end).then(|| rows.start.max(present))
}

/// `rows` in pieces of at most `size` rows.
pub(super) fn blocks(rows: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = rows.start;
    core::iter::from_fn(move || {
        if start >= rows.end {
            return None;
        }
        let block = start..start.saturating_add(size).min(rows.end);
        start = block.end;
        Some(block)
    })
}

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
    fn blocks_cover_the_rows_once() {
        for (start, end) in [(0, 0), (5, 3), (0, 1), (3, 11), (0, 12), (7, 30)] {
            let all: Vec<usize> = blocks(start..end, 4).flatten().collect();
            assert_eq!(all, (start..end).collect::<Vec<_>>());
        }
        assert_eq!(blocks(usize::MAX - 1..usize::MAX, 4).count(), 1);
    }

    #[test]
    fn a_bad_row_is_found_even_if_nothing_holds() {
        for bad in [0, 1, 63, 64, 65, 4095, 4096, 9000] {
            for rough in [false, true] {
                let holds = |rows: Range<usize>| rough && !rows.contains(&bad);
                let found = first_bad(0..10_000, 10_000, holds, |row| row == bad);
                assert_eq!(found, Some(bad));
                assert_eq!(first_bad(bad + 1..10_000, 10_000, holds, |row| row == bad), None);
            }
        }
    }

    #[test]
    fn rows_that_are_not_there_are_bad() {
        let find = |rows, present| first_bad(rows, present, |_| true, |_| false);
        assert_eq!(find(0..5, 5), None);
        assert_eq!(find(0..6, 5), Some(5));
        assert_eq!(find(7..9, 5), Some(7));
        assert_eq!(find(7..7, 5), None);
        let (start, end) = (9, 7);
        assert_eq!(find(start..end, 5), None);
        assert_eq!(find(0..usize::MAX, 0), Some(0));
    }
}
