//! Events as they happen, as server-sent events: of everything, of one queue, or of one job.

mod body;
mod follow;
mod progress;

use super::events::{STATE_CHANGED, id_of, may_see, read_types};
use super::names::{id_in_path, queue_in_path};
use super::queues::no_such_queue;
use crate::access::Caller;
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::edge::EVENT_STREAM;
use crate::request::Query;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
pub(crate) use body::Unfolded;
use follow::{EventStream, Opening};
use redrive_engine::Event;
use redrive_ojs::events::{PROGRESS, StreamStart, event_types};
use redrive_policy::Problem;
use redrive_store::{Job, JobId};
use std::sync::Arc;

/// Which events, and after which one.
pub(crate) const PARAMETERS: &[&str] = &["channel", "types", "last_event_id"];
/// The same, where the path says of what.
pub(crate) const PARAMETERS_OF_ONE: &[&str] = &["types", "event_types", "last_event_id"];

/// How a channel may be named.
const CHANNELS: &str = "\"all\", \"job:\" and the id of a job, or \"queue:\" and the name of a queue";

/// What a stream is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Channel {
    All,
    Queue(Arc<str>),
    Job(JobId),
}

/// Which events a stream has, and in which words.
#[derive(Clone, Debug)]
struct Wanted {
    /// Who is told.
    caller: Caller,
    channel: Channel,
    /// The types; absent for all.
    types: Option<Vec<&'static str>>,
    words: Words,
}

/// In which words events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    /// Those of `GET /events`.
    Events,
    /// Those of the real-time page.
    Changes,
}

impl Channel {
    fn fits(&self, event: &Event) -> bool {
        match self {
            Self::All => true,
            Self::Queue(name) => event.body.queue() == Some(name),
            Self::Job(id) => event.body.job().is_some_and(|event| event.job == *id),
        }
    }
}

impl Wanted {
    fn fits(&self, event: &Event) -> bool {
        self.channel.fits(event) && may_see(&self.caller, event)
    }

    /// Every event of the real-time words is a change of state.
    fn is_of_type(&self, type_name: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&type_name) || types.contains(&STATE_CHANGED))
    }

    fn has_progress(&self) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&PROGRESS))
    }
}

pub(crate) async fn of_channel(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    let channel = match query.get("channel").unwrap_or("all").split_once(':') {
        None if query.get("channel").is_none_or(|channel| channel == "all") => Channel::All,
        Some(("job", id)) => Channel::Job(id_in_path(id)?),
        Some(("queue", name)) => Channel::Queue(Arc::from(name)),
        _ => {
            let found = format!("\"{}\"", query.get("channel").unwrap_or_default());
            return Err(ApiError::invalid(vec![Problem::new("?channel", found, CHANNELS)]));
        }
    };
    open(app, caller, channel, Words::Events, &headers, &query).await
}

pub(crate) async fn of_job(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    open(app, caller, Channel::Job(id_in_path(&id)?), Words::Changes, &headers, &query).await
}

pub(crate) async fn of_queue(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    open(app, caller, Channel::Queue(Arc::from(name)), Words::Changes, &headers, &query).await
}

async fn open(
    app: Arc<App>,
    caller: Caller,
    channel: Channel,
    words: Words,
    headers: &HeaderMap,
    query: &Query,
) -> Result<Response, ApiError> {
    match &channel {
        Channel::All => {}
        Channel::Queue(name) => caller.check_queues([&**name])?,
        Channel::Job(id) => caller.check_jobs(&app, &[*id]).await?,
    }
    let wanted = Wanted { types: types(query, &channel)?, caller, channel, words };
    let place = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| {
        let most = app.limits.streams;
        ApiError::new(Code::RateLimited, format!("{most} event streams are open already (limits.streams)"))
            .retry_after(3)
    })?;
    // Before anything is looked up: what happens from here on is found in the log, or announced.
    let arrivals = app.engine.watch_events();
    let start = start(headers, query, &app);
    let ended = ended_job(&app, &wanted.channel).await?;
    let opening = match ended {
        None => Opening::follow(start, &app),
        Some(job) => match Opening::of_ended(start, &job, &wanted, &app) {
            Some(opening) => opening,
            // The client has everything, and a client of server-sent events does not call again after this.
            None => return Ok(no_more()),
        },
    };
    let stream = EventStream::new(app, wanted, arrivals, opening, place);
    let mut response = Response::new(Body::new(Unfolded::new(stream, |stream| Box::pin(stream.next()))));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENT_STREAM);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// Reads `Last-Event-ID`, or `last_event_id` of the query for clients that cannot set a header. Clients that
/// reconnect by themselves repeat the query as it was and update the header, so the header comes first.
fn start(headers: &HeaderMap, query: &Query, app: &App) -> StreamStart {
    let header = headers.get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    let id = header.filter(|id| !id.is_empty()).or_else(|| query.get("last_event_id").map(str::to_owned));
    StreamStart::of(id.as_deref(), app.boot, app.engine.latest_event())
}

fn no_more() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Checks that there is what the channel names; answers its job where that has ended.
async fn ended_job(app: &App, channel: &Channel) -> Result<Option<Job>, ApiError> {
    match channel {
        Channel::All => Ok(None),
        Channel::Queue(name) => {
            queue_in_path(name, &app.limits)?;
            let known = app.engine.queues().await?.iter().any(|queue| queue.name == *name);
            if known { Ok(None) } else { Err(no_such_queue(app, name).await?) }
        }
        Channel::Job(id) => Ok(Some(app.engine.job(*id).await?).filter(|job| job.state.is_terminal())),
    }
}

/// The types that are wanted.
fn types(query: &Query, channel: &Channel) -> Result<Option<Vec<&'static str>>, ApiError> {
    let mut problems = Vec::new();
    if query.get("types").is_some() && query.get("event_types").is_some() {
        problems.push(Problem::with_message("?event_types", "means the same as types; keep one of them"));
    }
    let key = if query.get("types").is_some() { "types" } else { "event_types" };
    // Progress is told in the stream of a job only.
    let progress = Some(PROGRESS).filter(|_| matches!(channel, Channel::Job(_)));
    let known: Vec<&'static str> = event_types().chain([STATE_CHANGED]).chain(progress).collect();
    let types = read_types(query, key, &known, &mut problems);
    if problems.is_empty() { Ok(types) } else { Err(ApiError::invalid(problems)) }
}

/// Writes one server-sent event.
fn push_event(out: &mut String, id: &str, name: &str, data: &serde_json::Value) {
    // JSON has no line breaks, so that it is one line of data.
    out.push_str(&format!("id: {id}\nevent: {name}\ndata: {data}\n\n"));
}

/// The id of the event with this number in this process.
fn id_here(app: &App, number: u64) -> String {
    id_of(number, app.boot)
}
