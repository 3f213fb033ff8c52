//! The Python tests.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::PathBuf;

use crate::Result;
use crate::context::Context;
use crate::cuda_sim;
use crate::job::{Job, text_or_empty};
use crate::junit;
use crate::tally::Tally;

/// Runs pytest against the installed release.
pub fn check(context: &mut Context) -> Result<Tally> {
    let tests = context.workspace.path("tests/python");
    if !tests.is_dir() {
        return Err("there is no tests/python".to_owned());
    }
    let report = context.workspace.target("python/report.xml");
    // A report of an earlier run must not be counted.
    let _ = std::fs::remove_file(&report);
    let judges = judges(context)?;
    let job = context.python()?.env("BOWSTRING_JUDGES", judges);
    let job = job.env("BOWSTRING_CUDA_SIM", cuda_sim::variants(&context.workspace)?);
    let job = job.args(["-m", "pytest", "-rs", "-q", "-p", "no:cacheprovider"]);
    let job = job.arg(format!("--junitxml={}", report.display())).arg(&tests);
    let finished = job.dir(context.workspace.root()).run(&context.log)?;
    // How much the tests did belongs into the report.
    for figure in finished.text.lines().filter(|line| line.contains(" (at least ")) {
        println!("   {}", figure.trim());
    }
    let mut tally = junit::tally(&text_or_empty(&report));
    if tally == Tally::default() || (!finished.status.success() && tally.failed.is_empty()) {
        tally.failed.push(format!("pytest ended with {} after {}", finished.status, tally.line()));
    }
    Ok(tally)
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
