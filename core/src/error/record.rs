//! The record that a caller hands in to learn what went wrong.

use core::ffi::c_char;
use core::fmt::{self, Display, Write};

use super::{Rule, Status, TextBuffer};
use crate::abi::bytes_of;

/// What went wrong in a call: written whole when it fails, untouched when it succeeds.
///
/// The caller owns the memory, which need not be initialised. Text is UTF-8, ends with a NUL and is never cut inside a
/// character. The layout is frozen.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ErrorRecord {
    /// The status that the call returned.
    pub status: i32,
    /// Number of the rule that the data breaks, 0 when it is not about a rule; see `bowstring_rule_name`.
    pub rule: i32,
    /// Row at which it was found, -1 when it is not about a row.
    pub row: i64,
    /// Batch of a stream at which it was found, -1 when it is not about a stream.
    pub batch: i64,
    /// Error number of a driver, a callback or the system, 0 when there is none.
    pub native_code: i64,
    /// The node of the tree: `$` is the root, `$.a.item` a child, `$.b<dictionary>` a dictionary; "" when it is not
    /// about a node.
    pub path: [c_char; 256],
    /// One sentence that says what was expected and what was found.
    pub message: [c_char; 1024],
}

impl ErrorRecord {
    /// A record that says OK.
    pub const fn empty() -> Self {
        Self { status: 0, rule: 0, row: -1, batch: -1, native_code: 0, path: [0; 256], message: [0; 1024] }
    }

    /// The path as text.
    pub fn path(&self) -> &str {
        text_of(&self.path)
    }

    /// The message as text.
    pub fn message(&self) -> &str {
        text_of(&self.message)
    }
}

impl Display for ErrorRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = Status::from_code(self.status).unwrap_or(Status::Internal);
        f.write_str(status.name().to_str().unwrap_or_default())?;
        if !self.path().is_empty() {
            write!(f, " at {}", self.path())?;
        }
        if self.row >= 0 {
            write!(f, ", row {}", self.row)?;
        }
        write!(f, ": {}", self.message())
    }
}

impl core::error::Error for ErrorRecord {}

fn text_of(field: &[c_char]) -> &str {
    let bytes = bytes_of(field);
    let length = bytes.iter().position(|b| *b == 0).unwrap_or(0);
    bytes.get(..length).and_then(|b| core::str::from_utf8(b).ok()).unwrap_or_default()
}

/// Where a fault was found.
#[derive(Clone, Copy)]
pub(super) struct Spot<'a> {
    pub path: &'a dyn Display,
    pub row: i64,
    pub native_code: i64,
}

/// A whole record.
pub(super) fn filled(status: Status, rule: Rule, spot: Spot<'_>, message: fmt::Arguments<'_>) -> ErrorRecord {
    let Spot { path, row, native_code } = spot;
    let mut record =
        ErrorRecord { status: status as i32, rule: rule as i32, row, native_code, ..ErrorRecord::empty() };
    // A writer that runs out of room cuts the text and goes on, so neither call can fail.
    let _ = write!(TextBuffer::over(&mut record.path), "{path}");
    let _ = TextBuffer::over(&mut record.message).write_fmt(message);
    record
}
