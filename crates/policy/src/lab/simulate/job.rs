//! One job, from one attempt to the next.

use super::scenario::Scenario;
use super::tally::Tally;
use crate::{Entropy, Failure, History, Matcher, Moment, Policy, Seeded, decide};

/// The attempts that a simulation runs at most, shared out evenly among its jobs. It ends policies
/// that come back at once, again and again, and never give up.
const MOST_ATTEMPTS: u32 = 1_000_000_000;
/// The share of a single job is no larger than this, however few jobs there are.
const MOST_ATTEMPTS_PER_JOB: u32 = 3_000_000;

/// What is the same for every job.
pub(super) struct Model<'a> {
    pub scenario: &'a Scenario,
    policy: Policy,
    failure: Failure<'a>,
    pub outage_end: Moment,
    pub horizon: Moment,
    /// The number of attempts after which a job is taken out.
    attempts_per_job: u32,
}

/// A job between two attempts.
pub(super) struct Job {
    /// When it runs next.
    pub due: Moment,
    history: History,
    entropy: Seeded,
}

impl<'a> Model<'a> {
    pub(super) fn new(scenario: &'a Scenario, policy: &Policy) -> Self {
        Self {
            scenario,
            policy: only_rule(policy, &scenario.failure()),
            failure: scenario.failure(),
            outage_end: Moment::ORIGIN.after(scenario.outage),
            horizon: Moment::ORIGIN.after(scenario.horizon),
            attempts_per_job: (MOST_ATTEMPTS / scenario.jobs).min(MOST_ATTEMPTS_PER_JOB),
        }
    }
}

/// The same policy with no more than the rule that handles this failure. Every failure of a
/// simulation is the same one, so that the other rules have no say, and a history that counts for
/// one rule needs no memory for others.
fn only_rule(policy: &Policy, failure: &Failure<'_>) -> Policy {
    let mut parts = policy.clone().into_parts();
    // Where none fits, the first one, which does not fit either, stands for all.
    if let Ok((index, _)) = policy.rule_for(failure) {
        parts.rules.swap(0, index);
        parts.rules[0].matcher = Matcher::default();
    }
    parts.rules.truncate(1);
    Policy::new(parts).unwrap_or_else(|_| policy.clone())
}

impl Job {
    pub(super) fn new(model: &Model<'_>, number: u32) -> Self {
        let created = model.scenario.arrival_of(number);
        let entropy = Seeded::new(mixed(model.scenario.seed.wrapping_add(mixed(u64::from(number)))));
        Self { due: created, history: History::new(created), entropy }
    }

    /// True before the first attempt.
    pub(super) fn is_fresh(&self) -> bool {
        self.history.failures() == 0
    }

    /// The attempt fails. True where the job comes back before the horizon.
    #[inline]
    pub(super) fn fail(&mut self, model: &Model<'_>, tally: &mut Tally) -> bool {
        let verdict = decide(&model.policy, &self.history, &model.failure, self.due, self.entropy.draw());
        self.history.record(&verdict);
        tally.failed();
        let Some(delay) = verdict.delay() else {
            tally.gave_up(self.due >= model.outage_end);
            return false;
        };
        self.due = self.due.after(delay);
        if self.due >= model.horizon {
            tally.waits(false);
            return false;
        }
        if self.history.failures() >= model.attempts_per_job {
            tally.waits(true);
            return false;
        }
        true
    }

    /// The attempt is served. True where the job comes back before the horizon.
    #[inline]
    pub(super) fn serve(&mut self, model: &Model<'_>, tally: &mut Tally) -> bool {
        tally.served(self.due);
        let rate = model.scenario.failure_rate_after;
        if rate > 0.0 && self.entropy.draw().value() < rate {
            return self.fail(model, tally);
        }
        tally.succeeded(self.due);
        false
    }
}

/// Spreads neighbouring numbers over all 64 bits, so that the jobs' sources of draws have nothing
/// to do with each other. A bijection: no two jobs share a seed.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
