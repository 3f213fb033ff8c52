//! The one builder: a source tells its nodes twice, first to be measured, then to fill one block.

use super::check::{self, Quoted};
use super::format::Format;
use super::metadata::measure_within;
use super::path::Path;
use super::sink::{Draft, Fill, Full, Measure, Sink};
use super::{MAX_DEPTH, MAX_FORMAT, MAX_STRING, NONE, Type, TypeHeader, TypeNode};
use crate::error::{Report, Result, Rule, Status};
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
            copy(child.as_ref(), node, false, sink)?;
            n_children = n_children.wrapping_add(1);
        }
        let mut dictionary = NONE;
        if let Some(values) = self.dictionary {
            dictionary = sink.next();
            copy(values, node, true, sink)?;
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

/// Tells the nodes of a finished type as those of a child or dictionary of `parent`, which is the root.
fn copy<S: Sink>(
    from: &Type,
    parent: u32,
    is_dictionary: bool,
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
        let index = sink.open(level.wrapping_add(1))?;
        let draft = Draft {
            format: node.format,
            flags: node.flags,
            parent: if i == 0 { parent } else { moved(node.parent) },
            is_dictionary: if i == 0 { is_dictionary } else { node.is_dictionary },
            n_children: node.n_children,
            first_child_slot: 0,
            dictionary: moved(node.dictionary),
            subtree_end: moved(node.subtree_end),
            format_text: sink.text(from.format_text(i))?,
            name: sink.text(from.name(i))?,
            metadata: sink.bytes(from.metadata(i).unwrap_or_default())?,
        };
        sink.close(index, &draft)?;
    }
    Ok(())
}

/// The place of a finished node, from the root of its block.
pub(super) fn place<'a>(nodes: &'a [TypeNode], bytes: &'a [u8], node: &TypeNode) -> Path<'a> {
    Path { nodes, bytes, root: 0, node: node.index }
}
