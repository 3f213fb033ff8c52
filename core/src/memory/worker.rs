//! A thread of the library's own, and what it shares with those who wait for its work.

use core::ffi::{c_int, c_void};
use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering, fence};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Own, Space, scope};
use crate::error::{Failed, Report, Result, Status};

/// What a thread does.
pub trait Job: Send + Sync {
    /// Works until there is nothing left to do, or until it is stopped.
    fn run(&self);

    /// Lets `run` come to its end soon. Any thread may call it, any number of times.
    fn stop(&self);
}

/// A counted handle on a job and the thread that does it. With the last one the job is stopped, the thread is waited for, and
/// then both are gone.
pub struct Worker<J: Job>(NonNull<Block<J>>);

struct Block<J> {
    count: AtomicUsize,
    thread: libc::pthread_t,
    job: J,
}

// SAFETY: the count is atomic, the thread is only read once it runs, and the job may be used by any thread.
unsafe impl<J: Job> Send for Worker<J> {}
// SAFETY: as above.
unsafe impl<J: Job> Sync for Worker<J> {}

impl<J: Job> Worker<J> {
    /// Starts a thread, which takes no signals: these are the program's own threads' business.
    ///
    /// The system starts it, and not the standard library, whose allocations cannot fail.
    pub fn start(job: J, report: &mut Report<'_>) -> Result<Self> {
        let space = Space::<Block<J>>::reserve(report)?;
        // SAFETY: zeroes are a number, which nobody reads before it is written.
        let thread = unsafe { core::mem::zeroed() };
        let block = space.fill(Block { count: AtomicUsize::new(1), thread, job }).into_raw();
        let code = without_signals(|| {
            // SAFETY: the block stays until the thread was waited for. The thread looks at nothing in it but the job, which
            // is why its number may be written meanwhile.
            unsafe {
                let thread = &raw mut (*block.as_ptr()).thread;
                libc::pthread_create(thread, core::ptr::null(), run::<J>, block.as_ptr().cast())
            }
        });
        if code == 0 {
            return Ok(Self(block));
        }
        // SAFETY: no thread was started, so the block is this function's alone.
        drop(unsafe { Own::from_raw(block) });
        Err(no_thread(code, report))
    }
}

/// Starts a thread that nobody waits for, as [`Worker::start`] does.
///
/// # Safety
/// `work` may be called with `with` on another thread, and does not unwind.
pub unsafe fn start_alone(
    work: extern "C" fn(*mut c_void) -> *mut c_void,
    with: NonNull<c_void>,
    report: &mut Report<'_>,
) -> Result<()> {
    let code = without_signals(|| {
        // SAFETY: the number is written before it is read, and a thread is let go once; the rest is as the caller promises.
        unsafe {
            let mut thread = core::mem::zeroed();
            let code = libc::pthread_create(&raw mut thread, core::ptr::null(), work, with.as_ptr());
            if code == 0 {
                libc::pthread_detach(thread);
            }
            code
        }
    });
    if code == 0 { Ok(()) } else { Err(no_thread(code, report)) }
}

#[cold]
fn no_thread(code: c_int, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected a new thread, found error {code} of the system");
    report.fail_with_code(Status::OutOfMemory, i64::from(code), message)
}

/// Calls `start` while this thread, and so those that it starts, takes no signals.
fn without_signals(start: impl FnOnce() -> c_int) -> c_int {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both are written before they are read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        let blocked = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let code = start();
        if blocked == 0 {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut());
        }
        code
    }
}

extern "C" fn run<J: Job>(block: *mut c_void) -> *mut c_void {
    let block: *mut Block<J> = block.cast();
    // SAFETY: whoever started the thread keeps the block until the thread has ended.
    let job = unsafe { &(*block).job };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| job.run())) {
        // A payload's destructor may panic in turn.
        core::mem::forget(payload);
    }
    core::ptr::null_mut()
}

impl<J: Job> Clone for Worker<J> {
    fn clone(&self) -> Self {
        // SAFETY: a handle keeps its block.
        unsafe { self.0.as_ref() }.count.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl<J: Job> Deref for Worker<J> {
    type Target = J;

    fn deref(&self) -> &J {
        // SAFETY: a handle keeps its block.
        unsafe { &(*self.0.as_ptr()).job }
    }
}

impl<J: Job> Drop for Worker<J> {
    fn drop(&mut self) {
        // SAFETY: a handle keeps its block; with the last one it is this function's and the thread's.
        unsafe {
            if self.0.as_ref().count.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
            self.0.as_ref().job.stop();
            let thread = self.0.as_ref().thread;
            if scope::unlocked(|| libc::pthread_join(thread, core::ptr::null_mut())) == 0 {
                drop(Own::from_raw(self.0));
            } else {
                // The thread itself lets the last handle go, and is still using the job: it is never freed.
                libc::pthread_detach(thread);
            }
        }
    }
}

impl<J: Job> fmt::Debug for Worker<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Worker").field(&self.0).finish()
    }
}
