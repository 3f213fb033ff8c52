//! How the shared library was linked.

use std::path::Path;

use crate::Result;
use crate::job::{Job, Log};
use crate::prefix::Prefix;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// What the library may ask the loader for. Older C libraries keep threads and dlopen apart.
const NEEDED: [&str; 6] =
    ["libc.so.6", "libgcc_s.so.1", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"];

/// Checks the release.
pub fn check(workspace: &Workspace, log: &Log) -> Result<Tally> {
    let library = Prefix::release(workspace).cargo_build(workspace, log)?;
    check_library(&library, &format!("libbowstring.so.{}", abi(&workspace.version()?)), log)
}

/// Checks a copy of the library under the name that it has to have.
pub fn check_library(library: &Path, soname: &str, log: &Log) -> Result<Tally> {
    let dynamic =
        Job::new("readelf").args(["--wide", "--dynamic"]).arg(library).env("LC_ALL", "C").output()?;
    let relocations =
        Job::new("readelf").args(["--wide", "--relocs"]).arg(library).env("LC_ALL", "C").output()?;
    log.note(&dynamic)?;
    Ok(judge(&dynamic, &relocations, soname))
}

/// The part of a version that names the ABI.
fn abi(version: &str) -> String {
    let mut numbers = version.split('.');
    match (numbers.next(), numbers.next()) {
        (Some("0"), Some(minor)) => format!("0.{minor}"),
        (major, _) => major.unwrap_or_default().to_owned(),
    }
}

fn judge(dynamic: &str, relocations: &str, soname: &str) -> Tally {
    let mut tally = Tally::default();
    let entries = |tag: &str| -> Vec<&str> {
        let tag = format!("({tag})");
        dynamic
            .lines()
            .filter_map(|line| line.split_once(tag.as_str()))
            .map(|(_, value)| value.trim())
            .collect()
    };
    let names = |tag: &str| -> Vec<&str> {
        entries(tag).iter().filter_map(|value| value.split_once('[')?.1.strip_suffix(']')).collect()
    };

    let sonames = names("SONAME");
    tally.expect(sonames == [soname], || format!("the soname: expected {soname}, found {sonames:?}"));
    let flags = entries("FLAGS_1").join(" ");
    tally.expect(flags.contains("NODELETE"), || format!("FLAGS_1: expected NODELETE, found: {flags}"));
    let strange: Vec<&str> = names("NEEDED").into_iter().filter(|name| !NEEDED.contains(name)).collect();
    tally.expect(strange.is_empty(), || format!("the library needs {strange:?}"));
    let writes_code =
        dynamic.contains("(TEXTREL)") || entries("FLAGS").iter().any(|value| value.contains("TEXTREL"));
    tally.expect(!writes_code, || "the library has text relocations".to_owned());
    let paths: Vec<&str> = [names("RPATH"), names("RUNPATH")].concat();
    tally.expect(paths.is_empty(), || format!("the library searches {paths:?}"));
    let is_outside = |line: &&str| line.contains(" bowstring_") && !line.contains("RELATIVE");
    let outside: Vec<&str> = relocations.lines().filter(is_outside).collect();
    tally.expect(outside.is_empty(), || {
        format!("calls to our own functions go through the loader:\n{}", outside.join("\n"))
    });
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
 0x0000000000000001 (NEEDED)             Shared library: [libgcc_s.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000e (SONAME)             Library soname: [libbowstring.so.0.1]
 0x000000000000001e (FLAGS)              BIND_NOW
 0x000000006ffffffb (FLAGS_1)            Flags: NOW NODELETE
";

    #[test]
    fn a_good_library_passes() {
        assert_eq!(judge(GOOD, "", "libbowstring.so.0.1").line(), "6 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn each_fault_is_seen() {
        let faults = [
            (GOOD.replace("so.0.1", "so.0.2"), ""),
            (GOOD.replace(" NODELETE", ""), ""),
            (GOOD.replace("libc.so.6", "libcuda.so.1"), ""),
            (GOOD.replace("BIND_NOW", "TEXTREL BIND_NOW"), ""),
            (GOOD.to_owned() + " 0x0f (RUNPATH)  Library runpath: [/x]\n", ""),
            (GOOD.to_owned(), "00 0007 R_X86_64_JUMP_SLOT 00 bowstring_version + 0"),
        ];
        for (dynamic, relocations) in faults {
            let found = judge(&dynamic, relocations, "libbowstring.so.0.1");
            assert_eq!(found.failed.len(), 1, "{dynamic}{relocations}");
        }
    }

    #[test]
    fn the_abi_is_the_minor_version_below_one() {
        assert_eq!(abi("0.1.3"), "0.1");
        assert_eq!(abi("2.1.3"), "2");
    }
}
