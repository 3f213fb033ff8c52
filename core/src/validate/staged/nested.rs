//! Offsets of lists, keys of maps, dense unions, run ends.

use super::super::layouts::{LIST_LIMIT, NO_OFFSETS, Runs, dense, dense_rows, keys, list_limit};
use super::super::options::Level;
use super::super::strings::{ascending, number};
use super::{NO_PIECE, Needed, Staged, Walk, Wanted, rows_within};
use crate::error::{Findings, Flow};

impl Walk<'_, '_> {
    /// Checks the offsets of a list or map against its child, by rule B1.
    pub(super) fn list(&mut self, findings: &mut Findings<'_, '_>) -> Flow {
        let staged = Staged::new(self.reader.subject, &[]);
        let limit = list_limit(&self.node.part(&staged, 0..self.node.length()));
        let Some(limit) = limit else { return Flow::Continue(()) };
        if self.ends(limit, LIST_LIMIT, findings)?.is_some() {
            self.ascent(limit, LIST_LIMIT, findings)?;
        }
        Flow::Continue(())
    }

    /// Checks each offset; `Some` when all are good.
    pub(super) fn ascent(
        &mut self,
        limit: i64,
        of: &str,
        findings: &mut Findings<'_, '_>,
    ) -> super::super::contents::Read<()> {
        let width = self.width();
        let mut sound = Some(());
        if self.node.level == Level::Full {
            let offsets = Needed { k: 1, bits: width.bytes().saturating_mul(8), more: 1 };
            let mut seen = 0;
            self.blocks([offsets], findings, |part, findings| {
                let Some(ints) = part.ints(1, width, true, 1) else { return Flow::Continue(()) };
                seen = part.first.saturating_add(part.length());
                sound = ascending(part, ints, limit, of, findings)?.and(sound);
                Flow::Continue(())
            })?;
            // What could not be read is not known to be good.
            sound = sound.filter(|()| seen == self.node.length());
        }
        super::super::contents::Read::Continue(sound)
    }

    /// Checks that a map's entries and keys have no nulls, by rule F5.
    pub(super) fn keys(&mut self, findings: &mut Findings<'_, '_>) -> Flow {
        let (subject, node) = (self.reader.subject, self.node);
        let staged = Staged::new(subject, &[]);
        let whole = node.part(&staged, 0..node.length());
        keys(&whole, |index, facts| self.count_nulls(index, facts, false), findings)
    }

    /// Checks the type ids and offsets of a dense union, by rule B5.
    pub(super) fn dense(&mut self, findings: &mut Findings<'_, '_>) -> Flow {
        let needed = [Needed { k: 0, bits: 8, more: 0 }, Needed { k: 1, bits: 32, more: 0 }];
        let is_one = rows_within(self.reader.share, &needed) >= self.node.length();
        let mut largest = NO_OFFSETS;
        self.blocks(needed, findings, |part, findings| match is_one {
            true => dense(part, findings),
            false => dense_rows(part, &mut largest, findings),
        })
    }

    /// Checks run ends, by rule B7.
    pub(super) fn runs(&mut self, findings: &mut Findings<'_, '_>) -> Flow {
        let (subject, node) = (self.reader.subject, self.node);
        let nothing = Staged::new(subject, &[]);
        let whole = node.part(&nothing, 0..node.length());
        let Some(runs) = Runs::below(&whole) else { return Flow::Continue(()) };
        let n = runs.len();
        let wanted = |rows| {
            let place = runs.place(rows);
            place.map(|(at, n)| Wanted { node: runs.node, k: 1, at, n })
        };
        if !wanted(0..n).is_some_and(|wanted| self.is_readable_below(wanted)) {
            return Flow::Continue(());
        }
        let mut ascends = Some(());
        if node.level == Level::Full {
            let nulls = self.count_nulls(runs.node, &runs.facts, false);
            runs.check_nulls(&whole, nulls, findings)?;
            let width = runs.width.bytes();
            let step = self.reader.share.checked_div(width).unwrap_or(0).saturating_sub(1).max(1);
            let mut start = 0_usize;
            while start < n {
                // Each is compared with the one before it.
                let first = start.saturating_sub(1);
                let end = n.min(start.saturating_add(step));
                let Some(wanted) = wanted(first..end) else { break };
                let Some(pieces) = self.reader.stage(&mut self.rooms.rows, [wanted]) else {
                    return Flow::Continue(());
                };
                let [ends] = pieces.map(|piece| runs.ints(piece.bytes));
                let rows = start.saturating_sub(first)..end.saturating_sub(first);
                ascends = runs.check_ascent(&whole, ends, rows, first, findings)?.and(ascends);
                start = end;
            }
        }
        let last = wanted(n.saturating_sub(1)..n).filter(|_| ascends.is_some());
        let Some(wanted) = last else { return Flow::Continue(()) };
        let pieces = self.reader.stage(&mut self.rooms.rows, [wanted]);
        let [piece] = pieces.unwrap_or([NO_PIECE]);
        match number(runs.ints(piece.bytes), 0) {
            Some(last) => runs.check_last(&whole, last, findings),
            None => Flow::Continue(()),
        }
    }
}
