//! What can go wrong, and how it is told: a status, a rule, a path and a message in the caller's own memory.
//!
//! A fallible function takes a [`Report`] and returns [`Result`]; the text is written once, where the fault is found,
//! and nothing is allocated. [`capture`] turns that into an ordinary `Result` with an [`ErrorRecord`] for Rust callers.

mod findings;
mod record;
mod rules;
mod status;
mod text;

pub use findings::{Findings, Flow, Listener, Severity};
pub use record::ErrorRecord;
pub use rules::{ALL as ALL_RULES, Rule, rule_name, rule_severity, rule_source, rule_text};
pub use status::Status;
pub use text::{Lossy, TextBuffer};

use core::fmt::{self, Display};
use core::mem::MaybeUninit;

use record::Spot;

/// The result of everything that can fail.
pub type Result<T> = core::result::Result<T, Failed>;

/// A failure whose text is already in the [`Report`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Failed(Status);

impl Failed {
    /// What kind of failure it was.
    pub fn status(self) -> Status {
        self.0
    }
}

/// Where a failure is to be written: a caller's record, or nowhere.
#[derive(Debug)]
pub struct Report<'a> {
    target: Target<'a>,
}

#[derive(Debug)]
enum Target<'a> {
    Nowhere,
    Record(&'a mut ErrorRecord),
    Memory(&'a mut MaybeUninit<ErrorRecord>),
}

impl<'a> Report<'a> {
    /// Writes failures into `record`.
    pub fn new(record: &'a mut ErrorRecord) -> Self {
        Self { target: Target::Record(record) }
    }

    /// Writes failures into memory that need not be initialised; without any the text is dropped.
    #[inline]
    pub fn into_memory(memory: Option<&'a mut MaybeUninit<ErrorRecord>>) -> Self {
        Self { target: memory.map_or(Target::Nowhere, Target::Memory) }
    }

    /// Drops the text of failures and keeps their status.
    pub fn silent() -> Report<'static> {
        Report { target: Target::Nowhere }
    }

    /// A failure of the call itself: no rule, no path.
    #[cold]
    pub fn fail(&mut self, status: Status, message: fmt::Arguments<'_>) -> Failed {
        self.write(status, Rule::None, Spot { path: &"", row: -1, native_code: 0 }, message)
    }

    /// A broken rule of the interfaces, at a node of the tree.
    #[cold]
    pub fn broken(&mut self, rule: Rule, path: &dyn Display, message: fmt::Arguments<'_>) -> Failed {
        self.write(Status::InvalidData, rule, Spot { path, row: -1, native_code: 0 }, message)
    }

    /// A failure at a node of the tree, with the rule that it concerns.
    #[cold]
    pub fn fail_at(
        &mut self,
        status: Status,
        rule: Rule,
        path: &dyn Display,
        message: fmt::Arguments<'_>,
    ) -> Failed {
        self.write(status, rule, Spot { path, row: -1, native_code: 0 }, message)
    }

    /// A failure at a row of a node.
    #[cold]
    pub fn fail_at_row(
        &mut self,
        status: Status,
        rule: Rule,
        path: &dyn Display,
        row: i64,
        message: fmt::Arguments<'_>,
    ) -> Failed {
        self.write(status, rule, Spot { path, row, native_code: 0 }, message)
    }

    /// A callback returned an error number.
    #[cold]
    pub fn callback_failed(&mut self, code: i32, path: &dyn Display, message: fmt::Arguments<'_>) -> Failed {
        let spot = Spot { path, row: -1, native_code: i64::from(code) };
        self.write(Status::CallbackError, Rule::None, spot, message)
    }

    /// A failure that came with an error number of its own.
    #[cold]
    pub fn fail_with_code(&mut self, status: Status, code: i64, message: fmt::Arguments<'_>) -> Failed {
        self.write(status, Rule::None, Spot { path: &"", row: -1, native_code: code }, message)
    }

    /// A failure that was told before.
    #[cold]
    pub fn repeat(&mut self, record: &ErrorRecord) -> Failed {
        self.put(record);
        Failed(Status::from_code(record.status).unwrap_or(Status::Internal))
    }

    /// Memory ran out while `bytes` were asked for.
    #[cold]
    pub fn out_of_memory(&mut self, bytes: usize) -> Failed {
        self.fail(Status::OutOfMemory, format_args!("could not allocate {bytes} bytes"))
    }

    /// A failure that was reported into `record` before.
    pub(crate) fn again(&mut self, failed: Failed, record: &ErrorRecord) -> Failed {
        self.put(record);
        failed
    }

    /// Writes a whole record.
    fn put(&mut self, record: &ErrorRecord) {
        match &mut self.target {
            Target::Nowhere => {}
            Target::Record(target) => **target = *record,
            Target::Memory(memory) => {
                memory.write(*record);
            }
        }
    }

    fn write(&mut self, status: Status, rule: Rule, spot: Spot<'_>, message: fmt::Arguments<'_>) -> Failed {
        match &mut self.target {
            Target::Nowhere => {}
            Target::Record(record) => **record = record::filled(status, rule, spot, message),
            Target::Memory(memory) => {
                memory.write(record::filled(status, rule, spot, message));
            }
        }
        Failed(status)
    }
}

/// Calls `f` with a report of its own and returns the record of what went wrong.
#[allow(clippy::result_large_err, reason = "the record is the whole error, and lives on the stack")]
pub fn capture<T>(f: impl FnOnce(&mut Report<'_>) -> Result<T>) -> core::result::Result<T, ErrorRecord> {
    let mut record = ErrorRecord::empty();
    match f(&mut Report::new(&mut record)) {
        Ok(value) => Ok(value),
        Err(_) => Err(record),
    }
}
