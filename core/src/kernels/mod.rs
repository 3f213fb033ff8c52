//! Loops over the bytes of buffers. They read unaligned memory and know nothing of arrays.

mod bits;
mod ints;

pub use bits::count_zeroes;
pub use ints::{read_i32, read_i64};
