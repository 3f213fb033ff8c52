//! One allocation for several arrays: where each lies, and how large the whole is.

use core::ptr::NonNull;
use std::alloc::Layout;

use crate::error::{Report, Result};

/// The layout of one block of memory, built part by part.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    layout: Option<Layout>,
}

impl Plan {
    /// A block that starts with one `H`.
    pub const fn starting_with<H>() -> Self {
        Self { layout: Some(Layout::new::<H>()) }
    }

    /// Adds room for `n` values of `T` and returns where the first lies, in bytes from the block's start.
    ///
    /// A block that would be larger than memory is found out by [`Plan::allocate`].
    pub fn array<T>(&mut self, n: usize) -> usize {
        let extended =
            self.layout.and_then(|whole| Layout::array::<T>(n).ok().and_then(|part| whole.extend(part).ok()));
        self.layout = extended.map(|(whole, _)| whole);
        extended.map_or(0, |(_, at)| at)
    }

    /// The layout to free the block with.
    pub fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// Uninitialised memory for the whole block.
    pub fn allocate(&self, report: &mut Report<'_>) -> Result<(NonNull<u8>, Layout)> {
        let Some(layout) = self.layout.map(|l| l.pad_to_align()) else {
            return Err(report.out_of_memory(usize::MAX));
        };
        // SAFETY: a plan starts with a header, so its size is not zero.
        match NonNull::new(unsafe { std::alloc::alloc(layout) }) {
            Some(block) => Ok((block, layout)),
            None => Err(report.out_of_memory(layout.size())),
        }
    }
}
