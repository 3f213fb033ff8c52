//! A value that one caller at a time may use. A second one is turned away, and nobody ever waits.

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A value and whose turn it is.
pub struct Turns<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only whoever has the turn looks at the value, and the turn passes on with acquire and release.
unsafe impl<T: Send> Sync for Turns<T> {}

impl<T> Turns<T> {
    /// A value that nobody uses yet.
    pub fn new(value: T) -> Self {
        Self { is_taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The value, unless somebody else uses it now: on another thread, or further up on this one.
    #[inline]
    pub fn take(&self) -> Option<Turn<'_, T>> {
        let free = self.is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        // Not made before it is known: a turn that is dropped ends.
        free.is_ok().then(|| Turn(self))
    }

    /// Whether somebody uses the value now.
    pub fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Relaxed)
    }
}

impl<T> fmt::Debug for Turns<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").field("is_taken", &self.is_taken).finish_non_exhaustive()
    }
}

/// The use of a value, which ends when this is dropped.
pub struct Turn<'a, T>(&'a Turns<T>);

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one turn at a time, so nobody else has a reference.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Turn<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Turn<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::Release);
    }
}

impl<T> fmt::Debug for Turn<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turn")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_turn_at_a_time() {
        let turns = Turns::new(1);
        let mut first = turns.take().unwrap();
        assert!(turns.take().is_none());
        assert!(turns.is_taken() && turns.take().is_none());
        *first = 2;
        drop(first);
        assert!(!turns.is_taken());
        assert_eq!(*turns.take().unwrap(), 2);
    }
}
