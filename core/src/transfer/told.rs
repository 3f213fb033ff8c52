//! Numbers that only buffers tell, read as far as a copy needs them.

use crate::array::Array;
use crate::device::Sync;
use crate::error::{Report, Result, Rule, Status};
use crate::kernels::read_offset;
use crate::memory::reserve;
use crate::tree::Fetch;

/// Two offsets of a node to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub node: usize,
    pub first: usize,
    pub last: usize,
    pub width: usize,
}

/// The offsets that were asked for, and what else is wanted, all under one wait.
pub(super) fn read_ends<'a>(
    array: &Array,
    asked: &[Ends],
    more: Vec<Fetch<'a>>,
    sync: &Sync,
    report: &mut Report<'_>,
) -> Result<Vec<(i64, i64)>> {
    let mut copies = reserve::<[u8; 16]>(asked.len(), report)?;
    copies.resize(asked.len(), [0; 16]);
    let mut wanted = reserve(asked.len().saturating_mul(2).saturating_add(more.len()), report)?;
    wanted.extend(more);
    for (ends, copy) in asked.iter().zip(&mut copies) {
        let (first, last) = copy.split_at_mut(8);
        for (into, at) in [(first, ends.first), (last, ends.last)] {
            let into = into.get_mut(..ends.width).unwrap_or_default();
            let at = at.saturating_mul(ends.width);
            wanted.push(Fetch { node: array.node().saturating_add(ends.node), k: 1, at, into });
        }
    }
    if !wanted.is_empty() {
        array.tree().fetch(sync, &mut wanted, report)?;
    }
    drop(wanted);
    let mut ends = reserve(asked.len(), report)?;
    for (asked, copy) in asked.iter().zip(&copies) {
        let (first, last) = copy.split_at(8);
        ends.push((number(first, asked.width), number(last, asked.width)));
    }
    Ok(ends)
}

fn number(bytes: &[u8], width: usize) -> i64 {
    read_offset(bytes, width).unwrap_or(-1)
}

/// A number that was read and cannot be.
#[cold]
pub(super) fn broken(
    array: &Array,
    node: usize,
    rule: Rule,
    report: &mut Report<'_>,
    message: core::fmt::Arguments<'_>,
) -> crate::error::Failed {
    match array.ty() {
        Some(ty) => report.broken(rule, &ty.path(node), message),
        None => report.fail(Status::InvalidData, message),
    }
}
