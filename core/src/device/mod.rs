//! Which device memory lives on, and how a call that may meet unfinished device work is to behave.

mod place;
mod sync;

pub use place::{check_foreign, device_name, has_event_handles, normalise, takes_events};
pub use sync::{Sync, SyncMode, require_readable};

use crate::abi::{DEVICE_CPU, Device};

/// Whether the CPU may read memory of this device without anybody's help.
pub fn is_cpu_readable(device: Device) -> bool {
    device.r#type == DEVICE_CPU
}
