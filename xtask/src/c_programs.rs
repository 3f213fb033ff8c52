//! The C and C++ tests, plain and under what finds memory faults.

use std::path::PathBuf;

use crate::Result;
use crate::context::Context;
use crate::job::{Job, is_installed, text_or_empty};
use crate::junit;
use crate::prefix::Prefix;
use crate::tally::Tally;

const VALGRIND: [&str; 5] = [
    "valgrind",
    "--error-exitcode=9",
    "--leak-check=full",
    "--show-leak-kinds=definite,indirect,possible",
    "--errors-for-leak-kinds=definite,indirect,possible",
];

/// A fault that was put into a program, and the words that show that it was found.
struct Planted {
    program: &'static str,
    sanitizer_says: &'static str,
    valgrind_says: &'static str,
}

const PLANTED: [Planted; 3] = [
    Planted {
        program: "planted_leak",
        sanitizer_says: "LeakSanitizer: detected memory leaks",
        valgrind_says: "are definitely lost in loss record",
    },
    Planted {
        program: "planted_double_free",
        sanitizer_says: "AddressSanitizer: attempting double-free",
        valgrind_says: "Invalid free()",
    },
    Planted {
        program: "planted_use_after_free",
        sanitizer_says: "AddressSanitizer: heap-use-after-free",
        valgrind_says: "Invalid read of size",
    },
];

/// With the compiler that CMake finds.
pub fn plain(context: &mut Context) -> Result<Tally> {
    let prefix = context.release()?;
    Programs { source: "c_tests", folder: "c", prefix, settings: &[], compilers: &[] }
        .build_and_test(context, &[])
}

/// With clang, whose warnings and layout are its own.
pub fn clang(context: &mut Context) -> Result<Tally> {
    if !is_installed("clang") {
        return Ok(Tally::skip("clang is not installed"));
    }
    let compilers = [("CC", "clang".to_owned()), ("CXX", "clang++".to_owned())];
    let prefix = context.release()?;
    // What Arrow C++ does with the library is the same with either compiler, and its headers are in the orders.
    let settings = ["-DTEST_ARROW_CPP=OFF"];
    Programs { source: "c_tests", folder: "c-clang", prefix, settings: &settings, compilers: &compilers }
        .build_and_test(context, &[])
}

/// With every access checked, in C and in Rust; a leak at exit is a fault.
pub fn address_sanitizer(context: &mut Context) -> Result<Tally> {
    let prefix = context.sanitized("address")?;
    let options = [(
        "ASAN_OPTIONS",
        "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1".to_owned(),
    )];
    let settings = ["-DSANITIZE=address"];
    let programs =
        Programs { source: "c_tests", folder: "c-address", prefix, settings: &settings, compilers: &[] };
    let mut tally = programs.build_and_test(context, &options)?;
    for planted in &PLANTED {
        let job = Job::new(programs.build(context).join(planted.program)).envs(&options);
        tally.count(complaint(context, job, planted.program, planted.sanitizer_says)?);
    }
    Ok(tally)
}

/// Under valgrind, which also sees what uninstrumented code does.
pub fn valgrind(context: &mut Context) -> Result<Tally> {
    if !is_installed("valgrind") {
        return Ok(Tally::skip("valgrind is not installed"));
    }
    let prefix = context.release()?;
    let launcher = format!("-DTEST_LAUNCHER={}", VALGRIND.join(";"));
    let programs =
        Programs { source: "c_tests", folder: "c", prefix, settings: &[&launcher], compilers: &[] };
    let mut tally = programs.build_and_test(context, &[])?;
    for planted in &PLANTED {
        let job = Job::new("valgrind")
            .args(VALGRIND.iter().skip(1))
            .arg(programs.build(context).join(planted.program));
        tally.count(complaint(context, job, planted.program, planted.valgrind_says)?);
    }
    Ok(tally)
}

/// A planted fault is found when the run fails with the words for that very fault.
fn complaint(context: &Context, job: Job, name: &str, words: &str) -> Result<Option<String>> {
    let finished = job.run(&context.log)?;
    let found = !finished.status.success() && finished.text.contains(words);
    Ok((!found).then(|| format!("{name}: expected \"{words}\", and the run ended with {}", finished.status)))
}

/// The examples, which are built and run as a user's project would.
pub fn examples(context: &mut Context) -> Result<Tally> {
    let prefix = context.release()?;
    let programs =
        Programs { source: "examples/programs", folder: "examples", prefix, settings: &[], compilers: &[] };
    programs.build_and_test(context, &[])
}

/// One build of the programs.
struct Programs<'a> {
    source: &'a str,
    folder: &'a str,
    prefix: Prefix,
    settings: &'a [&'a str],
    compilers: &'a [(&'a str, String)],
}

impl Programs<'_> {
    fn build(&self, context: &Context) -> PathBuf {
        context.workspace.target(self.folder)
    }

    fn build_and_test(&self, context: &mut Context, variables: &[(&str, String)]) -> Result<Tally> {
        let source = context.workspace.path(self.source);
        let tools = context.tools()?;
        let build = self.build(context);
        // Each setting is given every time: CMake remembers those of the last configuration.
        tools
            .configure(&source, &build)
            .args(["-DTEST_LAUNCHER=", "-DSANITIZE="])
            .arg(format!("-DCMAKE_PREFIX_PATH={}", self.prefix.path().display()))
            .arg(format!("-DNANOARROW_SOURCE_DIR={}", tools.nanoarrow().display()))
            .args(self.settings)
            .envs(self.compilers)
            .check(&context.log)?;
        // Another part may be compiling at the same time.
        let build_all = tools.job("cmake").arg("--build").arg(&build).args(["--parallel", "2"]);
        build_all.check(&context.log)?;

        let report = build.join("report.xml");
        // A report of an earlier run must not be counted.
        let _ = std::fs::remove_file(&report);
        let job = tools.job("ctest").arg("--test-dir").arg(&build).arg("--output-junit").arg(&report);
        let job = job.args(["--output-on-failure", "--parallel", "2", "--test-output-size-passed", "100000"]);
        let job = context.with_golden(job.env("RUST_BACKTRACE", "0").envs(variables));
        let finished = job.run(&context.log)?;
        let mut tally = junit::tally(&text_or_empty(&report));
        if tally == Tally::default() || (!finished.status.success() && tally.failed.is_empty()) {
            tally.failed.push(format!("ctest ended with {} after {}", finished.status, tally.line()));
        }
        Ok(tally)
    }
}
