//! Every wait in the device code, by name.
//!
//! No other module asks a backend to wait. For each name there is a test that fails in a build that leaves this one wait
//! out: `BOWSTRING_WITHOUT_WAIT=name` at build time makes such a mutant, `cargo xtask mutants` makes and runs them all.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::backend::{Backend, Queue};
use crate::abi::Device;
use crate::error::{Report, Result};

/// The wait that this build leaves out; none outside tests.
const LEFT_OUT: Option<&str> = option_env!("BOWSTRING_WITHOUT_WAIT");

macro_rules! waits {
    ($($(#[doc = $text:literal])+ $name:ident = $label:literal,)+) => {
        /// A wait and what it is for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Wait {
            $($(#[doc = $text])+ $name,)+
        }

        impl Wait {
            const fn label(self) -> &'static str {
                match self {
                    $(Wait::$name => $label,)+
                }
            }
        }
    };
}

waits! {
    /// A queue waits for the source's event before it copies.
    CopyAfterEvent = "copy-after-event",
    /// A queue waits for the event of memory before it reads it for the CPU.
    ReadAfterEvent = "read-after-event",
    /// A queue waits for the event of memory that the CPU will then use itself.
    AccessAfterEvent = "access-after-event",
    /// A caller's queue waits for an array's event because it was asked to.
    ArrayAfterEvent = "array-after-event",
    /// A caller's queue waits for the event of memory that a tensor shows.
    TensorAfterEvent = "tensor-after-event",
    /// The caller's thread waits for the event of memory, because it asked to, or because the event is another driver's.
    HostAfterEvent = "host-after-event",
    /// The caller's thread waits for bytes that were copied for it to read.
    ReadArrived = "read-arrived",
    /// The caller's thread waits until it may use memory itself.
    AccessArrived = "access-arrived",
    /// The caller's thread waits for a copy to the CPU.
    CopyArrived = "copy-arrived",
    /// The caller's thread waits for a copy to a device, because it asked to.
    CopyFinished = "copy-finished",
    /// When a read fails, those that were enqueued before are done before what they write to is freed.
    FailedRead = "failed-read",
    /// When a copy fails, those that were enqueued before are done before what they use is freed.
    FailedCopy = "failed-copy",
    /// When zeroing new memory fails, what was enqueued before is done before the memory is freed.
    FailedAllocation = "failed-allocation",
    /// Memory is freed after the copy that fills it.
    FreeAfterCopy = "free-after-copy",
    /// Memory that its driver frees at once goes when nothing uses it any more.
    FreeDrained = "free-drained",
    /// A new event is recorded behind the one that it replaces.
    RecordAfterEvent = "record-after-event",
    /// A new event is recorded behind each of those that it joins.
    JoinAfterEvents = "join-after-events",
    /// What pending work uses is let go when the work is done.
    PendingDone = "pending-done",
    /// With too much work pending, the oldest is waited for.
    PendingOldest = "pending-oldest",
    /// Collecting waits when it is asked to.
    CollectBlocks = "collect-blocks",
    /// Memory that a caller's thread may write to is ready.
    AllocatedReady = "allocated-ready",
}

impl Wait {
    #[inline]
    fn is_left_out(self) -> bool {
        LEFT_OUT.is_some_and(|name| name == self.label())
    }
}

/// Makes a queue wait for an event.
///
/// # Safety
/// Queue and event are the backend's.
pub(super) unsafe fn on_queue(
    wait: Wait,
    backend: &dyn Backend,
    device: Device,
    event: NonNull<c_void>,
    queue: Queue,
    report: &mut Report<'_>,
) -> Result<()> {
    if wait.is_left_out() {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe { backend.queue_waits(device, event, queue, report) }
}

/// Blocks until an event is done.
///
/// # Safety
/// The event is the backend's.
pub(super) unsafe fn on_host(
    wait: Wait,
    backend: &dyn Backend,
    device: Device,
    event: NonNull<c_void>,
    report: &mut Report<'_>,
) -> Result<()> {
    if wait.is_left_out() {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe { backend.host_waits(device, event, report) }
}

/// Blocks until all on a queue is done.
///
/// # Safety
/// The queue is the backend's.
pub(super) unsafe fn drain(
    wait: Wait,
    backend: &dyn Backend,
    device: Device,
    queue: Queue,
    report: &mut Report<'_>,
) -> Result<()> {
    if wait.is_left_out() {
        return Ok(());
    }
    // SAFETY: as the caller promises.
    unsafe { backend.drain(device, queue, report) }
}

/// Whether an event is done.
///
/// # Safety
/// The event is the backend's.
pub(super) unsafe fn is_done(
    wait: Wait,
    backend: &dyn Backend,
    device: Device,
    event: NonNull<c_void>,
    report: &mut Report<'_>,
) -> Result<bool> {
    if wait.is_left_out() {
        return Ok(true);
    }
    // SAFETY: as the caller promises.
    unsafe { backend.is_done(device, event, report) }
}
