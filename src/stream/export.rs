//! Export: a stream becomes a struct for whoever comes next.

use core::mem::ManuallyDrop;

use bowstring_core::abi::{ArrowArrayStream, ArrowDeviceArrayStream};
use bowstring_core::device::Sync;
use bowstring_core::error::ErrorRecord;

use super::{BowstringStream, taken_of};
use crate::array::sync_or_none;
use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{check, disjoint};
use crate::raw::{Raw, reset};

/// Exports the stream as a struct for its device. Allocates nothing.
///
/// Its get_schema may be called at any time and any number of times; its get_next gives what bowstring_stream_next_device_array
/// does. An error is returned as a number: EINVAL for INVALID_ARGUMENT, INVALID_DATA, NOT_CONFORMING, SYNC_REQUIRED and RELEASED;
/// ENOMEM for OUT_OF_MEMORY; ENOSYS for UNSUPPORTED; ECANCELED for CANCELLED; for CALLBACK_ERROR the producer's own number;
/// EIO for all else. get_last_error has status, rule, batch, path, row and message as text until the next call, and NULL after a
/// success. The struct may be moved; its release may run on any thread.
///
/// Ownership: on success the stream is taken, and `*stream` is NULL; the caller releases `out`. Schemas and arrays that it gave live
/// on without it. On failure nothing happened.
/// Errors: INVALID_ARGUMENT for NULL or overlapping arguments, and with rule ST6 while another call on the stream is running. On
/// failure `out` is a released struct. Any thread may call it.
/// Source: Arrow C Device interface, "ArrowDeviceArrayStream"; docs/rules.md, ST1 to ST6 and DS1.
///
/// # Safety
/// `stream` is NULL or leads to NULL or a live handle; `out` is NULL or leads to a struct's memory, which is never read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_export(
    stream: *mut *mut BowstringStream,
    out: *mut ArrowDeviceArrayStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a stream to write to", report)?;
        disjoint(stream, out, report)?;
        reset(out);
        let taken = taken_of(stream, out, report)?;
        stream.write(core::ptr::null_mut());
        ManuallyDrop::into_inner(taken).into_device_stream().put(out);
        Ok(())
    })
}

/// Exports the stream as a struct in CPU memory. Allocates nothing.
///
/// `sync` says how the CPU is to wait for each array that comes with an event, as bowstring_array_export_host has it; NULL is NONE.
/// An array that the CPU cannot read is an error of get_next: ENOSYS.
///
/// Ownership: as bowstring_stream_export; the sync is copied, and its queue has to live as long as the stream.
/// Errors: as bowstring_stream_export; INVALID_ARGUMENT for an unknown sync mode. Any thread may call it.
/// Source: Arrow C Stream interface, "ArrowArrayStream"; docs/rules.md, ST1 to ST6.
///
/// # Safety
/// As bowstring_stream_export has it; `sync` is NULL or leads to a sync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_export_host(
    stream: *mut *mut BowstringStream,
    sync: *const Sync,
    out: *mut ArrowArrayStream,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    // SAFETY: as the caller promises, here and below.
    guard(error, |report| unsafe {
        check(out, "a stream to write to", report)?;
        disjoint(stream, out, report)?;
        reset(out);
        let taken = taken_of(stream, out, report)?;
        let sync = sync_or_none(sync, report)?;
        sync.mode(report)?;
        stream.write(core::ptr::null_mut());
        ManuallyDrop::into_inner(taken).into_host_stream(*sync).put(out);
        Ok(())
    })
}
