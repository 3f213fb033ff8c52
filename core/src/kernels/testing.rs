//! What the tests of the kernels share.

use super::isa::Isa;
use core::ops::Range;

/// Numbers that look random and are the same in every run.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Gives a test the same bytes at every alignment, and right before memory that cannot be read.
pub(super) fn everywhere(bytes: &[u8], mut test: impl FnMut(&[u8])) {
    for shift in 0..16 {
        let mut room = vec![0_u128; bytes.len() / 16 + 2];
        // SAFETY: any bits are bytes, and these are all of the vector's.
        let room =
            unsafe { core::slice::from_raw_parts_mut(room.as_mut_ptr().cast::<u8>(), room.len() * 16) };
        let place = &mut room[shift..][..bytes.len()];
        place.copy_from_slice(bytes);
        test(place);
    }
    guarded(bytes, |bytes| test(bytes));
}

/// Gives a test the same bytes right before memory that cannot be read.
#[cfg(unix)]
pub(super) fn guarded<T>(bytes: &[u8], test: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: a question about the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let inner = bytes.len().next_multiple_of(page).max(page);
    // SAFETY: new memory, whose pages in the middle become readable and writable; only those are used.
    let middle = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let all = libc::mmap(core::ptr::null_mut(), inner + 2 * page, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(all, libc::MAP_FAILED);
        let middle = all.cast::<u8>().add(page);
        assert_eq!(libc::mprotect(middle.cast(), inner, libc::PROT_READ | libc::PROT_WRITE), 0);
        core::slice::from_raw_parts_mut(middle, inner)
    };
    let last = &mut middle[inner - bytes.len()..];
    last.copy_from_slice(bytes);
    let result = test(last);
    // SAFETY: the memory from above, of which nothing is used any more.
    unsafe { assert_eq!(libc::munmap(middle.as_mut_ptr().sub(page).cast(), inner + 2 * page), 0) };
    result
}

/// Without such memory, at least the bytes are the whole allocation.
#[cfg(not(unix))]
pub(super) fn guarded<T>(bytes: &[u8], test: impl FnOnce(&[u8]) -> T) -> T {
    test(bytes.to_vec().into_boxed_slice().as_ref())
}

/// Compares a check with a rule for single rows, from every row to a few ends, on every set of instructions.
///
/// `is_bad` also answers for rows that are not there.
pub(super) fn agree(
    rows: usize,
    check: impl Fn(Isa, Range<usize>) -> Option<usize>,
    is_bad: impl Fn(usize) -> bool,
) {
    let bad: Vec<usize> = (0..rows + 3).filter(|row| is_bad(*row)).collect();
    assert_eq!(bad.iter().filter(|row| **row >= rows).count(), 3, "rows that are not there are bad");
    // Of long ones few, because each walk costs time without optimisation.
    let many = rows < 200;
    let starts = (0..rows.min(if many { 5 } else { 1 })).chain([rows / 3, rows.saturating_sub(1), rows + 2]);
    let ends = [rows + 3, rows, rows.saturating_sub(1), rows / 2, 1];
    for isa in Isa::all() {
        for start in starts.clone() {
            for end in ends.iter().take(if many { 5 } else { 2 }).copied() {
                let slow = bad.iter().find(|row| (start..end).contains(row)).copied();
                assert_eq!(check(isa, start..end), slow, "{isa:?} {start}..{end} of {rows}");
            }
        }
    }
}
