//! The calls for CPython in an interpreter of the test's own: each allocation of ours failed in turn, and each object of
//! Python's. Nothing leaks, and what came in is still the caller's. And how many allocations each call makes.
//!
//! One test, so that nothing else allocates meanwhile, and because addresses are given once in a process.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may allocate and panic"
)]

#[path = "support/allocator.rs"]
mod allocator;
#[path = "support/interpreter.rs"]
mod interpreter;

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use std::cell::Cell;

use allocator::{TestAllocator, armed, live_bytes, unarmed};
use bowstring::array::*;
use bowstring::buffer::*;
use bowstring::error::{BOWSTRING_INVALID_ARGUMENT, BOWSTRING_OK, BOWSTRING_OUT_OF_MEMORY};
use bowstring::process::{BowstringLiveCounts, bowstring_live_counts};
use bowstring::produce::bowstring_device_array_from_buffers;
use bowstring::python::*;
use bowstring::raw::*;
use bowstring::schema::*;
use bowstring_core::abi::{ArrowArray, ArrowDeviceArray, ArrowSchema};
use bowstring_core::error::ErrorRecord;
use bowstring_core::memory::OwnedBuffer;
use bowstring_core::tree::Facts;
use interpreter::{Object, View, failing, live_objects};

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

thread_local! {
    static LET_GO: Cell<usize> = const { Cell::new(0) };
    static TYPE: Cell<*mut BowstringType> = const { Cell::new(null_mut()) };
}

unsafe extern "C" fn let_go(_: *mut c_void) {
    LET_GO.set(LET_GO.get() + 1);
}

static INTS: [i32; 3] = [1, 2, 3];
const SCHEMA: &CStr = c"arrow_schema";
const DEVICE: &CStr = c"arrow_device_array";
const HOST: &CStr = c"arrow_array";

fn int32() -> *mut BowstringType {
    let mut ty = null_mut();
    // SAFETY: every pointer leads to what the function asks for; so it is in all of this file.
    assert_eq!(unsafe { bowstring_type_parse(c"int32".as_ptr(), &mut ty, null_mut()) }, BOWSTRING_OK);
    ty
}

/// A live array whose only buffer has an owner.
fn filled(out: &mut ArrowDeviceArray, ty: *const BowstringType) {
    let facts = Facts { length: 3, null_count: 0, offset: 0, n_buffers: 2 };
    let absent = core::ptr::null();
    // SAFETY: the data is static, and the owner needs nothing.
    let mut buffers = unsafe {
        [
            OwnedBuffer::new(absent, 0, null_mut(), None),
            OwnedBuffer::new(INTS.as_ptr().cast(), 12, null_mut(), Some(let_go)),
        ]
    };
    let b = buffers.as_mut_ptr();
    // SAFETY: as above.
    let status =
        unsafe { bowstring_device_array_from_buffers(ty, &facts, 1, b, 2, null_mut(), out, null_mut()) };
    assert_eq!(status, BOWSTRING_OK);
}

/// The capsules of an array.
struct Pair {
    schema: Object,
    array: Object,
    host: bool,
}

impl Pair {
    fn new(ty: *const BowstringType, host: bool) -> Pair {
        let schema = bowstring_schema_new();
        // SAFETY: as above; zeroes are a released struct.
        let array = unsafe {
            assert_eq!(bowstring_type_export(ty, schema, null_mut()), BOWSTRING_OK);
            let mut made = core::mem::zeroed();
            filled(&mut made, ty);
            if host {
                let to = bowstring_host_array_new();
                bowstring_host_array_move(&mut made.array, to);
                Object::capsule(to.cast(), HOST)
            } else {
                let to = bowstring_device_array_new();
                bowstring_device_array_move(&mut made, to);
                Object::capsule(to.cast(), DEVICE)
            }
        };
        Pair { schema: Object::capsule(schema.cast(), SCHEMA), array, host }
    }

    /// Whether schema and array are live.
    fn live(&self) -> (bool, bool) {
        let (schema, array): (*const ArrowSchema, _) = (self.schema.pointer().cast(), self.array.pointer());
        let host: *const ArrowArray = array.cast();
        let device: *const ArrowDeviceArray = array.cast();
        // SAFETY: the capsules hold what they were made with.
        unsafe {
            let array = if self.host { (*host).release } else { (*device).array.release };
            ((*schema).release.is_some(), array.is_some())
        }
    }
}

fn live() -> [usize; 5] {
    // SAFETY: the struct consists of integers.
    let mut counts: BowstringLiveCounts = unsafe { core::mem::zeroed() };
    counts.struct_size = size_of::<BowstringLiveCounts>();
    // SAFETY: as above.
    unsafe { bowstring_live_counts(&mut counts) };
    [counts.types, counts.arrays, counts.buffers, counts.blocks, counts.leaked_callbacks]
}

type Builtin = unsafe extern "C" fn(*mut c_void, *const *mut c_void, isize) -> *mut c_void;

/// A builtin called as the interpreter does, with a record as its last argument: its result, None for a failure, and the
/// record's status.
fn call(builtin: Builtin, arguments: &[&Object]) -> (Option<Object>, i32) {
    let mut record = ErrorRecord::empty();
    let error = Object::int((&raw mut record).cast());
    let mut given: Vec<*mut c_void> = arguments.iter().map(|one| one.address()).collect();
    given.push(error.address());
    let n = given.len().cast_signed();
    // SAFETY: as above.
    let result = unsafe { builtin(null_mut(), given.as_ptr(), n) };
    assert!(!interpreter::is_raised(), "an exception is pending");
    let result = Object::owned(result);
    (if result.is_none() { None } else { Some(result) }, record.status)
}

/// Runs `attempt` with the nth allocation of ours failed and then with the nth object of Python's, for every n. Returns how
/// many there are of each in a success. The attempt says whether it succeeded, and undoes what it made.
fn each_failure(name: &str, attempt: impl Fn(usize, usize) -> (bool, usize, usize)) -> (usize, usize) {
    let mut made = [0, 0];
    for (which, found) in made.iter_mut().enumerate() {
        for fail_at in 1..50 {
            let before = (live(), live_bytes(), live_objects());
            let (ours, python) = if which == 0 { (fail_at, 0) } else { (0, fail_at) };
            let (succeeded, n_ours, n_python) = attempt(ours, python);
            assert_eq!((live(), live_bytes(), live_objects()), before, "{name}: failing {ours}, {python}");
            if succeeded {
                *found = [n_ours, n_python][which];
                assert_eq!(*found, fail_at - 1, "{name}: a success after a failure");
                break;
            }
            assert!(fail_at < 49, "{name} does not end");
        }
    }
    made.into()
}

/// A call with the given failures; the objects that the test itself makes are not among them.
fn failing_call(
    builtin: Builtin,
    arguments: &[&Object],
    ours: usize,
    python: usize,
) -> (Option<Object>, i32, usize, usize) {
    let mut record = ErrorRecord::empty();
    let error = Object::int((&raw mut record).cast());
    let mut given: Vec<*mut c_void> = arguments.iter().map(|one| one.address()).collect();
    given.push(error.address());
    let n = given.len().cast_signed();
    // SAFETY: as above.
    let ((result, n_ours), n_python) =
        failing(python, || armed(ours, || unsafe { builtin(null_mut(), given.as_ptr(), n) }));
    assert!(!interpreter::is_raised(), "an exception is pending");
    let result = Object::owned(result);
    let failed = result.is_none();
    assert_eq!(record.status, if failed { BOWSTRING_OUT_OF_MEMORY } else { BOWSTRING_OK }, "{record}");
    (if failed { None } else { Some(result) }, record.status, n_ours, n_python)
}

fn release(handle: &Object) {
    // SAFETY: as above.
    let result = Object::owned(unsafe { bowstring_python_array_release(null_mut(), handle.address()) });
    assert!(result.is_none());
}

fn imports(ty: *mut BowstringType) {
    let (none, zero, known) = (Object::none(), Object::int(null_mut()), Object::int(ty.cast()));
    for host in [false, true] {
        for is_typed in [false, true] {
            let made = each_failure("python_array_import", |ours, python| {
                LET_GO.set(0);
                let pair = Pair::new(ty, host);
                let (schema, ty) = if is_typed { (&none, &known) } else { (&pair.schema, &zero) };
                let arguments = [schema, &pair.array, ty];
                let (handle, _, n_ours, n_python) =
                    failing_call(bowstring_python_array_import, &arguments, ours, python);
                assert_eq!(LET_GO.get(), 0);
                assert_eq!(pair.live(), (true, handle.is_none()));
                // What failed can be tried again, and shows the same.
                let again = handle.is_none().then(|| call(bowstring_python_array_import, &arguments));
                let again = again.map(|(handle, status)| {
                    assert_eq!(status, BOWSTRING_OK);
                    handle.expect("a second attempt")
                });
                let held = handle.as_ref().or(again.as_ref()).expect("one of the two");
                shows_ints(held);
                drop(pair);
                assert_eq!(LET_GO.get(), 0);
                release(held);
                assert_eq!(LET_GO.get(), 1);
                (handle.is_some(), n_ours, n_python)
            });
            assert_eq!(made, (if is_typed { 1 } else { 2 }, 1), "host {host}, typed {is_typed}");
        }
    }
    let made = each_failure("python_array_import_raw", |ours, python| {
        LET_GO.set(0);
        // SAFETY: zeroes are a released struct.
        let mut raw: ArrowDeviceArray = unsafe { core::mem::zeroed() };
        filled(&mut raw, ty);
        let at = Object::int((&raw mut raw).cast());
        let (handle, _, n_ours, n_python) =
            failing_call(bowstring_python_array_import_raw, &[&at, &known], ours, python);
        assert_eq!(raw.array.release.is_some(), handle.is_none());
        if let Some(handle) = &handle {
            shows_ints(handle);
            release(handle);
        }
        // SAFETY: the struct is live or released.
        unsafe { bowstring_device_array_release(&mut raw) };
        assert_eq!(LET_GO.get(), 1);
        (handle.is_some(), n_ours, n_python)
    });
    assert_eq!(made, (1, 1));
}

fn shows_ints(handle: &Object) {
    let mut buffer = null_mut();
    // SAFETY: as above.
    unsafe {
        let mut owned = OwnedBuffer::new(core::ptr::null(), 0, null_mut(), None);
        assert_eq!(bowstring_array_buffer(handle.pointer().cast(), 1, &mut buffer, null_mut()), BOWSTRING_OK);
        assert_eq!(bowstring_buffer_into_owned(&mut buffer, &mut owned, null_mut()), BOWSTRING_OK);
        assert_eq!(owned.data(), INTS.as_ptr().cast());
        drop(owned.take_owner());
    }
}

/// Neither Python nor we have memory: then the array is let go, once.
fn imports_without_any_memory(ty: *mut BowstringType) {
    let zero = Object::int(null_mut());
    for host in [false, true] {
        let before = (live(), live_bytes(), live_objects());
        LET_GO.set(0);
        let pair = Pair::new(ty, host);
        // The third allocation would give the array back.
        let (handle, ..) =
            failing_call(bowstring_python_array_import, &[&pair.schema, &pair.array, &zero], 3, 1);
        assert!(handle.is_none());
        assert_eq!((pair.live(), LET_GO.get()), ((true, false), 1));
        drop(pair);
        assert_eq!((live(), live_bytes(), live_objects()), before);
    }
}

fn exports(ty: *mut BowstringType) {
    let none = Object::none();
    let pair = Pair::new(ty, false);
    let (handle, _) = call(bowstring_python_array_import, &[&none, &pair.array, &Object::int(ty.cast())]);
    let handle = handle.expect("an array");
    for host in [false, true] {
        let flag = Object::int(if host { core::ptr::dangling_mut() } else { null_mut() });
        let made = each_failure("python_array_export", |ours, python| {
            let (pair, _, n_ours, n_python) =
                failing_call(bowstring_python_array_export, &[&handle, &flag], ours, python);
            if let Some(pair) = &pair {
                assert_eq!(pair.names(), [SCHEMA, if host { HOST } else { DEVICE }]);
            }
            (pair.is_some(), n_ours, n_python)
        });
        assert_eq!(made, (4, 3), "host {host}: two structs and two trees; two capsules and a tuple");
    }
    release(&handle);
}

/// An exception that was pending before a capsule is destroyed, and one that comes up meanwhile.
fn exceptions(ty: *mut BowstringType) {
    let pair = Pair::new(ty, false);
    interpreter::raise(7);
    drop(pair);
    assert_eq!((interpreter::raised(), interpreter::unraisable()), (7, 0));
    let odd = Object::capsule(core::ptr::dangling_mut(), c"arrow_schema");
    interpreter::spoil(&odd);
    drop(odd);
    assert_eq!((interpreter::raised(), interpreter::unraisable()), (7, 1));
    interpreter::clear();
}

unsafe extern "C" fn export(out: *mut c_void) {
    let ty = TYPE.get();
    // What the producer itself allocates is not what fails here.
    unarmed(|| {
        // SAFETY: as above.
        filled(unsafe { &mut *out.cast::<ArrowDeviceArray>() }, ty);
    });
}

/// A producer whose schema is known, and what is given of its array; each failure lets everything go.
fn instances(ty: *mut BowstringType) {
    TYPE.set(ty);
    let (schema, kind) = (Object::int(null_mut()), Object::int(ty.cast()));
    let producer = Object::producer(&schema, export);
    // What names and classes are is for a real interpreter to know.
    let known = Object::tuple(&[&schema, &schema, &schema, &schema, &schema, &schema, &kind]);
    let take = |ours, python| {
        let ((taken, n_ours), n_python) = failing(python, || {
            // SAFETY: as above.
            armed(ours, || unsafe { bowstring_python_array_take(known.address(), producer.address()) })
        });
        (taken, n_ours, n_python)
    };
    let finalized = |instance: Object| {
        // SAFETY: as above.
        unsafe { bowstring_python_array_finalize(instance.address()) };
        assert!(instance.pointer().is_null());
    };
    let made = each_failure("python_array_take", |ours, python| {
        LET_GO.set(0);
        let (taken, n_ours, n_python) = take(ours, python);
        assert_eq!(interpreter::is_raised(), taken.is_null());
        interpreter::clear();
        let exported = usize::from(python != 1);
        if taken.is_null() {
            assert_eq!((ours, LET_GO.get()), (0, exported));
            return (false, n_ours, n_python);
        }
        let instance = Object::owned(taken);
        if instance.is_none() {
            assert_eq!((python, LET_GO.get()), (0, exported));
            return (false, n_ours, n_python);
        }
        finalized(instance);
        assert_eq!(LET_GO.get(), exported);
        (true, n_ours, n_python)
    });
    assert_eq!(made, (1, 2), "one tree; an int and the instance");

    let instance = Object::owned(take(0, 0).0);
    let made = each_failure("python_array_give", |ours, python| {
        let ((given, n_ours), n_python) = failing(python, || {
            armed(ours, || {
                let at = instance.address();
                // SAFETY: as above.
                unsafe { bowstring_python_array_give(at, core::ptr::null(), 0, null_mut()) }
            })
        });
        assert!(!interpreter::is_raised());
        // What fails is asked for again, which is answered with None here.
        let given = Object::owned(given);
        if !given.is_none() {
            assert_eq!(given.names(), [SCHEMA, DEVICE]);
        }
        (!given.is_none(), n_ours, n_python)
    });
    assert_eq!(made, (4, 3));
    interpreter::raise(7);
    finalized(instance);
    assert_eq!(interpreter::raised(), 7);
    interpreter::clear();
}

fn refusals() {
    let zero = Object::int(null_mut());
    let (handle, status) = call(bowstring_python_array_export, &[&zero, &zero]);
    assert!(handle.is_none());
    assert_eq!(status, BOWSTRING_INVALID_ARGUMENT);
    // SAFETY: as above.
    let result = unsafe { bowstring_python_array_import(null_mut(), core::ptr::null(), 4) };
    assert!(result.is_null() && interpreter::is_raised());
    interpreter::clear();
}

/// Python's own failures come through, and leave no view behind.
fn views() {
    let exporter = Object::int(core::ptr::dangling_mut());
    for flags in [0, 0x11C] {
        let before = live_objects();
        let mut fail_at = 0;
        loop {
            fail_at += 1;
            let mut view = View::new();
            let at = (&raw mut view).cast();
            // SAFETY: as above.
            let (got, _) =
                failing(fail_at, || unsafe { bowstring_python_get_buffer(exporter.address(), at, flags) });
            if got == 0 {
                drop(Object::owned(view.obj));
                break;
            }
            assert!(got == -1 && view.obj.is_null() && interpreter::is_raised());
            interpreter::clear();
            assert_eq!(live_objects(), before);
        }
        assert_eq!((fail_at, live_objects()), (7, before));
    }
    // SAFETY: as above.
    assert_eq!(unsafe { bowstring_python_get_buffer(exporter.address(), null_mut(), 0) }, -1);
    assert!(interpreter::is_raised());
    interpreter::clear();
}

#[test]
fn every_allocation_may_fail() {
    // SAFETY: as above.
    assert_eq!(unsafe { bowstring_python_init(&interpreter::api(), null_mut()) }, BOWSTRING_OK);
    let ty = int32();
    imports(ty);
    imports_without_any_memory(ty);
    exports(ty);
    instances(ty);
    exceptions(ty);
    refusals();
    views();
    // SAFETY: as above.
    unsafe { bowstring_type_release(ty) };
    assert_eq!((live(), live_objects()), ([0; 5], 0));
}
