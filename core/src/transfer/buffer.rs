//! Buffers: allocated, copied and read on any device.

use core::ffi::c_void;

use super::{Options, Path, path, shared_place, sync_of_source};
use crate::abi::{DEVICE_CPU, Device};
use crate::device::Sync;
use crate::error::{Report, Result, Status};
use crate::memory::Buffer;

/// Zeroed memory of `size` bytes on a device, and where it starts.
///
/// With NONE and HOST it is ready when this returns; with QUEUE and LIBRARY the queue's work may use it, and everybody else waits
/// for the buffer's event.
pub fn allocate(
    device: Device,
    size: usize,
    sync: &Sync,
    report: &mut Report<'_>,
) -> Result<(Buffer, *mut c_void)> {
    sync.mode(report)?;
    if device.r#type == DEVICE_CPU {
        return Buffer::allocate(size, report);
    }
    crate::tree::allocate_on(device, size, sync, report)
}

/// The same bytes on `to`, and whether that is the same memory.
pub fn buffer_to_device(
    buffer: &Buffer,
    to: Device,
    options: &Options<'_>,
    report: &mut Report<'_>,
) -> Result<(Buffer, bool)> {
    let place = buffer.place();
    if options.may_share
        && let Some(shared) = shared_place(place, to, &options.sync, report)?
    {
        let buffer =
            if shared == place { buffer.clone() } else { crate::tree::buffer_at(buffer, shared, report)? };
        return Ok((buffer, true));
    }
    let Ok(size) = usize::try_from(buffer.size()) else {
        let message = format_args!("expected a buffer of known size, found {} bytes", buffer.size());
        return Err(report.fail(Status::InvalidArgument, message));
    };
    options.tell(0, 0, report)?;
    let copy = match path(place, to, &options.sync, report)? {
        Path::Straight(work) => crate::tree::copy_buffer(buffer, size, to, work, options.allocator, report)?,
        Path::ThroughHost => {
            let sync = sync_of_source(place.device, to, &options.sync, report)?;
            let hop = Options { sync, ..Options::DEFAULT };
            let (host, _) = buffer_to_device(buffer, Device::CPU, &hop, report)?;
            let Path::Straight(work) = path(host.place(), to, &options.sync, report)? else {
                let message = format_args!("expected a way from the CPU, found none");
                return Err(report.fail(Status::Internal, message));
            };
            crate::tree::copy_buffer(&host, size, to, work, options.allocator, report)?
        }
    };
    options.tell(0, size, report)?;
    Ok((copy, false))
}

/// Copies `n` bytes of a device's buffer from `offset` on into CPU memory of that size, and waits until they are there.
pub fn read_buffer(
    buffer: &Buffer,
    offset: i64,
    n: i64,
    into: &mut [u8],
    sync: &Sync,
    report: &mut Report<'_>,
) -> Result<()> {
    crate::tree::fetch_buffer(buffer, (offset, n), into, sync, report)
}
