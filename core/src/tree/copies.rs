//! Copies of a tree's buffers to another device: what is enqueued, and what it needs until it is done.

use core::ffi::c_void;

use super::{Array, Tree, ZEROES};
use crate::abi::{DEVICE_CPU, Device};
use crate::device::{Allocation, Allocator, Route, SharedEvent, SyncMode, Wait, Work, pending};
use crate::error::{Report, Result, Status};
use crate::memory::{Buffer, OwnedBuffer, Owner, reserve};

/// Copies that are being enqueued. Dropped early, it waits for what was enqueued and frees what was made; where it cannot wait,
/// what may still be in use is never freed.
pub(crate) struct Copies<'a> {
    work: Work,
    to: Device,
    from: Device,
    source: Option<&'a Tree>,
    /// What keeps the source while copies are under way.
    keeps: Option<Owner>,
    staging: Option<Buffer>,
    made: Vec<Made>,
    allocator: Option<Allocator>,
    slot: Option<pending::Slot>,
    is_running: bool,
}

struct Made {
    memory: Allocation,
    size: usize,
}

/// What copies became.
pub(crate) struct Copied {
    made: std::vec::IntoIter<Made>,
    /// When the copies are done; none when they are.
    pub event: Option<SharedEvent>,
}

impl<'a> Copies<'a> {
    /// Copies from the window's buffers to `to`, on a queue of one of both.
    pub(crate) fn of_array(
        array: &'a Array,
        to: Device,
        work: Work,
        n: usize,
        allocator: Option<Allocator>,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let tree = array.tree();
        let mut this = Self::begin(tree.device(), to, work, n, allocator, report)?;
        this.source = Some(tree);
        this.keeps = Some(tree.as_owner());
        Ok(this)
    }

    /// Copies from a buffer to `to`, on a queue of one of both.
    pub(crate) fn of_buffer(
        buffer: &Buffer,
        to: Device,
        work: Work,
        allocator: Option<Allocator>,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let mut this = Self::begin(buffer.place().device, to, work, 1, allocator, report)?;
        this.keeps = Some(buffer.clone().into_owner());
        Ok(this)
    }

    fn begin(
        from: Device,
        to: Device,
        work: Work,
        n: usize,
        allocator: Option<Allocator>,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let slot = Some(pending::Slot::prepare(report)?);
        let made = reserve(n, report)?;
        let (source, keeps, staging) = (None, None, None);
        Ok(Self { work, to, from, source, keeps, staging, made, allocator, slot, is_running: false })
    }

    /// Memory for `size` bytes on the other device, with zeroes behind them; gives its number.
    pub(crate) fn room(&mut self, size: usize, report: &mut Report<'_>) -> Result<usize> {
        let on = if self.to.r#type == DEVICE_CPU && self.work.device().r#type != DEVICE_CPU {
            Work::of_library(self.to, SyncMode::Host, report)?
        } else {
            self.work
        };
        let memory = on.allocate(size, self.allocator.as_ref(), report)?;
        let behind = memory.size().saturating_sub(size);
        let end = memory.data().wrapping_byte_add(size);
        let number = self.made.len();
        self.made.push(Made { memory, size });
        // The padding is less than a line; an empty buffer's line counts whole.
        let zeroes = ZEROES.address();
        self.is_running = true;
        // SAFETY: the memory ends where the padding does, and as many zeroes are there for good.
        unsafe { on.copy(Route::FromHost, end, zeroes, behind.min(crate::memory::ALIGNMENT), report) }?;
        Ok(number)
    }

    /// Enqueues a copy of `n` bytes from `at` on of a buffer of the tree, which its numbers say that there are.
    pub(crate) fn copy(
        &mut self,
        number: usize,
        (node, k, at): (usize, usize, usize),
        n: usize,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let Some(tree) = self.source else { return Err(internal(report)) };
        let from = tree.buffer(node, k).wrapping_byte_add(at);
        if tree.buffer(node, k).is_null() {
            return Err(internal(report));
        }
        // SAFETY: the producer vouches for as many bytes as its numbers say, which the caller asks for.
        unsafe { self.enqueue(number, self.route(), from, n, report) }
    }

    /// Enqueues a copy of the first `n` bytes from `at` on of the buffer that the copies are of.
    ///
    /// # Safety
    /// There are so many.
    pub(crate) unsafe fn copy_buffer(
        &mut self,
        number: usize,
        from: *const c_void,
        n: usize,
        report: &mut Report<'_>,
    ) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.enqueue(number, self.route(), from, n, report) }
    }

    /// CPU memory that lives until the copies are done, zeroed; `fill` writes into it.
    pub(crate) fn stage(
        &mut self,
        size: usize,
        report: &mut Report<'_>,
        fill: impl FnOnce(&mut [u8], &mut Report<'_>) -> Result<()>,
    ) -> Result<()> {
        self.staging = Some(Buffer::filled(size, report, fill)?);
        Ok(())
    }

    /// Enqueues a copy of staged bytes.
    pub(crate) fn copy_staged(
        &mut self,
        number: usize,
        at: usize,
        n: usize,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let (at_signed, n_signed) = (i64::try_from(at).unwrap_or(-1), i64::try_from(n).unwrap_or(-1));
        let Some(staging) = &self.staging else { return Err(internal(report)) };
        let from = staging.bytes(at_signed, n_signed, report)?.as_ptr();
        // SAFETY: the staged bytes are in CPU memory, which lives until the copies are done.
        unsafe { self.enqueue(number, Route::FromHost, from.cast(), n, report) }
    }

    unsafe fn enqueue(
        &mut self,
        number: usize,
        route: Route,
        from: *const c_void,
        n: usize,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let Some(made) = self.made.get(number).filter(|made| n <= made.size) else {
            return Err(internal(report));
        };
        self.is_running = true;
        // SAFETY: the memory was made with room for as many bytes; the caller vouches for the source.
        unsafe { self.work.copy(route, made.memory.data(), from, n, report) }
    }

    fn route(&self) -> Route {
        match (self.from.r#type, self.to.r#type) {
            (DEVICE_CPU, _) => Route::FromHost,
            (_, DEVICE_CPU) => Route::ToHost,
            _ if self.from == self.to => Route::Within,
            _ => Route::From(self.from),
        }
    }

    /// Waits for copies to the CPU, or with HOST; elsewhere records when they will be done, and keeps what they need until then.
    pub(crate) fn finish(mut self, report: &mut Report<'_>) -> Result<Copied> {
        let is_host = self.to.r#type == DEVICE_CPU;
        let mut event = None;
        if is_host || self.work.mode() == SyncMode::Host {
            let wait = if is_host { Wait::CopyArrived } else { Wait::CopyFinished };
            self.work.drain(wait, report)?;
        } else {
            event = self.work.record(report)?;
        }
        self.is_running = false;
        if let Some(event) = &event {
            for made in &mut self.made {
                made.memory.free_after(event.clone());
            }
        }
        let staging = self.staging.take().map_or(Owner::NONE, Buffer::into_owner);
        let source = self.keeps.take().unwrap_or(Owner::NONE);
        if let Some(slot) = self.slot.take() {
            slot.hold(event.clone(), [source, staging]);
        }
        Ok(Copied { made: core::mem::take(&mut self.made).into_iter(), event })
    }
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        if self.is_running && !self.work.settle(Wait::FailedCopy) {
            core::mem::forget((core::mem::take(&mut self.made), self.keeps.take(), self.staging.take()));
        }
    }
}

impl Copied {
    /// The next memory in the order in which room was made, and its owner; `change` may write to it where the CPU can.
    pub(crate) fn next(&mut self, to: Device, change: impl FnOnce(&mut [u8])) -> Option<OwnedBuffer> {
        let Made { memory, size } = self.made.next()?;
        if to.r#type == DEVICE_CPU && size > 0 {
            // SAFETY: the memory is the CPU's, has so many bytes, and nobody else has it yet.
            change(unsafe { core::slice::from_raw_parts_mut(memory.data().cast::<u8>(), size) });
        }
        Some(memory.into_owned(size))
    }
}

#[cold]
pub(super) fn internal(report: &mut Report<'_>) -> crate::error::Failed {
    report.fail(Status::Internal, format_args!("expected room for a copy, found none"))
}
