//! The project's own commands: `cargo xtask demo`, `cargo xtask test` and the checks they are made of.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::arithmetic_side_effects,
    reason = "a tool may fail for want of memory, and its counts are small"
)]

mod abi;
mod bench;
mod bench_validate;
mod capi;
mod c_items;
mod c_programs;
mod cargo_checks;
mod demo;
mod docs;
mod elf;
mod expected_skips;
mod exports;
mod fuzz;
mod gpu_bundle;
mod header;
mod headers;
mod interop;
mod job;
mod junit;
mod layers;
mod libtest;
mod models;
mod moved_prefix;
mod mutants;
mod newer_version;
mod packaging;
mod parts;
mod prefix;
mod python;
mod python_package;
mod rust_tokens;
mod schedule;
mod context;
mod cuda_sim;
mod static_archive;
mod tally;
mod tools;
mod wheel;
mod workspace;

use std::env;
use std::process::ExitCode;

use workspace::Workspace;

/// What went wrong is for a person to read.
type Result<T> = std::result::Result<T, String>;

const USAGE: &str = "\
cargo xtask COMMAND

  demo                        build, install and demonstrate the library
  test [--only PART] [--list] everything that is tested; --only may be repeated
  bench [--rounds N]          the benchmarks beside nanoarrow, as a table
  bench validate [--rounds N] validation beside nanoarrow, Arrow C++ and arrow-rs, as a table
  bench python [--rounds N]   hand-overs in Python beside pyarrow, nanoarrow and numpy, as a table
  bench python --instructions the instructions of whole hand-overs, by callgrind
  bench --gate                instructions and allocations against benches/gates.txt
  matrix [--write]            from every Python library to every other through bowstring; --write makes docs/matrix.md
  interop libcudf             the cuDF profiles against the real libcudf; installs about 0.7 GB, needs no GPU
  mutants                     the device code without each of its waits in turn, on the simulated driver
  models                      how threads meet, in every order, under a model checker
  fuzz [TARGET] [--minutes N] the fuzzer with AddressSanitizer, 10 minutes a target
  cuda-sim                    build the simulated CUDA driver's variants, and tell where they are
  gpu-bundle [--check]        the folder that a machine with a GPU runs, target/gpu-bundle; --check runs it here
  setup                       install the tools and packages that the tests need, below target/tools
  layers                      the order of the core's folders, and where unsafe stands
  header [--write]            the public header against the source, and its comments
  rules --write               docs/rules.md from the table of rules
  exports [--write]           the exported symbols against the committed list
  abi [--write]               the binary interface against the committed description
  capi                        what cargo-c installs, against what CMake installs";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<bool> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let workspace = Workspace::find()?;
    match words.as_slice() {
        ["demo"] => demo::run(workspace).map(|()| true),
        ["bench"] => bench::measure(workspace, None).map(|()| true),
        ["bench", "--rounds", n] => {
            let rounds = n.parse().map_err(|_| USAGE.to_owned())?;
            bench::measure(workspace, Some(rounds)).map(|()| true)
        }
        ["bench", "validate"] => bench_validate::measure(workspace, None).map(|()| true),
        ["bench", "validate", "--rounds", n] => {
            let rounds = n.parse().map_err(|_| USAGE.to_owned())?;
            bench_validate::measure(workspace, Some(rounds)).map(|()| true)
        }
        ["bench", "python"] => python_package::bench(workspace, &[]),
        ["bench", "python", "--instructions"] => python_package::bench(workspace, &["--instructions"]),
        ["bench", "python", "--rounds", n] => {
            let rounds: usize = n.parse().map_err(|_| USAGE.to_owned())?;
            python_package::bench(workspace, &["--rounds", &rounds.to_string()])
        }
        ["matrix"] => python_package::matrix(workspace, false),
        ["matrix", "--write"] => python_package::matrix(workspace, true),
        ["bench", "--gate"] => bench::show_gate(workspace),
        ["fuzz", rest @ ..] => fuzz::run(&workspace, rest),
        ["setup"] => tools::Tools::set_up(&workspace).map(|_| true),
        ["gpu-bundle"] => gpu_bundle::run(workspace, false),
        ["gpu-bundle", "--check"] => gpu_bundle::run(workspace, true),
        ["cuda-sim"] => cuda_sim::show(&workspace),
        ["layers"] => only(&workspace, "layers"),
        ["header"] => only(&workspace, "header"),
        ["header", "--write"] => header::rewrite(&workspace).map(|()| true),
        ["rules", "--write"] => header::rewrite_rules(&workspace).map(|()| true),
        ["exports"] => only(&workspace, "exports"),
        ["exports", "--write"] => exports::rewrite(&workspace).map(|()| true),
        ["abi"] => only(&workspace, "abi"),
        ["abi", "--write"] => abi::rewrite(&workspace).map(|()| true),
        ["capi"] => capi::run(workspace),
        ["mutants"] => mutants::run(workspace),
        ["models"] => models::run(&workspace),
        ["interop", "libcudf"] => interop::libcudf(workspace),
        ["test", rest @ ..] => test(&workspace, rest),
        _ => Err(USAGE.to_owned()),
    }
}

fn test(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if words == ["--list"] {
        parts::list();
        return Ok(true);
    }
    let mut chosen = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match (*word, rest.next()) {
            ("--only", Some(part)) => chosen.push((*part).to_owned()),
            _ => return Err(USAGE.to_owned()),
        }
    }
    parts::run(workspace, &chosen)
}

/// A check of its own is the part of that name.
fn only(workspace: &Workspace, part: &str) -> Result<bool> {
    parts::run(workspace, &[part.to_owned()])
}
