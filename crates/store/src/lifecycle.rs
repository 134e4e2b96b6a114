//! The states of a job, and the one table of what leads from which to which.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The state of a job: the eight of Open Job Spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for its time, before its first run.
    Scheduled,
    /// Waits to be activated.
    Pending,
    /// Waits for a worker.
    Available,
    /// Is run by a worker under a lease.
    Active,
    /// Has failed and waits for its next run.
    Retryable,
    /// Has succeeded.
    Completed,
    /// Was cancelled.
    Cancelled,
    /// Has failed and does not run again; it is a dead letter, or not.
    Discarded,
}

/// What can happen to a job: the one vocabulary of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It was enqueued.
    Enqueued,
    /// The time that it waited for has come, and admission lets it through.
    Due,
    /// It was pending, and was activated.
    Activated,
    /// A worker claimed it, and a run started.
    Claimed,
    /// A run succeeded.
    Completed,
    /// A run failed (reported, timed out, or its lease ran out), and the policy grants a retry.
    RetryScheduled,
    /// A run failed, and the policy stops the job.
    Discarded,
    /// A run was released unfinished, to be run again at once. It does not count as an attempt.
    Released,
    /// A run was released unfinished, to be run again later. It does not count as an attempt.
    Snoozed,
    /// It was cancelled.
    Cancelled,
    /// It expired while it waited.
    Expired,
    /// It had ended, and was redriven to run again.
    Redriven,
    /// It had ended, and was removed on request.
    Removed,
}

impl State {
    /// All states, in the order in which they are listed.
    pub const ALL: [Self; 8] = [
        Self::Scheduled,
        Self::Pending,
        Self::Available,
        Self::Active,
        Self::Retryable,
        Self::Completed,
        Self::Cancelled,
        Self::Discarded,
    ];

    /// The state that an event leads to; `None` where it cannot happen in this state. An enqueued job has no state
    /// before, and a removed one none after.
    #[must_use]
    pub const fn after(self, event: EventKind) -> Option<Self> {
        use EventKind as E;
        match (self, event) {
            (Self::Scheduled | Self::Retryable, E::Due) => Some(Self::Available),
            (Self::Pending, E::Activated) => Some(Self::Available),
            (Self::Available, E::Claimed) => Some(Self::Active),
            (Self::Active, E::Completed) => Some(Self::Completed),
            (Self::Active, E::RetryScheduled) => Some(Self::Retryable),
            (Self::Active, E::Discarded) => Some(Self::Discarded),
            (Self::Active, E::Released) => Some(Self::Available),
            (Self::Active, E::Snoozed) => Some(Self::Retryable),
            (Self::Scheduled | Self::Pending | Self::Available | Self::Active | Self::Retryable, E::Cancelled) => {
                Some(Self::Cancelled)
            }
            (Self::Scheduled | Self::Pending | Self::Available | Self::Retryable, E::Expired) => Some(Self::Discarded),
            (Self::Completed | Self::Cancelled | Self::Discarded, E::Redriven) => Some(Self::Available),
            _ => None,
        }
    }

    /// True where the job has ended; only a redrive makes it run again.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled | Self::Discarded)
    }

    /// The word for programs and people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Pending => "pending",
            Self::Available => "available",
            Self::Active => "active",
            Self::Retryable => "retryable",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Discarded => "discarded",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
