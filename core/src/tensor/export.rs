//! Arrays and buffers as tensors: the same memory, and only what keeps it.

use core::ffi::c_void;

use super::check::is_defined;
use super::element::{BOOL, Element, is_plain, number, physical, value_bytes};
use super::ffi::Tensor;
use super::made::{Dims, IS_COPIED, Spec};
use super::shape_text::FixedShape;
use super::view::MAX_NDIM;
use crate::abi::DLDataType;
use crate::array::Array;
use crate::device::{Sync, SyncMode, Wait, Work, is_cpu_readable};
use crate::error::{Failed, Report, Result, Rule, Status};
use crate::memory::{Buffer, Owner, Place};
use crate::tree::{Facts, Fetch, upload};
use crate::types::{Format, Type};

/// How a tensor is to be made.
#[derive(Debug, Clone, Copy)]
pub struct TensorOptions {
    /// Whether values that are no numbers go out as what they consist of.
    pub physical: bool,
    /// Whether nulls go out as whatever lies in their place.
    pub values_only: bool,
    /// Whether bits may become bytes, and strides rows, by a copy in CPU memory.
    pub allow_copy: bool,
    /// Whether a legacy tensor may be made of memory that must not be written.
    pub drop_read_only: bool,
    /// What to do about unfinished device work.
    pub sync: Sync,
}

impl TensorOptions {
    /// Nothing but numbers without nulls, and no copy.
    ///
    /// cbindgen:ignore
    pub const DEFAULT: TensorOptions = TensorOptions {
        physical: false,
        values_only: false,
        allow_copy: false,
        drop_read_only: false,
        sync: Sync::NONE,
    };
}

/// Whether a tensor of memory at `place` may be handed out: nothing is pending there, or the caller says how to wait.
#[inline]
pub(super) fn check_event(place: Place, sync: &Sync, report: &mut Report<'_>) -> Result<()> {
    if place.event.is_none() {
        return Ok(());
    }
    wait_for(place, sync, report)
}

/// Lets the caller's queue, or its thread, wait.
#[cold]
#[inline(never)]
fn wait_for(place: Place, sync: &Sync, report: &mut Report<'_>) -> Result<()> {
    check_queue(sync, report)?;
    Work::waiting(place, sync, Wait::TensorAfterEvent, report)
}

/// A tensor's consumer has a queue of its own: one of the library's would let nobody wait.
pub(super) fn check_queue(sync: &Sync, report: &mut Report<'_>) -> Result<()> {
    if sync.mode(report)? != SyncMode::Library {
        return Ok(());
    }
    let message = format_args!("expected NONE, QUEUE or HOST, found LIBRARY, which would let nobody wait");
    Err(report.fail(Status::InvalidArgument, message))
}

/// An array's values as a tensor: a number a row, or a fixed-size list of them at any depth.
///
/// No copy but of bits. The tensor keeps the values' buffer alone.
#[inline]
pub fn array_to_tensor(array: &Array, options: &TensorOptions, report: &mut Report<'_>) -> Result<Tensor> {
    check_event(array.tree().place(), &options.sync, report)?;
    match plain_numbers(array, options) {
        Some((element, data)) => one_dimension(array, element, data, report),
        None => any_dimensions(array, options, report),
    }
}

/// The same of lists, of what is no plain number, and of nulls.
#[inline(never)]
fn any_dimensions(array: &Array, options: &TensorOptions, report: &mut Report<'_>) -> Result<Tensor> {
    let Some(ty) = array.ty() else { return Err(no_node(report)) };
    let mut dims = Dims::NONE;
    dims.push(array.length(), report)?;
    let mut order = None;
    let mut index = 0usize;
    let leaf = loop {
        let (Some(node), Some(facts)) = (ty.node(index), shown(array, index)) else {
            return Err(no_node(report));
        };
        check_nulls(array, &ty, index, options, report)?;
        let Format::FixedSizeList(size) = node.format else { break (node, facts) };
        match FixedShape::of(&ty, index, report)? {
            Some(_) if order.is_some() => return Err(nested_tensors(&ty, index, report)),
            Some(fixed) => {
                let base = dims.shape().len();
                for length in fixed.shape() {
                    dims.push(*length, report)?;
                }
                order = Some((base, fixed));
            }
            None => dims.push(i64::from(size), report)?,
        }
        let Some(child) = ty.child_index(index, 0) else { return Err(no_node(report)) };
        index = child;
    };
    let (node, facts) = leaf;
    if node.format == Format::Bool && !node.has_dictionary() {
        dims.compact(report)?;
        arrange(&mut dims, order);
        return unpacked(array, &ty, index, 1, facts, &dims, options, report);
    }
    let element = match node.format {
        format if is_plain(node) => number(format),
        format if options.physical => {
            if node.has_dictionary() {
                number(format)
            } else {
                physical(format)
            }
        }
        _ => None,
    };
    let Some(element) = element else { return Err(no_number(&ty, index, options, report)) };
    if let Some(n) = element.per_value {
        dims.push(n, report)?;
    }
    dims.compact(report)?;
    arrange(&mut dims, order);
    let Some(start) = facts.offset.checked_mul(value_bytes(element)) else {
        return Err(too_far(&ty, index, report));
    };
    let place = array.tree().place();
    let at = array.node().saturating_add(index);
    let data = array.tree().buffer(at, 1);
    let spec = Spec::new(data, start, place.device, element.dtype, dims.parts(), report)?;
    Tensor::make(&spec, report, || kept(array, at, 1, spec.data))
}

/// What a tensor of a buffer has to keep: nothing when it shows no byte of it.
#[inline]
fn kept(array: &Array, node: usize, k: usize, data: *const c_void) -> Owner {
    if data.is_null() { Owner::NONE } else { array.tree().owner_of(node, k).0 }
}

fn arrange(dims: &mut Dims, order: Option<(usize, FixedShape)>) {
    if let Some((base, fixed)) = order {
        dims.permute(base, fixed.permutation());
    }
}

/// The element type and the buffer of an array of numbers without nulls, or whose nulls do not matter: most are that.
#[inline]
fn plain_numbers(array: &Array, options: &TensorOptions) -> Option<(Element, *const c_void)> {
    let (tree, node) = (array.tree(), array.node());
    let format = tree.ty().node(node).filter(|node| !node.has_dictionary())?.format;
    let element = number(format)?;
    let leaf = tree.nodes().get(node)?.leaf();
    let has_none = options.values_only
        || leaf.validity.is_null()
        || leaf.facts.null_count == 0
        || array.shown_nulls(node) == 0;
    has_none.then_some((element, leaf.data))
}

#[inline]
fn one_dimension(
    array: &Array,
    element: Element,
    data: *const c_void,
    report: &mut Report<'_>,
) -> Result<Tensor> {
    // What was imported or built lies within 63 bits.
    let start = array.offset().wrapping_mul(i64::from(element.dtype.bits >> 3));
    let (shape, strides) = ([array.length()], [1]);
    let device = array.tree().place().device;
    let spec = Spec::new(data, start, device, element.dtype, (&shape, &strides), report)?;
    Tensor::make(&spec, report, || kept(array, array.node(), 1, spec.data))
}

/// The numbers of a node as the array's window shows it.
fn shown(array: &Array, index: usize) -> Option<Facts> {
    array.shown_facts(array.node().saturating_add(index))
}

fn check_nulls(
    array: &Array,
    ty: &Type,
    index: usize,
    options: &TensorOptions,
    report: &mut Report<'_>,
) -> Result<()> {
    let has_validity = ty.node(index).is_some_and(|node| node.layout.has_validity());
    if options.values_only || !has_validity {
        return Ok(());
    }
    let node = array.node().saturating_add(index);
    let mut nulls = array.shown_nulls(node);
    if nulls < 0 {
        nulls = match array.nulls_of(node, &options.sync, report) {
            // Without a backend nobody can count them.
            Err(failed) if failed.status() == Status::Unsupported => -1,
            counted => counted?,
        };
    }
    if nulls == 0 {
        return Ok(());
    }
    let path = ty.path(index);
    let message = match nulls {
        -1 => format_args!("expected no nulls, or VALUES_ONLY, found a null count that nobody knows"),
        _ => format_args!("expected no nulls, or VALUES_ONLY, found {nulls}"),
    };
    Err(report.fail_at(Status::Unsupported, Rule::None, &path, message))
}

#[cold]
fn no_number(ty: &Type, index: usize, options: &TensorOptions, report: &mut Report<'_>) -> Failed {
    let format = ty.node(index).map_or(Format::Null, |node| node.format);
    let found = format.text(&[], core::iter::empty());
    let path = ty.path(index);
    if !options.physical && physical(format).is_some() {
        let message =
            format_args!("expected a number, or PHYSICAL for what a value consists of, found {found}");
        return report.fail_at(Status::Unsupported, Rule::None, &path, message);
    }
    let message = format_args!("expected values of one size, found {found}");
    report.fail_at(Status::Unsupported, Rule::None, &path, message)
}

/// A tensor in a tensor: whose dimensions come first is nobody's to guess.
#[cold]
pub(super) fn nested_tensors(ty: &Type, index: usize, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected numbers or lists in a fixed-shape tensor, found another one");
    report.fail_at(Status::Unsupported, Rule::None, &ty.path(index), message)
}

#[cold]
fn no_node(report: &mut Report<'_>) -> Failed {
    report.fail(Status::Internal, format_args!("expected a node of the array, found none"))
}

#[cold]
fn too_far(ty: &Type, index: usize, report: &mut Report<'_>) -> Failed {
    let message = format_args!("expected an offset in bytes within 64 bits, found more");
    report.fail_at(Status::InvalidData, Rule::A1, &ty.path(index), message)
}

/// A bitmap as booleans of a byte each: a copy.
#[allow(clippy::too_many_arguments, reason = "one place, one shape and one request, each a value of its own")]
fn unpacked(
    array: &Array,
    ty: &Type,
    index: usize,
    k: usize,
    facts: Facts,
    dims: &Dims,
    options: &TensorOptions,
    report: &mut Report<'_>,
) -> Result<Tensor> {
    if !options.allow_copy {
        let message = format_args!("expected ALLOW_COPY to make bytes of bits, found no such flag");
        return Err(report.fail_at(Status::Unsupported, Rule::None, &ty.path(index), message));
    }
    let place = array.tree().place();
    let (first, n) = (usize::try_from(facts.offset).unwrap_or(0), usize::try_from(facts.length).unwrap_or(0));
    let at = array.node().saturating_add(index);
    let size = first.saturating_add(n).div_ceil(8).saturating_sub(first >> 3);
    let bytes_of = |bits: &[u8], report: &mut Report<'_>| {
        Buffer::filled(n, report, |bytes, _| {
            for (i, byte) in bytes.iter_mut().enumerate() {
                let bit = (first & 7).saturating_add(i);
                *byte = bits.get(bit >> 3).map_or(0, |bits| bits >> (bit & 7) & 1);
            }
            Ok(())
        })
    };
    if is_cpu_readable(place.device) {
        let bits = if n == 0 { Some(&[][..]) } else { array.tree().host_bytes(at, k, first >> 3, size) };
        let Some(bits) = bits else { return Err(no_node(report)) };
        return copied(bytes_of(bits, report)?, BOOL, dims, report);
    }
    // No device unpacks: the bits come here, and the bytes go back.
    let mut bits = None;
    let _staging = Buffer::filled(if n == 0 { 0 } else { size }, report, |into, report| {
        array.tree().fetch(
            &options.sync,
            &mut [Fetch { node: at, k, at: first >> 3, into: &mut *into }],
            report,
        )?;
        bits = Some(bytes_of(into, report)?);
        Ok(())
    })?;
    let Some(bytes) = bits else { return Err(no_node(report)) };
    copied(upload(&bytes, place.device, report)?, BOOL, dims, report)
}

/// A tensor that alone has a copy of bytes.
fn copied(copy: Buffer, code: u8, dims: &Dims, report: &mut Report<'_>) -> Result<Tensor> {
    let dtype = DLDataType { code, bits: 8, lanes: 1 };
    let spec = Spec::new(copy.data(), 0, copy.place().device, dtype, dims.parts(), report)?;
    let spec = Spec { flags: IS_COPIED, ..spec };
    Tensor::make(&spec, report, || copy.into_owner())
}

/// The validity bitmap as a tensor: bytes and the bit where the first row is, or with ALLOW_COPY a boolean a row.
/// `None` when the array has no bitmap, so that every row is valid.
pub fn validity_to_tensor(
    array: &Array,
    options: &TensorOptions,
    report: &mut Report<'_>,
) -> Result<Option<(Tensor, i64)>> {
    check_event(array.tree().place(), &options.sync, report)?;
    let Some(ty) = array.ty() else { return Err(no_node(report)) };
    let (node, facts) = (array.node(), shown(array, 0).unwrap_or(Facts::EMPTY));
    let data = array.tree().buffer(node, 0);
    if !ty.root_node().layout.has_validity() || data.is_null() {
        return Ok(None);
    }
    let mut dims = Dims::NONE;
    if options.allow_copy {
        dims.push(facts.length, report)?;
        dims.compact(report)?;
        return unpacked(array, &ty, 0, 0, facts, &dims, options, report).map(|tensor| Some((tensor, 0)));
    }
    let (start, bit) = (facts.offset >> 3, facts.offset & 7);
    let bytes = if facts.length == 0 { 0 } else { bit.saturating_add(facts.length).saturating_add(7) >> 3 };
    dims.push(bytes, report)?;
    dims.compact(report)?;
    let dtype = DLDataType { code: 1, bits: 8, lanes: 1 };
    let spec = Spec::new(data, start, array.tree().place().device, dtype, dims.parts(), report)?;
    Tensor::make(&spec, report, || kept(array, node, 0, spec.data)).map(|tensor| Some((tensor, bit)))
}

/// A buffer as a tensor of elements of a type, row-major, from its first byte on.
pub fn buffer_to_tensor(
    buffer: &Buffer,
    dtype: DLDataType,
    shape: &[i64],
    options: &TensorOptions,
    report: &mut Report<'_>,
) -> Result<Tensor> {
    check_event(buffer.place(), &options.sync, report)?;
    if !is_defined(dtype) {
        let DLDataType { code, bits, lanes } = dtype;
        let message = format_args!(
            "expected elements that DLPack defines, found type code {code}, {bits} bits, {lanes} lanes"
        );
        return Err(report.fail(Status::InvalidArgument, message));
    }
    let bits = i64::from(dtype.bits).saturating_mul(i64::from(dtype.lanes));
    if shape.len() > usize::try_from(MAX_NDIM).unwrap_or(0) {
        let message = format_args!("expected at most {MAX_NDIM} dimensions, found {}", shape.len());
        return Err(report.fail(Status::Unsupported, message));
    }
    let mut dims = Dims::NONE;
    for (i, length) in shape.iter().enumerate() {
        if *length < 0 {
            let message = format_args!("expected a length of at least 0 for dimension {i}, found {length}");
            return Err(report.fail(Status::InvalidArgument, message));
        }
        dims.push(*length, report)?;
    }
    dims.compact(report)?;
    let needed =
        dims.elements().checked_mul(bits).map(|bits| (bits >> 3).saturating_add(i64::from(bits & 7 != 0)));
    let found = buffer.size();
    let Some(needed) = needed else {
        return Err(report.fail(
            Status::InvalidArgument,
            format_args!("expected a size in bits within 64 bits, found more"),
        ));
    };
    if needed > found {
        let message = if found < 0 {
            format_args!("expected a buffer of a known size for {needed} bytes, found one of an unknown size")
        } else {
            format_args!("expected a buffer of at least {needed} bytes, found {found}")
        };
        return Err(report.fail(Status::InvalidArgument, message));
    }
    let spec = Spec::new(buffer.data(), 0, buffer.place().device, dtype, dims.parts(), report)?;
    Tensor::make(
        &spec,
        report,
        || if spec.data.is_null() { Owner::NONE } else { buffer.clone().into_owner() },
    )
}
