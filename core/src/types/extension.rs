//! Canonical extension types: what they are stored as.

use super::format::Format;
use super::metadata::pairs;

/// The metadata key of an extension type's name.
pub const EXTENSION_NAME: &[u8] = b"ARROW:extension:name";

/// Whether a node is stored as its extension type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage<'a> {
    /// It is, or nobody says how it has to be.
    Fine,
    /// It is not.
    Wrong {
        /// The extension type.
        name: &'a [u8],
        /// What it has to be stored as.
        expected: &'static str,
    },
}

/// The extension type's name, when the encoded metadata has one.
pub fn extension_name(metadata: &[u8]) -> Option<&[u8]> {
    pairs(metadata).find(|(key, _)| *key == EXTENSION_NAME).map(|(_, value)| value)
}

/// Whether a node with that format, and `item` as its first child's, is stored as its extension type says.
pub fn storage(metadata: &[u8], format: Format, item: Option<Format>) -> Storage<'_> {
    let Some(name) = extension_name(metadata) else { return Storage::Fine };
    let is_text = matches!(format, Format::Utf8 | Format::LargeUtf8 | Format::Utf8View);
    let (fits, expected) = match name {
        b"arrow.bool8" => (format == Format::Int8, "int8"),
        b"arrow.uuid" => (format == Format::FixedSizeBinary(16), "16 bytes of fixed-size binary"),
        b"arrow.json" => (is_text, "a string type"),
        b"arrow.fixed_shape_tensor" => (matches!(format, Format::FixedSizeList(_)), "a fixed-size list"),
        b"arrow.variable_shape_tensor" => (
            format == Format::Struct && matches!(item, Some(Format::List)),
            "a struct of a list and a fixed-size list",
        ),
        b"arrow.parquet.variant" => (format == Format::Struct, "a struct"),
        b"arrow.timestamp_with_offset" => (format == Format::Struct, "a struct"),
        _ => return Storage::Fine,
    };
    if fits { Storage::Fine } else { Storage::Wrong { name, expected } }
}
