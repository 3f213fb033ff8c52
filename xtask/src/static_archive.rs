//! The installed static library: its symbols, and that it gets on with other Rust archives in one program.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::context::Context;
use crate::exports;
use crate::job::{Job, Log};
use crate::prefix::Prefix;
use crate::tally::Tally;
use crate::tools::Tools;
use crate::workspace::{make_folder, read, write};

/// One count for the symbols, one for each way to link.
pub fn check(context: &mut Context) -> Result<Tally> {
    let release = context.release()?;
    let tools = context.tools()?;
    let mut tally = Tally::default();
    let defined = exports::defined(&release.archive(), false)?;
    let listed = exports::committed(&context.workspace)?;
    let difference: Vec<&String> = defined.symmetric_difference(&listed).collect();
    tally.expect(difference.is_empty() && !defined.is_empty(), || {
        format!("the static library's global symbols differ from the list in {difference:?}")
    });

    let folder = context.workspace.target("static-archive");
    make_folder(&folder)?;
    let fixtures = context.workspace.path("xtask/fixtures/archives");
    let raw = other_archive(&fixtures, &folder, &context.log)?;
    let hidden =
        hide(&context.workspace.path("cmake/HideSymbols.cmake"), &raw, &folder, &tools, &context.log)?;
    let ours = release.archive();
    let orders = [
        ("before another Rust archive", [&ours, &raw]),
        ("after another Rust archive", [&raw, &ours]),
        ("before a second hidden archive", [&ours, &hidden]),
        ("after a second hidden archive", [&hidden, &ours]),
    ];
    for (name, archives) in orders {
        let result = link_and_run(&fixtures, &folder, &release, archives, &context.log);
        tally.count(result.err().map(|error| format!("linked {name}: {error}")));
    }
    Ok(tally)
}

/// An archive as any other Rust project would make it.
fn other_archive(fixtures: &Path, folder: &Path, log: &Log) -> Result<PathBuf> {
    let archive = folder.join("libother.a");
    let job =
        Job::new("rustc").args(["--edition", "2024", "--crate-type", "staticlib", "-O", "-o"]).arg(&archive);
    job.arg(fixtures.join("other.rs")).check(log)?;
    Ok(archive)
}

fn hide(script: &Path, raw: &Path, folder: &Path, tools: &Tools, log: &Log) -> Result<PathBuf> {
    let list = folder.join("other.txt");
    write(&list, "other_catches_a_panic\n")?;
    let archive = folder.join("libother_hidden.a");
    let places = [("INPUT", raw), ("SYMBOLS", &list), ("OUTPUT", &archive)];
    let programs = ["LINKER=ld", "OBJCOPY=objcopy", "ARCHIVER=ar"].map(|setting| format!("-D{setting}"));
    let job = tools.job("cmake").args(programs);
    let job = places.iter().fold(job, |job, (name, path)| job.arg(format!("-D{name}={}", path.display())));
    job.arg("-P").arg(script).check(log)?;
    Ok(archive)
}

fn link_and_run(
    fixtures: &Path,
    folder: &Path,
    release: &Prefix,
    archives: [&PathBuf; 2],
    log: &Log,
) -> Result<()> {
    let package = read(&release.path().join("lib/pkgconfig/bowstring.pc"))?;
    let private = package.lines().find_map(|line| line.strip_prefix("Libs.private:"));
    let private = private.ok_or("bowstring.pc has no Libs.private")?.split_whitespace();
    let program = folder.join("user");
    let job = Job::new("cc").arg("-I").arg(release.path().join("include")).arg("-o").arg(&program);
    job.arg(fixtures.join("user.c")).args(archives).args(private).check(log)?;
    Job::new(&program).check(log).map(drop)
}
