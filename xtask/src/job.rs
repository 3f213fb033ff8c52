//! Running other programs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::workspace::{make_folder, read, write};

/// A hanging test must end a run that nobody watches.
const LONGEST: Duration = Duration::from_secs(20 * 60);

/// A file that collects what the programs of one part print.
#[derive(Clone, Debug)]
pub struct Log {
    path: PathBuf,
}

impl Log {
    /// Starts an empty log.
    pub fn create(path: PathBuf) -> Result<Self> {
        write(&path, "")?;
        Ok(Self { path })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All it holds, or its end where it is long.
    pub fn tail(&self, lines: usize) -> String {
        let text = read_lossy(&self.path, 0).unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        let skipped = all.len().saturating_sub(lines);
        all.iter().skip(skipped).fold(String::new(), |text, line| text + line + "\n")
    }

    /// Adds a line of our own.
    pub fn note(&self, line: &str) -> Result<()> {
        let mut file = self.open()?;
        writeln!(file, "{line}").map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn open(&self) -> Result<File> {
        let file = OpenOptions::new().append(true).create(true).open(&self.path);
        file.map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

/// What a program did.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it printed, both streams together.
    pub text: String,
}

/// One run of a program.
#[derive(Debug)]
pub struct Job {
    command: Command,
    shown: String,
}

impl Job {
    /// A run of a program, in the environment that our own caller has.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref();
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        // cargo points the loader at its own outputs, where a test must not find the library.
        match env::var_os("LD_LIBRARY_PATH").map(|paths| without_cargo(&paths)) {
            Some(paths) if !paths.is_empty() => command.env("LD_LIBRARY_PATH", paths),
            _ => command.env_remove("LD_LIBRARY_PATH"),
        };
        Self { command, shown: program.to_string_lossy().into_owned() }
    }

    /// cargo, the one that runs us.
    pub fn cargo() -> Self {
        Self::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).without_our_package()
    }

    /// Takes away what cargo told us about our own package, which is not true of the packages that are built next.
    pub fn without_our_package(mut self) -> Self {
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                self.command.env_remove(&name);
            }
        }
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        let arg = arg.as_ref();
        self.shown += " ";
        self.shown += &arg.to_string_lossy();
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<T: AsRef<OsStr>>(self, args: impl IntoIterator<Item = T>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Sets a variable for the program.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes a variable from the program.
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets variables for the program.
    pub fn envs(mut self, variables: &[(&str, String)]) -> Self {
        self.command.envs(variables.iter().map(|(name, value)| (name, value)));
        self
    }

    /// The folder to run in.
    pub fn dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs with both streams going to the log; what it printed comes back too.
    pub fn run(mut self, log: &Log) -> Result<Finished> {
        log.note(&format!("$ {}", self.shown))?;
        let mut file = log.open()?;
        let start =
            file.seek(SeekFrom::End(0)).map_err(|error| format!("{}: {error}", log.path.display()))?;
        let second = file.try_clone().map_err(|error| format!("{}: {error}", log.path.display()))?;
        self.command.stdout(file).stderr(second);
        let mut child = self.spawn()?;
        let status = self.wait(&mut child)?;
        let text = read_lossy(&log.path, start)?;
        log.note(&format!("({status})"))?;
        Ok(Finished { status, text })
    }

    /// Runs like `run`, and takes any failure as an error.
    pub fn check(self, log: &Log) -> Result<String> {
        let shown = self.shown.clone();
        let finished = self.run(log)?;
        match finished.status.success() {
            true => Ok(finished.text),
            false => Err(format!("failed ({}): {shown}", finished.status)),
        }
    }

    /// Runs quietly and gives what it printed on standard output, if it succeeded.
    pub fn output(mut self) -> Result<String> {
        let output = self.command.output().map_err(|error| format!("{}: {error}", self.shown))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(format!("failed ({}): {}\n{}", output.status, self.shown, stderr.trim_end()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs quietly and gives what it printed on standard error, if it succeeded.
    pub fn complaints(mut self) -> Result<String> {
        let output = self.command.output().map_err(|error| format!("{}: {error}", self.shown))?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(stderr),
            false => Err(format!("failed ({}): {}\n{}", output.status, self.shown, stderr.trim_end())),
        }
    }

    /// Runs with its output shown as it comes; standard output comes back too.
    pub fn stream(mut self) -> Result<Finished> {
        self.command.stdout(Stdio::piped());
        let mut child = self.spawn()?;
        let mut text = String::new();
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n') {
                let line = line.map_err(|error| format!("{}: {error}", self.shown))?;
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                text = text + &line + "\n";
            }
        }
        let status = self.wait(&mut child)?;
        Ok(Finished { status, text })
    }

    fn spawn(&mut self) -> Result<Child> {
        self.command.spawn().map_err(|error| format!("cannot run {}: {error}", self.shown))
    }

    fn wait(&self, child: &mut Child) -> Result<ExitStatus> {
        let started = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if started.elapsed() > LONGEST => {
                    // It may have ended just now; either way it is gone afterwards.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("stopped after {} minutes: {}", LONGEST.as_secs() / 60, self.shown));
                }
                Ok(None) => thread::sleep(pause),
                Err(error) => return Err(format!("{}: {error}", self.shown)),
            }
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }
}

/// Whether a program can be found.
pub fn is_installed(program: &str) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Copies a folder with its symbolic links as they are.
pub fn copy_folder(from: &Path, to: &Path, log: &Log) -> Result<()> {
    if let Some(parent) = to.parent() {
        make_folder(parent)?;
    }
    Job::new("cp").arg("-a").arg(from).arg(to).check(log).map(drop)
}

fn without_cargo(paths: &OsStr) -> OsString {
    let ours = env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    let kept = env::split_paths(paths).filter(|path| {
        let in_outputs = ours.as_ref().is_some_and(|folder| path.starts_with(folder));
        let text = path.to_string_lossy();
        !in_outputs && !text.contains("/rustlib/") && !text.contains("/toolchains/")
    });
    env::join_paths(kept).unwrap_or_default()
}

fn read_lossy(path: &Path, start: u64) -> Result<String> {
    let mut file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes));
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of a file, for those who only look for something in it.
pub fn text_or_empty(path: &Path) -> String {
    read(path).unwrap_or_default()
}
