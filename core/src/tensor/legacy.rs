//! Tensors of before 1.0 as versioned ones, and back: another struct for the same memory.

use super::export::TensorOptions;
use super::made::{Dims, READ_ONLY, Spec};
use super::view::{Axes, TensorView};
use crate::error::{Report, Result, Status};

/// What a tensor of the other kind says of the memory of this one. Nobody said that a legacy tensor may be written.
pub fn rewrapped<'a>(
    tensor: &TensorView<'_>,
    dims: &'a mut Dims,
    report: &mut Report<'_>,
) -> Result<Spec<'a>> {
    for length in tensor.shape.numbers() {
        dims.push(*length, report)?;
    }
    match tensor.strides {
        Axes::Here(strides) => dims.set_strides(strides),
        _ => dims.compact(report)?,
    }
    let flags = if tensor.version.is_some() { tensor.flags } else { READ_ONLY };
    let data = core::ptr::with_exposed_provenance(tensor.data);
    let (byte_offset, device, dtype) = (tensor.byte_offset, tensor.device, tensor.dtype);
    let (shape, strides) = dims.parts();
    Ok(Spec { data, byte_offset, device, dtype, flags, shape, strides })
}

/// Checks that a tensor may lose its flags.
pub fn check_writable(
    tensor: &TensorView<'_>,
    options: &TensorOptions,
    report: &mut Report<'_>,
) -> Result<()> {
    if tensor.flags & READ_ONLY == 0 || options.drop_read_only {
        return Ok(());
    }
    let message =
        format_args!("expected a tensor that may be written, or DROP_READ_ONLY, found a read-only one");
    Err(report.fail(Status::Unsupported, message))
}
