//! The library, built and installed as a packager would do it.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::job::{Job, Log};
use crate::tools::Tools;
use crate::workspace::{Workspace, remove_folder};

/// The target that sanitizers are built for; naming it keeps their flags away from build scripts.
const SANITIZER_TARGET: &str = "x86_64-unknown-linux-gnu";

/// One installed copy of the library.
#[derive(Clone, Debug)]
pub struct Prefix {
    path: PathBuf,
    build: PathBuf,
    sanitizer: Option<&'static str>,
}

impl Prefix {
    /// The release.
    pub fn release(workspace: &Workspace) -> Self {
        Self { path: workspace.target("prefix"), build: workspace.target("cmake"), sanitizer: None }
    }

    /// A copy with every access checked.
    pub fn sanitized(workspace: &Workspace, sanitizer: &'static str) -> Self {
        Self {
            path: workspace.target(&format!("prefix-{sanitizer}")),
            build: workspace.target(&format!("cmake-{sanitizer}")),
            sanitizer: Some(sanitizer),
        }
    }

    /// Where it is installed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The installed shared library.
    pub fn shared(&self) -> PathBuf {
        self.path.join("lib/libbowstring.so")
    }

    /// The installed static library.
    pub fn archive(&self) -> PathBuf {
        self.path.join("lib/libbowstring.a")
    }

    /// Configures, builds and installs from nothing but what cargo has kept.
    pub fn install(&self, workspace: &Workspace, tools: &Tools, log: &Log) -> Result<()> {
        // A file that is no longer installed must not be found.
        remove_folder(&self.path)?;
        let configure = tools
            .configure(workspace.root(), &self.build)
            .arg(format!("-DCMAKE_INSTALL_PREFIX={}", self.path.display()))
            .args(["-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_BUILD_TYPE=Release"]);
        let configure = match self.sanitizer {
            None => configure,
            Some(sanitizer) => configure
                .arg(format!("-DBOWSTRING_CARGO_TARGET={SANITIZER_TARGET}"))
                // The C program brings the sanitizer's runtime.
                .arg(format!("-DBOWSTRING_RUSTFLAGS=-Zsanitizer={sanitizer} -Zexternal-clangrt")),
        };
        configure.check(log)?;
        self.with_flags(tools.job("cmake").arg("--build").arg(&self.build)).check(log)?;
        tools.job("cmake").arg("--install").arg(&self.build).check(log).map(drop)
    }

    /// Builds only the shared library, into the place that `install` uses, and tells where it is.
    pub fn cargo_build(&self, workspace: &Workspace, log: &Log) -> Result<PathBuf> {
        let folder = self.build.join("cargo");
        let job = Job::cargo().args(["build", "--release", "--locked", "--package", "bowstring-capi"]);
        job.env("CARGO_TARGET_DIR", &folder).dir(workspace.root()).check(log)?;
        Ok(folder.join("release/libbowstring.so"))
    }

    fn with_flags(&self, job: Job) -> Job {
        if self.sanitizer.is_none() {
            return job;
        }
        // Sanitizers are not stable in rustc, but there is nothing else that a nightly would add. What optimises the
        // whole program at once takes a minute and finds no access.
        job.env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_PROFILE_RELEASE_LTO", "false")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
    }
}
