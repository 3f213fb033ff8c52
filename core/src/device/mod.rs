//! Which device memory lives on, what its driver can do, and how a call that may meet unfinished device work is to behave.

mod allocation;
mod backend;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod event;
pub mod pending;
mod place;
mod plugin;
mod registry;
mod sync;
mod teller;
mod waits;
mod work;

pub(crate) use allocation::Allocation;
pub use allocation::{Allocate, Allocator, Deallocate};
pub(crate) use backend::Route;
pub use event::SharedEvent;
pub use place::{check_foreign, device_name, has_event_handles, normalise, takes_events};
pub use plugin::DeviceBackend;
pub use registry::{probe, register};
pub(crate) use sync::require_copies;
pub use sync::{Sync, SyncMode, require_readable};
pub use teller::Teller;
pub(crate) use waits::Wait;
pub(crate) use work::{
    Part, Work, check_address, check_sync, is_on, is_reachable, make_accessible, read_parts,
};
pub use work::{check_copies, hold_until};

use crate::abi::{DEVICE_CPU, Device};

/// Whether the CPU may read memory of this device without anybody's help.
pub fn is_cpu_readable(device: Device) -> bool {
    device.r#type == DEVICE_CPU
}
