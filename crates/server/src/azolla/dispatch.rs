//! Tasks for a shepherd: as many as it can run, counted by what was sent and answered. What it says of its load is not
//! read: a shepherd may count wrong, and a heartbeat is old when it comes.

use super::cluster::OUTGOING;
use super::settler::Told;
use super::span;
use super::stream::{Outgoing, Session};
use crate::listen::stop_of;
use redrive_azolla::common::Task;
use redrive_azolla::orchestrator::server_msg::Kind;
use redrive_azolla::orchestrator::{Ping, ServerMsg};
use redrive_azolla::{LONGEST_MESSAGE, Report, encoded_len, task_of, too_large};
use redrive_engine::{ClaimRequest, EngineError, WorkerState};
use redrive_store::Job;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tonic::Status;
use tracing::warn;

/// After how long without a task a shepherd gets a ping.
const SILENCE: Duration = Duration::from_secs(1);
/// How long one claim waits.
const WAIT: Duration = Duration::from_secs(60);
/// How long to wait before a store that did not answer is asked again.
const AGAIN: Duration = Duration::from_millis(500);
/// What the message around a task takes.
const AROUND: usize = 64;

/// Sends tasks, and pings, until the shepherd takes no more messages.
pub(super) async fn run(session: &Session, outgoing: &Outgoing, told: &mpsc::Sender<Told>) -> Result<(), Status> {
    let mut tasks = std::pin::pin!(claim(session, outgoing));
    let mut silent_until = Instant::now() + SILENCE;
    loop {
        tokio::select! {
            claimed = &mut tasks => {
                for job in claimed? {
                    send(session, outgoing, told, &job).await?;
                }
                tasks.set(claim(session, outgoing));
            }
            () = sleep_until(silent_until) => {
                let timestamp = session.protocol.app.engine.now().micros() / 1_000_000;
                let ping = ServerMsg { kind: Some(Kind::Ping(Ping { timestamp })) };
                // Where messages wait already, this one would tell nothing.
                let _ = outgoing.try_send(Ok(ping));
            }
            () = outgoing.closed() => return Err(gone()),
        }
        silent_until = Instant::now() + SILENCE;
    }
}

fn gone() -> Status {
    Status::cancelled("the shepherd takes no more messages")
}

/// The next tasks for a shepherd, once it can take any. Dropped on the way, they are released.
async fn claim(session: &Session, outgoing: &Outgoing) -> Result<Vec<Job>, Status> {
    let Session { protocol, shepherd, worker, queue, most, .. } = session;
    let engine = &protocol.app.engine;
    loop {
        let room = shepherd.room(*most).await;
        // Messages that the connection has not taken yet are not overtaken by more claims.
        let count = room.min(outgoing.capacity().max(1)).min(OUTGOING);
        if engine.note_fetch(worker, std::slice::from_ref(queue)) != WorkerState::Running {
            // An operator wants it to take no more.
            tokio::time::sleep(SILENCE).await;
            continue;
        }
        let request = ClaimRequest {
            count,
            bytes: LONGEST_MESSAGE,
            lease: Some(span(protocol.settings.lease)),
            wait: WAIT,
            ..ClaimRequest::new(vec![Arc::clone(queue)], Arc::clone(worker))
        };
        let (stopping, held) = (protocol.app.stopping.clone(), Arc::clone(engine).worker_held(Arc::clone(worker)));
        let ended = async move {
            tokio::select! {
                () = stop_of(stopping) => {}
                () = held => {}
            }
        };
        match engine.claim_or_release(request, ended).await {
            Ok(jobs) if jobs.is_empty() => {}
            Ok(jobs) => {
                jobs.iter().for_each(|job| shepherd.take(job));
                return Ok(jobs);
            }
            Err(error @ EngineError::Store(_)) => {
                warn!("cannot claim tasks for {worker} yet: {error}");
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => return Err(Status::internal(error.to_string())),
        }
    }
}

/// Sends a task. One that no shepherd can take fails: it would end the stream each time that it is sent.
async fn send(session: &Session, outgoing: &Outgoing, told: &mpsc::Sender<Told>, job: &Job) -> Result<(), Status> {
    let task: Task = task_of(job);
    let found = encoded_len(&task) + AROUND;
    if found > LONGEST_MESSAGE {
        let ending = too_large(found, &session.protocol.app.limits.of_jobs());
        let told = told.send(Told::Report(Report { id: job.id, ending })).await;
        return told.map_err(|_| gone());
    }
    outgoing.send(Ok(ServerMsg { kind: Some(Kind::Task(task)) })).await.map_err(|_| gone())
}
