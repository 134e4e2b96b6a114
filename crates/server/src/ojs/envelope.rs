//! A job as its answer has it: what was kept of it, with what has become of it since.

use super::body;
use super::policies::origin_of;
use super::progress;
use crate::app::App;
use crate::json::{member, push_i64, push_str, push_time, push_u64};
use redrive_policy::{Moment, Outcome, Span};
use redrive_store::{FailedRun, Job, Revision, State};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::Write;

const LEASE: &str = "visibility_timeout_ms";

/// Writes a job as an object.
pub(crate) fn push_job(out: &mut Vec<u8>, job: &Job, app: &App) {
    out.push(b'{');
    push_members(out, job, app);
    out.push(b'}');
}

/// Writes a job as an object for lists: what identifies it and how it stands, without what can be large.
pub(crate) fn push_bare_job(out: &mut Vec<u8>, job: &Job, app: &App) {
    out.push(b'{');
    push_head(out, job, app);
    if let (State::Scheduled, Some(due)) = (job.state, job.due) {
        push_moment(out, "scheduled_at", due);
    }
    if let Some(expires) = job.spec.expires {
        push_moment(out, "expires_at", expires);
    }
    push_present_run(out, job, app);
    push_end(out, job);
    push_next(out, job);
    if let Some(last) = present_failure(job) {
        member(out, "error");
        push_bare_failure(out, last);
    }
    out.push(b'}');
}

/// Writes an object both ways: its members at the top, and under `job` (C3).
pub(crate) fn flattened(members: &[u8]) -> Vec<u8> {
    [b"{", members, b",\"job\":{", members, b"}}"].concat()
}

/// Writes the members of a job, without braces. What is not set is absent.
pub(crate) fn push_members(out: &mut Vec<u8>, job: &Job, app: &App) {
    out.reserve(job.spec.body.len() + 600);
    push_head(out, job, app);
    body::push_members(out, job);
    push_present_run(out, job, app);
    push_end(out, job);
    push_result(out, job);
    push_next(out, job);
    push_failures(out, job);
}

/// What the job is, and what was said about it in so many words.
fn push_head(out: &mut Vec<u8>, job: &Job, app: &App) {
    let spec = &job.spec;
    member(out, "id");
    push_id(out, job);
    member(out, "state");
    push_str(out, job.state.name());
    member(out, "attempt");
    push_u64(out, job.attempt.into());
    push_moment(out, "created_at", job.times.created);
    push_moment(out, "enqueued_at", job.times.available.unwrap_or(job.times.created));
    out.extend_from_slice(b",\"specversion\":\"1.0\",\"type\":");
    push_str(out, &spec.kind);
    member(out, "queue");
    push_str(out, &spec.queue);
    member(out, "priority");
    push_i64(out, spec.priority.into());
    app.policies.push_members(out, &spec.policy);
    for (key, span) in [("timeout_ms", spec.timeout.or(app.engine.settings().timeout)), (LEASE, spec.lease)] {
        if let Some(span) = span {
            member(out, key);
            push_ms(out, span);
        }
    }
}

/// The run that is under way, or was last.
fn push_present_run(out: &mut Vec<u8>, job: &Job, app: &App) {
    if let Some(started) = job.times.started {
        push_moment(out, "started_at", started);
    }
    if let Some(lease) = &job.lease {
        if !lease.worker.is_empty() {
            member(out, "worker_id");
            push_str(out, &lease.worker);
        }
        push_moment(out, "lease_expires_at", lease.until);
        progress::push_members(out, job, app);
    }
}

/// When the job ended.
fn push_end(out: &mut Vec<u8>, job: &Job) {
    if let Some(finished) = job.times.finished {
        match job.state {
            State::Cancelled => push_moment(out, "cancelled_at", finished),
            State::Discarded => {
                // A job that expired never completed a run.
                if stopped_by_failure(job) {
                    push_moment(out, "completed_at", finished);
                }
                push_moment(out, "discarded_at", finished);
            }
            _ => push_moment(out, "completed_at", finished),
        }
    }
}

/// What the handler returned.
fn push_result(out: &mut Vec<u8>, job: &Job) {
    if let Some(result) = &job.result {
        member(out, "result");
        out.extend_from_slice(result);
    }
}

/// When the next run is due after a failure.
fn push_next(out: &mut Vec<u8>, job: &Job) {
    if let Some(delay) = job.last_delay {
        member(out, "retry_delay_ms");
        push_ms(out, delay);
    }
    if let (State::Retryable, Some(due)) = (job.state, job.due) {
        push_moment(out, "next_attempt_at", due);
        push_moment(out, "next_retry_at", due);
    }
}

/// The failure that the job stands under.
fn present_failure(job: &Job) -> Option<&FailedRun> {
    job.failures.last().filter(|last| last.generation == job.generation && job.state != State::Completed)
}

/// The failed runs.
fn push_failures(out: &mut Vec<u8>, job: &Job) {
    if job.failures.is_empty() {
        return;
    }
    if let Some(last) = present_failure(job) {
        member(out, "error");
        push_failure(out, last);
    }
    member(out, "errors");
    out.push(b'[');
    for (index, failure) in job.failures.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_failure(out, failure);
    }
    out.push(b']');
}

fn push_failure(out: &mut Vec<u8>, failure: &FailedRun) {
    out.push(b'{');
    member(out, "attempt");
    push_u64(out, failure.attempt.into());
    push_moment(out, "timestamp", failure.at);
    push_moment(out, "occurred_at", failure.at);
    // The error is kept as an object: its members follow, without the opening brace.
    match &failure.error[..] {
        [b'{', b'}'] | [] => out.push(b'}'),
        [_, members @ ..] => {
            out.push(b',');
            out.extend_from_slice(members);
        }
    }
}

/// A failure without its details.
fn push_bare_failure(out: &mut Vec<u8>, failure: &FailedRun) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Kept<'a> {
        #[serde(borrow)]
        r#type: Option<&'a RawValue>,
        code: Option<&'a RawValue>,
        message: Option<&'a RawValue>,
    }
    let kept: Kept<'_> = serde_json::from_slice(&failure.error).unwrap_or_default();
    out.push(b'{');
    member(out, "attempt");
    push_u64(out, failure.attempt.into());
    push_moment(out, "occurred_at", failure.at);
    for (key, value) in [("type", kept.r#type), ("code", kept.code), ("message", kept.message)] {
        if let Some(value) = value {
            member(out, key);
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    out.push(b'}');
}

/// What only this server tells: the effective policy, where it came from, and why each failure ended
/// as it did.
pub(crate) fn push_explanation(out: &mut Vec<u8>, job: &Job) {
    member(out, "redrive");
    out.push(b'{');
    member(out, "policy");
    push_serialized(out, &*job.spec.policy);
    member(out, "policy_from");
    push_serialized(out, &origin_of(body::split(&job.spec.body).origin));
    for (key, number) in [("generation", job.generation), ("releases", job.releases), ("leases", job.leases)] {
        member(out, key);
        push_u64(out, number.into());
    }
    member(out, "dead_letter");
    out.extend_from_slice(if job.dead { b"true" } else { b"false" });
    if let Some(worker) = job.completed_by.as_deref().filter(|worker| !worker.is_empty()) {
        member(out, "completed_by");
        push_str(out, worker);
    }
    push_cleared_expiry(out, job);
    member(out, "failures");
    push_array(out, &job.failures, push_run);
    if !job.revisions.is_empty() {
        member(out, "revisions");
        push_array(out, &job.revisions, push_revision);
    }
    out.push(b'}');
}

/// Writes what a redrive did beside taking the job back, where there is something to say.
pub(crate) fn push_redriven(out: &mut Vec<u8>, job: &Job) {
    let mut told = Vec::new();
    push_cleared_expiry(&mut told, job);
    if !told.is_empty() {
        member(out, "redrive");
        out.push(b'{');
        out.extend_from_slice(&told);
        out.push(b'}');
    }
}

/// The time at which the job would have expired, had a redrive not cleared it.
fn push_cleared_expiry(out: &mut Vec<u8>, job: &Job) {
    if let Some(cleared) = body::cleared(job) {
        member(out, "cleared_expiry");
        out.extend_from_slice(cleared.expires_at.as_bytes());
    }
}

fn push_array<T>(out: &mut Vec<u8>, items: &[T], push: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        out.extend_from_slice(if index > 0 { b",{" } else { b"{" });
        push(out, item);
        out.push(b'}');
    }
    out.push(b']');
}

/// A failed run: when it waited, ran and ended, where, and what was decided.
fn push_run(out: &mut Vec<u8>, run: &FailedRun) {
    for (key, number) in [("generation", run.generation), ("attempt", run.attempt)] {
        member(out, key);
        push_u64(out, number.into());
    }
    for (key, at) in [("available_at", run.available), ("started_at", run.started), ("at", run.at)] {
        push_moment(out, key, at);
    }
    if !run.worker.is_empty() {
        member(out, "worker_id");
        push_str(out, &run.worker);
    }
    member(out, "verdict");
    push_serialized(out, &run.verdict);
}

/// What a redrive replaced: the members of the job as they were until then.
fn push_revision(out: &mut Vec<u8>, revision: &Revision) {
    member(out, "generation");
    push_u64(out, revision.generation.into());
    push_moment(out, "replaced_at", revision.at);
    if !revision.by.is_empty() {
        member(out, "replaced_by");
        push_str(out, &revision.by);
    }
    body::push_kept(out, body::split(&revision.body).members);
}

/// Whether a discarded job was stopped by a failure, and not by its time to live.
pub(crate) fn stopped_by_failure(job: &Job) -> bool {
    job.failures
        .last()
        .is_some_and(|last| last.generation == job.generation && matches!(last.verdict.outcome, Outcome::Stop { .. }))
}

/// Writes the name of a job, quoted.
pub(crate) fn push_id(out: &mut Vec<u8>, job: &Job) {
    // Writing into a vector cannot fail.
    let _ = write!(out, "\"{}\"", job.id);
}

/// Writes a member that is a moment.
pub(crate) fn push_moment(out: &mut Vec<u8>, key: &str, at: Moment) {
    member(out, key);
    push_time(out, at);
}

/// Writes a span as whole milliseconds, the nearest.
pub(crate) fn push_ms(out: &mut Vec<u8>, span: Span) {
    push_u64(out, span.ms().round() as u64);
}

fn push_serialized(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}
