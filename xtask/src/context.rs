//! What the parts of one run share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Result;
use crate::job::{Job, Log};
use crate::prefix::Prefix;
use crate::tools::Tools;
use crate::wheel::Wheel;
use crate::workspace::Workspace;

/// One part of a run of the tests: the workspace, the part's log, and what was made ready once for all parts.
#[derive(Debug)]
pub struct Context {
    /// Where things lie.
    pub workspace: Workspace,
    /// The log of this part.
    pub log: Log,
    /// What this part has to say beside its account.
    pub remarks: Vec<String>,
    shared: Arc<Shared>,
}

/// What is made ready once. A part that needs what another one is making waits for it.
#[derive(Debug, Default)]
struct Shared {
    tools: Mutex<Option<Tools>>,
    installed: Mutex<Vec<Installed>>,
    wheel: Mutex<Option<Wheel>>,
}

/// A prefix, and whether it is there.
type Installed = (PathBuf, Arc<Mutex<bool>>);

impl Context {
    /// A run that has made nothing ready yet.
    pub fn new(workspace: Workspace, log: Log) -> Self {
        Self { workspace, log, remarks: Vec::new(), shared: Arc::default() }
    }

    /// Another part of the same run.
    pub fn part(&self, log: Log) -> Self {
        let shared = Arc::clone(&self.shared);
        Self { workspace: self.workspace.clone(), log, remarks: Vec::new(), shared }
    }

    /// The tools, installed on first use.
    pub fn tools(&mut self) -> Result<Tools> {
        let mut tools = lock(&self.shared.tools);
        match &*tools {
            Some(tools) => Ok(tools.clone()),
            None => Ok(tools.insert(Tools::set_up(&self.workspace)?).clone()),
        }
    }

    /// The installed release.
    pub fn release(&mut self) -> Result<Prefix> {
        self.installed(Prefix::release(&self.workspace))
    }

    /// The installed copy with a sanitizer.
    pub fn sanitized(&mut self, sanitizer: &'static str) -> Result<Prefix> {
        self.installed(Prefix::sanitized(&self.workspace, sanitizer))
    }

    /// A run of the environment's Python that finds the library and the golden files.
    pub fn python(&mut self) -> Result<Job> {
        let release = self.release()?;
        let job = Job::new(self.tools()?.python())
            .env("BOWSTRING_LIBRARY", release.shared())
            // Many tests start a process of their own, whose packages are compiled once for all of them, and not into the
            // sources' folders.
            .without("PYTHONDONTWRITEBYTECODE")
            .env("PYTHONPYCACHEPREFIX", self.workspace.target("python/bytecode"));
        Ok(self.with_golden(job))
    }

    /// The Python package's wheel, built on first use.
    pub fn wheel(&mut self) -> Result<Wheel> {
        let tools = self.tools()?;
        let mut wheel = lock(&self.shared.wheel);
        match &*wheel {
            Some(wheel) => Ok(wheel.clone()),
            None => Ok(wheel.insert(Wheel::build(&self.workspace, &tools)?).clone()),
        }
    }

    /// A run of the environment's Python that finds the package as its wheel has it as well.
    pub fn python_with_package(&mut self) -> Result<Job> {
        let wheel = self.wheel()?;
        let job = self.python()?.env("PYTHONPATH", wheel.site());
        Ok(job.without("BOWSTRING_PYTHON_LIBRARY"))
    }

    /// Tells a program where the golden files are, if they are.
    pub fn with_golden(&self, job: Job) -> Job {
        match self.workspace.golden() {
            Some(folder) => job.env("BOWSTRING_GOLDEN", folder),
            None => job,
        }
    }

    fn installed(&mut self, prefix: Prefix) -> Result<Prefix> {
        let place = {
            let mut all = lock(&self.shared.installed);
            match all.iter().find(|(path, _)| path == prefix.path()) {
                Some((_, place)) => Arc::clone(place),
                None => {
                    let place = Arc::default();
                    all.push((prefix.path().to_owned(), Arc::clone(&place)));
                    place
                }
            }
        };
        let mut is_there = lock(&place);
        if !*is_there {
            let tools = self.tools()?;
            prefix.install(&self.workspace, &tools, &self.log)?;
            *is_there = true;
        }
        Ok(prefix)
    }
}

/// A part that panicked leaves nothing half done here: what it was making is not there.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
