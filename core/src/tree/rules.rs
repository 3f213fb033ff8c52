//! The structural rules: what can be told of a node without reading a buffer. Import and from_buffers share them.

use core::ffi::c_void;

use super::{Need, need};
use crate::error::{Failed, Report, Result, Rule};
use crate::types::{Format, Role, Slot, Type, TypeNode};

/// The numbers of one node, as `ArrowArray` has them. The layout is frozen.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Number of logical values.
    pub length: i64,
    /// Number of nulls, -1 when not computed.
    pub null_count: i64,
    /// Physical index of the first value.
    pub offset: i64,
    /// Number of buffers.
    pub n_buffers: i64,
}

impl Facts {
    /// No values and no buffers.
    ///
    /// cbindgen:ignore
    pub const EMPTY: Facts = Facts { length: 0, null_count: 0, offset: 0, n_buffers: 0 };
}

/// The most buffers that a node may have: a view names its buffer by a 32-bit index.
const MAX_BUFFERS: i64 = (1 << 31) + 3;

/// Checks one node against rules A1 to A5 and A8, and returns how many leading buffers to pass over.
///
/// `lenient` accepts what older producers emit: a NULL validity buffer in front of a union's or null array's own.
pub fn check_node(
    ty: &Type,
    index: usize,
    facts: &Facts,
    lenient: bool,
    buffer: impl Fn(usize) -> *const c_void,
    report: &mut Report<'_>,
) -> Result<usize> {
    let at = At { ty, index };
    let Some(node) = ty.node(index) else { return Err(at.internal(report)) };
    check_numbers(&at, node, facts, report)?;
    let skip = check_count(&at, node, facts, lenient, &buffer, report)?;
    let count = usize::try_from(facts.n_buffers).unwrap_or(0).saturating_sub(skip);
    let slots = node.layout.slots();
    let n_variadic = count.saturating_sub(slots.len());
    for (k, slot) in slots.iter().enumerate() {
        // A view's last slot comes after its variadic buffers.
        let place = if slot.role == Role::VariadicSizes { count.saturating_sub(1) } else { k };
        let needed = match need(slot, facts.offset, facts.length, n_variadic) {
            Need::Overflow => return Err(at.too_large(slot, facts, report)),
            Need::Bytes(bytes) => bytes,
            Need::ByOffsets | Need::BySizes => 0,
        };
        if needed > 0 && buffer(place.saturating_add(skip)).is_null() {
            check_missing(&at, slot, place, facts, needed, lenient, report)?;
        }
    }
    Ok(skip)
}

/// Checks what a node's children must be for it, by rules B4 and B7. `facts` gives the numbers of any node.
pub fn check_links(ty: &Type, facts: impl Fn(usize) -> Facts, report: &mut Report<'_>) -> Result<()> {
    for (index, node) in ty.nodes().iter().enumerate() {
        let per_row = match node.format {
            Format::Struct | Format::SparseUnion => 1,
            Format::FixedSizeList(size) => i64::from(size),
            Format::RunEndEncoded => {
                check_run_ends(ty, index, &facts, report)?;
                continue;
            }
            _ => continue,
        };
        let own = facts(index);
        let needed = own.offset.checked_add(own.length).and_then(|rows| rows.checked_mul(per_row));
        let n_children = usize::try_from(node.n_children).unwrap_or(0);
        for child in (0..n_children).filter_map(|i| ty.child_index(index, i)) {
            let found = facts(child).length;
            if needed.is_none_or(|needed| found < needed) {
                return Err(report.broken(
                    Rule::B4,
                    &ty.path(child),
                    format_args!(
                        "expected at least ({} + {}) x {per_row} values for the parent's length and offset, found {found}",
                        own.length, own.offset
                    ),
                ));
            }
        }
    }
    Ok(())
}

fn check_run_ends(
    ty: &Type,
    index: usize,
    facts: &impl Fn(usize) -> Facts,
    report: &mut Report<'_>,
) -> Result<()> {
    let (Some(ends), Some(values)) = (ty.child_index(index, 0), ty.child_index(index, 1)) else {
        return Ok(());
    };
    let (own, runs, lengths) = (facts(index), facts(ends), facts(values));
    if runs.null_count > 0 {
        return Err(report.broken(
            Rule::B7,
            &ty.path(ends),
            format_args!("expected run ends without nulls, found a null count of {}", runs.null_count),
        ));
    }
    if runs.length > lengths.length {
        return Err(report.broken(
            Rule::B7,
            &ty.path(values),
            format_args!(
                "expected a value for each of {} run ends, found {} values",
                runs.length, lengths.length
            ),
        ));
    }
    if own.length > 0 && runs.length == 0 {
        return Err(report.broken(
            Rule::B7,
            &ty.path(ends),
            format_args!("expected run ends up to {} + {}, found none", own.length, own.offset),
        ));
    }
    Ok(())
}

/// The node that a fault is at.
struct At<'a> {
    ty: &'a Type,
    index: usize,
}

impl At<'_> {
    #[cold]
    fn broken(&self, rule: Rule, report: &mut Report<'_>, message: core::fmt::Arguments<'_>) -> Failed {
        report.broken(rule, &self.ty.path(self.index), message)
    }

    #[cold]
    fn internal(&self, report: &mut Report<'_>) -> Failed {
        let status = crate::error::Status::Internal;
        report.fail(status, format_args!("expected a node {} in the type, found none", self.index))
    }

    #[cold]
    fn too_large(&self, slot: &Slot, facts: &Facts, report: &mut Report<'_>) -> Failed {
        self.broken(
            Rule::A1,
            report,
            format_args!(
                "expected a {} buffer whose size fits in 64 bits, found length {}, offset {} and {} bits a value",
                role_name(slot.role),
                facts.length,
                facts.offset,
                slot.bits
            ),
        )
    }
}

fn check_numbers(at: &At<'_>, node: &TypeNode, facts: &Facts, report: &mut Report<'_>) -> Result<()> {
    let Facts { length, offset, null_count, .. } = *facts;
    if length < 0 {
        return Err(at.broken(
            Rule::A1,
            report,
            format_args!("expected a length of at least 0, found {length}"),
        ));
    }
    if offset < 0 {
        return Err(at.broken(
            Rule::A1,
            report,
            format_args!("expected an offset of at least 0, found {offset}"),
        ));
    }
    if offset.checked_add(length).is_none() {
        let message = format_args!("expected length + offset within 64 bits, found {length} + {offset}");
        return Err(at.broken(Rule::A1, report, message));
    }
    if null_count < -1 || null_count > length {
        let message =
            format_args!("expected a null count from -1 to the length {length}, found {null_count}");
        return Err(at.broken(Rule::A2, report, message));
    }
    if null_count > 0 && counts_no_nulls(node.format) {
        let message = format_args!("expected a null count of 0 for this type, found {null_count}");
        return Err(at.broken(Rule::A2, report, message));
    }
    Ok(())
}

/// Whether arrays of this format have no nulls of their own: their children have them.
pub(crate) fn counts_no_nulls(format: Format) -> bool {
    matches!(format, Format::DenseUnion | Format::SparseUnion | Format::RunEndEncoded)
}

fn check_count(
    at: &At<'_>,
    node: &TypeNode,
    facts: &Facts,
    lenient: bool,
    buffer: &impl Fn(usize) -> *const c_void,
    report: &mut Report<'_>,
) -> Result<usize> {
    let least = i64::try_from(node.layout.min_buffers()).unwrap_or(i64::MAX);
    let found = facts.n_buffers;
    let variadic = node.layout.is_variadic();
    if found == least || (variadic && found > least && found <= MAX_BUFFERS) {
        return Ok(0);
    }
    let legacy = lenient && matches!(node.format, Format::Null | Format::DenseUnion | Format::SparseUnion);
    if legacy && found == least.saturating_add(1) {
        if buffer(0).is_null() {
            return Ok(1);
        }
        let message = format_args!("expected no validity bitmap for this type, found one at {:p}", buffer(0));
        return Err(at.broken(Rule::A8, report, message));
    }
    let more = if variadic { " or more" } else { "" };
    Err(at.broken(Rule::A3, report, format_args!("expected {least}{more} buffers, found {found}")))
}

fn check_missing(
    at: &At<'_>,
    slot: &Slot,
    place: usize,
    facts: &Facts,
    needed: i64,
    lenient: bool,
    report: &mut Report<'_>,
) -> Result<()> {
    if slot.role == Role::Validity {
        if facts.null_count <= 0 {
            return Ok(());
        }
        let message = format_args!(
            "expected a validity bitmap for a null count of {}, found NULL in buffer {place}",
            facts.null_count
        );
        return Err(at.broken(Rule::A5, report, message));
    }
    // A producer that hands over buffers may leave the sizes of the variadic ones to the library.
    if slot.role == Role::VariadicSizes && !lenient {
        return Ok(());
    }
    let message =
        format_args!("expected {needed} bytes of {} in buffer {place}, found NULL", role_name(slot.role));
    Err(at.broken(Rule::A5, report, message))
}

/// The role as text.
pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Validity => "validity",
        Role::Offsets => "offsets",
        Role::Sizes => "sizes",
        Role::TypeIds => "type_ids",
        Role::Views => "views",
        Role::Data => "data",
        Role::Variadic => "variadic",
        Role::VariadicSizes => "variadic_sizes",
    }
}
