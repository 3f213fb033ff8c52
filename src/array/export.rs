//! Export: handles become structs for whoever comes next.

use bowstring_core::abi::{ArrowArray, ArrowDeviceArray, ArrowSchema};
use bowstring_core::array::Array;
use bowstring_core::device::Sync;
use bowstring_core::error::{ErrorRecord, Report, Result};
use bowstring_core::tree::{ExportedSchema, export_schema};

use super::{BowstringArray, sync_or_none};
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{array_of, check, disjoint};
use crate::raw::{Raw, reset};

/// Exports the array, any number of times: one allocation, and one more for the schema when it is asked for.
///
/// What goes out is the strictest reading of the interface: names are not NULL, reserved members are zero, the CPU's id
/// is -1, and a window on a struct without nulls is moved into its children. Null counts are counted in CPU memory;
/// elsewhere what is known or -1 goes out, because a device is never touched. Addresses are the originals, but for
/// buffers of no bytes in CPU memory, which are never NULL.
///
/// Ownership: the caller releases `out` and `out_schema`, each on its own; they keep alive what they show.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, `out_schema` excepted; OUT_OF_MEMORY. On failure both are
/// released structs. Any thread may call it; any thread may release what it wrote.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
///
/// # Safety
/// `array` is NULL or a live handle; `out` and `out_schema` lead to structs' memory, which is never read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_export(
    array: *const BowstringArray,
    out: *mut ArrowDeviceArray,
    out_schema: *mut ArrowSchema,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_outs(out, out_schema, report)?;
        let array = array_of(array, report)?;
        let schema = schema_for(&array, out_schema, report)?;
        array.export(report)?.into_raw().put(out);
        put_schema(schema, out_schema);
        Ok(())
    })
}

/// Exports the array as one in CPU memory, any number of times: one allocation, and one more for the schema.
///
/// Ownership: as bowstring_array_export.
/// Errors: as bowstring_array_export; SYNC_REQUIRED when an event is pending and the mode is NONE; UNSUPPORTED when the
/// CPU cannot read the buffers where they are; DEVICE_UNAVAILABLE, DEVICE_ERROR. Pinned memory, and managed memory where the
/// device allows concurrent access, go out after the wait as CPU memory; INVALID_DATA with rule D9 when the driver says that it is
/// not what the producer said. Any thread may call it; any thread may release what it wrote.
/// Source: Arrow C Data interface, "ArrowArray".
///
/// # Safety
/// `array` is NULL or a live handle; `out` and `out_schema` lead to structs' memory, which is never read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_export_host(
    array: *const BowstringArray,
    sync: *const Sync,
    out: *mut ArrowArray,
    out_schema: *mut ArrowSchema,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_outs(out, out_schema, report)?;
        let array = array_of(array, report)?;
        let sync = sync_or_none(sync, report)?;
        let schema = schema_for(&array, out_schema, report)?;
        array.export_host(sync, report)?.into_raw().array.put(out);
        put_schema(schema, out_schema);
        Ok(())
    })
}

unsafe fn reset_outs<T: Raw>(
    out: *mut T,
    out_schema: *mut ArrowSchema,
    report: &mut Report<'_>,
) -> Result<()> {
    disjoint(out, out_schema, report)?;
    // Each is reset whatever is wrong with the other.
    // SAFETY: the pointers are checked right here.
    unsafe {
        if !out.is_null() && out.is_aligned() {
            reset(out);
        }
        if !out_schema.is_null() && out_schema.is_aligned() {
            reset(out_schema);
        }
    }
    check(out, "an array to write to", report)?;
    if out_schema.is_null() { Ok(()) } else { check(out_schema, "a schema to write to", report) }
}

fn schema_for(
    array: &Array,
    out_schema: *mut ArrowSchema,
    report: &mut Report<'_>,
) -> Result<Option<ExportedSchema>> {
    match array.ty() {
        Some(ty) if !out_schema.is_null() => export_schema(&ty, report).map(Some),
        _ => Ok(None),
    }
}

unsafe fn put_schema(schema: Option<ExportedSchema>, out_schema: *mut ArrowSchema) {
    if let Some(schema) = schema {
        // SAFETY: a schema is only made when there is a place for it.
        unsafe { schema.into_raw().put(out_schema) };
    }
}
