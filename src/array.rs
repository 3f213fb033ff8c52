//! Arrays: import, look, take apart, export.

use core::ffi::{c_char, c_int, c_void};
use core::mem::ManuallyDrop;

use bowstring_core::abi::{ArrowArray, ArrowDeviceArray, ArrowSchema, Device};
use bowstring_core::array::{Array, BufferInfo, NodeInfo};
use bowstring_core::device::Sync;
use bowstring_core::error::{ErrorRecord, Report, Result, Status};
use bowstring_core::memory::{OwnedBuffer, Owner};
use bowstring_core::tree::{ExportedSchema, Facts, Import, Placement, Tree, export_schema, import};
use bowstring_core::types::Type;

use crate::buffer::BowstringBuffer;
use crate::error::BowstringStatus;
use crate::guard::{guard, guard_or};
use crate::pointer::{
    array_of, check, check_count, disjoint, required, required_mut, reset_all, slice_mut, type_of,
};
use crate::raw::{Raw, reset};
use crate::schema::{BowstringType, parse_schema, write_text};
use crate::sized::{self, told_size, write_output};

/// An array: a window on shared memory, its type and its owners; immutable, shared, thread safe.
pub struct BowstringArray(());

/// Do not wait: SYNC_REQUIRED when an event is pending.
pub const BOWSTRING_SYNC_NONE: i32 = 0;
/// Make the queue wait; a NULL queue is the driver's default stream.
pub const BOWSTRING_SYNC_QUEUE: i32 = 1;
/// Block the thread until the event is done.
pub const BOWSTRING_SYNC_HOST: i32 = 2;
/// Make a queue of the library wait.
pub const BOWSTRING_SYNC_LIBRARY: i32 = 3;

// SAFETY: `repr(C)`, starts with a `usize`, and consists of integers and pointers.
unsafe impl sized::Sized for NodeInfo {
    const NAME: &'static str = "BowstringNodeInfo";
}

// SAFETY: as above.
unsafe impl sized::Sized for BufferInfo {
    const NAME: &'static str = "BowstringBufferInfo";
}

/// The caller's sync, or NONE when it is NULL.
pub(crate) unsafe fn sync_or_none<'a>(sync: *const Sync, report: &mut Report<'_>) -> Result<&'a Sync> {
    // SAFETY: as the caller promises.
    if sync.is_null() { Ok(&Sync::NONE) } else { unsafe { required(sync, "a sync", report) } }
}

/// Checks an array out-parameter and sets it to NULL.
unsafe fn reset_out(out: *mut *mut BowstringArray, report: &mut Report<'_>) -> Result<()> {
    check(out, "a handle to write to", report)?;
    // SAFETY: the pointer was checked just now.
    unsafe { out.write(core::ptr::null_mut()) };
    Ok(())
}

fn handle_of(array: Array) -> *mut BowstringArray {
    array.into_raw().cast()
}

/// Imports an array and its schema, which are both handed over.
///
/// The structs' structure is checked whole; no buffer is read, on any device, also one without a backend. What the field
/// emits is accepted: NULL names, buffers of no bytes and offsets of no values that are NULL, a leading NULL validity
/// buffer of unions and null arrays, a null count of -1 with or without a bitmap, 0 as the CPU's id, and unzeroed
/// reserved members.
///
/// Ownership: on success both structs are taken, `schema->release` and `array->array.release` are NULL, and the
/// producer's release runs once, with the last handle, buffer and export, on whatever thread that is; on failure both are
/// still the caller's. The caller releases `*out`. An export of ours is recognised, and its buffers keep their own owners.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments; RELEASED for a released struct; INVALID_DATA with rule and
/// path for a struct that breaks a rule; OUT_OF_MEMORY. Any thread may call it. Two allocations.
/// Source: Arrow C Device interface, "ArrowDeviceArray"; Arrow C Data interface, "Structure definitions".
///
/// # Safety
/// Each pointer is NULL or leads to what the interface says; the buffers' memory need not be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import(
    array: *mut ArrowDeviceArray,
    schema: *mut ArrowSchema,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { import_with_schema(array, Import::Move, schema, out, report) })
}

/// Imports an array whose type is known: one allocation, and nothing is parsed.
///
/// Ownership: as bowstring_array_import, but for the type, which is borrowed for the call and kept by the array.
/// Errors: as bowstring_array_import. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
///
/// # Safety
/// `array` is NULL or leads to what the interface says; `type` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_typed(
    array: *mut ArrowDeviceArray,
    r#type: *const BowstringType,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { import_with_type(array, Import::Move, r#type, out, report) })
}

/// Imports an array in CPU memory and its schema, which are both handed over.
///
/// Ownership: as bowstring_array_import; `array->release` is NULL on success.
/// Errors: as bowstring_array_import. Any thread may call it. Two allocations.
/// Source: Arrow C Data interface, "ArrowArray".
///
/// # Safety
/// Each pointer is NULL or leads to what the interface says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_host(
    array: *mut ArrowArray,
    schema: *mut ArrowSchema,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { import_with_schema(array, Import::MoveHost, schema, out, report) })
}

/// Imports an array in CPU memory whose type is known: one allocation, and nothing is parsed.
///
/// Ownership: as bowstring_array_import_typed; `array->release` is NULL on success.
/// Errors: as bowstring_array_import. Any thread may call it.
/// Source: Arrow C Data interface, "ArrowArray".
///
/// # Safety
/// `array` is NULL or leads to what the interface says; `type` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_host_typed(
    array: *mut ArrowArray,
    r#type: *const BowstringType,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { import_with_type(array, Import::MoveHost, r#type, out, report) })
}

/// Imports an array that stays somebody else's: the root struct is copied, and never released.
///
/// Ownership: what the struct points to must stay as it is until release_owner ran, once, when the last handle, buffer
/// and export are gone; with a NULL release_owner, until they are gone. On success the owner is taken; on failure it is
/// still the caller's. The caller releases `*out`.
/// Errors: as bowstring_array_import. Any thread may call it; the owner may be let go on any thread.
/// Source: Arrow C Device interface, "ArrowDeviceArray".
///
/// # Safety
/// `array` is NULL or leads to what the interface says; `type` is NULL or a live handle; release_owner may be called
/// once with `owner` on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_borrowed(
    array: *const ArrowDeviceArray,
    r#type: *const BowstringType,
    owner: *mut c_void,
    release_owner: Option<unsafe extern "C" fn(owner: *mut c_void)>,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        let array = required(array, "an array", report)?;
        let ty = type_of(r#type, report)?;
        // Not dropped on failure: the owner is the caller's until the array exists.
        let mut owner = ManuallyDrop::new(Owner::new(owner, release_owner));
        out.write(handle_of(import(Import::Borrow(array, &mut owner), &ty, report)?));
        Ok(())
    })
}

unsafe fn import_with_schema<'a, T: 'a>(
    array: *mut T,
    how: impl FnOnce(&'a mut T) -> Import<'a>,
    schema: *mut ArrowSchema,
    out: *mut *mut BowstringArray,
    report: &mut Report<'_>,
) -> Result<()> {
    check(out, "a handle to write to", report)?;
    disjoint(array, out, report)?;
    disjoint(schema, out, report)?;
    // SAFETY: as the caller promises, here and below.
    unsafe {
        reset_out(out, report)?;
        disjoint(array, schema, report)?;
        let array = required_mut(array, "an array", report)?;
        let ty = parse_schema(schema, report)?;
        let imported = import(how(array), &ty, report)?;
        ArrowSchema::call_release(schema);
        out.write(handle_of(imported));
    }
    Ok(())
}

unsafe fn import_with_type<'a, T: 'a>(
    array: *mut T,
    how: impl FnOnce(&'a mut T) -> Import<'a>,
    ty: *const BowstringType,
    out: *mut *mut BowstringArray,
    report: &mut Report<'_>,
) -> Result<()> {
    check(out, "a handle to write to", report)?;
    disjoint(array, out, report)?;
    // SAFETY: as the caller promises, here and below.
    unsafe {
        reset_out(out, report)?;
        let array = required_mut(array, "an array", report)?;
        let ty = type_of(ty, report)?;
        out.write(handle_of(import(how(array), &ty, report)?));
    }
    Ok(())
}

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
/// buffers are not in CPU memory. Any thread may call it; any thread may release what it wrote.
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

/// One handle more on the same array; returns `array`. NULL gives NULL.
///
/// Ownership: the caller releases the result as well. Allocates nothing and cannot fail. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_retain(array: *const BowstringArray) -> *mut BowstringArray {
    guard_or(core::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let handle = unsafe { array_of(array, &mut Report::silent()) };
        handle.map_or(core::ptr::null_mut(), |handle| handle_of(Array::clone(&handle)))
    })
}

/// Lets one handle go. NULL is fine.
///
/// Ownership: the handle is gone afterwards; when nothing else needs the producer's struct, its release runs now, on this
/// thread. Any thread may call it, also while others use further handles.
///
/// # Safety
/// `array` is NULL or a live handle, which is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_release(array: *mut BowstringArray) {
    guard_or((), || {
        // SAFETY: as the caller promises.
        if let Ok(handle) = unsafe { array_of(array, &mut Report::silent()) } {
            drop(ManuallyDrop::into_inner(handle));
        }
    });
}

/// The array's type; NULL for NULL.
///
/// Ownership: the result is borrowed and lives as long as the array; retain it to keep it longer. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_type(array: *const BowstringArray) -> *const BowstringType {
    guard_or(core::ptr::null(), || {
        // SAFETY: as the caller promises.
        let handle = unsafe { array_of(array, &mut Report::silent()) };
        let ty: Option<Type> = handle.ok().and_then(|array| array.ty());
        ty.map_or(core::ptr::null(), |ty| ty.address().cast())
    })
}

/// The number of nodes of the array, and of all their buffers. Either pointer may be NULL.
///
/// Ownership: nothing changes hands.
/// Errors: INVALID_ARGUMENT for a NULL array. Allocates nothing. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; the others are NULL or lead to numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_count(
    array: *const BowstringArray,
    n_nodes: *mut usize,
    n_buffers: *mut usize,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        for out in [n_nodes, n_buffers].into_iter().filter(|out| !out.is_null()) {
            check(out, "a number to write to", report)?;
            // SAFETY: the pointer was checked just now.
            unsafe { out.write(0) };
        }
        // SAFETY: as the caller promises.
        let array = unsafe { array_of(array, report) }?;
        for (out, n) in [(n_nodes, array.n_nodes()), (n_buffers, array.n_buffers())] {
            if !out.is_null() {
                // SAFETY: the pointer was checked above.
                unsafe { out.write(n) };
            }
        }
        Ok(())
    })
}

/// Says what one node of the array is. Nodes are numbered depth first: a node, its children, then its dictionary; 0 is
/// the array itself. Allocates nothing and reads no buffer.
///
/// Ownership: the struct is the caller's; what it points to lives as long as the array.
/// Errors: INVALID_ARGUMENT for NULL arguments, a node out of range or a struct_size that is too small. Any thread may
/// call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_node_info(
    array: *const BowstringArray,
    node: usize,
    out: *mut NodeInfo,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        let info = array_of(array, report)?.node_info(node, report)?;
        write_output(out, info, report)
    })
}

/// Says what one buffer of the array is. Buffers are numbered in the order of their nodes. Allocates nothing and reads no
/// buffer: sizes that only buffers tell are -1 until bowstring_array_resolve_sizes.
///
/// Ownership: the struct is the caller's; the data lives as long as the array.
/// Errors: INVALID_ARGUMENT for NULL arguments, a buffer out of range or a struct_size that is too small. Any thread may
/// call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or as long as its struct_size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_buffer_info(
    array: *const BowstringArray,
    buffer: usize,
    out: *mut BufferInfo,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        let info = array_of(array, report)?.buffer_info(buffer, report)?;
        write_output(out, info, report)
    })
}

/// The device of the array's buffers, and the address of the event to wait on, NULL when there is none. Either pointer
/// may be NULL.
///
/// Ownership: nothing changes hands; the event lives as long as the array or any of its buffers.
/// Errors: INVALID_ARGUMENT for a NULL array. Allocates nothing. Any thread may call it.
/// Source: Arrow C Device interface, "sync_event".
///
/// # Safety
/// `array` is NULL or a live handle; the others are NULL or lead to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_device(
    array: *const BowstringArray,
    out: *mut Device,
    sync_event: *mut *mut c_void,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        if !out.is_null() && out.is_aligned() {
            // SAFETY: the pointer was checked just now.
            unsafe { out.write(Device { r#type: 0, id: 0 }) };
        }
        if !sync_event.is_null() {
            // SAFETY: as the caller promises.
            unsafe { reset_all([sync_event], report) }?;
        }
        if !out.is_null() {
            check(out, "a device to write to", report)?;
        }
        // SAFETY: as the caller promises.
        let place = unsafe { array_of(array, report) }?.tree().place();
        // SAFETY: the pointers were checked above.
        unsafe {
            if !out.is_null() {
                out.write(place.device);
            }
            if !sync_event.is_null() {
                sync_event.write(place.event.address);
            }
        }
        Ok(())
    })
}

/// Runs a call that makes an array of an array.
unsafe fn derive(
    array: *const BowstringArray,
    out: *mut *mut BowstringArray,
    report: &mut Report<'_>,
    make: impl FnOnce(&Array, &mut Report<'_>) -> Result<Array>,
) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        reset_out(out, report)?;
        let array = array_of(array, report)?;
        out.write(handle_of(make(&array, report)?));
    }
    Ok(())
}

/// A child of the array.
///
/// The children of structs, sparse unions and fixed-size lists are windowed like the array; those of lists, list views,
/// maps, dense unions and run-end encoded arrays are whole. Nulls of the array are not merged into it.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or an index out of range; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_child(
    array: *const BowstringArray,
    i: usize,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { derive(array, out, report, |array, report| array.child(i, report)) })
}

/// The dictionary's values, whole.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or an array without a dictionary; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_dictionary(
    array: *const BowstringArray,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe { derive(array, out, report, |array, report| array.dictionary(report)) })
}

/// A window of `length` values from `offset` on, counted within the array. Nothing is copied or clamped.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or a range outside the array; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_slice(
    array: *const BowstringArray,
    offset: i64,
    length: i64,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        derive(array, out, report, |array, report| array.slice(offset, length, report))
    })
}

/// The number of nulls in the array: what is known of it, else counted and remembered.
///
/// Unions and run-end encoded arrays have no nulls of their own; every value of a null array is one; an index into a
/// dictionary counts, not the value it leads to.
///
/// Ownership: nothing changes hands.
/// Errors: INVALID_ARGUMENT for NULL arguments or an unknown sync mode; when it has to be counted, SYNC_REQUIRED for a
/// pending event with mode NONE, and UNSUPPORTED for memory that needs a backend. On failure `*out` is -1. Any thread may
/// call it.
/// Source: Arrow C Data interface, "ArrowArray.null_count".
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a number; CPU buffers are there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_null_count(
    array: *const BowstringArray,
    sync: *const Sync,
    out: *mut i64,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a number to write to", report)?;
        out.write(-1);
        let array = array_of(array, report)?;
        out.write(array.null_count(sync_or_none(sync, report)?, report)?);
        Ok(())
    })
}

/// The same array with every buffer's size known: the ends of offsets and the sizes of variadic buffers are read, once.
///
/// What is read is checked: offsets at the end of a list lie within its child, and no size is negative.
///
/// Ownership: the caller releases `*out`, which keeps alive what the array keeps.
/// Errors: INVALID_ARGUMENT for NULL arguments or an unknown sync mode; INVALID_DATA with rule, path and row for offsets
/// or sizes that cannot be; SYNC_REQUIRED for a pending event with mode NONE; UNSUPPORTED for memory that needs a
/// backend; OUT_OF_MEMORY. Any thread may call it.
/// Source: Arrow C Data interface, "Variable-size binary view".
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer; CPU buffers are there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_resolve_sizes(
    array: *const BowstringArray,
    sync: *const Sync,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        derive(array, out, report, |array, report| array.resolve_sizes(sync_or_none(sync, report)?, report))
    })
}

/// As bowstring_array_resolve_sizes, on any device: `read` copies `n` bytes from `src` to `dst` in CPU memory, and returns
/// 0, or an error number. It waits for the array's event itself. Each call reads one number of 4 or 8 bytes.
///
/// Ownership: `ctx` is the caller's, and is not used after the call.
/// Errors: as bowstring_array_resolve_sizes, but for SYNC_REQUIRED and UNSUPPORTED; CALLBACK_ERROR with the number that
/// `read` returned as native_code. `read` runs on the calling thread and must not unwind. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer; `read` may be called with the array's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_resolve_sizes_with(
    array: *const BowstringArray,
    read: Option<
        unsafe extern "C" fn(ctx: *mut c_void, dst: *mut c_void, src: *const c_void, n: usize) -> c_int,
    >,
    ctx: *mut c_void,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        let Some(read) = read else {
            let message = format_args!("expected a function that reads, found NULL");
            return Err(report.fail(Status::InvalidArgument, message));
        };
        let mut read = |into: &mut [u8], from: *const c_void| match read(
            ctx,
            into.as_mut_ptr().cast(),
            from,
            into.len(),
        ) {
            0 => Ok(()),
            code => Err(code),
        };
        derive(array, out, report, |array, report| array.resolve_sizes_with(&mut read, report))
    })
}

/// The same array with a further owner, which lives as long as the result and every export and buffer of it.
///
/// A buffer taken out of the result keeps the whole of it, and so the owner.
///
/// Ownership: on success the owner is taken: release_owner runs once, after what the array itself keeps; on failure it is
/// still the caller's. The caller releases `*out`.
/// Errors: INVALID_ARGUMENT for NULL arguments, `owner` excepted; OUT_OF_MEMORY. Any thread may call it; the owner may be
/// let go on any thread.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer; release_owner may be called once with `owner`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_with_owner(
    array: *const BowstringArray,
    owner: *mut c_void,
    release_owner: Option<unsafe extern "C" fn(owner: *mut c_void)>,
    out: *mut *mut BowstringArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        reset_out(out, report)?;
        if release_owner.is_none() {
            let message = format_args!("expected a release_owner, found NULL");
            return Err(report.fail(Status::InvalidArgument, message));
        }
        derive(array, out, report, |array, report| {
            Tree::with_owner(array, || Owner::new(owner, release_owner).peeled(), report)
        })
    })
}

/// Takes one buffer out of the array, which stays alive on its own.
///
/// Ownership: the caller releases `*out`. It keeps no more than it must: the buffer's own owner, or the placement's, when
/// the array was built by this library; the producer's struct when it is foreign; the whole array when an owner was added
/// to it.
/// Errors: INVALID_ARGUMENT for NULL arguments or a buffer out of range; OUT_OF_MEMORY. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` is NULL or leads to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_buffer(
    array: *const BowstringArray,
    buffer: usize,
    out: *mut *mut BowstringBuffer,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a handle to write to", report)?;
        out.write(core::ptr::null_mut());
        let taken = array_of(array, report)?.buffer(buffer, report)?;
        out.write(taken.into_raw().cast());
        Ok(())
    })
}

/// Takes the array apart: the exact inverse of bowstring_device_array_from_buffers.
///
/// `nodes` and `buffers` have room for exactly as many as bowstring_array_count says. Sizes that nobody has told or
/// resolved are -1. `out_placement`, which may be NULL, receives the device and the event, with a NULL destroy_event: the
/// event lives as long as any of the owners. Nothing is allocated.
///
/// Ownership: each entry of `buffers` owns its own owner, and the caller lets it go by release_owner(owner) or hands it
/// on; entries without memory own nothing. The array is borrowed.
/// Errors: INVALID_ARGUMENT for NULL arguments, wrong numbers or a struct_size that is too small. On failure nothing was
/// written to `nodes` and `buffers`. Any thread may call it; the owners may be let go on any thread.
///
/// # Safety
/// `array` is NULL or a live handle; the others lead to as many structs as their counts say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_to_buffers(
    array: *const BowstringArray,
    nodes: *mut Facts,
    n_nodes: usize,
    buffers: *mut OwnedBuffer,
    n_buffers: usize,
    out_placement: *mut Placement,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        if !out_placement.is_null() {
            told_size(out_placement, report)?;
            write_output(out_placement, Placement::default(), report)?;
        }
        let array = array_of(array, report)?;
        let nodes = slice_mut(nodes, n_nodes, "nodes", report)?;
        check_count(buffers, n_buffers, "buffers", report)?;
        // The caller's memory may be anything, so it is only written.
        let put = |i: usize, buffer: OwnedBuffer| buffers.add(i).write(buffer);
        let placement = array.to_buffers(nodes, put, n_buffers, report)?;
        if !out_placement.is_null() {
            write_output(out_placement, placement, report)?;
        }
        Ok(())
    })
}

/// Writes the array as text: its tree with types, lengths, nulls and device, and every buffer's role, address and size.
/// Never waits and reads no buffer.
///
/// `needed` receives the bytes that the whole text takes with its NUL. Too small a buffer receives a prefix, cut between
/// characters and ended with a NUL; NULL with capacity 0 only asks for `needed`.
///
/// Ownership: the buffer is the caller's; the array is borrowed.
/// Errors: INVALID_ARGUMENT for a NULL array or a NULL buffer with a capacity. Any thread may call it.
///
/// # Safety
/// `array` is NULL or a live handle; `out` leads to `capacity` bytes; `needed` is NULL or leads to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_to_text(
    array: *const BowstringArray,
    out: *mut c_char,
    capacity: usize,
    needed: *mut usize,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises.
    guard(error, |report| unsafe {
        write_text(out, capacity, needed, report, |text, report| {
            let _ = array_of(array, report)?.to_text(text);
            Ok(())
        })
    })
}
