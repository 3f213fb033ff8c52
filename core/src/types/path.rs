//! How names and the places of nodes are shown.

use core::fmt::{self, Display, Write};

use super::{MAX_DEPTH, NONE, TypeNode};

/// A name as the text form writes it: plain when it is an identifier, quoted with escapes when not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name<'a>(pub &'a [u8]);

/// Whether a name can stand without quotes.
pub(super) fn is_identifier(name: &[u8]) -> bool {
    let start = name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    start && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match core::str::from_utf8(self.0) {
            Ok(name) if is_identifier(self.0) => f.write_str(name),
            _ => write_quoted(f, self.0),
        }
    }
}

/// Writes bytes between quotes, so that the parser of the text form reads the same bytes again.
pub(super) fn write_quoted(w: &mut impl Write, bytes: &[u8]) -> fmt::Result {
    w.write_char('"')?;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => w.write_str("\\\"")?,
                '\\' => w.write_str("\\\\")?,
                '\n' => w.write_str("\\n")?,
                '\t' => w.write_str("\\t")?,
                '\0'..'\x20' | '\x7f' => write!(w, "\\x{:02x}", u32::from(character))?,
                other => w.write_char(other)?,
            }
        }
        chunk.invalid().iter().try_for_each(|byte| write!(w, "\\x{byte:02x}"))?;
    }
    w.write_char('"')
}

/// Longer names are cut in a path, which goes into a record of a few hundred bytes.
pub(super) const MAX_SHOWN: usize = 255;

/// Writes the step from a parent to one of its nodes.
pub(super) fn write_step(w: &mut impl Write, name: &[u8], is_dictionary: bool) -> fmt::Result {
    if is_dictionary {
        return w.write_str("<dictionary>");
    }
    match name.get(..MAX_SHOWN) {
        Some(start) if name.len() > MAX_SHOWN => write!(w, ".{}...", Name(start)),
        _ => write!(w, ".{}", Name(name)),
    }
}

/// The place of a node, from a node above it: `$` is that node itself, `$.a.item` a child, `$.b<dictionary>` values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'a> {
    pub nodes: &'a [TypeNode],
    pub bytes: &'a [u8],
    pub root: u32,
    pub node: u32,
}

impl Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps: [Option<&TypeNode>; MAX_DEPTH] = [None; MAX_DEPTH];
        let mut at = self.node;
        for step in &mut steps {
            if at == self.root || at == NONE {
                break;
            }
            *step = usize::try_from(at).ok().and_then(|at| self.nodes.get(at));
            at = step.map_or(NONE, |node| node.parent);
        }
        f.write_char('$')?;
        for node in steps.iter().rev().flatten() {
            write_step(f, node.name.of(self.bytes), node.is_dictionary)?;
        }
        Ok(())
    }
}
