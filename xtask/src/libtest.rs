//! What Rust's own test programs print.

use crate::job::Finished;
use crate::tally::{Skip, Tally};

/// Makes test programs show what passed tests printed: that is where a skip says why.
pub const SHOW_OUTPUT: [&str; 2] = ["--", "--show-output"];

/// Counts the tests of a finished `cargo test`.
pub fn tally(finished: &Finished) -> Tally {
    let mut tally = count(&finished.text);
    if !finished.status.success() && tally.failed.is_empty() {
        tally.failed.push(format!("cargo test ended with {}", finished.status));
    }
    tally
}

fn count(text: &str) -> Tally {
    let mut tally = Tally::default();
    let mut program = String::new();
    // The test whose output is being shown, and whether it had passed.
    let mut shown: Option<String> = None;
    let mut in_successes = false;
    let mut skipped_but_passed = 0;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(running) = trimmed.strip_prefix("Running ").or_else(|| trimmed.strip_prefix("Doc-tests "))
        {
            program = program_name(running);
        } else if let Some(result) = trimmed.strip_prefix("test result: ") {
            tally.passed += figure(result, " passed");
            shown = None;
            in_successes = false;
        } else if trimmed == "successes:" || trimmed == "failures:" {
            in_successes = trimmed == "successes:";
            shown = None;
        } else if let Some(name) =
            trimmed.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            shown = in_successes.then(|| name.to_owned());
        } else if let (Some(name), Some(why)) = (&shown, trimmed.strip_prefix("skipped:")) {
            // It was counted as passed, but it has shown nothing.
            tally.skipped.push(Skip { test: name.clone(), why: why.trim().to_owned() });
            skipped_but_passed += 1;
            shown = None;
        } else if let Some((name, outcome)) =
            trimmed.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        {
            match outcome.split(',').next() {
                Some("FAILED") => tally.failed.push(format!("{program}: {name}")),
                Some("ignored") => {
                    let why = outcome.split_once(',').map_or("ignored", |(_, why)| why.trim()).to_owned();
                    tally.skipped.push(Skip { test: name.to_owned(), why });
                }
                _ => {}
            }
        }
    }
    tally.passed = tally.passed.saturating_sub(skipped_but_passed);
    tally
}

/// `tests/header.rs (target/debug/deps/header-1f2e)` is what cargo shows of a program.
fn program_name(running: &str) -> String {
    running.split(" (").next().unwrap_or(running).trim_start_matches("unittests ").to_owned()
}

fn figure(result: &str, what: &str) -> usize {
    let before = result.split(what).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_failures_and_skips_are_counted() {
        let text = "\
     Running unittests src/lib.rs (target/debug/deps/x-1)

running 4 tests
test a ... ok
test b::c ... FAILED
test d ... ignored, slow
test g ... ok

successes:

---- g stdout ----
skipped: no golden files
skipped: twice


successes:
    a
    g

failures:

---- b::c stdout ----
skipped: not this
thread 'b::c' panicked

failures:
    b::c

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests x
test src/lib.rs - f (line 3) ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
";
        let found = count(text);
        assert_eq!(found.passed, 2);
        assert_eq!(found.failed, ["src/lib.rs: b::c"]);
        let skips: Vec<_> =
            found.skipped.iter().map(|skip| (skip.test.as_str(), skip.why.as_str())).collect();
        assert_eq!(skips, [("d", "slow"), ("g", "no golden files")]);
    }
}
