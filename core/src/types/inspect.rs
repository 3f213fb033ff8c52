//! Looking at a raw schema without making a type of it: everything that is wrong with it, not only the first fault.

use core::fmt::Display;

use super::check::{self, Below, Fault, Quoted};
use super::extension::{self, Storage};
use super::format::{Children, Format, union_ids};
use super::metadata::measure;
use super::schema::{Place, count_children, format_of, live_child, read_format, read_name};
use super::sink::Full;
use super::{MAX_DEPTH, MAX_NODES};
use crate::abi::{CText, FLAG_DICTIONARY_ORDERED, FLAG_MAP_KEYS_SORTED, FLAG_NULLABLE, SchemaView};
use crate::error::{Findings, Flow, Rule, Severity, Status};

/// Checks a raw schema by every rule about schemas. Nothing is made, released or kept.
pub fn inspect_schema(view: SchemaView<'_>, findings: &mut Findings<'_, '_>) -> Flow {
    if view.is_released() {
        let message = format_args!("expected a schema that is alive, found a released one");
        findings.check(|report| Err::<(), _>(report.fail_at(Status::Released, Rule::M2, &"$", message)))?;
        return Flow::Continue(());
    }
    let mut walk = Walk { n_nodes: 0, findings };
    walk.node(&Place::root(view), Part::Any)
}

struct Walk<'f, 'a, 'r> {
    n_nodes: usize,
    findings: &'f mut Findings<'a, 'r>,
}

/// What a node is to the one above, as far as that wants something of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    Entries,
    Key,
    RunEnds,
    RunValues,
}

impl Part {
    /// What child `i` is to a node of that format, which is itself a part of another.
    fn of(format: Format, own: Part, i: usize) -> Part {
        match (format, own, i) {
            (Format::Map, _, 0) => Part::Entries,
            (Format::Struct, Part::Entries, 0) => Part::Key,
            (Format::RunEndEncoded, _, 0) => Part::RunEnds,
            (Format::RunEndEncoded, _, 1) => Part::RunValues,
            _ => Part::Any,
        }
    }

    fn fault<'a>(self, node: &Below<'a>) -> Option<Fault<'a>> {
        match self {
            Part::Any => None,
            Part::Entries => node.as_entries(),
            Part::Key => node.as_key(),
            Part::RunEnds => node.as_run_ends(),
            Part::RunValues => node.as_run_values(),
        }
    }
}

impl Walk<'_, '_, '_> {
    /// Checks a node that is alive, and what is below it.
    fn node(&mut self, place: &Place<'_>, part: Part) -> Flow {
        let view = place.view();
        self.n_nodes = self.n_nodes.saturating_add(1);
        let full = match () {
            _ if place.level() > MAX_DEPTH => Some(Full::Depth),
            _ if self.n_nodes > MAX_NODES => Some(Full::Nodes),
            _ => None,
        };
        if let Some(full) = full {
            self.findings.check(|report| Err::<(), _>(place.full(full, report)))?;
            return Flow::Continue(());
        }
        let text = self.findings.check(|report| read_format(place, report))?;
        let format = match text {
            Some(text) => self.findings.check(|report| format_of(text, place, report))?.map(|f| (f, text)),
            None => None,
        };
        let mut n_children = self.findings.check(|report| count_children(place, report))?;
        if view.is_misaligned() {
            n_children = None;
            let message =
                format_args!("expected children and a dictionary at aligned addresses, found others");
            self.findings.broken(Rule::S5, place, -1, message)?;
        }
        let has_dictionary = view.dictionary().is_some();
        if let (Some((format, text)), Some(n)) = (format, n_children) {
            self.findings.check(|report| {
                check::node(format, text, n, has_dictionary, Status::InvalidData, place, report)
            })?;
            let is_nullable = view.flags() & FLAG_NULLABLE != 0;
            let below = Below { format, text, n_children: n, is_nullable, has_dictionary };
            self.refuse(place, part.fault(&below))?;
        }
        // A list that is longer than it may be is not followed to its end.
        let claimed = n_children.unwrap_or(0);
        let n_children = claimed.min(format.map_or(0, |(format, text)| most_children(format, text)));
        let format = format.map(|(format, _)| format);
        self.text(place)?;
        self.flags(place, format, has_dictionary)?;
        self.metadata(place, format, n_children > 0)?;
        if claimed > 0 && n_children == 0 && view.has_no_list() {
            self.findings.check(|report| live_child(place, None, 0, report).map(|_| ()))?;
        }
        self.children(place, n_children, format, part)?;
        match view.dictionary() {
            None => Flow::Continue(()),
            Some(values) if values.is_released() => {
                let message = format_args!("expected the dictionary to be alive, found a released one");
                self.findings.broken(Rule::S6, place, -1, message)
            }
            Some(values) => self.node(&place.below(values, true), Part::Any),
        }
    }

    fn children(&mut self, place: &Place<'_>, n: usize, format: Option<Format>, part: Part) -> Flow {
        for (i, child) in place.view().children(n).enumerate() {
            let alive = self.findings.check(|report| live_child(place, child, i, report))?;
            let Some(child) = alive else {
                // Nothing is known of how many more there are behind a missing list.
                if place.view().has_no_list() {
                    break;
                }
                continue;
            };
            let part = format.map_or(Part::Any, |format| Part::of(format, part, i));
            self.node(&place.below(child, false), part)?;
        }
        Flow::Continue(())
    }

    fn refuse(&mut self, place: &Place<'_>, fault: Option<Fault<'_>>) -> Flow {
        match fault {
            None => Flow::Continue(()),
            Some((expected, found)) => {
                let message = format_args!("expected {expected}, found {found}");
                self.findings.broken(Rule::F5, place, -1, message)
            }
        }
    }

    fn text(&mut self, place: &Place<'_>) -> Flow {
        let name = self.findings.check(|report| read_name(place, report))?;
        let fault = name.and_then(|name| core::str::from_utf8(name).err());
        match fault {
            None => Flow::Continue(()),
            Some(fault) => {
                let message =
                    format_args!("expected a name in UTF-8, found none at byte {}", fault.valid_up_to());
                self.findings.broken(Rule::S2, place, -1, message)
            }
        }
    }

    fn flags(&mut self, place: &Place<'_>, format: Option<Format>, has_dictionary: bool) -> Flow {
        let flags = place.view().flags();
        let unknown = flags & !(FLAG_NULLABLE | FLAG_DICTIONARY_ORDERED | FLAG_MAP_KEYS_SORTED);
        if unknown != 0 {
            let message = format_args!("expected flags 1, 2 and 4 only, found {unknown:#x}");
            self.findings.broken(Rule::S4, place, -1, message)?;
        }
        if flags & FLAG_DICTIONARY_ORDERED != 0 && !has_dictionary {
            let message =
                format_args!("expected DICTIONARY_ORDERED with a dictionary only, found it without one");
            self.findings.broken(Rule::S4, place, -1, message)?;
        }
        if flags & FLAG_MAP_KEYS_SORTED != 0 && format.is_some_and(|format| format != Format::Map) {
            let message = format_args!("expected MAP_KEYS_SORTED on a map only, found it on another type");
            self.findings.broken(Rule::S4, place, -1, message)?;
        }
        Flow::Continue(())
    }

    fn metadata(&mut self, place: &Place<'_>, format: Option<Format>, has_children: bool) -> Flow {
        let Some(raw) = place.view().metadata() else { return Flow::Continue(()) };
        match measure(raw) {
            Ok(0) => Flow::Continue(()),
            Ok(size) => match format {
                Some(format) => {
                    let item = if has_children { place.view().child(0) } else { None };
                    let item = item.filter(|item| !item.is_released()).and_then(plain_format);
                    storage(raw.take(size), format, item, place, self.findings)
                }
                None => Flow::Continue(()),
            },
            Err(fault) => {
                let message =
                    format_args!("expected {}, found {} at byte {}", fault.expected, fault.found, fault.at);
                self.findings.broken(Rule::S3, place, -1, message)
            }
        }
    }
}

/// The most children that a node of a format may have.
fn most_children(format: Format, text: &[u8]) -> usize {
    match format.children() {
        Children::Exactly(n) => n,
        Children::Any => usize::MAX,
        Children::OnePerId => union_ids(text).count(),
    }
}

fn plain_format(view: SchemaView<'_>) -> Option<Format> {
    match view.format(super::MAX_FORMAT) {
        CText::Bytes(text) => Format::parse(text).ok(),
        _ => None,
    }
}

/// Checks the storage of a canonical extension type, by rule S7.
pub fn storage(
    metadata: &[u8],
    format: Format,
    item: Option<Format>,
    path: &dyn Display,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let Storage::Wrong { name, expected } = extension::storage(metadata, format, item) else {
        return Flow::Continue(());
    };
    let message = format_args!("expected {expected} as the storage of {}, found {format:?}", Quoted(name));
    findings.consumer(Severity::Warning, Rule::S7, path, message)
}
