//! The committed header is what the documented Rust says. `BOWSTRING_WRITE_HEADER=1` rewrites it instead.
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

#[test]
fn committed_header_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/bowstring.h");
    let generated = generated();
    if std::env::var_os("BOWSTRING_WRITE_HEADER").is_some() {
        std::fs::write(&path, &generated).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != generated {
        let differs = committed.lines().zip(generated.lines()).position(|(a, b)| a != b);
        panic!(
            "include/bowstring.h is not what the Rust says, first at line {:?}; run `cargo xtask header --write`",
            differs.map(|line| line + 1)
        );
    }
}
