//! The code in the documentation: C compiles against the installed library, Python runs.

use std::path::Path;

use crate::Result;
use crate::context::Context;
use crate::job::{Job, Log};
use crate::prefix::Prefix;
use crate::tally::Tally;
use crate::workspace::{files_in, read, remove_folder, write};

/// A program that a page shows as it is.
struct Shown {
    page: &'static str,
    program: &'static str,
    language: &'static str,
    /// It stays below so many lines, or it is no short way to do what it does.
    lines: usize,
}

const SHOWN: [Shown; 2] = [
    Shown { page: "README.md", program: "examples/programs/nested_column.cc", language: "cpp", lines: 40 },
    Shown { page: "docs/guide.md", program: "examples/programs/plugin_device.c", language: "c", lines: 150 },
];

/// One count for each block, and one for each program that a page and the examples share.
pub fn check(context: &mut Context) -> Result<Tally> {
    let release = context.release()?;
    let folder = context.workspace.target("docs");
    remove_folder(&folder)?;
    let mut files = ["README.md", "python/README.md"].map(|page| context.workspace.path(page)).to_vec();
    files.extend(files_in(&context.workspace.path("docs"), |name| name.ends_with(".md")));
    let mut tally = Tally::default();
    for file in files {
        let name = file.strip_prefix(context.workspace.root()).unwrap_or(&file).display().to_string();
        for block in blocks(&read(&file)?) {
            let source = folder.join(format!(
                "{}_{}.{}",
                name.trim_end_matches(".md").replace('/', "_"),
                block.line,
                block.language
            ));
            write(&source, &block.code)?;
            let result = match block.language {
                "py" => context
                    .python_with_package()?
                    .arg("-u")
                    .arg(&source)
                    .dir(&folder)
                    .check(&context.log)
                    .map(drop),
                language => compile(language, &source, &block.code, &release, &context.log),
            };
            tally.count(result.err().map(|error| format!("{name}:{}: {error}", block.line)));
        }
    }
    if tally == Tally::default() {
        tally.failed.push("the documentation has no code that is checked".to_owned());
    }
    for shown in &SHOWN {
        let program = read(&context.workspace.path(shown.program))?;
        let page = read(&context.workspace.path(shown.page))?;
        tally.expect(shown.is_in(&page, &program), || {
            format!("{} has to show {} as it is, and that in few lines", shown.page, shown.program)
        });
    }
    Ok(tally)
}

impl Shown {
    /// Whether the page shows the program whole, and the program is short.
    fn is_in(&self, page: &str, program: &str) -> bool {
        let block = format!("```{}\n{program}```\n", self.language);
        page.contains(&block) && program.lines().count() < self.lines
    }
}

/// A whole program is linked and run as well.
fn compile(language: &str, source: &Path, code: &str, release: &Prefix, log: &Log) -> Result<()> {
    let is_program = code.contains("main(");
    let (compiler, standard) = if language == "c" { ("cc", "-std=c11") } else { ("c++", "-std=c++17") };
    let output = source.with_extension(if is_program { "out" } else { "o" });
    let job = Job::new(compiler)
        .args([standard, "-Wall", "-pedantic-errors", "-I"])
        .arg(release.path().join("include"));
    let job = job.arg("-o").arg(&output).arg(source);
    if !is_program {
        return job.arg("-c").check(log).map(drop);
    }
    let library = release.path().join("lib");
    let job = job.arg("-L").arg(&library).args(["-lbowstring", "-lpthread"]);
    job.arg(format!("-Wl,-rpath,{}", library.display())).check(log)?;
    Job::new(&output).check(log).map(drop)
}

/// A piece of code in a page.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The ending of a file in that language.
    language: &'static str,
    code: String,
    line: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    // The fence that is open, and the block in it where it is one of ours.
    let mut open: Option<(String, Option<Block>)> = None;
    for (index, line) in page.lines().enumerate() {
        let fence: String = line.trim_start().chars().take_while(|letter| *letter == '`').collect();
        let info = line.trim_start().get(fence.len()..).unwrap_or_default().trim();
        match &mut open {
            None if fence.len() >= 3 => open = Some((fence, begin(info, index + 1))),
            None => {}
            Some((opening, _)) if fence.len() >= opening.len() && info.is_empty() => {
                found.extend(open.take().and_then(|(_, block)| block));
            }
            Some((_, Some(block))) => {
                block.code += line;
                block.code += "\n";
            }
            Some((_, None)) => {}
        }
    }
    found
}

fn begin(info: &str, line: usize) -> Option<Block> {
    let mut words = info.split([' ', ',', '{', '}']).filter(|word| !word.is_empty());
    let language = match words.next()? {
        "c" => "c",
        "cpp" | "c++" => "cc",
        "python" => "py",
        _ => return None,
    };
    let ignored = words.any(|word| word == "ignore");
    (!ignored).then(|| Block { language, code: String::new(), line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_program_is_the_same_and_short() {
        let [shown, in_c] = SHOWN;
        let page = "# T\n```cpp\nint a;\n```\n";
        assert!(shown.is_in(page, "int a;\n"));
        assert!(!shown.is_in(page, "int b;\n"));
        assert!(!in_c.is_in(page, "int a;\n"));
        let long = "int a;\n".repeat(shown.lines);
        assert!(!shown.is_in(&format!("```cpp\n{long}```\n"), &long));
    }

    #[test]
    fn blocks_are_found_and_ignored_ones_left() {
        let page = "# T\n```c\nint a;\n```\ntext\n```python ignore\nx\n```\n````md\n```c\nno\n```\n````\n```python\nprint()\n```\n```\nplain\n```\n";
        let found: Vec<_> =
            blocks(page).into_iter().map(|block| (block.language, block.code, block.line)).collect();
        assert_eq!(found, [("c", "int a;\n".to_owned(), 2), ("py", "print()\n".to_owned(), 14)]);
    }
}
