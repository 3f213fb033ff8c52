//! Types from their text form.
//!
//! A field is `[name: ]type[ not null| nullable]`; what it leaves out is what the printer leaves out.

use core::fmt::{self, Display};

use super::build::{Source, assemble};
use super::format::{Format, Unit, number, signed};
use super::lexer::{Lexer, Piece};
use super::node::Range;
use super::print::Implied;
use super::sink::{Draft, Full, Sink};
use super::{MAX_FORMAT, MAX_STRING, NONE, Type};
use crate::abi::{FLAG_DICTIONARY_ORDERED, FLAG_MAP_KEYS_SORTED, FLAG_NULLABLE};
use crate::error::{Failed, Report, Result, Status};

impl Type {
    /// A type from its text form, such as `struct<a: int32 not null, s: list<utf8>>`.
    ///
    /// Bad text is `InvalidArgument`; the message says at which byte, what was expected and what was found.
    pub fn parse(text: &[u8], report: &mut Report<'_>) -> Result<Type> {
        match core::str::from_utf8(text) {
            Ok(text) => assemble(&Text(text), report),
            Err(error) => {
                let at = error.valid_up_to();
                let found = text.get(at).copied().unwrap_or_default();
                let message = format_args!("at byte {at}: expected UTF-8, found byte 0x{found:02x}");
                Err(report.fail(Status::InvalidArgument, message))
            }
        }
    }
}

struct Text<'a>(&'a str);

impl Source for Text<'_> {
    const BROKEN: Status = Status::InvalidData;
    const LINKS: bool = false;

    fn emit<S: Sink>(&self, sink: &mut S, report: &mut Report<'_>) -> Result<()> {
        let mut parser = Parser { lexer: Lexer::new(self.0), sink, report };
        let root = Spot { parent: NONE, is_dictionary: false, level: 1 };
        parser.field(root, Implied::ROOT)?;
        if parser.lexer.is_at_end() { Ok(()) } else { Err(parser.expected("the end")) }
    }
}

/// Where a field is in the tree.
#[derive(Debug, Clone, Copy)]
struct Spot {
    parent: u32,
    is_dictionary: bool,
    level: usize,
}

/// What the text between a field's name and its nullability says.
#[derive(Debug, Clone, Copy)]
struct Kind {
    format: Format,
    text: Range,
    n_children: u32,
    dictionary: u32,
    flags: i64,
}

struct Parser<'a, 'r, 'e> {
    lexer: Lexer<'a>,
    sink: &'r mut dyn Sink,
    report: &'r mut Report<'e>,
}

/// Takes what a format prints into a sink, and remembers why it does not fit.
struct Printed<'s> {
    sink: &'s mut dyn Sink,
    full: Option<Full>,
}

impl fmt::Write for Printed<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.sink.put(text.as_bytes()).map_err(|full| {
            self.full = Some(full);
            fmt::Error
        })
    }
}

impl Parser<'_, '_, '_> {
    #[cold]
    fn expected(&mut self, what: &str) -> Failed {
        self.refuse(self.lexer.at(), format_args!("expected {what}, found {}", self.lexer.found()))
    }

    #[cold]
    fn refuse(&mut self, at: usize, message: fmt::Arguments<'_>) -> Failed {
        self.report.fail(Status::InvalidArgument, format_args!("at byte {at}: {message}"))
    }

    #[cold]
    fn full(&mut self, full: Full) -> Failed {
        self.refuse(self.lexer.at(), format_args!("{full}"))
    }

    fn symbol(&mut self, symbol: u8) -> Result<()> {
        if self.lexer.symbol(symbol) {
            return Ok(());
        }
        let shown = [b'"', symbol, b'"'];
        Err(self.expected(core::str::from_utf8(&shown).unwrap_or_default()))
    }

    fn open(&mut self, spot: Spot) -> Result<u32> {
        self.sink.open(spot.level).map_err(|full| self.full(full))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.put(bytes).map_err(|full| self.full(full))
    }

    fn text(&mut self, text: &[u8]) -> Result<Range> {
        self.sink.text(text).map_err(|full| self.full(full))
    }

    /// Closes the bytes that were put since `at` with a terminator.
    fn end_text(&mut self, at: u32, most: usize, what: &str) -> Result<Range> {
        let length = self.sink.at().wrapping_sub(at);
        if usize::try_from(length).is_ok_and(|length| length > most) {
            let message = format_args!("expected {what} of at most {most} bytes, found {length}");
            return Err(self.refuse(self.lexer.at(), message));
        }
        self.put(&[0])?;
        Ok(Range { at, length })
    }

    /// Decodes a quoted string, whose first quote is still to come, into the sink.
    fn quoted(&mut self, utf8_only: bool) -> Result<()> {
        self.symbol(b'"')?;
        loop {
            match self.lexer.piece() {
                Piece::Plain(bytes) => self.put(bytes)?,
                Piece::Byte(0) => return Err(self.expected("an escape other than \\x00, or a character")),
                Piece::Byte(byte) if utf8_only && !byte.is_ascii() => {
                    return Err(self.expected("UTF-8 in a time zone"));
                }
                Piece::Byte(byte) => self.put(&[byte])?,
                Piece::End => return Ok(()),
                Piece::Unclosed => return Err(self.expected("a closing quote")),
                Piece::Unknown => {
                    return Err(self.expected("one of the escapes \\\" \\\\ \\n \\t \\x00 to \\xff"));
                }
            }
        }
    }

    fn field(&mut self, spot: Spot, implied: Implied) -> Result<u32> {
        let node = self.open(spot)?;
        let name = self.name(implied)?;
        let kind = self.kind(node, spot.level)?;
        let mut nullable = implied.nullable;
        if self.lexer.keyword("nullable") {
            nullable = true;
        } else if self.lexer.keyword("not") {
            if !self.lexer.keyword("null") {
                return Err(self.expected("\"null\" after \"not\""));
            }
            nullable = false;
        }
        let flags = if nullable { kind.flags | FLAG_NULLABLE } else { kind.flags };
        self.close(node, spot, name, Kind { flags, ..kind })?;
        Ok(node)
    }

    fn close(&mut self, node: u32, spot: Spot, name: Range, kind: Kind) -> Result<()> {
        let draft = Draft {
            format: kind.format,
            flags: kind.flags,
            parent: spot.parent,
            is_dictionary: spot.is_dictionary,
            n_children: kind.n_children,
            first_child_slot: 0,
            dictionary: kind.dictionary,
            subtree_end: self.sink.next(),
            format_text: kind.text,
            name,
            metadata: Range::EMPTY,
        };
        self.sink.close(node, &draft).map_err(|full| self.full(full))
    }

    fn name(&mut self, implied: Implied) -> Result<Range> {
        if self.lexer.is_next(b'"') {
            let at = self.sink.at();
            self.quoted(false)?;
            let name = self.end_text(at, MAX_STRING, "a name")?;
            self.symbol(b':')?;
            return Ok(name);
        }
        let before = self.lexer;
        let word = self.lexer.word();
        if word.is_empty() || !self.lexer.symbol(b':') {
            self.lexer = before;
            return self.text(implied.name.unwrap_or_default());
        }
        let at = self.sink.at();
        self.put(word)?;
        self.end_text(at, MAX_STRING, "a name")
    }

    /// The type of the open node `node`.
    fn kind(&mut self, node: u32, level: usize) -> Result<Kind> {
        let start = self.lexer;
        let below = Spot { parent: node, is_dictionary: false, level: level.wrapping_add(1) };
        let word = self.lexer.word();
        if let Some(format) = plain(word) {
            return self.finish(format, 0, 0);
        }
        match word {
            b"decimal32" => self.decimal(32),
            b"decimal64" => self.decimal(64),
            b"decimal128" => self.decimal(128),
            b"decimal256" => self.decimal(256),
            b"fixed_size_binary" => {
                self.symbol(b'(')?;
                let width = self.size()?;
                self.symbol(b')')?;
                self.finish(Format::FixedSizeBinary(width), 0, 0)
            }
            b"time32" => {
                let unit = self.unit_of(&[Unit::Second, Unit::Milli], "a unit s or ms")?;
                self.finish(Format::Time32(unit), 0, 0)
            }
            b"time64" => {
                let unit = self.unit_of(&[Unit::Micro, Unit::Nano], "a unit us or ns")?;
                self.finish(Format::Time64(unit), 0, 0)
            }
            b"duration" => {
                let unit = self.unit_of(&UNITS, "a unit s, ms, us or ns")?;
                self.finish(Format::Duration(unit), 0, 0)
            }
            b"timestamp" => self.timestamp(),
            b"interval" => self.interval(),
            b"list" => self.list(Format::List, below),
            b"large_list" => self.list(Format::LargeList, below),
            b"list_view" => self.list(Format::ListView, below),
            b"large_list_view" => self.list(Format::LargeListView, below),
            b"fixed_size_list" => {
                self.symbol(b'<')?;
                self.field(below, Implied::ITEM)?;
                self.symbol(b',')?;
                let size = self.size()?;
                self.symbol(b'>')?;
                self.finish(Format::FixedSizeList(size), 1, 0)
            }
            b"struct" => {
                let n = self.members(below)?;
                self.finish(Format::Struct, n, 0)
            }
            b"map" => self.map(below),
            b"dense_union" => self.union(Format::DenseUnion, below),
            b"sparse_union" => self.union(Format::SparseUnion, below),
            b"run_end_encoded" => {
                self.symbol(b'<')?;
                self.field(below, Implied::RUN_ENDS)?;
                self.symbol(b',')?;
                self.field(below, Implied::VALUES)?;
                self.symbol(b'>')?;
                self.finish(Format::RunEndEncoded, 2, 0)
            }
            b"dictionary" => self.dictionary(below),
            _ => {
                self.lexer = start;
                Err(self.expected("a type"))
            }
        }
    }

    /// Writes the format string, whose zone or ids follow from `n_children` alone.
    fn finish(&mut self, format: Format, n_children: u32, flags: i64) -> Result<Kind> {
        let ids = (0..n_children).map_while(|id| i8::try_from(id).ok());
        let text = self.print(&format.text(&[], ids))?;
        Ok(Kind { format, text, n_children, dictionary: NONE, flags })
    }

    fn print(&mut self, text: &dyn Display) -> Result<Range> {
        let at = self.sink.at();
        let mut printed = Printed { sink: self.sink, full: None };
        let written = fmt::write(&mut printed, format_args!("{text}"));
        if let (Err(_), Some(full)) = (written, printed.full) {
            return Err(self.full(full));
        }
        self.end_text(at, MAX_FORMAT, "a format string")
    }

    fn size(&mut self) -> Result<i32> {
        let before = self.lexer;
        let digits = self.lexer.digits();
        let size = number(digits, i32::MAX.unsigned_abs()).and_then(|size| i32::try_from(size).ok());
        size.ok_or_else(|| {
            self.lexer = before;
            self.expected("a size from 0 to 2147483647")
        })
    }

    fn decimal(&mut self, bits: u16) -> Result<Kind> {
        self.symbol(b'(')?;
        let most = Format::max_precision(bits).unwrap_or_default();
        let before = self.lexer;
        let digits =
            number(self.lexer.digits(), u32::from(most)).and_then(|digits| u8::try_from(digits).ok());
        let Some(precision) = digits.filter(|digits| *digits > 0) else {
            self.lexer = before;
            let message = format_args!("expected a precision from 1 to {most}, found {}", before.found());
            return Err(self.refuse(before.at(), message));
        };
        self.symbol(b',')?;
        let before = self.lexer;
        let Some(scale) = signed(self.lexer.digits()) else {
            self.lexer = before;
            return Err(self.expected("a scale of 32 bits"));
        };
        self.symbol(b')')?;
        self.finish(Format::Decimal { bits, precision, scale }, 0, 0)
    }

    fn unit(&mut self, units: &[Unit], expected: &str) -> Result<Unit> {
        let before = self.lexer;
        let word = self.lexer.word();
        units.iter().find(|unit| unit.name().as_bytes() == word).copied().ok_or_else(|| {
            self.lexer = before;
            self.expected(expected)
        })
    }

    fn unit_of(&mut self, units: &[Unit], expected: &str) -> Result<Unit> {
        self.symbol(b'(')?;
        let unit = self.unit(units, expected)?;
        self.symbol(b')')?;
        Ok(unit)
    }

    fn timestamp(&mut self) -> Result<Kind> {
        self.symbol(b'(')?;
        let unit = self.unit(&UNITS, "a unit s, ms, us or ns")?;
        let at = self.sink.at();
        self.put(b"ts")?;
        self.put(unit.letter().as_bytes())?;
        self.put(b":")?;
        if self.lexer.symbol(b',') {
            self.quoted(true)?;
        }
        self.symbol(b')')?;
        let text = self.end_text(at, MAX_FORMAT, "a timestamp's format string")?;
        Ok(Kind { format: Format::Timestamp(unit), text, n_children: 0, dictionary: NONE, flags: 0 })
    }

    fn interval(&mut self) -> Result<Kind> {
        self.symbol(b'(')?;
        let before = self.lexer;
        let format = match self.lexer.word() {
            b"months" => Format::IntervalMonths,
            b"day_time" => Format::IntervalDayTime,
            b"month_day_nano" => Format::IntervalMonthDayNano,
            _ => {
                self.lexer = before;
                return Err(self.expected("months, day_time or month_day_nano"));
            }
        };
        self.symbol(b')')?;
        self.finish(format, 0, 0)
    }

    fn list(&mut self, format: Format, below: Spot) -> Result<Kind> {
        self.symbol(b'<')?;
        self.field(below, Implied::ITEM)?;
        self.symbol(b'>')?;
        self.finish(format, 1, 0)
    }

    /// Any number of fields in angle brackets.
    fn members(&mut self, below: Spot) -> Result<u32> {
        self.symbol(b'<')?;
        let mut n = 0_u32;
        if self.lexer.symbol(b'>') {
            return Ok(n);
        }
        loop {
            self.field(below, Implied::MEMBER)?;
            n = n.wrapping_add(1);
            if self.lexer.symbol(b'>') {
                return Ok(n);
            }
            if !self.lexer.symbol(b',') {
                return Err(self.expected("\",\" or \">\""));
            }
        }
    }

    fn map(&mut self, below: Spot) -> Result<Kind> {
        self.symbol(b'<')?;
        if self.lexer.fields_before("keys_sorted") == 1 {
            self.field(below, Implied::ENTRIES)?;
        } else {
            let entries = self.open(below)?;
            let name = self.text(Implied::ENTRIES.name.unwrap_or_default())?;
            let inside = Spot { parent: entries, is_dictionary: false, level: below.level.wrapping_add(1) };
            self.field(inside, Implied::KEY)?;
            self.symbol(b',')?;
            self.field(inside, Implied::VALUE)?;
            let kind = self.finish(Format::Struct, 2, 0)?;
            self.close(entries, below, name, kind)?;
        }
        let flags = self.ending("keys_sorted", FLAG_MAP_KEYS_SORTED)?;
        self.finish(Format::Map, 1, flags)
    }

    /// The end of the brackets, perhaps with a keyword before it that stands for a flag.
    fn ending(&mut self, keyword: &str, flag: i64) -> Result<i64> {
        if !self.lexer.symbol(b',') {
            self.symbol(b'>')?;
            return Ok(0);
        }
        if !self.lexer.keyword(keyword) {
            let message = format_args!("expected \"{keyword}\", found {}", self.lexer.found());
            return Err(self.refuse(self.lexer.at(), message));
        }
        self.symbol(b'>')?;
        Ok(flag)
    }

    fn union(&mut self, format: Format, below: Spot) -> Result<Kind> {
        if !self.lexer.is_next(b'(') {
            let start = self.lexer.at();
            let n = self.members(below)?;
            if n > 128 {
                return Err(
                    self.refuse(start, format_args!("expected at most 128 members of a union, found {n}"))
                );
            }
            return self.finish(format, n, 0);
        }
        let listed = self.lexer.at();
        let mut ids = [0_i8; 128];
        let mut n_ids = 0_usize;
        self.symbol(b'(')?;
        while !self.lexer.symbol(b')') {
            if n_ids > 0 {
                self.symbol(b',')?;
            }
            let before = self.lexer;
            let id = number(self.lexer.digits(), 127).and_then(|id| i8::try_from(id).ok());
            let known = ids.get(..n_ids).unwrap_or_default();
            match (id.filter(|id| !known.contains(id)), ids.get_mut(n_ids)) {
                (Some(id), Some(place)) => *place = id,
                _ => {
                    self.lexer = before;
                    return Err(self.expected("a union's id from 0 to 127 that was not listed before"));
                }
            }
            n_ids = n_ids.wrapping_add(1);
        }
        let n = self.members(below)?;
        if usize::try_from(n) != Ok(n_ids) {
            let message = format_args!("expected as many ids as members, found {n_ids} ids and {n} members");
            return Err(self.refuse(listed, message));
        }
        let text = self.print(&format.text(&[], ids.iter().copied().take(n_ids)))?;
        Ok(Kind { format, text, n_children: n, dictionary: NONE, flags: 0 })
    }

    fn dictionary(&mut self, below: Spot) -> Result<Kind> {
        self.symbol(b'<')?;
        let before = self.lexer;
        let Some(format) = plain(self.lexer.word()).filter(|format| format.is_integer()) else {
            self.lexer = before;
            return Err(self.expected("an integer type for the indices of a dictionary"));
        };
        self.symbol(b',')?;
        let values = self.field(Spot { is_dictionary: true, ..below }, Implied::DICTIONARY)?;
        let flags = self.ending("ordered", FLAG_DICTIONARY_ORDERED)?;
        let kind = self.finish(format, 0, flags)?;
        Ok(Kind { dictionary: values, ..kind })
    }
}

const UNITS: [Unit; 4] = [Unit::Second, Unit::Milli, Unit::Micro, Unit::Nano];

/// The types that are one word.
fn plain(word: &[u8]) -> Option<Format> {
    Some(match word {
        b"null" => Format::Null,
        b"bool" => Format::Bool,
        b"int8" => Format::Int8,
        b"uint8" => Format::UInt8,
        b"int16" => Format::Int16,
        b"uint16" => Format::UInt16,
        b"int32" => Format::Int32,
        b"uint32" => Format::UInt32,
        b"int64" => Format::Int64,
        b"uint64" => Format::UInt64,
        b"float16" => Format::Float16,
        b"float32" => Format::Float32,
        b"float64" => Format::Float64,
        b"binary" => Format::Binary,
        b"large_binary" => Format::LargeBinary,
        b"utf8" | b"string" => Format::Utf8,
        b"large_utf8" | b"large_string" => Format::LargeUtf8,
        b"binary_view" => Format::BinaryView,
        b"utf8_view" | b"string_view" => Format::Utf8View,
        b"date32" => Format::Date32,
        b"date64" => Format::Date64,
        _ => return None,
    })
}
