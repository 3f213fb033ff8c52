//! What named consumers make of legal data: refuse, copy, crash on it, or read wrong values.
//!
//! Each statement about libcudf was seen there, see `docs/validation.md`; `cargo xtask interop libcudf` compares both again.
//! libcudf takes an array in one of two ways. It looks at device memory through views, which have 32-bit offsets, believe
//! the null count and take the addresses as they are; and it copies host memory, where it counts nulls itself.

use core::fmt;

use super::options::{Options, Profile};
use super::structure::Structure;
use super::subject::Subject;
use crate::abi::{DEVICE_CPU, DEVICE_CUDA, DEVICE_CUDA_HOST, DEVICE_CUDA_MANAGED, Device};
use crate::error::{Findings, Flow, Rule, Severity};
use crate::tree::{At, Facts, role_name};
use crate::types::{Format, Role, Type};

/// A consumer, and how it would be handed the data.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Which one; never the specification.
    pub profile: Profile,
    /// The device that it would find the data on; `None` when only the type is known.
    pub device: Option<Device>,
    /// Whether it takes the root for a table.
    pub as_table: bool,
}

impl Target {
    /// The consumer that a check is for, if it is for one. `device` is where the data is.
    pub fn of(options: &Options, device: Option<Device>) -> Option<Target> {
        if options.profile == Profile::Spec {
            return None;
        }
        let device = options.assume_device.or(device);
        Some(Target { profile: options.profile, device, as_table: options.as_table })
    }

    /// Whether it copies what it finds, in host memory.
    fn copies(&self) -> bool {
        match self.profile {
            Profile::CudfHost => true,
            Profile::CudfOwning => self.device.is_some_and(|device| device.r#type == DEVICE_CPU),
            _ => false,
        }
    }

    /// Whether node `i` is a struct that is only there to hold a table's columns.
    fn is_table(&self, ty: &Type, i: usize) -> bool {
        self.as_table && i == 0 && ty.root_node().format == Format::Struct
    }
}

const DEVICE: Rule = Rule::C1;
const TYPE: Rule = Rule::C2;
const INDEX: Rule = Rule::C3;
const RANGE: Rule = Rule::C4;
const NULL_COUNT: Rule = Rule::C5;
const TABLE: Rule = Rule::C6;
const ADDRESS: Rule = Rule::C7;
const VALUES: Rule = Rule::C8;
const EMPTY: Rule = Rule::C9;
const LAYOUT: Rule = Rule::C10;
const LOOK: Rule = Rule::C11;

/// The most rows that a column has, and the largest offset: libcudf counts in `int32_t`.
const MOST: i64 = i32::MAX as i64;
/// Bytes that a validity bitmap or boolean values are read by.
const WORD: usize = 4;

/// What libcudf would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Refuse,
    Crash,
    Misread,
    Copy,
    Wait,
}

impl Fate {
    fn severity(self) -> Severity {
        match self {
            Fate::Refuse | Fate::Crash | Fate::Misread => Severity::Error,
            Fate::Copy => Severity::Warning,
            Fate::Wait => Severity::Note,
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fate::Refuse => "refuse it",
            Fate::Crash => "crash",
            Fate::Misread => "read wrong values",
            Fate::Copy => "copy it",
            Fate::Wait => "wait for the device",
        })
    }
}

/// Tells what is expected and found, and what libcudf would do about it.
macro_rules! tell {
    ($findings:expr, $fate:expr, $rule:expr, $path:expr, $($what:tt)+) => {
        $findings.consumer(
            $fate.severity(),
            $rule,
            $path,
            format_args!("{}: libcudf would {}", format_args!($($what)+), $fate),
        )
    };
}

/// How libcudf takes values of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// As they are, or as a plain copy from the host.
    AsTheyAre,
    /// Rebuilt on the device.
    Rebuilt,
    /// As they are, after a look at the last offset.
    AfterALook,
    No,
}

/// The formats that libcudf has, and how it takes them; indices into dictionaries are asked of [`takes_index`].
fn taken(target: &Target, format: Format) -> Taken {
    let owned = target.profile == Profile::CudfOwning;
    match format {
        Format::Null
        | Format::Int8
        | Format::UInt8
        | Format::Int16
        | Format::UInt16
        | Format::Int32
        | Format::UInt32
        | Format::Int64
        | Format::UInt64
        | Format::Float32
        | Format::Float64
        | Format::Decimal { bits: 32 | 64 | 128, .. }
        | Format::Date32
        | Format::Timestamp(_)
        | Format::Duration(_)
        | Format::Utf8
        | Format::LargeUtf8
        | Format::Struct => Taken::AsTheyAre,
        Format::Bool | Format::Utf8View => Taken::Rebuilt,
        Format::List => Taken::AfterALook,
        // What the owning classes make of their own copy of one has not been seen.
        Format::LargeList if target.profile == Profile::CudfHost => Taken::AsTheyAre,
        Format::FixedSizeList(_) if target.copies() || !owned => Taken::Rebuilt,
        _ => Taken::No,
    }
}

/// Whether the consumer takes indices of that format.
pub(super) fn takes_index(profile: Profile, format: Format) -> bool {
    let is_signed = matches!(format, Format::Int8 | Format::Int16 | Format::Int32 | Format::Int64);
    profile == Profile::Spec || is_signed
}

/// Whether the consumer takes lists of that format.
pub(super) fn takes_list(profile: Profile, format: Format) -> bool {
    match profile {
        Profile::Spec => true,
        // On a device; it takes copies of host memory as `CudfHost` does, but these do not need the repair.
        Profile::CudfOwning => format == Format::List,
        Profile::CudfDevice => matches!(format, Format::List | Format::FixedSizeList(_)),
        Profile::CudfHost => matches!(format, Format::List | Format::LargeList | Format::FixedSizeList(_)),
    }
}

/// Tells what the consumer makes of a type.
pub(super) fn check_type(target: &Target, ty: &Type, findings: &mut Findings<'_, '_>) -> Flow {
    let root = ty.root_node();
    if target.as_table && (root.format != Format::Struct || root.has_dictionary()) {
        let found = root.format.text(&[], core::iter::empty());
        tell!(findings, Fate::Refuse, TYPE, &ty.path(0), "expected a struct for a table, found {found}")?;
    }
    for (i, node) in (0..ty.n_nodes()).filter_map(|i| Some((i, ty.node(i)?))) {
        let found = node.format.text(&[], core::iter::empty());
        if node.has_dictionary() {
            if !takes_index(target.profile, node.format) {
                let path = ty.path(i);
                tell!(findings, Fate::Refuse, INDEX, &path, "expected signed indices, found {found}")?;
            }
        } else if taken(target, node.format) == Taken::No {
            let path = ty.path(i);
            tell!(findings, Fate::Refuse, TYPE, &path, "expected a type that libcudf has, found {found}")?;
        }
    }
    Flow::Continue(())
}

/// Tells what the consumer makes of where the array is and of its type, before any node.
pub(super) fn check_place<S: Subject + ?Sized>(
    target: &Target,
    subject: &S,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let found = target.device.map_or(DEVICE_CUDA, |device| device.r#type);
    let is_cuda = matches!(found, DEVICE_CUDA | DEVICE_CUDA_HOST | DEVICE_CUDA_MANAGED);
    let (is_fine, expected) = match target.profile {
        Profile::CudfHost => (found == DEVICE_CPU, "CPU memory (1)"),
        Profile::CudfOwning => (is_cuda || found == DEVICE_CPU, "memory of the CPU (1) or CUDA (2, 3 or 13)"),
        _ => (is_cuda, "memory of CUDA (2, 3 or 13)"),
    };
    if !is_fine {
        let path = subject.ty().path(0);
        tell!(findings, Fate::Refuse, DEVICE, &path, "expected {expected}, found device type {found}")?;
    }
    check_type(target, subject.ty(), findings)
}

/// Tells what the consumer makes of one node whose structure is sound.
pub(super) fn check_node<S: Subject + ?Sized>(
    target: &Target,
    subject: &S,
    at: &At<'_>,
    node: &Structure,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let seen = Seen { target, subject, at, facts: node.facts, count: node.count };
    if target.is_table(at.ty, at.index) && at.node.n_children > 0 {
        return seen.check_table(findings);
    }
    // What libcudf does not take was told with the type.
    let is_dictionary = at.node.has_dictionary();
    let taken = if is_dictionary { Taken::AsTheyAre } else { taken(target, at.node.format) };
    if taken == Taken::No || is_dictionary && !takes_index(target.profile, at.node.format) {
        return Flow::Continue(());
    }
    if target.copies() { seen.check_copy(findings) } else { seen.check_view(taken, findings) }
}

/// One node as a consumer finds it.
struct Seen<'a, S: Subject + ?Sized> {
    target: &'a Target,
    subject: &'a S,
    at: &'a At<'a>,
    facts: Facts,
    count: usize,
}

impl<S: Subject + ?Sized> Seen<'_, S> {
    fn has_bitmap(&self) -> bool {
        self.at.node.layout.has_validity() && !self.subject.buffer(self.at.index, 0).is_null()
    }

    fn is(&self, format: Format) -> bool {
        self.at.node.format == format && !self.at.node.has_dictionary()
    }

    /// The struct that holds a table's columns: libcudf takes nothing from it but them.
    fn check_table(&self, findings: &mut Findings<'_, '_>) -> Flow {
        let Facts { length, offset, null_count, .. } = self.facts;
        let path = self.at.ty.path(self.at.index);
        if null_count > 0 || null_count < 0 && self.has_bitmap() {
            let message = "expected a table without nulls of its own";
            tell!(findings, Fate::Misread, TABLE, &path, "{message}, found a null count of {null_count}")?;
        }
        let columns = self.at.ty.children_of(self.at.node).iter();
        let base = self.at.ty.base();
        let mut lengths = columns
            .filter_map(|column| self.subject.facts((*column as usize).wrapping_sub(base)))
            .map(|column| column.length);
        let Some(first) = lengths.next() else { return Flow::Continue(()) };
        if let Some(other) = lengths.find(|other| *other != first) {
            let message = "expected columns of the same length";
            return tell!(findings, Fate::Refuse, TABLE, &path, "{message}, found {first} and {other}");
        }
        // A window that is not the whole of an array is exported as a window on the columns; and an offset makes columns
        // longer than the table.
        if first != length && self.subject.is_whole() {
            let message = format_args!("expected columns as long as the table, found {first} values");
            return tell!(findings, Fate::Misread, TABLE, &path, "{message} for {length} rows from {offset}");
        }
        Flow::Continue(())
    }

    /// In device memory.
    fn check_view(&self, taken: Taken, findings: &mut Findings<'_, '_>) -> Flow {
        let Facts { length, null_count, .. } = self.facts;
        let path = self.at.ty.path(self.at.index);
        let rebuilds_views = self.is(Format::Utf8View);
        self.check_range(findings)?;
        let is_unknown = null_count == -1 && !self.is_all_null();
        if is_unknown && rebuilds_views && length > 0 && !self.has_bitmap() {
            let message = "expected a null count of 0 without a bitmap";
            tell!(findings, Fate::Refuse, NULL_COUNT, &path, "{message}, found {null_count}")?;
        }
        if is_unknown && length > 0 && self.has_bitmap() && !rebuilds_views {
            tell!(findings, Fate::Misread, NULL_COUNT, &path, "expected a null count, found {null_count}")?;
        }
        if self.at.node.is_dictionary && null_count > 0 && length > 0 && !self.keeps_nulls_as_values() {
            let fate = if taken == Taken::Rebuilt { Fate::Misread } else { Fate::Refuse };
            tell!(
                findings,
                fate,
                VALUES,
                &path,
                "expected dictionary values without nulls, found {null_count}"
            )?;
        }
        if length == 0 {
            return Flow::Continue(());
        }
        self.check_addresses(findings)?;
        match taken {
            Taken::Rebuilt => {
                let found = self.at.node.format.text(&[], core::iter::empty());
                tell!(
                    findings,
                    Fate::Copy,
                    LAYOUT,
                    &path,
                    "expected values as libcudf has them, found {found}"
                )
            }
            Taken::AfterALook => {
                let message = "expected no look at device memory";
                tell!(findings, Fate::Wait, LOOK, &path, "{message}, found offsets that end at a value there")
            }
            _ => Flow::Continue(()),
        }
    }

    /// Whether every row is null, whatever a bitmap says.
    fn is_all_null(&self) -> bool {
        let values = self.at.ty.dictionary_index(self.at.index).and_then(|values| self.at.ty.node(values));
        values.unwrap_or(self.at.node).format == Format::Null
    }

    /// Whether nulls among a dictionary's values of this type are still nulls.
    fn keeps_nulls_as_values(&self) -> bool {
        self.at.node.has_dictionary()
            || matches!(
                self.at.node.format,
                Format::Null | Format::Struct | Format::List | Format::FixedSizeList(_)
            )
    }

    /// Lengths and offsets, which a view has in 32 bits.
    fn check_range(&self, findings: &mut Findings<'_, '_>) -> Flow {
        let Facts { length, offset, .. } = self.facts;
        let path = self.at.ty.path(self.at.index);
        if length > MOST {
            return tell!(
                findings,
                Fate::Refuse,
                RANGE,
                &path,
                "expected at most {MOST} values, found {length}"
            );
        }
        let format = self.at.node.format;
        let is_lazy = matches!(format, Format::Bool | Format::Utf8 | Format::LargeUtf8 | Format::Utf8View);
        let is_dictionary = self.at.node.has_dictionary();
        if self.is(Format::Null) || length == 0 && is_lazy && !is_dictionary {
            return Flow::Continue(());
        }
        let end = offset.saturating_add(length);
        let last = match format {
            _ if is_dictionary => end,
            Format::Bool | Format::Utf8View | Format::FixedSizeList(_) => end,
            Format::Utf8 | Format::LargeUtf8 => end.saturating_add(1),
            Format::List if length > 0 => end.saturating_add(1),
            _ => offset,
        };
        if last <= MOST {
            return Flow::Continue(());
        }
        // What does not fit loses its upper bits; libcudf notices where the rest is negative.
        let cut = |value: i64| (value as i32) < 0;
        let is_noticed = match format {
            _ if is_dictionary => cut(offset) || cut(end),
            Format::FixedSizeList(_) => true,
            Format::Bool => !cut(offset) && cut(end),
            Format::Utf8View => false,
            Format::Utf8 | Format::LargeUtf8 | Format::List => cut(offset) || cut(last),
            _ => cut(offset),
        };
        let fate = if is_noticed { Fate::Refuse } else { Fate::Misread };
        let message = format_args!("expected offset and length to end within {MOST}");
        tell!(findings, fate, RANGE, &path, "{message}, found {offset} and {length}")
    }

    /// Addresses, which a kernel loads from as they are.
    fn check_addresses(&self, findings: &mut Findings<'_, '_>) -> Flow {
        for k in 0..self.count {
            let Some(slot) = self.at.node.layout.slot_of(k, self.count) else { continue };
            let address = self.subject.buffer(self.at.index, k);
            let is_bits = slot.role == Role::Validity || slot.role == Role::Data && self.is(Format::Bool);
            let align = if is_bits { WORD } else { self.at.node.format.alignment(&slot) };
            if slot.role == Role::VariadicSizes || address.addr().checked_rem(align).unwrap_or(0) == 0 {
                continue;
            }
            let (path, role) = (self.at.ty.path(self.at.index), role_name(slot.role));
            let message = format_args!("expected {role} at a multiple of {align} bytes");
            tell!(findings, Fate::Crash, ADDRESS, &path, "{message}, found buffer {k} at {address:p}")?;
        }
        Flow::Continue(())
    }

    /// In host memory.
    fn check_copy(&self, findings: &mut Findings<'_, '_>) -> Flow {
        let Facts { length: whole, null_count, .. } = self.facts;
        let path = self.at.ty.path(self.at.index);
        let (length, offset) = self.copied_window();
        // A list or a string has one more offset than rows.
        let most = match self.at.node.format {
            _ if self.at.node.has_dictionary() => MOST,
            Format::Utf8
            | Format::LargeUtf8
            | Format::Utf8View
            | Format::List
            | Format::LargeList
            | Format::FixedSizeList(_) => MOST.saturating_sub(1),
            _ => MOST,
        };
        if length > most {
            return tell!(
                findings,
                Fate::Refuse,
                RANGE,
                &path,
                "expected at most {most} values, found {length}"
            );
        }
        let is_null = self.is(Format::Null);
        if self.is(Format::Utf8View) && null_count == -1 && length > 0 && !self.has_bitmap() {
            let message = "expected a null count of 0 without a bitmap";
            tell!(findings, Fate::Refuse, NULL_COUNT, &path, "{message}, found {null_count}")?;
        }
        if self.at.node.is_dictionary && is_null && whole > 0 {
            tell!(
                findings,
                Fate::Refuse,
                VALUES,
                &path,
                "expected dictionary values without nulls, found {whole}"
            )?;
        }
        if self.at.node.is_dictionary && null_count != 0 && self.has_bitmap() {
            let message = "expected dictionary values without nulls";
            tell!(findings, Fate::Misread, VALUES, &path, "{message}, found a null count of {null_count}")?;
        }
        let reads_offsets = matches!(self.at.node.format, Format::List | Format::LargeList);
        if reads_offsets && self.subject.buffer(self.at.index, 1).is_null() {
            let message = "expected an offset even where there are no values";
            tell!(findings, Fate::Crash, EMPTY, &path, "{message}, found a buffer that is NULL")?;
        }
        if self.is(Format::Bool) && length == 0 && offset & 7 != 0 {
            let message = "expected no values at an offset that is a multiple of 8";
            tell!(findings, Fate::Refuse, EMPTY, &path, "{message}, found none at {offset}")?;
        }
        Flow::Continue(())
    }

    /// Length and offset after all structs above have cut the node to theirs, as the copy does.
    fn copied_window(&self) -> (i64, i64) {
        let Facts { mut length, mut offset, .. } = self.facts;
        let (ty, base) = (self.at.ty, self.at.ty.base());
        let mut node = self.at.node;
        while node.index as usize != base && !node.is_dictionary {
            let above = (node.parent as usize).wrapping_sub(base);
            let Some(parent) = ty.node(above).filter(|parent| parent.format == Format::Struct) else { break };
            if !self.subject.is_whole() || self.target.is_table(ty, above) {
                break;
            }
            let facts = self.subject.facts(above).unwrap_or(Facts::EMPTY);
            length = length.min(facts.length);
            offset = offset.saturating_add(facts.offset);
            node = parent;
        }
        (length, offset)
    }
}
