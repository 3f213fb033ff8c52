//! Sizes that only a buffer's own contents tell: the ends of offsets, and the sizes of variadic buffers.

use core::ffi::c_void;
use core::fmt::Arguments;

use crate::device::{Sync, is_cpu_readable, require_readable};
use crate::error::{Failed, Report, Result, Rule, Status};
use crate::kernels::read_offset;
use crate::memory::reserve;
use crate::tree::{Array, Fetch, Need, Tree, need, role_name};
use crate::types::{Extent, Format, Role, Slot};

/// Reads memory that the CPU may not touch: copies as many bytes as `into` has from the address, or says no with an
/// error number.
pub type ReadMemory<'a> = &'a mut dyn FnMut(&mut [u8], *const c_void) -> core::result::Result<(), i32>;

impl Array {
    /// The same array with every size known, read by the CPU.
    pub fn resolve_sizes(&self, sync: &Sync, report: &mut Report<'_>) -> Result<Array> {
        let place = self.tree().place();
        if is_cpu_readable(place.device) {
            require_readable(place, sync, report)?;
            return self.resolve(Source::Host, report);
        }
        let asked = self.asked(report)?;
        let mut copies = reserve::<[u8; 8]>(asked.len(), report)?;
        copies.resize(asked.len(), [0; 8]);
        let mut wanted = reserve(asked.len(), report)?;
        for (asked, copy) in asked.iter().zip(&mut copies) {
            let into = copy.get_mut(..asked.width).unwrap_or_default();
            wanted.push(Fetch { node: asked.node, k: asked.k, at: asked.at, into });
        }
        self.tree().fetch(sync, &mut wanted, report)?;
        drop(wanted);
        self.resolve(Source::Answers(copies.iter()), report)
    }

    /// Every number that resolving reads, in the order in which it does.
    fn asked(&self, report: &mut Report<'_>) -> Result<Vec<Asked>> {
        let mut asked = Vec::new();
        let mut source = Source::Asking(&mut asked);
        let tree = self.tree();
        let mut reader = Reader { array: self, tree, source: &mut source };
        let end = self.node().saturating_add(self.n_nodes());
        for (i, node) in tree.nodes().iter().enumerate().take(end).skip(self.node()) {
            for k in 0..node.n_buffers {
                reader.size(i, k, report)?;
            }
        }
        Ok(asked)
    }

    /// The same array with every size known, read by the caller's function; that it may read is the caller's to ensure.
    pub fn resolve_sizes_with(&self, read: ReadMemory<'_>, report: &mut Report<'_>) -> Result<Array> {
        self.resolve(Source::Caller(read), report)
    }

    fn resolve(&self, mut source: Source<'_, '_>, report: &mut Report<'_>) -> Result<Array> {
        let shown = self.node()..self.node().saturating_add(self.n_nodes());
        let mut reader = Reader { array: self, tree: self.tree(), source: &mut source };
        // What the window does not show is not read.
        let mut size = |i: usize, k: usize, report: &mut Report<'_>| {
            if shown.contains(&i) { reader.size(i, k, report) } else { Ok(self.tree().size(i, k)) }
        };
        Tree::with_sizes(self, &mut size, report)
    }
}

impl Array {
    /// Whether a buffer that is NULL, and whose size only other buffers tell, has no bytes as far as the CPU can read that.
    pub(super) fn is_told_empty(&self, node: usize, k: usize, slot: &Slot) -> bool {
        let tree = self.tree();
        let Some(own) = tree.nodes().get(node) else { return false };
        let n_variadic = own.n_buffers.saturating_sub(3);
        let (of, at, width) = match need(slot, own.offset, own.length, n_variadic) {
            Need::Bytes(bytes) => return bytes == 0,
            Need::Overflow => return false,
            Need::BySizes => (own.n_buffers.saturating_sub(1), k.saturating_sub(2), size_of::<i64>()),
            Need::ByOffsets => {
                let width = tree.slot(node, 1).map_or(0, |slot| usize::try_from(slot.bits >> 3).unwrap_or(8));
                let end = own.offset.saturating_add(own.length);
                (1, usize::try_from(end).unwrap_or(usize::MAX), width)
            }
        };
        let bytes = at.checked_mul(width).and_then(|at| tree.host_bytes(node, of, at, width));
        bytes.and_then(|bytes| read_offset(bytes, width)) == Some(0)
    }
}

/// A number of a buffer that is to be read.
#[derive(Debug, Clone, Copy)]
struct Asked {
    node: usize,
    k: usize,
    at: usize,
    width: usize,
}

/// Where numbers of buffers come from.
enum Source<'a, 'b> {
    /// The CPU reads them.
    Host,
    /// The caller's function reads them.
    Caller(ReadMemory<'b>),
    /// They are only asked for, so that all can be read under one wait; each counts as 0.
    Asking(&'a mut Vec<Asked>),
    /// They were read, in the order in which they were asked for.
    Answers(core::slice::Iter<'a, [u8; 8]>),
}

struct Reader<'a, 's, 'b> {
    array: &'a Array,
    tree: &'a Tree,
    source: &'a mut Source<'s, 'b>,
}

impl Reader<'_, '_, '_> {
    /// The size of buffer `k` of node `i`, read where nothing else tells it, and checked before anybody uses it.
    fn size(&mut self, i: usize, k: usize, report: &mut Report<'_>) -> Result<i64> {
        let (Some(slot), Some(node)) = (self.tree.slot(i, k), self.tree.nodes().get(i)) else {
            return Ok(-1);
        };
        if slot.extent == Extent::RowsPlusOne {
            self.check_end(i, report)?;
        }
        let known = self.tree.size(i, k);
        let is_null = self.tree.buffer(i, k).is_null();
        if known >= 0 && !is_null {
            return Ok(known);
        }
        let told = match need(&slot, node.offset, node.length, node.n_buffers.saturating_sub(3)) {
            Need::ByOffsets => self.last_offset(i, report)?,
            Need::BySizes => self.variadic(i, k, report)?,
            Need::Bytes(bytes) => return Ok(if is_null { known.max(0) } else { bytes }),
            Need::Overflow => return Ok(-1),
        };
        if is_null && told > 0 {
            let role = role_name(slot.role);
            let message = format_args!("expected {told} bytes of {role} in buffer {k}, found NULL");
            return Err(self.broken(Rule::A5, i, report, message));
        }
        Ok(told)
    }

    #[cold]
    fn broken(&self, rule: Rule, i: usize, report: &mut Report<'_>, message: Arguments<'_>) -> Failed {
        self.failed(Status::InvalidData, rule, i, -1, report, message)
    }

    /// A failure at a node of the tree, whose path is told from the array's own node.
    #[cold]
    fn failed(
        &self,
        status: Status,
        rule: Rule,
        i: usize,
        row: i64,
        report: &mut Report<'_>,
        message: Arguments<'_>,
    ) -> Failed {
        match self.array.ty() {
            Some(ty) => {
                let path = ty.path(i.saturating_sub(self.array.node()));
                report.fail_at_row(status, rule, &path, row, message)
            }
            None => report.fail(status, message),
        }
    }

    /// Checks the offsets of a list against the child that they point into.
    fn check_end(&mut self, i: usize, report: &mut Report<'_>) -> Result<()> {
        let ty = self.tree.ty();
        let format = ty.node(i).map_or(Format::Null, |node| node.format);
        if !matches!(format, Format::List | Format::LargeList | Format::Map) {
            return Ok(());
        }
        let last = self.last_offset(i, report)?;
        let child = ty.child_index(i, 0).and_then(|child| self.tree.nodes().get(child));
        let values = child.map_or(0, |child| child.length);
        if last > values {
            let row = self.last_row(i);
            let message = format_args!("expected a last offset up to the values' {values}, found {last}");
            return Err(self.failed(Status::InvalidData, Rule::B1, i, row, report, message));
        }
        Ok(())
    }

    fn last_offset(&mut self, i: usize, report: &mut Report<'_>) -> Result<i64> {
        let (Some(slot), Some(node)) = (self.tree.slot(i, 1), self.tree.nodes().get(i)) else {
            return Ok(-1);
        };
        if node.length == 0 {
            return Ok(0);
        }
        let width = usize::try_from(slot.bits >> 3).unwrap_or(8);
        let end = node.offset.saturating_add(node.length);
        let last = self.number(i, 1, end, width, report)?;
        if last < 0 {
            let message = format_args!("expected a last offset of at least 0, found {last}");
            return Err(self.failed(Status::InvalidData, Rule::B1, i, self.last_row(i), report, message));
        }
        Ok(last)
    }

    /// The row that an array's last offset ends.
    fn last_row(&self, i: usize) -> i64 {
        self.tree.nodes().get(i).map_or(-1, |node| node.length.saturating_sub(1))
    }

    fn variadic(&mut self, i: usize, k: usize, report: &mut Report<'_>) -> Result<i64> {
        let Some(node) = self.tree.nodes().get(i) else { return Ok(-1) };
        let sizes = node.n_buffers.saturating_sub(1);
        let which = k.saturating_sub(2);
        let size =
            self.number(i, sizes, i64::try_from(which).unwrap_or(i64::MAX), size_of::<i64>(), report)?;
        if size < 0 {
            let message =
                format_args!("expected a size of at least 0 for variadic buffer {which}, found {size}");
            return Err(self.broken(Rule::B2, i, report, message));
        }
        Ok(size)
    }

    /// Number `at` of buffer `k`, each `width` bytes wide.
    fn number(&mut self, i: usize, k: usize, at: i64, width: usize, report: &mut Report<'_>) -> Result<i64> {
        let byte = usize::try_from(at).ok().and_then(|at| at.checked_mul(width));
        let Some(byte) = byte.filter(|_| !self.tree.buffer(i, k).is_null()) else {
            let role = self.tree.slot(i, k).map_or(Role::Data, |slot| slot.role);
            let message = format_args!("expected {} to read a size from, found NULL", role_name(role));
            return Err(self.broken(Rule::A5, i, report, message));
        };
        let mut copy = [0u8; 8];
        let copy = copy.get_mut(..width).unwrap_or_default();
        match self.source {
            Source::Asking(asked) => {
                if asked.try_reserve(1).is_err() {
                    return Err(report.out_of_memory(size_of::<Asked>()));
                }
                asked.push(Asked { node: i, k, at: byte, width });
                return Ok(0);
            }
            Source::Answers(answers) => {
                let answer = answers.next().and_then(|answer| answer.get(..width)).unwrap_or_default();
                return Ok(read_offset(answer, width).unwrap_or(-1));
            }
            Source::Caller(read) => {
                let from = self.tree.buffer(i, k).wrapping_byte_add(byte);
                if let Err(code) = read(copy, from) {
                    let message =
                        format_args!("expected {width} bytes from {from:p}, found that read returned {code}");
                    return Err(match self.array.ty() {
                        Some(ty) => {
                            let path = ty.path(i.saturating_sub(self.array.node()));
                            report.callback_failed(code, &path, message)
                        }
                        None => report.callback_failed(code, &"", message),
                    });
                }
            }
            Source::Host => match self.tree.host_bytes(i, k, byte, width) {
                Some(bytes) => copy.copy_from_slice(bytes),
                None => {
                    return Err(
                        report.fail(Status::Internal, format_args!("expected readable memory, found none"))
                    );
                }
            },
        }
        Ok(read_offset(copy, width).unwrap_or(-1))
    }
}
