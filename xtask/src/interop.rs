//! What the real libcudf makes of Arrow arrays, beside what the validator says that it would make of them. It takes the
//! better part of a gigabyte and no GPU, and so is a command of its own.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::Result;
use crate::context::Context;
use crate::job::{Job, Log, is_installed, text_or_empty};
use crate::tools::{announce, step};
use crate::workspace::{Workspace, files_in, make_folder, read, remove_folder, write};

const SOURCES: &str = "tests/interop/libcudf";
/// The libraries that libcudf needs, below the environment's packages.
const LIBRARIES: [&str; 6] = [
    "libcudf/lib64",
    "librmm/lib64",
    "rapids_logger/lib64",
    "libkvikio/lib64",
    "nvidia/libnvcomp/lib64",
    "nvidia/cu13/lib",
];
const HEADERS: [&str; 5] = [
    "libcudf/include",
    "librmm/include",
    "libcudf/include/rapids",
    "rapids_logger/include",
    "nvidia/cu13/include",
];

/// Compares what libcudf does with what the profiles predict. Whether all is well comes back.
pub fn libcudf(workspace: Workspace) -> Result<bool> {
    let log = Log::create(workspace.target("logs/interop-libcudf.log"))?;
    let context = Context::new(workspace, log);
    let compiler = env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    if !is_installed(&compiler) && !Path::new(&compiler).is_file() {
        return skip(&format!("{compiler} is not installed"));
    }
    let libcudf = match Installed::set_up(&context) {
        Ok(libcudf) => libcudf,
        Err(error) => return skip(&format!("libcudf cannot be installed here: {error}")),
    };
    let outcome = libcudf.build(&context, &compiler).and_then(|program| {
        let job = libcudf.job(&program);
        announce("comparing libcudf with the profiles", || job.run(&context.log))
    });
    let finished = outcome.map_err(|error| {
        format!("{}\n{error}\nThe log is {}", context.log.tail(40), context.log.path().display())
    })?;
    let mut about_unexplained = false;
    let lines: Vec<&str> = finished.text.lines().collect();
    for line in &lines {
        about_unexplained = line.starts_with("UNEXPLAINED") || about_unexplained && line.starts_with(' ');
        if about_unexplained {
            println!("{line}");
        }
    }
    lines.iter().rev().take(4).rev().for_each(|line| println!("{line}"));
    println!("each case is in {}", context.log.path().display());
    Ok(finished.status.success())
}

/// Where everything has to run, a skip is a failure.
fn skip(why: &str) -> Result<bool> {
    println!("skipped: {why}");
    Ok(env::var_os("CI").is_none_or(|ci| ci != "true"))
}

/// The installed libcudf.
struct Installed {
    folder: PathBuf,
    packages: PathBuf,
}

impl Installed {
    /// Installs what `requirements.txt` names, unless that was done.
    fn set_up(context: &Context) -> Result<Self> {
        let folder = context.workspace.target("interop/libcudf");
        let requirements = context.workspace.path(&format!("{SOURCES}/requirements.txt"));
        let (stamp, wanted) = (folder.join("stamp.txt"), read(&requirements)?);
        let venv = folder.join("venv");
        let python = venv.join("bin/python");
        if text_or_empty(&stamp) != wanted || !python.is_file() {
            write(&stamp, "")?;
            remove_folder(&venv)?;
            step("libcudf", || {
                let base = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
                Job::new(base).args(["-m", "venv"]).arg(&venv).check(&context.log)?;
                let pip =
                    ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"];
                Job::new(&python).args(pip).arg("--requirement").arg(&requirements).check(&context.log)
            })
            .map_err(|error| format!("{error}: {}", context.log.tail(3).trim_end()))?;
            write(&stamp, &wanted)?;
        }
        let packages = Job::new(&python)
            .args(["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"])
            .output()?;
        Ok(Self { folder, packages: PathBuf::from(packages.trim_end()) })
    }

    /// Compiles and links the program, two sources at a time.
    fn build(&self, context: &Context, compiler: &str) -> Result<PathBuf> {
        let sources = files_in(&context.workspace.path(SOURCES), |name| name.ends_with(".cc"));
        let objects = self.folder.join("objects");
        remove_folder(&objects)?;
        make_folder(&objects)?;
        announce("compiling against libcudf", || {
            let half = sources.len().div_ceil(2).max(1);
            thread::scope(|scope| {
                let workers: Vec<_> = sources
                    .chunks(half)
                    .map(|part| {
                        let objects = &objects;
                        scope.spawn(move || {
                            part.iter()
                                .try_for_each(|source| self.compile(context, compiler, source, objects))
                        })
                    })
                    .collect();
                workers.into_iter().try_for_each(|worker| {
                    worker.join().map_err(|_| "a compiling thread ended early".to_owned())?
                })
            })
        })?;
        let ours = self.library(context)?;
        let program = self.folder.join("matrix");
        let link = Job::new(compiler)
            .arg("-rdynamic")
            .args(files_in(&objects, |name| name.ends_with(".o")))
            .arg("-o")
            .arg(&program)
            .arg(ours.join("libbowstring.so"))
            .arg(format!("-Wl,-rpath,{}", ours.display()))
            .args(self.libraries().map(|folder| format!("-L{}", folder.display())))
            .args(self.libraries().map(|folder| format!("-Wl,-rpath-link,{}", folder.display())))
            .args(["-lcudf", "-lrmm", "-lrapids_logger", "-ldl"]);
        link.check(&context.log)?;
        Ok(program)
    }

    /// A folder with the release of our library, under the name that the loader looks for as well.
    fn library(&self, context: &Context) -> Result<PathBuf> {
        let workspace = &context.workspace;
        let job = Job::cargo().args(["build", "--release", "--locked", "--package", "bowstring-capi"]);
        announce("building bowstring", || job.dir(workspace.root()).check(&context.log))?;
        let built = workspace.cargo_target().join("release/libbowstring.so");
        let folder = self.folder.join("lib");
        make_folder(&folder)?;
        let version = workspace.version()?;
        let minor = version.rsplit_once('.').map_or(version.as_str(), |(minor, _)| minor);
        for name in ["libbowstring.so".to_owned(), format!("libbowstring.so.{minor}")] {
            fs::copy(&built, folder.join(&name)).map_err(|error| format!("{}: {error}", built.display()))?;
        }
        Ok(folder)
    }

    fn compile(&self, context: &Context, compiler: &str, source: &Path, objects: &Path) -> Result<()> {
        let name = source.file_stem().unwrap_or_default();
        // libcudf's headers use std::variant without including it.
        let flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-include", "variant", "-c"];
        let system = HEADERS.iter().flat_map(|folder| ["-isystem".into(), self.packages.join(folder)]);
        let job =
            Job::new(compiler).args(flags).arg("-I").arg(context.workspace.path("include")).args(system);
        job.arg(source).arg("-o").arg(objects.join(name).with_extension("o")).check(&context.log).map(drop)
    }

    fn libraries(&self) -> impl Iterator<Item = PathBuf> {
        LIBRARIES.iter().map(|folder| self.packages.join(folder))
    }

    /// A run of a program that finds libcudf.
    fn job(&self, program: &Path) -> Job {
        let paths = env::join_paths(self.libraries()).unwrap_or_default();
        Job::new(program).env("LD_LIBRARY_PATH", paths)
    }
}
