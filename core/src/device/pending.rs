//! Work that is enqueued and not known to be done, and what must live until it is.

use core::ptr::NonNull;
use std::alloc::Layout;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::event::SharedEvent;
use super::waits::{self, Wait};
use crate::abi::Device;
use crate::error::{Report, Result};
use crate::memory::{Owner, Plan, counts};

/// How much may be pending before the oldest is waited for.
const MOST: usize = 64;

/// Room for one piece of pending work, made before the work is enqueued, when it may still fail.
pub struct Slot(NonNull<Entry>);

struct Entry {
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
        unsafe { entry.write(Entry { next: None, number: 0, event: None, owners, layout }) };
        Ok(Self(entry))
    }

    /// Keeps the owners until the event is done, or lets them go at once where work has no events.
    pub fn hold(self, event: Option<SharedEvent>, owners: [Owner; 2]) {
        if event.is_none() {
            return drop(owners);
        }
        let mut entry = self.0;
        core::mem::forget(self);
        let mut list = lock();
        // SAFETY: the entry is nobody else's yet, and the last one is in the list.
        unsafe {
            entry.as_mut().event = event;
            entry.as_mut().owners = owners;
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
        counts::PENDING.remove();
        // SAFETY: whoever took the entry out has it alone.
        unsafe { free(entry) };
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
