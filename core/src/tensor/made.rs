//! What is said of a tensor before it is made.

use super::view::MAX_NDIM;
use crate::abi::{
    DEVICE_CPU, DEVICE_CUDA_HOST, DEVICE_CUDA_MANAGED, DEVICE_METAL, DEVICE_OPENCL, DEVICE_ROCM_HOST,
    DEVICE_VULKAN, DEVICE_WEBGPU, DLDataType, DLDevice, Device,
};
use crate::error::{Report, Result, Status};

/// The consumer must not write to the data.
pub const READ_ONLY: u64 = 1;
/// The data is a copy that the tensor alone has.
pub const IS_COPIED: u64 = 2;

/// As many dimensions as a tensor may have.
const ROOM: usize = MAX_NDIM.unsigned_abs() as usize;

/// Lengths of dimensions, and steps in elements.
#[derive(Debug, Clone, Copy)]
pub struct Dims {
    n: usize,
    shape: [i64; ROOM],
    strides: [i64; ROOM],
}

impl Dims {
    /// A scalar.
    pub const NONE: Dims = Dims { n: 0, shape: [0; ROOM], strides: [0; ROOM] };

    /// Adds a dimension behind the others.
    pub fn push(&mut self, length: i64, report: &mut Report<'_>) -> Result<()> {
        let Some(place) = self.shape.get_mut(self.n) else {
            let message = format_args!("expected at most {MAX_NDIM} dimensions, found more");
            return Err(report.fail(Status::Unsupported, message));
        };
        *place = length;
        self.n = self.n.saturating_add(1);
        Ok(())
    }

    /// Row-major strides for the lengths.
    pub fn compact(&mut self, report: &mut Report<'_>) -> Result<()> {
        let mut step = Some(1_i64);
        let shape = self.shape.get(..self.n).unwrap_or_default();
        let strides = self.strides.get_mut(..self.n).unwrap_or_default();
        for (length, stride) in shape.iter().zip(strides).rev() {
            let Some(now) = step else { return Err(too_many(report)) };
            *stride = now;
            step = now.checked_mul((*length).max(1));
        }
        if step.is_none() { Err(too_many(report)) } else { Ok(()) }
    }

    /// The strides that somebody else gave.
    pub fn set_strides(&mut self, strides: &[i64]) {
        for (place, stride) in self.strides.iter_mut().zip(strides).take(self.n) {
            *place = *stride;
        }
    }

    /// The dimensions from `base` on in another order: dimension `base + i` is what `base + order[i]` was.
    pub fn permute(&mut self, base: usize, order: &[usize]) {
        if order.is_empty() {
            return;
        }
        let before = *self;
        for (i, from) in order.iter().enumerate() {
            let (to, from) = (base.saturating_add(i), base.saturating_add(*from));
            if let (Some(length), Some(place)) = (before.shape.get(from), self.shape.get_mut(to)) {
                *place = *length;
            }
            if let (Some(step), Some(place)) = (before.strides.get(from), self.strides.get_mut(to)) {
                *place = *step;
            }
        }
    }

    /// Number of elements; the strides were made, so it fits.
    pub fn elements(&self) -> i64 {
        self.shape().iter().fold(1, |n: i64, length| n.saturating_mul(*length))
    }

    /// Lengths and steps.
    pub fn parts(&self) -> (&[i64], &[i64]) {
        (self.shape(), self.strides())
    }

    /// Length of each dimension.
    pub fn shape(&self) -> &[i64] {
        self.shape.get(..self.n).unwrap_or_default()
    }

    /// Step of each dimension.
    pub fn strides(&self) -> &[i64] {
        self.strides.get(..self.n).unwrap_or_default()
    }
}

#[cold]
fn too_many(report: &mut Report<'_>) -> crate::error::Failed {
    report.fail(Status::Unsupported, format_args!("expected a number of elements within 64 bits, found more"))
}

/// A tensor to be made.
#[derive(Debug, Clone, Copy)]
pub struct Spec<'a> {
    /// Start of the memory; not looked at.
    pub data: *const core::ffi::c_void,
    /// Bytes from there to the first element.
    pub byte_offset: u64,
    /// Where the memory is.
    pub device: DLDevice,
    /// Type of an element.
    pub dtype: DLDataType,
    /// The flags.
    pub flags: u64,
    /// Length of each dimension.
    pub shape: &'a [i64],
    /// Step of each dimension, in elements.
    pub strides: &'a [i64],
}

impl<'a> Spec<'a> {
    /// Elements of a type from byte `start` of memory on a device, which must not be written.
    #[inline]
    pub fn new(
        data: *const core::ffi::c_void,
        start: i64,
        device: Device,
        dtype: DLDataType,
        (shape, strides): (&'a [i64], &'a [i64]),
        report: &mut Report<'_>,
    ) -> Result<Spec<'a>> {
        let device = dl_device(device, report)?;
        let byte_offset = start.unsigned_abs();
        // Nothing is at the address of no elements, and a handle is never offset by arithmetic.
        let (data, byte_offset) = if shape.contains(&0) {
            (core::ptr::null(), 0)
        } else if is_handle(device.device_type) {
            (data, byte_offset)
        } else {
            (data.wrapping_byte_add(usize::try_from(byte_offset).unwrap_or(usize::MAX)), 0)
        };
        Ok(Spec { data, byte_offset, device, dtype, flags: READ_ONLY, shape, strides })
    }
}

/// Whether data on a device of this type is a handle, not an address.
pub(super) fn is_handle(device_type: i32) -> bool {
    matches!(device_type, DEVICE_OPENCL | DEVICE_VULKAN | DEVICE_METAL | DEVICE_WEBGPU)
}

/// Whether devices of this type have no ids, and DLPack writes 0.
pub(super) fn has_no_id(device_type: i32) -> bool {
    matches!(device_type, DEVICE_CPU | DEVICE_CUDA_HOST | DEVICE_ROCM_HOST | DEVICE_CUDA_MANAGED)
}

/// A device as DLPack names it.
#[inline]
pub(super) fn dl_device(device: Device, report: &mut Report<'_>) -> Result<DLDevice> {
    if device.r#type == DEVICE_CPU {
        return Ok(DLDevice { device_type: DEVICE_CPU, device_id: 0 });
    }
    other_device(device, report)
}

#[inline(never)]
fn other_device(device: Device, report: &mut Report<'_>) -> Result<DLDevice> {
    let device_type = device.r#type;
    match i32::try_from(device.id) {
        Ok(device_id) if device_id >= 0 => Ok(DLDevice { device_type, device_id }),
        _ if has_no_id(device_type) && device.id == -1 => Ok(DLDevice { device_type, device_id: 0 }),
        _ => {
            let message = format_args!("expected a device id from 0 to {}, found {}", i32::MAX, device.id);
            Err(report.fail(Status::Unsupported, message))
        }
    }
}
