//! Loops over the bytes of buffers. They read unaligned memory, know nothing of arrays, and stay inside the slices they
//! are given, whatever is in them.
//!
//! A check walks its rows in blocks that stay in the cache. A block is checked without branches on its data, so that the
//! compiler can make vectors of it, and only when one fails it is walked again to find the row.

mod isa;
mod bits;
mod ints;
mod rows;
mod offsets;
mod indices;
mod numbers;
mod text;
mod unions;
mod views;
#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    reason = "tests may fail hard"
)]
mod testing;

pub use bits::{Bitmap, copy_bits, count_zeroes, set_bits};
pub use indices::Indices;
pub use ints::{Ints, Width, read_i32, read_i64, read_offset, write_offset};
pub use numbers::{Decimals, Multiple, Range};
pub use offsets::{Ascending, ListViews, RunEnds};
pub use rows::Check;
pub use text::{Strings, Utf8};
pub use unions::{DenseUnion, TypeIds};
pub use views::{Buffers, ViewMode, Views};
