//! Bytes as a policy of the dialect `ojs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redrive_fuzz::policy(redrive_policy::dialect::Dialect::Ojs, bytes));
