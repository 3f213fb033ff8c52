//! Owners: a context and the function that lets it go, once.

use core::ffi::c_void;
use core::mem::{ManuallyDrop, offset_of};
use core::sync::atomic::AtomicUsize;

use super::counts::take_off;
use super::scope;
use crate::abi::{DEVICE_CPU, Device};

/// Lets an owner go. Any thread may call it; it must not unwind.
pub type ReleaseOwner = unsafe extern "C" fn(owner: *mut c_void);

/// Memory and its owner, as the C interface passes them.
///
/// The layout is frozen. Whoever holds the struct owns the owner: calling `release_owner(owner)` once lets the memory
/// go. A NULL `release_owner` means that nobody needs to be told.
#[repr(C)]
#[derive(Debug)]
pub struct OwnedBuffer {
    /// Start of the memory, on whatever device it lives; may be NULL when there are no bytes.
    data: *const c_void,
    /// Readable bytes from `data`, -1 when unknown.
    size_bytes: i64,
    /// What keeps the memory alive.
    owner: *mut c_void,
    /// Lets the owner go; called once, from any thread, and must not unwind.
    release_owner: Option<unsafe extern "C" fn(owner: *mut c_void)>,
}

impl OwnedBuffer {
    /// Describes memory and takes over its owner.
    ///
    /// # Safety
    /// `data` leads to `size_bytes` bytes on the device that the struct will be used for (any number when -1), for as
    /// long as the owner is not let go; `release_owner` may be called once with `owner`, on any thread.
    pub unsafe fn new(
        data: *const c_void,
        size_bytes: i64,
        owner: *mut c_void,
        release_owner: Option<ReleaseOwner>,
    ) -> Self {
        Self { data, size_bytes, owner, release_owner }
    }

    /// No memory.
    pub fn absent() -> Self {
        Self { data: core::ptr::null(), size_bytes: 0, owner: core::ptr::null_mut(), release_owner: None }
    }

    /// Start of the memory.
    pub fn data(&self) -> *const c_void {
        self.data
    }

    /// Readable bytes, -1 when unknown.
    pub fn size_bytes(&self) -> i64 {
        self.size_bytes
    }

    /// Whether letting the memory go calls somebody.
    pub fn has_owner(&self) -> bool {
        self.release_owner.is_some()
    }

    /// The same memory, of which so many bytes are known to be there.
    pub(crate) fn known(self, size_bytes: i64) -> Self {
        Self { size_bytes, ..self }
    }

    /// The same memory without its first `bytes`, which there are.
    pub fn skip(self, bytes: usize) -> Self {
        let known = i64::try_from(bytes).unwrap_or(i64::MAX);
        let size_bytes = if self.size_bytes < 0 { -1 } else { self.size_bytes.saturating_sub(known).max(0) };
        let data = if self.data.is_null() { self.data } else { self.data.wrapping_byte_add(bytes) };
        Self { data, size_bytes, ..self }
    }

    /// Takes the owner out, so that the struct owns nothing any more.
    pub fn take_owner(&mut self) -> Owner {
        let owner = core::mem::replace(&mut self.owner, core::ptr::null_mut());
        Owner { context: owner, release: self.release_owner.take() }
    }

    /// The `n` bytes from `at` on, when the memory is the CPU's and known to have them.
    pub(crate) fn host_bytes(&self, device: Device, at: usize, n: usize) -> Option<&[u8]> {
        let end = i64::try_from(at.checked_add(n)?).ok()?;
        let known = self.size_bytes < 0 || end <= self.size_bytes;
        if device.r#type != DEVICE_CPU || self.data.is_null() || !known {
            return None;
        }
        // SAFETY: whoever made the struct vouched for the memory; an unknown size is vouched for by its use.
        Some(unsafe { core::slice::from_raw_parts(self.data.cast::<u8>().add(at), n) })
    }
}

/// A buffer that was handed over, as a block keeps it: who owns the memory, how large it is, and how many use it.
///
/// It lies in memory as what was handed over does, so that it is taken over by a copy.
#[repr(C)]
#[derive(Debug)]
pub struct Held {
    /// How many use the buffer; the last one lets the owner go.
    pub count: AtomicUsize,
    /// Readable bytes, -1 when unknown.
    pub size_bytes: i64,
    /// What keeps the memory alive.
    pub owner: ManuallyDrop<Owner>,
}

const _: () = {
    assert!(size_of::<Held>() == size_of::<OwnedBuffer>() && align_of::<Held>() == align_of::<OwnedBuffer>());
    assert!(size_of::<AtomicUsize>() == size_of::<*const c_void>());
    assert!(offset_of!(Held, size_bytes) == offset_of!(OwnedBuffer, size_bytes));
    let owner = offset_of!(Held, owner);
    assert!(owner.wrapping_add(offset_of!(Owner, context)) == offset_of!(OwnedBuffer, owner));
    assert!(owner.wrapping_add(offset_of!(Owner, release)) == offset_of!(OwnedBuffer, release_owner));
};

impl Held {
    /// One user less; the last one lets the owner go.
    ///
    /// # Safety
    /// `held` has a user, who does not use it any more.
    #[inline(always)]
    pub unsafe fn leave(held: *mut Held) {
        // SAFETY: as the caller promises; nobody changes the owner while there are users, and the last one is alone.
        unsafe {
            let Owner { context, release: Some(release) } = *(&raw const (*held).owner).cast() else {
                return;
            };
            if take_off(&(*held).count, 1) {
                let_go(context, release);
            }
        }
    }

    /// Takes over the owner of `buffer`, which owns nothing any more, for something that shows the event `shown`. It has one user.
    ///
    /// # Safety
    /// There is room at `held`.
    #[inline(always)]
    pub unsafe fn take_over(buffer: &mut OwnedBuffer, held: *mut Held, shown: Event) {
        // SAFETY: the caller has the room. Both structs have the same members at the same places, but for the address, in whose
        // place the count comes; and the original forgets its owner here.
        unsafe {
            core::ptr::copy_nonoverlapping(core::ptr::from_ref(buffer).cast(), held, 1);
            (&raw mut (*held).count).write(AtomicUsize::new(1));
            (buffer.owner, buffer.release_owner) = (core::ptr::null_mut(), None);
            if (*held).owner.counted().is_some() {
                let owner = ManuallyDrop::take(&mut (*held).owner);
                (&raw mut (*held).owner).write(ManuallyDrop::new(owner.peeled(shown)));
            }
        }
    }
}

/// An owner that is let go when it is dropped.
#[repr(C)]
#[derive(Debug)]
pub struct Owner {
    context: *mut c_void,
    release: Option<ReleaseOwner>,
}

// SAFETY: whoever makes an owner promises that any thread may let it go.
unsafe impl Send for Owner {}
// SAFETY: a shared owner can only be looked at, or counted when it is one of ours, which is atomic.
unsafe impl Sync for Owner {}

impl Owner {
    /// Nobody needs to be told.
    pub const NONE: Owner = Owner { context: core::ptr::null_mut(), release: None };

    /// Takes over a foreign owner.
    ///
    /// # Safety
    /// `release` may be called once with `context`, on any thread.
    pub unsafe fn new(context: *mut c_void, release: Option<ReleaseOwner>) -> Self {
        Self { context, release }
    }

    /// A counted reference to something of ours.
    ///
    /// # Safety
    /// `counted` lives, and one of its counts is handed over.
    pub unsafe fn reference(counted: *const Counted) -> Self {
        Self { context: counted.cast_mut().cast(), release: Some(release_reference) }
    }

    /// Whether nobody needs to be told.
    pub fn is_none(&self) -> bool {
        self.release.is_none()
    }

    /// A second reference to the same thing, when the owner is one of ours and so can be counted, and what a reader of its
    /// memory waits on, when that is the same event as `event`.
    #[inline]
    pub fn try_retain(&self, event: Event) -> Option<(Owner, Event)> {
        // Most owners are somebody else's.
        self.counted().and_then(|_| self.retained(event))
    }

    #[inline(never)]
    fn retained(&self, event: Event) -> Option<(Owner, Event)> {
        let counted = self.counted()?;
        // SAFETY: the owner keeps the counted thing alive.
        unsafe {
            let own = ((*counted).ops.event)(counted);
            if own.identity != event.identity {
                return None;
            }
            ((*counted).ops.retain)(counted);
            Some((Owner::reference(counted), own))
        }
    }

    /// What the owner leads to in the end, for something that shows the event `shown` and no other.
    ///
    /// What is taken out of an array of ours and handed over again would otherwise grow by a link each time. Whatever
    /// owns the event that is shown is kept; an event that nobody shows any more is let go.
    #[must_use]
    #[inline(always)]
    pub fn peeled(self, shown: Event) -> Owner {
        if self.counted().is_none() { self } else { self.peeled_to_the_end(shown) }
    }

    #[cold]
    #[inline(never)]
    fn peeled_to_the_end(self, shown: Event) -> Owner {
        let mut owner = self;
        loop {
            // SAFETY: the owner keeps the counted thing alive.
            let inner = owner.counted().and_then(|counted| unsafe { ((*counted).ops.inner)(counted, shown) });
            match inner {
                Some(inner) => owner = inner,
                None => return owner,
            }
        }
    }

    /// The thing of ours that the owner refers to. Such an owner can be counted again by whoever retains it.
    #[inline]
    fn counted(&self) -> Option<*const Counted> {
        let ours = self.release? as usize == release_reference as *const () as usize;
        ours.then_some(self.context.cast_const().cast())
    }

    /// Whether the owner is one of ours of this kind.
    pub(crate) fn is_counted_by(&self, ops: &'static CountedOps) -> bool {
        // SAFETY: the owner keeps the counted thing alive.
        self.counted().is_some_and(|counted| core::ptr::eq(unsafe { (*counted).ops }, ops))
    }

    /// A further reference, when the owner is one of ours.
    pub fn again(&self) -> Option<Owner> {
        let counted = self.counted()?;
        // SAFETY: the owner keeps the counted thing alive.
        unsafe {
            ((*counted).ops.retain)(counted);
            Some(Owner::reference(counted))
        }
    }

    /// The parts, for a C struct that now owns the owner.
    pub fn into_parts(self) -> (*mut c_void, Option<ReleaseOwner>) {
        let parts = (self.context, self.release);
        core::mem::forget(self);
        parts
    }
}

impl Drop for Owner {
    #[inline]
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: whoever made the owner promised that it can be let go once.
            unsafe { let_go(self.context, release) };
        }
    }
}

/// Lets an owner go.
///
/// # Safety
/// It was not let go before.
#[inline(always)]
unsafe fn let_go(context: *mut c_void, release: ReleaseOwner) {
    if release as usize == release_reference as *const () as usize {
        // SAFETY: as below; our own code needs no scope, and the owners behind it enter it themselves.
        return unsafe { end_reference(context) };
    }
    // SAFETY: whoever made the owner promised that it can be let go once, on any thread.
    scope::run(|| unsafe { release(context) });
}

/// The head of everything of ours that an owner may count.
#[repr(C)]
#[derive(Debug)]
pub struct Counted {
    /// How it is counted.
    pub ops: &'static CountedOps,
}

/// How one kind of thing is counted.
#[derive(Debug)]
pub struct CountedOps {
    /// One reference more.
    pub retain: unsafe fn(*const Counted),
    /// One reference less.
    pub release: unsafe fn(*const Counted),
    /// What a reader of this memory waits on.
    pub event: unsafe fn(*const Counted) -> Event,
    /// A further reference to the thing of ours that this one only passes on, for something that shows this event; `None`
    /// when it owns more than that.
    pub inner: unsafe fn(*const Counted, shown: Event) -> Option<Owner>,
}

/// The one release function of owners that are references to something of ours.
unsafe extern "C" fn release_reference(counted: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { end_reference(counted) };
}

/// One reference to something of ours less.
#[inline(always)]
unsafe fn end_reference(counted: *mut c_void) {
    let counted: *const Counted = counted.cast();
    if !counted.is_null() {
        // SAFETY: the release function stands only beside a counted thing of ours, which the reference keeps alive.
        unsafe { ((*counted).ops.release)(counted) };
    }
}

/// An event as arrays show it: an address, and what tells it from other events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What `sync_event` shows: NULL when there is nothing to wait on.
    pub address: *mut c_void,
    /// The handle at the address, or the address itself where the event is not a handle.
    pub identity: *mut c_void,
}

impl Event {
    /// Nothing to wait on.
    pub const NONE: Event = Event { address: core::ptr::null_mut(), identity: core::ptr::null_mut() };

    /// Whether there is nothing to wait on.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.address.addr() | self.identity.addr() == 0
    }

    /// The event at an address that a producer shows. `is_handle` says whether a handle as large as a pointer lies there.
    ///
    /// # Safety
    /// With `is_handle`, a non-NULL address leads to a handle.
    pub unsafe fn at(address: *mut c_void, is_handle: bool) -> Event {
        if address.is_null() || !is_handle {
            return Event { address, identity: address };
        }
        // SAFETY: as the caller promises; producers may place the handle at any address.
        Event { address, identity: unsafe { address.cast::<*mut c_void>().read_unaligned() } }
    }
}

/// An event that was handed over: its handle has a stable address for as long as the cell lives.
#[derive(Debug)]
pub struct EventCell {
    handle: *mut c_void,
    context: *mut c_void,
    destroy: Option<unsafe extern "C" fn(context: *mut c_void, event: *mut c_void)>,
    is_handle: bool,
}

// SAFETY: an event may be waited on and destroyed by any thread; whoever hands it over promises that.
unsafe impl Send for EventCell {}
// SAFETY: as above.
unsafe impl Sync for EventCell {}

impl EventCell {
    /// No event.
    pub const NONE: EventCell = EventCell {
        handle: core::ptr::null_mut(),
        context: core::ptr::null_mut(),
        destroy: None,
        is_handle: true,
    };

    /// Takes over an event: a handle by value, or where `is_handle` is false, an event that has an address of its own.
    ///
    /// # Safety
    /// `destroy` may be called once with `context` and `handle`, on any thread.
    pub unsafe fn new(
        handle: *mut c_void,
        context: *mut c_void,
        destroy: Option<unsafe extern "C" fn(context: *mut c_void, event: *mut c_void)>,
        is_handle: bool,
    ) -> Self {
        Self { handle, context, destroy, is_handle }
    }

    /// The event as arrays show it, valid as long as the cell stays where it is.
    pub fn event(&self) -> Event {
        let address = if self.is_handle && !self.handle.is_null() {
            core::ptr::from_ref(&self.handle).cast_mut().cast()
        } else {
            self.handle
        };
        Event { address, identity: self.handle }
    }

    /// Whether somebody else keeps the event alive.
    pub fn is_borrowed(&self) -> bool {
        self.destroy.is_none()
    }

    /// Whether whoever shows this event needs the cell.
    pub fn keeps(&self, shown: Event) -> bool {
        self.destroy.is_some() && !self.handle.is_null() && self.handle == shown.identity
    }
}

impl Drop for EventCell {
    fn drop(&mut self) {
        let (Some(destroy), context, handle) = (self.destroy, self.context, self.handle) else { return };
        if !handle.is_null() {
            // SAFETY: whoever handed the event over promised that it can be destroyed once, on any thread.
            scope::run(|| unsafe { destroy(context, handle) });
        }
    }
}
