//! Events of the engine in this process.

use super::super::{Channel, EventFilter, EventSource, TransportFuture};
use super::submit::refused;
use super::{Local, parsed, refusal};
use crate::{ClientError, EventGap, EventInfo, Followed};
use redrive_engine::{Engine, Event, Progress};
use redrive_ojs::Invalid;
use redrive_ojs::events::{
    EventId, GapReason, PROGRESS, StreamStart, ended_event, event_envelope, event_types, gap, named_types,
    progress_envelope,
};
use redrive_policy::Problem;
use redrive_store::{Job, JobId};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// Which events, as the engine has them.
struct Wanted {
    types: Option<Vec<&'static str>>,
    queue: Option<String>,
    job: Option<JobId>,
}

impl Wanted {
    fn read(filter: &EventFilter) -> Result<Self, ClientError> {
        let known: Vec<&'static str> =
            event_types().chain(Some(PROGRESS).filter(|_| matches!(filter.channel, Channel::Job(_)))).collect();
        let said: Vec<&str> = filter.types.iter().map(String::as_str).collect();
        let mut problems = Vec::new();
        let types = Some(named_types(&said, &known, "?types", &mut problems)).filter(|_| !said.is_empty());
        if let Some(problem) = problems.into_iter().next() {
            return Err(refused(Invalid::request(problem)));
        }
        let (queue, job) = match &filter.channel {
            Channel::All => (None, None),
            Channel::Queue(name) => (Some(name.clone()), None),
            Channel::Job(id) => (None, Some(parsed(id)?)),
        };
        Ok(Self { types, queue, job })
    }

    fn is_of_type(&self, name: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&name))
    }

    /// Whether an event is of the channel, of whatever type.
    fn is_of_channel(&self, event: &Event) -> bool {
        self.queue.as_ref().is_none_or(|queue| event.body.queue().is_some_and(|name| name == queue))
            && self.job.is_none_or(|job| event.body.job().is_some_and(|event| event.job == job))
    }
}

/// A page of what happened lately, as a server answers it.
pub(super) fn list(local: &Local, filter: &EventFilter, limit: usize) -> Result<Value, ClientError> {
    let wanted = Wanted::read(filter)?;
    let after = match &filter.after {
        None => 0,
        Some(text) => {
            let id: Result<EventId, _> = text.parse();
            let allowed = "the id of an event, or the cursor of an earlier answer";
            let wrong = |_| refused(Invalid::request(Problem::new("?after", format!("\"{text}\""), allowed)));
            id.map_err(wrong)?.number_in(local.process)
        }
    };
    let fits = |event: &Event| wanted.is_of_type(event.body.event_type()) && wanted.is_of_channel(event);
    let (events, has_more) = local.engine.events(after, limit, fits);
    let events: Vec<Value> = events.iter().map(|event| envelope(local.process, event)).collect();
    let cursor = events.last().map(|event| event["id"].clone());
    let cursor = cursor.unwrap_or_else(|| filter.after.clone().unwrap_or_default().into());
    Ok(json!({ "events": events, "cursor": cursor, "has_more": has_more }))
}

fn envelope(process: u32, event: &Event) -> Value {
    let id = EventId { process, number: event.number };
    event_envelope(&id.to_string(), event.at, &event.body)
}

/// A stream of events.
pub(super) struct Stream {
    engine: Arc<Engine>,
    process: u32,
    wanted: Wanted,
    arrivals: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    /// The last event of the log that was looked at.
    seen: u64,
    found: VecDeque<Followed>,
    ended: bool,
    /// The progress that was last told, in the stream of a job.
    told: Option<Progress>,
}

impl Stream {
    pub(super) async fn open(local: &Local, filter: EventFilter) -> Result<Self, ClientError> {
        let (engine, process) = (Arc::clone(&local.engine), local.process);
        let wanted = Wanted::read(&filter)?;
        // Before anything is looked up: what happens from here on is found in the log, or announced.
        let (arrivals, stopping) = (engine.watch_events(), local.stop.subscribe());
        let start = StreamStart::of(filter.after.as_deref(), process, engine.latest_event());
        if let Some(queue) = &wanted.queue {
            check_queue(&engine, queue).await?;
        }
        let job = match wanted.job {
            Some(id) => Some(engine.job(id).await.map_err(refusal)?).filter(|job| job.state.is_terminal()),
            None => None,
        };
        let (seen, found) = (start.number(), VecDeque::new());
        let mut stream = Self { engine, process, wanted, arrivals, stopping, seen, found, ended: false, told: None };
        if let StreamStart::Unknown(now, reason) = start {
            stream.push_gap(reason, None, now);
        }
        if let Some(job) = job {
            stream.push_ended(&job, start);
        }
        Ok(stream)
    }

    /// A job that has ended: what the caller has not seen of it, or else its state.
    fn push_ended(&mut self, job: &Job, start: StreamStart) {
        if let StreamStart::After(_) = start {
            let is_news = self.look();
            if !is_news || self.ended {
                self.ended = true;
                return;
            }
        }
        self.ended = true;
        let (at, body) = ended_event(job);
        if self.wanted.is_of_type(body.event_type()) {
            let id = EventId { process: self.process, number: self.seen };
            let mut envelope = event_envelope(&id.to_string(), at, &body);
            envelope["data"]["current"] = true.into();
            self.found.push_back(Followed::Event(EventInfo::new(envelope)));
        }
    }

    fn push_gap(&mut self, reason: GapReason, missed: Option<u64>, goes_on_after: u64) {
        let gap = gap(reason, missed, EventId { process: self.process, number: goes_on_after });
        self.found.push_back(Followed::Gap(EventGap::new(gap)));
    }

    /// Takes what has happened since the last look. Answers whether anything has, or is missing.
    fn look(&mut self) -> bool {
        let fits = |event: &Event| self.wanted.is_of_channel(event);
        let recent = self.engine.events_since(self.seen, usize::MAX, usize::MAX, fits);
        if recent.missed > 0 {
            self.push_gap(GapReason::Dropped, Some(recent.missed), self.seen + recent.missed);
        }
        self.seen = recent.seen;
        for event in &recent.events {
            if self.wanted.is_of_type(event.body.event_type()) {
                self.found.push_back(Followed::Event(EventInfo::new(envelope(self.process, event))));
            }
        }
        let has_ended = |event: &Event| event.change().is_some_and(|change| change.state.is_terminal());
        match self.wanted.job {
            Some(_) if recent.events.last().is_some_and(has_ended) => self.ended = true,
            Some(id) => self.push_progress(id),
            None => {}
        }
        recent.missed > 0 || !recent.events.is_empty()
    }

    fn push_progress(&mut self, job: JobId) {
        let latest = self.engine.latest_progress(job);
        if let Some(progress) = latest.as_ref().filter(|_| latest != self.told && self.wanted.is_of_type(PROGRESS)) {
            let id = EventId { process: self.process, number: self.seen }.to_string();
            let progress = redrive_ojs::Progress {
                fraction: progress.fraction,
                message: progress.message.as_deref(),
                data: progress.data.as_deref(),
                at: progress.at,
            };
            let envelope = progress_envelope(&id, job, &progress);
            self.found.push_back(Followed::Event(EventInfo::new(envelope)));
        }
        self.told = latest;
    }

    async fn step(&mut self) -> Result<Option<Followed>, ClientError> {
        loop {
            if let Some(found) = self.found.pop_front() {
                return Ok(Some(found));
            }
            if self.ended {
                return Ok(None);
            }
            self.look();
            if !self.found.is_empty() || self.ended {
                continue;
            }
            tokio::select! {
                // Without a sender, the client is gone.
                _ = self.stopping.wait_for(|stop| *stop) => self.ended = true,
                // The sender lives as long as the engine.
                _ = self.arrivals.changed() => {}
            }
        }
    }
}

impl EventSource for Stream {
    fn next(&mut self) -> TransportFuture<'_, Option<Followed>> {
        Box::pin(self.step())
    }
}

async fn check_queue(engine: &Engine, name: &str) -> Result<(), ClientError> {
    let known = engine.queues().await.map_err(refusal)?;
    if known.iter().any(|queue| *queue.name == *name) {
        return Ok(());
    }
    let message = format!("there is no queue \"{name}\"; a queue comes into being with its first job");
    Err(ClientError::refused(404, "not_found", message))
}
