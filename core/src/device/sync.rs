//! How a call that may meet unfinished device work is to behave.

use core::ffi::c_void;

use super::work::{Work, check_sync};
use super::{device_name, is_cpu_readable};
use crate::error::{Report, Result, Status};
use crate::memory::Place;

/// How a call that may meet unfinished device work is to behave. NULL or all zero is NONE.
///
/// The layout is frozen.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Sync {
    /// `BOWSTRING_SYNC_NONE`, `_QUEUE`, `_HOST` or `_LIBRARY`.
    pub mode: i32,
    /// Zero.
    pub reserved: i32,
    /// With QUEUE, the queue of the device's driver that is made to wait; NULL is its default queue.
    queue: *mut c_void,
}

/// What a call does about unfinished device work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// Refuse with SYNC_REQUIRED when an event is pending.
    None,
    /// Make the caller's queue wait.
    Queue,
    /// Block this thread until the work is done.
    Host,
    /// Make a queue of the library wait.
    Library,
}

impl Sync {
    /// Refuse to meet unfinished work.
    ///
    /// cbindgen:ignore
    pub const NONE: Sync = Sync { mode: 0, reserved: 0, queue: core::ptr::null_mut() };

    /// Refuse, block, or let a queue of the library wait.
    ///
    /// QUEUE is the driver's default queue.
    pub const fn of(mode: SyncMode) -> Sync {
        let mode = match mode {
            SyncMode::None => 0,
            SyncMode::Queue => 1,
            SyncMode::Host => 2,
            SyncMode::Library => 3,
        };
        Sync { mode, ..Sync::NONE }
    }

    /// Make a queue wait.
    ///
    /// # Safety
    /// The queue is one of the driver of the device that the sync is used for, until the call that takes it returns.
    pub const unsafe fn on_queue(queue: *mut c_void) -> Sync {
        Sync { queue, ..Sync::of(SyncMode::Queue) }
    }

    /// The caller's queue.
    pub(crate) fn queue(&self) -> *mut c_void {
        self.queue
    }

    /// The mode, when the struct is one that this version understands.
    pub fn mode(&self, report: &mut Report<'_>) -> Result<SyncMode> {
        if self.reserved != 0 {
            return Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected 0 in the sync's reserved member, found {}", self.reserved),
            ));
        }
        match self.mode {
            0 => Ok(SyncMode::None),
            1 => Ok(SyncMode::Queue),
            2 => Ok(SyncMode::Host),
            3 => Ok(SyncMode::Library),
            mode => Err(report.fail(
                Status::InvalidArgument,
                format_args!("expected a sync mode from 0 to 3, found {mode}"),
            )),
        }
    }
}

/// Checks that memory at `place` can be copied to the CPU: that `sync` says how to wait where an event is pending, and then
/// that the device is there and takes work.
pub(crate) fn require_copies(place: Place, sync: &Sync, report: &mut Report<'_>) -> Result<()> {
    check_sync(place, sync, report)?;
    Work::on(place.device, sync, report).map(|_| ())
}

/// Checks that the CPU may read memory at `place` now: that `sync` says how to wait where an event is pending, and that the
/// memory needs no backend.
pub fn require_readable(place: Place, sync: &Sync, report: &mut Report<'_>) -> Result<()> {
    check_sync(place, sync, report)?;
    if is_cpu_readable(place.device) {
        return Ok(());
    }
    let device = place.device.r#type;
    Err(report.fail(
        Status::Unsupported,
        format_args!(
            "expected memory that the CPU can read, found device type {device} ({}) without a backend",
            device_name(device)
        ),
    ))
}
