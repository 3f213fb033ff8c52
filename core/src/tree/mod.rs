//! Trees of arrays: the imported one with its flat nodes, the exported one in a single block, and the structural rules
//! that both obey.
//!
//! Everything that reads or writes the foreign structs' pointers is here, so that `array` is safe code.

mod buffers;
mod copies;
mod export;
mod extent;
mod fetch;
mod import;
mod imported;
mod placed;
mod pass;
mod placement;
mod release;
mod rules;
mod schema;
mod select;
mod survey;
mod window;
mod writer;

pub(crate) use buffers::{allocate_on, copy_buffer, fetch_buffer, fetch_owned, upload};
pub(crate) use copies::{Copied, Copies};
pub use export::ExportedArray;
pub(crate) use extent::{Need, need};
pub(crate) use fetch::Fetch;
pub use import::{Import, import};
pub(crate) use imported::Node;
pub use imported::Tree;
pub use pass::PassOn;
pub(crate) use placed::buffer_at;
pub use placement::{Placement, PlacementParts};
pub use release::{release_array_struct, release_schema_struct};
pub use rules::Facts;
pub(crate) use rules::{At, role_name};
pub use schema::{ExportedSchema, export_schema};
pub use survey::Survey;
pub use window::Array;
pub(crate) use window::View;
pub(crate) use writer::{LINE, Leaf, Links, Shape, Writer};

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
