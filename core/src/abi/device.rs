//! Device types, as the Arrow C Device interface and DLPack both number them.

use super::ArrowDeviceType;

/// CPU memory.
pub const DEVICE_CPU: ArrowDeviceType = 1;
/// CUDA device memory.
pub const DEVICE_CUDA: ArrowDeviceType = 2;
/// Pinned host memory of CUDA.
pub const DEVICE_CUDA_HOST: ArrowDeviceType = 3;
/// OpenCL buffers.
pub const DEVICE_OPENCL: ArrowDeviceType = 4;
/// Vulkan buffers.
pub const DEVICE_VULKAN: ArrowDeviceType = 7;
/// Metal buffers.
pub const DEVICE_METAL: ArrowDeviceType = 8;
/// Verilog simulator buffers.
pub const DEVICE_VPI: ArrowDeviceType = 9;
/// ROCm device memory.
pub const DEVICE_ROCM: ArrowDeviceType = 10;
/// Pinned host memory of ROCm.
pub const DEVICE_ROCM_HOST: ArrowDeviceType = 11;
/// A device that its producer documents.
pub const DEVICE_EXT_DEV: ArrowDeviceType = 12;
/// Managed memory of CUDA.
pub const DEVICE_CUDA_MANAGED: ArrowDeviceType = 13;
/// oneAPI unified shared memory.
pub const DEVICE_ONEAPI: ArrowDeviceType = 14;
/// WebGPU buffers.
pub const DEVICE_WEBGPU: ArrowDeviceType = 15;
/// Hexagon memory.
pub const DEVICE_HEXAGON: ArrowDeviceType = 16;

/// A device: its type and its number among them. All zero means the CPU.
///
/// The layout is frozen. The id of the CPU is written as -1 and read as -1 or 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// Type of the device, as the Arrow C Device interface numbers it; 0 means the CPU in an argument.
    pub r#type: ArrowDeviceType,
    /// Number of the device among its type, -1 where devices have none.
    pub id: i64,
}

impl Device {
    /// The CPU.
    ///
    /// cbindgen:ignore
    pub const CPU: Device = Device { r#type: DEVICE_CPU, id: -1 };
}
