//! Status codes and rules as C sees them; the conversion into them is in `guard`.

use core::ffi::c_char;

use bowstring_core::error::{Status, rule_name, rule_text};

use crate::guard::guard_or;

/// What a call that can fail returns: one of `BOWSTRING_OK` to `BOWSTRING_INTERNAL`.
pub type BowstringStatus = i32;

/// The call did what it says.
pub const BOWSTRING_OK: BowstringStatus = 0;
/// The call itself is wrong: a NULL that may not be, an index out of range, an unknown option.
pub const BOWSTRING_INVALID_ARGUMENT: BowstringStatus = 1;
/// The data breaks a rule of the interfaces; the error names it.
pub const BOWSTRING_INVALID_DATA: BowstringStatus = 2;
/// The data is legal, but the named consumer would refuse, crash on or misread it.
pub const BOWSTRING_NOT_CONFORMING: BowstringStatus = 3;
/// Legal, but not something that this build does.
pub const BOWSTRING_UNSUPPORTED: BowstringStatus = 4;
/// Device work may still be running, and the caller did not say how to wait for it.
pub const BOWSTRING_SYNC_REQUIRED: BowstringStatus = 5;
/// The struct was released or moved out before.
pub const BOWSTRING_RELEASED: BowstringStatus = 6;
/// An allocation failed.
pub const BOWSTRING_OUT_OF_MEMORY: BowstringStatus = 7;
/// The device's driver or the device itself is not there.
pub const BOWSTRING_DEVICE_UNAVAILABLE: BowstringStatus = 8;
/// The device's driver reported an error.
pub const BOWSTRING_DEVICE_ERROR: BowstringStatus = 9;
/// A callback of the caller or of a producer failed.
pub const BOWSTRING_CALLBACK_ERROR: BowstringStatus = 10;
/// The operation was cancelled.
pub const BOWSTRING_CANCELLED: BowstringStatus = 11;
/// A fault of this library.
pub const BOWSTRING_INTERNAL: BowstringStatus = 12;

/// The name of a status without its prefix, such as "INVALID_DATA"; "UNKNOWN" for a number that is none.
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_status_name(status: i32) -> *const c_char {
    guard_or(c"UNKNOWN".as_ptr(), || Status::from_code(status).map_or(c"UNKNOWN", Status::name).as_ptr())
}

/// The short name of a rule, such as "A3"; "" for a number that is none.
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_rule_name(rule: i32) -> *const c_char {
    guard_or(c"".as_ptr(), || rule_name(rule).as_ptr())
}

/// A rule in one sentence; "" for a number that is none.
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_rule_text(rule: i32) -> *const c_char {
    guard_or(c"".as_ptr(), || rule_text(rule).as_ptr())
}
