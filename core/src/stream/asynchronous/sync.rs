//! What the hand-over waits with. The model in `models/` puts something else in its place.

pub use std::sync::{Condvar, Mutex, MutexGuard};
