//! What a check is asked for.

use crate::abi::Device;
use crate::device::Sync;

/// How deep a check goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Everything: each value that a rule is about, and exact null counts.
    Full,
    /// The structs, and a fixed number of reads a node: first and last offsets, sizes of variadic buffers, last run ends.
    Bounds,
    /// The structs alone; no buffer is read.
    Structure,
}

impl Level {
    /// The level of a number at the C boundary.
    pub fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Level::Full),
            1 => Some(Level::Bounds),
            2 => Some(Level::Structure),
            _ => None,
        }
    }
}

/// Whose reading of the interfaces counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The specification's.
    Spec,
    /// libcudf's views on device memory, `cudf::from_arrow_device`.
    CudfDevice,
    /// libcudf's copies of host memory, `cudf::from_arrow_host`.
    CudfHost,
    /// libcudf's owning wrappers, `cudf::interop::arrow_column` and `arrow_table`.
    CudfOwning,
}

impl Profile {
    /// The profile of a number at the C boundary.
    pub fn from_code(code: i32) -> Option<Self> {
        match code {
            0 => Some(Profile::Spec),
            1 => Some(Profile::CudfDevice),
            2 => Some(Profile::CudfHost),
            3 => Some(Profile::CudfOwning),
            _ => None,
        }
    }
}

/// What a check is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How deep it goes.
    pub level: Level,
    /// Whose reading counts.
    pub profile: Profile,
    /// The device that the profile's consumer would find the array on; `None` for where it is.
    pub assume_device: Option<Device>,
    /// Whether the consumer takes the root for a table: a struct whose own offset and nulls it may not look at.
    pub as_table: bool,
    /// The most threads that share the work of a large node; 0 and 1 are the caller's alone.
    pub threads: u32,
    /// The most CPU memory that holds copies of device memory at once, 0 for the library's choice.
    pub staging: usize,
    /// What to do about unfinished device work.
    pub sync: Sync,
}

impl Options {
    /// Everything, by the specification, on the caller's thread.
    ///
    /// cbindgen:ignore
    pub const DEFAULT: Options = Options {
        level: Level::Full,
        profile: Profile::Spec,
        assume_device: None,
        as_table: false,
        threads: 1,
        staging: 0,
        sync: Sync::NONE,
    };
}
