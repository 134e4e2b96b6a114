//! What happened lately, and what happens.

use crate::transport::{Ask, Channel, EventFilter, Transport};
use crate::{ClientError, EventInfo, EventStream};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// How many are read in one request.
const STEP: usize = 1_000;

/// The events of a server, or of the engine in this process: what happened lately, and what happens.
///
/// ```
/// use redrive_worker::{Client, ClientError, Followed, NewJob};
///
/// # #[cfg(not(feature = "embedded"))]
/// # fn main() {}
/// # #[cfg(feature = "embedded")]
/// # #[tokio::main]
/// # async fn main() -> Result<(), ClientError> {
/// # let folder = std::env::temp_dir().join(format!("redrive-doc-events-{}", std::process::id()));
/// let client = Client::open(&folder).await?;
/// let mut stream = client.events().types(["job.enqueued", "job.discarded"]).follow().await?;
/// client.enqueue(NewJob::new("mail.send", "ada@example.org")?.queue("mail")).await?;
///
/// match stream.next().await? {
///     Some(Followed::Event(event)) => assert_eq!((event.kind(), event.queue()), ("job.enqueued", Some("mail"))),
///     Some(Followed::Gap(gap)) => println!("events are missing: {}", gap.message()),
///     Some(Followed::Lost { error, wait }) => println!("{error}; the next try is in {wait:?}"),
///     _ => println!("the client is closed"),
/// }
/// assert_eq!(client.events().queue("mail").list().await?.len(), 1);
/// # client.close().await?;
/// # let _ = std::fs::remove_dir_all(&folder);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Events {
    transport: Arc<dyn Transport>,
    filter: EventFilter,
}

impl Events {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport, filter: EventFilter::default() }
    }

    /// Only those of these types, or of patterns such as `job.*`. A type that does not exist is refused.
    #[must_use]
    pub fn types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.filter.types = types.into_iter().map(Into::into).collect();
        self
    }

    /// Only those of a queue. To follow a queue that does not exist is refused.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.filter.channel = Channel::Queue(queue.into());
        self
    }

    /// Only those of a job, in place of those of a queue. The stream of a job also has its progress, and ends with it.
    #[must_use]
    pub fn job(mut self, id: impl Into<String>) -> Self {
        self.filter.channel = Channel::Job(id.into());
        self
    }

    /// Only what happened after the event of this id. A stream without it starts with what happens from now on.
    #[must_use]
    pub fn after(mut self, id: impl Into<String>) -> Self {
        self.filter.after = Some(id.into());
        self
    }

    /// What is stored of them, the oldest first: a server has the latest 10,000 events of its process.
    ///
    /// # Errors
    /// The server refuses the filter, or cannot be reached.
    pub async fn list(&self) -> Result<Vec<EventInfo>, ClientError> {
        let (mut found, mut filter) = (Vec::new(), self.filter.clone());
        loop {
            let mut page = self.transport.ask(Ask::ListEvents { filter: &filter, limit: STEP }).await?;
            if let Value::Array(events) = page["events"].take() {
                found.extend(events.into_iter().map(EventInfo::new).filter(|event| self.is_wanted(event)));
            }
            let cursor = page["cursor"].as_str().map(str::to_owned);
            if page["has_more"] != true || cursor == filter.after {
                return Ok(found);
            }
            filter.after = cursor;
        }
    }

    /// Follows what happens. When this returns, nothing that happens from then on is missed without a word.
    ///
    /// # Errors
    /// The server refuses the filter, or cannot be reached.
    pub async fn follow(&self) -> Result<EventStream, ClientError> {
        Ok(EventStream::new(self.transport.follow(self.filter.clone()).await?))
    }

    /// Lists do not know jobs.
    fn is_wanted(&self, event: &EventInfo) -> bool {
        match &self.filter.channel {
            Channel::Job(id) => event.subject() == id,
            Channel::All | Channel::Queue(_) => true,
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("filter", &self.filter).finish_non_exhaustive()
    }
}
