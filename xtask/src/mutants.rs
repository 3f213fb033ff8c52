//! Builds that leave one wait of the device code out, each of which its own test has to notice.

use std::time::Instant;

use crate::context::Context;
use crate::job::{Job, Log};
use crate::tally::Tally;
use crate::workspace::{Workspace, files_below, read};
use crate::{Result, cuda_sim};

const REGISTRY: &str = "core/src/device/waits.rs";
/// The variable that names the wait to leave out.
const LEAVE_OUT: &str = "BOWSTRING_WITHOUT_WAIT";
/// What only the registry, and the backends themselves, may call.
const WAITING: [&str; 4] = [".queue_waits(", ".host_waits(", ".is_done(", ".drain("];
/// What waits in the CUDA driver, and the one function of the backend that may call it.
const DRIVER_WAITS: [(&str, &str); 4] = [
    ("stream_wait,", "unsafe fn queue_waits"),
    ("event_synchronize,", "unsafe fn host_waits"),
    ("event_query", "unsafe fn is_done"),
    ("stream_synchronize,", "unsafe fn drain"),
];

/// Makes and runs every mutant. Whether all were killed comes back.
pub fn run(workspace: Workspace) -> Result<bool> {
    let log = Log::create(workspace.target("logs/mutants.log"))?;
    let mut context = Context::new(workspace, log);
    let listed = check_registry(&context.workspace)?;
    if !listed.failed.is_empty() {
        listed.failed.iter().for_each(|complaint| println!("{complaint}"));
        return Ok(false);
    }
    let waits = registered(&context.workspace)?;
    let drivers = cuda_sim::variants(&context.workspace)?;
    let whole = outcome(&mut context, &drivers, None, None)?;
    if whole != Outcome::Passed {
        println!("the library with every wait: {whole:?}; the log is {}", context.log.path().display());
        return Ok(false);
    }
    let (mut killed, mut survived) = (0, 0);
    for wait in &waits {
        let started = Instant::now();
        let found = outcome(&mut context, &drivers, Some(wait), Some(wait))?;
        let seconds = started.elapsed().as_secs_f64();
        match found {
            Outcome::Failed => {
                killed += 1;
                println!("killed    {wait} ({seconds:.1} s)");
            }
            other => {
                survived += 1;
                println!("SURVIVED  {wait} ({seconds:.1} s): {other:?}");
            }
        }
    }
    println!("{killed} killed, {survived} survived");
    Ok(survived == 0 && killed == waits.len())
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    /// An assertion of the test's own scenario failed.
    Failed,
    /// Something else went wrong, which proves nothing.
    Broken,
}

/// Builds the library, with or without a wait, and runs one wait's test on it, or all.
fn outcome(
    context: &mut Context,
    drivers: &std::path::Path,
    left_out: Option<&str>,
    test: Option<&str>,
) -> Result<Outcome> {
    let target = context.workspace.target("mutants");
    let mut build = Job::cargo()
        .args(["build", "--quiet", "--locked", "--package", "bowstring-capi"])
        .env("CARGO_TARGET_DIR", &target)
        .dir(context.workspace.root());
    if let Some(wait) = left_out {
        build = build.env(LEAVE_OUT, wait);
    }
    build.check(&context.log)?;
    let select = test.map_or("tests/python/test_cuda_waits.py".to_owned(), |wait| {
        format!("tests/python/test_cuda_waits.py::test_wait[{wait}]")
    });
    let job = Job::new(context.tools()?.python())
        .args(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", &select])
        .env("BOWSTRING_LIBRARY", target.join("debug/libbowstring.so"))
        .env("BOWSTRING_CUDA_SIM", drivers)
        .without("PYTHONDONTWRITEBYTECODE")
        .env("PYTHONPYCACHEPREFIX", context.workspace.target("python/bytecode"))
        .dir(context.workspace.root());
    let finished = job.run(&context.log)?;
    let failed_assertion =
        test.is_some_and(|wait| finished.text.contains(&format!("the scenario {wait} failed")));
    Ok(match finished.status.code() {
        Some(0) if finished.text.contains(" passed") => Outcome::Passed,
        Some(1) if failed_assertion => Outcome::Failed,
        _ => Outcome::Broken,
    })
}

/// The names in the registry.
fn registered(workspace: &Workspace) -> Result<Vec<String>> {
    let source = read(&workspace.path(REGISTRY))?;
    let list = source.split_once("waits! {").and_then(|(_, rest)| rest.split_once("\n}"));
    let (list, _) = list.ok_or_else(|| format!("{REGISTRY} has no list of waits"))?;
    let lines = list.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    Ok(lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect())
}

/// Whether every wait of the device code goes through the registry, and every name there is used.
pub fn check_registry(workspace: &Workspace) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut sources = String::new();
    for file in files_below(&workspace.path("core/src"), &|name| name.ends_with(".rs")) {
        let text = read(&file)?;
        let path = file.display().to_string();
        let is_registry = path.ends_with("device/waits.rs");
        let is_backend =
            ["device/cpu.rs", "device/plugin.rs", "device/backend.rs"].iter().any(|own| path.ends_with(own));
        let is_test = path.contains("/tests/");
        for (i, line) in text.lines().enumerate() {
            let asks = WAITING.iter().any(|call| line.contains(call));
            if asks && !is_registry && !is_backend && !is_test {
                // A wait of a queue of ours is named where it is called, and `settle` passes its caller's name on.
                let is_named =
                    line.contains("waits::") || line.contains("drain(Wait::") || line.contains("drain(wait,");
                tally.expect(is_named, || format!("{path}:{}: a wait that has no name", i + 1));
            }
        }
        if path.ends_with("cuda/mod.rs") {
            for (call, function) in DRIVER_WAITS {
                let allowed =
                    text.split(function).nth(1).and_then(|rest| rest.split("\n    }").next()).unwrap_or("");
                let all = text.matches(&format!("driver.{call}")).count();
                let inside = allowed.matches(&format!("driver.{call}")).count();
                tally.expect(all == inside && inside > 0, || {
                    format!("{path}: {call} is called outside `{function}`")
                });
            }
        }
        if !is_registry {
            sources += &text;
        }
    }
    let registry = read(&workspace.path(REGISTRY))?;
    for line in registry.lines().map(str::trim).filter(|line| line.contains(" = \"")) {
        let name = line.split(' ').next().unwrap_or_default();
        tally.expect(sources.contains(&format!("Wait::{name}")), || {
            format!("{REGISTRY}: nobody waits as {name}")
        });
    }
    Ok(tally)
}
