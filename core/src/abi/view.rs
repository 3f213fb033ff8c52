//! Views that read a foreign struct's own members, and nothing that it does not vouch for.
//!
//! A view is made where a pointer enters the library, in an `unsafe` block; from then on its readers are safe: every
//! pointer may be NULL, every count is checked by the caller against what the readers return.

use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::{ArrowArray, ArrowSchema};

/// A string that a struct points to: its bytes without the terminator, or why there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CText<'a> {
    /// The pointer is NULL.
    Missing,
    /// No terminator within the limit that the reader was given.
    TooLong,
    /// The bytes up to the terminator.
    Bytes(&'a [u8]),
}

/// A pointer to raw bytes whose length only the bytes themselves can tell.
#[derive(Debug, Clone, Copy)]
pub struct RawBytes<'a> {
    data: NonNull<u8>,
    lives: PhantomData<&'a u8>,
}

impl<'a> RawBytes<'a> {
    /// The first `n` bytes.
    ///
    /// The producer vouches for as many bytes as its own encoding says; call with no more than that.
    pub fn take(self, n: usize) -> &'a [u8] {
        // SAFETY: whoever made the view promised bytes that are as long as their encoding says.
        unsafe { core::slice::from_raw_parts(self.data.as_ptr(), n) }
    }
}

/// Reads one `ArrowSchema` that is not released.
#[derive(Debug, Clone, Copy)]
pub struct SchemaView<'a>(&'a ArrowSchema);

impl<'a> SchemaView<'a> {
    /// A view of `schema`.
    ///
    /// # Safety
    /// Every non-NULL pointer in the struct and below it leads to what the Arrow C Data interface says, for `'a`.
    pub unsafe fn new(schema: &'a ArrowSchema) -> Self {
        Self(schema)
    }

    /// Whether the struct was released or moved out.
    pub fn is_released(self) -> bool {
        self.0.release.is_none()
    }

    /// The format string, read up to `limit` bytes.
    pub fn format(self, limit: usize) -> CText<'a> {
        // SAFETY: whoever made the view promised that the struct's strings are strings.
        unsafe { read_text(self.0.format, limit) }
    }

    /// The name, read up to `limit` bytes.
    pub fn name(self, limit: usize) -> CText<'a> {
        // SAFETY: as above.
        unsafe { read_text(self.0.name, limit) }
    }

    /// The encoded metadata, when there is any.
    pub fn metadata(self) -> Option<RawBytes<'a>> {
        NonNull::new(self.0.metadata.cast_mut().cast()).map(|data| RawBytes { data, lives: PhantomData })
    }

    /// The flags, unknown bits included.
    pub fn flags(self) -> i64 {
        self.0.flags
    }

    /// The number of children that the struct claims.
    pub fn n_children(self) -> i64 {
        self.0.n_children
    }

    /// Child `i`, which must be below the claimed number; `None` where a pointer on the way is NULL.
    pub fn child(self, i: usize) -> Option<SchemaView<'a>> {
        if self.0.children.is_null() || i64::try_from(i).is_ok_and(|i| i >= self.0.n_children) {
            return None;
        }
        // SAFETY: the interface promises `n_children` pointers, and `i` is below that.
        let child = unsafe { self.0.children.add(i).read() };
        // SAFETY: a non-NULL child pointer leads to a schema that lives as long as its parent.
        unsafe { child.as_ref() }.map(SchemaView)
    }

    /// The type of the dictionary's values.
    pub fn dictionary(self) -> Option<SchemaView<'a>> {
        // SAFETY: a non-NULL dictionary pointer leads to a schema that lives as long as its parent.
        unsafe { self.0.dictionary.as_ref() }.map(SchemaView)
    }
}

/// Reads one `ArrowArray`'s own members. Buffers are addresses here: nothing reads what they hold.
#[derive(Debug, Clone, Copy)]
pub struct ArrayView<'a>(&'a ArrowArray);

impl<'a> ArrayView<'a> {
    /// A view of `array`.
    ///
    /// # Safety
    /// Every non-NULL pointer in the struct and below it leads to what the Arrow C Data interface says, for `'a`;
    /// the buffers' own memory is not read.
    pub unsafe fn new(array: &'a ArrowArray) -> Self {
        Self(array)
    }

    /// The struct itself.
    pub fn raw(self) -> &'a ArrowArray {
        self.0
    }

    /// Whether the struct was released or moved out.
    pub fn is_released(self) -> bool {
        self.0.release.is_none()
    }

    /// Address of buffer `i`, which must be below `n_buffers`; NULL where there is no list of buffers.
    pub fn buffer(self, i: usize) -> *const c_void {
        if self.0.buffers.is_null() || i64::try_from(i).is_ok_and(|i| i >= self.0.n_buffers) {
            return core::ptr::null();
        }
        // SAFETY: the interface promises `n_buffers` pointers, and `i` is below that.
        unsafe { self.0.buffers.add(i).read() }
    }

    /// Child `i`, which must be below the claimed number; `None` where a pointer on the way is NULL.
    pub fn child(self, i: usize) -> Option<ArrayView<'a>> {
        if self.0.children.is_null() || i64::try_from(i).is_ok_and(|i| i >= self.0.n_children) {
            return None;
        }
        // SAFETY: the interface promises `n_children` pointers, and `i` is below that.
        let child = unsafe { self.0.children.add(i).read() };
        // SAFETY: a non-NULL child pointer leads to an array that lives as long as its parent.
        unsafe { child.as_ref() }.map(ArrayView)
    }

    /// The dictionary's values.
    pub fn dictionary(self) -> Option<ArrayView<'a>> {
        // SAFETY: a non-NULL dictionary pointer leads to an array that lives as long as its parent.
        unsafe { self.0.dictionary.as_ref() }.map(ArrayView)
    }
}

/// C characters as bytes.
pub fn bytes_of(text: &[c_char]) -> &[u8] {
    // SAFETY: `c_char` has the size and alignment of `u8`, and every bit pattern of either is valid.
    unsafe { core::slice::from_raw_parts(text.as_ptr().cast::<u8>(), text.len()) }
}

/// The string at `text`, read up to `limit` bytes.
///
/// # Safety
/// A non-NULL `text` leads to a string that ends with a NUL and lives for `'a`.
pub unsafe fn read_text<'a>(text: *const c_char, limit: usize) -> CText<'a> {
    if text.is_null() {
        return CText::Missing;
    }
    let mut length = 0usize;
    // SAFETY: no terminator was met before the byte that is read, so it belongs to the string.
    while unsafe { text.add(length).read() } != 0 {
        if length == limit {
            return CText::TooLong;
        }
        length = length.wrapping_add(1);
    }
    // SAFETY: these bytes were just read, and the caller says how long they live.
    CText::Bytes(unsafe { core::slice::from_raw_parts(text.cast(), length) })
}
