//! Which formats are numbers to an array library, and which type they are there.

use crate::abi::DLDataType;
use crate::types::{Format, TypeNode};

/// One value of a format as an element of a tensor, or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    pub dtype: DLDataType,
    /// How many elements a value is; they make a dimension of their own unless this is `None`.
    pub per_value: Option<i64>,
}

const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;
/// DLPack's code of booleans, a byte each.
pub(super) const BOOL: u8 = 6;

const fn scalar(code: u8, bits: u8) -> Element {
    Element { dtype: DLDataType { code, bits, lanes: 1 }, per_value: None }
}

const fn several(code: u8, bits: u8, n: i64) -> Element {
    Element { dtype: DLDataType { code, bits, lanes: 1 }, per_value: Some(n) }
}

/// A number as it is, without asking for the physical values of something else.
pub(super) fn number(format: Format) -> Option<Element> {
    Some(match format {
        Format::Int8 => scalar(INT, 8),
        Format::UInt8 => scalar(UINT, 8),
        Format::Int16 => scalar(INT, 16),
        Format::UInt16 => scalar(UINT, 16),
        Format::Int32 => scalar(INT, 32),
        Format::UInt32 => scalar(UINT, 32),
        Format::Int64 => scalar(INT, 64),
        Format::UInt64 => scalar(UINT, 64),
        Format::Float16 => scalar(FLOAT, 16),
        Format::Float32 => scalar(FLOAT, 32),
        Format::Float64 => scalar(FLOAT, 64),
        _ => return None,
    })
}

/// What a value consists of physically.
pub(super) fn physical(format: Format) -> Option<Element> {
    Some(match format {
        Format::Date32 | Format::Time32(_) | Format::IntervalMonths | Format::Decimal { bits: 32, .. } => {
            scalar(INT, 32)
        }
        Format::Date64
        | Format::Time64(_)
        | Format::Timestamp(_)
        | Format::Duration(_)
        | Format::Decimal { bits: 64, .. } => scalar(INT, 64),
        Format::IntervalDayTime => several(INT, 32, 2),
        Format::Decimal { bits: 256, .. } => several(UINT, 8, 32),
        Format::Decimal { .. } | Format::IntervalMonthDayNano | Format::BinaryView | Format::Utf8View => {
            several(UINT, 8, 16)
        }
        Format::FixedSizeBinary(width) => several(UINT, 8, i64::from(width)),
        other => return number(other),
    })
}

/// The bytes that a value of a format takes in its buffer.
pub(super) fn value_bytes(element: Element) -> i64 {
    let bytes = i64::from(element.dtype.bits >> 3);
    bytes.saturating_mul(element.per_value.unwrap_or(1))
}

/// The format of an element type, if Arrow has one.
pub(super) fn format_of(dtype: DLDataType) -> Option<Format> {
    if dtype.lanes != 1 {
        return None;
    }
    Some(match (dtype.code, dtype.bits) {
        (INT, 8) | (BOOL, 8) => Format::Int8,
        (INT, 16) => Format::Int16,
        (INT, 32) => Format::Int32,
        (INT, 64) => Format::Int64,
        (UINT, 8) => Format::UInt8,
        (UINT, 16) => Format::UInt16,
        (UINT, 32) => Format::UInt32,
        (UINT, 64) => Format::UInt64,
        (FLOAT, 16) => Format::Float16,
        (FLOAT, 32) => Format::Float32,
        (FLOAT, 64) => Format::Float64,
        _ => return None,
    })
}

/// Whether the node's values may be shown without asking for their physical form.
pub(super) fn is_plain(node: &TypeNode) -> bool {
    !node.has_dictionary() && number(node.format).is_some()
}
