//! What a check finds: the first error for whoever only asks whether, every finding for whoever listens.

use core::fmt::{self, Display};
use core::ops::ControlFlow;

use super::record::{Spot, filled};
use super::rules::rule_severity;
use super::{ErrorRecord, Failed, Report, Result, Rule, Status};

/// How grave a finding is. The numbers are part of the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Severity {
    /// A rule is broken, or the named consumer would refuse, crash on or misread the data.
    Error = 0,
    /// Legal, but a recommendation is not kept, or the named consumer would copy.
    Warning = 1,
    /// Worth knowing.
    Note = 2,
}

/// Whether a check goes on.
pub type Flow = ControlFlow<()>;

/// Told of each finding; says whether to go on.
pub type Listener<'a> = &'a mut dyn FnMut(Severity, &ErrorRecord) -> bool;

/// Collects what a check finds.
pub struct Findings<'a, 'r> {
    report: &'a mut Report<'r>,
    listener: Option<Listener<'a>>,
    /// How many more findings are told; what comes after them only counts when no error is known yet.
    left: usize,
    failed: Option<Failed>,
    stopped: bool,
}

impl<'a, 'r> Findings<'a, 'r> {
    /// Without a listener, the check ends with the first error.
    pub fn first(report: &'a mut Report<'r>) -> Self {
        Self { report, listener: None, left: 0, failed: None, stopped: false }
    }

    /// Tells the listener of the first `most` findings.
    pub fn all(report: &'a mut Report<'r>, listener: Listener<'a>, most: usize) -> Self {
        Self { report, listener: Some(listener), left: most, failed: None, stopped: false }
    }

    /// Whether anybody wants to hear of what is no error.
    pub fn is_told(&self) -> bool {
        self.listener.is_some() && self.left > 0
    }

    /// Whether an error was found.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// The outcome: the first error, or that the listener ended the check before it was complete.
    pub fn finish(self) -> Result<()> {
        match self.failed {
            Some(failed) => Err(failed),
            None if self.stopped => Err(self.report.fail(
                Status::Cancelled,
                format_args!("expected on_finding to return 0, found that it did not"),
            )),
            None => Ok(()),
        }
    }

    /// The outcome where something kept the check from being complete: an error that was found counts more.
    pub fn finish_with(self, incomplete: impl FnOnce(&mut Report<'_>) -> Failed) -> Result<()> {
        if self.failed.is_some() || self.stopped {
            return self.finish();
        }
        Err(incomplete(self.report))
    }

    /// Runs a check that reports at most one error, and says whether it passed.
    #[inline]
    pub fn check<T>(
        &mut self,
        check: impl FnOnce(&mut Report<'_>) -> Result<T>,
    ) -> ControlFlow<(), Option<T>> {
        if self.listener.is_none() {
            return match check(self.report) {
                Ok(value) => ControlFlow::Continue(Some(value)),
                Err(failed) => {
                    self.failed = Some(failed);
                    ControlFlow::Break(())
                }
            };
        }
        let mut record = ErrorRecord::empty();
        match check(&mut Report::new(&mut record)) {
            Ok(value) => ControlFlow::Continue(Some(value)),
            Err(failed) => {
                self.told(Severity::Error, failed, &record)?;
                ControlFlow::Continue(None)
            }
        }
    }

    /// A broken rule, as grave as the table says; `row` is -1 when it is not about one.
    #[cold]
    pub fn broken(&mut self, rule: Rule, path: &dyn Display, row: i64, message: fmt::Arguments<'_>) -> Flow {
        let severity = rule_severity(rule as i32).unwrap_or(Severity::Error);
        let status = if severity == Severity::Error { Status::InvalidData } else { Status::Ok };
        self.found(severity, status, rule, path, row, message)
    }

    /// What a consumer would do with legal data: refuse, crash or misread as an error, copy as a warning.
    #[cold]
    pub fn consumer(
        &mut self,
        severity: Severity,
        rule: Rule,
        path: &dyn Display,
        message: fmt::Arguments<'_>,
    ) -> Flow {
        let status = if severity == Severity::Error { Status::NotConforming } else { Status::Ok };
        self.found(severity, status, rule, path, -1, message)
    }

    #[cold]
    fn found(
        &mut self,
        severity: Severity,
        status: Status,
        rule: Rule,
        path: &dyn Display,
        row: i64,
        message: fmt::Arguments<'_>,
    ) -> Flow {
        if severity != Severity::Error && !self.is_told() {
            return Flow::Continue(());
        }
        let record = filled(status, rule, Spot { path, row, native_code: 0 }, message);
        self.told(severity, Failed(status), &record)
    }

    fn told(&mut self, severity: Severity, failed: Failed, record: &ErrorRecord) -> Flow {
        if severity == Severity::Error && self.failed.is_none() {
            self.failed = Some(failed);
            self.report.put(record);
        }
        let Some(listener) = &mut self.listener else { return Flow::Break(()) };
        if self.left > 0 {
            self.left = self.left.wrapping_sub(1);
            if !listener(severity, record) {
                self.stopped = true;
                return Flow::Break(());
            }
        }
        if self.left == 0 && self.failed.is_some() { Flow::Break(()) } else { Flow::Continue(()) }
    }
}

impl fmt::Debug for Findings<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Findings").field("left", &self.left).field("failed", &self.failed).finish()
    }
}
