//! What is known of one failed attempt.

use crate::{Disposition, Span};

/// One failed attempt, as the decision sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure<'a> {
    /// The error's type, such as `external.timeout` or `ValueError`; `error` where nothing is known.
    pub type_name: &'a str,
    /// The failure's code, such as `Provider.Call.Http.ConnectionFailed`; empty where it has none.
    pub code: &'a str,
    /// What the failure itself says about retrying, if anything.
    pub retryable: Option<bool>,
    /// What the handler asked for, beyond reporting an error.
    pub signal: Signal,
    /// The wait that the failure asks for instead of the computed one, as `Retry-After` does.
    pub delay: Option<Span>,
}

/// What a handler can ask for. It comes before anything that the policy says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Signal {
    /// Nothing: an ordinary failure.
    #[default]
    None,
    /// Stop now, with this disposition (OJS §7: `DISCARD`, `FAIL`, `DEAD_LETTER`).
    Stop(Disposition),
    /// A dead letter without further retries (TaskHarbor's unrecoverable error).
    Unrecoverable,
    /// Not worth a retry, whatever the lists say; the policy's disposition applies.
    Permanent,
    /// The run went silent or took too long. There is no error that lists could be compared with, so
    /// that the first rule handles it (OJS §9.2: timeouts are always retryable).
    Overdue,
    /// End the branch; not a failure (Exosphere's `PruneSignal`).
    Prune,
    /// Run again after this time; not a failure, and nothing is counted (`ReQueueAfterSignal`).
    RequeueAfter(Span),
}

impl Default for Failure<'_> {
    fn default() -> Self {
        Self::of_type("error")
    }
}

impl<'a> Failure<'a> {
    /// An ordinary failure with an error type.
    #[must_use]
    pub const fn of_type(type_name: &'a str) -> Self {
        Self { type_name, code: "", retryable: None, signal: Signal::None, delay: None }
    }

    /// The same with a signal of the handler.
    #[must_use]
    pub const fn with_signal(self, signal: Signal) -> Self {
        Self { signal, ..self }
    }

    /// The same with a wait of its own.
    #[must_use]
    pub fn retry_after(self, delay: impl Into<Span>) -> Self {
        Self { delay: Some(delay.into()), ..self }
    }
}
