//! The library's own files with a model checker's locks in the place of the standard library's.

/// What the files wait with.
pub mod locks {
    pub use loom::sync::{Condvar, Mutex, MutexGuard as Guard};
}

#[path = "../../core/src/stream/ring.rs"]
pub mod ring;
