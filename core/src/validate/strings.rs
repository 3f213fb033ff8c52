//! Binary data and text: offsets, UTF-8, views.

use core::ops::Range;

use super::contents::{Contents, Read};
use super::options::Level;
use super::parallel::first_bad;
use super::subject::Subject;
use crate::error::{Findings, Flow, Rule};
use crate::kernels::{
    Ascending, Buffers, Check, Ints, Strings, Utf8, ViewMode, Views, Width, read_i32, read_i64,
};
use crate::types::Format;

/// The bytes of a view.
pub(super) const VIEW: usize = 16;
/// The longest value that lies in its view.
const INLINE: i32 = 12;

/// The width of the offsets of a format that has them.
pub(super) fn offset_width(format: Format) -> Width {
    match format {
        Format::LargeBinary | Format::LargeUtf8 | Format::LargeList | Format::LargeListView => Width::W64,
        _ => Width::W32,
    }
}

/// The largest offset that there can be, and what says so: how large the data is as somebody stated, or in a window the last
/// offset of the whole array, which is all that its producer vouches for.
pub(super) fn data_limit<S: Subject + ?Sized>(this: &Contents<'_, S>) -> (i64, &'static str) {
    let (subject, node) = (this.subject, this.at.index);
    let stated = subject.stated_size(node, 2);
    if stated >= 0 {
        return (stated, "the data's size of");
    }
    let width = offset_width(this.at.node.format);
    let whole = subject.whole(node).filter(|_| !subject.is_whole());
    let end = whole.and_then(|whole| usize::try_from(whole.offset.checked_add(whole.length)?).ok());
    let at = end.and_then(|end| end.checked_mul(width.bytes()));
    let bytes = at.and_then(|at| subject.bytes(node, 1, at, width.bytes()));
    let last = bytes.and_then(|bytes| number(Ints { bytes, width, signed: true }, 0));
    last.map_or((i64::MAX, ""), |last| (last.max(0), "the whole array's last,"))
}

/// Checks the offsets of binary data, by rule B1; gives the first and the last when all are good.
pub(super) fn offsets<'a, S: Subject + ?Sized>(
    this: &Contents<'a, S>,
    findings: &mut Findings<'_, '_>,
) -> Read<(Ints<'a>, i64)> {
    let (limit, of) = data_limit(this);
    let Some((offsets, last)) = ends(this, limit, of, findings)? else { return Read::Continue(None) };
    let is_there = data_is_there(this, last, findings)?;
    let sound = ascending(this, offsets, limit, of, findings)?.and(is_there);
    Read::Continue(sound.is_some().then_some((offsets, last)))
}

/// Checks that there is data when the last offset says so.
#[inline]
pub(super) fn data_is_there<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    last: i64,
    findings: &mut Findings<'_, '_>,
) -> Read<()> {
    if last <= 0 || !this.subject.buffer(this.at.index, 2).is_null() {
        return Read::Continue(Some(()));
    }
    let message = format_args!("expected {last} bytes of data in buffer 2, found NULL");
    this.broken(Rule::A5, None, message, findings)?;
    Read::Continue(None)
}

/// Reads the offsets that the node shows and checks the first and the last; gives the last.
pub(super) fn ends<'a, S: Subject + ?Sized>(
    this: &Contents<'a, S>,
    limit: i64,
    of: &str,
    findings: &mut Findings<'_, '_>,
) -> Read<(Ints<'a>, i64)> {
    let width = offset_width(this.at.node.format);
    let Some(offsets) = this.ints(1, width, true, 1) else { return Read::Continue(None) };
    let (Some(first), Some(last)) = (number(offsets, 0), number(offsets, this.length())) else {
        return Read::Continue(None);
    };
    let sound = check_ends(this, (first, last), limit, of, findings)?;
    Read::Continue(sound.map(|()| (offsets, last)))
}

/// Checks the first and the last offset where no others are looked at.
#[inline]
pub(super) fn check_ends<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    (first, last): (i64, i64),
    limit: i64,
    of: &str,
    findings: &mut Findings<'_, '_>,
) -> Read<()> {
    let row = this.length().checked_sub(1);
    if this.level == Level::Full {
        // Every offset is looked at, these among them; only what bounds later reads counts here.
        return Read::Continue(Some(()));
    }
    if first < 0 {
        this.broken(
            Rule::B1,
            Some(0),
            format_args!("expected offsets of at least 0, found {first}"),
            findings,
        )?;
    } else if last < first {
        let message = format_args!("expected a last offset of at least the first, {first}, found {last}");
        this.broken(Rule::B1, row, message, findings)?;
    } else if last > limit {
        let message = format_args!("expected a last offset up to {of} {limit}, found {last}");
        this.broken(Rule::B1, row, message, findings)?;
    } else {
        return Read::Continue(Some(()));
    }
    Read::Continue(None)
}

/// Checks every offset; `Some` when all are good.
pub(super) fn ascending<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    offsets: Ints<'_>,
    limit: i64,
    of: &str,
    findings: &mut Findings<'_, '_>,
) -> Read<()> {
    if this.level != Level::Full {
        return Read::Continue(Some(()));
    }
    let mut sound = Some(());
    this.rows(&Ascending { offsets, limit }, this.length(), |row| {
        sound = None;
        let next = row.saturating_add(1);
        let (from, to) = (number(offsets, row).unwrap_or(0), number(offsets, next).unwrap_or(0));
        let message = match () {
            _ if from < 0 => format_args!("expected offsets of at least 0, found {from}"),
            _ if to < from => format_args!("expected an offset of at least {from} after the row, found {to}"),
            _ => format_args!("expected offsets up to {of} {limit}, found {to}"),
        };
        this.broken(Rule::B1, Some(row), message, findings)
    })?;
    Read::Continue(sound)
}

/// Element `i` as a 64-bit number.
pub(super) fn number(ints: Ints<'_>, i: usize) -> Option<i64> {
    ints.get(i).and_then(|n| i64::try_from(n).ok())
}

/// Checks offsets and text, by rules B1 and B8.
pub(super) fn text<S: Subject + ?Sized>(this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
    if is_good_text(this) {
        return Flow::Continue(());
    }
    let Some((offsets, last)) = offsets(this, findings)? else { return Flow::Continue(()) };
    let data = usize::try_from(last).ok().and_then(|n| this.subject.bytes(this.at.index, 2, 0, n));
    let Some(data) = data.filter(|_| this.level == Level::Full) else { return Flow::Continue(()) };
    text_rows(this, offsets, data, findings)
}

/// Checks text whose offsets are good.
pub(super) fn text_rows<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    offsets: Ints<'_>,
    data: &[u8],
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let check = Utf8 { offsets, data, validity: this.validity() };
    this.rows(&check, this.length(), |row| {
        let place = |i: usize| number(offsets, i).and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        let value = data.get(place(row)..place(row.saturating_add(1))).unwrap_or_default();
        not_text(this, row, value, findings)
    })
}

/// Whether offsets and text are good, found out in one walk; false also where that cannot be asked.
fn is_good_text<S: Subject + ?Sized>(this: &Contents<'_, S>) -> bool {
    let width = offset_width(this.at.node.format);
    let offsets = if this.level == Level::Full { this.ints(1, width, true, 1) } else { None };
    let Some(offsets) = offsets else { return false };
    let (limit, _) = data_limit(this);
    let last = number(offsets, this.length()).filter(|last| *last <= limit);
    let data = match last.and_then(|last| usize::try_from(last).ok()) {
        None => None,
        Some(0) => Some(&[][..]),
        Some(n) => this.subject.bytes(this.at.index, 2, 0, n),
    };
    data.is_some_and(|data| {
        let check = Strings { offsets, data, validity: this.validity() };
        first_bad(&check, 0..this.length(), this.threads).is_none()
    })
}

fn not_text<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    row: usize,
    value: &[u8],
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let at = core::str::from_utf8(value).err().map_or(0, |fault| fault.valid_up_to());
    let byte = value.get(at).copied().unwrap_or_default();
    let message = format_args!("expected UTF-8, found byte 0x{byte:02x} at byte {at} of the value");
    this.broken(Rule::B8, Some(row), message, findings)
}

/// The variadic buffers of a node.
pub(super) struct Variadic<'a, S: Subject + ?Sized> {
    subject: &'a S,
    node: usize,
    count: usize,
    /// The producer's word on their sizes.
    sizes: &'a [u8],
}

impl<'a, S: Subject + ?Sized> Variadic<'a, S> {
    #[inline]
    pub(super) fn of(this: &Contents<'a, S>) -> Self {
        let count = this.node.count.saturating_sub(3);
        let sizes = this.node.count.wrapping_sub(1);
        let sizes = count.checked_mul(8).and_then(|n| this.subject.bytes(this.at.index, sizes, 0, n));
        Self { subject: this.subject, node: this.at.index, count, sizes: sizes.unwrap_or_default() }
    }
}

impl<'a, S: Subject + ?Sized> Variadic<'a, S> {
    /// Those of a node whose sizes somebody read already.
    pub(super) fn over(subject: &'a S, node: usize, count: usize, sizes: &'a [u8]) -> Self {
        Self { subject, node, count, sizes }
    }
}

impl<S: Subject + ?Sized> Variadic<'_, S> {
    #[inline]
    pub(super) fn size(&self, i: usize) -> i64 {
        let stated = self.subject.stated_size(self.node, i.saturating_add(2));
        if stated >= 0 {
            return stated;
        }
        i.checked_mul(8).and_then(|at| read_i64(self.sizes, at)).unwrap_or(-1)
    }

    /// Whether one of them is there, as far as numbers and addresses tell.
    fn is_there(&self, i: usize) -> bool {
        let size = self.size(i);
        size == 0 || size > 0 && !self.subject.buffer(self.node, i.saturating_add(2)).is_null()
    }

    /// The bytes of one of them that a long view leads to; `None` when it does not lead to any.
    pub(super) fn range_of(&self, long: View) -> Option<Range<usize>> {
        let which = usize::try_from(long.which).ok().filter(|which| *which < self.count)?;
        let (start, length) = (usize::try_from(long.offset).ok()?, usize::try_from(long.length).ok()?);
        let end = start.checked_add(length)?;
        let is_inside = i64::try_from(end).is_ok_and(|end| end <= self.size(which));
        (is_inside && self.is_there(which)).then_some(start..end)
    }

    /// Checks that their sizes are sizes, and that those are there that have one.
    #[inline]
    pub(super) fn check(&self, this: &Contents<'_, S>, findings: &mut Findings<'_, '_>) -> Flow {
        for i in 0..self.count {
            let size = self.size(i);
            if size < 0 {
                let message =
                    format_args!("expected a size of at least 0 for variadic buffer {i}, found {size}");
                this.broken(Rule::B2, None, message, findings)?;
            } else if size > 0 && self.subject.buffer(self.node, i.saturating_add(2)).is_null() {
                let place = i.saturating_add(2);
                let message =
                    format_args!("expected {size} bytes of variadic data in buffer {place}, found NULL");
                this.broken(Rule::A5, None, message, findings)?;
            }
        }
        Flow::Continue(())
    }
}

impl<S: Subject + ?Sized> Clone for Variadic<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Subject + ?Sized> Copy for Variadic<'_, S> {}

impl<S: Subject + ?Sized> Buffers for Variadic<'_, S> {
    fn count(&self) -> usize {
        self.count
    }

    fn get(&self, i: usize) -> Option<&[u8]> {
        let size = usize::try_from(self.size(i)).ok()?;
        if size == 0 {
            return Some(&[]);
        }
        self.subject.bytes(self.node, i.saturating_add(2), 0, size)
    }
}

/// What a view says; of a short one, only the length means that.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub length: i32,
    pub which: i32,
    pub offset: i32,
}

impl View {
    /// The view of a row.
    pub(super) fn at(views: &[u8], row: usize) -> View {
        let at = row.saturating_mul(VIEW);
        let part = |n: usize| read_i32(views, at.saturating_add(n)).unwrap_or(0);
        View { length: part(0), which: part(8), offset: part(12) }
    }

    /// Whether the value is not in the view itself.
    pub(super) fn is_long(&self) -> bool {
        self.length > INLINE
    }
}

/// Checks views, by rules B2 and B8.
pub(super) fn views<S: Subject + ?Sized>(
    this: &Contents<'_, S>,
    utf8: bool,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let buffers = Variadic::of(this);
    buffers.check(this, findings)?;
    let is_read = this.level == Level::Full && this.length() > 0;
    let views = if is_read { this.elements(1, VIEW, 0) } else { None };
    let Some(views) = views else { return Flow::Continue(()) };
    let check = Views { views, buffers, utf8, validity: this.validity(), mode: ViewMode::Both };
    view_rows(this, &check, views, &buffers, findings)
}

/// Checks the views of rows. Those that are judged may lead to copies of the values; `told` are the producer's, which lead
/// into `buffers`.
pub(super) fn view_rows<S: Subject + ?Sized, B: Buffers + Copy>(
    this: &Contents<'_, S>,
    check: &Views<'_, B>,
    told: &[u8],
    buffers: &Variadic<'_, S>,
    findings: &mut Findings<'_, '_>,
) -> Flow {
    let count = buffers.count;
    this.rows(check, this.length(), |row| {
        let layout = Views { mode: ViewMode::Layout, ..*check };
        if layout.first_bad(row..row.saturating_add(1)).is_none() {
            let view = View::at(check.views, row);
            let at = row.saturating_mul(VIEW);
            let inline = check.views.get(at.saturating_add(4)..at.saturating_add(VIEW)).unwrap_or_default();
            let long = usize::try_from(view.which).ok().and_then(|which| check.buffers.get(which));
            let from = usize::try_from(view.offset).unwrap_or(usize::MAX);
            let long = long.and_then(|all| all.get(from..)).unwrap_or_default();
            let value = if view.is_long() { long } else { inline };
            let n = usize::try_from(view.length).unwrap_or(0);
            return not_text(this, row, value.get(..n).unwrap_or_default(), findings);
        }
        let View { length, which, offset } = View::at(told, row);
        let place = usize::try_from(which).ok().filter(|which| *which < count);
        let size = place.map_or(-1, |which| buffers.size(which));
        let message = match place {
            _ if length < 0 => format_args!("expected a view's length of at least 0, found {length}"),
            _ if length <= INLINE => {
                format_args!("expected zeroes behind the {length} bytes of an inline view, found others")
            }
            None => format_args!("expected a view into one of {count} variadic buffers, found {which}"),
            Some(place) if !buffers.is_there(place) => {
                format_args!("expected a view into a buffer that is there, found variadic buffer {which} missing")
            }
            _ if offset >= 0 && i64::from(offset).saturating_add(i64::from(length)) <= size => {
                format_args!("expected a view's prefix to repeat its first 4 bytes, found others")
            }
            _ => format_args!("expected a view within the {size} bytes of variadic buffer {which}, found {length} bytes at {offset}"),
        };
        this.broken(Rule::B2, Some(row), message, findings)
    })
}
