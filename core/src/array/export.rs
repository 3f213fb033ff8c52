//! Export: a window becomes a struct that any consumer understands, any number of times.

use core::ffi::c_void;

use super::emit::{Emission, Parts};
use super::walk::Span;
use crate::abi::Device;
use crate::device::{Sync, device_name, is_cpu_readable, make_accessible};
use crate::error::{Report, Result, Status};
use crate::memory::{Event, EventCell, Owner, Place};
use crate::tree::{Array, ExportedArray, Facts, Leaf, Links, Node, Shape, Writer};
use crate::types::Slot;

/// CPU memory with nothing to wait on.
const HOST: Place = Place { device: Device::CPU, event: Event::NONE };

impl Array {
    /// The window as a device array: one allocation, which keeps this array alive until the last node is released.
    ///
    /// A device is never touched: null counts that only it could tell go out as -1.
    pub fn export(&self, report: &mut Report<'_>) -> Result<ExportedArray> {
        let Some(ty) = self.ty() else {
            return Err(report
                .fail(Status::Internal, format_args!("expected the window's node in the type, found none")));
        };
        let shape = Shape { n_nodes: self.n_nodes(), n_pointers: self.n_buffers(), ..Shape::default() };
        let window = Span { offset: self.offset(), length: self.length() };
        let device = self.tree().device();
        let nodes = self.tree().nodes().get(self.node()..).unwrap_or_default();
        let mut writer = Writer::allocate(&shape, device, report)?;
        let shown = Shown { array: self, nodes };
        shown.emit(&mut Emission::new(&shown, ty.nodes(), window, is_cpu_readable(device), &mut writer));
        let links = Links { keep: Some(self.clone()), owner: Owner::NONE, event: EventCell::NONE };
        Ok(writer.finish(self.tree().place().event.address, links))
    }

    /// The window as an array in CPU memory: the struct's device part says so, and may be left away.
    pub fn export_host(&self, sync: &Sync, report: &mut Report<'_>) -> Result<ExportedArray> {
        let place = self.tree().place();
        if place == HOST {
            sync.mode(report)?;
            return self.export(report);
        }
        if make_accessible(place, sync, report)? {
            return self.reachable_at(HOST, report)?.export(report);
        }
        let device = place.device.r#type;
        let message = format_args!(
            "expected memory that the CPU can read, found device type {device} ({})",
            device_name(device)
        );
        Err(report.fail(Status::Unsupported, message))
    }
}

/// The nodes of a window's subtree, counted from the window's own.
struct Shown<'a> {
    array: &'a Array,
    nodes: &'a [Node],
}

impl Shown<'_> {
    /// Writes the window into a new block.
    #[inline(always)]
    fn emit(&self, emission: &mut Emission<'_, Self>) {
        while let Some(node) = emission.nodes.get(emission.i) {
            if node.leaf_bits == 0 || emission.i == 0 || !self.emit_leaves(emission) {
                emission.node(node);
            }
        }
    }

    /// Writes the leaves from here on, up to a node that is none or not as simple as most; false when there are none.
    #[inline(never)]
    fn emit_leaves(&self, emission: &mut Emission<'_, Self>) -> bool {
        let (Some(types), Some(own)) = (emission.nodes.get(emission.i..), self.nodes.get(emission.i..))
        else {
            return false;
        };
        let (windowed, window) = (emission.windowed, emission.window);
        let leaves = types.iter().zip(own).map(|(node, own)| {
            let Leaf { facts, validity, data } = own.leaf();
            if node.leaf_bits == 0 || facts.n_buffers != 2 || data.is_null() {
                return None;
            }
            let (mut offset, mut length) = (facts.offset, facts.length);
            if node.parent == windowed {
                (offset, length) = (offset.wrapping_add(window.offset), window.length);
            }
            let null_count = if validity.is_null() { 0 } else { facts.null_count };
            if null_count < 0 || (null_count > 0 && length != facts.length) {
                return None;
            }
            if length == 0 {
                // An offset into nothing is legal, and refused by some.
                offset = 0;
            }
            Some(Leaf { facts: Facts { length, null_count, offset, n_buffers: 2 }, validity, data })
        });
        let n = emission.writer.push_leaves(leaves);
        emission.step(n);
        n > 0
    }
}

impl Parts for Shown<'_> {
    #[inline]
    fn facts(&self, i: usize) -> Facts {
        self.nodes.get(i).map_or(Facts::EMPTY, Node::facts)
    }

    #[inline]
    fn addresses(&self, i: usize, _: usize, n: usize) -> impl ExactSizeIterator<Item = *const c_void> {
        let node = self.nodes.get(i);
        (0..n).map(move |k| node.map_or(core::ptr::null(), |node| node.address(k)))
    }

    #[cold]
    #[inline(never)]
    fn count_nulls(&self, i: usize, _: usize, span: Span) -> i64 {
        self.array.count_if_readable(self.array.node().wrapping_add(i), span)
    }

    fn is_empty(&self, i: usize, k: usize, slot: &Slot) -> bool {
        self.array.is_told_empty(self.array.node().wrapping_add(i), k, slot)
    }

    fn build_sizes(&self, _: usize, _: usize, _: &mut Writer) -> *const c_void {
        core::ptr::null()
    }
}
