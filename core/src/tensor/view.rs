//! A tensor's own numbers, read once and within what it vouches for.

use crate::abi::{DLDataType, DLDevice};

/// The most dimensions that a tensor may have.
pub const MAX_NDIM: i32 = 64;

/// One of a tensor's two lists of numbers, one a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axes<'a> {
    /// The pointer is NULL.
    Missing,
    /// The pointer is where no such list can be.
    Misaligned(usize),
    /// The numbers; none when the number of dimensions is out of range.
    Here(&'a [i64]),
}

impl<'a> Axes<'a> {
    /// The numbers, none where there are none.
    pub fn numbers(self) -> &'a [i64] {
        match self {
            Axes::Here(numbers) => numbers,
            _ => &[],
        }
    }
}

/// What a tensor says of itself.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a> {
    /// Major and minor version, `None` for a tensor of before 1.0.
    pub version: Option<(u32, u32)>,
    /// The flags, 0 for a tensor of before 1.0.
    pub flags: u64,
    /// Whether there is a deleter.
    pub has_deleter: bool,
    /// Address of the allocation, or an opaque handle.
    pub data: usize,
    /// Where the data is.
    pub device: DLDevice,
    /// Number of dimensions, as it is written.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// Length of each dimension.
    pub shape: Axes<'a>,
    /// Step of each dimension, in elements.
    pub strides: Axes<'a>,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// A tensor as far as its version allows to read it.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// Of another major version: nothing but that is known.
    Version(u32),
    /// Of this one.
    Tensor(TensorView<'a>),
}
