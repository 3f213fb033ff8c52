//! The consumer's half of an asynchronous stream: a handler of ours, and the source behind it.

use core::ffi::{c_char, c_int};
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};
use std::collections::VecDeque;
use std::sync::OnceLock;

use super::super::asynchronous::{Inbox, Refused, Taken};
use super::super::errno::{Errno, status_of};
use super::super::{Canceller, Source, Stream};
use super::{Filled, Incoming, Said, callback_failed, guarded};
use crate::abi::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceArray, ArrowDeviceType,
    ArrowSchema, Device, SchemaView,
};
use crate::array::Array;
use crate::device::check_foreign;
use crate::error::{ErrorRecord, Report, Result, Rule, Status, capture};
use crate::memory::{Own, Space, scope};
use crate::tree::release_schema_struct;
use crate::types::Type;

/// A reference to what handler and stream share, which goes with the last one.
#[derive(Debug)]
pub(in super::super) struct Link(NonNull<Receiver>);

/// What handler and stream share.
#[derive(Debug)]
pub(in super::super) struct Receiver {
    count: AtomicUsize,
    known: OnceLock<Known>,
    producer: AtomicPtr<ArrowAsyncProducer>,
    inbox: Inbox<Task, ErrorRecord>,
}

/// What the producer said about all arrays.
#[derive(Debug)]
struct Known {
    ty: Type,
    device_type: ArrowDeviceType,
}

// SAFETY: the receiver is counted, and all in it is made for several threads.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

impl core::ops::Deref for Link {
    type Target = Receiver;

    fn deref(&self) -> &Receiver {
        // SAFETY: a reference keeps the receiver alive.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for Link {
    fn clone(&self) -> Self {
        self.count.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.count.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: this was the last reference, and the receiver was made as one of these.
            drop(unsafe { Own::from_raw(self.0) });
        }
    }
}

/// A copy of a producer's task.
#[derive(Debug)]
struct Task(ArrowAsyncTask);

// SAFETY: a task may be asked for its array by any thread, once.
unsafe impl Send for Task {}

impl Task {
    fn extract(mut self, out: *mut ArrowDeviceArray) -> c_int {
        // SAFETY: the producer vouches for its task, which nobody has asked before.
        self.0.extract_data.map_or(libc::EINVAL, |extract| unsafe { extract(&mut self.0, out) })
    }

    /// Tells the producer that nobody wants the array.
    fn drop_data(self) {
        scope::run(|| {
            self.extract(core::ptr::null_mut());
        });
    }
}

/// A number that tells threads apart, without an allocation.
fn this_thread() -> usize {
    // SAFETY: it is always there.
    unsafe { libc::pthread_self() as usize }
}

#[allow(clippy::result_large_err, reason = "the record is the whole error, and is kept")]
impl Link {
    /// Waits until the producer has told the type.
    pub(in super::super) fn ready(&self, report: &mut Report<'_>) -> Result<()> {
        match scope::unlocked(|| self.inbox.schema()) {
            Ok(()) => Ok(()),
            Err(Some(record)) => Err(report.repeat(&record)),
            Err(None) => Err(cancelled(report)),
        }
    }

    fn known(&self) -> Option<&Known> {
        // Both are set before the schema is told, so that there is nothing to see before.
        scope::unlocked(|| self.inbox.schema()).ok().and_then(|()| self.known.get())
    }

    /// Waits for the type; `None` where none will come.
    pub(in super::super) fn ty(&self) -> Option<&Type> {
        self.known().map(|known| &known.ty)
    }

    /// Waits for the type of device; `None` where none will come.
    pub(in super::super) fn device(&self) -> Option<Device> {
        self.known().map(|known| Device { r#type: known.device_type, id: -1 })
    }

    /// Wakes whoever waits, and has the producer stop.
    pub(in super::super) fn cancel(&self) {
        if self.inbox.cancel() {
            self.call(|producer| {
                // SAFETY: the producer is there until the call is over.
                if let Some(cancel) = unsafe { (*producer).cancel } {
                    // SAFETY: as above; any thread may cancel.
                    unsafe { cancel(producer) };
                }
            });
        }
    }

    fn request(&self, n: usize) {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        self.call(|producer| {
            // SAFETY: the producer is there until the call is over.
            if let Some(request) = unsafe { (*producer).request } {
                // SAFETY: as above; any thread may ask.
                unsafe { request(producer, n) };
            }
        });
    }

    /// Calls into the producer, unless it is gone. No lock is held meanwhile.
    fn call(&self, function: impl FnOnce(*mut ArrowAsyncProducer)) {
        let caller = this_thread();
        if self.inbox.enter(caller) {
            function(self.producer.load(Ordering::Acquire));
            self.inbox.leave(caller);
        }
    }

    /// The producer did what it should not have done.
    #[cold]
    fn found(&self, record: &ErrorRecord) -> c_int {
        self.inbox.found(*record);
        libc::EINVAL
    }

    fn refused(&self, what: &str, refused: Refused) -> c_int {
        let (rule, after) = match refused {
            // The producer may not know yet.
            Refused::Unwanted => return 0,
            Refused::BeforeSchema => (Rule::As3, "before the schema"),
            Refused::SecondSchema => (Rule::As3, "after another one"),
            Refused::AfterEnd => (Rule::As4, "after the end or an error"),
            Refused::NotAsked => (Rule::As4, "that was not requested"),
        };
        self.found(&broken(rule, format_args!("expected no {what} {after}, found one")))
    }

    /// Takes over what the producer says about all arrays.
    unsafe fn open(&self, producer: *mut ArrowAsyncProducer, schema: &ArrowSchema) -> c_int {
        // SAFETY: a producer that is there is what the interface says.
        let callbacks = NonNull::new(producer).map(|raw| unsafe { raw.as_ref() });
        let parsed = capture(|report| {
            let Some(own) = callbacks else {
                let message = format_args!("expected the handler's producer before the schema, found NULL");
                return Err(report.broken(Rule::As2, &"$", message));
            };
            if own.request.is_none() || own.cancel.is_none() {
                let message = format_args!("expected a producer with request and cancel, found NULL");
                return Err(report.broken(Rule::As2, &"$", message));
            }
            // A producer has no device id: any that its type allows does.
            let device = Device { r#type: own.device_type, id: 0 };
            check_foreign(device, core::ptr::null_mut(), report)?;
            if schema.release.is_none() {
                let message = format_args!("expected a live schema, found a released one");
                return Err(report.broken(Rule::As3, &"$", message));
            }
            // SAFETY: the producer vouches for its schema.
            let ty = Type::from_schema(unsafe { SchemaView::new(schema) }, report)?;
            Ok(Known { ty, device_type: own.device_type })
        });
        let known = match parsed {
            Ok(known) => known,
            Err(record) => return self.found(&record),
        };
        // A second one is refused below.
        let _ = self.known.set(known);
        self.producer
            .compare_exchange(core::ptr::null_mut(), producer, Ordering::AcqRel, Ordering::Acquire)
            .ok();
        match self.inbox.begin() {
            Ok(capacity) => {
                self.request(capacity);
                0
            }
            // Nothing but a release follows.
            Err(Refused::Unwanted) => libc::ECANCELED,
            Err(refused) => self.refused("schema", refused),
        }
    }
}

#[cold]
fn cancelled(report: &mut Report<'_>) -> crate::error::Failed {
    report.fail(Status::Cancelled, format_args!("expected a stream to go on, found that it was cancelled"))
}

#[cold]
fn broken(rule: Rule, message: core::fmt::Arguments<'_>) -> ErrorRecord {
    let mut record = ErrorRecord::empty();
    let _ = Report::new(&mut record).broken(rule, &"$", message);
    record
}

/// The arrays of tasks.
struct Receiving {
    link: Link,
    incoming: Option<Incoming>,
}

impl Receiving {
    fn ask(&mut self, report: &mut Report<'_>) -> Result<Option<Filled<ArrowDeviceArray>>> {
        let task = match scope::unlocked(|| self.link.inbox.take()) {
            Taken::Task(task) => task,
            Taken::End => return Ok(None),
            Taken::Failed(record) => return Err(report.repeat(&record)),
            Taken::Cancelled => return Err(cancelled(report)),
        };
        let mut filled = Filled::nothing();
        let code = task.extract(&mut filled.0);
        if self.link.inbox.make_room() {
            self.link.request(1);
        }
        if code != 0 {
            return Err(callback_failed("extract_data", code, core::ptr::null(), report));
        }
        if filled.0.array.release.is_none() {
            let message = format_args!("expected a live array of extract_data, found a released one");
            return Err(report.broken(Rule::As5, &"$", message));
        }
        Ok(Some(filled))
    }

    fn incoming(&mut self, report: &mut Report<'_>) -> Result<&mut Incoming> {
        if self.incoming.is_none() {
            self.link.ready(report)?;
            self.incoming = self.link.known().map(|known| Incoming::new(&known.ty, known.device_type));
        }
        self.incoming.as_mut().ok_or_else(|| {
            report.fail(Status::Internal, format_args!("expected the type of a stream, found none"))
        })
    }
}

impl Source for Receiving {
    fn next(&mut self, report: &mut Report<'_>) -> Result<Option<Array>> {
        let Some(mut filled) = self.ask(report)? else { return Ok(None) };
        // SAFETY: the producer vouches for what it filled in.
        unsafe { self.incoming(report)?.array(&mut filled, report) }
    }

    fn next_exported(&mut self, out: &mut Filled<ArrowDeviceArray>, report: &mut Report<'_>) -> Result<bool> {
        let Some(mut filled) = self.ask(report)? else { return Ok(false) };
        *out = Filled(filled.take());
        // SAFETY: as above.
        unsafe { self.incoming(report)?.settle(out, report) }
    }

    fn canceller(&self) -> Option<Canceller> {
        Some(Canceller::of_producer(&self.link))
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.link.cancel();
        while let Some(task) = self.link.inbox.leftover() {
            task.drop_data();
        }
    }
}

/// A stream over what an asynchronous producer hands to `handler`, which is written, and not read before.
///
/// # Safety
/// `handler` leads to memory for a handler, which stays where it is until its release was called.
pub unsafe fn stream_from_async(
    capacity: usize,
    handler: NonNull<ArrowAsyncDeviceStreamHandler>,
    report: &mut Report<'_>,
) -> Result<Stream> {
    if capacity == 0 {
        let message = format_args!("expected a capacity of at least one array, found 0");
        return Err(report.fail(Status::InvalidArgument, message));
    }
    let mut tasks = VecDeque::new();
    if tasks.try_reserve_exact(capacity).is_err() {
        return Err(report.out_of_memory(capacity.saturating_mul(size_of::<Task>())));
    }
    let receiver = Space::<Receiver>::reserve(report)?.fill(Receiver {
        count: AtomicUsize::new(1),
        known: OnceLock::new(),
        producer: AtomicPtr::new(core::ptr::null_mut()),
        inbox: Inbox::new(tasks, capacity),
    });
    let link = Link(receiver.into_raw());
    // What is told as long as, and where, no type came.
    let nothing = Type::build::<[Type; 0]>(b"n", b"", 0, [], None, None, report)?;
    let nowhere = Device { r#type: 0, id: 0 };
    let mut stream =
        Stream::new(&nothing, nowhere, report, || Receiving { link: link.clone(), incoming: None })?;
    stream.is_told_by(link.clone());
    let raw = ArrowAsyncDeviceStreamHandler {
        on_schema: Some(on_schema),
        on_next_task: Some(on_next_task),
        on_error: Some(on_error),
        release: Some(release),
        producer: core::ptr::null_mut(),
        private_data: ManuallyDrop::new(link).0.as_ptr().cast(),
    };
    // SAFETY: as the caller promises.
    unsafe { handler.write(raw) };
    Ok(stream)
}

type Handler = ArrowAsyncDeviceStreamHandler;

/// What a handler of ours leads to until it was released.
unsafe fn link_of(handler: *mut Handler) -> Option<ManuallyDrop<Link>> {
    // SAFETY: a producer calls with a handler of ours, whose private data is NULL or a reference that it owns.
    let raw = NonNull::new(unsafe { handler.as_mut() }?.private_data)?;
    Some(ManuallyDrop::new(Link(raw.cast())))
}

unsafe extern "C" fn on_schema(handler: *mut Handler, schema: *mut ArrowSchema) -> c_int {
    guarded(|| {
        // SAFETY: a producer calls with a handler of ours and with a schema, which is ours to release.
        unsafe {
            let Some(link) = link_of(handler) else { return libc::EINVAL };
            let Some(schema) = schema.as_mut() else {
                let message = format_args!("expected a schema, found NULL");
                return link.found(&broken(Rule::As3, message));
            };
            let code = link.open((*handler).producer, schema);
            release_schema_struct(schema);
            code
        }
    })
}

unsafe extern "C" fn on_next_task(
    handler: *mut Handler,
    task: *mut ArrowAsyncTask,
    _metadata: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: a producer calls with a handler of ours.
        let Some(link) = (unsafe { link_of(handler) }) else { return libc::EINVAL };
        // SAFETY: a task is NULL or lives during this call; what asks it may have a copy of it.
        let Some(task) = (unsafe { task.as_ref() }) else {
            return link.inbox.end().map_or_else(|refused| link.refused("end", refused), |()| 0);
        };
        if task.extract_data.is_none() {
            let message = format_args!("expected a task with extract_data, found NULL");
            return link.found(&broken(Rule::As5, message));
        }
        let copy = ArrowAsyncTask { extract_data: task.extract_data, private_data: task.private_data };
        match link.inbox.put(Task(copy)) {
            Ok(()) => 0,
            Err((refused, task)) => {
                task.drop_data();
                link.refused("task", refused)
            }
        }
    })
}

unsafe extern "C" fn on_error(
    handler: *mut Handler,
    code: c_int,
    message: *const c_char,
    _metadata: *const c_char,
) {
    guarded(|| {
        // SAFETY: a producer calls with a handler of ours.
        let Some(link) = (unsafe { link_of(handler) }) else { return libc::EINVAL };
        let mut record = ErrorRecord::empty();
        let text = format_args!("expected no error of the producer, found {}{}", Errno(code), Said(message));
        let _ = Report::new(&mut record).fail_with_code(status_of(code), i64::from(code), text);
        link.inbox.told(record);
        0
    });
}

unsafe extern "C" fn release(handler: *mut Handler) {
    guarded(|| {
        // SAFETY: a producer calls with a handler of ours, which it does not use any more.
        unsafe {
            let Some(link) = link_of(handler) else { return libc::EINVAL };
            (*handler).release = None;
            (*handler).private_data = core::ptr::null_mut();
            let message =
                format_args!("expected the end or an error before the handler's release, found neither");
            link.inbox.release(this_thread(), broken(Rule::As8, message));
            drop(ManuallyDrop::into_inner(link));
        }
        0
    });
}
