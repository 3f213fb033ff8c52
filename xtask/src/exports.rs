//! What the shared library exports, against the committed list and the header.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Result;
use crate::header;
use crate::job::{Job, Log};
use crate::prefix::Prefix;
use crate::tally::Tally;
use crate::workspace::{Workspace, read, write};

const LIST: &str = "cmake/exports.txt";

/// The committed list.
pub fn committed(workspace: &Workspace) -> Result<BTreeSet<String>> {
    Ok(read(&workspace.path(LIST))?.lines().map(str::to_owned).collect())
}

/// Every global symbol that a library or archive defines.
pub fn defined(file: &Path, dynamic: bool) -> Result<BTreeSet<String>> {
    let kind = if dynamic { "--dynamic" } else { "--extern-only" };
    let listing = Job::new("nm").args([kind, "--defined-only", "--format=posix"]).arg(file).output()?;
    // An archive's listing has a heading per member.
    let lines = listing.lines().filter(|line| !line.ends_with(':') && !line.is_empty());
    Ok(lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// One count per name: listed, exported and declared.
pub fn check(workspace: &Workspace, log: &Log) -> Result<Tally> {
    let exported = defined(&Prefix::release(workspace).cargo_build(workspace, log)?, true)?;
    let text = read(&workspace.path(LIST))?;
    let declared = header::functions(workspace)?.into_iter().collect();
    Ok(compare(&text, &exported, &declared))
}

/// Writes the list anew.
pub fn rewrite(workspace: &Workspace) -> Result<()> {
    let log = Log::create(workspace.target("logs/exports.log"))?;
    let library =
        Prefix::release(workspace).cargo_build(workspace, &log).map_err(|error| log.tail(60) + &error)?;
    let exported = defined(&library, true)?;
    let text = exported.iter().fold(String::new(), |text, name| text + name + "\n");
    write(&workspace.path(LIST), &text)?;
    println!("{LIST}: {} symbols", exported.len());
    Ok(())
}

fn compare(text: &str, exported: &BTreeSet<String>, declared: &BTreeSet<String>) -> Tally {
    let lines: Vec<&str> = text.lines().collect();
    let listed: BTreeSet<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let mut tally = Tally::default();
    tally.expect(!lines.is_empty() && lines.iter().is_sorted() && lines.len() == listed.len(), || {
        format!("{LIST} is empty, not sorted or names a symbol twice")
    });
    for name in listed.iter().chain(exported).chain(declared).collect::<BTreeSet<_>>() {
        let places = [("listed", &listed), ("exported", exported), ("declared in the header", declared)];
        let (in_it, not_in_it): (Vec<_>, Vec<_>) =
            places.into_iter().partition(|(_, names)| names.contains(name));
        tally.expect(not_in_it.is_empty(), || {
            let words =
                |places: Vec<(&'static str, _)>| places.iter().map(|(word, _)| *word).collect::<Vec<_>>();
            format!("{name} is {}, but not {}", words(in_it).join(" and "), words(not_in_it).join(" or "))
        });
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn drift_is_seen_both_ways() {
        assert_eq!(compare("a\nb\n", &set(&["a", "b"]), &set(&["a", "b"])).passed, 3);
        assert_eq!(
            compare("a\nb\n", &set(&["a"]), &set(&["a", "b"])).failed,
            ["b is listed and declared in the header, but not exported"]
        );
        assert_eq!(
            compare("a\n", &set(&["a", "c"]), &set(&["a"])).failed,
            ["c is exported, but not listed or declared in the header"]
        );
        assert_eq!(compare("b\na\n", &set(&["a", "b"]), &set(&["a", "b"])).failed.len(), 1);
        assert_eq!(compare("", &set(&[]), &set(&[])).failed.len(), 1);
    }
}
