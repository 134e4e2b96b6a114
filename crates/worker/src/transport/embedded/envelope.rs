//! A job as JSON, in the shape in which a server answers it.

use super::kept::members_from;
use super::time::rfc3339;
use redrive_engine::Progress;
use redrive_policy::{AttemptLimit, Policy};
use redrive_store::{FailedRun, Job, State};
use serde_json::{Map, Value, json};

/// Everything that is known about a job.
pub(super) fn of(job: &Job) -> Value {
    let spec = &job.spec;
    let mut envelope = kept_members(&spec.body);
    if spec.expires.is_none() {
        // A redrive has cleared it; the body is kept as it was handed in.
        envelope.remove("expires_at");
    }
    let mut set = |key: &str, value: Value| drop(envelope.insert(key.to_owned(), value));
    set("specversion", "1.0".into());
    set("id", job.id.to_string().into());
    set("type", (*spec.kind).into());
    set("queue", (*spec.queue).into());
    set("state", job.state.name().into());
    set("priority", spec.priority.into());
    set("attempt", job.attempt.into());
    set("max_attempts", max_attempts(&spec.policy).into());
    set("created_at", rfc3339(job.times.created).into());
    let finished = match job.state {
        State::Cancelled => "cancelled_at",
        State::Discarded => "discarded_at",
        _ => "completed_at",
    };
    let due = if job.state == State::Retryable { job.due } else { None };
    let times = [
        ("enqueued_at", job.times.available),
        ("started_at", job.times.started),
        (finished, job.times.finished),
        ("next_attempt_at", due),
        ("lease_expires_at", job.lease.as_ref().map(|lease| lease.until)),
    ];
    times.into_iter().filter_map(|(key, at)| Some((key, at?))).for_each(|(key, at)| set(key, rfc3339(at).into()));
    let spans =
        [("timeout_ms", spec.timeout), ("visibility_timeout_ms", spec.lease), ("retry_delay_ms", job.last_delay)];
    for (key, span) in spans.into_iter().filter_map(|(key, span)| Some((key, span?))) {
        set(key, (span.ms().round() as u64).into());
    }
    if let Some(result) = &job.result {
        set("result", serde_json::from_slice(result).unwrap_or_default());
    }
    if let Some(last) = job.failures.last() {
        if last.generation == job.generation && job.state != State::Completed {
            set("error", failure(last));
        }
        set("errors", job.failures.iter().map(failure).collect());
    }
    set("redrive", explained(job));
    Value::Object(envelope)
}

/// Why each failure ended as it did.
fn explained(job: &Job) -> Value {
    let failures: Vec<Value> = job
        .failures
        .iter()
        .map(|run| {
            json!({
                "generation": run.generation, "attempt": run.attempt, "worker_id": *run.worker,
                "available_at": rfc3339(run.available), "started_at": rfc3339(run.started), "at": rfc3339(run.at),
                "verdict": run.verdict,
            })
        })
        .collect();
    json!({ "policy": *job.spec.policy, "dead_letter": job.dead, "failures": failures })
}

/// The members that came with the job, and the two that every job has.
fn kept_members(body: &[u8]) -> Map<String, Value> {
    let members = &body[members_from(body)..];
    let mut envelope: Map<String, Value> = serde_json::from_slice(&[b"{", members, b"}"].concat()).unwrap_or_default();
    envelope.entry("meta").or_insert_with(|| json!({}));
    envelope.entry("tags").or_insert_with(|| json!([]));
    envelope
}

fn failure(run: &FailedRun) -> Value {
    let mut error: Map<String, Value> = serde_json::from_slice(&run.error).unwrap_or_default();
    error.insert("attempt".to_owned(), run.attempt.into());
    error.insert("occurred_at".to_owned(), rfc3339(run.at).into());
    error.insert("timestamp".to_owned(), rfc3339(run.at).into());
    Value::Object(error)
}

/// How far the present run has come.
pub(super) fn add_progress(envelope: &mut Value, progress: &Progress) {
    envelope["progress"] = json!(progress.fraction);
    envelope["progress_message"] = json!(progress.message.as_deref());
    envelope["progress_data"] =
        progress.data.as_ref().and_then(|data| serde_json::from_slice(data).ok()).unwrap_or_default();
    envelope["progress_updated_at"] = rfc3339(progress.at).into();
}

/// The number of runs that a policy allows; the largest there is where it sets no limit.
pub(super) fn max_attempts(policy: &Policy) -> u32 {
    match policy.attempts {
        AttemptLimit::AtMost(0) => 0,
        _ => {
            let retries = policy.rules.first().and_then(|rule| policy.max_retries(rule));
            retries.map_or(u32::MAX, |retries| retries.saturating_add(1))
        }
    }
}
