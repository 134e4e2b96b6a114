//! What became of a job after its last failure, or without any.

use super::Decisions;
use super::run::Run;
use crate::when;
use serde_json::Value;

pub(super) fn ending(job: &Value, decisions: &Decisions) -> String {
    let now = when::now_ms();
    let ago = |key: &str| when::relative(job[key].as_str(), now);
    let attempt = job["attempt"].as_u64().unwrap_or(0);
    let mut text = match job["state"].as_str().unwrap_or_default() {
        "completed" => {
            let run = Run::latest(job, decisions).line();
            format!("Attempt {attempt} succeeded {}.\n{}", ago("completed_at"), run.trim_end())
        }
        "retryable" => format!("Attempt {} is due {}.", attempt + 1, ago("next_attempt_at")),
        "scheduled" => format!("It may run from {} on, {}.", job["scheduled_at"], ago("scheduled_at")),
        "pending" => "It waits for its activation.".to_owned(),
        "available" => {
            format!("Attempt {} waits for a worker; the job became available {}.", attempt + 1, ago("enqueued_at"))
        }
        "active" => {
            let worker = job["worker_id"].as_str().map_or_else(String::new, |worker| format!(" on worker {worker}"));
            let run = Run::latest(job, decisions).line();
            format!("Attempt {attempt} runs{worker}; it started {}.\n{}", ago("started_at"), run.trim_end())
        }
        "cancelled" => format!("It was cancelled {}.", ago("cancelled_at")),
        "discarded" => discarded(job, decisions, &ago("discarded_at")),
        other => format!("Its state, {other}, is not known to this command."),
    };
    if let Some(expiry) = &decisions.cleared_expiry {
        text.push_str(&format!("\nIts expiry {expiry} was cleared when it was redriven; it does not expire."));
    }
    let releases = job["redrive"]["releases"].as_u64().unwrap_or(0);
    if releases > 0 {
        text.push_str(&format!("\nSince its last failure it was released {releases} times, which spends no attempt."));
    }
    format!("{text}\n")
}

/// A job that does not run again: whether it is a dead letter, and how to redrive it.
fn discarded(job: &Value, decisions: &Decisions, ago: &str) -> String {
    let last =
        decisions.failures.last().filter(|last| last.generation == decisions.generation).map(|last| &last.verdict);
    let expired = match last {
        Some(last) if last.delay().is_none() => String::new(),
        Some(_) => format!("Its time to live was over {ago}, before its next run. "),
        None => format!("Its time to live was over {ago}, before it ran. "),
    };
    let id = job["id"].as_str().unwrap_or("ID");
    if job["redrive"]["dead_letter"] == true {
        return format!("{expired}It is kept as a dead letter; `redrive dead retry {id}` redrives it.");
    }
    let why = decisions.policy.why_discarded(last);
    format!(
        "{expired}It was discarded, not kept as a dead letter: {why}. `redrive job retry {id}` redrives it until its \
         retention is over (retention.finished)."
    )
}
