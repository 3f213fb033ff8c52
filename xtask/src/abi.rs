//! The binary interface, against a committed description of it.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::context::Context;
use crate::job::{Job, Log, is_installed};
use crate::tally::Tally;
use crate::workspace::{Workspace, write};

const DESCRIPTION: &str = "cmake/abi.xml";

/// Compares; any difference fails, because even an addition has to be meant.
pub fn check(context: &mut Context) -> Result<Tally> {
    if !(is_installed("abidw") && is_installed("abidiff")) {
        return Ok(Tally::skip("abidw and abidiff are not installed"));
    }
    let library = debug_library(&context.workspace, &context.log)?;
    let now = context.workspace.target("abi/now.xml");
    write(&now, &describe(&library)?)?;
    let committed = context.workspace.path(DESCRIPTION);
    Job::new("abidiff").arg(&committed).arg(&now).check(&context.log).map_err(|error| {
        format!("the binary interface is not the one in {DESCRIPTION}; if that is meant: cargo xtask abi --write\n{error}")
    })?;
    Ok(Tally::pass())
}

/// Writes the description anew.
pub fn rewrite(workspace: &Workspace) -> Result<()> {
    let log = Log::create(workspace.target("logs/abi.log"))?;
    let library = debug_library(workspace, &log).map_err(|error| log.tail(60) + &error)?;
    write(&workspace.path(DESCRIPTION), &describe(&library)?)?;
    println!("{DESCRIPTION} written");
    Ok(())
}

/// The debug build, because types are described from debug information.
fn debug_library(workspace: &Workspace, log: &Log) -> Result<PathBuf> {
    let job = Job::cargo().args(["build", "--locked", "--package", "bowstring-capi"]).dir(workspace.root());
    job.env("CARGO_PROFILE_DEV_DEBUG", "full").check(log)?;
    Ok(workspace.cargo_target().join("debug/libbowstring.so"))
}

/// The description, without what differs from machine to machine.
fn describe(library: &Path) -> Result<String> {
    let quiet = [
        "--no-corpus-path",
        "--no-comp-dir-path",
        "--no-show-locs",
        "--no-elf-needed",
        "--drop-undefined-syms",
    ];
    Ok(tidy(&Job::new("abidw").args(quiet).args(["--type-id-style", "hash"]).arg(library).output()?))
}

/// Leaves out the compilation units without interfaces, and the compiler's names for the others.
fn tidy(description: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    for line in description.lines() {
        let opens_empty = kept.last().is_some_and(|last| last.trim_start().starts_with("<abi-instr "));
        if line.trim() == "</abi-instr>" && opens_empty {
            kept.pop();
            continue;
        }
        let unit = line.trim_start().starts_with("<abi-instr ");
        kept.push(match line.split_once("/@/").filter(|_| unit) {
            Some((before, after)) => {
                format!("{before}'{}", after.split_once('\'').map_or("", |(_, rest)| rest))
            }
            None => line.to_owned(),
        });
    }
    kept.iter().fold(String::new(), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_units_and_unit_names_go() {
        let text = "<abi-corpus>\n  <abi-instr path='x/@/y'>\n  </abi-instr>\n  \
            <abi-instr a='64' path='src/lib.rs/@/07tu' b='c'>\n    <f/>\n  </abi-instr>\n</abi-corpus>\n";
        let expected = "<abi-corpus>\n  <abi-instr a='64' path='src/lib.rs' b='c'>\n    <f/>\n  </abi-instr>\n</abi-corpus>\n";
        assert_eq!(tidy(text), expected);
    }
}
