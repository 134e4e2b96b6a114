//! A job to be enqueued.

use crate::{ClientError, RateLimit, Retry, Unique, args};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::time::Duration;

/// A job to be enqueued.
///
/// ```
/// use redrive_worker::{NewJob, Retry};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = redrive_policy::Policy::builder()
///     .exponential(Duration::from_secs(2), 2.0)
///     .max_attempts(8)
///     .build()?;
/// let job = NewJob::new("email.send", ("user@example.com", "Welcome"))?
///     .queue("mail")
///     .retry(Retry::policy(&policy)?)
///     .idempotency_key("welcome-1729")
///     .delay(Duration::from_secs(60));
/// # drop(job);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct NewJob {
    pub(crate) kind: String,
    pub(crate) args: Box<RawValue>,
    pub(crate) queue: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) priority: Option<i32>,
    pub(crate) delay: Option<Duration>,
    pub(crate) expires_after: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) lease: Option<Duration>,
    pub(crate) retry: Option<Retry>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) rate_limit: Option<RateLimit>,
    pub(crate) unique: Option<Unique>,
    pub(crate) meta: Option<Map<String, Value>>,
    pub(crate) tags: Vec<String>,
}

impl NewJob {
    /// A job of a type, such as `email.send`, with its arguments: a tuple or a sequence becomes the
    /// array of arguments, anything else its only element.
    ///
    /// # Errors
    /// The arguments cannot be written as JSON.
    pub fn new(kind: impl Into<String>, args: impl Serialize) -> Result<Self, ClientError> {
        Ok(Self {
            kind: kind.into(),
            args: args::write(&args).map_err(ClientError::unwritable)?,
            queue: None,
            id: None,
            priority: None,
            delay: None,
            expires_after: None,
            timeout: None,
            lease: None,
            retry: None,
            idempotency_key: None,
            rate_limit: None,
            unique: None,
            meta: None,
            tags: Vec::new(),
        })
    }

    /// The queue; the default is `default`.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// The id: a UUID of version 7 in lower case. By default one is generated.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Higher numbers run first, from -100 to 100; the default is 0.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The first run starts after this time at the earliest.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// The job expires after this time: no run starts later.
    #[must_use]
    pub fn expires_after(mut self, time: Duration) -> Self {
        self.expires_after = Some(time);
        self
    }

    /// How long one run may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long a run may go without a heartbeat before it counts as failed; at least 100 ms.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The retry policy. The default is that of the server for the type, for the queue, or for all jobs.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// The limit on its runs, which it shares with other jobs of the same key.
    #[must_use]
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.rate_limit = Some(limit);
        self
    }

    /// What it must be unique in. A duplicate is refused with the code `duplicate`, unless the policy says otherwise.
    #[must_use]
    pub fn unique(mut self, unique: Unique) -> Self {
        self.unique = Some(unique);
        self
    }

    /// A second job with the same key is not enqueued; the first one is returned instead. If the first
    /// one has another type, queue or arguments, the second is refused.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Data of the job besides its arguments, such as the id of a trace.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// The trace that it belongs to, by the W3C recommendation: `traceparent`, and `tracestate` if any. It goes
    /// to every attempt ([`Job::trace`](crate::Job::trace)).
    #[must_use]
    pub fn trace(self, parent: impl Into<String>, state: Option<String>) -> Self {
        let traced = self.meta(redrive_ojs::TRACEPARENT, parent.into());
        match state {
            Some(state) => traced.meta(redrive_ojs::TRACESTATE, state),
            None => traced,
        }
    }

    /// A word to find the job by.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }
}
