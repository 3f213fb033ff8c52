//! What the validator says of arrays, and what its answers have to do with each other.

use bowstring::array::BowstringArray;
use bowstring::error::{BOWSTRING_INVALID_DATA, BOWSTRING_NOT_CONFORMING, BOWSTRING_OK, BOWSTRING_RELEASED};
use bowstring::validate::{
    BOWSTRING_LEVEL_BOUNDS, BOWSTRING_LEVEL_FULL, BOWSTRING_LEVEL_STRUCTURE, BowstringValidateOptions,
    bowstring_array_validate, bowstring_host_array_validate,
};
use bowstring_core::abi::{ArrowArray, Device};
use bowstring_core::error::ErrorRecord;

use super::calls::{Outcome, check, options};
use super::types::Type;

/// What the two levels that read buffers say.
pub struct Verdict {
    /// With a fixed number of reads a node.
    pub bounds: Outcome,
    /// All.
    pub full: Outcome,
}

/// Checks a raw array's structure; no buffer is read.
pub fn judge_structure(array: *const ArrowArray, ty: &Type) -> Outcome {
    // SAFETY: the array is as the interface says, faults apart that it tells of itself.
    at_level(BOWSTRING_LEVEL_STRUCTURE, 0, |options, error| unsafe {
        bowstring_host_array_validate(array, ty.at(), options, error)
    })
}

/// Checks a raw array at all levels, as the specification has it and as a consumer has it. A listener hears of the first
/// `most` findings, or of all for 0.
pub fn judge(array: *const ArrowArray, ty: &Type, consumer: u8, most: u32) -> Verdict {
    // SAFETY: as above, and its buffers are as long as it says.
    let run = |options: *const BowstringValidateOptions, error: *mut ErrorRecord| unsafe {
        bowstring_host_array_validate(array, ty.at(), options, error)
    };
    let verdict = all_levels(most, &run);
    let structure = at_level(BOWSTRING_LEVEL_STRUCTURE, most, run);
    assert!(
        structure.is_ok() || !verdict.bounds.is_ok(),
        "BOUNDS holds and STRUCTURE does not: {}",
        structure.text()
    );
    for_consumer(consumer, most, &verdict.full, &run);
    verdict
}

/// Checks a raw array at the deepest level only.
pub fn is_valid_raw(array: *const ArrowArray, ty: &Type) -> Outcome {
    // SAFETY: as above.
    Outcome::of(|error| unsafe { bowstring_host_array_validate(array, ty.at(), core::ptr::null(), error) })
}

/// As [`judge`], of an array of ours.
pub fn judge_imported(array: *const BowstringArray, most: u32) -> Verdict {
    // SAFETY: the handle is live, and its buffers are as long as their producer said.
    all_levels(most, &|options, error| unsafe { bowstring_array_validate(array, options, error) })
}

/// Checks an array of ours at the deepest level only.
pub fn is_valid(array: *const BowstringArray) -> Outcome {
    // SAFETY: as above.
    Outcome::of(|error| unsafe { bowstring_array_validate(array, core::ptr::null(), error) })
}

fn all_levels(most: u32, run: &impl Fn(*const BowstringValidateOptions, *mut ErrorRecord) -> i32) -> Verdict {
    let bounds = at_level(BOWSTRING_LEVEL_BOUNDS, most, run);
    let full = at_level(BOWSTRING_LEVEL_FULL, most, run);
    assert!(bounds.is_ok() || !full.is_ok(), "FULL holds and BOUNDS does not: {}", bounds.text());
    Outcome::of(|error| run(core::ptr::null(), error)).must_equal(&full, "without options all is checked");
    Verdict { bounds, full }
}

fn at_level(
    level: i32,
    max_findings: u32,
    run: impl Fn(*const BowstringValidateOptions, *mut ErrorRecord) -> i32,
) -> Outcome {
    let alone = check(BowstringValidateOptions { max_findings, ..options(level, 0, 1) }, &run);
    let together = Outcome::of(|error| run(&options(level, 0, 3), error));
    together.must_equal(&alone, "any number of threads finds the same");
    let known = [BOWSTRING_OK, BOWSTRING_INVALID_DATA, BOWSTRING_RELEASED];
    assert!(known.contains(&alone.status), "{}", alone.text());
    alone
}

fn for_consumer(
    consumer: u8,
    max_findings: u32,
    full: &Outcome,
    run: &impl Fn(*const BowstringValidateOptions, *mut ErrorRecord) -> i32,
) {
    let assume_device = Device { r#type: [0, 2, 3, 13][usize::from(consumer >> 2 & 3)], id: 0 };
    let as_table = i32::from(consumer & 0x10);
    let profile = 1 + i32::from(consumer % 3);
    let asked = BowstringValidateOptions { assume_device, as_table, max_findings, ..options(0, profile, 1) };
    let told = check(asked, run);
    assert!(full.is_ok() || !told.is_ok(), "a consumer's reading leaves out no rule");
    let known = [BOWSTRING_OK, BOWSTRING_INVALID_DATA, BOWSTRING_NOT_CONFORMING, BOWSTRING_RELEASED];
    assert!(known.contains(&told.status), "{}", told.text());
    if full.is_ok() {
        assert_ne!(told.status, BOWSTRING_INVALID_DATA, "what is valid is valid for anyone: {}", told.text());
    }
}
