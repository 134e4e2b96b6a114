//! Workers as they are listed: what they say about themselves, and what they run by the leases in the store.

use crate::time::rfc3339;
use redrive_engine::{Engine, EngineError, Worker, WorkerState};
use redrive_policy::{Moment, resembling};
use redrive_store::{Job, Lease};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many active jobs are looked at for what workers run.
pub const MOST_ACTIVE: usize = 10_000;
/// How many jobs of one worker are listed.
const MOST_LISTED: usize = 1_000;

/// A worker, and how many jobs it runs.
#[derive(Clone, Debug)]
pub struct ListedWorker {
    /// The worker.
    pub worker: Worker,
    runs: usize,
}

/// All workers, by name: those that have called this node, and those that the store has leases of. And whether there
/// are more active jobs than were looked at.
///
/// # Errors
/// The store did not answer.
pub async fn list_workers(engine: &Engine) -> Result<(Vec<ListedWorker>, bool), EngineError> {
    let held = engine.held_runs(MOST_ACTIVE).await?;
    let known = engine.workers().into_iter().map(|worker| (Arc::clone(&worker.id), ListedWorker { worker, runs: 0 }));
    let mut all: BTreeMap<Arc<str>, ListedWorker> = known.collect();
    // A lease of a worker without a name belongs to nobody who could be listed.
    for (id, (runs, alive)) in held.by_worker.into_iter().filter(|(id, _)| !id.is_empty()) {
        let new = || ListedWorker { worker: Worker::elsewhere(Arc::clone(&id), alive), runs: 0 };
        let listed = all.entry(Arc::clone(&id)).or_insert_with(new);
        listed.worker.last_seen = listed.worker.last_seen.max(alive);
        listed.runs = runs;
    }
    Ok((all.into_values().collect(), held.is_cut))
}

/// One worker, with the jobs that it runs; `None` where nothing is known of it.
///
/// # Errors
/// The store did not answer.
pub async fn show_worker(engine: &Engine, id: &str) -> Result<Option<Value>, EngineError> {
    let mut jobs = Vec::new();
    let mut listed = engine.worker(id).map(|worker| ListedWorker { worker, runs: 0 });
    let each = |job: &Job| {
        let Some(lease) = job.lease.as_ref().filter(|lease| *lease.worker == *id) else { return };
        count(&mut listed, lease);
        if jobs.len() < MOST_LISTED {
            jobs.push(json!({
                "job_id": job.id.to_string(),
                "type": &*job.spec.kind,
                "queue": &*job.spec.queue,
                "attempt": job.attempt,
                "started_at": job.times.started.map(rfc3339),
                "lease_expires_at": rfc3339(lease.until),
            }));
        }
    };
    engine.throttled(engine.for_each_active(MOST_ACTIVE, each)).await?;
    Ok(listed.map(|listed| {
        let mut shown = listed.json(engine.now());
        shown["jobs"] = jobs.into();
        shown
    }))
}

/// Counts a lease of the worker.
fn count(listed: &mut Option<ListedWorker>, lease: &Lease) {
    let new = || ListedWorker { worker: Worker::elsewhere(Arc::clone(&lease.worker), lease.alive), runs: 0 };
    let listed = listed.get_or_insert_with(new);
    listed.worker.last_seen = listed.worker.last_seen.max(lease.alive);
    listed.runs += 1;
}

/// Why nothing is known of a worker of this name, and which one may be meant.
#[must_use]
pub fn no_such_worker(engine: &Engine, id: &str) -> String {
    let workers = engine.workers();
    let names: Vec<&str> = workers.iter().map(|worker| &*worker.id).collect();
    let near = resembling(id, &names).map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    format!(
        "there is no worker {id:?}; workers are known from their fetches and heartbeats to this node, for an hour{near}"
    )
}

impl ListedWorker {
    /// The worker as it is returned.
    #[must_use]
    pub fn json(&self, now: Moment) -> Value {
        let Worker { id, report, directive, first_seen, last_seen, last_heartbeat, .. } = &self.worker;
        let mut json = json!({
            "id": &**id,
            "state": self.worker.wanted().name(),
            "stale": self.worker.is_stale(now),
            "queues": report.queues.iter().flatten().map(|queue| &**queue).collect::<Vec<_>>(),
            "active_jobs": self.runs,
            "first_seen_at": rfc3339(*first_seen),
            "last_seen_at": rfc3339(*last_seen),
        });
        let texts = [("hostname", &report.hostname), ("version", &report.version)];
        let numbers = [("pid", report.pid), ("concurrency", report.concurrency)];
        let moments = [("started_at", report.started), ("last_heartbeat_at", *last_heartbeat)];
        let labels = report.labels.as_ref().map(|labels| labels.iter().map(|label| Value::from(&**label)).collect());
        let members = (texts.into_iter().filter_map(|(key, text)| Some((key, Value::from(&**text.as_ref()?)))))
            .chain(numbers.into_iter().filter_map(|(key, number)| Some((key, number?.into()))))
            .chain(moments.into_iter().filter_map(|(key, at)| Some((key, rfc3339(at?).into()))))
            .chain(labels.map(|labels: Vec<Value>| ("labels", labels.into())))
            .chain(directive.map(|directive: WorkerState| ("directive", directive.name().into())));
        for (key, value) in members {
            json[key] = value;
        }
        json
    }
}
