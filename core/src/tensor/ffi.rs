//! What runs a tensor's own deleter, what reads its struct, and what makes one.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::alloc::Layout;

use super::made::Spec;
use super::view::{Axes, MAX_NDIM, TensorView, Told};
use crate::abi::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor};
use crate::error::{Report, Result};
use crate::memory::{OwnedBuffer, Owner, Plan, counts, scope};

/// Runs the deleter of a tensor, which frees the struct as well. NULL and a NULL deleter are left alone.
///
/// Only the deleter is read: it lies where it does in every major version, and what comes after the flags does not.
///
/// # Safety
/// `tensor` is NULL or leads to a tensor that nobody let go, and is not used afterwards.
pub unsafe fn release_versioned(tensor: *mut DLManagedTensorVersioned) {
    if tensor.is_null() {
        return;
    }
    // SAFETY: as the caller promises; no reference to the whole is made, because its end may be another version's.
    if let Some(deleter) = unsafe { (&raw const (*tensor).deleter).read() } {
        // SAFETY: as the caller promises, this is the one call; the deleter takes the struct itself.
        scope::run(|| unsafe { deleter(tensor) });
    }
}

/// Runs the deleter of a tensor without a version, which frees the struct as well. NULL and a NULL deleter are left
/// alone.
///
/// # Safety
/// `tensor` is NULL or leads to a tensor that nobody let go, and is not used afterwards.
pub unsafe fn release_legacy(tensor: *mut DLManagedTensor) {
    if tensor.is_null() {
        return;
    }
    // SAFETY: as the caller promises.
    if let Some(deleter) = unsafe { (&raw const (*tensor).deleter).read() } {
        // SAFETY: as the caller promises, this is the one call; the deleter takes the struct itself.
        scope::run(|| unsafe { deleter(tensor) });
    }
}

/// The numbers of a tensor; of another major version than 1 only that is read.
///
/// # Safety
/// `tensor` leads to what DLPack says, for `'a`, but for members whose fault can be told by looking at the struct.
pub unsafe fn view_versioned<'a>(tensor: *const DLManagedTensorVersioned) -> Told<'a> {
    // SAFETY: as the caller promises; no reference to the whole is made before the version is known.
    let version = unsafe { (&raw const (*tensor).version).read() };
    if version.major != 1 {
        return Told::Version(version.major);
    }
    // SAFETY: a tensor of this major version has every member.
    let tensor: &'a DLManagedTensorVersioned = unsafe { &*tensor };
    Told::Tensor(TensorView {
        version: Some((version.major, version.minor)),
        flags: tensor.flags,
        has_deleter: tensor.deleter.is_some(),
        // SAFETY: as the caller promises.
        ..unsafe { view(&tensor.dl_tensor) }
    })
}

/// The numbers of a tensor of before 1.0.
///
/// # Safety
/// As [`view_versioned`] has it.
pub unsafe fn view_legacy<'a>(tensor: *const DLManagedTensor) -> Told<'a> {
    // SAFETY: as the caller promises.
    let tensor: &'a DLManagedTensor = unsafe { &*tensor };
    // SAFETY: as above.
    Told::Tensor(TensorView { has_deleter: tensor.deleter.is_some(), ..unsafe { view(&tensor.dl_tensor) } })
}

unsafe fn view(tensor: &DLTensor) -> TensorView<'_> {
    let n = if (0..=MAX_NDIM).contains(&tensor.ndim) { tensor.ndim.unsigned_abs() as usize } else { 0 };
    TensorView {
        version: None,
        flags: 0,
        has_deleter: false,
        data: tensor.data.expose_provenance(),
        device: tensor.device,
        ndim: tensor.ndim,
        dtype: tensor.dtype,
        // SAFETY: the producer vouches for a number a dimension.
        shape: unsafe { axes(tensor.shape, n) },
        // SAFETY: as above.
        strides: unsafe { axes(tensor.strides, n) },
        byte_offset: tensor.byte_offset,
    }
}

unsafe fn axes<'a>(at: *const i64, n: usize) -> Axes<'a> {
    match at {
        _ if at.is_null() => Axes::Missing,
        _ if !at.is_aligned() => Axes::Misaligned(at.addr()),
        // SAFETY: the pointer is aligned and not NULL, and leads to as many numbers as the caller says.
        _ => Axes::Here(unsafe { core::slice::from_raw_parts(at, n) }),
    }
}

/// A tensor of ours, let go when it is dropped.
#[derive(Debug)]
pub struct Tensor(NonNull<DLManagedTensorVersioned>);

/// A tensor of before 1.0 of ours, let go when it is dropped.
#[derive(Debug)]
pub struct LegacyTensor(NonNull<DLManagedTensor>);

/// A tensor's struct and what it needs, in one block with its shape and strides.
#[repr(C)]
struct Block<T> {
    tensor: T,
    owner: ManuallyDrop<Owner>,
    /// How large the block is; its alignment is that of this struct, because nothing in it has a larger one.
    size: usize,
}

impl Tensor {
    /// Makes a tensor: one allocation. The owner is taken when it succeeds.
    pub fn make(spec: &Spec<'_>, report: &mut Report<'_>, owner: impl FnOnce() -> Owner) -> Result<Self> {
        // SAFETY: the struct is written for the block that it lies in.
        let made = unsafe {
            make(spec, report, owner, |dl_tensor| DLManagedTensorVersioned {
                version: DLPackVersion { major: 1, minor: 3 },
                manager_ctx: core::ptr::null_mut(),
                deleter: Some(delete::<DLManagedTensorVersioned>),
                flags: spec.flags,
                dl_tensor,
            })
        };
        made.map(Self)
    }

    /// The struct, which the caller now owns.
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        ManuallyDrop::new(self).0.as_ptr()
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: the tensor is ours and live.
        unsafe { delete(self.0.as_ptr()) };
    }
}

impl LegacyTensor {
    /// Makes a tensor of before 1.0: one allocation. The owner is taken when it succeeds.
    pub fn make(spec: &Spec<'_>, report: &mut Report<'_>, owner: impl FnOnce() -> Owner) -> Result<Self> {
        // SAFETY: the struct is written for the block that it lies in.
        let made = unsafe {
            make(spec, report, owner, |dl_tensor| DLManagedTensor {
                dl_tensor,
                manager_ctx: core::ptr::null_mut(),
                deleter: Some(delete::<DLManagedTensor>),
            })
        };
        made.map(Self)
    }

    /// The struct, which the caller now owns.
    pub fn into_raw(self) -> *mut DLManagedTensor {
        ManuallyDrop::new(self).0.as_ptr()
    }
}

impl Drop for LegacyTensor {
    fn drop(&mut self) {
        // SAFETY: the tensor is ours and live.
        unsafe { delete(self.0.as_ptr()) };
    }
}

/// Writes a block with the struct that `wrap` makes of the tensor.
#[inline(always)]
unsafe fn make<T>(
    spec: &Spec<'_>,
    report: &mut Report<'_>,
    owner: impl FnOnce() -> Owner,
    wrap: impl FnOnce(DLTensor) -> T,
) -> Result<NonNull<T>> {
    let (shape, strides) = (spec.shape, spec.strides);
    let mut plan = Plan::starting_with::<Block<T>>();
    // There is a stride for each length, and they lie behind the lengths.
    let at = plan.array::<i64>(shape.len().saturating_mul(2));
    let (memory, layout) = plan.allocate(report)?;
    const { assert!(align_of::<Block<T>>() >= align_of::<i64>()) };
    // SAFETY: the plan gave both lists a place within the block.
    let (to_shape, to_strides) = unsafe {
        let lists = memory.add(at).cast::<i64>();
        (lists, lists.add(shape.len()))
    };
    for (i, (length, step)) in shape.iter().zip(strides).enumerate() {
        // SAFETY: both places have room for as many numbers.
        unsafe {
            to_shape.add(i).write(*length);
            to_strides.add(i).write(*step);
        }
    }
    let (shape, strides) = match shape.len() {
        0 => (core::ptr::null_mut(), core::ptr::null_mut()),
        _ => (to_shape.as_ptr(), to_strides.as_ptr()),
    };
    let tensor = wrap(DLTensor {
        data: spec.data.cast_mut(),
        device: spec.device,
        // At most `MAX_NDIM`, as whoever made the lists saw to.
        ndim: spec.shape.len() as i32,
        dtype: spec.dtype,
        shape,
        strides,
        byte_offset: spec.byte_offset,
    });
    let block = memory.cast::<Block<T>>();
    // SAFETY: the memory was just allocated for one block.
    unsafe { block.write(Block { tensor, owner: ManuallyDrop::new(owner()), size: layout.size() }) };
    counts::TENSORS.add();
    Ok(block.cast())
}

/// The deleter of tensors of ours: frees the block, then lets the memory go. Any thread may run it.
unsafe extern "C" fn delete<T>(tensor: *mut T) {
    let block = tensor.cast::<Block<T>>();
    if block.is_null() {
        return;
    }
    // SAFETY: the struct is the first member of its block, whose only owner ends here.
    unsafe {
        let owner = ManuallyDrop::take(&mut (*block).owner);
        let layout = Layout::from_size_align_unchecked((*block).size, align_of::<Block<T>>());
        std::alloc::dealloc(block.cast(), layout);
        drop(owner);
    }
    counts::TENSORS.remove();
}

/// What lets a tensor go, for what is made of its memory. The tensor is the owner's from then on.
///
/// # Safety
/// `tensor` is a live tensor that nobody else lets go.
pub unsafe fn owner_of_versioned(tensor: *mut DLManagedTensorVersioned) -> Owner {
    unsafe extern "C" fn let_go(tensor: *mut c_void) {
        // SAFETY: the owner was made of a tensor, and ends once. The scope was entered by the owner's drop.
        unsafe {
            let tensor: *mut DLManagedTensorVersioned = tensor.cast();
            if let Some(deleter) = (*tensor).deleter {
                deleter(tensor);
            }
        }
    }
    // SAFETY: as the caller promises.
    unsafe { Owner::new(tensor.cast(), Some(let_go)) }
}

/// As [`owner_of_versioned`], of a tensor of before 1.0.
///
/// # Safety
/// As above.
pub unsafe fn owner_of_legacy(tensor: *mut DLManagedTensor) -> Owner {
    unsafe extern "C" fn let_go(tensor: *mut c_void) {
        // SAFETY: as above.
        unsafe {
            let tensor: *mut DLManagedTensor = tensor.cast();
            if let Some(deleter) = (*tensor).deleter {
                deleter(tensor);
            }
        }
    }
    // SAFETY: as the caller promises.
    unsafe { Owner::new(tensor.cast(), Some(let_go)) }
}

/// Memory of a tensor from an address on, described and not owned.
pub fn described(address: usize, size: i64) -> OwnedBuffer {
    let data = core::ptr::with_exposed_provenance(address);
    // SAFETY: the tensor's struct was checked, and its producer vouches for the memory that follows from it.
    unsafe { OwnedBuffer::new(data, size, core::ptr::null_mut(), None) }
}

#[cfg(test)]
mod tests {
    use core::mem::MaybeUninit;
    use core::ptr::{null_mut, write_bytes};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    unsafe extern "C" fn versioned_gone(tensor: *mut DLManagedTensorVersioned) {
        // SAFETY: the tests below put a counter there, and read nothing of the tensor afterwards.
        unsafe {
            let count: *const AtomicUsize = (*tensor).manager_ctx.cast();
            write_bytes(tensor.cast::<u8>(), 0xAA, 32);
            (*count).fetch_add(1, Ordering::Relaxed);
        }
    }

    unsafe extern "C" fn legacy_gone(tensor: *mut DLManagedTensor) {
        // SAFETY: as above.
        unsafe {
            let count: *const AtomicUsize = (*tensor).manager_ctx.cast();
            write_bytes(tensor.cast::<u8>(), 0xAA, size_of::<DLManagedTensor>());
            (*count).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The part of a tensor that every major version has, with nothing behind it.
    #[repr(C)]
    struct Head {
        version: DLPackVersion,
        manager_ctx: *mut c_void,
        deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
        flags: u64,
    }

    #[test]
    fn a_deleter_runs_once_whatever_the_version() {
        let count = AtomicUsize::new(0);
        for major in [0, 1, 2, u32::MAX] {
            let version = DLPackVersion { major, minor: 7 };
            let manager_ctx = (&raw const count).cast_mut().cast();
            let mut head = Head { version, manager_ctx, deleter: Some(versioned_gone), flags: u64::MAX };
            // SAFETY: the head is all that is read.
            unsafe { release_versioned((&raw mut head).cast()) };
            assert_eq!(count.swap(0, Ordering::Relaxed), 1);
        }
        let mut tensor = MaybeUninit::<DLManagedTensor>::zeroed();
        // SAFETY: zeroes are a tensor without deleter.
        unsafe {
            (*tensor.as_mut_ptr()).manager_ctx = (&raw const count).cast_mut().cast();
            (*tensor.as_mut_ptr()).deleter = Some(legacy_gone);
            release_legacy(tensor.as_mut_ptr());
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn nothing_runs_without_a_deleter() {
        let mut versioned = MaybeUninit::<DLManagedTensorVersioned>::zeroed();
        let mut legacy = MaybeUninit::<DLManagedTensor>::zeroed();
        // SAFETY: zeroes are tensors without deleter.
        unsafe {
            release_versioned(null_mut());
            release_legacy(null_mut());
            release_versioned(versioned.as_mut_ptr());
            release_legacy(legacy.as_mut_ptr());
        }
    }
}
