//! What is in a store, in words that stay when fields are added. Fixtures are compared by it.

use redrive_store::{Filter, Job, Page, Store};
use std::fmt::Write as _;

/// What a job must be, in words that stay when fields are added.
fn line(job: &Job) -> String {
    let (spec, times) = (&job.spec, &job.times);
    let mut line = format!("{} {} {} {} {}", job.id, job.state, spec.queue, spec.kind, spec.priority);
    let at = |moment: Option<redrive_policy::Moment>| moment.map(|moment| moment.micros());
    let _ = write!(line, " counts {:?}", (job.attempt, job.leases, job.generation, job.releases, job.dead));
    let created = Some(times.created);
    let _ = write!(line, " times {:?}", [created, times.available, times.started, times.finished, job.due].map(at));
    let _ = write!(line, " delay {:?}", job.last_delay.map(|delay| delay.ms()));
    let _ = write!(line, " limits {:?}", [spec.timeout, spec.lease].map(|span| span.map(|span| span.ms())));
    let _ = write!(line, " expires {:?}", at(spec.expires));
    let _ = write!(line, " body {}:{:08x}", spec.body.len(), crc32fast::hash(&spec.body));
    let _ = write!(line, " policy {}", serde_json::to_string(&*spec.policy).unwrap());
    let _ = write!(line, " history {}", serde_json::to_string(&job.history).unwrap());
    if let Some(lease) = &job.lease {
        let times = [Some(lease.alive), Some(lease.until), lease.deadline].map(at);
        let _ = write!(line, " lease {} {} {times:?} {}", lease.token, lease.worker, lease.span.ms());
    }
    let _ = write!(line, " settled {:?} {:?}", job.settled.map(|token| token.to_string()), job.completed_by);
    let _ = write!(line, " result {:?}", job.result.as_ref().map(|result| String::from_utf8_lossy(result)));
    for run in &job.failures {
        let (error, verdict) = (String::from_utf8_lossy(&run.error), serde_json::to_string(&run.verdict).unwrap());
        let times = [run.available, run.started, run.at].map(|moment| moment.micros());
        let _ = write!(line, " failure {}.{} {times:?} {} {error} {verdict}", run.generation, run.attempt, run.worker);
    }
    for old in &job.revisions {
        let (length, checksum) = (old.body.len(), crc32fast::hash(&old.body));
        let _ = write!(line, " revision {} {} {} {length}:{checksum:08x}", old.generation, old.at.micros(), old.by);
    }
    line
}

/// All jobs, and then all queues, a line for each.
pub(crate) async fn description(store: &dyn Store) -> String {
    let all = store.list(Filter::default(), Page::new(0, usize::MAX)).await.unwrap();
    let mut text: String = all.jobs.iter().map(|job| line(job) + "\n").collect();
    for queue in store.queues().await.unwrap() {
        let _ = writeln!(text, "{} {} {} {:?}", queue.name, queue.paused, queue.created.micros(), queue.counts);
    }
    text
}
