//! Import: a foreign struct becomes a tree, checked without reading a buffer.

use core::ffi::c_void;
use core::sync::atomic::{AtomicI64, Ordering};

use super::export::{Block, ExportNode, ExportedArray, own_node, own_release};
use super::imported::{Draft, Made, Node, Source};
use super::release::release_array_struct;
use super::{Array, At, Facts, View, ZEROES, role_name};
use crate::abi::{ArrowArray, ArrowDeviceArray, Device};
use crate::device::{check_foreign, has_event_handles};
use crate::error::{Failed, Report, Result, Rule, Status};
use crate::memory::{Event, Owner, Place};
use crate::types::{Format, NONE, Role, Type, TypeNode};

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
    if raw.release.is_none() {
        return Err(report.fail_at(
            Status::Released,
            Rule::M2,
            &"$",
            format_args!("expected a live array, found one that was released or moved out"),
        ));
    }
    let device = check_foreign(device, event, report)?;
    let draft = Draft::allocate(ty.n_nodes(), 0, report)?;
    let borrowed = matches!(from, Import::Borrow(..));
    // SAFETY: the interface says that the event of such a device is a handle, and that the address leads to it.
    let event = unsafe { Event::at(event, has_event_handles(device.r#type)) };
    let mut walk = Walk::new(ty, draft, Place { device, event }, borrowed);
    // SAFETY: as the caller promises.
    unsafe { walk.node(raw, 0, report) }?;
    Ok(walk.finish(from))
}

impl ExportedArray {
    /// A handle on the array; what was exported is recognised, and shown again.
    pub fn into_array(mut self, ty: &Type, report: &mut Report<'_>) -> Result<Array> {
        // SAFETY: a live array of ours is what the interface says. Once it is taken, nothing is left to be dropped.
        unsafe { import(Import::Move(&mut self.0), ty, report) }
    }
}

fn device_of(raw: &ArrowDeviceArray) -> Device {
    Device { r#type: raw.device_type, id: raw.device_id }
}

pub(super) struct Walk<'a> {
    ty: &'a Type,
    nodes: &'a [TypeNode],
    base: usize,
    draft: Draft,
    n_buffers: usize,
    /// The block of ours that the root lies in and the root's number there, as long as every node so far is where that
    /// block put it.
    built: Option<(*mut Block, usize)>,
    /// The device and event that the struct shows.
    place: Place,
    /// Whether the root's numbers are still those that it was exported with.
    unchanged: bool,
    borrowed: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(ty: &'a Type, draft: Draft, place: Place, borrowed: bool) -> Self {
        let (nodes, base) = (ty.nodes(), ty.base());
        Walk { ty, nodes, base, draft, n_buffers: 0, built: None, place, unchanged: true, borrowed }
    }

    /// Whether every node so far is where, and the root as, a block of ours put it.
    pub(super) fn is_as_built(&self) -> bool {
        self.built.is_some_and(|(_, first)| first == 0) && self.unchanged
    }

    pub(super) fn into_draft(self) -> Draft {
        self.draft
    }

    /// Checks and notes one node and what is below it. A type's depth limits the recursion.
    pub(super) unsafe fn node(
        &mut self,
        raw: &ArrowArray,
        index: usize,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let Some(node) = self.nodes.get(index) else { return Err(internal(report)) };
        let at = At { ty: self.ty, node, index };
        // SAFETY: as the caller promises, here and below.
        unsafe { self.note(raw, &at, report) }?;
        let (mut child_index, mut i) = (index.wrapping_add(1), 0usize);
        let (n_children, mut least) = (node.n_children as usize, i64::MAX);
        while i < n_children {
            // SAFETY: the list of children was checked to be there and to have as many as the type.
            let run = unsafe { self.leaves(raw.children.add(i), n_children.wrapping_sub(i), child_index) };
            (i, child_index) = (i.wrapping_add(run.n), child_index.wrapping_add(run.n));
            least = least.min(run.least);
            if i == n_children {
                break;
            }
            // SAFETY: as above.
            let child = unsafe { raw.children.add(i).read() };
            // SAFETY: the interface says that an aligned child pointer which is not NULL leads to an array.
            let found = if child.is_aligned() { unsafe { child.as_ref() } } else { None };
            let (Some(child), Some(child_node)) = (found, self.nodes.get(child_index)) else {
                return Err(missing(self.ty, child_index, child, report));
            };
            least = least.min(child.length);
            if child_node.n_children == 0 && child_node.dictionary == NONE {
                let at = At { ty: self.ty, node: child_node, index: child_index };
                // SAFETY: as above.
                unsafe { self.note(child, &at, report) }?;
            } else {
                // SAFETY: as above.
                unsafe { self.node(child, child_index, report) }?;
            }
            child_index = (child_node.subtree_end as usize).wrapping_sub(self.base);
            i = i.wrapping_add(1);
        }
        let facts = facts_of(raw);
        let is_filled = node.format == Format::Struct && facts.offset.wrapping_add(facts.length) <= least;
        if n_children > 0 && !is_filled {
            // SAFETY: every node below was written just now.
            at.check_children(&facts, |i| unsafe { self.draft.get(i).facts() }, report)?;
        }
        if node.dictionary != NONE {
            // SAFETY: the interface says that a dictionary is an array.
            let found = if raw.dictionary.is_aligned() { unsafe { raw.dictionary.as_ref() } } else { None };
            let Some(dictionary) = found else {
                return Err(missing(self.ty, child_index, raw.dictionary, report));
            };
            // SAFETY: as above.
            unsafe { self.node(dictionary, child_index, report) }?;
        }
        Ok(())
    }

    /// Notes as many of the children as are leaves of somebody else's with nothing wrong. Where something may be, the child
    /// is looked at as any node.
    #[inline(never)]
    unsafe fn leaves(&mut self, children: *const *mut ArrowArray, n: usize, index: usize) -> Run {
        let mut run = Run { n: 0, least: i64::MAX };
        let mut first_buffer = self.n_buffers;
        // SAFETY: the draft has room for every node of the type.
        let mut to = unsafe { self.draft.place(index) };
        for (k, node) in self.nodes.get(index..).unwrap_or_default().iter().take(n).enumerate() {
            if node.leaf_bits == 0 {
                break;
            }
            // SAFETY: the caller says that so many children are listed.
            let child = unsafe { children.add(k).read() };
            if child.is_null() || !child.is_aligned() {
                break;
            }
            // SAFETY: the interface says that an aligned child pointer which is not NULL leads to an array.
            let child = unsafe { &*child };
            let lists = child.children.addr() | child.buffers.addr();
            let is_foreign = child.release.is_some_and(|release| release as usize != own_release());
            let is_leaf = is_foreign
                && child.n_children == 0
                && child.n_buffers == 2
                && !child.buffers.is_null()
                && lists & align_of::<*const c_void>().wrapping_sub(1) == 0
                && child.dictionary.is_null();
            let (length, nulls) = (child.length, child.null_count);
            // Small enough for the sizes of all buffers to be far from overflow, and not negative.
            let is_small = (length | child.offset).cast_unsigned() >> 30 == 0;
            let has_nulls = nulls.wrapping_add(1).cast_unsigned() <= length.wrapping_add(1).cast_unsigned();
            if !is_leaf || !is_small || !has_nulls {
                break;
            }
            let buffers = child.buffers.cast_const();
            // SAFETY: the list has two pointers, as the struct says.
            let (validity, data) = unsafe { (buffers.read(), buffers.add(1).read()) };
            if data.is_null() || (nulls > 0 && validity.is_null()) {
                break;
            }
            let entry = Node {
                length,
                offset: child.offset,
                first_buffer,
                n_buffers: 2,
                null_count: AtomicI64::new(nulls),
                buffers,
                own: core::ptr::null(),
            };
            // SAFETY: the draft has room for every node of the type, and this is one.
            unsafe {
                to.write(entry);
                to = to.add(1);
            }
            first_buffer = first_buffer.wrapping_add(2);
            run.n = k.wrapping_add(1);
            run.least = run.least.min(length);
        }
        self.n_buffers = first_buffer;
        if run.n > 0 {
            (self.built, self.unchanged) = (None, false);
        }
        run
    }

    /// Checks one node by itself and writes it down.
    #[inline(always)]
    unsafe fn note(&mut self, raw: &ArrowArray, at: &At<'_>, report: &mut Report<'_>) -> Result<()> {
        let node = at.node;
        if !has_shape(raw, node) {
            return Err(wrong_shape(raw, at, report));
        }
        let facts = facts_of(raw);
        at.check_numbers(&facts, report)?;
        let slots = node.layout.slots();
        let mut count = slots.len();
        let mut buffers: *const *const c_void = raw.buffers.cast_const();
        if raw.n_buffers != count as i64 {
            // SAFETY: the list of buffers is there when there are any.
            (count, buffers) = unsafe { other_count(raw, at, report) }?;
        }
        let n_variadic = count.wrapping_sub(slots.len());
        for (k, slot) in slots.iter().enumerate() {
            // A view's last slot comes after its variadic buffers.
            let place = if slot.role == Role::VariadicSizes { count.wrapping_sub(1) } else { k };
            let needed = at.needed(slot, &facts, n_variadic, report)?.unwrap_or(0);
            // SAFETY: the list has `count` pointers, and `place` is one of them.
            if needed > 0 && unsafe { buffers.add(place).read() }.is_null() {
                at.check_missing(slot, place, &facts, needed, report)?;
            }
        }
        // SAFETY: the struct is live for the whole call.
        let own = if self.borrowed { None } else { unsafe { own_node(raw) } };
        // What is on another device or under another event than we exported is somebody else's now.
        let own = own.filter(|own| own.is_at(&self.place));
        if at.index == 0 {
            self.built = own.map(|own| (own.block, own.index()));
        } else if let Some((block, first)) = self.built {
            let in_place =
                own.is_some_and(|own| own.block == block && own.index() == first.wrapping_add(at.index));
            self.built = self.built.filter(|_| in_place);
        }
        if let Some(own) = own {
            // SAFETY: the list has `count` pointers.
            let is_missing = |k: usize| unsafe { buffers.add(k).read() }.is_null();
            known_sizes(at, &facts, (own, count), is_missing, report)?;
        }
        self.unchanged = self.unchanged && own.is_some_and(|own| own.is_unchanged(raw));
        let entry = Node {
            length: raw.length,
            offset: raw.offset,
            first_buffer: self.n_buffers,
            n_buffers: count,
            null_count: AtomicI64::new(raw.null_count),
            buffers,
            own: own.map_or(core::ptr::null(), core::ptr::from_ref),
        };
        // SAFETY: the draft has room for every node of the type, and this is one.
        unsafe { self.draft.set(at.index, entry) };
        self.n_buffers = self.n_buffers.saturating_add(count);
        Ok(())
    }

    fn finish(self, from: Import<'_>) -> Array {
        let place = self.place;
        // SAFETY: every node was written by the walk.
        let root = unsafe { self.draft.get(0).facts() };
        if let Some((shown, first)) = self.shown_array() {
            return self.show_again(&shown, first, from);
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
        unsafe { self.draft.finish(made) }
    }

    /// The array that the struct is an export of, when it still is that export or a part of it; and the number of the
    /// struct's root there.
    fn shown_array(&self) -> Option<(Array, usize)> {
        let (block, first) = self.built?;
        // SAFETY: the struct is live, so its block is, and the block's array is not changed while it is.
        let shown = unsafe { (*block).keep.as_ref() }?;
        let base = shown.tree().nodes().get(shown.node().checked_add(first)?..)?.get(..self.nodes.len())?;
        for (i, (then, node)) in base.iter().zip(self.nodes).enumerate() {
            // SAFETY: every node was written by the walk.
            let now = unsafe { self.draft.get(i) };
            if now.n_buffers != then.n_buffers {
                return None;
            }
            for k in 0..now.n_buffers {
                let (now, then) = (now.address(k), then.address(k));
                // An export leaves a bitmap out or gives a buffer of no bytes an address; all else is a consumer's doing.
                let left_out = now.is_null() && k == 0 && node.layout.has_validity();
                let given = then.is_null() && core::ptr::eq(now, ZEROES.address());
                if !core::ptr::eq(now, then) && !left_out && !given {
                    return None;
                }
            }
        }
        Some((shown.clone(), first))
    }

    /// Shows the buffers that `shown` shows, and releases the struct that came in: handing an array back and forth grows
    /// no chain.
    fn show_again(mut self, shown: &Array, first: usize, from: Import<'_>) -> Array {
        let base = shown.tree();
        let array = match shown.tree().ty().at(shown.node()) {
            // What lies below a root is in the block, and whether a consumer changed it cannot be told.
            Some(ty) if self.nodes.len() == 1 && first == 0 && self.unchanged && ty.equals(self.ty, 0) => {
                shown.clone()
            }
            _ => {
                let from_node = shown.node().wrapping_add(first);
                let nodes = base.nodes().get(from_node..).unwrap_or_default();
                let first_buffer = nodes.first().map_or(0, |node| node.first_buffer);
                for (i, node) in nodes.iter().take(self.nodes.len()).enumerate() {
                    // SAFETY: every node was written by the walk, and is written anew.
                    unsafe {
                        let own = self.draft.get(i);
                        let lost_bitmap = own.n_buffers == 1 && own.buffers.read().is_null();
                        let buffers = if lost_bitmap { NO_BITMAP.list() } else { node.buffers };
                        let null_count = AtomicI64::new(own.null_count.load(Ordering::Relaxed));
                        let anew = Node { null_count, buffers, own: node.own, ..*own };
                        self.draft.set(i, anew);
                    }
                }
                // SAFETY: every node was written by the walk.
                let root = unsafe { self.draft.get(0).facts() };
                let made = Made {
                    ty: self.ty.clone(),
                    place: base.place(),
                    source: Source::Shared(base.needed_below(true, base.place().event).clone()),
                    owner: Owner::NONE,
                    n_buffers: self.n_buffers,
                    sizes: base.sizes_from(first_buffer),
                    view: View { node: 0, offset: root.offset, length: root.length, null_count: -1 },
                };
                // SAFETY: every node was written by the walk, and the source keeps what they point to.
                unsafe { self.draft.finish(made) }
            }
        };
        let raw = match from {
            Import::Move(raw) => &mut raw.array,
            Import::MoveHost(raw) => raw,
            Import::Borrow(..) => return array,
        };
        // SAFETY: the struct is ours and live, and the tree holds what it showed.
        unsafe { release_array_struct(raw) };
        array
    }
}

/// Children that were noted together.
struct Run {
    n: usize,
    /// The smallest length among them.
    least: i64,
}

/// The buffers of a struct whose bitmap was left out of an export.
struct NoBitmap([*const c_void; 1]);

// SAFETY: the list is never written.
unsafe impl Sync for NoBitmap {}

static NO_BITMAP: NoBitmap = NoBitmap([core::ptr::null()]);

impl NoBitmap {
    fn list(&'static self) -> *const *const c_void {
        self.0.as_ptr()
    }
}

pub(super) fn facts_of(raw: &ArrowArray) -> Facts {
    Facts { length: raw.length, null_count: raw.null_count, offset: raw.offset, n_buffers: raw.n_buffers }
}

/// Checks what is known of the sizes of our own buffers, by rule A4: a consumer may have made the array longer.
#[cold]
fn known_sizes(
    at: &At<'_>,
    facts: &Facts,
    (own, count): (&ExportNode, usize),
    is_missing: impl Fn(usize) -> bool,
    report: &mut Report<'_>,
) -> Result<()> {
    let n_variadic = count.saturating_sub(at.node.layout.slots().len());
    for k in 0..count {
        let (Some(slot), Some(found)) = (at.node.layout.slot_of(k, count), own.size(k)) else { continue };
        let needed = at.needed(&slot, facts, n_variadic, report)?.unwrap_or(0);
        // A bitmap is not looked at when it is known that there are no nulls, or not there, which is another rule's.
        let is_optional = match slot.role {
            Role::Validity => facts.null_count == 0 || is_missing(k),
            role => role == Role::VariadicSizes,
        };
        if found < needed && !is_optional {
            let role = role_name(slot.role);
            let message =
                format_args!("expected at least {needed} bytes of {role} in buffer {k}, found {found}");
            return Err(report.broken(Rule::A4, &at.ty.path(at.index), message));
        }
    }
    Ok(())
}

/// The number of buffers and their list, where the number is not that of the layout's fixed slots: views have any number,
/// and older producers one too many.
#[cold]
pub(super) unsafe fn other_count(
    raw: &ArrowArray,
    at: &At<'_>,
    report: &mut Report<'_>,
) -> Result<(usize, *const *const c_void)> {
    let facts = facts_of(raw);
    if !at.is_legacy(facts.n_buffers) {
        at.check_count(&facts, report)?;
        return Ok((usize::try_from(facts.n_buffers).unwrap_or(0), raw.buffers.cast_const()));
    }
    // SAFETY: there is one buffer more than the layout's, so there is a first, and the list is there.
    let validity = unsafe { raw.buffers.read() };
    if !validity.is_null() {
        let message = format_args!("expected no validity bitmap for this type, found one at {validity:p}");
        return Err(report.broken(Rule::A8, &at.ty.path(at.index), message));
    }
    // SAFETY: as above.
    Ok((at.node.layout.min_buffers(), unsafe { raw.buffers.add(1) }.cast_const()))
}

/// Whether the struct is alive and has the lists that a node of the type has.
#[inline(always)]
pub(super) fn has_shape(raw: &ArrowArray, node: &TypeNode) -> bool {
    raw.release.is_some()
        && raw.n_children == i64::from(node.n_children)
        && (raw.n_children == 0 || is_list(raw.children))
        && (raw.n_buffers <= 0 || is_list(raw.buffers))
        && (raw.dictionary.is_null() || node.dictionary != NONE)
}

/// Whether a list can be where the pointer leads.
#[inline(always)]
fn is_list<T>(list: *const T) -> bool {
    !list.is_null() && list.is_aligned()
}

#[cold]
pub(super) fn wrong_shape(raw: &ArrowArray, at: &At<'_>, report: &mut Report<'_>) -> Failed {
    let (path, node) = (at.ty.path(at.index), at.node);
    if raw.release.is_none() {
        let message = format_args!("expected a live array, found one that was released or moved out");
        return report.broken(Rule::A7, &path, message);
    }
    if raw.n_children != i64::from(node.n_children) {
        let message = format_args!("expected {} children, found {}", node.n_children, raw.n_children);
        return report.broken(Rule::A7, &path, message);
    }
    if raw.n_children > 0 && raw.children.is_null() {
        let message = format_args!("expected a list of {} children, found NULL", raw.n_children);
        return report.broken(Rule::A7, &path, message);
    }
    if raw.n_buffers > 0 && raw.buffers.is_null() {
        let message = format_args!("expected a list of {} buffers, found NULL", raw.n_buffers);
        return report.broken(Rule::A4, &path, message);
    }
    let is_misaligned = (raw.n_children > 0 && !raw.children.is_aligned())
        || (raw.n_buffers > 0 && !raw.buffers.is_aligned());
    if is_misaligned {
        let message = format_args!(
            "expected lists at multiples of {} bytes, found children at {:p} and buffers at {:p}",
            align_of::<*const c_void>(),
            raw.children,
            raw.buffers
        );
        return report.broken(Rule::A4, &path, message);
    }
    let message = format_args!("expected no dictionary, found one at {:p}", raw.dictionary);
    report.broken(Rule::A7, &path, message)
}

#[cold]
fn internal(report: &mut Report<'_>) -> Failed {
    report.fail(Status::Internal, format_args!("expected a node of the type, found none"))
}

#[cold]
pub(super) fn missing(ty: &Type, index: usize, found: *const ArrowArray, report: &mut Report<'_>) -> Failed {
    let path = ty.path(index);
    if found.is_null() {
        return report.broken(Rule::A7, &path, format_args!("expected an array for this node, found NULL"));
    }
    let align = align_of::<ArrowArray>();
    let message = format_args!("expected an array at a multiple of {align} bytes, found {found:p}");
    report.broken(Rule::A7, &path, message)
}
