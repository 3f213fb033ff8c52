//! Streams of arrays: one owner, moved and not counted, asked by one caller at a time.
//!
//! A [`Source`] gives the arrays; the stream around it says when it is over. What failed says the same again without
//! asking the source, what ended has ended, and a call that meets another one is refused.

mod ahead;
mod asynchronous;
mod cancel;
mod collect;
mod errno;
mod ffi;
mod ring;
mod sources;

/// What [`ring`] waits with; a model of it brings its own.
mod locks {
    pub use std::sync::{Condvar, Mutex, MutexGuard as Guard};
}

pub use ahead::StreamOptions;
pub use cancel::Canceller;
pub use errno::{Errno, errno_of, status_of};
pub use ffi::{
    Callbacks, call_stream, import_device_stream, import_host_stream, release_device_stream,
    release_host_stream, stream_from_async, stream_to_async,
};

use core::ffi::{c_char, c_int};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{ArrowDeviceArray, DEVICE_CPU, Device};
use crate::array::Array;
use crate::device::Sync;
use crate::error::{ErrorRecord, Failed, Report, Result, Rule, Status, TextBuffer, rule_name};
use crate::memory::{Kind, Own, Space, Turn, Turns, counts, mark};
use crate::types::Type;

use ffi::{Filled, HostSync, Link};

/// Gives arrays one by one. A source is not asked again once it has failed or given `None`.
pub trait Source: Send {
    /// The next array, of the stream's type and on its type of device; `None` at the end.
    fn next(&mut self, report: &mut Report<'_>) -> Result<Option<Array>>;

    /// Puts the next array into a released struct for somebody else, as one of ours; false at the end. What is there after a
    /// failure goes with the struct.
    fn next_exported(&mut self, out: &mut Filled<ArrowDeviceArray>, report: &mut Report<'_>) -> Result<bool> {
        let Some(array) = self.next(report)? else { return Ok(false) };
        out.put(array.export(report)?);
        Ok(true)
    }

    /// What ends a wait of a call that is running, also where it waits in a stream below; `None` where the call is the
    /// producer's own.
    fn canceller(&self) -> Option<Canceller> {
        None
    }
}

/// A stream of arrays of one type on one type of device.
#[derive(Debug)]
pub struct Stream(Own<Block>);

/// What a stream's handle leads to. Its first word tells handles apart, as it does with every kind.
#[repr(C)]
#[derive(Debug)]
struct Block {
    mark: usize,
    ty: Type,
    device: Device,
    /// Who tells the type, where it comes late.
    late: Option<Link>,
    is_cancelled: AtomicBool,
    canceller: Option<Canceller>,
    inner: Turns<Inner>,
    _counted: counts::One,
}

/// What changes while a stream is asked.
struct Inner {
    source: Own<dyn Source>,
    state: State,
    /// How many arrays were given.
    n_given: i64,
    /// What went wrong, when the stream has failed.
    record: ErrorRecord,
    /// What `get_last_error` says; empty when the last call was a success.
    text: [c_char; TEXT],
    /// How the CPU waits for what it reads, when the stream went out as one in CPU memory.
    sync: HostSync,
}

/// Room for a record as text.
const TEXT: usize = 1536;

/// How far a stream has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Live,
    Ended,
    Failed,
}

impl Stream {
    /// A stream over a source, which is made only once nothing can fail any more: two allocations.
    ///
    /// The id of `device` is -1 where the arrays' devices may differ.
    pub fn new<S: Source + 'static>(
        ty: &Type,
        device: Device,
        report: &mut Report<'_>,
        source: impl FnOnce() -> S,
    ) -> Result<Self> {
        let block = Space::<Block>::reserve(report)?;
        let own = Space::<S>::reserve(report)?;
        let source = ffi::any_source(own.fill(source()));
        let canceller = source.canceller();
        let inner = Inner {
            source,
            state: State::Live,
            n_given: 0,
            record: ErrorRecord::empty(),
            text: [0; TEXT],
            sync: HostSync(Sync::NONE),
        };
        Ok(Self(block.fill(Block {
            mark: mark(Kind::Stream).addr(),
            ty: ty.clone(),
            device,
            late: None,
            is_cancelled: AtomicBool::new(false),
            canceller,
            inner: Turns::new(inner),
            _counted: counts::STREAMS.one(),
        })))
    }

    /// Has the type of its arrays come later, as its producer tells it.
    fn is_told_by(&mut self, link: Link) {
        self.0.late = Some(link);
    }

    /// Waits until the type is known, which only an asynchronous producer tells late.
    pub fn ready(&self, report: &mut Report<'_>) -> Result<()> {
        self.0.late.as_ref().map_or(Ok(()), |link| link.ready(report))
    }

    /// The type of every array. Waits as [`Stream::ready`] does; a null type where that fails.
    pub fn ty(&self) -> &Type {
        self.0.late.as_ref().and_then(Link::ty).unwrap_or(&self.0.ty)
    }

    /// The device: its type is that of every array's, its id -1 unless all are known to have the same. Waits as
    /// [`Stream::ready`] does; all zero where that fails.
    pub fn device(&self) -> Device {
        self.0.late.as_ref().and_then(Link::device).unwrap_or(self.0.device)
    }

    /// The next array; `None` at the end, again and again.
    pub fn next(&self, report: &mut Report<'_>) -> Result<Option<Array>> {
        self.turn(report)?.next(&self.0.is_cancelled, report)
    }

    /// Ends the stream from any thread: the next call, and one that is running, say CANCELLED. What has ended or failed
    /// stays as it is.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        if let Some(canceller) = &self.0.canceller {
            canceller.cancel();
        }
    }

    /// What ends a wait of a call on this stream.
    fn canceller(&self) -> Option<Canceller> {
        self.0.canceller.clone()
    }

    /// Checks that no call is running, so that the stream may be moved into another.
    pub fn check_idle(&self, report: &mut Report<'_>) -> Result<()> {
        self.turn(report).map(drop)
    }

    fn wait_with(&self, sync: HostSync) {
        if let Some(mut inner) = self.0.inner.take() {
            inner.sync = sync;
        }
    }

    /// The next array for a consumer of our struct, who is told a failure by an error number and a text; false at the end.
    #[inline(always)]
    fn give(&self, is_host: bool, out: &mut Filled<ArrowDeviceArray>) -> core::result::Result<bool, c_int> {
        // Whoever is asking now may be writing the text.
        let Some(mut inner) = self.0.inner.take() else { return Err(errno_of(Status::InvalidArgument, 0)) };
        inner.tell_nothing();
        let (is_cpu, sync) = (self.device().r#type == DEVICE_CPU, inner.sync.0);
        let asked = inner.pull(&self.0.is_cancelled, &mut Report::silent(), |source, report| {
            if !is_host || is_cpu {
                return source.next_exported(out, report);
            }
            let Some(array) = source.next(report)? else { return Ok(false) };
            out.put(array.export_host(&sync, report)?);
            Ok(true)
        });
        asked.map_err(|failed| inner.tell_failure(failed))
    }

    /// Notes what the last call of our struct's callbacks came to.
    fn say(&self, record: Option<&ErrorRecord>) {
        if let Some(mut inner) = self.0.inner.take() {
            match record {
                Some(record) => inner.tell(record),
                None => inner.tell_nothing(),
            }
        }
    }

    /// What the last call of our struct's callbacks came to, as text that stays until the next one; NULL when it was a success.
    fn said(&self) -> *const c_char {
        match self.0.inner.take() {
            Some(inner) if inner.text.first().is_none_or(|first| *first == 0) => core::ptr::null(),
            Some(inner) => inner.text.as_ptr(),
            None => {
                c"INVALID_ARGUMENT (ST6): expected one call on a stream at a time, found another one running"
                    .as_ptr()
            }
        }
    }

    fn turn(&self, report: &mut Report<'_>) -> Result<Turn<'_, Inner>> {
        match self.0.inner.take() {
            Some(turn) => Ok(turn),
            None => Err(overlapping(report)),
        }
    }
}

#[cold]
#[inline(never)]
fn overlapping(report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected one call on a stream at a time, found another one running");
    report.fail_at(Status::InvalidArgument, Rule::St6, &"$", message)
}

#[cold]
#[inline(never)]
fn cancelled(report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected a stream to go on, found that it was cancelled");
    report.fail(Status::Cancelled, message)
}

impl Inner {
    /// The source's next array, unless the stream is over.
    fn next(&mut self, is_cancelled: &AtomicBool, report: &mut Report<'_>) -> Result<Option<Array>> {
        let mut next = None;
        self.pull(is_cancelled, report, |source, report| {
            next = source.next(report)?;
            Ok(next.is_some())
        })?;
        Ok(next)
    }

    /// Asks the source, unless the stream is over. Says whether there is an array, as `ask` does, which keeps it: one that is there
    /// all the same when this fails is not given.
    #[inline]
    fn pull(
        &mut self,
        is_cancelled: &AtomicBool,
        report: &mut Report<'_>,
        ask: impl FnOnce(&mut dyn Source, &mut Report<'_>) -> Result<bool>,
    ) -> Result<bool> {
        match self.state {
            State::Live if !is_cancelled.load(Ordering::Acquire) => {}
            State::Live => return Err(self.cancelled(report)),
            State::Ended => return Ok(false),
            State::Failed => return Err(report.repeat(&self.record)),
        }
        // The source tells its failure to the stream, which keeps it.
        let (source, record) = (&mut *self.source, &mut self.record);
        let asked = catch_unwind(AssertUnwindSafe(|| ask(source, &mut Report::new(record))));
        match asked {
            Ok(Ok(true)) if is_cancelled.load(Ordering::Acquire) => Err(self.cancelled(report)),
            Ok(Ok(true)) => {
                self.n_given = self.n_given.wrapping_add(1);
                Ok(true)
            }
            Ok(Ok(false)) => {
                self.state = State::Ended;
                Ok(false)
            }
            Ok(Err(failed)) => Err(self.failed(failed, report)),
            Err(payload) => {
                // A payload's destructor may panic in turn.
                core::mem::forget(payload);
                let message = format_args!("expected the next array, found that its source panicked");
                let failed = Report::new(&mut self.record).fail(Status::Internal, message);
                Err(self.failed(failed, report))
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn cancelled(&mut self, report: &mut Report<'_>) -> Failed {
        let failed = cancelled(&mut Report::new(&mut self.record));
        self.failed(failed, report)
    }

    #[cold]
    #[inline(never)]
    fn failed(&mut self, failed: Failed, report: &mut Report<'_>) -> Failed {
        self.state = State::Failed;
        self.record.status = failed.status() as i32;
        self.record.batch = self.n_given;
        report.repeat(&self.record)
    }

    /// Says in text how the source failed, and gives the number of it.
    #[cold]
    #[inline(never)]
    fn tell_failure(&mut self, failed: Failed) -> c_int {
        let record = self.record;
        self.tell(&record);
        errno_of(failed.status(), record.native_code)
    }

    /// Says in text what went wrong in the last call.
    #[cold]
    fn tell(&mut self, record: &ErrorRecord) {
        // A writer that runs out of room cuts the text.
        let _ = write!(TextBuffer::over(&mut self.text), "{}", Told(record));
    }

    /// Says that nothing went wrong in the last call.
    #[inline]
    fn tell_nothing(&mut self) {
        if let Some(first) = self.text.first_mut() {
            *first = 0;
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("state", &self.state).field("n_given", &self.n_given).finish()
    }
}

/// A record as one line for whoever gets nothing but text.
struct Told<'a>(&'a ErrorRecord);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.0;
        let status = Status::from_code(record.status).unwrap_or(Status::Internal);
        f.write_str(status.name().to_str().unwrap_or_default())?;
        let rule = rule_name(record.rule).to_str().unwrap_or_default();
        if !rule.is_empty() {
            write!(f, " ({rule})")?;
        }
        if record.batch >= 0 {
            write!(f, " in batch {}", record.batch)?;
        }
        if !record.path().is_empty() {
            write!(f, " at {}", record.path())?;
        }
        if record.row >= 0 {
            write!(f, ", row {}", record.row)?;
        }
        write!(f, ": {}", record.message())
    }
}
