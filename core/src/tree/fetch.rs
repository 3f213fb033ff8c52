//! Reading buffers wherever they are, of a tree or of a foreign struct: copies into CPU memory, all under one wait.

use core::ffi::c_void;

use super::{Survey, Tree, role_name};
use crate::device::{Part, Sync, check_sync, is_on, read_parts};
use crate::error::{Failed, Report, Result, Rule};
use crate::memory::{Event, Place};
use crate::types::{Role, Type};

/// Bytes of a buffer of a tree, and where they are copied to.
#[derive(Debug)]
pub(crate) struct Fetch<'a> {
    pub node: usize,
    pub k: usize,
    pub at: usize,
    pub into: &'a mut [u8],
}

/// What buffers are read of.
trait Source {
    fn ty(&self) -> &Type;
    fn place(&self) -> Place;
    fn buffer(&self, node: usize, k: usize) -> *const c_void;
    fn stated_size(&self, node: usize, k: usize) -> i64;
    fn role(&self, node: usize, k: usize) -> Option<Role>;
    /// Whether the library built the buffer in CPU memory.
    fn is_built(&self, node: usize, k: usize) -> bool;
}

impl Source for Tree {
    fn ty(&self) -> &Type {
        Tree::ty(self)
    }

    fn place(&self) -> Place {
        Tree::place(self)
    }

    fn buffer(&self, node: usize, k: usize) -> *const c_void {
        Tree::buffer(self, node, k)
    }

    fn stated_size(&self, node: usize, k: usize) -> i64 {
        Tree::stated_size(self, node, k)
    }

    fn role(&self, node: usize, k: usize) -> Option<Role> {
        self.slot(node, k).map(|slot| slot.role)
    }

    fn is_built(&self, node: usize, k: usize) -> bool {
        Tree::is_built(self, node, k)
    }
}

impl Source for Survey<'_> {
    fn ty(&self) -> &Type {
        Survey::ty(self)
    }

    fn place(&self) -> Place {
        Survey::place(self)
    }

    fn buffer(&self, node: usize, k: usize) -> *const c_void {
        Survey::buffer(self, node, k)
    }

    fn stated_size(&self, node: usize, k: usize) -> i64 {
        Survey::stated_size(self, node, k)
    }

    fn role(&self, node: usize, k: usize) -> Option<Role> {
        let count = self.count(node, &mut Report::silent()).ok()?;
        Some(self.ty().node(node)?.layout.slot_of(k, count)?.role)
    }

    fn is_built(&self, node: usize, k: usize) -> bool {
        Survey::is_built(self, node, k)
    }
}

impl Tree {
    /// Copies bytes that the tree's numbers say that there are into CPU memory, after the tree's event, as `sync` says how to
    /// wait for it, and waits until they are there.
    pub(crate) fn fetch(&self, sync: &Sync, wanted: &mut [Fetch<'_>], report: &mut Report<'_>) -> Result<()> {
        // SAFETY: a tree keeps its buffers, and its producer vouches for as many bytes as its numbers say.
        unsafe { fetch(self, sync, wanted, report) }
    }

    /// Whether a buffer is in CPU memory though the tree is not: sizes that somebody built there.
    pub(crate) fn is_elsewhere(&self, node: usize, k: usize, report: &mut Report<'_>) -> Result<bool> {
        is_elsewhere(self, node, k, report)
    }
}

impl Survey<'_> {
    /// As [`Tree::fetch`], of bytes that the structs' numbers say that there are.
    pub(crate) fn fetch(&self, sync: &Sync, wanted: &mut [Fetch<'_>], report: &mut Report<'_>) -> Result<()> {
        // SAFETY: whoever made the survey keeps the struct as it is, and its producer vouches for as many bytes as its
        // numbers say.
        unsafe { fetch(self, sync, wanted, report) }
    }

    /// As [`Tree::is_elsewhere`].
    pub(crate) fn is_elsewhere(&self, node: usize, k: usize, report: &mut Report<'_>) -> Result<bool> {
        is_elsewhere(self, node, k, report)
    }
}

/// # Safety
/// The bytes are there, which are no more than the source states.
unsafe fn fetch(
    source: &impl Source,
    sync: &Sync,
    wanted: &mut [Fetch<'_>],
    report: &mut Report<'_>,
) -> Result<()> {
    // Before any driver is asked.
    check_sync(source.place(), sync, report)?;
    for Fetch { node, k, at, into } in wanted.iter_mut() {
        if into.is_empty() {
            continue;
        }
        let stated = source.stated_size(*node, *k);
        let end = at.checked_add(into.len()).and_then(|end| i64::try_from(end).ok()).unwrap_or(i64::MAX);
        if source.buffer(*node, *k).is_null() || (stated >= 0 && end > stated) {
            return Err(too_short(source, *node, *k, end, report));
        }
        if !is_elsewhere(source, *node, *k, report)? {
            continue;
        }
        // SAFETY: the memory is the CPU's, and the caller vouches for the bytes.
        let bytes = unsafe {
            let from = source.buffer(*node, *k).cast::<u8>().add(*at);
            core::slice::from_raw_parts(from, into.len())
        };
        into.copy_from_slice(bytes);
        // What is copied need not be copied again below.
        *into = &mut [];
    }
    if wanted.iter().all(|fetch| fetch.into.is_empty()) && source.place().event == Event::NONE {
        return Ok(());
    }
    let parts = wanted.iter_mut().filter(|fetch| !fetch.into.is_empty()).map(|fetch| {
        let from = source.buffer(fetch.node, fetch.k).wrapping_byte_add(fetch.at);
        Part { from, into: &mut *fetch.into }
    });
    // SAFETY: as the caller promises.
    unsafe { read_parts(source.place(), sync, parts, report) }
}

fn is_elsewhere(source: &impl Source, node: usize, k: usize, report: &mut Report<'_>) -> Result<bool> {
    if source.is_built(node, k) {
        return Ok(true);
    }
    if source.role(node, k) != Some(Role::VariadicSizes) {
        return Ok(false);
    }
    Ok(!is_on(source.place().device, source.buffer(node, k), report)?)
}

#[cold]
fn too_short(source: &impl Source, node: usize, k: usize, needed: i64, report: &mut Report<'_>) -> Failed {
    let role = source.role(node, k).map_or("memory", role_name);
    let path = source.ty().path(node);
    if source.buffer(node, k).is_null() {
        let message = format_args!("expected {needed} bytes of {role} in buffer {k}, found NULL");
        return report.broken(Rule::A5, &path, message);
    }
    let stated = source.stated_size(node, k);
    let message = format_args!("expected {needed} bytes of {role} in buffer {k}, found {stated}");
    report.broken(Rule::A4, &path, message)
}
