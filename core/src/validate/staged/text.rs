//! Offsets of text and bytes, and the text that they lead to.

use core::ops::Range;

use super::super::contents::Read;
use super::super::parallel::first_bad;
use super::super::strings::{check_ends, data_is_there, data_limit, number, offset_width, text_rows};
use super::{NOTHING, Needed, Staged, Walk, Wanted, rows_within, wanted_of};
use crate::error::{Findings, Flow, Report};
use crate::kernels::{Ascending, Ints, Width, write_offset};
use crate::tree::Fetch;
use crate::types::Role;

impl Walk<'_, '_> {
    pub(super) fn width(&self) -> Width {
        offset_width(self.node.at.node.format)
    }

    /// One offset, that of a row or the one behind the last row; `None` where it is not there or not read.
    fn offset_at(&mut self, row: usize) -> Option<i64> {
        let bits = self.width().bytes().saturating_mul(8);
        let wanted = wanted_of(&self.node, Needed { k: 1, bits, more: 0 }, &(row..row.saturating_add(1)))?;
        self.number_at(wanted)
    }

    fn number_at(&mut self, wanted: Wanted) -> Option<i64> {
        let width = self.width();
        let [piece] = self.reader.stage(&mut self.rooms.rows, [wanted])?;
        number(Ints { bytes: piece.bytes, width, signed: true }, 0)
    }

    /// Reads the first and the last offset and checks them; gives the last.
    pub(super) fn ends(&mut self, limit: i64, of: &str, findings: &mut Findings<'_, '_>) -> Read<i64> {
        let n = self.node.length();
        let (Some(last), Some(first)) = (self.offset_at(n), self.offset_at(0)) else {
            return Read::Continue(None);
        };
        let staged = Staged::new(self.reader.subject, &[]);
        let whole = self.node.part(&staged, 0..n);
        let sound = check_ends(&whole, (first, last), limit, of, findings)?;
        Read::Continue(sound.map(|()| last))
    }

    /// The largest offset that there can be, and what says so.
    fn data_limit(&mut self) -> (i64, &'static str) {
        let (subject, node, width) = (self.reader.subject, self.node, self.width().bytes());
        let whole = subject.whole(node.at.index).filter(|_| !subject.is_whole());
        let end = whole.and_then(|whole| usize::try_from(whole.offset.checked_add(whole.length)?).ok());
        let wanted = end.and_then(|end| {
            Some(Wanted { node: node.at.index, k: 1, at: end.checked_mul(width)?, n: width })
        });
        let pieces = self.reader.stage(&mut self.rooms.rows, [wanted.unwrap_or_default()]);
        let pieces = pieces.unwrap_or([super::NO_PIECE]);
        let staged = Staged::new(subject, &pieces);
        data_limit(&node.part(&staged, 0..node.length()))
    }

    /// Checks the offsets of text or bytes, and text where it is wanted, by rules B1 and B8.
    pub(super) fn text(&mut self, is_text: bool, findings: &mut Findings<'_, '_>) -> Flow {
        let (limit, of) = self.data_limit();
        let Some(last) = self.ends(limit, of, findings)? else { return Flow::Continue(()) };
        let is_there = {
            let staged = Staged::new(self.reader.subject, &[]);
            let whole = self.node.part(&staged, 0..self.node.length());
            data_is_there(&whole, last, findings)?
        };
        if last > 0 && is_there.is_some() && !self.address(2, Role::Data, findings)? {
            return Flow::Continue(());
        }
        let n = usize::try_from(last).unwrap_or(0);
        let data = Wanted { node: self.node.at.index, k: 2, at: 0, n };
        let is_text = is_text && n > 0 && last <= limit && self.reader.is_there(data);
        // Most often all is well, and one walk says so. Else offsets are told of before text is.
        if is_text && self.texts(last, None)?.is_some() {
            return Flow::Continue(());
        }
        let sound = self.ascent(limit, of, findings)?.and(is_there);
        if is_text && sound.is_some() {
            self.texts(last, Some(findings))?;
        }
        Flow::Continue(())
    }

    /// Checks offsets and text together, of which nothing is read behind the last offset: the producer vouches for no more.
    /// Without `findings`, only finds out whether all is well.
    fn texts(&mut self, limit: i64, mut findings: Option<&mut Findings<'_, '_>>) -> Read<()> {
        let (node, n, width) = (self.node, self.node.length(), self.width());
        let has_validity = node.at.node.layout.has_validity() && node.facts().null_count != 0;
        let bits = if has_validity { Needed { k: 0, bits: 1, more: 0 } } else { NOTHING };
        let needed = [bits, Needed { k: 1, bits: width.bytes().saturating_mul(8), more: 1 }];
        let step = rows_within(self.reader.share, &needed);
        let mut start = 0;
        while start < n {
            let rows = start..n.min(start.saturating_add(step));
            start = rows.end;
            let wanted = needed.map(|needed| wanted_of(&node, needed, &rows).unwrap_or_default());
            let Some(pieces) = self.reader.stage(&mut self.rooms.rows, wanted) else {
                return Read::Continue(None);
            };
            let [bitmap, offsets] = pieces;
            let (bitmap, before) = (bitmap.wanted, bitmap.bytes.len());
            let ints = Ints { bytes: offsets.bytes, width, signed: true };
            // Others are told of elsewhere, or were changed since.
            if first_bad(&Ascending { offsets: ints, limit }, 0..rows.len(), node.threads).is_some() {
                return Read::Continue(None);
            }
            let mut done = 0;
            while done < rows.len() {
                let until = self.part_of_text(before, width, done..rows.len());
                let Some((part, start, end)) = until else { return Read::Continue(None) };
                done = part.end;
                let room = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
                let at = usize::try_from(start).unwrap_or(0);
                let most = self.reader.most.saturating_sub(self.reader.share);
                let values = &mut self.rooms.values;
                let read = self.reader.attempt_to_read(|this, report| {
                    let into = values.room(room, most, report)?;
                    this.fetch(&mut [Fetch { node: node.at.index, k: 2, at, into }], report)
                });
                if read.is_none() {
                    return Read::Continue(None);
                }
                let (bits, offsets) =
                    self.rooms.rows.bytes_mut().split_at_mut_checked(before).unwrap_or_default();
                let offsets = elements_mut(offsets, width, part.start..part.end.saturating_add(1));
                shift(offsets, width, start);
                let pieces = [super::Piece { wanted: bitmap, bytes: bits }];
                let staged = Staged::new(self.reader.subject, &pieces);
                let shown = rows.start.saturating_add(part.start)..rows.start.saturating_add(part.end);
                let contents = node.part(&staged, shown);
                let data = self.rooms.values.bytes().get(..room).unwrap_or_default();
                let ints = Ints { bytes: offsets, width, signed: true };
                match &mut findings {
                    Some(findings) => text_rows(&contents, ints, data, findings)?,
                    None => {
                        let told = &mut Report::silent();
                        let mut quiet = Findings::first(told);
                        if text_rows(&contents, ints, data, &mut quiet).is_break() {
                            return Read::Continue(None);
                        }
                    }
                }
                // The next part begins with the last offset of this one.
                let last = elements_mut(offsets, width, part.len()..part.len().saturating_add(1));
                write_offset(last, width.bytes(), end);
                self.reader.settle(&staged);
            }
        }
        Read::Continue(Some(()))
    }

    /// As many of some rows as have room for their text, at least one, and where it begins and ends. The offsets ascend.
    fn part_of_text(
        &self,
        before: usize,
        width: Width,
        rows: Range<usize>,
    ) -> Option<(Range<usize>, i64, i64)> {
        let bytes = self.rooms.rows.bytes().get(before..)?;
        let offsets = Ints { bytes, width, signed: true };
        let room = self.reader.most.saturating_sub(self.reader.share);
        let start = number(offsets, rows.start)?;
        let most = start.saturating_add(i64::try_from(room).unwrap_or(i64::MAX));
        let (mut low, mut high) = (rows.start.saturating_add(1), rows.end);
        // Rows up to `low` are taken, those behind `high` are not.
        while low < high {
            let middle = low.saturating_add(high.saturating_sub(low).div_ceil(2));
            if number(offsets, middle)? <= most {
                low = middle;
            } else {
                high = middle.saturating_sub(1);
            }
        }
        Some((rows.start..low, start, number(offsets, low)?))
    }
}

fn elements_mut(bytes: &mut [u8], width: Width, rows: Range<usize>) -> &mut [u8] {
    let (from, to) = (rows.start.saturating_mul(width.bytes()), rows.end.saturating_mul(width.bytes()));
    bytes.get_mut(from..to).unwrap_or_default()
}

/// Makes offsets count from where the copy of the data begins.
fn shift(offsets: &mut [u8], width: Width, by: i64) {
    if width == Width::W64 {
        for offset in offsets.as_chunks_mut().0 {
            *offset = i64::from_ne_bytes(*offset).wrapping_sub(by).to_ne_bytes();
        }
        return;
    }
    let by = i32::try_from(by).unwrap_or(0);
    for offset in offsets.as_chunks_mut().0 {
        *offset = i32::from_ne_bytes(*offset).wrapping_sub(by).to_ne_bytes();
    }
}
