//! Structs that may grow: `struct_size` first, set by the caller to the size in its own build.

use core::mem::MaybeUninit;

use bowstring_core::error::{Failed, Report, Result, Status};

use crate::pointer::check;

/// A struct whose first member is `struct_size`. When it grows, `FIRST` keeps the size that it was released with, and all that
/// read one take it from [`read_input`].
///
/// # Safety
/// The type is `repr(C)`, its first member is a `usize`, and all zeroes are a value of it.
pub(crate) unsafe trait Sized: core::marker::Sized {
    /// What messages call it.
    const NAME: &'static str;
    /// Its size in its first release.
    const FIRST: usize = size_of::<Self>();
}

/// Checks the size of an input struct, and that nothing in it is beyond what this version knows.
#[inline(always)]
pub(crate) unsafe fn check_input<T: Sized>(at: *const T, report: &mut Report<'_>) -> Result<()> {
    // SAFETY: as the caller promises.
    let told = unsafe { told_size(at, report) }?;
    if told <= size_of::<T>() {
        return Ok(());
    }
    // SAFETY: the caller says that its struct has so many bytes.
    unsafe { check_tail(at.cast(), size_of::<T>(), told, T::NAME, report) }
}

/// A checked input struct, with zeroes for what the caller's build does not have.
pub(crate) unsafe fn read_input<T: Sized>(at: *const T, report: &mut Report<'_>) -> Result<T> {
    // SAFETY: as the caller promises.
    let told = unsafe {
        check_input(at, report)?;
        told_size(at, report)?
    };
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: the caller says that its struct has `told` bytes, and all zeroes are a value.
    unsafe {
        let n = told.min(size_of::<T>());
        core::ptr::copy_nonoverlapping(at.cast::<u8>(), value.as_mut_ptr().cast::<u8>(), n);
        Ok(value.assume_init())
    }
}

#[cold]
#[inline(never)]
unsafe fn check_tail(
    at: *const u8,
    known: usize,
    told: usize,
    name: &str,
    report: &mut Report<'_>,
) -> Result<()> {
    for i in known..told {
        // SAFETY: as the caller promises.
        let byte = unsafe { at.add(i).read() };
        if byte != 0 {
            return Err(report.fail(
                Status::Unsupported,
                format_args!("expected only {known} bytes of {name} in use, found byte {i} set"),
            ));
        }
    }
    Ok(())
}

/// Writes an output struct: as much as the caller has room for, zeroes behind it, `struct_size` as it was.
pub(crate) unsafe fn write_output<T: Sized>(at: *mut T, value: T, report: &mut Report<'_>) -> Result<()> {
    // SAFETY: as the caller promises.
    let told = unsafe { told_size(at, report) }?;
    let own = size_of::<usize>();
    let value = MaybeUninit::new(value);
    // SAFETY: the caller says that its struct has `told` bytes, which are at least ours; the first member is skipped.
    unsafe {
        let to = at.cast::<u8>();
        let n = told.min(size_of::<T>()).wrapping_sub(own);
        core::ptr::copy_nonoverlapping(value.as_ptr().cast::<u8>().add(own), to.add(own), n);
        if told > size_of::<T>() {
            to.add(size_of::<T>()).write_bytes(0, told.wrapping_sub(size_of::<T>()));
        }
    }
    Ok(())
}

/// The struct's own word on its size, which is at least that of the first release.
#[inline(always)]
pub(crate) unsafe fn told_size<T: Sized>(at: *const T, report: &mut Report<'_>) -> Result<usize> {
    check(at, T::NAME, report)?;
    // SAFETY: the first member is a `usize`, and the pointer is aligned and not NULL.
    let told = unsafe { at.cast::<usize>().read() };
    // Beyond 64 KiB it is not a size.
    if told < T::FIRST || told > 65536 {
        return Err(no_size(told, T::FIRST, T::NAME, report));
    }
    Ok(told)
}

#[cold]
#[inline(never)]
fn no_size(told: usize, known: usize, name: &str, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected the size of {name}, {known} or more, in struct_size, found {told}");
    report.fail(Status::InvalidArgument, message)
}

#[cfg(test)]
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::result_large_err,
    reason = "a test may allocate, and looks at the whole record"
)]
mod tests {
    use super::*;
    use bowstring_core::error::{ErrorRecord, capture};

    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    struct Sample {
        struct_size: usize,
        number: u64,
        pair: [u32; 2],
        last: u64,
    }

    // SAFETY: `repr(C)`, starts with a `usize`, and consists of integers without padding.
    unsafe impl Sized for Sample {
        const NAME: &'static str = "Sample";
    }

    const KNOWN: usize = size_of::<Sample>();
    const LARGEST: usize = 65536;
    const VALUE: Sample = Sample { struct_size: 0, number: 1, pair: [2, 3], last: 4 };

    /// Memory of exactly the stated size, as a caller has it; where that is no size, of the struct's.
    struct Stated {
        words: Vec<u64>,
    }

    impl Stated {
        fn new(told: usize, fill: u64) -> Self {
            let room = if told > LARGEST { KNOWN } else { told.max(size_of::<usize>()) };
            let mut words = vec![fill; room.div_ceil(8)];
            words[0] = told as u64;
            Self { words }
        }

        fn at(&mut self) -> *mut Sample {
            self.words.as_mut_ptr().cast()
        }

        fn bytes(&self) -> Vec<u8> {
            self.words.iter().flat_map(|word| word.to_ne_bytes()).collect()
        }

        fn set(&mut self, byte: usize) {
            let mut bytes = self.words[byte / 8].to_ne_bytes();
            bytes[byte % 8] = 1;
            self.words[byte / 8] = u64::from_ne_bytes(bytes);
        }

        fn write(&mut self) -> core::result::Result<(), ErrorRecord> {
            let at = self.at();
            // SAFETY: the memory is as long as it says, or longer where what it says is refused.
            capture(|report| unsafe { write_output(at, VALUE, report) })
        }

        fn check(&mut self) -> core::result::Result<(), ErrorRecord> {
            let at = self.at();
            // SAFETY: as above.
            capture(|report| unsafe { check_input(at, report) })
        }
    }

    fn refused(result: core::result::Result<(), ErrorRecord>, status: Status) {
        let record = result.expect_err("a refusal");
        assert_eq!(record.status, status as i32);
        assert!(record.message().contains("Sample"), "{}", record.message());
    }

    /// Where each member starts, and where the struct ends.
    fn boundaries() -> [usize; 5] {
        use core::mem::offset_of;
        [0, offset_of!(Sample, number), offset_of!(Sample, pair), offset_of!(Sample, last), KNOWN]
    }

    #[test]
    fn what_is_shorter_than_the_first_release_is_left_alone() {
        for told in 0..KNOWN {
            let mut stated = Stated::new(told, u64::MAX);
            let before = stated.bytes();
            refused(stated.write(), Status::InvalidArgument);
            refused(stated.check(), Status::InvalidArgument);
            assert_eq!(stated.bytes(), before);
        }
        assert_eq!(
            boundaries().map(|end| Stated::new(end, 0).check().is_ok()),
            [false, false, false, false, true]
        );
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for told in [LARGEST + 1, usize::MAX / 2, usize::MAX] {
            let mut stated = Stated::new(told, u64::MAX);
            let before = stated.bytes();
            refused(stated.write(), Status::InvalidArgument);
            refused(stated.check(), Status::InvalidArgument);
            assert_eq!(stated.bytes(), before);
        }
        let mut stated = Stated::new(KNOWN, 0);
        let crooked = stated.at().wrapping_byte_add(1);
        for at in [core::ptr::null_mut(), crooked] {
            // SAFETY: neither is followed.
            refused(capture(|report| unsafe { write_output(at, VALUE, report) }), Status::InvalidArgument);
            // SAFETY: as above.
            refused(capture(|report| unsafe { check_input(at, report) }), Status::InvalidArgument);
        }
    }

    #[test]
    fn what_is_longer_gets_zeroes_behind_what_is_known() {
        for told in (KNOWN..KNOWN + 100).chain([4096, LARGEST]) {
            let mut stated = Stated::new(told, u64::MAX);
            stated.write().expect("room for all");
            let bytes = stated.bytes();
            let mut expected = Stated::new(KNOWN, 0);
            expected.words[1..].copy_from_slice(&[1, u64::from_ne_bytes([2, 0, 0, 0, 3, 0, 0, 0]), 4]);
            assert_eq!(bytes[8..KNOWN], expected.bytes()[8..]);
            assert_eq!(stated.words[0], told as u64);
            assert!(bytes[KNOWN..told].iter().all(|byte| *byte == 0));
            assert!(bytes[told..].iter().all(|byte| *byte == u8::MAX));
        }
    }

    #[test]
    fn a_byte_beyond_what_is_known_is_named() {
        for told in (KNOWN..KNOWN + 40).chain([LARGEST]) {
            Stated::new(told, 0).check().expect("zeroes behind what is known");
            for byte in (KNOWN..told).take(48).chain((told > KNOWN).then(|| told - 1)) {
                let mut stated = Stated::new(told, 0);
                stated.set(byte);
                let before = stated.bytes();
                let result = stated.check();
                assert!(
                    result.as_ref().is_err_and(|record| record.message().contains(&format!("byte {byte} ")))
                );
                refused(result, Status::Unsupported);
                assert_eq!(stated.bytes(), before);
            }
            // What is behind the stated size is not the caller's.
            let mut stated = Stated::new(told, 0);
            if told % 8 != 0 {
                stated.set(told);
                stated.check().expect("a byte that is not looked at");
            }
        }
    }

    /// The same struct as it is when two members came after its first release.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    struct Grown(Sample);

    const FIRST: usize = 16;

    // SAFETY: as `Sample`.
    unsafe impl Sized for Grown {
        const NAME: &'static str = "Sample";
        const FIRST: usize = FIRST;
    }

    #[test]
    fn each_size_since_the_first_release_is_written_and_read() {
        for told in 0..KNOWN + 20 {
            let mut stated = Stated::new(told, u64::MAX);
            let at: *mut Grown = stated.at().cast();
            // SAFETY: the memory is as long as it says, or longer where what it says is refused.
            let written = capture(|report| unsafe { write_output(at, Grown(VALUE), report) });
            if told < FIRST {
                refused(written, Status::InvalidArgument);
                continue;
            }
            written.expect("a size since the first release");
            let bytes = stated.bytes();
            let mut expected = Stated::new(KNOWN, 0);
            expected.words[1..].copy_from_slice(&[1, u64::from_ne_bytes([2, 0, 0, 0, 3, 0, 0, 0]), 4]);
            let known = told.min(KNOWN);
            assert_eq!(bytes[8..known], expected.bytes()[8..known]);
            assert!(bytes[known..told].iter().all(|byte| *byte == 0));
            assert!(bytes[told..].iter().all(|byte| *byte == u8::MAX), "{told}");
            // SAFETY: as above.
            let read = capture(|report| unsafe { read_input(at, report) }).expect("it was just written").0;
            assert_eq!(read.struct_size, told);
            let members = [(16, read.number == 1), (24, read.pair == [2, 3]), (32, read.last == 4)];
            for (end, is_read) in members {
                assert!(is_read == (told >= end) || told > end - 8, "{told}");
            }
            assert!(told > 16 || (read.pair, read.last) == ([0, 0], 0));
            assert!(told > 24 || read.last == 0);
        }
    }
}
