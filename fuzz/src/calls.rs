//! Calling the library: what holds for every call, whatever it is about.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;

use bowstring::error::{
    BOWSTRING_CANCELLED, BOWSTRING_INTERNAL, BOWSTRING_OK, BOWSTRING_SEVERITY_ERROR, BOWSTRING_SEVERITY_NOTE,
    bowstring_rule_name,
};
use bowstring::process::{BowstringLiveCounts, bowstring_live_counts};
use bowstring::validate::BowstringValidateOptions;
use bowstring_core::abi::{Device, bytes_of};
use bowstring_core::device::Sync;
use bowstring_core::error::ErrorRecord;

/// What a call came to: its status, and its record where it failed.
#[derive(Clone)]
pub struct Outcome {
    /// The status.
    pub status: i32,
    record: Option<Box<ErrorRecord>>,
}

impl Outcome {
    /// Makes a call, and checks that status and record tell the same.
    pub fn of(call: impl FnOnce(*mut ErrorRecord) -> i32) -> Self {
        const UNTOUCHED: i64 = 0x5eed;
        let mut record = ErrorRecord { batch: UNTOUCHED, ..ErrorRecord::empty() };
        let status = call(&mut record);
        assert_ne!(status, BOWSTRING_INTERNAL, "a fault of the library: {record}");
        if status == BOWSTRING_OK {
            assert_eq!((record.batch, record.status), (UNTOUCHED, 0), "a success leaves the record alone");
            return Self { status, record: None };
        }
        check_record(&record);
        assert_eq!((record.status, record.batch), (status, -1), "{record}");
        Self { status, record: Some(Box::new(record)) }
    }

    /// Whether the call succeeded.
    pub fn is_ok(&self) -> bool {
        self.status == BOWSTRING_OK
    }

    /// What went wrong, as text.
    pub fn text(&self) -> String {
        self.record.as_ref().map_or_else(|| "OK".to_owned(), |record| record.to_string())
    }

    /// Fails unless the call succeeded.
    pub fn must(&self, what: &str) {
        assert!(self.is_ok(), "{what}: {}", self.text());
    }

    /// Fails unless both came to the same, record and all.
    pub fn must_equal(&self, other: &Outcome, what: &str) {
        let told = |outcome: &Outcome| outcome.record.as_deref().map(told);
        assert_eq!(told(self), told(other), "{what}");
    }
}

type Told = (i32, i32, i64, i64, String, String);

fn told(record: &ErrorRecord) -> Told {
    let ErrorRecord { status, rule, row, native_code, .. } = *record;
    (status, rule, row, native_code, record.path().to_owned(), record.message().to_owned())
}

/// Checks what every record that is written promises.
fn check_record(record: &ErrorRecord) {
    // Text ends with a NUL, and is UTF-8 up to it.
    for field in [&record.path[..], &record.message[..]] {
        let text = CStr::from_bytes_until_nul(bytes_of(field)).map(CStr::to_str);
        assert!(text.is_ok_and(|text| text.is_ok()), "text is UTF-8: {field:?}");
    }
    assert!(!record.message().is_empty() && record.row >= -1);
    // SAFETY: the name of any rule is a string.
    let name = unsafe { CStr::from_ptr(bowstring_rule_name(record.rule)) };
    assert!(record.rule == 0 || !name.is_empty(), "a rule without a name: {}", record.rule);
}

/// What a listener heard of a check.
#[derive(Default)]
struct Heard {
    first_error: Option<Told>,
    findings: u32,
    stop_after: u32,
}

unsafe extern "C" fn on_finding(ctx: *mut c_void, severity: c_int, finding: *const ErrorRecord) -> c_int {
    // SAFETY: the library gives back the context it was given, and a record for the time of the call.
    let (heard, finding) = unsafe { (&mut *ctx.cast::<Heard>(), &*finding) };
    check_record(finding);
    assert!((BOWSTRING_SEVERITY_ERROR..=BOWSTRING_SEVERITY_NOTE).contains(&severity));
    assert_eq!(severity == BOWSTRING_SEVERITY_ERROR, finding.status != BOWSTRING_OK, "{finding}");
    if severity == BOWSTRING_SEVERITY_ERROR && heard.first_error.is_none() {
        heard.first_error = Some(told(finding));
    }
    heard.findings += 1;
    c_int::from(heard.findings == heard.stop_after)
}

/// Options that ask for nothing.
pub fn options(level: i32, profile: i32, threads: u32) -> BowstringValidateOptions {
    BowstringValidateOptions {
        struct_size: size_of::<BowstringValidateOptions>(),
        level,
        profile,
        assume_device: Device { r#type: 0, id: 0 },
        as_table: 0,
        threads,
        max_findings: 0,
        staging_bytes: 0,
        sync: Sync::NONE,
        ctx: null_mut(),
        on_finding: None,
    }
}

/// Runs a check as the options say, and again with a listener, with one that hears little, and with one that stops it: the
/// verdict is always the same, and the first error is the first finding that is one.
pub fn check(
    options: BowstringValidateOptions,
    run: impl Fn(*const BowstringValidateOptions, *mut ErrorRecord) -> i32,
) -> Outcome {
    let plain = Outcome::of(|error| run(&options, error));
    let (all, heard) = listen(options, options.max_findings, 0, &run);
    all.must_equal(&plain, "with a listener the outcome is the same");
    assert_eq!(heard.first_error, plain.record.as_deref().map(told), "the first error is the first finding");
    if heard.findings > 0 {
        let (few, heard_few) = listen(options, 1, 0, &run);
        few.must_equal(&plain, "with few findings told the outcome is the same");
        assert_eq!(heard_few.findings, 1);
        let stop_after = heard.findings.div_ceil(2);
        let (stopped, heard) = listen(options, options.max_findings, stop_after, &run);
        assert_eq!(heard.findings, stop_after, "nothing is told after the listener said stop");
        match &heard.first_error {
            Some(_) => stopped.must_equal(&plain, "an error was heard before the stop"),
            None => assert_eq!(stopped.status, BOWSTRING_CANCELLED),
        }
    }
    plain
}

fn listen(
    options: BowstringValidateOptions,
    max_findings: u32,
    stop_after: u32,
    run: &impl Fn(*const BowstringValidateOptions, *mut ErrorRecord) -> i32,
) -> (Outcome, Heard) {
    let mut heard = Heard { stop_after, ..Heard::default() };
    let ctx = (&raw mut heard).cast();
    let options = BowstringValidateOptions { max_findings, ctx, on_finding: Some(on_finding), ..options };
    (Outcome::of(|error| run(&options, error)), heard)
}

/// The whole text that a capacity call writes, asked for in every way.
pub fn text(call: impl Fn(*mut c_char, usize, *mut usize, *mut ErrorRecord) -> i32) -> Vec<u8> {
    let mut needed = 0;
    Outcome::of(|error| call(null_mut(), 0, &mut needed, error)).must("asking for the size of a text");
    let mut whole = vec![0x55_u8; needed];
    let mut again = 0;
    Outcome::of(|error| call(whole.as_mut_ptr().cast(), needed, &mut again, error)).must("asking for a text");
    assert_eq!((needed, whole.pop()), (again, Some(0)), "the text is as long as it was said to be");
    assert!(!whole.contains(&0) && std::str::from_utf8(&whole).is_ok(), "text is UTF-8");
    let room = needed / 2;
    let mut part = vec![0x55_u8; room];
    Outcome::of(|error| call(part.as_mut_ptr().cast(), room, &mut again, error))
        .must("asking for part of a text");
    assert_eq!(again, needed);
    if let Some(end) = part.iter().position(|byte| *byte == 0) {
        assert!(whole.starts_with(&part[..end]) && std::str::from_utf8(&part[..end]).is_ok());
        assert!(end + 4 >= room, "no more is cut off than a character");
    } else {
        assert_eq!(room, 0, "a text that is cut off ends with a NUL");
    }
    whole
}

/// How much of the library's is alive.
#[derive(Debug, PartialEq, Eq)]
pub struct Alive([usize; 8]);

impl Alive {
    /// Now.
    pub fn now() -> Self {
        // SAFETY: all zeroes are a value of the struct.
        let mut counts: BowstringLiveCounts = unsafe { core::mem::zeroed() };
        counts.struct_size = size_of::<BowstringLiveCounts>();
        // SAFETY: the struct is there, with its size.
        unsafe { bowstring_live_counts(&mut counts) };
        let BowstringLiveCounts { types, arrays, buffers, streams, tensors, blocks, .. } = counts;
        Self([types, arrays, buffers, streams, tensors, blocks, counts.pending, counts.leaked_callbacks])
    }
}
