//! Ending runs: success, failure, and releasing; one by one or many at once.

use super::failure;
use crate::access::Caller;
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::limits::Limits;
use crate::request::Payload;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::Ending;
use redrive_ojs::json::{Members, check_nested, items, member, push_str, push_u64};
use redrive_ojs::{Invalid, max_attempts, push_id, push_moment, push_ms};
use redrive_policy::{Moment, Problem, Span};
use redrive_store::{JobId, LeaseRef, Settled, State as JobState, Token, Transition};
use std::sync::Arc;

/// What kind of report it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ack,
    Nack,
}

impl Kind {
    /// What a report may say. All are sent by client libraries or are extensions of this server.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Ack => &["action", "job_id", "worker_id", "lease_token", "result"],
            Self::Nack => &[
                "action",
                "job_id",
                "worker_id",
                "lease_token",
                "error",
                "requeue",
                "snooze_ms",
                "retry_after",
                "retry",
            ],
        }
    }
}

pub(crate) async fn ack(
    State(app): State<Arc<App>>,
    caller: Caller,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    settle_one(&app, &caller, &payload, Kind::Ack).await
}

pub(crate) async fn nack(
    State(app): State<Arc<App>>,
    caller: Caller,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    settle_one(&app, &caller, &payload, Kind::Nack).await
}

async fn settle_one(app: &App, caller: &Caller, payload: &Payload, kind: Kind) -> Result<JsonResponse, ApiError> {
    let SettleRequest { lease_ref, ending } = SettleRequest::read(app, &payload.members()?, kind, app.engine.now())?;
    caller.check_jobs(app, &[lease_ref.id]).await?;
    let settled = app.engine.settle(vec![(lease_ref, ending)]).await?.pop();
    let mut out = vec![b'{'];
    push_reply(&mut out, &settled.ok_or_else(unsaid)??);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// A store that leaves a question open.
fn unsaid() -> ApiError {
    ApiError::new(Code::InternalError, "the store settled a run and did not say how")
}

/// Many reports in one request; each is answered for itself, in the order given.
pub(crate) async fn settle_many(
    State(app): State<Arc<App>>,
    caller: Caller,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let members = payload.members()?;
    let mut problems = Vec::new();
    members.only(&["settlements"], &mut problems);
    let reports = members.read("settlements", "an array of reports", &mut problems, items).unwrap_or_default();
    let (count, most) = (reports.len(), app.limits.batch);
    if problems.is_empty() && !(1..=most).contains(&count) {
        let allowed = format!("from 1 to {most} (limits.batch)");
        problems.push(Problem::new("/settlements", format!("{count} reports"), allowed));
    }
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let now = app.engine.now();
    let read = |report: &serde_json::value::RawValue| read_listed(&app, report.get(), now);
    let mut answers = Vec::with_capacity(count);
    let mut endings = Vec::with_capacity(count);
    for report in reports {
        answers.push(read(report).map(|report| {
            endings.push((report.lease_ref, report.ending));
        }));
    }
    let ids: Vec<JobId> = endings.iter().map(|(lease_ref, _)| lease_ref.id).collect();
    caller.check_jobs(&app, &ids).await?;
    let settled = if endings.is_empty() { Vec::new() } else { app.engine.settle(endings).await? };
    let mut settled = settled.into_iter();
    let answers = answers.into_iter().map(|answer| {
        answer.map_err(ApiError::from)?;
        Ok(settled.next().ok_or_else(unsaid)??)
    });
    Ok(JsonResponse::ok(written(answers, count)))
}

/// One report of a list; it says itself what it is.
fn read_listed(app: &App, text: &str, now: Moment) -> Result<SettleRequest, Invalid> {
    const ALLOWED: &str = "\"ack\" or \"nack\"";
    let members = Members::parse(text)
        .map_err(|error| Invalid::request(Problem::with_message("", format!("not a report: {error}"))))?;
    let mut problems = Vec::new();
    let kind = match members.text("action", &mut problems).as_deref() {
        Some("ack") => Kind::Ack,
        Some("nack") => Kind::Nack,
        _ => {
            members.wrong("action", ALLOWED, &mut problems);
            return Err(Invalid { request: problems, ..Invalid::default() });
        }
    };
    SettleRequest::read(app, &members, kind, now)
}

fn written(answers: impl Iterator<Item = Result<Settled, ApiError>>, count: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(count * 200);
    out.extend_from_slice(b"{\"results\":[");
    let mut settled = 0;
    for (index, answer) in answers.enumerate() {
        out.extend_from_slice(if index > 0 { b",{\"status\":" } else { b"{\"status\":" });
        match answer {
            Ok(answer) => {
                settled += 1;
                out.extend_from_slice(b"200");
                push_reply(&mut out, &answer);
            }
            Err(error) => {
                push_u64(&mut out, error.code.status().as_u16().into());
                member(&mut out, "error");
                out.extend_from_slice(error.to_json("").to_string().as_bytes());
            }
        }
        out.push(b'}');
    }
    out.push(b']');
    for (key, number) in [("settled", settled), ("refused", count as u64 - settled)] {
        member(&mut out, key);
        push_u64(&mut out, number);
    }
    out.push(b'}');
    out
}

/// The end of an attempt, as a worker reports it.
struct SettleRequest {
    lease_ref: LeaseRef,
    ending: Ending,
}

impl SettleRequest {
    fn read(app: &App, members: &Members<'_>, kind: Kind, now: Moment) -> Result<Self, Invalid> {
        let mut invalid = Invalid::default();
        members.only(kind.fields(), &mut invalid.request);
        let lease_ref = lease_ref(members, &app.limits, &mut invalid.request);
        let ending = match kind {
            Kind::Ack => success(members, &app.limits, &mut invalid.request),
            Kind::Nack => failure(app, members, now, &mut invalid),
        };
        match (lease_ref, ending) {
            (Some(lease_ref), Some(ending)) if invalid.is_empty() => Ok(Self { lease_ref, ending }),
            _ => Err(invalid),
        }
    }
}

/// Which run it is, and what proves that the reporter holds it: a token, else the worker's name, else
/// nothing, because client libraries know neither.
pub(super) fn lease_ref(members: &Members<'_>, limits: &Limits, problems: &mut Vec<Problem>) -> Option<LeaseRef> {
    if !members.has("job_id") {
        members.wrong("job_id", "the id of the job", problems);
    }
    let id = members.job_id("job_id", problems);
    let token = token(members, members.worker_name(&limits.of_jobs(), problems).as_deref(), problems);
    Some(LeaseRef { id: id?, token })
}

/// What proves a hold, from a token in these members or the name of a worker.
pub(super) fn token(members: &Members<'_>, worker: Option<&str>, problems: &mut Vec<Problem>) -> Token {
    let token = members.text("lease_token", problems).and_then(|token| {
        let token = token.parse().ok();
        if token.is_none() {
            members.wrong("lease_token", "the lease_token that came with the job", problems);
        }
        token
    });
    match (token, worker) {
        (Some(token), _) => Token::Lease(token),
        (None, Some(worker)) if !worker.is_empty() => Token::Worker(Arc::from(worker)),
        _ => Token::None,
    }
}

fn success(members: &Members<'_>, limits: &Limits, problems: &mut Vec<Problem>) -> Option<Ending> {
    let result = members.get("result").filter(|result| result.get() != "null");
    if let Some(Err(message)) = result.map(|result| check_nested(result, limits.nesting)) {
        members.add_problem("result", Problem::with_message("", message), problems);
        return None;
    }
    Some(Ending::Done(result.map(|result| Arc::from(result.get().as_bytes()))))
}

/// A failure; or a released run, which needs no error.
fn failure(app: &App, members: &Members<'_>, now: Moment, invalid: &mut Invalid) -> Option<Ending> {
    let may_release = members.has("requeue") || members.has("snooze_ms");
    if !may_release || failure::ends_the_job(members) {
        return failure::read(app, members, now, invalid).map(Ending::Failed);
    }
    let problems = &mut invalid.request;
    let requeue = members.flag("requeue", problems).unwrap_or(false);
    let most = Span::MAX.ms() as i64;
    let snooze = members.whole("snooze_ms", 0..=most, problems);
    if let Some(ms) = snooze {
        return Some(Ending::Released(Span::saturating_ms(ms as f64)));
    }
    if requeue {
        return Some(Ending::Released(Span::ZERO));
    }
    failure::read(app, members, now, invalid).map(Ending::Failed)
}

/// Writes the members of the reply to a report, without braces. The reply to repeated success is the first one.
fn push_reply(out: &mut Vec<u8>, settled: &Settled) {
    let job = settled.job();
    let acknowledged = job.times.finished.filter(|_| job.state == JobState::Completed);
    if acknowledged.is_some() {
        member(out, "acknowledged");
        out.extend_from_slice(b"true");
    }
    for key in ["id", "job_id"] {
        member(out, key);
        push_id(out, job);
    }
    member(out, "state");
    push_str(out, job.state.name());
    if let Some(finished) = acknowledged {
        push_moment(out, "completed_at", finished);
    }
    if let Some(transition) = settled.transition().filter(|_| acknowledged.is_none()) {
        push_failed(out, transition);
    }
}

/// Writes which run ended, and when the job runs again, or that it does not.
fn push_failed(out: &mut Vec<u8>, transition: &Transition) {
    let job = &transition.job;
    member(out, "attempt");
    push_u64(out, transition.attempt.into());
    member(out, "max_attempts");
    push_u64(out, max_attempts(transition.decided_by().unwrap_or(&job.spec.policy)).into());
    if let (Some(due), Some(delay)) = (job.due, transition.delay()) {
        member(out, "retry_delay_ms");
        push_ms(out, delay);
        push_moment(out, "next_attempt_at", due);
        push_moment(out, "next_retry_at", due);
    }
    if let (JobState::Discarded, Some(finished)) = (job.state, job.times.finished) {
        push_moment(out, "discarded_at", finished);
        push_moment(out, "completed_at", finished);
        member(out, "dead_letter");
        out.extend_from_slice(if job.dead { b"true" } else { b"false" });
    }
}
