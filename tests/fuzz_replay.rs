//! Every input that the fuzzer once found worth keeping, without the fuzzer: in memory that ends where a page begins that
//! nobody may read. `cargo xtask fuzz` is the fuzzer.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may allocate and panic"
)]

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::path::{Path, PathBuf};

/// A target: its name, and what runs one input.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 4] = [
    ("schema", fuzz::run_schema),
    ("array", fuzz::run_array),
    ("metadata", fuzz::run_metadata),
    ("tensor", fuzz::run_tensor),
];

/// The fewest inputs that a target has: an emptied folder must not pass for a good one.
const LEAST: usize = 60;

fn inputs(folder: &str, target: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder).join(target);
    let mut files: Vec<PathBuf> =
        path.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

// One test, because each input counts what is alive in the whole process.
#[test]
fn inputs_are_replayed() {
    let only = std::env::var_os("BOWSTRING_FUZZ_INPUT").map(PathBuf::from);
    for (target, run) in TARGETS {
        let (corpus, regressions) = (inputs("corpus", target), inputs("regressions", target));
        if let Some(file) = &only {
            if file.parent().is_some_and(|folder| folder.ends_with(target)) {
                run(&std::fs::read(file).expect("the input is there"));
            }
            continue;
        }
        assert!(corpus.len() >= LEAST, "{} inputs for {target}, expected {LEAST} or more", corpus.len());
        for file in corpus.iter().chain(&regressions) {
            let bytes = std::fs::read(file).expect("the input was listed just now");
            if let Err(payload) = std::panic::catch_unwind(|| run(&bytes)) {
                eprintln!("this was {}", file.display());
                std::panic::resume_unwind(payload);
            }
        }
        println!(
            "{target}: {} inputs, {} of them had failed once",
            corpus.len() + regressions.len(),
            regressions.len()
        );
    }
}

/// The memory of the replay is good for something: one byte too many is found.
#[test]
#[cfg(target_os = "linux")]
fn a_byte_too_many_is_found() {
    use std::os::unix::process::ExitStatusExt;
    const SIGSEGV: i32 = 11;

    // An array of integers with a bitmap.
    let input = inputs("regressions", "array").into_iter().find(|file| file.ends_with("bitmap-taken-away"));
    let input = input.expect("the input is there");
    let replay = |variables: &[(&str, &str)]| {
        let program = std::env::current_exe().expect("this program is there");
        let mut again = std::process::Command::new(program);
        again.args(["--exact", "inputs_are_replayed"]).env("BOWSTRING_FUZZ_INPUT", &input);
        again.envs(variables.iter().copied()).output().expect("this program can be run").status
    };
    let (sound, planted) = (replay(&[]), replay(&[("BOWSTRING_FUZZ_PLANT", "1")]));
    assert!(sound.success(), "without the planted fault: {sound}");
    assert_eq!(planted.signal(), Some(SIGSEGV), "with the planted fault: {planted}");
}
