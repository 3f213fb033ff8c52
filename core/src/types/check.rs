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

/// A node as the rules of the node above see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Below<'a> {
    pub format: Format,
    pub text: &'a [u8],
    pub n_children: usize,
    pub is_nullable: bool,
    pub has_dictionary: bool,
}

/// What was found in place of what a rule wants.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'a> {
    Format(&'a [u8]),
    Count(usize),
    Words(&'static str),
}

impl Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Format(text) => Quoted(text).fmt(f),
            Found::Count(n) => n.fmt(f),
            Found::Words(words) => f.write_str(words),
        }
    }
}

/// What a rule wants of a node, and what was found.
pub(super) type Fault<'a> = (&'static str, Found<'a>);

impl<'a> Below<'a> {
    fn format(&self) -> Found<'a> {
        Found::Format(self.text)
    }

    /// What is wrong with the node as the entries of a map.
    pub(super) fn as_entries(&self) -> Option<Fault<'a>> {
        if self.format != Format::Struct {
            return Some(("a struct as the entries of a map", self.format()));
        }
        if self.n_children != 2 {
            return Some(("2 children, a map's key and value", Found::Count(self.n_children)));
        }
        self.is_nullable.then_some(("entries of a map that are not nullable", Found::Words("nullable ones")))
    }

    /// What is wrong with the node as the key of a map.
    pub(super) fn as_key(&self) -> Option<Fault<'a>> {
        self.is_nullable.then_some(("a map's key that is not nullable", Found::Words("a nullable one")))
    }

    /// What is wrong with the node as run ends.
    pub(super) fn as_run_ends(&self) -> Option<Fault<'a>> {
        if !matches!(self.format, Format::Int16 | Format::Int32 | Format::Int64) {
            return Some(("run ends of format s, i or l", self.format()));
        }
        self.has_dictionary.then_some(("run ends without a dictionary", Found::Words("a dictionary")))
    }

    /// What is wrong with the node as run-end encoded values.
    pub(super) fn as_run_values(&self) -> Option<Fault<'a>> {
        let nested = self.format == Format::RunEndEncoded;
        nested.then_some(("run-end encoded values of another type", self.format()))
    }
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
        let mut refuse = |child: &TypeNode, fault: Option<Fault<'_>>| match fault {
            None => Ok(()),
            Some((expected, found)) => {
                let message = format_args!("expected {expected}, found {found}");
                Err(report.fail_at(status, Rule::F5, &place(nodes, bytes, child), message))
            }
        };
        match one.format {
            Format::Map => {
                let (entries, key) = (at(first), at(first.wrapping_add(1)));
                refuse(entries, below(entries, bytes).as_entries())?;
                refuse(key, below(key, bytes).as_key())?;
            }
            Format::RunEndEncoded => {
                let ends = at(first);
                let values = at(ends.subtree_end);
                refuse(ends, below(ends, bytes).as_run_ends())?;
                refuse(values, below(values, bytes).as_run_values())?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn below<'a>(node: &TypeNode, bytes: &'a [u8]) -> Below<'a> {
    Below {
        format: node.format,
        text: node.format_text.of(bytes),
        n_children: usize::try_from(node.n_children).unwrap_or(usize::MAX),
        is_nullable: node.is_nullable(),
        has_dictionary: node.has_dictionary(),
    }
}
