//! The simulated CUDA driver of `tests/cuda_sim`: its variants, and its self-test.

use std::env;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::Result;
use crate::context::Context;
use crate::job::{Job, is_installed, text_or_empty};
use crate::tally::{Skip, Tally};
use crate::workspace::{Workspace, files_in, make_folder, read, write};

const SOURCES: &str = "tests/cuda_sim";
/// The name by which programs ask for NVIDIA's driver.
const LIBRARY: &str = "libcuda.so.1";
const COMPILE: [&str; 10] = [
    "-std=c11",
    "-D_GNU_SOURCE",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
    "-g",
    "-O1",
    "-fPIC",
    "-fvisibility=hidden",
];
/// It is never unloaded, since its streams are threads, and its own calls stay its own beside another variant.
const LINK: [&str; 4] = ["-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-z,nodelete", "-Wl,-Bsymbolic"];
const LIBRARIES: [&str; 2] = ["-lpthread", "-ldl"];

/// The driver, drivers that lack functions, and a stub as the toolkit has it.
const VARIANTS: [(&str, &[&str]); 4] = [
    ("full", &[]),
    ("no_async_memory", &["-DCUDA_SIM_NO_ASYNC_MEMORY"]),
    ("no_event_record", &["-DCUDA_SIM_NO_EVENT_RECORD"]),
    ("stub", &["-DCUDA_SIM_STUB"]),
];

/// Several parts of the tests need the variants, and none may find half a file.
static COMPILING: Mutex<()> = Mutex::new(());

/// One way to compile it all.
struct Build {
    /// The name of the self-tests of this build, and of their folder.
    name: &'static str,
    compiler: String,
    flags: &'static [&'static str],
    /// How many of the variants are needed.
    variants: usize,
}

/// Builds the variants, where they are not up to date. The folder that holds them comes back.
pub fn variants(workspace: &Workspace) -> Result<PathBuf> {
    let build = plain();
    let folder = workspace.target("cuda-sim");
    let jobs: Vec<_> = VARIANTS.iter().map(|variant| build.library(workspace, &folder, variant)).collect();
    run_all(jobs)?;
    Ok(folder)
}

/// Builds the variants and tells where they are.
pub fn show(workspace: &Workspace) -> Result<bool> {
    println!("{}", variants(workspace)?.display());
    Ok(true)
}

/// The self-test, by each compiler and with the sanitizers. Each of its tests counts.
pub fn check(context: &mut Context) -> Result<Tally> {
    let workspace = &context.workspace;
    let mut tally = Tally::default();
    let mut builds = vec![
        plain(),
        Build { name: "thread", compiler: compiler(), flags: &["-fsanitize=thread"], variants: 1 },
        Build {
            name: "address",
            compiler: compiler(),
            flags: &["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
            variants: 1,
        },
    ];
    if is_installed("clang") {
        builds.push(Build { name: "clang", compiler: "clang".to_owned(), flags: &[], variants: 1 });
    } else {
        tally.skipped.push(Skip { test: "clang".to_owned(), why: "clang is not installed".to_owned() });
    }
    let folder = |build: &Build| match build.variants {
        1 => workspace.target("cuda-sim-tests").join(build.name),
        _ => workspace.target("cuda-sim"),
    };
    let libraries = builds.iter().flat_map(|build| {
        VARIANTS.iter().take(build.variants).map(|variant| build.library(workspace, &folder(build), variant))
    });
    run_all(libraries.collect())?;
    let mut programs: Vec<_> = builds.iter().map(|build| build.tests(workspace, &folder(build))).collect();
    programs.push(plain().answers(workspace));
    run_all(programs)?;

    for build in &builds {
        let program = build.program(workspace, "selftest");
        let run = |launcher: &[&str]| {
            let mut words = launcher.iter().map(OsStr::new).chain([program.as_os_str()]);
            let job = Job::new(words.next().unwrap_or_default()).args(words);
            let job = if build.variants == VARIANTS.len() { job.arg(folder(build)) } else { job };
            job.env("TSAN_OPTIONS", "halt_on_error=1").run(&context.log)
        };
        let mut finished = run(&[])?;
        // An older ThreadSanitizer does not stand the way in which newer kernels scatter memory.
        if finished.text.contains("unexpected memory mapping") && is_installed("setarch") {
            finished = run(&["setarch", "-R"])?;
        }
        let passed = finished.text.lines().filter(|line| line.starts_with("ok ")).count();
        tally.passed += passed;
        tally.expect(finished.status.success() && finished.text.contains(" checks\n"), || {
            format!("{} ended with {} after {passed} tests", program.display(), finished.status)
        });
    }
    let library = workspace.target("cuda-sim").join("full").join(LIBRARY);
    let answers = Job::new(plain().program(workspace, "answers")).arg(library).run(&context.log)?;
    tally.expect(answers.text == read(&workspace.path(SOURCES).join("answers.txt"))?, || {
        format!("the simulated driver does not answer as {SOURCES}/answers.txt has it")
    });
    Ok(tally)
}

fn compiler() -> String {
    env::var("CC").unwrap_or_else(|_| "cc".to_owned())
}

fn plain() -> Build {
    Build { name: "plain", compiler: compiler(), flags: &[], variants: VARIANTS.len() }
}

/// A run of the compiler that may be needless.
struct Compilation {
    job: Job,
    output: PathBuf,
    /// What the output was made of.
    made_of: String,
}

impl Compilation {
    fn run(self) -> Result<()> {
        let stamp = self.output.with_extension("made-of");
        if self.output.is_file() && text_or_empty(&stamp) == self.made_of {
            return Ok(());
        }
        self.job.complaints()?;
        write(&stamp, &self.made_of)
    }
}

fn run_all(compilations: Vec<Result<Compilation>>) -> Result<()> {
    let compilations = compilations.into_iter().collect::<Result<Vec<_>>>()?;
    let _alone = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let threads: Vec<_> = compilations.into_iter().map(|each| scope.spawn(|| each.run())).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => Err("a compilation panicked".to_owned()),
        })
    })
}

impl Build {
    fn program(&self, workspace: &Workspace, name: &str) -> PathBuf {
        workspace.target("cuda-sim-tests").join(self.name).join(name)
    }

    fn library(
        &self,
        workspace: &Workspace,
        folder: &Path,
        (variant, defines): &(&str, &[&str]),
    ) -> Result<Compilation> {
        let folder = folder.join(variant);
        make_folder(&folder)?;
        // The loader looks for the name without a number as well, and for that first.
        let link = folder.join("libcuda.so");
        if !link.exists() {
            std::os::unix::fs::symlink(LIBRARY, &link)
                .map_err(|error| format!("{}: {error}", link.display()))?;
        }
        let sources = sources(workspace, |name| !name.starts_with("selftest") && name != "answers.c");
        let job = Job::new(&self.compiler).args(COMPILE).args(LINK).args(self.flags).args(*defines);
        self.compilation(workspace, job.args(sources), folder.join(LIBRARY), defines)
    }

    fn tests(&self, workspace: &Workspace, folder: &Path) -> Result<Compilation> {
        let program = self.program(workspace, "selftest");
        if let Some(parent) = program.parent() {
            make_folder(parent)?;
        }
        let full = folder.join("full");
        let sources = sources(workspace, |name| name.starts_with("selftest"));
        let job = Job::new(&self.compiler).args(COMPILE).args(self.flags).args(sources);
        let job = job.arg(full.join(LIBRARY)).arg(format!("-Wl,-rpath,{}", full.display()));
        self.compilation(workspace, job, program, &[])
    }

    /// The program that asks any driver the same questions.
    fn answers(&self, workspace: &Workspace) -> Result<Compilation> {
        let program = self.program(workspace, "answers");
        let job = Job::new(&self.compiler).args(COMPILE).args(sources(workspace, |name| name == "answers.c"));
        self.compilation(workspace, job, program, &[])
    }

    fn compilation(
        &self,
        workspace: &Workspace,
        job: Job,
        output: PathBuf,
        defines: &[&str],
    ) -> Result<Compilation> {
        let job = job.args(LIBRARIES).arg("-o").arg(&output);
        let mut hash = DefaultHasher::new();
        for file in files_in(&workspace.path(SOURCES), |name| name.ends_with(".c") || name.ends_with(".h")) {
            read(&file)?.hash(&mut hash);
        }
        let made_of = format!(
            "{} {COMPILE:?} {LINK:?} {:?} {defines:?} {:x}",
            self.compiler,
            self.flags,
            hash.finish()
        );
        Ok(Compilation { job, output, made_of })
    }
}

fn sources(workspace: &Workspace, accept: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    files_in(&workspace.path(SOURCES), |name| name.ends_with(".c") && accept(name))
}
