//! What can be told of a node without reading a buffer.

use super::subject::Subject;
use crate::abi::FLAG_NULLABLE;
use crate::error::{Findings, Flow, Rule, Severity};
use crate::tree::{At, Facts, role_name};
use crate::types::{Format, Role, check_storage};

/// The structure of one node: numbers that were found good, and how many buffers there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Structure {
    pub facts: Facts,
    pub count: usize,
}

impl Structure {
    /// Checks the node's structure; `None` when it is too broken to look at its buffers.
    pub(super) fn check<S: Subject + ?Sized>(
        subject: &S,
        at: &At<'_>,
        findings: &mut Findings<'_, '_>,
    ) -> core::ops::ControlFlow<(), Option<Structure>> {
        let i = at.index;
        let is_there = findings.check(|report| subject.shape(i, report))?;
        let (Some(true), Some(facts)) = (is_there, subject.facts(i)) else {
            return Flow::Continue(()).map_continue(|()| None);
        };
        let numbers = findings.check(|report| at.check_numbers(&facts, report))?;
        let count = findings.check(|report| subject.count(i, report))?;
        let (Some(()), Some(count)) = (numbers, count) else {
            return Flow::Continue(()).map_continue(|()| None);
        };
        let facts = Facts { n_buffers: i64::try_from(count).unwrap_or(i64::MAX), ..facts };
        let node = Structure { facts, count };
        let mut is_sound = true;
        for k in 0..count {
            is_sound &= node.buffer(subject, at, k, findings)?;
        }
        is_sound &= node.children(subject, at, findings)?;
        if findings.is_told() {
            node.advice(subject, at, findings)?;
        }
        Flow::Continue(()).map_continue(|()| is_sound.then_some(node))
    }

    /// Checks that a buffer is there and as large as the node's numbers say.
    fn buffer<S: Subject + ?Sized>(
        &self,
        subject: &S,
        at: &At<'_>,
        k: usize,
        findings: &mut Findings<'_, '_>,
    ) -> core::ops::ControlFlow<(), bool> {
        let Some(slot) = at.node.layout.slot_of(k, self.count) else { return cont(true) };
        let n_variadic = self.count.saturating_sub(at.node.layout.min_buffers());
        let needed = findings.check(|report| at.needed(&slot, &self.facts, n_variadic, report))?;
        let Some(needed) = needed else { return cont(false) };
        let needed = needed.unwrap_or(0);
        if subject.buffer(at.index, k).is_null() {
            // Sizes of variadic buffers that the library derives are in no buffer yet.
            let derived =
                slot.role == Role::VariadicSizes && n_variadic > 0 && subject.stated_size(at.index, 2) >= 0;
            if derived {
                return cont(true);
            }
            let fine = findings.check(|report| at.check_missing(&slot, k, &self.facts, needed, report))?;
            return cont(fine.is_some());
        }
        let stated = subject.stated_size(at.index, k);
        let is_optional =
            slot.role == Role::VariadicSizes || slot.role == Role::Validity && self.facts.null_count == 0;
        if stated >= 0 && stated < needed && !is_optional {
            let role = role_name(slot.role);
            let message =
                format_args!("expected at least {needed} bytes of {role} in buffer {k}, found {stated}");
            findings.broken(Rule::A4, &at.ty.path(at.index), -1, message)?;
            return cont(false);
        }
        cont(true)
    }

    /// Checks what the node wants of its children, when all of them are there.
    fn children<S: Subject + ?Sized>(
        &self,
        subject: &S,
        at: &At<'_>,
        findings: &mut Findings<'_, '_>,
    ) -> core::ops::ControlFlow<(), bool> {
        let mut below = at
            .ty
            .children_of(at.node)
            .iter()
            .map(|child| subject.facts((*child as usize).wrapping_sub(at.ty.base())));
        if !subject.is_whole() || below.any(|facts| facts.is_none_or(|facts| facts.length < 0)) {
            return cont(true);
        }
        let facts_of = |i: usize| subject.facts(i).unwrap_or(Facts::EMPTY);
        let fine = findings.check(|report| at.check_children(&self.facts, facts_of, report))?;
        cont(fine.is_some())
    }

    /// What is legal but not recommended.
    fn advice<S: Subject + ?Sized>(&self, subject: &S, at: &At<'_>, findings: &mut Findings<'_, '_>) -> Flow {
        let path = at.ty.path(at.index);
        for k in 0..self.count {
            let Some(slot) = at.node.layout.slot_of(k, self.count) else { continue };
            let (address, role) = (subject.buffer(at.index, k), role_name(slot.role));
            let align = at.node.format.alignment(&slot);
            if address.addr().checked_rem(align).unwrap_or(0) != 0 {
                let message = format_args!(
                    "expected {role} at a multiple of {align} bytes, found buffer {k} at {address:p}"
                );
                findings.broken(Rule::A6, &path, -1, message)?;
            }
            let stated = subject.stated_size(at.index, k);
            if stated > 0 && stated & 7 != 0 && !address.is_null() {
                let message = format_args!(
                    "expected {role} padded to a multiple of 8 bytes, found {stated} bytes in buffer {k}"
                );
                findings.broken(Rule::A6, &path, -1, message)?;
            }
        }
        let Facts { length, null_count, .. } = self.facts;
        if at.node.format == Format::Null && null_count != -1 && null_count != length {
            let message =
                format_args!("expected a null count of {length}, as every value is null, found {null_count}");
            findings.consumer(Severity::Warning, Rule::A8, &path, message)?;
        }
        let is_field = at.index != 0 && !at.node.is_dictionary;
        if is_field && at.node.flags & FLAG_NULLABLE == 0 && null_count > 0 {
            let message =
                format_args!("expected no nulls in a field that is not nullable, found {null_count}");
            findings.broken(Rule::S4, &path, -1, message)?;
        }
        if let Some(metadata) = at.ty.metadata(at.index) {
            let item = at.ty.child_index(at.index, 0).and_then(|i| at.ty.node(i)).map(|node| node.format);
            check_storage(metadata, at.node.format, item, &path, findings)?;
        }
        Flow::Continue(())
    }
}

fn cont<T>(value: T) -> core::ops::ControlFlow<(), T> {
    core::ops::ControlFlow::Continue(value)
}
