//! What a tree of nodes must be, wherever it came from.

use core::fmt::{self, Display};

use super::build::place;
use super::format::{Children, Format, union_ids};
use super::{NONE, TypeNode};
use crate::error::{Lossy, Report, Result, Rule, Status};

/// A format string in a message.
pub(super) struct Quoted<'a>(pub &'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", Lossy(self.0))
    }
}

/// Checks a node by itself: its dictionary, and its number of children, before any child is looked at.
#[inline]
pub(super) fn node(
    format: Format,
    text: &[u8],
    n_children: usize,
    has_dictionary: bool,
    status: Status,
    path: &dyn Display,
    report: &mut Report<'_>,
) -> Result<()> {
    let fits = match format.children() {
        Children::Exactly(n) => n_children == n,
        Children::Any => true,
        Children::OnePerId => n_children == union_ids(text).count(),
    };
    if fits && !has_dictionary {
        return Ok(());
    }
    if has_dictionary && !format.is_integer() {
        let message = format_args!(
            "expected an integer format for the indices of a dictionary, found {}",
            Quoted(text)
        );
        return Err(report.fail_at(status, Rule::S6, path, message));
    }
    if has_dictionary && n_children != 0 {
        let message = format_args!("expected 0 children beside a dictionary, found {n_children}");
        return Err(report.fail_at(status, Rule::S6, path, message));
    }
    if fits {
        return Ok(());
    }
    let expected = match format.children() {
        Children::Exactly(n) => n,
        _ => union_ids(text).count(),
    };
    let message = format_args!("expected {expected} children for {}, found {n_children}", Quoted(text));
    Err(report.fail_at(status, Rule::F5, path, message))
}

/// Checks all nodes, each with those below it.
pub(super) fn structure(
    nodes: &[TypeNode],
    bytes: &[u8],
    status: Status,
    report: &mut Report<'_>,
) -> Result<()> {
    let at = |i: u32| usize::try_from(i).ok().and_then(|i| nodes.get(i)).unwrap_or(&TypeNode::BLANK);
    for one in nodes {
        if one.n_children == 0 && !one.has_dictionary() && !one.format.is_nested() {
            continue;
        }
        let text = one.format_text.of(bytes);
        let children = usize::try_from(one.n_children).unwrap_or(usize::MAX);
        let path = place(nodes, bytes, one);
        node(one.format, text, children, one.dictionary != NONE, status, &path, report)?;
        let first = one.index.wrapping_add(1);
        let mut refuse = |child: &TypeNode, expected: &str, found: &dyn Display| {
            let message = format_args!("expected {expected}, found {found}");
            report.fail_at(status, Rule::F5, &place(nodes, bytes, child), message)
        };
        let shown = |child: &TypeNode| Quoted(child.format_text.of(bytes));
        match one.format {
            Format::Map => {
                let entries = at(first);
                let key = at(first.wrapping_add(1));
                if entries.format != Format::Struct {
                    return Err(refuse(entries, "a struct as the entries of a map", &shown(entries)));
                }
                if entries.n_children != 2 {
                    return Err(refuse(entries, "2 children, a map's key and value", &entries.n_children));
                }
                if entries.is_nullable() {
                    return Err(refuse(entries, "entries of a map that are not nullable", &"nullable ones"));
                }
                if key.is_nullable() {
                    return Err(refuse(key, "a map's key that is not nullable", &"a nullable one"));
                }
            }
            Format::RunEndEncoded => {
                let ends = at(first);
                let values = at(ends.subtree_end);
                if !matches!(ends.format, Format::Int16 | Format::Int32 | Format::Int64) {
                    return Err(refuse(ends, "run ends of format s, i or l", &shown(ends)));
                }
                if ends.has_dictionary() {
                    return Err(refuse(ends, "run ends without a dictionary", &"a dictionary"));
                }
                if values.format == Format::RunEndEncoded {
                    return Err(refuse(values, "run-end encoded values of another type", &shown(values)));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
