//! The Python tests.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::thread;

use crate::Result;
use crate::context::Context;
use crate::cuda_sim;
use crate::job::{Job, Log, text_or_empty};
use crate::junit;
use crate::tally::Tally;
use crate::workspace::files_in;

/// Runs pytest against the installed release.
pub fn check(context: &mut Context) -> Result<Tally> {
    let tests = context.workspace.path("tests/python");
    if !tests.is_dir() {
        return Err("there is no tests/python".to_owned());
    }
    let judges = judges(context)?;
    let drivers = cuda_sim::variants(&context.workspace)?;
    let (validator, others): (Vec<PathBuf>, Vec<PathBuf>) =
        files_in(&tests, |name| name.starts_with("test_") && name.ends_with(".py"))
            .into_iter()
            .partition(|file| is_about_the_validator(file));
    // Two processes, because the tests of one use one core.
    let mut halves = Vec::new();
    for (name, files) in [("validator", validator), ("others", others)] {
        let job = context.python()?.env("BOWSTRING_JUDGES", &judges).env("BOWSTRING_CUDA_SIM", &drivers);
        halves.push((format!("python-{name}"), job, files));
    }
    side_by_side(context, halves)
}

/// Runs pytest on each list of files at the same time, and counts what all of them say.
pub fn side_by_side(context: &mut Context, runs: Vec<(String, Job, Vec<PathBuf>)>) -> Result<Tally> {
    let mut halves = Vec::new();
    for (name, job, files) in runs {
        let report = context.workspace.target(&format!("python/{name}.xml"));
        // A report of an earlier run must not be counted.
        let _ = std::fs::remove_file(&report);
        let log = Log::create(context.workspace.target(&format!("logs/{name}.log")))?;
        let job = job.args(["-m", "pytest", "-rs", "-q", "-p", "no:cacheprovider"]);
        let job = job.arg(format!("--junitxml={}", report.display())).args(files);
        halves.push((job.dir(context.workspace.root()), log, report));
    }
    let finished: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = halves
            .into_iter()
            .map(|(job, log, report)| scope.spawn(move || job.run(&log).map(|finished| (finished, report))))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("pytest was lost".to_owned())))
            .collect()
    });
    let mut all = Tally::default();
    for half in finished {
        let (finished, report) = half?;
        context.log.note(&finished.text)?;
        // How much the tests did belongs into the report.
        for figure in finished.text.lines().filter(|line| line.contains(" (at least ")) {
            context.remarks.push(figure.trim().to_owned());
        }
        let mut tally = junit::tally(&text_or_empty(&report));
        if tally == Tally::default() || (!finished.status.success() && tally.failed.is_empty()) {
            tally.failed.push(format!("pytest ended with {} after {}", finished.status, tally.line()));
        }
        all.add(tally);
    }
    Ok(all)
}

fn is_about_the_validator(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    ["test_validate", "test_golden", "test_properties", "test_conform", "test_rules"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Builds the other libraries' validators, which the tests ask about the same arrays.
fn judges(context: &mut Context) -> Result<PathBuf> {
    let nanoarrow = context.tools()?.nanoarrow().to_owned();
    let folder = context.workspace.target("judges");
    let job = Job::cargo().args(["build", "--release", "--locked", "--manifest-path"]);
    let job = job.arg(context.workspace.path("tests/interop/judges/Cargo.toml")).arg("--target-dir");
    job.arg(&folder).env("NANOARROW_SOURCES", nanoarrow).check(&context.log)?;
    Ok(folder.join("release").join(format!("{DLL_PREFIX}judges{DLL_SUFFIX}")))
}
