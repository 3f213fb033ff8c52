//! The text form of a type.

use core::fmt::{self, Write};

use super::format::{Format, Unit, timezone, union_ids};
use super::path::{Name, write_quoted};
use super::{Type, TypeNode};
use crate::abi::{FLAG_DICTIONARY_ORDERED, FLAG_MAP_KEYS_SORTED};

/// What a field is taken to be where the text does not say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Implied {
    /// The name that is left out; `None` where names are always printed and "" is meant when there is none.
    pub name: Option<&'static [u8]>,
    pub nullable: bool,
}

impl Implied {
    pub(super) const ROOT: Implied = Implied::named(b"");
    pub(super) const MEMBER: Implied = Implied { name: None, nullable: true };
    pub(super) const ITEM: Implied = Implied::named(b"item");
    pub(super) const ENTRIES: Implied = Implied { name: Some(b"entries"), nullable: false };
    pub(super) const KEY: Implied = Implied { name: Some(b"key"), nullable: false };
    pub(super) const VALUE: Implied = Implied::named(b"value");
    pub(super) const RUN_ENDS: Implied = Implied { name: Some(b"run_ends"), nullable: false };
    pub(super) const VALUES: Implied = Implied::named(b"values");
    pub(super) const DICTIONARY: Implied = Implied::named(b"");

    const fn named(name: &'static [u8]) -> Implied {
        Implied { name: Some(name), nullable: true }
    }
}

impl Type {
    /// Writes the text form, which [`Type::parse`] reads: every part of the type but metadata and unknown flags.
    pub fn to_text(&self, w: &mut impl fmt::Write) -> fmt::Result {
        let mut printer = Printer { of: self, w };
        printer.field(0, Implied::ROOT)
    }
}

struct Printer<'a, W> {
    of: &'a Type,
    w: &'a mut W,
}

impl<W: Write> Printer<'_, W> {
    fn field(&mut self, i: usize, implied: Implied) -> fmt::Result {
        let of = self.of;
        let Some(node) = of.node(i) else { return Ok(()) };
        let name = of.name(i);
        if implied.name != Some(name) {
            write!(self.w, "{}: ", Name(name))?;
        }
        match of.dictionary_index(i) {
            Some(values) => {
                write!(self.w, "dictionary<{}, ", keyword(node.format))?;
                self.field(values, Implied::DICTIONARY)?;
                self.w.write_str(if node.flags & FLAG_DICTIONARY_ORDERED != 0 {
                    ", ordered>"
                } else {
                    ">"
                })?;
            }
            None => self.kind(i, node)?,
        }
        match (node.is_nullable(), implied.nullable) {
            (false, true) => self.w.write_str(" not null"),
            (true, false) => self.w.write_str(" nullable"),
            _ => Ok(()),
        }
    }

    fn kind(&mut self, i: usize, node: &TypeNode) -> fmt::Result {
        self.w.write_str(keyword(node.format))?;
        match node.format {
            Format::Decimal { precision, scale, .. } => write!(self.w, "({precision}, {scale})"),
            Format::FixedSizeBinary(width) => write!(self.w, "({width})"),
            Format::Time32(unit) | Format::Time64(unit) | Format::Duration(unit) => self.unit(unit),
            Format::Timestamp(unit) => match timezone(self.of.format_text(i)) {
                [] => self.unit(unit),
                zone => {
                    write!(self.w, "({}, ", unit.name())?;
                    write_quoted(self.w, zone)?;
                    self.w.write_char(')')
                }
            },
            Format::IntervalMonths => self.w.write_str("(months)"),
            Format::IntervalDayTime => self.w.write_str("(day_time)"),
            Format::IntervalMonthDayNano => self.w.write_str("(month_day_nano)"),
            Format::List | Format::LargeList | Format::ListView | Format::LargeListView => {
                self.nested(i, &[Implied::ITEM], "")
            }
            Format::FixedSizeList(size) => {
                self.w.write_char('<')?;
                self.child(i, 0, Implied::ITEM)?;
                write!(self.w, ", {size}>")
            }
            Format::Map => self.map(i, node),
            Format::Struct => self.nested(i, &[Implied::MEMBER], ""),
            Format::DenseUnion | Format::SparseUnion => {
                let ids = union_ids(self.of.format_text(i));
                if !ids.clone().map(Some).eq((0..node.n_children).map(|n| i8::try_from(n).ok())) {
                    for (n, id) in ids.enumerate() {
                        write!(self.w, "{}{id}", if n == 0 { "(" } else { ", " })?;
                    }
                    self.w.write_char(')')?;
                }
                self.nested(i, &[Implied::MEMBER], "")
            }
            Format::RunEndEncoded => self.nested(i, &[Implied::RUN_ENDS, Implied::VALUES], ""),
            _ => Ok(()),
        }
    }

    fn unit(&mut self, unit: Unit) -> fmt::Result {
        write!(self.w, "({})", unit.name())
    }

    fn child(&mut self, parent: usize, n: usize, implied: Implied) -> fmt::Result {
        self.of.child_index(parent, n).map_or(Ok(()), |child| self.field(child, implied))
    }

    /// All children; what is implied of the last holds for those after it too.
    fn nested(&mut self, parent: usize, implied: &[Implied], tail: &str) -> fmt::Result {
        self.w.write_char('<')?;
        let mut n = 0_usize;
        while let Some(child) = self.of.child_index(parent, n) {
            let implied = implied.get(n).or(implied.last()).copied().unwrap_or(Implied::MEMBER);
            self.w.write_str(if n == 0 { "" } else { ", " })?;
            self.field(child, implied)?;
            n = n.wrapping_add(1);
        }
        write!(self.w, "{tail}>")
    }

    fn map(&mut self, i: usize, node: &TypeNode) -> fmt::Result {
        let tail = if node.flags & FLAG_MAP_KEYS_SORTED != 0 { ", keys_sorted" } else { "" };
        match self.of.child_index(i, 0) {
            Some(entries) if Some(self.of.name(entries)) == Implied::ENTRIES.name => {
                self.nested(entries, &[Implied::KEY, Implied::VALUE], tail)
            }
            _ => self.nested(i, &[Implied::ENTRIES], tail),
        }
    }
}

/// The word that a type starts with.
const fn keyword(format: Format) -> &'static str {
    match format {
        Format::Null => "null",
        Format::Bool => "bool",
        Format::Int8 => "int8",
        Format::UInt8 => "uint8",
        Format::Int16 => "int16",
        Format::UInt16 => "uint16",
        Format::Int32 => "int32",
        Format::UInt32 => "uint32",
        Format::Int64 => "int64",
        Format::UInt64 => "uint64",
        Format::Float16 => "float16",
        Format::Float32 => "float32",
        Format::Float64 => "float64",
        Format::Decimal { bits: 32, .. } => "decimal32",
        Format::Decimal { bits: 64, .. } => "decimal64",
        Format::Decimal { bits: 256, .. } => "decimal256",
        Format::Decimal { .. } => "decimal128",
        Format::Binary => "binary",
        Format::LargeBinary => "large_binary",
        Format::Utf8 => "utf8",
        Format::LargeUtf8 => "large_utf8",
        Format::BinaryView => "binary_view",
        Format::Utf8View => "utf8_view",
        Format::FixedSizeBinary(_) => "fixed_size_binary",
        Format::Date32 => "date32",
        Format::Date64 => "date64",
        Format::Time32(_) => "time32",
        Format::Time64(_) => "time64",
        Format::Timestamp(_) => "timestamp",
        Format::Duration(_) => "duration",
        Format::IntervalMonths | Format::IntervalDayTime | Format::IntervalMonthDayNano => "interval",
        Format::List => "list",
        Format::LargeList => "large_list",
        Format::ListView => "list_view",
        Format::LargeListView => "large_list_view",
        Format::FixedSizeList(_) => "fixed_size_list",
        Format::Struct => "struct",
        Format::Map => "map",
        Format::DenseUnion => "dense_union",
        Format::SparseUnion => "sparse_union",
        Format::RunEndEncoded => "run_end_encoded",
    }
}
