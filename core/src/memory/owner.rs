//! Owners: a context and the function that lets it go, once.

use core::ffi::c_void;

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

    /// Takes the owner out, so that the struct owns nothing any more.
    pub fn take_owner(&mut self) -> Owner {
        let owner = core::mem::replace(&mut self.owner, core::ptr::null_mut());
        Owner { context: owner, release: self.release_owner.take() }
    }

    /// The `n` bytes from `at` on, when the memory is the CPU's and known to have them.
    pub fn host_bytes(&self, device: Device, at: usize, n: usize) -> Option<&[u8]> {
        let end = i64::try_from(at.checked_add(n)?).ok()?;
        let known = self.size_bytes < 0 || end <= self.size_bytes;
        if device.r#type != DEVICE_CPU || self.data.is_null() || !known {
            return None;
        }
        // SAFETY: whoever made the struct vouched for the memory; an unknown size is vouched for by its use.
        Some(unsafe { core::slice::from_raw_parts(self.data.cast::<u8>().add(at), n) })
    }
}

/// An owner that is let go when it is dropped.
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

    /// A second reference to the same thing, when the owner is one of ours and so can be counted, and the address of
    /// the event that a reader of its memory waits on, when that is `event`.
    pub fn try_retain(&self, event: *mut c_void) -> Option<(Owner, *mut c_void)> {
        if self.release.is_none_or(|release| release as usize != release_reference as *const () as usize) {
            return None;
        }
        let counted: *const Counted = self.context.cast();
        // SAFETY: our release function stands only beside a counted thing of ours, which this owner keeps alive, and
        // with it the event.
        unsafe {
            let address = ((*counted).ops.event)(counted);
            if event_at(address) != event {
                return None;
            }
            ((*counted).ops.retain)(counted);
            Some((Owner::reference(counted), address))
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
    fn drop(&mut self) {
        let Some(release) = self.release else { return };
        let context = self.context;
        if release as usize == release_reference as *const () as usize {
            // SAFETY: as below; our own code needs no scope, and the owners behind it enter it themselves.
            return unsafe { release(context) };
        }
        // SAFETY: whoever made the owner promised that it can be let go once, on any thread.
        scope::run(|| unsafe { release(context) });
    }
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
    /// Address of the event that a reader of this memory waits on, NULL when there is none.
    pub event: unsafe fn(*const Counted) -> *mut c_void,
}

/// The event's handle at a stable address, NULL when there is no address.
///
/// # Safety
/// A non-NULL address leads to a handle, as the Arrow C Device interface says of `sync_event`.
pub unsafe fn event_at(address: *mut c_void) -> *mut c_void {
    // SAFETY: as the caller promises; producers may place the handle at any address.
    if address.is_null() { address } else { unsafe { address.cast::<*mut c_void>().read_unaligned() } }
}

/// The one release function of owners that are references to something of ours.
unsafe extern "C" fn release_reference(counted: *mut c_void) {
    let counted: *const Counted = counted.cast();
    if !counted.is_null() {
        // SAFETY: this function stands only beside a counted thing of ours, which the reference keeps alive.
        unsafe { ((*counted).ops.release)(counted) };
    }
}

/// An event handed over by value: its handle has a stable address for as long as the cell lives.
#[derive(Debug)]
pub struct EventCell {
    /// The handle, NULL when there is none.
    pub handle: *mut c_void,
    /// Goes first to `destroy`.
    pub context: *mut c_void,
    /// Destroys the event; NULL when somebody else does.
    pub destroy: Option<unsafe extern "C" fn(context: *mut c_void, event: *mut c_void)>,
}

// SAFETY: an event's handle may be waited on and destroyed by any thread; whoever hands it over promises that.
unsafe impl Send for EventCell {}
// SAFETY: as above.
unsafe impl Sync for EventCell {}

impl EventCell {
    /// No event.
    pub const NONE: EventCell =
        EventCell { handle: core::ptr::null_mut(), context: core::ptr::null_mut(), destroy: None };

    /// Address of the handle, or NULL when there is no event.
    pub fn address(&self) -> *mut c_void {
        if self.handle.is_null() {
            return core::ptr::null_mut();
        }
        core::ptr::from_ref(&self.handle).cast_mut().cast()
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
