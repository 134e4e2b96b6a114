//! What is in a store, in words that stay when fields are added. Fixtures are compared by it.

use redrive_policy::Moment;
use redrive_store::{Filter, Job, Page, PendingRuns, Run, RunFilter, Store};
use std::fmt::Write as _;
use std::sync::Arc;

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
    if let Some(parent) = job.parent {
        let _ = write!(line, " parent {} {}", parent.run, parent.child);
    }
    for old in &job.revisions {
        let (length, checksum) = (old.body.len(), crc32fast::hash(&old.body));
        let _ = write!(line, " revision {} {} {} {length}:{checksum:08x}", old.generation, old.at.micros(), old.by);
    }
    line
}

/// All jobs, then all queues, then all runs with their messages, a line for each.
pub(crate) async fn description(store: &dyn Store) -> String {
    let all = store.list(Filter::default(), Page::new(0, usize::MAX)).await.unwrap();
    let mut text: String = all.jobs.iter().map(|job| line(job) + "\n").collect();
    for queue in store.queues().await.unwrap() {
        let _ = writeln!(text, "{} {} {} {:?}", queue.name, queue.paused, queue.created.micros(), queue.counts);
    }
    for run in store.runs(RunFilter::default(), usize::MAX).await.unwrap() {
        text += &run_line(&run);
        let only = Some(vec![run.id]);
        let programs = vec![(Arc::clone(&run.program), run.version)];
        let pending = PendingRuns { programs, only, limit: 1, messages: usize::MAX };
        for pending in store.pending_runs(pending, Moment::from_micros(i64::MAX)).await.unwrap() {
            for message in pending.messages {
                let _ = writeln!(text, "  message {} {} {:?}", message.number, message.at.micros(), message.body);
            }
        }
    }
    text
}

fn run_line(run: &Run) -> String {
    let mut line = format!("run {} {} {} {}", run.id, run.program, run.version, run.revision);
    let at = |moment: Option<Moment>| moment.map(|moment| moment.micros());
    let _ = write!(line, " times {:?}", [Some(run.created), Some(run.advanced), run.timer].map(at));
    let _ = write!(line, " key {:?} depth {} children {} seed {}", run.key, run.depth, run.children, run.seed);
    if let Some(parent) = run.parent {
        let _ = write!(line, " parent {} {}", parent.run, parent.child);
    }
    if let Some(end) = &run.end {
        let _ = write!(line, " end {} {} {:?}", end.at.micros(), end.succeeded, String::from_utf8_lossy(&end.result));
    }
    let _ = writeln!(line, " state {}:{:08x}", run.state.len(), crc32fast::hash(&run.state));
    line
}
