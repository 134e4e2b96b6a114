//! What is counted while a simulation runs.

use super::instants::Instants;
use crate::{Moment, Span};

/// The most instants that are counted apart. 16 million of four bytes are 64 MB for each thread,
/// of which the system allocates only what is used.
const MOST_INSTANTS: i64 = 16_000_000;
/// The widths of an instant in microseconds, finest first; each divides a second.
const INSTANTS_US: [i64; 4] = [1_000, 10_000, 100_000, SECOND_US];
pub(super) const SECOND_US: i64 = 1_000_000;

/// The counts of one thread; the sum of two is the count of both.
pub(super) struct Tally {
    /// The width of an instant, in microseconds.
    pub instant_us: i64,
    /// Retries by instant.
    pub retries: Instants,
    /// First runs by second.
    pub first_runs: Vec<u32>,
    /// Attempts by second that were served, whether or not they failed.
    pub served: Vec<u32>,
    pub succeeded: u32,
    pub given_up: u32,
    pub given_up_after: u32,
    pub waiting: u32,
    pub cut_short: u32,
    pub attempts: u64,
    pub failed: u64,
    pub overloaded: u64,
    pub last_attempt: Moment,
    pub last_done: Option<Moment>,
}

impl Tally {
    pub(super) fn new(horizon: Span) -> Self {
        let horizon_us = Moment::ORIGIN.after(horizon).micros();
        let count = |width: i64| horizon_us / width + 1;
        let fine_enough = INSTANTS_US.into_iter().find(|width| count(*width) <= MOST_INSTANTS);
        let instant_us = fine_enough.unwrap_or(SECOND_US);
        let places = |width| usize::try_from(count(width)).unwrap_or(0);
        Self {
            instant_us,
            retries: Instants::new(places(instant_us)),
            first_runs: vec![0; places(SECOND_US)],
            served: vec![0; places(SECOND_US)],
            succeeded: 0,
            given_up: 0,
            given_up_after: 0,
            waiting: 0,
            cut_short: 0,
            attempts: 0,
            failed: 0,
            overloaded: 0,
            last_attempt: Moment::ORIGIN,
            last_done: None,
        }
    }

    /// An attempt starts.
    #[inline]
    pub(super) fn attempt(&mut self, at: Moment, first: bool) {
        self.attempts += 1;
        self.last_attempt = self.last_attempt.max(at);
        if first {
            count_at(&mut self.first_runs, at);
        } else {
            self.retries.note((at.micros() / self.instant_us) as usize);
        }
    }

    #[inline]
    pub(super) fn failed(&mut self) {
        self.failed += 1;
    }

    pub(super) fn served(&mut self, at: Moment) {
        count_at(&mut self.served, at);
    }

    pub(super) fn succeeded(&mut self, at: Moment) {
        self.succeeded += 1;
        self.last_done = self.last_done.max(Some(at));
    }

    pub(super) fn gave_up(&mut self, after_outage: bool) {
        self.given_up += 1;
        self.given_up_after += u32::from(after_outage);
    }

    pub(super) fn waits(&mut self, cut_short: bool) {
        self.waiting += 1;
        self.cut_short += u32::from(cut_short);
    }

    /// Adds the counts of another thread.
    pub(super) fn add(&mut self, other: &mut Self) {
        self.retries.settle();
        other.retries.settle();
        self.retries.add(&other.retries);
        for (mine, theirs) in [(&mut self.first_runs, &other.first_runs), (&mut self.served, &other.served)] {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.succeeded += other.succeeded;
        self.given_up += other.given_up;
        self.given_up_after += other.given_up_after;
        self.waiting += other.waiting;
        self.cut_short += other.cut_short;
        self.attempts += other.attempts;
        self.failed += other.failed;
        self.overloaded += other.overloaded;
        self.last_attempt = self.last_attempt.max(other.last_attempt);
        self.last_done = self.last_done.max(other.last_done);
    }
}

/// Attempts lie before the horizon, so that every one has its second.
#[inline]
fn count_at(counts: &mut [u32], at: Moment) {
    if let Some(count) = counts.get_mut((at.micros() / SECOND_US) as usize) {
        *count += 1;
    }
}
