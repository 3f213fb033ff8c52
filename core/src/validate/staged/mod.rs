//! What a node's buffers hold where the CPU cannot read them: rows are copied, a block of them after the other, and then
//! checked as any others are.
//!
//! The findings are those of the same data in CPU memory, in the same order. So where a check takes several walks over all
//! rows, each of them copies anew.

mod nested;
mod staging;
mod text;
mod views;

use core::ops::Range;

use super::contents::{Contents, nulls_in};
use super::options::{Level, Options};
use super::structure::Structure;
use super::subject::Subject;
use crate::abi::DEVICE_CPU;
use crate::device::check_address;
use crate::error::{ErrorRecord, Failed, Findings, Flow, Report, Rule, Severity};
use crate::tree::{At, Facts, Need, need, role_name};
use crate::types::{Extent, Format, Role};

use staging::{Memory, Piece, Reader, Staged, Wanted};
use views::Span;

/// Checks the contents of nodes on a device.
pub(super) struct Staging<'a> {
    reader: Reader<'a>,
    rooms: Rooms,
    level: Level,
    threads: u32,
}

/// Nodes whose copies need the same kinds of memory.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Rows,
    Text,
    Views,
}

/// Memory for copies.
#[derive(Default)]
struct Rooms {
    /// How the memory is divided.
    kind: Kind,
    /// What each row has.
    rows: Memory,
    /// Views that lead into `values`.
    views: Memory,
    spans: Vec<Span>,
    /// Text and bytes of rows.
    values: Memory,
    /// The sizes of variadic buffers.
    sizes: Memory,
}

impl<'a> Staging<'a> {
    /// For a subject whose device was found to be there.
    pub(super) fn new(subject: &'a dyn Subject, options: &'a Options) -> Self {
        let reader = Reader::new(subject, &options.sync, options.staging);
        Self { reader, rooms: Rooms::default(), level: options.level, threads: options.threads }
    }

    /// Checks a node whose structure is sound.
    pub(super) fn check(
        &mut self,
        at: At<'_>,
        structure: Structure,
        findings: &mut Findings<'_, '_>,
    ) -> Flow {
        if self.reader.is_over() {
            return Flow::Continue(());
        }
        let node = Node { at, structure, level: self.level, threads: self.threads };
        Walk { reader: &mut self.reader, rooms: &mut self.rooms, node }.check(findings)
    }

    /// Why the check is not complete, when it is not.
    pub(super) fn into_incomplete(self) -> Option<(Failed, ErrorRecord)> {
        self.reader.into_incomplete()
    }
}

/// A node, and how to look at it.
#[derive(Clone, Copy)]
struct Node<'a> {
    at: At<'a>,
    structure: Structure,
    level: Level,
    threads: u32,
}

impl Node<'_> {
    fn facts(&self) -> &Facts {
        &self.structure.facts
    }

    fn length(&self) -> usize {
        usize::try_from(self.structure.facts.length).unwrap_or(0)
    }

    /// The contents of some of its rows.
    fn part<'c>(&'c self, subject: &'c Staged<'c>, rows: Range<usize>) -> Contents<'c, Staged<'c>> {
        let facts = part_of(self.facts(), &rows);
        let node = Structure { facts, ..self.structure };
        Contents { subject, at: self.at, node, level: self.level, threads: self.threads, first: rows.start }
    }
}

/// The numbers of some rows of a node.
fn part_of(facts: &Facts, rows: &Range<usize>) -> Facts {
    let signed = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    Facts { offset: facts.offset.saturating_add(signed(rows.start)), length: signed(rows.len()), ..*facts }
}

/// The check of one node.
struct Walk<'a, 'w> {
    reader: &'w mut Reader<'a>,
    rooms: &'w mut Rooms,
    node: Node<'w>,
}

/// What a row needs of its node's buffers.
#[derive(Clone, Copy, Default)]
struct Needed {
    k: usize,
    bits: usize,
    /// Elements behind the last row's.
    more: usize,
}

const NOTHING: Needed = Needed { k: 0, bits: 0, more: 0 };

impl Walk<'_, '_> {
    fn check(&mut self, findings: &mut Findings<'_, '_>) -> Flow {
        if !self.addresses(findings)? {
            return Flow::Continue(());
        }
        let node = self.node.at.node;
        let format = node.format;
        self.share(format);
        let is_full = self.node.level == Level::Full;
        let n = self.node.length();
        if n > 0 && is_full {
            self.nulls(findings)?;
        }
        if node.has_dictionary() {
            return if n > 0 && is_full { self.alone(findings) } else { Flow::Continue(()) };
        }
        match format {
            Format::BinaryView | Format::Utf8View => self.views(format == Format::Utf8View, findings),
            Format::RunEndEncoded => self.runs(findings),
            Format::Map => {
                if n > 0 {
                    self.list(findings)?;
                }
                if is_full { self.keys(findings) } else { Flow::Continue(()) }
            }
            _ if n == 0 => Flow::Continue(()),
            Format::Binary | Format::LargeBinary => self.text(false, findings),
            Format::Utf8 | Format::LargeUtf8 => self.text(is_full, findings),
            Format::List | Format::LargeList => self.list(findings),
            _ if !is_full => Flow::Continue(()),
            Format::DenseUnion => self.dense(findings),
            _ => self.alone(findings),
        }
    }

    /// Divides the memory between what rows have and what they lead to.
    fn share(&mut self, format: Format) {
        let most = self.reader.most;
        let (kind, share) = match format {
            Format::Binary | Format::LargeBinary | Format::Utf8 | Format::LargeUtf8 => {
                (Kind::Text, most >> 2)
            }
            Format::BinaryView | Format::Utf8View => (Kind::Views, most >> 3),
            _ => (Kind::Rows, most),
        };
        self.reader.share = share;
        if kind != self.rooms.kind {
            // What is divided in another way would hold too much.
            *self.rooms = Rooms { kind, ..Rooms::default() };
        }
    }

    /// Checks that each buffer that has to have bytes is on the device, by rule D9; false when one of them is not.
    fn addresses(&mut self, findings: &mut Findings<'_, '_>) -> core::ops::ControlFlow<(), bool> {
        let Node { at, structure, .. } = self.node;
        let Facts { offset, length, .. } = structure.facts;
        let mut is_fine = true;
        for k in 0..structure.count {
            let Some(slot) = at.node.layout.slot_of(k, structure.count) else { continue };
            let n_variadic = structure.count.saturating_sub(at.node.layout.min_buffers());
            // What needs no bytes may have any address, and of others only the contents say how many they need.
            let is_read = length > 0 || slot.role == Role::VariadicSizes;
            if is_read && matches!(need(&slot, offset, length, n_variadic), Need::Bytes(n) if n > 0) {
                is_fine &= self.address(k, slot.role, findings)?;
            }
        }
        core::ops::ControlFlow::Continue(is_fine)
    }

    /// Checks that a buffer is on the device; false also where that cannot be asked.
    fn address(
        &mut self,
        k: usize,
        role: Role,
        findings: &mut Findings<'_, '_>,
    ) -> core::ops::ControlFlow<(), bool> {
        let (index, ty) = (self.node.at.index, self.node.at.ty);
        let (subject, device) = (self.reader.subject, self.reader.subject.place().device);
        let found = self.reader.attempt_to_read(|_, report| {
            if role == Role::VariadicSizes && subject.is_elsewhere(index, k, report)? {
                return Ok(None);
            }
            check_address(device, subject.buffer(index, k), report)
        });
        let Some(found) = found else { return core::ops::ControlFlow::Continue(false) };
        let Some(found) = found else { return core::ops::ControlFlow::Continue(true) };
        let message = format_args!(
            "expected {} of device {} {} in buffer {k}, found memory of device {} {}",
            role_name(role),
            crate::device::device_name(device.r#type),
            device.id,
            crate::device::device_name(found.r#type),
            found.id
        );
        let path = ty.path(index);
        if found.r#type != DEVICE_CPU && found.r#type != device.r#type {
            // Such as managed memory under the name of its device, which works there.
            findings.consumer(Severity::Warning, Rule::D9, &path, message)?;
            return core::ops::ControlFlow::Continue(true);
        }
        findings.broken(Rule::D9, &path, -1, message)?;
        core::ops::ControlFlow::Continue(false)
    }

    /// Whether bytes of another node are there, and where they are said to be. What is wrong with them is told at that node.
    fn is_readable_below(&self, wanted: Wanted) -> bool {
        let subject = self.reader.subject;
        let data = subject.buffer(wanted.node, wanted.k);
        let found = check_address(subject.place().device, data, &mut Report::silent());
        self.reader.is_there(wanted)
            && found.is_ok_and(|found| {
                found.is_none_or(|found| {
                    found.r#type != DEVICE_CPU && found.r#type != subject.place().device.r#type
                })
            })
    }

    /// Checks the null count, by rule A2.
    fn nulls(&mut self, findings: &mut Findings<'_, '_>) -> Flow {
        let facts = *self.node.facts();
        if facts.null_count < 0 || !self.node.at.node.layout.has_validity() {
            return Flow::Continue(());
        }
        let index = self.node.at.index;
        let counted = self.count_nulls(index, &facts, true);
        let staged = Staged::new(self.reader.subject, &[]);
        self.node.part(&staged, 0..self.node.length()).count(counted, findings)
    }

    /// As [`nulls_in`]; the address of the node's own bitmap is known to be good.
    fn count_nulls(&mut self, index: usize, facts: &Facts, is_own: bool) -> Option<i64> {
        let slot = self.reader.subject.ty().node(index)?.layout.slot_of(0, 1)?;
        let bitmap = Node {
            structure: Structure { facts: *facts, count: 1 },
            at: At { index, ..self.node.at },
            ..self.node
        };
        let wanted = wanted_of(&bitmap, Needed { k: 0, bits: 1, more: 0 }, &(0..bitmap.length()))?;
        let is_there = if is_own { self.reader.is_there(wanted) } else { self.is_readable_below(wanted) };
        if slot.role != Role::Validity || !is_there {
            return None;
        }
        let mut nulls = 0_i64;
        let n = bitmap.length();
        let step = self.reader.share.saturating_sub(2).max(1).saturating_mul(8);
        let mut start = 0;
        while start < n {
            let rows = start..n.min(start.saturating_add(step));
            start = rows.end;
            let wanted = wanted_of(&bitmap, Needed { k: 0, bits: 1, more: 0 }, &rows)?;
            let pieces = self.reader.stage(&mut self.rooms.rows, [wanted])?;
            let staged = Staged::new(self.reader.subject, &pieces);
            nulls = nulls.saturating_add(nulls_in(&staged, index, &part_of(facts, &rows))?);
        }
        Some(nulls)
    }

    /// Checks rows of which each is judged alone.
    fn alone(&mut self, findings: &mut Findings<'_, '_>) -> Flow {
        let node = self.node.at.node;
        let is_looked_at = node.has_dictionary()
            || matches!(
                node.format,
                Format::ListView
                    | Format::LargeListView
                    | Format::SparseUnion
                    | Format::Date64
                    | Format::Time32(_)
                    | Format::Time64(_)
                    | Format::Decimal { .. }
            );
        if !is_looked_at {
            // It reads nothing, or this says that it misses something.
            let staged = Staged::new(self.reader.subject, &[]);
            self.node.part(&staged, 0..self.node.length()).alone(findings)?;
            self.reader.settle(&staged);
            return Flow::Continue(());
        }
        let mut needed = [NOTHING; 3];
        for (k, (slot, place)) in node.layout.slots().iter().zip(&mut needed).enumerate() {
            let is_unused = slot.role == Role::Validity && self.node.facts().null_count == 0;
            if slot.extent == Extent::Rows && !is_unused {
                *place = Needed { k, bits: usize::try_from(slot.bits).unwrap_or(0), more: 0 };
            }
        }
        self.blocks(needed, findings, |part, findings| part.alone(findings))
    }

    /// Calls `check` for block after block of the rows, with what they need.
    fn blocks<const N: usize>(
        &mut self,
        needed: [Needed; N],
        findings: &mut Findings<'_, '_>,
        mut check: impl FnMut(&Contents<'_, Staged<'_>>, &mut Findings<'_, '_>) -> Flow,
    ) -> Flow {
        let (node, n) = (self.node, self.node.length());
        let step = rows_within(self.reader.share, &needed);
        let mut start = 0;
        while start < n && !self.reader.is_over() {
            let rows = start..n.min(start.saturating_add(step));
            start = rows.end;
            let wanted = needed.map(|needed| wanted_of(&node, needed, &rows).unwrap_or_default());
            let Some(pieces) = self.reader.stage(&mut self.rooms.rows, wanted) else { break };
            let staged = Staged::new(self.reader.subject, &pieces);
            check(&node.part(&staged, rows), findings)?;
            self.reader.settle(&staged);
        }
        Flow::Continue(())
    }
}

/// The bytes that some rows of a node need of a buffer; `None` when there cannot be so many.
fn wanted_of(node: &Node<'_>, Needed { k, bits, more }: Needed, rows: &Range<usize>) -> Option<Wanted> {
    let offset = usize::try_from(node.facts().offset).ok()?;
    let first = offset.checked_add(rows.start)?.checked_mul(bits)?;
    let end = offset.checked_add(rows.end)?.checked_add(more)?.checked_mul(bits)?;
    let at = first >> 3;
    let n = if bits == 0 { 0 } else { end.div_ceil(8).checked_sub(at)? };
    Some(Wanted { node: node.at.index, k, at, n })
}

/// How many rows have room in so many bytes; at least one.
fn rows_within(bytes: usize, needed: &[Needed]) -> usize {
    let mut bits = 0_usize;
    // Of a bitmap, the first and the last byte may have rows of other blocks.
    let mut extra = 0_usize;
    for one in needed {
        bits = bits.saturating_add(one.bits);
        let partial = if one.bits & 7 == 0 { 0 } else { 2 };
        extra = extra.saturating_add(one.more.saturating_mul(one.bits) >> 3).saturating_add(partial);
    }
    let room = bytes.saturating_sub(extra).saturating_mul(8);
    room.checked_div(bits).unwrap_or(usize::MAX).max(1)
}

/// A piece that stands for nothing.
const NO_PIECE: Piece<'static> = Piece { wanted: Wanted { node: 0, k: 0, at: 0, n: 0 }, bytes: &[] };
