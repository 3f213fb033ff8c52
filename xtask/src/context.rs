//! What the parts of one run share.

use crate::Result;
use crate::job::{Job, Log};
use crate::prefix::Prefix;
use crate::tools::Tools;
use crate::workspace::Workspace;

/// One run of the tests: the workspace, the current part's log, and what was made ready once.
#[derive(Debug)]
pub struct Context {
    /// Where things lie.
    pub workspace: Workspace,
    /// The log of the part that runs now.
    pub log: Log,
    tools: Option<Tools>,
    installed: Vec<Prefix>,
}

impl Context {
    /// A run that has made nothing ready yet.
    pub fn new(workspace: Workspace, log: Log) -> Self {
        Self { workspace, log, tools: None, installed: Vec::new() }
    }

    /// The tools, installed on first use.
    pub fn tools(&mut self) -> Result<Tools> {
        match &self.tools {
            Some(tools) => Ok(tools.clone()),
            None => Ok(self.tools.insert(Tools::set_up(&self.workspace)?).clone()),
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

    /// A run of the environment's Python that finds the library, the package and the golden files.
    pub fn python(&mut self) -> Result<Job> {
        let release = self.release()?;
        let folders = ["python", "python/src"].map(|folder| self.workspace.path(folder));
        let paths = std::env::join_paths(folders.iter().filter(|folder| folder.is_dir()));
        let job = Job::new(self.tools()?.python())
            .env("BOWSTRING_LIBRARY", release.shared())
            .env("PYTHONPATH", paths.map_err(|error| format!("the checkout's path: {error}"))?)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(self.with_golden(job))
    }

    /// Tells a program where the golden files are, if they are.
    pub fn with_golden(&self, job: Job) -> Job {
        match self.workspace.golden() {
            Some(folder) => job.env("BOWSTRING_GOLDEN", folder),
            None => job,
        }
    }

    fn installed(&mut self, prefix: Prefix) -> Result<Prefix> {
        if !self.installed.iter().any(|known| known.path() == prefix.path()) {
            let tools = self.tools()?;
            prefix.install(&self.workspace, &tools, &self.log)?;
            self.installed.push(prefix.clone());
        }
        Ok(prefix)
    }
}
