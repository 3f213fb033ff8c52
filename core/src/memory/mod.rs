//! Memory that may run out, and who frees it.

mod buffer;
pub mod counts;
mod own;
mod owner;
mod plan;
pub mod scope;
mod shared;
mod turns;
mod worker;

pub use buffer::{ALIGNMENT, Buffer, Place};
pub use counts::Live;
pub use own::{Own, Space};
pub use owner::{Counted, CountedOps, Event, EventCell, Held, OwnedBuffer, Owner, ReleaseOwner};
pub use plan::{Plan, reserve};
pub use scope::CallbackScope;
pub use shared::{Items, Kind, Parts, Room, Shared, mark};
pub use turns::{Turn, Turns};
pub use worker::{Job, Worker, start_alone};
