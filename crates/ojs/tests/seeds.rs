//! The body of the fuzz target `envelope`, run on its seeds and on damaged copies of them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests fail as tests do")]

#[path = "../../../fuzz/src/envelope.rs"]
#[allow(unreachable_pub, reason = "the fuzz target reaches it")]
mod envelope;

use std::path::Path;

/// How many damaged copies of each seed are tried.
const COPIES: usize = 2_000;

/// The same on every machine, so that a failure can be repeated.
fn damaged(seed: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..bytes.len());
        match random.u8(..4) {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, *random.choice(b"{}[]\",:\\0-1.eE+n \x00\xc3").unwrap_or(&b'0')),
            2 => bytes[at] ^= 1 << random.u8(..8),
            _ => {
                let end = random.usize(at..=bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

#[test]
fn no_job_breaks_the_reader_and_every_body_is_json() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/envelope");
    let mut files: Vec<_> = std::fs::read_dir(seeds).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let seed = std::fs::read(&file).unwrap();
        envelope::envelope(&seed);
        let mut random = fastrand::Rng::with_seed(7);
        for copy in 0..COPIES {
            let bytes = damaged(&seed, &mut random);
            let outcome = std::panic::catch_unwind(|| envelope::envelope(&bytes));
            assert!(outcome.is_ok(), "{}, copy {copy}: {}", file.display(), String::from_utf8_lossy(&bytes));
        }
    }
}
