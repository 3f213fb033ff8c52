//! The Python tests.

use crate::Result;
use crate::context::Context;
use crate::job::text_or_empty;
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
    let job = context.python()?.args(["-m", "pytest", "-rs", "-q", "-p", "no:cacheprovider"]);
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
