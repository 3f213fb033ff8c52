//! How many bytes a buffer needs, asked of the layout table.

use crate::types::{Extent, Slot};

/// How many bytes a buffer needs to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// So many.
    Bytes(i64),
    /// As many as the offsets buffer says at the array's end.
    ByOffsets,
    /// As many as the buffer of variadic sizes says.
    BySizes,
    /// More than 64 bits can count.
    Overflow,
}

/// What `slot` needs in an array of `length` values behind `offset` others, with `n_variadic` variadic buffers.
///
/// The caller has checked that neither is negative and that their sum does not overflow.
#[inline(always)]
pub fn need(slot: &Slot, offset: i64, length: i64, n_variadic: usize) -> Need {
    let rows = offset.wrapping_add(length).cast_unsigned();
    // Nearly every buffer of nearly every array: few values, and as many as rows.
    if slot.extent == Extent::Rows && (rows | slot.bits) >> 31 == 0 {
        return Need::Bytes((rows.wrapping_mul(slot.bits).wrapping_add(7) >> 3).cast_signed());
    }
    other_need(slot, rows, length, n_variadic)
}

#[inline(never)]
fn other_need(slot: &Slot, rows: u64, length: i64, n_variadic: usize) -> Need {
    let elements = match slot.extent {
        Extent::Rows => rows,
        // An empty array's lone offset is often missing and never trustworthy, so it is not asked for.
        Extent::RowsPlusOne => {
            if length == 0 {
                0
            } else {
                rows.wrapping_add(1)
            }
        }
        Extent::VariadicCount => n_variadic as u64,
        Extent::LastOffset if length == 0 => 0,
        Extent::LastOffset => return Need::ByOffsets,
        Extent::VariadicSize => return Need::BySizes,
    };
    let bytes =
        if slot.bits & 7 == 0 { elements.checked_mul(slot.bits >> 3) } else { Some(elements.div_ceil(8)) };
    match bytes {
        Some(bytes) if bytes <= i64::MAX.cast_unsigned() => Need::Bytes(bytes.cast_signed()),
        _ => Need::Overflow,
    }
}
