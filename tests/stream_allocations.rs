//! Streams with each allocation failed in turn: OUT_OF_MEMORY or success, nothing leaked, what was to be taken still the
//! caller's. How many allocations each call makes. And sources that panic.
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

#[path = "support/allocator.rs"]
mod allocator;

use core::ffi::{CStr, c_int, c_void};
use core::ptr::{null, null_mut};
use std::cell::Cell;

use allocator::{TestAllocator, armed, live_bytes};
use bowstring::array::*;
use bowstring::error::{BOWSTRING_INTERNAL, BOWSTRING_OK, BOWSTRING_OUT_OF_MEMORY};
use bowstring::process::{BowstringLiveCounts, bowstring_live_counts};
use bowstring::produce::bowstring_device_array_from_buffers;
use bowstring::raw::*;
use bowstring::schema::*;
use bowstring::stream::*;
use bowstring_core::abi::{
    ArrowArray, ArrowArrayStream, ArrowAsyncDeviceStreamHandler, ArrowDeviceArray, ArrowDeviceArrayStream,
    ArrowSchema, Device,
};
use bowstring_core::error::{ErrorRecord, Report, Result, capture};
use bowstring_core::memory::OwnedBuffer;
use bowstring_core::stream::{Source, Stream};
use bowstring_core::tree::Facts;
use bowstring_core::types::Type;

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

const TEXT: &CStr = c"struct<a: int32, d: dictionary<int8, utf8>, l: list<float64>, v: utf8_view>";
static INTS: [i32; 3] = [1, 2, 3];
static CODES: [i8; 3] = [0, 1, 0];
static OFFSETS: [i32; 4] = [0, 1, 2, 4];
static FLOATS: [f64; 4] = [0.5, 1.5, 2.5, 3.5];
static BYTES: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyzabcdef";
static OTHERS: [u8; 32] = *b"zyxwvutsrqponmlkjihgfedcbazyxwvu";
static VIEWS: [u64; 6] = [0; 6];

thread_local! {
    static LET_GO: Cell<usize> = const { Cell::new(0) };
    static GIVEN: Cell<usize> = const { Cell::new(0) };
}

fn type_of(text: &CStr) -> *mut BowstringType {
    let mut ty = null_mut();
    // SAFETY: every pointer leads to what the function asks for; so it is in all of this file.
    assert_eq!(unsafe { bowstring_type_parse(text.as_ptr(), &mut ty, null_mut()) }, BOWSTRING_OK);
    ty
}

fn memory<T>(data: &'static [T]) -> OwnedBuffer {
    let size = i64::try_from(size_of_val(data)).unwrap_or(0);
    // SAFETY: the data is static.
    unsafe { OwnedBuffer::new(data.as_ptr().cast(), size, null_mut(), None) }
}

fn raw_array(ty: *const BowstringType, words: &'static [u8; 32]) -> ArrowDeviceArray {
    let facts = |length, n_buffers| Facts { length, null_count: 0, offset: 0, n_buffers };
    let nodes = [facts(3, 1), facts(3, 2), facts(3, 2), facts(2, 3), facts(3, 2), facts(4, 2), facts(3, 4)];
    let absent = OwnedBuffer::absent;
    let mut buffers = [
        absent(),
        absent(),
        memory(&INTS),
        absent(),
        memory(&CODES),
        absent(),
        memory(&OFFSETS),
        memory(words),
        absent(),
        memory(&OFFSETS),
        absent(),
        memory(&FLOATS),
        absent(),
        memory(&VIEWS),
        memory(words),
        absent(),
    ];
    // SAFETY: zeroes are a released struct.
    let mut out: ArrowDeviceArray = unsafe { core::mem::zeroed() };
    // SAFETY: as above.
    let status = unsafe {
        let (b, n) = (buffers.as_mut_ptr(), buffers.len());
        bowstring_device_array_from_buffers(ty, nodes.as_ptr(), 7, b, n, null_mut(), &mut out, null_mut())
    };
    assert_eq!(status, BOWSTRING_OK);
    out
}

fn array(ty: *const BowstringType, words: &'static [u8; 32]) -> *mut BowstringArray {
    let (mut raw, mut out) = (raw_array(ty, words), null_mut());
    // SAFETY: as above.
    let status = unsafe { bowstring_array_import_typed(&mut raw, ty, &mut out, null_mut()) };
    assert_eq!(status, BOWSTRING_OK);
    out
}

/// A stream of two arrays, whose dictionaries differ.
fn stream(ty: *const BowstringType) -> *mut BowstringStream {
    let (arrays, mut out) = ([array(ty, &BYTES), array(ty, &OTHERS)], null_mut());
    // SAFETY: as above.
    unsafe {
        let list = arrays.as_ptr().cast();
        assert_eq!(bowstring_stream_from_arrays(null(), list, 2, &mut out, null_mut()), BOWSTRING_OK);
        arrays.iter().for_each(|array| bowstring_array_release(*array));
    }
    out
}

fn live() -> [usize; 5] {
    // SAFETY: zeroes are numbers.
    let mut counts: BowstringLiveCounts = unsafe { core::mem::zeroed() };
    counts.struct_size = size_of::<BowstringLiveCounts>();
    // SAFETY: as above.
    unsafe { bowstring_live_counts(&mut counts) };
    [counts.types, counts.arrays, counts.buffers, counts.blocks, counts.streams]
}

/// Runs `attempt` with each allocation failed in turn and then with none. Returns how many allocations a success makes.
fn each_allocation(name: &str, attempt: impl Fn(usize) -> (i32, usize)) -> usize {
    for fail_at in 1..200 {
        let (bytes, before) = (live_bytes(), live());
        let (status, made) = attempt(fail_at);
        assert_eq!(live(), before, "{name}: live after failing allocation {fail_at}");
        assert_eq!(live_bytes(), bytes, "{name}: leaked after failing allocation {fail_at}");
        if status == BOWSTRING_OK {
            assert_eq!(made, fail_at - 1, "{name}: a success after a failed allocation");
            return made;
        }
        assert_eq!(status, BOWSTRING_OUT_OF_MEMORY, "{name}: failing allocation {fail_at}");
    }
    panic!("{name}: does not end");
}

/// A call that takes a stream and makes one.
fn each_wrapped(
    name: &str,
    expected: usize,
    ty: *const BowstringType,
    call: impl Fn(*mut *mut BowstringStream, *mut *mut BowstringStream) -> i32,
) {
    let made = each_allocation(name, |fail_at| {
        let (mut from, mut out) = (stream(ty), core::ptr::dangling_mut());
        let (status, made) = armed(fail_at, || call(&mut from, &mut out));
        assert_eq!(
            (from.is_null(), out.is_null()),
            (status == BOWSTRING_OK, status != BOWSTRING_OK),
            "{name}"
        );
        // SAFETY: NULL or a handle of ours.
        unsafe {
            bowstring_stream_release(from);
            bowstring_stream_release(out);
        }
        (status, made)
    });
    assert_eq!(made, expected, "{name}");
}

unsafe extern "C" fn next(ctx: *mut c_void, out: *mut ArrowDeviceArray) -> c_int {
    if GIVEN.replace(GIVEN.get() + 1) < 2 {
        // SAFETY: the struct is a released one.
        unsafe { out.write(ctx.cast::<ArrowDeviceArray>().read()) };
    }
    0
}

unsafe extern "C" fn let_go(_: *mut c_void) {
    LET_GO.set(LET_GO.get() + 1);
}

fn callbacks(ctx: *mut ArrowDeviceArray) -> BowstringStreamCallbacks {
    GIVEN.set(0);
    LET_GO.set(0);
    BowstringStreamCallbacks {
        struct_size: size_of::<BowstringStreamCallbacks>(),
        device: Device { r#type: 0, id: 0 },
        ctx: ctx.cast(),
        get_next: Some(next),
        get_next_array: None,
        get_last_error: None,
        release: Some(let_go),
    }
}

fn making(ty: *mut BowstringType) {
    // SAFETY: as above, in all of these calls.
    unsafe {
        let arrays = [array(ty, &BYTES), array(ty, &OTHERS)];
        let made = each_allocation("stream_from_arrays", |fail_at| {
            let (list, mut out) = (arrays.as_ptr().cast(), core::ptr::dangling_mut());
            let (status, made) =
                armed(fail_at, || bowstring_stream_from_arrays(null(), list, 2, &mut out, null_mut()));
            assert_eq!(out.is_null(), status != BOWSTRING_OK);
            bowstring_stream_release(out);
            (status, made)
        });
        assert_eq!(made, 3, "the list of arrays, the stream, its source");
        arrays.iter().for_each(|array| bowstring_array_release(*array));
        let made = each_allocation("stream_from_async", |fail_at| {
            let (mut handler, mut out) =
                (core::mem::zeroed::<ArrowAsyncDeviceStreamHandler>(), core::ptr::dangling_mut());
            let (status, made) =
                armed(fail_at, || bowstring_stream_from_async(4, &mut handler, &mut out, null_mut()));
            let failed = status != BOWSTRING_OK;
            assert_eq!((out.is_null(), handler.release.is_none()), (failed, failed));
            if let Some(release) = handler.release {
                // The other side fails before it starts a thread, which allocates on its own account.
                let mut from = stream(ty);
                let (status, _) = armed(1, || bowstring_stream_to_async(&mut from, &mut handler, null_mut()));
                assert_eq!(status, BOWSTRING_OUT_OF_MEMORY);
                assert!(!from.is_null() && handler.producer.is_null());
                bowstring_stream_release(from);
                release(&mut handler);
            }
            bowstring_stream_release(out);
            (status, made)
        });
        assert_eq!(made, 5, "room for tasks, what both sides share, a type, the stream, its source");
        let made = each_allocation("stream_from_callbacks", |fail_at| {
            let (mut given, mut out) = (callbacks(null_mut()), core::ptr::dangling_mut());
            let (status, made) =
                armed(fail_at, || bowstring_stream_from_callbacks(ty, &mut given, &mut out, null_mut()));
            assert_eq!(
                (out.is_null(), given.release.is_some()),
                (status != BOWSTRING_OK, status != BOWSTRING_OK)
            );
            assert_eq!(LET_GO.get(), 0);
            bowstring_stream_release(out);
            assert_eq!(LET_GO.get(), usize::from(status == BOWSTRING_OK));
            (status, made)
        });
        assert_eq!(made, 2);
        for is_host in [false, true] {
            let made = each_allocation("stream_import", |fail_at| {
                let mut from = stream(ty);
                // What is not known to be ours: the same callbacks behind another release.
                let (status, made);
                let mut out: *mut BowstringStream = core::ptr::dangling_mut();
                if is_host {
                    let mut raw: ArrowArrayStream = core::mem::zeroed();
                    assert_eq!(
                        bowstring_stream_export_host(&mut from, null(), &mut raw, null_mut()),
                        BOWSTRING_OK
                    );
                    HOST_RELEASE.set(raw.release);
                    raw.release = Some(release_host);
                    (status, made) =
                        armed(fail_at, || bowstring_stream_import_host(&mut raw, &mut out, null_mut()));
                    assert_eq!(raw.release.is_none(), status == BOWSTRING_OK);
                    bowstring_host_stream_release(&mut raw);
                } else {
                    let mut raw: ArrowDeviceArrayStream = core::mem::zeroed();
                    assert_eq!(bowstring_stream_export(&mut from, &mut raw, null_mut()), BOWSTRING_OK);
                    DEVICE_RELEASE.set(raw.release);
                    raw.release = Some(release_device);
                    (status, made) =
                        armed(fail_at, || bowstring_stream_import(&mut raw, &mut out, null_mut()));
                    assert_eq!(raw.release.is_none(), status == BOWSTRING_OK);
                    bowstring_device_stream_release(&mut raw);
                }
                assert_eq!(out.is_null(), status != BOWSTRING_OK);
                bowstring_stream_release(out);
                (status, made)
            });
            assert_eq!(made, 4, "the producer's schema, its type, the stream, its source");
        }
    }
}

thread_local! {
    static HOST_RELEASE: Cell<Option<unsafe extern "C" fn(*mut ArrowArrayStream)>> = const { Cell::new(None) };
    static DEVICE_RELEASE: Cell<Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream)>> = const { Cell::new(None) };
}

unsafe extern "C" fn release_host(raw: *mut ArrowArrayStream) {
    // SAFETY: the stream is ours.
    unsafe { HOST_RELEASE.get().expect("an export")(raw) };
}

unsafe extern "C" fn release_device(raw: *mut ArrowDeviceArrayStream) {
    // SAFETY: as above.
    unsafe { DEVICE_RELEASE.get().expect("an export")(raw) };
}

fn wrapping(ty: *mut BowstringType) {
    // SAFETY: as above, in all of these calls.
    unsafe {
        each_wrapped("stream_select", 4, ty, |from, out| {
            let columns = [1, 3];
            bowstring_stream_select(from, columns.as_ptr(), 2, out, null_mut())
        });
        each_wrapped("stream_validated", 2, ty, |from, out| {
            bowstring_stream_validated(from, null(), out, null_mut())
        });
        let cpu = Device { r#type: 0, id: 0 };
        each_wrapped("stream_to_device", 2, ty, |from, out| {
            bowstring_stream_to_device(from, cpu, null(), out, null_mut())
        });
        // A stream that ran out of memory has failed, and says so again.
        let made = each_allocation("stream_next of some columns", |fail_at| {
            let (mut from, mut narrow, mut out) = (stream(ty), null_mut(), core::ptr::dangling_mut());
            let columns = [2];
            let status = bowstring_stream_select(&mut from, columns.as_ptr(), 1, &mut narrow, null_mut());
            assert_eq!(status, BOWSTRING_OK);
            let (status, made) = armed(fail_at, || bowstring_stream_next(narrow, &mut out, null_mut()));
            assert_eq!(out.is_null(), status != BOWSTRING_OK);
            bowstring_array_release(out);
            if status != BOWSTRING_OK {
                assert_eq!(bowstring_stream_next(narrow, &mut out, null_mut()), status);
            }
            bowstring_stream_release(narrow);
            (status, made)
        });
        assert_eq!(made, 1);
        let made = each_allocation("stream_next_device_array", |fail_at| {
            let from = stream(ty);
            let mut out: ArrowDeviceArray = core::mem::zeroed();
            let (status, made) =
                armed(fail_at, || bowstring_stream_next_device_array(from, &mut out, null_mut()));
            assert_eq!(out.array.release.is_none(), status != BOWSTRING_OK);
            bowstring_device_array_release(&mut out);
            bowstring_stream_release(from);
            (status, made)
        });
        assert_eq!(made, 1);
        let made = each_allocation("stream_collect", |fail_at| {
            let (mut from, mut out) = (stream(ty), core::ptr::dangling_mut());
            let (status, made) =
                armed(fail_at, || bowstring_stream_collect(&mut from, null(), &mut out, null_mut()));
            assert_eq!((from.is_null(), out.is_null()), (status == BOWSTRING_OK, status != BOWSTRING_OK));
            bowstring_array_release(out);
            bowstring_stream_release(from);
            (status, made)
        });
        assert!(made > 20, "{made}");
    }
}

/// What a consumer of our struct sees: one allocation for what is shown, none for what was built and goes on as it is.
fn consuming(ty: *mut BowstringType) {
    // SAFETY: as above, in all of these calls.
    unsafe {
        let made = each_allocation("get_next", |fail_at| {
            let mut from = stream(ty);
            let mut raw: ArrowDeviceArrayStream = core::mem::zeroed();
            let (exported, made) = armed(1, || bowstring_stream_export(&mut from, &mut raw, null_mut()));
            assert_eq!((exported, made), (BOWSTRING_OK, 0), "exporting allocates nothing");
            let mut out: ArrowDeviceArray = core::mem::zeroed();
            let (code, made) = armed(fail_at, || raw.get_next.expect("a callback")(&mut raw, &mut out));
            assert_eq!(out.array.release.is_none(), code != 0);
            bowstring_device_array_release(&mut out);
            if code != 0 {
                let text = raw.get_last_error.expect("a callback")(&mut raw);
                assert!(CStr::from_ptr(text).to_bytes().starts_with(b"OUT_OF_MEMORY in batch 0: "));
            }
            bowstring_device_stream_release(&mut raw);
            (if code == libc::ENOMEM { BOWSTRING_OUT_OF_MEMORY } else { code }, made)
        });
        assert_eq!(made, 1);
        let made = each_allocation("get_schema", |fail_at| {
            let (mut from, mut raw): (_, ArrowArrayStream) = (stream(ty), core::mem::zeroed());
            assert_eq!(bowstring_stream_export_host(&mut from, null(), &mut raw, null_mut()), BOWSTRING_OK);
            let mut out: ArrowSchema = core::mem::zeroed();
            let (code, made) = armed(fail_at, || raw.get_schema.expect("a callback")(&mut raw, &mut out));
            bowstring_schema_release(&mut out);
            assert_eq!(raw.get_last_error.expect("a callback")(&mut raw).is_null(), code == 0);
            // It is no failure of the stream.
            let mut array: ArrowArray = core::mem::zeroed();
            assert_eq!(raw.get_next.expect("a callback")(&mut raw, &mut array), 0);
            bowstring_host_array_release(&mut array);
            bowstring_host_stream_release(&mut raw);
            (if code == libc::ENOMEM { BOWSTRING_OUT_OF_MEMORY } else { code }, made)
        });
        assert_eq!(made, 1);
        for second in [false, true] {
            let made = each_allocation("get_next of callbacks", |fail_at| {
                let (mut first, mut other) = (raw_array(ty, &BYTES), raw_array(ty, &BYTES));
                let mut given = callbacks(&mut first);
                let (mut from, mut raw): (_, ArrowDeviceArrayStream) = (null_mut(), core::mem::zeroed());
                let status = bowstring_stream_from_callbacks(ty, &mut given, &mut from, null_mut());
                assert_eq!(status, BOWSTRING_OK);
                assert_eq!(bowstring_stream_export(&mut from, &mut raw, null_mut()), BOWSTRING_OK);
                let mut out: ArrowDeviceArray = core::mem::zeroed();
                let get_next = raw.get_next.expect("a callback");
                if second {
                    assert_eq!(get_next(&mut raw, &mut out), 0);
                    bowstring_device_array_release(&mut out);
                    // The producer has its address.
                    core::ptr::write(&raw mut first, core::ptr::read(&other));
                    other.array.release = None;
                }
                let (code, made) = armed(fail_at, || get_next(&mut raw, &mut out));
                assert_eq!(out.array.release.is_none(), code != 0);
                bowstring_device_array_release(&mut out);
                bowstring_device_array_release(&mut other);
                bowstring_device_stream_release(&mut raw);
                (if code == libc::ENOMEM { BOWSTRING_OUT_OF_MEMORY } else { code }, made)
            });
            assert_eq!(made, usize::from(!second), "memory to check them in, once for the stream");
        }
    }
}

/// Gives one array, and then panics: when it is asked, and when it is let go.
struct Panics(Option<bowstring_core::array::Array>, bool);

impl Source for Panics {
    fn next(&mut self, _: &mut Report<'_>) -> Result<Option<bowstring_core::array::Array>> {
        match self.0.take() {
            Some(array) => Ok(Some(array)),
            None => panic!("a source that panics"),
        }
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        LET_GO.set(LET_GO.get() + 1);
        assert!(!self.1, "a source that panics when it is let go");
    }
}

/// Public case A9: a panic in a producer ends its stream, and nothing else.
fn panicking(ty: *mut BowstringType) {
    std::panic::set_hook(Box::new(|_| {}));
    for ends_badly in [false, true] {
        for exported in [false, true] {
            LET_GO.set(0);
            let kind = capture(|report| Type::parse(TEXT.to_bytes(), report)).expect("a type");
            let made = array(ty, &BYTES);
            // SAFETY: the handle is given to the source.
            let given = unsafe {
                bowstring_core::array::Array::from_raw(
                    core::ptr::NonNull::new(made.cast()).expect("a handle"),
                )
            };
            let given = core::mem::ManuallyDrop::into_inner(given.expect("ours"));
            let source = || Panics(Some(given), ends_badly);
            let stream = capture(|report| Stream::new(&kind, Device::CPU, report, source)).expect("a stream");
            let mut stream: *mut BowstringStream = stream.into_raw().cast().as_ptr();
            // SAFETY: as above, in all of these calls.
            unsafe {
                if exported {
                    let mut raw: ArrowDeviceArrayStream = core::mem::zeroed();
                    assert_eq!(bowstring_stream_export(&mut stream, &mut raw, null_mut()), BOWSTRING_OK);
                    let get_next = raw.get_next.expect("a callback");
                    let mut out: ArrowDeviceArray = core::mem::zeroed();
                    assert_eq!(get_next(&mut raw, &mut out), 0);
                    bowstring_device_array_release(&mut out);
                    for _ in 0..3 {
                        assert_eq!(get_next(&mut raw, &mut out), libc::EIO);
                        assert!(out.array.release.is_none());
                        let text = raw.get_last_error.expect("a callback")(&mut raw);
                        assert!(CStr::from_ptr(text).to_bytes().starts_with(b"INTERNAL in batch 1: "));
                    }
                    bowstring_device_stream_release(&mut raw);
                    assert!(raw.release.is_none());
                } else {
                    let (mut out, mut error) = (null_mut(), ErrorRecord::empty());
                    assert_eq!(bowstring_stream_next(stream, &mut out, &mut error), BOWSTRING_OK);
                    bowstring_array_release(out);
                    for _ in 0..3 {
                        assert_eq!(bowstring_stream_next(stream, &mut out, &mut error), BOWSTRING_INTERNAL);
                        assert_eq!((error.batch, out.is_null()), (1, true));
                    }
                    bowstring_stream_release(stream);
                }
            }
            assert_eq!(LET_GO.get(), 1);
        }
    }
    let _ = std::panic::take_hook();
}

#[test]
fn every_allocation_may_fail_and_every_source_panic() {
    let before = live();
    let ty = type_of(TEXT);
    making(ty);
    wrapping(ty);
    consuming(ty);
    // What panics when it is let go keeps its memory, so the streams of that kind are not compared.
    panicking(ty);
    let after = live();
    // SAFETY: as above.
    unsafe { bowstring_type_release(ty) };
    assert_eq!((before[1], before[2], before[3]), (after[1], after[2], after[3]));
}
