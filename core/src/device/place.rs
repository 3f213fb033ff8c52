//! Device types and ids: which exist, and how they are written.

use core::ffi::c_void;

use crate::abi::*;
use crate::error::{Report, Result, Rule, Status};

/// The device type's name, "device" for one that has no name here.
pub fn device_name(device_type: ArrowDeviceType) -> &'static str {
    match device_type {
        DEVICE_CPU => "CPU",
        DEVICE_CUDA => "CUDA",
        DEVICE_CUDA_HOST => "CUDA_HOST",
        DEVICE_OPENCL => "OPENCL",
        DEVICE_VULKAN => "VULKAN",
        DEVICE_METAL => "METAL",
        DEVICE_VPI => "VPI",
        DEVICE_ROCM => "ROCM",
        DEVICE_ROCM_HOST => "ROCM_HOST",
        DEVICE_EXT_DEV => "EXT_DEV",
        DEVICE_CUDA_MANAGED => "CUDA_MANAGED",
        DEVICE_ONEAPI => "ONEAPI",
        DEVICE_WEBGPU => "WEBGPU",
        DEVICE_HEXAGON => "HEXAGON",
        _ => "device",
    }
}

/// Whether arrays on this device may carry an event (rule D4).
pub fn takes_events(device_type: ArrowDeviceType) -> bool {
    !matches!(device_type, DEVICE_CPU | DEVICE_VPI | DEVICE_WEBGPU | DEVICE_HEXAGON)
}

/// Whether an event of this device is a handle as large as a pointer, to which `sync_event` points.
///
/// Elsewhere the event is an object with an address of its own, or what its producer documents, and is never looked into.
pub fn has_event_handles(device_type: ArrowDeviceType) -> bool {
    matches!(
        device_type,
        DEVICE_CUDA
            | DEVICE_CUDA_HOST
            | DEVICE_CUDA_MANAGED
            | DEVICE_ROCM
            | DEVICE_ROCM_HOST
            | DEVICE_OPENCL
            | DEVICE_VULKAN
    )
}

/// The device that an argument means: all zero is the CPU, and the CPU's id is written as -1.
pub fn normalise(device: Device, report: &mut Report<'_>) -> Result<Device> {
    if device.r#type == 0 && device.id == 0 {
        return Ok(Device::CPU);
    }
    check(device).map_err(|(_, expected, found)| {
        report.fail(Status::InvalidArgument, format_args!("expected {expected}, found {found}"))
    })
}

/// The device and event that a producer wrote into its struct, by rules D2, D3 and D4.
pub fn check_foreign(device: Device, event: *mut c_void, report: &mut Report<'_>) -> Result<Device> {
    let checked = check(device).map_err(|(rule, expected, found)| {
        report.broken(rule, &"$", format_args!("expected {expected}, found {found}"))
    })?;
    if !event.is_null() && !takes_events(device.r#type) {
        return Err(report.broken(
            Rule::D4,
            &"$",
            format_args!(
                "expected no sync event on device type {} ({}), found {event:p}",
                device.r#type,
                device_name(device.r#type)
            ),
        ));
    }
    Ok(checked)
}

fn check(device: Device) -> core::result::Result<Device, (Rule, &'static str, i64)> {
    match device.r#type {
        // The specification leaves these numbers undefined.
        ..=0 | 5 | 6 => Err((Rule::D2, "a device type that the interface defines", i64::from(device.r#type))),
        DEVICE_CPU if device.id == 0 || device.id == -1 => Ok(Device::CPU),
        DEVICE_CPU => Err((Rule::D3, "id -1 or 0 for the CPU", device.id)),
        _ => Ok(device),
    }
}
