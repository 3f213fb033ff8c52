//! The simulated driver, and processes of their own for tests: a process opens one driver, once.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::NonNull;
use std::path::PathBuf;
use std::process::Command;

use super::super::backend;
use crate::abi::Device;
use crate::device::backend::{Backend, Queue, Route};
use crate::error::{ErrorRecord, Report, Result, Status, capture};

const MARK: c_int = 0x5349_4d31;
const CHILD: &str = "BOWSTRING_CUDA_CHILD";
const DONE: &str = "the test ran to its end";

/// A driver that was loaded before the backend looks for one.
pub struct Sim(*mut c_void);

/// What is alive in the simulated driver.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub device_memory: i64,
    pub pool_memory: i64,
    pub pinned_memory: i64,
    pub managed_memory: i64,
    pub bytes: i64,
    pub streams: i64,
    pub events: i64,
    pub graphs: i64,
    pub contexts: i64,
    pub primary_retains: i64,
    pub pushed_here: i64,
    pub pushed: i64,
    pub pending: i64,
}

#[repr(C)]
struct Logged {
    function: [c_char; 48],
    arguments: [c_char; 160],
    sequence: u64,
    start: u64,
    end: u64,
    stream: *mut c_void,
    thread: i64,
    result: c_int,
    on_stream: c_int,
}

/// Runs a test in a process of its own, with a variant of the simulated driver, or none where the name is empty.
///
/// `test` is its path as `module_path!` has it, `settings` as the simulated driver reads them.
pub fn alone(test: &str, variant: &str, settings: &str, body: impl FnOnce(&Sim)) {
    let (_, name) = test.split_once("::").unwrap();
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        body(&Sim::load(variant));
        println!("{DONE}");
        // A test may have several such processes, and each does one thing.
        std::process::exit(0);
    }
    if !variant.is_empty() && library(variant).is_none() {
        println!("skipped: BOWSTRING_CUDA_SIM names no folder with the simulated driver");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new(own);
    child.args([name, "--exact", "--nocapture"]).env(CHILD, name).env("CUDA_SIM", settings);
    let output = child.output().unwrap();
    let (text, noise) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{text}\n{noise}", output.status);
    assert!(text.contains(DONE), "{name}: {text}\n{noise}");
    for skip in text.lines().filter(|line| line.starts_with("skipped:")) {
        println!("{skip}");
    }
    assert_eq!(noise, "", "{name}: expected nothing on stderr");
}

fn library(variant: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("BOWSTRING_CUDA_SIM")?);
    let path = std::path::absolute(folder).ok()?.join(variant).join("libcuda.so.1");
    path.exists().then_some(path)
}

impl Sim {
    fn load(variant: &str) -> Self {
        if variant.is_empty() {
            return Self(core::ptr::null_mut());
        }
        let path = library(variant).unwrap();
        let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the library is the simulated driver, which may be loaded at any time.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!library.is_null(), "{path:?} cannot be loaded");
        let sim = Self(library);
        let is_simulated =
            sim.function::<unsafe extern "C" fn(*mut *const c_char) -> c_int>(c"cuda_sim_is_simulated");
        let mut found = core::ptr::null();
        // SAFETY: the pointer is this call's own.
        assert_eq!(unsafe { is_simulated(&mut found) }, MARK);
        // SAFETY: the name is a static string.
        assert_eq!(unsafe { CStr::from_ptr(found) }.to_str(), Ok(variant));
        sim
    }

    /// A function of the simulated driver.
    pub fn function<F: Copy>(&self, name: &CStr) -> F {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
        // SAFETY: the library stays open.
        let function = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!function.is_null(), "the driver lacks {name:?}");
        // SAFETY: the caller names the function's own type.
        unsafe { core::mem::transmute_copy(&function) }
    }

    /// The backend, which has to have found this driver.
    pub fn cuda(&self) -> &'static dyn Backend {
        let cuda = ok(backend);
        assert_eq!(self.calls(c"cuInit"), 1, "the loader found another driver than the simulated one");
        cuda
    }

    pub fn live(&self) -> Counts {
        let mut counts = Counts::default();
        let f: unsafe extern "C" fn(*mut Counts) = self.function(c"cuda_sim_live");
        // SAFETY: the counts are this call's own.
        unsafe { f(&mut counts) };
        counts
    }

    /// How often a function was called.
    pub fn calls(&self, name: &CStr) -> i64 {
        let f: unsafe extern "C" fn(*const c_char) -> i64 = self.function(c"cuda_sim_calls");
        // SAFETY: the name is a string.
        unsafe { f(name.as_ptr()) }
    }

    pub fn clear_log(&self) {
        // SAFETY: it takes nothing.
        unsafe { self.function::<unsafe extern "C" fn()>(c"cuda_sim_log_clear")() };
    }

    /// The functions that were called, with their arguments.
    pub fn log(&self) -> Vec<(String, String)> {
        let n: unsafe extern "C" fn() -> i64 = self.function(c"cuda_sim_log_count");
        let entry: unsafe extern "C" fn(i64, *mut Logged) -> c_int = self.function(c"cuda_sim_log_entry");
        // SAFETY: the entry is this call's own, and its texts are strings.
        let read = |i| unsafe {
            let mut logged: Logged = core::mem::zeroed();
            assert_eq!(entry(i, &mut logged), 0);
            let text = |field: &[c_char]| CStr::from_ptr(field.as_ptr()).to_str().unwrap().to_owned();
            (text(&logged.function), text(&logged.arguments))
        };
        // SAFETY: it takes nothing.
        (0..unsafe { n() }).map(read).collect()
    }

    /// Fails the nth call of a function from now, or of any; once, or with `how` 1 from then on.
    pub fn fail(&self, name: Option<&CStr>, nth: i64, code: c_int, how: c_int) {
        let f: unsafe extern "C" fn(*const c_char, i64, c_int, c_int) -> c_int =
            self.function(c"cuda_sim_fail");
        // SAFETY: the name is a string or NULL.
        assert_eq!(unsafe { f(name.map_or(core::ptr::null(), CStr::as_ptr), nth, code, how) }, 0);
    }

    /// Fails nothing any more; gives how many orders had not come true.
    pub fn fail_nothing(&self) -> c_int {
        // SAFETY: it takes nothing.
        unsafe { self.function::<unsafe extern "C" fn() -> c_int>(c"cuda_sim_fail_nothing")() }
    }

    /// Asserts that nothing was done that a driver forbids.
    pub fn no_faults(&self) {
        let n: unsafe extern "C" fn() -> i64 = self.function(c"cuda_sim_faults");
        let text: unsafe extern "C" fn(i64) -> *const c_char = self.function(c"cuda_sim_fault_text");
        // SAFETY: the text is a string until the next reset.
        let faults = unsafe { (0..n()).map(|i| CStr::from_ptr(text(i)).to_string_lossy().into_owned()) };
        assert_eq!(faults.collect::<Vec<_>>(), Vec::<String>::new());
    }

    pub fn captures_invalidated(&self) -> i64 {
        // SAFETY: it takes nothing.
        unsafe { self.function::<unsafe extern "C" fn() -> i64>(c"cuda_sim_captures_invalidated")() }
    }

    pub fn block(&self, queue: Queue) {
        // SAFETY: the queue is the driver's.
        assert_eq!(unsafe { self.function::<OnQueue>(c"cuda_sim_block")(queue) }, 0);
    }

    pub fn unblock(&self, queue: Queue) {
        // SAFETY: the queue is the driver's.
        assert_eq!(unsafe { self.function::<OnQueue>(c"cuda_sim_unblock")(queue) }, 0);
    }

    /// A kernel that breaks its context.
    pub fn enqueue_error(&self, queue: Queue, code: c_int) {
        let f: unsafe extern "C" fn(Queue, c_int) -> c_int = self.function(c"cuda_sim_enqueue_error");
        // SAFETY: the queue is the driver's.
        assert_eq!(unsafe { f(queue, code) }, 0);
    }

    pub fn wait_idle(&self) {
        let f: unsafe extern "C" fn(c_int) -> c_int = self.function(c"cuda_sim_wait_idle");
        // SAFETY: it takes a number.
        assert_eq!(unsafe { f(10_000) }, 0);
    }

    /// A context of a device, current on this thread.
    pub fn create_context(&self, device: c_int) -> *mut c_void {
        let f: unsafe extern "C" fn(*mut *mut c_void, u32, c_int) -> c_int = self.function(c"cuCtxCreate_v2");
        let mut context = core::ptr::null_mut();
        // SAFETY: the context is this call's own.
        assert_eq!(unsafe { f(&mut context, 0, device) }, 0);
        context
    }

    pub fn current(&self) -> *mut c_void {
        let f: unsafe extern "C" fn(*mut *mut c_void) -> c_int = self.function(c"cuCtxGetCurrent");
        let mut context = core::ptr::null_mut();
        // SAFETY: the context is this call's own.
        assert_eq!(unsafe { f(&mut context) }, 0);
        context
    }

    /// Takes the current context from this thread's stack.
    pub fn pop(&self) {
        let f: unsafe extern "C" fn(*mut *mut c_void) -> c_int = self.function(c"cuCtxPopCurrent_v2");
        let mut popped = core::ptr::null_mut();
        // SAFETY: the context is this call's own.
        assert_eq!(unsafe { f(&mut popped) }, 0);
    }

    /// Puts a context in the place of the current one, or takes that one from the stack.
    pub fn set_current(&self, context: *mut c_void) {
        // SAFETY: the context is one of the driver.
        assert_eq!(unsafe { self.function::<OnQueue>(c"cuCtxSetCurrent")(context) }, 0);
    }

    /// A stream of the current context.
    pub fn create_stream(&self, flags: u32) -> Queue {
        let f: unsafe extern "C" fn(*mut Queue, u32) -> c_int = self.function(c"cuStreamCreate");
        let mut stream = core::ptr::null_mut();
        // SAFETY: the stream is this call's own.
        assert_eq!(unsafe { f(&mut stream, flags) }, 0);
        stream
    }

    /// Begins a capture that forbids all threads what could wait.
    pub fn begin_capture(&self, queue: Queue) {
        let f: unsafe extern "C" fn(Queue, c_int) -> c_int = self.function(c"cuStreamBeginCapture_v2");
        // SAFETY: the queue is the driver's.
        assert_eq!(unsafe { f(queue, 0) }, 0);
    }

    /// Ends a capture; gives what the driver says of it.
    pub fn end_capture(&self, queue: Queue) -> c_int {
        let f: unsafe extern "C" fn(Queue, *mut *mut c_void) -> c_int = self.function(c"cuStreamEndCapture");
        let mut graph = core::ptr::null_mut();
        // SAFETY: the graph is this call's own.
        unsafe { f(queue, &mut graph) }
    }
}

/// A function that takes one handle.
type OnQueue = unsafe extern "C" fn(*mut c_void) -> c_int;

pub fn ok<T>(f: impl FnOnce(&mut Report<'_>) -> Result<T>) -> T {
    capture(f).unwrap_or_else(|record| panic!("{record}"))
}

/// The record of a failure with this status, whose message has these words.
pub fn fails<T>(status: Status, words: &[&str], f: impl FnOnce(&mut Report<'_>) -> Result<T>) -> ErrorRecord {
    let Err(record) = capture(f) else { panic!("expected {status:?}, with {words:?}") };
    assert_eq!(record.status, status as i32, "{record}");
    for word in words {
        assert!(record.message().contains(word), "expected {word:?} in {record}");
    }
    record
}

/// What every test needs and promises in the same way: handles are the simulated driver's.
pub fn allocate(cuda: &dyn Backend, device: Device, size: usize, queue: Queue) -> NonNull<c_void> {
    // SAFETY: the queue is the driver's.
    ok(|report| unsafe { cuda.allocate(device, size, queue, report) })
}

pub fn free(cuda: &dyn Backend, device: Device, data: NonNull<c_void>, size: usize, queue: Queue) {
    // SAFETY: as `Backend::free` wants it, which the simulated driver checks.
    ok(|report| unsafe { cuda.free(device, data, size, queue, report) });
}

pub fn copy(
    cuda: &dyn Backend,
    route: Route,
    device: Device,
    to: *mut c_void,
    from: *const c_void,
    n: usize,
    queue: Queue,
) {
    // SAFETY: as `Backend::copy` wants it, which the simulated driver checks.
    ok(|report| unsafe { cuda.copy(route, device, to, from, n, queue, report) });
}

pub fn drain(cuda: &dyn Backend, device: Device, queue: Queue) {
    // SAFETY: the queue is the driver's.
    ok(|report| unsafe { cuda.drain(device, queue, report) });
}

pub fn record(cuda: &dyn Backend, device: Device, queue: Queue) -> NonNull<c_void> {
    // SAFETY: the queue is the driver's.
    ok(|report| unsafe { cuda.record(device, queue, report) })
}

pub fn is_done(cuda: &dyn Backend, device: Device, event: NonNull<c_void>) -> bool {
    // SAFETY: the event is the driver's.
    ok(|report| unsafe { cuda.is_done(device, event, report) })
}
