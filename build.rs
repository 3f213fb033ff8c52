//! Linker arguments for the shared library: its name, and that it stays loaded.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a build script may fail for want of memory"
)]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    // cargo-c passes a soname of its own, and two of them would not agree.
    let named_by_cargo_c = env::var_os("CARGO_FEATURE_CAPI").is_some();
    let name = env::var("CARGO_PKG_VERSION").map(|version| abi_version(&version)).unwrap_or_default();
    match target.as_str() {
        "linux" => {
            if !named_by_cargo_c {
                println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libbowstring.so.{name}");
            }
            // Structs that we gave away point into our code, so it may never be unmapped.
            println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
            // A second copy of the library in the process must not answer calls that we make to ourselves.
            println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
        }
        "macos" if !named_by_cargo_c => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libbowstring.{name}.dylib");
        }
        _ => {}
    }
}

/// The part of the version that changes with the ABI: 0.MINOR below 1.0, else MAJOR.
fn abi_version(version: &str) -> String {
    let mut numbers = version.split('.');
    match (numbers.next(), numbers.next()) {
        (Some("0"), Some(minor)) => format!("0.{minor}"),
        (major, _) => major.unwrap_or_default().to_owned(),
    }
}
