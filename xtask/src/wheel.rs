//! The Python package's wheel: built by pip as a user does it.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::job::{Job, Log};
use crate::tools::Tools;
use crate::workspace::{Workspace, files_below, files_in, make_folder, read, remove_folder};

const FOLDER: &str = "python-package";
const PIP: [&str; 3] = ["-m", "pip", "--disable-pip-version-check"];

/// A built wheel, and what an installation of it has.
#[derive(Clone, Debug)]
pub struct Wheel {
    file: PathBuf,
    site: PathBuf,
    /// Whether the committed lock of its crate was good enough for the build.
    lock_held: bool,
}

impl Wheel {
    /// Builds and unpacks it.
    pub fn build(workspace: &Workspace, tools: &Tools) -> Result<Self> {
        let log = Log::create(workspace.target("logs/pip.log"))?;
        make(workspace, tools, &log).map_err(|error| format!("{}\n{error}", log.tail(60)))
    }

    /// The file itself.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// A folder into which pip installed it, and nothing else.
    pub fn site(&self) -> &Path {
        &self.site
    }

    /// Whether the build left the lock of its crate as it was committed.
    pub fn lock_held(&self) -> bool {
        self.lock_held
    }

    /// The copy of the library in the installation.
    pub fn library(&self) -> Result<PathBuf> {
        let found = files_below(&self.site.join("bowstring"), &|name| name.ends_with(".so"));
        match found.as_slice() {
            [library] => Ok(library.clone()),
            _ => Err(format!("the wheel has {} shared libraries", found.len())),
        }
    }
}

fn make(workspace: &Workspace, tools: &Tools, log: &Log) -> Result<Wheel> {
    let folder = workspace.target(FOLDER);
    let (wheels, site) = (folder.join("wheels"), folder.join("site"));
    remove_folder(&wheels)?;
    remove_folder(&site)?;
    make_folder(&wheels)?;
    let lock = workspace.path("python/Cargo.lock");
    let before = read(&lock)?;
    // The builder comes from the index into an environment that pip makes for it, as on a machine that has nothing.
    let job = Job::new(tools.python()).without_our_package().without("PYTHONPATH").args(PIP);
    let job = job.args(["wheel", "--no-deps", "--wheel-dir"]).arg(&wheels).arg("./python");
    job.env("CARGO_TARGET_DIR", workspace.target("py")).dir(workspace.root()).check(log)?;
    let lock_held = read(&lock)? == before;

    let files = files_in(&wheels, |name| name.ends_with(".whl"));
    let [file] = files.as_slice() else { return Err(format!("pip made {} wheels", files.len())) };
    // Without an index, a package that it requires could not be found.
    let job = Job::new(tools.python()).args(PIP).args(["install", "--no-index", "--target"]);
    job.arg(&site).arg(file).check(log)?;
    Ok(Wheel { file: file.clone(), site, lock_held })
}
