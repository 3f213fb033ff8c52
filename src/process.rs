//! What concerns the whole process: version, live counts and the callback scope.

use core::ffi::c_char;
use core::mem::{offset_of, size_of};

use bowstring_core::error::ErrorRecord;
use bowstring_core::memory::{CallbackScope, counts, scope};

use crate::error::BowstringStatus;
use crate::guard::{guard, guard_or};
use crate::sized::{self, read_input, write_output};

/// How much of what the library made is alive.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BowstringLiveCounts {
    /// Size of this struct in the caller's build; the only member that is read.
    pub struct_size: usize,
    /// Parsed schemas; a schema and its nodes count as one.
    pub types: usize,
    /// Array handles.
    pub arrays: usize,
    /// Buffer handles' blocks.
    pub buffers: usize,
    /// Streams: handles, and exported ones that are not released.
    pub streams: usize,
    /// Exported tensors.
    pub tensors: usize,
    /// Exported trees of arrays and of schemas.
    pub blocks: usize,
    /// Pieces of device work that hold memory until they are done.
    pub pending: usize,
    /// Callbacks that were skipped because the callback scope was closed; never goes down.
    pub leaked_callbacks: usize,
}

// SAFETY: `repr(C)`, starts with a `usize`, and consists of integers.
unsafe impl sized::Sized for BowstringLiveCounts {
    const NAME: &'static str = "BowstringLiveCounts";
}

// SAFETY: `repr(C)`, starts with a `usize`, and a zero function pointer is None.
unsafe impl sized::Sized for CallbackScope {
    const NAME: &'static str = "BowstringCallbackScope";
    const FIRST: usize = offset_of!(CallbackScope, held);
}

/// The version of the ABI: goes up by one when a struct grows or a function is added, and never down.
pub const BOWSTRING_ABI_VERSION: u32 = 1;

/// Sets what is called around every foreign release, deleter and owner callback, once for the process.
///
/// Set it only on a copy of the library whose users are Python, before the first callback can run; C functions, never
/// ctypes callbacks: `enter` and `leave` are exactly PyGILState_Ensure and PyGILState_Release. With `held`, `pause` and `resume`,
/// which are PyGILState_Check, PyEval_SaveThread and PyEval_RestoreThread, whatever waits for another thread of the library, such
/// as the release of a stream that is ahead, lets the interpreter's lock go meanwhile if the caller holds it.
///
/// Ownership: the scope is borrowed for the call and copied; its functions must stay callable until the process ends.
/// Errors: INVALID_ARGUMENT when scope, enter or leave is NULL, only some of held, pause and resume are, struct_size is too small,
/// or a scope was set before;
/// UNSUPPORTED when the struct uses members that this version does not know. Any thread may call it.
///
/// # Safety
/// `scope` is NULL or leads to as many bytes as its struct_size says; `error` is NULL or leads to a record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_callback_scope_set(
    scope: *const CallbackScope,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        // SAFETY: as the caller promises.
        let mut scope = unsafe { read_input(scope, report) }?;
        if scope.struct_size < size_of::<CallbackScope>() {
            // A build that ends within the later members has none of them.
            (scope.held, scope.pause, scope.resume) = (None, None, None);
        }
        // SAFETY: the caller vouches for the functions.
        unsafe { scope::set(&scope, report) }
    })
}

/// Lets no new foreign callback in, waits for those that are running, and skips all from then on.
///
/// Skipped callbacks are counted in BowstringLiveCounts as leaked. Call it from atexit, before the interpreter ends,
/// with the interpreter's lock released, and never from inside a callback. Without a scope it does nothing.
///
/// Ownership: nothing changes hands; owners whose callbacks are skipped are never let go. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_callback_scope_close() {
    guard_or((), scope::close);
}

/// Counts what the library made and has not freed, for leak hunts.
///
/// Each thing counts until the functions that let go what it owns have returned. A NULL pointer or a struct_size that is too
/// small leaves the struct as it is.
///
/// Ownership: the struct is the caller's; only its struct_size is read. Any thread may call it, and sees some moment
/// between the calls of other threads.
///
/// # Safety
/// `out` is NULL or leads to as many bytes as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_live_counts(out: *mut BowstringLiveCounts) {
    guard(core::ptr::null_mut(), |report| {
        let counts = BowstringLiveCounts {
            struct_size: 0,
            types: counts::TYPES.count(),
            arrays: counts::ARRAYS.count(),
            buffers: counts::BUFFERS.count(),
            streams: counts::STREAMS.count(),
            tensors: counts::TENSORS.count(),
            blocks: counts::BLOCKS.count(),
            pending: counts::PENDING.count(),
            leaked_callbacks: counts::LEAKED_CALLBACKS.count(),
        };
        // SAFETY: as the caller promises.
        unsafe { write_output(out, counts, report) }
    });
}

/// The library's version, such as "0.1.0".
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The version of the ABI that this copy of the library has, see BOWSTRING_ABI_VERSION.
///
/// Ownership: nothing changes hands. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_abi_version() -> u32 {
    BOWSTRING_ABI_VERSION
}
