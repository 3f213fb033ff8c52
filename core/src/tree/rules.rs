//! The structural rules: what can be told of a node without reading a buffer. Import and from_buffers share them.
//!
//! The checks are written for the case that all is well; what went wrong is found out in functions of their own.

use super::{Need, need};
use crate::error::{Failed, Report, Result, Rule, Status};
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

/// A node of a type, and its number there.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The type.
    pub ty: &'a Type,
    /// The node.
    pub node: &'a TypeNode,
    /// The node's number in the type.
    pub index: usize,
}

/// Whether arrays of this format have no nulls of their own: their children have them.
fn counts_no_nulls(format: Format) -> bool {
    matches!(format, Format::DenseUnion | Format::SparseUnion | Format::RunEndEncoded)
}

impl At<'_> {
    /// Checks length, offset and null count, by rules A1 and A2.
    #[inline]
    pub fn check_numbers(&self, facts: &Facts, report: &mut Report<'_>) -> Result<()> {
        let Facts { length, offset, null_count, .. } = *facts;
        let fine = length >= 0
            && offset >= 0
            && offset.checked_add(length).is_some()
            && (-1..=length).contains(&null_count)
            && (null_count <= 0 || !counts_no_nulls(self.node.format));
        if fine { Ok(()) } else { Err(self.wrong_numbers(facts, report)) }
    }

    /// Checks the number of buffers, by rule A3.
    #[inline]
    pub fn check_count(&self, facts: &Facts, report: &mut Report<'_>) -> Result<()> {
        let least = self.least_buffers();
        let more =
            self.node.layout.is_variadic() && facts.n_buffers > least && facts.n_buffers <= MAX_BUFFERS;
        if facts.n_buffers == least || more { Ok(()) } else { Err(self.wrong_count(facts, report)) }
    }

    /// Whether the node has one buffer more than its layout: older producers put a NULL validity buffer in front of a
    /// union's or null array's own.
    #[inline]
    pub fn is_legacy(&self, n_buffers: i64) -> bool {
        matches!(self.node.format, Format::Null | Format::DenseUnion | Format::SparseUnion)
            && n_buffers == self.least_buffers().wrapping_add(1)
    }

    /// The bytes that a buffer has to have as far as the node's own numbers tell, by rule A1.
    #[inline]
    pub fn needed(
        &self,
        slot: &Slot,
        facts: &Facts,
        n_variadic: usize,
        report: &mut Report<'_>,
    ) -> Result<Option<i64>> {
        match need(slot, facts.offset, facts.length, n_variadic) {
            Need::Bytes(bytes) => Ok(Some(bytes)),
            Need::ByOffsets | Need::BySizes => Ok(None),
            Need::Overflow => Err(self.too_large(slot, facts, report)),
        }
    }

    /// Says what is wrong with a buffer that is NULL though it has to have bytes, by rule A5; a validity bitmap has
    /// to be there only when there are nulls.
    #[inline]
    pub fn check_missing(
        &self,
        slot: &Slot,
        place: usize,
        facts: &Facts,
        needed: i64,
        report: &mut Report<'_>,
    ) -> Result<()> {
        if needed == 0 || (slot.role == Role::Validity && facts.null_count <= 0) {
            return Ok(());
        }
        Err(self.missing(slot, place, facts, needed, report))
    }

    /// Checks what the node's children must be for it, by rules B4 and B7. `length` gives the length of any node.
    #[inline]
    pub fn check_children(
        &self,
        facts: &Facts,
        child_facts: impl Fn(usize) -> Facts,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let per_row = match self.node.format {
            Format::Struct | Format::SparseUnion => 1,
            Format::FixedSizeList(size) => i64::from(size),
            Format::RunEndEncoded => return self.check_run_ends(facts, child_facts, report),
            _ => return Ok(()),
        };
        let rows = facts.offset.wrapping_add(facts.length);
        let needed = if per_row == 1 { Some(rows) } else { rows.checked_mul(per_row) };
        let (nodes, base) = (self.ty.nodes(), self.ty.base());
        let mut child = self.index.wrapping_add(1);
        for _ in 0..self.node.n_children {
            let found = child_facts(child).length;
            if needed.is_none_or(|needed| found < needed) {
                return Err(self.short_child(child, facts, per_row, found, report));
            }
            let end = nodes.get(child).map_or(0, |node| node.subtree_end as usize);
            child = end.wrapping_sub(base);
        }
        Ok(())
    }

    #[cold]
    fn check_run_ends(
        &self,
        facts: &Facts,
        child_facts: impl Fn(usize) -> Facts,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let children = (self.ty.child_index(self.index, 0), self.ty.child_index(self.index, 1));
        let (Some(ends), Some(values)) = children else { return Ok(()) };
        let (runs, lengths) = (child_facts(ends), child_facts(values));
        if runs.null_count > 0 {
            let message =
                format_args!("expected run ends without nulls, found a null count of {}", runs.null_count);
            return Err(report.broken(Rule::B7, &self.ty.path(ends), message));
        }
        if runs.length > lengths.length {
            let (expected, found) = (runs.length, lengths.length);
            let message =
                format_args!("expected a value for each of {expected} run ends, found {found} values");
            return Err(report.broken(Rule::B7, &self.ty.path(values), message));
        }
        if facts.length > 0 && runs.length == 0 {
            let (length, offset) = (facts.length, facts.offset);
            let message = format_args!("expected run ends up to {length} + {offset}, found none");
            return Err(report.broken(Rule::B7, &self.ty.path(ends), message));
        }
        Ok(())
    }

    fn least_buffers(&self) -> i64 {
        // A layout has at most three buffers.
        self.node.layout.min_buffers() as i64
    }

    #[cold]
    fn broken(&self, rule: Rule, report: &mut Report<'_>, message: core::fmt::Arguments<'_>) -> Failed {
        report.broken(rule, &self.ty.path(self.index), message)
    }

    #[cold]
    fn wrong_numbers(&self, facts: &Facts, report: &mut Report<'_>) -> Failed {
        let Facts { length, offset, null_count, .. } = *facts;
        if length < 0 {
            return self.broken(
                Rule::A1,
                report,
                format_args!("expected a length of at least 0, found {length}"),
            );
        }
        if offset < 0 {
            return self.broken(
                Rule::A1,
                report,
                format_args!("expected an offset of at least 0, found {offset}"),
            );
        }
        if offset.checked_add(length).is_none() {
            let message = format_args!("expected length + offset within 64 bits, found {length} + {offset}");
            return self.broken(Rule::A1, report, message);
        }
        if !(-1..=length).contains(&null_count) {
            let message =
                format_args!("expected a null count from -1 to the length {length}, found {null_count}");
            return self.broken(Rule::A2, report, message);
        }
        let message = format_args!("expected a null count of 0 for this type, found {null_count}");
        self.broken(Rule::A2, report, message)
    }

    #[cold]
    fn wrong_count(&self, facts: &Facts, report: &mut Report<'_>) -> Failed {
        let (least, found) = (self.least_buffers(), facts.n_buffers);
        let more = if self.node.layout.is_variadic() { " or more" } else { "" };
        self.broken(Rule::A3, report, format_args!("expected {least}{more} buffers, found {found}"))
    }

    #[cold]
    fn too_large(&self, slot: &Slot, facts: &Facts, report: &mut Report<'_>) -> Failed {
        self.broken(
            Rule::A1,
            report,
            format_args!(
                "expected {} of a size that fits in 64 bits, found length {}, offset {} and {} bits a value",
                role_name(slot.role),
                facts.length,
                facts.offset,
                slot.bits
            ),
        )
    }

    #[cold]
    fn missing(
        &self,
        slot: &Slot,
        place: usize,
        facts: &Facts,
        needed: i64,
        report: &mut Report<'_>,
    ) -> Failed {
        let (role, nulls) = (role_name(slot.role), facts.null_count);
        if slot.role == Role::Validity {
            let message = format_args!(
                "expected a validity bitmap for a null count of {nulls}, found NULL in buffer {place}"
            );
            return self.broken(Rule::A5, report, message);
        }
        self.broken(
            Rule::A5,
            report,
            format_args!("expected {needed} bytes of {role} in buffer {place}, found NULL"),
        )
    }

    #[cold]
    fn short_child(
        &self,
        child: usize,
        facts: &Facts,
        per_row: i64,
        found: i64,
        report: &mut Report<'_>,
    ) -> Failed {
        let (length, offset) = (facts.length, facts.offset);
        let message = format_args!(
            "expected at least ({length} + {offset}) x {per_row} values for the parent's length and offset, found {found}"
        );
        report.fail_at(Status::InvalidData, Rule::B4, &self.ty.path(child), message)
    }
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
