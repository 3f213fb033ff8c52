//! The validator: every rule that a schema, an array or a stream's struct can break, and what named consumers make of
//! legal data.
//!
//! A check walks the tree once, in the order of its nodes: a node's structure, then what a consumer makes of it, then
//! what its buffers hold, which is copied first where the CPU may not read it. Each gives the first error; a listener hears
//! of all.
#![forbid(unsafe_code)]

mod conform;
mod contents;
mod layouts;
mod options;
mod parallel;
mod profile;
mod staged;
mod streams;
mod strings;
mod structure;
mod subject;

pub use conform::{Repairs, conform};
pub use options::{Level, Options, Profile};
pub use streams::{device_stream, host_stream};

use crate::abi::{Device, SchemaView};
use crate::array::Array;
use crate::device::{check_foreign, require_copies, require_readable};
use crate::error::{ErrorRecord, Findings, Flow, Report, Result, Rule, Status};
use crate::tree::{At, Survey};
use crate::types::{Type, inspect_schema};

use contents::Contents;
use profile::Target;
use staged::Staging;
use structure::Structure;
use subject::{Subject, Window};

/// Checks a raw schema by every rule about schemas, and whether the profile's consumer takes the type.
pub fn schema(view: SchemaView<'_>, options: &Options, mut findings: Findings<'_, '_>) -> Result<()> {
    if inspect_schema(view, &mut findings).is_break() || findings.has_failed() {
        return findings.finish();
    }
    let Some(target) = Target::of(options, None) else { return findings.finish() };
    match Type::from_schema(view, &mut Report::silent()) {
        Ok(ty) => {
            let _ = profile::check_type(&target, &ty, &mut findings);
            findings.finish()
        }
        Err(failed) => findings.finish_with(|report| {
            report.fail(
                failed.status(),
                format_args!("expected to make a type of the schema, found that it failed"),
            )
        }),
    }
}

/// Checks an array, as far as its window shows it.
pub fn array(array: &Array, options: &Options, findings: Findings<'_, '_>) -> Result<()> {
    match Window::of(array) {
        Some(window) => tree(&window, options, findings),
        None => findings.finish_with(|report| {
            report.fail(Status::Internal, format_args!("expected a node of the array, found none"))
        }),
    }
}

/// Checks a raw struct.
pub fn survey(survey: &Survey<'_>, options: &Options, mut findings: Findings<'_, '_>) -> Result<()> {
    if place(survey, &mut findings).is_break() {
        return findings.finish();
    }
    if survey.root().array.release.is_none() {
        return findings.finish();
    }
    tree(survey, options, findings)
}

fn place(survey: &Survey<'_>, findings: &mut Findings<'_, '_>) -> Flow {
    let root = survey.root();
    if root.array.release.is_none() {
        let message = format_args!("expected a live array, found one that was released or moved out");
        findings.check(|report| Err::<(), _>(report.fail_at(Status::Released, Rule::M2, &"$", message)))?;
        return Flow::Continue(());
    }
    let device = Device { r#type: root.device_type, id: root.device_id };
    findings.check(|report| check_foreign(device, root.sync_event, report))?;
    if let Some((i, found)) = root.reserved.iter().enumerate().find(|(_, found)| **found != 0) {
        let message = format_args!("expected reserved members of 0, found {found:#x} in member {i}");
        findings.broken(Rule::D7, &"$", -1, message)?;
    }
    Flow::Continue(())
}

fn tree<S: Subject>(subject: &S, options: &Options, mut findings: Findings<'_, '_>) -> Result<()> {
    let is_read = options.level != Level::Structure;
    if is_read && require_readable(subject.place(), &options.sync, &mut Report::silent()).is_err() {
        return out_of_reach(subject, options, findings);
    }
    let (level, threads) = (options.level, options.threads);
    let _ = nodes(subject, options, &mut findings, |at, node, findings| match is_read {
        true => Contents { subject, at, node, level, threads, first: 0 }.check(findings),
        false => Flow::Continue(()),
    });
    findings.finish()
}

/// Checks what has to be copied first. Why that cannot be is only said when nothing worse is found.
#[inline(never)]
fn out_of_reach(subject: &dyn Subject, options: &Options, mut findings: Findings<'_, '_>) -> Result<()> {
    let mut record = ErrorRecord::empty();
    let copies = require_copies(subject.place(), &options.sync, &mut Report::new(&mut record));
    let mut staging = copies.is_ok().then(|| Staging::new(subject, options));
    let _ = nodes(subject, options, &mut findings, |at, node, findings| match &mut staging {
        Some(staging) => staging.check(at, node, findings),
        None => Flow::Continue(()),
    });
    let incomplete = copies.err().map(|failed| (failed, record));
    match incomplete.or_else(|| staging.and_then(Staging::into_incomplete)) {
        None => findings.finish(),
        Some((failed, record)) => findings.finish_with(|report| report.again(failed, &record)),
    }
}

fn nodes<'s, S: Subject + ?Sized>(
    subject: &'s S,
    options: &Options,
    findings: &mut Findings<'_, '_>,
    mut contents: impl FnMut(At<'s>, Structure, &mut Findings<'_, '_>) -> Flow,
) -> Flow {
    let target = Target::of(options, Some(subject.place().device));
    if let Some(target) = &target {
        profile::check_place(target, subject, findings)?;
    }
    let ty = subject.ty();
    for index in 0..ty.n_nodes() {
        let Some(node) = ty.node(index) else { continue };
        let at = At { ty, node, index };
        let Some(node) = Structure::check(subject, &at, findings)? else { continue };
        if let Some(target) = &target {
            profile::check_node(target, subject, &at, &node, findings)?;
        }
        contents(at, node, findings)?;
    }
    Flow::Continue(())
}
