//! One value on the heap, where memory may run out.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::alloc::Layout;

use crate::error::{Report, Result};

/// A value in a block of its own, which goes with its owner.
pub struct Own<T: ?Sized>(NonNull<T>, PhantomData<T>);

// SAFETY: the value is the owner's alone.
unsafe impl<T: Send + ?Sized> Send for Own<T> {}
// SAFETY: as above.
unsafe impl<T: Sync + ?Sized> Sync for Own<T> {}

/// The block of a value. Values without bytes have one as well.
fn block_of<T: ?Sized>(value: &T) -> Layout {
    let layout = Layout::for_value(value);
    Layout::from_size_align(layout.size().max(1), layout.align()).unwrap_or(layout)
}

/// Memory for a value that is not there yet.
pub struct Space<T>(NonNull<T>, Layout);

// SAFETY: there is nothing in it.
unsafe impl<T> Send for Space<T> {}

impl<T> Space<T> {
    /// One allocation.
    pub fn reserve(report: &mut Report<'_>) -> Result<Self> {
        let layout = Layout::new::<T>();
        let layout = Layout::from_size_align(layout.size().max(1), layout.align()).unwrap_or(layout);
        // SAFETY: the size is not zero.
        match NonNull::new(unsafe { std::alloc::alloc(layout) }) {
            Some(memory) => Ok(Self(memory.cast(), layout)),
            None => Err(report.out_of_memory(layout.size())),
        }
    }

    /// Puts the value in.
    pub fn fill(self, value: T) -> Own<T> {
        let at = self.0;
        core::mem::forget(self);
        // SAFETY: the memory was allocated for such a value, and there is none in it.
        unsafe { at.write(value) };
        Own(at, PhantomData)
    }
}

impl<T> Drop for Space<T> {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and no value took it over.
        unsafe { std::alloc::dealloc(self.0.cast().as_ptr(), self.1) };
    }
}

impl<T> fmt::Debug for Space<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Space").field(&self.0).finish()
    }
}

impl<T> Own<T> {
    /// The value without its block.
    pub fn into_inner(self) -> T {
        let at = self.into_raw();
        // SAFETY: the value was made in a block of this layout, nobody else has it, and it is moved out before the block goes.
        unsafe {
            let value = at.read();
            std::alloc::dealloc(at.cast().as_ptr(), block_of(at.as_ref()));
            value
        }
    }
}

impl<T: ?Sized> Own<T> {
    /// The value's address; whoever has it owns the value.
    pub fn into_raw(self) -> NonNull<T> {
        let raw = self.0;
        core::mem::forget(self);
        raw
    }

    /// The owner of a value.
    ///
    /// # Safety
    /// `raw` came from [`Own::into_raw`], perhaps as another type that its value has, and is given back once.
    pub unsafe fn from_raw(raw: NonNull<T>) -> Self {
        Self(raw, PhantomData)
    }
}

impl<T: ?Sized> Deref for Own<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value lives as long as its owner.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for Own<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the value lives as long as its owner, who is borrowed whole.
        unsafe { self.0.as_mut() }
    }
}

impl<T: ?Sized> Drop for Own<T> {
    fn drop(&mut self) {
        let layout = block_of(&**self);
        // SAFETY: the value was made in a block of this layout, and nobody else has it.
        unsafe {
            self.0.drop_in_place();
            std::alloc::dealloc(self.0.cast().as_ptr(), layout);
        }
    }
}

impl<T: ?Sized> fmt::Debug for Own<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Own").field(&self.0).finish()
    }
}
