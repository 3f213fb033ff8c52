//! What copies values: several arrays become one.
#![forbid(unsafe_code)]

mod concat;

pub use concat::concat;
