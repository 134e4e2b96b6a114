//! What happens, as it happens: lines for people, or JSON for programs.

use super::args::Args;
use super::idle::Held;
use crate::{output, when};
use redrive_policy::Span;
use redrive_worker::{Cancelled, Event, Failure, Job, Summary};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::{Level, info, warn};

/// Tells what happens. Runs are remembered from their start until the server has taken note of their end.
#[derive(Debug)]
pub(super) struct Reporter {
    json: bool,
    /// How long running commands may go on when the worker stops.
    grace: Duration,
    runs: Mutex<HashMap<String, RunState>>,
    /// The paused queues that were reported.
    held: Mutex<Held>,
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

    /// What this worker is about to do; for people only, and not on standard output.
    pub(super) fn begins(&self, args: &Args) {
        if !self.json {
            let (queues, most) = (args.queues.join(", "), args.concurrency());
            let end = if args.once || args.drain { "ends when they are empty" } else { "stop with Ctrl-C" };
            info!("works on {queues} at {}, {most} at once; {end}", args.server.server);
        }
    }

    /// Something about a run that its last line should say.
    pub(super) fn note(&self, id: &str, note: String) {
        if let Some(told) = self.runs().get_mut(id) {
            told.notes.push(note);
        }
    }

    pub(super) fn event(&self, event: &Event<'_>) {
        match event {
            Event::Started(job) => self.started(job),
            Event::Done(job) => self.ended(job, "done", None),
            Event::Failed(job, failure) => self.ended(job, "failed", Some(failure)),
            Event::Released(job, _) => self.ended(job, "released", None),
            Event::Declined { job, reason, wait } => {
                let said = json!({ "event": "declined", "reason": reason, "retry_after_ms": ms(*wait) });
                self.over(job, said, &format!("not run here, released for {}: {}", span(*wait), one_line(reason)));
            }
            Event::Paused { queue, reason, wait } => {
                let said = json!({ "event": "paused", "queue": queue, "reason": reason, "wait_ms": ms(*wait) });
                self.aside(Level::WARN, said, &format!("takes no jobs of the queue {queue} for {}", span(*wait)));
            }
            Event::Cancelled(job, Cancelled::LeaseLost) => {
                self.over(job, json!({ "event": "lost" }), "its lease is lost; its command is ended");
            }
            Event::Cancelled(job, Cancelled::JobCancelled) => {
                self.over(job, json!({ "event": "cancelled" }), "cancelled; its command is ended");
            }
            Event::Cancelled(..) => {}
            Event::Settled { job, state, retry_after, dead } => self.settled(job, state, *retry_after, *dead),
            Event::Refused(job, refused) => {
                let words = format!("ended too late, which changes nothing: {}", refused.message);
                self.over(job, json!({ "event": "refused", "message": refused.message }), &words);
            }
            Event::Unreachable(error, wait) => {
                let said = json!({ "event": "away", "message": error.to_string(), "retry_after_ms": ms(*wait) });
                self.aside(Level::WARN, said, &format!("{error}; next try in {}", span(*wait)));
            }
            Event::Back => self.aside(Level::INFO, json!({ "event": "back" }), "the server answers again"),
            Event::Stopping => self.stops(),
            _ => {}
        }
    }

    /// Which queues are paused, whenever that has changed.
    pub(super) fn held(&self, held: &Held) {
        let mut told = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if *told == *held {
            return;
        }
        told.clone_from(held);
        drop(told);
        let queues: Vec<Value> = held.0.iter().map(|(queue, count)| json!({ "queue": queue, "jobs": count })).collect();
        let words = if held.0.is_empty() { "no queue is paused any more".to_owned() } else { held.to_string() };
        self.aside(Level::WARN, json!({ "event": "held", "queues": queues }), &words);
    }

    fn stops(&self) {
        let running = self.running();
        let words = match running {
            0 => "stopping: no new jobs".to_owned(),
            _ => format!(
                "stopping: no new jobs; waits for {running} running commands, at most {}; Ctrl-C ends them now",
                span(self.grace)
            ),
        };
        self.aside(Level::INFO, json!({ "event": "stopping", "running": running }), &words);
    }

    /// The worker waits no longer for running commands.
    pub(super) fn aborts(&self) {
        let running = self.running();
        let words = format!("{running} running commands are ended, and their jobs released");
        self.aside(Level::WARN, json!({ "event": "aborting", "running": running }), &words);
    }

    /// How many commands run.
    fn running(&self) -> usize {
        self.runs().values().filter(|told| told.outcome.is_empty()).count()
    }

    /// What the worker did in all.
    pub(super) fn summary(&self, summary: &Summary) {
        let Summary { done, failed, released, cancelled, lost, .. } = summary;
        if self.json {
            let said = json!({ "event": "summary", "done": done, "failed": failed, "released": released, "cancelled": cancelled, "lost": lost });
            print(said);
            return;
        }
        info!("{done} done, {failed} failed, {released} released, {cancelled} cancelled, {lost} lost");
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, RunState>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self, job: &Job) {
        let told =
            RunState { started: Instant::now(), took: Duration::ZERO, outcome: "", error: None, notes: Vec::new() };
        self.runs().insert(job.id().to_owned(), told);
        let of = job.max_attempts().map_or_else(String::new, |most| format!(" of {most}"));
        self.line(job, json!({ "event": "started" }), &format!("run {}{of}", job.attempt()));
    }

    fn ended(&self, job: &Job, outcome: &'static str, failure: Option<&Failure>) {
        if let Some(told) = self.runs().get_mut(job.id()) {
            told.took = told.started.elapsed();
            told.outcome = outcome;
            told.error = failure.map(|failure| (failure.type_name().to_owned(), failure.message().to_owned()));
        }
    }

    fn settled(&self, job: &Job, state: &str, retry_after: Option<Duration>, dead: bool) {
        let Some(told) = self.runs().remove(job.id()) else { return };
        let mut said = json!({
            "event": "ended", "outcome": told.outcome, "duration_ms": ms(told.took), "state": state, "dead_letter": dead,
        });
        if let Some(wait) = retry_after {
            said["retry_after_ms"] = ms(wait).into();
        }
        if let Some((type_name, message)) = &told.error {
            said["error"] = json!({ "type": type_name, "message": message });
        }
        if !told.notes.is_empty() {
            said["notes"] = json!(told.notes);
        }
        let mut words = words(&told, state, retry_after, dead);
        if state == "discarded" && !dead && keeps_no_dead_letters(job) {
            said["on_exhaustion"] = "discard".into();
            words.push_str(": on_exhaustion is discard");
        }
        told.notes.iter().for_each(|note| words.push_str(&format!("; {note}")));
        self.line(job, said, &words);
    }

    /// The end of a run that does not count.
    fn over(&self, job: &Job, said: Value, words: &str) {
        self.runs().remove(job.id());
        self.line(job, said, words);
    }

    fn line(&self, job: &Job, mut said: Value, words: &str) {
        if self.json {
            said["job_id"] = job.id().into();
            said["type"] = job.kind().into();
            said["queue"] = job.queue().into();
            said["attempt"] = job.attempt().into();
            return print(said);
        }
        // A reader that is gone does not stop the work.
        let _ = output::text(&format!("{}  {}  {words}\n", job.id(), job.kind()));
    }

    fn aside(&self, level: Level, said: Value, words: &str) {
        match level {
            _ if self.json => print(said),
            Level::WARN => warn!("{words}"),
            _ => info!("{words}"),
        }
    }
}

fn print(mut said: Value) {
    said["at"] = when::shown(when::now_ms()).into();
    let _ = output::json_line(&said);
}

fn words(told: &RunState, state: &str, retry_after: Option<Duration>, dead: bool) -> String {
    let took = span(told.took);
    let mut words = match (told.outcome, &told.error) {
        ("done", _) => format!("done in {took}"),
        ("released", _) => format!("released after {took}"),
        (_, Some((type_name, message))) => format!("failed after {took} ({type_name}: {})", one_line(message)),
        (_, None) => format!("failed after {took}"),
    };
    match retry_after {
        _ if dead => words.push_str("; dead letter"),
        Some(wait) if told.outcome == "failed" => words.push_str(&format!("; retried in {}", span(wait))),
        None if state == "discarded" => words.push_str("; discarded, not kept as a dead letter"),
        _ => {}
    }
    words
}

/// Whether the job's policy discards what it gives up.
fn keeps_no_dead_letters(job: &Job) -> bool {
    job.member::<Value>("retry").is_some_and(|retry| retry["on_exhaustion"] == "discard")
}

/// The start of a message, on one line.
fn one_line(message: &str) -> String {
    const LONGEST: usize = 120;
    let line = message.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
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
