//! Bytes as the records of a log.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redrive_store::fuzz::log(bytes));
