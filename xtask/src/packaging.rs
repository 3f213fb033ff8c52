//! The ways to get at the library: components, as a part of another project, by pkg-config, in two versions at once.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::context::Context;
use crate::job::{Job, Log, copy_folder, is_installed};
use crate::newer_version::NewerVersion;
use crate::prefix::Prefix;
use crate::tally::Tally;
use crate::tools::Tools;
use crate::workspace::{Workspace, files_below, make_folder, remove_folder, write};

/// What every check needs.
struct Bench {
    workspace: Workspace,
    tools: Tools,
    release: Prefix,
    folder: PathBuf,
    log: Log,
}

/// One count for each way that has to work, and for each that has to be refused.
pub fn check(context: &mut Context) -> Result<Tally> {
    let bench = Bench {
        release: context.release()?,
        tools: context.tools()?,
        folder: context.workspace.target("packaging"),
        workspace: context.workspace.clone(),
        log: context.log.clone(),
    };
    remove_folder(&bench.folder)?;
    let mut tally = Tally::default();
    tally.add(components(&bench)?);
    tally.add(inside_another_project(&bench)?);
    tally.add(pkg_config(&bench)?);
    tally.add(uninstalled(&bench)?);
    tally.add(side_by_side(&bench)?);
    Ok(tally)
}

impl Bench {
    /// Configures the consumer against prefixes, for a version and components.
    fn consumer(&self, name: &str, prefixes: &[&Path], wanted: &str, components: &str) -> (Job, PathBuf) {
        let build = self.folder.join(name);
        let paths: Vec<String> = prefixes.iter().map(|prefix| prefix.display().to_string()).collect();
        let job = self
            .tools
            .configure(&self.workspace.path("xtask/fixtures/consumer"), &build)
            .arg(format!("-DCMAKE_PREFIX_PATH={}", paths.join(";")))
            .arg(format!("-DWANTED={wanted}"))
            .arg(format!("-DCOMPONENTS={components}"));
        (job, build)
    }

    fn build(&self, build: &Path) -> Result<String> {
        self.tools.job("cmake").arg("--build").arg(build).check(&self.log)
    }

    /// Builds and runs the consumer with the shared library.
    fn consumes(&self, name: &str, prefixes: &[&Path], wanted: &str) -> Result<PathBuf> {
        let (configure, build) = self.consumer(name, prefixes, wanted, "shared");
        configure.check(&self.log)?;
        self.build(&build)?;
        let program = build.join("uses_bowstring");
        Job::new(&program).check(&self.log)?;
        Ok(program)
    }

    /// Configures the consumer, which has to fail with the words.
    fn is_refused(&self, name: &str, prefix: &Path, components: &str, words: &str) -> Result<Option<String>> {
        let (configure, _) = self.consumer(name, &[prefix], "", components);
        let finished = configure.run(&self.log)?;
        // CMake breaks long lines.
        let text = finished.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let refused = !finished.status.success() && text.contains(words);
        Ok((!refused).then(|| format!("components {components}: expected a refusal with \"{words}\"")))
    }
}

/// Each component alone, and one that there is none of.
fn components(bench: &Bench) -> Result<Tally> {
    let mut tally = Tally::default();
    for (component, program) in [("shared", "uses_bowstring"), ("static", "uses_static")] {
        let (configure, build) = bench.consumer(component, &[bench.release.path()], "", component);
        let built = configure.check(&bench.log).and_then(|_| bench.build(&build));
        let ran = built.and_then(|_| Job::new(build.join(program)).check(&bench.log));
        tally.count(ran.err());
    }
    let words = "there is no component gpu; there are shared and static";
    tally.count(bench.is_refused("unknown", bench.release.path(), "shared;gpu", words)?);
    Ok(tally)
}

/// As a folder of another project: the targets are there, and nothing else comes with them.
fn inside_another_project(bench: &Bench) -> Result<Tally> {
    let mut tally = Tally::default();
    for (how, target) in [("add_subdirectory", "bowstring::bowstring"), ("FetchContent", "bowstring::static")]
    {
        let build = bench.folder.join(how);
        let configure = bench
            .tools
            .configure(&bench.workspace.path("xtask/fixtures/around"), &build)
            .arg(format!("-DSOURCES={}", bench.workspace.root().display()))
            .arg(format!("-DHOW={how}"))
            .arg(format!("-DTARGET={target}"))
            .arg(format!("-DEXPECTED={}", bench.workspace.version()?))
            // What was compiled for the installation need not be compiled again.
            .arg(format!("-DBOWSTRING_CARGO_TARGET_DIR={}", bench.workspace.target("cmake/cargo").display()));
        let built = configure.check(&bench.log).and_then(|_| bench.build(&build));
        let ran = built.and_then(|_| Job::new(build.join("around")).check(&bench.log));
        tally.count(ran.err().map(|error| format!("{how}: {error}")));

        // Where there was nothing to link, nothing was built.
        let archives = files_below(&build, &|name| name == "libbowstring.a").len();
        let expected = usize::from(target == "bowstring::static");
        tally.expect(archives == expected, || format!("{how}: {archives} static libraries were built"));

        let prefix = bench.folder.join(format!("{how}-prefix"));
        let install = bench.tools.job("cmake").arg("--install").arg(&build).arg("--prefix").arg(&prefix);
        install.check(&bench.log)?;
        let installed = files_below(&prefix, &|_| true);
        tally.expect(installed == [prefix.join("bin/around")], || {
            format!("{how}: the other project's installation has {installed:?}")
        });
    }
    Ok(tally)
}

/// With only the archive there, `--static` names all that it needs.
fn pkg_config(bench: &Bench) -> Result<Tally> {
    if !is_installed("pkg-config") {
        return Err("pkg-config is not installed".to_owned());
    }
    let prefix = bench.folder.join("archive_only");
    copy_folder(bench.release.path(), &prefix, &bench.log)?;
    for file in files_below(&prefix, &|name| name.contains(".so")) {
        std::fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let asked = |option: &str| {
        let job = Job::new("pkg-config").args([option, "--static", "bowstring"]);
        job.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).output()
    };
    let (cflags, libs) = (asked("--cflags")?, asked("--libs")?);
    let mut tally = Tally::default();
    tally.expect(libs.contains("-Wl,-z,nodelete") && libs.contains("-lbowstring"), || {
        format!("pkg-config --static --libs gives {libs}")
    });
    let program = bench.folder.join("uses_archive_only");
    let define = format!("-DEXPECTED=\"{}\"", bench.workspace.version()?);
    let job = Job::new("cc").arg("-o").arg(&program).arg(define).args(cflags.split_whitespace());
    let job = job.arg(bench.workspace.path("xtask/fixtures/consumer/main.c")).args(libs.split_whitespace());
    let ran = job.check(&bench.log).and_then(|_| Job::new(&program).check(&bench.log));
    tally.count(ran.err());
    Ok(tally)
}

/// What was installed goes again, and nothing else.
fn uninstalled(bench: &Bench) -> Result<Tally> {
    let prefix = bench.folder.join("to_be_removed");
    let build = bench.workspace.target("cmake");
    let cmake = || bench.tools.job("cmake");
    cmake().arg("--install").arg(&build).arg("--prefix").arg(&prefix).check(&bench.log)?;
    let neighbour = prefix.join("include/neighbour.h");
    write(&neighbour, "")?;
    let mut tally = Tally::default();
    // A link that leads nowhere counts too.
    let files = || -> Result<Vec<String>> {
        let listing = Job::new("find").arg(&prefix).args(["-not", "-type", "d"]).output()?;
        Ok(listing.lines().map(str::to_owned).collect())
    };
    let before = files()?.len();
    tally.expect(before > 10, || format!("only {before} files were installed"));
    let uninstall = || cmake().arg("--build").arg(&build).args(["--target", "uninstall"]);
    uninstall().check(&bench.log)?;
    let left = files()?;
    tally.expect(left == [neighbour.display().to_string()], || format!("uninstalling left {left:?}"));
    tally.expect(!prefix.join("include/bowstring").exists(), || "an empty folder was left".to_owned());
    tally.expect(!uninstall().run(&bench.log)?.status.success(), || {
        "there was nothing to uninstall, and that was fine".to_owned()
    });
    Ok(tally)
}

/// Two versions: in prefixes of their own, in one process, and one installed over the other.
fn side_by_side(bench: &Bench) -> Result<Tally> {
    // Apart from the rest, because cargo's outputs are worth keeping.
    let folder = bench.workspace.target("newer-version");
    let newer = NewerVersion::install(&bench.workspace, &bench.tools, &folder, &bench.log)?;
    let (old, new) = (bench.release.path(), newer.prefix.as_path());
    let mut tally = Tally::default();
    let minor = |version: &str| version.rsplit_once('.').map_or(String::new(), |(minor, _)| minor.to_owned());
    let (old_minor, new_minor) = (minor(&bench.workspace.version()?), minor(&newer.version));
    for (name, prefixes, wanted) in [
        ("old_is_first", [old, new], &old_minor),
        ("old_is_second", [new, old], &old_minor),
        ("new_is_first", [new, old], &new_minor),
        ("new_is_second", [old, new], &new_minor),
    ] {
        tally.count(bench.consumes(name, &prefixes, wanted).err());
    }
    // It was installed without the archive.
    let words = "the static library was not installed";
    tally.count(bench.is_refused("no_archive", new, "static", words)?);

    let one = bench.folder.join("one_prefix");
    copy_folder(old, &one, &bench.log)?;
    let built_before = bench.consumes("before", &[&one], &old_minor)?;
    newer.install_to(&bench.tools, &one, &bench.log)?;
    let still = Job::new(built_before).check(&bench.log);
    tally
        .count(still.err().map(|error| format!("a program of the older version, after an upgrade: {error}")));
    tally.count(bench.consumes("after", &[&one], &new_minor).err());

    let program = bench.folder.join("both");
    make_folder(&bench.folder)?;
    let library = |prefix: &Path| format!("{}/lib/libbowstring.so", prefix.display());
    let texts = [
        ("OLD_LIBRARY", library(old)),
        ("NEW_LIBRARY", library(new)),
        ("OLD_VERSION", bench.workspace.version()?),
        ("NEW_VERSION", newer.version.clone()),
    ];
    let job = Job::new("cc").arg("-I").arg(old.join("include")).arg("-o").arg(&program);
    let job = texts.iter().fold(job, |job, (name, value)| job.arg(format!("-D{name}=\"{value}\"")));
    job.arg(bench.workspace.path("xtask/fixtures/versions/both.c")).arg("-ldl").check(&bench.log)?;
    tally.count(Job::new(&program).check(&bench.log).err());
    Ok(tally)
}
