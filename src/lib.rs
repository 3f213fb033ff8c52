//! The C boundary of bowstring, and nothing else: one file per noun, each function a guard, pointer checks, and a call
//! into `bowstring-core`.

mod guard;
mod pointer;
mod sized;

pub mod error;
pub mod raw;
pub mod schema;
pub mod produce;
pub mod array;
pub mod buffer;
pub mod device;
pub mod process;
pub mod tensor;
pub mod validate;
pub mod stream;
pub mod python;
