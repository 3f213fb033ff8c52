//! Copies of device memory in CPU memory, as much at once as the caller allows, and a subject that reads them.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use super::super::subject::{Subject, is_within};
use crate::device;
use crate::error::{ErrorRecord, Failed, Report, Result, Status};
use crate::memory::Place;
use crate::tree::{Facts, Fetch};
use crate::types::Type;

/// The library's choice of how much memory holds copies at once.
const CHOICE: usize = 64 << 20;

/// Memory for copies, which is used again and again.
#[derive(Default)]
pub(super) struct Memory(Vec<u8>);

impl Memory {
    /// Room for `n` bytes. Where it had to hold more than `most`, the rest is given back.
    pub(super) fn room(&mut self, n: usize, most: usize, report: &mut Report<'_>) -> Result<&mut [u8]> {
        if self.0.len() > most.max(n) {
            self.0 = Vec::new();
        }
        if let Some(more) = n.checked_sub(self.0.len()) {
            if self.0.try_reserve_exact(more).is_err() {
                return Err(report.out_of_memory(n));
            }
            self.0.resize(n, 0);
        }
        Ok(self.0.get_mut(..n).unwrap_or_default())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Bytes of a buffer that are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    pub node: usize,
    pub k: usize,
    pub at: usize,
    pub n: usize,
}

/// The same, copied.
#[derive(Clone, Copy, Default)]
pub(super) struct Piece<'m> {
    pub wanted: Wanted,
    pub bytes: &'m [u8],
}

/// Reads what the CPU cannot.
pub(super) struct Reader<'a> {
    pub subject: &'a dyn Subject,
    sync: &'a device::Sync,
    /// The most bytes of copies at once, more than none.
    pub most: usize,
    /// Those of them that are for what each row has.
    pub share: usize,
    /// Why the check is not complete.
    incomplete: Option<(Failed, ErrorRecord)>,
    is_over: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(subject: &'a dyn Subject, sync: &'a device::Sync, staging: usize) -> Self {
        let most = if staging == 0 { CHOICE } else { staging };
        Self { subject, sync, most, share: most, incomplete: None, is_over: false }
    }

    /// Whether nothing can be read any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Why the check is not complete, when it is not.
    pub(super) fn into_incomplete(self) -> Option<(Failed, ErrorRecord)> {
        self.incomplete
    }

    /// Does something that may fail; the first failure is kept.
    pub(super) fn attempt<T>(&mut self, work: impl FnOnce(&Self, &mut Report<'_>) -> Result<T>) -> Option<T> {
        let mut record = ErrorRecord::empty();
        match work(self, &mut Report::new(&mut record)) {
            Ok(done) => Some(done),
            Err(failed) => {
                self.incomplete.get_or_insert((failed, record));
                None
            }
        }
    }

    /// As [`Reader::attempt`], after whose failure nothing more is read.
    pub(super) fn attempt_to_read<T>(
        &mut self,
        work: impl FnOnce(&Self, &mut Report<'_>) -> Result<T>,
    ) -> Option<T> {
        let done = self.attempt(work);
        self.is_over |= done.is_none();
        done
    }

    /// Whether the bytes are there: at an address, and no more than somebody said.
    pub(super) fn is_there(&self, Wanted { node, k, at, n }: Wanted) -> bool {
        !self.subject.buffer(node, k).is_null() && is_within(self.subject.stated_size(node, k), at, n)
    }

    /// Copies what is wanted and there into memory; a piece of what is not there is empty.
    pub(super) fn stage<'m, const N: usize>(
        &mut self,
        memory: &'m mut Memory,
        wanted: [Wanted; N],
    ) -> Option<[Piece<'m>; N]> {
        let wanted = wanted.map(|one| if self.is_there(one) { one } else { Wanted { n: 0, ..one } });
        let total = wanted.iter().fold(0, |sum: usize, one| sum.saturating_add(one.n));
        self.attempt_to_read(|this, report| {
            let mut rest = memory.room(total, this.share, report)?;
            let mut fetches = wanted.map(|Wanted { node, k, at, n }| {
                let (into, behind) = core::mem::take(&mut rest).split_at_mut_checked(n).unwrap_or_default();
                rest = behind;
                Fetch { node, k, at, into }
            });
            this.fetch(&mut fetches, report)
        })?;
        let mut rest = memory.bytes();
        Some(wanted.map(|one| {
            let (bytes, behind) = rest.split_at_checked(one.n).unwrap_or_default();
            rest = behind;
            Piece { wanted: one, bytes }
        }))
    }

    pub(super) fn fetch(&self, fetches: &mut [Fetch<'_>], report: &mut Report<'_>) -> Result<()> {
        if fetches.iter().all(|fetch| fetch.into.is_empty()) {
            return Ok(());
        }
        self.subject.fetch(self.sync, fetches, report)
    }

    /// Notes that a check asked for bytes that were not copied, which would pass for having passed.
    pub(super) fn settle(&mut self, staged: &Staged<'_>) {
        if staged.missed.load(Ordering::Relaxed) {
            let path = self.subject.ty();
            let _ = self.attempt_to_read(|_, report| {
                let message = format_args!("expected a copy of each byte that is read, found one missing");
                Err::<(), _>(report.fail_at(
                    Status::Internal,
                    crate::error::Rule::None,
                    &path.path(0),
                    message,
                ))
            });
        }
    }
}

/// A subject of which some bytes are copied.
pub(super) struct Staged<'m> {
    subject: &'m dyn Subject,
    pieces: &'m [Piece<'m>],
    missed: AtomicBool,
}

impl<'m> Staged<'m> {
    pub(super) fn new(subject: &'m dyn Subject, pieces: &'m [Piece<'m>]) -> Self {
        Self { subject, pieces, missed: AtomicBool::new(false) }
    }
}

impl Subject for Staged<'_> {
    fn ty(&self) -> &Type {
        self.subject.ty()
    }

    fn place(&self) -> Place {
        self.subject.place()
    }

    fn shape(&self, i: usize, report: &mut Report<'_>) -> Result<bool> {
        self.subject.shape(i, report)
    }

    fn facts(&self, i: usize) -> Option<Facts> {
        self.subject.facts(i)
    }

    fn whole(&self, i: usize) -> Option<Facts> {
        self.subject.whole(i)
    }

    fn count(&self, i: usize, report: &mut Report<'_>) -> Result<usize> {
        self.subject.count(i, report)
    }

    fn buffer(&self, i: usize, k: usize) -> *const c_void {
        self.subject.buffer(i, k)
    }

    fn stated_size(&self, i: usize, k: usize) -> i64 {
        self.subject.stated_size(i, k)
    }

    fn bytes(&self, i: usize, k: usize, at: usize, n: usize) -> Option<&[u8]> {
        if self.subject.buffer(i, k).is_null() || !is_within(self.subject.stated_size(i, k), at, n) {
            return None;
        }
        if n == 0 {
            return Some(&[]);
        }
        let found =
            self.pieces.iter().filter(|piece| (piece.wanted.node, piece.wanted.k) == (i, k)).find_map(
                |piece| {
                    let from = at.checked_sub(piece.wanted.at)?;
                    piece.bytes.get(from..from.checked_add(n)?)
                },
            );
        if found.is_none() {
            self.missed.store(true, Ordering::Relaxed);
        }
        found
    }

    fn fetch(&self, sync: &device::Sync, wanted: &mut [Fetch<'_>], report: &mut Report<'_>) -> Result<()> {
        self.subject.fetch(sync, wanted, report)
    }

    fn is_elsewhere(&self, i: usize, k: usize, report: &mut Report<'_>) -> Result<bool> {
        self.subject.is_elsewhere(i, k, report)
    }

    fn is_whole(&self) -> bool {
        self.subject.is_whole()
    }
}
