//! Handles: a window on one node of a tree. The first lies in the tree's own block, so that importing allocates once.

use core::ffi::c_void;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI64, AtomicUsize, Ordering, fence};
use std::alloc::Layout;

use super::Tree;
use crate::error::{Report, Result};
use crate::memory::{Kind, Plan, counts, mark};

/// A counted handle on a window: some of the values of one node of a tree.
///
/// Cloning counts and cannot fail.
pub struct Array(NonNull<Window>);

/// Which values a window shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Index of the node in the tree.
    pub node: usize,
    /// Physical index of the first value, in the node's own buffers.
    pub offset: i64,
    /// Number of values.
    pub length: i64,
    /// Number of nulls among them, -1 when it is not known.
    pub null_count: i64,
}

#[repr(C)]
pub(super) struct Window {
    mark: *const u8,
    count: AtomicUsize,
    tree: ManuallyDrop<Tree>,
    node: usize,
    offset: i64,
    length: i64,
    null_count: AtomicI64,
    /// How to free the window's own block; `None` when it lies in the tree's.
    layout: Option<Layout>,
}

// SAFETY: a window is only read once it is made, but for its atomic counts, and a tree may be let go on any thread.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Array {
    /// A window on a node of the tree, which the caller has checked to have those values.
    pub(crate) fn window(tree: &Tree, view: View, report: &mut Report<'_>) -> Result<Self> {
        let (memory, layout) = Plan::starting_with::<Window>().allocate(report)?;
        // SAFETY: the memory was just allocated for one window.
        Ok(unsafe { Self::write(memory.cast(), tree.clone(), view, Some(layout)) })
    }

    /// Writes a window at `at`, which is memory for one that is not in use.
    pub(super) unsafe fn write(at: NonNull<Window>, tree: Tree, view: View, layout: Option<Layout>) -> Self {
        let window = Window {
            mark: mark(Kind::Array),
            count: AtomicUsize::new(1),
            tree: ManuallyDrop::new(tree),
            node: view.node,
            offset: view.offset,
            length: view.length,
            null_count: AtomicI64::new(view.null_count),
            layout,
        };
        // SAFETY: as the caller promises.
        unsafe { at.write(window) };
        counts::ARRAYS.add();
        Self(at)
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.raw().tree
    }

    /// Index of the window's node in the tree.
    pub fn node(&self) -> usize {
        self.raw().node
    }

    /// Physical index of the first value, in the node's own buffers.
    pub fn offset(&self) -> i64 {
        self.raw().offset
    }

    /// Number of values.
    pub fn length(&self) -> i64 {
        self.raw().length
    }

    /// The number of nulls in the window as far as it is known, else -1.
    pub fn known_nulls(&self) -> i64 {
        self.raw().null_count.load(Ordering::Relaxed)
    }

    /// Which values the window shows.
    pub fn view(&self) -> View {
        let null_count = self.known_nulls();
        View { node: self.node(), offset: self.offset(), length: self.length(), null_count }
    }

    /// Remembers the number of nulls in the window.
    pub fn remember_nulls(&self, nulls: i64) {
        self.raw().null_count.store(nulls, Ordering::Relaxed);
    }

    /// The handle as a C pointer that owns one count.
    pub fn into_raw(self) -> *mut c_void {
        let raw = self.0.as_ptr().cast();
        core::mem::forget(self);
        raw
    }

    /// The handle behind a C pointer, without counting; `None` when another copy of the library made it.
    ///
    /// # Safety
    /// `raw` came from [`Array::into_raw`] of some copy of the library, and its count has not been let go.
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<c_void>) -> Option<ManuallyDrop<Self>> {
        let handle = ManuallyDrop::new(Self(raw.cast()));
        (handle.raw().mark == mark(Kind::Array)).then_some(handle)
    }

    fn raw(&self) -> &Window {
        // SAFETY: a handle keeps its window alive and initialised.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for Array {
    fn clone(&self) -> Self {
        self.raw().count.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if self.raw().count.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let window = self.0.as_ptr();
        // SAFETY: this was the last handle. A window in the tree's block goes with it, so nothing is read after that.
        unsafe {
            let layout = (*window).layout;
            let tree = ManuallyDrop::take(&mut (*window).tree);
            if let Some(layout) = layout {
                std::alloc::dealloc(window.cast(), layout);
            }
            drop(tree);
        }
        counts::ARRAYS.remove();
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array")
            .field("node", &self.node())
            .field("offset", &self.offset())
            .field("length", &self.length())
            .finish()
    }
}
