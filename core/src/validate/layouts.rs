//! Lists, unions, dictionaries, runs, and numbers with a range of their own.

use super::contents::{Contents, nulls_in};
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
    // A child that is broken was told of by itself.
    let Some(limit) = length_of(this, this.at.ty.child_index(this.at.index, 0)) else {
        return Flow::Continue(());
    };
    let of = "the values'";
    let Some((offsets, _)) = ends(this, limit, of, findings)? else { return Flow::Continue(()) };
    ascending(this, offsets, limit, of, findings).map_continue(|_| ())
}

/// Checks that a map's entries and keys have no nulls, by rule F5.
pub(super) fn keys<S: Subject + ?Sized>(this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
    let ty = this.at.ty;
    let Some(entries) = ty.child_index(this.at.index, 0) else { return Flow::Continue(()) };
    let Some(rows) = this.subject.facts(entries).filter(|facts| is_sound(this, entries, facts)) else {
        return Flow::Continue(());
    };
    if let Some(nulls) = nulls_in(this.subject, entries, &rows).filter(|nulls| *nulls > 0) {
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
    match nulls_in(this.subject, keys, &used) {
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
    let n = this.length();
    let Some(first) = (DenseUnion { type_ids, offsets, lengths: &lengths }).first_bad(0..n) else {
        return Flow::Continue(());
    };
    // The largest offset so far of each child, -1 when there was none.
    let mut largest = [-1_i64; 128];
    for row in 0..n {
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
        if offset < *before && row >= first {
            let message = format_args!(
                "expected offsets of type id {id} that never decrease, found {offset} after {before}"
            );
            this.broken(Rule::B5, Some(row), message, findings)?;
        }
        *before = offset.max(*before);
    }
    Flow::Continue(())
}

/// Checks run ends, by rule B7.
pub(super) fn runs<S: Subject + ?Sized>(this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
    let ty = this.at.ty;
    let Some(node) = ty.child_index(this.at.index, 0) else { return Flow::Continue(()) };
    let facts = this.subject.facts(node).filter(|facts| facts.length > 0 && is_sound(this, node, facts));
    let (Some(facts), Some(format)) = (facts, ty.node(node).map(|node| node.format)) else {
        return Flow::Continue(());
    };
    let width = match format {
        Format::Int16 => Width::W16,
        Format::Int32 => Width::W32,
        _ => Width::W64,
    };
    let n = usize::try_from(facts.length).unwrap_or(0);
    let place = usize::try_from(facts.offset).ok().and_then(|offset| offset.checked_mul(width.bytes()));
    let bytes = place.zip(n.checked_mul(width.bytes()));
    let bytes = bytes.and_then(|(at, n)| this.subject.bytes(node, 1, at, n));
    let Some(ends) = bytes.map(|bytes| Ints { bytes, width, signed: true }) else {
        return Flow::Continue(());
    };
    let path = ty.path(node);
    let row_of = |row: usize| i64::try_from(row).unwrap_or(-1);
    let mut is_sound = true;
    if this.level == Level::Full {
        if let Some(nulls) = nulls_in(this.subject, node, &facts).filter(|nulls| *nulls > 0) {
            let message = format_args!("expected run ends without nulls, found {nulls}");
            findings.broken(Rule::B7, &path, -1, message)?;
        }
        this.rows(&RunEnds { ends }, n, |row| {
            is_sound = false;
            let found = number(ends, row).unwrap_or(0);
            let before = row.checked_sub(1).and_then(|row| number(ends, row)).unwrap_or(0).max(0);
            let message = format_args!("expected a run end above {before}, found {found}");
            findings.broken(Rule::B7, &path, row_of(row), message)
        })?;
    }
    let last = number(ends, n.saturating_sub(1)).unwrap_or(0);
    let Facts { offset, length, .. } = *this.facts();
    if is_sound && length > 0 && last < offset.saturating_add(length) {
        let message = format_args!("expected run ends up to {length} + {offset}, found a last one of {last}");
        findings.broken(Rule::B7, &path, row_of(n.saturating_sub(1)), message)?;
    }
    Flow::Continue(())
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
