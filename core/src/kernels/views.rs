//! Views of text and bytes: short values inside the view, long ones in other buffers.

use core::ops::Range;

use super::bits::{Bitmap, is_valid};
use super::isa::{Isa, for_each_isa};
use super::rows::{BLOCK, Check, first_bad_by};
use super::text::{all_ascii, is_utf8};

/// The buffers that long views point into.
pub trait Buffers: Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// One of them, or `None` when it cannot be read; a view that needs it is bad then.
    fn get(&self, i: usize) -> Option<&[u8]>;
}

impl Buffers for &[&[u8]] {
    fn count(&self) -> usize {
        self.len()
    }

    fn get(&self, i: usize) -> Option<&[u8]> {
        <[&[u8]]>::get(self, i).copied()
    }
}

/// Which rules are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewMode {
    /// That lengths are not negative, padding is zero, and a long value is where the view says, with its prefix.
    Layout,
    /// That text is UTF-8, and where it can be read.
    Text,
    /// Both.
    Both,
}

/// Views. A row is bad when it is valid and breaks a rule of the mode.
#[derive(Clone, Copy, Debug)]
pub struct Views<'a, B: Buffers> {
    /// 16 bytes for each row.
    pub views: &'a [u8],
    /// What long views point into.
    pub buffers: B,
    /// Whether the values are text; if not, nothing is asked of their bytes.
    pub utf8: bool,
    /// Which rows are valid; all of them without it.
    pub validity: Option<Bitmap<'a>>,
    /// Which rules are checked.
    pub mode: ViewMode,
}

impl<B: Buffers> Check for Views<'_, B> {
    fn first_bad(&self, rows: Range<usize>) -> Option<usize> {
        self.first_bad_on(Isa::best(), rows)
    }
}

/// Views that are checked together: they and the places of the long ones stay in the first-level caches and near them.
const TOGETHER: usize = BLOCK >> 2;

/// The longest value inside a view.
const INLINE: usize = 12;

/// A view's words: its length, and then what a long view says; a short one has its bytes there.
type View = [[u8; 4]; 4];

/// A long view, taken apart.
#[derive(Clone, Copy)]
struct Long {
    length: u32,
    prefix: u32,
    index: u32,
    offset: u32,
}

#[inline(always)]
const fn length(view: &View) -> u32 {
    let [length, ..] = *view;
    u32::from_ne_bytes(length)
}

#[inline(always)]
fn long(view: &View) -> Long {
    let [length, prefix, index, offset] = view.map(u32::from_ne_bytes);
    Long { length, prefix, index, offset }
}

impl Long {
    /// Where the value is, unless a number is negative.
    #[inline(always)]
    fn place(self) -> Option<Range<usize>> {
        let start = self.offset as usize;
        let end = start.checked_add(self.length as usize)?;
        ((self.length | self.index | self.offset) < 1 << 31).then_some(start..end)
    }
}

impl<B: Buffers> Views<'_, B> {
    fn first_bad_on(&self, isa: Isa, rows: Range<usize>) -> Option<usize> {
        let views = self.views.as_chunks::<4>().0.as_chunks::<4>().0;
        let holds = |rows| views.get(rows).is_some_and(|views| self.hold(isa, views));
        let is_bad = |row| {
            let broken = |view: &View| match self.mode {
                ViewMode::Layout => self.breaks_layout(view),
                ViewMode::Text => self.breaks_text(view),
                ViewMode::Both => self.breaks_layout(view) || self.breaks_text(view),
            };
            views.get(row).is_none_or(broken) && is_valid(self.validity, row)
        };
        first_bad_by(TOGETHER, rows, views.len(), holds, is_bad)
    }

    /// The bytes of a value, or `None` when they are not there.
    fn value<'b>(&'b self, view: &'b View) -> Option<&'b [u8]> {
        let length = length(view) as usize;
        if length <= INLINE {
            return view.as_flattened().get(4..)?.get(..length);
        }
        let long = long(view);
        self.buffers.get(self.index(long)?)?.get(long.place()?)
    }

    fn index(&self, long: Long) -> Option<usize> {
        let index = long.index as usize;
        (index < self.buffers.count()).then_some(index)
    }

    fn breaks_layout(&self, view: &View) -> bool {
        let Some(value) = self.value(view) else { return true };
        match value.len() <= INLINE {
            true => view.as_flattened().iter().skip(value.len().saturating_add(4)).any(|byte| *byte != 0),
            false => first_word(value) != Some(long(view).prefix),
        }
    }

    fn breaks_text(&self, view: &View) -> bool {
        self.utf8 && !self.value(view).is_some_and(is_utf8)
    }

    /// Whether all of at most a block of views are known to keep the rules.
    fn hold(&self, isa: Isa, views: &[View]) -> bool {
        let mut places = [0; TOGETHER];
        let Some((count, inline_ascii)) = inline(isa, views, &mut places) else { return false };
        let places = places.get(..count).unwrap_or_default();
        let Some(long_ascii) = in_place(isa, views, places, &self.buffers) else { return false };
        let text = self.utf8 && self.mode != ViewMode::Layout;
        !text || (inline_ascii && long_ascii) || views.iter().all(|view| !self.breaks_text(view))
    }
}

/// By length, the bits of each word that must be zero, and those that are set in text that is not ASCII. None of either
/// for a long view, which has the row after those of the short ones.
static SHORT: [[[u32; 4]; 2]; INLINE + 2] = {
    let mut table = [[[0; 4]; 2]; INLINE + 2];
    let mut rest: &mut [[[u32; 4]; 2]] = &mut table;
    let mut length = 0_usize;
    while let Some((row, tail)) = rest.split_first_mut()
        && !tail.is_empty()
    {
        let [a, b, c] = [
            first_bytes(length),
            first_bytes(length.saturating_sub(4)),
            first_bytes(length.saturating_sub(8)),
        ];
        *row = [[0, !a, !b, !c], [0, a & HIGH, b & HIGH, c & HIGH]];
        length = length.wrapping_add(1);
        rest = tail;
    }
    table
};

/// The high bit of every byte.
const HIGH: u32 = 0x8080_8080;

/// A word whose first bytes have all bits.
const fn first_bytes(bytes: usize) -> u32 {
    match bytes {
        0..4 => u32::from_le(!(u32::MAX << bytes.wrapping_mul(8))),
        _ => u32::MAX,
    }
}

for_each_isa! {
    /// The places of the long views, how many these are, and whether the text of the others is ASCII; `None` when the
    /// padding of one of those is not zero. Lengths come in no order, so nothing here depends on a guess.
    fn inline(views: &[View], places: &mut [u16; TOGETHER]) -> Option<(usize, bool)> {
        let (mut count, mut padding, mut high) = (0_usize, Bits::NONE, Bits::NONE);
        for (place, view) in (0_u16..).zip(views) {
            let length = length(view) as usize;
            let [zero, not_ascii] = SHORT.get(length.min(INLINE + 1))?;
            padding = padding.with(view, zero);
            high = high.with(view, not_ascii);
            *places.get_mut(count)? = place;
            count = count.wrapping_add(usize::from(length > INLINE));
        }
        padding.is_none().then_some((count, high.is_none()))
    }
}

/// Bits of a view's words. As a vector by name, because the compiler takes words that are known to have no bits apart.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Bits(core::arch::x86_64::__m128i);

#[cfg(target_arch = "x86_64")]
impl Bits {
    // SAFETY: any bits are a vector's.
    const NONE: Self = Self(unsafe { core::mem::transmute::<[u32; 4], core::arch::x86_64::__m128i>([0; 4]) });

    /// These and those of a view that a mask has.
    #[inline(always)]
    fn with(self, view: &View, mask: &[u32; 4]) -> Self {
        use core::arch::x86_64::*;
        // SAFETY: 16 bytes are read of 16, at any address, by what every processor of the kind has.
        unsafe {
            let view = _mm_loadu_si128(view.as_ptr().cast());
            let mask = _mm_loadu_si128(mask.as_ptr().cast());
            Self(_mm_or_si128(self.0, _mm_and_si128(view, mask)))
        }
    }

    #[inline(always)]
    fn is_none(self) -> bool {
        // SAFETY: a vector has as many bits.
        unsafe { core::mem::transmute::<core::arch::x86_64::__m128i, [u32; 4]>(self.0) == [0; 4] }
    }
}

/// Bits of a view's words.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
struct Bits([u32; 4]);

#[cfg(not(target_arch = "x86_64"))]
impl Bits {
    const NONE: Self = Self([0; 4]);

    /// These and those of a view that a mask has.
    #[inline(always)]
    fn with(self, view: &View, mask: &[u32; 4]) -> Self {
        let Self([a, b, c, d]) = self;
        let ([e, f, g, h], [i, j, k, l]) = (view.map(u32::from_ne_bytes), *mask);
        Self([a | e & i, b | f & j, c | g & k, d | h & l])
    }

    #[inline(always)]
    fn is_none(self) -> bool {
        self.0 == [0; 4]
    }
}

/// The bytes of a long value that are looked at together.
const SPAN: usize = 32;

/// By length, the high bits of so many bytes.
static HIGH_BITS: [[u32; SPAN / 4]; SPAN + 1] = {
    let mut table = [[0; SPAN / 4]; SPAN + 1];
    let mut rest: &mut [[u32; SPAN / 4]] = &mut table;
    let mut length = 0_usize;
    while let Some((row, tail)) = rest.split_first_mut() {
        let mut left = length;
        let mut words: &mut [u32] = row;
        while let Some((word, more)) = words.split_first_mut() {
            *word = first_bytes(left) & HIGH;
            left = left.saturating_sub(4);
            words = more;
        }
        length = length.wrapping_add(1);
        rest = tail;
    }
    table
};

#[inline(always)]
fn first_word(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

for_each_isa! {
    /// Whether the text of long views is ASCII, or `None` when one is not in its place.
    fn in_place<B: Buffers>(views: &[View], places: &[u16], buffers: &B) -> Option<bool> {
        let count = buffers.count();
        let mut buffer: &[u8] = &[];
        let mut index = u32::MAX;
        let mut seen = [0; SPAN / 4];
        let mut differ = 0;
        for place in places {
            let long = long(views.get(usize::from(*place))?);
            if long.index != index {
                index = long.index;
                buffer = if (index as usize) < count { buffers.get(index as usize)? } else { return None };
            }
            let place = long.place()?;
            let value = buffer.get(place.start..)?;
            match (value.first_chunk::<SPAN>(), HIGH_BITS.get(long.length as usize)) {
                (Some(value), Some(mask)) => {
                    differ |= first_word(value)? ^ long.prefix;
                    let words = value.as_chunks::<4>().0.first_chunk::<{ SPAN / 4 }>()?;
                    let [a, b, c, d, e, f, g, h] = words.map(u32::from_ne_bytes);
                    let [ma, mb, mc, md, me, mf, mg, mh] = mask;
                    let [sa, sb, sc, sd, se, sf, sg, sh] = seen;
                    seen = [
                        sa | a & ma,
                        sb | b & mb,
                        sc | c & mc,
                        sd | d & md,
                        se | e & me,
                        sf | f & mf,
                        sg | g & mg,
                        sh | h & mh,
                    ];
                }
                // Longer, or near the end of the buffer.
                _ => {
                    let value = value.get(..place.len())?;
                    differ |= first_word(value)? ^ long.prefix;
                    if !all_ascii(value) {
                        seen = [HIGH; SPAN / 4];
                    }
                }
            }
        }
        (differ == 0).then_some(seen == [0; SPAN / 4])
    }
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    reason = "tests may fail hard"
)]
mod tests {
    use super::super::testing::{Random, agree, everywhere, guarded};
    use super::*;

    fn short(text: &[u8]) -> [u8; 16] {
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(text.len() as i32).to_ne_bytes());
        view[4..4 + text.len()].copy_from_slice(text);
        view
    }

    fn far(length: i32, prefix: &[u8], index: i32, offset: i32) -> [u8; 16] {
        let mut view = [0; 16];
        view[..4].copy_from_slice(&length.to_ne_bytes());
        view[4..8].copy_from_slice(&prefix[..4]);
        view[8..12].copy_from_slice(&index.to_ne_bytes());
        view[12..].copy_from_slice(&offset.to_ne_bytes());
        view
    }

    /// Whether the layout is broken, and whether the text is, by the words of the format.
    fn faults(view: &[u8], buffers: &[&[u8]]) -> (bool, bool) {
        let number = |at: usize| i32::from_ne_bytes(view[at..at + 4].try_into().unwrap());
        let length = number(0);
        if length < 0 {
            return (true, true);
        }
        let length = length as usize;
        if length <= 12 {
            let text = &view[4..4 + length];
            return (view[4 + length..].iter().any(|b| *b != 0), core::str::from_utf8(text).is_err());
        }
        let (index, offset) = (number(8), number(12));
        if index < 0 || offset < 0 || index as usize >= buffers.len() {
            return (true, true);
        }
        let Some(text) = buffers[index as usize].get(offset as usize..offset as usize + length) else {
            return (true, true);
        };
        (text[..4] != view[4..8], core::str::from_utf8(text).is_err())
    }

    fn compare(views: &[u8], buffers: &[&[u8]], validity: Option<Bitmap<'_>>) {
        let rows = views.len() / 16;
        let all: Vec<(bool, bool)> = views.chunks_exact(16).map(|view| faults(view, buffers)).collect();
        for (mode, utf8) in [
            (ViewMode::Both, true),
            (ViewMode::Both, false),
            (ViewMode::Layout, true),
            (ViewMode::Text, true),
            (ViewMode::Text, false),
        ] {
            let is_bad = |row: usize| {
                let Some((layout, text)) = all.get(row) else { return true };
                let bad = (*layout && mode != ViewMode::Text) || (*text && utf8 && mode != ViewMode::Layout);
                bad && validity.is_none_or(|bits| bits.get(row))
            };
            let check = Views { views, buffers, utf8, validity, mode };
            agree(rows, |isa, rows| check.first_bad_on(isa, rows), is_bad);
        }
    }

    #[test]
    fn every_length_and_every_byte_of_a_short_view_counts() {
        let letters = "abcdefghijkl".as_bytes();
        for length in 0..=12 {
            for place in 0..16 {
                for byte in [0, 1, 0x7F, 0x80, 0xC3, 0xFF] {
                    let mut views = [short(b""), short(&letters[..length]), short(b"end")].concat();
                    views[16 + place] = byte;
                    compare(&views, &[], None);
                }
            }
        }
        let euro = "€".as_bytes();
        for cut in 0..=3 {
            compare(&[short(&euro[..cut]), short(&euro[cut..])].concat(), &[], None);
        }
    }

    #[test]
    fn long_views_stay_in_their_buffers() {
        let text = "The quick brown fox jumps over the lazy dog, and again.".as_bytes();
        let size = text.len() as i32;
        guarded(text, |text| {
            let buffers: &[&[u8]] = &[text, b"", b"aaaaaaaaaaaaa"];
            let numbers = [-1, 0, 1, 2, 3, 12, 13, size - 13, size - 12, size, size + 1, i32::MAX, i32::MIN];
            for length in [13, 14, 31, 32, 33, size - 1, size, size + 1, i32::MAX, i32::MIN, -1] {
                for index in [0, 1, 2, 3, -1, i32::MAX, i32::MIN] {
                    for offset in numbers {
                        let prefix = usize::try_from(offset).ok().and_then(|at| text.get(at..at + 4));
                        for prefix in [prefix.unwrap_or(b"aaaa"), b"aaaa"] {
                            compare(&far(length, prefix, index, offset), buffers, None);
                        }
                    }
                }
            }
        });
    }

    #[test]
    fn every_byte_of_a_long_value_counts() {
        for length in [13, 14, 19, 31, 32, 33, 40, 64, 67] {
            for at in 0..length {
                for byte in [0x80, 0xC3, b'x'] {
                    for room in [0, 1, 40] {
                        let mut text = vec![b'a'; length + room];
                        text[at] = byte;
                        let views = [short(b"abc"), far(length as i32, b"aaaa", 0, 0), short(b"")].concat();
                        guarded(&text, |text| {
                            for isa in Isa::all() {
                                let check = |mode| {
                                    let buffers: &[&[u8]] = &[text];
                                    let check =
                                        Views { views: &views, buffers, utf8: true, validity: None, mode };
                                    check.first_bad_on(isa, 0..3)
                                };
                                let layout = (at < 4).then_some(1);
                                assert_eq!(check(ViewMode::Layout), layout);
                                assert_eq!(check(ViewMode::Text), (byte >= 0x80).then_some(1));
                                assert_eq!(check(ViewMode::Both), layout.or((byte >= 0x80).then_some(1)));
                            }
                        });
                    }
                }
            }
        }
    }

    /// Views of random text, ASCII or not, in two buffers.
    fn random_views(random: &mut Random, rows: usize, ascii: bool) -> (Vec<u8>, [Vec<u8>; 2]) {
        let mut buffers = [Vec::new(), Vec::new()];
        let mut views = Vec::new();
        for _ in 0..rows {
            let mut text = String::new();
            for _ in 0..random.below(20) {
                let start = if ascii || random.below(3) > 0 { 0x20 } else { 0x20AC };
                text.push(char::from_u32(start + random.below(60) as u32).unwrap_or('?'));
            }
            let text = text.as_bytes();
            if text.len() <= INLINE {
                views.extend(short(text));
            } else {
                let index = random.below(2) as usize;
                views.extend(far(text.len() as i32, text, index as i32, buffers[index].len() as i32));
                buffers[index].extend(text);
            }
        }
        (views, buffers)
    }

    #[test]
    fn random_views_agree_with_one_at_a_time() {
        let mut random = Random::new(14);
        for rows in [0, 1, 2, 9, 65, 130, BLOCK + 70] {
            for ascii in [true, false] {
                let (good, texts) = random_views(&mut random, rows, ascii);
                let bits: Vec<u8> = (0..rows / 8 + 2).map(|_| random.next() as u8).collect();
                for change in 0..if rows > BLOCK { 4 } else { 8 } {
                    let (mut views, mut texts) = (good.clone(), texts.clone());
                    for _ in 0..change / 2 {
                        let at = random.below(views.len().max(1) as u64) as usize;
                        if let Some(byte) = views.get_mut(at) {
                            *byte ^= 1 << random.below(8);
                        }
                    }
                    let at = random.below(texts[0].len().max(1) as u64) as usize;
                    match (change % 3, texts[0].get_mut(at)) {
                        (1, Some(byte)) => *byte = random.next() as u8,
                        (2, _) => texts[1].truncate(at),
                        _ => {}
                    }
                    guarded(&views, |views| {
                        guarded(&texts[0], |first| {
                            guarded(&texts[1], |second| {
                                compare(views, &[first, second], None);
                                compare(views, &[first, second], Bitmap::new(&bits, 3, rows));
                            });
                        });
                    });
                }
            }
        }
    }

    #[test]
    fn views_are_read_at_every_address() {
        let mut random = Random::new(15);
        let (mut views, texts) = random_views(&mut random, 70, true);
        let buffers: &[&[u8]] = &[&texts[0], &texts[1]];
        for bad in [None, Some(69), Some(3), Some(40)] {
            if let Some(row) = bad {
                views[16 * row + 3] = 0x80;
            }
            everywhere(&views, |views| {
                let check = Views { views, buffers, utf8: true, validity: None, mode: ViewMode::Both };
                for isa in Isa::all() {
                    let expected = bad.map(|row| if row == 69 { 69 } else { 3 });
                    assert_eq!(check.first_bad_on(isa, 0..70), expected);
                }
            });
        }
    }

    #[test]
    fn a_buffer_that_cannot_be_read_is_bad_only_when_needed() {
        struct Missing;
        impl Buffers for Missing {
            fn count(&self) -> usize {
                2
            }
            fn get(&self, i: usize) -> Option<&[u8]> {
                (i == 1).then_some(b"here is some text")
            }
        }
        let views = [short(b"inside"), far(13, b"here", 1, 0), far(13, b"here", 0, 0)].concat();
        for isa in Isa::all() {
            let check =
                Views { views: &views, buffers: Missing, utf8: true, validity: None, mode: ViewMode::Both };
            assert_eq!(check.first_bad_on(isa, 0..2), None);
            assert_eq!(check.first_bad_on(isa, 0..3), Some(2));
        }
    }
}
