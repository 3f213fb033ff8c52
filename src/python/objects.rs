//! Python's objects, as the calls for builtins see them.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::num::NonZero;
use core::ptr::{self, NonNull};

use bowstring_core::error::{ErrorRecord, Failed, Lossy, Report, Result, Status};

use super::views::PyBuffer;
use super::{Aside, BowstringPythonApi, Python, bowstring_python_capsule_destructor};
use crate::guard::guard;
use crate::raw::{Raw, free_raw, new_raw};

/// The functions that the calls need besides those of the destructor.
#[derive(Clone, Copy)]
pub(super) struct Calls {
    occurred: unsafe extern "C" fn() -> *mut c_void,
    clear: unsafe extern "C" fn(),
    set_string: unsafe extern "C" fn(*mut c_void, *const c_char),
    capsule_new: unsafe extern "C" fn(
        *mut c_void,
        *const c_char,
        Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> *mut c_void,
    as_void_ptr: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    from_void_ptr: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    tuple_new: unsafe extern "C" fn(isize) -> *mut c_void,
    tuple_set_item: unsafe extern "C" fn(*mut c_void, isize, *mut c_void) -> c_int,
    inc_ref: unsafe extern "C" fn(*mut c_void),
    dec_ref: unsafe extern "C" fn(*mut c_void),
    tuple_size: unsafe extern "C" fn(*mut c_void) -> isize,
    tuple_get_item: unsafe extern "C" fn(*mut c_void, isize) -> *mut c_void,
    get_attr: unsafe extern "C" fn(*mut c_void, *mut c_void) -> *mut c_void,
    unicode: unsafe extern "C" fn(*const c_char) -> *mut c_void,
    vectorcall_method:
        unsafe extern "C" fn(*mut c_void, *const *mut c_void, usize, *mut c_void) -> *mut c_void,
    generic_alloc: unsafe extern "C" fn(*mut c_void, isize) -> *mut c_void,
    none: NonNull<c_void>,
    type_error: NonNull<c_void>,
    memoryview_from: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    get_buffer: unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int,
    buffer_release: unsafe extern "C" fn(*mut c_void),
    true_object: NonNull<c_void>,
    object_size: NonZero<usize>,
}

impl Calls {
    pub(super) fn new(api: &BowstringPythonApi) -> Option<Calls> {
        Some(Calls {
            occurred: api.err_occurred?,
            clear: api.err_clear?,
            set_string: api.err_set_string?,
            capsule_new: api.capsule_new?,
            as_void_ptr: api.long_as_void_ptr?,
            from_void_ptr: api.long_from_void_ptr?,
            tuple_new: api.tuple_new?,
            tuple_set_item: api.tuple_set_item?,
            inc_ref: api.inc_ref?,
            dec_ref: api.dec_ref?,
            tuple_size: api.tuple_size?,
            tuple_get_item: api.tuple_get_item?,
            get_attr: api.object_get_attr?,
            unicode: api.unicode_from_string?,
            vectorcall_method: api.object_vectorcall_method?,
            generic_alloc: api.type_generic_alloc?,
            none: NonNull::new(api.none)?,
            type_error: NonNull::new(api.type_error)?,
            memoryview_from: api.memoryview_from_object?,
            get_buffer: api.object_get_buffer?,
            buffer_release: api.buffer_release?,
            true_object: NonNull::new(api.true_object)?,
            object_size: NonZero::new(api.object_size)?,
        })
    }
}

/// The object and the arguments that are passed on to a method.
const MAX_PASSED_ON: usize = 16;

/// A reference to an object, which is ours.
pub(super) struct Object<'a> {
    at: NonNull<c_void>,
    lock: Lock<'a>,
}

impl Object<'_> {
    /// The object, which this reference keeps.
    #[inline(always)]
    pub(super) fn at(&self) -> *mut c_void {
        self.at.as_ptr()
    }

    /// Hands the reference on.
    pub(super) fn into_raw(self) -> *mut c_void {
        let at = self.at;
        core::mem::forget(self);
        at.as_ptr()
    }
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and the interpreter's lock is held.
        unsafe { (self.lock.calls.dec_ref)(self.at.as_ptr()) };
    }
}

/// A struct on the heap that no capsule owns yet.
pub(super) struct Held<T: Raw>(*mut T);

impl<T: Raw> Held<T> {
    pub(super) fn new(report: &mut Report<'_>) -> Result<Self> {
        let at: *mut T = new_raw();
        if at.is_null() { Err(report.out_of_memory(size_of::<T>())) } else { Ok(Held(at)) }
    }

    pub(super) fn put(&mut self, value: T) {
        // SAFETY: the struct is ours, and a released one.
        unsafe { value.put(self.0) };
    }
}

impl<T: Raw> Drop for Held<T> {
    fn drop(&mut self) {
        // SAFETY: the struct is from `new_raw`, and nobody else has it.
        unsafe { free_raw(self.0) };
    }
}

/// The interpreter while its lock is held, with all that the calls need.
#[derive(Clone, Copy)]
pub(super) struct Lock<'a> {
    python: &'a Python,
    calls: &'a Calls,
}

impl<'a> Lock<'a> {
    /// None before all addresses are known.
    ///
    /// # Safety
    /// The calling thread holds the interpreter's lock for `'a`, and the objects that come in are live.
    #[inline(always)]
    pub(super) unsafe fn held() -> Option<Lock<'static>> {
        let python = super::PYTHON.get()?;
        Some(Lock { python, calls: python.calls.as_ref()? })
    }

    /// As many arguments as the call takes, or a TypeError.
    #[inline(always)]
    pub(super) unsafe fn arguments<const N: usize>(
        self,
        args: *const *mut c_void,
        nargs: isize,
        message: &'static CStr,
    ) -> Option<[*mut c_void; N]> {
        if args.is_null() || usize::try_from(nargs) != Ok(N) {
            // SAFETY: the lock is held.
            unsafe { (self.calls.set_string)(self.calls.type_error.as_ptr(), message.as_ptr()) };
            return None;
        }
        // SAFETY: the caller says that so many arguments are there.
        Some(unsafe { args.cast::<[*mut c_void; N]>().read() })
    }

    /// The address that an int holds; what is none leaves Python's own exception behind.
    #[inline(always)]
    pub(super) fn address_or_raise(self, object: *mut c_void) -> Option<*mut c_void> {
        // SAFETY: the lock is held and the object is live.
        unsafe {
            let at = (self.calls.as_void_ptr)(object);
            if at.is_null() && !(self.calls.occurred)().is_null() { None } else { Some(at) }
        }
    }

    /// The address that an int holds.
    #[inline(always)]
    pub(super) fn address<T>(
        self,
        object: *mut c_void,
        name: &str,
        report: &mut Report<'_>,
    ) -> Result<*mut T> {
        match self.address_or_raise(object) {
            Some(at) => Ok(at.cast()),
            None => Err(self.no_address(name, report)),
        }
    }

    #[cold]
    #[inline(never)]
    fn no_address(self, name: &str, report: &mut Report<'_>) -> Failed {
        self.clear();
        report.fail(Status::InvalidArgument, format_args!("expected {name} as an int that is an address"))
    }

    fn clear(self) {
        // SAFETY: the lock is held.
        unsafe { (self.calls.clear)() };
    }

    /// What a capsule of that name holds.
    #[inline(always)]
    pub(super) fn held_in<T>(self, capsule: *mut c_void, name: &CStr) -> Option<*mut T> {
        // SAFETY: the lock is held and the object is live.
        unsafe {
            if (self.python.is_valid)(capsule, name.as_ptr()) == 0 {
                return None;
            }
            Some((self.python.get_pointer)(capsule, name.as_ptr()).cast())
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn no_capsule(self, object: *mut c_void, expected: &str, report: &mut Report<'_>) -> Failed {
        // SAFETY: the lock is held and the object is live; a capsule's name is a string.
        let found = unsafe {
            let name = (self.python.get_name)(object);
            if name.is_null() { None } else { Some(CStr::from_ptr(name).to_bytes()) }
        };
        let is_other = self.clear_raised();
        match found {
            Some(name) => report.fail(
                Status::InvalidArgument,
                format_args!("expected a capsule named {expected}, found one named {}", Lossy(name)),
            ),
            None if is_other => report.fail(
                Status::InvalidArgument,
                format_args!("expected a capsule named {expected}, found another object"),
            ),
            None => report.fail(
                Status::InvalidArgument,
                format_args!("expected a capsule named {expected}, found one without a name"),
            ),
        }
    }

    /// What a method of one argument, a number, returns.
    pub(super) fn called(self, object: *mut c_void, method: &CStr, number: usize) -> Option<Object<'a>> {
        // SAFETY: the lock is held.
        let method = self.owned(unsafe { (self.calls.unicode)(method.as_ptr()) })?;
        let number = self.int_or_raise::<c_void>(ptr::without_provenance_mut(number))?;
        self.call_method(method.at, &[object, number.at()])
    }

    /// Fills a view with what an object of the buffer protocol shows. It keeps that object alive, and `exporter` as well.
    ///
    /// # Safety
    /// `view` has room for one.
    pub(super) unsafe fn shown(
        self,
        object: &Object<'a>,
        exporter: *mut c_void,
        view: *mut PyBuffer,
        flags: c_int,
    ) -> Option<()> {
        // SAFETY: the lock is held and the objects are live; the view is written before it is read.
        unsafe {
            // One of our own: nobody else can release it while its lengths and strides are in use.
            let own = self.owned((self.calls.memoryview_from)(object.at.as_ptr()))?;
            let pair = self.owned((self.calls.tuple_new)(2))?;
            if (self.calls.get_buffer)(own.at.as_ptr(), view.cast(), flags) < 0 {
                return None;
            }
            // An object that is not its exporter cannot tell the memoryview when the view is released; it goes with the pair.
            let mut counted = *view;
            (self.calls.buffer_release)((&raw mut counted).cast());
            (self.calls.inc_ref)(exporter);
            (self.calls.tuple_set_item)(pair.at.as_ptr(), 0, own.into_raw());
            (self.calls.tuple_set_item)(pair.at.as_ptr(), 1, exporter);
            (*view).obj = pair.into_raw();
        }
        Some(())
    }

    /// The exception for a view that is NULL.
    pub(super) fn no_view(self) -> Option<()> {
        // SAFETY: the lock is held.
        unsafe {
            (self.calls.set_string)(self.calls.type_error.as_ptr(), c"expected a view, found NULL".as_ptr())
        };
        None
    }

    /// Clears an exception. Whether there was one comes back.
    fn clear_raised(self) -> bool {
        // SAFETY: the lock is held.
        let raised = !unsafe { (self.calls.occurred)() }.is_null();
        if raised {
            self.clear();
        }
        raised
    }

    /// An object that Python made, or OUT_OF_MEMORY: that is all that can be wrong where this is used.
    #[inline(always)]
    fn made(self, at: *mut c_void, bytes: usize, report: &mut Report<'_>) -> Result<Object<'a>> {
        match NonNull::new(at) {
            Some(at) => Ok(Object { at, lock: self }),
            None => {
                self.clear();
                Err(report.out_of_memory(bytes))
            }
        }
    }

    /// An int that holds an address.
    #[inline(always)]
    pub(super) fn int_of<T>(self, at: *mut T, report: &mut Report<'_>) -> Result<Object<'a>> {
        // SAFETY: the lock is held.
        let int = unsafe { (self.calls.from_void_ptr)(at.cast()) };
        self.made(int, size_of::<usize>(), report)
    }

    /// An int that holds an address, or an exception.
    #[inline(always)]
    pub(super) fn int_or_raise<T>(self, at: *mut T) -> Option<Object<'a>> {
        // SAFETY: the lock is held.
        self.owned(unsafe { (self.calls.from_void_ptr)(at.cast()) })
    }

    /// A capsule that owns the struct.
    #[inline(always)]
    pub(super) fn capsule_of<T: Raw>(
        self,
        held: Held<T>,
        name: &'static CStr,
        report: &mut Report<'_>,
    ) -> Result<Object<'a>> {
        let destructor = Some(bowstring_python_capsule_destructor as unsafe extern "C" fn(*mut c_void));
        // SAFETY: the lock is held, and the name is static.
        let capsule = unsafe { (self.calls.capsule_new)(held.0.cast(), name.as_ptr(), destructor) };
        let made = self.made(capsule, size_of::<T>(), report)?;
        core::mem::forget(held);
        Ok(made)
    }

    /// A tuple of two.
    #[inline(always)]
    pub(super) fn pair_of(
        self,
        first: Object<'a>,
        second: Object<'a>,
        report: &mut Report<'_>,
    ) -> Result<Object<'a>> {
        // SAFETY: the lock is held; a new tuple has room for the items, whose references go to it.
        unsafe {
            let pair = self.made((self.calls.tuple_new)(2), size_of::<[usize; 2]>(), report)?;
            (self.calls.tuple_set_item)(pair.at.as_ptr(), 0, first.into_raw());
            (self.calls.tuple_set_item)(pair.at.as_ptr(), 1, second.into_raw());
            Ok(pair)
        }
    }

    /// An item of a tuple, which the tuple keeps. What is no tuple, or shorter, leaves Python's own exception behind.
    #[inline(always)]
    pub(super) fn item(self, tuple: *mut c_void, index: isize) -> Option<NonNull<c_void>> {
        // SAFETY: the lock is held and the object is live.
        NonNull::new(unsafe { (self.calls.tuple_get_item)(tuple, index) })
    }

    /// How many items a tuple has.
    #[inline(always)]
    pub(super) fn size_of(self, tuple: *mut c_void) -> isize {
        // SAFETY: the lock is held and the object is live.
        unsafe { (self.calls.tuple_size)(tuple) }
    }

    /// The reference that a call returned; NULL has left an exception behind.
    #[inline(always)]
    fn owned(self, at: *mut c_void) -> Option<Object<'a>> {
        Some(Object { at: NonNull::new(at)?, lock: self })
    }

    /// An attribute by a name that is an object, or an exception.
    #[inline(always)]
    pub(super) fn attribute(self, object: *mut c_void, name: NonNull<c_void>) -> Option<Object<'a>> {
        // SAFETY: the lock is held and the objects are live.
        self.owned(unsafe { (self.calls.get_attr)(object, name.as_ptr()) })
    }

    /// What a method of the first argument returns, or an exception.
    #[inline(always)]
    pub(super) fn call_method(self, name: NonNull<c_void>, args: &[*mut c_void]) -> Option<Object<'a>> {
        // SAFETY: the lock is held and the objects are live.
        self.owned(unsafe {
            (self.calls.vectorcall_method)(name.as_ptr(), args.as_ptr(), args.len(), ptr::null_mut())
        })
    }

    /// What the method of that name returns for the arguments that a builtin was called with, or an exception.
    ///
    /// # Safety
    /// The arguments are those of a builtin by METH_FASTCALL and METH_KEYWORDS.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn pass_on(
        self,
        object: *mut c_void,
        name: &CStr,
        args: *const *mut c_void,
        nargs: isize,
        names: *mut c_void,
    ) -> *mut c_void {
        let n_named = if names.is_null() { 0 } else { self.size_of(names) };
        let (n_plain, n_named) = (nargs.unsigned_abs(), n_named.unsigned_abs());
        let mut all = [ptr::null_mut(); MAX_PASSED_ON];
        let n = n_plain.saturating_add(n_named);
        let Some(room) = all.get_mut(1..=n) else {
            let message = c"expected at most fifteen arguments";
            // SAFETY: the lock is held.
            unsafe { (self.calls.set_string)(self.calls.type_error.as_ptr(), message.as_ptr()) };
            return ptr::null_mut();
        };
        // SAFETY: the caller says that so many are there; the lock is held and the objects are live.
        unsafe {
            ptr::copy_nonoverlapping(args, room.as_mut_ptr(), n);
            let [first, ..] = &mut all;
            *first = object;
            let Some(name) = self.owned((self.calls.unicode)(name.as_ptr())) else { return ptr::null_mut() };
            (self.calls.vectorcall_method)(name.at(), all.as_ptr(), n_plain.saturating_add(1), names)
        }
    }

    /// A new instance of a class, all of whose own memory is zero, or an exception.
    #[inline(always)]
    pub(super) fn instance(self, class: NonNull<c_void>) -> Option<Object<'a>> {
        // SAFETY: the lock is held and the class is one.
        self.owned(unsafe { (self.calls.generic_alloc)(class.as_ptr(), 0) })
    }

    /// Where an instance's own memory begins.
    ///
    /// # Safety
    /// The object is an instance of a class whose instances have memory of their own behind the head.
    #[inline(always)]
    pub(super) unsafe fn own_memory<T>(self, object: *mut c_void) -> *mut T {
        // SAFETY: as the caller promises.
        unsafe { object.byte_add(self.calls.object_size.get()).cast() }
    }

    #[inline(always)]
    pub(super) fn true_object(self) -> *mut c_void {
        self.calls.true_object.as_ptr()
    }

    #[inline(always)]
    pub(super) fn is_none(self, object: *mut c_void) -> bool {
        ptr::eq(object, self.calls.none.as_ptr())
    }

    /// A reference to None for the caller.
    #[inline(always)]
    pub(super) fn none(self) -> *mut c_void {
        let none = self.calls.none.as_ptr();
        // SAFETY: the lock is held, and None is live.
        unsafe { (self.calls.inc_ref)(none) };
        none
    }

    /// Runs the body of a call: its object comes back, or None with the record written when it failed.
    #[inline(always)]
    pub(super) fn answer(
        self,
        error: *mut c_void,
        body: impl FnOnce(&mut Report<'_>) -> Result<Object<'a>>,
    ) -> *mut c_void {
        let mut made = ptr::null_mut();
        guard(error.cast::<ErrorRecord>(), |report| {
            made = body(report)?.into_raw();
            Ok(())
        });
        self.settle();
        if made.is_null() { self.none() } else { made }
    }

    /// Keeps the exception that is pending out of the way of what follows, until the result goes.
    #[inline(always)]
    pub(super) fn aside(self) -> Aside<'a> {
        // SAFETY: the lock is held.
        unsafe { self.python.aside() }
    }

    /// Reports an exception that somebody's callback left behind: a builtin may not return with one pending.
    #[inline(always)]
    pub(super) fn settle(self) {
        // SAFETY: the lock is held.
        unsafe {
            if !(self.calls.occurred)().is_null() {
                (self.python.write_unraisable)(ptr::null_mut());
            }
        }
    }
}
