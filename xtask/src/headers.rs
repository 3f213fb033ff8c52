//! The public headers beside those that define the same structs: every order, compiler and standard.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

mod hpp;

use crate::Result;
use crate::context::Context;
use crate::job::{Job, Log, is_installed};
use crate::tally::{Skip, Tally};
use crate::tools::Tools;
use crate::workspace::{Workspace, make_folder, read, remove_folder, write};

/// The headers that every order has. Either of DLPack's comes to them.
const HEADERS: [&str; 4] =
    ["bowstring.h", "nanoarrow/nanoarrow.h", "nanoarrow/nanoarrow_device.h", "arrow/c/abi.h"];
/// The newest DLPack at hand, and the oldest with versioned tensors. They share a guard, so one program has one of them.
const DLPACKS: [Dlpack; 2] = [
    Dlpack { header: "arrow/c/dlpack_abi.h", name: "DLPack 1.3", minor: 3 },
    Dlpack { header: "nanoarrow/dlpack_abi.h", name: "DLPack 1.0", minor: 0 },
];
/// Five headers in every order.
const ORDERS: usize = 120;
/// Orders of one DLPack that are told apart by what is left after the preprocessor; fewer means that guards swallow one.
const FEWEST_TEXTS: usize = 60;

/// The guards of nanoarrow's function bodies. They take longer to compile than all else and declare nothing that its
/// other headers do not, so only the first and the last order have them.
const BODIES: [&str; 2] = ["NANOARROW_ARRAY_INLINE_H_INCLUDED", "NANOARROW_BUFFER_INLINE_H_INCLUDED"];

const WARNINGS: [&str; 6] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function", "-fsyntax-only"];

const C: &str = "c";
const CXX: &str = "cc";

/// A compiler in one of its languages.
#[derive(Clone, Copy)]
struct Dialect {
    compiler: &'static str,
    /// The ending of a file in that language.
    language: &'static str,
    standard: &'static str,
}

const DIALECTS: [Dialect; 8] = [
    Dialect { compiler: "gcc", language: C, standard: "c99" },
    Dialect { compiler: "gcc", language: C, standard: "c11" },
    Dialect { compiler: "g++", language: CXX, standard: "c++17" },
    Dialect { compiler: "g++", language: CXX, standard: "c++20" },
    Dialect { compiler: "clang", language: C, standard: "c99" },
    Dialect { compiler: "clang", language: C, standard: "c11" },
    Dialect { compiler: "clang++", language: CXX, standard: "c++17" },
    Dialect { compiler: "clang++", language: CXX, standard: "c++20" },
];

impl Dialect {
    fn name(self) -> String {
        format!("{} -std={}", self.compiler, self.standard)
    }

    fn job(self, folders: &Folders) -> Job {
        let job = Job::new(self.compiler).env("LC_ALL", "C").arg(format!("-std={}", self.standard));
        folders.0.iter().fold(job, |job, folder| job.arg("-I").arg(folder))
    }

    /// Checks many files. clang's driver starts a process for each, which takes longer than the file itself, but the
    /// compiler behind it takes them all at once.
    fn compile(self, command: impl Fn() -> Job, files: &[PathBuf]) -> Result<Job> {
        let direct = match files.first() {
            Some(file) if self.compiler.starts_with("clang") => {
                let shown = command().arg("-###").arg(file).complaints()?;
                compiler_behind(&shown, &file.to_string_lossy())
            }
            _ => None,
        };
        let job = match &direct {
            Some(words) => {
                words.iter().skip(1).fold(Job::new(words.first().unwrap_or(&String::new())), Job::arg)
            }
            None => command(),
        };
        Ok(job.args(files))
    }
}

struct Dlpack {
    header: &'static str,
    name: &'static str,
    minor: u32,
}

/// The command of clang's driver for one file, without the file.
fn compiler_behind(shown: &str, file: &str) -> Option<Vec<String>> {
    let line = shown.lines().rfind(|line| line.contains("\"-cc1\""))?;
    let words: Vec<String> = line.trim().trim_matches('"').split("\" \"").map(str::to_owned).collect();
    // The driver escapes what a shell would take apart; such a path is left to it.
    let (last, words) = words.split_last()?;
    let is_plain = last == file && words.iter().all(|word| !word.contains('\\'));
    is_plain.then(|| words.to_vec())
}

/// Where the headers are.
struct Folders(Vec<PathBuf>);

/// One count for each DLPack with each compiler and standard, one for a header without the shared guards, and those of
/// the C++ wrapper.
pub fn check(context: &mut Context) -> Result<Tally> {
    let tools = context.tools()?;
    let folder = context.workspace.target("headers");
    remove_folder(&folder)?;
    let folders = folders(&context.workspace, &tools, &folder)?;
    let mut tally = Tally::default();
    let mut dialects = DIALECTS.to_vec();
    if !(is_installed("clang") && is_installed("clang++")) {
        dialects.retain(|dialect| !dialect.compiler.starts_with("clang"));
        tally.skipped.push(Skip { test: "clang".to_owned(), why: "clang is not installed".to_owned() });
    }

    let mut orders = Vec::new();
    let mut work: Vec<(String, Job)> = Vec::new();
    for language in [C, CXX] {
        let of_language: Vec<Dialect> =
            dialects.iter().copied().filter(|dialect| dialect.language == language).collect();
        let first = of_language.first().ok_or("there is no compiler")?;
        let files = DLPACKS.iter().map(|dlpack| write_orders(&folder, language, dlpack));
        let files = files.collect::<Result<Vec<_>>>()?;
        // DLPack's headers have no guard that another header knows, so one of them speaks for both.
        let job = first.job(&folders).args(["-E", "-P"]).args(files.first().into_iter().flatten());
        work.push((format!("orders in .{language}"), job));
        orders.push((of_language, files));
    }
    let texts = in_parallel(work)?;

    let mut work = Vec::new();
    for ((of_language, files), (name, text)) in orders.iter().zip(texts) {
        let different = different(&text?);
        tally.expect(different.len() == ORDERS && distinct(&different) >= FEWEST_TEXTS, || {
            format!("{} {name}, {} of them different", different.len(), distinct(&different))
        });
        context.log.note(&format!(
            "{} {name}, {} of them different",
            different.len(),
            distinct(&different)
        ))?;
        for (turn, dialect) in of_language.iter().enumerate() {
            for (dlpack, files) in DLPACKS.iter().zip(files) {
                let files = files.iter().zip(&different).filter(|(_, new)| **new);
                // Dialects take turns: every order is compiled, by every other of them.
                let files = files.enumerate().filter(|(n, _)| (n + turn) % 2 == 0);
                let files: Vec<PathBuf> = files.map(|(_, (file, _))| file.clone()).collect();
                let name = format!("{}, {}", dialect.name(), dlpack.name);
                work.push((name, dialect.compile(|| dialect.job(&folders).args(WARNINGS), &files)?));
            }
        }
    }
    for (name, result) in in_parallel(work)? {
        tally.count(complaint(&name, &result, &context.log)?);
    }
    tally.add(planted(&context.workspace, &folder, &folders, &dialects)?);
    dialects.retain(|dialect| dialect.language == CXX);
    tally.add(hpp::check(context, &folder.join("hpp"), &folders, &dialects)?);
    Ok(tally)
}

/// The folders to search, and the headers in them that have to be made first.
fn folders(workspace: &Workspace, tools: &Tools, folder: &Path) -> Result<Folders> {
    let package = tools.nanoarrow().ancestors().find(|path| name_of(path).starts_with("nanoarrow-"));
    let package = package.ok_or("nanoarrow's sources are not in a folder with their version")?;
    let version = name_of(package).trim_start_matches("nanoarrow-").to_owned();
    let config = read(&tools.nanoarrow().join("nanoarrow/nanoarrow_config.h.in"))?;
    let names = ["NANOARROW_VERSION_MAJOR", "NANOARROW_VERSION_MINOR", "NANOARROW_VERSION_PATCH"];
    let settings = names.into_iter().zip(version.split('.'));
    let settings =
        settings.chain([("NANOARROW_VERSION", version.as_str()), ("NANOARROW_NAMESPACE_DEFINE", "")]);
    let config = settings.fold(config, |text, (name, value)| text.replace(&format!("@{name}@"), value));
    write(&folder.join("config/nanoarrow/nanoarrow_config.h"), &config)?;
    let arrow =
        Job::new(tools.python()).args(["-c", "import pyarrow; print(pyarrow.get_include())"]).output()?;
    Ok(Folders(vec![
        workspace.path("include"),
        workspace.path("c_tests"),
        tools.nanoarrow().to_owned(),
        folder.join("config"),
        PathBuf::from(arrow.trim()),
        package.join("src"),
    ]))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A program for each order, each with a first line that tells it from the others.
fn write_orders(folder: &Path, language: &str, dlpack: &Dlpack) -> Result<Vec<PathBuf>> {
    let folder = folder.join(format!("{language}-1.{}", dlpack.minor));
    make_folder(&folder)?;
    let headers = [&HEADERS, [dlpack.header].as_slice()].concat();
    let mut files = Vec::new();
    let orders = permutations(&headers);
    for (number, order) in orders.iter().enumerate() {
        let file = folder.join(format!("order_{number}.{language}"));
        let bodies = number == 0 || number + 1 == orders.len();
        write(&file, &program(number, order, bodies, dlpack.minor))?;
        files.push(file);
    }
    Ok(files)
}

fn program(number: usize, order: &[&str], bodies: bool, dlpack: u32) -> String {
    let guards =
        BODIES.iter().filter(|_| !bodies).fold(String::new(), |text, guard| text + "#define " + guard + "\n");
    let includes = order.iter().fold(String::new(), |text, header| text + "#include <" + header + ">\n");
    format!(
        "extern int order_{number};\n{guards}{includes}#include \"abi_layout.h\"\n\
         ABI_ARROW_LAYOUT;\nABI_ASYNC_LAYOUT;\nABI_DEVICE_NUMBERS;\n\
         #if !defined(__cplusplus) && DLPACK_MINOR_VERSION == 0\n\
         typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;\n#endif\n\
         ABI_DLPACK_LAYOUT;\n\
         ABI_ASSERT(DLPACK_MAJOR_VERSION == 1 && DLPACK_MINOR_VERSION == {dlpack}, \"the DLPack that was meant\");\n"
    )
}

fn permutations<'a>(items: &[&'a str]) -> Vec<Vec<&'a str>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for first in items {
        let others: Vec<&str> = items.iter().copied().filter(|item| item != first).collect();
        found.extend(permutations(&others).into_iter().map(|rest| [vec![*first], rest].concat()));
    }
    found
}

/// Which orders are new after the preprocessor: where guards leave the same text, the first stands for all.
fn different(text: &str) -> Vec<bool> {
    let mut seen = BTreeSet::new();
    let texts = text.split("extern int order_").skip(1);
    texts.map(|text| seen.insert(text.split_once(';').map(|(_, rest)| rest))).collect()
}

fn distinct(different: &[bool]) -> usize {
    different.iter().filter(|new| **new).count()
}

/// Runs the jobs on as many threads as the machine has cores; the results are in their order.
fn in_parallel(work: Vec<(String, Job)>) -> Result<Vec<(String, Result<String>)>> {
    let slots: Vec<_> = work.into_iter().map(|(name, job)| Mutex::new((name, Some(job), None))).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Ok(mut slot) = slot.lock() else { return };
                    let result = slot.1.take().map(Job::output);
                    slot.2 = result;
                }
            });
        }
    });
    let done = slots.into_iter().map(|slot| {
        let (name, _, result) = slot.into_inner().map_err(|_| "a thread ended early".to_owned())?;
        Ok((name, result.ok_or("a job was not run")?))
    });
    done.collect()
}

/// The first lines of a failure; all of it goes to the log.
fn complaint(name: &str, result: &Result<String>, log: &Log) -> Result<Option<String>> {
    let Err(error) = result else { return Ok(None) };
    log.note(&format!("{name}: {error}"))?;
    let is_fault = |line: &&str| line.contains("error: ") || line.contains("warning: ");
    let first: Vec<&str> = error.lines().filter(is_fault).take(4).collect();
    Ok(Some(format!("{name}: {}", first.join("\n"))))
}

/// A header that defines the structs under a guard of its own has to be refused, or the orders above prove nothing.
fn planted(workspace: &Workspace, folder: &Path, folders: &Folders, dialects: &[Dialect]) -> Result<Tally> {
    let own = folder.join("own_guards");
    let guards = read(&workspace.path("include/bowstring/arrow_c_abi.h"))?;
    write(&own.join("bowstring/arrow_c_abi.h"), &guards.replace(" ARROW_C_", " OWN_ARROW_C_"))?;
    write(&own.join("bowstring.h"), &read(&workspace.path("include/bowstring.h"))?)?;
    let mut all = vec![own];
    all.extend(folders.0.iter().cloned());
    let all = Folders(all);
    let mut tally = Tally::default();
    for dialect in dialects {
        for other in HEADERS.iter().skip(1) {
            let file = folder.join(format!("planted.{}", dialect.language));
            write(&file, &format!("#include <{other}>\n#include <bowstring.h>\n"))?;
            let result = dialect.job(&all).args(WARNINGS).arg(&file).output();
            let found = result.is_err_and(|error| error.contains("redefinition of"));
            tally.expect(found, || format!("{}: {other} defines what we define, unseen", dialect.name()));
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_behind_the_driver_is_found() {
        let shown = "clang version 14\n \"/usr/bin/clang\" \"-cc1\" \"-I\" \"a b\" \"-x\" \"c\" \"f.c\"\n";
        let words = compiler_behind(shown, "f.c").unwrap();
        assert_eq!(words, ["/usr/bin/clang", "-cc1", "-I", "a b", "-x", "c"]);
        assert_eq!(compiler_behind(shown, "g.c"), None);
        assert_eq!(compiler_behind("clang version 14\n", "f.c"), None);
    }

    #[test]
    fn the_same_text_is_compiled_once() {
        let text = "extern int order_0;\nA\nextern int order_1;\nB\nextern int order_2;\nA\n";
        assert_eq!(different(text), [true, true, false]);
    }

    #[test]
    fn every_order_comes_once() {
        let all = permutations(&["a", "b", "c"]);
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!((all.len(), different.len()), (6, 6));
        assert!(all.contains(&vec!["b", "a", "c"]));
    }
}
