//! Lists, unions, dictionaries, runs, and numbers with a range of their own.

use super::contents::{Contents, Read, nulls_in};
use super::options::Level;
use super::strings::{ascending, ends, number, offset_width};
use super::subject::Subject;
use crate::error::{Findings, Flow, Report, Rule};
use crate::kernels::{
    Check, Decimals, DenseUnion, Indices, Ints, ListViews, Multiple, Range, RunEnds, TypeIds, Width,
};
use crate::tree::{Facts, Need, need};
use crate::types::{Format, union_ids};

const NO_CHILD: i64 = -1;

fn length_of<S: Subject + ?Sized>(this: &Contents<'_, S>, node: Option<usize>) -> Option<i64> {
    node.and_then(|node| this.subject.facts(node)).map(|facts| facts.length).filter(|length| *length >= 0)
}

/// Checks the offsets of a list or map against its child, by rule B1.
pub(super) fn list<S: Subject + ?Sized>(this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
    let Some(limit) = list_limit(this) else { return Flow::Continue(()) };
    let Some((offsets, _)) = ends(this, limit, LIST_LIMIT, findings)? else { return Flow::Continue(()) };
    ascending(this, offsets, limit, LIST_LIMIT, findings).map_continue(|_| ())
}

/// What says how large the offsets of a list can be.
pub(super) const LIST_LIMIT: &str = "the values'";

/// The largest offset of a list that there can be; `None` where its child is broken, which was told of by itself.
pub(super) fn list_limit<S: Subject + ?Sized>(this: &Contents<'_, S>) -> Option<i64> {
    length_of(this, this.at.ty.child_index(this.at.index, 0))
}

/// Checks that a map's entries and keys have no nulls, by rule F5; `count` counts those of a node.
pub(super) fn keys<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    mut count: impl FnMut(usize, &Facts) -> Option<i64>,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let ty = this.at.ty;
    let Some(entries) = ty.child_index(this.at.index, 0) else { return Flow::Continue(()) };
    let Some(rows) = this.subject.facts(entries).filter(|facts| is_sound(this, entries, facts)) else {
        return Flow::Continue(());
    };
    if let Some(nulls) = count(entries, &rows).filter(|nulls| *nulls > 0) {
        let message = format_args!("expected a map's entries without nulls, found {nulls}");
        findings.broken(Rule::F5, &ty.path(entries), -1, message)?;
    }
    let Some(keys) = ty.child_index(entries, 0) else { return Flow::Continue(()) };
    let own = this.subject.facts(keys).filter(|facts| is_sound(this, keys, facts));
    let Some(own) = own else { return Flow::Continue(()) };
    // The keys of the entries that there are, which a window already leaves alone.
    let shift = if this.subject.is_whole() { rows.offset } else { 0 };
    let is_long = own.length.saturating_sub(shift) >= rows.length;
    let Some(offset) = own.offset.checked_add(shift).filter(|_| is_long) else { return Flow::Continue(()) };
    let used = Facts { offset, length: rows.length, ..own };
    match count(keys, &used) {
        Some(nulls) if nulls > 0 => {
            let message = format_args!("expected a map's keys without nulls, found {nulls}");
            findings.broken(Rule::F5, &ty.path(keys), -1, message)
        }
        _ => Flow::Continue(()),
    }
}

fn is_sane(facts: &Facts) -> bool {
    facts.length >= 0 && facts.offset >= 0 && facts.offset.checked_add(facts.length).is_some()
}

/// Whether a node below may be read before its own turn: its numbers, and how many buffers of which size it has.
fn is_sound<S: Subject + ?Sized>(this: &Contents<'_, S>, node: usize, facts: &Facts) -> bool {
    let Some(at) = this.at.ty.node(node) else { return false };
    let layout = &at.layout;
    let count = this.subject.count(node, &mut Report::silent()).unwrap_or(0);
    is_sane(facts)
        && count >= layout.min_buffers()
        && layout.slots().iter().all(|slot| need(slot, facts.offset, facts.length, 0) != Need::Overflow)
}

/// Checks list views, by rule B3.
pub(super) fn list_views<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let width = offset_width(this.at.node.format);
    let limit = length_of(this, this.at.ty.child_index(this.at.index, 0));
    let (offsets, sizes) = (this.ints(1, width, true, 0), this.ints(2, width, true, 0));
    let (Some(limit), Some(offsets), Some(sizes)) = (limit, offsets, sizes) else {
        return Flow::Continue(());
    };
    this.rows(&ListViews { offsets, sizes, limit }, this.length(), |row| {
        let (offset, size) = (number(offsets, row).unwrap_or(0), number(sizes, row).unwrap_or(0));
        let message =
            format_args!("expected a list within the {limit} values, found {size} of them from {offset} on");
        this.broken(Rule::B3, Some(row), message, findings)
    })
}

/// Checks indices against the dictionary, by rule B6.
pub(super) fn indices<S: Subject + ?Sized>(this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
    let values = length_of(this, this.at.ty.dictionary_index(this.at.index));
    let (width, signed) = match this.at.node.format {
        Format::Int8 => (Width::W8, true),
        Format::UInt8 => (Width::W8, false),
        Format::Int16 => (Width::W16, true),
        Format::UInt16 => (Width::W16, false),
        Format::Int32 => (Width::W32, true),
        Format::UInt32 => (Width::W32, false),
        Format::UInt64 => (Width::W64, false),
        _ => (Width::W64, true),
    };
    let (Some(values), Some(indices)) = (values, this.ints(1, width, signed, 0)) else {
        return Flow::Continue(());
    };
    let check = Indices { indices, limit: values.unsigned_abs(), validity: this.validity() };
    this.rows(&check, this.length(), |row| {
        let found = indices.get(row).unwrap_or(0);
        let message = format_args!("expected an index into a dictionary of {values} values, found {found}");
        this.broken(Rule::B6, Some(row), message, findings)
    })
}

/// The children of a union by their ids.
fn by_id<S: Subject + ?Sized>(this: &Contents<'_, S>) -> [i64; 128] {
    let mut lengths = [NO_CHILD; 128];
    let ty = this.at.ty;
    for (i, id) in union_ids(ty.format_text(this.at.index)).enumerate() {
        let child = ty.child_index(this.at.index, i).and_then(|child| this.subject.facts(child));
        // Any offset would do for a child that is broken, which was told of by itself.
        let length = child.map(|facts| facts.length).filter(|length| *length >= 0).unwrap_or(i64::MAX);
        if let Some(place) = usize::try_from(id).ok().and_then(|id| lengths.get_mut(id)) {
            *place = length;
        }
    }
    lengths
}

fn undeclared<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    row: usize,
    id: i8,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let message = format_args!("expected a type id that the union declares, found {id}");
    this.broken(Rule::B5, Some(row), message, findings)
}

fn id_at(type_ids: &[u8], row: usize) -> i8 {
    type_ids.get(row).map_or(0, |id| id.cast_signed())
}

/// Checks the type ids of a sparse union, by rule B5.
pub(super) fn sparse<S: Subject + ?Sized>(this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
    let Some(type_ids) = this.elements(0, 1, 0) else { return Flow::Continue(()) };
    let declared = by_id(this).map(|length| length != NO_CHILD);
    this.rows(&TypeIds { type_ids, declared: &declared }, this.length(), |row| {
        undeclared(this, row, id_at(type_ids, row), findings)
    })
}

/// Checks the type ids and offsets of a dense union, by rule B5.
pub(super) fn dense<S: Subject + ?Sized>(this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
    let (type_ids, offsets) = (this.elements(0, 1, 0), this.ints(1, Width::W32, true, 0));
    let (Some(type_ids), Some(offsets)) = (type_ids, offsets) else { return Flow::Continue(()) };
    let lengths = by_id(this);
    match (DenseUnion { type_ids, offsets, lengths: &lengths }).first_bad(0..this.length()) {
        None => Flow::Continue(()),
        Some(_) => bad_dense(this, findings),
    }
}

/// The same, of rows that are known not to be good. Most unions do without its arrays.
#[cold]
#[inline(never)]
fn bad_dense<S: Subject + ?Sized>(this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
    let mut largest = NO_OFFSETS;
    dense_rows(this, &mut largest, findings)
}

/// The largest offset so far of each child of a dense union, -1 when there was none.
pub(super) type Largest = [i64; 128];

/// Before the first row.
pub(super) const NO_OFFSETS: Largest = [-1; 128];

/// The same, row by row, behind rows with such offsets.
#[inline(never)]
pub(super) fn dense_rows<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    largest: &mut Largest,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let (type_ids, offsets) = (this.elements(0, 1, 0), this.ints(1, Width::W32, true, 0));
    let (Some(type_ids), Some(offsets)) = (type_ids, offsets) else { return Flow::Continue(()) };
    let lengths = by_id(this);
    for row in 0..this.length() {
        let (id, offset) = (id_at(type_ids, row), number(offsets, row).unwrap_or(0));
        let place = usize::try_from(id).ok();
        let length = place.and_then(|id| lengths.get(id)).copied().unwrap_or(NO_CHILD);
        let before = place.and_then(|id| largest.get_mut(id)).filter(|_| length != NO_CHILD);
        let Some(before) = before else {
            undeclared(this, row, id, findings)?;
            continue;
        };
        if offset < 0 || offset >= length {
            let message =
                format_args!("expected an offset into the {length} values of type id {id}, found {offset}");
            this.broken(Rule::B5, Some(row), message, findings)?;
            continue;
        }
        if offset < *before {
            let message = format_args!(
                "expected offsets of type id {id} that never decrease, found {offset} after {before}"
            );
            this.broken(Rule::B5, Some(row), message, findings)?;
        }
        *before = offset.max(*before);
    }
    Flow::Continue(())
}

/// The run ends below a node: their own node, its numbers, and how wide they are.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    pub node: usize,
    pub facts: Facts,
    pub width: Width,
}

impl Runs {
    /// Those of a node, when there are some and they may be read.
    #[inline]
    pub(super) fn below<S: Subject + ?Sized>(this: &Contents<'_, S>) -> Option<Runs> {
        let ty = this.at.ty;
        let node = ty.child_index(this.at.index, 0)?;
        let sound = |facts: &Facts| facts.length > 0 && is_sound(this, node, facts);
        let facts = this.subject.facts(node).filter(sound)?;
        let width = match ty.node(node)?.format {
            Format::Int16 => Width::W16,
            Format::Int32 => Width::W32,
            _ => Width::W64,
        };
        Some(Runs { node, facts, width })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.facts.length).unwrap_or(0)
    }

    /// The bytes of some of them in their buffer: from where on, and how many.
    pub(super) fn place(&self, rows: core::ops::Range<usize>) -> Option<(usize, usize)> {
        let (offset, bytes) = (usize::try_from(self.facts.offset).ok()?, self.width.bytes());
        Some((offset.checked_add(rows.start)?.checked_mul(bytes)?, rows.len().checked_mul(bytes)?))
    }

    /// Run ends as numbers.
    pub(super) fn ints<'a>(&self, bytes: &'a [u8]) -> Ints<'a> {
        Ints { bytes, width: self.width, signed: true }
    }

    /// Checks that none of them is null.
    #[inline]
    pub(super) fn check_nulls<S: Subject + ?Sized>(
        &self,
        this: &Contents<'_, S>,
        nulls: Option<i64>,
        findings: &mut Findings<'_, '_>,
    ) -> Flow {
        let Some(nulls) = nulls.filter(|nulls| *nulls > 0) else { return Flow::Continue(()) };
        let message = format_args!("expected run ends without nulls, found {nulls}");
        findings.broken(Rule::B7, &this.at.ty.path(self.node), -1, message)
    }

    /// Checks that some of `ends` ascend, of which the first is that of row `first`; says whether they do.
    pub(super) fn check_ascent<S: Subject + ?Sized>(
        &self,
        this: &Contents<'_, S>,
        ends: Ints<'_>,
        rows: core::ops::Range<usize>,
        first: usize,
        findings: &mut Findings<'_, '_>,
    ) -> Read<()> {
        let path = this.at.ty.path(self.node);
        let mut ascends = Some(());
        this.rows_of(&RunEnds { ends }, rows, |row| {
            ascends = None;
            let found = number(ends, row).unwrap_or(0);
            let before = row.checked_sub(1).and_then(|row| number(ends, row)).unwrap_or(0).max(0);
            let message = format_args!("expected a run end above {before}, found {found}");
            findings.broken(Rule::B7, &path, row_number(row.saturating_add(first)), message)
        })?;
        Read::Continue(ascends)
    }

    /// Checks that the last of them is where the rows end, or behind that.
    #[inline]
    pub(super) fn check_last<S: Subject + ?Sized>(
        &self,
        this: &Contents<'_, S>,
        last: i64,
        findings: &mut Findings<'_, '_>,
    ) -> Flow {
        let Facts { offset, length, .. } = *this.facts();
        if length == 0 || last >= offset.saturating_add(length) {
            return Flow::Continue(());
        }
        let message = format_args!("expected run ends up to {length} + {offset}, found a last one of {last}");
        let row = row_number(self.len().saturating_sub(1));
        findings.broken(Rule::B7, &this.at.ty.path(self.node), row, message)
    }
}

fn row_number(row: usize) -> i64 {
    i64::try_from(row).unwrap_or(-1)
}

/// Checks run ends, by rule B7.
pub(super) fn runs<S: Subject + ?Sized>(this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
    let Some(runs) = Runs::below(this) else { return Flow::Continue(()) };
    let n = runs.len();
    let bytes = runs.place(0..n).and_then(|(at, n)| this.subject.bytes(runs.node, 1, at, n));
    let Some(ends) = bytes.map(|bytes| runs.ints(bytes)) else { return Flow::Continue(()) };
    let mut ascends = Some(());
    if this.level == Level::Full {
        runs.check_nulls(this, nulls_in(this.subject, runs.node, &runs.facts), findings)?;
        ascends = runs.check_ascent(this, ends, 0..n, 0, findings)?;
    }
    let last = ascends.and_then(|()| number(ends, n.saturating_sub(1)));
    last.map_or(Flow::Continue(()), |last| runs.check_last(this, last, findings))
}

/// Checks that dates in milliseconds are whole days, by rule B8.
pub(super) fn whole_days<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    day: i64,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let Some(values) = this.ints(1, Width::W64, true, 0) else { return Flow::Continue(()) };
    this.rows(&Multiple { values, of: day, validity: this.validity() }, this.length(), |row| {
        let found = number(values, row).unwrap_or(0);
        let message = format_args!("expected a date in whole days of {day} milliseconds, found {found}");
        this.broken(Rule::B8, Some(row), message, findings)
    })
}

/// Checks that times lie within a day, by rule B8.
pub(super) fn times<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    width: Width,
    day: i64,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let Some(values) = this.ints(1, width, true, 0) else { return Flow::Continue(()) };
    let check = Range { values, min: 0, max: day.saturating_sub(1), validity: this.validity() };
    this.rows(&check, this.length(), |row| {
        let found = number(values, row).unwrap_or(0);
        let message = format_args!("expected a time from 0 to below {day}, found {found}");
        this.broken(Rule::B8, Some(row), message, findings)
    })
}

/// Checks that decimals fit their precision, by rule B8.
pub(super) fn decimals<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    bits: u16,
    precision: u8,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let bytes = usize::from(bits >> 3);
    let Some(values) = this.elements(1, bytes, 0) else { return Flow::Continue(()) };
    let check = Decimals { values, bytes, precision, validity: this.validity() };
    this.rows(&check, this.length(), |row| {
        let message = format_args!("expected a decimal of at most {precision} digits, found more");
        this.broken(Rule::B8, Some(row), message, findings)
    })
}
