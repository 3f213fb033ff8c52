//! The fuzz targets without the fuzzer: each takes bytes, makes structs of them and checks what the library must hold to.
//!
//! The fuzzer and `tests/fuzz_replay.rs` share this code. It knows nothing of the library's own layout table, and reads
//! its input by hand: what the committed inputs mean must not change with the version of a dependency.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may allocate and panic"
)]

mod array;
mod calls;
mod checks;
mod contents;
mod dlpack;
mod input;
mod kinds;
mod memory;
mod metadata;
mod numbers;
mod parts;
mod schema;
mod shown;
mod tensor;
mod tensor_types;
mod types;

pub use array::run as run_array;
pub use metadata::run as run_metadata;
pub use schema::run as run_schema;
pub use tensor::run as run_tensor;
