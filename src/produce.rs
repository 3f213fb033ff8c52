//! Produce: raw memory and its owners become a device array.

use bowstring_core::abi::ArrowDeviceArray;
use bowstring_core::array::from_buffers;
use bowstring_core::error::{ErrorRecord, Report, Result};
use bowstring_core::memory::OwnedBuffer;
use bowstring_core::tree::{Facts, Placement};

use crate::error::BowstringStatus;
use crate::guard::guard;
use crate::pointer::{check, disjoint, disjoint_bytes, slice, slice_mut, type_of};
use crate::raw::{Raw, reset};
use crate::schema::BowstringType;
use crate::sized::{self, check_input};

// SAFETY: `repr(C)`, starts with a `usize`, and zeroes are integers, NULL and None.
unsafe impl sized::Sized for Placement {
    const NAME: &'static str = "BowstringPlacement";
}

/// Builds a device array of `type` from raw memory: one allocation, no copy.
///
/// `nodes` has the numbers of each node of the type, depth first: a node, its children, then its dictionary. `buffers`
/// has each node's buffers in the same order, as bowstring_type_layout lists them; a view's node says with n_buffers how
/// many variadic buffers it has. The slot of their sizes always counts; NULL data there means that they are built. A
/// validity buffer may be NULL when there are no nulls; an offsets buffer may be NULL at length 0. Sizes that are given
/// are checked against what length and offset need, and in CPU memory without an event against the last offset; -1 is
/// not checked. Null counts of -1 are counted in CPU memory. A struct's offset at the root is moved into its children
/// when the struct has no nulls. `placement` says where the memory is; NULL is the CPU, without owner or event.
///
/// Ownership: on success the array owns every owner and the event, and the owner, release_owner and event members of
/// `buffers` and `placement` are NULL; on failure nothing was touched and all of it is still the caller's. Each buffer's
/// release_owner runs once, when no node and no BowstringBuffer uses the buffer. The placement's owner is let go when no
/// node is live and no BowstringBuffer uses a buffer without a release_owner; the event is destroyed after the last
/// owner. With no owner at all the memory is immortal. The caller releases `out`.
/// Errors: INVALID_ARGUMENT for NULL arguments, wrong numbers of nodes or buffers, an event on a device that has none,
/// unknown sizes of variadic buffers whose sizes are to be built, an unknown device or sync mode, a struct_size that is too
/// small, or overlapping arguments; INVALID_DATA with rule and
/// path for numbers that break a rule or buffers that are too small; UNSUPPORTED for record_on without a backend or members of
/// the placement that this version does not know;
/// OUT_OF_MEMORY. Any thread may call it; the owners may be let go on any thread.
/// Source: Arrow C Data interface, "ArrowArray"; Arrow C Device interface, "ArrowDeviceArray".
///
/// # Safety
/// Every non-NULL pointer leads to as many structs as its count says, `type` is a live handle, each buffer's data leads
/// to size_bytes bytes on the placement's device for as long as its owner, and owners may be let go from any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_array_from_buffers(
    r#type: *const BowstringType,
    nodes: *const Facts,
    n_nodes: usize,
    buffers: *mut OwnedBuffer,
    n_buffers: usize,
    placement: *mut Placement,
    out: *mut ArrowDeviceArray,
    error: *mut ErrorRecord,
) -> BowstringStatus {
    guard(error, |report| {
        check(out, "an array to write to", report)?;
        let bytes = n_buffers.saturating_mul(size_of::<OwnedBuffer>());
        disjoint_bytes((buffers.addr(), bytes), (out.addr(), size_of::<ArrowDeviceArray>()), report)?;
        disjoint(placement, out, report)?;
        // SAFETY: the pointer was checked, and the caller says that it leads to a struct's memory.
        unsafe { reset(out) };
        disjoint_bytes((buffers.addr(), bytes), (placement.addr(), size_of::<Placement>()), report)?;
        // SAFETY: as the caller promises.
        let ty = unsafe { type_of(r#type, report) }?;
        // SAFETY: as the caller promises.
        let (nodes, buffers) = unsafe {
            (slice(nodes, n_nodes, "nodes", report)?, slice_mut(buffers, n_buffers, "buffers", report)?)
        };
        let placement = if placement.is_null() {
            None
        } else {
            // SAFETY: as the caller promises.
            Some(unsafe { given(placement, report) }?)
        };
        let array = from_buffers(&ty, nodes, buffers, placement, report)?;
        // SAFETY: as above; what is there was reset, so nothing is lost.
        unsafe { array.into_raw().put(out) };
        Ok(())
    })
}

/// The caller's placement, or `fallback` when it is NULL.
pub(crate) unsafe fn placement_or<'a>(
    placement: *mut Placement,
    fallback: &'a mut Placement,
    report: &mut Report<'_>,
) -> Result<&'a mut Placement> {
    // SAFETY: as the caller promises.
    if placement.is_null() { Ok(fallback) } else { unsafe { given(placement, report) } }
}

/// The caller's placement, which is not NULL.
#[inline(always)]
unsafe fn given<'a>(placement: *mut Placement, report: &mut Report<'_>) -> Result<&'a mut Placement> {
    // SAFETY: as the caller promises.
    unsafe { check_input(placement, report) }?;
    // SAFETY: the pointer was checked just now, and the struct is at least as long as ours.
    Ok(unsafe { &mut *placement })
}
