//! The parts of `cargo xtask test`, in order, and the account of a run.

use std::time::Instant;

use crate::context::Context;
use crate::expected_skips::ExpectedSkips;
use crate::job::Log;
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{
    Result, abi, bench, c_programs, cargo_checks, demo, docs, elf, exports, header, headers, layers,
};
use crate::{cuda_sim, gpu_bundle, moved_prefix, mutants, packaging, python, static_archive};

/// A named part of the tests.
struct Part {
    name: &'static str,
    about: &'static str,
    run: fn(&mut Context) -> Result<Tally>,
}

const PARTS: [Part; 25] = [
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
    Part { name: "gpu-bundle", about: "the bundle for a GPU, where there is none", run: gpu_bundle::check },
    Part { name: "examples", about: "the example programs", run: c_programs::examples },
    Part { name: "demo", about: "the demonstration", run: demo::check },
    Part { name: "bench", about: "instructions and allocations against nanoarrow", run: bench::gate },
    Part { name: "docs", about: "the code in the documentation", run: docs::check },
    Part { name: "abi", about: "the binary interface", run: abi::check },
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
    let chosen = PARTS.iter().filter(|part| only.is_empty() || only.iter().any(|name| name == part.name));
    let skips = ExpectedSkips::load(workspace)?;
    let mut context = Context::new(workspace.clone(), Log::create(workspace.target("logs/test.log"))?);
    let mut lines = Vec::new();
    let mut total = Tally::default();
    for part in chosen {
        println!("== {}: {}", part.name, part.about);
        context.log = Log::create(workspace.target(&format!("logs/{}.log", part.name)))?;
        let started = Instant::now();
        let mut tally = (part.run)(&mut context).unwrap_or_else(|error| {
            let mut tally = Tally::default();
            tally.failed.push(error);
            tally
        });
        skips.judge(part.name, &mut tally);
        show(&tally, &context.log);
        let seconds = started.elapsed().as_secs_f64();
        lines.push(format!("{:<15} {} ({seconds:.1} s)", part.name, tally.line()));
        println!("   {} ({seconds:.1} s)", tally.line());
        total.add(tally);
    }
    println!();
    lines.iter().for_each(|line| println!("{line}"));
    println!("{}", total.line());
    Ok(total.failed.is_empty())
}

fn show(tally: &Tally, log: &Log) {
    for skip in &tally.skipped {
        println!("   skipped: {} {}", skip.test, skip.why);
    }
    if !tally.failed.is_empty() {
        print!("{}", log.tail(400));
        println!("   the whole log is {}", log.path().display());
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
