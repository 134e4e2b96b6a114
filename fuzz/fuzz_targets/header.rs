//! Bytes as the first sector of a file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redrive_store::fuzz::header(bytes));
