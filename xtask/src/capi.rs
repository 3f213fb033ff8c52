//! What cargo-c installs, against what CMake installs: headers, pkg-config file, names, exports.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Result;
use crate::context::Context;
use crate::exports;
use crate::job::{Job, Log, is_installed};
use crate::tally::Tally;
use crate::workspace::{Workspace, files_below, read, remove_folder};

/// The lines of a pkg-config file that have to be the same; paths and flags that only CMake's needs are not among them.
const SAME_LINES: [&str; 5] = ["Name:", "Description:", "Version:", "Libs:", "Cflags:"];

/// The command. It is no part of the tests: cargo-c takes longer to build than everything else together.
pub fn run(workspace: Workspace) -> Result<bool> {
    if !is_installed("cargo-cinstall") {
        println!("skipped: no cargo-c");
        return Ok(true);
    }
    let log = Log::create(workspace.target("logs/capi.log"))?;
    let mut context = Context::new(workspace, log);
    let tally = check(&mut context).map_err(|error| context.log.tail(60) + &error)?;
    tally.failed.iter().for_each(|complaint| println!("FAILED: {complaint}"));
    println!("{}", tally.line());
    Ok(tally.failed.is_empty())
}

fn check(context: &mut Context) -> Result<Tally> {
    let release = context.release()?;
    let folder = context.workspace.target("capi");
    let prefix = folder.join("prefix");
    remove_folder(&prefix)?;
    let job = Job::cargo().args(["cinstall", "--locked", "--release", "--package", "bowstring-capi"]);
    let job = job.args(["--libdir", "lib", "--includedir", "include", "--prefix"]).arg(&prefix);
    let job = job.arg("--target-dir").arg(folder.join("cargo"));
    job.dir(context.workspace.root()).check(&context.log)?;

    let mut tally = Tally::default();
    let (theirs, ours) = (headers(&prefix)?, headers(release.path())?);
    tally.expect(theirs == ours && ours.len() >= 3, || {
        let names =
            |files: &BTreeSet<(String, String)>| files.iter().map(|file| file.0.clone()).collect::<Vec<_>>();
        format!("headers: cargo-c installs {:?}, CMake {:?}", names(&theirs), names(&ours))
    });
    let package = |prefix: &Path| read(&prefix.join("lib/pkgconfig/bowstring.pc"));
    let (theirs, ours) = (package(&prefix)?, package(release.path())?);
    for start in SAME_LINES {
        let line = |text: &str| {
            text.lines().find(|line| line.starts_with(start)).unwrap_or_default().trim().to_owned()
        };
        let (theirs, ours) = (line(&theirs), line(&ours));
        tally.expect(theirs == ours && !ours.is_empty(), || format!("cargo-c writes {theirs}, CMake {ours}"));
    }
    let native = |text: &str| -> BTreeSet<String> {
        let line = text.lines().find_map(|line| line.strip_prefix("Libs.private:")).unwrap_or_default();
        line.split_whitespace().filter(|word| word.starts_with("-l")).map(str::to_owned).collect()
    };
    tally.expect(native(&theirs) == native(&ours), || {
        format!("Libs.private: cargo-c has {:?}, CMake {:?}", native(&theirs), native(&ours))
    });
    let names = |prefix: &Path| -> Vec<String> {
        let files = files_below(&prefix.join("lib"), &|name| name.starts_with("libbowstring."));
        files.iter().map(|file| file.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect()
    };
    let (theirs, ours) = (names(&prefix), names(release.path()));
    tally.expect(theirs == ours, || format!("files: cargo-c installs {theirs:?}, CMake {ours:?}"));
    let library = prefix.join("lib/libbowstring.so");
    let (theirs, ours) = (sonames(&library)?, sonames(&release.shared())?);
    tally
        .expect(theirs == ours && ours.len() == 1, || format!("sonames: cargo-c {theirs:?}, CMake {ours:?}"));
    let exported = exports::defined(&library, true)?;
    let difference: Vec<String> =
        exported.symmetric_difference(&exports::committed(&context.workspace)?).cloned().collect();
    tally.expect(difference.is_empty(), || format!("exports differ from the list in {difference:?}"));
    Ok(tally)
}

/// Every header with its text.
fn headers(prefix: &Path) -> Result<BTreeSet<(String, String)>> {
    let folder = prefix.join("include");
    let files = files_below(&folder, &|name| name.ends_with(".h") || name.ends_with(".hpp"));
    let texts = files.into_iter().map(|file| {
        let name = file.strip_prefix(&folder).unwrap_or(&file).display().to_string();
        Ok((name, read(&file)?))
    });
    texts.collect()
}

fn sonames(library: &Path) -> Result<Vec<String>> {
    let dynamic =
        Job::new("readelf").args(["--wide", "--dynamic"]).arg(library).env("LC_ALL", "C").output()?;
    let lines = dynamic.lines().filter(|line| line.contains("(SONAME)"));
    Ok(lines.filter_map(|line| line.split_once('[')).map(|(_, name)| name.to_owned()).collect())
}
