//! The parts of `cargo xtask test`, what each has to wait for, and the account of a run.

use std::thread::available_parallelism;
use std::time::Instant;

use crate::context::Context;
use crate::expected_skips::ExpectedSkips;
use crate::job::Log;
use crate::schedule::{self, Piece};
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{
    Result, abi, bench, c_programs, cargo_checks, demo, docs, elf, exports, header, headers, layers,
};
use crate::{cuda_sim, gpu_bundle, moved_prefix, mutants, packaging, python, python_package, static_archive};

/// A named part of the tests.
struct Part {
    name: &'static str,
    about: &'static str,
    run: fn(&mut Context) -> Result<Tally>,
}

const PARTS: [Part; 27] = [
    Part { name: "fmt", about: "the Rust code's format", run: cargo_checks::fmt },
    Part { name: "clippy", about: "lints, warnings denied", run: cargo_checks::clippy },
    Part {
        name: "layers",
        about: "the order of the core's folders",
        run: |context| layers::check(&context.workspace),
    },
    Part {
        name: "waits",
        about: "every wait of the device code has a name",
        run: |context| mutants::check_registry(&context.workspace),
    },
    Part { name: "rust", about: "all Rust tests; the boundary's again, optimised", run: cargo_checks::tests },
    Part {
        name: "header",
        about: "the public header",
        run: |context| header::check(&context.workspace, &context.log),
    },
    Part { name: "headers", about: "the header beside others, in every order", run: headers::check },
    Part {
        name: "exports",
        about: "the exported symbols",
        run: |context| exports::check(&context.workspace, &context.log),
    },
    Part {
        name: "elf",
        about: "how the library was linked",
        run: |context| elf::check(&context.workspace, &context.log),
    },
    Part { name: "install", about: "CMake build and installation", run: install },
    Part { name: "c", about: "C and C++ tests against the installation", run: c_programs::plain },
    Part { name: "static-archive", about: "the static library beside others", run: static_archive::check },
    Part { name: "move-prefix", about: "the installation, moved", run: moved_prefix::check },
    Part { name: "packaging", about: "the ways to get at the library", run: packaging::check },
    Part { name: "c-clang", about: "the C tests with clang", run: c_programs::clang },
    Part { name: "c-asan", about: "the C tests with AddressSanitizer", run: c_programs::address_sanitizer },
    Part { name: "c-valgrind", about: "the C tests under valgrind", run: c_programs::valgrind },
    Part { name: "cuda-sim", about: "the simulated CUDA driver's self-test", run: cuda_sim::check },
    Part { name: "python", about: "the Python tests", run: python::check },
    Part { name: "wheel", about: "the Python package's wheel", run: python_package::check_wheel },
    Part { name: "python-package", about: "the Python package", run: python_package::check },
    Part { name: "gpu-bundle", about: "the bundle for a GPU, where there is none", run: gpu_bundle::check },
    Part { name: "examples", about: "the example programs", run: c_programs::examples },
    Part { name: "demo", about: "the demonstration", run: demo::check },
    Part { name: "bench", about: "instructions and allocations against nanoarrow", run: bench::gate },
    Part { name: "docs", about: "the code in the documentation", run: docs::check },
    Part { name: "abi", about: "the binary interface", run: abi::check },
];

/// Two at once fill two cores, whose compilers and tests do not always have work for both. More would only take memory.
const LANES: usize = 2;

/// What begins first, because much waits for it or because it takes longest.
const FIRST: [&str; 6] = ["fmt", "layers", "waits", "exports", "rust", "wheel"];

/// What a part needs of another: its outputs, its folder, or cargo's lock on what both compile.
const AFTER: [(&str, &[&str]); 21] = [
    ("clippy", &["rust"]),
    ("header", &["rust"]),
    ("abi", &["clippy", "header"]),
    ("elf", &["exports"]),
    ("install", &["exports"]),
    ("c", &["install"]),
    ("static-archive", &["install"]),
    ("move-prefix", &["install"]),
    ("packaging", &["install"]),
    ("c-clang", &["install"]),
    ("c-asan", &["install"]),
    ("c-valgrind", &["c"]),
    ("python", &["install"]),
    ("gpu-bundle", &["install"]),
    ("examples", &["install"]),
    ("demo", &["install"]),
    ("bench", &["install"]),
    ("docs", &["install", "wheel"]),
    ("python-package", &["install", "wheel"]),
    ("headers", &["install"]),
    ("cuda-sim", &["install"]),
];

/// Shows the parts.
pub fn list() {
    for part in &PARTS {
        println!("{:<15} {}", part.name, part.about);
    }
}

/// Runs all parts, or those named. Whether all is well comes back.
pub fn run(workspace: &Workspace, only: &[String]) -> Result<bool> {
    if let Some(unknown) = only.iter().find(|name| PARTS.iter().all(|part| part.name != name.as_str())) {
        return Err(format!("there is no part {unknown}; `cargo xtask test --list` names them"));
    }
    let chosen = in_order(only);
    let skips = ExpectedSkips::load(workspace)?;
    let run = Context::new(workspace.clone(), Log::create(workspace.target("logs/test.log"))?);
    let lanes = available_parallelism().map_or(1, usize::from).min(LANES);
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut total = Tally::default();
    let began = Instant::now();
    let work = |place: usize| {
        let part = chosen.get(place).ok_or("there is no such part")?;
        let mut context = run.part(Log::create(workspace.target(&format!("logs/{}.log", part.name)))?);
        let started = Instant::now();
        let mut tally = (part.run)(&mut context).unwrap_or_else(Tally::failure);
        skips.judge(part.name, &mut tally);
        Ok((tally, context, started.elapsed().as_secs_f64()))
    };
    schedule::run(&pieces(&chosen), lanes, work, |place, result| {
        let Some(part) = chosen.get(place) else { return };
        println!("== {}: {}", part.name, part.about);
        let result: Result<_> = result.unwrap_or_else(|_| Err("it panicked".to_owned()));
        let (tally, seconds) = match result {
            Ok((tally, context, seconds)) => {
                context.remarks.iter().for_each(|remark| println!("   {remark}"));
                show(&tally, Some(&context.log));
                (tally, seconds)
            }
            Err(error) => {
                let tally = Tally::failure(error);
                show(&tally, None);
                (tally, 0.0)
            }
        };
        let line = tally.line();
        println!("   {line} ({seconds:.1} s)");
        let listed = PARTS.iter().position(|known| known.name == part.name).unwrap_or(usize::MAX);
        lines.push((listed, format!("{:<15} {line} ({seconds:.1} s)", part.name)));
        total.add(tally);
    });
    // Each part says what it found, so that none can get lost on the way.
    if lines.len() != chosen.len() {
        total.failed.push(format!("{} of {} parts have run", lines.len(), chosen.len()));
    }
    lines.sort();
    println!();
    lines.iter().for_each(|(_, line)| println!("{line}"));
    if chosen.len() > 1 {
        println!("{lanes} parts at a time took {:.0} s", began.elapsed().as_secs_f64());
    }
    println!("{}", total.line());
    Ok(total.failed.is_empty())
}

/// All parts or those named, those first that are to begin first.
fn in_order(only: &[String]) -> Vec<&'static Part> {
    let is_first = |part: &&Part| FIRST.iter().position(|name| *name == part.name).unwrap_or(FIRST.len());
    let is_chosen = |part: &&Part| only.is_empty() || only.iter().any(|name| name == part.name);
    let mut chosen: Vec<&Part> = PARTS.iter().filter(is_chosen).collect();
    chosen.sort_by_key(is_first);
    chosen
}

/// What each of some parts waits for among the others of them.
fn pieces(chosen: &[&Part]) -> Vec<Piece> {
    let place = |name: &&str| chosen.iter().position(|part| part.name == *name);
    let after = |part: &Part| {
        let needs = AFTER.iter().filter(|(name, _)| *name == part.name).flat_map(|(_, needs)| needs.iter());
        needs.filter_map(place).collect()
    };
    chosen.iter().map(|part| Piece { after: after(part) }).collect()
}

fn show(tally: &Tally, log: Option<&Log>) {
    for skip in &tally.skipped {
        println!("   skipped: {} {}", skip.test, skip.why);
    }
    if !tally.failed.is_empty() {
        if let Some(log) = log {
            print!("{}", log.tail(400));
            println!("   the whole log is {}", log.path().display());
        }
        for complaint in &tally.failed {
            println!("   FAILED: {}", complaint.replace('\n', "\n   "));
        }
    }
}

/// One count for each file that an installation has to have.
fn install(context: &mut Context) -> Result<Tally> {
    let release = context.release()?;
    let real = format!("lib/libbowstring.so.{}", context.workspace.version()?);
    let files = [
        real.as_str(),
        "lib/libbowstring.so",
        "lib/libbowstring.a",
        "lib/pkgconfig/bowstring.pc",
        "lib/cmake/bowstring/bowstringConfig.cmake",
        "lib/cmake/bowstring/bowstringConfigVersion.cmake",
        "include/bowstring.h",
        "include/bowstring.cdef.h",
        "include/bowstring.hpp",
        "include/bowstring/arrow_c_abi.h",
    ];
    let mut tally = Tally::default();
    for file in files {
        tally.expect(release.path().join(file).is_file(), || format!("{file} was not installed"));
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_can_run_and_only_they_are_named() {
        let known = |name: &str| PARTS.iter().any(|part| part.name == name);
        assert!(FIRST.iter().all(|name| known(name)));
        assert!(AFTER.iter().all(|(name, needs)| known(name) && needs.iter().all(|name| known(name))));
        let chosen = in_order(&[]);
        assert_eq!(chosen.len(), PARTS.len());
        let mut done: Vec<usize> = Vec::new();
        let list = pieces(&chosen);
        // Whatever waits in a circle never comes.
        for _ in 0..list.len() {
            let next = |place: &usize| {
                !done.contains(place) && list[*place].after.iter().all(|earlier| done.contains(earlier))
            };
            done.push((0..list.len()).find(next).unwrap());
        }
    }

    #[test]
    fn a_chosen_part_waits_for_chosen_ones_only() {
        let chosen = in_order(&["c-valgrind".to_owned(), "c".to_owned()]);
        let names: Vec<&str> = chosen.iter().map(|part| part.name).collect();
        assert_eq!(names, ["c", "c-valgrind"]);
        let after: Vec<_> = pieces(&chosen).into_iter().map(|piece| piece.after).collect();
        assert_eq!(after, [vec![], vec![0]]);
    }
}
