//! Types: format strings, the layout table, metadata, parsed schemas and their text form.
//!
//! A [`Type`] is made from a raw schema, from parts, or from text; all three go through one builder, which first measures
//! and checks limits, and then fills one block of memory.
#![forbid(unsafe_code)]

mod build;
mod check;
mod extension;
mod format;
mod inspect;
mod layout;
mod lexer;
pub mod metadata;
mod node;
mod parse;
mod path;
mod print;
mod schema;
mod sink;

pub use build::Change;
pub use extension::{EXTENSION_NAME, Storage, extension_name, storage as extension_storage};
pub use format::{Children, Format, FormatFault, FormatText, Unit, timezone, union_ids};
pub use inspect::{inspect_schema, storage as check_storage};
pub use layout::{DataType, Extent, Layout, Role, Slot};
pub use node::{Texts, Type, TypeHeader, TypeNode};

/// The largest number of nodes on the way from a type's root to a leaf, both counted.
pub const MAX_DEPTH: usize = 64;
/// The largest number of nodes in a type.
pub const MAX_NODES: usize = 1 << 24;
/// The longest format string, in bytes.
pub const MAX_FORMAT: usize = 65_535;
/// The longest name, in bytes.
pub const MAX_STRING: usize = 1 << 20;
/// The longest encoded metadata of one node, in bytes.
pub const MAX_METADATA: usize = 64 << 20;

/// The number of no node.
pub const NONE: u32 = u32::MAX;

/// Types may be equal though their fields have other names.
pub const IGNORE_NAMES: u32 = 1;
/// Types may be equal though they carry other metadata.
pub const IGNORE_METADATA: u32 = 2;
/// Types may be equal though one allows nulls where the other does not.
pub const IGNORE_NULLABLE: u32 = 4;
