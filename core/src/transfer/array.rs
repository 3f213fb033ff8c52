//! Arrays copied to another device.

use super::moves::{Move, Moves, moves};
use super::{Options, Path, path, shared_place, sync_of_source};
use crate::abi::{DEVICE_CPU, Device};
use crate::array::{Array, from_buffers};
use crate::device::Work;
use crate::error::{Report, Result, Rule, Status};
use crate::kernels::{read_offset, write_offset};
use crate::memory::{OwnedBuffer, reserve};
use crate::tree::{Copied, Copies, Facts, Fetch, Placement, Tree, role_name};
use crate::types::{Extent, Role, Slot, Type};

/// The window's values on `to`, and whether that is the same memory.
///
/// A copy has its own memory, a piece for each buffer, and takes along what the window shows. On a device it may still be
/// under way; its event says when it is done.
pub fn array_to_device(
    array: &Array,
    to: Device,
    options: &Options<'_>,
    report: &mut Report<'_>,
) -> Result<(Array, bool)> {
    let place = array.tree().place();
    if options.may_share
        && let Some(shared) = shared_place(place, to, &options.sync, report)?
    {
        let array = if shared == place { array.clone() } else { array.reachable_at(shared, report)? };
        return Ok((array, true));
    }
    let ty = array.ty();
    let Some(ty) = ty else { return Err(no_node(report)) };
    match path(place, to, &options.sync, report)? {
        Path::Straight(work) => copied(array, &ty, to, work, options, report).map(|array| (array, false)),
        Path::ThroughHost => {
            let sync = sync_of_source(place.device, to, &options.sync, report)?;
            let hop = Options { sync, progress: options.progress, ..Options::DEFAULT };
            let (host, _) = array_to_device(array, Device::CPU, &hop, report)?;
            let Path::Straight(work) = path(host.tree().place(), to, &options.sync, report)? else {
                return Err(no_node(report));
            };
            copied(&host, &ty, to, work, options, report).map(|array| (array, false))
        }
    }
}

/// One buffer of the copy.
#[derive(Debug, Clone, Copy)]
enum Piece {
    /// Nothing: it is built, or there is none.
    Absent,
    /// Offsets that the CPU moves to the front when they are there.
    Offsets(Shift),
    /// Bytes as they are.
    Bytes,
}

/// How offsets are moved to the front.
#[derive(Debug, Clone, Copy)]
struct Shift {
    /// What is taken from each.
    by: i64,
    /// Size of an offset.
    width: usize,
    /// How many come before those that are shown; they become 0.
    lead: usize,
}

impl Shift {
    fn of(own: &Move, slot: &Slot) -> Self {
        let width = usize::try_from(slot.bits >> 3).unwrap_or(8).max(1);
        Self { by: own.shift(), width, lead: usize::try_from(own.lead).unwrap_or(0) }
    }
}

fn copied(
    array: &Array,
    ty: &Type,
    to: Device,
    work: Work,
    options: &Options<'_>,
    report: &mut Report<'_>,
) -> Result<Array> {
    let from = array.tree().device();
    let sync = sync_of_source(from, to, &options.sync, report)?;
    let plan = moves(array, &sync, report)?;
    let n_buffers = array.n_buffers();
    let copies = Copies::of_array(array, to, work, n_buffers, options.allocator, report)?;
    let mut job = Job { array, tree: array.tree(), plan: &plan, copies, pieces: reserve(n_buffers, report)? };
    let to_host = to.r#type == DEVICE_CPU;
    if !to_host {
        job.stage_offsets(&sync, report)?;
    }
    let (mut bytes, mut staged) = (0usize, 0usize);
    for (i, own) in plan.moves.iter().enumerate() {
        for k in 0..usize::try_from(own.facts.n_buffers).unwrap_or(0) {
            options.tell(array.length(), bytes, report)?;
            let n = job.buffer(i, own, k, to_host, &mut staged, report)?;
            bytes = bytes.saturating_add(n);
        }
    }
    options.tell(array.length(), bytes, report)?;
    let Job { copies, pieces, .. } = job;
    let copied = copies.finish(report)?;
    built(ty, &plan, &pieces, copied, to, report)
}

struct Job<'a> {
    array: &'a Array,
    tree: &'a Tree,
    plan: &'a Moves,
    copies: Copies<'a>,
    /// What became of each buffer, in their order.
    pieces: Vec<Piece>,
}

impl Job<'_> {
    fn index(&self, i: usize) -> usize {
        self.array.node().saturating_add(i)
    }

    /// Enqueues the copy of a buffer; gives its size.
    fn buffer(
        &mut self,
        i: usize,
        own: &Move,
        k: usize,
        to_host: bool,
        staged: &mut usize,
        report: &mut Report<'_>,
    ) -> Result<usize> {
        let index = self.index(i);
        let Some(slot) = self.tree.slot(index, k) else { return Err(no_node(report)) };
        let (at, n) = self.range(i, own, k, &slot, report)?;
        let is_empty_offsets = slot.extent == Extent::RowsPlusOne && n == 0;
        if n == 0 && !is_empty_offsets {
            self.pieces.push(Piece::Absent);
            return Ok(0);
        }
        // A lone offset of nothing is in the zeroes behind.
        let number = self.copies.room(n, report)?;
        let mut piece = Piece::Bytes;
        if slot.extent == Extent::RowsPlusOne && own.shift() != 0 && n > 0 {
            piece = Piece::Offsets(Shift::of(own, &slot));
            if !to_host {
                self.copies.copy_staged(number, *staged, n, report)?;
                *staged = staged.saturating_add(n);
                self.pieces.push(Piece::Bytes);
                return Ok(n);
            }
        }
        if n > 0 {
            self.copies.copy(number, (index, k, at), n, report)?;
        }
        self.pieces.push(piece);
        Ok(n)
    }

    /// Which bytes of a buffer are copied; an error where it has not so many.
    fn range(
        &self,
        i: usize,
        own: &Move,
        k: usize,
        slot: &Slot,
        report: &mut Report<'_>,
    ) -> Result<(usize, usize)> {
        let index = self.index(i);
        let is_null = self.tree.buffer(index, k).is_null();
        if slot.role == Role::VariadicSizes || (slot.role == Role::Validity && is_null) {
            return Ok((0, 0));
        }
        let variadic = if slot.extent == Extent::VariadicSize { self.variadic(i, k) } else { None };
        let range = own.bytes(slot, variadic).and_then(|(at, n)| {
            let end = at.checked_add(n)?;
            Some((usize::try_from(at).ok()?, usize::try_from(n).ok()?, end))
        });
        let Some((at, n, end)) = range else {
            let message = format_args!("expected a buffer {k} within 64 bits, found a larger one");
            return Err(self.broken(i, Rule::A1, report, message));
        };
        let stated = self.tree.stated_size(index, k);
        if n > 0 && (is_null || (stated >= 0 && end > stated)) {
            let role = role_name(slot.role);
            let rule = if is_null { Rule::A5 } else { Rule::A4 };
            if is_null {
                let message = format_args!("expected {end} bytes of {role} in buffer {k}, found NULL");
                return Err(self.broken(i, rule, report, message));
            }
            let message = format_args!("expected {end} bytes of {role} in buffer {k}, found {stated}");
            return Err(self.broken(i, rule, report, message));
        }
        Ok((at, n))
    }

    /// The size of variadic buffer `k` of node `i`.
    fn variadic(&self, i: usize, k: usize) -> Option<i64> {
        let mut before = 0usize;
        for own in 0..i {
            let index = self.index(own);
            let node = self.tree.nodes().get(index)?;
            let last = node.n_buffers.checked_sub(1).and_then(|k| self.tree.slot(index, k));
            if last.is_some_and(|slot| slot.extent == Extent::VariadicCount) {
                before = before.saturating_add(node.n_buffers.saturating_sub(3));
            }
        }
        self.plan.variadic.get(before.checked_add(k.checked_sub(2)?)?).copied()
    }

    /// Reads the offsets that are to be changed, and changes them on the way: no device does it.
    fn stage_offsets(&mut self, sync: &crate::device::Sync, report: &mut Report<'_>) -> Result<()> {
        let mut wanted = reserve(self.plan.moves.len(), report)?;
        let mut size = 0usize;
        for (i, own) in self.plan.moves.iter().enumerate() {
            let slot = self.tree.slot(self.index(i), 1).filter(|slot| slot.extent == Extent::RowsPlusOne);
            let Some(slot) = slot.filter(|_| own.shift() != 0 && own.n > 0) else { continue };
            let (at, n) = self.range(i, own, 1, &slot, report)?;
            wanted.push((i, at, n, Shift::of(own, &slot)));
            size = size.saturating_add(n);
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let (tree, first) = (self.tree, self.array.node());
        self.copies.stage(size, report, |bytes, report| {
            let mut fetches = reserve(wanted.len(), report)?;
            let mut rest = &mut *bytes;
            for (i, at, n, ..) in &wanted {
                let (into, others) = rest.split_at_mut_checked(*n).unwrap_or_default();
                rest = others;
                fetches.push(Fetch { node: first.saturating_add(*i), k: 1, at: *at, into });
            }
            tree.fetch(sync, &mut fetches, report)?;
            drop(fetches);
            let mut rest = bytes;
            for (_, _, n, shift) in &wanted {
                let (own, others) = rest.split_at_mut_checked(*n).unwrap_or_default();
                rest = others;
                subtract(own, *shift);
            }
            Ok(())
        })
    }

    #[cold]
    fn broken(
        &self,
        i: usize,
        rule: Rule,
        report: &mut Report<'_>,
        message: core::fmt::Arguments<'_>,
    ) -> crate::error::Failed {
        super::told::broken(self.array, i, rule, report, message)
    }
}

/// Moves offsets to the front.
fn subtract(offsets: &mut [u8], Shift { by, width, lead }: Shift) {
    for (i, offset) in offsets.chunks_exact_mut(width).enumerate() {
        if let Some(old) = read_offset(offset, width) {
            write_offset(offset, width, if i < lead { 0 } else { old.wrapping_sub(by) });
        }
    }
}

/// Puts the copies together.
fn built(
    ty: &Type,
    plan: &Moves,
    pieces: &[Piece],
    mut copied: Copied,
    to: Device,
    report: &mut Report<'_>,
) -> Result<Array> {
    let mut nodes = reserve::<Facts>(plan.moves.len(), report)?;
    nodes.extend(plan.moves.iter().map(|own| own.facts));
    let mut buffers = Owned(reserve(pieces.len(), report)?);
    for piece in pieces {
        let buffer = match *piece {
            Piece::Absent => Some(OwnedBuffer::absent()),
            Piece::Bytes => copied.next(to, |_| ()),
            Piece::Offsets(shift) => copied.next(to, |bytes| subtract(bytes, shift)),
        };
        buffers.0.push(buffer.unwrap_or_else(OwnedBuffer::absent));
    }
    let mut placement = Placement::on(to).with_shared_event(copied.event.take());
    let made = from_buffers(ty, &nodes, &mut buffers.0, Some(&mut placement), report);
    // What was not taken is let go.
    drop(buffers);
    drop(placement.take(None));
    made?.into_array(ty, report)
}

/// Memory whose owners are let go unless they were taken.
struct Owned(Vec<OwnedBuffer>);

impl Drop for Owned {
    fn drop(&mut self) {
        for buffer in &mut self.0 {
            drop(buffer.take_owner());
        }
    }
}

#[cold]
fn no_node(report: &mut Report<'_>) -> crate::error::Failed {
    report.fail(Status::Internal, format_args!("expected a node of the array, found none"))
}
