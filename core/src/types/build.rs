//! The one builder: a source tells its nodes twice, first to be measured, then to fill one block.

use core::ffi::c_char;
use core::fmt::Write;

use super::check::{self, Quoted};
use super::extension::{Storage, storage};
use super::format::Format;
use super::metadata::{measure_within, pairs};
use super::node::Range;
use super::path::Path;
use super::sink::{Draft, Fill, Full, Measure, Sink};
use super::{MAX_DEPTH, MAX_FORMAT, MAX_STRING, NONE, Type, TypeHeader, TypeNode};
use crate::abi::{FLAG_NULLABLE, bytes_of};
use crate::error::{Report, Result, Rule, Status, TextBuffer};
use crate::memory::{Parts, Room, Shared, counts};

/// Something that a type can be made from.
pub(super) trait Source {
    /// The status of a structure that breaks a rule.
    const BROKEN: Status;
    /// Whether the source links parents to children and checks each node by itself, because it can for less.
    const LINKS: bool;

    /// Tells all nodes, depth first, the same each time.
    fn emit<S: Sink>(&self, sink: &mut S, report: &mut Report<'_>) -> Result<()>;
}

/// Makes a type in one allocation.
pub(super) fn assemble<T: Source>(source: &T, report: &mut Report<'_>) -> Result<Type> {
    let mut measured = Measure::default();
    source.emit(&mut measured, report)?;
    let header = TypeHeader { depth: u32::try_from(measured.depth).unwrap_or(u32::MAX) };
    let (Ok(n_items), Ok(n_bytes)) = (usize::try_from(measured.nodes), usize::try_from(measured.bytes))
    else {
        return Err(report.out_of_memory(usize::MAX));
    };
    let room = Room { n_items, n_indices: measured.links, n_bytes };
    let block = Shared::try_new(&counts::TYPES, header, room, report, |parts, report| {
        let mut fill = Fill::new(parts);
        source.emit(&mut fill, report)?;
        let Fill { at, linked, is_structured, .. } = fill;
        let Parts { items, indices, bytes } = parts;
        let is_whole = items.count() == n_items && usize::try_from(at) == Ok(n_bytes);
        let is_linked = if T::LINKS { linked == indices.len() } else { link(items.added(), indices) };
        if !is_whole || !is_linked {
            return Err(report.broken(Rule::None, &"$", format_args!("{}", Full::Changed)));
        }
        if T::LINKS && !is_structured {
            return Ok(());
        }
        check::structure(items.added(), bytes, T::BROKEN, report)
    })?;
    Ok(Type::from_parts(block, 0))
}

/// Fills the table of children; false when the nodes have not as many as there is room for.
fn link(nodes: &mut [TypeNode], indices: &mut [u32]) -> bool {
    let mut used = 0_usize;
    for i in 0..nodes.len() {
        let Some(node) = nodes.get_mut(i) else { return false };
        let Ok(n_children) = usize::try_from(node.n_children) else { return false };
        node.first_child_slot = u32::try_from(used).unwrap_or(u32::MAX);
        let mut child = node.index.wrapping_add(1);
        let end = used.saturating_add(n_children);
        let Some(slots) = indices.get_mut(used..end) else { return false };
        for slot in slots {
            *slot = child;
            let next = usize::try_from(child).ok().and_then(|i| nodes.get(i));
            child = next.map_or(NONE, |node| node.subtree_end);
        }
        used = end;
    }
    used == indices.len()
}

struct Assembly<'a, I> {
    format: &'a [u8],
    name: &'a [u8],
    flags: i64,
    children: I,
    dictionary: Option<&'a Type>,
    metadata: &'a [u8],
}

impl Type {
    /// A type from its parts. Children and dictionary are copied, and keep their names.
    ///
    /// A broken rule is `InvalidData` with the place where it was found.
    pub fn build<I>(
        format: &[u8],
        name: &[u8],
        flags: i64,
        children: I,
        dictionary: Option<&Type>,
        metadata: Option<&[u8]>,
        report: &mut Report<'_>,
    ) -> Result<Type>
    where
        I: IntoIterator + Clone,
        I::Item: AsRef<Type>,
    {
        if format.len() > MAX_FORMAT {
            let found = format.len();
            let message =
                format_args!("expected a format string of at most {MAX_FORMAT} bytes, found {found}");
            return Err(report.broken(Rule::S1, &"$", message));
        }
        if name.len() > MAX_STRING {
            let found = name.len();
            let message = format_args!("expected a name of at most {MAX_STRING} bytes, found {found}");
            return Err(report.broken(Rule::S2, &"$", message));
        }
        if let Some(at) = name.iter().position(|byte| *byte == 0) {
            let message = format_args!("expected a name without NUL, found one at byte {at}");
            return Err(report.broken(Rule::S2, &"$", message));
        }
        let metadata = metadata.unwrap_or_default();
        // Neither no bytes nor a count of 0 is metadata.
        let size = if metadata.is_empty() { Ok(0) } else { measure_within(metadata) };
        let size = size.map_err(|fault| {
            let message =
                format_args!("expected {}, found {} at byte {}", fault.expected, fault.found, fault.at);
            report.broken(Rule::S3, &"$", message)
        })?;
        if size != 0 && size != metadata.len() {
            let found = metadata.len();
            let message =
                format_args!("expected {size} bytes of metadata, as its lengths say, found {found}");
            return Err(report.broken(Rule::S3, &"$", message));
        }
        let metadata = metadata.get(..size).unwrap_or_default();
        assemble(&Assembly { format, name, flags, children, dictionary, metadata }, report)
    }
}

impl<I> Source for Assembly<'_, I>
where
    I: IntoIterator + Clone,
    I::Item: AsRef<Type>,
{
    const BROKEN: Status = Status::InvalidData;
    const LINKS: bool = false;

    fn emit<S: Sink>(&self, sink: &mut S, report: &mut Report<'_>) -> Result<()> {
        let format = Format::parse(self.format).map_err(|fault| {
            let message = format_args!("expected {}, found {}", fault.expected, Quoted(self.format));
            report.broken(fault.rule, &"$", message)
        })?;
        self.tell(format, sink).map_err(|full| report.broken(Rule::None, &"$", format_args!("{full}")))
    }
}

impl<I> Assembly<'_, I>
where
    I: IntoIterator + Clone,
    I::Item: AsRef<Type>,
{
    fn tell<S: Sink>(&self, format: Format, sink: &mut S) -> core::result::Result<(), Full> {
        let node = sink.open(1)?;
        let format_text = sink.text(self.format)?;
        let name = sink.text(self.name)?;
        let metadata = sink.bytes(self.metadata)?;
        let mut n_children = 0_u32;
        for child in self.children.clone() {
            copy(
                child.as_ref(),
                Under { parent: node, is_dictionary: false, levels: 1 },
                |_| Change::NONE,
                sink,
            )?;
            n_children = n_children.wrapping_add(1);
        }
        let mut dictionary = NONE;
        if let Some(values) = self.dictionary {
            dictionary = sink.next();
            copy(values, Under { parent: node, is_dictionary: true, levels: 1 }, |_| Change::NONE, sink)?;
        }
        let draft = Draft {
            format,
            flags: self.flags,
            parent: NONE,
            is_dictionary: false,
            n_children,
            first_child_slot: 0,
            dictionary,
            subtree_end: sink.next(),
            format_text,
            name,
            metadata,
        };
        sink.close(node, &draft)
    }
}

/// What is otherwise at a node of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Another format: one without parameters and with as many children. An extension type that is not stored like that is
    /// one no more.
    pub format: Option<Format>,
    /// Whether the node may have nulls from then on.
    pub becomes_nullable: bool,
}

impl Change {
    /// Nothing is otherwise.
    ///
    /// cbindgen:ignore
    pub const NONE: Change = Change { format: None, becomes_nullable: false };
}

/// A type's nodes with some of them changed.
struct Changed<'a, F> {
    from: &'a Type,
    change: F,
}

impl<F: Fn(usize) -> Change> Source for Changed<'_, F> {
    const BROKEN: Status = Status::InvalidData;
    const LINKS: bool = false;

    fn emit<S: Sink>(&self, sink: &mut S, report: &mut Report<'_>) -> Result<()> {
        let root = Under { parent: NONE, is_dictionary: false, levels: 0 };
        copy(self.from, root, &self.change, sink)
            .map_err(|full| report.broken(Rule::None, &"$", format_args!("{full}")))
    }
}

impl Type {
    /// The same type with changes at some nodes.
    pub fn changed(&self, change: impl Fn(usize) -> Change, report: &mut Report<'_>) -> Result<Type> {
        assemble(&Changed { from: self, change }, report)
    }
}

/// Where the nodes of a finished type go.
#[derive(Debug, Clone, Copy)]
struct Under {
    parent: u32,
    is_dictionary: bool,
    /// How many levels are above.
    levels: usize,
}

/// Tells the nodes of a finished type, changed as `change` says.
fn copy<S: Sink>(
    from: &Type,
    under: Under,
    change: impl Fn(usize) -> Change,
    sink: &mut S,
) -> core::result::Result<(), Full> {
    let first = sink.next();
    let base = from.root_node().index;
    let moved = |node: u32| if node == NONE { NONE } else { node.wrapping_sub(base).wrapping_add(first) };
    // The ends of the subtrees that the node is in: as many as there are levels above it.
    let mut ends = [0_u32; MAX_DEPTH];
    let mut level = 0_usize;
    for (i, node) in from.nodes().iter().enumerate() {
        while level > 0 && ends.get(level.wrapping_sub(1)).is_some_and(|end| *end <= node.index) {
            level = level.wrapping_sub(1);
        }
        *ends.get_mut(level).ok_or(Full::Depth)? = node.subtree_end;
        level = level.wrapping_add(1);
        let index = sink.open(level.wrapping_add(under.levels))?;
        let mut text = [0; 16];
        let Change { format: other, becomes_nullable } = change(i);
        let format_text = match other {
            None => sink.text(from.format_text(i))?,
            Some(other) => sink.text(letters(other, &mut text))?,
        };
        let draft = Draft {
            format: other.unwrap_or(node.format),
            flags: if becomes_nullable { node.flags | FLAG_NULLABLE } else { node.flags },
            parent: if i == 0 { under.parent } else { moved(node.parent) },
            is_dictionary: if i == 0 { under.is_dictionary } else { node.is_dictionary },
            n_children: node.n_children,
            first_child_slot: 0,
            dictionary: moved(node.dictionary),
            subtree_end: moved(node.subtree_end),
            format_text,
            name: sink.text(from.name(i))?,
            metadata: metadata(from, i, other, sink)?,
        };
        sink.close(index, &draft)?;
    }
    Ok(())
}

/// Tells a node's metadata, without its extension type when that is not stored in the node's new format.
fn metadata<S: Sink>(
    from: &Type,
    i: usize,
    other: Option<Format>,
    sink: &mut S,
) -> core::result::Result<Range, Full> {
    let all = from.metadata(i).unwrap_or_default();
    let is_stored = other.is_none_or(|format| storage(all, format, None) == Storage::Fine);
    if is_stored {
        return sink.bytes(all);
    }
    let kept = || pairs(all).filter(|(key, _)| !key.starts_with(b"ARROW:extension:"));
    let n = i32::try_from(kept().count()).unwrap_or(0);
    if n == 0 {
        return Ok(Range::EMPTY);
    }
    let at = sink.at();
    sink.put(&n.to_ne_bytes())?;
    for (key, value) in kept() {
        for part in [key, value] {
            sink.put(&i32::try_from(part.len()).unwrap_or(0).to_ne_bytes())?;
            sink.put(part)?;
        }
    }
    Ok(Range { at, length: sink.at().wrapping_sub(at) })
}

/// The text of a format without parameters.
fn letters(format: Format, into: &mut [c_char; 16]) -> &[u8] {
    let mut text = TextBuffer::over(into);
    // No such format is longer than the buffer.
    let _ = write!(text, "{}", format.text(&[], core::iter::empty()));
    let written = bytes_of(into);
    written.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The place of a finished node, from the root of its block.
pub(super) fn place<'a>(nodes: &'a [TypeNode], bytes: &'a [u8], node: &TypeNode) -> Path<'a> {
    Path { nodes, bytes, root: 0, node: node.index }
}
