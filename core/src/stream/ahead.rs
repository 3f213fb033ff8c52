//! Streams whose arrays are copied to a device, by whoever asks or by a thread that is ahead of them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use super::ffi::HostSync;
use super::ring::{Ring, Taken};
use super::{Canceller, Source, Stream};
use crate::abi::Device;
use crate::array::Array;
use crate::device::{Allocator, Sync, SyncMode, Teller, check_copies};
use crate::error::{ErrorRecord, Report, Result, Status, capture};
use crate::memory::{Job, Worker, scope};
use crate::transfer::{Options, Progress, array_to_device};

/// How a stream's arrays are to be copied.
#[derive(Debug, Clone, Copy)]
pub struct StreamOptions {
    /// What to do about unfinished work, and on whose queue to copy.
    pub sync: Sync,
    /// Whether memory that is already reachable on the device may be handed out instead of a copy.
    pub may_share: bool,
    /// The caller's own allocator for memory of the device.
    pub allocator: Option<Allocator>,
    /// Is told how far copying has come.
    pub teller: Option<Teller>,
    /// How many arrays may be ready before they are asked for.
    pub depth: u32,
}

impl Stream {
    /// The stream with each array copied to a device. The stream is taken only once nothing can fail any more.
    pub fn to_device(
        stream: &Stream,
        to: Device,
        options: &StreamOptions,
        report: &mut Report<'_>,
        take: impl FnOnce() -> Stream,
    ) -> Result<Self> {
        let from = stream.device().r#type;
        let mode = options.sync.mode(report)?;
        if !(options.may_share && from == to.r#type) {
            check_copies(to, report)?;
            // A stream that does not know its arrays' ids is known by its type.
            check_copies(Device { id: stream.device().id.max(0), ..stream.device() }, report)?;
        }
        let mut moving = Moving {
            to,
            sync: HostSync(options.sync),
            may_share: options.may_share,
            allocator: options.allocator,
            teller: options.teller,
        };
        if options.depth == 0 {
            return Stream::new(stream.ty(), to, report, || Moved {
                from: take(),
                moving,
                far: Far::default(),
            });
        }
        let mut queue = None;
        if mode == SyncMode::Queue {
            // A caller's queue is only used while the caller is inside a call.
            moving.sync = HostSync(Sync::of(SyncMode::Library));
            queue = Some(HostSync(options.sync));
        }
        let most = usize::try_from(options.depth).unwrap_or(usize::MAX);
        let mut items = VecDeque::new();
        if items.try_reserve_exact(most).is_err() {
            return Err(report.out_of_memory(most.saturating_mul(size_of::<Array>())));
        }
        let pull = Pull { ring: Ring::new(items, most), from: OnceLock::new(), moving };
        let pull = Worker::start(pull, report)?;
        Stream::new(stream.ty(), to, report, || {
            // Nobody else sets it.
            let _ = pull.from.set(take());
            pull.ring.open();
            Ahead { pull: pull.clone(), queue }
        })
    }
}

/// How each array is copied.
#[derive(Clone, Copy)]
struct Moving {
    to: Device,
    sync: HostSync,
    may_share: bool,
    allocator: Option<Allocator>,
    teller: Option<Teller>,
}

/// How far a stream has come.
#[derive(Default)]
struct Far {
    batches: i64,
    rows: i64,
}

impl Moving {
    /// The stream's next array, on the device.
    fn next(&self, from: &Stream, far: &mut Far, report: &mut Report<'_>) -> Result<Option<Array>> {
        let Some(array) = from.next(report)? else { return Ok(None) };
        let (batches, before) = (far.batches, far.rows);
        let tell;
        let mut progress = None;
        if let Some(teller) = self.teller {
            tell = move |_, rows: i64, bytes| teller.tell(batches, before.saturating_add(rows), bytes);
            progress = Some(Progress(&tell));
        }
        let HostSync(sync) = self.sync;
        let options = Options { sync, may_share: self.may_share, allocator: self.allocator, progress };
        let (copy, _) = array_to_device(&array, self.to, &options, report)?;
        far.batches = far.batches.saturating_add(1);
        far.rows = far.rows.saturating_add(array.length());
        match self.teller.map_or(0, |teller| teller.tell(far.batches, far.rows, 0)) {
            0 => Ok(Some(copy)),
            answer => {
                let message = format_args!("expected 0 of progress, found {answer}: cancelled");
                Err(report.fail(Status::Cancelled, message))
            }
        }
    }
}

/// Another stream, each of whose arrays is copied when it is asked for.
struct Moved {
    from: Stream,
    moving: Moving,
    far: Far,
}

impl Source for Moved {
    fn next(&mut self, report: &mut Report<'_>) -> Result<Option<Array>> {
        self.moving.next(&self.from, &mut self.far, report)
    }

    fn canceller(&self) -> Option<Canceller> {
        self.from.canceller()
    }
}

/// What a thread and the stream that it is ahead of share.
pub(super) struct Pull {
    ring: Ring<Array, ErrorRecord>,
    /// Set once, before the ring is opened.
    from: OnceLock<Stream>,
    moving: Moving,
}

impl Pull {
    /// Copies an array; false when there was no further one.
    fn step(&self, from: &Stream, far: &mut Far) -> bool {
        let asked = capture(|report| {
            let asked = catch_unwind(AssertUnwindSafe(|| self.moving.next(from, far, report)));
            asked.unwrap_or_else(|payload| {
                // A payload's destructor may panic in turn.
                core::mem::forget(payload);
                let message = format_args!("expected the next array, found that copying it panicked");
                Err(report.fail(Status::Internal, message))
            })
        });
        match asked {
            // What comes back is let go here, without a lock.
            Ok(Some(array)) => return self.ring.put(array).is_none(),
            Ok(None) => self.ring.finish(None),
            Err(record) => self.ring.finish(Some(record)),
        }
        false
    }
}

impl Job for Pull {
    fn run(&self) {
        let mut far = Far::default();
        while self.ring.wait_for_room() {
            let Some(from) = self.from.get() else { return };
            if !self.step(from, &mut far) {
                return;
            }
        }
    }

    fn stop(&self) {
        self.ring.stop();
        // The thread may wait for another one.
        if let Some(from) = self.from.get() {
            from.cancel();
        }
    }
}

/// Arrays that a thread has copied already, or will.
struct Ahead {
    pull: Worker<Pull>,
    /// The caller's queue, which waits for each copy.
    queue: Option<HostSync>,
}

impl Source for Ahead {
    fn next(&mut self, report: &mut Report<'_>) -> Result<Option<Array>> {
        match scope::unlocked(|| self.pull.ring.take()) {
            Taken::Item(array) => {
                if let Some(HostSync(sync)) = &self.queue {
                    array.wait(sync, report)?;
                }
                Ok(Some(array))
            }
            Taken::End => Ok(None),
            Taken::Failed(record) => Err(report.repeat(&record)),
            Taken::Stopped => Err(super::cancelled(report)),
        }
    }

    fn canceller(&self) -> Option<Canceller> {
        Some(Canceller::of_thread(&self.pull))
    }
}
