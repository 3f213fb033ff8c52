//! `docs/rules.md` is what the table of rules says. `BOWSTRING_WRITE_RULES=1` rewrites it instead.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may allocate and panic"
)]

use std::fmt::Write as _;
use std::path::Path;

use bowstring_core::error::{ALL_RULES, Severity, rule_name, rule_severity, rule_source, rule_text};

const HEAD: &str = "<!-- Generated from core/src/error/rules.rs by `cargo xtask rules --write`: change it there. -->

# The rules

Each rule has a number, which an error carries and which is never used for another rule, and a name. The functions
`bowstring_rule_name`, `_text`, `_source`, `_severity` and `_next` tell the same at run time.

A rule that is an *error* makes data invalid (`BOWSTRING_INVALID_DATA`), or unfit for the consumer that a profile names
(`BOWSTRING_NOT_CONFORMING`); ST6 and AS6 alone are about a call, which is refused (`BOWSTRING_INVALID_ARGUMENT`). A *warning* is told
to `on_finding` alone: the data is legal, but a recommendation is not kept, or the consumer would copy. A *note* is worth
knowing. A single check may be milder than its rule: its finding says so.
";

fn heading(prefix: &str) -> Option<&'static str> {
    Some(match prefix {
        "S" => "Schemas",
        "F" => "Format strings",
        "A" => "Arrays",
        "B" => "What buffers hold",
        "M" => "Memory",
        "D" => "Devices",
        "ST" => "Streams",
        "AS" => "Asynchronous streams",
        "DS" => "Streams on devices",
        "DL" => "DLPack tensors",
        "C" => "cuDF",
        _ => return None,
    })
}

fn generated() -> String {
    let mut out = HEAD.to_owned();
    let mut last = String::new();
    for rule in ALL_RULES {
        let number = *rule as i32;
        let text = |text: &'static core::ffi::CStr| text.to_str().expect("the table is UTF-8");
        let name = text(rule_name(number));
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if prefix != last {
            last = prefix.to_owned();
            let heading = heading(prefix).expect("every kind of rule has a heading");
            let _ = write!(
                out,
                "\n## {heading}\n\n| name | number | severity | rule | source |\n|---|---|---|---|---|\n"
            );
        }
        let severity = match rule_severity(number) {
            Some(Severity::Error) => "error",
            Some(Severity::Warning) => "warning",
            Some(Severity::Note) => "note",
            None => panic!("{name} has no severity"),
        };
        let (rule, source) = (text(rule_text(number)), text(rule_source(number)));
        let _ = writeln!(out, "| {name} | {number} | {severity} | {rule} | {source} |");
    }
    out
}

#[test]
fn the_committed_page_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
    let generated = generated();
    if std::env::var_os("BOWSTRING_WRITE_RULES").is_some() {
        std::fs::write(&path, &generated).expect("docs/rules.md can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "docs/rules.md is not what the table says: run `cargo xtask rules --write`"
    );
}

#[test]
fn numbers_and_names_are_used_once() {
    let numbers: std::collections::BTreeSet<i32> = ALL_RULES.iter().map(|rule| *rule as i32).collect();
    let names: std::collections::BTreeSet<_> = numbers.iter().map(|number| rule_name(*number)).collect();
    assert_eq!((numbers.len(), names.len()), (ALL_RULES.len(), ALL_RULES.len()));
    assert!(!numbers.contains(&0) && rule_severity(0).is_none());
}
