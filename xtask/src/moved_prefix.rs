//! That the installed prefix works from another place.

use crate::Result;
use crate::context::Context;
use crate::job::{Job, copy_folder, is_installed, text_or_empty};
use crate::tally::Tally;
use crate::workspace::{files_below, remove_folder};

/// Copies the prefix and builds a consumer against the copy.
pub fn check(context: &mut Context) -> Result<Tally> {
    let release = context.release()?;
    let tools = context.tools()?;
    let log = context.log.clone();
    let folder = context.workspace.target("moved");
    remove_folder(&folder)?;
    let prefix = folder.join("to/another place");
    copy_folder(release.path(), &prefix, &log)?;

    let mut tally = Tally::default();
    let is_text = |name: &str| [".cmake", ".pc", ".h", ".hpp"].iter().any(|end| name.ends_with(end));
    let old = release.path().display().to_string();
    let texts = files_below(&prefix, &is_text);
    for file in &texts {
        tally.expect(!text_or_empty(file).contains(&old), || {
            format!("{} names its first place", file.display())
        });
    }
    tally.expect(texts.len() >= 4, || format!("only {} text files were installed", texts.len()));

    let source = context.workspace.path("xtask/fixtures/consumer");
    let build = folder.join("build");
    let prefix_path = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    tools.configure(&source, &build).arg(&prefix_path).check(&log)?;
    tools.job("cmake").arg("--build").arg(&build).check(&log)?;
    for program in ["uses_bowstring", "uses_static"] {
        tally.count(Job::new(build.join(program)).check(&log).err());
    }

    let refused = tools.configure(&source, &folder.join("refused")).arg(&prefix_path).arg("-DWANTED=0.2");
    let finished = refused.run(&log)?;
    let names_versions = finished.text.contains("bowstringConfig.cmake, version: ");
    tally.expect(!finished.status.success() && names_versions, || {
        "version 0.2 was asked for and found".to_owned()
    });

    if is_installed("pkg-config") {
        let flags = Job::new("pkg-config")
            .args(["--cflags", "--libs", "bowstring"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
            .output()?;
        let program = folder.join("uses_pkg_config");
        // The prefix has a space in its name, which pkg-config escapes for a shell.
        let script =
            format!("cc -o \"$1\" \"$2\" -DEXPECTED='\"{}\"' {}", context.workspace.version()?, flags.trim());
        let job = Job::new("sh").args(["-c", &script, "sh"]).arg(&program).arg(source.join("main.c"));
        let built = job.check(&log);
        let ran =
            built.and_then(|_| Job::new(&program).env("LD_LIBRARY_PATH", prefix.join("lib")).check(&log));
        tally.count(ran.err());
    }
    Ok(tally)
}
