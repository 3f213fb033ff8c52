//! The demonstration: real programs that hand each other columns through the installed library.

use crate::Result;
use crate::context::Context;
use crate::job::{Finished, Job, Log};
use crate::tally::Tally;
use crate::tools::announce;
use crate::workspace::Workspace;

/// A demonstration that compares fewer buffers than this has lost some of its pieces.
const FEWEST_BUFFERS: u64 = 8;

/// The command: each step is told, the demonstration's output comes through.
pub fn run(workspace: Workspace) -> Result<()> {
    let log = Log::create(workspace.target("logs/demo.log"))?;
    let mut context = Context::new(workspace, log);
    let job = prepare(&mut context).map_err(|error| {
        format!("{}\n{error}\nThe log is {}", context.log.tail(60), context.log.path().display())
    })?;
    judge(&job.stream()?)
}

/// The same as a part of the tests.
pub fn check(context: &mut Context) -> Result<Tally> {
    let finished = prepare(context)?.run(&context.log)?;
    judge(&finished)?;
    Ok(Tally::pass())
}

fn prepare(context: &mut Context) -> Result<Job> {
    let tools = context.tools()?;
    let release = announce("building and installing the library", || context.release())?;
    let build = context.workspace.target("demo");
    let log = context.log.clone();
    announce("building the demo's C program", || {
        let job = tools.configure(&context.workspace.path("examples/demo"), &build);
        let job = job.arg(format!("-DCMAKE_PREFIX_PATH={}", release.path().display()));
        job.arg(format!("-DNANOARROW_SOURCE_DIR={}", tools.nanoarrow().display())).check(&log)?;
        tools.job("cmake").arg("--build").arg(&build).check(&log)
    })?;
    let job = context.python()?.args(["-u", "examples/demo/demo.py", "--prefix", "target/prefix"]);
    Ok(job.args(["--build", "target/demo"]).dir(context.workspace.root()))
}

/// Holds when the program succeeded and every one of enough buffers kept its address.
fn judge(finished: &Finished) -> Result<()> {
    if !finished.status.success() {
        return Err(format!("the demo ended with {}", finished.status));
    }
    let last = finished.text.trim_end().lines().last().unwrap_or_default();
    match counts(last) {
        Some((same, all)) if same == all && all >= FEWEST_BUFFERS => Ok(()),
        _ => Err(format!(
            "the demo's last line: expected zero-copy: N/N buffers, N >= {FEWEST_BUFFERS}; found: {last}"
        )),
    }
}

fn counts(line: &str) -> Option<(u64, u64)> {
    let (same, all) = line.strip_prefix("zero-copy: ")?.strip_suffix(" buffers")?.split_once('/')?;
    Some((same.parse().ok()?, all.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_read() {
        assert_eq!(counts("zero-copy: 8/9 buffers"), Some((8, 9)));
        assert_eq!(counts("zero-copy: all buffers"), None);
    }
}
