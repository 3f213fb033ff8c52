//! Pointer arguments: NULL, alignment, overlap, and the handles behind them.

use core::ffi::{c_char, c_void};
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use bowstring_core::abi::{CText, read_text};
use bowstring_core::array::Array;
use bowstring_core::error::{Failed, Report, Result, Status};
use bowstring_core::memory::{Buffer, Shared};
use bowstring_core::types::{MAX_NODES, Type, TypeHeader, TypeNode};

use crate::array::BowstringArray;
use crate::buffer::BowstringBuffer;
use crate::schema::BowstringType;

/// A borrowed argument that may not be NULL.
pub(crate) unsafe fn required<'a, T>(at: *const T, name: &str, report: &mut Report<'_>) -> Result<&'a T> {
    check(at, name, report)?;
    // SAFETY: the pointer is aligned and not NULL, and the function's contract says where it leads.
    Ok(unsafe { &*at })
}

/// A taken, moved or changed argument that may not be NULL.
pub(crate) unsafe fn required_mut<'a, T>(
    at: *mut T,
    name: &str,
    report: &mut Report<'_>,
) -> Result<&'a mut T> {
    check(at, name, report)?;
    // SAFETY: the pointer is aligned and not NULL, and the function's contract says where it leads.
    Ok(unsafe { &mut *at })
}

/// Checks that a pointer is aligned and not NULL.
#[inline(always)]
pub(crate) fn check<T>(at: *const T, name: &str, report: &mut Report<'_>) -> Result<()> {
    if at.is_null() || !at.is_aligned() {
        return Err(no_address(at.cast(), align_of::<T>(), name, report));
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn no_address(at: *const c_void, align: usize, name: &str, report: &mut Report<'_>) -> Failed {
    if at.is_null() {
        return report.fail(Status::InvalidArgument, format_args!("expected {name}, found NULL"));
    }
    let message = format_args!("expected {name} at a multiple of {align} bytes, found {at:p}");
    report.fail(Status::InvalidArgument, message)
}

/// An array argument: NULL is fine when it has no elements.
#[inline(always)]
pub(crate) unsafe fn slice<'a, T>(
    at: *const T,
    n: usize,
    name: &str,
    report: &mut Report<'_>,
) -> Result<&'a [T]> {
    check_count::<T>(at, n, name, report)?;
    // SAFETY: `n` elements fit in memory, and the function's contract says where the pointer leads.
    Ok(if n == 0 { &[] } else { unsafe { core::slice::from_raw_parts(at, n) } })
}

/// As [`slice`], to be changed.
#[inline(always)]
pub(crate) unsafe fn slice_mut<'a, T>(
    at: *mut T,
    n: usize,
    name: &str,
    report: &mut Report<'_>,
) -> Result<&'a mut [T]> {
    check_count::<T>(at, n, name, report)?;
    // SAFETY: `n` elements fit in memory, and the function's contract says where the pointer leads.
    Ok(if n == 0 { &mut [] } else { unsafe { core::slice::from_raw_parts_mut(at, n) } })
}

/// Checks that an array argument is there and not larger than memory.
#[inline(always)]
pub(crate) fn check_count<T>(at: *const T, n: usize, name: &str, report: &mut Report<'_>) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let bytes = n.checked_mul(size_of::<T>()).and_then(|bytes| isize::try_from(bytes).ok());
    if bytes.is_none() {
        return Err(too_many(n, name, report));
    }
    check(at, name, report)
}

#[cold]
#[inline(never)]
fn too_many(n: usize, name: &str, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected a number of {name} that fits in memory, found {n}");
    report.fail(Status::InvalidArgument, message)
}

/// Sets pointers that are written to NULL, each of them whatever is wrong with the others.
pub(crate) unsafe fn reset_all<const N: usize>(
    outs: [*mut *mut c_void; N],
    report: &mut Report<'_>,
) -> Result<()> {
    for out in outs {
        if !out.is_null() && out.is_aligned() {
            // SAFETY: the function's contract says that a pointer which is not NULL leads to a pointer's memory.
            unsafe { out.write(core::ptr::null_mut()) };
        }
    }
    outs.iter().try_for_each(|out| check(*out, "a pointer to write to", report))
}

/// Checks that something taken and something written do not share memory.
#[inline(always)]
pub(crate) fn disjoint<T, U>(taken: *const T, out: *const U, report: &mut Report<'_>) -> Result<()> {
    disjoint_bytes((taken.addr(), size_of::<T>()), (out.addr(), size_of::<U>()), report)
}

/// As [`disjoint`], of memory given by address and size.
#[inline(always)]
pub(crate) fn disjoint_bytes(
    taken: (usize, usize),
    out: (usize, usize),
    report: &mut Report<'_>,
) -> Result<()> {
    let apart = taken.0.saturating_add(taken.1) <= out.0 || out.0.saturating_add(out.1) <= taken.0;
    if apart || taken.0 == 0 || out.0 == 0 || taken.1 == 0 || out.1 == 0 {
        return Ok(());
    }
    Err(overlapping(taken.0, out.0, report))
}

#[cold]
#[inline(never)]
fn overlapping(taken: usize, out: usize, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected an input apart from the output at {out:#x}, found it at {taken:#x}");
    report.fail(Status::InvalidArgument, message)
}

/// The type behind a borrowed handle.
#[inline(always)]
pub(crate) unsafe fn type_of(
    at: *const BowstringType,
    report: &mut Report<'_>,
) -> Result<ManuallyDrop<Type>> {
    let node: *const TypeNode = at.cast();
    // SAFETY: the function's contract says that this is a live handle; its node tells which of its block it is.
    let index = unsafe { required(node, "a type", report) }?.index;
    let i = usize::try_from(index).unwrap_or(usize::MAX);
    if i < MAX_NODES {
        // SAFETY: as above.
        let block: ManuallyDrop<Shared<TypeHeader, TypeNode>> = unsafe { Shared::from_item_address(node, i) };
        if block.is_ours() {
            return Ok(ManuallyDrop::new(Type::from_parts(ManuallyDrop::into_inner(block), index)));
        }
    }
    Err(foreign_handle("type", report))
}

/// The array behind a borrowed handle.
pub(crate) unsafe fn array_of(
    at: *const BowstringArray,
    report: &mut Report<'_>,
) -> Result<ManuallyDrop<Array>> {
    check(at.cast::<usize>(), "an array", report)?;
    // SAFETY: the pointer is not NULL, and the function's contract says that this is a live handle.
    unsafe { Array::from_raw(NonNull::new_unchecked(at.cast_mut().cast::<c_void>())) }
        .ok_or_else(|| foreign_handle("array", report))
}

/// The buffer behind a borrowed handle.
pub(crate) unsafe fn buffer_of(
    at: *const BowstringBuffer,
    report: &mut Report<'_>,
) -> Result<ManuallyDrop<Buffer>> {
    check(at.cast::<usize>(), "a buffer", report)?;
    // SAFETY: the pointer is not NULL, and the function's contract says that this is a live handle.
    unsafe { Buffer::from_raw(NonNull::new_unchecked(at.cast_mut().cast::<c_void>())) }
        .ok_or_else(|| foreign_handle("buffer", report))
}

#[cold]
fn foreign_handle(kind: &str, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected a {kind} of this copy of the library, found one of another copy");
    report.fail(Status::InvalidArgument, message)
}

/// The bytes of a C string up to its NUL, of which there may be `limit`.
pub(crate) unsafe fn text<'a>(
    at: *const c_char,
    limit: usize,
    name: &str,
    report: &mut Report<'_>,
) -> Result<&'a [u8]> {
    // SAFETY: the function's contract says that the string ends with a NUL.
    match unsafe { read_text(at, limit) } {
        CText::Bytes(bytes) => Ok(bytes),
        CText::Missing => {
            Err(report.fail(Status::InvalidArgument, format_args!("expected {name}, found NULL")))
        }
        CText::TooLong => Err(report.fail(
            Status::InvalidArgument,
            format_args!("expected {name} of at most {limit} bytes, found a longer string"),
        )),
    }
}
