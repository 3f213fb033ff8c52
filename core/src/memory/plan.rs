//! One allocation for several arrays: where each lies, and how large the whole is.

use core::ptr::NonNull;
use std::alloc::Layout;

use crate::error::{Report, Result};

/// The layout of one block of memory, built part by part.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    size: usize,
    align: usize,
    /// Whether the size did not fit in its number. It is looked at once, in the end.
    is_huge: bool,
}

impl Plan {
    /// A block that starts with one `H`.
    #[inline]
    pub const fn starting_with<H>() -> Self {
        Self { size: size_of::<H>(), align: align_of::<H>(), is_huge: false }
    }

    /// Adds room for `n` values of `T` and returns where the first lies, in bytes from the block's start.
    ///
    /// A block that would be larger than memory is found out by [`Plan::allocate`].
    #[inline(always)]
    pub const fn array<T>(&mut self, n: usize) -> usize {
        const { assert!(size_of::<T>() > 0) };
        let (bytes, too_many) = n.overflowing_mul(size_of::<T>());
        let before = align_of::<T>().wrapping_sub(1);
        let (padded, too_far) = self.size.overflowing_add(before);
        let at = padded & !before;
        let (end, too_large) = at.overflowing_add(bytes);
        self.size = end;
        self.align = if self.align < align_of::<T>() { align_of::<T>() } else { self.align };
        self.is_huge |= too_many | too_far | too_large;
        at
    }

    /// The layout to free the block with.
    #[inline]
    pub fn layout(&self) -> Option<Layout> {
        if self.is_huge {
            return None;
        }
        Layout::from_size_align(self.size, self.align).ok()
    }

    /// Uninitialised memory for the whole block.
    #[inline]
    pub fn allocate(&self, report: &mut Report<'_>) -> Result<(NonNull<u8>, Layout)> {
        let Some(layout) = self.layout().map(|l| l.pad_to_align()) else {
            return Err(report.out_of_memory(usize::MAX));
        };
        // SAFETY: a plan starts with a header, so its size is not zero.
        match NonNull::new(unsafe { std::alloc::alloc(layout) }) {
            Some(block) => Ok((block, layout)),
            None => Err(report.out_of_memory(layout.size())),
        }
    }
}

/// A list with room for `n` items, which it never grows beyond by itself.
pub fn reserve<T>(n: usize, report: &mut Report<'_>) -> Result<Vec<T>> {
    let mut list = Vec::new();
    match list.try_reserve_exact(n) {
        Ok(()) => Ok(list),
        Err(_) => Err(report.out_of_memory(n.saturating_mul(size_of::<T>()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn parts_lie_one_after_the_other() {
        let mut plan = Plan::starting_with::<u64>();
        assert_eq!((plan.array::<u8>(3), plan.array::<u32>(2), plan.array::<u8>(0)), (8, 12, 20));
        let layout = plan.layout().unwrap();
        assert_eq!((layout.size(), layout.align()), (20, 8));
    }

    #[test]
    fn a_block_larger_than_memory_is_refused() {
        for n in [usize::MAX, usize::MAX / 8, usize::MAX / 8 - 1, usize::MAX / 16] {
            let mut plan = Plan::starting_with::<u64>();
            plan.array::<u64>(n);
            plan.array::<u64>(2);
            let failed = plan.allocate(&mut Report::silent()).unwrap_err();
            assert_eq!(failed.status(), Status::OutOfMemory, "{n}");
        }
    }
}
