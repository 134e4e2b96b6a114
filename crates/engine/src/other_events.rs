//! Events of queues and workers, as they are told.

use crate::{Worker, WorkerState};
use redrive_store::OtherEvent;
use serde_json::{Value, json};
use std::sync::Arc;

/// A queue was paused or resumed.
pub(crate) fn queue_paused(queue: &Arc<str>, paused: bool) -> OtherEvent {
    let event_type = if paused { "queue.paused" } else { "queue.resumed" };
    OtherEvent {
        event_type: event_type.into(),
        subject: Arc::clone(queue),
        queue: Some(Arc::clone(queue)),
        job_type: None,
        data: blob(&json!({ "queue": &**queue })),
    }
}

/// No job with a limit key starts before a time, because a worker asked for that.
pub(crate) fn key_held(key: &Arc<str>, until: &str, reason: &str) -> OtherEvent {
    OtherEvent {
        event_type: "rate_limit.dynamic_adjusted".into(),
        subject: Arc::clone(key),
        queue: None,
        job_type: None,
        data: blob(&json!({ "key": &**key, "until": until, "reason": reason })),
    }
}

/// The first heartbeat of a worker, or of another process under its name.
pub(crate) fn worker_started(worker: &Worker) -> OtherEvent {
    let queues: Vec<&str> = worker.report.queues.iter().flatten().map(|queue| &**queue).collect();
    let mut data = json!({ "worker_id": &*worker.id, "queues": queues });
    if let Some(concurrency) = worker.report.concurrency {
        data["concurrency"] = concurrency.into();
    }
    of_worker("worker.started", worker, &data)
}

/// A worker says that it fetches no more.
pub(crate) fn worker_quiet(worker: &Worker) -> OtherEvent {
    of_worker("worker.quiet", worker, &json!({ "worker_id": &*worker.id, "state": worker.state().name() }))
}

/// A worker was not heard of any more, and an operator removed it; so many of its runs were ended.
pub(crate) fn worker_removed(worker: &Worker, ended: usize) -> OtherEvent {
    let data = json!({ "worker_id": &*worker.id, "reason": "error", "jobs_rescheduled": ended });
    of_worker("worker.stopped", worker, &data)
}

/// What is to be told of a heartbeat. `before` is what the worker did before it, by its own word.
pub(crate) fn of_change(before: Option<WorkerState>, worker: &Worker) -> Option<OtherEvent> {
    match before {
        None => Some(worker_started(worker)),
        Some(WorkerState::Running) if worker.state() != WorkerState::Running => Some(worker_quiet(worker)),
        Some(_) => None,
    }
}

fn of_worker(event_type: &str, worker: &Worker, data: &Value) -> OtherEvent {
    let subject = Arc::clone(&worker.id);
    OtherEvent { event_type: event_type.into(), subject, queue: None, job_type: None, data: blob(data) }
}

fn blob(data: &Value) -> Arc<[u8]> {
    Arc::from(data.to_string().into_bytes())
}
