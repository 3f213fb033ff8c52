//! Types from raw schemas.

use core::fmt::{self, Display, Write};

use super::build::{Source, assemble};
use super::check::{self, Quoted};
use super::format::Format;
use super::metadata::measure;
use super::node::Range;
use super::path::{MAX_SHOWN, write_step};
use super::sink::{Draft, Full, Sink, Spot};
use super::{MAX_FORMAT, MAX_NODES, MAX_STRING, NONE, Type};
use crate::abi::{CText, SchemaView};
use crate::error::{Failed, Report, Result, Rule, Status};

impl Type {
    /// A copy of a raw schema. Nothing is released; every rule about schemas is checked.
    pub fn from_schema(view: SchemaView<'_>, report: &mut Report<'_>) -> Result<Type> {
        if view.is_released() {
            let message = format_args!("expected a schema that is alive, found a released one");
            return Err(report.fail_at(Status::Released, Rule::M2, &"$", message));
        }
        assemble(&Schema(view), report)
    }
}

struct Schema<'a>(SchemaView<'a>);

impl Source for Schema<'_> {
    const BROKEN: Status = Status::InvalidData;
    const LINKS: bool = true;

    fn emit<S: Sink>(&self, sink: &mut S, report: &mut Report<'_>) -> Result<()> {
        let place = Place::root(self.0);
        let spot = Spot { parent: NONE, level: 1, slot: NONE, is_dictionary: false };
        if self.0.is_plain() && sink.leaf(self.0, spot) {
            return Ok(());
        }
        visit(&place, NONE, sink, report)
    }
}

/// A schema and those above it, which make its path.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    view: SchemaView<'a>,
    above: Option<&'a Place<'a>>,
    is_dictionary: bool,
    level: usize,
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As deep as the limit on levels, because no deeper place is made.
        let Some(above) = self.above else { return f.write_char('$') };
        above.fmt(f)?;
        // No more than one byte beyond what a step shows.
        let name = self.view.name_start(MAX_SHOWN.wrapping_add(1));
        write_step(f, name, self.is_dictionary)
    }
}

impl Place<'_> {
    /// How many levels from the root, which is level 1.
    pub(super) fn level(&self) -> usize {
        self.level
    }

    #[cold]
    pub(super) fn full(&self, full: Full, report: &mut Report<'_>) -> Failed {
        report.broken(Rule::None, self, format_args!("{full}"))
    }
}

fn visit<S: Sink>(place: &Place<'_>, parent: u32, sink: &mut S, report: &mut Report<'_>) -> Result<()> {
    let view = place.view;
    let node = sink.open(place.level).map_err(|full| place.full(full, report))?;
    let text = read_format(place, report)?;
    let format = format_of(text, place, report)?;
    let n_children = count_children(place, report)?;
    if view.is_misaligned() {
        let message = format_args!("expected children and a dictionary at aligned addresses, found others");
        return Err(report.broken(Rule::S5, place, message));
    }
    let dictionary = view.dictionary();
    let may_be_broken = format != Format::Struct && (format.is_nested() || n_children != 0);
    if may_be_broken || dictionary.is_some() {
        check::node(format, text, n_children, dictionary.is_some(), Status::InvalidData, place, report)?;
    }

    let name = read_name(place, report)?;
    let first_child_slot = sink.slots(n_children);
    let mut children = view.children(n_children);
    let mut spot = Spot {
        parent: node,
        level: place.level.wrapping_add(1),
        slot: first_child_slot,
        is_dictionary: false,
    };
    while children.len() != 0 {
        sink.leaves(&mut children, &mut spot);
        let ahead = children.len();
        if let Some(child) = children.next() {
            if !child.is_some_and(|child| child.is_plain() && sink.leaf(child, spot)) {
                tell_child(place, child, n_children.wrapping_sub(ahead), spot, sink, report)?;
            }
            spot.slot = spot.slot.wrapping_add(1);
        }
    }
    let values = if dictionary.is_some() { sink.next() } else { NONE };
    if let Some(dictionary) = dictionary {
        if dictionary.is_released() {
            let message = format_args!("expected the dictionary to be alive, found a released one");
            return Err(report.broken(Rule::S6, place, message));
        }
        let spot = Spot { slot: NONE, is_dictionary: true, ..spot };
        if !(dictionary.is_plain() && sink.leaf(dictionary, spot)) {
            visit(&place.below(dictionary, true), node, sink, report)?;
        }
    }
    let metadata = read_metadata(place, sink, report)?;
    let format_text = sink.text(text).map_err(|full| place.full(full, report))?;
    let name = sink.text(name).map_err(|full| place.full(full, report))?;
    let draft = Draft {
        format,
        flags: view.flags(),
        parent,
        is_dictionary: place.is_dictionary,
        n_children: u32::try_from(n_children).unwrap_or(u32::MAX),
        first_child_slot,
        dictionary: values,
        subtree_end: sink.next(),
        format_text,
        name,
        metadata,
    };
    sink.close(node, &draft).map_err(|full| place.full(full, report))
}

/// Tells a child that is more than a leaf, or says what is wrong with it.
fn tell_child<S: Sink>(
    place: &Place<'_>,
    child: Option<SchemaView<'_>>,
    i: usize,
    spot: Spot,
    sink: &mut S,
    report: &mut Report<'_>,
) -> Result<()> {
    let child = live_child(place, child, i, report)?;
    let below = place.below(child, false);
    sink.fill_slot(spot.slot, sink.next()).map_err(|full| below.full(full, report))?;
    visit(&below, spot.parent, sink, report)
}

impl<'a> Place<'a> {
    /// The place of a schema with nothing above.
    pub(super) fn root(view: SchemaView<'a>) -> Self {
        Place { view, above: None, is_dictionary: false, level: 1 }
    }

    /// The schema.
    pub(super) fn view(&self) -> SchemaView<'a> {
        self.view
    }

    #[inline]
    pub(super) fn below<'b>(&'b self, view: SchemaView<'a>, is_dictionary: bool) -> Place<'b>
    where
        'a: 'b,
    {
        Place { view, above: Some(self), is_dictionary, level: self.level.wrapping_add(1) }
    }
}

/// The child, when its pointer leads to one that is alive.
#[inline]
pub(super) fn live_child<'a>(
    place: &Place<'_>,
    child: Option<SchemaView<'a>>,
    i: usize,
    report: &mut Report<'_>,
) -> Result<SchemaView<'a>> {
    let n_children = place.view.n_children();
    let Some(child) = child else {
        let message =
            format_args!("expected a pointer to child {i} of {n_children}, found NULL or a misaligned one");
        return Err(report.broken(Rule::S5, place, message));
    };
    if child.is_released() {
        let message = format_args!("expected child {i} of {n_children} to be alive, found a released one");
        return Err(report.broken(Rule::S5, place, message));
    }
    Ok(child)
}

#[inline]
pub(super) fn format_of(text: &[u8], place: &Place<'_>, report: &mut Report<'_>) -> Result<Format> {
    Format::parse(text).map_err(|fault| {
        let message = format_args!("expected {}, found {}", fault.expected, Quoted(text));
        report.broken(fault.rule, place, message)
    })
}

#[inline]
pub(super) fn read_name<'a>(place: &Place<'a>, report: &mut Report<'_>) -> Result<&'a [u8]> {
    match place.view.name(MAX_STRING) {
        CText::Bytes(name) => Ok(name),
        CText::Missing => Ok(&[]),
        CText::TooLong => {
            // The name cannot be part of the path.
            let above: &dyn Display = match place.above {
                Some(above) => above,
                None => &"$",
            };
            let message = format_args!("expected a name of at most {MAX_STRING} bytes, found more");
            Err(report.broken(Rule::S2, above, message))
        }
    }
}

#[inline]
pub(super) fn read_format<'a>(place: &Place<'a>, report: &mut Report<'_>) -> Result<&'a [u8]> {
    match place.view.format(MAX_FORMAT) {
        CText::Bytes(text) => Ok(text),
        CText::Missing => {
            Err(report.broken(Rule::S1, place, format_args!("expected a format string, found NULL")))
        }
        CText::TooLong => {
            let message = format_args!("expected a format string of at most {MAX_FORMAT} bytes, found more");
            Err(report.broken(Rule::S1, place, message))
        }
    }
}

/// The number of children, which are not looked at yet.
#[inline]
pub(super) fn count_children(place: &Place<'_>, report: &mut Report<'_>) -> Result<usize> {
    let claimed = place.view.n_children();
    match usize::try_from(claimed) {
        Ok(n) if n <= MAX_NODES => Ok(n),
        Ok(_) => Err(place.full(Full::Nodes, report)),
        Err(_) => {
            let message = format_args!("expected a number of children that is not negative, found {claimed}");
            Err(report.broken(Rule::S5, place, message))
        }
    }
}

#[inline]
fn read_metadata<S: Sink>(place: &Place<'_>, sink: &mut S, report: &mut Report<'_>) -> Result<Range> {
    let Some(raw) = place.view.metadata() else { return Ok(Range::EMPTY) };
    match measure(raw) {
        Ok(0) => Ok(Range::EMPTY),
        Ok(size) => sink.bytes(raw.take(size)).map_err(|full| place.full(full, report)),
        Err(fault) => {
            let message =
                format_args!("expected {}, found {} at byte {}", fault.expected, fault.found, fault.at);
            Err(report.broken(Rule::S3, place, message))
        }
    }
}
