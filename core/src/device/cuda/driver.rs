//! The driver: found by its library's name at run time, opened once, called through a table of our own.
//!
//! Results are integers here, because a driver newer than this code returns numbers that no enum knows. A function that the
//! driver lacks is an error of the call that needs it, of no other.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::fmt;

use cudarc::driver::sys;

use crate::error::{Failed, Lossy, Report, Result, Status};

/// A context, stream or event.
pub(super) type Handle = *mut c_void;
/// An address as the driver has it, of any memory it knows.
pub(super) type Address = u64;

pub(super) const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const DEINITIALIZED: c_int = 4;
const STUB_LIBRARY: c_int = 34;
const DEVICE_IS_UNAVAILABLE: c_int = 46;
const NO_DEVICE: c_int = 100;
const INVALID_DEVICE: c_int = 101;
pub(super) const INVALID_CONTEXT: c_int = 201;
pub(super) const NOT_READY: c_int = 600;
pub(super) const NOT_SUPPORTED: c_int = 801;
pub(super) const CAPTURE_IMPLICIT: c_int = 906;

/// CUDA 11.0. What is newer is asked for by name.
const OLDEST: c_int = 11_000;

/// A function of the driver, if it has it.
pub(super) struct Entry<F> {
    symbol: &'static str,
    function: Option<F>,
}

impl<F: Copy> Entry<F> {
    /// Whether the driver has the function.
    pub fn is_there(&self) -> bool {
        self.function.is_some()
    }

    /// The function, where its absence is no failure.
    pub fn function(&self) -> Option<F> {
        self.function
    }

    /// The function, or that the driver lacks it.
    pub fn get(&self, report: &mut Report<'_>) -> Result<F> {
        self.function.ok_or_else(|| {
            let message = format_args!("expected {} in the CUDA driver, found no such function", self.symbol);
            report.fail(Status::Unsupported, message)
        })
    }
}

macro_rules! driver {
    ($($(#[doc = $text:literal])+ $field:ident: $symbol:literal ($($of:ty),*),)+) => {
        /// The driver's functions. Pointers that a function writes to are valid and the call's own; handles are the driver's.
        pub(super) struct Driver {
            $($(#[doc = $text])+ pub $field: Entry<unsafe extern "C" fn($($of),*) -> c_int>,)+
        }

        impl Driver {
            /// Looks every function up.
            ///
            /// # Safety
            /// The driver's library can be opened, and has the driver's own functions under their names.
            unsafe fn load() -> Self {
                // SAFETY: as the caller promises. The library stays open for as long as the process lives.
                let library = unsafe { sys::culib() };
                $(
                    let symbol = concat!($symbol, "\0").as_bytes();
                    // SAFETY: the signature is the one that the driver's manual gives for the name.
                    let found = unsafe {
                        library.get::<Option<unsafe extern "C" fn($($of),*) -> c_int>>(symbol)
                    };
                    let $field = Entry { symbol: $symbol, function: found.ok().and_then(|found| *found) };
                )+
                Self { $($field),+ }
            }
        }
    };
}

driver! {
    /// `flags` is 0.
    init: "cuInit"(c_uint),
    /// Writes a thousand times the major and ten times the minor number.
    version: "cuDriverGetVersion"(*mut c_int),
    /// Points to a static string, or NULL.
    error_name: "cuGetErrorName"(c_int, *mut *const c_char),
    /// Points to a static string, or NULL.
    error_text: "cuGetErrorString"(c_int, *mut *const c_char),
    /// Writes how many devices there are.
    device_count: "cuDeviceGetCount"(*mut c_int),
    /// Writes the device of an ordinal.
    device_get: "cuDeviceGet"(*mut c_int, c_int),
    /// Writes the value of an attribute of a device.
    device_attribute: "cuDeviceGetAttribute"(*mut c_int, c_int, c_int),
    /// Writes the primary context of a device, which then lives until it is released as often.
    primary_retain: "cuDevicePrimaryCtxRetain"(*mut Handle, c_int),
    /// Makes a context this thread's current one.
    context_push: "cuCtxPushCurrent_v2"(Handle),
    /// Undoes the last push of this thread, and writes what was current.
    context_pop: "cuCtxPopCurrent_v2"(*mut Handle),
    /// Writes this thread's current context, or NULL.
    context_current: "cuCtxGetCurrent"(*mut Handle),
    /// Writes the device of the current context.
    context_device: "cuCtxGetDevice"(*mut c_int),
    /// Exchanges this thread's capture mode.
    exchange_mode: "cuThreadExchangeStreamCaptureMode"(*mut c_int),
    /// Writes the address of that many bytes of device memory.
    memory_allocate: "cuMemAlloc_v2"(*mut Address, usize),
    /// The memory came of `cuMemAlloc_v2` or `cuMemAllocManaged` and nobody uses it.
    memory_free: "cuMemFree_v2"(Address),
    /// Writes the address of that many bytes of device memory, to be used behind what is on the stream.
    memory_allocate_async: "cuMemAllocAsync"(*mut Address, usize, Handle),
    /// The memory came of `cuMemAllocAsync` and nobody uses it after what is on the stream.
    memory_free_async: "cuMemFreeAsync"(Address, Handle),
    /// Writes the address of that many bytes of pinned memory.
    host_allocate: "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint),
    /// The memory came of `cuMemHostAlloc` and nobody uses it.
    host_free: "cuMemFreeHost"(*mut c_void),
    /// Writes the address of that many bytes of managed memory.
    managed_allocate: "cuMemAllocManaged"(*mut Address, usize, c_uint),
    /// Writes one attribute of an address, as large as that attribute is.
    pointer_attribute: "cuPointerGetAttribute"(*mut c_void, c_int, Address),
    /// Writes as many attributes of an address, each where its pointer points to.
    pointer_attributes: "cuPointerGetAttributes"(c_uint, *mut c_int, *mut *mut c_void, Address),
    /// Copies to where the first says from where the second says. Both are there until the copy is done, here and below.
    copy: "cuMemcpyAsync"(Address, Address, usize, Handle),
    /// Copies CPU memory to a device.
    copy_from_host: "cuMemcpyHtoDAsync_v2"(Address, *const c_void, usize, Handle),
    /// Copies a device's memory to the CPU.
    copy_to_host: "cuMemcpyDtoHAsync_v2"(*mut c_void, Address, usize, Handle),
    /// Copies within a device.
    copy_within: "cuMemcpyDtoDAsync_v2"(Address, Address, usize, Handle),
    /// Copies to one context's memory from another's.
    copy_between: "cuMemcpyPeerAsync"(Address, Handle, Address, Handle, usize, Handle),
    /// Writes a new stream.
    stream_create: "cuStreamCreate"(*mut Handle, c_uint),
    /// Writes a stream's context.
    stream_context: "cuStreamGetCtx"(Handle, *mut Handle),
    /// Writes whether a stream is captured.
    stream_is_capturing: "cuStreamIsCapturing"(Handle, *mut c_int),
    /// Blocks until all on a stream is done.
    stream_synchronize: "cuStreamSynchronize"(Handle),
    /// Lets what follows on a stream run after an event.
    stream_wait: "cuStreamWaitEvent"(Handle, Handle, c_uint),
    /// Writes a new event.
    event_create: "cuEventCreate"(*mut Handle, c_uint),
    /// Records an event on a stream of the same context.
    event_record: "cuEventRecord"(Handle, Handle),
    /// Returns 0 when an event is done and `NOT_READY` when not.
    event_query: "cuEventQuery"(Handle),
    /// Blocks until an event is done.
    event_synchronize: "cuEventSynchronize"(Handle),
    /// Nobody uses the event afterwards.
    event_destroy: "cuEventDestroy_v2"(Handle),
}

impl Driver {
    /// Finds the driver and makes it ready, or says why it is not there.
    pub fn open(report: &mut Report<'_>) -> Result<Self> {
        let absent = |report: &mut Report<'_>, message: fmt::Arguments<'_>, code: c_int| {
            Err(report.fail_with_code(Status::DeviceUnavailable, i64::from(code), message))
        };
        // Without this question the loader would panic, with noise, where there is no driver.
        // SAFETY: the driver's library may be loaded into any process.
        if !unsafe { sys::is_culib_present() } {
            return absent(report, format_args!("expected the CUDA driver, found no library of its name"), 0);
        }
        // SAFETY: the library is there, and has the driver's name.
        let driver = unsafe { Self::load() };
        let mut version = 0;
        if let Some(function) = driver.version.function() {
            // SAFETY: the version is this call's own. A failure is left to `cuInit` to tell.
            let code = unsafe { function(&mut version) };
            if code == 0 && (1..OLDEST).contains(&version) {
                let message =
                    format_args!("expected a CUDA driver of version {OLDEST} or later, found {version}");
                return absent(report, message, 0);
            }
        }
        let Some(init) = driver.init.function() else {
            return absent(
                report,
                format_args!("expected cuInit in the CUDA driver, found no such function"),
                0,
            );
        };
        // SAFETY: there are no flags.
        match unsafe { init(0) } {
            0 => Ok(driver),
            code => {
                let text = Text(&driver, code);
                let why = match code {
                    STUB_LIBRARY => ": the library is a stub of the toolkit, to link with, and no driver",
                    _ => "",
                };
                absent(report, format_args!("cuInit of the CUDA driver returned {code}{text}{why}"), code)
            }
        }
    }

    /// Calls a function that the driver may lack, and checks what it returns.
    pub fn call<F: Copy>(
        &self,
        entry: &Entry<F>,
        report: &mut Report<'_>,
        call: impl FnOnce(F) -> c_int,
    ) -> Result<()> {
        match call(entry.get(report)?) {
            0 => Ok(()),
            code => Err(self.failed(entry, code, report)),
        }
    }

    /// What the driver returned, as an error.
    #[cold]
    pub fn failed<F>(&self, entry: &Entry<F>, code: c_int, report: &mut Report<'_>) -> Failed {
        let status = match code {
            OUT_OF_MEMORY => Status::OutOfMemory,
            DEINITIALIZED | STUB_LIBRARY | DEVICE_IS_UNAVAILABLE | NO_DEVICE | INVALID_DEVICE => {
                Status::DeviceUnavailable
            }
            _ => Status::DeviceError,
        };
        self.failed_as(status, entry, code, "", report)
    }

    /// As [`Driver::failed`], with what it means here.
    #[cold]
    pub fn failed_as<F>(
        &self,
        status: Status,
        entry: &Entry<F>,
        code: c_int,
        why: &str,
        report: &mut Report<'_>,
    ) -> Failed {
        let (symbol, text) = (entry.symbol, Text(self, code));
        let message = format_args!("{symbol} of the CUDA driver returned {code}{text}{why}");
        report.fail_with_code(status, i64::from(code), message)
    }
}

/// What the driver says of an error number.
struct Text<'a>(&'a Driver, c_int);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Text(driver, code) = *self;
        for (entry, before) in [(&driver.error_name, " "), (&driver.error_text, ": ")] {
            let mut text = core::ptr::null();
            // SAFETY: the pointer is this call's own.
            let asked = entry.function().map(|function| unsafe { function(code, &mut text) });
            if asked == Some(0) && !text.is_null() {
                f.write_str(before)?;
                // SAFETY: what the driver gives is a string that it keeps.
                Lossy(unsafe { CStr::from_ptr(text) }.to_bytes()).fmt(f)?;
            }
        }
        Ok(())
    }
}
