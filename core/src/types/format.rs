//! Format strings: what one node of a schema holds, without its children.

use core::fmt::{self, Display};

use crate::error::Rule;

/// The unit of a temporal type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Second,
    /// Milliseconds.
    Milli,
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
}

impl Unit {
    /// The letter that format strings use.
    pub const fn letter(self) -> &'static str {
        match self {
            Unit::Second => "s",
            Unit::Milli => "m",
            Unit::Micro => "u",
            Unit::Nano => "n",
        }
    }

    /// The abbreviation that the text form uses.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Second => "s",
            Unit::Milli => "ms",
            Unit::Micro => "us",
            Unit::Nano => "ns",
        }
    }

    fn from_letter(letter: u8) -> Option<Unit> {
        match letter {
            b's' => Some(Unit::Second),
            b'm' => Some(Unit::Milli),
            b'u' => Some(Unit::Micro),
            b'n' => Some(Unit::Nano),
            _ => None,
        }
    }
}

/// A parsed format string. A timestamp's zone and a union's ids stay in the string: see [`timezone`] and [`union_ids`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `n`
    Null,
    /// `b`
    Bool,
    /// `c`
    Int8,
    /// `C`
    UInt8,
    /// `s`
    Int16,
    /// `S`
    UInt16,
    /// `i`
    Int32,
    /// `I`
    UInt32,
    /// `l`
    Int64,
    /// `L`
    UInt64,
    /// `e`
    Float16,
    /// `f`
    Float32,
    /// `g`
    Float64,
    /// `d:precision,scale` or `d:precision,scale,bits`
    Decimal {
        /// Width: 32, 64, 128 or 256.
        bits: u16,
        /// Number of decimal digits.
        precision: u8,
        /// Digits after the point; may be negative.
        scale: i32,
    },
    /// `z`
    Binary,
    /// `Z`
    LargeBinary,
    /// `u`
    Utf8,
    /// `U`
    LargeUtf8,
    /// `vz`
    BinaryView,
    /// `vu`
    Utf8View,
    /// `w:bytes`
    FixedSizeBinary(i32),
    /// `tdD`
    Date32,
    /// `tdm`
    Date64,
    /// `tts` `ttm`
    Time32(Unit),
    /// `ttu` `ttn`
    Time64(Unit),
    /// `tss:zone` and so on
    Timestamp(Unit),
    /// `tDs` and so on
    Duration(Unit),
    /// `tiM`
    IntervalMonths,
    /// `tiD`
    IntervalDayTime,
    /// `tin`
    IntervalMonthDayNano,
    /// `+l`
    List,
    /// `+L`
    LargeList,
    /// `+vl`
    ListView,
    /// `+vL`
    LargeListView,
    /// `+w:size`
    FixedSizeList(i32),
    /// `+s`
    Struct,
    /// `+m`
    Map,
    /// `+ud:ids`
    DenseUnion,
    /// `+us:ids`
    SparseUnion,
    /// `+r`
    RunEndEncoded,
}

/// Why a format string is none: the rule that it breaks, and what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatFault {
    /// The broken rule.
    pub rule: Rule,
    /// What should have been there.
    pub expected: &'static str,
}

type Parsed = core::result::Result<Format, FormatFault>;

impl Format {
    /// Parses a whole format string, without its terminator.
    #[inline]
    pub fn parse(format: &[u8]) -> core::result::Result<Format, FormatFault> {
        match *format {
            [letter] => Self::of_letter(letter).ok_or_else(|| refuse_letter(letter)),
            [b'+', b's'] => Ok(Format::Struct),
            [b'+', b'l'] => Ok(Format::List),
            _ => parse_longer(format).map_err(|fault| match core::str::from_utf8(format) {
                Ok(_) => fault,
                Err(_) => NOT_UTF8,
            }),
        }
    }

    /// The format whose string is that one letter.
    pub(super) const fn of_letter(letter: u8) -> Option<Format> {
        Some(match letter {
            b'n' => Format::Null,
            b'b' => Format::Bool,
            b'c' => Format::Int8,
            b'C' => Format::UInt8,
            b's' => Format::Int16,
            b'S' => Format::UInt16,
            b'i' => Format::Int32,
            b'I' => Format::UInt32,
            b'l' => Format::Int64,
            b'L' => Format::UInt64,
            b'e' => Format::Float16,
            b'f' => Format::Float32,
            b'g' => Format::Float64,
            b'z' => Format::Binary,
            b'Z' => Format::LargeBinary,
            b'u' => Format::Utf8,
            b'U' => Format::LargeUtf8,
            _ => return None,
        })
    }

    /// The largest precision of a decimal of that many bits; `None` for widths that decimals do not have.
    pub const fn max_precision(bits: u16) -> Option<u8> {
        match bits {
            32 => Some(9),
            64 => Some(18),
            128 => Some(38),
            256 => Some(76),
            _ => None,
        }
    }

    /// Whether this is a signed or unsigned integer, and so may hold dictionary indices.
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Format::Int8
                | Format::UInt8
                | Format::Int16
                | Format::UInt16
                | Format::Int32
                | Format::UInt32
                | Format::Int64
                | Format::UInt64
        )
    }

    /// Whether this is a union, dense or sparse.
    pub const fn is_union(self) -> bool {
        matches!(self, Format::DenseUnion | Format::SparseUnion)
    }

    /// Whether this is one of the four list types whose values are ranges of the child, or a map.
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            Format::List | Format::LargeList | Format::ListView | Format::LargeListView | Format::Map
        )
    }

    /// Whether this is a binary or UTF-8 view.
    pub const fn is_view(self) -> bool {
        matches!(self, Format::BinaryView | Format::Utf8View)
    }

    /// Whether the type has children by its nature, even if it has none here.
    pub const fn is_nested(self) -> bool {
        matches!(
            self,
            Format::List
                | Format::LargeList
                | Format::ListView
                | Format::LargeListView
                | Format::FixedSizeList(_)
                | Format::Struct
                | Format::Map
                | Format::DenseUnion
                | Format::SparseUnion
                | Format::RunEndEncoded
        )
    }

    /// The number of children that the format prescribes.
    pub const fn children(self) -> Children {
        match self {
            Format::List
            | Format::LargeList
            | Format::ListView
            | Format::LargeListView
            | Format::FixedSizeList(_)
            | Format::Map => Children::Exactly(1),
            Format::RunEndEncoded => Children::Exactly(2),
            Format::Struct => Children::Any,
            Format::DenseUnion | Format::SparseUnion => Children::OnePerId,
            _ => Children::Exactly(0),
        }
    }

    /// The canonical format string, with the zone of a timestamp and the ids of a union.
    pub fn text<I: Iterator<Item = i8> + Clone>(self, zone: &[u8], ids: I) -> FormatText<'_, I> {
        FormatText { format: self, zone, ids }
    }
}

/// How many children a format prescribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// So many.
    Exactly(usize),
    /// As many as there are.
    Any,
    /// One for each id that the format lists.
    OnePerId,
}

/// A format that prints as its canonical string; what of a zone is not UTF-8 is left out.
#[derive(Debug, Clone)]
pub struct FormatText<'a, I> {
    format: Format,
    zone: &'a [u8],
    ids: I,
}

impl<I: Iterator<Item = i8> + Clone> Display for FormatText<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = match self.format {
            Format::Null => "n",
            Format::Bool => "b",
            Format::Int8 => "c",
            Format::UInt8 => "C",
            Format::Int16 => "s",
            Format::UInt16 => "S",
            Format::Int32 => "i",
            Format::UInt32 => "I",
            Format::Int64 => "l",
            Format::UInt64 => "L",
            Format::Float16 => "e",
            Format::Float32 => "f",
            Format::Float64 => "g",
            Format::Decimal { bits: 128, precision, scale } => return write!(f, "d:{precision},{scale}"),
            Format::Decimal { bits, precision, scale } => return write!(f, "d:{precision},{scale},{bits}"),
            Format::Binary => "z",
            Format::LargeBinary => "Z",
            Format::Utf8 => "u",
            Format::LargeUtf8 => "U",
            Format::BinaryView => "vz",
            Format::Utf8View => "vu",
            Format::FixedSizeBinary(width) => return write!(f, "w:{width}"),
            Format::Date32 => "tdD",
            Format::Date64 => "tdm",
            Format::Time32(unit) | Format::Time64(unit) => return write!(f, "tt{}", unit.letter()),
            Format::Timestamp(unit) => {
                write!(f, "ts{}:", unit.letter())?;
                return self.zone.utf8_chunks().try_for_each(|chunk| f.write_str(chunk.valid()));
            }
            Format::Duration(unit) => return write!(f, "tD{}", unit.letter()),
            Format::IntervalMonths => "tiM",
            Format::IntervalDayTime => "tiD",
            Format::IntervalMonthDayNano => "tin",
            Format::List => "+l",
            Format::LargeList => "+L",
            Format::ListView => "+vl",
            Format::LargeListView => "+vL",
            Format::FixedSizeList(size) => return write!(f, "+w:{size}"),
            Format::Struct => "+s",
            Format::Map => "+m",
            Format::DenseUnion => "+ud:",
            Format::SparseUnion => "+us:",
            Format::RunEndEncoded => "+r",
        };
        f.write_str(plain)?;
        if self.format.is_union() {
            for (i, id) in self.ids.clone().enumerate() {
                write!(f, "{}{id}", if i == 0 { "" } else { "," })?;
            }
        }
        Ok(())
    }
}

/// The time zone of a timestamp's format string; empty when it has none, and for other formats.
pub fn timezone(format: &[u8]) -> &[u8] {
    match format {
        [b't', b's', _, b':', zone @ ..] => zone,
        _ => &[],
    }
}

/// The ids that a union's format string lists, in the order of its children; none for other formats.
pub fn union_ids(format: &[u8]) -> impl Iterator<Item = i8> + Clone + '_ {
    let list = match format {
        [b'+', b'u', b'd' | b's', b':', list @ ..] => list,
        _ => &[],
    };
    // An empty list splits into one empty piece, which is no number.
    list.split(|byte| *byte == b',').filter_map(|id| number(id, 127).and_then(|id| i8::try_from(id).ok()))
}

const fn fault(rule: Rule, expected: &'static str) -> FormatFault {
    FormatFault { rule, expected }
}

const NOT_UTF8: FormatFault = fault(Rule::S1, "UTF-8");
const UNKNOWN: FormatFault = fault(Rule::F1, "a format string that the Arrow C Data interface defines");

fn parse_longer(format: &[u8]) -> Parsed {
    match *format {
        [b'+', ref rest @ ..] => parse_nested(rest),
        [b't', ref rest @ ..] => parse_temporal(rest),
        [b'v', b'z'] => Ok(Format::BinaryView),
        [b'v', b'u'] => Ok(Format::Utf8View),
        [b'w', ref rest @ ..] => {
            parse_size(rest, "w: and a size from 0 to 2147483647").map(Format::FixedSizeBinary)
        }
        [b'd', ref rest @ ..] => parse_decimal(rest),
        _ => Err(UNKNOWN),
    }
}

#[cold]
fn refuse_letter(letter: u8) -> FormatFault {
    match letter {
        b'd' => fault(Rule::F2, DECIMAL),
        b't' => fault(Rule::F4, TEMPORAL),
        b'w' => fault(Rule::F3, "w: and a size from 0 to 2147483647"),
        _ if !letter.is_ascii() => NOT_UTF8,
        _ => UNKNOWN,
    }
}

const DECIMAL: &str = "d:precision,scale or d:precision,scale,bits with 32, 64, 128 or 256 bits and a precision from 1 to 9, 18, 38 or 76";
const TEMPORAL: &str = "td and D or m, tt, tD or ts and a unit s, m, u or n, or ti and M, D or n";
const ZONE: &str = "ts, a unit s, m, u or n, a colon, and a time zone in UTF-8 or nothing";
const IDS: &str = "+ud: or +us: and different ids from 0 to 127, divided by commas";

fn parse_nested(rest: &[u8]) -> Parsed {
    Ok(match *rest {
        [b'L'] => Format::LargeList,
        [b'm'] => Format::Map,
        [b'r'] => Format::RunEndEncoded,
        [b'v', b'l'] => Format::ListView,
        [b'v', b'L'] => Format::LargeListView,
        [b'w', ref size @ ..] => {
            Format::FixedSizeList(parse_size(size, "+w: and a size from 0 to 2147483647")?)
        }
        [b'u', b'd', b':', ref ids @ ..] => check_ids(ids, Format::DenseUnion)?,
        [b'u', b's', b':', ref ids @ ..] => check_ids(ids, Format::SparseUnion)?,
        [b'u', ..] => return Err(fault(Rule::F5, IDS)),
        _ => return Err(UNKNOWN),
    })
}

fn check_ids(ids: &[u8], format: Format) -> Parsed {
    if ids.is_empty() {
        return Ok(format);
    }
    let mut seen = 0_u128;
    for piece in ids.split(|byte| *byte == b',') {
        let bit = match number(piece, 127) {
            Some(id) => 1_u128.checked_shl(id).unwrap_or(0),
            None => return Err(fault(Rule::F5, IDS)),
        };
        if seen & bit != 0 {
            return Err(fault(Rule::F5, IDS));
        }
        seen |= bit;
    }
    Ok(format)
}

fn parse_temporal(rest: &[u8]) -> Parsed {
    Ok(match *rest {
        [b'd', b'D'] => Format::Date32,
        [b'd', b'm'] => Format::Date64,
        [b't', b's'] => Format::Time32(Unit::Second),
        [b't', b'm'] => Format::Time32(Unit::Milli),
        [b't', b'u'] => Format::Time64(Unit::Micro),
        [b't', b'n'] => Format::Time64(Unit::Nano),
        [b'i', b'M'] => Format::IntervalMonths,
        [b'i', b'D'] => Format::IntervalDayTime,
        [b'i', b'n'] => Format::IntervalMonthDayNano,
        [b'D', unit] => match Unit::from_letter(unit) {
            Some(unit) => Format::Duration(unit),
            None => return Err(fault(Rule::F4, TEMPORAL)),
        },
        [b's', unit, b':', ref zone @ ..] => match Unit::from_letter(unit) {
            Some(unit) if !zone.contains(&0) => match core::str::from_utf8(zone) {
                Ok(_) => Format::Timestamp(unit),
                Err(_) => return Err(fault(Rule::S1, ZONE)),
            },
            _ => return Err(fault(Rule::F4, ZONE)),
        },
        [b's', ..] => return Err(fault(Rule::F4, ZONE)),
        _ => return Err(fault(Rule::F4, TEMPORAL)),
    })
}

fn parse_decimal(rest: &[u8]) -> Parsed {
    let wrong = fault(Rule::F2, DECIMAL);
    let [b':', rest @ ..] = rest else { return Err(wrong) };
    let mut pieces = rest.split(|byte| *byte == b',');
    let precision = pieces.next().and_then(|piece| number(piece, 76)).and_then(|p| u8::try_from(p).ok());
    let scale = pieces.next().and_then(signed);
    let bits = match pieces.next() {
        None | Some(b"128") => 128,
        Some(b"32") => 32,
        Some(b"64") => 64,
        Some(b"256") => 256,
        Some(_) => return Err(wrong),
    };
    match (precision, scale, pieces.next(), Format::max_precision(bits)) {
        (Some(precision), Some(scale), None, Some(most)) if precision >= 1 && precision <= most => {
            Ok(Format::Decimal { bits, precision, scale })
        }
        _ => Err(wrong),
    }
}

fn parse_size(rest: &[u8], expected: &'static str) -> core::result::Result<i32, FormatFault> {
    let size = match rest {
        [b':', digits @ ..] => number(digits, i32::MAX.unsigned_abs()),
        _ => None,
    };
    size.and_then(|size| i32::try_from(size).ok()).ok_or(fault(Rule::F3, expected))
}

/// A number of decimal digits only, up to `most`.
pub(super) fn number(digits: &[u8], most: u32) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_u32;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u32::from(digit))?;
    }
    (value <= most).then_some(value)
}

/// A number of decimal digits with a minus before it, or none.
pub(super) fn signed(text: &[u8]) -> Option<i32> {
    match text {
        [b'-', digits @ ..] => {
            number(digits, i32::MIN.unsigned_abs()).map(|size| 0_i32.wrapping_sub_unsigned(size))
        }
        digits => number(digits, i32::MAX.unsigned_abs()).and_then(|size| i32::try_from(size).ok()),
    }
}
