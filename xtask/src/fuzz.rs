//! The fuzzer: libFuzzer's targets, built with coverage and AddressSanitizer and run on their committed inputs.

use std::path::PathBuf;

use crate::Result;
use crate::job::{Job, Log};
use crate::workspace::{Workspace, make_folder};

const TARGETS: [&str; 4] = ["schema", "array", "metadata", "tensor"];

/// What cargo-fuzz passes as well, but for the comparisons, which cost more than they find here.
const FLAGS: [&str; 9] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Zsanitizer=address",
    "-Ccodegen-units=16",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "-Cdebuginfo=1",
];
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const MINUTES: u32 = 10;
const LONGEST_PIECE: u32 = 15;

/// `fuzz [TARGET] [--minutes N]`: one target or all, one after the other. New inputs go to target/fuzz/corpus, and what
/// failed to target/fuzz/found, from where it is moved to fuzz/regressions.
pub fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    let (mut chosen, mut minutes) = (TARGETS.to_vec(), MINUTES);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--minutes" => {
                let n = rest.next().and_then(|n| n.parse().ok());
                minutes = n.ok_or("--minutes wants a number")?;
            }
            target if TARGETS.contains(&target) => chosen = vec![target],
            other => return Err(format!("there is no target {other}; there are {}", TARGETS.join(", "))),
        }
    }
    // A log of its own for each target, so that they can run side by side.
    let name = if let [target] = chosen[..] { target } else { "all" };
    let log = Log::create(workspace.target(&format!("logs/fuzz-{name}.log")))?;
    build(workspace, &log).map_err(|error| format!("{}\n{error}", log.tail(60)))?;
    let plant = planted(workspace, &log)?;
    println!("a planted read behind the end is {}", if plant { "found" } else { "NOT found" });
    let mut all_well = plant;
    for target in chosen {
        // A program of ours may not run for longer than the longest test, so long runs are made in pieces.
        let mut left = minutes;
        while left > 0 {
            let piece = left.min(LONGEST_PIECE);
            all_well &= fuzz(workspace, target, piece, &log)?;
            left -= piece;
        }
    }
    Ok(all_well)
}

fn build(workspace: &Workspace, log: &Log) -> Result<String> {
    // The sanitizer is not stable; the compiler takes it from those who say that they know.
    let job = Job::cargo().args(["build", "--locked", "--release", "--target", TRIPLE]);
    let job = job.arg("--manifest-path").arg(workspace.path("fuzz/Cargo.toml"));
    let job = job.arg("--target-dir").arg(workspace.target("fuzz"));
    job.env("RUSTC_BOOTSTRAP", "1").env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}")).check(log)
}

fn program(workspace: &Workspace, target: &str) -> Job {
    let job = Job::new(workspace.target(&format!("fuzz/{TRIPLE}/release/{target}")));
    // The library takes a failed allocation for an answer.
    job.env("ASAN_OPTIONS", "allocator_may_return_null=1")
}

/// Whether the build finds a read of one byte too many: one that does not would never find anything.
fn planted(workspace: &Workspace, log: &Log) -> Result<bool> {
    let corpus = workspace.path("fuzz/corpus/array");
    let job = program(workspace, "array").arg("-runs=0").arg(corpus).env("BOWSTRING_FUZZ_PLANT", "1");
    let finished = job.dir(&folder(workspace, "planted")?).run(log)?;
    Ok(!finished.status.success() && finished.text.contains("AddressSanitizer: heap-buffer-overflow"))
}

/// A folder for the inputs that fail, which are written where the program runs.
fn folder(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let folder = workspace.target(&format!("fuzz/{name}"));
    make_folder(&folder)?;
    Ok(folder)
}

fn fuzz(workspace: &Workspace, target: &str, minutes: u32, log: &Log) -> Result<bool> {
    let own = workspace.target(&format!("fuzz/corpus/{target}"));
    make_folder(&own)?;
    let committed = ["corpus", "regressions"].map(|kind| workspace.path(&format!("fuzz/{kind}/{target}")));
    let job = program(workspace, target).arg(&own).args(committed.iter().filter(|folder| folder.is_dir()));
    let seconds = minutes.saturating_mul(60);
    let limits = [
        // Which inputs are rare is not worth half of the time.
        "-entropic=0",
        "-max_len=600",
        "-timeout=60",
        "-rss_limit_mb=4096",
        "-malloc_limit_mb=3000",
        "-print_final_stats=1",
    ];
    let job = job.args(limits).arg(format!("-max_total_time={seconds}"));
    let finished = job.dir(&folder(workspace, "found")?).run(log)?;
    let is_sound = finished.status.success();
    if !is_sound {
        println!("{}", log.tail(60));
    }
    println!("{}", summary(target, &finished.text, is_sound));
    Ok(is_sound)
}

/// One line for the records.
fn summary(target: &str, text: &str, is_sound: bool) -> String {
    let stat = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("stat::{name}:")));
        line.map_or("?", str::trim).to_owned()
    };
    let last = text.lines().rev().find(|line| line.contains(" cov: ")).unwrap_or_default();
    let word = |name: &str| {
        let after = last.split(name).nth(1).unwrap_or_default();
        after.split_whitespace().next().unwrap_or("?").to_owned()
    };
    format!(
        "{target}: {} runs, {} a second, coverage {}, features {}, corpus {}: {}",
        stat("number_of_executed_units"),
        stat("average_exec_per_sec"),
        word("cov:"),
        word("ft:"),
        word("corp:"),
        if is_sound { "no finding" } else { "FINDING, see target/fuzz/found" }
    )
}
