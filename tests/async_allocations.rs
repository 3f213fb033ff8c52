//! Asynchronous streams with each allocation failed in turn: inside on_schema of our handler, on whatever thread calls it, and all
//! of the thread that we produce on, from its start. OUT_OF_MEMORY for whoever asks and ENOMEM for whoever is told; nothing is leaked.
//!
//! One test, so that nothing else allocates meanwhile.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects,
    clippy::panic,
    clippy::expect_used,
    reason = "a test may allocate and panic"
)]

use core::ffi::{c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicIsize, AtomicUsize, Ordering::SeqCst};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use bowstring::error::{BOWSTRING_OK, BOWSTRING_OUT_OF_MEMORY};
use bowstring::process::{BowstringLiveCounts, bowstring_live_counts};
use bowstring::stream::*;
use bowstring_core::abi::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceArray, ArrowSchema,
};
use bowstring_core::array::Array;
use bowstring_core::device::Sync;
use bowstring_core::error::{ErrorRecord, capture};
use bowstring_core::stream::Stream;
use bowstring_core::transfer::concat;
use bowstring_core::tree::export_schema;
use bowstring_core::types::Type;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that the test's thread and those of the library hold together.
static LIVE: AtomicIsize = AtomicIsize::new(0);
/// Which allocation of the armed threads fails, and how many they made.
static FAIL_AT: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// Whether the threads of the library are armed.
static OTHERS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_TESTS: Cell<bool> = const { Cell::new(false) };
    static IS_ARMED: Cell<bool> = const { Cell::new(false) };
}

fn is_counted() -> bool {
    IS_TESTS.get() || is_the_librarys()
}

/// Whether this is a thread of the library, while those are looked at: neither the test's nor the first, which is the harness's.
fn is_the_librarys() -> bool {
    // SAFETY: neither call has conditions.
    OTHERS.load(SeqCst) && !IS_TESTS.get() && unsafe { libc::gettid() != libc::getpid() }
}

// SAFETY: all memory is the system's; a refusal is a NULL, as the trait allows.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let is_armed = IS_ARMED.get() || is_the_librarys();
        if is_armed && CALLS.fetch_add(1, SeqCst) + 1 == FAIL_AT.load(SeqCst) {
            return null_mut();
        }
        if is_counted() {
            LIVE.fetch_add(layout.size().cast_signed(), SeqCst);
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if is_counted() {
            LIVE.fetch_sub(layout.size().cast_signed(), SeqCst);
        }
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn armed(fail_at: usize) {
    CALLS.store(0, SeqCst);
    FAIL_AT.store(fail_at, SeqCst);
}

fn live() -> (isize, [usize; 5]) {
    // SAFETY: zeroes are a value; so it is in all of this file that pointers lead to what is asked for.
    let mut counts: BowstringLiveCounts = unsafe { core::mem::zeroed() };
    counts.struct_size = size_of::<BowstringLiveCounts>();
    // SAFETY: as above.
    unsafe { bowstring_live_counts(&mut counts) };
    let counts = [counts.types, counts.arrays, counts.streams, counts.blocks, counts.buffers];
    (LIVE.load(SeqCst), counts)
}

/// Waits for a thread that has something to let go yet.
fn until(what: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !what() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_micros(200));
    }
    what()
}

const TEXT: &[u8] = b"struct<a: int32, d: dictionary<int8, utf8>, l: list<float64>>";

fn kind() -> Type {
    capture(|report| Type::parse(TEXT, report)).expect("a type")
}

// ---- our handler, called by somebody ----

unsafe extern "C" fn nothing_asked(_: *mut ArrowAsyncProducer, _: i64) {}

unsafe extern "C" fn nothing_cancelled(_: *mut ArrowAsyncProducer) {}

/// How many allocations on_schema makes.
fn told_a_schema() -> usize {
    for fail_at in 1..100 {
        let before = live();
        let kind = kind();
        let mut schema: ArrowSchema =
            capture(|report| export_schema(&kind, report)).expect("a schema").into_raw();
        let mut producer = ArrowAsyncProducer {
            device_type: 1,
            request: Some(nothing_asked),
            cancel: Some(nothing_cancelled),
            additional_metadata: core::ptr::null(),
            private_data: null_mut(),
        };
        // SAFETY: as above, in all of these calls.
        let (code, status) = unsafe {
            let mut handler: ArrowAsyncDeviceStreamHandler = core::mem::zeroed();
            let (mut out, mut array, mut error) = (null_mut(), null_mut(), ErrorRecord::empty());
            assert_eq!(bowstring_stream_from_async(2, &mut handler, &mut out, null_mut()), BOWSTRING_OK);
            handler.producer = &mut producer;
            let on_schema = handler.on_schema.expect("a handler");
            armed(fail_at);
            IS_ARMED.set(true);
            let code = on_schema(&mut handler, &mut schema);
            IS_ARMED.set(false);
            assert!(schema.release.is_none(), "the schema is released, whatever comes of it");
            if code == 0 {
                let end = handler.on_next_task.expect("a handler");
                assert_eq!(end(&mut handler, null_mut(), core::ptr::null()), 0);
            }
            handler.release.expect("a handler")(&mut handler);
            let status = bowstring_stream_next(out, &mut array, &mut error);
            assert!(array.is_null() && bowstring_stream_type(out).is_null() == (code != 0));
            assert_eq!(bowstring_stream_next(out, &mut array, &mut error), status);
            bowstring_stream_release(out);
            (code, status)
        };
        drop(kind);
        assert_eq!(live(), before, "allocation {fail_at}");
        if code == 0 {
            assert_eq!(status, BOWSTRING_OK);
            return fail_at - 1;
        }
        assert_eq!(status, BOWSTRING_OUT_OF_MEMORY, "allocation {fail_at}");
    }
    panic!("does not end");
}

// ---- our producer, on its thread ----

static SCHEMAS: AtomicUsize = AtomicUsize::new(0);
static TASKS: AtomicUsize = AtomicUsize::new(0);
static ERROR: AtomicI32 = AtomicI32::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn on_schema(handler: *mut ArrowAsyncDeviceStreamHandler, _: *mut ArrowSchema) -> c_int {
    SCHEMAS.fetch_add(1, SeqCst);
    // SAFETY: as above; the schema that is left is the producer's to release.
    unsafe {
        let producer = (*handler).producer;
        (*producer).request.expect("a producer")(producer, 9);
    }
    0
}

unsafe extern "C" fn on_next_task(
    _: *mut ArrowAsyncDeviceStreamHandler,
    task: *mut ArrowAsyncTask,
    _: *const c_char,
) -> c_int {
    if !task.is_null() {
        TASKS.fetch_add(1, SeqCst);
        // SAFETY: as above.
        unsafe {
            let mut array: ArrowDeviceArray = core::mem::zeroed();
            assert_eq!((*task).extract_data.expect("a task")(task, &mut array), 0);
            array.array.release.expect("an array")(&mut array.array);
        }
    }
    0
}

unsafe extern "C" fn on_error(
    _: *mut ArrowAsyncDeviceStreamHandler,
    code: c_int,
    _: *const c_char,
    _: *const c_char,
) {
    ERROR.store(code, SeqCst);
}

unsafe extern "C" fn release(handler: *mut ArrowAsyncDeviceStreamHandler) {
    // SAFETY: as above.
    unsafe { (*handler).release = None };
    IS_OVER.store(true, SeqCst);
}

/// How many allocations the thread makes, from its start to its end.
fn producing() -> usize {
    let mut before_the_schema = 0;
    for fail_at in 1..100 {
        let kind = kind();
        let array: Array = capture(|report| concat(&kind, &[], &Sync::NONE, report)).expect("an array");
        let before = live();
        let arrays = vec![array.clone(), array.clone()];
        let stream = capture(|report| Stream::from_arrays(&kind, arrays, report)).expect("a stream");
        let mut from = stream.into_raw().cast().as_ptr();
        let mut handler = ArrowAsyncDeviceStreamHandler {
            on_schema: Some(on_schema),
            on_next_task: Some(on_next_task),
            on_error: Some(on_error),
            release: Some(release),
            producer: null_mut(),
            private_data: null_mut(),
        };
        SCHEMAS.store(0, SeqCst);
        TASKS.store(0, SeqCst);
        ERROR.store(0, SeqCst);
        IS_OVER.store(false, SeqCst);
        armed(fail_at);
        OTHERS.store(true, SeqCst);
        // SAFETY: as above.
        assert_eq!(unsafe { bowstring_stream_to_async(&mut from, &mut handler, null_mut()) }, BOWSTRING_OK);
        assert!(until(|| IS_OVER.load(SeqCst) && live() == before), "allocation {fail_at}");
        OTHERS.store(false, SeqCst);
        let (tasks, error) = (TASKS.load(SeqCst), ERROR.load(SeqCst));
        before_the_schema += usize::from(SCHEMAS.load(SeqCst) == 0);
        if CALLS.load(SeqCst) < fail_at {
            assert_eq!((tasks, error), (2, 0));
            assert!(before_the_schema > 0, "exporting the schema allocates");
            return fail_at - 1;
        }
        assert!(tasks < 3 && error == libc::ENOMEM, "allocation {fail_at}: {tasks} tasks, error {error}");
    }
    panic!("does not end");
}

#[test]
fn every_allocation_may_fail_on_either_side() {
    IS_TESTS.set(true);
    let told = told_a_schema();
    println!("{told} allocations of on_schema");
    assert!(told >= 1);
    let made = producing();
    println!("{made} allocations of the thread");
    assert!(made > 4, "the schema, and a task and an array for each of two");
}
