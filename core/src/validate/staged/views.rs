//! Views: only the bytes that they lead to are copied, and views of those copies are checked in their place.

use core::ops::Range;

use super::super::options::Level;
use super::super::strings::{VIEW, Variadic, View, view_rows};
use super::{NOTHING, Needed, Staged, Walk, Wanted, rows_within, wanted_of};
use crate::error::{Findings, Flow, Report, Result, Rule, Status};
use crate::kernels::{Bitmap, Buffers, ViewMode, Views};
use crate::tree::Fetch;
use crate::types::Role;

/// Bytes of a variadic buffer that are copied although no view leads to them, where that makes one copy of two.
const GAP: usize = 1 << 12;

/// Bytes that a view leads to, or several views together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    which: u32,
    start: u32,
    end: u32,
    row: u32,
}

/// The copies, as the one buffer that all views lead to.
#[derive(Clone, Copy)]
struct Copied<'a>(&'a [u8]);

impl Buffers for Copied<'_> {
    fn count(&self) -> usize {
        1
    }

    fn get(&self, i: usize) -> Option<&[u8]> {
        (i == 0).then_some(self.0)
    }
}

impl Walk<'_, '_> {
    /// Checks views, by rules B2 and B8.
    pub(super) fn views(&mut self, utf8: bool, findings: &mut Findings<'_, '_>) -> Flow {
        let node = self.node;
        let count = node.structure.count.saturating_sub(3);
        let Some(sizes) = self.sizes(count) else { return Flow::Continue(()) };
        let bytes = core::mem::take(&mut self.rooms.sizes);
        let done = self.with_sizes(count, bytes.bytes().get(..sizes).unwrap_or_default(), utf8, findings);
        self.rooms.sizes = bytes;
        done
    }

    /// Copies the sizes of the variadic buffers, where nobody else knows them; how many bytes they have.
    fn sizes(&mut self, count: usize) -> Option<usize> {
        let Walk { reader, rooms, node } = self;
        let (subject, index) = (reader.subject, node.at.index);
        if !(0..count).any(|i| subject.stated_size(index, i.saturating_add(2)) < 0) {
            return Some(0);
        }
        let k = node.structure.count.wrapping_sub(1);
        let n = count.saturating_mul(8);
        if !reader.is_there(Wanted { node: index, k, at: 0, n }) {
            return Some(0);
        }
        let most = reader.most;
        reader.attempt(|_, report| {
            if n <= most || subject.is_elsewhere(index, k, report)? {
                return Ok(());
            }
            let message = format_args!(
                "expected staging_bytes of at least {n} for the sizes of {count} variadic buffers, found {most}"
            );
            let path = subject.ty().path(index);
            Err(report.fail_at(Status::Unsupported, Rule::None, &path, message))
        })?;
        reader.attempt_to_read(|this, report| {
            let into = rooms.sizes.room(n, most, report)?;
            this.fetch(&mut [Fetch { node: index, k, at: 0, into }], report)
        })?;
        Some(n)
    }

    fn with_sizes(
        &mut self,
        count: usize,
        sizes: &[u8],
        utf8: bool,
        findings: &mut Findings<'_, '_>,
    ) -> Flow {
        let (subject, node, n) = (self.reader.subject, self.node, self.node.length());
        let index = node.at.index;
        let nothing = Staged::new(subject, &[]);
        let buffers = Variadic::over(&nothing, index, count, sizes);
        buffers.check(&node.part(&nothing, 0..n), findings)?;
        let mut is_fine = true;
        for i in 0..count {
            let k = i.saturating_add(2);
            if buffers.size(i) > 0 && !subject.buffer(index, k).is_null() {
                is_fine &= self.address(k, Role::Variadic, findings)?;
            }
        }
        let views = Needed { k: 1, bits: VIEW.saturating_mul(8), more: 0 };
        let is_there = wanted_of(&node, views, &(0..n)).is_some_and(|views| self.reader.is_there(views));
        if !is_fine || !is_there || n == 0 || node.level != Level::Full {
            return Flow::Continue(());
        }
        let bits = if node.facts().null_count == 0 { NOTHING } else { Needed { k: 0, bits: 1, more: 0 } };
        let needed = [bits, views];
        let step = rows_within(self.reader.share, &needed).min(1 << 31);
        let room = self.reader.most.saturating_sub(self.reader.share.saturating_mul(2));
        let room = room.saturating_sub(sizes.len()).min(i32::MAX.unsigned_abs() as usize);
        let mut start = 0;
        while start < n {
            let rows = start..n.min(start.saturating_add(step));
            start = rows.end;
            let wanted = needed.map(|needed| wanted_of(&node, needed, &rows).unwrap_or_default());
            let share = self.reader.share;
            let Some(pieces) = self.reader.stage(&mut self.rooms.rows, wanted) else {
                return Flow::Continue(());
            };
            let [_, told] = pieces.map(|piece| piece.bytes);
            let staged = Staged::new(subject, &pieces);
            let block = node.part(&staged, rows.clone());
            let validity = block.validity();
            let mut done = 0;
            while done < rows.len() {
                let gather = Gather { buffers: &buffers, told, validity, room };
                let (views, spans, values) =
                    (&mut self.rooms.views, &mut self.rooms.spans, &mut self.rooms.values);
                let copied = self.reader.attempt_to_read(|reader, report| {
                    let rest = done..rows.len();
                    let views = views.room(told.len(), share, report)?;
                    let (part, size) = gather.plan(rest, views, spans, report)?;
                    let values = values.room(size, room, report)?;
                    let mut fetches = fetches(index, spans, values, report)?;
                    reader.fetch(&mut fetches, report)?;
                    Ok((part, size))
                });
                let Some((part, size)) = copied else { return Flow::Continue(()) };
                done = part.end;
                let shown = rows.start.saturating_add(part.start)..rows.start.saturating_add(part.end);
                let contents = node.part(&staged, shown);
                let copies = Copied(self.rooms.values.bytes().get(..size).unwrap_or_default());
                let views = rows_of(self.rooms.views.bytes(), &part);
                let validity = contents.validity();
                let check = Views { views, buffers: copies, utf8, validity, mode: ViewMode::Both };
                let buffers = Variadic::over(&staged, index, count, sizes);
                view_rows(&contents, &check, rows_of(told, &part), &buffers, findings)?;
            }
            self.reader.settle(&staged);
        }
        Flow::Continue(())
    }
}

fn rows_of<'b>(views: &'b [u8], rows: &Range<usize>) -> &'b [u8] {
    views.get(rows.start.saturating_mul(VIEW)..rows.end.saturating_mul(VIEW)).unwrap_or_default()
}

/// Finds out what a block of views needs.
struct Gather<'a> {
    buffers: &'a Variadic<'a, Staged<'a>>,
    told: &'a [u8],
    validity: Option<Bitmap<'a>>,
    /// The most bytes of values at once.
    room: usize,
}

impl Gather<'_> {
    /// Plans as many of some rows as have room for their values, at least one: writes views that lead into the copies, and
    /// the spans to copy, one behind the other; how many bytes these have.
    fn plan(
        &self,
        rows: Range<usize>,
        views: &mut [u8],
        spans: &mut Vec<Span>,
        report: &mut Report<'_>,
    ) -> Result<(Range<usize>, usize)> {
        spans.clear();
        if spans.try_reserve(rows.len()).is_err() {
            return Err(report.out_of_memory(rows.len().saturating_mul(size_of::<Span>())));
        }
        let (mut total, mut end) = (0_usize, rows.start);
        for row in rows.clone() {
            let is_null = self.validity.is_some_and(|validity| !validity.get(row));
            let view = View::at(self.told, row);
            let mut judged = [0; VIEW];
            if !is_null {
                // Whatever lies under a null is free.
                let own = rows_of(self.told, &(row..row.saturating_add(1)));
                judged = own.first_chunk().copied().unwrap_or_default();
            }
            if !is_null && view.is_long() {
                match self.buffers.range_of(view) {
                    Some(range) => {
                        let sum = total.saturating_add(range.len());
                        if sum > self.room && row > rows.start {
                            break;
                        }
                        total = sum;
                        let [start, end, row] = [range.start, range.end, row].map(narrow);
                        spans.push(Span { which: view.which.unsigned_abs(), start, end, row });
                    }
                    // It leads nowhere, and no copy may make it good.
                    None => write(&mut judged, 0, u32::MAX),
                }
            }
            let place = views.get_mut(row.saturating_mul(VIEW)..).and_then(<[u8]>::first_chunk_mut);
            if let Some(place) = place {
                *place = judged;
            }
            end = row.saturating_add(1);
        }
        spans.sort_unstable();
        let size = merge(views, spans, self.room.saturating_sub(total));
        Ok((rows.start..end, size))
    }
}

/// Makes one span of those that lie together, as long as there are bytes to spare for what is between them, and lets each
/// view lead to where its bytes will be. How many bytes that are.
fn merge(views: &mut [u8], spans: &mut Vec<Span>, mut spare: usize) -> usize {
    let (mut size, mut count) = (0_usize, 0_usize);
    let mut merged: Option<Span> = None;
    for i in 0..spans.len() {
        let Some(span) = spans.get(i).copied() else { break };
        let gap = merged
            .filter(|merged| merged.which == span.which)
            .map(|merged| span.start.saturating_sub(merged.end) as usize);
        let joined = gap.filter(|gap| *gap <= GAP.min(spare)).zip(merged);
        let current = match joined {
            Some((gap, before)) => {
                spare = spare.saturating_sub(gap);
                Span { end: before.end.max(span.end), ..before }
            }
            None => {
                count = count.saturating_add(1);
                span
            }
        };
        let longer = joined.map_or(0, |(_, before)| before.end.saturating_sub(before.start) as usize);
        let first = size.saturating_sub(longer);
        let place = first.saturating_add(span.start.saturating_sub(current.start) as usize);
        size = first.saturating_add(current.end.saturating_sub(current.start) as usize);
        let at = (span.row as usize).saturating_mul(VIEW);
        if let Some(view) = views.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            write(view, 8, 0);
            write(view, 12, narrow(place));
        }
        merged = Some(current);
        if let Some(done) = count.checked_sub(1).and_then(|last| spans.get_mut(last)) {
            *done = current;
        }
    }
    spans.truncate(count);
    size
}

/// The copies of merged spans of node `node`, one behind the other.
fn fetches<'v>(
    node: usize,
    spans: &[Span],
    values: &'v mut [u8],
    report: &mut Report<'_>,
) -> Result<Vec<Fetch<'v>>> {
    let mut fetches = Vec::new();
    if fetches.try_reserve_exact(spans.len()).is_err() {
        return Err(report.out_of_memory(spans.len().saturating_mul(size_of::<Fetch<'_>>())));
    }
    let mut rest = values;
    for Span { which, start, end, .. } in spans {
        let n = end.saturating_sub(*start) as usize;
        let (into, behind) = rest.split_at_mut_checked(n).unwrap_or_default();
        rest = behind;
        fetches.push(Fetch { node, k: (*which as usize).saturating_add(2), at: *start as usize, into });
    }
    Ok(fetches)
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Writes a word of a view.
fn write(view: &mut [u8; VIEW], at: usize, word: u32) {
    if let Some(place) = view.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = word.to_ne_bytes();
    }
}
