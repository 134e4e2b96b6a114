//! Bytes as a failed attempt.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redrive_store::fuzz::attempt(bytes));
