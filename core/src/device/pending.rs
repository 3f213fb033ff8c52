//! Work that is enqueued and not known to be done, and what must live until it is.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::alloc::Layout;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::event::SharedEvent;
use super::waits::{self, Wait};
use crate::abi::Device;
use crate::error::{Report, Result};
use crate::memory::{Counted, CountedOps, Event, Owner, Plan, counts};

/// How much may be pending before the oldest is waited for.
const MOST: usize = 64;

/// Room for one piece of pending work, made before the work is enqueued, when it may still fail.
pub struct Slot(NonNull<Entry>);

#[repr(C)]
struct Entry {
    /// For whoever has the entry as an owner, before it is in the list.
    counted: Counted,
    count: AtomicUsize,
    next: Option<NonNull<Entry>>,
    number: u64,
    event: Option<SharedEvent>,
    owners: [Owner; 2],
    layout: Layout,
}

/// Oldest first. Entries are numbered, so that nobody needs to hold the lock while a driver is asked.
struct List {
    first: Option<NonNull<Entry>>,
    last: Option<NonNull<Entry>>,
    n: usize,
    next_number: u64,
}

// SAFETY: entries are only reached under the lock, or by the one who took them out; events and owners go on any thread.
unsafe impl Send for List {}

static LIST: Mutex<List> = Mutex::new(List { first: None, last: None, n: 0, next_number: 0 });

impl Slot {
    /// Makes room, after what is done was let go.
    pub fn prepare(report: &mut Report<'_>) -> Result<Self> {
        reap();
        let (memory, layout) = Plan::starting_with::<Entry>().allocate(report)?;
        let entry: NonNull<Entry> = memory.cast();
        let owners = [Owner::NONE, Owner::NONE];
        // SAFETY: the memory was just allocated for one entry.
        unsafe {
            entry.write(Entry {
                counted: Counted { ops: &OPS },
                count: AtomicUsize::new(1),
                next: None,
                number: 0,
                event: None,
                owners,
                layout,
            });
        }
        Ok(Self(entry))
    }

    /// Keeps the owners until the event is done, or lets them go at once where work has no events.
    pub fn hold(self, event: Option<SharedEvent>, owners: [Owner; 2]) {
        if event.is_none() {
            return drop(owners);
        }
        enqueue(self.filled(event, owners));
    }

    /// The owner, which is kept until the event is done also after it was let go; and the event, which lives as long.
    pub fn into_owner(self, event: SharedEvent, owner: Owner) -> Owner {
        let entry = self.filled(Some(event), [owner, Owner::NONE]);
        // SAFETY: the entry lives, and its one count is handed over.
        unsafe { Owner::reference(&raw const (*entry.as_ptr()).counted) }
    }

    fn filled(self, event: Option<SharedEvent>, owners: [Owner; 2]) -> NonNull<Entry> {
        let mut entry = self.0;
        core::mem::forget(self);
        // SAFETY: the entry is nobody else's yet.
        let own = unsafe { entry.as_mut() };
        (own.event, own.owners) = (event, owners);
        entry
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: the slot has its entry alone.
        unsafe { free(self.0) };
    }
}

impl core::fmt::Debug for Slot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Slot")
    }
}

/// Whether an owner is one that [`Slot::into_owner`] made.
pub(crate) fn is_kept(owner: &Owner) -> bool {
    owner.is_counted_by(&OPS)
}

static OPS: CountedOps = CountedOps { retain, release, event: no_event, inner: nothing_inner };

unsafe fn retain(counted: *const Counted) {
    // SAFETY: the head is the entry's first member, and the caller's reference keeps the entry alive.
    unsafe { &*counted.cast::<Entry>() }.count.fetch_add(1, Ordering::Relaxed);
}

unsafe fn release(counted: *const Counted) {
    // SAFETY: as above; the count that this takes away is the caller's.
    let entry = unsafe { NonNull::new_unchecked(counted.cast_mut().cast::<Entry>()) };
    // SAFETY: as above.
    if unsafe { entry.as_ref() }.count.fetch_sub(1, Ordering::Release) != 1 {
        return;
    }
    fence(Ordering::Acquire);
    enqueue(entry);
    // What is let go here may itself be such an owner. One call at a time goes through them all, so that a long chain of them
    // takes no deep stack.
    if !IS_REAPING.swap(true, Ordering::Acquire) {
        reap();
        IS_REAPING.store(false, Ordering::Release);
    }
}

static IS_REAPING: AtomicBool = AtomicBool::new(false);

unsafe fn no_event(_: *const Counted) -> Event {
    Event::NONE
}

unsafe fn nothing_inner(_: *const Counted, _: Event) -> Option<Owner> {
    None
}

/// Puts an entry with an event into the list.
fn enqueue(mut entry: NonNull<Entry>) {
    let mut list = lock();
    // SAFETY: the entry is nobody else's yet, and the last one is in the list.
    unsafe {
        entry.as_mut().number = list.next_number;
        match list.last {
            Some(mut last) => last.as_mut().next = Some(entry),
            None => list.first = Some(entry),
        }
    }
    list.last = Some(entry);
    list.n = list.n.saturating_add(1);
    list.next_number = list.next_number.wrapping_add(1);
    counts::PENDING.add();
    let is_full = list.n > MOST;
    drop(list);
    if is_full {
        wait_for_oldest();
    }
}

impl List {
    /// The first entry numbered `from` or later, and its event.
    fn find(&self, from: u64) -> Option<(u64, SharedEvent)> {
        let mut next = self.first;
        while let Some(entry) = next {
            // SAFETY: the entry is in the list, which is locked.
            let entry = unsafe { entry.as_ref() };
            if entry.number >= from
                && let Some(event) = &entry.event
            {
                return Some((entry.number, event.clone()));
            }
            next = entry.next;
        }
        None
    }

    /// Takes an entry out, unless somebody else did.
    fn take(&mut self, number: u64) -> Option<NonNull<Entry>> {
        let (mut before, mut next) = (None::<NonNull<Entry>>, self.first);
        while let Some(entry) = next {
            // SAFETY: the entries are in the list, which is locked.
            let (own, behind) = unsafe { (entry.as_ref().number, entry.as_ref().next) };
            if own == number {
                match before {
                    // SAFETY: as above.
                    Some(mut before) => unsafe { before.as_mut() }.next = behind,
                    None => self.first = behind,
                }
                if self.last == Some(entry) {
                    self.last = before;
                }
                self.n = self.n.saturating_sub(1);
                return Some(entry);
            }
            (before, next) = (next, behind);
        }
        None
    }
}

/// Lets go what finished work needed.
pub fn reap() {
    let mut from = 0;
    while let Some((number, event)) = find(from) {
        let (backend, device) = event.source();
        let report = &mut Report::silent();
        // SAFETY: the event is the backend's.
        let is_done = unsafe { waits::is_done(Wait::PendingDone, backend, device, event.handle(), report) };
        if is_done == Ok(true) {
            let_go(number);
        }
        from = number.saturating_add(1);
    }
}

/// Lets go what finished work on a device needed, after waiting for it with `block`; gives how much is still pending.
pub fn collect(device: Device, block: bool, report: &mut Report<'_>) -> Result<usize> {
    let (mut from, mut left) = (0, 0usize);
    while let Some((number, event)) = find(from) {
        from = number.saturating_add(1);
        let (backend, own) = event.source();
        if own != device {
            continue;
        }
        let event = event.handle();
        // SAFETY: the event is the backend's.
        let is_done = unsafe {
            if block {
                waits::on_host(Wait::CollectBlocks, backend, own, event, report)?;
            }
            waits::is_done(Wait::PendingDone, backend, own, event, report)?
        };
        if is_done {
            let_go(number);
        } else {
            left = left.saturating_add(1);
        }
    }
    Ok(left)
}

/// Waits for the oldest work. Where that fails it stays pending: what it uses may still be in use.
#[cold]
fn wait_for_oldest() {
    let Some((number, event)) = find(0) else { return };
    let (backend, device) = event.source();
    // SAFETY: the event is the backend's.
    let waited = unsafe {
        waits::on_host(Wait::PendingOldest, backend, device, event.handle(), &mut Report::silent())
    };
    if waited.is_ok() {
        let_go(number);
    }
}

fn find(from: u64) -> Option<(u64, SharedEvent)> {
    lock().find(from)
}

/// Frees an entry outside the lock, because its owners may call anybody.
fn let_go(number: u64) {
    let entry = lock().take(number);
    if let Some(entry) = entry {
        // SAFETY: whoever took the entry out has it alone.
        unsafe { free(entry) };
        counts::PENDING.remove();
    }
}

unsafe fn free(entry: NonNull<Entry>) {
    // SAFETY: as the caller promises; the owners go before the event, as everywhere.
    unsafe {
        let Entry { owners, event, layout, .. } = entry.read();
        drop(owners);
        drop(event);
        std::alloc::dealloc(entry.as_ptr().cast(), layout);
    }
}

fn lock() -> MutexGuard<'static, List> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}
