//! The producer's half of an asynchronous stream: a thread of ours that hands a stream's arrays to somebody's handler.

use core::ffi::{c_char, c_int, c_void};
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, fence};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::asynchronous::{Demand, Order};
use super::super::errno::errno_of;
use super::super::{Stream, TEXT, Told};
use super::guarded;
use crate::abi::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceArray, ArrowSchema,
};
use crate::error::{ErrorRecord, Failed, Report, Result, Rule, Status, TextBuffer};
use crate::memory::{Own, Space, scope, start_alone};
use crate::tree::{ExportedArray, export_schema, release_schema_struct};

type Handler = ArrowAsyncDeviceStreamHandler;

/// What lives from the call until the handler was let go. The struct that consumers see comes first.
#[repr(C)]
struct Producer {
    raw: ArrowAsyncProducer,
    count: AtomicUsize,
    demand: Demand,
    stream: ManuallyDrop<Stream>,
    handler: NonNull<Handler>,
    callbacks: Callbacks,
}

/// The callbacks as they were when they were checked.
#[derive(Clone, Copy)]
struct Callbacks {
    on_schema: unsafe extern "C" fn(*mut Handler, *mut ArrowSchema) -> c_int,
    on_next_task: unsafe extern "C" fn(*mut Handler, *mut ArrowAsyncTask, *const c_char) -> c_int,
    on_error: unsafe extern "C" fn(*mut Handler, c_int, *const c_char, *const c_char),
    release: unsafe extern "C" fn(*mut Handler),
}

/// A reference to a producer, which goes with the last one.
///
/// Tasks have one each: the interface lets the producer go with the handler, but Arrow C++ asks for more between taking a task
/// and asking it for its array, also when the handler was let go meanwhile.
struct Held(NonNull<Producer>);

// SAFETY: the producer is counted, and its stream goes to any thread.
unsafe impl Send for Held {}

impl Held {
    /// One more reference.
    ///
    /// # Safety
    /// The producer is alive.
    unsafe fn more(at: NonNull<Producer>) -> Self {
        // SAFETY: as the caller promises.
        unsafe { at.as_ref() }.count.fetch_add(1, Ordering::Relaxed);
        Self(at)
    }

    fn demand(&self) -> &Demand {
        // SAFETY: a reference keeps the producer alive, of which any thread may use this; so it is below.
        unsafe { &(*self.0.as_ptr()).demand }
    }

    fn stream(&self) -> &Stream {
        // SAFETY: as above.
        unsafe { &(*self.0.as_ptr()).stream }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: a reference keeps the producer alive, and the last one lets it and its stream go.
        unsafe {
            if self.0.as_ref().count.fetch_sub(1, Ordering::Release) == 1 {
                fence(Ordering::Acquire);
                let mut producer = Own::from_raw(self.0);
                ManuallyDrop::drop(&mut producer.stream);
            }
        }
    }
}

/// What a task gives.
struct Given {
    array: ExportedArray,
    _producer: Held,
}

/// How a producer's work ended.
enum Outcome {
    /// There is nothing more to say.
    Quiet,
    /// The handler is to be told.
    Failed,
}

/// Hands the arrays of `stream` to `handler` from a thread of ours, as they are asked for. On success the stream is taken; on
/// failure nothing happened, and the handler was not called.
///
/// # Safety
/// `handler` leads to a handler as the interface says, which any thread may call, and which stays where it is until its release
/// was called. On success nobody else uses the stream any more.
pub unsafe fn stream_to_async(
    stream: &Stream,
    handler: NonNull<Handler>,
    report: &mut Report<'_>,
) -> Result<()> {
    // SAFETY: as the caller promises, here and below.
    let callbacks = callbacks_of(unsafe { handler.as_ref() }, report)?;
    let space = Space::<Producer>::reserve(report)?;
    let producer = space.fill(Producer {
        raw: ArrowAsyncProducer {
            device_type: 0,
            request: Some(request),
            cancel: Some(cancel),
            additional_metadata: core::ptr::null(),
            private_data: core::ptr::null_mut(),
        },
        count: AtomicUsize::new(1),
        demand: Demand::new(),
        // SAFETY: a failure forgets this copy, and a success the other one.
        stream: unsafe { core::ptr::read(core::ptr::from_ref(stream).cast()) },
        handler,
        callbacks,
    });
    let at = producer.into_raw();
    // SAFETY: the handler is the caller's until the thread is there.
    let before = unsafe { core::mem::replace(&mut (*handler.as_ptr()).producer, at.as_ptr().cast()) };
    // SAFETY: what the producer holds goes to any thread, and the new one uses it alone, but for what is made for several.
    unsafe { start_alone(run, at.cast(), report) }.inspect_err(|_| {
        // SAFETY: no thread was started, so that the block is still this function's, and the handler the caller's.
        unsafe {
            (*handler.as_ptr()).producer = before;
            drop(Own::from_raw(at));
        }
    })
}

fn callbacks_of(handler: &Handler, report: &mut Report<'_>) -> Result<Callbacks> {
    let Some(release) = handler.release else {
        let message = format_args!("expected a live handler, found one that was released");
        return Err(report.fail_at(Status::Released, Rule::M2, &"$", message));
    };
    let (Some(on_schema), Some(on_next_task), Some(on_error)) =
        (handler.on_schema, handler.on_next_task, handler.on_error)
    else {
        let message =
            format_args!("expected a handler with on_schema, on_next_task and on_error, found NULL");
        return Err(report.broken(Rule::As2, &"$", message));
    };
    Ok(Callbacks { on_schema, on_next_task, on_error, release })
}

extern "C" fn run(producer: *mut c_void) -> *mut c_void {
    if let Some(at) = NonNull::new(producer.cast::<Producer>())
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| live(at)))
    {
        core::mem::forget(payload);
    }
    core::ptr::null_mut()
}

/// The whole life of the thread.
fn live(at: NonNull<Producer>) {
    let mut record = ErrorRecord::empty();
    // SAFETY: the block lives until the end of this function; of what changes only this thread uses anything.
    let worked = catch_unwind(AssertUnwindSafe(|| unsafe { work(at, &mut record) }));
    let outcome = worked.unwrap_or_else(|payload| {
        // A payload's destructor may panic in turn.
        core::mem::forget(payload);
        let message = format_args!("expected the next array, found that its producer panicked");
        let failed = Report::new(&mut record).fail(Status::Internal, message);
        record.status = failed.status() as i32;
        Outcome::Failed
    });
    // SAFETY: the block lives, and the handler until its release was called, the last thing that happens to it.
    unsafe {
        let Producer { handler, callbacks, demand, .. } = at.as_ref();
        if matches!(outcome, Outcome::Failed) && !demand.is_cancelled() {
            tell(handler.as_ptr(), callbacks, &record);
        }
        if !scope::run(|| (callbacks.release)(handler.as_ptr())) {
            // A handler that was not let go may still call its producer.
            return;
        }
        drop(Held(at));
    }
}

/// Gives what is asked for.
unsafe fn work(at: NonNull<Producer>, record: &mut ErrorRecord) -> Outcome {
    // SAFETY: nobody else writes these; the handler reads `raw` only after it was called.
    let (handler, callbacks, demand, stream) = unsafe {
        let own = at.as_ref();
        (own.handler.as_ptr(), own.callbacks, &own.demand, &own.stream)
    };
    let prepared = stream.ready(&mut Report::new(record)).and_then(|()| {
        let schema = export_schema(stream.ty(), &mut Report::new(record))?;
        // SAFETY: no callback was called yet, so that nobody reads this.
        unsafe { (&raw mut (*at.as_ptr()).raw.device_type).write(stream.device().r#type) };
        Ok(schema)
    });
    let mut schema = match prepared {
        Ok(schema) => schema.into_raw(),
        Err(failed) => return failure(failed, record),
    };
    // SAFETY: the handler does what the interface says: it moves the schema out, or leaves it.
    let code = unsafe {
        let code = (callbacks.on_schema)(handler, &mut schema);
        release_schema_struct(&mut schema);
        code
    };
    if code != 0 {
        return Outcome::Quiet;
    }
    loop {
        match demand.wait() {
            Order::Give => {}
            Order::Stop => return Outcome::Quiet,
            Order::Refuse(n) => {
                let message = format_args!("expected requests of at least one array, found one of {n}");
                let failed = Report::new(record).fail_at(Status::InvalidArgument, Rule::As6, &"$", message);
                return failure(failed, record);
            }
        }
        // Room first, so that an array is not lost for want of it.
        let asked = Space::<Given>::reserve(&mut Report::new(record)).and_then(|space| {
            Ok(stream.next_exported(&mut Report::new(record))?.map(|array| {
                // SAFETY: this thread's own reference keeps the producer alive.
                space.fill(Given { array, _producer: unsafe { Held::more(at) } })
            }))
        });
        let code = match asked {
            // SAFETY: the handler does what the interface says, here and below.
            Ok(None) => unsafe {
                (callbacks.on_next_task)(handler, core::ptr::null_mut(), core::ptr::null());
                return Outcome::Quiet;
            },
            Ok(Some(array)) => {
                // The consumer calls this once, whatever it returns.
                let private_data = array.into_raw().as_ptr().cast();
                let mut task = ArrowAsyncTask { extract_data: Some(extract_data), private_data };
                // SAFETY: as above.
                unsafe { (callbacks.on_next_task)(handler, &mut task, core::ptr::null()) }
            }
            Err(failed) => return failure(failed, record),
        };
        if code != 0 {
            return Outcome::Quiet;
        }
    }
}

#[cold]
fn failure(failed: Failed, record: &mut ErrorRecord) -> Outcome {
    record.status = failed.status() as i32;
    Outcome::Failed
}

/// Tells a handler what went wrong, as a number and a text that lives during the call.
#[cold]
unsafe fn tell(handler: *mut Handler, callbacks: &Callbacks, record: &ErrorRecord) {
    let mut text: [c_char; TEXT] = [0; TEXT];
    // A writer that runs out of room cuts the text.
    let _ = write!(TextBuffer::over(&mut text), "{}", Told(record));
    let status = Status::from_code(record.status).unwrap_or(Status::Internal);
    let code = errno_of(status, record.native_code);
    // SAFETY: the handler does what the interface says.
    unsafe { (callbacks.on_error)(handler, code, text.as_ptr(), core::ptr::null()) };
}

unsafe extern "C" fn extract_data(task: *mut ArrowAsyncTask, out: *mut ArrowDeviceArray) -> c_int {
    guarded(|| {
        // SAFETY: a consumer calls with a task of ours or a copy of it, once.
        let Some(task) = (unsafe { task.as_mut() }) else { return libc::EINVAL };
        let Some(raw) = NonNull::new(core::mem::replace(&mut task.private_data, core::ptr::null_mut()))
        else {
            return libc::EINVAL;
        };
        // SAFETY: the private data is the block that the task was made with.
        let given = unsafe { Own::<Given>::from_raw(raw.cast()) };
        if let Some(out) = NonNull::new(out) {
            // SAFETY: a consumer calls with memory for an array, which is not read, or with NULL.
            unsafe { out.write(given.into_inner().array.into_raw()) };
        }
        0
    })
}

/// The producer behind a consumer's pointer. What is called may have our thread end, so it is kept until the call is over.
unsafe fn entered(raw: *mut ArrowAsyncProducer) -> Option<Held> {
    // SAFETY: a consumer calls with a producer of ours until its handler was let go.
    NonNull::new(raw).map(|raw| unsafe { Held::more(raw.cast()) })
}

unsafe extern "C" fn request(raw: *mut ArrowAsyncProducer, n: i64) {
    guarded(|| {
        // SAFETY: as the caller promises.
        if let Some(producer) = unsafe { entered(raw) } {
            producer.demand().request(n);
        }
        0
    });
}

unsafe extern "C" fn cancel(raw: *mut ArrowAsyncProducer) {
    guarded(|| {
        // SAFETY: as the caller promises.
        if let Some(producer) = unsafe { entered(raw) } {
            producer.demand().cancel();
            producer.stream().cancel();
        }
        0
    });
}
