//! As much of CPython as the library calls: counted objects and one exception, with memory that the test can let run out.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::offset_of;
use core::ptr::{null, null_mut};
use std::cell::Cell;

use bowstring::python::{BowstringPythonApi, bowstring_python_capsule_destructor};

type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

/// Kinds of exceptions; any other number is one of the test's.
const MEMORY_ERROR: usize = 1;
const TYPE_ERROR: usize = 2;
const VALUE_ERROR: usize = 3;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    None,
    Int,
    Capsule,
    /// A capsule whose pointer cannot be had.
    Spoilt,
    Tuple,
    /// Has a schema, its first item, and exports by its pointer, which is a function.
    Producer,
    /// Holds a handle where its pointer is.
    Instance,
    /// A str.
    Name,
}

/// Items of a tuple.
const N_ITEMS: usize = 7;

#[repr(C)]
struct Body {
    count: Cell<isize>,
    kind: Cell<Kind>,
    pointer: *mut c_void,
    name: *const c_char,
    destructor: Destructor,
    items: [Cell<*mut c_void>; N_ITEMS],
}

struct NoneObject(Body);
// SAFETY: one thread uses the interpreter.
unsafe impl Sync for NoneObject {}

static NONE: NoneObject = NoneObject(Body {
    count: Cell::new(1),
    kind: Cell::new(Kind::None),
    pointer: null_mut(),
    name: null(),
    destructor: None,
    items: [const { Cell::new(null_mut()) }; N_ITEMS],
});

thread_local! {
    static RAISED: Cell<usize> = const { Cell::new(0) };
    static UNRAISABLE: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static MADE: Cell<usize> = const { Cell::new(0) };
    static FAIL_AT: Cell<usize> = const { Cell::new(0) };
}

/// The addresses of this interpreter.
pub fn api() -> BowstringPythonApi {
    BowstringPythonApi {
        struct_size: size_of::<BowstringPythonApi>(),
        capsule_is_valid: Some(is_valid),
        capsule_get_name: Some(get_name),
        capsule_get_pointer: Some(get_pointer),
        err_fetch: Some(fetch),
        err_restore: Some(restore),
        err_write_unraisable: Some(write_unraisable),
        err_occurred: Some(occurred),
        err_clear: Some(clear_raised),
        err_set_string: Some(set_string),
        capsule_new: Some(capsule_new),
        long_as_void_ptr: Some(as_void_ptr),
        long_from_void_ptr: Some(from_void_ptr),
        tuple_new: Some(tuple_new),
        tuple_set_item: Some(tuple_set_item),
        inc_ref: Some(inc_ref),
        dec_ref: Some(dec_ref),
        tuple_size: Some(tuple_size),
        tuple_get_item: Some(tuple_get_item),
        object_get_attr: Some(get_attr),
        unicode_from_string: Some(from_string),
        object_vectorcall_method: Some(vectorcall_method),
        type_generic_alloc: Some(generic_alloc),
        memoryview_from_object: Some(memoryview_from),
        object_get_buffer: Some(get_buffer),
        buffer_release: Some(buffer_release),
        none: none(),
        type_error: TYPE_ERROR as *mut c_void,
        // Schemas are never equal but to themselves here.
        true_object: TYPE_ERROR as *mut c_void,
        object_size: offset_of!(Body, pointer),
    }
}

/// Runs `call`, in which the `fail_at`th new object cannot be made, none when that is 0. Returns how many it asked for.
pub fn failing<T>(fail_at: usize, call: impl FnOnce() -> T) -> (T, usize) {
    MADE.set(0);
    FAIL_AT.set(fail_at);
    let result = call();
    FAIL_AT.set(0);
    (result, MADE.get())
}

/// Objects that were not let go. References to None count as well.
pub fn live_objects() -> usize {
    LIVE.get() + NONE.0.count.get().cast_unsigned() - 1
}

/// Makes an exception pending.
pub fn raise(kind: usize) {
    RAISED.set(kind);
}

/// The pending exception, 0 when there is none.
pub fn raised() -> usize {
    RAISED.get()
}

pub fn is_raised() -> bool {
    raised() != 0
}

pub fn clear() {
    RAISED.set(0);
}

/// How many exceptions were written as unraisable.
pub fn unraisable() -> usize {
    UNRAISABLE.get()
}

/// Makes a capsule one whose pointer cannot be had.
pub fn spoil(capsule: &Object) {
    body(capsule.0).kind.set(Kind::Spoilt);
}

/// A reference to an object.
pub struct Object(*mut c_void);

impl Object {
    /// The reference that a call returned.
    pub fn owned(at: *mut c_void) -> Object {
        assert!(!at.is_null(), "NULL without an exception");
        Object(at)
    }

    pub fn none() -> Object {
        // SAFETY: None is live.
        unsafe { inc_ref(none()) };
        Object(none())
    }

    pub fn int(value: *mut c_void) -> Object {
        // SAFETY: any address can be an int.
        Object::owned(unsafe { from_void_ptr(value) })
    }

    pub fn capsule(pointer: *mut c_void, name: &'static CStr) -> Object {
        let destructor: Destructor = Some(bowstring_python_capsule_destructor);
        // SAFETY: the name is static.
        Object::owned(unsafe { capsule_new(pointer, name.as_ptr(), destructor) })
    }

    pub fn address(&self) -> *mut c_void {
        self.0
    }

    /// A tuple of at most seven.
    pub fn tuple(items: &[&Object]) -> Object {
        // SAFETY: each item is live.
        let made = Object::owned(unsafe { tuple_new(2) });
        for (place, item) in body(made.0).items.iter().zip(items) {
            // SAFETY: as above.
            unsafe { inc_ref(item.0) };
            place.set(item.0);
        }
        made
    }

    /// Something with a schema that exports by a function.
    pub fn producer(schema: &Object, export: unsafe extern "C" fn(*mut c_void)) -> Object {
        let made = Object::owned(make(Kind::Producer, export as *mut c_void, null(), None));
        // SAFETY: the schema is live.
        unsafe { inc_ref(schema.0) };
        body(made.0).items[0].set(schema.0);
        made
    }

    /// What an int, a capsule or an instance holds.
    pub fn pointer(&self) -> *mut c_void {
        body(self.0).pointer
    }

    /// Hands the reference on.
    fn into_raw(self) -> *mut c_void {
        let at = self.0;
        core::mem::forget(self);
        at
    }

    pub fn is_none(&self) -> bool {
        self.0 == none()
    }

    /// The names of the capsules in a tuple.
    pub fn names(&self) -> [&'static CStr; 2] {
        // SAFETY: the names are static.
        [0, 1].map(|at| unsafe { CStr::from_ptr(body(body(self.0).items[at].get()).name) })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the reference is ours.
        unsafe { dec_ref(self.0) };
    }
}

fn none() -> *mut c_void {
    (&raw const NONE).cast_mut().cast()
}

fn body<'a>(at: *mut c_void) -> &'a Body {
    assert!(!at.is_null());
    // SAFETY: every object that is passed around is live.
    unsafe { &*at.cast::<Body>() }
}

/// From the system itself, so that the test's allocator does not count it.
fn make(kind: Kind, pointer: *mut c_void, name: *const c_char, destructor: Destructor) -> *mut c_void {
    MADE.set(MADE.get() + 1);
    if MADE.get() == FAIL_AT.get() {
        raise(MEMORY_ERROR);
        return null_mut();
    }
    let items = [const { Cell::new(null_mut()) }; N_ITEMS];
    // SAFETY: the memory is large enough, and aligned as malloc's always is.
    unsafe {
        let at = libc::malloc(size_of::<Body>()).cast::<Body>();
        assert!(!at.is_null());
        at.write(Body { count: Cell::new(1), kind: Cell::new(kind), pointer, name, destructor, items });
        LIVE.set(LIVE.get() + 1);
        at.cast()
    }
}

unsafe extern "C" fn inc_ref(object: *mut c_void) {
    let count = &body(object).count;
    count.set(count.get() + 1);
}

unsafe extern "C" fn dec_ref(object: *mut c_void) {
    let it = body(object);
    it.count.set(it.count.get() - 1);
    assert!(it.count.get() >= 0, "let go too often");
    if it.count.get() > 0 {
        return;
    }
    assert!(it.kind.get() != Kind::None, "None was let go too often");
    if let Some(destructor) = it.destructor {
        // SAFETY: the capsule is being destroyed.
        unsafe { destructor(object) };
    }
    for item in it.items.iter().filter(|item| !item.get().is_null()) {
        // SAFETY: the tuple's reference.
        unsafe { dec_ref(item.get()) };
    }
    LIVE.set(LIVE.get() - 1);
    // SAFETY: nothing refers to the object any more.
    unsafe { libc::free(object) };
}

fn is_capsule(object: *mut c_void) -> bool {
    matches!(body(object).kind.get(), Kind::Capsule | Kind::Spoilt)
}

unsafe extern "C" fn is_valid(object: *mut c_void, name: *const c_char) -> c_int {
    let found = body(object).name;
    // SAFETY: names are strings.
    let is_named = || unsafe { !found.is_null() && CStr::from_ptr(found) == CStr::from_ptr(name) };
    c_int::from(is_capsule(object) && is_named())
}

unsafe extern "C" fn get_name(object: *mut c_void) -> *const c_char {
    if !is_capsule(object) {
        raise(VALUE_ERROR);
        return null();
    }
    body(object).name
}

unsafe extern "C" fn get_pointer(object: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: as the caller promises.
    if unsafe { is_valid(object, name) } == 0 || body(object).kind.get() == Kind::Spoilt {
        raise(VALUE_ERROR);
        return null_mut();
    }
    body(object).pointer
}

unsafe extern "C" fn fetch(kind: *mut *mut c_void, value: *mut *mut c_void, traceback: *mut *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe {
        kind.write(RAISED.replace(0) as *mut c_void);
        value.write(null_mut());
        traceback.write(null_mut());
    }
}

unsafe extern "C" fn restore(kind: *mut c_void, value: *mut c_void, traceback: *mut c_void) {
    assert!(value.is_null() && traceback.is_null());
    raise(kind.addr());
}

unsafe extern "C" fn write_unraisable(object: *mut c_void) {
    assert!(object.is_null() && is_raised());
    clear();
    UNRAISABLE.set(UNRAISABLE.get() + 1);
}

unsafe extern "C" fn occurred() -> *mut c_void {
    raised() as *mut c_void
}

unsafe extern "C" fn clear_raised() {
    clear();
}

unsafe extern "C" fn set_string(kind: *mut c_void, message: *const c_char) {
    assert!(!message.is_null());
    raise(kind.addr());
}

unsafe extern "C" fn capsule_new(
    pointer: *mut c_void,
    name: *const c_char,
    destructor: Destructor,
) -> *mut c_void {
    assert!(!pointer.is_null());
    make(Kind::Capsule, pointer, name, destructor)
}

unsafe extern "C" fn as_void_ptr(object: *mut c_void) -> *mut c_void {
    if body(object).kind.get() != Kind::Int {
        raise(TYPE_ERROR);
        return null_mut();
    }
    body(object).pointer
}

unsafe extern "C" fn from_void_ptr(pointer: *mut c_void) -> *mut c_void {
    make(Kind::Int, pointer, null(), None)
}

unsafe extern "C" fn tuple_new(size: isize) -> *mut c_void {
    assert_eq!(size, 2);
    make(Kind::Tuple, null_mut(), null(), None)
}

unsafe extern "C" fn tuple_set_item(tuple: *mut c_void, index: isize, item: *mut c_void) -> c_int {
    let place = &body(tuple).items[index.cast_unsigned()];
    assert!(place.get().is_null());
    place.set(item);
    0
}

unsafe extern "C" fn tuple_size(tuple: *mut c_void) -> isize {
    body(tuple).items.iter().filter(|item| !item.get().is_null()).count().cast_signed()
}

unsafe extern "C" fn tuple_get_item(tuple: *mut c_void, index: isize) -> *mut c_void {
    let item = body(tuple).items.get(index.cast_unsigned()).map_or(null_mut(), Cell::get);
    if item.is_null() {
        raise(VALUE_ERROR);
    }
    item
}

unsafe extern "C" fn get_attr(object: *mut c_void, _: *mut c_void) -> *mut c_void {
    assert!(body(object).kind.get() == Kind::Producer);
    let schema = body(object).items[0].get();
    // SAFETY: the producer keeps its schema.
    unsafe { inc_ref(schema) };
    schema
}

unsafe extern "C" fn from_string(text: *const c_char) -> *mut c_void {
    make(Kind::Name, null_mut(), text, None)
}

/// `__buffer__` returns its flags, an export writes, and the rest is None: schemas that are not equal, and an instance's answer.
unsafe extern "C" fn vectorcall_method(
    name: *mut c_void,
    args: *const *mut c_void,
    nargs: usize,
    _: *mut c_void,
) -> *mut c_void {
    let name = body(name);
    // SAFETY: a name's text is static, and so many arguments are there.
    if name.kind.get() == Kind::Name && unsafe { CStr::from_ptr(name.name) } == c"__buffer__" {
        assert_eq!(nargs, 2);
        // SAFETY: as above.
        let flags = body(unsafe { args.add(1).read() }).pointer;
        return make(Kind::Int, flags, null(), None);
    }
    if nargs == 2 {
        // SAFETY: a producer's pointer is its function, which is called with where to export to.
        unsafe {
            let producer = body(args.read());
            let export: unsafe extern "C" fn(*mut c_void) = core::mem::transmute(producer.pointer);
            export(body(args.add(1).read()).pointer);
        }
    }
    Object::none().into_raw()
}

unsafe extern "C" fn generic_alloc(_: *mut c_void, items: isize) -> *mut c_void {
    assert_eq!(items, 0);
    make(Kind::Instance, null_mut(), null(), None)
}

/// As much of Py_buffer as is looked at, and room for the rest.
#[repr(C)]
pub struct View {
    buf: *mut c_void,
    pub obj: *mut c_void,
    rest: [usize; 9],
}

impl View {
    pub fn new() -> View {
        View { buf: null_mut(), obj: core::ptr::dangling_mut(), rest: [0; 9] }
    }
}

unsafe extern "C" fn memoryview_from(object: *mut c_void) -> *mut c_void {
    make(Kind::Int, body(object).pointer, null(), None)
}

unsafe extern "C" fn get_buffer(object: *mut c_void, view: *mut c_void, flags: c_int) -> c_int {
    assert_eq!(body(object).pointer.addr(), flags.cast_unsigned() as usize);
    let shown = make(Kind::Tuple, null_mut(), null(), None);
    // SAFETY: as the caller promises.
    unsafe { (*view.cast::<View>()).obj = shown };
    if shown.is_null() { -1 } else { 0 }
}

unsafe extern "C" fn buffer_release(view: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { dec_ref(core::mem::replace(&mut (*view.cast::<View>()).obj, null_mut())) };
}
