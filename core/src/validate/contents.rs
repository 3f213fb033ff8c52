//! What a node's buffers hold.

use core::fmt;
use core::ops::Range;

use super::layouts;
use super::options::Level;
use super::parallel::first_bad;
use super::strings;
use super::structure::Structure;
use super::subject::Subject;
use crate::error::{Findings, Flow, Rule};
use crate::kernels::{Bitmap, Check, Ints, Width, count_zeroes};
use crate::tree::{At, Facts};
use crate::types::{Format, Role, Unit};

/// The contents of one node whose structure is sound, and how to look at them.
pub(super) struct Contents<'a, S: Subject + ?Sized> {
    pub subject: &'a S,
    pub at: At<'a>,
    pub node: Structure,
    pub level: Level,
    pub threads: u32,
    /// The row of the node that is the first one here, where only a part of its rows is looked at.
    pub first: usize,
}

/// Rows that are looked at behind a bad one.
const FEW: usize = 64;

/// A flow that carries what was read, `None` where it cannot be.
pub(super) type Read<T> = core::ops::ControlFlow<(), Option<T>>;

impl<'a, S: Subject + ?Sized> Contents<'a, S> {
    /// Checks what the node's own layout says about its buffers.
    pub(super) fn check(&self, findings: &mut Findings<'_, '_>) -> Flow {
        if self.facts().length == 0 {
            return self.below(findings);
        }
        if self.level == Level::Full {
            self.nulls(findings)?;
        }
        if self.at.node.has_dictionary() {
            return self.full(|| self.alone(findings));
        }
        match self.at.node.format {
            Format::Binary | Format::LargeBinary => strings::offsets(self, findings).map_continue(|_| ()),
            Format::Utf8 | Format::LargeUtf8 => strings::text(self, findings),
            Format::BinaryView => strings::views(self, false, findings),
            Format::Utf8View => strings::views(self, true, findings),
            Format::List | Format::LargeList => layouts::list(self, findings),
            Format::Map => {
                layouts::list(self, findings)?;
                self.full(|| self.keys(findings))
            }
            Format::DenseUnion => self.full(|| layouts::dense(self, findings)),
            Format::RunEndEncoded => layouts::runs(self, findings),
            _ => self.full(|| self.alone(findings)),
        }
    }

    /// Checks rows of which each can be judged alone, by what its own place in the buffers says.
    pub(super) fn alone(&self, findings: &mut Findings<'_, '_>) -> Flow {
        if self.at.node.has_dictionary() {
            return layouts::indices(self, findings);
        }
        match self.at.node.format {
            Format::ListView | Format::LargeListView => layouts::list_views(self, findings),
            Format::SparseUnion => layouts::sparse(self, findings),
            _ => self.values(findings),
        }
    }

    fn keys(&self, findings: &mut Findings<'_, '_>) -> Flow {
        layouts::keys(self, |node, facts| nulls_in(self.subject, node, facts), findings)
    }

    /// Checks what there is without a row of its own: run ends, a map's entries, the sizes of variadic buffers.
    fn below(&self, findings: &mut Findings<'_, '_>) -> Flow {
        match self.at.node.format {
            Format::Map => self.full(|| self.keys(findings)),
            Format::RunEndEncoded => layouts::runs(self, findings),
            Format::BinaryView | Format::Utf8View => strings::views(self, false, findings),
            _ => Flow::Continue(()),
        }
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.node.facts
    }

    /// Number of values; the structure says that it is not negative.
    pub(super) fn length(&self) -> usize {
        usize::try_from(self.node.facts.length).unwrap_or(0)
    }

    fn offset(&self) -> usize {
        usize::try_from(self.node.facts.offset).unwrap_or(0)
    }

    fn full(&self, check: impl FnOnce() -> Flow) -> Flow {
        if self.level == Level::Full { check() } else { Flow::Continue(()) }
    }

    /// A broken rule at the node.
    #[cold]
    pub(super) fn broken(
        &self,
        rule: Rule,
        row: Option<usize>,
        message: fmt::Arguments<'_>,
        findings: &mut Findings<'_, '_>,
    ) -> Flow {
        let row = row.and_then(|row| i64::try_from(row.checked_add(self.first)?).ok()).unwrap_or(-1);
        findings.broken(rule, &self.at.ty.path(self.at.index), row, message)
    }

    /// Runs a check over `n` rows and tells of each bad one; what it says of a row must not depend on others far before.
    pub(super) fn rows<C: Check>(&self, check: &C, n: usize, tell: impl FnMut(usize) -> Flow) -> Flow {
        self.rows_of(check, 0..n, tell)
    }

    /// As [`Contents::rows`], of some rows.
    pub(super) fn rows_of<C: Check>(
        &self,
        check: &C,
        rows: Range<usize>,
        mut tell: impl FnMut(usize) -> Flow,
    ) -> Flow {
        let n = rows.end;
        let Some(bad) = first_bad(check, rows, self.threads) else { return Flow::Continue(()) };
        tell(bad)?;
        // Near a bad row there are often more: what is looked at next starts small, and grows where all is well.
        let (mut at, mut step) = (bad.saturating_add(1), FEW);
        while at < n {
            let end = n.min(at.saturating_add(step));
            match check.first_bad(at..end) {
                Some(bad) => {
                    tell(bad)?;
                    (at, step) = (bad.saturating_add(1), FEW);
                }
                None => (at, step) = (end, step.saturating_mul(2)),
            }
        }
        Flow::Continue(())
    }

    /// The elements of buffer `k` that the window shows, and `more` behind them, `bytes` wide each.
    pub(super) fn elements(&self, k: usize, bytes: usize, more: usize) -> Option<&'a [u8]> {
        let at = self.offset().checked_mul(bytes)?;
        let n = self.length().checked_add(more)?.checked_mul(bytes)?;
        self.subject.bytes(self.at.index, k, at, n)
    }

    /// Integers of buffer `k` that the window shows, and `more` behind them.
    pub(super) fn ints(&self, k: usize, width: Width, signed: bool, more: usize) -> Option<Ints<'a>> {
        self.elements(k, width.bytes(), more).map(|bytes| Ints { bytes, width, signed })
    }

    /// The node's validity bitmap, when it has one.
    pub(super) fn validity(&self) -> Option<Bitmap<'a>> {
        if !self.at.node.layout.has_validity() || self.facts().null_count == 0 {
            return None;
        }
        self.bitmap()
    }

    fn bitmap(&self) -> Option<Bitmap<'a>> {
        let (offset, length) = (self.offset(), self.length());
        let (first, end) = (offset >> 3, offset.checked_add(length)?.div_ceil(8));
        let bytes = self.subject.bytes(self.at.index, 0, first, end.checked_sub(first)?)?;
        Bitmap::new(bytes, offset & 7, length)
    }

    /// Checks the null count, by rule A2.
    fn nulls(&self, findings: &mut Findings<'_, '_>) -> Flow {
        if self.facts().null_count < 0 || !self.at.node.layout.has_validity() {
            return Flow::Continue(());
        }
        self.count(nulls_in(self.subject, self.at.index, self.facts()), findings)
    }

    /// Compares a null count with what was counted, where that could be done.
    pub(super) fn count(&self, counted: Option<i64>, findings: &mut Findings<'_, '_>) -> Flow {
        let claimed = self.facts().null_count;
        match counted {
            Some(counted) if counted != claimed => {
                let message = format_args!(
                    "expected a null count of {counted}, as the validity bitmap has, found {claimed}"
                );
                self.broken(Rule::A2, None, message, findings)
            }
            _ => Flow::Continue(()),
        }
    }

    /// Checks values that have a range of their own, by rule B8.
    fn values(&self, findings: &mut Findings<'_, '_>) -> Flow {
        const DAY: i64 = 86_400;
        let seconds = |unit: Unit| match unit {
            Unit::Second => DAY,
            Unit::Milli => DAY.saturating_mul(1_000),
            Unit::Micro => DAY.saturating_mul(1_000_000),
            Unit::Nano => DAY.saturating_mul(1_000_000_000),
        };
        match self.at.node.format {
            Format::Date64 => layouts::whole_days(self, DAY.saturating_mul(1_000), findings),
            Format::Time32(unit) => layouts::times(self, Width::W32, seconds(unit), findings),
            Format::Time64(unit) => layouts::times(self, Width::W64, seconds(unit), findings),
            Format::Decimal { bits, precision, .. } => layouts::decimals(self, bits, precision, findings),
            _ => Flow::Continue(()),
        }
    }
}

/// The number of nulls that the validity bitmap of a node has for those values; `None` where there is no bitmap to read.
pub(super) fn nulls_in<S: Subject + ?Sized>(subject: &S, node: usize, facts: &Facts) -> Option<i64> {
    let slot = subject.ty().node(node)?.layout.slot_of(0, 1)?;
    if slot.role != Role::Validity || subject.buffer(node, 0).is_null() {
        return None;
    }
    let (offset, length) = (usize::try_from(facts.offset).ok()?, usize::try_from(facts.length).ok()?);
    let (first, end) = (offset >> 3, offset.checked_add(length)?.div_ceil(8));
    let bytes = subject.bytes(node, 0, first, end.checked_sub(first)?)?;
    i64::try_from(count_zeroes(bytes, offset & 7, length)?).ok()
}
