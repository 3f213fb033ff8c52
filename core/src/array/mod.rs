//! Arrays: looking at them, taking them apart, putting them together and handing them on.
#![forbid(unsafe_code)]

mod emit;
mod events;
mod export;
mod from_buffers;
mod info;
mod nulls;
mod sizes;
mod text;
mod to_buffers;
mod walk;

pub use from_buffers::from_buffers;
pub use info::{BufferInfo, NodeInfo};
pub(crate) use nulls::derived_nulls;
pub use sizes::ReadMemory;

pub use crate::tree::Array;
