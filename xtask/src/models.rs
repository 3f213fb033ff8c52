//! Models of how the library's threads meet, run in every order by a model checker.

use crate::Result;
use crate::job::{Job, Log};
use crate::libtest;
use crate::workspace::Workspace;

/// Runs every model; whether all hold comes back.
pub fn run(workspace: &Workspace) -> Result<bool> {
    let log = Log::create(workspace.target("logs/models.log"))?;
    let job = Job::cargo().args(["test", "--locked", "--no-fail-fast"]);
    let job = job.arg("--manifest-path").arg(workspace.path("models/Cargo.toml"));
    let job = job.arg("--target-dir").arg(workspace.target("models"));
    let finished = job.args(libtest::SHOW_OUTPUT).run(&log)?;
    let tally = libtest::tally(&finished);
    finished.text.lines().filter(|line| line.ends_with(" orders")).for_each(|line| println!("{line}"));
    if !tally.failed.is_empty() {
        print!("{}", log.tail(60));
    }
    println!("{}", tally.line());
    Ok(tally.failed.is_empty() && tally.passed > 0)
}
