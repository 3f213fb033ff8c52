//! Text of a limited size, cut between characters.

use core::ffi::c_char;
use core::fmt::{self, Write};

/// Writes text into a caller's memory and counts what it would have taken.
///
/// What does not fit is dropped, never in the middle of a character; the text always ends with a NUL when there is
/// room for one.
#[derive(Debug)]
pub struct TextBuffer<'a> {
    out: &'a mut [c_char],
    used: usize,
    full: bool,
    needed: usize,
}

impl<'a> TextBuffer<'a> {
    /// Text over `out`, which is given a NUL at its start.
    pub fn over(out: &'a mut [c_char]) -> Self {
        if let Some(first) = out.first_mut() {
            *first = 0;
        }
        Self { out, used: 0, full: false, needed: 0 }
    }

    /// Bytes that the whole text takes, with the NUL.
    pub fn needed(&self) -> usize {
        self.needed.saturating_add(1)
    }
}

impl Write for TextBuffer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.needed = self.needed.saturating_add(text.len());
        if self.full {
            return Ok(());
        }
        let room = self.out.len().saturating_sub(self.used).saturating_sub(1);
        let mut length = text.len().min(room);
        while !text.is_char_boundary(length) {
            length = length.saturating_sub(1);
        }
        self.full = length < text.len();
        let rest = self.out.iter_mut().skip(self.used);
        for (to, from) in rest.zip(text.bytes().take(length).chain(core::iter::once(0))) {
            *to = from as c_char;
        }
        self.used = self.used.saturating_add(length);
        Ok(())
    }
}

/// Bytes that are text if the world is kind: what is not UTF-8 is shown as U+FFFD.
#[derive(Debug, Clone, Copy)]
pub struct Lossy<'a>(pub &'a [u8]);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_char(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Ok(())
    }
}
