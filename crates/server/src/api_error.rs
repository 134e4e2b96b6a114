//! Requests that are not carried out, and what is said about them.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use redrive_engine::EngineError;
use redrive_ojs::runs::RunsError;
use redrive_policy::Problem;
use redrive_store::{Duplicate, JobId, Queue, QueueFull, Refusal, RunRefusal, State, StoreError};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// The closed list of what can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidRequest,
    InvalidPayload,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    Duplicate,
    Conflict,
    PayloadTooLarge,
    Misdirected,
    ValidationError,
    Unsupported,
    NotConfigured,
    RateLimited,
    QueueFull,
    BackendError,
    InternalError,
    Unavailable,
}

impl Code {
    pub(crate) const ALL: [Self; 19] = [
        Self::InvalidRequest,
        Self::InvalidPayload,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::Duplicate,
        Self::Conflict,
        Self::PayloadTooLarge,
        Self::Misdirected,
        Self::ValidationError,
        Self::Unsupported,
        Self::NotConfigured,
        Self::RateLimited,
        Self::QueueFull,
        Self::BackendError,
        Self::InternalError,
        Self::Unavailable,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidPayload => "invalid_payload",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::PayloadTooLarge => "payload_too_large",
            Self::Misdirected => "misdirected",
            Self::ValidationError => "validation_error",
            Self::Unsupported => "unsupported",
            Self::NotConfigured => "not_configured",
            Self::RateLimited => "rate_limited",
            // As the page about backpressure writes it.
            Self::QueueFull => "QUEUE_FULL",
            Self::BackendError => "backend_error",
            Self::InternalError => "internal_error",
            Self::Unavailable => "unavailable",
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest | Self::InvalidPayload => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Duplicate | Self::Conflict | Self::NotConfigured => StatusCode::CONFLICT,
            Self::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Self::ValidationError | Self::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RateLimited | Self::QueueFull => StatusCode::TOO_MANY_REQUESTS,
            Self::BackendError | Self::InternalError => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) const fn retryable(self) -> bool {
        matches!(self, Self::RequestTimeout | Self::RateLimited | Self::QueueFull | Self::Unavailable)
    }

    /// What to do about it, where the message does not say more.
    pub(crate) const fn hint(self) -> &'static str {
        match self {
            Self::InvalidRequest => "Correct the fields that details.problems lists and send the request again.",
            Self::InvalidPayload => "Send one JSON object in UTF-8 as the body.",
            Self::Unauthorized => "Send the header \"Authorization: Bearer KEY\" with a key of this server.",
            Self::Forbidden => {
                "The key does not allow this, or the request comes from a page of another origin; see the message."
            }
            Self::NotFound => "Check the id and the path; jobs that have ended leave once their retention is over.",
            Self::MethodNotAllowed => "The path exists; use one of the methods that the Allow header names.",
            Self::RequestTimeout => "Send the whole body at once, or raise limits.body_timeout.",
            Self::Duplicate => "Look up the job that is there; for a taken id, leave it out and the server makes one.",
            Self::Conflict => "Look up the job: its state, or its lease, is not what this request needs.",
            Self::PayloadTooLarge => "Send less at once, or raise the limit that the message names.",
            Self::Misdirected => "Call the server by a name that it knows, or start it with --set hosts=NAME.",
            Self::ValidationError => "Correct the fields that details.problems lists; `redrive policy check` helps.",
            Self::Unsupported => "Send the header \"OJS-Version: 1.0\", or none.",
            Self::NotConfigured => "Configure the server as the message says, and start it again.",
            Self::RateLimited => "Wait as long as the Retry-After header says.",
            Self::QueueFull => "Nothing was enqueued. Wait as long as the Retry-After header says, and send it again.",
            Self::BackendError => "See the log of the server; its store needs attention.",
            Self::InternalError => "This is a fault of the server; its log has the request id.",
            Self::Unavailable => "Wait as long as the Retry-After header says; the command may have been carried out.",
        }
    }
}

/// A request that is not carried out.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
    pub(crate) retry_after_secs: Option<u32>,
    /// The queue that has no room.
    pub(crate) full: Option<Box<QueueFull>>,
}

/// When a queue that is full may have room again. Nobody knows: that is up to its workers.
const FULL_FOR_SECS: u32 = 5;

impl ApiError {
    pub(crate) fn new(code: Code, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string(), details: None, retry_after_secs: None, full: None }
    }

    pub(crate) fn with_details(self, details: Value) -> Self {
        Self { details: Some(details), ..self }
    }

    pub(crate) fn retry_after(self, secs: u32) -> Self {
        Self { retry_after_secs: Some(secs), ..self }
    }

    /// Everything that is wrong with a request.
    pub(crate) fn invalid(problems: Vec<Problem>) -> Self {
        Self::listing(Code::InvalidRequest, "the request is not valid", "validation.request_invalid", problems)
    }

    /// Everything that is wrong with a retry policy.
    pub(crate) fn invalid_policy(problems: Vec<Problem>) -> Self {
        let lead = "the retry policy is not valid";
        Self::listing(Code::ValidationError, lead, "validation.retry_policy_invalid", problems)
    }

    fn listing(code: Code, lead: &str, error_type: &str, mut problems: Vec<Problem>) -> Self {
        let message = redrive_ojs::listed(lead, &mut problems);
        Self::new(code, message).with_details(json!({ "error_type": error_type, "problems": problems }))
    }

    pub(crate) fn no_such_job(id: impl fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("there is no job {id}"))
    }

    /// The whole error as its answer has it.
    pub(crate) fn to_json(&self, request_id: &str) -> Value {
        let mut error = json!({
            "code": self.code.name(),
            "type": self.code.name(),
            "message": self.message,
            "retryable": self.code.retryable(),
            "request_id": request_id,
            "hint": self.code.hint(),
            "docs_url": format!("/ojs/v1/errors/{}", self.code.name()),
        });
        if let (Some(details), Some(members)) = (&self.details, error.as_object_mut()) {
            members.insert("details".to_owned(), details.clone());
        }
        if let Some(QueueFull { queue, depth, bound, .. }) = self.full.as_deref() {
            error["queue"] = (&**queue).into();
            error["depth"] = (*depth).into();
            error["bound"] = (*bound).into();
            error["strategy"] = "reject".into();
        }
        error
    }
}

/// The answer is written at the edge, where the request's id is known; until then the fault travels
/// along with an empty response.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Invalid(problems) => Self::invalid(problems.0),
            EngineError::InvalidPolicy(problems) => Self::invalid_policy(problems.0),
            EngineError::Duplicate(id) => {
                Self::new(Code::Duplicate, format!("a job {id} exists already; an id is used once"))
            }
            EngineError::NotUnique(index, duplicate) => not_unique(Some(index), &duplicate),
            EngineError::QueueFull(full) => {
                let message = format!("{full}; nothing was enqueued");
                let error = Self::new(Code::QueueFull, message).retry_after(FULL_FOR_SECS);
                Self { full: Some(Box::new(full)), ..error }
            }
            EngineError::Refused(id, refusal) => refused(id, &refusal),
            EngineError::NoSuchQueue(name) => Self::new(Code::NotFound, format!("there is no queue \"{name}\"")),
            EngineError::QueueHasJobs(queue) => not_empty(&queue),
            EngineError::NoSuchProgram(name) => {
                Self::new(Code::NotConfigured, format!("this node has no program \"{name}\""))
            }
            EngineError::RunKeyTaken(id) => Self::new(Code::Duplicate, format!("the run {id} has this name already")),
            EngineError::RefusedRun(id, RunRefusal::NotFound) => {
                Self::new(Code::NotFound, format!("there is no run {id}; runs that have ended are kept for some time"))
            }
            EngineError::RefusedRun(id, RunRefusal::RunIdTaken(_)) => {
                Self::new(Code::Duplicate, format!("a run {id} exists already; an id is used once"))
            }
            EngineError::RefusedRun(_, refusal @ RunRefusal::InboxFull(_)) => {
                Self::new(Code::RateLimited, refusal.to_string()).retry_after(1)
            }
            EngineError::RefusedRun(_, RunRefusal::Duplicate(_, duplicate)) => not_unique(None, &duplicate),
            EngineError::RefusedRun(_, refusal @ (RunRefusal::Changed(_) | RunRefusal::JobIdTaken(_))) => {
                Self::new(Code::Conflict, refusal.to_string())
            }
            EngineError::RunTooLarge { .. } => Self::new(Code::PayloadTooLarge, error.to_string()),
            EngineError::Store(StoreError::Unavailable(why)) => {
                Self::new(Code::Unavailable, format!("the store cannot be reached: {why}")).retry_after(1)
            }
            EngineError::Store(StoreError::Broken(why)) => {
                Self::new(Code::BackendError, format!("the store is broken: {why}"))
            }
        }
    }
}

impl From<RunsError> for ApiError {
    fn from(error: RunsError) -> Self {
        let message = error.to_string();
        match error {
            RunsError::Invalid(invalid) => invalid.into(),
            RunsError::NoSuchSchedule(..) | RunsError::NoSuchWorkflow(_) => Self::new(Code::NotFound, message),
            RunsError::ScheduleExists(name) => {
                let message = format!("{message}; PUT /ojs/v1/cron/{name} changes it, DELETE removes it");
                Self::new(Code::Conflict, message).with_details(json!({ "cron": name, "reason": "name_taken" }))
            }
            RunsError::WorkflowExists(_) => Self::new(Code::Duplicate, message),
            RunsError::WorkflowOver(..) => Self::new(Code::Conflict, message),
            RunsError::Unreadable(_) => Self::new(Code::InternalError, message),
            RunsError::Engine(error) => error.into(),
        }
    }
}

fn not_empty(queue: &Queue) -> ApiError {
    let counts = State::ALL.into_iter().map(|state| (state, queue.count(state))).filter(|(_, jobs)| *jobs > 0);
    let said = counts.clone().map(|(state, jobs)| format!("{jobs} {state}")).collect::<Vec<_>>().join(", ");
    let counts: serde_json::Map<String, Value> =
        counts.map(|(state, jobs)| (state.name().to_owned(), jobs.into())).collect();
    let name = &queue.name;
    let message = format!(
        "the queue \"{name}\" has jobs ({said}), and only one without jobs can be removed; jobs that have ended leave \
         once their retention is over"
    );
    ApiError::new(Code::Conflict, message)
        .with_details(json!({ "queue": &**name, "reason": "queue_has_jobs", "counts": counts }))
}

/// A job that must be unique, and is not: the job at a position of a request, or one that is redriven.
fn not_unique(index: Option<usize>, duplicate: &Duplicate) -> ApiError {
    let mut details = json!({
        "existing_job_id": duplicate.id.to_string(),
        "existing_job_state": duplicate.state.name(),
        "uniqueness_key": duplicate.key.to_string(),
    });
    if let Some(index) = index {
        details["index"] = index.into();
    }
    ApiError::new(Code::Duplicate, format!("the job is a duplicate: {duplicate}")).with_details(details)
}

fn refused(id: JobId, refusal: &Refusal) -> ApiError {
    let conflict = |reason: &str, message: String| {
        ApiError::new(Code::Conflict, message).with_details(json!({ "job_id": id.to_string(), "reason": reason }))
    };
    match refusal {
        Refusal::NotFound => ApiError::no_such_job(id),
        Refusal::WrongState(state) => {
            let message = format!("job {id} is {state}, and this cannot happen to a job that is {state}");
            let mut error = conflict("wrong_state", message);
            if let Some(details) = &mut error.details {
                details["current_state"] = state.name().into();
            }
            error
        }
        Refusal::StaleLease => conflict(
            "stale_lease",
            format!("the lease on job {id} is over and the job has moved on without it; drop this run's outcome"),
        ),
        Refusal::WrongLease => conflict(
            "wrong_lease",
            format!("job {id} was never leased under this token; hand back the lease_token that came with the job"),
        ),
        Refusal::OtherWorker => {
            conflict("other_worker", format!("another worker holds job {id}; its lease has to end first"))
        }
        Refusal::Duplicate(duplicate) => not_unique(None, duplicate),
        Refusal::TooManyReleases(most) => conflict(
            "too_many_releases",
            format!("job {id} was released {most} times without being run; let it run, or report a failure"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    const PAGE: &str = include_str!("../../../docs/errors.md");

    #[test]
    fn the_page_about_errors_has_every_code_and_no_other() {
        let sections: Vec<(&str, &str)> =
            PAGE.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap()).collect();
        let names: Vec<&str> = sections.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, Code::ALL.map(Code::name), "the codes of docs/errors.md, and those of the server");
        for (code, (name, text)) in Code::ALL.into_iter().zip(&sections) {
            let later = if code.retryable() { "may succeed" } else { "will not succeed" };
            let first = format!("Status {}; the same request {later} later.", code.status().as_u16());
            assert_eq!(text.lines().find(|line| !line.is_empty()), Some(&*first), "{name}");
            assert!(text.contains("**Cause:**") && text.contains("**Way out:**"), "{name}");
        }
    }

    #[test]
    fn all_codes_are_listed() {
        // The last one is the last of the enumeration, and each has its place in the list.
        assert_eq!(Code::ALL.len(), Code::Unavailable as usize + 1);
        assert!(Code::ALL.iter().enumerate().all(|(place, code)| *code as usize == place));
    }
}
