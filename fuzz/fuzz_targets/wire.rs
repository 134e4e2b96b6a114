//! Bytes as text, and as a failure of every dialect.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redrive_fuzz::text(bytes));
