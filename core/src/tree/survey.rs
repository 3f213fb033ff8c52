//! A foreign struct as it is, faults and all: which node of the type each of its structs is, so that a check can go on
//! past the first fault. Nothing is taken, and no buffer is read before somebody asks.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::alloc::Layout;

use super::export::own_node;
use super::import::{facts_of, has_shape, missing, other_count, wrong_shape};
use super::{At, Facts};
use crate::abi::{ArrowArray, ArrowDeviceArray, DEVICE_CPU, Device};
use crate::device::{has_event_handles, is_cpu_readable};
use crate::error::{Report, Result};
use crate::memory::{Event, Place, Plan};
use crate::types::Type;

/// The structs below a root, by the numbers of the type's nodes.
#[derive(Debug)]
pub struct Survey<'a> {
    root: &'a ArrowDeviceArray,
    ty: &'a Type,
    place: Place,
    seen: NonNull<Seen>,
    layout: Layout,
}

/// Where the struct of a node is.
#[derive(Debug, Clone, Copy)]
enum Seen {
    /// Not looked for, because a struct above is broken.
    Unknown,
    /// Not where a struct can be.
    Missing(*const ArrowArray),
    /// There, but it has not the lists that its node has.
    Broken(*const ArrowArray),
    /// There.
    Here(*const ArrowArray),
}

// SAFETY: a survey only reads, and its caller keeps what it reads unchanged.
unsafe impl Sync for Survey<'_> {}

impl<'a> Survey<'a> {
    /// Looks for the struct of each node of the type; one allocation.
    ///
    /// # Safety
    /// As [`import`](super::import::import) has it; the struct stays as it is for `'a`.
    pub unsafe fn new(root: &'a ArrowDeviceArray, ty: &'a Type, report: &mut Report<'_>) -> Result<Self> {
        let device = Device { r#type: root.device_type, id: root.device_id };
        // What is no place at all is kept as it is written, and nothing is read there.
        let device = if device.r#type == DEVICE_CPU { Device::CPU } else { device };
        // Of a released struct nothing else is read: what ends a stream may be uninitialised but for its release.
        let event = match root.array.release {
            None => Event::NONE,
            // SAFETY: the interface says that the event of such a device is a handle, and that the address leads to it.
            Some(_) => unsafe { Event::at(root.sync_event, has_event_handles(device.r#type)) },
        };
        let place = Place { device, event };
        let mut plan = Plan::starting_with::<Seen>();
        plan.array::<Seen>(ty.n_nodes());
        let (memory, layout) = plan.allocate(report)?;
        let seen = memory.cast::<Seen>();
        for i in 0..ty.n_nodes() {
            // SAFETY: the block has room for one more than the type has nodes.
            unsafe { seen.add(i).write(Seen::Unknown) };
        }
        let survey = Self { root, ty, place, seen, layout };
        // SAFETY: as the caller promises.
        unsafe { survey.look(&raw const root.array, 0) };
        Ok(survey)
    }

    /// Notes the struct of one node and looks below it. A type's depth limits the recursion.
    unsafe fn look(&self, raw: *const ArrowArray, index: usize) {
        let Some(node) = self.ty.node(index) else { return };
        // SAFETY: the interface says that an aligned pointer which is not NULL leads to an array.
        let found = if raw.is_aligned() { unsafe { raw.as_ref() } } else { None };
        let seen = match found {
            None => Seen::Missing(raw),
            Some(found) if !has_shape(found, node) => Seen::Broken(raw),
            Some(_) => Seen::Here(raw),
        };
        // SAFETY: the block has a place for each node.
        unsafe { self.seen.add(index).write(seen) };
        let (Some(found), Seen::Here(_)) = (found, seen) else { return };
        for (i, child) in self.ty.children_of(node).iter().enumerate() {
            let child = (*child as usize).wrapping_sub(self.ty.base());
            // SAFETY: the list of children was checked to be there and to have as many as the type.
            unsafe { self.look(found.children.add(i).read(), child) };
        }
        if let Some(dictionary) = self.ty.dictionary_index(index) {
            // SAFETY: as above.
            unsafe { self.look(found.dictionary, dictionary) };
        }
    }

    /// The type.
    pub fn ty(&self) -> &Type {
        self.ty
    }

    /// Where the buffers are.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The root struct.
    pub fn root(&self) -> &ArrowDeviceArray {
        self.root
    }

    fn seen(&self, i: usize) -> Seen {
        if i >= self.ty.n_nodes() {
            return Seen::Unknown;
        }
        // SAFETY: the block has a written place for each node.
        unsafe { self.seen.add(i).read() }
    }

    fn here(&self, i: usize) -> Option<&ArrowArray> {
        match self.seen(i) {
            // SAFETY: the struct is where the look found it, and stays as it is.
            Seen::Here(raw) => Some(unsafe { &*raw }),
            _ => None,
        }
    }

    /// Whether the struct of node `i` is there with its lists; false when a struct above is broken, which was told there.
    pub fn shape(&self, i: usize, report: &mut Report<'_>) -> Result<bool> {
        let Some(node) = self.ty.node(i) else { return Ok(false) };
        match self.seen(i) {
            Seen::Unknown => Ok(false),
            Seen::Here(_) => Ok(true),
            Seen::Missing(raw) => Err(missing(self.ty, i, raw, report)),
            Seen::Broken(raw) => {
                let at = At { ty: self.ty, node, index: i };
                // SAFETY: the look found an array there.
                Err(wrong_shape(unsafe { &*raw }, &at, report))
            }
        }
    }

    /// The numbers of node `i`, when its struct is there.
    pub fn facts(&self, i: usize) -> Option<Facts> {
        self.here(i).map(facts_of)
    }

    /// The number of buffers of node `i` that its layout knows, by rules A3 and A8.
    pub fn count(&self, i: usize, report: &mut Report<'_>) -> Result<usize> {
        let (Some(raw), Some(node)) = (self.here(i), self.ty.node(i)) else { return Ok(0) };
        let least = node.layout.min_buffers();
        if usize::try_from(raw.n_buffers) == Ok(least) {
            return Ok(least);
        }
        let at = At { ty: self.ty, node, index: i };
        // SAFETY: the list of buffers is there when there are any.
        unsafe { other_count(raw, &at, report) }.map(|(count, _)| count)
    }

    /// Address of buffer `k` of node `i`, NULL when there is none.
    pub fn buffer(&self, i: usize, k: usize) -> *const c_void {
        let (Some(raw), Some(node)) = (self.here(i), self.ty.node(i)) else { return core::ptr::null() };
        let at = At { ty: self.ty, node, index: i };
        // A legacy NULL comes before the layout's own buffers.
        let skipped = usize::from(at.is_legacy(raw.n_buffers));
        let place = k.saturating_add(skipped);
        if usize::try_from(raw.n_buffers).is_ok_and(|n| place < n) {
            // SAFETY: the list has `n_buffers` pointers.
            return unsafe { raw.buffers.add(place).read() };
        }
        core::ptr::null()
    }

    /// Readable bytes of buffer `k` of node `i` when the struct is ours and its producer said so, else -1.
    pub fn stated_size(&self, i: usize, k: usize) -> i64 {
        let Some(raw) = self.here(i) else { return -1 };
        // SAFETY: the struct is live.
        let own = unsafe { own_node(raw) }.filter(|own| own.is_at(&self.place));
        own.and_then(|own| own.size(k)).unwrap_or(-1)
    }

    /// Whether a buffer is one that the library built in CPU memory, in a struct of ours.
    pub(crate) fn is_built(&self, i: usize, k: usize) -> bool {
        // SAFETY: the struct is live.
        let own = self.here(i).and_then(|raw| unsafe { own_node(raw) });
        own.is_some_and(|own| own.is_built(self.buffer(i, k)))
    }

    /// The `n` bytes from `at` on of buffer `k` of node `i`, when the CPU may read them.
    ///
    /// The caller asks for no more than the node's own numbers say that there must be.
    pub(crate) fn host_bytes(&self, i: usize, k: usize, at: usize, n: usize) -> Option<&[u8]> {
        let data = self.buffer(i, k);
        if data.is_null() || !is_cpu_readable(self.place.device) || self.place.event != Event::NONE {
            return None;
        }
        // SAFETY: the producer vouches for as many bytes as its numbers say.
        Some(unsafe { core::slice::from_raw_parts(data.cast::<u8>().add(at), n) })
    }
}

impl Drop for Survey<'_> {
    fn drop(&mut self) {
        // SAFETY: the block is this survey's alone.
        unsafe { std::alloc::dealloc(self.seen.cast().as_ptr(), self.layout) };
    }
}
