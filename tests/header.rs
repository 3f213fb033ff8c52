//! The committed headers are what the documented Rust says. `BOWSTRING_WRITE_HEADER=1` rewrites them instead.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may allocate and panic"
)]

use std::path::Path;

fn generated() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is valid");
    let version = env!("CARGO_PKG_VERSION").split('.').zip(["@MAJOR@", "@MINOR@", "@PATCH@"]);
    let text = config.after_includes.take().expect("there is text after the includes");
    config.after_includes = Some(version.fold(text, |text, (number, mark)| text.replace(mark, number)));
    let mut bytes = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_crate(root)
        .generate()
        .expect("the exported functions can be written as C")
        .write(&mut bytes);
    for_readers(&String::from_utf8(bytes).expect("the header is text"))
}

/// Rust's own headings and the contracts of `unsafe` say nothing to a C reader that the text above them does not.
fn for_readers(header: &str) -> String {
    let mut out = String::new();
    let mut in_safety = false;
    for line in header.lines() {
        let comment = line.trim_start().strip_prefix("///").map(str::trim);
        in_safety = match comment {
            Some("# Safety") => true,
            Some(_) => in_safety,
            None => false,
        };
        if !in_safety {
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    // An empty comment line is left where the heading was cut off.
    out.replace("///\nBOWSTRING_API", "BOWSTRING_API").replace("\n\n\n", "\n\n")
}

/// What cffi's `cdef` takes as it is: no comments, no preprocessor but numbers, and everything in one file.
fn for_cffi(header: &str) -> String {
    let mut out = "/* Generated from bowstring.h by `cargo xtask header --write`: every declaration in it and in Arrow's\n \
                   * structs, as cffi's ffi.cdef() takes them. C and C++ include bowstring.h. */\n"
        .to_owned();
    // Whether each of the conditions around a line holds.
    let mut conditions: Vec<bool> = Vec::new();
    for line in without_comments(header).lines().map(str::trim_end) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["#ifdef" | "#if", ..] => conditions.push(false),
            ["#ifndef", _] => conditions.push(true),
            ["#else"] => {
                let held = conditions.pop().expect("#else has its #if");
                conditions.push(!held);
            }
            ["#endif"] => drop(conditions.pop().expect("#endif has its #if")),
            _ if conditions.contains(&false) => {}
            ["#include", name] if name.starts_with('"') => {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(name.trim_matches('"'));
                let included = std::fs::read_to_string(path).expect("the included header is there");
                out.push_str(for_cffi(&included).split_once("*/\n").expect("the heading ends").1);
            }
            ["#define", _, value] if value.parse::<i64>().is_ok() => push_line(&mut out, line),
            ["#define", _] | ["#include", _] => {}
            [directive, ..] if directive.starts_with('#') => panic!("cffi does not take: {line}"),
            ["BOWSTRING_API"] => {}
            ["BOWSTRING_API", ..] => {
                push_line(&mut out, line.trim_start_matches("BOWSTRING_API").trim_start())
            }
            _ => push_line(&mut out, line),
        }
    }
    assert!(conditions.is_empty(), "an #if has no #endif");
    out
}

fn push_line(out: &mut String, line: &str) {
    if !line.is_empty() {
        out.push_str(line);
        out.push('\n');
    }
}

fn without_comments(header: &str) -> String {
    let mut out = String::new();
    let mut rest = header;
    while let Some((before, after)) = rest.split_once('/') {
        out.push_str(before);
        rest = match after.chars().next() {
            Some('/') => after.find('\n').map_or("", |end| after.get(end..).expect("a line ends there")),
            Some('*') => after.split_once("*/").expect("a comment ends").1,
            _ => {
                out.push('/');
                after
            }
        };
    }
    out + rest
}

/// Compares a committed file with what it has to be, or rewrites it.
fn up_to_date(file: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("BOWSTRING_WRITE_HEADER").is_some() {
        std::fs::write(&path, generated).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != generated {
        let differs = committed.lines().zip(generated.lines()).position(|(a, b)| a != b);
        panic!(
            "{file} is not what the Rust says, first at line {:?}; run `cargo xtask header --write`",
            differs.map(|line| line + 1)
        );
    }
}

#[test]
fn committed_headers_are_up_to_date() {
    let header = generated();
    up_to_date("include/bowstring.h", &header);
    up_to_date("include/bowstring.cdef.h", &for_cffi(&header));
}

#[test]
fn cffi_gets_what_a_c_compiler_sees() {
    let header = "/* A. */\n#ifndef X_H\n#define X_H\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\
        #if defined(_WIN32)\n#define BOWSTRING_API dll\n#else\n#define BOWSTRING_API\n#endif\n\
        /// One / two.\n#define ONE 1\n\n\n/// N.\n#define TWO -2\n\nBOWSTRING_API int f(void); // F\nBOWSTRING_API\n\
        int g(int a,\n      int b);\n#endif\n";
    let text = for_cffi(header);
    let declarations = text.split_once("*/\n").expect("the heading ends").1;
    assert_eq!(declarations, "#define ONE 1\n#define TWO -2\nint f(void);\nint g(int a,\n      int b);\n");
}

#[test]
fn names_are_the_librarys_own() {
    let header = without_comments(&generated());
    let mut count = 0;
    for line in header.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let named = match words.as_slice() {
            ["#define", name, ..] => *name,
            ["typedef", .., name] | ["}", name] if name.ends_with(';') => *name,
            ["struct", name] if name.ends_with(';') => *name,
            _ => continue,
        };
        count += 1;
        let is_ours = named.starts_with("Bowstring") || named.starts_with("BOWSTRING_");
        assert!(is_ours || named.starts_with("DLManagedTensor"), "{named} in: {line}");
    }
    assert!(count > 50, "{count} names");
}
