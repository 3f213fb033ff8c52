//! Integers in native order, at any address.

/// The 32-bit integer at byte `at`, or `None` when `bytes` ends before it does.
pub fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|b| i32::from_ne_bytes(*b))
}

/// The 64-bit integer at byte `at`, or `None` when `bytes` ends before it does.
pub fn read_i64(bytes: &[u8], at: usize) -> Option<i64> {
    bytes.get(at..)?.first_chunk().map(|b| i64::from_ne_bytes(*b))
}
