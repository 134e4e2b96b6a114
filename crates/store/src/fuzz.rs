//! What the readers of bytes promise, whatever the bytes are: no panic, no memory by a length that is only claimed, and
//! what was read is written as the same bytes. The fuzz targets call these; the tests below run them on seeds.

use crate::codec::{Decoder, revision as revisions, row as rows, run as runs, verdict as verdicts};
use crate::job::Spec;
use crate::{JobId, RunId};
use redrive_policy::{AttemptLimit, Backoff, Disposition, Matcher, Parts, Policy, Rule, Unmatched};
use std::sync::Arc;

pub use crate::embedded::fuzz::{frame, header, log};

/// Bytes as the row of a job.
pub fn row(bytes: &[u8]) {
    let mut from = Decoder::new(bytes);
    let Ok((created, row)) = rows::decode(&mut from) else { return };
    let Some(spec) = spec() else { return };
    let job = row.into_job(JobId::from_bytes([0; 16]), spec, created, Vec::new(), Vec::new());
    let mut again = Vec::new();
    rows::encode(&job, &mut again);
    assert_same(&again, bytes, &from);
}

/// Bytes as a failed attempt.
pub fn attempt(bytes: &[u8]) {
    let mut from = Decoder::new(bytes);
    let Ok(run) = verdicts::decode(&mut from) else { return };
    let mut again = Vec::new();
    verdicts::encode(&run, &mut again);
    assert_same(&again, bytes, &from);
}

/// Bytes as a revision.
pub fn revision(bytes: &[u8]) {
    let mut from = Decoder::new(bytes);
    let Ok(revision) = revisions::decode(&mut from) else { return };
    let mut again = Vec::new();
    revisions::encode(&revision, &mut again);
    assert_same(&again, bytes, &from);
}

/// Bytes as a run.
pub fn run(bytes: &[u8]) {
    let mut from = Decoder::new(bytes);
    let Ok(run) = runs::decode(RunId::from_bytes([0; 16]), &mut from) else { return };
    let mut again = Vec::new();
    runs::encode(&run, &mut again);
    assert_same(&again, bytes, &from);
}

/// Bytes as a message to a run.
pub fn message(bytes: &[u8]) {
    let mut from = Decoder::new(bytes);
    let Ok(message) = runs::decode_message(1, &mut from) else { return };
    let mut again = Vec::new();
    runs::encode_message(&message, &mut again);
    assert_same(&again, bytes, &from);
}

fn assert_same(again: &[u8], bytes: &[u8], from: &Decoder<'_>) {
    assert_eq!(again, &bytes[..bytes.len() - from.rest().len()], "what was read is written as it was");
}

/// Any spec: the row does not know it.
fn spec() -> Option<Arc<Spec>> {
    let rules = vec![Rule { matcher: Matcher::default(), budget: None, backoff: Backoff::IMMEDIATE }];
    let (attempts, on_stop) = (AttemptLimit::Unlimited, Disposition::Discard);
    let parts =
        Parts { rules, attempts, max_elapsed: None, on_stop, unmatched: Unmatched::NonRetryable, delegated: None };
    let policy = Arc::new(Policy::new(parts).ok()?);
    Some(Arc::new(Spec::new("kind", "queue", Arc::default(), policy)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    type Target = fn(&[u8]);

    const TARGETS: [(&str, Target); 8] = [
        ("row", row),
        ("attempt", attempt),
        ("revision", revision),
        ("run", run),
        ("message", message),
        ("frame", frame),
        ("header", header),
        ("log", log),
    ];
    /// How many damaged copies of each seed are tried.
    const COPIES: usize = 400;

    /// The same on every machine, so that a failure can be repeated.
    fn damaged(seed: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..=bytes.len());
            match random.u8(..4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, *random.choice(&[0, 1, 0x7f, 0x80, 0xff]).unwrap_or(&0)),
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
                _ => bytes.push(random.u8(..)),
            }
        }
        bytes
    }

    #[test]
    fn no_target_fails_on_its_seeds_or_on_damaged_copies_of_them() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
        for (name, target) in TARGETS {
            let mut files: Vec<_> =
                std::fs::read_dir(seeds.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
            files.sort();
            assert!(!files.is_empty(), "{name} has no seeds");
            for file in files {
                let seed = std::fs::read(&file).unwrap();
                target(&seed);
                let mut random = fastrand::Rng::with_seed(7);
                for copy in 0..COPIES {
                    let bytes = damaged(&seed, &mut random);
                    let outcome = std::panic::catch_unwind(|| target(&bytes));
                    assert!(outcome.is_ok(), "{}, copy {copy}: {bytes:02x?}", file.display());
                }
            }
        }
    }
}
