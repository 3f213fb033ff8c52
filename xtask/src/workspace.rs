//! Where things lie.

use std::env;
use std::path::{Path, PathBuf};

use crate::Result;

/// The checkout and the folders that the commands use in it.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace that this command was built in, or else the one around the current folder.
    pub fn find() -> Result<Self> {
        let from_cargo = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let here = env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
        let start = from_cargo.unwrap_or(here);
        let root =
            start.ancestors().find(|folder| folder.join("xtask").is_dir() && folder.join("core").is_dir());
        root.map(|root| Self { root: root.to_owned() })
            .ok_or_else(|| format!("{} is not inside the project", start.display()))
    }

    /// The root of the checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the root.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// A path below the folder of build outputs.
    pub fn target(&self, relative: &str) -> PathBuf {
        self.root.join("target").join(relative)
    }

    /// Where cargo puts what it builds for us, which the environment may have moved.
    pub fn cargo_target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| self.root.join("target"), |folder| self.root.join(folder))
    }

    /// The folder with Arrow's public integration files, where there is one.
    pub fn golden(&self) -> Option<PathBuf> {
        let named = env::var_os("BOWSTRING_GOLDEN").map(PathBuf::from);
        named
            .or_else(|| self.root.parent().map(|parent| parent.join("shared/golden")))
            .filter(|folder| folder.is_dir())
    }

    /// The release that Cargo.toml states.
    pub fn version(&self) -> Result<String> {
        let text = read(&self.path("Cargo.toml"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("version = \""));
        line.and_then(|rest| rest.split('"').next())
            .map(str::to_owned)
            .ok_or_else(|| "Cargo.toml states no version".to_owned())
    }
}

/// A whole text file, or an error that names it.
pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a whole text file and the folders it needs.
pub fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes a folder and those around it.
pub fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Removes a folder that may not be there.
pub fn remove_folder(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The files directly in a folder whose names the test accepts, sorted. No folder means no files.
pub fn files_in(folder: &Path, accept: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(&accept))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// Every file below a folder whose name the test accepts, sorted.
pub fn files_below(folder: &Path, accept: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut files = files_in(folder, accept);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files.extend(files_below(&entry.path(), accept));
        }
    }
    files.sort();
    files
}
