//! The library as its next version would be installed, to be put beside this one.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::job::{Job, Log, copy_folder};
use crate::tools::Tools;
use crate::workspace::{Workspace, make_folder, read, remove_folder, write};

/// An installation of the next version, without the static library.
pub struct NewerVersion {
    /// Its version.
    pub version: String,
    /// Where it is installed.
    pub prefix: PathBuf,
    build: PathBuf,
}

impl NewerVersion {
    /// Copies the sources, raises the version, and builds quickly rather than well.
    pub fn install(workspace: &Workspace, tools: &Tools, folder: &Path, log: &Log) -> Result<Self> {
        let now = workspace.version()?;
        let version = next_minor(&now).ok_or_else(|| format!("{now} is not a version"))?;
        let sources = folder.join("sources");
        remove_folder(&sources)?;
        make_folder(&sources)?;
        for entry in std::fs::read_dir(workspace.root()).map_err(|error| error.to_string())?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "target" && !name.starts_with('.') {
                copy_folder(&entry.path(), &sources.join(name), log)?;
            }
        }
        let manifest = sources.join("Cargo.toml");
        let text = read(&manifest)?.replace(&format!("\"{now}\""), &format!("\"{version}\""));
        write(&manifest, &text.replace(&format!("\"={now}\""), &format!("\"={version}\"")))?;
        let lock = sources.join("Cargo.lock");
        write(&lock, &raised(&read(&lock)?, &now, &version))?;

        let newer = Self { version, prefix: folder.join("prefix"), build: folder.join("build") };
        let configure = tools.configure(&sources, &newer.build);
        configure.args(["-DBOWSTRING_INSTALL_STATIC=OFF", "-DCMAKE_INSTALL_LIBDIR=lib"]).check(log)?;
        let settings = [
            ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
            ("CARGO_PROFILE_RELEASE_LTO", "false"),
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
        ];
        let job = tools.job("cmake").arg("--build").arg(&newer.build);
        settings.iter().fold(job, |job, (name, value)| job.env(name, value)).check(log)?;
        remove_folder(&newer.prefix)?;
        newer.install_to(tools, &newer.prefix, log)?;
        Ok(newer)
    }

    /// Installs it into another prefix.
    pub fn install_to(&self, tools: &Tools, prefix: &Path, log: &Log) -> Result<()> {
        let job: Job = tools.job("cmake").arg("--install").arg(&self.build);
        job.arg("--prefix").arg(prefix).check(log).map(drop)
    }
}

fn next_minor(version: &str) -> Option<String> {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next()?, numbers.next()?.parse::<u32>().ok()?);
    Some(format!("{major}.{}.0", minor + 1))
}

/// The lock file with the workspace's own packages, those without a source, at their new version.
fn raised(lock: &str, now: &str, version: &str) -> String {
    let blocks = lock.split("\n\n").map(|block| {
        let own = block.starts_with("[[package]]") && !block.contains("\nsource = ");
        let line = |version: &str| format!("\nversion = \"{version}\"");
        if own { block.replace(&line(now), &line(version)) } else { block.to_owned() }
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_packages_are_raised() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\n\n\
            [[package]]\nname = \"b\"\nversion = \"0.1.0\"\nsource = \"registry\"\n";
        let found = raised(lock, "0.1.0", "0.2.0");
        assert_eq!(found, lock.replacen("0.1.0", "0.2.0", 1));
        assert_eq!(next_minor("0.1.3").as_deref(), Some("0.2.0"));
        assert_eq!(next_minor("one"), None);
    }
}
