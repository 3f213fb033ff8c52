//! What is entered around every foreign release, deleter and owner callback.
//!
//! A Python process sets it to take the interpreter lock, and closes it before the interpreter ends: from then on
//! callbacks are skipped and counted, because running them would crash.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::counts;
use crate::error::{Report, Result, Status};

/// Functions to call around every foreign callback.
///
/// They must be C functions that need no lock: `enter` and `leave` are `PyGILState_Ensure` and `PyGILState_Release`; `held`, `pause`
/// and `resume` are `PyGILState_Check`, `PyEval_SaveThread` and `PyEval_RestoreThread`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CallbackScope {
    /// Size of this struct in the caller's build.
    pub struct_size: usize,
    /// Says with 0 that callbacks may not run any more; NULL: always alive. Called from any thread.
    pub alive: Option<unsafe extern "C" fn() -> c_int>,
    /// Called before a callback; its result goes to `leave`. Called from any thread.
    pub enter: Option<unsafe extern "C" fn() -> c_int>,
    /// Called after a callback, on the same thread.
    pub leave: Option<unsafe extern "C" fn(c_int)>,
    /// Says whether this thread holds what `enter` would take. It and the next two are all there or all NULL.
    pub held: Option<unsafe extern "C" fn() -> c_int>,
    /// Called where it is held and this thread has to wait for another one, which may need it; its result goes to `resume`.
    pub pause: Option<unsafe extern "C" fn() -> *mut c_void>,
    /// Called when the wait is over, on the same thread.
    pub resume: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// No scope was set: callbacks run as they are.
const OPEN: usize = 0;
/// A scope is being set.
const SETTING: usize = 1;
/// The scope is entered around each callback.
const SCOPED: usize = 2;
/// Callbacks are skipped.
const CLOSED: usize = 3;

static STATE: AtomicUsize = AtomicUsize::new(OPEN);
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// How many forks this process comes from since the scope was set.
static FORKS: AtomicUsize = AtomicUsize::new(0);
static ALIVE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static ENTER: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static LEAVE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static HELD: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static PAUSE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static RESUME: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the process's scope, once.
///
/// # Safety
/// The scope's functions may be called from any thread until the process ends.
pub unsafe fn set(scope: &CallbackScope, report: &mut Report<'_>) -> Result<()> {
    let (Some(enter), Some(leave)) = (scope.enter, scope.leave) else {
        return Err(report.fail(
            Status::InvalidArgument,
            format_args!("expected a scope with both enter and leave, found NULL for one of them"),
        ));
    };
    let waits = match (scope.held, scope.pause, scope.resume) {
        (Some(held), Some(pause), Some(resume)) => Some((held, pause, resume)),
        (None, None, None) => None,
        _ => {
            let message = format_args!("expected held, pause and resume together, found some of them NULL");
            return Err(report.fail(Status::InvalidArgument, message));
        }
    };
    if STATE.compare_exchange(OPEN, SETTING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return Err(report.fail(
            Status::InvalidArgument,
            format_args!("expected no callback scope yet, found one that was set before"),
        ));
    }
    ALIVE.store(scope.alive.map_or(core::ptr::null_mut(), |f| f as *mut c_void), Ordering::Relaxed);
    ENTER.store(enter as *mut c_void, Ordering::Relaxed);
    LEAVE.store(leave as *mut c_void, Ordering::Relaxed);
    if let Some((held, pause, resume)) = waits {
        HELD.store(held as *mut c_void, Ordering::Relaxed);
        PAUSE.store(pause as *mut c_void, Ordering::Relaxed);
        RESUME.store(resume as *mut c_void, Ordering::Relaxed);
    }
    watch_forks();
    STATE.store(SCOPED, Ordering::Release);
    Ok(())
}

/// Lets no new callback in, and waits for those that are running. Without a scope it does nothing.
pub fn close() {
    while STATE.load(Ordering::Acquire) == SETTING {
        core::hint::spin_loop();
    }
    let _ = STATE.compare_exchange(SCOPED, CLOSED, Ordering::SeqCst, Ordering::SeqCst);
    while INSIDE.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
}

/// Calls `wait`, which blocks until another thread has come this far, with what the scope holds let go meanwhile: the other
/// thread may need it.
pub fn unlocked<R>(wait: impl FnOnce() -> R) -> R {
    if matches!(STATE.load(Ordering::Acquire), OPEN | SETTING) {
        return wait();
    }
    let _paused = Paused::here();
    wait()
}

/// What the scope holds is let go until this is dropped.
struct Paused(Option<(unsafe extern "C" fn(*mut c_void), *mut c_void)>);

impl Paused {
    #[cold]
    fn here() -> Self {
        let (held, pause) = (HELD.load(Ordering::Relaxed), PAUSE.load(Ordering::Relaxed));
        let resume = RESUME.load(Ordering::Relaxed);
        // SAFETY: the pointers were stored from functions of these types, or are NULL, which is `None`.
        let (held, pause, resume) = unsafe {
            (
                core::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn() -> c_int>>(held),
                core::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn() -> *mut c_void>>(pause),
                core::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(*mut c_void)>>(resume),
            )
        };
        let (Some(held), Some(pause), Some(resume)) = (held, pause, resume) else { return Self(None) };
        // SAFETY: whoever set the scope promised functions that any thread may call, and `pause` where `held` says so.
        let token = unsafe { (is_alive() && held() != 0).then(|| pause()) };
        Self(token.map(|token| (resume, token)))
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        if let Some((resume, token)) = self.0.take() {
            // SAFETY: the token is that of `pause`, which this thread called.
            unsafe { resume(token) };
        }
    }
}

/// Runs a foreign callback inside the scope, or skips and counts it when the scope is closed. Says whether it ran.
pub fn run(callback: impl FnOnce()) -> bool {
    if STATE.load(Ordering::Acquire) == OPEN {
        callback();
        return true;
    }
    run_scoped(callback)
}

#[cold]
fn run_scoped(callback: impl FnOnce()) -> bool {
    while STATE.load(Ordering::Acquire) == SETTING {
        core::hint::spin_loop();
    }
    // Counted before the state is read again: `close` changes the state first and then waits for the count, so one of
    // the two sees the other.
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let forks = FORKS.load(Ordering::SeqCst);
    let runs = STATE.load(Ordering::SeqCst) != CLOSED && is_alive();
    if runs {
        let token = enter();
        callback();
        leave(token);
    } else {
        counts::LEAKED_CALLBACKS.add();
    }
    // A callback that forked comes back in the child too, where nobody is counted who went in before.
    if FORKS.load(Ordering::SeqCst) == forks {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
    runs
}

/// In the child of a fork there is only the thread that forked: what others were inside of is never left there, and `close`
/// would wait for it for ever.
#[cfg(target_os = "linux")]
unsafe extern "C" fn forked_child() {
    FORKS.fetch_add(1, Ordering::SeqCst);
    INSIDE.store(0, Ordering::SeqCst);
}

#[cfg(target_os = "linux")]
fn watch_forks() {
    // SAFETY: the handler only writes atomics, and stays in memory as the
    // library does. Where it finds no room, a child that forks out of a callback may wait in `close`, and nothing else is lost.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(forked_child)) };
}

#[cfg(not(target_os = "linux"))]
fn watch_forks() {}

fn is_alive() -> bool {
    let alive = ALIVE.load(Ordering::Relaxed);
    // SAFETY: the pointer was stored from a function of this type, or is NULL, which is `None`.
    let alive: Option<unsafe extern "C" fn() -> c_int> = unsafe { core::mem::transmute(alive) };
    // SAFETY: whoever set the scope promised functions that any thread may call.
    alive.is_none_or(|alive| unsafe { alive() } != 0)
}

fn enter() -> c_int {
    let enter = ENTER.load(Ordering::Relaxed);
    // SAFETY: the pointer was stored from a function of this type, or is NULL, which is `None`.
    let enter: Option<unsafe extern "C" fn() -> c_int> = unsafe { core::mem::transmute(enter) };
    // SAFETY: whoever set the scope promised functions that any thread may call.
    enter.map_or(0, |enter| unsafe { enter() })
}

fn leave(token: c_int) {
    let leave = LEAVE.load(Ordering::Relaxed);
    // SAFETY: the pointer was stored from a function of this type, or is NULL, which is `None`.
    let leave: Option<unsafe extern "C" fn(c_int)> = unsafe { core::mem::transmute(leave) };
    if let Some(leave) = leave {
        // SAFETY: whoever set the scope promised functions that any thread may call.
        unsafe { leave(token) };
    }
}
