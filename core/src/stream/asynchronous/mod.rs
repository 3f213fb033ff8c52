//! The hand-over of asynchronous streams, without a struct of the interface: what a consumer has asked for, and what has come.
//!
//! These files use nothing else of the library, so that a model can run them as they are.

mod demand;
mod inbox;
mod sync;

pub use demand::{Demand, Order};
pub use inbox::{Inbox, Refused, Taken};
