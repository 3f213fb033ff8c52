//! How much of what the library made is alive, for tests and leak hunts.

use core::sync::atomic::{AtomicUsize, Ordering};

/// A number of live things of one kind.
#[derive(Debug)]
pub struct Live(AtomicUsize);

/// Blocks of parsed types.
pub static TYPES: Live = Live::none();
/// Imported trees and handles on them.
pub static ARRAYS: Live = Live::none();
/// Buffers.
pub static BUFFERS: Live = Live::none();
/// Exported trees of arrays and schemas.
pub static BLOCKS: Live = Live::none();
/// Streams, exported ones among them.
pub static STREAMS: Live = Live::none();
/// Exported tensors.
pub static TENSORS: Live = Live::none();
/// Device work that is not known to have finished, with what it needs.
pub static PENDING: Live = Live::none();
/// Callbacks that were skipped because their scope was closed.
pub static LEAKED_CALLBACKS: Live = Live::none();

impl Live {
    const fn none() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One less, behind everything that its end did: who waits for a count of 0 may take away what owners used.
    pub fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// One more, for as long as the result is there.
    pub fn one(&'static self) -> One {
        self.add();
        One(self)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// A live thing. As the last member of a struct it is counted until the members before it are dropped.
#[derive(Debug)]
pub struct One(&'static Live);

impl Drop for One {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// Takes `n` off `count` and says whether nothing is left. Whoever takes the last part need not subtract.
#[inline]
pub fn take_off(count: &AtomicUsize, n: usize) -> bool {
    count.load(Ordering::Acquire) == n || count.fetch_sub(n, Ordering::AcqRel) == n
}
