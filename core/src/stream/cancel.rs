//! What ends a wait inside a stream, from any thread.

use super::ahead::Pull;
use super::ffi::Link;
use crate::memory::{Job, Worker};

/// Reaches what a call of a stream may be waiting for. A stream on another one has that one's, so that however many lie on
/// each other, the one that waits is reached; what is below a thread is reached by whoever stops the thread.
#[derive(Clone)]
pub struct Canceller(Reached);

#[derive(Clone)]
enum Reached {
    /// A thread of the library's.
    Ahead(Worker<Pull>),
    /// A producer that calls when it wants to.
    Asynchronous(Link),
}

impl Canceller {
    pub(super) fn of_thread(pull: &Worker<Pull>) -> Self {
        Self(Reached::Ahead(pull.clone()))
    }

    pub(super) fn of_producer(link: &Link) -> Self {
        Self(Reached::Asynchronous(link.clone()))
    }

    /// Lets nobody wait any more.
    pub(super) fn cancel(&self) {
        match &self.0 {
            Reached::Ahead(pull) => pull.stop(),
            Reached::Asynchronous(link) => link.cancel(),
        }
    }
}

impl core::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Canceller")
    }
}
