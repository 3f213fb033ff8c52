//! Views that read a foreign struct's own members, and nothing that it does not vouch for.
//!
//! A view is made where a pointer enters the library, in an `unsafe` block; from then on its readers are safe: every
//! pointer may be NULL, every count is checked by the caller against what the readers return.

use core::ffi::c_char;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::ArrowSchema;

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
    pub(crate) fn take(self, n: usize) -> &'a [u8] {
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
    #[inline]
    pub fn is_released(self) -> bool {
        self.0.release.is_none()
    }

    /// Whether the struct is alive and has neither children nor a dictionary nor metadata.
    #[inline]
    pub fn is_plain(self) -> bool {
        let schema = self.0;
        // One test of all bits is shorter than three.
        let below = schema.n_children.cast_unsigned() | schema.dictionary.addr() as u64;
        below | schema.metadata.addr() as u64 == 0 && schema.release.is_some()
    }

    /// The format string when it is one byte.
    #[inline]
    pub fn format_letter(self) -> Option<&'a u8> {
        let format: *const u8 = self.0.format.cast();
        // SAFETY: whoever made the view promised a string, so there is a second byte if the first is no terminator.
        let is_letter = !format.is_null() && unsafe { format.read() != 0 && format.add(1).read() == 0 };
        // SAFETY: the byte was just read.
        is_letter.then(|| unsafe { &*format })
    }

    /// The format string, read up to `limit` bytes.
    #[inline]
    pub fn format(self, limit: usize) -> CText<'a> {
        // SAFETY: whoever made the view promised that the struct's strings are strings.
        unsafe { read_text(self.0.format, limit) }
    }

    /// The name, read up to `limit` bytes.
    #[inline]
    pub fn name(self, limit: usize) -> CText<'a> {
        // SAFETY: as above.
        unsafe { read_text(self.0.name, limit) }
    }

    /// The first bytes of the name, at most so many; none when there is no name.
    pub fn name_start(self, most: usize) -> &'a [u8] {
        let name: *const u8 = self.0.name.cast();
        if name.is_null() {
            return &[];
        }
        // SAFETY: whoever made the view promised a string; no byte behind its terminator is read.
        let length = (0..most).take_while(|i| unsafe { name.add(*i).read() } != 0).count();
        // SAFETY: these bytes were just read.
        unsafe { core::slice::from_raw_parts(name, length) }
    }

    /// The encoded metadata, when there is any.
    #[inline]
    pub fn metadata(self) -> Option<RawBytes<'a>> {
        NonNull::new(self.0.metadata.cast_mut().cast()).map(|data| RawBytes { data, lives: PhantomData })
    }

    /// The flags, unknown bits included.
    #[inline]
    pub fn flags(self) -> i64 {
        self.0.flags
    }

    /// The number of children that the struct claims.
    #[inline]
    pub fn n_children(self) -> i64 {
        self.0.n_children
    }

    /// Child `i`, which must be below the claimed number; `None` where a pointer on the way is NULL.
    pub fn child(self, i: usize) -> Option<SchemaView<'a>> {
        self.children(i.saturating_add(1)).nth(i).flatten()
    }

    /// The first `n` children, which must not be more than the claimed number.
    #[inline]
    pub fn children(self, n: usize) -> SchemaChildren<'a> {
        let left = n.min(usize::try_from(self.0.n_children).unwrap_or(0));
        // A list that cannot be where the pointer leads is none.
        let list = self.0.children;
        let next = if list.is_aligned() { list } else { core::ptr::null_mut() };
        SchemaChildren { next, left, lives: PhantomData }
    }

    /// The type of the dictionary's values.
    #[inline]
    pub fn dictionary(self) -> Option<SchemaView<'a>> {
        // SAFETY: a non-NULL dictionary pointer leads to a schema that lives as long as its parent.
        unsafe { aligned(self.0.dictionary) }.map(SchemaView)
    }

    /// Whether there is no list of children.
    pub fn has_no_list(self) -> bool {
        self.0.children.is_null()
    }

    /// Whether the list of children or the dictionary is where no such thing can be.
    #[inline]
    pub fn is_misaligned(self) -> bool {
        (self.0.n_children > 0 && !self.0.children.is_aligned()) || !self.0.dictionary.is_aligned()
    }
}

/// What a pointer leads to, `None` when it is NULL or where no such thing can be.
#[inline]
unsafe fn aligned<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: as the caller promises for a pointer that is aligned and not NULL.
    if pointer.is_aligned() { unsafe { pointer.as_ref() } } else { None }
}

/// Children of a schema, `None` where a pointer on the way is NULL. A pointer is read when it is its turn.
#[derive(Debug, Clone)]
pub struct SchemaChildren<'a> {
    next: *const *mut ArrowSchema,
    left: usize,
    lives: PhantomData<&'a ArrowSchema>,
}

impl<'a> SchemaChildren<'a> {
    /// Passes over children as long as each pointer leads to one and `pass` says so, at most so many; says how many.
    #[inline]
    pub fn pass_while(&mut self, most: usize, mut pass: impl FnMut(SchemaView<'a>) -> bool) -> usize {
        let n = if self.next.is_null() { 0 } else { self.left.min(most) };
        let mut passed = 0;
        while passed < n {
            // SAFETY: the interface promises as many pointers as children, and so many were left.
            let child = unsafe { self.next.add(passed).read() };
            // SAFETY: a non-NULL child pointer leads to a schema that lives as long as its parent.
            match unsafe { aligned(child) } {
                Some(child) if pass(SchemaView(child)) => passed = passed.wrapping_add(1),
                _ => break,
            }
        }
        // SAFETY: no more were passed than there are.
        self.next = unsafe { self.next.add(passed) };
        self.left = self.left.wrapping_sub(passed);
        passed
    }
}

impl<'a> Iterator for SchemaChildren<'a> {
    type Item = Option<SchemaView<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        if self.next.is_null() {
            return Some(None);
        }
        // SAFETY: the interface promises as many pointers as children, and one that was left.
        let child = unsafe { self.next.read() };
        // SAFETY: as above.
        self.next = unsafe { self.next.add(1) };
        // SAFETY: a non-NULL child pointer leads to a schema that lives as long as its parent.
        Some(unsafe { aligned(child) }.map(SchemaView))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for SchemaChildren<'_> {}

/// C characters as bytes.
pub fn bytes_of(text: &[c_char]) -> &[u8] {
    // SAFETY: `c_char` has the size and alignment of `u8`, and every bit pattern of either is valid.
    unsafe { core::slice::from_raw_parts(text.as_ptr().cast::<u8>(), text.len()) }
}

/// The string at `text`, read up to `limit` bytes.
///
/// # Safety
/// A non-NULL `text` leads to a string that ends with a NUL and lives for `'a`.
#[inline(always)]
pub unsafe fn read_text<'a>(text: *const c_char, limit: usize) -> CText<'a> {
    if text.is_null() {
        return CText::Missing;
    }
    const STRIDE: usize = 16;
    let mut length = 0usize;
    loop {
        // Many at a time, so that the limit is looked at once for all.
        for ahead in 0..STRIDE {
            // SAFETY: no terminator was met before the byte that is read, so it belongs to the string.
            if unsafe { text.add(length.wrapping_add(ahead)).read() } == 0 {
                length = length.wrapping_add(ahead);
                if length > limit {
                    return CText::TooLong;
                }
                // SAFETY: these bytes were just read, and the caller says how long they live.
                return CText::Bytes(unsafe { core::slice::from_raw_parts(text.cast(), length) });
            }
        }
        length = length.wrapping_add(STRIDE);
        if length > limit {
            return CText::TooLong;
        }
    }
}
