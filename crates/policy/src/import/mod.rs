//! Importers for the systems that people migrate from: their own settings into the canonical
//! policy, with what it cannot say.

mod bullmq;
mod celery;
mod faktory;
mod oban;
mod sidekiq;
mod temporal;

use crate::dialect::fields::{Fields, Findings};
use crate::dialect::{Reading, Warning};
use crate::{
    AttemptLimit, Backoff, Curve, Disposition, Jitter, Matcher, Parts, Policy, Problems, Rounding, Rule, Span,
    Unmatched,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A system whose retry settings can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Temporal's `RetryPolicy`, as its API writes it in JSON.
    Temporal,
    /// The `sidekiq_options` of a job class.
    Sidekiq,
    /// The options of a Celery task.
    Celery,
    /// The `JobsOptions` of a BullMQ job, or the `defaultJobOptions` of a queue.
    BullMq,
    /// A Faktory job.
    Faktory,
    /// The options of an Oban worker.
    Oban,
}

/// A policy that was read from another system's settings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Import {
    /// The policy in canonical form.
    pub policy: Policy,
    /// Where the policy differs from what the system does.
    pub lost: Vec<Loss>,
    /// What the system itself does not do as it looks, or does not read at all.
    pub warnings: Vec<Warning>,
}

/// Something that the canonical policy cannot say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// A JSON Pointer into the document; empty where no single field is the cause.
    pub path: String,
    /// What cannot be said, and what the policy does instead.
    pub message: String,
}

impl Loss {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Temporal, Self::Sidekiq, Self::Celery, Self::BullMq, Self::Faktory, Self::Oban];

    /// The name that programs use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Temporal => "temporal",
            Self::Sidekiq => "sidekiq",
            Self::Celery => "celery",
            Self::BullMq => "bullmq",
            Self::Faktory => "faktory",
            Self::Oban => "oban",
        }
    }

    /// The fields that say something about retries.
    pub(crate) const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Temporal => &temporal::FIELDS,
            Self::Sidekiq => &sidekiq::RELATED,
            Self::Celery => &celery::RELATED,
            Self::BullMq => &bullmq::RELATED,
            Self::Faktory => &faktory::RELATED,
            Self::Oban => &oban::RELATED,
        }
    }

    /// Reads the settings of this system, in its own field names.
    ///
    /// # Errors
    /// Every problem, each with a JSON Pointer, the value found and what is allowed.
    pub fn read(self, value: &Value) -> Result<Import, Problems> {
        match self {
            Self::Temporal => temporal::read(value),
            Self::Sidekiq => sidekiq::read(value),
            Self::Celery => celery::read(value),
            Self::BullMq => bullmq::read(value),
            Self::Faktory => faktory::read(value),
            Self::Oban => oban::read(value),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Source {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|source| source.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|source| source.name()).collect();
            format!("unknown system \"{name}\"; known are {}", known.join(", "))
        })
    }
}

/// The most retries that can be counted: the first run is counted on top.
const MOST_RETRIES: u32 = u32::MAX - 1;

/// What an importer has understood: one rule, and when it ends.
struct ImportedRule {
    matcher: Matcher,
    backoff: Backoff,
    attempts: AttemptLimit,
    max_elapsed: Option<Span>,
    on_stop: Disposition,
}

impl ImportedRule {
    /// Whether anything is ever run again.
    fn retries_at_all(&self) -> bool {
        self.attempts.max_runs() != Some(1)
    }

    /// The end of every importer: the policy where there was no problem, every problem where there was.
    fn import(self, findings: Findings, lost: Vec<Loss>) -> Result<Import, Problems> {
        let parts = Parts {
            rules: vec![Rule { matcher: self.matcher, budget: None, backoff: self.backoff }],
            attempts: self.attempts,
            max_elapsed: self.max_elapsed,
            on_stop: self.on_stop,
            unmatched: Unmatched::NonRetryable,
            delegated: None,
        };
        let Reading { policy, warnings } = crate::dialect::reading(findings, parts)?;
        Ok(Import { policy, lost, warnings })
    }
}

/// A limit on retries as a limit on runs.
fn after_first_run(retries: u32) -> AttemptLimit {
    AttemptLimit::AtMost(retries.min(MOST_RETRIES) + 1)
}

/// A whole number of retries, which may be negative. JSON has no integers: `3.0` is one, `2.5` is not.
fn signed_retries(value: &Value) -> Option<i64> {
    // Far beyond any count, and exact in a double.
    const LEAST: f64 = -9_007_199_254_740_992.0;
    let most = f64::from(MOST_RETRIES);
    value.as_f64().filter(|n| n.fract() == 0.0 && (LEAST..=most).contains(n)).map(|n| n as i64)
}

/// The law of Sidekiq and of Faktory after it: `(n-1)^4 + 15` seconds, and a draw from a range that
/// widens by `step` with each retry.
fn fourth_power(step: Span) -> Backoff {
    Backoff {
        initial: Span::from_secs(1),
        offset: Span::from_secs(15),
        curve: Curve::Polynomial { exponent: 4.0, first: 0 },
        cap: None,
        jitter: Jitter::Added { step },
        rounding: Rounding::Exact,
    }
}

/// Warns of settings of a job that are known and have nothing to do with its retries.
fn warn_unrelated(fields: &Fields<'_>, unrelated: &[&str], findings: &mut Findings) {
    for key in unrelated.iter().filter(|key| fields.has(key)) {
        findings.warnings.push(Warning {
            code: "not-about-retries",
            path: fields.path_of(key),
            message: format!("{key} says nothing about when to retry, and is left out of the policy"),
            instead: format!("set {key} where the job is enqueued or run, and remove it here"),
        });
    }
}
