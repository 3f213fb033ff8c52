//! Every call that allocates, with each of its allocations failed in turn: OUT_OF_MEMORY or success, nothing leaked, and
//! the inputs still the caller's. And how many allocations each call makes.
//!
//! One test, so that nothing else allocates meanwhile.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may allocate and panic"
)]

#[path = "support/allocator.rs"]
mod allocator;

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use std::cell::Cell;

use allocator::{TestAllocator, armed, live_bytes};
use bowstring::array::*;
use bowstring::buffer::*;
use bowstring::error::{BOWSTRING_OK, BOWSTRING_OUT_OF_MEMORY};
use bowstring::process::{BowstringLiveCounts, bowstring_live_counts};
use bowstring::produce::bowstring_device_array_from_buffers;
use bowstring::raw::*;
use bowstring::schema::*;
use bowstring::tensor::*;
use bowstring::validate::*;
use bowstring_core::abi::{ArrowArray, ArrowDeviceArray, ArrowSchema, Device};
use bowstring_core::error::ErrorRecord;
use bowstring_core::memory::OwnedBuffer;
use bowstring_core::tree::{Facts, Placement};

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

thread_local! {
    static LET_GO: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" fn let_go(_: *mut c_void) {
    LET_GO.set(LET_GO.get() + 1);
}

const TEXT: &core::ffi::CStr = c"struct<a: int32, d: dictionary<int8, utf8>, l: list<float64>, v: utf8_view>";
const N_OWNERS: usize = 8;

static INTS: [i32; 3] = [1, 2, 3];
static CODES: [i8; 3] = [0, 1, 0];
static OFFSETS: [i32; 4] = [0, 1, 2, 4];
static FLOATS: [f64; 4] = [0.5, 1.5, 2.5, 3.5];
static BYTES: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyzabcdef";
static VIEWS: [u64; 6] = [0; 6];

fn type_of(text: &core::ffi::CStr) -> *mut BowstringType {
    let (mut ty, mut error) = (null_mut(), ErrorRecord::empty());
    // SAFETY: every pointer leads to what the function asks for; so it is in all of this file.
    let status = unsafe { bowstring_type_parse(text.as_ptr(), &mut ty, &mut error) };
    assert_eq!(status, BOWSTRING_OK, "{error}");
    ty
}

fn owned<T>(data: &'static [T]) -> OwnedBuffer {
    let size = i64::try_from(size_of_val(data)).unwrap_or(0);
    // SAFETY: the data is static, and the owner needs nothing.
    unsafe { OwnedBuffer::new(data.as_ptr().cast(), size, null_mut(), Some(let_go)) }
}

fn absent() -> OwnedBuffer {
    // SAFETY: no memory is described.
    unsafe { OwnedBuffer::new(null(), 0, null_mut(), None) }
}

fn nodes() -> [Facts; 7] {
    let facts = |length, n_buffers| Facts { length, null_count: 0, offset: 0, n_buffers };
    [facts(3, 1), facts(3, 2), facts(3, 2), facts(2, 3), facts(3, 2), facts(4, 2), facts(3, 4)]
}

fn buffers() -> [OwnedBuffer; 16] {
    [
        absent(),
        absent(),
        owned(&INTS),
        absent(),
        owned(&CODES),
        absent(),
        owned(&OFFSETS),
        owned(&BYTES),
        absent(),
        owned(&OFFSETS),
        absent(),
        owned(&FLOATS),
        absent(),
        owned(&VIEWS),
        owned(&BYTES),
        absent(),
    ]
}

fn device_array(ty: *const BowstringType) -> ArrowDeviceArray {
    let (nodes, mut buffers, mut error) = (nodes(), buffers(), ErrorRecord::empty());
    // SAFETY: zeroes are a released struct.
    let mut out: ArrowDeviceArray = unsafe { core::mem::zeroed() };
    // SAFETY: as above.
    let status = unsafe {
        let (b, n) = (buffers.as_mut_ptr(), buffers.len());
        bowstring_device_array_from_buffers(ty, nodes.as_ptr(), 7, b, n, null_mut(), &mut out, &mut error)
    };
    assert_eq!(status, BOWSTRING_OK, "{error}");
    out
}

fn array(ty: *const BowstringType) -> *mut BowstringArray {
    let (mut raw, mut out, mut error) = (device_array(ty), null_mut(), ErrorRecord::empty());
    // SAFETY: as above.
    let status = unsafe { bowstring_array_import_typed(&mut raw, ty, &mut out, &mut error) };
    assert_eq!(status, BOWSTRING_OK, "{error}");
    out
}

fn schema(ty: *const BowstringType) -> ArrowSchema {
    // SAFETY: zeroes are a released struct.
    let mut out: ArrowSchema = unsafe { core::mem::zeroed() };
    // SAFETY: as above.
    assert_eq!(unsafe { bowstring_type_export(ty, &mut out, null_mut()) }, BOWSTRING_OK);
    out
}

fn live() -> [usize; 4] {
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
    [counts.types, counts.arrays, counts.buffers, counts.blocks]
}

/// Runs `attempt` with each allocation failed in turn and then with none; it makes the call inside `armed`, undoes what a
/// success made, and checks that a failure took nothing. Returns how many allocations a success makes.
fn each_allocation(name: &str, attempt: impl Fn(usize) -> (i32, usize)) -> usize {
    for fail_at in 1..100 {
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

/// A call that writes an array handle.
fn each_derived(
    name: &str,
    from: *const BowstringArray,
    call: impl Fn(*const BowstringArray, *mut *mut BowstringArray) -> i32,
) {
    let made = each_allocation(name, |fail_at| {
        let mut out = core::ptr::dangling_mut();
        let (status, made) = armed(fail_at, || call(from, &mut out));
        assert_eq!(out.is_null(), status != BOWSTRING_OK, "{name}");
        // SAFETY: NULL or a handle of ours.
        unsafe { bowstring_array_release(out) };
        (status, made)
    });
    assert_eq!(made, 1, "{name}");
}

fn types(ty: *mut BowstringType) {
    let make = |name: &str, call: &dyn Fn(*mut *mut BowstringType) -> i32| {
        let made = each_allocation(name, |fail_at| {
            let mut out = core::ptr::dangling_mut();
            let (status, made) = armed(fail_at, || call(&mut out));
            assert_eq!(out.is_null(), status != BOWSTRING_OK, "{name}");
            // SAFETY: NULL or a handle of ours.
            unsafe { bowstring_type_release(out) };
            (status, made)
        });
        assert_eq!(made, 1, "{name}");
    };
    // SAFETY: as above, in all of these calls.
    unsafe {
        make("type_parse", &|out| bowstring_type_parse(TEXT.as_ptr(), out, null_mut()));
        let mut borrowed = schema(ty);
        make("type_copy_from", &|out| bowstring_type_copy_from(&borrowed, out, null_mut()));
        bowstring_schema_release(&mut borrowed);
        let children = [ty.cast_const(), ty.cast_const()];
        make("type_new", &|out| {
            let (format, name) = (c"+s".as_ptr(), c"pair".as_ptr());
            bowstring_type_new(format, name, 0, children.as_ptr(), 2, null(), null(), 0, out, null_mut())
        });
        let made = each_allocation("type_import", |fail_at| {
            let (mut given, mut out) = (schema(ty), null_mut());
            let (status, made) = armed(fail_at, || bowstring_type_import(&mut given, &mut out, null_mut()));
            assert_eq!(given.release.is_none(), status == BOWSTRING_OK, "type_import");
            bowstring_schema_release(&mut given);
            bowstring_type_release(out);
            (status, made)
        });
        assert_eq!(made, 1, "type_import");
        let made = each_allocation("type_export", |fail_at| {
            let mut out: ArrowSchema = core::mem::zeroed();
            let (status, made) = armed(fail_at, || bowstring_type_export(ty, &mut out, null_mut()));
            bowstring_schema_release(&mut out);
            (status, made)
        });
        assert_eq!(made, 1, "type_export");
    }
}

fn produce(ty: *mut BowstringType) {
    let made = each_allocation("device_array_from_buffers", |fail_at| {
        LET_GO.set(0);
        let (nodes, mut buffers) = (nodes(), buffers());
        // SAFETY: the owner needs nothing.
        let mut placement = Placement::default()
            .with_owner(unsafe { bowstring_core::memory::Owner::new(null_mut(), Some(let_go)) });
        // SAFETY: zeroes are a released struct.
        let mut out: ArrowDeviceArray = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        let (status, made) = armed(fail_at, || unsafe {
            let (b, n) = (buffers.as_mut_ptr(), buffers.len());
            let p = &mut placement;
            bowstring_device_array_from_buffers(ty, nodes.as_ptr(), 7, b, n, p, &mut out, null_mut())
        });
        let kept = buffers.iter().filter(|buffer| buffer.has_owner()).count();
        assert_eq!(kept, if status == BOWSTRING_OK { 0 } else { N_OWNERS });
        assert_eq!(placement.has_owner(), status != BOWSTRING_OK);
        assert_eq!(LET_GO.get(), 0);
        // SAFETY: the struct is ours or released.
        unsafe { bowstring_device_array_release(&mut out) };
        assert_eq!(LET_GO.get(), if status == BOWSTRING_OK { N_OWNERS + 1 } else { 0 });
        (status, made)
    });
    assert_eq!(made, 1);
}

fn imports(ty: *mut BowstringType) {
    // SAFETY: as above, in all of these calls.
    unsafe {
        let made = each_allocation("array_import", |fail_at| {
            let (mut raw, mut given, mut out) = (device_array(ty), schema(ty), null_mut());
            let (status, made) =
                armed(fail_at, || bowstring_array_import(&mut raw, &mut given, &mut out, null_mut()));
            let taken = status == BOWSTRING_OK;
            assert_eq!((raw.array.release.is_none(), given.release.is_none()), (taken, taken));
            bowstring_device_array_release(&mut raw);
            bowstring_schema_release(&mut given);
            bowstring_array_release(out);
            (status, made)
        });
        assert_eq!(made, 2, "array_import: one for the array, one for its type");
        let made = each_allocation("array_import_host", |fail_at| {
            let (mut raw, mut given, mut out) = (device_array(ty).array, schema(ty), null_mut());
            let (status, made) =
                armed(fail_at, || bowstring_array_import_host(&mut raw, &mut given, &mut out, null_mut()));
            assert_eq!(raw.release.is_none(), status == BOWSTRING_OK);
            bowstring_host_array_release(&mut raw);
            bowstring_schema_release(&mut given);
            bowstring_array_release(out);
            (status, made)
        });
        assert_eq!(made, 2);
        let made = each_allocation("array_import_typed", |fail_at| {
            let (mut raw, mut out) = (device_array(ty), null_mut());
            let (status, made) =
                armed(fail_at, || bowstring_array_import_typed(&mut raw, ty, &mut out, null_mut()));
            assert_eq!(raw.array.release.is_none(), status == BOWSTRING_OK);
            bowstring_device_array_release(&mut raw);
            bowstring_array_release(out);
            (status, made)
        });
        assert_eq!(made, 1);
        let made = each_allocation("array_import_host_typed", |fail_at| {
            let (mut raw, mut out) = (device_array(ty).array, null_mut());
            let (status, made) =
                armed(fail_at, || bowstring_array_import_host_typed(&mut raw, ty, &mut out, null_mut()));
            bowstring_host_array_release(&mut raw);
            bowstring_array_release(out);
            (status, made)
        });
        assert_eq!(made, 1);
        let mut raw = device_array(ty);
        let made = each_allocation("array_import_borrowed", |fail_at| {
            LET_GO.set(0);
            let mut out = null_mut();
            let (status, made) = armed(fail_at, || {
                bowstring_array_import_borrowed(&raw, ty, null_mut(), Some(let_go), &mut out, null_mut())
            });
            assert_eq!(LET_GO.get(), 0);
            bowstring_array_release(out);
            assert_eq!(LET_GO.get(), usize::from(status == BOWSTRING_OK));
            (status, made)
        });
        assert_eq!(made, 1);
        bowstring_device_array_release(&mut raw);
    }
}

unsafe extern "C" fn copy(_: *mut c_void, dst: *mut c_void, src: *const c_void, n: usize) -> c_int {
    // SAFETY: the library asks for memory of the test's own.
    unsafe { core::ptr::copy_nonoverlapping(src.cast::<u8>(), dst.cast::<u8>(), n) };
    0
}

fn arrays(ty: *mut BowstringType) {
    let from = array(ty);
    let mut dictionary = null_mut();
    // SAFETY: as above, in all of these calls.
    unsafe {
        assert_eq!(bowstring_array_child(from, 1, &mut dictionary, null_mut()), BOWSTRING_OK);
        each_derived("array_child", from, |a, out| bowstring_array_child(a, 2, out, null_mut()));
        each_derived("array_dictionary", dictionary, |a, out| bowstring_array_dictionary(a, out, null_mut()));
        each_derived("array_slice", from, |a, out| bowstring_array_slice(a, 1, 2, out, null_mut()));
        each_derived("array_resolve_sizes", from, |a, out| {
            bowstring_array_resolve_sizes(a, null(), out, null_mut())
        });
        each_derived("array_resolve_sizes_with", from, |a, out| {
            bowstring_array_resolve_sizes_with(a, Some(copy), null_mut(), out, null_mut())
        });
        LET_GO.set(0);
        each_derived("array_with_owner", from, |a, out| {
            assert_eq!(LET_GO.get(), 0);
            bowstring_array_with_owner(a, null_mut(), Some(let_go), out, null_mut())
        });
        assert_eq!(LET_GO.get(), 1);
        for with_schema in [false, true] {
            let made = each_allocation("array_export", |fail_at| {
                let mut out: ArrowDeviceArray = core::mem::zeroed();
                let mut out_schema: ArrowSchema = core::mem::zeroed();
                let to = if with_schema { &raw mut out_schema } else { null_mut() };
                let (status, made) =
                    armed(fail_at, || bowstring_array_export(from, &mut out, to, null_mut()));
                let gone = (out.array.release.is_none(), out_schema.release.is_none());
                let failed = status != BOWSTRING_OK;
                assert_eq!(gone, (failed, failed || !with_schema));
                bowstring_device_array_release(&mut out);
                bowstring_schema_release(&mut out_schema);
                (status, made)
            });
            assert_eq!(made, 1 + usize::from(with_schema));
        }
        let made = each_allocation("array_export_host", |fail_at| {
            let mut out: ArrowArray = core::mem::zeroed();
            let (status, made) = armed(fail_at, || {
                bowstring_array_export_host(from, null(), &mut out, null_mut(), null_mut())
            });
            bowstring_host_array_release(&mut out);
            (status, made)
        });
        assert_eq!(made, 1);
        bowstring_array_release(dictionary);
        bowstring_array_release(from);
    }
}

fn buffer_calls(ty: *mut BowstringType) {
    let from = array(ty);
    let make = |name: &str, expected: usize, call: &dyn Fn(*mut *mut BowstringBuffer) -> i32| {
        let made = each_allocation(name, |fail_at| {
            let mut out = core::ptr::dangling_mut();
            let (status, made) = armed(fail_at, || call(&mut out));
            assert_eq!(out.is_null(), status != BOWSTRING_OK, "{name}");
            // SAFETY: NULL or a handle of ours.
            unsafe { bowstring_buffer_release(out) };
            (status, made)
        });
        assert_eq!(made, expected, "{name}");
    };
    // SAFETY: as above, in all of these calls.
    unsafe {
        make("array_buffer", 1, &|out| bowstring_array_buffer(from, 7, out, null_mut()));
        let mut whole = null_mut();
        assert_eq!(bowstring_array_buffer(from, 7, &mut whole, null_mut()), BOWSTRING_OK);
        make("buffer_slice", 1, &|out| bowstring_buffer_slice(whole, 1, 2, out, null_mut()));
        bowstring_buffer_release(whole);
        make("buffer_allocate", 2, &|out| {
            let mut data = null_mut();
            let status = bowstring_buffer_allocate(Device::CPU, 100, null(), out, &mut data, null_mut());
            assert_eq!(data.is_null(), status != BOWSTRING_OK);
            status
        });
        LET_GO.set(0);
        make("buffer_wrap", 1, &|out| {
            let mut memory = owned(&INTS);
            let status = bowstring_buffer_wrap(&mut memory, null_mut(), out, null_mut());
            assert_eq!(memory.has_owner(), status != BOWSTRING_OK);
            status
        });
        assert_eq!(LET_GO.get(), 1);
        bowstring_array_release(from);
    }
}

fn raw_structs() {
    macro_rules! raw {
        ($($new:ident $free:ident),*) => {$(
            let made = each_allocation(stringify!($new), |fail_at| {
                let (x, made) = armed(fail_at, || $new());
                let status = if x.is_null() { BOWSTRING_OUT_OF_MEMORY } else { BOWSTRING_OK };
                // SAFETY: NULL or a struct of ours.
                unsafe { $free(x) };
                (status, made)
            });
            assert_eq!(made, 1);
        )*};
    }
    raw!(
        bowstring_schema_new bowstring_schema_free,
        bowstring_host_array_new bowstring_host_array_free,
        bowstring_device_array_new bowstring_device_array_free,
        bowstring_host_stream_new bowstring_host_stream_free,
        bowstring_device_stream_new bowstring_device_stream_free
    );
}

/// A check that makes nothing.
fn each_check(name: &str, expected: usize, call: impl Fn() -> i32) {
    assert_eq!(each_allocation(name, |fail_at| armed(fail_at, &call)), expected, "{name}");
}

fn validation(ty: *mut BowstringType) {
    let from = array(ty);
    let mut raw = device_array(ty);
    let mut told = schema(ty);
    // SAFETY: zeroes are the defaults.
    let mut options: BowstringValidateOptions = unsafe { core::mem::zeroed() };
    options.struct_size = size_of::<BowstringValidateOptions>();
    let cudf = BowstringValidateOptions { profile: BOWSTRING_PROFILE_CUDF_DEVICE, as_table: 1, ..options };
    // SAFETY: as above, in all of these calls.
    unsafe {
        each_check("array_validate", 0, || bowstring_array_validate(from, &options, null_mut()));
        each_check("device_array_validate", 1, || {
            bowstring_device_array_validate(&raw, ty, &options, null_mut())
        });
        each_check("schema_validate", 0, || bowstring_schema_validate(&told, &options, null_mut()));
        each_check("schema_validate for cuDF", 1, || bowstring_schema_validate(&told, &cudf, null_mut()));
        let conform = |name: &str, flags: u32, expected: usize| {
            let made = each_allocation(name, |fail_at| {
                let mut out = core::ptr::dangling_mut();
                let (status, made) =
                    armed(fail_at, || bowstring_array_conform(from, 0, null(), flags, &mut out, null_mut()));
                assert_eq!(out.is_null(), status != BOWSTRING_OK, "{name}");
                bowstring_array_release(out);
                (status, made)
            });
            assert_eq!(made, expected, "{name}");
        };
        conform("array_conform", BOWSTRING_CONFORM_ALLOW_COPY, CONFORM_SHARED);
        conform(
            "array_conform to offsets",
            BOWSTRING_CONFORM_ALLOW_COPY | BOWSTRING_CONFORM_TO_OFFSETS,
            CONFORM_OFFSETS,
        );
        conform(
            "array_conform to views",
            BOWSTRING_CONFORM_ALLOW_COPY | BOWSTRING_CONFORM_TO_VIEWS,
            CONFORM_VIEWS,
        );
        bowstring_schema_release(&mut told);
        bowstring_device_array_release(&mut raw);
        bowstring_array_release(from);
    }
}

fn tensors(ty: *mut BowstringType) {
    let from = array(ty);
    let mut numbers = null_mut();
    // SAFETY: as above, in all of these calls.
    unsafe {
        assert_eq!(bowstring_array_child(from, 0, &mut numbers, null_mut()), BOWSTRING_OK);
        let export = || {
            let mut out = null_mut();
            assert_eq!(bowstring_array_to_tensor(numbers, null(), &mut out, null_mut()), BOWSTRING_OK);
            out
        };
        let made = each_allocation("array_to_tensor", |fail_at| {
            let mut out = core::ptr::dangling_mut();
            let (status, made) =
                armed(fail_at, || bowstring_array_to_tensor(numbers, null(), &mut out, null_mut()));
            assert_eq!(out.is_null(), status != BOWSTRING_OK);
            bowstring_tensor_release(out);
            (status, made)
        });
        assert_eq!(made, 1);
        let made = each_allocation("array_from_tensor", |fail_at| {
            let (mut tensor, mut out) = (export(), core::ptr::dangling_mut());
            let (status, made) = armed(fail_at, || {
                bowstring_array_from_tensor(&mut tensor, null(), null(), &mut out, null_mut())
            });
            // What fails leaves the tensor the caller's.
            assert_eq!((out.is_null(), tensor.is_null()), (status != BOWSTRING_OK, status == BOWSTRING_OK));
            bowstring_array_release(out);
            bowstring_tensor_release(tensor);
            (status, made)
        });
        assert_eq!(made, FROM_TENSOR);
        let mut options: BowstringTensorOptions = core::mem::zeroed();
        options.struct_size = size_of::<BowstringTensorOptions>();
        options.flags = BOWSTRING_TENSOR_DROP_READ_ONLY;
        let made = each_allocation("tensor_to_legacy", |fail_at| {
            let (mut tensor, mut out) = (export(), core::ptr::dangling_mut());
            let (status, made) =
                armed(fail_at, || bowstring_tensor_to_legacy(&mut tensor, &options, &mut out, null_mut()));
            assert_eq!((out.is_null(), tensor.is_null()), (status != BOWSTRING_OK, status == BOWSTRING_OK));
            bowstring_legacy_tensor_release(out);
            bowstring_tensor_release(tensor);
            (status, made)
        });
        assert_eq!(made, 1);
        let made = each_allocation("tensor_from_legacy", |fail_at| {
            let (mut tensor, mut legacy, mut out) = (export(), null_mut(), core::ptr::dangling_mut());
            assert_eq!(
                bowstring_tensor_to_legacy(&mut tensor, &options, &mut legacy, null_mut()),
                BOWSTRING_OK
            );
            let (status, made) =
                armed(fail_at, || bowstring_tensor_from_legacy(&mut legacy, null(), &mut out, null_mut()));
            assert_eq!((out.is_null(), legacy.is_null()), (status != BOWSTRING_OK, status == BOWSTRING_OK));
            bowstring_tensor_release(out);
            bowstring_legacy_tensor_release(legacy);
            (status, made)
        });
        assert_eq!(made, 1);
        bowstring_array_release(numbers);
        bowstring_array_release(from);
    }
}

/// A type, an array, a handle on it, and one that keeps the tensor.
const FROM_TENSOR: usize = 4;

/// An export and a handle on it.
const CONFORM_SHARED: usize = 2;
/// These, the lists of parts, new offsets and data with an owner each, and another type, array and handle.
const CONFORM_OFFSETS: usize = 15;
/// As above, with views and sizes.
const CONFORM_VIEWS: usize = 17;

#[test]
fn every_allocation_may_fail() {
    let before = live();
    let ty = type_of(TEXT);
    types(ty);
    produce(ty);
    imports(ty);
    arrays(ty);
    buffer_calls(ty);
    raw_structs();
    validation(ty);
    tensors(ty);
    // SAFETY: as above.
    unsafe { bowstring_type_release(ty) };
    assert_eq!(live(), before);
}
