//! A stream of events over HTTP: it is opened again where it is cut off, after the last event that came.

use super::super::{Channel, EventFilter, EventSource, TransportFuture};
use super::call::Caller;
use crate::delay::GrowingDelay;
use crate::http::events::{Sent, SentEvent, SentEvents};
use crate::http::{HttpBody, escaped};
use crate::{ClientError, EventGap, EventInfo, Followed};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// A server sends something every fifteen seconds; one that is silent for so long is taken for gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How long to wait before a stream that a server has ended is opened again, where it does not say.
const RETRY: Duration = Duration::from_secs(3);

/// A stream.
pub(super) struct Stream {
    caller: Caller,
    path: String,
    is_of_job: bool,
    /// The job that it is of had ended by the last event.
    job_ended: bool,
    /// After which event it goes on.
    last_id: Option<String>,
    open: Option<(HttpBody, SentEvents)>,
    /// When it may be opened again.
    reopen: Instant,
    retry: Duration,
    delay: GrowingDelay,
    /// The server has said that it stops.
    stops: bool,
    /// Nothing more will come.
    ended: bool,
}

impl Stream {
    pub(super) async fn open(caller: Caller, filter: EventFilter) -> Result<Self, ClientError> {
        let mut stream = Self {
            caller,
            path: path(&filter),
            is_of_job: matches!(filter.channel, Channel::Job(_)),
            job_ended: false,
            last_id: filter.after,
            open: None,
            reopen: Instant::now(),
            retry: RETRY,
            delay: GrowingDelay::unreachable(),
            stops: false,
            ended: false,
        };
        stream.connect().await?;
        Ok(stream)
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        match self.caller.follow(&self.path, self.last_id.as_deref()).await? {
            Some(body) => self.open = Some((body, SentEvents::default())),
            None => self.ended = true,
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<Option<Followed>, ClientError> {
        loop {
            while let Some(sent) = self.open.as_mut().and_then(|(_, events)| events.pop()) {
                match sent {
                    Sent::Id(id) => self.last_id = Some(id),
                    Sent::Retry(time) => self.retry = time,
                    Sent::Event(event) => {
                        if let Some(followed) = self.read(&event)? {
                            return Ok(Some(followed));
                        }
                    }
                }
            }
            if self.ended {
                return Ok(None);
            }
            let Some((body, events)) = &mut self.open else {
                match self.reconnect().await? {
                    Some(followed) => return Ok(Some(followed)),
                    None => continue,
                }
            };
            match body.next(SILENCE).await {
                Ok(Some(part)) => {
                    events.push(&part)?;
                    self.delay.reset();
                }
                Ok(None) if self.job_ended => (self.open, self.ended) = (None, true),
                Ok(None) if self.stops => return Ok(Some(self.lost(stopping()))),
                Ok(None) => (self.open, self.reopen) = (None, Instant::now() + self.retry),
                Err(error) => return Ok(Some(self.lost(error))),
            }
        }
    }

    async fn reconnect(&mut self) -> Result<Option<Followed>, ClientError> {
        sleep_until(self.reopen).await;
        match self.connect().await {
            // Without an id the server cannot know what is missing.
            Ok(()) if self.last_id.is_none() => Ok(Some(Followed::Gap(EventGap::new(unknown_start())))),
            Ok(()) => Ok(None),
            Err(error) if error.is_temporary() => Ok(Some(self.lost(error))),
            Err(error) => Err(error),
        }
    }

    fn lost(&mut self, error: ClientError) -> Followed {
        let wait = self.delay.next_delay();
        (self.open, self.stops, self.reopen) = (None, false, Instant::now() + wait);
        Followed::Lost { error, wait }
    }

    fn read(&mut self, event: &SentEvent) -> Result<Option<Followed>, ClientError> {
        let data: Value = serde_json::from_str(&event.data)
            .map_err(|error| ClientError::Garbled(format!("an event is not JSON: {error}: {:?}", event.data)))?;
        match event.name.as_str() {
            "gap" => return Ok(Some(Followed::Gap(EventGap::new(data)))),
            "server.shutdown" => {
                self.stops = true;
                return Ok(None);
            }
            _ => {}
        }
        let event = EventInfo::new(data);
        self.job_ended = self.is_of_job && event.is_of_ended_job();
        Ok(Some(Followed::Event(event)))
    }
}

impl EventSource for Stream {
    fn next(&mut self) -> TransportFuture<'_, Option<Followed>> {
        Box::pin(self.step())
    }
}

fn path(filter: &EventFilter) -> String {
    let channel = match &filter.channel {
        Channel::All => "all".to_owned(),
        Channel::Queue(name) => format!("queue:{name}"),
        Channel::Job(id) => format!("job:{id}"),
    };
    let mut path = format!("/ojs/v1/events/stream?channel={}", escaped(&channel));
    if !filter.types.is_empty() {
        path.push_str(&format!("&types={}", escaped(&filter.types.join(","))));
    }
    path
}

fn stopping() -> ClientError {
    ClientError::Unreachable("the server stops, and has ended the stream of events".to_owned())
}

fn unknown_start() -> Value {
    json!({
        "reason": "unknown_start",
        "message": "the connection was lost before the server had named an event; look up what must not be missed",
    })
}
