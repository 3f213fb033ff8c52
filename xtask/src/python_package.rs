//! The Python package: the wheel, its copy of the library, its types, and its tests.

use std::path::PathBuf;

use crate::Result;
use crate::context::Context;
use crate::job::{Job, Log};
use crate::tally::Tally;
use crate::tools::announce;
use crate::wheel::Wheel;
use crate::workspace::{Workspace, files_in, read};
use crate::{cuda_sim, elf, exports, python};

const SONAME: &str = "libbowstring_python.so";
const WHEEL_TESTS: &str = "xtask/fixtures/python_package";

/// What the wheel is held to before anything of it runs.
pub fn check_wheel(context: &mut Context) -> Result<Tally> {
    let wheel = context.wheel()?;
    let mut tally = Tally::default();
    tally.expect(wheel.lock_held(), || "the build changed python/Cargo.lock".to_owned());
    let (ours, theirs) = (context.workspace.version()?, crate_version(context)?);
    tally.expect(ours == theirs, || format!("python/Cargo.toml: expected version {ours}, found {theirs}"));
    tally.add(library(context, &wheel)?);
    Ok(tally)
}

/// What is in the wheel, the package's types, and its tests.
pub fn check(context: &mut Context) -> Result<Tally> {
    let wheel = context.wheel()?;
    let mut tally = Tally::default();
    let types = types(context)?;
    let log = Log::create(context.workspace.target("logs/mypy.log"))?;
    let runs = runs(context, &wheel)?;
    let (types, tests) = std::thread::scope(|scope| {
        let types = scope.spawn(|| types.run(&log));
        (types.join(), python::side_by_side(context, runs))
    });
    let types = types.unwrap_or_else(|_| Err("mypy was lost".to_owned()))?;
    tally.expect(types.status.success(), || {
        format!("mypy, as strict as python/pyproject.toml says:\n{}", types.text)
    });
    tally.add(tests?);
    Ok(tally)
}

/// The copy of the library that the wheel carries.
fn library(context: &Context, wheel: &Wheel) -> Result<Tally> {
    let library = wheel.library()?;
    let mut tally = elf::check_library(&library, SONAME, &context.log)?;
    let (exported, listed) = (exports::defined(&library, true)?, exports::committed(&context.workspace)?);
    let difference: Vec<&String> = exported.symmetric_difference(&listed).collect();
    tally.expect(difference.is_empty() && !listed.is_empty(), || {
        format!("the wheel's exports differ from the list in {difference:?}")
    });
    Ok(tally)
}

/// The types of the whole package, as its sources have them.
fn types(context: &mut Context) -> Result<Job> {
    let job = Job::new(context.tools()?.python()).without("PYTHONPATH").args(["-m", "mypy"]);
    let cache = context.workspace.target("python-package/mypy");
    let job = job.arg(format!("--cache-dir={}", cache.display())).args(["--package", "bowstring"]);
    Ok(job.dir(&context.workspace.path("python")))
}

/// The tests of the wheel and of the package in two processes, because the tests of one use one core.
fn runs(context: &mut Context, wheel: &Wheel) -> Result<Vec<(String, Job, Vec<PathBuf>)>> {
    let release = context.release()?;
    let drivers = cuda_sim::variants(&context.workspace)?;
    let tests = |folder: &str| {
        files_in(&context.workspace.path(folder), |name| name.starts_with("test_") && name.ends_with(".py"))
    };
    let (package, mut about_the_wheel) = (tests("python/tests"), tests(WHEEL_TESTS));
    if package.is_empty() || about_the_wheel.is_empty() {
        return Err("the package has no tests".to_owned());
    }
    let (peers, others): (Vec<PathBuf>, Vec<PathBuf>) = package.into_iter().partition(|file| {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        PEERS.iter().any(|start| name.starts_with(start))
    });
    about_the_wheel.extend(peers);
    let mut runs = Vec::new();
    for (name, files) in [("package-peers", about_the_wheel), ("package", others)] {
        if files.is_empty() {
            continue;
        }
        let job = context
            .python_with_package()?
            .env("BOWSTRING_CUDA_SIM", &drivers)
            .env("BOWSTRING_WHEEL", wheel.file())
            .env("BOWSTRING_CHECKOUT", context.workspace.root())
            .env("BOWSTRING_PREFIX", release.path())
            .env("JAX_PLATFORMS", "cpu");
        runs.push((name.to_owned(), job, files));
    }
    Ok(runs)
}

/// Shows or writes what goes from which library to which. Whether all went well comes back.
pub fn matrix(workspace: Workspace, write: bool) -> Result<bool> {
    let page = workspace.path("docs/matrix.md");
    let tests = workspace.path("python/tests");
    let job = command(workspace, "matrix")?.env("JAX_PLATFORMS", "cpu").args(["-m", "matrix"]).dir(&tests);
    let job = if write { job.arg("--write").arg(page) } else { job };
    Ok(job.stream()?.status.success())
}

/// Measures hand-overs in Python and shows a table.
pub fn bench(workspace: Workspace, arguments: &[&str]) -> Result<bool> {
    let script = workspace.path("benches/python/bench.py");
    let job = command(workspace, "bench-python")?.arg(script).args(arguments);
    Ok(job.stream()?.status.success())
}

/// A run of Python with the package, outside the tests.
fn command(workspace: Workspace, name: &str) -> Result<Job> {
    let log = Log::create(workspace.target(&format!("logs/{name}.log")))?;
    let mut context = Context::new(workspace, log);
    announce("building the library and the wheel", || context.python_with_package())
        .map_err(|error| format!("{}\n{error}", context.log.tail(40)))
}

/// What is tested in the process that has the wheel's few tests.
const PEERS: [&str; 3] = ["test_matrix", "test_pyarrow_kinds", "test_distributed"];

/// The version in the manifest of the package's crate.
fn crate_version(context: &Context) -> Result<String> {
    let text = read(&context.workspace.path("python/Cargo.toml"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.split('"').next());
    version.map(str::to_owned).ok_or_else(|| "python/Cargo.toml states no version".to_owned())
}
