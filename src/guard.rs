//! The panic guard that every exported body sits behind.

use core::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bowstring_core::error::{ErrorRecord, Report, Result, Status};

/// Runs the body of a function that returns a status, and turns a panic into INTERNAL.
///
/// `error` is the caller's record or NULL.
#[inline(always)]
pub(crate) fn guard(error: *mut ErrorRecord, body: impl FnOnce(&mut Report<'_>) -> Result<()>) -> i32 {
    // The status is made inside, so that no large value crosses the boundary of the guard.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut report = report_into(error);
        match body(&mut report) {
            Ok(()) => Status::Ok as i32,
            Err(failed) => failed.status() as i32,
        }
    }));
    match outcome {
        Ok(status) => status,
        Err(payload) => {
            // A payload's destructor may panic in turn, outside any guard.
            core::mem::forget(payload);
            caught(error)
        }
    }
}

#[cold]
#[inline(never)]
fn caught(error: *mut ErrorRecord) -> i32 {
    let message = format_args!("a fault of the library was caught");
    report_into(error).fail(Status::Internal, message).status() as i32
}

#[inline(always)]
fn report_into<'a>(error: *mut ErrorRecord) -> Report<'a> {
    // A pointer that cannot lead to a record is none.
    let error = if error.is_aligned() { error } else { core::ptr::null_mut() };
    // SAFETY: every function's contract says that `error` is NULL or leads to a record's memory.
    Report::into_memory(unsafe { error.cast::<MaybeUninit<ErrorRecord>>().as_mut() })
}

/// Runs the body of a function that cannot fail, and gives `fallback` after a panic.
pub(crate) fn guard_or<T>(fallback: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(payload) => {
            core::mem::forget(payload);
            fallback
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{guard, guard_or};
    use bowstring_core::error::{ErrorRecord, Status};

    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in the payload's destructor");
        }
    }

    #[test]
    fn a_panic_is_a_status() {
        let mut record = ErrorRecord::empty();
        assert_eq!(guard(&mut record, |_| panic!("inside")), Status::Internal as i32);
        assert_eq!(record.status, Status::Internal as i32);
        assert!(record.message().contains("caught"), "{}", record.message());
        assert_eq!(guard(core::ptr::null_mut(), |_| panic!("inside")), Status::Internal as i32);
        assert_eq!(guard_or(7, || panic!("inside")), 7);
    }

    #[test]
    fn a_payload_that_panics_is_survived() {
        assert_eq!(guard(core::ptr::null_mut(), |_| std::panic::panic_any(Bomb)), Status::Internal as i32);
    }

    #[test]
    fn a_success_leaves_the_record_alone() {
        let mut record = ErrorRecord { row: 42, ..ErrorRecord::empty() };
        assert_eq!(guard(&mut record, |_| Ok(())), Status::Ok as i32);
        assert_eq!(record.row, 42);
    }
}
