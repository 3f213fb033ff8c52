//! Making streams: of foreign structs, and of arrays.

use bowstring_core::abi::{ArrowArrayStream, ArrowDeviceArrayStream};
use bowstring_core::array::Array;
use bowstring_core::error::{ErrorRecord, Report, Result, Status};
use bowstring_core::stream::{Stream, import_device_stream, import_host_stream};

use super::{BowstringStream, handle_of, reset_out};
use crate::array::BowstringArray;
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{array_of, check, disjoint, required_mut, slice, type_of};
use crate::schema::BowstringType;

/// Takes over a stream of arrays on a device, and asks it for its schema.
///
/// Each array is checked as it comes: its device by the stream's type, its structure by the schema, as
/// bowstring_array_import_typed does. Ids of devices may differ. A struct that this library exported is taken back as it went
/// out.
///
/// Ownership: on success the struct is taken, `stream->release` is NULL, and its release runs once, when the stream is
/// released; on failure it is still the caller's, and the schema that it gave was released. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments; RELEASED for a released stream; INVALID_DATA with the rule for
/// missing callbacks, an unknown device and a schema that breaks one; what bowstring_stream_next says where get_schema fails;
/// OUT_OF_MEMORY. Any thread may call it.
/// Source: docs/rules.md, ST1, ST2 and D2; Arrow C Device interface, "ArrowDeviceArrayStream".
///
/// # Safety
/// `stream` is NULL or leads to what the interface says; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_import(
    stream: *mut ArrowDeviceArrayStream,
    out: *mut *mut BowstringStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        import_with(stream, out, report, |stream, report| import_device_stream(stream, report))
    })
}

/// Takes over a stream of arrays in CPU memory, and asks it for its schema.
///
/// Ownership: as bowstring_stream_import.
/// Errors: as bowstring_stream_import. Any thread may call it.
/// Source: docs/rules.md, ST1 and ST2; Arrow C Stream interface, "ArrowArrayStream".
///
/// # Safety
/// As bowstring_stream_import has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_import_host(
    stream: *mut ArrowArrayStream,
    out: *mut *mut BowstringStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        import_with(stream, out, report, |stream, report| import_host_stream(stream, report))
    })
}

unsafe fn import_with<T>(
    stream: *mut T,
    out: *mut *mut BowstringStream,
    report: &mut Report<'_>,
    import: impl FnOnce(&mut T, &mut Report<'_>) -> Result<Stream>,
) -> Result<()> {
    check(out, "a handle to write to", report)?;
    disjoint(stream, out, report)?;
    // SAFETY: as the caller promises.
    unsafe {
        reset_out(out, report)?;
        let stream = required_mut(stream, "a stream", report)?;
        out.write(handle_of(import(stream, report)?));
    }
    Ok(())
}

/// Makes a stream of arrays that are there already.
///
/// All of them have to be of the same type, names and metadata included, and on the same type of device. A NULL `type` is that
/// of the first array; without arrays it has to be given, and the stream is one of the CPU.
///
/// Ownership: the arrays are borrowed for the call, and the stream has a handle of its own on each until it was given. The caller
/// releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments, `type` excepted where there are arrays; INVALID_DATA with rule ST5 or DS1 and the
/// batch for an array that does not belong to the others; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `type` is NULL or a live handle; `arrays` leads to `n_arrays` live handles; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_from_arrays(
    r#type: *const BowstringType,
    arrays: *const *const BowstringArray,
    n_arrays: usize,
    out: *mut *mut BowstringStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        let handles = slice(arrays, n_arrays, "arrays", report)?;
        let given = if r#type.is_null() { None } else { Some(type_of(r#type, report)?) };
        let mut list: Vec<Array> = Vec::new();
        if list.try_reserve_exact(handles.len()).is_err() {
            return Err(report.out_of_memory(handles.len().saturating_mul(size_of::<Array>())));
        }
        for handle in handles {
            list.push(Array::clone(&*array_of(*handle, report)?));
        }
        let first = list.first().and_then(Array::ty);
        let Some(ty) = given.as_deref().or(first.as_ref()) else {
            let message = format_args!("expected a type or an array to take it of, found neither");
            return Err(report.fail(Status::InvalidArgument, message));
        };
        out.write(handle_of(Stream::from_arrays(ty, list, report)?));
        Ok(())
    })
}
