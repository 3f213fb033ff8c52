//! What cargo itself checks: format, lints and the Rust tests.

use crate::Result;
use crate::job::Job;
use crate::libtest;
use crate::session::Session;
use crate::tally::Tally;

/// The format.
pub fn fmt(session: &mut Session) -> Result<Tally> {
    one(session, &["fmt", "--all", "--check"])
}

/// The lints.
pub fn clippy(session: &mut Session) -> Result<Tally> {
    one(session, &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"])
}

/// Every Rust test, and those of the C boundary once more as users get it: optimised.
pub fn tests(session: &mut Session) -> Result<Tally> {
    let mut tally = run(session, &["--workspace"], &[])?;
    // Linking each test with whole-program optimisation takes minutes and checks the linker.
    let quick = [("CARGO_PROFILE_RELEASE_LTO", "false"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")];
    tally.add(run(session, &["--release", "--package", "bowstring-capi"], &quick)?);
    Ok(tally)
}

fn one(session: &Session, args: &[&str]) -> Result<Tally> {
    Job::cargo().args(args).dir(session.workspace.root()).check(&session.log)?;
    Ok(Tally::pass())
}

fn run(session: &Session, args: &[&str], variables: &[(&str, &str)]) -> Result<Tally> {
    let job = Job::cargo().args(["test", "--locked", "--no-fail-fast"]).args(args).args(libtest::SHOW_OUTPUT);
    let job = variables.iter().fold(job, |job, (name, value)| job.env(name, value));
    let finished = session.with_golden(job.dir(session.workspace.root())).run(&session.log)?;
    Ok(libtest::tally(&finished))
}
