//! One open stream: it reads the log of events as fast as its client reads.

use super::progress::progress_json;
use super::{Channel, Wanted, Words, id_here, push_event};
use crate::app::App;
use crate::listen::stop_of;
use crate::ojs::events::EventView;
use axum::body::Bytes;
use redrive_engine::{EngineError, Event, Progress, RecentEvents};
use redrive_ojs::events::{EventId, GapReason, PROGRESS, StreamStart, gap};
use redrive_store::{Job, JobId, Refusal};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

/// After how long a client should call again when its stream has ended, in milliseconds.
const RETRY: &str = "retry: 3000";
/// How many events are written at once.
const AT_ONCE: usize = 100;
/// How long a stream waits before it looks again: under load, events come in groups.
const BREATHER: Duration = Duration::from_millis(10);

/// What a stream begins with.
pub(super) struct Opening {
    text: String,
    /// The last event of the log that has been looked at.
    seen: u64,
    /// Whether nothing follows.
    is_all: bool,
}

impl Opening {
    /// A stream that goes on.
    pub(super) fn follow(start: StreamStart, app: &App) -> Self {
        let text = beginning(start, app);
        Self { text, seen: start.number(), is_all: false }
    }

    /// The stream of a job that has ended: what the client has not seen of it, or else its state. `None` where the
    /// client has seen everything.
    pub(super) fn of_ended(start: StreamStart, job: &Job, wanted: &Wanted, app: &App) -> Option<Self> {
        let mut text = beginning(start, app);
        let mut last_state = None;
        let mut seen = start.number();
        if let StreamStart::After(after) = start {
            let recent = recent(app, wanted, after, usize::MAX);
            if recent.missed == 0 && recent.events.is_empty() {
                return None;
            }
            push_recent(&mut text, app, wanted, after, &recent);
            last_state = recent.events.iter().rev().find_map(Event::change).map(|event| event.state);
            seen = recent.seen;
        }
        if last_state != Some(job.state) {
            push_ended(&mut text, app, wanted, job, seen);
        }
        push_id(&mut text, app, seen);
        Some(Self { text, seen, is_all: true })
    }
}

/// An open stream.
pub(super) struct EventStream {
    app: Arc<App>,
    wanted: Wanted,
    arrivals: watch::Receiver<u64>,
    opening: Option<String>,
    seen: u64,
    ended: bool,
    /// The progress that was last told, in the stream of a job.
    told: Option<Progress>,
    /// When something was last written.
    wrote: Instant,
    /// When an event was last written, or the stream began.
    event: Instant,
    _place: OwnedSemaphorePermit,
}

impl EventStream {
    pub(super) fn new(
        app: Arc<App>,
        wanted: Wanted,
        arrivals: watch::Receiver<u64>,
        opening: Opening,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let (Opening { text, seen, is_all }, now) = (opening, Instant::now());
        Self {
            app,
            wanted,
            arrivals,
            opening: Some(text),
            seen,
            ended: is_all,
            told: None,
            wrote: now,
            event: now,
            _place: place,
        }
    }

    /// The next part of the body, and the stream for the one behind it.
    pub(super) async fn next(mut self) -> Option<(Bytes, Self)> {
        let text = match self.opening.take() {
            Some(opening) => opening,
            None if self.ended => return None,
            None => self.wait().await,
        };
        self.wrote = Instant::now();
        Some((Bytes::from(text), self))
    }

    /// Waits for events, for the time of a heartbeat, or for the end of the server.
    async fn wait(&mut self) -> String {
        let heartbeat = self.wrote + self.app.limits.stream_heartbeat;
        loop {
            let looked = Instant::now();
            let mut text = self.look();
            if !text.is_empty() || self.ended {
                self.event = looked;
                if self.ended {
                    push_id(&mut text, &self.app, self.seen);
                }
                return text;
            }
            tokio::select! {
                biased;
                () = stop_of(self.app.stopping.clone()) => return self.stop(),
                () = self.app.guard.invalid(&self.app.engine, &self.wanted.caller) => return self.refuse(),
                () = sleep_until(heartbeat) => return self.beat().await,
                // The sender lives as long as the engine.
                _ = self.arrivals.changed() => sleep_until(looked + BREATHER).await,
            }
        }
    }

    /// What has happened since the last look.
    fn look(&mut self) -> String {
        let mut text = String::new();
        loop {
            let recent = recent(&self.app, &self.wanted, self.seen, AT_ONCE);
            push_recent(&mut text, &self.app, &self.wanted, self.seen, &recent);
            self.seen = recent.seen;
            let last = recent.events.last();
            let has_ended = |event: &Event| event.change().is_some_and(|change| change.state.is_terminal());
            self.ended = matches!(self.wanted.channel, Channel::Job(_)) && last.is_some_and(has_ended);
            if let Channel::Job(id) = self.wanted.channel
                && !self.ended
            {
                self.push_progress(&mut text, id);
            }
            // What was found may all be of types that are not wanted.
            if last.is_none() || !text.is_empty() || self.ended {
                return text;
            }
        }
    }

    /// Writes how far the job has come, where that is news. It has no place in the log: a stream that resumes begins
    /// with the latest.
    fn push_progress(&mut self, text: &mut String, id: JobId) {
        let latest = self.app.engine.latest_progress(id);
        if let Some(progress) = latest.as_ref().filter(|_| latest != self.told && self.wanted.has_progress()) {
            let event_id = id_here(&self.app, self.seen);
            push_event(text, &event_id, PROGRESS, &progress_json(self.wanted.words, &event_id, id, progress));
        }
        self.told = latest;
    }

    /// A sign of life. What other nodes do is not in the log, so a stream of a job looks whether the job has ended.
    async fn beat(&mut self) -> String {
        if let Channel::Job(id) = self.wanted.channel {
            match self.app.engine.job(id).await {
                Ok(job) if job.state.is_terminal() => {
                    let mut text = self.look();
                    if !self.ended {
                        push_ended(&mut text, &self.app, &self.wanted, &job, self.seen);
                        self.ended = true;
                    }
                    push_id(&mut text, &self.app, self.seen);
                    return text;
                }
                Err(EngineError::Refused(_, Refusal::NotFound)) => self.ended = true,
                _ => {}
            }
        }
        self.ended |= self.event.elapsed() >= self.app.limits.stream_idle;
        ":heartbeat\n\n".to_owned()
    }

    /// The key of the client is not valid any more: when it calls again, it is told so.
    fn refuse(&mut self) -> String {
        self.ended = true;
        let mut text = String::new();
        let data = json!({ "message": "the key is not valid any more" });
        push_event(&mut text, &id_here(&self.app, self.seen), "unauthorized", &data);
        text
    }

    fn stop(&mut self) -> String {
        self.ended = true;
        let mut text = String::new();
        let data = json!({ "message": "the server stops; call again after the retry time" });
        push_event(&mut text, &id_here(&self.app, self.seen), "server.shutdown", &data);
        text
    }
}

fn recent(app: &App, wanted: &Wanted, after: u64, limit: usize) -> RecentEvents {
    app.engine.events_since(after, app.limits.stream_events, limit, |event| wanted.fits(event))
}

/// Writes what was found, and before it how much is missing.
fn push_recent(text: &mut String, app: &App, wanted: &Wanted, after: u64, recent: &RecentEvents) {
    if recent.missed > 0 {
        push_gap(text, app, GapReason::Dropped, Some(recent.missed), after + recent.missed);
    }
    for event in &recent.events {
        push_view(text, wanted, &EventView::of(event, app.boot));
    }
}

/// What every stream begins with: the id after which it goes on, so that a client which is cut off before the first
/// event can resume too, and what is missing before it.
fn beginning(start: StreamStart, app: &App) -> String {
    let mut text = format!("{RETRY}\nid: {}\n\n", id_here(app, start.number()));
    if let StreamStart::Unknown(now, why) = start {
        push_gap(&mut text, app, why, None, now);
    }
    text
}

/// Writes up to where a client has seen everything. The last event may not have been wanted: without this, the client
/// would call again and again for what comes after the one before it.
fn push_id(text: &mut String, app: &App, seen: u64) {
    text.push_str(&format!("id: {}\n\n", id_here(app, seen)));
}

fn push_gap(text: &mut String, app: &App, why: GapReason, missed: Option<u64>, goes_on_after: u64) {
    let id = EventId { process: app.boot, number: goes_on_after };
    push_event(text, &id.to_string(), "gap", &gap(why, missed, id));
}

fn push_ended(text: &mut String, app: &App, wanted: &Wanted, job: &Job, seen: u64) {
    push_view(text, wanted, &EventView::of_ended(job, id_here(app, seen)));
}

fn push_view(text: &mut String, wanted: &Wanted, view: &EventView<'_>) {
    if !wanted.is_of_type(view.type_name()) {
        return;
    }
    match wanted.words {
        Words::Events => push_event(text, &view.id, view.type_name(), &view.envelope()),
        Words::Changes => {
            if let Some((name, data)) = view.change() {
                push_event(text, &view.id, name, &data);
            }
        }
    }
}
