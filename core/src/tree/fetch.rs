//! Reading a tree's buffers wherever they are: copies into CPU memory, all under one wait.

use super::{Tree, role_name};
use crate::device::{Part, Sync, check_sync, is_on, read_parts};
use crate::error::{Failed, Report, Result, Rule};
use crate::memory::Event;
use crate::types::Role;

/// Bytes of a buffer of a tree, and where they are copied to.
#[derive(Debug)]
pub(crate) struct Fetch<'a> {
    pub node: usize,
    pub k: usize,
    pub at: usize,
    pub into: &'a mut [u8],
}

impl Tree {
    /// Copies bytes that the tree's numbers say that there are into CPU memory, after the tree's event, as `sync` says how to
    /// wait for it, and waits until they are there.
    pub(crate) fn fetch(&self, sync: &Sync, wanted: &mut [Fetch<'_>], report: &mut Report<'_>) -> Result<()> {
        // Before any driver is asked.
        check_sync(self.place(), sync, report)?;
        for Fetch { node, k, at, into } in wanted.iter_mut() {
            if into.is_empty() {
                continue;
            }
            let stated = self.stated_size(*node, *k);
            let end = at.checked_add(into.len()).and_then(|end| i64::try_from(end).ok()).unwrap_or(i64::MAX);
            if self.buffer(*node, *k).is_null() || (stated >= 0 && end > stated) {
                return Err(self.too_short(*node, *k, end, report));
            }
            if !self.is_elsewhere(*node, *k, report)? {
                continue;
            }
            // SAFETY: the memory is the CPU's, and the producer vouches for as many bytes as its numbers say.
            let bytes = unsafe {
                let from = self.buffer(*node, *k).cast::<u8>().add(*at);
                core::slice::from_raw_parts(from, into.len())
            };
            into.copy_from_slice(bytes);
            // What is copied need not be copied again below.
            *into = &mut [];
        }
        if wanted.iter().all(|fetch| fetch.into.is_empty()) && self.place().event == Event::NONE {
            return sync.mode(report).map(|_| ());
        }
        let parts = wanted.iter_mut().filter(|fetch| !fetch.into.is_empty()).map(|fetch| {
            let from = self.buffer(fetch.node, fetch.k).wrapping_byte_add(fetch.at);
            Part { from, into: &mut *fetch.into }
        });
        // SAFETY: the producer vouches for as many bytes as its numbers say.
        unsafe { read_parts(self.place(), sync, parts, report) }
    }

    /// Whether a buffer is in CPU memory though the tree is not: sizes that somebody built there.
    pub(crate) fn is_elsewhere(&self, node: usize, k: usize, report: &mut Report<'_>) -> Result<bool> {
        if self.is_built(node, k) {
            return Ok(true);
        }
        if self.slot(node, k).is_none_or(|slot| slot.role != Role::VariadicSizes) {
            return Ok(false);
        }
        Ok(!is_on(self.device(), self.buffer(node, k), report)?)
    }

    #[cold]
    fn too_short(&self, node: usize, k: usize, needed: i64, report: &mut Report<'_>) -> Failed {
        let role = self.slot(node, k).map_or("memory", |slot| role_name(slot.role));
        let path = self.ty().path(node);
        if self.buffer(node, k).is_null() {
            let message = format_args!("expected {needed} bytes of {role} in buffer {k}, found NULL");
            return report.broken(Rule::A5, &path, message);
        }
        let stated = self.stated_size(node, k);
        let message = format_args!("expected {needed} bytes of {role} in buffer {k}, found {stated}");
        report.broken(Rule::A4, &path, message)
    }
}
