//! Memory that may run out, and who frees it.

mod buffer;
pub mod counts;
mod owner;
mod plan;
pub mod scope;
mod shared;

pub use buffer::{ALIGNMENT, Buffer, Place};
pub use counts::Live;
pub use owner::{Counted, CountedOps, Event, EventCell, OwnedBuffer, Owner, ReleaseOwner};
pub use plan::Plan;
pub use scope::CallbackScope;
pub use shared::{Items, Kind, Parts, Room, Shared, mark};
