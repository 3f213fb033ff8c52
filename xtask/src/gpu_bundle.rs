//! The bundle that a machine with a GPU runs: one folder with the release library, compiled tests, Python tests and `run.sh`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::job::{Finished, Job, Log, is_installed, text_or_empty};
use crate::tally::{Skip, Tally};
use crate::workspace::{Workspace, files_below, files_in, make_folder, remove_folder, write};
use crate::{Result, cuda_sim};

const SOURCES: &str = "tests/gpu";
/// What a folder may have to be carried.
const MOST_BYTES: u64 = 48 << 20;
/// Helpers that the Python tests share with these steps.
const HELPERS: [&str; 11] = [
    "all_types.py",
    "bowstring_ctypes.py",
    "cuda_sim.py",
    "device_arrays.py",
    "dlpack.py",
    "raw.py",
    "slow_schema.py",
    "slow_values.py",
    "support.py",
    "validate_arrays.py",
    "validate_calls.py",
];
const COMPILE: [&str; 6] = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Where the bundle is.
pub fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target("gpu-bundle")
}

/// The command: builds the bundle, and with `--check` also runs it here.
pub fn run(workspace: Workspace, check_too: bool) -> Result<bool> {
    let log = Log::create(workspace.target("logs/gpu-bundle.log"))?;
    let mut context = Context::new(workspace, log);
    if !check_too {
        let size = build(&mut context).map_err(|error| context.log.tail(60) + &error)?;
        println!("{}: {} KiB", folder(&context.workspace).display(), size >> 10);
        return Ok(true);
    }
    let tally = check(&mut context).map_err(|error| context.log.tail(60) + &error)?;
    tally.skipped.iter().for_each(|skip| println!("skipped: {}: {}", skip.test, skip.why));
    tally.failed.iter().for_each(|complaint| println!("FAILED: {complaint}"));
    println!("{}", tally.line());
    Ok(tally.failed.is_empty())
}

/// Builds the bundle, and runs it: as this machine is, and once more with the simulated driver.
///
/// On the simulated driver nothing is proved about a GPU; but a mistake in a step shows.
pub fn check(context: &mut Context) -> Result<Tally> {
    let size = build(context)?;
    let mut tally = Tally::default();
    tally.expect(size < MOST_BYTES, || format!("the bundle has {size} bytes, and may have {MOST_BYTES}"));
    let kinds = kinds(context)?;
    tally.expect(kinds.len() > 20, || format!("run.sh knows {} steps", kinds.len()));
    let drivers = cuda_sim::variants(&context.workspace)?;
    let here = kinds.iter().map(|(step, _)| step.as_str()).collect::<Vec<_>>();
    // The packages would look for a GPU.
    let without_packages = kinds.iter().filter(|(_, kind)| kind != "packages");
    let simulated = without_packages.map(|(step, _)| step.as_str()).collect::<Vec<_>>();
    for (name, driver, steps) in [("here", None, here), ("simulated", Some(drivers.as_path()), simulated)] {
        let out = context.workspace.target("gpu-bundle-reports").join(name);
        remove_folder(&out)?;
        let finished = started(context, &out, driver, &steps)?;
        let ended = ended(&text_or_empty(&out.join("report.txt")));
        for step in steps {
            let test = format!("{name}/{step}");
            let needs_none = kinds.iter().any(|(known, kind)| known == step && kind == "anywhere");
            match ended.iter().find(|ended| ended.step == step) {
                Some(Ended { state, .. }) if state == "passed" => tally.passed += 1,
                Some(Ended { state, why, .. })
                    if state == "skipped" && driver.is_none() && !needs_none && !why.is_empty() =>
                {
                    tally.skipped.push(Skip { test, why: why.clone() });
                }
                Some(Ended { state, why, .. }) => tally.failed.push(format!("{test} {state}: {why}")),
                None => tally.failed.push(format!("{test}: the report does not have it")),
            }
        }
        let has_failed = ended.iter().any(|ended| ended.state == "failed");
        tally.expect(finished.status.success() != has_failed, || {
            format!("{name}: run.sh ended with {}, and what failed says otherwise", finished.status)
        });
        tally.expect(out.join("report.json").is_file(), || format!("{name}: there is no report.json"));
    }
    Ok(tally)
}

/// A step's line in the report.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    state: String,
    step: String,
    why: String,
}

/// The lines of a report that say how steps ended: `[state] step (0.1 s): why`.
fn ended(report: &str) -> Vec<Ended> {
    let lines = report.lines().filter_map(|line| {
        let (state, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let (step, rest) = rest.split_once(" (")?;
        let why = rest.split_once("): ").map_or("", |(_, why)| why);
        Some(Ended { state: state.to_owned(), step: step.to_owned(), why: why.to_owned() })
    });
    lines.collect()
}

/// Every step with its kind, as the bundle tells them.
fn kinds(context: &mut Context) -> Result<Vec<(String, String)>> {
    let finished = started(context, &context.workspace.target("gpu-bundle-reports"), None, &["--list"])?;
    let lines = finished.text.lines().filter_map(|line| line.split_once(' '));
    Ok(lines.map(|(step, kind)| (step.to_owned(), kind.to_owned())).collect())
}

fn started(context: &mut Context, out: &Path, driver: Option<&Path>, words: &[&str]) -> Result<Finished> {
    let python = context.tools()?.python();
    let job =
        Job::new(folder(&context.workspace).join("run.sh")).args(words).env("OUT", out).env("PYTHON", python);
    let job = match driver {
        Some(folder) => job.env("BOWSTRING_CUDA_SIM", folder),
        None => job.without("BOWSTRING_CUDA_SIM"),
    };
    job.run(&context.log)
}

/// Makes the folder anew; its size comes back.
fn build(context: &mut Context) -> Result<u64> {
    let release = context.release()?;
    let workspace = &context.workspace;
    let bundle = folder(workspace);
    remove_folder(&bundle)?;
    for part in ["lib", "bin", "python"] {
        make_folder(&bundle.join(part))?;
    }
    // One file under the name that programs look for, because links may get lost on the way.
    let library = bundle.join("lib").join(soname(&release.shared())?);
    if is_installed("strip") {
        let job = Job::new("strip").arg("--strip-unneeded").arg("-o").arg(&library);
        job.arg(release.shared()).check(&context.log)?;
    } else {
        copy(&release.shared(), &library)?;
    }
    for file in files_in(&workspace.path(SOURCES), |name| !name.ends_with(".c")) {
        copy(&file, &bundle.join(file.file_name().unwrap_or_default()))?;
    }
    for helper in HELPERS {
        copy(&workspace.path("tests/python").join(helper), &bundle.join("python").join(helper))?;
    }
    // What bowstring_ctypes.py takes the declarations from.
    copy(&workspace.path("python/bowstring/_c.py"), &bundle.join("python/_c.py"))?;
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let plugin = files_in(&workspace.path("tests/plugin_device"), |name| name.ends_with(".c"));
    let include = |folder: &Path| {
        let mut flag = OsString::from("-I");
        flag.push(folder);
        flag
    };
    let job = Job::new(&compiler).args(COMPILE).arg("-pthread").arg(include(&release.path().join("include")));
    let job = job.arg(workspace.path(SOURCES).join("there_and_back.c")).args(plugin).arg(&library);
    job.arg("-Wl,-rpath,$ORIGIN/../lib")
        .arg("-o")
        .arg(bundle.join("bin/there_and_back"))
        .check(&context.log)?;
    let answers = workspace.path("tests/cuda_sim");
    let job = Job::new(&compiler).args(COMPILE).arg("-D_GNU_SOURCE").arg(answers.join("answers.c"));
    job.arg("-ldl").arg("-o").arg(bundle.join("bin/answers")).check(&context.log)?;
    copy(&answers.join("answers.txt"), &bundle.join("bin/answers.txt"))?;
    write(&bundle.join("manifest.json"), &manifest(workspace, &bundle)?)?;
    let files = files_below(&bundle, &|_| true);
    Ok(files.iter().filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum())
}

/// What the bundle was made of, for its reports.
fn manifest(workspace: &Workspace, bundle: &Path) -> Result<String> {
    let git = |words: &[&str]| {
        let text = Job::new("git").args(words).dir(workspace.root()).output().unwrap_or_default();
        text.trim().to_owned()
    };
    let commit = git(&["rev-parse", "HEAD"]);
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"]).is_empty();
    let needs = newest_glibc(&files_below(&bundle.join("lib"), &|_| true), &bundle.join("bin"))?;
    let version = workspace.version()?;
    Ok(format!(
        "{{\"version\": \"{version}\", \"commit\": \"{commit}\", \"changed_since\": {changed}, \"needs\": \"{needs}\"}}\n"
    ))
}

/// The newest version of the C library's symbols that the binaries ask for.
fn newest_glibc(libraries: &[PathBuf], programs: &Path) -> Result<String> {
    let mut newest = (0, 0);
    for file in libraries.iter().cloned().chain([programs.join("there_and_back"), programs.join("answers")]) {
        let symbols = Job::new("readelf").args(["--wide", "--version-info"]).arg(file).output()?;
        for name in symbols.split("GLIBC_").skip(1) {
            let mut numbers = name.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
            if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) {
                newest = newest.max((major, minor));
            }
        }
    }
    Ok(format!("glibc {}.{}", newest.0, newest.1))
}

fn soname(library: &Path) -> Result<String> {
    let text = Job::new("readelf").args(["--wide", "--dynamic"]).arg(library).env("LC_ALL", "C").output()?;
    let line = text.lines().find(|line| line.contains("(SONAME)"));
    let name = line.and_then(|line| line.split_once('[')).and_then(|(_, rest)| rest.split(']').next());
    name.map(str::to_owned).ok_or_else(|| format!("{} has no soname", library.display()))
}

/// Copies a file, and whether it can be run.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::read;

    // A missing one would be noticed on the other machine only.
    #[test]
    fn every_import_is_carried() {
        let workspace = Workspace::find().unwrap();
        let steps = files_in(&workspace.path(SOURCES), |name| name.ends_with(".py"));
        let helpers = HELPERS.map(|helper| workspace.path("tests/python").join(helper));
        assert!(steps.len() > 8);
        for file in steps.iter().chain(&helpers) {
            for line in read(file).unwrap().lines().map(str::trim) {
                let module = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "));
                let Some(module) = module.and_then(|rest| rest.split([' ', ',', '.']).next()) else {
                    continue;
                };
                let name = format!("{module}.py");
                if workspace.path("tests/python").join(&name).is_file() {
                    assert!(HELPERS.contains(&name.as_str()), "{} imports {module}", file.display());
                }
            }
        }
    }

    #[test]
    fn reports_are_read() {
        let text =
            "figures\n[passed] loads (0.4 s)\n    x: [1] (2)\n[skipped] tensors (0.1 s): no cupy: (none)\n";
        let found = ended(text);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].state.as_str(), found[0].step.as_str(), found[0].why.as_str()),
            ("passed", "loads", "")
        );
        assert_eq!(found[1].why, "no cupy: (none)");
    }
}
