//! What cargo itself checks: format, lints and the Rust tests.

use crate::Result;
use crate::context::Context;
use crate::cuda_sim;
use crate::job::Job;
use crate::libtest;
use crate::tally::Tally;

/// The format.
pub fn fmt(context: &mut Context) -> Result<Tally> {
    one(context, &["fmt", "--all", "--check"])
}

/// The lints.
pub fn clippy(context: &mut Context) -> Result<Tally> {
    one(context, &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"])
}

/// Every Rust test, and those of the C boundary once more as users get it: optimised.
pub fn tests(context: &mut Context) -> Result<Tally> {
    let mut tally = run(context, &["--workspace"])?;
    // What compares files says the same in both.
    let args = [
        "--profile",
        "optimised",
        "--package",
        "bowstring-capi",
        "--lib",
        "--test",
        "allocations",
        "--test",
        "device_allocations",
        "--test",
        "fuzz_replay",
    ];
    tally.add(run(context, &args)?);
    Ok(tally)
}

fn one(context: &Context, args: &[&str]) -> Result<Tally> {
    Job::cargo().args(args).dir(context.workspace.root()).check(&context.log)?;
    Ok(Tally::pass())
}

fn run(context: &Context, args: &[&str]) -> Result<Tally> {
    let job = Job::cargo().args(["test", "--locked", "--no-fail-fast"]).args(args).args(libtest::SHOW_OUTPUT);
    let job = job.env("BOWSTRING_CUDA_SIM", cuda_sim::variants(&context.workspace)?);
    let finished = context.with_golden(job.dir(context.workspace.root())).run(&context.log)?;
    Ok(libtest::tally(&finished))
}
