//! A job as it is answered: what was enqueued, with what has become of it since.

use super::policy::PolicyMembers;
use super::{Progress, body};
use crate::json::{member, push_i64, push_str, push_time, push_u64};
use redrive_policy::{Moment, Outcome, Span};
use redrive_store::{FailedAttempt, Job, JobId, State};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::Write;

const LEASE: &str = "visibility_timeout_ms";

/// Writes jobs as envelopes.
#[derive(Debug, Default)]
pub struct Envelopes {
    policies: PolicyMembers,
    timeout: Option<Span>,
}

impl Envelopes {
    /// Envelopes of a server whose runs may take so long, where a job does not say.
    #[must_use]
    pub fn new(timeout: Option<Span>) -> Self {
        Self { policies: PolicyMembers::default(), timeout }
    }

    /// Writes a job as an object.
    pub fn push_job(&self, out: &mut Vec<u8>, job: &Job, progress: Option<&Progress<'_>>) {
        out.push(b'{');
        self.push_members(out, job, progress);
        out.push(b'}');
    }

    /// Writes the members of a job, without braces. What is not set is absent.
    pub fn push_members(&self, out: &mut Vec<u8>, job: &Job, progress: Option<&Progress<'_>>) {
        out.reserve(job.spec.body.len() + 600);
        self.push_head(out, job);
        body::push_members(out, job);
        push_present_run(out, job, progress);
        push_end(out, job);
        push_result(out, job);
        push_next(out, job);
        push_failures(out, job);
    }

    /// Writes a claimed job as an object: with the token that proves its lease, and how often it was released.
    pub fn push_claimed(&self, out: &mut Vec<u8>, job: &Job, progress: Option<&Progress<'_>>) {
        self.push_job(out, job, progress);
        if let Some(lease) = &job.lease {
            out.pop();
            member(out, "lease_token");
            // It has no letter that needs an escape, and writing into a vector cannot fail.
            let _ = write!(out, "\"{}\"", lease.token);
            if job.releases > 0 {
                member(out, "releases");
                push_u64(out, job.releases.into());
            }
            out.push(b'}');
        }
    }

    /// Writes a job as an object for lists: its identity and its state, without members that can be large.
    pub fn push_bare_job(&self, out: &mut Vec<u8>, job: &Job, progress: Option<&Progress<'_>>) {
        out.push(b'{');
        self.push_head(out, job);
        if let (State::Scheduled, Some(due)) = (job.state, job.due) {
            push_moment(out, "scheduled_at", due);
        }
        if let Some(expires) = job.spec.expires {
            push_moment(out, "expires_at", expires);
        }
        push_present_run(out, job, progress);
        push_end(out, job);
        push_next(out, job);
        if let Some(last) = present_failure(job) {
            member(out, "error");
            push_bare_failure(out, last);
        }
        out.push(b'}');
    }

    /// The members that every envelope begins with.
    fn push_head(&self, out: &mut Vec<u8>, job: &Job) {
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
        self.policies.push(out, &spec.policy);
        for (key, span) in [("timeout_ms", spec.timeout.or(self.timeout)), (LEASE, spec.lease)] {
            if let Some(span) = span {
                member(out, key);
                push_ms(out, span);
            }
        }
    }
}

/// The present run, or the last one.
fn push_present_run(out: &mut Vec<u8>, job: &Job, progress: Option<&Progress<'_>>) {
    if let Some(started) = job.times.started {
        push_moment(out, "started_at", started);
    }
    if let Some(lease) = &job.lease {
        if !lease.worker.is_empty() {
            member(out, "worker_id");
            push_str(out, &lease.worker);
        }
        push_moment(out, "lease_expires_at", lease.until);
        if let Some(progress) = progress {
            progress.push_members(out);
        }
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

/// The last failure, where it belongs to the present generation and the job has not completed since.
fn present_failure(job: &Job) -> Option<&FailedAttempt> {
    job.failures.last().filter(|last| last.generation == job.generation && job.state != State::Completed)
}

/// The failed attempts.
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

fn push_failure(out: &mut Vec<u8>, failure: &FailedAttempt) {
    out.push(b'{');
    member(out, "attempt");
    push_u64(out, failure.attempt.into());
    push_moment(out, "timestamp", failure.at);
    push_moment(out, "occurred_at", failure.at);
    // The error is stored as an object: its members follow, without the opening brace.
    match &failure.error[..] {
        [b'{', b'}'] | [] => out.push(b'}'),
        [_, members @ ..] => {
            out.push(b',');
            out.extend_from_slice(members);
        }
    }
}

/// A failure without its details.
fn push_bare_failure(out: &mut Vec<u8>, failure: &FailedAttempt) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Stored<'a> {
        #[serde(borrow)]
        r#type: Option<&'a RawValue>,
        code: Option<&'a RawValue>,
        message: Option<&'a RawValue>,
    }
    let stored: Stored<'_> = serde_json::from_slice(&failure.error).unwrap_or_default();
    out.push(b'{');
    member(out, "attempt");
    push_u64(out, failure.attempt.into());
    push_moment(out, "occurred_at", failure.at);
    for (key, value) in [("type", stored.r#type), ("code", stored.code), ("message", stored.message)] {
        if let Some(value) = value {
            member(out, key);
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    out.push(b'}');
}

/// Whether a discarded job was stopped by a failure, and not by its time to live.
#[must_use]
pub fn stopped_by_failure(job: &Job) -> bool {
    job.failures
        .last()
        .is_some_and(|last| last.generation == job.generation && matches!(last.verdict.outcome, Outcome::Stop { .. }))
}

/// Writes the name of a job, quoted.
pub fn push_id(out: &mut Vec<u8>, job: &Job) {
    out.push(b'"');
    out.extend_from_slice(job.id.encode(&mut [0; JobId::TEXT]).as_bytes());
    out.push(b'"');
}

/// Writes a member that is a moment.
pub fn push_moment(out: &mut Vec<u8>, key: &str, at: Moment) {
    member(out, key);
    push_time(out, at);
}

/// Writes a span as whole milliseconds, the nearest.
pub fn push_ms(out: &mut Vec<u8>, span: Span) {
    push_u64(out, span.ms().round() as u64);
}
