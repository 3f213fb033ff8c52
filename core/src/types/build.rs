//! The one builder: a source tells its nodes twice, first to be measured, then to fill one block.

use core::fmt::{self, Display};

use super::check::{self, Quoted};
use super::format::Format;
use super::layout::Layout;
use super::metadata::measure_within;
use super::node::Range;
use super::path::Path;
use super::{MAX_DEPTH, MAX_FORMAT, MAX_NODES, MAX_STRING, NONE, Type, TypeHeader, TypeNode};
use crate::error::{Report, Result, Rule, Status};
use crate::memory::{Parts, Room, Shared, counts};

/// Why no more fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Depth,
    Nodes,
    Bytes,
    Changed,
}

impl Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Full::Depth => write!(f, "expected at most {MAX_DEPTH} levels of nodes, found more"),
            Full::Nodes => write!(f, "expected at most {MAX_NODES} nodes, found more"),
            Full::Bytes => write!(f, "expected at most 4294967295 bytes of strings and metadata, found more"),
            Full::Changed => f.write_str("expected the same schema when read again, found another"),
        }
    }
}

/// What a source says about a node once it is complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draft {
    pub format: Format,
    pub flags: i64,
    pub parent: u32,
    pub is_dictionary: bool,
    pub n_children: u32,
    pub dictionary: u32,
    pub subtree_end: u32,
    pub format_text: Range,
    pub name: Range,
    pub metadata: Range,
}

/// Where a source tells its nodes, depth first.
pub(super) trait Sink {
    /// Whether this is the pass in which a source checks each node by itself.
    fn is_first(&self) -> bool;

    /// Starts the next node, so many levels from the root, which is level 1; returns its number.
    fn open(&mut self, level: usize) -> core::result::Result<u32, Full>;
    /// Completes a node that was started.
    fn close(&mut self, node: u32, draft: &Draft) -> core::result::Result<(), Full>;
    /// The number that the next node will have.
    fn next(&self) -> u32;
    /// Adds bytes.
    fn put(&mut self, bytes: &[u8]) -> core::result::Result<(), Full>;
    /// Where the next byte will lie.
    fn at(&self) -> u32;

    /// Adds bytes and says where they lie.
    fn bytes(&mut self, bytes: &[u8]) -> core::result::Result<Range, Full> {
        let at = self.at();
        self.put(bytes)?;
        Ok(Range { at, length: self.at().wrapping_sub(at) })
    }

    /// Adds bytes and a terminator, and says where the bytes lie.
    fn text(&mut self, text: &[u8]) -> core::result::Result<Range, Full> {
        let range = self.bytes(text)?;
        self.put(&[0])?;
        Ok(range)
    }
}

/// The first pass: counts, and checks the limits before anything is allocated.
#[derive(Debug, Default)]
struct Measure {
    nodes: u32,
    links: usize,
    bytes: u32,
    depth: usize,
}

impl Sink for Measure {
    #[inline]
    fn is_first(&self) -> bool {
        true
    }

    #[inline]
    fn open(&mut self, level: usize) -> core::result::Result<u32, Full> {
        if level > MAX_DEPTH {
            return Err(Full::Depth);
        }
        if usize::try_from(self.nodes).is_ok_and(|n| n >= MAX_NODES) {
            return Err(Full::Nodes);
        }
        self.depth = self.depth.max(level);
        let node = self.nodes;
        self.nodes = node.wrapping_add(1);
        Ok(node)
    }

    #[inline]
    fn close(&mut self, _: u32, draft: &Draft) -> core::result::Result<(), Full> {
        self.links = self.links.saturating_add(usize::try_from(draft.n_children).unwrap_or(usize::MAX));
        Ok(())
    }

    #[inline]
    fn next(&self) -> u32 {
        self.nodes
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> core::result::Result<(), Full> {
        let more = u32::try_from(bytes.len()).ok().and_then(|n| self.bytes.checked_add(n));
        self.bytes = more.ok_or(Full::Bytes)?;
        Ok(())
    }

    #[inline]
    fn at(&self) -> u32 {
        self.bytes
    }

    #[inline]
    fn text(&mut self, text: &[u8]) -> core::result::Result<Range, Full> {
        let range = Range { at: self.bytes, length: u32::try_from(text.len()).map_err(|_| Full::Bytes)? };
        let end = range.length.checked_add(1).and_then(|n| self.bytes.checked_add(n));
        self.bytes = end.ok_or(Full::Bytes)?;
        Ok(range)
    }
}

/// The second pass: writes into the block.
#[derive(Debug)]
struct Fill<'a> {
    nodes: &'a mut [TypeNode],
    bytes: &'a mut [u8],
    next: u32,
    at: usize,
}

impl Sink for Fill<'_> {
    #[inline]
    fn is_first(&self) -> bool {
        false
    }

    #[inline]
    fn open(&mut self, level: usize) -> core::result::Result<u32, Full> {
        let node = self.next;
        if level > MAX_DEPTH || usize::try_from(node).is_ok_and(|n| n >= self.nodes.len()) {
            return Err(Full::Changed);
        }
        self.next = node.wrapping_add(1);
        Ok(node)
    }

    #[inline]
    fn close(&mut self, node: u32, draft: &Draft) -> core::result::Result<(), Full> {
        let place = usize::try_from(node).ok().and_then(|i| self.nodes.get_mut(i)).ok_or(Full::Changed)?;
        *place = TypeNode {
            format: draft.format,
            layout: Layout::of(draft.format),
            flags: draft.flags,
            index: node,
            parent: draft.parent,
            n_children: draft.n_children,
            first_child_slot: 0,
            dictionary: draft.dictionary,
            subtree_end: draft.subtree_end,
            is_dictionary: draft.is_dictionary,
            format_text: draft.format_text,
            name: draft.name,
            metadata: draft.metadata,
        };
        Ok(())
    }

    #[inline]
    fn next(&self) -> u32 {
        self.next
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> core::result::Result<(), Full> {
        let end = self.at.wrapping_add(bytes.len());
        self.bytes.get_mut(self.at..end).ok_or(Full::Changed)?.copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    #[inline]
    fn at(&self) -> u32 {
        u32::try_from(self.at).unwrap_or(u32::MAX)
    }

    #[inline]
    fn text(&mut self, text: &[u8]) -> core::result::Result<Range, Full> {
        let range = Range { at: self.at(), length: u32::try_from(text.len()).map_err(|_| Full::Changed)? };
        let rest = self.bytes.get_mut(self.at..).ok_or(Full::Changed)?;
        // The block starts as zeroes, so the terminator is there if its place is.
        let (room, tail) = rest.split_at_mut_checked(text.len()).ok_or(Full::Changed)?;
        if tail.is_empty() {
            return Err(Full::Changed);
        }
        room.copy_from_slice(text);
        self.at = self.at.wrapping_add(text.len()).wrapping_add(1);
        Ok(range)
    }
}

/// Something that a type can be made from.
pub(super) trait Source {
    /// The status of a structure that breaks a rule.
    const BROKEN: Status;

    /// Tells all nodes, depth first, the same each time.
    fn emit<S: Sink>(&self, sink: &mut S, report: &mut Report<'_>) -> Result<()>;
}

/// Makes a type in one allocation.
pub(super) fn assemble<T: Source>(source: &T, report: &mut Report<'_>) -> Result<Type> {
    let mut measured = Measure::default();
    source.emit(&mut measured, report)?;
    let header = TypeHeader { depth: u32::try_from(measured.depth).unwrap_or(u32::MAX) };
    let (Ok(n_nodes), Ok(n_bytes)) = (usize::try_from(measured.nodes), usize::try_from(measured.bytes))
    else {
        return Err(report.out_of_memory(usize::MAX));
    };
    let fill = |parts: Parts<'_, TypeNode>, report: &mut Report<'_>| {
        let mut fill = Fill { nodes: parts.items, bytes: parts.bytes, next: 0, at: 0 };
        source.emit(&mut fill, report)?;
        if fill.next != measured.nodes || fill.at != n_bytes || !link(fill.nodes, parts.indices) {
            return Err(report.broken(Rule::None, &"$", format_args!("{}", Full::Changed)));
        }
        check::structure(fill.nodes, fill.bytes, T::BROKEN, report)
    };
    let block = Shared::try_new(
        &counts::TYPES,
        header,
        TypeNode::BLANK,
        Room { n_items: n_nodes, n_indices: measured.links, n_bytes },
        report,
        fill,
    )?;
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
