//! Compiles nanoarrow, whose C sources the variable NANOARROW_SOURCES names, and the few lines that ask it.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a build may fail for want of memory"
)]

use std::fs;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-env-changed=NANOARROW_SOURCES");
    println!("cargo::rerun-if-changed=src/nanoarrow.c");
    let sources = std::env::var_os("NANOARROW_SOURCES").map(PathBuf::from);
    let sources = sources.expect("NANOARROW_SOURCES names nanoarrow's folder of C sources");
    let common = sources.join("nanoarrow/common");
    // The header that nanoarrow's own build makes; its settings do not matter here.
    let template = fs::read_to_string(sources.join("nanoarrow/nanoarrow_config.h.in"));
    let made: String = template
        .expect("nanoarrow has a template of its settings")
        .lines()
        .map(|line| if line.contains('@') { settle(line) } else { line.to_owned() } + "\n")
        .collect();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names the output folder"));
    fs::create_dir_all(out.join("nanoarrow")).expect("the output folder can be written");
    fs::write(out.join("nanoarrow/nanoarrow_config.h"), made).expect("the output folder can be written");
    let mut build = cc::Build::new();
    build.include(&out).include(&sources).file("src/nanoarrow.c").flag("-fvisibility=hidden").warnings(false);
    for name in ["array.c", "schema.c", "utils.c", "array_stream.c"] {
        build.file(common.join(name));
    }
    build.compile("judge_nanoarrow");
}

/// A line of the template: a version, which is not looked at, or a namespace, which is not wanted.
fn settle(line: &str) -> String {
    match (line.find('@'), line.contains("VERSION")) {
        (Some(at), true) => {
            let (head, tail) = line.split_at(at);
            let rest = tail.trim_start_matches('@').split_once('@').map_or("", |(_, rest)| rest);
            format!("{head}0{rest}")
        }
        _ => String::new(),
    }
}
