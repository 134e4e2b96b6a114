//! Bytes as a frame of the log.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redrive_store::fuzz::frame(bytes));
