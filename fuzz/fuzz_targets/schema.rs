//! See `run_schema` of the harness.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bowstring_fuzz::run_schema(data));
