//! Linker arguments for the copy of the library that the Python package carries.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // A name of its own, so that the loader never takes this copy for an installed one or the other way round.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libbowstring_python.so");
        // The reasons for both are those of the library itself, in its own build script.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    }
}
