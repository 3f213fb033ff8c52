//! Trees of arrays: the imported one with its flat nodes, the exported one in a single block, and the structural rules
//! that both obey.
//!
//! Everything that reads or writes the foreign structs' pointers is here, so that `array` is safe code.

mod export;
mod extent;
mod import;
mod imported;
mod placement;
mod release;
mod rules;
mod schema;
mod window;

pub use export::{ExportedArray, Links, Shape, Writer};
pub use extent::{Need, need};
pub use import::{Import, import};
pub use imported::{Node, Tree};
pub use placement::{Placement, PlacementParts};
pub use rules::{At, Facts, counts_no_nulls, role_name};
pub use schema::{ExportedSchema, export_schema};
pub use window::{Array, View};

/// Eight zero words in CPU memory: where a buffer without bytes points when its producer gave no address.
pub static ZEROES: ZeroBytes = ZeroBytes([0; 8]);

/// Memory with the alignment that the library emits.
#[repr(align(64))]
#[derive(Debug)]
pub struct ZeroBytes([u64; 8]);

impl ZeroBytes {
    /// Address of the first byte.
    pub fn address(&'static self) -> *const core::ffi::c_void {
        self.0.as_ptr().cast()
    }
}
