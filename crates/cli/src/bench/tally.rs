//! What a phase counted: times, and every job by its number.

use crate::exit::Failed;
use std::time::{Duration, Instant};

/// The latencies of the requests of a phase, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Latencies(Vec<u32>);

impl Latencies {
    pub(super) fn add(&mut self, since: Instant) {
        self.0.push(u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX));
    }

    /// The time that this share of the requests, from 0 to 1, did not exceed, in milliseconds.
    pub(super) fn quantiles_ms<const N: usize>(&mut self, shares: [f64; N]) -> [f64; N] {
        self.0.sort_unstable();
        shares.map(|share| {
            let rank = (share * self.0.len() as f64).ceil() as usize;
            self.0.get(rank.saturating_sub(1)).map_or(0.0, |micros| f64::from(*micros) / 1e3)
        })
    }
}

/// The ledger of a drain: how often each job ran, and whether it was finished.
#[derive(Debug)]
pub(super) struct Ledger {
    runs: Vec<u8>,
    done: Vec<bool>,
    finished: usize,
    /// How many runs each job needs.
    needed: u8,
}

impl Ledger {
    pub(super) fn new(jobs: usize, failing: bool) -> Self {
        Self { runs: vec![0; jobs], done: vec![false; jobs], finished: 0, needed: if failing { 3 } else { 1 } }
    }

    /// Counts a run, and returns whether it has to fail.
    pub(super) fn started(&mut self, number: usize, attempt: u32) -> Result<bool, Failed> {
        let jobs = self.runs.len();
        let runs = self
            .runs
            .get_mut(number)
            .ok_or_else(|| Failed::invalid(format!("job {number} was claimed, but there are only {jobs}")))?;
        *runs = runs.saturating_add(1);
        if u32::from(*runs) != attempt || *runs > self.needed {
            return Err(Failed::invalid(format!(
                "job {number} was claimed for run {runs} of {}, but the server calls it attempt {attempt}",
                self.needed
            )));
        }
        Ok(*runs < self.needed)
    }

    /// Counts a success that the server has acknowledged.
    pub(super) fn finished(&mut self, number: usize) -> Result<(), Failed> {
        match self.done.get_mut(number) {
            Some(done) if !*done => *done = true,
            _ => return Err(Failed::invalid(format!("job {number} was acknowledged twice"))),
        }
        self.finished += 1;
        Ok(())
    }

    pub(super) fn is_complete(&self) -> bool {
        self.finished == self.done.len()
    }

    /// How many jobs are done, as text.
    pub(super) fn state(&self) -> String {
        format!("{} of {} jobs done", self.finished, self.done.len())
    }

    /// All runs of all jobs.
    pub(super) fn runs(&self) -> usize {
        self.runs.iter().map(|runs| usize::from(*runs)).sum()
    }
}

/// The processor time of this process so far; absent if the system does not report it.
pub(super) fn process_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in brackets and may contain spaces; user and system time are the
    // 12th and 13th field after it, in hundredths of a second.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks()? + ticks()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_occurred() {
        let mut latencies = Latencies((1..=1_000).rev().collect());
        assert_eq!(latencies.quantiles_ms([0.5, 0.99, 1.0]), [0.5, 0.99, 1.0]);
        assert_eq!(Latencies::default().quantiles_ms([0.5]), [0.0]);
    }

    #[test]
    fn the_ledger_notices_what_a_broken_server_does() {
        let mut ledger = Ledger::new(2, true);
        assert!(matches!(ledger.started(0, 1), Ok(true)));
        assert!(ledger.started(0, 1).is_err(), "the same run twice");
        let mut ledger = Ledger::new(1, false);
        assert!(matches!(ledger.started(0, 1), Ok(false)));
        assert!(ledger.started(0, 2).is_err(), "a run too many");
        assert!(ledger.started(7, 1).is_err(), "a job of another run");
        assert!(!ledger.is_complete());
        assert!(ledger.finished(0).is_ok());
        assert!(ledger.is_complete());
        assert!(ledger.finished(0).is_err());
    }
}
