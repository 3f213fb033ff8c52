//! The pieces of the text form.

use core::fmt::{self, Display};

use super::path::write_quoted;

/// A place in a text, which is UTF-8; copying it is how one goes back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// A part of a quoted string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Characters that stand for themselves.
    Plain(&'a [u8]),
    /// A byte that was escaped, or a bare NUL.
    Byte(u8),
    /// The closing quote.
    End,
    /// The text ended before the string did.
    Unclosed,
    /// A backslash before something else than an escape.
    Unknown,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The byte that comes next, white space left out.
    pub(super) fn at(&self) -> usize {
        self.text.len().wrapping_sub(self.rest().trim_ascii_start().len())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest().trim_ascii_start().is_empty()
    }

    /// What comes next, for messages.
    pub(super) fn found(&self) -> Found<'a> {
        Found(self.rest().trim_ascii_start())
    }

    pub(super) fn is_next(&self, symbol: u8) -> bool {
        self.rest().trim_ascii_start().as_bytes().first() == Some(&symbol)
    }

    /// Takes the symbol if it comes next.
    pub(super) fn symbol(&mut self, symbol: u8) -> bool {
        let is_next = self.is_next(symbol);
        if is_next {
            self.at = self.at().wrapping_add(1);
        }
        is_next
    }

    /// Takes a word of letters, digits and underscores that does not start with a digit; empty when none comes next.
    pub(super) fn word(&mut self) -> &'a [u8] {
        let word = self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if word.first().is_some_and(u8::is_ascii_digit) {
            return &[];
        }
        self.at = self.at().wrapping_add(word.len());
        word
    }

    /// Takes the word if it comes next.
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        let before = *self;
        let is_next = self.word() == keyword.as_bytes();
        if !is_next {
            *self = before;
        }
        is_next
    }

    /// Takes digits and what else may be meant as part of a number.
    pub(super) fn digits(&mut self) -> &'a [u8] {
        let digits =
            self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'+' || byte == b'.');
        self.at = self.at().wrapping_add(digits.len());
        digits
    }

    fn run(&self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.text.as_bytes().get(self.at()..).unwrap_or_default();
        let end = rest.iter().position(|byte| !belongs(*byte)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    /// Takes the next part of a quoted string whose opening quote was taken. What is refused is not taken.
    pub(super) fn piece(&mut self) -> Piece<'a> {
        let rest = self.rest().as_bytes();
        let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0)).unwrap_or(rest.len());
        let (head, tail) = rest.split_at_checked(plain).unwrap_or_default();
        if !head.is_empty() {
            self.at = self.at.wrapping_add(head.len());
            return Piece::Plain(head);
        }
        let (piece, length) = match *tail {
            [] => return Piece::Unclosed,
            [b'"', ..] => (Piece::End, 1_usize),
            [0, ..] => return Piece::Byte(0),
            [_, b'n', ..] => (Piece::Byte(b'\n'), 2),
            [_, b't', ..] => (Piece::Byte(b'\t'), 2),
            [_, plain @ (b'"' | b'\\'), ..] => (Piece::Byte(plain), 2),
            [_, b'x', high, low, ..] => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => (Piece::Byte(high.wrapping_mul(16).wrapping_add(low)), 4),
                _ => return Piece::Unknown,
            },
            _ => return Piece::Unknown,
        };
        if piece == Piece::Byte(0) {
            return piece;
        }
        self.at = self.at.wrapping_add(length);
        piece
    }

    /// The number of fields up to the closing bracket, without a last one that is only `keyword`. Nothing is taken.
    pub(super) fn fields_before(&self, keyword: &str) -> usize {
        let mut ahead = *self;
        let mut last = *self;
        let mut depth = 0_usize;
        let mut fields = 1_usize;
        loop {
            match ahead.rest().as_bytes().first() {
                None => break,
                Some(b'"') => {
                    ahead.at = ahead.at.wrapping_add(1);
                    ahead.skip_string();
                    continue;
                }
                Some(b'<' | b'(') => depth = depth.saturating_add(1),
                Some(b'>' | b')') => match depth.checked_sub(1) {
                    Some(outer) => depth = outer,
                    None => break,
                },
                Some(b',') if depth == 0 => {
                    fields = fields.saturating_add(1);
                    last.at = ahead.at.wrapping_add(1);
                }
                Some(_) => {}
            }
            ahead.at = ahead.at.wrapping_add(1);
            while !self.text.is_char_boundary(ahead.at) {
                ahead.at = ahead.at.wrapping_add(1);
            }
        }
        if fields > 1 && last.keyword(keyword) && last.is_next(b'>') {
            fields = fields.saturating_sub(1);
        }
        fields
    }

    fn skip_string(&mut self) {
        while !matches!(self.piece(), Piece::End | Piece::Unclosed | Piece::Unknown | Piece::Byte(0)) {}
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// The start of a text, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a>(&'a str);

impl Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.char_indices().map(|(at, _)| at).nth(24).unwrap_or(self.0.len());
        match self.0.get(..end).unwrap_or_default() {
            "" => f.write_str("the end"),
            start => write_quoted(f, start.as_bytes()),
        }
    }
}
