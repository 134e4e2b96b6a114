//! The errors of the client and the worker.

use crate::JobInfo;
use std::fmt;
use std::time::Duration;

/// A request that failed, or whose outcome is not known.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The server, or the store in this process, did not answer. The request may have been carried
    /// out; it is safe to repeat it with an idempotency key or a lease.
    Unreachable(String),
    /// The certificate of the server is not trusted; nothing was sent.
    Untrusted(String),
    /// The server refused the request.
    Refused(Refused),
    /// The queue of a job is full; nothing was enqueued.
    QueueFull(QueueFull),
    /// The input is not valid; nothing was sent.
    Invalid(String),
    /// An invalid response: most likely another kind of server answers at that address.
    Garbled(String),
    /// The time that the caller gave is over.
    TimedOut,
    /// The job that the caller waited for ended without success.
    Failed(Box<JobInfo>),
}

/// A refusal in the words of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The HTTP status, also from the engine in this process: 404 there is no such job, 409 the state of the
    /// job does not allow it, 422 a policy is not valid.
    pub status: u16,
    /// A code for programs, such as `not_found`.
    pub code: String,
    /// What happened, and what to do about it.
    pub message: String,
}

/// A queue that has no room for new jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueFull {
    /// Its name.
    pub queue: String,
    /// How many jobs wait in it.
    pub depth: u64,
    /// How many may wait in it.
    pub bound: u64,
    /// After which time to try again.
    pub retry_after: Duration,
}

impl QueueFull {
    /// After which time to try again where the server does not say.
    pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);
}

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, depth, bound, retry_after } = self;
        let again = retry_after.as_secs();
        write!(
            f,
            "the queue \"{queue}\" is full: {depth} jobs wait in it, and at most {bound} may; try again in {again} s"
        )
    }
}

impl Refused {
    /// Whether the same call may succeed later.
    pub(crate) const fn is_temporary(&self) -> bool {
        self.status >= 500 || self.status == 429 || self.status == 408
    }
}

impl ClientError {
    pub(crate) fn unwritable(error: serde_json::Error) -> Self {
        Self::Invalid(format!("it cannot be written as JSON: {error}"))
    }

    pub(crate) fn refused(status: u16, code: &str, message: impl fmt::Display) -> Self {
        Self::Refused(Refused { status, code: code.to_owned(), message: message.to_string() })
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::QueueFull(_) => true,
            Self::Refused(refused) => refused.is_temporary(),
            Self::Untrusted(_) | Self::Invalid(_) | Self::Garbled(_) | Self::TimedOut | Self::Failed(_) => false,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Untrusted(why) | Self::Invalid(why) | Self::Garbled(why) => f.write_str(why),
            Self::Refused(refused) => refused.fmt(f),
            Self::QueueFull(full) => full.fmt(f),
            Self::TimedOut => f.write_str("timed out: it has not ended; wait longer, or check it again"),
            Self::Failed(job) => {
                let message = job.errors().last().and_then(|error| error["message"].as_str());
                write!(f, "job {} is {}: {}", job.id(), job.state(), message.unwrap_or("no run of it failed"))
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, status {})", self.message, self.code, self.status)
    }
}

impl std::error::Error for ClientError {}
