//! See `run_tensor` of the harness.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bowstring_fuzz::run_tensor(data));
