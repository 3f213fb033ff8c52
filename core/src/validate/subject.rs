//! What is checked: a foreign struct as it is, or an array of ours.

use core::ffi::c_void;

use crate::array::Array;
use crate::device;
use crate::error::{Report, Result};
use crate::memory::Place;
use crate::tree::{Facts, Fetch, Survey};
use crate::types::Type;

/// A tree of nodes with numbers and buffers, numbered as the type's nodes.
pub(super) trait Subject: Sync {
    /// The type; its node 0 is the subject's.
    fn ty(&self) -> &Type;

    /// Where the buffers are.
    fn place(&self) -> Place;

    /// Whether node `i` is there with its lists; false when a node above is broken, which was told there.
    fn shape(&self, i: usize, report: &mut Report<'_>) -> Result<bool>;

    /// The numbers of node `i`: all of it, or the part that a window shows.
    fn facts(&self, i: usize) -> Option<Facts>;

    /// The numbers of all of node `i`, whatever part a window shows.
    fn whole(&self, i: usize) -> Option<Facts>;

    /// The number of buffers of node `i` that its layout knows, by rules A3 and A8.
    fn count(&self, i: usize, report: &mut Report<'_>) -> Result<usize>;

    /// Address of buffer `k` of node `i`, NULL when there is none.
    fn buffer(&self, i: usize, k: usize) -> *const c_void;

    /// Readable bytes of buffer `k` of node `i` as somebody said, -1 when nobody did.
    fn stated_size(&self, i: usize, k: usize) -> i64;

    /// The `n` bytes from `at` on of buffer `k` of node `i`, when the CPU may read them; `None` as well for more than somebody
    /// said that there are.
    ///
    /// The caller asks for no more than the node's own numbers say that there must be.
    fn bytes(&self, i: usize, k: usize, at: usize, n: usize) -> Option<&[u8]>;

    /// Copies bytes of buffers into CPU memory, wherever they are, and waits until they are there.
    ///
    /// The caller asks for no more than the node's own numbers say that there must be, nor than somebody said that there are.
    fn fetch(&self, sync: &device::Sync, wanted: &mut [Fetch<'_>], report: &mut Report<'_>) -> Result<()>;

    /// Whether buffer `k` of node `i` is in CPU memory though the others are not, as sizes may be.
    fn is_elsewhere(&self, i: usize, k: usize, report: &mut Report<'_>) -> Result<bool>;

    /// Whether the numbers of children are those of whole children, as a struct's are, not those of a window.
    fn is_whole(&self) -> bool;
}

impl Subject for Survey<'_> {
    fn ty(&self) -> &Type {
        Survey::ty(self)
    }

    fn place(&self) -> Place {
        Survey::place(self)
    }

    fn shape(&self, i: usize, report: &mut Report<'_>) -> Result<bool> {
        Survey::shape(self, i, report)
    }

    fn facts(&self, i: usize) -> Option<Facts> {
        Survey::facts(self, i)
    }

    fn whole(&self, i: usize) -> Option<Facts> {
        Survey::facts(self, i)
    }

    fn count(&self, i: usize, report: &mut Report<'_>) -> Result<usize> {
        Survey::count(self, i, report)
    }

    fn buffer(&self, i: usize, k: usize) -> *const c_void {
        Survey::buffer(self, i, k)
    }

    fn stated_size(&self, i: usize, k: usize) -> i64 {
        Survey::stated_size(self, i, k)
    }

    fn bytes(&self, i: usize, k: usize, at: usize, n: usize) -> Option<&[u8]> {
        if is_within(Survey::stated_size(self, i, k), at, n) { self.host_bytes(i, k, at, n) } else { None }
    }

    fn fetch(&self, sync: &device::Sync, wanted: &mut [Fetch<'_>], report: &mut Report<'_>) -> Result<()> {
        Survey::fetch(self, sync, wanted, report)
    }

    fn is_elsewhere(&self, i: usize, k: usize, report: &mut Report<'_>) -> Result<bool> {
        Survey::is_elsewhere(self, i, k, report)
    }

    fn is_whole(&self) -> bool {
        true
    }
}

/// Whether so many bytes can lie in memory of that size, -1 when nobody said how large it is.
pub(super) fn is_within(stated: i64, at: usize, n: usize) -> bool {
    let end = at.checked_add(n).and_then(|end| i64::try_from(end).ok());
    end.is_some_and(|end| stated < 0 || end <= stated)
}

/// An array of ours, as far as its window shows it.
pub(super) struct Window<'a> {
    array: &'a Array,
    ty: Type,
    is_whole: bool,
}

impl<'a> Window<'a> {
    pub(super) fn of(array: &'a Array) -> Option<Self> {
        let own = array.tree().nodes().get(array.node())?;
        let is_whole = (own.offset, own.length) == (array.offset(), array.length());
        Some(Self { array, ty: array.ty()?, is_whole })
    }

    fn node(&self, i: usize) -> usize {
        self.array.node().saturating_add(i)
    }
}

impl Subject for Window<'_> {
    fn ty(&self) -> &Type {
        &self.ty
    }

    fn place(&self) -> Place {
        self.array.tree().place()
    }

    fn shape(&self, _: usize, _: &mut Report<'_>) -> Result<bool> {
        // What is imported or built has its lists.
        Ok(true)
    }

    fn facts(&self, i: usize) -> Option<Facts> {
        if self.is_whole {
            return self.array.tree().facts(self.node(i));
        }
        self.array.shown_facts(self.node(i))
    }

    fn whole(&self, i: usize) -> Option<Facts> {
        self.array.tree().facts(self.node(i))
    }

    fn count(&self, i: usize, _: &mut Report<'_>) -> Result<usize> {
        Ok(self.array.tree().nodes().get(self.node(i)).map_or(0, |node| node.n_buffers))
    }

    fn buffer(&self, i: usize, k: usize) -> *const c_void {
        self.array.tree().buffer(self.node(i), k)
    }

    fn stated_size(&self, i: usize, k: usize) -> i64 {
        self.array.tree().stated_size(self.node(i), k)
    }

    fn bytes(&self, i: usize, k: usize, at: usize, n: usize) -> Option<&[u8]> {
        self.array.tree().host_bytes(self.node(i), k, at, n)
    }

    fn fetch(&self, sync: &device::Sync, wanted: &mut [Fetch<'_>], report: &mut Report<'_>) -> Result<()> {
        for fetch in wanted.iter_mut() {
            fetch.node = self.node(fetch.node);
        }
        self.array.tree().fetch(sync, wanted, report)
    }

    fn is_elsewhere(&self, i: usize, k: usize, report: &mut Report<'_>) -> Result<bool> {
        self.array.tree().is_elsewhere(self.node(i), k, report)
    }

    fn is_whole(&self) -> bool {
        self.is_whole
    }
}
