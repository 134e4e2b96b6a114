//! A job as a handler sees it.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// A claimed job.
pub struct Job {
    pub(crate) id: Box<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) queue: Arc<str>,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) releases: u32,
    pub(crate) text: Text,
}

/// The parts of a job that few handlers need, in the form in which they arrived.
pub(crate) enum Text {
    /// The whole envelope, and where in it the arguments are.
    #[cfg(feature = "http")]
    Envelope { whole: Box<str>, args: std::ops::Range<usize> },
    /// What the engine of this process has.
    #[cfg(feature = "embedded")]
    Stored(Box<crate::transport::embedded::Stored>),
}

impl Job {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What kind of work it is, such as `email.send`; `type` in the envelope.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The queue that it waited in.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Which run this is, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How many runs there may be, if the server says.
    #[must_use]
    pub const fn max_attempts(&self) -> Option<u32> {
        self.max_attempts
    }

    /// How often in a row it was released before this run, if the server reports it.
    #[must_use]
    pub const fn releases(&self) -> u32 {
        self.releases
    }

    /// The arguments as JSON text, an array.
    #[must_use]
    pub fn args_json(&self) -> &str {
        match &self.text {
            #[cfg(feature = "http")]
            Text::Envelope { whole, args } => whole.get(args.clone()).unwrap_or("[]"),
            #[cfg(feature = "embedded")]
            Text::Stored(stored) => stored.args(),
        }
    }

    /// The arguments: a tuple or sequence is read from the whole array, anything else from its only
    /// element.
    ///
    /// # Errors
    /// They are not what the type needs.
    pub fn args<A: DeserializeOwned>(&self) -> Result<A, serde_json::Error> {
        crate::args::read(self.args_json())
    }

    /// The whole envelope as JSON text: everything that is known about the job.
    #[must_use]
    pub fn envelope_json(&self) -> String {
        match &self.text {
            #[cfg(feature = "http")]
            Text::Envelope { whole, .. } => whole.to_string(),
            #[cfg(feature = "embedded")]
            Text::Stored(stored) => stored.envelope_json(),
        }
    }

    /// The trace that the job was enqueued in, by the W3C recommendation: what a handler links its spans to. The second
    /// value is the `tracestate`, if there is one.
    #[must_use]
    pub fn trace(&self) -> Option<(String, Option<String>)> {
        let meta: serde_json::Map<String, serde_json::Value> = self.member("meta")?;
        let trace = redrive_ojs::TraceContext::of_meta(&meta)?;
        Some((trace.parent.to_owned(), trace.state.map(str::to_owned)))
    }

    /// A member of the envelope, such as `meta`, read into a type; `None` if it is absent or has another type.
    #[must_use]
    pub fn member<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let envelope = self.envelope_json();
        let members: std::collections::HashMap<&str, &RawValue> = serde_json::from_str(&envelope).ok()?;
        serde_json::from_str(members.get(name)?.get()).ok()
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, kind, queue, attempt, .. } = self;
        f.debug_struct("Job")
            .field("id", id)
            .field("kind", kind)
            .field("queue", queue)
            .field("attempt", attempt)
            .finish_non_exhaustive()
    }
}
