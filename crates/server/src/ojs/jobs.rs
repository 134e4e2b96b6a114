//! Jobs: enqueue, look up, cancel, activate.

use super::envelope::{flattened, push_bare_job, push_job, push_members};
use super::intake;
use super::names::id_in_path;
use super::repeat::{self, Work};
use crate::access::Caller;
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::{IdempotencyKey, Payload, Trace};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_ojs::json::{Members, items, member, push_str, push_u64};
use redrive_ojs::{Invalid, push_explanation, push_moment};
use redrive_policy::Problem;
use redrive_store::{Enqueued, Transition};
use std::sync::Arc;

pub(crate) async fn enqueue(
    State(app): State<Arc<App>>,
    caller: Caller,
    IdempotencyKey(key): IdempotencyKey,
    trace: Trace,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let now = app.engine.now();
    let job = intake::read_traced(&app, &payload.members()?, key.as_deref(), &trace, now)?;
    caller.check_queues([&*job.queue])?;
    let work = Work::of(&job);
    let mut enqueued = app.engine.submit(vec![job]).await?;
    let mut deduplicated = false;
    check_answered(&caller, &enqueued)?;
    let (job, status) = match enqueued.pop() {
        Some(Enqueued::Created(job) | Enqueued::Replaced { job, .. }) => (job, StatusCode::CREATED),
        Some(Enqueued::Ignored(job)) => {
            deduplicated = true;
            (job, StatusCode::OK)
        }
        Some(Enqueued::Existing(job)) if work.is_that_of(&job) => (job, StatusCode::OK),
        Some(Enqueued::Existing(job)) => return Err(repeat::other_job(&job)),
        None => return Err(ApiError::new(Code::InternalError, "the store enqueued a job and did not answer it")),
    };
    let mut out = Vec::with_capacity(1_024);
    out.extend_from_slice(b"{\"job\":");
    push_job(&mut out, &job, &app);
    if status == StatusCode::OK {
        member(&mut out, "existing");
        out.extend_from_slice(b"true");
    }
    if deduplicated {
        member(&mut out, "deduplicated");
        out.extend_from_slice(b"true");
    }
    out.push(b'}');
    Ok(JsonResponse::ok(out).status(status).location(&format!("/ojs/v1/jobs/{}", job.id)))
}

pub(crate) async fn enqueue_batch(
    State(app): State<Arc<App>>,
    caller: Caller,
    IdempotencyKey(key): IdempotencyKey,
    trace: Trace,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let members = payload.members()?;
    let mut problems = Vec::new();
    members.only(&["jobs"], &mut problems);
    let Some(jobs) = members.read("jobs", "an array of jobs", &mut problems, items) else {
        if problems.is_empty() {
            members.wrong("jobs", "an array of jobs", &mut problems);
        }
        return Err(ApiError::invalid(problems));
    };
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let (count, most) = (jobs.len(), app.limits.batch);
    if count == 0 || count > most {
        let problem = Problem::new("/jobs", format!("{count} jobs"), format!("from 1 to {most} (limits.batch)"));
        return Err(ApiError::invalid(vec![problem]));
    }
    let now = app.engine.now();
    let mut invalid = Invalid::default();
    let mut read = Vec::with_capacity(count);
    for (index, job) in jobs.into_iter().enumerate() {
        let key = key.as_ref().map(|key| repeat::key_in_batch(key, index));
        let job = match Members::parse(job.get()) {
            Ok(members) => intake::read_traced(&app, &members, key.as_deref(), &trace, now),
            Err(error) => Err(Invalid::request(Problem::with_message("", format!("not a job: {error}")))),
        };
        match job {
            Ok(job) => read.push(job),
            Err(other) => invalid.add(&format!("/jobs/{index}"), other),
        }
    }
    if !invalid.is_empty() {
        return Err(invalid.into());
    }
    caller.check_queues(read.iter().map(|job| &*job.queue))?;
    let works: Vec<Work> = read.iter().map(Work::of).collect();
    let enqueued = app.engine.submit(read).await?;
    check_answered(&caller, &enqueued)?;
    repeat::check_batch(&works, &enqueued)?;
    let mut out = Vec::with_capacity(count * 1_024);
    out.extend_from_slice(b"{\"jobs\":[");
    for (index, enqueued) in enqueued.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match enqueued {
            // What was there before may have grown since: results and errors are not limited by this request.
            Enqueued::Existing(job) | Enqueued::Ignored(job) if out.len() + job.bytes() > app.limits.answer_bytes => {
                push_bare_job(&mut out, job, &app);
            }
            // What is new is no larger than the request.
            other => push_job(&mut out, other.job(), &app),
        }
    }
    out.push(b']');
    member(&mut out, "count");
    push_u64(&mut out, enqueued.len() as u64);
    repeat::push_places(&mut out, "existing", &enqueued, |answer| !answer.is_new());
    repeat::push_places(&mut out, "deduplicated", &enqueued, |answer| matches!(answer, Enqueued::Ignored(_)));
    out.push(b'}');
    Ok(JsonResponse::ok(out).status(StatusCode::CREATED))
}

/// A job that was there before may be in another queue than the one that was asked for.
fn check_answered(caller: &Caller, enqueued: &[Enqueued]) -> Result<(), ApiError> {
    caller.check_queues(enqueued.iter().map(|enqueued| &*enqueued.job().spec.queue))
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let job = app.engine.job(id_in_path(&id)?).await?;
    let mut members = Vec::with_capacity(2_048);
    push_members(&mut members, &job, &app);
    push_explanation(&mut members, &job);
    Ok(JsonResponse::ok(flattened(&members)))
}

pub(crate) async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let cancelled = app.engine.cancel(id_in_path(&id)?).await?;
    Ok(JsonResponse::ok(flattened(&members_after(&cancelled, &app))))
}

pub(crate) async fn activate(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let activated = app.engine.activate(id_in_path(&id)?).await?;
    let mut members = members_after(&activated, &app);
    push_moment(&mut members, "activated_at", activated.at);
    Ok(JsonResponse::ok(flattened(&members)))
}

/// The members of the job after an event, with its state before.
fn members_after(transition: &Transition, app: &App) -> Vec<u8> {
    let mut members = Vec::with_capacity(1_024);
    push_members(&mut members, &transition.job, app);
    if let Some(previous) = transition.from {
        member(&mut members, "previous_state");
        push_str(&mut members, previous.name());
    }
    members
}
