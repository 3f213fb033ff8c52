//! A type is one allocation, and none when it is refused in the first pass. One test, so that nothing else allocates.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, reason = "tests may fail hard")]

mod types_support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use bowstring_core::abi::SchemaView;
use bowstring_core::error::{Report, Status, TextBuffer};
use bowstring_core::types::Type;
use types_support::{Schemas, encode, raw};

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// The number of allocations that still succeed.
static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);

// SAFETY: all memory is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::SeqCst);
        if LEFT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err() {
            return core::ptr::null_mut();
        }
        LIVE.fetch_add(1, Ordering::SeqCst);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What `f` returns, and how often it allocated.
fn count<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = CALLS.load(Ordering::SeqCst);
    let result = f();
    (result, CALLS.load(Ordering::SeqCst) - before)
}

#[test]
fn a_type_is_one_allocation() {
    let mut schemas = Schemas::default();
    let item = schemas.field("tsu:UTC", "item", &[]);
    schemas.metadata(item, &encode(&[(b"k", b"v")]), 1);
    let list = schemas.field("+l", "a list", &[item]);
    let coded = schemas.field("c", "d", &[]);
    raw(coded).dictionary = schemas.field("u", "", &[]);
    let root = schemas.field("+s", "", &[list, coded]);
    // SAFETY: the schemas are well formed and live to the end of the test.
    let view = || unsafe { SchemaView::new(raw(root)) };
    let live = LIVE.load(Ordering::SeqCst);

    let (imported, calls) = count(|| Type::from_schema(view(), &mut Report::silent()).unwrap());
    assert_eq!(calls, 1);
    let (parts, calls) = count(|| [imported.child(0).unwrap(), imported.at(4).unwrap(), imported.clone()]);
    assert_eq!(calls, 0);
    let (built, calls) =
        count(|| Type::build(b"+s", b"b", 0, &parts, None, None, &mut Report::silent()).unwrap());
    assert_eq!(calls, 1);
    let text =
        b"struct<a: map<utf8, decimal128(5, 2)>, b: dense_union(3, 5)<x: int8, y: timestamp(s, \"UTC\")>>";
    let (parsed, calls) = count(|| Type::parse(text, &mut Report::silent()).unwrap());
    assert_eq!(calls, 1);
    let mut printed = [0; 200];
    let ((), calls) = count(|| parsed.to_text(&mut TextBuffer::over(&mut printed)).unwrap());
    assert_eq!(calls, 0);

    raw(item).format = c"tsu".as_ptr();
    let (status, calls) = count(|| Type::from_schema(view(), &mut Report::silent()).unwrap_err().status());
    assert_eq!((status, calls), (Status::InvalidData, 0));
    raw(item).format = c"tsu:".as_ptr();

    LEFT.store(0, Ordering::SeqCst);
    let refused = [
        Type::from_schema(view(), &mut Report::silent()).map(drop),
        Type::build(b"+s", b"b", 0, &parts, None, None, &mut Report::silent()).map(drop),
        Type::parse(text, &mut Report::silent()).map(drop),
    ];
    LEFT.store(usize::MAX, Ordering::SeqCst);
    for result in refused {
        assert_eq!(result.unwrap_err().status(), Status::OutOfMemory);
    }
    drop((imported, parts, built, parsed));
    assert_eq!(LIVE.load(Ordering::SeqCst), live);
}
