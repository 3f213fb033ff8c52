//! The imported tree: its source, its type, and a flat table of nodes, in one counted block.

use core::ffi::c_void;
use core::fmt;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI64, AtomicUsize, Ordering, fence};
use std::alloc::Layout;

use super::export::{ExportNode, refer_to};
use super::release::release_array_struct;
use super::window::Window;
use super::{Array, Facts, Leaf, Need, Placement, View, need};
use crate::abi::{ArrowDeviceArray, Device};
use crate::device::{is_cpu_readable, pending};
use crate::error::{Report, Result};
use crate::memory::{Buffer, Counted, CountedOps, Event, OwnedBuffer, Owner, Place, Plan};
use crate::types::{Format, Role, Slot, Type};

/// A counted handle on an imported tree.
pub struct Tree(pub(super) NonNull<Header>);

/// Where the memory that a tree shows comes from.
pub(super) enum Source {
    /// A struct that was moved in; the tree releases it.
    Foreign(ArrowDeviceArray),
    /// A struct that somebody else keeps; the tree's owner says until when.
    Borrowed,
    /// Another tree, whose buffers this one shows too.
    Shared(Tree),
}

#[repr(C)]
pub(super) struct Header {
    counted: Counted,
    pub(super) count: AtomicUsize,
    layout: Layout,
    pub(super) ty: ManuallyDrop<Type>,
    pub(super) place: Place,
    pub(super) source: ManuallyDrop<Source>,
    owner: ManuallyDrop<Owner>,
    /// Whether a buffer must keep this tree itself, because an owner was added to it or below it.
    owned: bool,
    nodes: *mut Node,
    n_buffers: usize,
    /// One size a buffer, -1 when unknown; NULL when none was ever read.
    pub(super) sizes: *const i64,
    /// Whether the sizes lie in this tree's own block.
    owns_sizes: bool,
    /// The next tree to free, while a chain of them is freed.
    next: Option<NonNull<Header>>,
    first: MaybeUninit<Window>,
}

/// One node of a tree: numbers and buffer addresses, as its producer gave them.
#[derive(Debug)]
pub struct Node {
    /// Number of logical values.
    pub length: i64,
    /// Physical index of the first.
    pub offset: i64,
    /// Index of the first buffer among the tree's.
    pub first_buffer: usize,
    /// Number of buffers.
    pub n_buffers: usize,
    pub(super) null_count: AtomicI64,
    pub(super) buffers: *const *const c_void,
    /// The node of ours that the struct is, NULL when its producer is somebody else.
    pub(super) own: *const ExportNode,
}

impl Node {
    /// The address of buffer `k`, NULL when there is none.
    #[inline]
    pub fn address(&self, k: usize) -> *const c_void {
        if k >= self.n_buffers {
            return core::ptr::null();
        }
        // SAFETY: the producer's list has `n_buffers` pointers and lives as long as the tree that the node is in.
        unsafe { self.buffers.add(k).read() }
    }

    /// The node as one with two buffers; one that has not has no addresses.
    #[inline]
    pub(crate) fn leaf(&self) -> Leaf {
        let null = core::ptr::null();
        let (mut validity, mut data) = (null, null);
        if self.n_buffers == 2 {
            // SAFETY: the producer's list has `n_buffers` pointers and lives as long as the tree that the node is in.
            unsafe { (validity, data) = (self.buffers.read(), self.buffers.add(1).read()) };
        }
        Leaf { facts: self.facts(), validity, data }
    }

    /// The node's numbers.
    #[inline]
    pub fn facts(&self) -> Facts {
        Facts {
            length: self.length,
            null_count: self.null_count.load(Ordering::Relaxed),
            offset: self.offset,
            n_buffers: self.n_buffers as i64,
        }
    }
}

/// Tells the size of a buffer of a node, -1 when it is unknown.
pub type SizeOf<'a> = &'a mut dyn FnMut(usize, usize, &mut Report<'_>) -> Result<i64>;

/// Memory for a tree whose nodes are being written. Dropped early, it frees the memory and lets nothing go.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) header: NonNull<Header>,
    nodes: *mut Node,
    pub(super) sizes: *mut i64,
    layout: Layout,
}

/// What a draft's nodes become a tree with.
pub(super) struct Made {
    pub(super) ty: Type,
    pub(super) place: Place,
    pub(super) source: Source,
    pub(super) owner: Owner,
    pub(super) n_buffers: usize,
    /// Sizes that the source already knows, or NULL.
    pub(super) sizes: *const i64,
    pub(super) view: View,
}

// SAFETY: the memory of a draft is its own.
unsafe impl Send for Draft {}
// SAFETY: a tree is only read once it is made, but for atomic counts; structs and owners may be let go on any thread.
unsafe impl Send for Tree {}
// SAFETY: as above.
unsafe impl Sync for Tree {}

static OPS: CountedOps = CountedOps { retain, release, event, inner };

impl Draft {
    pub(super) fn allocate(n_nodes: usize, n_sizes: usize, report: &mut Report<'_>) -> Result<Self> {
        let mut plan = Plan::starting_with::<Header>();
        let nodes = plan.array::<Node>(n_nodes);
        let sizes = plan.array::<i64>(n_sizes);
        let (memory, layout) = plan.allocate(report)?;
        // SAFETY: the plan gave each part a place within the block.
        let (nodes, sizes) = unsafe { (memory.add(nodes).as_ptr(), memory.add(sizes).as_ptr()) };
        let sizes = if n_sizes == 0 { core::ptr::null_mut() } else { sizes.cast() };
        Ok(Self { header: memory.cast(), nodes: nodes.cast(), sizes, layout })
    }

    /// Where node `i` goes, which is not beyond the number that was asked for.
    #[inline]
    pub(super) unsafe fn place(&mut self, i: usize) -> *mut Node {
        // SAFETY: as the caller promises.
        unsafe { self.nodes.add(i) }
    }

    /// Writes node `i`, which is below the number that was asked for.
    pub(super) unsafe fn set(&mut self, i: usize, node: Node) {
        // SAFETY: as the caller promises.
        unsafe { self.nodes.add(i).write(node) };
    }

    /// Node `i`, which was written before.
    pub(super) unsafe fn get(&self, i: usize) -> &Node {
        // SAFETY: as the caller promises.
        unsafe { &*self.nodes.add(i) }
    }

    /// Makes the tree and its first window. Every node is written.
    pub(super) unsafe fn finish(self, made: Made) -> Array {
        let this = ManuallyDrop::new(self);
        let below = matches!(&made.source, Source::Shared(base) if base.raw().owned);
        let header = Header {
            counted: Counted { ops: &OPS },
            count: AtomicUsize::new(1),
            layout: this.layout,
            ty: ManuallyDrop::new(made.ty),
            place: made.place,
            owned: below || !made.owner.is_none() || matches!(made.source, Source::Borrowed),
            source: ManuallyDrop::new(made.source),
            owner: ManuallyDrop::new(made.owner),
            nodes: this.nodes,
            n_buffers: made.n_buffers,
            sizes: if this.sizes.is_null() { made.sizes } else { this.sizes },
            owns_sizes: !this.sizes.is_null(),
            next: None,
            first: MaybeUninit::uninit(),
        };
        // SAFETY: the memory was allocated for this header; the first window is written once, into its own place.
        unsafe {
            this.header.write(header);
            let first = NonNull::new_unchecked((&raw mut (*this.header.as_ptr()).first).cast());
            Array::write(first, Tree(this.header), made.view, None)
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // SAFETY: nothing was shared yet, so the memory is this draft's alone.
        unsafe { std::alloc::dealloc(self.header.cast().as_ptr(), self.layout) };
    }
}

impl Tree {
    /// The type of node 0.
    pub fn ty(&self) -> &Type {
        &self.raw().ty
    }

    /// Where the buffers are.
    pub fn place(&self) -> Place {
        self.raw().place
    }

    /// Every node, depth first.
    pub fn nodes(&self) -> &[Node] {
        // SAFETY: a tree has as many nodes as its type, and all were written before it was made.
        unsafe { core::slice::from_raw_parts(self.raw().nodes, self.ty().n_nodes()) }
    }

    /// Number of buffers of all nodes.
    pub fn n_buffers(&self) -> usize {
        self.raw().n_buffers
    }

    /// The numbers of node `i`.
    pub fn facts(&self, i: usize) -> Option<Facts> {
        self.nodes().get(i).map(|node| Facts { null_count: self.null_count(i), ..node.facts() })
    }

    /// The number of nulls of node `i` as far as it is known without reading a buffer, else -1.
    pub fn null_count(&self, i: usize) -> i64 {
        let (Some(node), Some(ty)) = (self.nodes().get(i), self.ty().node(i)) else { return -1 };
        match ty.format {
            Format::Null => node.length,
            _ if !ty.layout.has_validity() || self.buffer(i, 0).is_null() => 0,
            _ => node.null_count.load(Ordering::Relaxed),
        }
    }

    /// Remembers the number of nulls of all of node `i`.
    pub fn remember_nulls(&self, i: usize, nulls: i64) {
        if let Some(node) = self.nodes().get(i) {
            node.null_count.store(nulls, Ordering::Relaxed);
        }
    }

    /// What buffer `k` of node `i` is.
    pub fn slot(&self, i: usize, k: usize) -> Option<Slot> {
        self.ty().node(i)?.layout.slot_of(k, self.nodes().get(i)?.n_buffers)
    }

    /// Address of buffer `k` of node `i`, NULL when there is none.
    pub fn buffer(&self, i: usize, k: usize) -> *const c_void {
        self.nodes().get(i).map_or(core::ptr::null(), |node| node.address(k))
    }

    /// Readable bytes of buffer `k` of node `i`, -1 when nobody has said and it cannot be derived.
    pub fn size(&self, i: usize, k: usize) -> i64 {
        let (Some(node), Some(slot)) = (self.nodes().get(i), self.slot(i, k)) else { return -1 };
        let built = slot.role == Role::VariadicSizes;
        if self.buffer(i, k).is_null() && !built {
            return 0;
        }
        let stated = if built { -1 } else { self.stated_size(i, k) };
        if stated >= 0 {
            return stated;
        }
        match need(&slot, node.offset, node.length, node.n_buffers.saturating_sub(3)) {
            Need::Bytes(bytes) => bytes,
            Need::ByOffsets | Need::BySizes | Need::Overflow => -1,
        }
    }

    /// Readable bytes of buffer `k` of node `i` as somebody said or read them, -1 when nobody did.
    pub fn stated_size(&self, i: usize, k: usize) -> i64 {
        let Some(node) = self.nodes().get(i).filter(|node| k < node.n_buffers) else { return -1 };
        let sizes = self.raw().sizes;
        if !sizes.is_null() {
            // SAFETY: the table has one size a buffer.
            let known = unsafe { sizes.add(node.first_buffer.wrapping_add(k)).read() };
            if known >= 0 {
                return known;
            }
        }
        // SAFETY: a node of ours that the tree shows lives as long as the tree.
        unsafe { node.own.as_ref() }.and_then(|own| own.size(k)).unwrap_or(-1)
    }

    /// The `n` bytes from `at` on of buffer `k` of node `i`, when the CPU may read them, and nobody said that there are fewer.
    ///
    /// The caller asks for no more than the node's own numbers say that there must be.
    pub(crate) fn host_bytes(&self, i: usize, k: usize, at: usize, n: usize) -> Option<&[u8]> {
        let data = self.buffer(i, k);
        let stated = self.stated_size(i, k);
        let is_short = stated >= 0 && i64::try_from(at.checked_add(n)?).ok()? > stated;
        if data.is_null()
            || is_short
            || !is_cpu_readable(self.place().device)
            || self.place().event != Event::NONE
        {
            return None;
        }
        // SAFETY: the producer vouches for as many bytes as its numbers say.
        Some(unsafe { core::slice::from_raw_parts(data.cast::<u8>().add(at), n) })
    }

    /// This tree, as an owner.
    #[inline]
    pub(crate) fn as_owner(&self) -> Owner {
        let reference = self.clone();
        let counted = &raw const reference.raw().counted;
        core::mem::forget(reference);
        // SAFETY: the tree lives, and the count of the forgotten handle is handed over.
        unsafe { Owner::reference(counted) }
    }

    /// Who keeps buffer `k` of node `i` alive, and the address of its event: its own owner where the library knows it,
    /// else the whole tree.
    #[inline]
    pub fn owner_of(&self, i: usize, k: usize) -> (Owner, Event) {
        // SAFETY: a node of ours that the tree shows lives as long as the tree.
        let own = self.nodes().get(i).and_then(|node| unsafe { node.own.as_ref() });
        let Some(own) = own.filter(|own| !self.raw().owned && !own.entry(k).is_null()) else {
            return (self.as_owner(), self.place().event);
        };
        // SAFETY: the tree holds the live node that the entry belongs to, and the node has an entry a buffer.
        unsafe { refer_to(own.entry(k)) }
    }

    /// Buffer `k` of node `i`, which stays alive on its own.
    pub fn take_buffer(&self, i: usize, k: usize, report: &mut Report<'_>) -> Result<Buffer> {
        let (owner, event) = self.owner_of(i, k);
        let place = match self.device_of(i, k) {
            Device::CPU => Place { device: Device::CPU, event: Event::NONE },
            device => Place { device, event },
        };
        Buffer::try_new(self.buffer(i, k), self.size(i, k), place, report, || owner)
    }

    /// Where buffer `k` of node `i` is: on the tree's device, but for sizes that the library built.
    pub fn device_of(&self, i: usize, k: usize) -> Device {
        if self.is_built(i, k) { Device::CPU } else { self.device() }
    }

    /// Whether buffer `k` of node `i` are sizes that the library built.
    pub(crate) fn is_built(&self, i: usize, k: usize) -> bool {
        // SAFETY: a node of ours that the tree shows lives as long as the tree.
        let own = self.nodes().get(i).and_then(|node| unsafe { node.own.as_ref() });
        own.is_some_and(|own| own.is_built(self.buffer(i, k)))
    }

    /// Where the buffers are, for a struct that hands them over: the event by value, which the buffers' owners keep.
    pub fn placement(&self) -> Placement {
        let event = self.place().event.identity;
        // SAFETY: the event lives as long as the tree or any owner taken from it, and nobody is asked to destroy it.
        unsafe { Placement::on(self.device()).with_event(event, core::ptr::null_mut(), None) }
    }

    /// Buffer `k` of node `i` as memory for somebody else, kept alive by `owner`.
    pub(crate) fn describe(&self, i: usize, k: usize, owner: Owner) -> OwnedBuffer {
        let (context, release) = owner.into_parts();
        // SAFETY: the address and size are those that the producer vouches for, for as long as the owner.
        unsafe { OwnedBuffer::new(self.buffer(i, k), self.size(i, k), context, release) }
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.place().device
    }

    /// A tree over the same buffers, with `window`'s window and a further owner, which is taken when the tree was made.
    pub fn with_owner(
        window: &Array,
        owner: impl FnOnce() -> Owner,
        report: &mut Report<'_>,
    ) -> Result<Array> {
        Self::derive(window, None, window.tree().place(), owner, report)
    }

    /// A tree over the same buffers, with `window`'s window; `size` tells each buffer's size, -1 when it is unknown.
    pub fn with_sizes(window: &Array, size: SizeOf<'_>, report: &mut Report<'_>) -> Result<Array> {
        Self::derive(window, Some(size), window.tree().place(), || Owner::NONE, report)
    }

    pub(super) fn derive(
        window: &Array,
        size: Option<SizeOf<'_>>,
        place: Place,
        owner: impl FnOnce() -> Owner,
        report: &mut Report<'_>,
    ) -> Result<Array> {
        let base = window.tree();
        let nodes = base.nodes();
        let n_sizes = if size.is_some() { base.n_buffers() } else { 0 };
        let mut draft = Draft::allocate(nodes.len(), n_sizes, report)?;
        for (i, node) in nodes.iter().enumerate() {
            let copy = Node { null_count: AtomicI64::new(node.null_count.load(Ordering::Relaxed)), ..*node };
            // SAFETY: the draft has room for as many nodes as the base has.
            unsafe { draft.set(i, copy) };
        }
        if let Some(size) = size {
            for (i, node) in nodes.iter().enumerate() {
                for k in 0..node.n_buffers {
                    let size = size(i, k, report)?;
                    // SAFETY: the draft has room for a size a buffer.
                    unsafe { draft.sizes.add(node.first_buffer.wrapping_add(k)).write(size) };
                }
            }
        }
        let made = Made {
            ty: base.ty().clone(),
            place,
            source: Source::Shared(base.needed_below(n_sizes == 0, place.event).clone()),
            owner: owner(),
            n_buffers: base.n_buffers(),
            sizes: base.raw().sizes,
            view: window.view(),
        };
        // SAFETY: every node was written above.
        Ok(unsafe { draft.finish(made) })
    }

    /// The tree that one over the same buffers, which shows `event`, has to keep: this one, unless it only passes on what
    /// another holds, or holds no more than an event that is not shown any more.
    pub(super) fn needed_below(&self, needs_sizes: bool, event: Event) -> &Tree {
        let mut tree = self;
        while let Source::Shared(base) = &*tree.raw().source
            && (tree.raw().owner.is_none()
                || (tree.place().event != event && pending::is_kept(&tree.raw().owner)))
            && !(needs_sizes && tree.raw().owns_sizes)
        {
            tree = base;
        }
        tree
    }

    pub(super) fn raw(&self) -> &Header {
        // SAFETY: a handle keeps its tree alive and initialised.
        unsafe { self.0.as_ref() }
    }

    /// The sizes from buffer `first` on, or NULL.
    pub(super) fn sizes_from(&self, first: usize) -> *const i64 {
        let sizes = self.raw().sizes;
        // SAFETY: the table has one size a buffer, and `first` is one of them or their end.
        if sizes.is_null() { sizes } else { unsafe { sizes.add(first) } }
    }
}

impl Clone for Tree {
    fn clone(&self) -> Self {
        self.raw().count.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.raw().count.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        // SAFETY: this was the last handle.
        unsafe { free_chain(self.0) };
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("place", &self.place()).field("nodes", &self.nodes()).finish()
    }
}

/// Frees a tree that nobody holds any more, and the trees below it that only it held.
///
/// The chain is turned round first, so that the memory goes before the owners that were added to it, and without
/// recursion, because a consumer may have made the chain as long as it likes.
unsafe fn free_chain(top: NonNull<Header>) {
    let (mut done, mut current) = (None, Some(top));
    // SAFETY: each tree on the way lost its last handle, so it is this thread's alone.
    unsafe {
        while let Some(header) = current {
            (*header.as_ptr()).next = done;
            done = Some(header);
            current = match &*(*header.as_ptr()).source {
                Source::Shared(base) if base.raw().count.fetch_sub(1, Ordering::Release) == 1 => {
                    fence(Ordering::Acquire);
                    Some(base.0)
                }
                _ => None,
            };
        }
        while let Some(header) = done {
            let tree = header.as_ptr();
            done = (*tree).next;
            if let Source::Foreign(raw) = &mut *(*tree).source {
                release_array_struct(&raw mut raw.array);
            }
            ManuallyDrop::drop(&mut (*tree).owner);
            ManuallyDrop::drop(&mut (*tree).ty);
            let layout = (*tree).layout;
            std::alloc::dealloc(tree.cast(), layout);
        }
    }
}

unsafe fn handle_of(counted: *const Counted) -> ManuallyDrop<Tree> {
    // SAFETY: the head is the header's first member, and the caller's reference keeps the tree alive.
    ManuallyDrop::new(Tree(unsafe { NonNull::new_unchecked(counted.cast_mut().cast()) }))
}

unsafe fn retain(counted: *const Counted) {
    // SAFETY: as the caller promises.
    core::mem::forget(unsafe { Tree::clone(&handle_of(counted)) });
}

unsafe fn release(counted: *const Counted) {
    // SAFETY: as the caller promises; the count that this drops is the caller's.
    drop(ManuallyDrop::into_inner(unsafe { handle_of(counted) }));
}

unsafe fn event(counted: *const Counted) -> Event {
    // SAFETY: as the caller promises.
    unsafe { handle_of(counted) }.place().event
}

unsafe fn inner(_: *const Counted, _: Event) -> Option<Owner> {
    None
}
