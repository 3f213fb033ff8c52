//! Status codes and rules as C sees them; the conversion into them is in `guard`.

use core::ffi::c_char;

use bowstring_core::error::{ALL_RULES, Severity, Status, rule_name, rule_severity, rule_source, rule_text};

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

/// A finding that breaks a rule, or that the named consumer would refuse, crash on or misread.
pub const BOWSTRING_SEVERITY_ERROR: i32 = 0;
/// A finding that is legal, but that a recommendation speaks against or that makes the named consumer copy.
pub const BOWSTRING_SEVERITY_WARNING: i32 = 1;
/// A finding that is worth knowing.
pub const BOWSTRING_SEVERITY_NOTE: i32 = 2;

const _: () = {
    assert!(BOWSTRING_SEVERITY_ERROR == Severity::Error as i32);
    assert!(BOWSTRING_SEVERITY_WARNING == Severity::Warning as i32);
    assert!(BOWSTRING_SEVERITY_NOTE == Severity::Note as i32);
};

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

/// Where a rule is written down, such as "Arrow C Data interface, ArrowArray.buffers"; "" for a number that is none.
///
/// Ownership: the string is the library's and lives as long as the process. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_rule_source(rule: i32) -> *const c_char {
    guard_or(c"".as_ptr(), || rule_source(rule).as_ptr())
}

/// How grave it is to break a rule: `BOWSTRING_SEVERITY_ERROR`, `_WARNING` or `_NOTE`; -1 for a number that is no rule.
///
/// Ownership: nothing changes hands. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_rule_severity(rule: i32) -> i32 {
    guard_or(-1, || rule_severity(rule).map_or(-1, |severity| severity as i32))
}

/// The number of the rule after `rule` in the table, 0 after the last; `rule` 0 gives the first.
///
/// Ownership: nothing changes hands. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn bowstring_rule_next(rule: i32) -> i32 {
    guard_or(0, || next_rule(rule))
}

fn next_rule(rule: i32) -> i32 {
    let mut rules = ALL_RULES.iter().map(|rule| *rule as i32);
    if rule == 0 {
        return rules.next().unwrap_or(0);
    }
    rules.find(|found| *found == rule).and_then(|_| rules.next()).unwrap_or(0)
}
