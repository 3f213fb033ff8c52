//! What calls the callbacks of somebody else's stream, and the callbacks of ours.

mod consumer;
mod filled;
mod producer;

pub(super) use consumer::Link;
pub use consumer::stream_from_async;
pub use filled::Filled;
pub use producer::stream_to_async;

use core::ffi::{c_char, c_int, c_void};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::errno::{Errno, errno_of, status_of};
use super::{Source, Stream};
use crate::abi::{
    ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema, Device,
    RawArray, RawStream, SchemaView, WholeArray,
};
use crate::array::Array;
use crate::device::{Sync, device_name};
use crate::error::{ErrorRecord, Failed, Findings, Lossy, Report, Result, Rule, Status};
use crate::memory::{Kind, Own, mark, scope};
use crate::tree::{Import, PassOn, export_schema, import, release_schema_struct};
use crate::types::Type;
use crate::validate::{device_stream, host_stream};

/// A source whose type is forgotten.
pub(super) fn any_source<S: Source + 'static>(source: Own<S>) -> Own<dyn Source> {
    let raw: NonNull<dyn Source> = source.into_raw();
    // SAFETY: the pointer was just given away, and its value is a source.
    unsafe { Own::from_raw(raw) }
}

impl Stream {
    /// The handle as a C pointer, which owns the stream.
    pub fn into_raw(self) -> NonNull<c_void> {
        self.0.into_raw().cast()
    }

    /// The stream behind a C pointer, which still owns it; `None` when another copy of the library made it.
    ///
    /// # Safety
    /// `raw` came from [`Stream::into_raw`] of some copy of the library, and the stream was not let go.
    pub unsafe fn from_raw(raw: NonNull<c_void>) -> Option<ManuallyDrop<Self>> {
        // SAFETY: every handle leads to something whose first word tells what it is.
        let found: usize = unsafe { raw.cast().read() };
        // SAFETY: the pointer is that of a stream of ours, and nobody gives it back.
        (found == mark(Kind::Stream).addr())
            .then(|| ManuallyDrop::new(Self(unsafe { Own::from_raw(raw.cast()) })))
    }
}

/// What comes in is checked: the device of each array, and its structure by the stream's type.
struct Incoming {
    ty: Type,
    device_type: ArrowDeviceType,
    pass_on: PassOn,
}

impl Incoming {
    fn new(ty: &Type, device_type: ArrowDeviceType) -> Self {
        Self { ty: ty.clone(), device_type, pass_on: PassOn::default() }
    }

    fn check_device(&self, found: ArrowDeviceType, report: &mut Report<'_>) -> Result<()> {
        if found == self.device_type { Ok(()) } else { Err(other_device(self.device_type, found, report)) }
    }

    /// The array of a struct that a callback filled in; `None` when it is released, which is the end.
    unsafe fn array<A: RawArray>(
        &self,
        filled: &mut Filled<A>,
        report: &mut Report<'_>,
    ) -> Result<Option<Array>> {
        // Nothing but the release is read before it is known to be one.
        if filled.0.array().release.is_none() {
            return Ok(None);
        }
        let from = match filled.0.whole() {
            WholeArray::Host(array) => Import::MoveHost(array),
            WholeArray::Device(array) => {
                self.check_device(array.device_type, report)?;
                Import::Move(array)
            }
        };
        // SAFETY: the producer vouches for its struct.
        unsafe { import(from, &self.ty, report) }.map(Some)
    }

    /// Makes what a callback filled in a struct for somebody else: an export of ours stays as it is. False at the end.
    #[inline(always)]
    unsafe fn settle(
        &mut self,
        filled: &mut Filled<ArrowDeviceArray>,
        report: &mut Report<'_>,
    ) -> Result<bool> {
        if filled.0.array.release.is_some()
            && filled.0.device_type == self.device_type
            // SAFETY: the producer vouches for its struct.
            && unsafe { self.pass_on.is_strict(&filled.0, &self.ty, report) }?
        {
            return Ok(true);
        }
        // SAFETY: as above.
        let array = unsafe { self.array(filled, report) }?;
        put_exported(array, filled, report)
    }
}

/// Keeps an array as a struct for somebody else. False when there is none.
#[inline(never)]
fn put_exported(
    array: Option<Array>,
    out: &mut Filled<ArrowDeviceArray>,
    report: &mut Report<'_>,
) -> Result<bool> {
    let Some(array) = array else { return Ok(false) };
    out.put(array.export(report)?);
    Ok(true)
}

#[cold]
pub(super) fn other_device(
    expected: ArrowDeviceType,
    found: ArrowDeviceType,
    report: &mut Report<'_>,
) -> Failed {
    let (wanted, other) = (device_name(expected), device_name(found));
    let message = format_args!(
        "expected arrays on the stream's device type {expected} ({wanted}), found one on {found} ({other})"
    );
    report.broken(Rule::Ds1, &"$", message)
}

/// The longest text of a producer that is looked at.
const LONGEST: usize = 1024;

/// A producer's text, when it gave one.
struct Said(*const c_char);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: *const u8 = self.0.cast();
        if text.is_null() {
            return f.write_str(" without a text");
        }
        // SAFETY: the producer vouches for a string; no byte behind its terminator is read.
        let length = (0..LONGEST).take_while(|i| unsafe { text.add(*i).read() } != 0).count();
        // SAFETY: these bytes were just read.
        write!(f, ": {}", Lossy(unsafe { core::slice::from_raw_parts(text, length) }))
    }
}

/// A callback failed: its number is told with what its producer says about it, which is copied at once.
#[cold]
fn callback_failed(name: &str, code: c_int, said: *const c_char, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected 0 of {name}, found {}{}", Errno(code), Said(said));
    report.fail_with_code(status_of(code), i64::from(code), message)
}

/// Somebody else's stream.
struct Foreign<S: RawStream> {
    raw: S,
    /// The release of structs of ours.
    ours: unsafe extern "C" fn(*mut S),
    incoming: Incoming,
}

// SAFETY: a stream may be asked and released by any thread, one at a time; the interface says so.
unsafe impl<S: RawStream> Send for Foreign<S> {}

impl<S: RawStream> Foreign<S> {
    #[inline(always)]
    fn ask(&mut self, filled: &mut Filled<S::Out>, report: &mut Report<'_>) -> Result<()> {
        // SAFETY: the struct is live until this is dropped.
        let code = unsafe { self.raw.array(&mut filled.0) };
        if code == 0 {
            return Ok(());
        }
        // SAFETY: as above, and the last call failed.
        Err(callback_failed("get_next", code, unsafe { self.raw.text() }, report))
    }
}

impl<S: RawStream> Source for Foreign<S> {
    fn next(&mut self, report: &mut Report<'_>) -> Result<Option<Array>> {
        let mut filled = Filled::nothing();
        self.ask(&mut filled, report)?;
        // SAFETY: the producer vouches for what it filled in.
        unsafe { self.incoming.array(&mut filled, report) }
    }

    fn next_exported(&mut self, out: &mut Filled<ArrowDeviceArray>, report: &mut Report<'_>) -> Result<bool> {
        let mut filled = Filled::nothing();
        self.ask(&mut filled, report)?;
        if let WholeArray::Device(device) = filled.0.whole() {
            // SAFETY: the struct is moved bit by bit, and what is left is a released one.
            *out = Filled(unsafe { core::ptr::read(device) });
            device.array.release = None;
            // SAFETY: as above.
            return unsafe { self.incoming.settle(out, report) };
        }
        // SAFETY: as above.
        let array = unsafe { self.incoming.array(&mut filled, report) }?;
        put_exported(array, out, report)
    }
}

impl<S: RawStream> Drop for Foreign<S> {
    fn drop(&mut self) {
        // SAFETY: the struct is live.
        unsafe { let_go(&mut self.raw, self.ours) };
    }
}

/// Takes over a stream on a device. When it fails, nothing was taken.
///
/// # Safety
/// The struct is what the Arrow C Device interface says.
pub unsafe fn import_device_stream(
    raw: &mut ArrowDeviceArrayStream,
    report: &mut Report<'_>,
) -> Result<Stream> {
    // SAFETY: as the caller promises.
    unsafe { import_stream(raw, release_device, device_stream, report) }
}

/// Takes over a stream in CPU memory. When it fails, nothing was taken.
///
/// # Safety
/// The struct is what the Arrow C Stream interface says.
pub unsafe fn import_host_stream(raw: &mut ArrowArrayStream, report: &mut Report<'_>) -> Result<Stream> {
    // SAFETY: as the caller promises.
    unsafe { import_stream(raw, release_host, host_stream, report) }
}

unsafe fn import_stream<S: RawStream>(
    raw: &mut S,
    ours: unsafe extern "C" fn(*mut S),
    check: impl FnOnce(&S, Findings<'_, '_>) -> Result<()>,
    report: &mut Report<'_>,
) -> Result<Stream> {
    check(raw, Findings::first(report))?;
    // SAFETY: as the caller promises.
    if let Some(stream) = unsafe { taken_back(raw, ours) } {
        return Ok(stream);
    }
    // SAFETY: as the caller promises.
    let ty = unsafe { type_of(raw, report) }?;
    let device = Device { r#type: raw.device_type(), id: -1 };
    Stream::new(&ty, device, report, || {
        // SAFETY: a move is a bitwise copy and a NULL release, and the interface allows it.
        let moved = unsafe { core::ptr::read(raw) };
        *raw.release() = None;
        Foreign { raw: moved, ours, incoming: Incoming::new(&ty, device.r#type) }
    })
}

/// The type of a stream that is live.
unsafe fn type_of<S: RawStream>(raw: &mut S, report: &mut Report<'_>) -> Result<Type> {
    // SAFETY: zeroes are a released schema; the rest is as the caller promises.
    unsafe {
        let mut schema: ArrowSchema = core::mem::zeroed();
        let code = raw.schema(&mut schema);
        let parsed = match code {
            0 if schema.release.is_none() => {
                let message = format_args!("expected a live schema of get_schema, found a released one");
                Err(report.broken(Rule::St2, &"$", message))
            }
            0 => Type::from_schema(SchemaView::new(&schema), report),
            _ => Err(callback_failed("get_schema", code, raw.text(), report)),
        };
        release_schema_struct(&mut schema);
        parsed
    }
}

/// Callbacks of a producer that has no stream's struct.
#[derive(Debug)]
pub struct Callbacks {
    /// What each is called with.
    pub ctx: *mut c_void,
    /// Fills in the next array, or leaves it released at the end.
    pub get_next: Option<unsafe extern "C" fn(ctx: *mut c_void, out: *mut ArrowDeviceArray) -> c_int>,
    /// Instead of `get_next`: gives a handle of the next array, or leaves it NULL at the end.
    pub get_next_array: Option<unsafe extern "C" fn(ctx: *mut c_void, out: *mut *mut c_void) -> c_int>,
    /// Text of the last failure.
    pub get_last_error: Option<unsafe extern "C" fn(ctx: *mut c_void) -> *const c_char>,
    /// Lets the producer go.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
}

struct Called {
    callbacks: Callbacks,
    incoming: Incoming,
}

// SAFETY: whoever gave the callbacks promised that any thread may call them, one at a time.
unsafe impl Send for Called {}

impl Called {
    fn failed(&self, name: &str, code: c_int, report: &mut Report<'_>) -> Failed {
        let ctx = self.callbacks.ctx;
        // SAFETY: whoever gave the callbacks promised that they may be called.
        let said = self.callbacks.get_last_error.map_or(core::ptr::null(), |text| unsafe { text(ctx) });
        callback_failed(name, code, said, report)
    }

    #[inline(always)]
    fn fill(&self, filled: &mut Filled<ArrowDeviceArray>, report: &mut Report<'_>) -> Result<()> {
        // SAFETY: as above.
        let code = self
            .callbacks
            .get_next
            .map_or(libc::EINVAL, |get_next| unsafe { get_next(self.callbacks.ctx, &mut filled.0) });
        if code == 0 { Ok(()) } else { Err(self.failed("get_next", code, report)) }
    }

    fn handle(
        &self,
        get_next: unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int,
        report: &mut Report<'_>,
    ) -> Result<Option<Array>> {
        let mut out = core::ptr::null_mut();
        // SAFETY: as above.
        let code = unsafe { get_next(self.callbacks.ctx, &mut out) };
        let array = match NonNull::new(out) {
            None => None,
            // SAFETY: whoever gave the callbacks promised a live handle, which is ours now.
            Some(raw) => match unsafe { Array::from_raw(raw) } {
                Some(array) => Some(ManuallyDrop::into_inner(array)),
                None => {
                    let message = format_args!(
                        "expected an array of this copy of the library, found one of another copy"
                    );
                    return Err(report.fail(Status::InvalidArgument, message));
                }
            },
        };
        if code != 0 {
            return Err(self.failed("get_next_array", code, report));
        }
        let Some(array) = array else { return Ok(None) };
        self.incoming.check_device(array.tree().device().r#type, report)?;
        super::sources::check_type(&array, &self.incoming.ty, report)?;
        Ok(Some(array))
    }
}

impl Source for Called {
    fn next(&mut self, report: &mut Report<'_>) -> Result<Option<Array>> {
        if let Some(get_next) = self.callbacks.get_next_array {
            return self.handle(get_next, report);
        }
        let mut filled = Filled::nothing();
        self.fill(&mut filled, report)?;
        // SAFETY: whoever gave the callbacks vouches for what they fill in.
        unsafe { self.incoming.array(&mut filled, report) }
    }

    fn next_exported(&mut self, out: &mut Filled<ArrowDeviceArray>, report: &mut Report<'_>) -> Result<bool> {
        if self.callbacks.get_next_array.is_some() {
            return put_exported(self.next(report)?, out, report);
        }
        self.fill(out, report)?;
        // SAFETY: as above.
        unsafe { self.incoming.settle(out, report) }
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        let ctx = self.callbacks.ctx;
        if let Some(release) = self.callbacks.release.take() {
            // SAFETY: whoever gave the callbacks promised that the producer can be let go once, on any thread.
            scope::run(|| unsafe { release(ctx) });
        }
    }
}

/// A stream over callbacks, which are taken only once nothing can fail any more.
///
/// # Safety
/// Any thread may call the callbacks with their context, one at a time and until `release` was called, and they give what
/// they say.
pub unsafe fn call_stream(
    ty: &Type,
    device: Device,
    report: &mut Report<'_>,
    callbacks: impl FnOnce() -> Callbacks,
) -> Result<Stream> {
    Stream::new(ty, device, report, || Called {
        callbacks: callbacks(),
        incoming: Incoming::new(ty, device.r#type),
    })
}

/// How the CPU may wait for what a host stream gives.
#[derive(Clone, Copy)]
pub(super) struct HostSync(pub(super) Sync);

// SAFETY: a queue is the driver's, and any thread may name it.
unsafe impl Send for HostSync {}
// SAFETY: as above.
unsafe impl core::marker::Sync for HostSync {}

impl Stream {
    /// The stream as a struct for any device, which owns it. No call may be running.
    pub fn into_device_stream(self) -> ArrowDeviceArrayStream {
        let device_type = self.device().r#type;
        ArrowDeviceArrayStream {
            device_type,
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_device),
            private_data: self.into_raw().as_ptr(),
        }
    }

    /// The stream as a struct in CPU memory, which owns it; `sync` says how the CPU waits for each array. No call may be
    /// running.
    pub fn into_host_stream(self, sync: Sync) -> ArrowArrayStream {
        self.wait_with(HostSync(sync));
        ArrowArrayStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_host),
            private_data: self.into_raw().as_ptr(),
        }
    }
}

/// The stream that a struct of ours owns, which is not there any more once that is released.
unsafe fn stream_of<S: RawStream>(raw: *mut S) -> Option<ManuallyDrop<Stream>> {
    // SAFETY: a consumer calls with a struct of ours, whose private data is NULL or a stream's handle.
    unsafe { Stream::from_raw(NonNull::new(*raw.as_mut()?.private_data())?) }
}

/// Runs the body of a callback; a panic is an error number.
fn guarded(body: impl FnOnce() -> c_int) -> c_int {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // A payload's destructor may panic in turn.
        core::mem::forget(payload);
        libc::EIO
    })
}

unsafe extern "C" fn get_schema<S: RawStream>(raw: *mut S, out: *mut ArrowSchema) -> c_int {
    guarded(|| {
        if out.is_null() {
            return libc::EINVAL;
        }
        // SAFETY: a consumer calls with a struct to be filled in, which is never read, and with a stream of ours.
        let stream = unsafe {
            out.write_bytes(0, 1);
            stream_of(raw)
        };
        let Some(stream) = stream else { return libc::EINVAL };
        let mut record = ErrorRecord::empty();
        match export_schema(stream.ty(), &mut Report::new(&mut record)) {
            Ok(schema) => {
                // SAFETY: as above; what is there was released.
                unsafe { out.write(schema.into_raw()) };
                stream.say(None);
                0
            }
            Err(failed) => {
                record.status = failed.status() as i32;
                stream.say(Some(&record));
                errno_of(failed.status(), record.native_code)
            }
        }
    })
}

unsafe extern "C" fn get_next<S: RawStream>(raw: *mut S, out: *mut S::Out) -> c_int {
    guarded(|| {
        if out.is_null() {
            return libc::EINVAL;
        }
        // SAFETY: as in `get_schema`.
        let stream = unsafe {
            out.write_bytes(0, 1);
            stream_of(raw)
        };
        let Some(stream) = stream else { return libc::EINVAL };
        let mut given = Filled::nothing();
        match stream.give(S::IS_HOST, &mut given) {
            // SAFETY: as above; what is there was released.
            Ok(true) => unsafe { out.write(S::Out::of(given.take())) },
            Ok(false) => {}
            Err(code) => return code,
        }
        0
    })
}

unsafe extern "C" fn get_last_error<S: RawStream>(raw: *mut S) -> *const c_char {
    let mut text = core::ptr::null();
    guarded(|| {
        // SAFETY: as in `get_schema`.
        text = unsafe { stream_of(raw) }.map_or(core::ptr::null(), |stream| stream.said());
        0
    });
    text
}

// Neither generic nor inlined, so that each has one address by which its structs are known again.

#[inline(never)]
unsafe extern "C" fn release_device(raw: *mut ArrowDeviceArrayStream) {
    // SAFETY: as the caller promises.
    unsafe { release(raw) };
}

#[inline(never)]
unsafe extern "C" fn release_host(raw: *mut ArrowArrayStream) {
    // SAFETY: as the caller promises.
    unsafe { release(raw) };
}

unsafe fn release<S: RawStream>(raw: *mut S) {
    guarded(|| {
        // SAFETY: as in `get_schema`.
        unsafe {
            let stream = stream_of(raw);
            if let Some(raw) = raw.as_mut() {
                *raw.release() = None;
                *raw.private_data() = core::ptr::null_mut();
            }
            drop(stream.map(ManuallyDrop::into_inner));
        }
        0
    });
}

/// Releases a stream's struct that is live; a released one is left alone.
///
/// # Safety
/// `raw` leads to a live or released struct.
pub unsafe fn release_device_stream(raw: *mut ArrowDeviceArrayStream) {
    // SAFETY: as the caller promises.
    unsafe { let_go(&mut *raw, release_device) };
}

/// As [`release_device_stream`], in CPU memory.
///
/// # Safety
/// As there.
pub unsafe fn release_host_stream(raw: *mut ArrowArrayStream) {
    // SAFETY: as the caller promises.
    unsafe { let_go(&mut *raw, release_host) };
}

/// Calls a release callback: our own as it is, a foreign one inside the callback scope. One that the scope skips is leaked, and
/// the struct is released all the same.
unsafe fn let_go<S: RawStream>(raw: &mut S, ours: unsafe extern "C" fn(*mut S)) {
    let Some(release) = *raw.release() else { return };
    // SAFETY: the caller has a live struct, whose release takes the struct itself.
    unsafe {
        if release as usize == ours as usize {
            release(raw);
        } else if !scope::run(|| release(raw)) {
            *raw.release() = None;
        }
    }
}

/// The stream of a struct that is ours, which comes back as it went out.
unsafe fn taken_back<S: RawStream>(raw: &mut S, ours: unsafe extern "C" fn(*mut S)) -> Option<Stream> {
    let found = (*raw.release())?;
    if found as usize != ours as usize {
        return None;
    }
    // SAFETY: this release stands only beside a stream of ours.
    let stream = ManuallyDrop::into_inner(unsafe { stream_of(raw) }?);
    if stream.device().r#type != raw.device_type() || stream.0.inner.is_taken() {
        // In CPU memory it is another one than it was, or it is in use.
        core::mem::forget(stream);
        return None;
    }
    *raw.release() = None;
    *raw.private_data() = core::ptr::null_mut();
    Some(stream)
}
