//! How a run ends.

use crate::Failure;
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::Duration;

/// How a run ends. Most handlers return a `Result` and never name it; those that also snooze return
/// `Result<Outcome, Failure>`.
#[derive(Debug)]
pub enum Outcome {
    /// It succeeded, with a result as JSON, or without one.
    Done(Option<Box<RawValue>>),
    /// It failed.
    Failed(Failure),
    /// It was too early: run again after this time. That spends no attempt; the server limits how
    /// often in a row it may happen.
    Snoozed(Duration),
    /// This worker cannot run the job, for this reason; another may.
    Declined(String),
}

impl Outcome {
    /// Success with a result.
    ///
    /// A result that cannot be written as JSON fails permanently: the work is done, and doing it again
    /// would end the same way.
    pub fn done(result: impl Serialize) -> Self {
        match serde_json::value::to_raw_value(&result) {
            // The unit type and None: there is nothing to store.
            Ok(result) if result.get() == "null" => Self::Done(None),
            Ok(result) => Self::Done(Some(result)),
            Err(error) => {
                let message = format!("the result cannot be written as JSON: {error}");
                Self::Failed(Failure::new("invalid_result", message).unrecoverable())
            }
        }
    }

    /// Run again after this time, as if nothing had happened.
    #[must_use]
    pub const fn snooze(delay: Duration) -> Self {
        Self::Snoozed(delay)
    }

    /// This worker cannot run the job, because something is missing here and not in the job. The job
    /// is released for other workers and spends no attempt; it waits longer each time, from a second
    /// to an hour. The worker claims no jobs of that queue for a while, longer each time in a row.
    pub fn decline(reason: impl std::fmt::Display) -> Self {
        Self::Declined(reason.to_string())
    }
}

/// What a handler may return: a `Result` with anything that serde can write, or an [`Outcome`].
pub trait IntoOutcome {
    /// Converts it.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl<R: Serialize, E: Into<Failure>> IntoOutcome for Result<R, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(result) => Outcome::done(result),
            Err(error) => Outcome::Failed(error.into()),
        }
    }
}

impl<E: Into<Failure>> IntoOutcome for Result<Outcome, E> {
    fn into_outcome(self) -> Outcome {
        self.unwrap_or_else(|error| Outcome::Failed(error.into()))
    }
}
