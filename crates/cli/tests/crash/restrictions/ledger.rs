//! What the clients know of jobs that are unique or limited.

use crate::ledger::{LEASE, text};
use redrive_ojs::time::parse_rfc3339;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How many jobs of the key and of the queue run at once, at most.
pub(crate) const KEY_LIMIT: usize = 2;
pub(crate) const QUEUE_LIMIT: usize = 3;
/// How many jobs of the other key start within [`PERIOD`], at most.
pub(crate) const RATE: usize = 4;
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// The types of limited jobs: by a key, by their queue, and by the rate of a key.
pub(crate) const BY_KEY: &str = "limited.key";
pub(crate) const BY_QUEUE: &str = "limited.queue";
pub(crate) const BY_RATE: &str = "limited.rate";

/// A lease, for as long as it is certain that the job was active.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) kind: String,
    token: Value,
    from: Instant,
    until: Instant,
}

#[derive(Debug)]
pub(crate) struct Restricted {
    /// By how much times of servers may be off.
    pub(crate) slack: Duration,
    /// Jobs whose creation was acknowledged.
    pub(crate) created: BTreeSet<String>,
    /// Jobs of which an operator asked that they run again: their times are those of the last run.
    pub(crate) redriven: BTreeSet<String>,
    pub(crate) held: Vec<Held>,
    /// When jobs started that are limited by a rate, in microseconds, as the server says.
    pub(crate) starts: Vec<i64>,
    /// Jobs created, duplicates ignored, duplicates refused, and jobs redriven.
    pub(crate) counts: [usize; 4],
}

impl Restricted {
    pub(crate) fn new(slack: Duration) -> Self {
        let (created, redriven, held, starts) = Default::default();
        Self { slack, created, redriven, held, starts, counts: [0; 4] }
    }

    /// A worker got a job, for which it asked at this time. The lease cannot end before its length has passed since.
    pub(crate) fn fetched(&mut self, job: &Value, asked: Instant) {
        let kind = text(job, "type");
        if kind == BY_RATE {
            let started = parse_rfc3339(&text(job, "started_at")).expect("the time of the start");
            self.starts.push(started.micros());
        }
        let until = asked + LEASE.saturating_sub(self.slack);
        self.held.push(Held { kind, token: job["lease_token"].clone(), from: Instant::now(), until });
    }

    /// The worker is about to report the end of a run.
    pub(crate) fn ending(&mut self, job: &Value) {
        let held = self.held.iter_mut().rev().find(|held| held.token == job["lease_token"]);
        let held = held.expect("a lease of this worker");
        held.until = held.until.min(Instant::now());
    }

    /// What is wrong with the leases and the starts so far.
    pub(crate) fn exceeded(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (kind, most) in [(BY_KEY, KEY_LIMIT), (BY_QUEUE, QUEUE_LIMIT)] {
            let held: Vec<&Held> = self.held.iter().filter(|held| held.kind == kind).collect();
            for one in &held {
                let at_once = held.iter().filter(|other| other.from <= one.from && one.from < other.until).count();
                if at_once > most && one.from < one.until {
                    wrong.push(format!("{at_once} jobs of {kind} were active at once: {held:?}"));
                    break;
                }
            }
        }
        let mut starts = self.starts.clone();
        starts.sort_unstable();
        let shortest = PERIOD.saturating_sub(self.slack).as_micros() as i64;
        wrong.extend(starts.windows(RATE + 1).filter(|some| some[RATE] - some[0] < shortest).map(|some| {
            format!("{} jobs of {BY_RATE} started within {} microseconds", RATE + 1, some[RATE] - some[0])
        }));
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(kind: &str, token: u32, second: u32) -> Value {
        json!({ "type": kind, "lease_token": token, "started_at": format!("2026-02-13T10:00:{second:02}.000Z") })
    }

    #[test]
    fn too_many_leases_at_once_are_seen_and_as_many_one_after_the_other_are_not() {
        let mut ledger = Restricted::new(Duration::ZERO);
        for token in 0..2 {
            ledger.fetched(&job(BY_KEY, token, 0), Instant::now());
        }
        assert_eq!(ledger.exceeded(), Vec::<String>::new());
        ledger.ending(&job(BY_KEY, 0, 0));
        ledger.fetched(&job(BY_KEY, 2, 0), Instant::now());
        assert_eq!(ledger.exceeded(), Vec::<String>::new());
        ledger.fetched(&job(BY_KEY, 3, 0), Instant::now());
        assert_eq!(ledger.exceeded().len(), 1);
    }

    #[test]
    fn too_many_starts_within_the_period_are_seen() {
        let mut ledger = Restricted::new(Duration::ZERO);
        for second in [0, 0, 0, 0, 1, 2] {
            ledger.fetched(&job(BY_RATE, second, second), Instant::now());
        }
        assert_eq!(ledger.exceeded(), Vec::<String>::new());
        ledger.fetched(&job(BY_RATE, 9, 0), Instant::now());
        assert_eq!(ledger.exceeded().len(), 1);
    }
}
