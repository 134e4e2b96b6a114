//! Bytes as a revision.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redrive_store::fuzz::revision(bytes));
