//! The metadata of `arrow.fixed_shape_tensor`: a JSON object with the shape, and how its dimensions are to be read.

use crate::error::{Report, Result, Rule, Status};
use crate::types::metadata::pairs;
use crate::types::{EXTENSION_NAME, Format, Type};

use super::view::MAX_NDIM;

const ROOM: usize = MAX_NDIM.unsigned_abs() as usize;
/// The metadata key of an extension type's own description.
pub(super) const EXTENSION_METADATA: &[u8] = b"ARROW:extension:metadata";
/// The extension type of tensors of one shape.
pub(super) const FIXED_SHAPE_TENSOR: &[u8] = b"arrow.fixed_shape_tensor";

/// The shape of each value, in the order of memory, and which of its dimensions a reader sees where.
#[derive(Debug, Clone, Copy)]
pub(super) struct FixedShape {
    n: usize,
    shape: [i64; ROOM],
    has_permutation: bool,
    permutation: [usize; ROOM],
    /// Whether the dimensions have names.
    pub has_names: bool,
}

impl FixedShape {
    /// The shape that node `i` has as a tensor extension; `None` when it is none.
    pub(super) fn of(ty: &Type, i: usize, report: &mut Report<'_>) -> Result<Option<FixedShape>> {
        let (Some(metadata), Some(node)) = (ty.metadata(i), ty.node(i)) else { return Ok(None) };
        let find = |wanted: &[u8]| pairs(metadata).find(|(key, _)| *key == wanted).map(|(_, value)| value);
        let Format::FixedSizeList(size) = node.format else { return Ok(None) };
        if find(EXTENSION_NAME) != Some(FIXED_SHAPE_TENSOR) {
            return Ok(None);
        }
        let found = find(EXTENSION_METADATA).and_then(FixedShape::parse);
        let fits = |shape: &FixedShape| {
            let product = shape.shape().iter().try_fold(1_i64, |n, length| n.checked_mul(*length));
            product == Some(i64::from(size))
        };
        match found.filter(fits) {
            Some(shape) => Ok(Some(shape)),
            None => {
                let message = format_args!(
                    "expected the metadata of a fixed-shape tensor with a shape of {size} elements, found other text"
                );
                Err(report.fail_at(Status::InvalidData, Rule::S7, &ty.path(i), message))
            }
        }
    }

    /// The lengths of the dimensions, in the order of memory.
    pub(super) fn shape(&self) -> &[i64] {
        self.shape.get(..self.n).unwrap_or_default()
    }

    /// Which dimension of memory each dimension that a reader sees is; none when they are the same.
    pub(super) fn permutation(&self) -> &[usize] {
        if self.has_permutation { self.permutation.get(..self.n).unwrap_or_default() } else { &[] }
    }

    /// Reads the description; `None` when it is no such thing.
    fn parse(text: &[u8]) -> Option<FixedShape> {
        let mut this = FixedShape {
            n: 0,
            shape: [0; ROOM],
            has_permutation: false,
            permutation: [0; ROOM],
            has_names: false,
        };
        let mut json = Json { rest: text };
        json.symbol(b'{')?;
        let mut has_shape = false;
        let mut n_permutation = 0;
        if !json.next_is(b'}') {
            loop {
                let key = json.string()?;
                json.symbol(b':')?;
                match key {
                    b"shape" => {
                        this.n = json.numbers(&mut this.shape)?;
                        has_shape = true;
                    }
                    b"permutation" if !json.null() => {
                        let mut numbers = [0; ROOM];
                        n_permutation = json.numbers(&mut numbers)?;
                        for (place, number) in this.permutation.iter_mut().zip(numbers) {
                            *place = usize::try_from(number).ok()?;
                        }
                        this.has_permutation = true;
                    }
                    b"permutation" => {}
                    b"dim_names" => {
                        this.has_names = !json.null();
                        if this.has_names {
                            json.skip(0)?;
                        }
                    }
                    _ => json.skip(0)?,
                }
                if !json.comma()? {
                    break;
                }
            }
        }
        json.symbol(b'}')?;
        json.space();
        let is_permutation = !this.has_permutation
            || n_permutation == this.n && (0..this.n).all(|i| this.permutation().contains(&i));
        let fits =
            json.rest.is_empty() && has_shape && is_permutation && this.shape().iter().all(|n| *n >= 0);
        fits.then_some(this)
    }
}

/// As much of JSON as the description needs: what else is there is passed over.
struct Json<'a> {
    rest: &'a [u8],
}

/// How deep values that are passed over may be nested.
const DEEP: usize = 32;

impl<'a> Json<'a> {
    fn space(&mut self) {
        let n = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.rest = self.rest.get(n..).unwrap_or_default();
    }

    fn next_is(&mut self, symbol: u8) -> bool {
        self.space();
        self.rest.first() == Some(&symbol)
    }

    fn symbol(&mut self, symbol: u8) -> Option<()> {
        if !self.next_is(symbol) {
            return None;
        }
        self.rest = self.rest.get(1..)?;
        Some(())
    }

    /// Whether another follows; `None` when neither a comma nor an end does.
    fn comma(&mut self) -> Option<bool> {
        if self.symbol(b',').is_some() {
            return Some(true);
        }
        (self.next_is(b'}') || self.next_is(b']')).then_some(false)
    }

    fn null(&mut self) -> bool {
        self.space();
        let rest = self.rest.strip_prefix(b"null");
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// A string as it is written, escapes and all.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.symbol(b'"')?;
        let text = self.rest;
        let mut at = 0usize;
        loop {
            match text.get(at)? {
                b'"' => break,
                b'\\' => at = at.checked_add(2)?,
                _ => at = at.checked_add(1)?,
            }
        }
        self.rest = text.get(at.checked_add(1)?..)?;
        text.get(..at)
    }

    fn number(&mut self) -> Option<i64> {
        self.space();
        let n = self.rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
        let (digits, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        core::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn numbers(&mut self, into: &mut [i64]) -> Option<usize> {
        self.symbol(b'[')?;
        let mut n = 0usize;
        if !self.next_is(b']') {
            loop {
                *into.get_mut(n)? = self.number()?;
                n = n.checked_add(1)?;
                if !self.comma()? {
                    break;
                }
            }
        }
        self.symbol(b']')?;
        Some(n)
    }

    /// Passes over a value.
    fn skip(&mut self, level: usize) -> Option<()> {
        if level > DEEP {
            return None;
        }
        self.space();
        let (open, close) = match self.rest.first()? {
            b'"' => return self.string().map(|_| ()),
            b'[' => (b'[', b']'),
            b'{' => (b'{', b'}'),
            _ => {
                let n = self
                    .rest
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
                    .count();
                self.rest = self.rest.get(n..)?;
                return (n > 0).then_some(());
            }
        };
        self.symbol(open)?;
        if !self.next_is(close) {
            loop {
                if open == b'{' {
                    self.string()?;
                    self.symbol(b':')?;
                }
                self.skip(level.checked_add(1)?)?;
                if !self.comma()? {
                    break;
                }
            }
        }
        self.symbol(close)
    }
}
