//! The public header: drift from the Rust source, and what its comments have to say.

use crate::Result;
use crate::c_items::{Kind, items};
use crate::job::{Job, Log};
use crate::tally::Tally;
use crate::workspace::{Workspace, read};

const HEADER: &str = "include/bowstring.h";

/// Compares the committed header with the source and checks its comments.
pub fn check(workspace: &Workspace, log: &Log) -> Result<Tally> {
    let mut tally = crate::libtest::tally(&generator(workspace, "header").run(log)?);
    tally.add(check_comments(&read(&workspace.path(HEADER))?));
    Ok(tally)
}

/// Rewrites the committed header from the source.
pub fn rewrite(workspace: &Workspace) -> Result<()> {
    written(generator(workspace, "header").env("BOWSTRING_WRITE_HEADER", "1"), "the header")
}

/// Rewrites the committed page of rules from their table.
pub fn rewrite_rules(workspace: &Workspace) -> Result<()> {
    written(generator(workspace, "rules").env("BOWSTRING_WRITE_RULES", "1"), "docs/rules.md")
}

fn written(job: Job, what: &str) -> Result<()> {
    let finished = job.stream()?;
    match finished.status.success() {
        true => Ok(()),
        false => Err(format!("{what} was not written ({})", finished.status)),
    }
}

/// The names of the functions that the committed header declares, sorted.
pub fn functions(workspace: &Workspace) -> Result<Vec<String>> {
    let items = items(&read(&workspace.path(HEADER))?);
    let mut names: Vec<String> =
        items.into_iter().filter(|item| item.kind == Kind::Function).map(|item| item.name).collect();
    names.sort();
    Ok(names)
}

/// A test that can also write what it compares.
fn generator(workspace: &Workspace, test: &str) -> Job {
    // Of the whole workspace, because a package alone has other features, and all would be compiled once more for them.
    Job::cargo().args(["test", "--locked", "--workspace", "--test", test]).dir(workspace.root())
}

/// One count for each thing that C can name.
fn check_comments(text: &str) -> Tally {
    let mut tally = Tally::default();
    let items = items(text);
    if !items.iter().any(|item| item.kind == Kind::Function) {
        tally.failed.push(format!("{HEADER} declares no function"));
    }
    for item in items {
        let place = format!("{HEADER}:{}: {}", item.line, item.name);
        tally.count(match (&item.comment, item.kind) {
            (None, _) => Some(format!("{place} has no comment")),
            (Some(comment), Kind::Function) if !comment.contains("Ownership:") => {
                Some(format!("the comment of {place} has no \"Ownership:\""))
            }
            (Some(comment), Kind::Function) if !comment.contains("hread") => {
                Some(format!("the comment of {place} does not say which thread may call it"))
            }
            _ => None,
        });
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_needs_a_comment_and_functions_speak_of_ownership() {
        let good =
            "/** A. */\ntypedef int A;\n/** F. Ownership: none. Any thread. */\nvoid bowstring_f(void);\n";
        assert_eq!(check_comments(good), Tally { passed: 2, ..Tally::default() });
        let threads = "/** F. Ownership: none. */\nvoid bowstring_f(void);\n";
        assert_eq!(check_comments(threads).failed.len(), 1);
        let bare = "typedef int A;\n/** F. */\nvoid bowstring_f(void);\n";
        assert_eq!(check_comments(bare).failed.len(), 2);
        assert_eq!(check_comments("").failed.len(), 1);
    }
}
