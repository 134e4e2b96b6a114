//! Bytes as a policy of the dialect `exosphere`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redrive_fuzz::policy(redrive_policy::dialect::Dialect::Exosphere, bytes));
