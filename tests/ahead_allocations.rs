//! A stream that is ahead with each allocation failed in turn, those of the caller's thread and those of the library's: what was
//! to be taken is still the caller's, or the batch says OUT_OF_MEMORY; nothing is leaked. And a producer that panics.
//!
//! One test, so that nothing else allocates meanwhile.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may allocate and panic"
)]

use core::ffi::{c_int, c_void};
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bowstring::array::{BowstringArray, bowstring_array_release};
use bowstring::device::BowstringTransferOptions;
use bowstring::error::{BOWSTRING_INTERNAL, BOWSTRING_OK, BOWSTRING_OUT_OF_MEMORY};
use bowstring::process::{BowstringLiveCounts, bowstring_live_counts};
use bowstring::produce::bowstring_device_array_from_buffers;
use bowstring::schema::*;
use bowstring::stream::*;
use bowstring_core::abi::{ArrowDeviceArray, Device};
use bowstring_core::array::Array;
use bowstring_core::device::Sync;
use bowstring_core::error::{ErrorRecord, Report, Result, capture};
use bowstring_core::memory::OwnedBuffer;
use bowstring_core::stream::{Source, Stream};
use bowstring_core::transfer::concat;
use bowstring_core::tree::Facts;
use bowstring_core::types::Type;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that the test's thread and the library's hold together.
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// Which allocation of the library's thread fails, and how many it made.
static FAIL_AT: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    static IS_ARMED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: all memory is the system's; a refusal is a NULL, as the trait allows.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_ARMED.get() && CALLS.fetch_add(1, SeqCst) + 1 == FAIL_AT.load(SeqCst) {
            return null_mut();
        }
        count(layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn count(bytes: isize) {
    if IS_COUNTED.get() {
        LIVE.fetch_add(bytes, SeqCst);
    }
}

const BATCHES: usize = 3;
static NUMBERS: [i64; 4] = [1, 2, 3, 4];
static TYPE: AtomicUsize = AtomicUsize::new(0);
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// Gives batches on whatever thread asks, which is armed as soon as it has asked once.
unsafe extern "C" fn next(ctx: *mut c_void, out: *mut ArrowDeviceArray) -> c_int {
    IS_ARMED.set(false);
    IS_COUNTED.set(true);
    if GIVEN.fetch_add(1, SeqCst) < BATCHES {
        let facts = [Facts { length: 4, null_count: 0, offset: 0, n_buffers: 2 }];
        // SAFETY: the data is static; so it is in all of this file that pointers lead to what is asked for.
        unsafe {
            let mut buffers =
                [OwnedBuffer::absent(), OwnedBuffer::new(NUMBERS.as_ptr().cast(), 32, null_mut(), None)];
            let kind: *const BowstringType = core::ptr::with_exposed_provenance(TYPE.load(SeqCst));
            let made = bowstring_device_array_from_buffers(
                kind,
                facts.as_ptr(),
                1,
                buffers.as_mut_ptr(),
                2,
                null_mut(),
                out,
                null_mut(),
            );
            assert_eq!(made, BOWSTRING_OK);
        }
    }
    IS_ARMED.set(ctx.is_null());
    0
}

fn callbacks(kind: *const BowstringType, ctx: usize) -> *mut BowstringStream {
    let mut callbacks = BowstringStreamCallbacks {
        struct_size: size_of::<BowstringStreamCallbacks>(),
        device: Device { r#type: 0, id: 0 },
        ctx: without_provenance_mut(ctx),
        get_next: Some(next),
        get_next_array: None,
        get_last_error: None,
        release: None,
    };
    let mut out = null_mut();
    // SAFETY: as above.
    let made = unsafe { bowstring_stream_from_callbacks(kind, &mut callbacks, &mut out, null_mut()) };
    assert_eq!(made, BOWSTRING_OK);
    GIVEN.store(0, SeqCst);
    out
}

fn to_device(
    from: &mut *mut BowstringStream,
    out: &mut *mut BowstringStream,
    error: *mut ErrorRecord,
) -> c_int {
    // SAFETY: zeroes are the defaults.
    let mut options: BowstringTransferOptions = unsafe { core::mem::zeroed() };
    options.struct_size = size_of::<BowstringTransferOptions>();
    options.depth = 2;
    // SAFETY: as above.
    unsafe { bowstring_stream_to_device(from, Device { r#type: 0, id: 0 }, &options, out, error) }
}

fn live() -> (isize, [usize; 4]) {
    let mut counts = BowstringLiveCounts {
        struct_size: size_of::<BowstringLiveCounts>(),
        types: 0,
        arrays: 0,
        buffers: 0,
        streams: 0,
        tensors: 0,
        blocks: 0,
        pending: 0,
        leaked_callbacks: 0,
    };
    // SAFETY: as above.
    unsafe { bowstring_live_counts(&mut counts) };
    (LIVE.load(SeqCst), [counts.arrays, counts.streams, counts.blocks, counts.pending])
}

/// The call's own allocations.
fn making(kind: *const BowstringType) {
    for fail_at in 1..20 {
        let before = live();
        let (mut from, mut out) = (callbacks(kind, 1), null_mut());
        CALLS.store(0, SeqCst);
        FAIL_AT.store(fail_at, SeqCst);
        IS_ARMED.set(true);
        let status = to_device(&mut from, &mut out, null_mut());
        IS_ARMED.set(false);
        assert_eq!((from.is_null(), out.is_null()), (status == BOWSTRING_OK, status != BOWSTRING_OK));
        // SAFETY: as above.
        unsafe {
            bowstring_stream_release(from);
            bowstring_stream_release(out);
        }
        assert_eq!(live(), before, "allocation {fail_at}");
        if status == BOWSTRING_OK {
            assert_eq!(fail_at, 5, "the ring, the thread's block, the stream, its source");
            return;
        }
        assert_eq!(status, BOWSTRING_OUT_OF_MEMORY);
    }
    panic!("does not end");
}

/// What the thread allocates.
fn copying(kind: *const BowstringType) -> usize {
    for fail_at in 1..100 {
        let before = live();
        let (mut from, mut out) = (callbacks(kind, 0), null_mut());
        CALLS.store(0, SeqCst);
        FAIL_AT.store(fail_at, SeqCst);
        assert_eq!(to_device(&mut from, &mut out, null_mut()), BOWSTRING_OK);
        let (mut n, mut error) = (0, ErrorRecord::empty());
        let status = loop {
            let mut array: *mut BowstringArray = null_mut();
            // SAFETY: as above.
            let status = unsafe { bowstring_stream_next(out, &mut array, &mut error) };
            if array.is_null() {
                break status;
            }
            // SAFETY: as above.
            unsafe { bowstring_array_release(array) };
            n += 1;
        };
        // SAFETY: as above.
        unsafe { bowstring_stream_release(out) };
        assert_eq!(live(), before, "allocation {fail_at}");
        if status == BOWSTRING_OK {
            assert_eq!(n, BATCHES);
            return fail_at - 1;
        }
        assert_eq!(status, BOWSTRING_OUT_OF_MEMORY);
        assert!(n < BATCHES && error.batch == i64::try_from(n).unwrap_or(-1));
    }
    panic!("does not end");
}

/// Gives one array and then panics.
struct Panics(Option<Array>);

impl Source for Panics {
    fn next(&mut self, _: &mut Report<'_>) -> Result<Option<Array>> {
        Ok(Some(self.0.take().expect("a source that is asked once too often")))
    }
}

/// A panic on the thread is that stream's failure, and nobody else's.
fn panicking() {
    let array = capture(|report| {
        let kind = Type::parse(b"int64", report)?;
        Ok((concat(&kind, &[], &Sync::NONE, report)?, kind))
    });
    let (array, kind) = array.expect("an array");
    let source = || Panics(Some(array));
    let stream = capture(|report| Stream::new(&kind, Device::CPU, report, source)).expect("a stream");
    let (mut from, mut out) = (stream.into_raw().cast().as_ptr(), null_mut());
    std::panic::set_hook(Box::new(|_| ()));
    assert_eq!(to_device(&mut from, &mut out, null_mut()), BOWSTRING_OK);
    let (mut array, mut error) = (null_mut(), ErrorRecord::empty());
    // SAFETY: as above.
    unsafe {
        assert_eq!(bowstring_stream_next(out, &mut array, &mut error), BOWSTRING_OK);
        bowstring_array_release(array);
        for _ in 0..2 {
            assert_eq!(bowstring_stream_next(out, &mut array, &mut error), BOWSTRING_INTERNAL);
            assert_eq!((error.batch, array.is_null()), (1, true));
        }
        bowstring_stream_release(out);
    }
    let _ = std::panic::take_hook();
}

#[test]
fn every_allocation_may_fail_on_either_thread() {
    IS_COUNTED.set(true);
    let mut kind = null_mut();
    // SAFETY: as above.
    assert_eq!(unsafe { bowstring_type_parse(c"int64".as_ptr(), &mut kind, null_mut()) }, BOWSTRING_OK);
    TYPE.store(kind.expose_provenance(), SeqCst);
    making(kind);
    let made = copying(kind);
    println!("{made} allocations of the thread");
    assert!(made >= 2 * BATCHES);
    panicking();
    // SAFETY: as above.
    unsafe { bowstring_type_release(kind) };
}
