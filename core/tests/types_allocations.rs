//! A type is one allocation, and none when it is refused in the first pass.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    clippy::disallowed_macros,
    reason = "tests may fail hard, and have a thread of their own to count"
)]

mod types_support;
#[path = "../../tests/support/allocator.rs"]
mod allocator;

use allocator::{TestAllocator, armed, live_bytes};
use bowstring_core::abi::SchemaView;
use bowstring_core::error::{Report, Status, TextBuffer};
use bowstring_core::types::Type;
use types_support::{Schemas, encode, raw};

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

/// What `f` returns, and how often it allocated.
fn count<T>(f: impl FnOnce() -> T) -> (T, usize) {
    armed(0, f)
}

/// What the status of `f` is with no memory at all for its one allocation.
fn refused(f: impl FnOnce() -> bowstring_core::error::Result<Type>) -> (Option<Status>, usize) {
    let (result, calls) = armed(1, f);
    (result.err().map(|failure| failure.status()), calls)
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
    let live = live_bytes();

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

    let none = (Some(Status::OutOfMemory), 1);
    assert_eq!(refused(|| Type::from_schema(view(), &mut Report::silent())), none);
    assert_eq!(refused(|| Type::build(b"+s", b"b", 0, &parts, None, None, &mut Report::silent())), none);
    assert_eq!(refused(|| Type::parse(text, &mut Report::silent())), none);
    drop((imported, parts, built, parsed));
    assert_eq!(live_bytes(), live);
}
