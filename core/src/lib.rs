//! The safe Rust crate under libbowstring: nested columns and their owners, in any memory, without copying.
//!
//! The folders build on each other in this order, and each uses only those before it:
//! `abi`, `error`, `memory`, `types`, `device`, `kernels`, `tree`, `array`, then
//! `tensor`, `transfer` and `validate` beside each other, and `stream`.

pub mod abi;
pub mod array;
pub mod device;
pub mod error;
pub mod kernels;
pub mod memory;
pub mod stream;
pub mod tensor;
pub mod transfer;
pub mod tree;
pub mod types;
pub mod validate;
