//! The validator: schemas, arrays and streams checked by every rule, and for named consumers.

use core::ffi::{c_int, c_void};
use core::mem::ManuallyDrop;

use bowstring_core::abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema, DEVICE_CPU,
    DLManagedTensor, DLManagedTensorVersioned, Device, SchemaView,
};
use bowstring_core::device::{Sync, normalise};
use bowstring_core::error::{ErrorRecord, Findings, Report, Result, Severity, Status};
use bowstring_core::tensor;
use bowstring_core::tree::Survey;
use bowstring_core::validate::{self, Level, Options, Profile, Repairs};

use crate::array::{BowstringArray, handle_of, reset_out, sync_or_none};
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{array_of, check, required, type_of};
use crate::schema::BowstringType;
use crate::sized::{self, read_input};

/// For validation: everything, each value that a rule is about and exact null counts.
pub const BOWSTRING_LEVEL_FULL: i32 = 0;
/// For validation: the structs, and a fixed number of reads for each node and variadic buffer.
pub const BOWSTRING_LEVEL_BOUNDS: i32 = 1;
/// For validation: the structs alone; no buffer is read.
pub const BOWSTRING_LEVEL_STRUCTURE: i32 = 2;

/// The specification's reading of the interfaces.
pub const BOWSTRING_PROFILE_SPEC: i32 = 0;
/// What libcudf makes of device memory as views, by cudf::from_arrow_device and cudf::from_arrow_device_column.
pub const BOWSTRING_PROFILE_CUDF_DEVICE: i32 = 1;
/// What libcudf makes of host memory that it copies, by cudf::from_arrow_host and cudf::from_arrow_host_column.
pub const BOWSTRING_PROFILE_CUDF_HOST: i32 = 2;
/// What libcudf makes of arrays that it takes, by cudf::interop::arrow_column and arrow_table.
pub const BOWSTRING_PROFILE_CUDF_OWNING: i32 = 3;

/// For bowstring_array_conform: buffers in CPU memory may be copied.
pub const BOWSTRING_CONFORM_ALLOW_COPY: u32 = 1;
/// For bowstring_array_conform: the consumer takes the root struct for a table, which has no nulls and no offset of its own.
pub const BOWSTRING_CONFORM_AS_TABLE: u32 = 2;
/// For bowstring_array_conform: views become offsets, which is a copy.
pub const BOWSTRING_CONFORM_TO_OFFSETS: u32 = 4;
/// For bowstring_array_conform: offsets become views, which is a copy.
pub const BOWSTRING_CONFORM_TO_VIEWS: u32 = 8;

/// How to validate. NULL, or all but struct_size zero: everything, by the specification, on the calling thread.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BowstringValidateOptions {
    /// Size of this struct in the caller's build.
    pub struct_size: usize,
    /// How deep, a `BOWSTRING_LEVEL_*`.
    pub level: i32,
    /// Whose reading counts, a `BOWSTRING_PROFILE_*`.
    pub profile: i32,
    /// The device that the profile's consumer would find the array on, as if it were already there; all zero means where
    /// it is.
    pub assume_device: Device,
    /// Not 0 when the profile's consumer takes the root struct for a table, else it takes it for one column.
    pub as_table: i32,
    /// The most threads that share the work of a large node; 0 and 1 are the calling thread alone.
    pub threads: u32,
    /// The most findings that on_finding is told, 0 for no limit. What comes after them can still be the first error.
    pub max_findings: u32,
    /// The most bytes of CPU memory that hold copies of device memory at once, 0 for the library's choice of 64 MiB. Larger
    /// nodes are checked in blocks of rows. One row is always copied at once, however large it is; the sizes of a node's
    /// variadic buffers have to fit, else the check says UNSUPPORTED and how much they need.
    pub staging_bytes: i64,
    /// What to do about unfinished device work.
    pub sync: Sync,
    /// What on_finding is called with.
    pub ctx: *mut c_void,
    /// Told of each finding with a `BOWSTRING_SEVERITY_*`, in the order of the nodes; NULL to stop at the first error.
    /// The record is only there during the call; its status is OK where the finding is no error. Not 0 stops.
    pub on_finding:
        Option<unsafe extern "C" fn(ctx: *mut c_void, severity: i32, finding: *const ErrorRecord) -> c_int>,
}

// SAFETY: the struct is `repr(C)`, starts with its size, and all zeroes are a value of it.
unsafe impl sized::Sized for BowstringValidateOptions {
    const NAME: &'static str = "BowstringValidateOptions";
}

/// Checks a raw schema by every rule about schemas; with a profile, whether its consumer takes the type.
///
/// Ownership: nothing changes hands; the schema is borrowed for the call.
/// Errors: the first finding that is an error: INVALID_DATA with rule and path, or NOT_CONFORMING for the profile;
/// RELEASED for a released schema; CANCELLED when on_finding stopped before there was one; INVALID_ARGUMENT for NULL
/// arguments or unknown options; UNSUPPORTED for options that this version does not know; OUT_OF_MEMORY. Any thread may
/// call it; on_finding runs on the calling thread and must not unwind.
/// Source: docs/rules.md, S1 to S7 and F1 to F5.
///
/// # Safety
/// `schema` is NULL or leads to what the interface says; `options` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_schema_validate(
    schema: *const ArrowSchema,
    options: *const BowstringValidateOptions,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        let schema = required(schema, "a schema", report)?;
        let view = SchemaView::new(schema);
        with_options(options, report, |options, findings| validate::schema(view, options, findings))
    })
}

/// Checks a raw array that is not imported, by every rule.
///
/// The struct is looked at as it is, faults and all, whatever its release. No buffer is read at level STRUCTURE. The other levels
/// copy what they look at where it is not the CPU's, through memory of staging_bytes, after the array's event as `sync`
/// says how to wait for it, and block until it is there; with QUEUE the copies run on that queue. Where that cannot be done,
/// the structural check is made whole all the same.
///
/// Ownership: nothing changes hands; the array is borrowed for the call.
/// Errors: as bowstring_schema_validate, with the row. Only when nothing else is wrong and the level asks for what buffers
/// hold: SYNC_REQUIRED for a pending event with mode NONE; UNSUPPORTED for a device without a backend, or for staging_bytes
/// that are too few; DEVICE_UNAVAILABLE without a driver or device; DEVICE_ERROR with the driver's number as native_code.
/// Any thread may call it; on_finding runs on the calling thread and must not unwind. One allocation for CPU memory.
/// Source: docs/rules.md, A1 to A8, B1 to B8, D2 to D9 and M2.
///
/// # Safety
/// `array` is NULL or leads to what the interface says; CPU buffers are as long as the struct says; `type` is NULL or a live
/// handle; `options` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_array_validate(
    array: *const ArrowDeviceArray,
    r#type: *const BowstringType,
    options: *const BowstringValidateOptions,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        let array = required(array, "an array", report)?;
        validate_raw(array, r#type, options, report)
    })
}

/// Checks a raw array in CPU memory that is not imported, by every rule.
///
/// Ownership: nothing changes hands; the array is borrowed for the call.
/// Errors: as bowstring_device_array_validate. Any thread may call it; on_finding runs on the calling thread and must not
/// unwind. One allocation.
/// Source: docs/rules.md, A1 to A8, B1 to B8 and M2.
///
/// # Safety
/// As bowstring_device_array_validate has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_array_validate(
    array: *const ArrowArray,
    r#type: *const BowstringType,
    options: *const BowstringValidateOptions,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(array, "an array", report)?;
        // A copy that is looked at and forgotten; the release in it is never called.
        let device = ManuallyDrop::new(ArrowDeviceArray {
            array: array.read(),
            device_id: -1,
            device_type: DEVICE_CPU,
            sync_event: core::ptr::null_mut(),
            reserved: [0; 3],
        });
        validate_raw(&device, r#type, options, report)
    })
}

/// Checks an array of ours, as far as its window shows it. What the import checked holds already; what its buffers hold does
/// not. Device memory is read as bowstring_device_array_validate does.
///
/// Ownership: nothing changes hands; the array is borrowed for the call.
/// Errors: as bowstring_device_array_validate. Any thread may call it; on_finding runs on the calling thread and must not
/// unwind. Allocates nothing but for threads and copies of device memory.
/// Source: docs/rules.md, A1 to A8, B1 to B8.
///
/// # Safety
/// `array` is NULL or a live handle; CPU buffers are as long as their producer said; `options` is NULL or as long as its
/// struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_validate(
    array: *const BowstringArray,
    options: *const BowstringValidateOptions,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        let array = array_of(array, report)?;
        with_options(options, report, |options, findings| validate::array(&array, options, findings))
    })
}

/// The same array as a named consumer takes it, repaired where it would be refused, misread or crash.
///
/// Without copying: null counts that the CPU can count are counted, and the offset of a struct without nulls goes into its
/// children. With BOWSTRING_CONFORM_ALLOW_COPY, in CPU memory, those buffers are copied that have to be: indices into
/// dictionaries of another type, offsets of large and fixed-size lists and of list views one behind the other, misaligned
/// buffers, unaligned or unpadded validity bitmaps, and with _AS_TABLE the root's nulls into its children's bitmaps.
/// _TO_OFFSETS makes offsets of string and list views, _TO_VIEWS views of offsets, for any profile; a copy as well. Text of
/// more than 2147483647 bytes gets 64-bit offsets. All else is shared with the array, each buffer with its own owner.
///
/// Ownership: nothing is taken; the caller releases `*out`, which keeps of the array what it shares.
/// Errors: NOT_CONFORMING with rule and path for what cannot be repaired; INVALID_DATA with rule, path and row when copying
/// meets data that breaks a rule; INVALID_ARGUMENT for NULL arguments, unknown profiles, flags or sync modes, or both kinds
/// of views;
/// OUT_OF_MEMORY. Any thread may call it.
/// Source: docs/rules.md, C1 and following.
///
/// # Safety
/// `array` is NULL or a live handle; `sync` is NULL or leads to a sync; `out` is NULL or leads to a pointer; CPU buffers are
/// as long as their producer said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_conform(
    array: *const BowstringArray,
    profile: i32,
    sync: *const Sync,
    flags: u32,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        let array = array_of(array, report)?;
        let sync = sync_or_none(sync, report)?;
        let Some(profile) = Profile::from_code(profile) else {
            let message = format_args!("expected a profile from 0 to 3, found {profile}");
            return Err(report.fail(Status::InvalidArgument, message));
        };
        let known = BOWSTRING_CONFORM_ALLOW_COPY
            | BOWSTRING_CONFORM_AS_TABLE
            | BOWSTRING_CONFORM_TO_OFFSETS
            | BOWSTRING_CONFORM_TO_VIEWS;
        if flags & !known != 0 {
            let message = format_args!("expected flags within {known:#x}, found {flags:#x}");
            return Err(report.fail(Status::InvalidArgument, message));
        }
        let repairs = Repairs {
            may_copy: flags & BOWSTRING_CONFORM_ALLOW_COPY != 0,
            as_table: flags & BOWSTRING_CONFORM_AS_TABLE != 0,
            to_offsets: flags & BOWSTRING_CONFORM_TO_OFFSETS != 0,
            to_views: flags & BOWSTRING_CONFORM_TO_VIEWS != 0,
        };
        out.write(handle_of(validate::conform(&array, profile, sync, repairs, report)?));
        Ok(())
    })
}

/// Checks the struct of a stream of arrays on a device, without calling it.
///
/// Ownership: nothing changes hands; the stream is borrowed for the call.
/// Errors: INVALID_DATA with the rule; RELEASED for a released stream; else as bowstring_schema_validate. Any thread may call
/// it; on_finding runs on the calling thread and must not unwind.
/// Source: docs/rules.md, ST1, D2 and M2.
///
/// # Safety
/// `stream` is NULL or leads to a struct; `options` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_stream_validate(
    stream: *const ArrowDeviceArrayStream,
    options: *const BowstringValidateOptions,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        let stream = required(stream, "a stream", report)?;
        with_options(options, report, |_, findings| validate::device_stream(stream, findings))
    })
}

/// Checks the struct of a stream of arrays in CPU memory, without calling it.
///
/// Ownership: nothing changes hands; the stream is borrowed for the call.
/// Errors: as bowstring_device_stream_validate. Any thread may call it; on_finding runs on the calling thread and must not
/// unwind.
/// Source: docs/rules.md, ST1 and M2.
///
/// # Safety
/// As bowstring_device_stream_validate has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_host_stream_validate(
    stream: *const ArrowArrayStream,
    options: *const BowstringValidateOptions,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        let stream = required(stream, "a stream", report)?;
        with_options(options, report, |_, findings| validate::host_stream(stream, findings))
    })
}

/// Checks a DLPack tensor by every rule that its struct can break. Its data is not read.
///
/// Of a tensor of another major version than 1 only that is read. At most 64 dimensions are looked at.
///
/// Ownership: nothing changes hands; the tensor is borrowed for the call.
/// Errors: INVALID_DATA with the rule; UNSUPPORTED for another major version or more dimensions; else as
/// bowstring_schema_validate, and of the options only max_findings and on_finding count. Any thread may call it; on_finding
/// runs on the calling thread and must not unwind.
/// Source: docs/rules.md, DL1 to DL18.
///
/// # Safety
/// `tensor` is NULL or leads to what DLPack says; `options` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_tensor_validate(
    tensor: *const DLManagedTensorVersioned,
    options: *const BowstringValidateOptions,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(tensor, "a tensor", report)?;
        let told = tensor::view_versioned(tensor);
        with_options(options, report, |_, findings| tensor::check_tensor(told, findings))
    })
}

/// Checks a DLPack tensor of before 1.0 by every rule that its struct can break. Its data is not read.
///
/// Ownership: nothing changes hands; the tensor is borrowed for the call.
/// Errors: as bowstring_tensor_validate. Any thread may call it; on_finding runs on the calling thread and must not unwind.
/// Source: docs/rules.md, DL2 to DL18.
///
/// # Safety
/// As bowstring_tensor_validate has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_legacy_tensor_validate(
    tensor: *const DLManagedTensor,
    options: *const BowstringValidateOptions,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(tensor, "a tensor", report)?;
        let told = tensor::view_legacy(tensor);
        with_options(options, report, |_, findings| tensor::check_tensor(told, findings))
    })
}

unsafe fn validate_raw(
    array: &ArrowDeviceArray,
    ty: *const BowstringType,
    options: *const BowstringValidateOptions,
    report: &mut Report<'_>,
) -> Result<()> {
    // SAFETY: as the caller promises, here and below.
    unsafe {
        let ty = type_of(ty, report)?;
        let survey = Survey::new(array, &ty, report)?;
        with_options(options, report, |options, findings| validate::survey(&survey, options, findings))
    }
}

/// Runs a check as the caller's options have it.
unsafe fn with_options(
    options: *const BowstringValidateOptions,
    report: &mut Report<'_>,
    check: impl FnOnce(&Options, Findings<'_, '_>) -> Result<()>,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { Checking::of(options, report)?.run(-1, report, check) }
}

/// What a caller's options ask for, and whom they tell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checking {
    options: Options,
    most: usize,
    ctx: *mut c_void,
    on_finding: Option<unsafe extern "C" fn(*mut c_void, i32, *const ErrorRecord) -> c_int>,
}

// SAFETY: whoever keeps it was promised that any thread may call `on_finding`, and name the queue.
unsafe impl Send for Checking {}

impl Checking {
    /// Reads the options.
    pub(crate) unsafe fn of(
        options: *const BowstringValidateOptions,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        if options.is_null() {
            let (options, ctx) = (Options::DEFAULT, core::ptr::null_mut());
            return Ok(Self { options, most: 0, ctx, on_finding: None });
        }
        // SAFETY: as the caller promises.
        let raw = unsafe { read_input(options, report) }?;
        let most = match raw.max_findings {
            0 => usize::MAX,
            most => usize::try_from(most).unwrap_or(usize::MAX),
        };
        Ok(Self { options: parsed(&raw, report)?, most, ctx: raw.ctx, on_finding: raw.on_finding })
    }

    /// Runs a check; `batch` is that of the findings, -1 when they are not about one of a stream.
    pub(crate) unsafe fn run(
        &self,
        batch: i64,
        report: &mut Report<'_>,
        check: impl FnOnce(&Options, Findings<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let Some(on_finding) = self.on_finding else {
            return check(&self.options, Findings::first(report));
        };
        let mut listener = |severity: Severity, finding: &ErrorRecord| {
            let told;
            let finding = if batch < 0 {
                finding
            } else {
                told = ErrorRecord { batch, ..*finding };
                &told
            };
            // SAFETY: as the caller promises.
            unsafe { on_finding(self.ctx, severity as i32, finding) == 0 }
        };
        check(&self.options, Findings::all(report, &mut listener, self.most))
    }
}

fn parsed(raw: &BowstringValidateOptions, report: &mut Report<'_>) -> Result<Options> {
    let refuse = |report: &mut Report<'_>, what: &str, found: i64| {
        report.fail(Status::InvalidArgument, format_args!("expected {what}, found {found}"))
    };
    let Some(level) = Level::from_code(raw.level) else {
        return Err(refuse(report, "a level from 0 to 2", raw.level.into()));
    };
    let Some(profile) = Profile::from_code(raw.profile) else {
        return Err(refuse(report, "a profile from 0 to 3", raw.profile.into()));
    };
    if raw.staging_bytes < 0 {
        return Err(refuse(report, "staging bytes of at least 0", raw.staging_bytes));
    }
    let is_assumed = raw.assume_device.r#type != 0 || raw.assume_device.id != 0;
    let assume_device = if is_assumed { Some(normalise(raw.assume_device, report)?) } else { None };
    raw.sync.mode(report)?;
    let (threads, as_table) = (raw.threads, raw.as_table != 0);
    let staging = usize::try_from(raw.staging_bytes).unwrap_or(usize::MAX);
    Ok(Options { level, profile, assume_device, as_table, threads, staging, sync: raw.sync })
}
