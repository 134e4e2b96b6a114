//! Events as they happen: lines for people, or JSON for programs.

use super::args::Args;
use super::idle::HeldQueues;
use crate::{output, when};
use redrive_policy::Span;
use redrive_worker::{Cancelled, Event, Failure, Job, Summary};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::{Level, info, warn};

/// Reports events. Runs are remembered from their start until the server has accepted their report.
#[derive(Debug)]
pub(super) struct Reporter {
    json: bool,
    /// How long running commands may go on when the worker stops.
    grace: Duration,
    runs: Mutex<HashMap<String, RunState>>,
    /// The paused queues that were reported.
    held: Mutex<HeldQueues>,
}

/// What is known of a run so far.
#[derive(Debug)]
struct RunState {
    started: Instant,
    took: Duration,
    outcome: &'static str,
    error: Option<(String, String)>,
    notes: Vec<String>,
}

impl Reporter {
    pub(super) fn new(args: &Args) -> Self {
        Self { json: args.json, grace: args.grace(), runs: Mutex::default(), held: Mutex::default() }
    }

    /// Logs what this worker is about to do; for people only.
    pub(super) fn starting(&self, args: &Args) {
        if !self.json {
            let (queues, most) = (args.queues.join(", "), args.concurrency());
            let end = if args.once || args.drain { "ends when they are empty" } else { "stop with Ctrl-C" };
            info!("working on {queues} at {}, {most} at once; {end}", args.server.server);
        }
    }

    /// Adds a note to the last line of a run.
    pub(super) fn note(&self, id: &str, note: String) {
        if let Some(run) = self.runs().get_mut(id) {
            run.notes.push(note);
        }
    }

    pub(super) fn event(&self, event: &Event<'_>) {
        match event {
            Event::Started(job) => self.started(job),
            Event::Done(job) => self.ended(job, "done", None),
            Event::Failed(job, failure) => self.ended(job, "failed", Some(failure)),
            Event::Released(job, _) => self.ended(job, "released", None),
            Event::Declined { job, reason, wait } => {
                let event = json!({ "event": "declined", "reason": reason, "retry_after_ms": ms(*wait) });
                self.forget(job, event, &format!("not run here, released for {}: {}", span(*wait), one_line(reason)));
            }
            Event::Paused { queue, reason, wait } => {
                let event = json!({ "event": "paused", "queue": queue, "reason": reason, "wait_ms": ms(*wait) });
                self.worker_line(
                    Level::WARN,
                    event,
                    &format!("claims no jobs of the queue {queue} for {}", span(*wait)),
                );
            }
            Event::Cancelled(job, Cancelled::LeaseLost) => {
                self.forget(job, json!({ "event": "lost" }), "its lease is lost; its command is ended");
            }
            Event::Cancelled(job, Cancelled::JobCancelled) => {
                self.forget(job, json!({ "event": "cancelled" }), "cancelled; its command is ended");
            }
            Event::Cancelled(..) => {}
            Event::Settled { job, state, retry_after, dead } => self.settled(job, state, *retry_after, *dead),
            Event::Refused(job, refused) => {
                let text = format!("ended too late, and changed nothing: {}", refused.message);
                self.forget(job, json!({ "event": "refused", "message": refused.message }), &text);
            }
            Event::Unreachable(error, wait) => {
                let event =
                    json!({ "event": "unreachable", "message": error.to_string(), "retry_after_ms": ms(*wait) });
                self.worker_line(Level::WARN, event, &format!("{error}; next try in {}", span(*wait)));
            }
            Event::Back => self.worker_line(Level::INFO, json!({ "event": "back" }), "the server answers again"),
            Event::Stopping => self.stopping(),
            _ => {}
        }
    }

    /// Reports which queues are paused, whenever that has changed.
    pub(super) fn held(&self, held: &HeldQueues) {
        let mut run = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if *run == *held {
            return;
        }
        run.clone_from(held);
        drop(run);
        let queues: Vec<Value> = held.0.iter().map(|(queue, count)| json!({ "queue": queue, "jobs": count })).collect();
        let text = if held.0.is_empty() { "no queue is paused any more".to_owned() } else { held.to_string() };
        self.worker_line(Level::WARN, json!({ "event": "held", "queues": queues }), &text);
    }

    fn stopping(&self) {
        let running = self.running();
        let text = match running {
            0 => "stopping: no new jobs".to_owned(),
            _ => format!(
                "stopping: no new jobs; waiting for {running} running commands, at most {}; Ctrl-C ends them now",
                span(self.grace)
            ),
        };
        self.worker_line(Level::INFO, json!({ "event": "stopping", "running": running }), &text);
    }

    /// Reports that the worker does not wait any longer for running commands.
    pub(super) fn aborting(&self) {
        let running = self.running();
        let text = format!("{running} running commands are ended, and their jobs released");
        self.worker_line(Level::WARN, json!({ "event": "aborting", "running": running }), &text);
    }

    /// How many commands run.
    fn running(&self) -> usize {
        self.runs().values().filter(|run| run.outcome.is_empty()).count()
    }

    /// What the worker did in all.
    pub(super) fn summary(&self, summary: &Summary) {
        let Summary { done, failed, released, cancelled, lost, .. } = summary;
        if self.json {
            let event = json!({ "event": "summary", "done": done, "failed": failed, "released": released, "cancelled": cancelled, "lost": lost });
            print(event);
            return;
        }
        info!("{done} done, {failed} failed, {released} released, {cancelled} cancelled, {lost} lost");
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, RunState>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self, job: &Job) {
        let run =
            RunState { started: Instant::now(), took: Duration::ZERO, outcome: "", error: None, notes: Vec::new() };
        self.runs().insert(job.id().to_owned(), run);
        let of = job.max_attempts().map_or_else(String::new, |most| format!(" of {most}"));
        self.job_line(job, json!({ "event": "started" }), &format!("run {}{of}", job.attempt()));
    }

    fn ended(&self, job: &Job, outcome: &'static str, failure: Option<&Failure>) {
        if let Some(run) = self.runs().get_mut(job.id()) {
            run.took = run.started.elapsed();
            run.outcome = outcome;
            run.error = failure.map(|failure| (failure.type_name().to_owned(), failure.message().to_owned()));
        }
    }

    fn settled(&self, job: &Job, state: &str, retry_after: Option<Duration>, dead: bool) {
        let Some(run) = self.runs().remove(job.id()) else { return };
        let mut event = json!({
            "event": "ended", "outcome": run.outcome, "duration_ms": ms(run.took), "state": state, "dead_letter": dead,
        });
        if let Some(wait) = retry_after {
            event["retry_after_ms"] = ms(wait).into();
        }
        if let Some((type_name, message)) = &run.error {
            event["error"] = json!({ "type": type_name, "message": message });
        }
        if !run.notes.is_empty() {
            event["notes"] = json!(run.notes);
        }
        let mut text = text(&run, state, retry_after, dead);
        if state == "discarded" && !dead && discards_on_exhaustion(job) {
            event["on_exhaustion"] = "discard".into();
            text.push_str(": on_exhaustion is discard");
        }
        run.notes.iter().for_each(|note| text.push_str(&format!("; {note}")));
        self.job_line(job, event, &text);
    }

    /// Reports a run whose outcome does not count.
    fn forget(&self, job: &Job, event: Value, text: &str) {
        self.runs().remove(job.id());
        self.job_line(job, event, text);
    }

    fn job_line(&self, job: &Job, mut event: Value, text: &str) {
        if self.json {
            event["job_id"] = job.id().into();
            event["type"] = job.kind().into();
            event["queue"] = job.queue().into();
            event["attempt"] = job.attempt().into();
            return print(event);
        }
        // A closed pipe does not stop the work.
        let _ = output::text(&format!("{}  {}  {text}\n", job.id(), job.kind()));
    }

    fn worker_line(&self, level: Level, event: Value, text: &str) {
        match level {
            _ if self.json => print(event),
            Level::WARN => warn!("{text}"),
            _ => info!("{text}"),
        }
    }
}

fn print(mut event: Value) {
    event["at"] = when::shown(when::now_ms()).into();
    let _ = output::json_line(&event);
}

fn text(run: &RunState, state: &str, retry_after: Option<Duration>, dead: bool) -> String {
    let took = span(run.took);
    let mut text = match (run.outcome, &run.error) {
        ("done", _) => format!("done in {took}"),
        ("released", _) => format!("released after {took}"),
        (_, Some((type_name, message))) => format!("failed after {took} ({type_name}: {})", one_line(message)),
        (_, None) => format!("failed after {took}"),
    };
    match retry_after {
        _ if dead => text.push_str("; dead letter"),
        Some(wait) if run.outcome == "failed" => text.push_str(&format!("; retried in {}", span(wait))),
        None if state == "discarded" => text.push_str("; discarded, not kept as a dead letter"),
        _ => {}
    }
    text
}

/// Whether the job's policy discards exhausted jobs.
fn discards_on_exhaustion(job: &Job) -> bool {
    job.member::<Value>("retry").is_some_and(|retry| retry["on_exhaustion"] == "discard")
}

/// The start of a message, on one line.
fn one_line(message: &str) -> String {
    const MAX_CHARS: usize = 120;
    let line = message.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn span(time: Duration) -> Span {
    Span::saturating_ms(ms(time) as f64)
}
