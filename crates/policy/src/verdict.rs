//! What happens after a failure, and why.

use crate::{Computed, Mismatch, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The answer to one failure, with its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The run that failed, counted from 1. A run that asked to be requeued is not counted.
    pub attempt: u32,
    /// The position of the rule that handled the failure, from 0; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
    /// What happens now.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What happens now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Outcome {
    /// Run again after a wait.
    Retry {
        /// How long to wait.
        #[serde(rename = "delay_ms")]
        delay: Span,
        /// Where the wait comes from.
        origin: Origin,
    },
    /// Never run again.
    Stop {
        /// What put an end to it.
        reason: Reason,
        /// What becomes of the job.
        disposition: Disposition,
    },
}

/// Where a wait comes from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The rule's backoff.
    Backoff(Computed),
    /// The failure's own wait, used as it is.
    Override,
    /// A request to run again that is not a failure; nothing was counted.
    Requeue,
}

/// What put an end to the retries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Reason {
    /// The limit on attempts, or the rule's own budget, is used up.
    MaxAttempts {
        /// The limit.
        limit: u32,
    },
    /// The time limit is reached, or would be before the next attempt starts.
    MaxElapsed {
        /// The limit.
        #[serde(rename = "limit_ms")]
        limit: Span,
        /// The time since the job was created.
        #[serde(rename = "elapsed_ms")]
        elapsed: Span,
        /// The wait that would have led past the limit; absent where it was reached already.
        #[serde(rename = "delay_ms", default, skip_serializing_if = "Option::is_none")]
        delay: Option<Span>,
    },
    /// The lists of the policy, or the failure itself, rule a retry out.
    NonRetryable(Mismatch),
    /// No rule handles this failure; it passes through.
    Unmatched,
    /// The handler said so.
    Handler,
    /// The handler declared the error unrecoverable.
    Unrecoverable,
    /// Retries are switched off.
    RetriesDisabled,
    /// The branch was pruned; not a failure.
    Pruned,
}

/// What becomes of a job that stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It is dropped.
    Discard,
    /// It is stored as a dead letter, for people to inspect.
    DeadLetter,
    /// The failure is returned to the caller, or to the enclosing run.
    Fail,
}

impl Verdict {
    /// The wait before the next run, where there is one.
    #[inline]
    #[must_use]
    pub const fn delay(&self) -> Option<Span> {
        match self.outcome {
            Outcome::Retry { delay, .. } => Some(delay),
            Outcome::Stop { .. } => None,
        }
    }

    /// False for what is no failure and moves no counter: a requeue, and a pruned branch.
    #[inline]
    #[must_use]
    pub const fn counted(&self) -> bool {
        !matches!(
            self.outcome,
            Outcome::Retry { origin: Origin::Requeue, .. } | Outcome::Stop { reason: Reason::Pruned, .. }
        )
    }
}

impl Reason {
    /// The word for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::MaxAttempts { .. } => "max_attempts",
            Self::MaxElapsed { .. } => "max_elapsed",
            Self::NonRetryable(_) => "non_retryable",
            Self::Unmatched => "unmatched",
            Self::Handler => "handler",
            Self::Unrecoverable => "unrecoverable",
            Self::RetriesDisabled => "retries_disabled",
            Self::Pruned => "pruned",
        }
    }
}

impl Disposition {
    /// The word for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discard => "discard",
            Self::DeadLetter => "dead_letter",
            Self::Fail => "fail",
        }
    }
}

impl fmt::Display for Disposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
