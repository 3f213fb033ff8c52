//! The DLPack structs, legacy and versioned, as of DLPack 1.3.

use core::ffi::c_void;
use core::mem::{offset_of, size_of};

/// The version that a versioned tensor was written for.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DLPackVersion {
    /// A change breaks everything behind the flags.
    pub major: u32,
    /// A change adds values only.
    pub minor: u32,
}

/// A device, as DLPack names it.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DLDevice {
    /// Type of the device.
    pub device_type: i32,
    /// Number of the device among its type, 0 where devices have none.
    pub device_id: i32,
}

/// An element type.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DLDataType {
    /// Kind of number.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Number of lanes.
    pub lanes: u16,
}

/// A strided block of memory.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    /// Start of the allocation, or an opaque handle.
    pub data: *mut c_void,
    /// Where the data is.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// Length of each dimension.
    pub shape: *mut i64,
    /// Step of each dimension, in elements.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// A tensor and its deleter, as before DLPack 1.0.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor and this struct; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A tensor, its version, flags and deleter.
///
/// cbindgen:no-export
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    /// Version that the struct was written for.
    pub version: DLPackVersion,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees the tensor and this struct; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Read-only, copied, padded.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<DLTensor>() == 48);
    assert!(offset_of!(DLTensor, device) == 8);
    assert!(offset_of!(DLTensor, ndim) == 16);
    assert!(offset_of!(DLTensor, dtype) == 20);
    assert!(offset_of!(DLTensor, shape) == 24);
    assert!(offset_of!(DLTensor, byte_offset) == 40);
    assert!(size_of::<DLManagedTensor>() == 64);
    assert!(offset_of!(DLManagedTensor, deleter) == 56);
    assert!(size_of::<DLManagedTensorVersioned>() == 80);
    assert!(offset_of!(DLManagedTensorVersioned, flags) == 24);
    assert!(offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
};
