//! Single buffers on any device.

use core::ffi::c_void;
use core::sync::atomic::AtomicU64;

use super::Copies;
use crate::abi::Device;
use crate::device::{Allocation, Allocator, Part, Route, Sync, SyncMode, Wait, Work, read_parts};
use crate::error::{Report, Result};
use crate::memory::{Buffer, Event, EventCell, OwnedBuffer, Owner, Place};

/// A buffer of its own memory: it owns the memory's owner and the event.
fn wrapped(
    memory: OwnedBuffer,
    size: usize,
    device: Device,
    event: Option<crate::device::SharedEvent>,
    report: &mut Report<'_>,
) -> Result<Buffer> {
    let mut memory = memory;
    let place = Place { device, event: Event::NONE };
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let is_handle = crate::device::has_event_handles(device.r#type);
    let data = memory.data();
    let parts = || {
        let cell = event.clone().map_or(EventCell::NONE, |event| {
            let (handle, context, destroy) = event.into_parts();
            // SAFETY: the event is destroyed with its last reference, one of which the cell has.
            unsafe { EventCell::new(handle, context, Some(destroy), is_handle) }
        });
        (memory.take_owner(), Owner::NONE, cell)
    };
    // SAFETY: the memory was made with room for so many bytes, on this device.
    let made = unsafe { Buffer::with_cell(data, size, place, report, parts) };
    drop(memory.take_owner());
    made
}

/// A copy of the first `size` bytes, which there are.
pub(crate) fn copy_buffer(
    buffer: &Buffer,
    size: usize,
    to: Device,
    work: Work,
    allocator: Option<Allocator>,
    report: &mut Report<'_>,
) -> Result<Buffer> {
    let mut copies = Copies::of_buffer(buffer, to, work, allocator, report)?;
    let number = copies.room(size, report)?;
    // SAFETY: the buffer vouches for its size.
    unsafe { copies.copy_buffer(number, buffer.data(), size, report) }?;
    let mut copied = copies.finish(report)?;
    let event = copied.event.take();
    match copied.next(to, |_| ()) {
        Some(memory) => wrapped(memory, size, to, event, report),
        None => Err(super::copies::internal(report)),
    }
}

/// Zeroes in CPU memory. Nobody writes to them: atomics are there so that they take no room in the library's file.
static ZERO_PAGES: [AtomicU64; 1 << 13] = [const { AtomicU64::new(0) }; 1 << 13];

/// Enqueues copies of zeroes over all of a device's memory: from the CPU, and where the device copies within itself, from what
/// was filled so far, twice as much each time.
fn fill_with_zeroes(work: &Work, memory: &Allocation, report: &mut Report<'_>) -> Result<()> {
    let (data, size) = (memory.data(), memory.size());
    let is_within = work.reaches(work.device(), work.device());
    let mut at = 0usize;
    while at < size {
        let to = data.wrapping_byte_add(at);
        let left = size.saturating_sub(at);
        let (route, from, n): (_, *const c_void, _) = if is_within && at > 0 {
            (Route::Within, data.cast_const(), left.min(at))
        } else {
            (Route::FromHost, ZERO_PAGES.as_ptr().cast(), left.min(size_of_val(&ZERO_PAGES)))
        };
        // SAFETY: both ranges are so long and apart; zeroes are there for good, and the memory until the queue is done.
        unsafe { work.copy(route, to, from, n, report) }?;
        at = at.saturating_add(n);
    }
    Ok(())
}

/// Zeroed memory on a device that is not the CPU.
pub(crate) fn allocate_on(
    device: Device,
    size: usize,
    sync: &Sync,
    report: &mut Report<'_>,
) -> Result<(Buffer, *mut c_void)> {
    let work = Work::on(device, sync, report)?;
    let mut memory = work.allocate(size, None, report)?;
    let data = memory.data();
    let filled = fill_with_zeroes(&work, &memory, report);
    let is_async = matches!(work.mode(), SyncMode::Queue | SyncMode::Library);
    let event = match filled {
        Ok(()) if is_async => work.record(report),
        Ok(()) => work.drain(Wait::AllocatedReady, report).map(|()| None),
        Err(failed) => Err(failed),
    };
    let event = match event {
        Ok(event) => event,
        Err(failed) => {
            if !work.settle(Wait::FailedAllocation) {
                // It may still be written to.
                core::mem::forget(memory);
            }
            return Err(failed);
        }
    };
    if let Some(event) = &event {
        memory.free_after(event.clone());
    }
    let buffer = wrapped(memory.into_owned(size), size, device, event, report)?;
    Ok((buffer, data))
}

/// A copy of CPU memory on another device, which is there when this returns.
pub(crate) fn upload(buffer: &Buffer, to: Device, report: &mut Report<'_>) -> Result<Buffer> {
    let work = Work::of_library(to, SyncMode::Host, report)?;
    let size = usize::try_from(buffer.size()).unwrap_or(0);
    copy_buffer(buffer, size, to, work, None, report)
}

/// Copies the first bytes of memory on a device into CPU memory, after what is on the queue that `sync` names, and waits until
/// they are there.
pub(crate) fn fetch_owned(
    memory: &OwnedBuffer,
    device: Device,
    into: &mut [u8],
    sync: &Sync,
    report: &mut Report<'_>,
) -> Result<()> {
    let n = i64::try_from(into.len()).unwrap_or(i64::MAX);
    if n > 0 && (memory.data().is_null() || (memory.size_bytes() >= 0 && memory.size_bytes() < n)) {
        return Err(super::copies::internal(report));
    }
    let part = (n > 0).then(|| Part { from: memory.data(), into });
    // SAFETY: whoever made the description vouched for as many bytes.
    unsafe { read_parts(Place { device, event: Event::NONE }, sync, part.into_iter(), report) }
}

/// Copies `n` bytes of a buffer from `offset` on into CPU memory of that size, and waits until they are there.
pub(crate) fn fetch_buffer(
    buffer: &Buffer,
    (offset, n): (i64, i64),
    into: &mut [u8],
    sync: &Sync,
    report: &mut Report<'_>,
) -> Result<()> {
    let at = buffer.range(offset, n, report)?;
    let part = (!into.is_empty()).then(|| Part { from: buffer.data().wrapping_byte_add(at), into });
    // SAFETY: the buffer vouches for its size.
    unsafe { read_parts(buffer.place(), sync, part.into_iter(), report) }
}
