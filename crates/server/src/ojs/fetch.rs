//! Delivering jobs to workers.

use super::envelope::push_claimed;
use crate::access::Caller;
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::limits::Limits;
use crate::listen::stop_of;
use crate::request::Payload;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::{ClaimRequest, WorkerState};
use redrive_ojs::json::Members;
use redrive_ojs::{QUEUE_ALLOWED, is_queue, lease};
use redrive_policy::Problem;
use redrive_store::Job;
use std::sync::Arc;
use std::time::Duration;

/// How many queues one fetch may name.
const MOST_QUEUES: usize = 100;

/// What a fetch may say.
const FIELDS: [&str; 6] = ["queues", "count", "worker_id", "visibility_timeout_ms", "visibility_timeout", "wait_ms"];

pub(crate) async fn fetch(
    State(app): State<Arc<App>>,
    caller: Caller,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let mut request = read(&payload.members()?, &app.limits)?;
    caller.check_queues(request.queues.iter().map(|queue| &**queue))?;
    let place = if request.wait.is_zero() { None } else { Arc::clone(&app.long_polls).try_acquire_owned().ok() };
    let refused = place.is_none() && !request.wait.is_zero();
    if refused {
        request.wait = Duration::ZERO;
    }
    let jobs = claimed(&app, &caller, request).await?;
    drop(place);
    if jobs.is_empty() && !app.guard.is_valid(&app.engine, &caller) {
        return Err(ApiError::new(Code::Unauthorized, "the key is not valid any more"));
    }
    if jobs.is_empty() && refused {
        let most = app.limits.long_polls;
        let message = format!("{most} fetches are waiting for jobs already (limits.long_polls), and there is none now");
        return Err(ApiError::new(Code::RateLimited, message).retry_after(1));
    }
    Ok(JsonResponse::ok(written(&app, &jobs)))
}

/// Claims jobs for a worker that is running. One that is quiet, drains or ends waits as long as it asked for and gets
/// none: an answer at once would have it ask again at once.
async fn claimed(app: &Arc<App>, caller: &Caller, request: ClaimRequest) -> Result<Vec<Job>, ApiError> {
    let worker = Arc::clone(&request.worker);
    let (owner, caller) = (Arc::clone(app), caller.clone());
    let stopped = async move {
        tokio::select! {
            () = stop_of(owner.stopping.clone()) => {}
            () = owner.guard.invalid(&owner.engine, &caller) => {}
        }
    };
    if worker.is_empty() {
        return Ok(app.engine.claim_or_release(request, stopped).await?);
    }
    if app.engine.note_fetch(&worker, &request.queues) != WorkerState::Running {
        tokio::select! {
            () = stopped => {}
            () = tokio::time::sleep(request.wait) => {}
        }
        return Ok(Vec::new());
    }
    if request.wait.is_zero() {
        return Ok(app.engine.claim_or_release(request, stopped).await?);
    }
    let held = Arc::clone(&app.engine).worker_held(Arc::clone(&worker));
    let ended = async {
        tokio::select! {
            () = stopped => {}
            () = held => {}
        }
    };
    let queues = request.queues.clone();
    let jobs = app.engine.claim_or_release(request, ended).await?;
    // It was there as long as it waited.
    app.engine.note_fetch(&worker, &queues);
    Ok(jobs)
}

fn read(members: &Members<'_>, limits: &Limits) -> Result<ClaimRequest, ApiError> {
    let mut problems = Vec::new();
    let p = &mut problems;
    members.only(&FIELDS, p);
    let queues = members.texts("queues", p).unwrap_or_default();
    if !members.has("queues") {
        members.wrong("queues", "an array with the names of queues, the most wanted first,", p);
    } else if !(1..=MOST_QUEUES).contains(&queues.len()) && p.is_empty() {
        let found = format!("{} queues", queues.len());
        p.push(Problem::new("/queues", found, format!("from 1 to {MOST_QUEUES}")));
    }
    for (index, queue) in queues.iter().enumerate().filter(|(_, queue)| !is_queue(queue)) {
        p.push(Problem::new(format!("/queues/{index}"), format!("{queue:?}"), QUEUE_ALLOWED));
    }
    let count = members.whole("count", 1..=limits.fetch as i64, p).unwrap_or(1);
    let worker = members.worker_name(&limits.of_jobs(), p).unwrap_or_default();
    let lease = lease(|_| members, p);
    let wait_ms = members.whole("wait_ms", 0..=limits.long_poll.as_millis() as i64, p).unwrap_or(0);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    Ok(ClaimRequest {
        queues: queues.iter().map(|queue| Arc::from(&**queue)).collect(),
        count: usize::try_from(count).unwrap_or(1),
        bytes: limits.answer_bytes,
        worker: Arc::from(&*worker),
        lease,
        wait: Duration::from_millis(wait_ms.unsigned_abs()),
    })
}

fn written(app: &App, jobs: &[Job]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + jobs.len() * 1_024);
    out.extend_from_slice(b"{\"jobs\":[");
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_claimed(&mut out, job, app);
    }
    out.extend_from_slice(b"]}");
    out
}
