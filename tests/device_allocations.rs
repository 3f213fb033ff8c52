//! Calls that concern devices, with each of their allocations failed in turn: OUT_OF_MEMORY or success, nothing leaked here or
//! on the device, and the inputs still the caller's. And how many allocations each call makes.
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

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use allocator::{TestAllocator, armed, live_bytes};
use bowstring::array::*;
use bowstring::buffer::*;
use bowstring::device::*;
use bowstring::error::{BOWSTRING_OK, BOWSTRING_OUT_OF_MEMORY};
use bowstring::process::{BowstringLiveCounts, bowstring_live_counts};
use bowstring::produce::bowstring_device_array_from_buffers;
use bowstring::raw::*;
use bowstring::schema::*;
use bowstring_core::abi::{ArrowDeviceArray, Device};
use bowstring_core::device::{DeviceBackend, Sync, SyncMode};
use bowstring_core::memory::OwnedBuffer;
use bowstring_core::tree::Facts;

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

/// Works at once and has no queues; has events, which are done when they are recorded.
const PLAIN: Device = Device { r#type: 100, id: 0 };
const QUEUED: Device = Device { r#type: 101, id: 0 };

/// Pieces of memory and events that are alive on the devices.
static ALIVE: AtomicI64 = AtomicI64::new(0);
static NEXT_EVENT: AtomicI64 = AtomicI64::new(1);

fn layout(size: i64) -> Layout {
    Layout::from_size_align(usize::try_from(size).unwrap_or(64), 64).unwrap_or(Layout::new::<u64>())
}

unsafe extern "C" fn allocate(
    _: *mut c_void,
    _: i64,
    size: i64,
    _: *mut c_void,
    data: *mut *mut c_void,
) -> i32 {
    ALIVE.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the library asks for more than nothing, and passes a pointer to write to; so it is in all of these functions.
    unsafe { data.write(System.alloc(layout(size)).cast()) };
    0
}

unsafe extern "C" fn free(_: *mut c_void, _: i64, data: *mut c_void, size: i64, _: *mut c_void) -> i32 {
    ALIVE.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { System.dealloc(data.cast(), layout(size)) };
    0
}

unsafe extern "C" fn copy(
    _: *mut c_void,
    _: i64,
    to: *mut c_void,
    from: *const c_void,
    n: i64,
    _: *mut c_void,
) -> i32 {
    // SAFETY: as above.
    unsafe { core::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), usize::try_from(n).unwrap_or(0)) };
    0
}

unsafe extern "C" fn drain(_: *mut c_void, _: i64, _: *mut c_void) -> i32 {
    0
}

unsafe extern "C" fn record(_: *mut c_void, _: i64, _: *mut c_void, event: *mut *mut c_void) -> i32 {
    ALIVE.fetch_add(1, Ordering::Relaxed);
    let number = usize::try_from(NEXT_EVENT.fetch_add(1, Ordering::Relaxed)).unwrap_or(1);
    // SAFETY: as above.
    unsafe { event.write(core::ptr::without_provenance_mut(number)) };
    0
}

unsafe extern "C" fn queue_waits(_: *mut c_void, _: i64, _: *mut c_void, _: *mut c_void) -> i32 {
    0
}

unsafe extern "C" fn host_waits(_: *mut c_void, _: i64, _: *mut c_void) -> i32 {
    0
}

unsafe extern "C" fn is_done(_: *mut c_void, _: i64, _: *mut c_void, done: *mut i32) -> i32 {
    // SAFETY: as above.
    unsafe { done.write(1) };
    0
}

unsafe extern "C" fn destroy_event(_: *mut c_void, _: i64, _: *mut c_void) {
    ALIVE.fetch_sub(1, Ordering::Relaxed);
}

fn register() {
    // SAFETY: zeroes are no functions.
    let mut backend: DeviceBackend = unsafe { core::mem::zeroed() };
    backend.struct_size = size_of::<DeviceBackend>();
    backend.allocate = Some(allocate);
    backend.free = Some(free);
    backend.copy_from_host = Some(copy);
    backend.copy_to_host = Some(copy);
    // SAFETY: the functions do what they are asked to.
    unsafe {
        assert_eq!(bowstring_device_register(PLAIN.r#type, &backend, null_mut()), BOWSTRING_OK);
        backend.drain = Some(drain);
        backend.record = Some(record);
        backend.queue_waits = Some(queue_waits);
        backend.host_waits = Some(host_waits);
        backend.is_done = Some(is_done);
        backend.destroy_event = Some(destroy_event);
        backend.copy_within = Some(copy);
        assert_eq!(bowstring_device_register(QUEUED.r#type, &backend, null_mut()), BOWSTRING_OK);
    }
}

fn live() -> [usize; 5] {
    // SAFETY: zeroes are counts.
    let mut counts: BowstringLiveCounts = unsafe { core::mem::zeroed() };
    counts.struct_size = size_of::<BowstringLiveCounts>();
    // SAFETY: the struct is as long as it says.
    unsafe { bowstring_live_counts(&mut counts) };
    [counts.types, counts.arrays, counts.buffers, counts.blocks, counts.pending]
}

fn collect() {
    // SAFETY: nobody is told how much is left.
    assert_eq!(unsafe { bowstring_device_collect(QUEUED, true, null_mut(), null_mut()) }, BOWSTRING_OK);
}

/// Fails each allocation of a call in turn; it makes the call inside `armed` and undoes what a success made.
fn each_allocation(name: &str, expected: usize, attempt: impl Fn(usize) -> (i32, usize)) {
    for fail_at in 1..100 {
        collect();
        let before = (live_bytes(), live(), ALIVE.load(Ordering::Relaxed));
        let (status, made) = attempt(fail_at);
        collect();
        let after = (live_bytes(), live(), ALIVE.load(Ordering::Relaxed));
        assert_eq!(after, before, "{name}: leaked after failing allocation {fail_at}");
        if status == BOWSTRING_OK {
            assert_eq!(made, fail_at - 1, "{name}: a success after a failed allocation");
            assert_eq!(made, expected, "{name}");
            return;
        }
        assert_eq!(status, BOWSTRING_OUT_OF_MEMORY, "{name}: failing allocation {fail_at}");
    }
    panic!("{name}: does not end");
}

static INTS: [i32; 4] = [1, 2, 3, 4];
static OFFSETS: [i32; 5] = [0, 1, 2, 4, 4];
static BYTES: [u8; 8] = *b"abcdefgh";

fn owned<T>(data: &'static [T]) -> OwnedBuffer {
    let size = i64::try_from(size_of_val(data)).unwrap_or(0);
    // SAFETY: the data is static and needs no owner.
    unsafe { OwnedBuffer::new(data.as_ptr().cast(), size, null_mut(), None) }
}

/// `struct<n: int32, l: list<utf8>>`, four rows.
fn array() -> *mut BowstringArray {
    let facts = |length, n_buffers| Facts { length, null_count: 0, offset: 0, n_buffers };
    let nodes = [facts(4, 1), facts(4, 2), facts(4, 2), facts(4, 3)];
    let none = OwnedBuffer::absent;
    let mut buffers =
        [none(), none(), owned(&INTS), none(), owned(&OFFSETS), none(), owned(&OFFSETS), owned(&BYTES)];
    let (mut ty, mut out) = (null_mut(), null_mut());
    // SAFETY: every pointer leads to what the function asks for; so it is in all of this file.
    unsafe {
        let mut raw: ArrowDeviceArray = core::mem::zeroed();
        let text = c"struct<n: int32, l: list<utf8>>";
        assert_eq!(bowstring_type_parse(text.as_ptr(), &mut ty, null_mut()), BOWSTRING_OK);
        let (b, n) = (buffers.as_mut_ptr(), buffers.len());
        let made = bowstring_device_array_from_buffers(
            ty,
            nodes.as_ptr(),
            4,
            b,
            n,
            null_mut(),
            &mut raw,
            null_mut(),
        );
        assert_eq!(made, BOWSTRING_OK);
        assert_eq!(bowstring_array_import_typed(&mut raw, ty, &mut out, null_mut()), BOWSTRING_OK);
        bowstring_type_release(ty);
    }
    out
}

fn options() -> BowstringTransferOptions {
    // SAFETY: zeroes are the defaults.
    let mut options: BowstringTransferOptions = unsafe { core::mem::zeroed() };
    options.struct_size = size_of::<BowstringTransferOptions>();
    options.sync = Sync::of(SyncMode::Library);
    options
}

fn moved(from: *const BowstringArray, to: Device) -> *mut BowstringArray {
    let mut out = null_mut();
    // SAFETY: as above.
    let status = unsafe { bowstring_array_to_device(from, to, &options(), &mut out, null_mut(), null_mut()) };
    assert_eq!(status, BOWSTRING_OK);
    out
}

fn copies(name: &str, from: *const BowstringArray, to: Device, expected: usize) {
    let options = options();
    each_allocation(name, expected, |fail_at| {
        let mut out = core::ptr::dangling_mut();
        let call = || unsafe {
            // SAFETY: as above.
            bowstring_array_to_device(from, to, &options, &mut out, null_mut(), null_mut())
        };
        let (status, made) = armed(fail_at, call);
        assert_eq!(out.is_null(), status != BOWSTRING_OK, "{name}");
        // SAFETY: NULL or a handle of ours.
        unsafe { bowstring_array_release(out) };
        (status, made)
    });
}

#[test]
fn every_allocation_may_fail() {
    let before = (live_bytes(), live());
    register();
    let host = array();
    let (plain, queued) = (moved(host, PLAIN), moved(host, QUEUED));
    let (mut part, mut buffer) = (null_mut(), null_mut());
    let sync = Sync::of(SyncMode::Library);
    // Most are lists that a copy is planned with, more where something has to be looked up. Then there are room for pending work,
    // an owner for each buffer, memory on the CPU, an event, and an array with its handle.
    copies("from the CPU to the CPU", host, Device::CPU, 21);
    copies("to a device without queues", host, PLAIN, 18);
    copies("from a device without queues", plain, Device::CPU, 18);
    copies("to a device with events", host, QUEUED, 19);
    copies("within a device", queued, QUEUED, 16);
    copies("between drivers", queued, PLAIN, 36);
    // SAFETY: as above, in all of these calls.
    unsafe {
        assert_eq!(bowstring_array_slice(queued, 1, 2, &mut part, null_mut()), BOWSTRING_OK);
        assert_eq!(bowstring_array_buffer(queued, 2, &mut buffer, null_mut()), BOWSTRING_OK);
    }
    copies("part of an array", part, QUEUED, 25);
    // Room for pending work, an event, an array.
    derived("array_record", 3, &|out| {
        // SAFETY: as above.
        unsafe { bowstring_array_record(queued, &sync, out, null_mut()) }
    });
    derived("array_join_events", 3, &|out| {
        // SAFETY: as above.
        unsafe { bowstring_array_join_events(queued, null(), 0, &sync, out, null_mut()) }
    });
    each_allocation("array_release_after", 2, |fail_at| {
        // SAFETY: as above.
        unsafe {
            let mut given = bowstring_array_retain(queued);
            let (status, made) =
                armed(fail_at, || bowstring_array_release_after(&mut given, &sync, null_mut()));
            assert_eq!(given.is_null(), status == BOWSTRING_OK);
            bowstring_array_release(given);
            (status, made)
        }
    });
    each_allocation("device_array_release_after", 3, |fail_at| {
        // SAFETY: as above.
        unsafe {
            let mut raw: ArrowDeviceArray = core::mem::zeroed();
            assert_eq!(bowstring_array_export(queued, &mut raw, null_mut(), null_mut()), BOWSTRING_OK);
            let (status, made) =
                armed(fail_at, || bowstring_device_array_release_after(&mut raw, &sync, null_mut()));
            assert_eq!(raw.array.release.is_none(), status == BOWSTRING_OK);
            bowstring_device_array_release(&mut raw);
            (status, made)
        }
    });
    buffers("buffer_to_device", 5, &|out| {
        // SAFETY: as above.
        unsafe { bowstring_buffer_to_device(buffer, QUEUED, &options(), out, null_mut(), null_mut()) }
    });
    buffers("buffer_allocate", 3, &|out| {
        let mut data = null_mut();
        // SAFETY: as above.
        unsafe { bowstring_buffer_allocate(QUEUED, 100, &sync, out, &mut data, null_mut()) }
    });
    // SAFETY: as above.
    unsafe {
        bowstring_buffer_release(buffer);
        for one in [part, host, plain, queued] {
            bowstring_array_release(one);
        }
    }
    collect();
    assert_eq!((live_bytes(), live()), before);
    assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
}

fn derived(name: &str, expected: usize, call: &dyn Fn(*mut *mut BowstringArray) -> i32) {
    each_allocation(name, expected, |fail_at| {
        let mut out = core::ptr::dangling_mut();
        let (status, made) = armed(fail_at, || call(&mut out));
        assert_eq!(out.is_null(), status != BOWSTRING_OK, "{name}");
        // SAFETY: NULL or a handle of ours.
        unsafe { bowstring_array_release(out) };
        (status, made)
    });
}

fn buffers(name: &str, expected: usize, call: &dyn Fn(*mut *mut BowstringBuffer) -> i32) {
    each_allocation(name, expected, |fail_at| {
        let mut out = core::ptr::dangling_mut();
        let (status, made) = armed(fail_at, || call(&mut out));
        assert_eq!(out.is_null(), status != BOWSTRING_OK, "{name}");
        // SAFETY: NULL or a handle of ours.
        unsafe { bowstring_buffer_release(out) };
        (status, made)
    });
}
