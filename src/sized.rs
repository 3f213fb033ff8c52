//! Structs that may grow: `struct_size` first, set by the caller to the size in its own build.

use core::mem::MaybeUninit;

use bowstring_core::error::{Failed, Report, Result, Status};

use crate::pointer::check;

/// A struct whose first member is `struct_size`, and that has not grown since its first release.
///
/// # Safety
/// The type is `repr(C)`, its first member is a `usize`, and all zeroes are a value of it.
pub(crate) unsafe trait Sized: core::marker::Sized {
    /// What messages call it.
    const NAME: &'static str;
}

/// Checks the size of an input struct, and that nothing in it is beyond what this version knows.
#[inline(always)]
pub(crate) unsafe fn check_input<T: Sized>(at: *const T, report: &mut Report<'_>) -> Result<()> {
    // SAFETY: as the caller promises.
    let told = unsafe { told_size(at, report) }?;
    if told == size_of::<T>() {
        return Ok(());
    }
    // SAFETY: the caller says that its struct has so many bytes.
    unsafe { check_tail(at.cast(), size_of::<T>(), told, T::NAME, report) }
}

#[cold]
#[inline(never)]
unsafe fn check_tail(
    at: *const u8,
    known: usize,
    told: usize,
    name: &str,
    report: &mut Report<'_>,
) -> Result<()> {
    for i in known..told {
        // SAFETY: as the caller promises.
        let byte = unsafe { at.add(i).read() };
        if byte != 0 {
            return Err(report.fail(
                Status::Unsupported,
                format_args!("expected only {known} bytes of {name} in use, found byte {i} set"),
            ));
        }
    }
    Ok(())
}

/// Writes an output struct: as much as the caller has room for, zeroes behind it, `struct_size` as it was.
pub(crate) unsafe fn write_output<T: Sized>(at: *mut T, value: T, report: &mut Report<'_>) -> Result<()> {
    // SAFETY: as the caller promises.
    let told = unsafe { told_size(at, report) }?;
    let own = size_of::<usize>();
    let value = MaybeUninit::new(value);
    // SAFETY: the caller says that its struct has `told` bytes, which are at least ours; the first member is skipped.
    unsafe {
        let to = at.cast::<u8>();
        let n = size_of::<T>().wrapping_sub(own);
        core::ptr::copy_nonoverlapping(value.as_ptr().cast::<u8>().add(own), to.add(own), n);
        to.add(size_of::<T>()).write_bytes(0, told.wrapping_sub(size_of::<T>()));
    }
    Ok(())
}

/// The struct's own word on its size, which is at least that of the first release.
#[inline(always)]
pub(crate) unsafe fn told_size<T: Sized>(at: *const T, report: &mut Report<'_>) -> Result<usize> {
    check(at, T::NAME, report)?;
    // SAFETY: the first member is a `usize`, and the pointer is aligned and not NULL.
    let told = unsafe { at.cast::<usize>().read() };
    // No struct has grown yet, so its size is that of its first release. Beyond 64 KiB it is not a size.
    if told < size_of::<T>() || told > 65536 {
        return Err(no_size(told, size_of::<T>(), T::NAME, report));
    }
    Ok(told)
}

#[cold]
#[inline(never)]
fn no_size(told: usize, known: usize, name: &str, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected the size of {name}, {known} or more, in struct_size, found {told}");
    report.fail(Status::InvalidArgument, message)
}
