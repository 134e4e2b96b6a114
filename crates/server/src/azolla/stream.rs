//! One stream, from the shepherd's first message to its end.

use super::settler::{Settler, Told};
use super::shepherds::Shepherd;
use super::{Protocol, dispatch};
use crate::listen::stop_of;
use redrive_azolla::orchestrator::client_msg::Kind;
use redrive_azolla::orchestrator::{ClientMsg, Hello, ServerMsg};
use redrive_azolla::{queue_of, report_of};
use redrive_engine::{EngineError, WorkerReport};
use redrive_store::{Filter, Page, State};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::{Status, Streaming};
use tracing::{info, warn};
use uuid::Uuid;

/// How many reports wait at most to be stored; after that, the shepherd waits.
const INCOMING: usize = 1_000;

/// What goes to a shepherd.
pub(super) type Outgoing = mpsc::Sender<Result<ServerMsg, Status>>;

/// A stream of a shepherd that has said who it is.
pub(super) struct Session {
    pub(super) protocol: Arc<Protocol>,
    pub(super) shepherd: Arc<Shepherd>,
    /// The number of the stream among those of the shepherd.
    pub(super) number: u64,
    /// The name under which it holds leases.
    pub(super) worker: Arc<str>,
    pub(super) queue: Arc<str>,
    pub(super) most: usize,
}

/// Serves a stream. It ends with a status that is no error only where the server stops: a shepherd comes back at once
/// then, and waits after all others.
pub(super) async fn run(protocol: Arc<Protocol>, mut messages: Streaming<ClientMsg>, outgoing: Outgoing) {
    let stopped = stop_of(protocol.app.stopping.clone());
    let ended = tokio::select! {
        ended = serve(&protocol, &mut messages, &outgoing) => ended,
        () = stopped => Ok(()),
    };
    if let Err(status) = ended {
        // A shepherd that has gone takes no more messages.
        let _ = outgoing.try_send(Err(status));
    }
}

async fn serve(
    protocol: &Arc<Protocol>,
    messages: &mut Streaming<ClientMsg>,
    outgoing: &Outgoing,
) -> Result<(), Status> {
    let hello = greeted(protocol, messages).await?;
    let session = Arc::new(enter(protocol, hello).await?);
    let (told, reports) = mpsc::channel(INCOMING);
    // It stores what was reported, even where the stream breaks meanwhile, and extends leases as long as there are
    // messages.
    tokio::spawn(Settler::new(Arc::clone(&session)).run(reports));
    tokio::select! {
        ended = read(&session, messages, &told) => ended,
        ended = dispatch::run(&session, outgoing, &told) => ended,
        () = session.shepherd.superseded(session.number) => {
            Err(Status::aborted("another stream of this shepherd has taken the place of this one"))
        }
    }
}

/// The first message, which has to say who it is.
async fn greeted(protocol: &Protocol, messages: &mut Streaming<ClientMsg>) -> Result<Hello, Status> {
    let first = timeout(protocol.app.limits.header_timeout, messages.message()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("no Hello has come (limits.header_timeout)"))??;
    let found = match first.map(|message| message.kind) {
        Some(Some(Kind::Hello(hello))) => return Ok(hello),
        Some(Some(Kind::Ack(_))) => "an Ack",
        Some(Some(Kind::Status(_))) => "a Status",
        Some(Some(Kind::TaskResult(_))) => "a TaskResult",
        Some(None) => "an empty message",
        None => "the end of the stream",
    };
    Err(Status::failed_precondition(format!("found {found}; the first message of a stream is a Hello")))
}

/// Lets a shepherd in. One of which this process knows nothing may have tasks from before a restart of the server.
async fn enter(protocol: &Arc<Protocol>, hello: Hello) -> Result<Session, Status> {
    let Hello { shepherd_uuid, max_concurrency, domain, shepherd_group } = hello;
    let id = Uuid::try_parse(&shepherd_uuid).map_err(|_| {
        Status::invalid_argument(format!("Invalid shepherd_uuid: found {shepherd_uuid:?}; allowed is a UUID"))
    })?;
    let queue: Arc<str> = queue_of(&domain, &shepherd_group).into();
    let (found, most) = (queue.len(), protocol.app.limits.name_bytes);
    if found > most {
        return Err(Status::invalid_argument(format!(
            "found a domain and a shepherd group of {found} bytes as {queue:?}; at most {most} are allowed \
             (limits.name_bytes)"
        )));
    }
    let (shepherd, number, is_new) = protocol.shepherds.enter(id);
    let worker = shepherd.worker();
    if is_new && let Err(error) = recall(protocol, &shepherd, &worker, &queue).await {
        // What it has is not forgotten: its leases are in the store.
        warn!("cannot read which tasks the shepherd {id} has: {error}");
    }
    let report = WorkerReport {
        queues: Some(vec![Arc::clone(&queue)]),
        concurrency: Some(max_concurrency.into()),
        ..WorkerReport::default()
    };
    protocol.app.engine.note_heartbeat(&worker, report);
    info!("shepherd {id} of domain {domain:?}, group {shepherd_group:?}, takes up to {max_concurrency} tasks");
    let most = usize::try_from(max_concurrency).unwrap_or(usize::MAX);
    Ok(Session { protocol: Arc::clone(protocol), shepherd, number, worker, queue, most })
}

/// Reads from the store which tasks a shepherd has.
async fn recall(protocol: &Protocol, shepherd: &Shepherd, worker: &str, queue: &Arc<str>) -> Result<(), EngineError> {
    let filter = Filter { queue: Some(Arc::clone(queue)), state: Some(State::Active), ..Filter::default() };
    let mut page = Page { payloads: false, ..Page::new(0, 500) };
    loop {
        let listed = protocol.app.engine.list(filter.clone(), page).await?;
        let own = listed.jobs.iter().filter(|job| job.lease.as_ref().is_some_and(|lease| *lease.worker == *worker));
        own.for_each(|job| shepherd.take(job));
        let Some(next) = listed.next else { return Ok(()) };
        page = next;
    }
}

/// Reads what the shepherd says until it says nothing for as long as a lease lasts.
async fn read(session: &Session, messages: &mut Streaming<ClientMsg>, told: &mpsc::Sender<Told>) -> Result<(), Status> {
    let lease = session.protocol.settings.lease;
    loop {
        let message = timeout(lease, messages.message())
            .await
            .map_err(|_| Status::deadline_exceeded(format!("no message has come for {lease:?} (azolla.lease)")))??;
        let Some(message) = message else {
            return Err(Status::cancelled("the shepherd has ended its side of the stream"));
        };
        let told_now = match message.kind {
            Some(Kind::Status(_)) => {
                session.protocol.app.engine.note_heartbeat(&session.worker, WorkerReport::default());
                Told::Alive
            }
            Some(Kind::Ack(_)) => Told::Alive,
            Some(Kind::TaskResult(result)) => match report_of(result, &session.protocol.app.limits.of_jobs()) {
                Ok(report) => Told::Report(report),
                Err(wrong) => {
                    warn!("a report of {} is ignored: {wrong}", session.worker);
                    Told::Alive
                }
            },
            Some(Kind::Hello(_)) => {
                return Err(Status::failed_precondition("found a second Hello; a stream has one"));
            }
            None => return Err(Status::invalid_argument("found an empty message, or one of an unknown kind")),
        };
        if told.send(told_now).await.is_err() {
            return Err(Status::internal("the reports of this stream are not taken any more"));
        }
    }
}
