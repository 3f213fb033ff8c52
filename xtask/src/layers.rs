//! The order of the core's folders, and where `unsafe` may stand.

use crate::Result;
use crate::rust_tokens::{Token, tokens};
use crate::tally::Tally;
use crate::workspace::{Workspace, files_below, read};

/// Each row uses only the rows before it; folders of one row do not use each other.
const ORDER: [&[&str]; 10] = [
    &["abi"],
    &["error"],
    &["memory"],
    &["types"],
    &["device"],
    &["kernels"],
    &["tree"],
    &["array"],
    &["validate", "transfer", "tensor"],
    &["stream"],
];

/// Where `unsafe` may stand: folders, and single files.
const UNSAFE: [&str; 7] = ["abi/", "memory/", "device/", "kernels/", "tree/", "tensor/ffi.rs", "stream/ffi/"];

/// Checks every file of the core, one count each.
pub fn check(workspace: &Workspace) -> Result<Tally> {
    let source = workspace.path("core/src");
    let files = files_below(&source, &|name| name.ends_with(".rs"));
    if files.is_empty() {
        return Err("core/src has no Rust files".to_owned());
    }
    let mut tally = Tally::default();
    for file in files {
        let relative = file.strip_prefix(&source).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let complaints = complaints(&relative, &read(&file)?);
        tally.expect(complaints.is_empty(), || complaints.join("\n"));
    }
    Ok(tally)
}

fn complaints(file: &str, source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    if !UNSAFE.iter().any(|place| file.starts_with(place)) {
        let uses = tokens.iter().filter(|token| token.text == "unsafe");
        found.extend(
            uses.map(|token| format!("core/src/{file}:{}: `unsafe` is not allowed here", token.line)),
        );
    }
    let Some(own) = module_path(file).into_iter().next() else { return found };
    let Some(own_row) = row(&own) else {
        found.push(format!("core/src/{file}:1: the folder {own} is not in the order of layers"));
        return found;
    };
    for Use { folder, line } in uses(file, &tokens) {
        match row(&folder) {
            _ if folder == own => {}
            Some(other) if other < own_row => {}
            Some(_) => found.push(format!("core/src/{file}:{line}: {own} may not use {folder}")),
            None => found.push(format!("core/src/{file}:{line}: name the folder, not crate::{folder}")),
        }
    }
    found
}

fn row(folder: &str) -> Option<usize> {
    ORDER.iter().position(|row| row.contains(&folder))
}

/// The module that a file holds: `tree/block.rs` is tree::block, `tree/mod.rs` is tree, `lib.rs` nothing.
fn module_path(file: &str) -> Vec<String> {
    let name = file.strip_suffix(".rs").unwrap_or(file);
    let mut parts: Vec<String> = name.split('/').map(str::to_owned).collect();
    let last = parts.last().map(String::as_str);
    if last == Some("mod") || (parts.len() == 1 && last == Some("lib")) {
        parts.pop();
    }
    parts
}

/// A folder that a path in the source leads to.
struct Use {
    folder: String,
    line: usize,
}

/// Every folder named through `crate::` or through enough `super::`s to reach the root.
fn uses(file: &str, tokens: &[Token]) -> Vec<Use> {
    let mut found = Vec::new();
    let mut depth = module_path(file).len();
    let mut braces: Vec<bool> = Vec::new();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        // `crate` in `pub(crate)` and a word after `::` start no path.
        let starts = at == 0 || text(at - 1) != "::";
        match token.text.as_str() {
            "{" => {
                let opens_module = at >= 2 && text(at - 2) == "mod";
                braces.push(opens_module);
                depth += usize::from(opens_module);
            }
            "}" => depth -= usize::from(braces.pop().unwrap_or(false)).min(depth),
            "crate" if starts && text(at + 1) == "::" => first_names(tokens, at + 2, &mut found),
            "super" if starts => {
                let mut climbed = 1;
                while text(at + 1) == "::" && text(at + 2) == "super" {
                    climbed += 1;
                    at += 2;
                }
                if climbed >= depth && text(at + 1) == "::" {
                    first_names(tokens, at + 2, &mut found);
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The first name of a path, or of each path in a group. Macros live at the root, whatever folder defines them.
fn first_names(tokens: &[Token], start: usize, found: &mut Vec<Use>) {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut add = |at: usize| {
        let is_name = text(at).starts_with(|letter: char| letter == '_' || letter.is_alphabetic());
        if is_name && text(at + 1) != "!" && text(at) != "self" {
            found.extend(tokens.get(at).map(|token| Use { folder: token.text.clone(), line: token.line }));
        }
    };
    if text(start) != "{" {
        return add(start);
    }
    let mut nested = 0_usize;
    for at in start..tokens.len() {
        match text(at) {
            "{" => nested += 1,
            "}" => nested = nested.saturating_sub(1),
            _ if nested == 1 && matches!(text(at - 1), "{" | ",") => add(at),
            _ => {}
        }
        if nested == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_folders_are_refused() {
        let source = "use crate::abi::X;\nuse crate::tree::Y;\n";
        assert_eq!(
            complaints("types/parse.rs", source),
            ["core/src/types/parse.rs:2: types may not use tree"]
        );
        assert!(complaints("array/mod.rs", source).is_empty());
    }

    #[test]
    fn groups_and_inline_paths_are_seen() {
        let source = "use crate::{abi::{a, tree}, stream::b};\nfn f() -> crate::array::Z {}";
        let found = complaints("types/mod.rs", source);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().any(|line| line.contains(":1: types may not use stream")));
        assert!(found.iter().any(|line| line.contains(":2: types may not use array")));
    }

    #[test]
    fn supers_are_followed_to_the_root() {
        assert_eq!(complaints("types/parse/text.rs", "use super::super::super::array::X;").len(), 1);
        assert!(complaints("types/parse/text.rs", "use super::super::array::X;").is_empty());
        assert_eq!(complaints("types/mod.rs", "mod tests { use super::super::array::X; }").len(), 1);
        assert!(complaints("types/mod.rs", "mod tests { use super::array::X; } fn f() {}").is_empty());
        assert_eq!(complaints("types/mod.rs", "mod tests { } use super::array::X;").len(), 1);
    }

    #[test]
    fn folders_of_one_row_keep_apart() {
        assert_eq!(complaints("validate/mod.rs", "use crate::transfer::X;").len(), 1);
        assert!(complaints("stream/mod.rs", "use crate::transfer::X;").is_empty());
    }

    #[test]
    fn comments_strings_macros_and_visibility_do_not_count() {
        let source =
            "// crate::stream\npub(crate) const X: &str = \"crate::stream unsafe\"; crate::ensure!(true);";
        assert!(complaints("abi/mod.rs", source).is_empty());
        assert_eq!(complaints("abi/mod.rs", "use crate::Status;").len(), 1);
    }

    #[test]
    fn unsafe_is_kept_in_its_places() {
        let source = "#![forbid(unsafe_code)]\n// unsafe\nfn f() { unsafe { g() } }";
        assert_eq!(
            complaints("tensor/mod.rs", source),
            ["core/src/tensor/mod.rs:3: `unsafe` is not allowed here"]
        );
        assert!(complaints("tensor/ffi.rs", source).is_empty());
        assert!(complaints("memory/plan.rs", source).is_empty());
        assert_eq!(complaints("lib.rs", source).len(), 1);
    }

    #[test]
    fn unknown_folders_are_refused() {
        assert_eq!(complaints("extra/mod.rs", "").len(), 1);
        assert!(complaints("lib.rs", "pub mod abi; pub use crate::extra::X;").is_empty());
    }
}
