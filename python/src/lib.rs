//! The C library once more, as a shared library with a name of its own: the copy that the Python package loads.
//!
//! A handle never crosses copies of the library, so the package must not share one with whoever else installed it.

pub use bowstring::*;
