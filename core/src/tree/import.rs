//! Import: a foreign struct becomes a tree, checked without reading a buffer.

use core::sync::atomic::{AtomicI64, Ordering};

use super::export::{Block, own_node};
use super::imported::{Draft, Made, Node, Source};
use super::{Array, Facts, View, check_links, check_node};
use crate::abi::{ArrayView, ArrowArray, ArrowDeviceArray, Device};
use crate::device::check_foreign;
use crate::error::{Report, Result, Rule, Status};
use crate::memory::{Owner, Place};
use crate::types::{self, NONE, Type};

/// How a struct comes into the library.
pub enum Import<'a> {
    /// The struct is moved in, and released with the last handle.
    Move(&'a mut ArrowDeviceArray),
    /// The struct is CPU memory without a device around it; it is moved in.
    MoveHost(&'a mut ArrowArray),
    /// The struct stays somebody else's, who is told through the owner when it is not needed any more. The owner is taken on success.
    Borrow(&'a ArrowDeviceArray, &'a mut Owner),
}

/// Makes a tree of a struct: one allocation. When it fails, nothing was taken.
///
/// # Safety
/// The struct and everything below it is what the Arrow C Device interface says, but for members whose fault can be
/// told by looking at the struct; the buffers' memory is not read.
pub unsafe fn import(from: Import<'_>, ty: &Type, report: &mut Report<'_>) -> Result<Array> {
    let (raw, device, event) = match &from {
        Import::Move(device) => (&raw const device.array, device_of(device), device.sync_event),
        Import::Borrow(device, _) => (&raw const device.array, device_of(device), device.sync_event),
        Import::MoveHost(array) => (&raw const **array, Device::CPU, core::ptr::null_mut()),
    };
    // SAFETY: the pointer was just taken from a reference that outlives this call.
    let raw = unsafe { &*raw };
    // SAFETY: as the caller promises.
    let view = unsafe { ArrayView::new(raw) };
    if view.is_released() {
        return Err(report.fail_at(
            Status::Released,
            Rule::M2,
            &"$",
            format_args!("expected a live array, found one that was released or moved out"),
        ));
    }
    let device = check_foreign(device, event, report)?;
    let draft = Draft::allocate(ty.n_nodes(), 0, report)?;
    let mut walk = Walk { ty, draft, n_buffers: 0, built: None, intact: true, borrowed: false };
    walk.borrowed = matches!(from, Import::Borrow(..));
    walk.node(view, 0, report)?;
    walk.finish(from, Place { device, event }, report)
}

fn device_of(raw: &ArrowDeviceArray) -> Device {
    Device { r#type: raw.device_type, id: raw.device_id }
}

struct Walk<'a> {
    ty: &'a Type,
    draft: Draft,
    n_buffers: usize,
    /// The block of ours that the root lies in, and the root's index there.
    built: Option<(*mut Block, usize)>,
    /// Whether every node so far is where that block put it.
    intact: bool,
    borrowed: bool,
}

impl Walk<'_> {
    /// Checks and notes one node and what is below it. A type's depth limits the recursion.
    fn node(&mut self, view: ArrayView<'_>, index: usize, report: &mut Report<'_>) -> Result<()> {
        let raw = view.raw();
        let Some(node) = self.ty.node(index) else {
            return Err(report.fail(Status::Internal, format_args!("expected node {index} in the type")));
        };
        self.check_shape(view, index, report)?;
        let facts = Facts {
            length: raw.length,
            offset: raw.offset,
            null_count: raw.null_count,
            n_buffers: raw.n_buffers,
        };
        let skip = check_node(self.ty, index, &facts, true, |k| view.buffer(k), report)?;
        let n_buffers = usize::try_from(raw.n_buffers).unwrap_or(0).saturating_sub(skip);
        // SAFETY: the struct is live for the whole call.
        let own = if self.borrowed { None } else { unsafe { own_node(raw) } };
        if index == 0 {
            self.built = own.map(|own| (own.block, own.index));
        }
        self.intact = self.intact
            && match (self.built, own) {
                (Some((block, first)), Some(own)) => {
                    own.block == block && own.index == first.wrapping_add(index)
                }
                _ => false,
            };
        let entry = Node {
            length: raw.length,
            offset: raw.offset,
            first_buffer: self.n_buffers,
            n_buffers,
            null_count: AtomicI64::new(raw.null_count),
            // SAFETY: `skip` buffers were found in the list; without a list nothing is skipped.
            buffers: unsafe { raw.buffers.add(skip) }.cast_const(),
            entries: own.map_or(core::ptr::null_mut(), |own| own.entries),
        };
        // SAFETY: the draft has room for every node of the type, and `index` is one.
        unsafe { self.draft.set(index, entry) };
        self.n_buffers = self.n_buffers.saturating_add(n_buffers);
        let base = self.ty.base();
        let mut child_index = index.saturating_add(1);
        for i in 0..node.n_children as usize {
            let Some(child) = view.child(i) else {
                return Err(missing(self.ty, child_index, "child", report));
            };
            self.node(child, child_index, report)?;
            let end = self.ty.node(child_index).map_or(0, |n| n.subtree_end as usize);
            child_index = end.saturating_sub(base);
        }
        if node.dictionary != NONE {
            let Some(dictionary) = view.dictionary() else {
                return Err(missing(self.ty, child_index, "dictionary", report));
            };
            self.node(dictionary, child_index, report)?;
        }
        Ok(())
    }

    fn check_shape(&self, view: ArrayView<'_>, index: usize, report: &mut Report<'_>) -> Result<()> {
        let (raw, Some(node)) = (view.raw(), self.ty.node(index)) else { return Ok(()) };
        let path = self.ty.path(index);
        if view.is_released() {
            let message = format_args!("expected a live array, found one that was released or moved out");
            return Err(report.broken(Rule::A7, &path, message));
        }
        if raw.n_children != i64::from(node.n_children) {
            let message = format_args!("expected {} children, found {}", node.n_children, raw.n_children);
            return Err(report.broken(Rule::A7, &path, message));
        }
        if raw.n_children > 0 && raw.children.is_null() {
            let message = format_args!("expected a list of {} children, found NULL", raw.n_children);
            return Err(report.broken(Rule::A7, &path, message));
        }
        if node.dictionary == NONE && !raw.dictionary.is_null() {
            let message = format_args!("expected no dictionary, found one at {:p}", raw.dictionary);
            return Err(report.broken(Rule::A7, &path, message));
        }
        if raw.n_buffers > 0 && raw.buffers.is_null() {
            let message = format_args!("expected a list of {} buffers, found NULL", raw.n_buffers);
            return Err(report.broken(Rule::A4, &path, message));
        }
        Ok(())
    }

    fn finish(self, from: Import<'_>, place: Place, report: &mut Report<'_>) -> Result<Array> {
        let facts = |i| {
            // SAFETY: every node was written by the walk, and `i` is one.
            let node = unsafe { self.draft.get(i) };
            let null_count = node.null_count.load(Ordering::Relaxed);
            Facts { length: node.length, null_count, offset: node.offset, n_buffers: 0 }
        };
        check_links(self.ty, facts, report)?;
        let root = facts(0);
        if let Some(shown) = self.shown_array() {
            return Ok(self.show_again(&shown, from));
        }
        let (source, owner) = match from {
            Import::Move(raw) => {
                // SAFETY: a move is a bitwise copy and a NULL release, and the interface allows it.
                let moved = unsafe { core::ptr::read(raw) };
                raw.array.release = None;
                (Source::Foreign(moved), Owner::NONE)
            }
            Import::MoveHost(raw) => {
                // SAFETY: as above.
                let array = unsafe { core::ptr::read(raw) };
                raw.release = None;
                let (device_id, device_type) = (place.device.id, place.device.r#type);
                let sync_event = core::ptr::null_mut();
                let device = ArrowDeviceArray { array, device_id, device_type, sync_event, reserved: [0; 3] };
                (Source::Foreign(device), Owner::NONE)
            }
            Import::Borrow(_, owner) => (Source::Borrowed, core::mem::replace(owner, Owner::NONE)),
        };
        let made = Made {
            ty: self.ty.clone(),
            place,
            source,
            owner,
            n_buffers: self.n_buffers,
            sizes: core::ptr::null(),
            view: View { node: 0, offset: root.offset, length: root.length, null_count: -1 },
        };
        // SAFETY: every node was written by the walk, and the source keeps what they point to.
        Ok(unsafe { self.draft.finish(made) })
    }

    /// The array that the struct is an export of, when it still is that export and is read as the same type.
    fn shown_array(&self) -> Option<Array> {
        let (block, first) = self.built.filter(|_| self.intact)?;
        // SAFETY: the struct is live, so its block is, and the block's array is not changed while it is.
        let shown = unsafe { (*block).keep.as_ref() }?;
        let ty = shown.tree().ty().at(shown.node())?;
        let all = types::IGNORE_NAMES | types::IGNORE_METADATA | types::IGNORE_NULLABLE;
        (first == 0 && ty.equals(self.ty, all)).then(|| shown.clone())
    }

    /// Shows `shown`'s buffers, and releases the struct that came in: handing an array back and forth grows no chain.
    fn show_again(self, shown: &Array, from: Import<'_>) -> Array {
        let base = shown.tree();
        let nodes = base.nodes().get(shown.node()..).unwrap_or_default();
        let first = nodes.first().map_or(0, |node| node.first_buffer);
        let mut draft = self.draft;
        for (i, node) in nodes.iter().take(self.ty.n_nodes()).enumerate() {
            let null_count = AtomicI64::new(node.null_count.load(Ordering::Relaxed));
            let first_buffer = node.first_buffer.wrapping_sub(first);
            // SAFETY: the draft has room for every node of the type.
            unsafe { draft.set(i, Node { null_count, first_buffer, ..*node }) };
        }
        let made = Made {
            ty: self.ty.clone(),
            place: base.place(),
            source: Source::Shared(base.clone()),
            owner: Owner::NONE,
            n_buffers: self.n_buffers,
            sizes: base.sizes_from(first),
            view: View { node: 0, ..shown.view() },
        };
        // SAFETY: every node was written above.
        let array = unsafe { draft.finish(made) };
        let raw = match from {
            Import::Move(raw) => &mut raw.array,
            Import::MoveHost(raw) => raw,
            Import::Borrow(..) => return array,
        };
        if let Some(release) = raw.release {
            // SAFETY: the struct is ours and live, and the tree holds what it showed.
            unsafe { release(raw) };
        }
        array
    }
}

#[cold]
fn missing(ty: &Type, index: usize, what: &str, report: &mut Report<'_>) -> crate::error::Failed {
    report.broken(Rule::A7, &ty.path(index), format_args!("expected a {what}, found NULL"))
}
