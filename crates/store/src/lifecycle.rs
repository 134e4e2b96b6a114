//! The states of a job, and the one table of what leads from which to which.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The state of a job: the eight of Open Job Spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for its time, before its first run.
    Scheduled,
    /// Waits for somebody to activate it.
    Pending,
    /// Waits for a worker.
    Available,
    /// Is held by a worker under a lease.
    Active,
    /// Has failed and waits for its next run.
    Retryable,
    /// Has succeeded.
    Completed,
    /// Was called off.
    Cancelled,
    /// Has failed for good; kept among the dead letters, or not.
    Discarded,
}

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Its time has come, and the gate lets it through.
    Due,
    /// Somebody activated it.
    Activate,
    /// A worker claimed it.
    Claim,
    /// The worker reports success.
    Ack,
    /// A run failed (reported, timed out, or its lease ran out), and the policy grants a retry.
    FailRetry,
    /// A run failed, and the policy stops the job.
    FailStop,
    /// The worker gives it back unfinished, to be run again at once.
    Release,
    /// The worker gives it back unfinished, to be run again later.
    Snooze,
    /// Somebody called it off.
    Cancel,
    /// Its time to live is over before it ran.
    Expire,
    /// Somebody takes it back from where it ended, to run again.
    Redrive,
}

impl State {
    /// All of them, in the order in which they are listed to people.
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

    /// The state that an event leads to; `None` where it cannot happen in this state.
    #[must_use]
    pub const fn after(self, event: Event) -> Option<Self> {
        use Event as E;
        match (self, event) {
            (Self::Scheduled | Self::Retryable, E::Due) => Some(Self::Available),
            (Self::Pending, E::Activate) => Some(Self::Available),
            (Self::Available, E::Claim) => Some(Self::Active),
            (Self::Active, E::Ack) => Some(Self::Completed),
            (Self::Active, E::FailRetry) => Some(Self::Retryable),
            (Self::Active, E::FailStop) => Some(Self::Discarded),
            (Self::Active, E::Release) => Some(Self::Available),
            (Self::Active, E::Snooze) => Some(Self::Retryable),
            (Self::Scheduled | Self::Pending | Self::Available | Self::Active | Self::Retryable, E::Cancel) => {
                Some(Self::Cancelled)
            }
            (Self::Scheduled | Self::Pending | Self::Available | Self::Retryable, E::Expire) => Some(Self::Discarded),
            (Self::Completed | Self::Cancelled | Self::Discarded, E::Redrive) => Some(Self::Available),
            _ => None,
        }
    }

    /// True where nothing but a revival happens any more.
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
