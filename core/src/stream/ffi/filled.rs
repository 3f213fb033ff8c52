//! A struct that a callback fills in, and that goes with whoever holds it.

use super::super::{Source, Stream};
use crate::abi::{ArrowDeviceArray, RawArray};
use crate::error::{Report, Result};
use crate::tree::{ExportedArray, release_array_struct};

/// What a callback filled in; whatever nobody takes is released.
pub struct Filled<A: RawArray>(pub(super) A);

impl<A: RawArray> Filled<A> {
    /// A released struct to be filled in.
    #[inline(always)]
    pub(in super::super) fn nothing() -> Self {
        // SAFETY: zeroes are a released struct.
        Self(unsafe { core::mem::zeroed() })
    }
}

impl Filled<ArrowDeviceArray> {
    /// Keeps an array of ours.
    pub(in super::super) fn put(&mut self, array: ExportedArray) {
        *self = Self(array.into_raw());
    }

    /// What is kept, bit by bit; what is left is a released struct.
    #[inline(always)]
    pub(super) fn take(&mut self) -> ArrowDeviceArray {
        // SAFETY: the struct is moved out, as the interface allows.
        let moved = unsafe { core::ptr::read(&self.0) };
        self.0.array.release = None;
        moved
    }

    /// What is kept.
    ///
    /// # Safety
    /// It is a live array of ours.
    unsafe fn into_exported(mut self) -> ExportedArray {
        // SAFETY: as the caller promises.
        unsafe { ExportedArray::from_raw(self.take()) }
    }
}

impl Stream {
    /// The next array as a struct for somebody else; `None` at the end, again and again.
    pub fn next_exported(&self, report: &mut Report<'_>) -> Result<Option<ExportedArray>> {
        let mut out = Filled::nothing();
        let ask = |source: &mut dyn Source, report: &mut Report<'_>| source.next_exported(&mut out, report);
        let is_there = self.turn(report)?.pull(&self.0.is_cancelled, report, ask)?;
        // SAFETY: what a source gives is one of ours.
        Ok(if is_there { Some(unsafe { out.into_exported() }) } else { None })
    }
}

impl<A: RawArray> Drop for Filled<A> {
    fn drop(&mut self) {
        // SAFETY: the struct is what its producer made of a released one.
        unsafe { release_array_struct(self.0.array()) };
    }
}
