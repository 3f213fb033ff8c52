//! Which values of each node a copy takes along, and how large that makes each buffer.

use super::told::{Ends, broken, read_ends};
use crate::abi::DEVICE_CPU;
use crate::array::Array;
use crate::device::Sync;
use crate::error::{Report, Result, Rule, Status};
use crate::kernels::read_offset;
use crate::memory::reserve;
use crate::tree::{Facts, Fetch};
use crate::types::{Extent, Format, Slot, TypeNode};

/// What is copied of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move {
    /// Physical index of the first value that is copied; at a whole byte where there are bitmaps.
    pub from: i64,
    /// Number of values that are copied.
    pub n: i64,
    /// How many of them come before those that are shown, to make a whole byte: nobody vouches for their offsets.
    pub lead: i64,
    /// The copy's own numbers.
    pub facts: Facts,
    /// Whether only part of the node is copied.
    pub is_part: bool,
    /// Where offsets lead: the first and the last that are copied.
    pub ends: Option<(i64, i64)>,
}

/// What is copied of every node of a window, in the order of its nodes.
#[derive(Debug)]
pub(super) struct Moves {
    pub moves: Vec<Move>,
    /// The sizes of variadic buffers, node after node.
    pub variadic: Vec<i64>,
}

impl Move {
    /// How far values are moved to the front: what is taken from offsets.
    pub(super) fn shift(&self) -> i64 {
        self.ends.filter(|_| self.is_part).map_or(0, |(first, _)| first)
    }

    /// Which bytes of a buffer are copied: the first, and how many. Variadic buffers are told by their sizes.
    pub(super) fn bytes(&self, slot: &Slot, variadic: Option<i64>) -> Option<(i64, i64)> {
        let scaled = |n: i64| -> Option<i64> {
            let bits = i64::try_from(slot.bits).ok()?;
            if bits & 7 == 0 { n.checked_mul(bits >> 3) } else { Some(n.checked_add(7)? >> 3) }
        };
        match slot.extent {
            Extent::Rows => Some((scaled(self.from)?, scaled(self.n)?)),
            Extent::RowsPlusOne if self.n == 0 => Some((0, 0)),
            Extent::RowsPlusOne => Some((scaled(self.from)?, scaled(self.n.checked_add(1)?)?)),
            Extent::LastOffset => {
                let (_, last) = self.ends.unwrap_or((0, 0));
                let first = self.shift();
                Some((first, last.checked_sub(first)?))
            }
            Extent::VariadicSize => Some((0, variadic.unwrap_or(0))),
            Extent::VariadicCount => Some((0, 0)),
        }
    }
}

/// Finds out what to copy of `array`. What only memory tells is read under one wait, and one more for each level of lists
/// below one that only part of is shown.
pub(super) fn moves(array: &Array, sync: &Sync, report: &mut Report<'_>) -> Result<Moves> {
    let n = array.n_nodes();
    let mut this = Search { array, found: reserve(n, report)?, asked: reserve(n, report)?, n_found: 0 };
    this.found.resize(n, None);
    let mut variadic = Variadic::of(array, report)?;
    let mut sizes = None;
    while this.n_found < n || sizes.is_none() {
        this.go_on(report)?;
        let more = if sizes.is_none() { variadic.wanted(array, report)? } else { Vec::new() };
        let ends = read_ends(array, &this.asked, more, sync, report)?;
        this.answer(&ends, report)?;
        if sizes.is_none() {
            sizes = Some(variadic.checked(array, report)?);
        }
        if this.asked.is_empty() && this.n_found < n {
            let message = format_args!("expected every node to be found, found {} of {n}", this.n_found);
            return Err(report.fail(Status::Internal, message));
        }
    }
    let mut moves = reserve(n, report)?;
    moves.extend(this.found.into_iter().flatten());
    Ok(Moves { moves, variadic: sizes.unwrap_or_default() })
}

struct Search<'a> {
    array: &'a Array,
    /// One for each node, as far as it was found.
    found: Vec<Option<Move>>,
    /// What has to be read before others can be found.
    asked: Vec<Ends>,
    n_found: usize,
}

impl Search<'_> {
    /// Finds as many as can be found without reading more, and asks for what is to be read.
    fn go_on(&mut self, report: &mut Report<'_>) -> Result<()> {
        self.asked.clear();
        for i in 0..self.found.len() {
            if self.found.get(i).is_some_and(Option::is_some) {
                continue;
            }
            let Some(found) = self.find(i, report)? else { continue };
            if let Some(ends) = self.ends_of(i, &found) {
                self.asked.push(ends);
            }
            if let Some(place) = self.found.get_mut(i) {
                *place = Some(found);
                self.n_found = self.n_found.saturating_add(1);
            }
        }
        Ok(())
    }

    fn move_of(&self, i: usize) -> Option<&Move> {
        self.found.get(i)?.as_ref()
    }

    /// What is copied of node `i`; nothing yet when that depends on offsets that are still to be read.
    fn find(&self, i: usize, report: &mut Report<'_>) -> Result<Option<Move>> {
        let (tree, ty) = (self.array.tree(), self.array.tree().ty());
        let index = self.array.node().saturating_add(i);
        let (Some(node), Some(own), Some(whole)) =
            (ty.node(index), tree.nodes().get(index), tree.facts(index))
        else {
            return Err(broken(self.array, i, Rule::A7, report, format_args!("expected a node, found none")));
        };
        let span = if i == 0 {
            Some((self.array.offset(), self.array.length()))
        } else {
            match self.below(i, node, (own.offset, own.length)) {
                Below::Rows(first, n) => Some((first, n)),
                Below::Unknown => return Ok(None),
                Below::TooFar => None,
            }
        };
        let Some((start, length)) = span else {
            let message =
                format_args!("expected offsets within 64 bits through all levels, found larger ones");
            return Err(broken(self.array, i, Rule::A1, report, message));
        };
        let is_part = (start, length) != (own.offset, own.length);
        let null_count = if i == 0 {
            self.array.shown_nulls(index)
        } else {
            crate::array::derived_nulls(whole.null_count, own.length, length)
        };
        let slots = (0..own.n_buffers).filter_map(|k| Some((k, tree.slot(index, k)?)));
        let mut has_bits = false;
        let mut has_rows = false;
        for (k, slot) in slots {
            has_bits |= slot.bits == 1 && !tree.buffer(index, k).is_null();
            has_rows |= matches!(slot.extent, Extent::Rows | Extent::RowsPlusOne);
        }
        let mut facts = Facts { length, null_count, offset: 0, ..whole };
        let (mut from, mut n, mut lead) = (start, length, 0);
        if node.format == Format::RunEndEncoded {
            // Rows are counted along the run ends, which are copied whole.
            facts.offset = start;
        } else if has_bits && has_rows {
            lead = start & 7;
            facts.offset = lead;
            from = start.saturating_sub(lead);
            n = length.saturating_add(lead);
        }
        if length == 0 {
            (from, n, lead) = (start, 0, 0);
            facts.offset = 0;
        }
        let ends = if is_part || n == 0 { None } else { self.stated_ends(index) };
        Ok(Some(Move { from, n, lead, facts, is_part, ends }))
    }

    /// Which values of a node belong to those that are copied of its parent.
    fn below(&self, i: usize, node: &TypeNode, whole: (i64, i64)) -> Below {
        let ty = self.array.tree().ty();
        let parent = (node.parent as usize).checked_sub(ty.base());
        let parent = parent.and_then(|parent| parent.checked_sub(self.array.node())).filter(|_| i > 0);
        let Some(parent) = parent.filter(|_| !node.is_dictionary) else {
            return Below::Rows(whole.0, whole.1);
        };
        let Some(above) = self.move_of(parent) else { return Below::Unknown };
        let index = self.array.node().saturating_add(parent);
        let rows =
            |first: Option<i64>, n: Option<i64>| match (first.and_then(|at| whole.0.checked_add(at)), n) {
                (Some(first), Some(n)) => Below::Rows(first, n),
                _ => Below::TooFar,
            };
        match ty.node(index).map_or(Format::Null, |node| node.format) {
            Format::Struct | Format::SparseUnion => rows(Some(above.from), Some(above.n)),
            Format::FixedSizeList(size) => {
                let size = i64::from(size);
                rows(above.from.checked_mul(size), above.n.checked_mul(size))
            }
            Format::List | Format::LargeList | Format::Map if above.is_part => match above.ends {
                Some((first, last)) => rows(Some(first), last.checked_sub(first)),
                None if above.n == 0 => Below::Rows(whole.0, 0),
                None => Below::Unknown,
            },
            _ => Below::Rows(whole.0, whole.1),
        }
    }

    /// Where all of a node's text is as its maker said, where that need not be read from a device, and waited for.
    fn stated_ends(&self, index: usize) -> Option<(i64, i64)> {
        let tree = self.array.tree();
        let has_data = tree.slot(index, 2).is_some_and(|slot| slot.extent == Extent::LastOffset);
        let size = tree.stated_size(index, 2);
        (has_data && size >= 0 && tree.device().r#type != DEVICE_CPU).then_some((0, size))
    }

    /// The offsets of a node that has to be read: those of text and bytes, and of lists that only part of is copied.
    fn ends_of(&self, i: usize, own: &Move) -> Option<Ends> {
        let tree = self.array.tree();
        let index = self.array.node().saturating_add(i);
        let slot = tree.slot(index, 1).filter(|slot| slot.extent == Extent::RowsPlusOne)?;
        let has_data = tree.slot(index, 2).is_some_and(|slot| slot.extent == Extent::LastOffset);
        if own.n == 0 || own.ends.is_some() || !(has_data || own.is_part) {
            return None;
        }
        let first = usize::try_from(own.from.checked_add(own.lead)?).ok()?;
        let last = usize::try_from(own.from.checked_add(own.n)?).ok()?;
        Some(Ends { node: i, first, last, width: usize::try_from(slot.bits >> 3).ok()? })
    }

    /// Takes what was read, after checking it.
    fn answer(&mut self, ends: &[(i64, i64)], report: &mut Report<'_>) -> Result<()> {
        for (asked, (first, last)) in self.asked.iter().zip(ends) {
            let limit = self.limit(asked.node);
            if *first < 0 || last < first || *last > limit {
                let message = format_args!(
                    "expected a first and a last offset from 0 to {limit}, in order, found {first} and {last}"
                );
                return Err(broken(self.array, asked.node, Rule::B1, report, message));
            }
            if let Some(Some(own)) = self.found.get_mut(asked.node) {
                own.ends = Some((*first, *last));
            }
        }
        Ok(())
    }

    /// How far offsets of a node may lead.
    fn limit(&self, i: usize) -> i64 {
        let tree = self.array.tree();
        let index = self.array.node().saturating_add(i);
        if let Some(child) = tree.ty().child_index(index, 0) {
            return tree.nodes().get(child).map_or(0, |child| child.length);
        }
        match tree.stated_size(index, 2) {
            size if size >= 0 => size,
            _ => i64::MAX,
        }
    }
}

enum Below {
    /// Physical index of the first, and how many.
    Rows(i64, i64),
    /// Offsets that are not read yet tell.
    Unknown,
    /// More than 64 bits can count.
    TooFar,
}

/// The sizes of all variadic buffers, as somebody said or as the buffers of sizes say.
struct Variadic {
    sizes: Vec<i64>,
    /// One for each size that nobody said.
    copies: Vec<[u8; 8]>,
}

impl Variadic {
    fn of(array: &Array, report: &mut Report<'_>) -> Result<Self> {
        let tree = array.tree();
        let n = views(array).fold(0usize, |sum, (_, count)| sum.saturating_add(count));
        let mut sizes = reserve::<i64>(n, report)?;
        for (i, count) in views(array) {
            sizes.extend((0..count).map(|which| tree.stated_size(i, which.saturating_add(2))));
        }
        let n_unknown = sizes.iter().filter(|size| **size < 0).count();
        let mut copies = reserve(n_unknown, report)?;
        copies.resize(n_unknown, [0; 8]);
        Ok(Self { sizes, copies })
    }

    /// Where to read those that nobody said.
    fn wanted(&mut self, array: &Array, report: &mut Report<'_>) -> Result<Vec<Fetch<'_>>> {
        let tree = array.tree();
        let mut wanted = reserve(self.copies.len(), report)?;
        let (mut sizes, mut copies) = (self.sizes.iter(), self.copies.iter_mut());
        for (node, count) in views(array) {
            let k = tree.nodes().get(node).map_or(0, |node| node.n_buffers.saturating_sub(1));
            for which in 0..count {
                let is_known = sizes.next().is_none_or(|size| *size >= 0);
                if let (false, Some(into)) = (is_known, if is_known { None } else { copies.next() }) {
                    wanted.push(Fetch { node, k, at: which.saturating_mul(8), into });
                }
            }
        }
        Ok(wanted)
    }

    /// All of them, those that were read checked.
    fn checked(&mut self, array: &Array, report: &mut Report<'_>) -> Result<Vec<i64>> {
        let mut sizes = core::mem::take(&mut self.sizes);
        let (mut all, mut copies) = (sizes.iter_mut(), self.copies.iter());
        for (node, count) in views(array) {
            for which in 0..count {
                let Some(size) = all.next().filter(|size| **size < 0) else { continue };
                *size = copies.next().and_then(|bytes| read_offset(bytes, 8)).unwrap_or(-1);
                if *size < 0 {
                    let message = format_args!(
                        "expected a size of at least 0 for variadic buffer {which}, found {size}"
                    );
                    let node = node.saturating_sub(array.node());
                    return Err(broken(array, node, Rule::B2, report, message));
                }
            }
        }
        Ok(sizes)
    }
}

/// The nodes of a window that have variadic buffers, as the tree numbers them, and how many.
fn views(array: &Array) -> impl Iterator<Item = (usize, usize)> + '_ {
    let tree = array.tree();
    let end = array.node().saturating_add(array.n_nodes());
    let nodes = tree.nodes().iter().enumerate().take(end).skip(array.node());
    nodes.filter_map(|(i, node)| {
        let last = node.n_buffers.checked_sub(1).and_then(|k| tree.slot(i, k))?;
        (last.extent == Extent::VariadicCount).then_some((i, node.n_buffers.saturating_sub(3)))
    })
}
