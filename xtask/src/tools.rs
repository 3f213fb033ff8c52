//! Programs and packages from outside, installed by name below target/tools.

use std::env;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::job::{Job, Log, text_or_empty};
use crate::workspace::{Workspace, make_folder, read, remove_folder, write};

const REQUIREMENTS: &str = "tests/requirements.txt";
const OLDEST_PYTHON: (u32, u32) = (3, 11);

/// Where the installed tools are.
#[derive(Clone, Debug)]
pub struct Tools {
    venv: PathBuf,
    nanoarrow: PathBuf,
}

impl Tools {
    /// Installs what is missing, telling about each step.
    pub fn set_up(workspace: &Workspace) -> Result<Self> {
        let requirements = read(&workspace.path(REQUIREMENTS))?;
        let packages = packages(&requirements);
        let folder = workspace.target("tools");
        let tools = Self::in_folder(&folder, &packages)?;
        let stamp = folder.join("stamp.txt");
        if text_or_empty(&stamp) == requirements && tools.python().is_file() && tools.nanoarrow.is_dir() {
            return Ok(tools);
        }
        let python = find_python()?;
        let log = Log::create(workspace.target("logs/setup.log"))?;
        // A stamp must not outlive the tools that it speaks of.
        write(&stamp, "")?;
        step("a Python environment", || {
            remove_folder(&tools.venv)?;
            Job::new(&python).args(["-m", "venv"]).arg(&tools.venv).check(&log)
        })
        .map_err(|error| with_log(error, &log))?;
        // Compiled when they are imported, which most of their files never are.
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"];
        step(&format!("{} Python packages", packages.len()), || {
            Job::new(tools.python()).args(pip).args(&packages).check(&log)
        })
        .map_err(|error| with_log(error, &log))?;
        step("nanoarrow's C sources", || {
            make_folder(&folder)?;
            let script = workspace.path("tests/tools/download_sdist.py");
            let job = Job::new(tools.python()).arg(script).arg(workspace.path(REQUIREMENTS));
            job.arg("nanoarrow").arg(&folder).check(&log)
        })
        .map_err(|error| with_log(error, &log))?;
        write(&stamp, &requirements)?;
        Ok(tools)
    }

    fn in_folder(folder: &Path, packages: &[String]) -> Result<Self> {
        let version = packages.iter().find_map(|package| package.strip_prefix("nanoarrow=="));
        let version = version.ok_or_else(|| format!("{REQUIREMENTS} pins no nanoarrow"))?;
        let sources = format!("nanoarrow-{version}/subprojects/arrow-nanoarrow/src");
        Ok(Self { venv: folder.join("venv"), nanoarrow: folder.join(sources) })
    }

    /// The environment's Python.
    pub fn python(&self) -> PathBuf {
        self.program("python")
    }

    /// nanoarrow's C sources.
    pub fn nanoarrow(&self) -> &Path {
        &self.nanoarrow
    }

    /// A run of one of the environment's programs.
    pub fn job(&self, program: &str) -> Job {
        Job::new(self.program(program))
    }

    /// CMake, set to use the environment's Ninja.
    pub fn configure(&self, source: &Path, build: &Path) -> Job {
        let ninja = self.program("ninja");
        let job = self.job("cmake").arg("-S").arg(source).arg("-B").arg(build).args(["-G", "Ninja"]);
        job.arg(format!("-DCMAKE_MAKE_PROGRAM={}", ninja.display()))
    }

    fn program(&self, name: &str) -> PathBuf {
        let folder = if cfg!(windows) { "Scripts" } else { "bin" };
        self.venv.join(folder).join(name)
    }
}

fn packages(requirements: &str) -> Vec<String> {
    let lines = requirements.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// A Python that can make environments, or a message that says what is missing.
fn find_python() -> Result<String> {
    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let (major, minor) = OLDEST_PYTHON;
    let version = Job::new(&python)
        .args(["-c", "import sys; print(*sys.version_info[:2])"])
        .output()
        .map_err(|error| {
            format!("Python {major}.{minor} or newer is needed; {error}\nPYTHON may name another one.")
        })?;
    let found: Vec<u32> = version.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    if found.as_slice() < [major, minor].as_slice() {
        return Err(format!(
            "Python {major}.{minor} or newer is needed; found {} as {python}. PYTHON may name another one.",
            version.trim().replace(' ', ".")
        ));
    }
    Job::new(&python).args(["-c", "import venv, ensurepip"]).output().map_err(|_| {
        format!("{python} has no venv module; on Debian and Ubuntu: apt install python3-venv")
    })?;
    Ok(python)
}

/// Does one step and says so.
pub fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    announce(&format!("installing {what}"), work)
}

/// Shows what is being done, and when it went wrong. Whole lines, because other parts may have something to say meanwhile.
pub fn announce<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("{what} ...");
    work().inspect_err(|_| println!("{what}: FAILED"))
}

fn with_log(error: String, log: &Log) -> String {
    format!("{}\n{error}\nThe log is {}", log.tail(40), log.path().display())
}
