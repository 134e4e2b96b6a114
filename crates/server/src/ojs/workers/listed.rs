//! A worker as it is listed: what it says about itself, and what it runs by the leases in the store.

use super::MOST_RUNS;
use crate::api_error::ApiError;
use crate::app::App;
use redrive_engine::{Worker, WorkerState};
use redrive_ojs::time::rfc3339;
use redrive_policy::Moment;
use redrive_store::Lease;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A worker, and how many jobs it runs.
pub(super) struct Listed {
    pub(super) worker: Worker,
    runs: usize,
}

/// All workers, by name: those that have called this node, and those that the store has leases of. And whether there
/// are more leases than were looked at.
pub(super) async fn all(app: &App) -> Result<(Vec<Listed>, bool), ApiError> {
    let held = app.engine.held_runs(MOST_RUNS).await?;
    let known = app.engine.workers().into_iter().map(|worker| (Arc::clone(&worker.id), Listed { worker, runs: 0 }));
    let mut all: BTreeMap<Arc<str>, Listed> = known.collect();
    // A lease of a worker without a name belongs to nobody who could be listed.
    for (id, (runs, alive)) in held.by_worker.into_iter().filter(|(id, _)| !id.is_empty()) {
        let listed =
            all.entry(Arc::clone(&id)).or_insert_with(|| Listed { worker: Worker::elsewhere(id, alive), runs: 0 });
        listed.worker.last_seen = listed.worker.last_seen.max(alive);
        listed.runs = runs;
    }
    Ok((all.into_values().collect(), held.is_cut))
}

impl Listed {
    /// A worker that has called this node.
    pub(super) fn known(app: &App, id: &str) -> Option<Self> {
        Some(Self { worker: app.engine.worker(id)?, runs: 0 })
    }

    /// Counts a lease of the worker.
    pub(super) fn count_run(listed: &mut Option<Self>, lease: &Lease) {
        let new = || Self { worker: Worker::elsewhere(Arc::clone(&lease.worker), lease.alive), runs: 0 };
        let listed = listed.get_or_insert_with(new);
        listed.worker.last_seen = listed.worker.last_seen.max(lease.alive);
        listed.runs += 1;
    }

    pub(super) fn json(&self, now: Moment) -> Value {
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
