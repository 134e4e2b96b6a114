//! Events as they happen.

use crate::ClientError;
use crate::transport::EventSource;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// An open stream of events. Dropping it closes it.
pub struct EventStream {
    source: Box<dyn EventSource>,
}

/// What comes next in a stream of events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Followed {
    /// Something happened.
    Event(EventInfo),
    /// Events are missing here. The state of jobs is durable, and can be looked up; events are not.
    Gap(EventGap),
    /// The connection was lost. The next call waits for this time, and then resumes after the last event that came.
    Lost {
        /// What happened.
        error: ClientError,
        /// How long it waits.
        wait: Duration,
    },
}

impl EventStream {
    pub(crate) fn new(source: Box<dyn EventSource>) -> Self {
        Self { source }
    }

    /// Waits for what comes next. `None` where nothing will: the job that was followed has ended, or the client is
    /// closed. If the future is dropped, nothing is lost.
    ///
    /// # Errors
    /// The server refuses to go on. While it is unreachable, that is reported as [`Followed::Lost`], and each further
    /// call tries again.
    pub async fn next(&mut self) -> Result<Option<Followed>, ClientError> {
        self.source.next().await
    }

    /// Waits for the next event; gaps and lost connections are passed over. For programs that only watch.
    ///
    /// # Errors
    /// As [`EventStream::next`].
    pub async fn next_event(&mut self) -> Result<Option<EventInfo>, ClientError> {
        loop {
            match self.next().await? {
                Some(Followed::Event(event)) => return Ok(Some(event)),
                Some(Followed::Gap(_) | Followed::Lost { .. }) => {}
                None => return Ok(None),
            }
        }
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventStream")
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct EventInfo(Value);

impl EventInfo {
    pub(crate) const fn new(document: Value) -> Self {
        Self(document)
    }

    /// Its id, after which a list or a stream can go on.
    #[must_use]
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// Its type, such as `job.completed`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("type")
    }

    /// When it happened, in RFC 3339.
    #[must_use]
    pub fn time(&self) -> &str {
        self.text("time")
    }

    /// What it happened to: the id of a job or a workflow, the name of a queue, a schedule or a worker.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.text("subject")
    }

    /// The queue, where it concerns one.
    #[must_use]
    pub fn queue(&self) -> Option<&str> {
        self.0["data"]["queue"].as_str()
    }

    /// What is told of it; which members there are depends on the type.
    #[must_use]
    pub fn data(&self) -> &Value {
        &self.0["data"]
    }

    /// Everything, in the words of CloudEvents.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.0
    }

    /// Whether the job that it is about had ended by then.
    #[cfg(feature = "http")]
    pub(crate) fn is_of_ended_job(&self) -> bool {
        matches!(self.0["data"]["state"].as_str(), Some("completed" | "cancelled" | "discarded"))
    }

    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }
}

/// Events that are missing in a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct EventGap(Value);

impl EventGap {
    pub(crate) const fn new(document: Value) -> Self {
        Self(document)
    }

    /// Why: `dropped` (not stored any more, or read too slowly), `other_process` (the last one is of another node, or
    /// from before a restart), `unknown_id`, or `unknown_start` (the connection was lost before there was an event to
    /// resume after).
    #[must_use]
    pub fn reason(&self) -> &str {
        self.0["reason"].as_str().unwrap_or_default()
    }

    /// The same for people.
    #[must_use]
    pub fn message(&self) -> &str {
        self.0["message"].as_str().unwrap_or_default()
    }

    /// How many events are missing at most, where that is known: all are counted, also those that were not asked for.
    #[must_use]
    pub fn missed_at_most(&self) -> Option<u64> {
        self.0["missed_at_most"].as_u64()
    }

    /// Everything that the server reports.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.0
    }
}
