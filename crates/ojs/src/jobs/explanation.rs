//! What only Redrive says of a job, under `redrive`: the effective policy, where it came from, and why each failure
//! ended as it did.

use super::envelope::push_moment;
use super::policy::brought_policy;
use super::{PolicyOrigin, body};
use crate::json::{member, push_str, push_u64};
use redrive_policy::Policy;
use redrive_store::{FailedAttempt, Job, Revision};

/// What only this server tells: the effective policy, where it came from, and why each failure ended
/// as it did.
pub fn push_explanation(out: &mut Vec<u8>, job: &Job) {
    member(out, "redrive");
    out.push(b'{');
    member(out, "policy");
    push_serialized(out, &*job.spec.policy);
    member(out, "policy_from");
    push_serialized(out, &PolicyOrigin::read(&job.spec.body));
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
    push_array(out, &job.failures, |out, run| push_run(out, run, &job.spec.policy));
    if !job.revisions.is_empty() {
        member(out, "revisions");
        push_array(out, &job.revisions, push_revision);
    }
    out.push(b'}');
}

/// Writes what a redrive did besides making the job available: whether it cleared the expiry.
pub fn push_redriven(out: &mut Vec<u8>, job: &Job) {
    let mut members = Vec::new();
    push_cleared_expiry(&mut members, job);
    if !members.is_empty() {
        member(out, "redrive");
        out.push(b'{');
        out.extend_from_slice(&members);
        out.push(b'}');
    }
}

/// Whether a redrive has cleared the expiry of a job.
#[must_use]
pub fn has_cleared_expiry(job: &Job) -> bool {
    body::cleared(job).is_some()
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

/// A failed attempt: when it waited, ran and ended, where, and what was decided; by which policy, where the worker
/// brought one. The store has the worker's policy as a part of the error, and not what it made of the job's.
fn push_run(out: &mut Vec<u8>, run: &FailedAttempt, policy: &Policy) {
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
    if let Some(brought) = brought_policy(&run.error) {
        member(out, "policy");
        push_serialized(out, &policy.on_worker(&brought));
    }
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
    body::push_filled(out, body::split(&revision.body).members);
}

fn push_serialized(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}
