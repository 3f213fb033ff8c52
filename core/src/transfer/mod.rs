//! Copies: arrays and buffers to other devices, whole or as far as a window shows them, and several arrays into one.
#![forbid(unsafe_code)]

mod array;
mod buffer;
mod concat;
mod moves;
mod told;

pub use array::array_to_device;
pub use buffer::{allocate, buffer_to_device, read_buffer};
pub use concat::concat;

use core::ffi::c_int;

use crate::abi::{DEVICE_CPU, Device};
use crate::device::{Allocator, Sync, SyncMode, Wait, Work, check_sync, make_accessible};
use crate::error::{Report, Result, Status};
use crate::memory::{Event, Place};

/// How a copy is to be made.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// What to do about unfinished work, and on whose queue to copy: one of the device that the copy goes to, or where that is the
    /// CPU, of the one that it comes from.
    pub sync: Sync,
    /// Whether memory that is already reachable on the device may be handed out instead of a copy.
    pub may_share: bool,
    /// The caller's own allocator for memory of the device.
    pub allocator: Option<Allocator>,
    /// Is told how far copying has come.
    pub progress: Option<Progress<'a>>,
}

/// Is told how many batches, rows and bytes were copied; says no with a number that is not 0.
#[derive(Clone, Copy)]
pub struct Progress<'a>(pub &'a dyn Fn(i64, i64, i64) -> c_int);

impl core::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Progress")
    }
}

impl Options<'_> {
    /// A copy of memory without events, on a queue of the library's.
    ///
    /// cbindgen:ignore
    pub const DEFAULT: Options<'static> =
        Options { sync: Sync::NONE, may_share: false, allocator: None, progress: None };

    fn tell(&self, rows: i64, bytes: usize, report: &mut Report<'_>) -> Result<()> {
        let Some(Progress(progress)) = self.progress else { return Ok(()) };
        let answer = progress(0, rows, i64::try_from(bytes).unwrap_or(i64::MAX));
        if answer == 0 {
            return Ok(());
        }
        let message = format_args!("expected 0 of progress, found {answer}: cancelled");
        Err(report.fail(Status::Cancelled, message))
    }
}

/// How bytes get from one device to another.
enum Path {
    /// On one queue.
    Straight(Work),
    /// Through CPU memory: neither driver reaches the other's memory.
    ThroughHost,
}

/// Finds the queue for copies from `from` to `to`, and makes it wait for the event there.
fn path(from: Place, to: Device, sync: &Sync, report: &mut Report<'_>) -> Result<Path> {
    check_sync(from, sync, report)?;
    let work = if to.r#type == DEVICE_CPU {
        Work::on(from.device, sync, report)?
    } else {
        let work = Work::on(to, sync, report)?;
        if from.device.r#type != DEVICE_CPU && !work.reaches(to, from.device) {
            return Ok(Path::ThroughHost);
        }
        work
    };
    work.after(Wait::CopyAfterEvent, from, report)?;
    Ok(Path::Straight(work))
}

/// How the memory of `from` is read on the way to `to`: on the caller's queue where that is one of `from`, else on one of the
/// library's.
fn sync_of_source(from: Device, to: Device, sync: &Sync, report: &mut Report<'_>) -> Result<Sync> {
    // A caller's queue is of the device that the copy goes to in the end, or, where that is the CPU, comes from.
    let is_its_queue = to.r#type == DEVICE_CPU || to == from;
    Ok(match sync.mode(report)? {
        SyncMode::Queue if !is_its_queue => Sync::of(SyncMode::Library),
        _ => *sync,
    })
}

/// Where memory at `place` can be used as memory of `to` without a copy; this waits where the CPU is to read it.
fn shared_place(place: Place, to: Device, sync: &Sync, report: &mut Report<'_>) -> Result<Option<Place>> {
    use crate::abi::{DEVICE_CUDA, DEVICE_CUDA_MANAGED};
    if place.device == to {
        return Ok(Some(place));
    }
    if to.r#type == DEVICE_CPU {
        let is_accessible = make_accessible(place, sync, report)?;
        return Ok(is_accessible.then_some(Place { device: to, event: Event::NONE }));
    }
    let is_managed = place.device.r#type == DEVICE_CUDA_MANAGED && to.r#type == DEVICE_CUDA;
    Ok((is_managed && place.device.id == to.id).then_some(Place { device: to, ..place }))
}
