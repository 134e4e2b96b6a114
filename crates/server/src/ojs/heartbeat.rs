//! Heartbeats.

use super::settle::token;
use super::workers::describe;
use crate::access::Caller;
use crate::api_error::ApiError;
use crate::app::App;
use crate::limits::Limits;
use crate::request::Payload;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::{EngineError, WorkerReport, WorkerState};
use redrive_ojs::json::{Members, items, member, push_str, text};
use redrive_ojs::{lease, push_moment};
use redrive_policy::{Problem, Span};
use redrive_store::{Job, JobId, LeaseRef, Refusal, State as JobState};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

/// What a beat may say. Heartbeats take anything besides: libraries describe their worker in them.
const BEAT_FIELDS: [&str; 16] = [
    "worker_id",
    "state",
    "shutdown",
    "active_jobs",
    "active_job_ids",
    "job_id",
    "lease_token",
    "visibility_timeout_ms",
    "visibility_timeout",
    "hostname",
    "pid",
    "queues",
    "concurrency",
    "labels",
    "version",
    "started_at",
];

/// `POST /workers/heartbeat`, of the worker protocol.
pub(crate) async fn heartbeat(
    State(app): State<Arc<App>>,
    caller: Caller,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    answer(&app, &caller, read(&payload.members()?, &app.limits, CountOfJobs::NeedsIds)?).await
}

/// `POST /workers/beat`, of the page about graceful shutdown: the same, and a number of jobs needs no ids.
pub(crate) async fn beat(
    State(app): State<Arc<App>>,
    caller: Caller,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let members = payload.members()?;
    let mut problems = Vec::new();
    members.only(&BEAT_FIELDS, &mut problems);
    if !members.has("worker_id") {
        members.wrong("worker_id", "the name of the worker", &mut problems);
    }
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    answer(&app, &caller, read(&members, &app.limits, CountOfJobs::IsEnough)?).await
}

async fn answer(app: &App, caller: &Caller, beat: Beat) -> Result<JsonResponse, ApiError> {
    let Beat { worker, report, lease_refs, span } = beat;
    let ids: Vec<JobId> = lease_refs.iter().map(|lease_ref| lease_ref.id).collect();
    caller.check_jobs(app, &ids).await?;
    let wanted = worker.map_or(WorkerState::Running, |worker| app.engine.note_heartbeat(&worker, report));
    let extended = if lease_refs.is_empty() { Vec::new() } else { app.engine.extend(lease_refs, span).await? };
    let mut out = Vec::with_capacity(128 + ids.len() * 48);
    out.extend_from_slice(b"{\"acknowledged\":true");
    member(&mut out, "state");
    let directed = if app.test_directives { extended.iter().flatten().find_map(directive) } else { None };
    push_str(&mut out, directed.unwrap_or(wanted.name()));
    member(&mut out, "jobs_extended");
    out.push(b'[');
    for job in extended.iter().flatten() {
        separate(&mut out);
        let _ = write!(out, "\"{}\"", job.id);
    }
    out.push(b']');
    let mut refused = Vec::new();
    for (id, answer) in ids.into_iter().zip(&extended) {
        if let Err(error) = answer {
            refused.push((id, ApiError::from(error.clone()), state_now(app, id, error).await));
        }
    }
    push_refused(&mut out, &refused);
    push_moment(&mut out, "server_time", app.engine.now());
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// The state of a job that is not held, so that its worker can tell a cancelled one from a lost one; `None`
/// where it is not known.
async fn state_now(app: &App, id: JobId, error: &EngineError) -> Option<JobState> {
    match error {
        EngineError::Refused(_, Refusal::WrongState(state)) => Some(*state),
        EngineError::Refused(_, Refusal::NotFound) => None,
        _ => app.engine.job(id).await.ok().map(|job| job.state),
    }
}

/// Jobs that the worker does not hold any more, so that it can stop working on them.
fn push_refused(out: &mut Vec<u8>, refused: &[(JobId, ApiError, Option<JobState>)]) {
    member(out, "jobs_refused");
    out.push(b'[');
    for (id, error, state) in refused {
        separate(out);
        let reason = error.details.as_ref().and_then(|details| details["reason"].as_str());
        let _ = write!(out, "{{\"job_id\":\"{id}\",\"reason\":");
        push_str(out, reason.unwrap_or(error.code.name()));
        if let Some(state) = state {
            member(out, "current_state");
            push_str(out, state.name());
        }
        member(out, "message");
        push_str(out, &error.message);
        out.push(b'}');
    }
    out.push(b']');
}

fn separate(out: &mut Vec<u8>) {
    if out.last() != Some(&b'[') {
        out.push(b',');
    }
}

struct Beat {
    /// The name of the worker, where it gives one.
    worker: Option<String>,
    report: WorkerReport,
    lease_refs: Vec<LeaseRef>,
    span: Option<Span>,
}

/// What the mere number of jobs means, which extends no lease.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountOfJobs {
    /// A worker that sends it relies on leases that are not extended.
    NeedsIds,
    /// It is only told.
    IsEnough,
}

/// Jobs are named in `active_jobs` and `active_job_ids`, each by its id or as an object with its id
/// and lease token; `active_jobs` may also be a mere number.
fn read(members: &Members<'_>, limits: &Limits, count: CountOfJobs) -> Result<Beat, ApiError> {
    const ALLOWED: &str = "an array of job ids, or of objects with a job_id and a lease_token";
    let mut problems = Vec::new();
    let worker = members.worker_name(&limits.of_jobs(), &mut problems);
    let mut lease_refs: Vec<LeaseRef> = Vec::new();
    let mut counted = 0;
    for key in ["active_jobs", "active_job_ids"] {
        if let Some(count) = members.get(key).and_then(|value| value.get().parse::<u64>().ok()) {
            counted = count;
            continue;
        }
        let jobs = members.read(key, ALLOWED, &mut problems, items).unwrap_or_default();
        let (found, most) = (jobs.len(), limits.batch);
        if found > most {
            let allowed = format!("at most {most} (limits.batch)");
            return Err(ApiError::invalid(vec![Problem::new(format!("/{key}"), format!("{found} jobs"), allowed)]));
        }
        for (index, job) in jobs.into_iter().enumerate() {
            match listed(job, worker.as_deref()) {
                Some(lease_ref) if lease_refs.iter().any(|known| known.id == lease_ref.id) => {}
                Some(lease_ref) => lease_refs.push(lease_ref),
                None => problems.push(Problem::new(format!("/{key}/{index}"), job.get(), ALLOWED)),
            }
        }
    }
    if let Some(id) = members.job_id("job_id", &mut problems) {
        lease_refs.push(LeaseRef { id, token: token(members, worker.as_deref(), &mut problems) });
    }
    let span = lease(|_| members, &mut problems);
    let report = describe::report(members, limits, &mut problems);
    if problems.is_empty() && lease_refs.is_empty() && counted > 0 && count == CountOfJobs::NeedsIds {
        let message = format!("found {counted} and no ids; a number extends no lease: list the ids in active_job_ids");
        members.add_problem("active_jobs", Problem::with_message("", message), &mut problems);
    }
    if problems.is_empty() && lease_refs.is_empty() && worker.as_deref().is_none_or(str::is_empty) {
        members.add_problem(
            "worker_id",
            Problem::with_message("", "missing; a heartbeat names its worker, or jobs"),
            &mut problems,
        );
    }
    let worker = worker.filter(|worker| !worker.is_empty()).map(Cow::into_owned);
    if problems.is_empty() { Ok(Beat { worker, report, lease_refs, span }) } else { Err(ApiError::invalid(problems)) }
}

fn listed(job: &RawValue, worker: Option<&str>) -> Option<LeaseRef> {
    let mut problems = Vec::new();
    let lease_ref = match text(job) {
        Some(id) => LeaseRef { id: id.parse().ok()?, token: token(&Members::default(), worker, &mut problems) },
        None => {
            let members = Members::parse(job.get()).ok()?;
            let id = members.job_id("job_id", &mut problems)?;
            LeaseRef { id, token: token(&members, worker, &mut problems) }
        }
    };
    problems.is_empty().then_some(lease_ref)
}

/// What a job tells its worker for tests of the protocol: `options.metadata.test_directive`.
fn directive(job: &Job) -> Option<&'static str> {
    const MARK: &[u8] = b"\"test_directive\"";
    let body = &job.spec.body;
    if !body.windows(MARK.len()).any(|window| window == MARK) {
        return None;
    }
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    match body["metadata"]["test_directive"].as_str()? {
        "quiet" => Some("quiet"),
        "terminate" => Some("terminate"),
        _ => None,
    }
}
