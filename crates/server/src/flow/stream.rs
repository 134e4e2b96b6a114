//! The events of a run as they happen, as server-sent events. They are those of its history, so that a stream can be
//! resumed on any node and after any restart.

use super::damaged;
use super::runs::find;
use crate::access::Caller;
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::edge::EVENT_STREAM;
use crate::listen::stop_of;
use crate::ojs::streams::Unfolded;
use crate::request::Query;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use redrive_flow::runs::RunView;
use redrive_policy::Problem;
use redrive_store::RunId;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

/// After how long a client should call again when its stream has ended, in milliseconds.
const RETRY: &str = "retry: 3000\n\n";
/// How long a stream waits before it looks again: steps come in groups.
const BREATHER: Duration = Duration::from_millis(20);
/// How often it looks without being told: what other nodes do is not told here.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// `GET /flows/v1/runs/{id}/events`.
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    let seen = last_seen(&headers, &query)?;
    let place = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| {
        let most = app.limits.streams;
        ApiError::new(Code::RateLimited, format!("{most} event streams are open already (limits.streams)"))
            .retry_after(3)
    })?;
    let advances = app.engine.watch_runs();
    let view = find(&app, &id).await?;
    // The client has everything, and a client of server-sent events does not call again after this.
    if view.run().end.is_some() && view.events_after(seen).1.next().is_none() {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let now = Instant::now();
    let stream = EventStream {
        id: view.run().id,
        app,
        caller,
        advances,
        seen,
        begun: false,
        ended: false,
        wrote: now,
        event: now,
        _place: place,
    };
    let mut response = Response::new(Body::new(Unfolded::new(stream, |stream| Box::pin(stream.next()))));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENT_STREAM);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Reads `Last-Event-ID`, or `last_event_id` of the query for clients that cannot set a header.
fn last_seen(headers: &HeaderMap, query: &Query) -> Result<u64, ApiError> {
    let header = headers.get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    let (at, text) = match header.filter(|id| !id.is_empty()) {
        Some(id) => ("Last-Event-ID", id),
        None => match query.get("last_event_id") {
            Some(id) => ("?last_event_id", id.to_owned()),
            None => return Ok(0),
        },
    };
    text.parse().map_err(|_| {
        ApiError::invalid(vec![Problem::new(at, format!("{text:?}"), "the number of an event of this run")])
    })
}

/// An open stream.
struct EventStream {
    app: Arc<App>,
    /// Who is told.
    caller: Caller,
    id: RunId,
    advances: watch::Receiver<u64>,
    /// The last event that was written.
    seen: u64,
    begun: bool,
    ended: bool,
    /// When something was last written.
    wrote: Instant,
    /// When an event was last written, or the stream began.
    event: Instant,
    _place: OwnedSemaphorePermit,
}

impl EventStream {
    /// The next part of the body, and the stream for the one behind it.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if self.ended {
            return None;
        }
        let mut text = String::new();
        if !std::mem::replace(&mut self.begun, true) {
            text.push_str(RETRY);
        }
        text.push_str(&self.wait().await);
        self.wrote = Instant::now();
        Some((Bytes::from(text), self))
    }

    /// Waits for events, for the time of a heartbeat, or for the end of the server.
    async fn wait(&mut self) -> String {
        let heartbeat = self.wrote + self.app.limits.stream_heartbeat;
        loop {
            let looked = Instant::now();
            let text = self.look().await;
            if !text.is_empty() || self.ended {
                self.event = looked;
                return text;
            }
            tokio::select! {
                biased;
                () = stop_of(self.app.stopping.clone()) => return self.stop(),
                () = self.app.guard.invalid(&self.app.engine, &self.caller) => return self.refuse(),
                () = sleep_until(heartbeat) => {
                    self.ended = self.event.elapsed() >= self.app.limits.stream_idle;
                    return ":heartbeat\n\n".to_owned();
                }
                // The sender lives as long as the engine.
                _ = self.advances.changed() => sleep_until(looked + BREATHER).await,
                () = sleep_until(looked + LOOK_EVERY) => {}
            }
        }
    }

    /// What has happened since the last look. A run that is gone, or a store that does not answer, ends the stream:
    /// its client calls again.
    async fn look(&mut self) -> String {
        let mut text = String::new();
        let view = match self.app.engine.run(self.id).await {
            Ok(run) => RunView::read(run).map_err(damaged),
            Err(error) => Err(error.into()),
        };
        let Ok(view) = view else {
            self.ended = true;
            return text;
        };
        let (omitted, events) = view.events_after(self.seen);
        if omitted > 0 {
            self.seen += omitted;
            push(&mut text, self.seen, "gap", &json!({ "omitted": omitted }));
        }
        for event in events {
            self.seen = event.seq;
            push(&mut text, event.seq, &event.name, &event.to_value());
        }
        self.ended = view.run().end.is_some();
        text
    }

    fn stop(&mut self) -> String {
        self.end("server.shutdown", "the server stops; call again after the retry time")
    }

    /// The key of the client is not valid any more: when it calls again, it is told so.
    fn refuse(&mut self) -> String {
        self.end("unauthorized", "the key is not valid any more")
    }

    fn end(&mut self, name: &str, message: &str) -> String {
        self.ended = true;
        let mut text = String::new();
        push(&mut text, self.seen, name, &json!({ "message": message }));
        text
    }
}

/// Writes one server-sent event.
fn push(out: &mut String, seq: u64, name: &str, data: &serde_json::Value) {
    // JSON has no line breaks, so that it is one line of data.
    out.push_str(&format!("id: {seq}\nevent: {name}\ndata: {data}\n\n"));
}
