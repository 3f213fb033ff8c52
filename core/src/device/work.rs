//! Work on a queue: what a call that copies or reads device memory does with its `Sync`.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::allocation::{Allocation, Allocator};
use super::backend::{Backend, Queue, Route};
use super::event::SharedEvent;
use super::registry::backend_of;
use super::sync::{Sync, SyncMode};
use super::waits::{self, Wait};
use super::{device_name, pending};
use crate::abi::{DEVICE_CPU, Device};
use crate::error::{Failed, Report, Result, Status};
use crate::memory::{Event, Owner, Place};

/// A device's queue: the caller's own, or one of the library's.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    backend: &'static dyn Backend,
    device: Device,
    queue: Queue,
    mode: SyncMode,
}

/// Bytes to be copied into CPU memory.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    /// Where they are.
    pub from: *const c_void,
    /// Where they go.
    pub into: &'a mut [u8],
}

impl Work {
    /// Work on `device`, on the queue that `sync` says.
    pub(crate) fn on(device: Device, sync: &Sync, report: &mut Report<'_>) -> Result<Self> {
        let mode = sync.mode(report)?;
        let backend = backend_of(device, report)?;
        let queue = match mode {
            SyncMode::Queue => {
                // SAFETY: whoever made the sync vouched for its queue.
                unsafe { backend.check_queue(device, sync.queue(), report) }?;
                sync.queue()
            }
            _ => backend.library_queue(device, report)?,
        };
        Ok(Self { backend, device, queue, mode })
    }

    /// Lets a caller's queue or its thread wait for the event of `place`. `wait` names what for.
    pub(crate) fn waiting(place: Place, sync: &Sync, wait: Wait, report: &mut Report<'_>) -> Result<()> {
        check_sync(place, sync, report)?;
        Self::on(place.device, sync, report)?.after(wait, place, report)
    }

    /// Work on a queue that an event is to be recorded on: the caller's or one of the library's.
    pub(crate) fn recording(device: Device, sync: &Sync, report: &mut Report<'_>) -> Result<Self> {
        match sync.mode(report)? {
            SyncMode::Queue | SyncMode::Library => Self::on(device, sync, report),
            mode => {
                let found = if mode == SyncMode::Host { "HOST" } else { "NONE" };
                let message = format_args!("expected QUEUE or LIBRARY to record an event on, found {found}");
                Err(report.fail(Status::InvalidArgument, message))
            }
        }
    }

    /// Work on a queue of the library's, for a caller that said what to do about events already.
    pub(crate) fn of_library(device: Device, mode: SyncMode, report: &mut Report<'_>) -> Result<Self> {
        let backend = backend_of(device, report)?;
        let queue = backend.library_queue(device, report)?;
        Ok(Self { backend, device, queue, mode })
    }

    /// The device whose queue it is.
    pub(crate) fn device(&self) -> Device {
        self.device
    }

    /// What the caller said about unfinished work.
    pub(crate) fn mode(&self) -> SyncMode {
        self.mode
    }

    /// Lets what follows run after the event of `place`. `wait` names what for.
    pub(crate) fn after(&self, wait: Wait, place: Place, report: &mut Report<'_>) -> Result<()> {
        if place.event == Event::NONE {
            return Ok(());
        }
        if self.mode == SyncMode::None {
            return Err(sync_required(report));
        }
        // A handle of NULL at an address that is not is nothing to wait on.
        let Some(event) = NonNull::new(place.event.identity) else { return Ok(()) };
        let backend = backend_of(place.device, report)?;
        let is_own = core::ptr::addr_eq(backend, self.backend);
        // SAFETY: the event is that of the place's device, and the queue is one of this work's device.
        unsafe {
            if self.mode == SyncMode::Host || !is_own {
                waits::on_host(Wait::HostAfterEvent, backend, place.device, event, report)
            } else {
                waits::on_queue(wait, backend, self.device, event, self.queue, report)
            }
        }
    }

    /// Whether the work's driver copies from `from` to `to` by itself.
    pub(crate) fn reaches(&self, to: Device, from: Device) -> bool {
        self.backend.reaches(to, from)
    }

    /// Copies `n` bytes, or none.
    ///
    /// # Safety
    /// Both ranges are there, on the memories that the route names, until the copy is done.
    pub(crate) unsafe fn copy(
        &self,
        route: Route,
        to: *mut c_void,
        from: *const c_void,
        n: usize,
        report: &mut Report<'_>,
    ) -> Result<()> {
        if n == 0 {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        unsafe { self.backend.copy(route, self.device, to, from, n, self.queue, report) }
    }

    /// Memory on the work's device, to be used on its queue.
    pub(crate) fn allocate(
        &self,
        size: usize,
        allocator: Option<&Allocator>,
        report: &mut Report<'_>,
    ) -> Result<Allocation> {
        // SAFETY: the queue is one of this device.
        unsafe { Allocation::new(self.backend, self.device, size, self.queue, allocator, report) }
    }

    /// Blocks until all that was enqueued is done.
    pub(crate) fn drain(&self, wait: Wait, report: &mut Report<'_>) -> Result<()> {
        // SAFETY: the queue is one of this device.
        unsafe { waits::drain(wait, self.backend, self.device, self.queue, report) }
    }

    /// Waits, in whatever way works, until all that was enqueued is done; says whether it is. `wait` names what for.
    pub(crate) fn settle(&self, wait: Wait) -> bool {
        let report = &mut Report::silent();
        if self.drain(wait, report).is_ok() {
            return true;
        }
        let Ok(Some(event)) = self.record(report) else { return false };
        // SAFETY: the event is the backend's.
        unsafe { waits::on_host(wait, self.backend, self.device, event.handle(), report) }.is_ok()
    }

    /// An event behind all that was enqueued; none where work runs at once.
    pub(crate) fn record(&self, report: &mut Report<'_>) -> Result<Option<SharedEvent>> {
        if !self.backend.has_events() {
            return Ok(None);
        }
        // SAFETY: the queue is one of this device.
        unsafe { SharedEvent::record(self.backend, self.device, self.queue, report) }.map(Some)
    }

    /// As [`Work::record`], where there have to be events.
    pub(crate) fn recorded(&self, report: &mut Report<'_>) -> Result<SharedEvent> {
        match self.record(report)? {
            Some(event) => Ok(event),
            None => {
                let (number, name) = (self.device.r#type, device_name(self.device.r#type));
                let message =
                    format_args!("expected a device with events, found device type {number} ({name})");
                Err(report.fail(Status::Unsupported, message))
            }
        }
    }

    /// Whether the CPU may read memory of the work's device by itself, once the work on it is done.
    pub(crate) fn is_host_accessible(&self, report: &mut Report<'_>) -> Result<bool> {
        self.backend.is_host_accessible(self.device, report)
    }
}

/// Keeps something until a queue has come this far; where work has no events, it is let go at once.
///
/// `owner` is only asked once nothing can fail any more.
pub fn hold_until(
    device: Device,
    sync: &Sync,
    owner: impl FnOnce() -> Owner,
    report: &mut Report<'_>,
) -> Result<()> {
    let work = Work::recording(device, sync, report)?;
    let slot = pending::Slot::prepare(report)?;
    let event = work.record(report)?;
    slot.hold(event, [owner(), Owner::NONE]);
    Ok(())
}

/// Copies bytes of `place` into CPU memory, after its event, and waits until they are there.
///
/// # Safety
/// Each part's memory is there, on the place's device, as many bytes as the part is long.
pub(crate) unsafe fn read_parts<'a>(
    place: Place,
    sync: &Sync,
    parts: impl Iterator<Item = Part<'a>>,
    report: &mut Report<'_>,
) -> Result<()> {
    check_sync(place, sync, report)?;
    let work = Work::on(place.device, sync, report)?;
    work.after(Wait::ReadAfterEvent, place, report)?;
    for Part { from, into } in parts {
        // SAFETY: as the caller promises; all that was enqueued is done before this returns.
        let copied = unsafe { work.copy(Route::ToHost, into.as_mut_ptr().cast(), from, into.len(), report) };
        if let Err(failed) = copied {
            work.settle(Wait::FailedRead);
            return Err(failed);
        }
    }
    work.drain(Wait::ReadArrived, report).inspect_err(|_| {
        work.settle(Wait::FailedRead);
    })
}

/// Whether memory is on a device, as far as anybody can tell: where nobody can, its producer's word counts.
pub(crate) fn is_on(device: Device, data: *const c_void, report: &mut Report<'_>) -> Result<bool> {
    let found = backend_of(device, report)?.locate(device, data, report)?;
    Ok(found.is_none_or(|found| found.r#type != DEVICE_CPU))
}

/// Where memory is, when that is not the device that it is said to be on.
pub(crate) fn check_address(
    device: Device,
    data: *const c_void,
    report: &mut Report<'_>,
) -> Result<Option<Device>> {
    if data.is_null() || device.r#type == DEVICE_CPU {
        return Ok(None);
    }
    let found = backend_of(device, report)?.locate(device, data, report)?;
    Ok(found.filter(|found| *found != device))
}

/// Whether the CPU may use memory that is said to be on `device`, whose memory it may use: what is somewhere else it may not.
pub(crate) fn is_reachable(
    device: Device,
    data: *const c_void,
    report: &mut Report<'_>,
) -> Result<Option<Device>> {
    let Some(found) = check_address(device, data, report)? else { return Ok(None) };
    let may_use =
        found.r#type == DEVICE_CPU || backend_of(found, report)?.is_host_accessible(found, report)?;
    Ok((!may_use).then_some(found))
}

/// Whether the CPU may read memory at `place` without a copy, after waiting for its event as `sync` says.
///
/// This waits: afterwards the memory may be read.
pub(crate) fn make_accessible(place: Place, sync: &Sync, report: &mut Report<'_>) -> Result<bool> {
    check_sync(place, sync, report)?;
    if place.device.r#type == DEVICE_CPU {
        return Ok(true);
    }
    let work = Work::on(place.device, sync, report)?;
    if !work.is_host_accessible(report)? {
        return Ok(false);
    }
    if place.event != Event::NONE {
        work.after(Wait::AccessAfterEvent, place, report)?;
        work.drain(Wait::AccessArrived, report)?;
    }
    Ok(true)
}

/// Checks that there is a device that takes work.
pub fn check_copies(device: Device, report: &mut Report<'_>) -> Result<()> {
    Work::on(device, &Sync::of(SyncMode::Library), report).map(|_| ())
}

/// Checks that the caller says how to wait where there is an event.
pub(crate) fn check_sync(place: Place, sync: &Sync, report: &mut Report<'_>) -> Result<SyncMode> {
    let mode = sync.mode(report)?;
    if mode == SyncMode::None && place.event != Event::NONE {
        return Err(sync_required(report));
    }
    Ok(mode)
}

#[cold]
fn sync_required(report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected a sync mode that waits for the memory's event, found NONE");
    report.fail(Status::SyncRequired, message)
}
