//! The test allocator: counts what the armed thread allocates, and fails its nth allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

pub struct TestAllocator;

thread_local! {
    /// Bytes that this thread allocated and not yet freed. The test's own harness allocates on another whenever it likes.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static FAIL_AT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all memory is the system's; a refusal is a NULL, as the trait allows.
unsafe impl GlobalAlloc for TestAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses() {
            return core::ptr::null_mut();
        }
        LIVE.set(LIVE.get() + layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn refuses() -> bool {
    if !ARMED.get() {
        return false;
    }
    CALLS.set(CALLS.get() + 1);
    CALLS.get() == FAIL_AT.get()
}

/// Runs `call` with this thread armed: its `fail_at`th allocation fails, none when that is 0. Returns how many it made.
pub fn armed<T>(fail_at: usize, call: impl FnOnce() -> T) -> (T, usize) {
    CALLS.set(0);
    FAIL_AT.set(fail_at);
    ARMED.set(true);
    let result = call();
    ARMED.set(false);
    (result, CALLS.get())
}

/// Runs `call` as if this thread were not armed.
#[allow(dead_code, reason = "not every test calls back")]
pub fn unarmed<T>(call: impl FnOnce() -> T) -> T {
    let was_armed = ARMED.replace(false);
    let result = call();
    ARMED.set(was_armed);
    result
}

/// Bytes that this thread allocated and not yet freed.
pub fn live_bytes() -> isize {
    LIVE.get()
}
