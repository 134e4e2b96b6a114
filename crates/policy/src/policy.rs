//! The canonical policy: one form that can say all that the dialects say.

use crate::{
    Backoff, CapPlace, Curve, Delegation, Disposition, Failure, History, Jitter, Matcher, Mismatch, Outcome, Problem,
    Problems, Reason, Span, Verdict,
};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// A valid retry policy. Reading its parts is free; changing them makes a new policy, which is
/// checked again: see [`Policy::new`] and [`Policy::builder`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Policy(Parts);

/// The parts of a policy, which are its JSON form too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parts {
    /// The first rule that fits a failure handles it.
    pub rules: Vec<Rule>,
    /// The limit on runs, the first one included.
    pub attempts: AttemptLimit,
    /// The time since the job's creation at which it must not start again.
    #[serde(rename = "max_elapsed_ms", default, skip_serializing_if = "Option::is_none")]
    pub max_elapsed: Option<Span>,
    /// What becomes of a job that the policy stops.
    pub on_stop: Disposition,
    /// What it is called when no rule fits.
    pub unmatched: Unmatched,
    /// Present where the job leaves its timing to the worker. The decision does not read it: the
    /// rest is what applies while no worker brings another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated: Option<Delegation>,
}

/// One rule: which failures, how many of them, and how long to wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which failures this rule handles.
    #[serde(rename = "match", default, skip_serializing_if = "Matcher::is_any")]
    pub matcher: Matcher,
    /// The failure of this number, among those that the rule handled, is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u32>,
    /// How long to wait.
    pub backoff: Backoff,
}

/// A limit on the number of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptLimit {
    /// Retries are switched off, and said to be.
    Disabled,
    /// No limit from this side. Another side may set one; where none does, retries are off (TaskHarbor,
    /// "Disabling retries").
    Unset,
    /// The largest number of runs. 0 and 1 are the same: the first failure is the last.
    AtMost(u32),
    /// No limit.
    Unlimited,
}

impl AttemptLimit {
    /// The number of runs that are allowed at most, where there is a limit.
    #[must_use]
    pub fn max_runs(self) -> Option<u32> {
        match self {
            Self::Disabled | Self::Unset => Some(1),
            Self::AtMost(runs) => Some(runs.max(1)),
            Self::Unlimited => None,
        }
    }

    /// The tighter of the two.
    #[must_use]
    pub fn tightened(self, other: Self) -> Self {
        match (self, other) {
            (Self::Disabled, _) | (_, Self::Disabled) => Self::Disabled,
            // One run either way: a cap never grants what was off before.
            (Self::Unset, _) | (_, Self::Unset) => Self::Unset,
            (Self::AtMost(a), Self::AtMost(b)) => Self::AtMost(a.min(b)),
            (Self::Unlimited, limit) | (limit, Self::Unlimited) => limit,
        }
    }
}

/// What it is called when no rule fits a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unmatched {
    /// The error is one that must not be retried (OJS, Azolla).
    NonRetryable,
    /// The failure is none of this policy's business and passes through (MWL).
    PassesThrough,
}

impl Policy {
    /// Checks the parts.
    ///
    /// # Errors
    /// Every problem, each with the path of the part in the canonical form.
    pub fn new(parts: Parts) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        if parts.rules.is_empty() {
            problems.push(Problem::new("/rules", "an empty list", "at least one rule"));
        }
        for (index, rule) in parts.rules.iter().enumerate() {
            check_rule(&format!("/rules/{index}"), rule, &mut problems);
        }
        if problems.is_empty() { Ok(Self(parts)) } else { Err(Problems(problems)) }
    }

    /// A policy of rules that were checked already, as parts of other policies.
    pub(crate) const fn valid(parts: Parts) -> Self {
        Self(parts)
    }

    /// The parts, to make another policy from.
    #[must_use]
    pub fn into_parts(self) -> Parts {
        self.0
    }

    /// The same policy under an operator's cap: limits only ever tighten.
    #[must_use]
    pub fn tightened(mut self, attempts: AttemptLimit, max_elapsed: Option<Span>) -> Self {
        self.0.attempts = self.0.attempts.tightened(attempts);
        if let Some(delegated) = &mut self.0.delegated {
            delegated.cap = delegated.cap.tightened(attempts);
        }
        self.0.max_elapsed = match (self.0.max_elapsed, max_elapsed) {
            (Some(a), Some(b)) => Some(a.at_most(b)),
            (a, b) => a.or(b),
        };
        self
    }

    /// The rule that handles a failure.
    ///
    /// # Errors
    /// Why the last rule did not fit, where none does.
    #[inline]
    pub fn rule_for(&self, failure: &Failure<'_>) -> Result<(usize, &Rule), Mismatch> {
        let mut mismatch = Mismatch::NotIncluded;
        for (index, rule) in self.rules.iter().enumerate() {
            match rule.matcher.check(failure) {
                Ok(()) => return Ok((index, rule)),
                Err(why) => mismatch = why,
            }
        }
        Err(mismatch)
    }

    /// The number of retries that a rule can grant at most, where anything limits it.
    #[must_use]
    pub fn max_retries(&self, rule: &Rule) -> Option<u32> {
        let runs = match (self.attempts.max_runs(), rule.budget) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        runs.map(|runs| runs.saturating_sub(1))
    }

    /// What becomes of a job whose time to live is over before its next run: one that has failed is kept or
    /// not as if its retries were exhausted, one that has not failed is dropped.
    #[must_use]
    pub const fn on_expiry(&self, history: &History) -> Disposition {
        if history.failures() > 0 { self.0.on_stop } else { Disposition::Discard }
    }

    /// Why a job that was discarded is not kept as a dead letter. `last` is the verdict on the last failure of its
    /// present generation.
    #[must_use]
    pub const fn why_discarded(&self, last: Option<&Verdict>) -> &'static str {
        let Some(last) = last else { return "it expired before a run of it failed" };
        match (last.outcome, self.0.on_stop) {
            (Outcome::Stop { reason: Reason::Handler, .. }, _) => "its handler asked for that",
            (Outcome::Stop { reason: Reason::Pruned, .. }, _) => "its handler pruned it",
            (_, Disposition::Discard) => "on_exhaustion is discard",
            (_, Disposition::Fail | Disposition::DeadLetter) => "its policy keeps no dead letters",
        }
    }
}

impl Deref for Policy {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl TryFrom<Parts> for Policy {
    type Error = Problems;

    fn try_from(parts: Parts) -> Result<Self, Problems> {
        Self::new(parts)
    }
}

impl From<Policy> for Parts {
    fn from(policy: Policy) -> Self {
        policy.0
    }
}

fn check_rule(path: &str, rule: &Rule, problems: &mut Vec<Problem>) {
    if rule.budget == Some(0) {
        problems.push(Problem::new(format!("{path}/budget"), "0", "at least 1: the first run counts"));
    }
    let backoff = &rule.backoff;
    match backoff.curve {
        Curve::Exponential { rate } if !(rate >= 1.0 && rate.is_finite()) => {
            problems.push(Problem::new(format!("{path}/backoff/curve/rate"), rate, "a finite number of at least 1"));
        }
        Curve::Polynomial { exponent, .. } if !(exponent >= 0.0 && exponent.is_finite()) => {
            let path = format!("{path}/backoff/curve/exponent");
            problems.push(Problem::new(path, exponent, "a finite number of at least 0"));
        }
        _ => {}
    }
    if let (Jitter::Decorrelated, Some(cap)) = (backoff.jitter, backoff.cap)
        && cap.place != CapPlace::AfterJitter
    {
        let path = format!("{path}/backoff/cap/place");
        let found = "another place with decorrelated jitter, which does not read the curve";
        problems.push(Problem::new(path, found, "after_jitter"));
    }
    if let Jitter::Scale { low, high } = backoff.jitter
        && !(low >= 0.0 && high >= low && high.is_finite())
    {
        let found = format!("low {low}, high {high}");
        problems.push(Problem::new(format!("{path}/backoff/jitter"), found, "finite factors with 0 ≤ low ≤ high"));
    }
}
