//! Bytes as a job that a caller enqueues.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redrive_fuzz::envelope::envelope(bytes));
