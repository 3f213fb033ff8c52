//! A caller's function that is told how far copying has come.

use core::ffi::{c_int, c_void};

/// Is told how many batches, rows and bytes were copied; says no with a number that is not 0.
#[derive(Debug, Clone, Copy)]
pub struct Teller {
    context: *mut c_void,
    tell: unsafe extern "C" fn(ctx: *mut c_void, batches: i64, rows: i64, bytes: i64) -> c_int,
}

// SAFETY: whoever named the function promised that any thread may call it.
unsafe impl Send for Teller {}
// SAFETY: as above.
unsafe impl Sync for Teller {}

impl Teller {
    /// Names the function.
    ///
    /// # Safety
    /// Any thread may call it with this context, one at a time, for as long as the teller is used.
    pub unsafe fn new(
        context: *mut c_void,
        tell: unsafe extern "C" fn(ctx: *mut c_void, batches: i64, rows: i64, bytes: i64) -> c_int,
    ) -> Self {
        Self { context, tell }
    }

    /// Calls the function.
    pub fn tell(&self, batches: i64, rows: i64, bytes: i64) -> c_int {
        // SAFETY: whoever named the function vouched for it.
        unsafe { (self.tell)(self.context, batches, rows, bytes) }
    }
}
