//! Which backend a device type has.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::backend::Backend;
use super::cpu::CPU;
use super::plugin::{DeviceBackend, Plugin};
use super::{device_name, takes_events};
use crate::abi::{ArrowDeviceType, DEVICE_CPU, Device};
use crate::error::{Report, Result, Status};

/// How many device types plug-ins may bring.
const MOST: usize = 32;

/// Plug-ins are added and never taken away, so that they can be found without a lock.
static PLUGINS: [OnceLock<(ArrowDeviceType, Plugin)>; MOST] = [const { OnceLock::new() }; MOST];
static N_PLUGINS: AtomicUsize = AtomicUsize::new(0);
static REGISTERING: Mutex<()> = Mutex::new(());

/// The backend of a device's type. With CUDA, the first call opens the driver.
pub(super) fn backend_of(device: Device, report: &mut Report<'_>) -> Result<&'static dyn Backend> {
    let device_type = device.r#type;
    if device_type == DEVICE_CPU {
        return Ok(&CPU);
    }
    #[cfg(feature = "cuda")]
    if super::cuda::is_cuda(device_type) {
        return super::cuda::backend(report);
    }
    if let Some(plugin) = plugin_of(device_type) {
        return Ok(plugin);
    }
    let name = device_name(device_type);
    let message =
        format_args!("expected a device type with a backend, found {device_type} ({name}) without a backend");
    Err(report.fail(Status::Unsupported, message))
}

fn plugin_of(device_type: ArrowDeviceType) -> Option<&'static Plugin> {
    let n = N_PLUGINS.load(Ordering::Acquire);
    let mut known = PLUGINS.iter().take(n).filter_map(OnceLock::get);
    known.find(|(own, _)| *own == device_type).map(|(_, plugin)| plugin)
}

/// Adds a backend for a device type that has none yet.
///
/// # Safety
/// The backend's functions do what their documentation says, on any thread, for as long as the process lives.
pub unsafe fn register(
    device_type: ArrowDeviceType,
    backend: &DeviceBackend,
    report: &mut Report<'_>,
) -> Result<()> {
    // SAFETY: as the caller promises.
    let plugin = unsafe { Plugin::new(device_type, backend, report) }?;
    let refused = |report: &mut Report<'_>, why: &str| {
        let name = device_name(device_type);
        let message =
            format_args!("expected a device type without a backend, found {device_type} ({name}), {why}");
        Err(report.fail(Status::InvalidArgument, message))
    };
    if device_type <= 0 || matches!(device_type, 5 | 6) {
        return refused(report, "which the interface does not define");
    }
    if device_type == DEVICE_CPU {
        return refused(report, "which is built in");
    }
    #[cfg(feature = "cuda")]
    if super::cuda::is_cuda(device_type) {
        return refused(report, "which is built in");
    }
    if plugin.has_events() && !takes_events(device_type) {
        let name = device_name(device_type);
        let message = format_args!(
            "expected a backend without events for device type {device_type} ({name}), whose arrays carry none, found one with events"
        );
        return Err(report.fail(Status::InvalidArgument, message));
    }
    let _one_at_a_time = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    if plugin_of(device_type).is_some() {
        return refused(report, "which was registered before");
    }
    let n = N_PLUGINS.load(Ordering::Acquire);
    let Some(place) = PLUGINS.get(n) else {
        let message = format_args!("expected at most {MOST} registered device types, found one more");
        return Err(report.fail(Status::Unsupported, message));
    };
    let _ = place.set((device_type, plugin));
    N_PLUGINS.store(n.saturating_add(1), Ordering::Release);
    Ok(())
}

/// The number of devices of a type, or why there are none.
pub fn probe(device_type: ArrowDeviceType, report: &mut Report<'_>) -> Result<i64> {
    match backend_of(Device { r#type: device_type, id: 0 }, report)?.count(device_type, report)? {
        0 => {
            let name = device_name(device_type);
            let message = format_args!("expected a device of type {device_type} ({name}), found none");
            Err(report.fail(Status::DeviceUnavailable, message))
        }
        count => Ok(count),
    }
}
