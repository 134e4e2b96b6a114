//! A workflow as it is answered.

use super::state::{Kind, Node, Status, WorkflowState};
use crate::json::{member, push_str, push_u64};
use crate::push_moment;
use redrive_engine::{Child, Engine};
use redrive_policy::Moment;
use redrive_store::{Job, JobId, Run, State};
use std::collections::HashMap;

impl WorkflowState {
    /// The ids of the jobs that were enqueued, by their place in the workflow.
    #[must_use]
    pub fn enqueued(&self, run: &Run) -> Vec<JobId> {
        let nodes = self.nodes.iter().enumerate().filter(|(_, node)| is_enqueued(node));
        nodes.map(|(index, _)| job_id(run, index)).collect()
    }

    /// The word for how far the workflow is.
    fn word(&self, run: &Run) -> &'static str {
        match (&run.end, self.cancelled_us) {
            (Some(_), Some(_)) => "cancelled",
            (Some(end), None) if end.succeeded => "completed",
            (Some(_), None) => "failed",
            (None, _) => "running",
        }
    }

    /// Whether the workflow is over, and the word for it.
    #[must_use]
    pub fn over(&self, run: &Run) -> Option<&'static str> {
        run.end.as_ref().map(|_| self.word(run))
    }
}

fn is_enqueued(node: &Node) -> bool {
    node.kind == Kind::Job && node.job.is_none()
}

fn job_id(run: &Run, index: usize) -> JobId {
    Engine::child_job(run, Child { number: index as u64, at: run.created })
}

/// Writes the members of a workflow, without braces. `jobs` are its jobs as far as they are stored.
pub fn push_workflow(out: &mut Vec<u8>, run: &Run, state: &WorkflowState, jobs: &[Job]) {
    let jobs: HashMap<JobId, &Job> = jobs.iter().map(|job| (job.id, job)).collect();
    let root = &state.nodes[0];
    member(out, "id");
    push_str(out, &run.id.to_string());
    member(out, "type");
    push_str(out, kind_name(root.kind));
    if let Some(name) = &state.name {
        member(out, "name");
        push_str(out, name);
    }
    member(out, "state");
    push_str(out, state.word(run));
    let (total, completed) = (state.count(|_| true), state.count(|status| status == Status::Completed));
    let failed = state.count(|status| status == Status::Failed);
    for (key, count) in [
        ("steps_total", total),
        ("steps_completed", completed),
        ("jobs_total", total),
        ("jobs_completed", completed),
        ("jobs_failed", failed),
    ] {
        member(out, key);
        push_u64(out, count as u64);
    }
    let started = jobs.values().filter_map(|job| job.times.started).min();
    push_times(out, run, state, started);
    member(out, "metadata");
    out.push(b'{');
    push_times(out, run, state, started);
    for (key, count) in [("job_count", total), ("completed_count", completed), ("failed_count", failed)] {
        member(out, key);
        push_u64(out, count as u64);
    }
    out.push(b'}');
    push_nodes(out, run, state, &jobs);
    push_errors(out, run, state);
}

fn push_times(out: &mut Vec<u8>, run: &Run, state: &WorkflowState, started: Option<Moment>) {
    push_moment(out, "created_at", run.created);
    if let Some(started) = started {
        push_moment(out, "started_at", started);
    }
    match (&run.end, state.cancelled_at()) {
        (Some(_), Some(at)) => push_moment(out, "cancelled_at", at),
        (Some(end), None) => push_moment(out, "completed_at", end.at),
        (None, _) => {}
    }
}

/// The jobs in the order in which they were written.
fn push_nodes(out: &mut Vec<u8>, run: &Run, state: &WorkflowState, jobs: &HashMap<JobId, &Job>) {
    member(out, "steps");
    out.push(b'[');
    let steps: Vec<(usize, &Node)> =
        state.nodes.iter().enumerate().filter(|(_, node)| node.kind == Kind::Job).collect();
    let place = |index: u32| steps.binary_search_by_key(&(index as usize), |(step, _)| *step).ok();
    for (number, (index, node)) in steps.iter().copied().enumerate() {
        out.extend_from_slice(if number > 0 { b",{" } else { b"{" });
        member(out, "index");
        push_u64(out, number as u64);
        if let Some(id) = &node.id {
            member(out, "id");
            push_str(out, id);
        }
        if let Some(callback) = node.callback {
            member(out, "callback");
            push_str(out, callback.name());
        }
        member(out, "type");
        push_str(out, &node.job_type);
        let id = is_enqueued(node).then(|| job_id(run, index));
        let job = id.and_then(|id| jobs.get(&id).copied());
        member(out, "state");
        push_str(out, node_word(node, job));
        member(out, "job_id");
        match id {
            Some(id) => push_str(out, &id.to_string()),
            None => out.extend_from_slice(b"null"),
        }
        push_depends_on(out, state, node);
        push_after(out, state.before(index as u32).into_iter().filter_map(place));
        if let Some(job) = job {
            push_job(out, job);
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// The steps that have to end before a step starts, by their indexes, whatever kind of workflow they are in.
fn push_after(out: &mut Vec<u8>, steps: impl Iterator<Item = usize>) {
    member(out, "after");
    out.push(b'[');
    for (place, step) in steps.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push_u64(out, step as u64);
    }
    out.push(b']');
}

/// The steps that a step of a graph depends on, by the names that the caller gave to them.
fn push_depends_on(out: &mut Vec<u8>, state: &WorkflowState, node: &Node) {
    if node.after.is_empty() {
        return;
    }
    member(out, "depends_on");
    out.push(b'[');
    for (index, before) in node.after.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_str(out, state.node(*before).id.as_deref().unwrap_or_default());
    }
    out.push(b']');
}

fn push_job(out: &mut Vec<u8>, job: &Job) {
    member(out, "attempt");
    push_u64(out, job.attempt.into());
    for (key, at) in [("started_at", job.times.started), ("completed_at", job.times.finished)] {
        if let Some(at) = at {
            push_moment(out, key, at);
        }
    }
    if let (State::Retryable, Some(due)) = (job.state, job.due) {
        push_moment(out, "next_retry_at", due);
    }
    if let Some(result) = &job.result {
        member(out, "result");
        out.extend_from_slice(result);
    }
}

fn push_errors(out: &mut Vec<u8>, run: &Run, state: &WorkflowState) {
    let failed: Vec<(usize, &Node)> = state.nodes.iter().enumerate().filter(|(_, node)| node.error.is_some()).collect();
    if failed.is_empty() {
        return;
    }
    if let (Kind::Chain, Some(place)) =
        (state.nodes[0].kind, state.nodes[0].parts.iter().position(|part| state.node(*part).status == Status::Failed))
    {
        member(out, "failed_step_index");
        push_u64(out, place as u64);
    }
    member(out, "failed_job_ids");
    out.push(b'[');
    for (place, (index, _)) in failed.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push_str(out, &job_id(run, *index).to_string());
    }
    out.push(b']');
    member(out, "errors");
    out.push(b'[');
    for (place, (index, node)) in failed.iter().enumerate() {
        out.extend_from_slice(if place > 0 { b",{" } else { b"{" });
        member(out, "job_id");
        push_str(out, &job_id(run, *index).to_string());
        if let Some(error) = &node.error {
            member(out, "code");
            push_str(out, &error.code);
            member(out, "message");
            push_str(out, &error.message);
            if let Some(attempt) = error.attempt {
                member(out, "attempt");
                push_u64(out, attempt.into());
            }
        }
        if let Some(callback) = node.callback {
            member(out, "callback");
            push_str(out, callback.name());
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// The word for how far a job of a workflow is.
fn node_word(node: &Node, job: Option<&Job>) -> &'static str {
    match (node.status, job.map(|job| job.state)) {
        (Status::Waiting, _) => "waiting",
        (Status::Completed, _) => "completed",
        (Status::Failed, _) => "failed",
        (Status::Cancelled, _) => "cancelled",
        (Status::Started, Some(State::Active)) => "active",
        (Status::Started, Some(State::Retryable)) => "retryable",
        (Status::Started, Some(State::Scheduled)) => "scheduled",
        (Status::Started, Some(State::Cancelled)) => "cancelled",
        (Status::Started, _) => "pending",
    }
}

pub(super) const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Job => "job",
        Kind::Chain => "chain",
        Kind::Group => "group",
        Kind::Batch => "batch",
        Kind::Graph => "graph",
    }
}
