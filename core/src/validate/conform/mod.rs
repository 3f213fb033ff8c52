//! Repairs: an array as a named consumer takes it, without copying where that is possible.

mod bitmaps;
mod lists;
mod numbers;
mod rebuild;
mod strings;
mod wanted;

use super::options::{Level, Options, Profile};
use crate::abi::{DEVICE_CUDA, Device};
use crate::array::Array;
use crate::device::{Sync, require_readable};
use crate::error::{Findings, Report, Result, Rule, Status};
use crate::tree::Facts;
use crate::types::{Format, Type};

use rebuild::Rebuild;
use wanted::Wanted;

/// What a repair may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repairs {
    /// Whether buffers in CPU memory may be copied.
    pub may_copy: bool,
    /// Whether the consumer takes the root for a table, which has no nulls of its own.
    pub as_table: bool,
    /// Whether views become offsets.
    pub to_offsets: bool,
    /// Whether offsets become views.
    pub to_views: bool,
}

/// The array as the profile's consumer takes it.
///
/// Without a copy: null counts that the CPU can count, an offset at the root. With one, in CPU memory: what `repairs` and
/// the consumer want of index types, list layouts, alignment and the root's nulls. What cannot be repaired is the error.
pub fn conform(
    array: &Array,
    profile: Profile,
    sync: &Sync,
    repairs: Repairs,
    report: &mut Report<'_>,
) -> Result<Array> {
    sync.mode(report)?;
    if repairs.to_offsets && repairs.to_views {
        let message = format_args!("expected views or offsets to be asked for, found both");
        return Err(report.fail(Status::InvalidArgument, message));
    }
    let Some(ty) = array.ty() else {
        let message = format_args!("expected a node of the array, found none");
        return Err(report.fail(Status::Internal, message));
    };
    // An export pushes a root's offset down, and counts nulls.
    let mut shown = array.export(report)?.into_array(&ty, report)?;
    let wanted = Wanted { profile, repairs };
    let is_readable = require_readable(shown.tree().place(), sync, &mut Report::silent()).is_ok();
    if repairs.may_copy && is_readable {
        shown = copied(array, shown, &ty, &wanted, report)?;
    }
    not_done(&shown, &wanted, report)?;
    let as_table = repairs.as_table;
    // Views are made of what is on the device: a batch in CPU memory is prepared for the way there.
    let is_on_its_way = profile == Profile::CudfDevice && shown.tree().device() == Device::CPU;
    let assume_device = is_on_its_way.then_some(Device { r#type: DEVICE_CUDA, id: 0 });
    let options = Options { level: Level::Structure, profile, assume_device, as_table, ..Options::DEFAULT };
    super::array(&shown, &options, Findings::first(report))?;
    Ok(shown)
}

/// Says what was asked for and needs a copy that could not be made. What only the profile wants is its own to name.
fn not_done(array: &Array, wanted: &Wanted, report: &mut Report<'_>) -> Result<()> {
    let Some(ty) = array.ty() else { return Ok(()) };
    let Repairs { to_offsets, to_views, .. } = wanted.repairs;
    if to_offsets || to_views {
        for i in 0..ty.n_nodes() {
            let values = wanted::dictionary_length(array.tree(), &ty, array.node(), i);
            if let Some(format) = wanted.format(&ty, i, values) {
                let message = format_args!(
                    "expected ALLOW_COPY and memory that the CPU can read to make {} of this, found one of them missing",
                    format.text(&[], core::iter::empty())
                );
                return Err(report.fail_at(Status::NotConforming, Rule::None, &ty.path(i), message));
            }
        }
    }
    if wanted.merges_root(array, &ty) {
        let message = format_args!(
            "expected ALLOW_COPY and memory that the CPU can read to take a table's nulls into its columns, found one of them missing"
        );
        return Err(report.fail_at(Status::NotConforming, Rule::None, &ty.path(0), message));
    }
    Ok(())
}

/// The same array with copies of what the consumer does not take as it is; itself when there is nothing to repair.
fn copied(from: &Array, array: Array, ty: &Type, wanted: &Wanted, report: &mut Report<'_>) -> Result<Array> {
    let is_fine = (0..ty.n_nodes()).all(|i| wanted.is_fine(&array, ty, i));
    if is_fine && !wanted.merges_root(&array, ty) {
        return Ok(array);
    }
    // A copy follows offsets and indices, so they are looked at first: in the array that came, whose whole says more of its
    // memory than a window.
    super::array(from, &Options::DEFAULT, Findings::first(report))?;
    let mut rebuild = Rebuild::of(&array, ty, report)?;
    if wanted.merges_root(&array, ty) {
        merge_root(&mut rebuild, ty, report)?;
    }
    for i in 0..ty.n_nodes() {
        repair(&mut rebuild, wanted, i, report)?;
    }
    rebuild.finish(ty, report)
}

/// Takes the nulls of a struct into its children, and its offset as well.
fn merge_root(rebuild: &mut Rebuild<'_>, ty: &Type, report: &mut Report<'_>) -> Result<()> {
    let root = rebuild.facts(0);
    for (i, child) in ty.children_of(ty.root_node()).iter().enumerate() {
        let child = (*child as usize).wrapping_sub(ty.base());
        let has_validity = ty.node(child).is_some_and(|node| node.layout.has_validity());
        let is_null = ty.node(child).is_some_and(|node| node.format == Format::Null);
        if !has_validity && !is_null {
            let message = format_args!(
                "expected children that can hold the root's {} nulls, found that child {i} has no validity bitmap",
                root.null_count
            );
            return Err(report.fail_at(Status::NotConforming, Rule::None, &ty.path(child), message));
        }
        rebuild.window(child, root.offset, root.length);
        if has_validity {
            bitmaps::merge(rebuild, child, root, report)?;
        }
    }
    rebuild.drop_validity(0);
    rebuild.set_facts(0, Facts { offset: 0, null_count: 0, ..root });
    Ok(())
}

fn repair(rebuild: &mut Rebuild<'_>, wanted: &Wanted, i: usize, report: &mut Report<'_>) -> Result<()> {
    match wanted.format(rebuild.ty(), i, rebuild.dictionary_length(i)) {
        None => {}
        Some(to) => {
            let from = rebuild.ty().node(i).map_or(Format::Null, |node| node.format);
            match (from, to) {
                (Format::LargeList | Format::FixedSizeList(_), Format::List) => {
                    lists::to_small(rebuild, i, from, report)?
                }
                (Format::ListView | Format::LargeListView, _) => lists::from_views(rebuild, i, from, report)?,
                (Format::List | Format::LargeList, _) => lists::to_views(rebuild, i, from, to, report)?,
                (Format::Utf8View | Format::BinaryView, _) => strings::from_views(rebuild, i, from, report)?,
                (Format::Utf8 | Format::LargeUtf8 | Format::Binary | Format::LargeBinary, _) => {
                    strings::to_views(rebuild, i, from, to, report)?;
                }
                _ => numbers::indices(rebuild, i, from, to, report)?,
            }
        }
    }
    bitmaps::align(rebuild, i, wanted, report)
}
