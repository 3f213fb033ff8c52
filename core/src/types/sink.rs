//! Where nodes are told: a sink that measures, and one that fills a block.

use core::fmt::{self, Display};

use super::format::Format;
use super::layout::{Known, Layout};
use super::node::{Range, wide};
use super::{MAX_DEPTH, MAX_FORMAT, MAX_NODES, MAX_STRING, NONE, TypeNode};
use crate::abi::{CText, SchemaChildren, SchemaView};
use crate::memory::{Items, Parts};

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

type Fits<T> = core::result::Result<T, Full>;

/// What a source says about a node once it is complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draft {
    pub format: Format,
    pub flags: i64,
    pub parent: u32,
    pub is_dictionary: bool,
    pub n_children: u32,
    pub first_child_slot: u32,
    pub dictionary: u32,
    pub subtree_end: u32,
    pub format_text: Range,
    pub name: Range,
    pub metadata: Range,
}

/// A node with nothing below it and no metadata.
#[derive(Debug, Clone, Copy)]
struct Leaf<'a> {
    format: Format,
    layout: Known,
    text: &'a [u8],
    name: &'a [u8],
    flags: i64,
}

impl<'a> Leaf<'a> {
    /// What is read in few steps, as most nodes are. What is wrong with others is not said here.
    #[inline(always)]
    fn of_letter(view: SchemaView<'a>) -> Option<Self> {
        if !view.is_plain() {
            return None;
        }
        let letter = view.format_letter()?;
        let (format, layout) = Known::of_letter(*letter)?;
        Self::named(view, format, layout, core::slice::from_ref(letter))
    }

    /// The same, of any format.
    fn of_any(view: SchemaView<'a>) -> Option<Self> {
        if !view.is_plain() {
            return None;
        }
        let CText::Bytes(text) = view.format(MAX_FORMAT) else { return None };
        let format = Format::parse(text).ok().filter(|format| !format.is_nested())?;
        Self::named(view, format, Known::of(format)?, text)
    }

    #[inline(always)]
    fn named(view: SchemaView<'a>, format: Format, layout: Known, text: &'a [u8]) -> Option<Self> {
        let name = match view.name(MAX_STRING) {
            CText::Bytes(name) => name,
            CText::Missing => &[],
            CText::TooLong => return None,
        };
        Some(Self { format, layout, text, name, flags: view.flags() })
    }

    /// The bytes that the strings and their terminators take.
    #[inline(always)]
    fn size(&self) -> u32 {
        // The lengths are limited, far from overflow.
        self.text.len().wrapping_add(self.name.len()).wrapping_add(2) as u32
    }
}

/// Where a node goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub parent: u32,
    /// As `Sink::open` has it.
    pub level: usize,
    /// As `Sink::fill_slot` has it; `NONE` for the root and for dictionaries.
    pub slot: u32,
    pub is_dictionary: bool,
}

/// Where a source tells its nodes, depth first.
pub(super) trait Sink {
    /// Starts the next node, so many levels from the root, which is level 1; returns its number.
    fn open(&mut self, level: usize) -> Fits<u32>;
    /// Completes a node that was started.
    fn close(&mut self, node: u32, draft: &Draft) -> Fits<()>;
    /// The number that the next node will have.
    fn next(&self) -> u32;
    /// Adds bytes.
    fn put(&mut self, bytes: &[u8]) -> Fits<()>;
    /// Where the next byte will lie.
    fn at(&self) -> u32;

    /// Takes slots for the numbers of a node's children; returns the first.
    fn slots(&mut self, n_children: usize) -> u32;
    /// Writes the number of a node into a slot.
    fn fill_slot(&mut self, slot: u32, node: u32) -> Fits<()>;
    /// Adds children that are leaves with a format of one letter, up to the first that is not or does not fit. The
    /// slot moves on with them.
    fn leaves(&mut self, children: &mut SchemaChildren<'_>, spot: &mut Spot);
    /// Adds a leaf of any format. Where this says no, it is to be told part by part.
    fn leaf(&mut self, view: SchemaView<'_>, spot: Spot) -> bool;

    /// Adds bytes and says where they lie.
    fn bytes(&mut self, bytes: &[u8]) -> Fits<Range> {
        let at = self.at();
        self.put(bytes)?;
        Ok(Range { at, length: self.at().wrapping_sub(at) })
    }

    /// Adds bytes and a terminator, and says where the bytes lie.
    fn text(&mut self, text: &[u8]) -> Fits<Range>;
}

/// The first pass: counts, and checks the limits before anything is allocated.
#[derive(Debug, Default)]
pub(super) struct Measure {
    pub nodes: u32,
    pub links: usize,
    pub bytes: u32,
    pub depth: usize,
}

impl Measure {
    #[inline]
    fn grown(&self, more: usize) -> Fits<u32> {
        u32::try_from(more).ok().and_then(|n| self.bytes.checked_add(n)).ok_or(Full::Bytes)
    }
}

impl Sink for Measure {
    #[inline]
    fn open(&mut self, level: usize) -> Fits<u32> {
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
    fn close(&mut self, _: u32, draft: &Draft) -> Fits<()> {
        self.links = self.links.saturating_add(usize::try_from(draft.n_children).unwrap_or(usize::MAX));
        Ok(())
    }

    #[inline]
    fn next(&self) -> u32 {
        self.nodes
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Fits<()> {
        self.bytes = self.grown(bytes.len())?;
        Ok(())
    }

    #[inline]
    fn at(&self) -> u32 {
        self.bytes
    }

    #[inline]
    fn text(&mut self, text: &[u8]) -> Fits<Range> {
        let at = self.bytes;
        self.bytes = self.grown(text.len().wrapping_add(1))?;
        Ok(Range { at, length: narrow(text.len()) })
    }

    #[inline]
    fn slots(&mut self, _: usize) -> u32 {
        0
    }

    #[inline]
    fn fill_slot(&mut self, _: u32, _: u32) -> Fits<()> {
        Ok(())
    }

    #[inline(never)]
    fn leaves(&mut self, children: &mut SchemaChildren<'_>, spot: &mut Spot) {
        let room = if spot.level > MAX_DEPTH { 0 } else { MAX_NODES.saturating_sub(wide(self.nodes)) };
        let mut bytes = self.bytes;
        let added = children.pass_while(room, |view| {
            let Some(leaf) = Leaf::of_letter(view) else { return false };
            let Some(sum) = bytes.checked_add(leaf.size()) else { return false };
            bytes = sum;
            true
        });
        if added != 0 {
            self.depth = self.depth.max(spot.level);
        }
        self.nodes = self.nodes.wrapping_add(narrow(added));
        self.bytes = bytes;
    }

    fn leaf(&mut self, view: SchemaView<'_>, spot: Spot) -> bool {
        let sum = Leaf::of_any(view).and_then(|leaf| self.bytes.checked_add(leaf.size()));
        let Some(sum) = sum else { return false };
        let fits = self.open(spot.level).is_ok();
        if fits {
            self.bytes = sum;
        }
        fits
    }
}

/// The second pass: writes into the block.
#[derive(Debug)]
pub(super) struct Fill<'a, 'b> {
    items: &'a mut Items<'b, TypeNode>,
    indices: &'a mut [u32],
    bytes: &'a mut [u8],
    pub at: u32,
    pub linked: usize,
    /// Whether there is a node whose children's types matter.
    pub is_structured: bool,
}

impl<'a, 'b> Fill<'a, 'b> {
    pub(super) fn new(parts: &'a mut Parts<'b, TypeNode>) -> Self {
        let Parts { items, indices, bytes } = parts;
        Self { items, indices, bytes, at: 0, linked: 0, is_structured: false }
    }

    /// Room for so many bytes, and what comes after them.
    #[inline]
    fn room(&mut self, n: usize) -> Option<&mut [u8]> {
        let at = wide(self.at);
        self.bytes.get_mut(at..at.wrapping_add(n))
    }
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Sink for Fill<'_, '_> {
    #[inline]
    fn open(&mut self, level: usize) -> Fits<u32> {
        let node = self.next();
        if level > MAX_DEPTH || !self.items.push(TypeNode::BLANK) {
            return Err(Full::Changed);
        }
        Ok(node)
    }

    #[inline]
    fn close(&mut self, node: u32, draft: &Draft) -> Fits<()> {
        self.is_structured |= matches!(draft.format, Format::Map | Format::RunEndEncoded);
        let place = self.items.added().get_mut(wide(node)).ok_or(Full::Changed)?;
        let layout = Layout::of(draft.format);
        let is_leaf = draft.n_children == 0 && draft.dictionary == NONE;
        *place = TypeNode {
            format: draft.format,
            layout,
            flags: draft.flags,
            index: node,
            parent: draft.parent,
            n_children: draft.n_children,
            first_child_slot: draft.first_child_slot,
            dictionary: draft.dictionary,
            subtree_end: draft.subtree_end,
            leaf_bits: if is_leaf { layout.plain_bits() } else { 0 },
            is_dictionary: draft.is_dictionary,
            format_text: draft.format_text,
            name: draft.name,
            metadata: draft.metadata,
        };
        Ok(())
    }

    #[inline]
    fn next(&self) -> u32 {
        narrow(self.items.count())
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Fits<()> {
        copy(bytes, self.room(bytes.len()).ok_or(Full::Changed)?);
        self.at = self.at.wrapping_add(narrow(bytes.len()));
        Ok(())
    }

    #[inline]
    fn at(&self) -> u32 {
        self.at
    }

    #[inline]
    fn text(&mut self, text: &[u8]) -> Fits<Range> {
        let size = text.len().wrapping_add(1);
        // The block starts as zeroes, so the terminator is there if its place is.
        copy(text, self.room(size).ok_or(Full::Changed)?);
        let at = self.at;
        self.at = at.wrapping_add(narrow(size));
        Ok(Range { at, length: narrow(text.len()) })
    }

    #[inline]
    fn slots(&mut self, n_children: usize) -> u32 {
        let first = self.linked;
        self.linked = first.saturating_add(n_children);
        narrow(first)
    }

    #[inline]
    fn fill_slot(&mut self, slot: u32, node: u32) -> Fits<()> {
        *self.indices.get_mut(wide(slot)).ok_or(Full::Changed)? = node;
        Ok(())
    }

    #[inline(never)]
    fn leaves(&mut self, children: &mut SchemaChildren<'_>, spot: &mut Spot) {
        // The first pass found no child so deep.
        if spot.level > MAX_DEPTH {
            return;
        }
        // Taken out and put back, so that the loop has its numbers at hand.
        let (mut items, mut at) = (core::mem::take(self.items), self.at);
        let first = narrow(items.count());
        children.pass_while(usize::MAX, |view| {
            let Some(leaf) = Leaf::of_letter(view) else { return false };
            let index = items.count() as u32;
            let Some(node) = written(&leaf, index, spot.parent, self.bytes, at) else { return false };
            at = at.wrapping_add(leaf.size());
            items.push(node)
        });
        let end = narrow(items.count());
        *self.items = items;
        self.at = at;
        let slots = self.indices.get_mut(wide(spot.slot)..).unwrap_or_default();
        // Where slots are missing, their number will not be the one that was measured.
        for (slot, index) in slots.iter_mut().zip(first..end) {
            *slot = index;
        }
        spot.slot = spot.slot.wrapping_add(end.wrapping_sub(first));
    }

    fn leaf(&mut self, view: SchemaView<'_>, spot: Spot) -> bool {
        let Spot { parent, level, slot, is_dictionary } = spot;
        let (index, at) = (self.next(), self.at);
        let Some(leaf) = Leaf::of_any(view).filter(|_| level <= MAX_DEPTH) else { return false };
        let Some(node) = written(&leaf, index, parent, self.bytes, at) else { return false };
        self.at = at.wrapping_add(leaf.size());
        self.items.push(TypeNode { is_dictionary, ..node })
            && (slot == NONE || self.fill_slot(slot, index).is_ok())
    }
}

/// Writes a leaf's strings, and makes its node; nothing where they have no room.
#[inline(always)]
fn written(leaf: &Leaf<'_>, index: u32, parent: u32, bytes: &mut [u8], at: u32) -> Option<TypeNode> {
    let text_size = leaf.text.len().wrapping_add(1);
    let start = wide(at);
    let room = bytes.get_mut(start..start.wrapping_add(wide(leaf.size())))?;
    let (text, name) = room.split_at_mut_checked(text_size)?;
    // The block starts as zeroes, so the terminators are there.
    copy(leaf.text, text);
    copy(leaf.name, name);
    let layout = Layout::of_known(leaf.layout);
    Some(TypeNode {
        format: leaf.format,
        layout,
        flags: leaf.flags,
        index,
        parent,
        n_children: 0,
        first_child_slot: 0,
        dictionary: NONE,
        subtree_end: index.wrapping_add(1),
        leaf_bits: layout.plain_bits(),
        is_dictionary: false,
        format_text: Range { at, length: leaf.text.len() as u32 },
        name: Range { at: at.wrapping_add(text_size as u32), length: leaf.name.len() as u32 },
        metadata: Range::EMPTY,
    })
}

/// Copies a string to the start of its room, short ones without a call.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8]) {
    let Some(to) = to.get_mut(..from.len()) else { return };
    if let ([from], [to]) = (from, &mut *to) {
        *to = *from;
        return;
    }
    let ends = ends::<8>(from, to) || ends::<4>(from, to) || ends::<2>(from, to) || ends::<16>(from, to);
    if !ends {
        to.copy_from_slice(from);
    }
}

/// Copies the first and the last `N` bytes, where that is all.
#[inline(always)]
fn ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    if from.len() < N || from.len() > N.wrapping_mul(2) {
        return false;
    }
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (from.last_chunk::<N>(), to.last_chunk_mut::<N>()) {
        *to = *from;
    }
    true
}
