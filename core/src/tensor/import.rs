//! Tensors as arrays: the same memory, kept by the tensor.

use core::ffi::c_char;
use core::fmt::Write;

use super::element::{BOOL, format_of, physical};
use super::export::{TensorOptions, check_queue, nested_tensors};
use super::made::{Dims, has_no_id, is_handle};
use super::shape_text::{EXTENSION_METADATA, FixedShape};
use super::view::{Axes, TensorView};
use crate::abi::{DEVICE_CPU, Device, FLAG_NULLABLE, bytes_of};
use crate::array::{Array, from_buffers};
use crate::device::{Sync, SyncMode, is_cpu_readable, require_copies};
use crate::error::{Failed, Report, Result, Rule, Status, TextBuffer};
use crate::memory::{Buffer, Event, OwnedBuffer, Place};
use crate::tree::{Facts, Placement, fetch_owned, upload};
use crate::types::metadata::{encode, encoded_size, pairs};
use crate::types::{EXTENSION_NAME, Format, Type};

/// What an array of a tensor is: its type, and how its memory has to lie for that.
struct Wanted {
    ty: Type,
    /// The tensor's dimensions with the strides that the type means.
    dims: Dims,
    /// Bytes of an element.
    width: i64,
    /// Whether bytes become bits.
    packs: bool,
}

/// An array of a tensor whose struct was checked. `memory` describes its bytes, which somebody else keeps for as long as the
/// array.
///
/// The result says whether the tensor is needed any longer: a copy is not.
pub fn array_from_tensor(
    tensor: &TensorView<'_>,
    ty: Option<&Type>,
    options: &TensorOptions,
    memory: impl FnOnce(usize, i64) -> OwnedBuffer,
    report: &mut Report<'_>,
) -> Result<(Array, bool)> {
    options.sync.mode(report)?;
    let device = device_of(tensor);
    if !is_cpu_readable(device) {
        check_queue(&options.sync, report)?;
    }
    if is_handle(device.r#type) && tensor.byte_offset != 0 {
        return Err(within_handle(tensor, report));
    }
    let given = given_dims(tensor, report)?;
    let wanted = match ty {
        Some(ty) => asked(tensor, ty, &given, report)?,
        None => plain(tensor, &given, report)?,
    };
    let first = tensor.data.wrapping_add(usize::try_from(tensor.byte_offset).unwrap_or(0));
    let is_compact = is_same(&given, &wanted.dims);
    let size = wanted.dims.elements().saturating_mul(wanted.width);
    if is_compact && !wanted.packs {
        let array = build(&wanted, device, memory(if size == 0 { 0 } else { first }, size), report)?;
        return Ok((behind_queue(array, &options.sync, report)?, size > 0));
    }
    if !options.allow_copy {
        return Err(not_compact(tensor, &given, &wanted, report));
    }
    if !is_cpu_readable(device) {
        require_copies(Place { device, event: Event::NONE }, &options.sync, report)?;
    }
    let mut copy = gathered(tensor, &given, &wanted, device, &options.sync, memory, report)?;
    if !is_cpu_readable(device) {
        copy = upload(&copy, device, report)?;
    }
    let mut copy = copy.into_owned();
    match build_on(&wanted, device, &mut copy, report) {
        Ok(array) => Ok((array, false)),
        Err(failed) => {
            drop(copy.take_owner());
            Err(failed)
        }
    }
}

/// The device as Arrow names it.
fn device_of(tensor: &TensorView<'_>) -> Device {
    let device = tensor.device;
    match device.device_type {
        DEVICE_CPU => Device::CPU,
        other if has_no_id(other) => Device { r#type: other, id: i64::from(device.device_id) },
        other => Device { r#type: other, id: i64::from(device.device_id) },
    }
}

/// The tensor's dimensions and strides; a scalar is a row.
fn given_dims(tensor: &TensorView<'_>, report: &mut Report<'_>) -> Result<Dims> {
    let mut dims = Dims::NONE;
    for length in tensor.shape.numbers() {
        dims.push(*length, report)?;
    }
    if tensor.shape.numbers().is_empty() {
        dims.push(1, report)?;
    }
    dims.compact(report)?;
    if let Axes::Here(strides) = tensor.strides {
        dims.set_strides(strides);
    }
    Ok(dims)
}

/// Whether both lie the same in memory: the stride of a dimension of one element is never taken, and no elements lie nowhere.
fn is_same(a: &Dims, b: &Dims) -> bool {
    a.elements() == 0
        || a.shape().iter().zip(a.strides().iter().zip(b.strides())).all(|(n, (a, b))| *n == 1 || a == b)
}

/// The type that follows from the tensor alone: numbers, and fixed-size lists of them.
fn plain(tensor: &TensorView<'_>, given: &Dims, report: &mut Report<'_>) -> Result<Wanted> {
    let Some(format) = format_of(tensor.dtype) else { return Err(no_format(tensor, report)) };
    let is_nested = given.shape().len() > 1;
    let name: &[u8] = if is_nested { b"item" } else { b"" };
    let bool8: &[(&[u8], &[u8])] = match tensor.dtype.code {
        BOOL => &[(EXTENSION_NAME, b"arrow.bool8"), (EXTENSION_METADATA, b"")],
        _ => &[],
    };
    let mut encoded = [0; 128];
    let size = encode(bool8.iter().copied(), &mut encoded).unwrap_or(0);
    let metadata = encoded.get(..size).filter(|bytes| !bytes.is_empty());
    let mut text = [0; 16];
    let nothing: [Type; 0] = [];
    let format = written(&mut text, format);
    let mut ty = Type::build(format, name, FLAG_NULLABLE, nothing.iter(), None, metadata, report)?;
    for (i, length) in given.shape().iter().enumerate().skip(1).rev() {
        let Ok(size) = i32::try_from(*length) else { return Err(too_long(*length, report)) };
        let name: &[u8] = if i == 1 { b"" } else { b"item" };
        let mut text = [0; 16];
        let format = written(&mut text, Format::FixedSizeList(size));
        ty = Type::build(format, name, FLAG_NULLABLE, [&ty], None, None, report)?;
    }
    let mut dims = *given;
    dims.compact(report)?;
    Ok(Wanted { ty, dims, width: i64::from(tensor.dtype.bits >> 3), packs: false })
}

fn written(into: &mut [c_char; 16], format: Format) -> &[u8] {
    // No such format is longer.
    let _ = write!(TextBuffer::over(into), "{}", format.text(&[], core::iter::empty()));
    bytes_of(into).split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The type that was asked for, when the tensor's dimensions and elements are its own.
fn asked(tensor: &TensorView<'_>, ty: &Type, given: &Dims, report: &mut Report<'_>) -> Result<Wanted> {
    let mut dims = Dims::NONE;
    dims.push(given.shape().first().copied().unwrap_or(1), report)?;
    let (mut index, mut order) = (0usize, None);
    let mut fixed_root = None;
    let node = loop {
        let Some(node) = ty.node(index) else { return Err(other_shape(ty, index, given, report)) };
        let Format::FixedSizeList(size) = node.format else { break node };
        match FixedShape::of(ty, index, report)? {
            Some(_) if order.is_some() => return Err(nested_tensors(ty, index, report)),
            Some(fixed) => {
                let base = dims.shape().len();
                for length in fixed.shape() {
                    dims.push(*length, report)?;
                }
                order = Some((base, fixed));
                fixed_root = (index == 0).then_some(fixed);
            }
            None => dims.push(i64::from(size), report)?,
        }
        let Some(child) = ty.child_index(index, 0) else { return Err(other_shape(ty, index, given, report)) };
        index = child;
    };
    let packs = node.format == Format::Bool && tensor.dtype.code == BOOL;
    let element = if node.has_dictionary() || packs { None } else { physical(node.format) };
    if let Some(n) = element.and_then(|element| element.per_value) {
        dims.push(n, report)?;
    }
    dims.compact(report)?;
    if let Some((base, fixed)) = order {
        dims.permute(base, fixed.permutation());
    }
    let found = tensor.dtype;
    let fits = match element {
        Some(element) => {
            let is_bool8 = found.code == BOOL && node.format == Format::Int8;
            element.dtype == found || (is_bool8 && found.bits == 8 && found.lanes == 1)
        }
        None => packs && found.bits == 8 && found.lanes == 1,
    };
    if !fits {
        return Err(other_element(tensor, ty, index, report));
    }
    if dims.shape() != given.shape() {
        return Err(other_shape(ty, index, given, report));
    }
    let width = i64::from(found.bits >> 3);
    let wanted = Wanted { ty: ty.clone(), dims, width, packs };
    match fixed_root.filter(|fixed| fixed.permutation().is_empty() && !fixed.has_names) {
        Some(_) if !packs && !is_same(given, &wanted.dims) => permuted(wanted, given, report),
        _ => Ok(wanted),
    }
}

/// The same with a permutation in the type, when the tensor's strides are a row-major order of its dimensions. Dimensions with
/// equal strides stay in their order, and so do those of one element.
fn permuted(wanted: Wanted, given: &Dims, report: &mut Report<'_>) -> Result<Wanted> {
    let m = given.shape().len().saturating_sub(1);
    let mut order = [0usize; 64];
    let Some(order) = order.get_mut(..m) else { return Ok(wanted) };
    for (i, place) in order.iter_mut().enumerate() {
        *place = i;
    }
    let step = |i: &usize| given.strides().get(i.saturating_add(1)).copied().unwrap_or(0);
    order.sort_by_key(|i| core::cmp::Reverse(step(i)));
    let mut memory = Dims::NONE;
    memory.push(given.shape().first().copied().unwrap_or(1), report)?;
    for from in order.iter() {
        memory.push(given.shape().get(from.saturating_add(1)).copied().unwrap_or(1), report)?;
    }
    memory.compact(report)?;
    // Where each dimension of the tensor is in memory.
    let mut place = [0usize; 64];
    for (j, from) in order.iter().enumerate() {
        if let Some(to) = place.get_mut(*from) {
            *to = j;
        }
    }
    let place = place.get(..m).unwrap_or_default();
    let mut dims = memory;
    dims.permute(1, place);
    if !is_same(given, &dims) || dims.shape() != given.shape() {
        return Ok(wanted);
    }
    let ty = with_permutation(&wanted.ty, memory.shape().get(1..).unwrap_or_default(), place, report)?;
    Ok(Wanted { ty, dims, ..wanted })
}

/// The type with a shape and a permutation in its extension's metadata.
fn with_permutation(ty: &Type, shape: &[i64], place: &[usize], report: &mut Report<'_>) -> Result<Type> {
    let mut text = [0; 2048];
    {
        let mut json = TextBuffer::over(&mut text);
        // Text that is cut would be found out below.
        let _ = json.write_str("{\"shape\":[");
        for (i, length) in shape.iter().enumerate() {
            let _ = write!(json, "{}{length}", if i == 0 { "" } else { "," });
        }
        let _ = json.write_str("],\"permutation\":[");
        for (i, at) in place.iter().enumerate() {
            let _ = write!(json, "{}{at}", if i == 0 { "" } else { "," });
        }
        let _ = json.write_str("]}");
    }
    let json = bytes_of(&text).split(|byte| *byte == 0).next().unwrap_or_default();
    let old = ty.metadata(0).unwrap_or_default();
    let new =
        pairs(old).map(|(key, value)| if key == EXTENSION_METADATA { (key, json) } else { (key, value) });
    let Some(size) = encoded_size(new.clone()) else { return Err(report.out_of_memory(usize::MAX)) };
    let mut encoded = Vec::new();
    if encoded.try_reserve_exact(size).is_err() {
        return Err(report.out_of_memory(size));
    }
    encoded.resize(size, 0);
    let _ = encode(new, &mut encoded);
    let Some(child) = ty.child(0) else { return Ok(ty.clone()) };
    let flags = ty.root_node().flags;
    Type::build(ty.format_text(0), ty.name(0), flags, [&child], None, Some(&encoded), report)
}

/// An array of memory that somebody else keeps.
fn build(wanted: &Wanted, device: Device, memory: OwnedBuffer, report: &mut Report<'_>) -> Result<Array> {
    let mut memory = core::mem::ManuallyDrop::new(memory);
    build_on(wanted, device, &mut memory, report)
}

/// The array under an event behind what is by now on the queue that the tensor's producer was given.
fn behind_queue(array: Array, sync: &Sync, report: &mut Report<'_>) -> Result<Array> {
    if is_cpu_readable(array.tree().device()) || sync.mode(report)? != SyncMode::Queue {
        return Ok(array);
    }
    array.record(sync, report)
}

fn build_on(
    wanted: &Wanted,
    device: Device,
    memory: &mut OwnedBuffer,
    report: &mut Report<'_>,
) -> Result<Array> {
    const MOST: usize = 65;
    let mut nodes = [Facts::EMPTY; MOST];
    let n_nodes = wanted.ty.n_nodes();
    let Some(nodes) = nodes.get_mut(..n_nodes) else { return Err(too_deep(report)) };
    let mut length = wanted.dims.shape().first().copied().unwrap_or(1);
    for (i, node) in nodes.iter_mut().enumerate() {
        let is_leaf = i.saturating_add(1) == n_nodes;
        *node = Facts { length, null_count: 0, offset: 0, n_buffers: if is_leaf { 2 } else { 1 } };
        let size = wanted.ty.node(i).map(|node| node.format);
        let Some(Format::FixedSizeList(size)) = size else { continue };
        let Some(below) = length.checked_mul(i64::from(size)) else { return Err(too_long(length, report)) };
        length = below;
    }
    // A bitmap a node, none of which is there, and the values.
    let mut buffers: [OwnedBuffer; MOST] = core::array::from_fn(|_| OwnedBuffer::absent());
    let n_buffers = n_nodes.saturating_add(1);
    let Some(buffers) = buffers.get_mut(..n_buffers) else { return Err(too_deep(report)) };
    let Some(last) = buffers.last_mut() else { return Err(too_deep(report)) };
    core::mem::swap(last, memory);
    let mut placement = Placement::on(device);
    let made = from_buffers(&wanted.ty, nodes, buffers, Some(&mut placement), report);
    if let Some(last) = buffers.last_mut() {
        core::mem::swap(last, memory);
    }
    made?.into_array(&wanted.ty, report)
}

/// A copy of the tensor's elements, row-major, or as bits.
fn gathered(
    tensor: &TensorView<'_>,
    given: &Dims,
    wanted: &Wanted,
    device: Device,
    sync: &Sync,
    memory: impl FnOnce(usize, i64) -> OwnedBuffer,
    report: &mut Report<'_>,
) -> Result<Buffer> {
    let (n, width) = (wanted.dims.elements(), wanted.width);
    let (low, high) = reach(given);
    // From the lowest element on: strides may be negative.
    let first = i128::try_from(tensor.data)
        .unwrap_or(0)
        .saturating_add(i128::from(tensor.byte_offset))
        .saturating_add(i128::from(low.saturating_mul(width)));
    let first = usize::try_from(first).unwrap_or(0);
    let span = high.saturating_sub(low).saturating_add(1).saturating_mul(width);
    let source = memory(first, if n == 0 { 0 } else { span });
    let span = if n == 0 { 0 } else { usize::try_from(span).unwrap_or(0) };
    if is_cpu_readable(device) {
        let from = if n == 0 { Some(&[][..]) } else { source.host_bytes(Device::CPU, 0, span) };
        let Some(from) = from else {
            return Err(report.fail(Status::Internal, format_args!("expected readable memory, found none")));
        };
        return arranged(given, wanted, low, from, report);
    }
    // No device gathers: the values come here, and what they become goes back.
    let mut made = None;
    let _staging = Buffer::filled(span, report, |into, report| {
        fetch_owned(&source, device, into, sync, report)?;
        made = Some(arranged(given, wanted, low, into, report)?);
        Ok(())
    })?;
    made.ok_or_else(|| report.fail(Status::Internal, format_args!("expected a copy, found none")))
}

/// The values in the order of the type's memory. `from` starts at the lowest of them.
fn arranged(given: &Dims, wanted: &Wanted, low: i64, from: &[u8], report: &mut Report<'_>) -> Result<Buffer> {
    let (n, width) = (wanted.dims.elements(), wanted.width);
    let bytes = n.saturating_mul(width);
    let size = if wanted.packs { n.saturating_add(7) >> 3 } else { bytes };
    let (size, width) = (usize::try_from(size).unwrap_or(0), usize::try_from(width).unwrap_or(1));
    Buffer::filled(size, report, |to, _| {
        // In the order of the type's memory.
        let mut at = Odometer::new(given, &wanted.dims);
        let mut index = 0usize;
        while let Some(element) = at.next() {
            let start = usize::try_from(element.saturating_sub(low)).unwrap_or(0).saturating_mul(width);
            let value = from.get(start..start.saturating_add(width)).unwrap_or_default();
            if wanted.packs {
                let is_set = value.iter().any(|byte| *byte != 0);
                if let Some(byte) = to.get_mut(index >> 3).filter(|_| is_set) {
                    *byte |= 1 << (index & 7);
                }
            } else {
                let place = index.saturating_mul(width);
                if let Some(place) = to.get_mut(place..place.saturating_add(width))
                    && place.len() == value.len()
                {
                    place.copy_from_slice(value);
                }
            }
            index = index.saturating_add(1);
        }
        Ok(())
    })
}

/// The lowest and the highest element, counted from the first. The struct's check says that they fit.
fn reach(dims: &Dims) -> (i64, i64) {
    let mut reach = (0_i64, 0_i64);
    for (length, step) in dims.shape().iter().zip(dims.strides()) {
        let last = length.saturating_sub(1).max(0).saturating_mul(*step);
        if last < 0 {
            reach.0 = reach.0.saturating_add(last);
        } else {
            reach.1 = reach.1.saturating_add(last);
        }
    }
    reach
}

/// Walks the elements of a tensor in the order in which another layout has them in memory.
struct Odometer {
    /// For each dimension, outermost in memory first: its length and the tensor's step.
    wheels: [(i64, i64); 64],
    at: [i64; 64],
    n: usize,
    left: i64,
    element: i64,
}

impl Odometer {
    fn new(given: &Dims, memory: &Dims) -> Self {
        let mut order = [0usize; 64];
        let n = given.shape().len().min(64);
        for (i, place) in order.iter_mut().enumerate() {
            *place = i;
        }
        let step = |i: &usize| memory.strides().get(*i).copied().unwrap_or(0);
        if let Some(order) = order.get_mut(..n) {
            order.sort_by_key(|i| core::cmp::Reverse(step(i)));
        }
        let mut wheels = [(1, 0); 64];
        for (wheel, i) in wheels.iter_mut().zip(order).take(n) {
            let length = given.shape().get(i).copied().unwrap_or(1);
            *wheel = (length, given.strides().get(i).copied().unwrap_or(0));
        }
        Self { wheels, at: [0; 64], n, left: given.elements(), element: 0 }
    }

    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1).filter(|left| *left >= 0)?;
        let now = self.element;
        for (at, (length, step)) in self.at.iter_mut().zip(self.wheels).take(self.n).rev() {
            *at = at.saturating_add(1);
            // The step of one element may be any number, and is taken back at once.
            self.element = self.element.wrapping_add(step);
            if *at < length {
                break;
            }
            self.element = self.element.wrapping_sub(step.wrapping_mul(length));
            *at = 0;
        }
        Some(now)
    }
}

/// An array's buffer starts where its address says, and an address is what a handle is not.
#[cold]
fn within_handle(tensor: &TensorView<'_>, report: &mut Report<'_>) -> Failed {
    let (offset, device_type) = (tensor.byte_offset, tensor.device.device_type);
    let message = format_args!(
        "expected data at the start of a handle of device type {device_type}, found byte {offset}"
    );
    report.fail_at(Status::Unsupported, Rule::None, &"$", message)
}

#[cold]
fn no_format(tensor: &TensorView<'_>, report: &mut Report<'_>) -> Failed {
    let dtype = tensor.dtype;
    let message = format_args!(
        "expected elements that Arrow has as numbers, found type code {}, {} bits, {} lanes",
        dtype.code, dtype.bits, dtype.lanes
    );
    report.fail_at(Status::Unsupported, Rule::Dl14, &"$", message)
}

#[cold]
fn other_element(tensor: &TensorView<'_>, ty: &Type, index: usize, report: &mut Report<'_>) -> Failed {
    let (dtype, format) = (tensor.dtype, ty.node(index).map_or(Format::Null, |node| node.format));
    let message = format_args!(
        "expected elements of {}, found type code {}, {} bits, {} lanes",
        format.text(&[], core::iter::empty()),
        dtype.code,
        dtype.bits,
        dtype.lanes
    );
    report.fail_at(Status::Unsupported, Rule::None, &ty.path(index), message)
}

#[cold]
fn other_shape(ty: &Type, index: usize, given: &Dims, report: &mut Report<'_>) -> Failed {
    let found = given.shape();
    let message =
        format_args!("expected the lengths of the type's lists behind the rows, found shape {found:?}");
    report.fail_at(Status::Unsupported, Rule::None, &ty.path(index), message)
}

#[cold]
fn not_compact(tensor: &TensorView<'_>, given: &Dims, wanted: &Wanted, report: &mut Report<'_>) -> Failed {
    let message = if wanted.packs && is_same(given, &wanted.dims) {
        format_args!("expected ALLOW_COPY to make bits of bytes, found no such flag")
    } else {
        return strided(tensor, given, wanted, report);
    };
    report.fail_at(Status::Unsupported, Rule::None, &"$", message)
}

#[cold]
fn strided(_: &TensorView<'_>, given: &Dims, wanted: &Wanted, report: &mut Report<'_>) -> Failed {
    let (expected, found) = (wanted.dims.strides(), given.strides());
    let message = format_args!("expected strides {expected:?}, or ALLOW_COPY, found {found:?}");
    report.fail_at(Status::Unsupported, Rule::None, &"$", message)
}

#[cold]
fn too_long(length: i64, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected at most {} values in a fixed-size list, found {length}", i32::MAX);
    report.fail_at(Status::Unsupported, Rule::None, &"$", message)
}

#[cold]
fn too_deep(report: &mut Report<'_>) -> Failed {
    report.fail(Status::Unsupported, format_args!("expected at most 64 levels of lists, found more"))
}
