//! Null counts: what is known, what can be derived from it, and what the CPU can count.

use super::walk::Span;
use crate::device::Sync;
use crate::error::{Report, Result, Status};
use crate::kernels::count_zeroes;
use crate::memory::Buffer;
use crate::tree::{Array, Fetch};
use crate::types::Format;

/// The number of nulls in part of a node, when that follows from the number in the whole.
pub(crate) fn derived_nulls(whole: i64, length: i64, part: i64) -> i64 {
    match whole {
        _ if part == 0 => 0,
        0 => 0,
        all if all == length => part,
        some if part == length => some,
        _ => -1,
    }
}

/// Counts the nulls of `span`, given a way to read the bytes of its validity bitmap.
pub(super) fn counted_nulls<'a>(
    span: Span,
    read: impl FnOnce(usize, usize) -> Option<&'a [u8]>,
) -> Option<i64> {
    let (offset, length) = (usize::try_from(span.offset).ok()?, usize::try_from(span.length).ok()?);
    let (first, end) = (offset >> 3, offset.checked_add(length)?.div_ceil(8));
    let bytes = read(first, end.checked_sub(first)?)?;
    i64::try_from(count_zeroes(bytes, offset & 7, length)?).ok()
}

impl Array {
    /// The number of nulls in the window.
    ///
    /// It is counted when nobody has done so before, and remembered. With a pending event, `sync` says how to wait.
    pub fn null_count(&self, sync: &Sync, report: &mut Report<'_>) -> Result<i64> {
        sync.mode(report)?;
        let span = Span { offset: self.offset(), length: self.length() };
        let nulls = self.count_if_readable(self.node(), span);
        if nulls >= 0 {
            return Ok(nulls);
        }
        self.count_elsewhere(self.node(), span, sync, report)
    }

    /// The number of nulls that the window shows of a node of the tree, wherever its bitmap is. It is remembered for the
    /// window's own.
    pub(crate) fn nulls_of(&self, node: usize, sync: &Sync, report: &mut Report<'_>) -> Result<i64> {
        match self.span(node) {
            Some(span) => self.count_elsewhere(node, span, sync, report),
            None => Ok(-1),
        }
    }

    /// Counts the nulls of the window where the CPU cannot read them, a piece of the bitmap at a time, and remembers them.
    fn count_elsewhere(&self, node: usize, span: Span, sync: &Sync, report: &mut Report<'_>) -> Result<i64> {
        /// Bytes of a bitmap that are in CPU memory at once.
        const PIECE: usize = 1 << 20;
        let (offset, length) = (usize::try_from(span.offset), usize::try_from(span.length));
        let (Ok(offset), Ok(length)) = (offset, length) else {
            let message = format_args!("expected offset and length of at least 0, found less");
            return Err(report.fail(Status::Internal, message));
        };
        let (first, end) = (offset >> 3, offset.saturating_add(length).div_ceil(8));
        let (mut at, mut nulls) = (first, 0usize);
        let room = end.saturating_sub(first).min(PIECE);
        let mut counted = Ok(());
        let _bitmap = Buffer::filled(room, report, |bytes, report| {
            while at < end && counted.is_ok() {
                let n = end.saturating_sub(at).min(PIECE);
                let into = bytes.get_mut(..n).unwrap_or_default();
                counted = self.tree().fetch(sync, &mut [Fetch { node, k: 0, at, into }], report);
                // Bits of the first and of the last byte may be others'.
                let (start, stop) =
                    (at.saturating_mul(8).max(offset), at.saturating_add(n).saturating_mul(8));
                let rows = stop.min(offset.saturating_add(length)).saturating_sub(start);
                let piece = bytes.get(..n).unwrap_or_default();
                nulls = nulls.saturating_add(count_zeroes(piece, start & 7, rows).unwrap_or(0));
                at = at.saturating_add(n);
            }
            counted
        })?;
        let nulls = i64::try_from(nulls).unwrap_or(-1);
        self.remember(node, span, nulls);
        Ok(nulls)
    }

    /// The number of nulls that the window shows of a node of the tree, -1 when the CPU cannot tell.
    pub(crate) fn shown_nulls(&self, node: usize) -> i64 {
        self.span(node).map_or(-1, |span| self.count_if_readable(node, span))
    }

    /// The number of nulls of `span` of a node as far as nothing has to be read for it, else -1.
    pub(super) fn known_nulls_in(&self, node: usize, span: Span) -> i64 {
        if node == self.node() && self.known_nulls() >= 0 {
            return self.known_nulls();
        }
        if self.tree().ty().node(node).is_some_and(|node| node.format == Format::Null) {
            return span.length;
        }
        let length = self.tree().nodes().get(node).map_or(0, |node| node.length);
        derived_nulls(self.tree().null_count(node), length, span.length)
    }

    /// The number of nulls of `span` of a node, counted and remembered when the CPU may read the bitmap, else -1.
    pub(super) fn count_if_readable(&self, node: usize, span: Span) -> i64 {
        let known = self.known_nulls_in(node, span);
        if known >= 0 {
            return known;
        }
        let Some(nulls) = counted_nulls(span, |at, n| self.tree().host_bytes(node, 0, at, n)) else {
            return -1;
        };
        self.remember(node, span, nulls);
        nulls
    }

    fn remember(&self, node: usize, span: Span, nulls: i64) {
        if node == self.node() {
            self.remember_nulls(nulls);
        }
        let whole = self.tree().nodes().get(node).map(|node| (node.offset, node.length));
        if whole == Some((span.offset, span.length)) {
            self.tree().remember_nulls(node, nulls);
        }
    }
}
